"""What `sdcduck compile` writes: a question as one text for an engine."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from sdcduck.errors import unknown
from sdcduck.guard.engines.cut import Source
from sdcduck.guard.engines.portable import DIALECTS, Interval, portable
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Rewritten
from sdcduck.quoting import folded, identifier

_METHODS = ("cell_key", "threshold", "rounding")


def compiled(con: duckdb.DuckDBPyConnection, rewritten: Rewritten, engine: str) -> str:
    """What became of a question, in the words of an engine; no record is looked at.

    Raises:
        SDCError: an engine whose words are not known.
        Refused: it is not known to give the same numbers there.
    """
    if engine not in DIALECTS:
        raise unknown("dialect", engine, DIALECTS)
    if rewritten.sets or rewritten.releases or rewritten.unique or rewritten.preview is not None:
        raise Refused("SDC061", "limits on sequences, noise that is drawn, joins, and previews")
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
    return portable(rewritten.sql, sources, engine, lambda name: _intervals(con, name))


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
