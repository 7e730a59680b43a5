"""What may occur in a query, as DuckDB's own parser reads it: lists of what is allowed; all else is refused.

sqlglot reads and rewrites the analyst's text. DuckDB's parser reads both that text and what the guard made of it, and
has the last word on what functions and table references are in them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import duckdb

from sdcduck.guard.allowed import FUNCTIONS, INSTEAD, MACROS, OF_WITH, SERIES, UNIT_FUNCTIONS, WORDS_OF_TIME, words_in
from sdcduck.guard.calls import is_plain
from sdcduck.guard.passes.draft import Draft, TableName, Written
from sdcduck.guard.passes.reading import Reading, readings
from sdcduck.guard.passes.relation_names import unknown_tables
from sdcduck.guard.refusals import Refused, near_function
from sdcduck.quoting import folded

_CLASSES = words_in(
    "COLUMN_REF CONSTANT FUNCTION COMPARISON CONJUNCTION CASE CAST OPERATOR BETWEEN WINDOW SUBQUERY STAR "
    "PARAMETER TYPE POSITIONAL_REFERENCE COLLATE"
)
_UNIT_CLASSES = words_in(
    "COLUMN_REF CONSTANT FUNCTION COMPARISON CONJUNCTION CASE CAST OPERATOR BETWEEN PARAMETER TYPE"
)
_SHAPES = words_in(
    "SELECT_NODE SET_OPERATION_NODE CTE_NODE BASE_TABLE SUBQUERY EMPTY EMPTY_FROM EXPRESSION_LIST "
    "ORDER_MODIFIER LIMIT_MODIFIER DISTINCT_MODIFIER LIMIT_PERCENT_MODIFIER ASCENDING DESCENDING "
    "ORDER_DEFAULT DEFAULT"
)
_RECURSIVE = "RECURSIVE_CTE_NODE"
_FORMS = {_RECURSIVE: "WITH RECURSIVE of or beside records, or USING KEY; FROM range(..) t(n) makes a series"}
_JOINS = frozenset(["REGULAR", "CROSS", "NATURAL", "ASOF"])
"""Where there is ASOF, `check_joins` has the last word: over records alone it is known which row is found."""


def validate(draft: Draft) -> None:
    """Refuse what is on no list.

    >>> after(validate, "SELECT read_text('/etc/passwd')")
    refused: SDC010: a function that is not on the list (read_text). Use arithmetic, text, date and CASE
    expressions, count, sum, avg.
    """
    check_query(draft.reading, pivots=True, recursive=True)


def validate_rewritten(draft: Draft) -> None:
    """Refuse what is on no list in what was written, with less of it over records.

    >>> after(validate_rewritten, "SELECT count(*) FROM people WHERE md5(region) = 'a'")
    refused: SDC010: a function that is not on the list (md5 of single records). Use arithmetic, text, date and CASE
    expressions, count, sum, avg.
    """
    protection = draft.protection
    formulas = [formula for made in protection.progress.numbers.values() for formula in made.formulas]
    draft.words = check_rewritten(
        draft.con,
        draft.text,
        over_records=protection.progress.unit_expressions,
        over_numbers=formulas,
        tables=draft.relations,
    )


def check_query(
    reading: Reading, *, macros: frozenset[str] = frozenset(), pivots: bool = False, recursive: bool = False
) -> None:
    """Refuse a query in which DuckDB's parser finds anything that is on no list.

    Args:
        macros: functions that the guard itself put into the query.
        pivots: whether there may be PIVOT, UNPIVOT, samples, and series in FROM; they do not stay.
        recursive: whether there may be WITH RECURSIVE; it is none of records.
    """
    if reading.problem:
        raise Refused("SDC004" if "SELECT" in reading.problem else "SDC001")
    if reading.statements != 1:
        raise Refused("SDC003")
    _check_items(reading.items, FUNCTIONS | macros, pivots=pivots, recursive=recursive)


def check_rewritten(
    con: duckdb.DuckDBPyConnection, text: Written, *, over_records: Sequence[str], over_numbers: Sequence[str],
    tables: Collection[TableName],
) -> frozenset[str]:  # fmt: skip
    """As `check_query`, of all parts of a text; expressions in it may hold only what is on a shorter list.

    In those over records every column is written in full. A name alone is one that sqlglot took for something else, and
    nobody asked what the column is good for.

    Args:
        over_records: expressions over single records, which may call `UNIT_FUNCTIONS`.
        over_numbers: expressions over what was called in a block, which may call `MACROS`, too. Those without anything
            of an analyst come again and again: they are read once.
        tables: that may be read.

    Returns:
        The words of time in expressions over records, which must not be the name of a column.
    """
    # One text for all of a kind: their order and number are nothing that is asked here.
    records, numbers = list(dict.fromkeys(over_records)), [one for one in over_numbers if one not in _READ]
    # Each ends on a line of its own: a comment in one would hide what comes after it.
    lists = ["SELECT (" + "\n), (".join(listed) + "\n)" for listed in (records, numbers) if listed]
    outer, *others = readings(con, text.outer, *text.grouped, *lists)
    if numbers:
        _check_expressions(others.pop(), len(numbers), FUNCTIONS | MACROS)
        if len(_READ) > _MOST_READ:
            _READ.clear()
        _READ.update(filter(is_plain, numbers))
    alone = _names_alone(_check_expressions(others.pop(), len(records), UNIT_FUNCTIONS)) if records else frozenset()
    if not alone <= WORDS_OF_TIME:
        raise Refused("SDC006")
    for reading, macros in [(outer, OF_WITH), *((reading, MACROS) for reading in others)]:
        check_query(reading, macros=macros, recursive=reading is outer)
        if unknown_tables(reading.items, tables):
            raise Refused("SDC006")
    return alone


_MOST_READ = 10_000
_READ: set[str] = set()


def _names_alone(items: list[dict[str, Any]]) -> frozenset[str]:
    """The names of columns without the name of a table."""
    columns = (item["column_names"] for item in items if item.get("class") == "COLUMN_REF")
    return frozenset(folded(str(names[0])) for names in columns if len(names) < 2)


def _check_expressions(reading: Reading, number: int, known: frozenset[str]) -> list[dict[str, Any]]:
    """Refuse a list of so many expressions that is anything else; what is in it."""
    if reading.statements != 1 or _listed(reading) != number:
        raise Refused("SDC006")
    for item in reading.items:
        kind = item.get("class")
        if kind is not None and kind not in _UNIT_CLASSES:
            raise Refused("SDC010" if kind == "WINDOW" else "SDC005", folded(str(kind)))
        if kind == "FUNCTION":
            _check_function(item, known)
    return reading.items


_CLAUSES = ("modifiers", "where_clause", "group_expressions", "group_sets", "having", "sample", "qualify")


def _listed(reading: Reading) -> int:
    """How many expressions a text selects of nothing; 0 where it is anything else."""
    node, *others = [item for item in reading.items if str(item.get("type")).endswith("_NODE")] or [{}]
    if others or any(node.get(clause, True) for clause in _CLAUSES) or node["from_table"].get("type") != "EMPTY":
        return 0
    return len(node["select_list"])


def _check_items(items: list[dict[str, Any]], known: frozenset[str], *, pivots: bool, recursive: bool) -> None:
    for item in items:
        kind = item.get("class")
        if item.get("sample") and not pivots:
            raise Refused("SDC013", "sample")
        if item.get("at_clause"):
            raise Refused("SDC005", "a table as it was at another time")
        if recursive and item.get("type") == _RECURSIVE and not item.get("key_targets"):
            continue
        if kind is None:
            _check_shape(item, pivots)
        elif kind not in _CLASSES:
            raise Refused("SDC005", folded(str(kind)).replace("_", " "))
        elif kind in ("FUNCTION", "WINDOW"):
            _check_function(item, known)


def _check_shape(item: dict[str, Any], pivots: bool) -> None:
    kind = item.get("type")
    if not isinstance(kind, str) or kind in _SHAPES or kind.endswith("_TYPE_INFO") or (pivots and kind == "PIVOT"):
        return
    if kind == "TABLE_FUNCTION":
        called = folded(str((item.get("function") or {}).get("function_name", "")))
        if pivots and called in SERIES and item.get("with_ordinality", "WITHOUT_ORDINALITY") == "WITHOUT_ORDINALITY":
            return
        raise Refused("SDC021", called)
    if kind != "JOIN":
        raise Refused("SDC005", _FORMS.get(kind, folded(kind).replace("_", " ")))
    if item.get("ref_type") not in _JOINS:
        raise Refused("SDC022", f"{folded(str(item.get('ref_type')))} join")


def _check_function(item: dict[str, Any], known: frozenset[str]) -> None:
    name = folded(str(item["function_name"]))
    elsewhere = item.get("schema") not in (None, "", "main", "pg_catalog")
    if elsewhere and name in known and not item.get("catalog"):
        raise Refused("SDC010", f"a function behind a dot: write {name}(x) for x.{name}()")
    if name == "list_value" and not elsewhere and not (item.get("arguments") or item.get("children")):
        return  # an end of a slice that is left out
    if name not in known or elsewhere or item.get("catalog"):
        instead = (
            f": {INSTEAD[name]}" if name in INSTEAD else "" if name in FUNCTIONS else near_function(name, FUNCTIONS)
        )
        # A list is shorter for records: that it is answered over numbers would else read as a contradiction.
        raise Refused("SDC010", f"{name}{' of single records' if name in FUNCTIONS and not elsewhere else ''}{instead}")
