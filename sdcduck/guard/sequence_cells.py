"""The inner cells of a policy that limits the sequence of answers, and what somebody knows of them.

Under cell keys they are the combinations of the dimensions that are no secret, each with its published size and all
values of the secret. Several secrets are one whose values are their combinations: who is told of one of them is taken
to learn of each. Under a threshold numbers are exact, and cells are the combinations of all values of all dimensions,
whether somebody is in them or not: a group of nobody looks like one of few (`made`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import numpy as np
import numpy.typing as npt

from sdcduck.catalog import Policy, policies, stored_ptable
from sdcduck.guard.protect.inner_cells import PLACE, Figure
from sdcduck.guard.refusals import Refused
from sdcduck.guard.sequence_tables import Bits, Release, with_releases
from sdcduck.guard.worth import Law
from sdcduck.quoting import folded, identifier

if TYPE_CHECKING:
    from sdcduck.methods.sequence.exact import ExactAnswers, Isolated
    from sdcduck.methods.sequence.knowledge import Answers, Knowledge
    from sdcduck.methods.sequence.knowledge import Would as WouldKnow
    from sdcduck.methods.sequence.sums import ExactSums, Follows

_TAGS = 128
_MOST_CELLS = 200_000


@dataclass(frozen=True)
class Asked:
    """Sets that numbers are about, and which numbers.

    Attributes:
        sets: a row for each.
        of: for each what is added up (`Figure.text`); empty: units are counted.
    """

    sets: Bits
    of: tuple[str, ...]

    @classmethod
    def together(cls, every: Iterable[Asked], places: int) -> Asked:
        """All of these."""
        parts = list(every)
        nothing = np.zeros((0, places), bool)
        return cls(
            np.concatenate([nothing, *(part.sets for part in parts)]), tuple(of for part in parts for of in part.of)
        )

    def __len__(self) -> int:
        return len(self.sets)

    def some(self, places: Iterable[int]) -> Asked:
        """Those at these places."""
        chosen = list(places)
        return Asked(self.sets[chosen], tuple(self.of[place] for place in chosen))

    def keys(self) -> list[bytes]:
        """Of each set a text: the same where the same is asked for, which has the same noise."""
        packed = np.packbits(self.sets, axis=1)
        return [row.tobytes() + of.encode() for row, of in zip(packed, self.of, strict=True)]

    @property
    def of_figures(self) -> npt.NDArray[np.bool_]:
        """Where units are not counted."""
        return np.fromiter(map(bool, self.of), np.bool_, len(self.of))


@dataclass(frozen=True)
class Would:
    """What answers would tell.

    Attributes:
        least_error: the smallest standard error of a small group then; None: numbers are exact.
        smallest: units of the smallest group that they tell apart; None: there is noise, or they tell none apart.
        breach: whether that is more than the policy allows.
        made: of which it is made.
    """

    least_error: float | None
    smallest: float | None
    breach: bool
    made: Any


class Known(Protocol):
    """What somebody knows of the cells of a policy."""

    keeps_refusals: bool
    """Whether a refusal tells something, so that what was refused is kept, too."""

    def would(self, asked: Asked, policy: Policy) -> Would:
        """What answers about these sets would tell, and what its policy says to that; nothing is kept."""

    def keep(self, would: Would) -> None:
        """They were answered."""

    def refuse(self, asked: Asked) -> None:
        """They were not."""


@dataclass(frozen=True)
class Cells:
    """The inner cells of a policy, in a table of their own (`inner_cells.CELLS`).

    Attributes:
        cursor: on which the table is.
        policy: whose they are.
        sizes: of each the published number of units, at least one; under a threshold the true one of each place, of
            which only is asked whether a group of them would be published.
        places: how many there are: one for each cell and value of the secret.
        values: how many values the secret has.
        variances: of the noise of a count of n units, at the place n - 1; the last for more. Empty: there is none.
        of_sums: the same of a sum, as a share of the largest contribution squared; 0: it is not known.
        epoch: another one when any of it is another: what was told of others says nothing about these.
        granted: what everybody knows, as `Knowledge` has it in bytes; None: nothing.
        free: the sets of it.
        least_variance: of the p-table, by which the epoch knows it.
        earlier: the release before, and where its cells are among these; None: there is none.
    """

    cursor: duckdb.DuckDBPyConnection
    policy: Policy
    sizes: npt.NDArray[np.float64]
    places: int
    values: int
    variances: npt.NDArray[np.float64]
    of_sums: float
    epoch: str
    granted: bytes | None = None
    free: frozenset[bytes] = frozenset()
    least_variance: float = 0.0
    earlier: Release | None = None

    @property
    def told_apart(self) -> range:
        """The values of the secret that are looked at: of two values what is told of one is told of the other."""
        return range(self.values if self.values > 2 else 1)

    def nothing(self) -> Known:
        """What somebody knows who was told nothing."""
        return _Isolated(self) if self.policy.sequence.is_exact else _Learned(self)

    def telling(self, asked: Asked) -> Asked:
        """The sets that tell anything: of exact numbers all but that of everybody, which is known.

        Raises:
            Refused: a sum tells of the secret. Who knows what everybody has, and that one has far more than the others,
                sees in it whether that one is among them, at once and whatever else was asked.
        """
        if self.policy.sequence.is_exact:
            telling: npt.NDArray[np.bool_] = np.asarray(asked.sets.any(axis=1) & ~asked.sets.all(axis=1))
        else:
            telling, figures = np.asarray(self.tells(asked.sets).any(axis=1)), asked.of_figures
            known = np.array([bool(of) and Figure.read(of).kind == "known" for of in asked.of], bool)
            if (telling & figures).any():
                secret = " and ".join(self.policy.sequence.secrets)
                raise Refused(
                    "SDC071", f"a sum, or those with a value or one in a band, by {secret}: ask for counts of all"
                )
            if (figures & ~known).any() and not self.of_sums:
                raise Refused("SDC071", "a sum, of which the noise is not known")
            telling = telling | (figures & ~known)
        return asked.some(place for place, key in enumerate(asked.keys()) if telling[place] and key not in self.free)

    def granting(self, asked: Asked) -> Cells:
        """These, where answers about such sets are published anyway."""
        told = self.telling(asked)
        if not len(told):
            return self
        known = _Learned(self)
        known.grant(told)
        return replace(self, granted=known.to_bytes(), free=frozenset(told.keys()))

    def tells(self, sets: Bits) -> npt.NDArray[np.bool_]:
        """In which cells a set has some of the units that have a value of the secret, and not all units."""
        by_cell = sets.reshape(len(sets), len(self.sizes), self.values)
        return np.asarray(by_cell.any(axis=2) & ~by_cell.all(axis=2), dtype=np.bool_)

    def answers(self, asked: Asked) -> dict[str, Answers]:
        """Of each value of the secret, and of each measure, what answers about these sets are.

        Sets that differ only in whom they have altogether have one row and two noises: each has a tag, in cells that
        nobody is in, so that they are not taken for one. So have sums of two expressions over one measure, which are
        two looks at its values.
        """
        found = self._of_secret(asked.some(np.flatnonzero(~asked.of_figures)))
        figures: dict[str, list[int]] = {}
        for place in np.flatnonzero(asked.of_figures).tolist():
            figure = Figure.read(asked.of[place])
            for measure in figure.measures:
                for kind in ("all", "sum") if figure.kind == "all" else (figure.kind,):
                    figures.setdefault(_name(kind, measure), []).append(place)
        return found | {name: self._of_figure(name, asked.some(places)) for name, places in figures.items()}

    def _of_secret(self, asked: Asked) -> dict[str, Answers]:
        from sdcduck.methods.sequence.knowledge import Answers
        from sdcduck.methods.sequence.sets import Sets

        if not len(asked):
            return {}
        tells, of_value = self.tells(asked.sets), asked.sets.reshape(len(asked), len(self.sizes), self.values)
        number, cell = np.nonzero(tells)
        tagged, tag = np.nonzero(_tags(asked.keys()))
        numbers, cells = np.concatenate([number, tagged]), np.concatenate([cell, tag + len(self.sizes)])
        found, spread = {}, self._of_counts(tells)
        for value in self.told_apart:
            weights = np.where(of_value[number, cell, value], 1.0, -1.0)
            weights = np.concatenate([weights, np.ones(len(tag))])
            found[str(value)] = Answers.of(Sets.of_pairs(numbers, cells, len(asked), weights), spread)
        return found

    def _of_figure(self, name: str, asked: Asked) -> Answers:
        from sdcduck.methods.sequence.knowledge import Answers
        from sdcduck.methods.sequence.sets import Sets

        if name not in self.of_measures:
            raise Refused("SDC072", f"{self.policy.name} is not what it was when it was asked about before")
        by_cell = asked.sets.reshape(len(asked), len(self.sizes), self.values)
        inside: npt.NDArray[np.bool_] = np.asarray(by_cell.any(axis=2), dtype=np.bool_)
        if name in self._of_values:
            spread = self._of_counts(inside)
        else:
            spread = np.array([0.0 if Figure.read(one).kind == "all" else self.of_sums for one in asked.of])
        number, cell = np.nonzero(inside)
        tagged, tag = np.nonzero(_tags(asked.keys()))
        numbers, cells = np.concatenate([number, tagged]), np.concatenate([cell, tag + len(self.sizes)])
        return Answers.of(Sets.of_pairs(numbers, cells, len(asked), np.ones(len(cells))), spread)

    def _of_counts(self, inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """The variance of the noise of counts of units of these cells, as they are published."""
        units = (inside @ self.sizes).astype(np.int64)
        return self.variances[np.clip(units, 1, len(self.variances)) - 1]

    @property
    def of_measures(self) -> list[str]:
        """What is kept of the measures: sums, all that can be told of the values together, and how many have one."""
        return [*self._of_measures("sum"), *self._of_measures("all"), *self._of_values]

    @property
    def _of_values(self) -> list[str]:
        return self._of_measures("value")

    def _of_measures(self, kind: str) -> list[str]:
        return [_name(kind, folded(name)) for name in self.policy.measures] if self.of_sums else []


class _Learned:
    """What is known by least squares of numbers with noise."""

    keeps_refusals = False  # what decides are questions and the law of the noise

    def __init__(self, cells: Cells) -> None:
        from sdcduck.methods.sequence.knowledge import (
            Knowledge,
        )  # with SciPy, which guards of other policies do without
        from sdcduck.methods.sequence.sets import Cells as CellsOfSecret

        self._cells = cells
        if cells.granted is not None:
            self._known: Knowledge = Knowledge.from_bytes(cells.granted)
            return
        sizes = np.concatenate([cells.sizes, np.zeros(_TAGS)])
        names = [*map(str, cells.told_apart), *cells.of_measures]
        own = dict.fromkeys((name for name in cells.of_measures if name.startswith("sum")), cells.of_sums)
        self._known = Knowledge({name: CellsOfSecret.numbered(sizes) for name in names}, own=own)

    def grant(self, asked: Asked) -> None:
        """Answers about these sets are published anyway: what is learned is what other answers add."""
        self._known.grant(self._cells.answers(asked))

    def to_bytes(self) -> bytes:
        """All of it."""
        return self._known.to_bytes()

    def would(self, asked: Asked, policy: Policy) -> Would:
        found: WouldKnow = self._known.would(self._cells.answers(asked), policy.min_units)
        return Would(found.least_error, None, found.least_error < policy.sequence.least_error, found)

    def keep(self, would: Would) -> None:
        self._known.keep(would.made)

    def refuse(self, asked: Asked) -> None:
        raise AssertionError("a refusal tells nothing")


class _Isolated:
    """What exact numbers isolate.

    An answer is refused where it would tell a group apart that the policy would not publish: of fewer than `min_units`
    units, 0 among them. So a refusal tells what the threshold tells of some group anyway, and no more: but two groups
    of which one is published and the other is not tell that somebody is in what they differ in. Hence what was refused
    is kept, and what differs from it in few is refused.

    `rank` looks at two sets at a time, as `pairwise`, and at what follows from all sums together.
    """

    keeps_refusals = True

    def __init__(self, cells: Cells) -> None:
        from sdcduck.methods.sequence.exact import ExactAnswers
        from sdcduck.methods.sequence.sets import Cells as Places

        self._pairs = cells.policy.sequence.mode != "atoms"
        self._sums: ExactSums | None = None
        if cells.policy.sequence.mode == "rank":
            from sdcduck.methods.sequence.sums import ExactSums

            self._sums = ExactSums(cells.sizes)
        self._known: ExactAnswers = ExactAnswers(Places.numbered(cells.sizes), empty_is_small=True)

    def would(self, asked: Asked, policy: Policy) -> Would:
        sets = _sets_of(asked)
        found: Isolated = self._known.would(sets, self._pairs)
        least = found.smallest_difference if self._pairs else found.smallest_atom
        follows = None if self._sums is None else self._sums.would(sets)
        if follows is not None:
            least = min(least, follows.smallest)
        breach = min(least, found.nearest_refused) < policy.min_units
        return Would(None, least if np.isfinite(least) else None, breach, (found, follows))

    def keep(self, would: Would) -> None:
        found: Isolated
        follows: Follows | None
        found, follows = would.made
        self._known.keep(found)
        if self._sums is not None and follows is not None:
            self._sums.keep(follows)

    def refuse(self, asked: Asked) -> None:
        self._known.refuse(_sets_of(asked))


def made(cursor: duckdb.DuckDBPyConnection, policy: Policy, laws: Callable[[Policy, str], Sequence[Law]]) -> Cells:
    """Make the table of inner cells on a cursor.

    Args:
        laws: of a statistic of a policy.

    Raises:
        Refused: the records are not what they were when the policy was declared.
    """
    exact = policy.sequence.is_exact
    variance, of_sums, variances = 0.0, 0.0, np.zeros(0)
    if exact:
        _check_values(cursor, policy)
    else:
        variance = _least_variance(laws(policy, "count"))
        if not variance > 0:
            raise Refused("SDC060", f"{policy.name}: the noise of its counts is not known, sdcduck.connect")
        variances = _variances(cursor, policy)
        of_sums = _least_variance(laws(policy, "sum")) if policy.measures else 0.0
    others = _others(cursor, policy) if policy.sequence.follows else {}
    found, table, earlier = with_releases(cursor, policy, variance, others)
    if found.places > _MOST_CELLS:
        raise Refused("SDC060", f"{policy.name}: its dimensions have too many combinations by now, sdc_protect")
    if not exact and found.values < 2:
        raise Refused("SDC060", f"{policy.name}: what is to be kept secret has one value alone, sdc_protect")
    each, size = ("true", "_sdc_units") if exact else ("_sdc_value = 0", "_sdc_size")
    rows = cursor.execute(f"SELECT {size} FROM {table} WHERE {each} ORDER BY {PLACE}").fetchall()
    sizes = np.array([size for (size,) in rows], float)
    return Cells(
        cursor, policy, sizes, found.places, found.values, variances, of_sums, found.epoch, least_variance=variance,
        earlier=earlier,
    )  # fmt: skip


def _others(cursor: duckdb.DuckDBPyConnection, policy: Policy) -> dict[str, Policy]:
    """The policies of a role, by folded name."""
    return {folded(other.name): other for other in policies(cursor) if folded(other.role) == folded(policy.role)}


def _variances(cursor: duckdb.DuckDBPyConnection, policy: Policy) -> npt.NDArray[np.float64]:
    """Of the noise of counts, by the number of units that they are about: never less than they tell (`noise`)."""
    from sdcduck.methods.sequence.noise import variances_of_counts

    stored = stored_ptable(cursor, str(policy.ptable))
    assert stored is not None  # its law is known
    counts = stored.type == "all"
    size, noise = (np.rint(values[counts]).astype(np.int64) for values in (stored.i, stored.v))
    return variances_of_counts(size, noise, (stored.ub - stored.lb)[counts].astype(np.float64), policy.min_units)


def _least_variance(laws: Iterable[Law]) -> float:
    """Of the noise that is smallest; 0: there may be none."""
    spreads = [law.sd for law in laws if law.size_to != 0]
    known = [spread for spread in spreads if spread is not None]
    return min(known, default=0.0) ** 2 if len(known) == len(spreads) else 0.0


def _name(kind: str, measure: str) -> str:
    """What is kept of a measure, as it is called beside the values of the secret, which are numbers."""
    return f"{kind} of {measure}"


def _check_values(cursor: duckdb.DuckDBPyConnection, policy: Policy) -> None:
    """Refuse values of few units by now: that they are there would tell of them; and more cells than can be made."""
    number, chosen = 1, {folded(name) for name in policy.sequence.secrets or policy.dimensions}
    for name in (identifier(name) for name in policy.dimensions if folded(name) in chosen):
        values = f"SELECT count(*) AS n FROM {identifier(policy.name)} GROUP BY {name}"
        [(many, fewest)] = cursor.execute(f"SELECT count(*), min(n) FROM ({values})").fetchall()
        number *= max(many, 1)
        if many and fewest < policy.min_units:
            raise Refused("SDC060", f"{policy.name}: some values are of few units by now, sdc_protect")
    if number > _MOST_CELLS:
        raise Refused("SDC060", f"{policy.name}: its dimensions have too many combinations by now, sdc_protect")


def _sets_of(asked: Asked) -> Any:
    from sdcduck.methods.sequence.sets import Sets

    number, place = np.nonzero(asked.sets)
    return Sets.of_pairs(number, place, len(asked))


def _tags(keys: Sequence[bytes]) -> Bits:
    """A row of truth values for each set, the same for the same sets."""
    digests = b"".join(hashlib.blake2b(key, digest_size=_TAGS // 8).digest() for key in keys)
    return np.unpackbits(np.frombuffer(digests, np.uint8).reshape(len(keys), -1), axis=1).astype(bool)
