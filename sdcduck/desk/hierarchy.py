"""Hierarchies: a tree over the codes of a column, from a file or a query; shown as text, corrected, used as columns."""

from __future__ import annotations

import itertools

from starlette.responses import Response

from sdcduck.desk.asking import Asked, Posted
from sdcduck.desk.statements import LIES_IN, call
from sdcduck.desk.work import Work
from sdcduck.errors import SDCError
from sdcduck.quoting import folded, identifier, literal, sql_value
from sdcduck.udfs.hierarchy.levels import indented

_INDENT = "@"
_MADE = "sdcduck desk, hierarchy:"
"""How the comments of what is made here begin: only that is replaced."""
_MOST_CODES, _SHOWN = 10_000, 5


def hierarchy_page(asked: Asked) -> Response:
    """The tree as text, a code a line: from a file, from a query, as it was corrected, or the values of the column."""
    form = asked.form
    table, column = form.one("table"), form.one("column")
    asked.register.check_columns(asked.reading, table, [column])
    text = form.one("tree") or "\n".join(_lines(asked, table, column))
    return asked.page(
        "hierarchy.html", title=f"Hierarchy of {column}", here="data", table=table, column=column, form=form, tree=text
    )


def _lines(asked: Asked, table: str, column: str) -> list[str]:
    """The tree that the form names.

    Raises:
        SDCError: it names two, or a code would look like one that lies in another.
    """
    file, query = asked.form.one("file"), asked.form.one("query")
    if file and query:
        raise SDCError("take the hierarchy from a file or from a query: leave the other field empty")
    if file:
        tree = call("sdc_read_hrc", file, indent=asked.form.one("indent") or _INDENT)
        statement = f"{tree} SELECT child AS code, level ORDER BY position"
    elif query:
        statement = _codes_of(query)
    else:
        name = identifier(column)
        statement = f"SELECT DISTINCT {name}::VARCHAR AS code, 1 AS level FROM {identifier(table)} ORDER BY code"
    rows = [row for row in asked.reading.rows(f"{statement} LIMIT {_MOST_CODES + 1}") if row["code"] is not None]
    if len(rows) > _MOST_CODES:
        raise SDCError(f"more than {_MOST_CODES:,} codes are too many for a page: join sdc_levels in SQL")
    if any(row["code"].startswith(_INDENT) for row in rows):
        raise SDCError(f"a code begins with '{_INDENT}', which stands for a level here: join sdc_levels in SQL")
    return [_INDENT * (row["level"] - 1) + row["code"] for row in rows]


def _codes_of(query: str) -> str:
    """All codes of a (child, parent) table or query, in the order of the tree."""
    tree = call("sdc_levels", f"({query})" if query.lower().startswith(("select", "from", "with")) else query)
    return (
        f"SELECT down[-1] AS code, len(down) AS level FROM (\n"
        f"    SELECT DISTINCT path[:place] AS down FROM (\n"
        f"        SELECT path, unnest(range(1, len(path) + 1)) AS place FROM (\n"
        f"            {tree} SELECT list_value(*COLUMNS('^level_'))::VARCHAR[] AS path))\n"
        f"    WHERE place = 1 OR path[place] <> path[place - 1])\n"
        f"ORDER BY down"
    )


def use_hierarchy(asked: Asked) -> Posted:
    """Make a view of the table with a column for each level above the codes."""
    form = asked.form
    table, column = form.one("table"), form.one("column")
    columns = [one.name for one in asked.register.columns(asked.reading, table)]
    asked.register.check_columns(asked.reading, table, [column])
    tree = list(indented(form.one("tree").splitlines(), _INDENT))
    if len(tree) > _MOST_CODES:
        raise SDCError(f"more than {_MOST_CODES:,} codes are too many for a page: join sdc_levels in SQL")
    depth = max((row["level"] for row in tree), default=0)
    if depth < 2:
        raise SDCError(f"no code lies in another: put '{_INDENT}' before each code that lies in the one above it")
    levels = [f"{column}_{level}" for level in range(1, depth)]
    taken = next((name for name in levels if folded(name) in map(folded, columns)), None)
    if taken is not None:
        raise SDCError(f"'{table}' has a column '{taken}' already, as a level is called here: rename it in SQL")
    pairs = ", ".join(f"({sql_value(row['child'])}, {sql_value(row['parent'])})" for row in tree)
    made = call("sdc_levels", f"(FROM (VALUES {pairs}) tree(child, parent))", prefix=f"{column}_")
    _check_codes(asked, table, column, made)
    stored, view = f"{table}_{column}_levels", f"{table}_by_{column}"
    _check_names(asked, stored, view)
    statement = _statements(table, column, levels, made, stored, view)
    about = {"view": view, "column": column, "next": _next(view, column, levels)}
    title = f"Hierarchy of {column} in {table}"
    work = Work("levels", title, statement, form, (table,), writes=True, makes=(stored, view), about=about)
    return asked.begin(work)


def _check_codes(asked: Asked, table: str, column: str, made: str) -> None:
    """That each record has a code which nothing lies in, or none."""
    name = identifier(column)
    rows = asked.reading.rows(
        f"SELECT DISTINCT {name}::VARCHAR AS code FROM {identifier(table)} r\n"
        f"ANTI JOIN ({made}) h ON r.{name}::VARCHAR = h.code WHERE {name} IS NOT NULL ORDER BY code"
    )
    if rows:
        first = ", ".join(repr(row["code"]) for row in rows[:_SHOWN])
        raise SDCError(
            f"{len(rows)} codes of '{column}' are not at the bottom of this hierarchy: {first}"
            f"{', ..' if len(rows) > _SHOWN else ''}; add them, or correct the records"
        )


def _check_names(asked: Asked, *names: str) -> None:
    """That what is made takes the place of nothing but an earlier hierarchy."""
    rows = asked.reading.rows(
        "SELECT table_name AS name, comment FROM duckdb_tables() "
        "WHERE schema_name = 'main' AND database_name = current_database()\n"
        "UNION ALL SELECT view_name, comment FROM duckdb_views() "
        "WHERE schema_name = 'main' AND database_name = current_database() AND NOT internal"
    )
    for row in rows:
        if folded(row["name"]) in map(folded, names) and not (row["comment"] or "").startswith(_MADE):
            raise SDCError(f"'{row['name']}', as the hierarchy would be called, is there already: rename it in SQL")


def _statements(table: str, column: str, levels: list[str], made: str, stored: str, view: str) -> str:
    """The codes with their levels, the view, and how many codes each level has."""
    name, above = identifier(column), ", ".join(f"h.{identifier(level)}" for level in levels)
    comment = literal(f"{_MADE} {column} in {table}")
    counted = "\nUNION ALL ".join(
        f"SELECT {literal(level)} AS level, count(DISTINCT {identifier(level)}) AS codes FROM {identifier(view)}"
        for level in [*levels, column]
    )
    return (
        f"CREATE OR REPLACE TABLE {identifier(stored)} AS\n{made};\n"
        f"COMMENT ON TABLE {identifier(stored)} IS {comment};\n"
        f"CREATE OR REPLACE VIEW {identifier(view)} AS\nSELECT r.*, {above}\n"
        f"FROM {identifier(table)} r LEFT JOIN {identifier(stored)} h ON r.{name}::VARCHAR = h.code;\n"
        f"COMMENT ON VIEW {identifier(view)} IS {comment};\n{counted}"
    )


def _next(view: str, column: str, levels: list[str]) -> list[tuple[str, str]]:
    """The form of a publication that has all levels, each in the one above it."""
    chain = [*levels, column]
    picked = [("dimension", name) for name in chain]
    return [("table", view), *picked, *((LIES_IN + low, above) for above, low in itertools.pairwise(chain))]
