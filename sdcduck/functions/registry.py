"""How a family of methods becomes SQL functions: the one pattern, used by every family.

DuckDB lets Python add scalar functions only. A *table* function is therefore a macro over a planner::

    CREATE OR REPLACE MACRO sdc_f(source, a := 1) AS TABLE
        SELECT * FROM query(_sdc_with_python(_sdc_plan('f', [source::VARCHAR, a::VARCHAR])));

To create a function takes time in each database anew. So planners are no functions of their own: those with the same
arguments beside texts are called by one (`call_of_planner`), and told by their name, and one gives out all tables.
The planner runs while the statement is bound. It checks the arguments and returns the SQL text that answers the call.
A table that has to be computed is made in a thread of its own when the statement runs: the planner answers with `Rows`,
and the registry plans a statement that asks for the table until it is there (`sdcduck.functions.jobs`). Planners must
be cheap and without side effects, because a statement may be bound several times; whatever writes belongs in
`Rows.make`.

A family adds an entry: a `Family` with its SQL files, planners and scalar functions. Nothing else has to be touched.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from inspect import Parameter, Signature, signature
from typing import Any, Protocol

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from sdcduck.catalog.engines import Engine
from sdcduck.catalog.meaning import refuse_other_order
from sdcduck.errors import SDCError
from sdcduck.functions.jobs import Display, Stopped, Work
from sdcduck.functions.shutdown import CALLS
from sdcduck.methods.numerics import LEFT_OUT, absent
from sdcduck.quoting import identifier, literal


class Session(Protocol):
    """What a planner may use of the connection that it answers for."""

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A new cursor of the same database. It sees no temporary tables and no uncommitted rows of the caller."""

    def secret(self) -> bytes | None:
        """The secret of the record keys, if one was given."""

    def display(self, title: str) -> Display | None:
        """Where to show how far long work is, if at all."""

    engine: Engine | None
    """What has the records of tables that stand for its own, if the connection was opened with one."""


@dataclass(frozen=True)
class Rows:
    """A table that is computed when the statement runs.

    Attributes:
        make: computes it, with the columns of the planner.
        select: SQL text that answers the call, where ``{rows}`` stands for the computed table; for results whose
            columns the data decide, such as those of a publication. None: the computed table itself.
    """

    make: Callable[[], pa.Table]
    select: str | None = None


@dataclass(frozen=True)
class Planner:
    """The planner of one table function.

    Attributes:
        name: of the SQL function, ``sdc_..``.
        arguments: SQL types of the arguments, in order.
        plan: ``plan(session, *arguments)``, SQL text or `Rows`.
        columns: name and SQL type of the columns, for planners that return `Rows`.
        names: of the arguments, where the planner calls them otherwise.
        renamed: what arguments, or the function, were called in an earlier release, and are called now. If there is
            any, the last argument names those of them that were used.
    """

    name: str
    arguments: tuple[str, ...]
    plan: Callable[..., str | Rows]
    columns: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)

    # Each of these once a process: every database that is opened asks for them.
    @cached_property
    def taken(self) -> tuple[str, ...]:
        """The types of what it is given, in order."""
        return (*map(_as_taken, self.arguments), *(("VARCHAR",) if self.renamed else ()))

    @cached_property
    def caller(self) -> tuple[str, tuple[str, ...]]:
        """The function that calls it, and the types of what that is given beside texts."""
        others = tuple(kind for kind in self.taken if kind != "VARCHAR")
        return _caller(others), others

    @cached_property
    def places(self) -> dict[str, str]:
        """Where each column is in what `_sdc_rows` answers: the places of a type are taken in order.

        >>> Planner("sdc_f", (), str, {"a": "DOUBLE", "b": "BIGINT[]", "c": "DOUBLE"}).places
        {'a': 'double_1', 'b': 'bigints_1', 'c': 'double_2'}
        """
        taken: Counter[str] = Counter()
        places: dict[str, str] = {}
        for column, kind in self.columns.items():
            taken[kind] += 1
            places[column] = f"{_short(kind)}_{taken[kind]}"
        return places

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        return pa.schema([(name, _ARROW_TYPES[sql_type]) for name, sql_type in self.columns.items()])


@dataclass(frozen=True)
class Scalar:
    """A scalar function over Arrow arrays, called by macros: ``function(session, *arrays) -> array``.

    Attributes:
        volatile: DuckDB must not call it twice for a row, in a filter and in the result.
    """

    name: str
    arguments: tuple[str, ...]
    returns: str
    function: Callable[..., pa.Array]
    volatile: bool = False


@dataclass(frozen=True)
class Family:
    """One family of SQL functions.

    Attributes:
        name: the same word on every floor.
        stored: SQL files that are pure SQL.
        temporary: SQL files whose macros call Python; they live in the database, too, and what they call is temporary.
    """

    name: str
    stored: tuple[str, ...] = ()
    temporary: tuple[str, ...] = ()
    planners: tuple[Planner, ...] = ()
    scalars: tuple[Scalar, ...] = ()


def _raised_in(problem: BaseException) -> str:
    """The module that raised an exception."""
    traceback = problem.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return "" if traceback is None else str(traceback.tb_frame.f_globals.get("__name__", ""))


_KIND_OF_ERROR = re.compile(r"^[A-Z]\w*( \w+)* Error: ")


def message_of(problem: BaseException, where: str) -> str:
    """The text a user of SQL sees for an exception: the one place where errors are mapped."""
    if isinstance(problem, Warning):  # of an old name, where the user makes errors of warnings
        return str(problem)
    if isinstance(problem, SDCError):
        return f"{where}: {problem}"
    if isinstance(problem, Stopped):
        return f"{where}: interrupted"
    if isinstance(problem, duckdb.Error):
        return f"{where}: {_KIND_OF_ERROR.sub('', str(problem))}"
    if isinstance(problem, ValueError) and _raised_in(problem).startswith("sdcduck."):
        return f"{where}: {problem}"
    if isinstance(problem, ModuleNotFoundError) and (left_out := (problem.name or "").split(".")[0]) in LEFT_OUT:
        return f"{where}: {absent(left_out)}"
    return f"{where}: internal error ({type(problem).__name__}); please report it"


@cache
def _sql_type(text: str) -> DuckDBPyType:
    """A type of SQL; DuckDB reads its text as long as it takes to create a function."""
    return DuckDBPyType(text)


WITH_PYTHON = "sdcduck (not loaded: open the file with sdcduck.connect, or call sdcduck.install on this connection)"
"""The function that macros ask first, by a name that is read where it is not there (`_sdc_with_python`)."""


def _written_in(default_order: str, default_null_order: str, plan: str) -> str:
    """The statement that a macro is, or what is in its way in the session that it is written into."""
    try:
        if "ORDER BY" in plan:
            refuse_other_order(default_order, default_null_order)
    except SDCError as problem:
        return _error(str(problem))
    return plan


def create_functions(
    con: duckdb.DuckDBPyConnection, session: Session, families: Sequence[Family]
) -> dict[str, Callable[..., object]]:
    """Create the Python functions of the families on a database; returns them by name.

    Keep them as long as the database may call them.
    """
    created: dict[str, Callable[..., object]] = {}
    running: dict[str, _Running] = {}
    plans: dict[str, Callable[..., str]] = {}

    def create(
        name: str, function: Callable[..., object], arguments: Sequence[str], returns: str, **how: object
    ) -> None:
        # The stubs name the accepted texts one by one; ours are checked by DuckDB itself.
        create_function: Any = con.create_function
        kinds = [_sql_type(kind) for kind in arguments]
        created[name] = _with_signature(CALLS.counted(function), tuple(arguments))
        create_function(name, created[name], kinds, _sql_type(returns), null_handling="special", **how)

    create(WITH_PYTHON, _written_in, ["VARCHAR", "VARCHAR", "VARCHAR"], "VARCHAR")
    for family in families:
        for scalar in family.scalars:
            function = partial(scalar.function, session)
            create(scalar.name, function, scalar.arguments, scalar.returns, type="arrow", side_effects=scalar.volatile)
        for planner in family.planners:
            tokens: dict[str, Rows] = {}
            name = planner.name[4:]
            plans[name] = _planned(session, planner, tokens)
            caller, others = planner.caller
            if caller not in created:
                create(caller, lambda name, *given: plans[name](*given), ["VARCHAR", "VARCHAR[]", *others], "VARCHAR")
            if planner.columns:
                running[name] = _Running(session, planner, tokens)
    places = _places([planner for family in families for planner in family.planners])
    create(
        "_sdc_rows", lambda names, *asked: running[names[0].as_py()].rows(places, *asked),
        ["VARCHAR", "VARCHAR", "BIGINT"], _rows_type(places), type="arrow", side_effects=True,
    )  # fmt: skip
    if _STOPS_ASKING:
        create(
            "_sdc_done", lambda names, *asked: running[names[0].as_py()].done(*asked),
            ["VARCHAR", "VARCHAR", "BIGINT", "BIGINT"], "BIGINT", type="arrow", side_effects=True,
        )  # fmt: skip
    return created


def _short(kind: str) -> str:
    return kind.lower().replace("[]", "s")


def _caller(others: Sequence[str]) -> str:
    """The function that calls the planners with such arguments beside texts.

    >>> _caller([]), _caller(["DOUBLE", "BLOB[]", "DOUBLE"])
    ('_sdc_plan', '_sdc_plan_double_blobs_double')
    """
    return "_".join(["_sdc_plan", *map(_short, others)])


def _as_taken(kind: str) -> str:
    """Of a BIGINT argument DuckDB would refuse 2.5 in the name of a function that nobody called."""
    return "VARCHAR" if kind in ("BIGINT", "VARCHAR[]") else kind


def call_of_planner(name: str, arguments: Sequence[tuple[str, str]]) -> str:
    """SQL that calls the planner of a function: all texts in a list, and then what is of another type, in order.

    Args:
        name: of the function, without ``sdc_``.
        arguments: SQL, and the type that the planner is given it in.

    >>> print(call_of_planner("f", [('"a"::VARCHAR', "BIGINT"), ('"b"', "DOUBLE"), ('"c"::VARCHAR', "VARCHAR")]))
    _sdc_plan_double('f', ["a"::VARCHAR, "c"::VARCHAR], "b")
    """
    taken = [(sql, _as_taken(kind)) for sql, kind in arguments]
    texts = ", ".join(sql for sql, kind in taken if kind == "VARCHAR")
    others = [(sql, kind) for sql, kind in taken if kind != "VARCHAR"]
    caller = _caller([kind for _, kind in others])
    return f"{caller}({', '.join([literal(name), f'[{texts}]', *(sql for sql, _ in others)])})"


def _error(message: str) -> str:
    """A statement that ends in this error, which surfaces while binding, with our text alone and its place."""
    return f"SELECT * FROM query(error({literal(message)}))"


def _planned(session: Session, planner: Planner, tokens: dict[str, Rows]) -> Callable[..., str]:
    taken = planner.taken

    def plan(texts: Sequence[str | None], *others: Any) -> str:
        each, rest = iter(texts), iter(others)
        given = [next(each if kind == "VARCHAR" else rest) for kind in taken]
        try:
            if planner.renamed:
                _say_new_names(planner, str(given[-1]).split())
                del given[-1]
            arguments = _read(planner, given)
            answer = planner.plan(session, *arguments)
        except Exception as problem:
            return _error(message_of(problem, planner.name))
        if isinstance(answer, str):
            return answer
        # The token depends on the arguments only: a prepared statement that is bound once finds its rows for good.
        token = hashlib.sha256(json.dumps(arguments, default=str).encode()).hexdigest()
        tokens[token] = answer
        name = planner.name[4:]
        asked = ""
        if _STOPS_ASKING:
            # Each step asks once; in between DuckDB sees whether it was interrupted. In a subquery tied to other rows
            # each of these asks, so that no LIMIT can end it.
            done = f"_sdc_done('{name}', '{token}', txid_current()::BIGINT, "
            asked = (
                f"FROM (WITH RECURSIVE asked(time, done) AS (SELECT 0::BIGINT, {done}0::BIGINT) UNION ALL "
                f"SELECT time + 1, {done}time + 1) FROM asked WHERE done = 0) SELECT 1 FROM asked WHERE done = 1)"
            )
        columns = ", ".join(
            f"unnest(CASE WHEN answer.error IS NULL THEN answer.{place} ELSE error(answer.error) END) "
            f"AS {identifier(column)}"
            for column, place in planner.places.items()
        )
        rows = (
            f"SELECT {columns} FROM (SELECT _sdc_rows('{name}', '{token}', txid_current()::BIGINT) AS answer {asked})"
        )
        # Joined to what turns out to be empty, rows would not be asked for, and nobody told of an error.
        made = f"(WITH _sdc_made AS MATERIALIZED ({rows}) FROM _sdc_made)"
        return rows if answer.select is None else answer.select.replace("{rows}", made)

    return plan


_LARGEST_WHOLE = 2**63
_EXACT = 2.0**53
_WHOLE = re.compile(r"[+-]?\d+")


def _say_new_names(planner: Planner, used: Sequence[str]) -> None:
    for name in used:
        now = planner.renamed[name]
        what = f"{name} is called {now} now" if now == planner.name else f"argument '{name}' is called '{now}' now"
        # Between this and the statement of the user stand the planner, who calls it, what counts calls, and DuckDB.
        warnings.warn(f"{planner.name}: {what}", DeprecationWarning, stacklevel=6)


def _read(planner: Planner, given: Sequence[Any]) -> list[Any]:
    """The arguments of a planner: those that are BIGINT as whole numbers, those that are VARCHAR[] as lists."""
    reading = {"BIGINT": _whole, "VARCHAR[]": _names}
    return [
        reading[kind](planner, place, value) if kind in reading and isinstance(value, str) else value
        for place, (kind, value) in enumerate(zip(planner.arguments, given, strict=True))
    ]


def _names(planner: Planner, place: int, text: str) -> list[str | None]:
    """A list of texts from its JSON; a single one is a list of one."""
    given = json.loads(text)
    names = given if isinstance(given, list) else [given]
    if any(isinstance(name, list | dict) for name in names):
        raise SDCError(f"{_called(planner, place)} must be a list of names, such as ['a', 'b']")
    return [name if name is None or isinstance(name, str) else json.dumps(name) for name in names]


def _whole(planner: Planner, place: int, text: str) -> int:
    """A whole number from its text; 3.0 and 1e6 are whole, too."""
    called = f"{_called(planner, place)} must be a whole number"
    if _WHOLE.fullmatch(text.strip()):
        if not -_LARGEST_WHOLE <= int(text) < _LARGEST_WHOLE:
            raise SDCError(f"{called} of 64 bits")
        return int(text)
    try:
        number = float(text)
    except ValueError:
        raise SDCError(f"{called} of 64 bits, not {text!r}") from None
    if not number.is_integer():
        raise SDCError(f"{called}, not {number:.17g}")
    if abs(number) > _EXACT:
        raise SDCError(f"{called} between -2^53 and 2^53, not {number:.17g}")
    return int(number)


def _called(planner: Planner, place: int) -> str:
    """What a message calls an argument; the first parameter of a planner is the session."""
    names = planner.names or list(signature(planner.plan).parameters)[1:]
    return f"argument '{names[place]}'" if place < len(names) else "an argument"


def _with_signature(function: Callable[..., object], kinds: tuple[str, ...]) -> Callable[..., object]:
    """The function with parameters of these types: DuckDB counts them and takes no ``*arguments``."""

    def called(*arguments: object) -> object:
        return function(*arguments)

    called.__signature__ = _signature(kinds)  # type: ignore[attr-defined]
    return called


@cache
def _signature(kinds: tuple[str, ...]) -> Signature:
    """Parameters, with their types in DuckDB 1 only: it takes a tenth of a millisecond to find out that one has none.

    DuckDB 2 takes longer where they have one.
    """
    typed = duckdb.__version__.startswith("1.")
    return Signature(
        [
            Parameter(
                f"argument{place}", Parameter.POSITIONAL_ONLY, annotation=_sql_type(kind) if typed else Parameter.empty
            )
            for place, kind in enumerate(kinds)
        ]
    )


_ARROW_TYPES: Mapping[str, pa.DataType] = {
    "VARCHAR": pa.string(),
    "VARCHAR[]": pa.list_(pa.string()),
    "BIGINT": pa.int64(),
    "BIGINT[]": pa.list_(pa.int64()),
    "DOUBLE": pa.float64(),
    "DOUBLE[]": pa.list_(pa.float64()),
    "BOOLEAN": pa.bool_(),
    "BLOB": pa.binary(),
    "TIMESTAMP": pa.timestamp("us"),
}


def _places(planners: Sequence[Planner]) -> dict[str, str]:
    """The places that the columns of all planners need, with their types."""
    return {
        place: planner.columns[column] for planner in planners for column, place in planner.places.items()
    }  # fmt: skip


def _rows_type(places: Mapping[str, str]) -> str:
    """What `_sdc_rows` answers: why there is no table, or a list for each column of it and NULL in all other places."""
    return f"STRUCT(error VARCHAR, {', '.join(f'{place} {kind}[]' for place, kind in places.items())})"


_STOPS_ASKING = not duckdb.__version__.startswith("1.")  # DuckDB 1 cannot be asked while a statement runs
_TURN = 0.004  # seconds that one question waits


class _Running:
    """The work for the statements that are running, of one planner.

    A statement is known by its token and the number of its transaction; where one statement makes the same call twice,
    either may get the answer first, and the other has it made again. In a subquery that is tied to other rows DuckDB 2
    asks for each of these, in chunks: they get one answer.
    """

    def __init__(self, session: Session, planner: Planner, tokens: Mapping[str, Rows]) -> None:
        self._session, self._planner, self._tokens = session, planner, tokens
        self._columns = planner.schema
        self._works: dict[tuple[str, int], Work] = {}
        self._lock = threading.Lock()

    def _begin(self, token: str) -> Work:
        return Work(self._tokens[token].make, self._session.display(self._planner.name))

    def _work(self, key: tuple[str, int], *, first: bool = False) -> Work:
        """The work of a statement; begun if it has none, and again if it was given up.

        Of other statements, what nobody has asked for in long is dropped. A statement that asks is there, however long
        a machine that swaps kept it from asking: work that writes must not be done twice, so what was given up is
        begun again when it has ended. Who asks for the first time wants no table that others have already.
        """
        with self._lock:
            self._works = {
                known: work for known, work in self._works.items() if known == key or not work.forsaken
            }  # fmt: skip
            work = self._works.get(key)
            if work is None or (work.stopped and work.over) or (first and work.handed_out):
                work = self._works[key] = self._begin(key[0])
            return work

    def done(self, token_column: pa.ChunkedArray, transactions: pa.ChunkedArray, times: pa.ChunkedArray) -> pa.Array:
        """1 if the work is over, else 0; it waits for a turn.

        Numbers of 64 bits, because DuckDB takes them as they are: as long as it needs the answer, the array is there.
        """
        key = (token_column[0].as_py(), transactions[0].as_py())
        answer = np.zeros(len(token_column), dtype=np.int64)
        try:
            work = self._work(key, first=times[0].as_py() == 0)
            work.shared |= len(answer) > 1
            # Work given up in the very moment of the question is begun again by the next one.
            answer[:] = work.wait(_TURN) and not work.stopped
        except KeyboardInterrupt:
            # Only where the main thread runs the statement; DuckDB would call this an error in a function.
            work = self._work(key)
            work.stop()
            answer[:] = 1
        work.answered(answer)
        return pa.Array.from_buffers(pa.int64(), len(answer), [None, pa.py_buffer(answer)])

    def rows(self, places: Mapping[str, str], token_column: pa.ChunkedArray, transactions: pa.ChunkedArray) -> pa.Array:
        """The table that was made, each column in its place, or why there is none."""
        key = (token_column[0].as_py(), transactions[0].as_py())
        with self._lock:
            work = self._works.get(key)
            if work is not None and work.shared:
                work.handed_out = True
            elif work is not None:
                del self._works[key]
        error, table = None, self._columns.empty_table()
        try:
            table = (work or self._begin(key[0])).result().cast(self._columns)
        except Exception as problem:
            error = message_of(problem, self._planner.name)
        whole = pa.array([0, len(table)], pa.int32())
        lists = {
            place: pa.ListArray.from_arrays(whole, table[column].combine_chunks())
            for column, place in self._planner.places.items()
        }
        answer = pa.StructArray.from_arrays(
            [
                pa.array([error], pa.string()),
                *(lists.get(place, pa.nulls(1, pa.list_(_ARROW_TYPES[kind]))) for place, kind in places.items()),
            ],
            ["error", *places],
        )
        if len(token_column) == 1:
            return answer
        first = pa.array(np.zeros(len(token_column), dtype=np.int32))
        # One table for all of these rows. DuckDB 1 does not read such an array, and never asks for several.
        return pa.DictionaryArray.from_arrays(first, answer) if _STOPS_ASKING else answer.take(first)
