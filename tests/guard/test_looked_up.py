"""Values of records looked up elsewhere: in intervals, by what is worked out of them, and parameters in a WITH."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import combinations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcduck
from sdcduck.guard import Guard, Refused
from sdcduck.guard.relations import Unique

BANDS = "(VALUES (0, 30, 'young'), (30, 65, 'old'), (65, 200, 'older'), (200, NULL, 'none'), (9, 9, 'nobody')) b(low, high, label)"
APART = BANDS.replace("30, 65", "31, 65").replace("65, 200", "66, 200").replace("9, 9", "9, 8")

EQUAL = [
    f"SELECT label, count(*) FROM patients LEFT JOIN {BANDS} ON age >= low AND age < high AND age < high - 1 GROUP BY label",
    "SELECT p.region, x.y, count(*), count(x.y) FROM patients p LEFT JOIN (FROM (VALUES ('n', 40), ('s', 70)) x(region, y)) x ON x.region = p.region AND p.age > x.y GROUP BY ALL",
    "SELECT p.region, x.y, count(*) FROM patients p JOIN (FROM (VALUES ('n', 40), ('s', 70)) x(region, y)) x ON x.region = p.region AND (p.age > x.y OR p.age < 30) AND p.age <> 77 GROUP BY ALL",
    "SELECT k.kind, count(*), count(k.kind), count(DISTINCT v.id) FROM patients p JOIN visits v ON v.id = p.id LEFT JOIN kinds k ON k.diagnosis = v.diagnosis AND p.age > 50 AND v.day < DATE '2025-01-01' GROUP BY ALL",
    "SELECT r.n > 100 AS large, count(*) FROM patients p LEFT JOIN (SELECT region, count(*) AS n FROM patients GROUP BY region) r ON r.region = p.region AND p.age > 50 GROUP BY ALL",
    "SELECT k.kind, count(*), count(k.kind) FROM visits v LEFT JOIN kinds k ON k.diagnosis = v.diagnosis AND month(v.day) = 3 GROUP BY ALL",
    "SELECT count(*), count(w.id), sum(w.cost) FROM visits v LEFT JOIN visits w ON w.id = v.id AND year(w.day) = year(v.day) AND v.diagnosis = 'flu' AND v.day = w.day - 30",
    f"SELECT label, count(*), sum(income) FROM patients JOIN {BANDS} ON age >= low AND age < high GROUP BY label",
    f"SELECT label, count(*) FROM patients, {BANDS} WHERE low <= age AND b.high > patients.age GROUP BY label",
    f"SELECT label, count(*) FROM patients JOIN {BANDS} ON age > low AND age <= high AND label <> 'older' GROUP BY label",
    f"SELECT label, count(*) FROM patients LEFT JOIN {BANDS} ON age > low AND age <= high AND low < 65 GROUP BY label",
    f"SELECT label, count(*) FROM patients JOIN {APART} ON age BETWEEN low AND high GROUP BY label",
    f"WITH d AS (SELECT label, low, high FROM {BANDS} WHERE low >= 30) SELECT label, region, count(*) FROM patients JOIN d ON age >= low AND age < high GROUP BY ALL",
    f"SELECT label, count(*) FROM {BANDS}, patients WHERE age >= low AND age < high AND region <> 'n' GROUP BY ROLLUP (label)",
    f"SELECT label, kind, count(*) FROM patients p JOIN {BANDS} ON p.age >= low AND p.age < high JOIN visits v ON v.id = p.id JOIN kinds USING (diagnosis) GROUP BY ALL",
    "SELECT term, count(*) FROM visits JOIN (VALUES (DATE '2024-01-01', DATE '2024-06-30', 'first'), (DATE '2024-07-01', DATE '2024-12-31', 'second')) t(start, over, term) "
    "ON day BETWEEN start AND over GROUP BY term",
    "SELECT w, label, count(*) FROM patients JOIN ages USING (age) JOIN (VALUES (1, 0, 9, 'a'), (1, 9, 99, 'b'), (2, 0, 50, 'a'), (3, 10, 80, 'c')) t(part, low, high, label) "
    "ON w = part AND age >= low AND age < high GROUP BY ALL",
    # Parameters of a question, which are one row of constants.
    "WITH p AS (SELECT 30 AS low, 60 AS high) SELECT region, count(*), sum(income) FROM patients, p WHERE age BETWEEN low AND high GROUP BY region",
    "WITH p AS (SELECT 30 AS low, 'n' AS r) SELECT count(*) FROM patients JOIN p ON age >= low WHERE region <> r",
    "SELECT x, count(*) FROM patients CROSS JOIN (VALUES (7)) p(x) WHERE age % x = 0 GROUP BY x",
    "SELECT count(*) FROM (SELECT 1 AS x) a, visits v, (SELECT 2 AS y) b WHERE month(v.day) > x + y",
    # What is worked out of records.
    "SELECT w, count(*) FROM patients JOIN (VALUES (2, 'a'), (3, 'b')) v(x, w) ON age // 10 = v.x GROUP BY w",
    "SELECT w, count(*) FROM patients, (VALUES ('N', 'a'), ('S', 'b')) v(x, w) WHERE v.x = upper(region) GROUP BY w",
    "SELECT w, count(*), sum(income) FROM patients LEFT JOIN (VALUES ('N', 'a'), ('S', 'b')) v(x, w) ON v.x = upper(region) GROUP BY w",
    "SELECT w, count(*) FROM visits JOIN (VALUES (DATE '2024-02-01', 'a'), (DATE '2024-03-02', 'b')) v(x, w) ON date_trunc('month', day) = v.x GROUP BY w",
    "SELECT w, count(*) FROM visits JOIN (VALUES (2024, 2025, 'a'), (2025, 2026, 'b')) v(low, high, w) ON year(day) >= low AND year(day) < high GROUP BY w",
    "SELECT w, count(*) FROM visits JOIN (VALUES (2024, 2024, 'a'), (2025, 2025, 'b')) v(low, high, w) ON year(day) BETWEEN low AND high GROUP BY w",
    "SELECT a.w, count(*) FROM patients p JOIN ages a ON a.age = p.age - 1 GROUP BY a.w",
    "SELECT count(*) FROM patients p JOIN visits v ON p.id = v.id AND year(v.day) - 1984 = p.age",
    "SELECT t.n, count(*) FROM patients p JOIN (SELECT age, count(*) AS n FROM patients GROUP BY age) t ON t.age = p.age + 1 GROUP BY t.n",
    "SELECT kind, count(*) FROM visits JOIN kinds ON kinds.diagnosis = CASE WHEN visits.diagnosis = 'flu' THEN 'cold' ELSE visits.diagnosis END GROUP BY kind",
    "SELECT s.start, count(e.id) FROM (VALUES (DATE '2024-02-01'), (DATE '2024-03-01')) s(start) LEFT JOIN visits e ON date_trunc('month', e.day) = s.start GROUP BY s.start",
    "SELECT count(*) FROM visits WHERE date_trunc('month', day) = (SELECT max(date_trunc('month', day)) FROM visits)",
    "SELECT count(*) FROM visits WHERE (SELECT max(year(day)) FROM visits) > year(day)",
    "SELECT region, count(*) FROM patients WHERE age // 10 IN (SELECT w FROM ages) GROUP BY region",
    "SELECT count(*) FROM patients WHERE (upper(region), age % 7) IN (SELECT 'N', w FROM ages WHERE w < 3)",
    "SELECT region, count(*) FROM patients WHERE upper(region) NOT IN (SELECT 'N' UNION ALL SELECT 'S') GROUP BY region",
    # Times beside days, and times that go back.
    "SELECT diagnosis, count(*) FROM visits WHERE day > (SELECT max(day) - INTERVAL 90 DAY FROM visits) GROUP BY diagnosis",
    "SELECT count(*) FROM visits WHERE day IN (SELECT max(day) - INTERVAL 1 DAY FROM visits GROUP BY diagnosis)",
    "SELECT diagnosis, count(*) FROM visits WHERE day >= date_trunc('day', DATE '2025-06-01') + INTERVAL '-29 days' AND day < DATE '2025-06-01' + INTERVAL '-1 week' GROUP BY diagnosis",
    # Lists of values.
    "SELECT region, count(*) FROM patients WHERE region IN (VALUES ('n'), ('s')) GROUP BY region",
    "SELECT count(*) FROM patients WHERE (region, age) NOT IN (VALUES ('n', 40), ('s', 41))",
    "SELECT count(DISTINCT (region, age)) FROM patients",
    "SELECT region, count(DISTINCT (age // 20, age % 3)) FILTER (WHERE age > 30) FROM patients GROUP BY ROLLUP (region)",
]  # fmt: skip


@pytest.mark.parametrize("query", EQUAL)
def test_with_nothing_to_hide_it_is_what_duckdb_says(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


REFUSED = [
    (f"SELECT count(*) FROM patients JOIN {BANDS} ON age BETWEEN low AND high", "SDC034", "overlap"),
    (f"SELECT count(*) FROM patients JOIN {APART.replace('66', '50')} ON age >= low AND age < high", "SDC034", "overlap"),
    (f"SELECT count(*) FROM patients JOIN ages USING (age) JOIN {BANDS.replace('65, 200', '50, 200')} ON w = 6 AND age >= low AND age < high", "SDC034", "overlap"),
    (f"SELECT count(*) FROM patients JOIN {BANDS} ON age >= low", "SDC034", "both borders"),
    ("SELECT count(*) FROM patients p LEFT JOIN (FROM (VALUES ('n', 40), ('n', 70)) x(region, y)) x ON x.region = p.region AND p.age > x.y", "SDC034", "several rows for a value of region"),
    ("SELECT count(*) FROM patients p LEFT JOIN kinds k ON p.age > 50", "SDC034", "k"),
    ("SELECT count(*) FROM patients p LEFT JOIN ages a ON a.age = p.age AND p.income > 3", "SDC041", "income"),
    ("SELECT count(*) FROM patients p LEFT JOIN ages a ON a.age = p.age AND p.id > 3", "SDC040", "id"),
    ("SELECT count(*) FROM visits v LEFT JOIN kinds k ON k.diagnosis = v.diagnosis AND p.age > 3 LEFT JOIN patients p ON p.id = v.id", "SDC034", "join p first"),
    ("SELECT count(*) FROM visits v LEFT JOIN visits w ON w.id = v.id AND p.age > 3 LEFT JOIN patients p ON p.id = v.id", "SDC034", "join p first"),
    ("SELECT count(*) FROM patients p LEFT JOIN ages a ON a.age = p.age AND p.income = 3", "SDC041", "income"),
    (f"SELECT count(*) FROM patients JOIN {BANDS} ON age >= low AND age > high", "SDC034", "both borders"),
    (f"SELECT label, count(*) FROM patients LEFT JOIN {BANDS} ON age >= low GROUP BY label", "SDC034", "two borders"),
    (f"SELECT count(*) FROM patients JOIN ages USING (age) JOIN {BANDS} ON age >= low AND w < high", "SDC034", "two borders"),
    (f"SELECT label, count(*) FROM patients JOIN {BANDS} ON income >= low AND income < high GROUP BY label", "SDC041", "income"),
    (f"SELECT label, count(*) FROM patients JOIN {BANDS} ON id >= low AND id < high GROUP BY label", "SDC040", "id"),
    ("SELECT label, count(*) FROM patients JOIN (SELECT low::DATE AS low, high::DATE AS high, label FROM (VALUES ('2024-01-01', '2024-02-01', 'x')) b(low, high, label)) b ON age >= low AND age < high GROUP BY label", "SDC034", "type"),
    ("SELECT count(*) FROM patients JOIN (SELECT age - 1 AS low, age + 1 AS high, count(*) AS n FROM patients GROUP BY age) t ON age >= low AND age < high", "SDC034", ""),
    ("SELECT count(*) FROM patients JOIN visits ON patients.age >= visits.diagnosis AND patients.age < visits.diagnosis", "SDC034", ""),
    ("WITH p AS (SELECT 30 AS low WHERE 1 > 2) SELECT count(*) FROM patients, p WHERE age > low", "SDC034", ""),
    ("WITH p AS (SELECT unnest([30, 40]) AS low) SELECT count(*) FROM patients, p WHERE age > low", "SDC034", ""),
    ("WITH p AS (SELECT 30 AS low UNION ALL SELECT 40) SELECT count(*) FROM patients, p WHERE age > low", "SDC034", ""),
    ("SELECT count(*) FROM patients, (VALUES (30), (40)) p(low) WHERE age > low", "SDC034", ""),
    ("SELECT w, count(*) FROM patients JOIN (VALUES (2.5, 'a')) v(x, w) ON age / 10 = v.x GROUP BY w", "SDC034", "types"),
    ("SELECT w, count(*) FROM patients JOIN (VALUES (2, 'a')) v(x, w) ON income // 1000 = v.x GROUP BY w", "SDC041", "income"),
    ("SELECT w, count(*) FROM patients JOIN (VALUES (2, 'a')) v(x, w) ON id % 3 = v.x GROUP BY w", "SDC040", "id"),
    ("SELECT count(*) FROM patients JOIN (VALUES (2, 'a'), (3, 'b')) v(x, w) ON age // 10 = v.x + 1", "SDC034", "v.x = .."),
    ("SELECT region, count(*) FROM patients JOIN (VALUES (2, 'a'), (3, 'b')) v(x, w) ON age - v.x = v.x GROUP BY region", "SDC034", "v.x = .."),
    ("SELECT count(*) FROM patients p JOIN visits v ON p.id = v.id + 1", "SDC034", "v.x = .."),
    ("SELECT count(*) FROM patients WHERE income // 10 IN (SELECT w FROM ages)", "SDC041", "income"),
    ("SELECT count(*) FROM patients WHERE id % 10 IN (SELECT w FROM ages)", "SDC040", "id"),
    ("SELECT count(*) FROM patients WHERE age // 10 IN (SELECT diagnosis FROM kinds)", "SDC046", "the same type"),
    ("SELECT count(DISTINCT (id, region)) FROM patients", "SDC051", ""),
    ("SELECT count(DISTINCT (region, income)) FROM patients", "SDC041", ""),
    ("SELECT max((region, age)) FROM patients", "SDC052", "several columns"),
    ("SELECT count(*) FROM patients WHERE income IN (VALUES (1), (2))", "SDC041", ""),
]  # fmt: skip


@pytest.mark.parametrize(("query", "code", "detail"), REFUSED)
def test_others_are_refused(refused_as: Callable[[str, str, str], None], query: str, code: str, detail: str) -> None:
    refused_as(query, code, detail)


def test_the_noise_is_that_of_the_same_people(noisy: Guard) -> None:
    """An interval is another way to say who is counted."""
    asked = f"SELECT count(*) AS n, sum(income) AS s FROM patients JOIN {BANDS} ON age >= low AND age < high WHERE label = 'old'"
    other = "SELECT count(*) AS n, sum(income) AS s FROM patients WHERE age >= 30 AND age < 65"
    given = "WITH p AS (SELECT 30 AS low, 65 AS high) SELECT count(*) AS n, sum(income) AS s FROM patients, p WHERE age >= low AND age < high"
    assert noisy.sql(asked).to_pylist() == noisy.sql(other).to_pylist() == noisy.sql(given).to_pylist()


def test_values_of_parameters_and_what_explain_says_of_them(noisy: Guard) -> None:
    asked = "WITH p AS (SELECT $1 AS low) SELECT count(*) AS n FROM patients, p WHERE age > low"
    assert noisy.sql(asked, [40]) == noisy.sql("SELECT count(*) AS n FROM patients WHERE age > 40")
    assert noisy.sql("EXPLAIN " + asked, [40]) == noisy.sql("EXPLAIN " + asked.replace("$1", "40"))


Interval = tuple[int | None, int | None, int]
_BORDER = st.none() | st.integers(0, 6)
_ALONE = duckdb.connect()  # for all examples: nothing is kept in it


@given(
    st.lists(st.tuples(_BORDER, _BORDER, st.integers(0, 1)), max_size=5), st.booleans(), st.booleans(), st.booleans()
)
def test_no_value_lies_in_two_intervals_that_are_found_to_be_apart(
    rows: list[Interval], of_each: bool, has_low: bool, has_high: bool
) -> None:
    """All values are tried, also those between whole numbers; what is told apart is apart, and the other way round."""
    listed = ", ".join(f"({low}, {high}, {part})" for low, high, part in rows).replace("None", "NULL")
    source = f"(FROM (VALUES {listed}) t(low, high, part))" if rows else "(SELECT 1 AS low, 2 AS high, 3 AS part)"
    asked = Unique(source, (("part", "part"),) if of_each else (), ("low", "high"), not (has_low and has_high))

    def holds(row: Interval, value: float) -> bool:
        low, high, _ = row
        if low is None or high is None:
            return False
        return (low <= value if has_low else low < value) and (value <= high if has_high else value < high)

    both = [pair for pair in combinations(rows, 2) if not of_each or pair[0][2] == pair[1][2]]
    values = [half / 4 for half in range(-1, 27)]
    shared = any(holds(one, value) and holds(other, value) for one, other in both for value in values)
    assert _ALONE.execute(asked.query()).fetchall() == [(not shared,)]


def test_a_day_that_is_no_time_is_beside_no_time() -> None:
    """DuckDB has days that are later than all times: that one of the records is such a day makes nothing fail."""
    with closing(sdcduck.connect(secret="6" * 64)) as con:
        con.execute("""CREATE TABLE people AS SELECT i AS id, i % 2 AS half,
            CASE WHEN i = 7 THEN '300000-01-01'::DATE ELSE DATE '2024-01-01' + i::INTEGER END AS day FROM range(200) t(i)""")
        con.execute(
            "CREATE TABLE moments AS SELECT TIMESTAMP '2024-02-01 12:00:00' AS moment, '300000-01-01'::DATE AS late"
        )
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['half', 'day'])").fetchall()
        con.execute("FROM sdc_declare_public('moments')").fetchall()
        guard = sdcduck.open_guard(con)
        for half in (0, 1):
            asked = f"SELECT count(*) AS n FROM people WHERE half = {half} AND day > (SELECT moment FROM moments)"
            assert guard.sql(asked).to_pylist()[0]["n"] == pytest.approx(84, abs=10)
        for condition in ("half = 0", "half = 2"):  # nor that a day of the question is one
            asked = (
                f"SELECT count(*) AS n FROM people WHERE {condition} AND day::TIMESTAMP <> (SELECT late FROM moments)"
            )
            assert guard.sql(asked).to_pylist() == [{"n": 0}]
            asked = f"SELECT count(*) AS n FROM people JOIN moments ON day::TIMESTAMP = late WHERE {condition}"
            assert guard.sql(asked).to_pylist() == [{"n": 0}]


@pytest.fixture(scope="module")
def wide() -> Iterator[Guard]:
    """People with figures that are too large for the type of a public table, and one such table for each."""
    with closing(sdcduck.connect(secret="5" * 64)) as con:
        con.execute("""
            CREATE TABLE people AS SELECT i AS id, i % 4 AS region,
                CASE WHEN i = 7 THEN 9 * 10::DECIMAL(38, 0) ** 36 ELSE i % 3 END::DECIMAL(38, 0) AS figure,
                CASE WHEN i = 7 THEN TIMESTAMP '2999-01-01' ELSE TIMESTAMP '2024-01-01' END AS moment,
                CASE WHEN i = 7 THEN -1 ELSE i % 3 END::HUGEINT AS whole
            FROM range(400) t(i)""")
        con.execute("CREATE TABLE figures AS SELECT 1::DECIMAL(38, 10) AS figure, 2::DECIMAL(38, 10) AS over")
        con.execute(
            "CREATE TABLE moments AS SELECT TIMESTAMP_NS '2024-01-01' AS moment, TIMESTAMP_NS '2025-01-01' AS over"
        )
        con.execute("CREATE TABLE wholes AS SELECT 1::UHUGEINT AS whole, 2::UHUGEINT AS over")
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'figure', 'moment', 'whole'])"
        ).fetchall()
        for name in ("figures", "moments", "wholes"):
            con.execute("FROM sdc_declare_public($1)", [name]).fetchall()
        yield sdcduck.open_guard(con)


WIDE = [
    ("figure", "SDC005"),  # more digits than are compared without rounding
    ("moment", "SDC034"),  # a type that is joined by nothing
    ("whole", None),
]


@pytest.mark.parametrize("of", ["region = 3", "region < 3", "region < 4"])
@pytest.mark.parametrize("on", ["p.{0} = f.{0}", "p.{0} >= f.{0} AND p.{0} < f.over"])
@pytest.mark.parametrize(("what", "code"), WIDE)
def test_no_record_makes_a_join_fail(wide: Guard, of: str, on: str, what: str, code: str | None) -> None:
    """DuckDB casts one type to the other, which fails for the record of one person: an answer, or a refusal for all."""
    asked = f"SELECT count(*) AS n FROM people p JOIN {what}s f ON {on.format(what)} WHERE {of}"
    if code is not None:
        with pytest.raises(Refused, match=code):
            wide.sql(asked)
    else:
        assert wide.sql(asked).to_pylist()[0]["n"] >= 25
