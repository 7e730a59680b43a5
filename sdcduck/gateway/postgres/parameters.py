"""Parameters: which types they have where the client does not say, and their values."""

from __future__ import annotations

import datetime
import re
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from sdcduck.gateway.postgres.dialect import UNREADABLE, is_large, listed_in, number_of
from sdcduck.gateway.postgres.types import (
    BOOL,
    BY_OID,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    OID,
    REGCLASS,
    REGTYPE,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    Type,
    array_of,
    type_of,
)  # fmt: skip
from sdcduck.guard.expression_types import EXPRESSION_TYPES
from sdcduck.guard.passes.normalize import with_bracketed_keys
from sdcduck.guard.passes.words import words_of
from sdcduck.quoting import folded

_DUCKDB = Dialect.get_or_raise("duckdb")
_MOST_NODES = 5_000
_MOST_LEFT_OUT = 100
_MOST_DIGITS = 400
"""Behind the point of a share; the smallest of floating-point numbers has no more."""
_EACH = 64
"""Bytes that a value takes beside those that came, roughly."""


class BadParameter(Exception):
    """A value that is none of its type."""


def parameter_types(sql: str, schema: Mapping[str, Mapping[str, str]], given: Sequence[int]) -> tuple[Type, ...]:
    """The type of each parameter of a query: as the client says, else as what it stands beside, else text.

    Args:
        sql: in the dialect of DuckDB.
        schema: DuckDB types of the columns, by table.
        given: numbers of types, 0 where the client leaves it to us.

    A number far beyond how many there are is no parameter: ``$65535`` alone would be 65,535 of them, of a few bytes.

    >>> kinds = parameter_types("SELECT $2::date FROM t WHERE n > $1 LIMIT $3", {"t": {"n": "BIGINT"}}, ())
    >>> [kind.name for kind in kinds]
    ['int8', 'date', 'int8']
    """
    if "$" not in sql or is_large(sql):
        return tuple(BY_OID.get(oid, TEXT) for oid in given)
    found: dict[int, Type] = {}
    for node in _tree(sql, schema).find_all(exp.Parameter, exp.Placeholder):
        number = number_of(node)
        if number is not None and 0 < number <= 65_535 and found.get(number, TEXT) is TEXT:
            found[number] = _beside(node)
    most = len(given) + len(found) + _MOST_LEFT_OUT
    count = max([len(given), *(number for number in found if number <= most)])
    said = [*given, *[0] * (count - len(given))]
    return tuple(
        BY_OID[oid] if oid in BY_OID and oid != UNKNOWN.oid else found.get(place + 1, TEXT)
        for place, oid in enumerate(said)
    )


def _tree(sql: str, schema: Mapping[str, Mapping[str, str]]) -> exp.Expr:
    try:
        trees = _DUCKDB.parser().parse(with_bracketed_keys(words_of(sql)), sql)
    except UNREADABLE:
        return exp.Select()
    tree = (trees or [None])[0]
    if tree is None:
        return exp.Select()
    if sum(1 for _ in tree.walk()) > _MOST_NODES:
        return tree
    columns = {name: {folded(column): kind for column, kind in known.items()} for name, known in schema.items()}
    known = MappingSchema({**columns}, dialect="duckdb", normalize=False)  # else names would be read as SQL
    try:
        qualified = qualify(tree.copy(), schema=known, dialect="duckdb")
        return annotate_types(qualified, schema=known, expression_metadata=EXPRESSION_TYPES, dialect="duckdb")
    except Exception:  # whatever the optimizer stumbles over, the guard says what is wrong with the query
        return tree


def _beside(node: exp.Expr) -> Type:
    """The type that a parameter must have for the sake of what it stands beside."""
    parent = node.parent
    if isinstance(parent, exp.Paren | exp.Neg):
        return _beside(parent)
    if isinstance(parent, exp.Cast) and parent.this is node:
        said = type_of(_plain_name(parent.to))
        return TEXT if said.category == "S" else said
    if isinstance(parent, exp.Limit | exp.Offset):
        return INT8
    if isinstance(parent, exp.Any) or (isinstance(parent, exp.Anonymous) and isinstance(parent.parent, exp.NEQ)):
        other = parent.parent
        if isinstance(other, exp.Binary) and other.expression is parent and listed_in(other) is not None:
            return array_of(_known(other.this))
        return TEXT
    if isinstance(parent, exp.Quantile | exp.PercentileCont | exp.PercentileDisc) or (
        isinstance(parent, exp.Anonymous) and folded(parent.name) in ("quantile_cont", "quantile_disc")
    ):
        return FLOAT8
    if isinstance(parent, exp.Like | exp.ILike | exp.DPipe | exp.RegexpLike):
        return TEXT
    if isinstance(parent, exp.Binary):
        return _known(parent.expression if parent.this is node else parent.this)
    if isinstance(parent, exp.Between | exp.In):
        others = [parent.this, *parent.expressions] if isinstance(parent, exp.In) else list(parent.args.values())
        return next((kind for other in others if other is not node and (kind := _known(other)) is not TEXT), TEXT)
    if isinstance(parent, exp.Coalesce | exp.Greatest | exp.Least):
        return next((kind for other in [parent.this, *parent.expressions] if (kind := _known(other)) is not TEXT), TEXT)
    return TEXT


def _plain_name(kind: exp.DataType) -> str:
    """The name of a type without the schema that some drivers write before it: ``$1::pg_catalog.int8``."""
    written: str = kind.sql("duckdb")
    if "." not in written:
        return written
    try:
        return exp.DataType.build(written.rpartition(".")[2], dialect="postgres").sql("duckdb")
    except SqlglotError:
        return written


def _known(node: Any) -> Type:
    kind = node.type if isinstance(node, exp.Expr) else None
    if kind is None or kind.this in (exp.DataType.Type.UNKNOWN, exp.DataType.Type.NULL):
        return TEXT
    found = type_of(kind.sql("duckdb"))
    return TEXT if found.category == "S" else found


def size_of(values: Sequence[object]) -> int:
    """Bytes that values take beside those that came: many small ones are large together.

    >>> size_of([1, [2, 3]])
    256
    """
    return _EACH * sum(1 + len(value) if isinstance(value, list) else 1 for value in values)


def value_of(data: bytes | None, kind: Type, form: int) -> object:
    """The value of a parameter.

    Raises:
        BadParameter: the bytes are no value of the type.
    """
    if data is None:
        return None
    try:
        return _binary(data, kind) if form else _text(_decoded(data), kind)
    except (ValueError, InvalidOperation, struct.error, OverflowError):
        raise BadParameter(kind.name) from None


def _text(text: str, kind: Type) -> object:
    if kind.element is not None:
        return [None if part is None else _text(part, kind.element) for part in parts_of(text)]
    return _FROM_TEXT.get(kind.oid, _as_is)(text.strip() if kind.category != "S" else text)


def _as_is(text: str) -> object:
    return text


def _bool(text: str) -> bool:
    word = text.lower()
    if word in ("t", "true", "1", "on", "y", "yes"):
        return True
    if word in ("f", "false", "0", "off", "n", "no"):
        return False
    raise ValueError("neither true nor false")


_ZONE = re.compile(r"\s?[+-]\d{2}(:?\d{2})?(:?\d{2})?$")


def _date(text: str) -> datetime.date:
    """A date, with which some drivers send a time or a time zone; nothing else, such as BC."""
    if len(text) <= 10:
        return datetime.date.fromisoformat(text)
    return datetime.datetime.fromisoformat(_ZONE.sub("", text)).date()


def _timestamp(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text[:10] + _ZONE.sub("", text[10:]))


def _timestamptz(text: str) -> datetime.datetime:
    zone = _ZONE.search(text[10:])
    plain = datetime.datetime.fromisoformat(text[:10] + _ZONE.sub("", text[10:]))
    if zone is None:
        return plain.replace(tzinfo=datetime.UTC)
    digits = zone[0].strip().replace(":", "")
    offset = datetime.timedelta(hours=int(digits[1:3]), minutes=int(digits[3:5] or 0))
    return plain.replace(tzinfo=datetime.timezone(-offset if digits[0] == "-" else offset))


def _time(text: str) -> datetime.time:
    return datetime.time.fromisoformat(_ZONE.sub("", text))


_ESCAPED = re.compile(rb"\\(\\|[0-3][0-7]{2}|)")


def _bytes(text: str) -> bytes:
    """Bytes in hexadecimal digits, or as they are with those behind a backslash in octal ones.

    >>> _bytes("\\\\x6162"), _bytes("a\\\\\\\\b\\\\001")
    (b'ab', b'a\\\\b\\x01')
    """
    if text.startswith("\\x"):
        return bytes.fromhex(text[2:])

    def byte(found: re.Match[bytes]) -> bytes:
        return found[1] if found[1] == b"\\" else bytes([int(found[1], 8)])  # nothing there is no number

    return _ESCAPED.sub(byte, text.encode())


_FROM_TEXT: Mapping[int, Callable[[str], object]] = {
    BOOL.oid: _bool, BYTEA.oid: _bytes, INT2.oid: int, INT4.oid: int, INT8.oid: int, OID.oid: int, REGTYPE.oid: int,
    REGCLASS.oid: int, FLOAT4.oid: float, FLOAT8.oid: float, NUMERIC.oid: Decimal, DATE.oid: _date, TIME.oid: _time,
    TIMESTAMP.oid: _timestamp, TIMESTAMPTZ.oid: _timestamptz, UUID.oid: uuid.UUID,
}  # fmt: skip


_PART = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*|([^",{}]+)', re.S)


def parts_of(text: str) -> list[str | None]:
    """The values of an array in text.

    >>> parts_of('{1,NULL,"a,\\\\"b"}')
    ['1', None, 'a,"b']
    """
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError("no array")
    inside, place = text[1:-1], 0
    parts: list[str | None] = []
    while inside and not inside.isspace():
        found = _PART.match(inside, place)
        if found is None:
            raise ValueError("no array")
        if found[1] is not None:
            parts.append(re.sub(r"\\(.)", r"\1", found[1], flags=re.S))
        elif word := found[2].strip():
            parts.append(None if word.upper() == "NULL" else word)
        else:
            raise ValueError("no array")
        place = found.end() + 1
        if place > len(inside):
            return parts
        if inside[place - 1] != ",":
            raise ValueError("no array")
    return parts


_EPOCH = datetime.datetime(2000, 1, 1)
_FORMS = {INT2.oid: "!h", INT4.oid: "!i", INT8.oid: "!q", OID.oid: "!I", FLOAT4.oid: "!f", FLOAT8.oid: "!d",
          BOOL.oid: "!?", REGCLASS.oid: "!I", REGTYPE.oid: "!I"}  # fmt: skip


def _binary(data: bytes, kind: Type) -> object:
    if kind.oid in _FORMS:
        # Some drivers send a wider or narrower integer than they were told of.
        if _FORMS[kind.oid] in ("!h", "!i", "!q"):
            if len(data) not in (2, 4, 8):
                raise ValueError("no integer")
            return int.from_bytes(data, "big", signed=True)
        return struct.unpack(_FORMS[kind.oid], data)[0]
    if kind.oid == BYTEA.oid:
        return data
    if kind.oid == DATE.oid:
        return (_EPOCH + datetime.timedelta(days=struct.unpack("!i", data)[0])).date()
    if kind.oid in (TIMESTAMP.oid, TIMESTAMPTZ.oid):
        moment = _EPOCH + datetime.timedelta(microseconds=struct.unpack("!q", data)[0])
        return moment.replace(tzinfo=datetime.UTC) if kind.oid == TIMESTAMPTZ.oid else moment
    if kind.oid == TIME.oid:
        moment = _EPOCH + datetime.timedelta(microseconds=struct.unpack("!q", data)[0])
        if moment.date() != _EPOCH.date():
            raise ValueError("no time of a day, or 24:00, which Python has not")
        return moment.time()
    if kind.oid == NUMERIC.oid:
        return _numeric(data)
    if kind.oid == UUID.oid:
        return uuid.UUID(bytes=data)
    if kind.oid == INTERVAL.oid:
        microseconds, days, months = struct.unpack("!qii", data)
        return f"{months} months {days} days {microseconds} microseconds"
    if kind.element is not None:
        return _array(data, kind.element)
    return _decoded(data)


def _decoded(data: bytes) -> str:
    """A text, in which PostgreSQL has no NUL byte."""
    if b"\0" in data:
        raise ValueError("a NUL byte")
    return data.decode()


def _numeric(data: bytes) -> Decimal:
    count, weight, sign, _ = struct.unpack_from("!hhHh", data)
    if sign == 0xC000:
        return Decimal("NaN")
    if sign not in (0, 0x4000):
        raise ValueError("infinite, for which DuckDB has no decimal, or no number")
    groups = struct.unpack_from(f"!{count}h", data, 8)
    number = int("".join(f"{group:04}" for group in groups) or "0")
    return Decimal((int(sign == 0x4000), tuple(map(int, str(number))), 4 * (weight + 1 - count)))


def _array(data: bytes, element: Type) -> list[object]:
    dimensions, _, oid = struct.unpack_from("!iii", data)
    if dimensions == 0:
        return []
    if dimensions != 1:
        raise ValueError("only arrays of one dimension")
    inside = BY_OID.get(oid, element)
    if inside.element is not None:  # each array in another would be copied, and one message of them fill the memory
        raise ValueError("only arrays of one dimension")
    count, _ = struct.unpack_from("!ii", data, 12)
    place, found = 20, []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", data, place)
        place += 4
        if length < -1 or place + max(length, 0) > len(data):
            raise ValueError("an array ends too early")
        found.append(None if length == -1 else _binary(data[place : place + length], inside))
        place += max(length, 0)
    return found


_KIND = r"[\w\[\]]+(?:\s+[\w\[\]]+)*"
_ANY = re.compile(
    r"(?:(?<![<>!])=\s*ANY|(<>|!=)\s*ALL)\s*"
    rf"\(\s*(?:CAST\s*\(\s*)?\$(\d{{1,5}})\s*(?:::\s*{_KIND}|\s+AS\s+{_KIND}\s*\))?\s*\)",
    re.I,
)


def expanded(sql: str, values: Sequence[object]) -> tuple[str, dict[str, object]]:
    """A question with its values by name; ``= ANY ($1)`` becomes a list of parameters, which the guard understands.

    So does ``<> ALL ($1)``, unless there is nothing in it: then it holds for NULL too, as NOT IN never does.

    >>> expanded("SELECT count(*) FROM t WHERE a = ANY($1) AND b = $2", [[7, 8], 9])
    ('SELECT count(*) FROM t WHERE a IN ($3, $4) AND b = $2', {'2': 9, '3': 7, '4': 8})
    """
    sql, named = _with_shares(*by_name(sql, values))
    if not any(isinstance(value, list) for value in values):
        return sql, named
    used: set[str] = set()

    def listed(found: re.Match[str]) -> str:
        array = named.get(found[2])
        if not isinstance(array, list) or (found[1] and not array):
            return found[0]
        first = max(map(int, named)) + 1
        places = [str(first + place) for place in range(len(array))]
        named.update(zip(places, array, strict=True))
        used.add(found[2])
        return f"{'NOT ' if found[1] else ''}IN ({', '.join(f'${place}' for place in places) or 'NULL'})"

    written = _ANY.sub(listed, sql)
    return written, {name: value for name, value in named.items() if name not in used}


_SHARE = re.compile(r"(\bquantile_(?:cont|disc)\((?:[^()']|\([^()']*\))*, )\$(\d{1,5})\)", re.I)


def _with_shares(sql: str, named: dict[str, object]) -> tuple[str, dict[str, object]]:
    """A question with the share of each quantile written into it, since the guard answers by its digits.

    >>> _with_shares("SELECT quantile_cont(income, $1) FROM t WHERE age > $2", {"1": 0.25, "2": 30})
    ('SELECT quantile_cont(income, 0.25) FROM t WHERE age > $2', {'2': 30})
    """
    if not _SHARE.search(sql):
        return sql, named
    used: set[str] = set()

    def share(found: re.Match[str]) -> str:
        number = _share(named.get(found[2]))
        if number is None:
            return found[0]
        used.add(found[2])
        return f"{found[1]}{number:f})"

    written = _SHARE.sub(share, sql)
    return written, {name: value for name, value in named.items() if name not in used or f"${name}" in written}


def _share(value: object) -> Decimal | None:
    """A number from 0 to 1 that can be written out: a short exponent may stand for a billion digits.

    >>> _share(0.25), _share(Decimal("1E-999999999")), _share(Decimal("NaN"))
    (Decimal('0.25'), None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (float, Decimal, int)):
        return None
    number = Decimal(str(value))
    exponent = number.as_tuple().exponent
    return number if isinstance(exponent, int) and exponent > -_MOST_DIGITS and 0 <= number <= 1 else None


def by_name(sql: str, values: Sequence[object]) -> tuple[str, dict[str, object]]:
    """A question with its values by name."""
    return sql, {str(place): value for place, value in enumerate(values, 1)}


def without_arrays(sql: str) -> str:
    """A question with the same columns and no arrays among its parameters, nor shares of quantiles."""
    sql = _SHARE.sub(lambda found: f"{found[1]}0.5)", sql)
    return _ANY.sub(lambda found: f"{'NOT ' if found[1] else ''}IN (NULL)", sql)
