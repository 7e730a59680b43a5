"""What the numbers of a block count, as sets of inner cells: for policies that limit the sequence of answers.

The same WHERE, keys and FILTER, over a small table of all combinations of dimensions in place of the records::

    SELECT region, count(*) FILTER (WHERE ill = 1) FROM people WHERE age > 60 GROUP BY region

    SELECT list(people._sdc_place) AS _s0, list(people._sdc_place) FILTER (WHERE ill = 1) AS _s1
    FROM temp.main._sdc_cells AS people WHERE age > 60 GROUP BY region

What does not look at one table by its dimensions alone is refused: nobody would know what it tells.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp, parse_one

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Sets
from sdcduck.guard.expressions import TIMES, text
from sdcduck.guard.protect.scope import Scope
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, identifier

CELLS, PLACE = "_sdc_cells", "_sdc_place"
"""The table of inner cells, and its column with the number of each."""


def counted_sets(scope: Scope, grouped: exp.Select) -> Sets | None:
    """The SELECT of the sets that a block counts; None: nothing is limited.

    Args:
        grouped: the SELECT of its group keys.

    Raises:
        Refused: it looks at more than the dimensions of one table.
    """
    policy = scope.policy
    if not policy.sequence.holds:
        return None
    from_ = grouped.args["from_"].this
    if scope.relation.table is None or not isinstance(from_, exp.Table) or from_.name != policy.name:
        raise Refused("SDC071", "a subquery of records: write its conditions into WHERE")
    if grouped.args.get("joins") or grouped.args.get("laterals"):
        raise Refused("SDC071", "a join with records: ask for counts, and join these")
    sets = grouped.copy()
    counted = f"list({scope.records_sql}.{identifier(PLACE)})"
    for added in scope.method.steps.added:
        _check_added(parse_one(added, read="duckdb"), policy)
    every = [_of_values(parse_one(sql, read="duckdb"), policy) for sql in scope.method.steps.counted]
    for added, condition, noise in scope.method.steps.summed:
        one = parse_one(added, read="duckdb")
        _check_added(one, policy)
        every.append((Figure.of("sum", [one], noise).text, _of_values(parse_one(condition, read="duckdb"), policy)[1]))
    asked = list({(of, text(condition)): (of, condition) for of, condition in every}.values())
    filtered = [
        exp.Filter(this=parse_one(counted, read="duckdb"), expression=exp.Where(this=condition.copy()))
        for _, condition in asked
    ]
    named = [exp.alias_(one, f"_s{place}", quoted=True, copy=False) for place, one in enumerate(filtered)]
    sets.set("expressions", named)
    _check(sets, scope.alias, policy)
    sets.args["from_"].set(
        "this", exp.table_(CELLS, "main", "temp", quoted=True, alias=exp.to_identifier(scope.alias, quoted=True))
    )
    return Sets(policy.name, sets, tuple(of for of, _ in asked))


def _check_added(added: exp.Expr, policy: Policy) -> None:
    """Refuse sums of what is not made of measures: with dimensions they would be about other records."""
    measures = {folded(name) for name in policy.measures}
    for column in added.find_all(exp.Column):
        if folded(column.name) not in measures:
            raise Refused(
                "SDC071", f"a sum that {column.name} is in, which is no measure: write it into WHERE or FILTER"
            )


@dataclass(frozen=True)
class Figure:
    """What is added up in a number that is no count of units.

    Attributes:
        kind: ``sum`` of values, or ``value``: how many have one.
        measures: of which it is made, folded.
        made: how, whatever the table is called, and what its noise goes by.
    """

    kind: str
    measures: tuple[str, ...]
    made: str

    @classmethod
    def of(cls, kind: str, values: Sequence[exp.Expr], noise: str = "") -> Figure:
        """Of expressions over measures.

        Raises:
            Refused: a parameter is in one, so that the same words are different numbers.
        """
        named = [value.copy() for value in values]
        for value in named:
            if value.find(exp.Parameter, exp.Placeholder) is not None:
                raise Refused("SDC071", "a parameter in what is added up: write the number")
            for column in value.find_all(exp.Column):
                column.set("table", None)
                column.set("this", exp.to_identifier(folded(column.name), quoted=True))
        measures = {column.name for value in named for column in value.find_all(exp.Column)}
        made = "; ".join(sorted({value.sql("duckdb") for value in named}))
        return cls(kind, tuple(sorted(measures)), f"{made}; {noise}" if noise else made)

    @property
    def text(self) -> str:
        """All of it as a text: the same for the same."""
        return json.dumps([self.kind, self.measures, self.made])

    @classmethod
    def read(cls, text: str) -> Figure:
        """What `text` was made of."""
        kind, measures, made = json.loads(text)
        return cls(kind, tuple(measures), made)


def _of_values(condition: exp.Expr, policy: Policy) -> tuple[str, exp.Expr]:
    """What is counted under a condition, and the condition without those for measures that are not NULL.

    How many have a value is a sum over the same records as that of their values: of 1 and 0. Under noise it is a figure
    of its own; a limit on exact sums looks at all sums alike.
    """
    if policy.sequence.mode not in ("rank", "precision"):
        return "", condition
    values: list[exp.Expr] = []
    kept = _without_values(condition, {folded(name) for name in policy.measures}, values)
    return Figure.of("value", values).text if values and policy.sequence.mode == "precision" else "", kept


def _without_values(condition: exp.Expr, measures: set[str], values: list[exp.Expr]) -> exp.Expr:
    """A condition without those for measures that are not NULL; what must not be NULL is added to the values."""
    whole = condition.unnest()
    parts = list(whole.flatten()) if isinstance(whole, exp.And) else [whole]
    kept = []
    for part in parts:
        if _is_value(part, measures):
            values.append(part.unnest().this.this)
        else:
            kept.append(_without_values(part, measures, values) if isinstance(part.unnest(), exp.And) else part)
    if len(kept) == len(parts) and not isinstance(whole, exp.And):
        return condition
    return exp.and_(*kept) if kept else exp.true()


def _is_value(condition: exp.Expr, measures: set[str]) -> bool:
    """Whether it is that something made of measures alone is not NULL."""
    condition = condition.unnest()
    known = condition.this if isinstance(condition, exp.Not) else None
    if not isinstance(known, exp.Is) or not isinstance(known.expression, exp.Null):
        return False
    columns = {folded(column.name) for column in known.this.find_all(exp.Column)}
    return bool(columns) and columns <= measures


def _check(sets: exp.Select, alias: str, policy: Policy) -> None:
    """Refuse what is not made of the dimensions of one table."""
    if any(query is not sets for query in sets.find_all(exp.Query)):
        raise Refused("SDC071", "a subquery beside records: ask it first, and write what it says into WHERE")
    if sets.find(*TIMES) is not None or any(map(_is_until_today, sets.find_all(exp.Anonymous))):
        raise Refused("SDC071", "the time of day: write the date")
    dimensions = {folded(name) for name in policy.dimensions} | {PLACE}
    for column in sets.find_all(exp.Column):
        if column.table != alias or folded(column.name) not in dimensions:
            raise Refused("SDC071", f"{column.name}, which is no dimension")


def _is_until_today(call: exp.Anonymous) -> bool:
    """Whether it is `age(x)`, the time from then to the day of the question: the next day begins between two looks."""
    return folded(call.name) == "age" and len(call.expressions) == 1


def refuse_beside_others(policies: Sequence[Policy]) -> None:
    """Refuse records of a policy that limits the sequence of answers beside other records.

    Raises:
        Refused: there are.
    """
    if len(policies) > 1 and any(policy.sequence.holds for policy in policies):
        raise Refused("SDC071", "records beside other records: ask for counts of each, and join these")
