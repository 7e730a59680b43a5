"""Time zones: names that DuckDB knows. Others raise an error that TRY does not catch, for the rows that ask for it."""

from __future__ import annotations

import duckdb
from sqlglot import exp

from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

_ZONES: set[str] = set()


def check_zones(draft: Draft) -> None:
    """Refuse time zones that are no constants, or that DuckDB does not know.

    >>> after(check_zones, "SELECT area AT TIME ZONE 'Europe/Nowhere' FROM regions")
    refused: SDC014: an argument that a function is not given here (a time zone that DuckDB does not know: write
    'UTC', 'Europe/Berlin', ..). Write zones, parts of a time, widths, lengths and patterns as constants; cast to DATE
    or TIMESTAMP.
    """
    for node in draft.tree.find_all(exp.AtTimeZone, exp.Anonymous):
        zone = node.args.get("zone")
        if isinstance(node, exp.Anonymous):
            if folded(node.name) != "timezone":
                continue
            zone = node.expressions[0] if len(node.expressions) == 2 else None
        if not isinstance(zone, exp.Literal) or not zone.is_string or folded(zone.this) not in _zones(draft.con):
            raise Refused("SDC014", "a time zone that DuckDB does not know: write 'UTC', 'Europe/Berlin', ..")


def _zones(con: duckdb.DuckDBPyConnection) -> set[str]:
    """The names of all time zones, folded."""
    if not _ZONES:
        _ZONES.update(folded(name) for (name,) in con.execute("SELECT name FROM pg_timezone_names()").fetchall())
    return _ZONES
