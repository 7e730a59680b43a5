"""The report of a release as HTML: every measure that applies, with pictures."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import duckdb

from sdcduck.errors import SDCError
from sdcduck.quoting import literal
from sdcduck.report.html import document, grid, heading, rounded, said, td, th, written, written_by
from sdcduck.report.verdicts import Row, of_release, verdicts
from sdcduck.udfs.source import Source, shared_columns, source

if TYPE_CHECKING:
    from sdcduck.pictures import Picture

_SECTIONS = {
    "rules": "The rules of the house",
    "re-identification": "Who could be found",
    "copies": "How near the records are",
    "attributes": "What the keys tell",
    "attacks": "Attacks that were tried",
    "records": "What has happened to the records",
    "utility": "What was lost",
}
_MOST_COLUMNS = 30
_WORST = 12


def assess(
    con: duckdb.DuckDBPyConnection,
    original: str,
    release: str,
    path: str | Path,
    *,
    holdout: str | None = None,
    keys: Sequence[str] = (),
    targets: Sequence[str] = (),
    columns: Sequence[str] = (),
    seed: int | None = None,
    id: str | None = None,
    rules: str | None = None,
    title: str | None = None,
    date: datetime.date | None = None,
) -> Path:
    """Write what is known of a release as an HTML page that needs no other file; returns its path.

    The page says first, in a sentence and a colour each, whether somebody could be found, whether something could be
    learned, and whether the release is still useful. It has the rows of ``sdc_assess`` and pictures: the release on a
    map of risk and utility, distances to the closest original record, accuracy of tables of two columns, each column,
    every two columns, the cells that differ most. It tells of the original records: it is for the office, not for the
    public.

    Args:
        con: a connection; the SQL functions are installed on it if they are not yet.
        original, release: a table or view, or a query in parentheses.
        path: the file, which is replaced if it exists.
        holdout: as ``original``: records of the same population that the release was not made from.
        keys: what somebody may know of a person.
        targets: what nobody should learn.
        columns: what is compared; none: all columns that they have in common.
        seed: of what is random in the measures.
        id: the column that tells which records belong together, if the release has the records of the originals.
        rules: the name of a rule set, which the release is held against.
        title: of the page.
        date: that stands in the page; None: today's.

    Raises:
        duckdb.Error: whatever is wrong with the arguments; nothing is written then.
    """
    # With all methods, which a gateway does without.
    from sdcduck import pictures
    from sdcduck.functions.install import install

    install(con)
    rows = _rows(con, [original, release, holdout, list(columns), list(keys), list(targets), seed, id, rules])
    tables = {"original": source(con, original, "original"), "release": source(con, release, "release")}
    compared = shared_columns(tables, columns, leaving_out=[id] if id else [])
    of_all = tables if holdout is None else {**tables, "holdout": source(con, holdout, "holdout")}
    beside = f"{release} beside {original}{'' if holdout is None else f', with the holdout {holdout}'}."
    asked = {"keys": bool(keys), "sensitive": bool(targets), "holdout": holdout is not None, "masked": id is not None}
    parts = [
        heading(_facts(con, of_all, rules, date)),
        verdicts(of_release([Row(*row) for row in rows], **asked)),
        f'<p class="note">{escape(beside)} It is made from the original records: it is for the office, not for the '
        "public.</p>",
        _warnings(rows),
        "<h2>Risk and utility</h2>",
        _picture(lambda: pictures.risk_utility(
            con, _map(rows), method="who", risk="risk", loss="1 - accuracy", panel="measure")),
    ]  # fmt: skip
    near = compared if id else columns
    parts += _sections(rows, lambda: pictures.closest_records(con, original, release, holdout, near))
    parts.append("<h2>Tables and columns</h2>")
    parts.append(_worst_cells(con, original, release, compared))
    shown = compared[:_MOST_COLUMNS]
    parts += map(
        _picture,
        (
            lambda: pictures.accuracy_map(con, original, release, shown),
            lambda: pictures.marginals(con, original, release, shown),
            lambda: pictures.associations(con, original, release, shown),
        ),
    )
    file = Path(path)
    file.write_text(document(title or "Risk and utility of a release", parts), encoding="utf-8")
    return file


def _rows(con: duckdb.DuckDBPyConnection, given: list[object]) -> list[tuple[Any, ...]]:
    """What ``sdc_assess`` answers."""
    return con.execute(
        "SELECT section, measure, about, value, low, high, baseline, baseline_is, warning, function "
        'FROM sdc_assess($1, $2, $3, keys := $5, sensitive := $6, "columns" := $4, seed := $7, id := $8, '
        "rules := $9)",
        given,
    ).fetchall()


def _sections(rows: Sequence[tuple[Any, ...]], closest: Callable[[], Picture]) -> Iterator[str]:
    """The figures, section by section; copies with a picture of the closest records."""
    for section, of_section in groupby(rows, key=lambda row: row[0]):
        yield f"<h2>{escape(_SECTIONS.get(section, section))}</h2>"
        yield _measures([row[1:] for row in of_section])
        if section == "copies":
            yield _picture(closest)


def _facts(
    con: duckdb.DuckDBPyConnection, tables: dict[str, Source], rules: str | None, day: datetime.date | None
) -> list[tuple[str, str]]:
    """The date, the versions, the rules and how many records were looked at."""
    counted = ", ".join(f"(SELECT count(*) FROM {table.sql})" for table in tables.values())
    numbers = con.execute(f"SELECT {counted}").fetchall()[0]
    records = ", ".join(f"{number:,} ({name})" for name, number in zip(tables, numbers, strict=True))
    return [*written_by(day), ("Rules", rules or "none were given"), ("Records", records)]


def _warnings(rows: Sequence[tuple[object, ...]]) -> str:
    """What every reader should know first."""
    said = [(str(row[1]), str(row[8])) for row in rows if row[8] is not None]
    if not said:
        return ""
    items = "\n".join(f"<li>{escape(measure)}: {escape(warning)}</li>" for measure, warning in said)
    return f"<h2>Read this first</h2>\n<ul>\n{items}\n</ul>"


_ACCURACY = "accuracy of tables of {}, mean"
_RISKS = (
    "share of records that equal an original",
    "told rightly where all records with the keys agree (TCAP)",
    "inference, success",
)


def _map(rows: Sequence[tuple[object, ...]]) -> str:
    """A query for the points of a map: the release, and what it is held against.

    What a risk is without the release, by guessing or in other records of the population, stands where the same is
    lost, unless it is known how accurate those other records are.
    """
    known: dict[str, list[tuple[float, float | None, object]]] = {}
    for _, measure, _, value, _, _, baseline, baseline_is, *_ in rows:
        if isinstance(value, float):
            known.setdefault(str(measure), []).append((value, cast("float | None", baseline), baseline_is))
    accuracy = known.get(_ACCURACY.format("2 columns")) or known.get(_ACCURACY.format("1 column")) or []
    points = []
    for kept, other, _ in accuracy[:1]:
        for measure in _RISKS:
            for risk, without, which in known.get(measure, []):
                lost, of_others = 1 - kept, which == "of the holdout"
                if measure == _RISKS[0]:
                    points.append((measure, "the originals", 0.0, 1.0))
                points.append((measure, "the release", lost, risk))
                if without is not None:
                    apart = 1 - other if of_others and other is not None else lost
                    points.append((measure, "other people" if of_others else "guessing", apart, without))
    listed = ", ".join(f"({literal(one)}, {literal(who)}, {x!r}::DOUBLE, {y!r}::DOUBLE)" for one, who, x, y in points)
    values = f"(VALUES {listed})" if points else "(SELECT NULL, NULL, NULL, NULL)"
    return f'(FROM {values} points(measure, who, "1 - accuracy", risk))'


def _measures(rows: Sequence[tuple[object, ...]]) -> str:
    cells = [
        [
            th(str(measure)),
            td("" if about is None else str(about)),
            td(_short(value)),
            td("" if low is None else f"{_short(low)} to {_short(high)}"),
            td("" if baseline is None else f"{_short(baseline)} {baseline_is}"),
            td(str(function)),
        ]
        for measure, about, value, low, high, baseline, baseline_is, _, function in rows
    ]
    return grid(None, ["measure", "of", "value", "interval", "baseline", "function"], cells)


def _short(value: object) -> str:
    return rounded(value) if isinstance(value, float) else written(value)


def _worst_cells(con: duckdb.DuckDBPyConnection, original: str, release: str, columns: Sequence[str]) -> str:
    rows = con.execute(
        "SELECT concat_ws(' x ', column_a, column_b), concat_ws(' x ', bucket_a, bucket_b), original, synthetic, "
        'difference FROM sdc_accuracy_cells($1, $2, "columns" := $3, ways := $4, worst := $5)',
        [original, release, list(columns), min(2, len(columns)), _WORST],
    ).fetchall()
    if not rows:
        return '<p class="note">No cell of these tables differs.</p>'
    cells = [[th(str(row[0])), *(td(_short(value)) for value in row[1:])] for row in rows]
    return grid("Cells that differ most", ["table", "cell", "original", "release", "difference of shares"], cells)


def _picture(draw: Callable[[], Picture]) -> str:
    """A picture, or why there is none."""
    try:
        return f'<div class="scroll">{draw().svg}</div>'
    except (SDCError, duckdb.Error) as problem:
        why = said(problem) or "these columns cannot be drawn"
        return f'<p class="note">No picture: {escape(why)}</p>'
