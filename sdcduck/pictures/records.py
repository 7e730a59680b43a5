"""Original and synthetic records beside each other: each column on its own, and every two together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from sdcduck.errors import SDCError
from sdcduck.functions.install import install
from sdcduck.pictures.svg import BLUE, GREY, ORANGE, Panel, Picture, Scale, even_scale, picture, short_text
from sdcduck.quoting import identifier
from sdcduck.udfs.source import NUMBERS, Source, is_number, shared_columns
from sdcduck.udfs.source import source as resolved

_MOST_COLUMNS = 30
_MOST_BARS = 12
_CLASSES = 10
_BINS = 24


@dataclass(frozen=True)
class _Pair:
    """Two sources, and the columns that are compared."""

    con: duckdb.DuckDBPyConnection
    original: Source
    synthetic: Source
    columns: tuple[str, ...]

    def is_number(self, name: str) -> bool:
        return is_number(self.original.type_of(name))

    def is_whole(self, name: str) -> bool:
        return self.original.type_of(name) in NUMBERS[:10]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.con.execute(sql).fetchall()


def _pair(con: duckdb.DuckDBPyConnection, original: str, synthetic: str, columns: Sequence[str] | None) -> _Pair:
    install(con)
    one, other = resolved(con, original, "original"), resolved(con, synthetic, "synthetic")
    named = shared_columns({"original": one, "synthetic": other}, columns)
    shared = tuple(name for name in one.columns if name in named)
    if len(shared) > _MOST_COLUMNS:
        raise SDCError(f"{len(shared)} columns are too many for one picture: name at most {_MOST_COLUMNS} in 'columns'")
    return _Pair(con, one, other, shared)


def marginals(
    con: duckdb.DuckDBPyConnection, original: str, synthetic: str, columns: Sequence[str] | None = None
) -> Picture:
    """Each column of the original and of the synthetic records: shares of categories, or of equal intervals of numbers.

    Of a number, the middle 98 % of the original are shown; what lies beyond counts in the first and the last interval.
    Of many categories, the most frequent ones of the original.

    Args:
        con: a connection; the SQL functions are installed on it if they are not yet.
        original, synthetic: a table or view, or a query in parentheses.
        columns: what is shown; None: all columns that both have.

    Raises:
        SDCError: no such columns, or too many of them.
    """
    pair = _pair(con, original, synthetic, columns)
    panels = [_histogram(pair, name) if pair.is_number(name) else _bars(pair, name) for name in pair.columns]
    panels[0].legend += [("box", GREY, "original"), ("line", BLUE, "synthetic")]
    described = f"Shares of the values of {', '.join(pair.columns)}, original beside synthetic."
    return picture("Original and synthetic: column by column", described, panels, columns=3, left=56, foot=24)


def _histogram(pair: _Pair, name: str) -> Panel:
    column = identifier(name)
    [(low, high, different)] = pair.rows(
        f"SELECT quantile_disc(v, 0.01), quantile_disc(v, 0.99), count(DISTINCT v) FROM "
        f"(SELECT {column}::DOUBLE AS v FROM {pair.original.sql}) WHERE isfinite(v)"
    )
    if low is None:
        return Panel(f"{name}: no numbers", Scale(0, 1, ()), Scale(0, 1, ()), width=240, height=150)
    bins = max(1, min(_BINS, different))
    width = (high - low) / bins or 1.0
    if pair.is_whole(name):  # else some intervals would have more whole numbers than others
        width = float(max(1, math.ceil((high - low + 1) / _BINS)))
        bins = math.ceil((high - low + 1) / width)
    shares = []
    for relation in (pair.original, pair.synthetic):
        found = dict(
            pair.rows(
                f"SELECT greatest(0, least({bins - 1}, floor((v - {low!r}) / {width!r})::BIGINT)) AS bin, "
                f"count(*) / sum(count(*)) OVER () FROM (SELECT {column}::DOUBLE AS v FROM {relation.sql}) "
                "WHERE isfinite(v) GROUP BY bin"
            )
        )
        shares.append([float(found.get(place, 0.0)) for place in range(bins)])
    x = even_scale([low, low + bins * width], from_zero=False)
    x = Scale(low, low + bins * width, tuple(tick for tick in x.ticks if low <= tick <= low + bins * width))
    panel = Panel(name, x, even_scale(shares[0] + shares[1]), width=240, height=150)
    edges = [low + place * width for place in range(bins + 1)]
    for place, share in enumerate(shares[0]):
        panel.box((edges[place], 0), (edges[place + 1], share), GREY, f"{share:.3f}")
    steps = [(edge, share) for place, share in enumerate(shares[1]) for edge in (edges[place], edges[place + 1])]
    panel.line([(edges[0], 0.0), *steps, (edges[-1], 0.0)], BLUE, dots=False)
    return panel


def _bars(pair: _Pair, name: str) -> Panel:
    column = identifier(name)
    rows = pair.rows(f"""
        WITH o AS (SELECT {column}::VARCHAR AS v, count(*) / sum(count(*)) OVER () AS share
                   FROM {pair.original.sql} GROUP BY v),
             s AS (SELECT {column}::VARCHAR AS v, count(*) / sum(count(*)) OVER () AS share
                   FROM {pair.synthetic.sql} GROUP BY v)
        SELECT coalesce(o.v, s.v), coalesce(o.share, 0), coalesce(s.share, 0)
        FROM o FULL JOIN s ON o.v IS NOT DISTINCT FROM s.v
        ORDER BY o.share DESC NULLS LAST, s.share DESC, 1
    """)
    shown = rows[:_MOST_BARS]
    title = name if len(shown) == len(rows) else f"{name}: {len(shown)} of {len(rows)}"
    panel = Panel(title, None, even_scale([share for row in shown for share in row[1:]]), width=240, height=150)
    wide = 1 / max(1, len(shown))
    for place, (value, original, synthetic) in enumerate(shown):
        left = place * wide
        panel.box((left + 0.1 * wide, 0), (left + 0.9 * wide, original), GREY, f"{value}: {original:.3f}")
        top = (left + 0.02 * wide, synthetic), (left + 0.98 * wide, synthetic)
        panel.line(top, BLUE, dots=False)
        panel.foot_text(left + wide / 2, short_text("NULL" if value is None else value))
    return panel


def associations(
    con: duckdb.DuckDBPyConnection, original: str, synthetic: str, columns: Sequence[str] | None = None
) -> Picture:
    """How closely every two columns go together: original records below the diagonal, synthetic ones above it.

    The measure is Cramér's V, 0 to 1, of categories and of ten classes of numbers, cut at the tenths of the original.
    What the synthesis lost is a field above the diagonal that is paler than its mirror image; orange frames a loss of
    more than 0.1.

    Args:
        con: a connection; the SQL functions are installed on it if they are not yet.
        original, synthetic: a table or view, or a query in parentheses.
        columns: what is shown; None: all columns that both have.

    Raises:
        SDCError: no such columns, or too many of them, or only one.
    """
    pair = _pair(con, original, synthetic, columns)
    names = pair.columns
    if len(names) < 2:
        raise SDCError("an association needs two columns")
    classes = [_classes(pair, name) for name in names]
    strengths = [_strengths(pair, relation, classes) for relation in (pair.original, pair.synthetic)]
    size = max(24, min(56, 420 // len(names)))
    panel = Panel(
        "Cramér's V: below original, above synthetic", None, None, width=size * len(names),
        height=size * len(names),
    )  # fmt: skip
    step = 1 / len(names)
    lost = []
    for row, one in enumerate(names):
        panel.side_text(1 - (row + 0.5) * step, short_text(one))
        panel.foot_text((row + 0.5) * step, short_text(one))
        for across, other in enumerate(names):
            place = min(row, across), max(row, across)
            if row == across:
                continue
            side = 0 if row > across else 1
            value, whole = strengths[side][place], strengths[0][place]
            corner = across * step, 1 - row * step
            opposite = corner[0] + step, corner[1] - step
            if side and whole is not None and value is not None and whole - value > 0.1:
                panel.box(corner, opposite, ORANGE)
                lost.append(f"{one} with {other}")
            inset = step * 0.07
            panel.box(
                (corner[0] + inset, corner[1] - inset), (opposite[0] - inset, opposite[1] + inset), _shade(value),
                f"{one} with {other}: {_written(whole)} original, {_written(strengths[1][place])} synthetic",
            )  # fmt: skip
            if size >= 34 and value is not None:
                panel.text(
                    corner[0] + step / 2, corner[1] - step / 2, f"{value:.2f}",
                    colour="#ffffff" if value > 0.55 else "#1f2a2c", shift=(-11, 4),
                )  # fmt: skip
    described = f"Associations of {', '.join(names)}. Lost by more than 0.1: {', '.join(lost) or 'none'}."
    return picture("Original and synthetic: every two columns", described, [panel], columns=1, left=84, foot=24)


def _written(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _shade(value: float | None) -> str:
    """White for 0, blue for 1."""
    if value is None:
        return "#f4f4f4"
    share = min(1.0, max(0.0, value))
    return "#" + "".join(f"{round(245 + (end - 245) * share):02x}" for end in (0, 82, 140))


def _classes(pair: _Pair, name: str) -> str:
    """The SQL of the class of a value."""
    column = identifier(name)
    if not pair.is_number(name):
        return f"coalesce({column}::VARCHAR, '')"
    shares = [place / _CLASSES for place in range(1, _CLASSES)]
    [(cuts,)] = pair.rows(
        f"SELECT quantile_disc(v, {shares}) FROM (SELECT {column}::DOUBLE AS v FROM {pair.original.sql}) "
        "WHERE isfinite(v)"
    )
    # The class of the smallest value must not be empty, where many have it.
    above = " + ".join(f"({column}::DOUBLE > {cut!r})::INTEGER" for cut in dict.fromkeys(cuts or ()))
    return f"CASE WHEN isfinite({column}::DOUBLE) THEN {above or '0'} ELSE -1 END"


def _strengths(pair: _Pair, relation: Source, classes: Sequence[str]) -> dict[tuple[int, int], float | None]:
    """Cramér's V of every two columns; None where one of them is constant."""
    shown = ", ".join(f"{sql} AS c{place}" for place, sql in enumerate(classes))
    pairs = [(one, other) for one in range(len(classes)) for other in range(one + 1, len(classes))]
    parts = [
        f"SELECT {place} AS place, sqrt(greatest(0, sum(n * n / (a * b)) - 1) / "
        f"nullif(least(count(DISTINCT c{one}), count(DISTINCT c{other})) - 1, 0)) AS v "
        f"FROM (SELECT *, sum(n) OVER (PARTITION BY c{one}) AS a, sum(n) OVER (PARTITION BY c{other}) AS b "
        f"FROM (SELECT c{one}, c{other}, count(*)::DOUBLE AS n FROM classed GROUP BY ALL))"
        for place, (one, other) in enumerate(pairs)
    ]
    rows = pair.rows(
        f"WITH classed AS MATERIALIZED (SELECT {shown} FROM {relation.sql}) "
        f"FROM ({' UNION ALL '.join(parts)}) ORDER BY place"
    )
    return {pairs[place]: value for place, value in rows}
