"""P-tables that others made: their intervals, brought to whole numbers of keys and checked.

Whatever would make wrong numbers of a table is refused, in words that go on after the name of the table: "is no
p-table: the intervals of a row do not end at 1".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.perturbation.lookup import KEY_MODULUS
from sdcduck.methods.perturbation.ptable import PTableError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Texts = NDArray[np.str_]

_ONS_LAST = 750  # tables of the ONS form give rows up to 750; larger counts use rows 501..750 in turn
_ONS_REPEAT = 250
_MOST_KEYS = 1 << 16  # of a p-table with keys of its own
_NEARLY_SURE = 0.99
_P_TOLERANCE = 5e-4  # probabilities written with 4 digits


@dataclass(frozen=True)
class Intervals:
    """A p-table as a list of intervals, in the order of blocks ('all', or 'even' before 'odd'), rows and bounds.

    Attributes:
        kind: ``counts`` or ``magnitudes``.
        modulus: keys run from 0 to modulus - 1.
        step: noise is a multiple of 1 / step.
        repeat: counts beyond the last row use the last ``repeat`` rows in turn.
        type: (n,) 'all', 'even' or 'odd', which cells the interval serves.
        i: (n,) row: original count, or ratio of value to noise magnitude.
        v: (n,) noise.
        lb, ub: (n,) bounds on the scale of the keys, lb <= key < ub.
    """

    kind: str
    modulus: int
    step: int
    repeat: int
    type: Texts
    i: Floats
    v: Floats
    lb: Ints
    ub: Ints

    @property
    def rows(self) -> int:
        """How many rows the intervals belong to."""
        return len(_row_starts(self.i, self.type == "odd"))

    @property
    def is_noise(self) -> bool:
        """Whether there is a row, but for that of nobody, in which no noise is nearly sure.

        Otherwise who knows the table knows the original of each number: a rounding table has some such rows, one that
        adds nothing, or three to everything, no others.
        """
        if not len(self.i):
            return False
        starts = np.zeros(len(self.i), dtype=np.int64)
        starts[_row_starts(self.i, self.type == "odd")] = 1
        row = np.cumsum(starts)
        _, at = np.unique(np.column_stack([row, self.v]), axis=0, return_inverse=True)
        keys = np.bincount(at.ravel(), weights=self.ub - self.lb)[at.ravel()]
        most = np.zeros(row[-1] + 1)
        np.maximum.at(most, row, keys)
        return bool(np.any(most[row[self.i > 0]] < _NEARLY_SURE * self.modulus))


def _row_starts(i: Floats, odd: NDArray[np.bool_]) -> Ints:
    return np.flatnonzero(np.r_[True, (np.diff(i) != 0) | (odd[1:] != odd[:-1])]).astype(np.int64)


def ptable_intervals(
    type: Texts, i: Floats, v: Floats, ub: Floats, *, lb: Floats | None = None, p: Floats | None = None,
    repeat: Floats | None = None, kind: str | None = None,
) -> Intervals:  # fmt: skip
    """The intervals of a table of n upper bounds, sorted by type, i and ub; rows of 0 are added where there are none.

    Args:
        ub: upper bounds, up to 1, or whole numbers of keys.
        lb, p: lower bounds, and probabilities, which must agree with the upper ones.
        repeat: one whole number everywhere; None: 1.
        kind: None: what the table looks like.

    Raises:
        PTableError: what is wrong, in words that go on after the name of the table.

    >>> table = ptable_intervals(np.full(2, "all"), np.ones(2), np.array([-1.0, 1.0]), np.array([0.5, 1.0]))
    >>> table.kind, table.i.tolist(), table.v.tolist(), table.ub.tolist()
    ('counts', [0.0, 1.0, 1.0], [0.0, -1.0, 1.0], [100000000, 50000000, 100000000])
    """
    fractions = ub.max() <= 1 + 1e-9
    if not fractions and (np.abs(ub - np.rint(ub)) > 1e-6).any():
        raise PTableError("is no p-table: upper bounds go up to 1, or are whole numbers of keys")
    modulus = KEY_MODULUS if fractions else round(ub.max())
    _check_keys(modulus)
    scale = KEY_MODULUS if fractions else 1
    upper = np.rint(ub * scale).astype(np.int64)
    starts = _row_starts(i, type == "odd")
    lower = np.r_[0, upper[:-1]]
    lower[starts] = 0
    if lb is not None and (np.abs(np.rint(lb * scale) - lower) > 0.5).any():
        raise PTableError("is no p-table: the intervals of a row do not follow each other")
    ends = np.r_[starts[1:], len(i)] - 1
    if (upper[ends] != modulus).any() or (upper < lower).any():
        raise PTableError("is no p-table: the intervals of a row do not end at 1")
    if p is not None and (np.abs(p - (upper - lower) / modulus) > _P_TOLERANCE).any():
        raise PTableError("is no p-table: the probabilities p are not the lengths of the intervals")
    if lb is None and p is None and np.delete(ub == np.r_[np.nan, ub[:-1]], starts).any():
        raise PTableError("is no p-table: two intervals of a row have the same upper bound")
    keep = upper > lower
    type, i, v, lower, upper = type[keep], i[keep], v[keep], lower[keep], upper[keep]
    for block in np.unique(type):
        if 0 not in i[type == block]:
            at = int(np.flatnonzero(type == block)[0])
            type, i, v = np.insert(type, at, block), np.insert(i, at, 0.0), np.insert(v, at, 0.0)
            lower, upper = np.insert(lower, at, 0), np.insert(upper, at, modulus)
    if (v[i == 0] != 0).any() or (i < 0).any():
        raise PTableError("is no p-table: zeros must stay zeros, and no row may be negative")
    step = next((s for s in range(1, 101) if np.abs(v * s - np.rint(v * s)).max() < 1e-6), None)
    if step is None:
        raise PTableError("is no p-table: its noise is on no grid of 1/1 to 1/100")
    dense = np.array_equal(np.unique(i), np.arange(len(np.unique(i)))) and set(type) == {"all"}
    kind = kind or ("counts" if step == 1 and dense else "magnitudes")
    if kind == "counts" and (i + v < 0).any():
        raise PTableError("is no p-table: a count would become negative")
    if kind == "magnitudes" and modulus != KEY_MODULUS:
        raise PTableError("is no p-table for magnitudes: its upper bounds must go up to 1")
    last = int(i.max())
    return Intervals(
        kind, modulus, step, 1 if repeat is None else _repeat(repeat, kind, last), type, i, v, lower, upper
    )


def ons_intervals(i: Floats, key: Floats, v: Floats) -> Intervals:
    """The intervals of a table in the form of the ONS packages: one row for each count and cell key, sorted by both.

    Raises:
        PTableError: what is wrong, in words that go on after the name of the table.
    """
    if any((values != np.rint(values)).any() or np.isinf(values).any() for values in (i, key, v)):
        raise PTableError("is no p-table: pcv, ckey and pvalue must be whole numbers")
    counts, keys, noise = (values.astype(np.int64) for values in (i, key, v))
    last, modulus = int(counts.max()), int(keys.max()) + 1
    complete = last * modulus == len(counts) and np.array_equal(counts, np.repeat(np.arange(1, last + 1), modulus))
    if not complete or not np.array_equal(keys, np.tile(np.arange(modulus), last)):
        raise PTableError("is no p-table: it must have one row for every pcv from 1 and every ckey from 0")
    _check_keys(modulus)
    if (counts + noise < 0).any():
        raise PTableError("is no p-table: a count would become negative")
    starts = np.flatnonzero(np.r_[True, (np.diff(counts) != 0) | (np.diff(noise) != 0)])
    ends = np.r_[starts[1:], len(counts)] - 1
    return Intervals(
        "counts", modulus, 1, _ONS_REPEAT if last == _ONS_LAST else 1, np.full(len(starts) + 1, "all"),
        np.r_[0.0, i[starts]], np.r_[0.0, v[starts]], np.r_[0, keys[starts]], np.r_[modulus, keys[ends] + 1],
    )  # fmt: skip


def _repeat(repeat: Floats, kind: str, last: int) -> int:
    """How many of the last rows serve the counts beyond them, in turn."""
    rows = int(repeat[0]) if (repeat == np.rint(repeat[0])).all() else 0
    if not 1 <= rows <= max(last, 1) or (rows > 1 and kind != "counts"):
        raise PTableError(
            "is no p-table: repeat must be one whole number everywhere, of rows of a p-table for counts that counts "
            f"above {last} use in turn, the row of 0 not among them"
        )
    return rows


def _check_keys(modulus: int) -> None:
    if modulus < 2:
        raise PTableError("is no p-table: it has one cell key only")
    if modulus not in (KEY_MODULUS, *range(2, _MOST_KEYS + 1)):
        raise PTableError(f"has more than {_MOST_KEYS} cell keys; give upper bounds that go up to 1")
