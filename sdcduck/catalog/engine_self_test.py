"""Whether an engine, as it is set up now, gives for constants what DuckDB gives: asked each time a guard is opened.

The tests of sdcduck show it of an engine as it comes. A mode of a session or a server can change what its words mean.
What is tried is all that an engine is asked for: `engine_semantics.py` and the looks of the guard.
"""

from __future__ import annotations

import struct
from collections import Counter
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
from sqlglot import exp, parse_one

from sdcduck.catalog import engine_semantics as semantics
from sdcduck.catalog.engine_semantics import SEMANTICS, column
from sdcduck.errors import SDCError

if TYPE_CHECKING:
    from sdcduck.catalog.engines import Engine

_DOUBLES = (
    "NULL", "'NaN'", "'Infinity'", "'-Infinity'", "0.0", "-1e-9", "1.5e-4", "2.5e-4", "-2.5e-4", "-1.5e-4", "9.3e14",
    "-9.3e14", "450359962737049.7", "123456789.12345", "1.7e308", "1.23e-4", "-1.77e-4",
)  # fmt: skip
_WHOLE = (
    "NULL", "9223372036854775807", "-9223372036854775807", "999999999999999999", "999999999999999998", "7", "-4", "0",
)  # fmt: skip
_TEXTS = ("NULL", "'a'", "'A'", "'a '", "''", "'\u00e4'", "'a\u0308'", "'\u212a'", "'K'", "'k'")
_DATES = ("NULL", "'2020-01-01'", "'1969-12-31'", "'2020-03-29'", "'1945-05-02'")


def _given(names: set[str]) -> exp.Expr:
    """A row for each number, with those other columns that are wanted beside it."""
    rows = []
    for place, number in enumerate(_DOUBLES):
        values = {
            "i": f"CAST({place} AS INTEGER)",
            "x": f"CAST({number} AS DOUBLE)",
            "k": f"CAST({'NULL' if place % 5 == 3 else place * 6_249_999} AS INTEGER)",
            "m": f"CAST({_WHOLE[place % len(_WHOLE)]} AS BIGINT)",
            "g": f"CAST({_TEXTS[place % len(_TEXTS)]} AS VARCHAR)",
            "d": f"CAST({_DATES[place % len(_DATES)]} AS DATE)",
            "b": f"CAST({('NULL', 'TRUE', 'FALSE')[place % 3]} AS BOOLEAN)",
            "c0": f"CAST({place - 3}.25 AS DECIMAL(12, 2))",
            "c1": f"CAST({place % 2} AS SMALLINT)",
        }
        rows.append(f"({', '.join(values[name] for name in sorted(names))})")
    listed = ", ".join(f'"{name}"' for name in sorted(names))
    return parse_one(f"SELECT * FROM (VALUES {', '.join(rows)}) AS given({listed})", read="duckdb")


def _parsed(*texts: str) -> list[exp.Expr]:
    return [parse_one(text, read="duckdb") for text in texts]


@cache
def _checks() -> dict[str, tuple[list[exp.Expr], list[exp.Expr]]]:
    """What is tried, by what it is called: what rows are grouped by, and what is asked of them."""
    x, k, m, fee = column("x"), column("k"), column("m"), column("c0")
    number = column("i")
    high, low = semantics.largest(m, k, floating=False)
    return {
        "rounding of floating-point numbers": ([number], [semantics.total_on_grid(x)]),
        "NULL, NaN and infinity": (
            [number, semantics.is_null(x), semantics.is_some(x)],
            [semantics.largest(x, k, floating=True)[0], semantics.nans(x, k), semantics.count(x)],
        ),
        "sums of whole numbers of 18 digits and of decimals": (
            [column("c1")], [semantics.total(m), semantics.total(fee, 2), semantics.total(k), high, low],
        ),
        "texts, which have to be told apart by their bytes": ([column("g")], [semantics.count()]),
        "dates and BOOLEAN": ([column("d"), column("b")], [semantics.count(), semantics.without(k), semantics.most(k)]),
        "comparisons of numbers": (
            _parsed('"m" > 5', '"m" BETWEEN -4 AND 7', '"m" <> 999999999999999999', '"c0" <= -2', '"m" IS NULL'),
            [semantics.count()],
        ),
        "names of columns": ([fee], [semantics.count(), *_parsed('max("c1")', 'count(DISTINCT "c1")')]),
        "integer division": (
            _parsed('"k" % 7 = 0', 'CAST(floor(CAST("k" AS DOUBLE) * 64 / 100000000) AS BIGINT)'),
            _parsed("count(*)", 'count(CASE WHEN "k" >= 0 AND "k" < 50000000 THEN 1 END)', 'sum(CAST("k" AS BIGINT))'),
        ),
    }  # fmt: skip


@cache
def _texts(engine: str) -> dict[str, str]:
    """What an engine is asked, in its words, by what it is called."""
    words, texts = SEMANTICS[engine], dict[str, str]()
    for name, (keys, asked) in _checks().items():
        items = [exp.alias_(one.copy(), f"c{place}", quoted=True) for place, one in enumerate([*asked, *keys])]
        names = {found.name for tree in [*asked, *keys] for found in tree.find_all(exp.Column)}
        given = exp.Subquery(this=_given(names), alias=exp.TableAlias(this=exp.to_identifier("people")))
        select = exp.Select(expressions=items).from_(given).group_by(*(key.copy() for key in keys))
        texts[name] = words.written(select)
    return texts


@cache
def _meant() -> dict[str, pa.Table]:
    with duckdb.connect() as con:
        return {name: con.sql(text).to_arrow_table() for name, text in _texts("duckdb").items()}


def _bits(value: object, kind: pa.DataType) -> object:
    """A value as DuckDB would read it in a type: floating-point numbers by their bytes."""
    if value is None:
        return None
    if pa.types.is_boolean(kind):
        return bool(value)
    if pa.types.is_floating(kind):
        return struct.pack("<d", value) if isinstance(value, float) else repr(value)
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return Decimal(str(value))
    return value


def _multiset(rows: pa.Table, kinds: list[pa.DataType]) -> Counter[tuple[object, ...]]:
    columns = [
        [_bits(value, kind) for value in values.to_pylist()] for values, kind in zip(rows.columns, kinds, strict=True)
    ]
    return Counter(zip(*columns, strict=True))


def check_alike(engine: Engine) -> None:
    """Refuse an engine that gives other numbers than DuckDB, in the state that it is in.

    Raises:
        SDCError: it does; with what of.
    """
    for name, text in _texts(engine.name).items():
        meant = _meant()[name]
        try:
            same = _multiset(engine.rows(text), meant.schema.types) == _multiset(meant, meant.schema.types)
        except Exception:  # engines have errors of their own
            raise _unlike(engine, f"{name}: it fails") from None
        if not same:
            raise _unlike(engine, name)


def _unlike(engine: Engine, what: str) -> SDCError:
    return SDCError(
        f"argument 'records': as it is set up, {engine.name} does not answer as DuckDB does ({what}); look at the "
        "settings of its session and server (docs/engines.md)"
    )
