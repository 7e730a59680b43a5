"""Messages in any order, whole and cut, over sessions that are logged in: each ends or goes on, and no other notices."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from effort import times
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served_gateway import Served

psycopg = pytest.importorskip("psycopg")

STATEMENTS = [
    "SELECT 1", "SELECT count(*) AS n FROM people WHERE age > $1", "SELECT * FROM people", "SELECT n FROM numbers LIMIT 100",
    "BEGIN", "ROLLBACK", "DECLARE c CURSOR FOR SELECT n FROM numbers", "FETCH 10 FROM c", "CLOSE ALL", "DEALLOCATE ALL",
    "SET application_name = 'the other'", "SHOW application_name", "COPY (SELECT n FROM numbers LIMIT 50) TO STDOUT",
    "SELECT relname FROM pg_class", "DISCARD ALL", "", ";;", "SELECT '", "\N{SNOWMAN}",
]  # fmt: skip
NAMES = st.sampled_from([b"", b"a", b"mine"])
TEXTS = st.sampled_from([statement.encode() for statement in STATEMENTS]) | st.binary(max_size=20)


def message(letter: bytes, body: bytes) -> bytes:
    return letter + struct.pack("!i", len(body) + 4) + body


def bound(portal: bytes, name: bytes, formats: list[int], values: list[bytes | None]) -> bytes:
    body = portal + b"\0" + name + b"\0" + struct.pack(f"!H{len(formats)}h", len(formats), *formats)
    body += struct.pack("!H", len(values))
    body += b"".join(struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values)
    return message(b"B", body + b"\0\0")


MESSAGES = st.one_of(
    st.builds(lambda text: message(b"Q", text + b"\0"), TEXTS),
    st.builds(lambda name, text: message(b"P", name + b"\0" + text + b"\0\0\0"), NAMES, TEXTS),
    st.builds(bound, NAMES, NAMES, st.lists(st.integers(0, 2), max_size=2), st.lists(st.none() | st.binary(max_size=9), max_size=2)),
    st.builds(lambda kind, name: message(b"D", kind + name + b"\0"), st.sampled_from([b"S", b"P", b"X"]), NAMES),
    st.builds(lambda kind, name: message(b"C", kind + name + b"\0"), st.sampled_from([b"S", b"P"]), NAMES),
    st.builds(lambda name, rows: message(b"E", name + b"\0" + struct.pack("!i", rows)), NAMES, st.integers(-2, 60)),
    st.sampled_from([message(b"S", b""), message(b"H", b""), message(b"c", b""), message(b"d", b"x"), message(b"p", b"x\0")]),
    st.builds(message, st.sampled_from([b"Q", b"P", b"B", b"D", b"E", b"C", b"z"]), st.binary(max_size=30)),
    st.binary(max_size=12),
)  # fmt: skip


@pytest.fixture
def neighbour(served: Served) -> Iterator[Any]:
    """A session that is in the middle of something."""
    with psycopg.connect(**served.options, application_name="the neighbour") as con:
        con.pgconn.prepare(b"mine", b"SELECT twice FROM numbers WHERE n = $1")
        yield con


@given(messages=st.lists(MESSAGES, min_size=1, max_size=12), end=st.sampled_from([b"", message(b"X", b"")]))
@settings(max_examples=times(30, 100), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_messages_end_a_session_or_not_and_no_other(
    served: Served, neighbour: Any, messages: list[bytes], end: bytes
) -> None:
    con = psycopg.connect(**served.options)
    with socket.socket(fileno=os.dup(con.fileno())) as sock:
        sock.setblocking(True)
        sock.settimeout(60)
        sock.sendall(b"".join(messages) + message(b"S", b"") + end)
        sock.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while data := sock.recv(65_536):
                answer += data
    con.close()
    assert b"XX000" not in answer  # which is a fault of ours
    assert served.told("failed") == 0
    found = neighbour.pgconn.exec_prepared(b"mine", [b"21"])
    assert found.get_value(0, 0) == b"42"
    shown = neighbour.execute("SHOW application_name").fetchone()
    assert shown == ("the neighbour",)
