"""DESCRIBE, SHOW, SUMMARIZE, PRAGMA and DuckDB's own catalog: as queries of what whoever asks may see.

Names, types and uses of columns come from the policies, as they are published. They are written into the text as
constants, and a summary as the aggregates that it is made of, so that the guard judges all of it as any question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sdcduck.catalog import Policy
from sdcduck.guard.passes.words import words_of
from sdcduck.guard.refusals import Refused, unknown_relation
from sdcduck.guard.relations import about, use_of
from sdcduck.guard.summaries import COLUMNS_OF_SUMMARY, summary
from sdcduck.quoting import folded, identifier, literal

Described = tuple[str, str, str]
"""A column: its name, its type in DuckDB, and what it is or may be used for."""

_LONGEST = 100_000  # characters
_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*(?:[^*]|\*(?!/))*\*/)*"
_STATEMENT = re.compile(rf"{_BLANK}(describe|desc|show|summarize|pragma)\b", re.IGNORECASE)
_MENTIONED = re.compile(
    r"\(\s*(?:describe|desc|show|summarize)\b|\bpragma_table_info\b|\bduckdb_[a-z]{1,20}\s*\(|\binformation_schema\b",
    re.IGNORECASE,
)
_VERBS = frozenset(["describe", "desc", "show", "summarize"])
_QUERY = frozenset([
    TokenType.SELECT, TokenType.FROM, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN, TokenType.PIVOT,
    TokenType.UNPIVOT,
])  # fmt: skip
_BEFORE = frozenset([TokenType.FROM, TokenType.JOIN, TokenType.COMMA])
_GIVEN = frozenset([TokenType.PARAMETER, TokenType.PLACEHOLDER])
_ALIASED = frozenset([TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER])

_DESCRIBED = dict.fromkeys(["column_name", "column_type", "null", "key", "default", "extra"], "VARCHAR")
_TABLES = {
    "database": "VARCHAR", "schema": "VARCHAR", "name": "VARCHAR", "column_names": "VARCHAR[]",
    "column_types": "VARCHAR[]", "temporary": "BOOLEAN",
}  # fmt: skip
_TABLE_INFO = {
    "cid": "INTEGER", "name": "VARCHAR", "type": "VARCHAR", "notnull": "BOOLEAN", "dflt_value": "VARCHAR",
    "pk": "BOOLEAN",
}  # fmt: skip
_SEQUENCE = "sdc_sequence"
_TOLD = {"name": "VARCHAR", "answers": "BIGINT", "sets": "BIGINT", "least_error": "DOUBLE", "limit": "DOUBLE"}
_QUESTIONS = "sdc_questions"
_LEFT = {"name": "VARCHAR", "asked": "BIGINT", "questions": "BIGINT", "left": "BIGINT", "day": "DATE"}
_BUDGET = "sdc_budget"
_BUDGETS = {
    "name": "VARCHAR", "epsilon": "DOUBLE", "delta": "DOUBLE", "per_question": "DOUBLE", "questions": "BIGINT",
    "spent": "DOUBLE", "questions_left": "BIGINT", "ledger": "VARCHAR", "until": "DATE",
}  # fmt: skip
_SCHEMAS = {"database_name": "VARCHAR", "schema_name": "VARCHAR", "current": "BOOLEAN"}


class Known(Protocol):
    """What a guard tells of its database to whoever asks."""

    def relations(self) -> list[tuple[Policy, dict[str, str]]]:
        """The relations that can be asked about, with the columns that are visible and their DuckDB types."""

    def database(self) -> str:
        """What the database is called."""

    def described(self, query: str) -> list[Described]:
        """The columns of the answer to a query."""

    def answers(self, query: str) -> bool:
        """Whether a query would be answered."""

    def told(self) -> list[tuple[str, int, int, float | None, float]]:
        """Of each table that limits it, what whoever asks was told: answers, sets, the least error and its limit."""

    def left(self) -> list[tuple[str, int, int, int, str]]:
        """Of each table with a budget of questions, how many whoever asks has asked today, may ask, and may ask yet."""

    def budgets(self) -> list[tuple[str, float, float, float, int, float | None, int, str, str | None]]:
        """Of each table with a budget: its epsilon and delta, the epsilon of one question, how many were charged, the
        epsilon of all of them, how many are left, whose it is, and the day on which there is one anew."""


def listed(query: str, known: Known) -> str:
    """A text in which what lists names, types or summaries is a query; any other text as it is.

    Raises:
        Refused: it is about a relation that whoever asks does not see, or could be more than a list.
    """
    if len(query) > _LONGEST:
        return query
    whole = _STATEMENT.match(query)
    if whole is None and _MENTIONED.search(query) is None:
        return query
    try:
        words = words_of(query[whole.end() :] if whole else query)
    except SqlglotError:
        return query
    while words and words[-1].token_type == TokenType.SEMICOLON:
        words.pop()
    if any(word.token_type == TokenType.SEMICOLON for word in words):
        return query  # it is refused as several statements
    if whole is not None:
        asked = _Asked(query[whole.end() :], words, known)
        return (asked.pragma() if folded(whole[1]) == "pragma" else asked.listing(folded(whole[1]))).ordered
    return _with_lists(query, words, known)


@dataclass(frozen=True)
class _List:
    """A list as a query: with its rows in an order, or as a relation of another query."""

    columns: Sequence[str]
    query: str
    order: str = ""

    @property
    def relation(self) -> str:
        """For FROM, without an order."""
        return f"SELECT {', '.join(map(identifier, self.columns))} FROM ({self.query})"

    @property
    def ordered(self) -> str:
        """For whoever asks for the list itself."""
        return f"{self.relation} ORDER BY {self.order}" if self.order else self.relation


class _Asked:
    """What stands behind DESCRIBE, SHOW, SUMMARIZE or PRAGMA."""

    def __init__(self, text: str, words: Sequence[Token], known: Known) -> None:
        self._text, self._words, self._known = text, list(words), known

    def listing(self, verb: str) -> _List:
        """What it lists."""
        said = [folded(word.text) for word in self._words]
        if verb != "summarize":
            if not said or said == ["all", "tables"]:
                return tables(self._known)
            if said[0] == "tables" and (len(said) == 1 or said[1] == "from"):
                self._check_schema(said[2:])
                return names(self._known)
            if said == ["databases"]:
                return rows_of({"database_name": "VARCHAR"}, [(self._known.database(),)])
            if said == [_SEQUENCE]:
                return rows_of(_TOLD, self._known.told(), order=["name"])
            if said == [_QUESTIONS]:
                return rows_of(_LEFT, self._known.left(), order=["name"])
            if said == [_BUDGET]:
                return rows_of(_BUDGETS, self._known.budgets(), order=["name"])
            if said == ["schemas"]:
                return rows_of(_SCHEMAS, [(self._known.database(), "main", True)])
        if said[:1] == ["table"] and len(said) > 1:
            self._words = self._words[1:]
        if not self._words:
            raise Refused("SDC001")
        if any(word.token_type in _GIVEN for word in self._words):
            raise Refused("SDC005", f"{verb.upper()} beside parameters: write the values")
        return self._summary() if verb == "summarize" else self._description()

    def pragma(self) -> _List:
        """What a PRAGMA lists.

        Raises:
            Refused: it does something else.
        """
        said = [folded(word.text) for word in self._words]
        if said == ["show_tables"]:
            return names(self._known)
        if said == ["show_tables_expanded"]:
            return tables(self._known)
        if len(said) == 4 and [said[0], said[1], said[3]] == ["table_info", "(", ")"]:
            return table_info(self._known, self._words[2])
        raise Refused("SDC004", "of PRAGMA, table_info('a table') and show_tables are answered")

    def _check_schema(self, parts: Sequence[str]) -> None:
        here = {"main", folded(self._known.database())}
        if not {part for part in parts if part != "."} <= here:
            raise Refused("SDC020", f"{''.join(parts)}: tables are in main")

    def _source(self) -> str:
        """The text of what is listed, from its first word to its last."""
        return self._text[self._words[0].start : self._words[-1].end + 1]

    def _is_query(self) -> bool:
        return self._words[0].token_type in _QUERY

    def _description(self) -> _List:
        if self._is_query():
            described = self._known.described(self._source())
        else:
            policy, columns = found(self._known, _name(self._words))
            described = [(name, kind, use_of(policy, name)) for name, kind in columns.items()]
        rows = [(name, kind, "YES", None, None, use or None) for name, kind, use in described]
        return rows_of(_DESCRIBED, rows, order=["place"])

    def _summary(self) -> _List:
        if self._is_query():
            source, columns = f"({self._source()}\n)", self._known.described(self._source())
        else:
            policy, of = found(self._known, _name(self._words))
            source, columns = identifier(policy.name), [(name, kind, "") for name, kind in of.items()]
        made = summary(source, [(name, kind) for name, kind, _ in columns], self._known.answers)
        return _List(COLUMNS_OF_SUMMARY, made, "place")


def found(known: Known, name: str) -> tuple[Policy, dict[str, str]]:
    """A relation by its name.

    Raises:
        Refused: whoever asks sees none of this name.
    """
    relations = known.relations()
    for policy, columns in relations:
        if folded(policy.name) == folded(name):
            return policy, columns
    raise unknown_relation(name, [policy.name for policy, _ in relations])


def _name(words: Sequence[Token]) -> str:
    """The name that words are: alone, or behind that of its schema."""
    parts = [word.text for word in words[::2]]
    dots = [word.token_type for word in words[1::2]]
    if len(words) % 2 == 0 or any(dot != TokenType.DOT for dot in dots) or len(parts) > 3:
        raise Refused("SDC005", "write DESCRIBE, SHOW or SUMMARIZE with the name of a table, or a query")
    if len(parts) > 1 and folded(parts[-2]) != "main":
        raise Refused("SDC020", ".".join(parts))
    return parts[-1]


def names(known: Known) -> _List:
    """What SHOW TABLES lists."""
    return rows_of({"name": "VARCHAR"}, [(policy.name,) for policy, _ in known.relations()], order=["name"])


def tables(known: Known) -> _List:
    """What SHOW ALL TABLES lists."""
    database = known.database()
    lists = [
        (database, "main", policy.name, tuple(columns), tuple(columns.values()), False)
        for policy, columns in known.relations()
    ]
    return rows_of(_TABLES, lists, order=["name"])


def table_info(known: Known, name: Token) -> _List:
    """What PRAGMA table_info lists."""
    _, columns = found(known, name.text.rpartition(".")[2] if folded(name.text).startswith("main.") else name.text)
    rows = [(place, column, kind, False, None, False) for place, (column, kind) in enumerate(columns.items())]
    return rows_of(_TABLE_INFO, rows, order=["cid"])


Cell = str | int | float | bool | None | tuple[str, ...]


def rows_of(columns: dict[str, str], rows: Sequence[Sequence[Cell]], *, order: Sequence[str] = ()) -> _List:
    """Rows as a query of constants; what is the same in all of them is written once.

    >>> rows_of({"a": "INTEGER"}, []).query
    'SELECT 0 AS "place", CAST(NULL AS INTEGER) AS "a" WHERE false'
    >>> print(rows_of({"a": "INTEGER", "b": "VARCHAR"}, [(1, "x"), (2, "x")]).query)
    SELECT "place", CAST(c0 AS INTEGER) AS "a", CAST('x' AS VARCHAR) AS "b" FROM (VALUES (0, 1),
    (1, 2)) AS rows_("place", c0)

    Args:
        columns: their types.
        order: by which columns; ``place`` is that of a row here.
    """
    shown, told = [], []
    for place, (name, kind) in enumerate(columns.items()):
        alike = len({row[place] for row in rows}) < 2
        value = _constant(rows[0][place] if rows else None) if alike else f"c{place}"
        shown.append(f"CAST({value} AS {kind}) AS {identifier(name)}")
        told += [] if alike else [place]
    ordered, listed_names = ", ".join(map(identifier, order)), list(columns)
    if not rows:
        return _List(listed_names, f'SELECT 0 AS "place", {", ".join(shown)} WHERE false', ordered)
    values = ", ".join(
        f"({', '.join([str(number), *(_constant(row[place]) for place in told)])})" for number, row in enumerate(rows)
    )
    named = ", ".join(['"place"', *(f"c{place}" for place in told)])
    return _List(listed_names, f'SELECT "place", {", ".join(shown)} FROM (VALUES {values}) AS rows_({named})', ordered)


def _constant(value: Cell) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(literal, value))}]"
    return "NULL" if value is None else literal(value) if isinstance(value, str) else str(value).lower()


# --- Inside of other queries ------------------------------------------------------------------------------------------


def _with_lists(query: str, words: Sequence[Token], known: Known) -> str:
    """A text in which FROM (DESCRIBE t), duckdb_columns() and their kin are queries."""
    parts, end = [], 0
    for start, last, relation, alias in _lists(query, words, known):
        parts += [query[end : words[start].start], f"({relation})"]
        following = words[last + 1] if last + 1 < len(words) else None
        if alias and (following is None or following.token_type not in _ALIASED):
            parts.append(f" AS {identifier(alias)}")
        end = words[last].end + 1
    return "".join([*parts, query[end:]])


def _lists(query: str, words: Sequence[Token], known: Known) -> Iterator[tuple[int, int, str, str]]:
    """Where lists begin and end in words, each as a query, and what it is called."""
    place = 1
    while place < len(words):
        found_here = _list_at(query, words, place, known) if words[place - 1].token_type in _BEFORE else None
        if found_here is not None:
            yield (place, *found_here)
            place = found_here[0]
        place += 1


def _list_at(query: str, words: Sequence[Token], place: int, known: Known) -> tuple[int, str, str] | None:
    """The list that begins at a word behind FROM: where it ends, its query, and its name."""
    said = [folded(word.text) for word in words[place : place + 4]]
    if words[place].token_type == TokenType.L_PAREN and len(said) > 1 and said[1] in _VERBS:
        last = _closing(words, place)
        if last is None or words[place - 1].token_type == TokenType.COMMA:
            return None
        inner = words[place + 2 : last]
        return last, _Asked(query, inner, known).listing(said[1]).relation, ""
    if said[0] == "pragma_table_info" and said[1:2] + said[3:] == ["(", ")"]:
        return place + 3, table_info(known, words[place + 2]).relation, said[0]
    if said[0] in _FUNCTIONS and said[1:3] == ["(", ")"]:
        return place + 2, _FUNCTIONS[said[0]](known).relation, said[0]
    if said[:2] == ["information_schema", "."] and said[2:3] and said[2] in _INFORMATION:
        return place + 2, _INFORMATION[said[2]](known).relation, said[2]
    return None


def _closing(words: Sequence[Token], place: int) -> int | None:
    depth = 0
    for at in range(place, len(words)):
        depth += (words[at].token_type == TokenType.L_PAREN) - (words[at].token_type == TokenType.R_PAREN)
        if depth == 0:
            return at
    return None


# --- DuckDB's own relations -------------------------------------------------------------------------------------------

_OF_EACH = {
    "database_name": "VARCHAR", "database_oid": "BIGINT", "schema_name": "VARCHAR", "schema_oid": "BIGINT",
}  # fmt: skip
_DUCKDB_TABLES = {
    **_OF_EACH, "table_name": "VARCHAR", "table_oid": "BIGINT", "comment": "VARCHAR", "internal": "BOOLEAN",
    "temporary": "BOOLEAN", "has_primary_key": "BOOLEAN", "estimated_size": "BIGINT", "column_count": "BIGINT",
    "index_count": "BIGINT", "check_constraint_count": "BIGINT", "sql": "VARCHAR",
}  # fmt: skip
_DUCKDB_VIEWS = {
    **_OF_EACH, "view_name": "VARCHAR", "view_oid": "BIGINT", "comment": "VARCHAR", "internal": "BOOLEAN",
    "temporary": "BOOLEAN", "column_count": "BIGINT", "sql": "VARCHAR",
}  # fmt: skip
_DUCKDB_COLUMNS = {
    **_OF_EACH, "table_name": "VARCHAR", "table_oid": "BIGINT", "column_name": "VARCHAR", "column_index": "INTEGER",
    "comment": "VARCHAR", "internal": "BOOLEAN", "column_default": "VARCHAR", "is_nullable": "BOOLEAN",
    "data_type": "VARCHAR", "data_type_id": "BIGINT", "character_maximum_length": "INTEGER",
    "numeric_precision": "INTEGER", "numeric_precision_radix": "INTEGER", "numeric_scale": "INTEGER",
}  # fmt: skip
_DUCKDB_SCHEMAS = {
    "oid": "BIGINT", "database_name": "VARCHAR", "database_oid": "BIGINT", "schema_name": "VARCHAR",
    "comment": "VARCHAR", "internal": "BOOLEAN", "sql": "VARCHAR",
}  # fmt: skip
_DUCKDB_DATABASES = {
    "database_name": "VARCHAR", "database_oid": "BIGINT", "path": "VARCHAR", "comment": "VARCHAR",
    "internal": "BOOLEAN", "type": "VARCHAR", "readonly": "BOOLEAN",
}  # fmt: skip
_SCHEMATA = {
    "catalog_name": "VARCHAR", "schema_name": "VARCHAR", "schema_owner": "VARCHAR",
    "default_character_set_catalog": "VARCHAR", "default_character_set_schema": "VARCHAR",
    "default_character_set_name": "VARCHAR", "sql_path": "VARCHAR",
}  # fmt: skip
_TABLES_OF_STANDARD = {
    "table_catalog": "VARCHAR", "table_schema": "VARCHAR", "table_name": "VARCHAR", "table_type": "VARCHAR",
    "self_referencing_column_name": "VARCHAR", "reference_generation": "VARCHAR",
    "user_defined_type_catalog": "VARCHAR", "user_defined_type_schema": "VARCHAR",
    "user_defined_type_name": "VARCHAR", "is_insertable_into": "VARCHAR", "is_typed": "VARCHAR",
    "commit_action": "VARCHAR", "TABLE_COMMENT": "VARCHAR",
}  # fmt: skip
_COLUMNS_OF_STANDARD = {
    "table_catalog": "VARCHAR", "table_schema": "VARCHAR", "table_name": "VARCHAR", "column_name": "VARCHAR",
    "ordinal_position": "INTEGER", "column_default": "VARCHAR", "is_nullable": "VARCHAR", "data_type": "VARCHAR",
    "character_maximum_length": "INTEGER", "numeric_precision": "INTEGER", "numeric_precision_radix": "INTEGER",
    "numeric_scale": "INTEGER", "datetime_precision": "INTEGER", "COLUMN_COMMENT": "VARCHAR",
}  # fmt: skip


def _filled(columns: dict[str, str], rows: Sequence[dict[str, Cell]]) -> _List:
    """Rows of which only some columns are told."""
    return rows_of(columns, [[row.get(name) for name in columns] for row in rows])


def _tables_of_duckdb(known: Known) -> _List:
    here: dict[str, Cell] = {"database_name": known.database(), "schema_name": "main"}
    rows: list[dict[str, Cell]] = [
        here
        | {
            "table_name": policy.name, "comment": about(policy), "internal": False, "temporary": False,
            "has_primary_key": False, "column_count": len(columns), "index_count": 0,
            "check_constraint_count": 0,
        }
        for policy, columns in known.relations()
    ]  # fmt: skip
    return _filled(_DUCKDB_TABLES, rows)


def _columns_of_duckdb(known: Known) -> _List:
    here: dict[str, Cell] = {"database_name": known.database(), "schema_name": "main"}
    rows: list[dict[str, Cell]] = [
        here
        | {
            "table_name": policy.name, "column_name": name, "column_index": place, "internal": False,
            "comment": use_of(policy, name), "is_nullable": True, "data_type": kind,
        }
        for policy, columns in known.relations()
        for place, (name, kind) in enumerate(columns.items(), 1)
    ]  # fmt: skip
    return _filled(_DUCKDB_COLUMNS, rows)


def _tables_of_standard(known: Known) -> _List:
    rows: list[dict[str, Cell]] = [
        {
            "table_catalog": known.database(), "table_schema": "main", "table_name": policy.name,
            "table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO", "TABLE_COMMENT": about(policy),
        }
        for policy, _ in known.relations()
    ]  # fmt: skip
    return _filled(_TABLES_OF_STANDARD, rows)


def _columns_of_standard(known: Known) -> _List:
    rows: list[dict[str, Cell]] = [
        {
            "table_catalog": known.database(), "table_schema": "main", "table_name": policy.name, "column_name": name,
            "ordinal_position": place, "is_nullable": "YES", "data_type": kind,
            "COLUMN_COMMENT": use_of(policy, name),
        }
        for policy, columns in known.relations()
        for place, (name, kind) in enumerate(columns.items(), 1)
    ]  # fmt: skip
    return _filled(_COLUMNS_OF_STANDARD, rows)


def _views_of_duckdb(known: Known) -> _List:
    """None: what analysts may ask about is a table for them."""
    return rows_of(_DUCKDB_VIEWS, [])


def _schemas_of_duckdb(known: Known) -> _List:
    return _filled(_DUCKDB_SCHEMAS, [{"database_name": known.database(), "schema_name": "main", "internal": False}])


def _databases_of_duckdb(known: Known) -> _List:
    return _filled(
        _DUCKDB_DATABASES,
        [{"database_name": known.database(), "internal": False, "type": "duckdb", "readonly": True}],
    )


def _schemata_of_standard(known: Known) -> _List:
    return _filled(_SCHEMATA, [{"catalog_name": known.database(), "schema_name": "main"}])


_FUNCTIONS = {
    "duckdb_tables": _tables_of_duckdb, "duckdb_views": _views_of_duckdb, "duckdb_columns": _columns_of_duckdb,
    "duckdb_schemas": _schemas_of_duckdb, "duckdb_databases": _databases_of_duckdb,
}  # fmt: skip
_INFORMATION = {
    "tables": _tables_of_standard, "columns": _columns_of_standard, "schemata": _schemata_of_standard,
}  # fmt: skip
