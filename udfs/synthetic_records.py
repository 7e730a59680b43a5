"""Synthetic records: planners and functions behind ``sql/synthetic_records_tables.sql``.

A statement fits its model (or loads a stored one) in the thread of its `Rows`, which answer with a handle of the model
and the number of records. The records themselves are drawn chunk by chunk while the statement reads them.
"""

from __future__ import annotations

import hmac
import json
import math
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sdcduck.udfs import synthetic_measures as measures
from sdcduck.udfs.pattern import arrow
from sdcduck.udfs.source import Source, source

from sdcduck import catalog
from sdcduck.catalog import identifier, literal
from sdcduck.errors import SDCError, unknown
from sdcduck.methods.synthesis.noise import bandwidths
from sdcduck.methods.synthesis.records import (
    CLIPPED,
    METHODS,
    Column,
    Model,
    Treatment,
    canonical_order,
    draw,
    fit,
    random_subset,
    stratum_of,
)
from sdcduck.methods.synthesis.trees import INFINITY, LARGEST_SAMPLE, MINUS_INFINITY, NAN, NULL
from sdcduck.registry import Family, Planner, Rows, Scalar, Session
from sdcduck.running import confirm, shown_checkpoint

_MOST_STRATA = 10_000
_MOST_ROWS = 10**12
_FORMAT = 1
_SHARE, _TRAIN = 0, 1  # what records are chosen for
_LARGEST = 2**63 - 1  # stands for infinite dates and timestamps, and less it for those before all others

# --- types -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Encoding:
    """How the values of a SQL type travel.

    Attributes:
        kind: 'i' (whole numbers), 'd' (doubles), 's' (texts), 't' (texts of numbers).
        encode, decode: SQL, where ``{0}`` is the value.
        low, high: range of a whole number.
        scale: what the number 1 is, for types on which numbers make sense.
    """

    kind: str
    encode: str
    decode: str
    low: float = -9.2e18
    high: float = 9.2e18
    scale: float | None = None

    @property
    def is_number(self) -> bool:
        """Whether values have an order and distances."""
        return self.kind != "s"

    def encoded(self, value: str) -> str:
        """SQL for how a value travels."""
        return self._filled(self.encode, value)

    def decoded(self, value: str) -> str:
        """SQL that gives it its type again."""
        return self._filled(self.decode, value)

    def _filled(self, sql: str, value: str) -> str:
        # The type of an enumeration holds texts of the user, which may look like anything; the value stands before it.
        return sql.replace("{0}", value, -1 if self.kind in "id" else 1)


_WHOLE = {
    "TINYINT": (-(2.0**7), 2.0**7 - 1), "SMALLINT": (-(2.0**15), 2.0**15 - 1), "INTEGER": (-(2.0**31), 2.0**31 - 1),
    "BIGINT": (-9.2e18, 9.2e18), "UTINYINT": (0.0, 2.0**8 - 1), "USMALLINT": (0.0, 2.0**16 - 1),
    "UINTEGER": (0.0, 2.0**32 - 1),
}  # fmt: skip


def _instant(sql_type: str, to_whole: str, from_whole: str) -> Encoding:
    """Dates and timestamps: whole numbers, and two for the infinite ones."""
    encode = (
        f"CASE WHEN isinf({{0}}) THEN CASE WHEN {{0}} > '-infinity'::{sql_type} THEN {_LARGEST} ELSE {-_LARGEST} END "
        f"ELSE {to_whole} END"
    )
    decode = (
        f"CASE {{0}} WHEN {_LARGEST} THEN 'infinity'::{sql_type} WHEN {-_LARGEST} THEN '-infinity'::{sql_type} "
        f"ELSE {from_whole} END"
    )
    return Encoding("i", encode, decode)


_INSTANTS = {
    "DATE": _instant("DATE", "({0} - DATE '1970-01-01')::BIGINT", "DATE '1970-01-01' + {0}::INTEGER"),
    "TIMESTAMP": _instant("TIMESTAMP", "epoch_us({0})", "make_timestamp({0})"),
    "TIMESTAMP_S": _instant("TIMESTAMP_S", "epoch_us({0}::TIMESTAMP)", "make_timestamp({0})::TIMESTAMP_S"),
    "TIMESTAMP_MS": _instant("TIMESTAMP_MS", "epoch_us({0}::TIMESTAMP)", "make_timestamp({0})::TIMESTAMP_MS"),
    "TIMESTAMP_NS": _instant("TIMESTAMP_NS", "epoch_ns({0})", "make_timestamp_ns({0})"),
    "TIMESTAMP WITH TIME ZONE": _instant("TIMESTAMPTZ", "epoch_us({0})", "make_timestamptz({0})"),
    "TIME": Encoding("i", "epoch_us({0})", "TIME '00:00:00' + to_microseconds({0})", 0.0, 86_399_999_999.0),
}


def encoding(sql_type: str) -> Encoding | None:
    """How a type travels; None for types whose values are neither numbers nor categories.

    >>> encoding("DECIMAL(9,2)").decoded("x")
    '(x::DECIMAL(18,0) * 0.01::DECIMAL(3,2))::DECIMAL(9,2)'
    """
    if sql_type in _WHOLE:
        return Encoding("i", "{0}::BIGINT", f"{{0}}::{sql_type}", *_WHOLE[sql_type], scale=1.0)
    if sql_type in ("DOUBLE", "FLOAT"):
        return Encoding("d", "{0}::DOUBLE", f"{{0}}::{sql_type}", scale=1.0)
    if found := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", sql_type):
        width, scale = int(found[1]), int(found[2])
        if width <= 18:
            to_whole = f"({{0}} * 1{'0' * scale}::DECIMAL({scale + 1},0))::BIGINT"
            unit = f"{'0.' + '0' * (scale - 1) + '1' if scale else '1'}::DECIMAL({scale + 1},{scale})"
            back = f"({{0}}::DECIMAL(18,0) * {unit})::{sql_type}"
            most = 10.0**width - 1
            return Encoding("i", to_whole, back, -most, most, scale=10.0**scale)
    if found or sql_type in ("HUGEINT", "UHUGEINT", "UBIGINT"):
        return Encoding("t", "{0}::VARCHAR", f"{{0}}::{sql_type}")
    if sql_type in _INSTANTS:
        return _INSTANTS[sql_type]
    if sql_type == "VARCHAR":
        return Encoding("s", "{0}", "{0}")
    if sql_type in ("BOOLEAN", "UUID", "JSON") or (sql_type.startswith("ENUM(") and sql_type.endswith(")")):
        return Encoding("s", "{0}::VARCHAR", f"{{0}}::{sql_type}")
    return None


def _encoding_of(name: str, sql_type: str) -> Encoding:
    found = encoding(sql_type)
    if found is None:
        kind = re.split(r"[(\[]", sql_type)[0]
        raise SDCError(
            f"column '{name}' ({kind}{'[]' if sql_type.endswith(']') else ''}) holds neither numbers nor categories: "
            "leave it out, with a query in parentheses as source, or cast it there"
        )
    return found


# --- arguments -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Output:
    """One column of the result.

    Attributes:
        name, sql_type: as in the source.
        derived: SQL that computes it from the others, or None.
    """

    name: str
    sql_type: str
    derived: str | None = None

    @property
    def encoding(self) -> Encoding:
        """How its values travel."""
        return _encoding_of(self.name, self.sql_type)


@dataclass(frozen=True)
class Plan:
    """What is to be fitted, checked as far as that can be done without reading the records.

    Attributes:
        relation: the original records.
        outputs: all columns.
        visit: places of the columns to be drawn, in this order.
        predictors: by place, the columns that it may depend on.
        by: places of the columns whose values make strata.
        smoothed: places of the numbers that get noise.
        bounds: by place, the least and largest value, encoded.
        bases: by place, what results are multiples of, encoded.
        subset: condition on the records to be synthesised, or None.
        partial: whether other columns or records stay as they are.
    """

    relation: Source
    outputs: tuple[Output, ...]
    visit: tuple[int, ...]
    predictors: dict[int, tuple[int, ...]]
    by: tuple[int, ...]
    method: str
    smallest_leaf: int
    smoothed: tuple[int, ...]
    groups: int
    exclude: tuple[float, ...]
    bounds: dict[int, tuple[float, float]]
    bases: dict[int, float]
    redraws: int
    train_rows: int | None
    max_categories: int
    count_zero: bool
    subset: str | None
    share: float | None
    partial: bool
    seed: int | None


def _positive(value: int | None, argument: str, least: int = 1) -> int:
    if value is None or value < least:
        raise SDCError(f"argument '{argument}' must be a whole number, at least {least}")
    return value


def _object(text: str | None, argument: str, example: str) -> dict[str, Any]:
    """A struct argument, from its JSON text."""
    if text is None:
        return {}
    given = json.loads(text)
    if not isinstance(given, dict):
        raise SDCError(f"argument '{argument}' must be a struct such as {example}")
    return given


class _Names:
    """Finds the places of columns by their names."""

    def __init__(self, relation: Source) -> None:
        self._relation = relation
        self.all = tuple(relation.columns)
        self._places = {name.lower(): place for place, name in enumerate(self.all)}

    def place(self, name: str | None, argument: str) -> int:
        if name is None:
            raise SDCError(f"argument '{argument}' holds a NULL")
        if name.lower() not in self._places:
            raise unknown("column", name, self.all, where=f"{self._relation.described} (argument '{argument}')")
        return self._places[name.lower()]

    def places(self, names: Sequence[str] | None, argument: str) -> list[int]:
        found = [self.place(name, argument) for name in names or ()]
        if len(set(found)) < len(found):
            raise SDCError(f"argument '{argument}' names a column twice")
        return found

    def by_place(self, given: dict[str, Any], argument: str) -> dict[int, Any]:
        places = self.places(list(given), argument)
        return dict(zip(places, given.values(), strict=True))


def _conditions_bind(cursor: duckdb.DuckDBPyConnection, sql: str, columns: str, relation: Source, what: str) -> None:
    try:
        cursor.execute(f"SELECT {sql} FROM (SELECT {columns} FROM {relation.sql}) LIMIT 0")
    except duckdb.Error as problem:
        raise SDCError(f"{what}: {str(problem).splitlines()[0]}") from None


def _bounds(
    cursor: duckdb.DuckDBPyConnection, names: _Names, outputs: Sequence[Output], drawn: Sequence[int],
    text: str | None, non_negative: list[str] | None,
) -> dict[int, tuple[float, float]]:  # fmt: skip
    """Least and largest values by column, as the numbers that travel."""
    example = "{'income': [0, NULL]}"
    found: dict[int, list[float]] = {}
    for place, pair in names.by_place(_object(text, "bounds", example), "bounds").items():
        if not isinstance(pair, list) or len(pair) != 2:
            raise SDCError(f"argument 'bounds' must hold pairs of a least and a largest value: {example}")
        found[place] = [-math.inf, math.inf]
        for end, value in enumerate(pair):
            if value is not None:
                found[place][end] = _encoded(cursor, outputs[place], value)
        if found[place][0] > found[place][1]:
            raise SDCError(f"argument 'bounds': nothing lies between the bounds of '{outputs[place].name}'")
    for place in names.places(non_negative, "non_negative"):
        low, high = found.get(place, [-math.inf, math.inf])
        if high < 0:
            raise SDCError(f"argument 'non_negative': the upper bound of '{outputs[place].name}' is negative")
        found[place] = [max(0.0, low), high]
    for place in found:
        _check_changeable(outputs[place], drawn, place, "bounds")
    return {place: (low, high) for place, (low, high) in found.items()}


def _check_changeable(output: Output, drawn: Sequence[int], place: int, argument: str) -> None:
    if place not in drawn:
        raise SDCError(f"argument '{argument}' names '{output.name}', which is not drawn")
    if output.encoding.kind == "s":
        raise SDCError(f"argument '{argument}' names '{output.name}', which is not a number")
    if output.encoding.kind == "t":
        raise SDCError(
            f"column '{output.name}' has numbers of too many digits for argument '{argument}': "
            "cast it to BIGINT, DOUBLE or a DECIMAL of at most 18 digits"
        )


def _encoded(cursor: duckdb.DuckDBPyConnection, output: Output, value: object) -> float:
    """A bound as the number that travels."""
    try:
        given = f"CAST({literal(str(value))} AS {output.sql_type})"
        row = cursor.execute(f"SELECT ({output.encoding.encoded(given)})::DOUBLE").fetchall()[0]
        number = float(row[0])
    except (duckdb.Error, TypeError):
        raise SDCError(f"argument 'bounds': a bound of '{output.name}' is not of its type") from None
    if math.isnan(number):
        raise SDCError(f"argument 'bounds': a bound of '{output.name}' is not a number")
    return number


def _smoothed(
    names: _Names, outputs: Sequence[Output], drawn: Sequence[int], text: str | None, method: str
) -> tuple[int, ...]:
    """The columns that get noise."""
    given = json.loads(text) if text is not None else ("density" if method == "bootstrap-noise" else "none")
    if isinstance(given, str):
        if given not in ("none", "density"):
            raise unknown("smoothing", given, ("none", "density"))
        numbers = [place for place in drawn if outputs[place].encoding.is_number]
        chosen = numbers if given == "density" else []
    elif isinstance(given, dict):
        by_place = names.by_place(given, "smoothing")
        for how in by_place.values():
            if how not in ("none", "density"):
                raise unknown("smoothing", str(how), ("none", "density"))
        chosen = [place for place, how in by_place.items() if how == "density"]
    else:
        raise SDCError("argument 'smoothing' must be 'none', 'density' or a struct such as {'income': 'density'}")
    for place in chosen:
        _check_changeable(outputs[place], drawn, place, "smoothing")
    if method == "bootstrap-noise" and not chosen and any(outputs[place].encoding.is_number for place in drawn):
        raise SDCError("method := 'bootstrap-noise' without smoothing would hand out original records")
    return tuple(sorted(chosen))


def _predictors(
    names: _Names, text: str | None, visit: Sequence[int], kept: Sequence[int]
) -> dict[int, tuple[int, ...]]:
    """By column to be drawn: the kept ones and those drawn before it, or those of them that the user names."""
    example = "{'income': ['age', 'sex']}"
    allowed = names.by_place(_object(text, "predictors", example), "predictors")
    found: dict[int, tuple[int, ...]] = {}
    for position, place in enumerate(visit):
        known = (*kept, *visit[:position])
        if place in allowed:
            if not isinstance(allowed[place], list):
                raise SDCError(f"argument 'predictors' must hold lists of columns: {example}")
            chosen = names.places(allowed.pop(place), "predictors")
            for other in chosen:
                if other not in known:
                    raise SDCError(
                        f"argument 'predictors': '{names.all[other]}' is not known when '{names.all[place]}' is drawn; "
                        "put it before in argument 'visit'"
                    )
            known = tuple(chosen)
        found[place] = tuple(sorted(known))
    for place in allowed:
        raise SDCError(f"argument 'predictors' names '{names.all[place]}', which is not drawn")
    return found


def _seed(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        seed = int(text)
    except ValueError:
        seed = 2**63
    if not -(2**63) <= seed < 2**63:
        raise SDCError("argument 'seed' must be a whole number of 64 bits")
    return seed


def _stream(session: Session, seed: int | None) -> int:
    """What the random streams start from: the seed under the secret of the connection, or the seed alone."""
    secret = session.secret()
    if secret is None:
        return 0 if seed is None else seed
    digest = hmac.digest(secret, f"sdcduck: synthetic records {seed}".encode(), "sha256")
    return int.from_bytes(digest[:8], "big", signed=True)


def _check_seed(session: Session, seed: int | None) -> None:
    if seed is None and session.secret() is None:
        raise SDCError(
            "whoever knows the seed of a synthesis can make it again: open the database with a secret, or give "
            "seed := a large random number and keep it"
        )


_COMMON = (
    "VARCHAR[]", "VARCHAR", "VARCHAR[]", "VARCHAR", "BIGINT", "VARCHAR", "BIGINT", "DOUBLE[]", "VARCHAR", "VARCHAR[]",
    "VARCHAR", "BIGINT", "VARCHAR", "BIGINT", "BIGINT", "BOOLEAN",
)  # fmt: skip
_DEFAULTS: tuple[Any, ...] = (
    [], "cart", [], None, 5, None, 20, [0.0], None, [], None, 3, None, None, 1000, True,
)  # fmt: skip
_NAMES = (
    "by", "method", "visit", "predictors", "minbucket", "smoothing", "groups", "exclude", "bounds", "non_negative",
    "round_to", "redraws", "derived", "train_rows", "max_categories", "count_zero",
)  # fmt: skip


def read_plan(
    session: Session, text: str | None, targets: list[str] | None, subset: str | None, share: float | None,
    seed: str | None, by: list[str] | None, method: str | None, visit: list[str] | None, predictors: str | None,
    minbucket: int | None, smoothing: str | None, groups: int | None, exclude: list[float] | None,
    bounds: str | None, non_negative: list[str] | None, round_to: str | None, redraws: int | None,
    derived: str | None, train_rows: int | None, max_categories: int | None, count_zero: bool | None,
) -> Plan:  # fmt: skip
    """The arguments, checked.

    Raises:
        SDCError: one of them cannot be used.
    """
    if method not in METHODS:
        raise unknown("method", str(method), METHODS)
    if method == "cart" and find_spec("sklearn") is None:
        raise SDCError("method := 'cart' needs scikit-learn: pip install 'sdcduck[synthesis]'")
    cursor = session.cursor()
    relation = source(cursor, text, "source")
    names = _Names(relation)
    formulas = names.by_place(_object(derived, "derived", "{'total': 'wages + interest'}"), "derived")
    outputs = tuple(
        Output(name, sql_type, None if formulas.get(place) is None else str(formulas[place]))
        for place, (name, sql_type) in enumerate(relation.columns.items())
    )
    others = ", ".join(identifier(output.name) for output in outputs if output.derived is None)
    if not others:
        raise SDCError("argument 'derived' leaves no column to be drawn")
    for output in outputs:
        if output.name.lower().startswith("_sdc_"):
            raise SDCError(f"a column may not begin with _sdc_: '{output.name}'; give it another name in a query")
        if output.derived is not None:
            what = f"argument 'derived': '{output.name}' must be computed from columns that are not derived"
            _conditions_bind(cursor, f"({output.derived})::{output.sql_type}", others, relation, what)
    strata = names.places(by, "by")
    not_drawn = {*strata, *formulas}
    asked = names.places(targets, "targets") or [place for place in range(len(outputs)) if place not in not_drawn]
    for place in asked:
        if place in not_drawn:
            raise SDCError(f"column '{outputs[place].name}' cannot be a target: it is in argument 'by' or 'derived'")
    first = names.places(visit, "visit")
    for place in first:
        if place not in asked:
            raise SDCError(f"argument 'visit' names '{outputs[place].name}', which is not drawn")
    order = (*first, *(place for place in asked if place not in first))
    kept = [place for place in range(len(outputs)) if place not in order and place not in not_drawn]
    if not order:
        raise SDCError("there is no column left to be drawn")
    if subset is not None:
        every = ", ".join(identifier(output.name) for output in outputs)
        _conditions_bind(cursor, f"({subset})::BOOLEAN", every, relation, "argument 'subset' must be a condition")
    if share is not None and not 0 <= share <= 1:
        raise SDCError("argument 'share' must lie between 0 and 1")
    partial = bool(kept) or subset is not None or share is not None
    for place, output in enumerate(outputs):
        if partial or place not in formulas:
            _ = output.encoding
    bases: dict[int, float] = {}
    for place, base in names.by_place(_object(round_to, "round_to", "{'income': 100}"), "round_to").items():
        _check_changeable(outputs[place], order, place, "round_to")
        scale = outputs[place].encoding.scale
        if scale is None or isinstance(base, bool) or not isinstance(base, int | float) or not base > 0:
            raise SDCError("argument 'round_to' must hold positive numbers, for columns of numbers: {'income': 100}")
        bases[place] = float(base) * scale
    return Plan(
        relation=relation,
        outputs=outputs,
        visit=order,
        predictors=_predictors(names, predictors, order, kept),
        by=tuple(strata),
        method=method,
        smallest_leaf=_positive(minbucket, "minbucket"),
        smoothed=_smoothed(names, outputs, order, smoothing, method),
        groups=_positive(groups, "groups"),
        exclude=tuple(value for value in exclude or () if value is not None),
        bounds=_bounds(cursor, names, outputs, order, bounds, non_negative),
        bases=bases,
        redraws=_positive(redraws, "redraws", 0),
        train_rows=None if train_rows is None else _positive(train_rows, "train_rows"),
        max_categories=_positive(max_categories, "max_categories"),
        count_zero=bool(count_zero),
        subset=subset,
        share=share,
        partial=partial,
        seed=_seed(seed),
    )


# --- the original records --------------------------------------------------------------------------------------------

Dictionary: TypeAlias = NDArray[Any] | pa.Array
"""The distinct values of a column, in the order of their codes."""


@dataclass(frozen=True)
class Encoded:
    """A column of the records, and the values that its codes stand for."""

    column: Column
    dictionary: Dictionary

    def restricted(self, records: NDArray[np.int64]) -> Encoded:
        """The column of some of the records, with the values of these only."""
        codes = self.column.codes[records]
        used = np.unique(codes[codes >= 0])
        renewed = np.where(codes >= 0, np.searchsorted(used, codes), codes).astype(np.int32)
        taken = self.dictionary[used] if isinstance(self.dictionary, np.ndarray) else self.dictionary.take(used)
        values = None if self.column.values is None else self.column.values[used]
        return Encoded(Column(renewed, len(used), values), taken)


def _encode(values: pa.ChunkedArray, kind: str) -> Encoded:
    """Codes of the values: places among the distinct ones, which are sorted."""
    if kind in ("s", "t"):
        texts = values.combine_chunks().cast(pa.string()).dictionary_encode()
        dictionary = texts.dictionary
        if kind == "t":
            numbers = dictionary.cast(pa.float64()).to_numpy(zero_copy_only=False)
            order = np.lexsort((pc.rank(dictionary).to_numpy(), numbers))
        else:
            order = pc.sort_indices(dictionary).to_numpy()
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order))
        places = texts.indices.fill_null(0).to_numpy(zero_copy_only=False)
        missing = texts.indices.is_null().to_numpy(zero_copy_only=False)
        codes = np.where(missing, NULL, rank[places] if len(rank) else NULL).astype(np.int32)
        return Encoded(Column(codes, len(order), numbers[order] if kind == "t" else None), dictionary.take(order))
    numbers = values.combine_chunks()
    missing = numbers.is_null().to_numpy(zero_copy_only=False)
    plain = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    codes = np.where(missing, NULL, 0).astype(np.int32)
    if kind == "d":
        special = {NAN: np.isnan(plain), MINUS_INFINITY: plain == -np.inf, INFINITY: plain == np.inf}
    else:
        special = {MINUS_INFINITY: plain == -_LARGEST, INFINITY: plain == _LARGEST}
    for code, those in special.items():
        codes[those & ~missing] = code
    finite = codes == 0
    distinct, places = np.unique(plain[finite], return_inverse=True)
    codes[finite] = places
    return Encoded(Column(codes, len(distinct), distinct.astype(np.float64)), distinct)


def _read(session: Session, plan: Plan) -> tuple[list[Encoded | None], NDArray[np.bool_]]:
    """The columns that are needed, and which records are to be synthesised."""
    needed = [place for place, output in enumerate(plan.outputs) if plan.partial or output.derived is None]
    shown = [
        f"{plan.outputs[place].encoding.encoded(identifier(plan.outputs[place].name))} AS c{place}" for place in needed
    ]
    condition = "true" if plan.subset is None else f"coalesce(({plan.subset})::BOOLEAN, false)"
    table = arrow(session.cursor(), f"SELECT {', '.join(shown)}, {condition} AS chosen FROM {plan.relation.sql}")
    columns: list[Encoded | None] = [None] * len(plan.outputs)
    for place in needed:
        columns[place] = _encode(table[f"c{place}"], plan.outputs[place].encoding.kind)
    return columns, table["chosen"].combine_chunks().to_numpy(zero_copy_only=False)


def _strata(columns: Sequence[Column], by: Sequence[int], records: NDArray[np.int64]) -> NDArray[np.int64]:
    """The stratum of each of the records."""
    if not by or not len(records):
        return np.zeros(len(records), np.int64)
    codes = np.column_stack([columns[place].codes[records] for place in by])
    distinct, places = np.unique(codes, axis=0, return_inverse=True)
    if len(distinct) > _MOST_STRATA:
        raise SDCError(f"argument 'by' makes more than {_MOST_STRATA} strata: take coarser columns")
    return places.ravel().astype(np.int64)


def _treatments(plan: Plan, columns: Sequence[Column], training: NDArray[np.int64]) -> dict[int, Treatment]:
    """What is done to the numbers after their draw."""
    found = {}
    for place in plan.visit:
        if place not in plan.smoothed and place not in plan.bounds and place not in plan.bases:
            continue
        column, how = columns[place], plan.outputs[place].encoding
        assert column.values is not None
        widths = None
        if place in plan.smoothed and column.size:
            codes = column.codes[training]
            counts = np.bincount(codes[codes >= 0], minlength=column.size)
            used = np.flatnonzero(counts)
            unchanged = np.array(plan.exclude if how.scale else (), np.float64) * (how.scale or 1.0)
            widths = np.zeros(column.size)
            if len(used):
                widths[used] = bandwidths(column.values[used], counts[used], plan.groups, unchanged)
        low, high = plan.bounds.get(place, (-math.inf, math.inf))
        whole = how.kind == "i"
        found[place] = Treatment(
            bandwidths=widths, low=max(low, how.low) if whole else low, high=min(high, how.high) if whole else high,
            base=plan.bases.get(place, 0.0), whole=whole,
        )  # fmt: skip
    return found


def _check_categories(plan: Plan, columns: Sequence[Encoded | None]) -> None:
    for place in plan.visit:
        column = columns[place]
        assert column is not None
        if plan.method == "cart" and column.column.values is None and column.column.size > plan.max_categories:
            raise SDCError(
                f"column '{plan.outputs[place].name}' has {column.column.size} different texts, more than "
                f"max_categories := {plan.max_categories}: leave it out (a query in parentheses as source), group it, "
                "or raise max_categories if its texts tell nothing about single persons"
            )


@dataclass(frozen=True)
class Header:
    """What a stored model says beside its arrays."""

    outputs: tuple[Output, ...]
    drawn: tuple[int, ...]
    bounded: tuple[int, ...]
    redraws: int

    def text(self) -> str:
        """As JSON."""
        columns = [{"name": o.name, "type": o.sql_type, "derived": o.derived} for o in self.outputs]
        return json.dumps(
            {
                "format": _FORMAT, "columns": columns, "drawn": list(self.drawn), "bounded": list(self.bounded),
                "redraws": self.redraws,
            }
        )  # fmt: skip

    @classmethod
    def parse(cls, text: str) -> Header:
        given = json.loads(text)
        if given.get("format") != _FORMAT:
            raise SDCError("the model was stored by a newer sdcduck")
        outputs = tuple(Output(column["name"], column["type"], column["derived"]) for column in given["columns"])
        return cls(outputs, tuple(given["drawn"]), tuple(given["bounded"]), given["redraws"])


_CHUNK = 2048  # records that DuckDB handles at a time
_BLOCK, _BLOCKS_KEPT = 2**15, 4


@dataclass(frozen=True)
class Drawn:
    """Records that have been drawn: what they are, whether they were chosen, and what `draw` says of them."""

    codes: NDArray[np.int32]
    chosen: NDArray[np.bool_]
    results: NDArray[np.float64]
    changed: NDArray[np.uint8]
    different: NDArray[np.int32]

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All of it, record by record."""
        return self.codes, self.chosen, self.results, self.changed, self.different


@dataclass
class Generator:
    """A model at work for one statement.

    Attributes:
        kept: codes of all columns of the original records, of a partial synthesis; else None.
        chosen, strata, numbers: by original record, of a partial synthesis.
        served: how many records have been drawn.
    """

    model: Model
    outputs: tuple[Output, ...]
    dictionaries: tuple[Dictionary | None, ...]
    rows: int
    stream: int
    redraws: int
    details: bool
    kept: NDArray[np.int32] | None = None
    chosen: NDArray[np.bool_] | None = None
    strata: NDArray[np.int64] | None = None
    numbers: NDArray[np.int64] | None = None
    served: int = 0
    blocks: OrderedDict[int, Drawn] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def records(self, numbers: NDArray[np.int64]) -> Drawn:
        """Some records; a block of neighbours is drawn at once, because a tree that is at hand is walked faster."""
        first, last = int(numbers.min()), int(numbers.max())
        block = first // _BLOCK
        if last - first != len(numbers) - 1 or last // _BLOCK != block:
            return self._draw(numbers)
        with self.lock:
            if block not in self.blocks:
                self.blocks[block] = self._draw(np.arange(block * _BLOCK, min((block + 1) * _BLOCK, self.rows)))
                while len(self.blocks) > _BLOCKS_KEPT:
                    self.blocks.popitem(last=False)
            drawn = self.blocks[block]
        return Drawn(*(array[numbers - block * _BLOCK] for array in drawn.arrays))

    def _draw(self, numbers: NDArray[np.int64]) -> Drawn:
        model = self.model
        if self.kept is None:
            strata = stratum_of(model, numbers, self.rows)
            codes = model.strata_codes.reshape(len(model.strata_sizes), -1)[strata].copy()
            chosen, streams = np.ones(len(numbers), bool), numbers
        else:
            assert self.strata is not None
            assert self.chosen is not None
            assert self.numbers is not None
            codes, strata = self.kept[numbers].copy(), self.strata[numbers]
            chosen, streams = self.chosen[numbers], self.numbers[numbers]
        return Drawn(codes, chosen, *draw(model, streams, strata, codes, chosen, self.stream, self.redraws))


def _fitted(session: Session, plan: Plan, rows: int | None, *, details: bool) -> Generator:
    """Read the records and fit the model."""
    encoded, chosen = _read(session, plan)
    stream = _stream(session, plan.seed)
    _check_categories(plan, encoded)
    count = len(chosen)
    present = [column for column in encoded if column is not None]
    order = canonical_order([column.column for column in present]) if count else np.empty(0, np.int64)
    training = order[chosen[order]]
    if plan.share is not None:
        some = random_subset(stream, len(training), math.floor(plan.share * len(training)), _SHARE)
        training = training[some]
        chosen = np.zeros(count, bool)
        chosen[training] = True
    if plan.train_rows is not None and plan.train_rows < len(training):
        training = training[random_subset(stream, len(training), plan.train_rows, _TRAIN)]
    if len(training) > LARGEST_SAMPLE:
        raise SDCError(f"a model learns from at most {LARGEST_SAMPLE} records: give train_rows")
    if not plan.partial:
        # What the model does not learn from, it must not know.
        encoded = [None if column is None else column.restricted(training) for column in encoded]
        training = np.arange(len(training))
    nothing = Column(np.full(max(count, 1), NULL, np.int32), 0)
    columns = [nothing if column is None else column.column for column in encoded]
    of_training = _strata(columns, plan.by, np.arange(count) if plan.partial else training)
    labels = of_training[training] if plan.partial else of_training
    strata = [training[labels == stratum] for stratum in np.unique(labels)] if len(training) else []
    predictors = {
        place: [
            other for other in others if columns[other].values is not None or columns[other].size <= plan.max_categories
        ]
        for place, others in plan.predictors.items()
    }
    model = fit(
        columns, plan.visit, predictors, strata, plan.by, _treatments(plan, columns, training), method=plan.method,
        smallest_leaf=plan.smallest_leaf, count_zero=plan.count_zero, check=shown_checkpoint(),
    )  # fmt: skip
    dictionaries = tuple(None if column is None else column.dictionary for column in encoded)
    generator = Generator(
        model, plan.outputs, dictionaries, count if rows is None else rows, stream, plan.redraws, details
    )
    if plan.partial:
        generator.kept = np.column_stack([column.codes for column in columns]).astype(np.int32)[:count]
        generator.chosen = chosen
        # A sample may leave a whole stratum out, which then stays as it is.
        known = np.unique(labels)
        place = np.searchsorted(known, of_training)
        inside = (place < len(known)) & np.isin(of_training, known)
        generator.strata = np.where(inside, place, 0)
        generator.chosen = chosen & inside
        generator.numbers = np.empty(count, np.int64)
        generator.numbers[order] = np.arange(count)
    elif generator.rows and not len(training):
        raise SDCError("there are no records to learn from")
    return generator


# --- drawing ---------------------------------------------------------------------------------------------------------

_MOST_GENERATORS = 16
_GENERATORS: OrderedDict[str, Generator] = OrderedDict()
"""Of the statements that are running, and of a few that ended early: nobody says when a statement ends."""
_LOCK = threading.Lock()


def _remember(generator: Generator) -> pa.Table:
    """Keep a generator for the statement that reads its records; answers with its handle."""
    handle = secrets.token_hex(16)
    with _LOCK:
        _GENERATORS[handle] = generator
        while len(_GENERATORS) > _MOST_GENERATORS:
            _GENERATORS.popitem(last=False)
    return pa.table({"model": [handle], "records": [generator.rows]})


def drawn_records(session: Session, handles: pa.ChunkedArray, numbers: pa.ChunkedArray) -> pa.Array:
    """The synthetic records with these numbers: for each the lists of its doubles, whole numbers and texts."""
    handle = handles[0].as_py()
    with _LOCK:
        generator = _GENERATORS.get(handle)
        if generator is None:
            raise SDCError("too many statements draw synthetic records at the same time")
        _GENERATORS.move_to_end(handle)
        generator.served += len(numbers)
        if generator.served >= generator.rows:
            del _GENERATORS[handle]
    return _records(generator, numbers.to_numpy())


def _records(generator: Generator, numbers: NDArray[np.int64]) -> pa.Array:
    drawn = generator.records(numbers)
    codes, results, changed, different = drawn.codes, drawn.results, drawn.changed, drawn.different
    places = _places(generator.outputs, partial=generator.kept is not None)
    lists = [
        _doubles(generator, places["d"], codes, results, changed),
        _whole_numbers(generator, places["i"], codes, results, changed),
        _texts(generator, places["s"], codes),
        pa.array(drawn.chosen),
    ]
    if generator.details:
        lists += [
            _list(pa.array(different.ravel().astype(np.int64), mask=(different < 0).ravel()), len(numbers)),
            _list(pa.array((changed == CLIPPED).ravel()), len(numbers)),
        ]
    else:
        nothing = pa.nulls(len(numbers))
        lists += [nothing.cast(pa.list_(pa.int64())), nothing.cast(pa.list_(pa.bool_()))]
    return pa.StructArray.from_arrays(lists, [name for name, _ in _DRAWN])


_DRAWN = (
    ("d", "DOUBLE[]"), ("i", "BIGINT[]"), ("s", "VARCHAR[]"), ("chosen", "BOOLEAN"), ("diversity", "BIGINT[]"),
    ("clipped", "BOOLEAN[]"),
)  # fmt: skip


def _places(outputs: Sequence[Output], *, partial: bool) -> dict[str, list[int]]:
    """The columns of each list of a drawn record."""
    found: dict[str, list[int]] = {"d": [], "i": [], "s": []}
    for place, output in enumerate(outputs):
        if partial or output.derived is None:
            kind = output.encoding.kind
            found["s" if kind == "t" else kind].append(place)
    return found


def _list(flat: pa.Array, rows: int) -> pa.ListArray:
    """The rows of a matrix as lists."""
    width = len(flat) // rows if rows else 0
    return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32) * width), flat)


def _doubles(
    generator: Generator, places: list[int], codes: NDArray[np.int32], results: NDArray[np.float64],
    changed: NDArray[np.uint8],
) -> pa.ListArray:  # fmt: skip
    values = np.zeros((len(codes), len(places)))
    for at, place in enumerate(places):
        code = codes[:, place]
        taken = _taken(generator.dictionaries[place], code).astype(np.float64)
        taken = np.where(changed[:, place] > 0, results[:, place], taken)
        for special, number in ((NAN, np.nan), (MINUS_INFINITY, -np.inf), (INFINITY, np.inf)):
            taken[code == special] = number
        values[:, at] = taken
    missing = codes[:, places] == NULL
    return _list(pa.array(values.ravel(), mask=missing.ravel()), len(codes))


def _whole_numbers(
    generator: Generator, places: list[int], codes: NDArray[np.int32], results: NDArray[np.float64],
    changed: NDArray[np.uint8],
) -> pa.ListArray:  # fmt: skip
    values = np.zeros((len(codes), len(places)), np.int64)
    for at, place in enumerate(places):
        code = codes[:, place]
        rounded = np.rint(np.clip(results[:, place], -9.2e18, 9.2e18)).astype(np.int64)
        taken = np.where(changed[:, place] > 0, rounded, _taken(generator.dictionaries[place], code))
        taken[code == MINUS_INFINITY] = -_LARGEST
        taken[code == INFINITY] = _LARGEST
        values[:, at] = taken
    missing = codes[:, places] == NULL
    return _list(pa.array(values.ravel(), mask=missing.ravel()), len(codes))


def _taken(dictionary: Dictionary | None, codes: NDArray[np.int32]) -> NDArray[Any]:
    assert isinstance(dictionary, np.ndarray)
    if not len(dictionary):
        return np.zeros(len(codes), dictionary.dtype)
    return dictionary[np.maximum(codes, 0)]


def _texts(generator: Generator, places: list[int], codes: NDArray[np.int32]) -> pa.ListArray:
    dictionaries = [generator.dictionaries[place] for place in places]
    starts = np.cumsum([0, *(0 if dictionary is None else len(dictionary) for dictionary in dictionaries)])
    chosen = codes[:, places]
    flat = pa.array((chosen + starts[:-1]).ravel().astype(np.int64), mask=(chosen < 0).ravel())
    texts = pa.concat_arrays([pa.array([], pa.string()), *(d for d in dictionaries if d is not None)])
    return _list(texts.take(flat), len(codes))


# --- planners --------------------------------------------------------------------------------------------------------


def _select(
    outputs: Sequence[Output], drawn: Sequence[int], bounded: Sequence[int], *, partial: bool, details: bool
) -> str:
    """The statement that draws the records and gives the columns their types."""
    inner, final = [], []
    for kind, places in _places(outputs, partial=partial).items():
        for at, place in enumerate(places):
            output = outputs[place]
            value = output.encoding.decoded(f"_sdc_r.{kind}[{at + 1}]")
            name = identifier(f"_sdc_kept_{place}") if output.derived is not None else identifier(output.name)
            inner.append(f"{value} AS {name}")
    for place, output in enumerate(outputs):
        name = identifier(output.name)
        if output.derived is None:
            final.append(name)
        else:
            made = f"({output.derived})::{output.sql_type}"
            kept = f"CASE WHEN _sdc_chosen THEN {made} ELSE _sdc_kept_{place} END" if partial else made
            final.append(f"{kept} AS {name}")
    inner.append("_sdc_r.chosen AS _sdc_chosen")
    if details:
        for what, list_of, shown in (("ldiv", "diversity", drawn), ("clipped", "clipped", bounded)):
            for place in shown:
                name = identifier(f"{what}_{outputs[place].name}")
                inner.append(f"_sdc_r.{list_of}[{place + 1}] AS {identifier(f'_sdc_{what}_{place}')}")
                final.append(f"{identifier(f'_sdc_{what}_{place}')} AS {name}")
    # A range that another table gives the length of is made at once, and handed out from its end: so it is one of
    # chunks, whose numbers are made as they are needed.
    return (
        f"SELECT {', '.join(final)} FROM (SELECT {', '.join(inner)} FROM ("
        "SELECT _sdc_synth_draw(model, number) AS _sdc_r FROM ("
        f"SELECT model, unnest(range(first, least(first + {_CHUNK}, records))) AS number FROM ("
        f"SELECT model, records, (chunks - 1 - chunk) * {_CHUNK} AS first FROM ("
        f"SELECT model, records, (records + {_CHUNK - 1}) // {_CHUNK} AS chunks FROM {{rows}}) _sdc_m, "
        "range(chunks) _sdc_t(chunk)))))"
    )


def plan_synth_records(
    session: Session, text: str | None, targets: list[str] | None, rows: int | None, subset: str | None,
    share: float | None, details: bool | None, model: str | None, seed: str | None, *common: Any,
) -> Rows:  # fmt: skip
    """``sdc_synth_records``: from a source, or from a stored model."""
    if rows is not None and not 0 <= rows <= _MOST_ROWS:
        raise SDCError(f"argument 'rows' must be a whole number between 0 and {_MOST_ROWS}")
    _check_seed(session, _seed(seed))
    if model is not None:
        given = {"source": text, "targets": targets or None, "subset": subset, "share": share}
        given |= {
            name: value
            for name, value, default in zip(_NAMES, common, _DEFAULTS, strict=True)
            if (value or None) != (default or None)
        }
        for name, value in given.items():
            if value is not None:
                raise SDCError(f"argument '{name}' cannot be given with 'model': it belongs to sdc_synth_model")
        return _from_stored(session, model, rows, _seed(seed), details=bool(details))
    plan = read_plan(session, text, targets, subset, share, seed, *common)
    if plan.partial and rows is not None:
        raise SDCError(
            "argument 'rows' is for records that are wholly synthetic; here others stay, so that their number is given"
        )
    bounded = sorted(plan.bounds)
    _check_detail_names(plan.outputs, plan.visit, bounded, details=bool(details))
    return Rows(
        lambda: _remember(_fitted(session, plan, rows, details=bool(details))),
        _select(plan.outputs, plan.visit, bounded, partial=plan.partial, details=bool(details)),
    )


def _check_detail_names(
    outputs: Sequence[Output], drawn: Sequence[int], bounded: Sequence[int], *, details: bool
) -> None:
    if not details:
        return
    taken = {output.name.lower() for output in outputs}
    for name in [f"ldiv_{outputs[p].name}" for p in drawn] + [f"clipped_{outputs[p].name}" for p in bounded]:
        if name.lower() in taken:
            raise SDCError(f"a column called '{name}' is also one of the details; give it another name in a query")


def plan_synth_model(
    session: Session, name: str | None, text: str | None, seed: str | None, replace: bool | None, *common: Any
) -> Rows:
    """``sdc_synth_model``: fits and stores, all or nothing."""
    if name is None or not name.strip():
        raise SDCError("argument 'name' must be a name for the model")
    if not replace and name in catalog.synth_models(session.cursor()):
        raise SDCError(f"there is a model '{name}'; give replace := true, or drop it with sdc_drop_synth_model")
    plan = read_plan(session, text, None, None, None, seed, *common)

    def store() -> pa.Table:
        generator = _fitted(session, plan, 0, details=False)
        records = int(generator.model.strata_sizes.sum())
        if not records:
            raise SDCError("there are no records to learn from")
        header = Header(plan.outputs, plan.visit, tuple(sorted(plan.bounds)), plan.redraws)
        stored = catalog.SynthModel(
            name, plan.method, ", ".join(output.name for output in plan.outputs), records, header.text(),
            _to_bytes(generator),
        )  # fmt: skip
        confirm()  # somebody who interrupted the statement must not find it stored
        catalog.store_synth_model(session.cursor(), stored)
        return pa.table({"name": [name], "method": [plan.method], "records": [records], "bytes": [len(stored.arrays)]})

    return Rows(store)


def _to_bytes(generator: Generator) -> bytes:
    """All arrays as one row of lists, in the format of Arrow."""
    columns: dict[str, pa.Array] = {name: pa.array(array) for name, array in generator.model.arrays().items()}
    for place, dictionary in enumerate(generator.dictionaries):
        if dictionary is not None:
            columns[f"dictionary_{place}"] = pa.array(dictionary)
    row = pa.table(
        {
            name: pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)
            for name, array in columns.items()
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(row)
    return bytes(sink.getvalue().to_pybytes())


def _from_bytes(header: Header, stored: bytes) -> tuple[Model, tuple[Dictionary | None, ...]]:
    row = pa.ipc.open_stream(stored).read_all()

    def array(name: str) -> pa.Array:
        return row[name].combine_chunks().flatten()

    names = [name for name in row.column_names if not name.startswith("dictionary_")]
    # Of their own memory: numba takes no arrays that cannot be written to where others can.
    model = Model(**{name: np.array(array(name).to_numpy(zero_copy_only=False)) for name in names})
    model.check()
    dictionaries: list[Dictionary | None] = []
    for place, output in enumerate(header.outputs):
        if output.derived is not None:
            dictionaries.append(None)
        elif output.encoding.kind in ("s", "t"):
            dictionaries.append(array(f"dictionary_{place}"))
        else:
            dictionaries.append(np.array(array(f"dictionary_{place}").to_numpy(zero_copy_only=False)))
    return model, tuple(dictionaries)


def _from_stored(session: Session, name: str, rows: int | None, seed: int | None, *, details: bool) -> Rows:
    known = catalog.synth_models(session.cursor())
    if name not in known:
        raise unknown("model", name, known)
    header = Header.parse(catalog.synth_model(session.cursor(), name, arrays=False).header)

    def load() -> pa.Table:
        stored = catalog.synth_model(session.cursor(), name)
        if Header.parse(stored.header) != header:
            raise SDCError(f"model '{name}' has been replaced: ask again")
        model, dictionaries = _from_bytes(header, stored.arrays)
        count = int(model.strata_sizes.sum()) if rows is None else rows
        return _remember(
            Generator(model, header.outputs, dictionaries, count, _stream(session, seed), header.redraws, details)
        )

    _check_detail_names(header.outputs, header.drawn, header.bounded, details=details)
    return Rows(load, _select(header.outputs, header.drawn, header.bounded, partial=False, details=details))


def plan_drop_synth_model(session: Session, name: str | None) -> Rows:
    """``sdc_drop_synth_model``: fails while binding if there is no such model."""
    known = catalog.synth_models(session.cursor())
    if name not in known:
        raise unknown("model", str(name), known)

    def drop() -> pa.Table:
        catalog.drop_synth_model(session.cursor(), str(name))
        return pa.table({"name": [name]})

    return Rows(drop)


_HANDLE = {"model": "VARCHAR", "records": "BIGINT"}

FAMILY = Family(
    name="synthetic_records",
    stored=("synthetic_records.sql",),
    temporary=("synthetic_records_tables.sql",),
    planners=(
        Planner(
            "sdc_synth_records",
            ("VARCHAR", "VARCHAR[]", "BIGINT", "VARCHAR", "DOUBLE", "BOOLEAN", "VARCHAR", "VARCHAR", *_COMMON),
            plan_synth_records,
            _HANDLE,
        ),
        Planner(
            "sdc_synth_model",
            ("VARCHAR", "VARCHAR", "VARCHAR", "BOOLEAN", *_COMMON),
            plan_synth_model,
            {"name": "VARCHAR", "method": "VARCHAR", "records": "BIGINT", "bytes": "BIGINT"},
        ),
        Planner("sdc_drop_synth_model", ("VARCHAR",), plan_drop_synth_model, {"name": "VARCHAR"}),
        *measures.PLANNERS,
    ),
    scalars=(
        Scalar(
            "_sdc_synth_draw",
            ("VARCHAR", "BIGINT"),
            f"STRUCT({', '.join(f'{name} {kind}' for name, kind in _DRAWN)})",
            drawn_records,
            volatile=True,
        ),
    ),
)
