"""Records that stand in a UNION ALL under several labels: each label is a question of its own.

::

    SELECT what, count(*) FROM (
        SELECT 'all' AS what, * FROM people UNION ALL SELECT 'old', * FROM people WHERE age > 60
    ) AS u GROUP BY what

    SELECT b.what, b._a0 FROM (
        SELECT what, count(*) AS _a0 FROM (SELECT 'all' AS what, * FROM people) AS u GROUP BY what
        UNION ALL
        SELECT what, count(*) FROM (SELECT 'old' AS what, * FROM people WHERE age > 60) AS u GROUP BY what
    ) AS b

A record is in a group once, as a group has one label. UNPIVOT is written so before (`passes.pivots`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from sqlglot import exp

from sdcduck.catalog import Policy
from sdcduck.guard.expressions import leaves, tables_of
from sdcduck.guard.protect.around_groups import AroundGroups, grouped_by
from sdcduck.guard.protect.inlined import inline
from sdcduck.guard.protect.recursion import is_recursive
from sdcduck.guard.protect.together import are_of_one_type
from sdcduck.quoting import folded

_IsRecord = Callable[[exp.Table], bool]

LABELLED = "_sdc_l"
"""What the groups of all labels are called."""

_MOST = 50
"""How many sides may become questions of their own, each of which repeats what stands around them."""


def ask_each_label(tree: exp.Expr, policies: Mapping[str, Policy], number: Callable[[], int]) -> None:
    """Write the groups of labelled records as a UNION ALL of those of each label, in place.

    Queries of WITH that are such records come in place of their names; none of them has another in it, so that copies
    do not grow with each other.

    Args:
        tree: its names in full.
        policies: by folded name.
        number: gives another number for a name.
    """
    if tree.find(exp.Union) is None:
        return

    def is_record(table: exp.Table) -> bool:
        policy = policies.get(folded(table.name))
        return policy is None or policy.label != "public"

    inline(tree, policies, lambda cte: _is_labelled(cte, is_record))
    for select in list(tree.find_all(exp.Select)):
        _split(select, number, is_record)


def _split(select: exp.Select, number: Callable[[], int], is_record: _IsRecord) -> None:
    if any(join.side or join.kind not in ("", "INNER", "CROSS") for join in select.args.get("joins") or []):
        return
    for place, source in enumerate(tables_of(select)):
        labels, sides = _labels_and_sides(source, is_record)
        group = grouped_by(select) if labels else None
        if group is None or group.find(exp.Cube, exp.Rollup, exp.GroupingSets) is not None:
            continue
        keys = [key for item in group.expressions for key in leaves(item)]
        of_source = [key for key in keys if isinstance(key, exp.Column) and key.table == source.alias_or_name]
        if any(folded(key.name) in labels for key in of_source):
            around = AroundGroups(select, group, f"{LABELLED}{number()}")
            around.put(_of_each(around.taken_out(), place, sides))
            return


def _is_labelled(cte: exp.CTE, is_record: _IsRecord) -> bool:
    """Whether a query of WITH is a UNION ALL of records that stand in it under several labels, each side plain."""
    labels, sides = ([], []) if cte.alias_column_names or is_recursive(cte) else _labels_and_sides(cte.this, is_record)
    return bool(labels) and all(side.find(exp.SetOperation) is None for side in sides)


def _labels_and_sides(query: exp.Expr, is_record: _IsRecord) -> tuple[set[str], list[exp.Select]]:
    sides = _sides(query)
    return _labels(sides) if sides and _are_read_twice(sides, is_record) else set(), sides


def _sides(query: exp.Expr) -> list[exp.Select]:
    """The SELECTs that a UNION ALL puts together, each by itself and with one name for a column; or none."""
    sides = [] if isinstance(query, exp.Select) else _put_together(query)
    alike = len({len(side.expressions) for side in sides}) == 1 and not query.alias_column_names
    if not alike or not 2 <= len(sides) <= _MOST:
        return []
    names = [item.alias_or_name for item in sides[0].expressions]
    for side in sides[1:]:
        named = zip(side.expressions, names, strict=True)
        side.set("expressions", [exp.alias_(item.unalias(), name, quoted=True) for item, name in named])
    return sides


_PLAIN = ("this", "alias", "expression", "distinct", "with_")


def _put_together(node: exp.Expr) -> list[exp.Select]:
    """Copies of the SELECTs of a UNION ALL, with the queries of its WITH; one that is none gives no list of them."""
    if any(value for key, value in node.args.items() if key not in _PLAIN and not isinstance(node, exp.Select)):
        return []
    if isinstance(node, exp.Subquery):
        return [] if node.args.get("with_") else _put_together(node.this)
    if isinstance(node, exp.Select):
        return [node.copy()]
    if not isinstance(node, exp.Union) or node.args.get("distinct"):
        return []
    left, right = _put_together(node.this), _put_together(node.expression)
    sides = [*left, *right] if left and right else []
    with_ = node.args.get("with_")
    if with_ is not None:
        if any(side.args.get("with_") for side in sides):
            return []
        for side in sides:
            side.set("with_", with_.copy())
    return sides


def _are_read_twice(sides: Sequence[exp.Select], is_record: _IsRecord) -> bool:
    """Whether two sides read records of one name."""
    own = [{folded(cte.alias) for cte in side.find_all(exp.CTE)} for side in sides]
    read = [
        {folded(table.name) for table in side.find_all(exp.Table) if folded(table.name) in named or is_record(table)}
        for side, named in zip(sides, own, strict=True)
    ]
    return sum(map(len, read)) > len(set().union(*read))


def _labels(sides: Sequence[exp.Select]) -> set[str]:
    """The names of the columns that say which side a row is of; none where the sides have columns of other types."""
    found = set()
    for column in zip(*(side.expressions for side in sides), strict=True):
        values = [item.unalias() for item in column]
        known = [value for value in values if not isinstance(value, exp.Null)]
        if not all(are_of_one_type(*pair) for pair in pairwise(known)) or len(set(map(_decimals, known))) > 1:
            return set()
        if len({value.this for value in values if isinstance(value, exp.Literal) and value.is_string}) == len(sides):
            found.add(folded(column[0].alias_or_name))
    return found


def _decimals(value: exp.Expr) -> frozenset[int]:
    """How many digits behind the point are written in a value: DuckDB shows all of a column with the most."""
    texts = [literal.this for literal in value.find_all(exp.Literal) if not literal.is_string and "." in literal.this]
    return frozenset(len(text.split(".")[1]) for text in texts)


def _of_each(groups: exp.Select, place: int, sides: Sequence[exp.Select]) -> exp.Query:
    """The groups of each side, under each other."""
    made: list[exp.Query] = []
    for side in sides:
        one = groups.copy()
        tables_of(one)[place].set("this", side)
        made.append(one)
    whole = made[0]
    for other in made[1:]:
        whole = exp.Union(this=whole, expression=other, distinct=False)
    return whole
