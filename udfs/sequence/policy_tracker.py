"""What somebody works out from answers and outside tables, and how near it is to a secret: ``sdc_policy_tracker``.

Anantharaman, Frittella and Nguyen (2022), "Privacy Analysis with a Distributed Transition System and a Data-Wise
Metric", section 3. A *branch* is what may be known of a person: for each column a value, or less than one. An answer
opens a branch for each of its rows that may be the person's, with the chance that the weights give it; a row of an
outside table does the same once all columns by which the table is joined are known. That is done until no table adds
anything, which a recursive query does for all persons and branches at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from sdcduck.errors import unknown
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import needed, struct, wrong
from sdcduck.udfs.sequence.kinds import Kind, kinds_of
from sdcduck.udfs.source import Source, source

_MOST_BRANCHES = 20_000
_JOINED = "{'news': ['department', 'sex']}"
_FREE, _OPEN, _NEEDED = 0, 1, 2
"""How a column helps to find the rows that may be a person's: not at all; it must fit if known; it must be known."""


@dataclass(frozen=True)
class _Column:
    """A column that knowledge is about."""

    name: str
    place: int
    kind: Kind

    def of(self, table: Source, argument: str, *, wildcards: bool = False) -> str:
        """What a row of a table says of it."""
        own = next((name for name in table.columns if folded(name) == folded(self.name)), None)
        if own is None:
            return f"NULL::{self.kind.sql_type} AS c{self.place}"
        value = self.kind.read(own, table.type_of(own), argument)
        if wildcards and table.type_of(own) == "VARCHAR":
            value = f"CASE WHEN {identifier(own)} <> '#' THEN {value} END"
        return f"({self.kind.known(value)})::{self.kind.sql_type} AS c{self.place}"

    @property
    def candidate(self) -> str:
        """Whether a row ``b`` may be the one of a branch ``s``."""
        a, b, way = f"s.c{self.place}", f"b.c{self.place}", f"b.m{self.place}"
        return (
            f"({way} = {_FREE} OR coalesce({self.kind.fits(a, b)}, false) "
            f"OR ({way} = {_OPEN} AND ({a} IS NULL OR {b} IS NULL)))"
        )

    @property
    def together(self) -> str:
        """What a branch ``s`` knows with the row ``b``; where they contradict each other, what was known before."""
        a, b = f"s.c{self.place}", f"b.c{self.place}"
        return (
            f"CASE WHEN {b} IS NULL THEN {a} WHEN {a} IS NULL THEN {b} "
            f"WHEN {self.kind.fits(a, b)} THEN {self.kind.both(a, b)} ELSE {a} END AS c{self.place}"
        )

    @property
    def distance(self) -> str:
        """The distance of a branch ``s`` from a secret ``r``."""
        a, b = f"s.c{self.place}", f"r.c{self.place}"
        return (
            f"CASE WHEN {b} IS NULL THEN 0 WHEN {a} IS NULL THEN 1 WHEN {self.kind.within(a, b)} THEN 0 "
            f"ELSE {self.kind.apart(a, b)} END::DOUBLE"
        )

    @property
    def violates(self) -> str:
        """Whether a branch ``s`` says what a secret ``r`` says of the column."""
        a, b = f"s.c{self.place}", f"r.c{self.place}"
        return f"({b} IS NULL OR ({a} IS NOT NULL AND {self.kind.within(a, b)}))"


def plan_policy_tracker(
    session: Session, answers: str | None, policy: str | None, kinds: str | None, known: str | None,
    outside: str | None, by: Sequence[str] | None, question: str | None, weight: str | None,
) -> str:  # fmt: skip
    """``sdc_policy_tracker``: a recursive query over branches, and their distances from the secrets."""
    cursor = session.cursor()
    told, secrets = source(cursor, answers, "answers"), source(cursor, policy, "policy")
    persons = None if known is None else source(cursor, known, "known")
    tables = _outside(cursor, outside)
    columns = [_Column(name, place, kind) for place, (name, kind) in enumerate(kinds_of(cursor, kinds).items())]
    every = [told, secrets, *([] if persons is None else [persons]), *(table for table, _ in tables)]
    names = dict.fromkeys(name for table in every for name in table.columns)
    for column in columns:
        if folded(column.name) not in map(folded, names):
            raise unknown("column", column.name, names, where="any of the tables")
    steps = "1" if question is None else f"dense_rank() OVER (ORDER BY {told.column(question, 'question')})"
    first = _ways(columns, by, "by", _OPEN) if by is not None else [_OPEN] * len(columns)
    pool = [_pool(columns, told, "answers", f"({steps})", False, _weight(told, weight, True), first)]
    for number, (table, keys) in enumerate(tables):
        ways = _ways(columns, keys, "outside", _NEEDED, rest=_OPEN)
        pool.append(_pool(columns, table, "outside", str(number), True, _weight(table, weight, False), ways))
    shown = ", ".join(f"c{column.place}" for column in columns)
    before = ", ".join(f"NULL::{column.kind.sql_type} AS c{column.place}" for column in columns)
    start = f"SELECT 1::BIGINT AS person, {before}"
    if persons is not None:
        read = ", ".join(column.of(persons, "known") for column in columns)
        start = f"SELECT row_number() OVER (ORDER BY {shown}) AS person, * FROM (SELECT {read} FROM {persons.sql})"
    rules = ", ".join(column.of(secrets, "policy", wildcards=True) for column in columns)
    candidate = " AND ".join(column.candidate for column in columns)
    apart = " + ".join(column.distance for column in columns)
    violates = " AND ".join(column.violates for column in columns)
    knows = ", ".join(
        f"{literal(column.name)}: ({column.kind.shown(f'c{column.place}')})::VARCHAR" for column in columns
    )
    return f"""WITH RECURSIVE pool AS MATERIALIZED ({" UNION ALL ".join(pool)}),
        secrets AS MATERIALIZED (SELECT {rules} FROM {secrets.sql}),
        branches(person, question, used, probability, {shown}) AS (
            SELECT person, 0::BIGINT, []::BIGINT[], 1::DOUBLE, {shown} FROM ({start})
            UNION ALL
            SELECT person, question, used, sum(probability), {shown} FROM ({_next(columns, candidate)}) GROUP BY ALL
        ),
        settled AS (
            SELECT person, question, sum(probability) AS probability, {shown}
            FROM branches s ANTI JOIN pool b ON b.outside AND NOT list_contains(s.used, b.step) AND {candidate}
            GROUP BY ALL
        ),
        measured AS (
            SELECT person, question, probability, {", ".join(f"s.c{c.place}" for c in columns)},
                min({apart}) AS distance, coalesce(bool_or({violates}), false) AS violates
            FROM settled s CROSS JOIN secrets r GROUP BY ALL
        )
        SELECT question, person, row_number() OVER (PARTITION BY question, person ORDER BY probability DESC, {shown})
            AS branch, probability, distance, violates, {{{knows}}} AS knows
        FROM measured ORDER BY question, person, branch"""


def _next(columns: Sequence[_Column], candidate: str) -> str:
    """The branches after the next table: an outside one that adds something, or else the next question."""
    state = ", ".join(f"s.c{column.place}" for column in columns)
    problem = literal(
        f"more than {_MOST_BRANCHES:,} branches: name in 'by' more columns by which a person's row is found, "
        f"or take fewer persons"
    )
    turn = f"coalesce(CASE WHEN b.outside THEN b.step END, {_MOST_BRANCHES})"
    chance = "s.probability * b.weight / sum(b.weight) OVER state"
    return f"""SELECT s.person, s.question + CASE WHEN b.outside THEN 0 ELSE 1 END AS question,
            CASE WHEN b.outside THEN list_append(s.used, b.step) ELSE s.used END AS used,
            CASE WHEN count(*) OVER () > {_MOST_BRANCHES} THEN error({problem})::DOUBLE
                ELSE coalesce({chance}, s.probability) END AS probability,
            {", ".join(column.together for column in columns)}
        FROM branches s LEFT JOIN pool b ON {candidate} AND CASE WHEN b.outside THEN NOT list_contains(s.used, b.step)
            ELSE b.step = s.question + 1 END
        WHERE b.outside OR s.question < (SELECT coalesce(max(step), 0) FROM pool WHERE NOT outside)
        WINDOW state AS (PARTITION BY s.person, s.question, s.used, {state}, coalesce(b.outside, false), b.step)
        QUALIFY {turn} = min({turn}) OVER (PARTITION BY s.person, s.question, s.used, {state})"""


def _outside(cursor: duckdb.DuckDBPyConnection, text: str | None) -> list[tuple[Source, Sequence[str]]]:
    """The outside tables, each with the columns by which it is joined."""
    found: list[tuple[Source, Sequence[str]]] = []
    for name, keys in struct(text, "outside", _JOINED).items():
        listed = [keys] if isinstance(keys, str) else keys
        if not isinstance(listed, list) or not listed or not all(isinstance(key, str) for key in listed):
            raise wrong("outside", f"name the columns by which each table is joined, such as {_JOINED}")
        table = source(cursor, name, "outside")
        found.append((table, table.named(listed, "outside")))
    return found


def _ways(columns: Sequence[_Column], names: Sequence[str], argument: str, way: int, rest: int = _FREE) -> list[int]:
    """How each column takes part, by the names of some."""
    known: Mapping[str, _Column] = {folded(column.name): column for column in columns}
    for name in names:
        if folded(needed(name, argument, "name columns of 'kinds'")) not in known:
            raise unknown("column", name, [column.name for column in columns], where="'kinds'")
    chosen = {folded(name) for name in names}
    return [way if name in chosen else rest for name in known]


def _weight(table: Source, weight: str | None, must: bool) -> str:
    """SQL for the weight of a row; tables outside need not have one."""
    if weight is None or (not must and folded(weight) not in map(folded, table.columns)):
        return "1::DOUBLE"
    value = f"{table.number(weight, 'weight')}::DOUBLE"
    problem = literal("argument 'weight': a weight is no finite number above 0")
    return f"CASE WHEN {value} > 0 AND isfinite({value}) THEN {value} ELSE error({problem})::DOUBLE END"


def _pool(
    columns: Sequence[_Column], table: Source, argument: str, step: str, outside: bool, weight: str, ways: Sequence[int]
) -> str:
    """Rows that may be a person's: which table or question, their weight, what they say, and how they are found."""
    said = ", ".join(column.of(table, argument) for column in columns)
    how = ", ".join(f"{way} AS m{place}" for place, way in enumerate(ways))
    return (
        f"SELECT ({step})::BIGINT AS step, {str(outside).lower()} AS outside, {weight} AS weight, {said}, {how} "
        f"FROM {table.sql}"
    )


PLANNERS = planners(plan_policy_tracker)
