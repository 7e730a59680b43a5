"""How each engine is told what it works out: the few expressions over records that it is asked for, in its words.

An engine is on the list if a test shows of all of these that they give what DuckDB gives, with NULL, NaN, infinity,
-0.0, halves, and the ends of the range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from sqlglot import exp, parse_one
from sqlglot.dialects.dialect import Dialect


def dialect(name: str) -> type[Dialect]:
    """Whose words these are: sqlglot's own, for ibis has others under the same names, which it puts in their place.

    >>> dialect("clickhouse").__module__
    'sqlglot.dialects.clickhouse'
    """
    found: type[Dialect] = getattr(import_module(f"sqlglot.dialects.{name}"), _DIALECTS[name])
    return found


_DIALECTS = {"duckdb": "DuckDB", "postgres": "Postgres", "clickhouse": "ClickHouse", "spark": "Spark", "trino": "Trino"}


@dataclass(frozen=True)
class Semantics:
    """What has to be written for an engine.

    Attributes:
        dialect: that sqlglot writes its SQL in.
        words: has one node of a query, and gives what stands for it; None: the node itself does.
    """

    dialect: str
    words: Callable[[exp.Expr], exp.Expr] | None = None

    def written(self, tree: exp.Expr) -> str:
        """The text of a query."""
        return (tree if self.words is None else tree.transform(self.words)).sql(dialect(self.dialect), comments=False)


def _of_postgres(node: exp.Expr) -> exp.Expr:
    """Of PostgreSQL: NaN is equal to itself, products that are too large fail, and no cast is tried.

    What is cast is within its type, whatever the record.
    """
    if isinstance(node, exp.IsNan):
        return _of("x = CAST('NaN' AS DOUBLE)", x=node.this)
    if isinstance(node, exp.Mul) and node.expression.sql("duckdb") == "CAST(1e4 AS DOUBLE)":
        return _of("CASE WHEN abs(x) > CAST(1e300 AS DOUBLE) THEN x ELSE x * CAST(10000 AS DOUBLE) END", x=node.this)
    return exp.cast(node.this.transform(_of_postgres), node.to) if isinstance(node, exp.TryCast) else node


def _of_clickhouse(node: exp.Expr) -> exp.Expr:
    """Of ClickHouse: no cast is tried, and what is not chosen is cast to anything; its DATE begins in 1970."""
    if isinstance(node, exp.Cast) and node.to.this is exp.DType.DATE:
        return exp.cast(node.this.transform(_of_clickhouse), exp.DType.DATE32)
    return exp.cast(node.this.transform(_of_clickhouse), node.to) if isinstance(node, exp.TryCast) else node


SEMANTICS = {
    "duckdb": Semantics("duckdb"),
    "datafusion": Semantics("duckdb"),
    "postgres": Semantics("postgres", _of_postgres),
    "clickhouse": Semantics("clickhouse", _of_clickhouse),
    "spark": Semantics("spark"),
}
"""By name of the engine. DataFusion reads the words of DuckDB that are written here."""

MOST_ROWS = 9 * 10**9
"""Of a table: sums of so many BIGINT have fewer than 38 digits, those of so many record keys fit into BIGINT."""


def column(name: str) -> exp.Column:
    """A column of the table."""
    return exp.column(name, quoted=True)


def _of(text: str, **parts: exp.Expr) -> exp.Expr:
    """A text with expressions in place of its names."""

    def filled(node: exp.Expr) -> exp.Expr:
        return parts[node.name].copy() if isinstance(node, exp.Column) and node.name in parts else node

    return parse_one(text, read="duckdb").transform(filled)


def is_null(value: exp.Expr) -> exp.Expr:
    """Whether there is no value."""
    return _of("x IS NULL", x=value)


def is_some(value: exp.Expr) -> exp.Expr:
    """Whether a floating-point number comes to something on the grid of sums; NaN does.

    Engines differ in where NaN stands among numbers.
    """
    return _of("CASE WHEN isnan(x) THEN TRUE ELSE abs(x * CAST(1e4 AS DOUBLE)) > CAST(0.5 AS DOUBLE) END", x=value)


def count(value: exp.Expr | None = None) -> exp.Expr:
    """How many records there are, or have a value."""
    return parse_one("count(*)", read="duckdb") if value is None else _of("count(x)", x=value)


def where(aggregate: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """An aggregate over the records that meet a condition.

    >>> where(count(), is_null(column("x"))).sql("duckdb")
    'COUNT(CASE WHEN "x" IS NULL THEN 1 END)'
    """
    value = exp.Literal.number(1) if isinstance(aggregate.this, exp.Star) else aggregate.this
    return type(aggregate)(this=exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())]))


def total(value: exp.Expr, scale: int = 0) -> exp.Expr:
    """The sum of whole numbers, or of decimals: in the type that it cannot overflow."""
    return _of(f"sum(CAST(x AS DECIMAL(38, {scale})))", x=value)


def total_on_grid(value: exp.Expr) -> exp.Expr:
    """The sum of ten-thousandths of floating-point numbers, each as DuckDB casts it to BIGINT: halves to the even one.

    NULL for NaN and for what BIGINT does not hold. Other engines cut off, or round halves away from 0, where they cast.
    What is left of the floor is exact below 2^52, and 0 above it.
    """
    number = _of("x * CAST(1e4 AS DOUBLE)", x=value)
    below = _of("floor(n)", n=exp.paren(number))
    rest = _of("n - f", n=exp.paren(number), f=below)
    rounded = _of(
        "f + CASE WHEN r > CAST(0.5 AS DOUBLE) THEN CAST(1 AS DOUBLE) "
        "WHEN r < CAST(0.5 AS DOUBLE) THEN CAST(0 AS DOUBLE) "
        "WHEN f / CAST(2 AS DOUBLE) = floor(f / CAST(2 AS DOUBLE)) THEN CAST(0 AS DOUBLE) ELSE CAST(1 AS DOUBLE) END",
        f=below,
        r=exp.paren(rest),
    )
    return _of(
        "sum(CAST(CASE WHEN isnan(x) THEN NULL WHEN n >= CAST(-9223372036854775808 AS DOUBLE) "
        "AND n < CAST(9223372036854775808 AS DOUBLE) THEN TRY_CAST(rounded AS BIGINT) END AS DECIMAL(38, 0)))",
        x=value, n=number, rounded=exp.paren(rounded),
    )  # fmt: skip


def largest(value: exp.Expr, key: exp.Expr, *, floating: bool) -> tuple[exp.Expr, exp.Expr]:
    """What the largest absolute value of records that have a key is one of: NaN is none of them.

    Of whole numbers and decimals the ends, for the least one has no absolute value in its type; of floating-point
    numbers that value twice, for the largest of nothing but -inf is a finite number in DataFusion.
    """
    if floating:
        one = _of("max(CASE WHEN k IS NOT NULL AND NOT isnan(x) THEN abs(x) END)", x=value, k=key)
        return one, one.copy()
    high, low = (_of(f"{name}(CASE WHEN k IS NOT NULL THEN x END)", x=value, k=key) for name in ("max", "min"))
    return high, low


def nans(value: exp.Expr, key: exp.Expr) -> exp.Expr:
    """How many records with a key have NaN."""
    return _of("count(CASE WHEN k IS NOT NULL AND isnan(x) THEN 1 END)", x=value, k=key)


def without(key: exp.Expr) -> exp.Expr:
    """How many records have no key."""
    return _of("count(CASE WHEN k IS NULL THEN 1 END)", k=key)


def most(key: exp.Expr) -> exp.Expr:
    """The largest key."""
    return _of("max(k)", k=key)
