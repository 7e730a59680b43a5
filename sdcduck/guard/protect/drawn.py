"""What noise is drawn for in a block, and the groups that it is drawn for: all that there may be, over no record.

::

    SELECT region, count(*) FROM people WHERE age > 60 AND region <> 'n' GROUP BY region

    SELECT region AS _g0 FROM (FROM (VALUES ('n'), ('s'), (NULL)) AS _d0(region)) AS people
    WHERE region <> 'n' GROUP BY region

So the groups that are answered follow from the question and from what was declared. What a condition says of declared
domains alone narrows them; what it says of anything else decides what is counted.

One person must not change more than the proof says: one table, of which each unit has one row, and nothing beside it.
"""

from __future__ import annotations

from sqlglot import exp, parse_one

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Drawn
from sdcduck.guard.expressions import conjuncts
from sdcduck.guard.methods.dp import DifferentialPrivacy, value_of
from sdcduck.guard.protect.scope import Scope
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, identifier

_TIMES = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.Localtime, exp.Localtimestamp)
_SEVERAL = (exp.Cube, exp.Rollup, exp.GroupingSets)
_MOST_COMBINATIONS = 50_000


def drawn(scope: Scope, grouped: exp.Select) -> Drawn | None:
    """What noise is drawn for in a block; None: its method has its noise in SQL.

    Args:
        grouped: the SELECT of its group keys and of the calls over records.

    Raises:
        Refused: more than one table is looked at, or groups are not known without records.
    """
    method = scope.method
    if not isinstance(method, DifferentialPrivacy):
        return None
    table = scope.relation.table
    if table is None or grouped.args.get("joins") or grouped.args.get("laterals"):
        raise Refused("SDC081", "a join with records: ask for counts, and join these")
    group, where = grouped.args.get("group"), grouped.args.get("where")
    items = {item.alias: item.unalias() for item in grouped.expressions}
    for part in filter(None, [*items.values(), where, group]):
        _check(part, scope.alias)
    keys = {name: node for name, node in items.items() if name not in method.noised}
    if group is not None and group.find(*_SEVERAL) is not None:
        raise Refused("SDC081", "GROUPING SETS, CUBE or ROLLUP: ask for one grouping at a time")
    if not all(name.startswith("_g") for name in keys) or bool(keys) != bool(group and group.expressions):
        raise Refused("SDC081", "a number that is worked out over records")
    if len(keys) == len(items):
        raise Refused("SDC081", "nothing is counted or added up, and the domain is public: DESCRIBE the table")
    totals = {name: method.noised[name] for name in items if name in method.noised}
    return Drawn(scope.policy.name, _cells(scope, grouped, keys) if keys else None, tuple(keys), totals)


def _check(part: exp.Expr, alias: str) -> None:
    """Refuse what does not look at the one table, at one time."""
    if part.find(exp.Query) is not None:
        raise Refused("SDC081", "a subquery beside records: ask it first, and write what it says into WHERE")
    if part.find(*_TIMES) is not None:
        raise Refused("SDC081", "the time of day: write the date")
    if any(column.table != alias for column in part.find_all(exp.Column)):
        raise Refused("SDC081", "a column that is not of the table")


def _cells(scope: Scope, grouped: exp.Select, keys: dict[str, exp.Expr]) -> exp.Select:
    """The SELECT of the groups."""
    policy = scope.policy
    domains = {folded(name) for name, _, _ in policy.privacy.domains}
    for key in keys.values():
        for column in key.find_all(exp.Column):
            if folded(column.name) not in domains:
                raise Refused("SDC081", _NO_DOMAIN.format(column.name))
    where = grouped.args.get("where")
    narrowing = [
        part
        for part in (conjuncts(where.this) if where is not None else [])
        if {folded(column.name) for column in part.find_all(exp.Column)} <= domains
    ]
    asked = {folded(column.name) for part in (*keys.values(), *narrowing) for column in part.find_all(exp.Column)}
    made = exp.Select(expressions=[exp.alias_(node.copy(), name, quoted=True) for name, node in keys.items()])
    made.set("from_", exp.From(this=_combinations(policy, asked, scope.records_sql)))
    if narrowing:
        made.set("where", exp.Where(this=exp.and_(*(part.copy() for part in narrowing), copy=False)))
    made.set("group", grouped.args["group"].copy())
    return made


_NO_DOMAIN = "groups of '{0}', for which the custodian declared no domain: domains := {{'{0}': [..]}}"


def _combinations(policy: Policy, asked: set[str], alias: str) -> exp.Expr:
    """All combinations of the values of domains, and of none, as a relation of this name."""
    every, number = [], 1
    for place, (name, kind, values) in enumerate(policy.privacy.domains):
        if folded(name) not in asked:
            continue
        number *= len(values) + 1
        rows = ", ".join(
            f"({value})" for value in (*(value_of(kind, text) for text in values), f"CAST(NULL AS {kind})")
        )
        every.append(f"(VALUES {rows}) AS _d{place}({identifier(name)})")
    if number > _MOST_COMBINATIONS:
        raise Refused("SDC081", f"more than {_MOST_COMBINATIONS} groups: ask for fewer columns at a time")
    relation: exp.Expr = parse_one(
        f"SELECT 1 FROM (SELECT * FROM {' CROSS JOIN '.join(every) or '(SELECT 1)'}) AS {alias}", read="duckdb"
    )
    made: exp.Expr = relation.args["from_"].this
    return made
