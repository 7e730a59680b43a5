"""Tables of another engine for functions that count records, which it does, or that take some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sdcduck.catalog.engines import Engine, duckdb_columns
from sdcduck.errors import SDCError
from sdcduck.functions.registry import Session
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.engine_cells import GROUPED, kept
from sdcduck.udfs.source import Source, read_elsewhere, source, stands_for

_TIMES = "_sdc_times"


def source_of_counts(
    session: Session, text: str | None, argument: str, columns: Mapping[str, Sequence[str | None] | None]
) -> Source:
    """Resolve a table argument of a function that asks how often values are together, and nothing else.

    Args:
        columns: all that it reads, by the argument that names them.

    Returns:
        The relation; of an engine those columns alone, one row for all records that have the same values.

    Raises:
        SDCError: as `source`; no such column, or one of a type that engines do not tell apart alike.
    """
    cursor = session.cursor()
    relation = source(cursor, text, argument, elsewhere=True)
    there = table_there(session, relation, argument, "whose values the engine counts")
    if there is None:
        return relation
    engine, table = there
    said = _said(table, argument)
    types = duckdb_columns(engine.schema(table))
    by = dict[str, str]()
    for asked, names in columns.items():
        for name in relation.named([*dict.fromkeys(one for one in names or () if one is not None)], asked):
            kind = types.get(name, "of another type by now")
            if not kind.startswith(GROUPED):
                raise SDCError(f"{said}; it does not tell values of '{name}' ({kind}) apart as DuckDB does")
            by[name] = kind
    shown = [*map(identifier, by), "count(*)"]
    listed = ", ".join(f"{item} AS c{place}" for place, item in enumerate(shown))
    grouped = f"GROUP BY {', '.join(map(identifier, by))} " if by else ""
    query = f"SELECT {listed} FROM {identifier(table)} {grouped}HAVING count(*) > 0"
    [rows] = kept(cursor, engine, [(query, [*by.items(), (_TIMES, "HUGEINT")], [])])
    return replace(relation, sql=f"(FROM {rows} WHERE {at_home(argument)})", columns=by, records=_TIMES)


def table_there(session: Session, relation: Source, argument: str, what: str) -> tuple[Engine, str] | None:
    """The engine that has the records of a table argument, and the name of the table; None: they are here.

    Args:
        what: of the message, what could be done with the table itself.

    Raises:
        SDCError: on an engine that this connection does not know, or read by a view or a query.
    """
    cursor = session.cursor()
    marked = read_elsewhere(cursor, relation, argument)
    if not marked:
        return None
    said = _said(marked[0], argument)
    if session.engine is None:
        raise SDCError(f"{said}: open this file with sdcduck.connect(.., records=..)")
    if not stands_for(cursor, relation, marked[0]):
        raise SDCError(
            f"{said}; name that table itself, {what}, or take a sample of its records into a table of this database "
            "by sdc_sample (docs/engines.md)"
        )
    return session.engine, marked[0]


def _said(table: str, argument: str) -> str:
    return f"argument '{argument}': the records of '{table}' are on another engine, and the table here is empty"


def at_home(argument: str) -> str:
    """A condition that whoever asks is where the name of such a table means it: cursors do not know of USE."""
    elsewhere = literal(f"argument '{argument}': a table that stands for one on another engine is in main: USE main")
    return f"CASE WHEN current_schema() = 'main' THEN true ELSE error({elsewhere}) END"
