"""From a file to a gateway that answers: what `sdcduck serve` does."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from sdcduck import catalog
from sdcduck.catalog.audit_log import AuditLog
from sdcduck.catalog.passwords import read_verifier
from sdcduck.errors import SDCError
from sdcduck.gateway.answers import Role
from sdcduck.gateway.events import note
from sdcduck.gateway.metrics import MetricsPage
from sdcduck.gateway.postgres.server import Gateway, Options
from sdcduck.gateway.shared_state import CUSTODIAN, Account, ConnectionSlots, FlightOptions, Limits, SharedState
from sdcduck.gateway.system.catalog import SystemCatalog
from sdcduck.guard import open_guard
from sdcduck.guard.running import when_ended
from sdcduck.quoting import folded

ENDED = 70
"""The exit code of a gateway whose database DuckDB has ended: a fault of the software, by the ``sysexits`` of BSD."""

if TYPE_CHECKING:
    from sdcduck.gateway.flight.server import FlightGateway


def open_file(
    file: str | Path,
    limits: Limits,
    *,
    connections: int,
    log: AuditLog | None = None,
    memory: str | None = None,
    custodian_raw: bool = False,
    plans_only: bool = False,
    allow_dirs: Sequence[Path] = (),
    records: str | None = None,
) -> SharedState:
    """What a gateway to a file serves; the file is held for reading.

    Args:
        connections: of all users together.
        log: the audit log, of all roles.
        memory: limit of the database, such as ``2GB``; None: half of the machine's.
        custodian_raw: users with the role ``custodian`` are shown the records as they are.
        plans_only: the others are answered nothing about records but the steps of plans.
        allow_dirs: folders that views may read.
        records: the engine that has the records: its address, or a file of DuckDB; None: there is none.

    Raises:
        SDCError: there is no such file, or it has no policies or no users; nobody could be shown records, or not
            without a line in the log.
    """
    path = Path(file)
    served = _identity(path)
    accounts, salts = _accounts(path)
    if custodian_raw:
        _check_custodians(accounts, log)
    roles: dict[str, Role] = {}
    try:
        for name in sorted({folded(account.role) for account in accounts.values()}):
            raw = custodian_raw and name == CUSTODIAN
            guarded = open_guard(
                path,
                role=name,
                seconds=limits.seconds,
                memory=memory,
                log=log,
                raw=raw,
                plans_only=plans_only and not raw,
                allow_dirs=allow_dirs,
                records=None if raw else records,
            )
            users = sorted(account.name for account in accounts.values() if folded(account.role) == name)
            roles[name] = Role(guarded, SystemCatalog(guarded.relations(), path.stem, users))
    except BaseException:
        for role in roles.values():
            role.close()
        raise
    opened = SharedState(
        accounts, roles, path.stem, limits, ConnectionSlots(connections, limits.connections), salts=salts,
        is_replaced=lambda: _identity(path) != served,
    )  # fmt: skip
    opened.count_questions()
    return opened


def check_next(path: Path, log: AuditLog | None, *, custodian_raw: bool) -> None:
    """That a file can take the place of the one that is served, as far as that can be seen beside it.

    It is looked at under another name: DuckDB has the one that is served under this.

    Raises:
        SDCError: it has no users, or no policies, or is no such database.
    """
    beside = path.with_name(f".{path.name}.next")
    try:
        beside.unlink(missing_ok=True)
        beside.hardlink_to(path)
        accounts, _ = _accounts(beside)
        with duckdb.connect(str(beside), read_only=True) as con:
            [(policies,)] = con.execute("SELECT count(*) FROM sdc.policies").fetchall()
    except (OSError, duckdb.Error) as problem:
        raise SDCError(str(problem).splitlines()[0]) from None
    finally:
        beside.unlink(missing_ok=True)
    if not policies:
        raise SDCError("the database has no policies")
    if custodian_raw:
        _check_custodians(accounts, log)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file stands under a name; None: none does."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _accounts(path: Path) -> tuple[dict[str, Account], bytes]:
    """The users by name, and the secret of their salts."""
    if not path.exists():
        raise SDCError("there is no such database file")
    with duckdb.connect(str(path), read_only=True) as con:
        try:
            users, salts = catalog.users(con), catalog.salts_secret(con)
        except duckdb.CatalogException:
            users, salts = [], b""
    if not users:
        raise SDCError("the database has no users: create one with `sdcduck user add FILE NAME`")
    return {user.name: Account(user.name, user.role, read_verifier(user.verifier)) for user in users}, salts


def _check_custodians(accounts: Mapping[str, Account], log: AuditLog | None) -> None:
    """Refuse to show records without a log, or where it could be in doubt to whom."""
    if log is None:
        raise SDCError("--custodian-raw goes with --log: who looked at which records is written down")
    custodians = [account for account in accounts.values() if folded(account.role.strip()) == CUSTODIAN]
    for account in custodians:
        if account.role != CUSTODIAN:
            raise SDCError(
                f"user '{account.name}' has the role '{account.role}': with --custodian-raw, write it '{CUSTODIAN}', "
                "or give the user another one"
            )
    if not custodians:
        raise SDCError(
            f"--custodian-raw, but no user has the role '{CUSTODIAN}': sdcduck user add FILE NAME --role {CUSTODIAN}"
        )


@dataclass(frozen=True)
class Following:
    """Another file that stands under the name of the one served: whether it can be, and how it is opened."""

    check: Callable[[], None]
    open: Callable[[], SharedState]


@dataclass(frozen=True)
class Ports:
    """Where the gateway listens; None: not for that."""

    postgres: int
    flight: int | None
    metrics: int | None


async def serve(
    opened: SharedState,
    options: Options,
    ready: Callable[[Ports], None],
    *,
    flight: FlightOptions | None = None,
    metrics: tuple[str, int] | None = None,
    renew: Callable[[], None] | None = None,
    following: Following | None = None,
) -> None:
    """Serve until the process is told to end; then, or where it cannot begin, the file is free again.

    Nor does it serve a database that DuckDB has ended after an error of its own (`SharedState.ending`): what the engine
    has in memory is not to be trusted then, and another process opens the file with nothing of it.

    Args:
        ready: called once clients may come.
        flight: where Arrow Flight SQL is spoken; None: nowhere.
        metrics: address and port of the page with the metrics; None: there is none.
        renew: reads the certificate again, when the process is told to (SIGHUP); None: there is none to read.
        following: changes over to another file that stands under the name of the one served, then; None: it is kept.
    """
    try:
        await _served(opened, options, ready, flight, metrics, renew, following)
    finally:
        opened.close()


async def _served(
    opened: SharedState,
    options: Options,
    ready: Callable[[Ports], None],
    flight: FlightOptions | None,
    metrics: tuple[str, int] | None,
    renew: Callable[[], None] | None,
    following: Following | None,
) -> None:
    served = Gateway(opened, options)
    port = await served.start()
    beside: FlightGateway | None = None
    page: MetricsPage | None = None
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    over_to = _Change(opened, served, following if flight is None else None, over)
    loop.add_signal_handler(signal.SIGHUP, _told_to_read_again, opened, renew, over_to.begin)
    opened.ending.tell(lambda: loop.call_soon_threadsafe(over.set))
    stop_listening = when_ended(opened.ending.say)
    try:
        beside = None if flight is None else _flight(opened, flight)
        page = None if metrics is None else MetricsPage(opened.counts, *metrics)
        ready(Ports(port, None if beside is None else beside.port, None if page is None else page.port))
        await over.wait()
        if opened.ending.is_over:
            note("database ended", exit=ENDED)
        await over_to.ended()
    finally:
        stop_listening()
        if page is not None:
            await asyncio.to_thread(page.stop)  # whoever reads it may take a while, and clients are still answered
        if beside is not None:
            await asyncio.gather(served.stop(), asyncio.to_thread(beside.stop))
        else:
            await served.stop()


class _Change:
    """Changes over to another file, once at a time."""

    def __init__(self, opened: SharedState, served: Gateway, following: Following | None, over: asyncio.Event) -> None:
        self._opened, self._served, self._following, self._over = opened, served, following, over
        self._running: asyncio.Task[None] | None = None
        self._asked = False

    def begin(self) -> None:
        """Now, or after the change that goes on: it may have looked at the file before this one."""
        if self._following is None:
            note("file kept", why="with Arrow Flight SQL, users, policies and records are those of the start: restart")
        elif not self._over.is_set():
            self._asked = True
            if self._running is None or self._running.done():
                self._running = asyncio.create_task(self._run(self._following))

    async def ended(self) -> None:
        """Wait for its end.

        Raises:
            SDCError: the file before is closed, and the next one cannot be served.
        """
        if self._running is not None:
            await self._running

    async def _run(self, following: Following) -> None:
        while self._asked and self._opened.is_replaced():
            self._asked = False
            await self._change(following)

    async def _change(self, following: Following) -> None:
        try:
            await asyncio.to_thread(following.check)
        except SDCError as problem:
            note("file kept", why=str(problem))
            return

        async def change() -> None:
            await asyncio.to_thread(self._opened.close)
            self._opened.take(await asyncio.to_thread(following.open))

        try:
            await self._served.change_over(change)
        except BaseException:
            self._over.set()
            raise
        note("file read again", users=len(self._opened.accounts))


def _told_to_read_again(opened: SharedState, renew: Callable[[], None] | None, change_over: Callable[[], None]) -> None:
    """Reads the certificate again, and changes over to the file that stands under the name by now."""
    _renewed(renew)
    if opened.is_replaced():
        change_over()


def _renewed(renew: Callable[[], None] | None) -> None:
    """Reads the certificate again; one that cannot be used leaves the one before in its place."""
    if renew is None:
        note("nothing to read again", why="there is no certificate from a file")
        return
    try:
        renew()
    except SDCError as problem:
        note("certificate kept", why=str(problem))
    else:
        note("certificate read again")


def _flight(opened: SharedState, options: FlightOptions) -> FlightGateway:
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what it has to say is not in the form of our log
    try:
        from sdcduck.gateway.flight.server import FlightGateway  # a large library, for those who ask for it
    except ImportError:
        raise SDCError("this pyarrow has no Arrow Flight; take the one of PyPI: pip install pyarrow") from None
    return FlightGateway(opened, options)
