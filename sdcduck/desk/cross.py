"""A suppressed publication as a cross table: one dimension down, one across, the others at a total or at one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sdcduck.udfs.publication import Publication

TOTAL = "Total"
MARKS = {"primary": "P", "secondary": "S", "forced": "F"}
_MOST_DOWN, _MOST_ACROSS = 200, 40


@dataclass(frozen=True)
class Place:
    """A cell of the cross table.

    Attributes:
        text: the number, or its mark.
        status: 'open', 'primary', 'secondary' or 'forced'; 'none' where the publication has no such cell.
        why: in words, for who looks closer.
    """

    text: str
    status: str
    why: str = ""


@dataclass(frozen=True)
class Cross:
    """A cross table.

    Attributes:
        down, across: the names of its dimensions; no `across`: the measures stand there.
        heads: of its columns.
        rows: their names, and their cells.
        cut: how many rows and columns are not shown.
    """

    down: str
    across: str | None
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Place, ...]], ...]
    cut: tuple[int, int]


@dataclass(frozen=True)
class View:
    """What of a publication is looked at.

    Attributes:
        down, across: dimensions.
        at: of other dimensions, the value; those that are not there are at their total.
        measure: which number stands in the cells.
    """

    down: str
    across: str | None
    at: Mapping[str, str]
    measure: str


def view_of(publication: Publication, down: str, across: str, at: Mapping[str, str], measure: str) -> View:
    """What was asked for, or else the first two dimensions and the first measure."""
    names, measures = publication.dimensions, [one.name for one in publication.measures]
    down = down if down in names else names[0] if names else ""
    others = [name for name in names if name != down]
    across = across if across in others else others[0] if others else ""
    fixed = {name: value for name, value in at.items() if value and name in others and name != across}
    return View(down, across or None, fixed, measure if measure in measures else measures[0])


def cross(publication: Publication, cells: pa.Table, view: View) -> Cross:
    """The cross table of some of the cells of ``sdc_suppress``, totals last."""
    places = _places(publication, cells, view)
    down = list(dict.fromkeys(row for row, _ in places if row is not None))
    over = list(dict.fromkeys(column for _, column in places if column is not None))
    rows: list[str | None] = [*down[:_MOST_DOWN], None]
    if view.across is None:
        measures = [one.name for one in publication.measures]
        body = tuple(
            (TOTAL if row is None else row, tuple(_place(places.get((row, None)), name) for name in measures))
            for row in rows
        )
        return Cross(view.down, None, tuple(measures), body, (max(0, len(down) - _MOST_DOWN), 0))
    columns: list[str | None] = [*over[:_MOST_ACROSS], None]
    body = tuple(
        (TOTAL if row is None else row, tuple(_place(places.get((row, column)), view.measure) for column in columns))
        for row in rows
    )
    heads = tuple(TOTAL if column is None else column for column in columns)
    cut = (max(0, len(down) - _MOST_DOWN), max(0, len(over) - _MOST_ACROSS))
    return Cross(view.down, view.across, heads, body, cut)


_Key = tuple[str | None, str | None]


def _places(publication: Publication, cells: pa.Table, view: View) -> dict[_Key, dict[str, Any]]:
    """The cells by what stands at their row and column; None is the total."""
    names = publication.dimensions
    found: dict[_Key, dict[str, Any]] = {}
    for rows, columns in ((True, True), (True, False), (False, True), (False, False)):
        if columns and view.across is None:
            continue
        within = {*view.at, *([view.down] if rows else []), *([str(view.across)] if columns else [])}
        level = publication.level_of(_with_levels_above(publication, {names.index(name) for name in within}))
        wanted = pc.equal(cells["level"], level)
        for name, value in view.at.items():
            wanted = pc.and_kleene(wanted, pc.equal(pc.cast(cells[name], pa.string()), value))
        for cell in cells.filter(wanted).to_pylist():
            row = _code(cell[view.down]) if rows else None
            column = _code(cell[str(view.across)]) if columns else None
            found[row, column] = cell
    return found


def _with_levels_above(publication: Publication, places: Set[int]) -> tuple[int, ...]:
    """The grouping set of these dimensions, and of those that they are only totalled within: of a town its region."""
    having = [one for one in map(set, publication.sets) if places <= one]
    return tuple(sorted(set.intersection(*having) if having else places))


def _code(value: object) -> str:
    return "NULL" if value is None else str(value)


def _place(cell: Mapping[str, Any] | None, measure: str) -> Place:
    if cell is None:
        return Place("·", "none", "no such cell")
    status = str(cell["status"])
    if status in ("primary", "secondary"):
        why = f"primary: {cell['why']}" if status == "primary" else "secondary: protects primary cells"
        return Place(MARKS[status], status, why)
    return Place(shown(cell[measure]), status, "published by order" if status == "forced" else "")


def shown(value: object) -> str:
    """A number as readers see it.

    >>> shown(1234567), shown(0.5), shown(None), shown(12.0), shown(float("inf"))
    ('1,234,567', '0.5', '–', '12', '∞')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.10g}".replace("inf", "∞")
    return f"{value:,}" if isinstance(value, int | Decimal) else str(value)


def values_of(cells: pa.Table, dimension: str, most: int = 200) -> Sequence[str]:
    """The values of a dimension, for a list to choose from."""
    found = pc.unique(pc.cast(cells[dimension], pa.string())).drop_null()
    return sorted(found.to_pylist())[:most]


def counts(cells: pa.Table) -> dict[str, int]:
    """How many cells have which status."""
    return {str(one["values"]): int(one["counts"]) for one in pc.value_counts(cells["status"]).to_pylist()}
