"""The groups that there may be, over no record: what a block says of its records, said of the values of domains.

::

    SELECT area, count(*) FROM (SELECT region, age FROM people WHERE region <> 'n') AS p JOIN regions USING (region)
    WHERE age > 60 GROUP BY area

    SELECT area AS _g0
    FROM (SELECT region FROM (FROM (VALUES ('n'), ('s'), (NULL)) AS _d0(region)) AS people WHERE region <> 'n') AS p
        JOIN regions USING (region)
    GROUP BY area

Of a measure it is known how comparisons with numbers can come out that are written in the question (``GROUP BY CASE
WHEN income > 2000 THEN 'high' ELSE 'low' END``): as they do for these numbers, for those in the middle of two, for one
below and one above all, and for NULL. NaN is greater than any number.

Of steps of a measure (``GROUP BY floor(income / 1000)``) the bins are known that there are between its bounds (`bins`),
and of dates and moments the days that were declared (`days`).

Where the rows of each unit are brought together (``SELECT id, count(*) AS n FROM visits GROUP BY id``) it is known how
many rows a unit may have, and of what is made of dimensions which values there are; each by itself (`of_units`).

Other columns of records without a domain are unknown here, and so is all that is made of them. A condition on anything
unknown is left out, and so is a relation that is joined by it: more groups are possible then, never fewer. So each
record is in a group that is possible, and which are follows from the question, from what was declared and from public
tables.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial

from sqlglot import exp, parse_one

from sdcduck.catalog import Policy
from sdcduck.guard.expressions import has_aggregate, is_aggregate, is_query, tells_time
from sdcduck.guard.methods.dp import value_of
from sdcduck.guard.protect.bands import compared_numbers, values_between
from sdcduck.guard.protect.bins import borders_of, clip, steps_of, within
from sdcduck.guard.protect.days import alone, days, moments, step_of
from sdcduck.guard.protect.levels import (
    PLACE,
    Level,
    bounds_of,
    columns_of,
    is_known_of_units,
    is_unit_of,
    shown_measures,
    shown_moments,
    shown_sums,
    shown_units,
)
from sdcduck.guard.protect.materialize import APART
from sdcduck.guard.protect.progress import Progress
from sdcduck.guard.protect.scope import Scope, aliased
from sdcduck.guard.refusals import NO_RECORDS_BESIDE, Refused
from sdcduck.quoting import folded, identifier

_CLAUSES = frozenset(["expressions", "from_", "joins", "where", "with_"])
_MOST_COMBINATIONS = 50_000
_NUMBERS_OF_ROWS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Count, exp.CountIf)
_ONE_OF_ROWS = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Max, exp.Min)
_MOST_OF_DOMAIN = 200  # so many values are taken for what units have that is made of dimensions: of two, and no more


def clip_bins(scope: Scope, grouped: exp.Select) -> None:
    """Take measures within their bounds where steps of them are keys of a block, or columns of a subquery, in place.

    ::

        SELECT floor(income / 1000) AS _g0, .. GROUP BY floor(income / 1000)
        SELECT floor(CASE WHEN income BETWEEN 0 AND 5000 THEN income WHEN .. END / 1000) AS _g0, ..

    So that each record is in a bin that is possible. Conditions look at values as they are.

    Raises:
        Refused: a measure has no bounds.
    """
    of_block = [item for item in grouped.expressions if item.alias.startswith("_g") or item.find(exp.Grouping)]
    _clip_bins(scope, grouped, [*of_block, *filter(None, [grouped.args.get("group")])])


def _clip_bins(scope: Scope, select: exp.Select, parts: list[exp.Expr]) -> dict[str, str]:
    """Do so in parts of a SELECT, and in what it reads; the measures that it shows, as `Level` has them."""
    if select.args.get("from_") is None:
        return {}
    source = select.args["from_"].this
    if id(source) in scope.progress.records:
        measures = {folded(name): folded(name) for name in scope.policy.measures}
    elif isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
        measures = _clip_bins(scope, source.this, source.this.expressions)
    else:
        return {}
    bounds = bounds_of(scope.policy)
    columns = [column for part in parts for column in columns_of(part) if column.table == source.alias_or_name]
    kinds = {folded(column.name): column.type for column in columns if column.type is not None}
    for column in columns:
        name = measures.get(folded(column.name))
        column.type = kinds.get(folded(column.name))
        if name is None or steps_of(column) is None:
            continue
        if name not in bounds:
            raise Refused("SDC081", f"groups of '{column.name}', for which the custodian declared no bounds")
        clip(column, *bounds[name])
    shown = shown_measures(select, source.alias_or_name, measures)
    return shown | shown_sums(select, source.alias_or_name, measures, scope.policy)


def level_of(scope: Scope, grouped: exp.Select) -> Level:
    """The block, looked through down to the one table that its records come from.

    Raises:
        Refused: there is more to it than filtering, renaming and joining public tables.
    """
    return _level(scope.progress, scope.policy, grouped, is_block=True)


def _level(progress: Progress, policy: Policy, select: exp.Select, *, is_block: bool) -> Level:
    more = {part for part, value in select.args.items() if value} - _CLAUSES - {"group"}
    if more or select.args.get("from_") is None:
        raise Refused("SDC081", "a subquery of records that does more than filter, rename and join public tables")
    _check_with(progress, select)
    source, joins = select.args["from_"].this, select.args.get("joins") or []
    for relation in [source, *(join.this for join in joins)]:
        if any(value for part, value in relation.args.items() if part not in ("this", "alias", "db", "catalog")):
            raise Refused("SDC081", "records in an unusual place")
    alias, inner, measures, moments_of = source.alias_or_name, None, dict[str, str](), dict[str, str]()
    units = frozenset([folded(str(policy.unit))])
    if id(source) in progress.records:
        privacy = policy.privacy
        dates = [name for name, kind, *_ in privacy.days if kind == "DATE"]
        known = frozenset(map(folded, [*(name for name, _, _ in privacy.domains), *dates]))
        private = frozenset(map(folded, privacy.private))
        moments_of = {folded(name): folded(name) for name, kind, *_ in privacy.days if kind != "DATE"}
        measures = {folded(name): folded(name) for name in policy.measures if folded(name) not in known | private}
    elif isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
        inner = _level(progress, policy, source.this, is_block=False)
        items = [item for item in inner.items if is_known_of_units(inner, item.unalias())]
        known = frozenset(folded(item.alias_or_name) for item in items)
        others = [item for item in inner.items if inner.may_group(item.unalias())]
        if not policy.privacy.private:
            others = [item for item in others if not has_aggregate(item)]
        units = shown_units(inner)
        private = frozenset(folded(item.alias_or_name) for item in others) - known
        measures = shown_measures(source.this, inner.alias, inner.measures)
        measures |= shown_sums(source.this, inner.alias, inner.measures, policy)
        moments_of = shown_moments(inner)
    else:
        raise Refused("SDC081", "records that stand neither in a table nor in a subquery")
    found = Level(
        select, policy, alias, inner, known, private=private, measures=measures, moments=moments_of, units=units
    )
    aliases = {alias}
    for join in joins:
        if not _is_public(join.this, progress, _apart(select)):
            raise Refused("SDC081", NO_RECORDS_BESIDE)
        aliases.add(join.this.alias_or_name)
        on = join.args.get("on")
        found.public.add(join.this.alias_or_name)
        if on is None:  # one row, which all records have beside them
            continue
        _check(on, aliases, set(), progress)
        if not found.knows(on):
            found.public.remove(join.this.alias_or_name)
            found.beside.add(join.this.alias_or_name)
            if not found.may_group(on):
                found.beside.remove(join.this.alias_or_name)
    where, group = select.args.get("where"), select.args.get("group")
    found.brings_together = group is not None and not is_block
    found.single = inner is not None and inner.single
    shown = [] if is_block or found.brings_together else select.expressions
    for part in filter(None, [where, group if is_block else None, *shown]):
        own = [*_own_queries(progress, found, part), *_own_windows(found, part)]
        _check(part, aliases, _apart(select), progress, own)
        if part is not where:
            found.replace_by_places(part, {id(node) for node in own if _is_placed(found, node)})
    for item in select.expressions if is_block or found.brings_together else []:
        _check_columns(item, aliases)
    if found.brings_together:
        _check_of_units(found)
    return found


def _own_queries(progress: Progress, level: Level, condition: exp.Expr) -> list[exp.Expr]:
    """What a condition asks of other rows of the same unit: ``id IN (SELECT id FROM visits WHERE ..)``.

    Whether a unit is among those of a subquery, of this table or of another one of its population, is decided by its
    own rows: each SELECT there is looked through as this one is, and shows the unit. So who is replaced changes which
    of its own rows are there, and no other.
    """
    found: list[exp.Expr] = []
    for node in condition.walk(prune=is_query):
        query = node.args.get("query") if isinstance(node, exp.In) else None
        asked = query.this if isinstance(query, exp.Subquery) else query
        if not isinstance(asked, exp.Select) or not is_unit_of(level, node.this) or len(asked.expressions) != 1:
            continue
        its = progress.looked_for.get(id(asked))
        if its is None:
            continue
        inside = _level(progress, its, asked, is_block=False)
        if not inside.brings_together and is_unit_of(inside, asked.expressions[0].unalias()):
            found.append(node)
    return found


def _own_windows(level: Level, item: exp.Expr) -> list[exp.Window]:
    """Windows over rows of the same unit, which no other unit changes: ``row_number() OVER (PARTITION BY id ..)``."""
    return [
        node
        for node in item.walk(prune=is_query)
        if isinstance(node, exp.Window)
        and any(is_unit_of(level, key) for key in node.args.get("partition_by") or [])
        and node.find(exp.Query) is None
    ]


def _is_placed(level: Level, node: exp.Expr) -> bool:
    """Whether it is known what can be made of the rows of a unit."""
    if isinstance(node, exp.In):
        return True
    figure = _figure(node)
    is_value = isinstance(figure, _ONE_OF_ROWS) and figure.args.get("default") is None and level.knows(figure.this)
    return is_value or isinstance(figure, _NUMBERS_OF_ROWS)


def _figure(window: exp.Expr) -> exp.Expr:
    found: exp.Expr = window.this
    while isinstance(found, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        found = found.this
    return found


def _places(level: Level, parts: list[exp.Expr], around: _Compared | None) -> list[exp.Join]:
    """Relations of what can be made of the rows of a unit, each by itself.

    Raises:
        Refused: there may be very many together.
    """
    names = [column.table for part in parts for column in columns_of(part) if column.table in level.places]
    number, found = 1, []
    for alias in dict.fromkeys(names):
        node, rows = level.places[alias], level.policy.privacy.contributions
        if isinstance(node, exp.In):
            size, every = 3, f"SELECT unnest([true, false]) AS {PLACE}"
        elif isinstance(_figure(node), _NUMBERS_OF_ROWS):
            size, every = rows + 2, f"SELECT unnest(range(0, {rows + 1})) AS {PLACE}"
        else:
            value = exp.alias_(_figure(node).this.copy(), PLACE, quoted=True)
            size, every = _MOST_OF_DOMAIN, _over_domains(level, [value], around).sql("duckdb")
        number *= size
        join = f'CROSS JOIN ({every} UNION SELECT NULL) AS "{alias}"'
        found.append(parse_one(join, into=exp.Join, read="duckdb"))
    if number > _MOST_COMBINATIONS:
        raise Refused("SDC081", "many things that units have at once: ask for fewer columns at a time")
    return found


def _check_of_units(level: Level) -> None:
    """Refuse a SELECT whose groups are not each of one unit, and see whether each unit has one.

    What is made of the rows of one unit alone is changed by this unit alone, whatever it is.
    """
    group = level.select.args["group"]
    items = {item.alias: item.unalias() for item in level.select.expressions}
    keys = [
        items.get(key.name, key) if isinstance(key, exp.Column) and not key.table else key for key in group.expressions
    ]
    more = [part for part, value in group.args.items() if value and part != "expressions"]
    if more or not any(is_unit_of(level, key) for key in keys):
        raise Refused("SDC081", "a subquery of records with groups that are not those of units")
    for node in (node for item in level.select.expressions for node in item.walk()):
        if isinstance(node, exp.Window) or is_query(node):
            raise Refused("SDC081", "what units have, beside other records")
    level.single = level.single or all(is_unit_of(level, key) for key in keys)


def _of_units(level: Level, items: list[exp.Expr], around: _Compared | None) -> exp.Select:
    """The values that there may be of what each unit has, each by itself: how many rows, and those of dimensions.

    Raises:
        Refused: there may be very many together.
    """
    plain = replace(level, brings_together=False)
    sums = shown_sums(level.select, level.alias, level.measures, level.policy)
    rows, number = level.policy.privacy.contributions, 1
    relations: list[str] = []
    keys: list[exp.Expr] = []
    for item in items:
        node, name, place = item.unalias(), identifier(item.alias), len(relations)
        if isinstance(node, (exp.Count, exp.CountIf)):
            number *= rows + 2
            every = f"unnest(range(0, {rows + 1})) AS {name} UNION ALL SELECT CAST(NULL AS BIGINT)"
        elif folded(item.alias) in sums:
            _, kind, values = _candidates(item.alias, sums[folded(item.alias)], around or _Compared())
            number *= len(values) + 1
            every = f"unnest([{', '.join([*values, f'CAST(NULL AS {kind})'])}]) AS {name}"
        elif has_aggregate(node):
            number *= _MOST_OF_DOMAIN
            values_of = _over_domains(plain, [exp.alias_(node.this.copy(), item.alias, quoted=True)], around)
            every = f"DISTINCT {name} FROM ({values_of.sql('duckdb')}) UNION SELECT NULL"
        else:
            keys.append(item)
            continue
        relations.append(f"(SELECT {every}) AS _u{place}")
    if keys:
        number *= _MOST_OF_DOMAIN
        of_keys = _over_domains(plain, [item.copy() for item in keys], around).sql("duckdb")
        relations.append(f"(SELECT DISTINCT * FROM ({of_keys})) AS _u{len(relations)}")
    if number > _MOST_COMBINATIONS:
        raise Refused("SDC081", "many things that units have at once: ask for fewer columns at a time")
    listed = ", ".join(identifier(item.alias) for item in items)
    made = parse_one(f"SELECT {listed} FROM {' CROSS JOIN '.join(relations)}", read="duckdb")
    assert isinstance(made, exp.Select)
    return made


def _check(
    part: exp.Expr, aliases: set[str], apart: set[str], progress: Progress, own: Collection[exp.Expr] = ()
) -> None:
    """Refuse what does not look at one record and what is public of it, at one time.

    Args:
        own: what looks at other records of the same unit.
    """
    of_unit = set(map(id, own))

    def is_of_unit(node: exp.Expr) -> bool:
        return id(node) in of_unit

    for node in part.walk(prune=lambda node: is_query(node) or is_of_unit(node)):
        if is_of_unit(node):
            continue
        if is_aggregate(node) or isinstance(node, exp.Window):
            raise Refused("SDC081", "numbers of each unit: ask for counts of records")
        if is_query(node):
            _check_query(node, apart, progress)
    _check_columns(part, aliases)


def _check_columns(part: exp.Expr, aliases: set[str]) -> None:
    if tells_time(part):
        raise Refused("SDC081", "the time of day: write the date")
    if any(column.table not in aliases for column in columns_of(part)):
        raise Refused("SDC081", "a column that is not of the table")


def _check_query(query: exp.Expr, apart: set[str], progress: Progress) -> None:
    """Refuse a subquery that is about anything but public tables, or not the same for all records."""
    inside = {table.alias_or_name for table in query.find_all(exp.Table, exp.Subquery, exp.Values)}
    if not _is_public(query, progress, apart):
        raise Refused("SDC081", "a subquery of records or answers: ask it first, and write what it says into WHERE")
    if any(column.table not in inside for column in query.find_all(exp.Column)):
        raise Refused("SDC081", "a subquery that looks at the records around it: write IN (SELECT ..)")


def _apart(select: exp.Select) -> set[str]:
    """The names of public relations that stand in the WITH of a SELECT."""
    with_ = select.args.get("with_")
    return {cte.alias for cte in with_.expressions} if with_ is not None else set()


def _check_with(progress: Progress, select: exp.Select) -> None:
    with_ = select.args.get("with_")
    for cte in with_.expressions if with_ is not None else []:
        if not cte.alias.startswith(APART) or not _is_public(cte.this, progress, set()):
            raise Refused("SDC081", "records compared with an answer: ask for that first, and write its value")
        if tells_time(cte):
            raise Refused("SDC081", "the time of day: write the date")


def _is_public(relation: exp.Expr, progress: Progress, apart: set[str]) -> bool:
    """Whether all that is read in a relation are public tables, or set apart."""
    made = apart | {cte.alias for cte in relation.find_all(exp.CTE)}
    public = {name for name, policy in progress.policies.items() if policy.label == "public"}
    return all(table.name in made or folded(table.name) in public for table in relation.find_all(exp.Table))


def is_private(level: Level, keys: dict[str, exp.Expr]) -> bool:
    """Whether nobody may know the groups by these keys, and they may be grouped by.

    Raises:
        Refused: neither is so.
    """
    for key in keys.values():
        column = level.unknown(key)
        if column is not None and level.is_moment(column):
            raise Refused("SDC081", _FINER_THAN_HOURS.format(column.name))
        if column is not None and column.table == level.alias:
            is_time = column.type is not None and column.type.this in exp.DataType.TEMPORAL_TYPES
            if level.inner is not None and level.inner.single and not is_time:
                raise Refused("SDC081", _OF_UNITS.format(column.name))
            if _is_of_windows(level.inner, column.name):
                raise Refused("SDC081", _OF_WINDOWS.format(column.name))
            raise Refused("SDC081", (_NO_DAYS if is_time else _NO_DOMAIN).format(column.name))
        if column is not None:
            raise Refused("SDC081", f"groups of '{column.name}', which is joined by a column without a domain")
    return not all(map(level.knows, keys.values()))


def _is_of_windows(level: Level | None, name: str) -> bool:
    """Whether a column of a subquery is made of windows over rows of a unit."""
    if level is None:
        return False
    item = next((one for one in level.select.expressions if folded(one.alias_or_name) == folded(name)), None)
    columns = [] if item is None else [column for column in columns_of(item) if column.table == level.alias]
    return bool(item is not None and item.find(exp.Window)) or any(
        _is_of_windows(level.inner, column.name) for column in columns
    )


def possible_groups(level: Level, keys: dict[str, exp.Expr]) -> exp.Select:
    """The SELECT of the groups of a block, by keys that are known without records.

    Args:
        keys: the group keys, by the names of their columns.

    Raises:
        Refused: there are very many.
    """
    items = [exp.alias_(node.copy(), name, quoted=True) for name, node in keys.items()]
    made = _over_domains(level, items)
    made.set("group", exp.Group(expressions=[node.copy() for node in keys.values()]))
    return made


def _over_domains(level: Level, items: list[exp.Expr], around: _Compared | None = None) -> exp.Select:
    """A level over domains: these of its columns, and all conditions that are known.

    Args:
        around: what measures are compared with in the levels around it.
    """
    if level.brings_together:
        return _of_units(level, items, around)

    def is_split(column: exp.Column) -> bool:
        return level.is_measure(column) or level.is_moment(column)

    grouped = {folded(column.name) for item in items for column in columns_of(item) if is_split(column)}
    # A condition on a measure that no group is made of would only multiply the combinations.
    conditions = [
        part
        for part in level.conditions()
        if all(folded(column.name) in grouped for column in columns_of(part) if is_split(column))
    ]
    parts: list[exp.Expr] = [*items, *conditions]
    joins: list[exp.Join] = []
    for join in reversed(level.select.args.get("joins") or []):
        alias = join.this.alias_or_name
        wanted = any(column.table == alias for part in parts for column in columns_of(part))
        if alias in level.public and (wanted or (join.side or "") == ""):
            joins.insert(0, join.copy())
            parts.extend(filter(None, [join.args.get("on")]))
    joins += _places(level, parts, around)
    asked = {folded(column.name) for part in parts for column in columns_of(part) if column.table == level.alias}
    made = exp.Select(expressions=items)
    compared = _compared(level, parts, around or _Compared())
    if level.inner is None:
        made.set("from_", exp.From(this=_combinations(level, asked, compared, parts)))
    else:
        shown = [item.copy() for item in level.inner.items if folded(item.alias_or_name) in asked]
        inner = _over_domains(level.inner, shown or [exp.alias_(exp.Literal.number(1), "_one", quoted=True)], compared)
        made.set("from_", exp.From(this=aliased(inner, level.alias)))
    if joins:
        made.set("joins", joins)
    with_ = level.select.args.get("with_")
    if with_ is not None:
        made.set("with_", with_.copy())
    if conditions:
        made.set("where", exp.Where(this=exp.and_(*(part.copy() for part in conditions), copy=False)))
    return made


_NO_DOMAIN = "groups of '{0}', for which the custodian declared no domain: domains := {{'{0}': [..]}}"
_NO_DAYS = (
    "groups of '{0}', for which the custodian declared no domain: bounds := {{'{0}': ['2020-01-01', '2024-12-31']}}, "
    "the first and the last day that there may be"
)
_OF_UNITS = "groups of '{0}', which units have; of sums write bins: floor({0} / 100) * 100"
_OF_WINDOWS = (
    "groups of '{0}', of windows over rows of a unit: row_number(), rank(), count(*), and lag, lead, first_value and "
    "last_value of a dimension with a domain, without a default, are known; of others ask in WHERE"
)
_FINER_THAN_HOURS = "'{0}' by less than an hour: write date_trunc('day', {0}), or another unit down to hours"


@dataclass(frozen=True)
class _Compared:
    """What measures are compared with, by their names in the policy.

    Attributes:
        borders: the numbers, and those at which steps change.
        kinds: the types of measures in steps; comparisons come out alike for any type that has all numbers.
        sides: those that are compared.
        steps: of moments what is asked of them.
    """

    borders: dict[str, list[Decimal]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    sides: frozenset[str] = frozenset()
    steps: dict[str, list[exp.Expr]] = field(default_factory=dict)


def _compared(level: Level, parts: list[exp.Expr], around: _Compared) -> _Compared:
    """What measures are compared with in these parts, and around them."""
    borders = {name: list(of) for name, of in around.borders.items()}
    kinds, sides, bounds = dict(around.kinds), set(around.sides), bounds_of(level.policy)
    for column in (column for part in parts for column in columns_of(part) if level.is_measure(column)):
        name = level.measures[folded(column.name)]
        found = borders.setdefault(name, [])
        numbers = compared_numbers(column) if within(column) is None else []
        if numbers:
            found.extend(numbers)
            sides.add(name)
        elif isinstance(column.parent, exp.If) and column.type is not None and within(column) is not None:
            found.extend(borders_of(column, *bounds[name]))
            kinds[name] = column.type.sql("duckdb")
    steps = {name: list(of) for name, of in around.steps.items()}
    for column in (column for part in parts for column in columns_of(part) if level.is_moment(column)):
        step = step_of(column)
        steps.setdefault(level.moments[folded(column.name)], []).extend([] if step is None else [step])
    return _Compared(borders, kinds, frozenset(sides), steps)


def _combinations(level: Level, asked: set[str], compared: _Compared, parts: list[exp.Expr]) -> exp.Expr:
    """All combinations of the values of domains and between borders, and of none, as a relation.

    Args:
        parts: what is worked out of them.
    """
    every = [
        (name, kind, [value_of(kind, text) for text in values])
        for name, kind, values in level.policy.privacy.domains
        if folded(name) in asked
    ]
    every += [
        _candidates(name, folded(name), compared)
        for name in level.policy.measures
        if folded(name) in compared.borders and folded(name) in level.measures
    ]
    number, relations = 1, []
    for place, (name, kind, values) in enumerate(every):
        number *= len(values) + 1
        rows = ", ".join(f"({value})" for value in (*values, f"CAST(NULL AS {kind})"))
        relations.append(f"(VALUES {rows}) AS _d{place}({identifier(name)})")
    for place, (name, kind, first, last) in enumerate(level.policy.privacy.days, len(every)):
        if folded(name) in asked:
            of = alone(parts, level.alias, name)
            steps = [] if kind == "DATE" else compared.steps.get(folded(name), [])
            made_of = days if kind == "DATE" else partial(moments, steps=steps)
            rows, different = made_of(name, level.alias, first, last, of)
            number *= different
            relations.append(f"{rows} AS _d{place}")
    if number > _MOST_COMBINATIONS:
        raise Refused("SDC081", f"more than {_MOST_COMBINATIONS} groups: ask for fewer columns at a time")
    relation: exp.Expr = parse_one(
        f"SELECT 1 FROM (SELECT * FROM {' CROSS JOIN '.join(relations) or '(SELECT 1)'}) AS {identifier(level.alias)}",
        read="duckdb",
    )
    made: exp.Expr = relation.args["from_"].this
    return made


def _candidates(name: str, of: str, compared: _Compared) -> tuple[str, str, list[str]]:
    """Values of a measure for which all that a block says of it comes out in every way that it can.

    Where steps are rounded a value beside a border may be on its other side. Of floating-point numbers the next ones
    are looked at, too, where comparisons stand beside steps: both may come out together in one more way.
    """
    borders, kind = compared.borders[of], compared.kinds.get(of)
    values = values_between(borders)
    if kind is None:
        return name, "DOUBLE", [value_of("DOUBLE", str(value)) for value in values]
    if kind == "DOUBLE" and of in compared.sides:
        beside = [Decimal(math.nextafter(float(border), end)) for border in borders for end in (-math.inf, math.inf)]
        values = sorted({*values, *beside})
    # A text with a fraction is no whole number to every DuckDB; a number is rounded.
    exact = kind in ("DOUBLE", "FLOAT") or kind.startswith("DECIMAL")
    written = [f"'{value:f}'" if exact else f"CAST('{value:f}' AS DOUBLE)" for value in values]
    return name, kind, [f"TRY_CAST({value} AS {kind})" for value in written]
