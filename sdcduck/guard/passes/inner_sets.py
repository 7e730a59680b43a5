"""What the numbers of a block count, as sets of inner cells: for policies that limit the sequence of answers.

The block once more, over a small table of all combinations of dimensions in place of the records. A cell stands there
for a unit that is in it: its place is the unit, and its record key, so that whatever is made of each unit alone is made
of the cells in the same way, in subqueries, in WITH, for each unit, and beside public tables::

    WITH old AS (SELECT * FROM people WHERE age > 60)
    SELECT region, count(*) FILTER (WHERE ill = 1) FROM old JOIN zones USING (region) GROUP BY region

    WITH old AS (SELECT region, ill, record_key FROM (SELECT .., _sdc_place AS record_key FROM _sdc_cells) AS people ..)
    SELECT list(old.record_key) AS _s0, list(old.record_key) FILTER (WHERE ill = 1) AS _s1
    FROM old JOIN zones USING (region) GROUP BY region

Answers that it reads stay what they are, numbers with noise. They are charged before the sets are looked at, so that a
refusal tells no more than they do. What is left is made of dimensions, of public columns and of answers, or refused:
nobody would know what it tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp, parse_one

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Numbered, Sets
from sdcduck.guard.expressions import tells_time
from sdcduck.guard.passes.inner_figures import Columns, Figures, Sources, measure, unknown
from sdcduck.guard.protect.inner_cells import CELLS, PLACE
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, identifier

_OF_EACH_UNIT = frozenset(["expressions", "from_", "joins", "where", "group", "with_"])
"""The clauses of a subquery in which each unit is looked at alone."""
_OF_SEVERAL = (exp.Star, exp.Window, exp.UDTF, exp.Explode)
_OF_ONE = (exp.Sum, exp.Min, exp.Max, exp.AnyValue)
"""Aggregates of the values of a unit, which is one value."""


@dataclass(frozen=True)
class SetsOf:
    """The SELECT of the sets of a block.

    Attributes:
        query: over inner cells.
        of: for each of its columns what is added up (`Figure.text`); empty: units are counted.
        reads: the names of the blocks whose numbers it reads.
    """

    query: exp.Select
    of: tuple[str, ...]
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Named:
    """The relations of a query, all of which have names of their own by now.

    Attributes:
        policies: by folded name.
        numbers: of the blocks, by the names of the tables that stand for them.
        queries: of WITH, by name.
        changes: whether a public relation may show other rows when it is looked at once more.
    """

    policies: Mapping[str, Policy]
    numbers: Mapping[str, Numbered]
    queries: Mapping[str, exp.CTE]
    changes: Callable[[str], bool]

    @classmethod
    def of(
        cls,
        tree: exp.Expr,
        policies: Mapping[str, Policy],
        numbers: Mapping[str, Numbered],
        changes: Callable[[str], bool],
    ) -> Named:
        """Those of a query, in which tables stand for the blocks."""
        trees = (tree, *(made.grouped for made in numbers.values()))
        return cls(policies, numbers, {cte.alias: cte for one in trees for cte in one.find_all(exp.CTE)}, changes)


def sets_of(sets: Sets, grouped: exp.Select, named: Named) -> SetsOf:
    """The sets that the numbers of a block are about.

    Args:
        grouped: the SELECT of its group keys, and of more, over records.

    Raises:
        Refused: it looks at more than the dimensions of one table, what is public, and answers.
    """
    over = _Over(sets.policy, named)
    query = grouped.copy()
    query.set("expressions", [])
    query.set("having", None)
    sources = over.sources(query)
    figures = Figures(sets.policy, sources)
    figures.narrow(query)
    figures.take_groups(query)
    asked = figures.asked(sets)
    over.check_clauses(query, sources)
    key = exp.column(sets.key, sets.records, quoted=True)
    for place, (_, condition) in enumerate(asked):
        over.check(condition, sources)
        every = parse_one(f"list({key.sql('duckdb')})", read="duckdb")
        found = exp.Filter(this=every, expression=exp.Where(this=condition.copy()))
        query.append("expressions", exp.alias_(found, f"_s{place}", quoted=True, copy=False))
    if over.kept:
        query.set("with_", exp.With(expressions=list(over.kept.values())))
    return SetsOf(query, tuple(of for of, _ in asked), tuple(over.reads))


@dataclass
class _Over:
    """Puts inner cells in the place of the records of a policy.

    Attributes:
        kept: the queries of WITH that are read, by name; each reads none but those before it.
        of_units: what is known of the columns of those of them that are of units.
        reads: the names of the blocks whose numbers are read.
    """

    policy: Policy
    named: Named
    kept: dict[str, exp.CTE] = field(default_factory=dict)
    of_units: dict[str, Columns | None] = field(default_factory=dict)
    reads: dict[str, None] = field(default_factory=dict)

    def sources(self, select: exp.Select) -> Sources:
        """What is known of the relations of a SELECT over records, in the place of which cells are put."""
        if any(select.args.get(clause) for clause in select.args if clause not in _OF_EACH_UNIT):
            raise _subquery()
        select.set("with_", None)  # what is read of it is put before all
        records = select.args["from_"].this
        found = {records.alias_or_name: self._relation(records)}
        if found[records.alias_or_name] is None:
            raise _join()
        for join in select.args.get("joins") or ():
            other = join.this.alias_or_name
            if join.side not in ("", "LEFT") or join.args.get("using") or join.method not in ("", "ASOF"):
                raise _join()
            if other in found or self._relation(join.this) is not None:
                raise _join()
            found[other] = None
        return found

    def _relation(self, relation: exp.Expr) -> Columns | None:
        if isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Select):
            if not self._has_units(relation):
                self._as_it_is(relation)
                return None
            if relation.alias_column_names:
                raise _subquery()
            return self._select(relation.this)
        if isinstance(relation, exp.Table) and (relation.db, relation.name) == ("main", self.policy.name):
            return self._cells(relation)
        if isinstance(relation, exp.Table) and self._has_units(relation):
            if relation.db:
                raise _join()
            return self._with(relation.name)
        self._as_it_is(relation)
        return None

    def _cells(self, records: exp.Table) -> Columns:
        """Put the cells in the place of a table: a row for each, as if it were a unit."""
        policy = self.policy
        who = [name for name in (policy.unit, policy.record_key) if name is not None]
        shown = [identifier(name) for name in policy.dimensions]
        shown += [f"{identifier(PLACE)} AS {identifier(name)}" for name in who]
        cells = parse_one(f"SELECT {', '.join(shown)} FROM temp.main.{identifier(CELLS)}", read="duckdb")
        alias = exp.TableAlias(this=exp.to_identifier(records.alias_or_name, quoted=True))
        records.replace(exp.Subquery(this=cells, alias=alias))
        dimensions = {folded(name): folded(name) for name in policy.dimensions}
        units = set(map(folded, who))
        return Columns(
            {*dimensions, *units}, dimensions, {folded(name): folded(name) for name in policy.measures}, units
        )

    def _with(self, name: str) -> Columns | None:
        """Keep a query of WITH; what is known of its columns."""
        if name not in self.kept:
            of_units = self._has_units(self._query(name))
            cte = self.named.queries[name].copy()
            if of_units:
                if not isinstance(cte.this, exp.Select) or cte.args["alias"].args.get("columns"):
                    raise _subquery()
                self.of_units[name] = self._select(cte.this)
            else:
                self._as_it_is(cte.this)
                self.of_units[name] = None
            self.kept[name] = cte
        return self.of_units[name]

    def _select(self, select: exp.Select) -> Columns:
        """Put cells in the place of the records of a subquery, which looks at each unit alone."""
        sources = self.sources(select)
        self.check_clauses(select, sources)
        names = {item.alias: item.unalias() for item in select.expressions}
        group = select.args.get("group")
        if group is not None and not any(
            _is_unit(names.get(key.name, key) if isinstance(key, exp.Column) and not key.table else key, sources)
            for key in group.expressions
        ):
            raise _subquery()
        found, kept = Columns(), []
        for item in select.expressions:
            value, name = item.unalias(), folded(item.alias_or_name)
            of = value.this if group is not None and isinstance(value, _OF_ONE) else value
            called = measure(of, sources) if isinstance(of, exp.Column) else None
            if called is not None:
                found.measures[name] = called
            elif unknown(item, sources) is None:
                self.check(value, sources, figures=group is not None)
                found.known.add(name)
                kept.append(item)
                of_table = sources.get(of.table) if isinstance(of, exp.Column) else None
                if of_table is not None and folded(of.name) in of_table.dimensions:
                    found.dimensions[name] = of_table.dimensions[folded(of.name)]
                if _is_unit(value, sources):
                    found.units.add(name)
        select.set("expressions", kept)
        return found

    def check_clauses(self, select: exp.Select, sources: Sources) -> None:
        """Refuse what is not known in the clauses of a SELECT."""
        for join in select.args.get("joins") or ():
            if join.args.get("on") is not None:
                self.check(join.args["on"], sources)
        if select.args.get("where") is not None:
            self.check(select.args["where"].this, sources)
        names = {item.alias for item in select.expressions}
        group = select.args.get("group")
        for key in group.find_all(exp.Column) if group is not None else ():
            if key.table or key.name not in names:  # else it is one of the columns, which are looked at
                self.check(key, sources)
        if group is not None:
            self.check(group, sources, keys=True)

    def check(self, node: exp.Expr, sources: Sources, *, figures: bool = False, keys: bool = False) -> None:
        """Refuse what is not made of dimensions, public columns and answers.

        Args:
            figures: of each unit there may be.
            keys: its columns were looked at.
        """
        column = None if keys else unknown(node, sources)
        if column is not None:
            raise Refused("SDC071", f"{column.name}, which is no dimension")
        if tells_time(node):
            raise _time()
        for part in node.walk(prune=lambda part: isinstance(part, exp.Query)):
            if isinstance(part, exp.Query):
                if self._has_units(part):
                    raise Refused(
                        "SDC071", "records in a condition: ask for them first, and write what it says into WHERE"
                    )
                self._as_it_is(part)
            else:
                counts = figures and isinstance(part.parent, exp.Count)  # count(*) of the rows of a unit
                if (isinstance(part, _OF_SEVERAL) and not counts) or (isinstance(part, exp.AggFunc) and not figures):
                    raise _subquery()

    def _has_units(self, node: exp.Expr) -> bool:
        """Whether it reads records."""
        own = {cte.alias for cte in node.find_all(exp.CTE)}
        for table in node.find_all(exp.Table):
            if table.db:
                policy = self.named.policies.get(folded(table.name)) if table.db == "main" else None
                if policy is None or policy.label != "public":
                    return True
            elif (
                table.name not in own and table.name in self.named.queries and self._has_units(self._query(table.name))
            ):
                return True
        return False

    def _query(self, name: str) -> exp.Expr:
        """A query of WITH.

        Raises:
            Refused: it may read itself.
        """
        cte = self.named.queries[name]
        if isinstance(cte.parent, exp.With) and cte.parent.args.get("recursive"):
            raise Refused("SDC071", "WITH RECURSIVE beside records: ask for it first")
        query: exp.Expr = cte.this
        return query

    def _as_it_is(self, node: exp.Expr) -> None:
        """Keep what reads no records, and remember what it reads."""
        if tells_time(node):
            raise _time()
        own = {cte.alias for cte in node.find_all(exp.CTE)}
        for table in node.find_all(exp.Table):
            if table.db:
                if self.named.changes(table.name):
                    raise Refused("SDC071", f"{table.name}, which may show other rows in a moment")
            elif table.name in self.named.queries:
                if table.name not in own:
                    self._with(table.name)
            elif table.name in self.named.numbers:
                if self.named.numbers[table.name].drawn is not None:
                    raise Refused("SDC071", "answers with noise that is drawn: ask for them first")
                self.reads[table.name] = None


def _is_unit(node: exp.Expr, sources: Sources) -> bool:
    found = sources.get(node.table) if isinstance(node, exp.Column) else None
    return found is not None and folded(node.name) in found.units


def _subquery() -> Refused:
    return Refused("SDC071", "a subquery of records: write its conditions into WHERE")


def _time() -> Refused:
    return Refused("SDC071", "the time of day: write the date")


def _join() -> Refused:
    return Refused("SDC071", "a join with records: ask for counts, and join these")
