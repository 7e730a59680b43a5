"""Tables: a publication picked in a form, its pattern, the audit of it, and its publication."""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.responses import Response

from sdcduck.desk.alternatives import RECORD_KEY, alternatives_statement
from sdcduck.desk.asking import Asked, Posted
from sdcduck.desk.forms import Form
from sdcduck.desk.guesses import Column, hierarchies
from sdcduck.desk.statements import LIES_IN, Draft, call, hierarchy_query, rules_of
from sdcduck.desk.work import Work
from sdcduck.errors import SDCError
from sdcduck.quoting import folded

_PICKED, _MOST_LEVELS = 3, 8
_DEFAULTS = [("max_count", "2"), ("sets", "all")]


def tables_page(asked: Asked) -> Response:
    """Which table to make a publication from, and those that there are."""
    tables = asked.register.tables(asked.reading)
    known = asked.reading.rows(call("sdc_publications"))
    return asked.page("tables.html", title="Tables", here="tables", tables=tables, publications=known)


def new_tables(asked: Asked) -> Response:
    """The form of a publication: as guessed, or as it was filled in."""
    form = asked.form
    table = form.one("table")
    columns = asked.register.columns(asked.reading, table)
    if not form.has("filled"):
        dimensions = [column for column in columns if column.role == "dimension"]
        picked = sorted(dimensions, key=lambda column: column.distinct)[:_PICKED]
        fields = [("dimension", column.name) for column in dimensions if column in picked]
        levels = [(LIES_IN + name, above) for name, above in _hierarchies(asked, table, dimensions).items()]
        form = Form([*form.fields, *fields, *levels, *_DEFAULTS, ("publication", _name_for(asked, table))])
    return asked.page(
        "new_tables.html", title=f"Tables of {table}", here="tables", form=form, table=table, columns=columns,
        rule_sets=asked.reading.rows(call("sdc_rule_sets")), lies_in=LIES_IN,
    )  # fmt: skip


def _hierarchies(asked: Asked, table: str, dimensions: Sequence[Column]) -> dict[str, str]:
    """Which of the first dimensions seem to lie in others."""
    names = [column.name for column in dimensions[:_MOST_LEVELS]]
    if len(names) < 2:
        return {}
    [row] = asked.reading.rows(hierarchy_query(table, names))
    return hierarchies(names, [int(count) for count in row.values()])


def _name_for(asked: Asked, table: str) -> str:
    """A name that no publication has yet."""
    taken = {folded(row["name"]) for row in asked.reading.rows(call("sdc_publications"))}
    plain = re.sub(r"\W+", "_", table).strip("_") or "tables"
    names = (f"{plain}_tables{'' if k == 1 else f'_{k}'}" for k in range(1, len(taken) + 2))
    return next(name for name in names if folded(name) not in taken)


def _drafted(asked: Asked) -> Draft:
    """What the form says, of columns that there are."""
    draft = Draft.of(asked.form)
    asked.register.check_columns(asked.reading, draft.table, [*draft.dimensions, *draft.measures])
    return draft


def pattern(asked: Asked) -> Posted:
    """Suppress it, and show the cells."""
    draft, rules = _drafted(asked), rules_of(asked.form)
    statement = call("sdc_suppress", draft.query, **rules)
    about = {"draft": draft, "rules": rules}
    return asked.begin(Work("pattern", f"Pattern of {draft.name}", statement, asked.form, (draft.table,), about=about))


def compare(asked: Asked) -> Posted:
    """The same cells suppressed, rounded and with cell keys."""
    draft, rules = _drafted(asked), rules_of(asked.form)
    known = {column.name for column in asked.register.columns(asked.reading, draft.table)}
    keys = RECORD_KEY in known
    statement = alternatives_statement(draft, rules, keys=keys)
    about = {"draft": draft, "rules": rules, "keys": keys}
    title = f"Alternatives for {draft.name}"
    return asked.begin(Work("alternatives", title, statement, asked.form, (draft.table,), about=about))


def audit_tables(asked: Asked) -> Posted:
    """How closely the suppressed numbers can be told."""
    draft, rules = _drafted(asked), rules_of(asked.form)
    measure = asked.form.one("audited") or draft.count
    statement = call("sdc_audit", draft.query, measure=measure, **rules)
    about = {"draft": draft, "rules": rules, "measure": measure}
    title = f"Audit of {draft.name}, {measure}"
    return asked.begin(Work("audit", title, statement, asked.form, (draft.table,), about=about))


def publish(asked: Asked) -> Posted:
    """Store it under its name."""
    draft, rules = _drafted(asked), rules_of(asked.form)
    if not draft.name:
        raise SDCError("give the publication a name")
    taken = {folded(row["name"]) for row in asked.reading.rows(call("sdc_publications"))}
    if folded(draft.name) in taken and not asked.form.has("replace"):
        raise SDCError(
            f"there is a publication '{draft.name}' already: give another name, or tick 'replace' to publish it anew"
        )
    statement = call("sdc_publish", draft.name, draft.query, **rules)
    about = {"draft": draft, "rules": rules}
    work = Work("published", f"Publish {draft.name}", statement, asked.form, (draft.table,), writes=True, about=about)
    return asked.begin(work)
