"""Perturbation tables against published laws, the R package `ptable` 1.0.0 and independent optimality checks.

The package's outputs (SLSQP with xtol 1e-7, 8 digits) lie beside the repository, in shared/data/ptable; the
variable SDCDUCK_SHARED names another place of shared.
"""

import csv
import gzip
import json
import os
import re
from collections import defaultdict
from dataclasses import FrozenInstanceError, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from sdcduck.methods.perturbation import (
    PTable,
    PTableError,
    check_ptable,
    count_ptable,
    magnitude_ptable,
    modify_ptable,
)
from sdcduck.methods.perturbation.maxent import FLOOR, maximum_entropy_law, reachable_variance

SHARED = Path(os.environ.get("SDCDUCK_SHARED", Path(__file__).resolve().parents[3] / "shared"))
REFERENCE = SHARED / "data" / "ptable"
TOLERANCE = 2e-6  # of the reference; its largest difference from the exact optimum is 1.2e-6

needs_reference = pytest.mark.skipif(
    not (REFERENCE / "index.json").exists(),
    reason=f"reference outputs of ptable 1.0.0 are not in {REFERENCE}",
)


def row(table: PTable, i: float) -> dict[float, float]:
    """p by target j."""
    at = table.i == i
    return dict(zip(table.j[at].tolist(), table.p[at].tolist(), strict=True))


def law_of(table: PTable, i: float) -> tuple[np.ndarray, np.ndarray]:
    at = table.i == i
    return table.v[at], table.p[at]


# --- Laws in print (specification of the product, section 3.1) --------------------------------------------

SYMMETRIC_5 = ".000549 .005190 .029800 .103850 .219642 .281937 .219642 .103850 .029800 .005190 .000549"
SYMMETRIC_8 = ".003792 .016591 .052293 .118730 .194193 .228801 .194193 .118730 .052293 .016591 .003792"
PUBLISHED = [
    ({"D": 2, "V": 0.9}, 1, 0, ".3625 .3625 .1875 .0875"),
    ({"D": 2, "V": 0.9}, 2, 0, ".051546 .243816 .409277 .243816 .051546"),
    ({"D": 2, "V": 1}, 1, 0, ".366486 .366486 .167572 .099457"),
    ({"D": 2, "V": 1.05, "js": 1, "mono": [True, True, False, True]}, 1, 0, ".50833333 - .475 .01666667"),
    (
        {"D": 2, "V": 1.05, "js": 1, "mono": [True, True, False, True]},
        2,
        0,
        ".16155827 - .55565037 .24246618 .04032518",
    ),
    (
        {"D": 2, "V": 1.05, "js": 1, "mono": [True, True, False, True]},
        3,
        2,
        ".41231301 .28806097 .18693903 .11268699",
    ),
    (
        {"D": 2, "V": 1.05, "js": 1, "mono": [True, True, False, True]},
        4,
        2,
        ".07012498 .24450007 .37074990 .24450007 .07012498",
    ),
    ({"D": 2, "V": 1.08, "js": 1}, 1, 0, ".5133 - .46 .0267"),
    ({"D": 5, "V": 2}, 1, 0, ".388938 .388938 .122093 .056394 .026048 .012031 .005557"),
    ({"D": 5, "V": 2, "optim": 4}, 1, 0, ".423791 .423791 .052513 .024164 .017648 .020457 .037636"),
    ({"D": 5, "V": 2}, 2, 0, ".157144 .240902 .258272 .193646 .101539 .037235 .009549 .001713"),
    ({"D": 5, "V": 2}, 3, 0, ".034339 .110449 .221353 .276411 .215066 .104264 .031495 .005928 .000695"),
    ({"D": 5, "V": 2}, 5, 0, SYMMETRIC_5),
    ({"D": 5, "V": 3, "js": 2}, 3, 0, ".203986 - - .393663 .247492 .110568 .035102 .007919 .001269"),
    ({"D": 5, "V": 3, "js": 2}, 8, 3, SYMMETRIC_8),
    ({"D": 4, "V": 1, "pstay": 0.5}, 1, 0, ".314908 .5 .100086 .050666 .023872 .010469"),
]


@pytest.mark.parametrize(("parameters", "i", "first", "printed"), PUBLISHED)
def test_published_laws(parameters: dict, i: int, first: int, printed: str) -> None:
    entries = {first + n: text for n, text in enumerate(printed.split()) if text != "-"}
    law = row(count_ptable(**parameters), i)
    assert law.keys() == entries.keys()
    for j, text in entries.items():
        # A decimal like .5 or .475 is exact; of the others the last digit is rounded.
        half_digit = 0.5 * 10.0 ** (1 - len(text)) if len(text) > 5 or parameters["V"] == 1.08 else 0.0
        assert law[j] == pytest.approx(float(text), abs=half_digit + 2e-8), (j, law[j])


def test_published_variance_below_v() -> None:
    assert check_ptable(count_ptable(2, 1)).variance[1] == pytest.approx(0.93188, abs=5e-6)
    assert check_ptable(count_ptable(5, 2)).variance[1] == pytest.approx(1.30247, abs=5e-6)


def test_three_equations_determine_the_law() -> None:
    """D = 2, V = 1.08, js = 1, i = 1: sum 1, mean 0 and variance V leave one law on -1, 1, 2."""
    v, p = law_of(count_ptable(2, 1.08, js=1), 1)
    assert p == pytest.approx(np.linalg.solve(np.array([v**0, v, v**2]), [1, 0, 1.08]), abs=1e-8)


@pytest.mark.parametrize(("step", "absolute"), [(5, 0.7952), (4, 0.7937)])
def test_fine_grid_is_nearly_normal(step: int, absolute: float) -> None:
    v, p = law_of(magnitude_ptable(5, 1, step=step), 5)
    normal = np.exp(-(v**2) / 2)
    assert p == pytest.approx(normal / normal.sum(), abs=5e-7)
    assert p @ abs(v) == pytest.approx(absolute, abs=5e-5)
    if step == 5:
        assert p[v == 0] == pytest.approx(0.079788, abs=5e-7)


@pytest.mark.parametrize(
    ("table", "i", "key", "noise"),
    [
        ({"D": 10, "V": 3, "icat": [1, 5, 10], "optim": [4, 1, 1]}, 10, 0.1234, -2),
        ({"D": 10, "V": 3, "icat": [1, 5, 10], "optim": [4, 1, 1]}, 10, 0.9, 2),
        ({"D": 10, "V": 3, "icat": [1, 5, 10], "optim": [4, 1, 1]}, 5, 0.3, -1),
        ({"D": 10, "V": 3, "icat": [1, 5, 10], "optim": [4, 1, 1]}, 5, 0.95, 3),
        ({"D": 5, "V": 1, "step": 5, "icat": [1, 3, 5], "optim": [4, 1, 1]}, 3, 0.3, -0.6),
        ({"D": 5, "V": 1, "step": 5, "icat": [1, 3, 5], "optim": [4, 1, 1]}, 3, 0.95, 1.6),
    ],
)
def test_published_noise_of_cell_keys(table: dict, i: int, key: float, noise: float) -> None:
    made = magnitude_ptable(**table)
    at = made.i == i
    assert made.v[at][np.argmax(key < made.ub[at])] == noise


# --- The R package ----------------------------------------------------------------------------------------


@cache
def index() -> dict[str, dict]:
    return json.loads((REFERENCE / "index.json").read_text())["problems"]


@cache
def reference_rows(file: str) -> dict[tuple[str, ...], list[dict[str, str]]]:
    opener = gzip.open if file.endswith(".gz") else open
    rows = defaultdict(list)
    with opener(REFERENCE / file, "rt") as lines:
        for entry in csv.DictReader(lines):
            key = (entry["problem"], entry["part"], entry["type"]) if "part" in entry else (entry["problem"],)
            rows[key].append(entry)
    return dict(rows)


def assert_equals_reference(table: PTable, rows: list[dict[str, str]]) -> None:
    for name in ("i", "j", "v"):
        assert getattr(table, name) == pytest.approx([float(entry[name]) for entry in rows], abs=1e-12)
    for name, column in (("p", "p"), ("lb", "p_int_lb"), ("ub", "p_int_ub")):
        # At most one bound, or two for p, are moved by a difference in the law.
        reference = np.array([float(entry[column]) for entry in rows])
        assert abs(getattr(table, name) - reference).max() <= TOLERANCE, name


def from_index(name: str) -> PTable:
    p = index()[name]
    if name.startswith("num"):
        return magnitude_ptable(p["D"], p["V"], step=p["step"], icat=p["icat"])
    return count_ptable(p["D"], p["V"], p["js"], None if p["pstay"] == "NA" else p["pstay"], optim=p["optim"])


@needs_reference
def test_every_reference_table() -> None:
    tables = reference_rows("cnt_ptables.csv.gz") | reference_rows("num_ptables.csv.gz")
    assert len(tables) == 85
    for (name,), rows in tables.items():
        assert_equals_reference(from_index(name), rows)


@needs_reference
def test_solved_combinations_without_reference_output_have_its_size() -> None:
    recorded = {name: p["rows"] for name, p in index().items() if "rows" in p}
    assert len(recorded) == 123
    assert {name: from_index(name).p.size for name in recorded} == recorded


@needs_reference
@pytest.mark.parametrize("variant", [2, 3])
def test_optim_2_and_3_equal_1_in_the_reference_too(variant: int) -> None:
    tables = reference_rows("cnt_ptables.csv.gz")
    pairs = 0
    for (name,), rows in tables.items():
        other = tables.get((name[:-1] + str(variant),))
        if name.endswith("1") and other:
            pairs += 1
            assert [float(a["p"]) for a in rows] == pytest.approx([float(b["p"]) for b in other], abs=1e-7)
    assert pairs >= 5
    assert (count_ptable(5, 2, 1, optim=variant).ub == count_ptable(5, 2, 1).ub).all()


EXAMPLES = {
    ("pt_ex_cnts", "", "all"): lambda: count_ptable(2, 1.05, 1, mono=[True, True, False, True]),
    **{
        (f"pt_ex_nums_parity{parity}_separation{separation}", part, type): make
        for parity, separation, part, type, make in [
            (1, 0, "", "all", lambda: magnitude_ptable(10, 3, icat=[1, 5, 10], optim=[4, 1, 1])),
            (1, 1, "all", "all", lambda: magnitude_ptable(10, 3, icat=[1, 5, 10], optim=[4, 1, 1])),
            (0, 0, "even", "even", lambda: magnitude_ptable(8, 1, icat=[1, 5, 8], type="even")),
            (0, 1, "even", "even", lambda: magnitude_ptable(8, 1, icat=[1, 5, 8], type="even")),
            (0, 0, "odd", "odd", lambda: magnitude_ptable(10, 2, icat=[1, 10], optim=[4, 1], type="odd")),
            (0, 1, "odd", "odd", lambda: magnitude_ptable(10, 2, icat=[1, 10], optim=[4, 1], type="odd")),
        ]
    },
    **{
        (f"pt_ex_nums_parity{parity}_separation1", "small_cells", "all"): lambda: magnitude_ptable(
            5, 1, step=5, icat=[1, 3, 5], optim=[4, 1, 1]
        )
        for parity in (0, 1)
    },
}


@needs_reference
def test_example_tables() -> None:
    tables = reference_rows("example_ptables.csv")
    assert tables.keys() == EXAMPLES.keys()
    for key, make in EXAMPLES.items():
        made = make()
        assert_equals_reference(made, tables[key])
        assert made.type == key[2]


# --- Optimality and feasibility, independently of the dual ------------------------------------------------


def polytope(v: np.ndarray, V: float, *, exact: bool, mono: bool, stay: float = FLOOR) -> dict:
    """The feasible set of a row, as arguments of linprog."""
    at_zero = np.flatnonzero(v == 0)
    equal, upper = [(np.ones_like(v), 1.0), (v, 0.0)], []
    (equal if exact else upper).append((v * v, V))
    if mono and at_zero.size:
        differences = np.eye(v.size)[: at_zero[0]] - np.eye(v.size)[1 : at_zero[0] + 1]
        upper += [(difference, 0.0) for difference in differences]
    lower = np.full(v.size, FLOOR)
    lower[at_zero] = max(stay, FLOOR)
    return {
        "A_eq": np.array([a for a, _ in equal]),
        "b_eq": [b for _, b in equal],
        "A_ub": np.array([a for a, _ in upper]) if upper else None,
        "b_ub": [b for _, b in upper] if upper else None,
        "bounds": [(low, 1.0) for low in lower],
        "options": {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    }


def entropy_gap(v: np.ndarray, law: np.ndarray, V: float, **side: object) -> float:
    """How much more entropy than `law` any feasible law can have, at most.

    Entropy is concave, so it lies below its tangent at `law`; the maximum of the tangent over the feasible
    set is a linear programme.
    """
    tangent = -np.log(law)
    best = linprog(-tangent, **polytope(v, V, **side))
    assert best.status == 0
    return float(-best.fun - tangent @ law)


def assert_feasible(v: np.ndarray, law: np.ndarray, V: float, *, exact: bool, mono: bool, stay: float) -> None:
    assert law.sum() == pytest.approx(1, abs=1e-10)
    assert v @ law == pytest.approx(0, abs=1e-9)
    assert v * v @ law <= V * (1 + 1e-10) + 1e-10
    assert law.min() >= FLOOR * (1 - 1e-9)
    if exact:
        assert v * v @ law == pytest.approx(V, rel=1e-9, abs=1e-10)
    if (v == 0).any():
        assert law[v == 0][0] >= stay * (1 - 1e-12)
        if mono:
            assert (np.diff(law[v <= 0]) >= -1e-15).all()


def assert_rows_optimal(table: PTable) -> None:
    """Each row is, to 8 digits, a law that is feasible and that no feasible law exceeds in entropy."""
    parameters = table.parameters
    for n, i in enumerate(np.unique(table.i)[1:]):
        v, p = law_of(table, i)
        mono, exact = parameters.mono[n], parameters.optim[n] == 4
        if table.kind == "counts" and i <= parameters.js and v.size == 2 and parameters.D > 1:
            # At the smallest variance of the blocked count the law is unique.
            assert p == pytest.approx(np.array([v[1], -v[0]]) / (v[1] - v[0]), abs=5e-9)
            assert -v[0] * v[1] == pytest.approx(parameters.V, abs=1e-6)
            continue
        # Optimal for its own p_0 as the bound, or for none: the bound asked for may have been lowered.
        candidates = {FLOOR, float(p[v == 0][0])} if getattr(parameters, "pstay", None) and 0 in v else {FLOOR}
        for stay in candidates:
            law = maximum_entropy_law(v, parameters.V, exact=exact, mono=mono, stay=stay)
            if law is not None and abs(law - p).max() <= 3e-8:
                break
        else:
            pytest.fail(f"row {i} is no law of largest entropy")
        assert_feasible(v, law, parameters.V, exact=exact, mono=mono, stay=stay)
        assert entropy_gap(v, law, parameters.V, exact=exact, mono=mono, stay=stay) < 1e-9


@needs_reference
@pytest.mark.parametrize(
    "name", [f"cnt_D{D}_V{V}_js{js}" for D in (2, 3, 5, 8, 10) for V in (1, 2, 3) for js in (0, 1, 2)]
)
def test_reference_problems_are_solved_to_the_optimum(name: str) -> None:
    for problem, p in index().items():
        if problem.startswith(name + "_") and "rows" in p and p["optim"] in (1, 4):
            assert_rows_optimal(from_index(problem))


def has_law(D: int, V: float, js: int, optim: int) -> bool:
    """Whether every row has a law with p >= 0, by linear programming."""
    for i in range(1, (D + js + 1 if js else D) + 1):
        j = np.arange(max(0, i - D), i + D + 1)
        v = (j[(j == 0) | (j > js)] - i).astype(float)
        rows = polytope(v, V, exact=optim == 4, mono=True)
        rows["bounds"] = (0, 1)
        if linprog(np.zeros_like(v), **rows).status == 2:
            return False
    return True


@needs_reference
def test_combinations_that_the_reference_rejects() -> None:
    """Of 51 combinations 35 have a law (those with js = V = 1 and js = V = 2) and are solved here."""
    rejected = {name: p for name, p in index().items() if "error" in p}
    solved = set()
    for name, p in rejected.items():
        if has_law(p["D"], p["V"], p["js"], p["optim"]):
            table = from_index(name)
            assert check_ptable(table).ok.all()
            assert_rows_optimal(table)
            solved.add(name)
        else:
            with pytest.raises(PTableError, match="V"):
                from_index(name)
    assert solved == {name for name, p in rejected.items() if p["V"] == p["js"]}
    assert (len(rejected), len(solved)) == (51, 35)


@pytest.mark.parametrize(
    ("D", "V", "js", "i", "law"),
    [
        (2, 1, 1, 1, {0: 1 / 2, 2: 1 / 2}),
        (5, 2, 2, 1, {0: 2 / 3, 3: 1 / 3}),
        (5, 2, 2, 2, {0: 1 / 3, 3: 2 / 3}),
        (5, 4, 3, 2, {0: 1 / 2, 4: 1 / 2}),
    ],
)
@pytest.mark.parametrize("optim", [1, 4])
def test_smallest_variance_of_a_blocked_count(D: int, V: float, js: int, i: int, law: dict, optim: int) -> None:
    optims = [optim] * js + [1] * (D + 1)
    if optim == 4 and js == 3:
        optims[0] = optims[2] = 1  # only i = 2 is at its smallest variance
    table = count_ptable(D, V, js, optim=optims)
    assert row(table, i) == pytest.approx(law, abs=5e-9)
    assert check_ptable(table).ok.all()


def test_just_above_the_smallest_variance_all_targets_return() -> None:
    assert row(count_ptable(2, 1 + 1e-9, 1), 1) == {0: 0.5, 2: 0.5}
    assert row(count_ptable(2, 1 + 6e-8, 1), 1) == pytest.approx({0: 0.5, 2: 0.5, 3: 2e-8}, abs=3e-8)


@st.composite
def targets(draw: st.DrawFn) -> np.ndarray:
    """Grids of noise as they occur in p-tables, symmetric, cut on the left or with a hole; also reflected."""
    D = draw(st.integers(1, 9))
    js = draw(st.integers(0, min(3, D - 1)))
    i = draw(st.integers(1, D + js + 1 if js else D))
    j = np.arange(max(0, i - D), i + D + 1)
    v = (j[(j == 0) | (j > js)] - i) / draw(st.sampled_from([1, 2, 5]))
    return -v[::-1] if draw(st.booleans()) else v


@settings(max_examples=150, deadline=None)
@given(targets(), st.floats(0, 1), st.integers(0, 8), st.booleans(), st.booleans(), st.booleans())
def test_laws_are_feasible_and_optimal(
    v: np.ndarray, share: float, near: int, from_above: bool, exact: bool, mono: bool
) -> None:
    """Anywhere between the smallest and the largest variance, and close to both."""
    low, high = reachable_variance(v, mono)
    distance = share * (high - low) * 10.0**-near
    V = high - distance if from_above else low + distance
    side = {"exact": exact, "mono": mono, "stay": FLOOR}
    law = maximum_entropy_law(v, V, **side)
    if law is None:
        assert min(V - low, (high - V) if exact else np.inf) < 1e-7 * max(1, high)
        return
    assert_feasible(v, law, V, **side)
    if near < 4:  # closer to the edge the tolerance of the linear programme matters
        assert entropy_gap(v, law, V, **side) < 1e-8


@settings(max_examples=150, deadline=None)
@given(targets(), st.floats(0.05, 1), st.floats(0, 1), st.integers(0, 4), st.booleans(), st.booleans())
def test_laws_with_a_bound_of_p_0(v: np.ndarray, share: float, more: float, near: int, exact: bool, mono: bool) -> None:
    """A bound little or much above the p_0 that the law has by itself."""
    assume(0 in v)
    low, high = reachable_variance(v, mono)
    V = low + share * (high - low)
    free = maximum_entropy_law(v, V, exact=exact, mono=mono)
    assume(free is not None)
    p_0 = float(free[v == 0][0])
    side = {"exact": exact, "mono": mono, "stay": p_0 + (1 - p_0) * more * 10.0**-near}
    law = maximum_entropy_law(v, V, **side)
    if law is None:
        polygon = polytope(v, V, exact=exact, mono=mono, stay=min(1.0, side["stay"] + 1e-6))
        assert linprog(np.zeros_like(v), **polygon).status == 2
        return
    assert_feasible(v, law, V, **side)
    if share < 0.99:  # as above
        assert entropy_gap(v, law, V, **side) < 1e-8


@settings(max_examples=40, deadline=None)
@given(targets(), st.booleans())
def test_reachable_variance_is_the_one_of_linear_programming(v: np.ndarray, mono: bool) -> None:
    polygon = polytope(v, v @ v, exact=False, mono=mono)
    extremes = [sign * linprog(sign * v * v, **polygon).fun for sign in (1, -1)]
    assert reachable_variance(v, mono) == pytest.approx(extremes, rel=1e-7, abs=1e-9)


def test_no_mean_zero_without_a_negative_target() -> None:
    with pytest.raises(ValueError, match="no law on 2 targets between 0 and 1 has mean 0"):
        reachable_variance(np.array([0.0, 1.0]), True)


@pytest.mark.parametrize(
    ("D", "V", "js", "mono", "optim", "pstay"),
    [
        (3, 1.4, 0, True, 1, None),
        (4, 2.3, 1, True, 1, None),
        (4, 2.3, 1, False, 1, None),
        (6, 2.9, 2, True, 1, 0.3),
        (5, 2.0, 0, True, 4, None),
        (7, 5.5, 1, True, 1, 0.15),
    ],
)
def test_slsqp_finds_the_same_laws(D: int, V: float, js: int, mono: bool, optim: int, pstay: float | None) -> None:
    """The method of the reference package, as implemented in scipy."""
    table = count_ptable(D, V, js, pstay, mono, optim)
    stays = check_ptable(table).p_stay
    for i in range(1, int(table.i[-1]) + 1):
        v, p = law_of(table, i)
        # The bound in force: the one asked for, or a lower one at which the law stays.
        side = polytope(v, V, exact=optim == 4, mono=mono, stay=min(pstay or FLOOR, stays[i]))
        found = minimize(
            lambda q: float(q @ np.log(q)),
            np.full(v.size, 1 / v.size),
            jac=lambda q: np.log(q) + 1,
            bounds=side["bounds"],
            constraints=[
                {"type": "eq", "fun": lambda q, s=side: s["A_eq"] @ q - s["b_eq"]},
                *(
                    [{"type": "ineq", "fun": lambda q, s=side: s["b_ub"] - s["A_ub"] @ q}]
                    if side["A_ub"] is not None
                    else []
                ),
            ],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        assert p == pytest.approx(found.x, abs=3e-6)


# --- Properties of whole tables ---------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    D=st.integers(1, 8),
    V=st.floats(0.05, 12),
    js=st.integers(0, 3),
    pstay=st.none() | st.floats(0.01, 0.99),
    mono=st.booleans(),
    optim=st.sampled_from([1, 4]),
)
def test_count_tables(D: int, V: float, js: int, pstay: float | None, mono: bool, optim: int) -> None:
    try:
        table = count_ptable(D, V, js, pstay, mono, optim)
    except PTableError:
        assume(False)
    check = check_ptable(table)
    assert check.ok.all()
    assert table.i.max() == (D + js + 1 if js else D)
    assert row(table, 0) == {0: 1}
    assert table.j.min() == 0
    assert not ((table.j >= 1) & (table.j <= js)).any()
    assert abs(table.v).max() <= D
    for i in check.i:
        at = table.i == i
        v, p = law_of(table, i)
        assert (np.diff(v) > 0).all()
        assert table.lb[at][0] == 0
        assert table.ub[at][-1] == 1
        assert (table.lb[at][1:] == table.ub[at][:-1]).all()
        assert (p >= FLOOR).all()
        assert abs(p @ v) < 1e-7
        assert p @ v**2 <= V + 1e-6
        if optim == 4 and i > 0:
            assert p @ v**2 == pytest.approx(V, abs=2e-6)
        if mono and i > js:
            assert (np.diff(p[v <= 0]) >= -2e-8).all()
    assert (table.p == np.round(table.ub - table.lb, 8)).all()
    assert (table.ub == np.round(table.ub, 8)).all()


@settings(max_examples=30, deadline=None)
@given(D=st.integers(1, 9), V=st.floats(0.05, 12), step=st.integers(1, 5), mono=st.booleans())
def test_magnitude_tables(D: int, V: float, step: int, mono: bool) -> None:
    V = min(V, D * D)  # more is refused
    table = magnitude_ptable(D, V, step, sorted({1, D}), mono)
    check = check_ptable(table)
    assert check.ok.all()
    assert check.i.tolist() == sorted({0, 1, D})
    assert table.kind == "magnitudes"
    assert (table.j * step == np.rint(table.j * step)).all()
    assert row(table, D).keys() == {n / step for n in range(2 * D * step + 1)}
    assert_rows_optimal(table)


def test_last_row_is_symmetric() -> None:
    _, p = law_of(count_ptable(8, 3, js=2), 11)
    assert p == pytest.approx(p[::-1], abs=2e-8)


def test_pstay_is_lowered_until_the_variance_is_reached() -> None:
    """D = 5, V = 2, pstay = .7: row 1 never reaches V and is kept; rows 2 and 3 do at .5 and .65."""
    check = check_ptable(count_ptable(5, 2, pstay=0.7))
    assert check.p_stay[1:] == pytest.approx([0.388938, 0.5, 0.65, 0.7, 0.7], abs=1e-6)
    assert check.misses_variance.tolist() == [False, True, False, False, False, False]
    exact = check_ptable(count_ptable(5, 2, pstay=0.7, optim=[4, 1, 1, 1, 1]))
    assert exact.variance[1:] == pytest.approx(2, abs=1e-6)


def test_pstay_per_row() -> None:
    per_row = check_ptable(count_ptable(4, 1, pstay=[0.5, 0.45, 0.01, 0.6]))
    assert per_row.p_stay[1:] == pytest.approx([0.5, 0.45, 0.398576, 0.6], abs=1e-6)
    free = check_ptable(count_ptable(4, 1)).p_stay
    some = check_ptable(count_ptable(4, 1, pstay=[0.5, None, None, 0.6]))
    assert some.p_stay[1:] == pytest.approx([0.5, free[2], free[3], 0.6], abs=1e-6)


def test_a_variance_beyond_reach_gives_the_law_of_largest_entropy_without_it() -> None:
    """Of noises v from -1 to 2 with mean 0: p is in proportion to r^v, with -1 + r^2 + 2 r^3 = 0."""
    table = count_ptable(2, 3.9, mono=False)
    assert check_ptable(table).misses_variance[1]
    noises, law = law_of(table, 1)
    root = np.roots([2, 1, 0, -1])
    r = float(root[np.isreal(root)].real[0])
    assert list(noises) == [-1, 0, 1, 2]
    assert law == pytest.approx(r ** np.arange(-1, 3) / sum(r ** np.arange(-1, 3)), abs=1e-6)


def test_tables_do_not_change() -> None:
    table = count_ptable(2, 1)
    with pytest.raises(ValueError, match="read-only"):
        table.p[0] = 0
    with pytest.raises(FrozenInstanceError):
        table.type = "odd"  # type: ignore[misc]
    assert table.kind == "counts"
    assert table.parameters.mono == (True, True)


# --- Modified tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "threshold"),
    [
        (count_ptable(5, 2), 0.2),
        (count_ptable(8, 3, 2), 0.05),
        (magnitude_ptable(5, 1, 5), 0.01),
        (count_ptable(2, 1, 1), 0.25),
    ],
)
def test_modified_table_keeps_all_probabilities(table: PTable, threshold: float) -> None:
    modified = modify_ptable(table, threshold, seed=7)
    assert check_ptable(modified).ok.all()
    assert modified.modification is not None
    units: dict[tuple[float, float], int] = defaultdict(int)
    for i, v, lb, ub in zip(modified.i, modified.v, modified.lb, modified.ub, strict=True):
        units[i, v] += round(ub * 1e8) - round(lb * 1e8)
    assert units == {(i, v): round(p * 1e8) for i, v, p in zip(table.i, table.v, table.p, strict=True)}
    assert modified.p[modified.i > 0].max() <= max(threshold, table.p[table.p < threshold].max())
    assert row(modified, 0) == {0: 1}
    piece = round(threshold * 1e8)
    split = [-(-length // piece) for length in units.values() if piece <= length < 10**8]
    assert modified.p.size == table.p.size + sum(split) - len(split)


def test_modified_table_hides_the_sign() -> None:
    table = count_ptable(5, 2)
    modified = modify_ptable(table, seed=3)
    at = modified.i == 5
    assert (np.diff(table.v[table.i == 5]) > 0).all()
    assert (np.diff(modified.v[at]) > 0).any()
    assert (np.diff(modified.v[at]) < 0).any()


def test_seed_fixes_the_order_across_numpy_versions() -> None:
    table = count_ptable(2, 1)
    order = [0, 0, 1, -1, -1, 0, 2, -1, 0, 1, -1, 2, 1, -2, 0]
    assert modify_ptable(table, seed=0).v.tolist() == order
    assert modify_ptable(table, seed=1).v.tolist() != order


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": 0}, "threshold must be at least 0.01 and below 1; 0 was given"),
        ({"threshold": 1}, "threshold must be at least 0.01 and below 1; 1 was given"),
        ({"threshold": float("nan")}, "threshold must be finite"),
        ({"seed": -1}, "seed must be at least 0; -1 was given"),
        ({"seed": 0.5}, "seed must be a whole number"),
    ],
)
def test_modification_refused(arguments: dict, message: str) -> None:
    with pytest.raises(PTableError, match=re.escape(message)):
        modify_ptable(count_ptable(2, 1), **arguments)


def test_no_second_modification() -> None:
    with pytest.raises(PTableError, match="modified already"):
        modify_ptable(modify_ptable(count_ptable(2, 1)))


# --- Checks -----------------------------------------------------------------------------------------------


def test_check_reports_moments() -> None:
    check = check_ptable(count_ptable(2, 1, js=0))
    assert check.i.tolist() == [0, 1, 2]
    assert check.mean == pytest.approx([0, 0, 0], abs=2e-8)
    assert check.variance == pytest.approx([0, 0.931884, 1], abs=1e-6)
    assert check.sum == pytest.approx([1, 1, 1], abs=1e-12)
    assert check.p_stay == pytest.approx([1, 0.36648551, 0.38296282], abs=1e-8)
    assert check.ok.tolist() == [True, True, True]
    assert check.misses_variance.tolist() == [False, True, False]
    assert check_ptable(count_ptable(2, 1.5, js=1)).p_stay[1] == 0  # a blocked count never stays


def test_check_finds_faults() -> None:
    table = count_ptable(2, 1.5, js=1)

    def changed(name: str, entry: int, value: float) -> PTable:
        column = getattr(table, name).copy()
        column[entry] = value
        return replace(table, **{name: column})

    first = int(np.flatnonzero(table.i == 2)[0])
    for name, entry, value in [
        ("v", first + 1, -1.0),  # mean, and j != i + v
        ("j", first + 1, 1.0),  # a blocked count
        ("j", first, -1.0),  # a negative count
        ("ub", first, table.ub[first] + 1e-6),  # overlapping intervals
        ("lb", first, 1e-6),  # a gap
        ("p", first, 0.0),
    ]:
        assert check_ptable(changed(name, entry, value)).ok.tolist() == [True, True, False, True, True]
    assert not check_ptable(changed("ub", -1, 0.9)).ok[-1]
    assert not check_ptable(replace(table, parameters=replace(table.parameters, V=1.4))).ok.all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"j": [0.0]}, "column j has shape (1,); column i has 10 entries"),
        ({"p": np.full(10, np.nan)}, "column p has a NaN"),
        ({"i": np.arange(10)[::-1]}, "not sorted by i"),
    ],
)
def test_malformed_columns(columns: dict, message: str) -> None:
    with pytest.raises(PTableError, match=re.escape(message)):
        replace(count_ptable(2, 1), **columns)


# --- Refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"D": 5, "V": 3, "js": 3},
            "js = 3 needs V >= 4 (the two-point law on -i and js+1-i, here on -2 and 2 for a",
        ),
        ({"D": 5, "V": 3, "js": 3}, "V = 3 was asked; raise V or lower js"),
        ({"D": 2, "V": 0.9999999, "js": 1}, "V = 0.9999999 was asked"),
        (
            {"D": 3, "V": 9, "js": 3},
            "js = 3 needs D >= 4 (a true count of 4 has no lower target but 0); D = 3 was asked",
        ),
        ({"D": 0, "V": 1}, "D must be from 1 to 200; 0 was given"),
        ({"D": 201, "V": 1}, "D must be from 1 to 200; 201 was given"),
        ({"D": 2.0, "V": 1}, "D must be a whole number from 1 to 200; 2.0 was given"),
        ({"D": True, "V": 1}, "D must be a whole number"),
        ({"D": "5", "V": 1}, "D must be a whole number from 1 to 200; '5' was given"),
        ({"D": 5, "V": 0}, "V must be positive; 0 was given"),
        ({"D": 5, "V": -2}, "V must be positive; -2 was given"),
        ({"D": 5, "V": float("nan")}, "V must be finite; nan was given"),
        ({"D": 5, "V": float("inf")}, "V must be finite; inf was given"),
        ({"D": 5, "V": 10**400}, "V must be finite"),
        ({"D": 5, "V": "2"}, "V must be a number; '2' was given"),
        ({"D": 5, "V": True}, "V must be a number; True was given"),
        ({"D": 5, "V": None}, "V must be a number; None was given"),
        ({"D": 5, "V": 2, "js": -1}, "js must be at least 0; -1 was given"),
        ({"D": 5, "V": 2, "js": 0.5}, "js must be a whole number at least 0; 0.5 was given"),
        ({"D": 5, "V": 2, "pstay": 0}, "pstay must lie strictly between 0 and 1; 0 was given"),
        ({"D": 5, "V": 2, "pstay": 1.0}, "pstay must lie strictly between 0 and 1; 1 was given"),
        ({"D": 5, "V": 2, "pstay": -0.1}, "pstay must lie strictly between 0 and 1; -0.1 was given"),
        ({"D": 5, "V": 2, "pstay": float("nan")}, "pstay must be finite"),
        (
            {"D": 5, "V": 2, "pstay": [0.5] * 4},
            "pstay must be one value or 5 values, for the rows i = 1..5; 4 were given",
        ),
        ({"D": 2, "V": 1, "pstay": [0.5, 2]}, "pstay[1] must lie strictly between 0 and 1; 2 was given"),
        (
            {"D": 2, "V": 1.05, "js": 1, "mono": [True] * 3},
            "mono must be one value or 4 values, for the rows i = 1..4; 3",
        ),
        ({"D": 5, "V": 2, "mono": 1}, "mono must be True or False; 1 was given"),
        ({"D": 5, "V": 2, "optim": 0}, "optim must be from 1 to 4; 0 was given"),
        ({"D": 5, "V": 2, "optim": np.array([1, 1, 1, 1, 5])}, "optim[4] must be from 1 to 4; 5 was given"),
        ({"D": 5, "V": 2, "optim": np.ones((5, 5), int)}, "optim[0] must be a whole number from 1 to 4"),
        (
            {"D": 5, "V": 3, "optim": 4},
            "row i = 1: optim = 4 asks for the variance V = 3; reachable are 7e-07 to 2.72727, up to 5 with "
            "mono = False; lower V or use optim = 1 for this row",
        ),
        ({"D": 5, "V": 3, "optim": 4, "pstay": 0.4}, "row i = 1: optim = 4 asks for the variance V = 3"),
        ({"D": 2, "V": 3, "js": 1, "optim": [4, 1, 1, 1]}, "reachable are 1 to 2; lower V"),
        ({"D": 5, "V": 24.5, "optim": 4}, "row i = 1: optim = 4 asks for the variance V = 24.5"),
        ({"D": 5, "V": 1e300}, "noise of at most D = 5 has a variance of at most 25; V = 1e+300 was given"),
        (
            {"D": 5, "V": 1e-7},
            "row i = 1: a probability of 1e-08 or more of each of 7 targets makes the variance at least "
            "7e-07; V = 1e-07 was asked; raise V or lower D",
        ),
    ],
)
def test_count_parameters_refused(arguments: dict, message: str) -> None:
    with pytest.raises(PTableError, match=re.escape(message)):
        count_ptable(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"icat": [2, 5]}, "icat must contain 1 and D = 5; 1 is missing in [2, 5]"),
        ({"icat": [1, 3]}, "icat must contain 1 and D = 5; 5 is missing in [1, 3]"),
        ({"icat": [1, 5, 6]}, "icat[2] must be from 1 to 5; 6 was given"),
        ({"icat": [1, 2.5, 5]}, "icat[1] must be a whole number from 1 to 5; 2.5 was given"),
        ({"icat": [5, 1]}, "icat must be ascending without repetition; [5, 1] was given"),
        ({"icat": [1, 1, 5]}, "icat must be ascending without repetition"),
        ({"icat": np.array(5)}, "icat must be a list of whole numbers"),
        ({"D": 10, "step": 5}, "D * step must be below 50; D = 10 and step = 5 give 50"),
        ({"step": 0}, "step must be at least 1; 0 was given"),
        ({"step": 0.5}, "step must be a whole number at least 1; 0.5 was given"),
        ({"V": 0}, "V must be positive"),
        ({"type": "both"}, "type must be 'all', 'even' or 'odd'; 'both' was given"),
        (
            {"icat": [1, 3, 5], "optim": [4, 1]},
            "optim must be one value or 3 values, for the rows i = 1, 3, 5; 2 were",
        ),
        ({"V": 3, "optim": 4}, "row i = 1: optim = 4 asks for the variance V = 3; reachable are"),
    ],
)
def test_magnitude_parameters_refused(arguments: dict, message: str) -> None:
    with pytest.raises(PTableError, match=re.escape(message)):
        magnitude_ptable(**{"D": 5, "V": 1, **arguments})


def test_numpy_arguments() -> None:
    table = count_ptable(
        np.int64(3), np.float32(1.5), pstay=np.full(3, 0.2), mono=np.ones(3, bool), optim=np.ones(3, int)
    )
    assert (table.ub == count_ptable(3, 1.5, pstay=0.2).ub).all()
    assert (magnitude_ptable(5, 1, icat=np.array([1, 5])).ub == magnitude_ptable(5, 1, icat=[1, 5]).ub).all()
