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

Where nobody may know the groups, half of delta is for those that appear (`sdcduck.methods.dp.threshold`): each question
has its part of that, the parts are added up, and what is left is the delta of the noise.

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
from sdcduck.guard.methods.dp_pairs import ALL as PAIRS
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Release, Rewritten
from sdcduck.guard.worth import NUMBER, Law, Statistic
from sdcduck.quoting import folded

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
        delta: what groups that nobody may know cost beside it.
        normal: whether it is drawn on a grid so fine that it is normal noise.
        appear: for each block the units without which a group is left out before there is noise, and the noisy number
            from which on it appears; None: all groups do.
    """

    gaussian: bool
    own: float
    scales: tuple[tuple[float, ...], ...]
    deviations: tuple[tuple[float | None, ...], ...]
    delta: float = 0.0
    normal: bool = False
    appear: tuple[tuple[int, int] | None, ...] = ()

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
        delta: beside it, for groups that nobody may know.
        normal: whether its noise was normal, of which costs are converted exactly.
        times: how many questions have cost that.
    """

    unit: str
    cost: float
    neighbours: str
    delta: float = 0.0
    normal: bool = False
    times: int = 1


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


def policies_of(rewritten: Rewritten) -> list[Policy]:
    """The policies of the tables that noise is drawn for, in the order of their names.

    Each of them is charged all that a statement costs: what it tells of who is in one of the tables, or in all, is no
    more than that.

    Raises:
        Refused: their costs are not counted alike.
    """
    names = {name for release in rewritten.releases for name in release.tables or (release.policy,)}
    found = sorted((one for one in rewritten.policies if one.name in names), key=lambda policy: folded(policy.name))
    check_alike(found)
    return found


def policy_of(rewritten: Rewritten) -> Policy:
    """The policy that a statement has its noise from: of several tables one that has a delta for groups."""
    return max(policies_of(rewritten), key=lambda policy: policy.privacy.of_groups)


def check_alike(policies: Sequence[Policy]) -> None:
    """Refuse tables together whose costs are not counted alike.

    Raises:
        Refused: what one of them is charged is no cost of the other.
    """
    for argument in ("neighbours", "delta", "per_question", "noise", "objective"):
        if len({getattr(policy.privacy, argument) for policy in policies}) > 1:
            names = " and ".join(f"'{policy.name}'" for policy in policies)
            raise Refused(
                "SDC081",
                f"{names} in one question, with another '{argument}' each: ask for each by itself, or have the "
                "custodian declare both alike",
            )


def cost_of(releases: Sequence[Release], privacy: Privacy) -> Cost:
    """What a statement costs and the noise of its totals, as OpenDP certifies it.

    Raises:
        Refused: it does not.
    """
    own, laplace = _of_question(privacy), _laplace_of_question(privacy)
    found = _noise_of(releases, privacy, own, gaussian=privacy.gaussian)
    gaussian = privacy.gaussian
    if privacy.noise == "normal" and any(one.deviation is None for one in _all(found)):
        raise Refused("SDC081", "a quantile where all noise is normal: ask for a mean, or how many are below a border")
    if gaussian and privacy.noise != "normal":
        other = _noise_of(releases, privacy, laplace, gaussian=False)
        if _is_smaller(_all(other), _all(found), privacy.objective):
            found, own, gaussian = other, laplace, False
    if not sum(one.certified() for one in _all(found)) <= own * (1 + _ROUNDING):
        raise Refused("SDC082", "the noise does not have the privacy that it was charged for")
    beside = _delta_of_question(privacy) if any(release.selects for release in releases) else 0.0
    return Cost(
        gaussian, own, tuple(tuple(one.scale for one in of) for of in found),
        tuple(tuple(one.deviation for one in of) for of in found), beside,
        privacy.noise == "normal", _appearing(releases, found, privacy, beside, gaussian=gaussian),
    )  # fmt: skip


def _is_smaller(one: Sequence[_Noise], other: Sequence[_Noise], objective: str) -> bool:
    """Whether one noise serves better than another one: by all lengths of a region, or by the squares of errors."""
    if objective != "volume" and all(noise.deviation is not None for noise in one):
        mine, its = (sum((noise.deviation or 0.0) ** 2 for noise in of) for of in (one, other))
        return mine < its
    return sum(math.log(mine.size / its.size) for mine, its in zip(one, other, strict=True)) < 0


def _appearing(
    releases: Sequence[Release], found: Sequence[Sequence[_Noise]], privacy: Privacy, delta: float, *, gaussian: bool
) -> tuple[tuple[int, int] | None, ...]:  # fmt: skip
    """From which number of units on groups appear; the blocks of a question share its delta."""
    from sdcduck.methods.dp.threshold import least_units, threshold

    choosing = sum(bool(release.selects) for release in releases)
    appear: list[tuple[int, int] | None] = []
    for release, of in zip(releases, found, strict=True):
        if not release.selects:
            appear.append(None)
            continue
        scale = next(one.scale for one, (name, _) in zip(of, release.columns, strict=True) if name == release.selects)
        least = least_units(scale)
        finer = grid_noise().steps_of_one(scale) if privacy.noise == "normal" else 1
        shared = delta / choosing
        rows = _with_rows(privacy, release).contributions
        most = threshold(scale, shared, rows, least, gaussian=gaussian, finer=finer)
        appear.append((least, most))
    return tuple(appear)


def _of_question(privacy: Privacy) -> float:
    if not privacy.gaussian:
        return privacy.per_question
    limits = _Limits.of(privacy, privacy.of_groups)
    return _rho_of(privacy, min(privacy.per_question, limits.epsilon), limits.delta)


def _rho_of(privacy: Privacy, epsilon: float, delta: float) -> float:
    """What costs so much at a delta: of normal noise alone exactly, of any by its zero-concentrated privacy."""
    noise = grid_noise()
    return float((noise.normal_rho_of if privacy.noise == "normal" else noise.rho_of)(epsilon, delta))


def _questions(privacy: Privacy) -> int:
    """How many questions of Gaussian noise there are."""
    return max(1, math.floor(_Limits.of(privacy, privacy.of_groups).most * (1 + _ROUNDING) / _of_question(privacy)))


def _delta_of_question(privacy: Privacy) -> float:
    return privacy.of_groups / _questions(privacy)


def _laplace_of_question(privacy: Privacy) -> float:
    """The epsilon of a question with Laplace noise, so that there are as many as there are with Gaussian noise."""
    if not privacy.gaussian:
        return privacy.per_question
    return min(privacy.per_question, _Limits.of(privacy, privacy.of_groups).epsilon / _questions(privacy))


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


def _with_rows(privacy: Privacy, release: Release) -> Privacy:
    """The same where a unit has as many rows as in a block, which may be about other tables, or several together."""
    rows = release.contributions
    return privacy if rows in (None, privacy.contributions) else replace(privacy, contributions=rows)


def _all(found: Sequence[Sequence[_Noise]]) -> list[_Noise]:
    return [one for of in found for one in of]


def _noise_of(
    releases: Sequence[Release], privacy: Privacy, own: float, *, gaussian: bool
) -> list[list[_Noise]]:  # fmt: skip
    """The noise of all totals of a statement that costs so much."""
    parts = iter(_parts(releases, privacy, gaussian=gaussian))
    noise = grid_noise()
    found: list[list[_Noise]] = []
    for release in releases:
        found.append([])
        for _, noised in release.columns:
            apart = sensitivity(noised, _with_rows(privacy, release), grouped=release.grouped, gaussian=gaussian)
            each = own * next(parts)
            scale = (noise.choice_scale_of if noised.positions else noise.scale_of)(apart, each, gaussian=gaussian)
            deviation = None if noised.positions else noised.step * noise.deviation(scale, gaussian=gaussian)
            found[-1].append(_Noise(scale, apart, deviation, gaussian))
    return found


def _parts(releases: Sequence[Release], privacy: Privacy, *, gaussian: bool) -> list[float]:
    """The part of the cost that each total has: an equal one of choices, else as the objective says."""
    every = [(noised, release) for release in releases for _, noised in release.columns]
    numbers = [(noised, release) for noised, release in every if not noised.positions]
    if privacy.objective == "volume" or not numbers:
        return [1 / len(every)] * len(every)
    import numpy as np

    from sdcduck.methods.dp.allocation import allocate, allocate_laplace

    apart = np.array(
        [
            noised.step * sensitivity(noised, _with_rows(privacy, of), grouped=of.grouped, gaussian=gaussian)
            for noised, of in numbers
        ]
    )
    if gaussian:
        shares = allocate(apart, 1.0, privacy.objective).shares
    else:
        shares = allocate_laplace(apart, 1.0, privacy.objective).epsilons
    shared = iter((shares * len(numbers) / len(every)).tolist())
    return [1 / len(every) if noised.positions else next(shared) for noised, _ in every]


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

    A unit that counts once in a group counts in as many groups as it has rows. One whose rows were brought together
    has one, whatever was made of them.
    """
    rows = 1 if noised.single else privacy.contributions
    if not noised.once:
        return rows
    return 1 if not grouped else math.sqrt(rows) if gaussian else rows


class _Limits(NamedTuple):
    """What the noise of all questions together may have.

    Attributes:
        epsilon: it may have.
        delta: that is left for noise.
        most: what costs may add up to: rho, or epsilon without a delta.
    """

    epsilon: float
    delta: float
    most: float

    @classmethod
    def of(cls, privacy: Privacy, of_groups: float) -> _Limits:
        """Where groups that nobody may know have so much of delta."""
        if not privacy.gaussian:
            return cls(privacy.epsilon, 0.0, privacy.epsilon if of_groups == 0 else 0.0)
        epsilon, delta = privacy.epsilon + math.log1p(-of_groups), privacy.delta - of_groups
        if not (delta > 0 and epsilon > 0):
            return cls(0.0, 0.0, 0.0)
        return cls(epsilon, delta, _rho_of(privacy, epsilon, delta))

    @classmethod
    def after(cls, charges: Sequence[Charge], privacy: Privacy) -> _Limits:
        """The same where more of delta was spent for groups under another policy."""
        return cls.of(privacy, max(privacy.of_groups, _deltas_of(charges)))


def spent_of(charges: Sequence[Charge], privacy: Privacy, limits: _Limits | None = None) -> float:
    """What questions have cost, as it counts under the policy that holds now: rho, or epsilon without a delta.

    Who is replaced is taken away and another one added: twice the epsilon, four times the rho. The noise under
    'replace' is enough for 'add_remove', too. An epsilon is half its square as a rho, and at the order alpha at which
    the budget is converted an alpha-th part of it at most; a rho is no epsilon.
    """
    limits = limits or _Limits.after(charges, privacy)
    if charges and not limits.most:
        return math.inf
    if privacy.noise == "normal" and not all(charge.normal for charge in charges):
        return math.inf
    order = grid_noise().order_of(limits.most, limits.delta) if privacy.gaussian else 1.0
    total = 0.0
    for charge in charges:
        cost = charge.cost
        harder = charge.neighbours != "replace" and privacy.neighbours == "replace"
        if charge.unit == "epsilon":
            cost *= 2 if harder else 1
            cost = min(cost * cost / 2, cost / order) if privacy.gaussian else cost
        else:
            cost = (4 if harder else 1) * cost if privacy.gaussian else math.inf
        total += charge.times * cost
    return total


def _deltas_of(charges: Sequence[Charge]) -> float:
    """What of delta groups that nobody may know have cost."""
    return sum(charge.times * charge.delta for charge in charges)


def epsilons_of(charges: Sequence[Charge], privacy: Privacy, limits: _Limits | None = None) -> float:
    """The sum of the epsilons of Laplace noise; infinite where there was other noise."""
    if charges and not (limits or _Limits.after(charges, privacy)).most:
        return math.inf
    return spent_of(
        [replace(charge, delta=0.0) for charge in charges], replace(privacy, delta=0, private=(), noise="least")
    )


def charge_for(cost: Cost, privacy: Privacy) -> Charge:
    """What a question is charged with."""
    return Charge(cost.unit, cost.own, privacy.neighbours, cost.delta, cost.normal)


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
        which = "other noise" if privacy.noise == "normal" else "a delta"
        raise Refused("SDC080", f"earlier answers have {which}, which this policy does not allow")
    free = max(0.0, privacy.epsilon - standing.spent)
    raise Refused(
        "SDC080",
        f"epsilon {standing.spent:.4g} of {privacy.epsilon:.4g} is spent, {free:.2g} is free, and a question takes "
        f"{privacy.per_question if cost.gaussian else cost.own:.4g} alone",
    )


def _left(charges: Sequence[Charge], charge: Charge, privacy: Privacy) -> int:
    """How many more charges of a kind there may be: by either of the sums, see the module."""
    found, limits = [], _Limits.after(charges, privacy)
    for sum_of, most in ((spent_of, limits.most), (epsilons_of, limits.epsilon)):
        each, spent = sum_of([charge], privacy, limits), sum_of(charges, privacy, limits)
        if math.isfinite(each) and math.isfinite(spent):
            found.append(max(0, math.floor((most * (1 + _ROUNDING) - spent) / each)))
    left = max(found, default=0)
    if charge.delta:
        free = privacy.of_groups * (1 + _ROUNDING) - _deltas_of(charges)
        left = min(left, max(0, math.floor(free / charge.delta)))
    return left


def standing_of(charges: Sequence[Charge], privacy: Privacy) -> Standing:
    """How a table stands after these: of questions with either noise, as many as there may be of the dearer one."""
    limits = _Limits.after(charges, privacy)
    spent, epsilon = spent_of(charges, privacy, limits), epsilons_of(charges, privacy, limits)
    if privacy.gaussian and limits.most and math.isfinite(spent):
        noise = grid_noise()
        of = noise.normal_epsilon_of if privacy.noise == "normal" else noise.epsilon_of
        epsilon = min(epsilon, of(spent, limits.delta))
    if _deltas_of(charges):
        epsilon += privacy.epsilon - limits.epsilon
    costs = {
        _of_count(privacy),
        Charge(
            "rho" if privacy.gaussian else "epsilon", _of_question(privacy), privacy.neighbours,
            normal=privacy.noise == "normal",
        ),
    }  # fmt: skip
    if privacy.private:
        beside = _delta_of_question(privacy)
        costs = {replace(charge, delta=beside) for charge in costs}
    left = min(_left(charges, charge, privacy) for charge in costs)
    return Standing(sum(charge.times for charge in charges), epsilon, privacy.epsilon, left)


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
    if cost.normal:
        shown += ", converted exactly"
    if policy.privacy.objective != "volume" and len(each) > 1:
        shown += f", shared by objective '{policy.privacy.objective}'"
    for at in sorted({one[1] for one in cost.appear if one is not None}):
        shown += f"; a group appears from a noisy number of {at} units on (delta {cost.delta:.2g} for the question)"
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
        made_of = _MADE_OF.get(statistic.kind, "")
        if statistic.kind in PAIRS:
            made_of = _of_pair(statistic.of, each)
        return [Law(statistic.kind, None, None, None, None, "", None, None, f"{made_of}; {shown}")] if made_of else []

    return of


def _of_pair(of: str, each: Sequence[tuple[Noised, float | None]]) -> str:
    """What a statistic of two measures is made of, with the standard deviations of these parts.

    Of the statistic itself nothing is said before it is known: it hangs on the sums and the number of records.
    """
    both = sorted(of.split(" and "))
    parts: dict[str, list[str]] = {}
    for noised, deviation in each:
        of_these = noised.statistic == "moment" and set(noised.of.split(" and ")) <= set(both)
        if deviation is not None and (of_these or noised.statistic == "count"):
            parts.setdefault(f"of {noised.of}" if of_these else "number of records", []).append(f"{deviation:.3g}")
    shown = ", ".join(f"{part} {' and '.join(dict.fromkeys(sds))}" for part, sds in parts.items())
    return (
        "made of noisy sums of distances, squares and products and a noisy count, kept between what the bounds allow "
        f"(standard deviations: {shown})"
    )
