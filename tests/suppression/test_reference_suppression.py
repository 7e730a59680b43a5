"""Cell for cell the same suppression as the R packages GaussSuppression 1.2.3 and SSBtools 1.8.6."""

from __future__ import annotations

from pathlib import Path

import builders
import numpy as np
import pytest

from sdcduck.methods.suppression.elimination import suppress_secondary

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
        for method in ("none", "anySumNOTprimary", "sub2Sum", "subSumSpace", "numFFF")
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
