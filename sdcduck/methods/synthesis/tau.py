"""What a synthesis gives away and what it keeps, before anything is drawn: the measures tau1 to tau4.

Jackson, Mitra, Francis and Dove (2022, PSD). A cell is picked uniformly among K cells, f is its original count and F
the mean of its m synthetic counts:

    tau1(k, d) = P(|F - k| <= d)            tau3(k, d) = P(|F - k| <= d | f = k)
    tau2(k)    = P(f = k)                   tau4(k, d) = P(f = k | |F - k| <= d)

tau3(1) and tau4(1) tell how safe uniques are. All follow from the histogram of the original counts alone. The law of F
is exact, where the paper takes a normal one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.synthesis.laws import LARGEST_SIGMA, Law

Floats = NDArray[np.float64]
MOST_REPLICATES = 1_000_000


@dataclass(frozen=True)
class Histogram:
    """How many of K cells have which original count; structural zeros are none of them.

    count: J distinct counts >= 0. cells: how many cells have it.
    """

    count: NDArray[np.int64]
    cells: NDArray[np.int64]

    @classmethod
    def of(cls, count: ArrayLike, cells: ArrayLike, total: int | None = None) -> Histogram:
        """The histogram of the counts; ``total`` is K where the cells that are not listed are zeros.

        Raises:
            ValueError: fewer cells in all than with a positive count, or none.
        """
        counts, numbers = np.asarray(count, dtype=np.int64), np.asarray(cells, dtype=np.int64)
        positive = counts > 0
        listed = int(numbers[~positive].sum())
        zeros = listed if total is None else total - int(numbers[positive].sum())
        if zeros < listed:
            raise ValueError("there are more cells than cells_total")
        order = np.argsort(counts[positive], kind="stable")
        found = cls(np.r_[0, counts[positive][order]], np.r_[zeros, numbers[positive][order]])
        if found.total == 0:
            raise ValueError("there are no cells")
        return found

    @property
    def total(self) -> int:
        """K, the number of cells."""
        return int(self.cells.sum())

    def share(self, k: int) -> float:
        """tau2(k): the share of the cells whose count is k."""
        return float(self.cells[self.count == k].sum()) / self.total


@dataclass(frozen=True)
class Synthesis:
    """How counts are synthesised: law, pseudo-count alpha >= 0 of zeros, releases m >= 1, expected size c > 0.

    Raises:
        ValueError: a parameter out of its range.
    """

    law: Law
    alpha: float = 0.0
    m: int = 1
    size: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1e6:
            raise ValueError("alpha must be a number between 0 and 1000000")
        if not 1 <= self.m <= MOST_REPLICATES:
            raise ValueError(f"m must be between 1 and {MOST_REPLICATES}")
        if not 0 < self.size <= 1e6:
            raise ValueError("size must be a number above 0, at most 1000000")

    def means(self, count: ArrayLike) -> Floats:
        """The mean of the synthetic counts of each original count."""
        counts = np.asarray(count, dtype=np.float64)
        return np.where(counts > 0, self.size * counts, self.alpha).astype(np.float64)


@dataclass(frozen=True)
class Tau:
    """tau1 to tau4 of one (k, d); tau4 is None where nothing can fall in the window."""

    tau1: float
    tau2: float
    tau3: float
    tau4: float | None


def expected_tau(cells: Histogram, synthesis: Synthesis, k: int, d: float, method: str = "exact") -> Tau:
    """tau1 to tau4 as expected before the draw (spec 15, section 2.4); tau4 is a ratio of expectations.

    method: 'exact', or 'clt' for the normal approximation of the paper (with the term of the zeros it leaves out).

    Raises:
        ValueError: a negative k or d, or an unknown method.
    """
    if k < 0 or not 0 <= d <= 1e9:
        raise ValueError("k and d must be numbers that are not negative")
    if method not in ("exact", "clt"):
        raise ValueError("method must be 'exact' or 'clt'")
    window: Callable[[ArrayLike, int, float, float], Floats] = (
        synthesis.law.window if method == "exact" else synthesis.law.normal_window
    )
    inside = window(synthesis.means(cells.count), synthesis.m, k, d)
    tau1 = float(inside @ cells.cells) / cells.total
    tau2 = cells.share(k)
    tau3 = float(window(synthesis.means([k]), synthesis.m, k, d)[0])
    return Tau(tau1, tau2, tau3, tau3 * tau2 / tau1 if tau1 > 0 else None)


def expected_size(cells: Histogram, synthesis: Synthesis) -> tuple[float, float]:
    """Mean and standard deviation of the number of synthetic records in one release."""
    means = synthesis.means(cells.count)
    return float(means @ cells.cells), math.sqrt(float(synthesis.law.variance(means) @ cells.cells))


def expected_squared_distance(cells: Histogram, synthesis: Synthesis) -> float:
    """Expected sum over the cells of (F - f)^2 (spec 15, section 2.5)."""
    means = synthesis.means(cells.count)
    each = synthesis.law.variance(means) / synthesis.m + (means - cells.count) ** 2
    return float(each @ cells.cells)


_TARGET = re.compile(
    r"\s*(?P<tau>tau[134])\s*\(\s*(?P<k>\d+)\s*(?:,\s*(?P<d>[0-9.]+)\s*)?\)\s*"
    r"(?P<sign><=|>=)\s*(?P<value>[0-9.]+(?:e-?\d+)?)\s*",
    re.I,
)


@dataclass(frozen=True)
class Target:
    """A condition such as ``tau4(1) <= 0.5``."""

    tau: str
    k: int
    d: float
    at_most: bool
    value: float

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read a condition.

        >>> Target.parse("tau4(1, 0.5) <= 0.3")
        Target(tau='tau4', k=1, d=0.5, at_most=True, value=0.3)

        Raises:
            ValueError: the text is none.
        """
        found = _TARGET.fullmatch(text)
        try:
            assert found is not None
            return cls(
                found["tau"].lower(),
                int(found["k"]),
                float(found["d"] or 0),
                found["sign"] == "<=",
                float(found["value"]),
            )
        except (AssertionError, ValueError):
            raise ValueError("target must read like 'tau4(1) <= 0.5' or 'tau3(1, 0.5) >= 0.9'") from None

    def attained(self, cells: Histogram, synthesis: Synthesis, method: str) -> float:
        """The measure under a synthesis; 0 where it has no value."""
        return getattr(expected_tau(cells, synthesis, self.k, self.d, method), self.tau) or 0.0

    def holds(self, attained: float) -> bool:
        """Whether a value fulfils the condition."""
        return attained <= self.value if self.at_most else attained >= self.value


def tune(cells: Histogram, synthesis: Synthesis, target: Target, parameter: str, method: str = "exact") -> Synthesis:
    """The synthesis with the mildest value of one parameter that fulfils the target.

    parameter: 'sigma' or 'alpha', the smallest value; 'm', the largest where more releases hurt (``<=``), else the
    smallest. The measures need not be monotone: a grid over the whole range is walked, then the first border that the
    walk crosses is bisected to 12 digits.

    Raises:
        ValueError: an unknown parameter, or no value of it fulfils the target (with what can be had).
    """
    if parameter not in ("sigma", "alpha", "m"):
        raise ValueError("parameter must be 'sigma', 'alpha' or 'm'")

    def having(value: float) -> Synthesis:
        if parameter == "sigma":
            return replace(synthesis, law=replace(synthesis.law, sigma=value))
        return replace(synthesis, alpha=value) if parameter == "alpha" else replace(synthesis, m=int(value))

    def at(value: float) -> float:
        return target.attained(cells, having(value), method)

    if parameter == "m":
        values = [float(m) for m in range(1, 101)]
        reached = [at(m) for m in values]
        held = [target.holds(value) for value in reached]
        if any(held):
            if target.at_most:
                # The largest m up to which no release breaks the promise.
                last = held.index(False) if False in held else len(held)
                if last > 0:
                    return having(values[last - 1])
            else:
                return having(values[held.index(True)])
    else:
        top = LARGEST_SIGMA if parameter == "sigma" else 1e3
        values = [0.0, *np.geomspace(1e-3, top, 181 if parameter == "sigma" else 121).tolist()]
        reached = [at(value) for value in values]
        held = [target.holds(value) for value in reached]
        if any(held):
            first = held.index(True)
            if first == 0:
                return having(0.0)
            low, high = values[first - 1], values[first]
            while high - low > 1e-12 * high:
                middle = (low + high) / 2
                if middle in (low, high):
                    break
                low, high = (low, middle) if target.holds(at(middle)) else (middle, high)
            return having(high)
    raise ValueError(
        f"no {parameter} fulfils the target: {target.tau}({target.k}, {target.d:g}) lies between "
        f"{min(reached):.4g} and {max(reached):.4g}"
    )
