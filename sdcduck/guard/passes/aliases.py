"""What a name means where an alias of the SELECT list is also a column of what stands in FROM: as DuckDB has it.

DuckDB means the column in WHERE, GROUP BY, QUALIFY, JOIN .. ON, further on in the SELECT list, and inside every
aggregate and window. ORDER BY means the alias where the name stands alone, and the column within an expression. HAVING
means the column where that is a group key, else the alias. sqlglot reads all of it so, but for ORDER BY,
QUALIFY and FILTER in HAVING: there the column is written in full before it looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from sdcduck.guard.expressions import is_query
from sdcduck.guard.passes.columns import Names
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.spelling import Spelling
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded


def resolve_aliases(draft: Draft) -> None:
    """Write out what is a column and an alias; note how names are spelled.

    >>> after(resolve_aliases, "SELECT age // 9 AS age, count(*) FROM people GROUP BY 1 ORDER BY age + 1")
    SELECT age // 9 AS age, COUNT(*) FROM people GROUP BY 1 ORDER BY "people".age + 1
    """
    settle_names(draft.tree, draft.types)
    draft.spelling = Spelling(draft.tree)


def settle_names(tree: exp.Expr, schema: Mapping[str, Iterable[str]]) -> None:
    """Write out names that sqlglot would take for an alias and DuckDB for a column, in place.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("SELECT -age AS age, count(*) FROM people GROUP BY people.age ORDER BY age + 1, age", "duckdb")
    >>> settle_names(tree, {"people": ["age"]})
    >>> print(tree.sql("duckdb"))
    SELECT -age AS age, COUNT(*) FROM people GROUP BY people.age ORDER BY "people".age + 1, age

    Args:
        schema: the columns of the tables that are visible.

    Raises:
        Refused: it cannot be told what a name means.
    """
    names = Names(schema)
    for select in list(tree.find_all(exp.Select)):
        aliases = {folded(item.alias) for item in select.expressions if isinstance(item, exp.Alias)}
        _refuse_repeated(select, aliases)
        for column in list(_read_otherwise(select)):
            if folded(column.name) not in aliases:
                continue
            owner = _owner(select, column, names)
            if owner is not None:
                column.set("table", exp.to_identifier(owner, quoted=True))


def _refuse_repeated(select: exp.Select, aliases: set[str]) -> None:
    """Refuse a name of several columns alone in ORDER BY: DuckDB means the last of them, others the first, or none."""
    order = select.args.get("order")
    for ordered in [] if order is None else order.expressions:
        name = _alone(ordered)
        if name in aliases and sum(folded(item.alias_or_name) == name for item in select.expressions) > 1:
            raise Refused("SDC031", f"ORDER BY '{name}', the name of several columns; write the number of the column")


def _alone(ordered: exp.Expr) -> str | None:
    """The name that is all that ORDER BY goes by; brackets around it are nothing to DuckDB."""
    by = ordered.this.unnest()
    return folded(by.name) if isinstance(by, exp.Column) and not by.table else None


def _read_otherwise(select: exp.Select) -> Iterator[exp.Column]:
    """Names that sqlglot may take for an alias: within ORDER BY, in QUALIFY, and in FILTER of HAVING."""
    order, having, qualify = (select.args.get(clause) for clause in ("order", "having", "qualify"))
    parts = [ordered.this for ordered in order.expressions if _alone(ordered) is None] if order is not None else []
    if having is not None:
        parts += [found for found in having.walk(prune=is_query) if isinstance(found, exp.Filter)]
    if qualify is not None:
        parts.append(qualify.this)
    for part in parts:
        for column in part.walk(prune=is_query):
            if isinstance(column, exp.Column) and not column.table:
                yield column


def _owner(select: exp.Select, column: exp.Column, names: Names) -> str | None:
    """The relation of FROM that has a column of this name; None: none has."""
    name = folded(column.name)
    if select.args.get("from_") is None:
        return None
    if not names.may_have(select, name):
        return None
    try:
        sources = names.sources(select)
        owners = [source.alias for source in sources if source.has(name)]
        if any(name in source.merged for source in sources):
            owners = ["", ""]
    except Refused:
        owners = ["", ""]
    if len(owners) > 1:
        raise Refused("SDC031", f"'{column.name}' is a column and an alias")
    return owners[0] if owners else None
