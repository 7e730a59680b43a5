"""The WHERE of a block: conditions on single records, also with subqueries."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sdcduck.guard.expressions import (
    family,
    is_of,
    is_query,
    is_wide,
    typed,
)
from sdcduck.guard.methods.carried import CARRIED
from sdcduck.guard.protect.materialize import compared, set_apart, values_of
from sdcduck.guard.protect.multiplied import refuse_multiplied
from sdcduck.guard.protect.own_records import Tied
from sdcduck.guard.protect.scope import Scope, aliased, refuse_lists
from sdcduck.guard.protect.semijoins import is_never_null
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Relation, Role
from sdcduck.quoting import folded

_AMONG = "_sdc_i"  # units that others are looked for among


def where(scope: Scope, node: exp.Expr) -> exp.Expr:
    """The condition of a WHERE, in which subqueries may stand, as a truth value that cannot fail."""
    if node.find(exp.Query) is None:
        return scope.condition(node)
    if isinstance(node, exp.And):
        return exp.And(this=where(scope, node.this), expression=where(scope, node.expression))
    if isinstance(node, exp.Or):
        return exp.Paren(this=exp.Or(this=where(scope, node.this), expression=where(scope, node.expression)))
    if isinstance(node, exp.Paren):
        return exp.Paren(this=where(scope, node.this))
    if isinstance(node, exp.Not):
        return exp.Not(this=exp.Paren(this=where(scope, node.this)))
    return _compared_with_query(scope, node)


def asked(scope: Scope, node: exp.Expr) -> exp.Expr:
    """A column of records with a subquery: a condition, or a scalar subquery that stands by itself."""
    inner = node.unnest() if isinstance(node, exp.Subquery) else node
    if not isinstance(inner, exp.Query):
        return where(scope, node)
    if scope.progress.of_units(inner) is not None or len(_shown(inner)) != 1:
        raise Refused("SDC044", "compare the unit: unit IN (SELECT unit ..)")
    return _values_apart(scope, inner, [family(item) for item in inner.selects], scalar=True)


def _compared_with_query(scope: Scope, node: exp.Expr) -> exp.Expr:
    """``column IN (SELECT ..)``, also of several columns, or a column compared with a scalar subquery.

    Of one type, so that it cannot fail; what is worked out of columns, too.
    """
    if isinstance(node, (exp.Not, exp.Paren)):
        return type(node)(this=_compared_with_query(scope, node.this))
    if isinstance(node, exp.Coalesce) and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Boolean):
        return exp.Coalesce(this=_compared_with_query(scope, node.this), expressions=node.expressions)
    if isinstance(node, exp.Exists):
        tied = scope.progress.tied(node.this)
        if tied is not None:
            return _exists(scope, node.this, tied)
        table = set_apart(scope.select, node.this, scope.progress.number())
        scope.progress.made(table)
        found = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=table))
        scope.progress.made_around(found)
        return exp.Exists(this=found)
    for inner in node.walk(prune=is_query):
        refuse_lists(inner)
    columns: list[exp.Expr] = []
    query: exp.Expr | None = None
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        columns = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        query = node.args["query"]
    elif isinstance(node, (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)):
        sides = [node.this, node.expression]
        columns = [side for side in sides if side.find(exp.Query) is None]
        query = next((side for side in sides if isinstance(side, exp.Subquery)), None)
    if not columns or not isinstance(query, exp.Query) or len(columns) != len(_shown(query)):
        raise Refused("SDC046", "compare a column alone with a subquery")
    units = _looked_for(scope, query.unnest())
    if units is not None:
        return _among_units(scope, node, columns, query, units)
    kinds = [_settle_side(scope, column, item) for column, item in zip(columns, query.selects, strict=True)]
    if isinstance(node, exp.In):
        node.set("query", _values_apart(scope, query, kinds))
    else:
        place = exp.Null()
        query.replace(place)
        place.replace(_values_apart(scope, query, kinds, scalar=True))
    return node


def _settle_side(scope: Scope, column: exp.Expr, item: exp.Expr) -> str:
    """Write what is compared with a column of a subquery as what cannot fail, in place; the family of that column."""
    if not is_of(column, list(scope.sources)):
        raise Refused("SDC046", "compare a column alone with a subquery")
    if isinstance(column, exp.Column):
        scope.dimension(column)  # what is said of a measure, whatever its type
    mine, other = family(column), family(item)
    if {mine, other} == {"date", "timestamp"}:  # day > (SELECT max(day) - INTERVAL 90 DAY ..)
        mine = other = "timestamp"
    if mine is None or other is None or (mine != other and not {mine, other} <= {"whole", "real"}):
        raise Refused("SDC046", "compare a column with a subquery of the same type")
    if isinstance(column, exp.Column):
        if scope.sources[column.table].table is None or family(column) != mine:
            column.replace(compared(column.copy(), mine))
    else:
        place = exp.Null()
        column.replace(place)
        place.replace(compared(typed(scope.over_dimensions(column), column), mine))
    return other


def _values_apart(scope: Scope, query: exp.Query, kinds: Sequence[str | None], *, scalar: bool = False) -> exp.Subquery:
    """The subquery that stands in place of one that records are compared with, its columns as of these families."""
    inner = query.this if isinstance(query, exp.Subquery) and not query.args.get("with_") else query
    if scalar:  # that there is one row is found out there
        one = exp.Select(expressions=[exp.Subquery(this=inner)])
        scope.progress.made_around(one)
        inner = one
    table = set_apart(scope.select, inner, scope.progress.number(), columns=len(query.selects))
    scope.progress.made(table)
    made = values_of(table, query, kinds)
    scope.progress.made_around(made)
    return exp.Subquery(this=made)


def _looked_for(scope: Scope, query: exp.Expr) -> Relation | None:
    """The relation of a subquery over units, whose policy is one of those that the block is answered under."""
    units = scope.progress.of_units(query)
    if units is not None and id(units) not in scope.agreed:
        raise Refused("SDC044", "a subquery over units anywhere but in WHERE")
    return units


def _among_units(
    scope: Scope, node: exp.Expr, columns: Sequence[exp.Expr], query: exp.Query, units: Relation
) -> exp.Expr:
    """``unit IN (SELECT unit ..)``, also with dimensions beside it: a record is kept for what its own unit has."""
    items = _shown(query)
    names = [item.alias_or_name for item in items]
    pairs = [(column, units.roles[folded(name)]) for column, name in zip(columns, names, strict=True)]
    if not isinstance(node, exp.In) or not any(scope.is_unit(mine) and role is Role.UNIT for mine, role in pairs):
        raise Refused("SDC044", "compare the unit: WHERE unit IN (SELECT unit ..)")
    for (column, role), item in zip(pairs, items, strict=True):
        if not isinstance(column, exp.Column) or role is Role.MEASURE:
            raise Refused("SDC046", "compare columns that are no measures with a subquery")
        if not (scope.is_unit(column) and role is Role.UNIT):
            scope.dimension(column)
        if (role is Role.UNIT and not scope.is_unit(column)) or family(column) != family(item) or family(item) is None:
            raise Refused("SDC046", "compare a column with a subquery of the same type")
    # Were one unit missing, NOT IN would be so for all.
    inner = query.unnest()
    assert isinstance(inner, exp.Query)
    missing = [name for name in names if folded(name) in units.missing]
    if missing and not is_never_null(inner):
        raise Refused("SDC044", "a unit that may be missing behind LEFT JOIN: take that of the table before it")
    shown = []
    for (column, role), item, name in zip(pairs, items, names, strict=True):
        its: exp.Expr = typed(exp.column(name, _AMONG, quoted=True), item)
        if role is not Role.UNIT or is_wide(column) or is_wide(item):  # DuckDB's own casts could fail
            its = compared(its, str(family(item)))
            column.replace(compared(column.copy(), str(family(column))))
        shown.append(its)
    made = exp.Select(expressions=shown, from_=exp.From(this=aliased(inner, _AMONG)))
    if units.policy is not None:
        scope.progress.looked_for[id(made)] = units.policy
    if missing:
        there = [
            exp.Not(this=exp.Is(this=exp.column(name, _AMONG, quoted=True), expression=exp.Null())) for name in missing
        ]
        made.set("where", exp.Where(this=exp.and_(*there, copy=False)))
    scope.progress.made_around(made)
    node.set("query", exp.Subquery(this=made))
    return node


def _exists(scope: Scope, query: exp.Select, tied: Tied) -> exp.Expr:
    """EXISTS among the records of the same unit: a record is kept for what others of its own unit have."""
    units = _looked_for(scope, query)
    if units is None:
        raise Refused("SDC044", "EXISTS tied by more than equality")
    scope.sources[tied.alias] = units
    of_units = [_ties_units(scope, condition, tied.alias) for condition in tied.conditions]
    conditions = [
        condition if ties else scope.condition(condition, outer=True)
        for condition, ties in zip(tied.conditions, of_units, strict=True)
    ]
    if not any(of_units):
        raise Refused("SDC044", "EXISTS among records: tie them on the unit")
    refuse_multiplied((*scope.rows_of, *units.rows_of))
    found = exp.Select(
        expressions=[exp.Literal.number(1)],
        from_=exp.From(this=aliased(query, tied.alias)),
        where=exp.Where(this=exp.and_(*conditions, copy=False)),
    )
    scope.progress.made_around(found)
    return exp.Exists(this=found)


def _ties_units(scope: Scope, condition: exp.Expr, alias: str) -> bool:
    """Whether this is an equality of the unit of a relation with that of another, of one kind."""
    if not isinstance(condition, exp.EQ):
        return False
    one, other = condition.this, condition.expression
    if not (scope.is_unit(one) and scope.is_unit(other)) or (one.table == alias) == (other.table == alias):
        return False
    return not (is_wide(one) or is_wide(other)) and family(one) == family(other) is not None


def _shown(query: exp.Query) -> list[exp.Expr]:
    """The columns of a subquery that whoever asks wrote, without those that protection carries along."""
    return [item for item in query.selects if not item.alias_or_name.startswith(CARRIED)]
