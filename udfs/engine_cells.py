"""Publications of records on another engine: it adds up cells and contributions, and all else is worked out here.

What groups and conditions are made of are columns as they are, the same for all records of a row that comes from there;
so DuckDB works out each expression of the publication over these rows, as it would over the records. Sums are exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import duckdb
import pyarrow as pa

from sdcduck.catalog.database import HIDDEN, attach_hidden
from sdcduck.catalog.engines import Engine, duckdb_columns, marked_tables, stand_ins
from sdcduck.errors import SDCError
from sdcduck.quoting import folded, identifier, literal

_Node = dict[str, Any]
Asked = tuple[str, list[tuple[str, str]], list[str]]
"""A query in DuckDB's words, names and types of what it answers, and SQL of more columns made of these."""
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
GROUPED = (*_WHOLE, "DECIMAL", "VARCHAR", "DATE", "BOOLEAN")
"""Types whose values engines tell apart as DuckDB does."""
_NUMBER = re.compile(r"0|-?[1-9]\d*")
_OF_ENGINES: WeakKeyDictionary[Engine, dict[str, int]] = WeakKeyDictionary()
"""Engines of which it was seen that they answer as DuckDB does, with the tables of their rows: how many each has, those
that were asked for last at the end."""
_MOST_ROWS = 10_000_000
_LAST = 32  # tables that one statement may read, however large


@dataclass(frozen=True)
class Counted:
    """A measure of a publication over rows of an engine.

    Attributes:
        of: the column that it counts or sums; None: records.
        by: the column with how many records of a row have a value.
    """

    of: str | None
    by: str


@dataclass(frozen=True)
class Groups:
    """The records of a publication, as rows of an engine.

    Attributes:
        engine: that has them.
        table: its name there.
        types: of its columns.
        by: the columns that tell rows apart.
        summed: the columns that are summed.
        counted: those of which it counts the values.
        measures: of the publication, in order.
        rows: the table here that has them; sums are under the names of the columns, records are `_sdc_n`.
        joined: whether other tables are joined to them.
        contributed: SQL as of the records of a publication, of each table of `contributions`.
    """

    engine: Engine
    table: str
    types: dict[str, str]
    by: tuple[str, ...]
    summed: tuple[str, ...]
    counted: tuple[str, ...]
    measures: tuple[Counted, ...]
    rows: str = ""
    joined: bool = False
    contributed: tuple[str, ...] = ()

    def _query(self, more: Sequence[str] = ()) -> str:
        table = identifier(self.table)
        items = [*map(identifier, self.by), "count(*)", *map(self._total, self.summed)]
        items += [f"count({identifier(name)})" for name in self.counted]
        groups = ", ".join(map(identifier, self.by))
        grouped = f"GROUP BY {groups} " if groups else ""
        return f"SELECT {_listed([*items, *more])} FROM {table} {grouped}HAVING count(*) > 0"

    def _total(self, name: str) -> str:
        return f"sum(CAST({identifier(name)} AS DECIMAL(38, {scale_of(self.types[name])})))"

    def _columns(self) -> list[tuple[str, str]]:
        """Names and types of what `_query` answers."""
        summed = [(name, self.type_of_sum(name)) for name in self.summed]
        counted = [(f"_sdc_n{place}", "BIGINT") for place in range(len(self.counted))]
        return [*((name, self.types[name]) for name in self.by), ("_sdc_n", "BIGINT"), *summed, *counted]

    def _there(self) -> list[str]:
        """SQL of columns that are counted only: whether any record has a value."""
        places = enumerate(self.counted)
        return [f"nullif(_sdc_n{place}, 0) AS {identifier(name)}" for place, name in places if name not in self.summed]

    def type_of_sum(self, name: str) -> str:
        """The DuckDB type of the sums of a column."""
        kind = self.types[name]
        return f"DECIMAL(38,{scale_of(kind)})" if kind.startswith("DECIMAL") else "HUGEINT"

    def read(self, cursor: duckdb.DuckDBPyConnection) -> Groups:
        """These, with the rows that the engine has now.

        Raises:
            SDCError: it fails, or answers otherwise than DuckDB; without what it says, which may have data.
        """
        (rows,) = kept(cursor, self.engine, [(self._query(), self._columns(), self._there())])
        return replace(self, rows=rows)

    def contributions(
        self, cursor: duckdb.DuckDBPyConnection, value: str | None, contributor: str | None, apart: Sequence[str],
        depth: int,
    ) -> tuple[Groups, list[str]]:  # fmt: skip
        """These anew, and what contributors have in them, all of one moment where the engine has such.

        Of those who have records in one row only, the engine gives how many there are and what they sum up to, and the
        largest ones; others come one by one, for they are added up across rows.

        Args:
            value: the column that they contribute to; None: nobody asks.
            contributor: the column that tells them apart; None: each record is another's.
            apart: contributors that come one by one in any case.
            depth: how many of the largest.

        Returns:
            The rows, with the least and the greatest contributor and how many records have one; and tables: sums, the
            largest ones, and, if there is a contributor, those that come one by one. The contribution is under the name
            of the column.
        """
        owner, owners = list[str](), list[tuple[str, str]]()
        if contributor is not None:
            who, kind = identifier(contributor), self.types[contributor]
            owner = [f"min({who})", f"max({who})", f"count({who})"]
            owners = [("_sdc_least", kind), ("_sdc_greatest", kind), ("_sdc_there", "BIGINT")]
        asked = [(self._query(owner), [*self._columns(), *owners], self._there())]
        if value is not None:
            asked += self._contributed(value, contributor, apart, depth)
        rows, *found = kept(cursor, self.engine, asked)
        return replace(self, rows=rows), found

    def _contributed(self, value: str, contributor: str | None, apart: Sequence[str], depth: int) -> list[Asked]:
        """What the engine is asked about contributions."""
        total, x, table = self.type_of_sum(value), identifier(value), identifier(self.table)
        exact = f"CAST({x} AS DECIMAL(38, {scale_of(self.types[value])}))"
        by = list(map(identifier, self.by))
        at = [(name, self.types[name]) for name in self.by]
        others = [f"NULL AS {identifier(name)}" for name in self.counted if name != value]
        listed = "".join(f"{name}, " for name in by)
        grouped = f" GROUP BY {', '.join(by)}" if by else ""
        alone = f"SELECT {listed}{exact} AS _sdc_y FROM {table} WHERE {x} IS NOT NULL"
        several = list[Asked]()
        if contributor is not None:
            who, kind = identifier(contributor), self.types[contributor]
            each = (
                f"SELECT {listed}{who} AS _sdc_who, sum({exact}) AS _sdc_y FROM {table} "
                f"WHERE {x} IS NOT NULL GROUP BY {listed}{who}"
            )
            rows = f"SELECT _sdc_e.*, count(*) OVER (PARTITION BY _sdc_who) AS _sdc_in FROM ({each}) AS _sdc_e"
            names = ", ".join(literal(name) if kind == "VARCHAR" else name for name in _of_type(apart, kind))
            one_by_one = "_sdc_in > 1 OR _sdc_who IS NULL" + (f" OR _sdc_who IN ({names})" if names else "")
            alone = f"SELECT {listed}_sdc_y FROM ({rows}) AS _sdc_c WHERE NOT ({one_by_one})"
            items = _listed([*by, "_sdc_who", "_sdc_y"])
            query = f"SELECT {items} FROM ({rows}) AS _sdc_c WHERE {one_by_one}"
            several = [(query, [*at, ("_sdc_who", kind), (value, total)], others)]
        sums = _listed([*by, "count(CASE WHEN _sdc_y <> 0 THEN 1 END)", "sum(abs(_sdc_y))"])
        within = f"PARTITION BY {', '.join(by)} " if by else ""
        ranked = (
            f"SELECT {listed}abs(_sdc_y) AS _sdc_a, row_number() OVER ({within}ORDER BY abs(_sdc_y) DESC) "
            f"AS _sdc_place FROM ({alone}) AS _sdc_l"
        )
        return [
            (
                f"SELECT {sums} FROM ({alone}) AS _sdc_l{grouped} HAVING count(*) > 0",
                [*at, ("_sdc_contributors", "BIGINT"), (value, total)],
                others,
            ),
            (
                f"SELECT {_listed([*by, '_sdc_a'])} FROM ({ranked}) AS _sdc_r WHERE _sdc_place <= {depth}",
                [*at, (value, total)],
                others,
            ),
            *several,
        ]


def kept(cursor: duckdb.DuckDBPyConnection, engine: Engine, asked: Sequence[Asked]) -> list[str]:
    """The tables here with what an engine answers to queries in DuckDB's words.

    Raises:
        SDCError: it fails, or answers otherwise than DuckDB; without what it says, which may have data.
    """
    from sdcduck.catalog.engine_self_test import check_alike  # with sqlglot

    if engine not in _OF_ENGINES:
        check_alike(engine)
        _OF_ENGINES[engine] = {}
    answers, known = _answers(engine, [query for query, _, _ in asked]), _OF_ENGINES[engine]
    names = []
    for rows, (_, columns, more) in zip(answers, asked, strict=True):
        names.append(_keep(cursor, rows, columns, more))
        known.pop(names[-1], None)
        known[names[-1]] = rows.num_rows
    for name in list(known)[:-_LAST]:
        if sum(known.values()) <= _MOST_ROWS:
            break
        known.pop(name, None)
        cursor.execute(f"DETACH DATABASE IF EXISTS {name.split('.')[0]}")
    return names


def scale_of(kind: str) -> int:
    """The decimals of a type of whole numbers or decimals."""
    return int(kind.rstrip(")").split(",")[1]) if kind.startswith("DECIMAL") else 0


def _of_type(names: Sequence[str], kind: str) -> list[str]:
    """Those of the names that a column of this type can have.

    Raises:
        SDCError: a name that engines read in other ways within quotes.
    """
    if kind != "VARCHAR":
        return [name for name in names if _NUMBER.fullmatch(name)]
    if any(set(name) & set("\"'\\") for name in names):
        raise _refused("argument 'not_counted' names contributors without quotes and backslashes")
    return list(names)


def _listed(items: Sequence[str]) -> str:
    return ", ".join(f"{item} AS c{place}" for place, item in enumerate(items))


def _answers(engine: Engine, queries: Sequence[str]) -> list[pa.Table]:
    from sqlglot import parse_one

    from sdcduck.catalog.engine_semantics import SEMANTICS

    words = SEMANTICS[engine.name]
    try:
        return engine.together([words.written(parse_one(query, read="duckdb")) for query in queries])
    except Exception as problem:  # engines have errors of their own, which may have data
        kind = type(problem).__name__
        raise SDCError(f"the engine that has the records refused, or is not there ({kind})") from None


def _keep(
    cursor: duckdb.DuckDBPyConnection, rows: pa.Table, columns: Sequence[tuple[str, str]], more: Sequence[str]
) -> str:
    """A table of rows where every connection of this process sees it, by a name that others do not have.

    The same rows have the same table: a statement may be bound several times.
    """
    items = [f"CAST(c{place} AS {kind}) AS {identifier(name)}" for place, (name, kind) in enumerate(columns)]
    made = f"SELECT {', '.join(['*', *more])} FROM (SELECT {', '.join(items)} FROM _sdc_answer)"
    cursor.register("_sdc_answer", rows)
    try:
        cursor.execute(f"CREATE OR REPLACE TEMP TABLE _sdc_kept AS {made}")
    finally:
        cursor.unregister("_sdc_answer")
    names = ", ".join(identifier(name) for name, _ in columns)
    kinds = " ".join([*(kind for _, kind in columns), *more])
    counted = f"SELECT count(*), sum(hash({names})), hash(?::VARCHAR) FROM temp._sdc_kept"
    rows_, hashes, of_columns = cursor.execute(counted, [names + kinds]).fetchall()[0]
    # A statement does not see what is made in a database that it has begun to read: each table has one of its own.
    home = f"{HIDDEN}_rows_{of_columns}_{rows_}_{hashes or 0}"
    attach_hidden(cursor, home)
    cursor.execute(f"CREATE TABLE IF NOT EXISTS {home}.main.kept AS FROM temp._sdc_kept")
    cursor.execute("DROP TABLE temp._sdc_kept")
    return f"{home}.main.kept"


def groups_of(
    cursor: duckdb.DuckDBPyConnection, engine: Engine | None, node: _Node,
    measures: Sequence[tuple[str, _Node | None]], text: Callable[[_Node], str],
) -> Groups | None:  # fmt: skip
    """What a publication needs of an engine that has its records; None: it reads none of those.

    Args:
        node: the SELECT, as DuckDB reads it.
        measures: the name of each function, and its argument.
        text: writes a SELECT.

    Raises:
        SDCError: there is no engine, or it is not known that the numbers are those that DuckDB would give.
    """
    if not stand_ins(cursor):
        return None
    marked = _marked(cursor, node, text)
    if not marked:
        return None
    if engine is None:
        raise SDCError(
            f"the records of {marked[0]!r} are on another engine: open this file with sdcduck.connect(.., records=..)"
        )
    base = _first(node["from_table"])
    table = next((name for name in marked if base is not None and folded(base["table_name"]) == folded(name)), None)
    if base is None or table is None:
        raise _refused("FROM begins with the table, and others are joined to it by JOIN or LEFT JOIN")
    types = duckdb_columns(engine.schema(table))
    spelled = {folded(name): name for name in types}
    alias = folded(base["alias"] or base["table_name"])

    def own(names: Sequence[str]) -> str | None:
        is_own = len(names) == 1 or folded(names[-2]) == alias
        return spelled.get(folded(names[-1])) if is_own else None

    bare = [
        own(argument["column_names"]) if argument is not None and argument["class"] == "COLUMN_REF" else None
        for _, argument in measures
    ]
    skipped = {id(argument) for (_, argument), name in zip(measures, bare, strict=True) if name is not None}
    by = tuple(dict.fromkeys(filter(None, map(own, _names(node, skipped)))))
    for column in by:
        if not types[column].startswith(GROUPED):
            raise _refused(f"no group and no condition is made of a column of type {types[column]}: '{column}'")
    summed, counted, found = list[str](), list[str](), list[Counted]()
    for (function, argument), name in zip(measures, bare, strict=True):
        if function == "sum" and (name is None or name in by or not types[name].startswith((*_WHOLE, "DECIMAL"))):
            raise _refused(
                "sums are of columns of whole numbers or DECIMAL as they are, of which no group and no condition is "
                "made; those of DOUBLE depend on the order in which they are added up"
            )
        if function == "sum" and name is not None and name not in summed:
            summed.append(name)
        if name is None or name in by:
            found.append(Counted(None if argument is None else name, "_sdc_n"))
            continue
        if name not in counted:
            counted.append(name)
        found.append(Counted(name, f"_sdc_n{counted.index(name)}"))
    is_joined = base is not node["from_table"]
    return Groups(engine, table, types, by, tuple(summed), tuple(counted), tuple(found), joined=is_joined)


def reading_rows(node: _Node, groups: Groups) -> _Node:
    """The SELECT with those rows in place of the records."""
    made = deepcopy(node)
    base = _first(made["from_table"])
    assert base is not None
    catalog, schema, name = groups.rows.split(".")
    base.update(alias=base["alias"] or base["table_name"], catalog_name=catalog, schema_name=schema, table_name=name)
    if "qualified_name" in base:
        base["qualified_name"] = {"path": [catalog, schema, name]}
    return made


def check_reads_rows(cursor: duckdb.DuckDBPyConnection, node: _Node, text: Callable[[_Node], str]) -> None:
    """That nothing but the table after FROM has records on the engine.

    Raises:
        SDCError: a view, a subquery or another table has.
    """
    if _marked(cursor, node, text):
        raise _refused("the table is named once, after FROM, and by no view and no subquery")


def _marked(cursor: duckdb.DuckDBPyConnection, node: _Node, text: Callable[[_Node], str]) -> list[str]:
    """The tables with records on an engine that a SELECT reads."""
    try:
        return marked_tables(cursor, text(node))
    except duckdb.Error:
        raise _refused("DuckDB tells the tables that it reads") from None


def _refused(what: str) -> SDCError:
    return SDCError(f"a publication of records on another engine: {what} (docs/engines.md)")


def _first(table: _Node | None) -> _Node | None:
    """The first table after FROM, where others are joined to it."""
    while table is not None and table["type"] == "JOIN":
        if table["join_type"] not in ("INNER", "LEFT") or table["ref_type"] not in ("REGULAR", "CROSS"):
            return None
        table = table["left"]
    return table if table is not None and table["type"] == "BASE_TABLE" and not table["sample"] else None


def _names(node: Any, skipped: set[int]) -> Iterator[list[str]]:
    """The names of columns in a tree, but for some of its parts."""
    if isinstance(node, list):
        for one in node:
            yield from _names(one, skipped)
    elif isinstance(node, dict) and id(node) not in skipped:
        if node.get("class") == "STAR":
            raise _refused("its columns are written out, without *")
        if node.get("class") == "COLUMN_REF":
            yield node["column_names"]
        for name in node.get("using_columns") or ():
            yield [name]
        for value in node.values():
            yield from _names(value, skipped)
