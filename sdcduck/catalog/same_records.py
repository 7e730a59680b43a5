"""Two policies over the same records: what both tell together is what neither protects from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import duckdb

from sdcduck.catalog.copies import copied
from sdcduck.catalog.database import current_database, first_row
from sdcduck.catalog.lineage import stored_column
from sdcduck.catalog.relations import Kind, Policy
from sdcduck.catalog.views import READ_NOTHING_ELSE, Read, Reads, share_files
from sdcduck.quoting import folded, identifier

Table = tuple[str, str, str]
"""Database, schema and name."""


@dataclass(frozen=True)
class Twice:
    """Records that are open under two policies.

    Attributes:
        other: the relation beside the one that was looked at.
        shared: what both read: a table, a file or a function; of copies, a column that tells that they are.
        differs: what is not the same in both policies.
        is_copy: whether they read nothing together, and have the same records all the same.
    """

    other: str
    shared: str
    differs: str
    is_copy: bool = False


def held(stored: Sequence[Policy], role: str) -> dict[str, Policy]:
    """The policies that hold for a role, by folded name: those of the role come before those for everybody."""
    return {folded(one.name): one for of in ("", folded(role)) for one in stored if folded(one.role) == of}


def open_twice(con: duckdb.DuckDBPyConnection, policy: Policy, stored: Sequence[Policy]) -> Twice | None:
    """The other policy over records of this one that somebody sees beside it, and that has other noise; None: none has.

    Args:
        stored: all policies; one of the same name and role is taken to be replaced.
    """
    place = (folded(policy.name), folded(policy.role))
    known = [one for one in stored if (folded(one.name), folded(one.role)) != place] + [policy]
    roles = {policy.role} if policy.role else {"", *(one.role for one in known)}
    reads = Reads(con)
    for role in sorted(roles):
        found = open_in_role(con, policy, held(known, role), reads, copies=True)
        if found is not None:
            return found
    return None


def open_in_role(
    con: duckdb.DuckDBPyConnection,
    policy: Policy,
    held_there: dict[str, Policy],
    reads: Callable[[str], Read] | None = None,
    *,
    copies: bool = False,
) -> Twice | None:
    """The same among policies that hold for a role.

    Args:
        held_there: by folded name.
        reads: what a relation reads.
        copies: whether to look for copies, too, which takes looking at all records.
    """
    if held_there.get(folded(policy.name)) != policy:
        return None  # in this role another policy comes first
    reads = Reads(con) if reads is None else reads
    here = folded(current_database(con))
    public = {(here, "main", name) for name, one in held_there.items() if one.label == "public"}
    for name, other in sorted(held_there.items()):
        if other.label != "unit-level" or name == folded(policy.name):
            continue
        tables, rest = _shared(reads(policy.name), reads(other.name), public)
        if not tables and not rest:
            twice = _open_as_copy(con, policy, other) if copies else None
            if twice is not None:
                return twice
            continue
        differs = _policies_differ(policy, other) or _units_differ(con, policy, other, tables)
        differs = differs or _measures_differ(con, policy, other)
        if differs is not None:
            return Twice(other.name, [*(name for _, _, name in tables), *rest][0], differs)
    return None


def _open_as_copy(con: duckdb.DuckDBPyConnection, one: Policy, other: Policy) -> Twice | None:
    """The other policy, where it is of a copy of the same records, and makes another noise in the same way.

    What is told of a copy is in no ledger of the table that it was made of, whatever the other policy is.
    """
    for mine, its in product(_kinds(one), _kinds(other)):
        differs = _counted(one, other) or _noise_differs(con, one, mine, other, its)
        column = None if differs is None else copied(con, one, mine, other, its)
        if differs is not None and column is not None:
            return Twice(other.name, column, differs, is_copy=True)
    return None


def _noise_differs(con: duckdb.DuckDBPyConnection, one: Policy, mine: Kind, other: Policy, its: Kind) -> str | None:
    """What makes the noise of one method another one in a copy; None: nothing."""
    if one.method != other.method or one.method not in ("cell_key", "rounding"):
        return None
    if (one.ptable, one.magnitude_ptable) != (other.ptable, other.magnitude_ptable) and one.method == "cell_key":
        return "p-tables"
    if one.base != other.base and one.method == "rounding":
        return f"base ({one.base} and {other.base})"
    units = _compared(con, (one.name, mine), (other.name, its))
    if units is None or units.other_keys <= units.common / 2:
        return None
    return f"record_key: {units.other_keys} units have other keys there"


def _counted(one: Policy, other: Policy) -> str | None:
    """What one of two policies counts, of what is told under it, and not of what is told under the other one."""
    if (one.sequence.holds or other.sequence.holds) and not (_follows(one, other) or _follows(other, one)):
        return "sequence: one policy counts what its own answers tell"
    if one.privacy.holds or other.privacy.holds:
        return "method := 'dp': a policy counts what its own answers cost"
    return None


def _follows(one: Policy, other: Policy) -> bool:
    """Whether a policy counts what was told under another one, of an earlier release of its records."""
    return folded(other.name) in map(folded, one.sequence.follows) and one.role == other.role


def _shared(mine: Read, theirs: Read, public: set[Table]) -> tuple[list[Table], list[str]]:
    """The tables that two relations read and that are not public, and what else they may both have records from."""
    ours, others = (
        {(folded(database), folded(schema), folded(name)) for database, schema, name in read.tables}
        for read in (mine, theirs)
    )
    rest = sorted(mine.files) if share_files(mine.files, theirs.files) else []
    # Nobody knows what another function reads, such as one of another database.
    rest += sorted((mine.functions & theirs.functions) - READ_NOTHING_ELSE)
    return sorted((ours & others) - public), rest


def _policies_differ(one: Policy, other: Policy) -> str | None:
    """What makes two policies answer the same question about the same records with two numbers; None: nothing."""
    counted = _counted(one, other)
    if counted is not None:
        return counted
    if one.method != other.method:
        return f"method ('{one.method}' and '{other.method}')"
    if one.method == "suppression":
        same = folded(one.publication or "") == folded(other.publication or "")
        return None if same else f"publication ('{one.publication}' and '{other.publication}')"
    if one.method == "cell_key":
        for part, ours, theirs in (
            ("ptable", one.ptable, other.ptable),
            ("magnitude_ptable", one.magnitude_ptable, other.magnitude_ptable),
        ):
            if ours != theirs:
                return f"{part} ('{ours}' and '{theirs}')"
    if one.method == "rounding" and one.base != other.base:
        return f"base ({one.base} and {other.base})"
    least = [tuple(kind.min_units for kind in _kinds(policy)) for policy in (one, other)]
    if len(least[0]) == len(least[1]) and least[0] != least[1]:  # the smaller one would be that of both
        shown = [" and ".join(map(str, of)) for of in least]
        return f"min_units ({shown[0]}, and {shown[1]} there)"
    theirs_of = {folded(measure): ends for measure, ends in other.bounds}
    for measure, ends in one.bounds:
        if theirs_of.get(folded(measure), ends) != ends:
            return f"bounds of '{measure}'"
    return None


def _kinds(policy: Policy) -> list[Kind]:
    """The kinds of units, in the order of their names."""
    own = policy.kinds or (Kind(str(policy.unit), policy.record_key, policy.min_units),)
    return sorted(own, key=lambda kind: folded(kind.unit))


def _units_differ(con: duckdb.DuckDBPyConnection, one: Policy, other: Policy, shared: Sequence[Table]) -> str | None:
    """What is another of the units: how many kinds there are, what they are, or their record keys; None: nothing."""
    if one.method == "suppression":  # one publication answers both
        return None
    ours, theirs = _kinds(one), _kinds(other)
    if len(ours) != len(theirs):
        named = [", ".join(kind.unit for kind in kinds) for kinds in (ours, theirs)]
        return f"units ('{named[0]}' and '{named[1]}')"
    for mine, its in zip(ours, theirs, strict=True):
        same_names = (folded(mine.unit), folded(mine.record_key or "")) == (
            folded(its.unit),
            folded(its.record_key or ""),
        )
        different = f"unit ('{mine.unit}' and '{its.unit}')"
        if mine.record_key is not None:
            different = (
                f"unit or record_key ('{mine.unit}' with '{mine.record_key}', '{its.unit}' with '{its.record_key}')"
            )
        if mine.record_key is None and not same_names:
            return different
        stored = [stored_column(con, name, kind.unit) for name, kind in ((one.name, mine), (other.name, its))]
        if stored[0] and stored[1] and stored[0][0] == stored[1][0] and stored[0] != stored[1]:
            return f"unit ('{stored[0][1]}' and '{stored[1][1]}' of '{stored[0][0]}')"
        found = _compared(con, (one.name, mine), (other.name, its))
        if found is None:
            continue
        if found.other_keys:
            return f"record_key: {found.other_keys} units have other keys there"
        if found.is_apart and not (same_names and _are_of(con, mine, (one.name, other.name), shared)):
            return different
    return None


@dataclass(frozen=True)
class _Compared:
    """Units of two relations.

    Attributes:
        common: how many units are in both.
        other_keys: how many of them have different record keys.
        is_apart: whether there are units in both, and none is in the other.
    """

    common: int
    other_keys: int
    is_apart: bool


def _compared(con: duckdb.DuckDBPyConnection, one: tuple[str, Kind], other: tuple[str, Kind]) -> _Compared | None:
    """How the units of two relations go together; None: one of them, or its columns, were removed."""
    joined = " FULL JOIN ".join(
        f"({_units(kind, identifier(name))}) AS {alias}" for (name, kind), alias in ((one, "a"), (other, "b"))
    )
    both = "a.unit IS NOT NULL AND b.unit IS NOT NULL"
    try:
        row = first_row(
            con,
            f"SELECT count(*) FILTER ({both}), count(*) FILTER ({both} AND a.key IS DISTINCT FROM b.key), "
            f"count(a.unit), count(b.unit) FROM {joined} ON a.unit = b.unit",
        )
    except (duckdb.CatalogException, duckdb.BinderException):
        return None
    assert row is not None
    common, different, ours, theirs = row
    return _Compared(common, different, common == 0 < min(ours, theirs))


def _units(kind: Kind, table: str) -> str:
    """The units of a relation with their record keys."""
    key = "NULL" if kind.record_key is None else f"any_value({identifier(kind.record_key)})"
    return f"SELECT {identifier(kind.unit)}::VARCHAR AS unit, {key}::HUGEINT AS key FROM {table} GROUP BY 1"


def _are_of(con: duckdb.DuckDBPyConnection, kind: Kind, names: Sequence[str], shared: Sequence[Table]) -> bool:
    """Whether all units of two relations are those of one table that both read, with the keys that they have there.

    So it is of women and men: none is in both views, and the noise of both is that of the people.
    """
    for table in shared:
        known = _units(kind, ".".join(map(identifier, table)))
        try:
            if not any(first_row(con, f"{_units(kind, identifier(name))} EXCEPT {known} LIMIT 1") for name in names):
                return True
        except (duckdb.CatalogException, duckdb.BinderException):
            continue  # they have other names there
    return False


def _measures_differ(con: duckdb.DuckDBPyConnection, one: Policy, other: Policy) -> str | None:
    """A measure with another name in the other policy: its noise is made of its name; None: there is none.

    So is one that is a multiple of it, or that with something added.
    """
    if one.method != "cell_key":
        return None
    for mine, its in _renamed(one, other):
        per_unit = [
            f"(SELECT {identifier(str(policy.unit))}::VARCHAR AS unit, count(*) AS n, "
            f"sum({identifier(measure)})::DOUBLE AS value FROM {identifier(policy.name)} GROUP BY 1)"
            for policy, measure in ((one, mine), (other, its))
        ]
        try:  # of constants it is NaN, which is beyond any end
            row = first_row(
                con,
                "SELECT count(*) >= 5 AND abs(corr(a.value, b.value)) BETWEEN 1 - 1e-12 AND 1.1 "
                f"FROM {per_unit[0]} a JOIN {per_unit[1]} b USING (unit, n) "
                "WHERE isfinite(a.value) AND isfinite(b.value)",
            )
        except (duckdb.CatalogException, duckdb.BinderException, duckdb.OutOfRangeException):
            continue
        if row is not None and row[0]:
            return f"measures: '{mine}' follows from what is called '{its}' there, and a measure keeps its name"
    return None


def _renamed(one: Policy, other: Policy) -> Iterator[tuple[str, str]]:
    """Pairs of measures that may be one, with two names."""
    here, there = (set(map(folded, policy.measures)) for policy in (one, other))
    for mine, its in product(one.measures, other.measures):
        if folded(mine) != folded(its) and (folded(mine) not in there or folded(its) not in here):
            yield mine, its


def different_keys(con: duckdb.DuckDBPyConnection, one: Policy, other: Policy) -> int:
    """How many units are in two relations with different record keys; 0 where one of them, or its columns, were
    removed."""
    found = _compared(con, (one.name, _kinds(one)[0]), (other.name, _kinds(other)[0]))
    return 0 if found is None else found.other_keys
