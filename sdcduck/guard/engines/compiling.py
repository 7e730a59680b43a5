"""What `sdcduck compile` writes: a question as one text for an engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import duckdb
from sqlglot import exp

from sdcduck.errors import unknown
from sdcduck.guard.engines.cut import Source
from sdcduck.guard.engines.portable import DIALECTS, Interval, Stored, portable
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Unique
from sdcduck.guard.rewritten import Rewritten
from sdcduck.quoting import folded, identifier

_METHODS = ("cell_key", "threshold", "rounding")


def compiled(
    con: duckdb.DuckDBPyConnection,
    alone: threading.Lock,
    rewritten: Rewritten,
    engine: str,
    check_unique: Callable[[Unique], None],
) -> str:
    """What became of a question, in the words of an engine; no record is looked at.

    Args:
        alone: held while the connection is used, but by what is given here.
        check_unique: refuses a public table whose rows are not identified by what it is joined on.

    Raises:
        SDCError: an engine whose words are not known.
        Refused: it is not known to give the same numbers there.
    """
    if engine not in DIALECTS:
        raise unknown("dialect", engine, DIALECTS)
    if rewritten.sets or rewritten.releases or rewritten.preview is not None:
        raise Refused("SDC061", "limits on sequences, noise that is drawn, and previews")
    for unique in rewritten.unique:
        check_unique(unique)
    with alone:
        return _written(con, rewritten, engine)


def _written(con: duckdb.DuckDBPyConnection, rewritten: Rewritten, engine: str) -> str:
    sources = dict[str, Source]()
    for policy in rewritten.policies:
        if policy.method not in _METHODS:
            raise Refused(
                "SDC061", f"{policy.name}: answers by {policy.method}; these are known: {', '.join(_METHODS)}"
            )
        if policy.kinds or policy.sequence.holds or policy.owned or policy.privacy.holds:
            raise Refused("SDC061", f"{policy.name}: units of several kinds, limits on sequences, owned records")
        described = con.execute(f"DESCRIBE FROM main.{identifier(policy.name)}").fetchall()
        sources[folded(policy.name)] = Source(policy, {str(row[0]): str(row[1]) for row in described})
    if not sources:
        raise Refused("SDC061", "a question about no records")

    def types(table: exp.Table) -> dict[str, str]:
        return {str(row[0]): str(row[1]) for row in con.execute(f"DESCRIBE FROM {_named(table)}").fetchall()}

    def rows(table: exp.Table, names: Sequence[str]) -> list[tuple[object, ...]]:
        return con.execute(f"SELECT {', '.join(map(identifier, names))} FROM {_named(table)} ORDER BY ALL").fetchall()

    return portable(rewritten.sql, sources, engine, Stored(lambda name: _intervals(con, name), types, rows))


def _named(table: exp.Table) -> str:
    return ".".join(identifier(part.name) for part in table.parts)


def _intervals(con: duckdb.DuckDBPyConnection, name: str) -> tuple[int, Sequence[Interval]]:
    """The modulus of the keys and the intervals of a p-table for counts.

    Raises:
        Refused: its rows repeat, so that counts have no last one.
    """
    known = con.execute("SELECT modulus, repeat FROM sdc.ptables WHERE name = ? AND kind = 'counts'", [name]).fetchall()
    if not known or known[0][1] != 1:
        raise Refused("SDC061", "a p-table whose rows repeat")
    rows = con.execute(
        "SELECT i::BIGINT, v::BIGINT, lb, ub FROM sdc.ptable_intervals WHERE name = ? ORDER BY ALL", [name]
    ).fetchall()
    return int(known[0][0]), rows
