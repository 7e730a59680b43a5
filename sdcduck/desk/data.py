"""Data: what the database holds, and what each column is taken for."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.responses import Response

from sdcduck.desk.asking import Asked, Posted
from sdcduck.desk.guesses import ROLES
from sdcduck.desk.statements import SAMPLE
from sdcduck.errors import SDCError

_NEXT = {"tables": "/tables/new", "records": "/records", "access": "/access"}


def data_page(asked: Asked) -> Response:
    """The tables and views."""
    return asked.page("data.html", title="Data", here="data", tables=asked.register.tables(asked.reading))


def table_page(asked: Asked) -> Response:
    """The columns of a table, to be corrected, and where to go from there."""
    name = asked.form.one("name")
    table = asked.register.table(asked.reading, name)
    columns = asked.register.columns(asked.reading, name)
    return asked.page("table.html", title=name, here="data", table=table, columns=columns, roles=ROLES, sample=SAMPLE)


def say_roles(asked: Asked) -> Posted:
    """Keep what the custodian says of the columns, and go where the button says."""
    form = asked.form
    table = form.one("table")
    names = [column.name for column in asked.register.columns(asked.reading, table)]
    columns, roles = form.all("column"), [value for name, value in form.fields if name == "role"]
    if columns != names or len(roles) != len(names):
        raise SDCError(f"the columns of '{table}' are others by now: open its page again")
    for column, role in zip(columns, roles, strict=True):
        asked.register.correct(table, column, role)
    return Posted(f"{_NEXT.get(form.one('next'), '/table')}?{urlencode({'table': table, 'name': table})}")
