"""Random queries over random data: protected numbers are right, units stay unseen.

Queries come from a small grammar as SQL text, and are asked of a table under each method. They have a twin, written with
the macros or with plain aggregates by the test itself, that the answer must equal; and the answer on data with one
unit's values replaced may differ only in the cells that contain that unit.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest
from attacked_database import leaks
from fuzzed_database import RELAXED, TABLES, database, fill, publish
from hypothesis import given
from hypothesis import strategies as st

from sdcduck.guard import Refused

KEYS = (
    "p.region",
    "p.age",
    "p.age // 2",
    "upper(p.region)",
    "p.region || '-' || p.sex",
    "CASE WHEN p.age < 3 THEN 'young' ELSE 'old' END",
    "p.sex",
    "p.age % 2",
)
FILTERS = (
    "p.age > 2", "p.region = 'N'", "p.region IN ('N', 'S')", "p.sex IS NOT NULL", "p.age BETWEEN 1 AND 3", "NOT p.age = 2",
    "p.region LIKE 'S%'", "p.sex IS DISTINCT FROM 'f'", "p.age // 2 = 1", "(p.age = 1 OR p.region = 'E')", "p.age - (1 - 1) <> 3",
)  # fmt: skip
PRIMES = (15485863, 32452843, 49979687, 67867967, 86028121, 104395301, 122949823, 141650939, 160481183, 179424673)


@dataclass(frozen=True)
class Query:
    """A query of the plain grammar."""

    keys: tuple[str, ...]
    filters: tuple[str, ...]
    aggregates: tuple[tuple[str, str | None], ...]
    grouping: str
    joined: bool
    nested: str

    def where(self) -> str:
        return f" WHERE {' AND '.join(self.filters)}" if self.filters else ""

    def group(self) -> str:
        listed = ", ".join(self.keys)
        return (
            {
                "plain": f" GROUP BY {listed}",
                "cube": f" GROUP BY CUBE({listed})",
                "rollup": f" GROUP BY ROLLUP({listed})",
            }[self.grouping]
            if self.keys
            else ""
        )

    def text(self, table: str = "people") -> str:
        """As an analyst writes it."""
        names = {"n": "count(*)", "s": "sum(p.income)", "u": "count(DISTINCT p.id)", "m": "avg(p.income)"}
        shown = [f"{key} AS k{i}" for i, key in enumerate(self.keys)]
        for i, (what, condition) in enumerate(self.aggregates):
            shown.append(f"{names[what]}{f' FILTER (WHERE {condition})' if condition else ''} AS a{i}")
        source = {"plain": f"{table} p", "derived": f"(SELECT * FROM {table}) p", "cte": "c p"}[self.nested]
        joined = " LEFT JOIN regions r ON p.region = r.region" if self.joined else ""
        with_ = f"WITH c AS (SELECT id, region, age, sex, income FROM {table}) " if self.nested == "cte" else ""
        return f"{with_}SELECT {', '.join(shown)} FROM {source}{joined}{self.where()}{self.group()}"

    def twin(self) -> str:
        """What it must be, with the macros."""

        def number(what: str, condition: str | None) -> str:
            chosen = f", filter := {condition}" if condition else ""
            known = f"{condition} AND p.income IS NOT NULL" if condition else "p.income IS NOT NULL"
            published = f"sdc_count(p.record_key, filter := {known})"
            # A sum of nobody looks like one of somebody who is published as nobody.
            total = f"CASE WHEN {published} > 0 THEN sum_of_income(p.income, p.record_key{chosen}) END"
            if what == "s":
                return total
            if what == "m":
                return f"({total}) / nullif({published}, 0)"
            return f"sdc_count(p.record_key{chosen})"

        shown = [f"{key} AS k{i}" for i, key in enumerate(self.keys)]
        shown += [f"{number(*aggregate)} AS a{i}" for i, aggregate in enumerate(self.aggregates)]
        having = " HAVING sdc_count(p.record_key) > 0" if self.keys else ""
        return f"SELECT {', '.join(shown)} FROM people p{self.where()}{self.group()}{having}"

    def plain(self, method: str) -> str:
        """What it must be under a threshold or rounding; under suppression, where it is shown."""

        def number(what: str, condition: str) -> str:
            known = f"({condition}) AND p.income IS NOT NULL"
            if what == "m":
                return f"({number('s', condition)}) / nullif({number('n', known)}, 0)"
            behind = f"count(*) FILTER ({known if what == 's' else condition})"
            value = f"sum(p.income) FILTER ({condition})" if what == "s" else behind
            if method == "rounding":
                return (
                    f"sdc_count(p.record_key, ptable := 'rounded_5', filter := {known if what == 's' else condition})"
                )
            return f"CASE WHEN {behind} >= 3 THEN {value} END" if method == "threshold" else value

        shown = [f"{key} AS k{i}" for i, key in enumerate(self.keys)]
        shown += [f"{number(what, condition or 'true')} AS a{i}" for i, (what, condition) in enumerate(self.aggregates)]
        kept = {
            "threshold": "count(*) >= 3",
            "rounding": "sdc_count(p.record_key, ptable := 'rounded_5') > 0",
            "suppression": "true",
        }[method]
        having = f" HAVING {kept}" if self.keys else ""
        return f"SELECT {', '.join(shown)} FROM people p{self.where()}{self.group()}{having}"


QUERIES = st.builds(
    Query,
    st.lists(st.sampled_from(KEYS), max_size=2, unique=True).map(tuple),
    st.lists(st.sampled_from(FILTERS), max_size=2, unique=True).map(tuple),
    st.lists(
        st.tuples(st.sampled_from("nsum"), st.one_of(st.none(), st.sampled_from(FILTERS))), min_size=1, max_size=2
    ).map(tuple),
    st.sampled_from(("plain", "plain", "cube", "rollup")),
    st.booleans(),
    st.sampled_from(("plain", "derived", "cte")),
)
RECORD = st.tuples(
    st.sampled_from("NSE"),
    st.integers(0, 5),
    st.sampled_from(["f", "m", None]),
    st.one_of(st.none(), st.sampled_from(PRIMES)),
)
DATA = st.lists(RECORD, min_size=1, max_size=25)


def _rows(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(
        repr(
            [round(float(v), 4) if isinstance(v, (int, float, Decimal)) and not isinstance(v, bool) else v for v in row]
        )
        for row in rows
    )


@RELAXED
@given(DATA, st.lists(QUERIES, min_size=1, max_size=2))
def test_answers_equal_the_macros(records: list[tuple[object, ...]], queries: list[Query]) -> None:
    con, guarded = database()
    fill(con, records)
    for query in queries:
        answer = guarded.sql(query.text())
        got = list(zip(*(answer.column(i).to_pylist() for i in range(answer.num_columns)), strict=True))
        assert _rows(got) == _rows(con.execute(query.twin()).fetchall()), query.text()


def _of_method(query: Query, method: str) -> Query:
    """A query that the method answers: rounding is for counts."""
    counts = tuple(("n" if what in "sm" else what, condition) for what, condition in query.aggregates)
    return replace(query, aggregates=counts) if method == "rounding" else query


def _cells(query: Query, rows: list[dict[str, object]]) -> dict[tuple[object, ...], list[object]]:
    return {tuple(list(row.values())[: len(query.keys)]): list(row.values())[len(query.keys) :] for row in rows}


@RELAXED
@given(DATA, st.lists(QUERIES, min_size=1, max_size=2))
def test_answers_of_the_other_methods(records: list[tuple[object, ...]], queries: list[Query]) -> None:
    con, guarded = database()
    fill(con, [(*record[:3], record[3] or 1) for record in records], "covered", "thresholded", "rounded")
    for query in queries:
        for method in ("threshold", "rounding"):
            asked = _of_method(query, method)
            answer = guarded.sql(asked.text(TABLES[method]))
            got = list(zip(*(answer.column(i).to_pylist() for i in range(answer.num_columns)), strict=True))
            assert _rows(got) == _rows(con.execute(asked.plain(method)).fetchall()), asked.text(TABLES[method])
        asked = replace(query, grouping="plain")
        expected = con.execute(asked.plain("suppression"))
        names = [column[0] for column in expected.description]
        cells = _cells(query, [dict(zip(names, row, strict=True)) for row in expected.fetchall()])
        shown = _cells(query, guarded.sql(asked.text("covered")).to_pylist())
        assert shown.keys() == cells.keys()
        for key, values in shown.items():
            for value, original in zip(values, cells[key], strict=True):
                assert value is None or float(value) == pytest.approx(float(original)), asked.text("covered")  # type: ignore[arg-type]


@pytest.mark.parametrize("method", list(TABLES))
@RELAXED
@given(DATA, QUERIES, RECORD, st.integers(0, 24))
def test_one_unit_changes_only_its_own_cells(
    method: str, records: list[tuple[object, ...]], query: Query, replaced: tuple[object, ...], which: int
) -> None:
    """Under suppression a change can also open or close cells elsewhere, which then are as they were."""
    con, guarded = database()
    which %= len(records)
    query = _of_method(replace(query, keys=query.keys or ("p.region",), grouping="plain"), method)
    unit = 970000000001 + which
    answers, cells = [], set()
    for data in (records, [*records[:which], replaced, *records[which + 1 :]]):
        fill(con, data, TABLES[method])
        try:
            answers.append(_cells(query, guarded.sql(query.text(TABLES[method])).to_pylist()))
        except Refused as refused:  # inner cells do not tell who has no income
            assert (method, refused.code) == ("suppression", "SDC052")
            return
        cells |= set(con.execute(f"SELECT {', '.join(query.keys)} FROM people p WHERE id = {unit}").fetchall())
    one, other = answers
    changed = {key for key in one.keys() | other.keys() if key not in one or key not in other}
    for key in one.keys() & other.keys():
        pairs = zip(one[key], other[key], strict=True)
        if any(a != b and (method != "suppression" or None not in (a, b)) for a, b in pairs):
            changed.add(key)
    assert changed <= cells, (query.text(TABLES[method]), changed, cells)


@pytest.mark.parametrize("method", list(TABLES))
@RELAXED
@given(DATA, st.lists(QUERIES, min_size=1, max_size=3))
def test_no_value_of_a_unit_is_in_an_answer(
    method: str, records: list[tuple[object, ...]], queries: list[Query]
) -> None:
    con, guarded = database()
    # Everybody has an income that nobody else has, and that is no mean of others. Where empty cells hide too, a set of
    # several suppressed cells may have one unit in it.
    own = random.Random(repr(records))
    confidential = fill(con, [(*record[:3], own.randrange(10**11, 10**12)) for record in records], TABLES[method])
    if method == "suppression":
        publish(con, zeros=True)
    for query in queries:
        rows = guarded.sql(_of_method(query, method).text(TABLES[method])).to_pylist()
        assert not leaks(rows, confidential), (query.text(TABLES[method]), rows)
