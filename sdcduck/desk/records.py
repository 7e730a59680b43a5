"""Records: how many could be found by what somebody may know of them."""

from __future__ import annotations

from starlette.responses import Response

from sdcduck.desk.asking import Asked, Posted
from sdcduck.desk.forms import Form
from sdcduck.desk.statements import call, named
from sdcduck.desk.work import Work
from sdcduck.errors import SDCError

_K = 3


def records_page(asked: Asked) -> Response:
    """Which table, and what somebody may know: the dimensions, unless others were picked."""
    form = asked.form
    tables = asked.register.tables(asked.reading)
    table = form.one("table")
    columns = asked.register.columns(asked.reading, table) if table else []
    if table and not form.has("filled"):
        keys = [("key", column.name) for column in columns if column.role == "dimension"]
        form = Form([*form.fields, *keys, ("k", str(_K))])
    return asked.page(
        "records.html", title="Records", here="records", tables=tables, table=table, columns=columns, form=form
    )


def measure_risk(asked: Asked) -> Posted:
    """How anonymous the records are, or which column makes them rare."""
    form = asked.form
    table, keys = form.one("table"), form.all("key")
    if not keys:
        raise SDCError("pick what somebody may know of a person: at least one column")
    asked.register.check_columns(asked.reading, table, keys)
    k = form.whole("k", "records that share a combination")
    function = "sdc_unsafe_combinations" if form.one("measure") == "columns" else "sdc_k_anonymity"
    title = "Which column makes records rare" if form.one("measure") == "columns" else "How anonymous the records are"
    statement = call(function, named(table), keys=keys, k=k)
    about = {"keys": keys, "k": k or _K, "table": table}
    kind = "rows" if form.one("measure") == "columns" else "risk"
    return asked.begin(Work(kind, f"{title}: {table}", statement, form, (table,), about=about))
