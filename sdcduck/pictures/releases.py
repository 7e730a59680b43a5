"""A release beside its original: how near its records come, and which tables of two columns it kept."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from sdcduck.errors import SDCError
from sdcduck.functions.install import install
from sdcduck.pictures.svg import BLUE, GREY, ORANGE, Panel, Picture, Scale, even_scale, picture, short_text

_MOST_COLUMNS = 30
_FINE, _BINS, _SHOWN = 1000, 24, 0.995


def closest_records(
    con: duckdb.DuckDBPyConnection,
    original: str,
    release: str,
    holdout: str | None = None,
    columns: Sequence[str] | None = None,
) -> Picture:
    """The histogram of the distances to the closest original record (`sdc_dcr_histogram`).

    Grey: the records of the holdout, which is what is to be expected. A release that stands to the left of it has
    records that are closer to the original ones than other people's are.

    Args:
        con: a connection; the SQL functions are installed on it if they are not yet.
        original, release, holdout: a table or view, or a query in parentheses.
        columns: what is compared; None: all columns that they have in common.

    Raises:
        duckdb.Error: whatever is wrong with the arguments.
    """
    install(con)
    rows = con.execute(
        "SELECT low, high, coalesce(share, 0), coalesce(holdout_share, 0) "
        f'FROM sdc_dcr_histogram($1, $2, $3, "columns" := $4::VARCHAR[], bins := {_FINE}) ORDER BY bin',
        [original, release, holdout, list(columns or ())],
    ).fetchall()
    zeros, bins = rows[0], _grouped(rows[1:])
    shares = [share for row in (zeros, *bins) for share in row[2:]]
    width, last = bins[0][1] - bins[0][0], bins[-1][1]
    x = even_scale([0.0, last])
    ticks = tuple(tick for tick in x.ticks if tick <= last)
    panel = Panel(
        "Distance to the closest original record", Scale(-1.5 * width, last, ticks), even_scale(shares),
        "Gower distance, without the largest in 200; left of 0: exactly 0", "share of records", width=480, height=220,
    )  # fmt: skip
    placed = [(-1.5 * width, -0.5 * width, *zeros[2:]), *bins]
    if holdout is not None:
        for low, high, _, share in placed:
            panel.box((low, 0), (high, share), GREY, f"holdout: {share:.4f}")
        panel.legend.append(("box", GREY, "holdout"))
    for low, high, share, _ in placed:
        panel.line([(low, 0), (low, share), (high, share), (high, 0)], BLUE, dots=False)
    panel.legend.append(("line", BLUE, "release"))
    described = f"{zeros[2]:.1%} of the released records equal an original one" + (
        "." if holdout is None else f", and {zeros[3]:.1%} of the holdout."
    )
    return picture("How near the records of a release are", described, [panel], columns=1)


def _grouped(rows: Sequence[tuple[float, float, float, float]]) -> list[tuple[float, float, float, float]]:
    """Some two dozen of bins that show all but the largest distances of the release and of the holdout."""
    most, seen = 0, [0.0, 0.0]
    whole = [sum(row[place] for row in rows) for place in (2, 3)]
    for place, row in enumerate(rows):
        if any(one < _SHOWN * total for one, total in zip(seen, whole, strict=True)):
            most = place + 1
        seen = [one + share for one, share in zip(seen, row[2:], strict=True)]
    step = max(1, -(-most // _BINS))
    groups = [rows[start : start + step] for start in range(0, max(most, 1), step)]
    return [(group[0][0], group[-1][1], sum(row[2] for row in group), sum(row[3] for row in group)) for group in groups]


def accuracy_map(
    con: duckdb.DuckDBPyConnection, original: str, release: str, columns: Sequence[str] | None = None
) -> Picture:
    """The accuracy of each table of two columns (`sdc_accuracy_margins`): 1 is what the original has.

    Orange frames a table that is farther from the original than a sample of this size would be.

    Args:
        con: a connection; the SQL functions are installed on it if they are not yet.
        original, release: a table or view, or a query in parentheses.
        columns: what is shown; None: all columns that both have.

    Raises:
        SDCError: too many columns.
        duckdb.Error: whatever else is wrong with the arguments, such as a single column.
    """
    install(con)
    rows = con.execute(
        "SELECT column_a, column_b, accuracy, tvd > 2 * tvd_expected "
        'FROM sdc_accuracy_margins($1, $2, "columns" := $3::VARCHAR[], ways := 2)',
        [original, release, list(columns or ())],
    ).fetchall()
    names = list(dict.fromkeys(name for row in rows for name in row[:2]))
    if len(names) > _MOST_COLUMNS:
        raise SDCError(f"{len(names)} columns are too many for one picture: name at most {_MOST_COLUMNS} in 'columns'")
    found = {frozenset((one, other)): (accuracy, far) for one, other, accuracy, far in rows}
    size = max(24, min(56, 420 // len(names)))
    side = size * len(names)
    panel = Panel("Accuracy of tables of two columns", None, None, width=side, height=side)
    step = 1 / len(names)
    for row, one in enumerate(names):
        panel.side_text(1 - (row + 0.5) * step, short_text(one))
        panel.foot_text((row + 0.5) * step, short_text(one))
        for across, other in enumerate(names[:row]):
            accuracy, far = found[frozenset((one, other))]
            corner, inset = (across * step, 1 - row * step), step * 0.07
            if far:
                panel.box(corner, (corner[0] + step, corner[1] - step), ORANGE)
            panel.box(
                (corner[0] + inset, corner[1] - inset),
                (corner[0] + step - inset, corner[1] - step + inset),
                _shade(accuracy),
                f"{one} with {other}: {accuracy:.3f}",
            )
            if size >= 34:
                panel.text(
                    corner[0] + step / 2, corner[1] - step / 2, f"{accuracy:.2f}",
                    colour="#ffffff" if accuracy > 0.8 else "#1f2a2c", shift=(-11, 4),
                )  # fmt: skip
    worst = min(rows, key=lambda row: row[2])
    described = f"Least accurate: {worst[0]} with {worst[1]}, {worst[2]:.3f}."
    return picture("Original and release: tables of two columns", described, [panel], columns=1, left=84, foot=24)


def _shade(accuracy: float) -> str:
    """White for one half and less, blue for 1."""
    share = min(1.0, max(0.0, 2 * accuracy - 1))
    return "#" + "".join(f"{round(245 + (end - 245) * share):02x}" for end in (0, 82, 140))
