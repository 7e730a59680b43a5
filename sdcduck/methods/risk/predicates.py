"""Singling out: predicates that one synthetic record meets, and how many of them one original record meets.

"There is exactly one person in the data with these values": an attacker who can say that without the data, from the
synthetic records, isolates a person. Rare values and extremes single out well, and so do combinations of values.

Giomi, Boenisch, Wehmeyer and Tasnadi (2023), section 4.1; Article 29 Working Party (2014), Opinion 05/2014.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.numerics import scipy
from sdcduck.methods.risk.attacks import Rate, wilson

EQUAL, UNEQUAL, AT_MOST, AT_LEAST = range(4)
_ROUNDS = 20  # of drawing predicates, until there are enough
_BATCH = 256  # predicates between two looks at whether to go on

Matrix = NDArray[np.float64]
Check = Callable[[int, int], object]


@dataclass(frozen=True)
class Predicates:
    """Conjunctions of terms.

    Attributes:
        columns: P x k, places of columns.
        operators: P x k, `EQUAL`, `UNEQUAL`, `AT_MOST` or `AT_LEAST`.
        values: P x k, what the columns are compared with; NaN is NULL, and equal to NULL.
    """

    columns: NDArray[np.int64]
    operators: NDArray[np.int64]
    values: Matrix

    def __len__(self) -> int:
        return len(self.columns)

    def chosen(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> Predicates:
        """Some of them."""
        return Predicates(self.columns[places], self.operators[places], self.values[places])

    def and_(self, others: Predicates) -> Predicates:
        """These, followed by others with as many terms."""
        return Predicates(
            np.concatenate([self.columns, others.columns]),
            np.concatenate([self.operators, others.operators]),
            np.concatenate([self.values, others.values]),
        )

    def matches(self, table: Matrix, check: Check = lambda done, total: None) -> Matches:
        """The rows of a table that meet each."""
        counts, rows = np.zeros(len(self), np.int64), np.full(len(self), -1)
        by_column = np.ascontiguousarray(table.T)
        for start in range(0, len(self), _BATCH):
            here = slice(start, start + _BATCH)
            columns = np.ascontiguousarray(self.columns[here])
            _count(by_column, columns, self.operators[here], self.values[here], counts[here], rows[here])
            check(min(start + _BATCH, len(self)), len(self))
        return Matches(counts, rows)


@dataclass(frozen=True)
class Matches:
    """What predicates find in a table.

    Attributes:
        counts: how many rows meet each.
        rows: the place of one of these, -1 if there is none.
    """

    counts: NDArray[np.int64]
    rows: NDArray[np.int64]

    @property
    def alone(self) -> NDArray[np.bool_]:
        """Which predicates single out a row."""
        alone: NDArray[np.bool_] = self.counts == 1
        return alone

    @property
    def repetition(self) -> float:
        """How many predicates single out the row that a predicate does, in the mean: these succeed or fail together."""
        times = np.unique(self.rows[self.alone], return_counts=True)[1]
        return float((times**2).sum() / times.sum()) if len(times) else 1.0


@njit(cache=True, nogil=True)
def _count(table, columns, operators, values, counts, found):  # type: ignore[no-untyped-def]
    rows = table.shape[1]
    met = np.empty(rows, np.bool_)
    for place in range(len(columns)):
        met[:] = True
        for term in range(columns.shape[1]):
            column, operator, value = table[columns[place, term]], operators[place, term], values[place, term]
            none = value != value
            if operator == 2:
                for row in range(rows):
                    met[row] &= column[row] <= value
            elif operator == 3:
                for row in range(rows):
                    met[row] &= column[row] >= value
            elif none:
                for row in range(rows):
                    met[row] &= (column[row] != column[row]) == (operator == 0)
            elif operator == 0:
                for row in range(rows):
                    met[row] &= column[row] == value
            else:
                for row in range(rows):
                    met[row] &= column[row] != value
        counts[place] = met.sum()
        if counts[place]:
            found[place] = np.argmax(met)


# --- what the attacker says ------------------------------------------------------------------------------------------


def of_one_column(
    synthetic: Matrix, numbers: frozenset[int], attacks: int, generator: np.random.Generator
) -> Predicates:
    """Predicates on one column that one synthetic record meets: values that occur once, and the ends of numbers."""
    parts = []
    for place in range(synthetic.shape[1]):
        column = synthetic[:, place]
        values, counts = np.unique(column, return_counts=True)  # all NaN are one
        once = values[counts == 1]
        parts.append(_terms(place, EQUAL, once))
        known = values[~np.isnan(values)]
        if place in numbers and len(known):
            ends = [(AT_MOST, 0), (AT_LEAST, len(known) - 1)]
            parts.extend(_terms(place, operator, known[[at]]) for operator, at in ends if counts[at] == 1)
    found = parts[0]
    for part in parts[1:]:
        found = found.and_(part)
    if len(found) <= attacks:
        return found
    return found.chosen(np.sort(generator.choice(len(found), attacks, replace=False)))


def _terms(column: int, operator: int, values: Matrix) -> Predicates:
    shape = (len(values), 1)
    return Predicates(np.full(shape, column), np.full(shape, operator), values.reshape(shape))


def of_several_columns(
    synthetic: Matrix, numbers: frozenset[int], terms: int, attacks: int, generator: np.random.Generator, check: Check
) -> Predicates:
    """Predicates on random columns of random synthetic records, kept where no other synthetic record meets them.

    Numbers are compared outwards: at least the value above the median, at most the value below.
    """
    records, columns = synthetic.shape
    is_number = np.array([place in numbers for place in range(columns)])
    medians = np.array([_median(synthetic[:, place]) for place in range(columns)])
    found = Predicates(np.empty((0, terms), np.int64), np.empty((0, terms), np.int64), np.empty((0, terms)))
    for _ in range(_ROUNDS):
        wanted = attacks - len(found)
        if not wanted or not records:
            break
        tried = 2 * wanted + 16
        chosen = np.sort(np.argsort(generator.random((tried, columns)), axis=1)[:, :terms], axis=1)
        values = synthetic[generator.integers(records, size=tried)[:, None], chosen]
        outwards = np.where(values > medians[chosen], AT_LEAST, AT_MOST)
        operators = np.where(is_number[chosen] & ~np.isnan(values), outwards, EQUAL)
        drawn = Predicates(chosen, operators, values)
        drawn = drawn.chosen(drawn.matches(synthetic, check).alone)
        found = _distinct(found.and_(drawn))
        found = found.chosen(np.arange(min(len(found), attacks)))
    return found


def _median(column: Matrix) -> float:
    known = column[~np.isnan(column)]
    return float(np.median(known)) if len(known) else np.nan


def _distinct(predicates: Predicates) -> Predicates:
    """Without repetitions, in the order of the first ones."""
    rows = np.concatenate([predicates.columns, predicates.operators, predicates.values], axis=1)
    _, first = np.unique(np.where(np.isnan(rows), np.inf, rows), axis=0, return_index=True)
    return predicates.chosen(np.sort(first))


# --- what whoever guesses says ---------------------------------------------------------------------------------------


def at_random(
    synthetic: Matrix, numbers: frozenset[int], like: Predicates, generator: np.random.Generator
) -> Predicates:
    """As many predicates with as many terms, on random columns, with random operators and values that occur."""
    count, terms = like.columns.shape
    columns = synthetic.shape[1]
    chosen = np.argsort(generator.random((count, columns)), axis=1)[:, :terms]
    operators = generator.integers(2, size=chosen.shape)
    values = np.empty(chosen.shape)
    for place in range(columns):
        here = chosen == place
        values[here] = generator.choice(np.unique(synthetic[:, place]), int(here.sum()))
        if place in numbers:
            operators[here] = generator.integers(4, size=int(here.sum()))
    operators[np.isnan(values)] &= 1  # NULL is equal or not
    return Predicates(chosen, operators, values)


# --- who is singled out ----------------------------------------------------------------------------------------------


def holds_one(counts: NDArray[np.int64], records: int, size: int) -> Matrix:
    """The probability that a random sample holds exactly one of the records counted: hypergeometric."""
    if size == records:
        return np.array(counts == 1, np.float64)
    others = records - counts
    spare = others - (size - 1)  # of the others, those that stay out
    gammaln = scipy.special.gammaln
    ways = gammaln(others + 1) - gammaln(size) - gammaln(np.maximum(spare, 0) + 1)
    all_ways = gammaln(records + 1) - gammaln(size + 1) - gammaln(records - size + 1)
    found: Matrix = np.where(spare >= 0, counts * np.exp(ways - all_ways), 0.0)
    return found


def success_rates(
    in_original: Matches, originals: int, in_control: Matches | None, controls: int, confidence: float
) -> tuple[Rate, Rate | None]:
    """How often the predicates single out an original record, and one of a control group of the same size.

    A predicate that one of 1000 people meets isolates nobody among 4000, and seldom anybody among 100, so both tables
    are judged at the size of the smaller: by the probability that a random sample of that size holds exactly one of the
    records that meet a predicate. Whom the original isolates beyond the control, at that size, are people whom the
    synthetic data know; those that the sample misses are added in proportion.

    Many predicates may single out the same person. The intervals count them as one finding (Kish's design effect).

    Args:
        in_original, in_control: what the predicates find.
        originals, controls: numbers of records.
    """
    whole = float(in_original.alone.mean())
    repetition = max(in_original.repetition, in_control.repetition if in_control else 1.0)
    attacks = len(in_original.counts) / repetition
    rate = wilson(whole, attacks, confidence)
    if in_control is None:
        return rate, None
    size = min(originals, controls)
    ours = float(holds_one(in_original.counts, originals, size).mean())
    theirs = min(float(holds_one(in_control.counts, controls, size).mean()), 1.0)
    scale = originals / size
    near = wilson(theirs, attacks, confidence)

    def of_the_whole(rate: float) -> float:
        return min(max(whole - scale * (ours - rate), 0.0), 1.0)

    return rate, Rate(of_the_whole(near.value), of_the_whole(near.low), of_the_whole(near.high))
