"""Which synthetic records equal an original record that is the only one of its kind.

Records are compared by fingerprints of their codes, 64 bits each: two different records have the same one with a
chance of about 1 to 2**64, and then one draw more is refused than need be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.synthesis.records import Model, draw, stratum_of
from sdcduck.methods.synthesis.regressions import new_numbers

MOST_DRAWS = 100
"""How often a record is drawn before it is given up."""
MOST_ALIKE = 50
"""Up to which of these draws it keeps the values that it shares with many, such as an income of 0."""
PILOT, MOST_COPIES = 2000, 0.25
"""How many records show what share are copies, and up to which share these are drawn again."""
_NEXT_DRAW = 2**40  # what lies between the random streams of two draws of a record: more than there are records
_NEW = -9  # the code of a number that no original record has
_FIRST, _FACTOR, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(31)


@dataclass(frozen=True)
class Drawn:
    """Records that were drawn: what they are, what `draw` says of them, and whether they equal a unique original."""

    codes: NDArray[np.int32]
    results: NDArray[np.float64]
    changed: NDArray[np.uint8]
    different: NDArray[np.int32]
    copies: NDArray[np.bool_]

    @classmethod
    def empty(cls, records: int, columns: int) -> Drawn:
        """Of so many, to be filled in with `put`."""
        shape = records, columns
        return cls(
            np.empty(shape, np.int32), np.empty(shape), np.empty(shape, np.uint8), np.empty(shape, np.int32),
            np.empty(records, bool),
        )  # fmt: skip

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All of it, record by record."""
        return self.codes, self.results, self.changed, self.different, self.copies

    def put(self, rows: NDArray[np.int64], those: Drawn) -> None:
        """Put other records in the place of some."""
        for mine, other in zip(self.arrays, those.arrays, strict=True):
            mine[rows] = other

    def of(self, rows: NDArray[np.int64]) -> Drawn:
        """Some of the records."""
        return Drawn(*(array[rows] for array in self.arrays))

    def of_columns(self, columns: slice) -> Drawn:
        """Some of their columns."""
        codes, results, changed, different = (array[:, columns] for array in self.arrays[:4])
        return Drawn(codes, results, changed, different, self.copies)


def draw_again(
    model: Model, some: Callable[[NDArray[np.int64], int], Drawn],
    held: Callable[[NDArray[np.int64], Drawn], NDArray[np.int32]], records: int, refused: NDArray[np.uint64], most: int,
) -> Drawn:  # fmt: skip
    """Draw records, and those again that equal a unique original one; those that still do in the end are marked.

    some: draws those of these places; of its second argument the random streams depend beside their numbers.
    held: the codes that are compared with ``refused``, of those of these places. most: how often each is drawn.
    """
    rows = np.arange(records)
    drawn = new = some(rows, 0)
    alike = without_noise(model, new.codes)
    for attempt in range(1, most + 1):
        again = among(held(rows, new), refused)
        if 1 < attempt <= MOST_ALIKE:
            again |= (without_noise(model, new.codes) != alike).any(axis=1)
        rows, alike = rows[again], alike[again]
        if not len(rows) or attempt == most:
            break
        new = some(rows, attempt * _NEXT_DRAW)
        drawn.put(rows, new)
    drawn.copies[rows] = True
    return drawn


def fingerprints(codes: NDArray[np.int32]) -> NDArray[np.uint64]:
    """One number for each row of codes; equal rows have equal ones.

    >>> a, b, c = fingerprints(np.array([[0, 1], [1, 0], [0, 1]], np.int32))
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    found = np.full(len(codes), _FIRST)
    for column in range(codes.shape[1]):
        found = (found ^ codes[:, column].astype(np.int64).astype(np.uint64)) * _FACTOR
        found ^= found >> _SHIFT
    return found


def chained(marks: NDArray[np.uint64], codes: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Fingerprints of rows of codes and of all that stood before them in their chains.

    >>> nothing = np.zeros(1, np.uint64)
    >>> a, b = np.array([[1]], np.int32), np.array([[2]], np.int32)
    >>> bool((chained(chained(nothing, a), b) == chained(chained(nothing, b), a)).any())
    False
    """
    found = (marks ^ fingerprints(codes)) * _FACTOR
    return np.asarray(found ^ (found >> _SHIFT))


def lonely(codes: NDArray[np.int32]) -> NDArray[np.uint64]:
    """The fingerprints of the rows that occur once, sorted.

    >>> len(lonely(np.array([[0, 1], [1, 0], [0, 1]], np.int32)))
    1
    """
    return once(fingerprints(codes))


def once(marks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Those of the fingerprints that occur once, sorted."""
    found, counts = np.unique(marks, return_counts=True)
    return np.asarray(found[counts == 1], np.uint64)


def codes_of_results(
    codes: NDArray[np.int32], results: NDArray[np.float64], changed: NDArray[np.uint8],
    values: Sequence[NDArray[np.float64] | None],
) -> NDArray[np.int32]:  # fmt: skip
    """Codes of what records hold in the end: a number that was changed may be one that originals have, or be new.

    values: by column, the distinct original numbers, sorted; None where nothing is changed.
    """
    final = codes.copy()
    for column, known in enumerate(values):
        rows = np.flatnonzero(changed[:, column])
        if known is None or not len(rows):
            continue
        numbers = results[rows, column]
        if not len(known):
            final[rows, column] = _NEW
            continue
        place = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        final[rows, column] = np.where(known[place] == numbers, place, _NEW)
    return final


def among(codes: NDArray[np.int32], refused: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which rows of codes have one of these fingerprints."""
    return found_in(fingerprints(codes), refused)


def found_in(marks: NDArray[np.uint64], refused: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which of the fingerprints are among those, which are sorted."""
    if not len(refused):
        return np.zeros(len(marks), bool)
    place = np.minimum(np.searchsorted(refused, marks), len(refused) - 1)
    return np.asarray(refused[place] == marks)


def too_many(
    model: Model, uniques: NDArray[np.uint64], values: Sequence[NDArray[np.float64] | None], redraws: int
) -> bool:
    """Whether more than a quarter of what a model draws are copies of unique records: too many to draw them again.

    Drawn again, they become more of what else the model makes, and no share moves by more than that of the copies.
    Where these are many, because values are very fine, only a few others would be left, such as zeros.
    """
    numbers = np.arange(PILOT)
    strata = stratum_of(model, numbers, PILOT)
    codes = model.strata_codes.reshape(len(model.strata_sizes), -1)[strata].copy()
    # Of a seed of its own: what is decided is the same for all files of a model.
    results, changed, _ = draw(model, numbers, strata, codes, np.ones(PILOT, bool), 0, redraws)
    return bool(among(codes_of_results(codes, results, changed, values), uniques).mean() > MOST_COPIES)


def without_noise(model: Model, codes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Of the columns that have noise: the codes of values that get none, since many share them, and one for all others.

    Records with such values are copies more often than others; their share would fall if anything might come instead.
    So would that of what is missing where all numbers are new ones of a regression.
    """
    ends, new = np.append(model.values_at[1:], len(model.values)), new_numbers(model)
    kept = []
    for column in np.flatnonzero(model.treated):
        widths = model.bandwidths[model.values_at[column] : ends[column]]
        if column in new:
            kept.append(np.minimum(codes[:, column], 0))
        elif (widths > 0).any():
            of_column = codes[:, column]
            kept.append(np.where((of_column >= 0) & (widths[np.maximum(of_column, 0)] > 0), _NEW, of_column))
    return np.column_stack(kept) if kept else np.empty((len(codes), 0), np.int32)
