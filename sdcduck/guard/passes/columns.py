"""COLUMNS(..) written out, before anything else looks at a query.

What it becomes is judged as if the analyst had written it. DuckDB itself says which columns are meant, asked about a
relation that has the names and no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from sqlglot import exp

from sdcduck.guard.expressions import by_name, tables_of
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.passes.output_names import name_outputs
from sdcduck.guard.passes.parse import check_size
from sdcduck.guard.refusals import Refused, refuse_own_name, unknown_column
from sdcduck.quoting import folded, identifier, literal

Ask = Callable[[str], tuple[list[str], list[int]]]
"""Asks DuckDB for the names of the columns of a query, and for its row of numbers."""

_MOST_COLUMNS = 1000


@dataclass(frozen=True)
class _Source:
    """What stands in FROM: its alias in lower case, and the names that a star shows of it as they are spelled.

    Attributes:
        merged: those of them, in lower case, that FULL or RIGHT JOIN .. USING makes of two relations.
    """

    alias: str
    names: tuple[str, ...]
    merged: frozenset[str] = frozenset()

    def has(self, name: str) -> bool:
        """Whether it shows this lower-case name."""
        return any(folded(one) == name for one in self.names)

    def shown(self, names: Iterable[str]) -> frozenset[str]:
        """Those of some lower-case names that it shows."""
        return frozenset(names) & frozenset(map(folded, self.names))


def expand_columns(draft: Draft) -> None:
    """Write COLUMNS(..) out.

    >>> after(expand_columns, "SELECT region, sum(COLUMNS('^i')) FROM people GROUP BY 1")
    SELECT region, SUM("people"."id") AS "id", SUM("people"."income") AS "income" FROM people GROUP BY 1
    """
    draft.look_up_tables()
    spelled = {name: list(columns.spelled.values()) for name, columns in draft.described.items()}
    refuse_unknown_exceptions(draft.tree, spelled)
    if draft.tree.find(exp.Columns) is None:
        return
    without_columns(draft.tree, spelled, draft.schema.names_and_numbers)
    check_size(draft.tree)
    name_outputs(draft)


def refuse_unknown_exceptions(tree: exp.Expr, schema: Mapping[str, Iterable[str]]) -> None:
    """Refuse EXCLUDE and REPLACE of columns that nothing in FROM has: sqlglot leaves them out, and DuckDB does not.

    >>> tree = exp.maybe_parse("SELECT * EXCLUDE (incom) FROM people", dialect="duckdb")
    >>> try:
    ...     refuse_unknown_exceptions(tree, {"people": ["region", "income"]})
    ... except Refused as refused:
    ...     print(str(refused).split(". ")[0])
    SDC030: an unknown column ('incom'; did you mean 'income'?)
    """
    names = Names(schema)
    for star in tree.find_all(exp.Star):
        named = [one.alias_or_name for part in ("except_", "replace") for one in star.args.get(part) or []]
        select = star.parent_select
        if named and isinstance(select, exp.Select):
            found = names.of_sources(select)
            unknown = next((name for name in named if found and folded(name) not in found), None)
            if unknown is not None:
                raise unknown_column(unknown, found)


def without_columns(tree: exp.Expr, schema: Mapping[str, Iterable[str]], ask: Ask) -> None:
    """Write out every COLUMNS(..) of a tree, in place.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("SELECT region, sum(COLUMNS('inc.*')) FROM people GROUP BY region", "duckdb")
    >>> without_columns(tree, {"people": ["region", "income"]}, lambda sql: (["income"], [1]))
    >>> print(tree.sql("duckdb"))
    SELECT region, SUM("people"."income") AS "income" FROM people GROUP BY region

    Args:
        schema: the columns of the tables that are visible, as they are spelled: patterns have capitals.

    Raises:
        Refused: it stands where it is not understood, or names no column.
    """
    names = Names(schema)
    selects = {id(select): select for found in tree.find_all(exp.Columns) if (select := found.parent_select)}
    for select in sorted(selects.values(), key=lambda found: -found.depth):
        if not isinstance(select, exp.Select):
            raise Refused("SDC012", "COLUMNS(..) outside of a SELECT")
        items: list[exp.Expr] = []
        for item in select.expressions:
            found = [one for one in item.find_all(exp.Columns) if one.parent_select is select]
            items.extend(_written_out(item, found, names.sources(select), ask) if found else [item])
            if len(items) > _MOST_COLUMNS:
                raise Refused("SDC002", "COLUMNS(..) of many columns")
        select.set("expressions", items)
    if tree.find(exp.Columns) is not None:
        raise Refused("SDC012", "COLUMNS(..) stands among what is selected, alone or in an aggregate")


def _written_out(item: exp.Expr, found: list[exp.Columns], sources: list[_Source], ask: Ask) -> list[exp.Expr]:
    choice = found[0]
    if choice.args.get("unpack") or any(other != choice for other in found):
        raise Refused("SDC012", "*COLUMNS(..), or several of them in one expression")
    chosen, sources = _chosen(choice.this, sources)
    of_one = isinstance(choice.this, exp.Column) and bool(choice.this.table)
    places = [
        (None if folded(name) in source.merged and not of_one else source.alias, name)
        for source in sources
        for name in source.names
    ]
    numbered = iter(range(len(places)))
    relations = [
        f"(SELECT {', '.join(f'{next(numbered)} AS {identifier(name)}' for name in source.names)}) "
        f"AS {identifier(source.alias)}"
        for source in sources
        if source.names
    ]
    called = f" AS {identifier(item.alias)}" if item.alias else ""
    names, numbers = ask(f"SELECT COLUMNS({chosen}){called} FROM {' CROSS JOIN '.join(relations)}")
    made: list[exp.Expr] = []
    for name, number in zip(names, numbers, strict=True):
        refuse_own_name(name)  # a pattern can put it together
        alias, column = places[number]
        one = item.unalias().copy()
        for place in [one] if isinstance(one, exp.Columns) else list(one.find_all(exp.Columns)):
            meant = exp.column(column, alias, quoted=True)
            if place is one:
                one = meant
            else:
                place.replace(meant)
        made.append(exp.alias_(one, name, quoted=True, copy=False))
    return made


def _chosen(which: exp.Expr, sources: list[_Source]) -> tuple[str, list[_Source]]:
    """The SQL of what stands in COLUMNS(..), made anew, and the relations that it looks at."""
    if isinstance(which, exp.Literal) and which.is_string:
        return literal(which.this), sources
    if isinstance(which, exp.Array) and all(
        isinstance(one, exp.Literal) and one.is_string for one in which.expressions
    ):
        return f"[{', '.join(literal(one.this) for one in which.expressions)}]", sources
    if isinstance(which, exp.Column) and isinstance(which.this, exp.Star) and which.table:
        sources = [source for source in sources if source.alias == folded(which.table)]
        which = which.this
    if not isinstance(which, exp.Star) or not sources:
        raise Refused("SDC012", "COLUMNS(..) takes a pattern, a list of names, or a star")
    excluded = _excluded(which)
    return f"* EXCLUDE ({', '.join(map(identifier, excluded))})" if excluded else "*", sources


def _excluded(star: exp.Star) -> list[str]:
    """The names in EXCLUDE, which may be all that is said of a star."""
    if any(value and part != "except_" for part, value in star.args.items()):
        raise Refused("SDC012", "REPLACE or RENAME beside COLUMNS(..)")
    if any(isinstance(name, exp.Column) and name.table for name in star.args.get("except_") or []):
        raise Refused("SDC012", "EXCLUDE (table.column) beside COLUMNS(..)")
    return [folded(name.name) for name in star.args.get("except_") or []]


class Names:
    """The names of the columns of relations, each found once: a query may name one of its own again and again."""

    def __init__(self, schema: Mapping[str, Iterable[str]]) -> None:
        self.schema = schema
        self.known: dict[int, list[str]] = {}

    def may_have(self, select: exp.Select, name: str) -> bool:
        """Whether something in FROM may have a column of this name: a table does, or there is more than tables."""
        tables = tables_of(select)
        return any(
            not isinstance(table, exp.Table) or cte_of(table) is not None or name in map(folded, self._of_source(table))
            for table in tables
        )

    def of_sources(self, select: exp.Select) -> frozenset[str]:
        """The lower-case names of all that stands in FROM; none where they are not all known here."""
        try:
            return frozenset(folded(name) for source in self.sources(select) for name in source.names)
        except Refused:
            return frozenset()

    def sources(self, select: exp.Select) -> list[_Source]:
        """What stands in FROM and JOIN; a column of USING is shown once."""
        found: list[_Source] = []
        joins = {id(join.this): join for join in select.args.get("joins") or []}
        for table in tables_of(select):
            if isinstance(table, exp.Subquery) and not table.alias:
                name = exp.to_identifier(f"_sdc_unnamed{len(self.known)}_{len(found)}", quoted=True)
                table.set("alias", exp.TableAlias(this=name))
            join = joins.get(id(table))
            if join is not None and (join.method or join.kind in ("SEMI", "ANTI")):
                raise Refused("SDC012", "COLUMNS(..) of an unusual join")
            again = {folded(name.name) for name in join.args.get("using") or []} if join is not None else set()
            names = tuple(name for name in self._of_source(table) if folded(name) not in again)
            found.append(_Source(folded(table.alias_or_name), names))
            if join is not None and join.side in ("FULL", "RIGHT"):
                found = [replace(source, merged=source.merged | source.shown(again)) for source in found]
        if not any(source.names for source in found) or any(not source.alias for source in found):
            raise Refused("SDC012", "COLUMNS(..) of a relation without a name")
        return found

    def _of_source(self, table: exp.Expr) -> list[str]:
        renamed = list(table.alias_column_names)
        if renamed:
            return renamed
        if isinstance(table, exp.Subquery):
            return self._of_query(table.this)
        if not isinstance(table, exp.Table):
            raise Refused("SDC012", "COLUMNS(..) of an unusual relation")
        cte = cte_of(table)
        if cte is not None:
            names = list(cte.alias_column_names)
            return [*names, *self._of_query(cte.this)[len(names) :]]
        if folded(table.name) not in self.schema:
            raise Refused("SDC020", table.name)
        return list(self.schema[folded(table.name)])

    def _of_query(self, query: exp.Expr) -> list[str]:
        """The names of a query's columns, stars written out."""
        if isinstance(query, exp.SetOperation) and query.args.get("by_name"):
            return by_name(self._of_query(query.this), self._of_query(query.expression))
        if isinstance(query, (exp.Subquery, exp.SetOperation)):
            return self._of_query(query.this)
        if not isinstance(query, exp.Select):
            raise Refused("SDC012", "COLUMNS(..) of an unusual relation")
        if id(query) in self.known:
            return self.known[id(query)]
        names: list[str] = []
        for item in query.expressions:
            of = folded(item.table) if isinstance(item, exp.Column) else ""
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                excluded = set(_excluded(star))
                shown = [source for source in self.sources(query) if of in ("", source.alias)]
                names.extend(name for source in shown for name in source.names if folded(name) not in excluded)
            elif item.alias:
                names.append(item.alias)
            elif isinstance(item, exp.Column):
                names.append(self._spelled(item, query))
            else:
                raise Refused("SDC012", "COLUMNS(..) of a column without a name")
            if len(names) > _MOST_COLUMNS:
                raise Refused("SDC002", "COLUMNS(..) of many columns")
        self.known[id(query)] = names
        return names

    def _spelled(self, column: exp.Column, select: exp.Select) -> str:
        """The name of a column as what it comes from spells it."""
        with suppress(Refused):  # it may be a column of something else
            for source in self.sources(select) if select.args.get("from_") is not None else []:
                for name in source.names if folded(column.table) in ("", source.alias) else ():
                    if folded(name) == folded(column.name):
                        return name
        return column.name


def cte_of(table: exp.Table) -> exp.CTE | None:
    """The query in a WITH around a table that has its name."""
    inside: exp.Expr = table
    while inside.parent is not None:
        around = inside.parent
        with_ = around if isinstance(around, exp.With) else around.args.get("with_")
        if with_ is not None and with_ is not inside:
            for cte in with_.expressions:
                if cte is inside and not (with_.args.get("recursive") and folded(cte.alias) == folded(table.name)):
                    break
                if folded(cte.alias) == folded(table.name):
                    return cte if isinstance(cte, exp.CTE) else None
        inside = around
    return None
