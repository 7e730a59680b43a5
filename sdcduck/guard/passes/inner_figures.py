"""What is known of columns of inner cells, and what numbers add up in them: units, values of measures, or known ones.

What a condition says of measures alone is no set of cells. It narrows what is counted or added up in a set, so that it
is taken off the condition and becomes part of the figure::

    sum(income) FILTER (WHERE age > 60 AND income >= 2000): of those of over 60, a sum of income; income >= 2000
    GROUP BY region, CASE WHEN income < 2000 THEN 'low' ELSE 'high' END: in each region as many figures as it may make
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from sqlglot import exp, parse_one

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Sets
from sdcduck.guard.expressions import conjuncts, tables_of
from sdcduck.guard.protect.inner_cells import Figure
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

_MOST_BANDS = 100


@dataclass
class Columns:
    """What is known of the columns of a relation of units, by their folded names.

    Attributes:
        known: those that are made of dimensions, public columns and answers.
        dimensions: those of them that are dimensions as they are, with the names of these.
        measures: those that are measures as they are, with the names of these.
        units: those that tell the units apart.
    """

    known: set[str] = field(default_factory=set)
    dimensions: dict[str, str] = field(default_factory=dict)
    measures: dict[str, str] = field(default_factory=dict)
    units: set[str] = field(default_factory=set)


Sources = Mapping[str, Columns | None]
"""The relations of a SELECT by alias; None: there are no units in it, and all of its columns are known."""


def unknown(node: exp.Expr, sources: Sources) -> exp.Column | None:
    """The first column that is not known; None: there is none."""
    inside = {table.alias_or_name for query in node.find_all(exp.Select) for table in tables_of(query)}
    for column in node.find_all(exp.Column):
        if column.table in sources:
            found = sources[column.table]
            if found is not None and folded(column.name) not in found.known:
                return column
        elif column.table not in inside:
            return column
    return None


def measure(node: exp.Expr, sources: Sources) -> str | None:
    """The name of the measure that this is as it is; None: it is none."""
    found = sources.get(node.table) if isinstance(node, exp.Column) else None
    return None if found is None else found.measures.get(folded(node.name))


def is_of_measures(node: exp.Expr, sources: Sources) -> bool:
    """Whether it is made of measures, and of nothing else."""
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(measure(column, sources) for column in columns) and node.find(exp.Query) is None


@dataclass
class Figures:
    """What the numbers of a block are.

    Attributes:
        policy: of the units.
        sources: of the block.
        narrowed: conditions on measures that hold for all of it.
        bands: group keys made of measures, and how many groups these may make.
    """

    policy: Policy
    sources: Sources
    narrowed: list[exp.Expr] = field(default_factory=list)
    bands: list[tuple[exp.Expr, int]] = field(default_factory=list)

    @property
    def _with_noise(self) -> bool:
        return self.policy.sequence.mode == "precision"

    def narrow(self, select: exp.Select) -> None:
        """Take conditions on measures off WHERE, in place."""
        where = select.args.get("where")
        if where is not None and self._with_noise:
            kept = self._apart(where.this, self.narrowed)
            select.set("where", exp.Where(this=kept))

    def take_groups(self, select: exp.Select) -> None:
        """Take group keys that are made of measures off GROUP BY, in place."""
        group = select.args.get("group")
        if (
            group is None
            or not self._with_noise
            or any(value for part, value in group.args.items() if part != "expressions")
        ):
            return
        mine = [key for key in group.expressions if is_of_measures(key, self.sources)]
        if not mine:
            return
        self.bands = [(key, self._bands(key)) for key in mine]
        if prod(many for _, many in self.bands) > _MOST_BANDS:
            raise Refused("SDC071", "very many bands at once: group by fewer")
        kept = [key for key in group.expressions if all(key is not one for one in mine)]
        select.set("group", exp.Group(expressions=kept) if kept else None)

    def _bands(self, key: exp.Expr) -> int:
        """How many values there may be: in each band one, and where there is no value."""
        borders = {folded(name): ends for name, ends in self.policy.bands}
        measures = {measure(column, self.sources) for column in key.find_all(exp.Column)}
        return prod(len(borders.get(str(name), ())) + 2 for name in measures)

    def asked(self, sets: Sets) -> list[tuple[str, exp.Expr]]:
        """What each number adds up (`Figure.text`), and the condition for the cells of which it does.

        Raises:
            Refused: nobody knows what one of them tells.
        """
        for sql in sets.added:
            if not is_of_measures(one := parse_one(sql, read="duckdb"), self.sources):
                raise self._no_measure(one)
        found: list[tuple[str, exp.Expr]] = []
        for sql in sets.counted:
            narrowed = list[exp.Expr]()
            condition = self._of_cells(sql, narrowed)
            found += self._figures("value" if self._with_noise else "", narrowed, "", condition)
        for sql, of, noise in sets.summed:
            found += self._of_values("sum", sql, of, noise)
        for sql, of in sets.looked_at:
            found += self._of_values("all", sql, of, "")
        return list({(of, condition.sql("duckdb")): (of, condition) for of, condition in found}.values())

    def _of_values(self, kind: str, sql: str, of: str, noise: str) -> list[tuple[str, exp.Expr]]:
        """A sum of values, or something else that is told of them."""
        added, narrowed = parse_one(sql, read="duckdb"), list[exp.Expr]()
        condition = self._of_cells(of, narrowed)
        if self._is_told_already(added) and not (narrowed or self.narrowed or self.bands):
            return [(Figure.of("known", [self._named(added)]).text, condition)]
        if not is_of_measures(added, self.sources):
            raise self._no_measure(added)
        return self._figures(kind, [added, *narrowed], noise, condition)

    def _figures(
        self, kind: str, values: Sequence[exp.Expr], noise: str, condition: exp.Expr
    ) -> list[tuple[str, exp.Expr]]:
        """What is told under a condition: a figure for each group that measures make."""
        every = [self._named(value) for value in (*values, *self.narrowed, *(key for key, _ in self.bands))]
        if not kind or not every:
            return [("", condition)]
        if not self.bands:
            return [(Figure.of(kind, every, noise).text, condition)]
        many = prod(number for _, number in self.bands)
        return [(Figure.of(kind, every, f"{noise}, group {place}").text, condition) for place in range(many)]

    def _is_told_already(self, added: exp.Expr) -> bool:
        """Whether it is made of dimensions that whoever asks is taken to know of everybody."""
        secrets = {folded(name) for name in self.policy.sequence.secrets}
        columns = list(added.find_all(exp.Column))
        return bool(columns and secrets) and all(
            (found := self.sources.get(column.table)) is not None
            and found.dimensions.get(folded(column.name), min(secrets)) not in secrets
            for column in columns
        )

    def _no_measure(self, added: exp.Expr) -> Refused:
        name = next((one.name for one in added.find_all(exp.Column) if measure(one, self.sources) is None), "nothing")
        return Refused("SDC071", f"a sum that {name} is in, which is no measure: write it into WHERE or FILTER")

    def _named(self, value: exp.Expr) -> exp.Expr:
        """A value in which columns have the names that they have in the table: two of one measure are one measure."""
        named = value.copy()
        for column in named.find_all(exp.Column):
            found = self.sources[column.table]
            name = folded(column.name)
            if found is not None:
                column.set("this", exp.to_identifier(found.measures.get(name, found.dimensions.get(name, name))))
        return named

    def _of_cells(self, sql: str, narrowed: list[exp.Expr]) -> exp.Expr:
        """A condition without what it says of measures, which is added to these.

        How many have a value is a sum over the same records as that of their values: of 1 and 0. Under noise it is a
        figure of its own; a limit on exact sums looks at all sums alike.
        """
        condition = parse_one(sql, read="duckdb")
        return condition if self.policy.sequence.mode not in ("rank", "precision") else self._apart(condition, narrowed)

    def _apart(self, condition: exp.Expr, narrowed: list[exp.Expr]) -> exp.Expr:
        kept = []
        for part in conjuncts(condition):
            whole = part.unnest()
            value = _value(whole)
            if value is not None and is_of_measures(value, self.sources):
                narrowed.append(value)
            elif self._with_noise and is_of_measures(whole, self.sources):
                narrowed.append(whole)
            elif (narrower := self._where_it_counts(whole)) is not None:
                kept.append(self._apart(narrower, narrowed))
            else:
                kept.append(part)
        return exp.and_(*(part.copy() for part in kept)) if kept else exp.true()

    def _where_it_counts(self, condition: exp.Expr) -> exp.Expr | None:
        """The same as a condition and something about measures, where others count anyway: `c IS NOT TRUE OR value`.

        How many others there are is known, and who is among them is what the condition says.
        """
        if not isinstance(condition, exp.Or) or not self._with_noise:
            return None
        others, about = condition.this.unnest(), condition.expression
        is_true = others.this if isinstance(others, exp.Not) else None
        if (
            not isinstance(is_true, exp.Is)
            or is_true.expression != exp.true()
            or not is_of_measures(about, self.sources)
        ):
            return None
        return exp.and_(is_true.this.copy(), about.copy())


def _value(condition: exp.Expr) -> exp.Expr | None:
    """What must not be NULL; None: that is not what it says."""
    is_null = condition.this if isinstance(condition, exp.Not) else None
    return is_null.this if isinstance(is_null, exp.Is) and isinstance(is_null.expression, exp.Null) else None
