"""What the noise of one statement is shared for, and normal noise alone, whose costs are converted exactly."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from private_people import made

import sdcduck
from sdcduck.catalog import Privacy
from sdcduck.errors import SDCError
from sdcduck.guard import Refused
from sdcduck.guard.calls import Noised
from sdcduck.guard.costs import Charge, charge_for, check_budget, cost_of, is_enough, standing_of
from sdcduck.guard.rewritten import Release
from sdcduck.methods.dp.allocation import allocate, allocate_laplace
from sdcduck.methods.dp.calibration import gaussian_epsilon, gaussian_ratio
from sdcduck.methods.dp.noise import LEAST_STEPS, finely_noisy, normal_rho_of, rho_of

pytest.importorskip("opendp")

COUNT = Noised(0, 1, 1.0, "count")
SUM = Noised(0, 4096, 2.0, "sum", "income")
MEDIAN = Noised(-1, 1, 1.0, "quantile", positions=11)
PRIVACY = Privacy(1, 1e-6, 0.1, "add_remove")
NORMAL = replace(PRIVACY, noise="normal")
BOTH = "SELECT count(*) AS n, sum(income) AS s FROM people"


def of(*noised: Noised) -> list[Release]:
    """A statement of these totals of all records."""
    return [Release("t", "", "", "", (), tuple((f"_f{place}", one) for place, one in enumerate(noised)))]


@pytest.mark.parametrize("objective", ["volume", "mse", "none"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_noise_is_shared_as_the_objective_says(objective: str, delta: float) -> None:
    """By what `sdc_dp_release` shares it: sensitivities are 1 and 8192, in the units of the answer."""
    cost = cost_of(of(COUNT, SUM), replace(PRIVACY, delta=delta, objective=objective))
    apart = np.array([1.0, 8192.0])
    if delta:
        wanted = allocate(apart, math.sqrt(2 * cost.own), objective).deviations
    else:
        wanted = allocate_laplace(apart, cost.own, objective).scales
    scales = [scale * noised.step for scale, noised in zip(cost.scales[0], (COUNT, SUM), strict=True)]
    assert scales == pytest.approx(list(wanted), rel=1e-9)
    count, total = (one or 0.0 for one in cost.deviations[0])
    assert {"volume": total > 8000 * count, "mse": total < 2000 * count, "none": total < 1.01 * count}[objective]


def test_each_objective_is_the_best_at_what_it_is_for() -> None:
    found = {
        name: [one or 0.0 for one in cost_of(of(COUNT, SUM), replace(PRIVACY, objective=name)).deviations[0]]
        for name in ("volume", "mse", "none")
    }
    assert min(found, key=lambda name: found[name][0] * found[name][1]) == "volume"
    assert min(found, key=lambda name: found[name][0] ** 2 + found[name][1] ** 2) == "mse"


def test_what_is_chosen_by_chance_has_an_equal_part() -> None:
    alone = cost_of(of(COUNT, SUM, MEDIAN), PRIVACY)
    for objective in ("mse", "none"):
        assert cost_of(of(COUNT, SUM, MEDIAN), replace(PRIVACY, objective=objective)).scales[0][2] == alone.scales[0][2]


def test_normal_noise_is_converted_exactly() -> None:
    """A question alone has the noise of Balle and Wang, nearly a tenth less than by rho; together they are one, too."""
    cost, usual = cost_of(of(COUNT), NORMAL), cost_of(of(COUNT), PRIVACY)
    assert cost.deviations[0][0] == pytest.approx(1 / gaussian_ratio(0.1, 1e-6), rel=1e-6)
    assert 0.85 < (cost.deviations[0][0] or 0) / (usual.deviations[0][0] or 1) < 0.96
    charges: list[Charge] = []
    while is_enough(charges, cost, NORMAL):
        charges.append(charge_for(cost, NORMAL))
    ratio = math.sqrt(len(charges)) * gaussian_ratio(0.1, 1e-6)
    assert gaussian_epsilon(ratio, 1e-6) <= 1 < gaussian_epsilon(ratio * math.sqrt(1 + 1 / len(charges)), 1e-6)
    assert standing_of(charges, NORMAL).spent == pytest.approx(gaussian_epsilon(ratio, 1e-6), rel=1e-6)
    assert standing_of([], NORMAL).left == len(charges)
    assert normal_rho_of(1.0, 1e-6) > 1.15 * rho_of(1.0, 1e-6)


def test_exact_conversion_is_of_normal_noise_alone() -> None:
    """What was charged under another policy is of other noise, or on a coarser grid; the other way it is a rho."""
    normal, usual = cost_of(of(COUNT), NORMAL), cost_of(of(COUNT), PRIVACY)
    with pytest.raises(Refused, match="earlier answers have other noise"):
        check_budget([charge_for(usual, PRIVACY)], normal, NORMAL)
    assert is_enough([charge_for(normal, NORMAL)], usual, PRIVACY)
    with pytest.raises(Refused, match="a quantile where all noise is normal"):
        cost_of(of(MEDIAN), NORMAL)


@pytest.mark.parametrize("scale", [1.5, 5.0, 2.0**36])
def test_normal_noise_is_drawn_on_a_fine_grid(scale: float) -> None:
    """Its deviation is right, and what is answered are whole steps all the same."""
    drawn = np.array(finely_noisy([7] * 4000, scale), float) - 7
    rounding = 1 / 12 if scale < LEAST_STEPS else 0.0
    assert np.sqrt((drawn**2).mean()) == pytest.approx(math.sqrt(scale**2 + rounding), rel=0.1)


def test_answers_and_words(tmp_path: Path) -> None:
    other = {
        "objective": "'mse'",
        "noise": "'normal'",
        "per_question": "10",
        "domains": "{'region': 'private'}",
        "delta": "1e-5",
    }
    register = made(tmp_path / "register", **other)
    with closing(sdcduck.open_guard(register)) as guard:
        row = guard.sql(BOTH).to_pylist()[0]
        assert row["n"] == pytest.approx(2000, abs=400)
        assert row["s"] == pytest.approx(4.4e6, rel=0.05)
        words = " ".join(one["noise"] for one in guard.sql(f"EXPLAIN {BOTH}").to_pylist())
        assert (
            "Gaussian noise, epsilon 10 for the whole question, converted exactly, shared by objective 'mse'" in words
        )
        assert guard.sql("SELECT region, count(*) FROM people GROUP BY region").num_rows == 5
        assert guard.sql(BOTH).to_pylist() == [row]
        with pytest.raises(Refused, match="a quantile where all noise is normal"):
            guard.sql("SELECT median(income) FROM people")
        assert guard.sql("SHOW sdc_budget").to_pylist()[0]["questions"] == 2


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"objective": "'lrt'"}, "argument 'objective'"),
        ({"noise": "'laplace'"}, "argument 'noise'"),
        ({"noise": "'normal'", "delta": "0"}, "noise := 'normal' needs one"),
    ],
)
def test_bad_declarations(tmp_path: Path, other: dict[str, str], said: str) -> None:
    with pytest.raises((SDCError, duckdb.Error), match=said):
        made(tmp_path / "register", **other)
