"""How near answers are to what must not be derivable: the planner of ``sdc_policy_distance``.

Anantharaman, Frittella and Nguyen (2022), "Privacy Analysis with a Distributed Transition System and a Data-Wise
Metric", section 5: a distance in [0, 1] for each kind of column, added up over the columns that a row of the policy
names.
"""

from __future__ import annotations

from sdcduck.errors import unknown
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import choice
from sdcduck.udfs.sequence.kinds import Kind, kinds_of
from sdcduck.udfs.source import Source, refuse_taken, source

_ADDED = ("answer_row", "policy_row", "distance", "violates", "by_column")


def plan_policy_distance(
    session: Session, answers: str | None, policy: str | None, kinds: str | None, nulls: str | None
) -> str:
    """``sdc_policy_distance``: distances of the different values first, then of all pairs of rows."""
    cursor = session.cursor()
    tables = {name: source(cursor, text, name) for name, text in (("answers", answers), ("policy", policy))}
    given = kinds_of(cursor, kinds)
    for name in given:
        if name not in tables["policy"].columns and folded(name) not in map(folded, tables["policy"].columns):
            raise unknown("column", name, tables["policy"].columns, where="'policy'")
    columns = [(tables["policy"].named([name], "kinds")[0], kind) for name, kind in given.items()]
    apart = choice(nulls, "nulls", ("apart", "skip")) == "apart"
    refuse_taken((name for name, _ in columns), _ADDED)
    pairs = [(name, tables["answers"].named([name], "kinds")[0], kind) for name, kind in columns]
    parts = [_rows("answer", "answers", tables["answers"], [(other, kind) for _, other, kind in pairs])]
    parts.append(_rows("rule", "policy", tables["policy"], [(name, kind) for name, _, kind in pairs]))
    for place, (_, _, kind) in enumerate(pairs):
        parts.append(
            f"pair{place} AS (SELECT a.c{place} AS a, b.c{place} AS b, {kind.distance(f'a.c{place}', f'b.c{place}')} "
            f"AS d FROM (SELECT DISTINCT c{place} FROM answer) a, (SELECT DISTINCT c{place} FROM rule) b "
            f"WHERE b.c{place} IS NOT NULL)"
        )
    unknown_is = "1" if apart else "NULL"
    each = [
        f"CASE WHEN b.c{place} IS NULL THEN NULL WHEN a.c{place} IS NULL THEN {unknown_is} ELSE p{place}.d END::DOUBLE"
        for place in range(len(pairs))
    ]
    joins = " ".join(
        f"LEFT JOIN pair{place} p{place} ON p{place}.a = a.c{place} AND p{place}.b = b.c{place}"
        for place in range(len(pairs))
    )
    by_column = ", ".join(f"{literal(name)}: d{place}" for place, (name, _, _) in enumerate(pairs))
    known = [f"d{place}" for place in range(len(pairs))]
    named = " OR ".join(f"(rules.c{place} IS NOT NULL AND d{place} IS NULL)" for place in range(len(pairs)))
    return f"""WITH {", ".join(parts)},
        measured AS (
            SELECT a.row AS answer_row, b.row AS policy_row, {", ".join(f"{one} AS d{n}" for n, one in enumerate(each))}
            FROM answer a CROSS JOIN rule b {joins}
        )
        SELECT answer_row, policy_row, list_sum([{", ".join(f"coalesce({one}, 0)" for one in known)}]) AS distance,
            distance = 0 AND NOT ({named}) AS violates, {{{by_column}}} AS by_column
        FROM measured JOIN rule rules ON rules.row = policy_row ORDER BY answer_row, policy_row"""


def _rows(cte: str, which: str, table: Source, columns: list[tuple[str, Kind]]) -> str:
    """The rows of a table, numbered in the order of their values, with the values as they are compared."""
    shown, order = [], ", ".join(identifier(name) for name, _ in columns)
    for place, (name, kind) in enumerate(columns):
        value = kind.read(name, table.type_of(name), which)
        if which == "policy" and table.type_of(name) == "VARCHAR":
            value = f"CASE WHEN {identifier(name)} <> '#' THEN {value} END"
        shown.append(f"{value} AS c{place}")
    return f"{cte} AS (SELECT row_number() OVER (ORDER BY {order}) AS row, {', '.join(shown)} FROM {table.sql})"


PLANNERS = planners(plan_policy_distance)
