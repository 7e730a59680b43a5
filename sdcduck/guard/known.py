"""What the guard knows of its database: policies, columns, and whether tables still are as they were declared."""

from __future__ import annotations

import threading
from functools import lru_cache

import duckdb
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sdcduck import catalog
from sdcduck.catalog import Policy, identifier
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import RAW, Unique
from sdcduck.guard.running import Limited


class Known:
    """Looks things up: each time, or once where nobody can change them.

    Args:
        con: the guard's own connection.
        alone: held while it is used.
        limited: asks what may take long; not while `alone` is held.
        role: whose policies hold, in lower case.
        raw: no policies hold, and every table is open.
        unchanging: nobody can change the database.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        alone: threading.Lock,
        limited: Limited,
        *,
        role: str,
        raw: bool,
        unchanging: bool,
    ) -> None:
        self._con, self._alone, self._limited = con, alone, limited
        self._role, self._raw, self._unchanging = role, raw, unchanging
        self._version: str | None = None
        self._policies: tuple[str, dict[str, Policy]] = ("", {})
        self._columns: dict[str, dict[str, exp.DataType]] = {}
        self._rows: dict[tuple[str, str], int] = {}
        self._as_declared: set[tuple[str, str] | Unique] = set()
        # A view may show other rows tomorrow, of a database that nobody changes.
        self._unchanging_sources = frozenset[str]()
        if unchanging:
            self._unchanging_sources = frozenset(map(identifier, self._tables()))

    def version(self) -> str:
        """Another whenever a policy changed."""
        if self._version is not None:
            return self._version
        with self._alone:
            version = catalog.policies_version(self._con)
        if self._unchanging:
            self._version = version
        return version

    def policies(self, version: str) -> dict[str, Policy]:
        """The policies that hold, by lower-case name; call it with the connection held."""
        if self._policies[0] != version or not version:
            known = catalog.policies(self._con) if not self._raw else []
            held = {
                policy.name.lower(): policy
                for role in ("", self._role)
                for policy in known
                if policy.role.lower() == role
            }
            if self._raw:
                # Tables only: a view or a macro may look into the schema with the secret and the users.
                held = {name.lower(): Policy(name, "public", method=RAW) for name in self._tables()}
            self._policies = (version, held)
        return self._policies[1]

    def _tables(self) -> list[str]:
        """The tables of the schema in which custodians have theirs."""
        found = self._con.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND NOT temporary "
            "AND schema_name = 'main'"
        ).fetchall()
        return [name for (name,) in found]

    def columns(self, policy: Policy) -> dict[str, exp.DataType]:
        """The columns that analysts see of a table, in lower case, with their types; with the connection held."""
        known = self._columns.get(policy.name)
        if known is None:
            known = {name: _type(kind) for name, kind in self.described(policy).items()}
            if self._unchanging:
                self._columns[policy.name] = known
        return known

    def described(self, policy: Policy) -> dict[str, str]:
        """The same columns with DuckDB's names of their types."""
        described = self._con.execute(f"DESCRIBE {identifier(policy.name)}").fetchall()
        visible = {column.lower() for column in (*policy.dimensions, *policy.measures, str(policy.unit))}
        return {row[0].lower(): row[1] for row in described if policy.label == "public" or row[0].lower() in visible}

    def names_and_numbers(self, sql: str) -> tuple[list[str], list[int]]:
        """The columns of a query that the guard made, over no table, and its one row; with the connection held.

        Raises:
            Refused: DuckDB does not take it.
        """
        try:
            row = self._con.execute(sql).fetchall()[0]
        except duckdb.Error:
            raise Refused("SDC030", "COLUMNS(..)") from None
        return [column[0] for column in self._con.description or []], list(row)

    def check_facts(self, policy: Policy) -> None:
        """Refuse a table that is not as it was declared: looked at again where the number of its records changed.

        Raises:
            Refused: a record without a unit or a proper key, or a second one of a unit where there was one each.
        """
        asked = (policy.name, policy.role)
        if asked in self._as_declared:
            return
        name = identifier(policy.name)
        rows = self._limited.value(f"SELECT count(*) FROM {name}")
        if rows != self._rows.get(asked, policy.records):
            with self._alone:
                facts = catalog.policy_facts(self._con, name, str(policy.unit), policy.record_key)
            broken = facts.no_unit or facts.no_key or facts.several_keys
            if broken or (policy.one_row_per_unit and facts.rows > facts.units):
                raise Refused("SDC060", policy.name)
            self._rows[asked] = rows
        if name in self._unchanging_sources:
            self._as_declared.add(asked)

    def check_unique(self, asked: Unique) -> None:
        """Refuse to join a relation with columns that do not identify its rows.

        Raises:
            Refused: two rows have the same values.
        """
        source, columns = asked
        if asked in self._as_declared:
            return
        # By a collation, which is part of a column that they may be joined to, 'n' and 'N' are one.
        written = "lower(strip_accents(CAST({} AS VARCHAR)))" if self._limited.value(_COLLATED) else "{}"
        listed = ", ".join(written.format(column) for _, column in columns)
        counted = f"SELECT count(*) AS n FROM {source} GROUP BY {listed}"
        if not self._limited.value(f"SELECT coalesce(max(n), 0) <= 1 FROM ({counted})"):
            raise Refused("SDC034", ", ".join(name for name, _ in columns))
        if source in self._unchanging_sources:
            self._as_declared.add(asked)


_COLLATED = (
    "SELECT coalesce(bool_or(contains(lower(sql), 'collate')), false) OR current_setting('default_collation') <> '' "
    "FROM duckdb_tables()"
)


@lru_cache(1000)
def _type(name: str) -> exp.DataType:
    """A type by its name in DuckDB; the unknown type for names that sqlglot cannot read."""
    try:
        return exp.DataType.build(name, dialect="duckdb", udt=True)
    except SqlglotError:
        return exp.DataType(this=exp.DataType.Type.UNKNOWN)
