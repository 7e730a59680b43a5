"""Users of the gateway: planners behind ``sql/users_tables.sql``."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from sdcduck import catalog
from sdcduck.catalog.passwords import read_verifier, salt_of, verifier
from sdcduck.errors import unknown
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.udfs.arguments import needed, wrong

_LONGEST = 63


def checked_user(name: str | None, role: str | None) -> tuple[str, str]:
    """The name and role of a user that can be created.

    Raises:
        SDCError: one of them cannot be used.
    """
    if name is None or not name.strip() or len(name.encode()) > _LONGEST or not name.isprintable():
        raise wrong("name", f"be a name of at most {_LONGEST} bytes")
    return name, needed(role, "role", "name a role, such as 'analyst'")


def salt_for(con: duckdb.DuckDBPyConnection, name: str, salts: bytes) -> bytes:
    """The salt of a user: the one it has, or the one that was told before there was such a user."""
    known = next((user for user in catalog.users(con) if user.name == name), None)
    return salt_of(salts, name) if known is None else read_verifier(known.verifier).salt


def plan_create_user(session: Session, name: str | None, password: str | None, role: str | None) -> Rows:
    """``sdc_create_user``: the password is made a verifier while binding, and forgotten."""
    who, what = checked_user(name, role)
    if password is None:
        raise wrong("password", "be a text")
    salts = catalog.salts_secret(session.cursor())
    made = verifier(password, salt=salt_for(session.cursor(), who, salts)).text()

    def store() -> pa.Table:
        cursor = session.cursor()
        replaced = any(user.name == who for user in catalog.users(cursor))
        catalog.store_user(cursor, catalog.User(who, what, made), salts)
        return pa.table({"name": [who], "role": [what], "replaced": [replaced]})

    return Rows(store)


def plan_drop_user(session: Session, name: str | None) -> Rows:
    """``sdc_drop_user``: fails while binding if there is no such user."""
    known = [user.name for user in catalog.users(session.cursor())]
    if name not in known:
        raise unknown("user", str(name), known)

    def drop() -> pa.Table:
        catalog.drop_user(session.cursor(), str(name))
        return pa.table({"name": [name]})

    return Rows(drop)


FAMILY = Family(
    name="users",
    stored=("users.sql",),
    temporary=("users_tables.sql",),
    planners=(*planners(plan_create_user, plan_drop_user),),
)
