"""The sequence of answers: what a login knows after all of them, and when it is told no more.

A policy that limits it (`sdc_protect(.., sequence := 'precision')`) has cells: the distinct combinations of its
dimensions without the secret, each with its published size. Whoever asks is taken to know who is in which cell. What an
answer counts is, of each cell, all units, none, or those with some values of the secret: only the last tells anything,
and for each value of the secret that is a row over the cells, 1 where units with the value are counted and -1 where the
others are (`Knowledge`).

What decides are the sets, the law of the noise and published sizes. What is decided is written down before the answer
is made: charged first, then logged, then answered.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sdcduck.catalog import Policy
from sdcduck.catalog.chained_file import ChainBroken, Held, Line, Reached
from sdcduck.catalog.knowledge_files import KnowledgeFile
from sdcduck.guard.protect.inner_cells import CELLS, PLACE
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Counted, Rewritten
from sdcduck.guard.running import Limited, Parameters, watched
from sdcduck.guard.worth import Law
from sdcduck.quoting import folded, identifier, literal

if TYPE_CHECKING:
    from sdcduck.methods.sequence.knowledge import Answers, Knowledge

_TAGS = 128
_MOST_CELLS = 200_000
_MOST_LOGINS = 1000
_MOST_PLACES = 50_000_000
_LONGEST_QUERY = 2_000
_CHANGED = "it is not what was written"
_ROWS = 100_000  # of a batch

Bits = npt.NDArray[np.bool_]
"""Sets: a row for each, and of it a truth value for each place of a cell and a value of the secret."""


@dataclass(frozen=True)
class Cells:
    """The inner cells of a policy, in a table of their own (`inner_cells.CELLS`).

    Attributes:
        cursor: on which the table is.
        sizes: the published number of units in each, at least one.
        values: how many values the secret has.
        variance: of the noise of an answer.
        epoch: another one when any of it is another: what was told of others says nothing about these.
    """

    cursor: duckdb.DuckDBPyConnection
    sizes: npt.NDArray[np.float64]
    values: int
    variance: float
    epoch: str

    @property
    def told_apart(self) -> range:
        """The values of the secret that are looked at: of two values what is told of one is told of the other."""
        return range(self.values if self.values > 2 else 1)

    def nothing(self) -> Knowledge:
        """What somebody knows who was told nothing."""
        from sdcduck.methods.sequence.knowledge import (
            Knowledge,
        )  # with SciPy, which guards of other policies do without
        from sdcduck.methods.sequence.sets import Cells as CellsOfSecret

        sizes = np.concatenate([self.sizes, np.zeros(_TAGS)])
        return Knowledge({str(value): CellsOfSecret.numbered(sizes) for value in self.told_apart})

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


@dataclass
class Told:
    """What a login was told of a policy, as far as the file was read.

    Attributes:
        place: to which it was read.
        epoch: of the cells; empty: nothing was told.
        seen: the sets that were asked for.
        known: what follows; None: nothing was told.
    """

    place: Reached | None = None
    epoch: str = ""
    seen: set[bytes] = field(default_factory=set)
    known: Knowledge | None = None


class Sequences:
    """Charges the questions of logins.

    Args:
        limited: asks.
        register: the file of the database; None: there is none.
        laws: of the counts of a policy.
        settled: whether the records of a policy cannot change any more.
    """

    def __init__(
        self,
        limited: Limited,
        register: Path | None,
        laws: Callable[[Policy], Sequence[Law]],
        settled: Callable[[Policy], bool],
    ) -> None:
        self._limited, self._register, self._laws, self._settled = limited, register, laws, settled
        self._alone = threading.Lock()
        self._cells: dict[str, tuple[Policy, Cells]] = {}
        self._told: dict[tuple[str, str], Told] = {}

    def charge(self, rewritten: Rewritten, parameters: Parameters, query: str, login: str) -> None:
        """Write down what the answer to a question tells, or refuse it.

        Raises:
            Refused: too much would be known, or nobody knows what would be.
        """
        if not rewritten.sets:
            return
        policies = {policy.name: policy for policy in rewritten.policies}
        with self._alone:
            for name in dict.fromkeys(counted.policy for counted in rewritten.sets):
                every = [counted for counted in rewritten.sets if counted.policy == name]
                self._charge(policies[name], every, parameters, query, login)

    def close(self) -> None:
        """Let go of the tables of inner cells."""
        with self._alone:
            for _, cells in self._cells.values():
                cells.cursor.close()
            self._cells.clear()

    def told(self, login: str, policies: Iterable[Policy]) -> list[tuple[str, int, int, float, float]]:
        """Of each policy that limits it, what a login was told: answers, new sets, the least error and its limit.

        Raises:
            Refused: nobody knows what it was told.
        """
        limited = [policy for policy in policies if policy.sequence.holds]
        if not limited or self._register is None:
            return []
        try:
            lines = KnowledgeFile(self._register, login).lines()
        except ChainBroken:
            raise Refused("SDC072", _CHANGED) from None
        except OSError:
            raise Refused("SDC072") from None
        found = []
        for policy in limited:
            answers, sets, least = 0, 0, 1.0
            for line in (line for line in lines if line["policy"] == folded(policy.name)):
                if line["verdict"] == "forgotten":
                    answers, sets, least = 0, 0, 1.0
                else:
                    answers, sets, least = answers + 1, sets + line["new"], min(least, line["least_error"])
            found.append((policy.name, answers, sets, least, policy.sequence.least_error))
        return found

    def _charge(self, policy: Policy, every: Sequence[Counted], parameters: Parameters, query: str, login: str) -> None:
        cells = self._cells_of(policy)
        asked = np.concatenate([self._sets(cells, counted, parameters) for counted in every])
        asked = asked[cells.tells(asked).any(axis=1)]
        if not len(asked):
            return
        if self._register is None:
            raise Refused("SDC072", "the database is in no file")
        from sdcduck.methods.sequence.knowledge import TooMuchKnown

        try:
            with KnowledgeFile(self._register, login).held() as held:
                self._decide(policy, cells, held, asked, query, login)
        except ChainBroken:
            raise Refused("SDC072", _CHANGED) from None
        except TooMuchKnown:
            raise Refused("SDC072", "it is as much as can be kept of a login") from None
        except OSError:
            raise Refused("SDC072") from None

    def _decide(self, policy: Policy, cells: Cells, held: Held, asked: Bits, query: str, login: str) -> None:
        told = self._read(policy, cells, held, login)
        if told.epoch not in ("", cells.epoch):
            raise Refused("SDC072", f"{policy.name} is not what it was when it was asked about before")
        every = {row.tobytes(): place for place, row in enumerate(np.packbits(asked, axis=1))}
        new = sorted(place for row, place in every.items() if row not in told.seen)
        if not new:
            return
        known = told.known or cells.nothing()
        would = known.would(cells.answers(asked[new]), policy.min_units)
        least = would.least_error
        breach = least < policy.sequence.least_error
        if breach and policy.sequence.on_breach == "refuse":
            raise Refused("SDC070")
        entry = {
            "policy": folded(policy.name), "epoch": cells.epoch, "query": query[:_LONGEST_QUERY], "cells": len(every),
            "new": len(new), "least_error": round(least, 6), "verdict": "breach" if breach else "answered",
            "places": asked.shape[1], "sets": _written(asked[new]),
        }  # fmt: skip
        told.place = held.append(**entry)
        known.keep(would)
        told.epoch, told.known = cells.epoch, known
        told.seen.update(every)

    def _read(self, policy: Policy, cells: Cells, held: Held, login: str) -> Told:
        """What is written of a policy, as far as it was not read before."""
        asked = (folded(policy.name), login)
        if asked not in self._told and len(self._told) >= _MOST_LOGINS:
            self._told.clear()
        told = self._told.setdefault(asked, Told())
        try:
            told.place, lines = held.lines(told.place)
            for line in lines:
                if line.get("policy") == folded(policy.name):
                    self._learn(policy, cells, told, line)
        except BaseException:
            del self._told[asked]
            raise
        return told

    def _learn(self, policy: Policy, cells: Cells, told: Told, line: Line) -> None:
        if line["verdict"] == "forgotten":
            told.epoch, told.seen, told.known = "", set(), None
            return
        if told.epoch not in ("", line["epoch"]):
            raise ChainBroken("two epochs follow each other")
        told.epoch = line["epoch"]
        if told.epoch != cells.epoch:
            return
        sets = _read_back(line["sets"], line["places"])
        told.known = told.known or cells.nothing()
        told.known.keep(told.known.would(cells.answers(sets), policy.min_units))
        told.seen.update(row.tobytes() for row in np.packbits(sets, axis=1))

    def _sets(self, cells: Cells, counted: Counted, parameters: Parameters) -> Bits:
        """The sets that a block counts, each as a truth value for each place."""
        given: Mapping[str, object] = {}
        if parameters:
            named = parameters if isinstance(parameters, Mapping) else dict(enumerate(parameters, 1))
            values = {str(name): value for name, value in named.items()}
            given = {name: values[name] for name in counted.parameters if name in values}

        def ask() -> pa.Table:
            return cells.cursor.sql(counted.sql, params=given or []).to_arrow_reader(_ROWS).read_all()

        found = watched(cells.cursor, ask, self._limited.seconds)
        places, many = len(cells.sizes) * cells.values, found.num_rows * found.num_columns
        if places * many > _MOST_PLACES:
            raise Refused("SDC071", "very many cells at once: ask for fewer columns at a time")
        sets = np.zeros((many, places), bool)
        for number, column in enumerate(found.columns):
            lists = column.combine_chunks()
            counts = np.nan_to_num(lists.value_lengths().to_numpy(zero_copy_only=False)).astype(np.int64)
            of = np.repeat(np.arange(found.num_rows), counts)
            sets[of * found.num_columns + number, lists.flatten().to_numpy()] = True
        return sets[sets.any(axis=1)]

    def _cells_of(self, policy: Policy) -> Cells:
        known = self._cells.get(policy.name)
        if known is not None and known[0] == policy and self._settled(policy):
            return known[1]
        cursor = self._limited.cursor() if known is None else known[1].cursor
        made = watched(cursor, lambda: _made(cursor, policy, self._laws(policy)), self._limited.seconds)
        if len(made.sizes) * made.values > _MOST_CELLS:
            raise Refused("SDC060", f"{policy.name}: its dimensions have too many combinations by now, sdc_protect")
        if not made.variance > 0:
            raise Refused("SDC060", f"{policy.name}: the noise of its counts is not known, sdcduck.connect")
        if made.values < 2:
            raise Refused("SDC060", f"{policy.name}: what is to be kept secret has one value alone, sdc_protect")
        self._cells[policy.name] = (policy, made)
        return made


def _made(cursor: duckdb.DuckDBPyConnection, policy: Policy, laws: Sequence[Law]) -> Cells:
    """Make the table of inner cells on a cursor."""
    secret = identifier(policy.sequence.secrets[0])
    hidden = folded(policy.sequence.secrets[0])
    others = [identifier(name) for name in policy.dimensions if folded(name) != hidden]
    order = ", ".join(f"{name} NULLS LAST" for name in others) or "1"
    shown = "".join(f"{name}, " for name in others)
    table, key = identifier(policy.name), identifier(str(policy.record_key))
    published = f"sdc_count({key}, ptable := {literal(str(policy.ptable))})"
    cursor.execute(f"""CREATE OR REPLACE TEMP TABLE {CELLS} AS
        WITH values_of AS (
            SELECT {secret}, row_number() OVER (ORDER BY {secret} NULLS LAST) - 1 AS _sdc_value
            FROM (SELECT DISTINCT {secret} FROM {table})
        ), cells AS (
            SELECT {shown} greatest(coalesce(_sdc_published, 0), 1) AS _sdc_size,
                row_number() OVER (ORDER BY {order}) - 1 AS _sdc_cell
            FROM (SELECT {shown} {published} AS _sdc_published FROM {table} {"GROUP BY ALL" if others else ""})
        )
        SELECT cells.*, values_of.*, _sdc_cell * (SELECT count(*) FROM values_of) + _sdc_value AS {PLACE}
        FROM cells CROSS JOIN values_of""").fetchall()
    rows = cursor.execute(f"SELECT _sdc_size FROM {CELLS} WHERE _sdc_value = 0 ORDER BY _sdc_cell").fetchall()
    listed = f"string_agg(to_json(_sdc_row)::VARCHAR, chr(10) ORDER BY {PLACE})"
    [(values, digest)] = cursor.execute(
        f"SELECT count(DISTINCT _sdc_value), md5(coalesce({listed}, '')) FROM {CELLS} AS _sdc_row"
    ).fetchall()
    variance = min((law.sd**2 for law in laws if law.sd is not None and law.size_to != 0), default=0.0)
    declared = [sorted(map(folded, policy.dimensions)), policy.role, policy.sequence.mode, variance, digest]
    return Cells(
        cursor, np.array([size for (size,) in rows], float), int(values), variance,
        hashlib.sha256(json.dumps(declared).encode()).hexdigest(),
    )  # fmt: skip


def _tags(packed: npt.NDArray[np.uint8]) -> Bits:
    """A row of truth values for each set, the same for the same sets."""
    digests = b"".join(hashlib.blake2b(row.tobytes(), digest_size=_TAGS // 8).digest() for row in packed)
    return np.unpackbits(np.frombuffer(digests, np.uint8).reshape(len(packed), -1), axis=1).astype(bool)


def _written(sets: Bits) -> str:
    """Sets as a text: most are alike, and fill little room."""
    return base64.b64encode(zlib.compress(np.packbits(sets, axis=1).tobytes())).decode()


def _read_back(text: str, places: int) -> Bits:
    """The sets of such a text, each of so many places."""
    packed = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(-1, (places + 7) // 8)
    return np.unpackbits(packed, axis=1, count=places).astype(bool)
