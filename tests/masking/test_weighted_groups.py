"""Microaggregation with sampling weights: weighted totals of each group, and so of the file, stay what they are."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from sdcduck.methods.masking.quality import quality


@pytest.fixture
def con(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute("""CREATE TABLE survey AS SELECT i AS id, i * i * 37 % 101 AS x, i * i * 17 % 103 AS y,
        CASE WHEN i % 9 = 0 THEN NULL ELSE i * 5 % 41 END AS z, 1 + i % 5 * 2.5 AS weight, 'part ' || i % 2 AS part,
        DATE '2020-01-01' + (i * 7 % 50)::INTEGER AS day, ['a', 'b', 'c'][1 + i * i % 3] AS kind FROM range(120) r(i)""")
    return con


METHODS = ("mdav", "vmdav", "swap", "decompose", "optimal", "onedims", "pca")


@pytest.mark.parametrize("method", METHODS)
def test_totals_of_groups_stay_and_the_groups_too(con: duckdb.DuckDBPyConnection, method: str) -> None:
    columns = "['x']" if method == "optimal" else "['x', 'y']"
    call = f"sdc_microaggregate('survey', {columns}, k := 4, method := '{method}', by := ['part'], id := 'id'{{}})"
    numbers = "group_id_1" if method == "onedims" else "group_id"
    rows = con.execute(f"""
        SELECT sum(o.x * o.weight), sum(w.x * w.weight), max(w.x) - min(w.x), avg(o.x), any_value(p.x),
            count(DISTINCT p.{numbers})
        FROM {call.format(", weight := 'WEIGHT'")} w JOIN {call.format("")} p USING (id) JOIN survey o USING (id)
        GROUP BY w.{numbers}""").fetchall()
    assert len(rows) > 10
    for before, after, spread, mean, without, groups in rows:
        assert after == pytest.approx(float(before), rel=1e-12)
        assert (spread, groups) == (0, 1)
        assert without == pytest.approx(mean, rel=1e-12)


def test_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""CREATE TABLE few AS FROM (VALUES (1, 1.0, 'b', DATE '2020-01-01', 1), (2, 5.0, 'a', DATE '2020-01-09', 3))
        t(id, x, c, d, w)""")
    call = "sdc_microaggregate('few', ['x', 'c', 'd'], k := 2, id := 'id'{})"
    assert con.execute(f"SELECT DISTINCT x, c, d::VARCHAR FROM {call.format('')}").fetchall() == [
        (3, "a", "2020-01-05")
    ]
    # Weighted: (1 + 15) / 4, the category with 3 of 4, a fourth of the way from the ninth to the first.
    weighted = con.execute(f"SELECT DISTINCT x, c, d::VARCHAR FROM {call.format(', weight := $$w$$')}").fetchall()
    assert weighted == [(4, "a", "2020-01-07")]
    con.execute("UPDATE few SET w = 5 WHERE id = 1")
    weighted = con.execute(f"SELECT DISTINCT x, c, d::VARCHAR FROM {call.format(', weight := $$w$$')}").fetchall()
    assert weighted == [(2.5, "b", "2020-01-04")]


def test_equal_weights_are_none(con: duckdb.DuckDBPyConnection) -> None:
    call = "sdc_microaggregate('survey', ['x', 'y', 'kind', 'day'], id := 'id'{}) ORDER BY id"
    con.execute("UPDATE survey SET weight = 4")
    assert (
        con.execute(f"FROM {call.format(', weight := $$weight$$')}").fetchall()
        == con.execute(f"FROM {call.format('')}").fetchall()
    )
    chance = np.random.default_rng(3)
    values = chance.normal(size=(50, 3)) * [1, 10, 1e5]
    masked = values.round(-1)
    one, other = quality(values, masked), quality(values, masked, np.full(50, 7.5))
    assert (other.sse, other.sst, other.il) == pytest.approx((one.sse, one.sst, one.il), rel=1e-12)
    assert one.sst == pytest.approx(3 * 49)


def test_a_weight_of_two_is_a_record_twice() -> None:
    chance = np.random.default_rng(4)
    values, weights = chance.normal(size=(40, 2)), chance.integers(1, 4, 40)
    masked = values + chance.normal(size=values.shape)
    twice = quality(np.repeat(values, weights, axis=0), np.repeat(masked, weights, axis=0))
    once = quality(values, masked, weights.astype(np.float64))
    assert once.il == pytest.approx(twice.il, rel=1e-12)
    assert (once.n, once.bound, once.gap) == (40, None, None)


def test_gaps_and_several_lists(con: duckdb.DuckDBPyConnection) -> None:
    call = "sdc_microaggregate('survey', [['x'], ['z']], k := 3, id := 'id', weight := 'weight', nulls := '{}')"
    for nulls in ("keep", "apart"):
        [found] = (
            con.execute(f"""SELECT sum(m.x * m.weight) - sum(o.x * o.weight), sum(m.z * m.weight) - sum(o.z * o.weight),
            count(*) FILTER ((m.z IS NULL) <> (o.z IS NULL)) FROM {call.format(nulls)} m JOIN survey o USING (id)""").fetchall()
        )
        assert found == (pytest.approx(0, abs=1e-8), pytest.approx(0, abs=1e-8), 0)


def test_the_quality_of_weighted_groups(con: duckdb.DuckDBPyConnection) -> None:
    """In each group the weighted mean is the point with the least weighted loss."""
    losses = []
    for given in ("", ", weight := $$weight$$"):
        con.execute(f"CREATE OR REPLACE TABLE m AS FROM sdc_microaggregate('survey', ['x', 'y'], id := 'id'{given})")
        losses += con.execute(
            "SELECT il FROM sdc_microaggregate_quality('survey', 'm', ['x', 'y'], id := 'id', weight := 'weight')"
        ).fetchall()
    assert losses[1] < losses[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("weight := 'kind'", "argument 'weight' must name a column of numbers"),
        ("weight := 'nothing'", "unknown column 'nothing'"),
        (
            "weight := 'X'",
            "column 'x' is one of those that are masked, and can be neither in 'by' nor 'id' nor 'weight'",
        ),
        ("weight := 'z'", "a weight is NULL, not positive or infinite"),
    ],
)
def test_bad_weights(con: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error) as caught:
        con.execute(f"FROM sdc_microaggregate('survey', ['x'], id := 'id', {arguments})").fetchall()
    assert message in str(caught.value)


@pytest.mark.parametrize("value", ["0", "-1", "'nan'", "'infinity'"])
def test_weights_that_are_none(con: duckdb.DuckDBPyConnection, value: str) -> None:
    con.execute(
        f"CREATE TABLE w AS SELECT * REPLACE (CASE WHEN id = 7 THEN {value}::DOUBLE ELSE weight END AS weight) FROM survey"
    )
    for call in (
        "sdc_microaggregate('w', ['x'], id := 'id', weight := 'weight')",
        "sdc_microaggregate_quality('w', 'w', ['x'], id := 'id', weight := 'weight')",
    ):
        with pytest.raises(duckdb.Error, match="a weight is NULL, not positive or infinite"):
            con.execute(f"FROM {call}").fetchall()
