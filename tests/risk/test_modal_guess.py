"""The guess of the most frequent category: a worked example, and attacks measured beside it."""

from __future__ import annotations

import duckdb
import pytest

# unit: released and true counts of the categories W, B and H
BLOCKS = {
    "b1": ((52, 30, 20), (50, 30, 20)), "b2": ((46, 51, 2), (51, 49, 0)), "b3": ((11, 0, 0), (12, 0, 0)),
    "b4": ((4, 2, 0), (4, 1, 0)), "b5": ((1, 6, 1), (1, 8, 1)), "b6": ((0, 0, 0), (0, 0, 3)),
    "b7": ((0, 0, 40), (0, 1, 39)),
}  # fmt: skip
CALL = "'released', 'truth', area := 'block', sensitive := 'race'"


def filled(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    for place, table in enumerate(("released", "truth")):
        con.execute(f"CREATE TABLE {table} (block VARCHAR, race VARCHAR, n INTEGER)")
        con.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?)",
            [(block, race, n) for block, both in BLOCKS.items() for race, n in zip("WBH", both[place], strict=True)],
        )
    return con


@pytest.fixture
def blocks(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    return filled(con)


@pytest.fixture(scope="module")
def same_blocks(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """For tests that change nothing."""
    return filled(lasting)


def test_the_worked_example(blocks: duckdb.DuckDBPyConnection) -> None:
    rows = blocks.execute(
        f"SELECT block, modal_category, modal_true, unit_true, predicted, precision FROM sdc_modal_guess({CALL})"
    ).fetchall()
    assert rows == [
        ("b1", "W", 50, 100, True, 0.5),
        ("b2", "B", 49, 100, True, 0.49),  # noise costs two points
        ("b3", "W", 12, 12, True, 1.0),
        ("b4", "W", 4, 5, False, 0.0),
        ("b5", "B", 8, 10, True, 0.8),
        ("b6", None, None, 3, False, 0.0),
        ("b7", "H", 39, 40, True, 0.975),
    ]
    whole = blocks.execute(f"FROM sdc_modal_guess_summary({CALL})").fetchall()[0]
    assert whole == pytest.approx((270, 262, 158, 0.603053, 0.970370, 0.585185, 0), abs=1e-6)
    curve = blocks.execute(f"SELECT precision_at_least, recall FROM sdc_modal_guess_curve({CALL})").fetchall()
    assert dict(curve)[0.75] == pytest.approx(0.229630, abs=1e-6)
    assert dict(curve)[0.9] == dict(curve)[0.95] == pytest.approx(0.192593, abs=1e-6)
    assert dict(curve)[1.0] == pytest.approx(0.044444, abs=1e-6)


def test_gates_ties_and_units_that_nobody_knows(blocks: duckdb.DuckDBPyConnection) -> None:
    by_release = blocks.execute(
        f"SELECT block FROM sdc_modal_guess({CALL}, gate := 'released', min_modal := 11) WHERE predicted ORDER BY 1"
    ).fetchall()
    assert [row[0] for row in by_release] == ["b1", "b2", "b3", "b7"]
    blocks.execute("INSERT INTO released VALUES ('b8', 'W', 5), ('b8', NULL, 7), ('b9', 'H', -3), ('b9', 'W', -1)")
    blocks.execute("INSERT INTO truth VALUES ('b9', 'H', 2), ('b10', NULL, 6), ('b11', 'W', 0), ('b12', 'B', 9)")
    blocks.execute("INSERT INTO released VALUES ('b10', NULL, 6), ('b10', 'W', 6), ('b12', 'H', 5), ('b12', 'B', 5)")
    rows = blocks.execute(
        "SELECT block, modal_category, is_tie, modal_true, predicted, precision "
        f"FROM sdc_modal_guess({CALL}) WHERE block IN ('b8', 'b9', 'b10', 'b11', 'b12')"
    ).fetchall()
    assert rows == [
        ("b10", "W", True, 0, False, 0),  # of equals the first in order, NULL last
        ("b12", "B", True, 9, True, 1),
        ("b9", None, False, None, False, 0),  # no positive count
    ]
    assert blocks.execute(f"SELECT unmatched_units FROM sdc_modal_guess_summary({CALL})").fetchall() == [(1,)]


def test_nobody(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE released (block INTEGER, race VARCHAR, n INTEGER); CREATE TABLE truth AS FROM released")
    assert con.execute(f"FROM sdc_modal_guess({CALL})").fetchall() == []
    assert con.execute(f"FROM sdc_modal_guess_summary({CALL})").fetchall() == [(0, 0, 0, None, 0, 0, 0)]
    assert con.execute(f"FROM sdc_modal_guess_curve({CALL}, grid := [0.5])").fetchall() == [(0.5, 0, 0)]


def test_an_attack_that_loses_to_the_guess(con: duckdb.DuckDBPyConnection) -> None:
    # A big unit where 9 of 10 are W, and a small one of two. The attack is wrong for two of the big one, silent on one.
    con.execute("CREATE TABLE released AS FROM (VALUES (1, 'W', 9), (1, 'B', 1), (2, 'W', 2)) v(block, race, n)")
    con.execute(
        "CREATE TABLE attack AS SELECT 1 AS block, i < 9 AS linked, CASE WHEN i < 9 THEN 'W' ELSE 'B' END AS actual, "
        "CASE WHEN i < 2 THEN 'B' ELSE 'W' END AS predicted FROM range(10) r(i) UNION ALL "
        "SELECT 2, true, 'B', 'B' UNION ALL SELECT 2, NULL, 'W', 'B'"
    )
    rows = con.execute("FROM sdc_attack_score('attack', 'released', area := 'block', sensitive := 'race')").fetchall()
    assert rows == [
        (None, 12, 10, 8, 0.8, 10 / 12, 8 / 12, 10 / 12, pytest.approx(-1 / 30), pytest.approx(-0.2), 1.0),
        (1, 2, 1, 1, 1.0, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0),
        (
            10,
            10,
            9,
            7,
            pytest.approx(7 / 9),
            0.9,
            0.7,
            0.9,
            pytest.approx(7 / 9 - 0.9),
            pytest.approx((7 / 9 - 0.9) / 0.1),
            None,
        ),
    ]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (f"sdc_modal_guess({CALL}, gate := 'both')", "argument 'gate' must be"),
        (f"sdc_modal_guess({CALL}, min_modal := -1)", "argument 'min_modal' must be"),
        ("sdc_modal_guess('released', 'truth', area := 'block')", "argument 'sensitive' must name"),
        ("sdc_modal_guess('released', 'truth', area := 'blokc', sensitive := 'race')", "did you mean 'block'"),
        (f"sdc_modal_guess_curve({CALL}, grid := [])", "argument 'grid' must hold"),
        (f"sdc_modal_guess_curve({CALL}, grid := [2])", "argument 'grid' must hold"),
        ("sdc_attack_score('truth', 'released', area := 'block', sensitive := 'race')", "unknown column 'linked'"),
        (
            "sdc_attack_score('(SELECT *, true AS linked, 1 AS predicted, 1 AS actual FROM truth)', 'released', "
            "area := 'block', sensitive := 'race', size_bins := [])", "argument 'size_bins' must hold",
        ),
    ],
)  # fmt: skip
def test_bad_arguments(same_blocks: duckdb.DuckDBPyConnection, call: str, text: str) -> None:
    with pytest.raises(duckdb.Error, match=text):
        same_blocks.execute(f"FROM {call}").fetchall()


@pytest.mark.parametrize(
    ("released", "truth", "text"),
    [
        ("SELECT 1 AS block, race, n FROM released", "FROM truth", "column 'block' is INTEGER in 'protected' and VARCHAR in 'original'"),
        ("SELECT block, 1 AS race, n FROM released", "FROM truth", "column 'race' is INTEGER in 'protected' and VARCHAR in 'original'"),
        ("SELECT block, race, race AS n FROM released", "FROM truth", "argument 'freq' must name a column of numbers"),
        ("FROM released", "SELECT block, race, -n AS n FROM truth", "a count of the query is NULL or infinite, or negative"),
        ("SELECT block, race, 'nan'::DOUBLE AS n FROM released", "FROM truth", "a count of the query is NULL or infinite"),
    ],
)  # fmt: skip
def test_counts_that_are_none(same_blocks: duckdb.DuckDBPyConnection, released: str, truth: str, text: str) -> None:
    with pytest.raises(duckdb.Error, match=text) as raised:
        same_blocks.execute(
            "FROM sdc_modal_guess($r, $t, area := 'block', sensitive := 'race')",
            {"r": f"({released})", "t": f"({truth})"},
        ).fetchall()
    assert "b1" not in str(raised.value)


def test_codes_of_different_number_types_are_the_same(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE truth AS SELECT 1 AS block, i AS race, 10 - i AS n FROM range(3) r(i)")
    for cast in ("DOUBLE", "DECIMAL(9, 2)", "HUGEINT"):
        found = con.execute(
            f"SELECT modal_true, precision FROM sdc_modal_guess('(SELECT block, race::{cast} AS race, n FROM truth)', 'truth', "
            "area := 'block', sensitive := 'race')"
        ).fetchall()
        assert found == [(10, pytest.approx(10 / 27))], cast
    attack = "(SELECT 1 AS block, true AS linked, 0.0 AS predicted, 0 AS actual)"
    assert con.execute(
        f"SELECT correct, baseline_precision FROM sdc_attack_score('{attack}', 'truth', area := 'block', sensitive := 'race') LIMIT 1"
    ).fetchall() == [(1, 1.0)]


def test_a_unit_is_never_null(blocks: duckdb.DuckDBPyConnection) -> None:
    blocks.execute("INSERT INTO released VALUES (NULL, 'W', 5)")
    with pytest.raises(duckdb.Error, match="an area is NULL in 'protected'"):
        blocks.execute(f"FROM sdc_modal_guess({CALL})").fetchall()
