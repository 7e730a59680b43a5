"""One block over unit-level records: its joins and conditions checked, its aggregates protected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one

from sdcduck.catalog import Policy
from sdcduck.guard.beside import compared, joined, set_apart, values_of
from sdcduck.guard.calls import SETS, Numbered, both, with_numbers
from sdcduck.guard.figures import FIGURES
from sdcduck.guard.methods import CARRIED, Method, method_of
from sdcduck.guard.names import refuse_more_keys
from sdcduck.guard.numbers import UNITS, Numbers, OfRecords, OfUnits
from sdcduck.guard.own_records import Tied
from sdcduck.guard.per_unit import brought_together
from sdcduck.guard.refusals import Refused, refuse_own_name
from sdcduck.guard.relations import Added, Label, Relation, Role
from sdcduck.guard.scalar_subqueries import JOINED
from sdcduck.guard.semijoins import is_never_null
from sdcduck.guard.shapes import (
    GROUPS,
    RELEASED,
    SET,
    VALUES,
    Keys,
    aggregates,
    bounded,
    case,
    column_names,
    conjuncts,
    constant_factor,
    duckdb_name,
    family,
    grouping_sets,
    has_aggregate,
    is_aggregate,
    is_number,
    is_query,
    is_wide,
    is_zero,
    leaves,
    released,
    text,
    ties,
    typed,
    unknown_aggregate,
    value_of,
    without_nulls,
    without_repetition,
)
from sdcduck.guard.total import is_total, refuse_lifted, refuse_uncaught, tried
from sdcduck.guard.unit_windows import with_windows
from sdcduck.quoting import folded, identifier

if TYPE_CHECKING:
    from sdcduck.guard.protect import Protection

_OF_ONE_FORM = (
    exp.DataType.INTEGER_TYPES
    | exp.DataType.TEXT_TYPES
    | exp.DataType.TEMPORAL_TYPES
    | exp.DataType.NESTED_TYPES
    | {exp.DataType.Type.BOOLEAN, exp.DataType.Type.DECIMAL, exp.DataType.Type.UUID, exp.DataType.Type.UNION}
) - {exp.DataType.Type.INTERVAL}
_MOST_OF_A_TABLE, _MOST_OF_TABLES = 2, 3  # that have several rows of a unit, and are joined
_MOST_TERMS = 10
_MOST_COUNTED = 20
_MOST_SUBTOTALS = 64
_LARGEST_SQUARED = "1e11"  # of larger values the squares could overflow where many are added up, and tell of them
_INNER = (("", "", ""), ("", "INNER", ""), ("", "CROSS", ""))
_WORDS_OF_TIME = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.Localtime, exp.Localtimestamp)
_GROWING = (exp.DPipe, exp.Concat, exp.ConcatWs, exp.Replace, exp.TimeToStr)
_LONGEST_TEXT = 300
_AMONG = "_sdc_i"  # units that others are looked for among
_TIES = "tie it to the others by column = column; an expression goes into a subquery"
_QUERY_INSIDE = "a subquery in a group key, a FILTER or an aggregate"
_ROW_CLAUSES = ("distinct", "limit", "offset", "order", "qualify", "having", "windows", "kind", "hint")


class Block:
    """A SELECT over unit-level relations of the same units, and public ones joined to them."""

    def __init__(
        self,
        protection: Protection,
        select: exp.Select,
        sources: Mapping[str, Relation],
        units: Sequence[str],
        known: Mapping[str, Relation],
        original: exp.Select | None,
    ) -> None:
        self.protection, self.select, self.units = protection, select, tuple(units)
        self.sources = dict(sources)  # and what is looked for in EXISTS
        self.known, self.original = known, original
        self._settle_group_by_all()
        _refuse_multiplied(self.rows_of)
        self.alias = self.units[0]
        self.relation = sources[self.alias]
        self._order_joins()  # what stands in ON comes into WHERE
        self._agreed: set[int] = set()
        self.policy = self._common_policy()
        self.method: Method = method_of(self.policy, carried=self.relation.table is None, several=self.has_several)
        self.records_sql = identifier(self.alias)
        self._conditions: dict[str, str] = {}
        self._check_joins()
        where = select.args.get("where")
        if where is not None:
            where.set("this", self._condition(where.this, queries=True))

    def _settle_group_by_all(self) -> None:
        """GROUP BY ALL without any column groups by nothing: one row of all, as DuckDB has it, where there are figures.

        A word of time may be the name of a column, and is looked at with the keys.

        Raises:
            Refused: there is none, and DuckDB would show a row for each record.
        """
        group = self.select.args.get("group")
        if group is None or group.args.get("all") is not True:
            return
        items = [item.unalias() for item in self.select.expressions if not has_aggregate(item)]
        if any(item.find(exp.Column, *_WORDS_OF_TIME) is not None for item in items):
            return
        if not any(map(aggregates, self._outer_parts())):
            raise Refused("SDC040")
        if self.select.args.get("having") is not None:
            refuse_more_keys(self.select)
        self.select.set("group", None)

    def _common_policy(self) -> Policy:
        """The policy that the block is answered under: of the first unit-level relation, as strict as any of them."""
        where = self.select.args.get("where")
        beside = [] if where is None else self.protection.compared(where)
        relations = [*(self.sources[alias] for alias in self.units), *beside]
        self._agreed = {id(relation) for relation in relations}
        policies = [policy for relation in relations if (policy := relation.policy) is not None]
        first = policies[0]
        for other in policies[1:]:
            alike = (first.method, first.ptable, first.magnitude_ptable, first.base, first.publication)
            alone = first.population is None or first.population != other.population
            if first.method == "suppression" or (alone and folded(first.name) != folded(other.name)):
                raise Refused("SDC035", "records of different units")
            if alike != (other.method, other.ptable, other.magnitude_ptable, other.base, other.publication):
                raise Refused("SDC035", "tables protected in different ways")
        return replace(first, min_units=max(policy.min_units for policy in policies))

    @property
    def several(self) -> bool:
        """Whether a unit may have several rows, so that its rows have to be brought together before noise is added."""
        return self.policy.method == "cell_key" and self.has_several

    @property
    def has_several(self) -> bool:
        """Whether a unit may have several rows, whatever the method."""
        return bool(self.rows_of)

    @property
    def rows_of(self) -> tuple[str, ...]:
        """The tables of which a unit may have several rows, each as often as these are joined with others."""
        return tuple(name for alias in self.units for name in self.sources[alias].rows_of)

    @property
    def is_aggregate(self) -> bool:
        """Whether the block aggregates, by GROUP BY, DISTINCT or an aggregate function."""
        if self.select.args.get("group") is not None or self.select.args.get("distinct") is not None:
            return True
        return any(map(aggregates, self._outer_parts()))

    def _outer_parts(self) -> list[exp.Expr]:
        parts = list(self.select.expressions)
        for clause in ("having", "qualify", "order"):
            if self.select.args.get(clause) is not None:
                parts.append(self.select.args[clause])
        return parts

    # --- Joins ----------------------------------------------------------------------------------------------------

    def _order_joins(self) -> None:
        """Write inner joins as: the unit-level table, then each other with the equalities that tie it to those before.

        FROM a, b WHERE a.x = b.x and a public table that stands first mean the same; outer joins are left as they are.
        """
        every: list[exp.Join] = self.select.args.get("joins") or []
        # What is looked up for each record, behind the joins that the analyst wrote, stays there.
        joins = [join for join in every if not join.this.alias_or_name.startswith(JOINED)]
        if not joins or any(
            (join.side, join.kind, join.method) not in _INNER or join.args.get("using") for join in joins
        ):
            return
        where = self.select.args.get("where")
        conditions = [*conjuncts(where.this)] if where is not None else []
        for join in joins:
            if join.args.get("on") is not None:
                conditions.extend(conjuncts(join.args["on"]))
        tables = {
            table.alias_or_name: table for table in [self.select.args["from_"].this, *(join.this for join in joins)]
        }
        placed, waiting = [self.alias], [alias for alias in tables if alias != self.alias]
        ordered: list[exp.Join] = []
        while waiting:
            tied = {alias: [c for c in conditions if ties(c, alias, placed)] for alias in waiting}
            alias = next((alias for alias in waiting if tied[alias]), None)
            if alias is None:
                raise Refused("SDC034", f"{waiting[0]}: {_TIES}")
            conditions = [c for c in conditions if all(c is not tie for tie in tied[alias])]
            ordered.append(exp.Join(this=tables[alias], on=exp.and_(*tied[alias], copy=False)))
            placed.append(alias)
            waiting.remove(alias)
        self.select.set("from_", exp.From(this=tables[self.alias]))
        self.select.set("joins", [*ordered, *(join for join in every if join not in joins)])
        self.select.set("where", exp.Where(this=exp.and_(*conditions, copy=False)) if conditions else None)

    def _check_joins(self) -> None:
        """Public relations are joined n:1, by equality with all of a key, and unit-level ones on the unit."""
        from_ = self.select.args["from_"].this
        if from_.alias_or_name != self.alias:
            raise Refused("SDC033", "start FROM with the unit-level table")
        for join in self.select.args.get("joins") or []:
            kind = (join.side or "", join.kind or "", join.method or "")
            if kind not in (("", "", ""), ("", "INNER", ""), ("LEFT", "", ""), ("LEFT", "OUTER", "")):
                raise Refused("SDC033", folded(" ".join(filter(None, kind))))
            alias = join.this.alias_or_name
            relation = self.sources[alias]
            if join.args.get("on") is None or (relation.source is None and relation.label is not Label.UNIT):
                raise Refused("SDC034", alias)
            pairs = []
            identifying = []
            for condition in conjuncts(join.args["on"]):
                if relation.label is Label.PUBLIC and {column.table for column in condition.find_all(exp.Column)} == {
                    alias
                }:
                    condition.replace(self._condition(condition))  # narrows the public side only
                else:
                    pairs.append(self._joined_columns(condition, alias))
                    identifying.append(self._compared_as_known(*pairs[-1]))
            if not pairs:
                raise Refused("SDC034", alias)
            if relation.label is Label.UNIT:
                if not any(self.is_unit(mine) and self.is_unit(other) for mine, other in pairs):
                    raise Refused("SDC035", f"join {alias} on the unit")
            else:
                assert relation.source is not None
                self.protection.unique.append((relation.source, tuple(identifying)))
                if relation.table is None:
                    join.set("this", self._apart(join.this))

    def _joined_columns(self, condition: exp.Expr, alias: str) -> tuple[exp.Column, exp.Column]:
        """The two columns of an equality that joins a relation: its own, and one of those before."""
        pair = (condition.this, condition.expression) if isinstance(condition, exp.EQ) else (None, None)
        mine = [side for side in pair if isinstance(side, exp.Column) and side.table == alias]
        other = [side for side in pair if isinstance(side, exp.Column) and side.table != alias]
        if len(mine) != 1 or len(other) != 1:
            raise Refused("SDC034", f"{alias}: {_TIES}, and so does what else is said of {alias}")
        if not (self.is_unit(mine[0]) and self.is_unit(other[0])):
            self._dimension(mine[0])
            self._dimension(other[0])
        if family(mine[0]) != family(other[0]) or family(mine[0]) in (None, "real"):
            raise Refused("SDC034", f"{alias}: columns of different types; cast one in a subquery")
        return mine[0], other[0]

    def _compared_as_known(self, mine: exp.Column, other: exp.Column) -> tuple[str, str]:
        """Compare columns of anything but tables in a type that is known; the relation's own, and its SQL alone."""
        kind = family(mine)
        own = identifier(mine.name)
        if kind is None or self.is_unit(mine):
            return mine.name, own
        for column in (mine, other):
            if self.sources[column.table].table is None:
                column.replace(compared(column.copy(), kind))
                if column is mine:
                    own = compared(exp.column(mine.name, quoted=True), kind).sql("duckdb")
        return mine.name, own

    def _apart(self, relation: exp.Expr) -> exp.Table:
        """The table that stands in place of a public relation that is none, under the same name."""
        alias = relation.args.get("alias") or exp.TableAlias(
            this=exp.to_identifier(relation.alias_or_name, quoted=True)
        )
        query = joined(relation)
        self.protection.made_around(query)
        table = set_apart(self.select, query, self.protection.number())
        table.set("alias", exp.TableAlias(this=alias.this.copy()))
        self.protection.made(table)
        return table

    def _values_apart(self, query: exp.Query, *, scalar: bool = False) -> exp.Subquery:
        """The subquery that stands in place of one that records are compared with."""
        inner = query.this if isinstance(query, exp.Subquery) and not query.args.get("with_") else query
        if scalar:  # that there is one row is found out there
            one = exp.Select(expressions=[exp.Subquery(this=inner)])
            self.protection.made_around(one)
            inner = one
        table = set_apart(self.select, inner, self.protection.number(), columns=len(query.selects))
        self.protection.made(table)
        made = values_of(table, query)
        self.protection.made_around(made)
        return exp.Subquery(this=made)

    def is_unit(self, column: exp.Expr) -> bool:
        return isinstance(column, exp.Column) and self.role(column) is Role.UNIT

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
        return self.sources[measure.table].measures[folded(measure.name)]

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

    def _refuse_filled(self, column: exp.Expr) -> None:
        if self.known_sum(column) is not None:
            raise Refused("SDC052", "anything but sum, avg and count of sums with 0 for rows that do not count")

    def added(self, measure: exp.Column) -> Added | None:
        """What a measure is that was added up for each unit, with the SQL of its rows; None: it was not."""
        found = self.sources[measure.table].added.get(folded(measure.name))
        if found is None:
            return None
        known = None if found.known is None else text(exp.column(found.known, measure.table, quoted=True))
        return replace(found, rows=text(exp.column(found.rows, measure.table, quoted=True)), known=known)

    def _dimension(self, column: exp.Column) -> None:
        role = self.role(column)
        if role is Role.MEASURE:
            raise Refused("SDC041", column.name)
        if role is Role.UNIT:
            raise Refused("SDC040", f"{column.name} is the unit: count(DISTINCT {column.name}), or join on it")

    def over_dimensions(self, node: exp.Expr) -> exp.Expr:
        """An expression over dimensions, checked, that cannot fail."""
        _refuse_query(node)
        self._check(node)
        if isinstance(node, exp.Column):
            return node
        return exp.Try(this=node.copy()) if is_total(node, self._is_stored) else tried(node.copy())

    def _is_stored(self, column: exp.Column) -> bool:
        """Whether a column is read from a table as it is, so that its type is the one that is known."""
        return self.policy.method != "suppression" and self.sources[column.table].table is not None

    def _check(self, node: exp.Expr) -> None:
        for inner in node.walk():
            if is_aggregate(inner) or isinstance(inner, exp.Window):
                if isinstance(inner, exp.Window):
                    raise Refused("SDC045", "a window")
                raise Refused("SDC005", "an aggregate in WHERE or GROUP BY")
            _refuse_lists(inner)
            refuse_uncaught(inner)
            if isinstance(inner, exp.Column) and not self._is_asked_for(inner):
                if self.role(inner) in (Role.MEASURE, Role.UNIT):
                    self._refuse_correlation(node)
                self._dimension(inner)
            if isinstance(inner, _GROWING):
                # Texts that grow from one subquery to the next take time and memory where there are records.
                again = any(self.role(column) is Role.COMPUTED for column in inner.find_all(exp.Column))
                within = _GROWING if isinstance(inner, exp.Replace) else (exp.Replace,)
                if again or any(part is not inner for part in inner.find_all(*within)):
                    raise Refused("SDC005", "texts put together again and again")
        if sum(len(text.this) for text in node.find_all(exp.Literal) if text.is_string) > _LONGEST_TEXT:
            raise Refused("SDC002", "long texts")
        self.protection.unit_expressions.append(text(node))

    def _refuse_correlation(self, node: exp.Expr) -> None:
        """Say first that an expression reaches for a query around it, before anything else is said of it."""
        for column in node.find_all(exp.Column):
            self.role(column)

    def _is_asked_for(self, column: exp.Column) -> bool:
        """Whether this is a measure or a unit in ``IS NULL``: it is no secret that there is one, see count(measure)."""
        asked = (
            isinstance(column.parent, exp.Is)
            and isinstance(column.parent.expression, exp.Null)
            and self.policy.method != "suppression"
            and self.role(column) in (Role.MEASURE, Role.UNIT)
        )
        if asked:
            self._refuse_filled(column)
        return asked

    def _condition(self, node: exp.Expr, *, queries: bool = False, outer: bool = False) -> exp.Expr:
        """A condition on single records, as a truth value that cannot fail.

        Args:
            outer: whether it is one in EXISTS, on records inside and outside of it.
        """
        if isinstance(node, exp.And):
            left, right = (self._condition(part, queries=queries, outer=outer) for part in (node.this, node.expression))
            return exp.And(this=left, expression=right)
        if isinstance(node, exp.Or) and queries and node.find(exp.Query) is not None:
            left, right = (self._condition(part, queries=True) for part in (node.this, node.expression))
            return exp.Paren(this=exp.Or(this=left, expression=right))
        if isinstance(node, exp.Paren):
            return exp.Paren(this=self._condition(node.this, queries=queries, outer=outer))
        if queries and node.find(exp.Query) is not None:
            return self._compared_with_query(node)
        plain = isinstance(self.over_dimensions(node), exp.Try) or is_total(node, self._is_stored)
        truth = exp.cast(node.copy(), exp.DataType.Type.BOOLEAN, copy=False)
        if outer and not plain:
            # A lambda does not reach outside, and what stands twice in WHERE stays where it is; but no long IN does.
            refuse_lifted(node)
        return exp.Try(this=truth) if plain or outer else tried(truth)

    def condition_sql(self, node: exp.Expr) -> str:
        """The SQL of `_condition`, made once: several numbers of a query are often about the same records."""
        asked = text(node)
        if asked not in self._conditions:
            self._conditions[asked] = self._condition(node).sql("duckdb", copy=False)
        return self._conditions[asked]

    def _compared_with_query(self, node: exp.Expr) -> exp.Expr:
        """``column IN (SELECT ..)``, also of several columns, or a column compared with a scalar subquery.

        Of one type, so that it cannot fail.
        """
        if isinstance(node, (exp.Not, exp.Paren)):
            return type(node)(this=self._compared_with_query(node.this))
        if (
            isinstance(node, exp.Coalesce)
            and len(node.expressions) == 1
            and isinstance(node.expressions[0], exp.Boolean)
        ):
            return exp.Coalesce(this=self._compared_with_query(node.this), expressions=node.expressions)
        if isinstance(node, exp.Exists):
            tied = self.protection.tied(node.this)
            if tied is not None:
                return self._exists(node.this, tied)
            table = set_apart(self.select, node.this, self.protection.number())
            self.protection.made(table)
            found = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=table))
            self.protection.made_around(found)
            return exp.Exists(this=found)
        for inner in node.walk(prune=is_query):
            _refuse_lists(inner)
        columns: list[exp.Expr] = []
        query: exp.Expr | None = None
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            columns = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
            query = node.args["query"]
        elif isinstance(node, (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)):
            sides = [node.this, node.expression]
            columns = [side for side in sides if isinstance(side, exp.Column)]
            query = next((side for side in sides if isinstance(side, exp.Subquery)), None)
        if not columns or not isinstance(query, exp.Query) or len(columns) != len(_shown(query)):
            raise Refused("SDC005", "compare a column alone with a subquery")
        units = self._looked_for(query.unnest())
        if units is not None:
            return self._among_units(node, columns, query, units)
        for column, selected in zip(columns, query.selects, strict=True):
            if not isinstance(column, exp.Column):
                raise Refused("SDC005", "compare a column alone with a subquery")
            self._dimension(column)
            families = (family(column), family(selected))
            if None in families or (families[0] != families[1] and not set(families) <= {"whole", "real"}):
                raise Refused("SDC005", "compare a column with a subquery of the same type")
            if self.sources[column.table].table is None:
                column.replace(compared(column.copy(), str(families[0])))
        if isinstance(node, exp.In):
            node.set("query", self._values_apart(query))
        else:
            place = exp.Null()
            query.replace(place)
            place.replace(self._values_apart(query, scalar=True))
        return node

    def _looked_for(self, query: exp.Expr) -> Relation | None:
        """The relation of a subquery over units, whose policy is one of those that the block is answered under."""
        units = self.protection.of_units(query)
        if units is not None and id(units) not in self._agreed:
            raise Refused("SDC044", "a subquery over units anywhere but in WHERE")
        return units

    def _among_units(self, node: exp.Expr, columns: Sequence[exp.Expr], query: exp.Query, units: Relation) -> exp.Expr:
        """``unit IN (SELECT unit ..)``, also with dimensions beside it: a record is kept for what its own unit has."""
        items = _shown(query)
        names = [item.alias_or_name for item in items]
        pairs = [(column, units.roles[folded(name)]) for column, name in zip(columns, names, strict=True)]
        if not isinstance(node, exp.In) or not any(self.is_unit(mine) and role is Role.UNIT for mine, role in pairs):
            raise Refused("SDC044", "compare the unit: WHERE unit IN (SELECT unit ..)")
        for (column, role), item in zip(pairs, items, strict=True):
            if not isinstance(column, exp.Column) or role is Role.MEASURE:
                raise Refused("SDC005", "compare columns that are no measures with a subquery")
            if not (self.is_unit(column) and role is Role.UNIT):
                self._dimension(column)
            if (
                (role is Role.UNIT and not self.is_unit(column))
                or family(column) != family(item)
                or family(item) is None
            ):
                raise Refused("SDC005", "compare a column with a subquery of the same type")
        # Were one unit missing, NOT IN would be so for all.
        inner = query.unnest()
        assert isinstance(inner, exp.Select)
        missing = [name for name in names if folded(name) in units.missing]
        if missing and not is_never_null(inner):
            raise Refused("SDC044", "a unit that may be missing behind LEFT JOIN: take that of the table before it")
        shown = []
        for (column, role), item, name in zip(pairs, items, names, strict=True):
            its: exp.Expr = typed(exp.column(name, _AMONG, quoted=True), item)
            if role is not Role.UNIT or is_wide(column) or is_wide(item):  # DuckDB's own casts could fail
                its = compared(its, str(family(item)))
                column.replace(compared(column.copy(), str(family(column))))
            shown.append(its)
        made = exp.Select(expressions=shown, from_=exp.From(this=_aliased(inner, _AMONG)))
        if missing:
            there = [
                exp.Not(this=exp.Is(this=exp.column(name, _AMONG, quoted=True), expression=exp.Null()))
                for name in missing
            ]
            made.set("where", exp.Where(this=exp.and_(*there, copy=False)))
        self.protection.made_around(made)
        node.set("query", exp.Subquery(this=made))
        return node

    def _exists(self, query: exp.Select, tied: Tied) -> exp.Expr:
        """EXISTS among the records of the same unit: a record is kept for what others of its own unit have."""
        units = self._looked_for(query)
        if units is None:
            raise Refused("SDC044", "EXISTS tied by more than equality")
        self.sources[tied.alias] = units
        of_units = [self._ties_units(condition, tied.alias) for condition in tied.conditions]
        conditions = [
            condition if ties else self._condition(condition, outer=True)
            for condition, ties in zip(tied.conditions, of_units, strict=True)
        ]
        if not any(of_units):
            raise Refused("SDC044", "EXISTS among records: tie them on the unit")
        _refuse_multiplied((*self.rows_of, *units.rows_of))
        found = exp.Select(
            expressions=[exp.Literal.number(1)],
            from_=exp.From(this=_aliased(query, tied.alias)),
            where=exp.Where(this=exp.and_(*conditions, copy=False)),
        )
        self.protection.made_around(found)
        return exp.Exists(this=found)

    def _ties_units(self, condition: exp.Expr, alias: str) -> bool:
        """Whether this is an equality of the unit of a relation with that of another, of one kind."""
        if not isinstance(condition, exp.EQ):
            return False
        one, other = condition.this, condition.expression
        if not (self.is_unit(one) and self.is_unit(other)) or (one.table == alias) == (other.table == alias):
            return False
        return not (is_wide(one) or is_wide(other)) and family(one) == family(other) is not None

    # --- Records --------------------------------------------------------------------------------------------------

    def records(self) -> Relation:
        """A block that only filters, joins and projects: still unit-level. What protection needs is carried along."""
        if self._has_windows():
            relation = with_windows(self)
            return Block(self.protection, self.select, {FIGURES: relation}, [FIGURES], self.known, None).records()
        roles: dict[str, Role] = {}
        measures: dict[str, str] = {}
        missing: set[str] = set()
        added: dict[str, Added] = {}
        projections: list[exp.Expr] = []
        hidden = [exp.column(name, self.alias, quoted=True) for name in self.method.hidden()]
        for item in self.select.expressions:
            value, name = item.unalias(), item.alias_or_name
            refuse_own_name(name)
            if folded(name) in roles:
                raise Refused("SDC031", name)
            if isinstance(value, exp.Column):
                roles[folded(name)] = self.role(value)
                if roles[folded(name)] is Role.MEASURE:
                    measures[folded(name)] = self.called(value)
                    self.refuse_repeated(value)
                    of_rows = self.added(value)
                    if of_rows is not None:
                        carried = replace(of_rows, rows=f"{CARRIED}{len(hidden)}")
                        hidden.append(exp.maybe_parse(of_rows.rows, dialect="duckdb"))
                        if of_rows.known is not None:
                            carried = replace(carried, known=f"{CARRIED}{len(hidden)}")
                            hidden.append(exp.maybe_parse(of_rows.known, dialect="duckdb"))
                        added[folded(name)] = carried
                if roles[folded(name)] is Role.UNIT and self.unit_of(value) is None:
                    missing.add(folded(name))
                if roles[folded(name)] is Role.UNIT and self.policy.method == "suppression":
                    item = exp.alias_(exp.Null(), name, quoted=True)  # cells have no unit; it can still be counted
                projections.append(item)
            else:
                roles[folded(name)] = Role.COMPUTED
                projections.append(exp.alias_(self.over_dimensions(value), name, quoted=True))
        for clause in _ROW_CLAUSES:
            if self.select.args.get(clause) is not None:
                raise Refused("SDC045", clause)
        for place, column in enumerate(hidden):
            projections.append(exp.alias_(column, f"{CARRIED}{place}", quoted=True))
        self.select.set("expressions", projections)
        self._read_from_method()
        return Relation(
            Label.UNIT, frozenset(roles), roles, self.policy,
            rows_of=self.rows_of, missing=frozenset(missing),
            measures=measures, added=added,
        )  # fmt: skip

    def _has_windows(self) -> bool:
        parts = [*self.select.expressions, *filter(None, [self.select.args.get("qualify")])]
        return any(isinstance(node, exp.Window) for part in parts for node in part.walk(prune=is_query))

    def _read_from_method(self) -> None:
        """Put the table that the method answers from in place of the table of the policy."""
        table = self.select.args["from_"].this
        if self.relation.table is not None and isinstance(table, exp.Table):
            self.select.args["from_"].set("this", _source(f"{self.method.source()} AS {self.records_sql}").copy())
            self.protection.made(self.select.args["from_"])

    def is_per_unit(self) -> bool:
        """Whether it groups by the unit."""
        group = self.select.args.get("group")
        if group is not None and group.find(exp.Cube, exp.Rollup, exp.GroupingSets) is not None:
            return False
        return any(self.unit_of(node) is not None for node in self._grouped())

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

    def per_unit(self) -> Relation:
        """A block that groups by the unit: what each unit has, still unit-level."""
        relation = brought_together(self, self._grouped())
        block = Block(self.protection, self.select, {FIGURES: relation}, [FIGURES], self.known, None)
        return block.records()

    # --- Aggregates -----------------------------------------------------------------------------------------------

    def aggregate(self) -> Relation:
        """A block that aggregates: split into protected aggregates and what is written around them."""
        select = self.select
        if select.args.get("kind") or select.args.get("hint"):
            raise Refused("SDC005", "an unusual clause")
        self._refuse_unknown_aggregates()
        keys = self._group_keys()
        numbers = OfUnits(self.policy) if self.several else OfRecords(self.method, self.records_sql)
        split = _Split(self, keys, numbers)
        outer_items = [
            exp.Alias(this=split.outer(item.unalias()), alias=exp.to_identifier(item.alias_or_name, quoted=True))
            for item in select.expressions
        ]
        condition = split.outer(select.args["having"].this) if select.args.get("having") is not None else None
        qualify = select.args.get("qualify")
        if qualify is not None:
            qualify.set("this", split.outer(qualify.this))
        for window in select.args.get("windows") or []:
            window.replace(split.window(window))
        names = {item.alias_or_name for item in select.expressions}
        order = select.args.get("order")
        distinct = select.args.get("distinct")
        on = distinct.args.get("on") if distinct is not None else None
        sorted_by = [ordered.this for ordered in order.expressions] if order is not None else []
        for by in [*sorted_by, *(on.expressions if on is not None else [])]:
            shown = [not column.table and column.name in names for column in by.find_all(exp.Column)]
            if not shown or not all(shown) or has_aggregate(by):
                by.replace(split.outer(by))
        if not keys and not split.aggregates:
            if not split.values:
                raise Refused("SDC045", "nothing is counted or added up")
            split.aggregates[numbers.count("true")] = "_a0"  # one row
        made = self._of_units(keys, split, numbers) if isinstance(numbers, OfUnits) else self._of_records(keys, split)
        table = self.protection.numbered(made)
        inner = self._with_values(made.columns, table, split) if split.values else _named(table, RELEASED)
        for clause in ("joins", "where", "group", "having"):
            select.set(clause, None)
        select.set("expressions", outer_items)
        select.set("from_", exp.From(this=inner))
        if condition is not None:
            select.set("where", exp.Where(this=condition))
        self.protection.blocks[id(select)] = self.policy
        brought = ", the rows of a unit brought together" if self.several else ""
        self.protection.notes.append(
            f"{self.policy.name}: {len(keys)} group keys, {len(split.aggregates)} numbers protected by "
            f"{self.policy.method}{brought}"
        )
        return Relation(Label.RELEASED, column_names(select))

    def _with_values(self, columns: Sequence[str], table: exp.Table, split: _Split) -> exp.Subquery:
        """Group keys and numbers, and beside them numbers of values, each a query of its own."""
        made = exp.Select(expressions=[], from_=exp.From(this=_named(table, GROUPS)))
        for column in columns:
            made.append("expressions", exp.column(column, GROUPS, quoted=True))
        for name, query in split.values.items():
            called = exp.to_identifier(name, quoted=True)
            made.append("expressions", exp.Alias(this=exp.Subquery(this=query), alias=called))
        self.protection.made_around(made)
        return _aliased(made, RELEASED)

    def is_of_values(self, node: exp.Expr) -> bool:
        """Whether this is count(DISTINCT ..), min or max of dimensions, and not of units or measures."""
        value = value_of(node)
        if value is None:
            return False
        columns = list(value.find_all(exp.Column))
        refused = (Role.UNIT,) if isinstance(node, exp.Count) else (Role.UNIT, Role.MEASURE)
        return bool(columns) and all(self.role(column) not in refused for column in columns)

    def number_of_values(self, node: exp.Expr, condition: exp.Expr | None, split: _Split) -> exp.Select:
        """How many values are published in a group, or the least of them: of a SELECT DISTINCT of group keys and value.

        So count(DISTINCT region) says how many regions appear in GROUP BY region, min(region) which is the first of
        these, and nothing else.
        """
        value = value_of(node)
        assert value is not None
        _refuse_query(value, condition)
        groups = self._same_groups(split.keys, condition, _name_of(node))
        self._group_by(groups, split.keys, {"_value": value})
        published = exp.column("_value", VALUES, quoted=True)
        if isinstance(node, exp.Count):
            shown: exp.Expr = exp.Count(this=published, big_int=True)
        else:
            shown = exp.Max(this=published) if isinstance(node, exp.Max) else exp.Min(this=published)
        return self._from_groups(groups, shown, split)

    def number_by_values(self, node: exp.Expr, condition: exp.Expr | None, split: _Split) -> exp.Select | None:
        """A sum of figures of dimensions, or of measures times such figures; None: it is something else.

        It is made of what is published for each value of the figures: sum(x * f) of f times sum(x) GROUP BY f. With
        noise of its own for the same records it would only have to be compared with the noise of sum(x) or count(*)
        to be rid of both, and a figure that is large for some records alone would show the others beside it.
        """
        if not isinstance(node, (exp.Sum, exp.Avg)) or isinstance(node.this, exp.Distinct):
            return None
        inner, factor = constant_factor(node.this)
        chosen, value, otherwise = case(inner)
        value, more = constant_factor(value)
        elsewhere, filled = otherwise, False
        if isinstance(value, exp.Coalesce) and len(value.expressions) == 1 and is_zero(value.expressions[0]):
            otherwise, filled, value = True, True, value.this
        if is_number(value) or (isinstance(value, exp.Column) and self.role(value) is Role.MEASURE):
            return None
        _refuse_query(value, condition)
        if not self.method.weighted:
            if value.find(exp.Column) is None:
                raise Refused("SDC052", "sum and avg take one measure")
            if not self.has_measure(value):
                raise Refused("SDC052", "a sum of dimensions: count(*) GROUP BY them, and add that up")
            raise Refused("SDC041", "sum and avg take one measure")
        if isinstance(node, exp.Avg) and otherwise:
            raise Refused("SDC052", "avg of CASE .. ELSE 0, or of coalesce; use FILTER")
        terms = self._terms(value)
        if len(terms) > _MOST_TERMS:
            raise Refused("SDC002", "a sum of many terms")
        measures = list(dict.fromkeys(measure for _, measure in terms if measure is not None))
        known = [f"{measure} IS NOT NULL" for measure in measures] if len(measures) > 1 else []
        conditions = [condition, chosen, *(parse_one(sql, read="duckdb") for sql in known)]
        wanted = [one.copy() for one in conditions if one is not None]
        groups = self._same_groups(split.keys, exp.and_(*wanted, copy=False) if wanted else None, "a sum of figures")
        figures: dict[str, str] = {}
        parts = []
        for place, (factors, measure) in enumerate(terms):
            counted = f"sum({measure}) AS _n{place}" if measure is not None else f"count(*) AS _n{place}"
            groups.append("expressions", parse_one(counted, read="duckdb"))
            part = f"{VALUES}._n{place}"
            if factors:
                product, most = " * ".join(factors), "9e14" if measure is None else "1e6"
                figure = f"CASE WHEN abs(CAST({product} AS DOUBLE)) <= {most} THEN CAST({product} AS DOUBLE) END"
                part = f"{VALUES}.{figures.setdefault(figure, f'_v{len(figures)}')} * {part}"
            parts.append(part)
        total = f"fsum({' + '.join(parts)}){factor}{more}"
        if isinstance(node, exp.Avg):
            counted = f"count({measures[0]})" if len(measures) == 1 else "count(*)"
            groups.append("expressions", parse_one(f"{counted} AS _m", read="duckdb"))
            complete = " AND ".join(f"{VALUES}.{name} IS NOT NULL" for name in figures.values()) or "true"
            total += f" / nullif(sum(CASE WHEN {complete} THEN {VALUES}._m END), 0)"
        elif otherwise:
            asked = [one for one in (condition, None if elsewhere else chosen) if one is not None]
            if chosen is not None and elsewhere and not filled and not measures:
                unless = exp.Not(this=exp.Is(this=exp.Paren(this=chosen.copy()), expression=exp.true()))
                known_figure = exp.Not(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.Null()))
                asked.append(exp.or_(unless, known_figure, copy=False))
            rows = self.condition_sql(exp.and_(*(one.copy() for one in asked), copy=False)) if asked else "true"
            some = f"{GROUPS}.{split.published(split.numbers.some(rows))}"
            total = self.method.or_zero(self.records_sql, total, some, rows)
        self._group_by(groups, split.keys, {name: parse_one(figure, read="duckdb") for figure, name in figures.items()})
        return self._from_groups(groups, parse_one(total, read="duckdb"), split)

    def _same_groups(self, keys: Keys, condition: exp.Expr | None, of: str) -> exp.Select:
        """A SELECT of the group keys over the records as they were asked about, those for which a condition holds."""
        if self.original is None:
            raise Refused("SDC052", of)
        self.protection.counted += 1
        if self.protection.counted > _MOST_COUNTED:
            raise Refused("SDC002", f"many of {of}")
        groups: exp.Select = self.original.copy()
        for clause in [clause for clause in groups.args if clause not in ("from_", "joins", "where")]:
            groups.set(clause, None)
        for place, sql in enumerate(keys):
            groups.append("expressions", exp.alias_(parse_one(sql, read="duckdb"), f"_g{place}", quoted=True))
        if condition is not None:
            where = groups.args.get("where")
            both = condition.copy() if where is None else exp.and_(where.this, condition.copy(), copy=False)
            groups.set("where", exp.Where(this=both))
        return groups

    def _group_by(self, groups: exp.Select, keys: Keys, values: Mapping[str, exp.Expr]) -> None:
        """Group by the keys and these values too; where there are subtotals, in each of the grouping sets, once."""
        sets = grouping_sets(self.select.args.get("group")) if keys else None
        if sets is not None:
            # A value that is a key, too, stays what it is where that key is summed over.
            values = {name: exp.Case(ifs=[exp.If(this=exp.true(), true=value)]) for name, value in values.items()}
        for name, value in values.items():
            groups.append("expressions", exp.alias_(value, name, quoted=True))
        if sets is None:
            groups.set("group", exp.Group(all=True))
            return
        if any(text(value) in keys for value in values.values()):
            raise Refused("SDC051", "subtotals of what is counted")
        sets = without_repetition(sets)
        if len(sets) > _MOST_SUBTOTALS:
            raise Refused("SDC002", "many subtotals")
        every = [[part.copy() for part in (*one, *values.values())] for one in sets]
        listed = [exp.Tuple(expressions=one) if len(one) > 1 else exp.Paren(this=one[0]) for one in every]
        groups.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=listed)]))
        of_set = exp.Grouping(expressions=[parse_one(sql, read="duckdb") for sql in keys])
        groups.append("expressions", exp.alias_(of_set, SET, quoted=True))

    def _from_groups(self, groups: exp.Select, shown: exp.Expr, split: _Split) -> exp.Select:
        """One number of what is published of groups, for the group around it."""
        names = {name: name for name, _ in split.keys.values()}
        if SET in groups.named_selects:
            names[SET] = split.grouping_set()
        self.protection.query(groups, self.known)
        made = exp.Select(expressions=[shown], from_=exp.From(this=_aliased(groups, VALUES)))
        same = [
            exp.NullSafeEQ(this=exp.column(name, VALUES, quoted=True), expression=exp.column(of, GROUPS, quoted=True))
            for name, of in names.items()
        ]
        if same:
            made.set("where", exp.Where(this=exp.and_(*same, copy=False)))
        self.protection.made_around(made)
        return made

    def over_source(self) -> exp.Select:
        """A SELECT over the same records, of nothing yet; the records are those that the method answers from."""
        made = exp.Select(expressions=[])
        for clause in ("from_", "joins", "where"):
            if self.select.args.get(clause) is not None:
                made.set(clause, self.select.args[clause])
        whole, self.select = self.select, made
        self._read_from_method()
        self.select = whole
        return made

    def _of_records(self, keys: Keys, split: _Split) -> Numbered:
        """Group keys and protected numbers, from records that are units."""
        inner = self.over_source()
        for place, (_, checked) in enumerate(keys.values()):
            inner.append("expressions", exp.alias_(checked.copy(), f"_g{place}", quoted=True))
        group = self._grouping(keys)
        if group is not None:
            inner.set("group", group)
        kept = "true" if group is None else self.method.kept(self.records_sql)
        steps = self.method.steps
        return with_numbers(inner, split.aggregates, kept, steps, self._plain_keys(keys), total=self._has_total())

    def _has_total(self) -> bool:
        """Whether one of its grouping sets is that of all records."""
        return [] in (grouping_sets(self.select.args.get("group")) or [])

    def _plain_keys(self, keys: Keys) -> frozenset[str]:
        """Keys that are columns of tables, of types in which equal values are the same value."""
        return frozenset(
            name
            for name, checked in keys.values()
            if isinstance(checked, exp.Column)
            and self.sources[checked.table].table is not None
            and checked.type is not None
            and _OF_ONE_FORM.issuperset(part.this for part in checked.type.find_all(exp.DataType))
        )

    def _of_units(self, keys: Keys, split: _Split, numbers: OfUnits) -> Numbered:
        """Group keys and protected numbers, after the rows of each unit were brought together in each group.

        The rows of a unit carry the same record key, so that `max` is that key.
        """
        units = self.over_source()
        key, name_of_unit = self.method.hidden()
        unit = exp.column(name_of_unit, self.alias, quoted=True)
        group = self._grouping(keys)
        for place, (_, checked) in enumerate(keys.values()):
            units.append("expressions", exp.alias_(checked.copy(), f"_g{place}", quoted=True))
        for place, brought in enumerate((exp.Max(this=exp.column(key, self.alias, quoted=True)), unit.copy())):
            units.append("expressions", exp.alias_(brought, f"{CARRIED}{place}", quoted=True))
        shown = [f'"{UNITS}"."_g{place}"' for place in range(len(keys))]
        if group is not None and keys and any(not isinstance(item, exp.Column) for item in group.expressions):
            # Rows of different grouping sets may look alike. Those of one that is there twice would be added up: a unit
            # would count twice, with another noise each time it is asked for once more.
            listed = grouping_sets(group) or []
            if len(without_repetition(listed)) < len(listed):
                raise Refused("SDC005", "a grouping set that is there twice")
            sets = exp.Grouping(expressions=[checked.copy() for _, checked in keys.values()])
            units.append("expressions", exp.alias_(sets, SETS, quoted=True))
            shown.append(f'"{UNITS}"."{SETS}"')
        for sql, name in numbers.columns.items():
            units.append("expressions", exp.alias_(parse_one(sql, read="duckdb"), name, quoted=True))
        by_unit = group if group is not None else exp.Group(expressions=[])
        by_unit.append("expressions", unit)
        units.set("group", by_unit)
        inner = exp.Select(expressions=[], from_=exp.From(this=_aliased(units, UNITS)))
        for place in range(len(keys)):
            column = exp.column(f"_g{place}", UNITS, quoted=True)
            inner.append("expressions", exp.alias_(column, f"_g{place}", quoted=True))
        if group is not None and shown:
            inner.set("group", exp.Group(expressions=[parse_one(part, read="duckdb") for part in shown]))
        if self._has_total():
            # Of nobody the units have no row, also not the total that nobody has: it is made here, where it is missing.
            every = exp.Tuple(expressions=inner.args["group"].expressions)
            inner.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=[every, exp.Tuple()])]))
            missing = f'GROUPING("{UNITS}"."{SETS}") = 0 OR count(*) = 0'
            inner.set("having", exp.Having(this=parse_one(missing, read="duckdb")))
        kept = "true" if group is None else numbers.method.kept(identifier(UNITS))
        steps = numbers.method.steps
        return with_numbers(inner, split.aggregates, kept, steps, self._plain_keys(keys), total=self._has_total())

    def _refuse_unknown_aggregates(self) -> None:
        """Refuse aggregates that would be left outside, where they would add up the rows of the answer.

        Raises:
            Refused: there is one, product(2) or fsum with two arguments.
        """
        for clause in ("expressions", "having", "qualify", "order", "distinct", "windows"):
            value = self.select.args.get(clause)
            for part in value if isinstance(value, list) else [value]:
                name = unknown_aggregate(part) if isinstance(part, exp.Expr) else None
                if name is not None:
                    raise Refused("SDC050", name)

    def _grouping(self, keys: Keys) -> exp.Group | None:
        """GROUP BY over checked expressions; None where all records are one group."""
        group = self.select.args.get("group")
        every = [checked.copy() for _, checked in keys.values()]
        if group is not None and group.args.get("all") is True:
            return exp.Group(expressions=every) if keys else None
        if group is not None:
            result: exp.Group = group.copy()
            for leaf in [leaf for item in result.expressions for leaf in leaves(item)]:
                leaf.replace(keys[text(leaf)][1].copy())
            return result
        return exp.Group(expressions=every) if self.select.args.get("distinct") is not None and keys else None

    def _grouped(self) -> list[exp.Expr]:
        """Every grouping expression, as often as it is written."""
        group = self.select.args.get("group")
        found: list[exp.Expr] = []
        if group is None:
            if self.select.args.get("distinct") is not None:
                if self.select.args["distinct"].args.get("on") is not None:
                    raise Refused("SDC005", "DISTINCT ON")
                if not any(has_aggregate(item) for item in self.select.expressions):
                    found = [item.unalias() for item in self.select.expressions]
        elif group.args.get("all") is True:
            refuse_more_keys(self.select)
            found = [item.unalias() for item in self.select.expressions if not has_aggregate(item)]
        else:
            for item in group.expressions:
                found.extend(leaves(item))
        return found

    def _group_keys(self) -> Keys:
        """Every grouping expression by its SQL: the name of its column, and the expression checked."""
        keys: Keys = {}
        for node in self._grouped():
            sql = text(node)
            if sql not in keys:
                _refuse_values_of_one_key(node.type)
                keys[sql] = (f"_g{len(keys)}", self.over_dimensions(node))
        return keys

    def number(self, node: exp.Expr, condition: exp.Expr | None, numbers: Numbers) -> str:
        """The protected SQL of one aggregate."""
        sql = "true" if condition is None else self.condition_sql(condition)
        if isinstance(node, exp.CountIf):
            whole = node.this if condition is None else exp.and_(condition.copy(), node.this.copy())
            return numbers.count(self.condition_sql(whole))
        if isinstance(node, exp.Count):
            if node.expressions:
                raise Refused("SDC051", "count of several columns")
            if isinstance(node.this, exp.Distinct):
                return numbers.units(self._with_units(node.this, sql))
            if isinstance(node.this, exp.Star) or node.this is None or isinstance(node.this, exp.Literal):
                return numbers.count(sql)
            chosen, column, otherwise = case(node.this)
            if otherwise:  # 0 is a value: what is counted are not the rows for which the condition holds
                column = node.this
            elif chosen is not None:
                sql = f"({sql}) AND {self.condition_sql(chosen)}"
            if isinstance(column, exp.Literal):
                return numbers.count(sql)
            if isinstance(column, exp.Column) and self.role(column) is Role.MEASURE:
                known = self.known_sum(column)
                return numbers.known(text(column), sql) if known is None else numbers.count(both(sql, known))
            if isinstance(column, exp.Column) and self.role(column) is Role.UNIT:
                return numbers.count(self._where_unit(column, sql))
            return numbers.count(f"({sql}) AND {self.over_dimensions(column).sql('duckdb')} IS NOT NULL")
        if isinstance(node, (exp.Sum, exp.Avg)):
            return self._sum_or_mean(node, sql, numbers)
        if isinstance(node, (exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop)):
            return self._spread(node, sql, numbers)
        if isinstance(node, (exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc)):
            return self._quantile(node, sql, numbers)
        raise Refused("SDC050", duckdb_name(node))

    def _with_units(self, distinct: exp.Distinct, condition: str) -> str:
        """The condition under which count(DISTINCT unit) counts a row."""
        column = distinct.expressions[0] if len(distinct.expressions) == 1 else None
        if isinstance(column, (exp.Case, exp.If)):
            chosen, value, otherwise = case(column)
            if chosen is not None and not otherwise:
                condition, column = both(condition, self.condition_sql(chosen)), value
        if column is None or not (self.is_unit(column) or self.unit_of(column) is not None):
            raise Refused("SDC051", "count(DISTINCT ..)")
        return self._where_unit(column, condition)

    def _where_unit(self, column: exp.Expr, condition: str) -> str:
        """A condition, and that there is a unit."""
        return condition if self.unit_of(column) is not None else both(condition, f"{text(column)} IS NOT NULL")

    def _sum_or_mean(self, node: exp.Sum | exp.Avg, condition: str, numbers: Numbers) -> str:
        if isinstance(node.this, exp.Distinct):
            raise Refused("SDC051", "sum or avg of DISTINCT")
        inner, factor = constant_factor(node.this)
        chosen, value, otherwise = case(inner)
        filtered = condition
        if chosen is not None:
            condition = both(condition, self.condition_sql(chosen))
        value, more = constant_factor(value)
        scale = f"{factor}{more}"
        if isinstance(value, exp.Literal) and not value.is_string:
            counted = f"{numbers.count(condition)} * {value.this}{scale}"
            if isinstance(node, exp.Sum):
                return counted
            base = numbers.count(filtered if otherwise else condition)
            return f"{counted} / nullif({base}, 0)"
        every = condition
        elsewhere, filled = otherwise, False
        if isinstance(value, exp.Coalesce) and len(value.expressions) == 1 and is_zero(value.expressions[0]):
            # A missing value counts as 0: the same sum, over more rows.
            otherwise, filled, value = True, True, value.this
        if not isinstance(value, exp.Column) or self.role(value) is not Role.MEASURE:
            raise Refused("SDC041", "sum and avg take measures")
        # Cell keys clip the largest contribution of a cell themselves, which costs less than every record.
        safe = self.policy.method == "suppression" or (self.policy.method == "cell_key" and not self.several)
        wide = is_wide(value) and self.policy.method != "suppression"
        added = bounded(text(value)) if wide or (family(value) == "real" and not safe) else text(value)
        exact = family(value) in ("whole", "decimal") and not wide
        of_rows = self.added(value)
        if of_rows is not None:
            exact = of_rows.exact
        rows = "" if of_rows is None else of_rows.rows
        total = numbers.total(added, condition, self.called(value), rows, exact=exact)
        there = self.known_sum(value)
        has_zeros = otherwise or there is not None
        if isinstance(node, exp.Sum):
            if not has_zeros:
                return f"{total.sql}{scale}"
            rows = condition if filled else self._where_known(value, there, condition)
            if elsewhere and chosen is not None:
                rows = filtered if rows == condition else self._unless(chosen, value, there, filtered)
            return f"({numbers.or_zero(total.sql, numbers.some(rows), condition)}){scale}"
        if otherwise and chosen is not None:
            raise Refused("SDC052", "avg of CASE .. ELSE 0 over a measure; use FILTER")
        if not has_zeros:
            return f"{total.mean(numbers.known(added, condition), numbers.method.steps)}{scale}"
        known = numbers.count(every if otherwise or there is None else both(every, there))
        return f"({numbers.or_zero(total.mean(known, numbers.method.steps), known, condition)}){scale}"

    def _where_known(self, measure: exp.Column, there: str | None, condition: str) -> str:
        """A condition, and that there is a value; the condition alone where no record lacks one."""
        complete = {folded(name) for name in self.policy.without_null if self.relation.table is not None}
        if there is None and measure.table == self.alias and folded(measure.name) in complete:
            return condition
        return both(condition, f"{text(measure)} IS NOT NULL" if there is None else there)

    def _unless(self, chosen: exp.Expr, measure: exp.Column, there: str | None, filtered: str) -> str:
        """The rows for which CASE WHEN .. THEN measure ELSE 0 END is not NULL."""
        known = self._where_known(measure, there, "true")
        return both(filtered, f"(({self.condition_sql(chosen)}) IS NOT TRUE OR {known})")

    def _quantile(self, node: exp.AggFunc, condition: str, numbers: Numbers) -> str:
        """A median or another quantile of a measure or a numeric dimension."""
        half: exp.Expr = exp.Literal.number("0.5")
        share = half if isinstance(node, exp.Median) else node.args.get("quantile") or node.args.get("expression")
        chosen, value, otherwise = case(node.this)
        if chosen is not None and not otherwise:
            condition = both(condition, self.condition_sql(chosen))
        if otherwise or not isinstance(share, exp.Literal) or share.is_string:
            raise Refused("SDC052", "a quantile of a share that is not a number, or of CASE .. ELSE 0")
        if not isinstance(value, exp.Column) or family(value) not in ("whole", "real", "decimal"):
            raise Refused("SDC052", "a quantile of anything but a measure")
        self._refuse_filled(value)
        if self.role(value) is Role.UNIT or not 0 < float(share.this) < 1:
            raise Refused("SDC052", "a minimum, a maximum, or a quantile of units")
        return numbers.quantile(text(value), share.this, condition)

    def _spread(self, node: exp.AggFunc, condition: str, numbers: Numbers) -> str:
        """A variance or standard deviation, of a sample unless the name says population."""
        chosen, value, otherwise = case(node.this)
        if otherwise:
            raise Refused("SDC052", "a variance of CASE .. ELSE 0; use FILTER")
        if chosen is not None:
            condition = both(condition, self.condition_sql(chosen))
        value, factor = constant_factor(value)
        if factor or not isinstance(value, exp.Column) or family(value) not in ("whole", "real", "decimal"):
            raise Refused("SDC052", "a variance of anything but a measure")
        if self.role(value) is not Role.MEASURE:
            raise Refused("SDC052", "a variance of anything but a measure")
        self._refuse_filled(value)
        if self.policy.method == "cell_key" and self.added(value) is not None:
            # Where each unit has two rows it would be a second answer to what the variance of these rows says.
            raise Refused("SDC052", "a variance of sums that units have")
        column = bounded(text(value), _LARGEST_SQUARED)
        variance = numbers.variance(column, condition, self.called(value))
        if isinstance(node, (exp.VariancePop, exp.StddevPop)):
            known = numbers.known(column, condition)
            if self.policy.method == "threshold":  # of one value alone: none among a sample, 0 among a population
                variance = f"coalesce({variance}, 0)"
            variance = f"({variance} * ({known} - 1) / nullif({known}, 0))"
        return variance if isinstance(node, (exp.Variance, exp.VariancePop)) else f"sqrt({variance})"

    def _terms(self, node: exp.Expr) -> list[tuple[list[str], str | None]]:
        """What is added up as a sum of products: of each the factors over dimensions, and the measure, if any.

        Powers and products of measures would make the largest contributor stand out of the sum; a figure added to a
        measure would count records, with the little noise of a sum.
        """
        if not self.has_measure(node):
            if family(node) not in ("whole", "real", "decimal"):
                raise Refused("SDC052", "sum and avg take numbers; a condition is one as x::INTEGER")
            self._check(node)
            return [([f"({text(node)})"], None)]
        return self._products(node, [])

    def _products(self, node: exp.Expr, factors: list[str]) -> list[tuple[list[str], str | None]]:
        if isinstance(node, exp.Paren):
            return self._products(node.this, factors)
        if isinstance(node, exp.Column) and self.role(node) is Role.MEASURE:
            return [(factors, text(node))]
        if isinstance(node, exp.Neg):
            return self._products(node.this, [*factors, "-1"])
        if isinstance(node, exp.Add):
            return self._products(node.this, factors) + self._products(node.expression, factors)
        if isinstance(node, exp.Sub):
            return self._products(node.this, factors) + self._products(node.expression, [*factors, "-1"])
        if isinstance(node, (exp.Mul, exp.Div)):
            with_measure, other = node.this, node.expression
            if isinstance(node, exp.Mul) and self.has_measure(other):
                with_measure, other = other, with_measure
            if not self.has_measure(other):
                self._check(other)
                inverse = "1.0 / " if isinstance(node, exp.Div) else ""
                return self._products(with_measure, [*factors, f"({inverse}({text(other)}))"])
        raise Refused("SDC041", "sum and avg take measures, also times figures of dimensions")

    def has_measure(self, node: exp.Expr) -> bool:
        return any(self.role(column) is Role.MEASURE for column in node.find_all(exp.Column))


def _refuse_query(*parts: exp.Expr | None) -> None:
    """Refuse subqueries in parts that take none; where records are looked at once more they are protected already."""
    if any(part is not None and part.find(exp.Query) is not None for part in parts):
        raise Refused("SDC005", _QUERY_INSIDE)


def _refuse_multiplied(rows_of: Sequence[str]) -> None:
    """Refuse rows of a unit that are joined with each other again and again.

    A unit with nine rows would have 387 million behind eight joins: how long that takes, or that it takes too long,
    would tell that there is such a unit. And each number of rows would be another question with another noise.
    """
    often = max(map(list(rows_of).count, rows_of), default=0)
    if often > _MOST_OF_A_TABLE or len(rows_of) > _MOST_OF_TABLES:
        raise Refused("SDC033", "rows of one unit joined with each other again and again: GROUP BY the unit first")


def _refuse_lists(node: exp.Expr) -> None:
    """Refuse lists that are written in ways for which there is IN."""
    if isinstance(node, (exp.Any, exp.All)):
        raise Refused("SDC005", "ANY and ALL: write column IN (..), or compare with (SELECT min(..) ..)")
    if isinstance(node, exp.Values):
        raise Refused("SDC005", "IN (VALUES ..): write IN (..), or IN (SELECT .. FROM (VALUES ..) t)")


def _shown(query: exp.Query) -> list[exp.Expr]:
    """The columns of a subquery that whoever asks wrote, without those that protection carries along."""
    return [item for item in query.selects if not item.alias_or_name.startswith(CARRIED)]


def _name_of(node: exp.Expr) -> str:
    return "count(DISTINCT ..)" if isinstance(node, exp.Count) else f"{node.key.replace('anyvalue', 'any_value')}(..)"


@lru_cache(1000)
def _source(sql: str) -> exp.Expr:
    """What stands after FROM; a copy costs less than another parse."""
    found: exp.Expr = parse_one(f"SELECT 1 FROM {sql}", read="duckdb").args["from_"].this
    return found


def _aliased(query: exp.Select, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))


def _named(table: exp.Table, alias: str) -> exp.Table:
    table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return table


class _Split:
    """What is written around the aggregates of a block, in terms of the released numbers."""

    def __init__(self, block: Block, keys: Keys, numbers: Numbers) -> None:
        self.block, self.keys, self.numbers = block, keys, numbers
        self.aggregates: dict[str, str] = {}
        self.values: dict[str, exp.Select] = {}

    def outer(self, node: exp.Expr) -> exp.Expr:
        """The expression with group keys and aggregates replaced by released columns."""
        if isinstance(node, exp.Ordered):  # its text is that of what it orders by
            return self._children(node)
        if isinstance(node, exp.Filter) and is_aggregate(without_nulls(node.this)):
            return self._aggregate(without_nulls(node.this), node.expression.this)
        if is_aggregate(without_nulls(node)):
            return self._aggregate(without_nulls(node), None)
        key = self.keys.get(text(node))
        if key is not None:
            return released(key[0], node)
        if is_query(node) or isinstance(node, (exp.Subquery, exp.Exists)):
            return node
        if isinstance(node, exp.Grouping):
            return self._grouping(node)
        if isinstance(node, exp.Window):
            return self.window(node)
        if isinstance(node, exp.Column):
            raise Refused("SDC042", node.name)
        return self._children(node)

    def _children(self, node: exp.Expr) -> exp.Expr:
        result = type(node)()
        result.type = node.type
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                result.set(key, self.outer(value))
            elif isinstance(value, list):
                result.set(key, [self.outer(part) if isinstance(part, exp.Expr) else part for part in value])
            else:
                result.set(key, value)
        return result

    def window(self, node: exp.Window) -> exp.Expr:
        """A window over released numbers, named or not: its function stays, what it works on is protected."""
        result = node.copy()
        function = node.this
        if not isinstance(function, exp.Identifier):
            plain = function.find(exp.Column, exp.AggFunc) is None
            result.set("this", function.copy() if plain else self._window_function(function))
        for key in ("partition_by", "order"):
            value = node.args.get(key)
            if isinstance(value, exp.Expr):
                result.set(key, self._children(value))
            elif isinstance(value, list):
                result.set(key, [self.outer(part) for part in value])
        return result

    def _window_function(self, node: exp.Expr) -> exp.Expr:
        """The function of a window, which is no aggregate of records, whatever FILTER or IGNORE NULLS is around it."""
        if not isinstance(node, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
            return self._children(node)
        result = type(node)(this=self._window_function(node.this))
        if isinstance(node, exp.Filter):
            result.set("expression", self._children(node.expression))
        return result

    def _aggregate(self, node: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
        if self.block.is_of_values(node):
            name = f"_n{len(self.values)}"
            self.values[name] = self.block.number_of_values(node, condition, self)
            return released(name, node)
        by_values = self.block.number_by_values(node, condition, self)
        if by_values is not None:
            name = f"_n{len(self.values)}"
            self.values[name] = by_values
            return released(name, node)
        return self._named(self.block.number(node, condition, self.numbers), node)

    def _grouping(self, node: exp.Grouping) -> exp.Expr:
        places = []
        for part in node.expressions:
            key = self.keys.get(text(part))
            if key is None:
                raise Refused("SDC042", "GROUPING of a column that is not grouped")
            places.append(key[1].sql("duckdb"))
        asked = f"GROUPING({', '.join(places)})"
        return self._named(self.numbers.grouping(asked, len(places)), node)

    def grouping_set(self) -> str:
        """The column that says which grouping set a group is of."""
        every = ", ".join(checked.sql("duckdb") for _, checked in self.keys.values())
        return self.published(self.numbers.grouping(f"GROUPING({every})", len(self.keys)))

    def _named(self, sql: str, of: exp.Expr) -> exp.Expr:
        return released(self.published(sql), of)

    def published(self, sql: str) -> str:
        """The column of a protected number."""
        return self.aggregates.setdefault(sql, f"_a{len(self.aggregates)}")


def _refuse_values_of_one_key(kind: exp.DataType | None) -> None:
    """Refuse group keys of a type whose values may be equal and look different.

    A month is 30 days to DuckDB, and 0 is -0: which of them a group shows would be up to one record.

    Raises:
        Refused: the type is one of these.
    """
    if kind is None:
        return
    if kind.this == exp.DataType.Type.INTERVAL:
        raise Refused("SDC005", "an INTERVAL as a group key: write date_part('epoch', x)")
    inside = {part.this for part in kind.find_all(exp.DataType) if part is not kind}
    if inside & {exp.DataType.Type.INTERVAL, exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT}:
        raise Refused("SDC005", "a list or struct of floating-point numbers or INTERVALs as a group key")
