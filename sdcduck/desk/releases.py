"""Releases: what was published, and how it leaves the house: as CSV, as a file for everybody, as a script."""

from __future__ import annotations

import csv
import io
from datetime import UTC
from pathlib import PurePath
from typing import Any

from starlette.responses import Response

from sdcduck.desk.asking import Asked, Posted
from sdcduck.desk.statements import call
from sdcduck.desk.work import Work
from sdcduck.errors import SDCError, unknown


def releases_page(asked: Asked) -> Response:
    """The publications of the database, and what this session did."""
    history = [
        {"time": f"{one.when.astimezone(UTC):%H:%M:%S}", "title": one.title, "statement": one.statement}
        for one in asked.register.worker.written
    ]
    known = asked.reading.rows(call("sdc_publications"))
    return asked.page(
        "releases.html", title="Releases", here="releases", publications=known, history=history,
        stem=asked.register.file.stem,
    )  # fmt: skip


def _published(asked: Asked, name: str) -> str:
    """The name of a publication that has been published."""
    known = [row["name"] for row in asked.reading.rows(call("sdc_publications")) if row["published"]]
    if name not in known:
        raise unknown("publication", name, known)
    return name


def cells_csv(asked: Asked) -> Response:
    """The cells of a publication in the terms of SDMX: one line a cell and measure, suppressed ones empty."""
    name = _published(asked, asked.form.one("name"))
    rows = asked.reading.rows(call("sdc_sdmx", name))
    text = io.StringIO()
    writer = csv.writer(text)
    if rows:
        writer.writerow(list(rows[0]))
    writer.writerows([list(row.values()) for row in rows])
    return _file(text.getvalue(), f"{name}.csv", "text/csv")


def script(asked: Asked) -> Response:
    """What this session did, as SQL."""
    return _file(asked.register.script(empty=asked.form.has("empty")), "script.sql", "application/sql")


def _file(text: str, name: str, media_type: str) -> Response:
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in name)
    return Response(text, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{plain}"'})


def export(asked: Asked) -> Posted:
    """Write a publication into a DuckDB file for everybody, beside the register."""
    form = asked.form
    name, file = _published(asked, form.one("name")), form.one("file")
    if not file or PurePath(file).name != file or "\\" in file:
        raise SDCError("give the name of a file, without a folder: it is written beside the register")
    path = asked.register.file.resolve().with_name(file)
    named: dict[str, Any] = {"force": True} if form.has("force") else {}
    statement = call("sdc_export", name, str(path), **named)
    return asked.begin(Work("rows", f"Export {name} to {path}", statement, form))


def remove(asked: Asked) -> Posted:
    """Remove a publication."""
    name = asked.form.one("name")
    return asked.begin(Work("rows", f"Remove {name}", call("sdc_drop_publication", name), asked.form, writes=True))
