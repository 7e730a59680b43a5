"""The inner cells of a policy that limits the sequence of answers, and what somebody knows of them.

Under cell keys they are the combinations of the dimensions that are no secret, each with its published size and all
values of the secret. Several secrets are one whose values are their combinations: who is told of one of them is taken
to learn of each. Under a threshold numbers are exact, and cells are the combinations of all values of all dimensions,
whether somebody is in them or not: a group of nobody looks like one of few (`made`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import numpy as np
import numpy.typing as npt

from sdcduck.catalog import Policy
from sdcduck.guard.protect.inner_cells import CELLS, PLACE
from sdcduck.guard.refusals import Refused
from sdcduck.guard.worth import Law
from sdcduck.quoting import folded, identifier, literal

if TYPE_CHECKING:
    from sdcduck.methods.sequence.exact import ExactAnswers, Isolated
    from sdcduck.methods.sequence.knowledge import Answers, Knowledge
    from sdcduck.methods.sequence.knowledge import Would as WouldKnow
    from sdcduck.methods.sequence.sums import ExactSums, Follows

_TAGS = 128
_MOST_CELLS = 200_000

Bits = npt.NDArray[np.bool_]
"""Sets: a row for each, and of it a truth value for each place of a cell and a value of the secret."""


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

    def would(self, sets: Bits, policy: Policy) -> Would:
        """What answers about these sets would tell, and what its policy says to that; nothing is kept."""

    def keep(self, would: Would) -> None:
        """They were answered."""

    def refuse(self, sets: Bits) -> None:
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
        variance: of the noise of an answer; 0: there is none.
        epoch: another one when any of it is another: what was told of others says nothing about these.
        granted: what everybody knows, as `Knowledge` has it in bytes; None: nothing.
        free: the sets of it.
    """

    cursor: duckdb.DuckDBPyConnection
    policy: Policy
    sizes: npt.NDArray[np.float64]
    places: int
    values: int
    variance: float
    epoch: str
    granted: bytes | None = None
    free: frozenset[bytes] = frozenset()

    @property
    def told_apart(self) -> range:
        """The values of the secret that are looked at: of two values what is told of one is told of the other."""
        return range(self.values if self.values > 2 else 1)

    def nothing(self) -> Known:
        """What somebody knows who was told nothing."""
        return _Isolated(self) if self.policy.sequence.is_exact else _Learned(self)

    def telling(self, sets: Bits) -> npt.NDArray[np.bool_]:
        """Which sets tell anything: of exact numbers all but that of everybody, which is known."""
        if self.policy.sequence.is_exact:
            return np.asarray(sets.any(axis=1) & ~sets.all(axis=1), dtype=np.bool_)
        tells = self.tells(sets).any(axis=1)
        if self.free:
            rows = np.packbits(sets, axis=1)
            tells &= np.fromiter((row.tobytes() not in self.free for row in rows), np.bool_, len(rows))
        return np.asarray(tells, dtype=np.bool_)

    def granting(self, sets: Bits) -> Cells:
        """These, where answers about such sets are published anyway."""
        told = sets[self.telling(sets)]
        if not len(told):
            return self
        known = _Learned(self)
        known.grant(told)
        free = frozenset(row.tobytes() for row in np.packbits(told, axis=1))
        return replace(self, granted=known.to_bytes(), free=free)

    def tells(self, sets: Bits) -> npt.NDArray[np.bool_]:
        """In which cells a set has some of the units that have a value of the secret, and not all units."""
        by_cell = sets.reshape(len(sets), len(self.sizes), self.values)
        return np.asarray(by_cell.any(axis=2) & ~by_cell.all(axis=2), dtype=np.bool_)

    def answers(self, sets: Bits) -> dict[str, Answers]:
        """Of each value of the secret, what answers about these sets are.

        Sets that differ only in whom they have altogether have one row and two noises: each has a tag, in cells that
        nobody is in, so that they are not taken for one.
        """
        from sdcduck.methods.sequence.knowledge import Answers
        from sdcduck.methods.sequence.sets import Sets

        tells, of_value = self.tells(sets), sets.reshape(len(sets), len(self.sizes), self.values)
        number, cell = np.nonzero(tells)
        tagged, tag = np.nonzero(_tags(np.packbits(sets, axis=1)))
        numbers, cells = np.concatenate([number, tagged]), np.concatenate([cell, tag + len(self.sizes)])
        found = {}
        for value in self.told_apart:
            weights = np.where(of_value[number, cell, value], 1.0, -1.0)
            weights = np.concatenate([weights, np.ones(len(tag))])
            found[str(value)] = Answers.of(Sets.of_pairs(numbers, cells, len(sets), weights), self.variance)
        return found


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
        self._known = Knowledge({str(value): CellsOfSecret.numbered(sizes) for value in cells.told_apart})

    def grant(self, sets: Bits) -> None:
        """Answers about these sets are published anyway: what is learned is what other answers add."""
        self._known.grant(self._cells.answers(sets))

    def to_bytes(self) -> bytes:
        """All of it."""
        return self._known.to_bytes()

    def would(self, sets: Bits, policy: Policy) -> Would:
        found: WouldKnow = self._known.would(self._cells.answers(sets), policy.min_units)
        return Would(found.least_error, None, found.least_error < policy.sequence.least_error, found)

    def keep(self, would: Would) -> None:
        self._known.keep(would.made)

    def refuse(self, sets: Bits) -> None:
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

    def would(self, sets: Bits, policy: Policy) -> Would:
        found: Isolated = self._known.would(_sets_of(sets), self._pairs)
        least = found.smallest_difference if self._pairs else found.smallest_atom
        follows = None if self._sums is None else self._sums.would(_sets_of(sets))
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

    def refuse(self, sets: Bits) -> None:
        self._known.refuse(_sets_of(sets))


def made(cursor: duckdb.DuckDBPyConnection, policy: Policy, laws: Callable[[Policy], Sequence[Law]]) -> Cells:
    """Make the table of inner cells on a cursor.

    Raises:
        Refused: the records are not what they were when the policy was declared.
    """
    exact = policy.sequence.is_exact
    chosen = {folded(name) for name in policy.sequence.secrets or policy.dimensions}
    hidden = [identifier(name) for name in policy.dimensions if folded(name) in chosen]
    others = [identifier(name) for name in policy.dimensions if folded(name) not in chosen]
    table, variance = identifier(policy.name), 0.0
    if exact:
        _check_values(cursor, policy, hidden)
    else:
        variance = min((law.sd**2 for law in laws(policy) if law.sd is not None and law.size_to != 0), default=0.0)
        if not variance > 0:
            raise Refused("SDC060", f"{policy.name}: the noise of its counts is not known, sdcduck.connect")
    cursor.execute(_table_of_cells(policy, table, hidden, others)).fetchall()
    each, size = ("true", "_sdc_units") if exact else ("_sdc_value = 0", "_sdc_size")
    rows = cursor.execute(f"SELECT {size} FROM {CELLS} WHERE {each} ORDER BY {PLACE}").fetchall()
    listed = f"string_agg(to_json(_sdc_row)::VARCHAR, chr(10) ORDER BY {PLACE})"
    [(places, values, digest)] = cursor.execute(
        f"SELECT count(*), count(DISTINCT _sdc_value), md5(coalesce({listed}, '')) FROM {CELLS} AS _sdc_row"
    ).fetchall()
    if places > _MOST_CELLS:
        raise Refused("SDC060", f"{policy.name}: its dimensions have too many combinations by now, sdc_protect")
    if not exact and values < 2:
        raise Refused("SDC060", f"{policy.name}: what is to be kept secret has one value alone, sdc_protect")
    declared = [sorted(map(folded, policy.dimensions)), policy.role, policy.sequence.mode, variance, digest]
    declared += [policy.sequence.granted] if policy.sequence.granted else []
    epoch = hashlib.sha256(json.dumps(declared).encode()).hexdigest()
    return Cells(cursor, policy, np.array([size for (size,) in rows], float), places, values, variance, epoch)


def _table_of_cells(policy: Policy, table: str, hidden: Sequence[str], others: Sequence[str]) -> str:
    """The statement that makes the table: a row for each cell and each combination of values of what is hidden."""
    values = ", ".join(hidden)
    each = " CROSS JOIN ".join(f"(SELECT DISTINCT {name} FROM {table})" for name in hidden)
    shown = "".join(f"{name}, " for name in others)
    order = ", ".join(f"{name} NULLS LAST" for name in others) or "1"
    if policy.sequence.is_exact:
        published = "count(*)"
        same = " AND ".join(f"places.{name} IS NOT DISTINCT FROM counted.{name}" for name in (*others, *hidden))
        every = ", ".join((*others, *hidden))
        counted = f"(SELECT {every}, count(*) AS _sdc_found FROM {table} GROUP BY ALL) AS counted"
        units, joined = ", coalesce(counted._sdc_found, 0) AS _sdc_units", f"LEFT JOIN {counted} ON {same}"
    else:
        published = f"sdc_count({identifier(str(policy.record_key))}, ptable := {literal(str(policy.ptable))})"
        units = joined = ""
    return f"""CREATE OR REPLACE TEMP TABLE {CELLS} AS
        WITH values_of AS (
            SELECT {values}, row_number() OVER (ORDER BY {", ".join(f"{name} NULLS LAST" for name in hidden)}) - 1
                AS _sdc_value
            FROM {each}
        ), cells AS (
            SELECT {shown} greatest(coalesce(_sdc_published, 0), 1) AS _sdc_size,
                row_number() OVER (ORDER BY {order}) - 1 AS _sdc_cell
            FROM (SELECT {shown} {published} AS _sdc_published FROM {table} {"GROUP BY ALL" if others else ""})
        ), places AS (
            SELECT cells.*, values_of.*, _sdc_cell * (SELECT count(*) FROM values_of) + _sdc_value AS {PLACE}
            FROM cells CROSS JOIN values_of
        )
        SELECT places.*{units} FROM places {joined}"""


def _check_values(cursor: duckdb.DuckDBPyConnection, policy: Policy, hidden: Sequence[str]) -> None:
    """Refuse values of few units by now: that they are there would tell of them; and more cells than can be made."""
    number = 1
    for name in hidden:
        values = f"SELECT count(*) AS n FROM {identifier(policy.name)} GROUP BY {name}"
        [(many, fewest)] = cursor.execute(f"SELECT count(*), min(n) FROM ({values})").fetchall()
        number *= max(many, 1)
        if many and fewest < policy.min_units:
            raise Refused("SDC060", f"{policy.name}: some values are of few units by now, sdc_protect")
    if number > _MOST_CELLS:
        raise Refused("SDC060", f"{policy.name}: its dimensions have too many combinations by now, sdc_protect")


def _sets_of(sets: Bits) -> Any:
    from sdcduck.methods.sequence.sets import Sets

    number, place = np.nonzero(sets)
    return Sets.of_pairs(number, place, len(sets))


def _tags(packed: npt.NDArray[np.uint8]) -> Bits:
    """A row of truth values for each set, the same for the same sets."""
    digests = b"".join(hashlib.blake2b(row.tobytes(), digest_size=_TAGS // 8).digest() for row in packed)
    return np.unpackbits(np.frombuffer(digests, np.uint8).reshape(len(packed), -1), axis=1).astype(bool)
