"""The calls that clients of Arrow Flight SQL make.

A question is asked when the client wants to know where its answer is (GetFlightInfo): there the guard judges, once, and
there a refusal is told. Its rows come when the client fetches them (DoGet), batch by batch as it reads; an answer that
nobody fetches is given up after a while.
"""

from __future__ import annotations

import functools
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa
import pyarrow.flight as flight
from sqlglot import TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from sdcduck.errors import SDCError
from sdcduck.gateway.answers import Answer, Explained, FromSystem, Guarded, Role
from sdcduck.gateway.events import note
from sdcduck.gateway.flight import messages, metadata
from sdcduck.gateway.flight.login import Caller, Door, NoHandshake, TokenSession, TokenSessions
from sdcduck.gateway.flight.messages import BadMessage, Fields, message, named
from sdcduck.gateway.flight.running import Cancelled, Describing, Running, Watch
from sdcduck.gateway.postgres import statements
from sdcduck.gateway.postgres.dialect import is_large
from sdcduck.gateway.postgres.parameters import expanded, parameter_types, size_of
from sdcduck.gateway.postgres.settings import VERSION_TEXT, BadSetting, Settings
from sdcduck.gateway.postgres.sql import to_duckdb
from sdcduck.gateway.shared_state import RAW_NOTICE, FlightOptions, SharedState, is_loopback
from sdcduck.gateway.system.queries import SessionValues, readable
from sdcduck.guard import Refused
from sdcduck.guard.planned import about_plan
from sdcduck.guard.worth import with_worth

_UNREAD = 300.0
_MOST_PREPARED = 1000
_MOST_PARAMETERS = 10_000
_LARGEST_VALUES = 1_000_000
_MOST_HELD = 8_000_000
_STATEMENT = 500
"""Bytes that a prepared question takes beside its text, roughly."""
_MIDDLEWARE = "caller"
_NOTICE = "sdcduck.notice"
_NOTHING_CHANGES = "SDC004"

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class _Prepared:
    """A question that was prepared, and the values of its parameters once they came.

    Attributes:
        size: bytes that all of it takes.
    """

    sql: str
    size: int
    values: list[object] = field(default_factory=list)


def _told(call: Callable[P, T]) -> Callable[P, T]:
    """A call whose errors are those of Flight, and never have data in them."""

    def told(*arguments: P.args, **named_arguments: P.kwargs) -> T:
        try:
            with _Told():
                return call(*arguments, **named_arguments)
        except flight.FlightError as problem:
            raise problem.with_traceback(None) from None

    # From some calls (GetSchema) Arrow sends an error with the lines of source that it came through: this one, unnamed.
    told.__code__ = told.__code__.replace(co_filename="sdcduck", co_firstlineno=1)
    return functools.wraps(call)(told)


class _Told:
    """Turns what is raised inside into what a client is told."""

    def __enter__(self) -> None:
        """Nothing is to be done before."""

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        """Tell."""
        match problem:
            case None | flight.FlightError() | GeneratorExit():
                return
            case Refused():
                raise _KINDS.get(problem.code, flight.FlightUnauthorizedError)(str(problem)) from None
            case Cancelled():
                # Python clients take the error "cancelled" for a Ctrl-C of their user.
                raise flight.FlightUnavailableError("the question was stopped") from None
            case BadMessage():
                raise flight.FlightServerError(str(problem)) from None
            case _:  # a fault of ours: the kind of it, and nothing that may hold data
                note("failed", kind=type(problem).__name__)
                raise flight.FlightInternalError(f"internal error ({type(problem).__name__})") from None


# Other errors than those of Flight itself reach clients with the lines of our source in them.
_KINDS: Mapping[str, type[Exception]] = {
    "SDC091": flight.FlightTimedOutError,
    "SDC092": flight.FlightUnavailableError,
}


class FlightGateway:
    """The door for Arrow Flight SQL.

    Args:
        shared: whom and what it serves.

    Raises:
        SDCError: the address cannot be listened on.
    """

    def __init__(self, shared: SharedState, options: FlightOptions) -> None:
        self._server = _Server(shared, options)
        self._options = options
        self.port: int = self._server.port
        shared.counts.watch("connections", "flight", lambda: len(self._server.sessions))
        shared.counts.watch("running", "flight", lambda: self._server.watch.busy)

    def stop(self) -> None:
        """Take no more questions, give those that run a while, and end."""
        self._server.stopping = True
        until = time.monotonic() + self._options.grace
        while self._server.answers and time.monotonic() < until:
            time.sleep(0.02)
        self._server.watch.stop_all()
        # A client that does not read what it asked for would keep the server for ever.
        ending = threading.Thread(target=self._server.shutdown, name="sdcduck-flight-end", daemon=True)
        ending.start()
        ending.join(max(self._options.grace, 1))
        for running in list(self._server.answers.values()):
            running.close_if_idle()
        self._server.watch.close(max(self._options.grace, 1))
        if not ending.is_alive():
            self._server.let_go()


class _Server(flight.FlightServerBase):  # type: ignore[misc]
    """What Arrow calls, each call in a thread of its own."""

    def __init__(self, shared: SharedState, options: FlightOptions) -> None:
        self._shared, self._options = shared, options
        self.sessions = TokenSessions(options.idle)
        self.answers: dict[bytes, Running] = {}
        self.stopping = False
        self.watch = Watch(self._sweep)
        tls = options.certificate
        host = f"[{options.host}]" if ":" in options.host else options.host
        where = f"grpc{'+tls' if tls is not None else ''}://{host}:{options.port}"
        overheard = tls is None and not is_loopback(options.host)
        self._door = Door(shared, self.sessions, encrypted=tls is not None, overheard=overheard)
        try:
            super().__init__(
                where,
                auth_handler=NoHandshake(),
                tls_certificates=None if tls is None else [(tls.chain, tls.key)],
                verify_client=options.issuer is not None,
                root_certificates=options.issuer,
                middleware={_MIDDLEWARE: self._door},
            )
        except (pa.ArrowException, OSError):
            self.watch.close(max(self._options.grace, 1))
            self.let_go()
            raise SDCError(f"cannot listen on {options.host}:{options.port} for Arrow Flight SQL") from None

    def let_go(self) -> None:
        """Hold nothing any more: Arrow keeps what it called for as long as the process lives."""
        del self._shared, self._door.shared

    # Calls

    @_told
    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Ask a question, or be told where what is known of the database is."""
        session = _session(context)
        asked = messages.command(descriptor.command or b"")
        match asked:
            case messages.Query():
                return self._info(context, session, descriptor, asked.sql, [])
            case messages.PreparedQuery():
                prepared = _prepared(session, asked.handle)
                return self._info(context, session, descriptor, prepared.sql, prepared.values)
            case messages.Update():
                raise self._change_refused(session, asked.sql)
            case messages.Answered():
                raise Refused(_NOTHING_CHANGES)
            case _:
                ticket = flight.Ticket(descriptor.command)
                endpoints = [flight.FlightEndpoint(ticket, [])]
                return flight.FlightInfo(metadata.schema_of(asked), descriptor, endpoints, -1, -1)

    @_told
    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """The columns of an answer, without asking for it."""
        session = _session(context)
        asked = messages.command(descriptor.command or b"")
        match asked:
            case messages.Query():
                return flight.SchemaResult(self._described(context, session, asked.sql))
            case messages.PreparedQuery():
                return flight.SchemaResult(self._described(context, session, _prepared(session, asked.handle).sql))
            case messages.Update():
                raise self._change_refused(session, asked.sql)
            case messages.Answered():
                raise Refused(_NOTHING_CHANGES)
            case _:
                return flight.SchemaResult(metadata.schema_of(asked))

    @_told
    def do_get(self, context: Any, ticket: Any) -> Any:
        """The rows of an answer."""
        session = _session(context)
        asked = messages.command(ticket.ticket)
        match asked:
            case messages.Answered():
                running = self._running(session, asked.handle)
                if not running.take():
                    raise BadMessage("an answer can be read once")
                schema = self._schema_of(session, running.answer)
                return flight.GeneratorStream(schema, self._rows(context, asked.handle, running))
            case messages.Query() | messages.PreparedQuery() | messages.Update():
                raise BadMessage("a question has to be asked first, with GetFlightInfo")
            case _:
                return flight.RecordBatchStream(metadata.answer(asked, self._shared.role_of(session.account)))

    @_told
    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """The values of the parameters of a question that was prepared; nothing else is taken in."""
        session = _session(context)
        asked = messages.command(descriptor.command or b"")
        if isinstance(asked, messages.Update):
            raise self._change_refused(session, asked.sql)
        if not isinstance(asked, messages.PreparedQuery):
            raise Refused(_NOTHING_CHANGES)
        prepared = _prepared(session, asked.handle)
        rows, values, size = 0, list[object](), 0
        for chunk in reader:
            batch = chunk.data
            if batch is None:
                continue
            rows += batch.num_rows
            if rows > 1:
                raise BadMessage("a question is asked with one value for each parameter at a time")
            if batch.num_columns > _MOST_PARAMETERS or batch.nbytes > _LARGEST_VALUES:
                raise BadMessage("too many or too large values of parameters")
            if batch.num_rows:
                values = _first_row(batch)
                size = batch.nbytes + size_of(values)
        size += _size(prepared.sql)
        with session.alone:
            self._hold(session, size - prepared.size)
            prepared.values, prepared.size = values, size
        writer.write(message((1, asked.handle)))

    @_told
    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Prepare a question, forget it, cancel one, leave; transactions can be begun and have nothing to undo."""
        session = _session(context)
        act = _ACTIONS.get(action.type)
        if act is None:
            raise BadMessage("an action that is not known here")
        body = action.body.to_pybytes() if action.body is not None else b""
        return iter(act(self, context, session, body))

    def list_flights(self, context: Any, criteria: Any) -> Iterator[Any]:
        """There are none: what is there is told by the commands of Flight SQL."""
        return iter(())

    @_told
    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Nothing is exchanged."""
        raise BadMessage("a call that is not known here")

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """What `do_action` does."""
        return [(name, "") for name in _ACTIONS]

    # Questions

    def _change_refused(self, session: TokenSession, statement: str) -> Refused:
        """The refusal of what would change something, with a line in the audit log: the guard never sees it."""
        guard, user = self._shared.role_of(session.account).guard, session.account.name
        guard.audit.write(statement, user, time.perf_counter(), _NOTHING_CHANGES, 0, None, "")
        return Refused(_NOTHING_CHANGES)

    def _hold(self, session: TokenSession, size: int) -> None:
        """Keep so much more for a session, which is what it was told of the other door: a user has as much on both."""
        most = _MOST_HELD * self._shared.limits.connections
        if not self.sessions.hold(session, size, each=_MOST_HELD, most=most):
            raise BadMessage("too many or too large prepared statements; close some")

    @contextmanager
    def _slot(self, session: TokenSession) -> Iterator[None]:
        """A slot for as long as a question is looked at: for the columns of a PIVOT, another question is asked."""
        user = session.account.name
        if not self._shared.slots.acquire(user):
            raise flight.FlightUnavailableError("too many connections and questions at a time")
        try:
            yield
        finally:
            self._shared.slots.release(user)

    def _info(self, context: Any, session: TokenSession, descriptor: Any, sql: str, values: list[object]) -> Any:
        handle, running = self._ask(context, session, sql, values)
        ticket = flight.Ticket(named("TicketStatementQuery", (1, handle)))
        schema = self._schema_of(session, running.answer)
        return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(ticket, [])], -1, -1)

    def _ask(self, context: Any, session: TokenSession, sql: str, values: list[object]) -> tuple[bytes, Running]:
        user = session.account.name
        if self.stopping:
            raise flight.FlightUnavailableError("the gateway is stopped")
        answer, parameters = self._answer(session, sql, values)
        if not self._shared.slots.acquire(user):
            raise flight.FlightUnavailableError("too many connections and questions at a time")
        running = Running(
            answer, session.token, self._shared.limits.seconds, time.monotonic(),
            lambda: self._shared.slots.release(user),
        )  # fmt: skip
        handle = secrets.token_bytes(16)
        self.answers[handle] = running
        try:
            running.ask(self.watch, context.is_cancelled, parameters)
        except BaseException:
            self._forget(handle, running)
            raise
        return handle, running

    def _answer(self, session: TokenSession, sql: str, values: list[object]) -> tuple[Answer, Mapping[str, object]]:
        role = self._shared.role_of(session.account)
        explained = _explained(sql)
        if explained is not None:
            text = to_duckdb(_numbered(explained.sql), self._shared.database)
            return Explained(role.guard, explained, text, session.account.name), {}
        text, system = self._text(role, sql)
        asked, parameters = expanded(text, values)
        if system:
            return FromSystem(role.catalog, asked, self._values(session)), parameters
        return Guarded(role.guard, asked, session.account.name), parameters

    def _text(self, role: Role, sql: str) -> tuple[str, bool]:
        """A question as it is asked, and whether it is about the database itself."""
        if about_plan(sql):
            return sql, False
        sql = _numbered(sql)
        system = role.is_system(sql)
        return (readable(sql) if system else to_duckdb(sql, self._shared.database)), system

    def _values(self, session: TokenSession) -> SessionValues:
        settings = Settings(session.account.name)

        def setting(name: str) -> str | None:
            try:
                return settings.show(name)
            except BadSetting:
                return None

        def fixed(name: str, value: str) -> str:
            raise Refused(_NOTHING_CHANGES, "settings")

        return SessionValues(session.account.name, self._shared.database, 0, VERSION_TEXT, setting, fixed)

    def _described(self, context: Any, session: TokenSession, sql: str) -> pa.Schema:
        """The columns of an answer."""
        if _explained(sql) is not None:
            return pa.schema([("QUERY PLAN", pa.string())])
        role = self._shared.role_of(session.account)
        text, system = self._text(role, sql)
        names = [kind.sql for kind in parameter_types(text, role.schema, ())]
        values = self._values(session)
        with self._slot(session):
            columns = Describing(self._shared.limits.seconds).columns(
                self.watch, context.is_cancelled,
                lambda first: role.duckdb_columns(text, system=system, values=values, types=names, first=first),
            )  # fmt: skip
        return metadata.arrow_schema(role, columns)

    def _described_without_values(self, context: Any, session: TokenSession, sql: str) -> pa.Schema | None:
        """The same; None: that cannot be told, as it may be for the lack of values."""
        try:
            return self._described(context, session, sql)
        except Refused as refused:
            if refused.code != "SDC090":
                raise
            return None

    def _parameters(self, session: TokenSession, sql: str) -> pa.Schema:
        """The parameters of a question."""
        if _explained(sql) is not None:
            return pa.schema([])
        role = self._shared.role_of(session.account)
        text, _ = self._text(role, sql)
        kinds = parameter_types(text, role.schema, ())
        return metadata.arrow_schema(role, [(str(place), kind.sql) for place, kind in enumerate(kinds, 1)])

    def _rows(self, context: Any, handle: bytes, running: Running) -> Iterator[pa.RecordBatch]:
        most = self._shared.limits.rows
        try:
            with _Told():
                while (batch := running.read(self.watch, context.is_cancelled)) is not None:
                    running.rows += batch.num_rows
                    if most is not None and running.rows > most:
                        raise Refused("SDC093")
                    yield batch
        finally:
            self._forget(handle, running)

    def _schema_of(self, session: TokenSession, answer: Answer) -> pa.Schema:
        """The columns of an answer, with what has to be known of it."""
        schema = with_worth(answer.schema, answer.worth)
        told = answer.notice or (RAW_NOTICE if self._shared.role_of(session.account).raw else "")
        return schema.with_metadata({**(schema.metadata or {}), _NOTICE: told}) if told else schema

    def _running(self, session: TokenSession, handle: bytes) -> Running:
        running = self.answers.get(handle)
        if running is None or running.owner != session.token:
            raise BadMessage("there is no such answer, or no longer")
        return running

    def _forget(self, handle: bytes, running: Running) -> None:
        self.answers.pop(handle, None)
        running.close()

    def _sweep(self) -> None:
        """Give up what nobody fetches, and those who have been silent for too long."""
        now = time.monotonic()
        for handle, running in list(self.answers.items()):
            if now - running.since > (self._options.idle if running.taken else min(_UNREAD, self._options.idle)):
                running.stopped = running.stopped or Cancelled()
                running.close_if_idle()
                self.answers.pop(handle, None)
        for session in self.sessions.sweep(now=now):
            self._left(session)

    def _left(self, session: TokenSession) -> None:
        note("left", user=session.account.name, door="flight")

    # Actions

    def _prepare(self, context: Any, session: TokenSession, body: bytes) -> list[bytes]:
        fields = messages.inside(body, "ActionCreatePreparedStatementRequest")
        sql = fields.text(1) or ""
        if len(session.prepared) >= _MOST_PREPARED:
            raise BadMessage("too many prepared statements")
        size = _size(sql)
        self._hold(session, size)
        try:
            columns = self._described_without_values(context, session, sql)
            parameters = self._parameters(session, sql).serialize().to_pybytes()
        except BaseException:
            self._hold(session, -size)
            raise
        handle = secrets.token_bytes(16)
        session.prepared[handle] = _Prepared(sql, size)
        result: list[tuple[int, bytes | int]] = [(1, handle)]
        if columns is not None:
            result.append((2, columns.serialize().to_pybytes()))
        result.append((3, parameters))
        return [named("ActionCreatePreparedStatementResult", *result)]

    def _close_prepared(self, context: Any, session: TokenSession, body: bytes) -> list[bytes]:
        fields = messages.inside(body, "ActionClosePreparedStatementRequest")
        found = session.prepared.pop(fields.data(1) or b"", None)
        if isinstance(found, _Prepared):
            with session.alone:
                self._hold(session, -found.size)
                found.size = 0
        return []

    def _cancel_info(self, context: Any, session: TokenSession, body: bytes) -> list[bytes]:
        self._cancel(session, Fields(body).data(1) or b"")
        return [message((1, _CANCELLED))]

    def _cancel_query(self, context: Any, session: TokenSession, body: bytes) -> list[bytes]:
        self._cancel(session, messages.inside(body, "ActionCancelQueryRequest").data(1) or b"")
        return [named("ActionCancelQueryResult", (1, _CANCELLED))]

    def _cancel(self, session: TokenSession, info: bytes) -> None:
        for handle in messages.answers_of(info):
            running = self._running(session, handle)
            running.stopped = running.stopped or Cancelled()
            running.close_if_idle()
            if not running.taken:
                self.answers.pop(handle, None)

    def _begin(self, context: Any, session: TokenSession, body: bytes) -> list[bytes]:
        return [named("ActionBeginTransactionResult", (1, b"there is nothing to undo"))]

    def _end(self, context: Any, session: TokenSession, body: bytes) -> list[bytes]:
        return []

    def _leave(self, context: Any, session: TokenSession, body: bytes) -> list[bytes]:
        self.sessions.end(session)
        self._left(session)
        return [message((1, _CLOSED))]


_CANCELLED = 1
_CLOSED = 1
_ACTIONS: Mapping[str, Callable[[_Server, Any, TokenSession, bytes], list[bytes]]] = {
    "CreatePreparedStatement": _Server._prepare,
    "ClosePreparedStatement": _Server._close_prepared,
    "CancelFlightInfo": _Server._cancel_info,
    "CancelQuery": _Server._cancel_query,
    "BeginTransaction": _Server._begin,
    "EndTransaction": _Server._end,
    "CloseSession": _Server._leave,
}


def _session(context: Any) -> TokenSession:
    """Who calls; without the look of `Door` nobody comes this far, and this is where that would be noticed."""
    caller = context.get_middleware(_MIDDLEWARE)
    if not isinstance(caller, Caller):
        raise flight.FlightUnauthenticatedError("not logged in")
    return caller.session


def _first_row(batch: pa.RecordBatch) -> list[object]:
    """The values of a row; what Arrow has and Python has not, such as a day in the year 300,000, is none."""
    try:
        return [column[0].as_py() for column in batch.columns]
    except (ArithmeticError, ValueError, pa.ArrowException):
        raise BadMessage("a value of a parameter that is too large for its type") from None


def _size(sql: str) -> int:
    """What a prepared question takes of the room of its session."""
    return len(sql) + _STATEMENT


def _prepared(session: TokenSession, handle: bytes) -> _Prepared:
    found = session.prepared.get(handle)
    if not isinstance(found, _Prepared):
        raise BadMessage("there is no such prepared statement")
    return found


def _explained(sql: str) -> statements.Explain | None:
    """An EXPLAIN with its question; None: it is none."""
    try:
        statement = statements.read(sql)
    except statements.Unsupported:
        return None  # the guard says what is wrong with it
    return statement if isinstance(statement, statements.Explain) else None


_DUCKDB = Dialect.get_or_raise("duckdb")


def _numbered(sql: str) -> str:
    """A question with ``$1`` in the place of ``?``.

    >>> _numbered("SELECT '?', ? FROM t WHERE n > ?")
    "SELECT '?', $1 FROM t WHERE n > $2"
    """
    if "?" not in sql or is_large(sql):
        return sql
    try:
        places = [token.start for token in _DUCKDB.tokenize(sql) if token.token_type == TokenType.PLACEHOLDER]
    except SqlglotError:
        return sql  # the guard says what is wrong with it
    for number, place in reversed(list(enumerate(places, 1))):
        sql = f"{sql[:place]}${number}{sql[place + 1 :]}"
    return sql


__all__ = ["FlightGateway"]
