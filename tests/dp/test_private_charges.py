"""Which noise the questions of a policy have, and what they cost together where some have one and some the other."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from sdcduck.catalog import Privacy
from sdcduck.guard.calls import Noised
from sdcduck.guard.costs import Charge, Cost, check_budget, cost_of, standing_of
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Release
from sdcduck.methods.dp.calibration import zcdp_epsilon, zcdp_order

pytest.importorskip("opendp")

COUNT, INCOME = Noised(0, 1, 1.0, "count"), Noised(-3000, 6000, 0.5, "sum", "income")
MEDIAN = Noised(-1, 1, 1.0, "quantile", "income", positions=1001)
POLICIES = [
    Privacy(epsilon, delta, per_question, neighbours)
    for epsilon, per_question in ((1.0, 1.0), (1.0, 0.5), (1.0, 0.1), (4.0, 3.0), (0.1, 0.1))
    for delta in (1e-5, 1e-9)
    for neighbours in ("replace", "add_remove")
]


def asked(*columns: Noised) -> list[Release]:
    return [Release("t", "", "groups", "", (), tuple((f"f{place}", one) for place, one in enumerate(columns)))]


def charged(charges: list[Charge], cost: Cost, privacy: Privacy) -> bool:
    """Whether a question is allowed; it is then among the charges."""
    try:
        check_budget(charges, cost, privacy)
    except Refused:
        return False
    charges.append(Charge(cost.unit, cost.own, privacy.neighbours))
    return True


def proven(charges: list[Charge], privacy: Privacy) -> float:
    """The epsilon of all of them at the delta, by each order of the Renyi divergence: the least that any proof says."""
    pure = sum(one.cost for one in charges if one.unit == "epsilon")
    rho = sum(one.cost for one in charges if one.unit == "rho")
    return pure + zcdp_epsilon(rho, privacy.delta)


def test_few_numbers_have_laplace_noise_and_many_gaussian_noise() -> None:
    one = Privacy(1, 1e-6, 1, "add_remove")
    laws = [cost_of(asked(*[COUNT] * numbers), one) for numbers in (1, 2, 5, 12, 100)]
    assert [cost.gaussian for cost in laws] == [False, False, False, True, True]
    assert laws[0].deviations[0][0] == pytest.approx(1.357, abs=1e-3)  # discrete Laplace noise of scale 1
    # Of a question that is one of many only Gaussian noise is as small.
    assert cost_of(asked(COUNT), Privacy(1, 1e-6, 0.1, "add_remove")).gaussian
    # Who is replaced changes two groups: Laplace noise of twice the scale, Gaussian noise of the root of two.
    assert cost_of(asked(*[COUNT] * 8), one).gaussian is False
    assert cost_of(asked(*[COUNT] * 8), Privacy(1, 1e-6, 1, "replace")).gaussian is True


@pytest.mark.parametrize("privacy", POLICIES, ids=str)
def test_the_smaller_noise_is_chosen_within_what_a_question_may_cost(privacy: Privacy) -> None:
    for columns in ((COUNT,), (COUNT, INCOME), (INCOME,) * 7, (COUNT,) * 30, (MEDIAN,), (MEDIAN, COUNT)):
        cost, gaussian = (
            cost_of(asked(*columns), privacy),
            Privacy(200, privacy.delta, privacy.per_question, privacy.neighbours),
        )
        plain = cost_of(asked(*columns), gaussian)  # one of very many
        assert plain.gaussian
        assert cost.own <= privacy.per_question or cost.gaussian
        smaller = [
            mine < other for mine, other in zip(cost.deviations[0], plain.deviations[0], strict=True) if mine and other
        ]
        assert cost.gaussian or all(smaller)
        # A choice by chance has no standard deviation.
        assert [deviation is None for deviation in cost.deviations[0]] == [column is MEDIAN for column in columns]


@pytest.mark.parametrize("privacy", POLICIES, ids=str)
def test_there_are_as_many_questions_as_with_gaussian_noise_alone(privacy: Privacy) -> None:
    few, many = cost_of(asked(COUNT), privacy), cost_of(asked(*[COUNT] * 300), privacy)
    assert many.gaussian
    numbers = []
    for cost in (few, many):
        charges: list[Charge] = []
        left = standing_of(charges, privacy).left
        while charged(charges, cost, privacy):
            assert len(charges) <= 1000
        numbers.append(len(charges))
        assert left <= len(charges)
        assert standing_of(charges, privacy).spent <= privacy.epsilon * (1 + 1e-6)
    assert numbers[0] >= numbers[1] >= 1


@pytest.mark.parametrize("privacy", POLICIES, ids=str)
def test_what_is_charged_together_is_proven_whatever_the_order(privacy: Privacy) -> None:
    few, many = cost_of(asked(COUNT), privacy), cost_of(asked(*[COUNT] * 300), privacy)
    for pattern in ((few, many), (many, few), (few, few, many), (few, many, many)):
        charges: list[Charge] = []
        for cost in itertools.islice(itertools.cycle(pattern), 400):
            left = standing_of(charges, privacy).left
            if not charged(charges, cost, privacy):
                assert left == 0
                break
        assert charges
        assert proven(charges, privacy) <= privacy.epsilon * (1 + 1e-6)


def test_both_sums_are_within_what_the_policy_promises() -> None:
    for privacy in POLICIES:
        most = cost_of(asked(COUNT), Privacy(privacy.epsilon, privacy.delta, privacy.epsilon, privacy.neighbours))
        assert not most.gaussian
        assert most.own == privacy.epsilon
        assert not charged([Charge("epsilon", privacy.epsilon, privacy.neighbours)], most, privacy)
        # All of it once as Laplace noise leaves no Gaussian noise, and the other way round.
        many = cost_of(asked(*[COUNT] * 300), privacy)
        assert not charged([Charge("epsilon", privacy.epsilon, privacy.neighbours)], many, privacy)


def test_an_epsilon_costs_least_of_what_holds_of_it() -> None:
    """Half its square is less while it is small; at the order of the budget it never costs more than it is."""
    privacy = Privacy(1, 1e-6, 0.5, "add_remove")
    (rho,) = {cost_of(asked(*[COUNT] * 300), Privacy(1, 1e-6, 1, "add_remove")).own}
    order = zcdp_order(rho, 1e-6)
    # Bun and Steinke's bound alone would allow no Gaussian noise beside a third of the epsilon.
    part = [Charge("epsilon", 0.35, "add_remove")]
    assert 0.35**2 / 2 > rho > 0.35 / order
    many = cost_of(asked(*[COUNT] * 300), privacy)
    assert charged(part, many, privacy)
    assert math.isclose(standing_of(part[:1], privacy).spent, 0.35)


def test_noise_under_the_other_relation_costs_twice_the_epsilon() -> None:
    privacy = Privacy(1, 1e-6, 0.5, "replace")
    assert standing_of([Charge("epsilon", 0.3, "add_remove")], privacy).spent == pytest.approx(0.6)
    assert standing_of([Charge("epsilon", 0.3, "replace")], privacy).spent == pytest.approx(0.3)


@pytest.mark.parametrize("privacy", [*POLICIES, Privacy(1, 1e-6, 0.5, "replace", private=("town",))])
def test_what_was_charged_several_times_is_what_that_often_was_charged(privacy: Privacy) -> None:
    unit = "rho" if privacy.gaussian else "epsilon"
    delta = 1e-9 if privacy.private else 0.0
    each = [Charge(unit, cost, "add_remove", delta) for cost in (1e-4, 3e-4)]
    together = standing_of([replace(charge, times=7) for charge in each], privacy)
    one_by_one = standing_of(each * 7, privacy)
    assert together.questions == one_by_one.questions == 14
    assert together.left == one_by_one.left
    assert together.spent == pytest.approx(one_by_one.spent, rel=1e-12)
