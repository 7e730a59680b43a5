"""``sdc_mask_risk``: what masked numbers still tell, by hand, by brute force, and on files that sdcMicro has masked."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from sdcduck.methods.masking.disclosure import linked, within_interval


def by_hand(values: np.ndarray, masked: np.ndarray) -> list[float]:
    """Linkage, record by record."""
    spread = values.std(axis=0, ddof=1)
    varying = spread > 0
    found = []
    for row, value in enumerate(values):
        apart = (((value - masked)[:, varying] / spread[varying]) ** 2).sum(axis=1)
        nearest = np.flatnonzero(apart <= apart.min() * (1 + 1e-9))
        found.append(1 / len(nearest) if row in nearest else 0.0)
    return found


@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("whole", [True, False])
def test_linkage_as_a_loop_does_it(columns: int, whole: bool) -> None:
    chance = np.random.default_rng(columns)
    for count in (2, 3, 40, 90):
        values = chance.normal(0, 3, (count, columns))
        masked = values + chance.normal(0, 1, values.shape)
        if whole:
            values, masked = values.round(), masked.round()
        values[:, 0] *= 1e6
        assert linked(values, masked).tolist() == pytest.approx(by_hand(values, masked), abs=1e-12)


def test_nobody_is_found_among_k_with_more_than_one_kth(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, i * 37 % 101 AS x, i * i % 53 AS y FROM range(60) r(i)")
    for k in (2, 5):
        con.execute(f"CREATE OR REPLACE TABLE m AS FROM sdc_microaggregate('p', ['x', 'y'], k := {k}, id := 'id')")
        x, y, both = con.execute("FROM sdc_mask_risk('p', 'm', ['x', 'y'], id := 'id')").fetchall()
        assert (x[0], y[0], both[0], both[1]) == ("x", "y", None, 60)
        assert 0 < both[5] <= 1 / k
        assert both[3] <= min(x[3], y[3])
        assert both[6] == pytest.approx(1 / 60)


def test_small_numbers(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE a AS FROM (VALUES (1, 0.0, 5, 'u'), (2, 10, 5, 'v'), (3, 20, 5, 'w'), (4, NULL, 5, 'w')) t(id, x, same, c)"
    )
    con.execute(
        "CREATE TABLE b AS FROM (VALUES (4, 1.0, 5, 'u'), (3, 20, 5, 'u'), (2, 11, 5, 'u'), (1, 0.9, 5, 'u')) t(ID, X, same, c)"
    )
    found = con.execute("FROM sdc_mask_risk('a', 'b', width := 0.1, id := 'id')").fetchall()
    # Changes of 0.9, 1 and 0, beside a tenth of 10: the second is not below it. x has a NULL; nothing tells by 'same'.
    assert found == [
        ("x", 3, 2, pytest.approx(2 / 3), 3.0, 1.0, pytest.approx(1 / 3)),
        ("same", 4, 4, 1.0, 1.0, 0.25, 0.25),
        (None, 3, 2, pytest.approx(2 / 3), 3.0, 1.0, pytest.approx(1 / 3)),
    ]
    assert con.execute("FROM sdc_mask_risk('a', 'a', ['x'], id := 'id')").fetchall()[1][2:6] == (3, 1.0, 3.0, 1.0)
    empty = con.execute("FROM sdc_mask_risk('(FROM a LIMIT 0)', '(FROM b LIMIT 0)', ['x'], id := 'id')").fetchall()
    assert empty == [("x", 0, 0, None, 0.0, None, None), (None, 0, 0, None, 0.0, None, None)]
    one = con.execute("FROM sdc_mask_risk('(FROM a LIMIT 1)', '(FROM b WHERE id = 1)', ['x'], id := 'id')").fetchall()
    assert one[0] == ("x", 1, 0, 0.0, 1.0, 1.0, 1.0)


def test_the_interval_by_itself() -> None:
    values = np.array([[0.0, 1], [4, 1], [8, 1]])  # a standard deviation of 4, and none
    masked = np.array([[0.3, 1], [4.5, 1.1], [8, 1]])
    assert within_interval(values, masked, 0.1).tolist() == [[True, True], [False, False], [True, True]]


@pytest.mark.parametrize("unit", [2.0**-1060, 2.0**-700, 2.0**700, 2.0**1015])
def test_the_unit_of_a_column_says_nothing(con: duckdb.DuckDBPyConnection, unit: float) -> None:
    """Very large numbers were an internal error, and very small ones seemed not to vary: nobody was linked."""
    con.execute(f"CREATE TABLE p AS SELECT i AS id, i * i % 53 * {unit}::DOUBLE AS x, i % 7 AS y FROM range(60) r(i)")
    con.execute(f"CREATE TABLE m AS SELECT id, x + id % 3 * {unit}::DOUBLE AS x, y FROM p")
    con.execute("CREATE TABLE q AS SELECT i AS id, i * i % 53 AS x, i % 7 AS y FROM range(60) r(i)")
    con.execute("CREATE TABLE n AS SELECT id, x + id % 3 AS x, y FROM q")
    small, plain = (
        con.execute(f"FROM sdc_mask_risk({pair}, ['x', 'y'], width := 0.07, id := 'id')").fetchall()
        for pair in ("'p', 'm'", "'q', 'n'")
    )
    assert small == plain  # multiples of a power of two: no digit is another
    assert 0 < plain[0][2] < 60
    far = con.execute("FROM sdc_mask_risk('p', '(SELECT id, -1e308 AS x FROM p)', id := 'id')").fetchall()
    assert far[0][2] == 0
    assert far[0][4] == pytest.approx(1)


@pytest.mark.parametrize(("k", "most"), [(3, 1 / 3), (10, 0.1)])
def test_a_file_that_sdcmicro_has_masked(
    con: duckdb.DuckDBPyConnection, reference_data: Path, k: int, most: float
) -> None:
    folder = reference_data / "sdcmicro"
    for name, file in (("census", "input_CASCrefmicrodata"), ("masked", f"mdav_CASC_k{k}")):
        con.execute(
            f"CREATE TABLE {name} AS SELECT row_number() OVER () AS id, * FROM read_csv('{folder}/{file}.csv.gz')"
        )
    values, masked = (
        np.loadtxt(folder / f"{file}.csv.gz", delimiter=",", skiprows=1)
        for file in ("input_CASCrefmicrodata", f"mdav_CASC_k{k}")
    )
    found = con.execute("FROM sdc_mask_risk('census', 'masked', width := 0.1, id := 'id')").fetchall()
    assert len(found) == 14
    near = np.abs(values - masked) < 0.1 * values.std(axis=0, ddof=1)
    assert [row[3] for row in found] == pytest.approx(
        [*(near | (values == masked)).mean(axis=0), near.all(axis=1).mean()]
    )
    assert found[-1][4] == pytest.approx(sum(by_hand(values, masked)))
    assert 0 < found[-1][5] <= most
    lost = con.execute("SELECT sum(n * il1s) FROM sdc_mask_loss('census', 'masked', id := 'id')").fetchall()[0][0]
    assert lost == pytest.approx((np.abs(values - masked) / (2**0.5 * values.std(axis=0, ddof=1))).sum())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'a', 'b'", "argument 'id' must name the column that tells which records belong together"),
        ("'a', 'b', ['c'], id := 'id'", "'c' of 'a' is VARCHAR"),
        ("'a', 'b', width := 0, id := 'id'", "argument 'width' must be"),
        ("'a', 'b', width := NULL, id := 'id'", "argument 'width' must be"),
        ("'a', '(SELECT id + 1 AS id, x FROM b)', id := 'id'", "of 3 records of 'original' and 3 of 'protected' 2 belong"),
        ("'a', '(SELECT id // 2 AS id, x FROM b)', id := 'id'", "argument 'protected': column 'id' is the same in several"),
        ("'a', '(SELECT id, ''nan''::DOUBLE AS x FROM b)', id := 'id'", "column 'x' has NaN or an infinite number"),
        ("'a', '(SELECT id, c FROM b)', id := 'id'", "have no column of numbers in common"),
        ("'a', 'b', ['x', 'x'], id := 'id'", "names column 'x' twice"),
    ],
)  # fmt: skip
def test_bad_input(con: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    con.execute("CREATE TABLE a AS SELECT i AS id, i * 1.5 AS x, 'c' AS c FROM range(3) r(i)")
    con.execute("CREATE TABLE b AS FROM a")
    with pytest.raises(duckdb.Error) as raised:
        con.execute(f"FROM sdc_mask_risk({call})").fetchall()
    assert message in str(raised.value)
