"""What has been released once comes out again: pinned numbers of all functions that draw, on every version of DuckDB."""

from __future__ import annotations

import duckdb
import pytest


@pytest.fixture(scope="module")
def released(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    lasting.execute(
        "CREATE TABLE p AS SELECT i AS id, (i * i) % 101 + 0.25 AS x, i * 7 % 31 AS y, 'abc'[i % 3 + 1] AS z FROM range(60) r(i)"
    )
    return lasting


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("sdc_k_noise_records('p', {'x': 2}, id := 'id')", [-0.228917982, 2.503538081, 4.897849063]),
        ("sdc_k_pram('p', 'x', k := 5, id := 'id')", [9.039454901, 2.389089077, 12.666650435]),
        ("sdc_k_pram('p', 'x', k := 5, method := 'swap', id := 'id')", [9.25, 13.25, 5.25]),
        ("sdc_rank_swap('p', ['x'], p := 0.1, id := 'id')", [5.25, 5.25, 13.25]),
        ("sdc_shuffle('p', ['x'], predictors := ['y'], id := 'id')", [19.25, 95.25, 22.25]),
        ("sdc_add_noise('p', ['x', 'y'], 'additive', id := 'id')", [-2.839082913, 0.579280268, 6.258698839]),
        ("sdc_add_noise('p', ['x', 'y'], 'correlated', id := 'id')", [-2.835897053, 0.581215932, 6.258797723]),
        ("sdc_add_noise('p', ['x', 'y'], 'restricted', id := 'id')", [-3.132675562, -0.370591755, 4.725568481]),
        ("sdc_add_noise('p', ['x', 'y'], 'romm', id := 'id')", [-3.563648602, -6.271156632, 4.555306755]),
    ],
)  # fmt: skip
def test_numbers_do_not_move(released: duckdb.DuckDBPyConnection, call: str, wanted: list[float]) -> None:
    found = released.execute(f"SELECT x FROM {call} ORDER BY id LIMIT 3").fetchall()
    assert [float(row[0]) for row in found] == pytest.approx(wanted, abs=1e-9)


def test_categories_do_not_move(released: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT z FROM sdc_pram('p', ['z'], pd := 0.6, alpha := 1, id := 'id') ORDER BY id LIMIT 20"
    assert "".join(row[0] for row in released.execute(query).fetchall()) == "abcaabaacaacaaacbcbb"
