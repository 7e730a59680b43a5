"""A protected query, cut in two: inner cells that an engine adds up, and everything else over these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp, parse_one

from sdcduck.catalog import Policy
from sdcduck.catalog import engine_semantics as semantics
from sdcduck.catalog.engine_semantics import Semantics, column
from sdcduck.guard.engines.inner_cells import INTEGERS, Half, InnerCells
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded


@dataclass(frozen=True)
class Source:
    """A table of an engine.

    Attributes:
        policy: that protects its records.
        types: DuckDB types of its columns, by name as it is spelled.
    """

    policy: Policy
    types: dict[str, str]


@dataclass(frozen=True)
class Cut:
    """A query in two parts.

    Attributes:
        halves: what the engine answers.
        sql: what DuckDB answers, of that.
    """

    halves: tuple[Half, ...]
    sql: str


def cut(sql: str, sources: Mapping[str, Source], engine: Semantics) -> Cut:
    """A query that the guard made, which reads tables of an engine by their full names, cut in two.

    Args:
        sources: the tables of the engine, by folded name.

    Raises:
        Refused: it is not known to give the same numbers.

    >>> people = Source(Policy("people", "unit-level", "id", None, ("region",)), {"region": "VARCHAR"})
    >>> halves = cut(
    ...     'SELECT people.region AS g, COUNT(1) AS n FROM memory.main.people AS people '
    ...     'WHERE upper(people.region) > $1 GROUP BY people.region', {"people": people}, semantics.SEMANTICS["duckdb"])
    >>> print(halves.halves[0].sql)
    SELECT COUNT(*) AS "c0", "region" AS "c1" FROM "people" GROUP BY "region" HAVING COUNT(*) > 0
    >>> print(halves.sql)
    SELECT people.region AS g, CAST(COALESCE(SUM("people"."_sdc_i0"), 0) AS BIGINT) AS n FROM (SELECT
    CAST("c0" AS BIGINT) AS "_sdc_i0", CAST("c1" AS TEXT) AS "region" FROM temp.main."_sdc_cells_0") AS "people"
    WHERE UPPER(people.region) > $1 GROUP BY people.region
    """
    tree = parse_one(sql, read="duckdb")
    tables = [table for table in tree.find_all(exp.Table) if table.db and folded(table.name) in sources]
    halves, done = [], set[int]()
    for number, table in enumerate(tables):
        select = table.find_ancestor(exp.Select)
        if select is None or id(select) in done:
            raise _refused("records joined with records")
        done.add(id(select))
        block = _Block(select, table, sources[folded(table.name)], f"_sdc_cells_{number}")
        halves.append(block.cells.half(engine, block.key))
        name = exp.TableAlias(this=exp.to_identifier(block.alias, quoted=True))
        table.replace(exp.Subquery(this=parse_one(block.cells.relation(), read="duckdb"), alias=name))
    if any(table.db and folded(table.name) in sources for table in tree.find_all(exp.Table)):
        raise _refused("records in a subquery")
    text = tree.sql("duckdb", comments=False)
    if parse_one(text, read="duckdb") != tree:
        raise Refused("SDC006")
    return Cut(tuple(halves), text)


def _refused(what: str) -> Refused:
    return Refused("SDC061", what)


_PARTS = frozenset(["expressions", "from_", "joins", "where", "group", "with_"])
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


class _Block:
    """One SELECT that groups records, changed in place to one that groups inner cells."""

    def __init__(self, select: exp.Select, table: exp.Table, source: Source, name: str) -> None:
        self._select, self._source = select, source
        self._spelled = {folded(known): known for known in source.types}
        self._dimensions = frozenset(map(folded, source.policy.dimensions))
        self._key = folded(str(source.policy.record_key)) if source.policy.record_key else None
        self._unit = folded(str(source.policy.unit))
        self.alias = table.alias or table.name
        self.key = None if self._key is None else self._spelled.get(self._key)
        self.cells = InnerCells(source.policy.name, source.types, name)
        self._check_form(table)
        self.cells.number(semantics.count(), "BIGINT")
        keys = {key.sql("duckdb") for key in self._group_keys()}
        for item in list(select.expressions):
            shown = item.unalias()
            if shown.sql("duckdb") not in keys:
                self._number(shown)
        for name_ in ("where", "group", "joins"):
            part = select.args.get(name_)
            for one in part if isinstance(part, list) else [part] if part is not None else []:
                self._conditions(one)
        for item in list(select.expressions):
            self._conditions(item)

    def _check_form(self, table: exp.Table) -> None:
        """Refuse what is no SELECT of groups over this table, with others joined to it."""
        select = self._select
        if any(value and part not in _PARTS for part, value in select.args.items()):
            raise _refused("a form of SELECT")
        if not isinstance(table.parent, exp.From) or table.parent.parent is not select or table.args.get("joins"):
            raise _refused("records joined to another table: begin with the table of records")
        if any(value and part not in ("this", "db", "catalog", "alias") for part, value in table.args.items()):
            raise _refused("a form of FROM")
        for join in select.args.get("joins") or ():
            sides = folded(join.side), folded(join.kind), folded(join.args.get("method") or "")
            if sides not in (
                ("", "", ""),
                ("", "inner", ""),
                ("left", "", ""),
                ("left", "outer", ""),
                ("", "cross", ""),
            ):
                raise _refused("a join that is neither JOIN nor LEFT JOIN")
        if any(
            folded(inner.alias_or_name) == folded(self.alias)
            for inner in select.find_all(exp.Table, exp.Subquery)
            if inner is not table
        ):
            raise _refused("two relations of one name")
        if not any(self._own(found) for found in select.find_all(exp.AggFunc, exp.Anonymous)):
            raise _refused("records that are looked at one by one, such as those of units with several rows")

    def _own(self, node: exp.Expr) -> bool:
        """Whether something stands in this SELECT, and in none within it."""
        return node.find_ancestor(exp.Select) is self._select

    def _group_keys(self) -> list[exp.Expr]:
        """What it groups by, in all grouping sets."""
        group, found = self._select.args.get("group"), list[exp.Expr]()
        if group is None:
            return found
        if group.args.get("all"):
            raise _refused("GROUP BY ALL")
        waiting: list[exp.Expr] = [value for part in group.args.values() if isinstance(part, list) for value in part]
        while waiting:
            one = waiting.pop()
            if isinstance(one, (exp.Cube, exp.Rollup, exp.GroupingSets, exp.Tuple)):
                waiting += one.expressions
            elif isinstance(one, exp.Paren) and isinstance(one.this, exp.Tuple):
                waiting.append(one.this)
            else:
                found.append(one)
        return found

    def _number(self, node: exp.Expr) -> None:
        """Have a number over records, in place, made of those of inner cells."""
        with_zero = isinstance(node, exp.Coalesce) and all(isinstance(one, exp.Literal) for one in node.expressions)
        if with_zero or (isinstance(node, (exp.Paren, exp.Cast)) and not isinstance(node, exp.TryCast)):
            self._number(node.this)
        elif isinstance(node, exp.Grouping) or self._is_public(node):
            return
        elif isinstance(node, exp.Max) and _is_call(node.this, "_sdc_contribution", 3):
            node.replace(self._contribution(*node.this.expressions))
        elif isinstance(node, (exp.Count, exp.Sum, exp.Max)) and not node.expressions:
            node.replace(self._merged(node))
        elif _is_call(node, "_sdc_grid_sum", 1):
            there, here, value = self._chosen(node.expressions[0])
            name = self._measure(value, ("DOUBLE",))
            number = self._added_up(semantics.total_on_grid(column(name)), "HUGEINT", there)
            quotient = parse_one("total / 1e4", read="duckdb")
            quotient.set("this", self._sum(here, number))
            node.replace(quotient)
        else:
            raise _refused("an aggregate other than count, sum and avg")

    def _is_public(self, node: exp.Expr) -> bool:
        """Whether this is a constant."""
        return isinstance(node, (exp.Literal, exp.Null, exp.Boolean))

    def _chosen(self, node: exp.Expr) -> tuple[exp.Expr | None, exp.Expr | None, exp.Expr]:
        """The condition for records in two parts (see `_parts`), and what is taken of those."""
        value = node.unnest()
        if not isinstance(value, exp.Case):
            return None, None, value
        cases = value.args["ifs"]
        if value.this is not None or value.args.get("default") is not None or len(cases) != 1:
            raise _refused("a value that is chosen in several ways")
        return *self._parts(cases[0].this), cases[0].args["true"].unnest()

    def _parts(self, condition: exp.Expr) -> tuple[exp.Expr | None, exp.Expr | None]:
        """What of a condition the engine answers record by record, and what is left for inner cells; None: nothing.

        Inner cells need not be told apart by the former: they are as many as the dimensions make them.
        """
        whole = condition.unnest()
        parts = list(whole.flatten()) if isinstance(whole, exp.And) else [whole]
        found = [(part, self._all_alike(part)) for part in parts]
        there, here = (
            [alike for _, alike in found if alike is not None],
            [part for part, alike in found if alike is None],
        )
        return exp.and_(*there) if there else None, exp.and_(*here) if here else None

    def _all_alike(self, node: exp.Expr) -> exp.Expr | None:
        """A condition as engines answer it alike; None: it is not of measures alone."""
        if isinstance(node, exp.Not | exp.Paren):
            inner = self._all_alike(node.this)
            return None if inner is None else type(node)(this=inner)
        if isinstance(node, exp.And | exp.Or):
            sides = self._all_alike(node.left), self._all_alike(node.right)
            return None if sides[0] is None or sides[1] is None else type(node)(this=sides[0], expression=sides[1])
        return self._alike(node)

    def _added_up(self, tree: exp.Expr, kind: str, there: exp.Expr | None) -> str:
        """The name of a column of inner cells with an aggregate over the records that meet a condition."""
        return self.cells.number(tree if there is None else semantics.where(tree, there), kind)

    def _merged(self, node: exp.Expr) -> exp.Expr:
        """A count, a sum or the largest key."""
        if isinstance(node.this, exp.Distinct):
            raise _refused("count(DISTINCT ..)")
        there, here, value = self._chosen(node.this)
        if isinstance(node, exp.Count):
            ones = isinstance(value, exp.Star) or (isinstance(value, exp.Literal) and not value.is_string)
            counting = semantics.count(None if ones else column(self._column(value)))
            counted = self._sum(here, self._added_up(counting, "BIGINT", there))
            some = exp.Coalesce(this=counted, expressions=[exp.Literal.number(0)])
            return exp.cast(some, "BIGINT", dialect="duckdb")
        if isinstance(node, exp.Max):
            name = self._column(value)
            if folded(name) != self._key:
                raise _refused("max(..)")
            number = self._added_up(semantics.most(column(name)), self._source.types[name], there)
            return exp.Max(this=self._case(here, number))
        name = self._column(value)
        kind = self._source.types[name]
        scale = _scale(kind)
        if scale is None:
            raise _refused(f"sums of {kind}")
        summed = f"DECIMAL(38,{scale})" if kind.startswith("DECIMAL") else "HUGEINT"
        return self._sum(here, self._added_up(semantics.total(column(name), scale), summed, there))

    def _contribution(self, value: exp.Expr, key: exp.Expr, condition: exp.Expr) -> exp.Expr:
        """The largest contribution of a record: see `_sdc_contribution`."""
        name = self._measure(value.unnest(), (*INTEGERS, "DOUBLE", "DECIMAL"))
        if folded(self._column(key)) != self._key:
            raise _refused("a record key of another table")
        measure, of_key, kind = column(name), column(self._spelled[str(self._key)]), self._source.types[name]
        floating = kind == "DOUBLE"
        there, here = self._parts(condition)

        def cell(aggregate: exp.Expr, kind: str = "BIGINT") -> exp.Expr:
            return self._cell(self._added_up(aggregate, kind, there))

        ends = semantics.largest(measure, of_key, floating=floating)
        parts = {part: cell(end, kind) for part, end in zip(("high", "low"), ends, strict=True)}
        parts["without"] = cell(semantics.without(of_key))
        parts["nans"] = cell(semantics.nans(measure, of_key)) if floating else exp.Literal.number(0)
        parts["chosen"] = exp.true() if here is None else here.copy()

        def filled(node: exp.Expr) -> exp.Expr:
            return parts[node.name] if isinstance(node, exp.Column) and not node.table and node.name in parts else node

        return parse_one(_LARGEST, read="duckdb").transform(filled)

    def _cell(self, name: str) -> exp.Column:
        return exp.column(name, self.alias, quoted=True)

    def _case(self, condition: exp.Expr | None, name: str) -> exp.Expr:
        if condition is None:
            return self._cell(name)
        return exp.Case(ifs=[exp.If(this=condition.copy(), true=self._cell(name))])

    def _sum(self, condition: exp.Expr | None, name: str) -> exp.Expr:
        return exp.Sum(this=self._case(condition, name))

    def _column(self, node: exp.Expr) -> str:
        """The name of a column of the records, as it is spelled."""
        found = node.unnest()
        if not isinstance(found, exp.Column) or folded(found.table) != folded(self.alias):
            raise _refused("a number made of an expression: ask for the measure as it is")
        if folded(found.name) not in self._spelled:
            raise _refused("a column of a type that engines do not have alike")
        return self._spelled[folded(found.name)]

    def _measure(self, node: exp.Expr, kinds: tuple[str, ...]) -> str:
        name = self._column(node)
        if not self._source.types[name].startswith(kinds):
            raise _refused(f"sums of {self._source.types[name]}")
        return name

    def _conditions(self, part: exp.Expr) -> None:
        """Have conditions for measures be columns of inner cells, in place, and all other columns dimensions."""
        part.transform(self._of_cells, copy=False)
        for found in part.find_all(exp.Column):
            if folded(found.table) != folded(self.alias) or found.name.startswith("_sdc_i"):
                continue
            name = self._column(found)
            if folded(name) not in self._dimensions:
                raise _refused("a condition or a group that is made of a measure or a unit")
            if not self._source.types[name].startswith((*INTEGERS, "VARCHAR", "DATE", "BOOLEAN", "DECIMAL")):
                raise _refused(f"a dimension of type {self._source.types[name]}")
            self.cells.dimension(name)

    def _of_cells(self, node: exp.Expr) -> exp.Expr:
        """A condition for a measure that engines answer alike, as a column of inner cells."""
        condition = self._alike(node)
        return node if condition is None else self._cell(self.cells.condition(condition))

    def _alike(self, node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            name = self._of_measure(node.this)
            return None if name is None else semantics.is_null(column(name))
        if isinstance(node, exp.GT) and node.sql("duckdb").endswith(" * 1e4) > 0.5"):
            scaled = node.this.this if isinstance(node.this, exp.Abs) else None
            name = self._of_measure(scaled.this) if isinstance(scaled, exp.Mul) else None
            return None if name is None or self._source.types[name] != "DOUBLE" else semantics.is_some(column(name))
        if isinstance(node, (*_COMPARED, exp.Between)):
            name = self._of_measure(node.this)
            others = [node.args[end] for end in ("low", "high")] if isinstance(node, exp.Between) else [node.expression]
            if name is None or _scale(self._source.types[name]) is None or not all(map(_is_whole, others)):
                return None
            compared = node.copy()
            compared.set("this", column(name))
            return compared
        return None

    def _of_measure(self, node: exp.Expr) -> str | None:
        """The name of a column that is no dimension."""
        found = node.unnest()
        if not isinstance(found, exp.Column) or folded(found.table) != folded(self.alias):
            return None
        name = folded(found.name)
        # A unit or a key must not tell cells apart by its value, but it may by being there.
        return self._spelled[name] if name in self._spelled and name not in self._dimensions else None


_LARGEST = """max(CASE WHEN chosen THEN CASE WHEN nans > 0 THEN CAST('NaN' AS DOUBLE) ELSE greatest(
    CASE WHEN "without" > 0 THEN _sdc_no_key() END, abs(CAST(high AS DOUBLE)), abs(CAST(low AS DOUBLE))) END END)"""
"""NULL is the largest of nothing but NULL; a record without a key has one value for all, see `_sdc_contribution`."""


def _is_call(node: exp.Expr | None, name: str, arguments: int) -> bool:
    is_named = isinstance(node, exp.Anonymous) and folded(node.name) == name
    return is_named and len(node.expressions) == arguments  # type: ignore[union-attr]


def _is_whole(node: exp.Expr) -> bool:
    """Whether this is a whole number that is written out."""
    value = node.this if isinstance(node, exp.Neg) else node
    return isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit() and len(value.name) < 18


def _scale(kind: str) -> int | None:
    """The decimals of a type of whole numbers or decimals; None: it is neither."""
    if kind in INTEGERS:
        return 0
    return int(kind.rstrip(")").split(",")[1]) if kind.startswith("DECIMAL") else None
