"""Microaggregation from the outside (`rmd`): the robust covariance, the groups, and the loss that R has."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest

from sdcduck.methods.masking.microaggregation import group_means, information_loss, standardised
from sdcduck.methods.masking.robust import SingularError, bulk, from_outside


def test_the_loss_is_near_that_of_sdcmicro(reference_data: Path) -> None:
    """R finds its covariance by random subsets, so that groups differ; its own result loses 17.324 per cent."""
    folder = reference_data / "sdcmicro"
    values = np.loadtxt(folder / "input_Tarragona.csv.gz", delimiter=",", skiprows=1)
    theirs = json.loads((folder / "index.json").read_text())["cases"]["rmd_Tarragona_k3"]["IL_SSE_over_SST_pct"]
    groups = from_outside(standardised(values), 3)
    assert np.bincount(groups).tolist() == [3] * 278
    assert information_loss(values, group_means(values, groups)) == pytest.approx(theirs, rel=1e-3)


def test_where_r_fails_so_do_we(reference_data: Path, con: duckdb.DuckDBPyConnection) -> None:
    # "system is computationally singular" in R: ERNVAL is WSALVAL for most.
    con.execute(f"CREATE TABLE census AS FROM '{reference_data}/sdcmicro/input_CASCrefmicrodata.csv.gz'")
    names = [row[0] for row in con.execute("DESCRIBE census").fetchall()]
    with pytest.raises(duckdb.Error, match="method := 'rmd' needs columns none of which most records"):
        con.execute("FROM sdc_microaggregate('census', ?, method := 'rmd')", [names]).fetchall()


@pytest.mark.parametrize("outliers", [0, 0.1, 0.3])
def test_outliers_are_not_in_the_bulk(outliers: float) -> None:
    chance = np.random.default_rng(4)
    shape = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.2], [0.0, 0.2, 1.0]])
    points = chance.multivariate_normal([0, 0, 0], shape, 1000)
    far = int(1000 * outliers)
    points[:far] = chance.normal(8, 0.3, (far, 3)) * [1, -1, 1]
    rows = bulk(points)
    assert (rows >= far).all()
    assert len(rows) > 0.93 * (1000 - far)
    assert np.cov(points[rows], rowvar=False) == pytest.approx(shape, abs=0.2)


def groups_by_hand(points: np.ndarray, k: int) -> list[set[int]]:
    inside = points[bulk(points)]
    inverse = np.linalg.inv(np.cov(inside, rowvar=False))
    away = [float((row - inside.mean(0)) @ inverse @ (row - inside.mean(0))) for row in points]
    left, found = set(range(len(points))), []
    while len(left) >= 2 * k:
        first = max(left, key=lambda row: away[row])
        group = set(sorted(left, key=lambda row: float(((points[row] - points[first]) ** 2).sum()))[:k])
        found.append(group)
        left -= group
    return [*found, left]


@pytest.mark.parametrize(("n", "k"), [(40, 3), (41, 3), (42, 4), (203, 2), (6, 3), (7, 3)])
def test_groups_by_hand(n: int, k: int) -> None:
    points = standardised(np.random.default_rng(n).exponential(size=(n, 2)))
    groups = from_outside(points, k)
    assert [set(np.flatnonzero(groups == number).tolist()) for number in range(groups.max() + 1)] == groups_by_hand(
        points, k
    )


def test_a_plane() -> None:
    x = np.random.default_rng(1).normal(size=50)
    for points in (np.column_stack([x, 2 * x]), np.column_stack([x, np.zeros(50)]), np.column_stack([x, x > 1.5])):
        with pytest.raises(SingularError):
            from_outside(standardised(points.astype(float)), 3)


def test_by_sql(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, i % 2 AS s, (i * 7919) % 101 AS x, (i * i * 31) % 97 AS y FROM range(100) r(i)"
    )
    con.execute("CREATE TABLE q AS FROM p ORDER BY hash(id)")
    made = "SELECT * FROM sdc_microaggregate('{}', ['x', 'y'], k := 3, method := 'rmd', by := ['s'], id := 'id') ORDER BY id"
    rows = con.execute(made.format("p")).fetchall()
    assert rows == con.execute(made.format("q")).fetchall()
    assert {row[-1] for row in rows} == {3, 5}
    con.execute("SET threads = 1")
    assert rows == con.execute(made.format("p")).fetchall()
    for values in (["x"], ["x", "y"]):  # one column: farthest from its robust mean first
        con.execute(f"CREATE OR REPLACE TABLE m AS FROM sdc_microaggregate('p', {values}, k := 4, method := 'rmd')")
        assert con.execute("SELECT min(group_size) >= 4, sum(x) - (SELECT sum(x) FROM p) < 1e-9 FROM m").fetchall() == [
            (True, True)
        ]
    with pytest.raises(duckdb.Error, match="categories are for method := 'mdav' or 'vmdav'"):
        con.execute("FROM sdc_microaggregate('(SELECT ''a'' AS c)', ['c'], method := 'rmd')")
