"""What the reports are made of: one file, no scripts, nothing loaded from elsewhere. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape

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
@media print { td { -webkit-print-color-adjust: exact; print-color-adjust: exact; } }
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
