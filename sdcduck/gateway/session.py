"""One client after the login: its statements, portals, cursors, settings and transaction."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import pyarrow as pa

from sdcduck.gateway import errors, protocol, statements
from sdcduck.gateway.answers import Answer, Columns, Explained, Fixed, FromSystem, Guarded, Role
from sdcduck.gateway.copying import copy_text
from sdcduck.gateway.errors import PostgresError
from sdcduck.gateway.parameters import BadParameter, by_name, expanded, parameter_types, value_of, without_arrays
from sdcduck.gateway.portals import Encode, Portal, Prepared, encode_copy, encode_rows, formats_for
from sdcduck.gateway.postgres_sql import to_duckdb
from sdcduck.gateway.protocol import Message
from sdcduck.gateway.rows import COPY_BINARY_END, COPY_BINARY_HEAD
from sdcduck.gateway.settings import BadSetting, Settings
from sdcduck.gateway.statements import Statement, Unsupported
from sdcduck.gateway.system_queries import SessionValues, numbers_of_things, readable
from sdcduck.gateway.types import BY_OID, OID, TEXT, Type, array_of, column_of
from sdcduck.guard import Refused

T = TypeVar("T")
Chunk = tuple[int, memoryview]
_AGAIN = 0.05
_MOST_STATEMENTS = 1000
_MOST_KNOWN = 2000


class Wire(Protocol):
    """The connection to the client."""

    def write(self, data: bytes | memoryview) -> None:
        """Send, or keep until there is room."""

    async def drain(self) -> None:
        """Wait until there is room.

        Raises:
            ConnectionError: the client is gone.
        """


@dataclass(frozen=True)
class Limits:
    """What one user may use.

    Attributes:
        connections: at a time.
        seconds: that a statement may run.
        rows: of a result; None: any number.
    """

    connections: int = 20
    seconds: float = 60.0
    rows: int | None = None


@dataclass(frozen=True)
class Client:
    """Who asks."""

    user: str
    role: Role
    database: str
    process: int
    version: str
    limits: Limits


class Session:
    """Answers the messages of one client."""

    def __init__(self, client: Client, settings: Settings, wire: Wire, threads: Executor) -> None:
        self._client, self._settings, self._wire, self._threads = client, settings, wire, threads
        self._statements: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}
        self._status = "I"
        self._skipping = False
        self._told: dict[str, str] = {}
        self._running: Answer | None = None
        self._busy = False
        self._stop: PostgresError | None = None
        self._values = SessionValues(
            client.user, client.database, client.process, client.version, self._setting, self._set
        )

    @property
    def busy(self) -> bool:
        """Whether it works on something."""
        return self._busy

    @property
    def in_transaction(self) -> bool:
        """Whether the client has begun a transaction."""
        return self._status != "I"

    def greet(self) -> None:
        """Tell the client the settings, and that it may ask."""
        self._report()
        self._wire.write(protocol.ready(self._status))

    def stop(self, why: PostgresError) -> None:
        """Stop what runs now, if anything does."""
        if self._busy:
            self._stop = why
            self._interrupt()

    def close(self) -> None:
        """Forget everything."""
        for portal in self._portals.values():
            self._dispose(portal)
        self._portals.clear()
        self._statements.clear()

    async def answer(self, message: Message) -> None:
        """Do what a message asks.

        Raises:
            ConnectionError: the client is gone.
            PostgresError: one that ends the session.
        """
        if isinstance(message, protocol.Sync):
            self._skipping = False
            if self._status == "I":
                self._end_transaction()
            self._ready()
            return
        if self._skipping:
            return
        self._busy, self._stop = True, None
        try:
            await self._dispatch(message)
        except PostgresError as error:
            if error.fatal:
                raise
            self._fail(error)
            if isinstance(message, protocol.Query):
                self._ready()
            else:
                self._skipping = True
        finally:
            self._busy = False
        if isinstance(message, protocol.Query | protocol.Flush):
            await self._wire.drain()

    async def _dispatch(self, message: Message) -> None:
        match message:
            case protocol.Query():
                await self._query(message.sql)
            case protocol.Parse():
                await self._parse(message)
            case protocol.Bind():
                self._bind(message)
            case protocol.Describe():
                await self._describe(message)
            case protocol.Execute():
                await self._execute(message)
            case protocol.Close():
                self._close(message)
            case protocol.Flush() | protocol.Copy():
                pass
            case _:
                raise PostgresError(errors.PROTOCOL, "a message that has no place here", fatal=True)

    def _ready(self) -> None:
        self._report()
        self._wire.write(protocol.ready(self._status))

    def _fail(self, error: PostgresError) -> None:
        if self._status == "T":
            self._status = "E"
        self._wire.write(protocol.error_response("ERROR", error.code, error.message, error.detail, error.hint))

    # Simple queries

    async def _query(self, sql: str) -> None:
        self._forget("")
        try:
            for text in statements.split(sql):
                portal = Portal(await self._prepared(text, ()))
                try:
                    await self._run(portal, 0, describe=True)
                finally:
                    self._dispose(portal)
        finally:
            if self._status == "I":
                self._end_transaction()
        self._ready()

    # Extended queries

    async def _parse(self, message: protocol.Parse) -> None:
        if message.name and message.name in self._statements:
            raise PostgresError("42P05", "a prepared statement of this name exists")
        if len(self._statements) >= _MOST_STATEMENTS:
            raise PostgresError("53400", "too many prepared statements")
        texts = statements.split(message.sql)
        if len(texts) > 1:
            raise PostgresError("42601", "cannot insert multiple commands into a prepared statement")
        self._statements[message.name] = await self._prepared(texts[0], message.types)
        self._wire.write(protocol.PARSE_COMPLETE)

    async def _prepared(self, text: str, types: Sequence[int]) -> Prepared:
        try:
            statement = statements.read(text)
        except Unsupported as problem:
            raise PostgresError(problem.code, str(problem)) from None
        if self._status == "E" and not isinstance(statement, statements.Transaction | statements.Empty):
            raise errors.FAILED_TRANSACTION
        sql = _question_of(statement)
        if sql is None:
            return Prepared(statement, types=tuple(BY_OID.get(oid, TEXT) for oid in types))
        known = self._client.role.read
        key = (sql, tuple(types))
        if key not in known:
            read = await self._in_thread(None, lambda: self._read_question(sql, types))
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[key] = read
        return Prepared(statement, *known[key])

    def _read_question(self, sql: str, types: Sequence[int]) -> tuple[str, bool, tuple[Type, ...]]:
        """The text to ask, whether it is about the database itself, and the types of its parameters."""
        system = self._client.role.is_system(sql)
        text = readable(sql) if system else to_duckdb(sql, self._client.database)
        found = parameter_types(text, self._client.role.schema, types)
        if system:
            things = numbers_of_things(sql)
            found = tuple(array_of(OID) if place in things else kind for place, kind in enumerate(found, 1))
        return text, system, found

    def _statement(self, name: str) -> Prepared:
        if name not in self._statements:
            raise PostgresError("26000", "there is no prepared statement of this name")
        return self._statements[name]

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise PostgresError("34000", "there is no portal or cursor of this name")
        return self._portals[name]

    def _bind(self, message: protocol.Bind) -> None:
        prepared = self._statement(message.statement)
        formats = message.formats
        if len(message.values) != len(prepared.types) or len(formats) not in (0, 1, len(message.values)):
            raise PostgresError(errors.PROTOCOL, f"the statement has {len(prepared.types)} parameters")
        each = [*formats, 0][:1] * len(message.values) if len(formats) <= 1 else formats
        try:
            values = [value_of(*one) for one in zip(message.values, prepared.types, each, strict=True)]
        except BadParameter as problem:
            raise PostgresError("22P02", f"a parameter is no value of type {problem}") from None
        if message.portal and message.portal in self._portals:
            raise PostgresError("42P03", "a portal of this name exists")
        self._forget(message.portal)
        self._portals[message.portal] = Portal(prepared, values, message.result_formats)
        self._wire.write(protocol.BIND_COMPLETE)

    async def _describe(self, message: protocol.Describe) -> None:
        if message.kind == "S":
            prepared = self._statement(message.name)
            self._wire.write(protocol.parameter_description([kind.oid for kind in prepared.types]))
            columns, formats = await self._columns(prepared), []
        else:
            portal = self._portal(message.name)
            columns = portal.columns = portal.columns or await self._columns(portal.prepared) or []
            formats = _formats(columns, portal.formats)
        if columns:
            self._describe_rows(columns, formats)
        else:
            self._wire.write(protocol.NO_DATA)

    async def _columns(self, prepared: Prepared) -> Columns | None:
        """The columns of an answer, without asking for it."""
        statement = prepared.statement
        if isinstance(statement, statements.Show):
            return [(statement.name, TEXT)]
        if isinstance(statement, statements.Explain):
            return [("QUERY PLAN", TEXT)]
        if isinstance(statement, statements.Fetch) and not statement.move:
            return self._portal(statement.name).columns
        if isinstance(statement, statements.Ask) and prepared.columns is None:
            known, key = self._client.role.described, (prepared.sql, prepared.types)
            if key not in known:
                described = await self._in_thread(None, lambda: self._described(prepared))
                if len(known) >= _MOST_KNOWN:
                    known.clear()
                known[key] = described
            prepared.columns = known[key]
        return prepared.columns

    def _described(self, prepared: Prepared) -> Columns:
        return self._client.role.columns(
            prepared.sql if prepared.system else without_arrays(prepared.sql),
            system=prepared.system,
            values=self._values,
            types=prepared.types,
        )

    async def _execute(self, message: protocol.Execute) -> None:
        portal = self._portal(message.portal)
        await self._run(portal, max(0, message.rows), describe=False)

    def _close(self, message: protocol.Close) -> None:
        if message.kind == "S":
            self._statements.pop(message.name, None)
        else:
            self._forget(message.name)
        self._wire.write(protocol.CLOSE_COMPLETE)

    def _forget(self, name: str) -> None:
        portal = self._portals.pop(name, None)
        if portal is not None:
            self._dispose(portal)

    def _dispose(self, portal: Portal) -> None:
        """Give back what a portal holds; where rows are left, the audit log hears of it, which may take a while."""
        if portal.done or portal.answer is None:
            portal.close()
        else:
            self._threads.submit(portal.close)

    # Running

    async def _run(self, portal: Portal, rows: int, *, describe: bool) -> None:
        statement = portal.prepared.statement
        if self._status == "E" and not isinstance(statement, statements.Transaction | statements.Empty):
            raise errors.FAILED_TRANSACTION
        match statement:
            case statements.Empty():
                self._wire.write(protocol.EMPTY_QUERY)
            case statements.Copy():
                await self._copy(portal, statement)
            case statements.Declare():
                await self._declare(portal, statement)
            case statements.Fetch():
                await self._fetch(statement, portal, describe=describe)
            case statements.Ask() | statements.Show() | statements.Explain():
                await self._rows(portal, rows, describe=describe)
            case _:
                self._wire.write(protocol.command_complete(self._effect(statement)))

    async def _rows(self, portal: Portal, rows: int, *, describe: bool) -> None:
        first = await self._open(portal, lambda: portal.take(rows, self._encode(portal)))
        if describe:
            self._describe_rows(portal.columns, _formats(portal.columns, portal.formats))
        sent = await self._stream(portal, rows, self._encode(portal), first)
        if rows and sent == rows:
            self._wire.write(protocol.PORTAL_SUSPENDED)
        else:
            tag = "SHOW" if isinstance(portal.prepared.statement, statements.Show) else f"SELECT {sent}"
            self._wire.write(protocol.command_complete(tag))

    def _encode(self, portal: Portal) -> Encode:
        return encode_rows(portal.columns, _formats(portal.columns, portal.formats))

    async def _open(self, portal: Portal, take: Callable[[], Chunk | None] | None = None) -> Chunk | None:
        """Ask, unless that was done; the first rows, if they are wanted at once."""
        if portal.answer is not None:
            return None
        prepared = portal.prepared
        sql, values = by_name(prepared.sql, portal.values) if prepared.system else expanded(prepared.sql, portal.values)
        portal.answer = answer = self._answer(prepared, sql)

        def ask() -> Chunk | None:
            columns = answer.ask(values)
            if portal.columns and len(portal.columns) != len(columns):
                raise PostgresError("0A000", "cached plan must not change result type")
            portal.columns = portal.columns or prepared.columns or columns
            return None if take is None else take()

        first = await self._in_thread(portal, ask)
        if answer.notice:
            self._wire.write(protocol.notice_response(answer.notice))
        return first

    def _answer(self, prepared: Prepared, sql: str) -> Answer:
        statement, role = prepared.statement, self._client.role
        if isinstance(statement, statements.Show):
            return self._shown(statement.name)
        if isinstance(statement, statements.Explain):
            return Explained(role.guard, statement, prepared.sql)
        if prepared.system:
            return FromSystem(role.catalog, sql, self._values)
        return Guarded(role.guard, sql, self._client.user)

    def _shown(self, name: str) -> Fixed:
        if name == "all":
            names, values = zip(*self._settings.all(), strict=True)
            columns = {"name": names, "setting": values, "description": [""] * len(names)}
        else:
            columns = {name: [_checked(lambda: self._settings.show(name))]}
        table = pa.table({column: pa.array(values, pa.string()) for column, values in columns.items()})
        return Fixed([(column, TEXT) for column in columns], table)

    async def _stream(self, portal: Portal, rows: int, encode: Encode, first: Chunk | None = None) -> int:
        """Send rows, and make the next ones while the client takes them; how many were sent.

        Args:
            rows: at most; 0: all.
            first: those that are there already.
        """
        sent, most = 0, self._client.limits.rows
        chunk = first
        if chunk is None and not portal.done:
            chunk = await self._in_thread(portal, lambda: portal.take(rows, encode))
        while chunk is not None:
            sent += chunk[0]
            if most is not None and portal.rows > most:
                raise errors.of_refusal(Refused("SDC093"))
            self._wire.write(chunk[1])
            left = rows - sent if rows else 0
            if (rows and left == 0) or portal.done:
                break
            following = asyncio.ensure_future(self._in_thread(portal, partial(portal.take, left, encode)))
            try:
                await self._wire.drain()
            except BaseException:
                self._stop = errors.CANCELLED
                self._interrupt()
                await asyncio.wait({following})
                following.exception()
                raise
            chunk = await following
        return sent

    async def _copy(self, portal: Portal, statement: statements.Copy) -> None:
        text = None if statement.form == "binary" else _checked(lambda: copy_text(statement.form, statement.options))
        await self._open(portal)
        self._wire.write(protocol.copy_out(len(portal.columns), binary=text is None))
        if text is not None and text.header:
            self._wire.write(protocol.copy_data(text.names([name for name, _ in portal.columns])))
        sent = await self._stream(portal, 0, encode_copy(portal.columns, text))
        if text is None:
            self._wire.write(protocol.copy_data(COPY_BINARY_END if sent else COPY_BINARY_HEAD + COPY_BINARY_END))
        self._wire.write(protocol.COPY_DONE + protocol.command_complete(f"COPY {sent}"))

    async def _declare(self, portal: Portal, statement: statements.Declare) -> None:
        if self._status == "I" and not statement.hold:
            raise PostgresError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
        if statement.name in self._portals:
            raise PostgresError("42P03", "a cursor of this name exists")
        asked = Portal(portal.prepared, portal.values, (1,) if statement.binary else (), hold=statement.hold)
        try:
            await self._open(asked)
        except BaseException:
            self._dispose(asked)
            raise
        self._portals[statement.name] = asked
        self._wire.write(protocol.command_complete("DECLARE CURSOR"))

    async def _fetch(self, statement: statements.Fetch, asked: Portal, *, describe: bool) -> None:
        portal = self._portal(statement.name)
        formats = _formats(portal.columns, asked.formats or portal.formats)
        if describe and not statement.move:
            self._describe_rows(portal.columns, formats)
        encode = encode_rows(portal.columns, formats)
        sent = 0
        if statement.rows != 0:
            nothing: Encode = lambda batch: memoryview(b"")  # noqa: E731
            sent = await self._stream(portal, statement.rows or 0, nothing if statement.move else encode)
        self._wire.write(protocol.command_complete(f"{'MOVE' if statement.move else 'FETCH'} {sent}"))

    def _describe_rows(self, columns: Columns, formats: Sequence[int]) -> None:
        each = list(formats) or [0] * len(columns)
        self._wire.write(protocol.row_description([column_of(*column) for column in columns], each))

    # Statements of the session

    def _effect(self, statement: Statement) -> str:
        """Do what a statement says; the tag of its answer."""
        match statement:
            case statements.Transaction():
                return self._transaction(statement)
            case statements.Set():
                _checked(lambda: self._settings.set(statement.name, statement.value))
                return "SET" if statement.value is not None else "RESET"
            case statements.CloseCursor():
                for name in [statement.name] if statement.name is not None else [*self._portals]:
                    if name:
                        self._portal(name)
                    self._forget(name)
                return "CLOSE CURSOR" if statement.name is not None else "CLOSE CURSOR ALL"
            case statements.Deallocate():
                if statement.name is None:
                    self._statements.clear()
                else:
                    self._statement(statement.name)
                    del self._statements[statement.name]
                return "DEALLOCATE" if statement.name is not None else "DEALLOCATE ALL"
            case statements.Nothing():
                if statement.discard:
                    self.close()
                    self._settings.set("all", None)
                return statement.tag
            case _:
                raise PostgresError("0A000", "a statement that is not supported")

    def _transaction(self, statement: statements.Transaction) -> str:
        """There is nothing to undo: what counts is the status that the client expects."""
        verb, failed = statement.verb, self._status == "E"
        if verb in ("BEGIN", "START TRANSACTION"):
            if failed:
                raise errors.FAILED_TRANSACTION
            if self._status == "T":
                self._wire.write(protocol.notice_response("there is already a transaction in progress", "25001"))
            self._status = "T"
            return verb
        if verb in ("COMMIT", "ROLLBACK"):
            if self._status == "I":
                self._wire.write(protocol.notice_response("there is no transaction in progress", "25P01"))
            self._status = "T" if statement.chain and self._status != "I" else "I"
            self._end_transaction()
            return "ROLLBACK" if failed else verb
        if self._status == "I":
            raise PostgresError("25P01", f"{verb} can only be used in transaction blocks")
        if failed and verb != "ROLLBACK TO":
            raise errors.FAILED_TRANSACTION
        self._status = "T"
        return "ROLLBACK" if verb == "ROLLBACK TO" else verb

    def _end_transaction(self) -> None:
        for name in [name for name, portal in self._portals.items() if not portal.hold]:
            self._forget(name)

    def _setting(self, name: str) -> str | None:
        try:
            return self._settings.show(name)
        except BadSetting:
            return None

    def _set(self, name: str, value: str) -> str:
        try:
            self._settings.set(name, value)
            return self._settings.show(name)
        except BadSetting as problem:
            raise Refused("SDC004", str(problem)) from None

    def _report(self) -> None:
        """Tell the client what changed."""
        for name, value in self._settings.reported():
            if self._told.get(name) != value:
                self._told[name] = value
                self._wire.write(protocol.parameter_status(name, value))

    # Threads

    async def _in_thread(self, portal: Portal | None, work: Callable[[], T]) -> T:
        """Do what blocks in a thread of its own, for so long as a statement may run.

        Raises:
            PostgresError: it failed, was stopped or took too long.
        """
        if self._stop is not None:
            raise self._stop
        loop = asyncio.get_running_loop()
        self._running = None if portal is None else portal.answer
        seconds = self._client.limits.seconds
        wanted = self._settings.statement_seconds()
        left = (seconds if wanted is None else min(seconds, wanted)) - (0.0 if portal is None else portal.seconds)
        watch = loop.call_later(max(left, 0.001), self._too_long)
        start = time.perf_counter()
        try:
            return await loop.run_in_executor(self._threads, work)
        except Refused as refused:
            raise self._stop or errors.of_refusal(refused) from None
        except PostgresError:
            raise
        except Exception as problem:  # a fault of ours: the kind of it, and nothing that may hold data
            raise self._stop or PostgresError("XX000", f"internal error ({type(problem).__name__})") from None
        finally:
            watch.cancel()
            self._running = None
            if portal is not None:
                portal.seconds += time.perf_counter() - start

    def _too_long(self) -> None:
        self._stop = self._stop or errors.of_refusal(Refused("SDC091"))
        self._interrupt()

    def _interrupt(self) -> None:
        """Interrupt what runs: again and again, for an interruption between planning and running is lost."""
        if self._running is not None:
            self._interrupt_this(self._running)

    def _interrupt_this(self, answer: Answer) -> None:
        if self._running is answer:
            answer.interrupt()
            asyncio.get_running_loop().call_later(_AGAIN, self._interrupt_this, answer)


def _question_of(statement: Statement) -> str | None:
    if isinstance(statement, statements.Ask | statements.Explain | statements.Declare | statements.Copy):
        return statement.sql
    return None


def _formats(columns: Columns, asked: Sequence[int]) -> list[int]:
    try:
        return formats_for(columns, asked)
    except ValueError as problem:
        raise PostgresError(errors.PROTOCOL, str(problem)) from None


def _checked(work: Callable[[], T]) -> T:
    try:
        return work()
    except (BadSetting, Unsupported) as problem:
        raise PostgresError(problem.code, str(problem)) from None


__all__ = ["Client", "Limits", "Session", "Wire"]
