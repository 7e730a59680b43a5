"""How names of columns are spelled: with the capitals that DuckDB would show, although names are compared without.

Everything between reading and writing a query compares names in lower case. An answer has each column as DuckDB has it:
spelled as it was named last, and a column that nobody named anew as in its table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sdcduck.guard.expressions import by_name, tables_of
from sdcduck.quoting import folded

_SPELLED = "spelled"
Names = dict[str, str]
"""By lower-case name, as it is spelled."""


class Spelling:
    """The spelling of a query's names.

    Args:
        tree: the query as it was read, before names are brought into lower case; names are noted in it.
    """

    def __init__(self, tree: exp.Expr) -> None:
        self._others: Names = {}
        for named in tree.find_all(exp.Alias, exp.TableAlias, exp.Star):
            if isinstance(named, exp.Alias):
                identifier = named.args["alias"]
                if isinstance(identifier, exp.Identifier):
                    identifier.meta[_SPELLED] = identifier.name
                continue
            # The names after q(a, b) and in RENAME are written somewhere else before columns are in full.
            renamed = named.columns if isinstance(named, exp.TableAlias) else named.args.get("rename") or []
            for name in renamed:
                spelled = name.alias if isinstance(name, exp.Alias) else name.name
                self._others.setdefault(folded(spelled), spelled)

    def of(self, tree: exp.Expr, tables: Mapping[str, Names], said: Sequence[str] | None = None) -> list[str]:
        """The names of the columns of an answer.

        >>> from sqlglot import parse_one
        >>> from sqlglot.optimizer.qualify import qualify
        >>> tree = parse_one("SELECT * FROM (SELECT area, count(*) AS N FROM t GROUP BY 1) AS q", dialect="duckdb")
        >>> spelling = Spelling(tree)
        >>> spelling.of(qualify(tree, schema={"t": {"area": "text"}}, dialect="duckdb"), {"t": {"area": "Area"}})
        ['Area', 'N']

        Args:
            tree: the query with every column in full, names in lower case.
            tables: by lower-case name, their columns.
            said: what the columns are called as the query stands there, where that is known.
        """
        items = tree.selects if isinstance(tree, exp.Query) else []
        spelled = self._columns(tree, dict(tables))
        names = spelled if len(spelled) == len(items) else [item.alias_or_name for item in items]
        if said is None:
            return names
        if len(said) != len(names):  # UNION BY NAME has more than its left side
            return list(said)
        return [
            name if isinstance(item.unalias(), exp.Column) and folded(name) == folded(wanted) else wanted
            for item, name, wanted in zip(items, names, said, strict=True)
        ]

    def _names(self, query: exp.Expr | None, known: dict[str, Names]) -> Names:
        return {folded(name): name for name in reversed(self._columns(query, known))}

    def _columns(self, query: exp.Expr | None, known: dict[str, Names]) -> list[str]:
        if not isinstance(query, exp.Query):
            return []
        for cte in query.ctes:  # those before it are known
            known = {**known, folded(cte.alias): self._named(cte, known)}
        if isinstance(query, exp.Subquery):
            return self._columns(query.this, known)
        if isinstance(query, exp.SetOperation):
            left = self._columns(query.this, known)
            return by_name(left, self._columns(query.expression, known)) if query.args.get("by_name") else left
        if not isinstance(query, exp.Select):
            return []
        sources: dict[str, Names] = {}
        for relation in tables_of(query):
            if isinstance(relation, exp.Table):
                sources[folded(relation.alias_or_name)] = known.get(folded(relation.name), {})
            else:
                sources[folded(relation.alias_or_name)] = self._named(relation, known)
        return [self._shown(item, sources) for item in query.selects]

    def _named(self, relation: exp.Expr, known: dict[str, Names]) -> Names:
        """The columns of a subquery or of WITH."""
        return self._names(relation if isinstance(relation, exp.Query) else relation.this, known)

    def _shown(self, item: exp.Expr, sources: dict[str, Names]) -> str:
        name = item.alias_or_name
        alias = item.args.get("alias")
        spelled = alias.meta.get(_SPELLED) if isinstance(alias, exp.Identifier) else None
        if spelled is not None and folded(spelled) == folded(name):
            return str(spelled)
        named = (column for column in item.unalias().find_all(exp.Column) if folded(column.name) == folded(name))
        column = next(named, None)  # of two behind USING, the one on the left
        below = sources.get(folded(column.table), {}) if column is not None else {}
        return below.get(folded(name)) or self._others.get(folded(name), name)


def spell(tree: exp.Expr, names: Sequence[str]) -> None:
    """Spell the columns of an answer so, in place; whatever does not go with a query leaves it as it is."""
    select = tree
    while isinstance(select, (exp.Subquery, exp.SetOperation)):
        select = select.this
    items = select.selects if isinstance(select, exp.Select) else []
    if len(items) != len(names):
        return
    for item, name in zip(items, names, strict=True):
        if not isinstance(item, exp.Alias) or item.alias == name:
            continue
        if folded(item.alias) == folded(name) or _is_made_up(item.alias, tree):
            item.set("alias", exp.to_identifier(name, quoted=True))


def _is_made_up(name: str, tree: exp.Expr) -> bool:
    """Whether a name was given by sqlglot, and nothing asks for it."""
    return name.startswith("_col_") and all(column.name != name for column in tree.find_all(exp.Column))
