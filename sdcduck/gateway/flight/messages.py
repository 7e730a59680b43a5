"""The messages of Arrow Flight SQL: those that a client sends to ask, as values, and those that it gets.

They are Protocol Buffers, of which few forms occur: numbers, texts, bytes and messages in messages. So they are read
here, strictly; a field that is not known is passed over, as the format wants it.

Source: FlightSql.proto and Flight.proto of Apache Arrow; https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

_PREFIX = "type.googleapis.com/arrow.flight.protocol.sql."
_MOST_FIELDS = 10_000
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class BadMessage(Exception):
    """Bytes that are no message of Flight SQL, or one that is not known."""


class Fields:
    """The fields of a message.

    Raises:
        BadMessage: the bytes are none.

    >>> fields = Fields(message((1, b"SELECT 1"), (3, 300), (3, 7)))
    >>> fields.text(1), fields.numbers(3), fields.text(2)
    ('SELECT 1', [300, 7], None)
    """

    def __init__(self, data: bytes) -> None:
        self._found: dict[int, list[int | bytes]] = {}
        place = count = 0
        while place < len(data):
            tag, place = _varint(data, place)
            value: int | bytes
            if tag & 7 == _VARINT:
                value, place = _varint(data, place)
            elif tag & 7 in (_FIXED32, _FIXED64, _BYTES):
                length, place = _varint(data, place) if tag & 7 == _BYTES else (4 if tag & 7 == _FIXED32 else 8, place)
                value = data[place : place + length]
                place += length
                if place > len(data):
                    raise BadMessage("a message that ends too early")
            else:
                raise BadMessage("a message with a field of an unknown form")
            count += 1
            if count > _MOST_FIELDS:
                raise BadMessage("a message with too many fields")
            self._found.setdefault(tag >> 3, []).append(value)

    def data(self, number: int) -> bytes | None:
        """The last value of a field of bytes; None: it is not there."""
        values = self.all_data(number)
        return values[-1] if values else None

    def all_data(self, number: int) -> list[bytes]:
        """All values of a field of bytes."""
        values = self._found.get(number, [])
        found = [value for value in values if isinstance(value, bytes)]
        if len(found) != len(values):
            raise BadMessage("a field of another form than it should have")
        return found

    def text(self, number: int) -> str | None:
        """The last value of a field of text; None: it is not there."""
        values = self.texts(number)
        return values[-1] if values else None

    def texts(self, number: int) -> list[str]:
        """All values of a field of text."""
        try:
            return [value.decode() for value in self.all_data(number)]
        except UnicodeDecodeError:
            raise BadMessage("a text that is not UTF-8") from None

    def numbers(self, number: int) -> list[int]:
        """All values of a field of numbers, packed together or one by one."""
        found: list[int] = []
        for value in self._found.get(number, []):
            if isinstance(value, int):
                found.append(value)
                continue
            place = 0
            while place < len(value):
                one, place = _varint(value, place)
                found.append(one)
                if len(found) > _MOST_FIELDS:
                    raise BadMessage("a message with too many numbers")
        return found

    def flag(self, number: int) -> bool:
        """The value of a field that is true or false."""
        return any(self.numbers(number)[-1:])


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise BadMessage("a message that ends too early")
        value |= (data[place] & 127) << shift
        place += 1
        if data[place - 1] < 128:
            return value, place
    raise BadMessage("a number that is too long")


def _number(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """A message with these fields."""
    parts = []
    for number, value in fields:
        if isinstance(value, bytes):
            parts += [_number(number << 3 | _BYTES), _number(len(value)), value]
        else:
            parts += [_number(number << 3 | _VARINT), _number(value)]
    return b"".join(parts)


@dataclass(frozen=True)
class Query:
    """A question."""

    sql: str


@dataclass(frozen=True)
class PreparedQuery:
    """A question that was prepared."""

    handle: bytes


@dataclass(frozen=True)
class Answered:
    """An answer that waits to be read."""

    handle: bytes


@dataclass(frozen=True)
class Update:
    """A statement that changes something, or rows to be taken in: neither is done here.

    Attributes:
        sql: its text, or what it is, for the audit log.
    """

    sql: str


@dataclass(frozen=True)
class Catalogs:
    """Which databases there are."""


@dataclass(frozen=True)
class Schemas:
    """Which schemas there are; None: of any name."""

    catalog: str | None
    schema: str | None


@dataclass(frozen=True)
class Tables:
    """Which tables there are; schema and table are patterns of LIKE.

    Attributes:
        types: of tables; none: all of them.
        columns: whether their columns are wanted.
    """

    catalog: str | None
    schema: str | None
    table: str | None
    types: tuple[str, ...]
    columns: bool


@dataclass(frozen=True)
class TableTypes:
    """Which types of tables there are."""


@dataclass(frozen=True)
class PrimaryKeys:
    """The keys of a table."""


@dataclass(frozen=True)
class ForeignKeys:
    """The keys that refer to a table, or from it to others."""


@dataclass(frozen=True)
class ServerInfo:
    """What the server is and can do; no numbers: all of it."""

    numbers: tuple[int, ...]


@dataclass(frozen=True)
class TypeInfo:
    """Which types there are."""


Metadata = Catalogs | Schemas | Tables | TableTypes | PrimaryKeys | ForeignKeys | ServerInfo | TypeInfo
Command = Query | PreparedQuery | Answered | Update | Metadata

_COMMANDS: dict[str, Callable[[Fields], Command]] = {
    "CommandStatementQuery": lambda fields: Query(fields.text(1) or ""),
    "CommandPreparedStatementQuery": lambda fields: PreparedQuery(fields.data(1) or b""),
    "TicketStatementQuery": lambda fields: Answered(fields.data(1) or b""),
    "CommandStatementUpdate": lambda fields: Update(fields.text(1) or ""),
    "CommandPreparedStatementUpdate": lambda fields: Update("a prepared statement, run as an update"),
    "CommandStatementIngest": lambda fields: Update(f"rows to be taken in as a table: {fields.text(2) or ''}"),
    "CommandGetCatalogs": lambda fields: Catalogs(),
    "CommandGetDbSchemas": lambda fields: Schemas(fields.text(1), fields.text(2)),
    "CommandGetTables": lambda fields: Tables(
        fields.text(1), fields.text(2), fields.text(3), tuple(fields.texts(4)), fields.flag(5)
    ),
    "CommandGetTableTypes": lambda fields: TableTypes(),
    "CommandGetPrimaryKeys": lambda fields: PrimaryKeys(),
    "CommandGetExportedKeys": lambda fields: ForeignKeys(),
    "CommandGetImportedKeys": lambda fields: ForeignKeys(),
    "CommandGetCrossReference": lambda fields: ForeignKeys(),
    "CommandGetSqlInfo": lambda fields: ServerInfo(tuple(fields.numbers(1))),
    "CommandGetXdbcTypeInfo": lambda fields: TypeInfo(),
}


def command(data: bytes) -> Command:
    """The command that a descriptor or ticket holds.

    Raises:
        BadMessage: it holds none.

    >>> command(named("CommandStatementQuery", (1, b"SELECT 1")))
    Query(sql='SELECT 1')
    """
    outer = Fields(data)
    name = (outer.text(1) or "").removeprefix(_PREFIX)
    read = _COMMANDS.get(name)
    if read is None:
        raise BadMessage("not a command of Flight SQL that is known here")
    return read(Fields(outer.data(2) or b""))


def named(name: str, *fields: tuple[int, int | bytes]) -> bytes:
    """A message together with its name."""
    return message((1, (_PREFIX + name).encode()), (2, message(*fields)))


def inside(data: bytes, name: str) -> Fields:
    """The fields of a message that comes together with its name.

    Raises:
        BadMessage: it is another one.
    """
    outer = Fields(data)
    if outer.text(1) != _PREFIX + name:
        raise BadMessage(f"not the message {name}")
    return Fields(outer.data(2) or b"")


def answers_of(info: bytes) -> Sequence[bytes]:
    """The handles of the answers that a FlightInfo is about.

    Raises:
        BadMessage: it is none.
    """
    tickets = [Fields(Fields(endpoint).data(1) or b"").data(1) or b"" for endpoint in Fields(info).all_data(3)]
    found = [command(ticket) for ticket in tickets]
    return [one.handle for one in found if isinstance(one, Answered)]
