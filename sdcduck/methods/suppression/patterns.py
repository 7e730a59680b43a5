"""The suppression pattern of linked tables: from primary cells to a choice of secondary ones that has been checked.

What `elimination` decides cell by cell is put to use here: in which order cells are published, which singletons and
differences are protected with them, whether a cheaper pattern is looked for and intervals are widened, and a last
check, apart from how the cells were chosen, that no primary cell can be computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.suppression.candidates import candidate_order
from sdcduck.methods.suppression.differences import Differences, direct_disclosure_order, disclosing_differences
from sdcduck.methods.suppression.elimination import Suppression, suppress_secondary
from sdcduck.methods.suppression.improve import SECOND, UnsafePatternError, improve
from sdcduck.methods.suppression.intervals import NO_SEARCH, Search, Widening, widen_intervals
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.nullspace import ModularNullSpace, modular_null_space, reveals_modular

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TRIALS = 200
"""So many other patterns are looked at, where there is time for them."""
_STEPS = 10  # as much as the first choice of cells: with wide intervals
FREQUENCY_PROTECTION = 0.2
"""Share of its value by which the interval of a small cell must reach beyond it."""


@dataclass(frozen=True)
class LinkedTables:
    """N cells over m inner cells.

    Attributes:
        x: m x N, which inner cells a cell is the sum of.
        freq: (N,), counts of the cells.
        value: (N,), their magnitudes; None: a frequency table.
        inner_freq: (m,), counts of the inner cells.
        inner_value: (m,), what the rules look at: counts or magnitudes.
        contributor: (m,), the number of the one contributor, from 1; 0 where there are several.
    """

    x: DummyMatrix
    freq: Floats
    value: Floats | None
    inner_freq: Ints
    inner_value: Floats
    contributor: Ints

    @property
    def size(self) -> Floats:
        """What a cell counts for: its count, or the absolute value of its magnitude."""
        return self.freq if self.value is None else np.abs(self.value)

    @property
    def empty(self) -> Bools:
        """Cells without inner cells: they are 0, and known to be, so nothing can protect them."""
        nothing: Bools = np.diff(self.x.indptr) == 0
        return nothing

    @property
    def alone(self) -> Bools:
        """Inner cells of one record that is alone in a cell, too: who knows that he is that one.

        Where several tables are published together most records are alone in the crossing of all their columns, which
        none of them shows. Alone there, one knows no cell, and needs to be told none.
        """
        of_one = np.repeat(self.freq == 1, np.diff(self.x.indptr))
        shown = np.zeros(self.x.rows, dtype=np.bool_)
        shown[self.x.indices[of_one]] = True
        shown &= self.inner_freq == 1
        return shown

    def worth(self, weight: Floats | None) -> Floats:
        """What suppressing each cell costs: its size, times its weight."""
        return np.maximum(self.size if weight is None else self.size * weight, 0.0)

    def usual_protection(self) -> Floats:
        """By how much the interval of a small cell reaches beyond it on either side, where no rule says so."""
        if self.value is None:
            return np.maximum(np.ceil(FREQUENCY_PROTECTION * self.freq), 1.0)
        return FREQUENCY_PROTECTION * np.abs(self.value)


@dataclass(frozen=True)
class Roles:
    """Which cells are what: masks (N,).

    Attributes:
        primary: must not be known, by a rule.
        forced: published whatever they disclose.
        hidden: neither published nor protected.
        ignored: cells of contributors that do not count; they protect nobody, and come before all others.
    """

    primary: Bools
    forced: Bools
    hidden: Bools
    ignored: Bools


@dataclass(frozen=True)
class Choice:
    """How secondary cells are chosen.

    Attributes:
        by_contributors: whether rules and singletons are about the contributors of magnitudes.
        records: (m,), how many records an inner cell is taken for in the order of the cells; None: one.
        singleton_method: None: the one that suits the rules.
        k_disclosure: number of persons whose joint knowledge is reckoned with; None: no k-disclosure.
        zeros_protected: whether cells of count 0 may be primary.
        secondary_zeros: whether cells of count 0 may be suppressed.
        weight: (N,), what publishing a cell is worth, beside its size; None: 1.
        search: how long to look for a cheaper pattern afterwards; without trials nobody does.
        protection: (N,), by how much the interval of a primary cell must reach beyond it; None: nobody asks.
    """

    by_contributors: bool = False
    records: Ints | None = None
    singleton_method: str | None = None
    k_disclosure: int | None = None
    zeros_protected: bool = False
    secondary_zeros: bool = False
    weight: Floats | None = None
    search: Search = NO_SEARCH
    protection: Floats | None = None


@dataclass(frozen=True)
class Chosen:
    """A pattern: masks of the cells (N,).

    Attributes:
        secondary: suppressed for the sake of primary cells.
        unsafe: primary cells that follow from forced ones all the same.
        narrow: primary cells whose interval is not as wide as is wanted, whatever is suppressed; None: nobody asked.
        differences: what k-disclosure protects beside the primary cells; None without it.
        disclosing: cells whose difference from one within follows from forced cells all the same.
        saved: secondary cells, and their cost, that looking for a cheaper pattern did without; None: nobody asked.
        ended: whether all trials were made, and not only as many as there was time for; None: nobody asked.
        null_space: what the published cells leave open.
    """

    secondary: Bools
    unsafe: Bools
    narrow: Bools | None
    differences: Differences | None
    disclosing: Bools | None
    saved: tuple[int, float] | None
    ended: bool | None
    null_space: ModularNullSpace


@dataclass(frozen=True)
class _Run:
    """One choice."""

    tables: LinkedTables
    roles: Roles
    choice: Choice
    check: Callable[..., None]

    @cached_property
    def order(self) -> Ints:
        """The cells in the order in which they are published as long as nothing forbids it."""
        choice, tables = self.choice, self.tables
        if choice.k_disclosure is not None and choice.weight is None:
            return direct_disclosure_order(tables.freq)
        order = candidate_order(
            tables.x, tables.freq, weight=choice.weight, value=tables.value, records=choice.records,
            secondary_zeros=choice.secondary_zeros,
        )  # fmt: skip
        ignored = self.roles.ignored[order]
        return np.concatenate([order[ignored], order[~ignored]])

    @cached_property
    def found(self) -> tuple[Differences | None, Bools | None]:
        """What k-disclosure can protect, and the cells where it cannot: forced ones give the difference away."""
        if self.choice.k_disclosure is None:
            return None, None
        x, forced = self.tables.x, self.roles.forced
        found = disclosing_differences(x, self.tables.freq, self.choice.k_disclosure)
        told = np.zeros(found.matrix.columns, dtype=np.bool_)
        if forced.any():
            told[reveals_modular(modular_null_space(x, forced, self.check), found.matrix, ~told)] = True
        disclosing = np.zeros(x.columns, dtype=np.bool_)
        disclosing[found.parent[told]] = True
        return found.only(~told), disclosing

    @cached_property
    def loss(self) -> Floats:
        """What suppressing each cell costs."""
        return self.tables.worth(self.choice.weight)

    @cached_property
    def fixed(self) -> Bools:
        """Cells that stay as they are, whatever else is suppressed."""
        zeros = (self.tables.freq == 0) & (not self.choice.secondary_zeros)
        fixed: Bools = self.roles.forced | self.roles.hidden | zeros
        return fixed

    def secondary_of(self, candidates: Ints, progress: Callable[[int, int], object]) -> Suppression:
        """The secondary cells among candidates, which come in order."""
        choice, tables = self.choice, self.tables
        singleton: Ints | Bools
        if choice.by_contributors:
            usual, singleton = "numttHTT", tables.contributor
        else:
            usual = "anySum" if choice.k_disclosure is None else "anySumNOTprimary"
            zeros = choice.zeros_protected or choice.secondary_zeros
            singleton = tables.inner_freq == 0 if zeros else tables.alone
        differences, _ = self.found
        return suppress_secondary(
            tables.x, candidates, self.roles.primary, forced=self.roles.forced, hidden=self.roles.hidden,
            singleton=singleton, singleton_method=choice.singleton_method or usual,
            extra=None if differences is None else differences.matrix, progress=progress,
        )  # fmt: skip

    def improved(self, first: Suppression) -> tuple[Bools, bool]:
        """A cheaper choice of secondary cells that passes the same tests as the first, if one is found; and `ended`.

        The tests take as long as the first choice did, and are part of the time.
        """
        secondary = first.secondary
        seconds = self.choice.search.seconds - first.steps / SECOND
        if seconds <= 0:
            return secondary, False
        primary, hidden, loss = self.roles.primary, self.roles.hidden, self.loss
        x, more = self.tables.x, 0
        differences, _ = self.found
        if differences is not None:
            x, more = x.beside(differences.matrix), differences.matrix.columns
        closed, protected, frozen = (
            np.append(marks, np.ones(more, dtype=np.bool_))
            for marks in (primary | secondary | hidden, primary, self.fixed)
        )
        found = improve(
            x, closed, protected, np.append(loss, np.zeros(more)), trials=self.choice.search.trials,
            seconds=seconds, seed=self.choice.search.seed, frozen=frozen, progress=self.check,
        )  # fmt: skip
        suppressed = found.suppressed[: self.tables.x.columns]
        # Improving knows nothing of singletons: what it would publish is put to the test of the singleton method again.
        opened = ~(suppressed | hidden)
        again = self.secondary_of(self.order[opened[self.order]], self.check).secondary
        tested = (suppressed & ~primary & ~hidden) | again
        better: Bools = tested if loss[tested].sum() < loss[secondary].sum() else secondary
        return better, found.ended

    def widened(self, secondary: Bools, protection: Floats, progress: Callable[[int, int], object]) -> Widening:
        """A pattern whose intervals are as wide as is wanted, by the secondary cells or others."""
        primary, hidden = self.roles.primary, self.roles.hidden

        def lacking(pattern: Bools) -> Bools:
            """What else must be suppressed where a pattern is published, by the test of the first choice."""
            shown = ~pattern
            again: Bools = self.secondary_of(self.order[shown[self.order]], self.check).secondary & shown
            return again

        return widen_intervals(
            self.tables.x, self.tables.inner_value, primary | secondary | hidden, np.flatnonzero(protection > 0),
            protection, protection, cost=self.loss, ineligible=self.fixed, given=primary | hidden, lacking=lacking,
            search=self.choice.search, progress=progress,
        )  # fmt: skip

    def proven(self, secondary: Bools, unsafe: Bools) -> ModularNullSpace:
        """What is left open, after the check that no primary cell and no difference follows from published cells."""
        x, (differences, _) = self.tables.x, self.found
        space = modular_null_space(x, ~self.roles.primary & ~secondary & ~self.roles.hidden, self.check)
        leaked = reveals_modular(space, x, np.flatnonzero(self.roles.primary))
        safe = bool(unsafe[leaked].all())
        if differences is not None:
            safe &= not len(reveals_modular(space, differences.matrix, np.arange(differences.matrix.columns)))
        if not safe:
            raise UnsafePatternError
        return space


def chosen_before(
    tables: LinkedTables,
    roles: Roles,
    choice: Choice,
    secondary: Bools,
    *,
    check: Callable[..., None] = lambda *_: None,
) -> Chosen:
    """A choice that was made before, and is known to be that for these tables: it is checked only.

    Which cells are unsafe or narrow was found when it was made, and is not found again.

    Raises:
        UnsafePatternError: a primary cell follows from published ones.
    """
    run = _Run(tables, roles, choice, check)
    differences, disclosing = run.found
    unsafe = roles.primary & tables.empty
    return Chosen(secondary, unsafe, None, differences, disclosing, None, None, run.proven(secondary, unsafe))


def choose_cells(
    tables: LinkedTables, roles: Roles, choice: Choice, *,
    progress: Callable[[int, int], object] = lambda done, total: None,
    check: Callable[..., None] = lambda *_: None,
) -> Chosen:  # fmt: skip
    """The secondary cells that protect the primary ones.

    Args:
        progress: called with what is done and what there is to do in the first choice and in widening intervals.
        check: called several times a second in whatever follows; what either raises ends the work.

    Raises:
        UnsafePatternError: the check after the choice failed.

    >>> x = DummyMatrix.from_pairs(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 2]), (2, 3))
    >>> counts = np.array([1, 9])
    >>> tables = LinkedTables(x, np.array([10.0, 1, 9]), None, counts, counts.astype(float), np.zeros(2, np.int64))
    >>> none = np.zeros(3, dtype=bool)
    >>> choose_cells(tables, Roles(np.array([False, True, False]), none, none, none), Choice()).secondary
    array([False, False,  True])
    """
    run = _Run(tables, roles, choice, check)
    differences, disclosing = run.found
    # Where intervals are widened, that is most of the work.
    steps = 1 if choice.protection is None else _STEPS
    progress(0, 1)
    result = run.secondary_of(run.order, lambda done, total: progress(done, steps * total))
    progress(1, steps)
    secondary = result.secondary
    unsafe = np.zeros(len(roles.primary), dtype=np.bool_)
    unsafe[result.unsafe] = True
    unsafe |= roles.primary & tables.empty
    asked = choice.search.trials > 0
    saved, ended = ((0, 0.0), True) if asked else (None, None)
    narrow = None
    before = secondary
    if choice.protection is not None:
        wider = run.widened(
            secondary, choice.protection, lambda done, total: progress(total + (steps - 1) * done, steps * total)
        )
        progress(1, 1)
        given = roles.primary | roles.hidden
        before, secondary = wider.before & ~given, wider.suppressed & ~given
        narrow = np.zeros(len(roles.primary), dtype=np.bool_)
        narrow[wider.impossible] = True
        ended = wider.ended if asked else None
    if asked:
        # Improving a choice without widths would narrow intervals again.
        if not unsafe.any() and (choice.protection is None or not choice.protection.any()):
            secondary, ended = run.improved(result)
        saved = int(before.sum()) - int(secondary.sum()), float(run.loss[before].sum() - run.loss[secondary].sum())
    return Chosen(secondary, unsafe, narrow, differences, disclosing, saved, ended, run.proven(secondary, unsafe))
