"""What a number is worth: what is said of its noise is so, at every door, and no record decides what is said."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sdcduck
from sdcduck.functions.reference import EXAMPLE_SECRET
from sdcduck.guard import Guard, Refused
from sdcduck.guard.worth import SD, STATISTIC

_CELLS = 100_000
_PEOPLE = """
CREATE TABLE people AS SELECT i AS id, ['N', 'S'][1 + i % 2] AS region, i % 7 AS age, 1000 + {0} * i AS income, i AS bonus
FROM range({1}) t(i)
"""
_POLICY = (
    "unit := 'id', dimensions := ['region', 'age'], measures := ['income', 'bonus'], bounds := {'income': [1, 20000]}"
)


def _protected(steps: int = 3, people: int = 400) -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(secret=EXAMPLE_SECRET)
    con.execute(_PEOPLE.format(steps, people))
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    con.execute("CREATE TABLE visits AS SELECT people.*, ward FROM people, range(1 + id % 3) t(ward)")
    con.execute("CREATE TABLE regions AS FROM (VALUES ('N', 'cold'), ('S', 'warm')) t(region, climate)")
    con.execute(f"FROM sdc_protect('people', {_POLICY})").fetchall()
    con.execute("FROM sdc_protect('visits', unit := 'id', dimensions := ['ward'], measures := ['income'])").fetchall()
    con.execute("FROM sdc_declare_public('regions')").fetchall()
    for role, method in (("exact", "threshold"), ("fives", "rounding")):
        more = f"method := '{method}', min_units := 5, base := 5, role := '{role}'"
        con.execute(f"FROM sdc_protect('people', {_POLICY.split(', bounds')[0]}, {more})").fetchall()
    return con


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with _protected() as made:
        yield made


@pytest.fixture(scope="module")
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.open_guard(con)


def _law(con: duckdb.DuckDBPyConnection, table: str, statistic: str) -> list[tuple[int, float, float]]:
    found = con.execute(
        "SELECT coalesce(size_from, 1), sd, max FROM sdc_noise(?) WHERE statistic = ? ORDER BY 1", [table, statistic]
    )
    return found.fetchall()


# --- The law, against what comes out ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cells() -> Iterator[duckdb.DuckDBPyConnection]:
    """Cells of six to ten people who have 1000 each, and of six people with three rows: none is published as empty."""
    with sdcduck.connect(secret=EXAMPLE_SECRET) as made:
        made.execute(f"""
            CREATE TABLE people AS SELECT c * 10 + k AS id, c AS cell, k AS place, 1000 AS income
            FROM range({_CELLS}) t(c), range(10) s(k) WHERE k < 6 + c % 5""")
        made.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        made.execute(f"""
            CREATE TABLE visits AS SELECT people.* FROM people, range(3) t(n)
            WHERE id % 10 < 6 AND cell < {_CELLS // 2}""")
        shared = "unit := 'id', dimensions := ['cell', 'place'], measures := ['income']"
        made.execute(f"FROM sdc_protect('people', {shared})").fetchall()
        made.execute(f"FROM sdc_protect('visits', {shared})").fetchall()
        made.execute("""
            FROM sdc_protect('people', unit := 'id', dimensions := ['cell'], method := 'rounding', base := 5, role := 'fives')
        """).fetchall()
        yield made


def _errors(con: duckdb.DuckDBPyConnection, table: str, number: str, role: str = "") -> np.ndarray:
    asked = f"SELECT cell, {number} AS x FROM {table} GROUP BY cell ORDER BY cell"
    published = sdcduck.open_guard(con, role=role).sql(asked)
    original = con.sql(asked).to_arrow_table()
    assert published["cell"].equals(original["cell"].cast(published["cell"].type))
    return published["x"].to_numpy().astype(float) - original["x"].to_numpy().astype(float)


def test_counts_have_the_noise_that_is_said(cells: duckdb.DuckDBPyConnection) -> None:
    errors = _errors(cells, "people", "count(*)")
    (_, _, _), (least, sd, most) = _law(cells, "people", "count")
    assert least == 2
    assert np.std(errors) == pytest.approx(sd, rel=0.01)
    assert np.abs(errors).max() == most == 5


def test_small_counts_have_the_noise_of_their_size() -> None:
    with _protected(people=20) as con:
        (one, sd_of_one, most), (two, sd, _) = _law(con, "people", "count")
        assert (one, two) == (1, 2)
        for n, said in ((1, sd_of_one), (2, sd), (3, sd), (500, sd)):
            found = con.execute(f"""
                SELECT stddev_pop(e), max(abs(e)) FROM (
                    SELECT sdc_ckm_count({n}, i * 7919 * 6151 % 100000000) - {n} AS e FROM range({_CELLS}) t(i))""")
            ((spread, largest),) = found.fetchall()
            assert spread == pytest.approx(said, rel=0.01)
            assert largest <= most


def test_sums_have_the_noise_that_is_said(cells: duckdb.DuckDBPyConnection) -> None:
    """In thousands: everybody has 1000. All cells share one grid, for their largest contribution is one."""
    errors = _errors(cells, "people", "sum(income)") / 1000
    ((_, sd, most),) = _law(cells, "people", "sum")
    ((least, coarsest),) = cells.execute(
        "SELECT step_least, step_most FROM sdc_noise('people') WHERE statistic = 'sum'"
    ).fetchall()
    step = np.diff(np.unique(np.round(errors, 6))).min()
    assert least <= step <= coarsest
    assert np.std(errors) == pytest.approx(math.sqrt(sd**2 + step**2 / 12), rel=0.01)
    assert np.abs(errors).max() <= most


def test_counts_of_rows_have_the_noise_that_is_said(cells: duckdb.DuckDBPyConnection) -> None:
    """In threes: everybody has three rows. What rounding to whole rows adds is a variance of 1/12."""
    errors = _errors(cells, "visits", "count(*)") / 3
    ((_, sd, most),) = _law(cells, "visits", "count")
    assert np.std(errors) == pytest.approx(math.sqrt(sd**2 + 1 / 12 / 9), rel=0.01)
    assert np.abs(errors).max() <= most + 0.5 / 3


def test_rounded_counts_have_the_noise_that_is_said(cells: duckdb.DuckDBPyConnection) -> None:
    errors = _errors(cells, "people", "count(*)", role="fives")
    ((sd, most),) = cells.execute(
        "SELECT sd, max FROM sdc_noise('people', role := 'fives') WHERE statistic = 'count'"
    ).fetchall()
    assert np.std(errors) == pytest.approx(sd, rel=0.01)
    assert np.abs(errors).max() == most == 4


def test_a_multiple_has_the_noise_that_is_said(cells: duckdb.DuckDBPyConnection) -> None:
    (_, told) = sdcduck.open_guard(cells).noise("SELECT cell, count(*) * 3 AS x FROM people GROUP BY cell").to_pylist()
    assert np.std(_errors(cells, "people", "count(*) * 3")) == pytest.approx(told["sd"], rel=0.01)


def test_a_difference_of_other_records_has_the_noise_that_is_said(cells: duckdb.DuckDBPyConnection) -> None:
    number = "count(*) FILTER (place < 2) - count(*) FILTER (place >= 2)"
    (_, told) = sdcduck.open_guard(cells).noise(f"SELECT cell, {number} AS x FROM people GROUP BY cell").to_pylist()
    assert np.std(_errors(cells, "people", number)) == pytest.approx(told["sd"], rel=0.01)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_a_quantile_is_as_many_places_off_as_is_said(share: float) -> None:
    """It is the true value of a place in the order, rounded: no further off than both counts of it can be."""
    with sdcduck.connect() as con:
        con.execute(
            "CREATE TABLE t AS SELECT i % 400 AS g, 1000 + 70 * (i // 400) AS y, i * 7919 * 6151 % 100000000 AS k "
            "FROM range(400 * 200) t(i)"
        )
        rows = con.execute(f"SELECT sdc_quantile(y, k, {share}) FROM t GROUP BY g").fetchall()
        places = math.ceil((1 + share) * 5)
        at = share * 200
        low, high = (1000 + 70 * min(max(place, 0), 199) for place in (at - places - 1, at + places))
        for (value,) in rows:
            assert value == float(f"{value:.1e}")
            assert float(f"{low:.1e}") <= value <= float(f"{high:.1e}")
        assert len({value for (value,) in rows}) > 1


# --- What is said of columns -----------------------------------------------------------------------------------------------

_SUM = "largest contribution"


@pytest.mark.parametrize(
    ("number", "statistic", "sd", "most", "per"),
    [
        ("count(*)", "count of people", 1.4142, 5, "1"),
        ("count(*) FILTER (age > 3)", "count of people", 1.4142, 5, "1"),
        ("count(DISTINCT id)", "count of units of people", 1.4142, 5, "1"),
        ("2 * count(*)", "2 times the count of people", 2.8284, 10, "1"),
        ("-count(*) / 2.0 + 7", "-0.5 times the count of people", 0.7071, 2.5, "1"),
        ("count(*) + count(*)", "2 times the count of people", 2.8284, 10, "1"),
        ("sum(1)", "count of people", 1.4142, 5, "1"),
        ("sum(income)", "sum of income", 0.1, 0.5625, _SUM),
        ("sum(income * 12)", "12 times the sum of income", 1.2, 6.75, _SUM),
        ("sum(CASE WHEN age > 3 THEN income ELSE 0 END)", "sum of income", 0.1, 0.5625, _SUM),
        ("coalesce(sum(income), 0)", "sum of income", 0.1, 0.5625, _SUM),
        ("avg(income)", "mean of income", 0.1, 0.625, f"{_SUM} / published count"),
        ("var_samp(income)", "variance of income", 0.1, 0.625, "largest squared deviation / (published count - 1)"),
        ("stddev(income)", "standard deviation of income", None, None, None),
        ("median(income)", "0.5 quantile of income", None, None, None),
        ("count(*) FILTER (age > 3) - count(*) FILTER (age < 3)", "from count of people", 2.0, 10, "1"),
        ("sum(income - bonus)", "from sum of income, sum of bonus", None, None, None),
        ("sum(income) / count(*)", "from sum of income, count of people", None, None, None),
        ("count(*) / 0", "from count of people", None, None, None),
        ("round(count(*), -1)", "from count of people", None, None, None),
        ("sum(ln(income))", "sum of ln income", 0.1 * math.log(20000), 0.5625 * math.log(20000), "1"),
        ("sum(ln(income)) + count(*)", "from sum of ln income, count of people", 1.7265, 10.5707, "1"),
        ("count(DISTINCT age)", "from count over published numbers of people", None, None, None),
        ("sum(age)", "from sum over published numbers of people", None, None, None),
        ("max(region)", "from max over published numbers of people", None, None, None),
    ],
)  # fmt: skip
def test_a_number(
    guarded: Guard, number: str, statistic: str, sd: float | None, most: float | None, per: str | None
) -> None:
    (told,) = guarded.noise(f"SELECT {number} AS x FROM people").to_pylist()
    assert (told["column"], told["statistic"], told["method"]) == ("x", statistic, "cell_key")
    assert told["sd"] == (None if sd is None else pytest.approx(sd, abs=1e-4))
    assert told["max"] == (None if most is None else pytest.approx(most, abs=1e-4))
    assert told["per"] == per
    assert told["noise"]


@pytest.mark.parametrize(
    ("asked", "statistics"),
    [
        ("SELECT region, 1 AS one, count(*) AS n FROM people GROUP BY region", ["group", "public", "count of people"]),
        ("SELECT climate, n FROM regions JOIN (SELECT region, count(*) AS n FROM people GROUP BY 1) USING (region)",
         ["public", "count of people"]),
        ("SELECT sum(n) AS n FROM (SELECT count(*) AS n FROM people GROUP BY age)", ["from count of people"]),
        ("SELECT count(*) AS n FROM people UNION ALL SELECT count(*) FROM people WHERE age > 2", ["count of people"]),
        ("SELECT count(*) AS n FROM people UNION ALL SELECT sum(income) FROM people",
         ["from count of people, sum of income"]),
        ("SELECT a.n - b.n AS d FROM (SELECT count(*) AS n FROM people) a, (SELECT count(*) AS n FROM people) b",
         ["from count of people"]),
        ("WITH q AS (SELECT age, count(*) AS n FROM people GROUP BY 1) SELECT a.n - b.n AS d FROM q a JOIN q b ON a.age = b.age + 1",
         ["from count of people"]),
        ("SELECT grouping(region) AS g, count(*) AS n FROM people GROUP BY ROLLUP (region)",
         ["about the group", "count of people"]),
        ("SELECT count(*) AS n, count(DISTINCT id) AS u FROM visits", ["count of visits", "count of units of visits"]),
    ],
)  # fmt: skip
def test_columns_of_a_query(guarded: Guard, asked: str, statistics: list[str]) -> None:
    assert guarded.noise(asked)["statistic"].to_pylist() == statistics


def test_two_rows_of_one_relation_are_not_taken_for_one_number(guarded: Guard) -> None:
    """Their difference has noise, though both are the same column: what that is cannot be said, and is not."""
    asked = "WITH q AS (SELECT age, count(*) AS n FROM people GROUP BY 1) SELECT a.n - b.n AS d FROM q a JOIN q b ON a.age = b.age + 1"
    (told,) = guarded.noise(asked).to_pylist()
    assert told["sd"] is None
    assert told["noise"].startswith("count of people: standard deviation 1.41")


def test_rows_of_several_units_have_noise_in_rows_of_the_largest(guarded: Guard) -> None:
    rows, units = guarded.noise("SELECT count(*) AS n, count(DISTINCT id) AS u FROM visits").to_pylist()
    assert rows["per"] == "rows of the unit that has most"
    assert rows["sd"] > units["sd"] == pytest.approx(1.4142, abs=1e-4)
    assert "times the rows of the unit that has most" in rows["noise"]


def test_bounds_make_a_number_of_it(guarded: Guard) -> None:
    (told,) = guarded.noise("SELECT sum(income) AS x FROM people").to_pylist()
    assert told["noise"].endswith("standard deviation 2000 at most where values keep to their declared bounds")


@pytest.mark.parametrize(
    ("role", "sd", "most", "words"),
    [
        ("exact", 0, 0, "exact, hidden below 5 units"),
        ("fives", 2, 4, "standard deviation 2, at most 4, in steps of 5; rounded to a multiple of 5, hidden below 5 published units"),
    ],
)  # fmt: skip
def test_other_methods(con: duckdb.DuckDBPyConnection, role: str, sd: float, most: float, words: str) -> None:
    (told,) = sdcduck.open_guard(con, role=role).noise("SELECT count(*) AS n FROM people").to_pylist()
    assert (told["sd"], told["max"], told["noise"]) == (sd, most, words)


def test_suppressed_numbers_are_exact_or_null() -> None:
    with sdcduck.connect(secret=EXAMPLE_SECRET) as con:
        con.execute(_PEOPLE.format(3, 200))
        cells = "SELECT region, age, count(*) AS n, sum(income) AS income FROM people GROUP BY CUBE (region, age)"
        con.execute(f"FROM sdc_publish('cells', $${cells}$$, max_count := 3)").fetchall()
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age'], measures := ['income'], "
            "method := 'suppression', publication := 'cells')"
        ).fetchall()
        told = sdcduck.open_guard(con).noise("SELECT count(*) AS n, sum(income) + 1 AS s FROM people").to_pylist()
        assert [(one["sd"], one["max"], one["noise"]) for one in told] == [(0, 0, "exact or NULL")] * 2


# --- The truth decides nothing ----------------------------------------------------------------------------------------------

_ASKED = (
    "SELECT region, count(*) AS n, sum(income) AS s, avg(income) AS m, median(income) AS q FROM people GROUP BY region",
    "SELECT count(*) AS n, count(DISTINCT id) AS u, sum(income) AS s FROM visits",
    "EXPLAIN SELECT count(*) AS n FROM people WHERE age > 90",
    "SELECT * FROM sdc_noise('people')",
    "SELECT * FROM sdc_noise('visits')",
)


def test_other_records_make_no_difference(guarded: Guard) -> None:
    with _protected(steps=11, people=37) as con:
        other = sdcduck.open_guard(con)
        for asked in _ASKED[:2]:
            assert guarded.noise(asked).equals(other.noise(asked))
        for asked in _ASKED[2:]:
            assert guarded.sql(asked).equals(other.sql(asked))


def test_nothing_of_it_is_a_key_or_a_secret(con: duckdb.DuckDBPyConnection, guarded: Guard) -> None:
    ((secret,),) = con.execute("SELECT value FROM sdc.settings WHERE name = 'noise_secret'").fetchall()
    told = "".join(str(guarded.sql(asked).to_pylist()) for asked in _ASKED)
    assert secret
    assert secret not in told
    assert EXAMPLE_SECRET not in told


# --- Doors ---------------------------------------------------------------------------------------------------------------------


def test_an_explanation_has_it(guarded: Guard) -> None:
    asked = "SELECT region, count(*) AS n FROM people GROUP BY region"
    found = guarded.explain(asked)
    assert [one.column for one in found.worth] == ["region", "n"]
    assert guarded.explain(f"EXPLAIN {asked}").worth == found.worth
    assert guarded.sql(f"explain\n{asked}").equals(guarded.noise(asked))
    assert guarded.stream(f"EXPLAIN {asked}").read_all().to_pylist() == guarded.noise(asked).to_pylist()
    assert guarded.columns(f"EXPLAIN {asked}")[3] == ("sd", "DOUBLE")


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("EXPLAIN SELECT * FROM people", "SDC040"), ("EXPLAIN ANALYZE SELECT count(*) FROM people", "SDC004"),
        ("EXPLAIN (FORMAT JSON) SELECT count(*) FROM people", "SDC004"), ("EXPLAIN DROP TABLE people", "SDC004"),
        ("EXPLAIN SELECT count(*) FROM nobody", "SDC020"), ("EXPLAIN", "SDC004"), ("EXPLAIN PRAGMA database_list", "SDC004"),
    ],
)  # fmt: skip
def test_what_is_refused_is_refused_with_its_own_code(guarded: Guard, asked: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        guarded.sql(asked)
    assert refused.value.code in (code, "SDC001")


def test_the_fields_of_an_answer_have_it(guarded: Guard) -> None:
    asked = "SELECT region, count(*) AS n, sum(income) AS s FROM people GROUP BY region"
    answer, stream = guarded.sql(asked), guarded.stream(asked)
    for schema in (answer.schema, stream.schema, stream.read_all().schema):
        region, number, total = (field.metadata for field in schema)
        assert region == {STATISTIC.encode(): b"group"}
        assert (number[STATISTIC.encode()], number[SD.encode()]) == (b"count of people", b"1.4142")
        assert total[b"sdcduck.noise_per"] == b"largest contribution"
    assert isinstance(answer, pa.Table)
    assert answer.num_rows == 2


def test_analysts_ask_for_the_laws_of_what_they_see(con: duckdb.DuckDBPyConnection, guarded: Guard) -> None:
    whole = guarded.sql("FROM sdc_noise('people')")
    assert whole.to_pylist() == con.sql("FROM sdc_noise('people')").to_arrow_table().to_pylist()
    some = guarded.sql("SELECT t.statistic FROM sdc_noise('PEOPLE') AS t WHERE t.sd > 1.2 AND 'sdc_noise(''x'')' <> ''")
    assert some["statistic"].to_pylist() == ["count", "units"]
    fives = sdcduck.open_guard(con, role="fives")
    assert set(fives.sql("SELECT method FROM sdc_noise('people')")["method"].to_pylist()) == {"rounding"}
    assert guarded.sql("FROM sdc_noise('regions')").num_rows == 0
    for asked, code in (
        ("FROM sdc_noise('sdc.settings')", "SDC020"), ("FROM sdc_noise('people', role := 'fives')", "SDC021"),
        ("FROM sdc_noise(region)", "SDC021"), ("SELECT sdc_noise('people')", "SDC040"),
        ("SELECT " + ", ".join(["(SELECT sd FROM sdc_noise('people'))"] * 30), "SDC002"),
    ):  # fmt: skip
        with pytest.raises(Refused) as refused:
            guarded.sql(asked)
        assert refused.value.code in (code, "SDC090", "SDC006"), asked


def test_another_p_table_has_another_law(con: duckdb.DuckDBPyConnection) -> None:
    with _protected(people=60) as own:
        own.execute("FROM sdc_store_ptable('mine', '(FROM sdc_ptable(D := 3, V := 1))')").fetchall()
        own.execute(f"FROM sdc_protect('people', {_POLICY}, ptable := 'mine')").fetchall()
        guarded = sdcduck.open_guard(own)
        asked = "SELECT count(*) AS n FROM people"
        before = guarded.noise(asked).to_pylist()[0]
        assert (before["max"], before["sd"]) == (3, pytest.approx(1, abs=0.01))
        own.execute("FROM sdc_store_ptable('mine', '(FROM sdc_ptable(D := 8, V := 4))')").fetchall()
        after = guarded.noise(asked).to_pylist()[0]
        assert (after["max"], after["sd"]) == (8, pytest.approx(2, abs=0.02))


def test_a_table_that_rounds_at_random_is_one_class_of_counts(con: duckdb.DuckDBPyConnection) -> None:
    """Its last rows serve all larger counts in turn."""
    with _protected(people=60) as own:
        own.execute("FROM sdc_store_ptable('fives', '(FROM sdc_rounding_ptable(5))')").fetchall()
        own.execute(f"FROM sdc_protect('people', {_POLICY}, ptable := 'fives')").fetchall()
        told = own.execute(
            "SELECT size_from, size_to, sd, max FROM sdc_noise('people') WHERE statistic = 'count'"
        ).fetchall()
        assert told[-1][1] is None
        assert told[-1][2] == pytest.approx(2, abs=1e-4)
        assert max(row[3] for row in told) == 4


@pytest.mark.parametrize(
    "number",
    [
        "sum(income * 1e-9)",
        "sum(income * 1e0)",
        "sum(income) * 1e308 * 10",
        "sum(income) / 1e-320",
        "sum(income * 1e308) * 10 - sum(income * 1e308) * 10",
        "count(*) * 1e308",
        f"sum(income * {'9' * 400})",
        "sum(income) * 1e307 + count(*) * 1e307",
    ],
)
@pytest.mark.parametrize("role", ["", "exact"])
def test_factors_that_noise_cannot_be_multiplied_by_say_nothing_of_it(
    con: duckdb.DuckDBPyConnection, number: str, role: str
) -> None:
    """Each was an error of Python, of which there was no line in the audit log either."""
    guard = sdcduck.open_guard(con, role=role)
    query = f"SELECT {number} AS x FROM people"
    (worth,) = guard.noise(query).to_pylist()
    assert worth["sd"] in (None, 0.0)
    assert worth["max"] in (None, 0.0)
    with suppress(Refused):  # DuckDB has no numbers of 400 digits
        assert guard.sql(query).num_rows == 1
