"""The sequence of answers: what `sdc_protect` is told of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb
import pyarrow as pa

from sdcduck import catalog
from sdcduck.catalog import Policy, SequenceLimit
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.declared import planner
from sdcduck.functions.registry import Rows, Session
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import choice, wrong
from sdcduck.udfs.source import Source

_MODES = ("off", "precision", "atoms", "pairwise", "rank")
_METHOD_OF = {"precision": "cell_key", "atoms": "threshold", "pairwise": "threshold", "rank": "threshold"}
_QUERY = re.compile(r"\s*(?:SELECT|WITH|FROM)\b", re.IGNORECASE)
_LEAST_ERROR = 0.8
_FEWEST = 3
_MOST_CELLS = 100_000
_LEAST_VARIANCE = """SELECT min(v) FROM (
    SELECT sum(v * v * (ub - lb)) / sum(ub - lb) - (sum(v * (ub - lb)) / sum(ub - lb)) ** 2 AS v
    FROM sdc.ptable_intervals WHERE name = ? AND i > 0 GROUP BY i)"""
_OF_ONE_FORM = ("BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP", "TIME", "TINYINT", "SMALLINT", "INTEGER", "BIGINT",
                "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "DECIMAL", "ENUM", "UUID")  # fmt: skip


_RULE = "default of sequence"
"""The setting of a register whose policies limit what is told unless they say otherwise (`sdc_sequence_default`)."""


_MODE_FOR = {"cell_key": "precision", "threshold": "atoms"}
"""How what is told is limited under a method, where it is to be and the policy does not say how."""


def mode_of(cursor: duckdb.DuckDBPyConnection, mode: str | None, method: str, secrets: Sequence[str] | None) -> str:
    """How a policy limits what is told: as it says, as it must where it names secrets, or as its register wants it."""
    if mode is None and secrets and method in _MODE_FOR:
        return _MODE_FOR[method]
    if mode is not None or catalog.setting(cursor, _RULE) is None:
        return mode or "off"
    if method == "rounding":
        raise SDCError(
            "argument 'sequence': policies of this register limit what is told (sdc_sequence_default), and method := "
            "'rounding' cannot; say sequence := 'off'"
        )
    return _MODE_FOR.get(method, "off")


def read_sequence(
    mode: str | None, least_error: float | None, secrets: Sequence[str] | None, on_breach: str | None, policy: Policy
) -> SequenceLimit:
    """What a policy limits of the sequence of answers.

    Raises:
        SDCError: it is nothing that there is, or does not go with the rest of the policy.
    """
    mode = choice(mode, "sequence", _MODES)
    least = _LEAST_ERROR if least_error is None else least_error
    if not 0 < least < 1:
        raise wrong("least_error", "be a share above 0 and below 1", "0.8")
    told = choice(on_breach, "on_breach", ("refuse", "log"))
    if mode == "off":
        if secrets:
            raise SDCError("argument 'secrets' goes with sequence := 'precision', 'atoms' or 'pairwise'")
        return SequenceLimit()
    _check_method(mode, policy)
    if policy.kinds or not policy.one_row_per_unit:
        raise SDCError(f"argument 'sequence': '{mode}' is not available yet where a unit has several rows")
    if policy.population is not None:
        raise SDCError(f"argument 'sequence': '{mode}' does not go with 'population': other tables tell more of a unit")
    if mode == "precision" and not secrets:
        raise wrong("secrets", "name the dimensions that nobody should learn of a unit", "secrets := ['illness']")
    if mode != "precision":
        if least != _LEAST_ERROR:
            raise SDCError(
                "argument 'least_error' goes with sequence := 'precision': elsewhere 'min_units' is the limit"
            )
        if policy.min_units < 2:
            raise wrong("min_units", f"be at least 2 for sequence := '{mode}'", "10")
    known = {folded(name): name for name in policy.dimensions}
    named = []
    for name in secrets or ():
        secret = known.get(folded(name or ""))
        if secret is None:
            raise wrong("secrets", f"name some of the dimensions {', '.join(policy.dimensions)}", f"'{name}'")
        if secret in named:
            raise SDCError(f"argument 'secrets' has '{secret}' twice")
        named.append(secret)
    return SequenceLimit(mode, float(least), tuple(name for name in policy.dimensions if name in named), told)


def read_granted(cursor: duckdb.DuckDBPyConnection, granted: str | None, table: str, limit: SequenceLimit) -> str:
    """The query of what is published anyway; empty: nothing is. What it counts is looked at before the first question.

    Raises:
        SDCError: it is no query of the table alone, or its numbers have no noise.
    """
    if granted is None:
        return ""
    if limit.mode != "precision":
        raise SDCError("argument 'granted' goes with sequence := 'precision'")
    query = granted
    if not _QUERY.match(granted):
        stored = catalog.publication(cursor, granted)
        if stored.arguments is not None:
            raise SDCError(
                f"argument 'granted': '{granted}' is published with exact numbers; grant what the guard answers, which "
                "has noise: a query, or one that is stored by sdc_publication"
            )
        query = stored.query
    try:
        asked = {folded(name) for name in cursor.get_table_names(query)}
    except duckdb.Error as problem:
        raise SDCError(f"argument 'granted' is no query: {problem}") from None
    if asked != {folded(table)}:
        raise SDCError(f"argument 'granted' must ask about '{table}' alone")
    return query


def read_follows(
    cursor: duckdb.DuckDBPyConnection, follows: str | None, table: Source, policy: Policy, limit: SequenceLimit
) -> tuple[str, ...]:
    """The earlier releases of the same units, the last one first: what was told of them is counted.

    Raises:
        SDCError: what was told of that one says something else about a unit than what is told of this one.
    """
    if follows is None:
        return ()
    if limit.mode != "precision" or limit.granted:
        raise SDCError("argument 'follows' goes with sequence := 'precision', and not with 'granted'")
    others = {folded(one.name): one for one in catalog.policies(cursor) if folded(one.role) == folded(policy.role)}
    others = {name: one for name, one in others.items() if one.sequence.mode == "precision"}
    older = others.get(folded(follows))
    if older is None:
        raise unknown("policy with sequence := 'precision'", follows, [one.name for one in others.values()])
    chain = (older.name, *older.sequence.follows)
    if folded(policy.name) in map(folded, chain):
        raise SDCError(f"argument 'follows': '{follows}' follows '{policy.name}' itself")
    if older.sequence.followed_by and folded(older.sequence.followed_by) != folded(policy.name):
        raise SDCError(f"argument 'follows': '{older.sequence.followed_by}' follows '{follows}' already")
    if older.sequence.granted:
        raise SDCError(f"argument 'follows': '{follows}' has 'granted', which does not go with it")
    same = (list(map(folded, older.sequence.secrets)), older.ptable, older.min_units)
    if same != (list(map(folded, limit.secrets)), policy.ptable, policy.min_units):
        raise SDCError(f"argument 'follows': '{follows}' must have the same secrets, ptable and min_units")
    for name in chain:
        _check_units_of(cursor, table, policy, others[folded(name)], limit)
    return chain


def _check_units_of(
    cursor: duckdb.DuckDBPyConnection, table: Source, policy: Policy, older: Policy, limit: SequenceLimit
) -> None:
    """Refuse releases that say two things of one unit, or know other values of the secret."""
    its = {folded(name) for name in older.measures}
    alike = [*limit.secrets, *(name for name in policy.measures if folded(name) in its)]
    differ = [f"one.{identifier(name)} IS DISTINCT FROM other.{identifier(name)}" for name in alike]
    keys = f"one.{identifier(str(policy.record_key))} IS DISTINCT FROM other.{identifier(str(older.record_key))}"
    both = f"""{table.sql} AS one JOIN {identifier(older.name)} AS other
        ON one.{identifier(str(policy.unit))} = other.{identifier(str(older.unit))}"""
    row = catalog.first_row(
        cursor,
        f"SELECT count(*), count(*) FILTER ({keys}), count(*) FILTER ({' OR '.join(differ)}) FROM {both}",
    )
    assert row is not None
    if not row[0]:
        raise SDCError(f"argument 'follows': '{older.name}' has none of these units")
    if row[1]:
        raise SDCError(
            f"argument 'follows': {row[1]:,} units have another record key in '{older.name}'; make the keys of both by "
            "sdc_add_record_key with the same unit"
        )
    if row[2]:
        raise SDCError(
            f"argument 'follows': {row[2]:,} units have another value of {' or '.join(alike)} in '{older.name}': "
            "what was told of it is about something else; a new survey of the same people is a policy of its own"
        )
    for name in limit.secrets:
        here, there = (
            f"SELECT {identifier(name)} FROM {table.sql}",
            f"SELECT {identifier(name)} FROM {identifier(older.name)}",
        )
        other = f"SELECT count(*) FROM (({here} EXCEPT {there}) UNION ALL ({there} EXCEPT {here}))"
        if catalog.first_row(cursor, other) != (0,):
            raise SDCError(f"argument 'follows': '{name}' has other values in '{older.name}'")


def _check_method(mode: str, policy: Policy) -> None:
    """Refuse a way to limit noise where there is none, and the other way round."""
    if policy.method == _METHOD_OF[mode]:
        return
    ways = [way for way, method in _METHOD_OF.items() if method == policy.method]
    instead = f"; {' and '.join(map(repr, ways))} {'are' if len(ways) > 1 else 'is'}" if ways else ""
    raise SDCError(f"argument 'sequence': '{mode}' is not available for method := '{policy.method}'{instead}")


def check_sequence(cursor: duckdb.DuckDBPyConnection, table: Source, policy: Policy, limit: SequenceLimit) -> None:
    """Refuse records of which it could not be counted what was told.

    Raises:
        SDCError: the database is in no file; columns have equal values that look different; a value of the secret is
            so rare that it being there would tell of somebody.
    """
    if catalog.file_of(cursor) is None:
        raise SDCError("argument 'sequence': what was answered is kept beside the database, which is in no file")
    for name in policy.dimensions:
        if table.type_of(name).split("(")[0] not in _OF_ONE_FORM:
            raise SDCError(
                f"argument 'sequence': dimension '{name}' is {table.type_of(name)}: of it no cells can be made"
            )
    collated = "SELECT count(*) FROM duckdb_tables() WHERE contains(lower(sql), 'collate')"
    if catalog.first_row(cursor, f"SELECT ({collated}) > 0 OR current_setting('default_collation') <> ''") == (True,):
        raise SDCError("argument 'sequence' does not go with collations: texts that differ would be one")
    hidden = limit.secrets or policy.dimensions
    if limit.is_exact:
        _check_combinations(cursor, table, policy, hidden)
    else:
        _check_noise(cursor, table, policy, hidden)
    for name in hidden:
        _check_values(cursor, table, policy, limit, name)


def _check_noise(cursor: duckdb.DuckDBPyConnection, table: Source, policy: Policy, hidden: Sequence[str]) -> None:
    """Refuse noise of which nobody knows how much it hides, and more cells than can be looked at."""
    spread = catalog.first_row(cursor, _LEAST_VARIANCE, [policy.ptable])
    if spread is None or not spread[0] > 0:
        raise SDCError(f"argument 'sequence': the p-table '{policy.ptable}' has sizes without noise")
    _check_combinations(cursor, table, policy, hidden)


def _check_combinations(
    cursor: duckdb.DuckDBPyConnection, table: Source, policy: Policy, hidden: Sequence[str]
) -> None:
    """Refuse more cells than can be looked at: those there are of what is known, times all values of what is not."""
    others = ", ".join(identifier(name) for name in policy.dimensions if name not in hidden) or "1"
    values = [
        f"(SELECT count(*) FROM (SELECT DISTINCT {identifier(name)} FROM {table.sql}))::DOUBLE" for name in hidden
    ]
    known = f"(SELECT count(*) FROM (SELECT DISTINCT {others} FROM {table.sql}))::DOUBLE"
    cells = catalog.first_row(cursor, f"SELECT {' * '.join((known, *values))}")
    if cells is None or cells[0] > _MOST_CELLS:
        raise SDCError(
            f"argument 'sequence': the dimensions have more than {_MOST_CELLS:,} combinations: declare fewer, or name "
            "as 'secrets' those that nobody should learn"
        )


def _check_values(
    cursor: duckdb.DuckDBPyConnection, table: Source, policy: Policy, limit: SequenceLimit, name: str
) -> None:
    """Refuse a dimension of which a value being there tells of few, or a secret that is none."""
    fewest = policy.min_units if limit.is_exact else max(policy.min_units, _FEWEST)
    part = "secrets" if limit.secrets else "dimensions"
    values = f"SELECT count(*) AS n FROM {table.sql} GROUP BY {identifier(name)}"
    row = catalog.first_row(cursor, f"SELECT count(*), coalesce(min(n), 0) FROM ({values})")
    assert row is not None
    if row[0] < 2 and limit.secrets:
        raise SDCError(f"argument 'secrets': '{name}' has fewer than two values, and is no secret")
    if row[1] < fewest:
        raise SDCError(
            f"argument '{part}': a value of '{name}' has fewer than {fewest} units, and that it is there would tell of "
            "them: put rare values together"
        )


def plan_sequence_default(session: Session, holds: bool | None) -> Rows:
    """``sdc_sequence_default``: stores it."""
    if holds is None:
        raise wrong("holds", "be true or false", "true")
    cursor = session.cursor()
    if catalog.is_read_only(cursor):
        raise SDCError("what policies do by default is stored in the database, which is open for reading only")

    def store() -> pa.Table:
        if holds:
            catalog.set_setting(session.cursor(), _RULE, "on")
        else:
            session.cursor().execute("DELETE FROM sdc.settings WHERE name = ?", [_RULE])
        return pa.table({"holds": [holds]})

    return Rows(store)


PLANNERS = (planner(plan_sequence_default),)
