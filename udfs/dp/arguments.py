"""What the functions of this family are asked: checked as their messages say it."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.methods.dp.allocation import OBJECTIVES, Allocation, LaplaceAllocation, allocate, allocate_laplace
from sdcduck.methods.dp.calibration import gaussian_ratio
from sdcduck.udfs.arguments import choice, is_finite, number, share, wrong

Floats = NDArray[np.float64]
Given = Sequence[float | None] | None


_LEAST, _MOST = 1e-100, 1e100
"""What is computed with: the squares of what is beyond are no numbers."""


def epsilon_of(epsilon: float | None) -> float:
    """What a release may cost in privacy."""
    found = number(epsilon, "epsilon", above=0, why="what the release may cost in privacy")
    if not _LEAST <= found <= _MOST:
        raise wrong("epsilon", f"be a number from {_LEAST:g} to {_MOST:g}")
    return found


def size(value: float) -> bool:
    """Whether a number of at least 0 is 0, or neither too small nor too large to be computed with."""
    return value == 0 or _LEAST <= value <= _MOST


def cost(epsilon: float | None, delta: float | None) -> tuple[float, float]:
    """What a release with normal noise may cost."""
    return (
        epsilon_of(epsilon),
        share(delta, "delta", zero=False, one=False, why="normal noise is never private with delta 0"),
    )


def check_library() -> None:
    """That there is a library that draws noise.

    Raises:
        SDCError: there is none.
    """
    if importlib.util.find_spec("opendp") is None:
        raise SDCError("differential privacy needs the package 'opendp': pip install 'sdcduck[dp]'")


def numbers(given: Given, name: str, count: int, *, above: float | None = None) -> Floats | None:
    """A list of one number for each that is released; None: it was left out."""
    if given is None:
        return None
    found = [one for one in given if one is not None and is_finite(one) and (above is None or one > above)]
    if not len(found) == len(given) == count:
        raise wrong(name, f"hold {count} numbers{'' if above is None else f' above {above:g}'}, one for each")
    return np.array(found, dtype=np.float64)


@dataclass(frozen=True)
class Purpose:
    """What a release is for: the arguments that share its noise."""

    objective: str
    weights: Floats | None
    eta: Floats | None

    @classmethod
    def read(cls, objective: str | None, weights: Given, eta: Given, count: int) -> Purpose:
        """Of a release of ``count`` numbers."""
        how = choice(objective, "objective", OBJECTIVES)
        if weights is not None and how != "mse":
            raise SDCError("argument 'weights' is for objective := 'mse'")
        if how == "lrt" and eta is None:
            raise wrong(
                "eta", "say what the alternative is", "objective := 'lrt' asks what tells it from the hypothesis"
            )
        found = numbers(eta, "eta", count)
        return cls(how, numbers(weights, "weights", count, above=0), found)

    def share(self, sensitivities: Floats, epsilon: float, delta: float) -> Allocation:
        """How the noise is shared among numbers of these sensitivities."""
        if self.eta is not None and not self.eta[sensitivities > 0].any():
            raise wrong("eta", "not be 0 everywhere", "there would be nothing to find")
        ratio = gaussian_ratio(epsilon, delta)
        return allocate(sensitivities, ratio, self.objective, weights=self.weights, eta=self.eta)

    def share_laplace(self, sensitivities: Floats, epsilon: float) -> LaplaceAllocation:
        """How Laplace noise is shared, of sensitivities as sums of absolute values."""
        return allocate_laplace(sensitivities, epsilon, self.objective, weights=self.weights)
