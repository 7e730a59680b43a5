"""``SELECT DISTINCT`` of groups and of windows over each of them: a GROUP BY in other words.

::

    SELECT DISTINCT region, avg(income) OVER (PARTITION BY region) AS m FROM people
    SELECT region, avg(income) AS m FROM people GROUP BY region
"""

from __future__ import annotations

from sqlglot import exp

from sdcduck.guard.expressions import aggregates, function_of, text


def as_groups(select: exp.Select) -> None:
    """Write such a SELECT over records as a GROUP BY, in place."""
    distinct = select.args.get("distinct")
    if distinct is None or distinct.args.get("on") is not None:
        return
    if any(select.args.get(part) for part in ("group", "having", "qualify", "windows")):
        return
    items = [item.unalias() for item in select.expressions]
    keys = [item for item in items if item.find(exp.Window) is None]
    windows = [window for item in items for window in item.find_all(exp.Window)]
    if not windows or not keys or any(isinstance(key, exp.Literal) for key in keys):
        return
    order = select.args.get("order")
    if order is not None and order.find(exp.Window) is not None:
        return
    if any(aggregates(part) or part.find(exp.Query) is not None for part in [*items, *filter(None, [order])]):
        return
    names = {text(key) for key in keys}
    if all(_is_of(window, names) for window in windows):
        for window in windows:
            window.replace(window.this)
        select.set("distinct", None)
        select.set("group", exp.Group(expressions=[key.copy() for key in keys]))


def _is_of(window: exp.Window, keys: set[str]) -> bool:
    """Whether a window is an aggregate over the rows of one group."""
    parts = {part for part, value in window.args.items() if value}
    by = {text(key) for key in window.args.get("partition_by") or []}
    return (
        parts <= {"this", "partition_by", "over"}
        and by == keys
        and isinstance(function_of(window)[0], exp.AggFunc)
        and window.this.find(exp.Window) is None
    )
