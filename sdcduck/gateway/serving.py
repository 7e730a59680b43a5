"""From a file to a gateway that answers: what `sdcduck serve` does."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
from collections.abc import Callable
from pathlib import Path

import duckdb

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.gateway.answers import Role
from sdcduck.gateway.login import Account
from sdcduck.gateway.server import Gateway, Options
from sdcduck.gateway.system_catalog import SystemCatalog
from sdcduck.guard import guard
from sdcduck.passwords import read_verifier


def gateway(file: str | Path, options: Options, *, log: str | Path | None = None, memory: str | None = None) -> Gateway:
    """A gateway to a file, which it holds for reading.

    Args:
        log: file for the audit log.
        memory: limit of the database, such as ``2GB``.

    Raises:
        SDCError: there is no such file, or it has no policies or no users.
    """
    path = Path(file)
    accounts = _accounts(path)
    roles: dict[str, Role] = {}
    for name in sorted({account.role.lower() for account in accounts.values()}):
        guarded = guard(path, role=name, seconds=options.limits.seconds, memory=memory, log=log)
        roles[name] = Role(guarded, SystemCatalog(guarded.relations(), path.stem, sorted(accounts)))
    return Gateway(accounts, roles, path.stem, options)


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


async def serve(served: Gateway, ready: Callable[[int], None]) -> None:
    """Serve until the process is told to end.

    Args:
        ready: called with the port once clients may come.
    """
    port = await served.start()
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    try:
        ready(port)
        await over.wait()
    finally:
        await served.stop()
