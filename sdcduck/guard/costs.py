"""What statements under ``method := 'dp'`` cost, how large their noise is for it, and when a budget is spent.

A statement costs what the policy says of one question, whatever it asks for. That is shared equally among its totals,
each on a scale of its own: of Gaussian noise this is the smallest region for all of them together (Shoham and Rinott
2022, theorem 1). With a delta costs are rho, which add up however the next question follows from the
answers before it; the epsilon of a sum of them is less than the sum of the epsilons.

A policy with a delta has n questions of Gaussian noise. Where a statement would have less error by Laplace noise of an
n-th of the epsilon it gets that, and is charged with this epsilon: which of both is the smaller follows from the policy
and from what is asked. Together they are within epsilon and delta if one of two sums is small enough:

* the epsilons, where all noise was Laplace; then no delta is spent;
* what they are at one order alpha of the Renyi divergence, that at which the budget is converted: alpha * rho of
  Gaussian noise, and of Laplace noise the less of epsilon and alpha * epsilon^2 / 2 (Bun and Steinke 2016,
  proposition 3.3). At a fixed order they add up whatever is asked next (Feldman and Zrnic 2021).

It does not matter that what is asked next decides which of the two sums it is. Of the answers of which the first one
held, an event has the chance e^epsilon times that of a neighbour at most; of the others delta more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
        gaussian: whether its noise is Gaussian; else it is Laplace noise.
        own: of this statement: rho of Gaussian noise, epsilon of Laplace noise.
        scales: of the noise, in steps, for each column of each block.
        deviations: its standard deviations, as the numbers are answered; None of what is chosen by chance.
    """

    gaussian: bool
    own: float
    scales: tuple[tuple[float, ...], ...]
    deviations: tuple[tuple[float | None, ...], ...]

    @property
    def unit(self) -> str:
        """What it is counted in."""
        return "rho" if self.gaussian else "epsilon"


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
    own, laplace = _of_question(privacy), _laplace_of_question(privacy)
    found = _noise_of(releases, privacy, own, gaussian=privacy.gaussian)
    gaussian = privacy.gaussian
    if gaussian:
        other = _noise_of(releases, privacy, laplace, gaussian=False)
        # The sizes of two noises of one number: their ratio is that of all lengths of a region.
        if sum(math.log(one.size / two.size) for one, two in zip(_all(found), _all(other), strict=True)) > 0:
            found, own, gaussian = other, laplace, False
    if not sum(one.certified() for one in _all(found)) <= own * (1 + _ROUNDING):
        raise Refused("SDC082", "the noise does not have the privacy that it was charged for")
    return Cost(
        gaussian, own, tuple(tuple(one.scale for one in of) for of in found),
        tuple(tuple(one.deviation for one in of) for of in found),
    )  # fmt: skip


def _of_question(privacy: Privacy) -> float:
    return float(grid_noise().rho_of(privacy.per_question, privacy.delta)) if privacy.gaussian else privacy.per_question


def _laplace_of_question(privacy: Privacy) -> float:
    """The epsilon of a question with Laplace noise, so that there are as many as there are with Gaussian noise."""
    if not privacy.gaussian:
        return privacy.per_question
    questions = max(1, math.floor(_most(privacy) * (1 + _ROUNDING) / _of_question(privacy)))
    return min(privacy.per_question, privacy.epsilon / questions)


class _Noise(NamedTuple):
    """The noise of a total.

    Attributes:
        scale: of it, in steps.
        apart: how far neighbours are apart.
        deviation: its standard deviation; None of a choice.
        gaussian: else it is Laplace noise.
    """

    scale: float
    apart: float
    deviation: float | None
    gaussian: bool

    @property
    def size(self) -> float:
        """What the noise of another law is compared with; that of a choice is in proportion to its scale."""
        return self.scale if self.deviation is None else self.deviation

    def certified(self) -> float:
        """What OpenDP certifies that it costs."""
        of = grid_noise().choice_cost_of if self.deviation is None else grid_noise().cost_of
        return float(of(self.apart, self.scale, gaussian=self.gaussian))


def _all(found: Sequence[Sequence[_Noise]]) -> list[_Noise]:
    return [one for of in found for one in of]


def _noise_of(
    releases: Sequence[Release], privacy: Privacy, own: float, *, gaussian: bool
) -> list[list[_Noise]]:  # fmt: skip
    """The noise of all totals of a statement that costs so much."""
    each = own / sum(len(release.columns) for release in releases)
    noise = grid_noise()
    found: list[list[_Noise]] = []
    for release in releases:
        found.append([])
        for _, noised in release.columns:
            apart = sensitivity(noised, privacy, grouped=bool(release.cells), gaussian=gaussian)
            scale = (noise.choice_scale_of if noised.positions else noise.scale_of)(apart, each, gaussian=gaussian)
            deviation = None if noised.positions else noised.step * noise.deviation(scale, gaussian=gaussian)
            found[-1].append(_Noise(scale, apart, deviation, gaussian))
    return found


def sensitivity(noised: Noised, privacy: Privacy, *, grouped: bool, gaussian: bool) -> float:
    """How far the totals of all groups of neighbours are apart, in steps: L2 under Gaussian noise, else L1.

    Who is replaced may leave one group and come into another one, and changes two totals then; or be in one all the
    time, where the total changes from one end to the other. Each of its rows does so.

    >>> count, privacy = Noised(0, 1, 1.0, "count"), Privacy(1, 1e-6, 0.1, "replace")
    >>> [round(sensitivity(count, privacy, grouped=grouped, gaussian=True), 3) for grouped in (False, True)]
    [1, 1.414]
    >>> sensitivity(count, privacy, grouped=True, gaussian=False)
    2
    >>> sensitivity(Noised(-3, 2, 1.0, "sum"), privacy, grouped=False, gaussian=False)
    5
    >>> several, once = Privacy(1, 1e-6, 0.1, "replace", contributions=4), Noised(0, 1, 1.0, "count", once=True)
    >>> round(sensitivity(count, several, grouped=True, gaussian=True), 3)
    5.657
    >>> [round(sensitivity(once, several, grouped=at, gaussian=True), 3) for at in (False, True)]
    [1, 2.828]
    """
    rows = _of_rows(noised, privacy, grouped=grouped, gaussian=gaussian)
    return rows * _of_record(noised, privacy, grouped=grouped, gaussian=gaussian)


def _of_record(noised: Noised, privacy: Privacy, *, grouped: bool, gaussian: bool) -> float:
    """How far they are apart where each unit has one row."""
    most = max(-noised.low, noised.high)
    if privacy.neighbours == "add_remove":
        return most
    span = noised.high - noised.low
    if not grouped:
        return span
    return max(span, math.sqrt(2) * most) if gaussian else max(span, 2 * most)


def _of_rows(noised: Noised, privacy: Privacy, *, grouped: bool, gaussian: bool) -> float:
    """How many times as far they are apart where a unit has several: what rows add is added up.

    A unit that counts once in a group counts in as many groups as it has rows.
    """
    rows = privacy.contributions
    if not noised.once:
        return rows
    return 1 if not grouped else math.sqrt(rows) if gaussian else rows


def _most(privacy: Privacy) -> float:
    return float(grid_noise().rho_of(privacy.epsilon, privacy.delta)) if privacy.gaussian else privacy.epsilon


def spent_of(charges: Sequence[Charge], privacy: Privacy) -> float:
    """What questions have cost, as it counts under the policy that holds now: rho, or epsilon without a delta.

    Who is replaced is taken away and another one added: twice the epsilon, four times the rho. The noise under
    'replace' is enough for 'add_remove', too. An epsilon is half its square as a rho, and at the order alpha at which
    the budget is converted an alpha-th part of it at most; a rho is no epsilon.
    """
    order = grid_noise().order_of(_most(privacy), privacy.delta) if privacy.gaussian else 1.0
    total = 0.0
    for charge in charges:
        cost = charge.cost
        harder = charge.neighbours != "replace" and privacy.neighbours == "replace"
        if charge.unit == "epsilon":
            cost *= 2 if harder else 1
            total += min(cost * cost / 2, cost / order) if privacy.gaussian else cost
        else:
            total += (4 if harder else 1) * cost if privacy.gaussian else math.inf
    return total


def epsilons_of(charges: Sequence[Charge], privacy: Privacy) -> float:
    """The sum of the epsilons of Laplace noise; infinite where there was other noise."""
    return spent_of(charges, replace(privacy, delta=0))


def charge_for(cost: Cost, privacy: Privacy) -> Charge:
    """What a question is charged with."""
    return Charge(cost.unit, cost.own, privacy.neighbours)


def is_enough(charges: Sequence[Charge], cost: Cost, privacy: Privacy) -> bool:
    """Whether a question may be charged after these."""
    return _left(charges, charge_for(cost, privacy), privacy) > 0


def check_budget(charges: Sequence[Charge], cost: Cost, privacy: Privacy) -> None:
    """Refuse a question that would cost more than is left.

    Raises:
        Refused: with what is still free.
    """
    if is_enough(charges, cost, privacy):
        return
    standing = standing_of(charges, privacy)
    if not math.isfinite(standing.spent):
        raise Refused("SDC080", "earlier answers have a delta, which this policy does not allow")
    free = max(0.0, privacy.epsilon - standing.spent)
    raise Refused(
        "SDC080",
        f"epsilon {standing.spent:.4g} of {privacy.epsilon:.4g} is spent, {free:.2g} is free, and a question takes "
        f"{privacy.per_question if cost.gaussian else cost.own:.4g} alone",
    )


def _left(charges: Sequence[Charge], charge: Charge, privacy: Privacy) -> int:
    """How many more charges of a kind there may be: by either of the sums, see the module."""
    found = []
    for sum_of, most in ((spent_of, _most(privacy)), (epsilons_of, privacy.epsilon)):
        each, spent = sum_of([charge], privacy), sum_of(charges, privacy)
        if math.isfinite(each) and math.isfinite(spent):
            found.append(max(0, math.floor((most * (1 + _ROUNDING) - spent) / each)))
    return max(found, default=0)


def standing_of(charges: Sequence[Charge], privacy: Privacy) -> Standing:
    """How a table stands after these: of questions with either noise, as many as there may be of the dearer one."""
    spent, epsilon = spent_of(charges, privacy), epsilons_of(charges, privacy)
    if privacy.gaussian:
        epsilon = min(epsilon, grid_noise().epsilon_of(spent, privacy.delta))
    costs = {
        _of_count(privacy),
        Charge("rho" if privacy.gaussian else "epsilon", _of_question(privacy), privacy.neighbours),
    }
    left = min(_left(charges, charge, privacy) for charge in costs)
    return Standing(len(charges), epsilon, privacy.epsilon, left)


def _of_count(privacy: Privacy) -> Charge:
    """What the number of all records costs: it has Laplace noise, if anything has."""
    return charge_for(cost_of([Release("", "", "", "", (), (("n", Noised(0, 1, 1.0, "count")),))], privacy), privacy)


def words_of(cost: Cost) -> str:
    """The law of the noise of a statement."""
    return "Gaussian noise" if cost.gaussian else "Laplace noise"


def laws_of(rewritten: Rewritten) -> Callable[[Statistic], Sequence[Law]]:
    """The law of the noise of each statistic of a question."""
    policy = policy_of(rewritten)
    cost = cost_of(rewritten.releases, policy.privacy)
    each = [
        (noised, deviation)
        for release, deviations in zip(rewritten.releases, cost.deviations, strict=True)
        for (_, noised), deviation in zip(release.columns, deviations, strict=True)
    ]
    alone = policy.privacy.per_question if cost.gaussian else cost.own
    shown = f"{words_of(cost)}, epsilon {alone:g} for the whole question"
    if any(release.adds_up for release in rewritten.releases):
        shown += "; a subtotal of k groups is their sum and has the root of k times as much"

    def of(statistic: Statistic) -> Sequence[Law]:
        wanted = "count" if statistic.kind in ("count", "units") else statistic.kind
        found = [
            sd
            for noised, sd in each
            if sd is not None and noised.statistic == wanted and noised.of in ("", statistic.of)
        ]
        if found:
            return [
                Law(statistic.kind, None, None, max(found) / (statistic.most or 1), None, NUMBER, None, None, shown)
            ]
        if statistic.kind not in _MADE_OF:
            return []
        return [Law(statistic.kind, None, None, None, None, "", None, None, f"{_MADE_OF[statistic.kind]}; {shown}")]

    return of
