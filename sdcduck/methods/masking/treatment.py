"""Treatment of a survey file: values of donors, a part of the records, and weights that keep known totals.

Sathe et al. (2022), "Quality assessment of the 2014 to 2019 NSDUH public use files", PSD, outline it: risk strata, a
substitution in each of them, a subsample of each, and calibration. Everything random depends on the seed, the number of
the try and what a record is known by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.masking.raking import Raked, rake
from sdcduck.methods.synthesis.draws import random_bits

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]
Check = Callable[[int, int], None]

_CHOSEN, _DONOR, _KEPT, _PURPOSES = 0, 1, 2, 4
MOST_OFF, MOST_WIDER, _PRECISE = 0.05, 1.02, 0.30
"""An estimate may be off by so much where its relative standard error is below `_PRECISE`; standard errors may grow on
average by so much more than the smaller file explains."""


@dataclass(frozen=True)
class Records:
    """What is known of n records, in an order that only their values decide.

    Attributes:
        keys, numbers: what a record is known by, and which of the equal ones it is.
        strata: of risk, the riskiest first.
        classes: no donor is of another class.
        patterns: equal for records with the same values in all that is substituted.
        identifying: equal for records with the same values in what identifies and is substituted.
        measured: n x p, what donors are near in, divided by the ranges; NaN where it is missing.
        categories: n x q, the same, where only equality counts.
        weights: at least 0.
        domains: codes of the columns whose combinations the subsample is spread over, and estimates are made in.
        outcomes: n x o, NaN where missing.
        margins: of each margin the codes of its columns.
        moved: which of the columns of `domains`, `outcomes` and each of `margins` are substituted.
    """

    keys: NDArray[np.uint64]
    numbers: Indices
    strata: Indices
    classes: Indices
    patterns: Indices
    identifying: Indices
    measured: Matrix
    categories: Indices
    weights: Matrix
    domains: Indices
    outcomes: Matrix
    margins: Sequence[Indices]
    moved_domains: NDArray[np.bool_]
    moved_outcomes: NDArray[np.bool_]
    moved_margins: Sequence[NDArray[np.bool_]]

    def bits(self, purpose: int, attempt: int, seed: int) -> NDArray[np.uint64]:
        """64 random bits of each record."""
        everywhere = np.ones(len(self.keys), np.int64)
        return random_bits(self.keys, self.numbers * _PURPOSES + purpose, attempt * everywhere, seed * everywhere)


@dataclass(frozen=True)
class Treated:
    """The treated file.

    Attributes:
        taken: n, whose values a record has: its own number where it was not substituted.
        chosen: n, whether it was to be substituted.
        kept: the records that are left.
        weights: of these.
        attempt: which of the tries it is, from 0 on.
        off: estimates that are off by too much; None: none was made.
        wider: the mean ratio of standard errors.
        raked: how calibration went.
        problem: why it cannot be used; None: it can.
    """

    taken: Indices
    chosen: NDArray[np.bool_]
    kept: Indices
    weights: Matrix
    attempt: int = 0
    off: int = 0
    compared: int = 0
    wider: float = np.nan
    raked: Raked | None = None
    problem: str | None = None
    met: bool = True


def rates_of(strata: Indices, overall: float, count: int) -> Matrix:
    """The share of each stratum that is kept: less of the risky ones, and `overall` of all.

    From 0.70 for the riskiest to 0.82 for the last, scaled; none is above 1.

    >>> rates_of(np.array([0, 1, 1, 1]), 0.79, 2).round(6).tolist()
    [0.7, 0.82]
    """
    if overall >= 1:
        return np.ones(count)
    sizes = np.bincount(strata, minlength=count).astype(np.float64)
    rates = np.linspace(0.70, 0.82, count)
    for _ in range(count):
        free = rates < 1
        wanted = overall * sizes.sum() - sizes[~free].sum()
        rates[free] *= wanted / (sizes[free] @ rates[free] or 1.0)
        if (rates <= 1).all():
            break
        rates = np.minimum(rates, 1.0)
    return np.clip(rates, 0.0, 1.0)


def treat(
    records: Records, psi: Matrix, phi: Matrix, *, seed: int, tries: int, bounds: tuple[float, float],
    check: Check = lambda done, total: None,
) -> Treated:  # fmt: skip
    """The first of some tries that keeps estimates and their precision, or else the best of them.

    Args:
        psi: of each stratum the share that is substituted.
        phi: of each stratum the share that is kept.
        tries: at most so many.
        bounds: of the factors by which calibration changes weights.
        check: called with how many tries are done, and how many there may be.

    Raises:
        ValueError: no try could be calibrated.
    """
    best: Treated | None = None
    for attempt in range(tries):
        check(attempt, tries)
        found = _attempt(records, psi, phi, seed, attempt, bounds, lambda done, total: check(0, 0))
        if best is None or _rank(found) < _rank(best):
            best = found
        if best.met:
            break
    if best is None or best.problem is not None:
        raise ValueError("no try" if best is None else str(best.problem))
    return best


def _rank(one: Treated) -> tuple[bool, int, float]:
    """Better ones first."""
    return one.problem is not None, one.off, 0.0 if np.isnan(one.wider) else one.wider


def _attempt(
    records: Records, psi: Matrix, phi: Matrix, seed: int, attempt: int, bounds: tuple[float, float], check: Check
) -> Treated:
    chosen = _sample(records.strata, records.bits(_CHOSEN, attempt, seed), psi)
    taken = nearest_donors(records, chosen, records.bits(_DONOR, attempt, seed), check)
    kept = _systematic(records, phi, attempt, seed)
    weights = records.weights[kept] / phi[records.strata[kept]]
    made = Treated(taken, chosen, kept, weights, attempt)
    if records.margins:
        made = _calibrated(records, made, bounds)
    return made if made.problem is not None else _compared(records, made, float(len(kept)) / max(len(taken), 1))


def _sample(strata: Indices, bits: NDArray[np.uint64], rates: Matrix) -> NDArray[np.bool_]:
    """A simple random sample of each stratum: those with the smallest numbers."""
    order = np.lexsort((np.arange(len(strata)), bits, strata))
    sizes = np.bincount(strata, minlength=len(rates))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.arange(len(strata)) - starts[strata[order]]
    chosen = np.zeros(len(strata), np.bool_)
    chosen[order] = place < np.round(sizes * rates)[strata[order]]
    return chosen


def _systematic(records: Records, rates: Matrix, attempt: int, seed: int) -> Indices:
    """Each stratum at its rate, in steps over its records sorted by domain."""
    domain = joint(records.domains)
    order = np.lexsort((np.arange(len(domain)), records.bits(_KEPT, attempt, seed), domain, records.strata))
    sizes = np.bincount(records.strata, minlength=len(rates))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    strata = records.strata[order]
    here, ones = np.arange(len(order)) - starts[strata], np.ones(len(rates), np.int64)
    bits = random_bits(np.arange(len(rates), dtype=np.uint64), ones * -1, attempt * ones, seed * ones)
    begin = (bits >> np.uint64(11)).astype(np.float64)[strata] / 2.0**53
    steps = rates[strata]
    return np.sort(order[np.floor(begin + (here + 1) * steps) > np.floor(begin + here * steps)])


def nearest_donors(
    records: Records, chosen: NDArray[np.bool_], bits: NDArray[np.uint64], check: Check = lambda done, total: None
) -> Indices:
    """Whose values each record gets: of its class, with other values, the nearest; of equally near ones by chance.

    The distance is Gower's: of numbers the difference over the range, of categories whether they differ; what is
    missing is equal to what is missing, and as far as can be from all else.
    """
    taken = np.arange(len(chosen))
    order = np.argsort(records.classes, kind="stable")
    sizes = np.bincount(records.classes) if len(order) else np.zeros(0, np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    recipients = np.flatnonzero(chosen)
    step = max(1, 20_000_000 // max(1, len(order)))
    for begin in range(0, len(recipients), step):
        _find_donors(
            recipients[begin : begin + step], order, starts, records.classes, records.patterns, records.measured,
            records.categories, bits, taken,
        )  # fmt: skip
        check(begin, len(recipients))
    return taken


@njit(cache=True, nogil=True)
def _find_donors(
    recipients: Indices, order: Indices, starts: Indices, classes: Indices, patterns: Indices, measured: Matrix,
    categories: Indices, bits: Any, taken: Indices,
) -> None:  # fmt: skip
    for one in recipients:
        best, found = np.inf, -1
        for place in range(starts[classes[one]], starts[classes[one] + 1]):
            other = order[place]
            if patterns[other] == patterns[one]:
                continue
            apart = 0.0
            for column in range(categories.shape[1]):
                if categories[one, column] != categories[other, column]:
                    apart += 1.0
            for column in range(measured.shape[1]):
                a, b = measured[one, column], measured[other, column]
                if np.isnan(a) or np.isnan(b):
                    apart += 0.0 if np.isnan(a) and np.isnan(b) else 1.0
                else:
                    apart += abs(a - b)
            if apart < best or (apart == best and (bits[one] ^ bits[other]) < (bits[one] ^ bits[found])):
                best, found = apart, other
        if found >= 0:
            taken[one] = found


def joint(columns: Indices) -> Indices:
    """One code for each combination of the codes of some columns.

    >>> joint(np.array([[1, 0], [0, 5], [1, 0]])).tolist()
    [1, 0, 1]
    """
    if not columns.shape[1]:
        return np.zeros(len(columns), np.int64)
    return np.unique(columns, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _now(columns: NDArray[Any], moved: NDArray[np.bool_], made: Treated) -> NDArray[Any]:
    """The columns of the records that are left, as they are now."""
    return np.where(moved, columns[made.taken[made.kept]], columns[made.kept])


def _calibrated(records: Records, made: Treated, bounds: tuple[float, float]) -> Treated:
    """With weights whose totals in all margins are those of the whole file."""
    codes: list[Indices] = []
    targets: list[Matrix] = []
    for columns, moved in zip(records.margins, records.moved_margins, strict=True):
        both = joint(np.concatenate([columns, _now(columns, moved, made)]))
        size = int(both.max(initial=-1)) + 1
        target = np.bincount(both[: len(columns)], records.weights, minlength=size).astype(np.float64)
        code = both[len(columns) :]
        if ((np.bincount(code, made.weights, minlength=len(target)) == 0) & (target > 0)).any():
            return replace(made, problem="a category of a margin has no record left: merge categories", met=False)
        codes.append(code)
        targets.append(target)
    raked = rake(made.weights, codes, targets, bounds=bounds)
    problem = None if raked.converged else "no weights within the bounds meet the margins: merge categories"
    return replace(made, weights=made.weights * raked.factors, raked=raked, problem=problem, met=problem is None)


def _compared(records: Records, made: Treated, share: float) -> Treated:
    """With what has become of the estimates: means of the outcomes in each domain."""
    if not records.outcomes.shape[1]:
        return made
    both = joint(np.concatenate([records.domains, _now(records.domains, records.moved_domains, made)]))
    count, size = len(records.weights), int(both.max(initial=-1)) + 1
    off = compared = 0
    wider = []
    for place, moved in enumerate(records.moved_outcomes):
        values = records.outcomes[:, [place]]
        now = _now(values, np.array([moved]), made)[:, 0]
        est, se = _estimates(values[:, 0], records.weights, both[:count], size)
        est_now, se_now = _estimates(now, made.weights, both[count:], size)
        some = est != 0
        precise = some & (se / np.where(some, np.abs(est), 1.0) < _PRECISE)
        compared += int(precise.sum())
        off += int((~(np.abs(est_now[precise] / est[precise] - 1) <= MOST_OFF)).sum())
        ratios = se_now[se > 0] / se[se > 0]
        wider.append(ratios[np.isfinite(ratios)])
    ratios = np.concatenate(wider)
    mean = float(ratios.mean()) if len(ratios) else np.nan
    met = off == 0 and (np.isnan(mean) or mean <= MOST_WIDER / np.sqrt(share))
    return replace(made, off=off, compared=compared, wider=mean, met=bool(met))


def _estimates(values: Matrix, weights: Matrix, domains: Indices, size: int) -> tuple[Matrix, Matrix]:
    """The mean in each domain and its linearised standard error, each record being a sampling unit; NaN for none."""
    known = ~np.isnan(values)
    some, weighed, where = values[known], weights[known], domains[known]
    under = np.bincount(where, weighed, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        est = np.bincount(where, weighed * some, minlength=size) / under
        errors = weighed * (some - est[where]) / under[where]
        count = len(values)
        se = np.sqrt(np.bincount(where, errors**2, minlength=size) * (count / (count - 1) if count > 1 else np.nan))
    return est, se
