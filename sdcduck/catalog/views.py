"""What views read, and whether that is for whoever may see them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, partial
from os.path import abspath
from typing import Any

import duckdb

from sdcduck.catalog.database import current_database, first_row
from sdcduck.catalog.macros import refused_calls, signature
from sdcduck.catalog.relations import Definition, Policy, columns_now, has_definition, policies, store_definition
from sdcduck.quoting import folded, folded_sql, identifier, literal


def is_view(con: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Whether a name is that of a custodian's view."""
    views = f"SELECT 1 FROM duckdb_views() WHERE NOT internal AND {folded_sql('view_name')} = ?"
    return first_row(con, views, [folded(name)]) is not None


@dataclass(frozen=True)
class Read:
    """What a relation reads, through views and macros.

    Attributes:
        tables: database, schema and name of each.
        functions: table functions, such as those of DuckDB's own catalog, and others that read it, or write to it.
        enums: types with their labels that expressions have, and no table that is read.
        files: texts that may name files.
        definition: its text where it is a view, and those of the views and macros that it names.
    """

    tables: frozenset[tuple[str, str, str]] = frozenset()
    functions: frozenset[str] = frozenset()
    enums: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    definition: Definition = ()


def read_by(con: duckdb.DuckDBPyConnection, name: str, texts: Texts | None = None) -> Read:
    """What a relation of the main schema reads, as DuckDB plans it; nothing where it is not there any more.

    Args:
        texts: those of views and macros, where several relations are looked at in one go; None: they are looked up.
    """
    texts = Texts(con) if texts is None else texts
    tables: set[tuple[str, str, str]] = set()
    functions: set[str] = set()
    enums: set[str] = set()
    stored: set[str] = set()

    def noted(item: dict[str, Any]) -> dict[str, Any]:
        if item.get("id") == "ENUM" and item["type_info"]:
            enums.add(_enum(item["type_info"]["values"]))
        if item.get("type") == "VALUE_CONSTANT" and "ENUM(" in str(item["value"].get("value")):  # what typeof says
            enums.add(str(item["value"]["value"]))
        # By its name in DuckDB 1, and by the path of it in DuckDB 2.
        if item.get("type") == "LOGICAL_GET":
            stored.update(_enums_in(item.get("returned_types")))
            functions.add(_called(item))
        if item.get("expression_class") == "BOUND_FUNCTION" and _called(item) in _OF_DATABASE | _DRAWN:
            functions.add(_called(item))
        if item.get("type") == "LOGICAL_SAMPLE":
            functions.add("tablesample")
        if item.get("type") == "LOGICAL_CHUNK_GET":  # what DuckDB says of a table is worked out before
            functions.add("describe")
        if item.get("table") and "catalog" in item and "schema" in item:
            tables.add((str(item["catalog"]), str(item["schema"]), folded(str(item["table"]))))
        return item

    asked = f"FROM main.{identifier(name)}"
    try:
        row = first_row(con, "SELECT json_serialize_plan(?)", [asked])
        if row is not None and not _is_told(row[0], noted):
            here = current_database(con)
            text = texts.of(name)
            functions |= texts.functions_in(text)
            enums |= _enums_named(con, text)
            for table in con.get_table_names(asked, qualified=True):
                tables |= _in_full(table, here)
    except duckdb.Error:
        try:
            con.execute(f"SELECT * FROM main.{identifier(name)} LIMIT 0")
        except duckdb.Error:
            return Read(definition=texts.definition(name))
        functions.add("what DuckDB does not tell")
    functions -= {"seq_scan"}
    is_plain = tables and not functions and all(table.isidentifier() for _, _, table in tables)
    files = [] if is_plain else _FILE.findall(texts.of(name))
    return Read(
        frozenset(tables), frozenset(functions), frozenset(enums - stored), frozenset(files), texts.definition(name)
    )


def _enum(labels: Sequence[str]) -> str:
    """A type as DuckDB writes it.

    >>> _enum(["it's", "b"])
    "ENUM('it''s', 'b')"
    """
    return f"ENUM({', '.join(map(literal, labels))})"


def _enums_in(types: Any) -> set[str]:
    """The ENUMs among types, and in those that these are made of, as DuckDB serializes them."""
    if isinstance(types, list):
        return set().union(*map(_enums_in, types))
    if not isinstance(types, dict):
        return set()
    if types.get("id") == "ENUM" and types["type_info"]:
        return {_enum(types["type_info"]["values"])}
    return set().union(*map(_enums_in, types.values()))


def _called(item: dict[str, Any]) -> str:
    return folded(str(item["name"] if "name" in item else item.get("qname", {}).get("path", [""])[-1]))


def _is_told(plan: str, noted: Callable[[dict[str, Any]], dict[str, Any]]) -> bool:
    """Whether DuckDB has a text of a plan: of some functions there is none, and of constants of some types one that is
    no JSON."""
    try:
        return not json.loads(plan, object_hook=noted).get("error")
    except ValueError:
        return False


_OF_DATABASE = frozenset(["nextval", "currval", "setval", "json_serialize_plan"])
"""Functions of one value that tell of sequences and tables, by which records may be numbered, or change them."""
_DRAWN = frozenset(["random", "setseed", "tablesample", "uuid", "uuidv4", "uuidv7", "gen_random_uuid"])
"""What makes a view have other rows each time that it is read: those that were looked at are not those shown."""
_OF_THE_MOMENT = frozenset(
    (
        "now", "today", "age", "transaction_timestamp", "get_current_timestamp", "get_current_time",
        "current_localtime", "current_localtimestamp", "current_setting", "current_query", "current_query_id",
        "current_transaction_id", "current_connection_id", "txid_current", "getvariable", "pg_timezone_names",
        "sleep_ms", "write_log",
    )
)  # fmt: skip
"""Functions of the time, or of the session, and table functions of them; of two arguments ``age`` is none."""
_WORDS_OF_THE_MOMENT = frozenset(["current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"])
_PART_OF_NAME = re.compile(r'"((?:[^"]|"")*)"|([^."]+)')
_NAME_OF_TABLE = re.compile(r'(?:"(?:[^"]|"")*"|[^\s"])+')


def _in_full(table: str, database: str) -> set[tuple[str, str, str]]:
    """Database, schema and name of a table as DuckDB writes it, with its alias; of two parts one is either of both.

    >>> _in_full("people AS p", "file"), sorted(_in_full('sdc."my ""table"', "file"))
    ({('file', 'main', 'people')}, [('file', 'sdc', 'my "table'), ('sdc', 'main', 'my "table')])
    """
    named = _NAME_OF_TABLE.match(table)
    found = _PART_OF_NAME.findall(table if named is None else named[0])
    parts = [quoted.replace('""', '"') or plain for quoted, plain in found]
    name, before = folded(parts[-1]), parts[-3:-1]
    of, *more = (*before, "main")
    of_database = database if folded(of) == folded(database) else of
    if not before:
        return {(database, "main", name)}
    return {(of_database, folded(more[0]), name)} | ({(database, folded(of), name)} if len(before) == 1 else set())


_CALLED = re.compile(r'(\w+)"?\s*\(')
_OF_CATALOG = re.compile(r"\b(?:duckdb|pragma|sqlite|pg)_\w+|\binformation_schema\b|\b(?:describe|show|summarize)\b")
_SAMPLE = re.compile(r"\b(?:tablesample|using\s+sample)\b")
_CAST_TO = re.compile(r'\bas\s+(?:"?\w+"?\s*\.\s*)*"?(\w+)"?\s*[)\[]')


_FILE = re.compile(r"""(?:'|")([^'"]*[./][^'"]*)(?:'|")""")
"""What may name a file, or several: DuckDB takes names for files where there is no such table."""


class Texts:
    """The texts of views and macros, for the relations that are looked at in one go.

    DuckDB takes longer to list its functions than to answer most questions: they are listed once, and only where
    something is called at all.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._found: dict[str, list[tuple[str, str, str]]] = {}

    def of(self, view: str) -> str:
        """The text of a view with those of the views and macros that it names, folded."""
        return " ".join(["", *(folded(text) for _, _, text in self._named(view))])

    def definition(self, view: str) -> Definition:
        """The same with its letters, and what the parameters of macros are; nothing where it is no view."""
        is_there = any(folded(name) == folded(view) for name, _, _ in self._views)
        return tuple(sorted(set(map(_as_query, self._named(view))))) if is_there else ()

    def _named(self, view: str) -> list[tuple[str, str, str]]:
        if view not in self._found:
            found = _named_from(view, self._views)
            if any("(" in text for _, _, text in found):
                found = _named_from(view, [*self._views, *self._macros], partial(signature, self._con))
            self._found[view] = found
        return self._found[view]

    def functions_in(self, text: str) -> set[str]:
        """Table functions, and others that tell of the database, that a text calls."""
        called = set(_CALLED.findall(text))
        told = called & (_OF_DATABASE | _DRAWN)
        if called:
            told |= called & {folded(name) for name, is_table, *_ in self._functions if is_table}
        return told | set(_OF_CATALOG.findall(text)) | ({"tablesample"} if _SAMPLE.search(text) else set())

    @cached_property
    def _views(self) -> list[tuple[str, str, str]]:
        return self._con.execute("SELECT view_name, '', sql FROM duckdb_views() WHERE NOT internal").fetchall()

    @property
    def _macros(self) -> list[tuple[str, str, str]]:
        return [(name, call, text) for name, _, text, call in self._functions if text is not None]

    @cached_property
    def _functions(self) -> list[tuple[str, bool, str | None, str]]:
        """Name of each table function and macro, whether it is the former; of a macro its text and a call of it."""
        rows = self._con.execute(
            "SELECT DISTINCT database_name, schema_name, function_name, function_type, "
            "CASE WHEN NOT internal THEN parameters END, CASE WHEN NOT internal THEN macro_definition END "
            "FROM system.main.duckdb_functions() "
            "WHERE function_type = 'table' OR (NOT internal AND macro_definition IS NOT NULL)"
        ).fetchall()
        calls = refused_calls(
            (database, schema, name, kind, parameters or ())
            for database, schema, name, kind, parameters, text in rows
            if text is not None
        )
        return [
            (name, kind == "table", text, calls.get((database, schema, name, kind), ""))
            for database, schema, name, kind, _, text in rows
        ]


def is_of_the_moment(con: duckdb.DuckDBPyConnection, view: str) -> bool:
    """Whether a view may show other rows in a moment, of data that nobody changes: it or what it names knows the time.

    As far as its words tell: a column that is called ``current_date`` is taken for the day.
    """
    text = Texts(con).of(view)
    return not _OF_THE_MOMENT.isdisjoint(_CALLED.findall(text)) or not _WORDS_OF_THE_MOMENT.isdisjoint(
        re.findall(r"\w+", text)
    )


class Reads:
    """What relations read, looked up once each while one thing is decided about them.

    Args:
        texts: as in `read_by`.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, texts: Texts | None = None) -> None:
        self._con, self._texts, self._known = con, Texts(con) if texts is None else texts, dict[str, Read]()

    def __call__(self, name: str) -> Read:
        """As `read_by` has it."""
        if name not in self._known:
            self._known[name] = read_by(self._con, name, self._texts)
        return self._known[name]


def _as_query(stored: tuple[str, str, str]) -> tuple[str, str, str]:
    """A view or macro as the query that it is, with its parameters, or the names that a view gives its columns.

    >>> _as_query(("v", "", "CREATE VIEW v (a) AS SELECT b FROM t;")), _as_query(("m", "[x]", "(x + 1)"))
    (('v', 'CREATE VIEW v (a)', 'SELECT b FROM t'), ('m', '[x]', 'SELECT (x + 1)'))
    """
    name, parameters, text = stored
    if made := _VIEW.match(text):
        return name, made[1], text[made.end() :].rstrip("; \n")
    return name, parameters, text if _QUERY.match(text) else f"SELECT {text}"


_QUERY = re.compile(r"\(*\s*(?:SELECT|FROM|WITH|VALUES|PIVOT|UNPIVOT|DESCRIBE|SHOW|SUMMARIZE)\b", re.IGNORECASE)
_VIEW = re.compile(rf"(CREATE VIEW .*?) AS (?={_QUERY.pattern})", re.IGNORECASE | re.DOTALL)


def _named_from(
    view: str, stored: Iterable[tuple[str, str, str]], parameters_of: Callable[[str], str] = str
) -> list[tuple[str, str, str]]:
    """A view and all views and macros that it names, and these; of what is called alike, all.

    Args:
        stored: of each its name, for a macro a call of it, and its text.
        parameters_of: what the parameters of a macro are, by a call of it: default values may name macros, too.

    >>> stored = [("a", "", "FROM b, n(1)"), ("B", "", "FROM 'file'"), ("c", "", "FROM people")]
    >>> [name for name, _, _ in _named_from("A", stored)]
    ['a', 'B']
    """
    known: dict[str, list[tuple[str, str, str]]] = {}
    for name, call, text in stored:  # one of several schemas with a name may be meant
        known.setdefault(folded(str(name)), []).append((str(name), call, str(text)))
    found: list[tuple[str, str, str]] = []
    waiting = {folded(view)}
    while waiting:
        named = [(name, call and parameters_of(call), text) for name, call, text in known.pop(waiting.pop(), [])]
        found += named
        texts = folded(" ".join(f"{text} {parameters}" for _, parameters, text in named))
        quoted = {name.replace('""', '"') for name in _QUOTED.findall(texts)}
        waiting |= ({*_WORD.findall(texts)} | quoted) & set(known)
    return found


_WORD, _QUOTED = re.compile(r"\w+"), re.compile(r'"((?:[^"]|"")+)"')


def _enums_named(con: duckdb.DuckDBPyConnection, text: str) -> set[str]:
    """The ENUMs that a text casts to."""
    asked = "SELECT type_name, labels FROM duckdb_types() WHERE logical_type = 'ENUM' AND NOT internal"
    types = {folded(name): _enum(labels) for name, labels in con.execute(asked).fetchall()}
    return {types[name] for name in _CAST_TO.findall(text) if name in types}


def share_files(some: Collection[str], others: Collection[str]) -> bool:
    """Whether a file may be named among both, be it by a pattern.

    >>> share_files(["data/p*.parquet"], ["./data/people.parquet"]), share_files(["a.csv"], ["b.csv", "x/a.csv"])
    (True, False)
    """
    return any(
        fnmatchcase(one, other) or fnmatchcase(other, one)
        for one in map(abspath, some)
        for other in map(abspath, others)
    )


_WORDS_OF_VALUES = "range generate_series repeat repeat_row unnest json_each json_tree query query_table"
_WORDS_OF_FILES = (
    "glob read_blob read_text read_csv read_csv_auto read_json read_json_auto read_json_objects read_json_objects_auto "
    "read_ndjson read_ndjson_auto read_ndjson_objects read_parquet read_single_csv_file read_single_json_file "
    "read_single_parquet_file parquet_scan parquet_schema parquet_metadata parquet_file_metadata "
    "parquet_full_metadata parquet_kv_metadata sniff_csv read_xlsx read_avro st_read iceberg_scan delta_scan"
)
_WORDS_OF_OTHERS = (
    "postgres_scan postgres_scan_pushdown postgres_query mysql_scan mysql_query arrow_scan python_arrow_scan "
    "pandas_scan pg_timezone_names icu_calendar_names test_all_types test_vector_types"
)
READ_NOTHING_ELSE = frozenset(f"{_WORDS_OF_VALUES} {_WORDS_OF_FILES}".split())
"""Table functions of which it is known what they read: nothing, tables that DuckDB names, or the files of a text."""
_FUNCTIONS_FOR_ALL = READ_NOTHING_ELSE.union(_WORDS_OF_OTHERS.split())
"""Table functions that a public view may call: they make values, or read what is outside of this database. Of ``query``
and ``query_table`` DuckDB says which tables they read; of any other function nobody knows."""


def records_behind(
    con: duckdb.DuckDBPyConnection, view: str, role: str, stored: Sequence[Policy] | None = None,
    read: Read | None = None, texts: Texts | None = None, drawn: bool = False,
) -> str | None:  # fmt: skip
    """What a view shows that nobody may see: a table of a unit-level policy, or a name of the catalog; None: nothing.

    Nor is a view for everybody whose rows are others each time: records that are joined with it would be counted twice.

    Of a protected view these are all tables that it reads: what is called as its unit there may be a lookup's. A table
    that may be read freely anyway does not count.

    Args:
        role: for whom it is to be shown; empty: for everybody. What is protected for any role is not for another that
            has no policy of it.
        stored: all policies; None: they are looked up.
        read: what the view reads; None: it is looked up.
        texts: as in `read_by`.
        drawn: whether its rows may be others each time that it is read.
    """
    stored = policies(con) if stored is None else stored
    held = {folded(policy.name): policy for policy in stored if not policy.role}
    if role:
        held |= {folded(policy.name): policy for policy in stored if folded(policy.role) == folded(role)}
    reads = Reads(con, texts)
    read = reads(view) if read is None else read
    hidden = sorted(name for _, schema, name in read.tables if schema == "sdc")
    hidden += sorted(read.functions - _FUNCTIONS_FOR_ALL - (_DRAWN if drawn else frozenset()))
    if hidden:
        return hidden[0]
    here = current_database(con)
    public = {(here, "main", name) for name, policy in held.items() if policy.label == "public"}
    for policy in stored:
        if policy.label != "unit-level":
            continue
        records = reads(policy.name)
        if read.tables & (records.tables - public) or share_files(read.files, records.files):
            return policy.name
        if read.enums and _has_type(con, policy, read.enums):
            return policy.name
    return None


def _has_type(con: duckdb.DuckDBPyConnection, policy: Policy, enums: Collection[str]) -> bool:
    """Whether a column has one of these types, whose labels may be of one unit alone."""
    asked = f"""SELECT data_type FROM duckdb_columns() WHERE database_name = current_database()
        AND schema_name = 'main' AND {folded_sql("table_name")} = ?"""
    types = [str(row[0]) for row in con.execute(asked, [folded(policy.name)]).fetchall()]
    return any(kind in enum or enum in kind for enum in enums for kind in types if "ENUM(" in kind)


def has_records_of(con: duckdb.DuckDBPyConnection, view: str, policy: Policy, table: str) -> bool:
    """Whether a view, which has this policy or is to have it, is made of the records of a table.

    A table that is only looked up in has neither record keys nor measures.
    """
    if folded(view) == folded(table) or not is_view(con, view):
        return False
    own = {folded(name) for name in (*policy.record_keys, *policy.measures)}
    if not (own or set(map(folded, policy.identifiers))).intersection(columns_now(con, table)):
        return False
    return (current_database(con), "main", folded(table)) in read_by(con, view).tables


def note_definitions(con: duckdb.DuckDBPyConnection) -> None:
    """Store what the views are made of that an older version declared without, as they are now; in a transaction."""
    for policy in policies(con):
        if policy.label == "unit-level" and not has_definition(con, policy):
            store_definition(con, policy, read_by(con, policy.name).definition)
