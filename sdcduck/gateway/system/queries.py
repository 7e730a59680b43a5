"""Questions about the database itself: recognised, and written anew for the instance that has the answers.

A question belongs here when every relation that it names is one of PostgreSQL's own, or when it names none and calls
one of PostgreSQL's functions. All others are the guard's.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sdcduck.gateway.postgres.dialect import UNREADABLE, is_large, number_of, with_quoted_names
from sdcduck.gateway.postgres.names import own_name
from sdcduck.gateway.system import functions as system_functions
from sdcduck.gateway.system.catalog import INFORMATION_RELATIONS, PG_RELATIONS
from sdcduck.guard import Refused
from sdcduck.guard.allowed import FUNCTIONS, SERIES
from sdcduck.guard.passes.reading import read
from sdcduck.quoting import folded

_MENTIONS = re.compile(
    r"pg_|information_schema|current_|session_user|version\s*\(|\buser\b|set_config|has_\w{1,40}?_privilege|_description\s*\("
    r"|txid_|inet_|\bto_reg|format_type|quote_ident|array_to_string|::\s*\"?reg",
    re.I,
)
_OPERATOR = re.compile(r"OPERATOR\s*\(\s*pg_catalog\s*\.\s*([^\s()]+)\s*\)", re.I)
_NUMBERS = re.compile(r"::\s*(?:pg_catalog\s*\.\s*)?(?:oid|xid|regclass|regtype|regproc)\s*\[\s*\]", re.I)
_TEXTS = re.compile(r"::\s*(?:pg_catalog\s*\.\s*)?(?:name|\"char\"|char)\s*\[\s*\]", re.I)
_OID_ARRAYS = re.compile(r"\$(\d+)\s*::\s*(?:pg_catalog\s*\.\s*)?oid\s*\[", re.I)
_SCHEMAS = {"": "pg", "pg_catalog": "pg", "information_schema": "inf"}
_OID_TYPES = frozenset(["oid", "xid", "cid", "regrole", "xid8"])
_TEXT_TYPES = frozenset(["name", "char", "cstring", "aclitem", "pg_node_tree", "sql_identifier", "character_data",
                         "yes_or_no", "regproc", "regprocedure", "regoper", "regoperator", "regconfig", "regdictionary",
                         "regcollation", "bpchar", "pg_lsn", "refcursor"])  # fmt: skip
_NAMED = {"regclass": "regclass_name", "regnamespace": "regnamespace_name"}
_BY_NAME = {"regclass": "to_regclass", "regnamespace": "to_regnamespace", "regtype": "to_regtype"}
_RELATION_FUNCTIONS = frozenset(
    ["generate_series", "exploding_generate_series", "unnest", "explode", "generate_subscripts",
     *system_functions.TABLE_FUNCTIONS]
)  # fmt: skip
_ONE_ROW = frozenset(["string_to_array", "array_to_string"])
_LONG_TEXTS = frozenset(["format", "printf", "bar", "repeat", "lpad", "rpad"])
"""What makes texts of any length, which nothing here looks at."""
_PLAIN = (FUNCTIONS - SERIES - _LONG_TEXTS) | frozenset(
    ["json_object", "typeof", "list_contains", "array_to_string", "string_to_array", "generate_subscripts",
     "array_position", "cardinality", "array_agg", "array_length", "translate", "md5", "string_split_regex"]
)  # fmt: skip


_READ = (
    _PLAIN | system_functions.NAMES | _RELATION_FUNCTIONS
    | frozenset([
        "array_append", "array_cat", "array_concat", "array_contains", "array_prepend", "array_sort", "bit_and",
        "bit_or", "concat_ws", "get_current_timestamp", "json_array", "json_extract", "json_extract_string",
        "json_group_array", "json_group_object", "list_append", "list_cat", "list_concat", "list_has",
        "list_prepend", "list_sort", "printf", "random", "string_split_regex", "struct_extract", "to_json",
        "->", "->>", "@>", "<@",
    ])
)  # fmt: skip
"""What may stand in a question as DuckDB reads it: nothing that makes much out of little, as ``repeat`` does."""


@dataclass(frozen=True)
class SessionValues:
    """What functions of the session return.

    Attributes:
        setting: the value of a setting, or None.
        set: gives one a value and returns it.
    """

    user: str
    database: str
    process: int
    version: str
    setting: Callable[[str], str | None]
    set: Callable[[str, str], str]


class NoAnswer(Exception):
    """A question about the database that has no answer here."""


def is_system_query(sql: str, own: Mapping[str, object]) -> bool:
    """Whether a question is about the database itself.

    Args:
        own: relations of the user, by lower-case name.
    """
    tree = _parsed(sql) if _MENTIONS.search(sql) and not is_large(sql) else None
    if tree is None:
        return False
    tables = _tables(tree)
    if any(_schema_of(table) is None or (not table.db and folded(table.name) in own) for table in tables):
        return False
    return bool(tables) or _calls_system(tree)


def readable(sql: str) -> str:
    """A question without the few forms that sqlglot does not read.

    >>> readable("SELECT 1 WHERE a OPERATOR(pg_catalog.=) ANY ($1::oid[])")
    'SELECT 1 WHERE a = ANY ($1::bigint[])'
    """
    return _NUMBERS.sub("::bigint[]", _TEXTS.sub("::text[]", _OPERATOR.sub(r"\1", sql)))


def numbers_of_things(sql: str) -> set[int]:
    """The parameters that are arrays of numbers of things, which drivers send in a way of their own.

    >>> numbers_of_things("SELECT oid FROM pg_type WHERE oid = ANY($2::oid[])")
    {2}
    """
    return {int(found[1]) for found in _OID_ARRAYS.finditer(sql)}


def _parsed(sql: str) -> exp.Query | None:
    text = readable(sql)
    for written in (text, with_quoted_names(text)):
        try:
            trees = sqlglot.parse(written, read="postgres")
        except UNREADABLE:
            continue
        return trees[0] if len(trees) == 1 and isinstance(trees[0], exp.Query) else None
    return None


def _tables(tree: exp.Expr) -> list[exp.Table]:
    """The tables that are named, without names that a WITH gives."""
    ctes = {folded(cte.alias) for cte in tree.find_all(exp.CTE)}
    return [
        table for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and (table.db or folded(table.name) not in ctes)
    ]  # fmt: skip


def _schema_of(table: exp.Table) -> str | None:
    """The schema of our instance that has a relation of PostgreSQL; None for others."""
    schema = _SCHEMAS.get(folded(table.db))
    known = {"pg": PG_RELATIONS, "inf": INFORMATION_RELATIONS}.get(schema or "", {})
    return schema if folded(table.name) in known else None


_SESSION_NAMES: Mapping[type[exp.Expr], str] = {
    exp.CurrentUser: "current_user", exp.CurrentSchema: "current_schema", exp.SessionUser: "session_user",
    exp.CurrentCatalog: "current_catalog",
}  # fmt: skip
_SESSION_NODES = tuple(_SESSION_NAMES)
_CALLED = {"current_version": "version"}
_SESSION_FUNCTIONS = frozenset(
    ["version", "current_database", "current_schema", "current_schemas", "current_setting", "set_config",
     "pg_backend_pid", "current_user", "session_user", "current_catalog", "user", "current_role"]
)  # fmt: skip
_SYSTEM_FUNCTIONS = _SESSION_FUNCTIONS | system_functions.NAMES | frozenset(system_functions.TABLE_FUNCTIONS)


def _function_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return folded(node.name)
    if not isinstance(node, exp.Func):
        return ""
    name: str = node.sql_name().lower()
    return _CALLED.get(name, name)


def _calls_system(tree: exp.Expr) -> bool:
    return any(
        isinstance(node, _SESSION_NODES)
        or (isinstance(node, exp.Func) and _function_name(node) in _SYSTEM_FUNCTIONS)
        or (isinstance(node, exp.Column) and not node.table and folded(node.name) in _BARE and not node.this.quoted)
        or (isinstance(node, exp.DataType) and _type_name(node) in (*_NAMED, *_BY_NAME, "regproc"))
        for node in tree.walk()
    )


_BARE = frozenset(["current_role", "user", "session_user", "current_catalog", "current_user", "current_schema"])


def system_sql(sql: str, session: SessionValues) -> str:
    """The question as our instance understands it.

    Raises:
        NoAnswer: it has something in it that is not known here.
    """
    tree = _parsed(sql)
    if tree is None:
        raise NoAnswer("syntax")
    text = readable(sql)
    for item in list(tree.selects) if isinstance(tree, exp.Select) else []:
        if name := _called(item):
            item.replace(exp.alias_(item.copy(), name, quoted=True))
    for inner in list(tree.find_all(exp.Select)):
        for item in list(inner.selects) if inner is not tree else []:
            # Whoever reads from it calls it so: SELECT count FROM (SELECT count(*) ..)
            if not isinstance(item, exp.Alias | exp.Column) and not item.is_star and (name := own_name(item, text)):
                item.replace(exp.alias_(item.copy(), name, quoted=True))
    for collation in list(tree.find_all(exp.Collate)):
        collation.replace(collation.this)
    for table in _tables(tree):
        schema = _schema_of(table)
        if schema is None:
            raise NoAnswer(table.name)
        table.set("db", exp.to_identifier(schema))
        table.set("catalog", None)
        table.set("this", exp.to_identifier(folded(table.name)))
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(folded(table.name))))
    numbers = {folded(table.alias): PG_RELATIONS[table.name].oid for table in _tables(tree) if table.db == "pg"}
    for column in list(tree.find_all(exp.Column)):
        column.set("db", None)
        column.set("catalog", None)
        if folded(column.name) in ("tableoid", "xmin"):
            number = numbers.get(folded(column.table), 0) if folded(column.name) == "tableoid" else 0
            column.replace(exp.Literal.number(number))
    for table in list(tree.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier):
            _unqualify_function(table, session)
    for several in list(tree.find_all(exp.Unnest)):
        _side_by_side(several)
    for number, call in enumerate(list(tree.find_all(exp.Anonymous))):
        if folded(call.name) == "regexp_split_to_table" and len(call.expressions) == 2:
            _beside_its_rows(call, f"_parts_{number}")
    # Parts before what they are part of.
    for like in list(tree.find_all(exp.Like, exp.ILike)):
        if not isinstance(like.parent, exp.Escape) and not isinstance(like.expression, (exp.Any, exp.All)):
            like.replace(exp.Paren(this=exp.Escape(this=like.copy(), expression=exp.Literal.string("\\"))))
    for node in reversed(list(tree.walk())):
        written = _rewritten(node, session)
        if written is not node:
            node.replace(written)
    return tree.sql("duckdb", comments=False)


def _called(item: exp.Expr) -> str:
    """The name that PostgreSQL gives to a column without one, where it calls a function that is rewritten here."""
    if isinstance(item, exp.Cast):
        kind = _type_name(item.to)
        return kind if kind in _BY_NAME and not isinstance(item.this, exp.Column) else ""
    while isinstance(item, exp.Dot):
        item = item.expression
    if isinstance(item, exp.Column) and not item.table and folded(item.name) in _BARE and not item.this.quoted:
        return folded(item.name)
    name = _SESSION_NAMES.get(type(item), "") or _function_name(item)
    return name if name in _SYSTEM_FUNCTIONS else ""


def check_read(con: duckdb.DuckDBPyConnection, text: str) -> None:
    """Refuse what DuckDB's own parser finds to be no single query, or to call what is on no list: sqlglot may be wrong.

    Raises:
        NoAnswer: there is such a function in it.
        Refused: it is no query.
    """
    reading = read(con, text)
    if reading.problem or reading.statements != 1:
        raise Refused("SDC004")
    for item in reading.items:
        name = str(item.get("function_name", "")).lower() if item.get("class") == "FUNCTION" else ""
        if name and name not in _READ:
            raise NoAnswer(name)


def _unqualify_function(table: exp.Table, session: SessionValues) -> None:
    """A function after FROM by its plain name, or that of ours."""
    function = table.this
    name = _function_name(function)
    if name in _SESSION_FUNCTIONS or name in _ONE_ROW:  # one row with one column, which is called as the relation
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name, quoted=True))
        if not alias.args.get("columns"):
            alias.set("columns", [alias.this.copy()])
        value = _session_value(function, session) if name in _SESSION_FUNCTIONS else function.copy()
        values = exp.Select(expressions=[exp.alias_(value, "_value")])
        table.replace(exp.Subquery(this=values, alias=alias.copy()))
        return
    if name in system_functions.TABLE_FUNCTIONS:
        function.set("expressions", [])
    if name == "generate_subscripts" and function.expressions:
        length = exp.Anonymous(this="array_length", expressions=[function.expressions[0].copy()])
        function.replace(exp.Anonymous(this="generate_series", expressions=[exp.Literal.number(1), length]))
    table.set("db", exp.to_identifier("pgf") if name in system_functions.TABLE_FUNCTIONS else None)
    table.set("catalog", None)
    if name not in _RELATION_FUNCTIONS:
        raise NoAnswer(name)
    alias = table.args.get("alias")
    if name not in system_functions.TABLE_FUNCTIONS and alias is not None and not alias.args.get("columns"):
        alias.set("columns", [alias.this.copy()])  # PostgreSQL calls the one column as the relation


def _side_by_side(several: exp.Unnest) -> None:
    """``unnest(a, b) WITH ORDINALITY`` of several lists, of which DuckDB takes one after FROM, as a row of each."""
    lists, alias = several.expressions, several.args.get("alias")
    names = list(alias.args.get("columns") or []) if alias is not None else []
    if alias is None or len(lists) < 2 or len(names) != len(lists):
        return
    columns = [exp.Anonymous(this="unnest", expressions=[one.copy()]) for one in lists]
    offset = several.args.get("offset")
    if isinstance(offset, exp.Identifier):
        lengths = [exp.Anonymous(this="array_length", expressions=[one.copy()]) for one in lists]
        longest = exp.Greatest(this=lengths[0], expressions=lengths[1:])
        numbers = exp.GenerateSeries(start=exp.Literal.number(1), end=longest)
        columns.append(exp.Anonymous(this="unnest", expressions=[numbers]))
        names.append(offset)
    rows = exp.Select(
        expressions=[exp.alias_(one, name.name, quoted=True) for one, name in zip(columns, names, strict=True)]
    )
    several.replace(exp.Lateral(this=exp.Subquery(this=rows), alias=exp.TableAlias(this=alias.this.copy())))


def _beside_its_rows(call: exp.Anonymous, name: str) -> None:
    """``SELECT regexp_split_to_table(a, b) FROM t`` with its rows after FROM, where they can be grouped."""
    select = call.find_ancestor(exp.Select)
    if select is None or select.args.get("from_") is None:
        raise NoAnswer(call.name)
    parts = exp.Anonymous(this="string_split_regex", expressions=[part.copy() for part in call.expressions])
    rows = exp.Select(expressions=[exp.alias_(exp.Anonymous(this="unnest", expressions=[parts]), "_part")])
    alias = exp.TableAlias(this=exp.to_identifier(name))
    select.append("joins", exp.Join(this=exp.Lateral(this=exp.Subquery(this=rows), alias=alias)))
    outer = call.parent if isinstance(call.parent, exp.Dot) else call  # pg_catalog.regexp_split_to_table
    outer.replace(exp.column("_part", table=name))


def _rewritten(node: exp.Expr, session: SessionValues) -> exp.Expr:
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func | exp.Dot | exp.Literal | exp.Array):
        schema = folded(node.this.name) if isinstance(node.this, exp.Identifier) else ""
        return _without_parent(node.expression) if schema in ("pg_catalog", "information_schema") else node
    if isinstance(node, exp.CurrentCatalog):
        return exp.Literal.string(session.database)
    if isinstance(node, exp.CurrentSchema):
        return exp.Literal.string("public")
    if isinstance(node, (exp.CurrentUser, exp.SessionUser)):
        return exp.Literal.string(session.user)
    if isinstance(node, exp.Column) and not node.table and not isinstance(node.this, exp.Star):
        name = folded(node.name)
        if name in _BARE and not node.this.args.get("quoted"):
            return exp.Literal.string(
                session.database if name.endswith("catalog") else "public" if name.endswith("schema") else session.user
            )
    if isinstance(node, exp.Func) and _function_name(node) in _SESSION_FUNCTIONS:
        return _session_value(node, session)
    if isinstance(node, exp.Anonymous):
        return _function(node)
    if isinstance(node, exp.Format):
        return _format([node.this, *node.expressions])
    if isinstance(node, exp.Cast):
        return _cast(node)
    if isinstance(node, exp.EQ | exp.NEQ) and isinstance(node.this, exp.Column) and node.expression.sql() == "0":
        if _FUNCTION_COLUMNS.fullmatch(node.this.name):  # no function is number 0 there, and a dash here
            node.set("expression", exp.Literal.string("-"))
        return node
    if isinstance(node, exp.EQ | exp.NEQ):
        return _quantified(node)
    return node


def _without_parent(node: exp.Expr) -> exp.Expr:
    copy: exp.Expr = node.copy()
    return copy


_OTHER_NAMES = {"json_build_object": "json_object", "jsonb_build_object": "json_object", "pg_typeof": "typeof"}
_FUNCTION_COLUMNS = re.compile(r"typ(input|output|receive|send|modin|modout|analyze|subscript)|amhandler|lanvalidator")


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [argument for argument in node.args.values() if isinstance(argument, exp.Expr)]


def _text_argument(arguments: list[exp.Expr], place: int) -> str:
    argument = arguments[place] if place < len(arguments) else None
    while isinstance(argument, exp.Cast):
        argument = argument.this
    if not isinstance(argument, exp.Literal):
        raise NoAnswer("a setting that is not named by a text")
    return argument.name


def _session_value(node: exp.Expr, session: SessionValues) -> exp.Expr:
    name, arguments = _function_name(node), _arguments(node)
    if name == "version":
        return exp.Literal.string(session.version)
    if name in ("current_database", "current_catalog"):
        return exp.Literal.string(session.database)
    if name == "current_schema":
        return exp.Literal.string("public")
    if name == "current_schemas":
        return exp.array("'pg_catalog'", "'public'")
    if name == "pg_backend_pid":
        return exp.Literal.number(session.process)
    if name == "current_setting":
        if not isinstance(arguments[0], exp.Literal):
            return _call("setting_of", arguments[0])
        value = session.setting(_text_argument(arguments, 0))
        return exp.null() if value is None else exp.Literal.string(value)
    if name == "set_config":
        return exp.Literal.string(session.set(_text_argument(arguments, 0), _text_argument(arguments, 1)))
    return exp.Literal.string(session.user)


def _function(node: exp.Anonymous) -> exp.Expr:
    name = folded(node.name)
    if name == "all" and isinstance(node.parent, exp.NEQ):
        return node
    if name == "format":
        return _format(node.expressions)
    if name in _OTHER_NAMES:
        return exp.Anonymous(this=_OTHER_NAMES[name], expressions=node.expressions)
    if name in system_functions.NAMES and not isinstance(node.parent, exp.Table):
        return _call(name, *node.expressions)
    if name not in _PLAIN and not isinstance(node.parent, exp.Table) and not _is_ours(node):
        raise NoAnswer(name)
    return node


def _format(arguments: list[exp.Expr]) -> exp.Expr:
    """``format('%s.%I', a, b)``, without a width, which could be any."""
    form = arguments[0] if arguments else None
    if not isinstance(form, exp.Literal) or any(sign in "0123456789*" for sign in form.name):
        raise NoAnswer("format")
    plain = exp.Literal.string(form.name.replace("%I", "%s").replace("%L", "'%s'"))
    return exp.Anonymous(this="printf", expressions=[plain, *(argument.copy() for argument in arguments[1:])])


def _is_ours(node: exp.Expr) -> bool:
    """Whether a function is one of those that we made, with its schema before it."""
    parent = node.parent
    return isinstance(parent, exp.Dot) and isinstance(parent.this, exp.Identifier) and parent.this.name == "pgf"


def _type_name(kind: exp.DataType) -> str:
    written = kind.sql("postgres").lower().replace('"', "")
    return written.rpartition(".")[2]


def _cast(node: exp.Cast) -> exp.Expr:
    kind, value = _type_name(node.to), node.this
    array = kind.endswith("[]") or kind in ("oidvector", "int2vector")
    kind = kind.removesuffix("[]")
    if kind in _BY_NAME:
        if _is_text(value):
            return _call(_BY_NAME[kind], value)
        return _shown(kind, value)
    if (
        kind in ("text", "varchar", "name")
        and isinstance(value, exp.Dot)
        and isinstance(value.expression, exp.Anonymous)
    ):
        named = next((of for of, name in _BY_NAME.items() if name == value.expression.name), "")
        if named and value.this.name == "pgf":  # 'people'::regclass::text
            return _shown(named, value)
    if kind in _OID_TYPES and not array and (number := _number_of_thing(value)) is not None:
        value = number
        node.set("this", value)
    if kind in _OID_TYPES or kind in ("oidvector", "int2vector"):
        node.set("to", exp.DataType.build("UINTEGER[]" if array else "UINTEGER", dialect="duckdb"))
    elif kind in _TEXT_TYPES:
        node.set("of_function", kind in ("regproc", "regprocedure"))
        node.set("to", exp.DataType.build("TEXT[]" if array else "TEXT", dialect="duckdb"))
    elif "." in node.to.sql("postgres"):
        with contextlib.suppress(SqlglotError):
            node.set("to", exp.DataType.build(kind + ("[]" if array else ""), dialect="postgres"))
    if array and isinstance(value, exp.Literal) and value.is_string and value.name.startswith("{"):
        parts = [part.strip('" ') for part in value.name[1:-1].split(",") if part.strip()]
        value.replace(exp.Array(expressions=[exp.Literal.string(part) for part in parts]))
    return node


def _shown(kind: str, number: exp.Expr) -> exp.Expr:
    """The name of a thing by its number."""
    return _call(_NAMED[kind], number) if kind in _NAMED else _call("format_type", number, exp.null())


def _is_text(value: exp.Expr) -> bool:
    """Whether it is the name of a thing, and not its number."""
    while isinstance(value, exp.Paren):
        value = value.this
    called = folded(value.name) if isinstance(value, exp.Anonymous) else ""
    return (
        isinstance(value, (exp.Literal, exp.DPipe, exp.Concat))
        or number_of(value) is not None
        or called in ("printf", "quote_ident")
        or (isinstance(value, exp.Dot) and _is_text(value.expression))
        or (isinstance(value, exp.Cast) and value.to.is_type("text", "varchar"))
    )


def _number_of_thing(value: exp.Expr) -> exp.Expr | None:
    """The number of what was cast to its name before: ``c.oid::regclass::oid``, ``'lower'::regproc::oid``."""
    if isinstance(value, exp.Dot) and isinstance(value.expression, exp.Anonymous):
        name, arguments = value.expression.name, value.expression.expressions
        named = value.this.name == "pgf" and name in (*_NAMED.values(), "format_type")
        return _without_parent(arguments[0]) if named else None
    if isinstance(value, exp.Cast) and _type_name(value.to) == "text" and value.args.get("of_function"):
        return _call("to_regproc", value.this)
    return None


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    call = exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])
    return exp.Dot(this=exp.to_identifier("pgf"), expression=call)


def _quantified(node: exp.Binary) -> exp.Expr:
    """``= ANY (array)`` and ``<> ALL (array)`` as a question whether the list has it."""
    quantified, array = node.expression, None
    if (isinstance(node, exp.EQ) and isinstance(quantified, exp.Any)) or (
        isinstance(node, exp.NEQ) and isinstance(quantified, exp.All)
    ):
        array = quantified.this
    elif isinstance(node, exp.NEQ) and isinstance(quantified, exp.Anonymous) and folded(quantified.name) == "all":
        array = quantified.expressions[0] if quantified.expressions else None
    if array is None:
        return node
    while isinstance(array, exp.Paren | exp.Tuple):
        array = array.this if isinstance(array, exp.Paren) else array.expressions[0]
    if isinstance(array, exp.Query | exp.Subquery):
        return node
    if isinstance(array, exp.Literal) and array.name.startswith("{"):
        parts = [part.strip('" ') for part in array.name[1:-1].split(",") if part.strip()]
        array = exp.Array(expressions=[exp.Literal.string(part) for part in parts])
    found = exp.Anonymous(this="list_contains", expressions=[array.copy(), node.this.copy()])
    return found if isinstance(node, exp.EQ) else exp.Not(this=found)
