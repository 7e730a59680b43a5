"""A protected query as one text for another engine, with the p-table in it: for those who may only hand in SQL.

Of the forms that the guard writes, counts are taken, by dimensions as they are and under conditions that every engine
answers alike. All else is refused: what is on no list here has not been shown to give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp, parse_one

from sdcduck.catalog.engine_semantics import dialect
from sdcduck.guard.engines.cut import Source
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded

DIALECTS = {
    "duckdb": "duckdb",
    "datafusion": "duckdb",
    "postgres": "postgres",
    "spark": "spark",
    "trino": "trino",
    "clickhouse": "clickhouse",
}
"""Whose words sqlglot writes, by engine."""

UNTRIED = ("spark", "trino")

_SETTINGS = {
    "clickhouse": "\nSETTINGS join_use_nulls = 1, group_by_use_nulls = 1, cast_keep_nullable = 1, "
    "prefer_column_name_to_alias = 1, count_distinct_implementation = 'uniqExact', transform_null_in = 0"
}
"""Without them, what is not joined, and totals in CUBE, are 0 and empty texts."""

Interval = tuple[int, int, int, int]
"""Of a p-table for counts: the count, the noise, and the keys from which and below which it is put on."""

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_PLAIN = (
    exp.Select, exp.From, exp.Subquery, exp.Column, exp.Identifier, exp.Literal, exp.Alias, exp.TableAlias, exp.Where,
    exp.Group, exp.Cube, exp.Rollup, exp.GroupingSets, exp.Tuple, exp.Grouping, exp.Star, exp.Count, exp.Sum, exp.Max,
    exp.Case, exp.If, exp.Nullif, exp.And, exp.Or, exp.Not, exp.Paren, exp.Is, exp.Null, exp.In, exp.Between,
    exp.Table, *_COMPARED,
)  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """What a text has of the custodian's file, read when it is written.

    Attributes:
        intervals: the modulus of the keys and the intervals of a p-table for counts.
        types: the types of the columns of a public table, by name as it is spelled.
        rows: its rows, of some columns.
    """

    intervals: Callable[[str], tuple[int, Sequence[Interval]]]
    types: Callable[[exp.Table], dict[str, str]]
    rows: Callable[[exp.Table, Sequence[str]], Sequence[tuple[object, ...]]]


def portable(sql: str, sources: Mapping[str, Source], engine: str, stored: Stored) -> str:
    """A query that the guard made, in the words of an engine.

    Args:
        sources: the tables of records, by folded name.
        engine: one of `DIALECTS`.
        stored: what else is in the file: p-tables and public tables.

    Raises:
        Refused: it is not known to give the same numbers there.
    """
    tree = parse_one(sql, read="duckdb")
    if any(folded(call.name) == "_sdc_stepped_sum" for call in tree.find_all(exp.Anonymous)):
        raise _refused(_OF_SECRET)
    tree.transform(_without_try, copy=False)
    names, public = {folded(name) for name in sources}, dict[str, exp.Table]()
    for table in list(tree.find_all(exp.Table)):
        if table.args.get("joins"):
            raise _refused("a form of FROM")
        if folded(table.name) not in names:
            if not isinstance(table.parent, exp.Join) or folded(table.alias_or_name) in public:
                raise _refused("a table that has no records, other than joined to these, and once")
            public[folded(table.alias_or_name)] = table
            continue
        table.replace(_table(sources[folded(table.name)].policy.name, table.alias_or_name))
    for order in list(tree.find_all(exp.Order)):
        order.pop()  # rows have no order in a subquery
    types = {alias: stored.types(table) for alias, table in public.items()}
    checked = _Checked(tree, sources, types)
    for alias, table in public.items():
        table.replace(_public_rows(tree, table, types[alias], stored.rows))
    for select in list(tree.find_all(exp.Select)):
        _with_noise(select, stored.intervals)
    checked.write_numbers()
    tree.transform(_grouping, copy=False)
    for name in sorted({folded(source.policy.name) for source in sources.values()}):
        _only_of_single_records(tree, sources[name])
    return tree.sql(dialect(DIALECTS[engine]), pretty=True, comments=False) + _SETTINGS.get(engine, "")


_OF_SECRET = (
    "a sum or a mean under cell_key: its noise has a key that is made of a secret of the policy, which the text would "
    "show to whoever reads it; ask the guard with the records on the engine, sdcduck.open_guard(.., records=..), which "
    "tells the engine no secret"
)


def _only_of_single_records(tree: exp.Expr, source: Source) -> None:
    """Let there be no answer where a unit has several records, in place: records are counted, and few units hidden.

    The table of the policy may be an empty one, which cannot tell; and the text is run when others have been added.
    """
    unit = next((name for name in source.types if folded(name) == folded(str(source.policy.unit))), None)
    if unit is None or not isinstance(tree, exp.Select) or tree.is_star:
        raise _refused("records without a column of units")
    distinct = exp.Count(this=exp.Distinct(expressions=[exp.column(unit, quoted=True)]))
    more = exp.Sub(this=exp.Count(this=exp.Star()), expression=distinct)
    table = exp.Table(this=exp.to_identifier(source.policy.name, quoted=True))
    counted = exp.Select(expressions=[exp.alias_(more, "_sdc_more", quoted=True)], from_=exp.From(this=table))
    alias = f"_sdc_u{len(tree.args.get('joins') or ())}"
    # Joined, for DataFusion takes a condition with a subquery below a total, which then is one of no records.
    tree.join(counted.subquery(exp.to_identifier(alias, quoted=True)), join_type="CROSS", copy=False)
    no_more = exp.EQ(this=exp.column("_sdc_more", alias, quoted=True), expression=exp.Literal.number(0))
    tree.where(no_more, copy=False)


def _public_rows(
    tree: exp.Expr,
    table: exp.Table,
    types: Mapping[str, str],
    rows: Callable[[exp.Table, Sequence[str]], Sequence[tuple[object, ...]]],
) -> exp.Expr:
    """What a query reads of a public table, row by row: an engine need not have it."""
    alias = table.alias_or_name
    used = {folded(column.name) for column in tree.find_all(exp.Column) if folded(column.table) == folded(alias)}
    names = [name for name in types if folded(name) in used]
    if any(types[name] not in (*_WHOLE, "VARCHAR", "BOOLEAN") for name in names):
        raise _refused("a public table with values of other types than whole numbers, texts and BOOLEAN")
    found = rows(table, names)
    if not 0 < len(found) <= _MOST_ROWS:
        raise _refused(f"a public table without rows, or with more than {_MOST_ROWS}")
    written = [
        exp.Tuple(expressions=[_value(value, types[name]) for name, value in zip(names, row, strict=True)])
        for row in found
    ]
    quoted = [exp.to_identifier(name, quoted=True) for name in names]
    as_ = exp.TableAlias(this=exp.to_identifier(alias, quoted=True), columns=quoted)
    return exp.Values(expressions=written, alias=as_)


_MOST_ROWS = 1000


def _value(value: object, kind: str) -> exp.Expr:
    plain = exp.convert(value)
    if isinstance(value, str) and not _is_text(plain):
        raise _refused("a public table with a backslash in a text")
    return exp.cast(plain, kind, dialect="duckdb")


def _table(name: str, alias: str) -> exp.Expr:
    as_ = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    return exp.Table(this=exp.to_identifier(name, quoted=True), alias=as_)


def _refused(what: str) -> Refused:
    return Refused("SDC061", what)


def _without_try(node: exp.Expr) -> exp.Expr:
    """A condition that cannot fail, as it stands: what is in it is looked at."""
    if isinstance(node, exp.Try) and isinstance(node.this, exp.Cast) and node.this.to.this is exp.DType.BOOLEAN:
        return exp.paren(node.this.this.copy())
    return node


_CONDITIONS: Mapping[type[exp.Expr], tuple[str, ...]] = {
    exp.Where: ("this",), exp.Not: ("this",), exp.If: ("this",),
    exp.And: ("this", "expression"), exp.Or: ("this", "expression"),
}  # fmt: skip


class _Checked:
    """Looks at each node of a query."""

    def __init__(self, tree: exp.Expr, sources: Mapping[str, Source], public: Mapping[str, Mapping[str, str]]) -> None:
        self._joined = set[int]()
        self._sums = list[tuple[exp.Sum, int]]()
        self._means = list[exp.Div]()
        self._types = {
            folded(table.alias_or_name): {
                folded(name): kind for name, kind in sources[folded(table.name)].types.items()
            }
            for table in tree.find_all(exp.Table)
            if folded(table.alias_or_name) not in public
        } | {alias: {folded(name): kind for name, kind in types.items()} for alias, types in public.items()}
        for node in tree.walk():
            self._look_at(node)
        decimals = {one.parent.alias for one, scale in self._sums if scale and isinstance(one.parent, exp.Alias)}
        if any(column.name in decimals for mean in self._means for column in mean.find_all(exp.Column)):
            raise _refused("a mean of decimals")

    def write_numbers(self) -> None:
        """Write sums in a type that holds them, and means as DuckDB divides: floating-point numbers, exact before."""
        for one, scale in self._sums:
            kind = f"DECIMAL(38, {scale})"
            if isinstance(one.this, exp.Case):
                for part in one.this.args["ifs"]:
                    part.set("true", exp.cast(part.args["true"], kind, dialect="duckdb"))
            else:
                one.set("this", exp.cast(one.this, kind, dialect="duckdb"))
        for mean in self._means:
            mean.replace(_of(_MEAN, s=exp.paren(mean.this), n=mean.expression))

    def _look_at(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Anonymous):
            if folded(node.name) not in _MADE:
                raise _refused(f"a number that is not written for other engines: {_WRITTEN}")
        elif isinstance(node, exp.Join):
            self._join(node)
        elif isinstance(node, (*_COMPARED, exp.In, exp.Between)):
            if id(node) not in self._joined:
                self._compared(node)
        elif isinstance(node, exp.Select):
            if any(
                value and part not in ("expressions", "from_", "joins", "where", "group")
                for part, value in node.args.items()
            ):
                raise _refused("a form of SELECT")
        elif isinstance(node, (exp.Count, exp.Sum)) and isinstance(node.this, exp.Distinct):
            raise _refused("count(DISTINCT ..)")
        elif isinstance(node, exp.Sum):
            self._summed(node)
        elif isinstance(node, exp.Div):
            self._divided(node)
        elif isinstance(node, exp.Max) and (self._kind(node.this) or "VARCHAR").startswith("VARCHAR"):
            # The guard's own is that of the record keys; of texts engines have orders of their own.
            raise _refused("the least or largest value")
        elif isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
            return  # what it is compared with is looked at
        elif not isinstance(node, (*_PLAIN, exp.Typeof)):
            raise _refused(f"a condition or a group that engines may answer in other ways: {_WRITTEN}")
        if isinstance(node, exp.Group):
            self._grouped(node)
        for part in _CONDITIONS.get(type(node), ()):
            self._condition(node.args[part].unnest())
        if isinstance(node, exp.In) and (node.args.get("query") or node.args.get("unnest")):
            raise _refused("IN with a subquery")

    def _summed(self, node: exp.Sum) -> None:
        """Refuse a sum of anything but whole numbers or decimals, as they are or under one condition."""
        value = node.this.unnest()
        if isinstance(value, exp.Case):
            cases = value.args["ifs"]
            if value.this is not None or value.args.get("default") is not None or len(cases) != 1:
                raise _refused("a value that is chosen in several ways")
            value = cases[0].args["true"].unnest()
        kind = self._kind(value) or ""
        if kind not in _WHOLE and not kind.startswith("DECIMAL"):
            raise _refused(f"a sum of other values: {_WRITTEN}")
        self._sums.append((node, int(kind.rstrip(")").split(",")[1]) if kind.startswith("DECIMAL") else 0))

    def _divided(self, node: exp.Div) -> None:
        """Refuse what is no mean."""
        number = node.expression
        is_mean = isinstance(node.this.unnest(), (exp.Case, exp.Column)) and isinstance(number, exp.Nullif)
        if not is_mean or number.expression != exp.Literal.number(0):
            raise _refused(f"a number divided by another: {_WRITTEN}")
        self._means.append(node)

    def _join(self, join: exp.Join) -> None:
        """Refuse a join by anything but equal whole numbers, or equal texts."""
        sides = folded(join.side), folded(join.kind), folded(join.args.get("method") or "")
        on = join.args.get("on")
        if sides not in _JOINS or on is None or join.args.get("using"):
            raise _refused("a join that is neither JOIN nor LEFT JOIN on values that are equal")
        for condition in on.flatten() if isinstance(on, exp.And) else [on]:
            equal = condition.unnest()
            kinds = [self._kind(equal.this), self._kind(equal.expression)] if isinstance(equal, exp.EQ) else [None]
            if not (all(kind == "VARCHAR" for kind in kinds) or all(kind in _WHOLE for kind in kinds)):
                raise _refused("a join by anything but equal whole numbers, or equal texts")
            self._joined.add(id(equal))

    def _grouped(self, group: exp.Group) -> None:
        """Refuse groups by values that engines may take for the same, or not."""
        if group.args.get("all"):
            raise _refused("GROUP BY ALL")
        for column in group.find_all(exp.Column):
            if not (self._kind(column) or "").startswith((*_WHOLE, "VARCHAR", "DATE", "BOOLEAN", "DECIMAL")):
                raise _refused(f"a group by values of another type: {_WRITTEN}")

    def _condition(self, node: exp.Expr) -> None:
        """Refuse what is a condition only to DuckDB, as a number."""
        if isinstance(node, exp.Column) and self._kind(node) == "BOOLEAN":
            return
        if not isinstance(node, (*_COMPARED, exp.In, exp.Between, exp.Is, exp.And, exp.Or, exp.Not)):
            raise _refused(f"a condition that is no comparison: {_WRITTEN}")

    def _compared(self, node: exp.Expr) -> None:
        """Refuse a comparison of other than a column with values of its type; texts are equal or not, in no order."""
        kind = self._kind(node.this)
        if isinstance(node, exp.In):
            values = list(node.expressions)
        elif isinstance(node, exp.Between):
            values = [node.args["low"], node.args["high"]]
        else:
            values = [node.expression]
        is_number = kind in (*_WHOLE, "") and all(map(_is_whole, values))
        is_text = kind == "VARCHAR" and isinstance(node, (exp.EQ, exp.NEQ, exp.In)) and all(map(_is_text, values))
        if not (is_number or is_text):
            raise _refused(f"a comparison that engines may answer in other ways: {_WRITTEN}")

    def _kind(self, node: exp.Expr) -> str | None:
        """The type of a column; empty for a protected number, and what the guard counts."""
        node = node.unnest()
        if isinstance(node, exp.Anonymous):
            return ""
        if not isinstance(node, exp.Column):
            return None
        types = self._types.get(folded(node.table))
        return types.get(folded(node.name)) if types is not None else ("" if _is_number(node) else None)


_JOINS = (("", "", ""), ("", "inner", ""), ("left", "", ""), ("left", "outer", ""))
_WRITTEN = (
    "counts by dimensions, and under a threshold sums and means of whole numbers, where whole numbers are compared "
    "with whole numbers and texts are equal"
)


def _is_number(node: exp.Column) -> bool:
    """Whether this is a number of the guard's, and no group."""
    return not node.name.startswith("_g") and node.table.startswith("_sdc")


def _is_whole(node: exp.Expr) -> bool:
    value = node.this if isinstance(node, exp.Neg) else node.unnest()
    return isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit() and len(value.name) < 18


def _is_text(node: exp.Expr) -> bool:
    value = node.unnest()
    return isinstance(value, exp.Literal) and value.is_string and "\\" not in value.name and "\0" not in value.name


_MADE = {
    "_sdc_stepped_count", "_sdc_count_code", "_sdc_count_slot", "_sdc_count_key", "_sdc_randomly_rounded",
}  # fmt: skip


def _with_noise(select: exp.Select, intervals: Callable[[str], tuple[int, Sequence[Interval]]]) -> None:
    """Write the steps of a count in plain SQL, in place: noise is joined by the row of the p-table and the key."""
    joined = 0
    for call in list(select.find_all(exp.Anonymous)):
        if call.find_ancestor(exp.Select) is not select:
            continue
        given, name = call.expressions, folded(call.name)
        if name == "_sdc_randomly_rounded":
            call.replace(_of(_ROUNDED, n=given[0], key_sum=given[1], base=given[2]))
            continue
        modulus, rows = intervals(given[0].name)
        if name == "_sdc_count_slot":
            last = exp.Literal.number(max(row[0] for row in rows))
            call.replace(_of("CASE WHEN n < last THEN n ELSE last END", n=given[1], last=last))
        elif name == "_sdc_count_key":
            key = _of(_KEY, n=given[1], keys=given[2], key_sum=given[3], modulus=exp.Literal.number(modulus))
            call.replace(key)
        elif name == "_sdc_count_code":
            call.replace(exp.Null())
        elif name == "_sdc_stepped_count":
            alias, joined = f"_sdc_p{joined}", joined + 1
            noise = exp.column("code", alias, quoted=True)
            _join(select, alias, rows, slot=given[2], key=given[3])
            call.replace(_of("n + code", n=given[1], code=noise))
    if joined:
        for star in [item for item in select.expressions if isinstance(item, exp.Star)]:
            star.replace(
                exp.Column(this=exp.Star(), table=exp.to_identifier(select.args["from_"].alias_or_name, quoted=True))
            )


_ROUNDED = (
    "n - n % base + CASE WHEN n % base > 0 "
    "AND CAST(key_sum % 100000000 AS BIGINT) * base >= 100000000 * (base - n % base) THEN base ELSE 0 END"
)
_KEY = "CASE WHEN keys = n THEN COALESCE(CAST(key_sum % modulus AS BIGINT), 0) END"
"""Without a key for each record there is none, and so no number."""


_MEAN = """CASE WHEN s BETWEEN -9007199254740992 AND 9007199254740992 THEN CAST(s AS DOUBLE) / CAST(n AS DOUBLE) END"""
"""NULL where a sum is too large for each engine to make the same floating-point number of it."""


def _of(text: str, **parts: exp.Expr) -> exp.Expr:
    def filled(node: exp.Expr) -> exp.Expr:
        return parts[node.name].copy() if isinstance(node, exp.Column) and node.name in parts else node

    return exp.paren(parse_one(text, read="duckdb").transform(filled))


def _join(select: exp.Select, alias: str, rows: Sequence[Interval], *, slot: exp.Expr, key: exp.Expr) -> None:
    table = exp.values([(i, v, low, high) for i, v, low, high in rows], alias, ["slot", "code", "low", "high"])
    for name in table.args["alias"].columns:
        name.set("quoted", True)
    table.args["alias"].this.set("quoted", True)
    p = {name: exp.column(name, alias, quoted=True) for name in ("slot", "low", "high")}
    on = _of("slot = s AND low <= k AND k < high", **p, s=slot, k=key).unnest()
    select.join(table, on=on, join_type="LEFT", copy=False)


def _grouping(node: exp.Expr) -> exp.Expr:
    """`grouping` of several columns as bits of each."""
    if isinstance(node, exp.Grouping) and len(node.expressions) > 1:
        bits = [
            exp.Mul(this=exp.Grouping(expressions=[one.copy()]), expression=exp.Literal.number(2**place))
            for place, one in enumerate(reversed(node.expressions))
        ]
        total: exp.Expr = bits[0]
        for bit in bits[1:]:
            total = exp.Add(this=total, expression=bit)
        return exp.paren(total)
    return node
