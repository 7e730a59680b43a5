"""What each client sends by itself when it connects: read off the wire, answered without an error, and never the data's.

A relay stands between the client and the gateway and reads along in both directions.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from served_gateway import PASSWORD, Served, wait_for

from sdcduck.gateway.postgres import protocol
from sdcduck.gateway.postgres.protocol import Decoder, ProtocolError

_MODULES = os.environ.get("SDCDUCK_NODE_MODULES", "")
_JAR = Path("/usr/share/java/postgresql.jar")


@dataclass
class Relay:
    """Takes one client after another to a gateway.

    Attributes:
        sent: the statements of the clients.
        errors: what the gateway refused, once it had let them in.
    """

    to: int
    sent: list[str] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._take, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _take(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.to))
            for read, write, heard in ((client, server, self._asked()), (server, client, self._answered())):
                threading.Thread(target=self._pass_on, args=(read, write, heard), daemon=True).start()

    @staticmethod
    def _pass_on(read: socket.socket, write: socket.socket, heard: Callable[[bytes], None]) -> None:
        try:
            while data := read.recv(65_536):
                heard(data)
                write.sendall(data)
        except OSError:
            pass
        for end in (read, write):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _asked(self) -> Callable[[bytes], None]:
        decoder = Decoder()
        decoder.longest = protocol.LONGEST

        def hear(data: bytes) -> None:
            decoder.feed(data)
            try:
                while (message := decoder.next()) is not None:
                    if isinstance(message, protocol.Query | protocol.Parse):
                        self.sent.append(message.sql)
            except ProtocolError as problem:
                self.errors.append(str(problem).encode())

        return hear

    def _answered(self) -> Callable[[bytes], None]:
        waiting = bytearray()

        def hear(data: bytes) -> None:
            waiting.extend(data)
            while waiting[:1] == b"N" and (len(waiting) == 1 or waiting[1:2] in (b"R", b"E", b"N")):
                del waiting[:1]  # no, to a question for encryption
            while len(waiting) >= 5 and len(waiting) > struct.unpack_from("!i", waiting, 1)[0]:
                length = 1 + struct.unpack_from("!i", waiting, 1)[0]
                if waiting[:1] == b"E":
                    self.errors.append(bytes(waiting[5:length]))
                del waiting[:length]

        return hear


def by_libpq(module: str) -> Callable[[int], None]:
    def come(port: int) -> None:
        con = importlib.import_module(module).connect(
            host="127.0.0.1", port=port, user="ann", password=PASSWORD, dbname="register"
        )
        con.close()

    return come


def by_asyncpg(port: int) -> None:
    import asyncpg

    async def come() -> None:
        con = await asyncpg.connect(_url(port))
        await con.reset()
        await con.close()

    asyncio.run(come())


def by_pg8000(port: int) -> None:
    import pg8000.native

    pg8000.native.Connection("ann", host="127.0.0.1", port=port, database="register", password=PASSWORD).close()


def by_adbc(port: int) -> None:
    from adbc_driver_postgresql import dbapi

    dbapi.connect(_url(port)).close()


def by_sqlalchemy(port: int) -> None:
    import sqlalchemy

    engine = sqlalchemy.create_engine(_url(port).replace("postgresql", "postgresql+psycopg"))
    with engine.connect():
        pass
    engine.dispose()


def by_ibis(port: int) -> None:
    import ibis

    ibis.postgres.connect(host="127.0.0.1", port=port, user="ann", password=PASSWORD, database="register").disconnect()


def by_ours(port: int) -> None:
    import sdcduck.ibis

    sdcduck.ibis.connect(_url(port)).disconnect()


def by_odbc(port: int) -> None:
    import pyodbc

    driver = next(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"))
    told = f"Driver={driver};Server=127.0.0.1;Port={port};Database=register;Uid=ann;Pwd={PASSWORD}"
    pyodbc.connect(told).close()


def by_psql(port: int) -> None:
    _run(["psql", "-X", _url(port), "-c", r"\conninfo"])


def by_jdbc(port: int) -> None:
    _run(["java", "-cp", str(_JAR), str(Path(__file__).with_name("Comes.java")), str(port), PASSWORD])


def by_node(port: int) -> None:
    program = (
        "const {Client} = require('pg'); const [port, password] = process.argv.slice(1);"
        "const client = new Client({host: '127.0.0.1', port: Number(port), user: 'ann', password, database: 'register'});"
        "client.connect().then(() => client.end())"
    )
    _run(["node", "-e", program, "--", str(port), PASSWORD], NODE_PATH=_MODULES)


def _url(port: int) -> str:
    return f"postgresql://ann:{quote(PASSWORD)}@127.0.0.1:{port}/register"


def _run(command: list[str], **environment: str) -> None:
    subprocess.run(command, env={**os.environ, **environment}, capture_output=True, timeout=120, check=True)


def _there(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


CLIENTS: dict[str, tuple[Callable[[int], Any], bool, set[str]]] = {
    "psycopg": (by_libpq("psycopg"), _there("psycopg"), set()),
    "psycopg2": (by_libpq("psycopg2"), _there("psycopg2"), set()),
    "asyncpg": (by_asyncpg, _there("asyncpg"), {"SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;"}),
    "pg8000": (by_pg8000, _there("pg8000"), set()),
    "ADBC": (by_adbc, _there("adbc_driver_postgresql"), {"SELECT version();"}),
    "SQLAlchemy": (by_sqlalchemy, _there("sqlalchemy", "psycopg"), {
        "select pg_catalog.version()", "select current_schema()", "show transaction isolation level", "show standard_conforming_strings",
    }),
    "ibis": (by_ibis, _there("ibis", "psycopg"), {"SET TIMEZONE = UTC"}),
    "sdcduck.ibis": (by_ours, _there("ibis"), {"SELECT version();"}),
    "psql": (by_psql, shutil.which("psql") is not None, set()),
    "Node.js": (by_node, shutil.which("node") is not None and bool(_MODULES), set()),
    "JDBC": (by_jdbc, _JAR.exists() and shutil.which("javac") is not None, {
        "SET extra_float_digits = 3", "SET application_name = 'PostgreSQL JDBC Driver'",
    }),
    "ODBC": (by_odbc, _there("pyodbc") and any(Path("/usr/lib").glob("*/odbc/psqlodbcw.so")), {
        "SET DateStyle = 'ISO';SET extra_float_digits = 2;show transaction_isolation",
        "select oid, typbasetype from pg_type where typname = 'lo'",
    }),
}  # fmt: skip
"""How each connects and leaves, whether it is there, and what it is known to send meanwhile."""


@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_client_sends_by_itself_is_answered_without_the_data(served: Served, client: str) -> None:
    come, there, known = CLIENTS[client]
    if not there:
        pytest.skip(f"no {client}")
    left, asked = served.told("left"), len(served.asked())
    relay = Relay(served.port)
    try:
        come(relay.port)
        wait_for(lambda: served.told("left") > left)
        assert relay.errors == []
        assert known <= set(relay.sent)
        assert len(served.asked()) == asked, relay.sent
    finally:
        relay.close()


def test_the_relay_hears_what_is_refused(served: Served) -> None:
    psycopg = pytest.importorskip("psycopg")
    relay = Relay(served.port)
    try:
        with psycopg.connect(_url(relay.port)) as con, pytest.raises(psycopg.Error, match="SDC040"):
            con.execute("SELECT * FROM people")
        assert relay.sent[:2] == ["BEGIN", "SELECT * FROM people"]
        assert [b"SDC040" in error for error in relay.errors] == [True]
    finally:
        relay.close()
