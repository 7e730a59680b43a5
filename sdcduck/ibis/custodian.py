"""ibis' own DuckDB backend on a connection of a custodian, where nothing is guarded.

ibis 12 fetches by names that DuckDB 2 no longer has; here it fetches by those that every DuckDB has. What it has newer
releases of sqlglot write without a name (``DROP TABLE IF EXISTS``) has its name here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import duckdb
import ibis
import ibis.expr.types as ir
import pyarrow as pa
import sqlglot.expressions as sge
from ibis.backends.duckdb import Backend
from ibis.common.exceptions import TableNotFound

from sdcduck.ibis.rendering import MendedCompiler
from sdcduck.quoting import identifier


class _Result:
    """What a statement about tables gave, with the name by which ibis fetches it."""

    def __init__(self, result: duckdb.DuckDBPyConnection) -> None:
        self._result = result

    def fetch_arrow_table(self) -> pa.Table:
        names = [column[0] for column in self._result.description or ()]
        rows = self._result.fetchall()
        return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)


class CustodianBackend(Backend):  # type: ignore[misc]
    """Made by `from_connection`."""

    compiler: ClassVar[MendedCompiler] = MendedCompiler()

    @contextmanager
    def _safe_raw_sql(self, *statement: Any, **options: Any) -> Iterator[_Result]:
        yield _Result(self.raw_sql(*statement, **options))

    def raw_sql(self, query: Any, **options: Any) -> Any:
        """What DuckDB answers."""
        if isinstance(query, sge.Drop) and query.args.get("this") is not None:
            query = query.copy()
            query.set("tables", [query.args.pop("this")])
        return super().raw_sql(query, **options)

    def create_table(
        self,
        name: str,
        /,
        obj: Any = None,
        *,
        schema: Any = None,
        database: str | None = None,
        temp: bool = False,
        overwrite: bool = False,
    ) -> ir.Table:
        """A table of the rows of an expression, a data frame or an Arrow table; or an empty one."""
        if obj is None:
            if overwrite:
                self.drop_table(name, database=database, force=True)
            return super().create_table(name, schema=schema, database=database, temp=temp)
        table = obj if isinstance(obj, ir.Expr) else ibis.memtable(obj)
        if schema is not None:
            table = table.cast(schema)
        self._run_pre_execute_hooks(table)
        place = None if temp else self._to_sqlglot_table(database)
        parts = (place.catalog, place.db, name) if place else (name,)
        kind = f"{'OR REPLACE ' if overwrite else ''}{'TEMP ' if temp else ''}TABLE"
        quoted = ".".join(identifier(part) for part in parts if part)
        self.con.execute(f"CREATE {kind} {quoted} AS {self.compile(table)}")
        return self.table(name, database=None if temp else database)

    def to_pyarrow_batches(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        chunk_size: int = 1_000_000,
        **_: Any,
    ) -> pa.RecordBatchReader:
        """The answer as a stream."""
        answer = self._to_duckdb_relation(expr, params=params, limit=limit).to_arrow_reader(chunk_size)
        schema = expr.as_table().schema().to_pyarrow()
        return pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in answer))

    def get_schema(self, table_name: str, *, catalog: str | None = None, database: str | None = None) -> ibis.Schema:
        """The columns of a table or view."""
        place = [identifier(part) for part in (catalog, database, table_name) if part]
        try:
            return self._get_schema_using_query(".".join(place))
        except duckdb.CatalogException:
            raise TableNotFound(table_name) from None

    def list_tables(self, *, like: str | None = None, database: tuple[str, str] | str | None = None) -> list[str]:
        """The tables and views of a schema."""
        place = self._to_sqlglot_table(database)
        rows = self.con.execute(
            "SELECT DISTINCT table_name FROM information_schema.tables "
            "WHERE table_catalog IN (?, 'temp') AND table_schema = ?",
            [place.catalog or self.current_catalog, place.db or self.current_database],
        ).fetchall()
        return list(self._filter_with_like([name for (name,) in rows], like))


def from_connection(con: duckdb.DuckDBPyConnection, /) -> CustodianBackend:
    """An ordinary ibis connection on one that sdcduck is installed on: everything is seen, nothing is guarded.

    >>> import sdcduck
    >>> con = sdcduck.connect()
    >>> _ = con.execute("CREATE TABLE people AS SELECT 1 AS person_id")
    >>> from_connection(con).list_tables()
    ['people']
    """
    backend: CustodianBackend = CustodianBackend.from_connection(con)
    return backend
