"""Every client over TLS, with a look at the certificate; none of them connects where the certificate is another's."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from served_gateway import PASSWORD, Served, start, wait_for

pytest.importorskip("cryptography")
from sdcduck.gateway.tls import self_signed

QUERY = "SELECT count(*) > 0 AS some FROM people"
_MODULES = os.environ.get("SDCDUCK_NODE_MODULES", "")
_SCANNER = os.environ.get("SDCDUCK_SCANNER_PYTHON", "")
_JAR = Path("/usr/share/java/postgresql.jar")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the certificate of the gateway, and one that somebody else made."""
    folder = tmp_path_factory.mktemp("tls")
    for name in ("ca", "other"):
        made = self_signed("localhost")
        (folder / f"{name}.pem").write_bytes(made.chain)
        (folder / f"{name}.key").write_bytes(made.key)
    return folder


@pytest.fixture(scope="module")
def encrypted(register: Path, folder: Path) -> Iterator[Served]:
    files = ("--tls-cert", str(folder / "ca.pem"), "--tls-key", str(folder / "ca.key"))
    served = start(register, folder / "served", "--host", "0.0.0.0", *files)
    yield served
    assert served.stop() == 0


def url(served: Served, ca: Path) -> str:
    return (
        f"postgresql://ann:{quote(PASSWORD)}@localhost:{served.port}/register"
        f"?sslmode=verify-full&sslrootcert={quote(str(ca))}"
    )


def by_psycopg(served: Served, ca: Path, module: str = "psycopg") -> object:
    con = importlib.import_module(module).connect(url(served, ca))
    try:
        cursor = con.cursor()
        cursor.execute(QUERY)
        return cursor.fetchone()[0]
    finally:
        con.close()


def by_asyncpg(served: Served, ca: Path) -> object:
    import asyncpg

    async def ask() -> object:
        con = await asyncpg.connect(url(served, ca))
        try:
            return await con.fetchval(QUERY)
        finally:
            await con.close()

    return asyncio.run(ask())


def by_pg8000(served: Served, ca: Path) -> object:
    import pg8000.native

    told = {"host": "localhost", "port": served.port, "database": "register", "password": PASSWORD}
    con = pg8000.native.Connection("ann", **told, ssl_context=ssl.create_default_context(cafile=str(ca)))
    try:
        return con.run(QUERY)[0][0]
    finally:
        con.close()


def by_adbc(served: Served, ca: Path) -> object:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url(served, ca)) as con, con.cursor() as cursor:
        cursor.execute(QUERY)
        return cursor.fetchone()[0]


def by_ibis(served: Served, ca: Path) -> object:
    import sdcduck.ibis

    con = sdcduck.ibis.connect(url(served, ca))
    try:
        return con.sql(QUERY).execute()["some"][0]
    finally:
        con.disconnect()


def by_psql(served: Served, ca: Path) -> object:
    return _ran(["psql", "-XAt", url(served, ca), "-c", QUERY]).strip() == "t"


def by_node(served: Served, ca: Path) -> object:
    program = (
        "const {Client} = require('pg'); const [port, password, ca] = process.argv.slice(1);"
        "const client = new Client({host: 'localhost', port: Number(port), user: 'ann', password, database: 'register',"
        " ssl: {ca: require('fs').readFileSync(ca, 'utf8')}});"
        f"client.connect().then(() => client.query('{QUERY}')).then((found) => {{ console.log(found.rows[0].some); client.end(); }})"
    )
    told = ["node", "-e", program, "--", str(served.port), PASSWORD, str(ca)]
    return _ran(told, NODE_PATH=_MODULES).strip() == "true"


def by_jdbc(served: Served, ca: Path) -> object:
    left = served.told("left")
    program = str(Path(__file__).with_name("Tls.java"))
    found = _ran(["java", "-cp", str(_JAR), program, str(served.port), PASSWORD, str(ca)])
    wait_for(lambda: served.told("left") > left)  # it was halted in the middle of a result
    return found.splitlines() == ["counted true"]


def by_odbc(served: Served, ca: Path) -> object:
    import pyodbc

    driver = next(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"))
    con = pyodbc.connect(
        f"Driver={driver};Server=localhost;Port={served.port};Database=register;Uid=ann;Pwd={PASSWORD};SSLmode=verify-full;"
        f"pqopt={{sslrootcert={ca}}}",
        autocommit=True,
    )
    try:
        return con.execute(QUERY).fetchval() in (True, "1")
    finally:
        con.close()


_SCAN = """
import sys, duckdb, duckdb_extension_postgres_scanner as found
from pathlib import Path
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.execute(f"LOAD '{next(Path(found.__path__[0]).rglob('*.duckdb_extension'))}'")
con.execute(f"ATTACH '{sys.argv[1]}' AS g (TYPE postgres)")
print(con.execute(f"SELECT * FROM postgres_query('g', '{sys.argv[2]}')").fetchall())
"""


def by_duckdb(served: Served, ca: Path) -> object:
    return _ran([_SCANNER, "-c", _SCAN, url(served, ca), QUERY]).strip() == "[(True,)]"


def _ran(command: list[str], **environment: str) -> str:
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=True
    ).stdout


def _there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


CLIENTS: dict[str, tuple[Callable[[Served, Path], Any], bool]] = {
    "psycopg": (by_psycopg, _there("psycopg")),
    "psycopg2": (lambda served, ca: by_psycopg(served, ca, "psycopg2"), _there("psycopg2")),
    "asyncpg": (by_asyncpg, _there("asyncpg")),
    "pg8000": (by_pg8000, _there("pg8000")),
    "ADBC": (by_adbc, _there("adbc_driver_postgresql")),
    "ibis": (by_ibis, _there("ibis")),
    "psql": (by_psql, shutil.which("psql") is not None),
    "Node.js": (by_node, shutil.which("node") is not None and bool(_MODULES)),
    "JDBC": (by_jdbc, _JAR.exists() and shutil.which("javac") is not None),
    "DuckDB": (by_duckdb, bool(_SCANNER)),
    "ODBC": (by_odbc, _there("pyodbc") and any(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"))),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_asks_over_tls_and_looks_at_the_certificate(encrypted: Served, folder: Path, client: str) -> None:
    ask, there = CLIENTS[client]
    before = encrypted.told("entered")
    if not there:
        pytest.skip(f"no {client}")
    assert ask(encrypted, folder / "ca.pem")
    assert '"tls": false' not in encrypted.events.read_text()
    entered = encrypted.told("entered")
    assert entered > before
    with pytest.raises(Exception, match=r"(?i)certificate|non-zero exit|ssl"):
        ask(encrypted, folder / "other.pem")
    assert encrypted.told("entered") == entered
