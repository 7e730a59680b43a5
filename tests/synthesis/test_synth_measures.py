"""What synthetic records give away and keep: the measures through SQL, and the rules behind noise and leaf diversity."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sdcduck.methods.synthesis.noise import bandwidth, bandwidths, group_borders
from sdcduck.methods.synthesis.trees import diversity


def test_replicas_of_a_toy(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o AS SELECT unnest(['a', 'a', 'b', 'c', 'd', 'd', 'd']) AS v")
    con.execute("CREATE TABLE s AS SELECT unnest(['a', 'b', 'b', 'c', 'e']) AS v")
    names = "original_records, synthetic_records, recreated, recreated_synthetic, unique_recreated, small_recreated, unique_as_unique"
    assert con.execute(f"SELECT {names} FROM sdc_synth_replicas('o', 's')").fetchall() == [(7, 5, 4, 4, 2, 4, 1)]
    assert con.execute(f"SELECT {names} FROM sdc_synth_replicas('o', 's', small := 2)").fetchall() == [
        (7, 5, 4, 4, 2, 2, 1)
    ]


def test_replicas_with_nulls_and_of_nothing(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o AS SELECT unnest(['1.5', NULL, NULL, 'nan']::DOUBLE[]) AS v")
    assert con.execute("SELECT recreated, unique_as_unique FROM sdc_synth_replicas('o', 'o')").fetchall() == [(4, 2)]
    empty = con.execute("FROM sdc_synth_replicas('o', '(FROM o LIMIT 0)')").fetchall()
    assert empty == [(4, 0, 2, 0, 0, 0, 0, 0, 0)]


def test_replicas_are_the_very_values(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o AS SELECT 2::TINYINT AS v")
    for value, recreated in (("2.0", 1), ("1.6", 0), ("2::HUGEINT", 1), ("2000000000", 0)):
        found = con.execute(f"SELECT recreated FROM sdc_synth_replicas('o', '(SELECT {value} AS v)')").fetchall()
        assert found == [(recreated,)], value
    con.execute("CREATE TABLE s AS SELECT 'secret' AS v")
    with pytest.raises(duckdb.Error, match="column 'v' is TINYINT in 'original' and VARCHAR in 'synthetic'") as raised:
        con.execute("FROM sdc_synth_replicas('o', 's')")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("weight", ["0", "-1", "NULL::INTEGER", "'inf'::DOUBLE"])
def test_moments_with_weights_that_are_none(con: duckdb.DuckDBPyConnection, weight: str) -> None:
    con.execute(f"CREATE TABLE o AS SELECT 1 AS x, {weight} AS w, 'a' AS word")
    with pytest.raises(duckdb.Error, match="a weight is NULL, not positive or infinite"):
        con.execute("FROM sdc_synth_moments('o', 'o', weight := 'w')").fetchall()
    with pytest.raises(duckdb.Error, match="argument 'weight' must name a column of numbers"):
        con.execute("FROM sdc_synth_moments('o', 'o', weight := 'word')").fetchall()


@pytest.mark.parametrize(
    ("columns", "uniques"),
    [
        (["age", "yrs_married", "children"], (22, 22, 7)),
        (["age", "yrs_married", "children", "educ", "occupation"], (386, 374, 87)),
        (["age", "yrs_married", "children", "educ", "occupation", "occupation_husb"], (1001, 961, 208)),
    ],
)
def test_uniques_of_the_two_halves_of_a_survey(
    con: duckdb.DuckDBPyConnection, columns: list[str], uniques: tuple[int, int, int]
) -> None:
    # statsmodels' `fair`, even and odd rows.
    fair = pytest.importorskip("statsmodels.datasets.fair").load_pandas().data
    con.register("even", pa.Table.from_pandas(fair.iloc[0::2], preserve_index=False))
    con.register("odd", pa.Table.from_pandas(fair.iloc[1::2], preserve_index=False))
    con.execute("CREATE TABLE o AS FROM even")
    con.execute("CREATE TABLE s AS FROM odd")
    row = con.execute(
        "SELECT original_uniques, synthetic_uniques, unique_as_unique, unique_recreated, recreated, original_records "
        "FROM sdc_synth_replicas('o', 's', columns := ?)",
        [columns],
    ).fetchall()[0]
    assert row[:3] == uniques
    if len(columns) == 3:
        assert row[3] == 9
        assert row[4] / row[5] == pytest.approx(0.99245994, abs=1e-8)


def test_diversity_of_leaves() -> None:
    """Of the donors 0 0 0, 0 0 5 and 5 5."""
    donors, starts, sizes = np.array([0, 0, 0, 0, 0, 5, 5, 5]), np.array([0, 3, 6]), np.array([3, 3, 2])
    assert diversity(donors, starts, sizes, 0, True).tolist() == [-1, 2, 1]
    assert diversity(donors, starts, sizes, 0, False).tolist() == [-1, 1, 1]


def test_diversity_is_that_of_the_leaves(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT * FROM (VALUES ('a', 0), ('a', 0), ('a', 0), ('b', 0), ('b', 0), ('b', 5), ('c', 5), "
        "('c', 5), ('c', 5)) v(g, x)"
    )
    query = (
        "SELECT DISTINCT g, ldiv_x FROM sdc_synth_records('t', rows := 100, minbucket := 3, by := ['g'], "
        "details := true{}) ORDER BY g"
    )
    assert con.execute(query.format("")).fetchall() == [("a", None), ("b", 2), ("c", 1)]
    assert con.execute(query.format(", count_zero := false")).fetchall() == [("a", None), ("b", 1), ("c", 1)]


def test_diversity_by_variable(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE d AS SELECT unnest([1, 2, 3, NULL]) AS ldiv_a, unnest([5, 5, 5, 5]) AS ldiv_b, 0 AS a")
    assert con.execute("FROM sdc_synth_diversity('d')").fetchall() == [("a", 4, 2, 0.5), ("b", 4, 0, 1.0)]
    assert con.execute("SELECT low FROM sdc_synth_diversity('d', threshold := 6)").fetchall() == [(3,), (4,)]
    with pytest.raises(duckdb.Error, match=r"no columns ldiv_.*details := true"):
        con.execute("FROM sdc_synth_diversity('(SELECT 1 AS a)')")
    with pytest.raises(duckdb.Error, match="'threshold' must be a whole number of at least 1"):
        con.execute("FROM sdc_synth_diversity('d', threshold := 0)")


PUBLISHED = [
    29181,
    11495,
    14894,
    50106,
    32025,
    28230,
    22620,
    28732,
    20088,
    9322,
    4616,
    4582,
    6244,
    1293,
    1504,
    208,
    67,
    20,
    12,
]


def test_diversity_by_record_is_tabulated_as_published(con: duckdb.DuckDBPyConnection) -> None:
    # Bowen et al. (2022), the table of variables per record, its first entry put right so that the percentages hold.
    flags = ", ".join(f"CASE WHEN k > {v} THEN 1 ELSE 9 END AS ldiv_{v}" for v in range(18))
    counts = ", ".join(f"({k}, {n})" for k, n in enumerate(PUBLISHED))
    con.execute(f"CREATE TABLE d AS SELECT {flags} FROM (VALUES {counts}) v(k, n), range(n)")
    rows = con.execute("FROM sdc_synth_diversity_records('d')").fetchall()
    assert [row[1] for row in rows] == PUBLISHED
    assert sum(PUBLISHED) == 265_239
    assert [round(row[2], 1) for row in rows[:4]] == [11.0, 4.3, 5.6, 18.9]
    assert round(rows[3][3], 1) == 39.8
    assert round(rows[8][3], 1) == 89.5


def test_moments_and_correlations(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o AS SELECT unnest([1, 2, 3, 4, NULL]) AS x, unnest([2.0, 4, 6, 8, 10]) AS y, 'a' AS g")
    con.execute("CREATE TABLE s AS SELECT unnest([2, 2, 4, 4]) AS x, unnest([8.0, 6, 4, 2]) AS y, 'b' AS g")
    moments = con.execute("FROM sdc_synth_moments('o', 's')").fetchall()
    assert [row[0] for row in moments] == ["x", "y"]
    x = moments[0][1:]
    sd = np.std([1, 2, 3, 4], ddof=1)
    assert x == pytest.approx((2.5, 3.0, sd, np.std([2, 2, 4, 4], ddof=1), 0.5 / (sd / 2), 0.2, 0.0, 0.25))
    assert con.execute("FROM sdc_synth_correlations('o', 's')").fetchall() == [
        (
            "x",
            "y",
            pytest.approx(1.0),
            pytest.approx(-np.corrcoef([2, 2, 4, 4], [2, 4, 6, 8])[0, 1]),
            pytest.approx(-1.894427191),
        )
    ]
    con.execute("ALTER TABLE o ADD COLUMN w INTEGER DEFAULT 2; ALTER TABLE s ADD COLUMN w INTEGER DEFAULT 3")
    assert con.execute("FROM sdc_synth_moments('o', 's', weight := 'w')").fetchall() == [
        pytest.approx(row)
        if isinstance(row, float)
        else tuple(pytest.approx(v) if isinstance(v, float) else v for v in row)
        for row in moments
    ]
    empty = con.execute("FROM sdc_synth_moments('o', '(FROM s LIMIT 0)', columns := ['x'])").fetchall()
    assert empty[0][2] is None if empty else True
    for call, message in (
        ("sdc_synth_moments('o', 's', columns := ['g'])", "no column of numbers in common"),
        ("sdc_synth_correlations('o', 's', columns := ['x'])", "needs two columns of numbers"),
        ("sdc_synth_moments('o', 's', columns := ['z'])", "unknown column 'z'"),
        ("sdc_synth_replicas('o', '(SELECT 1 AS q)')", "no column in common"),
        ("sdc_synth_replicas('o', 's', columns := ['x', NULL])", "'columns' holds a NULL"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            con.execute(f"FROM {call}")


def test_groups_and_their_bandwidths() -> None:
    assert bandwidth(np.arange(1.0, 6.0)) == pytest.approx(0.9735846, abs=5e-8)
    assert group_borders(np.arange(1.0, 11.0), 4).tolist() == [3.5, 6.5, 8.5]
    # Groups that share a value become one; one that has a single value has no noise.
    assert group_borders(np.array([1.0, 1, 1, 1, 2, 3]), 3).tolist() == [1.5]
    assert bandwidth(np.full(9, 7.0)) == 0
    assert bandwidths(np.array([1.0, 2, 3]), np.array([4, 1, 1]), 3, np.array([])).tolist()[0] == 0
    # One group has the bandwidth of all; excluded values have none.
    values, counts = np.arange(1.0, 6.0), np.ones(5, np.int64)
    assert bandwidths(values, counts, 1, np.array([3.0])) == pytest.approx(
        [0.9735846, 0.9735846, 0, 0.9735846, 0.9735846]
    )
    assert np.isfinite(bandwidths(np.array([-1e308, 0, 1e308]), np.array([2, 2, 2]), 2, np.array([]))).all()


def test_noise_has_the_deviation_of_its_group(con: duckdb.DuckDBPyConnection) -> None:
    # Two groups far apart, so that the group of a noisy value is known.
    con.execute("CREATE TABLE t AS SELECT unnest([0.0, 1000.0, 1000000.0, 1100000.0]) AS x FROM range(100)")
    widths = bandwidths(np.array([0.0, 1000, 1000000, 1100000]), np.full(4, 100), 2, np.array([]))
    assert widths[0] == widths[1] < widths[2] == widths[3]
    noise = con.execute(
        "SELECT x FROM sdc_synth_records('t', rows := 40000, seed := 3, smoothing := 'density', groups := 2, exclude := [])"
    ).fetchnumpy()["x"]
    small = noise[np.abs(noise) < 20_000]
    assert len(small) == pytest.approx(20_000, abs=600)
    # Of the lower group the values are 0 and 1000 with noise: variance 500^2 + h^2, known to some per cent.
    assert small.var() == pytest.approx(500**2 + widths[0] ** 2, rel=0.05)
