"""A question on its way from an analyst's text to the one that runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import duckdb
from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.passes.reading import Reading
from sdcduck.guard.passes.spelling import Spelling
from sdcduck.guard.protect.protection import Protection
from sdcduck.guard.relation_schemas import RelationSchema
from sdcduck.guard.rewritten import Counted, Origin, Release, Rewritten
from sdcduck.guard.schema import Columns, Schema
from sdcduck.quoting import folded

TableName = tuple[str, str, str]
"""Database, schema and name; the first two are empty for what is made in the query."""


_LONGEST_CONSTANT = 1000  # characters
_BLOCK = re.compile(r'"_sdc_[0-9a-f]{24}"')


@dataclass(frozen=True)
class Written:
    """The text of a query.

    Attributes:
        outer: the query over released numbers, in which tables stand for the blocks.
        grouped: the queries over records, which group them, and those for the groups that there may be.
        sql: all of it, with a relation without rows where noise is drawn first.
        releases: what it is drawn for.
        beside: further queries in which blocks stand.
    """

    outer: str
    grouped: tuple[str, ...]
    sql: str
    releases: tuple[Release, ...] = ()
    beside: tuple[str, ...] = ()


class Start(Protocol):
    """Where questions start: some need what becomes of another one."""

    def rewrite(self, query: str, policies: Mapping[str, Policy], *, probes: bool, again: bool = False) -> Rewritten:
        """What becomes of a question."""

    def without_probes(self, query: str, policies: Mapping[str, Policy]) -> Rewritten | None:
        """What becomes of a question that may ask for its columns alone; None: it is not answered."""

    def types(self, rewritten: Rewritten | None) -> list[str]:
        """The DuckDB types of the columns of an answer; none where they are not known."""


@dataclass
class Draft:
    """What the passes hand on to each other; each sets what those behind it read.

    Attributes:
        query: the text.
        policies: those that hold, by folded name.
        con: DuckDB, whose parser has the last word; held.
        schema: what is known of the database.
        start: for what becomes of other questions.
        probes: whether a question for the columns alone is answered without its tables.
        again: the text was written by sqlglot already.
        asked: the text as it came.
        reading: what DuckDB's parser makes of it.
        tree: what sqlglot makes of it.
        plain: the text that sqlglot writes for its tree.
        subscripts: whether there are any, which are to be written in one form.
        named: the policies of the tables that are named.
        schemas: of these tables.
        described: their columns, by folded name.
        types: of these columns.
        names: of the answer's columns; none before `name_outputs`, or where they are not known yet.
        spelling: how names were spelled.
        rows: that may leave at once; None: as many as of any query.
        protection: what was protected, and how.
        lineage: what each column of the answer is made of.
        columns_now: what the columns of the tree are called.
        grouped: whether the rows of the answer are groups of units, or some of them.
        constant: whether the answer stands in the question.
        relations: that may be read.
        text: what runs, in its parts.
        releases: what noise is drawn for.
        sets: the queries for what is counted, where the sequence of answers is limited.
        words: of time, which must not be the name of a column.
        sql: what runs.
        answer: the end; no further pass is needed.
        sampled: whether some rows are drawn from others.
    """

    query: str
    policies: Mapping[str, Policy]
    con: duckdb.DuckDBPyConnection
    schema: Schema
    start: Start
    probes: bool
    again: bool
    asked: str = field(init=False)
    reading: Reading = field(init=False)
    tree: exp.Expr = field(init=False)
    plain: str = field(init=False)
    subscripts: bool = field(init=False)
    named: list[Policy] = field(init=False)
    schemas: tuple[RelationSchema, ...] = field(init=False)
    described: dict[str, Columns] = field(init=False)
    types: dict[str, dict[str, exp.DataType]] = field(init=False)
    said: list[str] | None = field(init=False)
    names: list[str] = field(init=False)
    spelling: Spelling = field(init=False)
    rows: int | None = field(init=False)
    protection: Protection = field(init=False)
    lineage: tuple[Origin, ...] = field(init=False)
    columns_now: list[str] | None = field(init=False)
    grouped: bool = field(init=False)
    constant: bool = field(init=False)
    relations: set[TableName] = field(init=False)
    text: Written = field(init=False)
    words: frozenset[str] = field(init=False)
    sql: str = field(init=False)
    answer: Rewritten | None = None
    sampled: bool = False
    sets: tuple[Counted, ...] = ()
    releases: tuple[Release, ...] = ()

    def __post_init__(self) -> None:
        self.asked = self.query

    def shown(self) -> str:
        """The query as it is now."""
        if self.answer is not None:
            return self.answer.sql
        if hasattr(self, "sql"):
            return self.sql
        if hasattr(self, "text"):
            return self.text.sql
        return _BLOCK.sub('"a block"', self.tree.sql("duckdb")) if hasattr(self, "tree") else self.query

    def look_up_tables(self) -> None:
        """Find out what columns the tables have that are named by now."""
        asked = {folded(table.name) for table in self.tree.find_all(exp.Table)}
        self.named = [self.policies[name] for name in sorted(asked & set(self.policies))]
        self.schemas = self.schema.schemas_of(self.named)
        self.described = {folded(policy.name): self.schema.columns(policy) for policy in self.named}
        self.types = {name: columns.types for name, columns in self.described.items()}

    def rewritten(self) -> Rewritten:
        """The query that may run, with what it depends on."""
        made = self.protection.progress
        return Rewritten(
            self.sql,
            tuple(made.notes),
            tuple(made.unique),
            tuple(policy.name for policy in self.named),
            tuple(sorted({policy.method for policy in self.named if policy.method is not None})),
            tuple(policy for policy in self.named if policy.label == "unit-level"),
            columns=self.lineage,
            grouped=self.grouped,
            constant=self.constant and len(self.sql) <= _LONGEST_CONSTANT,
            schemas=self.schemas,
            rows=self.rows,
            sets=self.sets,
            releases=self.releases,
        )

    def visible(self) -> dict[str, frozenset[str]]:
        """The columns that analysts see, by table."""
        return {name: frozenset(columns) for name, columns in self.types.items()}
