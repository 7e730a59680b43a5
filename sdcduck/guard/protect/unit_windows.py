"""Windows over the rows of one unit: the first visit, the time since the one before, how many there are.

::

    SELECT ward, count(*) AS n FROM (
        SELECT * FROM visits QUALIFY row_number() OVER (PARTITION BY patient_id ORDER BY day) = 1
    ) GROUP BY ward

What a window says of a row is made of dimensions of rows of the same unit, so that it is a dimension of that row. The
block stays unit-level and is split in two, as one that groups by the unit (see `per_unit`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from sdcduck.guard.expressions import aggregates, duckdb_name, family, function_of, text, whole_number
from sdcduck.guard.protect.figures import Figures, refuse_clauses, refuse_queries
from sdcduck.guard.protect.scope import Scope
from sdcduck.guard.protect.total import TRIED
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Relation, Role
from sdcduck.quoting import folded

_TAKEN = frozenset(["with_", "expressions", "from_", "joins", "where", "qualify", "windows"])
_OF_PEERS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
_OF_FRAMES = (exp.FirstValue, exp.LastValue, exp.NthValue)
_OF_NEIGHBOURS = (exp.Lag, exp.Lead, *_OF_FRAMES)
_PLACED = (*_OF_PEERS, *_OF_NEIGHBOURS, exp.RowNumber)


def with_windows(scope: Scope) -> Relation:
    """Write a block of rows with windows as one over rows with figures of their unit, in place; their relation.

    Raises:
        Refused: a window over rows of several units, or one that depends on the order in which rows come.
    """
    select, rows = scope.select, _Rows(scope)
    refuse_clauses(select, _TAKEN, "of unit-level rows")
    items = [exp.alias_(rows.around(item.unalias()), item.alias_or_name, quoted=True) for item in select.expressions]
    qualify = select.args.get("qualify")
    kept = None if qualify is None else rows.around(qualify.this)
    rows.figures.write(items, kept, None)
    return rows.figures.relation(several=scope.has_several, one_row_per_unit=scope.policy.one_row_per_unit)


_PARTS = ("this", "partition_by", "order", "spec", "alias", "over")
_ALL = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def _frame(spec: exp.Expr | None) -> str:
    """The SQL of a frame that counts rows; empty: it is the one that there is without one."""
    if spec is None:
        return ""
    kind, *ends = [
        str(spec.args.get(part) or "").upper() for part in ("kind", "start", "start_side", "end", "end_side")
    ]
    if spec.args.get("exclude"):
        raise Refused("SDC045", "a window with EXCLUDE")
    if ends == ["UNBOUNDED", "PRECEDING", "UNBOUNDED", "FOLLOWING"]:
        return _ALL
    if kind == "RANGE" and ends[:2] == ["UNBOUNDED", "PRECEDING"] and ends[2] in ("", "CURRENT ROW"):
        return ""
    if kind != "ROWS" or not all(_END.fullmatch(end) for end in (" ".join(ends[:2]), " ".join(ends[2:]))):
        raise Refused("SDC045", "a window with a frame of anything but so many rows")
    return f"ROWS BETWEEN {' '.join(ends[:2])} AND {' '.join(ends[2:]).strip() or 'CURRENT ROW'}"


_OFFSET = re.compile(r"-?\d{1,9}")
_END = re.compile(r"(?:UNBOUNDED|\d{1,9}) (?:PRECEDING|FOLLOWING)|CURRENT ROW | ")


def _over(function: str, by: list[str], order: list[str], frame: str) -> str:
    sorted_by = f" ORDER BY {', '.join(order)}" if order else ""
    return f"{function} OVER (PARTITION BY {', '.join(by)}{sorted_by}{f' {frame}' if frame else ''})"


def _written_out(window: exp.Window, named: Mapping[str, exp.Window]) -> exp.Window:
    """A window with the parts of those that it names: ``OVER w``, ``OVER (w ORDER BY day)``."""
    of = window.args.get("alias")
    if of is None:
        return window
    if folded(of.name) not in named:
        raise Refused("SDC030", of.name)
    base, made = _written_out(named[folded(of.name)], named), window.copy()
    made.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        if base.args.get(part) and window.args.get(part):
            raise Refused("SDC045", f"a window that says once more what {of.name} says")
        made.set(part, window.args.get(part) or base.args.get(part))
    return made


def without_distinct_on(select: exp.Select) -> None:
    """Write ``DISTINCT ON (unit) .. ORDER BY day`` of records as the first row of each, in place."""
    distinct, order = select.args.get("distinct"), select.args.get("order")
    on = None if distinct is None else distinct.args.get("on")
    around = [clause for clause in _AROUND_DISTINCT if select.args.get(clause) is not None]
    if on is None or around or any(map(aggregates, select.expressions)):
        return
    items = {item.alias_or_name: item.unalias() for item in select.expressions}

    def named(node: exp.Expr) -> exp.Expr:
        is_name = isinstance(node, exp.Column) and not node.table and node.name in items
        return items[node.name].copy() if is_name else node

    by = [named(part) for part in (on.expressions if isinstance(on, exp.Tuple) else [on])]
    for ordered in order.expressions if order is not None else []:
        ordered.set("this", named(ordered.this))
    number = exp.Window(this=exp.RowNumber(), partition_by=by, order=order, over="OVER")
    select.set("qualify", exp.Qualify(this=exp.EQ(this=number, expression=exp.Literal.number(1))))
    select.set("distinct", None)
    select.set("order", None)


def _told(window: exp.Window) -> str:
    """What is said of a window over the records of several units."""
    order = window.args.get("order")
    by = order.expressions[0].this if order is not None and len(order.expressions) == 1 else None
    groups = whole_number(window.this.this) if isinstance(window.this, exp.Ntile) else None
    if isinstance(by, exp.Column) and groups is not None and 1 < groups <= _MOST_GROUPS:
        shares = ", ".join(f"{place / groups:.3g}" for place in range(1, groups))
        borders = f"the borders of {groups} groups are quantile_cont({by.name}, [{shares}])"
        return f"a rank among records: {borders}; {_ANSWERED}"
    if isinstance(by, exp.Column) and _is_rank(window.this):
        return f"a rank among records: the median is quantile_disc({by.name}, 0.5); {_ANSWERED}"
    return f"a window: {_ANSWERED}"


def _is_rank(function: exp.Expr) -> bool:
    """Whether this numbers rows."""
    return isinstance(function, (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile))


_MOST_GROUPS = 10
_ANSWERED = "OVER (PARTITION BY the unit ..) is answered"
_AROUND_DISTINCT = ("group", "having", "qualify", "limit", "offset")


class _Rows:
    """The rows of a block, with what windows say of them."""

    def __init__(self, scope: Scope) -> None:
        self.scope, self.figures = scope, Figures(scope)
        windows = scope.select.args.get("windows") or []
        # One can name only those before it, so that none is part of itself.
        self.named: dict[str, exp.Window] = {}
        for window in windows:
            self.named[folded(window.name)] = _written_out(window, self.named)

    def around(self, node: exp.Expr) -> exp.Expr:
        """An expression over rows and windows as one over their names."""
        return node.copy().transform(self._replaced)

    def _replaced(self, node: exp.Expr) -> exp.Expr:
        refuse_queries(node)
        if isinstance(node, exp.Window):
            return self.figures.shown(self.figures.column(self._window(node)), node)
        return self.figures.shown(self._passed_on(node), node) if isinstance(node, exp.Column) else node

    def _passed_on(self, column: exp.Column) -> str:
        role = self.scope.role(column)
        name = self.figures.column(text(column), role)
        if role is Role.UNIT and self.scope.unit_of(column) is None:
            self.figures.missing.add(name)
        if role is Role.OTHER:
            self.figures.others[name] = self.scope.kind_of(column)
        if role is Role.MEASURE:
            self.scope.refuse_repeated(column)
            self.figures.measures[name] = self.scope.called(column)
            self.figures.bounds[name], self.figures.bands[name] = self.scope.bounds(column), self.scope.bands(column)
            added = self.scope.added(column)
            if added is not None:
                known = None if added.known is None else self.figures.column(added.known)
                self.figures.added[name] = replace(added, rows=self.figures.column(added.rows), known=known)
        return name

    def _window(self, window: exp.Window) -> str:
        node = _written_out(window, self.named)
        if any(value for part, value in node.args.items() if part not in _PARTS):
            raise Refused("SDC045", "an unusual window")
        parts = node.args.get("partition_by") or []
        if not self.scope.are_all_units(parts):
            raise Refused("SDC045", _told(node))
        units = [part if self.scope.kind_of(part) > 0 else self.scope.unit_of(part) for part in parts]
        by = [self.figures.value(part) if unit is None else text(unit) for part, unit in zip(parts, units, strict=True)]
        order, frame = self.figures.order(node.args.get("order")), _frame(node.args.get("spec"))
        function, condition = function_of(node)
        nulls = ""
        if isinstance(function, (exp.IgnoreNulls, exp.RespectNulls)):
            nulls = " IGNORE NULLS" if isinstance(function, exp.IgnoreNulls) else ""
            function = function.this
        of_rows = frame not in ("", _ALL)
        if not isinstance(function, _PLACED):
            if nulls:
                raise Refused("SDC045", f"a window: {duckdb_name(function)} with IGNORE NULLS")
            if isinstance(function, (exp.GroupConcat, exp.ArrayAgg)):  # one for each row, of all of them
                raise Refused("SDC050", f"{duckdb_name(function)} OVER (..): GROUP BY the unit, and join that")
            if self.scope.has_measure(function) and not isinstance(function, exp.Count):
                raise Refused("SDC041", f"{duckdb_name(function)} OVER (..)")
            known = "true" if condition is None else self.scope.condition_sql(condition)
            aggregate = self.figures.aggregate(function, known)
            order = [] if frame == _ALL else order + (self.figures.ties() if of_rows else [])
            return _over(aggregate, by, order, frame if of_rows else "")
        if of_rows or condition is not None:
            raise Refused("SDC045", f"a window: {duckdb_name(function)} with a frame or a FILTER")
        frame = frame if order else _ALL  # without ORDER BY all rows are in one place
        if frame != _ALL and type(function) in _OF_FRAMES and (nulls or not isinstance(function, exp.FirstValue)):
            # It would depend on which rows ORDER BY has in one place with this one.
            raise Refused("SDC045", f"a window: {duckdb_name(function)} without {_ALL}")
        if type(function) not in _OF_PEERS:
            order += self.figures.ties()
        # Others have no use for the frame of all rows, which programs write nevertheless.
        return _over(self._placed(function, nulls), by, order, frame if type(function) in _OF_FRAMES else "")

    def _placed(self, function: exp.Expr, nulls: str) -> str:
        """A function of the place of a row among the others."""
        value, offset, default = (function.args.get(part) for part in ("this", "offset", "default"))
        others = any(given for part, given in function.args.items() if part not in ("this", "offset", "default"))
        if others or isinstance(value, (exp.Order, exp.Distinct)):
            raise Refused("SDC045", f"a window: {duckdb_name(function)}")
        if offset is not None and not _OFFSET.fullmatch(text(offset)):
            raise Refused("SDC045", f"a window: {duckdb_name(function)} by what is no number")
        if (value is not None) != isinstance(function, _OF_NEIGHBOURS) or (nulls and value is None):
            raise Refused("SDC045", f"a window: {duckdb_name(function)}")
        if value is None:
            return f"{duckdb_name(function)}()"
        values = [self.figures.value(value), *([] if offset is None else [text(offset)])]
        if default is not None:
            values[0], other = self._of_one_type(value, default)
            values.append(other)
        return f"{duckdb_name(function)}({', '.join(values)}{nulls})"

    def _of_one_type(self, value: exp.Expr, default: exp.Expr) -> tuple[str, str]:
        """What `lag` shows, and what where there is no row, in their common type.

        DuckDB would cast the one to the type of the other, with an error where there is such a record.
        """
        kinds = family(value), family(default)
        whole = default.is_int and kinds[0] in ("whole", "decimal", "real")
        constant = whole or isinstance(default, exp.Null) or (isinstance(default, exp.Literal) and default.is_string)
        alike = value.type == default.type or (kinds[0] == kinds[1] and kinds[0] not in (None, "decimal", "real"))
        one, other = self.figures.value(value), text(default) if constant else self.figures.value(default)
        if not (constant or alike):
            raise Refused("SDC045", "a window: a default of another type; cast it")
        first, second = (f"{TRIED}(CASE WHEN {there} THEN {one} ELSE {other} END)" for there in ("true", "false"))
        return first, second
