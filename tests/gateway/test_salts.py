"""Whether a name is known cannot be told by its salt: not at once, not over a restart, not over the life of a user."""

from __future__ import annotations

import base64
import re
import socket
import struct
from pathlib import Path

import duckdb
from served_gateway import Served, start
from typer.testing import CliRunner

import sdcduck
from sdcduck.catalog.passwords import verifier
from sdcduck.cli import app

NAMES = ("ann", "eve", "nobody", "Ann")


def run(*command: str, text: str = "") -> None:
    assert CliRunner().invoke(app, ["user", *command], input=text).exit_code == 0


def salt_of(served: Served, name: str) -> str:
    """What whoever knocks is told before a password is asked for."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as sock:
        said = struct.pack("!i", 3 << 16) + b"user\0" + name.encode() + b"\0\0"
        sock.sendall(struct.pack("!i", 4 + len(said)) + said)
        sock.recv(65_536)
        first = b"n,,n=,r=abcdefgh"
        said = b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first
        sock.sendall(b"p" + struct.pack("!i", 4 + len(said)) + said)
        found = re.search(rb"s=([^,]+),i=16384", sock.recv(65_536))
        assert found is not None
        return found[1].decode()


def salts(file: Path, folder: Path) -> dict[str, str]:
    """Of a gateway that is started for it."""
    served = start(file, folder)
    try:
        return {name: salt_of(served, name) for name in NAMES}
    finally:
        assert served.stop() == 0


def register(folder: Path) -> Path:
    file = folder / "small.duckdb"
    with sdcduck.connect(file, secret="the secret of the tests") as con:
        con.execute("CREATE TABLE regions AS SELECT range AS region FROM range(3)")
        con.execute("FROM sdc_declare_public('regions')").fetchall()
    return file


def test_a_salt_tells_nothing_over_restarts_and_changes_of_users(tmp_path: Path) -> None:
    file = register(tmp_path)
    run("add", str(file), "ann", text="correct horse battery\n")
    before = salts(file, tmp_path / "first")
    assert len(set(before.values())) == len(NAMES)
    run("add", str(file), "eve", text="correct horse battery\n")
    run("add", str(file), "ann", text="another one of hers\n")
    assert salts(file, tmp_path / "second") == before
    run("drop", str(file), "ann")
    with sdcduck.connect(file) as con:
        con.execute("FROM sdc_create_user('nobody', 'correct horse battery')").fetchall()
    assert salts(file, tmp_path / "third") == before


def test_files_of_older_versions_keep_theirs(tmp_path: Path) -> None:
    file = register(tmp_path)
    run("add", str(file), "ann", text="correct horse battery\n")
    with duckdb.connect(str(file)) as con:
        con.execute("DELETE FROM sdc.settings WHERE name = 'salts'")
        made = verifier("correct horse battery", salt=bytes(16)).text()
        con.execute("UPDATE sdc.users SET verifier = ?", [made])
    before = salts(file, tmp_path / "first")
    assert before["ann"] == base64.b64encode(bytes(16)).decode()
    assert salts(file, tmp_path / "second") == before
    run("add", str(file), "ann", text="another one of hers\n")
    run("add", str(file), "eve", text="correct horse battery\n")
    run("drop", str(file), "eve")
    assert salts(file, tmp_path / "later") == before
    (tmp_path / "other").mkdir()
    other = register(tmp_path / "other")
    run("add", str(other), "bob", text="correct horse battery\n")
    assert salts(other, tmp_path / "third")["nobody"] != before["nobody"]
