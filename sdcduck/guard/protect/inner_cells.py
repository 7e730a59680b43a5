"""What the numbers of a block count, as sets of inner cells: for policies that limit the sequence of answers.

The same WHERE, keys and FILTER, over a small table of all combinations of dimensions in place of the records::

    SELECT region, count(*) FILTER (WHERE ill = 1) FROM people WHERE age > 60 GROUP BY region

    SELECT list(people._sdc_place) AS _s0, list(people._sdc_place) FILTER (WHERE ill = 1) AS _s1
    FROM temp.main._sdc_cells AS people WHERE age > 60 GROUP BY region

The table may be joined with public ones, and stand in a subquery that selects from it. What does not look at one table
by its dimensions and public columns alone is refused: nobody would know what it tells.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp, parse_one

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Sets
from sdcduck.guard.expressions import tells_time, text
from sdcduck.guard.protect.scope import Scope
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Label
from sdcduck.quoting import folded, identifier

CELLS, PLACE = "_sdc_cells", "_sdc_place"
"""The table of inner cells, and its column with the number of each."""


def counted_sets(scope: Scope, grouped: exp.Select) -> Sets | None:
    """The SELECT of the sets that a block counts; None: nothing is limited.

    Args:
        grouped: the SELECT of its group keys.

    Raises:
        Refused: it looks at more than the dimensions of one table, and what is public.
    """
    policy = scope.policy
    if not policy.sequence.holds:
        return None
    sets = grouped.copy()
    over = _over_cells(scope, grouped, sets)
    counted = f"list({scope.records_sql}.{identifier(PLACE)})"
    for added in scope.method.steps.added:
        over.check_added(parse_one(added, read="duckdb"))
    every = [_of_values(parse_one(sql, read="duckdb"), over) for sql in scope.method.steps.counted]
    for added, condition, noise in scope.method.steps.summed:
        one = parse_one(added, read="duckdb")
        over.check_added(one)
        every.append((Figure.of("sum", [one], noise).text, _of_values(parse_one(condition, read="duckdb"), over)[1]))
    for looked_at, condition in scope.method.steps.looked_at:
        one = parse_one(looked_at, read="duckdb")
        over.check_added(one)
        every.append((Figure.of("all", [one]).text, _of_values(parse_one(condition, read="duckdb"), over)[1]))
    asked = list({(of, text(condition)): (of, condition) for of, condition in every}.values())
    filtered = [
        exp.Filter(this=parse_one(counted, read="duckdb"), expression=exp.Where(this=condition.copy()))
        for _, condition in asked
    ]
    named = [exp.alias_(one, f"_s{place}", quoted=True, copy=False) for place, one in enumerate(filtered)]
    sets.set("expressions", named)
    over.check(sets)
    return Sets(policy.name, sets, tuple(of for of, _ in asked))


@dataclass
class _Over:
    """The inner cells in the place of records, and what may be looked at beside them.

    Attributes:
        policy: of the records.
        alias: what they are called.
        dimensions: the columns that are made of dimensions alone, folded.
        measures: those that are measures of the policy, by their own names.
        inner: the subquery that the cells are in; None: there is none.
        public: the columns of public tables that are joined, by alias.
        queries: that may stand in it.
    """

    policy: Policy
    alias: str
    dimensions: set[str]
    measures: set[str]
    inner: exp.Select | None = None
    public: dict[str, frozenset[str]] = field(default_factory=dict)
    queries: list[exp.Expr] = field(default_factory=list)

    def is_of_measures(self, node: exp.Expr) -> bool:
        """Whether it is made of measures, and nothing else."""
        columns = list(node.find_all(exp.Column))
        return bool(columns) and all(
            column.table == self.alias and folded(column.name) in self.measures for column in columns
        )

    def check_added(self, added: exp.Expr) -> None:
        """Refuse sums of what is not made of measures: with dimensions they would be about other records."""
        for column in added.find_all(exp.Column):
            if column.table != self.alias or folded(column.name) not in self.measures:
                raise Refused(
                    "SDC071", f"a sum that {column.name} is in, which is no measure: write it into WHERE or FILTER"
                )

    def check(self, sets: exp.Select) -> None:
        """Refuse what is not made of the dimensions of one table, and of public columns."""
        known = [sets, *self.queries]
        if any(all(query is not one for one in known) for query in sets.find_all(exp.Query)):
            raise Refused("SDC071", "a subquery beside records: ask it first, and write what it says into WHERE")
        if tells_time(sets):
            raise Refused("SDC071", "the time of day: write the date")
        for column in sets.find_all(exp.Column):
            if self.inner is not None and column.find_ancestor(exp.Select) is self.inner:
                continue  # they were looked at before the cells were put in
            name, public = folded(column.name), self.public.get(column.table, frozenset())
            if name not in public and (column.table != self.alias or name not in self.dimensions | {PLACE}):
                raise Refused("SDC071", f"{column.name}, which is no dimension")


def _over_cells(scope: Scope, grouped: exp.Select, sets: exp.Select) -> _Over:
    """Put the inner cells in the place of the records, in place.

    Args:
        grouped: the SELECT over the records, which knows its tables.
        sets: its copy.

    Raises:
        Refused: there is more than records of one table and public tables.
    """
    policy, records = scope.policy, grouped.args["from_"].this
    dimensions, measures = ({folded(name) for name in every} for every in (policy.dimensions, policy.measures))
    over = _Over(policy, scope.alias, dimensions, measures)
    if isinstance(records, exp.Table) and scope.relation.table is not None and records.name == policy.name:
        sets.args["from_"].set("this", _cells_as(scope.alias))
    elif isinstance(records, exp.Subquery) and isinstance(records.this, exp.Select):
        over.inner = _cells_inside(over, scope, records.this, sets.args["from_"].this)
    else:
        raise _subquery()
    if grouped.args.get("laterals"):
        raise _join()
    for join in sets.args.get("joins") or ():
        _check_join(over, scope, join)
    return over


def _cells_as(alias: str) -> exp.Table:
    return exp.table_(CELLS, "main", "temp", quoted=True, alias=exp.to_identifier(alias, quoted=True))


def _cells_inside(over: _Over, scope: Scope, records: exp.Select, copied: exp.Subquery) -> exp.Select:
    """The same for a subquery that selects from the table, with WHERE and columns that are worked out."""
    table, inner = records.args["from_"].this, copied.this
    assert isinstance(inner, exp.Select)
    is_records = isinstance(table, exp.Table) and scope.progress.records.get(id(table)) is table
    if (
        not is_records
        or table.name != over.policy.name
        or any(value for clause, value in records.args.items() if clause not in ("expressions", "from_", "where"))
    ):
        raise _subquery()
    alias, dimensions, measures, kept = table.alias_or_name, set[str](), set[str](), []
    known = {folded(name) for name in over.policy.dimensions}

    def is_known(node: exp.Expr) -> bool:
        if node.find(exp.Query, exp.Star, exp.AggFunc, exp.Window, exp.UDTF, exp.Explode) is not None:
            raise _subquery()
        return all(column.table == alias and folded(column.name) in known for column in node.find_all(exp.Column))

    for item in inner.expressions:
        name, column = folded(item.alias_or_name), item.unalias()
        if is_known(item):
            dimensions.add(name)
            kept.append(item)
        elif isinstance(column, exp.Column) and folded(column.name) == name and name in over.measures:
            measures.add(name)
    where = inner.args.get("where")
    if (where is not None and not is_known(where.this)) or PLACE in dimensions:
        raise _subquery()
    inner.set("expressions", [*kept, exp.column(PLACE, alias, quoted=True)])
    inner.args["from_"].set("this", _cells_as(alias))
    over.dimensions, over.measures = dimensions - measures, measures
    over.queries += [inner, copied]
    return inner


def _check_join(over: _Over, scope: Scope, join: exp.Join) -> None:
    """Refuse a join with anything but a public table or rows as written, and one that adds rows of nobody."""
    table = join.this
    relation = scope.sources.get(table.alias_or_name) if isinstance(table, exp.Table) else None
    if relation is None or relation.label is not Label.PUBLIC or join.method or join.args.get("using"):
        raise _join()
    if join.side not in ("", "LEFT") or join.kind not in ("", "INNER", "CROSS", "SEMI", "ANTI"):
        raise _join()
    if relation.table is None:
        written = None if relation.source is None else parse_one(relation.source, read="duckdb")
        if not isinstance(written, exp.Subquery) or not all(isinstance(node, _WRITTEN) for node in written.walk()):
            raise _join()
        alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
        rows = exp.Subquery(this=written.this, alias=alias)
        join.set("this", rows)
        over.queries += [rows, written.this]
    over.public[table.alias_or_name] = relation.columns


_WRITTEN = (
    exp.Subquery, exp.Select, exp.Star, exp.From, exp.Values, exp.Tuple, exp.Paren, exp.TableAlias, exp.Identifier,
    exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Cast, exp.DataType,
)  # fmt: skip
"""What rows that are written down consist of: the same whenever they are looked at."""


def _subquery() -> Refused:
    return Refused("SDC071", "a subquery of records: write its conditions into WHERE")


def _join() -> Refused:
    return Refused("SDC071", "a join with records: ask for counts, and join these")


@dataclass(frozen=True)
class Figure:
    """What is added up in a number that is no count of units.

    Attributes:
        kind: ``sum`` of values; ``value``: how many have one; ``all``: what can be told of all values together, such as
            a median.
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
    def at(cls, text: str, release: str) -> str:
        """What was added up in another release, whose noise is another; a count has the same for the same units."""
        if not text:
            return text
        one = cls.read(text)
        return cls(one.kind, one.measures, f"{one.made}; {release}").text

    @classmethod
    def read(cls, text: str) -> Figure:
        """What `text` was made of."""
        kind, measures, made = json.loads(text)
        return cls(kind, tuple(measures), made)


def _of_values(condition: exp.Expr, over: _Over) -> tuple[str, exp.Expr]:
    """What is counted under a condition, and the condition without those for measures that are not NULL.

    How many have a value is a sum over the same records as that of their values: of 1 and 0. Under noise it is a figure
    of its own; a limit on exact sums looks at all sums alike.
    """
    mode = over.policy.sequence.mode
    if mode not in ("rank", "precision"):
        return "", condition
    values: list[exp.Expr] = []
    kept = _without_values(condition, over, values)
    return Figure.of("value", values).text if values and mode == "precision" else "", kept


def _without_values(condition: exp.Expr, over: _Over, values: list[exp.Expr]) -> exp.Expr:
    """A condition without those for measures that are not NULL; what must not be NULL is added to the values."""
    whole = condition.unnest()
    parts = list(whole.flatten()) if isinstance(whole, exp.And) else [whole]
    kept = []
    for part in parts:
        if _is_value(part, over):
            values.append(part.unnest().this.this)
        else:
            kept.append(_without_values(part, over, values) if isinstance(part.unnest(), exp.And) else part)
    if len(kept) == len(parts) and not isinstance(whole, exp.And):
        return condition
    return exp.and_(*kept) if kept else exp.true()


def _is_value(condition: exp.Expr, over: _Over) -> bool:
    """Whether it is that something made of measures alone is not NULL."""
    condition = condition.unnest()
    known = condition.this if isinstance(condition, exp.Not) else None
    if not isinstance(known, exp.Is) or not isinstance(known.expression, exp.Null):
        return False
    return over.is_of_measures(known.this)


def refuse_beside_others(policies: Sequence[Policy]) -> None:
    """Refuse records of a policy that limits the sequence of answers beside other records.

    Raises:
        Refused: there are.
    """
    if len(policies) > 1 and any(policy.sequence.holds for policy in policies):
        raise Refused("SDC071", "records beside other records: ask for counts of each, and join these")
