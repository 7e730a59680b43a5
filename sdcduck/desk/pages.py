"""The pages of the desk: each reads, shows, and says with which SQL.

What changes the database, or may last, is work (`sdcduck.desk.work`): a form starts it, and its page shows how far it
is and then the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import duckdb
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from sdcduck.desk.access import access_page, protect
from sdcduck.desk.asking import Asked, Desk, Posted
from sdcduck.desk.cross import shown
from sdcduck.desk.data import data_page, say_roles, table_page
from sdcduck.desk.forms import Form
from sdcduck.desk.hierarchy import hierarchy_page, use_hierarchy
from sdcduck.desk.publications import audit_tables, compare, new_tables, pattern, publish, release, tables_page
from sdcduck.desk.records import measure_risk, records_page, release_records
from sdcduck.desk.register import Register
from sdcduck.desk.releases import approve, cells_csv, export, releases_page, remove, script
from sdcduck.desk.thresholds import try_numbers
from sdcduck.desk.work import words_of
from sdcduck.desk.working import stop_work, work_page
from sdcduck.errors import SDCError

_HERE = Path(__file__).parent
_FILES = {"desk.css": "text/css", "desk.js": "text/javascript"}
_NOT_FOUND = "the desk has no such page"

_SHOWN: Mapping[str, Callable[[Asked], Response]] = {
    "/": data_page,
    "/table": table_page,
    "/hierarchy": hierarchy_page,
    "/tables": tables_page,
    "/tables/new": new_tables,
    "/work/{number:int}": work_page,
    "/records": records_page,
    "/access": access_page,
    "/releases": releases_page,
    "/releases/cells.csv": cells_csv,
    "/script.sql": script,
}
_SENT: Mapping[str, Callable[[Asked], Posted]] = {
    "/table/roles": say_roles,
    "/hierarchy/use": use_hierarchy,
    "/tables/pattern": pattern,
    "/tables/audit": audit_tables,
    "/tables/alternatives": compare,
    "/tables/numbers": try_numbers,
    "/tables/publish": publish,
    "/tables/release": release,
    "/work/{number:int}/stop": stop_work,
    "/records/risk": measure_risk,
    "/records/release": release_records,
    "/access/protect": protect,
    "/releases/approve": approve,
    "/releases/export": export,
    "/releases/remove": remove,
}


def templates() -> Environment:
    """The templates; all that is put into one is escaped."""
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shown"] = shown
    made.filters["query"] = lambda fields: urlencode(fields, doseq=True)
    return made


def application(register: Register) -> Starlette:
    """The pages over a database, without the doors before them."""
    desk = Desk(register, templates())
    routes = [Route(f"/{name}", _file(name, kind), methods=["GET"]) for name, kind in _FILES.items()]
    routes += [Route(path, _page(desk, make), methods=["GET"]) for path, make in _SHOWN.items()]
    routes += [Route(path, _sent(desk, make), methods=["POST"]) for path, make in _SENT.items()]
    return Starlette(routes=routes, exception_handlers={HTTPException: _no_page(desk)})


def _file(name: str, kind: str) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        return Response((_HERE / "templates" / name).read_bytes(), media_type=kind)

    return answer


def _page(desk: Desk, make: Callable[[Asked], Response]) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        return await run_in_threadpool(_shown, desk, make, request)

    return answer


def _shown(desk: Desk, make: Callable[[Asked], Response], request: Request) -> Response:
    with desk.register.reading() as reading:
        asked = Asked(desk, reading, Form([]), request.path_params)
        try:
            asked = Asked(desk, reading, Form.read(request.url.query), request.path_params)
            return make(asked)
        except (SDCError, duckdb.Error) as problem:
            return _wrong(asked, words_of(problem))


def _sent(desk: Desk, make: Callable[[Asked], Posted]) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        body = await request.body()
        return await run_in_threadpool(_taken, desk, make, request, body.decode("utf-8", "replace"))

    return answer


def _taken(desk: Desk, make: Callable[[Asked], Posted], request: Request, body: str) -> Response:
    with desk.register.reading() as reading:
        asked = Asked(desk, reading, Form([]), request.path_params)
        try:
            asked = Asked(desk, reading, Form.read(body), request.path_params)
            return RedirectResponse(make(asked).to, status_code=HTTPStatus.SEE_OTHER)
        except (SDCError, duckdb.Error) as problem:
            return _wrong(asked, words_of(problem))


def _wrong(asked: Asked, words: str) -> Response:
    return asked.page("problem.html", title="This does not work", problem=words, status=HTTPStatus.BAD_REQUEST)


def _no_page(desk: Desk) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, problem: Exception) -> Response:
        code = problem.status_code if isinstance(problem, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
        text = desk.templates.get_template("problem.html").render(
            title="This does not work", problem=_NOT_FOUND, asked=[], here="", written=0, file=desk.register.file.name
        )
        return HTMLResponse(text, status_code=code)

    return answer
