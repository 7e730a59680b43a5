"""Which column of which table a column of a view is, as DuckDB plans the view."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import duckdb

from sdcduck.catalog.database import first_row
from sdcduck.quoting import folded, identifier

_THROUGH = ("LOGICAL_FILTER", "LOGICAL_ORDER_BY", "LOGICAL_LIMIT", "LOGICAL_DISTINCT")
"""What passes the columns of its one child on."""


def stored_column(con: duckdb.DuckDBPyConnection, relation: str, column: str) -> tuple[str, str] | None:
    """Table and column, folded, that a column of a relation of the main schema is; None: it is worked out, or that is
    not known."""
    asked = f"SELECT {identifier(column)} FROM main.{identifier(relation)}"
    try:
        row = first_row(con, "SELECT json_serialize_plan(?)", [asked])
        plan = json.loads(row[0]) if row is not None else {}
        return None if plan.get("error", True) else _of(plan["plans"][0], 0)
    except (
        duckdb.Error,
        ValueError,
        LookupError,
        TypeError,
    ):  # a plan that DuckDB has no text of, or another form of it
        return None


def _of(step: Mapping[str, Any], place: int) -> tuple[str, str] | None:
    """What the column in some place of the output of a step of a plan is."""
    kind, children = step["type"], step["children"]
    if kind == "LOGICAL_PROJECTION":
        expression = step["expressions"][place]
        return _of(children[0], expression["index"]) if expression["type"] == "BOUND_REF" else None
    if kind in _THROUGH:
        kept = step.get("projection_map") or range(place + 1)
        return _of(children[0], kept[place])
    if kind == "LOGICAL_COMPARISON_JOIN":
        left, right = (_width(child) for child in children)
        kept = [*_kept(step, "left", left), *(left + one for one in _kept(step, "right", right))]
        found = kept[place]
        return _of(children[0], found) if found < left else _of(children[1], found - left)
    if kind == "LOGICAL_GET" and step.get("function_data"):
        if step["projection_ids"]:
            place = step["projection_ids"][place]
        return folded(str(step["function_data"]["table"])), folded(str(step["names"][_stored(step)[place]]))
    return None


def _kept(step: Mapping[str, Any], side: str, width: int) -> list[int]:
    """The columns of one side that a join passes on."""
    return list(step.get(f"{side}_projection_map") or range(width))


def _stored(step: Mapping[str, Any]) -> list[int]:
    """The columns of its table that a scan reads, in order."""
    return [one["index"] for one in step["column_indexes"]]


def _width(step: Mapping[str, Any]) -> int:
    """How many columns the output of a step has.

    Raises:
        LookupError: that is not known of such a step.
    """
    kind, children = step["type"], step["children"]
    if kind == "LOGICAL_PROJECTION":
        return len(step["expressions"])
    if kind in _THROUGH:
        return len(step.get("projection_map") or ()) or _width(children[0])
    if kind == "LOGICAL_GET":
        return len(step["projection_ids"] or _stored(step))
    if kind == "LOGICAL_COMPARISON_JOIN" and step["join_type"] not in ("SEMI", "ANTI", "MARK"):
        left, right = (_width(child) for child in children)
        return len(_kept(step, "left", left)) + len(_kept(step, "right", right))
    raise LookupError(kind)
