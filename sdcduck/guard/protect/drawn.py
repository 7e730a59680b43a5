"""What noise is drawn for in a block, and the groups that it is drawn for: all that there may be, over no record.

::

    SELECT region, count(*) FROM people WHERE age > 60 AND region <> 'n' GROUP BY region

    SELECT region AS _g0 FROM (FROM (VALUES ('n'), ('s'), (NULL)) AS _d0(region)) AS people
    WHERE region <> 'n' GROUP BY region

So the groups that are answered follow from the question and from what was declared (`possible_groups`).

One person must not change more than the proof says: one table, of which each unit has one row, or as many as are
looked at, and beside it nothing but public relations in which each record finds one row at most.

Where a subquery groups by the unit alone, each unit has one row from there on, however many it had: made of its own
rows, which another unit does not change, so that who is replaced changes one row. Grouped by more beside the unit, it
has no more rows than before.

Of grouping sets, noise is drawn for those that are part of no other one. The groups of the others are made of theirs::

    GROUP BY ROLLUP (region, sex)

    SELECT _g0, _g1, sum(_f0_0) AS _f0_0, .. FROM (the numbers of region and sex)
    GROUP BY GROUPING SETS ((_g0, _g1), (_g0), ())

Groups that nobody may know (`sdcduck.methods.dp.threshold`) appear by the noisy number of their units, which is drawn
beside the other numbers if it is not one of them. What they add up to lacks those that do not appear, so that each set
of them, and each that is part of it, is drawn for itself.

So they add up, and the question is shared by fewer numbers. Over all numbers of an answer the variance of the noise is
about the same: each set has that of all its finest groups in sum, where it would have that of its own groups times the
number of sets. What does not add up, such as numbers of distinct values, is drawn for each set by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp, parse_one

from sdcduck.guard.calls import NUMBERS, Drawn, Grouping, Noised
from sdcduck.guard.expressions import grouping_sets, text
from sdcduck.guard.methods.dp import DifferentialPrivacy
from sdcduck.guard.protect.levels import Level
from sdcduck.guard.protect.materialize import APART
from sdcduck.guard.protect.possible_groups import clip_bins, is_private, level_of, possible_groups
from sdcduck.guard.protect.scope import Scope
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

_LARGEST_BYTE = 255


def drawn(scope: Scope, grouped: exp.Select) -> Drawn | exp.Select | None:
    """What noise is drawn for in a block; None: its method has its noise in SQL.

    Where nothing is counted the answer is what was declared, a SELECT over no record: ``SELECT DISTINCT region``.

    Args:
        grouped: the SELECT of its group keys and of the calls over records.

    Raises:
        Refused: more than one table is looked at, or groups are not known without records.
    """
    method = scope.method
    if not isinstance(method, DifferentialPrivacy):
        return None
    _take_apart(scope.select, grouped)
    clip_bins(scope, grouped)
    level = level_of(scope, grouped)
    items = {item.alias: item.unalias() for item in grouped.expressions}
    keys = {name: node for name, node in items.items() if name.startswith("_g")}
    totals = {name: method.noised[name] for name in items if name in method.noised}
    if any(noised.single for noised in totals.values()) and not level.single:
        raise Refused("SDC081", "rows of units, brought together in another way than GROUP BY the unit")
    about = {name: node for name, node in items.items() if name not in keys and name not in totals}
    sets = grouping_sets(grouped.args.get("group"))
    if any(node.find(exp.Query) is not None for node in items.values()):
        raise Refused("SDC081", "a subquery in an aggregate")
    if any(sets is None or not isinstance(node, exp.Grouping) for node in about.values()):
        raise Refused("SDC081", "a number that is worked out over records")
    chosen_by = _number_of_units(scope) if is_private(level, keys) else None
    if not totals and chosen_by is None and scope.works_out_values and sets is None:
        return possible_groups(level, keys)
    if not totals and chosen_by is None:
        return _declared(level, keys, plain=sets is None and not about)
    if sets is None:
        if bool(keys) != bool(grouped.args.get("group") and grouped.args["group"].expressions):
            raise Refused("SDC081", "groups that are not shown")
        groupings = [_grouping(level, grouped, keys, totals, chosen_by)]
    else:
        names = {text(node): name for name, node in keys.items()}
        asked = [frozenset(names[text(leaf)] for leaf in one) for one in sets]
        groupings = _of_sets(level, asked, keys, about, totals, chosen_by)
    named = {folded(table.name) for made in groupings for table in made.grouped.find_all(exp.Table)}
    policies = sorted(scope.progress.policies.items())
    tables = tuple(policy.name for name, policy in policies if policy.privacy.holds and name in named)
    return Drawn(scope.policy.name, tuple(groupings), totals, tables, scope.policy.privacy.contributions)


def _declared(level: Level, keys: dict[str, exp.Expr], *, plain: bool) -> exp.Select:
    """The groups that there may be, for nothing: what DuckDB would say if there were somebody in each.

    Raises:
        Refused: some of what is asked about records cannot be said of groups.
    """
    at: Level | None = level
    while plain and at is not None:
        plain = at.is_known and not at.select.args.get("joins")
        at = at.inner
    if not plain:
        raise Refused(
            "SDC081",
            "nothing is counted or added up: ask for count(*), or for SELECT DISTINCT of dimensions with domains alone",
        )
    return possible_groups(level, keys)


@dataclass(frozen=True)
class _Units:
    """The number of units of a group, as a total: by it groups appear that nobody may know."""

    name: str
    node: exp.Expr
    noised: Noised


def _number_of_units(scope: Scope) -> _Units:
    method = scope.method
    assert isinstance(method, DifferentialPrivacy)
    name = method.name_of(method.units(scope.records_sql, "true"))
    sql = next(step[name] for step in method.steps.behind([f'"{NUMBERS}"."{name}"']) if name in step)
    return _Units(name, parse_one(sql, read="duckdb"), method.noised[name])


def _grouping(
    level: Level,
    grouped: exp.Select,
    keys: dict[str, exp.Expr],
    totals: dict[str, Noised],
    chosen_by: _Units | None,
) -> Grouping:
    """The groups of a SELECT: all of the domains, or those that have many units."""
    if not keys or chosen_by is None or not is_private(level, keys):
        cells = possible_groups(level, keys) if keys else None
        return Grouping(_grouped_by_byte(level, grouped, keys), cells, tuple(keys))
    if chosen_by.name in totals:
        return Grouping(grouped, None, tuple(keys), selects=chosen_by.name)
    grouped.append("expressions", exp.alias_(chosen_by.node.copy(), chosen_by.name, quoted=True))
    beside = ((chosen_by.name, chosen_by.noised),)
    return Grouping(grouped, None, tuple(keys), selects=chosen_by.name, beside=beside)


def _grouped_by_byte(level: Level, grouped: exp.Select, keys: dict[str, exp.Expr]) -> exp.Select:
    """A SELECT whose only key is a dimension of few whole numbers, which is made a byte, in place.

    DuckDB has a place for each byte, where it looks for others by a hash. What is not in the domain is NULL by now, so
    that no cast fails: that would take longer. Two bytes have too many places.
    """
    (key,) = keys.values() if len(keys) == 1 else (None,)
    if not isinstance(key, exp.Column) or level.inner is not None or key.table != level.alias:
        return grouped
    ends = {folded(name): ends for name, ends in level.policy.privacy.ends.items()}.get(folded(key.name))
    if ends is None or not 0 <= ends[0] <= ends[1] <= _LARGEST_BYTE:
        return grouped
    byte = parse_one(f"TRY_CAST({text(key)} AS UTINYINT)", read="duckdb")
    grouped.set("group", exp.Group(expressions=[byte.copy()]))
    for item in grouped.expressions:
        if item.alias in keys:
            item.unalias().replace(byte.copy())
    return grouped


def _of_sets(
    level: Level,
    asked: Sequence[frozenset[str]],
    keys: dict[str, exp.Expr],
    about: dict[str, exp.Expr],
    totals: dict[str, Noised],
    chosen_by: _Units | None,
) -> list[Grouping]:
    """The groupings that noise is drawn for where there are grouping sets, with the sets that follow from each."""
    adds = all(noised.adds for noised in totals.values())
    known = [one for one in asked if not is_private(level, {name: keys[name] for name in one})]
    own = [one for one in dict.fromkeys(asked) if not adds or not any(one < other for other in known)]
    made_of: dict[frozenset[str], list[frozenset[str]]] = {one: [] for one in own}
    for one in asked:
        of = [other for other in own if one < other and other in known]
        made_of[one if one in made_of else min(of, key=len)].append(one)
    return [_of_set(level, one, sets, keys, about, totals, chosen_by) for one, sets in made_of.items()]


def _of_set(
    level: Level,
    of: frozenset[str],
    sets: Sequence[frozenset[str]],
    keys: dict[str, exp.Expr],
    about: dict[str, exp.Expr],
    totals: dict[str, Noised],
    chosen_by: _Units | None,
) -> Grouping:
    mine = {name: node for name, node in keys.items() if name in of}
    grouped = level.select.copy()
    grouped.set("expressions", [item for item in grouped.expressions if item.alias in mine or item.alias in totals])
    grouped.set("group", exp.Group(expressions=[node.copy() for node in mine.values()]) if mine else None)
    places = {text(node): name for name, node in keys.items()}
    shown = [f'"{name}"' if name in mine else f'NULL AS "{name}"' for name in keys]
    shown += [_added_up(name, noised) for name, noised in totals.items()]
    for name, node in about.items():
        asked = [places[text(one)] for one in node.expressions]
        bits = " + ".join(
            f'{2**at} * GROUPING("{key}")' if key in mine else str(2**at) for at, key in enumerate(reversed(asked))
        )
        shown.append(f'CAST({bits} AS BIGINT) AS "{name}"')
    listed = ", ".join("(" + ", ".join(f'"{name}"' for name in keys if name in one) + ")" for one in sets)
    around = (f"SELECT {', '.join(shown)} FROM (", f") GROUP BY GROUPING SETS ({listed})")
    made = _grouping(level, grouped, mine, totals, chosen_by)
    return made._replace(around=around, adds_up=any(one < of for one in sets))


def _added_up(name: str, noised: Noised) -> str:
    """The sum of noisy totals: of those that are not whole in one order, so that its last digits are the same again."""
    if noised.statistic == "count":
        return f'CAST(coalesce(sum("{name}"), 0) AS BIGINT) AS "{name}"'
    return f'coalesce(sum("{name}" ORDER BY "{name}"), 0) AS "{name}"'


def _take_apart(select: exp.Select, grouped: exp.Select) -> None:
    """Move what was set apart from the records of a block to where these are: they are looked at on their own."""
    with_ = select.args.get("with_")
    if with_ is None:
        return
    moved = [cte for cte in with_.expressions if cte.alias.startswith(APART)]
    if not moved:
        return
    left = [cte for cte in with_.expressions if all(cte is not other for other in moved)]
    select.set("with_", exp.With(expressions=left, recursive=with_.args.get("recursive")) if left else None)
    grouped.set("with_", exp.With(expressions=moved))
