"""How many rows joins without an equality make, and which aggregates are not asked of very many.

Lists, texts, medians, quantiles, modes and what is aggregated in an order hold all their values, and are made of them
in a last step, in which DuckDB does not hear that it is stopped. A table is as long as its custodian made it; a join
that pairs every row with every other one is as long as an analyst wants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, prod

from sqlglot import exp

from sdcduck.guard.expressions import conjuncts, has_aggregate, is_query, tables_of
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

_MOST = 1_000_000
"""Rows; an ordered list of so many takes a second."""

_OF_RELEASED = _OF_A_LIST = 1000
"""Rows that released numbers count as, which must not be counted here, and items of a list that nobody knows."""

_HOLDING = (
    exp.ArrayAgg, exp.GroupConcat, exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.Mode,
)  # fmt: skip
_PAIRING = (exp.EQ, exp.NullSafeEQ)


@dataclass(frozen=True)
class _Rows:
    """How many rows a relation has, at most, and whether a join without an equality made them."""

    number: float
    paired: bool = False


_Named = Mapping[str, _Rows]


def refuse_values_of_products(tree: exp.Expr, rows_of: Callable[[str], float | None]) -> None:
    """Refuse aggregates that hold all their values over joins without an equality that may make very many rows.

    Joins with one are taken to have one row of all relations but one for each value. That is so of keys; with others
    a query can be as long, and is stopped later than it should.

    Args:
        tree: a protected query with all names in full.
        rows_of: how many rows a public relation has, infinitely many where nobody knows; None: it is none.

    Raises:
        Refused: there is one.
    """
    if any(map(_holds_values, tree.find_all(exp.AggFunc, exp.Anonymous))):
        _Query(rows_of).of(tree, {}, {})


def _holds_values(node: exp.Expr) -> bool:
    if not isinstance(node, (exp.AggFunc, exp.Anonymous)):
        return False
    return isinstance(node, _HOLDING) or any(isinstance(part, exp.Order) for part in node.iter_expressions())


@dataclass(frozen=True)
class _Query:
    rows_of: Callable[[str], float | None]

    def of(self, node: exp.Expr, ctes: _Named, around: _Named) -> _Rows:
        """The rows of a query.

        Args:
            around: the relations that it may be correlated with.
        """
        with_ = node.args.get("with_")
        for cte in with_.expressions if with_ is not None else ():
            ctes = {**ctes, folded(cte.alias): self.of(cte.this, ctes, around)}
        if isinstance(node, exp.SetOperation):
            left, right = (self.of(side, ctes, around) for side in (node.this, node.expression))
            return _cut(node, _Rows(left.number + right.number, left.paired or right.paired))
        if isinstance(node, exp.Select):
            return self._select(node, ctes, around)
        return self.of(node.this, ctes, around) if isinstance(node, exp.Subquery) else _Rows(1)

    def _select(self, select: exp.Select, ctes: _Named, around: _Named) -> _Rows:
        relations = tables_of(select)
        own = {relation.alias_or_name: self._relation(relation, ctes, around) for relation in relations}
        visible = {**around, **own}
        parts = _parts(select)
        found = [node for part in parts for node in part.walk(prune=is_query)]
        for query in filter(is_query, found):
            self.of(query, ctes, visible)
        # What a correlated subquery looks at is put beside each row around it.
        named = {column.table for column in select.find_all(exp.Column)}
        made = _joined(select, own | {name: rows for name, rows in around.items() if name in named})
        if made.paired and made.number > _MOST and any(map(_holds_values, found)):
            raise Refused("SDC091", _INSTEAD)
        if select.args.get("group") is None and any(map(has_aggregate, select.expressions)) and not _windows(select):
            return _Rows(1)
        return _cut(select, _Rows(made.number * prod(map(_items, parts)), made.paired))

    def _relation(self, relation: exp.Expr, ctes: _Named, around: _Named) -> _Rows:
        if isinstance(relation, exp.Table):
            name = folded(relation.name)
            if name in ctes:
                return ctes[name]
            number = self.rows_of(name)
            return _Rows(_OF_RELEASED if number is None else number)
        if isinstance(relation, exp.Values):
            return _Rows(len(relation.expressions))
        return self.of(relation, ctes, around) if isinstance(relation, exp.Query) else _Rows(_OF_A_LIST)


_INSTEAD = (
    "a list, text, order, median, quantile or mode of more than a million rows that a join without an equality makes: "
    "join by column = column, or aggregate each table first"
)


def _parts(select: exp.Select) -> list[exp.Expr]:
    """What stands in a SELECT, but for its WITH and the relations of its FROM."""
    of_joins = [join.args.get("on") for join in select.args.get("joins") or []]
    others = (value for key, value in select.args.items() if key not in ("with_", "from_", "joins"))
    listed = [part for value in others for part in (value if isinstance(value, list) else [value])]
    return [part for part in [*of_joins, *listed] if isinstance(part, exp.Expr)]


def _joined(select: exp.Select, relations: _Named) -> _Rows:
    """The rows of relations that are joined: those that equalities tie have those of the longest, others are paired."""
    tied = {name: {name} for name in relations}
    for left, right in _ties(select, relations):
        both = tied[left] | tied[right]
        tied.update(dict.fromkeys(both, both))
    together = {id(names): names for names in tied.values()}.values()
    numbers = [max(relations[name].number for name in names) for names in together]
    paired = sum(number > 1 for number in numbers) > 1 or any(rows.paired for rows in relations.values())
    return _Rows(prod(numbers), paired)


def _ties(select: exp.Select, relations: _Named) -> list[tuple[str, str]]:
    """Pairs of relations between which there is an equality."""
    joins: list[exp.Join] = select.args.get("joins") or []
    where = select.args.get("where")
    conditions = [*(join.args.get("on") for join in joins), None if where is None else where.this]
    found = []
    for condition in (one for given in conditions if given is not None for one in conjuncts(given)):
        if isinstance(condition, _PAIRING):
            sides = [
                {column.table for column in side.find_all(exp.Column)} & set(relations)
                for side in (condition.this, condition.expression)
            ]
            found += [(one, other) for one in sides[0] for other in sides[1] if one != other]
    first = next(iter(relations), "")
    for join in joins:
        name = join.this.alias_or_name
        if join.args.get("using") or join.method == "NATURAL" or join.kind in ("SEMI", "ANTI"):
            found.append((first, name))
    return found


def _windows(select: exp.Select) -> bool:
    return any(item.find(exp.Window) is not None for item in select.expressions)


def _items(part: exp.Expr) -> float:
    """How many rows UNNEST makes of one."""
    lists = [node.this for node in part.find_all(exp.Explode)]
    lists += [inner for node in part.find_all(exp.Unnest) for inner in node.expressions]
    return prod(len(one.expressions) if isinstance(one, exp.Array) else _OF_A_LIST for one in lists)


def _cut(query: exp.Expr, rows: _Rows) -> _Rows:
    limit = query.args.get("limit")
    number = limit.expression if isinstance(limit, exp.Limit) else None
    most = float(number.this) if isinstance(number, exp.Literal) and number.this.isdecimal() else inf
    return _Rows(min(rows.number, most), rows.paired)
