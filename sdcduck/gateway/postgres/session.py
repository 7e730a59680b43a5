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

from sdcduck.gateway.answers import Answer, Columns, Explained, First, Fixed, FromSystem, Guarded, ReadQuestion, Role
from sdcduck.gateway.postgres import errors, protocol, statements
from sdcduck.gateway.postgres.copying import copy_text
from sdcduck.gateway.postgres.errors import PostgresError
from sdcduck.gateway.postgres.names import names_of
from sdcduck.gateway.postgres.parameters import (
    BadParameter,
    by_name,
    expanded,
    parameter_types,
    size_of,
    value_of,
    without_arrays,
)
from sdcduck.gateway.postgres.portals import Encode, Portal, Prepared, beside, encode_copy, encode_rows, formats_for
from sdcduck.gateway.postgres.protocol import Message
from sdcduck.gateway.postgres.rows import COPY_BINARY_END, COPY_BINARY_HEAD
from sdcduck.gateway.postgres.session_state import StatementsAndPortals, TransactionStatus
from sdcduck.gateway.postgres.settings import NOISE, BadSetting, Settings
from sdcduck.gateway.postgres.sql import to_duckdb
from sdcduck.gateway.postgres.statements import Statement, Unsupported
from sdcduck.gateway.postgres.types import BY_OID, OID, TEXT, array_of, column_of
from sdcduck.gateway.postgres.working import Work
from sdcduck.gateway.shared_state import RAW_NOTICE, Limits
from sdcduck.gateway.system.queries import SessionValues, numbers_of_things, readable
from sdcduck.guard import Refused
from sdcduck.guard.passes.words import with_blanks
from sdcduck.guard.planned import about_plan

T = TypeVar("T")
Chunk = tuple[int, memoryview]
_MOST_KNOWN, _LONGEST_KNOWN = 2000, 20_000
_LARGE = 5_000
_TYPE = 8
"""Bytes that the type of a parameter takes in what is kept of a statement."""
_NO_QUESTIONS = frozenset(["25006", "0A000", "54001"])
"""What statements are refused with that would write, or read what is not a table; or in which that could hide."""


class Wire(Protocol):
    """The connection to the client."""

    def write(self, data: bytes | memoryview) -> None:
        """Send, or keep until there is room."""

    async def drain(self) -> None:
        """Send what was kept, and wait until there is room.

        Raises:
            ConnectionError: the client is gone.
        """

    async def room(self) -> None:
        """Wait until there is room.

        Raises:
            ConnectionError: the client is gone.
        """

    def ahead(self) -> Message | None:
        """The message that comes next, if it is here already."""


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
        self._client, self._settings, self._wire = client, settings, wire
        self._work = Work(threads, self._seconds)
        self._named = StatementsAndPortals(self._work.aside)
        self._transaction = TransactionStatus()
        self._skipping = False
        self._told: dict[str, str] = {}
        self._values = SessionValues(
            client.user, client.database, client.process, client.version, self._setting, self._set
        )

    @property
    def busy(self) -> bool:
        """Whether it works on something."""
        return self._work.busy

    def greet(self) -> None:
        """Tell the client the settings, and that it may ask."""
        if self._client.role.raw:
            self._wire.write(protocol.notice_response(RAW_NOTICE))
        self._report()
        self._wire.write(protocol.ready(self._transaction.status))

    def stop(self, why: PostgresError) -> None:
        """Stop what runs now, if anything does."""
        self._work.stop(why)

    def close(self) -> None:
        """Forget everything."""
        self._named.discard_all()

    async def answer(self, message: Message) -> None:
        """Do what a message asks.

        Raises:
            ConnectionError: the client is gone.
            PostgresError: one that ends the session.
        """
        if isinstance(message, protocol.Sync):
            self._skipping = False
            self._end_unless_open()
            self._ready()
            await self._wire.room()
            return
        if self._skipping:
            return
        with self._work.begun():
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
        if isinstance(message, protocol.Query | protocol.Flush):
            await self._wire.drain()
        else:  # who asks for more and more, and reads nothing of it, has to wait
            await self._wire.room()

    async def _dispatch(self, message: Message) -> None:
        match message:
            case protocol.Query():
                await self._query(message.sql)
            case protocol.Parse():
                await self._parse(message)
            case protocol.Bind():
                await self._bind(message)
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
        self._wire.write(protocol.ready(self._transaction.status))

    def _fail(self, error: PostgresError) -> None:
        self._transaction.fail()
        self._wire.write(protocol.error_response("ERROR", error.code, error.message, error.detail, error.hint))

    # Simple queries

    async def _query(self, sql: str) -> None:
        self._named.close_portal("")
        try:
            texts = await self._aside(len(sql), partial(statements.split, sql))
            for place, text in enumerate(texts, 1):
                with errors.named(text, place, len(texts)):
                    portal = Portal(await self._prepared(text, ()))
                    try:
                        await self._run(portal, 0, describe=True)
                    finally:
                        self._named.dispose(portal)
                # There may be thousands of them in one message: who reads none of the answers has to wait here, too.
                await self._wire.room()
        finally:
            self._end_unless_open()
        self._ready()

    # Extended queries

    async def _parse(self, message: protocol.Parse) -> None:
        self._named.check_statement(message.name, _size(message.sql, message.types))
        texts = await self._aside(len(message.sql), partial(statements.split, message.sql))
        if len(texts) > 1:
            raise PostgresError("42601", "cannot insert multiple commands into a prepared statement")
        prepared = await self._prepared(texts[0], message.types)
        prepared.size = _size(message.sql, prepared.types)
        self._named.check_statement(message.name, prepared.size)
        self._named.keep_statement(message.name, prepared)
        self._wire.write(protocol.PARSE_COMPLETE)

    async def _prepared(self, text: str, types: Sequence[int]) -> Prepared:
        statement = await self._aside(len(text), partial(statements.attempted, text))
        if isinstance(statement, Unsupported):
            if statement.code in _NO_QUESTIONS:
                await self._work.do(None, partial(self._write_down, text, time.perf_counter()))
            raise PostgresError(statement.code, str(statement))
        if isinstance(statement, statements.Show) and self._client.role.shows(statement.name, self._setting):
            statement = statements.Ask(text)
        self._transaction.check(statement)
        sql = statements.question_of(statement)
        if sql is None:
            return Prepared(statement, types=tuple(BY_OID.get(oid, TEXT) for oid in types))
        known, key = self._client.role.read, (sql, tuple(types))
        read = known.get(key)
        if read is None:
            read = await self._work.do(None, lambda: self._read_question(sql, types))
            if len(known) >= _MOST_KNOWN:
                known.clear()
            if _size(sql, types) + _size("", read[2]) <= _LONGEST_KNOWN:
                known[key] = read
        return Prepared(statement, *read)

    async def _aside(self, size: int, work: Callable[[], T]) -> T:
        """Do what takes long for a large message beside the loop that serves all clients."""
        return work() if size <= _LARGE else await self._work.do(None, work)

    def _write_down(self, text: str, start: float) -> None:
        """A line in the audit log for a statement that would change something, which the guard never sees."""
        self._client.role.guard.audit.write(text, self._client.user, start, "SDC004", 0, None, "")

    def _read_question(self, sql: str, types: Sequence[int]) -> ReadQuestion:
        """The text to ask, whether it is about the database itself, the types of its parameters, names of columns."""
        if about_plan(sql):
            return sql, False, (), ()
        sql = with_blanks(sql)
        system = self._client.role.is_system(sql)
        text = readable(sql) if system else to_duckdb(sql, self._client.database)
        found = parameter_types(text, self._client.role.schema, types)
        if system:
            things = numbers_of_things(sql)
            found = tuple(array_of(OID) if place in things else kind for place, kind in enumerate(found, 1))
        return text, system, found, names_of(sql)

    async def _bind(self, message: protocol.Bind) -> None:
        prepared = self._named.prepared(message.statement)
        formats = message.formats
        if len(message.values) != len(prepared.types) or len(formats) not in (0, 1, len(message.values)):
            raise PostgresError(errors.PROTOCOL, f"the statement has {len(prepared.types)} parameters")
        each = [*formats, 0][:1] * len(message.values) if len(formats) <= 1 else formats
        size = sum(len(value) for value in message.values if value is not None)
        self._named.check_portal(message.portal, size)
        read = lambda: [value_of(*one) for one in zip(message.values, prepared.types, each, strict=True)]  # noqa: E731
        values = await self._aside(size, partial(_values, read))
        size += size_of(values)
        self._named.check_portal(message.portal, size)
        self._named.keep_portal(message.portal, Portal(prepared, values, message.result_formats, size=size))
        self._wire.write(protocol.BIND_COMPLETE)

    async def _describe(self, message: protocol.Describe) -> None:
        if message.kind == "S":
            prepared = self._named.prepared(message.name)
            self._wire.write(protocol.parameter_description([kind.oid for kind in prepared.types]))
            columns, formats = await self._columns(prepared), []
        else:
            portal = self._named.portal(message.name)
            await self._open_if_wanted(message.name, portal)
            columns = portal.columns = portal.columns or await self._columns(portal.prepared) or []
            formats = _formats(columns, portal.formats)
        if columns:
            self._describe_rows(columns, formats)
        else:
            self._wire.write(protocol.NO_DATA)

    async def _open_if_wanted(self, name: str, portal: Portal) -> None:
        """Ask at once where the client has said already that it wants the answer: then it is planned only once.

        With parameters it is planned for their types first, so that columns do not depend on their values.
        """
        prepared, ahead = portal.prepared, self._wire.ahead()
        if (
            isinstance(prepared.statement, statements.Ask)
            and isinstance(ahead, protocol.Execute)
            and ahead.portal == name
            and not prepared.types
            and prepared.columns is None
            and portal.answer is None
        ):
            self._transaction.check(prepared.statement)
            rows = max(0, ahead.rows)
            portal.first = await self._open(portal, lambda: portal.take(rows, self._encode(portal)))
            prepared.columns = portal.columns

    async def _columns(self, prepared: Prepared) -> Columns | None:
        """The columns of an answer, without asking for it."""
        statement = prepared.statement
        if isinstance(statement, statements.Show):
            return [(statement.name, TEXT)]
        if isinstance(statement, statements.Explain):
            return [("QUERY PLAN", TEXT)]
        if isinstance(statement, statements.Fetch) and not statement.move:
            return self._named.portal(statement.name).columns
        if isinstance(statement, statements.Ask) and prepared.columns is None:
            known, key = self._client.role.described, (prepared.sql, prepared.types)
            described = known.get(key)
            if described is None:
                first = First()
                described = await self._work.do(None, lambda: self._described(prepared, first), beside=first)
                if len(known) >= _MOST_KNOWN:
                    known.clear()
                if _size(prepared.sql, prepared.types) <= _LONGEST_KNOWN:
                    known[key] = described
            prepared.columns = prepared.called(described)
        return prepared.columns

    def _described(self, prepared: Prepared, first: First) -> Columns:
        return self._client.role.columns(
            prepared.sql if prepared.system else without_arrays(prepared.sql),
            system=prepared.system,
            values=self._values,
            types=prepared.types,
            first=first,
        )

    async def _execute(self, message: protocol.Execute) -> None:
        portal = self._named.portal(message.portal)
        await self._run(portal, max(0, message.rows), describe=False)

    def _close(self, message: protocol.Close) -> None:
        if message.kind == "S":
            self._named.deallocate(message.name)
        else:
            self._named.close_portal(message.name)
        self._wire.write(protocol.CLOSE_COMPLETE)

    # Running

    async def _run(self, portal: Portal, rows: int, *, describe: bool) -> None:
        statement = portal.prepared.statement
        self._transaction.check(statement)
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
        opened = await self._open(portal, lambda: portal.take(rows, self._encode(portal)))
        first, portal.first = portal.first or opened, None
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
        noise, notices = self._settings.show(NOISE) == "on", list[str]()

        def ask() -> Chunk | None:
            columns = prepared.called(answer.ask(values))
            if portal.columns and len(portal.columns) != len(columns):
                raise PostgresError("0A000", "cached plan must not change result type")
            portal.columns = portal.columns or prepared.columns or columns
            notices.extend(beside(answer, noise=noise))
            return None if take is None else take()

        first = await self._work.do(portal, ask)
        for notice in notices:
            self._wire.write(protocol.notice_response(notice))
        return first

    def _answer(self, prepared: Prepared, sql: str) -> Answer:
        statement, role = prepared.statement, self._client.role
        if isinstance(statement, statements.Show):
            return self._shown(statement.name)
        if isinstance(statement, statements.Explain):
            return Explained(role.guard, statement, prepared.sql, self._client.user)
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
            chunk = await self._work.do(portal, lambda: portal.take(rows, encode))
        while chunk is not None:
            sent += chunk[0]
            if most is not None and portal.rows > most:
                raise errors.of_refusal(Refused("SDC093"))
            self._wire.write(chunk[1])
            left = rows - sent if rows else 0
            if (rows and left == 0) or portal.done:
                break
            following = asyncio.ensure_future(self._work.do(portal, partial(portal.take, left, encode)))
            try:
                await self._wire.drain()
            except BaseException:
                self._work.stop(errors.CANCELLED)
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
        if not self._transaction.open and not statement.hold:
            raise PostgresError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
        self._named.check_portal(statement.name, portal.size)
        asked = Portal(
            portal.prepared, portal.values, (1,) if statement.binary else (), hold=statement.hold, size=portal.size
        )
        try:
            await self._open(asked)
        except BaseException:
            self._named.dispose(asked)
            raise
        self._named.keep_portal(statement.name, asked)
        self._wire.write(protocol.command_complete("DECLARE CURSOR"))

    async def _fetch(self, statement: statements.Fetch, asked: Portal, *, describe: bool) -> None:
        portal = self._named.portal(statement.name)
        if portal.answer is None:  # not a cursor, but a portal that was bound and not run yet
            if not isinstance(portal.prepared.statement, statements.Ask | statements.Show | statements.Explain):
                raise PostgresError("55000", "what is bound there has no rows to fetch")
            await self._open(portal)
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
                tag, notice = self._transaction.move(statement)
                if notice is not None:
                    self._wire.write(protocol.notice_response(*notice))
                if statement.verb in ("COMMIT", "ROLLBACK"):
                    self._named.end_transaction()
                return tag
            case statements.Set():
                _checked(lambda: self._settings.set(statement.name, statement.value))
                return "SET" if statement.value is not None else "RESET"
            case statements.CloseCursor():
                for name in [statement.name] if statement.name is not None else self._named.portals():
                    if name:
                        self._named.portal(name)
                    self._named.close_portal(name)
                return "CLOSE CURSOR" if statement.name is not None else "CLOSE CURSOR ALL"
            case statements.Deallocate():
                if statement.name is None:
                    self._named.deallocate_all()
                else:
                    self._named.prepared(statement.name)
                    self._named.deallocate(statement.name)
                return "DEALLOCATE" if statement.name is not None else "DEALLOCATE ALL"
            case statements.Nothing():
                if statement.discard:
                    self.close()
                    self._settings.set("all", None)
                return statement.tag
            case _:
                raise PostgresError("0A000", "a statement that is not supported")

    def _end_unless_open(self) -> None:
        """What is not in a transaction is one of its own, and over."""
        if not self._transaction.open:
            self._named.end_transaction()

    def _seconds(self) -> float:
        """How long a statement may run: as the gateway says, or less if the client does."""
        most, wanted = self._client.limits.seconds, self._settings.statement_seconds()
        return most if wanted is None else min(most, wanted)

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


def _size(sql: str, types: Sequence[object]) -> int:
    """What a statement takes of the room that a session has."""
    return len(sql) + _TYPE * len(types)


def _values(read: Callable[[], list[object]]) -> list[object]:
    try:
        return read()
    except BadParameter as problem:
        raise PostgresError("22P02", f"a parameter is no value of type {problem}") from None


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


__all__ = ["Client", "Session", "Wire"]
