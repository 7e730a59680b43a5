"""Alternatives side by side: the same cells suppressed, rounded and with the noise of cell keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sdcduck.desk.statements import Draft, call
from sdcduck.quoting import identifier, literal

MIDPOINT = 6
"""The base of midpoint rounding: that of OpenSAFELY."""
RECORD_KEY = "record_key"
"""What the house calls the column of record keys, as ``sdc_add_record_key`` does."""
_LEAST_BASE = 3


@dataclass(frozen=True)
class Alternative:
    """What an alternative does to the counts.

    Attributes:
        name: in words.
        column: of the answer, where its numbers are.
        left_out: cells without a number.
        changed: cells with another number than the true one.
        mean, largest: absolute change of the cells that have one.
        adds_up: whether shown cells add up to shown totals.
        promise: what it protects from, in a sentence.
    """

    name: str
    column: str
    left_out: int
    changed: int
    mean: float
    largest: int
    adds_up: bool
    promise: str


def base_of(rules: Mapping[str, Any]) -> int:
    """To what small counts are rounded: the smallest one that the rules publish, and at least 3."""
    return max(_LEAST_BASE, int(rules.get("max_count") or 0) + 1)


def alternatives_statement(draft: Draft, rules: Mapping[str, Any], *, keys: bool) -> str:
    """One row a cell, with the count of the records under each alternative.

    Args:
        keys: whether the table has record keys, so that there is the alternative of cell keys.
    """
    names = [identifier(name) for name in draft.dimensions]

    def same(other: str) -> str:
        return " AND ".join([f"{other}.level = s.level", *(f"{other}.{n} IS NOT DISTINCT FROM s.{n}" for n in names)])

    rounded = call(
        "sdc_round_table", draft.query, base=base_of(rules), method="small_counts", freq=draft.count, seed=1
    )  # fmt: skip
    midpoint = call("sdc_round_table", draft.query, base=MIDPOINT, method="midpoint", freq=draft.count)
    lines = [
        f"SELECT {', '.join(f's.{n}' for n in names)}, coalesce(r.original, 0) AS _original, s.status AS _status,",
        "    CASE WHEN s.suppressed THEN NULL ELSE coalesce(r.original, 0) END AS _suppression,",
        "    coalesce(r.rounded, 0) AS _rounded, coalesce(m.rounded, 0) AS _midpoint"
        f"{', coalesce(k._keys, 0) AS _keys' if keys else ''}",
        f"FROM ({call('sdc_suppress', draft.query, **rules)}) s",
        f"LEFT JOIN ({rounded}) r ON {same('r')}",  # where zeros are protected there are cells of nobody
        f"LEFT JOIN ({midpoint}) m ON {same('m')}",
    ]
    if keys:
        words = ", ".join(
            f"CASE WHEN grouping({n}) = 0 THEN {literal(name)} END"
            for n, name in zip(names, draft.dimensions, strict=True)
        )
        lines += [
            f"LEFT JOIN (SELECT {', '.join(names)}, coalesce(nullif(concat_ws(' x ', {words}), ''), 'total') AS level,",
            f"    sdc_count({identifier(RECORD_KEY)}) AS _keys FROM {identifier(draft.table)}",
            f"    GROUP BY {draft.groups}) k ON {same('k')}",
        ]
    return "\n".join([*lines, f"ORDER BY {', '.join(f's.{n} NULLS LAST' for n in names)}"])


_PROMISES = {
    "_suppression": (
        "Suppression", True,
        "Published numbers are true. What is left out does not follow: the audit says how closely it can be told.",
    ),
    "_rounded": (
        "Small counts rounded", True,
        "All numbers are there and add up. Whether a small count was 0 or the base does not show.",
    ),
    "_midpoint": (
        "Midpoint rounding", False,
        "Each number is the middle of a range, without chance. Differences of two cells can tell more.",
    ),
    "_keys": (
        "Cell keys", False,
        "Each cell has noise that is the same wherever it stands. Tables can be made one after the other.",
    ),
}  # fmt: skip


def compared(cells: pa.Table) -> list[Alternative]:
    """The alternatives of an answer, measured against the true counts."""
    found = []
    for column, (name, adds_up, promise) in _PROMISES.items():
        if column not in cells.column_names:
            continue
        shown = cells[column].cast(pa.int64())
        change = pc.drop_null(pc.abs(pc.subtract(shown, cells["_original"])))
        mean, largest = pc.mean(change).as_py(), pc.max(change).as_py()
        changed = pc.sum(pc.greater(change, 0)).as_py()
        of_all = (shown.null_count, int(changed or 0), float(mean or 0.0), int(largest or 0))
        found.append(Alternative(name, column, *of_all, adds_up, promise))
    return found
