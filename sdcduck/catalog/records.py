"""What records have to be like to be protected, and what they are now."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import duckdb
import numpy as np

from sdcduck.catalog.database import first_row
from sdcduck.methods.perturbation.lookup import KEY_MODULUS
from sdcduck.quoting import identifier


@dataclass(frozen=True)
class PolicyFacts:
    """What a table has to be like to be protected.

    Attributes:
        rows: of the table.
        units: different ones.
        no_unit: rows without a unit.
        no_key: rows whose record key is NULL or out of range.
        several_keys: units with rows of different record keys.
    """

    rows: int
    units: int
    no_unit: int
    no_key: int
    several_keys: int


def policy_facts(con: duckdb.DuckDBPyConnection, table: str, unit: str, key: str | None) -> PolicyFacts:
    """Look at every record of a table (given as SQL)."""
    who, bad, ends, several = identifier(unit), "0", "", "0"
    if key is not None:
        record_key = identifier(key)
        bad = f"count(*) FILTER ({record_key} IS NULL OR {record_key} NOT BETWEEN 0 AND 99999999)"
        ends = f", min({record_key}) AS _sdc_low, max({record_key}) AS _sdc_high"
        several = "count(*) FILTER (_sdc_low <> _sdc_high)"
    # Units are brought together once, with nothing beside their keys: that is what takes time and memory. What needs no
    # units is counted in a pass of its own, which costs a tenth of it.
    row = first_row(
        con,
        f"SELECT rows, units, no_unit, no_key, several_keys FROM (SELECT count(*) AS rows, "
        f"count(*) FILTER ({who} IS NULL) AS no_unit, {bad} AS no_key FROM {table}), "
        f"(SELECT count(_sdc_unit) AS units, {several} AS several_keys "
        f"FROM (SELECT {who} AS _sdc_unit{ends} FROM {table} GROUP BY {who}))",
    )
    assert row is not None
    return PolicyFacts(*row)


def misses(con: duckdb.DuckDBPyConnection, table: str, columns: Iterable[str]) -> bool:
    """Whether a record of a table (given as SQL) is without a value in some of these columns."""
    missing = " OR ".join(f"{identifier(column)} IS NULL" for column in columns)
    return bool(missing) and first_row(con, f"SELECT 1 FROM {table} WHERE {missing} LIMIT 1") is not None


def keys_are_spread(con: duckdb.DuckDBPyConnection, table: str, unit: str, key: str, ptable: str | None) -> bool:
    """Whether the record keys of a table (given as SQL) may be random numbers of the scale of a p-table, or of ours."""
    from sdcduck.methods.perturbation.record_keys import PARTS, are_spread  # with SciPy, which most commands do without

    modulus = KEY_MODULUS
    if ptable is not None:
        row = first_row(con, "SELECT modulus FROM sdc.ptables WHERE name = ?", [ptable])
        modulus = modulus if row is None else int(row[0])
    parts = min(PARTS, modulus)
    counted = con.execute(
        f"SELECT key * {parts} // {modulus}, count(*), count(DISTINCT key) FROM ("
        f"SELECT any_value({identifier(key)})::BIGINT % {modulus} AS key FROM {table} GROUP BY {identifier(unit)}) "
        "GROUP BY ALL"
    ).fetchall()
    counts, different = np.zeros((2, parts), dtype=np.int64)
    for part, *numbers in counted:
        counts[part], different[part] = numbers
    return not counts.any() or are_spread(counts, int(different.sum()), modulus)


def measure_of_keys(
    con: duckdb.DuckDBPyConnection, table: str, unit: str, key: str, measures: Iterable[str], rows: int
) -> str | None:
    """A measure of which the record keys of a table (given as SQL) are made; None: there is none.

    Random keys are the same for units of one value by no chance worth mentioning, and correlate with it no
    more than a few times the inverse root of their number. Of large tables some of the units say as much.
    """
    some = f"hash({identifier(unit)}) % {rows // _ENOUGH_UNITS + 1} = 0"
    for measure in measures:
        value = f"CASE WHEN isfinite({identifier(measure)}::DOUBLE) THEN {identifier(measure)}::DOUBLE END"
        units = (
            f"SELECT any_value({identifier(key)})::BIGINT AS key, min({value}) AS value FROM {table} "
            f"WHERE {some} GROUP BY {identifier(unit)} HAVING abs(value) <= 1e100"
        )
        row = first_row(
            con,
            f"WITH units AS MATERIALIZED ({units}), several AS (SELECT count(DISTINCT key) = 1 AS same FROM units "
            "GROUP BY value HAVING count(*) > 1) SELECT (SELECT count(*) FILTER (same) FROM several), "
            "(SELECT count(*) FROM several), count(*), count(DISTINCT value), corr(key, value) FROM units",
        )
        assert row is not None
        same, ties, number, different, correlation = row
        # A few of one value and one key may be the same people under two identifiers.
        of_value = same >= max(_SURE_TIES, number / 50) and same > 0.9 * ties and different > _SURE_TIES
        alike = number > 1 and correlation is not None and abs(correlation) > _SURE_CORRELATION / number**0.5
        if of_value or alike:
            return measure
    return None


_ENOUGH_UNITS = 200_000
_SURE_TIES = 3
_SURE_CORRELATION = 6.5


def failing_columns(con: duckdb.DuckDBPyConnection, table: str, columns: Iterable[str]) -> list[str]:
    """The columns of a view (given as SQL) that fail for some of its rows: who is answered would find out which."""
    failing = []
    for column in columns:
        try:
            con.execute(f"SELECT max(hash({identifier(column)})) FROM {table}").fetchall()
        except (duckdb.ConversionException, duckdb.InvalidInputException, duckdb.OutOfRangeException):
            failing.append(column)
    return failing


def key_fingerprint(con: duckdb.DuckDBPyConnection, table: str, key: str) -> str:
    """A hash that nobody can make who does not have the record keys of a table (given as SQL)."""
    record_key = f"{identifier(key)}::HUGEINT"
    powers = ", ".join(f"sum({' * '.join([record_key] * power)})" for power in (1, 2, 3))
    return hashlib.sha256(repr(first_row(con, f"SELECT count(*), {powers} FROM {table}")).encode()).hexdigest()
