"""From a file to a gateway that answers: what `sdcduck serve` does."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.gateway.answers import Role
from sdcduck.gateway.house import Account, House, Limits, Place, Seats
from sdcduck.gateway.server import Gateway, Options
from sdcduck.gateway.system_catalog import SystemCatalog
from sdcduck.guard import guard
from sdcduck.passwords import read_verifier

if TYPE_CHECKING:
    from sdcduck.gateway.flight.server import FlightGateway


def house(
    file: str | Path, limits: Limits, *, connections: int, log: str | Path | None = None, memory: str | None = None
) -> House:
    """What a gateway to a file serves; the file is held for reading.

    Args:
        connections: of all users together.
        log: file for the audit log.
        memory: limit of the database, such as ``2GB``.

    Raises:
        SDCError: there is no such file, or it has no policies or no users.
    """
    path = Path(file)
    accounts = _accounts(path)
    roles: dict[str, Role] = {}
    for name in sorted({account.role.lower() for account in accounts.values()}):
        guarded = guard(path, role=name, seconds=limits.seconds, memory=memory, log=log)
        roles[name] = Role(guarded, SystemCatalog(guarded.relations(), path.stem, sorted(accounts)))
    return House(accounts, roles, path.stem, limits, Seats(connections, limits.connections))


def _accounts(path: Path) -> dict[str, Account]:
    if not path.exists():
        raise SDCError("there is no such database file")
    with duckdb.connect(str(path), read_only=True) as con:
        try:
            users = catalog.users(con)
        except duckdb.CatalogException:
            users = []
    if not users:
        raise SDCError("the database has no users: create one with `sdcduck user add FILE NAME`")
    return {user.name: Account(user.name, user.role, read_verifier(user.verifier)) for user in users}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def serve(
    opened: House, options: Options, ready: Callable[[int, int | None], None], *, flight: Place | None = None
) -> None:
    """Serve until the process is told to end.

    Args:
        ready: called with the ports for PostgreSQL and for Arrow Flight SQL once clients may come.
        flight: where Arrow Flight SQL is spoken; None: nowhere.
    """
    served = Gateway(opened, options)
    port = await served.start()
    beside = None if flight is None else _flight(opened, flight)
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    try:
        ready(port, None if beside is None else beside.port)
        await over.wait()
    finally:
        if beside is not None:
            await asyncio.gather(served.stop(), asyncio.to_thread(beside.stop))
        else:
            await served.stop()
        opened.close()


def _flight(opened: House, place: Place) -> FlightGateway:
    try:
        from sdcduck.gateway.flight.server import FlightGateway  # a large library, for those who ask for it
    except ImportError:
        raise SDCError("this pyarrow has no Arrow Flight; take the one of PyPI: pip install pyarrow") from None
    return FlightGateway(opened, place)
