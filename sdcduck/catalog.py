"""What sdcduck stores in the custodian's database: the schema ``sdc``.

``sdc.settings``          name, value: the version that wrote the file, and the secret if the custodian stored it
``sdc.ptables``           one row a perturbation table
``sdc.policies``          one row a relation and role that analysts may ask about
``sdc.users``             one row a user of the gateway, with what checks the password
``sdc.publications``      one row a publication: its SELECT, and how it was suppressed; its tables are
                          ``sdc.<name>_cells`` (as published) and ``sdc.<name>_stencil`` (inner cells, confidential)
``sdc.synth_models``      one row a model of synthetic records; it holds original values, and is confidential
``sdc.dp_releases``       one row a differentially private release and table that it reads: what it cost
``sdc.dp_budgets``        one row a table: what its differentially private releases may cost together
``sdc.outputs``           one row an output that was checked: what came of it, who asked, who decided, when and why
``sdc.ptable_intervals``  its intervals, with integer bounds on the scale of the keys: what a join reads

Beside these tables every p-table is written into macros that map its name to constants
(`sdcduck.methods.perturbation.lookup`), so that a protected query joins nothing. Tables and macros change in one
transaction. Only pure SQL is stored: the file opens in a plain DuckDB shell, 1.5 or later.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import secrets
import string
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError, unknown
from sdcduck.methods.perturbation.intervals import Intervals
from sdcduck.methods.perturbation.lookup import KEY_MODULUS, Lookup, encode

BUILT_IN = ("default", "default_magnitude")
"""P-tables that come with every installation."""

TABLES_SQL = """
CREATE SCHEMA IF NOT EXISTS sdc;
CREATE TABLE IF NOT EXISTS sdc.settings (name VARCHAR NOT NULL, value VARCHAR NOT NULL);
CREATE TABLE IF NOT EXISTS sdc.ptables (
    name VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    modulus BIGINT NOT NULL,
    step INTEGER NOT NULL,
    repeat INTEGER NOT NULL,
    origin VARCHAR NOT NULL
);
CREATE TABLE IF NOT EXISTS sdc.ptable_intervals (
    name VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    i DOUBLE NOT NULL,
    v DOUBLE NOT NULL,
    lb BIGINT NOT NULL,
    ub BIGINT NOT NULL
);
"""


@dataclass(frozen=True)
class StoredPTable(Intervals):
    """A p-table as the catalog holds it, whatever format it came from.

    Attributes:
        name: under which `sdc_count` and `sdc_sum` find it.
        origin: what it was made from, in words.
    """

    name: str
    origin: str

    def lookup(self) -> Lookup:
        """The table in the form that the macros read."""
        try:
            return encode(
                self.kind, self.i, self.v, self.ub, self.type == "odd",
                modulus=self.modulus, step=self.step, repeat=self.repeat,
            )  # fmt: skip
        except ValueError as problem:
            raise SDCError(f"p-table '{self.name}': {problem}") from None

    def arrow(self) -> pa.Table:
        """Its rows of ``sdc.ptable_intervals``."""
        return pa.table(
            {
                "name": pa.array([self.name] * len(self.i), pa.string()),
                "type": pa.array(self.type.tolist(), pa.string()),
                "i": self.i,
                "v": self.v,
                "lb": self.lb,
                "ub": self.ub,
            }
        )


def literal(text: str) -> str:
    """A SQL string literal.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    '''A quoted SQL identifier.

    >>> print(identifier('group "a"'))
    "group ""a"""
    '''
    return '"' + name.replace('"', '""') + '"'


_TO_LOWER_CASE = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def folded(name: str) -> str:
    """A name as DuckDB compares it: two names are one if they differ in the case of ASCII letters only.

    Python's ``lower`` takes more letters for one: K and the Kelvin sign, both k.

    >>> folded("KUNDEN"), folded("ÄMTER") == folded("ämter"), folded("\u212aunden") == folded("kunden")
    ('kunden', False, False)
    """
    return name.lower() if name.isascii() else name.translate(_TO_LOWER_CASE)


def folded_sql(expression: str) -> str:
    """The SQL of a name as `folded` has it: DuckDB's own ``lower`` is that of all Unicode."""
    return f"translate({expression}, '{string.ascii_uppercase}', '{string.ascii_lowercase}')"


def first_row(con: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()) -> tuple[Any, ...] | None:
    """The first row of a query, or None; the connection is free again afterwards (`fetchone` leaves it busy)."""
    rows = con.execute(sql, list(parameters)).fetchall()
    return rows[0] if rows else None


def current_database(con: duckdb.DuckDBPyConnection) -> str:
    """The name of the database that a connection works in."""
    row = first_row(con, "SELECT current_database()")
    assert row is not None
    return str(row[0])


def is_read_only(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether the database is open for reading only."""
    row = first_row(con, "SELECT readonly FROM duckdb_databases() WHERE database_name = current_database()")
    return row is not None and bool(row[0])


def ptable_macros(tables: Iterable[tuple[str, Lookup]], *, create: str = "CREATE OR REPLACE MACRO") -> list[str]:
    """The statements that give the macros the p-tables of a database, as constants.

    DuckDB plans each part of a formula anew wherever a macro puts it, for about 45 microseconds each, and a p-table's
    constants stand in many places: so they are texts of maps, two or three parts to the planner however many p-tables
    there are, or one where all p-tables have the same. Only the guides, long texts, are branches. What is unknown, or
    of the other kind, is NULL, but for what all have.
    """
    lookups = list(tables)

    def dispatch(macro: str, value: Callable[[Lookup], str], sql_type: str, kind: str) -> str:
        cases = "".join(
            f"        WHEN {literal(name)} THEN {value(lookup)}\n" for name, lookup in lookups if lookup.kind == kind
        )
        # A number in the place of a name is unknown; DuckDB would want to make numbers of the names.
        return f"{create} {macro}(p) AS\n    (CASE p::VARCHAR\n{cases}        ELSE NULL\n    END)::{sql_type}"

    def mapped(macro: str, value: Callable[[Lookup], str], sql_type: str, kind: str | None = None) -> str:
        entries = (f"{_map_key(name)}={value(one)}" for name, one in lookups if kind in (None, one.kind))
        text = literal("{" + ", ".join(entries) + "}")
        return f"{create} {macro}(p) AS ({text}::MAP(VARCHAR, {sql_type}))[p::VARCHAR]"

    def constant(name: str, value: Callable[[Lookup], str], sql_type: str) -> str:
        macro, values = f"_sdc_ptable_{name}", {value(one) for _, one in lookups}
        if len(values) != 1 or sql_type == "DOUBLE":  # a number with a point would be a DECIMAL
            return mapped(macro, value, sql_type)
        same = values.pop()
        return f"{create} {macro}(p) AS " + (same if sql_type == "BIGINT" else f"({literal(same)}::{sql_type})")

    def number(name: str, sql_type: str) -> str:
        return constant(name, lambda one: repr(getattr(one, name)), sql_type)

    repeats = any(one.repeat > 1 for _, one in lookups)
    parity = any(one.odd_first > 0 for _, one in lookups)
    return [
        *(number(name, sql_type) for name, sql_type in _LAYOUT_NUMBERS.items()),
        *(
            constant(name, functools.partial(scales_by_digits, constant=place), "BIGINT[]")
            for place, name in enumerate(("divisors", "multipliers", "quotients", "widths"))
        ),
        f"{create} _sdc_ptable_row(p, n) AS " + (_ROW_WITH_REPEATS if repeats else _ROW),
        f"{create} _sdc_ptable_is_odd(p, n) AS " + (_IS_ODD if parity else "false"),
        mapped("_sdc_ptable_rows", lambda one: _bracketed(one.rows), "DOUBLE[]"),
        mapped("_sdc_ptable_odd_rows", lambda one: _bracketed(one.odd_rows), "DOUBLE[]"),
        mapped("_sdc_ptable_rungs", lambda one: _rungs_text(one.rungs()), "DOUBLE[][]", "magnitudes"),
        mapped("_sdc_ptable_odd_rungs", lambda one: _rungs_text(one.odd_rungs()), "DOUBLE[][]", "magnitudes"),
        f"{create} _sdc_ptable_rung_below(p, is_odd, a) AS " + (_RUNG_BELOW_OF_PARITY if parity else _RUNG_BELOW),
        mapped("_sdc_ptable_top", lambda one: repr(one.rows[-1]), "DOUBLE", "magnitudes"),
        mapped("_sdc_ptable_kind", lambda one: one.kind, "VARCHAR"),
        f"{create} _sdc_ptable_names() AS {literal(', '.join(name for name, _ in lookups))}",
        dispatch("_sdc_ptable_count_guide", lambda one: literal(one.guide), "VARCHAR", "counts"),
        dispatch("_sdc_ptable_magnitude_guide", lambda one: literal(one.guide), "VARCHAR", "magnitudes"),
        dispatch("_sdc_ptable_strips", _strips_text, "VARCHAR[]", "magnitudes"),
        mapped("_sdc_ptable_count_intervals", _intervals_text, "BIGINT[][]", "counts"),
        mapped("_sdc_ptable_magnitude_intervals", _intervals_text, "BIGINT[][]", "magnitudes"),
    ]


_LAYOUT_NUMBERS = {
    "last": "BIGINT",
    "first_repeated": "BIGINT",
    "repeat": "BIGINT",
    "modulus": "BIGINT",
    "shift": "BIGINT",
    "buckets": "BIGINT",
    "step": "BIGINT",
    "odd_first": "BIGINT",
    "last_variance": "DOUBLE",
    "most": "BIGINT",
}
"""The numbers of a `Lookup` that have a macro of their own, with their SQL types."""

# The position of the row that serves a count n: beyond the last row that one again, or the last few in turn.
_ROW = "least(n, _sdc_ptable_last(p))"
_ROW_WITH_REPEATS = (
    "least(n, _sdc_ptable_first_repeated(p) + (n - _sdc_ptable_first_repeated(p)) % _sdc_ptable_repeat(p))"
)

# Whether a cell of n contributors is served by the rows for odd numbers; and the last rung whose ratio is not above a.
_IS_ODD = "(_sdc_ptable_odd_first(p) > 0 AND n % 2 = 1)"
_RUNG_BELOW = "list_filter(_sdc_ptable_rungs(p), lambda each_rung: each_rung[1] <= a)[-1]"
_RUNG_BELOW_OF_PARITY = (
    "list_filter(CASE WHEN is_odd THEN _sdc_ptable_odd_rungs(p) ELSE _sdc_ptable_rungs(p) END, "
    "lambda each_rung: each_rung[1] <= a)[-1]"
)


def _map_key(name: str) -> str:
    """A name as a key in the text of a map."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def scales_by_digits(lookup: Lookup, constant: int) -> str:
    """For record keys of 1, 2, .., 18 digits a constant that scales key sums.

    Keys of 8 digits meet tables of 8 digits; longer keys are cut and shorter ones padded, which is what comparing key /
    10^digits with the table's bounds means. Keys of the ONS form are taken as they are.

    Args:
        constant: 0 for the divisor whose remainder is the cell key, 1 for what that is multiplied by and 2 for what it
            is then divided by to be on the scale of the p-table, 3 for what instead makes it a bucket of the guide.
    """
    scales = [
        (10**digits, 10 ** max(8 - digits, 0), 10 ** max(digits - 8, 0))
        if lookup.modulus == KEY_MODULUS
        else (lookup.modulus, 1, 1)
        for digits in range(1, 19)
    ]
    return str([(*scale, scale[2] << lookup.shift)[constant] for scale in scales])


def _bracketed(values: Iterable[float | None]) -> str:
    return f"[{', '.join('NULL' if value is None else format(value, '.17g') for value in values)}]"


def _rungs_text(rungs: Iterable[tuple[float | None, ...]]) -> str:
    return f"[{', '.join(map(_bracketed, rungs))}]"


def _intervals_text(lookup: Lookup) -> str:
    return f"[{', '.join(str(row.tolist()) for row in lookup.intervals)}]"


def _strips_text(lookup: Lookup) -> str:
    return f"'[{', '.join(lookup.strips())}]'"


def stored_ptables(con: duckdb.DuckDBPyConnection) -> list[StoredPTable]:
    """Every p-table of the database, built-in ones first, then in alphabetical order."""
    rows = con.execute(
        "SELECT name, kind, modulus, step, repeat, origin FROM sdc.ptables "
        "ORDER BY name NOT IN ('default', 'default_magnitude'), name"
    ).fetchall()
    return [_read(con, *row) for row in rows]


def _read(
    con: duckdb.DuckDBPyConnection, name: str, kind: str, modulus: int, step: int, repeat: int, origin: str
) -> StoredPTable:
    columns = con.execute(
        "SELECT type, i, v, lb, ub FROM sdc.ptable_intervals WHERE name = ? ORDER BY type, i, lb", [name]
    ).fetchnumpy()
    return StoredPTable(
        kind, modulus, step, repeat, np.asarray(columns["type"], dtype=np.str_), columns["i"], columns["v"],
        columns["lb"], columns["ub"], name, origin,
    )  # fmt: skip


def store_ptable(con: duckdb.DuckDBPyConnection, table: StoredPTable) -> None:
    """Store a p-table, replacing one of the same name, and rewrite the macros; all or nothing.

    Raises:
        SDCError: a name that the catalog cannot hold, or a table that has no encoding.
    """
    if not table.name.strip():
        raise SDCError("a p-table needs a name")
    if table.name in BUILT_IN:
        raise SDCError(f"'{table.name}' is a built-in p-table; store yours under another name")
    table.lookup()
    intervals = table.arrow()
    con.begin()
    try:
        _delete(con, table.name)
        con.execute(
            "INSERT INTO sdc.ptables VALUES (?, ?, ?, ?, ?, ?)",
            [table.name, table.kind, table.modulus, table.step, table.repeat, table.origin],
        )
        con.register("_sdc_new_intervals", intervals)
        con.execute("INSERT INTO sdc.ptable_intervals SELECT * FROM _sdc_new_intervals")
        con.unregister("_sdc_new_intervals")
        rewrite_ptable_macros(con)
        con.commit()
    except BaseException:
        con.rollback()
        raise


def drop_ptable(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove a stored p-table and rewrite the macros; all or nothing."""
    if name in BUILT_IN:
        raise SDCError(f"'{name}' is a built-in p-table and cannot be dropped")
    con.begin()
    try:
        _delete(con, name)
        rewrite_ptable_macros(con)
        con.commit()
    except BaseException:
        con.rollback()
        raise


def _delete(con: duckdb.DuckDBPyConnection, name: str) -> None:
    con.execute("DELETE FROM sdc.ptable_intervals WHERE name = ?", [name])
    con.execute("DELETE FROM sdc.ptables WHERE name = ?", [name])


def rewrite_ptable_macros(con: duckdb.DuckDBPyConnection) -> None:
    """Bring the constants in the macros in line with the stored p-tables."""
    for statement in ptable_macros((table.name, table.lookup()) for table in stored_ptables(con)):
        con.execute(statement)


def setting(con: duckdb.DuckDBPyConnection, name: str) -> str | None:
    """A stored setting, or None."""
    row = first_row(con, "SELECT value FROM sdc.settings WHERE name = ?", [name])
    return None if row is None else str(row[0])


def set_setting(con: duckdb.DuckDBPyConnection, name: str, value: str) -> None:
    """Store a setting."""
    con.execute("DELETE FROM sdc.settings WHERE name = ?", [name])
    con.execute("INSERT INTO sdc.settings VALUES (?, ?)", [name, value])


@dataclass(frozen=True)
class StoredPublication:
    """A publication that the catalog holds.

    Attributes:
        name: under which functions find it.
        query: the SELECT.
        arguments: JSON, how it was suppressed; None: it was only named, not published.
        fingerprint: of the inner cells it was published from.
    """

    name: str
    query: str
    arguments: str | None
    fingerprint: str | None


def publication(con: duckdb.DuckDBPyConnection, name: str) -> StoredPublication:
    """A stored publication, under the name that it was stored under last, whatever the case of its letters: its tables
    have the same names then.

    Raises:
        SDCError: there is none of that name.
    """
    rows = con.execute("SELECT name, query, arguments, fingerprint FROM sdc.publications").fetchall()
    for row in rows:
        if folded(row[0]) == folded(name):
            return StoredPublication(*row)
    raise unknown("publication", name, [row[0] for row in rows])


def store_publication(
    con: duckdb.DuckDBPyConnection,
    name: str,
    query: str,
    arguments: str | None = None,
    fingerprint: str | None = None,
) -> None:
    """Store a publication, replacing one of the same name."""
    con.execute(_DELETE_PUBLICATION, [folded(name)])
    con.execute("INSERT INTO sdc.publications VALUES (?, ?, ?, ?)", [name, query, arguments, fingerprint])


_DELETE_PUBLICATION = f"DELETE FROM sdc.publications WHERE {folded_sql('name')} = ?"

EXPORT = "readme"
EXPORT_SAYS = "What the tables of this file are, with a query on each (made by sdc_export)"
"""The table of an exported file that says what is in it, and its comment, by which such a file is known."""


def is_export(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether the database is a file that `sdc_export` made."""
    row = first_row(
        con,
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database() "
        f"AND table_name = {literal(EXPORT)} AND comment = {literal(EXPORT_SAYS)}",
    )
    return row is not None and bool(row[0])


def cells_table(name: str) -> str:
    """The quoted name of the table that holds the cells of a publication as published."""
    return f"sdc.{identifier(name + '_cells')}"


def stencil_table(name: str) -> str:
    """The quoted name of the table that holds the inner cells of a publication with their stencil."""
    return f"sdc.{identifier(name + '_stencil')}"


def stencil_digest_query(name: str, columns: Iterable[str]) -> str:
    """SQL of the fingerprint of the stored inner cells of a publication, stencil and all: another once one is another.

    Args:
        columns: of the publication.
    """
    listed = ", ".join(map(identifier, (*columns, "stencil")))
    return f"SELECT count(*) || ' ' || coalesce(sum(hash({listed})), 0) FROM {stencil_table(name)}"


def note_stencil(con: duckdb.DuckDBPyConnection, name: str, columns: Iterable[str]) -> None:
    """Store that fingerprint; within the transaction that stores the inner cells."""
    row = first_row(con, stencil_digest_query(name, columns))
    assert row is not None
    set_setting(con, _stencil_of(name), str(row[0]))


def stencil_digest(con: duckdb.DuckDBPyConnection, name: str) -> str | None:
    """That fingerprint as it was stored; None: an older version published."""
    return setting(con, _stencil_of(name))


def _stencil_of(name: str) -> str:
    return f"stencil {folded(name)}"


def drop_publication(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove a publication with its tables; all or nothing."""
    con.begin()
    try:
        con.execute(_DELETE_PUBLICATION, [folded(name)])
        con.execute("DELETE FROM sdc.settings WHERE name = ?", [_stencil_of(name)])
        con.execute(f"DROP TABLE IF EXISTS {cells_table(name)}")
        con.execute(f"DROP TABLE IF EXISTS {stencil_table(name)}")
        con.commit()
    except BaseException:
        con.rollback()
        raise


@dataclass(frozen=True)
class Policy:
    """What analysts may ask about one relation, and how it is answered; see `sdc_protect` for the fields.

    Three are not declared: ``is_whole``, whether all that its method needs is stored; and ``without_null`` and
    ``without_zero``, known of data that nobody can change, measures of which no record has such a value.
    """

    name: str
    label: str
    unit: str | None = None
    record_key: str | None = None
    dimensions: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    method: str | None = None
    ptable: str | None = None
    magnitude_ptable: str | None = None
    min_units: int = 1
    base: int = 3
    publication: str | None = None
    count_column: str | None = None
    one_row_per_unit: bool = True
    population: str | None = None
    role: str = ""
    complete: tuple[str, ...] = ()
    records: int = 0
    preview: str | None = None
    noise_secret: str = field(default="", repr=False)
    is_whole: bool = True
    without_null: frozenset[str] = frozenset()
    without_zero: frozenset[str] = frozenset()


def policies(con: duckdb.DuckDBPyConnection) -> list[Policy]:
    """Every policy of the database, by name and role."""
    rows = con.execute(
        "SELECT name, label, unit, record_key, dimensions, measures, method, ptable, magnitude_ptable, min_units, "
        "base, publication, count_column, one_row_per_unit, population, role, complete, records, preview, "
        "(SELECT value FROM sdc.settings WHERE name = 'noise_secret') FROM sdc.policies "
        "ORDER BY name, role"
    ).fetchall()
    return [
        Policy(
            name, label, unit, record_key, tuple(dimensions or ()), tuple(measures or ()), method, ptable,
            magnitude_ptable, min_units or 1, base or 3, publication, count_column, bool(one_row_per_unit), population,
            role or "", tuple(complete or ()), records or 0, preview, noise_secret or "",
            label == "public" or bool(
                label == "unit-level" and method in _METHODS and all((unit, dimensions, min_units))
                and (method != "cell_key" or all((record_key, ptable, magnitude_ptable, noise_secret)))
                and (method != "rounding" or all((record_key, base)))
                and (method != "suppression" or publication)
            ),
        )
        for name, label, unit, record_key, dimensions, measures, method, ptable, magnitude_ptable, min_units, base,
            publication, count_column, one_row_per_unit, population, role, complete, records, preview,
            noise_secret in rows
    ]  # fmt: skip


_METHODS = ("cell_key", "suppression", "threshold", "rounding")


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
    who, bad, several = identifier(unit), "0", "0"
    if key is not None:
        record_key = identifier(key)
        bad = f"count(*) FILTER ({record_key} IS NULL OR {record_key} NOT BETWEEN 0 AND 99999999)"
        several = (
            f"(SELECT count(*) FROM (SELECT {who} FROM {table} GROUP BY {who} "
            f"HAVING min({record_key}) <> max({record_key})))"
        )
    row = first_row(
        con, f"SELECT count(*), count(DISTINCT {who}), count(*) FILTER ({who} IS NULL), {bad}, {several} FROM {table}"
    )
    assert row is not None
    return PolicyFacts(*row)


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


def is_view(con: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Whether a name is that of a custodian's view."""
    views = f"SELECT 1 FROM duckdb_views() WHERE NOT internal AND {folded_sql('view_name')} = ?"
    return first_row(con, views, [folded(name)]) is not None


@dataclass(frozen=True)
class Read:
    """What a relation reads, through views and macros.

    Attributes:
        tables: database, schema and name of each.
        functions: table functions, such as those of DuckDB's own catalog, and others that read it, or write to it.
        enums: types with their labels that expressions have, and no table that is read.
    """

    tables: frozenset[tuple[str, str, str]] = frozenset()
    functions: frozenset[str] = frozenset()
    enums: frozenset[str] = frozenset()


def read_by(con: duckdb.DuckDBPyConnection, name: str) -> Read:
    """What a relation of the main schema reads, as DuckDB plans it; nothing where it is not there any more."""
    tables: set[tuple[str, str, str]] = set()
    functions: set[str] = set()
    enums: set[str] = set()
    stored: set[str] = set()

    def noted(item: dict[str, Any]) -> dict[str, Any]:
        if item.get("id") == "ENUM" and item["type_info"]:
            enums.add(_enum(item["type_info"]["values"]))
        if item.get("type") == "VALUE_CONSTANT" and "ENUM(" in str(item["value"].get("value")):  # what typeof says
            enums.add(str(item["value"]["value"]))
        # By its name in DuckDB 1, and by the path of it in DuckDB 2.
        if item.get("type") == "LOGICAL_GET":
            stored.update(_enums_in(item.get("returned_types")))
            functions.add(_called(item))
        if item.get("expression_class") == "BOUND_FUNCTION" and _called(item) in _OF_DATABASE:
            functions.add(_called(item))
        if item.get("type") == "LOGICAL_CHUNK_GET":  # what DuckDB says of a table is worked out before
            functions.add("describe")
        if item.get("table") and "catalog" in item and "schema" in item:
            tables.add((str(item["catalog"]), str(item["schema"]), folded(str(item["table"]))))
        return item

    asked = f"FROM main.{identifier(name)}"
    try:
        row = first_row(con, "SELECT json_serialize_plan(?)", [asked])
        if row is not None and not _is_told(row[0], noted):
            here = current_database(con)
            named, of_types = _named_in_text(con, name)
            functions |= named
            enums |= of_types
            for table in con.get_table_names(asked, qualified=True):
                tables |= _in_full(table, here)
    except duckdb.Error:
        try:
            con.execute(f"SELECT * FROM main.{identifier(name)} LIMIT 0")
        except duckdb.Error:
            return Read()
        functions.add("what DuckDB does not tell")
    return Read(frozenset(tables), frozenset(functions) - {"seq_scan"}, frozenset(enums - stored))


def _enum(labels: Sequence[str]) -> str:
    """A type as DuckDB writes it.

    >>> _enum(["it's", "b"])
    "ENUM('it''s', 'b')"
    """
    return f"ENUM({', '.join(map(literal, labels))})"


def _enums_in(types: Any) -> set[str]:
    """The ENUMs among types, and in those that these are made of, as DuckDB serializes them."""
    if isinstance(types, list):
        return set().union(*map(_enums_in, types))
    if not isinstance(types, dict):
        return set()
    if types.get("id") == "ENUM" and types["type_info"]:
        return {_enum(types["type_info"]["values"])}
    return set().union(*map(_enums_in, types.values()))


def _called(item: dict[str, Any]) -> str:
    return folded(str(item["name"] if "name" in item else item.get("qname", {}).get("path", [""])[-1]))


def _is_told(plan: str, noted: Callable[[dict[str, Any]], dict[str, Any]]) -> bool:
    """Whether DuckDB has a text of a plan: of some functions there is none, and of constants of some types one that is
    no JSON."""
    try:
        return not json.loads(plan, object_hook=noted).get("error")
    except ValueError:
        return False


_OF_DATABASE = frozenset(["nextval", "currval", "setval", "json_serialize_plan"])
"""Functions of one value that tell of sequences and tables, by which records may be numbered, or change them."""

_PART_OF_NAME = re.compile(r'"((?:[^"]|"")*)"|([^."]+)')
_NAME_OF_TABLE = re.compile(r'(?:"(?:[^"]|"")*"|[^\s"])+')


def _in_full(table: str, database: str) -> set[tuple[str, str, str]]:
    """Database, schema and name of a table as DuckDB writes it, with its alias; of two parts one is either of both.

    >>> _in_full("people AS p", "file"), sorted(_in_full('sdc."my ""table"', "file"))
    ({('file', 'main', 'people')}, [('file', 'sdc', 'my "table'), ('sdc', 'main', 'my "table')])
    """
    named = _NAME_OF_TABLE.match(table)
    found = _PART_OF_NAME.findall(table if named is None else named[0])
    parts = [quoted.replace('""', '"') or plain for quoted, plain in found]
    name, before = folded(parts[-1]), parts[-3:-1]
    of, *more = (*before, "main")
    of_database = database if folded(of) == folded(database) else of
    if not before:
        return {(database, "main", name)}
    return {(of_database, folded(more[0]), name)} | ({(database, folded(of), name)} if len(before) == 1 else set())


_CALLED = re.compile(r'(\w+)"?\s*\(')
_OF_CATALOG = re.compile(r"\b(?:duckdb|pragma|sqlite|pg)_\w+|\binformation_schema\b|\b(?:describe|show|summarize)\b")


_CAST_TO = re.compile(r'\bas\s+(?:"?\w+"?\s*\.\s*)*"?(\w+)"?\s*[)\[]')


def _named_in_text(con: duckdb.DuckDBPyConnection, view: str) -> tuple[set[str], set[str]]:
    """Table functions and ENUMs in the text of a view, and in those of the views and macros that it names."""
    texts: dict[str, str] = {}
    for name, text in con.execute(
        "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal UNION ALL "
        "SELECT function_name, macro_definition FROM duckdb_functions() "
        "WHERE NOT internal AND macro_definition IS NOT NULL"
    ).fetchall():  # one of several schemas with a name may be meant
        texts[folded(str(name))] = f"{texts.get(folded(str(name)), '')} {folded(str(text))}"
    known = _OF_DATABASE | {folded(row[0]) for row in con.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'table'"
    ).fetchall()}  # fmt: skip
    types = {folded(name): _enum(labels) for name, labels in con.execute(
        "SELECT type_name, labels FROM duckdb_types() WHERE logical_type = 'ENUM' AND NOT internal"
    ).fetchall()}  # fmt: skip
    found, enums, waiting = set[str](), set[str](), {folded(view)}
    while waiting:
        text = texts.pop(waiting.pop(), "")
        found |= (set(_CALLED.findall(text)) & known) | set(_OF_CATALOG.findall(text))
        enums |= {types[name] for name in _CAST_TO.findall(text) if name in types}
        waiting |= set(re.findall(r"\w+", text)) & set(texts)
    return found, enums


_WORDS_OF_FUNCTIONS = (
    "range generate_series repeat repeat_row unnest json_each json_tree query query_table glob read_blob "
    "read_text read_csv read_csv_auto read_json read_json_auto read_json_objects read_json_objects_auto "
    "read_ndjson read_ndjson_auto read_ndjson_objects read_parquet read_single_csv_file read_single_json_file "
    "read_single_parquet_file parquet_scan parquet_schema parquet_metadata parquet_file_metadata "
    "parquet_full_metadata parquet_kv_metadata sniff_csv read_xlsx read_avro st_read iceberg_scan delta_scan "
    "postgres_scan postgres_scan_pushdown postgres_query mysql_scan mysql_query arrow_scan python_arrow_scan "
    "pandas_scan pg_timezone_names icu_calendar_names test_all_types test_vector_types"
)
_FUNCTIONS_FOR_ALL = frozenset(_WORDS_OF_FUNCTIONS.split())
"""Table functions that a public view may call: they make values, or read what is outside of this database. Of ``query``
and ``query_table`` DuckDB says which tables they read; of any other function nobody knows."""


def records_behind(con: duckdb.DuckDBPyConnection, view: str, role: str) -> str | None:
    """What a view shows that nobody may see: a table of a unit-level policy, or a name of the catalog; None: nothing.

    Of a protected view these are all tables that it reads: what is called as its unit there may be a lookup's. A table
    that may be read freely anyway does not count.

    Args:
        role: for whom it is to be shown; empty: for everybody. What is protected for any role is not for another that
            has no policy of it.
    """
    stored = policies(con)
    held = {folded(policy.name): policy for policy in stored if not policy.role}
    if role:
        held |= {folded(policy.name): policy for policy in stored if folded(policy.role) == folded(role)}
    read = read_by(con, view)
    hidden = sorted(name for _, schema, name in read.tables if schema == "sdc")
    hidden += sorted(read.functions - _FUNCTIONS_FOR_ALL)
    if hidden:
        return hidden[0]
    here = current_database(con)
    public = {(here, "main", name) for name, policy in held.items() if policy.label == "public"}
    for policy in stored:
        if policy.label == "unit-level" and read.tables & (read_by(con, policy.name).tables - public):
            return policy.name
        if policy.label == "unit-level" and read.enums and _has_type(con, policy, read.enums):
            return policy.name
    return None


def _has_type(con: duckdb.DuckDBPyConnection, policy: Policy, enums: Collection[str]) -> bool:
    """Whether a column has one of these types, whose labels may be of one unit alone."""
    asked = f"""SELECT data_type FROM duckdb_columns() WHERE database_name = current_database()
        AND schema_name = 'main' AND {folded_sql("table_name")} = ?"""
    types = [str(row[0]) for row in con.execute(asked, [folded(policy.name)]).fetchall()]
    return any(kind in enum or enum in kind for enum in enums for kind in types if "ENUM(" in kind)


def has_records_of(con: duckdb.DuckDBPyConnection, view: str, policy: Policy, table: str) -> bool:
    """Whether a view, which has this policy or is to have it, is made of the records of a table.

    A table that is only looked up in has neither record keys nor measures.
    """
    if folded(view) == folded(table) or not is_view(con, view):
        return False
    own = {folded(name) for name in (policy.record_key, *policy.measures) if name is not None}
    if not (own or {folded(str(policy.unit))}).intersection(_columns_now(con, table)):
        return False
    return (current_database(con), "main", folded(table)) in read_by(con, view).tables


def policies_version(con: duckdb.DuckDBPyConnection) -> str:
    """Changes whenever a policy does."""
    row = con.execute("SELECT value FROM sdc.settings WHERE name = 'policies'").fetchall()
    return row[0][0] if row else ""


def _policies_changed(con: duckdb.DuckDBPyConnection) -> None:
    set_setting(con, "policies", secrets.token_hex(8))


def store_policy(con: duckdb.DuckDBPyConnection, policy: Policy) -> None:
    """Store a policy, replacing that of the same relation and role, all or nothing."""
    columns = _columns_now(con, policy.name) if policy.label == "unit-level" else []
    con.begin()
    try:
        _delete_policy(con, policy.name, policy.role)
        con.execute(
            f"INSERT INTO sdc.policies VALUES ({', '.join('?' * 19)})",
            [policy.name, policy.label, policy.unit, policy.record_key, list(policy.dimensions), list(policy.measures),
             policy.method, policy.ptable, policy.magnitude_ptable, policy.min_units, policy.base, policy.publication,
             policy.count_column, policy.one_row_per_unit, policy.population, policy.role,
             list(policy.complete), policy.records, policy.preview],
        )  # fmt: skip
        if columns:
            set_setting(con, _columns_of(policy.name, policy.role), json.dumps(columns))
        if policy.noise_secret and setting(con, "noise_secret") is None:
            set_setting(con, "noise_secret", policy.noise_secret)
        _policies_changed(con)
        con.commit()
    except BaseException:
        con.rollback()
        raise


def _columns_now(con: duckdb.DuckDBPyConnection, name: str) -> list[str]:
    """All columns of a relation in their order, visible or not."""
    try:
        return [folded(row[0]) for row in con.execute(f"DESCRIBE FROM main.{identifier(name)}").fetchall()]
    except duckdb.Error:
        return []


def _columns_of(name: str, role: str) -> str:
    return f"columns {json.dumps([folded(name), folded(role)])}"


def has_its_columns(con: duckdb.DuckDBPyConnection, policy: Policy, columns: Sequence[str]) -> bool:
    """Whether a relation of these columns has all of when it was declared, in that order, whatever came to them.

    Where one is gone or in another place, a column may have its name now that nobody may see.
    """
    stored = setting(con, _columns_of(policy.name, policy.role))
    if stored is None:  # in a file of an older version that was not opened for writing since
        return True
    declared: list[str] = json.loads(stored)
    known = set(declared)
    return [name for name in map(folded, columns) if name in known] == declared


def note_columns(con: duckdb.DuckDBPyConnection) -> None:
    """Store the columns of the tables that an older version declared without, as they are now; in a transaction."""
    for policy in policies(con):
        kept = _columns_of(policy.name, policy.role)
        if policy.label == "unit-level" and setting(con, kept) is None:
            columns = _columns_now(con, policy.name)
            if columns:
                set_setting(con, kept, json.dumps(columns))


def renew_policies(
    con: duckdb.DuckDBPyConnection, publication: str, count_column: str | None, complete: Sequence[str]
) -> None:
    """Bring policies in line with a publication that is stored anew; within the transaction that stores it."""
    named = f"{folded_sql('publication')} = ? AND method = 'suppression'"
    if first_row(con, f"SELECT 1 FROM sdc.policies WHERE {named}", [folded(publication)]) is not None:
        con.execute(
            f"UPDATE sdc.policies SET count_column = ?, complete = ? WHERE {named}",
            [count_column, list(complete), folded(publication)],
        )
        _policies_changed(con)


def _delete_policy(con: duckdb.DuckDBPyConnection, name: str, role: str) -> None:
    same = f"{folded_sql('name')} = ? AND coalesce({folded_sql('role')}, '') = ?"
    con.execute(f"DELETE FROM sdc.policies WHERE {same}", [folded(name), folded(role)])
    con.execute("DELETE FROM sdc.settings WHERE name = ?", [_columns_of(name, role)])


def drop_policy(con: duckdb.DuckDBPyConnection, name: str, role: str) -> None:
    """Remove a policy, all or nothing."""
    con.begin()
    try:
        _delete_policy(con, name, role)
        _policies_changed(con)
        con.commit()
    except BaseException:
        con.rollback()
        raise


@dataclass(frozen=True)
class User:
    """A user of the gateway.

    Attributes:
        name: with which the user logs in.
        role: whose policies hold.
        verifier: with which the password is checked (`sdcduck.passwords`).
    """

    name: str
    role: str
    verifier: str


def users(con: duckdb.DuckDBPyConnection) -> list[User]:
    """All users of the gateway."""
    return [User(*row) for row in con.execute("SELECT name, role, verifier FROM sdc.users ORDER BY name").fetchall()]


def salts_secret(con: duckdb.DuckDBPyConnection) -> bytes:
    """From which the salts of users are made, of those who are there and of those who are not.

    Where none is stored, as in files of older versions, it follows from what is stored of the users; where there are
    none, it is a fresh one.
    """
    stored = setting(con, "salts")
    if stored is not None:
        return bytes.fromhex(stored)
    known = "\n".join(user.verifier for user in users(con))
    return hashlib.sha256(known.encode()).digest() if known else secrets.token_bytes(32)


def store_user(con: duckdb.DuckDBPyConnection, user: User, salts: bytes) -> None:
    """Store a user, replacing one of the same name, and the secret of the salts if there is none; all or nothing."""
    con.begin()
    try:
        if setting(con, "salts") is None:
            set_setting(con, "salts", salts.hex())
        con.execute("DELETE FROM sdc.users WHERE name = ?", [user.name])
        con.execute("INSERT INTO sdc.users VALUES (?, ?, ?)", [user.name, user.role, user.verifier])
        con.commit()
    except BaseException:
        con.rollback()
        raise


def drop_user(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove a user; the secret of the salts stays what it is."""
    if setting(con, "salts") is None:
        set_setting(con, "salts", salts_secret(con).hex())
    con.execute("DELETE FROM sdc.users WHERE name = ?", [name])


@dataclass(frozen=True)
class SynthModel:
    """A stored model of synthetic records.

    Attributes:
        name: under which `sdc_synth_records` finds it.
        method: of the synthesis.
        columns: of the records, in words.
        records: that it was fitted to.
        header: JSON: what the columns are called, and their types.
        arrays: Arrow IPC: nodes of trees, and values of the donors in their leaves.
    """

    name: str
    method: str
    columns: str
    records: int
    header: str
    arrays: bytes


def synth_models(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The names of all models."""
    return [row[0] for row in con.execute("SELECT name FROM sdc.synth_models ORDER BY name").fetchall()]


def synth_model(con: duckdb.DuckDBPyConnection, name: str, *, arrays: bool = True) -> SynthModel:
    """A model; without its arrays if only the rest is wanted."""
    shown = "arrays" if arrays else "''::BLOB"
    row = first_row(
        con, f"SELECT name, method, columns, records, header, {shown} FROM sdc.synth_models WHERE name = ?", [name]
    )
    if row is None:
        raise unknown("model", name, synth_models(con))
    return SynthModel(*row)


def store_synth_model(con: duckdb.DuckDBPyConnection, model: SynthModel) -> None:
    """Store a model, replacing one of the same name, all or nothing."""
    con.begin()
    try:
        con.execute("DELETE FROM sdc.synth_models WHERE name = ?", [model.name])
        con.execute(
            "INSERT INTO sdc.synth_models VALUES (?, ?, ?, ?, ?, ?)",
            [model.name, model.method, model.columns, model.records, model.header, model.arrays],
        )
        con.commit()
    except BaseException:
        con.rollback()
        raise


def drop_synth_model(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove a model."""
    con.execute("DELETE FROM sdc.synth_models WHERE name = ?", [name])


@dataclass(frozen=True)
class PrivateRelease:
    """A differentially private release.

    Attributes:
        data: what it reads: tables, as the ledger names them.
        neighbours: 'add_remove' or 'replace'.
        epsilon: what it costs under this relation.
        what: was drawn, in words.
        source: as it stood in the call.
    """

    data: tuple[str, ...]
    neighbours: str
    epsilon: float
    what: str
    source: str


_LEDGER = threading.Lock()
"""Only one process writes to a database; of its threads two could find the same budget left."""
_ROUNDING = 1e-9
"""Of a budget: three thirds are certified as a little more than one."""


def check_private_release(con: duckdb.DuckDBPyConnection, release: PrivateRelease) -> None:
    """Refuse a release that costs more than what is left of a budget, or whose cost could not be written down.

    Raises:
        SDCError: it is refused.
    """
    if is_read_only(con):
        raise SDCError("what a private release costs is written down in the database, which is open for reading only")
    for data in release.data:
        row = first_row(
            con,
            "SELECT b.neighbours, b.epsilon, coalesce((SELECT sum(_sdc_dp_cost(r.epsilon, r.neighbours, b.neighbours)) "
            "FROM sdc.dp_releases r WHERE r.data = b.data), 0), _sdc_dp_cost(?, ?, b.neighbours) "
            "FROM sdc.dp_budgets b WHERE b.data = ?",
            [release.epsilon, release.neighbours, data],
        )
        if row is None:
            continue
        neighbours, budget, spent, cost = row
        if not spent + cost <= budget * (1 + _ROUNDING):
            why = (
                "it would tell the exact number of records, which that relation protects"
                if cost == float("inf")
                else f"it would cost {cost:.6g} more"
            )
            raise SDCError(
                f"the releases of '{data}' may cost {budget:.6g} together under neighbours := '{neighbours}', and have "
                f"cost {spent:.6g}; {why} (see sdc_synth_dp_ledger, sdc_synth_dp_budget)"
            )


def charge_private_release(con: duckdb.DuckDBPyConnection, release: PrivateRelease) -> None:
    """Write down what a release costs, unless a budget does not allow it; to be called before its noise is drawn.

    Raises:
        SDCError: it is refused.
    """
    with _LEDGER:
        con.begin()
        try:
            check_private_release(con, release)
            con.execute(
                "INSERT INTO sdc.dp_releases BY NAME SELECT "
                "(SELECT coalesce(max(release), 0) + 1 FROM sdc.dp_releases) AS release, unnest(?::VARCHAR[]) AS data, "
                "? AS neighbours, ? AS epsilon, ? AS what, ? AS source, now()::TIMESTAMP AS charged_at",
                [list(release.data), release.neighbours, release.epsilon, release.what, release.source],
            )
            con.commit()
        except BaseException:
            con.rollback()
            raise


def set_private_budget(con: duckdb.DuckDBPyConnection, data: str, neighbours: str, epsilon: float | None) -> None:
    """Give a table a budget, in the place of the one that it had; None: it has none."""
    with _LEDGER:
        con.begin()
        try:
            con.execute("DELETE FROM sdc.dp_budgets WHERE data = ?", [data])
            if epsilon is not None:
                con.execute("INSERT INTO sdc.dp_budgets VALUES (?, ?, ?)", [data, neighbours, epsilon])
            con.commit()
        except BaseException:
            con.rollback()
            raise


@dataclass(frozen=True)
class Output:
    """An output that was checked.

    Attributes:
        name: of the output.
        kind: the check.
        checked: the call of the check, SQL.
        status: 'pass', 'review' or 'fail'.
        cells, failed, review: numbers of its cells.
        why: the rules that they failed, in words.
        fingerprint: SHA-256 of what the check said of every cell.
        submitted_by: who asked.
        exception: why it should go though it does not pass.
        decision: 'approve', 'reject', or None.
    """

    name: str
    kind: str
    checked: str
    status: str
    cells: int
    failed: int
    review: int
    why: str | None
    fingerprint: str
    submitted_by: str
    exception: str | None
    decision: str | None = None


def outputs(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The names of all outputs."""
    return [row[0] for row in con.execute("SELECT name FROM sdc.outputs ORDER BY name").fetchall()]


def output(con: duckdb.DuckDBPyConnection, name: str) -> Output | None:
    """An output, if there is one of that name."""
    row = first_row(
        con,
        "SELECT name, kind, checked, status, cells, failed, review, why, fingerprint, submitted_by, exception, "
        "decision FROM sdc.outputs WHERE name = ?",
        [name],
    )
    return None if row is None else Output(*row)


def store_output(con: duckdb.DuckDBPyConnection, output: Output) -> None:
    """Store an output that is not decided, replacing one of the same name, all or nothing.

    Raises:
        SDCError: it was decided in the meantime.
    """
    con.begin()
    try:
        con.execute("DELETE FROM sdc.outputs WHERE name = ? AND decision IS NULL", [output.name])
        if first_row(con, "SELECT 1 FROM sdc.outputs WHERE name = ?", [output.name]) is not None:
            raise SDCError(f"output '{output.name}' is decided already")
        con.execute(
            "INSERT INTO sdc.outputs BY NAME SELECT ? AS name, ? AS kind, ? AS checked, ? AS status, ? AS cells, "
            "? AS failed, ? AS review, ? AS why, ? AS fingerprint, ? AS submitted_by, ? AS exception, "
            "now()::TIMESTAMP AS submitted_at",
            [output.name, output.kind, output.checked, output.status, output.cells, output.failed, output.review,
             output.why, output.fingerprint, output.submitted_by, output.exception],
        )  # fmt: skip
        con.commit()
    except BaseException:
        con.rollback()
        raise


def decide_output(
    con: duckdb.DuckDBPyConnection, name: str, decision: str, decided_by: str, reason: str | None
) -> None:
    """Write down what was decided, once."""
    con.execute(
        "UPDATE sdc.outputs SET decision = ?, decided_by = ?, reason = ?, decided_at = now()::TIMESTAMP "
        "WHERE name = ? AND decision IS NULL",
        [decision, decided_by, reason, name],
    )


def drop_output(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove an output."""
    con.execute("DELETE FROM sdc.outputs WHERE name = ?", [name])
