"""Two policies over the same records: what both tell together is what neither protects from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import duckdb

from sdcduck.catalog.database import current_database, first_row
from sdcduck.catalog.relations import Policy
from sdcduck.catalog.views import Read, read_by, share_files
from sdcduck.quoting import folded, identifier


@dataclass(frozen=True)
class Twice:
    """Records that are open under two policies.

    Attributes:
        other: the relation beside the one that was looked at.
        shared: what both read: a table, or a file.
        differs: what is not the same in both policies.
    """

    other: str
    shared: str
    differs: str


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
    reads = _Reads(con)
    for role in sorted(roles):
        found = open_in_role(con, policy, held(known, role), reads)
        if found is not None:
            return found
    return None


def open_in_role(
    con: duckdb.DuckDBPyConnection,
    policy: Policy,
    held_there: dict[str, Policy],
    reads: Callable[[str], Read] | None = None,
    *,
    records: bool = True,
) -> Twice | None:
    """The same among policies that hold for a role.

    Args:
        held_there: by folded name.
        reads: what a relation reads.
        records: whether record keys are compared, too: that reads all of them.
    """
    if held_there.get(folded(policy.name)) != policy:
        return None  # in this role another policy comes first
    reads = _Reads(con) if reads is None else reads
    others = [
        one for one in held_there.values() if one.label == "unit-level" and folded(one.name) != folded(policy.name)
    ]
    if not others or not _views(con).intersection(folded(one.name) for one in (policy, *others)):
        return None  # each is a table of its own
    here = current_database(con)
    public = {(here, "main", name) for name, one in held_there.items() if one.label == "public"}
    mine = reads(policy.name)
    for other in sorted(others, key=lambda one: folded(one.name)):
        theirs = reads(other.name)
        shared = [name for _, _, name in sorted((mine.tables & theirs.tables) - public)]
        if not shared and share_files(mine.files, theirs.files):
            shared = sorted(mine.files)
        if shared:
            differs = _policies_differ(policy, other)
            if differs is None and records:
                differs = _keys_differ(con, policy, other)
            if differs is not None:
                return Twice(other.name, shared[0], differs)
    return None


def _views(con: duckdb.DuckDBPyConnection) -> set[str]:
    return {
        folded(name) for (name,) in con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    }


class _Reads:
    """What relations read, looked up once each."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con, self._known = con, dict[str, Read]()

    def __call__(self, name: str) -> Read:
        if name not in self._known:
            self._known[name] = read_by(self._con, name)
        return self._known[name]


def _policies_differ(one: Policy, other: Policy) -> str | None:
    """What makes two policies answer the same question about the same records with two numbers; None: nothing."""
    if one.method != other.method:
        return f"method ('{one.method}' and '{other.method}')"
    if one.method == "suppression":
        return None if folded(one.publication or "") == folded(other.publication or "") else "publication"
    if one.method == "cell_key":
        for part, ours, theirs in (
            ("ptable", one.ptable, other.ptable),
            ("magnitude_ptable", one.magnitude_ptable, other.magnitude_ptable),
        ):
            if ours != theirs:
                return f"{part} ('{ours}' and '{theirs}')"
    if one.method == "rounding" and one.base != other.base:
        return f"base ({one.base} and {other.base})"
    if one.method == "threshold" and folded(one.unit or "") != folded(other.unit or ""):
        return f"unit ('{one.unit}' and '{other.unit}')"
    theirs = {folded(measure): ends for measure, ends in other.bounds}
    for measure, ends in one.bounds:
        if theirs.get(folded(measure), ends) != ends:
            return f"bounds of '{measure}'"
    return None


def _keys_differ(con: duckdb.DuckDBPyConnection, one: Policy, other: Policy) -> str | None:
    """What is another of the units: their record keys, or what they are; None: nothing."""
    if one.record_key is None or other.record_key is None:
        return None
    found = different_keys(con, one, other)
    if found is None:
        return None
    common, different = found
    if different:
        return f"record_key: {different} units have other keys there"
    named = [(folded(str(policy.unit)), folded(str(policy.record_key))) for policy in (one, other)]
    if common == 0 and named[0] != named[1]:  # units of another kind, or by other names
        return (
            f"unit or record_key ('{one.unit}' with '{one.record_key}', and '{other.unit}' with '{other.record_key}')"
        )
    return None


def different_keys(con: duckdb.DuckDBPyConnection, one: Policy, other: Policy) -> tuple[int, int] | None:
    """How many units are in two relations, and how many of them have another record key in the other; None: one of
    them, or its columns, were removed."""
    keys = " JOIN ".join(
        f"(SELECT {identifier(str(policy.unit))}::VARCHAR AS unit, "
        f"any_value({identifier(str(policy.record_key))})::HUGEINT AS {name} "
        f"FROM {identifier(policy.name)} GROUP BY ALL)"
        for policy, name in ((one, "a"), (other, "b"))
    )
    try:
        row = first_row(con, f"SELECT count(*), count(*) FILTER (WHERE a <> b) FROM {keys} USING (unit)")
    except (duckdb.CatalogException, duckdb.BinderException):
        return None
    assert row is not None
    return row[0], row[1]
