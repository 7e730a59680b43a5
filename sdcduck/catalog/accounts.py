"""``sdc.users``: who may log in at a gateway."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

import duckdb

from sdcduck.catalog.database import transaction
from sdcduck.catalog.settings import set_setting, setting


@dataclass(frozen=True)
class User:
    """A user of the gateway.

    Attributes:
        name: with which the user logs in.
        role: whose policies hold.
        verifier: with which the password is checked (`sdcduck.catalog.passwords`).
    """

    name: str
    role: str
    verifier: str


def users(con: duckdb.DuckDBPyConnection) -> list[User]:
    """All users of the gateway."""
    return [User(*row) for row in con.execute("SELECT name, role, verifier FROM sdc.users ORDER BY name").fetchall()]


def salts_secret(con: duckdb.DuckDBPyConnection) -> bytes:
    """From which the salts of users are made, of those who are there and of those who are not.

    Where none is stored, as in files of older versions, it follows from what is stored of the users; where there are
    none, it is a fresh one.
    """
    stored = setting(con, "salts")
    if stored is not None:
        return bytes.fromhex(stored)
    known = "\n".join(user.verifier for user in users(con))
    return hashlib.sha256(known.encode()).digest() if known else secrets.token_bytes(32)


def store_user(con: duckdb.DuckDBPyConnection, user: User, salts: bytes) -> None:
    """Store a user, replacing one of the same name, and the secret of the salts if there is none; all or nothing."""
    with transaction(con):
        if setting(con, "salts") is None:
            set_setting(con, "salts", salts.hex())
        con.execute("DELETE FROM sdc.users WHERE name = ?", [user.name])
        con.execute("INSERT INTO sdc.users VALUES (?, ?, ?)", [user.name, user.role, user.verifier])


def drop_user(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove a user; the secret of the salts stays what it is."""
    if setting(con, "salts") is None:
        set_setting(con, "salts", salts_secret(con).hex())
    con.execute("DELETE FROM sdc.users WHERE name = ?", [name])
