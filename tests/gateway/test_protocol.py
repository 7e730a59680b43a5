"""The bytes of the protocol: whatever comes, there is a message, a wait or a clean error."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sdcduck.gateway.postgres import protocol
from sdcduck.gateway.postgres.protocol import Decoder, ProtocolError

NAMES = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)
VALUES = st.lists(st.none() | st.binary(max_size=20), max_size=5)


def message(letter: bytes, body: bytes) -> bytes:
    return letter + struct.pack("!i", len(body) + 4) + body


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def decoded(data: bytes, *, started: bool = True, step: int = 0) -> list[protocol.Message]:
    """The messages in bytes, which come at once or in pieces."""
    decoder = Decoder()
    decoder.started = started
    found = []
    for begin in range(0, len(data), step or len(data) or 1):
        decoder.feed(data[begin : begin + (step or len(data))])
        while (one := decoder.next()) is not None:
            found.append(one)
    return found


def bind(portal: str, statement: str, values: list[bytes | None]) -> bytes:
    parts = [struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values]
    return message(
        b"B", text(portal) + text(statement) + struct.pack("!HhH", 1, 1, len(values)) + b"".join(parts) + b"\0\0"
    )


@given(NAMES, NAMES, VALUES, st.integers(1, 7))
def test_what_a_client_writes_is_read_however_it_is_cut(
    name: str, sql: str, values: list[bytes | None], step: int
) -> None:
    data = (
        message(b"P", text(name) + text(sql) + struct.pack("!Hi", 1, 23))
        + bind(name, sql, values)
        + message(b"D", b"S" + text(name))
        + message(b"E", text(name) + struct.pack("!i", 7))
        + message(b"C", b"P" + text(name))
        + message(b"S", b"")
        + message(b"Q", text(sql))
        + message(b"X", b"")
    )
    assert decoded(data, step=step) == [
        protocol.Parse(name, sql, (23,)),
        protocol.Bind(name, sql, (1,), tuple(values), ()),
        protocol.Describe("S", name),
        protocol.Execute(name, 7),
        protocol.Close("P", name),
        protocol.Sync(),
        protocol.Query(sql),
        protocol.Terminate(),
    ]


@given(st.binary(max_size=300), st.booleans(), st.integers(1, 50))
@example(b"\0\0\0\x08\x04\xd2\x16\x2f", False, 3)
@example(b"Q\0\0\0\x03", True, 1)
@example(b"Q\x7f\xff\xff\xff", True, 5)
def test_any_bytes_are_messages_or_a_clean_error(data: bytes, started: bool, step: int) -> None:
    try:
        decoded(data, started=started, step=step)
    except ProtocolError as problem:
        assert str(problem)


@given(st.sampled_from(sorted(protocol._READ)), st.binary(max_size=80))
def test_any_body_is_a_message_or_a_clean_error(letter: bytes, body: bytes) -> None:
    try:
        assert len(decoded(message(letter, body))) == 1
    except ProtocolError as problem:
        assert str(problem)


def test_long_messages_are_refused_before_they_are_there() -> None:
    with pytest.raises(ProtocolError, match="too long"):
        decoded(b"Q" + struct.pack("!i", protocol.LONGEST + 1))
    with pytest.raises(ProtocolError, match="too long"):
        decoded(struct.pack("!i", protocol.LONGEST_STARTUP + 1), started=False)


def test_how_a_session_begins() -> None:
    body = struct.pack("!i", 3 << 16) + text("user") + text("ann") + text("database") + text("register") + b"\0"
    begun = decoded(struct.pack("!ii", 8, 80877103) + struct.pack("!i", len(body) + 4) + body, started=False)
    assert begun == [protocol.SSLRequest(), protocol.Startup(0, {"user": "ann", "database": "register"})]
    assert decoded(struct.pack("!iiii", 16, 80877102, 5, -6), started=False) == [protocol.CancelRequest(5, -6)]


def test_an_error_has_its_fields_and_no_zero_bytes_inside() -> None:
    assert protocol.error_response("ERROR", "42P01", "no\0thing", "more") == message(
        b"E", b"SERROR\0VERROR\0C42P01\0Mnothing\0Dmore\0\0"
    )
