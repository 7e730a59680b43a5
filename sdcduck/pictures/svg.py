"""Pictures as SVG: panels with axes, side by side, in a file that needs no other.

Numbers become places by a `Scale`; what is drawn is text, so that the same numbers give the same file everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

BLUE, ORANGE, GREEN, PINK, SKY, YELLOW = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#B79F00"
COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, YELLOW, "#000000", "#999999")
"""Apart for colour-blind readers too (Okabe and Ito; the yellow is darker, for white paper)."""
INK, SOFT, GRID, GREY = "#1f2a2c", "#5c6a6e", "#e3e6e4", "#b9bfbc"
_FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True)
class Picture:
    """A picture, as text. A notebook shows it; `save` writes it.

    >>> picture = Picture('<svg xmlns="http://www.w3.org/2000/svg"/>')
    >>> picture.svg[:4]
    '<svg'
    """

    svg: str

    def save(self, path: str | Path) -> Path:
        """Write it as a file, which is replaced if it exists."""
        file = Path(path)
        file.write_text(self.svg, encoding="utf-8")
        return file

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True)
class Scale:
    """What numbers an axis shows.

    Attributes:
        low, high: its ends.
        ticks: numbers that are written at it.
        bend: 'even', 'log', or 'log1p': even near 0 and like a logarithm from there on.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    bend: str = "even"

    def share(self, number: float) -> float:
        """How far along the axis a number is, 0 to 1.

        >>> Scale(1, 100, (1, 10, 100), "log").share(10)
        0.5
        """
        low, high, at = (self._bent(value) for value in (self.low, self.high, number))
        return (at - low) / (high - low) if high > low else 0.5

    def _bent(self, number: float) -> float:
        if self.bend == "log":
            return math.log(number)
        return math.log1p(10 * number) if self.bend == "log1p" else number


def even_scale(numbers: Sequence[float], *, from_zero: bool = True) -> Scale:
    """A scale with about five round ticks that all the numbers fit on.

    >>> even_scale([0.07, 0.93]).ticks
    (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    """
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if not high > low:
        high = low + (abs(low) or 1.0)
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(float(f"{step * place:.12g}") for place in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], ticks)


def short(number: float) -> str:
    """A number as it is written at an axis.

    >>> short(0.25), short(20.0), short(1_500_000.0)
    ('0.25', '20', '1.5M')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= 10 * size or (size > 1e3 and abs(number) >= size):
            return f"{number / size:.3g}{letter}"
    return f"{number:.4g}"


@dataclass
class Panel:
    """One drawing with its axes.

    Attributes:
        title: above it.
        x, y: what its axes show; None: no axis, and the ends are 0 and 1.
        x_title, y_title: beside the axes.
        legend: colours and what they mean; a mark is 'line', 'dot' or 'box'.
    """

    title: str
    x: Scale | None
    y: Scale | None
    x_title: str = ""
    y_title: str = ""
    width: int = 300
    height: int = 210
    legend: list[tuple[str, str, str]] = field(default_factory=list)
    _marks: list[str] = field(default_factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a point is, from the upper left corner of the drawing."""
        across = self.x.share(x) if self.x else x
        up = self.y.share(y) if self.y else y
        return self.width * across, self.height * (1 - up)

    def line(self, points: Sequence[tuple[float, float]], colour: str, *, dots: bool = True) -> None:
        """A line through the points."""
        places = [self.at(*point) for point in points]
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        self._marks.append(f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if dots:
            self._marks += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>' for x, y in places]

    def dot(self, x: float, y: float, colour: str, what: str, *, size: float = 4, faint: bool = False) -> None:
        """A point; `what` shows while the pointer is on it."""
        across, down = self.at(x, y)
        fade = ' opacity="0.45"' if faint else ' stroke="#ffffff"'
        self._marks.append(
            f'<circle cx="{across:.1f}" cy="{down:.1f}" r="{size}" fill="{colour}"{fade}>'
            f"<title>{escape(what)}</title></circle>"
        )

    def text(self, x: float, y: float, words: str, *, colour: str = INK, shift: tuple[float, float] = (7, 4)) -> None:
        """Words beside a point; those that would leave the drawing on the right stand on its left."""
        across, down = self.at(x, y)
        left = across + shift[0] + 6.2 * len(words) > self.width + 8
        place, anchor = (across - shift[0], ' text-anchor="end"') if left else (across + shift[0], "")
        self._marks.append(
            f'<text x="{place:.1f}" y="{down + shift[1]:.1f}" font-size="11" fill="{colour}"{anchor}>'
            f"{escape(words)}</text>"
        )

    def box(self, corner: tuple[float, float], opposite: tuple[float, float], colour: str, what: str = "") -> None:
        """A rectangle between two corners."""
        (x0, y0), (x1, y1) = self.at(*corner), self.at(*opposite)
        title = f"<title>{escape(what)}</title>" if what else ""
        self._marks.append(
            f'<rect x="{min(x0, x1):.1f}" y="{min(y0, y1):.1f}" width="{abs(x1 - x0):.1f}" '
            f'height="{abs(y1 - y0):.1f}" fill="{colour}">{title}</rect>'
        )

    def side_text(self, y: float, words: str) -> None:
        """Words on the left of the drawing, at this height."""
        down = self.at(0, y)[1] + 4
        self._marks.append(f'<text x="-6" y="{down:.1f}" {_small("end")}>{escape(words)}</text>')

    def foot_text(self, x: float, words: str) -> None:
        """Words below the drawing, at this place, slanted."""
        across = self.at(x, 0)[0]
        self._marks.append(
            f'<text transform="translate({across:.1f} {self.height + 12}) rotate(-35)" {_small("end")}>'
            f"{escape(words)}</text>"
        )

    def drawn(self) -> str:
        """The panel as SVG, with its upper left corner at the origin."""
        parts = [f'<text x="0" y="-12" font-size="13" font-weight="600" fill="{INK}">{escape(self.title)}</text>']
        for tick in self.x.ticks if self.x else ():
            across = self.width * self.x.share(tick) if self.x else 0.0
            parts.append(f'<line x1="{across:.1f}" x2="{across:.1f}" y1="0" y2="{self.height}" stroke="{GRID}"/>')
            parts.append(f'<text x="{across:.1f}" y="{self.height + 15}" {_small("middle")}>{short(tick)}</text>')
        for tick in self.y.ticks if self.y else ():
            down = self.height * (1 - self.y.share(tick)) if self.y else 0.0
            parts.append(f'<line x1="0" x2="{self.width}" y1="{down:.1f}" y2="{down:.1f}" stroke="{GRID}"/>')
            parts.append(f'<text x="-6" y="{down + 4:.1f}" {_small("end")}>{short(tick)}</text>')
        if self.x_title:
            parts.append(
                f'<text x="{self.width / 2}" y="{self.height + 34}" {_small("middle")}>{escape(self.x_title)}</text>'
            )
        if self.y_title:
            parts.append(
                f'<text transform="translate(-40 {self.height / 2}) rotate(-90)" {_small("middle")}>'
                f"{escape(self.y_title)}</text>"
            )
        return "\n".join(parts + self._marks + self._legend())

    def _legend_places(self) -> list[tuple[float, int]]:
        """How far across each entry of the legend stands, and in which row."""
        places = []
        across, row = 0.0, 0
        for _, _, words in self.legend:
            wide = 34 + 6.2 * len(words)
            if across and across + wide > self.width + 20:
                across, row = 0.0, row + 1
            places.append((across, row))
            across += wide
        return places

    def _legend(self) -> list[str]:
        parts = []
        for (across, row), (mark, colour, words) in zip(self._legend_places(), self.legend, strict=True):
            down = self.height + 54 + 17 * row
            if mark == "line":
                parts.append(
                    f'<line x1="{across:.0f}" x2="{across + 14:.0f}" y1="{down - 4}" y2="{down - 4}" '
                    f'stroke="{colour}" stroke-width="2"/>'
                )
            elif mark == "dot":
                parts.append(f'<circle cx="{across + 7:.0f}" cy="{down - 4}" r="4" fill="{colour}"/>')
            else:
                parts.append(f'<rect x="{across + 2:.0f}" y="{down - 9}" width="10" height="10" fill="{colour}"/>')
            parts.append(f'<text x="{across + 18:.0f}" y="{down}" {_small("start")}>{escape(words)}</text>')
        return parts

    @property
    def room_below(self) -> int:
        """What axis and legend need below the drawing."""
        return 46 + 17 * max((row + 1 for _, row in self._legend_places()), default=0)


def short_text(text: str) -> str:
    """A text that has room beside a picture.

    >>> short_text("Kuopio"), short_text("Hämeenlinna")
    ('Kuopio', 'Hämeenlin…')
    """
    return text if len(text) <= 10 else text[:9] + "…"


def _small(anchor: str) -> str:
    return f'font-size="11" fill="{SOFT}" text-anchor="{anchor}"'


def picture(
    title: str, described: str, panels: Sequence[Panel], *, columns: int = 2, left: int = 62, foot: int = 0
) -> Picture:
    """Panels in rows, under a title.

    described: what can be seen, for those who cannot. left: room on the left of each panel. foot: room below each of
    them, beside that of axis and legend.
    """
    rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    body, down = [], 64.0
    wide = max((sum(panel.width + left + 24 for panel in row) for row in rows), default=0)
    wide = max(wide, *(left + 30 + 7 * len(panel.title) for panel in panels), 40 + 9 * len(title))
    for row in rows:
        across = 0.0
        for panel in row:
            body.append(f'<g transform="translate({across + left:.0f} {down:.0f})">\n{panel.drawn()}\n</g>')
            across += panel.width + left + 24
        down += max(panel.height + panel.room_below + foot for panel in row) + 26
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {down:.0f}" width="{wide}" height="{down:.0f}" '
        f'role="img" font-family="{_FONT}">\n<title>{escape(title)}</title>\n<desc>{escape(described)}</desc>\n'
        f'<rect width="{wide}" height="{down:.0f}" rx="10" fill="#ffffff"/>\n'
        f'<text x="20" y="27" font-size="15" font-weight="600" fill="{INK}">{escape(title)}</text>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )
