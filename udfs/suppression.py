"""Suppression of linked tables: planners behind ``sql/suppression_tables.sql``."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sdcduck.udfs.publication import Publication, clusters, digest, read_publication
from sdcduck.udfs.rules import Rules, checked_condition, marked_cells, read_rules

from sdcduck import catalog
from sdcduck.catalog import identifier, literal
from sdcduck.errors import SDCError, unknown
from sdcduck.methods.suppression.audit import audit
from sdcduck.methods.suppression.candidates import candidate_order
from sdcduck.methods.suppression.decimals import decimals
from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.nullspace import NullSpace, null_space
from sdcduck.methods.suppression.rounding import controlled_rounding, random_rounding, small_count_rounding
from sdcduck.methods.suppression.stencil import stencil
from sdcduck.registry import Family, Planner, Rows, Session

_FREQUENCY_METHODS = ("none", "anySum", "anySumNOTprimary", "anySum0", "subSum", "subSpace")
_MAGNITUDE_METHODS = ("none", "sub2Sum", "numttHTT")


def resolve(session: Session, text: str | None, reserved: Sequence[str] = ()) -> Publication:
    """A publication given as a SELECT, or by the name that it was stored under."""
    if text is None or not text.strip():
        raise SDCError("argument 'publication' must be a SELECT .. GROUP BY, or the name of a stored publication")
    cursor = session.cursor()
    query = text if _is_query(text) else catalog.publication(cursor, text.strip()).query
    publication = read_publication(cursor, query)
    for name in reserved:
        if name in (column.lower() for column in publication.columns):
            raise SDCError(f"the publication has a column '{name}', as the result has: give it another name")
    return publication


def _is_query(text: str) -> bool:
    """Whether a publication was given as a statement; a name has no spaces."""
    return any(character.isspace() for character in text.strip())


@dataclass(frozen=True)
class Inner:
    """The inner cells and the cells of a publication, as arrays.

    Attributes:
        x: which inner cells a cell is the sum of.
        cells: the table of the cells, in their order: number, fingerprint, counts, values, flags.
        freq, value: float64, of the cells.
        inner_freq: int64, of the inner cells.
        contributor: int64, of the inner cells: the one contributor's number, from 1; 0 where there are several.
    """

    x: DummyMatrix
    cells: pa.Table
    freq: NDArray[np.float64]
    value: NDArray[np.float64] | None
    inner_freq: NDArray[np.int64]
    contributor: NDArray[np.int64]

    def flag(self, name: str) -> NDArray[np.bool_]:
        """A BOOLEAN column of the cells, NULL as false."""
        column: NDArray[np.bool_] = self.cells[name].combine_chunks().fill_null(False).to_numpy(zero_copy_only=False)
        return column.astype(np.bool_)


@dataclass(frozen=True)
class Options:
    """How secondary cells are chosen.

    Attributes:
        singleton: singleton method; None: the one that suits the rules.
        forced_if, hidden_if: conditions on the columns of a cell: always published, or neither published nor protected.
        secondary_zeros: whether cells of count 0 may be suppressed.
        extend_zeros: whether combinations without records are inner cells of count 0.
        cost: the column, or expression of columns, that says what publishing a cell is worth; None: count or value.
    """

    singleton: str | None = None
    forced_if: str | None = None
    hidden_if: str | None = None
    secondary_zeros: bool = False
    extend_zeros: bool = False
    cost: str | None = None


@dataclass(frozen=True)
class Pattern:
    """A publication with its suppressed cells.

    Attributes:
        inner: cells and inner cells.
        primary, secondary, forced, hidden: bool, of the cells.
        unsafe: bool, primary cells that follow from forced ones all the same.
        extend: the clusters of dimensions whose combinations are inner cells too.
    """

    inner: Inner
    primary: NDArray[np.bool_]
    secondary: NDArray[np.bool_]
    forced: NDArray[np.bool_]
    hidden: NDArray[np.bool_]
    unsafe: NDArray[np.bool_]
    extend: tuple[tuple[int, ...], ...]

    @property
    def suppressed(self) -> NDArray[np.bool_]:
        """Cells whose numbers are not shown."""
        return self.primary | self.secondary

    def null_space(self) -> NullSpace:
        """What the published cells leave open."""
        return null_space(self.inner.x, ~self.suppressed & ~self.hidden)

    def statuses(self) -> pa.Array:
        """'primary', 'secondary', 'forced', 'hidden' or 'open' for each cell."""
        status = np.full(len(self.primary), "open", dtype=object)
        status[self.secondary] = "secondary"
        status[self.primary] = "primary"
        status[self.forced] = "forced"
        status[self.hidden] = "hidden"
        return pa.array(status, pa.string())


def read_inner(session: Session, publication: Publication, rules: Rules, options: Options) -> tuple[Inner, Any]:
    """Cells, inner cells and the matrix between them, in two queries; with the clusters that zeros were added for."""
    cursor = session.cursor()
    extend = tuple(map(tuple, clusters(cursor, publication))) if options.extend_zeros else ()
    freq = publication.measure(rules.freq, "freq", "count").name
    value = publication.measure(rules.value, "value", "sum").name if rules.on_contributors else None
    conditions = {
        "_sdc_forced": checked_condition(cursor, publication, options.forced_if, "forced_if"),
        "_sdc_hidden": checked_condition(cursor, publication, options.hidden_if, "hidden_if"),
    }
    checked_condition(cursor, publication, rules.primary_if, "primary_if")
    marked = marked_cells(publication, rules, extend=extend, conditions=conditions)
    cells = _arrow(
        cursor,
        f"""SELECT _sdc_cell, _sdc_members, {identifier(freq)}::DOUBLE AS freq,
            {identifier(value) if value else "NULL"}::DOUBLE AS value, _sdc_primary, _sdc_why, _sdc_protection,
            _sdc_forced, _sdc_hidden, ({options.cost or "NULL"})::DOUBLE AS cost,
            {_FINGERPRINT.format(freq=identifier(freq))} AS fingerprint
        FROM ({marked}) ORDER BY _sdc_cell""",
    )
    inner = _arrow(cursor, _inner_query(publication, rules, extend, freq))
    members = cells["_sdc_members"].combine_chunks()
    x = DummyMatrix(
        members.offsets.to_numpy().astype(np.int64), members.values.to_numpy().astype(np.int32), inner.num_rows
    )
    values = _floats(cells, "value") if value else None
    if values is not None and not np.isfinite(values).all():
        raise SDCError(f"the measure '{value}' is NaN, infinite or too large in some cells")
    return (
        Inner(
            x,
            cells,
            _floats(cells, "freq"),
            values,
            inner["freq"].to_numpy().astype(np.int64),
            inner["contributor"].to_numpy().astype(np.int64),
        ),
        extend,
    )


_FINGERPRINT = "_sdc_cell || ' ' || {freq}"


def _inner_query(publication: Publication, rules: Rules, extend: Sequence[Sequence[int]], freq: str) -> str:
    """SQL: count and, where all records are one contributor's, its number, of each inner cell."""
    cells = publication.inner_cells(extend=extend)
    if not rules.on_contributors or rules.contributor is None:
        return f"""
            SELECT {identifier(freq)} AS freq,
                CASE WHEN {identifier(freq)} = 1 THEN _sdc_inner + 1 ELSE 0 END AS contributor
            FROM ({cells}) ORDER BY _sdc_inner"""
    counted = "true"
    if rules.not_counted:
        counted = f"_sdc_who::VARCHAR NOT IN ({', '.join(map(literal, rules.not_counted))})"
    keys = [f"_sdc_d{place}" for place in range(len(publication.dimensions))]
    shown = "".join(f"{key}, " for key in keys)
    match = " AND ".join(
        f"i.{name} IS NOT DISTINCT FROM u.{key}" for name, key in zip(publication.quoted_dimensions, keys, strict=True)
    )
    return f"""
        SELECT i.{identifier(freq)} AS freq, coalesce(u.number, 0) AS contributor
        FROM ({cells}) i LEFT JOIN (
            SELECT *, dense_rank() OVER (ORDER BY who) AS number FROM (
                SELECT {shown}min(_sdc_who) AS who FROM (
                    SELECT *, ({rules.contributor}) AS _sdc_who FROM ({publication.records})
                ) GROUP BY {", ".join(keys) or "()"} HAVING min(_sdc_who) = max(_sdc_who)
            ) WHERE {counted.replace("_sdc_who", "who")}
        ) u ON {match or "true"} ORDER BY i._sdc_inner"""


def _arrow(cursor: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    return cursor.sql(query).to_arrow_table()


def _floats(table: pa.Table, column: str) -> NDArray[np.float64]:
    values: NDArray[np.float64] = table[column].combine_chunks().fill_null(0.0).to_numpy(zero_copy_only=False)
    return values


def choose_pattern(session: Session, publication: Publication, rules: Rules, options: Options) -> Pattern:
    """Apply the rules and find the secondary cells."""
    inner, extend = read_inner(session, publication, rules, options)
    forced, hidden = inner.flag("_sdc_forced"), inner.flag("_sdc_hidden")
    primary = inner.flag("_sdc_primary") & ~forced & ~hidden
    cost = _floats(inner.cells, "cost") if options.cost is not None else None
    order = candidate_order(
        inner.x, inner.freq, weight=cost, value=inner.value, secondary_zeros=options.secondary_zeros
    )
    zeros = rules.protect_zeros or options.secondary_zeros
    singleton: NDArray[np.int64] | NDArray[np.bool_]
    if rules.on_contributors:
        method, singleton = options.singleton or "numttHTT", inner.contributor
    else:
        method, singleton = options.singleton or "anySum", inner.inner_freq == (0 if zeros else 1)
    result = suppress_secondary(
        inner.x, order, primary, forced=forced, hidden=hidden, singleton=singleton, singleton_method=method
    )
    unsafe = np.zeros(len(primary), dtype=np.bool_)
    unsafe[result.unsafe] = True
    return Pattern(inner, primary, result.secondary, forced, hidden, unsafe, extend)


def plan_primary(session: Session, text: str | None, extend_zeros: bool | None, *arguments: Any) -> str:
    """``sdc_primary``: the rules alone, in SQL."""
    publication = resolve(session, text, ("level", "status", "why", "contributors", "contributed", "largest"))
    rules = read_rules(*arguments)
    cursor = session.cursor()
    checked_condition(cursor, publication, rules.primary_if, "primary_if")
    wanted = rules.protect_zeros if extend_zeros is None else extend_zeros
    marked = marked_cells(publication, rules, extend=clusters(cursor, publication) if wanted else ())
    columns = ", ".join(identifier(name) for name in publication.columns)
    return f"""
        SELECT {columns}, level, CASE WHEN _sdc_primary THEN 'primary' ELSE 'open' END AS status,
            nullif(_sdc_why, '') AS why, _sdc_contributors AS contributors, _sdc_total AS contributed,
            _sdc_largest AS largest
        FROM ({marked}) ORDER BY _sdc_cell"""


@dataclass(frozen=True)
class Call:
    """What a function on a suppressed publication was asked."""

    publication: Publication
    rules: Rules
    options: Options
    extend: tuple[tuple[int, ...], ...]


_OPTION_COUNT = 6


def read_call(
    session: Session, text: str | None, arguments: Sequence[Any], reserved: Sequence[str] = (), *, again: bool = False
) -> Call:
    """A publication with its options and rules: those of the call, or those that a published one was made with.

    Raises:
        SDCError: anything wrong with an argument; data that changed since the publication, but for publishing `again`.
    """
    cursor = session.cursor()
    publication = resolve(session, text, reserved)
    stored = None if _is_query(str(text)) else catalog.publication(cursor, str(text).strip())
    given = [argument for argument in arguments if argument not in (None, False, [])]
    if stored is not None and stored.arguments is not None and not given:
        if not again and digest(cursor, publication) != stored.fingerprint:
            raise SDCError(f"the data of '{stored.name}' changed since it was published; use sdc_publish again")
        arguments = json.loads(stored.arguments)
    rules = read_rules(*arguments[_OPTION_COUNT:])
    options = read_options(rules, *arguments[:_OPTION_COUNT])
    for argument, condition in (
        ("primary_if", rules.primary_if), ("forced_if", options.forced_if), ("hidden_if", options.hidden_if),
    ):  # fmt: skip
        checked_condition(cursor, publication, condition, argument)
    extend = tuple(map(tuple, clusters(cursor, publication))) if options.extend_zeros else ()
    return Call(publication, rules, options, extend)


def plan_suppress(session: Session, text: str | None, *arguments: Any) -> Rows:
    """``sdc_suppress``: the publication with its suppressed numbers NULL."""
    call = read_call(session, text, arguments, ("level", "status", "suppressed", "why"))

    def make() -> pa.Table:
        return pattern_table(choose_pattern(session, call.publication, call.rules, call.options))

    return Rows(make, protected_cells(call.publication, call.rules, call.extend))


def read_options(
    rules: Rules, singleton: str | None, forced_if: str | None, hidden_if: str | None, secondary_zeros: bool | None,
    extend_zeros: bool | None, cost: str | None,
) -> Options:  # fmt: skip
    """The options from the arguments of a SQL function."""
    known = _MAGNITUDE_METHODS if rules.on_contributors else _FREQUENCY_METHODS
    if singleton is not None and singleton not in known:
        raise unknown("singleton method", singleton, known)
    return Options(
        singleton, forced_if, hidden_if, bool(secondary_zeros),
        rules.protect_zeros if extend_zeros is None else extend_zeros, cost,
    )  # fmt: skip


def pattern_table(pattern: Pattern) -> pa.Table:
    """A pattern as the rows that `protected_cells` joins."""
    cells = pattern.inner.cells
    why = pc.if_else(pa.array(pattern.primary), cells["_sdc_why"].combine_chunks(), None)
    return pa.table(
        {
            "cell": cells["_sdc_cell"].cast(pa.int64()),
            "fingerprint": cells["fingerprint"],
            "status": pattern.statuses(),
            "why": why,
        }
    )


def protected_cells(publication: Publication, rules: Rules, extend: Sequence[Sequence[int]]) -> str:
    """SQL of the published table, where ``{rows}`` is the pattern."""
    measures = {measure.name for measure in publication.measures}
    columns = ", ".join(
        f"CASE WHEN s.status IN ('open', 'forced') THEN c.{identifier(name)} END AS {identifier(name)}"
        if name in measures
        else f"c.{identifier(name)}"
        for name in publication.columns
    )
    freq = publication.measure(rules.freq, "freq", "count").name
    levels = ", ".join(literal(publication.level_of(columns)) for columns in publication.sets)
    return f"""
        SELECT {columns}, [{levels}][c._sdc_set + 1] AS level, s.status,
            s.status IN ('primary', 'secondary') AS suppressed, s.why
        FROM ({publication.cells(extend=extend)}) c FULL JOIN {{rows}} s ON c._sdc_cell = s.cell
        WHERE {_unchanged(freq, "s.status <> 'hidden'")}
        ORDER BY c._sdc_cell"""


# --- Stored publications ---------------------------------------------------------------------------------------------


def plan_publication(session: Session, name: str | None, query: str | None) -> Rows:
    """``sdc_publication``: stores a SELECT under a name."""
    if name is None or not name.strip() or any(character.isspace() for character in name):
        raise SDCError("argument 'name' must be a name without spaces")
    if query is None or not query.strip():
        raise SDCError("argument 'query' must be a SELECT .. GROUP BY")
    publication = read_publication(session.cursor(), query)

    def store() -> pa.Table:
        catalog.store_publication(session.cursor(), name, query)
        return pa.table(
            {
                "name": [name],
                "dimensions": [", ".join(publication.dimensions)],
                "measures": [", ".join(measure.name for measure in publication.measures)],
                "tables": [len(publication.sets)],
            }
        )

    return Rows(store)


def plan_drop_publication(session: Session, name: str | None) -> Rows:
    """``sdc_drop_publication``: fails while binding if there is none of that name."""
    catalog.publication(session.cursor(), str(name))

    def drop() -> pa.Table:
        catalog.drop_publication(session.cursor(), str(name))
        return pa.table({"name": [name]})

    return Rows(drop)


def plan_publish(session: Session, name: str | None, text: str | None, *arguments: Any) -> Rows:
    """``sdc_publish``: suppresses, then stores cells and stencil in one transaction."""
    if name is None or not name.strip() or any(character.isspace() for character in name):
        raise SDCError("argument 'name' must be a name without spaces")
    call = read_call(session, text or name, arguments, again=True)
    publication = call.publication
    for measure in publication.columns:
        if measure.lower() in ("stencil", "level", "status", "why"):
            raise SDCError(f"the publication has a column '{measure}', as the stored tables have: give it another name")

    def publish() -> pa.Table:
        pattern = choose_pattern(session, publication, call.rules, call.options)
        numbers = stencil(pattern.null_space(), seed=secrets.randbits(63))[:, 0]
        cursor = session.cursor()
        cursor.register("_sdc_pattern", pattern_table(pattern))
        cursor.register(
            "_sdc_numbers", pa.table({"inner_cell": np.arange(len(numbers), dtype=np.int64), "stencil": numbers})
        )
        columns = ", ".join(f"i.{identifier(column)}" for column in publication.columns)
        cursor.begin()
        try:
            shown = protected_cells(publication, call.rules, call.extend).replace("{rows}", "_sdc_pattern")
            cursor.execute(
                f"CREATE OR REPLACE TABLE {catalog.cells_table(name)} AS SELECT * EXCLUDE suppressed FROM ({shown})"
            )
            cursor.execute(
                f"CREATE OR REPLACE TABLE {catalog.stencil_table(name)} AS SELECT {columns}, n.stencil "
                f"FROM ({publication.inner_cells(extend=call.extend)}) i "
                "JOIN _sdc_numbers n ON i._sdc_inner = n.inner_cell ORDER BY i._sdc_inner"
            )
            catalog.store_publication(
                cursor, name, publication.query, json.dumps(arguments), digest(cursor, publication)
            )
            cursor.commit()
        except BaseException:
            cursor.rollback()
            raise
        return _summary(name, publication, pattern)

    return Rows(publish)


def _summary(name: str, publication: Publication, pattern: Pattern) -> pa.Table:
    inner = pattern.inner
    values = inner.freq if inner.value is None else np.abs(inner.value)
    shown = ~pattern.suppressed & ~pattern.hidden
    total = float(values[~pattern.hidden].sum())
    return pa.table(
        {
            "name": [name],
            "inner_cells": [inner.x.rows],
            "cells": [int((~pattern.hidden).sum())],
            "primary_cells": [int(pattern.primary.sum())],
            "secondary_cells": [int(pattern.secondary.sum())],
            "unsafe_cells": [int(pattern.unsafe.sum())],
            "share_shown": [float(values[shown].sum()) / total if total else 1.0],
        }
    )


# --- Audit -----------------------------------------------------------------------------------------------------------


def plan_audit(session: Session, text: str | None, measure: str | None, *arguments: Any) -> Rows:
    """``sdc_audit``: the feasibility interval of every suppressed cell."""
    call = read_call(session, text, arguments)
    publication, rules = call.publication, call.rules
    default = ("value", "sum") if rules.on_contributors else ("freq", "count")
    of_rules = rules.value if rules.on_contributors else rules.freq
    audited = publication.measure(measure or of_rules, "measure" if measure else default[0], default[1])
    for name in publication.columns:
        if name.lower() in _AUDIT_COLUMNS:
            raise SDCError(f"the publication has a column '{name}', as the result has: give it another name")

    def make() -> pa.Table:
        pattern = choose_pattern(session, publication, rules, call.options)
        inner = pattern.inner
        z = _floats(
            _arrow(
                session.cursor(),
                f"SELECT {identifier(audited.name)}::DOUBLE AS z FROM ({publication.cells(extend=call.extend)}) "
                "ORDER BY _sdc_cell",
            ),
            "z",
        )
        by_rule = audited.name == publication.measure(of_rules, *default).name
        protection = _floats(inner.cells, "_sdc_protection") if by_rule else np.zeros(len(z))
        protection = np.where(pattern.primary, protection, 0.0)
        result = audit(
            inner.x, z, pattern.suppressed, upl=protection, lower=-np.inf if (z < 0).any() else 0.0,
        )  # fmt: skip
        cells = inner.cells.take(pa.array(result.cells))
        return pa.table(
            {
                "cell": cells["_sdc_cell"].cast(pa.int64()),
                "fingerprint": cells["fingerprint"],
                "status": pattern.statuses().take(pa.array(result.cells)),
                "lower": result.lo,
                "upper": result.hi,
                "exact": result.exact,
                "protected": result.protected,
            }
        )

    dimensions = "".join(f"c.{name}, " for name in publication.quoted_dimensions)
    levels = ", ".join(literal(publication.level_of(columns)) for columns in publication.sets)
    return Rows(
        make,
        f"""SELECT {dimensions}[{levels}][c._sdc_set + 1] AS level, c.{identifier(audited.name)}::DOUBLE AS original,
            s.status, s.lower, s.upper, s.exact, s.protected
        FROM ({publication.cells(extend=call.extend)}) c JOIN {{rows}} s ON c._sdc_cell = s.cell
        ORDER BY c._sdc_cell""",
    )


_AUDIT_COLUMNS = ("level", "original", "status", "lower", "upper", "exact", "protected")

# --- Decimals ---------------------------------------------------------------------------------------------------------

_MODES = ("counts", "zeros")


def plan_decimals(
    session: Session, text: str | None, mode: str | None, replicates: int | None, seed: int | None, *arguments: Any
) -> Rows:
    """``sdc_decimals``: synthetic decimal numbers for the inner cells."""
    if mode not in _MODES:
        raise unknown("mode", str(mode), _MODES)
    if replicates is None or not 1 <= replicates <= 10:
        raise SDCError("argument 'replicates' must be between 1 and 10")
    reserved = ("decimals", *(f"d{number + 1}" for number in range(replicates)))
    call = read_call(session, text, arguments, reserved)
    publication = call.publication

    def make() -> pa.Table:
        pattern = choose_pattern(session, publication, call.rules, call.options)
        inner = pattern.inner
        values = decimals(
            inner.x,
            pattern.null_space(),
            inner.inner_freq if mode == "counts" else None,
            replicates=replicates,
            seed=secrets.randbits(63) if seed is None else seed,
        )
        lists = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), replicates)
        return pa.table(
            {"inner_cell": np.arange(inner.x.rows, dtype=np.int64), "decimals": lists.cast(pa.list_(pa.float64()))}
        )

    dimensions = "".join(f"c.{name}, " for name in publication.quoted_dimensions)
    shown = ", ".join(f"s.decimals[{number + 1}] AS d{number + 1}" for number in range(replicates))
    return Rows(
        make,
        f"""SELECT {dimensions}{shown}
        FROM ({publication.inner_cells(extend=call.extend)}) c JOIN {{rows}} s ON c._sdc_inner = s.inner_cell
        ORDER BY c._sdc_inner""",
    )


# --- Rounding ---------------------------------------------------------------------------------------------------------

_ROUNDING_METHODS = ("small_counts", "controlled", "random")


def plan_round_table(
    session: Session, text: str | None, base: int | None, method: str | None, freq: str | None,
    extend_zeros: bool | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_round_table``: the counts of a publication rounded to a base."""
    if base is None or base < 2:
        raise SDCError("argument 'base' must be at least 2")
    if method not in _ROUNDING_METHODS:
        raise unknown("method", str(method), _ROUNDING_METHODS)
    publication = resolve(session, text, ("level", "original", "rounded"))
    count = publication.measure(freq, "freq", "count")
    if count.kind != "count":
        raise SDCError("argument 'freq' must name a count(..) column: rounding to a base is for counts")
    extend = tuple(map(tuple, clusters(session.cursor(), publication))) if extend_zeros else ()

    def make() -> pa.Table:
        options = Options(extend_zeros=bool(extend_zeros))
        inner, _ = read_inner(session, publication, Rules(freq=count.name), options)
        z = inner.freq.astype(np.int64)
        chosen = secrets.randbits(63) if seed is None else seed
        if method == "random":
            rounded = random_rounding(z, base, seed=chosen)
        elif method == "controlled":
            rounded = controlled_rounding(inner.x, inner.inner_freq, base).cells
        else:
            rounded = inner.x.totals(small_count_rounding(inner.x, inner.inner_freq, base, seed=chosen)).astype(
                np.int64
            )
        return pa.table(
            {
                "cell": inner.cells["_sdc_cell"].cast(pa.int64()),
                "fingerprint": inner.cells["fingerprint"],
                "original": z,
                "rounded": rounded,
            }
        )

    dimensions = "".join(f"c.{name}, " for name in publication.quoted_dimensions)
    levels = ", ".join(literal(publication.level_of(columns)) for columns in publication.sets)
    return Rows(
        make,
        f"""SELECT {dimensions}[{levels}][c._sdc_set + 1] AS level, s.original, s.rounded
        FROM ({publication.cells(extend=extend)}) c FULL JOIN {{rows}} s ON c._sdc_cell = s.cell
        WHERE {_unchanged(count.name)} ORDER BY c._sdc_cell""",
    )


def _unchanged(freq: str, otherwise: str = "true") -> str:
    """SQL condition that fails where the cells of a statement are not those that its rows were computed from."""
    fingerprint = _FINGERPRINT.format(freq=f"c.{identifier(freq)}").replace("_sdc_cell", "c._sdc_cell")
    return (
        f"CASE WHEN s.fingerprint IS DISTINCT FROM {fingerprint} "
        "THEN error('the data changed while the cells were chosen (uncommitted changes are not seen); try again') "
        f"ELSE {otherwise} END"
    )


_RULE_TYPES = (
    "DOUBLE", "BOOLEAN", "BIGINT", "VARCHAR", "DOUBLE", "VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR",
    "VARCHAR[]", "VARCHAR",
)  # fmt: skip
_OPTION_TYPES = ("VARCHAR", "VARCHAR", "VARCHAR", "BOOLEAN", "BOOLEAN", "VARCHAR")

FAMILY = Family(
    name="suppression",
    stored=("suppression.sql",),
    temporary=("suppression_tables.sql",),
    planners=(
        Planner("sdc_primary", ("VARCHAR", "BOOLEAN", *_RULE_TYPES), plan_primary),
        Planner(
            "sdc_suppress", ("VARCHAR", *_OPTION_TYPES, *_RULE_TYPES), plan_suppress,
            {"cell": "BIGINT", "fingerprint": "VARCHAR", "status": "VARCHAR", "why": "VARCHAR"},
        ),
        Planner(
            "sdc_publication", ("VARCHAR", "VARCHAR"), plan_publication,
            {"name": "VARCHAR", "dimensions": "VARCHAR", "measures": "VARCHAR", "tables": "BIGINT"},
        ),
        Planner("sdc_drop_publication", ("VARCHAR",), plan_drop_publication, {"name": "VARCHAR"}),
        Planner(
            "sdc_publish", ("VARCHAR", "VARCHAR", *_OPTION_TYPES, *_RULE_TYPES), plan_publish,
            {"name": "VARCHAR", "inner_cells": "BIGINT", "cells": "BIGINT", "primary_cells": "BIGINT",
             "secondary_cells": "BIGINT", "unsafe_cells": "BIGINT", "share_shown": "DOUBLE"},
        ),
        Planner(
            "sdc_audit", ("VARCHAR", "VARCHAR", *_OPTION_TYPES, *_RULE_TYPES), plan_audit,
            {"cell": "BIGINT", "fingerprint": "VARCHAR", "status": "VARCHAR", "lower": "DOUBLE", "upper": "DOUBLE",
             "exact": "BOOLEAN", "protected": "BOOLEAN"},
        ),
        Planner(
            "sdc_decimals", ("VARCHAR", "VARCHAR", "BIGINT", "BIGINT", *_OPTION_TYPES, *_RULE_TYPES), plan_decimals,
            {"inner_cell": "BIGINT", "decimals": "DOUBLE[]"},
        ),
        Planner(
            "sdc_round_table", ("VARCHAR", "BIGINT", "VARCHAR", "VARCHAR", "BOOLEAN", "BIGINT"), plan_round_table,
            {"cell": "BIGINT", "fingerprint": "VARCHAR", "original": "BIGINT", "rounded": "BIGINT"},
        ),
    ),
)  # fmt: skip
