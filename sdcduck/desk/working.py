"""The page of a piece of work: how far it is, what stops it, and then its answer."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pyarrow.compute as pc
from starlette.responses import Response

from sdcduck.desk.alternatives import MIDPOINT, base_of, compared
from sdcduck.desk.asking import Asked, Posted
from sdcduck.desk.cross import MARKS, counts, cross, values_of, view_of
from sdcduck.desk.statements import Draft, in_words
from sdcduck.desk.thresholds import NUMBERS, sliders, tried
from sdcduck.desk.work import Work
from sdcduck.udfs.publication import read_publication

_HERE = {
    "pattern": "tables", "audit": "tables", "alternatives": "tables", "numbers": "tables", "published": "releases",
    "released": "releases", "levels": "data", "risk": "records", "file": "records", "masked": "records",
}  # fmt: skip
_AGAIN = {
    "/tables/new": ("pattern", "audit", "alternatives", "numbers", "published"),
    "/records": ("risk", "file", "masked"),
    "/hierarchy": ("levels",),
}
_MOST_ROWS = 500


def work_page(asked: Asked) -> Response:
    """How far it is, or its answer."""
    work = asked.register.worker.work(int(asked.place["number"]))
    asked.reading.asked.append(work.statement)
    here = _HERE.get(work.kind, "")
    again = next((path for path, kinds in _AGAIN.items() if work.kind in kinds), None)
    change = f"{again}?{work.form.encoded}" if again else None
    if work.state == "done":
        return _ANSWERS[work.kind](asked, work, {"title": work.title, "here": here, "work": work, "change": change})
    if work.state in ("waiting", "running"):
        before = asked.register.worker.first_before(work)
        return asked.page("working.html", title=work.title, here=here, work=work, before=before)
    status = HTTPStatus.BAD_REQUEST if work.state == "failed" else HTTPStatus.OK
    return asked.page("ended.html", title=work.title, here=here, work=work, change=change, status=status)


def stop_work(asked: Asked) -> Posted:
    """Stop it."""
    worker = asked.register.worker
    work = worker.work(int(asked.place["number"]))
    worker.stop(work)
    return Posted(f"/work/{work.number}")


def _pattern(asked: Asked, work: Work, page: dict[str, Any]) -> Response:
    draft, rules, cells = work.about["draft"], work.about["rules"], work.answer
    publication = read_publication(asked.reading.cursor, draft.query)
    form = asked.form
    at = {name: form.one(f"at.{place}") for place, name in enumerate(publication.dimensions)}
    view = view_of(publication, form.one("down"), form.one("across"), at, form.one("measure"))
    others = [
        (place, name, values_of(cells, name))
        for place, name in enumerate(publication.dimensions)
        if name not in (view.down, view.across)
    ]
    return asked.page(
        "pattern.html", **page, draft=draft, words=[*_levels(draft), *in_words(rules)], counts=counts(cells),
        view=view, others=others, table=cross(publication, cells, view), dimensions=publication.dimensions,
        nested=draft.nested, numbers={name: NUMBERS[name] for name in tried(work.form)},
        measures=[one.name for one in publication.measures], sliders=sliders(work.form),
    )  # fmt: skip


def _levels(draft: Draft) -> list[str]:
    """The hierarchies, in words."""
    return [f"{name} lies in {above}: there are totals of {above}." for name, above in draft.within.items()]


def _audit(asked: Asked, work: Work, page: dict[str, Any]) -> Response:
    assert work.answer is not None
    cells = work.answer
    exact = pc.sum(cells["exact"]).as_py() or 0
    primary = cells.filter(pc.equal(cells["status"], "primary"))
    narrow = primary.filter(pc.invert(primary["protected"])).num_rows
    return asked.page(
        "audit.html", **page, draft=work.about["draft"], measure=work.about["measure"], cells=cells.num_rows,
        unknown=cells["exact"].null_count, exact=exact, narrow=narrow, most=_MOST_ROWS,
        dimensions=work.about["draft"].dimensions, rows=cells.slice(0, _MOST_ROWS).to_pylist(),
    )  # fmt: skip


def _alternatives(asked: Asked, work: Work, page: dict[str, Any]) -> Response:
    assert work.answer is not None
    cells, draft = work.answer, work.about["draft"]
    return asked.page(
        "alternatives.html", **page, draft=draft, dimensions=draft.dimensions, cells=cells.num_rows, most=_MOST_ROWS,
        alternatives=compared(cells), rows=cells.slice(0, _MOST_ROWS).to_pylist(), marks=MARKS,
        base=base_of(work.about["rules"]), midpoint=MIDPOINT, keys=work.about["keys"], seed=work.about["seed"],
    )  # fmt: skip


def _published(asked: Asked, work: Work, page: dict[str, Any]) -> Response:
    assert work.answer is not None
    [row] = work.answer.to_pylist()
    return asked.page("published.html", **page, row=row, words=in_words(work.about["rules"]))


def _released(asked: Asked, work: Work, page: dict[str, Any]) -> Response:
    assert work.answer is not None
    [row] = work.answer.to_pylist()
    return asked.page("released.html", **page, row=row, name=work.about["draft"].name, how=work.about["alternative"])


def _risk(asked: Asked, work: Work, page: dict[str, Any]) -> Response:
    assert work.answer is not None
    [row] = work.answer.to_pylist()
    return asked.page("risk.html", **page, row=row, **work.about)


def _file(asked: Asked, work: Work, page: dict[str, Any]) -> Response:
    assert work.answer is not None
    [row] = work.answer.to_pylist()
    return asked.page("file.html", **page, row=row, **work.about)


def _masked(asked: Asked, work: Work, page: dict[str, Any]) -> Response:
    assert work.answer is not None
    rows = work.answer.to_pylist()
    return asked.page("masked.html", **page, rows=rows, row=rows[0], **work.about)


def _numbers(asked: Asked, work: Work, page: dict[str, Any]) -> Response:
    assert work.answer is not None
    return asked.page("numbers.html", **page, rows=work.answer.to_pylist(), **work.about)


def _hierarchy(asked: Asked, work: Work, page: dict[str, Any]) -> Response:
    assert work.answer is not None
    return asked.page("levels.html", **page, rows=work.answer.to_pylist(), **work.about)


def _rows(asked: Asked, work: Work, page: dict[str, Any]) -> Response:
    assert work.answer is not None
    rows = work.answer.slice(0, _MOST_ROWS).to_pylist()
    return asked.page("rows.html", **page, rows=rows, columns=work.answer.column_names, all=work.answer.num_rows)


_ANSWERS: dict[str, Callable[[Asked, Work, dict[str, Any]], Response]] = {
    "pattern": _pattern,
    "audit": _audit,
    "alternatives": _alternatives,
    "published": _published,
    "released": _released,
    "levels": _hierarchy,
    "numbers": _numbers,
    "risk": _risk,
    "file": _file,
    "masked": _masked,
    "rows": _rows,
}
