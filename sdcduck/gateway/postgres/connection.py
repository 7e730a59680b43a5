"""The bytes of one connection: messages in, with what waits bounded, and bytes out, no faster than the client reads."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

from sdcduck.gateway.postgres.protocol import LONGEST, Decoder, Message, ProtocolError

_MOST_WAITING = LONGEST + 65_536
_MOST_KEPT = 65_536
_NOT_SENT = 1024 * 1024


class Connection(asyncio.Protocol):
    """One connection of a client.

    Args:
        serve: what is done with it, until the client or we end it.
    """

    def __init__(self, serve: Callable[[Connection], None]) -> None:
        self._serve = serve
        self.decoder = Decoder()
        self.transport: asyncio.Transport | None = None
        self.peer = ""
        self.gone = asyncio.Event()
        self.when_gone: Callable[[], None] = lambda: None
        self.blocked_since: float | None = None
        self._came, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._kept: list[bytes | memoryview] = []
        self._kept_bytes = 0
        self._paused = False

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client is there, or TLS with it."""
        assert isinstance(transport, asyncio.Transport)
        first = self.transport is None
        self.transport = transport
        transport.set_write_buffer_limits(high=_NOT_SENT)
        if not first:
            return
        name = transport.get_extra_info("peername")
        self.peer = str(name[0]) if name else "local"
        made: socket.socket | None = transport.get_extra_info("socket")
        if made is not None and made.family in (socket.AF_INET, socket.AF_INET6):
            with contextlib.suppress(OSError):
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._serve(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self.decoder.feed(data)
        if self.decoder.waiting > _MOST_WAITING and not self._paused and self.transport is not None:
            self._paused = True
            self.transport.pause_reading()
        self._came.set()

    def eof_received(self) -> bool:
        """The client sends nothing more: it is taken to be gone."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self.gone.set()
        self._came.set()
        self._room.set()
        self.when_gone()

    def pause_writing(self) -> None:
        """The client reads slower than we write."""
        self._room.clear()
        self.blocked_since = asyncio.get_running_loop().time()

    def resume_writing(self) -> None:
        """There is room again."""
        self.blocked_since = None
        self._room.set()

    # Called by us

    async def message(self) -> Message:
        """The next message.

        Raises:
            ConnectionError: the client is gone.
            ProtocolError: the bytes are no message.
        """
        while True:
            message = self.decoder.next()
            if message is not None:
                return message
            if self._paused and self.transport is not None:
                self._paused = False
                self.transport.resume_reading()
            self.flush()
            if self.gone.is_set():
                raise ConnectionResetError
            self._came.clear()
            await self._came.wait()

    def ahead(self) -> Message | None:
        """The message that comes next, if it is here already."""
        return self.decoder.ahead()

    def write(self, data: bytes | memoryview) -> None:
        """Send, with what follows soon."""
        self._kept.append(data)
        self._kept_bytes += len(data)
        if self._kept_bytes > _MOST_KEPT:
            self.flush()

    def flush(self) -> None:
        """Send what was kept."""
        if self._kept and self.transport is not None and not self.transport.is_closing():
            self.transport.write(b"".join(self._kept) if len(self._kept) > 1 else self._kept[0])
        self._kept, self._kept_bytes = [], 0

    async def drain(self) -> None:
        """Wait until the client has read enough.

        Raises:
            ConnectionError: it is gone.
        """
        self.flush()
        await self.room()

    async def room(self) -> None:
        """Wait until not too much is left that the client has not read.

        Raises:
            ConnectionError: it is gone.
        """
        await self._room.wait()
        if self.gone.is_set():
            raise ConnectionResetError

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Go on encrypted.

        Raises:
            ProtocolError: bytes came before the handshake; somebody in between may have put them there.
        """
        if self.decoder.waiting:
            raise ProtocolError("bytes before TLS")
        assert self.transport is not None
        loop = asyncio.get_running_loop()
        encrypted = await loop.start_tls(self.transport, self, context, server_side=True, ssl_handshake_timeout=10)
        assert encrypted is not None
        self.connection_made(encrypted)

    @property
    def encrypted(self) -> bool:
        """Whether TLS is used."""
        return self.transport is not None and self.transport.get_extra_info("ssl_object") is not None

    def close(self) -> None:
        """Send what was kept, then end."""
        self.flush()
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """End at once."""
        if self.transport is not None:
            self.transport.abort()


__all__ = ["Connection", "ProtocolError"]
