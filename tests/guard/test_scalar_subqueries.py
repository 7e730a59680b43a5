"""Scalar subqueries that are tied to each record: what DuckDB says, with the noise of the records that they keep."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from visits_database import answer, answer_of_duckdb, made

import sdcduck
from sdcduck.guard import Guard, Refused

_VISITS_OF = "FROM visits v WHERE v.id = p.id"
EQUAL = [
    "SELECT diagnosis, count(*) FROM visits v WHERE day = (SELECT min(day) FROM visits w WHERE w.id = v.id) GROUP BY diagnosis",
    "SELECT diagnosis, sum(cost) FROM visits v WHERE (SELECT max(w.day) FROM visits w WHERE v.id = w.id) = v.day AND diagnosis <> 'cut' GROUP BY diagnosis",
    "SELECT diagnosis, count(*) FROM visits v WHERE day > (SELECT min(day) FROM visits w WHERE w.id = v.id AND w.diagnosis = v.diagnosis) GROUP BY diagnosis",
    f"SELECT region, count(*), avg(income) FROM patients p WHERE (SELECT count(*) {_VISITS_OF}) > 3 GROUP BY ALL",
    f"SELECT region, count(*) FROM patients p WHERE 3 < ((SELECT count(*) {_VISITS_OF})) GROUP BY ALL",
    f"SELECT region, count(*) FROM patients p WHERE NOT (SELECT count(*) {_VISITS_OF}) > 3 GROUP BY ALL",
    f"SELECT region, count(*) FROM patients p WHERE (SELECT count(*) {_VISITS_OF}) IN (2, 4) GROUP BY ALL",
    f"SELECT region, count(*) FROM patients p WHERE (SELECT count(*) {_VISITS_OF}) BETWEEN 2 AND 4 OR age > 70 GROUP BY ALL",
    f"SELECT region, count(*) FROM patients p WHERE (SELECT max(day) {_VISITS_OF}) IS NULL GROUP BY ALL",
    f"SELECT region, count(*) FROM patients p WHERE (SELECT bool_or(diagnosis = 'flu') {_VISITS_OF}) GROUP BY ALL",
    f"SELECT region, count(*) FROM patients p WHERE coalesce((SELECT sum(month(day)) {_VISITS_OF}), 0) < 20 GROUP BY ALL",
    f"SELECT region, n, count(*) FROM (SELECT region, (SELECT count(*) {_VISITS_OF}) AS n FROM patients p) GROUP BY ALL",
    f"SELECT n, count(*) FROM (SELECT (SELECT count_if(diagnosis = 'flu') {_VISITS_OF}) AS n FROM patients p) GROUP BY n",
    f"SELECT n, count(*) FROM (SELECT (SELECT date_diff('day', min(day), max(day)) {_VISITS_OF}) // 50 AS n FROM patients p) GROUP BY n",
    f"SELECT n, count(*) FROM (SELECT (SELECT count(*) - count(*) FILTER (WHERE diagnosis = 'cut') {_VISITS_OF}) AS n FROM patients p) GROUP BY n",
    f"SELECT region, sum(t) FROM (SELECT region, (SELECT sum(cost) {_VISITS_OF} AND diagnosis = 'flu') AS t FROM patients p) GROUP BY region",
    f"SELECT n, count(*) FROM (SELECT id, (SELECT count(*) {_VISITS_OF}) AS n FROM patients p QUALIFY row_number() OVER (PARTITION BY id) = 1) GROUP BY n",
    f"SELECT class, count(*) FROM patients p, ages a WHERE p.age = a.age AND (SELECT count(*) {_VISITS_OF} AND diagnosis = 'flu') > a.w GROUP BY class",
    "SELECT class, count(*) FROM visits v JOIN patients p ON p.id = v.id LEFT JOIN ages a ON p.age = a.age WHERE v.day >= (SELECT max(day) - 100 FROM visits w WHERE w.id = v.id) GROUP BY class",
    "SELECT region, avg(income) FROM patients p WHERE (SELECT max(w) FROM ages a WHERE a.age = p.age) > 3 GROUP BY region",
    "SELECT region, count(*) FROM patients p WHERE (SELECT count(*) FROM visits v JOIN visits w ON v.id = w.id WHERE v.id = p.id AND v.day < w.day) > 3 GROUP BY ALL",
    "WITH v AS (SELECT id, count(*) AS n FROM visits GROUP BY id) SELECT region, count(*) FROM patients p WHERE (SELECT max(n) FROM v WHERE v.id = p.id) > 3 GROUP BY region",
    f"SELECT region, count(*) FROM patients p WHERE (SELECT count(*) {_VISITS_OF} AND EXISTS (SELECT 1 FROM visits w WHERE w.id = v.id AND w.diagnosis = 'cut')) > 3 GROUP BY region",
    "SELECT n, count(*) FROM (SELECT id, count(*) AS n FROM visits v WHERE day > (SELECT min(day) FROM visits w WHERE w.id = v.id) GROUP BY id) GROUP BY n",
    f"SELECT region, (SELECT count(*) {_VISITS_OF}) AS n, count(*) FROM patients p GROUP BY ALL",
    f"SELECT region, count(DISTINCT (SELECT count(*) {_VISITS_OF})) FROM patients p GROUP BY region",
    "SELECT class, (SELECT count(*) FROM patients q WHERE q.age = a.age) FROM ages a",
    "SELECT count(*) FROM patients p WHERE (SELECT count(*) FROM visits v WHERE v.diagnosis = p.region) < 3",
    f"SELECT region, count(DISTINCT region), min(age) FROM patients p WHERE (SELECT count(*) {_VISITS_OF}) > 3 GROUP BY region",
]  # fmt: skip


@pytest.mark.parametrize("query", EQUAL)
def test_with_nothing_to_hide_it_is_what_duckdb_says(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


SAME = [
    (
        f"SELECT region, count(*) FROM patients p WHERE (SELECT count(*) {_VISITS_OF}) > 0 GROUP BY region",
        "SELECT region, count(*) FROM patients WHERE id IN (SELECT id FROM visits) GROUP BY region",
    ),
    (
        f"SELECT sum(t) FROM (SELECT (SELECT sum(cost) {_VISITS_OF}) AS t FROM patients p)",
        "SELECT sum(cost) FROM visits",
    ),
    (
        f"SELECT n, count(*) FROM (SELECT (SELECT count(*) {_VISITS_OF}) AS n FROM patients p) WHERE n > 0 GROUP BY n",
        "SELECT n, count(*) FROM (SELECT id, count(*) AS n FROM visits GROUP BY id) GROUP BY n",
    ),
]


@pytest.mark.parametrize(("query", "other"), SAME)
def test_two_ways_to_ask_have_one_answer(noisy: Guard, query: str, other: str) -> None:
    answers = [answer(noisy, text) for text in (query, other)]
    assert answers[0] == answers[1] != answer_of_duckdb(noisy._con, query)


REFUSED = [
    (f"SELECT count(*) FROM patients p WHERE (SELECT sum(cost) {_VISITS_OF}) > 3", "SDC041"),
    (f"SELECT count(*) FROM patients p WHERE (SELECT cost {_VISITS_OF} LIMIT 1) > 3", "SDC044"),
    (f"SELECT count(*) FROM patients p WHERE (SELECT count(*) {_VISITS_OF} LIMIT 1) > 3", "SDC044"),
    (f"SELECT count(*) FROM patients p WHERE (SELECT count(*) {_VISITS_OF} GROUP BY diagnosis) > 3", "SDC044"),
    (f"SELECT count(*) FROM patients p WHERE (SELECT count(*) {_VISITS_OF} HAVING count(*) > 2) > 3", "SDC0"),
    (f"SELECT count(*) FROM patients p WHERE (SELECT count(*) {_VISITS_OF} AND p.age > 50) > 3", "SDC044"),
    (f"SELECT count(*) FROM patients p WHERE (SELECT count(*) + max(p.age) {_VISITS_OF}) > 3", "SDC044"),
    (f"SELECT count(*) FROM patients p WHERE (SELECT rank() OVER () {_VISITS_OF}) > 3", "SDC044"),
    (f"SELECT count(*) FROM patients p WHERE (SELECT string_agg(diagnosis, '') {_VISITS_OF}) > 'a'", "SDC050"),
    ("SELECT count(*) FROM patients p WHERE (SELECT count(*) FROM visits v WHERE v.id > p.id) > 3", "SDC044"),
    (f"SELECT region, (SELECT count(*) {_VISITS_OF}) FROM patients p", "SDC040"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "code"), REFUSED)
def test_others_are_refused(noisy: Guard, query: str, code: str) -> None:
    with pytest.raises(Refused, match=code):
        noisy.sql(query)


def test_the_stricter_of_two_tables_holds() -> None:
    with made("threshold") as con:
        con.execute(
            "FROM sdc_protect('visits', unit := 'id', dimensions := ['diagnosis', 'day'], measures := ['cost'], "
            "population := 'persons', method := 'threshold', min_units := 1000)"
        ).fetchall()
        guard = sdcduck.open_guard(con)
        query = f"SELECT count(*) AS n FROM patients p WHERE (SELECT count(*) {_VISITS_OF}) > 0"
        assert guard.sql(query).to_pylist() == [{"n": None}]
        assert guard.sql("SELECT count(*) AS n FROM patients").to_pylist() == [{"n": 700}]
