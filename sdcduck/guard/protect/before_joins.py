"""The rows of a unit brought together before they are joined to what has one row of each unit, where that is the same.

::

    SELECT persons.region AS _g0, max(persons.key) AS _sdc_h0, persons.id AS _sdc_h1, sum(visits.cost) AS _v0
    FROM persons JOIN visits ON persons.id = visits.id GROUP BY persons.region, persons.id

    SELECT persons.region AS _g0, persons.key AS _sdc_h0, persons.id AS _sdc_h1, visits._v0 AS _v0
    FROM persons JOIN (SELECT visits.id AS id, sum(visits.cost) AS _v0 FROM visits GROUP BY visits.id) AS visits
      ON persons.id = visits.id

A unit has the same rows in both, and so the same figures. The second takes two thirds of the time, but only where the
join keeps most rows: without it all units are brought together, also those that it leaves out. So it is written for
joins without a condition on the other side, and for tables that had about as many records when they were declared. That
decides what a question costs, and no number.
"""

from __future__ import annotations

from sqlglot import exp

from sdcduck.guard.expressions import conjuncts, text
from sdcduck.guard.protect.scope import Scope, aliased
from sdcduck.guard.relations import Label

_AT_MOST = 5  # records of a unit in the one table, for each in the other


def before_joins(scope: Scope, units: exp.Select) -> None:
    """Write a SELECT that groups joined records by their unit as one that joins units, in place, where that is faster.

    Args:
        scope: of the block.
        units: its group keys, hidden columns and figures, ``_v0`` and so on; grouped by the keys and the unit.
    """
    alias = _of_several_rows(scope)
    if alias is None or not _is_plain(units):
        return
    figures = [item for item in units.expressions if item.alias.startswith("_v")]
    others = [item for item in units.expressions if not item.alias.startswith("_v")]
    where = units.args.get("where")
    conditions = conjuncts(where.this) if where is not None else []
    unit = _tied_by(scope, units, alias)
    if unit is None or any(_tables(part) - {alias} or part.find(exp.Grouping) for part in [*figures, *conditions]):
        return
    hidden = [item.unalias() for item in others if isinstance(item.unalias(), exp.Max)]
    keys = [item.unalias() for item in others if not isinstance(item.unalias(), exp.Max)]
    named = {text(part) for key in keys for part in key.find_all(exp.Column) if part.table == alias}
    if len(hidden) != 1 or not isinstance(hidden[0].this, exp.Column) or not named <= {text(unit)}:
        return
    made = exp.Select(expressions=[exp.alias_(unit.copy(), unit.name, quoted=True)])
    for largest in [largest for largest in hidden if largest.this.table == alias]:  # the same for all rows of a unit
        made.append("expressions", exp.alias_(largest.copy(), largest.this.name, quoted=True))
    for item in figures:
        made.append("expressions", item.copy())
        item.set("this", exp.column(item.alias, alias, quoted=True))
    for largest in hidden:
        largest.replace(largest.this)
    for asked in [asked for item in others for asked in item.find_all(exp.Grouping)]:
        asked.replace(exp.Literal.number(0))  # of one grouping set
    table = next(table for table in _relations(units) if table.alias_or_name == alias)
    joined = aliased(made, alias)
    table.replace(joined)
    made.set("from_", exp.From(this=table))
    if where is not None:
        made.set("where", where)
        units.set("where", None)
    made.set("group", exp.Group(expressions=[unit.copy()]))
    units.set("group", None)
    scope.progress.made_around(made)


def _of_several_rows(scope: Scope) -> str | None:
    """The table of which units have several rows, beside others of one row that had about as many records."""
    relations = {alias: scope.sources[alias] for alias in scope.units}
    several = [alias for alias, relation in relations.items() if relation.several]
    if len(several) != 1 or len(relations) < 2 or scope.maybe_missing:
        return None
    counted = {
        alias: relation.policy.records
        for alias, relation in relations.items()
        if relation.table is not None and relation.policy is not None
    }
    if len(counted) < len(relations):
        return None
    fewest = min(records for alias, records in counted.items() if alias != several[0])
    return several[0] if 0 < counted[several[0]] <= _AT_MOST * fewest else None


def _relations(units: exp.Select) -> list[exp.Expr]:
    return [units.args["from_"].this, *(join.this for join in units.args.get("joins") or [])]


def _is_plain(units: exp.Select) -> bool:
    """Whether it joins tables, all rows of which have to be there, and groups by single expressions."""
    joins = units.args.get("joins") or []
    inner = all((join.side, join.kind, join.method) in (("", "", ""), ("", "INNER", "")) for join in joins)
    group = units.args["group"]
    sets = group.find(exp.GroupingSets, exp.Cube, exp.Rollup) is not None or any(group.args.get(s) for s in _SETS)
    queries = [query for query in units.find_all(exp.Query) if query is not units and not isinstance(query, exp.Table)]
    tables = all(isinstance(relation, exp.Table) for relation in _relations(units))
    return inner and not sets and not queries and tables and units.find(exp.Window) is None


_SETS = ("all", "cube", "grouping_sets", "rollup", "totals")


def _tied_by(scope: Scope, units: exp.Select, alias: str) -> exp.Column | None:
    """The unit of a table that is joined by it alone, and to whole numbers: then equal ones are one group, too."""
    found: exp.Column | None = None
    for join in units.args.get("joins") or []:
        if join.args.get("on") is None:  # an answer of one row
            return None
        for condition in conjuncts(join.args["on"]):
            if alias not in _tables(condition):
                continue
            sides = (condition.this, condition.expression) if isinstance(condition, exp.EQ) else ()
            if not sides or not all(isinstance(side, exp.Column) and scope.is_unit(side) for side in sides):
                return None
            if not all(side.type is not None and side.type.this in exp.DataType.INTEGER_TYPES for side in sides):
                return None
            mine = [side for side in sides if side.table == alias]
            other = [side for side in sides if side.table != alias and scope.sources[side.table].label is Label.UNIT]
            if len(mine) != 1 or len(other) != 1 or (found is not None and text(mine[0]) != text(found)):
                return None
            found = mine[0]
    return found


def _tables(node: exp.Expr) -> set[str]:
    return {column.table for column in node.find_all(exp.Column)}
