"""What a limit on the sequence of answers would have said to questions that were asked: "what if", from an audit log.

The questions of each login are read again in their order, by the passes that find what a question counts, under the
policy with another limit. What would have been refused teaches nothing, as when it is refused; nothing is written down.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from sdcduck.catalog import Policy, SequenceLimit
from sdcduck.catalog.chained_file import Line
from sdcduck.errors import SDCError, unknown
from sdcduck.guard.planned import call_of
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Rewritten
from sdcduck.guard.sequence import Sequences
from sdcduck.guard.sequence_cells import Asked, Known
from sdcduck.quoting import folded

_ASKED = frozenset(["answered", "begun", "SDC070"])
"""Verdicts of questions that are asked again: those that were answered, and those of which too much was known."""
COLUMNS = pa.schema({
    "login": pa.string(), "number": pa.int64(), "time": pa.string(), "question": pa.string(), "cells": pa.int64(),
    "new_sets": pa.int64(), "least_error": pa.float64(), "smallest": pa.int64(), "verdict": pa.string(),
})  # fmt: skip


@dataclass
class _Login:
    """What a login would have been told so far."""

    known: Known
    seen: set[bytes] = field(default_factory=set)
    refused: set[bytes] = field(default_factory=set)

    def asks(self, sets: Asked, policy: Policy) -> dict[str, Any]:
        """What would be said to a question about these sets."""
        rows = sets.keys()
        every = {row: place for place, row in enumerate(rows)}
        new = sorted(place for row, place in every.items() if row not in self.seen)
        if not new:
            return {"cells": len(every), "new_sets": 0, "verdict": "answered"}
        would = self.known.would(sets.some(new), policy)
        if not would.breach:
            self.known.keep(would)
            self.seen.update(every)
        elif self.known.keeps_refusals and (told := [place for place in new if rows[place] not in self.refused]):
            self.known.refuse(sets.some(told))
            self.refused.update(rows[place] for place in told)
        return {
            "cells": len(every), "new_sets": len(new), "least_error": would.least_error,
            "smallest": None if would.smallest is None else round(would.smallest),
            "verdict": "refused" if would.breach else "answered",
        }  # fmt: skip


def limited_otherwise(
    policies: Mapping[str, Policy], table: str, min_units: int | None, limit: Callable[[Policy], SequenceLimit]
) -> Policy:
    """The policy of a table with another limit, which is worked out for it.

    Raises:
        SDCError: there is no such policy, or no limit.
    """
    policy = policies.get(folded(table))
    if policy is None or policy.label != "unit-level":
        raise unknown("policy", table, [one.name for one in policies.values() if one.label == "unit-level"])
    if min_units is not None and not min_units >= 1:
        raise SDCError("argument 'min_units' must be a whole number of at least 1")
    changed = replace(policy, sequence=SequenceLimit(), min_units=min_units or policy.min_units)
    limited = replace(changed, sequence=limit(changed))
    if not limited.sequence.holds:
        raise SDCError("argument 'mode' must be a limit: 'off' answers all of it")
    return limited


def questions(lines: Iterable[Line], table: str, login: str | None) -> Iterator[Line]:
    """The lines of an audit log that are questions about a table; one that has two lines stands once."""
    begun: Counter[tuple[str, str]] = Counter()
    for line in lines:
        if login not in (None, line["user"]) or folded(table) not in map(folded, line["tables"]):
            continue
        asked = (line["user"], line["query"])
        if begun[asked] and line["verdict"] != "begun":
            begun[asked] -= 1
        elif line["verdict"] in _ASKED:
            begun[asked] += line["verdict"] == "begun"
            yield line


def rehearsed(
    asked: Iterable[Line], policy: Policy, sequences: Sequences, made: Callable[[str], Rewritten]
) -> pa.Table:
    """A row for each question: what it asks for, how much would be known, and whether it would be answered.

    Args:
        policy: with the limit.
        sequences: find what is counted.
        made: the rewriting of a question under this policy.
    """
    logins: dict[str, _Login] = {}
    rows = []
    for line in asked:
        try:
            rewritten = made(_question_of(line["query"]))
            every = [counted for counted in rewritten.sets if counted.policy == policy.name]
            cells, sets = sequences.asked(policy, every, _parameters_of(line))
            of = logins.setdefault(line["user"], _Login(cells.nothing()))
            found = of.asks(sets, policy) if len(sets) else {"cells": 0, "new_sets": 0, "verdict": "answered"}
        except Refused as refused:
            found = {"verdict": refused.code}
        rows.append({"login": line["user"], "time": line["time"], "question": line["query"], **found})
    numbers: Counter[str] = Counter()
    for row in rows:
        numbers[row["login"]] += 1
        row["number"] = numbers[row["login"]]
    return pa.Table.from_pylist(rows, COLUMNS)


def _question_of(query: str) -> str:
    """A question, out of the step of a plan that it was asked by."""
    call = call_of(query)
    return call.text("statement") if call is not None and call.function == "sdc_plan_reveal" else query


def _parameters_of(line: Line) -> Mapping[str, object] | None:
    written: Mapping[str, object] | None = json.loads(line["parameters"]) if line.get("parameters") else None
    return written
