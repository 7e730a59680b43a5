"""What Apache Superset 6.1 sends for charts, to the letter, as `make superset-test` met it; here without Superset."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sdcduck
from sdcduck.gateway.postgres.sql import to_duckdb
from sdcduck.guard import Guard, Refused

SPRING = (
    "WHERE joined >= TO_TIMESTAMP('2024-03-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') "
    "AND joined < TO_TIMESTAMP('2024-06-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')"
)
IN_SPRING = "WHERE joined >= TIMESTAMP '2024-03-01' AND joined < TIMESTAMP '2024-06-01'"
QUARTER = "DATE_TRUNC('hour', joined) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM joined) / 15)"


@pytest.fixture(scope="module")
def asked() -> Iterator[Guard]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            "CREATE TABLE people AS SELECT id AS person_id, ['North', 'South', 'East'][1 + id % 3] AS region, "
            "['f', 'm'][1 + id % 2] AS sex, (20 + id * 7 % 60)::INTEGER AS age, "
            "TIMESTAMP '2024-01-01' + to_hours((id * 37 % 8000)::INTEGER) AS joined, "
            "(1000 + id * 7919 % 4000)::INTEGER AS income FROM range(1, 3001) u(id)"
        )
        con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
        con.execute(
            "FROM sdc_protect('people', unit := 'person_id', dimensions := ['region', 'sex', 'age', 'joined'], "
            "measures := ['income'])"
        ).fetchall()
        yield sdcduck.open_guard(con)


@pytest.mark.parametrize(
    ("sent", "plain"),
    [
        ('SELECT region AS region, COUNT(*) AS n, sum(income) AS "SUM(income)" \nFROM public.people GROUP BY region \n LIMIT 1000',
         "SELECT region, count(*), sum(income) FROM people GROUP BY region"),
        ('SELECT region AS region, count(DISTINCT person_id) AS "COUNT_DISTINCT(person_id)" \nFROM public.people GROUP BY region \n'
         " LIMIT 1000", "SELECT region, count(DISTINCT person_id) FROM people GROUP BY region"),
        *((f"SELECT DATE_TRUNC('{part}', joined) AS joined, COUNT(*) AS n \nFROM public.people \n{SPRING} "
           f"GROUP BY DATE_TRUNC('{part}', joined) \n LIMIT 1000",
           f"SELECT date_trunc('{part}', joined), count(*) FROM people WHERE joined >= TIMESTAMP '2024-03-01' "
           "AND joined < TIMESTAMP '2024-06-01' GROUP BY 1") for part in ("year", "quarter", "month", "week", "day")),
        (f"SELECT {QUARTER} AS joined, COUNT(*) AS n \nFROM public.people \n{SPRING} GROUP BY {QUARTER} \n LIMIT 1000",
         f"SELECT joined, count(*) FROM people {IN_SPRING} GROUP BY 1"),
        ("SELECT age AS age, COUNT(*) AS n \nFROM public.people GROUP BY age \nHAVING (COUNT(*) > 50) \n LIMIT 1000",
         "SELECT age, count(*) FROM people GROUP BY age HAVING count(*) > 50"),
        ("SELECT age AS age, COUNT(*) AS n \nFROM public.people \nWHERE region IN ('North', 'South') GROUP BY age ORDER BY age DESC \n"
         " LIMIT 5", "SELECT age, count(*) FROM people WHERE region IN ('North', 'South') GROUP BY age ORDER BY age DESC LIMIT 5"),
        ("SELECT sex AS sex, COUNT(*) AS n \nFROM public.people \nWHERE region ILIKE '%or%' GROUP BY sex \n LIMIT 1000",
         "SELECT sex, count(*) FROM people WHERE region = 'North' GROUP BY sex"),
        ("SELECT sex AS sex, COUNT(*) AS n \nFROM public.people \nWHERE (region NOT IN ('North')) GROUP BY sex \n LIMIT 1000",
         "SELECT sex, count(*) FROM people WHERE region <> 'North' GROUP BY sex"),
        ("SELECT COUNT(*) AS rowcount \nFROM (SELECT region AS region, COUNT(*) AS n \nFROM public.people GROUP BY region \n"
         " LIMIT 1000) AS rowcount_qry", "SELECT 3"),
        ("SELECT CASE WHEN age >= 50 THEN 'old' ELSE 'young' END AS \"old\", COUNT(*) AS n \nFROM public.people "
         "GROUP BY CASE WHEN age >= 50 THEN 'old' ELSE 'young' END \n LIMIT 1000",
         "SELECT if(age >= 50, 'old', 'young'), count(*) FROM people GROUP BY 1"),
        ("SELECT region AS region, SUM(CASE WHEN sex = 'f' THEN 1 ELSE 0 END) AS w \nFROM public.people GROUP BY region \n LIMIT 1000",
         "SELECT region, count(*) FROM people WHERE sex = 'f' GROUP BY region"),
        ("SELECT region AS region, SUM(income) / COUNT(*) AS r \nFROM public.people GROUP BY region \n LIMIT 1000",
         "SELECT region, sum(income) / count(*) FROM people GROUP BY region"),
        ("SELECT region AS region, COUNT(*) AS n \nFROM public.people JOIN (SELECT region AS region__, COUNT(*) AS mme_inner__ \n"
         "FROM public.people GROUP BY region ORDER BY mme_inner__ DESC \n LIMIT 2) AS series_limit ON region = region__ "
         "GROUP BY region ORDER BY n DESC \n LIMIT 1000",
         "SELECT region, count(*) FROM people GROUP BY region ORDER BY count(*) DESC LIMIT 2"),
        ("SELECT DATE_TRUNC('month', joined) AS joined, age AS age, sex AS sex, SUM(income) AS s \nFROM public.people JOIN ("
         f"SELECT age AS age__, sex AS sex__, SUM(income) AS mme_inner__ \nFROM public.people \n{SPRING} GROUP BY age, sex "
         "ORDER BY mme_inner__ DESC \n LIMIT 5) AS series_limit ON age = age__ AND sex = sex__ \n"
         f"{SPRING} GROUP BY DATE_TRUNC('month', joined), age, sex ORDER BY s DESC \n LIMIT 1000",
         "SELECT date_trunc('month', joined), age, sex, sum(income) FROM people WHERE (age, sex) IN (SELECT age, sex FROM "
         f"people {IN_SPRING} GROUP BY age, sex ORDER BY sum(income) DESC LIMIT 5) AND {IN_SPRING[5:]} GROUP BY ALL"),
    ],
)  # fmt: skip
def test_charts(asked: Guard, sent: str, plain: str) -> None:
    def rows(sql: str) -> list[tuple[object, ...]]:
        return sorted((tuple(row.values()) for row in asked.sql(sql).to_pylist()), key=repr)

    assert rows(to_duckdb(sent, "register")) == rows(plain) != []


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("SELECT person_id AS person_id, income AS income \nFROM public.people GROUP BY person_id, income \n LIMIT 1000", "SDC040"),
        ("SELECT\n  *\nFROM people\nLIMIT 101", "SDC045"),
        ('SELECT region AS region, min(income) AS "MIN(income)" \nFROM public.people GROUP BY region \n LIMIT 1000', "SDC050"),
    ],
)  # fmt: skip
def test_what_has_no_answer(asked: Guard, sent: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        asked.sql(to_duckdb(sent, "register"))
    assert refused.value.code == code


def test_texts_that_are_no_moments_are_left_to_the_guard(asked: Guard) -> None:
    for condition in (
        "joined < to_timestamp('of late', 'YYYY')", "joined < to_timestamp(region, 'YYYY')", "joined < to_date('2024', region)",
        "joined < to_timestamp('2024 2024', 'YYYY YYYY')", "joined < to_timestamp('12', 'HH12 \"of\" AM%')",
    ):  # fmt: skip
        with pytest.raises(Refused):
            asked.sql(to_duckdb(f"SELECT count(*) FROM people WHERE {condition}", "register"))
