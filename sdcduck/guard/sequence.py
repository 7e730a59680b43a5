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
import json
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from sdcduck.catalog import Policy
from sdcduck.catalog.chained_file import ChainBroken, Held, Line, Reached
from sdcduck.catalog.knowledge_files import KnowledgeFile
from sdcduck.guard.protect.inner_cells import Figure
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Counted, Rewritten
from sdcduck.guard.running import Limited, Parameters, watched
from sdcduck.guard.sequence_cells import Asked, Cells, Known, made
from sdcduck.guard.sequence_tables import Before, Bits, before
from sdcduck.guard.worth import Law
from sdcduck.quoting import folded

_MOST_LOGINS = 1000
_MOST_PLACES = 50_000_000
_LONGEST_QUERY = 2_000
_CHANGED = "it is not what was written"
_ROWS = 100_000  # of a batch
_MOST_EPOCHS = 20


@dataclass
class Told:
    """What a login was told of a policy, as far as the file was read.

    Attributes:
        policy: by which it was read.
        place: to which it was read.
        epoch: of the cells that the sets are of.
        seen: the sets that were asked for.
        refused: those of questions that were refused, where a refusal tells something.
        known: what follows; None: nothing was told.
    """

    policy: Policy
    epoch: str
    place: Reached | None = None
    seen: set[bytes] = field(default_factory=set)
    refused: set[bytes] = field(default_factory=set)
    known: Known | None = None


class Sequences:
    """Charges the questions of logins.

    Args:
        limited: asks.
        register: the file of the database; None: there is none.
        laws: of a statistic of a policy.
        settled: whether the records of a policy cannot change any more.
        granted: the rewriting of the query of what is published of a policy anyway.
    """

    def __init__(
        self,
        limited: Limited,
        register: Path | None,
        laws: Callable[[Policy, str], Sequence[Law]],
        settled: Callable[[Policy], bool],
        granted: Callable[[Policy], Rewritten],
    ) -> None:
        self._limited, self._register, self._laws, self._settled = limited, register, laws, settled
        self._granted = granted
        self._alone = threading.Lock()
        self._cells: dict[str, tuple[Policy, Cells]] = {}
        self._told: dict[tuple[str, str], Told] = {}
        self._before: dict[tuple[str, str], Before | None] = {}

    def charge(self, rewritten: Rewritten, parameters: Parameters, query: str, login: str) -> None:
        """Write down what the answer to a question tells, or refuse it.

        Raises:
            Refused: too much would be known, or nobody knows what would be.
        """
        if not rewritten.sets:
            return
        policies = {policy.name: policy for policy in rewritten.policies}
        with self._alone:
            alone = [counted for counted in rewritten.sets if not counted.reads]
            for name in dict.fromkeys(counted.policy for counted in alone):
                every = [counted for counted in alone if counted.policy == name]
                self._charge(policies[name], every, parameters, query, login)
            for counted in (counted for counted in rewritten.sets if counted.reads):  # which follows those it reads
                self._charge(policies[counted.policy], [counted], parameters, query, login)

    def without_file(self) -> Sequences:
        """As these, for questions of which nothing is written down, about records as they are now."""
        return Sequences(self._limited, None, self._laws, lambda policy: True, self._granted)

    def close(self) -> None:
        """Let go of the tables of inner cells."""
        with self._alone:
            for _, cells in self._cells.values():
                cells.cursor.close()
            self._cells.clear()

    def told(self, login: str, policies: Iterable[Policy]) -> list[tuple[str, int, int, float | None, float]]:
        """Of each policy that limits it, what a login was told: answers, new sets, the least error and the limit.

        Under a threshold there is no error, and the limit is the fewest units of a group. Which groups are how large is
        nothing that is told to those who ask.

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
            exact = policy.sequence.is_exact
            answers, sets, least = 0, 0, 1.0
            for line in (line for line in lines if line["policy"] == folded(policy.name)):
                if line["verdict"] == "forgotten":
                    answers, sets, least = 0, 0, 1.0
                elif line["verdict"] != "refused":
                    answers, sets = answers + 1, sets + line["new"]
                    least = min(least, 1.0 if line["least_error"] is None else line["least_error"])
            limit = policy.min_units if exact else policy.sequence.least_error
            found.append((policy.name, answers, sets, None if exact else least, limit))
        return found

    def asked(self, policy: Policy, every: Sequence[Counted], parameters: Parameters) -> tuple[Cells, Asked]:
        """The cells of a policy, and the sets of them that numbers are about and that tell something."""
        cells = self._cells_of(policy)
        sets = Asked.together((self._sets(cells, counted, parameters) for counted in every), cells.places)
        return cells, cells.telling(sets)

    def _charge(self, policy: Policy, every: Sequence[Counted], parameters: Parameters, query: str, login: str) -> None:
        cells, asked = self.asked(policy, every, parameters)
        if not len(asked):
            return
        if self._register is None:
            raise Refused("SDC072", "the database is in no file")
        from sdcduck.methods.sequence.knowledge import TooMuchKnown

        try:
            with KnowledgeFile(self._register, login).held() as held:
                told = self._read(policy, cells, held, login)
                try:
                    self._decide(policy, cells, held, asked, query, told)
                except (Refused, TooMuchKnown):
                    raise
                except BaseException:  # it may be written and not kept here: it is read again
                    del self._told[folded(policy.name), login]
                    raise
        except ChainBroken:
            raise Refused("SDC072", _CHANGED) from None
        except TooMuchKnown:
            raise Refused("SDC072", "it is as much as can be kept of a login") from None
        except OSError:
            raise Refused("SDC072") from None

    def _decide(self, policy: Policy, cells: Cells, held: Held, asked: Asked, query: str, told: Told) -> None:
        asked_rows = asked.keys()
        every = {row: place for place, row in enumerate(asked_rows)}
        new = sorted(place for row, place in every.items() if row not in told.seen)
        if not new:
            return
        if policy.sequence.followed_by:
            raise Refused("SDC071", f"{policy.sequence.followed_by} is a later release: ask about that")
        known = told.known or cells.nothing()
        would = known.would(asked.some(new), policy)
        refuses = would.breach and policy.sequence.on_breach == "refuse"
        if refuses and known.keeps_refusals:
            new = [place for place in new if asked_rows[place] not in told.refused]
        if refuses and not (new and known.keeps_refusals):
            raise Refused("SDC070")
        entry = {
            "policy": folded(policy.name), "epoch": cells.epoch, "query": query[:_LONGEST_QUERY], "cells": len(every),
            "new": len(new), "least_error": None if would.least_error is None else round(would.least_error, 6),
            "smallest": None if would.smallest is None else round(would.smallest),
            "verdict": "refused" if refuses else "breach" if would.breach else "answered",
            "places": cells.places, "sets": _written(asked.sets[new]),
            "dimensions": list(policy.dimensions), "secrets": list(policy.sequence.secrets),
            "measures": list(policy.measures),
        }  # fmt: skip
        if any(asked.of[place] for place in new):
            entry |= {"of": _text_of([asked.of[place] for place in new]), "of_sums": cells.of_sums}
        told.place, told.known = held.append(**entry), known
        if refuses:
            known.refuse(asked.some(new))
            told.refused.update(asked_rows[place] for place in new)
            raise Refused("SDC070")
        known.keep(would)
        told.seen.update(every)

    def _read(self, policy: Policy, cells: Cells, held: Held, login: str) -> Told:
        """What is written of a policy, as far as it was not read before."""
        asked = (folded(policy.name), login)
        if asked not in self._told and len(self._told) >= _MOST_LOGINS:
            self._told.clear()
        told = self._told.get(asked)
        if told is None or told.policy != policy or told.epoch != cells.epoch:
            told = self._told[asked] = Told(policy, cells.epoch)
        try:
            names = {folded(policy.name), *map(folded, policy.sequence.follows)}
            told.place, lines = held.lines(told.place)
            mine = [line for line in lines if line.get("policy") in names]
            if any(line["verdict"] == "forgotten" for line in mine):
                told = self._told[asked] = Told(policy, cells.epoch)
                told.place, lines = held.lines()
                mine = [line for line in lines if line.get("policy") in names]
            begin = {line["policy"]: place for place, line in enumerate(mine) if line["verdict"] == "forgotten"}
            for line in (line for place, line in enumerate(mine) if place > begin.get(line["policy"], -1)):
                self._learn(policy, cells, told, line)
        except BaseException:
            del self._told[asked]
            raise
        return told

    def _learn(self, policy: Policy, cells: Cells, told: Told, line: Line) -> None:
        sets = _read_back(line["sets"], line["places"])
        of = tuple(_list_of(line["of"])) if "of" in line else ("",) * len(sets)
        if line["policy"] != folded(policy.name) and cells.earlier is not None:
            sets, of = cells.earlier.told(line, sets), tuple(Figure.at(one, line["policy"]) for one in of)
        elif line["epoch"] != cells.epoch:
            sets = self._translated(policy, cells, line, sets)
        asked = Asked(sets, of)
        if line.get("of_sums", cells.of_sums) != cells.of_sums:
            raise Refused("SDC072", f"{policy.name}: its sums have another noise than when it was asked about before")
        told.known = told.known or cells.nothing()
        rows = set(asked.keys())
        if line["verdict"] == "refused":
            told.known.refuse(asked)
            told.refused |= rows
        else:
            told.known.keep(told.known.would(asked, policy))
            told.seen |= rows

    def _translated(self, policy: Policy, cells: Cells, line: Line, sets: Bits) -> Bits:
        """The sets of a line that was written when the policy had other dimensions.

        Raises:
            Refused: the records were others, or one is no set of the cells that there are now.
        """
        asked = (cells.epoch, line["epoch"])
        if asked not in self._before:
            if len(self._before) >= _MOST_EPOCHS:
                self._before.clear()
            known = "measures" in line  # an older version did not write it
            self._before[asked] = before(cells, line) if known else None
        found = self._before[asked]
        translated = None if found is None else found.sets(sets)
        if translated is None:
            raise Refused("SDC072", f"{policy.name} is not what it was when it was asked about before")
        return translated

    def _sets(self, cells: Cells, counted: Counted, parameters: Parameters) -> Asked:
        """The sets that the numbers of a block are about."""
        given: Mapping[str, object] = {}
        if parameters:
            named = parameters if isinstance(parameters, Mapping) else dict(enumerate(parameters, 1))
            values = {str(name): value for name, value in named.items()}
            given = {name: values[name] for name in counted.parameters if name in values}

        def ask() -> pa.Table:
            return cells.cursor.sql(counted.sql, params=given or []).to_arrow_reader(_ROWS).read_all()

        found = watched(cells.cursor, ask, self._limited.seconds)
        places, many = cells.places, found.num_rows * found.num_columns
        if places * many > _MOST_PLACES:
            raise Refused("SDC071", "very many cells at once: ask for fewer columns at a time")
        sets = np.zeros((many, places), bool)
        for number, column in enumerate(found.columns):
            lists = column.combine_chunks()
            counts = np.nan_to_num(lists.value_lengths().to_numpy(zero_copy_only=False)).astype(np.int64)
            of = np.repeat(np.arange(found.num_rows), counts)
            sets[of * found.num_columns + number, lists.flatten().to_numpy()] = True
            if (sets[number :: found.num_columns].sum(axis=1) < counts).any():
                raise Refused("SDC071", "records that a join repeats: ask for counts, and join these")
        some = np.flatnonzero(sets.any(axis=1))
        return Asked(sets[some], tuple(counted.of[place % found.num_columns] for place in some.tolist()))

    def _cells_of(self, policy: Policy) -> Cells:
        known = self._cells.get(policy.name)
        if known is not None and known[0] == policy and self._settled(policy):
            return known[1]
        cursor = self._limited.cursor() if known is None else known[1].cursor
        self._cells.pop(policy.name, None)  # its table is replaced, whatever fails
        try:
            found = watched(cursor, lambda: made(cursor, policy, self._laws), self._limited.seconds)
            if policy.sequence.granted:
                found = found.granting(self._granted_sets(policy, found))
        except BaseException:
            cursor.close()
            raise
        self._cells[policy.name] = (policy, found)
        return found

    def _granted_sets(self, policy: Policy, cells: Cells) -> Asked:
        """The sets of what is published of a policy anyway.

        Raises:
            Refused: nobody knows what that tells.
        """
        from sdcduck.methods.sequence.knowledge import TooMuchKnown

        try:
            every = self._granted(policy).sets
            return Asked.together((self._sets(cells, counted, None) for counted in every), cells.places)
        except (Refused, TooMuchKnown) as problem:
            why = problem.code if isinstance(problem, Refused) else "too much of it"
            raise Refused(
                "SDC060", f"{policy.name}: what is granted is not answered itself: {why}, sdc_protect"
            ) from None


def _written(sets: Bits) -> str:
    """Sets as a text: most are alike, and fill little room."""
    return base64.b64encode(zlib.compress(np.packbits(sets, axis=1).tobytes())).decode()


def _text_of(names: list[str]) -> str:
    """Names as a text."""
    return base64.b64encode(zlib.compress(json.dumps(names).encode())).decode()


def _list_of(text: str) -> list[str]:
    """The names of such a text."""
    names: list[str] = json.loads(zlib.decompress(base64.b64decode(text)))
    return names


def _read_back(text: str, places: int) -> Bits:
    """The sets of such a text, each of so many places."""
    packed = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(-1, (places + 7) // 8)
    return np.unpackbits(packed, axis=1, count=places).astype(bool)
