"""The encoding of a perturbation table as constants that a SQL macro can look up.

A query reads the noise of a cell from the row of the p-table that serves the cell and from the cell key. As SQL the
fastest exact form found is a *guide table* (Chen & Asau 1974) held in a string constant: two characters for every
(row, bucket of keys). They are a number, the noise plus 50, where the whole bucket has one noise, and ``!!`` where an
interval border falls inside the bucket; those few cells are looked up again in the sorted list of exact intervals. A
``TRY_CAST`` tells the two apart and reads the number at once, so that a query names the guide only once.

DuckDB finds a character of a long string at once only where its optimizer has seen that the string is ASCII, and it
does not look into lambdas: there the guide is a list of *strips* instead, one short string a bucket.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, zip_longest

import numpy as np
from numpy.typing import NDArray

KEY_MODULUS = 10**8
"""Keys of ordinary p-tables run from 0 to 10^8 - 1: the bounds of the intervals have 8 decimal digits."""

_SHIFT = 17  # 763 buckets of 131072 keys: a shift is cheaper than a division, and about 1 % of the keys meet a border
_GUIDE_ZERO = 50  # noise -50..49 maps to 00..99; anything beyond is looked up exactly
_BORDER = "!!"
_GUIDE = np.array([f"{number:02}" for number in range(100)] + [_BORDER], dtype="S2")
_LARGEST_CODE = 2047  # 12 bits of the packed intervals hold the noise


@dataclass(frozen=True)
class Lookup:
    """A p-table in the form that the SQL macros read.

    Attributes:
        kind: ``counts`` or ``magnitudes``.
        modulus: keys run from 0 to modulus - 1.
        shift: the bucket of a key is ``key >> shift``.
        buckets: buckets of a row.
        last: position of the last row: the last count of a count table (rows 0..last), the largest ratio of a magnitude
            table (in the block that serves all or even cells).
        repeat: counts beyond ``last`` use the last ``repeat`` rows in turn (1 but for the ONS form).
        step: noise is an integer number of 1 / step.
        rows: the ratios a of the rows of a magnitude table (0 first), in the block that serves all or even cells.
        odd_rows: the same of the block for an odd number of contributors; empty when there is none.
        odd_first: position of the first row of that block.
        last_variance: noise variance of the last row (sets the separation point).
        most: the largest absolute noise, rounded up.
        guide: two characters a bucket, ``buckets`` of them a row.
        intervals: for each row its intervals, int64 ``upper bound << 12 | noise + 2048``; no rows at all when no
            bucket holds a border.
    """

    kind: str
    modulus: int
    shift: int
    buckets: int
    last: int
    repeat: int
    step: int
    rows: tuple[float, ...]
    odd_rows: tuple[float, ...]
    odd_first: int
    last_variance: float
    most: int
    guide: str
    intervals: tuple[NDArray[np.int64], ...]

    @property
    def first_repeated(self) -> int:
        """The position of the first of the rows that counts beyond `last` use in turn."""
        return self.last - self.repeat + 1

    def rungs(self) -> list[tuple[float | None, ...]]:
        """What serves to find a row of a magnitude table and what is between it and the next, for the block of `rows`.

        Of each row its ratio, how far below the ratio of the next that is (None: there is no next), and its position
        among all rows, from 1 on.
        """
        return _rungs(self.rows, 1)

    def odd_rungs(self) -> list[tuple[float | None, ...]]:
        """The same for `odd_rows`."""
        return _rungs(self.odd_rows, self.odd_first + 1)

    def strips(self) -> list[str]:
        """The guide the other way round: for each bucket the characters of all rows."""
        width = 2 * self.buckets
        rows = [self.guide[start : start + width] for start in range(0, len(self.guide), width)]
        return ["".join(row[place : place + 2] for row in rows) for place in range(0, width, 2)]


def _rungs(ratios: tuple[float, ...], first: int) -> list[tuple[float | None, ...]]:
    gaps = [above - ratio for ratio, above in pairwise(ratios)]
    return [(ratio, gap, place) for place, (ratio, gap) in enumerate(zip_longest(ratios, gaps), first)]


def encode(
    kind: str,
    i: NDArray[np.float64],
    v: NDArray[np.float64],
    ub: NDArray[np.int64],
    odd: NDArray[np.bool_],
    *,
    modulus: int,
    step: int,
    repeat: int = 1,
) -> Lookup:
    """Encode the intervals of a p-table, given in stored order (by block, row, then upper bound).

    Args:
        kind: ``counts`` or ``magnitudes``.
        i: float64 (n,), the row of each interval: the original count, or the ratio a of a magnitude.
        v: float64 (n,), its noise.
        ub: int64 (n,), its upper bound (exclusive) on the scale of the keys; the last of each row is ``modulus``.
        odd: bool (n,), whether it belongs to the block for an odd number of contributors (those come last).
        modulus: keys run from 0 to modulus - 1.
        step: noise is a multiple of 1 / step.
        repeat: see `Lookup.repeat`.

    Raises:
        ValueError: rows of a count table that are not 0, 1, 2, .., noise off the grid or beyond 2047 / step.
    """
    starts = np.flatnonzero(np.r_[True, (np.diff(i) != 0) | (np.diff(odd.astype(np.int8)) != 0)])
    lengths = np.diff(np.r_[starts, len(i)])
    row_values, row_odd = i[starts], odd[starts]
    codes = np.rint(v * step).astype(np.int64)
    if np.abs(codes - v * step).max(initial=0.0) > 1e-6:
        raise ValueError(f"noise must be a multiple of 1/{step}")
    if np.abs(codes).max(initial=0) > _LARGEST_CODE:
        raise ValueError(f"noise beyond {_LARGEST_CODE / step:g} is not supported")
    if kind == "counts" and not np.array_equal(row_values, np.arange(len(row_values))):
        raise ValueError("the rows of a p-table for counts must be 0, 1, 2, .. without gaps")

    shift = _SHIFT if modulus == KEY_MODULUS else 0
    buckets = ((modulus - 1) >> shift) + 1
    first_key = np.arange(buckets, dtype=np.int64) << shift
    last_key = np.minimum(first_key + (1 << shift), modulus) - 1
    guide = bytearray()
    intervals = []
    for start, length in zip(starts, lengths, strict=True):
        bounds, row_codes = ub[start : start + length], codes[start : start + length]
        first = np.searchsorted(bounds, first_key, side="right")
        characters = row_codes[first] + _GUIDE_ZERO
        plain = (first == np.searchsorted(bounds, last_key, side="right")) & (characters >= 0) & (characters <= 99)
        guide += _GUIDE[np.where(plain, characters, 100)].tobytes()
        intervals.append((bounds << 12) | (row_codes + _LARGEST_CODE + 1))

    final = slice(starts[-1], None)
    width = np.diff(np.r_[0, ub[final]]) / modulus
    magnitudes = kind == "magnitudes"
    return Lookup(
        kind=kind,
        modulus=modulus,
        shift=shift,
        buckets=buckets,
        last=int((~row_odd).sum()) - 1,
        repeat=repeat,
        step=step,
        rows=tuple(row_values[~row_odd].tolist()) if magnitudes else (),
        odd_rows=tuple(row_values[row_odd].tolist()) if magnitudes else (),
        odd_first=int((~row_odd).sum()) if row_odd.any() else 0,
        last_variance=float(np.sum(width * v[final] ** 2)),
        most=int(np.ceil(np.abs(v).max(initial=0.0))),
        guide=guide.decode("ascii"),
        intervals=tuple(intervals) if _BORDER.encode() in guide else (),
    )
