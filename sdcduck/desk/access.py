"""Access: what analysts may ask, who they are, and what they asked."""

from __future__ import annotations

from typing import Any

import duckdb
from starlette.responses import Response

from sdcduck.desk.asking import Asked, Posted
from sdcduck.desk.statements import call, named
from sdcduck.desk.work import Work, words_of
from sdcduck.errors import SDCError

_LAST = 100
_LEAST_UNITS = 5


def access_page(asked: Asked) -> Response:
    """Policies, logins, and what each login asked of each table."""
    policies = asked.reading.rows(call("sdc_policies"))
    users = asked.reading.rows(call("sdc_users"))
    table = asked.form.one("table")
    columns = asked.register.columns(asked.reading, table) if table else []
    asked_of = [one for policy in policies for one in _asked_of(asked, policy)]
    return asked.page(
        "access.html", title="Access", here="access", policies=policies, users=users, asked_of=asked_of, table=table,
        columns=columns, tables=asked.register.tables(asked.reading), least=_LEAST_UNITS, last=_LAST,
    )  # fmt: skip


def _asked_of(asked: Asked, policy: dict[str, Any]) -> list[dict[str, Any]]:
    """What was asked of a table, where the house keeps it: its sequence, its budget of questions, its ledger."""
    kept = [
        ("sdc_sequence", "What logins were told", policy["sequence"] not in (None, "off")),
        ("sdc_questions", "Questions of each day", policy["questions"] is not None),
        ("sdc_dp_ledger", "What questions have cost", policy["method"] == "dp"),
    ]
    found = []
    for function, title, there in kept:
        if there:
            rows, problem = _last_of(asked, f"{call(function, named(policy['name']))} LIMIT {_LAST}")
            found.append({"title": f"{title}: {policy['name']}", "rows": rows, "problem": problem})
    return found


def _last_of(asked: Asked, statement: str) -> tuple[list[dict[str, Any]], str]:
    """The rows; or why there are none, which must not hide the rest of the page."""
    try:
        return asked.reading.rows(statement), ""
    except (SDCError, duckdb.Error) as problem:
        return [], words_of(problem)


def protect(asked: Asked) -> Posted:
    """Declare a policy: groups of few units are not answered."""
    form = asked.form
    table, unit = form.one("table"), form.one("unit")
    dimensions, measures = form.all("dimension"), form.all("measure")
    if not unit:
        raise SDCError("say whose a record is: the column that tells units apart")
    asked.register.check_columns(asked.reading, table, [unit, *dimensions, *measures])
    statement = call(
        "sdc_protect", named(table), unit=unit, dimensions=dimensions,
        measures=measures, method="threshold", min_units=form.whole("min_units", "units"),
    )  # fmt: skip
    return asked.begin(Work("rows", f"Let analysts ask about {table}", statement, form, (table,), writes=True))
