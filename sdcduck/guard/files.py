"""The files that views read: a guard answers about those that it has looked at, and about no others."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import duckdb

from sdcduck import catalog
from sdcduck.catalog import READ_NOTHING_ELSE, Read
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relation_schemas import RelationSchemas
from sdcduck.guard.running import Limited
from sdcduck.quoting import folded, literal

Stamp = frozenset[tuple[str, int, int, int, int, int]]


class Files:
    """Notes the files behind each relation when it is asked about first, and refuses to answer when they have changed.

    Of a file these are its place on the disk, its size, and when it was written and changed last: nothing is read.

    Args:
        con: the guard's own connection.
        alone: held while it is used.
        limited: asks; not while `alone` is held.
        relations: what views read.
        unchanging: nobody can change the database, nor a file that it reads. Where it is not read-only, views may be
            replaced, and whoever does that may do all else: there nothing is noted.
    """

    def __init__(
        self, con: duckdb.DuckDBPyConnection, alone: threading.Lock, limited: Limited, relations: RelationSchemas,
        *, unchanging: bool,
    ) -> None:  # fmt: skip
        self._con, self._alone, self._limited, self._relations = con, alone, limited, relations
        self._patterns: dict[str, frozenset[str]] = {}
        self._noted: dict[str, Stamp] = {}
        self._are_read = not unchanging and catalog.is_read_only(con)

    def check(self, name: str) -> bool:
        """Whether a relation stands on files.

        Raises:
            Refused: these are others than when it was asked about first, or nobody knows which they are.
        """
        if not self._are_read:
            return False
        patterns = self._patterns.get(name)
        if patterns is None:
            with self._alone:
                patterns = self._patterns[name] = self._read_by(name)
        if not patterns:
            return False
        stamp = frozenset(file for pattern in patterns for file in self._matching(pattern))
        if self._noted.setdefault(name, stamp) != stamp:
            raise Refused("SDC060", _CHANGED.format(name))
        return True

    def _read_by(self, name: str) -> frozenset[str]:
        relation = self._relations.of(name)
        if relation.is_table or relation.reads is None or _reads_tables_alone(relation.reads):
            return frozenset()
        named = frozenset(_named_in(self._con, relation.reads))
        if None in named:
            raise Refused("SDC060", _NOT_NAMED.format(name))
        return frozenset(pattern for pattern in named if pattern is not None)

    def _matching(self, pattern: str) -> Iterator[tuple[str, int, int, int, int, int]]:
        """The files as DuckDB finds them, those of a folder too."""
        asked = f"{pattern.rstrip('/')}/**" if os.path.isdir(pattern) else pattern
        for (file,) in self._limited.rows(f"SELECT file FROM glob({literal(asked)})"):
            try:
                found = os.stat(file)
            except OSError:
                yield file, 0, 0, 0, 0, 0
            else:
                yield file, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _reads_tables_alone(read: Read) -> bool:
    return bool(read.tables) and not read.functions and not read.files


def _named_in(con: duckdb.DuckDBPyConnection, read: Read) -> Iterator[str | None]:
    """The names of files in a view, and in the views and macros that it is made of; None: one is worked out."""
    macros = {folded(name) for name, _, _ in read.definition}
    if not macros:
        yield None
    for _, _, text in read.definition:
        row = con.execute("SELECT json_serialize_sql(?)", [text]).fetchone()
        tree = {"error": True} if row is None else json.loads(row[0])
        if tree.get("error"):
            yield None
        for node in _nodes(tree):
            if node.get("type") == "BASE_TABLE" and {".", "/"} & set(str(node.get("table_name"))):
                yield str(node["table_name"])
            elif node.get("type") == "TABLE_FUNCTION":
                called = node["function"]
                function = folded(str(called.get("function_name")))
                if function in _OF_FILES:
                    yield from _constants(_arguments(called)[:1])
                elif function not in macros | _OF_VALUES:
                    yield None


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _arguments(call: dict[str, Any]) -> list[dict[str, Any]]:
    """Of a call, as DuckDB 2 and 1 write them."""
    if "arguments" in call:
        return [argument["expression"] for argument in call["arguments"]]
    return list(call.get("children", ()))


def _constants(arguments: list[dict[str, Any]]) -> Iterator[str | None]:
    """The texts that arguments are, alone or in a list; None: something else."""
    for argument in arguments:
        constant = argument.get("literal", argument.get("value"))
        text = constant.get("text", constant.get("value")) if isinstance(constant, dict) else None
        if argument.get("type") == "VALUE_CONSTANT":
            yield text if isinstance(text, str) else None
        elif argument.get("type") == "FUNCTION" and argument.get("function_name") == "list_value":
            yield from _constants(_arguments(argument))
        else:
            yield None


_OF_VALUES = frozenset(["range", "generate_series", "repeat", "repeat_row", "unnest", "json_each", "json_tree"])
_OF_FILES = READ_NOTHING_ELSE - _OF_VALUES - {"query", "query_table"}

_CHANGED = (
    "{}: the files that it reads are not those that were looked at: a new release of the data; open the guard anew, "
    "which looks at them"
)
_NOT_NAMED = "{}: a view of files whose names are worked out: write them as texts, read_parquet(['a.parquet', ..])"
