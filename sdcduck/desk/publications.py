"""Tables: a publication picked in a form, its pattern, the audit of it, and its publication."""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.responses import Response

from sdcduck.desk.alternatives import (
    RECORD_KEY,
    RELEASE,
    alternatives_statement,
    name_of,
    release_statements,
    seed_of,
)
from sdcduck.desk.asking import Asked, Posted
from sdcduck.desk.forms import Form
from sdcduck.desk.guesses import Column, hierarchies
from sdcduck.desk.statements import LIES_IN, Draft, call, hierarchy_query, rules_of
from sdcduck.desk.work import Work
from sdcduck.errors import SDCError
from sdcduck.quoting import folded, identifier, literal

_PICKED, _MOST_LEVELS = 3, 8
_KEYS = 10**8
"""How many record keys there are: units share one by chance."""
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
        picked = [] if form.has("dimension") else sorted(dimensions, key=lambda column: column.distinct)[:_PICKED]
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


def drafted(asked: Asked) -> Draft:
    """What the form says, of columns that there are."""
    draft = Draft.of(asked.form)
    asked.register.check_columns(asked.reading, draft.table, [*draft.dimensions, *draft.measures])
    return draft


def pattern(asked: Asked) -> Posted:
    """Suppress it, and show the cells."""
    draft, rules = drafted(asked), rules_of(asked.form)
    statement = call("sdc_suppress", draft.query, **rules)
    about = {"draft": draft, "rules": rules, "outside": _outside(asked, draft)}
    return asked.begin(Work("pattern", f"Pattern of {draft.name}", statement, asked.form, (draft.table,), about=about))


def _outside(asked: Asked, draft: Draft) -> list[tuple[str, str, int]]:
    """The dimensions whose values lie in others, these, and how many records have the first and not the second.

    A code that is not in the hierarchy has no level above it: its records are in the total, and in none of the levels.
    """
    pairs = draft.pairs
    if not pairs:
        return []
    counted = ", ".join(
        f"count(*) FILTER ({identifier(low)} IS NOT NULL AND {identifier(above)} IS NULL) AS c{place}"
        for place, (low, above) in enumerate(pairs)
    )
    [row] = asked.reading.rows(f"SELECT {counted} FROM {identifier(draft.table)}")
    return [(*pair, int(row[f"c{place}"])) for place, pair in enumerate(pairs) if row[f"c{place}"]]


def compare(asked: Asked) -> Posted:
    """The same cells suppressed, rounded, drawn anew and with cell keys."""
    draft, rules = drafted(asked), rules_of(asked.form)
    known = {column.name for column in asked.register.columns(asked.reading, draft.table)}
    keys, seed = RECORD_KEY in known, seed_of(asked.form)
    statement = alternatives_statement(draft, rules, keys=keys, seed=seed)
    about = {"draft": draft, "rules": rules, "keys": keys, "seed": seed}
    title = f"Alternatives for {draft.name}"
    return asked.begin(Work("alternatives", title, statement, asked.form, (draft.table,), about=about))


def audit_tables(asked: Asked) -> Posted:
    """How closely the suppressed numbers can be told."""
    draft, rules = drafted(asked), rules_of(asked.form)
    measure = asked.form.one("audited") or draft.count
    statement = call("sdc_audit", draft.query, measure=measure, **rules)
    about = {"draft": draft, "rules": rules, "measure": measure}
    title = f"Audit of {draft.name}, {measure}"
    return asked.begin(Work("audit", title, statement, asked.form, (draft.table,), about=about))


def publish(asked: Asked) -> Posted:
    """Store it under its name."""
    draft, rules = drafted(asked), rules_of(asked.form)
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


def release(asked: Asked) -> Posted:
    """Make a table of an alternative, which is to leave the house."""
    draft, rules, form = drafted(asked), rules_of(asked.form), asked.form
    column = form.one("alternative")
    check_free(asked, draft.name, replace=form.has("replace"))
    statement = release_statements(draft, rules, column, seed=seed_of(form), replace=form.has("replace"))
    if column == "_keys":
        _check_keys(asked, draft.table)
    about = {"draft": draft, "alternative": name_of(column)}
    title = f"Release {draft.name}: {name_of(column)}"
    return asked.begin(Work("released", title, statement, form, (draft.table,), writes=True, about=about))


def check_free(asked: Asked, name: str, *, replace: bool) -> None:
    """That a table of that name takes the place of nothing but, where that was ticked, of an earlier release."""
    if not name:
        raise SDCError("give the publication a name: the table is called so")
    if folded(name) in {folded(row["name"]) for row in asked.reading.rows(call("sdc_publications"))}:
        raise SDCError(f"there is a publication '{name}' already: give the table another name")
    for row in asked.reading.rows(
        "SELECT table_name AS name, comment FROM duckdb_tables() "
        "WHERE schema_name = 'main' AND database_name = current_database()\n"
        "UNION ALL SELECT view_name, NULL FROM duckdb_views() "
        "WHERE schema_name = 'main' AND database_name = current_database() AND NOT internal"
    ):
        if folded(row["name"]) != folded(name):
            continue
        if not (row["comment"] or "").startswith(RELEASE):
            raise SDCError(f"'{name}' is a table of the register: give the release another name")
        if not replace:
            raise SDCError(f"there is a release '{name}' already: give another name, or tick 'replace'")


def _check_keys(asked: Asked, table: str) -> None:
    """That each record has the key of another unit, but for what chance makes equal."""
    key = identifier(RECORD_KEY)
    [row] = asked.reading.rows(
        f"SELECT count(*) AS records, count({key}) AS keyed, count(DISTINCT {key}) AS keys FROM {identifier(table)}"
    )
    records, keyed, keys = (int(row[name]) for name in ("records", "keyed", "keys"))
    if keyed < records:
        raise SDCError(
            f"{records - keyed} records have no key: FROM sdc_add_record_key({literal(table)}, unit := ..) fills them"
        )
    if records - keys > 10 + 3 * records**2 / (2 * _KEYS):
        raise SDCError(
            "units have several records here, and the noise of a cell would be that of records: count units in SQL, "
            "with sdc_count_units"
        )
