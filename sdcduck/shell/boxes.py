"""A result as a box, the way DuckDB's own shell draws it, with what each column is made of under its type.

Rows in the middle are left out of a long result, and columns in the middle of a wide one; what was left out is said in
the line below. A number that the protection withholds is ×; NULL is what SQL means by it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from sdcduck.guard import Origin
from sdcduck.guard.methods import METHODS
from sdcduck.guard.rewritten import PREVIEW
from sdcduck.guard.worth import Worth

WITHHELD = "×"
_NULL = "NULL"
_NARROWEST = 12
_NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?$|FLOAT|DOUBLE|DECIMAL|int[248]$|float[48]$|numeric$|oid$")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_ESCAPED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_STYLE = {
    "perturbed": "yellow",
    "rounded": "yellow",
    "exact": "green",
    "group": "cyan",
    "public": "dim",
    "made up": "magenta",
}
_METHOD = {**{name: method.words for name, method in METHODS.items()}, PREVIEW: "no record is shown"}


@dataclass(frozen=True)
class Column:
    """A column of a result.

    Attributes:
        origin: what it is made of; None: not known.
        worth: how large its noise is; None: not known.
    """

    name: str
    type: str
    origin: Origin | None = None
    worth: Worth | None = None

    @property
    def is_number(self) -> bool:
        """Whether it stands to the right."""
        return _NUMBER.match(self.type) is not None

    @property
    def null(self) -> str:
        """What stands where there is no value."""
        return WITHHELD if self.origin is not None and self.origin.withholds else _NULL


Row = Sequence[str | None]


def clean(text: str) -> str:
    """A text that cannot steer a terminal or reach into the next line.

    >>> clean("a\\x1b[2Jb\\n")
    'a\\\\x1b[2Jb\\\\n'
    """
    return _CONTROL.sub(lambda found: _ESCAPED.get(found[0]) or _code(found[0]), text)


def _code(character: str) -> str:
    return f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"


def protects(columns: Sequence[Column]) -> bool:
    """Whether anything in a result was protected."""
    return any(column.origin is not None and column.origin.kind != "public" for column in columns)


def legend(columns: Sequence[Column], *, withheld: bool) -> str:
    """What the marks mean; empty where nothing was protected.

    Args:
        withheld: whether the result has ×.

    >>> legend([Column("n", "BIGINT", Origin("n", frozenset([("people", "threshold")])))], withheld=True)
    'exact: groups of enough units only (people); ×: withheld'
    """
    parts: dict[str, set[str]] = {}
    for column in columns:
        if column.origin is not None:
            for table, method in column.origin.protected:
                parts.setdefault(f"{column.origin.kind}: {_METHOD.get(method, method)}", set()).add(table)
    told = [f"{meaning} ({', '.join(sorted(tables))})" for meaning, tables in sorted(parts.items())]
    if withheld:
        told.append(f"{WITHHELD}: withheld")
    noise = [column.worth.short for column in columns if column.worth is not None and column.worth.short]
    return clean("; ".join(told)) + ("\n" + clean("noise: " + "; ".join(noise)) if noise else "")


def box(columns: Sequence[Column], head: Sequence[Row], tail: Sequence[Row], rows: int, width: int | None) -> Text:
    """The box and the line below it.

    Args:
        head: the first rows as text.
        tail: the last ones, where rows are left out between.
        rows: of the whole result.
        width: of the terminal; None: as wide as it takes.
    """
    titles = [[clean(column.name)] for column in columns]
    if any(column.type for column in columns):
        for title, column in zip(titles, columns, strict=True):
            title.append(column.type.lower())
    if protects(columns):
        for title, column in zip(titles, columns, strict=True):
            title.append("" if column.origin is None else column.origin.kind)
    shown = [[None if value is None else clean(value) for value in row] for row in (*head, *tail)]
    widths = [
        max(cell_len(text) for text in (*title, *(row[place] or column.null for row in shown)))
        for place, (column, title) in enumerate(zip(columns, titles, strict=True))
    ]
    kept: list[int | None] = list(range(len(columns)))
    if width is not None:
        _narrow(widths, [not column.is_number for column in columns], width)
        kept = _kept(widths, width)
    drawing = _Drawing(columns, widths, kept)
    drawing.rule("┌┬┐")
    for line in range(len(titles[0])):
        drawing.titles([title[line] for title in titles], line)
    drawing.rule("├┼┤")
    for row in shown[: len(head)]:
        drawing.row(row)
    if tail:
        for _ in range(3):
            drawing.dots()
        for row in shown[len(head) :]:
            drawing.row(row)
    drawing.rule("└┴┘")
    drawing.text.append(_size(rows, len(shown), len(columns), sum(place is not None for place in kept)), "dim")
    return drawing.text


def _size(rows: int, rows_shown: int, columns: int, columns_shown: int) -> str:
    told = f"{rows} row{'s' * (rows != 1)}" + (f" ({rows_shown} shown)" if rows_shown < rows else "")
    if columns_shown < columns:
        told += f", {columns} columns ({columns_shown} shown)"
    return told


def _narrow(widths: list[int], may: Sequence[bool], width: int) -> None:
    """Take from the widest columns of text, one after the other, what is too much."""
    while (over := sum(widths) + 3 * len(widths) + 1 - width) > 0:
        wide = sorted((place for place in range(len(widths)) if may[place]), key=lambda place: -widths[place])
        if not wide or widths[wide[0]] <= _NARROWEST:
            return
        second = max(widths[wide[1]], _NARROWEST) if len(wide) > 1 else _NARROWEST
        widths[wide[0]] -= max(1, min(over, widths[wide[0]] - second))


def _kept(widths: Sequence[int], width: int) -> list[int | None]:
    """The columns that have room, from both ends; None stands for those between."""
    if sum(widths) + 3 * len(widths) + 1 <= width:
        return list(range(len(widths)))
    left, right, room = [0], list[int](), width - (widths[0] + 3) - 5
    first, last = 1, len(widths) - 1
    while first <= last:
        from_left = len(left) <= len(right)
        place = first if from_left else last
        room -= widths[place] + 3
        if room < 0:
            break
        if from_left:
            left.append(place)
            first += 1
        else:
            right.insert(0, place)
            last -= 1
    return [*left, None, *right]


class _Drawing:
    def __init__(self, columns: Sequence[Column], widths: Sequence[int], kept: Sequence[int | None]) -> None:
        self.text = Text()
        self._columns, self._widths, self._kept = columns, widths, kept

    def rule(self, ends: str) -> None:
        """A line across."""
        lines = ["─" * (3 if place is None else self._widths[place] + 2) for place in self._kept]
        self.text.append(ends[0] + ends[1].join(lines) + ends[2] + "\n", "dim")

    def titles(self, titles: Sequence[str], line: int) -> None:
        """Names, types, or what columns are made of."""
        cells = []
        for place in self._kept:
            if place is None:
                cells.append(Text("…"))
                continue
            style = ("bold", "dim", _STYLE.get(titles[place], ""))[line]
            cells.append(_cell(titles[place], self._widths[place], "center", style))
        self._line(cells)

    def row(self, row: Row) -> None:
        """Values."""
        cells = []
        for place in self._kept:
            if place is None:
                cells.append(Text("…"))
                continue
            column, value = self._columns[place], row[place]
            style = "" if value is not None else "bold red" if column.null == WITHHELD else "dim"
            side = "right" if column.is_number else "left"
            cells.append(_cell(column.null if value is None else value, self._widths[place], side, style))
        self._line(cells)

    def dots(self) -> None:
        """That rows are left out."""
        self._line(
            [Text("·") if place is None else _cell("·", self._widths[place], "center", "dim") for place in self._kept]
        )

    def _line(self, cells: Sequence[Text]) -> None:
        self.text.append("│", "dim")
        for cell in cells:
            self.text.append(" ").append_text(cell).append(" ").append("│", "dim")
        self.text.append("\n")


def _cell(value: str, width: int, side: str, style: str) -> Text:
    text = Text(value, style)
    text.truncate(width, overflow="ellipsis")
    room = width - text.cell_len
    before = room if side == "right" else room // 2 if side == "center" else 0
    text.pad_left(before)
    text.pad_right(room - before)
    return text
