"""Tables of another engine for functions that count records: it says how many have the same values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sdcduck.catalog.engines import duckdb_columns
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
    marked = read_elsewhere(cursor, relation, argument)
    if not marked:
        return relation
    said = f"argument '{argument}': the records of '{marked[0]}' are on another engine, and the table here is empty"
    if session.engine is None:
        raise SDCError(f"{said}: open this file with sdcduck.connect(.., records=..)")
    if not stands_for(cursor, relation, marked[0]):
        raise SDCError(
            f"{said}; name that table itself, whose values the engine counts, or take a sample of its records into a "
            "table of this database (docs/engines.md)"
        )
    types = duckdb_columns(session.engine.schema(marked[0]))
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
    query = f"SELECT {listed} FROM {identifier(marked[0])} {grouped}HAVING count(*) > 0"
    [rows] = kept(cursor, session.engine, [(query, [*by.items(), (_TIMES, "HUGEINT")], [])])
    # Whoever asks may have said USE, of which cursors know nothing.
    elsewhere = literal(f"argument '{argument}': a table that stands for one on another engine is in main: USE main")
    at_home = f"CASE WHEN current_schema() = 'main' THEN true ELSE error({elsewhere}) END"
    return replace(relation, sql=f"(FROM {rows} WHERE {at_home})", columns=by, records=_TIMES)
