"""``sdc_estimates``: estimates and standard errors of a sample with strata, sampling units and weights."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

TINY = """CREATE TABLE tiny AS SELECT * FROM (VALUES
    ('a', 1, 1, 1, true, 2, 'x'), ('a', 1, 1, 3, false, 2, 'x'), ('a', 2, 2, 2, true, 1, 'y'),
    ('b', 1, 1, 4, true, 1, 'x'), ('b', 2, 1, 0, false, 2, 'y')) t(h, i, w, y, b, x, d)"""
DESIGN = "weight := 'w', strata := 'h', psu := 'i'"


def test_numbers_worked_out_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    """Six people; the sampling units of stratum a have the same mean, so that only those of b count.

    Mean 12 / 6 = 2. Errors w (y - 2) / 6 of the units: a: (-1 + 1) / 6 = 0, 0; b: 2 / 6, -2 / 6. Variance 2 / 1 times
    (1 / 9 + 1 / 9) = 4 / 9. Total: units of a: 4, 4; of b: 4, 0, with variance 2 (4 + 4) = 16. Proportion 4 / 6, errors of a:
    (1 / 3 - 2 / 3) / 6 = -1 / 18, 2 / 18, of b: 1 / 18, -2 / 18: each stratum 2 (1.5 / 18)^2 2 = 1 / 36. Ratio 12 / 9 over x, errors
    (w y - 4 / 3 w x) / 9: a: -4 / 27, 4 / 27, b: 8 / 27, -8 / 27.
    """
    con.execute(TINY)
    rows = con.execute(f"SELECT * EXCLUDE (suppressed) FROM sdc_estimates('tiny', ['Y', 'b'], {DESIGN})").fetchall()
    assert [row[0] for row in rows] == ["y", "b"]
    assert rows[0][1:6] == pytest.approx((5, 6, 2, 2 / 3, 2))
    assert rows[1][1:6] == pytest.approx((5, 6, 2 / 3, math.sqrt(1 / 18), 2))
    assert [row[6] for row in rows] == [None, None]

    def one(text: str) -> tuple[float, float]:
        row = con.execute(f"SELECT est, se FROM sdc_estimates('tiny', ['y'], {text})").fetchone()
        assert row is not None
        return row

    assert one(f"{DESIGN}, statistic := 'total'") == pytest.approx((12, 4))
    ratio = 2 * 2 * ((4 / 27) ** 2 + (8 / 27) ** 2)
    assert one(f"{DESIGN}, statistic := 'ratio', denominator := 'x'") == pytest.approx((12 / 9, math.sqrt(ratio)))
    # A simple random sample: s / sqrt(n) with s^2 = 10 / 4.
    assert one("weight := NULL") == pytest.approx((2, math.sqrt(2.5 / 5)))


def test_a_domain_counts_the_units_that_it_is_not_in(con: duckdb.DuckDBPyConnection) -> None:
    """Domain x: mean 8 / 3 of weight 3; errors of a: (1 + 3 - 16 / 3) / 3 = -4 / 9 and 0, of b: 4 / 9 and 0."""
    con.execute(TINY)
    rows = con.execute(
        f"SELECT d, n, population, est, se, df FROM sdc_estimates('tiny', ['y'], domains := ['D'], {DESIGN})"
    ).fetchall()
    assert rows[0] == ("x", 3, 3, pytest.approx(8 / 3), pytest.approx(math.sqrt(2 * (4 / 9) ** 2)), 0)
    total = con.execute(
        f"SELECT est, se FROM sdc_estimates('tiny', ['y'], domains := ['d'], {DESIGN}, statistic := 'total')"
    ).fetchall()
    # Of x: units of a 4 and 0, variance 2 (2^2 + 2^2); of b the same. Of y: of a 0 and 4; of b 0 and 0.
    assert total == [pytest.approx((8, math.sqrt(32))), pytest.approx((4, 4))]


def brute(
    h: np.ndarray,
    i: np.ndarray,
    w: np.ndarray,
    y: np.ndarray,
    x: np.ndarray,
    here: np.ndarray,
    total: bool,
    centre: bool,
) -> tuple[float, float | None]:
    """The definition of spec 23, 2B, a loop over strata and units."""
    est = float((w * y * here).sum() / (1 if total else (w * x * here).sum()))
    u = w * y * here if total else w * (y - est * x) * here / (w * x * here).sum()
    units = {name: [u[(h == name) & (i == unit)].sum() for unit in np.unique(i[h == name])] for name in np.unique(h)}
    middle = sum(sum(one) for one in units.values()) / sum(len(one) for one in units.values())
    variance = 0.0
    for one in units.values():
        if len(one) > 1:
            variance += len(one) / (len(one) - 1) * float(((np.array(one) - np.mean(one)) ** 2).sum())
        elif centre:
            variance += (one[0] - middle) ** 2
    several = sum(len(one) for one in units.values()) > 1 if centre else any(len(one) > 1 for one in units.values())
    return est, math.sqrt(variance) if several else None


@given(seed=st.integers(0, 2**32), size=st.integers(2, 60), total=st.booleans(), centre=st.booleans())
def test_what_the_definition_says(
    lasting: duckdb.DuckDBPyConnection, seed: int, size: int, total: bool, centre: bool
) -> None:
    chance = np.random.default_rng(seed)
    h, i, d = chance.integers(0, 4, size), chance.integers(0, 4, size), chance.integers(0, 3, size)
    w, y, x = chance.lognormal(size=size), chance.normal(5, 2, size), chance.uniform(1, 2, size)
    lasting.register("made", pa.table({"h": h, "i": i, "d": d, "w": w, "y": y, "x": x}))
    lasting.execute("CREATE OR REPLACE TABLE sample AS FROM made")
    for name, under in (("total", None),) if total else (("mean", None), ("ratio", "x")):
        found = lasting.execute(
            f"SELECT d, est, se FROM sdc_estimates('sample', ['y'], domains := ['d'], {DESIGN}, statistic := '{name}', "
            f"single := '{'centre' if centre else 'zero'}'{f', denominator := {chr(39)}x{chr(39)}' if under else ''})"
        ).fetchall()
        assert [row[0] for row in found] == sorted(set(d.tolist()))
        for domain, est, se in found:
            wanted = brute(h, i, w, y, x if under else np.ones(size), d == domain, total, centre)
            assert est == pytest.approx(wanted[0], rel=1e-9)
            assert (se is None) == (wanted[1] is None)
            assert se is None or se == pytest.approx(wanted[1], rel=1e-6, abs=1e-9)


def test_a_single_unit_warns(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(TINY)
    one = "(FROM tiny WHERE NOT (h = ''a'' AND i = 2))"
    said = f"SELECT se, warning FROM sdc_estimates('{one}', ['y'], {DESIGN})"
    assert con.execute(said).fetchall()[0][1] == "a stratum has a single primary sampling unit"
    alone = con.execute(
        "SELECT est, se, df, warning FROM sdc_estimates('tiny', ['y'], strata := 'h', psu := 'h')"
    ).fetchone()
    assert alone == (2.0, None, 0, "2 strata have a single primary sampling unit each")


def test_proportions_that_are_not_published(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i % 2 AS g, i % 1000 = 1 AS rare, i % 3 = 0 AS common FROM range(400) r(i)")
    rows = con.execute(
        "SELECT measure, g, suppressed FROM sdc_estimates('p', ['rare', 'common'], domains := ['g'])"
    ).fetchall()
    assert rows == [("rare", 0, True), ("rare", 1, True), ("common", 0, False), ("common", 1, False)]
    assert con.execute("SELECT suppressed FROM sdc_estimates('p', ['rare'], statistic := 'total')").fetchall() == [
        (None,)
    ]


def test_missing_values(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, CASE WHEN i % 5 > 0 THEN i END AS y, i % 2 AS d FROM range(20) r(i)")
    with pytest.raises(duckdb.Error, match="4 of 20 records have NULL in a measure"):
        con.execute("FROM sdc_estimates('p', ['y'])").fetchall()
    left = con.execute("SELECT n, est FROM sdc_estimates('p', ['y'], nulls := 'leave_out')").fetchone()
    assert left == con.execute("SELECT count(y), avg(y) FROM p").fetchone()
    none = con.execute("FROM sdc_estimates('(SELECT NULL::DOUBLE AS y)', ['y'], nulls := 'leave_out')").fetchone()
    assert none == ("y", 0, 0, None, None, None, None, None)


def test_types_and_names(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        '''CREATE TABLE p AS SELECT (i / 4)::DECIMAL(9, 2) AS "the ""sum""", DATE '2020-01-01' + i::INTEGER % 2 AS "Day",
        ('l' || i % 2)::ENUM('l1', 'l0') AS label FROM range(8) r(i)'''
    )
    rows = con.execute("""SELECT * FROM sdc_estimates('p', ['THE "SUM"'], domains := ['day', 'Label'])""").fetchall()
    assert [column[0] for column in con.description or ()][:3] == ["Day", "label", "measure"]
    assert [row[1] for row in rows] == ["l0", "l1"]
    assert rows[0][5] == pytest.approx(0.75)


def test_an_empty_table_has_no_estimates(con: duckdb.DuckDBPyConnection) -> None:
    assert con.execute("FROM sdc_estimates('(SELECT 1 AS y LIMIT 0)', ['y'])").fetchall() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'p'", "argument 'measures' must name columns of numbers or truth values"),
        ("'p', ['name']", "argument 'measures' must name a column of numbers: 'name' of 'p' is VARCHAR"),
        ("'p', ['z']", "unknown column 'z' in 'p'"),
        ("'p', ['y'], domains := ['est']", "a column called 'est' is also one of the result"),
        ("'p', ['y'], statistic := 'median'", "argument 'statistic' must be 'mean', 'total' or 'ratio'"),
        ("'p', ['y'], statistic := 'ratio'", "argument 'denominator' must name"),
        ("'p', ['y'], denominator := 'y'", "it is for statistic := 'ratio'"),
        ("'p', ['y'], weight := 'bad'", "1 of 4 records have a weight that is NULL, negative or no finite number"),
        ("'p', ['y'], strata := 'gap'", "1 of 4 records have NULL as stratum or primary sampling unit"),
        ("'p', ['nan']", "1 of 4 records have NaN or an infinite number in a measure"),
        ("'p', ['y'], single := 'drop'", "argument 'single' must be 'zero' or 'centre'"),
        ("'p', ['y'], nulls := 'keep'", "argument 'nulls' must be 'refuse' or 'leave_out'"),
    ],
)
def test_bad_input(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute(
        """CREATE OR REPLACE TABLE p AS SELECT i AS y, 'n' || i AS name, i - 1 AS bad, i AS est, CASE WHEN i > 0 THEN i END AS gap,
        CASE WHEN i > 0 THEN i ELSE 'nan'::DOUBLE END AS nan FROM range(4) r(i)"""
    )
    with pytest.raises(duckdb.Error) as problem:
        lasting.execute(f"FROM sdc_estimates({call})").fetchall()
    assert message in str(problem.value)
