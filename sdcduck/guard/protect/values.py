"""Aggregates of what is published: of the values that appear, or of what is published for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sqlglot import exp, parse_one

from sdcduck.guard.expression_types import typed_as
from sdcduck.guard.expressions import (
    GROUPS,
    RELEASED,
    SET,
    VALUES,
    Keys,
    case,
    constant_factor,
    duckdb_name,
    family,
    grouping_sets,
    is_histogram,
    is_number,
    is_zero,
    text,
    value_of,
    without_repetition,
)
from sdcduck.guard.protect.groups import Released
from sdcduck.guard.protect.materialize import set_apart
from sdcduck.guard.protect.scope import Scope, aliased, refuse_query
from sdcduck.guard.protect.terms import function_of_measures, terms_of
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import identifier

_MOST_TERMS = 10
_MOST_COUNTED = 60
_MOST_SUBTOTALS = 64


def is_of_values(scope: Scope, node: exp.Expr) -> bool:
    """Whether this is count(DISTINCT ..), sum(DISTINCT ..), min or max of dimensions, and not of units or measures."""
    value = value_of(node)
    if value is None or owned_values(scope, node) is not None:
        return False
    if isinstance(node, (exp.Sum, exp.Avg)) and family(value) not in ("whole", "decimal", "real"):
        return False
    if isinstance(node, (exp.LogicalOr, exp.LogicalAnd)) and family(value) != "truth":
        return False
    columns = list(value.find_all(exp.Column))
    if not isinstance(node, exp.Count) and scope.has_measure(value):
        return counts_values(node) and scope.policy.privacy.holds and not isinstance(value, exp.Column)
    return bool(columns) and all(scope.kind_of(column) < 0 for column in columns)


def owned_values(scope: Scope, node: exp.Expr) -> tuple[exp.Column, exp.Expr | None] | None:
    """Of count(DISTINCT x), where each x belongs to one unit, such as an order: the column and the condition of a CASE.

    Each unit has so many of them, and together they have the sum. As values, of which each has to be published, there
    would be hardly any: one person is behind each of them.
    """
    if not isinstance(node, exp.Count) or not scope.method.groups_tell or value_of(node) is None:
        return None
    chosen, value, otherwise = case(node.this.expressions[0])
    return (value, chosen) if isinstance(value, exp.Column) and scope.is_owned(value) and not otherwise else None


def counts_values(node: exp.Expr) -> bool:
    """Whether this is a mode or a histogram, for which records are counted by their values."""
    return isinstance(node, exp.Mode) or is_histogram(node)


def number_of_values(scope: Scope, node: exp.Expr, condition: exp.Expr | None, released: Released) -> exp.Select:
    """How many values are published in a group, or the least of them: of a SELECT DISTINCT of group keys and value.

    So count(DISTINCT region) says how many regions appear in GROUP BY region, min(region) which is the first of
    these, and nothing else.
    """
    value = value_of(node)
    assert value is not None
    refuse_query(value, condition)
    groups = same_groups(scope, released.keys, condition, _name_of(node))
    if counts_values(node):
        groups.append("expressions", parse_one("count(*) AS _n", read="duckdb"))
    parts = value.expressions if isinstance(value, exp.Tuple) else [value]
    names = ["_value", *(f"_value{place}" for place in range(1, len(parts)))]
    group_by(scope, groups, released.keys, dict(zip(names, parts, strict=True)))
    published = exp.column("_value", VALUES, quoted=True)
    if isinstance(value, exp.Tuple):
        if not isinstance(node, exp.Count):
            raise Refused("SDC052", f"{_name_of(node)} of several columns: count(DISTINCT (a, b)) is answered")
        shown: exp.Expr = exp.Count(this=exp.Star(), big_int=True)  # as a pair, NULL is a value, too
    elif isinstance(node, exp.Count):
        shown = exp.Count(this=published, big_int=True)
    elif isinstance(node, (exp.Sum, exp.Avg)):
        # In one order, so that the last digits of numbers that are not whole do not depend on it.
        shown = (
            exp.Anonymous(this="fsum" if isinstance(node, exp.Sum) else "favg", expressions=[published])
            if family(value) == "real"
            else type(node)(this=published)
        )
    elif isinstance(node, exp.Mode):
        known = f"FILTER (WHERE {VALUES}._value IS NOT NULL)"
        shown = parse_one(f"first({VALUES}._value ORDER BY {VALUES}._n DESC, {VALUES}._value) {known}", read="duckdb")
    elif is_histogram(node):
        values, numbers = (
            f"list({VALUES}.{name} ORDER BY {VALUES}._value) FILTER (WHERE {VALUES}._value IS NOT NULL)"
            for name in ("_value", "_n")
        )
        # Under differential privacy a count may be negative.
        kind = "BIGINT" if scope.policy.privacy.holds else "UBIGINT"
        shown = parse_one(f"map({values}, CAST({numbers} AS {kind}[]))", read="duckdb")
    elif isinstance(node, (exp.GroupConcat, exp.ArrayAgg)):
        shown = _listed(node, published)
    else:
        shown = exp.Max(this=published) if isinstance(node, (exp.Max, exp.LogicalOr)) else exp.Min(this=published)
    return from_groups(scope, groups, shown, released)


def _listed(node: exp.GroupConcat | exp.ArrayAgg, published: exp.Column) -> exp.Expr:
    """The values in their order, or in the other one where the analyst wrote so."""
    order = node.this.expressions[0] if isinstance(node.this, exp.Order) else None
    ordered = exp.Ordered(this=published.copy()) if order is None else order.copy()
    ordered.set("this", published.copy())
    listed = type(node)(this=exp.Order(this=published, expressions=[ordered]))
    separator = node.args.get("separator")
    if separator is not None:
        if not isinstance(separator, (exp.Literal, exp.Parameter, exp.Placeholder)):
            raise Refused("SDC052", "string_agg with a separator that is no text: string_agg(DISTINCT x, ', ')")
        listed.set("separator", separator.copy())
    return listed


def number_by_values(scope: Scope, node: exp.Expr, condition: exp.Expr | None, released: Released) -> exp.Select | None:
    """A sum of figures of dimensions, or of measures times such figures; None: it is something else.

    It is made of what is published for each value of the figures: sum(x * f) of f times sum(x) GROUP BY f. With
    noise of its own for the same records it would only have to be compared with the noise of sum(x) or count(*)
    to be rid of both, and a figure that is large for some records alone would show the others beside it.
    """
    if not isinstance(node, (exp.Sum, exp.Avg)) or isinstance(node.this, exp.Distinct):
        return None
    inner, factor = constant_factor(node.this)
    chosen, value, otherwise = case(inner)
    value, more = constant_factor(value)
    elsewhere, filled = otherwise, False
    if isinstance(value, exp.Coalesce) and len(value.expressions) == 1 and is_zero(value.expressions[0]):
        otherwise, filled, value = True, True, value.this
    if is_number(value) or terms_of(scope, value) is not None:
        return None
    if scope.counts_rows(value):
        return None
    refuse_query(value, condition)
    if not scope.method.weighted:
        if value.find(exp.Column) is None:
            raise Refused("SDC052", "sum and avg take one measure")
        if not scope.has_measure(value):
            raise Refused("SDC052", "a sum of dimensions: count(*) GROUP BY them, and add that up")
        if not scope.method.sums:
            raise Refused("SDC052", f"a sum or a mean: {scope.method.name} answers counts")
        _terms(scope, value)
        raise Refused("SDC052", "a measure times a dimension: sum(measure) GROUP BY the dimension, and multiply that")
    if isinstance(node, exp.Avg) and otherwise:
        raise Refused("SDC052", "avg of CASE .. ELSE 0, or of coalesce; use FILTER")
    terms = _terms(scope, value)
    if len(terms) > _MOST_TERMS:
        raise Refused("SDC002", "a sum of many terms")
    figures_of = {tuple(filter(_has_column, term.factors)) for term in terms}
    alone = any(not term.columns for term in terms)
    if len(figures_of) > (1 if alone else 2) or (len(figures_of) == 2 and () not in figures_of):
        # By the figures of all terms together groups would be so small that most are not published.
        raise Refused("SDC052", "terms with different figures: add up each by itself, sum(a * f) - sum(b * g)")
    measures = list(dict.fromkeys(column for term in terms for column in term.columns))
    counts = any(not term.columns for term in terms)
    known = [f"{measure} IS NOT NULL" for measure in measures] if len(measures) > 1 or counts else []
    conditions = [condition, chosen, *(parse_one(sql, read="duckdb") for sql in known)]
    wanted = [one.copy() for one in conditions if one is not None]
    all_wanted = exp.and_(*wanted, copy=False) if wanted else None
    groups = same_groups(scope, released.keys, all_wanted, "a sum of figures")
    figures: dict[str, str] = {}
    parts = []
    whole = isinstance(node, exp.Sum) and family(node.this) == "whole" and not measures
    kind, added_up = ("HUGEINT", "sum") if whole else ("DOUBLE", "fsum")  # as DuckDB has them; noise is whole, too
    for place, term in enumerate(terms):
        counted = "count(*)" if term.added is None else f"sum({term.added})"
        groups.append("expressions", parse_one(f"{counted} AS _n{place}", read="duckdb"))
        part = f"{VALUES}._n{place}"
        if term.factors:
            product, most = " * ".join(term.factors), "9e14" if term.added is None else "1e6"
            figure = f"CASE WHEN abs(CAST({product} AS DOUBLE)) <= {most} THEN CAST({product} AS {kind}) END"
            part = f"{VALUES}.{figures.setdefault(figure, f'_v{len(figures)}')} * {part}"
        parts.append(part)
    total = f"{added_up}({' + '.join(parts)}){factor}{more}"
    if isinstance(node, exp.Avg):
        counted = f"count({measures[0]})" if len(measures) == 1 else "count(*)"
        groups.append("expressions", parse_one(f"{counted} AS _m", read="duckdb"))
        complete = " AND ".join(f"{VALUES}.{name} IS NOT NULL" for name in figures.values()) or "true"
        total += f" / nullif(sum(CASE WHEN {complete} THEN {VALUES}._m END), 0)"
    total = where_all_are(scope, groups, total, released, all_wanted)
    if otherwise:
        asked = [one for one in (condition, None if elsewhere else chosen) if one is not None]
        if chosen is not None and elsewhere and not filled and not measures:
            unless = exp.Not(this=exp.Is(this=exp.Paren(this=chosen.copy()), expression=exp.true()))
            known_figure = exp.Not(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.Null()))
            asked.append(exp.or_(unless, known_figure, copy=False))
        rows = scope.condition_sql(exp.and_(*(one.copy() for one in asked), copy=False)) if asked else "true"
        some = f"{GROUPS}.{released.published(released.numbers.some(rows))}"
        total = scope.method.or_zero(scope.records_sql, total, some, rows)
    group_by(scope, groups, released.keys, {name: parse_one(figure, read="duckdb") for figure, name in figures.items()})
    return from_groups(scope, groups, parse_one(total, read="duckdb"), released)


def _has_column(sql: str) -> bool:
    return parse_one(sql, read="duckdb").find(exp.Column) is not None


def same_groups(scope: Scope, keys: Keys, condition: exp.Expr | None, of: str) -> exp.Select:
    """A SELECT of the group keys over the records as they were asked about, those for which a condition holds."""
    if scope.original is None:
        raise Refused("SDC052", of)
    scope.progress.counted += 1
    if scope.progress.counted > _MOST_COUNTED:
        raise Refused("SDC002", f"many of {of}")
    groups: exp.Select = scope.original.copy()
    for clause in [clause for clause in groups.args if clause not in ("from_", "joins", "where")]:
        groups.set(clause, None)
    for place, sql in enumerate(keys):
        groups.append("expressions", exp.alias_(parse_one(sql, read="duckdb"), f"_g{place}", quoted=True))
    if condition is not None:
        where = groups.args.get("where")
        both = condition.copy() if where is None else exp.and_(where.this, condition.copy(), copy=False)
        groups.set("where", exp.Where(this=both))
    return groups


def group_by(scope: Scope, groups: exp.Select, keys: Keys, values: Mapping[str, exp.Expr]) -> None:
    """Group by the keys and these values too; where there are subtotals, in each of the grouping sets, once."""
    sets = grouping_sets(scope.select.args.get("group")) if keys else None
    if sets is not None:
        # A value that is a key, too, stays what it is where that key is summed over.
        values = {name: exp.Case(ifs=[exp.If(this=exp.true(), true=value)]) for name, value in values.items()}
    for name, value in values.items():
        groups.append("expressions", exp.alias_(value, name, quoted=True))
    if sets is None:
        groups.set("group", exp.Group(all=True))
        return
    if any(text(value) in keys for value in values.values()):
        raise Refused("SDC051", "subtotals of what is counted")
    sets = without_repetition(sets)
    if len(sets) > _MOST_SUBTOTALS:
        raise Refused("SDC002", "many subtotals")
    every = [[part.copy() for part in (*one, *values.values())] for one in sets]
    listed = [exp.Tuple(expressions=one) if len(one) > 1 else exp.Paren(this=one[0]) for one in every]
    groups.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=listed)]))
    of_set = exp.Grouping(expressions=[parse_one(sql, read="duckdb") for sql in keys])
    groups.append("expressions", exp.alias_(of_set, SET, quoted=True))


def where_all_are(scope: Scope, groups: exp.Select, shown: str, released: Released, condition: exp.Expr | None) -> str:
    """What is shown of groups that are added up: under an exact method NULL where one of them is hidden.

    It is, where the published numbers of the groups do not come to that of all their rows.
    """
    if not scope.method.needs_all_groups:
        return shown
    groups.append("expressions", parse_one("count(*) AS _all", read="duckdb"))
    rows = "true" if condition is None else scope.condition_sql(condition.copy())
    behind = f"{GROUPS}.{released.published(released.numbers.count(rows))}"
    return f"CASE WHEN coalesce(sum({VALUES}._all), 0) = {behind} THEN {shown} END"


def from_groups(
    scope: Scope,
    groups: exp.Select,
    shown: exp.Expr,
    released: Released,
    beside: Mapping[str, str] = MappingProxyType({}),
) -> exp.Select:
    """One number of what is published of groups, for the group around it.

    Args:
        beside: what stands beside each of them, by the name that it gets: SQL over all that are around it, with
            ``{0}`` where a window says which these are.
    """
    for item in [*groups.expressions, *filter(None, [groups.args.get("group")])]:
        typed_as(item, scope.select)
    scope.progress.as_written(groups)
    names = {name: name for name, _ in released.keys.values()}
    if SET in groups.named_selects:
        names[SET] = released.grouping_set()
    scope.progress.query(groups, scope.known)
    table = aliased(groups, VALUES)
    if beside:
        together = "PARTITION BY " * bool(names) + ", ".join(identifier(name) for name in names)
        around = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))
        for name, sql in beside.items():
            around.append("expressions", exp.alias_(parse_one(sql.format(together), read="duckdb"), name, quoted=True))
        scope.progress.made_around(around)
        table = aliased(around, VALUES)
    made = exp.Select(expressions=[shown], from_=exp.From(this=table))
    same = [
        exp.NullSafeEQ(this=exp.column(name, VALUES, quoted=True), expression=exp.column(of, GROUPS, quoted=True))
        for name, of in names.items()
    ]
    if same:
        made.set("where", exp.Where(this=exp.and_(*same, copy=False)))
    scope.progress.made_around(made)
    return made


def with_values(
    scope: Scope, columns: Sequence[str], table: exp.Table | None, values: Mapping[str, exp.Select]
) -> exp.Subquery:
    """Group keys and numbers, if there are any, and beside them numbers of values, each a query of its own.

    What such a query reads is worked out once for all groups, in a WITH. DuckDB 2.0 does so of itself, but not where an
    `error()` stands in a lambda: it makes everything anew for each group, and time grows as the square of their number.
    """
    made = exp.Select(expressions=[])
    if table is not None:
        made.set("from_", exp.From(this=named(table, GROUPS)))
    for column in columns:
        made.append("expressions", exp.column(column, GROUPS, quoted=True))
    for name, query in values.items():
        added_up = query.args["from_"].this
        if query.args.get("where") is not None and isinstance(added_up, exp.Subquery) and added_up.alias == VALUES:
            place = exp.Null()
            added_up.replace(place)
            everything = set_apart(made, added_up.this, scope.progress.number())
            scope.progress.made(everything)
            place.replace(named(everything, VALUES))
        called = exp.to_identifier(name, quoted=True)
        made.append("expressions", exp.Alias(this=exp.Subquery(this=query), alias=called))
    scope.progress.made_around(made)
    return aliased(made, RELEASED)


@dataclass(frozen=True)
class _Term:
    """What is added up of each group of equal figures.

    Attributes:
        factors: over dimensions, as SQL.
        added: a measure or a function of measures, as SQL; None: rows are counted.
        columns: the measures in it.
    """

    factors: tuple[str, ...]
    added: str | None = None
    columns: tuple[str, ...] = ()


def _terms(scope: Scope, node: exp.Expr) -> list[_Term]:
    """What is added up as a sum of products: of each the factors over dimensions, and the measure, if any."""
    if not scope.has_measure(node):
        if family(node) not in ("whole", "real", "decimal"):
            raise Refused("SDC052", NO_NUMBER)
        scope.check(node)
        return [_Term((f"({text(node)})",))]
    return _products(scope, node, ())


def _products(scope: Scope, node: exp.Expr, factors: tuple[str, ...]) -> list[_Term]:
    if isinstance(node, exp.Paren):
        return _products(scope, node.this, factors)
    if not scope.has_measure(node):
        scope.check(node)
        return [_Term((*factors, f"({text(node)})"))]
    if isinstance(node, exp.Column):
        return [_Term(factors, text(node), (text(node),))]
    if isinstance(node, exp.Neg):
        return _products(scope, node.this, (*factors, "-1"))
    if isinstance(node, exp.Add):
        return _products(scope, node.this, factors) + _products(scope, node.expression, factors)
    if isinstance(node, exp.Sub):
        return _products(scope, node.this, factors) + _products(scope, node.expression, (*factors, "-1"))
    if isinstance(node, (exp.Mul, exp.Div)):
        with_measure, other = node.this, node.expression
        if isinstance(node, exp.Mul) and scope.has_measure(other):
            with_measure, other = other, with_measure
        if not scope.has_measure(other):
            scope.check(other)
            inverse = "1.0 / " if isinstance(node, exp.Div) else ""
            return _products(scope, with_measure, (*factors, f"({inverse}({text(other)}))"))
    found = function_of_measures(scope, node)
    if found is not None:
        return [_Term(factors, text(node), tuple(map(text, found.columns)))]
    raise Refused("SDC041", _NO_FIGURE)


NO_NUMBER = "avg takes numbers; a condition is one as x::INTEGER, and the time between two dates date_diff('day', a, b)"
_NO_FIGURE = "sum and avg take measures, also added up, times figures of dimensions, or in functions with bounds"


def _name_of(node: exp.Expr) -> str:
    return "count(DISTINCT ..)" if isinstance(node, exp.Count) else f"{duckdb_name(node)}(..)"


def named(table: exp.Table, alias: str) -> exp.Table:
    table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return table
