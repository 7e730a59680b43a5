"""Random SQL, most of it nonsense, asked of a table under each method: refused, or an answer that shows no unit."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from attacked_database import leaks
from effort import LONG
from fixtures_of_attacks import show
from fuzzed_database import EXAMPLES, RELAXED, TABLES, Fuzzed, database, fill
from hypothesis import given, settings
from hypothesis import strategies as st

from sdcduck.guard import Refused

COUNTERS: dict[str, Counter[str]] = defaultdict(Counter)
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


@settings(parent=RELAXED, max_examples=(20 if LONG else 12) * EXAMPLES)
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
    con, guarded = database()
    if not con.execute("SELECT count(*) FROM few WHERE id = 970000000040").fetchall()[0][0]:
        confidential = fill(
            con,
            [("NSE"[i % 3], i % 6, "fm"[i % 2], 15485863 + 104729 * i) for i in range(40)] + [("W", 9, "f", 982451653)],
            *TABLES.values(),
        )
        stencil = con.execute("SELECT stencil FROM sdc.cells_stencil WHERE stencil > 1000").fetchall()
        Fuzzed.confidential = frozenset(confidential | {int(value) for (value,) in stencil})
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
        assert not leaks(rows, set(Fuzzed.confidential)), (asked, rows[:3])


def test_counters(show) -> None:  # type: ignore[no-untyped-def]
    for method, counters in COUNTERS.items():
        assert counters["answered"] > 0, f"{method}: nothing was shown in which a unit could have been seen"
        refused = {code: n for code, n in sorted(counters.items()) if code.startswith("SDC")}
        show(f"{method}: {counters['queries']} random queries, {counters['answered']} answered; refused: {refused}")
