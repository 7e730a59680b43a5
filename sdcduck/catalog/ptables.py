"""``sdc.ptables`` and ``sdc.ptable_intervals``: p-tables, and the macros that have their numbers as constants."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from sdcduck.catalog.database import transaction
from sdcduck.errors import SDCError
from sdcduck.methods.perturbation.intervals import Intervals
from sdcduck.methods.perturbation.lookup import KEY_MODULUS, Lookup, encode
from sdcduck.quoting import literal

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
        dispatch("_sdc_ptable_count_strips", _strips_text, "VARCHAR[]", "counts"),
        dispatch("_sdc_ptable_magnitude_strips", _strips_text, "VARCHAR[]", "magnitudes"),
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


_STORED = "SELECT name, kind, modulus, step, repeat, origin FROM sdc.ptables"


def stored_ptables(con: duckdb.DuckDBPyConnection) -> list[StoredPTable]:
    """Every p-table of the database, built-in ones first, then in alphabetical order."""
    rows = con.execute(f"{_STORED} ORDER BY name NOT IN ('default', 'default_magnitude'), name").fetchall()
    return [_read(con, *row) for row in rows]


def stored_ptable(con: duckdb.DuckDBPyConnection, name: str) -> StoredPTable | None:
    """One of them; None: there is none of that name."""
    rows = con.execute(f"{_STORED} WHERE name = ?", [name]).fetchall()
    return _read(con, *rows[0]) if rows else None


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
    with transaction(con):
        _delete(con, table.name)
        con.execute(
            "INSERT INTO sdc.ptables VALUES (?, ?, ?, ?, ?, ?)",
            [table.name, table.kind, table.modulus, table.step, table.repeat, table.origin],
        )
        con.register("_sdc_new_intervals", intervals)
        con.execute("INSERT INTO sdc.ptable_intervals SELECT * FROM _sdc_new_intervals")
        con.unregister("_sdc_new_intervals")
        rewrite_ptable_macros(con)


def drop_ptable(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove a stored p-table and rewrite the macros; all or nothing."""
    if name in BUILT_IN:
        raise SDCError(f"'{name}' is a built-in p-table and cannot be dropped")
    with transaction(con):
        _delete(con, name)
        rewrite_ptable_macros(con)


def _delete(con: duckdb.DuckDBPyConnection, name: str) -> None:
    con.execute("DELETE FROM sdc.ptable_intervals WHERE name = ?", [name])
    con.execute("DELETE FROM sdc.ptables WHERE name = ?", [name])


def rewrite_ptable_macros(con: duckdb.DuckDBPyConnection) -> None:
    """Bring the constants in the macros in line with the stored p-tables."""
    for statement in ptable_macros((table.name, table.lookup()) for table in stored_ptables(con)):
        con.execute(statement)
