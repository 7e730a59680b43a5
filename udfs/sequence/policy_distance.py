"""How near answers are to what must not be derivable: the planner of ``sdc_policy_distance``.

Anantharaman, Frittella and Nguyen (2022), "Privacy Analysis with a Distributed Transition System and a Data-Wise
Metric", section 5: a distance in [0, 1] for each kind of column, added up over the columns that a row of the policy
names.
"""

from __future__ import annotations

from typing import Any, Protocol

import duckdb

from sdcduck.errors import SDCError, unknown
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import choice, is_finite, needed, struct, wrong
from sdcduck.udfs.source import Source, refuse_taken, source

_EXAMPLE = "{'sex': 'nominal', 'age': 'interval', 'income': {'largest': 1e6}, 'illness': {'taxonomy': 'illnesses'}}"
_KINDS = "be 'nominal', 'interval', {'step': ..}, {'largest': ..} or {'taxonomy': ..}"
_NUMBER = r"[-+]?[0-9]*[.]?[0-9]+(?:[eE][-+]?[0-9]+)?"
_INTERVAL = rf"^\s*\[\s*({_NUMBER})\s*,\s*({_NUMBER})\s*[\[)]\s*$"
_ADDED = ("answer_row", "policy_row", "distance", "violates", "by_column")


class _Kind(Protocol):
    """How the values of a column are read, and what their distance is."""

    def read(self, name: str, sql_type: str, which: str) -> str:
        """SQL for a value, from the column of one of the tables; NULL for NULL."""

    def distance(self, a: str, b: str) -> str:
        """SQL for the distance of two values."""


class _Nominal:
    def read(self, name: str, sql_type: str, which: str) -> str:
        if sql_type.endswith("]"):
            return f"{identifier(name)}::VARCHAR[]"
        return f"CASE WHEN {identifier(name)} IS NOT NULL THEN [{identifier(name)}::VARCHAR] END"

    def distance(self, a: str, b: str) -> str:
        return f"sdc_dist_jaccard({a}, {b})"


class _Interval:
    def __init__(self, step: float) -> None:
        self._step = repr(step)

    def read(self, name: str, sql_type: str, which: str) -> str:
        text = f"{identifier(name)}::VARCHAR"
        single = f"TRY_CAST({text} AS DOUBLE)"
        ends = [f"TRY_CAST(regexp_extract({text}, {literal(_INTERVAL)}, {part}) AS DOUBLE)" for part in (1, 2)]
        problem = literal(f"argument '{which}': a value of '{name}' is no number, and no interval such as [20, 30)")
        return (
            f"CASE WHEN {identifier(name)} IS NULL THEN NULL "
            f"WHEN isfinite({single}) THEN {{'low': {single}, 'high': {single} + {self._step}}} "
            f"WHEN {ends[0]} < {ends[1]} THEN {{'low': {ends[0]}, 'high': {ends[1]}}} "
            f"ELSE error({problem}) END"
        )

    def distance(self, a: str, b: str) -> str:
        return f"sdc_dist_interval(({a}).low, ({a}).high, ({b}).low, ({b}).high, step := {self._step})"


class _Number:
    def __init__(self, largest: float) -> None:
        self._largest = repr(largest)

    def read(self, name: str, sql_type: str, which: str) -> str:
        number = f"TRY_CAST({identifier(name)}::VARCHAR AS DOUBLE)"
        problem = literal(f"argument '{which}': a value of '{name}' is no finite number")
        return (
            f"CASE WHEN {identifier(name)} IS NULL THEN NULL WHEN isfinite({number}) THEN {number} "
            f"ELSE error({problem}) END"
        )

    def distance(self, a: str, b: str) -> str:
        problem = literal("argument 'kinds': two numbers are farther apart than their 'largest' difference")
        apart = f"abs({a} - {b})"
        return f"CASE WHEN {apart} > {self._largest} THEN error({problem}) ELSE {apart} / {self._largest} END"


class _Node:
    def __init__(self, taxonomy: str) -> None:
        self._taxonomy = literal(taxonomy)

    def read(self, name: str, sql_type: str, which: str) -> str:
        return f"{identifier(name)}::VARCHAR"

    def distance(self, a: str, b: str) -> str:
        problem = literal("a value is not in the taxonomy of its column")
        found = f"sdc_dist_taxonomy({a}, {b}, {self._taxonomy})"
        return f"CASE WHEN {a} IS NOT NULL AND {b} IS NOT NULL THEN coalesce({found}, error({problem})::DOUBLE) END"


def plan_policy_distance(
    session: Session, answers: str | None, policy: str | None, kinds: str | None, nulls: str | None
) -> str:
    """``sdc_policy_distance``: distances of the different values first, then of all pairs of rows."""
    cursor = session.cursor()
    tables = {name: source(cursor, text, name) for name, text in (("answers", answers), ("policy", policy))}
    given = needed(struct(kinds, "kinds", _EXAMPLE), "kinds", f"say what the columns hold, such as {_EXAMPLE}")
    for name in given:
        if name not in tables["policy"].columns and folded(name) not in map(folded, tables["policy"].columns):
            raise unknown("column", name, tables["policy"].columns, where="'policy'")
    columns = [(tables["policy"].named([name], "kinds")[0], _kind(cursor, name, how)) for name, how in given.items()]
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


def _rows(cte: str, which: str, table: Source, columns: list[tuple[str, _Kind]]) -> str:
    """The rows of a table, numbered in the order of their values, with the values as they are compared."""
    shown, order = [], ", ".join(identifier(name) for name, _ in columns)
    for place, (name, kind) in enumerate(columns):
        value = kind.read(name, table.type_of(name), which)
        if which == "policy" and table.type_of(name) == "VARCHAR":
            value = f"CASE WHEN {identifier(name)} <> '#' THEN {value} END"
        shown.append(f"{value} AS c{place}")
    return f"{cte} AS (SELECT row_number() OVER (ORDER BY {order}) AS row, {', '.join(shown)} FROM {table.sql})"


def _kind(cursor: duckdb.DuckDBPyConnection, name: str, how: Any) -> _Kind:
    """What a column holds."""
    if how == "nominal":
        return _Nominal()
    if how == "interval":
        return _Interval(1)
    problem = wrong("kinds", f"{_KINDS}, for '{name}'")
    if not isinstance(how, dict) or len(how) != 1:
        raise problem
    [(field, value)] = how.items()
    if field == "taxonomy" and isinstance(value, str):
        tree = source(cursor, value, "kinds")
        if value.startswith("("):
            raise SDCError(f"the taxonomy of '{name}' must be a table or view")
        for column in ("child", "parent"):
            tree.column(column, "kinds")
        return _Node(value)
    if field not in ("step", "largest"):
        raise problem
    if not is_finite(value) or value <= 0:
        raise wrong("kinds", f"have a number above 0 as '{field}' of '{name}'")
    return _Interval(value) if field == "step" else _Number(value)


PLANNERS = planners(plan_policy_distance)
