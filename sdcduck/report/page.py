"""The report of a publication as HTML.

Colours are tints of the palette of Okabe and Ito, apart for colour-blind readers; every mark is a letter too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from html import escape

from sdcduck.report.cells import STATUSES, Cell, Report, Table
from sdcduck.report.html import document, grid, heading, td, th, written, written_by
from sdcduck.report.verdicts import of_publication, verdicts

_LETTERS = {"primary": "P", "secondary": "S", "forced": "F"}
_WORDS = {"open": "published", "forced": "published by order", "primary": "primary", "secondary": "secondary"}


def page(report: Report, *, title: str | None = None, day: date | None = None) -> str:
    """The whole document."""
    name = title or (f"Publication {report.name}" if report.name else "Publication")
    facts = [*written_by(day), ("Rules", report.rules or "those of the publication")]
    if report.records is not None:
        facts.append(("Records", f"{report.records:,}"))
    parts = [heading(facts), verdicts(of_publication(report)), _introduction(report), _summary(report), _rules(report)]
    return document(name, [*parts, *(_section(report, table) for table in report.tables)])


def _introduction(report: Report) -> str:
    warning = (
        "It shows numbers of suppressed cells: it is as confidential as the records."
        if report.custodian
        else "No number of a suppressed cell is in this file. It tells primary from secondary cells and names the "
        "rules, which is for the office, not for the public."
    )
    hover = " The interval that a suppressed number is known to lie in shows while the pointer is on its cell."
    legend = grid(
        None,
        ["cell", "mark", "meaning"],
        [
            [th("primary"), _mark("primary"), "<td>suppressed by a rule</td>"],
            [th("secondary"), _mark("secondary"), "<td>suppressed to protect primary cells</td>"],
            [th("forced"), _mark("forced"), "<td>published whatever the rules say</td>"],
        ],
    )
    return f'<p class="note">{warning}{hover if report.audited else ""}</p>\n{legend}'


def _mark(status: str) -> str:
    return f'<td class="{status}">{_LETTERS[status]}</td>'


def _summary(report: Report) -> str:
    head = ["table", "cells", *(_WORDS[status] for status in STATUSES), "cells shown"]
    head += [f"share of {measure} shown" for measure in report.measures]
    rows = []
    for table in report.tables:
        counts = [table.count(status) for status in STATUSES]
        numbers = [f"{len(table.cells):,}", *(f"{count:,}" for count in counts), _percent(_shown_cells([table]))]
        rows.append([th(table.level), *map(td, [*numbers, *map(_percent, table.shares)])])
    counts = [sum(table.count(status) for table in report.tables) for status in STATUSES]
    cells = sum(len(table.cells) for table in report.tables)
    numbers = [f"{cells:,}", *(f"{count:,}" for count in counts), _percent(_shown_cells(report.tables))]
    rows.append([th("all"), *map(td, [*numbers, *[""] * len(report.measures)])])
    note = (
        '<p class="note">Shares are published numbers over the published total; where none is published they would '
        "tell it, and are left out.</p>"
    )
    return f"<h2>Summary</h2>\n{grid(None, head, rows)}\n{note}"


def _shown_cells(tables: Sequence[Table]) -> float | None:
    cells = sum(len(table.cells) for table in tables)
    return sum(table.count("open") + table.count("forced") for table in tables) / cells if cells else None


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _rules(report: Report) -> str:
    if not report.by_rule:
        return ""
    rows = [[th(rule), td(f"{count:,}")] for rule, count in report.by_rule]
    return f"<h2>Suppressed by rule</h2>\n{grid(None, ['rule', 'cells'], rows)}"


def _section(report: Report, table: Table) -> str:
    body = _cross_tables(report, table) or _list(report, table)
    return f"<h2>{escape(table.level)}</h2>\n{body}"


def _cross_tables(report: Report, table: Table) -> str | None:
    """Rows by columns, a table a measure, and for three dimensions one for each category of the shortest of them; None
    for other numbers of dimensions, or where most places would be empty.
    """
    if len(table.dimensions) == 3:
        slices = [_cross_tables(report, part) for part in _slices(table)]
        return None if None in slices else "\n".join(part for part in slices if part)
    if len(table.dimensions) != 2:
        return None
    places = {tuple(map(_code, cell.codes)): cell for cell in table.cells}
    first, second = (list(dict.fromkeys(codes[k] for codes in places)) for k in range(2))
    if 2 * len(places) < len(first) * len(second):
        return None
    across = len(first) < len(second)  # the longer list goes down the page
    down, over = (second, first) if across else (first, second)
    names = (table.dimensions[1], table.dimensions[0]) if across else table.dimensions
    parts = []
    for number, measure in enumerate(report.measures):
        rows = []
        for row in down:
            cells = (places.get((column, row) if across else (row, column)) for column in over)
            rows.append([th(row), *(_cell(report, cell, number) for cell in cells)])
        named = f"{measure}, {table.level}" if table.level != " x ".join(table.dimensions) else measure
        parts.append(grid(named, [f"{names[0]} \\ {names[1]}", *over], rows))
    return "\n".join(parts)


def _slices(table: Table) -> Iterator[Table]:
    """The tables of two dimensions that one of three is made of."""
    of = [list(dict.fromkeys(cell.codes[place] for cell in table.cells)) for place in range(3)]
    place = min(range(3), key=lambda one: len(of[one]))
    others = [one for one in range(3) if one != place]
    for code in of[place]:
        cells = tuple(
            replace(cell, codes=tuple(cell.codes[one] for one in others))
            for cell in table.cells
            if cell.codes[place] == code
        )
        dimensions = tuple(table.dimensions[one] for one in others)
        yield Table(f"{table.dimensions[place]} {_code(code)}", dimensions, cells, table.shares)


def _list(report: Report, table: Table) -> str:
    head = [*table.dimensions, *report.measures]
    rows = [
        [*(th(_code(code)) for code in cell.codes), *(_cell(report, cell, k) for k in range(len(report.measures)))]
        for cell in table.cells
    ]
    return grid(None, head, rows)


def _cell(report: Report, cell: Cell | None, number: int) -> str:
    if cell is None:
        return '<td class="none">·</td>'
    letter = _LETTERS.get(cell.status)
    hidden = cell.status in ("primary", "secondary")
    words = [_WORDS[cell.status]] if letter else []
    if hidden:
        words += [cell.why] if cell.why else []
        words += [known for known in cell.known[number : number + 1] if known]
    text = letter if hidden and not report.custodian else escape(written(cell.numbers[number]))
    mark = f"<sup>{letter}</sup>" if letter and not (hidden and not report.custodian) else ""
    title = f' title="{escape("; ".join(words))}"' if words else ""
    return f'<td class="{cell.status}"{title}>{text}{mark}</td>'


def _code(code: object) -> str:
    return "NULL" if code is None else str(code)
