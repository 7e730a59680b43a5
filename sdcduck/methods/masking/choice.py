"""Groups of records by the name of a method, within strata."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.masking.decomposition import GAMMAS, best_v_mdav, decompose, first_groups
from sdcduck.methods.masking.exchanges import exchange
from sdcduck.methods.masking.microaggregation import by_component, in_turn, standardised
from sdcduck.methods.masking.mixed import loss, mixed_mdav, mixed_v_mdav, over_range
from sdcduck.methods.masking.nearest_groups import mdav
from sdcduck.methods.masking.one_dimension import best_groups
from sdcduck.methods.masking.robust import from_outside

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]
Check = Callable[[int, int], None]

METHODS = ("mdav", "vmdav", "swap", "decompose", "optimal", "onedims", "single", "simple", "pca", "rmd")
"""By which groups are made."""
OF_CATEGORIES = ("mdav", "vmdav")
"""Those of them that take categories, too."""


@dataclass(frozen=True)
class Grouping:
    """How groups are made.

    Attributes:
        method: one of `METHODS`. 'optimal' and 'onedims' take one column, 'single' sorts by the first, and 'simple'
            takes records as they come.
        k: records that a group has at least.
        gamma: of V-MDAV; None: the best of several.
        pieces: into how many 'decompose' cuts the records; None: of about 40 records.
        seconds: for each piece of these.
    """

    method: str
    k: int
    gamma: float | None = None
    pieces: int | None = None
    seconds: float | None = None

    def of(self, values: Matrix, check: Check = lambda done, total: None) -> Indices:
        """The groups of records.

        Args:
            values: n x p, finite; columns are standardised first.
            check: called with how many records are done, and how many there are.

        Raises:
            SingularError: by 'rmd', of records most of which lie in a plane.
        """
        points = standardised(values)
        if len(points) < 2 * self.k:
            return np.zeros(len(points), np.int64)
        if self.method == "mdav":
            return mdav(points, self.k, check)
        if self.method == "vmdav":
            return best_v_mdav(points, self.k, self.gamma, check)
        if self.method == "swap":
            return exchange(points, first_groups(points, self.k, self.gamma, check), check)[0]
        if self.method == "decompose":
            return decompose(points, self.k, self.pieces, gamma=self.gamma, seconds=self.seconds, check=check).groups
        if self.method == "rmd":
            return from_outside(points, self.k, check)
        if self.method == "pca":
            return by_component(points, self.k)
        if self.method == "simple":
            return in_turn(np.arange(len(points)), self.k)
        if self.method == "optimal":
            return best_groups(points[:, 0], self.k)
        return in_turn(np.argsort(values[:, 0], kind="stable"), self.k)

    def mixed(
        self, values: Matrix, categories: NDArray[np.bool_], check: Check = lambda done, total: None
    ) -> Indices:  # fmt: skip
        """The groups of records with categories, by one of `OF_CATEGORIES`.

        Args:
            values: n x p, finite; numbers are divided by their range first.
            categories: p, which columns are codes of categories, whole numbers from 0 on.
        """
        points = over_range(values, categories)
        if len(points) < 2 * self.k:
            return np.zeros(len(points), np.int64)
        if self.method == "mdav":
            return mixed_mdav(points, categories, self.k, check)
        gammas = GAMMAS if self.gamma is None else (self.gamma,)
        found = [mixed_v_mdav(points, categories, self.k, gamma, lambda done, total: check(0, 0)) for gamma in gammas]
        return found[int(np.argmin([loss(points, categories, groups) for groups in found]))]

    def within(
        self, values: Matrix, strata: Indices, check: Check = lambda done, total: None,
        categories: NDArray[np.bool_] | None = None,
    ) -> Indices:  # fmt: skip
        """The groups of records, none of which has records of two strata; numbers from 0 on.

        Args:
            strata: n, numbers from 0 on.
            categories: p, which columns are codes of categories; None: none is.
        """
        groups = np.zeros(len(values), np.int64)
        order, sizes = np.argsort(strata, kind="stable"), np.bincount(strata)
        made = done = 0
        for rows in np.split(order, np.cumsum(sizes)[:-1]):
            told: Check = lambda some, _, done=done: check(done + some, len(values))  # type: ignore[misc]  # noqa: E731
            found = self.of(values[rows], told) if categories is None else self.mixed(values[rows], categories, told)
            groups[rows] = made + found
            made, done = int(groups[rows].max(initial=made - 1)) + 1, done + len(rows)
            check(done, len(values))
        return groups
