"""The messages of the PostgreSQL protocol 3.0: bytes to values and back, without any input or output.

Source: PostgreSQL documentation, chapter "Frontend/Backend Protocol".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

LONGEST_STARTUP = 10_000
LONGEST_BEFORE_LOGIN = 65_536
LONGEST = 1024 * 1024
_VERSION_3 = 3
_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102
_KEY_AND_ID = 12


class ProtocolError(Exception):
    """Bytes that are no message; the connection ends."""


@dataclass(frozen=True)
class SSLRequest:
    """Asks for TLS."""


@dataclass(frozen=True)
class GSSRequest:
    """Asks for an encryption that we do not have."""


@dataclass(frozen=True)
class CancelRequest:
    """Asks to stop what another connection runs."""

    process: int
    key: int


@dataclass(frozen=True)
class Startup:
    """Opens a session.

    Attributes:
        minor: version of the protocol, 3.minor.
        parameters: user, database, options and settings.
    """

    minor: int
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class Password:
    """A message of the login, in whatever form the method has."""

    data: bytes


@dataclass(frozen=True)
class Query:
    """Statements as text."""

    sql: str


@dataclass(frozen=True)
class Parse:
    """Prepares a statement; a type of 0 is for us to find."""

    name: str
    sql: str
    types: tuple[int, ...]


@dataclass(frozen=True)
class Bind:
    """Gives a prepared statement its parameters; the result is a portal."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True)
class Describe:
    """Asks what a statement (``S``) or portal (``P``) returns."""

    kind: str
    name: str


@dataclass(frozen=True)
class Execute:
    """Runs a portal for so many rows, 0 for all."""

    portal: str
    rows: int


@dataclass(frozen=True)
class Close:
    """Forgets a statement (``S``) or portal (``P``)."""

    kind: str
    name: str


@dataclass(frozen=True)
class Sync:
    """Ends a sequence of messages: after an error, the others are skipped until here."""


@dataclass(frozen=True)
class Flush:
    """Asks for what was answered so far."""


@dataclass(frozen=True)
class Terminate:
    """Ends the session."""


@dataclass(frozen=True)
class Copy:
    """Data for COPY FROM, or the end of it; nobody asked for any."""

    data: bytes


Message = (
    SSLRequest | GSSRequest | CancelRequest | Startup | Password | Query | Parse | Bind | Describe | Execute | Close
    | Sync | Flush | Terminate | Copy
)  # fmt: skip


class _Body:
    """The body of one message, read from the front; whatever is missing or left over is an error."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def take(self, count: int) -> bytes:
        if count < 0 or self._place + count > len(self._data):
            raise ProtocolError("a message ends too early")
        self._place += count
        return self._data[self._place - count : self._place]

    def int16(self) -> int:
        return int(struct.unpack("!h", self.take(2))[0])

    def int32(self) -> int:
        return int(struct.unpack("!i", self.take(4))[0])

    def count(self) -> int:
        """A number of parts: as PostgreSQL has it, up to 65535."""
        return int(struct.unpack("!H", self.take(2))[0])

    def text(self) -> str:
        end = self._data.find(b"\0", self._place)
        if end < 0:
            raise ProtocolError("a text without an end")
        data = self.take(end - self._place)
        self.take(1)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise ProtocolError("text that is not UTF-8") from None

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._place)

    def kind(self) -> str:
        kind = self.take(1)
        if kind not in (b"S", b"P"):
            raise ProtocolError("neither a statement nor a portal")
        return kind.decode()

    def formats(self) -> tuple[int, ...]:
        formats = tuple(self.int16() for _ in range(self.count()))
        if any(number not in (0, 1) for number in formats):
            raise ProtocolError("an unknown format of values")
        return formats

    def end(self) -> None:
        if self._place != len(self._data):
            raise ProtocolError("a message is longer than what it says")


def _value(body: _Body) -> bytes | None:
    length = body.int32()
    return None if length == -1 else body.take(length)


def _bind(body: _Body) -> Bind:
    return Bind(
        body.text(), body.text(), body.formats(), tuple(_value(body) for _ in range(body.count())), body.formats()
    )


_READ: Mapping[bytes, Callable[[_Body], Message]] = {
    b"p": lambda body: Password(body.rest()),
    b"Q": lambda body: Query(body.text()),
    b"P": lambda body: Parse(body.text(), body.text(), tuple(body.int32() for _ in range(body.count()))),
    b"B": _bind,
    b"D": lambda body: Describe(body.kind(), body.text()),
    b"E": lambda body: Execute(body.text(), body.int32()),
    b"C": lambda body: Close(body.kind(), body.text()),
    b"S": lambda body: Sync(),
    b"H": lambda body: Flush(),
    b"X": lambda body: Terminate(),
    b"d": lambda body: Copy(body.rest()),
    b"c": lambda body: Copy(b""),
    b"f": lambda body: Copy(body.rest()),
}


class Decoder:
    """Bytes as they come, to messages.

    >>> decoder = Decoder()
    >>> decoder.started = True
    >>> decoder.feed(b"Q\\x00\\x00\\x00\\x0dSELECT 1")
    >>> decoder.next() is None
    True
    >>> decoder.feed(b"\\x00")
    >>> decoder.next()
    Query(sql='SELECT 1')

    Attributes:
        started: whether the startup message came; those before it have no letter.
        longest: bytes of a message; longer ones are refused before they are read.
    """

    def __init__(self) -> None:
        self.started = False
        self.longest = LONGEST_BEFORE_LOGIN
        self._waiting = bytearray()
        self._ahead: Message | None = None

    def feed(self, data: bytes) -> None:
        """Add what came."""
        self._waiting += data

    @property
    def waiting(self) -> int:
        """Bytes that are no message yet."""
        return len(self._waiting)

    def next(self) -> Message | None:
        """The next message; None: not all of it is here.

        Raises:
            ProtocolError: there is none in these bytes.
        """
        if self._ahead is not None:
            message, self._ahead = self._ahead, None
            return message
        return self._typed() if self.started else self._first()

    def ahead(self) -> Message | None:
        """What `next` will give, if that is here already and is a message."""
        if self._ahead is None and self.started:
            try:
                self._ahead = self._typed()
            except ProtocolError:
                return None
        return self._ahead

    def _typed(self) -> Message | None:
        if not self._waiting:
            return None
        letter = bytes(self._waiting[:1])
        if letter not in _READ:
            raise ProtocolError("an unknown message")
        if len(self._waiting) < 5:
            return None
        length = self._length(1, 4, self.longest)
        if len(self._waiting) < 1 + length:
            return None
        body = _Body(self._taken(1 + length)[5:])
        message = _READ[letter](body)
        body.end()
        return message

    def _first(self) -> Message | None:
        if len(self._waiting) < 4:
            return None
        length = self._length(0, 8, LONGEST_STARTUP)
        if len(self._waiting) < length:
            return None
        body = _Body(self._taken(length)[4:])
        code = body.int32()
        if code == _SSL and length == 8:
            return SSLRequest()
        if code == _GSS and length == 8:
            return GSSRequest()
        if code == _CANCEL and length == 4 + _KEY_AND_ID:
            return CancelRequest(body.int32(), body.int32())
        if code >> 16 != _VERSION_3:
            raise ProtocolError("an unknown version of the protocol")
        parameters: dict[str, str] = {}
        while name := body.text():
            parameters[name] = body.text()
        body.end()
        self.started = True
        return Startup(code & 0xFFFF, parameters)

    def _length(self, place: int, least: int, most: int) -> int:
        length = int(struct.unpack_from("!i", self._waiting, place)[0])
        if not least <= length:
            raise ProtocolError("a message of an impossible length")
        if length > most:
            raise ProtocolError("a message that is too long")
        return length

    def _taken(self, count: int) -> bytes:
        taken = bytes(self._waiting[:count])
        del self._waiting[:count]
        return taken


def _message(letter: bytes, body: bytes) -> bytes:
    return letter + struct.pack("!i", len(body) + 4) + body


def _text(text: str) -> bytes:
    # A text ends at the first zero byte.
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


def authentication_ok() -> bytes:
    """The login succeeded."""
    return _message(b"R", struct.pack("!i", 0))


def authentication_sasl(mechanisms: Sequence[str]) -> bytes:
    """Which mechanisms a login may use."""
    return _message(b"R", struct.pack("!i", 10) + b"".join(map(_text, mechanisms)) + b"\0")


def authentication_continue(data: bytes) -> bytes:
    """A message of the mechanism."""
    return _message(b"R", struct.pack("!i", 11) + data)


def authentication_final(data: bytes) -> bytes:
    """The last message of the mechanism."""
    return _message(b"R", struct.pack("!i", 12) + data)


def sasl_initial(data: bytes) -> tuple[str, bytes]:
    """Mechanism and first message of a login.

    Raises:
        ProtocolError: they are not there.
    """
    body = _Body(data)
    mechanism, length = body.text(), body.int32()
    first = body.take(length)
    body.end()
    return mechanism, first


def negotiate_version(options: Sequence[str]) -> bytes:
    """We speak 3.0 only, and do not know these options."""
    return _message(b"v", struct.pack("!ii", _VERSION_3 << 16, len(options)) + b"".join(map(_text, options)))


def parameter_status(name: str, value: str) -> bytes:
    """A setting that clients want to know."""
    return _message(b"S", _text(name) + _text(value))


def backend_key(process: int, key: int) -> bytes:
    """What a cancel request must have."""
    return _message(b"K", struct.pack("!ii", process, key))


def ready(status: str) -> bytes:
    """Idle (``I``), in a transaction (``T``) or in one that failed (``E``)."""
    return _message(b"Z", status.encode())


@dataclass(frozen=True)
class Column:
    """A column as clients hear of it.

    Attributes:
        oid: of the type.
        size: of its values in bytes, -1 where they differ.
        modifier: precision and scale, else -1.
    """

    name: str
    oid: int
    size: int = -1
    modifier: int = -1


def row_description(columns: Sequence[Column], formats: Sequence[int]) -> bytes:
    """The columns that come."""
    parts = [
        _text(column.name) + struct.pack("!ihihih", 0, 0, column.oid, column.size, column.modifier, form)
        for column, form in zip(columns, formats, strict=True)
    ]
    return _message(b"T", struct.pack("!H", len(columns)) + b"".join(parts))


def parameter_description(types: Sequence[int]) -> bytes:
    """The types of the parameters."""
    return _message(b"t", struct.pack(f"!H{len(types)}i", len(types), *types))


def command_complete(tag: str) -> bytes:
    """A statement is done."""
    return _message(b"C", _text(tag))


def error_response(severity: str, code: str, message: str, detail: str = "", hint: str = "") -> bytes:
    """An error with its SQLSTATE."""
    return _message(b"E", _fields(severity, code, message, detail, hint))


def notice_response(message: str, code: str = "00000") -> bytes:
    """Something to know."""
    return _message(b"N", _fields("NOTICE", code, message, "", ""))


def _fields(severity: str, code: str, message: str, detail: str, hint: str) -> bytes:
    fields = {b"S": severity, b"V": severity, b"C": code, b"M": message, b"D": detail, b"H": hint}
    return b"".join(name + _text(value) for name, value in fields.items() if value) + b"\0"


def copy_out(columns: int, *, binary: bool) -> bytes:
    """Copied rows follow."""
    form = int(binary)
    return _message(b"H", struct.pack(f"!bH{columns}h", form, columns, *[form] * columns))


def copy_data(data: bytes) -> bytes:
    """Some of the copied rows."""
    return _message(b"d", data)


PARSE_COMPLETE = _message(b"1", b"")
BIND_COMPLETE = _message(b"2", b"")
CLOSE_COMPLETE = _message(b"3", b"")
NO_DATA = _message(b"n", b"")
PORTAL_SUSPENDED = _message(b"s", b"")
EMPTY_QUERY = _message(b"I", b"")
COPY_DONE = _message(b"c", b"")
