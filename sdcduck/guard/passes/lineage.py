"""What the columns of an answer are made of: original values, or numbers that were protected, and how.

It follows the columns of a protected query back to where its parts come from. Nothing is decided by it: whoever shows
an answer may say it beside the answer (`Guard.explain`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.expressions import RELEASED, by_name, is_lateral, is_number
from sdcduck.guard.passes.draft import Draft
from sdcduck.guard.protect.recursion import is_recursive
from sdcduck.guard.rewritten import Origin
from sdcduck.guard.worth import Statistic, Terms
from sdcduck.quoting import folded

Columns = Sequence[Origin]


def trace_lineage(draft: Draft) -> None:
    """What each column of the answer is made of, once its columns are called as DuckDB calls them.

    >>> after(trace_lineage, "SELECT Count(*) AS Number FROM people")
    SELECT "_sdc"."_a0" AS "Number" FROM "a block" AS "_sdc"
    """
    progress = draft.protection.progress
    blocks = {select: Block(policy, progress.statistics.get(select, {})) for select, policy in progress.blocks.items()}
    draft.lineage = origins(draft.tree, blocks)


@dataclass(frozen=True)
class Block:
    """A SELECT that stands around protected numbers.

    Attributes:
        policy: that protects them.
        statistics: which each of their columns is, by name.
    """

    policy: Policy
    statistics: Mapping[str, Terms]


Blocks = Mapping[int, Block]
"""By the identity of the SELECT."""


def origins(tree: exp.Expr, blocks: Blocks) -> tuple[Origin, ...]:
    """The origins of the columns of a protected query."""
    return tuple(_of_query(tree, {}, blocks))


def _of_query(node: exp.Expr, known: Mapping[str, Columns], blocks: Blocks) -> Columns:
    visible = dict(known)
    with_ = node.args.get("with_")
    for cte in [] if with_ is None else with_.expressions:
        if is_recursive(cte):
            sides = [_of_query(side, visible, blocks) for side in (cte.this.this, cte.this.expression)]
            every = [column for side in sides for column in side]
            visible[folded(cte.alias)] = [_together(column.name, every, True) for column in sides[0]]
            continue
        visible[folded(cte.alias)] = _renamed(_of_query(cte.this, visible, blocks), cte.alias_column_names)
    if isinstance(node, exp.Subquery):
        return _of_query(node.this, visible, blocks)
    if isinstance(node, exp.SetOperation):
        sides = [_of_query(side, visible, blocks) for side in (node.this, node.expression)]
        if node.args.get("by_name"):
            return _by_name(*sides)
        return [_together(left.name, [left, right], left.computed or right.computed) for left, right in zip(*sides)]  # noqa: B905
    if isinstance(node, exp.Select):
        return _of_select(node, visible, blocks)
    return []


def _of_select(select: exp.Select, known: Mapping[str, Columns], blocks: Blocks) -> Columns:
    from_ = select.args.get("from_")
    joins = select.args.get("joins") or []
    block = blocks.get(id(select))
    policy = None if block is None else block.policy
    sources: dict[str, dict[str, Origin]] = {}
    for table in ([] if from_ is None else [from_.this]) + [join.this for join in joins]:
        columns = _of_source(table, known, blocks) if policy is None else []
        if is_lateral(table):  # it may be made of all that stands before it
            before = [column for known_columns in sources.values() for column in known_columns.values()]
            columns = [_together(column.name, [column, *before], True) for column in columns]
        sources[table.alias_or_name] = {folded(column.name): column for column in columns}
    behind = [column for columns in sources.values() for column in columns.values()]
    missing = any(join.side for join in joins)

    def of_column(column: exp.Column) -> Origin:
        if block is not None and column.table == RELEASED:
            if column.name.startswith("_g"):
                return Origin("", grouped=frozenset([block.policy.name]))
            protected = frozenset([(block.policy.name, str(block.policy.method))])
            terms = block.statistics.get(column.name, ())
            return Origin("", protected, terms=terms, linear=bool(terms))
        return sources.get(column.table, {}).get(folded(column.name), Origin(""))

    found = []
    for item in select.expressions:
        inner = item.unalias()
        while isinstance(inner, exp.Paren | exp.Cast):
            inner = inner.this
        if isinstance(inner, exp.Column):
            origin = of_column(inner)
            found.append(replace(origin, name=item.alias_or_name, computed=origin.computed or missing))
            continue
        parts = [of_column(column) for column in inner.find_all(exp.Column)]
        for query in inner.find_all(exp.Select):
            parts += _of_query(query, known, blocks)
        if inner.find(exp.AggFunc, exp.Window) is not None:  # which rows there are depends on all that is behind them
            parts += behind
        made = _together(item.alias_or_name, parts, True)
        terms = _sum_of(inner, of_column)
        if terms is not None and (block is not None or len({one.cell for _, one in terms}) == len(terms)):
            made = replace(made, terms=_collected(terms), linear=True)
        found.append(made)
    return found


def _sum_of(node: exp.Expr, of_column: Callable[[exp.Column], Origin]) -> Terms | None:
    """What an expression adds up, where it is a sum of protected numbers times constants; None: it is something else.

    What is not protected moves a number and not its noise.
    """
    if isinstance(node, exp.Column):
        origin = of_column(node)
        return origin.terms if origin.linear else None
    if isinstance(node, exp.Literal):
        return ()
    if isinstance(node, exp.Paren | exp.Cast):
        return _sum_of(node.this, of_column)
    if isinstance(node, exp.Coalesce) and all(isinstance(other, exp.Literal) for other in node.expressions):
        return _sum_of(node.this, of_column)
    if isinstance(node, exp.Neg):
        return _times(_sum_of(node.this, of_column), -1)
    if isinstance(node, exp.Add | exp.Sub):
        one, other = _sum_of(node.this, of_column), _sum_of(node.expression, of_column)
        other = _times(other, -1) if isinstance(node, exp.Sub) else other
        return None if one is None or other is None else (*one, *other)
    if isinstance(node, exp.Mul) and is_number(node.this):
        return _times(_sum_of(node.expression, of_column), float(node.this.this))
    if isinstance(node, exp.Mul | exp.Div) and is_number(node.expression):
        by = float(node.expression.this)
        if isinstance(node, exp.Div) and by == 0:
            return None
        return _times(_sum_of(node.this, of_column), 1 / by if isinstance(node, exp.Div) else by)
    return None


def _times(terms: Terms | None, by: float) -> Terms | None:
    return None if terms is None else tuple((factor * by, statistic) for factor, statistic in terms)


def _collected(terms: Iterable[tuple[float, Statistic]]) -> Terms:
    """Each number once: in one row it is the same, and so is its noise."""
    factors: dict[Statistic, float] = {}
    for factor, statistic in terms:
        factors[statistic] = factors.get(statistic, 0) + factor
    return tuple((factor, statistic) for statistic, factor in factors.items())


def _by_name(left: Columns, right: Columns) -> Columns:
    """The columns of UNION BY NAME; one that a side does not have is NULL there."""
    both = []
    for name in by_name([column.name for column in left], [column.name for column in right]):
        parts = [column for column in (*left, *right) if folded(column.name) == folded(name)]
        both.append(_together(name, parts, len(parts) < 2 or any(part.computed for part in parts)))
    return both


def _of_source(table: exp.Expr, known: Mapping[str, Columns], blocks: Blocks) -> Columns:
    """The columns of what stands after FROM; those of public tables are not listed."""
    if isinstance(table, exp.Table):
        return known.get(folded(table.name), [])
    if isinstance(table, exp.Subquery):
        return _renamed(_of_query(table, known, blocks), table.alias_column_names)
    return []


def _renamed(columns: Columns, names: Sequence[str]) -> Columns:
    if len(names) != len(columns):
        return columns
    return [replace(column, name=name) for column, name in zip(columns, names, strict=True)]


def _together(name: str, parts: Sequence[Origin], computed: bool) -> Origin:
    terms = _collected([term for part in parts for term in part.terms])
    alike = len({(factor, replace(statistic, cell="")) for factor, statistic in terms}) == 1
    return Origin(
        name,
        frozenset().union(*(part.protected for part in parts)),
        frozenset().union(*(part.grouped for part in parts)),
        computed,
        # One of several numbers of one kind, as of UNION, is of that kind.
        terms[:1] if alike and not computed else tuple((1.0, statistic) for _, statistic in terms),
        linear=not computed and (alike or not terms),
    )
