"""What the guard knows of its database: policies, columns, and whether tables still are as they were declared."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import Any

import duckdb
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sdcduck import catalog
from sdcduck.catalog import Policy
from sdcduck.guard.allowed import WORDS_OF_TIME
from sdcduck.guard.column_statistics import longest_of, never_null, never_zero, statistics_of
from sdcduck.guard.files import Files
from sdcduck.guard.labels import without_labels
from sdcduck.guard.methods import METHODS
from sdcduck.guard.one_noise import OneNoise
from sdcduck.guard.own_macros import NOT_OURS, macros_of, mean_the_same
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relation_schemas import GONE, NO_TABLE, RelationSchema, RelationSchemas
from sdcduck.guard.relations import RAW, Unique
from sdcduck.guard.running import Limited, in_memory
from sdcduck.quoting import folded, identifier


@dataclass(frozen=True)
class Columns:
    """The columns of a relation that analysts see, by lower-case name: their types, and how they are spelled."""

    types: dict[str, exp.DataType]
    spelled: dict[str, str]


class Schema:
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
        self.con, self.alone, self._limited = con, alone, limited
        self._role, self._raw, self.unchanging = role, raw, unchanging
        self.relations = RelationSchemas(con)
        self.files = Files(con, alone, limited, self.relations, unchanging=unchanging)
        self._declared: catalog.Declared | None = None
        self._collated: bool | None = None
        self._tables_now: frozenset[str] | None = None
        self._policies: tuple[str, dict[str, Policy], list[Policy]] = ("", {}, [])
        self._columns: dict[str, Columns] = {}
        self._lengths: dict[str, dict[str, float]] = {}
        self._rows: dict[tuple[str, str], int] = {}
        self._as_declared: set[tuple[str, str] | Unique] = set()
        self._as_defined: set[tuple[str, str]] = set()
        self._previews: set[tuple[str, str]] = set()
        self._one_noise = OneNoise(con, unchanging=unchanging)
        self._checks = {name: method.checks() for name, method in METHODS.items()}
        # A view may show other rows tomorrow, of a database that nobody changes.
        self._unchanging_sources = frozenset[str]()
        self._first_names: dict[int, str] = {}
        if unchanging:
            self._unchanging_sources = frozenset(map(identifier, self._tables()))
        else:
            self.check_names(())

    @in_memory()
    def version(self) -> str:
        """Another whenever a policy changed."""
        if self._declared is None or not self.unchanging:
            with self.alone:
                self._declared = catalog.declared(self.con)
                return self._declared.version
        return self._declared.version

    def policies(self, version: str) -> dict[str, Policy]:
        """The policies that hold, by lower-case name; call it with the connection held."""
        if self._policies[0] != version or not version:
            if self._policies[0]:
                self._check_macros()
            known = catalog.policies(self.con) if not self._raw else []
            held = {
                folded(policy.name): policy
                for role in ("", self._role)
                for policy in known
                if folded(policy.role) == role
            }
            if self._raw:
                # Tables only: a view or a macro may look into the schema with the secret and the users.
                held = {folded(name): Policy(name, "public", method=RAW) for name in self._tables()}
            if self.unchanging:
                held = {name: self._with_facts(policy) for name, policy in held.items()}
            self._policies = (version, held, known)
        return self._policies[1]

    def _check_macros(self) -> None:
        """Refuse to ask with functions that a macro runs in place of, and with macros that are not ours.

        Call it with the connection held.

        Raises:
            Refused: there is one.
        """
        macros = macros_of(self.con)
        if macros.shadowing:
            drop = f"DROP MACRO {identifier(macros.shadowing[0])}"
            raise Refused("SDC060", f"a macro has the name of a function of DuckDB, {drop}")
        if not self._raw and not macros.are_ours():
            raise Refused("SDC060", NOT_OURS)

    def _with_facts(self, policy: Policy) -> Policy:
        """A policy that knows which measures are never NULL or zero: what is asked of records need not provide for it.

        DuckDB keeps this of every column of a table; where it does not know, nothing is said.
        """
        table, measures = identifier(policy.name), list(policy.measures)
        if policy.privacy.holds or policy.sequence.holds:  # what a question costs would be up to one record
            return policy
        if not measures or table not in self._unchanging_sources:
            return policy
        try:
            found = statistics_of(self.con, table, measures)
        except duckdb.BinderException:
            return policy  # a measure was removed: that is for questions about this table to find out
        return replace(
            policy,
            without_null=frozenset(measure for measure, text in found.items() if never_null(text)),
            without_zero=frozenset(measure for measure, text in found.items() if never_zero(text)),
        )

    def database(self) -> str:
        """The name of the database, as it was when the last question came; with the connection held."""
        if self._declared is None:
            self._declared = catalog.declared(self.con)
        return self._declared.database

    def tables_among(self, policies: Sequence[Policy]) -> frozenset[str]:
        """The lower-case names of those of relations that are no views; with the connection held.

        Raises:
            Refused: there is no such table any more.
        """
        return frozenset(folded(policy.name) for policy in policies if self._is_table(policy.name))

    def _is_table(self, name: str) -> bool:
        return folded(name) in self._tables_here() if self.unchanging else self.relations.columns(name).is_table

    def is_collated(self) -> bool:
        """Whether texts that differ may be one for DuckDB, somewhere; with the connection held."""
        if self._collated is None or not self.unchanging:
            self._collated = any(collated for _, _, _, collated in self.con.execute(_ALL_TABLES).fetchall())
        return self._collated

    def _tables_here(self) -> frozenset[str]:
        """The lower-case names of what is no view; with the connection held."""
        if self._tables_now is None or not self.unchanging:
            self._tables_now = frozenset(folded(name) for name in self._tables())
        return self._tables_now

    def _tables(self) -> list[str]:
        """The tables of the schema in which custodians have theirs."""
        return [name for name, _ in self.con.execute(_TABLES_HERE).fetchall()]

    def check_names(
        self, asked: Collection[str], schemas: Sequence[RelationSchema] = (), *, joined: bool = False
    ) -> None:
        """Refuse a table that had another name when it was seen first: it may have taken the place of what is public.

        DuckDB numbers its tables, and a table keeps its number when it is renamed. Its first name may be one that no
        analyst knows, and so may that of a table that a view reads.

        Args:
            schemas: of relations, some of which are views, that show whatever has the names that they read. That may be
                what was public under another name.
            joined: whether it is to be known for `check_unique` where texts are collated.

        Raises:
            Refused: it had.
        """
        if self.unchanging:
            return
        if joined:
            rows = self._limited.rows(_ALL_TABLES)
            found = [(name, number) for name, number, is_here, _ in rows if is_here]
            self._collated = any(collated for _, _, _, collated in rows)
        else:
            found = self._limited.rows(_TABLES_HERE)
        self._tables_now = frozenset(folded(name) for name, _ in found)
        with self.alone:
            told = {name: one.name for one in schemas if one.reads is not None for name in self._home(one.reads)}
        told |= {folded(name): name for name in (*asked, *(relation.name for relation in schemas))}
        open_names = {name for name, policy in self._policies[1].items() if policy.label == "public"}
        for name, number in found:
            first = self._first_names.setdefault(number, name)
            if folded(name) in told and folded(first) != folded(name):
                asked_for = told[folded(name)]
                if folded(asked_for) == folded(name):
                    raise Refused("SDC060", f"{asked_for}: another table has this name now; make the guard anew")
                if folded(first) not in open_names:
                    other = f"{asked_for}: what it reads was another table's name; make the guard anew"
                    raise Refused("SDC060", other)

    def columns(self, policy: Policy) -> Columns:
        """The columns that analysts see of a table; with the connection held."""
        known = self._columns.get(policy.name)
        if known is None:
            described = self.described(policy)
            known = Columns(
                {folded(name): _type(without_labels(kind)) for name, kind in described.items()},
                {folded(name): name for name in described},
            )
            if self.unchanging:
                self._columns[policy.name] = known
        return known

    def lengths(self, policy: Policy, columns: Columns) -> dict[str, float]:
        """The bytes of the longest texts in the columns of a public table, 0 in others; with the connection held.

        DuckDB keeps them of every column. Of records, and of views, which would be worked out, nothing is asked.
        """
        texts = [columns.spelled[name] for name, kind in columns.types.items() if kind.this in _TEXTS]
        if policy.label != "public" or not texts or not self._is_table(policy.name):
            return {}
        known = self._lengths.get(policy.name)
        if known is None:
            found = longest_of(self.con, identifier(policy.name), texts)
            known = dict.fromkeys(columns.types, 0.0) | {folded(name): length for name, length in found.items()}
            if self.unchanging:
                self._lengths[policy.name] = known
        return known

    def rows_of(self, policies: Mapping[str, Policy]) -> Callable[[str], float | None]:
        """How many rows a public table has, infinitely many a public view; None: it is neither.

        Call what it answers with the connection held. DuckDB knows it of tables; a view would be worked out.
        """

        def number(name: str) -> float | None:
            policy = policies.get(name)
            if policy is None or policy.label != "public":
                return None
            found = self.con.execute(
                f"SELECT table_name, estimated_size FROM duckdb_tables() WHERE {_IS_HERE}"
            ).fetchall()
            return next((float(size) for table, size in found if folded(table) == name), inf)

        return number

    def described(self, policy: Policy) -> dict[str, str]:
        """The same columns as they are spelled in the table, with DuckDB's names of their types.

        Raises:
            Refused: there is no such table any more.
        """
        if not policy.is_whole:
            raise Refused("SDC060", f"{policy.name}: parts of its policy were removed, sdc_protect")
        described = self.relations.columns(policy.name).columns
        names = [name for name, _ in described]
        self._check_public(policy, names)
        if self._declared is None:
            self._declared = catalog.declared(self.con)
        if policy.label == "unit-level" and not self._declared.has_its_columns(policy, names):
            raise Refused("SDC060", f"{policy.name}: columns were renamed or removed, sdc_protect")
        self._check_definition(policy)
        visible = {folded(column) for column in (*policy.dimensions, *policy.measures, *policy.identifiers)}
        return {name: kind for name, kind in described if policy.label == "public" or folded(name) in visible}

    def _check_definition(self, policy: Policy) -> None:
        """Refuse a view that was replaced, or of which a view or macro was that it names: it may show anything now.

        Raises:
            Refused: it was.
        """
        asked = (policy.name, policy.role)
        if policy.label != "unit-level" or asked in self._as_defined:
            return
        assert self._declared is not None
        declared = self._declared.definition(policy)
        if declared is not None:
            reads = self.relations.of(policy.name).reads
            if not mean_the_same(self.con, declared, () if reads is None else reads.definition):
                changed = "the view, or a view or macro that it is made of, was replaced, sdc_protect"
                raise Refused("SDC060", f"{policy.name}: {changed}")
        if self.unchanging:
            self._as_defined.add(asked)

    def _check_renamed(self, policy: Policy, columns: Sequence[str]) -> None:
        """Refuse a public table that has all columns of a protected one which is not what it was any more.

        Or its record keys: behind a protected view columns may have other names.

        Raises:
            Refused: the records were renamed, or two tables have changed names.
        """
        have = set(map(folded, columns))
        for other in self._policies[2]:
            if other.label != "unit-level" or folded(other.name) == folded(policy.name):
                continue
            keys = set(map(folded, other.record_keys))
            needed = keys | set(map(folded, (*other.identifiers, *other.dimensions, *other.measures)))
            if not needed <= have and not keys & have:
                continue
            try:
                described = self.relations.columns(other.name).columns
            except Refused:
                described = ()
            if not needed <= {folded(name) for name, _ in described}:
                raise Refused("SDC060", f"{policy.name}: it has the columns of {other.name}, which has them no more")

    def _check_public(self, policy: Policy, columns: Sequence[str]) -> None:
        """Refuse a public view that was replaced by one that reads records, or one of a table protected since.

        Raises:
            Refused: it does.
        """
        if policy.label != "public" or self._raw:
            return
        if self._is_table(policy.name):
            self._check_renamed(policy, columns)
            return
        texts = self.relations.texts()  # nothing is read by what looks like a table meanwhile
        read = self.relations.of(policy.name).reads or catalog.read_by(self.con, policy.name, texts)
        behind = catalog.records_behind(self.con, policy.name, policy.role, self._policies[2], read, texts)
        if behind is not None:
            raise Refused("SDC060", f"{policy.name}: the view reads {behind}, which is not for everybody")
        for name in self._home(read) & self._tables_here():
            described = self.con.execute(f"DESCRIBE FROM main.{identifier(name)}").fetchall()
            self._check_renamed(policy, [row[0] for row in described])

    def _home(self, read: catalog.Read) -> frozenset[str]:
        """The names of tables that may have policies, of those that are read; with the connection held."""
        here = (folded(self.database()), "main")
        return frozenset(name for database, schema, name in read.tables if (folded(database), folded(schema)) == here)

    def schemas_of(self, policies: Sequence[Policy]) -> tuple[RelationSchema, ...]:
        """What the rewriting of a query depends on of relations that somebody may change; with the connection held.

        Raises:
            Refused: there is no such table any more.
        """
        return () if self.unchanging else tuple(self.relations.of(policy.name) for policy in policies)

    def preview_schemas(self, policy: Policy, sql: str) -> tuple[RelationSchema, ...]:
        """The same of what a preview is taken from; with the connection held.

        Args:
            sql: the query of it, which must be possible.

        Raises:
            Refused: the table of the preview was removed, or has other columns by now.
        """
        try:
            self.con.execute(f"SELECT * FROM ({sql}) LIMIT 0")
        except NO_TABLE:
            other = f"{policy.name}: its preview was removed or has other columns, sdc_protect"
            raise Refused("SDC060", other) from None
        shown, texts = str(policy.preview), self.relations.texts()
        if catalog.records_behind(self.con, shown, policy.role, self._policies[2], texts=texts, drawn=True) is not None:
            raise Refused("SDC060", f"{policy.name}: its preview shows records, sdc_protect")
        return () if self.unchanging else (self.relations.of(shown),)

    def have(self, schemas: Sequence[RelationSchema]) -> bool:
        """Whether relations still look as they did."""
        if not schemas:
            return True
        with self.alone:
            return self.relations.unchanged(schemas)

    def have_column(self, policies: Sequence[Policy], names: frozenset[str]) -> bool:
        """Whether a relation has a column that is called so, visible or not; with the connection held."""
        schemas = [self.relations.columns(policy.name) for policy in policies]
        return any(folded(name) in names for relation in schemas for name, _ in relation.columns)

    def names_and_numbers(self, sql: str) -> tuple[list[str], list[int]]:
        """The columns of a query that the guard made, over no table, and its one row; with the connection held.

        Raises:
            Refused: DuckDB does not take it.
        """
        try:
            row = self.con.execute(sql).fetchall()[0]
        except duckdb.Error:
            raise Refused("SDC030", "COLUMNS(..)") from None
        return [column[0] for column in self.con.description or []], list(row)

    def check_facts(self, policy: Policy) -> None:
        """Refuse a table that is not as it was declared, or without what its answers are made with.

        Records are looked at again where their number changed, and those of files whenever a guard sees them first.

        Raises:
            Refused: a record without a unit or a proper key, or a second one of a unit where there was one each; a
                publication of other data; a table or p-table that was removed.
        """
        asked = (policy.name, policy.role)
        if asked in self._as_declared:
            return
        name, checks = identifier(policy.name), self._checks[str(policy.method)]
        known = None if self.files.check(policy.name) else policy.records
        rows = self.value(f"SELECT count(*) FROM {name}", GONE.format(policy.name))
        if rows != self._rows.get(asked, known):
            with self.alone:
                self._check_macros()  # the records are judged by DuckDB's functions
                try:
                    self._check_records(policy)
                except _FAILS:  # which tells of a record
                    raise Refused("SDC060", _FAILING.format(policy.name)) from None
            checks.of_records(self, policy, rows)
            self.files.check(policy.name)  # these are what was looked at
            self._rows[asked] = rows
            self._one_noise.forget(policy.name)
        checks.each_time(self, policy)
        if name in self._unchanging_sources and checks.is_settled(policy):
            self._as_declared.add(asked)

    def is_settled(self, policy: Policy) -> bool:
        """Whether the records of a policy were looked at, and cannot change any more."""
        return (policy.name, policy.role) in self._as_declared

    def stamp(self, policy: Policy) -> object:
        """Another one when what the noise of a policy is made of is another, as `check_facts` found it last."""
        return self._checks[str(policy.method)].stamp(policy)

    def check_preview(self, policy: Policy) -> None:
        """Refuse a preview with other rows than when it was declared: somebody may have put records into it.

        Raises:
            Refused: it has, or nobody knows what it had.
        """
        other = f"{policy.name}: its preview has other rows than it was declared with, sdc_protect"
        asked = (policy.name, policy.role)
        if asked in self._previews:
            return
        now = self.value(catalog.preview_digest(policy), other)
        with self.alone:
            declared = catalog.declared_preview(self.con, policy)
        if now != declared:
            raise Refused("SDC060", other)
        if identifier(str(policy.preview)) in self._unchanging_sources:
            self._previews.add(asked)

    def check_one_noise(self, policies: Sequence[Policy]) -> None:
        """Refuse relations whose records the same people see with other noise; after `check_names` and `check_facts`.

        Raises:
            Refused: they do, or a view of them fails.
        """
        with self.alone:
            tables = self._tables_here() if self.unchanging or self._tables_now is None else self._tables_now
            try:
                self._one_noise.check(policies, self._policies[1], self._policies[0], tables)
            except _FAILS:
                raise Refused("SDC060", _FAILING.format(policies[0].name)) from None

    def _check_records(self, policy: Policy) -> None:
        """Refuse what `sdc_protect` would refuse of records that came to a table; with the connection held.

        Raises:
            Refused: a record without a unit, a proper key or what belongs to one, keys that are no random numbers, a
                second record of a unit where there was one each, a view that fails for some rows.
        """
        name = identifier(policy.name)
        if catalog.is_view(self.con, policy.name):
            shown = [*policy.dimensions, *policy.measures]
            if catalog.failing_columns(self.con, name, shown):
                raise Refused("SDC060", _FAILING.format(policy.name))
        ptable = policy.ptable if METHODS[str(policy.method)].uses_ptables else None
        for kind in policy.kinds or (catalog.Kind(str(policy.unit), policy.record_key, policy.min_units),):
            facts = catalog.policy_facts(self.con, name, kind.unit, kind.record_key)
            broken = facts.no_unit or facts.no_key or facts.several_keys
            broken = broken or catalog.misses(self.con, name, policy.never_missing)
            if broken or (policy.one_row_per_unit and facts.rows > facts.units):
                raise Refused("SDC060", policy.name)
            key = kind.record_key
            if key is not None and not catalog.keys_are_spread(self.con, name, kind.unit, key, ptable):
                raise Refused("SDC060", f"{policy.name}: its record keys are no random numbers, sdc_add_record_key")

    def is_unchanging(self, query: str) -> bool:
        """Whether a query has the same answer tomorrow, of a database that nobody changes.

        It reads tables of this database, and neither it nor any view has a word that may be a function of the time, of
        chance or of anything else outside.
        """
        with self.alone:
            read = self.con.get_table_names(query, qualified=True)
            views = self.con.execute("SELECT sql FROM duckdb_views() WHERE NOT internal").fetchall()
            functions = self.con.execute(
                "SELECT DISTINCT lower(function_name) FROM duckdb_functions() "
                "WHERE stability IS DISTINCT FROM 'CONSISTENT'"
            ).fetchall()
        words = set(_WORD.findall(folded(" ".join([query, *(sql for (sql,) in views)]))))
        changing = {function for (function,) in functions} | WORDS_OF_TIME
        return {identifier(table) for table in read} <= self._unchanging_sources and not words & changing

    def value(self, sql: str, otherwise: str) -> Any:
        """The first value of a query over what a policy needs.

        Raises:
            Refused: what it needs is not there, or is not what it was; or it took too long, or failed.
        """
        try:
            return self._limited.value(sql)
        except Refused as refused:
            if refused.detail in _NOT_AS_DECLARED:
                raise Refused("SDC060", otherwise) from None
            raise

    def _is_collated(self) -> bool:
        """Whether texts that differ may be one for DuckDB, in some column or wherever it compares.

        Of a database that changes `check_names` looks it up for each question in which something is joined.
        """
        if self._collated is None:
            self._collated = any(collated for _, _, _, collated in self._limited.rows(_ALL_TABLES))
        return self._collated

    def check_unique(self, asked: Unique) -> None:
        """Refuse to join a relation with columns that do not identify its rows.

        Raises:
            Refused: two rows have the same values, or intervals that overlap.
        """
        if asked in self._as_declared:
            return
        # By a collation, which is part of a column that they may be joined to, 'n' and 'N' are one.
        written = "lower(strip_accents(CAST({} AS VARCHAR)))" if self._is_collated() else "{}"
        in_groups = asked.in_groups(written)
        if not (in_groups is not None and self._limited.value(in_groups)) and not self._limited.value(
            asked.query(written)
        ):
            named = ", ".join(name for name, _ in asked.columns)
            if asked.interval is None:
                raise Refused(
                    "SDC034", f"several rows for a value of {named}; narrow it in a subquery, or join all of a key"
                )
            beside = f" with the same {named}" if named else ""
            raise Refused("SDC034", f"intervals{beside} that overlap, so that a value may be in two of them")
        if asked.source in self._unchanging_sources:
            self._as_declared.add(asked)


_FAILING = "{}: the view fails for some of its rows, sdc_protect"
_FAILS = (
    duckdb.BinderException, duckdb.CatalogException, duckdb.ConversionException, duckdb.InvalidInputException,
    duckdb.OutOfRangeException,
)  # fmt: skip
"""What DuckDB raises for what a view or a record has, with the value."""
_NOT_AS_DECLARED = (
    "CatalogException", "BinderException", "ConversionException", "InvalidInputException", "OutOfRangeException",
)  # fmt: skip
"""What DuckDB raises where a table or a column is gone, or has values that a publication's SELECT does not take."""

_WORD = re.compile(r"\w+")

_TEXTS = exp.DataType.TEXT_TYPES | {exp.DataType.Type.VARBINARY, exp.DataType.Type.BLOB}

_IS_HERE = "database_name = current_database() AND schema_name = 'main' AND NOT temporary"
_TABLES_HERE = f"SELECT table_name, table_oid FROM duckdb_tables() WHERE {_IS_HERE}"
_ALL_TABLES = f"""SELECT table_name, table_oid, {_IS_HERE},
    coalesce(contains(lower(sql), 'collate'), false) OR current_setting('default_collation') <> ''
FROM duckdb_tables()"""
"""Name and number of each table, whether it is one of those that custodians have, and whether texts are collated."""


@lru_cache(1000)
def _type(name: str) -> exp.DataType:
    """A type by its name in DuckDB; the unknown type for names that sqlglot cannot read."""
    try:
        return exp.DataType.build(name, dialect="duckdb", udt=True)
    except SqlglotError:
        return exp.DataType(this=exp.DataType.Type.UNKNOWN)
