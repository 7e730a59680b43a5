"""Cell for cell the same suppression as the R packages GaussSuppression 1.2.3 and SSBtools 1.8.6."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import builders
import duckdb
import numpy as np
import pandas as pd
import pytest

import sdcduck
from sdcduck.methods.suppression.decimals import decimals
from sdcduck.methods.suppression.differences import direct_disclosure_order
from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.nullspace import null_space, reveals

MUN = ["mun", "inj"]
Z3 = ["region", "hovedint", "mnd"]

# name: (count column, dimensions, zeros are singletons, zeros may be secondary, method)
COUNTS = {
    "ssc_mun_default": ("freq", MUN, True, False, "anySum"),
    "ssc_mun_nozeros": ("freq", MUN, False, False, "anySum"),
    "ssc_mun_intervals": ("freq", MUN, False, False, "anySum"),
    **{
        f"ssc_mun_{method}_pz{zeros}": ("freq", MUN, bool(zeros), False, method)
        for method in ("none", "anySum", "anySumNOTprimary", "subSum", "sub2Sum", "subSpace")
        for zeros in (0, 1)
        if (method, zeros) != ("subSpace", 1)
    },
    **{
        f"ssc_z3_{method}_pz1": ("ant", Z3, True, False, method)
        for method in ("none", "anySum", "anySumNOTprimary", "anySum0", "subSum", "sub2Sum", "subSpace")
    },
    "ssc_d2_dimvar": ("f", ["region"], True, False, "anySum"),
    "ssc_d2_formula": ("f", ["main_income", "region"], True, False, "anySum"),
    "ssc_d2_hier": ("f", ["main_income", "k_group"], True, False, "anySum"),
    "ssc_d2_all": ("freq", ["region", "main_income"], False, False, "anySum"),
    "ssc_d3_all": ("freq", ["region", "main_income", "months"], False, False, "anySum"),
    "ssc_example1": ("freq", ["age", "geo", "year"], True, False, "anySum"),
    "ssc_example1_zeros": ("freq", ["age", "geo", "year"], True, True, "anySumNOTprimary"),
    "ssc_z2_linked_formula": ("ant", ["region", "hovedint"], False, False, "anySum"),
}


@pytest.mark.parametrize("name", COUNTS)
def test_small_counts(reference_data: Path, name: str) -> None:
    freq, dimensions, zeros, secondary_zeros, method = COUNTS[name]
    built = builders.count_case(reference_data, name, freq, dimensions)
    singleton = (built.inner["count"] == (0 if zeros else 1)).to_numpy()
    order = built.order("count", secondary_zeros)
    result = suppress_secondary(built.x, order, built.primary, singleton=singleton, singleton_method=method)
    np.testing.assert_array_equal(result.secondary | built.primary, built.suppressed)


# name: (dimensions, contributor column, method)
MAGNITUDES = {
    "sdc_mag_p10": (["sector4", "geo"], "company", "numttHTT"),
    "sdc_mag_p10_intervals": (["sector4", "geo"], "company", "numttHTT"),
    "sdc_mag_nk_linked": (["geo", "sector4"], "company", "numttHTT"),
    "sdc_mag_nk_nocontrib": (["geo", "sector4"], None, "numttHTT"),
    "sdc_small_nk": (["v1"], None, "numttHTT"),
    "sdc_small_p7": (["v1"], None, "numttHTT"),
    "sdc_small_nk_few": (["v1"], None, "numttHTT"),
    "sdc_small_w": (["v1"], None, "numttHTT"),
    "sdc_d2v": (["region"], None, "numttHTT"),
    "sdc_d2v_formula": (["main_income", "region"], None, "numttHTT"),
    **{
        f"sdc_z2micro_{method}": (["region", "hovedint"], None, method)
        for method in ("none", "anySumNOTprimary", "sub2Sum", "subSumSpace", "num", "numFFF")
    },
    "sfc_d2": (["region"], "family_id", "numttHTT"),
    "sfc_d2_remove": (["main_income", "region"], "family_id", "numttHTT"),
    "sfc_mag": (["sector4", "geo"], "company", "numttHTT"),
}


@pytest.mark.parametrize("name", MAGNITUDES)
def test_magnitudes(reference_data: Path, name: str) -> None:
    dimensions, contributor, method = MAGNITUDES[name]
    ignored = tuple("123456789") if name == "sfc_d2_remove" else ()
    built, order, singleton = builders.magnitude_case(reference_data, name, dimensions, contributor, ignored)
    if ignored:
        # The reference publishes first what only consists of contributors that do not count.
        nobody = ((built.cells["nRule"] == 0) & (built.cells["nAll"] > 0)).to_numpy()[order]
        order = np.concatenate([order[nobody], order[~nobody]])
    result = suppress_secondary(built.x, order, built.primary, singleton=singleton, singleton_method=method)
    np.testing.assert_array_equal(result.secondary | built.primary, built.suppressed)


@pytest.mark.parametrize(
    ("problem", "output", "dimensions", "method"),
    [
        ("S2k", "S2k_freq", ["r3", "i3"], "anySum"),
        ("S10k", "S10k_freq", ["r3", "i3"], "anySum"),
        ("S10k", "S10k_freqnosing", ["r3", "i3"], "none"),
        ("L4k", "L4k_formula", ["r3", "i2", "sex", "age"], "anySum"),
    ],
)
def test_large_tables(reference_data: Path, problem: str, output: str, dimensions: list[str], method: str) -> None:
    built = builders.big_case(reference_data, problem, output, dimensions)
    singleton = (built.inner["freq"] == 1).to_numpy()
    result = suppress_secondary(built.x, built.order(), built.primary, singleton=singleton, singleton_method=method)
    np.testing.assert_array_equal(result.secondary | built.primary, built.suppressed)


def test_linked_tables_of_2000_inner_cells(reference_data: Path) -> None:
    x, candidates, primary, _ = builders.linked_instance(reference_data, "2k")
    result = suppress_secondary(x, candidates, primary, singleton_method="none")
    expected = np.loadtxt(reference_data / "big" / "linked_2k_secondary.csv", skiprows=1, dtype=np.int64)
    np.testing.assert_array_equal(np.flatnonzero(result.secondary), np.sort(expected))


def test_direct_disclosure(reference_data: Path) -> None:
    """With the inner cells as they come in the input: which zero is the last one left depends on their order."""
    inner = builders.inner_data(reference_data, "z3").rename(columns={"ant": "count"})
    built = builders.case(reference_data, "sdd_z3", inner, Z3)
    freq = built.x.totals(inner["count"].to_numpy(dtype=np.int64))
    zeros = (inner["count"] == 0).to_numpy()
    order = direct_disclosure_order(freq)
    result = suppress_secondary(built.x, order, built.primary, singleton=zeros, singleton_method="anySumNOTprimary")
    np.testing.assert_array_equal(result.secondary | built.primary, built.suppressed)


def whole(built: builders.Case, published: np.ndarray, values: np.ndarray | None) -> np.ndarray:
    """Which cells come out whole in all of three replicates of decimals."""
    draws = decimals(built.x, null_space(built.x, published), values, replicates=3, seed=1)
    sums = np.column_stack([built.x.totals(column) for column in draws.T])
    result: np.ndarray = (np.abs(sums - np.round(sums)) < 1e-7).all(axis=1)
    return result


def test_decimals_of_counts(reference_data: Path) -> None:
    """The same cells suppressed, and the same cells whole, in numbers drawn apart from each other."""
    built = builders.count_case(reference_data, "dec_example1", "freq", ["age", "geo"])
    counts = built.inner["count"].to_numpy(dtype=np.int64)
    order, zeros = built.order("count"), counts == 0
    result = suppress_secondary(built.x, order, built.primary, singleton=zeros, singleton_method="anySum")
    np.testing.assert_array_equal(result.secondary | built.primary, built.suppressed)
    answer = built.cells["freqDec"].to_numpy()
    np.testing.assert_array_equal(whole(built, ~built.suppressed, counts), np.abs(answer - np.round(answer)) < 1e-7)


def test_decimals_of_magnitudes(reference_data: Path) -> None:
    answer = builders.reference_cells(reference_data, "dec_magnitude1")
    answer = answer[answer["isPublish"] == 1].reset_index(drop=True)
    records = builders.inner_data(reference_data, "magnitude1")
    built, order, singleton = builders.magnitudes_of(records, answer, ["geo", "sector4"], "company")
    result = suppress_secondary(built.x, order, built.primary, singleton=singleton, singleton_method="numttHTT")
    np.testing.assert_array_equal(result.secondary | built.primary, built.suppressed)
    np.testing.assert_array_equal(whole(built, ~built.suppressed, None), np.abs(answer["freqDec"].to_numpy()) < 1e-7)


@pytest.mark.parametrize("how", ["local", "localbdiag"])
def test_linked_tables_one_by_one(reference_data: Path, how: str) -> None:
    for built, order, singleton in builders.linked_magnitudes(reference_data, how):
        result = suppress_secondary(built.x, order, built.primary, singleton=singleton, singleton_method="numttHTT")
        np.testing.assert_array_equal(result.secondary | built.primary, built.suppressed)


LINKED = {"local": 7, "localbdiag": 7, "consistent": 5, "superconsistent": 0, "backtracking": 5}


@pytest.mark.parametrize("how", LINKED)
def test_linked_tables_at_once(reference_data: Path, how: str) -> None:
    """All tables protected at once, as here, is the reference's super-consistent way cell for cell.

    Its other ways protect the tables apart and differ: put side by side, the cells they publish give primary cells away.
    """
    built, order, singleton = builders.linked_magnitudes_at_once(reference_data, how)
    result = suppress_secondary(built.x, order, built.primary, singleton=singleton, singleton_method="numttHTT")
    ours = result.secondary | built.primary
    revealed = reveals(null_space(built.x, ~built.suppressed), built.x, np.flatnonzero(built.primary))
    assert len(revealed) == LINKED[how]
    assert (ours == built.suppressed).all() == (how == "superconsistent")
    assert not len(reveals(null_space(built.x, ~ours), built.x, np.flatnonzero(ours)))


def test_linked_tables_of_counts_one_by_one(reference_data: Path) -> None:
    """The reference's local way is what each table gives on its own."""
    for built in builders.linked_counts(reference_data):
        single = (built.inner["freq"] == 1).to_numpy()
        result = suppress_secondary(built.x, built.order(), built.primary, singleton=single)
        np.testing.assert_array_equal(result.secondary | built.primary, built.suppressed)


def test_linked_tables_of_counts_at_once(reference_data: Path) -> None:
    """All tables at once are one formula of the reference, cell for cell. Here, unlike in the magnitudes above, nothing
    follows from what the local way publishes; that takes no account of other tables, so it happens to be so."""
    built = builders.linked_counts_at_once(reference_data)
    single = (built.inner["freq"] == 1).to_numpy()
    result = suppress_secondary(built.x, built.order(), built.primary, singleton=single)
    codes = ["r3", "i2", "sex", "age"]
    formula = builders.big_case(reference_data, "L4k", "L4k_formula", codes).cells.set_index(codes)["suppressed"]
    expected = formula.loc[[*built.cells[codes].itertuples(index=False, name=None)]].to_numpy() == 1
    np.testing.assert_array_equal(result.secondary | built.primary, expected)
    local = np.flatnonzero(built.suppressed)
    assert not len(reveals(null_space(built.x, ~built.suppressed), built.x, local))


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = sdcduck.connect()
    yield connection
    connection.close()


ACCIDENTS = {"mun": ["mun"], "inj": ["inj"]}
LINKED_SECTORS = {"geo": ["geo", "eu"], "sector4": ["sector4", "sector2"]}
LINKED_SETS = [("sector2", "geo"), ("sector2",), ("geo",), (), ("sector4", "eu"), ("sector4",), ("eu",)]
OF_REGIONS = {"region": ["region", "fylke", "kostragr"], "hovedint": ["hovedint"]}
OF_MONTHS = {
    "region": ["region", "county", "k_group"],
    "main_income": ["main_income"],
    "months": ["months", "months2"],
}

# name: (input, count column, dimensions with their levels, grouping sets if they are not all combinations, arguments)
IN_SQL: dict[str, tuple[str, str | None, dict[str, list[str]], list[tuple[str, ...]] | None, str]] = {
    **{
        name: (
            "mun_accidents",
            "freq",
            ACCIDENTS,
            None,
            f"max_count := 3, protect_zeros := {zeros}, singleton := '{m}'",
        )
        for name, (_, dimensions, zeros, _, m) in COUNTS.items()
        if dimensions == MUN and "_pz" in name
    },
    **{f"skd_mun_c{k}": ("mun_accidents", "freq", ACCIDENTS, None, f"k_disclosure := {k}") for k in range(4)},
    **{
        name: (
            "z3",
            "ant",
            {**OF_REGIONS, "mnd": ["mnd", "mnd2"]},
            None,
            f"max_count := 3, protect_zeros := true, singleton := '{method}'",
        )
        for name, (_, dimensions, _, _, method) in COUNTS.items()
        if dimensions == Z3
    },
    "ssc_d3_all": ("d3", "freq", OF_MONTHS, None, "max_count := 3, extend_zeros := true"),
    "sdc_mag_p10": (
        "magnitude1",
        None,
        {"sector4": ["sector4"], "geo": ["geo"]},
        None,
        "p_percent := 10, contributor := 'company', extend_zeros := true",
    ),
    "sdc_mag_nk_linked": (
        "magnitude1",
        None,
        LINKED_SECTORS,
        LINKED_SETS,
        "dominance := [(1, 80), (2, 99)], contributor := 'company'",
    ),
    "sdc_mag_nk_nocontrib": ("magnitude1", None, LINKED_SECTORS, LINKED_SETS, "dominance := [(1, 80), (2, 99)]"),
    "sfc_mag": (
        "magnitude1",
        None,
        {"sector4": ["sector4", "sector2"], "geo": ["geo", "eu"]},
        None,
        "min_contributors := 3, contributor := 'company', extend_zeros := true",
    ),
    **{
        name: (
            "z2_micro",
            None,
            OF_REGIONS,
            None,
            f"dominance := [(1, 65), (2, 85)], extend_zeros := true, singleton := '{method}'",
        )
        for name, (_, _, method) in MAGNITUDES.items()
        if name.startswith("sdc_z2micro")
    },
}


@pytest.mark.parametrize("name", IN_SQL)
def test_the_same_cells_in_sql(con: duckdb.DuckDBPyConnection, reference_data: Path, name: str) -> None:
    """From the records to the suppressed table, as a custodian writes it."""
    file, count, dimensions, sets, arguments = IN_SQL[name]
    con.register("frame", builders.inner_data(reference_data, file))
    con.execute("CREATE OR REPLACE TABLE records AS FROM frame")
    # A category of the reference without records stays a category.
    source = "records" if count is None else f"records LEFT JOIN range(10000) units(unit) ON unit < {count}"
    numbers = "count(*) AS n, sum(value) AS value" if count is None else "count(unit) AS n"
    every = itertools.product(*([*levels, ""] for levels in dimensions.values()))
    chosen = sets or [tuple(level for level in levels if level) for levels in every]
    grouping = ", ".join(f"({', '.join(columns)})" for columns in chosen)
    columns = ", ".join(level for levels in dimensions.values() for level in levels)
    query = f"SELECT {columns}, {numbers} FROM {source} GROUP BY GROUPING SETS ({grouping})"
    codes = ", ".join(f"coalesce({', '.join(levels)}, 'Total')" for levels in dimensions.values())
    found = con.execute(
        f"SELECT {codes}, status = 'primary', suppressed FROM sdc_suppress($${query}$$, {arguments}, "
        "protect_intervals := false, improve := false)"
    ).fetchall()
    answer = pd.read_csv(reference_data / "gausssuppression" / f"{name}.csv", dtype=dict.fromkeys(dimensions, str))
    rows = answer[[*dimensions, "primary", "suppressed"]].itertuples(index=False, name=None)
    assert sorted(found) == sorted((*row[:-2], row[-2] == 1, row[-1] == 1) for row in rows)


def test_weights_in_sql(con: duckdb.DuckDBPyConnection, reference_data: Path) -> None:
    """Totals are weighted for the rule, and the candidates in the order of their unweighted values."""
    con.register("frame", builders.inner_data(reference_data, "dominance_small"))
    con.execute("CREATE OR REPLACE TABLE records AS FROM frame")
    found = con.execute(
        "SELECT coalesce(v1, 'Total'), status = 'primary', suppressed FROM sdc_suppress($$ "
        "SELECT v1, count(*) AS n, sum(num) AS num FROM records GROUP BY ROLLUP (v1) $$, "
        "dominance := [(1, 80), (2, 70)], weight := 'sweight')"
    ).fetchall()
    answer = pd.read_csv(reference_data / "gausssuppression" / "sdc_small_w.csv")
    rows = answer[["v1", "primary", "suppressed"]].itertuples(index=False, name=None)
    assert sorted(found) == sorted((name, primary == 1, suppressed == 1) for name, primary, suppressed in rows)
