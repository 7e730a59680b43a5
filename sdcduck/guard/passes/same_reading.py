"""A text has one reading: what DuckDB reads in it is what it reads in what sqlglot writes for its own tree of it.

The guard judges sqlglot's tree, and DuckDB runs what is made of that. Where the two parsers read one text in two ways
the answer would be to another question, or of what nobody looked at.
"""

from __future__ import annotations

import re
from typing import Any

import duckdb

from sdcduck.guard.allowed import WORDS_OF_TIME
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.reading import Reading, read
from sdcduck.guard.passes.same_words import same_words
from sdcduck.guard.passes.selected_values import VALUES_ALONE
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

_PLACES = frozenset(
    ["query_location", "query_location_length", "qualified_name", "syntax_type", "is_operator", "is_implicit"]
)
"""Where a part of a text stands, and what stands beside it a second time."""

_POSITIVE = {
    "OPERATOR_IS_NOT_NULL": "OPERATOR_IS_NULL", "COMPARE_NOT_IN": "COMPARE_IN",
    "COMPARE_DISTINCT_FROM": "COMPARE_NOT_DISTINCT_FROM", "COMPARE_NOT_BETWEEN": "COMPARE_BETWEEN",
    "COMPARE_NOTEQUAL": "COMPARE_EQUAL",
}  # fmt: skip
"""Operators that are NOT of another one."""

_ORDERED = frozenset(["quantile_cont", "quantile_disc", "mode"])
"""WITHIN GROUP (ORDER BY x) gives them their first argument."""

_NAMES = {"datediff": "date_diff", "datepart": "date_part", "datesub": "date_sub", "datetrunc": "date_trunc"}
"""Functions with two names that DuckDB does not say so of."""

_OF_PARTS = frozenset(_NAMES.values())
"""Functions whose first argument is a part of a time."""

_PARTS = {"dow": "dayofweek", "weekday": "dayofweek", "doy": "dayofyear", "day": "dayofmonth"}
"""Parts that have two names."""


def same_reading(draft: Draft) -> None:
    """Refuse a text in which DuckDB reads something else than sqlglot.

    >>> after(same_reading, "SELECT sum(income) EXPORT_STATE FROM people")
    refused: SDC006: a text that reads in two ways (sum). Write it with brackets, with other names, or in plainer
    words, so that it can mean one thing only.
    """
    draft.plain = draft.tree.sql("duckdb", comments=False)
    if not same_words(draft.query, draft.plain):
        refuse_two_readings(draft.con, draft.reading, draft.plain)


def refuse_two_readings(con: duckdb.DuckDBPyConnection, asked: Reading, written: str) -> None:
    """Refuse a text that DuckDB reads in another way than sqlglot does.

    Args:
        asked: DuckDB's reading of the text.
        written: what sqlglot writes for its own tree of the text.

    Raises:
        Refused: they do not mean the same.
    """
    aliases, types = _aliases(con), _types(con)
    try:
        again = read(con, written)
    except Refused:
        raise Refused("SDC006") from None
    one, other = (_meaning(reading.items[:1], aliases, types) for reading in (asked, again))
    where = _difference(one, other, "")
    if where is not None:
        raise Refused("SDC006", _INSTEAD.get(where, where))


_INSTEAD = {
    "contains": "a list after IN, with NULL or of several types: write IN (1, 2)",
    "date_part": "the part of a time: write date_part('month', x)",
    "date_trunc": "the part of a time: write date_trunc('month', x)",
    "regexp_full_match": "~, of all of a text in DuckDB 1: write regexp_matches(x, '..') or regexp_full_match(x, '..')",
    "last_value": "IGNORE NULLS: write last_value(x IGNORE NULLS)",
}
"""What to write in place of functions in which the two differ."""


_ALIASES: dict[str, dict[str, str]] = {}


def _aliases(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """DuckDB's functions that have several names, by these."""
    if "functions" not in _ALIASES:
        rows = con.execute(
            "SELECT DISTINCT function_name, alias_of FROM duckdb_functions() WHERE alias_of IS NOT NULL AND internal"
        ).fetchall()
        _ALIASES["functions"] = {**dict(rows), **_NAMES}
    return _ALIASES["functions"]


def _types(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    if "types" not in _ALIASES:
        rows = con.execute("SELECT lower(type_name), logical_type FROM duckdb_types() WHERE internal").fetchall()
        _ALIASES["types"] = dict(rows)
    return _ALIASES["types"]


def _difference(one: Any, other: Any, inside: str) -> str | None:
    """The function in which two trees differ first, which may be nameless; None: they are the same."""
    if one == other:
        return None
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        inside = str(one.get("function_name") or inside)
        return next(found for name in one if (found := _difference(one[name], other[name], inside)) is not None)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = zip(one, other, strict=True)
        return next(found for pair in pairs if (found := _difference(*pair, inside)) is not None)
    return str(one.get("function_name") or inside) if isinstance(one, dict) else inside


def _meaning(node: Any, aliases: dict[str, str], types: dict[str, str]) -> Any:
    if isinstance(node, list):
        return [_meaning(part, aliases, types) for part in node]
    if not isinstance(node, dict):
        return node
    plain = {name: _meaning(part, aliases, types) for name, part in node.items() if name not in _PLACES}
    kind = plain.get("type")
    if plain.get("is_legacy_function_call") is False:  # from DuckDB 2.0.1 on, and of what is no call none
        del plain["is_legacy_function_call"]
    if plain.get("schema") == "main":
        plain["schema"] = ""
    if kind == "COLUMN_REF" and len(plain["column_names"]) == 1 and folded(plain["column_names"][0]) in WORDS_OF_TIME:
        plain["column_names"] = [folded(plain["column_names"][0])]
    if plain.get("null_order") == "NULLS LAST":
        plain["null_order"] = "ORDER_DEFAULT"
    if (
        kind == "JOIN"
        and (plain["join_type"], plain["ref_type"]) == ("INNER", "REGULAR")
        and _is_true(plain["condition"])
    ):
        plain |= {"ref_type": "CROSS", "condition": None}
    if kind == "SUBQUERY" and plain.get("alias") == VALUES_ALONE:
        return _values_alone(plain)
    if kind == "ARRAY_CONSTRUCTOR":
        return _call("list_value", plain["children"], plain["alias"])
    if "function_name" in plain and isinstance(plain["function_name"], str):
        name = folded(plain["function_name"])
        name = aliases.get(name, name)
        plain["function_name"] = name
        return _of_function(plain)
    if "type_name" in plain and not plain.get("catalog") and not plain.get("schema"):
        name = str(plain["type_name"])
        plain["type_name"] = types.get(folded(name), name)
        if plain["type_name"] == "VARCHAR":
            plain["children"] = []
        if plain["type_name"] == "DECIMAL" and not plain.get("children"):
            plain["children"] = _meaning(_DECIMAL, aliases, types)
    literal = plain.get("literal")
    if isinstance(literal, dict) and literal.get("kind") in ("INTEGER", "NUMERIC"):
        digits = literal["text"].replace("_", "")
        plain["literal"] = {**literal, "text": _BEGINS_WITH_POINT.sub(r"\g<1>0.", digits)}
    if kind == "VALUE_CONSTANT" and plain.get("value"):
        _settle_width(plain["value"]["type"].get("type_info") or {})
    if kind == "OPERATOR_CAST":
        plain["child"] = _number(plain["child"])
        return _interval_of_text(plain)
    if isinstance(kind, str) and kind in _POSITIVE:
        positive = {**plain, "type": _POSITIVE[kind], "alias": ""}
        return {"class": "OPERATOR", "type": "OPERATOR_NOT", "alias": plain["alias"], "children": [positive]}
    return plain


_DECIMAL = [
    {"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "literal": {"kind": "INTEGER", "text": digits}}
    for digits in ("18", "3")
]
"""What DuckDB takes DECIMAL alone for, and sqlglot writes."""


_BEGINS_WITH_POINT = re.compile(r"^(-?)\.")
"""Of .5, for which sqlglot writes 0.5."""


def _settle_width(decimal: dict[str, Any]) -> None:
    """The same in DuckDB 1: .5 has no digit before the point."""
    if decimal.get("scale"):
        decimal["width"] = max(decimal["width"], decimal["scale"] + 1)


def _values_alone(relation: dict[str, Any]) -> dict[str, Any]:
    """VALUES (1), (2) by itself, for which sqlglot writes SELECT * FROM (VALUES (1), (2)) AS _values."""
    query = (relation.get("subquery") or {}).get("node") or {}
    inside = query.get("from_table") or {}
    more = [name for name, part in query.items() if part and name not in ("type", "select_list", "from_table")]
    plain = inside.get("type") == "EXPRESSION_LIST" and [item.get("type") for item in query["select_list"]] == ["STAR"]
    if not plain or set(more) - {"cte_map", "aggregate_handling"} or relation.get("column_name_alias"):
        return relation
    return inside


def _of_function(call: dict[str, Any]) -> dict[str, Any]:
    """A call in the form that another spelling of it has."""
    name, arguments = call["function_name"], _arguments(call)
    if name in _OF_PARTS:
        _settle_part(arguments)
    if name.startswith("to_") and len(arguments) == 1:
        number = _number_within(arguments[0])
        if number is not None:
            return _interval(number, name.removeprefix("to_").removesuffix("s"), call["alias"])
    if name == "+" and len(arguments) == 1:
        return {**arguments[0], "alias": call["alias"]}
    if name in _LOGARITHMS and len(arguments) == 1:
        return _call("log", [_LOGARITHMS[name], *arguments], call["alias"])
    if name == "log" and len(arguments) == 2:
        arguments[0] = _number(arguments[0])
    if name == "range":
        arguments = [*([_digits("0")] if len(arguments) == 1 else []), *map(_number, arguments)]
    if name == "date_add":
        call["function_name"] = "+"
    if name == "today" and not arguments:
        return {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": call["alias"], "column_names": ["current_date"]}
    if name == "if" and len(arguments) == 3:
        checks = [{"when_expr": arguments[0], "then_expr": arguments[1]}]
        made = {"class": "CASE", "type": "CASE_EXPR", "alias": call["alias"]}
        return made | {"case_checks": checks, "else_expr": arguments[2]}
    if name == "contains" and len(arguments) == 2 and arguments[0].get("function_name") == "list_value":
        values = _arguments(arguments[0])
        if len(kinds := {_kind(value) for value in values}) == 1 and None not in kinds:
            made = {"class": "OPERATOR", "type": "COMPARE_IN", "alias": call["alias"]}
            return made | {"children": [arguments[1], *values]}
    if name == "string_agg" and (len(arguments) == 1 or (len(arguments) == 2 and _text(arguments[1]) == ",")):
        arguments = [arguments[0], _COMMA]
    if name in ("bool_and", "bool_or"):
        arguments = [_without_cast(argument) for argument in arguments]
        if call.get("order_bys"):  # in which order values are looked at says nothing (`settle_readings`)
            call["order_bys"] = {**call["order_bys"], "orders": []}
    orders = (call.get("order_bys") or {}).get("orders") or []
    if name in _ORDERED and len(arguments) == len(orders) == 1:
        arguments = [orders[0]["expression"], *arguments]
    if name == "list_sort" and len(arguments) == 3 and arguments[0].get("function_name") == "list":
        return _ordered(arguments[0], *map(_text, arguments[1:])) | {"alias": call["alias"]}
    return {**{part: call[part] for part in call if part not in ("arguments", "children")}, "arguments": arguments}


def _ordered(call: dict[str, Any], direction: Any, null_order: Any) -> dict[str, Any]:
    """list(x ORDER BY x), which DuckDB 1 reads as a list that is sorted afterwards."""
    null_order = "ORDER_DEFAULT" if null_order == "NULLS LAST" else null_order
    order = {"type": direction, "null_order": null_order, "expression": call["arguments"][0]}
    return call | {"order_bys": {"type": "ORDER_MODIFIER", "orders": [order]}}


def _call(name: str, arguments: list[Any], alias: str) -> dict[str, Any]:
    """A call of a function as `_of_function` has it."""
    orders = {"type": "ORDER_MODIFIER", "orders": list[Any]()}
    return {
        "class": "FUNCTION", "type": "FUNCTION", "alias": alias, "function_name": name, "schema": "", "filter": None,
        "order_bys": orders, "distinct": False, "export_state": False, "catalog": "", "arguments": arguments,
    }  # fmt: skip


_COMMA = {"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "comma": True}


def _text(constant: Any) -> Any:
    """What stands in a constant; of anything else None."""
    return (constant.get("literal") or {}).get("text") or (constant.get("value") or {}).get("value")


def _is_true(condition: Any) -> bool:
    if not isinstance(condition, dict):
        return False
    inner = _without_cast(condition)
    return _text(inner) in ("true", "t")


def _without_cast(value: Any) -> Any:
    """What is cast to BOOLEAN: sqlglot writes that around the arguments of bool_or."""
    to = value.get("type_expr") or {}
    is_boolean = "BOOLEAN" in (to.get("type_name"), (value.get("cast_type") or {}).get("id"))
    # And again: to DuckDB 1 the word TRUE is such a cast.
    return _without_cast(value["child"]) if value.get("type") == "OPERATOR_CAST" and is_boolean else value


_INTERVAL = re.compile(r"(-?\d+) ([a-z]+?)s?", re.IGNORECASE)


def _interval_of_text(cast: dict[str, Any]) -> dict[str, Any]:
    """INTERVAL '7 days', which sqlglot writes as INTERVAL '7' DAYS."""
    if "INTERVAL" not in ((cast.get("type_expr") or {}).get("type_name"), (cast.get("cast_type") or {}).get("id")):
        return cast
    found = _INTERVAL.fullmatch(str(_text(cast["child"])))
    return _interval(found[1], found[2], cast["alias"]) if found else cast


def _number_within(value: Any) -> str | None:
    """The number of a part of an INTERVAL, which DuckDB casts and cuts."""
    while value.get("type") == "OPERATOR_CAST" or value.get("function_name") == "trunc":
        value = value["child"] if "child" in value else value["arguments"][0]
    digits = value.get("digits")
    return None if digits is None else str(digits)


def _interval(number: str, unit: str, alias: str) -> dict[str, Any]:
    return {"class": "INTERVAL", "number": number, "unit": folded(unit), "alias": alias}


def _digits(text: str) -> dict[str, Any]:
    return {"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "digits": text}


_LOGARITHMS = {"log10": _digits("10"), "log2": _digits("2")}


def _number(value: Any) -> Any:
    """A text of digits, which is cast: sqlglot writes INTERVAL 1 DAY with it."""
    text = str(_text(value))
    return _digits(text) | {"alias": value["alias"]} if text.removeprefix("-").isdecimal() else value


def _arguments(call: dict[str, Any]) -> list[Any]:
    """What a function is called with: in DuckDB 2 each has a name."""
    if "children" in call:
        return list(call["children"])
    return [one["expression"] if isinstance(one, dict) and one.get("name") == "" else one for one in call["arguments"]]


def _kind(value: Any) -> str | None:
    """The kind of a constant that is not NULL."""
    literal, known = value.get("literal"), value.get("value")
    if literal is not None:
        return None if "NULL" in literal["kind"] else str(literal["kind"])
    return None if known is None or known["is_null"] else str(known["type"]["id"])


def _settle_part(arguments: list[Any]) -> None:
    for holder, key in ((arguments[0].get("literal"), "text"), (arguments[0].get("value"), "value")):
        if isinstance(holder, dict) and isinstance(holder.get(key), str):
            part = folded(holder[key])
            holder[key] = _PARTS.get(part, part)
