"""range and generate_series beside released numbers: what DuckDB says, and of constants only."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from visits_database import answer

from sdcduck.guard import Guard, Refused

_BY_MONTH = "(SELECT date_trunc('month', day) AS m, count(*) AS n FROM visits WHERE day < DATE '2024-10-01' GROUP BY m)"
_MONTHS = "range(DATE '2024-01-01', DATE '2025-01-01', INTERVAL 1 MONTH)"

ANSWERED = [
    "SELECT n FROM range(3) t(n)",
    "SELECT * FROM range(3)",
    "SELECT generate_series FROM generate_series(1, 3)",
    "SELECT unnest(range(3)) AS x",
    "SELECT range(3) AS x, generate_series(1, 3) AS y",
    "SELECT a.i, b.j FROM range(3) a(i), generate_series(5, 1, -2) b(j)",
    "SELECT diagnosis, range(2) AS r, unnest(range(2)) AS u FROM kinds",
    f"SELECT d.m, c.n FROM {_MONTHS} d(m) LEFT JOIN {_BY_MONTH} c USING (m)",
    f"WITH months AS (SELECT m::DATE AS m FROM {_MONTHS} d(m)) SELECT months.m, coalesce(n, 0) AS n FROM months LEFT JOIN {_BY_MONTH} c ON months.m = c.m",
    "SELECT d.m, n FROM generate_series(TIMESTAMP '2024-01-01', TIMESTAMP '2024-03-31', INTERVAL '7 days') AS d(m), (SELECT count(*) AS n FROM visits) c",
    "SELECT d.m, n FROM generate_series(TIMESTAMP '2024-03-01 12:00:00', TIMESTAMP '2024-01-01', -INTERVAL '1' DAY) AS d(m), (SELECT count(*) AS n FROM visits) c",
    "SELECT count(*) AS n FROM patients JOIN range(20, 40) a(age) USING (age)",
    "SELECT a.age, count(p.id) AS n FROM range(0, 100) a(age) LEFT JOIN patients p ON p.age = a.age GROUP BY a.age",
    "SELECT count(*) AS n FROM patients WHERE age IN (SELECT * FROM range(20, 30))",
    # Calendars of dashboards: up to today, and of the days that are published.
    "SELECT CAST(unnest(generate_series(date_trunc('month', CURRENT_DATE - INTERVAL '6' MONTHS), "
    "date_trunc('month', CURRENT_DATE - INTERVAL '1' MONTH), INTERVAL '1' MONTH)) AS DATE) AS m",
    "WITH r AS (SELECT range AS d FROM range(CURRENT_DATE - INTERVAL 7 DAY, CURRENT_DATE, INTERVAL 1 DAY)) "
    "SELECT r.d, coalesce(n, 0) AS n FROM r LEFT JOIN (SELECT day, count(*) AS n FROM visits GROUP BY day) s ON s.day = r.d",
    "SELECT unnest(generate_series(date_trunc('month', min(day)), date_trunc('month', max(day)), CAST('1 month' AS INTERVAL))) AS m FROM visits",
    "SELECT d.m, count(v.day) AS n FROM generate_series(date_trunc('year', DATE '2024-05-01'), DATE '2024-12-01', '1 month'::INTERVAL) d(m) "
    "LEFT JOIN visits v ON date_trunc('month', v.day) = d.m GROUP BY 1",
]


@pytest.mark.parametrize("query", ANSWERED)
def test_series_are_what_they_are_in_duckdb(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


def test_a_series_without_a_name_for_its_column_has_that_of_the_table(exact: Guard) -> None:
    assert answer(exact, "SELECT month FROM generate_series(1, 3) month") == [("1",), ("2",), ("3",)]
    assert answer(exact, "SELECT * FROM range(3, 3) t(n)") == []


@pytest.mark.parametrize("method", ["exact", "noisy"])
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM range(1000000)", "SDC002: .*10000 values"),
        ("SELECT * FROM range(DATE '0001-01-01', DATE '9999-01-01', INTERVAL 1 DAY)", "SDC002: .*10000 values"),
        ("SELECT generate_series(1, 1000000)", "SDC002: .*10000 values"),
        (
            "SELECT count(*) FROM range(CURRENT_DATE - INTERVAL 100 YEAR, CURRENT_DATE, INTERVAL 1 DAY)",
            "SDC002: .*10000",
        ),
        (
            "SELECT * FROM range(CURRENT_DATE, CURRENT_DATE, '1 fortnight'::INTERVAL)",
            "by steps of anything but a constant",
        ),
        ("SELECT range(1, n, n) FROM (SELECT count(*) AS n FROM patients)", "by steps of anything but a constant"),
        ("SELECT count(*) FROM patients, range(age) t(i)", "SDC044"),
        ("SELECT count(*) FROM patients WHERE len(range(age)) > 3", "SDC010: .*range of single records"),
        ("SELECT * FROM range(1, 3, 0)", "of anything but constants"),
        ("SELECT * FROM range(DATE '2024-01-01', DATE '2024-02-01', INTERVAL 0 DAY)", "of anything but constants"),
        ("SELECT * FROM range(DATE 'infinity', DATE '2024-02-01', INTERVAL 1 DAY)", "of anything but constants"),
        ("SELECT (5).generate_series()", "SDC006"),
        ("SELECT main.range(5)", "SDC010"),
        ("SELECT * FROM main.range(5)", "SDC021"),
        ("SELECT * FROM range(3) WITH ORDINALITY t(i, j)", "SDC021"),
        ("SELECT count(*) FROM patients, range(2) t(i)", "SDC034"),
    ],
)
def test_other_series_are_refused(request: pytest.FixtureRequest, method: str, query: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        request.getfixturevalue(method).sql(query)
