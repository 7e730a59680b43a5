"""Whom the shell asks: the guard of a file, or a gateway. Both answer in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import duckdb
import pyarrow as pa

from sdcduck import catalog
from sdcduck.errors import SDCError, unknown
from sdcduck.guard import Origin, open_guard
from sdcduck.guard.opening import locked
from sdcduck.guard.relations import about, use_of
from sdcduck.guard.worth import Worth
from sdcduck.quoting import folded

ANALYST = "analyst"
"""The role of users who were given none."""


@dataclass(frozen=True)
class Table:
    """A relation that can be asked about.

    Attributes:
        about: whether it is protected.
        columns: with the type of each, and what it may be used for.
    """

    name: str
    about: str
    columns: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Explained:
    """What is done with a query; as `sdcduck.guard.Explanation`, without the SQL."""

    answered: bool
    notes: tuple[str, ...]
    columns: tuple[Origin, ...]
    worth: tuple[Worth, ...] = ()


class Question(Protocol):
    """A question on its way, as of `sdcduck.guard.question`; `interrupt` may be called from any thread."""

    def ask(self) -> list[tuple[str, str]]:
        """Run it up to the first rows; names and types of the columns."""

    def read(self) -> pa.RecordBatch | None:
        """The next rows; None: there are no more."""

    @property
    def notice(self) -> str:
        """What has to be known of the answer; empty: nothing."""

    def interrupt(self) -> None:
        """Stop it; to be called again until what runs has ended."""

    def close(self) -> None:
        """Give back what it holds."""


class Source(Protocol):
    """Where answers come from. What is not answered is raised as `SDCError`."""

    @property
    def who(self) -> str:
        """Of what, and as whom it asks, for people."""

    @property
    def warning(self) -> str:
        """What has to be known before anything is asked; empty: nothing."""

    def tables(self) -> Sequence[Table]:
        """What can be asked about."""

    def question(self, sql: str) -> Question:
        """A question, not asked yet."""

    def explain(self, sql: str) -> Explained:
        """What would be done with a query."""

    def rewrite(self, sql: str) -> str:
        """The SQL that runs in place of a query."""

    def close(self) -> None:
        """End it."""


@dataclass(frozen=True)
class Asker:
    """Who asks of a file.

    Attributes:
        user: for the audit log; empty: nobody in particular.
        role: whose policies hold.
    """

    user: str
    role: str


def asker(file: Path, name: str | None) -> Asker:
    """The user of this name, or else the role; without a name an analyst.

    Raises:
        SDCError: there is no such file, user or role.
    """
    if not file.is_file():
        raise SDCError(f"there is no file '{file}'")
    if name is None:
        return Asker("", ANALYST)
    with duckdb.connect(str(file), read_only=True, config=locked()) as con:
        try:
            users = catalog.users(con)
            roles = {policy.role for policy in catalog.policies(con) if policy.role}
        except duckdb.CatalogException:
            raise SDCError("this database has no policies; declare them with sdc_protect") from None
    for user in users:
        if user.name == name:
            return Asker(user.name, user.role)
    roles |= {user.role for user in users} | {ANALYST}
    if folded(name) not in {folded(role) for role in roles}:
        raise unknown("user or role", name, roles | {user.name for user in users})
    return Asker("", name)


class OfFile:
    """The guard over a file, which this process holds for reading."""

    def __init__(self, file: Path, who: Asker, log: Path | None = None, records: str | None = None) -> None:
        self._file, self._asker = file, who
        self._guard = open_guard(file, role=who.role, log=log, records=records)

    @property
    def who(self) -> str:
        """File, user and role."""
        user = f"user {self._asker.user} with role" if self._asker.user else "role"
        return f"{self._file.name}, asked as {user} {self._asker.role}, under the guard"

    @property
    def warning(self) -> str:
        """That this is no wall."""
        return (
            "Who can read this file can read its records without the guard: let others ask a gateway (sdcduck serve)."
        )

    def tables(self) -> Sequence[Table]:
        """The relations of the role."""
        return [
            Table(
                policy.name,
                about(policy),
                tuple((name, kind, use_of(policy, name)) for name, kind in columns.items()),
            )
            for policy, columns in self._guard.relations()
        ]

    def question(self, sql: str) -> Question:
        """A question to the guard."""
        return self._guard.question(sql, user=self._asker.user)

    def explain(self, sql: str) -> Explained:
        """What the guard would do."""
        explained = self._guard.explain(sql)
        return Explained(explained.answered, explained.notes, explained.columns, explained.worth)

    def rewrite(self, sql: str) -> str:
        """What runs: whoever holds the file may see it."""
        return self._guard.rewrite(sql)

    def close(self) -> None:
        """Nothing to end: the file is let go with the process."""
