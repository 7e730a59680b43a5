"""The tables of inner cells of policies that limit the sequence of answers: of now, and of before.

A policy may follow another (`sdc_protect(.., follows := 'people_2025')`): its records are a later release of the same
units. Its cells are then the combinations of its dimensions *and* of the cell of the earlier release that a unit was
in, or that it was in none: who was corrected, came or went stands in cells of their own. So what was told of the
earlier release are sets of these cells, too, and what two releases tell of a changed unit together is looked at.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import numpy.typing as npt

from sdcduck.catalog import Policy
from sdcduck.guard.protect.inner_cells import CELLS, PLACE
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, identifier, literal

if TYPE_CHECKING:
    from sdcduck.guard.sequence_cells import Cells

_BEFORE = "_sdc_cells_before"
_EVERY = "_sdc_every_cell"
_RECORDS = "_sdc_records"
_OF_RELEASES = ("_sdc_here", "_sdc_before", "_sdc_changed")
"""Whether a unit is in a release, the cell that it was in before, and whether it came, went or changed in any."""

Bits = npt.NDArray[np.bool_]
"""Sets: a row for each, and of it a truth value for each place of a cell and a value of the secret."""


@dataclass(frozen=True)
class Before:
    """Which places of cells of before are in which of now: of a policy that had other dimensions over the same records.

    Attributes:
        now: int64 (k,), of each pair the place of now, ascending; each has one.
        before: int64 (k,), and that of before.
        places: how many there are now.
    """

    now: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]
    places: int

    def sets(self, sets: Bits) -> Bits | None:
        """Sets of before, as sets of now; None: one has some of the units of a place of now, and not all."""
        of_pairs, begin = sets[:, self.before], np.searchsorted(self.now, np.arange(self.places))
        some = np.logical_or.reduceat(of_pairs, begin, axis=1)
        every = np.logical_and.reduceat(of_pairs, begin, axis=1)
        return some if (some == every).all() else None


def before(cells: Cells, line: Mapping[str, Any]) -> Before | None:
    """The cells that a policy had with other dimensions when a line was written; None: they are not those of its epoch.

    A place of before and one of now have units in common where all dimensions that both have are the same. What tells
    of other secrets was not written down, so these must be the same.
    """
    policy, dimensions, secrets = cells.policy, line["dimensions"], line["secrets"]
    if {folded(name) for name in secrets} != {folded(name) for name in policy.sequence.secrets}:
        return None
    other = replace(policy, dimensions=tuple(dimensions), measures=tuple(line["measures"]))
    try:
        found = counted(cells.cursor, other, _BEFORE, cells.least_variance)
    except duckdb.Error:  # a column is not there any more
        return None
    if found.epoch != line["epoch"]:
        return None
    same = {folded(name) for name in dimensions} & {folded(name) for name in policy.dimensions}
    joined = " AND ".join(
        f"now.{identifier(name)} IS NOT DISTINCT FROM old.{identifier(name)}" for name in sorted(same)
    )
    pairs = cells.cursor.execute(f"""SELECT now.{PLACE} AS now, old.{PLACE} AS old FROM {CELLS} AS now
        JOIN {_BEFORE} AS old ON {joined or "true"} ORDER BY ALL""").fetchnumpy()
    now, old = (np.asarray(pairs[name], dtype=np.int64) for name in ("now", "old"))
    every = np.array_equal(np.unique(now), np.arange(cells.places))
    return Before(now, old, cells.places) if every else None


@dataclass(frozen=True)
class Counted:
    """What a table of inner cells has: its places, the values of the secret, and what both are known by."""

    places: int
    values: int
    epoch: str


def counted(
    cursor: duckdb.DuckDBPyConnection, policy: Policy, into: str, variance: float, records: str = ""
) -> Counted:
    """Make a table of inner cells of that name.

    Args:
        records: the table of units of all releases; empty: there is one release.
    """
    chosen = {folded(name) for name in policy.sequence.secrets or policy.dimensions}
    hidden = [identifier(name) for name in policy.dimensions if folded(name) in chosen]
    others = [identifier(name) for name in policy.dimensions if folded(name) not in chosen]
    cursor.execute(_table_of_cells(policy, into, hidden, [*others, *_OF_RELEASES] if records else others, records))
    listed = f"string_agg(to_json(_sdc_row)::VARCHAR, chr(10) ORDER BY {PLACE})"
    [(places, values, digest)] = cursor.execute(
        f"SELECT count(*), count(DISTINCT _sdc_value), md5(coalesce({listed}, '')) FROM {into} AS _sdc_row"
    ).fetchall()
    # Whose secret or value is another one is in the same cell, and in sets of which the numbers are others now.
    values_of = [*hidden, *(identifier(name) for name in sorted(policy.measures, key=folded))]
    who = ", ".join(identifier(name) for name in (policy.unit, policy.record_key) if name is not None)
    every = f"SELECT bit_xor(hash({who}, {', '.join(values_of)}))::VARCHAR FROM {identifier(policy.name)}"
    [(records_now,)] = cursor.execute(every).fetchall()
    declared = [
        sorted(map(folded, policy.dimensions)),
        policy.role,
        policy.sequence.mode,
        variance,
        digest,
        records_now,
    ]
    declared += [policy.sequence.granted] if policy.sequence.granted else []
    return Counted(places, values, hashlib.sha256(json.dumps(declared).encode()).hexdigest())


@dataclass(frozen=True)
class Release:
    """The release before that of a policy.

    Attributes:
        policy: of it.
        epoch: of its cells.
        of: int64 (places of now,), the place that the units of a place of now had in it; -1: they were not in it.
        earlier: the release before it.
    """

    policy: Policy
    epoch: str
    of: npt.NDArray[np.int64]
    earlier: Release | None

    def sets(self, sets: Bits) -> Bits:
        """Sets of this release, as sets of the one after it."""
        return np.where(self.of >= 0, sets[:, self.of], np.False_)

    def told(self, line: Mapping[str, object], sets: Bits) -> Bits:
        """Sets of a line of this release or one before it, as sets of the one after this.

        Raises:
            Refused: the records of that release are not what they were.
        """
        if line["policy"] != folded(self.policy.name):
            assert self.earlier is not None  # lines of no others are read
            return self.sets(self.earlier.told(line, sets))
        if line["epoch"] != self.epoch:
            raise Refused("SDC072", f"{self.policy.name} is not what it was when it was asked about before")
        return self.sets(sets)


def with_releases(
    cursor: duckdb.DuckDBPyConnection, policy: Policy, variance: float, others: Mapping[str, Policy]
) -> tuple[Counted, str, Release | None]:
    """Make the table of inner cells of a policy: what it has, its name, and the release before.

    Args:
        others: the policies of its role, by folded name.

    Raises:
        Refused: the release before is not what it was when the policy was declared.
    """
    if not policy.sequence.follows:
        return counted(cursor, policy, CELLS, variance), CELLS, None
    found, release = _joint(cursor, policy, _EVERY, variance, others)
    cursor.execute(f"CREATE OR REPLACE TEMP TABLE {CELLS} AS FROM {_EVERY} WHERE _sdc_here")
    return found, _EVERY, release


def _joint(
    cursor: duckdb.DuckDBPyConnection, policy: Policy, into: str, variance: float, others: Mapping[str, Policy]
) -> tuple[Counted, Release | None]:
    if not policy.sequence.follows:
        return counted(cursor, policy, into, variance), None
    older = others.get(folded(policy.sequence.follows[0]))
    if older is None or not _goes_before(older, policy):
        raise Refused("SDC060", f"{policy.name}: the release that it follows has another policy, sdc_protect")
    depth = len(policy.sequence.follows)
    found, earlier = _joint(cursor, older, f"{_BEFORE}_{depth}", variance, others)
    cursor.execute(_records(policy, older, depth))
    now = counted(cursor, policy, into, variance, f"{_RECORDS}_{depth}")
    if now.values != found.values:
        raise Refused(
            "SDC060", f"{policy.name}: the release that it follows has other values of the secret, sdc_protect"
        )
    every = f"SELECT coalesce(_sdc_before * {found.values} + _sdc_value, -1) AS of FROM {into} ORDER BY {PLACE}"
    of = np.asarray(cursor.execute(every).fetchnumpy()["of"], dtype=np.int64)
    return now, Release(older, found.epoch, of, earlier)


def _goes_before(older: Policy, policy: Policy) -> bool:
    """Whether what is told under one policy is what is told under the other."""
    one, other = older.sequence, policy.sequence
    return (
        one.mode == other.mode == "precision"
        and list(map(folded, one.secrets)) == list(map(folded, other.secrets))
        and (older.ptable, older.min_units, one.follows) == (policy.ptable, policy.min_units, other.follows[1:])
    )


def _records(policy: Policy, older: Policy, depth: int) -> str:
    """The statement that makes the table of units of a release and those before.

    Whoever changed is taken for one unit of which all others are known: a published size might say that it is not few.
    """
    cells, unit, key = f"{_BEFORE}_{depth}", identifier(str(policy.unit)), identifier(str(policy.record_key))
    same = _known(older)
    if older.sequence.follows:
        records, same = f"{_RECORDS}_{depth - 1}", [*same, *_OF_RELEASES]
        its_unit, its_key = "_sdc_unit", "_sdc_key"
    else:
        records, its_unit, its_key = (
            identifier(older.name),
            identifier(str(older.unit)),
            identifier(str(older.record_key)),
        )
    was = "units._sdc_changed" if older.sequence.follows else "false"
    shared = [name for name in _known(policy) if folded(name) in map(folded, _known(older))]
    noted = "".join(f", units.{name} AS _sdc_was_{place}" for place, name in enumerate(shared))
    moved = "".join(f" OR now.{name} IS DISTINCT FROM before._sdc_was_{place}" for place, name in enumerate(shared))
    joined = " AND ".join(f"units.{name} IS NOT DISTINCT FROM cells.{name}" for name in same) or "true"
    shown = "".join(f"now.{name}, " for name in _known(policy))
    return f"""CREATE OR REPLACE TEMP TABLE {_RECORDS}_{depth} AS
        WITH cells AS (SELECT DISTINCT {"".join(f"{name}, " for name in same)}_sdc_cell FROM {cells}),
        before AS (
            SELECT units.{its_unit} AS _sdc_unit, units.{its_key} AS _sdc_key, cells._sdc_cell AS _sdc_before,
                {was} AS _sdc_was{noted}
            FROM {records} AS units JOIN cells ON {joined}
        )
        SELECT {shown}now.{unit} IS NOT NULL AS _sdc_here, before._sdc_before,
            (now.{unit} IS NULL OR before._sdc_before IS NULL OR before._sdc_was{moved}) AS _sdc_changed,
            coalesce(now.{unit}, before._sdc_unit) AS _sdc_unit, coalesce(now.{key}, before._sdc_key) AS _sdc_key
        FROM {identifier(policy.name)} AS now FULL JOIN before ON now.{unit} = before._sdc_unit"""


def _known(policy: Policy) -> list[str]:
    """The dimensions that are no secret, as SQL."""
    chosen = set(map(folded, policy.sequence.secrets))
    return [identifier(name) for name in policy.dimensions if folded(name) not in chosen]


def _table_of_cells(policy: Policy, into: str, hidden: Sequence[str], others: Sequence[str], records: str) -> str:
    """The statement that makes the table: a row for each cell and each combination of values of what is hidden."""
    table = identifier(policy.name)
    values = ", ".join(hidden)
    each = " CROSS JOIN ".join(f"(SELECT DISTINCT {name} FROM {table})" for name in hidden)
    shown = "".join(f"{name}, " for name in others)
    grouped = "GROUP BY ALL" if others else ""
    size = "greatest(coalesce(_sdc_published, 0), 1)"
    size = f"CASE WHEN _sdc_changed THEN 1 ELSE {size} END" if records else size
    order = ", ".join(f"{name} NULLS LAST" for name in others) or "1"
    if policy.sequence.is_exact:
        published = "count(*)"
        same = " AND ".join(f"places.{name} IS NOT DISTINCT FROM counted.{name}" for name in (*others, *hidden))
        every = ", ".join((*others, *hidden))
        counted = f"(SELECT {every}, count(*) AS _sdc_found FROM {table} GROUP BY ALL) AS counted"
        units, joined = ", coalesce(counted._sdc_found, 0) AS _sdc_units", f"LEFT JOIN {counted} ON {same}"
    else:
        key = "_sdc_key" if records else identifier(str(policy.record_key))
        published = f"sdc_count({key}, ptable := {literal(str(policy.ptable))})"
        units = joined = ""
    return f"""CREATE OR REPLACE TEMP TABLE {into} AS
        WITH values_of AS (
            SELECT {values}, row_number() OVER (ORDER BY {", ".join(f"{name} NULLS LAST" for name in hidden)}) - 1
                AS _sdc_value
            FROM {each}
        ), cells AS (
            SELECT {shown} {size} AS _sdc_size,
                row_number() OVER (ORDER BY {order}) - 1 AS _sdc_cell
            FROM (SELECT {shown} {published} AS _sdc_published FROM {records or table} {grouped})
        ), places AS (
            SELECT cells.*, values_of.*, _sdc_cell * (SELECT count(*) FROM values_of) + _sdc_value AS {PLACE}
            FROM cells CROSS JOIN values_of
        )
        SELECT places.*{units} FROM places {joined}"""
