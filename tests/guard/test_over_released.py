"""What DuckDB has beyond plain SELECT, over released numbers and public tables, and functions of texts and times of records.

What is answered is what DuckDB says; what would reach into records is refused.
"""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pytest
from visits_database import answer

from sdcduck.guard import Guard, Refused

_COUNTS = "(SELECT region, count(*) AS n FROM patients GROUP BY region)"

ANSWERED = [
    # aggregates that sqlglot takes for any function
    f"SELECT histogram(n // 100)::VARCHAR AS h, entropy(n) AS e, mad(n) AS m, sem(n) AS s, kurtosis_pop(n) AS k FROM {_COUNTS}",
    f"SELECT weighted_avg(n, length(region)) AS w, wavg(n, 2) AS v, geomean(n) AS g FROM {_COUNTS}",
    f"SELECT approx_quantile(n, 0.5) AS q, approx_quantile(n, [0.25, 0.75]) AS p, quantile_cont(n, [0.1, 0.9]) AS c FROM {_COUNTS}",
    "SELECT regr_count(n, w) AS k, regr_avgx(n, w) AS x, regr_avgy(n, w) AS y, regr_sxx(n, w) AS sxx, regr_syy(n, w) AS syy, "
    "regr_sxy(n, w) AS sxy FROM ages JOIN (SELECT age, count(*) AS n FROM patients GROUP BY age) USING (age)",
    f"SELECT region, product(n) OVER (ORDER BY n, region ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS p FROM {_COUNTS}",
    # texts
    f"SELECT format('{{}}: {{:>8}} {{{{}}}}', region, n) AS f, printf('%s %05d %%', region, n) AS p FROM {_COUNTS}",
    f"SELECT bar(n, 0, 500, 20) AS b, repeat('*', n // 20) AS r, repeat('ab', 3) AS s FROM {_COUNTS}",
    f"SELECT lpad(region, 5, '.') AS l, rpad(region, n::INT // 50, '.') AS r, concat_ws('-', region, NULL, n) AS c FROM {_COUNTS}",
    "SELECT region, repeat('*', count(*) // 20) AS r FROM patients GROUP BY region",
    # series
    f"SELECT region, range(n // 100) AS r FROM {_COUNTS}",
    f"SELECT region, i FROM {_COUNTS} c, range(c.n // 100) t(i)",
    f"SELECT region, i FROM {_COUNTS} c, LATERAL generate_series(c.n // 100, 0, -1) t(i)",
    "SELECT i FROM range((SELECT max(w) FROM ages)) t(i)",
    "SELECT i, kind FROM kinds, range(length(kind)) t(i)",
    "SELECT unnest(generate_series(min(day), max(day), INTERVAL 1 MONTH)) AS m FROM visits",
    # LATERAL
    f"SELECT c.region, l.x FROM {_COUNTS} c, LATERAL (SELECT c.n * 2 AS x) l",
    f"SELECT c.region, x FROM {_COUNTS} c LEFT JOIN LATERAL (SELECT c.n) AS l(x) ON x > 233",
    "SELECT kind, l.n FROM (SELECT DISTINCT kind FROM kinds) k CROSS JOIN LATERAL (SELECT count(*) AS n FROM kinds o WHERE o.kind = k.kind) l",
    "WITH c AS (SELECT region, age, count(*) AS n FROM patients GROUP BY ALL) SELECT r.region, t.age, t.n FROM "
    "(SELECT DISTINCT region FROM c) r, LATERAL (SELECT age, n FROM c WHERE c.region = r.region ORDER BY n DESC, age LIMIT 2) t",
    "SELECT k.kind, l.n FROM kinds k, LATERAL (SELECT count(*) AS n FROM patients) l",
    # WITH RECURSIVE
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT * FROM t",
    "WITH RECURSIVE c AS (SELECT age, count(*) AS k FROM patients GROUP BY age), t AS (SELECT 20 AS a, 0 AS s UNION ALL "
    "SELECT t.a + 1, (t.s + c.k)::INT FROM t JOIN c ON c.age = t.a) SELECT a, s FROM t",
    "WITH RECURSIVE t AS (SELECT diagnosis AS path, 1 AS n FROM kinds UNION ALL SELECT path || '/' || k.diagnosis, n + 1 "
    "FROM t JOIN kinds k ON NOT contains(path, k.diagnosis)) SELECT path, n FROM t",
    "WITH RECURSIVE t AS (SELECT min(day) AS m FROM visits UNION SELECT (m + INTERVAL 1 MONTH)::DATE FROM t WHERE m < DATE '2025-01-01') "
    "SELECT m FROM t",
    "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL (SELECT n + 1 FROM t WHERE n < 5 UNION ALL SELECT n + 2 FROM t WHERE n < 4)) "
    "SELECT n, count(*) AS k FROM t GROUP BY n",
    "WITH RECURSIVE patients AS (SELECT 1 AS income UNION ALL SELECT income + 1 FROM patients WHERE income < 4) SELECT sum(income) AS s FROM patients",
    # beside records it is a public table
    "WITH RECURSIVE b(low, high) AS (SELECT 20, 35 UNION ALL SELECT high, high + 15 FROM b WHERE high < 80) "
    "SELECT low, count(*) AS n FROM patients p JOIN b ON p.age >= b.low AND p.age < b.high GROUP BY low",
    "WITH RECURSIVE t AS (SELECT 30 AS n UNION ALL SELECT n + 20 FROM t WHERE n < 70) SELECT n, count(*) AS k FROM t JOIN patients p ON p.age >= t.n GROUP BY n",
    "WITH RECURSIVE k AS (SELECT diagnosis, kind, 1 AS level FROM kinds WHERE diagnosis = 'cut' UNION ALL SELECT kinds.diagnosis, kinds.kind, level + 1 "
    "FROM kinds JOIN k ON k.level = 1 AND kinds.diagnosis = 'flu') SELECT level, count(*) AS n FROM visits JOIN k USING (diagnosis) GROUP BY level",
    # ORDER BY of a subtotal, and lists behind ANY
    "SELECT region, age // 40 AS a, count(*) AS n FROM patients GROUP BY ROLLUP (region, a) ORDER BY CASE WHEN grouping(region) = 0 THEN a END",
    "SELECT count(*) AS n FROM patients WHERE region = ANY(ARRAY['n', 's'])",
    # of records
    "SELECT regexp_replace(region, '[ns]', 'x', 'g') AS r, count(*) AS n FROM patients GROUP BY r",
    "SELECT regexp_extract(diagnosis, '^c(.)', 1) AS r, count(*) AS n FROM visits GROUP BY r",
    "SELECT count(*) AS n FROM visits WHERE regexp_matches(diagnosis, '^C', 'i') AND diagnosis SIMILAR TO 'c.*'",
    "SELECT concat_ws('-', region, age // 40) AS r, lpad(region, 3, '.') AS l, rpad(region, 2, '.') AS q, count(*) AS n FROM patients GROUP BY ALL",
    "SELECT epoch(day) // 8640000 AS e, count(*) AS n FROM visits GROUP BY e",
    "SELECT year(age(DATE '2027-01-01', day)) AS y, count(*) AS n FROM visits GROUP BY y",
    "SELECT date_trunc('month', day::TIMESTAMP AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo') AS m, count(*) AS n FROM visits GROUP BY m",
]  # fmt: skip


@pytest.mark.parametrize("query", ANSWERED)
def test_answers_are_those_of_duckdb(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


@pytest.mark.parametrize("query", ANSWERED)
def test_they_are_answered_under_noise_too(noisy: Guard, query: str) -> None:
    assert answer(noisy, query) == answer(noisy, query) != []


@pytest.mark.parametrize("method", ["exact", "noisy"])
@pytest.mark.parametrize(
    ("query", "said"),
    [
        # what is made longer than anybody reads
        ("SELECT repeat('*', n * 10) AS r FROM (SELECT count(*) AS n FROM patients)", "SDC002: .*of more than 1000"),
        ("SELECT repeat('*', 1000000000) AS r", "SDC002"),
        ("SELECT lpad('x', n::INT * 10, '.') AS r FROM (SELECT count(*) AS n FROM patients)", "SDC002: .*more than 1000"),
        ("SELECT format('{:1000000000}', n) AS f FROM (SELECT count(*) AS n FROM patients)", "SDC002"),
        ("SELECT format('{:{}}', n, n) AS f FROM (SELECT count(*) AS n FROM patients)", "a width that is a value"),
        ("SELECT printf('%*d', n, n) AS f FROM (SELECT count(*) AS n FROM patients)", "a width that is a value"),
        ("SELECT format(kind, diagnosis) AS f FROM kinds", "a template that is no constant"),
        ("SELECT range(n * 100) AS r FROM (SELECT count(*) AS n FROM patients)", "SDC002: .*of more than 10000"),
        ("SELECT range(0, -n * 100, -1) AS r FROM (SELECT count(*) AS n FROM patients)", "SDC002: .*of more than 10000"),
        ("SELECT generate_series(DATE '0001-01-01', max(day), INTERVAL 1 DAY) AS r FROM visits", "SDC002: .*than 10000"),
        ("WITH RECURSIVE t AS (SELECT 'ab' AS s, 1 AS n UNION ALL SELECT s || s, n + 1 FROM t WHERE n < 40) SELECT s FROM t",
         "SDC002: .*grows from row to row"),
        ("WITH RECURSIVE t AS (SELECT 'ab' AS s, 1 AS n UNION ALL SELECT u.s, n + 1 FROM (SELECT s || s AS s, n FROM t WHERE n < 40) u) "
         "SELECT length(s) FROM t", "SDC002: .*grows from row to row"),
        ("WITH RECURSIVE t AS (SELECT [1] AS s, 1 AS n UNION ALL SELECT s || s, n + 1 FROM t WHERE n < 40) SELECT len(s) FROM t",
         "SDC002: .*grows from row to row"),
        # what would reach into records
        ("SELECT count(*) FROM patients p, LATERAL (SELECT 1 AS x WHERE p.age > 30) l", "SDC044: .*LATERAL beside records"),
        ("SELECT count(*) FROM patients p, LATERAL (SELECT unnest(range(p.age)) AS x) l", "SDC044: .*LATERAL beside records"),
        ("SELECT m, count(*) FROM patients p, LATERAL (SELECT max(p.age) AS m) l GROUP BY m", "SDC044: .*LATERAL beside records"),
        ("SELECT count(*) FROM patients p, LATERAL (SELECT p.age AS m ORDER BY 1 LIMIT 0) l", "SDC044: .*LATERAL beside records"),
        ("SELECT count(*) FROM patients p, range(p.age) t(i)", "SDC044: .*LATERAL beside records"),
        ("SELECT a.age, l.n FROM ages a, LATERAL (SELECT count(*) AS n FROM patients p WHERE p.age > a.age) l", "SDC044"),
        ("WITH RECURSIVE t AS (SELECT age FROM patients UNION ALL SELECT age + 1 FROM t WHERE age < 3) SELECT count(*) FROM t",
         "SDC044: .*WITH RECURSIVE over records"),
        ("WITH RECURSIVE t AS (SELECT 0 AS a UNION ALL SELECT t.a + (SELECT count(*) FROM patients WHERE age = 20) FROM t "
         "WHERE t.a < 90) SELECT * FROM t", "SDC044: .*WITH RECURSIVE over records"),
        ("WITH RECURSIVE t AS (SELECT 0 AS a UNION ALL SELECT t.a + 10 FROM t JOIN patients p ON p.age = t.a) SELECT * FROM t", "SDC034"),
        ("WITH RECURSIVE t AS (SELECT age, count(*) AS n FROM patients GROUP BY age UNION ALL SELECT p.age, 1 FROM t, patients p) "
         "SELECT * FROM t", "SDC0"),
        ("WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT count(*) FROM patients JOIN t ON age >= n",
         "SDC034: .*group by what tells its rows apart"),
        ("WITH RECURSIVE t AS (SELECT 20 AS age, 1 AS i UNION ALL SELECT age, i + 1 FROM t WHERE i < 3) "
         "SELECT count(*) FROM patients JOIN t USING (age)", "SDC034: .*several rows"),
        ("WITH RECURSIVE t(n) USING KEY (n) AS (SELECT 1 UNION SELECT n + 1 FROM t WHERE n < 3) SELECT * FROM t", "SDC005"),
        ("SELECT mad(income) FROM patients", "SDC050: .*mad"), ("SELECT histogram(income) FROM patients", "SDC050: .*histogram"),
        ("SELECT bit_xor(age) FROM patients", "SDC050: .*bit_xor"),
        # what TRY does not catch, or what takes long for one record
        ("SELECT lpad(region, age::INT, '.') AS r, count(*) FROM patients GROUP BY r", "SDC014: .*a number up to 1000"),
        ("SELECT lpad(region, 1001, '.') AS r, count(*) FROM patients GROUP BY r", "SDC014: .*a number up to 1000"),
        ("SELECT repeat(region, 2) AS r, count(*) FROM patients GROUP BY r", "SDC010: .*repeat of single records"),
        ("SELECT format('{}', region) AS r, count(*) FROM patients GROUP BY r", "SDC010: .*format of single records"),
        ("SELECT count(*) FROM patients WHERE regexp_matches(region, region)", "a pattern that is no constant"),
        ("SELECT count(*) FROM patients WHERE region SIMILAR TO region", "a pattern that is no constant"),
        ("SELECT count(*) FROM visits WHERE day AT TIME ZONE 'Europe/Nowhere' IS NULL", "a time zone that DuckDB does not know"),
        ("SELECT count(*) FROM visits WHERE timezone(diagnosis, day::TIMESTAMP) IS NULL", "a time zone that DuckDB does not know"),
        ("SELECT regexp_replace(regexp_replace(region, 'n', region), 's', region) AS r, count(*) FROM patients GROUP BY r",
         "texts put together again and again|text or lists that grow too long"),
    ],
)  # fmt: skip
def test_what_grows_or_reaches_into_records_is_refused(
    request: pytest.FixtureRequest, method: str, query: str, said: str
) -> None:
    with pytest.raises(Refused, match=said):
        request.getfixturevalue(method).sql(query)


def test_an_approximate_quantile_does_not_depend_on_the_order_of_rows(exact: Guard) -> None:
    rows = "(SELECT i * 7919 % 10007 AS x FROM (SELECT unnest(range(8000)) AS i), (SELECT count(*) AS n FROM patients) ORDER BY {})"
    asked = [
        f"SELECT approx_quantile(x, 0.37) AS q FROM {rows.format(order)}, (SELECT count(*) AS n FROM visits)"
        for order in ("1", "1 DESC")
    ]
    assert answer(exact, asked[0]) == answer(exact, asked[1])


def test_what_is_made_of_recursion_has_an_order_of_its_rows(exact: Guard) -> None:
    """The rows come in no order: what is numbered or cut goes by what they show."""
    query = (
        "WITH RECURSIVE c AS (SELECT age, count(*) AS n FROM patients GROUP BY age), t AS (SELECT age, n FROM c UNION ALL "
        "SELECT c.age, t.n - 1 FROM t JOIN c ON c.age = t.age + 1 WHERE t.age < 25) SELECT row_number() OVER () AS r, age, n FROM t"
    )
    numbered = exact.sql(query).to_pylist()
    rows = [(row["age"], row["n"]) for row in sorted(numbered, key=lambda row: row["r"])]
    assert rows == sorted(rows)


def test_what_a_column_of_lateral_and_recursion_is_made_of(noisy: Guard) -> None:
    columns = noisy.explain(
        "WITH RECURSIVE c AS (SELECT age, count(*) AS n FROM patients GROUP BY age), t AS (SELECT age, n FROM c UNION ALL "
        "SELECT age + 1, n - 1 FROM t WHERE age < 22) SELECT t.age, l.x FROM t, LATERAL (SELECT t.n + 1 AS x) l"
    ).columns
    assert [column.kind for column in columns] == ["perturbed", "perturbed"]
    assert all(column.computed for column in columns)


def test_a_match_by_an_operator_is_that_of_duckdb_2(exact: Guard, same_as_duckdb: Callable[[str], None]) -> None:
    """In DuckDB 1 it is about the whole of a text, which is no reading of sqlglot's."""
    query = "SELECT count(*) AS n FROM visits WHERE diagnosis ~ '^c' OR diagnosis !~ 'u'"
    if duckdb.__version__.startswith("1."):
        with pytest.raises(Refused, match=r"SDC006: .*~, of all of a text in DuckDB 1: write regexp_matches"):
            exact.sql(query)
    else:
        same_as_duckdb(query)
