"""Cell-key perturbation: planners and table functions behind ``sql/perturbation_tables.sql``."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any, Literal, cast

import duckdb
import numpy as np
import pyarrow as pa

from sdcduck import catalog
from sdcduck.catalog import StoredPTable
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Planner, Rows, Scalar, Session
from sdcduck.methods.perturbation.intervals import Intervals, ons_intervals, ptable_intervals
from sdcduck.methods.perturbation.lookup import KEY_MODULUS
from sdcduck.methods.perturbation.ptable import (
    MagnitudeParameters,
    PTable,
    PTableError,
    count_ptable,
    magnitude_ptable,
    modify_ptable,
)
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import choice, needed, whole, wrong
from sdcduck.udfs.perturbation.engine_keys import on_engine
from sdcduck.udfs.perturbation.missing_keys import check_same_keys, lacks_keys
from sdcduck.udfs.source import Source, source
from sdcduck.udfs.sums import total

_KINDS = ("counts", "magnitudes")
_FINGERPRINT = b"sdcduck: fingerprint of the secret"


# --- p-tables --------------------------------------------------------------------------------------------------------


def _given(value: str | None, argument: str) -> object:
    """A number, a truth value or a list of them, from its SQL text."""
    if value is None:
        return None
    try:
        return json.loads(value.replace("NULL", "null"), parse_float=_number_of_sql)
    except json.JSONDecodeError:
        raise wrong(argument, "be a number, true, false, or a list of them") from None


def _number_of_sql(text: str) -> int | float:
    """DuckDB writes all of a list with decimals where one number has some: 5.0 beside 5.5."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _whole(value: float | None, argument: str) -> int | None:
    """A whole number. Of a BIGINT argument DuckDB would refuse 2.5 in the name of a function that nobody called."""
    if value is None or value.is_integer():
        return None if value is None else int(value)
    raise wrong(argument, "be a whole number")


def computed_ptable(
    D: float | None, V: float | None, js: float | None, pstay: str | None, mono: str | None, optim: str | None,
    kind: str | None, step: float | None, icat: str | None, parity: str | None, modified: bool | None,
    threshold: float | None, seed: int | None,
) -> PTable:  # fmt: skip
    """The p-table of the arguments of ``sdc_ptable``; the kernel checks their values."""
    largest, lowest, per_unit = _whole(D, "D"), _whole(js, "js"), _whole(step, "step")
    if largest is None or V is None:
        raise SDCError("D (largest noise) and V (variance of the noise) must be given, e.g. D := 5, V := 2")
    # The kernel checks these values, which come from SQL as anything.
    stay, categories = cast(Any, _given(pstay, "pstay")), cast(Any, _given(icat, "icat"))
    monotone, method = cast(Any, _given(mono, "mono")), cast(Any, _given(optim, "optim"))
    if choice(kind, "kind", _KINDS) == "counts":
        if icat is not None or parity not in (None, "all"):
            raise SDCError("icat and type are for kind := 'magnitudes'")
        table = count_ptable(largest, V, lowest or 0, stay, monotone, method)
    else:
        if lowest or pstay is not None:
            raise SDCError("js and pstay are for kind := 'counts'")
        cells = cast(Literal["all", "even", "odd"], parity or "all")
        table = magnitude_ptable(largest, V, 2 if per_unit is None else per_unit, categories, monotone, method, cells)
    if modified:
        table = modify_ptable(table, 0.2 if threshold is None else threshold, seed or 0)
    return table


def plan_ptable(session: Session, *arguments: object) -> Rows:
    """``sdc_ptable``: errors while binding, the table when the statement runs."""
    table = computed_ptable(*arguments)  # type: ignore[arg-type]
    columns = {name: getattr(table, name) for name in ("i", "j", "p", "v", "lb", "ub")}
    return Rows(lambda: pa.table({**columns, "type": pa.array([table.type] * len(table.i), pa.string())}))


def stored_form(name: str, blocks: list[PTable], *, origin: str) -> StoredPTable:
    """A computed p-table as the catalog holds it: one block for all cells, or even and odd ones."""
    columns = {c: np.concatenate([getattr(b, c) for b in blocks]) for c in ("i", "v", "lb", "ub")}
    parameters = blocks[0].parameters
    return StoredPTable(
        name=name,
        kind=blocks[0].kind,
        modulus=KEY_MODULUS,
        step=parameters.step if isinstance(parameters, MagnitudeParameters) else 1,
        repeat=1,
        origin=origin,
        type=np.concatenate([np.full(len(b.i), b.type) for b in blocks]),
        i=columns["i"],
        v=columns["v"],
        lb=np.rint(columns["lb"] * KEY_MODULUS).astype(np.int64),
        ub=np.rint(columns["ub"] * KEY_MODULUS).astype(np.int64),
    )


def plan_store_ptable(session: Session, name: str | None, text: str | None, kind: str | None) -> Rows:
    """``sdc_store_ptable``: reads any known form while binding, stores it when the statement runs."""
    called = needed(name, "name", "be given")
    if kind is not None:
        choice(kind, "kind", _KINDS)
    cursor = session.cursor()
    table = _read_ptable(cursor, source(cursor, text, "source"), called, kind)
    table.lookup()

    def store() -> pa.Table:
        catalog.store_ptable(session.cursor(), table)
        return pa.table(
            {
                "name": [called],
                "kind": [table.kind],
                "rows": [table.rows],
                "intervals": [len(table.i)],
                "keys": [table.modulus],
                "origin": [table.origin],
            }
        )

    return Rows(store)


def plan_drop_ptable(session: Session, name: str | None) -> Rows:
    """``sdc_drop_ptable``: fails while binding if there is no such p-table."""
    known = [row[0] for row in session.cursor().execute("SELECT name FROM sdc.ptables").fetchall()]
    if name is None or name not in known:
        raise unknown("p-table", str(name), known)
    if name in catalog.BUILT_IN:
        raise SDCError(f"'{name}' is a built-in p-table and cannot be dropped")

    def drop() -> pa.Table:
        catalog.drop_ptable(session.cursor(), name)
        return pa.table({"name": [name]})

    return Rows(drop)


def plan_ptable_check(session: Session, name: str | None) -> str:
    """``sdc_ptable_check``: moments of the noise of each row of a stored p-table, in SQL."""
    known = [row[0] for row in session.cursor().execute("SELECT name FROM sdc.ptables").fetchall()]
    if name is None or name not in known:
        raise unknown("p-table", str(name), known)
    return f"""
        WITH intervals AS (
            SELECT type, i, v, lb, ub, (ub - lb) / modulus AS p, modulus
            FROM sdc.ptable_intervals JOIN sdc.ptables USING (name) WHERE name = {literal(name)}
        ), sums AS (
            SELECT type, i, sum(p * v) AS p_mean, sum(p * v * v) - sum(p * v) ** 2 AS p_var, sum(p) AS p_sum,
                coalesce(sum(p) FILTER (v = 0), 0) AS p_stay, min(i + v) AS least,
                sum(ub - lb) = any_value(modulus) AND min(lb) = 0 AND max(ub) = any_value(modulus) AS covers
            FROM intervals GROUP BY type, i
        )
        SELECT type, i, round(p_mean, 8) + 0 AS p_mean, round(p_var, 8) AS p_var, round(p_sum, 8) AS p_sum,
            round(p_stay, 8) AS p_stay, covers AND least >= 0 AND abs(p_mean) < 1e-6 AS ok
        FROM sums ORDER BY type, i"""


# The columns of a p-table under the names that ptable, cellKey, tau-Argus and sdcduck give them.
_COLUMN_NAMES = {
    "i": ("i",),
    "v": ("v", "diff"),
    "ub": ("ub", "p_int_ub", "kum_p"),
    "lb": ("lb", "p_int_lb"),
    "p": ("p",),
    "type": ("type",),
    "repeat": ("repeat",),
}


def _read_ptable(cursor: duckdb.DuckDBPyConnection, relation: Source, name: str, kind: str | None) -> StoredPTable:
    try:
        intervals = _read_intervals(cursor, relation, kind)
    except PTableError as problem:
        raise SDCError(f"{relation.described} {problem}") from None
    return StoredPTable(**vars(intervals), name=name, origin=f"stored from {relation.text[:200]}")


def _read_intervals(cursor: duckdb.DuckDBPyConnection, relation: Source, kind: str | None) -> Intervals:
    lower = {folded(column): column for column in relation.columns}
    if {"pcv", "ckey", "pvalue"} <= lower.keys():
        return _read_ons(cursor, relation)
    found = {
        target: lower[next(candidate for candidate in names if candidate in lower)]
        for target, names in _COLUMN_NAMES.items()
        if any(candidate in lower for candidate in names)
    }
    for target in ("i", "v", "ub"):
        if target not in found:
            raise PTableError(
                f"is no p-table: there is no column '{_COLUMN_NAMES[target][0]}' "
                "(known forms: i, v, ub as of sdc_ptable, ptable and cellKey; i, v, p_int_ub as of tau-Argus; "
                "pcv, ckey, pvalue as of ONS)"
            )
    numbers = {target: _number(found[target]) for target in ("i", "v", "ub", "lb", "p", "repeat") if target in found}
    block = f"lower(trim({identifier(found['type'])}::VARCHAR))" if "type" in found else "NULL"
    # Of two intervals with one upper bound the second one, of probability 0, is dropped below.
    order = "type, i, ub" + (", lb" if "lb" in found else "") + (", p DESC" if "p" in found else "")
    columns = cursor.execute(
        f"SELECT {', '.join(f'{sql} AS {target}' for target, sql in numbers.items())}, "
        f"coalesce({block}, 'all') AS type FROM {relation.sql} ORDER BY {order}"
    ).fetchnumpy()
    given = {target: np.ma.filled(np.ma.asarray(columns[target], dtype=np.float64), np.nan) for target in numbers}
    blocks = np.asarray(columns["type"], dtype=np.str_)
    if len(blocks) == 0:
        raise PTableError("is empty")
    for target, values in given.items():
        if not np.isfinite(values).all():
            raise PTableError(f"is no p-table: the values of column '{found[target]}' must be numbers")
    if set(blocks) not in ({"all"}, {"even", "odd"}):
        raise PTableError("is no p-table: type must be 'all' everywhere, or 'even' and 'odd'")
    return ptable_intervals(blocks, **given, kind=kind)


def _number(column: str) -> str:
    # tau-Argus pads its numbers with blanks, which makes them text for a reader of CSV files.
    return f"TRY_CAST(trim({identifier(column)}::VARCHAR) AS DOUBLE)"


def _read_ons(cursor: duckdb.DuckDBPyConnection, relation: Source) -> Intervals:
    """The form of the ONS packages: one row for every count (pcv) and cell key (ckey)."""
    columns = cursor.execute(
        f"SELECT {_number('pcv')} AS i, {_number('ckey')} AS ckey, {_number('pvalue')} AS v "
        f"FROM {relation.sql} ORDER BY i, ckey"
    ).fetchnumpy()
    if len(columns["i"]) == 0:
        raise PTableError("is empty")
    i, key, v = (np.ma.filled(np.ma.asarray(columns[c], dtype=np.float64), np.nan) for c in ("i", "ckey", "v"))
    return ons_intervals(i, key, v)


# --- Record keys -----------------------------------------------------------------------------------------------------


def hmac_keys(session: Session, units: pa.ChunkedArray, digits: pa.ChunkedArray) -> pa.Array:
    """Record keys: HMAC-SHA-256 of the unit's text under the secret, as an integer, modulo 10^digits.

    NULL units give NULL. Without a usable secret, or with digits outside 5..18, the key is NULL and the macro says why.
    """
    try:
        secret = session.secret()
    except SDCError:
        secret = None
    if secret is None:
        return pa.nulls(len(units), pa.int64())
    moduli = {wanted: 10**wanted for wanted in range(5, 19)}
    # The one loop over rows: a cryptographic hash has no vectorised form in the libraries we trust.
    keys = [
        None
        if unit is None or wanted not in moduli
        else int.from_bytes(hmac.digest(secret, unit.encode(), "sha256"), "big") % moduli[wanted]
        for unit, wanted in zip(units.to_pylist(), digits.to_pylist(), strict=True)
    ]
    return pa.array(keys, pa.int64())


def secret_problems(session: Session, names: pa.ChunkedArray) -> pa.Array:
    """Why there are no record keys: what is wrong with the secret; `names` is who asks."""
    try:
        problem = NO_SECRET if session.secret() is None else None
    except SDCError as error:
        problem = str(error)
    return pa.array([problem and f"{name}: {problem}" for name in names.to_pylist()], pa.string())


def _fingerprint(secret: bytes) -> str:
    """Tells two secrets apart and gives neither away."""
    return hmac.digest(secret, _FINGERPRINT, hashlib.sha256).hex()[:16]


def plan_add_record_key(
    session: Session, text: str | None, unit: str | None, column: str | None, digits: int | None
) -> Rows:
    """``sdc_add_record_key``: adds and fills the column when the statement runs, in one transaction."""
    table = source(session.cursor(), text, "tbl", elsewhere=True)
    if table.text.startswith("("):
        raise SDCError("argument 'tbl' must name a table; a query has no column to add to")
    key_of = table.column(unit, "unit")
    added = needed(column, "record_key", "name the new column")
    elsewhere = on_engine(session, table)
    there = folded(added) in (folded(known) for known in table.columns)
    if there and (elsewhere is not None or not lacks_keys(session, table, identifier(added))):
        raise SDCError(
            f"{table.described} has a column '{added}' already; drop it, or name another with record_key := .."
        )
    length = whole(digits, "digits", least=5, most=18)
    secret = session.secret()
    if secret is None:
        raise SDCError(NO_SECRET)
    if elsewhere is None:
        row = catalog.first_row(session.cursor(), f"SELECT count(*) FROM {table.sql} WHERE {key_of} IS NULL")
        if row is not None and row[0]:
            raise SDCError(
                f"column {key_of} of {table.described} is NULL in {row[0]} rows: a record without a unit has no key"
            )
    known = catalog.setting(session.cursor(), "secret_fingerprint")
    if known is not None and known != _fingerprint(secret):
        raise SDCError("this is not the secret that the keys of this database were made with")

    key_type, new = "INTEGER" if length <= 9 else "BIGINT", identifier(added)

    def add() -> pa.Table:
        counts = add_here() if elsewhere is None else elsewhere.add(key_of, new, key_type, length)
        # On its own: the table may be in another database than the settings, and a transaction writes to one only.
        if known is None:
            catalog.set_setting(session.cursor(), "secret_fingerprint", _fingerprint(secret))
        rows, units, keys = counts
        return pa.table({"record_key": [added], "rows": [rows], "units": [units], "shared_keys": [units - keys]})

    def add_here() -> tuple[int, int, int]:
        cursor = session.cursor()
        made = f"_sdc_hmac_keys({key_of}::VARCHAR, {length})"
        cursor.begin()
        try:
            try:
                if not there:
                    cursor.execute(f"ALTER TABLE {table.sql} ADD COLUMN {new} {key_type}")
                else:
                    check_same_keys(cursor, table, added, made, key_type)
            except duckdb.CatalogException:
                raise SDCError(f"{table.described} is no table that a column can be added to") from None
            cursor.execute(f"UPDATE {table.sql} SET {new} = {made} WHERE {new} IS NULL")
            counts = catalog.first_row(
                cursor, f"SELECT count(*), count(DISTINCT {key_of}), count(DISTINCT {new}) FROM {table.sql}"
            )
            cursor.commit()
        except BaseException:
            cursor.rollback()
            raise
        assert counts is not None
        return int(counts[0]), int(counts[1]), int(counts[2])

    return Rows(add)


NO_SECRET = (
    "there is no secret to make record keys from: give one with sdcduck.connect(.., secret=..), "
    "sdcduck.set_secret(con, ..) or the environment variable SDCDUCK_SECRET; sdcduck.new_secret() makes one"
)


_INTEGER_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")


def plan_check_keys(
    session: Session, text: str | None, record_key: str | None, unit: str | None, digits: int | None
) -> str:
    """``sdc_check_keys``: everything that would make a protected query fail or mislead, counted, in SQL."""
    relation = source(session.cursor(), text, "source")
    key = relation.column(record_key, "record_key")
    length = whole(digits, "digits", least=1, most=18)
    if relation.type_of(record_key or "") not in _INTEGER_TYPES:
        raise SDCError(f"column {key} of {relation.described} must hold integers")
    who = relation.column(unit, "unit") if unit is not None else "NULL"
    return f"""
        WITH records AS (SELECT {key} AS key, {who} AS unit FROM {relation.sql}),
        units AS (
            SELECT unit, count(*) AS records, count(DISTINCT key) AS keys FROM records
            WHERE unit IS NOT NULL GROUP BY unit
        )
        SELECT count(*) AS rows,
            count(*) FILTER (key IS NULL) AS null_keys,
            count(*) FILTER (key < 0 OR key >= {10**length}) AS keys_out_of_range,
            {"count(*) FILTER (unit IS NULL)" if unit is not None else "NULL::BIGINT"} AS null_units,
            {"(SELECT count(*) FROM units)" if unit is not None else "NULL::BIGINT"} AS units,
            {"(SELECT count(*) FILTER (records > 1) FROM units)" if unit is not None else "NULL::BIGINT"}
                AS units_with_several_rows,
            {"(SELECT count(*) FILTER (keys > 1) FROM units)" if unit is not None else "NULL::BIGINT"}
                AS units_with_several_keys,
            round(sum(key / 10.0 ** {length}) / nullif(count(key), 0), 6) AS mean_key
        FROM records"""


# --- Risk and utility ------------------------------------------------------------------------------------------------


_ARGUMENTS = {"n": "freq", "n_hat": "protected_freq", "x": "value", "x_hat": "protected_value"}
"""What users call the columns that formulas have by their letters."""


def _paired_cells(
    session: Session,
    original: str | None,
    protected: str | None,
    dimensions: list[str] | None,
    columns: dict[str, str | None],
) -> tuple[str, dict[str, str]]:
    """SQL for the cells of two tables side by side; a cell that one side lacks is 0 there.

    `columns` maps what a column is here to the one that the user named; those ending in ``_hat`` are looked up in the
    protected table, the others in the original one.
    """
    before = source(session.cursor(), original, "original")
    after = source(session.cursor(), protected, "protected")
    names = needed(
        dimensions, "dimensions", "list the columns that identify a cell, e.g. dimensions := ['region', 'sex']"
    )
    parts = {}
    for relation, mine, argument in ((before, False, "original"), (after, True, "protected")):
        on = [relation.column(key, "dimensions") for key in names]
        values = [
            f"any_value({relation.column(column, _ARGUMENTS[name])})::DOUBLE AS {name}"
            for name, column in columns.items()
            if name.endswith("_hat") is mine and (column is not None or name[0] == "n")
        ]
        cells = ", ".join(f"{column} AS k{place}" for place, column in enumerate(on))
        parts[argument] = (
            f"SELECT {cells}, {', '.join([*values, 'count(*) AS copies'])} FROM {relation.sql} GROUP BY ALL"
        )
    match = " AND ".join(f"o.k{place} IS NOT DISTINCT FROM p.k{place}" for place in range(len(names)))
    shown = ", ".join(f"coalesce({name}, 0) AS {name}" for name, column in columns.items() if column is not None)
    labels = {folded(key): f"coalesce(o.k{place}, p.k{place})" for place, key in enumerate(names)}
    kept = ", ".join(f"{expression} AS label{place}" for place, expression in enumerate(labels.values()))
    # Not-a-number is greater than every number.
    sums = "".join(
        f" WHEN NOT isfinite({name}) THEN error('a sum is NaN or infinite')"
        for name in ("x", "x_hat")
        if columns.get(name) is not None
    )
    sql = f"""SELECT {shown}, {kept}
        FROM ({parts["original"]}) o FULL JOIN ({parts["protected"]}) p ON {match}
        WHERE CASE
            WHEN coalesce(o.copies, 1) > 1 OR coalesce(p.copies, 1) > 1
                THEN error('the dimensions do not identify the cells: some cells appear more than once')
            WHEN least(n, n_hat) < 0 OR greatest(n, n_hat) >= 1e18
                THEN error('a count is negative, NaN or infinite (1e18 or more)'){sums}
            ELSE true END"""
    return sql, {key: f"label{place}" for place, key in enumerate(labels)}


def plan_table_risk_utility(
    session: Session, original: str | None, protected: str | None, dimensions: list[str] | None, freq: str | None,
    protected_freq: str | None, value: str | None, protected_value: str | None, by: str | None,
) -> str:  # fmt: skip
    """``sdc_table_risk_utility``: the measures of spec section 2.7, in SQL."""
    if (value is None) != (protected_value is None):
        raise SDCError("arguments 'value' and 'protected_value' go together: the original and the perturbed sum")
    columns = {"n": freq, "n_hat": protected_freq, "x": value, "x_hat": protected_value}
    cells, labels = _paired_cells(session, original, protected, dimensions, columns)
    if by is not None and folded(by) not in labels:
        raise unknown("dimension", by, dimensions or [], where="argument 'by'")
    level = f"{labels[folded(by)]}::VARCHAR" if by is not None else "NULL::VARCHAR"
    single = "n = 1 AND n_hat = 1"
    if value is None:
        loss = single_loss = "NULL::DOUBLE"
    else:
        loss = _loss("true")
        single_loss = _loss(single)
    return f"""
        WITH cells AS ({cells}),
        checked AS (SELECT *, {level} AS level FROM cells),
        totals AS (SELECT level, sum(n) AS n_total, sum(n_hat) AS n_hat_total FROM checked GROUP BY level),
        measures AS (
            SELECT checked.level, count(*) AS cells, {loss} AS U, {single_loss} AS U_single,
                count(*) FILTER ({single}) / nullif(count(*) FILTER (n_hat = 1), 0) AS R_pert,
                count(*) FILTER ({single}) / nullif(count(*) FILTER (n = 1), 0) AS R_true,
                CASE
                    WHEN any_value(n_total) = 0 AND any_value(n_hat_total) = 0 THEN 0
                    ELSE sqrt(greatest(0, 1 - {_AGREEMENT}))
                END AS hellinger,
                sqrt(0.5 * {total("(sqrt(n) - sqrt(n_hat)) ** 2")}) AS hellinger_raw,
                count(*) FILTER (n > 0 AND n_hat = 0) AS false_zero,
                count(*) FILTER (n = 0 AND n_hat > 0) AS false_nonzero
            FROM checked JOIN totals ON checked.level IS NOT DISTINCT FROM totals.level GROUP BY checked.level
        )
        SELECT {literal(value or freq or "n")} AS variable, level, cells, U, U_single, R_pert, R_true,
            (1 - least(1, U_single)) * R_pert AS R, hellinger, hellinger_raw, false_zero, false_nonzero
        FROM measures ORDER BY level"""


_AGREEMENT = total("sqrt(n / nullif(n_total, 0) * (n_hat / nullif(n_hat_total, 0)))")


def _loss(which: str) -> str:
    """Relative L1 distance of the sums over some cells; 0 where both tables are all zero."""
    return (
        f"CASE WHEN count(*) FILTER ({which}) > 0 AND sum(abs(x)) FILTER ({which}) = 0 "
        f"AND sum(abs(x_hat)) FILTER ({which}) = 0 THEN 0 "
        f"ELSE sum(abs(x_hat - x)) FILTER ({which}) / nullif(sum(abs(x)) FILTER ({which}), 0) END"
    )


_QUANTILES = (("min", 0.0), *((f"q{p}", p / 100) for p in (10, 20, 30, 40)), ("median", 0.5),
              *((f"q{p}", p / 100) for p in (60, 70, 80, 90, 95, 99)), ("max", 1.0))  # fmt: skip


def plan_count_utility(
    session: Session, original: str | None, protected: str | None, dimensions: list[str] | None, freq: str | None,
    protected_freq: str | None, exclude_zeros: bool | None,
) -> str:  # fmt: skip
    """``sdc_count_utility``: cellKey's distances d1, d2, d3 and their quantiles (type 7), in SQL."""
    cells, _ = _paired_cells(session, original, protected, dimensions, {"n": freq, "n_hat": protected_freq})
    quantiles = ", ".join(f"round(quantile_cont(d, {p}), 3) AS {identifier(name)}" for name, p in _QUANTILES)
    return f"""
        WITH cells AS ({cells}),
        distances AS (
            SELECT abs(n_hat - n) AS d1, CASE WHEN n = 0 AND n_hat = 0 THEN 0 ELSE abs(n_hat - n) / n END AS d2,
                abs(sqrt(n_hat) - sqrt(n)) AS d3
            FROM cells {"WHERE n_hat <> 0" if exclude_zeros else ""}
        )
        SELECT measure, count(d) AS cells, {quantiles}, round(avg(d), 3) AS mean
        FROM (UNPIVOT distances ON d1, d2, d3 INTO NAME measure VALUE d) GROUP BY measure ORDER BY measure"""


def plan_noise_distribution(
    session: Session, original: str | None, protected: str | None, dimensions: list[str] | None, freq: str | None,
    protected_freq: str | None,
) -> str:  # fmt: skip
    """``sdc_noise_distribution``: how often each noise occurs, in SQL."""
    cells, _ = _paired_cells(session, original, protected, dimensions, {"n": freq, "n_hat": protected_freq})
    return f"""
        SELECT (n_hat - n)::BIGINT AS noise, count(*) AS cells, count(*) / sum(count(*)) OVER () AS share
        FROM ({cells}) GROUP BY noise ORDER BY noise"""


_PTABLE_COLUMNS = {
    "i": "DOUBLE",
    "j": "DOUBLE",
    "p": "DOUBLE",
    "v": "DOUBLE",
    "lb": "DOUBLE",
    "ub": "DOUBLE",
    "type": "VARCHAR",
}

PLANNERS = (
    *planners(
        plan_ptable_check,
        plan_store_ptable,
        plan_drop_ptable,
        plan_add_record_key,
        plan_check_keys,
        plan_table_risk_utility,
        plan_count_utility,
        plan_noise_distribution,
    ),
    Planner(
        "sdc_ptable",
        (
            "DOUBLE",
            "DOUBLE",
            "DOUBLE",
            "VARCHAR",
            "VARCHAR",
            "VARCHAR",
            "VARCHAR",
            "DOUBLE",
            "VARCHAR",
            "VARCHAR",
            "BOOLEAN",
            "DOUBLE",
            "BIGINT",
        ),
        plan_ptable,
        _PTABLE_COLUMNS,
    ),
)
SCALARS = (
    Scalar("_sdc_hmac_keys", ("VARCHAR", "INTEGER"), "BIGINT", hmac_keys),
    Scalar("_sdc_secret_problem", ("VARCHAR",), "VARCHAR", secret_problems),
)
