"""How expressions become SQL: DuckDB's; for the guard, with tables of the analyst's own written out."""

from __future__ import annotations

from typing import Any, ClassVar

import ibis.expr.operations as ops
import ibis.expr.schema as sch
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.duckdb import DuckDBCompiler
from ibis.expr.rewrites import lower_stringslice

from sdcduck.guard import Refused

_LARGEST = 2_000
"""Values of tables that are written into a query: the guard takes texts of a limited size."""


class MendedCompiler(DuckDBCompiler):  # type: ignore[misc]
    """DuckDB's SQL, where ibis 12 gives newer releases of sqlglot what they do not take."""

    __slots__ = ()

    # Those of DuckDB are methods already; named here again they would come before the ones below.
    SIMPLE_OPS: ClassVar[dict[type[ops.Value], str]] = {}

    def visit_Arbitrary(self, op: ops.Arbitrary, *, arg: Any, where: Any) -> Any:
        """Any value."""
        value = sge.AnyValue(this=arg)
        return value if where is None else sge.Filter(this=value, expression=sge.Where(this=where))

    def visit_ExtractMillisecond(self, op: ops.ExtractMillisecond, *, arg: Any) -> Any:
        """Milliseconds of the second: DuckDB counts those of the minute."""
        return sge.Mod(this=self.f.extract("ms", arg), expression=sge.convert(1_000))

    def visit_RandomUUID(self, op: ops.RandomUUID) -> Any:
        """A random identifier."""
        return self.f.anon.uuid()

    def visit_NonNullLiteral(self, op: ops.Literal, *, value: Any, dtype: Any) -> Any:
        """Values; the unit of an interval is a node of its own."""
        made = super().visit_NonNullLiteral(op, value=value, dtype=dtype)
        if isinstance(made, sge.Interval) and isinstance(made.args["unit"], str):
            made.set("unit", sge.Var(this=made.args["unit"]))
        return made


class GuardCompiler(MendedCompiler):
    """The SQL of which the guard knows every part."""

    __slots__ = ()

    # As SUBSTRING, which the guard takes: DuckDB's own slices are of lists, too.
    LOWERED_OPS: ClassVar[dict[type[ops.Node], Any]] = {ops.StringSlice: lower_stringslice}

    def visit_MultiQuantile(self, op: ops.MultiQuantile, *, arg: Any, quantile: Any, where: Any) -> Any:
        """Several quantiles, one by one: each of them is released on its own."""
        parts = [self.visit_Quantile(op, arg=arg.copy(), quantile=share, where=where) for share in quantile.expressions]
        return sge.Array(expressions=parts)

    def visit_InMemoryTable(self, op: ops.InMemoryTable, *, name: str, schema: sch.Schema, data: Any) -> sge.Expression:
        """Rows that the analyst brings: VALUES, as the guard answers from nothing but its own tables and the text."""
        rows = data.to_pyarrow(schema).to_pylist()
        if len(rows) * len(schema) > _LARGEST:
            raise Refused("SDC002", f"a table of {len(rows)} rows that the guard does not hold")
        columns = [f"c{place}" for place in range(len(schema))]
        shown = [
            self.cast(sge.column(column, quoted=True), kind).as_(label, quoted=True)
            for column, (label, kind) in zip(columns, schema.items(), strict=True)
        ]
        values = sge.Values(
            expressions=[
                sge.Tuple(
                    expressions=[
                        self.visit_Literal(None, value=row[label], dtype=kind) for label, kind in schema.items()
                    ]
                )
                for row in (rows or [dict.fromkeys(schema)])
            ],
            alias=sge.TableAlias(
                this=sge.to_identifier("r", quoted=True),
                columns=[sge.to_identifier(column, quoted=True) for column in columns],
            ),
        )
        made = sge.select(*shown).from_(values)
        if not rows:
            made = made.where(sge.false())
        return made.subquery(name, copy=False)
