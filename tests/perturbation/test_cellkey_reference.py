"""Every perturbed count, magnitude, cell key and measure of R package cellKey 1.0.3, from the same record keys.

Reference: ``shared/data/cellkey`` (4580 records, sex x age with totals) and ``shared/data/big`` (1 million records).
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sdcduck

COUNT_VARIABLES = ("total", "cnt_females", "cnt_males", "cnt_highincome")
COUNT_PTABLES = ("D5V3js1", "D8V3js2", "ex_cnts")

# cellKey's cases as arguments of sdc_sum. `compat` because the reference forgets epsilon below the flex point and
# applies mu_c to every component (specification 06, 2.3, steps 2 and 5).
MAGNITUDE_CASES = {
    "flex_top3": "ptable := 'all', fp := 1000, p_small := 0.30, p_large := 0.03, q := 3, epsilon := [1, 0.5, 0.2]",
    "flex_top3_sep": "ptable := 'all', small_cells := 'small', fp := 1000, p_small := 0.15, p_large := 0.02, q := 3, "
    "epsilon := [1, 0.4, 0.15]",
    "simple_mean_parity": "ptable := 'parity', small_cells := 'small', magnifier := 'mean', p_large := 0.25",
    "simple_sum": "ptable := 'all', magnifier := 'sum', p_large := 0.05",
    "simple_range": "ptable := 'all', magnifier := 'range', p_large := 0.25",
    "flex_top1": "ptable := 'all', fp := 1000, p_small := 0.30, p_large := 0.03, q := 2, epsilon := [1]",
}


@pytest.fixture(scope="module")
def cellkey(reference_data: Path) -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect()
    folder = reference_data / "cellkey"
    con.execute(
        "CREATE TABLE micro AS SELECT *, round(rkey * 1e8)::INTEGER AS record_key "
        f"FROM read_csv('{folder}/micro.csv.gz')"
    )
    for name in COUNT_PTABLES:
        con.execute(f"FROM sdc_store_ptable('{name}', '(FROM read_csv(''{folder}/ptable_{name}.csv''))')")
    examples = reference_data / "ptable" / "example_ptables.csv"
    for name, problem, part in (
        ("all", "pt_ex_nums_parity1_separation0", "coalesce(part, ''all'') = ''all''"),
        ("small", "pt_ex_nums_parity1_separation1", "part = ''small_cells''"),
        ("parity", "pt_ex_nums_parity0_separation0", "part IN (''even'', ''odd'')"),
    ):
        query = (
            f"(SELECT * EXCLUDE (type), CASE WHEN part IN (''even'', ''odd'') THEN part ELSE ''all'' END AS type "
            f"FROM read_csv(''{examples}'') WHERE problem = ''{problem}'' AND {part})"
        )
        con.execute(f"FROM sdc_store_ptable('{name}', '{query}', kind := 'magnitudes')")
    for table in ("all_cnts", "all_cnts_mods", "all_nums", "all_nums_mods"):
        con.execute(f"CREATE TABLE {table} AS FROM read_csv('{folder}/{table}.csv.gz')")
    return con


def cells(select: str) -> str:
    return f"SELECT coalesce(sex, 'Total') AS sex, coalesce(age, 'Total') AS age, {select} FROM micro GROUP BY CUBE (sex, age)"


@pytest.mark.parametrize("weight", ["unweighted", "weighted"])
@pytest.mark.parametrize("ptable", COUNT_PTABLES)
@pytest.mark.parametrize("variable", COUNT_VARIABLES)
def test_counts(cellkey: duckdb.DuckDBPyConnection, variable: str, ptable: str, weight: str) -> None:
    which = "true" if variable == "total" else f"{variable} = 1"
    protected = cells(
        f"sdc_count(record_key, ptable := '{ptable}', filter := {which}) AS n, "
        f"sdc_weighted_count(sampling_weight, record_key, ptable := '{ptable}', filter := {which}) AS weighted, "
        f"sdc_cell_key(record_key, filter := {which}) AS cell_key"
    )
    rows = cellkey.execute(
        f"""SELECT n, puwc, {"weighted" if weight == "weighted" else "n"}, pwc, coalesce(cell_key, 0) / 1e8, ckey
        FROM ({protected}) JOIN all_cnts USING (sex, age) JOIN all_cnts_mods USING ("case", sex, age)
        WHERE "case" = 'cnts_{weight}_{ptable}' AND vname = '{variable}' AND countvar = vname"""
    ).fetchall()
    if not rows:
        pytest.skip("the reference has no output for this case")
    assert len(rows) == 21
    for n, expected_n, value, expected, key, expected_key in rows:
        assert n == expected_n
        assert value == pytest.approx(expected, rel=1e-9)
        assert key == pytest.approx(expected_key, abs=1e-9)


@pytest.mark.parametrize("weight", ["unweighted", "weighted"])
@pytest.mark.parametrize("variant", MAGNITUDE_CASES)
@pytest.mark.parametrize("zero_keys", [False, True])
@pytest.mark.parametrize("same_key", [False, True])
def test_magnitudes(
    cellkey: duckdb.DuckDBPyConnection, variant: str, weight: str, zero_keys: bool, same_key: bool
) -> None:
    case = f"nums_{weight}_{variant}_zerork{zero_keys:d}_samekey{same_key:d}"
    variables = [
        row[0]
        for row in cellkey.execute(
            'SELECT DISTINCT vname FROM all_nums WHERE "case" = ? ORDER BY vname', [case]
        ).fetchall()
    ]
    if not variables:
        pytest.skip("the reference has no output for this case")
    for y in variables:
        call = (
            f"sdc_sum({y}, record_key"
            if weight == "unweighted"
            else f"sdc_weighted_sum({y}, sampling_weight, record_key"
        )
        # supp_freq(income, n = 14): cells of income with fewer than 14 records are sensitive, with mu_c = 2.
        sensitive = "count(*) < 14" if y == "income" else "false"
        protected = cells(
            f"{call}, {MAGNITUDE_CASES[variant]}, zero_keys := {zero_keys}, same_key := {same_key}, mu_c := 2, "
            f"sensitive := {sensitive}, compat := true) AS value"
        )
        rows = cellkey.execute(
            f"""SELECT sex, age, value, pws FROM ({protected}) JOIN all_nums USING (sex, age)
            WHERE "case" = '{case}' AND vname = '{y}'"""
        ).fetchall()
        assert len(rows) == 21
        for sex, age, value, expected in rows:
            assert value == pytest.approx(expected, rel=1e-9), (y, sex, age)


def test_cell_keys_of_magnitudes(cellkey: duckdb.DuckDBPyConnection) -> None:
    """Of every case, variable, cell and component: the key of the records that contribute, or of all of them (zerork1),
    its digits rotated once for each component before it, and once more without samekey1.

    The reference rotates the text of a floating-point number, without zeros at its end (specification 06, 2.3) and with
    what rounding left there: the last digits of a rotated key may differ.
    """
    variables = [row[0] for row in cellkey.execute("SELECT DISTINCT numvar FROM all_nums_mods ORDER BY 1").fetchall()]
    keys = " UNION ALL ".join(
        f"SELECT '{y}' AS numvar, {zero_keys} AS zero_keys, * FROM ("
        + cells(f"sdc_cell_key(record_key, filter := {zero_keys} OR {y} <> 0) AS cell_key")
        + ")"
        for y in variables
        for zero_keys in ("true", "false")
    )
    compared, of_cells, of_components = cellkey.execute(
        f"""WITH components AS (
            SELECT *, contains("case", 'zerork1') AS zero_keys,
                row_number() OVER (PARTITION BY "case", numvar, sex, age ORDER BY rowid)
                    - contains("case", 'samekey1')::INTEGER AS turns
            FROM all_nums_mods)
        SELECT count(*), max(off) FILTER (turns = 0), max(off)
        FROM (
            SELECT *, abs(_sdc_rotated_key(cell_key, turns) / 1e8 - ckey) AS off
            FROM ({keys}) JOIN components USING (numvar, zero_keys, sex, age))"""
    ).fetchall()[0]
    assert compared == cellkey.execute("SELECT count(*) FROM all_nums_mods").fetchall()[0][0]
    assert of_cells < 1e-9
    assert of_components < 1e-4


@pytest.mark.parametrize("weight", ["unweighted", "weighted"])
@pytest.mark.parametrize("ptable", COUNT_PTABLES)
def test_utility_measures(cellkey: duckdb.DuckDBPyConnection, reference_data: Path, ptable: str, weight: str) -> None:
    """Of the counts themselves, also in the reference's cases with weights."""
    expected = json.loads((reference_data / "cellkey" / f"cnts_{weight}_{ptable}_measures.json").read_text())
    tables = (
        "'(" + cells("count(*) AS n").replace("'", "''") + ")', "
        "'("
        + cells(f"sdc_count(record_key, ptable := '{ptable}') AS n").replace("'", "''")
        + ")', dimensions := ['sex', 'age']"
    )
    result = cellkey.execute(f"FROM sdc_count_utility({tables}, exclude_zeros := {expected['exclude_zeros']})")
    names = [column[0] for column in result.description or []]
    ours = {row[0]: dict(zip(names, row, strict=True)) for row in result.fetchall()}
    for line in expected["measures"]:
        for distance in ("d1", "d2", "d3"):
            assert ours[distance][line["what"].lower()] == pytest.approx(line[distance], abs=5.1e-4)
    noise = cellkey.execute(f"SELECT noise, cells, share FROM sdc_noise_distribution({tables})").fetchall()
    # The reference prints original minus perturbed.
    assert sorted((-value, cells_, round(share, 9)) for value, cells_, share in noise) == sorted(
        (int(line["noise"]), line["cnt"], round(line["pct"], 9)) for line in expected["overview"]
    )
    row = cellkey.execute(f"SELECT false_zero, false_nonzero FROM sdc_table_risk_utility({tables})").fetchall()
    assert row == [(expected["false_zero"], expected["false_nonzero"])]


@pytest.fixture(scope="module")
def million(reference_data: Path) -> duckdb.DuckDBPyConnection:
    """The million records of the reference timings. Their keys are doubles: 15 digits of them decide every interval."""
    folder = reference_data / "big"
    spec = importlib.util.spec_from_file_location("gen_big", folder / "gen_big.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    data = generator.build(1_000_000)
    con = sdcduck.connect()
    records = pa.table(
        {
            "r3": data["r4p"][data["r4"]].astype(np.int32),
            "i2": data["i3p"][data["i3"]].astype(np.int32),
            "sex": data["sex"].astype(np.int8),
            "record_key": np.floor(data["rkey"] * 1e15).astype(np.int64),
            "r2": data["r3p"][data["r4p"][data["r4"]]].astype(np.int32),
        }
    )
    con.register("records", records)
    con.execute("CREATE TABLE people AS FROM records")
    con.unregister("records")
    con.execute(f"CREATE TABLE reference AS FROM read_csv('{folder}/out_cellkey_1M_counts.csv.gz')")
    con.execute("FROM sdc_store_ptable('D5V3js1', '(FROM sdc_ptable(D := 5, V := 3, js := 1))')")
    return con


def test_a_million_records(million: duckdb.DuckDBPyConnection) -> None:
    assert million.execute("SELECT count(*) FROM reference").fetchall() == [(28_413,)]
    rows = million.execute(
        """
        WITH protected AS (
            SELECT r2, r3, i2, sex, count(*) AS n, sdc_count(record_key, ptable := 'D5V3js1', digits := 15) AS n_hat
            FROM people
            GROUP BY GROUPING SETS ((), (r2), (r2, r3), (i2), (r2, i2), (r2, r3, i2),
                                    (sex), (r2, sex), (r2, r3, sex), (i2, sex), (r2, i2, sex), (r2, r3, i2, sex))
        )
        SELECT n, n_hat, count(*) FROM protected GROUP BY ALL ORDER BY ALL"""
    ).fetchall()
    expected = million.execute(
        "SELECT uwc::BIGINT, puwc::BIGINT, count(*) FROM reference WHERE uwc > 0 GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert rows == expected
