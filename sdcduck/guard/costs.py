"""What statements under ``method := 'dp'`` cost, how large their noise is for it, and when a budget is spent.

A statement costs what the policy says of one question, whatever it asks for. That is shared equally among its totals,
each on a scale of its own: of Gaussian noise this is the smallest region for all of them together (Shoham and Rinott
2022, theorem 1). With a delta costs are rho, which add up however the next question follows from the
answers before it; the epsilon of a sum of them is less than the sum of the epsilons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

from sdcduck.catalog import Policy, Privacy
from sdcduck.guard.calls import Noised
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Release, Rewritten
from sdcduck.guard.worth import NUMBER, Law, Statistic

_ROUNDING = 1e-9
"""Of a budget: a hundred hundredths are a little more than one."""


_MADE_OF = {
    "mean": "a noisy sum over a noisy count, kept between the bounds of the measure",
    "variance": "made of noisy sums of distances and squares and a noisy count, kept between what the bounds allow",
    "deviation": "the root of a variance of noisy sums and a noisy count",
    "quantile": "a thousandth of the bounds, chosen by chance, the likelier the nearer it is",
}


@dataclass(frozen=True)
class Cost:
    """What a statement costs, and the noise that it gets for it.

    Attributes:
        own: of this statement; what adds up under the policy: rho, or epsilon without a delta.
        most: that all statements may cost.
        scales: of the noise, in steps, for each column of each block.
        deviations: its standard deviations, as the numbers are answered.
    """

    own: float
    most: float
    scales: tuple[tuple[float, ...], ...]
    deviations: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Charge:
    """What a question has cost.

    Attributes:
        unit: rho or epsilon.
        cost: in it.
        neighbours: under which relation.
    """

    unit: str
    cost: float
    neighbours: str


@dataclass(frozen=True)
class Standing:
    """How a table stands.

    Attributes:
        questions: that were charged.
        spent: the epsilon of all of them together, at the delta of the policy.
        of: the epsilon that they may have.
        left: how many more questions can be charged.
    """

    questions: int
    spent: float
    of: float
    left: int


def grid_noise() -> ModuleType:
    """OpenDP takes half a second to import: guards of other policies do without."""
    from sdcduck.methods.dp import noise as found

    return found


def policy_of(rewritten: Rewritten) -> Policy:
    """The policy of the table that noise is drawn for: there is one."""
    return next(one for one in rewritten.policies if one.name == rewritten.releases[0].policy)


def cost_of(releases: Sequence[Release], privacy: Privacy) -> Cost:
    """What a statement costs and the noise of its totals, as OpenDP certifies it.

    Raises:
        Refused: it does not.
    """
    noise, gaussian = grid_noise(), privacy.gaussian
    own = noise.rho_of(privacy.per_question, privacy.delta) if gaussian else privacy.per_question
    each = own / sum(len(release.columns) for release in releases)
    scales, deviations, certified = [], [], 0.0
    for release in releases:
        found = [_noise_of(noised, privacy, each, grouped=bool(release.cells)) for _, noised in release.columns]
        scales.append(tuple(one.scale for one in found))
        deviations.append(tuple(one.deviation for one in found))
        certified += sum(one.cost for one in found)
    if not certified <= own * (1 + _ROUNDING):
        raise Refused("SDC082", "the noise does not have the privacy that it was charged for")
    return Cost(own, _most(privacy), tuple(scales), tuple(deviations))


class _Noise(NamedTuple):
    """The scale of the noise of a total, what OpenDP certifies that it costs, and its standard deviation."""

    scale: float
    cost: float
    deviation: float


def _noise_of(noised: Noised, privacy: Privacy, cost: float, *, grouped: bool) -> _Noise:
    noise, gaussian = grid_noise(), privacy.gaussian
    apart = sensitivity(noised, privacy, grouped=grouped)
    if noised.positions:  # the digits that it is rounded to are those of the grid
        scale = noise.choice_scale_of(apart, cost, gaussian=gaussian)
        return _Noise(scale, noise.choice_cost_of(apart, scale, gaussian=gaussian), noised.step)
    scale = noise.scale_of(apart, cost, gaussian=gaussian)
    deviation = noised.step * noise.deviation(scale, gaussian=gaussian)
    return _Noise(scale, noise.cost_of(apart, scale, gaussian=gaussian), deviation)


def sensitivity(noised: Noised, privacy: Privacy, *, grouped: bool) -> float:
    """How far the totals of all groups of neighbours are apart, in steps: L2 under Gaussian noise, else L1.

    Who is replaced may leave one group and come into another one, and changes two totals then; or be in one all the
    time, where the total changes from one end to the other. Each of its rows does so.

    >>> count = Noised(0, 1, 1.0, "count")
    >>> gaussian, pure = Privacy(1, 1e-6, 0.1, "replace"), Privacy(1, 0, 0.1, "replace")
    >>> [round(sensitivity(count, gaussian, grouped=grouped), 3) for grouped in (False, True)]
    [1, 1.414]
    >>> sensitivity(count, pure, grouped=True), sensitivity(Noised(-3, 2, 1.0, "sum"), pure, grouped=False)
    (2, 5)
    >>> several = Privacy(1, 1e-6, 0.1, "replace", contributions=4)
    >>> round(sensitivity(count, several, grouped=True), 3)
    5.657
    >>> [round(sensitivity(Noised(0, 1, 1.0, "count", once=True), several, grouped=at), 3) for at in (False, True)]
    [1, 2.828]
    """
    return _of_rows(noised, privacy, grouped=grouped) * _of_record(noised, privacy, grouped=grouped)


def _of_record(noised: Noised, privacy: Privacy, *, grouped: bool) -> float:
    """How far they are apart where each unit has one row."""
    most = max(-noised.low, noised.high)
    if privacy.neighbours == "add_remove":
        return most
    span = noised.high - noised.low
    if not grouped:
        return span
    return max(span, math.sqrt(2) * most) if privacy.gaussian else max(span, 2 * most)


def _of_rows(noised: Noised, privacy: Privacy, *, grouped: bool) -> float:
    """How many times as far they are apart where a unit has several: what rows add is added up.

    A unit that counts once in a group counts in as many groups as it has rows.
    """
    rows = privacy.contributions
    if not noised.once:
        return rows
    return 1 if not grouped else math.sqrt(rows) if privacy.gaussian else rows


def _most(privacy: Privacy) -> float:
    return float(grid_noise().rho_of(privacy.epsilon, privacy.delta)) if privacy.gaussian else privacy.epsilon


def spent_of(charges: Sequence[Charge], privacy: Privacy) -> float:
    """What questions have cost, as it counts under the policy that holds now.

    Who is replaced is taken away and another one added: twice the epsilon, four times the rho. The noise under
    'replace' is enough for 'add_remove', too. An epsilon is half its square as a rho; a rho is no epsilon.
    """
    total = 0.0
    for charge in charges:
        cost = charge.cost
        harder = charge.neighbours != "replace" and privacy.neighbours == "replace"
        if charge.unit == "epsilon":
            cost *= 2 if harder else 1
            total += cost * cost / 2 if privacy.gaussian else cost
        else:
            total += (4 if harder else 1) * cost if privacy.gaussian else math.inf
    return total


def check_budget(charges: Sequence[Charge], cost: Cost, privacy: Privacy) -> None:
    """Refuse a question that would cost more than is left.

    Raises:
        Refused: with what is still free.
    """
    spent = spent_of(charges, privacy)
    if spent + cost.own <= cost.most * (1 + _ROUNDING):
        return
    if not math.isfinite(spent):
        raise Refused("SDC080", "earlier answers have a delta, which this policy does not allow")
    standing = standing_of(charges, privacy)
    free = max(0.0, privacy.epsilon - standing.spent)
    raise Refused(
        "SDC080",
        f"epsilon {standing.spent:.4g} of {privacy.epsilon:.4g} is spent, {free:.2g} is free, and a question takes "
        f"{privacy.per_question:.4g} alone",
    )


def standing_of(charges: Sequence[Charge], privacy: Privacy) -> Standing:
    """How a table stands after these."""
    noise, spent, most = grid_noise(), spent_of(charges, privacy), _most(privacy)
    if not math.isfinite(spent):
        return Standing(len(charges), spent, privacy.epsilon, 0)
    each = noise.rho_of(privacy.per_question, privacy.delta) if privacy.gaussian else privacy.per_question
    epsilon = noise.epsilon_of(spent, privacy.delta) if privacy.gaussian else spent
    return Standing(len(charges), epsilon, privacy.epsilon, max(0, math.floor((most * (1 + _ROUNDING) - spent) / each)))


def laws_of(rewritten: Rewritten) -> Callable[[Statistic], Sequence[Law]]:
    """The law of the noise of each statistic of a question."""
    policy = policy_of(rewritten)
    cost = cost_of(rewritten.releases, policy.privacy)
    each = [
        (noised, deviation)
        for release, deviations in zip(rewritten.releases, cost.deviations, strict=True)
        for (_, noised), deviation in zip(release.columns, deviations, strict=True)
    ]
    kind = "Gaussian" if policy.privacy.gaussian else "Laplace"
    shown = f"{kind} noise, epsilon {policy.privacy.per_question:g} for the whole question"
    if any(release.adds_up for release in rewritten.releases):
        shown += "; a subtotal of k groups is their sum and has the root of k times as much"

    def of(statistic: Statistic) -> Sequence[Law]:
        wanted = "count" if statistic.kind in ("count", "units") else statistic.kind
        found = [sd for noised, sd in each if noised.statistic == wanted and noised.of in ("", statistic.of)]
        found = [] if wanted == "quantile" else found
        if found:
            return [
                Law(statistic.kind, None, None, max(found) / (statistic.most or 1), None, NUMBER, None, None, shown)
            ]
        if statistic.kind not in _MADE_OF:
            return []
        return [Law(statistic.kind, None, None, None, None, "", None, None, f"{_MADE_OF[statistic.kind]}; {shown}")]

    return of
