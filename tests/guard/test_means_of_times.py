"""Means of dates, of timestamps and of the time between two: from the published counts of their values."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from private_people import made

import sdcduck
from sdcduck.guard import Guard, Refused

_LATER = "TIMESTAMP '2026-06-01 12:00:00'"
_FLU = "FROM visits WHERE diagnosis = 'flu'"

MEANS = [
    "avg(day)",
    f"avg({_LATER} - day)",
    f"avg((day::TIMESTAMP - {_LATER})) FILTER (WHERE day > DATE '2024-03-01')",
    f"avg(CASE WHEN day < DATE '2025-03-01' THEN {_LATER} - day::TIMESTAMP END)",
    "avg(day::TIMESTAMP + INTERVAL 90 MINUTE)",
]


@pytest.mark.parametrize("mean", MEANS)
def test_they_are_those_of_duckdb(same_as_duckdb: Callable[[str], None], mean: str) -> None:
    # DuckDB leaves more than a day in the hours of an INTERVAL, and has nanoseconds where days are divided.
    same_as_duckdb(
        f"SELECT diagnosis, round(epoch({mean})::DOUBLE, 3) AS s, count(*) AS n FROM visits GROUP BY diagnosis"
    )


def test_of_visits_joined_with_patients(same_as_duckdb: Callable[[str], None]) -> None:
    same_as_duckdb(
        "SELECT region, epoch(avg(day))::BIGINT // 60 AS a FROM patients JOIN visits USING (id) GROUP BY region"
    )


def test_under_noise_they_follow_from_the_published_counts(noisy: Guard) -> None:
    days = noisy.sql(f"SELECT day, count(*) AS n {_FLU} GROUP BY day").to_pylist()
    since = timedelta(
        sum(row["n"] * (row["day"] - date(2024, 1, 1)).days for row in days) / sum(row["n"] for row in days)
    )
    (told,) = noisy.sql(f"SELECT avg(day) AS a, epoch(avg(day - TIMESTAMP '2023-12-31')) AS s {_FLU}").to_pylist()
    assert abs(told["a"] - datetime(2024, 1, 1) - since) < timedelta(milliseconds=1)
    assert told["s"] == pytest.approx((since + timedelta(1)).total_seconds(), abs=1e-3)


def test_of_nobody_there_is_none(exact: Guard, noisy: Guard) -> None:
    nobody = "SELECT avg(day) AS a, avg(day - TIMESTAMP '2024-01-01') AS b FROM visits WHERE diagnosis = 'none'"
    for guard in (exact, noisy):
        assert guard.sql(nobody).to_pylist() == [{"a": None, "b": None}]


@pytest.mark.parametrize("value", ["age(DATE '2026-01-01', day)", "INTERVAL 1 DAY * year(day)"])
def test_what_may_have_months_in_it_is_refused_with_what_to_write(exact: Guard, value: str) -> None:
    with pytest.raises(Refused, match=r"SDC052: .*date_diff\('day', a, b\)"):
        exact.sql(f"SELECT avg({value}) FROM visits")


def test_of_different_days_it_is_refused(exact: Guard) -> None:
    with pytest.raises(Refused, match="SDC051: DISTINCT in an aggregate"):
        exact.sql("SELECT avg(DISTINCT day) FROM visits")


def test_with_differential_privacy_the_refusal_says_what_to_write(tmp_path: Path) -> None:
    with (
        closing(sdcduck.open_guard(made(tmp_path / "people.duckdb"))) as guard,
        pytest.raises(Refused, match="date_diff"),
    ):
        guard.sql("SELECT avg(INTERVAL 1 DAY * age) FROM people")
