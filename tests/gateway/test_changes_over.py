"""Clients that come while what is served changes: none gets in before the change is over, and none after a failed one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from sdcduck.errors import SDCError
from sdcduck.gateway.postgres.server import Gateway, Options
from sdcduck.gateway.serving import Following, _Change
from sdcduck.gateway.shared_state import ConnectionSlots, Limits, SharedState

SSL_REQUEST = bytes([0, 0, 0, 8, 4, 210, 22, 47])


def shared(**other: Any) -> SharedState:
    return SharedState({}, {}, "nothing", Limits(), ConnectionSlots(1, 1), **other)


async def with_gateway(ask: Callable[[Gateway, int], Awaitable[None]]) -> None:
    gateway = Gateway(shared(), Options("127.0.0.1", 0, None))
    port = await gateway.start()
    try:
        await ask(gateway, port)
    finally:
        await gateway.stop()


async def came(gateway: Gateway, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client who waits to come in."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(SSL_REQUEST)
    while not gateway._guests:
        await asyncio.sleep(0)
    return reader, writer


def test_who_waits_for_one_change_waits_for_the_next_one_too() -> None:
    async def ask(gateway: Gateway, port: int) -> None:
        clients = []

        async def first() -> None:
            clients.append(await came(gateway, port))

        async def second() -> None:
            for _ in range(5):
                await asyncio.sleep(0)
            assert [guest.waiting for guest in gateway._guests.values()] == [True]

        await gateway.change_over(first)
        await gateway.change_over(second)
        reader, writer = clients[0]
        assert await reader.read(1) == b"N"  # answered, and without TLS
        writer.close()

    asyncio.run(with_gateway(ask))


def test_nobody_logs_in_to_the_file_before_where_the_next_one_cannot_be_opened() -> None:
    async def ask(gateway: Gateway, port: int) -> None:
        clients = []

        async def fails() -> None:
            clients.append(await came(gateway, port))
            raise SDCError("no secret")

        with pytest.raises(SDCError, match="no secret"):
            await gateway.change_over(fails)
        reader, writer = clients[0]
        with suppress(ConnectionResetError):  # what it sent was not read
            assert await reader.read(1) == b""
        writer.close()

    asyncio.run(with_gateway(ask))


def test_a_file_that_comes_during_a_change_is_not_forgotten() -> None:
    files = ["second", "third"]

    class Served:
        """Changes over at once."""

        async def change_over(self, change: Callable[[], Awaitable[None]]) -> None:
            await change()

    async def ask() -> list[str]:
        found: list[str] = []
        opened = shared(is_replaced=lambda: found != files)

        def opens() -> SharedState:
            found.append(files[len(found)])
            if len(found) == 1:
                change.begin()  # SIGHUP, for the third
                change.begin()
            return shared(is_replaced=opened.is_replaced)

        served: Any = Served()
        change = _Change(opened, served, Following(lambda: None, opens), asyncio.Event())
        change.begin()
        await change.ended()
        return found

    assert asyncio.run(ask()) == files
