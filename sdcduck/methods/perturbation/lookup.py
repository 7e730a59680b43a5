"""The encoding of a perturbation table as constants that a SQL macro can look up.

A query reads the noise of a cell from the row of the p-table that serves the cell and from the cell key. As SQL the
fastest exact form found is a *guide table* (Chen & Asau 1974) held in a string constant: one character for every
(row, bucket of keys). A character stands for the noise where the whole bucket has one, and is ``!`` where an
interval border falls inside the bucket; those few cells are looked up again in the sorted list of exact intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

KEY_MODULUS = 10**8
"""Keys of ordinary p-tables run from 0 to 10^8 - 1: the bounds of the intervals have 8 decimal digits."""

_SHIFT = 17  # 763 buckets of 131072 keys: a shift is cheaper than a division, and about 1 % of the keys meet a border
_LARGEST_GUIDE_CODE = 44  # noise -44..44 maps to the characters '$'..'|'; anything beyond is looked up exactly
_ZERO_CHARACTER = 80
_BORDER_CHARACTER = "!"
_LARGEST_CODE = 2047  # 12 bits of the packed intervals hold the noise


@dataclass(frozen=True)
class Lookup:
    """A p-table in the form that the SQL macros read.

    Attributes:
        kind: ``counts`` or ``magnitudes``.
        modulus: keys run from 0 to modulus - 1.
        shift: the bucket of a key is ``key >> shift``.
        buckets: buckets of a row.
        last: last row of a count table (rows 0..last); 0 for magnitudes.
        repeat: counts beyond ``last`` use the last ``repeat`` rows in turn (1 but for the ONS form).
        pitch: intervals of a row in ``intervals``; shorter rows repeat their last one.
        step: noise is an integer number of 1 / step.
        rows: the ratios a of the rows of a magnitude table (0 first), in the block that serves all or even cells.
        odd_rows: the same of the block for an odd number of contributors; empty when there is none.
        odd_first: position of the first row of that block.
        last_variance: noise variance of the last row (sets the separation point).
        guide: ``buckets`` characters a row.
        intervals: int64 ``upper bound << 12 | noise + 2048``, ``pitch`` a row; empty when no bucket holds a border.
    """

    kind: str
    modulus: int
    shift: int
    buckets: int
    last: int
    repeat: int
    pitch: int
    step: int
    rows: tuple[float, ...]
    odd_rows: tuple[float, ...]
    odd_first: int
    last_variance: float
    guide: str
    intervals: NDArray[np.int64]


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
    for start, length in zip(starts, lengths, strict=True):
        bounds, row_codes = ub[start : start + length], codes[start : start + length]
        low = row_codes[np.searchsorted(bounds, first_key, side="right")]
        same = np.searchsorted(bounds, first_key, side="right") == np.searchsorted(bounds, last_key, side="right")
        plain = same & (np.abs(low) <= _LARGEST_GUIDE_CODE)
        guide += np.where(plain, low + _ZERO_CHARACTER, ord(_BORDER_CHARACTER)).astype(np.uint8).tobytes()

    pitch = int(lengths.max())
    intervals = np.empty(0, dtype=np.int64)
    if ord(_BORDER_CHARACTER) in guide:
        column = np.minimum(np.arange(pitch)[None, :], lengths[:, None] - 1)
        index = (starts[:, None] + column).ravel()
        intervals = (ub[index] << 12) | (codes[index] + _LARGEST_CODE + 1)

    final = slice(starts[-1], None)
    width = np.diff(np.r_[0, ub[final]]) / modulus
    magnitudes = kind == "magnitudes"
    return Lookup(
        kind=kind,
        modulus=modulus,
        shift=shift,
        buckets=buckets,
        last=0 if magnitudes else int(row_values[-1]),
        repeat=repeat,
        pitch=pitch,
        step=step,
        rows=tuple(row_values[~row_odd].tolist()) if magnitudes else (),
        odd_rows=tuple(row_values[row_odd].tolist()) if magnitudes else (),
        odd_first=int((~row_odd).sum()) if row_odd.any() else 0,
        last_variance=float(np.sum(width * v[final] ** 2)),
        guide=guide.decode("ascii"),
        intervals=intervals,
    )
