"""Propensity scores, tables, columns and ratios of counts: worked examples, figures of synthpop, and identities."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdcduck
from sdcduck.methods.utility.logit import Design, Term
from sdcduck.methods.utility.propensity import propensity
from sdcduck.methods.utility.tables import (
    group_breaks,
    joint_counts,
    kolmogorov_smirnov,
    separation,
    separation_of_records,
    table_measures,
)
from sdcduck.methods.utility.tree import leaf_shares

FAIR = ["rate_marriage", "age", "yrs_married", "children", "religious", "educ", "occupation", "occupation_husb"]


@pytest.fixture(scope="module")
def fair() -> duckdb.DuckDBPyConnection:
    """The survey that comes with statsmodels; rows in turn are the original and the synthetic records."""
    datasets = pytest.importorskip("statsmodels.api").datasets
    frame = datasets.fair.load_pandas().data
    con = sdcduck.connect()
    con.register("frame", frame)
    con.execute("CREATE TABLE whole AS SELECT *, row_number() OVER () - 1 AS row FROM frame")
    con.execute("CREATE VIEW even AS SELECT * EXCLUDE (row) FROM whole WHERE row % 2 = 0")
    con.execute("CREATE VIEW odd AS SELECT * EXCLUDE (row) FROM whole WHERE row % 2 = 1")
    return con


# --- tables ----------------------------------------------------------------------------------------------------------


def counts(o: list[int], s: list[int]) -> Any:
    return table_measures(np.array(o), np.array(s))


def test_worked_examples_of_tables() -> None:
    one = counts([10, 5, 0, 1], [8, 6, 1, 1])
    assert (one.vw, one.pmse, one.pmse_ratio) == pytest.approx((2.626263, 0.010259, 0.875421), abs=1e-6)
    assert (one.ft, one.jsd, one.g, one.g_df) == pytest.approx((4.628020, 0.038322, 0.553717, 2), abs=1e-6)
    assert (one.tvd, one.wmabsdd, one.hellinger, one.u) == pytest.approx((0.125, 3.142412, 0.190148, 147.5), abs=1e-6)
    unequal = counts([40, 30, 20, 10], [18, 14, 12, 6])
    assert (unequal.vw, unequal.pmse, unequal.pmse_ratio) == pytest.approx((0.837578, 0.000827, 0.279193), abs=5e-7)
    # 40, 30, 20 and 10 of 50 are 20, 15, 10 and 5: the synthetic ones have 2 and 1 less, and 2 and 1 more.
    assert (unequal.mabsdd, unequal.po50) == pytest.approx((6 / 50, 100 * (40 + 30 + 12 + 6) / 150 - 50))
    disjoint = counts([3, 0, 0], [0, 2, 1])
    assert (disjoint.vw, disjoint.pmse, disjoint.tvd, disjoint.jsd, disjoint.hellinger) == pytest.approx(
        (12, 0.25, 1, 1, 1)
    )
    assert (disjoint.g, disjoint.g_df) == (None, None)


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        (FAIR[:1], (5, 8.37949022, 0.00016454, 2.09487256, 8.38151755, 0.00047483, 8.39418186, 4, 0.02419101, 7.33693534, 0.01814254)),
        (["religious", "educ"], (24, 22.26041343, 0.00043710, 0.96784406, 22.32370473, 0.00126357, 22.39781488, 23, 0.03141690, 23.58519754, 0.02960873)),
        (["age", "yrs_married"], (32, 63.18186656, 0.00124061, 2.03812473, 72.30126969, 0.00379594, 53.52623003, 29, 0.04366949, 43.67553206, 0.05328557)),
        (["rate_marriage", "religious", "educ"], (111, 175.54950041, 0.00344701, 1.59590455, 225.7015707, 0.01110322, 134.44340018, 99, 0.07005969, 134.7593471, 0.09414646)),
    ],
)  # fmt: skip
def test_tables_of_the_survey(fair: duckdb.DuckDBPyConnection, columns: list[str], wanted: tuple[float, ...]) -> None:
    found = fair.execute(
        "SELECT cells, vw, pmse, pmse_ratio, ft, jsd, g, g_df, specks, wmabsdd, hellinger "
        f"FROM sdc_utility_tables('even', 'odd', columns := {columns}, ways := {len(columns)}, groups := NULL)"
    ).fetchone()
    assert found == pytest.approx(wanted, abs=6e-9, rel=1e-9)


def test_means_over_all_tables_of_the_survey(fair: duckdb.DuckDBPyConnection) -> None:
    for original, synthetic, pairs, triples in (
        ("even", "odd", 1.69054893, 1.84904856), ("whole", "even", 0.42575528, 0.47866551),
    ):  # fmt: skip
        for ways, wanted, number in ((2, pairs, 28), (3, triples, 56)):
            found = fair.execute(
                "SELECT count(*), avg(pmse_ratio) FROM sdc_utility_tables"
                f"('{original}', '{synthetic}', columns := {FAIR}, ways := {ways}, groups := NULL)"
            ).fetchone()
            assert found == (number, pytest.approx(wanted, abs=1e-8))
    found = fair.execute(
        "SELECT vw, pmse, pmse_ratio FROM sdc_utility_tables('whole', 'even', columns := ['religious', 'educ'], groups := NULL)"
    ).fetchone()
    assert found == pytest.approx((5.5841511, 8.664e-5, 0.24278918), abs=1e-7)


_COUNTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=8).filter(
    lambda cells: sum(o for o, _ in cells) > 0 and sum(s for _, s in cells) > 0
)


@settings(deadline=None)
@given(_COUNTS)
def test_identities_of_tables(cells: list[tuple[int, int]]) -> None:
    o, s = (np.array(side) for side in zip(*cells, strict=True))
    found = table_measures(o, s)
    n1, n2 = o.sum(), s.sum()
    c = n2 / (n1 + n2)
    # The propensity score of a saturated model is the share of synthetic records in each cell.
    occurs = o + s > 0
    score = s[occurs] / (o + s)[occurs]
    assert found.pmse == pytest.approx(((o + s)[occurs] * (score - c) ** 2).sum() / (n1 + n2), abs=1e-12)
    assert -1e-12 <= found.pmse <= c * (1 - c) + 1e-12
    assert found.ft == pytest.approx(8 * n2 * found.hellinger**2, abs=1e-8)
    order = np.argsort(score)
    gaps = np.abs(np.cumsum(o[occurs][order]) / n1 - np.cumsum(s[occurs][order]) / n2)
    assert gaps.max() == pytest.approx(found.tvd, abs=1e-9)
    assert table_measures(s, o).jsd == pytest.approx(found.jsd)
    assert table_measures(o[::-1], s[::-1]).u == found.u


@settings(deadline=None)
@given(st.integers(1, 4), st.integers(0, 40), st.integers(0, 40), st.integers(1, 6), st.integers(0, 99))
def test_cells_are_counted_alike_in_full_and_by_what_occurs(
    columns: int, first: int, second: int, size: int, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    sides = [[draw.integers(0, size, rows).astype(np.int32) for _ in range(columns)] for rows in (first, second)]
    sparse = [np.full(columns, 1 << 20)] if columns < 4 else []
    found = [joint_counts(*sides, sizes) for sizes in ([size] * columns, *(one.tolist() for one in sparse))]
    counted = [Counter(zip(*(column.tolist() for column in side), strict=True)) for side in sides]
    cells = sorted(set(counted[0]) | set(counted[1]))
    for one, other in found:
        assert one.tolist() == [counted[0][cell] for cell in cells]
        assert other.tolist() == [counted[1][cell] for cell in cells]


def test_a_saturated_logistic_model_is_the_table() -> None:
    o, s = np.array([10, 5, 3, 7]), np.array([8, 6, 2, 9])
    codes = np.concatenate([np.repeat(np.arange(4), o), np.repeat(np.arange(4), s)]).astype(np.int32)
    design = Design([[Term("cell", codes=codes, levels=("a", "b", "c", "d"))]], len(codes))
    found = propensity(design, np.repeat([0.0, 1.0], [o.sum(), s.sum()]), None, null="analytic")
    table = table_measures(o, s)
    assert found.pmse == pytest.approx(table.pmse, abs=1e-10)
    assert found.parameters == 4
    assert found.expected is not None
    assert found.pmse / found.expected == pytest.approx(table.pmse_ratio)
    assert (found.specks, found.u) == pytest.approx((table.tvd, table.u))


# --- synthpop --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def synthpop(reference_data: Path) -> tuple[duckdb.DuckDBPyConnection, dict[str, Any]]:
    folder = reference_data / "synthpop"
    if not folder.is_dir():
        pytest.skip("no reference data of synthpop")
    con = sdcduck.connect()
    for name, file in (("o", "SD2011_12vars"), ("cart", "syn_cart"), ("sample", "syn_sample")):
        con.execute(
            f"CREATE TABLE {name} AS FROM read_csv('{folder}/{file}.csv.gz', nullstr = ['NA', ''], "
            "types = {'income': 'DOUBLE', 'age': 'DOUBLE'})"
        )
    return con, json.loads((folder / "index.json").read_text())["results"]


@pytest.mark.parametrize("method", ["cart", "sample"])
def test_tables_are_those_of_synthpop(synthpop: tuple[duckdb.DuckDBPyConnection, dict[str, Any]], method: str) -> None:
    con, results = synthpop
    for name, wanted in results[f"utility_tab_{method}"].items():
        columns = name.split("_x_")
        special = ", special := {'income': [-8]}" if "income" in columns else ""
        found = con.execute(
            "SELECT pmse, pmse_ratio, df, vw, ft, g, jsd, specks, wmabsdd, u, hellinger, mabsdd, po50 FROM sdc_utility_tables"
            f"('o', '{method}', columns := {columns}, ways := {len(columns)}{special})"
        ).fetchone()
        names = ("pMSE", "S_pMSE", "df", "VW", "FT", "G", "JSD", "SPECKS", "WMabsDD", "U", "dBhatt", "MabsDD", "PO50")
        assert found == pytest.approx([wanted[one] for one in names], rel=1e-9), name
        # What it prints beside follows: a measure over df.
        _, _, df, vw, ft, *_ = found
        assert (vw / df, ft / df) == pytest.approx((wanted["S_VW"], wanted["S_FT"]), rel=1e-9)


@pytest.mark.parametrize("method", ["cart", "sample"])
def test_logistic_propensity_scores_are_those_of_synthpop(
    synthpop: tuple[duckdb.DuckDBPyConnection, dict[str, Any]], method: str
) -> None:
    # R stops its iterations earlier, so that the scores differ in the sixth digit.
    con, results = synthpop
    wanted = results[f"utility_gen_{method}_logit"]
    columns = wanted["vars"].split(",")
    found = con.execute(
        "SELECT pmse, pmse_ratio, specks, po50, u FROM sdc_pmse"
        f"('o', '{method}', columns := {columns}, special := {{'income': [-8]}})"
    ).fetchone()
    assert found == pytest.approx([wanted[name] for name in ("pMSE", "S_pMSE", "SPECKS", "PO50", "U")], rel=5e-6)


def test_trees_tell_apart_what_synthpop_tells_apart(
    synthpop: tuple[duckdb.DuckDBPyConnection, dict[str, Any]],
) -> None:
    # rpart prunes by misclassification, scikit-learn by impurity: the numbers cannot be equal, the order is.
    con, results = synthpop
    found = {
        method: con.execute(
            f"SELECT pmse_ratio FROM sdc_pmse('o', '{method}', columns := ['sex', 'age', 'edu', 'marital', 'income', 'ls', 'smoke'], "
            "model := 'tree', permutations := 5, special := {'income': [-8]}, seed := 1)"
        ).fetchone()[0]  # type: ignore[index]
        for method in ("cart", "sample")
    }
    assert 1 < found["cart"] < 3
    assert found["sample"] > 2 * found["cart"]
    assert results["utility_gen_sample_cart"]["S_pMSE"] > 2 * results["utility_gen_cart_cart"]["S_pMSE"]


# --- propensity scores -----------------------------------------------------------------------------------------------


def test_logistic_propensity_scores_of_the_survey(fair: duckdb.DuckDBPyConnection) -> None:
    shown = "parameters, pmse, expected, pmse_ratio, pmse_z, specks"
    asked = f"columns := {FAIR}, categorical := {FAIR}"
    found = fair.execute(f"SELECT {shown}, warning FROM sdc_pmse('even', 'odd', {asked})").fetchone()
    assert found is not None
    assert found[:6] == pytest.approx((39, 1.27603194e-3, 7.46151429e-4, 1.710151, 3.095478, 0.059378), abs=1e-6)
    assert found[6] is None
    found = fair.execute(f"SELECT {shown}, warning FROM sdc_pmse('whole', 'even', {asked})").fetchone()
    assert found is not None
    assert found[1:6] == pytest.approx((2.50243452e-4, 5.89551747e-4, 0.424464, -2.508704, 0.028746), abs=1e-6)
    assert "look for a sample or copies" in found[6]


def test_permutations_expect_what_the_formula_does(fair: duckdb.DuckDBPyConnection) -> None:
    asked = f"'even', 'odd', columns := {FAIR}, categorical := {FAIR}"
    (analytic,), (permuted,) = (
        fair.execute(f"SELECT expected FROM sdc_pmse({asked}, expected_by := '{how}', seed := 3)").fetchone()  # type: ignore[misc]
        for how in ("analytic", "permutation")
    )
    assert permuted == pytest.approx(analytic, rel=0.1)


def test_columns_that_follow_from_others_are_not_counted(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT hash(i) % 100 AS a, hash(3 * i) % 7 AS b, a + 2 * b AS c, 5 AS d FROM range(500) r(i)"
    )
    for columns, wanted in ((["a", "b"], 3), (["a", "b", "c"], 3), (["a", "b", "c", "d"], 3)):
        found = con.execute(
            f"SELECT parameters FROM sdc_pmse('o', '(SELECT a + 1 AS a, b, a + 1 + 2 * b AS c, d FROM o)', columns := {columns})"
        ).fetchone()
        assert found == (wanted,)


def test_a_logistic_model_is_blind_to_shape_and_says_so(con: duckdb.DuckDBPyConnection) -> None:
    draw = np.random.default_rng(7)
    con.register("narrow", {"x": draw.normal(0, 1, 5000)})
    con.register("wide", {"x": draw.normal(0, 2, 5000)})
    con.execute("CREATE TABLE o AS FROM narrow; CREATE TABLE s AS FROM wide")
    ratio, warning = con.execute("SELECT pmse_ratio, warning FROM sdc_pmse('o', 's')").fetchone()  # type: ignore[misc]
    (binned, ks) = con.execute("SELECT pmse_ratio, ks FROM sdc_utility_columns('o', 's')").fetchone()  # type: ignore[misc]
    assert ratio < 10
    assert 400 < binned < 700
    assert ks > 0.1
    assert "blind to the shape of x" in warning
    rows = dict(
        con.execute(
            "SELECT measure, warning FROM sdc_utility_profile('o', 's', permutations := 3, seed := 1)"
        ).fetchall()
    )
    assert "a model looks good, and single columns are bad: x" in rows["pmse_ratio, logit"]
    assert "models disagree by a factor of more than 3" in rows["pmse_ratio, logit"]


@pytest.mark.parametrize("model", ["logit", "tree"])
def test_a_copy_cannot_be_told_apart_and_strangers_can(con: duckdb.DuckDBPyConnection, model: str) -> None:
    con.execute("CREATE TABLE o AS SELECT hash(i) % 1000 AS x, 'k' || hash(3 * i) % 4 AS k FROM range(2000) r(i)")
    pmse, specks, u = con.execute(
        f"SELECT pmse, specks, u FROM sdc_pmse('o', 'o', model := '{model}', permutations := 2)"
    ).fetchone()  # type: ignore[misc]
    assert (pmse, specks) == pytest.approx((0, 0), abs=1e-9)
    assert u == 2000 * 2000 / 2
    pmse, specks, warning = con.execute(
        f"SELECT pmse, specks, warning FROM sdc_pmse('o', '(SELECT x + 10000 AS x, k FROM o)', model := '{model}', permutations := 2)"
    ).fetchone()  # type: ignore[misc]
    assert (pmse, specks) == pytest.approx((0.25, 1), abs=1e-6)
    assert "nearly every record can be told apart" in warning


def test_order_of_records_and_monotone_changes_do_not_matter_to_trees(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT (hash(i) % 1000)::DOUBLE AS x, 'k' || hash(3 * i) % 4 AS k FROM range(1500) r(i)"
    )
    con.execute(
        "CREATE TABLE s AS SELECT pow((hash(5 * i) % 1000) / 1000, 1.3) * 1000 AS x, 'k' || hash(7 * i) % 4 AS k FROM range(1500) r(i)"
    )
    found = []
    for change in ("x", "exp(x / 100)", "x * 1e9 + 1e15"):
        o, s = (
            f"(SELECT {change} AS x, k FROM {name} ORDER BY hash({'x' if change == 'x' else 'x + 1'}))" for name in "os"
        )
        found.append(
            con.execute(
                "SELECT pmse FROM sdc_pmse($o, $s, model := 'tree', expected_by := 'none')", {"o": o, "s": s}
            ).fetchone()
        )
    assert found[0] == pytest.approx(found[1])
    assert found[0] == pytest.approx(found[2])


@pytest.mark.parametrize(("rows", "price"), [(200, 0.0), (200, 1e-3), (5000, 1e-3), (30_000, 1e-4), (30_000, 1e-2)])
def test_trees_are_those_of_scikit_learn(rows: int, price: float) -> None:
    """On indicators of the categories; there are columns that are counted, sorted, and sorted by digits."""
    tree = pytest.importorskip("sklearn.tree")
    random = np.random.default_rng(rows)
    numbers = [random.permutation(rows), random.integers(0, 90, rows)]
    categories = [random.integers(0, size, rows) for size in (6, 16, 2)]
    chance = 0.5 + 0.2 * ((numbers[1] > 30) & (categories[1] == 3)) - 0.1 * (numbers[0] > rows / 3)
    outcome = (random.random(rows) < chance).astype(np.uint8)
    columns = [column.astype(np.int32) for column in (*numbers, *categories)]
    found = leaf_shares(
        columns, [rows, 90, 6, 16, 2], [True, True, False, False, False], outcome, price=price, leaf=5
    )  # fmt: skip
    indicators = [np.eye(size)[column][:, 1:] for column, size in zip(categories, (6, 16, 2), strict=True)]
    design = np.column_stack([*numbers, *indicators]).astype(np.float32)
    wanted = tree.DecisionTreeClassifier(
        ccp_alpha=price, min_samples_leaf=5, min_samples_split=20, max_depth=30, random_state=0
    ).fit(design, outcome)
    assert found == pytest.approx(wanted.predict_proba(design)[:, 1])


@given(st.lists(st.integers(0, 5), min_size=1), st.lists(st.integers(0, 5), min_size=1))
def test_scores_of_records_are_as_far_apart_as_their_counts(original: list[int], synthetic: list[int]) -> None:
    scores = np.arange(6.0)
    counts = [np.bincount(side, minlength=6).astype(float) for side in (original, synthetic)]
    found = separation_of_records(np.array(original, dtype=float), np.array(synthetic, dtype=float))
    wanted = separation(counts[0], counts[1], scores)
    assert (found.ks, found.u) == (pytest.approx(wanted.ks), wanted.u)


def test_a_tree_that_does_not_fit_into_memory_is_refused(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sdcduck.udfs.utility.measures._MOST_BYTES", 1000)
    con.execute("CREATE TABLE o AS SELECT i AS x FROM range(200) r(i)")
    with pytest.raises(duckdb.Error, match="name fewer columns, or give a sample of the records"):
        con.execute("FROM sdc_pmse('o', 'o', model := 'tree')").fetchall()


def test_the_same_seed_gives_the_same_permutations(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o AS SELECT hash(i) % 1000 AS x FROM range(800) r(i)")
    asked = (
        "FROM sdc_pmse('o', '(SELECT x + hash(x) % 50 AS x FROM o)', model := 'tree', permutations := 6, seed := {})"
    )
    first = con.execute(asked.format(5)).fetchall()
    con.execute("SET threads = 1")
    assert con.execute(asked.format(5)).fetchall() == first
    assert con.execute(asked.format(6)).fetchall() != first


def test_no_permuted_tree_with_a_split_is_no_ratio(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o AS SELECT hash(i) % 1000 AS x FROM range(2000) r(i)")
    row = con.execute(
        "SELECT pmse_ratio, no_split, warning FROM sdc_pmse('o', '(SELECT x * x AS x FROM o)', model := 'tree', ccp_alpha := 0.01, permutations := 4, seed := 1)"
    ).fetchone()
    assert row is not None
    assert row[:2] == (None, 4)
    assert "no permuted tree has a split" in row[2]


def test_what_the_ratio_is_for_samples(fair: duckdb.DuckDBPyConnection) -> None:
    # 2 for two samples of equal size, 1 - f for a sample of a share f of the original.
    asked = f"columns := {FAIR}, categorical := {FAIR}"
    halves, parts = [], []
    for draw in range(4):
        half = f"(FROM whole WHERE hash(row * 31 + {draw}) % 2 = {{}})"
        halves += (
            fair.execute(
                f"SELECT pmse_ratio FROM sdc_pmse($a, $b, {asked})", {"a": half.format(0), "b": half.format(1)}
            ).fetchone()
            or ()
        )
        parts += (
            fair.execute(f"SELECT pmse_ratio FROM sdc_pmse('whole', $b, {asked})", {"b": half.format(1)}).fetchone()
            or ()
        )
    assert np.mean(halves) == pytest.approx(2, abs=0.35)
    assert np.mean(parts) == pytest.approx(0.5, abs=0.15)


def test_the_null_of_a_right_synthesis_is_chi_squared() -> None:
    from scipy.stats import chi2, kstest

    draw = np.random.default_rng(20240917)
    shares = draw.dirichlet(np.full(8, 5.0))
    found = []
    for _ in range(500):
        o = draw.multinomial(4000, shares)
        one = table_measures(o, draw.multinomial(4000, o / 4000))
        assert one.vw is not None
        assert one.pmse is not None
        assert one.vw == pytest.approx(8000 * one.pmse / (0.5**2 * 0.5))
        found.append(one.vw)
    assert kstest(found, chi2(7).cdf).pvalue > 0.001


def test_the_ratio_of_a_tree_depends_on_its_size(con: duckdb.DuckDBPyConnection) -> None:
    # Drechsler (2022) has a factor of more than 5 between a small and a large tree on one and the same file.
    con.execute(
        "CREATE TABLE o AS SELECT hash(i) % 1000 AS x, hash(3 * i) % 1000 AS y, hash(5 * i) % 1000 AS z FROM range(4000) r(i)"
    )
    con.execute(
        "CREATE TABLE s AS SELECT hash(i) % 1000 AS x, hash(7 * i) % 1500 AS y, hash(5 * i) % 1000 AS z FROM range(4000) r(i)"
    )
    ratios = [
        con.execute(
            f"SELECT pmse_ratio FROM sdc_pmse('o', 's', model := 'tree', ccp_alpha := {alpha}, permutations := 8, seed := 1)"
        ).fetchone()[0]  # type: ignore[index]
        for alpha in (0.0004, 1e-7)
    ]
    assert ratios[0] > 5 * ratios[1]


# --- columns and counts ----------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=30), st.lists(st.integers(-5, 5), min_size=2, max_size=30))
def test_the_distance_of_distribution_functions_is_that_of_scipy(one: list[int], other: list[int]) -> None:
    from scipy.stats import ks_2samp

    found = kolmogorov_smirnov(np.array(one, float), np.array(other, float))
    assert found is not None
    assert found.distance == pytest.approx(ks_2samp(one, other, method="asymp").statistic)
    gap = abs(np.mean(np.array(one) <= found.at) - np.mean(np.array(other) <= found.at))
    assert gap == pytest.approx(found.distance)


def test_groups_of_a_spiked_column_have_equal_widths() -> None:
    values = np.array([0.0] * 85 + list(range(1, 16)))
    assert group_breaks(values, 5) == pytest.approx([0, 3, 6, 9, 12, 15])
    assert group_breaks(np.arange(101.0), 5) == pytest.approx([0, 20, 40, 60, 80, 100])
    assert len(group_breaks(np.zeros(0), 5)) == 0
    assert group_breaks(np.ones(4), 5).tolist() == [1]


def test_columns_say_what_cannot_be(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT CASE WHEN i % 10 < 3 THEN 0 ELSE i END AS x, 'k' || i % 3 AS k, DATE '2020-01-01' + (i % 99)::INTEGER AS d, CASE WHEN i % 4 = 0 THEN NULL ELSE i END AS n FROM range(1000) r(i)"
    )
    con.execute("CREATE TABLE s AS SELECT x - 5 AS x, k, d + 500 AS d, coalesce(n, 0) AS n FROM o")
    rows = {
        row[0]: row[1:]
        for row in con.execute(
            "SELECT column_name, kind, mode_original, mode_synthetic, null_original, null_synthetic, outside, negative, ks, warning FROM sdc_utility_columns('o', 's')"
        ).fetchall()
    }
    assert rows["x"][:7] == ("number", 0.3, 0.001, 0, 0, 302, 302)
    assert "negative values" in rows["x"][8]
    assert "most frequent value of the original is lost" in rows["x"][8]
    assert rows["d"][0] == "time"
    assert (rows["d"][5], rows["d"][7]) == (1000, 1)
    assert rows["n"][3:5] == (0.25, 0)
    assert rows["k"][0] == "category"
    assert rows["k"][7:] == (None, None)


def test_groups_may_hide_a_lost_spike(con: duckdb.DuckDBPyConnection) -> None:
    # Drechsler (2022): a measure of 5 groups is small although the spike is gone.
    con.execute(
        "CREATE TABLE o AS SELECT CASE WHEN i % 5 = 0 THEN 100 ELSE hash(i) % 1000 END AS x FROM range(5000) r(i)"
    )
    con.execute(
        "CREATE TABLE s AS SELECT CASE WHEN i % 5 = 0 THEN hash(7 * i) % 200 ELSE hash(3 * i) % 1000 END AS x FROM range(5000) r(i)"
    )
    ratio, ks, mode = con.execute(
        "SELECT pmse_ratio, ks, mode_synthetic FROM sdc_utility_columns('o', 's', groups := 3)"
    ).fetchone()  # type: ignore[misc]
    assert ratio < 10
    assert ks > 0.05
    assert mode < 0.01


def make_little(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT * FROM (VALUES ('a','x','P'), ('a','x','P'), ('a','y','Q'), ('b','x','Q'), ('b','x','P'), ('b','y','Q'), ('c','x','R'), ('c','x','R')) t(k1, k2, t)"
    )
    con.execute(
        "CREATE TABLE s AS SELECT * FROM (VALUES ('a','x','P'), ('a','x','P'), ('a','x','P'), ('a','y','P'), ('b','x','Q'), ('b','y','Q'), ('b','y','R'), ('d','x','R')) t(k1, k2, t)"
    )


def test_worked_examples_of_ratios_of_counts(con: duckdb.DuckDBPyConnection) -> None:
    make_little(con)
    assert con.execute("SELECT cells, empty, roc FROM sdc_roc('o', 's', columns := ['t'])").fetchone() == (
        3,
        0,
        pytest.approx(0.8055556, abs=1e-7),
    )
    found = con.execute(
        "SELECT cells, empty, roc, roc_nonempty FROM sdc_roc('o', 's', columns := ['k1', 'k2'], ways := 2)"
    ).fetchone()
    assert found == (8, 2, pytest.approx(0.5833333, abs=1e-7), pytest.approx(0.4444444, abs=1e-7))


def test_ratios_of_counts_of_the_survey(fair: duckdb.DuckDBPyConnection) -> None:
    for one, other, single, pairs, nonempty in (
        ("even", "odd", 0.95010312, 0.82569566, 0.82070391), ("whole", "even", 0.97463732, 0.89716620, 0.89423858),
    ):  # fmt: skip
        assert fair.execute(f"SELECT avg(roc) FROM sdc_roc('{one}', '{other}', columns := {FAIR})").fetchone() == (
            pytest.approx(single, abs=1e-8),
        )
        found = fair.execute(
            f"SELECT avg(roc), avg(roc_nonempty) FROM sdc_roc('{one}', '{other}', columns := {FAIR}, ways := 2)"
        ).fetchone()
        assert found == pytest.approx((pairs, nonempty), abs=1e-8)


def test_ratios_of_counts_are_symmetric_and_one_for_equal_shares(con: duckdb.DuckDBPyConnection) -> None:
    make_little(con)
    for ways in (1, 2, 3):
        there = con.execute(f"FROM sdc_roc('o', 's', ways := {ways})").fetchall()
        back = con.execute(f"FROM sdc_roc('s', 'o', ways := {ways})").fetchall()
        assert there == back
        doubled = con.execute(
            f"SELECT roc FROM sdc_roc('o', '(FROM o, range(2) SELECT o.*)', ways := {ways})"
        ).fetchall()
        assert all(row == (pytest.approx(1),) for row in doubled)


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("sdc_pmse('o', 's', model := 'forest')", "argument 'model' must be 'logit' or 'tree'"),
        ("sdc_pmse('o', 's', model := NULL)", "argument 'model' must be 'logit' or 'tree'"),
        ("sdc_pmse('o', 's', interactions := 3)", "argument 'interactions' must be 0, 1 or 2"),
        ("sdc_pmse('o', 's', expected_by := 'luck')", "argument 'expected_by' must be"),
        ("sdc_pmse('o', 's', model := 'tree', expected_by := 'analytic')", "a tree has no analytic expectation"),
        ("sdc_pmse('o', 's', permutations := 1)", "argument 'permutations' must be a whole number from 2 to 10000"),
        ("sdc_pmse('o', 's', ccp_alpha := -1)", "argument 'ccp_alpha' must be"),
        ("sdc_pmse('o', 's', special := [1])", "argument 'special' must be a struct"),
        ("sdc_pmse('o', 's', special := {'k': [1]})", "unknown column 'k' in the numbers that are compared"),
        ("sdc_pmse('o', 's', special := {'x': 'a'})", "must have a list of numbers for 'x'"),
        ("sdc_pmse('o', 's', seed := 'a')", "argument 'seed' must be a whole number"),
        ("sdc_pmse('o', 's', columns := ['name'])", "column 'name' has more than 1000 different values"),
        ("sdc_utility_tables('o', 's', ways := 0)", "argument 'ways' must be 1, 2 or 3"),
        ("sdc_utility_tables('o', 's', groups := 0)", "argument 'groups' must be a whole number from 1 to 250"),
        ("sdc_utility_columns('o', 's', groups := 999)", "argument 'groups' must be a whole number from 1 to 250"),
        ("sdc_roc('o', 's', columns := ['k'], ways := 2)", "ways := 2 needs at least 2 columns, there are 1"),
        ("sdc_utility_profile('o', 's', permutations := NULL)", "argument 'permutations' must be a whole number from 2 to 10000"),
    ],
)  # fmt: skip
def test_bad_input(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE o AS SELECT i AS x, 'k' || i % 3 AS k, 'person ' || i AS name FROM range(2000) r(i); CREATE OR REPLACE TABLE s AS FROM o"
    )
    with pytest.raises(duckdb.Error, match=message):
        lasting.execute(f"FROM {call}").fetchall()


STRANGE = """(SELECT CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN 'nan' WHEN 2 THEN 'inf' ELSE i::VARCHAR END::DOUBLE AS x,
    CASE WHEN i % 3 > 0 THEN 'k' || i % 5 END AS k, NULL::INTEGER AS nothing, 1 AS one, i % 2 = 0 AS flag,
    (i / 8)::DECIMAL(9, 3) AS amount, TIMESTAMP '2020-01-01' + to_hours(i::INTEGER) AS t, [i % 2] AS list
    FROM range({}) r(i))"""


@pytest.mark.parametrize("first", [0, 1, 2, 90])
@pytest.mark.parametrize("second", [0, 1, 70])
def test_strange_values_and_small_tables(lasting: duckdb.DuckDBPyConnection, first: int, second: int) -> None:
    sides = {"o": STRANGE.format(first), "s": STRANGE.format(second)}
    for call in ("sdc_pmse($o, $s", "sdc_pmse($o, $s, interactions := 1", "sdc_pmse($o, $s, model := 'tree', permutations := 2", "sdc_utility_tables($o, $s", "sdc_utility_tables($o, $s, ways := 3",
                 "sdc_utility_columns($o, $s", "sdc_roc($o, $s", "sdc_roc($o, $s, ways := 2, groups := 4", "sdc_utility_profile($o, $s, permutations := 2"):  # fmt: skip
        rows = lasting.execute(f"FROM {call})", sides).fetchall()
        assert all(
            value is None or not isinstance(value, float) or math.isfinite(value) for row in rows for value in row
        ), call
    if not first or not second:
        assert lasting.execute("SELECT pmse, warning FROM sdc_pmse($o, $s)", sides).fetchall() == [
            (None, "one of the tables is empty")
        ]
