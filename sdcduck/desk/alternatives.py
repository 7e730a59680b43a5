"""Alternatives side by side: the same cells suppressed, rounded, drawn anew and with the noise of cell keys."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sdcduck.desk.forms import Form
from sdcduck.desk.statements import Draft, call, named
from sdcduck.errors import unknown
from sdcduck.quoting import folded, identifier, literal

MIDPOINT = 6
"""The base of midpoint rounding: that of OpenSAFELY."""
RECORD_KEY = "record_key"
"""What the house calls the column of record keys, as ``sdc_add_record_key`` does."""
_LEAST_BASE = 3


RELEASE = "Release:"
"""How the comment of a table begins that is to leave the house, as ``sdc_releases`` reads it."""
_SIGMA = 0.05
"""Dispersion of synthetic counts: the standard deviation of a count of 20 is 6, that of one of 1 is 1."""
_SEEDS = 2**31


@dataclass(frozen=True)
class Alternative:
    """What an alternative does to the counts.

    Attributes:
        name: in words.
        column: of the answer, where its numbers are.
        left_out: cells without a number.
        changed: cells with another number than the true one.
        mean, largest: absolute change of the cells that have one.
        risk: share of the primary cells whose true number somebody would guess who takes, for each number that is
            shown, the true one that most often stands behind it.
        loss: mean change as a share of the true number, 1 at most; a cell that is left out counts as lost.
        adds_up: whether shown cells add up to shown totals.
        promise: what it protects from, in a sentence.
    """

    name: str
    column: str
    left_out: int
    changed: int
    mean: float
    largest: int
    risk: float
    loss: float
    adds_up: bool
    promise: str


def base_of(rules: Mapping[str, Any]) -> int:
    """To what small counts are rounded: the smallest one that the rules publish, and at least 3."""
    return max(_LEAST_BASE, int(rules.get("max_count") or 0) + 1)


def seed_of(form: Form) -> int:
    """What rounding and synthesis are drawn with: kept from the page where they are compared to the one where they are
    published. It stands in the script, and nowhere else: whoever knows it can try what makes the published numbers."""
    kept = form.whole("seed", "seed")
    return secrets.randbelow(_SEEDS) if kept is None else kept


def _levels(draft: Draft) -> str:
    """The grouping set of a cell, in the words of ``sdc_suppress``."""
    words = ", ".join(
        f"CASE WHEN grouping({identifier(name)}) = 0 THEN {literal(name)} END" for name in draft.dimensions
    )
    return f"coalesce(nullif(concat_ws(' x ', {words}), ''), 'total') AS level"


def _rounded(draft: Draft, rules: Mapping[str, Any], seed: int) -> str:
    return call(
        "sdc_round_table", draft.query, base=base_of(rules), method="small_counts", freq=draft.count, seed=seed
    )  # fmt: skip


def _midpoint(draft: Draft) -> str:
    return call("sdc_round_table", draft.query, base=MIDPOINT, method="midpoint", freq=draft.count)


def can_be_drawn(draft: Draft) -> bool:
    """Whether no dimension is called as a column of ``sdc_synth_table``."""
    return not {folded(name) for name in draft.dimensions} & {"count", "replicate"}


def _synthetic(draft: Draft, seed: int) -> str:
    """The cells of tables whose inner cells were drawn."""
    names = ", ".join(map(identifier, draft.dimensions))
    drawn = call(
        "sdc_synth_table", named(draft.table), dimensions=list(draft.dimensions), model="nbi", sigma=_SIGMA, seed=seed
    )  # fmt: skip
    return f"SELECT {names}, {_levels(draft)}, sum(count)::BIGINT AS _drawn\n    FROM ({drawn}) GROUP BY {draft.groups}"


def alternatives_statement(draft: Draft, rules: Mapping[str, Any], *, keys: bool, seed: int) -> str:
    """One row a cell, with the count of the records under each alternative.

    Args:
        keys: whether the table has record keys, so that there is the alternative of cell keys.
        seed: of rounding and synthesis.
    """
    names = [identifier(name) for name in draft.dimensions]

    def same(other: str) -> str:
        return " AND ".join([f"{other}.level = s.level", *(f"{other}.{n} IS NOT DISTINCT FROM s.{n}" for n in names)])

    drawn = can_be_drawn(draft)
    lines = [
        f"SELECT {', '.join(f's.{n}' for n in names)}, coalesce(r.original, 0) AS _original, s.status AS _status,",
        "    CASE WHEN s.suppressed THEN NULL ELSE coalesce(r.original, 0) END AS _suppression,",
        "    coalesce(r.rounded, 0) AS _rounded, coalesce(m.rounded, 0) AS _midpoint"
        f"{', coalesce(d._drawn, 0) AS _drawn' if drawn else ''}"
        f"{', coalesce(k._keys, 0) AS _keys' if keys else ''}",
        f"FROM ({call('sdc_suppress', draft.query, **rules)}) s",
        # Where zeros are protected there are cells of nobody.
        f"LEFT JOIN ({_rounded(draft, rules, seed)}) r ON {same('r')}",
        f"LEFT JOIN ({_midpoint(draft)}) m ON {same('m')}",
    ]
    if drawn:
        lines.append(f"LEFT JOIN ({_synthetic(draft, seed)}) d ON {same('d')}")
    if keys:
        lines += [
            f"LEFT JOIN (SELECT {', '.join(names)}, {_levels(draft)},",
            f"    sdc_count({identifier(RECORD_KEY)}) AS _keys FROM {identifier(draft.table)}",
            f"    GROUP BY {draft.groups}) k ON {same('k')}",
        ]
    return "\n".join([*lines, f"ORDER BY {', '.join(f's.{n} NULLS LAST' for n in names)}"])


def release_statements(draft: Draft, rules: Mapping[str, Any], column: str, *, seed: int, replace: bool) -> str:
    """What makes a table of an alternative, which is to leave the house, and says so in its comment.

    Cells of 0 are not in it: a row of its own would tell that there was somebody.

    Raises:
        SDCError: there is no such alternative, or it is suppression, which `sdc_publish` publishes.
    """
    if column not in _PROMISES or column == "_suppression":
        raise unknown("alternative", column, [one for one in _PROMISES if one != "_suppression"])
    names, count = ", ".join(map(identifier, draft.dimensions)), identifier(draft.count)
    sums = ""
    if column == "_keys":
        key = identifier(RECORD_KEY)
        noisy = "".join(f", sdc_sum({identifier(one)}, {key}) AS {identifier(one)}" for one in draft.measures)
        cells = (
            f"SELECT {names}, {_levels(draft)}, sdc_count({key}) AS {count}{noisy}\n"
            f"FROM {identifier(draft.table)}\nGROUP BY {draft.groups}"
        )
        shown, sums = count, "".join(f", {identifier(one)}" for one in draft.measures)
    else:
        made = {
            "_rounded": (_rounded(draft, rules, seed), "rounded"),
            "_midpoint": (_midpoint(draft), "rounded"),
            "_drawn": (_synthetic(draft, seed), "_drawn"),
        }
        cells, shown = made[column]
    how = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE"
    comment = literal(f"{RELEASE} {_PROMISES[column][0]}, of {draft.table}")
    return (
        f"{how} {identifier(draft.name)} AS\nSELECT {names}, level, {shown} AS {count}{sums}\nFROM ({cells})\n"
        f"WHERE {shown} > 0\nORDER BY {names} NULLS LAST;\n"
        f"COMMENT ON TABLE {identifier(draft.name)} IS {comment};\n"
        f"SELECT count(*) AS cells FROM {identifier(draft.name)}"
    )


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
    "_drawn": (
        "Synthetic counts", True,
        "Each inner cell is drawn anew around its count, and the tables add up. Cells of nobody stay empty.",
    ),
    "_keys": (
        "Cell keys", False,
        "Each cell has noise that is the same wherever it stands. Tables can be made one after the other.",
    ),
}  # fmt: skip


def name_of(column: str) -> str:
    """An alternative in words."""
    return str(_PROMISES[column][0])


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
        found.append(Alternative(name, column, *of_all, _risk(cells, shown), _loss(cells, shown), adds_up, promise))
    return found


def _risk(cells: pa.Table, shown: pa.ChunkedArray) -> float:
    """The share of primary cells that are guessed rightly by who knows what most often stands behind a shown number."""
    table = pa.table({"shown": shown, "true": cells["_original"].cast(pa.int64()), "status": cells["_status"]})
    # Of two numbers that are as often behind a shown one, the smaller one is guessed.
    by = [("often", "descending"), ("true", "ascending")]
    pairs = table.group_by(["shown", "true"]).aggregate([([], "count_all")]).rename_columns(["shown", "true", "often"])
    guesses = pairs.sort_by(by).group_by("shown", use_threads=False).aggregate([("true", "first")])
    primary = table.filter(pc.equal(table["status"], "primary"))
    if not primary.num_rows:
        return 0.0
    place = pc.index_in(primary["shown"], guesses["shown"].combine_chunks())
    return float(pc.mean(pc.equal(guesses["true_first"].take(place), primary["true"])).as_py())


def _loss(cells: pa.Table, shown: pa.ChunkedArray) -> float:
    """The mean change as a share of the true number, 1 at most."""
    true = cells["_original"].cast(pa.float64())
    change = pc.divide(pc.abs(pc.subtract(shown.cast(pa.float64()), true)), pc.max_element_wise(true, 1.0))
    lost = pc.fill_null(pc.min_element_wise(change, 1.0, skip_nulls=False), 1.0)
    return float(pc.mean(lost).as_py() or 0.0)
