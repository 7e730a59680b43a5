"""VALUES (1), (2) in place of a query: a SELECT of all that they are, as sqlglot itself makes of it in a WITH."""

from __future__ import annotations

from sqlglot import exp

from sdcduck.quoting import folded

VALUES_ALONE = "_values"
"""What sqlglot calls the relation."""


def with_selected_values(tree: exp.Expr) -> exp.Expr:
    """A tree with a SELECT in place of each VALUES that is a query, alone or in brackets.

    >>> tree = exp.maybe_parse("VALUES (1, 'a'), (2, 'b') ORDER BY 1 LIMIT 1", dialect="duckdb")
    >>> print(with_selected_values(tree).sql("duckdb"))
    SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS _values ORDER BY 1 LIMIT 1
    """
    for subquery in tree.find_all(exp.Subquery):
        if isinstance(subquery.this, exp.Values):
            subquery.set("this", _selected(subquery.this))
    return _selected(tree) if isinstance(tree, exp.Values) else tree


def _selected(values: exp.Values) -> exp.Select:
    alias = exp.TableAlias(this=exp.to_identifier(VALUES_ALONE))
    made = exp.Select(expressions=[exp.Star()], from_=exp.From(this=values))
    for part in [part for part, value in values.args.items() if value and part not in ("expressions", "alias")]:
        made.set(part, values.args[part])
        values.set(part, None)
    values.set("alias", alias)
    return made


def name_values(tree: exp.Expr) -> None:
    """Give the columns of VALUES in FROM the names that DuckDB gives them, in place: sqlglot has others.

    >>> tree = exp.maybe_parse("SELECT col0 FROM (VALUES (1, 2)) AS t", dialect="duckdb")
    >>> name_values(tree)
    >>> print(tree.sql("duckdb"))
    SELECT col0 FROM (VALUES (1, 2)) AS t(col0, col1)
    """
    taken = {folded(alias.name) for alias in tree.find_all(exp.TableAlias)}
    for number, values in enumerate(tree.find_all(exp.Values)):
        rows = values.expressions
        in_from = isinstance(values.parent, (exp.From, exp.Join))
        if not in_from or values.alias_column_names or not rows or not isinstance(rows[0], exp.Tuple):
            continue
        name = values.alias or f"{VALUES_ALONE}{number}"
        if values.alias or name not in taken:
            columns = [exp.to_identifier(f"col{place}") for place in range(len(rows[0].expressions))]
            alias = values.args.get("alias")
            this = alias.this if alias is not None and alias.this else exp.to_identifier(name)
            values.set("alias", exp.TableAlias(this=this, columns=columns))
