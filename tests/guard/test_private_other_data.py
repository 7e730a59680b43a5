"""Under `method := 'dp'` what was drawn once stands for the same question of the same data, and for no other one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused
from sdcduck.guard.releases import Releases

pytest.importorskip("opendp")

COLD = "SELECT count(*) AS n FROM people JOIN weather USING (region) WHERE weather = 'cold'"
GROUPS = "SELECT weather, count(*) AS n FROM people JOIN weather USING (region) GROUP BY weather ORDER BY weather"


def weather(folder: Path, **of: str) -> None:
    """The file that the public view shows."""
    rows = ", ".join(f"('{region}', '{weather}')" for region, weather in of.items())
    duckdb.execute(f"COPY (FROM (VALUES {rows}) t(region, weather)) TO '{folder / 'weather.parquet'}'")


@pytest.fixture
def register(tmp_path: Path) -> Path:
    """A third of 600 people live in the region r1."""
    weather(tmp_path, r0="cold", r1="warm")
    with closing(sdcduck.connect(str(tmp_path / "register"))) as con:
        con.execute("""CREATE TABLE people AS SELECT i AS id, 'r' || (i % 3 % 2) AS region, DATE '2020-01-01' AS since,
            TIMESTAMPTZ '2026-01-01 00:00:00+00' + INTERVAL (i) HOUR AS seen FROM range(600) t(i)""")
        con.execute(f"CREATE VIEW weather AS FROM '{tmp_path / 'weather.parquet'}'")
        con.execute("FROM sdc_declare_public('weather')").fetchall()
        con.execute("""FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'since', 'seen'], method := 'dp',
            neighbours := 'add_remove', epsilon := 1000, delta := 1e-6, per_question := 50,
            domains := {'region': ['r0', 'r1']})""").fetchall()
    return tmp_path / "register"


@contextmanager
def opened(register: Path) -> Iterator[Guard]:
    with closing(sdcduck.open_guard(register, allow_dirs=[register.parent])) as guard:
        yield guard


def numbers(register: Path, query: str) -> tuple[list[dict[str, object]], int]:
    """The answer, and how many questions were charged by then."""
    with opened(register) as guard:
        rows = guard.sql(query).to_pylist()
        return rows, guard.sql("SELECT questions FROM (SHOW sdc_budget)")["questions"][0].as_py()


def near(rows: list[dict[str, object]], *expected: int) -> bool:
    return len(rows) == len(expected) and all(
        abs(int(str(row["n"])) - n) < 50 for row, n in zip(rows, expected, strict=True)
    )


@pytest.mark.parametrize(("query", "before", "after"), [(COLD, [400], [200]), (GROUPS, [400, 200], [200, 400])])
def test_a_public_view_that_shows_other_rows_is_another_question(
    register: Path, query: str, before: list[int], after: list[int]
) -> None:
    first, _ = numbers(register, query)
    assert near(first, *before)
    assert numbers(register, query) == (first, 1)
    weather(register.parent, r0="warm", r1="cold")
    rows, charged = numbers(register, query)
    assert near(rows, *after)
    assert charged == 2
    weather(register.parent, r0="cold", r1="warm")  # as it was: that has been told
    assert numbers(register, query) == (first, 2)


def test_a_day_of_another_time_zone_is_another_question(register: Path) -> None:
    query = "SELECT count(*) AS n FROM people WHERE seen < '2026-01-11 00:00:00'"

    def asked(zone: str) -> list[dict[str, object]]:
        with closing(sdcduck.connect(str(register))) as con:
            con.execute(f"SET GLOBAL TimeZone = '{zone}'")
            return sdcduck.open_guard(con).sql(query).to_pylist()

    utc = asked("UTC")
    assert asked("UTC") == utc
    assert asked("Pacific/Auckland") != utc
    assert asked("UTC") == utc


def test_the_time_until_today_is_no_part_of_a_question(register: Path) -> None:
    with opened(register) as guard:
        with pytest.raises(Refused, match=r"SDC081.*the time of day"):
            guard.sql("SELECT count(*) AS n FROM people WHERE age(since::TIMESTAMP) > INTERVAL 1 YEAR")
        assert near(
            guard.sql(
                "SELECT count(*) AS n FROM people WHERE age(TIMESTAMP '2026-01-01', since::TIMESTAMP) > INTERVAL 1 YEAR"
            ).to_pylist(),
            600,
        )


def test_a_view_that_changes_while_a_question_is_asked_answers_nothing(
    register: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was charged for what the view showed before: what was drawn is thrown away, and the next one asked anew."""
    draw = Releases._draw

    def meanwhile(self: Releases, *given: Any) -> Any:
        weather(register.parent, r0="warm", r1="warm")
        return draw(self, *given)

    with opened(register) as guard:
        monkeypatch.setattr(Releases, "_draw", meanwhile)
        with pytest.raises(Refused, match=r"SDC060.*other rows than when the question was charged"):
            guard.sql(COLD)
    monkeypatch.undo()
    assert near(numbers(register, COLD)[0], 0)
    weather(register.parent, r0="cold", r1="warm")
    assert near(numbers(register, COLD)[0], 400)


@pytest.mark.parametrize("moment", ["now()", "current_date", "of_today()", "current_setting('TimeZone')"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT weather, count(*) AS n FROM people JOIN weather USING (region) GROUP BY weather",
        "SELECT count(*) AS n FROM people WHERE region IN (SELECT region FROM weather WHERE weather = 'cold')",
        "SELECT count(*) AS n FROM people WHERE region = (SELECT max(region) FROM weather)",
        "SELECT count(*) AS n FROM people p, LATERAL (SELECT weather FROM weather w WHERE w.region = p.region) WHERE weather = 'cold'",
    ],
)
def test_a_view_that_knows_the_time_does_not_stand_beside_records(register: Path, query: str, moment: str) -> None:
    """It would be looked at, charged for and drawn from at three times; beside answers it may stand."""
    with closing(sdcduck.connect(str(register))) as con:
        con.execute("CREATE MACRO of_today() AS today()")
        con.execute(f"CREATE VIEW clock AS SELECT 'r' || i AS region, {moment}::VARCHAR AS weather FROM range(2) t(i)")
        con.execute("CREATE OR REPLACE VIEW weather AS SELECT region, weather FROM clock")
    with opened(register) as guard:
        for ask in (guard.sql, guard.dp_preview):
            with pytest.raises(Refused, match=r"SDC081.*'weather', a view that knows the time"):
                ask(query)
        assert guard.sql("SELECT count(*) AS n FROM weather")["n"].to_pylist() == [2]
        beside = "SELECT n FROM (SELECT region, count(*) AS n FROM people GROUP BY region) JOIN weather USING (region)"
        assert near(guard.sql(f"{beside} ORDER BY n").to_pylist(), 200, 400)
