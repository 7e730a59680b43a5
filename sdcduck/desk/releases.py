"""Releases: what was published, and how it leaves the house: as CSV, as a file for everybody, as a script."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC
from pathlib import PurePath
from typing import Any

from starlette.responses import Response

from sdcduck.desk.asking import Asked, Posted
from sdcduck.desk.statements import call
from sdcduck.desk.work import Work
from sdcduck.errors import SDCError, unknown
from sdcduck.quoting import identifier


def releases_page(asked: Asked) -> Response:
    """What was made to leave the house, who approved it, and what this session did."""
    history = [
        {"time": f"{one.when.astimezone(UTC):%H:%M:%S}", "title": one.title, "statement": one.statement}
        for one in asked.register.worker.written
    ]
    return asked.page(
        "releases.html", title="Releases", here="releases", releases=_listed(asked), history=history,
        stem=asked.register.file.stem,
    )  # fmt: skip


def _listed(asked: Asked) -> list[dict[str, Any]]:
    """Each release once, with its approvals, and what it was made of."""
    rows = asked.reading.rows(call("sdc_releases"))
    queries = {row["name"]: row["query"] for row in asked.reading.rows(call("sdc_publications"))}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        one = found.setdefault((row["name"], row["kind"]), {**row, "approvals": []})
        if row["approved_by"] is not None:
            one["approvals"].append(row)
    for (name, kind), one in found.items():
        one["query"] = queries.get(name) if kind == "publication" else None
    return list(found.values())


def _known(asked: Asked, name: str, kinds: Sequence[str] = ("publication", "table")) -> str:
    """The kind of the release of that name."""
    known = {(row["name"], row["kind"]) for row in asked.reading.rows(call("sdc_releases")) if row["kind"] in kinds}
    found = [str(kind) for one, kind in known if one == name]
    if not found:
        raise unknown("publication" if len(kinds) == 1 else "release", name, sorted(one for one, _ in known))
    if len(found) > 1:
        raise SDCError(f"there is a publication and a table '{name}': rename the table")
    return found[0]


def cells_csv(asked: Asked) -> Response:
    """The cells of a publication in the terms of SDMX: one line a cell and measure, suppressed ones empty;
    or a table as it is."""
    name = asked.form.one("name")
    kind = _known(asked, name)
    rows = asked.reading.rows(call("sdc_sdmx", name) if kind == "publication" else f"FROM {identifier(name)}")
    text = io.StringIO()
    writer = csv.writer(text)
    if rows:
        writer.writerow(list(rows[0]))
    writer.writerows([list(row.values()) for row in rows])
    return _file(text.getvalue(), f"{name}.csv", "text/csv")


def approve(asked: Asked) -> Posted:
    """Write down who approved the numbers that were shown."""
    form = asked.form
    name, who = form.one("name"), form.one("approved_by")
    _known(asked, name)
    statement = call(
        "sdc_approve", name, who, note=form.one("note") or None, fingerprint=form.one("fingerprint")
    )  # fmt: skip
    return asked.begin(Work("rows", f"{who} approves {name}", statement, form, writes=True))


def script(asked: Asked) -> Response:
    """What this session did, as SQL."""
    return _file(asked.register.script(empty=asked.form.has("empty")), "script.sql", "application/sql")


def _file(text: str, name: str, media_type: str) -> Response:
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in name)
    return Response(text, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{plain}"'})


def export(asked: Asked) -> Posted:
    """Write a publication into a DuckDB file for everybody, beside the register."""
    form = asked.form
    name, file = form.one("name"), form.one("file")
    _known(asked, name, ("publication",))
    if not file or PurePath(file).name != file or "\\" in file:
        raise SDCError("give the name of a file, without a folder: it is written beside the register")
    path = asked.register.file.resolve().with_name(file)
    named: dict[str, Any] = {"force": True} if form.has("force") else {}
    statement = call("sdc_export", name, str(path), **named)
    return asked.begin(Work("rows", f"Export {name} to {path}", statement, form))


def remove(asked: Asked) -> Posted:
    """Remove a release; what was approved stays written down."""
    name = asked.form.one("name")
    kind = _known(asked, name)
    drop = call("sdc_drop_publication", name) if kind == "publication" else f"DROP TABLE {identifier(name)}"
    return asked.begin(Work("rows", f"Remove {name}", drop, asked.form, writes=True))
