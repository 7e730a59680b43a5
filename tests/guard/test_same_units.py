"""The same set of units has the same numbers, in whatever words it is asked for: other noise would be averaged away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from products import each_once

import sdcduck
from sdcduck.guard import Guard, Refused, guard

METHODS = {
    "cell_key": "method := 'cell_key'",
    "few": "method := 'cell_key', min_units := 6",
    "threshold": "method := 'threshold', min_units := 4",
    "rounding": "method := 'rounding', base := 5",
}
MEASURES = ("whole", "partly", "real", "amount", "negative")
REGIONS = [f"r{i}" for i in range(6)]
DOORS = ("file", "one thread", "four threads")
"""Each with a file of its own, in which the people are stored in another order."""

FORMS = {
    "WHERE": "SELECT {0} AS x FROM people WHERE {c}",
    "twice": "SELECT {0} AS x FROM people WHERE {c} AND ({c} OR sex = 'f')",
    "not not": "SELECT {0} AS x FROM people WHERE NOT (NOT ({c}))",
    "FILTER": "SELECT {0} FILTER (WHERE {c}) AS x FROM people",
    "CASE": "SELECT {case} AS x FROM people",
    "group key": "SELECT x FROM (SELECT {c} AS k, {0} AS x FROM people GROUP BY 1) WHERE k",
    "text key": "SELECT {0} AS x FROM people GROUP BY CASE WHEN {c} THEN 'in' ELSE 'out' END HAVING CASE WHEN {c} THEN 'in' ELSE 'out' END = 'in'",
    "total": "SELECT x FROM (SELECT sex, {0} AS x, GROUPING(sex) AS g FROM people WHERE {c} GROUP BY ROLLUP (sex)) WHERE g = 1",
    "subtotal": "SELECT x FROM (SELECT {c} AS k, sex, {0} AS x, GROUPING(sex) AS g FROM people GROUP BY GROUPING SETS ((1, 2), (1))) WHERE g = 1 AND k",
    "subquery": "SELECT {0} AS x FROM (SELECT * FROM people WHERE {c})",
    "column": "SELECT {0} AS x FROM (SELECT *, {c} AS k FROM people) WHERE k",
    "WITH": "WITH a AS (SELECT * FROM people), b AS (FROM a WHERE {c}) SELECT {0} AS x FROM b",
    "beside": "SELECT count(*) AS n, {0} AS x, count(*) FILTER (sex = 'f') AS m FROM people WHERE {c}",
    "public": "SELECT {0} AS x FROM people JOIN towns USING (region) WHERE {p}",
    "left": "SELECT {0} AS x FROM people LEFT JOIN towns USING (region) WHERE {p}",
    "IN": "SELECT {0} AS x FROM people WHERE region IN (SELECT region FROM towns WHERE {t}) AND {s}",
    "SEMI": "SELECT {0} AS x FROM people SEMI JOIN (FROM towns WHERE {t}) USING (region) WHERE {s}",
    "EXISTS": "SELECT {0} AS x FROM people WHERE EXISTS (FROM towns WHERE towns.region = people.region AND {t}) AND {s}",
    "ANTI": "SELECT {0} AS x FROM people ANTI JOIN (FROM towns WHERE NOT ({t})) USING (region) WHERE {s}",
    "units": "SELECT {0} AS x FROM people WHERE id IN (SELECT id FROM people WHERE {c})",
    "other table": "SELECT {0} AS x FROM people WHERE id IN (SELECT id FROM visits WHERE ward = 'w0') AND {c}",
    "not elsewhere": "SELECT {0} AS x FROM people WHERE id NOT IN (SELECT id FROM visits WHERE ward = 'nowhere') AND {c}",
    "joined": "SELECT {q} AS x FROM people JOIN again USING (id) WHERE {a}",
    "view": "SELECT {0} AS x FROM shown WHERE {c}",
}  # fmt: skip
"""Each selects the units for which a condition holds; {t} and {p} say the same of a public table."""


def build(path: Path, *, order: str) -> None:
    """People with and without values, under every method; everybody has been to one ward twice."""
    with sdcduck.connect(path, secret="the secret of the tests") as con:
        con.execute(
            f"""CREATE TABLE people AS SELECT i AS id, sdc_record_key(i) AS record_key, 'r' || i % 6 AS region,
            ['f', 'm'][1 + i // 3 % 2] AS sex, (20 + i * 7 % 50)::INTEGER AS age, (100 + i * 37 % 991)::INTEGER AS whole,
            CASE WHEN i % 3 > 0 THEN i * 37 % 11 * 10 END AS partly, CASE WHEN i % 7 > 0 THEN (1 + i * 37 % 991) / 7 END AS real,
            CASE WHEN i % 5 > 0 THEN (1 + i % 991)::DECIMAL(9, 2) END AS amount,
            CASE WHEN i % 4 > 0 THEN -1 - i % 77 ELSE 0 END AS negative FROM range(300) _(i) ORDER BY {order};
            CREATE TABLE visits AS SELECT id, record_key, 'w' || n // 2 AS ward FROM people, range(4) _(n);
            CREATE TABLE again AS SELECT id, record_key, region, sex, age FROM people;
            CREATE VIEW shown AS FROM people;
            CREATE TABLE towns AS SELECT 'r' || i AS region, i AS no FROM range(6) _(i)"""
        )
        con.execute("FROM sdc_declare_public('towns')").fetchall()
        for role, how in METHODS.items():
            measures = [] if role == "rounding" else list(MEASURES)
            for table, columns in (
                ("people", f"['region', 'sex', 'age'], measures := {measures}"),
                ("shown", f"['region', 'sex', 'age'], measures := {measures}"),
                ("visits", "['ward']"), ("again", "['region', 'sex', 'age']"),
            ):  # fmt: skip
                con.execute(
                    f"""FROM sdc_protect('{table}', unit := 'id', dimensions := {columns}, population := 'all',
                    {how}, role := '{role}')"""
                ).fetchall()


@pytest.fixture(scope="module")
def guards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], Guard]]:
    folder = tmp_path_factory.mktemp("same")
    for name, order in (("file", "i"), ("one", "-i"), ("four", "hash(i)")):
        build(folder / f"{name}.duckdb", order=order)
    one, four = (
        sdcduck.connect(folder / f"{name}.duckdb", secret="the secret of the tests", threads=threads)
        for name, threads in (("one", 1), ("four", 4))
    )
    with closing(one), closing(four):
        found = {("one thread", role): guard(one, role=role) for role in METHODS}
        found |= {("four threads", role): guard(four, role=role) for role in METHODS}
        found |= {("file", role): guard(folder / "file.duckdb", role=role) for role in METHODS}
        yield found
        for each in found.values():
            each.close()


AGGREGATES = (
    "count(*)", "count(DISTINCT id)", *(f"{name}({measure})" for measure in MEASURES
    for name in ("count", "sum", "avg", "var_samp", "median")),
)  # fmt: skip


def asked(form: str, aggregate: str, regions: list[int], age: int, sex: str | None) -> str:
    listed = ", ".join(f"'r{region}'" for region in regions)
    others = f"age >= {age}" + ("" if sex is None else f" AND sex = '{sex}'")
    of_towns = " OR ".join(f"no = {region}" for region in regions)
    inner = aggregate[:-1].split("(", 1)
    value = {"*": "1"}.get(inner[1], inner[1])
    distinct = value.startswith("DISTINCT")
    case = f"{inner[0]}({'DISTINCT ' if distinct else ''}CASE WHEN region IN ({listed}) AND {others} THEN {value.removeprefix('DISTINCT ')} END)"
    return FORMS[form].format(
        aggregate,
        c=f"region IN ({listed}) AND {others}",
        p=f"({of_towns}) AND {others}",
        t=f"({of_towns})",
        s=others,
        a=f"again.region IN ({listed}) AND again.{others}".replace(" AND sex", " AND again.sex"),
        q=aggregate.replace("DISTINCT id", "DISTINCT people.id"),
        case=case,
    )


def answer(one: Guard, query: str) -> object:
    """The number; a group that does not appear has none, or is 0."""
    try:
        rows = one.sql(query).to_pylist()
    except Refused as refused:
        return refused.code
    value = rows[0]["x"] if rows else None
    return None if value == 0 else value


SETS = st.tuples(
    st.lists(st.integers(0, 5), min_size=1, max_size=5, unique=True), st.integers(20, 70), st.sampled_from([None, "f", "m"])
)  # fmt: skip


ASKED = st.lists(st.tuples(st.sampled_from(list(FORMS)), st.sampled_from(DOORS)), min_size=4, max_size=4, unique=True)


def numbers(
    guards: dict[tuple[str, str], Guard], role: str, aggregate: str, chosen: tuple[list[int], int, str | None],
    places: list[tuple[str, str]],
) -> dict[object, list[tuple[str, str]]]:  # fmt: skip
    """Who said each of the numbers that were answered."""
    found: dict[object, list[tuple[str, str]]] = {}
    for form, door in places:
        number = answer(guards[door, role], asked(form, aggregate, *chosen))
        if not (isinstance(number, str) and number.startswith("SDC")):
            found.setdefault(number, []).append((form, door))
    return found


@pytest.mark.parametrize("role", METHODS)
def test_one_set_of_units_has_one_number(guards: dict[tuple[str, str], Guard], role: str) -> None:
    @settings(max_examples=times(12, 1000, older=8), deadline=None, derandomize=True, database=None)
    @given(SETS, st.sampled_from(AGGREGATES), ASKED)
    def ask(chosen: tuple[list[int], int, str | None], aggregate: str, places: list[tuple[str, str]]) -> None:
        found = numbers(guards, role, aggregate, chosen, [("WHERE", "file"), *places])
        assert len(found) <= 1, (aggregate, chosen, found)

    ask()


@pytest.mark.parametrize(
    ("role", "aggregate"), each_once(list(METHODS), ["var_samp(amount)", "sum(real)", "sum(partly)", "count(*)"])
)
def test_all_forms_are_answered_alike(guards: dict[tuple[str, str], Guard], role: str, aggregate: str) -> None:
    if role == "rounding" and aggregate != "count(*)":
        assert answer(guards["file", role], asked("WHERE", aggregate, [1, 4], 30, None)) == "SDC030"
        return
    found = numbers(guards, role, aggregate, ([1, 4], 30, None), [(form, DOORS[i % 3]) for i, form in enumerate(FORMS)])
    assert [len(places) for places in found.values()] == [len(FORMS)], found
    assert None not in found


def test_other_units_have_other_numbers(guards: dict[tuple[str, str], Guard]) -> None:
    """Or nothing of this could fail."""
    found = {
        answer(guards["file", "cell_key"], asked("WHERE", "sum(real)", [1, 4], age, None)) for age in range(25, 45)
    }
    assert len(found) > 10


def test_tables_of_one_population_have_the_same_keys() -> None:
    """Else there is a number of a set of units for each table that it is asked of, and their mean has less noise."""
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute("CREATE TABLE people AS SELECT id, id % 3 AS g, 7 AS income FROM range(500) t(id)")
    con.execute("CREATE TABLE visits AS SELECT id, nth FROM people, range(2) numbers(nth)")
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    con.execute("ALTER TABLE visits ADD COLUMN own_key INTEGER")
    con.execute("UPDATE visits SET own_key = (1 + id) * 15485863 % 99999989")
    people = "FROM sdc_protect('people', unit := 'id', dimensions := ['g'], population := 'persons')"
    visits = (
        "FROM sdc_protect('visits', unit := 'id', record_key := 'own_key', dimensions := ['nth'], population := '{}')"
    )
    con.execute(people).fetchall()
    con.execute(visits.format("others")).fetchall()
    for method in ("cell_key", "rounding"):
        with pytest.raises(duckdb.Error, match="500 units have other record keys in 'people', of the same"):
            con.execute(visits.format(f"persons', method := '{method}")).fetchall()
    con.execute("UPDATE visits SET own_key = record_key FROM people WHERE people.id = visits.id AND people.id > 0")
    with pytest.raises(duckdb.Error, match="1 units have other record keys"):
        con.execute(visits.format("persons")).fetchall()
    con.execute("UPDATE visits SET own_key = record_key FROM people WHERE people.id = visits.id")
    con.execute(visits.format("persons")).fetchall()
    con.execute(people).fetchall()  # its own policy is no other table
    con.execute("DROP TABLE visits")
    con.execute(people).fetchall()


def test_units_that_share_a_key_are_rounded_in_one_way() -> None:
    """Of many units some have the same key: their rows brought together or not, and alone in a table, they are one set."""
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute("CREATE TABLE people AS SELECT id, id % 44 AS g FROM range(600) t(id)")
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    con.execute(
        "UPDATE people SET record_key = p.record_key FROM people p WHERE people.id = p.id + 44 AND people.id < 88"
    )
    con.execute("CREATE TABLE visits AS SELECT people.*, nth FROM people, range(2) numbers(nth)")
    for table in ("people", "visits"):
        con.execute(
            f"FROM sdc_protect('{table}', unit := 'id', dimensions := ['g'], method := 'rounding', base := 5, population := 'persons')"
        ).fetchall()
    guarded = guard(con)
    answers = [
        guarded.sql(f"SELECT {shown} FROM {table} GROUP BY ALL ORDER BY ALL").to_pylist()
        for shown, table in (
            ("g, count(*) AS n", "people"),
            ("g, count(DISTINCT id) AS n", "visits"),
            ("g, count(*) AS n", "(SELECT id, g FROM visits GROUP BY id, g)"),
            ("g, count(DISTINCT v.id) AS n", "(SELECT id, g FROM visits) v"),
        )
    ]
    assert len(answers[0]) > 20
    assert all(answer == answers[0] for answer in answers)
