"""Measures as pictures: curves of tau before a draw, and methods on a map of risk and utility."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from sdcduck.errors import SDCError, unknown
from sdcduck.functions.install import install
from sdcduck.pictures.svg import COLOURS, SOFT, Panel, Picture, Scale, even_scale, picture, short
from sdcduck.udfs.source import source as resolved

_MOST_LINES = len(COLOURS)
_TAUS = {
    "tau1": "tau1: a synthetic count is k",
    "tau2": "tau2: an original count is k",
    "tau3": "tau3: an original k stays k",
    "tau4": "tau4: what looks like k is k",
}


def tau_curves(
    con: duckdb.DuckDBPyConnection, source: str, *, over: str = "sigma", measures: Sequence[str] = ("tau3", "tau4")
) -> Picture:
    """Risk and utility of a synthesis before it is drawn: a panel for each measure, a line for each setting.

    Args:
        con: a connection; the SQL functions are installed on it if they are not yet.
        source: rows of ``sdc_tau``, such as ``(FROM sdc_tau('people', dimensions := ['region'], sigma := [0, 1]))``.
        over: what runs along the lines, ``sigma`` or ``m``. Each combination of the others is a line.
        measures: ``tau1`` to ``tau4``.

    Raises:
        SDCError: the source has no such columns, or would make more than eight lines.
    """
    settings = ("sigma", "m", "k", "d", "alpha", "nu", "model")
    if over not in ("sigma", "m"):
        raise unknown("setting", over, ("sigma", "m"), where="argument 'over'")
    for measure in measures:
        if measure not in _TAUS:
            raise unknown("measure", measure, _TAUS)
    rows = _rows(con, source, (*settings, *measures))
    if not rows:
        raise SDCError("there is nothing to draw: argument 'source' has no rows")
    others = [name for name in settings if name != over and len({row[name] for row in rows}) > 1]
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        name = ", ".join(f"{other} = {_said(row[other])}" for other in others) or "as given"
        lines.setdefault(name, []).append(row)
    if len(lines) > _MOST_LINES:
        raise SDCError(f"{len(lines)} lines are too many: ask for at most {_MOST_LINES} combinations of {others}")
    places = sorted({float(row[over]) for row in rows})
    bend = "log" if over == "m" else "log1p"
    x = Scale(places[0], places[-1], _apart(places, bend), bend)
    panels = []
    for measure in measures:
        panel = Panel(
            _TAUS[measure], x, Scale(0, 1, (0, 0.2, 0.4, 0.6, 0.8, 1)), over, "probability", width=340, height=240
        )
        for colour, (name, given) in zip(COLOURS, lines.items(), strict=False):
            points = sorted((float(row[over]), row[measure]) for row in given if row[measure] is not None)
            panel.line(points, colour)
            if len(lines) > 1:
                panel.legend.append(("line", colour, name))
        panels.append(panel)
    title = "Before a draw" + (f": {', '.join(_constant(rows[0], settings, over, others))}")
    described = f"Lines of {', '.join(measures)} over {over}, for {'; '.join(lines)}."
    return picture(title, described, panels)


def _constant(row: dict[str, Any], settings: Sequence[str], over: str, others: Sequence[str]) -> list[str]:
    """The settings that all lines share, in words."""
    same = [name for name in settings if name not in (over, *others) and row[name] is not None]
    return [row[name] if name == "model" else f"{name} = {_said(row[name])}" for name in reversed(same)]


def _said(value: object) -> str:
    return short(float(value)) if isinstance(value, int | float) else str(value)


def _apart(places: Sequence[float], bend: str) -> tuple[float, ...]:
    """Those of the places that can be written below an axis without touching."""
    scale = Scale(places[0], places[-1], (), bend)
    found: list[float] = []
    for place in places:
        if not found or scale.share(place) - scale.share(found[-1]) > 0.075:
            found.append(place)
    return tuple(found)


def risk_utility(
    con: duckdb.DuckDBPyConnection, source: str, *, method: str = "method", risk: str = "R", loss: str = "U",
    panel: str | None = None, title: str = "Risk and utility",
) -> Picture:  # fmt: skip
    """Methods on a map: what each loses (to the right) and what it gives away (upwards). Best is below on the left.

    A method with several rows, such as one for each variable, is a faint dot for each and a large one at their means.

    Args:
        con: a connection; the SQL functions are installed on it if they are not yet.
        source: rows with a method, a risk and a loss. Rows where one of these is NULL are left out.
        method, risk, loss: columns. The last two may be any measures, such as those of ``sdc_table_risk_utility``.
        panel: a column that has a map of its own for each value, such as the level of the geography; or None.
        title: what stands above.

    Raises:
        SDCError: the source has no such columns, or more than eight methods.
    """
    wanted = (method, risk, loss, *(() if panel is None else (panel,)))
    rows = [row for row in _rows(con, source, wanted) if row[risk] is not None and row[loss] is not None]
    methods = list(dict.fromkeys(str(row[method]) for row in rows))
    if not rows:
        raise SDCError("there is nothing to draw: argument 'source' has no rows with a risk and a loss")
    if len(methods) > _MOST_LINES:
        raise SDCError(f"{len(methods)} methods are too many for one map: choose at most {_MOST_LINES}")
    maps: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        maps.setdefault("" if panel is None else str(row[panel]), []).append(row)
    panels, said = [], []
    for name, given in maps.items():
        drawn = Panel(
            name, even_scale([float(row[loss]) for row in rows]), even_scale([float(row[risk]) for row in rows]),
            f"{loss}: what is lost", f"{risk}: what is given away", width=400, height=330,
        )  # fmt: skip
        centres = []
        for colour, which in zip(COLOURS, methods, strict=False):
            points = [(float(row[loss]), float(row[risk])) for row in given if str(row[method]) == which]
            if not points:
                continue
            if len(points) > 1:
                for point in points:
                    drawn.dot(*point, colour, f"{which}: {loss} = {point[0]:.3g}, {risk} = {point[1]:.3g}", faint=True)
            centres.append((which, colour, *(sum(numbers) / len(points) for numbers in zip(*points, strict=True))))
        for which, colour, across, up in centres:
            words = f"{which}: {loss} = {across:.3g}, {risk} = {up:.3g}"
            said.append(f"{name} {words}".strip())
            drawn.dot(across, up, colour, words, size=7)
            drawn.legend.append(("dot", colour, which))
        drawn.text(0, drawn.y.low if drawn.y else 0, "better", colour=SOFT, shift=(6, -6))
        panels.append(drawn)
    return picture(title, "; ".join(said) + ".", panels)


def _rows(con: duckdb.DuckDBPyConnection, source: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    """These columns of a source, row by row."""
    install(con)
    relation = resolved(con, source, "source")
    chosen = ", ".join(relation.column(name, "source") for name in columns)
    found = con.execute(f"SELECT {chosen} FROM {relation.sql}").fetchall()
    return [dict(zip(columns, row, strict=True)) for row in found]
