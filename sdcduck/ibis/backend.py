"""An ibis backend whose every expression is answered by the guard.

Nothing is ever written, and no expression runs but through the guard, in one of its two doors (`sdcduck.ibis.doors`).
What has been answered once (`expr.cache()`) and tables of the analyst's own (`ibis.memtable`) are free: expressions
over nothing else are computed on the spot.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import duckdb
import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa
import sqlglot.expressions as sge
from ibis.backends.duckdb.converter import DuckDBPandasData
from ibis.backends.sql import SQLBackend
from ibis.common.exceptions import TranslationError
from ibis.formats.pyarrow import PyArrowType

from sdcduck.errors import SDCError
from sdcduck.guard import Guard, Refused, open_guard
from sdcduck.guard.guard import NOTICE
from sdcduck.guard.opening import LOCKED
from sdcduck.ibis.doors import Door, Gateway, InProcess
from sdcduck.ibis.rendering import GuardCompiler, MendedCompiler

_KEEP = "nothing can be written here; keep an answer with expr.cache(), expr.to_pyarrow() or expr.to_parquet(..)"
_DUCKDB = MendedCompiler()
_BRING = "the guard reads no files; bring a small table with ibis.memtable(pandas.read_csv(..))"


class RefusedExpression(Refused, TranslationError):  # type: ignore[misc]
    """A refusal; where ibis only shows an expression, in its interactive mode, it says so and shows how it is made."""

    def __repr__(self) -> str:
        return "\n" + textwrap.fill(str(self), 78)  # ibis cuts lines at the width of the terminal


def _refused(method: str, advice: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
        raise Refused("SDC004", f"{method}: {advice}")

    refuse.__name__, refuse.__doc__ = method, "Refused: only queries are answered."
    return refuse


class Backend(SQLBackend):  # type: ignore[misc]
    """Tables under the policies of a custodian. Made by `connect`."""

    name: ClassVar[str] = "sdcduck"
    compiler: ClassVar[GuardCompiler] = GuardCompiler()
    supports_temporary_tables = False
    supports_python_udfs = False

    def do_connect(self, door: Door) -> None:
        """Ask at a door from now on."""
        self.con = self._door = door

    def disconnect(self) -> None:
        """Ask no more."""
        self._door.close()

    @property
    def version(self) -> str:
        """That of DuckDB."""
        return str(duckdb.__version__)

    def list_tables(self, *, like: str | None = None, database: tuple[str, str] | str | None = None) -> list[str]:
        """The tables that are open."""
        _check_database(database)
        return list(self._filter_with_like(self._door.tables(), like))

    def get_schema(self, table_name: str, *, catalog: str | None = None, database: str | None = None) -> ibis.Schema:
        """The visible columns of a table."""
        _check_database(database)
        return self._door.table(table_name)

    def _get_schema_using_query(self, query: str) -> ibis.Schema:
        try:
            return self._door.columns(query)
        except Refused as refused:
            if refused.code != "SDC040":
                raise
            # Unit-level rows: no answer, but something to go on from. These are columns of tables, or made from them.
            return self._door.columns(f"SELECT * FROM ({query}) AS q LIMIT 0")

    def raw_sql(self, query: str | sge.Expression, **_: Any) -> pa.Table:
        """The protected answer of a query in SQL, as an Arrow table; nothing but queries is answered."""
        return self._door.answer(query if isinstance(query, str) else query.sql("duckdb"))

    # --- Answers ------------------------------------------------------------------------------------------------------

    def execute(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        **kwargs: Any,
    ) -> Any:
        """The protected answer, for pandas."""
        answer, schema = self._answer(expr, params, limit)
        frame = DuckDBPandasData.convert_table(answer.to_pandas(), schema)
        return expr.__pandas_result__(frame, schema=schema)

    def to_pyarrow(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        **kwargs: Any,
    ) -> Any:
        """The protected answer, for Arrow."""
        answer, schema = self._answer(expr, params, limit)
        return expr.__pyarrow_result__(answer, schema=schema)

    def to_polars(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        **kwargs: Any,
    ) -> Any:
        """The protected answer, for polars."""
        import polars
        from ibis.formats.polars import PolarsData

        answer, schema = self._answer(expr, params, limit)
        frame = PolarsData.convert_table(polars.from_arrow(answer), schema)
        if isinstance(expr, ir.Table):
            return frame
        return frame.to_series() if isinstance(expr, ir.Column) else frame.item()

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
        """The protected answer as a stream."""
        if _is_ours(expr):
            return self._computed(expr, params, limit).to_reader(chunk_size)
        reader = self._door.stream(self._query(expr, params, limit), chunk_size)
        _tell(reader.schema)
        shown = _shown(reader.schema, expr.as_table().schema()).to_pyarrow()

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                with _in_range():
                    columns = [column.cast(field.type) for column, field in zip(batch.columns, shown, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=shown)

        return pa.RecordBatchReader.from_batches(shown, batches())

    def noise(
        self, expr: ir.Expr, /, *, params: Mapping[ir.Scalar, Any] | None = None, limit: int | str | None = None
    ) -> pa.Table:
        """What the numbers of an answer are worth, a row for each of its columns (`Guard.noise`); nothing is asked."""
        if _is_ours(expr):
            raise SDCError("this is over answers and tables of your own, which have the noise that they had")
        return self._door.noise(self._query(expr, params, limit))

    def _answer(
        self, expr: ir.Expr, params: Mapping[ir.Scalar, Any] | None, limit: int | str | None
    ) -> tuple[pa.Table, ibis.Schema]:
        if _is_ours(expr):
            answer = self._computed(expr, params, limit)
        else:
            try:
                answer = self._door.answer(self._query(expr, params, limit))
            except Refused as refused:
                raise RefusedExpression(refused.code, refused.detail) from None
            _tell(answer.schema)
        schema = _shown(answer.schema, expr.as_table().schema())
        with _in_range():
            return answer.rename_columns(list(schema.names)).cast(schema.to_pyarrow()), schema

    def _query(self, expr: ir.Expr, params: Mapping[ir.Scalar, Any] | None, limit: int | str | None) -> str:
        self._run_pre_execute_hooks(expr)
        return str(self.compile(expr.as_table(), params=params, limit=limit))

    def _computed(self, expr: ir.Expr, params: Mapping[ir.Scalar, Any] | None, limit: int | str | None) -> pa.Table:
        """An expression over answers and tables of the analyst's own."""
        sql = _DUCKDB.to_sqlglot(expr.as_table(), params=params, limit=limit).sql("duckdb")
        with duckdb.connect(config=LOCKED) as con:
            for table in expr.op().find(ops.InMemoryTable):
                con.register(table.name, table.data.to_pyarrow(table.schema))
            return con.sql(sql).to_arrow_table()

    # --- What has been answered ---------------------------------------------------------------------------------------

    def _create_cached_table(self, name: str, expr: ir.Table) -> ir.Table:
        answer, schema = self._answer(expr, None, None)
        return ops.InMemoryTable(name=name, schema=schema, data=ibis.memtable(answer).op().data).to_expr()

    def _drop_cached_table(self, name: str) -> None:
        """It goes when nobody holds it any more."""

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        """Tables of the analyst's own are written into the query."""

    def _make_memtable_finalizer(self, name: str) -> Callable[..., None] | None:
        return None

    # --- What is refused ----------------------------------------------------------------------------------------------

    def _register_udfs(self, expr: ir.Expr) -> None:
        for function in expr.op().find((ops.ScalarUDF, ops.AggUDF)):
            raise Refused("SDC010", function.__func_name__)

    create_table = _refused("create_table", _KEEP)
    create_view = _refused("create_view", _KEEP)
    create_database = _refused("create_database", _KEEP)
    drop_table = _refused("drop_table", _KEEP)
    drop_view = _refused("drop_view", _KEEP)
    drop_database = _refused("drop_database", _KEEP)
    rename_table = _refused("rename_table", _KEEP)
    truncate_table = _refused("truncate_table", _KEEP)
    insert = _refused("insert", _KEEP)
    upsert = _refused("upsert", _KEEP)
    attach = _refused("attach", _BRING)
    read_csv = _refused("read_csv", _BRING)
    read_json = _refused("read_json", _BRING)
    read_parquet = _refused("read_parquet", _BRING)
    read_delta = _refused("read_delta", _BRING)


def connect(
    source: str | Path | Guard | duckdb.DuckDBPyConnection,
    /,
    *,
    user: str = "",
    password: str = "",
    **options: Any,
) -> Backend:
    """An ibis connection on which every expression is answered by the guard.

    >>> import sdcduck
    >>> con = sdcduck.connect()
    >>> _ = con.execute("CREATE TABLE regions AS SELECT 'North' AS region; FROM sdc_declare_public('regions')")
    >>> connect(con).table("regions").region.execute().tolist()
    ['North']

    Args:
        source: a database file, a guard, a connection that sdcduck is installed on, or the address of a gateway,
            ``postgresql://user:password@host/database`` or ``sdcduck://..``.
        user: who asks: for the audit log, or at the gateway.
        password: at the gateway.
        options: of `sdcduck.open_guard`, with a file or a connection.

    Raises:
        SDCError: it cannot be asked.
    """
    if isinstance(source, str) and "://" in source:
        if options:
            raise SDCError(f"a gateway has its own settings: {', '.join(sorted(options))} goes with a file")
        return _at(Gateway(source, user, password))
    if password:
        raise SDCError("a password goes with the address of a gateway; a file has none")
    if isinstance(source, Guard):
        if options:
            raise SDCError(f"this guard has its settings already: {', '.join(sorted(options))} goes with a file")
        return _at(InProcess(source, user))
    return _at(InProcess(open_guard(source, **options), user))


def _at(door: Door) -> Backend:
    backend: Backend = Backend().connect(door)
    return backend


def _check_database(database: object) -> None:
    if database not in (None, "main", "public", (None, "main"), (None, None)):
        raise SDCError("the guard has one list of tables, without databases: leave the argument 'database' out")


def _is_ours(expr: ir.Expr) -> bool:
    """Whether an expression is over nothing that the guard holds."""
    relations = expr.op().find((ops.PhysicalTable, ops.SQLQueryResult, ops.SQLStringView))
    return all(isinstance(table, ops.InMemoryTable) for table in relations)


def _tell(answered: pa.Schema) -> None:
    """Warn of an answer that is not what it looks like."""
    notice = (answered.metadata or {}).get(NOTICE.encode())
    if notice is not None:
        warnings.warn(notice.decode(), stacklevel=2)


@contextmanager
def _in_range() -> Iterator[None]:
    """Refuse numbers that are too large for the type that ibis gives a column, as that of a sum of whole numbers."""
    try:
        yield
    except pa.ArrowInvalid:
        raise Refused(
            "SDC090",
            "a number beyond the 64 bits that ibis has for it: x.sum().cast('float64') or .cast('decimal(38, 0)')",
        ) from None


def _shown(answered: pa.Schema, expected: ibis.Schema) -> ibis.Schema:
    """The columns of an answer: as ibis thinks, but with the noise of sums that it takes for whole numbers."""
    kinds = {}
    for field, (name, kind) in zip(answered, expected.items(), strict=True):
        came = PyArrowType.to_ibis(field.type)
        noisy = (kind.is_integer() or kind.is_decimal()) and came.is_floating()
        kinds[name] = dt.float64 if noisy else kind
    return ibis.schema(kinds)
