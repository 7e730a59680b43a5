"""Random queries over random data: nothing but `Refused` is raised, protected numbers are right, units stay unseen.

Queries come from a small grammar as SQL text, and are asked of a table under each method. The plain half of the grammar has
a twin, written with the macros or with plain aggregates by the test itself, that the answer must equal; and the answer
on data with one unit's values replaced may differ only in the cells that contain that unit.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from decimal import Decimal

import duckdb
import pytest
from attacked_database import LONG, leaks
from fixtures_of_attacks import show
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from own_numbers import with_own_numbers

import sdcduck
from sdcduck.guard import Guard, Refused, guard

EXAMPLES = 2000 if LONG else 15
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
                return f"round({value} / 5) * 5"
            return f"CASE WHEN {behind} >= 3 THEN {value} END" if method == "threshold" else value

        shown = [f"{key} AS k{i}" for i, key in enumerate(self.keys)]
        shown += [f"{number(what, condition or 'true')} AS a{i}" for i, (what, condition) in enumerate(self.aggregates)]
        kept = {"threshold": "count(*) >= 3", "rounding": "count(*) >= 3", "suppression": "true"}[method]
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
COUNTERS: dict[str, Counter[str]] = defaultdict(Counter)


TABLES = {"cell_key": "few", "suppression": "covered", "threshold": "thresholded", "rounding": "rounded"}
"""The table under each method; `people` is under cell keys with min_units := 1."""
POLICIES = {
    "people": "",
    "few": ", min_units := 3",
    "thresholded": ", min_units := 3, method := 'threshold'",
    "rounded": ", base := 5, method := 'rounding'",
    "covered": ", method := 'suppression', publication := 'cells'",
}


class _Fuzzed:
    con: duckdb.DuckDBPyConnection | None = None
    guard: Guard


def _database() -> tuple[duckdb.DuckDBPyConnection, Guard]:
    if _Fuzzed.con is None:
        con = sdcduck.connect(secret="the secret of the tests")
        con.execute(
            "CREATE TABLE people (id BIGINT, record_key INTEGER, region VARCHAR, age INTEGER, sex VARCHAR, income BIGINT);"
            "INSERT INTO people VALUES (1, 1, 'N', 1, 'f', 1); CREATE TABLE rows_of_people AS FROM people;"
            "CREATE TABLE regions AS SELECT * FROM (VALUES ('N', 1), ('S', 2), ('E', 3)) t(region, num)"
        )
        for table in list(POLICIES)[1:]:
            con.execute(f"CREATE TABLE {table} AS FROM people")
        _publish(con)
        for table, arguments in POLICIES.items():
            con.execute(
                f"FROM sdc_protect('{table}', unit := 'id', dimensions := ['region', 'age', 'sex'], measures := ['income']{arguments})"
            ).fetchall()
        con.execute("FROM sdc_public('regions')").fetchall()
        with_own_numbers(con, "income")
        _Fuzzed.con, _Fuzzed.guard = con, guard(con)
    return _Fuzzed.con, _Fuzzed.guard


def _publish(con: duckdb.DuckDBPyConnection, *, zeros: bool = False) -> None:
    con.execute(
        "FROM sdc_publish('cells', 'SELECT region, age, sex, count(*) AS n, sum(income) AS income FROM covered "
        f"GROUP BY CUBE(region, age, sex)', max_count := 2, protect_zeros := {zeros})"
    ).fetchall()


def _fill(con: duckdb.DuckDBPyConnection, records: list[tuple[object, ...]], *tables: str) -> set[int]:
    """The same records into tables, and into `people`; what of them nobody may see."""
    rows = [(970000000001 + i, 10000019 + (i * 7368787) % 89000000, *record) for i, record in enumerate(records)]
    con.execute("DELETE FROM rows_of_people")
    con.executemany("INSERT INTO rows_of_people VALUES (?, ?, ?, ?, ?, ?)", rows)
    for table in ("people", *tables):
        con.execute(f"DELETE FROM {table}; INSERT INTO {table} FROM rows_of_people")
    if "covered" in tables:
        _publish(con)
    return {int(value) for row in rows for value in (row[0], row[1], row[5]) if value is not None}  # type: ignore[call-overload]


def _rows(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(
        repr(
            [round(float(v), 4) if isinstance(v, (int, float, Decimal)) and not isinstance(v, bool) else v for v in row]
        )
        for row in rows
    )


RELAXED = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=not LONG, suppress_health_check=list(HealthCheck), database=None
)


@RELAXED
@given(DATA, st.lists(QUERIES, min_size=1, max_size=2))
def test_answers_equal_the_macros(records: list[tuple[object, ...]], queries: list[Query]) -> None:
    con, guarded = _database()
    _fill(con, records)
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
    con, guarded = _database()
    _fill(con, [(*record[:3], record[3] or 1) for record in records], "covered", "thresholded", "rounded")
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
    con, guarded = _database()
    which %= len(records)
    query = _of_method(replace(query, keys=query.keys or ("p.region",), grouping="plain"), method)
    unit = 970000000001 + which
    answers, cells = [], set()
    for data in (records, [*records[:which], replaced, *records[which + 1 :]]):
        _fill(con, data, TABLES[method])
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
    con, guarded = _database()
    # Everybody has an income that nobody else has, and that is no mean of others. Where empty cells hide too, a set of
    # several suppressed cells may have one unit in it.
    own = random.Random(repr(records))
    confidential = _fill(con, [(*record[:3], own.randrange(10**11, 10**12)) for record in records], TABLES[method])
    if method == "suppression":
        _publish(con, zeros=True)
    for query in queries:
        rows = guarded.sql(_of_method(query, method).text(TABLES[method])).to_pylist()
        assert not leaks(rows, confidential), (query.text(TABLES[method]), rows)


# --- Anything goes ----------------------------------------------------------------------------------------------------

ATOMS = (
    "region",
    "age",
    "sex",
    "region",
    "age",
    "few.region",
    "1",
    "1",
    "'N'",
    "NULL",
    "income",
    "id",
    "record_key",
    "p.income",
    "few",
    "p",
    "*",
    "num",
    "?",
    "rowid",
)
_expression = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.tuples(
            st.sampled_from(["+", "-", "//", "=", "<", "AND", "OR", "||", "IS DISTINCT FROM", "LIKE", "%", "**"]),
            inner,
            inner,
        ).map(lambda t: f"({t[1]} {t[0]} {t[2]})"),
        st.tuples(
            st.sampled_from(
                [
                    "count",
                    "sum",
                    "avg",
                    "max",
                    "list",
                    "upper",
                    "abs",
                    "count_if",
                    "row_number",
                    "grouping",
                    "first",
                    "struct_pack",
                    "coalesce",
                    "TRY",
                    "length",
                    "mode",
                    "arg_max",
                ]
            ),
            inner,
        ).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(st.sampled_from(["sum", "count", "rank", "lag", "first_value", "row_number"]), inner, inner).map(
            lambda t: f"{t[0]}({'' if t[0] in ('rank', 'row_number') else t[1]}) OVER (ORDER BY {t[2]})"
        ),
        st.tuples(inner, inner).map(lambda t: f"CASE WHEN {t[0]} THEN {t[1]} END"),
        st.tuples(inner, inner).map(lambda t: f"sum({t[0]}) FILTER (WHERE {t[1]})"),
        inner.map(lambda t: f"CAST({t} AS VARCHAR)"),
        inner.map(lambda t: f"(SELECT {t} FROM few p LIMIT 1)"),
        inner.map(lambda t: f"(SELECT max({t}) FROM regions r)"),
        inner.map(lambda t: f"(SELECT {t})"),
        st.tuples(inner, inner).map(lambda t: f"{t[0]} IN (SELECT {t[1]} FROM regions AS few)"),
        inner.map(lambda t: f"EXISTS (SELECT 1 FROM regions p WHERE {t})"),
        inner.map(lambda t: f"(VALUES ({t}))"),
    ),
    max_leaves=5,
)
_source = st.deferred(
    lambda: st.one_of(
        st.sampled_from(
            [
                "few",
                "few p",
                "regions r",
                "few p JOIN regions r ON p.region = r.region",
                "few JOIN regions USING (region)",
                "few p, regions r",
                "c",
                "c p",
                "few AS p(a, b, income, region)",
                "regions AS few",
            ]
        ),
        _any_query.map(lambda q: f"({q}) p"),
        _expression.map(lambda e: f"(VALUES ({e})) p(income)"),
    )
)
_any_query = st.deferred(
    lambda: st.builds(
        lambda distinct, items, source, where, group, having, order, limit, arm: (
            f"SELECT {distinct}{', '.join(items)} FROM {source}{where}{group}{having}{order}{limit}{arm}"
        ),
        st.sampled_from(["", "", "", "DISTINCT "]),
        st.lists(
            st.tuples(
                _expression,
                st.sampled_from(["", "", " AS x", " AS income", " AS record_key", " AS region", " AS n", " AS id"]),
            ).map("".join),
            min_size=1,
            max_size=3,
        ),
        _source,
        st.one_of(st.just(""), _expression.map(lambda e: f" WHERE {e}")),
        st.one_of(
            st.just(""),
            st.just(" GROUP BY ALL"),
            st.just(" GROUP BY 1"),
            _expression.map(lambda e: f" GROUP BY {e}"),
            _expression.map(lambda e: f" GROUP BY CUBE({e}, region)"),
            st.just(" GROUP BY ()"),
        ),
        st.one_of(st.just(""), st.just(""), _expression.map(lambda e: f" HAVING {e}")),
        st.one_of(st.just(""), st.just(""), _expression.map(lambda e: f" ORDER BY {e}")),
        st.one_of(st.just(""), st.just(""), _expression.map(lambda e: f" LIMIT {e}")),
        st.one_of(st.just(""), st.just(""), _expression.map(lambda e: f" UNION ALL SELECT {e} FROM few")),
    )
)


_one = st.sampled_from(ATOMS)
_near = st.one_of(
    *(
        st.tuples(_expression, _one).map(lambda t, frame=frame: frame.format(*t))
        for frame in (
            "SELECT region, count(*) FROM few WHERE age = 1 OR {0} GROUP BY region",
            "SELECT {0} AS x, count(*) AS n FROM few GROUP BY x",
            "SELECT region, sum({1}) + {0} AS n FROM few GROUP BY region",
            "SELECT region, count(*) AS n FROM few GROUP BY region HAVING n > 0 OR {0}",
            "SELECT region, count(*) AS n FROM few GROUP BY region ORDER BY {0}",
            "SELECT region, count(*) AS n FROM few GROUP BY region LIMIT {0}",
            "SELECT sum(income) FILTER (WHERE {0}) FROM few",
            "SELECT sum(CASE WHEN {0} THEN income END) FROM few",
            "SELECT y, count(*) FROM (SELECT {0} AS y, {1} AS record_key FROM few) few GROUP BY y",
            "WITH c AS (SELECT {0} AS x, region FROM few) SELECT x, count(*) FROM c GROUP BY x",
            "SELECT label, (SELECT {0} FROM few) AS x FROM (SELECT region AS label FROM regions) q",
            "SELECT {1}, count(*), {0} FROM few GROUP BY ALL",
            "SELECT {1}, count(*) FROM few WHERE region IN (SELECT region FROM regions few WHERE {0}) GROUP BY ALL",
            "SELECT DISTINCT {0} FROM few",
            "SELECT {0} FROM few p JOIN regions r ON p.region = r.region GROUP BY {1}",
            "SELECT region FROM regions few UNION ALL SELECT {0} FROM few",
            "(SELECT region FROM regions) LIMIT {0}",
        )
    )
)


@settings(parent=RELAXED, max_examples=15 * EXAMPLES)
@given(
    st.one_of(
        _near,
        _near,
        _near,
        _any_query,
        _any_query.map(lambda q: f"WITH c AS (SELECT region, income FROM few) {q}"),
        st.tuples(_any_query, _any_query).map(lambda t: f"WITH c AS ({t[0]}) {t[1]}"),
    )
)
def test_anything_is_refused_or_shows_no_unit(query: str) -> None:
    con, guarded = _database()
    if not con.execute("SELECT count(*) FROM few WHERE id = 970000000040").fetchall()[0][0]:
        confidential = _fill(
            con,
            [("NSE"[i % 3], i % 6, "fm"[i % 2], 15485863 + 104729 * i) for i in range(40)] + [("W", 9, "f", 982451653)],
            *TABLES.values(),
        )
        stencil = con.execute("SELECT stencil FROM sdc.cells_stencil WHERE stencil > 1000").fetchall()
        _Fuzzed.confidential = confidential | {int(value) for (value,) in stencil}  # type: ignore[attr-defined]
    for method, table in TABLES.items():
        counters = COUNTERS[method]
        counters["queries"] += 1
        asked = re.sub(r"\bfew\b", table, query)
        try:
            rows = guarded.sql(asked, [1] * asked.count("?")).to_pylist()
        except Refused as refused:
            counters[refused.code] += 1
            continue
        counters["answered"] += 1
        assert not leaks(rows, _Fuzzed.confidential), (asked, rows[:3])  # type: ignore[attr-defined]


def test_counters(show) -> None:  # type: ignore[no-untyped-def]
    for method, counters in COUNTERS.items():
        refused = {code: n for code, n in sorted(counters.items()) if code.startswith("SDC")}
        show(f"{method}: {counters['queries']} random queries, {counters['answered']} answered; refused: {refused}")
