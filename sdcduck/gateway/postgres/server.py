"""All clients: who may come in, how many, and how they leave."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from sdcduck.errors import SDCError
from sdcduck.gateway.events import note
from sdcduck.gateway.postgres import errors, protocol
from sdcduck.gateway.postgres.connection import Connection
from sdcduck.gateway.postgres.errors import PostgresError
from sdcduck.gateway.postgres.login import log_in
from sdcduck.gateway.postgres.protocol import LONGEST, ProtocolError
from sdcduck.gateway.postgres.session import Client, Session
from sdcduck.gateway.postgres.settings import VERSION_TEXT, BadSetting, Settings
from sdcduck.gateway.shared_state import RAW_NEEDS_TLS, SharedState, is_loopback

_SWEEP = 1.0
_MOST_STRANGERS, _MOST_FROM_ONE = 1000, 500
"""How many may be on their way in, or only here to cancel: of all addresses together, and of one of them."""


@dataclass(frozen=True)
class Options:
    """How the gateway serves.

    Attributes:
        host: address to listen on.
        port: 0 for any that is free.
        tls: context for encrypted connections; None: there are none.
        tls_required: refuse others.
        connections: of all users together.
        idle: seconds after which a silent client is sent away.
        login: seconds that a login may take.
        grace: seconds that running queries get when the gateway stops.
    """

    host: str = "127.0.0.1"
    port: int = 5432
    tls: ssl.SSLContext | None = None
    tls_required: bool = False
    connections: int = 200
    idle: float = 3600.0
    login: float = 30.0
    grace: float = 10.0


@dataclass
class _Guest:
    """A connection, and the session once there is one."""

    connection: Connection
    key: int
    task: asyncio.Task[None] | None = None
    session: Session | None = None
    user: str = ""
    since: float = 0.0
    waiting: bool = False


class Gateway:
    """The server.

    Args:
        shared: whom and what it serves.
    """

    def __init__(self, shared: SharedState, options: Options) -> None:
        self._shared, self._options = shared, options
        self._threads = ThreadPoolExecutor(max_workers=options.connections, thread_name_prefix="sdcduck")
        self._guests: dict[int, _Guest] = {}
        self._strangers: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._stopping = False
        self._open = asyncio.Event()
        self._open.set()

    async def start(self) -> int:
        """Listen; the port.

        Raises:
            SDCError: the address cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self._come_in), self._options.host, self._options.port
            )
        except OSError as problem:
            where = f"{self._options.host}:{self._options.port}"
            raise SDCError(f"cannot listen on {where}: {problem.strerror or problem}") from None
        self._sweeper = asyncio.create_task(self._sweep())
        counts = self._shared.counts
        counts.watch("connections", "postgres", lambda: len(self._guests))
        counts.watch("running", "postgres", lambda: self.running)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        """Let nobody in any more, send silent clients away, and give the others a while."""
        self._stopping = True
        self._open.set()
        if self._server is not None:
            self._server.close()
        await self._send_all_away(errors.SHUTDOWN)
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        self._threads.shutdown(wait=True)

    async def change_over(self, change: Callable[[], Awaitable[None]]) -> None:
        """Send all clients away, change what is served, and only then let in who came meanwhile."""
        self._open.clear()
        try:
            tasks = await self._send_all_away(errors.CHANGED)
            if tasks:
                await asyncio.wait(tasks)  # what still runs asks those who are closed next
            await change()
        except BaseException:
            self._stopping = True  # nothing is served any more, and who waits would log in to the file before
            raise
        finally:
            self._open.set()

    async def _send_all_away(self, why: PostgresError) -> list[asyncio.Task[None]]:
        """All but those who wait to come in: the silent at once, the others after a while. What each had running."""
        guests = [guest for guest in self._guests.values() if not guest.waiting]
        tasks = [guest.task for guest in guests if guest.task is not None]
        for guest in guests:
            if guest.session is None or not guest.session.busy:
                self._send_away(guest, why)
        for _ in range(2):
            if tasks:
                await asyncio.wait(tasks, timeout=self._options.grace)
            for guest in guests:
                if guest.session is not None and guest.task is not None and not guest.task.done():
                    guest.session.stop(why)
        for guest in guests:
            guest.connection.abort()
        return tasks

    @property
    def running(self) -> int:
        """For how many something runs."""
        return sum(guest.session is not None and guest.session.busy for guest in list(self._guests.values()))

    def _is_crowded(self, address: str) -> bool:
        """Whether too many are here who did not say who they are: those of one address must not keep others out."""
        return self._strangers.total() > _MOST_STRANGERS or self._strangers[address] > _MOST_FROM_ONE

    def _no_stranger(self, connection: Connection) -> None:
        """One of those on their way in is in, or gone."""
        self._strangers[connection.peer] -= 1
        if not self._strangers[connection.peer]:
            del self._strangers[connection.peer]

    def _come_in(self, connection: Connection) -> None:
        process = secrets.randbelow(2**31 - 1) + 1
        while process in self._guests:
            process = secrets.randbelow(2**31 - 1) + 1
        now = asyncio.get_running_loop().time()
        guest = _Guest(connection, secrets.randbits(32) - 2**31, since=now)
        self._guests[process] = guest
        self._strangers[connection.peer] += 1
        guest.task = asyncio.create_task(self._host(process, guest))

    async def _host(self, process: int, guest: _Guest) -> None:
        connection = guest.connection
        try:
            if self._stopping or self._is_crowded(connection.peer):
                return
            guest.waiting = True
            while not self._open.is_set():  # the next change may begin before this client is told of the end of one
                await self._open.wait()
            guest.waiting = False
            if self._stopping:
                return
            if await self._admit(process, guest):
                await self._converse(guest)
        except ProtocolError as problem:
            connection.write(protocol.error_response("FATAL", errors.PROTOCOL, str(problem)))
        except PostgresError as error:
            connection.write(protocol.error_response("FATAL", error.code, error.message, error.detail, error.hint))
        except (TimeoutError, OSError, EOFError):
            pass
        except Exception as problem:
            # A fault of ours ends one session and no other.
            note("failed", kind=type(problem).__name__)
            connection.write(protocol.error_response("FATAL", "XX000", "internal error"))
        finally:
            if guest.session is not None:
                guest.session.close()
            else:
                self._no_stranger(connection)
            if guest.user:
                self._shared.slots.release(guest.user)
                note("left", user=guest.user, address=connection.peer)
            connection.close()
            self._guests.pop(process, None)

    async def _admit(self, process: int, guest: _Guest) -> bool:
        """See a client through the start; False: there is nothing more to do."""
        connection, shared = guest.connection, self._shared
        async with asyncio.timeout(self._options.login) as patience:
            startup = await self._startup(guest)
            if startup is None:
                return False
            account = await log_in(connection, startup, shared, patience)
        role = shared.role_of(account)
        if role.raw and not connection.encrypted and not is_loopback(connection.peer):
            note("refused", user=account.name, role=account.role, address=connection.peer, why="no TLS")
            raise PostgresError("28000", RAW_NEEDS_TLS)
        if not shared.slots.acquire(account.name):
            raise PostgresError(errors.TOO_MANY, "too many connections")
        guest.user = account.name
        client = Client(account.name, role, shared.database, process, VERSION_TEXT, shared.limits)
        session = guest.session = Session(client, _settings(startup, account.name), connection, self._threads)
        self._no_stranger(connection)
        connection.when_gone = lambda: session.stop(errors.CANCELLED)
        connection.decoder.longest = LONGEST
        note(
            "entered", user=account.name, role=account.role, address=connection.peer, tls=connection.encrypted,
            **({"raw": True} if role.raw else {}),
        )  # fmt: skip
        connection.write(protocol.authentication_ok() + protocol.backend_key(process, guest.key))
        guest.session.greet()
        return True

    async def _startup(self, guest: _Guest) -> protocol.Startup | None:
        connection, options = guest.connection, self._options
        asked: list[type] = []
        while True:
            message = await connection.message()
            if type(message) in asked:
                raise ProtocolError("the same request again")
            asked.append(type(message))
            if isinstance(message, protocol.SSLRequest) and options.tls is not None and not connection.encrypted:
                if connection.decoder.waiting:
                    raise ProtocolError("bytes before TLS")
                connection.write(b"S")
                connection.flush()
                await connection.start_tls(options.tls)
            elif isinstance(message, protocol.SSLRequest | protocol.GSSRequest):
                connection.write(b"N")
            elif isinstance(message, protocol.CancelRequest):
                self._cancel(message)
                return None
            elif isinstance(message, protocol.Startup):
                if options.tls_required and not connection.encrypted:
                    raise PostgresError("28000", "this gateway takes encrypted connections only (sslmode=require)")
                return message
            else:
                raise ProtocolError("a message before the startup")

    def _cancel(self, request: protocol.CancelRequest) -> None:
        guest = self._guests.get(request.process)
        right = secrets.compare_digest(
            (0 if guest is None else guest.key).to_bytes(4, "big", signed=True),
            request.key.to_bytes(4, "big", signed=True),
        )
        if guest is not None and guest.session is not None and right:
            guest.session.stop(errors.CANCELLED)

    async def _converse(self, guest: _Guest) -> None:
        connection, session = guest.connection, guest.session
        assert session is not None
        loop = asyncio.get_running_loop()
        while not isinstance(message := await connection.message(), protocol.Terminate):
            await session.answer(message)
            guest.since = loop.time()
            if self._stopping or not self._open.is_set():
                raise errors.SHUTDOWN if self._stopping else errors.CHANGED

    async def _sweep(self) -> None:
        """Send away who has been silent for too long, or does not read what was asked for."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_SWEEP)
            now = loop.time()
            for guest in list(self._guests.values()):
                blocked = guest.connection.blocked_since
                if blocked is not None and now - blocked > self._options.idle:
                    guest.connection.abort()
                elif guest.session is not None and not guest.session.busy and now - guest.since > self._options.idle:
                    self._send_away(guest, errors.IDLE)

    def _send_away(self, guest: _Guest, why: PostgresError) -> None:
        if guest.session is not None:
            guest.connection.write(protocol.error_response("FATAL", why.code, why.message))
        guest.connection.close()


def _settings(startup: protocol.Startup, user: str) -> Settings:
    """The settings that a session begins with; those that are not known are left out."""
    settings = Settings(user)
    asked = dict(startup.parameters)
    words = asked.pop("options", "").replace("\\ ", "\0").split()
    pairs = [word.removeprefix("-c").removeprefix("--") for word in words if word not in ("-c", "--")]
    for pair in pairs:
        name, given, value = pair.replace("\0", " ").partition("=")
        if given:
            asked[name] = value
    for name, value in asked.items():
        if name not in ("user", "database", "replication"):
            with suppress(BadSetting):
                settings.set(name.replace("-", "_"), value)
    settings.begin()
    return settings


__all__: Sequence[str] = ["Gateway", "Options"]
