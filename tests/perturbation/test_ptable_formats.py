"""Existing p-tables are read as they are, and give exactly the noise that they say; what is none is refused.

Forms: CSV of R packages ptable and cellKey (``shared/data/cellkey``), the file of tau-Argus, the tables of ONS.
"""

from __future__ import annotations

import csv
from pathlib import Path

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

Row = tuple[float, list[float], list[float]]
"""Original count, upper bounds of the intervals as fractions, noise."""

SMALL = [
    (1.0, [0.25, 0.75, 1.0], [-1.0, 0.0, 1.0]),
    (2.0, [0.1, 0.8, 1.0], [-2.0, 0.0, 1.0]),
    (3.0, [0.02, 0.3, 0.31, 0.87, 1.0], [-3.0, -1.0, 0.0, 1.0, 2.0]),
]


def lines(rows: list[Row]) -> list[tuple[float, float, float, float, float, float]]:
    """i, j, p, v, p_int_lb, p_int_ub of each interval, with the row of the zeros."""
    found = [(0.0, 0.0, 1.0, 0.0, 0.0, 1.0)]
    for i, bounds, noise in rows:
        for lb, ub, v in zip([0.0, *bounds], bounds, noise, strict=False):
            found.append((i, i + v, round(ub - lb, 8), v, lb, ub))
    return found


def expected(rows: list[Row], n: NDArray[np.int64], key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Published counts, read off the table by hand: the last row serves larger counts, and zeros stay."""
    published = np.zeros_like(n)
    for place, (count, cell_key) in enumerate(zip(n, key, strict=True)):
        if count > 0:
            _, bounds, noise = rows[min(int(count), len(rows)) - 1]
            interval = np.searchsorted(np.rint(np.array(bounds) * 1e8), cell_key, side="right")
            published[place] = count + int(noise[interval])
    return published


def assert_gives(con: duckdb.DuckDBPyConnection, name: str, rows: list[Row]) -> None:
    """sdc_count on records, and sdc_ckm_count on counts beyond the last row, at random keys and at every border."""
    generator = np.random.default_rng(20250704)
    borders = {round(bound * 1e8) + shift for _, bounds, _ in rows for bound in bounds for shift in (-1, 0, 1)}
    keys = np.array(sorted(key for key in borders if 0 <= key < 10**8), dtype=np.int64)
    keys = np.concatenate([keys, generator.integers(0, 10**8, 400)])
    n = generator.integers(1, len(rows) + 4, len(keys))
    con.register("cells", {"cell": np.arange(len(keys)), "n": n, "key": keys})
    # The records of a cell have keys that add up to its key and a few times 10^8.
    con.execute(
        """CREATE OR REPLACE TABLE records AS SELECT cell,
            CASE one WHEN 0 THEN (key + (n - 1) * 37) % 100000000 ELSE 99999963 END::INTEGER AS record_key
        FROM cells, range(20) t(one) WHERE one < n"""
    )
    columns = con.execute(
        f"SELECT n, key, sdc_count(record_key, ptable := '{name}') AS n_hat, sdc_cell_key(record_key) AS cell_key "
        "FROM records JOIN cells USING (cell) GROUP BY ALL"
    ).fetchnumpy()
    np.testing.assert_array_equal(columns["cell_key"], columns["key"])
    np.testing.assert_array_equal(columns["n_hat"], expected(rows, columns["n"], columns["key"]))
    con.unregister("cells")
    n = np.concatenate([np.zeros(5, dtype=np.int64), generator.integers(1, 10**6, len(keys) - 5)])
    con.register("cells", {"n": n, "key": keys})
    columns = con.execute(f"SELECT n, key, sdc_ckm_count(n, key, ptable := '{name}') AS n_hat FROM cells").fetchnumpy()
    np.testing.assert_array_equal(columns["n_hat"], expected(rows, columns["n"], columns["key"]))
    con.unregister("cells")


def store(con: duckdb.DuckDBPyConnection, name: str, query: str, more: str = "") -> tuple[object, ...]:
    text = query.replace("'", "''")
    (row,) = con.execute(
        f"SELECT name, kind, rows, intervals, keys FROM sdc_store_ptable('{name}', '({text})'{more})"
    ).fetchall()
    return row


def error(con: duckdb.DuckDBPyConnection, sql: str) -> str:
    with pytest.raises(duckdb.Error) as caught:
        con.execute(sql).fetchall()
    return str(caught.value).splitlines()[0]


# --- ptable and cellKey ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["D5V3js1", "D8V3js2", "ex_cnts"])
def test_a_ptable_of_cellkey(con: duckdb.DuckDBPyConnection, reference_data: Path, name: str) -> None:
    file = reference_data / "cellkey" / f"ptable_{name}.csv"
    with file.open() as text:
        records = [{key: row[key] for key in ("i", "v", "p_int_ub")} for row in csv.DictReader(text)]
    rows: list[Row] = []
    for i in range(1, 1 + max(int(record["i"]) for record in records)):
        mine = [record for record in records if int(record["i"]) == i]
        rows.append((i, [float(record["p_int_ub"]) for record in mine], [float(record["v"]) for record in mine]))
    stored = store(con, name, f"FROM read_csv('{file}')")
    assert stored == (name, "counts", len(rows) + 1, len(records), 10**8)
    assert_gives(con, name, rows)


def test_a_ptable_of_ptable_with_its_older_column_names(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    # Rows in any order, names in any case, a column more than is read.
    file = tmp_path / "ptable.csv"
    with file.open("w") as text:
        writer = csv.writer(text)
        writer.writerow(["I", "J", "P", "kum_p", "Diff", "remark"])
        writer.writerows((i, j, p, ub, v, "x") for i, j, p, v, _, ub in reversed(lines(SMALL)))
    assert store(con, "older", f"FROM read_csv('{file}')") == ("older", "counts", 4, 12, 10**8)
    assert_gives(con, "older", SMALL)


def test_a_table_a_view_and_a_query_are_read_alike(con: duckdb.DuckDBPyConnection) -> None:
    con.execute('CREATE SCHEMA other; CREATE TABLE other."my p-table" (i INTEGER, v INTEGER, ub DECIMAL(9, 8))')
    con.executemany(
        'INSERT INTO other."my p-table" VALUES (?, ?, ?)', [(i, v, ub) for i, _, _, v, _, ub in lines(SMALL)]
    )
    con.execute('CREATE VIEW viewed AS FROM other."my p-table"')
    given = {
        "a": 'other."my p-table"',
        "b": "viewed",
        "c": "(SELECT i::FLOAT AS i, v::TINYINT AS v, ub::DOUBLE AS ub FROM viewed)",
    }
    for name, text in given.items():
        con.execute(f"FROM sdc_store_ptable('{name}', '{text}')").fetchall()
        assert_gives(con, name, SMALL)


def test_zeros_need_no_row_and_intervals_of_probability_zero_are_dropped(con: duckdb.DuckDBPyConnection) -> None:
    # The interval of v = 0 has length 0. What tells it from that of v = 2 is its lower bound, or its probability.
    given = "(VALUES (1, 2, 0.5, 0.5, 1.0), (1, 0, 1.0, 0.0, 1.0), (1, -1, 0.0, 0.5, 0.5)) t(i, v, lb, p, ub)"
    for name, columns in (("lb", "i, v, lb, ub"), ("p", "i, v, p, ub"), ("both", "*")):
        assert store(con, name, f"SELECT {columns} FROM {given}") == (name, "counts", 2, 3, 10**8)
        assert_gives(con, name, [(1.0, [0.5, 1.0], [-1.0, 2.0])])


def test_bounds_may_be_whole_numbers_of_keys(con: duckdb.DuckDBPyConnection) -> None:
    given = "(VALUES (1, -1, 0, 7), (1, 1, 7, 100), (2, 0, 0, 100)) t(i, v, lb, ub)"
    assert store(con, "hundred", f"FROM {given}") == ("hundred", "counts", 3, 4, 100)
    rows = con.execute("SELECT key, sdc_ckm_count(1, key, ptable := 'hundred') FROM range(1000) t(key)").fetchall()
    assert rows == [(key, 0 if key % 100 < 7 else 2) for key in range(1000)]
    # What the catalog holds is such a table too.
    store(con, "copy", "FROM sdc.ptable_intervals WHERE name = 'default'")
    assert con.execute(
        "SELECT count(*) FROM (SELECT (hash(range) % 100000000)::BIGINT AS key, range % 9 AS n FROM range(5000)) "
        "WHERE sdc_ckm_count(n, key) <> sdc_ckm_count(n, key, ptable := 'copy')"
    ).fetchall() == [(0,)]


# --- tau-Argus -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_type", [False, True])
@pytest.mark.parametrize("options", ["delim = ';'", "delim = ';', all_varchar = true"])
def test_a_ptable_of_tau_argus(con: duckdb.DuckDBPyConnection, tmp_path: Path, with_type: bool, options: str) -> None:
    """Semicolons, blanks around the numbers, upper bounds only."""
    file = tmp_path / "ptable.txt"
    with file.open("w") as text:
        text.write("i;j;p;v;p_int_ub" + (";type" if with_type else "") + "\n")
        for i, j, p, v, _, ub in lines(SMALL):
            text.write(f"{i:5.0f};{j:5.0f};{p:12.8f};{v:4.0f} ;{ub:12.8f}  " + ("; all " if with_type else "") + "\n")
    assert store(con, "argus", f"FROM read_csv('{file}', {options})") == ("argus", "counts", 4, 12, 10**8)
    assert_gives(con, "argus", SMALL)


# --- ONS -------------------------------------------------------------------------------------------------------------


def ons_noise(last: int, keys: int) -> NDArray[np.int64]:
    """(last, keys) noise of every count and cell key, in no order."""
    generator = np.random.default_rng(1)
    noise = generator.integers(-3, 4, (last, keys))
    return np.maximum(noise, -np.arange(1, last + 1)[:, None])


def store_ons(con: duckdb.DuckDBPyConnection, name: str, noise: NDArray[np.int64]) -> tuple[object, ...]:
    last, keys = noise.shape
    table = {
        "pcv": np.repeat(np.arange(1, last + 1), keys),
        "ckey": np.tile(np.arange(keys), last),
        "pvalue": noise.ravel(),
    }
    con.register("_given", table)
    con.execute(f"CREATE OR REPLACE TABLE given_{name} AS FROM _given ORDER BY hash(pcv, ckey)")
    con.unregister("_given")
    return store(con, name, f"FROM given_{name}")


@pytest.mark.parametrize("keys", [256, 4096])
def test_a_ptable_of_ons(con: duckdb.DuckDBPyConnection, keys: int) -> None:
    """Record keys 0 to 255 or 4095; counts above 750 use row ((n - 1) % 250) + 501."""
    noise = ons_noise(750, keys)
    name, kind, rows, _, stored_keys = store_ons(con, "ons", noise)
    assert (name, kind, rows, stored_keys) == ("ons", "counts", 751, keys)
    generator = np.random.default_rng(2)
    n = np.concatenate([np.arange(1, 2001), generator.integers(1, 10**7, 3000)])
    key_sum = generator.integers(0, n * keys)
    con.register("cells", {"n": n, "key_sum": key_sum})
    columns = con.execute(
        "SELECT n, key_sum, sdc_ckm_count(n, key_sum, ptable := 'ons') AS n_hat FROM cells"
    ).fetchnumpy()
    con.unregister("cells")
    row = np.where(columns["n"] <= 750, columns["n"], (columns["n"] - 1) % 250 + 501)
    np.testing.assert_array_equal(columns["n_hat"], columns["n"] + noise[row - 1, columns["key_sum"] % keys])

    con.execute(
        f"CREATE TABLE records AS SELECT hash(range) % 200 AS cell, (hash(range, 1) % {keys})::SMALLINT AS record_key FROM range(4000) "
        f"UNION ALL SELECT 200 + range % 3, (hash(range, 2) % {keys})::SMALLINT FROM range(5000)"
    )
    columns = con.execute(
        "SELECT count(*) AS n, sum(record_key)::BIGINT AS key, sdc_count(record_key, ptable := 'ons') AS n_hat FROM records GROUP BY cell"
    ).fetchnumpy()
    row = np.where(columns["n"] <= 750, columns["n"], (columns["n"] - 1) % 250 + 501)
    np.testing.assert_array_equal(columns["n_hat"], columns["n"] + noise[row - 1, columns["key"] % keys])


def test_the_text_of_an_ons_file_is_read_too(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file = tmp_path / "ons.csv"
    noise = ons_noise(4, 256)
    with file.open("w") as text:
        text.write("pcv,ckey,pvalue\n")
        text.writelines(f"{i + 1}, {key}, {noise[i, key]}\n" for i in range(4) for key in range(256))
    assert store(con, "ons", f"FROM read_csv('{file}', all_varchar = true)")[2:] == (
        5, 1 + sum(1 + int((np.diff(row) != 0).sum()) for row in noise), 256
    )  # fmt: skip
    # Fewer than 750 rows: the last one serves all larger counts.
    rows = con.execute("SELECT sdc_ckm_count(1000, key, ptable := 'ons') FROM range(256) t(key)").fetchall()
    assert [row[0] - 1000 for row in rows] == noise[3].tolist()


def test_units_with_several_rows_count_once_whatever_the_number_of_keys(con: duckdb.DuckDBPyConnection) -> None:
    # 60 000 units whose keys add up to more than 10^8, which is no multiple of 4096 or 1000.
    store_ons(con, "ons", ons_noise(3, 4096))
    store(con, "thousand", "SELECT 1 AS i, unnest([-1, 1]) AS v, unnest([500, 1000]) AS ub")
    con.execute(
        "CREATE TABLE people AS SELECT range AS id, (hash(range) % 4096)::INTEGER AS record_key FROM range(60000)"
    )
    con.execute("CREATE TABLE visits AS FROM people UNION ALL FROM people WHERE id % 3 = 0")
    for name in ("ons", "thousand", "default"):
        for digits in (4, 8, 12):
            (once,) = con.execute(
                f"SELECT sdc_count(record_key, ptable := '{name}', digits := {digits}) FROM people"
            ).fetchall()
            (units,) = con.execute(
                f"SELECT sdc_count_units(id, record_key, ptable := '{name}', digits := {digits}) FROM visits"
            ).fetchall()
            assert units == once, (name, digits)


def test_an_empty_cell_is_zero_whatever_the_form_of_the_table(con: duckdb.DuckDBPyConnection) -> None:
    store_ons(con, "ons", ons_noise(750, 256))
    store(con, "small", "FROM (VALUES (1, -1, 0.5), (1, 1, 1.0)) t(i, v, ub)")
    con.execute("CREATE TABLE people AS SELECT 1 AS id, 2 AS record_key")
    for name in ("default", "small", "ons"):
        row = con.execute(
            f"""SELECT sdc_count(record_key, ptable := '{name}', filter := id = 5),
                sdc_count_units(id, record_key, ptable := '{name}', filter := id = 5),
                sdc_weighted_count(id, record_key, ptable := '{name}', filter := id = 5),
                sdc_ckm_count(0, NULL, ptable := '{name}'), sdc_ckm_count(0, 200, ptable := '{name}') FROM people"""
        ).fetchall()
        assert row == [(0, 0, 0, 0, 0)], name
        assert con.execute(f"SELECT sdc_count(record_key, ptable := '{name}') FROM people WHERE false").fetchall() == [
            (0,)
        ]


# --- Magnitudes ------------------------------------------------------------------------------------------------------

EVEN = [(1.0, [0.5, 1.0], [-0.5, 0.5]), (4.0, [0.25, 0.5, 0.75, 1.0], [-2.0, -0.5, 0.5, 2.0])]
ODD = [(1.0, [0.3, 0.7, 1.0], [-1.0, 0.0, 1.0]), (3.0, [0.5, 1.0], [-1.5, 1.5]), (6.0, [0.5, 1.0], [3.0, -3.0])]


def magnitude_noise(rows: list[Row], a: float, key: int) -> float:
    """Linear interpolation between the rows, and the last row beyond it."""
    at_row = [
        noise[int(np.searchsorted(np.rint(np.array(bounds) * 1e8), key, side="right"))] for _, bounds, noise in rows
    ]
    return float(np.interp(a, [i for i, _, _ in rows], at_row))


def test_even_and_odd_rows_serve_cells_by_their_number_of_contributors(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE parity (i DOUBLE, j DOUBLE, p DOUBLE, v DOUBLE, p_int_lb DOUBLE, p_int_ub DOUBLE, type VARCHAR)"
    )
    for kind, rows in (("even", EVEN), ("ODD ", ODD)):
        con.executemany("INSERT INTO parity VALUES (?, ?, ?, ?, ?, ?, ?)", [(*line, kind) for line in lines(rows)])
    assert store(con, "parity", "FROM parity") == ("parity", "magnitudes", 7, 15, 10**8)
    con.execute(
        """CREATE TABLE records AS SELECT (hash(range, 1) % 300) AS cell, (hash(range, 2) % 100000000)::INTEGER AS record_key,
            (1 + hash(range, 3) % 900)::INTEGER AS y FROM range(900)"""
    )
    parities = set()
    for n, key, x, largest, x_hat in con.execute(
        """SELECT count(*), sdc_cell_key(record_key), sum(y)::BIGINT, max(y), sdc_sum(y, record_key, ptable := 'parity', p_large := 0.5)
        FROM records GROUP BY cell"""
    ).fetchall():
        delta = min(x, largest * 0.5)
        noise = magnitude_noise(ODD if n % 2 else EVEN, max(1, x / delta), key)
        assert x_hat == pytest.approx(x + delta * noise, rel=1e-12)
        parities.add(n % 2)
    assert parities == {0, 1}
    check = con.execute("SELECT type, i, p_mean, p_var FROM sdc_ptable_check('parity')").fetchall()
    assert check == [
        ("even", 0, 0, 0), ("even", 1, 0, 0.25), ("even", 4, 0, 2.125),
        ("odd", 0, 0, 0), ("odd", 1, 0, 0.6), ("odd", 3, 0, 2.25), ("odd", 6, 0, 9),
    ]  # fmt: skip


def test_whole_numbers_may_be_a_table_for_magnitudes(con: duckdb.DuckDBPyConnection) -> None:
    given = "(VALUES (1, -1, 0.5), (1, 1, 1.0), (2, -2, 0.5), (2, 2, 1.0)) t(i, v, ub)"
    assert store(con, "counted", f"FROM {given}")[1] == "counts"
    assert store(con, "measured", f"FROM {given}", ", kind := 'magnitudes'")[1] == "magnitudes"
    assert con.execute("SELECT sdc_ckm_sum(100, [10], 3, ptable := 'measured')").fetchall() == [(98.0,)]
    assert "is for counts" in error(con, "SELECT sdc_ckm_sum(100, [10], 3, ptable := 'counted')")


# --- What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("SELECT 1 AS i, 0 AS v", "there is no column 'ub'"),
        ("SELECT 1 AS i, 1 AS ub, 0 AS noise", "there is no column 'v'"),
        ("SELECT 1 AS original, 0 AS v, 1 AS ub", "there is no column 'i'"),
        ("SELECT 1 AS pcv, 0 AS ckey, 0 AS value", "there is no column 'i'"),
        ("SELECT 1 AS i, 0 AS v, 1 AS ub WHERE false", "is empty"),
        ("SELECT 1 AS pcv, 0 AS ckey, 0 AS pvalue WHERE false", "is empty"),
        ("FROM (VALUES (1, -1, 0.0, 0.4), (1, 1, 0.5, 1.0)) t(i, v, lb, ub)", "do not follow each other"),  # gap
        ("FROM (VALUES (1, -1, 0.0, 0.6), (1, 1, 0.5, 1.0)) t(i, v, lb, ub)", "do not follow each other"),  # overlap
        ("FROM (VALUES (1, -1, 0.0, 0.5), (1, -1, 0.0, 0.5), (1, 1, 0.5, 1.0)) t(i, v, lb, ub)", "do not follow each other"),
        ("FROM (VALUES (1, -1, 0.1, 0.5), (1, 1, 0.5, 1.0)) t(i, v, lb, ub)", "do not follow each other"),
        ("FROM (VALUES (1, -1, 0.5), (1, 0, 0.5), (1, 1, 1.0)) t(i, v, ub)", "two intervals of a row have the same upper bound"),
        ("FROM (VALUES (1, -1, 0.5), (1, 1, 1.0), (1, 1, 1.0)) t(i, v, ub)", "two intervals of a row have the same upper bound"),
        ("FROM (VALUES (1, -1, 0.5, 0.5), (1, -1, 0.5, 0.5), (1, 1, 0.5, 1.0)) t(i, v, p, ub)", "the probabilities p are not the lengths"),
        ("FROM (VALUES (1, -1, 0.5), (1, 1, 0.9)) t(i, v, ub)", "do not end at 1"),
        ("FROM (VALUES (1, -1, 0.5), (1, 1, 1.0), (2, 0, 0.7)) t(i, v, ub)", "do not end at 1"),
        ("FROM (VALUES (1, -1, -0.5), (1, 1, 1.0)) t(i, v, ub)", "do not end at 1"),
        ("FROM (VALUES (1, -1, 100), (1, 1, 256), (2, 0, 255)) t(i, v, ub)", "do not end at 1"),
        ("FROM (VALUES (1, -1, 0.5, 0.5), (1, 1, 0.4, 1.0)) t(i, v, p, ub)", "the probabilities p are not the lengths"),
        ("FROM (VALUES (1, -1, 0.5, 128), (1, 1, 0.4, 256)) t(i, v, p, ub)", "the probabilities p are not the lengths"),
        ("FROM (VALUES (1, -1, 0.5), (1, 1, 2.5)) t(i, v, ub)", "or are whole numbers of keys"),
        ("FROM (VALUES (1, -1, 1), (1, 1, 1000000000)) t(i, v, ub)", "more than 65536 cell keys"),
        ("FROM (VALUES (1, 0.5, 128), (1, -0.5, 256)) t(i, v, ub)", "upper bounds must go up to 1"),
        ("SELECT 1 AS i, -2 AS v, 1 AS ub", "a count would become negative"),
        ("FROM (VALUES (1, 0, 1), (2, -3, 1)) t(i, v, ub)", "a count would become negative"),
        ("FROM (VALUES (0, 1, 0.5), (0, -1, 1), (1, 0, 1)) t(i, v, ub)", "zeros must stay zeros"),
        ("FROM (VALUES (-1, 0, 1), (1, 0, 1)) t(i, v, ub)", "no row may be negative"),
        ("SELECT NULL AS i, 0 AS v, 1 AS ub", "the values of column 'i' must be numbers"),
        ("SELECT 1 AS i, 'nan'::DOUBLE AS v, 1 AS ub", "the values of column 'v' must be numbers"),
        ("SELECT 1 AS i, 'inf'::DOUBLE AS diff, 1 AS ub", "the values of column 'diff' must be numbers"),
        ("SELECT 1 AS i, 'a lot' AS v, 1 AS ub", "the values of column 'v' must be numbers"),
        ("SELECT 1 AS i, 0 AS v, NULL AS kum_p", "the values of column 'kum_p' must be numbers"),
        ("FROM (VALUES (1, -1, 'nan'::DOUBLE, 0.5), (1, 1, 0.5, 1.0)) t(i, v, lb, ub)", "the values of column 'lb' must be numbers"),
        ("FROM (VALUES (1, -1, NULL, 0.5), (1, 1, 0.5, 1.0)) t(i, v, p, ub)", "the values of column 'p' must be numbers"),
        ("SELECT 1 AS i, 0 AS v, 1 AS ub, 'odd' AS type", "type must be 'all' everywhere, or 'even' and 'odd'"),
        ("SELECT unnest([1, 2]) AS i, 0 AS v, 1 AS ub, unnest(['all', 'odd']) AS type", "type must be 'all' everywhere"),
        ("SELECT 1 AS i, 0 AS v, 1 AS ub, 'men' AS type", "type must be 'all' everywhere, or 'even' and 'odd'"),
        ("SELECT 1 AS pcv, unnest([0, 1, 1]) AS ckey, 0 AS pvalue", "one row for every pcv from 1 and every ckey from 0"),
        ("SELECT 1 AS pcv, unnest([0, 2]) AS ckey, 0 AS pvalue", "one row for every pcv from 1 and every ckey from 0"),
        ("SELECT 2 AS pcv, unnest([0, 1]) AS ckey, 0 AS pvalue", "one row for every pcv from 1 and every ckey from 0"),
        ("SELECT 1 AS pcv, unnest([0, -1]) AS ckey, 0 AS pvalue", "one row for every pcv from 1 and every ckey from 0"),
        ("SELECT 1 AS pcv, unnest([0, 1]) AS ckey, -2 AS pvalue", "a count would become negative"),
        ("SELECT 1 AS pcv, 0 AS ckey, 0 AS pvalue", "it has one cell key only"),
        ("SELECT 1 AS pcv, unnest([0, 1]) AS ckey, NULL AS pvalue", "must be whole numbers"),
        ("SELECT 1 AS pcv, unnest([0, 1]) AS ckey, 0.4 AS pvalue", "must be whole numbers"),
        ("SELECT 1.2 AS pcv, unnest([0, 1]) AS ckey, 0 AS pvalue", "must be whole numbers"),
        ("SELECT 1 AS pcv, unnest([0, 1]) AS ckey, 'nan'::DOUBLE AS pvalue", "must be whole numbers"),
        ("SELECT 1 AS pcv, unnest([0, 1]) AS ckey, 'inf'::DOUBLE AS pvalue", "must be whole numbers"),
        ("SELECT 1 AS pcv, range AS ckey, 0 AS pvalue FROM range(70000)", "more than 65536 cell keys"),
        ("SELECT i, v, ub FROM read_csv('nowhere.csv')", "No files found"),
    ],
)  # fmt: skip
def test_what_is_no_ptable_is_refused(lasting: duckdb.DuckDBPyConnection, given: str, message: str) -> None:
    """And the table of that name that was stored before stays what it was."""
    store(lasting, "x", "FROM sdc_ptable(D := 2, V := 1)")
    before = (
        lasting.execute("FROM sdc.ptables ORDER BY ALL").fetchall(),
        lasting.execute("FROM sdc.ptable_intervals ORDER BY ALL").fetchall(),
    )
    text = given.replace("'", "''")
    assert message in error(lasting, f"FROM sdc_store_ptable('x', '({text})')")
    after = (
        lasting.execute("FROM sdc.ptables ORDER BY ALL").fetchall(),
        lasting.execute("FROM sdc.ptable_intervals ORDER BY ALL").fetchall(),
    )
    assert after == before


# --- Names -----------------------------------------------------------------------------------------------------------

COUNTS = """SELECT n, key, sdc_ckm_count(n, key{}) AS n_hat
    FROM (SELECT range % 7 AS n, (hash(range) % 100000000)::BIGINT AS key FROM range(700)) ORDER BY ALL"""


def test_storing_replacing_listing_and_dropping(con: duckdb.DuckDBPyConnection) -> None:
    built_in = [("default", "counts", 10**8, 1), ("default_magnitude", "magnitudes", 10**8, 5)]
    listed = "SELECT name, kind, keys, step FROM sdc_ptables()"
    assert con.execute(listed).fetchall() == built_in
    store(con, "mine", "FROM sdc_ptable(D := 2, V := 1)")
    first = con.execute(COUNTS.format(", ptable := 'mine'")).fetchall()
    store(con, "other", "FROM sdc_ptable(D := 3, V := 1, kind := 'magnitudes', step := 4)")
    assert con.execute(listed).fetchall() == [
        *built_in,
        ("mine", "counts", 10**8, 1),
        ("other", "magnitudes", 10**8, 4),
    ]
    assert con.execute("SELECT origin FROM sdc_ptables() WHERE name = 'mine'").fetchall() == [
        ("stored from (FROM sdc_ptable(D := 2, V := 1))",)
    ]
    assert con.execute(COUNTS.format(", ptable := 'mine'")).fetchall() == first

    store(con, "mine", "FROM (VALUES (1, -1, 0.5), (1, 1, 1.0)) t(i, v, ub)")
    second = con.execute(COUNTS.format(", ptable := 'mine'")).fetchall()
    assert {n_hat - n for n, _, n_hat in second if n > 0} == {-1, 1}
    assert second != first
    assert con.execute("SELECT i, p_var FROM sdc_ptable_check('mine')").fetchall() == [(0, 0), (1, 1)]

    assert con.execute("FROM sdc_drop_ptable('mine')").fetchall() == [("mine",)]
    assert con.execute(listed).fetchall() == [*built_in, ("other", "magnitudes", 10**8, 4)]
    assert con.execute("SELECT count(*) FROM sdc.ptable_intervals WHERE name = 'mine'").fetchall() == [(0,)]
    assert error(con, COUNTS.format(", ptable := 'mine'")).endswith(
        "unknown p-table 'mine'; stored: default, default_magnitude, other (see sdc_store_ptable)"
    )
    assert "unknown p-table 'mine'" in error(con, "FROM sdc_drop_ptable('mine')")
    assert "unknown p-table 'NULL'" in error(con, COUNTS.format(", ptable := NULL"))


@pytest.mark.parametrize(
    "name", ["o'clock", 'with "quotes"', "Größe", "a name; with -- everything", "DEFAULT", "%", "a|b", "|;\t"]
)
def test_any_name_will_do(con: duckdb.DuckDBPyConnection, name: str) -> None:
    plain = con.execute(COUNTS.format("")).fetchall()
    quoted = name.replace("'", "''")
    store(con, quoted, "FROM (VALUES (1, 1, 1.0)) t(i, v, ub)")
    rows = con.execute(COUNTS.format(f", ptable := '{quoted}'")).fetchall()
    assert all(n_hat == (n + 1 if n else 0) for n, _, n_hat in rows)
    assert con.execute(COUNTS.format("")).fetchall() == plain
    assert con.execute("SELECT name FROM sdc_ptables() WHERE name NOT LIKE 'default%'").fetchall() == [(name,)]
    assert con.execute(f"SELECT ok FROM sdc_ptable_check('{quoted}') WHERE i = 1").fetchall() == [(False,)]
    assert f"stored: default, default_magnitude, {name} (see" in error(con, COUNTS.format(", ptable := 'nope'"))
    con.execute(f"FROM sdc_drop_ptable('{quoted}')").fetchall()
    assert con.execute(COUNTS.format("")).fetchall() == plain


def test_many_tables_and_names_from_a_column(con: duckdb.DuckDBPyConnection) -> None:
    """The numbers of all tables stand in lists: each table must find its own, whichever signs are in the names."""
    plain = con.execute(COUNTS.format("")).fetchall()
    names = ["one", "tw|o", "thr;ee", "fo\tur"]
    for shift, name in enumerate(names, 1):
        con.execute(f"FROM sdc_store_ptable('{name}', '(FROM (VALUES (1, {shift}, 1.0)) t(i, v, ub))')").fetchall()
    con.execute("FROM sdc_store_ptable('ons', '(SELECT v AS pcv, k AS ckey, 1 AS pvalue "
                "FROM range(1, 751) a(v), range(256) b(k))')").fetchall()  # fmt: skip
    for shift, name in enumerate(names, 1):
        assert con.execute(f"SELECT sdc_ckm_count(7, 12345678, ptable := '{name}')").fetchall() == [(7 + shift,)]
    assert con.execute("SELECT sdc_ckm_count(7, 3, ptable := 'ons')").fetchall() == [(8,)]
    assert con.execute(COUNTS.format("")).fetchall() == plain
    con.execute("CREATE TABLE cells AS SELECT unnest(['one', 'tw|o', 'thr;ee', 'ons', 'fo\tur']) AS p, 5 AS n")
    found = con.execute("SELECT p, sdc_ckm_count(n, 99, ptable := p) FROM cells ORDER BY rowid").fetchall()
    assert found == [("one", 6), ("tw|o", 7), ("thr;ee", 8), ("ons", 6), ("fo\tur", 9)]
    numbers = ("modulus", "shift", "buckets", "step", "last_variance", "most")
    shown = ", ".join(f"_sdc_ptable_{number}(p)" for number in numbers)
    assert con.execute(f"SELECT {shown} FROM (VALUES ('nope'), (NULL)) t(p)").fetchall() == [(None,) * 6] * 2
    assert con.execute("SELECT _sdc_ptable_rows('default_magnitude'), _sdc_ptable_rows('one')").fetchall() == [
        ([0.0, 1.0, 3.0, 5.0], [])
    ]


def test_the_built_in_tables_cannot_be_broken_by_mistake(con: duckdb.DuckDBPyConnection) -> None:
    plain = con.execute(COUNTS.format("")).fetchall()
    assert plain == con.execute(COUNTS.format(", ptable := 'default'")).fetchall()
    for name in ("default", "default_magnitude"):
        for statement in (
            f"FROM sdc_store_ptable('{name}', '(FROM sdc_ptable(D := 2, V := 1))')",
            f"FROM sdc_drop_ptable('{name}')",
        ):
            assert "is a built-in p-table" in error(con, statement)
    assert con.execute("SELECT bool_and(ok) FROM sdc_ptable_check('default')").fetchall() == [(True,)]
    assert con.execute("SELECT bool_and(ok) FROM sdc_ptable_check('default_magnitude')").fetchall() == [(True,)]
    assert con.execute(COUNTS.format("")).fetchall() == plain


def test_storing_is_not_part_of_the_transaction_around_it(con: duckdb.DuckDBPyConnection) -> None:
    con.begin()
    con.execute("CREATE TABLE people AS SELECT 1 AS id")
    store(con, "mine", "FROM sdc_ptable(D := 2, V := 1)")
    con.rollback()
    assert con.execute("SELECT count(*) FROM sdc_ptables() WHERE name = 'mine'").fetchall() == [(1,)]
    assert con.execute("SELECT sdc_ckm_count(0, 0, ptable := 'mine')").fetchall() == [(0,)]


def test_the_check_of_a_small_table_worked_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    # 1: -1, 0, 1 with .25, .5, .25.  2: -2, 0, 1 with .1, .7, .2.  3: 0, 1 with .5 each, which is no noise of mean 0.
    given = [SMALL[0], SMALL[1], (3.0, [0.5, 1.0], [0.0, 1.0])]
    con.register("given", {"i": np.array([line[0] for line in lines(given)]), "v": np.array([line[3] for line in lines(given)]),
                           "ub": np.array([line[5] for line in lines(given)])})  # fmt: skip
    con.execute("CREATE TABLE small AS FROM given")
    con.unregister("given")
    con.execute("FROM sdc_store_ptable('small', 'small')").fetchall()
    rows = con.execute("FROM sdc_ptable_check('small')").fetchall()
    assert rows == [
        ("all", 0, 0, 0, 1, 1, True),
        ("all", 1, 0, 0.5, 1, 0.5, True),
        ("all", 2, 0, 0.6, 1, 0.7, True),
        ("all", 3, 0.5, 0.25, 1, 0.5, False),
    ]


# --- Parameters that no law satisfies --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ("D := 2, V := 3, js := 2", "js = 2 needs D >= 3 (a true count of 3 has no lower target but 0); D = 2 was asked; raise D or lower js"),
        ("D := 3, V := 1.5, js := 2", "js = 2 needs V >= 2 (the two-point law on -i and js+1-i, here on -1 and 2 for a true count of 1); V = 1.5 was asked"),
        ("D := 5, V := 0.5, js := 1", "js = 1 needs V >= 1"),
        ("D := 2, V := 3, optim := 4", "row i = 1: optim = 4 asks for the variance V = 3; reachable are"),
        ("D := 5, V := 1e-9", "a probability of 1e-08 or more of each of"),
        ("D := 3, V := 1, kind := 'magnitudes', step := 20", "D * step must be below 50; D = 3 and step = 20 give 60"),
    ],
)  # fmt: skip
def test_parameters_that_no_law_satisfies_are_an_error_that_says_why(
    con: duckdb.DuckDBPyConnection, parameters: str, reason: str
) -> None:
    assert reason in error(con, f"FROM sdc_ptable({parameters})")
    text = parameters.replace("'", "''")
    assert reason in error(con, f"FROM sdc_store_ptable('x', '(FROM sdc_ptable({text}))')")
    assert con.execute("SELECT count(*) FROM sdc_ptables()").fetchall() == [(2,)]


def test_some_rows_may_have_no_wanted_probability_of_staying(con: duckdb.DuckDBPyConnection) -> None:
    stay = "SELECT i, sum(p) FILTER (v = 0) FROM sdc_ptable(D := 4, V := 1{}) WHERE i > 0 GROUP BY i ORDER BY i"
    free = [p for _, p in con.execute(stay.format("")).fetchall()]
    some = [p for _, p in con.execute(stay.format(", pstay := [NULL, NULL, NULL, 0.6]")).fetchall()]
    assert some[:3] == free[:3]
    assert some[3] == pytest.approx(0.6, abs=1e-6)


def test_the_smallest_variance_that_blocked_ones_allow(con: duckdb.DuckDBPyConnection) -> None:
    """V = 1, js = 1: the R package rejects it; a true 1 becomes 0 or 2, and no published count is 1."""
    store(con, "tight", "FROM sdc_ptable(D := 3, V := 1, js := 1)")
    first = con.execute(
        "SELECT v, lb, ub FROM sdc.ptable_intervals WHERE name = 'tight' AND i = 1 ORDER BY lb"
    ).fetchall()
    assert first == [(-1, 0, 50_000_000), (1, 50_000_000, 100_000_000)]
    check = con.execute("SELECT i, p_mean, p_var, ok FROM sdc_ptable_check('tight') WHERE i > 0").fetchall()
    assert [i for i, *_ in check] == [1, 2, 3, 4, 5]
    assert all(ok and abs(mean) < 1e-7 and abs(variance - 1) < 1e-5 for _, mean, variance, ok in check)
    rows = con.execute(COUNTS.format(", ptable := 'tight'")).fetchall()
    assert 1 not in {n_hat for _, _, n_hat in rows}
    assert 1 in {n for n, _, _ in rows}


def test_a_key_sum_beyond_64_bits(con: duckdb.DuckDBPyConnection) -> None:
    beyond = 2**63
    store_ons(con, "ons", ons_noise(750, 256))
    told = error(con, f"SELECT sdc_ckm_count(10, {beyond}::HUGEINT, ptable := 'ons')")
    assert "a count needs one for counts (and, with keys of the ONS form, a sum of keys below 2^63)" in told
    # Other p-tables are for keys of any length: what is left of 2^63 modulo 10^8.
    asked = f"SELECT sdc_ckm_count(10, {beyond}::HUGEINT), sdc_ckm_count(10, {beyond % 10**8})"
    first, second = con.execute(asked).fetchall()[0]
    assert first == second
