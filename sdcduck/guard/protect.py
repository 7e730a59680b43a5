"""From an analyst's query to one that only ever shows protected numbers: label, check, protect.

Labels flow bottom-up. Unit-level records become released numbers in one place only: a block that aggregates them. Such
a block is split in two::

    SELECT region, count(*) AS n FROM people GROUP BY region HAVING count(*) > 9 ORDER BY n

    SELECT _sdc._g0 AS region, _sdc._a0 AS n
    FROM (SELECT people.region AS _g0, sdc_count(people.record_key, ..) AS _a0 FROM people GROUP BY ..) _sdc
    WHERE _sdc._a0 > 9 ORDER BY n

The inner part holds group keys and protected aggregates, and nothing else. The outer part sees released numbers, so
that whatever the analyst wrote around them is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp, parse_one

from sdcduck.catalog import Policy, identifier
from sdcduck.guard.methods import CARRIED, Method, method_of
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import Label, Relation, Role, of_policy

_RELEASED = "_sdc"


@dataclass
class Protection:
    """One query on its way: what is known of the database, and what was done.

    Attributes:
        policies: by lower-case name.
        columns: that analysts see of these tables.
        unit_expressions: expressions over single records, still to be checked by DuckDB's parser.
        unique: columns of public tables that must identify their rows, each time the query runs.
        notes: what was protected, for `Guard.explain`.
    """

    policies: Mapping[str, Policy]
    columns: Mapping[str, frozenset[str]]
    unit_expressions: list[str] = field(default_factory=list)
    unique: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)
    _over_units: set[int] = field(default_factory=set)

    def protect(self, tree: exp.Expr) -> Relation:
        """Label and protect a whole query, in place.

        Raises:
            Refused: it cannot be shown to be safe, or some part of it was not looked at.
        """
        relation = self.query(tree, {})
        if relation.label is Label.UNIT:
            raise Refused("SDC040")
        for node in tree.find_all(exp.Select, exp.Table):
            if id(node) not in self._seen:
                raise Refused("SDC005", "a subquery in an unusual place")
        return relation

    def made(self, node: exp.Expr) -> None:
        """The guard wrote this part itself: it needs no look."""
        self._seen.update(id(part) for part in node.find_all(exp.Select, exp.Table))

    def query(self, node: exp.Expr, known: Mapping[str, Relation]) -> Relation:
        """Label a query and protect what it aggregates, in place; its relation."""
        visible = dict(known)
        with_ = node.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise Refused("SDC005", "recursive")
            for cte in with_.expressions:
                visible[cte.alias.lower()] = self.query(cte.this, visible)
        if isinstance(node, (exp.Subquery, exp.SetOperation)):
            for key, value in node.args.items():
                if key not in ("this", "expression", "with_", "alias"):
                    for part in value if isinstance(value, list) else [value]:
                        if isinstance(part, exp.Expr) and part.find(exp.Query) is not None:
                            raise Refused("SDC005", "a subquery in LIMIT or ORDER BY")
        if isinstance(node, exp.Subquery):
            return self.query(node.this, visible)
        if isinstance(node, exp.SetOperation):
            labels = [self.query(side, visible).label for side in (node.this, node.expression)]
            if Label.UNIT in labels:
                raise Refused("SDC043")
            return Relation(Label.RELEASED if Label.RELEASED in labels else Label.PUBLIC, _names(node))
        if isinstance(node, exp.Select):
            return self._select(node, visible)
        raise Refused("SDC005", type(node).__name__.lower())

    # --- SELECT ---------------------------------------------------------------------------------------------------

    def _select(self, select: exp.Select, known: Mapping[str, Relation]) -> Relation:
        self._seen.add(id(select))
        sources = self._sources(select, known)
        units = [alias for alias, relation in sources.items() if relation.label is Label.UNIT]
        if units:
            self._over_units.add(id(select))
        for column in select.find_all(exp.Column):
            # A name that its source does not have would be looked for further out by DuckDB.
            unknown = column.table in sources and column.name.lower() not in sources[column.table].columns
            if unknown and _owner(column) is select:
                raise Refused("SDC030", column.name)
        self._subqueries(select, known)
        if not units:
            labels = {relation.label for relation in sources.values()}
            return Relation(Label.RELEASED if Label.RELEASED in labels else Label.PUBLIC, _names(select))
        if len(units) > 1:
            raise Refused("SDC035")
        block = _Block(self, select, sources, units[0])
        return block.aggregate() if block.is_aggregate else block.records()

    def _sources(self, select: exp.Select, known: Mapping[str, Relation]) -> dict[str, Relation]:
        """The relations of FROM and JOIN, by alias."""
        found: dict[str, Relation] = {}
        from_ = select.args.get("from_")
        tables = ([from_.this] if from_ is not None else []) + [join.this for join in select.args.get("joins") or []]
        if select.args.get("laterals"):
            raise Refused("SDC005", "lateral")
        for table in tables:
            if table.args.get("joins") or table.args.get("pivots") or table.args.get("sample"):
                raise Refused("SDC005", "pivot, sample or nested join")
            if table.alias_or_name in found or not table.alias_or_name:
                raise Refused("SDC031", table.alias_or_name)
            if isinstance(table, exp.Table):
                self._seen.add(id(table))
                if table.alias_column_names:
                    raise Refused("SDC005", "new column names after a table")
                if table.args.get("db") or table.args.get("catalog") or not isinstance(table.this, exp.Identifier):
                    raise Refused("SDC020")
                name = table.name.lower()
                if name in known:
                    found[table.alias_or_name] = known[name]
                elif name in self.policies:
                    found[table.alias_or_name] = of_policy(self.policies[name], self.columns[name])
                else:
                    raise Refused("SDC020", table.name)
            elif isinstance(table, exp.Subquery):
                found[table.alias_or_name] = self.query(table, known)
            elif isinstance(table, exp.Values) and table.find(exp.Query, exp.Column) is None:
                found[table.alias_or_name] = Relation(
                    Label.PUBLIC, frozenset(name.lower() for name in table.alias_column_names)
                )
            else:
                raise Refused("SDC005", type(table).__name__.lower())
        return found

    def _subqueries(self, select: exp.Select, known: Mapping[str, Relation]) -> None:
        """Protect the subqueries in expressions; what touches unit-level records stands on its own."""
        in_from = {id(table) for table in _tables_of(select)}
        for query in list(_outermost_queries(select, in_from)):
            inside = {id(inner) for inner in query.find_all(exp.Select)}
            owners = [_owner(column) for column in query.find_all(exp.Column) if column.table]
            outer = [owner for owner in owners if owner is None or id(owner) not in inside]
            label = self.query(query, known).label
            if label is Label.UNIT:
                raise Refused("SDC040")
            over_units = any(owner is None or id(owner) in self._over_units for owner in outer)
            if outer and (over_units or label is Label.RELEASED or id(select) in self._over_units):
                raise Refused("SDC044")


def _names(query: exp.Query) -> frozenset[str]:
    """The names of a query's columns."""
    return frozenset(name.lower() for name in query.named_selects)


def _owner(column: exp.Column) -> exp.Select | None:
    """The SELECT that a qualified column belongs to: the innermost one with a source of that name.

    Raises:
        Refused: a subquery in FROM that reaches for its neighbours.
    """
    node: exp.Expr = column
    left_a_select = False
    while node.parent is not None:
        parent = node.parent
        if isinstance(parent, exp.Select):
            through = node.arg_key
            names = {table.alias_or_name for table in _tables_of(parent)}
            if through != "with_" and column.table in names:
                if through in ("from_", "joins") and left_a_select:
                    raise Refused("SDC044", column.name)
                return parent
            left_a_select = True
        node = parent
    return None


def _tables_of(select: exp.Select) -> list[exp.Expr]:
    from_ = select.args.get("from_")
    return ([from_.this] if from_ is not None else []) + [join.this for join in select.args.get("joins") or []]


def _outermost_queries(select: exp.Select, skip: set[int]) -> list[exp.Expr]:
    """Queries inside the expressions of a SELECT, not those in FROM, WITH, or in other queries."""
    found: list[exp.Expr] = []
    waiting = [
        child
        for key, value in select.args.items()
        if key != "with_"
        for child in (value if isinstance(value, list) else [value])
        if isinstance(child, exp.Expr)
    ]
    while waiting:
        node = waiting.pop()
        if id(node) in skip:
            continue
        if isinstance(node, exp.Query) and not isinstance(node, exp.Subquery):
            found.append(node)
            continue
        waiting.extend(child for child in node.iter_expressions())
    return found


# --- One block over unit-level records -------------------------------------------------------------------------------

_GROWING = (exp.DPipe, exp.Concat, exp.ConcatWs, exp.Replace)
_ROW_CLAUSES = ("distinct", "limit", "offset", "order", "qualify", "having", "windows", "kind", "hint")


class _Block:
    """A SELECT over one unit-level relation, and public ones joined to it."""

    def __init__(
        self, protection: Protection, select: exp.Select, sources: Mapping[str, Relation], unit_alias: str
    ) -> None:
        self.protection, self.select, self.sources, self.alias = protection, select, sources, unit_alias
        self.relation = sources[unit_alias]
        policy = self.relation.policy
        assert policy is not None
        self.policy: Policy = policy
        self.method: Method = method_of(policy, carried=self.relation.table is None)
        self.records_sql = identifier(unit_alias)
        self._check_joins()
        where = select.args.get("where")
        if where is not None:
            where.set("this", self._condition(where.this, queries=True))

    @property
    def is_aggregate(self) -> bool:
        """Whether the block aggregates, by GROUP BY, DISTINCT or an aggregate function."""
        if self.select.args.get("group") is not None or self.select.args.get("distinct") is not None:
            return True
        return any(
            _is_aggregate(node)
            for item in self._outer_parts()
            for node in item.walk(prune=_is_query)
            if not _is_query(node)
        )

    def _outer_parts(self) -> list[exp.Expr]:
        parts = list(self.select.expressions)
        for clause in ("having", "qualify", "order"):
            if self.select.args.get(clause) is not None:
                parts.append(self.select.args[clause])
        return parts

    def _check_joins(self) -> None:
        """Public relations are joined n:1, by equality with all of a key: no unit is multiplied."""
        from_ = self.select.args["from_"].this
        if from_.alias_or_name != self.alias:
            raise Refused("SDC033", "start FROM with the unit-level table")
        for join in self.select.args.get("joins") or []:
            kind = (join.side or "", join.kind or "", join.method or "")
            if kind not in (("", "", ""), ("", "INNER", ""), ("LEFT", "", ""), ("LEFT", "OUTER", "")):
                raise Refused("SDC033", " ".join(filter(None, kind)).lower())
            alias = join.this.alias_or_name
            relation = self.sources[alias]
            if relation.table is None or join.args.get("on") is None:
                raise Refused("SDC034", alias)
            joined: list[str] = []
            for condition in _conjuncts(join.args["on"]):
                pair = (condition.this, condition.expression) if isinstance(condition, exp.EQ) else (None, None)
                mine = [side for side in pair if isinstance(side, exp.Column) and side.table == alias]
                other = [side for side in pair if isinstance(side, exp.Column) and side.table != alias]
                if len(mine) != 1 or len(other) != 1:
                    raise Refused("SDC034", alias)
                self._dimension(other[0])
                if _family(mine[0]) != _family(other[0]) or _family(mine[0]) in (None, "real"):
                    raise Refused("SDC034", f"{alias}: columns of different types")
                joined.append(mine[0].name)
            self.protection.unique.append((relation.table, tuple(joined)))

    def _role(self, column: exp.Column) -> Role:
        relation = self.sources.get(column.table)
        if relation is None:
            raise Refused("SDC044" if column.table else "SDC030", column.name)
        if relation.label is not Label.UNIT:
            return Role.DIMENSION
        role = relation.roles.get(column.name.lower())
        if role is None:
            raise Refused("SDC030", column.name)
        return role

    def _dimension(self, column: exp.Column) -> None:
        role = self._role(column)
        if role is Role.MEASURE:
            raise Refused("SDC041", column.name)
        if role is Role.UNIT:
            raise Refused("SDC040", column.name)

    def _over_dimensions(self, node: exp.Expr) -> exp.Expr:
        """An expression over dimensions, checked, that cannot fail."""
        if node.find(exp.Query) is not None:
            raise Refused("SDC005", "a subquery in a group key, a FILTER or an aggregate")
        self._check(node)
        if isinstance(node, exp.Column):
            return node
        return exp.Try(this=node.copy())

    def _check(self, node: exp.Expr) -> None:
        for inner in node.walk():
            if _is_aggregate(inner) or isinstance(inner, exp.Window):
                raise Refused(
                    "SDC045" if isinstance(inner, exp.Window) else "SDC005", "an aggregate in WHERE or GROUP BY"
                )
            if isinstance(inner, exp.Column):
                self._dimension(inner)
            if isinstance(inner, _GROWING):
                # Texts that grow from one subquery to the next take time and memory where there are records.
                again = any(self._role(column) is Role.COMPUTED for column in inner.find_all(exp.Column))
                if again or any(part is not inner for part in inner.find_all(exp.Replace)):
                    raise Refused("SDC005", "texts put together again and again")
        self.protection.unit_expressions.append(node.sql("duckdb"))

    def _condition(self, node: exp.Expr, *, queries: bool = False) -> exp.Expr:
        """A condition on single records, as a truth value that cannot fail."""
        if isinstance(node, exp.And):
            left, right = (self._condition(part, queries=queries) for part in (node.this, node.expression))
            return exp.And(this=left, expression=right)
        if isinstance(node, exp.Paren):
            return exp.Paren(this=self._condition(node.this, queries=queries))
        if queries and node.find(exp.Query) is not None:
            return self._compared_with_query(node)
        checked = self._over_dimensions(node)
        inner = checked.this if isinstance(checked, exp.Try) else checked.copy()
        return exp.Try(this=exp.cast(inner, "BOOLEAN"))

    def _compared_with_query(self, node: exp.Expr) -> exp.Expr:
        """``column IN (SELECT ..)``, or a column compared with a scalar subquery, of one type: that cannot fail."""
        if isinstance(node, exp.Not):
            return exp.Not(this=self._compared_with_query(node.this))
        if isinstance(node, exp.Exists):
            return node
        column: exp.Expr | None = None
        query: exp.Expr | None = None
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            column, query = node.this, node.args["query"]
        elif isinstance(node, (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)):
            sides = [node.this, node.expression]
            column = next((side for side in sides if isinstance(side, exp.Column)), None)
            query = next((side for side in sides if isinstance(side, exp.Subquery)), None)
        if not isinstance(column, exp.Column) or not isinstance(query, exp.Query):
            raise Refused("SDC005", "compare a column alone with a subquery")
        self._dimension(column)
        selected = query.selects
        families = (_family(column), _family(selected[0]) if len(selected) == 1 else None)
        numbers = set(families) <= {"whole", "real"}
        if None in families or (families[0] != families[1] and not numbers):
            raise Refused("SDC005", "compare a column with a subquery of the same type")
        return node

    # --- Records --------------------------------------------------------------------------------------------------

    def records(self) -> Relation:
        """A block that only filters, joins and projects: still unit-level. What protection needs is carried along."""
        for clause in _ROW_CLAUSES:
            if self.select.args.get(clause) is not None:
                raise Refused("SDC045", clause)
        roles: dict[str, Role] = {}
        projections: list[exp.Expr] = []
        for item in self.select.expressions:
            value, name = item.unalias(), item.alias_or_name
            if name.lower() in roles:
                raise Refused("SDC031", name)
            if isinstance(value, exp.Column):
                roles[name.lower()] = self._role(value)
                projections.append(item)
            else:
                roles[name.lower()] = Role.COMPUTED
                projections.append(exp.alias_(self._over_dimensions(value), name, quoted=True))
        for place, name in enumerate(self.method.hidden()):
            projections.append(exp.alias_(exp.column(name, self.alias, quoted=True), f"{CARRIED}{place}", quoted=True))
        self.select.set("expressions", projections)
        self._read_from_method()
        return Relation(Label.UNIT, frozenset(roles), roles, self.policy)

    def _read_from_method(self) -> None:
        """Put the table that the method answers from in place of the table of the policy."""
        table = self.select.args["from_"].this
        if self.relation.table is not None and isinstance(table, exp.Table):
            source = parse_one(f"SELECT 1 FROM {self.method.source()} AS {self.records_sql}", read="duckdb")
            self.select.args["from_"].set("this", source.args["from_"].this)
            self.protection.made(self.select.args["from_"])

    # --- Aggregates -----------------------------------------------------------------------------------------------

    def aggregate(self) -> Relation:
        """A block that aggregates: split into protected aggregates and what is written around them."""
        select = self.select
        if select.args.get("windows") or select.args.get("kind") or select.args.get("hint"):
            raise Refused("SDC005", "window clause")
        keys = self._group_keys()
        inner = exp.Select(expressions=[])
        for clause in ("from_", "joins", "where"):
            if select.args.get(clause) is not None:
                inner.set(clause, select.args[clause])
        aggregates: dict[str, str] = {}
        split = _Split(self, keys, aggregates)
        outer_items = [
            exp.alias_(split.outer(item.unalias()), item.alias_or_name, quoted=True) for item in select.expressions
        ]
        having = split.outer(select.args["having"].this) if select.args.get("having") is not None else None
        qualify = select.args.get("qualify")
        if qualify is not None:
            qualify.set("this", split.outer(qualify.this))
        names = {item.alias_or_name for item in select.expressions}
        order = select.args.get("order")
        if order is not None:
            for ordered in order.expressions:
                column = ordered.this
                if not (isinstance(column, exp.Column) and not column.table and column.name in names):
                    ordered.set("this", split.outer(column))
        for place, (_, checked) in enumerate(keys.values()):
            inner.append("expressions", exp.alias_(checked.copy(), f"_g{place}", quoted=True))
        for sql, name in aggregates.items():
            inner.append("expressions", exp.alias_(parse_one(sql, read="duckdb"), name, quoted=True))
        group = select.args.get("group")
        if group is not None and group.args.get("all") is True and not keys:
            group = None
        if not keys and not aggregates:
            raise Refused("SDC045", "nothing is counted or added up")
        if group is not None:
            inner.set("group", self._inner_group(group, keys))
        elif select.args.get("distinct") is not None and keys:
            inner.set("group", exp.Group(expressions=[checked.copy() for _, checked in keys.values()]))
        kept = self.method.kept(self.records_sql)
        if inner.args.get("group") is not None and kept != "true":
            inner.set("having", exp.Having(this=parse_one(kept, read="duckdb")))
        self.select = inner
        self._read_from_method()
        self.select = select
        self.protection.made(inner)
        for clause in ("joins", "where", "group", "having"):
            select.set(clause, None)
        select.set("expressions", outer_items)
        subquery = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(_RELEASED, quoted=True)))
        select.set("from_", exp.From(this=subquery))
        if having is not None:
            select.set("where", exp.Where(this=having))
        self.protection.notes.append(
            f"{self.policy.name}: {len(keys)} group keys, {len(aggregates)} numbers protected by {self.policy.method}"
        )
        return Relation(Label.RELEASED, _names(select))

    def _group_keys(self) -> dict[str, tuple[str, exp.Expr]]:
        """Every grouping expression by its SQL: the name of its column, and the expression checked."""
        group = self.select.args.get("group")
        found: list[exp.Expr] = []
        if group is None:
            if self.select.args.get("distinct") is not None:
                if self.select.args["distinct"].args.get("on") is not None:
                    raise Refused("SDC005", "DISTINCT ON")
                if not any(_has_aggregate(item) for item in self.select.expressions):
                    found = [item.unalias() for item in self.select.expressions]
        elif group.args.get("all") is True:
            found = [item.unalias() for item in self.select.expressions if not _has_aggregate(item)]
        else:
            for item in group.expressions:
                found.extend(_leaves(item))
        keys: dict[str, tuple[str, exp.Expr]] = {}
        for node in found:
            sql = node.sql("duckdb")
            if sql not in keys:
                keys[sql] = (f"_g{len(keys)}", self._over_dimensions(node))
        return keys

    def _inner_group(self, group: exp.Group, keys: Mapping[str, tuple[str, exp.Expr]]) -> exp.Group:
        if group.args.get("all") is True:
            return exp.Group(expressions=[checked.copy() for _, checked in keys.values()])
        result = group.copy()
        for leaf in [leaf for item in result.expressions for leaf in _leaves(item)]:
            leaf.replace(keys[leaf.sql("duckdb")][1].copy())
        return result

    def number(self, node: exp.Expr, condition: exp.Expr | None) -> str:
        """The protected SQL of one aggregate."""
        records = self.records_sql
        sql = "true" if condition is None else self._condition(condition).sql("duckdb")
        if isinstance(node, exp.CountIf):
            both = node.this if condition is None else exp.and_(condition.copy(), node.this.copy())
            return self._rows_only(self.method.count(records, self._condition(both).sql("duckdb")))
        if isinstance(node, exp.Count):
            if node.expressions:
                raise Refused("SDC051", "count of several columns")
            if isinstance(node.this, exp.Distinct):
                column = node.this.expressions[0] if len(node.this.expressions) == 1 else None
                if not isinstance(column, exp.Column) or self._role(column) is not Role.UNIT:
                    raise Refused("SDC051", "count(DISTINCT ..)")
                return self.method.units(records, sql)
            if isinstance(node.this, exp.Star) or node.this is None or isinstance(node.this, exp.Literal):
                return self._rows_only(self.method.count(records, sql))
            column = node.this
            if isinstance(column, exp.Column) and self._role(column) is Role.MEASURE:
                return self._rows_only(self.method.known(records, column.sql("duckdb"), sql))
            if isinstance(column, exp.Column) and self._role(column) is Role.UNIT:
                return self._rows_only(self.method.count(records, sql))
            known = f"({sql}) AND {self._over_dimensions(column).sql('duckdb')} IS NOT NULL"
            return self._rows_only(self.method.count(records, known))
        if isinstance(node, (exp.Sum, exp.Avg)):
            return self._rows_only(self._sum_or_mean(node, sql))
        raise Refused("SDC050", node.sql_name().lower() if isinstance(node, exp.Func) else type(node).__name__)

    def _sum_or_mean(self, node: exp.Sum | exp.Avg, condition: str) -> str:
        if isinstance(node.this, exp.Distinct):
            raise Refused("SDC051", "sum or avg of DISTINCT")
        chosen, value, otherwise = _case(node.this)
        if chosen is not None:
            condition = f"({condition}) AND {self._condition(chosen).sql('duckdb')}"
        if isinstance(value, exp.Literal) and not value.is_string and value.this == "1" and chosen is not None:
            counted = self.method.count(self.records_sql, condition)
            if isinstance(node, exp.Sum):
                return counted
            base = "true" if otherwise else condition
            return f"{counted} / nullif({self.method.count(self.records_sql, base)}, 0)"
        if not isinstance(value, exp.Column) or self._role(value) is not Role.MEASURE:
            raise Refused("SDC041" if value.find(exp.Column) else "SDC052", "sum and avg take one measure")
        if isinstance(node, exp.Avg) and otherwise:
            raise Refused("SDC052", "avg of CASE .. ELSE 0 over a measure; use FILTER")
        column = value.sql("duckdb")
        total = self.method.total(self.records_sql, column, condition)
        if isinstance(node, exp.Sum):
            return total
        return f"{total} / nullif({self.method.known(self.records_sql, column, condition)}, 0)"

    def _rows_only(self, sql: str) -> str:
        if not self.policy.one_row_per_unit:
            raise Refused("SDC053")
        return sql


class _Split:
    """What is written around the aggregates of a block, in terms of the released numbers."""

    def __init__(self, block: _Block, keys: Mapping[str, tuple[str, exp.Expr]], aggregates: dict[str, str]) -> None:
        self.block, self.keys, self.aggregates = block, keys, aggregates

    def outer(self, node: exp.Expr) -> exp.Expr:
        """The expression with group keys and aggregates replaced by released columns."""
        key = self.keys.get(node.sql("duckdb"))
        if key is not None:
            return _released(key[0], node)
        if _is_query(node) or isinstance(node, (exp.Subquery, exp.Exists)):
            return node
        if isinstance(node, exp.Grouping):
            return self._grouping(node)
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Filter) and _is_aggregate(node.this):
            return self._aggregate(node.this, node.expression.this)
        if _is_aggregate(node):
            return self._aggregate(node, None)
        if isinstance(node, exp.Column):
            raise Refused("SDC042", node.name)
        return self._children(node)

    def _children(self, node: exp.Expr) -> exp.Expr:
        result = node.copy()
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                result.set(key, self.outer(value))
            elif isinstance(value, list):
                result.set(key, [self.outer(part) if isinstance(part, exp.Expr) else part for part in value])
        return result

    def _window(self, node: exp.Window) -> exp.Expr:
        """A window over released numbers: its function stays, what it works on is protected."""
        result = node.copy()
        function = node.this
        result.set(
            "this", function.copy() if function.find(exp.Column, exp.AggFunc) is None else self._children(function)
        )
        for key in ("partition_by", "order"):
            value = node.args.get(key)
            if isinstance(value, exp.Expr):
                result.set(key, self._children(value))
            elif isinstance(value, list):
                result.set(key, [self.outer(part) for part in value])
        return result

    def _aggregate(self, node: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
        return self._named(self.block.number(node, condition), node)

    def _grouping(self, node: exp.Grouping) -> exp.Expr:
        places = []
        for part in node.expressions:
            key = self.keys.get(part.sql("duckdb"))
            if key is None:
                raise Refused("SDC042", "GROUPING of a column that is not grouped")
            places.append(key[1].sql("duckdb"))
        return self._named(f"GROUPING({', '.join(places)})", node)

    def _named(self, sql: str, of: exp.Expr) -> exp.Expr:
        name = self.aggregates.setdefault(sql, f"_a{len(self.aggregates)}")
        return _released(name, of)


_FAMILIES = {
    "whole": exp.DataType.INTEGER_TYPES,
    "real": exp.DataType.FLOAT_TYPES,
    "text": exp.DataType.TEXT_TYPES,
    "date": {exp.DataType.Type.DATE},
    "timestamp": {exp.DataType.Type.TIMESTAMP},
    "truth": {exp.DataType.Type.BOOLEAN},
}


def _family(node: exp.Expr) -> str | None:
    """What kind of value an expression has: values of one kind compare without an error; None where it is not known."""
    kind = node.unalias().type
    if kind is None:
        return None
    return next((name for name, types in _FAMILIES.items() if kind.this in types), None)


def _released(name: str, of: exp.Expr) -> exp.Column:
    column = exp.column(name, _RELEASED, quoted=True)
    column.type = of.type
    return column


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _is_aggregate(node: exp.Expr) -> bool:
    return (
        isinstance(node, exp.AggFunc)
        and not isinstance(node, exp.Grouping)
        and not (isinstance(node.parent, exp.Window) and node.arg_key == "this")
    )


def _has_aggregate(node: exp.Expr) -> bool:
    return any(
        isinstance(found, (exp.AggFunc, exp.Window)) for found in node.walk(prune=_is_query) if not _is_query(found)
    )


def _leaves(item: exp.Expr) -> list[exp.Expr]:
    """The grouping expressions in an item of GROUP BY."""
    if isinstance(item, (exp.Cube, exp.Rollup, exp.GroupingSets, exp.Tuple)):
        return [leaf for part in item.expressions for leaf in _leaves(part)]
    if isinstance(item, exp.Paren):
        return _leaves(item.this)
    return [item]


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    if isinstance(node, exp.And):
        return [*_conjuncts(node.this), *_conjuncts(node.expression)]
    return [node]


def _case(node: exp.Expr) -> tuple[exp.Expr | None, exp.Expr, bool]:
    """CASE WHEN c THEN v [ELSE 0] END as condition, value, and whether there is the ELSE; else None and the node."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.If):
        node = exp.Case(ifs=[node.copy()], default=node.args.get("false"))
        node.args["ifs"][0].set("false", None)
    if not isinstance(node, exp.Case) or node.this is not None or len(node.args["ifs"]) != 1:
        return None, node, False
    branch, default = node.args["ifs"][0], node.args.get("default")
    zero = isinstance(default, exp.Literal) and not default.is_string and default.this in ("0", "0.0")
    if default is not None and not zero and not isinstance(default, exp.Null):
        return None, node, False
    return branch.this, branch.args["true"], zero
