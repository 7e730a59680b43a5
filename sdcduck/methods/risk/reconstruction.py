"""Which lists of whole numbers fit published summary statistics: one that fits alone is disclosed.

Statistics are compared as whole numbers, never as floats: the mean and the standard deviation of n numbers say the same
as their sum S and their sum of squares Q, the variance being (n Q - S^2) / (n (n - 1)).

Source: Derrick, Green, Ritchie and White (2022), PSD; for quantiles Hyndman and Fan (1996).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


# --- all lists of a scale --------------------------------------------------------------------------------------------


def number_of_lists(k: int, n: int) -> int:
    """How many lists of n answers on a scale of k there are, order aside."""
    return math.comb(n + k - 1, n)


def all_lists(low: int, high: int, n: int) -> Integers:
    """All lists of n whole numbers between two, each in ascending order; one a row."""
    count = number_of_lists(high - low + 1, n)
    flat = chain.from_iterable(combinations_with_replacement(range(low, high + 1), n))
    return np.fromiter(flat, np.int64, count * n).reshape(count, n)


def _rounded_ratio(numerator: Integers, denominator: int) -> Integers:
    """Numerator / denominator rounded to a whole number, half to even."""
    quotient, rest = np.divmod(numerator, denominator)
    up = (2 * rest > denominator) | ((2 * rest == denominator) & (quotient % 2 == 1))
    return np.asarray(quotient + up)


def _rounded_root(numerator: Integers, denominator: int) -> Integers:
    """The square root of numerator / denominator rounded to a whole number; no tie can occur."""
    four = 4 * numerator // denominator
    root = np.sqrt(four.astype(np.float64)).astype(np.int64)
    root -= root * root > four
    root += (root + 1) * (root + 1) <= four
    return np.asarray((root + 1) // 2)


def _quartile(lists: Integers, quarter: int, kind: int) -> Integers:
    """Four times the quartile of each list, of Hyndman and Fan's type 2, 6 or 7."""
    n = lists.shape[1]
    if kind == 2:
        whole, rest = divmod(n * quarter, 4)
        if rest:
            return np.asarray(4 * lists[:, whole])
        return np.asarray(2 * (lists[:, whole - 1] + lists[:, whole]))
    place = (n + 1) * quarter if kind == 6 else 4 + (n - 1) * quarter
    place = min(max(place, 4), 4 * n)
    whole, rest = divmod(place, 4)
    below = lists[:, whole - 1]
    above = lists[:, min(whole, n - 1)]
    return np.asarray((4 - rest) * below + rest * above)


def published(lists: Integers, statistics: str, dp: int | None, kind: int) -> Integers:
    """What is published of each list, as whole numbers; one row a list.

    Args:
        lists: (m, n), each in ascending order.
        statistics: 'mean_sd', 'quartiles' (with the median) or 'median_min_max'.
        dp: decimals of mean and standard deviation; None: all.
        kind: type of the quantiles, 2, 6 or 7.
    """
    n = lists.shape[1]
    median = lists[:, (n - 1) // 2] + lists[:, n // 2]
    if statistics == "quartiles":
        return np.column_stack([_quartile(lists, 1, kind), median, _quartile(lists, 3, kind)])
    if statistics == "median_min_max":
        return np.column_stack([median, lists[:, 0], lists[:, -1]])
    total, squares = lists.sum(axis=1), (lists * lists).sum(axis=1)
    if dp is None:
        return np.column_stack([total, squares])
    spread = n * squares - total * total
    # One answer has no standard deviation.
    root = _rounded_root(spread * 100**dp, n * (n - 1)) if n > 1 else np.zeros_like(total)
    return np.column_stack([_rounded_ratio(total * 10**dp, n), root])


def unique_lists(lists: Integers, statistics: str, dp: int | None, kind: int) -> int:
    """How many lists are the only ones with their statistics."""
    shown = published(lists, statistics, dp, kind)
    shown -= shown.min(axis=0)
    key = np.zeros(len(shown), np.int64)
    for column in shown.T:
        key = key * (int(column.max()) + 1) + column
    return int((np.unique(key, return_counts=True)[1] == 1).sum())


# --- the lists behind one report -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reported:
    """A number as it was printed: ``digits`` / 10^``dp``, which stands for all that round to it.

    Attributes:
        digits: the number without its point.
        dp: decimals.
    """

    digits: int
    dp: int

    @classmethod
    def of(cls, value: float, dp: int) -> Reported:
        """The number that prints as `value` with so many decimals."""
        return cls(round(value * 10**dp), dp)

    @property
    def scale(self) -> int:
        """By what `low` and `high` are divided."""
        return 2 * int(10**self.dp)

    @property
    def low(self) -> int:
        """The least number that rounds to it, times `scale`."""
        return 2 * self.digits - 1

    @property
    def high(self) -> int:
        """The greatest one, times `scale`."""
        return 2 * self.digits + 1


def reported(numbers: tuple[int, ...], dp: int) -> tuple[Reported, Reported | None]:
    """Mean and standard deviation of whole numbers as they would be printed; one number has no deviation."""
    n, total = len(numbers), sum(numbers)
    mean = Reported(round(Fraction(total * 10**dp, n)), dp)
    if n == 1:
        return mean, None
    spread = n * sum(one * one for one in numbers) - total * total
    return mean, Reported((math.isqrt(4 * spread * 100**dp // (n * (n - 1))) + 1) // 2, dp)


class TooMany(ValueError):
    """The search was given up: it would take too long."""


def moment_solutions(
    n: int, mean: Reported, sd: Reported | None, low: int | None, high: int | None, *,
    twice_median: int | None = None, steps: int = 3_000_000, check: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, ...]]:  # fmt: skip
    """The lists of n whole numbers with a mean and a standard deviation, each in ascending order.

    Args:
        n: how many numbers.
        mean, sd: as printed; no `sd` for a single number.
        low, high: ends of the scale, if it has any.
        twice_median: twice the median, if it was printed too.
        steps: of the search, before it is given up.
        check: called now and then; it may raise to end the search.

    Raises:
        TooMany: more than so many steps.
    """
    lowest, highest = extremes(n, mean, sd, low, high)
    left = [steps]
    for total in range(-(-n * mean.low // mean.scale), n * mean.high // mean.scale + 1):
        if n == 1:
            found: Iterator[tuple[int, ...]] = iter([(total,)] if lowest <= total <= highest else [])
        else:
            assert sd is not None
            # 4^dp (n Q - S^2) scaled, between the squares of the ends of the interval.
            unit = n * (n - 1)
            least = unit * max(sd.low, 0) ** 2
            most = unit * sd.high**2
            square = sd.scale**2
            first = -(-(-(-least // square) + total * total) // n)
            last = (most // square + total * total) // n
            found = chain.from_iterable(
                _lists(n, total, squares, lowest, highest, left, check) for squares in range(first, last + 1)
            )
        for one in found:
            if twice_median is None or one[(n - 1) // 2] + one[n // 2] == twice_median:
                yield one


def extremes(n: int, mean: Reported, sd: Reported | None, low: int | None, high: int | None) -> tuple[int, int]:
    """Between what the numbers lie: the scale, and Samuelson's bounds of sqrt(n - 1) standard deviations."""
    reach = 0.0 if sd is None or n == 1 else sd.high / sd.scale * math.sqrt(n - 1)
    lowest, highest = math.floor(mean.low / mean.scale - reach), math.ceil(mean.high / mean.scale + reach)
    return lowest if low is None else max(low, lowest), highest if high is None else min(high, highest)


def _lists(
    n: int, total: int, squares: int, low: int, high: int, left: list[int], check: Callable[[], None]
) -> Iterator[tuple[int, ...]]:
    """Ascending lists of n numbers from `low` to `high` with a sum and a sum of squares."""
    left[0] -= 1
    if left[0] < 0:
        raise TooMany("the lists that fit are too many to go through")
    if left[0] % 1024 == 0:
        check()
    if n == 1:
        if low <= total <= high and total * total == squares:
            yield (total,)
        return
    # Squares are least when all numbers are alike, and most when they are at the ends.
    if n * squares < total * total or squares > (low + high) * total - n * low * high:
        return
    if not n * low <= total <= n * high:
        return
    for value in range(low, total // n + 1):
        for rest in _lists(n - 1, total - value, squares - value * value, value, high, left, check):
            yield (value, *rest)


@dataclass(frozen=True)
class Verdict:
    """What a report gives away of the list behind it.

    Attributes:
        solutions: lists that fit it, up to the number looked for.
        certain: values that are in all of them.
        insider: values of the true list whose owner can tell all the others, being in no other list that fits.
    """

    solutions: int
    certain: tuple[int, ...]
    insider: tuple[int, ...]


def verdict(true: tuple[int, ...], solutions: list[tuple[int, ...]]) -> Verdict:
    """What lists that fit a report have in common; the true one is among them."""
    held = [set(one) for one in solutions]
    certain = tuple(sorted(set.intersection(*held))) if held else ()
    insider = tuple(value for value in sorted(set(true)) if sum(value in one for one in held) == 1)
    return Verdict(len(solutions), certain, insider)


# --- tables ----------------------------------------------------------------------------------------------------------


def number_of_tables(rows: list[int], columns: list[int], limit: int) -> int | None:
    """How many two-way tables of counts have these margins; None where going through them would take too long.

    The units are filled one after the other; a state is what is used up of each column.

    Args:
        limit: states, times the largest unit, that may be held.
    """
    if sum(rows) != sum(columns):
        raise ValueError("the margins of a table must have the same total")
    rows, columns = sorted(one for one in rows if one), [one for one in columns if one]
    shape = [one + 1 for one in columns]
    if not columns:
        return 1
    if math.prod(shape) * (max(rows) + 1) > limit:
        return None
    ways = np.zeros(shape, dtype=object)
    ways[(0,) * len(shape)] = 1
    for size in rows:
        filled = np.zeros([*shape, size + 1], dtype=object)
        filled[..., 0] = ways
        for axis in range(len(shape)):
            along = np.moveaxis(filled, axis, 0)
            for used in range(1, shape[axis]):
                along[used, ..., 1:] += along[used - 1, ..., :-1]
        ways = filled[..., size]
    return int(ways[tuple(columns)])
