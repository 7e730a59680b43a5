"""What the guard knows of its database: policies, columns, and whether tables still are as they were declared."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
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
        self._collated: bool | None = None
        self._tables_now: frozenset[str] | None = None
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
            if self._unchanging:
                held = {name: self._with_facts(policy) for name, policy in held.items()}
            self._policies = (version, held)
        return self._policies[1]

    def _with_facts(self, policy: Policy) -> Policy:
        """A policy that knows which measures are never NULL or zero: what is asked of records need not provide for it.

        DuckDB keeps this of every column of a table; where it does not know, nothing is said.
        """
        table, measures = identifier(policy.name), list(policy.measures)
        if not measures or table not in self._unchanging_sources:
            return policy
        shown = ", ".join(f"stats({identifier(measure)})::VARCHAR" for measure in measures)
        rows = self._con.execute(f"SELECT {shown} FROM {table} LIMIT 1").fetchall()
        found = {measure: text for row in rows for measure, text in zip(measures, row, strict=True)}
        return replace(
            policy,
            without_null=frozenset(measure for measure, text in found.items() if never_null(text)),
            without_zero=frozenset(measure for measure, text in found.items() if never_zero(text)),
        )

    def tables(self) -> frozenset[str]:
        """The lower-case names of what is no view; with the connection held."""
        if self._tables_now is None or not self._unchanging:
            self._tables_now = frozenset(name.lower() for name in self._tables())
        return self._tables_now

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

    def _is_collated(self) -> bool:
        """Whether texts that differ may be one for DuckDB, in some column or wherever it compares."""
        if self._collated is not None:
            return self._collated
        collated = bool(self._limited.value(_COLLATED))
        if self._unchanging:
            self._collated = collated
        return collated

    def check_unique(self, asked: Unique) -> None:
        """Refuse to join a relation with columns that do not identify its rows.

        Raises:
            Refused: two rows have the same values.
        """
        source, columns = asked
        if asked in self._as_declared:
            return
        # By a collation, which is part of a column that they may be joined to, 'n' and 'N' are one.
        written = "lower(strip_accents(CAST({} AS VARCHAR)))" if self._is_collated() else "{}"
        listed = ", ".join(written.format(column) for _, column in columns)
        counted = f"SELECT count(*) AS n FROM {source} GROUP BY {listed}"
        if not self._limited.value(f"SELECT coalesce(max(n), 0) <= 1 FROM ({counted})"):
            raise Refused("SDC034", ", ".join(name for name, _ in columns))
        if source in self._unchanging_sources:
            self._as_declared.add(asked)


_STATISTIC = re.compile(r"'?(has_null|min|max)'?\s*: ([^,\]}]+)")


def _statistics(text: str) -> dict[str, str]:
    return dict(_STATISTIC.findall(text.lower().replace("has null", "has_null")))


def never_null(text: str) -> bool:
    """Whether a column has no NULL, by what DuckDB's ``stats`` says of it.

    >>> never_null("[Min: 0, Max: 3][Has Null: false, Has No Null: true]"), never_null("{'has_null': true, 'max': 3}")
    (True, False)
    """
    return _statistics(text).get("has_null") == "false"


def never_zero(text: str) -> bool:
    """Whether all numbers of a column are positive, or all negative.

    >>> never_zero("{'has_null': false, 'max': 3, 'min': 1}"), never_zero("[Min: 0, Max: 3][Has Null: false]")
    (True, False)
    """
    known = _statistics(text)
    try:
        least, most = float(known["min"]), float(known["max"])
    except (KeyError, ValueError):
        return False
    return least > 0 or most < 0


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
