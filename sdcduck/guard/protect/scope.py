"""What names mean in a block over records, and which expressions over single records there may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp, parse_one

from sdcduck.catalog import Policy
from sdcduck.catalog.relations import total_of
from sdcduck.guard.expressions import (
    is_aggregate,
    is_zero,
    text,
)
from sdcduck.guard.methods import Method, method_class
from sdcduck.guard.methods.dp import ROWS
from sdcduck.guard.protect.bands import borders_for, is_band, is_compared, is_with_numbers, told
from sdcduck.guard.protect.bins import steps_of
from sdcduck.guard.protect.multiplied import multiplying, refuse_multiplied
from sdcduck.guard.protect.progress import Progress
from sdcduck.guard.protect.total import is_total, refuse_lifted, refuse_uncaught, tried
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Added, Label, Relation, Role
from sdcduck.quoting import folded, identifier

_MULTIPLYING = (exp.Replace, exp.RegexpReplace)
_GROWING = (exp.DPipe, exp.Concat, exp.ConcatWs, exp.TimeToStr, exp.Pad, *_MULTIPLYING)
_LONGEST_TEXT = 300
_CHOICES = (exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Paren, exp.Tuple, exp.Cast, exp.TryCast)


def _is_one_of_many(literal: exp.Literal, whole: exp.Expr) -> bool:
    """Whether a value is only compared with a text or is it, so that however many stand there, none grows longer."""
    node: exp.Expr = literal
    while node is not whole and node.parent is not None:
        node = node.parent
        if isinstance(node, (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between)):
            return True
        if not isinstance(node, _CHOICES):
            return isinstance(node, exp.Connector)
    return True


class Scope:
    """The relations of a block and what protects them.

    Attributes:
        progress: of the query that the block is part of.
        select: the block.
        sources: its relations by alias, and what is looked for in EXISTS.
        units: the aliases of those of records; the first is the one that numbers are of.
        multiplying: those of them whose rows tell the rows of the block apart.
        known: the relations that FROM may name.
        original: the block as it was, where its records may be looked at once more; None: they are not.
        policy: that it is answered under.
        agreed: the identities of the relations that this is the policy of.
        works_out_values: whether its records are counted by values for a mode or a histogram beside its own numbers.
    """

    def __init__(
        self,
        progress: Progress,
        select: exp.Select,
        sources: Mapping[str, Relation],
        units: Sequence[str],
        known: Mapping[str, Relation],
        original: exp.Select | None,
    ) -> None:
        self.progress, self.select, self.units = progress, select, tuple(units)
        self.sources = dict(sources)
        self.known, self.original = known, original
        self.multiplying = multiplying(select, sources, units)
        refuse_multiplied(self.rows_of)
        self.alias = self.units[0]
        self.relation = sources[self.alias]
        self.records_sql = identifier(self.alias)
        self._conditions: dict[str, str] = {}
        self.works_out_values = False

    def answer_under(self, policy: Policy, agreed: set[int]) -> None:
        """Say under which policy the block is answered, and of which relations it is the policy."""
        self.policy, self.agreed = policy, agreed
        method = method_class(policy)
        self.method: Method = method.of(policy, carried=self.relation.table is None, several=self.has_several)

    @property
    def several(self) -> bool:
        """Whether a unit may have several rows, so that its rows have to be brought together before noise is added."""
        return self.method.brings_together and self.has_several

    @property
    def has_several(self) -> bool:
        """Whether a unit may have several rows, whatever the method."""
        return bool(self.rows_of)

    @property
    def rows_of(self) -> tuple[str, ...]:
        """The tables of which a unit may have several rows, each as often as these are joined with others."""
        every = tuple(name for alias in self.units for name in self.sources[alias].rows_of)
        return tuple(name for alias in self.multiplying for name in self.sources[alias].rows_of) or every[:1]

    @property
    def tables(self) -> frozenset[str]:
        """The tables whose records are looked at."""
        return frozenset(name for alias in self.units for name in self.sources[alias].tables)

    def is_unit(self, column: exp.Expr) -> bool:
        return isinstance(column, exp.Column) and self.role(column) is Role.UNIT

    def kind_of(self, column: exp.Expr) -> int:
        """Which of the kinds of units this is one of; -1: of none."""
        if not isinstance(column, exp.Column) or self.role(column) not in (Role.UNIT, Role.OTHER):
            return -1
        return self.sources[column.table].others.get(folded(column.name), 0)

    def are_all_units(self, nodes: Sequence[exp.Expr]) -> bool:
        """Whether these have the unit of a row among them, of each kind.

        Raises:
            Refused: those of some kinds alone. What one person has may be from several firms, and one firm would then
                decide something about rows of others.
        """
        if not self.policy.kinds:
            return any(self.unit_of(node) is not None for node in nodes)
        missing = set(range(len(self.policy.kinds))).difference(map(self.kind_of, nodes))
        if missing and len(missing) < len(self.policy.kinds):
            names = ", ".join(self.policy.kinds[kind].unit for kind in sorted(missing))
            raise Refused("SDC040", _OF_ONE_KIND.format(names))
        return not missing

    def role(self, column: exp.Column) -> Role:
        relation = self.sources.get(column.table)
        if relation is None:
            raise Refused("SDC044" if column.table else "SDC030", column.name)
        if relation.label is not Label.UNIT:
            return Role.DIMENSION
        role = relation.roles.get(folded(column.name))
        if role is None:
            raise Refused("SDC030", column.name)
        return role

    def called(self, measure: exp.Column) -> str:
        """What the custodian calls a measure, whatever the query does: one measure has one noise."""
        return self.of_domain(measure) or self.sources[measure.table].measures[folded(measure.name)]

    def is_amount(self, column: exp.Expr) -> bool:
        """Whether a column is added up: a measure, or a dimension whose domain has the ends that noise needs."""
        return isinstance(column, exp.Column) and (
            self.role(column) is Role.MEASURE or self.of_domain(column) is not None
        )

    def of_domain(self, column: exp.Column) -> str | None:
        """The name of the dimension of whole numbers that a column shows, where its domain was declared, or of rows."""
        if self.policy.privacy.holds and self.counts_rows(column):
            return ROWS
        declared = {folded(name): name for name in self.policy.privacy.ends}
        return self._declared(column, declared)

    def days_of(self, column: exp.Column) -> tuple[str, str] | None:
        """First and last day of the dimension of dates or moments that a column shows, where they were declared."""
        declared = {folded(name): name for name, kind, *_ in self.policy.privacy.days if kind in ("DATE", "TIMESTAMP")}
        name = self._declared(column, declared)
        return next(((first, last) for of, _, first, last in self.policy.privacy.days if of == name), None)

    def _declared(self, column: exp.Column, declared: Mapping[str, str]) -> str | None:
        """The name of the dimension that a column shows as it is, if it is one of these."""
        if not declared or column.table != self.alias or self.role(column) is not Role.DIMENSION:
            return None
        select, name = self.select, column.name
        while id(source := select.args["from_"].this) not in self.progress.records:
            if select is self.select and isinstance(source, exp.Table) and self.relation.table is not None:
                break  # which the method's records take the place of later
            if not isinstance(source, exp.Subquery) or not isinstance(source.this, exp.Select):
                return None
            select = source.this
            item = next((one for one in select.expressions if folded(one.alias_or_name) == folded(name)), None)
            shown = item.unalias() if item is not None else None
            if not isinstance(shown, exp.Column) or shown.table != select.args["from_"].this.alias_or_name:
                return None
            name = shown.name
        return declared.get(folded(name))

    def is_owned(self, node: exp.Expr) -> bool:
        """Whether this is a column of what belongs to one unit."""
        if not isinstance(node, exp.Column) or node.table not in self.units:
            return False
        return folded(node.name) in self.sources[node.table].owned

    def identifies(self, column: exp.Column) -> bool:
        """Whether no two rows of the block have one value of a column."""
        if self.multiplying != (column.table,):
            return False
        return folded(column.name) in self.sources[column.table].identifying

    def refuse_repeated(self, measure: exp.Column) -> None:
        """Refuse to pass on what was added up for each unit where other rows of the unit repeat it.

        Added up again and again it would overflow, and whether it does would tell of it.
        """
        others = [alias for alias in self.units if alias != measure.table and self.sources[alias].several]
        if others and self.added(measure) is not None:
            raise Refused(
                "SDC052", "a sum that units have, repeated for other rows of them: add it up where it is joined"
            )

    def known_sum(self, column: exp.Expr) -> str | None:
        """The SQL of whether a sum of each unit is known, where the analyst wrote 0 for rows that do not count."""
        if not isinstance(column, exp.Column) or self.role(column) is not Role.MEASURE:
            return None
        added = self.added(column)
        return None if added is None else added.known

    def refuse_filled(self, column: exp.Expr) -> None:
        if self.known_sum(column) is not None:
            raise Refused("SDC052", FILLED)

    def counts_rows(self, node: exp.Expr) -> bool:
        """Whether this says how many rows of its unit a row stands for, none of them twice: a sum of it counts rows.

        Other rows of the unit that a row is joined to would repeat it.
        """
        if isinstance(node, exp.Coalesce) and len(node.expressions) == 1 and is_zero(node.expressions[0]):
            node = node.this
        if not isinstance(node, exp.Column) or node.table not in self.units:
            return False
        others = any(self.sources[alias].several for alias in self.units if alias != node.table)
        return not others and folded(node.name) in self.sources[node.table].counts

    def added(self, measure: exp.Column) -> Added | None:
        """What a measure is that was added up for each unit, with the SQL of its rows; None: it was not."""
        found = self.sources[measure.table].added.get(folded(measure.name))
        if found is None:
            return None
        known = None if found.known is None else text(exp.column(found.known, measure.table, quoted=True))
        return replace(found, rows=text(exp.column(found.rows, measure.table, quoted=True)), known=known)

    def dimension(self, column: exp.Column) -> None:
        role = self.role(column)
        if role is Role.MEASURE:
            raise Refused("SDC041", self._measure_told(column))
        if role is Role.UNIT:
            raise Refused("SDC040", f"{column.name} is the unit: count(DISTINCT {column.name}), or join on it")
        if role is Role.OTHER:
            raise Refused("SDC040", f"{column.name} is a unit: count(DISTINCT {column.name})")

    def over_dimensions(self, node: exp.Expr) -> exp.Expr:
        """An expression over dimensions, checked, that cannot fail."""
        refuse_query(node)
        self.check(node)
        if isinstance(node, exp.Column):
            return node
        return exp.Try(this=node.copy()) if is_total(node, self.is_stored) else tried(node.copy())

    def is_stored(self, column: exp.Column) -> bool:
        """Whether a column is read from a table as it is, so that its type is the one that is known."""
        return not self.method.from_cells and self.sources[column.table].table is not None

    def check(self, node: exp.Expr) -> None:
        for inner in node.walk():
            if is_aggregate(inner) or isinstance(inner, exp.Window):
                if isinstance(inner, exp.Window):
                    raise Refused("SDC045", "a window")
                raise Refused("SDC005", "an aggregate in WHERE or GROUP BY")
            refuse_lists(inner)
            refuse_uncaught(inner)
            if isinstance(inner, exp.Column) and not self.is_asked_for(inner):
                if self.role(inner) in (Role.MEASURE, Role.UNIT, Role.OTHER):
                    self.refuse_correlation(node)
                self.dimension(inner)
            if isinstance(inner, _GROWING):
                # Texts that grow from one subquery to the next take time and memory where there are records.
                again = any(self.role(column) is Role.COMPUTED for column in inner.find_all(exp.Column))
                within = _GROWING if isinstance(inner, _MULTIPLYING) else _MULTIPLYING
                if again or any(part is not inner for part in inner.find_all(*within)):
                    raise Refused("SDC005", "texts put together again and again")
        texts = [text for text in node.find_all(exp.Literal) if text.is_string]
        worked_with = sum(len(text.this) for text in texts if not _is_one_of_many(text, node))
        if max([worked_with, *(len(text.this) for text in texts)]) > _LONGEST_TEXT:
            raise Refused("SDC002", f"texts of more than {_LONGEST_TEXT} characters in one expression over records")
        self.progress.unit_expressions.append(text(node))

    def refuse_correlation(self, node: exp.Expr) -> None:
        """Say first that an expression reaches for a query around it, before anything else is said of it."""
        for column in node.find_all(exp.Column):
            self.role(column)

    def _measure_told(self, column: exp.Column) -> str:
        """What is said of a measure that stands where it must not."""
        if is_compared(column) and self.method.from_cells:
            return f"{column.name}; of a publication, bands are dimensions where it has a column of them"
        borders = self.sources[column.table].bands.get(folded(column.name))
        if borders:
            return told(column.name, borders)
        if self.policy.privacy.holds:
            return _measure_of_private_told(column)
        asked = borders_for(column)
        if not asked:
            return f"{column.name}; bands are compared by < and >=" if is_with_numbers(column) else column.name
        called = self.called(column) if self.added(column) is None else total_of(self.called(column))
        wanted = f"bands := {{'{called}': [.., {', '.join(asked)}, ..]}}"
        no = f"{asked[0]} is no border" if len(asked) == 1 else f"{' and '.join(asked)} are no borders"
        return f"{column.name}; {no} of a band, which the custodian declares: sdc_protect(.., {wanted})"

    def bands(self, column: exp.Column) -> tuple[float, ...]:
        """The borders that the custodian declared for a measure of records; none where cells or sums have it."""
        if self.method.from_cells or self.role(column) is not Role.MEASURE:
            return ()
        return self.sources[column.table].bands.get(folded(column.name), ())

    def totals(self, column: exp.Column) -> tuple[float, ...]:
        """The borders that the custodian declared for what a unit has of a measure, in whatever rows.

        None where other rows of the unit repeat these: three times an amount would have borders at a third.
        """
        if any(alias != column.table and self.sources[alias].several for alias in self.units):
            return ()
        return self.sources[column.table].totals.get(folded(column.name), ())

    def bounds(self, column: exp.Column) -> tuple[float, ...]:
        """What the custodian declared that the values of a measure of records are between; nothing: nothing."""
        return self.sources[column.table].bounds.get(folded(column.name), ())

    def is_asked_for(self, column: exp.Column) -> bool:
        """Whether this is a measure or a unit in ``IS NULL``, or a measure that is compared with a declared border.

        It is no secret that there is one, see count(measure). Under differential privacy a measure is compared with any
        number: whose record it is decides alone whether it is looked at, so that one record adds to a total what it
        adds or nothing, as is charged for; of many borders each is another question, and costs. For the same reason it
        may stand in steps that are written with numbers (`floor(income / 1000)`), but for what is added up.
        """
        if self.policy.privacy.holds and self.role(column) is Role.MEASURE:
            in_steps = column.find_ancestor(exp.AggFunc) is None and steps_of(column) is not None
            if in_steps or is_with_numbers(column):
                self.refuse_filled(column)
                return True
        if is_compared(column) and is_band(column, self.bands(column)):
            self.refuse_filled(column)
            return True
        is_null = isinstance(column.parent, exp.Is) and isinstance(column.parent.expression, exp.Null)
        if is_null and self.method.from_cells and self.role(column) is Role.UNIT:
            raise Refused("SDC035", "a publication has cells, and no units")
        asked = is_null and not self.method.from_cells and self.role(column) in (Role.MEASURE, Role.UNIT)
        if asked:
            self.refuse_filled(column)
        return asked

    def condition(self, node: exp.Expr, *, outer: bool = False) -> exp.Expr:
        """A condition on single records, as a truth value that cannot fail.

        Args:
            outer: whether it is one in EXISTS, on records inside and outside of it.
        """
        if isinstance(node, exp.And):
            left, right = (self.condition(part, outer=outer) for part in (node.this, node.expression))
            return exp.And(this=left, expression=right)
        if isinstance(node, exp.Paren):
            return exp.Paren(this=self.condition(node.this, outer=outer))
        if isinstance(node, exp.Or) and not outer and not is_total(node, self.is_stored):
            # Each side for itself: where one is true, that the other fails is nothing that DuckDB looks at.
            return exp.paren(exp.Or(this=self.condition(node.this), expression=self.condition(node.expression)))
        plain = isinstance(self.over_dimensions(node), exp.Try) or is_total(node, self.is_stored)
        truth = exp.cast(node.copy(), exp.DataType.Type.BOOLEAN, copy=False)
        if outer and not plain:
            # A lambda does not reach outside, and what stands twice in WHERE stays where it is; but no long IN does.
            refuse_lifted(node)
        return exp.Try(this=truth) if plain or outer else tried(truth)

    def condition_sql(self, node: exp.Expr) -> str:
        """The SQL of `_condition`, made once: several numbers of a query are often about the same records."""
        asked = text(node)
        if asked not in self._conditions:
            self._conditions[asked] = self.condition(node).sql("duckdb", copy=False)
        return self._conditions[asked]

    def unit_of(self, node: exp.Expr) -> exp.Column | None:
        """The unit of a row, if this is it in each row; None: it is anything else, or missing, as after LEFT JOIN.

        Units are joined with each other, so that those of inner joins are one.
        """
        if isinstance(node, exp.Coalesce):  # what sqlglot makes of the column of JOIN .. USING
            sides = [node.this, *node.expressions]
            units = map(self.unit_of, sides) if all(map(self.is_unit, sides)) else iter(())
            return next(filter(None, units), None)
        if not isinstance(node, exp.Column) or not self.is_unit(node):
            return None
        is_missing = node.table in self.maybe_missing or folded(node.name) in self.sources[node.table].missing
        return None if is_missing else node

    @property
    def maybe_missing(self) -> set[str]:
        """The relations of which some rows have none, behind LEFT JOIN."""
        return {join.this.alias_or_name for join in self.select.args.get("joins") or [] if join.side}

    def has_measure(self, node: exp.Expr) -> bool:
        """Whether a measure stands in an expression, and not only in what may be asked of it as of a dimension."""
        return any(
            self.role(column) is Role.MEASURE and not self.is_asked_for(column) for column in node.find_all(exp.Column)
        )

    def over_source(self) -> exp.Select:
        """A SELECT over the same records, of nothing yet; the records are those that the method answers from."""
        made = exp.Select(expressions=[])
        for clause in ("from_", "joins", "where"):
            if self.select.args.get(clause) is not None:
                made.set(clause, self.select.args[clause])
        whole, self.select = self.select, made
        self.read_from_method()
        self.select = whole
        return made

    def read_from_method(self) -> None:
        """Put the table that the method answers from in place of the table of the policy."""
        table = self.select.args["from_"].this
        if self.relation.table is not None and isinstance(table, exp.Table):
            records = source_of(f"{self.method.source()} AS {self.records_sql}").copy()
            self.select.args["from_"].set("this", records)
            self.progress.made(self.select.args["from_"])
            self.progress.records[id(records)] = records


def _measure_of_private_told(column: exp.Column) -> str:
    """What to write, where one record may decide about itself, in place of what else is made of a measure."""
    name = column.name
    if is_compared(column):
        return (
            f"{name}; compare it with a number that is written out: where that is an answer, such as of "
            f"(SELECT avg({name}) ..), ask for it first, and write it"
        )
    return f"{name}; groups of it are bins, floor({name} / 1000) * 1000, or CASE WHEN {name} < 1000 THEN .. ELSE .. END"


FILLED = "anything but sum, avg and count of sums with 0 for rows that do not count"
_OF_ONE_KIND = "units of one kind, of which each may have several of another; take all kinds together, also {}"


def refuse_query(*parts: exp.Expr | None) -> None:
    """Refuse subqueries in parts that take none; where records are looked at once more they are protected already."""
    if any(part is not None and part.find(exp.Query) is not None for part in parts):
        raise Refused("SDC046", _QUERY_INSIDE)


def refuse_lists(node: exp.Expr) -> None:
    """Refuse lists that are written in ways for which there is IN."""
    if isinstance(node, (exp.Any, exp.All)):
        raise Refused("SDC046", "ANY and ALL: write column IN (..), or compare with (SELECT min(..) ..)")
    if isinstance(node, exp.Values):
        raise Refused("SDC046", "IN (VALUES ..): write IN (..), or IN (SELECT .. FROM (VALUES ..) t)")


@lru_cache(1000)
def source_of(sql: str) -> exp.Expr:
    """What stands after FROM; a copy costs less than another parse."""
    found: exp.Expr = parse_one(f"SELECT 1 FROM {sql}", read="duckdb").args["from_"].this
    return found


_QUERY_INSIDE = "a subquery in a group key, a FILTER or an aggregate"


def aliased(query: exp.Query, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
