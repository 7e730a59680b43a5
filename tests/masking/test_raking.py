"""``sdc_rake``: weights that fit published totals, and margins that no weights fit."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdcduck.methods.masking.raking import rake

PEOPLE = """CREATE TABLE p AS SELECT i AS id, 's' || i % 2 AS "Sex", i * i % 5 AS region, 1 + i % 3 AS w FROM range(100) r(i);
CREATE TABLE sexes AS SELECT * FROM (VALUES ('s0', 900), ('s1', 1100)) t(sex, total);
CREATE TABLE regions AS SELECT * FROM (VALUES (0, 400), (1, 1000), (4, 600)) t(region, total)"""


def test_one_step_by_hand() -> None:
    """Two by two, targets 3 and 1, and 2 and 2: one cycle is the product of the margins."""
    made = rake(np.ones(4), [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])], [np.array([3.0, 1]), np.array([2.0, 2])])
    assert made.factors.tolist() == [1.5, 1.5, 0.5, 0.5]
    assert (made.cycles, made.converged, made.before.tolist(), made.gaps.tolist()) == (1, True, [1.0, 0.0], [0.0, 0.0])


@given(seed=st.integers(0, 2**32))
def test_factors_are_products_of_one_number_for_each_category(seed: int) -> None:
    """What makes it raking: odds ratios of the sample stay."""
    chance = np.random.default_rng(seed)
    weights = chance.lognormal(size=12)
    codes = [np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)]
    table = chance.uniform(1, 5, (3, 4))
    made = rake(weights, codes, [table.sum(axis=1), table.sum(axis=0)], tolerance=1e-12, most_cycles=1000)
    assert made.converged
    logs = np.log(made.factors).reshape(3, 4)
    assert logs - logs[:, :1] == pytest.approx(np.tile(logs[0] - logs[0, 0], (3, 1)), abs=1e-9)
    raked = (weights * made.factors).reshape(3, 4)
    assert raked.sum(axis=1) == pytest.approx(table.sum(axis=1), rel=1e-11)


def test_margins_are_met(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(PEOPLE)
    con.execute("CREATE TABLE raked AS FROM sdc_rake('p', weight := 'w', margins := ['sexes', 'regions'])")
    assert [row[:2] for row in con.execute("DESCRIBE raked").fetchall()][-1] == ("raked_weight", "DOUBLE")
    assert (
        con.execute("SELECT * EXCLUDE raked_weight FROM raked ORDER BY id").fetchall()
        == con.execute("FROM p ORDER BY id").fetchall()
    )
    for margin, column in (("sexes", "sex"), ("regions", "region")):
        for wanted, got in con.execute(
            f"SELECT total, sum(raked_weight) FROM raked JOIN {margin} USING ({column}) GROUP BY {column}, total"
        ).fetchall():
            assert got == pytest.approx(wanted, rel=1e-6)
    same = con.execute(
        'SELECT count(DISTINCT raked_weight / w), count(DISTINCT round(raked_weight / w, 12)) FROM raked GROUP BY "Sex", region'
    )
    assert {row[1] for row in same.fetchall()} == {1}
    report = con.execute(
        "SELECT margin, columns, categories, total, converged, gap_before > 0.5, gap <= 1e-6, factor_least > 1, at_bounds "
        "FROM sdc_rake_report('p', weight := 'w', margins := ['sexes', 'regions'])"
    ).fetchall()
    assert report == [(1, "Sex", 2, 2000, True, True, True, True, 0), (2, "region", 3, 2000, True, True, True, True, 0)]


def test_the_order_of_the_records_does_not_matter(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(PEOPLE)
    con.execute("CREATE TABLE q AS FROM p ORDER BY id * 37 % 101")
    rows = [
        con.execute(f"FROM sdc_rake('{name}', 'w', ['sexes', 'regions']) ORDER BY id").fetchall() for name in ("p", "q")
    ]
    assert rows[0] == rows[1]


def test_published_totals_of_a_synthetic_file(con: duckdb.DuckDBPyConnection) -> None:
    """Spec 14, 2.7: counts and an amount stay with the record, and weights give the published number of people by group."""
    con.execute(PEOPLE)
    published = '(SELECT "Sex", region, 10 * sum(w) AS people FROM p GROUP BY ALL)'
    made = con.execute(
        f"SELECT \"Sex\", region, sum(raked_weight) FROM sdc_rake('(FROM p WHERE id % 3 > 0)', margins := ['{published}'], total := 'people') GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert made == [
        (*row[:2], pytest.approx(row[2], rel=1e-6)) for row in con.execute(f"FROM {published} ORDER BY ALL").fetchall()
    ]


def test_all_records_null_as_category_and_no_weight(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, CASE WHEN i > 3 THEN 'a' END AS kind FROM range(8) r(i)")
    assert con.execute(
        "SELECT DISTINCT raked_weight FROM sdc_rake('p', margins := '(SELECT 80 AS total)')"
    ).fetchall() == [(10.0,)]
    known = "(FROM (VALUES (NULL, 4), (''a'', 12)) t(kind, total))"
    assert con.execute(f"SELECT kind, sum(raked_weight) FROM sdc_rake('p', margins := ['{known}']) GROUP BY ALL ORDER BY ALL").fetchall() == [("a", 12.0), (None, 4.0)]  # fmt: skip


def test_bounds(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(PEOPLE)
    totals = "(SELECT region, sum(w) * (CASE region WHEN 0 THEN 3 ELSE 1 END) AS total FROM p GROUP BY region)"
    call = f"'p', 'w', ['{totals}', '(SELECT sum(w) AS total FROM ({totals[1:-1].replace(chr(39), chr(39) * 2)}) t(region, w))']"
    free = con.execute(f"SELECT factor_most, converged FROM sdc_rake_report({call})").fetchall()
    assert free[0] == (pytest.approx(3), True)
    held = con.execute(
        f"SELECT factor_most, converged, at_bounds FROM sdc_rake_report({call}, bounds := [0.5, 2])"
    ).fetchall()
    assert held[0] == (2.0, False, 20)
    with pytest.raises(duckdb.Error, match="the margins contradict each other, or 'bounds' are too narrow"):
        con.execute(f"FROM sdc_rake({call}, bounds := [0.5, 2])").fetchall()
    # Where the margins leave room, others make up for a factor that is held.
    weights, codes = np.ones(6), [np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1, 2])]
    targets = [np.array([4.2, 1.8]), np.array([2.8, 1.6, 1.6])]
    assert rake(weights, codes, targets).factors.max() > 1.7
    kept = rake(weights, codes, targets, bounds=(0.3, 1.7), most_cycles=1000)
    assert kept.converged
    assert kept.factors.max() == 1.7


def test_a_total_of_zero_takes_the_weight_away(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(PEOPLE)
    none = "(FROM (VALUES (''s0'', 0), (''s1'', 10)) t(sex, total))"
    rows = con.execute(
        f"SELECT \"Sex\", sum(raked_weight) FROM sdc_rake('p', margins := ['{none}']) GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert rows == [("s0", 0.0), ("s1", pytest.approx(10))]


@pytest.mark.parametrize(
    ("margins", "message"),
    [
        ("[]", "argument 'margins' must name tables of totals"),
        ("['nowhere']", "unknown table 'nowhere'"),
        ("['(SELECT 1 AS total, 2 AS age)']", "unknown column 'age' in 'p'"),
        ("['(SELECT 1 AS region, 2 AS n)']", "unknown column 'total'"),
        ("['(SELECT ''0'' AS region, 2 AS total)']", "column 'region' is BIGINT in 'source' and VARCHAR in 'margins'"),
        ("['(SELECT * FROM regions UNION ALL SELECT 7, 5)']", "margin 1 (region): 1 of 4 categories have a positive total, and no record with weight"),
        ("['(FROM regions WHERE region > 0)']", "margin 1 (region) has no total for 20 records, whose categories are not in it"),
        ("['(FROM regions UNION ALL FROM regions)']", "margin 1 (region) has 6 totals of 3 different categories"),
        ("['(SELECT region, -total AS total FROM regions)']", "3 of 3 totals are NULL, negative or no finite numbers"),
        ("['sexes', '(SELECT region, total + 1 AS total FROM regions)']", "margin 1 (Sex) and margin 2 (region) have different totals"),
        ("['regions'], weight := 'id', bounds := [2, 3]", "argument 'bounds' must be the least and the largest factor"),
        ("['regions'], weight := 'gap'", "100 of 100 records have a weight that is NULL, negative or no finite number"),
        ("['regions'], tolerance := 0", "argument 'tolerance' must be a number above 0"),
        ("['regions'], max_cycles := 0", "argument 'max_cycles' must be a whole number of at least 1"),
    ],
)  # fmt: skip
def test_margins_that_no_weights_fit(lasting: duckdb.DuckDBPyConnection, margins: str, message: str) -> None:
    lasting.execute(
        "DROP TABLE IF EXISTS p; DROP TABLE IF EXISTS sexes; DROP TABLE IF EXISTS regions;"
        + PEOPLE
        + "; ALTER TABLE p ADD COLUMN gap DOUBLE"
    )
    with pytest.raises(duckdb.Error) as problem:
        lasting.execute(f"FROM sdc_rake('p', margins := {margins})").fetchall()
    assert message in str(problem.value)


def test_margins_that_contradict_each_other_do_not_converge(con: duckdb.DuckDBPyConnection) -> None:
    """Nobody is in two of the four cells, so that both margins cannot be met."""
    con.register("made", pa.table({"a": [0, 1], "b": [0, 1]}))
    con.execute("CREATE TABLE p AS FROM made")
    a = "(FROM (VALUES (0, 3), (1, 1)) t(a, total))"
    b = "(FROM (VALUES (0, 1), (1, 3)) t(b, total))"
    with pytest.raises(duckdb.Error, match="after 100 cycles a total is still off by 2 of its target"):
        con.execute(f"FROM sdc_rake('p', margins := ['{a}', '{b}'])").fetchall()
    rows = con.execute(f"SELECT gap, cycles, converged FROM sdc_rake_report('p', margins := ['{a}', '{b}'])").fetchall()
    assert rows == [(2.0, 100, False), (0.0, 100, False)]
