"""Windows over the rows of one unit: first visits, the time between two, how many there are."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pytest
from visits_database import answer, answer_of_duckdb, protect

import sdcduck
from sdcduck.guard import Guard, Refused

_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_BY_DAY = "OVER (PARTITION BY id ORDER BY day, diagnosis)"
EQUAL = [
    f"SELECT diagnosis, count(*), sum(cost) FROM (SELECT *, row_number() {_BY_DAY} AS nth FROM visits) WHERE nth = 1 GROUP BY ALL",
    f"SELECT diagnosis, count(*) FROM (SELECT * FROM visits QUALIFY row_number() {_BY_DAY} = 1) GROUP BY diagnosis",
    f"SELECT diagnosis, count(*) FROM (SELECT diagnosis, row_number() {_BY_DAY} AS nth FROM visits QUALIFY nth = 2) GROUP BY ALL",
    f"FROM (FROM visits QUALIFY row_number() {_BY_DAY} < 3) SELECT diagnosis, count(*), count(DISTINCT id) GROUP BY diagnosis",
    f"WITH v AS (SELECT id, day, row_number() {_BY_DAY} AS nth FROM visits) SELECT nth, count(*) FROM v GROUP BY nth",
    f"WITH v AS (SELECT id, row_number() {_BY_DAY} AS nth FROM visits) SELECT n, count(*) FROM (SELECT id, max(nth) AS n FROM v GROUP BY id) GROUP BY n",
    "SELECT n, count(*), count(DISTINCT id) FROM (SELECT id, count(*) OVER (PARTITION BY id) AS n FROM visits) GROUP BY n",
    "SELECT n, count(*) FROM (SELECT count(DISTINCT diagnosis) OVER (PARTITION BY id) AS n FROM visits) GROUP BY n",
    "SELECT n, count(*) FROM (SELECT count(cost) OVER (PARTITION BY id) AS n FROM visits) GROUP BY n",
    "SELECT n, count(*) FROM (SELECT count(*) FILTER (WHERE diagnosis = 'flu') OVER (PARTITION BY id ORDER BY day) AS n FROM visits) GROUP BY n",
    "SELECT n, count(*) FROM (SELECT count(*) OVER (PARTITION BY id ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS n FROM visits) GROUP BY n",
    "SELECT n, count(*) FROM (SELECT count(*) OVER (PARTITION BY id ORDER BY year(day) RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS n FROM visits) GROUP BY n",
    "SELECT n, count(*) FROM (SELECT max(month(day)) OVER (PARTITION BY id ORDER BY day, diagnosis ROWS 2 PRECEDING) AS n FROM visits) GROUP BY n",
    "SELECT n, count(*) FROM (SELECT count_if(diagnosis = 'flu') OVER (PARTITION BY id ORDER BY day, diagnosis ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS n FROM visits) GROUP BY n",
    "SELECT n, count(*) FROM (SELECT row_number() OVER (PARTITION BY id ORDER BY day, diagnosis ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS n FROM visits) GROUP BY n",
    "SELECT last, count(*) FROM (SELECT max(day) OVER (PARTITION BY id) = day AS last FROM visits) GROUP BY last",
    "SELECT m, count(*) FROM (SELECT sum(month(day)) OVER (PARTITION BY id ORDER BY day) // 10 AS m FROM visits) GROUP BY m",
    "SELECT gap // 50, count(*) FROM (SELECT day - lag(day) OVER (PARTITION BY id ORDER BY day) AS gap FROM visits) GROUP BY 1",
    "SELECT gap // 50, count(*) FROM (SELECT lead(day, 2) OVER (PARTITION BY id ORDER BY day DESC) - day AS gap FROM visits) GROUP BY 1",
    f"SELECT before, diagnosis, count(*) FROM (SELECT diagnosis, lag(diagnosis, 1, 'none') {_BY_DAY} AS before FROM visits) GROUP BY ALL",
    "SELECT before, count(*) FROM (SELECT lag(day, 1, '2020-01-01') OVER (PARTITION BY id ORDER BY day) AS before FROM visits) GROUP BY before",
    f"SELECT before, count(*) FROM (SELECT lag(diagnosis, 2, upper(diagnosis)) {_BY_DAY} AS before FROM visits) GROUP BY before",
    "SELECT before, count(*) FROM (SELECT lead(month(day) / 2, 1, -1) OVER (PARTITION BY id ORDER BY day) AS before FROM visits) GROUP BY before",
    f"SELECT first, diagnosis, count(*) FROM (SELECT diagnosis, first_value(diagnosis) {_BY_DAY} AS first FROM visits) GROUP BY ALL",
    f"SELECT last, diagnosis, count(*) FROM (SELECT diagnosis, last_value(diagnosis) OVER (PARTITION BY id ORDER BY day, diagnosis {_WHOLE}) AS last FROM visits) GROUP BY ALL",
    f"SELECT x, diagnosis, count(*) FROM (SELECT diagnosis, first_value(CASE WHEN month(day) > 6 THEN diagnosis END IGNORE NULLS) OVER (PARTITION BY id ORDER BY day, diagnosis {_WHOLE}) AS x FROM visits) GROUP BY ALL",
    f"SELECT x, diagnosis, count(*) FROM (SELECT diagnosis, nth_value(diagnosis, 2) OVER (PARTITION BY id ORDER BY day, diagnosis {_WHOLE}) AS x FROM visits) GROUP BY ALL",
    f"SELECT before, diagnosis, count(*) FROM (SELECT diagnosis, lag(CASE WHEN month(day) > 6 THEN diagnosis END IGNORE NULLS) {_BY_DAY} AS before FROM visits) GROUP BY ALL",
    "SELECT before, diagnosis, count(*) FROM (SELECT diagnosis, lead(diagnosis RESPECT NULLS) OVER w AS before FROM visits WINDOW w AS (PARTITION BY id ORDER BY day, diagnosis)) GROUP BY ALL",
    "SELECT n, k, m, count(*) FROM (SELECT rank() OVER (W ORDER BY year(day)) AS n, count(*) OVER w AS k, dense_rank() OVER y AS m FROM visits WINDOW w AS (PARTITION BY id), y AS (w ORDER BY month(day))) GROUP BY ALL",
    "SELECT diagnosis, count(*) FROM (FROM visits WINDOW w AS (PARTITION BY id ORDER BY day, diagnosis) QUALIFY row_number() OVER w = 1) GROUP BY diagnosis",
    "SELECT r, count(*) FROM (SELECT rank() OVER (PARTITION BY id, diagnosis ORDER BY year(day) DESC) AS r FROM visits) GROUP BY r",
    "SELECT diagnosis, count(*) FROM (SELECT DISTINCT ON (id) * FROM visits ORDER BY id, day, diagnosis) GROUP BY diagnosis",
    "SELECT d, y, count(*), sum(cost) FROM (SELECT DISTINCT ON (v.id, y) diagnosis AS d, year(day) AS y, cost FROM visits v JOIN patients p ON v.id = p.id WHERE region <> 'n' ORDER BY day DESC, d) GROUP BY ALL",
    "SELECT n, count(*) FROM (SELECT row_number() OVER (PARTITION BY id ORDER BY id, day, diagnosis) AS n FROM visits) GROUP BY n",
    "SELECT before // 50, count(*) FROM (SELECT lag(day - DATE '2024-01-01', 1, 0) OVER (PARTITION BY id ORDER BY day) AS before FROM visits) GROUP BY 1",
    "SELECT r, count(*) FROM (SELECT dense_rank() OVER (PARTITION BY id ORDER BY year(day)) AS r FROM visits) GROUP BY r",
    "SELECT r > 0.5, count(*) FROM (SELECT percent_rank() OVER (PARTITION BY id ORDER BY day) + cume_dist() OVER (PARTITION BY id ORDER BY day) AS r FROM visits) GROUP BY 1",
    f"SELECT region, nth, count(*) FROM (SELECT region, row_number() {_BY_DAY} AS nth FROM patients JOIN visits USING (id)) GROUP BY ALL",
    "SELECT region, n, sum(income) FROM (SELECT region, income, count(v.id) OVER (PARTITION BY p.id) AS n FROM patients p LEFT JOIN visits v ON p.id = v.id) GROUP BY ALL",
    f"SELECT nth, sum(cost), avg(fee) FROM (SELECT cost, fee, row_number() {_BY_DAY} AS nth FROM visits WHERE diagnosis <> 'cut') WHERE nth < 4 GROUP BY nth",
    f"SELECT region, count(*) FROM patients WHERE id IN (SELECT id FROM visits QUALIFY row_number() {_BY_DAY} > 4) GROUP BY region",
    "SELECT n, sum(t) FROM (SELECT t, row_number() OVER (PARTITION BY id ORDER BY y) AS n FROM (SELECT id, year(day) AS y, sum(cost) AS t FROM visits GROUP BY ALL)) GROUP BY n",
]  # fmt: skip


@pytest.mark.parametrize("query", EQUAL)
def test_with_nothing_to_hide_it_is_what_duckdb_says(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


@pytest.mark.parametrize("query", EQUAL)
def test_with_noise_it_gives_away_no_unit(noisy: Guard, query: str) -> None:
    found = noisy.explain(query)
    assert found.answered, found.notes
    assert not {column.kind for column in found.columns} - {"group", "perturbed"}


SAME = [
    (
        "SELECT avg(gap), median(gap) FROM (SELECT day - lag(day) OVER (PARTITION BY id ORDER BY day) AS gap FROM visits)",
        "SELECT avg(gap), median(gap) FROM (SELECT date_diff('day', lag(day) OVER (PARTITION BY id ORDER BY day), day) AS gap FROM visits)",
    ),
    (
        "SELECT sum(cost), sum(fee) FROM visits",
        "SELECT sum(cost), sum(fee) FROM (SELECT *, count(*) OVER (PARTITION BY id) AS n FROM visits)",
    ),
    (
        "SELECT sum(cost), sum(fee) FROM visits",
        "SELECT sum(t), sum(f) FROM (SELECT t, f, rank() OVER (PARTITION BY id ORDER BY y) AS r FROM (SELECT id, year(day) "
        "AS y, sum(cost) AS t, sum(fee) AS f FROM visits GROUP BY ALL))",
    ),
    (
        "SELECT count(DISTINCT id) FROM visits",
        "SELECT count(*) FROM (FROM visits QUALIFY row_number() OVER (PARTITION BY id ORDER BY day) = 1)",
    ),
    (
        "SELECT first, count(*) FROM (SELECT min(day) AS first FROM visits GROUP BY id) GROUP BY first",
        "SELECT day, count(*) FROM (FROM visits QUALIFY row_number() OVER (PARTITION BY id ORDER BY day) = 1) GROUP BY day",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("query", "other"), SAME)
def test_two_ways_to_ask_have_one_answer(noisy: Guard, query: str, other: str) -> None:
    answers = [answer(noisy, text) for text in (query, other)]
    assert answers[0] == answers[1]


REFUSED = [
    ("SELECT *, row_number() OVER (PARTITION BY id ORDER BY day) AS n FROM visits", "SDC040", ""),
    ("SELECT n, count(*) FROM (SELECT row_number() OVER (ORDER BY day) AS n FROM visits) GROUP BY n", "SDC045", "PARTITION BY the unit"),
    ("SELECT n, count(*) FROM (SELECT count(*) OVER (PARTITION BY diagnosis) AS n FROM visits) GROUP BY n", "SDC045", "PARTITION BY the unit"),
    ("SELECT n, count(*) FROM (SELECT count(*) OVER (PARTITION BY v.id) AS n FROM patients p LEFT JOIN visits v ON p.id = v.id) GROUP BY n", "SDC045", "PARTITION BY the unit"),
    ("SELECT n, count(*) FROM (SELECT count(*) OVER (PARTITION BY id % 7) AS n FROM visits) GROUP BY n", "SDC045", "PARTITION BY the unit"),
    ("SELECT n, count(*) FROM (SELECT row_number() OVER (PARTITION BY id ORDER BY cost) AS n FROM visits) GROUP BY n", "SDC041", "cost"),
    ("SELECT n, count(*) FROM (SELECT row_number() OVER (PARTITION BY id, cost) AS n FROM visits) GROUP BY n", "SDC041", "cost"),
    ("SELECT n, count(*) FROM (SELECT lag(cost) OVER (PARTITION BY id ORDER BY day) AS n FROM visits) GROUP BY n", "SDC041", "cost"),
    ("SELECT n, count(*) FROM (SELECT lag(diagnosis, 1, cost) OVER (PARTITION BY id ORDER BY day) AS n FROM visits) GROUP BY n", "SDC041", "cost"),
    ("SELECT n, count(*) FROM (SELECT lag(diagnosis, month(day)) OVER (PARTITION BY id ORDER BY day) AS n FROM visits) GROUP BY n", "SDC045", "no number"),
    ("SELECT n, count(*) FROM (SELECT lag(month(day), 1, diagnosis) OVER (PARTITION BY id ORDER BY day) AS n FROM visits) GROUP BY n", "SDC045", "another type"),
    ("SELECT n, count(*) FROM (SELECT lag(month(day), 99999999999999999999) OVER (PARTITION BY id ORDER BY day) AS n FROM visits) GROUP BY n", "SDC045", "no number"),
    ("SELECT n, count(*) FROM (SELECT lag(id) OVER (PARTITION BY id ORDER BY day) AS n FROM visits) GROUP BY n", "SDC040", "the unit"),
    ("SELECT sum(n) FROM (SELECT sum(cost) OVER (PARTITION BY id) AS n FROM visits)", "SDC041", "sum over"),
    ("SELECT n, count(*) FROM (SELECT max(cost) OVER (PARTITION BY id) AS n FROM visits) GROUP BY n", "SDC041", ""),
    ("SELECT n, count(*) FROM (SELECT count(*) FILTER (cost > 5) OVER (PARTITION BY id) AS n FROM visits) GROUP BY n", "SDC041", "cost"),
    ("SELECT n, count(*) FROM (SELECT count(*) OVER (PARTITION BY id ORDER BY day RANGE 1 PRECEDING) AS n FROM visits) GROUP BY n", "SDC045", "a frame"),
    ("SELECT n, count(*) FROM (SELECT count(*) OVER (PARTITION BY id ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES) AS n FROM visits) GROUP BY n", "SDC045", "EXCLUDE"),
    ("SELECT n, count(*) FROM (SELECT count(*) OVER (PARTITION BY id ORDER BY day ROWS month(day) PRECEDING) AS n FROM visits) GROUP BY n", "SDC045", "a frame"),
    ("SELECT n, count(*) FROM (SELECT rank() OVER w AS n FROM visits WINDOW w AS (PARTITION BY diagnosis)) GROUP BY n", "SDC045", "PARTITION BY the unit"),
    ("SELECT n, count(*) FROM (SELECT rank() OVER w AS n FROM visits WINDOW w AS (PARTITION BY id ORDER BY cost)) GROUP BY n", "SDC041", "cost"),
    ("SELECT n, count(*) FROM (SELECT row_number() OVER (w ORDER BY day) AS n FROM visits WINDOW w AS (PARTITION BY id ORDER BY diagnosis)) GROUP BY n", "SDC0", ""),
    ("SELECT n, count(*) FROM (SELECT row_number() OVER w AS n FROM visits WINDOW w AS (w)) GROUP BY n", "SDC0", ""),
    ("SELECT n, count(*) FROM (SELECT row_number() OVER v AS n FROM visits WINDOW w AS (PARTITION BY id)) GROUP BY n", "SDC0", ""),
    ("SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY id ORDER BY day) AS n FROM visits HAVING true)", "SDC0", ""),
    ("SELECT n, count(*) FROM (SELECT last_value(diagnosis) OVER (PARTITION BY id ORDER BY day) AS n FROM visits) GROUP BY n", "SDC045", "last"),
    ("SELECT n, count(*) FROM (SELECT first_value(diagnosis IGNORE NULLS) OVER (PARTITION BY id ORDER BY day) AS n FROM visits) GROUP BY n", "SDC045", "first"),
    ("SELECT n, count(*) FROM (SELECT nth_value(diagnosis, 2) OVER (PARTITION BY id ORDER BY day) AS n FROM visits) GROUP BY n", "SDC045", "nth_value"),
    ("SELECT n, count(*) FROM (SELECT max(day IGNORE NULLS) OVER (PARTITION BY id) AS n FROM visits) GROUP BY n", "SDC0", ""),
    ("SELECT n, count(*) FROM (SELECT list(diagnosis) OVER (PARTITION BY id) AS n FROM visits) GROUP BY n", "SDC050", ""),
    ("SELECT count(*) FROM (FROM visits QUALIFY row_number() OVER (PARTITION BY id ORDER BY day) = 1 ORDER BY day LIMIT 5)", "SDC045", "order"),
    ("SELECT count(*) FROM (FROM visits QUALIFY sum(cost) OVER (PARTITION BY id) > 9)", "SDC041", "sum"),
    ("SELECT DISTINCT ON (id) diagnosis FROM visits ORDER BY id, day", "SDC040", ""),
    ("SELECT count(*) FROM (SELECT DISTINCT ON (diagnosis) * FROM visits ORDER BY day)", "SDC045", "PARTITION BY the unit"),
    ("SELECT count(*) FROM (SELECT DISTINCT ON (id) * FROM visits ORDER BY ALL)", "SDC045", "order by all"),
    ("SELECT count(*) FROM (SELECT DISTINCT ON (id) * FROM visits ORDER BY cost)", "SDC041", "cost"),
    ("SELECT count(*) FROM (SELECT DISTINCT ON (id) * FROM visits ORDER BY day LIMIT 5)", "SDC005", "DISTINCT ON"),
    ("SELECT count(*) FROM (FROM visits QUALIFY cost > 5)", "SDC", ""),
]  # fmt: skip


@pytest.mark.parametrize(("query", "code", "detail"), REFUSED)
def test_other_windows_over_records_are_refused(noisy: Guard, query: str, code: str, detail: str) -> None:
    with pytest.raises(Refused, match=code) as refused:
        noisy.sql(query)
    assert detail.lower() in str(refused.value).lower()


def test_ties_are_decided_by_what_is_there(plain: duckdb.DuckDBPyConnection, exact: Guard) -> None:
    # All days of a year are one: which of the rows comes first would be up to threads.
    query = """SELECT d, count(*) AS n, sum(c) AS c FROM (SELECT diagnosis AS d, cost AS c,
        row_number() OVER (PARTITION BY id ORDER BY year(day)) AS nth FROM visits) WHERE nth = 1 GROUP BY d"""
    wanted = answer_of_duckdb(plain, query.replace("year(day)", "year(day), day, diagnosis"))
    assert answer(exact, query) == wanted


def test_ties_in_all_that_can_be_asked_do_not_hang_on_the_order_of_rows() -> None:
    answers = []
    for order in ("i", "-i", "i * 7919 % 1000"):
        with sdcduck.connect(secret="the secret of the tests") as con:
            con.execute(f"""CREATE TABLE visits AS SELECT i % 100 AS id, 'a' AS ward, i * 31 % 97 AS cost, i / 7 AS fee
                FROM range(1000) t(i) ORDER BY {order}""")
            con.execute("FROM sdc_add_record_key('visits', unit := 'id')").fetchall()
            con.execute(
                "FROM sdc_protect('visits', unit := 'id', dimensions := ['ward'], measures := ['cost', 'fee'])"
            ).fetchall()
            first = "SELECT cost, fee, row_number() OVER (PARTITION BY id ORDER BY ward) AS nth FROM visits"
            answers.append(
                sdcduck.open_guard(con).sql(f"SELECT sum(cost) AS c, sum(fee) AS f FROM ({first}) WHERE nth = 1")
            )
    assert answers[0].equals(answers[1])
    assert answers[0].equals(answers[2])


@pytest.mark.parametrize(("of", "default"), [("month(day)::TINYINT", "1000 * month(day)"), ("month(day)", "'x'")])
def test_a_default_that_cannot_be_cast_is_no_error(exact: Guard, of: str, default: str) -> None:
    # An error would tell that there is somebody for whom it is looked at.
    window = f"lag({of}, 1, {default}) OVER (PARTITION BY id ORDER BY day)"
    answer = exact.sql(f"SELECT count(*) AS n FROM (SELECT {window} AS before FROM visits) WHERE before IS NOT NULL")
    assert answer.to_pylist()[0]["n"] > 0


TIED = [
    # Which of two rows is the first must not hang on a measure where something else is seen of them: another measure
    # that is missing, a unit that is missing, a value that is equal and yet not the same.
    "SELECT count(*) FROM (SELECT b, row_number() OVER (PARTITION BY id) AS r FROM (SELECT id, a, b FROM v)) WHERE r = 1 AND b IS NULL",
    "SELECT count(*) FROM (SELECT z, row_number() OVER (PARTITION BY id) AS r FROM (SELECT id, a, z FROM (SELECT id, nth, sum(a) AS a, sum(a) FILTER (nth = 1) AS z FROM v GROUP BY id, nth))) WHERE r = 1 AND z IS NULL",
    "SELECT count(*) FROM (SELECT f, row_number() OVER (PARTITION BY id) AS r FROM (SELECT v.id, f.id AS f, a FROM v LEFT JOIN (SELECT id, nth FROM v WHERE nth = 1) f ON v.id = f.id AND v.nth = f.nth)) WHERE r = 1 AND f IS NULL",
    "SELECT x, count(*) FROM (SELECT x::VARCHAR AS x, row_number() OVER (PARTITION BY id ORDER BY x) AS r FROM (SELECT id, a, x FROM v)) WHERE r = 1 GROUP BY x",
    "SELECT x, count(*) FROM (SELECT first(x ORDER BY x)::VARCHAR AS x FROM (SELECT id, a, x FROM v) GROUP BY id) GROUP BY x",
    "SELECT x, count(*) FROM (SELECT min(x)::VARCHAR AS x FROM (SELECT id, a, x FROM v) GROUP BY id) GROUP BY x",
    "SELECT k, count(*) FROM (SELECT length(replace(c, 'a', '')) AS k, row_number() OVER (PARTITION BY id ORDER BY c) AS r FROM (SELECT id, a, c FROM v)) WHERE r = 1 GROUP BY k",
]  # fmt: skip


@pytest.mark.parametrize("query", TIED)
def test_no_measure_decides_what_is_seen(query: str) -> None:
    answers = []
    for a, order in (("i * 31 % 97", "i"), ("i * 17 % 89", "i"), ("i * 31 % 97", "-i")):
        with sdcduck.connect(secret="the secret of the tests") as con:
            con.execute(f"""CREATE TABLE v AS SELECT i // 2 AS id, i % 2 AS nth, {a} AS a, CASE WHEN i % 2 = 0 THEN i END AS b,
                (['0.0', '-0.0'][1 + i % 2])::DOUBLE AS x, ['a', 'A'][1 + i % 2] AS c FROM range(400) t(i) ORDER BY {order}""")
            con.execute("ALTER TABLE v ALTER c TYPE VARCHAR COLLATE NOCASE")
            protect(con, "v", "['nth', 'x', 'c']", "['a', 'b']", "threshold")
            guard = sdcduck.open_guard(con)
            try:
                answers.append(answer(guard, query))
            except Refused as refused:
                answers.append([(refused.code,)])
    assert answers[0] == answers[1] == answers[2]
