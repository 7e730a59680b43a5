"""EXISTS among the records of one unit: what DuckDB says, with the noise of the records that are kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from visits_database import answer, answer_of_duckdb, made

import sdcduck
from sdcduck.guard import Guard, Refused

_LATER = "SELECT 1 FROM visits w WHERE w.id = v.id AND w.day > v.day"
EQUAL = [
    f"SELECT diagnosis, count(*), sum(cost) FROM visits v WHERE EXISTS ({_LATER} AND w.day <= v.day + 30) GROUP BY diagnosis",
    f"SELECT diagnosis, count(*) FROM visits v WHERE NOT EXISTS ({_LATER}) GROUP BY diagnosis",
    "SELECT diagnosis, count(*) FROM visits v WHERE NOT EXISTS (FROM visits w WHERE v.id = w.id AND w.day < v.day AND w.diagnosis = v.diagnosis) OR diagnosis = 'cut' GROUP BY ALL",
    f"SELECT diagnosis, count(*) FROM visits v WHERE EXISTS ({_LATER} AND w.diagnosis = 'flu') AND EXISTS (FROM visits w WHERE w.id = v.id AND w.day < v.day) GROUP BY diagnosis",
    "SELECT region, count(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits w WHERE w.id = p.id AND month(w.day) > p.age % 12) GROUP BY region",
    "SELECT region, count(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits w WHERE w.id = p.id AND p.age > 50) GROUP BY region",
    "SELECT region, count(*) FROM patients p WHERE EXISTS (FROM visits w JOIN visits x USING (id) WHERE w.id = p.id AND w.day < x.day AND month(w.day) = p.age % 12 AND month(x.day) > p.age % 5) GROUP BY region",
    f"SELECT region, diagnosis, count(*) FROM patients p JOIN visits v ON p.id = v.id WHERE EXISTS ({_LATER}) GROUP BY ALL",
    "SELECT kind, count(*) FROM visits v, kinds k, patients p WHERE p.id = v.id AND v.diagnosis = k.diagnosis AND EXISTS (SELECT 1 FROM visits w WHERE w.id = p.id AND w.diagnosis <> k.diagnosis) GROUP BY kind",
    "SELECT count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM (SELECT id, min(day) AS first FROM visits GROUP BY id) w WHERE w.id = v.id AND v.day > w.first + 100)",
    f"SELECT count(*) FROM visits v WHERE EXISTS ({_LATER} AND EXISTS (SELECT 1 FROM visits x WHERE x.id = w.id AND x.day > w.day))",
    f"SELECT n, count(*) FROM (SELECT id, count(*) AS n FROM visits v WHERE EXISTS ({_LATER}) GROUP BY id) GROUP BY n",
    f"SELECT min(diagnosis), count(DISTINCT diagnosis) FROM visits v WHERE EXISTS ({_LATER})",
    f"SELECT count(*) FROM visits v WHERE EXISTS ({_LATER} AND 1 / (month(w.day) - 3) < month(v.day)::VARCHAR::INTEGER)",
    f"SELECT nth, count(*) FROM (SELECT row_number() OVER (PARTITION BY id ORDER BY day, diagnosis) AS nth FROM visits v WHERE EXISTS ({_LATER})) GROUP BY nth",
]  # fmt: skip


@pytest.mark.parametrize("query", EQUAL)
def test_with_nothing_to_hide_it_is_what_duckdb_says(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


SAME = [
    (
        "SELECT diagnosis, count(*), sum(cost) FROM visits GROUP BY diagnosis",
        "SELECT diagnosis, count(*), sum(cost) FROM visits v WHERE EXISTS (FROM visits w WHERE w.id = v.id AND w.day >= v.day) GROUP BY diagnosis",
    ),
    (
        "SELECT count(DISTINCT id) FROM visits",
        f"SELECT count(DISTINCT id) FROM visits v WHERE NOT EXISTS ({_LATER})",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("query", "other"), SAME)
def test_two_ways_to_ask_have_one_answer(noisy: Guard, query: str, other: str) -> None:
    answers = [answer(noisy, text) for text in (query, other)]
    assert answers[0] == answers[1] != answer_of_duckdb(noisy._con, query)


REFUSED = [
    (f"{_LATER} AND w.cost > 5", "SDC041", "cost"),
    (f"{_LATER} AND w.cost > v.cost", "SDC041", "cost"),
    (f"{_LATER} AND w.cost = v.cost", "SDC041", "cost"),
    ("SELECT 1 FROM visits w WHERE w.day > v.day", "SDC044", "on the unit"),
    ("SELECT 1 FROM visits w WHERE w.id = v.id + 1 AND w.day > v.day", "SDC040", "id is the unit"),
    ("SELECT 1 FROM visits w WHERE w.id = v.id OR w.day > v.day", "SDC040", "id is the unit"),
    ("SELECT 1 FROM visits w WHERE w.id = v.id AND w.id > v.id", "SDC040", "id is the unit"),
    ("SELECT 1 FROM visits w WHERE w.id <> v.id AND w.day > v.day", "SDC040", "id is the unit"),
    ("SELECT 1 FROM visits w WHERE v.id = v.id AND w.day = DATE '2024-01-01'", "SDC04", ""),
    ("SELECT 1 FROM visits w WHERE w.id = w.id AND w.day > v.day", "SDC04", ""),
    ("SELECT 1 FROM visits w JOIN visits x USING (id) WHERE w.id = x.id AND w.day > v.day", "SDC04", ""),
    ("SELECT 1 FROM kinds k WHERE k.diagnosis > v.diagnosis", "SDC044", "more than equality"),
    ("SELECT 1 FROM (SELECT diagnosis, count(*) AS n FROM visits GROUP BY 1) w WHERE w.diagnosis > v.diagnosis", "SDC044", ""),
    (f"{_LATER} GROUP BY w.diagnosis", "SDC044", ""),
    (f"{_LATER} LIMIT 1", "SDC044", ""),
    (f"SELECT count(*) FROM ({_LATER})", "SDC04", ""),
    ("SELECT count(*) FROM visits w WHERE w.id = v.id AND w.day > v.day", "SDC044", ""),
    (f"{_LATER} AND EXISTS (SELECT 1 FROM visits x WHERE x.id = v.id AND x.day > w.day)", "SDC044", ""),
    (f"{_LATER} AND w.day > (SELECT min(day) FROM visits x WHERE x.id = v.id)", "SDC044", ""),
]  # fmt: skip


@pytest.mark.parametrize(("query", "code", "detail"), REFUSED)
def test_others_are_refused(noisy: Guard, query: str, code: str, detail: str) -> None:
    with pytest.raises(Refused, match=code) as refused:
        noisy.sql(f"SELECT count(*) FROM visits v WHERE EXISTS ({query})")
    assert detail in str(refused.value)


def test_the_tie_is_between_what_is_looked_for_and_what_is_around(noisy: Guard) -> None:
    with pytest.raises(Refused, match="SDC04"):  # who is looked for would be anybody
        noisy.sql(
            "SELECT count(*) FROM patients p JOIN visits v ON p.id = v.id WHERE EXISTS "
            "(SELECT 1 FROM visits w WHERE p.id = v.id AND w.day = DATE '2024-01-01')"
        )


def test_records_of_other_populations_are_none_of_this_unit() -> None:
    with made("cell_key") as con:
        con.execute(
            "FROM sdc_protect('visits', unit := 'id', dimensions := ['diagnosis', 'day'], population := 'firms')"
        ).fetchall()
        with pytest.raises(Refused, match="SDC035"):
            sdcduck.open_guard(con).sql(
                "SELECT count(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id AND p.age > 50)"
            )


def test_the_stricter_of_two_tables_holds() -> None:
    with made("threshold") as con:
        con.execute(
            "FROM sdc_protect('visits', unit := 'id', dimensions := ['diagnosis', 'day'], population := 'persons', "
            "method := 'threshold', min_units := 1000)"
        ).fetchall()
        query = "SELECT count(*) AS n FROM patients p WHERE EXISTS (FROM visits v WHERE v.id = p.id AND p.age > 0)"
        assert sdcduck.open_guard(con).sql(query).to_pylist() == [{"n": None}]
