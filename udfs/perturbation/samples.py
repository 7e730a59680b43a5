"""Parts of a table by its record keys: of one on another engine, those that come here. A planner behind
``sql/perturbation_tables.sql``.
"""

from __future__ import annotations

from sdcduck.catalog.engines import Engine, duckdb_columns
from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import whole
from sdcduck.udfs.engine_cells import kept
from sdcduck.udfs.engine_counts import at_home, table_there
from sdcduck.udfs.seeds import need_seed_or_secret, stream_of
from sdcduck.udfs.source import Source, source

_PRIME = 99_999_989
"""The largest prime number of 8 digits: a product of two numbers below it fits into BIGINT on every engine."""
_MOST_ROWS = 10**7


def plan_sample(
    session: Session, text: str | None, parts: int | None, part: int | None, record_key: str | None, seed: int | None
) -> str:
    """``sdc_sample``: the records whose keys a hash function sends into one of several intervals."""
    relation = source(session.cursor(), text, "source", elsewhere=True)
    key = relation.column(record_key, "record_key")
    many = whole(parts, "parts", least=1, most=_PRIME)
    one = whole(part, "part", least=1, most=many)
    if "INT" not in relation.type_of(str(record_key)):
        raise SDCError(f"argument 'record_key' must name a column of whole numbers, see sdc_add_record_key: {key}")
    need_seed_or_secret(session, seed, "something is told of the record keys of a sample")
    chosen = _chosen(f"CAST({key} AS BIGINT)", many, one, stream_of(session.secret(), "sample", seed))
    there = table_there(session, relation, "source", "of which the engine gives a part")
    if there is not None:
        return _from_engine(session, relation, *there, key, chosen)
    lacking = literal(_lacking(key, relation))
    return f"SELECT * FROM {relation.sql} WHERE CASE WHEN {key} >= 0 THEN {chosen} ELSE error({lacking}) END"


def _chosen(key: str, parts: int, part: int, stream: int) -> str:
    """The condition for the records of a part, of which every two keys are as likely as any other two."""
    factor, shift = 1 + stream % (_PRIME - 1), stream // _PRIME % _PRIME
    hashed = f"(((({key} % {_PRIME}) * {factor}) + {shift}) % {_PRIME})"
    return f"{hashed} >= {_PRIME * (part - 1) // parts} AND {hashed} < {_PRIME * part // parts}"


def _lacking(key: str, relation: Source) -> str:
    return f"column {key} of {relation.described} is NULL or negative somewhere: a record without a key is in no part"


def _from_engine(session: Session, relation: Source, engine: Engine, table: str, key: str, chosen: str) -> str:
    """The records of a part, brought here.

    Raises:
        SDCError: the engine has other columns by now, records without a key, or too many that are chosen.
    """
    cursor, types = session.cursor(), duckdb_columns(engine.schema(table))
    if types != relation.columns:
        raise SDCError(f"argument 'source': the engine has other columns in '{table}' by now: connect anew")
    named = identifier(table)
    asked = ("count(*)", f"count(CASE WHEN {key} >= 0 THEN 1 END)", f"count(CASE WHEN {chosen} THEN 1 END)")
    counting = f"SELECT {', '.join(f'{one} AS c{place}' for place, one in enumerate(asked))} FROM {named}"
    [counts] = kept(cursor, engine, [(counting, [(name, "BIGINT") for name in ("rows", "keyed", "drawn")], [])])
    [(rows, keyed, drawn)] = cursor.execute(f"FROM {counts}").fetchall()
    if keyed < rows:
        raise SDCError(_lacking(key, relation))
    if drawn > _MOST_ROWS:
        raise SDCError(f"argument 'parts': at most {_MOST_ROWS:,} records come from an engine: take more parts")
    listed = ", ".join(f"{identifier(name)} AS c{place}" for place, name in enumerate(types))
    [found] = kept(cursor, engine, [(f"SELECT {listed} FROM {named} WHERE {chosen}", list(types.items()), [])])
    return f"SELECT * FROM {found} WHERE {at_home('source')}"


PLANNERS = planners(plan_sample)
