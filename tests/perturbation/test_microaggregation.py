"""Microaggregation: what sdcMicro makes of the CASC reference files, and what was published of them.

Published: "An optimization-based decomposition heuristic for the microaggregation problem", PSD 2022, table 2.
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest

from sdcduck.methods.perturbation.microaggregation import group_means, information_loss, mdav

PUBLISHED = {("Tarragona", 5): 22.46, ("Tarragona", 10): 33.19}


def records(folder: Path, name: str) -> np.ndarray:
    return np.loadtxt(folder / f"input_{name}.csv.gz", delimiter=",", skiprows=1)


@pytest.mark.parametrize(("name", "file"), [("CASC", "CASCrefmicrodata"), ("Tarragona", "Tarragona")])
@pytest.mark.parametrize("k", [3, 5, 10])
def test_the_groups_are_those_of_sdcmicro(reference_data: Path, name: str, file: str, k: int) -> None:
    folder = reference_data / "sdcmicro"
    values = records(folder, file)
    groups = mdav(values, k)
    loss = information_loss(values, group_means(values, groups))
    theirs = json.loads((folder / "index.json").read_text())["cases"][f"mdav_{name}_k{k}"]
    assert loss == pytest.approx(theirs["IL_SSE_over_SST_pct"], abs=1e-9)
    assert (groups.max() + 1, np.bincount(groups).min()) == (theirs["groups"], theirs["min_group"])
    assert loss == pytest.approx(PUBLISHED.get((name, k), loss), abs=0.005)


def test_the_numbers_are_those_of_sdcmicro(reference_data: Path, con: duckdb.DuckDBPyConnection) -> None:
    folder = reference_data / "sdcmicro"
    con.execute(f"CREATE TABLE census AS FROM '{folder}/input_CASCrefmicrodata.csv.gz'")
    names = [row[0] for row in con.execute("DESCRIBE census").fetchall()]
    made = con.execute("SELECT * EXCLUDE group_number FROM sdc_microaggregate('census', ?, k := 10)", [names])
    found = np.array(made.fetchall())
    theirs = np.loadtxt(folder / "mdav_CASC_k10.csv.gz", delimiter=",", skiprows=1)
    assert np.allclose(found[np.lexsort(found.T)], theirs[np.lexsort(theirs.T)], rtol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("n", [1, 2, 6, 20, 21, 62])
def test_every_group_has_at_least_k_and_fewer_than_2k(n: int, k: int) -> None:
    values = np.random.default_rng(n).integers(0, 4, (n, 2)).astype(float)  # with many ties
    sizes = np.bincount(mdav(values, k))
    assert n < k or (sizes.min() >= k and sizes.max() < 2 * k)


def test_units_do_not_matter() -> None:
    values = np.random.default_rng(5).normal(size=(50, 3))
    assert (mdav(values, 4) == mdav(values * [1, 1000, 0.01] + [0, 5, -1], 4)).all()


def test_records_keep_what_is_not_named(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT 'p' || i AS name, i * i AS x, 7 AS same, -i AS y FROM range(10) r(i)")
    made = "sdc_microaggregate('p', ['X', 'same'])"
    assert [row[:2] for row in con.execute(f"DESCRIBE FROM {made}").fetchall()] == [
        ("name", "VARCHAR"), ("x", "DOUBLE"), ("same", "DOUBLE"), ("y", "BIGINT"),
        ("group_number", "BIGINT"),
    ]  # fmt: skip
    assert (
        con.execute(f"SELECT name, y FROM {made} ORDER BY y DESC").fetchall()
        == con.execute("SELECT name, y FROM p ORDER BY y DESC").fetchall()
    )
    assert con.execute(f"SELECT round(sum(x), 9), sum(same), min(same) FROM {made}").fetchall() == [(285.0, 70.0, 7.0)]
    con.execute(f"CREATE TABLE m AS FROM {made}")
    means = "SELECT group_number, avg(p.x) AS mean, count(*) AS n FROM m JOIN p USING (name) GROUP BY ALL"
    wrong = f"SELECT count(*) FROM m JOIN ({means}) USING (group_number) WHERE abs(x - mean) > 1e-9 OR n < 3"
    assert con.execute(wrong).fetchall() == [(0,)]


def test_the_order_of_the_records_does_not_matter(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, (i * 7919) % 13 AS x, (i * 104729) % 11 AS y FROM range(40) r(i)")
    con.execute("CREATE TABLE q AS FROM p ORDER BY hash(id)")
    rows = [con.execute(f"FROM sdc_microaggregate('{table}', ['x', 'y']) ORDER BY id").fetchall() for table in "pq"]
    assert rows[0] == rows[1]


def test_an_empty_table_stays_empty(con: duckdb.DuckDBPyConnection) -> None:
    assert con.execute("FROM sdc_microaggregate('(SELECT 1 AS x LIMIT 0)', ['x'])").fetchall() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'nobody', ['x']", "unknown table 'nobody'"),
        ("'p'", "argument 'columns' must name the columns of numbers"),
        ("'p', ['agge']", "unknown column 'agge' in 'p'; did you mean 'age'?"),
        ("'p', ['age', 'AGE']", "names column 'age' twice"),
        ("'p', ['name']", "argument 'columns' must name a column of numbers: 'name' of 'p' is VARCHAR"),
        ("'p', ['age'], k := 1", "argument 'k' must be a whole number of at least 2"),
        ("'p', ['age'], k := NULL", "argument 'k' must be a whole number of at least 2"),
        ("'p', ['age'], k := 11", "there are 10 records, fewer than k := 11"),
        ("'(SELECT age AS group_number FROM p)', ['group_number']", "is also one of the result"),
        ("'(SELECT nullif(age, 3) AS age FROM p)', ['age']", "a record has NULL, NaN or an infinite number"),
        ("'(SELECT CASE WHEN age = 3 THEN ''nan''::DOUBLE ELSE age END AS age FROM p)', ['age']", "a record has NULL, NaN"),
        ("'(SELECT CASE WHEN age = 3 THEN ''inf''::DOUBLE ELSE age END AS age FROM p)', ['age']", "a record has NULL, NaN"),
    ],
)  # fmt: skip
def test_bad_input(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute("CREATE OR REPLACE TABLE p AS SELECT i AS age, 'p' || i AS name FROM range(10) r(i)")
    with pytest.raises(duckdb.Error) as raised:
        lasting.execute(f"FROM sdc_microaggregate({call})").fetchall()
    assert message in str(raised.value)
