"""Figures of units: columns over the rows of one unit each, which stand in a part of a block of their own.

What the analyst wrote around them is written over their names, and is then checked like any expression over records.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlglot import exp, parse_one

from sdcduck.guard.calls import both, chosen
from sdcduck.guard.expressions import case, digits, duckdb_name, family, is_query, is_wide, text, typed
from sdcduck.guard.methods.carried import CARRIED
from sdcduck.guard.protect.bands import bands_of
from sdcduck.guard.protect.scope import Scope
from sdcduck.guard.protect.values import owned_values
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Added, Label, Relation, Role
from sdcduck.quoting import literal

FIGURES = "_sdc_p"
"""The alias of the part of a block that has the figures of units."""

_LEAST = {exp.Min: "min", exp.Max: "max", exp.AnyValue: "min"}  # any value: the same one each time
_MOST_DIGITS = 18  # of so many digits 10^20 numbers add up to less than 10^38
_LONGEST_SEPARATOR = 10
_TRUTHS = {exp.LogicalOr: "max", exp.LogicalAnd: "min"}


class Figures:
    """The columns of the part of a block that has the figures of units: a relation for what is around them."""

    def __init__(self, scope: Scope) -> None:
        if scope.method.from_cells:
            raise Refused("SDC052", "what each unit has: a publication has cells, and no units")
        self.scope = scope
        self.columns: dict[str, str] = {}
        self.roles: dict[str, Role] = {}
        self.missing: set[str] = set()
        self.measures: dict[str, str] = {}
        self.added: dict[str, Added] = {}
        self.counts: set[str] = set()
        self.bounds: dict[str, tuple[float, ...]] = {}
        self.declared: dict[str, tuple[float, float]] = {}
        """Under differential privacy what sums of units are between, by what they are called."""
        self.bands: dict[str, tuple[float, ...]] = {}
        self.others: dict[str, int] = {}
        self.owned: set[str] = set()

    def column(self, sql: str, role: Role = Role.COMPUTED) -> str:
        """The name of a column; the same SQL has the same name again."""
        name = self.columns.setdefault(sql, f"_p{len(self.columns)}")
        self.roles[name] = role
        return name

    def shown(self, name: str, of: exp.Expr) -> exp.Column:
        """A column, in place of what it is made of."""
        return typed(exp.column(name, FIGURES, quoted=True), of)

    def write(self, items: Sequence[exp.Expr], kept: exp.Expr | None, groups: Sequence[str] | None) -> None:
        """Write the block as one over the figures.

        Args:
            items: what is written around the figures, with the names of the columns of the block.
            kept: the condition for a row of figures to be there.
            groups: the columns to group by; None: there is one row of figures for each row.
        """
        select, made = self.scope.select, self.scope.over_source()
        columns = [f"{sql} AS {name}" for sql, name in self.columns.items()]
        for place, hidden in enumerate(self.scope.method.hidden()):
            column = text(exp.column(hidden, self.scope.alias, quoted=True))
            # The rows of a unit have one record key.
            columns.append(f"{column if groups is None else f'max({column})'} AS {CARRIED}{place}")
        made.set("expressions", _parsed(columns))
        if groups is not None:
            made.set("group", exp.Group(expressions=_parsed(groups)))
        for clause in [clause for clause in select.args if clause not in ("with_", "expressions", "from_")]:
            select.set(clause, None)
        select.set("expressions", list(items))
        alias = exp.TableAlias(this=exp.to_identifier(FIGURES, quoted=True))
        select.set("from_", exp.From(this=exp.Subquery(this=made, alias=alias)))
        if kept is not None:
            select.set("where", exp.Where(this=kept))
        self.scope.progress.made_around(made)

    def relation(self, *, several: bool, one_row_per_unit: bool) -> Relation:
        """What the figures are, for the block that is written over them."""
        policy = replace(self.scope.policy, one_row_per_unit=one_row_per_unit)
        if self.declared:
            policy = replace(policy, bounds=(*policy.bounds, *self.declared.items()))
        return Relation(
            Label.UNIT, frozenset(self.roles), self.roles, policy,
            rows_of=self.scope.rows_of if several else (), tables=self.scope.tables, missing=frozenset(self.missing),
            measures=self.measures, added=self.added, counts=frozenset(self.counts), bounds=self.bounds,
            bands=self.bands, others=self.others, owned=frozenset(self.owned),
        )  # fmt: skip

    # --- The order of the rows of one unit --------------------------------------------------------------------------

    def order(self, order: exp.Expr | None) -> list[str]:
        """The SQL of what rows are ordered by, but for the unit, which they have in common."""
        found = []
        for ordered in [] if order is None else order.expressions:
            if self.scope.unit_of(ordered.this) is not None or self.scope.kind_of(ordered.this) > 0:
                continue
            if isinstance(ordered.this, exp.Var):
                raise Refused("SDC045", "ORDER BY ALL of unit-level rows")
            checked = ordered.copy()
            checked.set("this", self.scope.over_dimensions(ordered.this).copy())
            found.append(checked.sql("duckdb"))
        return found

    def ties(self) -> list[str]:
        """What decides between rows that ORDER BY has in one place: else it would be the order in which they come.

        Measures come last, and not by their size. Rows that have one place without them are the same to all that is
        asked of single rows: in their dimensions as texts (0.0 and -0.0, or 'a' and 'A' of a collation, are equal and
        yet not the same), in whether there are measures and units, and in the bands of measures.
        """
        every = [
            (text(exp.column(name, alias, quoted=True)), role)
            for alias in self.scope.units
            for name, role in sorted(self.scope.sources[alias].roles.items())
        ]
        dimensions = [column for column, role in every if role in (Role.DIMENSION, Role.COMPUTED)]
        measures = [column for column, role in every if role is Role.MEASURE]
        rows = [added.rows for alias in self.scope.units for added in self._added(alias)]
        there = [f"{column} IS NULL" for column, role in every if role in (Role.MEASURE, Role.UNIT)]
        known = [added.known for alias in self.scope.units for added in self._added(alias) if added.known is not None]
        bands = [
            condition
            for alias in self.scope.units
            for name, borders in sorted(self.scope.sources[alias].bands.items())
            for condition in bands_of(text(exp.column(name, alias, quoted=True)), borders)
        ]
        return [*dimensions, *map(_as_text, dimensions), *there, *known, *bands, *map(_as_text, measures), *rows]

    def _added(self, alias: str) -> list[Added]:
        names = sorted(self.scope.sources[alias].added)
        return [
            added for name in names if (added := self.scope.added(exp.column(name, alias, quoted=True))) is not None
        ]

    # --- Aggregates of dimensions of the rows of one unit -----------------------------------------------------------

    def value(self, node: exp.Expr) -> str:
        """The SQL of an expression over dimensions."""
        return self.scope.over_dimensions(node).sql("duckdb")

    def one_of_equal(self, node: exp.Expr) -> str:
        """The SQL of a value that no other equals: no -0.0, one NaN, and no intervals (a month is 30 days)."""
        kinds = {part.this for part in node.type.find_all(exp.DataType)} if node.type is not None else set()
        if exp.DataType.Type.INTERVAL in kinds:
            raise Refused("SDC050", "intervals of each unit: take a number of days")
        if family(node) == "real":
            return f"_sdc_one_of_equal({self.value(node)})"
        if kinds & {exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT}:
            raise Refused("SDC050", "lists or structs of floating-point numbers of each unit: take one number of them")
        return self.value(node)

    def aggregate(self, node: exp.Expr, condition: str) -> str:
        """The SQL of an aggregate, over the rows for which a condition holds.

        Raises:
            Refused: it is of measures, or depends on the order of rows.
        """
        kind = type(node)
        if isinstance(node, (exp.GroupConcat, exp.ArrayAgg)):
            return self._texts(node, condition)
        if isinstance(node.this, exp.Distinct) and not isinstance(node, (exp.Count, exp.Sum, exp.Avg)):
            raise Refused("SDC051", f"{duckdb_name(node)} of DISTINCT")
        if isinstance(node, exp.CountIf):  # NULL, and no 0, where the condition is known of no row
            return f"count_if({chosen(condition, self.scope.condition_sql(node.this))})"
        if isinstance(node, exp.Count):
            return self._count(node, condition)
        if isinstance(node, (exp.Sum, exp.Avg)):
            return self._sum(node, condition)
        if any(value for part, value in node.args.items() if part != "this"):
            raise Refused("SDC050", f"{duckdb_name(node)} of the rows of each unit")
        if kind in _TRUTHS:
            return f"{_TRUTHS[kind]}({chosen(condition, self.scope.condition_sql(node.this))})"
        if kind in _LEAST and not isinstance(node.this, exp.Order):
            return f"{_LEAST[kind]}({chosen(condition, self.one_of_equal(node.this))})"
        if isinstance(node, exp.Mode):
            # Of several values that are there most often the least one: not that of the row that happens to come first.
            value = chosen(condition, self.one_of_equal(node.this))
            return f"mode({value} ORDER BY {value})"
        if isinstance(node, exp.Median) and family(node.this) == "whole" and not is_wide(node.this):
            return f"median({chosen(condition, self._whole(node.this))})"
        raise Refused("SDC050", f"{duckdb_name(node)} of the rows of each unit")

    def _texts(self, node: exp.GroupConcat | exp.ArrayAgg, condition: str) -> str:
        """The texts of the rows of a unit, in an order that is told: string_agg(x ORDER BY day).

        They are those of one column, and of rows that are there once: what is put together again and again, of a unit
        with many rows, would take long.
        """
        order = node.this if isinstance(node.this, exp.Order) else None
        inner = node.this if order is None else order.this
        value = inner.expressions[0] if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1 else inner
        separator = node.args.get("separator")
        others = [part for part, given in node.args.items() if given and part not in ("this", "separator")]
        known = separator is None or (isinstance(separator, exp.Literal) and len(separator.this) <= _LONGEST_SEPARATOR)
        plain = isinstance(value, exp.Column) and self.scope.role(value) is Role.DIMENSION and family(value) == "text"
        if len(self.scope.rows_of) > 1:
            raise Refused(
                "SDC050", f"{duckdb_name(node)} of rows of each unit that a join repeats: put them together before"
            )
        if others or not known or not plain:
            raise Refused("SDC050", f"{duckdb_name(node)} of the rows of each unit, of anything but a column of texts")
        shown = self.value(value)
        if isinstance(inner, exp.Distinct):
            by = [] if order is None else order.expressions
            if len(by) > 1 or any(text(one.this) != text(value) for one in by):
                raise Refused("SDC051", f"{duckdb_name(node)} of DISTINCT, in another order than its own")
            shown = f'CAST({shown} AS VARCHAR) COLLATE "C"'  # of 'a' and 'A' not the one that happens to come first
            ordered = f"{shown} {'DESC' if by and by[0].args.get('desc') else 'ASC'} NULLS LAST"
        elif order is None:
            raise Refused("SDC050", f"{duckdb_name(node)} of the rows of each unit, without ORDER BY")
        else:
            ordered = ", ".join([*self.order(order), *self.ties()])
        name, between = ("list", "") if isinstance(node, exp.ArrayAgg) else ("string_agg", f", {_separator(separator)}")
        only = "" if condition == "true" else f" FILTER (WHERE {condition})"
        distinct = "DISTINCT " if isinstance(inner, exp.Distinct) else ""
        return f"{name}({distinct}{shown}{between} ORDER BY {ordered}){only}"

    def counts_rows(self, node: exp.Expr) -> bool:
        """Whether an aggregate of dimensions says how many rows there are, each once, or things of the unit."""
        if isinstance(node, exp.Count):
            return not isinstance(node.this, exp.Distinct) or owned_values(self.scope, node) is not None
        if not isinstance(node, exp.Sum):
            return isinstance(node, exp.CountIf)
        asked, value, _ = case(node.this)
        one = asked is not None and _is_whole(value) and float(value.name) == 1
        return one or self.scope.counts_rows(node.this)

    def _count(self, node: exp.Count, condition: str) -> str:
        if node.expressions:
            raise Refused("SDC051", "count of several columns")
        if isinstance(node.this, exp.Distinct):
            if len(node.this.expressions) != 1 or node.this.args.get("on"):
                raise Refused("SDC051", "count(DISTINCT ..) of several columns")
            value = node.this.expressions[0]
            counted = text(value) if self.scope.kind_of(value) >= 0 else self.value(value)
            return f"count(DISTINCT {chosen(condition, counted)})"
        if isinstance(node.this, exp.Star) or node.this is None or isinstance(node.this, exp.Literal):
            return _rows(condition)
        asked, value, otherwise = case(node.this)
        if asked is not None and not otherwise and isinstance(value, exp.Column):
            condition = both(condition, self.scope.condition_sql(asked))
        else:
            value = node.this
        plain = isinstance(value, exp.Column) and self.scope.role(value) in (Role.UNIT, Role.OTHER, Role.MEASURE)
        known = self.scope.known_sum(value) if plain else None
        if known is not None:
            return _rows(both(condition, known))
        return _rows(both(condition, f"{text(value) if plain else self.value(value)} IS NOT NULL"))

    def _sum(self, node: exp.Sum | exp.Avg, condition: str) -> str:
        if isinstance(node.this, exp.Distinct):
            raise Refused("SDC051", "sum or avg of DISTINCT")
        if self.scope.has_measure(node.this):
            raise Refused("SDC052", "for each unit: sum of a measure alone; factors go outside, as in sum(2 * total)")
        _, value, _ = case(node.this)
        if isinstance(value, exp.Column) and value.type is not None and 0 < digits(value) <= _MOST_DIGITS:
            scale = value.type.expressions[1].name if len(value.type.expressions) > 1 else "0"
            added = f"TRY_CAST({self.value(node.this)} AS DECIMAL({_MOST_DIGITS}, {scale}))"
            return f"{node.key}({chosen(condition, added)})"
        if "whole" not in (family(node.this), family(value)) and not _is_whole(value):
            # It would matter in which order rows come.
            raise Refused("SDC052", "sum or avg for each unit: of a measure, of whole numbers, or of a decimal column")
        if is_wide(node.this) or is_wide(value):
            raise Refused("SDC052", "sum or avg for each unit of numbers beyond BIGINT; cast to it")
        return f"{node.key}({chosen(condition, self._whole(node.this))})"

    def _whole(self, node: exp.Expr) -> str:
        return f"TRY_CAST({self.value(node)} AS BIGINT)"


def _as_text(column: str) -> str:
    return f"md5(CAST({column} AS VARCHAR))"


def _separator(separator: exp.Expr | None) -> str:
    return literal("," if separator is None else separator.name)


def _is_whole(value: exp.Expr) -> bool:
    """Whether this is a whole number, as 1 and 1.0 are."""
    return isinstance(value, exp.Literal) and not value.is_string and float(value.this).is_integer()


def refuse_clauses(select: exp.Select, taken: Collection[str], where: str) -> None:
    """Refuse clauses of a block that what is written over figures would be without."""
    for clause, value in select.args.items():
        if value and clause not in taken:
            raise Refused("SDC045", f"{clause} {where}")


def refuse_queries(node: exp.Expr) -> None:
    """Refuse a subquery beside figures."""
    if is_query(node):
        raise Refused("SDC046", "a subquery beside what each unit has")


def _rows(condition: str) -> str:
    return "count(*)" if condition == "true" else f"count({chosen(condition, '1')})"


def _parsed(columns: Sequence[str]) -> list[exp.Expr]:
    return list(parse_one(f"SELECT {', '.join(columns)}", read="duckdb").expressions)
