"""Records with units of several kinds, such as a person and a firm: every number protects all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from jobs_database import COLUMNS, METHODS, UNITS, add_keys, made, protect
from own_numbers import own

import sdcduck
from sdcduck.guard import Guard, Refused, guard

QUESTIONS = [
    "SELECT count(*) FROM jobs",
    "SELECT count(DISTINCT person_id), count(DISTINCT firm_id) FROM jobs",
    "SELECT count(person_id), count(firm_id), count(wage) FROM jobs",
    "SELECT sector, count(*) FROM jobs GROUP BY sector",
    "SELECT sector, sex, count(*), count(DISTINCT firm_id) FROM jobs GROUP BY ALL",
    "SELECT sector, sum(wage), avg(wage) FROM jobs GROUP BY 1",
    "SELECT sector, sum(hours), avg(hours) FROM jobs GROUP BY 1",
    "SELECT sex, count(*) FILTER (WHERE age < 40), sum(wage) FILTER (WHERE sector = 'care') FROM jobs GROUP BY sex",
    "SELECT sex, sum(CASE WHEN sector = 'care' THEN 1 ELSE 0 END) FROM jobs GROUP BY sex",
    "SELECT sex, sum(CASE WHEN sector = 'care' THEN wage ELSE 0 END) FROM jobs GROUP BY sex",
    "SELECT sector, count(DISTINCT CASE WHEN sex = 'f' THEN firm_id END) FROM jobs GROUP BY 1",
    "SELECT count(*) FROM jobs WHERE sex = 'f' AND month >= DATE '2024-06-01'",
    "SELECT age // 20 * 20 AS band, count(*) FROM jobs GROUP BY band",
    "SELECT date_trunc('quarter', month) AS q, sum(wage) FROM jobs GROUP BY q",
    "SELECT sector, sex, count(*), sum(wage) FROM jobs GROUP BY ROLLUP (sector, sex)",
    "SELECT sector, sex, count(DISTINCT firm_id) FROM jobs GROUP BY CUBE (sector, sex)",
    "SELECT sector, sex, grouping(sector), count(*) FROM jobs GROUP BY GROUPING SETS ((sector), (sex), ())",
    "SELECT DISTINCT sector, sex FROM jobs",
    "SELECT count(DISTINCT sector), min(sector), max(month) FROM jobs",
    "SELECT sector, count(*) FROM jobs GROUP BY sector HAVING count(*) > 870",
    "SELECT sector, count(*) AS n, sum(count(*)) OVER () AS total FROM jobs GROUP BY sector",
    "WITH women AS (FROM jobs WHERE sex = 'f') SELECT sector, count(DISTINCT firm_id) FROM women GROUP BY sector",
    "SELECT s, count(DISTINCT f) FROM (SELECT sector AS s, firm_id AS f FROM jobs WHERE age > 30) GROUP BY s",
    "SELECT part, count(*), sum(wage) FROM jobs JOIN sectors USING (sector) GROUP BY part",
    "SELECT part, count(*) FROM jobs, sectors WHERE jobs.sector = sectors.sector GROUP BY part",
    "SELECT count(*) FROM jobs WHERE sector IN (SELECT sector FROM sectors WHERE part = 'services')",
    "SELECT part, count(j.firm_id) FROM sectors s LEFT JOIN jobs j ON s.sector = j.sector GROUP BY part",
    "SELECT sector, sum(2 * wage - 10), sum(wage + hours) FROM jobs GROUP BY sector",
    "SELECT n, count(*), count(DISTINCT firm_id) FROM (SELECT person_id, firm_id, count(*) AS n FROM jobs GROUP BY ALL) GROUP BY n",
    "SELECT sum(n), sum(w) FROM (SELECT person_id, firm_id, count(*) AS n, sum(wage) AS w FROM jobs GROUP BY ALL)",
    "SELECT sex, count(*) FROM (SELECT person_id, firm_id, min(sex) AS sex FROM jobs GROUP BY ALL HAVING count(*) > 1) GROUP BY sex",
    "SELECT sector, count(*) FROM (SELECT DISTINCT person_id, firm_id, sector FROM jobs) GROUP BY sector",
    "SELECT sex, count(*) FROM jobs GROUP BY sex ORDER BY count(*) LIMIT 1",
    "SELECT sector, count(*) FROM (FROM jobs QUALIFY row_number() OVER (PARTITION BY person_id, firm_id ORDER BY month) = 1) GROUP BY 1",
    "SELECT sector, n FROM (SELECT sector, count(*) AS n FROM jobs GROUP BY sector) JOIN sectors USING (sector) WHERE n > 10",
    "SELECT sector, count(*) / (SELECT count(*) FROM jobs) AS share FROM jobs GROUP BY sector",
]


@pytest.fixture(scope="module", params=METHODS)
def under(request: pytest.FixtureRequest) -> Iterator[tuple[str, Guard, duckdb.DuckDBPyConnection]]:
    with made() as con:
        protect(con, request.param)
        yield request.param, guard(con), con


@pytest.fixture(scope="module")
def keyed() -> Iterator[tuple[Guard, duckdb.DuckDBPyConnection]]:
    with made() as con:
        con.execute(
            f"FROM sdc_protect('jobs', {UNITS}, {COLUMNS}, {METHODS['cell_key']}, bounds := {{'hours': [1, 50]}})"
        ).fetchall()
        yield guard(con), con


def rows(found: Any) -> list[tuple[Any, ...]]:
    """In an order of their own, numbers with nine digits."""
    return sorted(
        (
            tuple(f"{float(v):.9g}" if isinstance(v, int | float) or hasattr(v, "as_tuple") else v for v in row)
            for row in found
        ),
        key=repr,
    )


def answer(one: Guard, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in one.sql(query).to_pylist()]


@pytest.mark.parametrize("query", QUESTIONS)
def test_usual_questions_are_answered(under: tuple[str, Guard, duckdb.DuckDBPyConnection], query: str) -> None:
    """To the number where nothing is hidden; near it with noise."""
    method, one, con = under
    found = one.sql(query)
    if method == "exact":
        assert rows(zip(*(column.to_pylist() for column in found.columns), strict=True)) == rows(
            con.execute(query).fetchall()
        )
    else:
        assert found.num_rows > 0


def test_a_threshold_is_one_for_each_kind() -> None:
    """200 persons of one firm are hidden, as 3 firms of two persons are; with enough of both there is a number."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("""
            CREATE TABLE jobs AS
            SELECT i AS person_id, 1 AS firm_id, 'one firm' AS sector, 1 AS wage FROM range(200) t(i)
            UNION ALL SELECT 1000 + i % 2, 10 + i, 'two persons', 1 FROM range(6) t(i)
            UNION ALL SELECT 2000 + i, 20 + i % 3, 'enough', CASE WHEN i % 3 = 0 THEN 1 END FROM range(30) t(i)""")
        columns = "dimensions := ['sector'], measures := ['wage']"
        protect(con, "threshold", columns=columns)
        one = guard(con)
        every = "SELECT sector, count(*), count(DISTINCT firm_id), sum(wage) FROM jobs GROUP BY sector"
        assert answer(one, every) == [("enough", 30, 3, None)]  # of one firm there are wages
        assert answer(one, "SELECT count(*) FROM jobs WHERE sector = 'one firm'") == [(None,)]
        assert answer(one, "SELECT count(*) FILTER (sector = 'two persons') FROM jobs") == [(None,)]
        assert answer(one, "SELECT sector FROM jobs GROUP BY sector") == [("enough",)]
        con.execute(
            f"FROM sdc_protect('jobs', {UNITS}, {columns}, method := 'threshold', min_units := [2, 1])"
        ).fetchall()
        assert sorted(row[0] for row in answer(guard(con), every)) == ["enough", "one firm", "two persons"]


def test_counts_have_the_noise_of_all_units(keyed: tuple[Guard, duckdb.DuckDBPyConnection]) -> None:
    """Computed again: the keys of all persons and firms, times the rows of that unit of any kind which has most."""
    one, con = keyed
    owns = ", ".join(str(own(con, quantity)) for quantity in ("rows", "the largest unit's rows"))
    for number in ("count(*)", "count(DISTINCT person_id)", "count(DISTINCT firm_id)"):
        for condition in (
            "true",
            "sex = 'f'",
            "sector = 'care' AND age > 30",
            "age = 40 AND month < DATE '2024-04-01'",
        ):
            largest = f"""(SELECT max(n) FROM (
                SELECT {number} AS n FROM jobs WHERE {condition} GROUP BY person_id
                UNION ALL SELECT {number} FROM jobs WHERE {condition} GROUP BY firm_id))"""
            keys = " + ".join(
                f"(SELECT sum(key) FROM (SELECT any_value({unit}_key) AS key FROM jobs WHERE {condition} GROUP BY {unit}_id))"
                for unit in ("person", "firm")
            )
            fewest = f"(SELECT least(count(DISTINCT person_id), count(DISTINCT firm_id)) FROM jobs WHERE {condition})"
            again = con.execute(
                f"""SELECT _sdc_stepped_rows('INTEGER', f, f, keys, n, most, 'default', 'default_magnitude', {owns})
                FROM (SELECT {keys} AS keys, {largest} AS most, {fewest} AS f,
                    (SELECT {number} FROM jobs WHERE {condition}) AS n)"""
            ).fetchall()
            assert answer(one, f"SELECT {number} FROM jobs WHERE {condition}") == again, (number, condition)


def test_one_set_of_records_has_one_number(keyed: tuple[Guard, duckdb.DuckDBPyConnection]) -> None:
    one, _ = keyed
    for wordings in [
        (
            "SELECT count(*), sum(wage) FROM jobs WHERE sex = 'f'",
            "SELECT count(*) FILTER (sex = 'f'), sum(wage) FILTER (sex = 'f') FROM jobs",
            "SELECT count(*), sum(wage) FROM (SELECT wage FROM jobs WHERE sex <> 'm')",
            "SELECT sum(n), sum(w) FROM (SELECT person_id, firm_id, count(*) n, sum(wage) w FROM jobs WHERE sex = 'f' GROUP BY ALL)",
        ),
        (
            "SELECT count(DISTINCT firm_id) FROM jobs WHERE age = 40",
            "SELECT count(DISTINCT f) FROM (SELECT firm_id AS f FROM jobs WHERE age = 40)",
            "SELECT count(DISTINCT firm_id) FROM (SELECT DISTINCT firm_id, person_id FROM jobs WHERE age = 40)",
        ),
    ]:
        found = [answer(one, query) for query in wordings]
        assert all(each == found[0] for each in found), found


def test_functions_have_the_noise_of_the_largest_firm(keyed: tuple[Guard, duckdb.DuckDBPyConnection]) -> None:
    """Of a function with bounds: what it can be, times the rows of the firm that has most."""
    one, con = keyed
    true = con.execute("SELECT sum(sqrt(hours)) FROM jobs").fetchone()
    most = con.execute("SELECT max(n) FROM (SELECT count(*) n FROM jobs GROUP BY firm_id)").fetchone()
    assert true is not None
    assert most is not None
    away = abs(answer(one, "SELECT sum(sqrt(hours)) FROM jobs")[0][0] - true[0])
    assert 0 < away < most[0] * math.sqrt(50) * 3


REFUSED = [
    ("SELECT firm_id, count(*) FROM jobs GROUP BY firm_id", "SDC040", "also person_id"),
    (
        "SELECT n, count(*) FROM (SELECT person_id, count(*) AS n FROM jobs GROUP BY 1) GROUP BY n",
        "SDC040",
        "also firm_id",
    ),
    (
        "SELECT n, count(*) FROM (SELECT firm_id, count(*) AS n FROM jobs GROUP BY 1) GROUP BY n",
        "SDC040",
        "also person_id",
    ),
    ("SELECT count(*) FROM (SELECT DISTINCT firm_id FROM jobs)", "SDC040", "also person_id"),
    ("SELECT count(*) FROM (SELECT DISTINCT ON (person_id) * FROM jobs ORDER BY month)", "SDC040", "also firm_id"),
    (
        "SELECT r, count(*) FROM (SELECT row_number() OVER (PARTITION BY person_id ORDER BY month) AS r FROM jobs) GROUP BY r",
        "SDC040",
        "also firm_id",
    ),
    (
        "SELECT count(*) FROM jobs WHERE person_id IN (SELECT person_id FROM jobs WHERE sector = 'care')",
        "SDC035",
        "view of both",
    ),
    ("SELECT count(*) FROM jobs WHERE firm_id IN (SELECT firm_id FROM jobs WHERE sex = 'f')", "SDC035", "view of both"),
    (
        "SELECT count(*) FROM jobs a WHERE EXISTS (FROM jobs b WHERE a.person_id = b.person_id AND b.sector = 'care')",
        "SDC035",
        "view of both",
    ),
    (
        "SELECT count(*) FROM jobs a WHERE NOT EXISTS (FROM jobs b WHERE a.firm_id = b.firm_id AND b.month > a.month)",
        "SDC035",
        "view of both",
    ),
    (
        "SELECT count(*) FROM jobs a WHERE (SELECT count(*) FROM jobs b WHERE b.person_id = a.person_id) > 2",
        "SDC040",
        "also firm_id",
    ),
    ("SELECT count(*) FROM jobs a JOIN jobs b USING (person_id)", "SDC035", "view of both"),
    (
        "SELECT count(*) FROM jobs SEMI JOIN (FROM jobs WHERE sex = 'f') AS w USING (firm_id)",
        "SDC040",
        "firm_id is a unit",
    ),
    (
        "SELECT count(*) FROM (SELECT person_id FROM jobs UNION ALL SELECT person_id FROM jobs)",
        "SDC035",
        "view of both",
    ),
    ("SELECT count(*) FROM jobs WHERE firm_id = 3", "SDC040", "firm_id is a unit"),
    ("SELECT max(firm_id) FROM jobs", "SDC050", "max"),
    ("SELECT firm_id FROM jobs", "SDC040", ""),
    ("SELECT count(*) FROM jobs GROUP BY firm_id % 2", "SDC040", "firm_id is a unit"),
    ("SELECT count(*) FROM jobs JOIN sectors ON firm_id = part", "SDC040", "firm_id is a unit"),
    ("SELECT count(person_key) FROM jobs", "SDC030", "person_key"),
    ("SELECT count(firm_key) FROM jobs", "SDC030", "firm_key"),
]


@pytest.mark.parametrize(("query", "code", "said"), REFUSED)
def test_what_one_kind_alone_would_steer_is_refused(
    under: tuple[str, Guard, duckdb.DuckDBPyConnection], query: str, code: str, said: str
) -> None:
    with pytest.raises(Refused) as refused:
        under[1].sql(query)
    assert (refused.value.code, said in str(refused.value)) == (code, True), str(refused.value)


def test_identifiers_are_no_numbers(under: tuple[str, Guard, duckdb.DuckDBPyConnection]) -> None:
    for function in ("sum", "avg", "median", "stddev", "mode", "list", "string_agg", "any_value", "count_if"):
        with pytest.raises(Refused):
            under[1].sql(f"SELECT {function}(firm_id) FROM jobs")


@pytest.mark.parametrize("query", ["SELECT stddev(wage) FROM jobs", "SELECT median(wage) FROM jobs"])
def test_with_noise_there_are_no_variances_and_quantiles(
    keyed: tuple[Guard, duckdb.DuckDBPyConnection], query: str
) -> None:
    with pytest.raises(Refused, match=r"SDC052.*units are of several kinds"):
        keyed[0].sql(query)


def test_a_table_of_one_kind_is_not_tied_to_one_of_several(keyed: tuple[Guard, duckdb.DuckDBPyConnection]) -> None:
    """People who work in a sector would be counted with the noise of people: one firm may be all of a sector."""
    _, con = keyed
    con.execute("CREATE TABLE people AS SELECT DISTINCT person_id, person_key AS record_key, sex FROM jobs")
    con.execute(
        "FROM sdc_protect('people', unit := 'person_id', dimensions := ['sex'], population := 'persons')"
    ).fetchall()
    one = guard(con)
    for query in [
        "SELECT count(*) FROM people WHERE person_id IN (SELECT person_id FROM jobs WHERE sector = 'care')",
        "SELECT count(*) FROM jobs WHERE person_id IN (SELECT person_id FROM people WHERE sex = 'f')",
        "SELECT count(*) FROM people JOIN jobs USING (person_id)",
        "SELECT count(*) FROM people p LEFT JOIN jobs j ON p.person_id = j.person_id AND j.sector = 'care'",
        "SELECT count(*) FROM people p WHERE EXISTS (FROM jobs j WHERE j.person_id = p.person_id)",
    ]:
        with pytest.raises(Refused, match=r"SDC035.*several kinds of units"):
            one.sql(query)


DECLARED = [
    ("unit := 'person_id', units := ['person_id', 'firm_id']", "do not go together"),
    ("units := ['person_id']", "two to 4 different columns"),
    ("units := ['person_id', 'Person_ID']", "two to 4 different columns"),
    ("units := ['person_id', 'form_id']", "did you mean 'firm_id'"),
    (f"{UNITS}", "record_key.*one for each of 'units'"),
    (f"{UNITS}, record_key := ['person_key', 'person_key']", "another column for each kind"),
    (f"{UNITS}, record_key := {{'person_id': 'person_key'}}", "one for each of 'units'"),
    (f"{UNITS}, record_key := ['person_key', 'hours']", "must hold integers|cannot hold record keys"),
    (f"{UNITS}, record_key := ['firm_key', 'person_key']", "differs between rows of one unit"),
    (f"{UNITS}, {METHODS['cell_key']}, min_units := {{'person_id': 3}}", "min_units.*one for each of 'units'"),
    (f"{UNITS}, {METHODS['cell_key']}, min_units := [3, 1.5]", "min_units.*whole number"),
    (f"{UNITS}, method := 'threshold'", "how many units of each kind"),
    (f"{UNITS}, {METHODS['cell_key']}, population := 'persons'", "Make a view of both tables"),
    (f"{UNITS}, record_key := ['person_key', 'firm_key'], method := 'rounding'", "hides one record and not a unit"),
    (f"{UNITS}, method := 'suppression', publication := 'p'", "one kind of contributor"),
    ("unit := 'person_id', record_key := ['person_key', 'firm_key']", "goes with units"),
    ("unit := 'person_id', record_key := 'person_key', min_units := {'person_id': 3}", "goes with units"),
]


@pytest.fixture(scope="module")
def unprotected() -> Iterator[duckdb.DuckDBPyConnection]:
    """Of which nothing is declared, since all that is tried is refused."""
    with made() as con:
        yield con
        assert con.execute("SELECT count(*) FROM sdc.policies WHERE label = 'unit-level'").fetchall() == [(0,)]


@pytest.mark.parametrize(("arguments", "said"), DECLARED)
def test_what_does_not_protect_all_kinds_is_refused_when_declared(
    unprotected: duckdb.DuckDBPyConnection, arguments: str, said: str
) -> None:
    with pytest.raises(duckdb.Error, match=said):
        unprotected.execute(
            f"FROM sdc_protect('jobs', dimensions := ['sex', 'age'], measures := ['wage'], {arguments})"
        ).fetchall()


def test_policies_tell_the_kinds_and_are_gone_when_taken_back() -> None:
    with made() as con:
        asked = "SELECT min_units, units FROM sdc_policies() WHERE name = 'jobs'"
        protect(con, "threshold")
        assert con.execute(asked).fetchall() == [(10, {"person_id": 10, "firm_id": 3})]
        con.execute(
            f"FROM sdc_protect('jobs', unit := 'person_id', {COLUMNS}, method := 'threshold', min_units := 4)"
        ).fetchall()
        assert con.execute(asked).fetchall() == [(4, None)]
        assert answer(
            guard(con), "SELECT n > 0, count(*) FROM (SELECT person_id, count(*) AS n FROM jobs GROUP BY 1) GROUP BY 1"
        )
        protect(con, "threshold")
        con.execute("FROM sdc_unprotect('jobs')").fetchall()
        assert con.execute("SELECT count(*) FROM sdc.settings WHERE name LIKE 'kinds %'").fetchall() == [(0,)]


def test_an_sdcduck_that_knows_one_kind_does_not_answer(keyed: tuple[Guard, duckdb.DuckDBPyConnection]) -> None:
    """`sdc.policies` has neither unit nor key there, without which no release answers; nor does this one by itself."""
    con = keyed[1]
    assert con.execute("SELECT unit, record_key FROM sdc.policies WHERE name = 'jobs'").fetchall() == [(None, None)]
    with made() as other:
        protect(other, "cell_key")
        other.execute("DELETE FROM sdc.settings WHERE name LIKE 'kinds %'")
        with pytest.raises(Refused, match=r"SDC060"):
            guard(other).sql("SELECT count(*) FROM jobs")


@pytest.mark.parametrize("change", ["firm_id = NULL", "firm_key = 12345678"])
def test_records_that_came_are_looked_at_for_each_kind(change: str) -> None:
    with made() as con:
        protect(con, "cell_key")
        one = guard(con)
        one.sql("SELECT count(*) FROM jobs")
        con.execute(
            f"INSERT INTO jobs SELECT * REPLACE ({change.split(' = ')[1]} AS {change.split(' = ')[0]}) FROM jobs LIMIT 1"
        )
        with pytest.raises(Refused, match=r"SDC060"):
            one.sql("SELECT count(*) FROM jobs")


def test_a_protected_view_carries_its_units() -> None:
    """As the refusals of joins say: a view of jobs and of what is known of firms, with all units."""
    with made() as con:
        con.execute(
            "CREATE TABLE firms AS SELECT DISTINCT firm_id, ['small', 'large'][1 + firm_id % 2] AS size FROM jobs"
        )
        con.execute("CREATE VIEW with_size AS FROM jobs JOIN firms USING (firm_id)")
        protect(con, "exact", "with_size", "dimensions := ['sector', 'size'], measures := ['wage']")
        query = "SELECT size, count(*), count(DISTINCT firm_id), count(DISTINCT person_id), sum(wage) FROM with_size GROUP BY size"
        assert rows(answer(guard(con), query)) == rows(con.execute(query).fetchall())


def test_three_kinds() -> None:
    """Persons, households and firms; the noise of a count is that of all three."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("""CREATE TABLE jobs AS SELECT i % 300 AS person_id, i % 300 // 3 AS home_id, i * 7 % 40 AS firm_id,
            i % 2 AS sex FROM range(900) t(i)""")
        add_keys(con, "jobs")
        con.execute("FROM sdc_add_record_key('jobs', unit := 'home_id', record_key := 'home_key')").fetchall()
        three = "units := ['person_id', 'home_id', 'firm_id'], dimensions := ['sex']"
        con.execute(
            f"FROM sdc_protect('jobs', {three}, record_key := ['person_key', 'home_key', 'firm_key'])"
        ).fetchall()
        count = "SELECT count(*), count(DISTINCT home_id) FROM jobs"
        noisy = answer(guard(con), count)[0]
        assert noisy != (900, 100)
        assert 0 < noisy[0] < 1800
        con.execute(f"FROM sdc_protect('jobs', {three}, method := 'threshold', min_units := [1, 101, 1])").fetchall()
        assert answer(guard(con), count) == [(None, None)]
        con.execute(f"FROM sdc_protect('jobs', {three}, method := 'threshold', min_units := [1, 100, 40])").fetchall()
        assert answer(guard(con), count) == [(900, 100)]
