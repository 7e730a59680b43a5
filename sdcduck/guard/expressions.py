"""What expressions look like: questions that the guard asks of parts of a query, and the forms it brings them into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeVar

from sqlglot import exp

from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, identifier

_MOST_SETS = 256
RELEASED = "_sdc"
"""The alias of the inner part of a block: its columns are released numbers and group keys."""

GROUPS, VALUES = "_sdc_b", "_sdc_d"
"""The aliases of groups with their numbers, and of the values in them, where values are counted."""

SET = "_set"
"""Which grouping set a row of values is of, where there are subtotals."""

Keys = dict[str, tuple[str, exp.Expr]]
"""The grouping expressions of a block, by their SQL: the names of their columns, and the expressions as checked."""

TIMES = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.Localtime, exp.Localtimestamp)
"""Words that say what time it is: `WORDS_OF_TIME`."""


def tells_time(tree: exp.Expr) -> bool:
    """Whether it is up to when it is worked out: a word of time, or `age(x)`, the time from then to the day of today.

    >>> from sqlglot import parse_one
    >>> [tells_time(parse_one(sql, read="duckdb")) for sql in ("CURRENT_DATE - 1", "age(born)", "age(died, born)")]
    [True, True, False]
    """
    calls = tree.find_all(exp.Anonymous)
    until_today = any(folded(call.name) == "age" and len(call.expressions) == 1 for call in calls)
    return until_today or tree.find(*TIMES) is not None


_WIDE = {exp.DataType.Type.INT128, exp.DataType.Type.UINT128, exp.DataType.Type.INT256, exp.DataType.Type.UINT256}
_MOST_DIGITS = 27  # 10^11 decimals of so many add up to less than 10^38
_FAMILIES = {
    "whole": exp.DataType.INTEGER_TYPES - {exp.DataType.Type.BIT},
    "real": exp.DataType.FLOAT_TYPES,
    "decimal": exp.DataType.REAL_TYPES - exp.DataType.FLOAT_TYPES,
    "text": exp.DataType.TEXT_TYPES,
    "date": {exp.DataType.Type.DATE},
    "timestamp": {exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ},
    "truth": {exp.DataType.Type.BOOLEAN},
}


def family(node: exp.Expr) -> str | None:
    """What kind of value an expression has: values of one kind compare without an error; None where it is not known."""
    kind = node.unalias().type
    if kind is None:
        return None
    return next((name for name, types in _FAMILIES.items() if kind.this in types), None)


def is_wide(node: exp.Expr) -> bool:
    """Whether a few numbers of this type can be too large to be added up: an error would tell of them."""
    kind = node.unalias().type
    if kind is None or family(node) == "real":
        return False
    return kind.this in _WIDE or digits(node) > _MOST_DIGITS


def digits(node: exp.Expr) -> int:
    """How many digits a decimal number has; 0: it is none, or that is not known."""
    return _of_decimal(node, 0) or 0


def decimals(node: exp.Expr) -> int | None:
    """How many digits a decimal number has behind the point; None: it is none, or that is not known."""
    return _of_decimal(node, 1)


def _of_decimal(node: exp.Expr, place: int) -> int | None:
    kind = node.unalias().type
    if kind is None or family(node) != "decimal" or len(kind.expressions) <= place:
        return None
    written = kind.expressions[place].name
    return int(written) if written.isdecimal() else None


Typed = TypeVar("Typed", bound=exp.Expr)


def typed(node: Typed, of: exp.Expr) -> Typed:
    """An expression that stands for another, of its type."""
    node.type = of.type
    return node


def released(name: str, of: exp.Expr) -> exp.Column:
    return typed(exp.column(name, RELEASED, quoted=True), of)


def text(node: exp.Expr) -> str:
    """The SQL of an expression; for a plain column without the generator, which takes longer than all else here."""
    if isinstance(node, exp.Column) and set(node.args) <= {"this", "table"}:
        parts = [node.args.get("table"), node.this]
        if all(isinstance(part, exp.Identifier) and part.args.get("quoted") for part in parts):
            return ".".join(identifier(part.this) for part in parts if part is not None)
    return node.sql("duckdb")


def is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def is_aggregate(node: exp.Expr) -> bool:
    if not isinstance(node, exp.AggFunc) or isinstance(node, exp.Grouping):
        return False
    within: exp.Expr = node
    while isinstance(within.parent, _AROUND_FUNCTIONS) and within.arg_key == "this":
        within = within.parent
    return not (isinstance(within.parent, exp.Window) and within.arg_key == "this")


_AROUND_FUNCTIONS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


def function_of(window: exp.Window) -> tuple[exp.Expr, exp.Expr | None]:
    """The function of a window, and the condition of its FILTER."""
    function = without_nulls(window.this)
    if isinstance(function, exp.Filter):
        return without_nulls(function.this), function.expression.this
    return function, None


def duckdb_name(function: exp.Expr) -> str:
    """What DuckDB calls a function, for which sqlglot may have another name."""
    return folded(function.sql("duckdb").split("(")[0])


def has_aggregate(node: exp.Expr) -> bool:
    return any(
        isinstance(found, (exp.AggFunc, exp.Window)) for found in node.walk(prune=is_query) if not is_query(found)
    )


def aggregates(node: exp.Expr) -> bool:
    """Whether an aggregate stands in an expression, not in a subquery of it and not as the function of a window."""
    return any(is_aggregate(found) for found in node.walk(prune=is_query))


def value_of(node: exp.Expr) -> exp.Expr | None:
    """What count(DISTINCT v), sum(DISTINCT v), min(v) and their kin look at; None: it is none of values that occur."""
    if is_histogram(node) and len(node.expressions) == 1:
        return None if isinstance(node.expressions[0], (exp.Order, exp.Distinct)) else node.expressions[0]
    if not isinstance(node, (exp.Count, exp.Sum, exp.Avg, *_OF_VALUES, *_LISTS)):
        return None
    if any(value and part not in ("this", "big_int", "separator") for part, value in node.args.items()):
        return None
    value: exp.Expr | None = node.this
    if isinstance(node, _LISTS) and isinstance(value, exp.Order):
        by, value = value.expressions, value.this
        distinct = value.expressions if isinstance(value, exp.Distinct) else []
        if len(by) != 1 or distinct != [by[0].this]:
            return None
    if isinstance(value, exp.Distinct):
        return value.expressions[0] if len(value.expressions) == 1 and not value.args.get("on") else None
    return value if isinstance(node, _OF_VALUES) and not isinstance(value, exp.Order) else None


_OF_VALUES = (exp.Min, exp.Max, exp.AnyValue, exp.Mode, exp.LogicalOr, exp.LogicalAnd)
_LISTS = (exp.GroupConcat, exp.ArrayAgg)
"""Of which the values have to be DISTINCT: each is there once."""


def is_histogram(node: exp.Expr | None) -> bool:
    """Whether it is histogram(x), which sqlglot does not know by itself."""
    return isinstance(node, exp.AnonymousAggFunc) and node.name == "histogram"


def without_nulls(node: exp.Expr) -> exp.Expr:
    """any_value(v) alone, which sqlglot reads as one that ignores NULL, as it does."""
    return node.this if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue) else node


def leaves(item: exp.Expr) -> list[exp.Expr]:
    """The grouping expressions in an item of GROUP BY."""
    if isinstance(item, (exp.Cube, exp.Rollup, exp.GroupingSets, exp.Tuple)):
        return [leaf for part in item.expressions for leaf in leaves(part)]
    if isinstance(item, exp.Paren):
        return leaves(item.this)
    return [item]


def grouping_sets(group: exp.Group | None) -> list[list[exp.Expr]] | None:
    """The grouping sets of a GROUP BY as lists of expressions; None: it has no subtotals.

    Raises:
        Refused: there are very many of them.
    """
    if group is None or group.find(exp.Cube, exp.Rollup, exp.GroupingSets) is None:
        return None
    refuse_many_sets(group)
    product: list[list[exp.Expr]] = [[]]
    for item in group.expressions:
        product = [[*left, *right] for left in product for right in _sets_of(item)]
    return product


def refuse_many_sets(tree: exp.Expr) -> None:
    """Refuse very many grouping sets in all of a query: DuckDB listens neither while it makes nor while it leaves them.

    Raises:
        Refused: there are.
    """
    numbers = (prod(map(_number_of_sets, group.expressions)) for group in tree.find_all(exp.Group))
    if sum(number for number in numbers if number > 1) > _MOST_SETS:
        needed = "write those that are needed, GROUPING SETS ((a, b), (a), ())"
        raise Refused("SDC002", f"more than {_MOST_SETS} grouping sets: {needed}")


def _number_of_sets(item: exp.Expr) -> int:
    if isinstance(item, exp.Paren):
        return _number_of_sets(item.this)
    if isinstance(item, exp.GroupingSets):
        return sum(map(_number_of_sets, item.expressions))
    if isinstance(item, exp.Cube):
        return int(2 ** len(item.expressions))
    return len(item.expressions) + 1 if isinstance(item, exp.Rollup) else 1


def without_repetition(sets: Sequence[list[exp.Expr]]) -> list[list[exp.Expr]]:
    """Grouping sets, each once."""
    return list({frozenset(map(text, one)): one for one in sets}.values())


def _sets_of(item: exp.Expr) -> list[list[exp.Expr]]:
    if isinstance(item, exp.Paren):
        return _sets_of(item.this)
    if isinstance(item, exp.GroupingSets):
        return [one for part in item.expressions for one in _sets_of(part)]
    if not isinstance(item, (exp.Cube, exp.Rollup)):
        return [leaves(item)]
    parts = [leaves(part) for part in item.expressions]
    if isinstance(item, exp.Rollup):
        return [[leaf for part in parts[:length] for leaf in part] for length in range(len(parts), -1, -1)]
    return [
        [leaf for place, part in enumerate(parts) if chosen >> place & 1 for leaf in part]
        for chosen in range(2 ** len(parts))
    ]


def bounded(sql: str, limit: str = "9e14") -> str:
    """A number that neither fails nor overflows where it is added up: NaN, too, is the limit."""
    return f"(CASE WHEN ({sql}) IS NOT NULL THEN least(greatest({sql}, -{limit}), {limit}) END)"


EQUAL = (exp.EQ, exp.NullSafeEQ)
"""What looks up one value; IS NOT DISTINCT FROM takes NULL for one."""


def ties(node: exp.Expr, alias: str, placed: Sequence[str]) -> bool:
    """Whether a condition is an equality of a column of one relation with what is worked out of those before it."""
    if not isinstance(node, EQUAL):
        return False
    sides = (node.this, node.expression)
    return any(
        isinstance(mine, exp.Column) and mine.table == alias and is_of(other, placed)
        for mine, other in (sides, reversed(sides))
    )


def is_of(node: exp.Expr, placed: Sequence[str]) -> bool:
    """Whether an expression looks at columns of these relations, at least at one, and at nothing else."""
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(column.table in placed for column in columns) and node.find(exp.Query) is None


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [node]


def factored(node: exp.Expr) -> exp.Expr:
    """A condition with what all sides of an OR have in common before it.

    >>> from sqlglot import condition
    >>> print(factored(condition("(a = b AND x) OR (a = b AND y AND z)")))
    a = b AND (x OR (y AND z))
    >>> print(factored(condition("(a = b AND x) OR a = b")), "|", factored(condition("x OR y")))
    a = b | x OR y
    """
    found: list[exp.Expr] = []
    for condition in conjuncts(node):
        sides = [{text(part): part for part in conjuncts(side)} for side in _sides_of_or(condition)]
        common = [part for sql, part in sides[0].items() if all(sql in side for side in sides)]
        if len(sides) == 1 or not common:
            found.append(condition)
            continue
        found.extend(common)
        shared = {text(part) for part in common}
        rests = [[part for sql, part in side.items() if sql not in shared] for side in sides]
        if all(rests):
            found.append(exp.or_(*(exp.and_(*rest, copy=False) for rest in rests), copy=False))
    return exp.and_(*found, copy=False) if len(found) > 1 else found[0]


def _sides_of_or(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _sides_of_or(node.this)
    return [*_sides_of_or(node.this), *_sides_of_or(node.expression)] if isinstance(node, exp.Or) else [node]


def case(node: exp.Expr) -> tuple[exp.Expr | None, exp.Expr, bool]:
    """CASE WHEN c THEN v [ELSE 0] END as condition, value, and whether there is the ELSE; else None and the node."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.If):
        node = exp.Case(ifs=[node.copy()], default=node.args.get("false"))
        node.args["ifs"][0].set("false", None)
    if not isinstance(node, exp.Case) or len(node.args["ifs"]) != 1:
        return None, node, False
    if node.this is not None:  # CASE x WHEN y
        node = node.copy()
        branch = node.args["ifs"][0]
        branch.set("this", exp.EQ(this=node.this, expression=branch.this))
        node.set("this", None)
    branch, default = node.args["ifs"][0], node.args.get("default")
    if default is not None and not isinstance(default, exp.Null) and not is_zero(default):
        if not is_zero(branch.args["true"]):
            return None, node, False
        # CASE WHEN c THEN 0 ELSE v END: v where c is not so
        kept = exp.Not(this=exp.Is(this=exp.Paren(this=branch.this), expression=exp.true()))
        return kept, default, True
    return branch.this, branch.args["true"], default is not None and not isinstance(default, exp.Null)


def is_zero(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and float(node.this) == 0


QUANTILES = (exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc)


def share_of(node: exp.Expr) -> exp.Expr | None:
    """The share of a quantile, a half of a median."""
    if isinstance(node, exp.Median):
        return exp.Literal.number("0.5")
    return node.args.get("quantile") or node.args.get("expression")


def as_quantile(node: exp.Expr) -> exp.Expr:
    """``approx_quantile(x, share)`` as the quantile that it is about; anything else as it is."""
    if isinstance(node, exp.AnonymousAggFunc) and node.name == "approx_quantile" and len(node.expressions) == 2:
        return exp.PercentileCont(this=node.expressions[0], expression=node.expressions[1])
    return node


def constant_factor(node: exp.Expr) -> tuple[exp.Expr, str]:
    """What is multiplied or divided by constants, and how: ``2 * -x / 3`` is x and `` * 2 * -1 / 3``."""
    factor = ""
    while True:
        if isinstance(node, exp.Paren):
            node = node.this
        elif isinstance(node, exp.Neg) and not isinstance(node.this, exp.Literal):
            node, factor = node.this, f"{factor} * -1"
        elif isinstance(node, (exp.Mul, exp.Div)) and is_number(node.expression):
            if isinstance(node, exp.Div) and is_zero(node.expression):
                return node, factor
            sign = "/" if isinstance(node, exp.Div) else "*"
            node, factor = node.this, f"{factor} {sign} {node.expression.this}"
        elif isinstance(node, exp.Mul) and is_number(node.this):
            node, factor = node.expression, f"{factor} * {node.this.this}"
        elif isinstance(node, exp.Cast) and keeps_numbers(node):
            node = node.this
        else:
            return node, factor


def keeps_numbers(cast: exp.Cast) -> bool:
    """Whether what is cast keeps its value.

    Anything to floating-point numbers, whole numbers to any others, and decimal ones to those with no fewer places
    before and behind the point.
    """
    of, to = family(cast.this), family(cast)
    if of == to == "decimal":
        (before, behind), (places_before, places_behind) = _places(cast.this), _places(cast)
        return 0 < before <= places_before and behind <= places_behind
    return (to == "real" and of in ("whole", "real", "decimal")) or (of == "whole" and to in ("whole", "decimal"))


def _places(node: exp.Expr) -> tuple[int, int]:
    """How many places a decimal number has before and behind the point; none: that is not known."""
    kind = node.unalias().type
    behind = kind.expressions[1].name if kind is not None and len(kind.expressions) > 1 else "0"
    return (digits(node) - int(behind), int(behind)) if behind.isdecimal() else (0, 0)


def whole_number(node: exp.Expr | None) -> int | None:
    """A whole number that stands in the query; None: it is anything else."""
    if isinstance(node, exp.Neg):
        inner = whole_number(node.this)
        return None if inner is None else -inner
    is_whole = isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal() and len(node.this) <= 18
    return int(node.this) if isinstance(node, exp.Literal) and is_whole else None


def is_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


_SYNONYMS: dict[str, type[exp.AggFunc]] = {
    "mean": exp.Avg, "favg": exp.Avg, "fsum": exp.Sum, "sumkahan": exp.Sum, "kahan_sum": exp.Sum,
}  # fmt: skip


_UNKNOWN = frozenset([*_SYNONYMS, "count_star"])
"""Aggregates of which sqlglot does not know that they are, as it is said here or at all."""


def unknown_aggregate(node: exp.Expr) -> str | None:
    """The name of an aggregate that sqlglot takes for any function, in an expression and not as that of a window."""
    for found in node.walk(prune=is_query):
        if isinstance(found, exp.Anonymous) and folded(found.name) in _UNKNOWN:
            within: exp.Expr = found
            while isinstance(within.parent, _AROUND_FUNCTIONS) and within.arg_key == "this":
                within = within.parent
            if not (isinstance(within.parent, exp.Window) and within.arg_key == "this"):
                return folded(found.name)
    return None


_WRITTEN = "written"
"""Under this an aggregate remembers the name that it was written by."""


def normalize(tree: exp.Expr) -> None:
    """Write aggregates that have several names, and truth values that are added up, in one way."""
    for within in list(tree.find_all(exp.WithinGroup)):
        ordered = within.expression.expressions
        if isinstance(within.this, (exp.PercentileCont, exp.PercentileDisc)) and len(ordered) == 1:
            share = within.this.this.copy()
            backwards = bool(ordered[0].args.get("desc"))
            if backwards and isinstance(within.this, exp.PercentileDisc):
                continue  # a quarter from above need not be the value that is three quarters from below
            if backwards:
                share = exp.Literal.number(str(1 - float(share.this))) if isinstance(share, exp.Literal) else share
            plain = type(within.this)(this=ordered[0].this, expression=share)
            plain.type = within.type
            within.replace(plain)
    for rows in list(tree.find_all(exp.In, exp.EQ, exp.NEQ)):
        if isinstance(rows, exp.Binary) and isinstance(rows.expression, (exp.Any, exp.All)):
            _as_in(rows)
        elif not isinstance(rows, exp.NEQ):
            _compare_by_column(rows)
    for node in list(tree.find_all(exp.Anonymous, exp.GroupingId, exp.Sum, exp.Avg)):
        aggregate: exp.Expr = node
        if isinstance(node, exp.GroupingId):
            node.replace(exp.Grouping(expressions=node.expressions))
        elif isinstance(node, exp.Anonymous) and len(node.expressions) == 1 and folded(node.name) in _SYNONYMS:
            aggregate = _SYNONYMS[folded(node.name)](this=node.expressions[0])
            aggregate.type = node.type
            aggregate.meta[_WRITTEN] = node.name
            node.replace(aggregate)
        if isinstance(aggregate, (exp.Sum, exp.Avg)):
            truth = aggregate.this
            while isinstance(truth, exp.Paren):
                truth = truth.this
            if isinstance(truth, exp.Cast) and family(truth.this) == "truth":
                # A row where the condition is NULL is no row of a sum or a mean.
                one, zero = exp.Literal.number(1), exp.Literal.number(0)
                aggregate.set("this", exp.Case(ifs=[exp.If(this=truth.this, true=one)], default=zero))
                known = exp.Not(this=exp.Is(this=exp.Paren(this=truth.this.copy()), expression=exp.Null()))
                if isinstance(aggregate.parent, exp.Filter):
                    where = aggregate.parent.expression
                    where.set("this", exp.and_(where.this, known, copy=False))
                    continue
                filtered = exp.Filter(expression=exp.Where(this=known))
                aggregate.replace(filtered)
                filtered.set("this", aggregate)


def _as_in(node: exp.Binary) -> None:
    """Write ``x = ANY (SELECT ..)`` and ``x <> ALL (SELECT ..)`` as IN and NOT IN, and so with a list."""
    kind, query = (exp.Any if isinstance(node, exp.EQ) else exp.All), node.expression.this
    while isinstance(query, exp.Paren):
        query = query.this
    if isinstance(node.expression, kind) and isinstance(query, exp.Array) and query.expressions:
        found = typed(exp.In(this=node.this, expressions=query.expressions), node)
    elif isinstance(node.expression, kind) and isinstance(query, exp.Query):
        subquery = query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)
        found = typed(exp.In(this=node.this, query=subquery), node)
    else:
        return
    node.replace(found if kind is exp.Any else exp.Paren(this=exp.Not(this=found)))


def as_written(select: exp.Select) -> None:
    """Write aggregates of numbers that are released or public by their own name: their sums are other numbers."""
    for node in list(select.find_all(exp.Sum, exp.Avg)):
        if _WRITTEN in node.meta:
            node.replace(typed(exp.AnonymousAggFunc(this=node.meta[_WRITTEN], expressions=[node.this]), node))


def _compare_by_column(node: exp.Expr) -> None:
    """Write ``(a, b) IN ((1, 2), (3, 4))`` and ``(a, b) = (1, 2)`` by column; NULL is a value, as DuckDB has it."""
    rows = node.expressions if isinstance(node, exp.In) else [node.expression]
    if not isinstance(node.this, exp.Tuple) or not rows:
        return
    wide = len(node.this.expressions)
    if not all(isinstance(row, exp.Tuple) and len(row.expressions) == wide for row in rows):
        return
    alike = [
        exp.Paren(this=exp.and_(*(
            exp.NullSafeEQ(this=column.copy(), expression=value)
            for column, value in zip(node.this.expressions, row.expressions, strict=True)
        ), copy=False))
        for row in rows
    ]  # fmt: skip
    node.replace(exp.Paren(this=exp.or_(*alike, copy=False)))


def tables_of(select: exp.Select) -> list[exp.Expr]:
    from_ = select.args.get("from_")
    return ([from_.this] if from_ is not None else []) + [join.this for join in select.args.get("joins") or []]


def column_names(query: exp.Query) -> frozenset[str]:
    """The names of a query's columns."""
    if isinstance(query, exp.SetOperation) and query.args.get("by_name"):
        return column_names(query.this) | column_names(query.expression)
    return frozenset(folded(name) for name in query.named_selects)


def by_name(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """The names of the columns of UNION BY NAME, of those of its two sides."""
    known = {folded(name) for name in left}
    return [*left, *(name for name in right if folded(name) not in known)]


LATERAL = "lateral"
"""What marks a subquery in FROM that may name what stands before it."""


def is_lateral(node: exp.Expr) -> bool:
    return isinstance(node, exp.Subquery) and bool(node.meta.get(LATERAL))


def owner(column: exp.Column) -> exp.Select | None:
    """The SELECT that a qualified column belongs to: the innermost one with a source of that name.

    Raises:
        Refused: a subquery in FROM that reaches for its neighbours.
    """
    node: exp.Expr = column
    left_a_select = lateral = False
    while node.parent is not None:
        parent = node.parent
        lateral = is_lateral(node) or (lateral and not isinstance(node, exp.Query))
        if isinstance(parent, exp.Select):
            through = node.arg_key
            names = {table.alias_or_name for table in tables_of(parent)}
            if through != "with_" and column.table in names:
                if through in ("from_", "joins") and left_a_select and not lateral:
                    raise Refused("SDC044", column.name)
                return parent
            left_a_select = True
        node = parent
    return None


def refuse_more_keys(select: exp.Select) -> None:
    """Refuse GROUP BY ALL where HAVING has columns that are no group keys: DuckDB groups by these, too.

    SELECT age // 20 AS a, count(*) FROM people GROUP BY ALL HAVING a > 2 has a row for each age in DuckDB.

    Args:
        select: with all its names written out.
    """
    having = select.args.get("having")
    if having is None:
        return
    keys = [item.unalias() for item in select.expressions if not has_aggregate(item)]
    for column in _outside_aggregates(having.this):
        if column not in keys:
            raise Refused(
                "SDC047",
                "HAVING beside GROUP BY ALL groups by its columns, too: name the group keys, as in GROUP BY 1, 2",
            )


def _outside_aggregates(node: exp.Expr) -> Iterator[exp.Column]:
    for part in node.walk(prune=lambda part: is_query(part) or isinstance(part, exp.Filter) or is_aggregate(part)):
        if isinstance(part, exp.Column):
            yield part
