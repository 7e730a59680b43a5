"""The sequence of answers: what `sdc_protect` is told of it."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from sdcduck import catalog
from sdcduck.catalog import Policy, SequenceLimit
from sdcduck.errors import SDCError
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import choice, wrong
from sdcduck.udfs.source import Source

_MODES = ("off", "precision")
_LATER = ("pairwise", "atoms", "rank")
_FEWEST = 3
_MOST_CELLS = 50_000
_LEAST_VARIANCE = """SELECT min(v) FROM (
    SELECT sum(v * v * (ub - lb)) / sum(ub - lb) - (sum(v * (ub - lb)) / sum(ub - lb)) ** 2 AS v
    FROM sdc.ptable_intervals WHERE name = ? AND i > 0 GROUP BY i)"""
_OF_ONE_FORM = ("BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP", "TIME", "TINYINT", "SMALLINT", "INTEGER", "BIGINT",
                "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "DECIMAL", "ENUM", "UUID")  # fmt: skip


def read_sequence(
    mode: str | None, least_error: float | None, secrets: Sequence[str] | None, on_breach: str | None, policy: Policy
) -> SequenceLimit:
    """What a policy limits of the sequence of answers.

    Raises:
        SDCError: it is nothing that there is, or does not go with the rest of the policy.
    """
    if mode in _LATER:
        raise SDCError(f"argument 'sequence': '{mode}' is not available yet; 'precision' is, for counts under cell_key")
    mode = choice(mode, "sequence", _MODES)
    least = 0.8 if least_error is None else least_error
    if not 0 < least < 1:
        raise wrong("least_error", "be a share above 0 and below 1", "0.8")
    told = choice(on_breach, "on_breach", ("refuse", "log"))
    if mode == "off":
        if secrets:
            raise SDCError("argument 'secrets' goes with sequence := 'precision'")
        return SequenceLimit()
    if policy.method != "cell_key":
        raise SDCError(f"argument 'sequence': '{mode}' is not available yet for method := '{policy.method}'")
    if policy.kinds or not policy.one_row_per_unit:
        raise SDCError(f"argument 'sequence': '{mode}' is not available yet where a unit has several rows")
    if policy.population is not None:
        raise SDCError(f"argument 'sequence': '{mode}' does not go with 'population': other tables tell more of a unit")
    if not secrets:
        raise wrong("secrets", "name the dimension that nobody should learn of a unit", "secrets := ['illness']")
    if len(secrets) > 1:
        raise SDCError("argument 'secrets': more than one is not available yet")
    known = {folded(name): name for name in policy.dimensions}
    secret = known.get(folded(secrets[0]))
    if secret is None:
        raise wrong("secrets", f"name one of the dimensions {', '.join(policy.dimensions)}", f"'{secrets[0]}'")
    return SequenceLimit(mode, float(least), (secret,), told)


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
    spread = catalog.first_row(cursor, _LEAST_VARIANCE, [policy.ptable])
    if spread is None or not spread[0] > 0:
        raise SDCError(f"argument 'sequence': the p-table '{policy.ptable}' has sizes without noise")
    every = ", ".join(map(identifier, policy.dimensions))
    cells = catalog.first_row(cursor, f"SELECT count(*) FROM (SELECT DISTINCT {every} FROM {table.sql})")
    if cells is None or cells[0] > _MOST_CELLS:
        raise SDCError(f"argument 'sequence': the dimensions have more than {_MOST_CELLS} combinations: declare fewer")
    secret = identifier(limit.secrets[0])
    fewest = max(policy.min_units, _FEWEST)
    values = f"SELECT count(*) AS n FROM {table.sql} GROUP BY {secret}"
    row = catalog.first_row(cursor, f"SELECT count(*), coalesce(min(n), 0) FROM ({values})")
    assert row is not None
    if row[0] < 2:
        raise SDCError(f"argument 'secrets': '{limit.secrets[0]}' has fewer than two values, and is no secret")
    if row[1] < fewest:
        raise SDCError(
            f"argument 'secrets': a value of '{limit.secrets[0]}' has fewer than {fewest} units, and that it is there "
            "would tell of them: put rare values together"
        )
