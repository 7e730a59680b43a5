"""Attacks with what each unit has: derived values that name somebody, HAVING as an oracle, sums that are asked for twice.

The target of each town comes between one and twenty times, its four friends come once, twice, three and four times. What
the attack finds out by the number of visits is compared with what it finds out by any dimension that is as rare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import duckdb
import pytest
from effort import times
from fixtures_of_attacks import show

import sdcduck
from sdcduck.guard import Guard, Refused, guard

Show = Callable[[str], None]
TARGETS, FRIENDS, MOST = 100, 4, 20
ROLES = {
    "cell_key": "method := 'cell_key'",
    "cell_key of three": "method := 'cell_key', min_units := 3",
    "threshold": "method := 'threshold', min_units := 3",
    "rounding": "method := 'rounding', base := 5, min_units := 3",
}


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as connection:
        connection.execute(f"""
            CREATE TABLE people AS SELECT town * 10 + house AS person, town, house,
                CASE WHEN house = 0 THEN 1 + (town * 7919 + 3) % 101 % {MOST} ELSE house END::INTEGER AS visits
            FROM range({TARGETS}) towns(town), range({FRIENDS + 1}) houses(house);
            CREATE TABLE visits AS SELECT person, town, house, visits AS kind, nth,
                (100 + (person * 31 + nth * 7919) % 900)::INTEGER AS cost, ['x', '7', '300', ''][(1 + (person + nth) % 4)::INTEGER] AS word
            FROM people, range({MOST}) numbers(nth) WHERE nth < visits;
        """)
        connection.execute("FROM sdc_add_record_key('visits', unit := 'person')").fetchall()
        for role, how in ROLES.items():
            sums = "" if role == "rounding" else "measures := ['cost'], "
            connection.execute(
                "FROM sdc_protect('visits', unit := 'person', dimensions := ['town', 'house', 'kind', 'nth', 'word'], "
                f"{sums}{how}, role := '{role}')"
            ).fetchall()
        yield connection


@pytest.fixture(scope="module")
def guards(con: duckdb.DuckDBPyConnection) -> dict[str, Guard]:
    return {role: guard(con, role=role) for role in ROLES}


def truth(con: duckdb.DuckDBPyConnection) -> list[int]:
    return [n for (n,) in con.execute("SELECT visits FROM people WHERE house = 0 ORDER BY town").fetchall()]


def largest(one: Guard, figure: str) -> dict[int, int]:
    """The largest number with which somebody of a town is published, by HAVING with each number."""
    found: dict[int, int] = {}
    for least in range(1, MOST + 1):
        rows = one.sql(
            f"SELECT town, count(*) AS n FROM (SELECT person, town FROM visits GROUP BY person, town HAVING {figure} >= {least}) "
            "GROUP BY town"
        ).to_pylist()
        found |= {row["town"]: least for row in rows if row["n"] and row["n"] > 0}
    return found


@pytest.mark.newest
def test_having_tells_no_more_of_a_number_of_visits_than_of_a_dimension(
    con: duckdb.DuckDBPyConnection, guards: dict[str, Guard], show: Show
) -> None:
    """Who is alone with a value is told as often by a number of rows as by a column; `min_units` hides most of both."""
    exact = truth(con)
    hits: dict[tuple[str, str], int] = {}
    for role in ROLES:
        for figure in ("count(*)", "max(kind)"):
            found = largest(guards[role], figure)
            rare = [town for town, visits in enumerate(exact) if visits > FRIENDS]
            hits[role, figure] = sum(found.get(town) == exact[town] for town in rare)
        show(
            f"{role}: of {len(rare)} numbers of visits above those of friends {hits[role, 'count(*)']} told by HAVING count(*), "
            f"{hits[role, 'max(kind)']} by a dimension with the same values"
        )
        assert hits[role, "count(*)"] == hits[role, "max(kind)"]
    assert 35 <= hits["cell_key", "count(*)"] <= 55, "the docs say so"
    assert hits["cell_key of three", "count(*)"] <= 20
    assert hits["rounding", "count(*)"] <= 20
    assert hits["threshold", "count(*)"] == 0


ALONE = ["{0}", "{0} * 100 + nth0", "{0} = 17", "CASE WHEN {0} > 4 THEN town END", "least({0}, 7)"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("value", ALONE)
def test_a_derived_value_shows_of_a_single_unit_what_a_dimension_with_that_value_shows(
    guards: dict[str, Guard], role: str, value: str
) -> None:
    """Groups of one or two are there or hidden, and so are their sums and means, whatever made these groups."""
    figures = "count(*) AS persons, sum(n) AS stays, avg(n) AS mean"
    figures += "" if role == "rounding" else ", sum(t) AS total, avg(t) AS cost"
    total = "" if role == "rounding" else "sum(cost) AS t, "
    each = f"SELECT person, town, count(*) AS n, {total}min(kind) AS kind, min(nth) AS nth0 FROM visits GROUP BY person, town"
    answers = [
        guards[role].sql(
            f"SELECT town, {value.format(of)} AS value, {figures} FROM ({each}) WHERE n > 4 GROUP BY ALL ORDER BY ALL"
        )
        for of in ("n", "kind")
    ]
    assert answers[0].to_pylist() == answers[1].to_pylist()
    assert answers[0].num_rows < 0.8 * TARGETS, "each of these groups is of one person"
    assert role != "threshold" or answers[0].num_rows == 0


@pytest.mark.newest
def test_a_sum_of_numbers_of_visits_is_no_second_number_of_visits(guards: dict[str, Guard], show: Show) -> None:
    """Asked by the rows, by the units, and by units and something else it is one number: nothing is there to average."""
    random, asked = Random(20261126), 0
    for role in ROLES:
        one = guards[role]
        for _ in range(times(6, 12)):
            chosen = f"town // {random.randrange(2, 30)} = {random.randrange(3)} AND nth >= {random.randrange(3)}"
            least = random.randrange(1, 6)
            kept = f"JOIN (SELECT person AS p FROM visits WHERE {chosen} GROUP BY person HAVING count(*) >= {least}) AS kept ON p = person"
            ways = [
                f"SELECT town % 3 AS k, count(*) AS n FROM visits {kept} WHERE {chosen} GROUP BY k",
                f"SELECT k, sum(n) AS n FROM (SELECT person, town % 3 AS k, count(*) AS n FROM visits WHERE {chosen} GROUP BY ALL "
                f"HAVING count(*) >= {least} ORDER BY n) GROUP BY k",
                f"SELECT k, sum(m) AS n FROM (SELECT person, k, sum(n) AS m FROM (SELECT person, house, town % 3 AS k, nth % 2 AS odd, "
                f"count(*) AS n FROM visits {kept} WHERE {chosen} GROUP BY ALL) GROUP BY person, k) GROUP BY k",
            ]  # fmt: skip
            answers = [sorted((row["k"], row["n"]) for row in one.sql(way).to_pylist()) for way in ways]
            assert answers[0] == answers[1] == answers[2], ways
            asked += len(answers[0])
    show(f"{asked} numbers of visits asked for in three ways: one answer each")
    assert asked > 50


ONE_OF_SEVERAL = [
    "SELECT count(*) FROM (SELECT person FROM visits GROUP BY person LIMIT 1)",
    "SELECT count(*) FROM (SELECT person FROM visits GROUP BY person ORDER BY count(*) DESC LIMIT 1)",
    "SELECT sum(n) FROM (SELECT person, count(*) AS n FROM visits GROUP BY person ORDER BY n DESC LIMIT 1)",
    "SELECT count(*) FROM (SELECT person FROM visits GROUP BY person OFFSET 1)",
    "SELECT count(*) FROM (SELECT DISTINCT ON (town) person, town FROM visits GROUP BY person, town)",
    "SELECT count(*) FROM (SELECT person, row_number() OVER (ORDER BY count(*)) AS r FROM visits GROUP BY person) WHERE r = 1",
    "SELECT r, count(*) FROM (SELECT rank() OVER (ORDER BY n) AS r FROM (SELECT person, count(*) AS n FROM visits GROUP BY person)) GROUP BY r",
    "SELECT count(*) FROM (SELECT person FROM visits GROUP BY person QUALIFY row_number() OVER (ORDER BY max(nth)) = 1)",
    "SELECT x, count(*) FROM (SELECT person, max(cost) AS x FROM visits GROUP BY person) GROUP BY x",
    "SELECT x, count(*) FROM (SELECT person, min(cost) AS x FROM visits GROUP BY person) GROUP BY x",
    "SELECT count(*) FROM (SELECT person FROM visits GROUP BY person HAVING sum(cost) > 900)",
    "SELECT count(*) FROM (SELECT person, sum(cost) AS t FROM visits GROUP BY person) WHERE t > 900",
    "SELECT count(*) FROM (SELECT person, count(*) AS n FROM visits WHERE cost > 900 GROUP BY person)",
    "SELECT x, count(*) FROM (SELECT person, count(DISTINCT cost) AS x FROM visits GROUP BY person) GROUP BY x",
    "SELECT x, count(*) FROM (SELECT person, mode(cost) AS x FROM visits GROUP BY person) GROUP BY x",
    "SELECT x, count(*) FROM (SELECT person, first(kind ORDER BY cost) AS x FROM visits GROUP BY person) GROUP BY x",
    "SELECT max(t) FROM (SELECT person, sum(cost) AS t FROM visits GROUP BY person)",
    "SELECT x, count(*) FROM (SELECT person, person % 10 AS x, count(*) AS n FROM visits GROUP BY person) GROUP BY x",
    "SELECT x, count(*) FROM (SELECT person, max(person) AS x FROM visits GROUP BY person) GROUP BY x",
    "SELECT count(*) FROM (SELECT person FROM visits GROUP BY person HAVING person = 10)",
    "SELECT count(*) FROM (SELECT person, count(*) AS n FROM visits GROUP BY person) WHERE person = 10",
    "SELECT count(*) FROM (SELECT person FROM visits v GROUP BY person HAVING count(*) > (SELECT count(*) FROM visits w WHERE w.town = v.town))",
]  # fmt: skip


@pytest.mark.parametrize("query", ONE_OF_SEVERAL)
@pytest.mark.parametrize("role", ["cell_key", "threshold"])
def test_what_would_pick_one_unit_or_look_at_a_measure_is_refused(
    guards: dict[str, Guard], role: str, query: str
) -> None:
    with pytest.raises(Refused, match=r"SDC0(4[0145]|50|05)"):
        guards[role].sql(query)


FAILING = [
    "word::INTEGER",
    "word::TINYINT + 100",
    "1 / (nth - 3)",
    "('2024-01-' || word)::DATE",
    "nth::UTINYINT - 5",
    "'(' || word",
]
"""Expressions that fail, or give no number, for some rows only."""
PLACES = [
    "SELECT x, count(*) AS n FROM (SELECT person, max({0}) AS x FROM visits GROUP BY person) GROUP BY x",
    "SELECT count(*) AS n FROM (SELECT person FROM visits GROUP BY person HAVING max({0}) IS NOT NULL)",
    "SELECT sum(m) AS n FROM (SELECT person, count({0}) AS m FROM visits GROUP BY person)",
    "SELECT avg(m) AS n FROM (SELECT person, count(*) FILTER (WHERE ({0}) IS NOT NULL) AS m FROM visits GROUP BY person)",
    "SELECT x, count(*) AS n FROM (SELECT person, mode({0}) AS x FROM visits GROUP BY person) GROUP BY x",
    "SELECT count(v.person) AS n FROM visits w LEFT JOIN visits v ON v.person = w.person AND ({0}) IS NOT NULL",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("expression", FAILING)
def test_no_expression_of_a_unit_fails_because_of_one_record(
    guards: dict[str, Guard], expression: str, place: str
) -> None:
    """It is refused whatever the records are, or answered; that it failed would tell of a record."""
    if "LEFT JOIN" in place:
        for name in ("word", "nth"):
            expression = expression.replace(name, f"v.{name}")
    one = guards["cell_key"]
    try:
        one.rewrite(place.format(expression))
    except Refused as refused:
        assert refused.code in ("SDC005", "SDC010", "SDC050")
        return
    assert one.sql(place.format(expression)).num_rows > 0
