"""Every column in full and with its type."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify as qualified_by_sqlglot
from sqlglot.schema import MappingSchema

from sdcduck.guard.expression_types import EXPRESSION_TYPES
from sdcduck.guard.labels import settle_defaults
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.laterals import again_without, with_laterals
from sdcduck.guard.passes.normalize import refuse_hidden_relations
from sdcduck.guard.passes.output_names import name_subqueries
from sdcduck.guard.passes.sizes import bound
from sdcduck.guard.passes.subscripts import settle_fields
from sdcduck.guard.passes.using import note_using, refuse_other_using, take_left
from sdcduck.guard.protect.recursion import is_recursive
from sdcduck.guard.refusals import Refused, unknown_column, unknown_relation
from sdcduck.quoting import folded

_DUCKDB = Dialect.get_or_raise("duckdb")
_WORD = re.compile(r"\w+")


def qualify(draft: Draft) -> None:
    """Write every column in full, and stars and names out; find its type, and how much may leave at once.

    >>> after(qualify, "SELECT *, area[1] AS letter FROM regions")
    SELECT "regions"."region" AS "region", "regions"."area" AS "area", "regions"."area"[1] AS "letter" FROM
    "regions" AS "regions"
    """
    tree, types = draft.tree, draft.types
    note_using(tree)
    name_subqueries(tree)
    named = [(folded(policy.name), policy) for policy in draft.named]
    lengths = {name: draft.schema.lengths(policy, draft.described[name]) for name, policy in named}
    stored = {name: longest for name, longest in lengths.items() if longest}
    draft.tree, draft.rows = _qualified(tree, types, stored)
    refuse_other_using(draft.tree, types)
    refuse_hidden_relations(draft.tree)
    settle_defaults(draft.tree)
    _add_up_conditions(draft.tree)


def read_fields(draft: Draft) -> None:
    """The fields of structs and the places of lists, in one form; what the columns of the answer are called.

    >>> after(read_fields, "SELECT {'a': region}.a AS r FROM regions")
    SELECT {'a': "regions"."region"}['a'] AS "r" FROM "regions" AS "regions"
    """
    of_records = any(policy.label == "unit-level" for policy in draft.named)
    draft.subscripts = settle_fields(draft.tree, of_records=of_records) or draft.subscripts
    spelled = {name: columns.spelled for name, columns in draft.described.items()}
    draft.names = draft.spelling.of(draft.tree, spelled, draft.said)


def _qualified(
    tree: exp.Expr, schema: dict[str, dict[str, exp.DataType]], stored: Mapping[str, Mapping[str, float]]
) -> tuple[exp.Expr, int | None]:
    """The tree with every column in full and its type, stars and names written out; how many rows may leave at once.

    Args:
        stored: bytes of the longest texts in columns of tables, where they are known.
    """
    # As they are: sqlglot would read the names of tables and columns as SQL, "hidden--x" as hidden.
    known = MappingSchema({**schema}, dialect=_DUCKDB, normalize=False)
    for named in tree.find_all(exp.Table):
        if not named.alias and not _WORD.fullmatch(named.name):
            named.set("alias", exp.TableAlias(this=exp.to_identifier(folded(named.name), quoted=True)))
    with_laterals(tree)
    try:
        qualified_tree = qualified_by_sqlglot(tree, schema=known, dialect=_DUCKDB)
        again_without(qualified_tree)
        for cte in filter(is_recursive, qualified_tree.find_all(exp.CTE)):
            cte.args["alias"].set("columns", None)  # they are the names of what is selected by now
        qualified, rows = bound(qualified_tree, stored)
        take_left(qualified)
        typed = annotate_types(qualified, schema=known, expression_metadata=EXPRESSION_TYPES, dialect=_DUCKDB)
        return typed, rows
    except OptimizeError as problem:
        text = str(problem)
        name = _named_in(text)
        asked = {folded(table.name) for table in tree.find_all(exp.Table)}
        having = sum(folded(name) in columns for table, columns in schema.items() if table in asked)
        table = _OF_TABLE.search(text)
        if table is not None or text.startswith("Unknown table"):
            raise unknown_relation(table["name"] if table is not None else name, _relations(tree)) from None
        if "mbiguous" in text or text.startswith("Alias already used") or having > 1:
            raise Refused("SDC031", name) from None
        visible = {column for table in asked for column in schema.get(table, ())}
        if folded(name) in visible:
            raise Refused("SDC030", f"'{name}' is not in the FROM of its SELECT") from None
        raise unknown_column(name, visible | _own_names(tree)) from None


def _add_up_conditions(tree: exp.Expr) -> None:
    """``sum(sex = 'f')``, which DuckDB adds up as it does ``sum(CAST(sex = 'f' AS INTEGER))``."""
    for node in tree.find_all(exp.Sum):
        values = node.this.expressions if isinstance(node.this, exp.Distinct) else [node.this]
        for value in values:
            if value.is_type(exp.DataType.Type.BOOLEAN):
                whole = exp.DataType.build("int")
                number = exp.Cast(this=value.copy(), to=whole)
                number.type = whole
                value.replace(number)


def _own_names(tree: exp.Expr) -> set[str]:
    """What the query itself calls columns."""
    aliases = {folded(item.alias) for item in tree.find_all(exp.Alias)}
    return aliases | {folded(name.name) for found in tree.find_all(exp.TableAlias) for name in found.columns}


def _relations(tree: exp.Expr) -> list[str]:
    """What relations are called in the query."""
    named = {source.alias_or_name for source in tree.find_all(exp.Table, exp.Subquery)}
    return sorted(named - {""})


_AFTER = re.compile(
    r"(?:Unknown column|Unknown output column|Unknown table|Alias already used|Cannot automatically join)"
    r": (?P<name>.+)",
    re.S,
)

_OF_TABLE = re.compile(r"could not be resolved for table: '(?P<name>.*)'\.")


def _named_in(text: str) -> str:
    """The column that sqlglot's message names: a word of the query."""
    after = _AFTER.match(text)
    if after is not None:
        return after["name"]
    parts = text.replace('"', "'").split("'")
    return parts[1] if len(parts) > 2 else ""
