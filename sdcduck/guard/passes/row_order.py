"""The order of an answer's rows, and what is made of it: it follows from the rows, not from DuckDB's threads.

The groups of a block come in the order of their keys. Joins, DISTINCT, GROUP BY, windows and most set operations lose
it: several threads put together what they found as they finish. So does a subquery that names columns from around it,
as DuckDB joins both. So what they make is put in order by all of its columns, where anything depends on that, and
functions that take rows as they come are told in which order to::

    SELECT DISTINCT n FROM (SELECT region, count(*) AS n FROM people GROUP BY region) LIMIT 3
    SELECT list(region) FROM (SELECT region, count(*) AS n FROM people GROUP BY region)

    SELECT DISTINCT n FROM (..) ORDER BY 1 LIMIT 3
    SELECT list(region ORDER BY t._sdc_row) FROM (SELECT region, n, row_number() OVER () AS _sdc_row FROM (..)) AS t

Rows that are alike in all columns are as good as each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from sqlglot import exp

from sdcduck.guard.calls import Numbered
from sdcduck.guard.expressions import aggregates, by_name, is_query, tables_of, unknown_aggregate
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.protect.recursion import is_recursive
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

_ROW = "_sdc_row"
_AS_THEY_COME = (
    exp.ArrayAgg, exp.GroupConcat, exp.First, exp.Last, exp.AnyValue, exp.ArgMax, exp.ArgMin, exp.Mode,
    exp.FirstValue, exp.LastValue, exp.NthValue,
)  # fmt: skip
"""Functions of rows in an order, which they can be told."""
_OF_SEVERAL = (exp.ArgMax, exp.ArgMin, exp.NthValue)
_PLACES = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead)
"""Functions of the place of a row in the order of a window."""
_RANKS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
"""Functions of the place of a value, which rows that are equal share."""


class Need(IntEnum):
    """What is made of the order of a query's rows."""

    NONE = 0
    SUMS = 1
    """Sums of floating-point numbers, whose last digits follow the order: that of the groups of a block."""
    ALL = 2


@dataclass
class _With:
    """A query of WITH.

    Attributes:
        columns: their names.
        of_records: whether its rows are records, which nobody sees.
        need: what is made of the order of its rows.
        recursive: it reads itself, and its rows come in no order.
    """

    columns: list[str]
    of_records: bool
    need: Need = Need.NONE
    recursive: bool = False


def order_rows(draft: Draft) -> None:
    """Give rows an order that follows from what they show.

    >>> after(order_rows, "SELECT row_number() OVER () AS r, n FROM (SELECT count(*) AS n FROM people)")
    SELECT ROW_NUMBER() OVER (ORDER BY "_0"."_sdc_row") AS "r", "_0"."n" AS "n" FROM (SELECT "_0"."n", ROW_NUMBER()
    OVER () AS "_sdc_row" FROM (SELECT "_sdc"."_a0" AS "n" FROM "a block" AS "_sdc") AS "_0") AS "_0" ORDER BY 1, 2
    """
    public = {name: columns for name, columns in draft.visible().items() if draft.policies[name].label == "public"}
    settle_row_order(draft.tree, draft.protection.progress.numbers, public)


def settle_row_order(
    tree: exp.Expr, numbers: MutableMapping[str, Numbered], columns: Mapping[str, frozenset[str]]
) -> None:
    """Put the rows of a protected query in an order that follows from them, in place.

    Args:
        tree: the query, in which tables stand for the blocks.
        numbers: of the blocks, by the names of these tables; those of which nobody needs the order lose it.
        columns: of the public tables, by name.

    Raises:
        Refused: a window sees rows that do not follow from its order.
    """
    if numbers:
        _Rows(numbers, columns).query(tree, {}, Need.ALL)


@dataclass
class _Rows:
    numbers: MutableMapping[str, Numbered]
    columns: Mapping[str, frozenset[str]]

    def query(self, node: exp.Expr, known: Mapping[str, _With], need: Need) -> None:
        """Put the rows of a query in order, as far as that is needed."""
        with_ = node.args.get("with_")
        known = self._with(node, known)
        if _is_cut(node):
            need = Need.ALL
        if isinstance(node, exp.Select):
            self._select(node, known, need)
        elif isinstance(node, exp.SetOperation):
            self._set_operation(node, known, need)
        elif isinstance(node, exp.Subquery):
            if node.args.get("order") is not None and need is Need.ALL:
                _order(node)
                need = Need.NONE
            self.query(node.this, known, need)
        for cte in reversed(with_.expressions if with_ is not None else []):
            before = dict(known)
            if known[folded(cte.alias)].recursive:
                for side in (cte.this.this, cte.this.expression):
                    self.query(side, before, Need.NONE)
                continue
            before.pop(folded(cte.alias))  # in it the name is that of a table, or of a query further out
            self.query(cte.this, before, known[folded(cte.alias)].need)

    def _with(self, node: exp.Expr, known: Mapping[str, _With]) -> dict[str, _With]:
        """What is known in a query: its WITH and those around it."""
        with_ = node.args.get("with_")
        found = dict(known)
        for cte in with_.expressions if with_ is not None else []:
            if is_recursive(cte):
                found[folded(cte.alias)] = _With(_names(cte.this), of_records=False, recursive=True)
                continue
            found[folded(cte.alias)] = _With(_names(cte.this), self._is_of_records(cte.this, found))
        return found

    def _is_of_records(self, node: exp.Expr, known: Mapping[str, _With]) -> bool:
        """Whether the rows of a query or a table are records: with windows and figures of each unit."""
        if isinstance(node, exp.Table):
            name = folded(node.name)
            return known[name].of_records if name in known else not (node.name in self.numbers or name in self.columns)
        known = self._with(node, known)
        if isinstance(node, exp.Select):
            return any(self._is_of_records(table, known) for table in tables_of(node))
        if isinstance(node, exp.SetOperation):
            return self._is_of_records(node.this, known) or self._is_of_records(node.expression, known)
        return isinstance(node, exp.Subquery) and self._is_of_records(node.this, known)

    def _set_operation(self, node: exp.SetOperation, known: Mapping[str, _With], need: Need) -> None:
        keeps = isinstance(node, exp.Union) and not node.args.get("distinct") and node.args.get("order") is None
        keeps = keeps and not _reaches_out(node)
        if not keeps and need is Need.ALL:
            _order(node)
            need = Need.NONE
        for side in (node.this, node.expression):
            self.query(side, known, need)
            if side.args.get("order") is not None and not isinstance(side, exp.Subquery):
                brackets = exp.Subquery()  # an order without them would be that of what they are put together to
                side.replace(brackets)
                brackets.set("this", side)

    def _select(self, select: exp.Select, known: Mapping[str, _With], need: Need) -> None:
        own = list(_own(select))
        if self._is_of_records(select, known):
            for inner in [*tables_of(select), *own]:
                if is_query(inner) or isinstance(inner, exp.Subquery):
                    self.query(inner, known, _need_of(inner))
            return
        windows = [node for node in own if isinstance(node, exp.Window)]
        _write_out_windows(select, windows)
        if any(map(_is_open, windows)):
            raise Refused("SDC005", "ROWS beside EXCLUDE TIES or GROUP, of rows that may be equal: RANGE or GROUPS")
        _settle_distinct(select)
        grouped = select.args.get("group") is not None or any(map(aggregates, _shown(select)))
        told = [node for node in own if isinstance(node, _AS_THEY_COME) or _is_approximate(node)]
        placed = [window for window in windows if _is_placed(window)]
        tables = tables_of(select)
        keeps = len(tables) <= 1 and not any(
            (
                any(self._is_unordered(table, known) for table in tables),
                grouped,
                select.args.get("distinct"),
                select.args.get("order"),
                windows,
                _reaches_out(select),
                any(is_query(node) or isinstance(node, exp.Subquery) for node in own),
            )
        )
        one_row = grouped and select.args.get("group") is None
        sources = need
        if need is Need.ALL and not keeps:
            sources = Need.NONE
            if not one_row:
                _order(select)
        if grouped or windows:
            sources = Need.SUMS
        if told or placed:
            sources = self._tell(select, known, told, placed, grouped=grouped)
        for table in tables:
            self._source(table, known, sources)
        for node in own:
            if is_query(node):
                self.query(node, known, _need_of(node))

    def _is_unordered(self, table: exp.Expr, known: Mapping[str, _With]) -> bool:
        if isinstance(table, exp.Subquery):
            return _reaches_out(table)
        found = known.get(folded(table.name)) if isinstance(table, exp.Table) else None
        return found is not None and found.recursive

    def _source(self, table: exp.Expr, known: Mapping[str, _With], need: Need) -> None:
        if isinstance(table, exp.Subquery):
            self.query(table, known, need)
        elif isinstance(table, exp.Table) and folded(table.name) in known:
            of_with = known[folded(table.name)]
            of_with.need = max(of_with.need, need)
        elif isinstance(table, exp.Table) and table.name in self.numbers and need is Need.NONE:
            self.numbers[table.name] = replace(self.numbers[table.name], order="")

    def _tell(
        self,
        select: exp.Select,
        known: Mapping[str, _With],
        told: Sequence[exp.Expr],
        placed: Sequence[exp.Window],
        *,
        grouped: bool,
    ) -> Need:
        """Tell functions in which order to take rows; what is made of the order of the tables."""
        tables = _seen(select)
        need = Need.SUMS
        of_rows: list[exp.Expr] = []
        if len(tables) == 1:
            need = Need.ALL
            of_rows.append(exp.column(_ROW, tables[0].alias_or_name, quoted=True))
        else:
            for table in tables:
                for name in self._columns_of(table, known):
                    of_rows.append(exp.column(name, table.alias_or_name, quoted=True))
        of_groups = [item for item in _shown(select) if item.find(exp.Window) is None] if grouped else of_rows
        for node in told:
            window = node.find_ancestor(exp.Window, exp.Select)
            if isinstance(window, exp.Window) and _function(window) is node:
                _number_keys(select)
                # An order in the arguments goes before that of the window, so it begins with it.
                _tell_function(node, [*_order_of(window), *_ordered(of_groups)])
            else:
                _tell_function(node, _ordered(of_rows))
        for window in placed:
            _number_keys(select)
            own = _order_within(window)
            if own is not None and isinstance(_function(window), _PLACES):
                own.set("expressions", [*own.expressions, *_order_of(window), *_ordered(of_groups)])
            if not _sees_peers(window) and (own is None or _of_frame(window, "kind") == "ROWS"):
                _add_order(window, of_groups)
        if len(tables) == 1:
            self._number(tables[0], known)
        return need

    def _number(self, table: exp.Expr, known: Mapping[str, _With]) -> None:
        """Give the rows of a table their number."""
        alias = table.alias_or_name
        names = self._columns_of(table, known)
        items: list[exp.Expr] = [exp.column(name, alias, quoted=True) for name in names]
        number = exp.Window(this=exp.RowNumber(), over="OVER")
        if self._is_unordered(table, known):
            number.set("order", exp.Order(expressions=_ordered(items)))
        items.append(exp.alias_(number, _ROW, quoted=True))
        place = exp.Null()
        table.replace(place)
        numbered = exp.Select(expressions=items, from_=exp.From(this=table))
        called = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
        place.replace(exp.Subquery(this=numbered, alias=called))

    def _columns_of(self, table: exp.Expr, known: Mapping[str, _With]) -> list[str]:
        if isinstance(table, exp.Subquery):
            return _names(table.this)
        if isinstance(table, exp.Values):
            return list(table.alias_column_names)
        if folded(table.name) in known:
            return known[folded(table.name)].columns
        if table.name in self.numbers:
            return list(self.numbers[table.name].columns)
        return sorted(self.columns[folded(table.name)])


def _need_of(query: exp.Expr) -> Need:
    """What is made of the order of a subquery in an expression: ARRAY(SELECT ..) is a list in that order."""
    return Need.ALL if isinstance(query.parent, exp.Array) else Need.NONE


def _reaches_out(query: exp.Expr) -> bool:
    """Whether a query names columns of one around it: DuckDB joins both, so that its rows come as those do."""
    return any(column.table and not _is_of(column, query) for column in query.find_all(exp.Column))


def _is_of(column: exp.Column, query: exp.Expr) -> bool:
    """Whether a column belongs to a SELECT in a query."""
    node: exp.Expr | None = column
    while node is not None and node is not query:
        node = node.parent
        if isinstance(node, exp.Select) and column.table in {table.alias_or_name for table in tables_of(node)}:
            return True
    return False


def _seen(select: exp.Select) -> list[exp.Expr]:
    """The tables whose columns may be named: not those of SEMI and ANTI JOIN."""
    hidden = {id(join.this) for join in select.args.get("joins") or [] if join.kind in ("SEMI", "ANTI")}
    return [table for table in tables_of(select) if id(table) not in hidden]


def _names(query: exp.Expr) -> list[str]:
    if isinstance(query, exp.Subquery):
        return _names(query.this)
    if isinstance(query, exp.SetOperation):
        left = _names(query.this)
        return by_name(left, _names(query.expression)) if query.args.get("by_name") else left
    assert isinstance(query, exp.Select)
    return list(query.named_selects)


def _is_cut(node: exp.Expr) -> bool:
    distinct = node.args.get("distinct")
    on = isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None
    return on or node.args.get("limit") is not None or node.args.get("offset") is not None


def _shown(select: exp.Select) -> list[exp.Expr]:
    having = select.args.get("having")
    return [item.unalias() for item in select.expressions] + ([] if having is None else [having.this])


def _own(select: exp.Select) -> Iterator[exp.Expr]:
    """What is in the expressions of a SELECT; of its subqueries the outermost ones, and nothing in them."""
    for key, value in select.args.items():
        if key in ("with_", "from_", "joins"):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr):
                yield from part.walk(prune=lambda node: is_query(node))


def _settle_distinct(select: exp.Select) -> None:
    """Say of which rows that are alike the first is taken, where they are put in order by what they do not show.

    SELECT DISTINCT region FROM t ORDER BY n has the n of any of a region's rows in DuckDB; with DISTINCT ON (1) it is
    the first in that order.
    """
    distinct, order = select.args.get("distinct"), select.args.get("order")
    if distinct is None or order is None or distinct.args.get("on") is not None:
        return
    names = {folded(item.alias_or_name) for item in select.expressions}
    shown = [item.unalias() for item in select.expressions]
    for one in order.expressions:
        by = one.this.unnest()
        named = isinstance(by, exp.Column) and not by.table and folded(by.name) in names
        if not (named or by in shown or isinstance(by, (exp.Literal, exp.Var))):
            distinct.set("on", exp.Tuple(expressions=_places(select)))
            return


def _number_keys(select: exp.Select) -> None:
    """Write GROUP BY ALL with numbers: DuckDB takes no key of it within a window that has aggregates, too."""
    group = select.args.get("group")
    if group is None or not group.args.get("all") or group.expressions:
        return
    keys = [
        place
        for place, item in zip(_places(select), select.expressions, strict=True)
        if not aggregates(item) and unknown_aggregate(item) is None and item.find(exp.Window) is None
    ]
    if keys:
        select.set("group", exp.Group(expressions=keys))


def _function(window: exp.Window) -> exp.Expr:
    inner = window.this
    while isinstance(inner, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        inner = inner.this
    result: exp.Expr = inner
    return result


def _is_approximate(node: exp.Expr) -> bool:
    """Whether this is an approximate quantile, which is another one for the same rows in another order."""
    return isinstance(node, exp.AnonymousAggFunc) and node.name == "approx_quantile" and bool(node.expressions)


def _is_placed(window: exp.Window) -> bool:
    """Whether it depends on the order of rows that are equal in its own order."""
    places, own = isinstance(_function(window), _PLACES), _order_within(window) is not None
    if _sees_peers(window):
        return places and own
    return places or _counts_rows(window) or (own and _of_frame(window, "kind") == "ROWS")


def _order_within(window: exp.Window) -> exp.Order | None:
    """The ORDER BY in the arguments of a function of places or ranks: lag(x ORDER BY y) OVER (..).

    It says which row is before another one; the order of the window says which rows there are.
    """
    function = _function(window)
    if not isinstance(function, (*_PLACES, *_RANKS)):
        return None
    arguments = [part for value in function.args.values() for part in (value if isinstance(value, list) else [value])]
    return next((part for part in arguments if isinstance(part, exp.Order)), None)


def _counts_rows(window: exp.Window) -> bool:
    """Whether it is a figure of so many rows: of those that are equal the order says which are among them."""
    function = _function(window)
    figure = isinstance(function, exp.AggFunc) and not isinstance(function, _RANKS)
    return figure and _of_frame(window, "kind") == "ROWS"


def _sees_peers(window: exp.Window) -> bool:
    """Whether its frame is about rows that are equal in its order, or about one number: it takes no further keys."""
    return _of_frame(window, "kind") in ("RANGE", "GROUPS") or _of_frame(window, "exclude") in ("GROUP", "TIES")


def _is_open(window: exp.Window) -> bool:
    """Whether nothing can say which rows it sees: so many, some of which may be equal and have to stay so."""
    of_rows = _of_frame(window, "kind") == "ROWS" and isinstance(_function(window), exp.AggFunc)
    if isinstance(_function(window), (*_PLACES, *_RANKS)):
        of_rows = of_rows and _order_within(window) is not None
    bounded = {_of_frame(window, "start"), _of_frame(window, "end")} != {"UNBOUNDED"}
    return of_rows and bounded and _sees_peers(window) and window.args.get("order") is not None


def _of_frame(window: exp.Window, part: str) -> str:
    spec = window.args.get("spec")
    return str(spec.args.get(part) or "").upper() if spec is not None else ""


def _ordered(by: Sequence[exp.Expr]) -> list[exp.Expr]:
    return [exp.Ordered(this=one.copy(), nulls_first=False) for one in by]


def _order(query: exp.Expr) -> None:
    """Put the rows in order by all columns, behind what they are put in order by already."""
    order = query.args.get("order")
    if order is not None and any(isinstance(one.this, exp.Var) for one in order.expressions):
        return  # ORDER BY ALL
    before = order.expressions if order is not None else []
    query.set("order", exp.Order(expressions=[*before, *_ordered(_places(query))]))


def _places(query: exp.Expr) -> list[exp.Expr]:
    """The columns of a query by number."""
    return [exp.Literal.number(place) for place in range(1, len(_names(query)) + 1)]


def _add_order(window: exp.Window, by: Sequence[exp.Expr]) -> None:
    order = window.args.get("order")
    before = order.expressions if order is not None else []
    window.set("order", exp.Order(expressions=[*before, *_ordered(by)]))


def _order_of(window: exp.Window) -> list[exp.Expr]:
    order = window.args.get("order")
    return [one.copy() for one in order.expressions] if order is not None else []


def _tell_function(node: exp.Expr, by: Sequence[exp.Expr]) -> None:
    """Write ORDER BY into the arguments of a function, behind what is there."""
    place = "this"
    if isinstance(node, _OF_SEVERAL):  # ORDER BY stands behind the last argument
        last = ("count", "offset", "expression", "this")
        place = next(key for key in last if node.args.get(key) is not None)
    value = node.expressions[-1] if isinstance(node, exp.AnonymousAggFunc) else node.args[place]
    if isinstance(value, exp.Distinct):
        by = _ordered(value.expressions[:1])
    elif isinstance(value, exp.Order) and isinstance(value.this, exp.Distinct):
        return
    if isinstance(value, exp.Order):
        value.set("expressions", [*value.expressions, *by])
    elif isinstance(node, exp.AnonymousAggFunc):
        node.set("expressions", [*node.expressions[:-1], exp.Order(this=value, expressions=list(by))])
    else:
        node.set(place, exp.Order(this=value, expressions=list(by)))


def _write_out_windows(select: exp.Select, windows: Sequence[exp.Window]) -> None:
    """Write windows that have a name out: each may get an order of its own, and the frame may be that of the name."""
    named = {folded(window.name): window for window in select.args.get("windows") or []}
    for window in windows:
        while window.alias and folded(window.alias) in named:
            of_name = named[folded(window.alias)]
            for key in ("partition_by", "order", "spec"):
                if not window.args.get(key) and of_name.args.get(key):
                    value = of_name.args[key]
                    window.set(key, [part.copy() for part in value] if isinstance(value, list) else value.copy())
            alias = of_name.args.get("alias")
            window.set("alias", alias.copy() if alias is not None else None)
