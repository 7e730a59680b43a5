"""Which data a question is about: the same words, of other data, are another question.

All of it is public: when the file was written, what public views show, and the time zone. A view may read a file beside
the register, so that it shows other rows where the register is as it was. In another zone a day begins at another time.
What knows the time may not stand beside records: it could be looked at here, charged for and drawn from at three times.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb

from sdcduck import catalog
from sdcduck.guard.passes.reading import read
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Release
from sdcduck.guard.running import Limited
from sdcduck.quoting import folded, identifier


class Version(NamedTuple):
    """What is known of the data of a question.

    Attributes:
        of_data: what is another one where the data may be others.
        knows_views: whether public views are part of it, which may show other rows at any moment.
    """

    of_data: list[object]
    knows_views: bool


def version_of(limited: Limited, register: Path, releases: Sequence[Release]) -> Version:
    """What is another one where the data of these totals may be others.

    Raises:
        Refused: a view knows the time, fails, or takes too long.
    """
    texts = {text for release in releases for text in (release.cells, release.totals) if text}

    def ask(cursor: duckdb.DuckDBPyConnection) -> list[object]:
        [(zone,)] = cursor.execute("SELECT current_setting('TimeZone')").fetchall()
        views = cursor.execute(
            "SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        # To read a text takes longer than to see that there is no view that it could name.
        named = {
            tuple(folded(str(item.get(part))) for part in ("catalog_name", "schema_name", "table_name"))
            for text in (texts if views else ())
            for item in read(cursor, text).items
            if item.get("type") == "BASE_TABLE"
        }
        found: list[object] = [zone]
        for view in views:
            if tuple(map(folded, view)) in named:
                if catalog.is_of_the_moment(cursor, view[-1]):
                    raise Refused(
                        "SDC081", f"'{view[-1]}', a view that knows the time, beside records: join it with answers"
                    )
                row = "md5_number_lower(to_json(_sdc_row)::VARCHAR)"
                digest = f"SELECT count(*) || ' ' || coalesce(sum({row}), 0) FROM {'.'.join(map(identifier, view))}"
                found += [*view, *cursor.execute(f"{digest} AS _sdc_row").fetchall()[0]]
        return found

    zone, *of_views = limited.ask(ask)
    return Version([*written(register), zone, *of_views], bool(of_views))


def written(register: Path) -> list[object]:
    """When a file was written, and how large it is: its times are no secret, and nothing is looked at in it."""
    found: list[object] = []
    for path in (register, register.with_name(f"{register.name}.wal")):
        try:
            of = path.stat()
            found += [of.st_size, of.st_mtime_ns]
        except FileNotFoundError:
            found += [0, 0]
    return found
