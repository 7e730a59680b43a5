"""Groups by dates and moments under `method := 'dp'`: the custodian declares the first and the last day there may be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import duckdb
import pytest
from sqlglot import parse_one

import sdcduck
from sdcduck.guard import Guard, Refused
from sdcduck.guard.protect.numbers_of_days import number_of_days
from sdcduck.guard.protect.scope import Scope

pytest.importorskip("opendp")

PEOPLE = """SELECT i AS id, ['f', 'm'][1 + i % 2] AS sex, ['n', 's', 'e', 'w'][1 + i // 2 % 4] AS region, (i * 37 % 900)::DOUBLE AS income,
    DATE '2015-01-01' + (i % 3000)::INTEGER AS joined, TIMESTAMP '2022-11-20 03:10:00' + to_minutes(((i * 7919) % 600000)::INTEGER) AS seen
    FROM range(6000) t(i)"""
BOUNDS = "{'income': [0, 1000], 'joined': ['2015-01-01', '2024-12-31'], 'seen': [DATE '2022-01-01', DATE '2024-06-30']}"


def made(path: Path, people: str = PEOPLE, bounds: str = BOUNDS, **other: str) -> Path:
    arguments = {
        "epsilon": "1000",
        "per_question": "30",
        "delta": "1e-6",
        "domains": "{'sex': ['f', 'm'], 'region': ['n', 's', 'e', 'w']}",
    }
    written = "".join(f", {name} := {value}" for name, value in (arguments | other).items())
    with closing(sdcduck.connect(str(path))) as con:
        con.execute(f"CREATE TABLE people AS {people}")
        con.execute(f"""FROM sdc_protect('people', unit := 'id', dimensions := ['sex', 'region', 'joined', 'seen'], measures := ['income'],
            method := 'dp', bounds := {bounds}{written})""").fetchall()  # fmt: skip
    return path


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    with closing(sdcduck.open_guard(made(tmp_path_factory.mktemp("days") / "register"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE people AS {PEOPLE}")
        yield con


QUESTIONS = [
    ("SELECT date_trunc('month', joined), count(*) FROM people WHERE joined >= DATE '2020-01-01' GROUP BY 1", 1, 60),
    ("SELECT extract(year FROM joined), count(*), avg(income) FROM people GROUP BY 1", 1, 11),
    ("SELECT strftime(joined, '%Y-%m'), region, sex, count(*) FROM people GROUP BY ALL", 3, 1815),
    ("SELECT date_trunc('week', joined), region, sex, count(*) FROM people WHERE year(joined) = 2018 GROUP BY ALL", 3, 795),
    ("SELECT joined, count(*) FROM people WHERE joined BETWEEN '2015-01-01' AND '2015-01-10' GROUP BY joined", 1, 10),
    ("SELECT CASE WHEN joined < '2018-01-01' THEN 'old' ELSE 'new' END, count(*) FROM people GROUP BY ALL", 1, 2),
    ("SELECT date_diff('year', joined, DATE '2024-01-01'), count(*) FROM people GROUP BY ALL", 1, 11),
    ("SELECT dayname(seen), count(*) FROM people GROUP BY ALL", 1, 8),
    ("SELECT hour(seen), count(*) FROM people GROUP BY ALL", 1, 25),
    ("SELECT strftime(seen, '%d %H'), count(*) FROM people GROUP BY ALL", 1, 745),
    ("SELECT date_trunc('hour', seen), count(*) FROM people WHERE seen BETWEEN '2023-01-10 12:30:00' AND '2023-01-11 11:10:00' GROUP BY 1", 1, 24),
    ("SELECT CAST(seen AS DATE), count(*) FROM people WHERE seen > '2023-01-10 12:00:00' AND seen <= '2023-01-12 12:00:00' GROUP BY 1", 1, 3),
    ("SELECT date_trunc('month', seen), sex, count(*) FROM people WHERE seen >= '2023-01-10' AND seen < TIMESTAMP '2023-04-01 12:00:00' GROUP BY ALL", 2, 12),
    ("SELECT m, count(*) FROM (SELECT seen, month(joined) AS m FROM people WHERE year(seen) = 2023) WHERE date_trunc('week', seen) > '2023-06-01' GROUP BY m", 1, 13),
    ("SELECT date_trunc('quarter', moment), count(*) FROM (SELECT seen AS moment FROM people WHERE sex = 'f') GROUP BY ALL", 1, 11),
    ("SELECT year(seen), month(seen), count(*) FILTER (WHERE seen < '2023-06-01 10:00:00') FROM people GROUP BY ALL", 2, 31),
    ("SELECT date_part('year', seen), sex, count(*) FROM people GROUP BY ROLLUP (date_part('year', seen), sex)", 2, 17),
    ("SELECT DISTINCT year(joined) FROM people", 1, 11),
    ("SELECT date_trunc('month', first), count(*) FROM (SELECT id, min(seen) AS first FROM people GROUP BY id) GROUP BY 1", 1, 31),
]  # fmt: skip


@pytest.mark.parametrize(("question", "keys", "groups"), QUESTIONS)
def test_each_group_of_the_days_between_the_bounds_is_answered(
    guard: Guard, plain: duckdb.DuckDBPyConnection, question: str, keys: int, groups: int
) -> None:
    """Those of the records with their numbers, and the others with next to nothing; no group of a record is left out."""
    wanted = {row[:keys]: row[keys:] for row in plain.execute(question).fetchall()}
    rows = [tuple(row.values()) for row in guard.sql(question).to_pylist()]
    assert len(rows) == groups
    found = {row[:keys]: row[keys:] for row in rows if "ROLLUP" not in question or row[1] is not None}
    for key, numbers in wanted.items():
        if key in found:
            assert found[key] == pytest.approx(tuple(map(float, numbers)), rel=0.1, abs=6)
        else:
            assert "ROLLUP" in question
    for key in found.keys() - wanted.keys():
        assert not found[key] or abs(found[key][0]) < 6


@pytest.mark.parametrize(
    "number",
    [
        "avg(2026 - year(joined))", "avg(date_diff('day', joined, DATE '2026-01-01'))", "sum(date_diff('month', DATE '2000-01-01', joined))",
        "avg(DATE '2026-01-01' - joined)", "avg(extract(year FROM joined)) FILTER (WHERE sex = 'f')", "avg(datediff('week', joined, DATE '2026-01-01')) / 52",
        "sum(date_diff('quarter', joined, DATE '2020-01-01'))", "avg(CASE WHEN sex = 'm' THEN -year(joined) + 2020 END)", "avg(year(joined) * 2)",
        "avg(date_diff('day', joined, seen))", "avg(date_diff('hour', joined, seen)) / 24", "sum(date_diff('minute', seen, TIMESTAMP '2026-01-01 12:00:00'))",
        "avg(least(date_diff('day', joined, seen), 60))", "avg(greatest(2030 - year(joined), 9))",
        "avg(date_diff('day', joined, coalesce(seen, TIMESTAMP '2024-12-31 12:00:00')))", "avg(year(coalesce(joined, DATE '1990-06-01')))",
        "avg(date_diff('week', DATE '1950-01-01', joined))", "avg(least(greatest(date_diff('day', joined, seen), 5000), 9000))",
    ],
)  # fmt: skip
def test_numbers_of_dates_are_added_up_between_what_they_are_on_the_first_and_the_last_day(
    guard: Guard, plain: duckdb.DuckDBPyConnection, number: str
) -> None:
    [wanted] = plain.execute(f"SELECT {number} FROM people").fetchall()
    [found] = guard.sql(f"SELECT {number} AS x FROM people").to_pylist()
    assert found["x"] == pytest.approx(float(wanted[0]), rel=0.01, abs=0.01)


@pytest.mark.parametrize("sex", ["sex = 'f'", "true"])
@pytest.mark.parametrize(
    "value",
    [
        "date_diff('day', joined, seen)",
        "2026 - year(joined)",
        "least(date_diff('day', joined, DATE '2026-01-01'), 900)",
    ],
)
def test_quantiles_of_numbers_of_dates(guard: Guard, plain: duckdb.DuckDBPyConnection, value: str, sex: str) -> None:
    query = f"SELECT median({value}) FILTER (WHERE {sex}) AS x, quantile_cont({value}, 0.9) AS y FROM people"
    [wanted] = plain.execute(query).fetchall()
    [found] = guard.sql(query).to_pylist()
    assert (found["x"], found["y"]) == pytest.approx(tuple(map(float, wanted)), rel=0.02, abs=12)


@pytest.mark.parametrize("number", ["avg(date_diff('day', joined, seen) - year(joined))", "avg(date_diff('day', joined, joined))", "median(month(joined))",
    "avg(date_diff('microsecond', joined, seen))", "avg(date_diff('day', joined, coalesce(seen, joined)))", "avg(seen - joined)", "median(joined - TIMESTAMP '2020-01-01 12:00:00')", "avg(date_diff('hour', joined, TIMESTAMP '2024-01-01T12:00:00Z'))", "avg(date_diff('day', joined, DATE '20240101'))", "avg(month(joined))", "avg(year(joined) - month(joined))", "avg(year(joined) % 7)", "avg(epoch(seen))", "avg(DATE '2026-01-01' - current_date)"])  # fmt: skip
def test_numbers_that_go_up_and_down_with_the_date_are_refused(guard: Guard, number: str) -> None:
    with pytest.raises(Refused):
        guard.sql(f"SELECT {number} FROM people")


@pytest.mark.parametrize(
    "value",
    [
        "date_diff('week', DATE '1891-07-11', a)", "date_diff('week', s, a)", "date_diff('second', s, TIMESTAMP '1970-01-01 00:00:07')",
        "greatest(least(date_diff('day', a, s), 5000), 0)", "least(greatest(date_diff('hour', s, a), -9), 9) + 7", "-greatest(year(a) - 60, year(s))",
        "least(date_diff('day', a, coalesce(s, TIMESTAMP '2050-12-31 12:00:00')), 30)", "date_diff('day', DATE '2020-01-01 23:00:00', a)", "2030 - year(coalesce(a, DATE '1900-01-01'))",
    ],
)  # fmt: skip
def test_a_number_of_dates_is_between_its_ends_and_comes_to_both(plain: duckdb.DuckDBPyConnection, value: str) -> None:
    days: dict[str, tuple[str, str]] = {"a": ("1958-12-28", "2020-03-03"), "s": ("1969-12-27", "1970-01-18")}
    scope = cast(
        Scope, SimpleNamespace(days_of=lambda column: days.get(column.name), over_dimensions=lambda node: node)
    )
    found = number_of_days(scope, parse_one(value, read="duckdb"))
    moments = """(SELECT a, s FROM (SELECT unnest([NULL, DATE '1958-12-28', '1970-01-03', '2020-03-03']) AS a),
        (SELECT unnest([NULL, TIMESTAMP '1969-12-27', '1970-01-01 00:00:06', '1970-01-18 23:59:59.999999']) AS s))"""
    assert found is not None
    assert plain.execute(f"SELECT min({value}), max({value}) FROM {moments}").fetchall() == [found.ends]


def test_days_beyond_are_a_group_of_their_own(tmp_path: Path) -> None:
    people = """SELECT i AS id, 'f' AS sex, 'n' AS region, 1.0 AS income, seen::DATE AS joined, seen FROM range(400) t(i),
        LATERAL (SELECT [TIMESTAMP '2022-01-01', '2024-06-30 23:59:59.999999', '2024-07-01', '2021-12-31 23:59:59', 'infinity', '-infinity',
        NULL, '290000-01-01'][1 + i % 8] AS seen)"""
    bounds = BOUNDS.replace("'2015-01-01', '2024-12-31'", "'2022-01-01', '2024-06-30'")
    with closing(sdcduck.open_guard(made(tmp_path / "register", people, bounds))) as guard:
        for column in ("joined", "seen"):
            rows = guard.sql(f"SELECT year({column}) AS y, count(*) AS n FROM people GROUP BY y").to_pylist()
            assert {row["y"]: row["n"] for row in rows} == pytest.approx(
                {2022: 50, 2023: 0, 2024: 50, None: 300}, abs=6
            )


def test_what_one_person_has_shows_in_no_group(tmp_path: Path) -> None:
    """Which groups there are, and what is refused, is the same for days within, beyond, at the ends of time, and for none."""
    asked = [question for question, *_ in QUESTIONS[::5]] + ["SELECT seen, count(*) FROM people GROUP BY seen"]
    found = []
    for place, moment in enumerate(
        ("'2023-01-10 12:34:56'", "'2031-01-01'", "'infinity'", "NULL", "'-290000-01-01 (BC)'")
    ):
        one = f"SELECT 7 AS id, NULL AS sex, 'x' AS region, 'nan'::DOUBLE AS income, d::DATE AS joined, d AS seen FROM (SELECT TRY_CAST({moment} AS TIMESTAMP) AS d)"
        people = f"FROM (FROM ({PEOPLE}) LIMIT 100) WHERE id <> 7 UNION ALL BY NAME {one}"
        with closing(sdcduck.open_guard(made(tmp_path / str(place), people))) as guard:
            found.append([])
            for question in asked:
                try:
                    rows = guard.sql(question)
                    found[-1].append((rows.schema, rows.num_rows, rows.column(0).to_pylist()))
                except Refused as refused:
                    found[-1].append(str(refused))
            found[-1].append(guard.sql("SHOW sdc_budget").to_pylist())
    assert all(other == found[0] for other in found)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("SELECT seen, count(*) FROM people GROUP BY seen", "date_trunc('day', seen)"),
        ("SELECT minute(seen), count(*) FROM people GROUP BY 1", "down to hours"),
        ("SELECT date_trunc('minute', seen), count(*) FROM people GROUP BY 1", "down to hours"),
        ("SELECT seen + INTERVAL 1 DAY, count(*) FROM people GROUP BY 1", "down to hours"),
        ("SELECT strftime(seen, '%H:%M'), count(*) FROM people GROUP BY 1", "down to hours"),
    ],
)
def test_finer_than_hours_is_refused_with_what_to_write(guard: Guard, question: str, told: str) -> None:
    with pytest.raises(Refused, match="SDC081") as refused:
        guard.sql(question)
    assert told in str(refused.value)


def test_the_refusal_says_what_the_custodian_has_to_declare(tmp_path: Path) -> None:
    with closing(sdcduck.open_guard(made(tmp_path / "register", bounds="{'income': [0, 1000]}"))) as guard:
        asked = "SELECT year(joined), count(*) FROM people GROUP BY 1"
        with pytest.raises(Refused) as refused:
            guard.sql(asked)
        assert "bounds := {'joined': ['2020-01-01', '2024-12-31']}" in str(refused.value)


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ("{'joined': ['2015-01-01']}", "the first and the last day of 'joined'"),
        ("{'joined': ['2015-01-01', '2015-02-30']}", "the first and the last day of 'joined'"),
        (
            "{'joined': [TIMESTAMP '2015-01-01 10:00:00', TIMESTAMP '2016-01-01 10:00:00']}",
            "the first and the last day",
        ),
        ("{'joined': [2015, 2024]}", "the first and the last day of 'joined'"),
        ("{'joined': [NULL, '2024-12-31']}", "the first and the last day of 'joined'"),
        ("{'joined': ['2024-12-31', '2015-01-01']}", "before the first one"),
        ("{'joined': ['0001-01-01', '2015-01-01']}", "more than 100000 days"),
        ("{'sex': ['2015-01-01', '2016-01-01']}", "not one of the measures"),
    ],
)
def test_bounds_that_are_no_days(tmp_path: Path, bounds: str, told: str) -> None:
    with pytest.raises(duckdb.Error, match=told):
        made(tmp_path / "register", bounds=bounds)


def test_a_column_has_bounds_or_a_domain(tmp_path: Path) -> None:
    with pytest.raises(duckdb.Error, match="both have column 'joined'"):
        made(tmp_path / "register", domains="{'joined': 'private'}")
    with closing(sdcduck.connect(str(tmp_path / "other"))) as con:
        con.execute(f"CREATE TABLE people AS SELECT *, 1::UBIGINT AS record_key FROM ({PEOPLE})")
        other = """FROM sdc_protect('people', unit := 'id', dimensions := ['joined'], method := 'threshold', min_units := 3,
            bounds := {'joined': ['2015-01-01', '2024-12-31']})"""
        with pytest.raises(duckdb.Error, match="not one of the measures"):
            con.execute(other)
