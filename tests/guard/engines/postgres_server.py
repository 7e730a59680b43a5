"""A server of PostgreSQL for the tests, from Debian's package, on a socket in a folder of its own."""

from __future__ import annotations

import atexit
import functools
import glob
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest


class Server:
    """A server that runs as `postgres` where the tests run as root, for PostgreSQL does not."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="sdcduck-pg-"))
        self._who: dict[str, Any] = {}
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
            self._who = {"user": owner.pw_uid, "group": owner.pw_gid}
        self._run(
            "initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-D", "data"
        )
        self.address = f"postgresql:///postgres?host={self._folder}&user=postgres"
        self.start()
        atexit.register(self.end)

    def start(self) -> None:
        options = f"-k {self._folder} -c listen_addresses= -c fsync=off -c log_statement=all -c max_connections=20"
        self._run("pg_ctl", "-D", "data", "-o", options, "-l", "log", "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")

    def end(self) -> None:
        subprocess.run(
            [self._programs / "pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop"], cwd=self._folder,
            capture_output=True, check=False, **self._who,
        )  # fmt: skip
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def log(self) -> str:
        """All that it wrote down: every statement."""
        return (self._folder / "log").read_text()

    def run(self, *statements: str) -> None:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.address, autocommit=True) as con, con.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def fill(self, tables: dict[str, pa.Table]) -> str:
        """Have these tables and no others; the address."""
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.address, autocommit=True) as con, con.cursor() as cursor:
            cursor.execute("DROP SCHEMA public CASCADE")
            cursor.execute("CREATE SCHEMA public")
            for name, rows in tables.items():
                listed = ", ".join(f'"{field.name}" {_kind(field.type)}' for field in rows.schema)
                cursor.execute(f'CREATE TABLE "{name}" ({listed})')
                texts = [
                    field.with_type(pa.string()) if pa.types.is_decimal(field.type) else field for field in rows.schema
                ]
                cursor.adbc_ingest("given", rows.cast(pa.schema(texts)), mode="create", temporary=True)
                shown = ", ".join(f'CAST("{field.name}" AS {_kind(field.type)})' for field in rows.schema)
                cursor.execute(f'INSERT INTO "{name}" SELECT {shown} FROM pg_temp.given')
                cursor.execute("DROP TABLE pg_temp.given")
        return self.address

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._programs / program, *arguments], cwd=self._folder, check=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, **self._who,
        )  # fmt: skip


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    known = {
        "int8": "smallint",
        "int16": "smallint",
        "int32": "integer",
        "int64": "bigint",
        "double": "double precision",
        "bool": "boolean",
    }
    return known.get(str(kind)) or (
        "date" if pa.types.is_date(kind) else "timestamp" if pa.types.is_timestamp(kind) else "text"
    )


@functools.cache
def _server() -> Server | str:
    """One of this process; or why there is none."""
    on_path = shutil.which("initdb")
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb")) or ([on_path] if on_path else [])
    if not found:
        return "PostgreSQL is not installed (Debian: postgresql)"
    try:
        return Server(Path(found[-1]).parent)
    except (KeyError, subprocess.CalledProcessError):
        return "PostgreSQL does not start here"


def postgres() -> Server:
    """The server of this process, which starts with the first test that wants it."""
    pytest.importorskip("adbc_driver_postgresql", reason="Arrow's driver of PostgreSQL is not installed")
    server = _server()
    if isinstance(server, str):
        pytest.skip(server)
    return server
