"""Perturbation tables of the Cell Key Method: which noise a cell key draws for a true value i.

For every i the table splits the range [0, 1) of the cell key in intervals, one per noise v.  Zeros are never
changed.  Any other i gets the maximum-entropy law with mean 0, variance V and |v| <= D that leads to no
negative value and to no count of 1..js (Fraser & Wooton 2005; Marley & Leaver 2011; Giessing & Tent 2019).
Parameters and results are those of the R package `ptable` 1.0.0, which however rejects some that have a
solution.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.perturbation.maxent import FLOOR, Array, maximum_entropy_law, reachable_variance

MAX_D = 200
"""Largest noise of a count table: 60,000 intervals or more, half a second (seconds with `pstay`)."""

MIN_THRESHOLD = 0.01
"""Smallest threshold of `modify_ptable`: at most 100 pieces per noise."""

_KEYS = 10**8  # interval bounds have 8 digits, as the cell keys
_PSTAY_RETRIES = 20
_PSTAY_STEP = 0.05
_SAME_VARIANCE = 0.0005  # 3 decimals, the accuracy to which `ptable` compares a variance with V

_T = TypeVar("_T")


class PTableError(ValueError):
    """Parameters of a p-table that are malformed, or that no noise law satisfies."""


@dataclass(frozen=True)
class CountParameters:
    """What a count table was made from; `pstay`, `mono` and `optim` per row i = 1..I."""

    D: int
    V: float
    js: int
    pstay: tuple[float | None, ...] | None
    mono: tuple[bool, ...]
    optim: tuple[int, ...]


@dataclass(frozen=True)
class MagnitudeParameters:
    """What a magnitude table was made from; `mono` and `optim` per row of `icat`."""

    D: int
    V: float
    step: int
    icat: tuple[int, ...]
    mono: tuple[bool, ...]
    optim: tuple[int, ...]


@dataclass(frozen=True)
class Modification:
    """How the intervals of a table were split and shuffled."""

    threshold: float
    seed: int


@dataclass(frozen=True, eq=False)
class PTable:
    """A perturbation table, one entry per interval of the cell key.

    Attributes
    ----------
    i, j, v : (R,) true value, target, noise v = j - i; whole numbers for counts, multiples of 1/step for
        magnitudes.  Entries are sorted by i; those of one i by v unless `modification` is set.
    p : (R,) probability of the interval, ub - lb
    lb, ub : (R,) bounds of the interval, 8 digits; a key u belongs to the first entry of its i with u < ub.
        The intervals of one i follow each other from exactly 0 to exactly 1.
    type : 'all', 'even' or 'odd', the cells the table is meant for
    parameters : what the table was made from
    modification : set by `modify_ptable`

    Columns are read-only float64 arrays.

    Raises
    ------
    PTableError
        columns of different lengths or not finite, or not sorted by i.
    """

    i: Array
    j: Array
    p: Array
    v: Array
    lb: Array
    ub: Array
    type: Literal["all", "even", "odd"]
    parameters: CountParameters | MagnitudeParameters
    modification: Modification | None = None

    def __post_init__(self) -> None:
        rows = np.size(self.i)
        for name in ("i", "j", "p", "v", "lb", "ub"):
            column = np.array(getattr(self, name), dtype=np.float64)
            if rows == 0 or column.shape != (rows,):
                raise PTableError(f"column {name} has shape {column.shape}; column i has {rows} entries")
            if not np.isfinite(column).all():
                raise PTableError(f"column {name} has a NaN or an infinite value")
            column.setflags(write=False)
            object.__setattr__(self, name, column)
        if (np.diff(self.i) < 0).any():
            raise PTableError("the entries are not sorted by i")

    @property
    def kind(self) -> Literal["counts", "magnitudes"]:
        """What the table perturbs."""
        return "counts" if isinstance(self.parameters, CountParameters) else "magnitudes"


@dataclass(frozen=True, eq=False)
class PTableCheck:
    """Properties of the noise per true value i of a table, all of shape (I + 1,).

    Attributes
    ----------
    i : true values, ascending
    mean, variance, sum : moments of the noise and sum of its probabilities
    p_stay : probability that the value stays as it is; 0 if it is blocked
    ok : the intervals cover [0, 1) once, p is their length, j = i + v is no negative nor blocked value, and
        up to the rounding to 8 digits the mean is 0 and the variance at most V
    misses_variance : the variance is 0.0005 or more away from V (false for i = 0).  This is no error: with
        `optim` 1 to 3 the law of largest entropy may have a smaller variance.
    """

    i: Array
    mean: Array
    variance: Array
    sum: Array
    p_stay: Array
    ok: NDArray[np.bool_]
    misses_variance: NDArray[np.bool_]


def count_ptable(
    D: int,
    V: float,
    js: int = 0,
    pstay: float | Sequence[float | None] | Array | None = None,
    mono: bool | Sequence[bool] | NDArray[np.bool_] = True,
    optim: int | Sequence[int] | NDArray[np.int64] = 1,
) -> PTable:
    """Perturbation table for counts.

    Rows are i = 0 (never changed) and i = 1..I, I = D, or D + js + 1 with blocked counts; the last one is
    symmetric and serves all larger counts.  `pstay`, `mono` and `optim` are one value or one per row 1..I.

    Parameters
    ----------
    D : largest absolute noise, 1 <= D <= 200
    V : variance of the noise
    js : perturbed counts 1..js must not appear; needs D > js and V >= i * (js + 1 - i) for i = 1..js
    pstay : wanted lower bound, in (0, 1), of the probability that a count stays as it is.  Where it keeps
        the variance from being V within 0.0005, it is lowered by 0.05 up to 20 times.  None for a row without one.
    mono : noise probabilities must not decrease from the lowest target up to v = 0 (only for i > js)
    optim : 1 the variance is at most V; 2 and 3 the same (they differ in `ptable` by redundant bounds only);
        4 the variance is equal to V

    Raises
    ------
    PTableError
        a malformed parameter, or a row that no law satisfies, with the bound that would.

    Probabilities are at least 1e-8, except where V is the smallest one that js allows: the targets of that
    blocked count are then 0 and js + 1 only.

    Examples
    --------
    >>> table = count_ptable(D=2, V=0.9)
    >>> for i, v, ub in zip(table.i, table.v, table.ub):
    ...     print(f"{i:.0f} {v:+.0f} {ub:.8f}")
    0 +0 1.00000000
    1 -1 0.36250000
    1 +0 0.72500000
    1 +1 0.91250000
    1 +2 1.00000000
    2 -2 0.05154609
    2 -1 0.29536173
    2 +0 0.70463827
    2 +1 0.94845391
    2 +2 1.00000000
    """
    D = _whole("D", D, 1, MAX_D)
    V = _variance(V, D)
    js = _whole("js", js, 0)
    if js:
        _check_blocked(D, V, js)
    last = D + js + 1 if js else D
    rows = f"the rows i = 1..{last}"
    pstays = None if pstay is None else _per_row("pstay", pstay, last, rows, _bound)
    parameters = CountParameters(
        D,
        V,
        js,
        pstays,
        _per_row("mono", mono, last, rows, _flag),
        _per_row("optim", optim, last, rows, _optim),
    )
    noises, laws = [], []
    for row in range(last):
        i = row + 1
        j = np.arange(max(0, i - D), i + D + 1)
        v = (j[(j == 0) | (j > js)] - i).astype(np.float64)
        wanted_stay = None if pstays is None else pstays[row]
        noises.append(v)
        laws.append(_law(i, v, V, parameters.mono[row], parameters.optim[row], wanted_stay or FLOOR))
    return _table(range(1, last + 1), noises, laws, "all", parameters)


def magnitude_ptable(
    D: int,
    V: float,
    step: int = 2,
    icat: Sequence[int] | NDArray[np.int64] | None = None,
    mono: bool | Sequence[bool] | NDArray[np.bool_] = True,
    optim: int | Sequence[int] | NDArray[np.int64] = 1,
    type: Literal["all", "even", "odd"] = "all",
) -> PTable:
    """Perturbation table for magnitudes, in units of the cell's noise magnitude.

    Rows are i = 0 (never changed) and those of `icat`; between them the noise is interpolated.  `mono` and
    `optim` are one value or one per row of `icat`.

    Parameters
    ----------
    D : largest absolute noise, a whole number
    V : variance of the noise
    step : the noise is a multiple of 1/step; D * step < 50
    icat : ascending whole numbers from 1 to D, both included; default 1..D
    mono, optim : as in `count_ptable`
    type : 'even' and 'odd' mark the two tables used by the parity of the number of contributors

    Raises
    ------
    PTableError
        a malformed parameter, or a row that no law satisfies, with the bound that would.
    """
    D = _whole("D", D, 1)
    V = _variance(V, D)
    step = _whole("step", step, 1)
    if D * step >= 50:
        raise PTableError(f"D * step must be below 50; D = {D} and step = {step} give {D * step}")
    if type not in ("all", "even", "odd"):
        raise PTableError(f"type must be 'all', 'even' or 'odd'; {type!r} was given")
    categories = tuple(range(1, D + 1)) if icat is None else _categories(icat, D)
    rows = f"the rows i = {', '.join(map(str, categories))}"
    parameters = MagnitudeParameters(
        D,
        V,
        step,
        categories,
        _per_row("mono", mono, len(categories), rows, _flag),
        _per_row("optim", optim, len(categories), rows, _optim),
    )
    noises, laws = [], []
    for row, i in enumerate(categories):
        v = np.arange(-i * step, D * step + 1) / step
        noises.append(v)
        laws.append(_law(i, v, V, parameters.mono[row], parameters.optim[row], FLOOR))
    return _table(categories, noises, laws, type, parameters)


def modify_ptable(table: PTable, threshold: float = 0.2, seed: int = 0) -> PTable:
    """Split and shuffle the intervals of a table, so that a small or large cell key does not tell the sign.

    Every interval of length >= threshold, but for the whole range, is cut in pieces of that length and a
    remainder; then all intervals of one i are put in random order.  The probability of each noise does not
    change, to the last of its 8 digits.

    Parameters
    ----------
    threshold : 0.01 <= threshold < 1; rounded to 8 digits
    seed : whole number >= 0 for PCG64.  The order is that of its raw output, one number per piece, so it does
        not depend on the version of numpy.

    Raises
    ------
    PTableError
        threshold or seed out of range, or a table that is modified already.
    """
    if table.modification is not None:
        raise PTableError("the table is modified already; modify the original one")
    threshold = _real("threshold", threshold)
    if not MIN_THRESHOLD <= threshold < 1.0:
        raise PTableError(f"threshold must be at least {MIN_THRESHOLD} and below 1; {threshold:g} was given")
    seed = _whole("seed", seed, 0)

    length = np.rint(table.p * _KEYS).astype(np.int64)
    piece = round(threshold * _KEYS)
    pieces = np.where((length >= piece) & (length < _KEYS), length // piece, 0)
    rest = length - pieces * piece
    entry = np.concatenate([np.repeat(np.arange(length.size), pieces), np.flatnonzero(rest)])
    length = np.concatenate([np.full(pieces.sum(), piece), rest[rest > 0]])

    order = np.lexsort((np.random.PCG64(seed).random_raw(entry.size), table.i[entry]))
    entry, length = entry[order], length[order]
    value = np.searchsorted(np.unique(table.i), table.i[entry])
    ub = np.cumsum(length) - value * _KEYS
    return replace(
        table,
        i=table.i[entry],
        j=table.j[entry],
        p=length / _KEYS,
        v=table.v[entry],
        lb=(ub - length) / _KEYS,
        ub=ub / _KEYS,
        modification=Modification(piece / _KEYS, seed),
    )


def check_ptable(table: PTable) -> PTableCheck:
    """Moments of the noise and validity of the intervals, per true value i; see `PTableCheck`."""
    i, start = np.unique(table.i, return_index=True)
    end = np.append(start[1:], table.i.size) - 1
    V = table.parameters.V
    lowest = np.minimum.reduceat(table.v, start)
    highest = np.maximum.reduceat(table.v, start)
    total = np.add.reduceat(table.p, start)
    mean = np.add.reduceat(table.p * table.v, start)
    variance = np.add.reduceat(table.p * table.v**2, start)
    p_stay = np.add.reduceat(np.where(table.v == 0.0, table.p, 0.0), start)

    gap = np.abs(table.lb - np.append(0.0, table.ub[:-1]))
    gap[start] = np.abs(table.lb[start])
    js = table.parameters.js if isinstance(table.parameters, CountParameters) else 0
    valid = (
        (gap < 0.1 / _KEYS)
        & (table.p > 0.0)
        & (np.abs(table.ub - table.lb - table.p) < 0.1 / _KEYS)
        & (np.abs(table.i + table.v - table.j) < 1e-9)
        & (table.j >= 0.0)
        & ((table.j == 0.0) | (table.j > js))
    )
    # Inner bounds are off by half a digit at most; summing by parts gives these errors of the moments.
    half_digit = 0.5 / _KEYS
    ok = (
        np.logical_and.reduceat(valid, start)
        & (np.abs(table.ub[end] - 1.0) < 0.1 / _KEYS)
        & (np.abs(total - 1.0) < 0.1 / _KEYS)
        & (np.abs(mean) <= half_digit * (highest - lowest) + 1e-9)
        & (variance <= V + half_digit * (highest**2 + lowest**2) + 1e-9 * max(1.0, V))
    )
    misses = (np.abs(variance - V) >= _SAME_VARIANCE) & (i > 0.0)
    return PTableCheck(i, mean, variance, total, p_stay, ok, misses)


def _check_blocked(D: int, V: float, js: int) -> None:
    """The two conditions under which counts 1..js can be avoided with mean 0."""
    if js >= D:
        raise PTableError(
            f"js = {js} needs D >= {js + 1} (a true count of {js + 1} has no lower target but 0); "
            f"D = {D} was asked; raise D or lower js"
        )
    i = (js + 1) // 2
    needed = i * (js + 1 - i)
    if needed > V:
        raise PTableError(
            f"js = {js} needs V >= {needed} (the two-point law on -i and js+1-i, here on {-i} and "
            f"{js + 1 - i} for a true count of {i}); V = {V:.12g} was asked; raise V or lower js"
        )


def _law(i: int, v: Array, V: float, mono: bool, optim: int, pstay: float) -> Array:
    """(K,) law of the noises v of true value i."""
    for stay in _stay_bounds(pstay if 0.0 in v else FLOOR):
        law = maximum_entropy_law(v, V, exact=optim == 4, mono=mono, stay=stay)
        if law is not None and abs(float(v * v @ law) - V) < _SAME_VARIANCE:
            return law
    if law is not None:
        return law
    lowest, highest = reachable_variance(v, mono)
    if lowest < V:
        raise PTableError(_unreachable(i, v, V, mono, lowest, highest))
    if 0.0 in v:
        raise PTableError(
            f"row i = {i}: a probability of {FLOOR:g} or more of each of {v.size} targets makes the variance "
            f"at least {lowest:g}; V = {V:.12g} was asked; raise V or lower D"
        )
    # A blocked count with the smallest variance it can have: no room for more than the targets 0 and js + 1.
    law = np.zeros_like(v)
    law[:2] = np.array([v[1], -v[0]]) / (v[1] - v[0])
    return law


def _stay_bounds(pstay: float) -> Iterator[float]:
    """The bounds of p_0 to try, from the wanted one to none."""
    for retry in range(_PSTAY_RETRIES + 1):
        bound = max(pstay - _PSTAY_STEP * retry, FLOOR)
        yield bound
        if bound == FLOOR:
            return


def _unreachable(i: int, v: Array, V: float, mono: bool, lowest: float, highest: float) -> str:
    """Why a row with `optim` 4 has no law."""
    freed = reachable_variance(v, False)[1]
    without_mono = f", up to {freed:g} with mono = False" if mono and freed > highest else ""
    return (
        f"row i = {i}: optim = 4 asks for the variance V = {V:.12g}; reachable are {lowest:g} to {highest:g}"
        f"{without_mono}; lower V or use optim = 1 for this row"
    )


def _table(
    values: Sequence[int],
    noises: list[Array],
    laws: list[Array],
    type: Literal["all", "even", "odd"],
    parameters: CountParameters | MagnitudeParameters,
) -> PTable:
    """Turn the laws into intervals with bounds of 8 digits, after the row i = 0."""
    i, v, lb, ub = [np.zeros(1)], [np.zeros(1)], [np.zeros(1)], [np.ones(1)]
    for value, noise, law in zip(values, noises, laws, strict=True):
        upper = np.rint(np.cumsum(law) * _KEYS)
        upper[-1] = _KEYS
        lower = np.append(0.0, upper[:-1])
        drawn = upper > lower
        i.append(np.full(int(drawn.sum()), float(value)))
        v.append(noise[drawn])
        lb.append(lower[drawn] / _KEYS)
        ub.append(upper[drawn] / _KEYS)
    all_i, all_v, all_lb, all_ub = map(np.concatenate, (i, v, lb, ub))
    step = parameters.step if isinstance(parameters, MagnitudeParameters) else 1
    all_j = np.rint((all_i + all_v) * step) / step
    return PTable(all_i, all_j, np.round(all_ub - all_lb, 8), all_v, all_lb, all_ub, type, parameters)


def _whole(name: str, value: object, least: int, most: int | None = None) -> int:
    wanted = f"at least {least}" if most is None else f"from {least} to {most}"
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or isinstance(value, bool | np.bool_):
        raise PTableError(f"{name} must be a whole number {wanted}; {value!r} was given")
    if number < least or (most is not None and number > most):
        raise PTableError(f"{name} must be {wanted}; {number} was given")
    return number


def _real(name: str, value: object) -> float:
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        raise PTableError(f"{name} must be a number; {value!r} was given")
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond the range of float64
        number = math.inf
    if not math.isfinite(number):
        raise PTableError(f"{name} must be finite; {number} was given")
    return number


def _variance(value: object, D: int) -> float:
    V = _real("V", value)
    if V <= 0.0:
        raise PTableError(f"V must be positive; {V:g} was given")
    if V > D * D:
        raise PTableError(f"noise of at most D = {D} has a variance of at most {D * D}; V = {V:g} was given")
    return V


def _probability(name: str, value: object) -> float:
    p = _real(name, value)
    if not 0.0 < p < 1.0:
        raise PTableError(f"{name} must lie strictly between 0 and 1; {p:g} was given")
    return p


def _bound(name: str, value: object) -> float | None:
    return None if value is None else _probability(name, value)


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise PTableError(f"{name} must be True or False; {value!r} was given")
    return bool(value)


def _optim(name: str, value: object) -> int:
    return _whole(name, value, 1, 4)


def _per_row(
    name: str, value: object, rows: int, described: str, convert: Callable[[str, object], _T]
) -> tuple[_T, ...]:
    """One value for all rows, or one per row, as a tuple."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return (convert(name, value),) * rows
    if len(value) != rows:
        raise PTableError(f"{name} must be one value or {rows} values, for {described}; {len(value)} were given")
    return tuple(convert(f"{name}[{row}]", element) for row, element in enumerate(value))


def _categories(icat: Sequence[int] | NDArray[np.int64], D: int) -> tuple[int, ...]:
    listed = icat.tolist() if isinstance(icat, np.ndarray) else icat
    if not isinstance(listed, list | tuple):
        raise PTableError(f"icat must be a list of whole numbers; {icat!r} was given")
    categories = tuple(_whole(f"icat[{n}]", value, 1, D) for n, value in enumerate(listed))
    for needed in (1, D):
        if needed not in categories:
            raise PTableError(f"icat must contain 1 and D = {D}; {needed} is missing in {list(categories)}")
    if list(categories) != sorted(set(categories)):
        raise PTableError(f"icat must be ascending without repetition; {list(categories)} was given")
    return categories
