"""What the reports are made of: one file, no scripts, nothing loaded from elsewhere. All text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from html import escape
from importlib.metadata import version

import duckdb

from sdcduck.errors import SDCError

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1a1a1a; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
table { border-collapse: collapse; margin: .8rem 0 1.4rem; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { border: 1px solid #c8c8c8; padding: .25rem .6rem; text-align: right; }
th { background: #f4f4f4; text-align: left; }
thead th { text-align: right; } thead th:first-child { text-align: left; }
td.primary { background: #f6c7a4; font-weight: 600; } td.secondary { background: #bcdff3; }
td.forced { background: #fbf3b0; } td.none { color: #999; } td[title] { cursor: help; }
sup { font-weight: 600; margin-left: .25rem; } .scroll { overflow-x: auto; } .note { color: #555; }
ul.verdicts { list-style: none; padding: 0; } ul.verdicts li { padding: .5rem .8rem; margin: .4rem 0; }
li.good { background: #cfe8d5; border-left: .5rem solid #00684a; }
li.care { background: #fbf3b0; border-left: .5rem solid #a07d00; }
li.bad { background: #f6c7a4; border-left: .5rem solid #b34700; }
li.unknown { background: #e8e8e8; border-left: .5rem solid #666; }
dl.head { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; } dl.head dd { margin: 0; }
@media print { td, li { -webkit-print-color-adjust: exact; print-color-adjust: exact; } }
"""


def document(title: str, parts: Iterable[str]) -> str:
    """The whole file."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    body = "\n".join(parts)
    named = f"<body>\n<h1>{escape(title)}</h1>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n{named}\n{body}\n</body></html>\n'


def written(value: object) -> str:
    """A number, or whatever it is, as readers see it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.10g}"
    return f"{value:,}" if isinstance(value, int | Decimal) else str(value)


def rounded(value: float) -> str:
    """A measured number with four digits, and never with an exponent where it is large.

    >>> rounded(0.123456), rounded(1234567.8), rounded(12.0)
    ('0.1235', '1,234,568', '12')
    """
    return f"{value + 0.0:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value + 0.0:,.4g}"


def heading(facts: Sequence[tuple[str, str]]) -> str:
    """What the report is of: its date, the version that wrote it, and so on."""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts)
    return f'<dl class="head">{items}</dl>'


def written_by(day: date | None) -> list[tuple[str, str]]:
    """The date of a report, today's if none is given, and the versions that made it."""
    made = f"sdcduck {version('sdcduck')}, DuckDB {duckdb.__version__}"
    return [("Date", (day or date.today()).isoformat()), ("Made by", made)]


def said(problem: Exception) -> str | None:
    """What one of our functions says is wrong; None: it is the database that says something, to other readers.

    >>> said(Exception("Invalid Input Error: sdc_dcr: no columns")), said(Exception("INTERNAL Error: vector"))
    ('no columns', None)
    """
    first = (str(problem).splitlines() or [""])[0]
    if isinstance(problem, SDCError):
        return first
    found = _OF_OURS.fullmatch(first)
    return found[1] if found and "Error:" not in found[1] else None


_OF_OURS = re.compile(r"Invalid Input Error: (?:Invalid Input Error: )?sdc_\w+: (.+)")


def th(text: str) -> str:
    """A cell that names its row."""
    return f'<th scope="row">{escape(text)}</th>'


def td(text: str) -> str:
    """A cell."""
    return f"<td>{escape(text)}</td>"


def grid(caption: str | None, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table from column names and rows of finished cells."""
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<div class="scroll"><table>{named}<thead><tr>{columns}</tr></thead><tbody>\n{body}\n</tbody></table></div>'
