"""How much work a query can make of one row: an engine in the middle of an expression does not hear that it is stopped.

DuckDB looks whether it is stopped between vectors of 2048 rows. What takes long for a vector is refused before: texts
and lists that grow without need, in steps each of which multiplies them, and patterns that are tried in very many ways.
Values of tables count as short, for what the custodian stored in them is hers; but where a join or a subquery puts them
into any number of rows, texts count as long as the longest that is stored. How long the list or the text of an
aggregate will be, nobody knows before: where something is made of it, the query that runs looks at its length first.

The engine copies rows that leave it 2048 at a time, and again into batches, and counts the memory of neither: a text
that stands in a row may stand in all of them, by a join or as it is. So rows have a width of which 2048 fit, but for
the lists and texts that a query itself aggregates, which are no more than what it held; and of wide ones few are in a
batch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from sqlglot import exp

from sdcduck.guard.expressions import is_histogram, is_query, tables_of, whole_number
from sdcduck.guard.passes.amounts import MOST_TIMES, length_of_format, looked_at
from sdcduck.guard.passes.series import length_of
from sdcduck.guard.protect.recursion import is_recursive
from sdcduck.guard.refusals import Refused
from sdcduck.guard.running import LONGEST_PARAMETER, TOO_LONG
from sdcduck.quoting import folded

_MOST_WORK = 2_000_000  # nanoseconds for a row
_STORED, _PLAIN, _ITEM = 200, 32, 16  # bytes of a value of a table, of a number as a text, around an item of a list
_WIDE, _MOST_WIDTH = 500_000, 32_000_000  # bytes of a row of many; of one that stands alone, and of a batch
_LADDER = (_MOST_WIDTH, 10_000_000, 3_000_000, 1_000_000, 300_000, 100_000, 30_000, 10_000, 5_000)
_LARGEST_PATTERN, _WIDEST, _GROWN = 1000, 1000, 10_000

Sizes = Mapping[str, float]
_Scopes = tuple[Mapping[str, Sizes | None], ...]
_OF_NUMBERS = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow, exp.Predicate, exp.Connector, exp.Not, exp.Neg,
    exp.Count, exp.Sum, exp.Avg, exp.Length, exp.RowNumber,
)  # fmt: skip
_ONE_OF = (
    exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Least, exp.Greatest, exp.Min, exp.Max, exp.AnyValue, exp.First,
    exp.Last, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead, exp.Mode,
)  # fmt: skip
_LISTS = (exp.ArrayAgg, exp.GroupConcat)
_PATTERNS = (
    exp.RegexpLike, exp.RegexpILike, exp.RegexpFullMatch, exp.SimilarTo, exp.RegexpReplace, exp.RegexpExtract,
)  # fmt: skip
_LONGEST_BAR = 3200
_AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.Window)
_CUT = (exp.Left, exp.Right, exp.Substring)
_MAPS = (exp.Map, exp.MapFromEntries, exp.ToMap)
_REPEATED = re.compile(r"\{(\d*)(?:,(\d*))?\}")


def bound(tree: exp.Expr, stored: Mapping[str, Sizes]) -> tuple[exp.Expr, int | None]:
    """A qualified query in which no row makes too much work: aggregates of which much would be made look at their size.

    Args:
        stored: bytes of the longest texts of tables, by the names of these and of their columns; 0 where none are.

    Returns:
        The query, and how many of its rows may be in memory at once; None: as many as of any.

    Raises:
        Refused: one does, whatever its aggregates are, or is too wide itself.
    """
    for cte in filter(is_recursive, tree.find_all(exp.CTE)):
        _look_at_growth(cte.this.expression)
    alone = isinstance(tree, exp.Select) and tree.args.get("from_") is None
    lists = [node for node in tree.find_all(exp.AggFunc) if _is_list(node)]
    widest = _MOST_WIDTH if alone or _are_last(lists, tree) else _WIDE
    plain = _Sized(tree, {}, are_lists=bool(lists))
    most = plain.most_of_aggregates(widest, alone=alone)
    if most is None:
        raise Refused("SDC002", "text or lists that grow too long, or a search through them: make less of one value")
    sized = _Sized(tree, stored, are_lists=bool(lists)) if stored else plain
    if _multiplies(tree) and any(max(longest.values(), default=0) > _STORED for longest in stored.values()):
        most = sized.most_of_aggregates(widest, alone=alone)
        if most is None:
            raise Refused(
                "SDC002", "long texts of a table in many rows: take left(x, 1000), or ask for that table alone"
            )
    _, width, largest = sized.of(most)
    rows = None if largest <= _STORED else max(1, int(_MOST_WIDTH / width))
    return (tree if most == inf else _checked(tree, int(most))), rows


class _Sized:
    """A query with what its rows cost, by how long the list or the text of an aggregate may be.

    Args:
        stored: as of `bound`.
        are_lists: whether there is such an aggregate; if not, the query is looked at once.
    """

    def __init__(self, tree: exp.Expr, stored: Mapping[str, Sizes], *, are_lists: bool) -> None:
        self._tree, self._stored, self._are_lists = tree, stored, are_lists
        self._known: dict[float, tuple[float, float, float]] = {}

    def of(self, most: float) -> tuple[float, float, float]:
        """The work for a row, the width of one, and that of its widest value."""
        most = most if self._are_lists else 0.0
        if most not in self._known:
            self._known[most] = _sizes(self._tree, most, self._stored)
        return self._known[most]

    def most_of_aggregates(self, widest: float, *, alone: bool) -> float | None:
        """How long the list or the text of an aggregate may be, so that no row makes too much work; None: one does."""
        if alone or self.of(0.0)[1] <= _WIDE:
            for most in (inf, *_LADDER):
                work, width, _ = self.of(most)
                if work <= _MOST_WORK and width <= widest:
                    return most
        return None


def _look_at_growth(query: exp.Expr) -> None:
    """Have the part of WITH RECURSIVE that repeats look at values that may grow each time, in place."""
    if isinstance(query, (exp.SetOperation, exp.Subquery)):
        for side in filter(None, (query.this, query.args.get("expression"))):
            _look_at_growth(side)
    if not isinstance(query, exp.Select):
        return
    tables = {table.alias_or_name for table in tables_of(query) if isinstance(table, exp.Table)}
    for item in query.expressions:
        value = item.unalias()
        if isinstance(value, (exp.Literal, exp.Boolean, exp.Null, *_OF_NUMBERS)):
            continue
        if isinstance(value, exp.Column) and value.table in tables:
            continue
        length = exp.func("strlen", exp.cast(value.copy(), exp.DataType.Type.TEXT), dialect="duckdb")
        value.replace(looked_at(value, length, _GROWN))


def _multiplies(tree: exp.Expr) -> bool:
    """Whether a value of a table may stand in more rows than there are of the table."""
    if tree.find(exp.Explode, exp.Unnest) is not None:
        return True
    for select in tree.find_all(exp.Select):
        parts = [select.args.get("joins"), select.args.get("laterals")]
        if any(parts) or any(is_query(node) for item in select.expressions for node in item.walk(prune=is_query)):
            return True
    return False


def _sizes(tree: exp.Expr, most: float, stored: Mapping[str, Sizes]) -> tuple[float, float, float]:
    """The work for a row of a query, the width of one, and that of its widest value."""
    sizes = _Query(most, stored)
    columns = sizes.of(tree, {}, ())
    largest = max(columns.values(), default=0.0)
    number = len(tree.selects) if isinstance(tree, exp.Query) else 0
    return sizes.work, largest * number if number > len(columns) else sum(columns.values()), largest


def _are_last(lists: list[exp.AggFunc], tree: exp.Expr) -> bool:
    """Whether lists and texts are made in the outermost query only, where nothing repeats them."""
    return isinstance(tree, exp.Select) and all(
        node.parent_select is tree and node.find_ancestor(exp.Window) is None for node in lists
    )


def refuse_lists_of_windows(tree: exp.Expr) -> None:
    """Refuse a window that makes a list or a text of very many rows for each row, or looks at all of them for each.

    Raises:
        Refused: there is one.
    """
    for window in tree.find_all(exp.Window):
        aggregate = _aggregate_in(window)
        if _is_list(aggregate) and not _is_narrow(window.args.get("spec")):
            raise Refused(
                "SDC010", "a list or text of a window: write ROWS BETWEEN 100 PRECEDING AND CURRENT ROW, or GROUP BY"
            )
        if isinstance(aggregate, exp.AggFunc):
            wide = [frame for frame in _frames(window) if not _is_narrow(frame)]
            if isinstance(aggregate, exp.Mode) and not all(map(_only_grows, wide)):
                raise Refused("SDC010", "a mode of a window that rows leave: write ROWS BETWEEN 100 PRECEDING AND ..")
            if aggregate.find(exp.Distinct) is not None and any(_excludes(frame) for frame in wide):
                raise Refused("SDC010", "DISTINCT in a window with EXCLUDE: write ROWS BETWEEN 100 PRECEDING AND ..")


def _frames(window: exp.Window) -> list[exp.Expr]:
    """The frame of a window, and those that it may have by the name of another one."""
    select = window.parent_select
    named = [] if select is None else select.args.get("windows") or []
    frames = (one.args.get("spec") for one in [window, *(named if window.args.get("alias") else [])])
    return [frame for frame in frames if frame is not None]


def _excludes(frame: exp.Expr) -> bool:
    exclude = frame.args.get("exclude")
    return exclude is not None and str(exclude).upper() != "NO OTHERS"


def _only_grows(frame: exp.Expr) -> bool:
    """Whether no row is in a frame that is not in the next one."""
    first = (str(frame.args.get("start")).upper(), str(frame.args.get("start_side")).upper())
    return first == ("UNBOUNDED", "PRECEDING") and not _excludes(frame)


def _is_narrow(frame: exp.Expr | None) -> bool:
    """Whether a frame has no more rows than `_WIDEST` on either side."""
    if not isinstance(frame, exp.WindowSpec) or frame.text("kind").upper() != "ROWS":
        return False
    for end in (frame.args.get("start"), frame.args.get("end")):
        number = end.this if isinstance(end, exp.Literal) and not end.is_string else ""
        if end != "CURRENT ROW" and not (number.isdecimal() and int(number) <= _WIDEST):
            return False
    return True


@dataclass
class _Query:
    """What is known of one query: sizes in bytes, work in nanoseconds for a row, both at most.

    Attributes:
        most: bytes of the list or text of an aggregate.
        stored: bytes of the longest values in columns of tables.
    """

    most: float
    stored: Mapping[str, Sizes]
    work: float = 0.0
    largest: float = _STORED

    def of(self, node: exp.Expr, ctes: Mapping[str, Sizes], scopes: _Scopes) -> Sizes:
        """The columns of a query, with the work in it."""
        with_ = node.args.get("with_")
        if with_ is not None:
            ctes = dict(ctes)
            for cte in with_.expressions:
                if is_recursive(cte):
                    first = self.of(cte.this.this, ctes, scopes)
                    ctes[folded(cte.alias)] = {name: max(size, _GROWN) for name, size in first.items()}
                    self.of(cte.this.expression, ctes, scopes)
                    continue
                ctes[folded(cte.alias)] = _renamed(self.of(cte.this, ctes, scopes), cte)
        if isinstance(node, exp.SetOperation):
            left, right = self.of(node.this, ctes, scopes), self.of(node.expression, ctes, scopes)
            if node.args.get("by_name"):
                return {name: max(left.get(name, 0), right.get(name, 0)) for name in {**left, **right}}
            return dict(zip(left, map(max, left.values(), right.values()), strict=False))
        if isinstance(node, exp.Subquery):
            return _renamed(self.of(node.this, ctes, scopes), node)
        if not isinstance(node, exp.Select):
            return {"": self._within(node, ctes, scopes)}
        here: dict[str, Sizes | None] = {}
        inside: _Scopes = (here, *scopes)
        joins = node.args.get("joins") or []
        from_ = node.args.get("from_")
        sources = [] if from_ is None else [from_.this]
        for source in [*sources, *(join.this for join in joins), *(node.args.get("laterals") or [])]:
            if isinstance(source, exp.Table) and not source.args.get("joins"):
                name = folded(source.name)
                known = ctes[name] if name in ctes else self.stored.get(name)
                here[folded(source.alias_or_name)] = None if known is None else _renamed(known, source)
            elif isinstance(source, exp.Subquery):
                here[folded(source.alias_or_name)] = self.of(source, ctes, inside)
            else:
                size = self._within(source, ctes, inside)
                here[folded(source.alias_or_name)] = {"": size}
        found = [(folded(item.alias_or_name), self.size(item.unalias(), ctes, inside)) for item in node.selects]
        result = dict(found)
        if len(result) < len(found):  # two of one name
            result = dict.fromkeys(result, max(size for _, size in found))
        here[""] = result
        for key, value in node.args.items():
            if key in ("expressions", "from_", "with_", "laterals"):
                continue
            for part in value if isinstance(value, list) else (value,):
                if isinstance(part, exp.Join):
                    for on in (part.args.get("on"), *(part.args.get("using") or [])):
                        if isinstance(on, exp.Expr):
                            self.size(on, ctes, inside)
                elif isinstance(part, exp.Expr):
                    self.size(part, ctes, inside)
        return result

    def _within(self, node: exp.Expr, ctes: Mapping[str, Sizes], scopes: _Scopes) -> float:
        """What the parts of a source add up to."""
        return sum(self.size(part, ctes, scopes) for part in node.iter_expressions())

    def size(self, node: exp.Expr, ctes: Mapping[str, Sizes], scopes: _Scopes) -> float:
        """Of the value of an expression; the work for it and in it is added up."""
        found = self._size(node, ctes, scopes)
        self.largest = max(self.largest, found)
        return found

    def _size(self, node: exp.Expr, ctes: Mapping[str, Sizes], scopes: _Scopes) -> float:
        if isinstance(node, exp.Query):
            return max(self.of(node, ctes, scopes).values(), default=_PLAIN)
        if isinstance(node, exp.Column):
            return self._column(node, scopes)
        if isinstance(node, exp.Literal):
            return len(node.this.encode()) if node.is_string else _PLAIN
        if isinstance(node, exp.Placeholder):
            return LONGEST_PARAMETER
        parts = [self.size(part, ctes, scopes) for part in node.iter_expressions()]
        total, largest = sum(parts), max(parts, default=0.0)
        if not isinstance(node, (exp.Func, exp.Binary, exp.Unary, exp.Array, exp.Struct, exp.Tuple, exp.Bracket)):
            return total
        if isinstance(node, exp.AggFunc):
            return self._aggregate(node, parts)
        made = self._made(node, parts)
        if isinstance(node, _PATTERNS):
            self._search(node, parts[0] if parts else 0)
        elif isinstance(node, _MAPS):
            self.work += 160 * total
        elif node.key.startswith(("array", "list", "sort")) and not isinstance(node, exp.Array):
            self.work += 20 * total
        elif isinstance(node, exp.Split):
            self.work += 3 * made
        elif isinstance(node, exp.Length) and isinstance(_aggregate_in(node.this), exp.ArrayAgg):
            pass
        elif isinstance(node, _CUT):
            self.work += made
        elif not isinstance(node, (exp.Bracket, exp.Cast, exp.Paren)) or node.find(exp.Slice) is not None:
            self.work += total + made if made > largest else total
        return made

    def _made(self, node: exp.Expr, parts: list[float]) -> float:
        total, largest = sum(parts), max(parts, default=0.0)
        if isinstance(node, exp.Paren):
            return largest
        if isinstance(node, exp.GenerateSeries):
            return float(_ITEM * (1 + length_of(node)))
        if isinstance(node, _OF_NUMBERS) or (
            isinstance(node, exp.Explode) and isinstance(node.this, exp.GenerateSeries)
        ):
            return _PLAIN
        if isinstance(node, _ONE_OF):
            return largest
        if isinstance(node, _CUT):
            kept = node.args.get("length") if isinstance(node, exp.Substring) else node.expression
            if isinstance(kept, exp.Literal) and kept.this.isdecimal():
                return min(parts[0], 4.0 * int(kept.this))
            return parts[0]
        if isinstance(node, exp.Replace):
            text = node.expression
            known = len(text.this) if isinstance(text, exp.Literal) and text.is_string else 1
            return parts[0] * max(1.0, parts[-1] / max(known, 1))
        if isinstance(node, exp.RegexpReplace):
            new = node.args.get("replacement")
            taken = new.this.count("\\") if isinstance(new, exp.Literal) else LONGEST_PARAMETER
            longer = len(new.this) if isinstance(new, exp.Literal) else parts[2] if len(parts) > 2 else 0
            return parts[0] * (1 + taken) + (parts[0] + 1) * longer
        if isinstance(node, exp.Split):
            return (_ITEM + 1) * total
        if isinstance(node, exp.ArrayToString):
            return parts[0] + (parts[0] / _ITEM + 1) * sum(parts[1:])
        if isinstance(node, exp.Repeat):
            return parts[0] * _amount(node.args["times"])
        if isinstance(node, exp.Pad):
            return parts[0] + 4.0 * _amount(node.expression)
        if isinstance(node, exp.ConcatWs):
            return total + parts[0] * len(parts)
        if isinstance(node, exp.Format):
            return length_of_format(node.this, sum(parts[1:]), of_percents=False)
        if isinstance(node, exp.Anonymous) and folded(node.name) in ("printf", "bar"):
            if folded(node.name) == "bar":
                return _LONGEST_BAR
            return length_of_format(next(iter(node.expressions), None), sum(parts[1:]), of_percents=True)
        if isinstance(node, exp.TimeToStr):
            return _PLAIN + 20 * parts[-1]
        if isinstance(node, (exp.Array, exp.Struct, exp.Tuple, *_MAPS)):
            return total + _ITEM * (1 + len(parts))
        return total

    def _aggregate(self, node: exp.AggFunc, parts: list[float]) -> float:
        total = sum(parts)
        if _is_list(node):
            return self.most
        if isinstance(node, _ONE_OF):
            return max(parts, default=0.0)
        return _PLAIN if isinstance(node, (*_OF_NUMBERS, exp.AnonymousAggFunc)) else total

    def _search(self, node: exp.Expr, size: float) -> None:
        """The work of a pattern: an end of it is looked for from every place where it may begin."""
        pattern = node.args.get("expression")
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise Refused("SDC010", "a pattern that is no constant: write it as a text, regexp_matches(x, '^a+')")
        if program(pattern.this) > _LARGEST_PATTERN:
            raise Refused("SDC010", "a pattern that repeats very much: write one with fewer and smaller {numbers}")
        self.work += size * size / 2 if isinstance(node, exp.RegexpReplace) else 5 * size

    def _column(self, node: exp.Column, scopes: _Scopes) -> float:
        table, name = folded(node.table), folded(node.name)
        for scope in scopes:
            if table in scope:
                known = scope[table]
                if known is None:
                    return _STORED
                if name in known:
                    return known[name] or _STORED
                return max(known.values(), default=_STORED) if table else self.largest
        return self.largest


def _amount(node: exp.Expr) -> int:
    """How often a text is repeated, or how long it becomes, at most."""
    found = whole_number(node)
    return MOST_TIMES if found is None else max(found, 0)


def program(pattern: str) -> float:
    """How many steps the engine makes of a pattern, at most.

    >>> program("[0-9]{4}-[0-9]{2}"), program("((a?){30}){30}")
    (136, 12600)
    """
    repeated = 1
    for least, most in _REPEATED.findall(pattern):
        repeated *= max(int(least or 0), int(most or 0), 1)
    return len(pattern) * repeated


def _renamed(columns: Sizes, called: exp.Expr) -> Sizes:
    """Columns by the names that an alias gives them."""
    alias = called.args.get("alias")
    names = [folded(name.name) for name in alias.args.get("columns") or []] if isinstance(alias, exp.TableAlias) else []
    if not names:
        return columns
    rest = list(columns.items())[len(names) :]
    return {**dict(zip(names, columns.values(), strict=False)), **dict(rest)}


def _is_list(node: exp.Expr | None) -> bool:
    """Whether the value of an aggregate grows with the number of its rows."""
    if isinstance(node, _LISTS) or is_histogram(node):
        return True
    return isinstance(node, exp.AggFunc) and bool(node.args.get("count"))


def _aggregate_in(node: exp.Expr | None) -> exp.Expr | None:
    while isinstance(node, (*_AROUND, exp.Paren)):
        node = node.this
    return node


def _checked(tree: exp.Expr, most: int) -> exp.Expr:
    """Aggregates that fail where they are longer; what they are otherwise does not change."""
    for aggregate in [node for node in tree.find_all(exp.AggFunc) if _is_list(node)]:
        whole: exp.Expr = aggregate
        while isinstance(whole.parent, _AROUND) and whole.arg_key == "this":
            whole = whole.parent
        text = isinstance(aggregate, exp.GroupConcat)
        longest = most if text else most // (_ITEM + _PLAIN)
        called = "strlen" if text else "cardinality" if is_histogram(aggregate) else "len"
        length = exp.func(called, whole.copy(), dialect="duckdb")
        long = exp.GT(this=length, expression=exp.Literal.number(longest))
        told = exp.Case(
            ifs=[exp.If(this=long, true=exp.Literal.string(f"{TOO_LONG}: {longest}"))],
            default=exp.Literal.string("true"),
        )
        kept = exp.Case(ifs=[exp.If(this=exp.Cast(this=told, to=exp.DataType.build("boolean")), true=whole.copy())])
        whole.replace(kept)
    return tree
