"""Columns without a name: DuckDB has one for them, by which an answer shows them and a query asks for them."""

from __future__ import annotations

import re
from collections import Counter

from sqlglot import exp

from sdcduck.guard.expressions import by_name
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.unnamed import names_in_duckdb
from sdcduck.quoting import folded

_WORD = re.compile(r"\w+")


def name_outputs(draft: Draft) -> None:
    """Name what has no name, as DuckDB does.

    >>> after(name_outputs, 'SELECT max("count_star()") FROM (SELECT count(*) FROM people GROUP BY region)')
    SELECT MAX("count_star()") FROM (SELECT COUNT(*) AS "count_star()" FROM people GROUP BY region)
    """
    name_all(draft.tree)
    said = output_names(draft.tree)
    draft.said = said if said is None else names_in_duckdb(draft.con, draft.reading, said)


def output_names(tree: exp.Expr) -> list[str] | None:
    """The names of the result's columns as the analyst wrote them; None where a star hides them."""
    if isinstance(tree, exp.Subquery):
        return output_names(tree.this)
    if isinstance(tree, exp.SetOperation) and tree.args.get("by_name"):
        left, right = output_names(tree.this), output_names(tree.expression)
        return None if left is None or right is None else by_name(left, right)
    selects = tree.selects if isinstance(tree, exp.Query) else []
    if any(item.is_star for item in selects):
        return None
    return [item.alias or (item.name if isinstance(item, exp.Column) else default_name(item)) for item in selects]


def name_all(tree: exp.Expr) -> None:
    """Name columns without a name that something may ask for: of subqueries and CTEs, and those of UNION BY NAME.

    Those that UNION BY NAME brings together would be taken for one another otherwise.
    """
    _name_windows(tree)
    for query in tree.find_all(exp.Subquery, exp.CTE):
        if isinstance(query, exp.CTE) or isinstance(query.parent, (exp.From, exp.Join)):
            inner = query.this
            while isinstance(inner, (exp.SetOperation, exp.Subquery)):
                inner = inner.this
            if isinstance(inner, exp.Select):
                _name_as_duckdb(inner)
                number_repeated(inner)
    for operation in tree.find_all(exp.SetOperation):
        if not operation.args.get("by_name"):
            continue
        for select in operation.find_all(exp.Select):
            for item in select.expressions:
                unnamed = not item.alias and not isinstance(item, exp.Column) and not item.is_star
                if unnamed and item.find(exp.Columns) is None:
                    item.replace(exp.alias_(item.copy(), default_name(item), quoted=True))


def _name_windows(tree: exp.Expr) -> None:
    """Name columns without a name that are windows by name, in place: OVER w is no column called w.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("SELECT max(n) OVER w FROM t WINDOW w AS (ORDER BY n)", "duckdb")
    >>> _name_windows(tree)
    >>> print(tree.sql("duckdb"))
    SELECT MAX(n) OVER w AS "max(n) over w" FROM t WINDOW w AS (ORDER BY n)
    """
    for select in tree.find_all(exp.Select):
        for item in list(select.expressions):
            if isinstance(item, exp.Window) and item.alias:
                item.replace(exp.Alias(this=item.copy(), alias=exp.to_identifier(default_name(item), quoted=True)))


def name_subqueries(tree: exp.Expr) -> None:
    """Give scalar subqueries without a name the one that sqlglot would: by number it finds only what has one before."""
    for select in tree.find_all(exp.Select):
        for place, item in enumerate(list(select.expressions)):
            if isinstance(item, exp.Subquery) and not item.alias:
                hole = exp.Null()
                item.replace(hole)
                hole.replace(exp.Alias(this=item, alias=exp.to_identifier(f"_col_{place}")))


def _name_as_duckdb(select: exp.Select) -> None:
    """Name the columns without a name whose name in DuckDB is known, unless two had the same."""
    if any(item.is_star or item.find(exp.Columns) is not None for item in select.expressions):
        return
    names = [item.alias or (item.name if isinstance(item, exp.Column) else "") for item in select.expressions]
    made = [name or _name_in_duckdb(item) for name, item in zip(names, select.expressions, strict=True)]
    taken = Counter(folded(name) for name in made)
    for item, name, new in zip(list(select.expressions), names, made, strict=True):
        if not name and new and taken[folded(new)] == 1:
            item.replace(exp.alias_(item.copy(), new, quoted=True))


def number_repeated(select: exp.Select) -> None:
    """Of two columns with one name, the second one of a subquery or of PIVOT is name_1 in DuckDB; in place.

    >>> from sqlglot import parse_one
    >>> select = parse_one("SELECT n, count(*) AS N, sum(x) AS n, 1 AS m FROM t", "duckdb")
    >>> number_repeated(select)
    >>> print(select.sql("duckdb"))
    SELECT n, COUNT(*) AS "N_1", SUM(x) AS "n_2", 1 AS m FROM t
    """
    if any(item.is_star or item.find(exp.Columns) is not None for item in select.expressions):
        return
    taken = {folded(item.alias_or_name) for item in select.expressions}
    times = Counter[str]()
    for item in list(select.expressions):
        name = item.alias_or_name
        times[folded(name)] += 1
        if not name or times[folded(name)] == 1:
            continue
        number = times[folded(name)] - 1
        while folded(f"{name}_{number}") in taken:
            number += 1
        times[folded(name)] = number + 1
        taken.add(folded(f"{name}_{number}"))
        item.replace(exp.alias_(item.unalias().copy(), f"{name}_{number}", quoted=True))


_CALLS: dict[type[exp.Expr], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max", exp.Upper: "upper",
    exp.Lower: "lower",
}  # fmt: skip


def _name_in_duckdb(item: exp.Expr) -> str:
    """What DuckDB calls a column without a name: a plain count, or a call with one plain column; else empty.

    >>> from sqlglot import parse_one
    >>> [_name_in_duckdb(parse_one(text, "duckdb")) for text in ("count(*)", "sum(Age)", "count(DISTINCT a)", "1 + 1")]
    ['count_star()', 'sum(Age)', 'count(DISTINCT a)', '']
    """
    call = _CALLS.get(type(item))
    if call is None or any(value for part, value in item.args.items() if part not in ("this", "big_int")):
        return ""
    column, distinct = item.this, ""
    if isinstance(column, exp.Star) and call == "count":
        return "count_star()"
    if isinstance(column, exp.Distinct) and len(column.expressions) == 1 and not column.args.get("on"):
        column, distinct = column.expressions[0], "DISTINCT "
    plain = isinstance(column, exp.Column) and all(_WORD.fullmatch(part.name) for part in column.parts)
    return f"{call}({distinct}{'.'.join(part.name for part in column.parts)})" if plain else ""


def default_name(item: exp.Expr) -> str:
    """The name of a column without one: as DuckDB has it for a plain count, else the text."""
    return _name_in_duckdb(item) or folded(item.sql("duckdb"))
