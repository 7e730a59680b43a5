"""The rows of an answer without ORDER BY, and what is made of their order, follow from what is published.

DuckDB's threads put together what they found as they finish. So DISTINCT, joins, set operations and windows gave rows in
another order with another number of threads, and some in another order each time.
"""

from __future__ import annotations

import pytest

import sdcduck
from sdcduck.guard import Guard, guard

GROUPS = "SELECT k, count(*) AS n FROM people GROUP BY k"
QUERIES = (
    "SELECT DISTINCT k FROM people",
    f"SELECT DISTINCT k // 2 AS h FROM ({GROUPS})",
    "SELECT DISTINCT count(*) AS n, k FROM people GROUP BY k",
    f"SELECT DISTINCT ON (k % 1000) k, n FROM ({GROUPS})",
    f"SELECT sum(k) AS s FROM (SELECT DISTINCT n, k FROM ({GROUPS}) LIMIT 100)",
    "SELECT k FROM people GROUP BY k UNION SELECT k + 1 FROM people GROUP BY k + 1",
    "SELECT k FROM people GROUP BY k UNION ALL SELECT k + 1 FROM people GROUP BY k + 1",
    "SELECT k FROM people GROUP BY k EXCEPT SELECT k FROM people WHERE k % 3 = 0 GROUP BY k",
    "SELECT k FROM people GROUP BY k EXCEPT ALL SELECT k FROM people WHERE k % 3 = 0 GROUP BY k LIMIT 50",
    "SELECT k FROM people GROUP BY k INTERSECT SELECT k FROM people WHERE k % 3 = 0 GROUP BY k",
    f"SELECT b.k, a.n FROM ({GROUPS}) a JOIN ({GROUPS}) b ON a.k = b.k",
    f"SELECT b.k, a.n FROM ({GROUPS}) a JOIN ({GROUPS}) b ON a.n = b.n AND a.k % 4000 = b.k % 4000 LIMIT 40",
    f"SELECT a.k, b.n FROM ({GROUPS}) a LEFT JOIN ({GROUPS}) b ON a.k % 3000 = b.k",
    f"SELECT a.k, b.k AS l FROM ({GROUPS} HAVING k < 20000) a FULL JOIN ({GROUPS} HAVING k > 5000) b ON b.k = a.k",
    f"SELECT k, row_number() OVER (PARTITION BY k % 7) AS r FROM ({GROUPS})",
    f"SELECT k, row_number() OVER w AS r, rank() OVER w AS q FROM ({GROUPS}) WINDOW w AS (ORDER BY n % 2)",
    f"SELECT k, lag(k) OVER (ORDER BY n % 2) AS r, sum(k) OVER (ORDER BY n % 2 ROWS 2 PRECEDING) AS s FROM ({GROUPS})",
    f"SELECT k, first_value(k) OVER (ORDER BY n) AS f, last_value(k) OVER (ORDER BY n) AS l FROM ({GROUPS})",
    f"SELECT k, sum(k) OVER w AS s, max(k) OVER w AS m FROM ({GROUPS}) WINDOW w AS (ORDER BY n % 2 rows 2 preceding)",
    "SELECT k % 9000 AS g, count(*) AS n, row_number() OVER (ORDER BY count(*)) AS r FROM people GROUP BY 1",
    f"SELECT n, count(*) AS c, row_number() OVER (ORDER BY count(*) % 2) AS r FROM ({GROUPS}) GROUP BY n",
    f"SELECT list(k) AS l FROM ({GROUPS})",
    f"SELECT list(k) AS l, count(*) AS c FROM ({GROUPS} ORDER BY n % 2 DESC)",
    f"SELECT k % 3 AS g, list(k) AS l, string_agg(k, '-') FILTER (n > 1) AS t, list(DISTINCT n) AS d FROM ({GROUPS}) GROUP BY 1",
    f"SELECT first(k) AS a, last(k) AS b, any_value(k) AS c, arg_max(k, n % 2) AS d, mode(n) AS m FROM ({GROUPS})",
    f"SELECT list(a.k) AS l FROM ({GROUPS}) a JOIN ({GROUPS}) b USING (k)",
    f"SELECT k FROM ({GROUPS}) QUALIFY row_number() OVER (PARTITION BY k % 1000 ORDER BY n % 2) = 1",
    f"SELECT k, unnest([1, n]) AS u FROM ({GROUPS})",
    f"SELECT u FROM (SELECT g, unnest(l) AS u FROM (SELECT k % 999 AS g, list(k) AS l FROM ({GROUPS}) GROUP BY 1))",
    f"SELECT k % 9000 AS g, count(*) AS c FROM ({GROUPS}) GROUP BY 1",
    f"SELECT k % 9000 AS g, count(*) AS c FROM ({GROUPS}) GROUP BY 1 ORDER BY c",
    "SELECT k, count(*) AS n FROM people GROUP BY k ORDER BY n",
    "SELECT k, count(*) AS n FROM people GROUP BY k ORDER BY n LIMIT 200",
    "PIVOT people ON s IN ('f', 'm') USING count(*) GROUP BY k",
    "PIVOT (SELECT k % 9000 AS k, s, count(*) AS n FROM people GROUP BY ALL) ON s IN ('f', 'm') USING sum(n) GROUP BY k",
    f"WITH a AS ({GROUPS}) SELECT a.k, b.n FROM a JOIN a AS b USING (k)",
    f"WITH a AS MATERIALIZED (SELECT DISTINCT n, k FROM ({GROUPS})) SELECT k FROM a UNION ALL SELECT n FROM a",
    f"WITH a AS ({GROUPS}) SELECT k FROM a WHERE k IN (SELECT k FROM a WHERE n > 1)",
    f"WITH a AS ({GROUPS}) SELECT k FROM a SEMI JOIN (SELECT k FROM a WHERE n > 1) USING (k)",
    f"SELECT k, n, t FROM ({GROUPS}) JOIN pub USING (k)",
    "SELECT k, count(DISTINCT s) AS c, sum(k % 3) AS f FROM people GROUP BY k",
    "SELECT k % 300 AS a, s, count(*) AS n FROM people GROUP BY CUBE (1, 2)",
)  # fmt: skip


def stored(size: int, order: str, threads: int) -> Guard:
    con = sdcduck.connect(secret="the secret of the tests", threads=threads)
    con.execute(
        f"""CREATE TABLE people AS SELECT i AS id, (i * 7919 % {size})::INTEGER AS k, ['f', 'm'][1 + i % 2] AS s,
        1000 + i % 991 AS income, sdc_record_key(i) AS record_key FROM range({size}) _(i) ORDER BY {order};
        CREATE TABLE pub AS SELECT i::INTEGER AS k, i % 7 AS t FROM range({size}) _(i)"""
    )
    con.execute("FROM sdc_declare_public('pub')").fetchall()
    con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['k', 's'], measures := ['income'])").fetchall()
    return guard(con)


def differing(size: int, queries: tuple[str, ...]) -> list[str]:
    one, *others = (stored(size, order, threads) for threads, order in ((1, "i"), (2, "hash(i)"), (4, "-i")))
    found = []
    for query in queries:
        expected = one.sql(query)
        assert expected.num_rows > 0
        if any(not other.sql(query).equals(expected) for other in others):
            found.append(query)
    return found


def test_threads_and_storage_do_not_show_in_the_order_of_rows() -> None:
    """Tables of 30,000 groups were enough for half of these."""
    assert differing(30_000, QUERIES) == []


def test_nor_with_more_groups_than_a_thread_takes_at_once() -> None:
    assert differing(250_000, (QUERIES[0], QUERIES[10], QUERIES[15], QUERIES[20], QUERIES[-4])) == []


def test_an_order_that_was_asked_for_is_kept() -> None:
    """ORDER BY of a subquery decides on a list of it; rows that it does not tell apart come by all their columns."""
    asked = stored(3000, "i", 2)
    pairs = asked.sql("SELECT k, count(*) AS n FROM people GROUP BY k").to_pydict()
    by_number = sorted(zip(pairs["k"], pairs["n"], strict=True), key=lambda pair: (-pair[1], pair[0]))
    assert len({n for _, n in by_number}) > 1
    inner = "SELECT k, count(*) AS n FROM people GROUP BY k ORDER BY n DESC"
    assert asked.sql(inner)["k"].to_pylist() == [k for k, _ in by_number]
    assert asked.sql(f"SELECT list(k) AS l FROM ({inner})").to_pylist() == [{"l": [k for k, _ in by_number]}]
    numbered = asked.sql(f"SELECT k, row_number() OVER () AS r FROM ({inner})").to_pydict()
    assert dict(zip(numbered["r"], numbered["k"], strict=True)) == {
        place: k for place, (k, _) in enumerate(by_number, 1)
    }
    ranks = asked.sql("SELECT k, rank() OVER (ORDER BY count(*)) AS r FROM people GROUP BY k").to_pydict()["r"]
    assert len(set(ranks)) == len({n for _, n in by_number})


@pytest.mark.parametrize(
    ("query", "sorts"),
    [
        (GROUPS, 1),
        (f"{GROUPS} ORDER BY k", 1),
        (f"SELECT DISTINCT n FROM ({GROUPS})", 1),
        (f"SELECT n, count(*) AS c FROM ({GROUPS}) GROUP BY n", 2),
        (f"SELECT sum(k / 7) AS s FROM ({GROUPS})", 1),
        (f"SELECT sum(k / 7) AS s FROM ({GROUPS} ORDER BY n)", 2),
        (f"SELECT sum(k / 7) AS s FROM (SELECT DISTINCT k, n FROM ({GROUPS}))", 1),
    ],
)
def test_groups_are_sorted_once_where_that_will_do(query: str, sorts: int) -> None:
    """Always before something is added up, or the last digits would follow the order of records."""
    assert stored(100, "i", 1).rewrite(query).count("ORDER BY") == sorts
