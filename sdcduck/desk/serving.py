"""The server of the desk: on this machine only, one process, until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from sdcduck.desk.doors import Doors
from sdcduck.desk.pages import application
from sdcduck.desk.register import Register

HOST = "127.0.0.1"
_CLIENTS = 64
_GRACE = 3


@dataclass(frozen=True)
class Opened:
    """A desk that listens.

    Attributes:
        address: for a browser, with the token.
        register: the database.
        close: makes it end.
    """

    address: str
    register: Register
    close: Callable[[], object]


class _Server(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._ready = ready

    def close(self) -> None:
        """End, once what is asked is answered."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def serve(file: Path, *, port: int, ready: Callable[[Opened], object]) -> None:
    """Answer until it is told to stop.

    Args:
        file: the database, which nobody else can write to meanwhile.
        port: 0 for any that is free.
        ready: is called once it listens.

    Raises:
        SDCError: there is no such file, or it is none that sdcduck works on.
        OSError: the port is taken.
    """
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        number = listening.getsockname()[1]
        register = Register(file)
        try:
            token = secrets.token_urlsafe(32)
            config = uvicorn.Config(
                Doors(application(register), number, token), log_level="warning", access_log=False, lifespan="off",
                server_header=False, proxy_headers=False, ws="none", limit_concurrency=_CLIENTS,
                timeout_graceful_shutdown=_GRACE,
            )  # fmt: skip
            address = f"http://{HOST}:{number}/?token={token}"
            server = _Server(config, lambda: ready(Opened(address, register, server.close)))
            server.run(sockets=[listening])
        finally:
            register.close()
