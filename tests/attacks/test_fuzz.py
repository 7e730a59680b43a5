"""Random queries over random data: nothing but `Refused` is raised, protected numbers are right, units stay unseen.

Queries come from a small grammar as SQL text. The plain half of the grammar has a twin, written with the macros by the
test itself, that the answer must equal; and the answer on data with one unit's values replaced may differ only in
the cells that contain that unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
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

    def text(self) -> str:
        """As an analyst writes it."""
        names = {"n": "count(*)", "s": "sum(p.income)", "u": "count(DISTINCT p.id)", "m": "avg(p.income)"}
        shown = [f"{key} AS k{i}" for i, key in enumerate(self.keys)]
        for i, (what, condition) in enumerate(self.aggregates):
            shown.append(f"{names[what]}{f' FILTER (WHERE {condition})' if condition else ''} AS a{i}")
        source = {"plain": "people p", "derived": "(SELECT * FROM people) p", "cte": "c p"}[self.nested]
        joined = " LEFT JOIN regions r ON p.region = r.region" if self.joined else ""
        with_ = "WITH c AS (SELECT id, region, age, sex, income FROM people) " if self.nested == "cte" else ""
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
COUNTERS = {"queries": 0, "answered": 0}


class _Fuzzed:
    con: duckdb.DuckDBPyConnection | None = None
    guard: Guard


def _database() -> tuple[duckdb.DuckDBPyConnection, Guard]:
    if _Fuzzed.con is None:
        con = sdcduck.connect(secret="the secret of the tests")
        con.execute(
            "CREATE TABLE people (id BIGINT, record_key INTEGER, region VARCHAR, age INTEGER, sex VARCHAR, income BIGINT);"
            "INSERT INTO people VALUES (1, 1, 'N', 1, 'f', 1);"
            "CREATE TABLE few AS FROM people; CREATE TABLE regions AS SELECT * FROM (VALUES ('N', 1), ('S', 2), ('E', 3)) t(region, num)"
        )
        for table, units in (("people", 1), ("few", 3)):
            con.execute(
                f"FROM sdc_protect('{table}', unit := 'id', dimensions := ['region', 'age', 'sex'], measures := ['income'], min_units := {units})"
            ).fetchall()
        con.execute("FROM sdc_public('regions')").fetchall()
        with_own_numbers(con, "income")
        _Fuzzed.con, _Fuzzed.guard = con, guard(con)
    return _Fuzzed.con, _Fuzzed.guard


def _fill(con: duckdb.DuckDBPyConnection, records: list[tuple[object, ...]]) -> set[int]:
    rows = [(970000000001 + i, 10000019 + (i * 7368787) % 89000000, *record) for i, record in enumerate(records)]
    for table in ("people", "few"):
        con.execute(f"DELETE FROM {table}")
        con.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?)", rows)
    return {int(value) for row in rows for value in (row[0], row[1], row[5]) if value is not None}  # type: ignore[call-overload]


def _rows(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(
        repr([round(float(v), 4) if isinstance(v, (int, float)) and not isinstance(v, bool) else v for v in row])
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


@RELAXED
@given(DATA, QUERIES, RECORD, st.integers(0, 24))
def test_one_unit_changes_only_its_own_cells(
    records: list[tuple[object, ...]], query: Query, replaced: tuple[object, ...], which: int
) -> None:
    con, guarded = _database()
    which %= len(records)
    if query.grouping != "plain" or not query.keys:
        query = Query(query.keys or ("p.region",), query.filters, query.aggregates, "plain", query.joined, query.nested)
    unit = 970000000001 + which
    answers, cells = [], set()
    for data in (records, [*records[:which], replaced, *records[which + 1 :]]):
        _fill(con, data)
        rows = guarded.sql(query.text()).to_pylist()
        answers.append({tuple(list(row.values())[: len(query.keys)]): list(row.values()) for row in rows})
        cells |= set(con.execute(f"SELECT {', '.join(query.keys)} FROM people p WHERE id = {unit}").fetchall())
    changed = {key for key in answers[0].keys() | answers[1].keys() if answers[0].get(key) != answers[1].get(key)}
    assert changed <= cells, (query.text(), changed, cells)


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


@settings(parent=RELAXED, max_examples=20 * EXAMPLES)
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
        )
        _Fuzzed.confidential = confidential  # type: ignore[attr-defined]
    COUNTERS["queries"] += 1
    try:
        rows = guarded.sql(query, [1] * query.count("?")).to_pylist()
    except Refused as refused:
        COUNTERS[refused.code] = COUNTERS.get(refused.code, 0) + 1
        return
    COUNTERS["answered"] += 1
    assert not leaks(rows, _Fuzzed.confidential), (query, rows[:3])  # type: ignore[attr-defined]


def test_counters(show) -> None:  # type: ignore[no-untyped-def]
    show(
        f"{COUNTERS['queries']} random queries, {COUNTERS['answered']} answered; refused: {dict(sorted(list(COUNTERS.items())[2:]))}"
    )
