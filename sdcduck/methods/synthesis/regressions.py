"""Columns of synthetic records that are drawn from a regression on the columns drawn before, instead of a tree.

A regression is kept as what each predictor adds to its outputs: of a number a slope, of a category one effect for each
code. Fitting sums over the records in their canonical order and solves by elimination, both compiled: no result depends
on the number of threads. A penalty of 1e-8 keeps predictors that say the same from being a problem.

Sources: Raghunathan, Reiter and Rubin (2003); Rubin (1987) for predictive mean matching; the names of the methods, and
that coefficients are the estimated ones, are those of the R package synthpop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.synthesis.draws import _GAMMA, _normal, _start, _uniform

if TYPE_CHECKING:
    from sdcduck.methods.synthesis.records import Model

NUMBERS = ("norm", "normrank", "pmm")
CATEGORIES = ("logreg", "polyreg")
METHODS = (*NUMBERS, *CATEGORIES)
NORM, NORMRANK, PMM, CLASSES = 0, 1, 2, 3
MOST_TERMS = 500
"""Slopes and effects of a regression, of all its outputs together."""

_KINDS = {"norm": NORM, "normrank": NORMRANK, "pmm": PMM, "logreg": CLASSES, "polyreg": CLASSES}
_FIELDS = 8  # kind, outputs, first term, last term, where intercepts, fits and classes begin, and the last choice
_PENALTY = 1e-8
_MOST_STEPS, _ENOUGH = 60, 1e-10
_STREAM = 2**62  # of the random streams of regressions, beside those of donors

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Predictor:
    """A column that a regression depends on.

    Attributes:
        place: of the column.
        codes: of the training records.
        size: number of distinct values.
        values: the distinct values, of a number; None for categories.
    """

    place: int
    codes: NDArray[np.int32]
    size: int
    values: Floats | None


@dataclass
class Fitted:
    """Regressions as arrays, one after the other, which can be stored.

    Attributes:
        fields: [r * 8] of each regression: see ``_FIELDS``.
        terms: [t * 3] of each predictor of a regression: its column, where in ``effects`` its own begin, and whether it
            is a number (centre, slopes, what is added where it is missing) or categories (effects by code, from -1 on).
        effects: also the intercepts, each followed by the standard deviation of the residuals.
        fits: of the donors of predictive mean matching, in increasing order.
        classes: codes of the values of categories.
    """

    fields: list[int] = field(default_factory=list)
    terms: list[int] = field(default_factory=list)
    effects: list[Floats] = field(default_factory=list)
    fits: list[Floats] = field(default_factory=list)
    classes: list[NDArray[np.int32]] = field(default_factory=list)

    def add(
        self, method: str, codes: NDArray[np.int32], values: Floats | None, predictors: Sequence[Predictor], near: int
    ) -> tuple[int, NDArray[np.int32]]:
        """Fit a regression of a column to records with these codes.

        values: of a number, whose codes are all finite. near: donors of predictive mean matching.

        Returns:
            The place of the regression, and its donors in the order that drawing expects.
        """
        kind = _KINDS[method]
        design, layout = _design(predictors, len(codes))
        fits, classes, choices = np.empty(0), np.empty(0, np.int32), 0
        if kind == CLASSES:
            classes, targets = np.unique(codes, return_inverse=True)
            outputs = max(len(classes) - 1, 1)
            found = _classes(design, targets.astype(np.int64), outputs)
            ends = np.append(found[0], 0.0)
            donors, choices = np.sort(codes), len(classes) - 1
        else:
            assert values is not None
            outputs = 1
            target = _scores(codes, len(values)) if kind == NORMRANK else values[codes]
            found, sd = _line(design, target)
            ends = np.append(found[0], sd)
            # Not by a library of linear algebra, whose sums may depend on the number of threads.
            told = np.einsum("ij,j->i", design, found[:, 0]) if kind == PMM else np.zeros(len(codes))
            order = np.lexsort((codes, told))
            donors = codes[order]
            if kind == PMM:
                fits, choices = told[order], min(near, len(codes))
        first = len(self.terms) // 3
        for predictor, (start, categories, centre, scale) in zip(predictors, layout, strict=True):
            self.terms += [predictor.place, sum(map(len, self.effects)), int(predictor.values is not None)]
            if predictor.values is not None:
                slopes = found[start] / scale
                self.effects += [np.array([centre]), slopes, found[start + 1]]
            else:
                table = np.zeros((predictor.size + 1, outputs))
                table[categories + 1] = found[start : start + len(categories)]
                self.effects.append(table.ravel())
        at = sum(map(len, self.effects))
        self.effects.append(ends)
        self.fields += [
            kind, outputs, first, len(self.terms) // 3, at, sum(map(len, self.fits)), sum(map(len, self.classes)),
            choices,
        ]  # fmt: skip
        self.fits.append(fits)
        self.classes.append(classes.astype(np.int32))
        return len(self.fields) // _FIELDS - 1, donors.astype(np.int32)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """By the names that they have in a model."""
        return {
            "regressions": np.array(self.fields, np.int64),
            "terms": np.array(self.terms, np.int64),
            "effects": np.concatenate([np.empty(0), *self.effects]),
            "fits": np.concatenate([np.empty(0), *self.fits]),
            "classes": np.concatenate([np.empty(0, np.int32), *self.classes]),
        }


def terms_of(predictors: Sequence[Predictor]) -> int:
    """How many slopes and effects these predictors have, for each output."""
    return sum(2 if one.values is not None else len(np.unique(one.codes)) - 1 for one in predictors)


def _design(
    predictors: Sequence[Predictor], records: int
) -> tuple[Floats, list[tuple[int, NDArray[np.int32], float, float]]]:
    """The columns of a regression: 1, numbers in standard units with an indicator of what is missing, and indicators of
    all categories but the most frequent one. Where those of each predictor begin, its categories, centre and scale."""
    columns: list[Floats] = [np.ones(records)]
    layout = []
    for one in predictors:
        start = len(columns)
        nothing = np.empty(0, np.int32)
        if one.values is not None:
            finite = one.codes >= 0
            numbers = np.append(one.values, 0.0)[np.maximum(one.codes, -1)]
            centre, scale = _units(numbers[finite])
            columns += [np.where(finite, (numbers - centre) / scale, 0.0), (~finite).astype(float)]
            layout.append((start, nothing, centre, scale))
        else:
            seen, counts = np.unique(one.codes, return_counts=True)
            others = np.delete(seen, np.argmax(counts)).astype(np.int32)
            columns += [(one.codes == code).astype(float) for code in others]
            layout.append((start, others, 0.0, 1.0))
    return np.column_stack(columns), layout


def _units(numbers: Floats) -> tuple[float, float]:
    """Mean and standard deviation of numbers however large; 1 where they are all the same.

    >>> _units(np.array([-1e300, 1e300]))
    (0.0, 1e+300)
    """
    largest = float(np.abs(numbers).max(initial=0.0))
    if not largest > 0:
        return 0.0, 1.0
    shares = numbers / largest
    spread = float(shares.std())
    return float(shares.mean()) * largest, spread * largest if spread > 0 else 1.0


def _scores(codes: NDArray[np.int32], size: int) -> Floats:
    """Normal scores of the ranks; of equal values the same, of their mean rank."""
    counts = np.bincount(codes, minlength=size)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    normal = NormalDist().inv_cdf
    used = np.flatnonzero(counts)
    scores = np.zeros(size)
    scores[used] = [normal(float(rank)) for rank in ranks[used] / (len(codes) + 1)]
    return scores[codes]


def _line(design: Floats, target: Floats) -> tuple[Floats, float]:
    """Least squares: coefficients (q, 1), and the standard deviation of the residuals."""
    centre, scale = _units(target)
    found = np.zeros((design.shape[1], 1))
    rest = _least_squares(design, (target - centre) / scale, found)
    used = design.shape[1] - int((design == 0).all(axis=0).sum())
    sd = float(np.sqrt(rest / max(len(target) - used, 1))) * scale
    found *= scale
    found[0] += centre
    return found, sd


def _classes(design: Floats, targets: NDArray[np.int64], outputs: int) -> Floats:
    """The most likely coefficients (q, outputs) of a logistic regression for classes 0, 1, ..; the first has none."""
    found = np.zeros((design.shape[1], outputs))
    _most_likely(design, targets, found)
    return found


@njit(cache=True, nogil=True)
def _solve(matrix, right):  # type: ignore[no-untyped-def]
    """The root of a system whose matrix is symmetric and above 0, by Cholesky's decomposition; both are overwritten."""
    size = len(right)
    for j in range(size):
        for k in range(j):
            matrix[j, j] -= matrix[j, k] * matrix[j, k]
        matrix[j, j] = np.sqrt(max(matrix[j, j], 1e-300))
        for i in range(j + 1, size):
            for k in range(j):
                matrix[i, j] -= matrix[i, k] * matrix[j, k]
            matrix[i, j] /= matrix[j, j]
    for i in range(size):
        for k in range(i):
            right[i] -= matrix[i, k] * right[k]
        right[i] /= matrix[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            right[i] -= matrix[k, i] * right[k]
        right[i] /= matrix[i, i]


@njit(cache=True, nogil=True)
def _least_squares(design, target, found):  # type: ignore[no-untyped-def]
    """Fills in coefficients; answers with the sum of squared residuals."""
    records, width = design.shape
    products, right = np.zeros((width, width)), np.zeros(width)
    for record in range(records):
        for i in range(width):
            x = design[record, i]
            if x != 0.0:
                right[i] += x * target[record]
                for j in range(i + 1):
                    products[i, j] += x * design[record, j]
    for i in range(width):
        products[i, i] += _PENALTY * records
    _solve(products, right)
    rest = 0.0
    for record in range(records):
        residual = target[record]
        for i in range(width):
            residual -= design[record, i] * right[i]
        rest += residual * residual
    for i in range(width):
        found[i, 0] = right[i]
    return rest


@njit(cache=True, nogil=True)
def _chances(design, record, found, chances):  # type: ignore[no-untyped-def]
    """Of the classes of a record; answers with the logarithm of their sum before it is 1."""
    outputs = found.shape[1]
    largest = 0.0
    chances[0] = 0.0
    for k in range(outputs):
        chances[k + 1] = 0.0
        for i in range(design.shape[1]):
            chances[k + 1] += design[record, i] * found[i, k]
        largest = max(largest, chances[k + 1])
    total = 0.0
    for k in range(outputs + 1):
        total += np.exp(chances[k] - largest)
    for k in range(outputs + 1):
        chances[k] = np.exp(chances[k] - largest) / total
    return largest + np.log(total)


@njit(cache=True, nogil=True)
def _likelihood(design, targets, found):  # type: ignore[no-untyped-def]
    """Its logarithm per record, less the penalty."""
    records = len(targets)
    chances = np.empty(found.shape[1] + 1)
    total = 0.0
    for record in range(records):
        log_sum = _chances(design, record, found, chances)
        if targets[record] > 0:
            for i in range(design.shape[1]):
                total += design[record, i] * found[i, targets[record] - 1]
        total -= log_sum
    squares = 0.0
    for i in range(found.shape[0]):
        for k in range(found.shape[1]):
            squares += found[i, k] * found[i, k]
    return total / records - 0.5 * _LOGIT_PENALTY * squares


_LOGIT_PENALTY = 1e-6  # where classes can be told apart without an error, effects would be infinite


@njit(cache=True, nogil=True)
def _most_likely(design, targets, found):  # type: ignore[no-untyped-def]
    """Newton's method, with steps that are halved until the likelihood rises."""
    records, width = design.shape
    outputs = found.shape[1]
    size = width * outputs
    chances = np.empty(outputs + 1)
    best = _likelihood(design, targets, found)
    for _ in range(_MOST_STEPS):
        curvature, slope = np.zeros((size, size)), np.zeros(size)
        for record in range(records):
            _chances(design, record, found, chances)
            for i in range(width):
                x = design[record, i]
                if x == 0.0:
                    continue
                for k in range(outputs):
                    row = k * width + i
                    slope[row] += x * ((1.0 if targets[record] == k + 1 else 0.0) - chances[k + 1])
                    for other in range(k + 1):
                        weight = x * chances[k + 1] * ((1.0 if other == k else 0.0) - chances[other + 1])
                        for j in range(width):
                            curvature[row, other * width + j] += weight * design[record, j]
        for k in range(outputs):
            for i in range(width):
                row = k * width + i
                slope[row] = slope[row] / records - _LOGIT_PENALTY * found[i, k]
                for column in range(row + 1):
                    curvature[row, column] /= records
                curvature[row, row] += _LOGIT_PENALTY
        _solve(curvature, slope)
        length, rises, gained = 1.0, False, 0.0
        trial = np.empty((width, outputs))
        while length > 1e-6 and not rises:
            for k in range(outputs):
                for i in range(width):
                    trial[i, k] = found[i, k] + length * slope[k * width + i]
            likelihood = _likelihood(design, targets, trial)
            rises, gained = likelihood > best, likelihood - best
            length *= 0.5
        if not rises:
            return
        for i in range(width):
            for k in range(outputs):
                found[i, k] = trial[i, k]
        best += gained
        if gained < _ENOUGH * 1e-2:
            return


def sound(model: Model) -> bool:
    """Whether the regressions of a model that was stored fit together, so that drawing reads within them."""
    if not len(model.regression):
        return True
    columns, known = len(model.treated), len(model.known)
    if len(model.regressions) % _FIELDS or len(model.terms) % 3 or len(model.known_at) != columns:
        return False
    fields, terms, effects = model.regressions.reshape(-1, _FIELDS), model.terms.reshape(-1, 3), len(model.effects)
    for kind, outputs, first, last, at, fits, classes, choices in fields.tolist():
        within = 0 <= kind <= CLASSES and outputs >= 1 and 0 <= first <= last <= len(terms) and choices >= 0
        within = within and 0 <= at <= effects - outputs - 1 and fits >= 0 and classes >= 0
        if kind == CLASSES:
            within = within and choices <= outputs and classes + choices < len(model.classes)
        if not within:
            return False
        for column, where, is_number in terms[first:last].tolist():
            if not (0 <= column < columns and is_number in (0, 1) and 0 <= where < effects):
                return False
            if is_number and not (0 <= model.known_at[column] <= known and where + 1 + 2 * outputs <= effects):
                return False
    if len(model.regression) != len(model.value_roots) or not np.isfinite(model.effects).all():
        return False
    nodes = model.nodes.reshape(-1, len(model.nodes) // max(len(model.donors_at), 1))
    for step in np.flatnonzero(model.regression >= 0).tolist():
        if model.regression[step] >= len(fields):
            return False
        kind, fits, choices = fields[model.regression[step], [0, 5, 7]].tolist()
        root = int(model.value_roots[step])
        if kind == CLASSES:
            continue
        # Finite values have donors, in a single leaf; numbers that are new are looked up among the original ones.
        if (
            root < 0
            or nodes[root, 0] >= 0
            or (kind == NORM and not model.treated[model.visit[step % len(model.visit)]])
        ):
            return False
        donors = int(model.donors_size[root])
        if kind == PMM and not (1 <= choices <= donors and fits + donors <= len(model.fits)):
            return False
    return True


def new_numbers(model: Model) -> list[int]:
    """The columns whose numbers are made by a regression, and are not those of donors."""
    if not len(model.regression):
        return []
    made = np.append(model.regressions.reshape(-1, _FIELDS)[:, 0] == NORM, False)
    steps = made[model.regression].reshape(-1, len(model.visit)).any(axis=0)
    return [int(column) for column in model.visit[steps]]


@njit(cache=True, nogil=True)
def _linear(record, k, regression, fields, terms, effects, codes, changed, results, known_at, known):  # type: ignore[no-untyped-def]
    """One output of a regression for a record. Codes of a stored model may be any, so places end at the last one."""
    outputs, last = fields[regression, 1], len(effects) - 1
    total = effects[fields[regression, 4] + k]
    for term in range(fields[regression, 2], fields[regression, 3]):
        column, at = terms[term, 0], terms[term, 1]
        code = codes[record, column]
        if terms[term, 2] == 0:
            total += effects[min(at + (max(code, -1) + 1) * outputs + k, last)]
        elif code >= 0 and changed[record, column] > 0:
            total += (results[record, column] - effects[at]) * effects[at + 1 + k]
        elif code >= 0 and known_at[column] + code < len(known):
            total += (known[known_at[column] + code] - effects[at]) * effects[at + 1 + k]
        else:
            total += effects[at + 1 + outputs + k]
    return total


@njit(cache=True, nogil=True)
def _below(numbers, begin, end, target, equal):  # type: ignore[no-untyped-def]
    """The end of those of some sorted numbers that lie below a target, or, with ``equal``, are not above it."""
    while begin < end:
        middle = (begin + end) // 2
        if numbers[middle] < target or (equal and numbers[middle] == target):
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(cache=True, nogil=True)
def _nearest(numbers, begin, end, target, count, chance):  # type: ignore[no-untyped-def]
    """The place of one of the ``count`` numbers, sorted, that lie nearest, or of those that are equal to the last."""
    right = _below(numbers, begin, end, target, False)
    left = right - 1
    for _ in range(count):
        if right >= end or (left >= begin and target - numbers[left] <= numbers[right] - target):
            left -= 1
        else:
            right += 1
    first = _below(numbers, begin, end, numbers[left + 1], False)
    last = _below(numbers, begin, end, numbers[right - 1], True)
    return first + int(chance * (last - first))


@njit(cache=True, nogil=True)
def _stepped(number, base, whole):  # type: ignore[no-untyped-def]
    """The nearest number that there may be."""
    if whole:
        number = np.rint(number)
    if base > 0.0 and np.isfinite(number / base):
        steps, parts = np.rint(number / base), np.rint(1.0 / base)
        number = steps / parts if parts > 0.0 and parts * base == 1.0 else steps * base
    return number


@njit(cache=True, nogil=True)
def _chosen(chances, outputs, last, chance):  # type: ignore[no-untyped-def]
    """The class that is drawn, of those up to the last; its linear predictors are overwritten."""
    largest, total = 0.0, 0.0
    for k in range(outputs + 1):
        largest = max(largest, chances[k])
    for k in range(outputs + 1):
        chances[k] = np.exp(chances[k] - largest)
        total += chances[k]
    left, k = chance * total, 0
    while k < last and left > chances[k]:
        left -= chances[k]
        k += 1
    return k


@njit(cache=True, nogil=True)
def _donor_at_rank(number, count):  # type: ignore[no-untyped-def]
    """The place of the donor, of so many in order, whose normal score is this one."""
    share = 0.5 * math.erfc(-number / math.sqrt(2.0))
    return min(max(int(np.rint(share * (count + 1))), 1), count) - 1


@njit(cache=True, nogil=True)
def _donor_nearest(number, values, values_at, donors, first, count):  # type: ignore[no-untyped-def]
    """The place of the donor, of so many in order, whose number is nearest."""
    lower, upper = 0, count - 1
    while lower < upper:
        middle = (lower + upper) // 2
        if values[values_at + donors[first + middle]] < number:
            lower = middle + 1
        else:
            upper = middle
    if lower > 0:
        below, above = values[values_at + donors[first + lower - 1]], values[values_at + donors[first + lower]]
        if number - below < above - number:
            lower -= 1
    return lower


@njit(cache=True, nogil=True)
def _draw(  # type: ignore[no-untyped-def]
    position, column, of_step, steps, numbers, strata, codes, chosen, seed, redraws, fields, terms, effects, fits,
    classes, known_at, known, donors_at, donors_size, donors, value_roots, treatment, values, bandwidths,
    results, changed,
):  # fmt: skip
    """Fill in one column of the records chosen, from the regression of their stratum.

    steps: columns that are drawn. treatment: of the column: whether it is treated, where its values begin, low, high,
    base, whole.
    """
    treated, values_at, low, high = treatment[0] > 0.0, np.int64(treatment[1]), treatment[2], treatment[3]
    base, whole = treatment[4], treatment[5] > 0.0
    chances = np.zeros(len(classes) + 2)
    for record in range(len(numbers)):
        step = strata[record] * steps + position
        one = of_step[step]
        if not chosen[record] or one < 0 or (fields[one, 0] != CLASSES and codes[record, column] < 0):
            continue  # or it is missing
        kind, outputs = fields[one, 0], fields[one, 1]
        state = _start(seed, np.uint64(column + 1) + np.uint64(_STREAM), numbers[record])
        chances[0] = 0.0
        for k in range(outputs):
            chances[k + 1] = _linear(record, k, one, fields, terms, effects, codes, changed, results, known_at, known)
        changed[record, column], results[record, column] = 0, 0.0
        mean, sd, leaf = chances[1], effects[fields[one, 4] + outputs], value_roots[step]
        first, count = donors_at[leaf], donors_size[leaf]
        for attempt in range(redraws + 1):
            number = 0.0
            if kind == CLASSES:
                if attempt == 0:
                    state += _GAMMA
                    code = classes[fields[one, 6] + _chosen(chances, outputs, fields[one, 7], _uniform(state))]
            elif kind == PMM:
                state += _GAMMA
                begin = fields[one, 5]
                place = _nearest(fits, begin, begin + count, mean, fields[one, 7], _uniform(state)) - begin
                code = donors[first + place]
            else:
                noise, state = _normal(state)
                number = mean + sd * noise
                if kind == NORMRANK:
                    code = donors[first + _donor_at_rank(number, count)]
                else:  # the code is that of the nearest donor
                    code = donors[first + _donor_nearest(number, values, values_at, donors, first, count)]
            codes[record, column] = code
            if not treated or code < 0:
                break
            original = values[values_at + code]
            if kind != NORM:
                number = original
                if bandwidths[values_at + code] > 0.0:
                    noise, state = _normal(state)
                    number = _stepped(number + noise * bandwidths[values_at + code], 0.0, whole)
            number = _stepped(number, base, whole and kind == NORM)
            if low <= number <= high:
                if number != original:
                    changed[record, column] = 1
                    results[record, column] = number
                break
            if attempt == redraws:
                changed[record, column] = 2
                results[record, column] = min(max(number, low), high)


def draw_regressions(
    model: Model, position: int, numbers: NDArray[np.int64], strata: NDArray[np.int64], codes: NDArray[np.int32],
    chosen: NDArray[np.bool_], seed: int, redraws: int, results: Floats, changed: NDArray[np.uint8],
) -> None:  # fmt: skip
    """Fill in the column at this position of the visit, where it is drawn from a regression; as `draw` does."""
    column = int(model.visit[position])
    treatment = np.array(
        [one[column] for one in (model.treated, model.values_at, model.low, model.high, model.base, model.whole)],
        np.float64,
    )
    _draw(
        position, column, model.regression, len(model.visit), numbers, strata, codes, chosen, seed, redraws,
        model.regressions.reshape(-1, _FIELDS), model.terms.reshape(-1, 3), model.effects, model.fits, model.classes,
        model.known_at, model.known, model.donors_at, model.donors_size, model.donors, model.value_roots, treatment,
        model.values, model.bandwidths, results, changed,
    )  # fmt: skip
