"""The groups of a block: by what it groups, and the SELECT that groups records or units."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp, parse_one

from sdcduck.guard.calls import SETS, Numbered, Sets, with_numbers
from sdcduck.guard.expressions import (
    TIMES,
    Keys,
    aggregates,
    family,
    grouping_sets,
    has_aggregate,
    leaves,
    refuse_more_keys,
    text,
    unknown_aggregate,
    without_repetition,
)
from sdcduck.guard.methods.carried import CARRIED
from sdcduck.guard.protect.before_joins import before_joins
from sdcduck.guard.protect.drawn import drawn
from sdcduck.guard.protect.numbers import UNITS, Numbers, OfUnits
from sdcduck.guard.protect.scope import Scope, aliased
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

_OF_ONE_FORM = (
    exp.DataType.INTEGER_TYPES
    | exp.DataType.TEXT_TYPES
    | exp.DataType.TEMPORAL_TYPES
    | exp.DataType.NESTED_TYPES
    | {exp.DataType.Type.BOOLEAN, exp.DataType.Type.DECIMAL, exp.DataType.Type.UUID, exp.DataType.Type.UNION}
) - {exp.DataType.Type.INTERVAL}


@dataclass
class Released:
    """The group keys and protected numbers of a block, as the columns that whatever is around them may see.

    Attributes:
        keys: by their SQL.
        numbers: which make the SQL of aggregates.
        aggregates: the columns of protected numbers, by their SQL.
    """

    keys: Keys
    numbers: Numbers
    aggregates: dict[str, str] = field(default_factory=dict)

    def published(self, sql: str) -> str:
        """The column of a protected number."""
        return self.aggregates.setdefault(sql, f"_a{len(self.aggregates)}")

    def grouping_set(self) -> str:
        """The column that says which grouping set a group is of."""
        every = ", ".join(checked.sql("duckdb") for _, checked in self.keys.values())
        return self.published(self.numbers.grouping(f"GROUPING({every})", len(self.keys)))


def groups_records(select: exp.Select) -> bool:
    """Whether the block aggregates, by GROUP BY, DISTINCT or an aggregate function."""
    if select.args.get("group") is not None or select.args.get("distinct") is not None:
        return True
    return any(map(aggregates, _outer_parts(select)))


def _outer_parts(select: exp.Select) -> list[exp.Expr]:
    parts = list(select.expressions)
    for clause in ("having", "qualify", "order"):
        if select.args.get(clause) is not None:
            parts.append(select.args[clause])
    return parts


def settle_group_by_all(select: exp.Select) -> None:
    """GROUP BY ALL without any column groups by nothing: one row of all, as DuckDB has it, where there are figures.

    A word of time may be the name of a column, and is looked at with the keys.

    Raises:
        Refused: there is none, and DuckDB would show a row for each record.
    """
    group = select.args.get("group")
    if group is None or group.args.get("all") is not True:
        return
    items = [item.unalias() for item in select.expressions if not has_aggregate(item)]
    if any(item.find(exp.Column, *TIMES) is not None for item in items):
        return
    if not any(map(aggregates, _outer_parts(select))):
        raise Refused("SDC040")
    if select.args.get("having") is not None:
        refuse_more_keys(select)
    select.set("group", None)


def has_one_row(select: exp.Select) -> bool:
    """Whether a SELECT has one row, whatever it reads: aggregates and nothing but these, or constants of no table."""
    if any(select.args.get(clause) for clause in ("group", "having", "qualify", "limit", "offset", "distinct")):
        return False
    if any(item.find(*MAKE_ROWS) is not None for item in select.expressions):
        return False
    if select.args.get("from_") is None:  # SELECT 30 AS low, 50 AS high
        return not any(select.args.get(clause) for clause in ("where", "joins", "laterals"))
    return all(map(aggregates, select.expressions))


MAKE_ROWS = (exp.Unnest, exp.Explode, exp.ExplodeOuter, exp.Posexplode, exp.Anonymous)


def without_order(select: exp.Select) -> None:
    """Take ORDER BY off a subquery of records without LIMIT, in place: whoever reads it reads rows without an order."""
    order = select.args.get("order")
    cut = any(select.args.get(clause) for clause in ("limit", "offset", "fetch"))
    distinct = select.args.get("distinct")
    first = distinct is not None and distinct.args.get("on") is not None
    if order is not None and not cut and not first and order.find(exp.Query) is None:
        select.set("order", None)


def is_per_unit(scope: Scope) -> bool:
    """Whether it groups by the unit."""
    group = scope.select.args.get("group")
    if group is not None and group.find(exp.Cube, exp.Rollup, exp.GroupingSets) is not None:
        return False
    return scope.are_all_units(grouped(scope))


def of_records(scope: Scope, released: Released) -> Numbered:
    """Group keys and protected numbers, from records that are units."""
    keys = released.keys
    inner = scope.over_source()
    for place, (_, checked) in enumerate(keys.values()):
        inner.append("expressions", exp.alias_(checked.copy(), f"_g{place}", quoted=True))
    group = _grouping(scope, keys)
    if group is not None:
        inner.set("group", group)
    kept = "true" if group is None else scope.method.kept(scope.records_sql)
    steps = scope.method.steps
    sets = _sets(scope)
    made = with_numbers(inner, released.aggregates, kept, steps, _plain_keys(scope, keys), total=_has_total(scope))
    found = drawn(scope, made.grouped)
    if isinstance(found, exp.Select):
        return replace(made, sets=sets, grouped=found)
    return replace(made, sets=sets, drawn=found)


def _sets(scope: Scope) -> Sets | None:
    """What the numbers of a block are about, as far as they are known by now; None: nothing is limited."""
    if not scope.policy.sequence.holds:
        return None
    steps = scope.method.steps
    return Sets(
        scope.policy, scope.alias, scope.method.hidden()[0], tuple(steps.counted), tuple(steps.added),
        tuple(steps.summed), tuple(steps.looked_at),
    )  # fmt: skip


def _has_total(scope: Scope) -> bool:
    """Whether one of its grouping sets is that of all records."""
    return [] in (grouping_sets(scope.select.args.get("group")) or [])


def _plain_keys(scope: Scope, keys: Keys) -> frozenset[str]:
    """Keys that are columns of tables, of types in which equal values are the same value."""
    return frozenset(
        name
        for name, checked in keys.values()
        if isinstance(checked, exp.Column)
        and scope.sources[checked.table].table is not None
        and checked.type is not None
        and _OF_ONE_FORM.issuperset(part.this for part in checked.type.find_all(exp.DataType))
    )


def of_units(scope: Scope, released: Released, numbers: OfUnits) -> Numbered:
    """Group keys and protected numbers, after the rows of each unit were brought together in each group.

    The rows of a unit carry the same record key, so that `max` is that key.
    """
    if scope.policy.sequence.holds:
        raise Refused("SDC071", "rows of units brought together: write its conditions into WHERE")
    keys = released.keys
    units = scope.over_source()
    brought_along, unit = _unit_of_groups(scope)
    group = _grouping(scope, keys)
    kept = "true" if group is None else numbers.kept()  # which may be made of figures, too
    for place, (_, checked) in enumerate(keys.values()):
        units.append("expressions", exp.alias_(checked.copy(), f"_g{place}", quoted=True))
    for place, brought in enumerate(brought_along):
        units.append("expressions", exp.alias_(brought, f"{CARRIED}{place}", quoted=True))
    shown = [f'"{UNITS}"."_g{place}"' for place in range(len(keys))]
    if group is not None and keys and any(not isinstance(item, exp.Column) for item in group.expressions):
        # Rows of different grouping sets may look alike. Those of one that is there twice would be added up: a unit
        # would count twice, with another noise each time it is asked for once more.
        listed = grouping_sets(group) or []
        if len(without_repetition(listed)) < len(listed):
            raise Refused("SDC047", "a grouping set that is there twice")
        sets = exp.Grouping(expressions=[checked.copy() for _, checked in keys.values()])
        units.append("expressions", exp.alias_(sets, SETS, quoted=True))
        shown.append(f'"{UNITS}"."{SETS}"')
    for sql, name in numbers.columns.items():
        units.append("expressions", exp.alias_(parse_one(sql, read="duckdb"), name, quoted=True))
    by_unit = group if group is not None else exp.Group(expressions=[])
    by_unit.append("expressions", unit)
    units.set("group", by_unit)
    before_joins(scope, units)
    inner = exp.Select(expressions=[], from_=exp.From(this=aliased(units, UNITS)))
    for place in range(len(keys)):
        column = exp.column(f"_g{place}", UNITS, quoted=True)
        inner.append("expressions", exp.alias_(column, f"_g{place}", quoted=True))
    if group is not None and shown:
        inner.set("group", exp.Group(expressions=[parse_one(part, read="duckdb") for part in shown]))
    if _has_total(scope):
        # Of nobody the units have no row, also not the total that nobody has: it is made here, where it is missing.
        every = exp.Tuple(expressions=inner.args["group"].expressions)
        inner.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=[every, exp.Tuple()])]))
        missing = f'GROUPING("{UNITS}"."{SETS}") = 0 OR count(*) = 0'
        inner.set("having", exp.Having(this=parse_one(missing, read="duckdb")))
    steps = numbers.method.steps
    return with_numbers(inner, released.aggregates, kept, steps, _plain_keys(scope, keys), total=_has_total(scope))


def _unit_of_groups(scope: Scope) -> tuple[list[exp.Expr], exp.Expr]:
    """The columns that go with a unit, its record key first, and by what it is grouped.

    Where units are of several kinds, there are groups of each of them, and the second column says of which they are.
    """
    hidden = [exp.column(name, scope.alias, quoted=True) for name in scope.method.hidden()]
    keys, units = hidden[::2], hidden[1::2]
    if len(units) == 1:
        return [exp.Max(this=keys[0]), units[0].copy()], units[0]
    of = [exp.EQ(this=exp.Grouping(expressions=[unit.copy()]), expression=exp.Literal.number(0)) for unit in units]

    def by_kind(values: list[exp.Expr]) -> exp.Expr:
        pairs = zip(of, values, strict=True)
        return exp.Case(ifs=[exp.If(this=condition.copy(), true=value) for condition, value in pairs])

    key = by_kind([exp.Max(this=key) for key in keys])
    place = by_kind([exp.Literal.number(place) for place in range(len(units))])
    return [key, place], exp.GroupingSets(expressions=[exp.Paren(this=unit) for unit in units])


def refuse_unknown_aggregates(select: exp.Select) -> None:
    """Refuse aggregates that would be left outside, where they would add up the rows of the answer.

    Raises:
        Refused: there is one, product(2) or fsum with two arguments.
    """
    for clause in ("expressions", "having", "qualify", "order", "distinct", "windows"):
        value = select.args.get(clause)
        for part in value if isinstance(value, list) else [value]:
            name = unknown_aggregate(part) if isinstance(part, exp.Expr) else None
            if name is not None:
                raise Refused("SDC050", name)


def _grouping(scope: Scope, keys: Keys) -> exp.Group | None:
    """GROUP BY over checked expressions; None where all records are one group."""
    group = scope.select.args.get("group")
    every = [checked.copy() for _, checked in keys.values()]
    if group is not None and group.args.get("all") is True:
        return exp.Group(expressions=every) if keys else None
    if group is not None:
        result: exp.Group = group.copy()
        for leaf in [leaf for item in result.expressions for leaf in leaves(item)]:
            leaf.replace(keys[text(leaf)][1].copy())
        return result
    return exp.Group(expressions=every) if scope.select.args.get("distinct") is not None and keys else None


def grouped(scope: Scope) -> list[exp.Expr]:
    """Every grouping expression, as often as it is written."""
    group = scope.select.args.get("group")
    found: list[exp.Expr] = []
    if group is None:
        if scope.select.args.get("distinct") is not None:
            if scope.select.args["distinct"].args.get("on") is not None:
                raise Refused("SDC005", "DISTINCT ON")
            if not any(has_aggregate(item) for item in scope.select.expressions):
                found = [item.unalias() for item in scope.select.expressions]
    elif group.args.get("all") is True:
        refuse_more_keys(scope.select)
        found = [item.unalias() for item in scope.select.expressions if not has_aggregate(item)]
    else:
        for item in group.expressions:
            found.extend(leaves(item))
    return found


def group_keys(scope: Scope) -> Keys:
    """Every grouping expression by its SQL: the name of its column, and the expression checked."""
    keys: Keys = {}
    by_bytes = scope.progress.collated and not scope.method.from_cells  # cells have one spelling each already
    for node in grouped(scope):
        sql = text(node)
        if sql not in keys:
            _refuse_values_of_one_key(node.type)
            checked = scope.over_dimensions(node)
            keys[sql] = (f"_g{len(keys)}", _by_bytes(node, checked) if by_bytes else checked)
    return keys


def identifying(scope: Scope, keys: Keys) -> frozenset[str]:
    """The columns of a block that tell its rows apart: all of its group keys, where each is shown."""
    shown = {text(item.unalias()): folded(item.alias_or_name) for item in scope.select.expressions}
    if grouping_sets(scope.select.args.get("group")) is not None or not shown.keys() >= keys.keys():
        return frozenset()
    return frozenset(shown[sql] for sql in keys)


def _by_bytes(node: exp.Expr, checked: exp.Expr) -> exp.Expr:
    """A group key where texts are collated: by its bytes, for of 'a' and 'A' a group would show that of one record.

    Raises:
        Refused: it is not known whether there are texts in it, or how to tell them apart.
    """
    kind, value = node.unalias().type, node.unalias()
    if isinstance(value, exp.Null):
        return checked
    if family(node) == "text" or isinstance(value, _TEXTS):
        return exp.Collate(this=exp.cast(checked, "TEXT"), expression=exp.to_identifier("C", quoted=True))
    if kind is None or kind.this in _MAY_HOLD_TEXTS:
        raise Refused("SDC047", "a value that may hold texts, which are collated here: group by each, as a VARCHAR")
    return checked


_TEXTS = (exp.Left, exp.Right, exp.Replace, exp.Pad, exp.SplitPart, exp.RegexpReplace)
"""Functions of which sqlglot does not know that they make a text."""
_MAY_HOLD_TEXTS = exp.DataType.NESTED_TYPES | {exp.DataType.Type.UNKNOWN}


def _refuse_values_of_one_key(kind: exp.DataType | None) -> None:
    """Refuse group keys of a type whose values may be equal and look different.

    A month is 30 days to DuckDB, 0 is -0, and a VARIANT of 1 one of 1.0: which of them a group shows would be up to one
    record.

    Raises:
        Refused: the type is one of these.
    """
    if kind is None:
        return
    if kind.this == exp.DataType.Type.INTERVAL:
        raise Refused("SDC047", "an INTERVAL as a group key: write date_part('epoch', x)")
    if exp.DataType.Type.VARIANT in {part.this for part in kind.find_all(exp.DataType)}:
        raise Refused("SDC047", "a VARIANT as a group key: cast it to VARCHAR")
    inside = {part.this for part in kind.find_all(exp.DataType) if part is not kind}
    if inside & {exp.DataType.Type.INTERVAL, exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT}:
        raise Refused("SDC047", "a list or struct of floating-point numbers or INTERVALs as a group key")
