"""What an analyst wrote around the aggregates of a block, in terms of released numbers."""

from __future__ import annotations

from sqlglot import exp

from sdcduck.guard.expressions import (
    is_aggregate,
    is_query,
    released,
    text,
    without_nulls,
)
from sdcduck.guard.protect.aggregates import distinct_values, number, quantiles
from sdcduck.guard.protect.composed import of_other_numbers
from sdcduck.guard.protect.described import Described
from sdcduck.guard.protect.groups import Released
from sdcduck.guard.protect.quantiles_of_values import quantile_of_values
from sdcduck.guard.protect.scope import Scope
from sdcduck.guard.protect.statistics import statistic
from sdcduck.guard.protect.values import counts_values, is_of_values, number_by_values, number_of_values
from sdcduck.guard.refusals import Refused, unknown_column
from sdcduck.quoting import folded

_OF_GROUPS = (statistic, number_by_values, quantile_of_values)
"""Aggregates that are made of what is published for each group of values; the first that has an answer says it."""


class Split:
    """What is written around the aggregates of a block, in terms of the released numbers."""

    def __init__(self, scope: Scope, released: Released) -> None:
        self.scope, self.released = scope, released
        self.described = Described(scope, len(scope.progress.statistics))
        self.values: dict[str, exp.Select] = {}

    def outer(self, node: exp.Expr) -> exp.Expr:
        """The expression with group keys and aggregates replaced by released columns."""
        if isinstance(node, exp.Ordered):  # its text is that of what it orders by
            return self._children(node)
        if isinstance(node, exp.Filter) and is_aggregate(without_nulls(node.this)):
            return self._aggregate(without_nulls(node.this), node.expression.this)
        if is_aggregate(without_nulls(node)):
            return self._aggregate(without_nulls(node), None)
        key = self.released.keys.get(text(node))
        if key is not None:
            return released(key[0], node)
        if is_query(node) or isinstance(node, (exp.Subquery, exp.Exists)):
            return node
        if isinstance(node, exp.Grouping):
            return self._grouping(node)
        if isinstance(node, exp.Window):
            return self.window(node)
        if isinstance(node, exp.Column):
            if not node.table:  # in HAVING, where sqlglot leaves what it does not know
                called = {folded(item.alias) for item in self.scope.select.expressions if item.alias}
                raise unknown_column(node.name, called.union(*(of.columns for of in self.scope.sources.values())))
            raise Refused("SDC042", node.name)
        return self._children(node)

    def _children(self, node: exp.Expr) -> exp.Expr:
        result = type(node)()
        result.type = node.type
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                result.set(key, self.outer(value))
            elif isinstance(value, list):
                result.set(key, [self.outer(part) if isinstance(part, exp.Expr) else part for part in value])
            else:
                result.set(key, value)
        return result

    def window(self, node: exp.Window) -> exp.Expr:
        """A window over released numbers, named or not: its function stays, what it works on is protected."""
        result = node.copy()
        function = node.this
        if not isinstance(function, exp.Identifier):
            plain = function.find(exp.Column, exp.AggFunc) is None
            result.set("this", function.copy() if plain else self._window_function(function))
        for key in ("partition_by", "order"):
            value = node.args.get(key)
            if isinstance(value, exp.Expr):
                result.set(key, self._children(value))
            elif isinstance(value, list):
                result.set(key, [self.outer(part) for part in value])
        return result

    def _window_function(self, node: exp.Expr) -> exp.Expr:
        """The function of a window, which is no aggregate of records, whatever FILTER or IGNORE NULLS is around it."""
        if not isinstance(node, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
            return self._children(node)
        result = type(node)(this=self._window_function(node.this))
        if isinstance(node, exp.Filter):
            result.set("expression", self._children(node.expression))
        return result

    def _aggregate(self, node: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
        written = of_other_numbers(self.scope, node, condition)
        if written is not None:
            return self.outer(written)
        several = quantiles(node)
        if several:
            return exp.Array(expressions=[self._aggregate(one, condition) for one in several])
        of_values = is_of_values(self.scope, node)
        if of_values and not self.scope.method.groups_tell and not counts_values(node):
            column = self.released.published(distinct_values(self.scope, node, condition))
            self.described.learn(column, node)
            return released(column, node)
        if of_values:
            name = f"_n{len(self.values)}"
            self.values[name] = number_of_values(self.scope, node, condition, self.released)
            self.described.worked_out(name, node)
            return released(name, node)
        for of_groups in _OF_GROUPS if self.scope.method.groups_tell else ():
            by_values = of_groups(self.scope, node, condition, self.released)
            if by_values is None:
                continue
            name = f"_n{len(self.values)}"
            self.values[name] = by_values
            self.described.worked_out(name, node)
            return released(name, node)
        column = self.released.published(number(self.scope, node, condition, self.released.numbers))
        self.described.learn(column, node)
        return released(column, node)

    def _grouping(self, node: exp.Grouping) -> exp.Expr:
        places = []
        for part in node.expressions:
            key = self.released.keys.get(text(part))
            if key is None:
                raise Refused("SDC042", "GROUPING of a column that is not grouped")
            places.append(key[1].sql("duckdb"))
        asked = f"GROUPING({', '.join(places)})"
        return self._named(self.released.numbers.grouping(asked, len(places)), node)

    def _named(self, sql: str, of: exp.Expr) -> exp.Expr:
        return released(self.released.published(sql), of)
