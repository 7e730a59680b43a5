"""Steps of a measure as groups under `method := 'dp'`: which bins there may be follows from bounds and question."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from private_people import RECORDS, made

import sdcduck
from sdcduck.catalog.cost_files import CostFile
from sdcduck.gateway.postgres.sql import to_duckdb
from sdcduck.guard import Guard, Refused

pytest.importorskip("opendp")

DOMAINS = "{'region': ['n', 's', 'e', 'w', 'unknown'], 'age': range(0, 90)}"
TYPES = ("DOUBLE", "FLOAT", "INTEGER", "DECIMAL(9,2)")


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    register = made(tmp_path_factory.mktemp("bins") / "register", domains=DOMAINS, per_question="60")
    with closing(sdcduck.open_guard(register)) as opened:
        yield opened


def plain(question: str, records: str = RECORDS) -> list[tuple[object, ...]]:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE people AS {records}")
        return con.execute(question).fetchall()


def check(guard: Guard, question: str, true: list[tuple[object, ...]], keys: int) -> None:
    """Each group that there is has about its number, within twelve deviations of the noise, and other ones about none."""
    sds = [row["sd"] for row in guard.noise(question).to_pylist()][keys:]
    answered = [tuple(row.values()) for row in guard.sql(question).to_pylist()]
    found = {row[:keys]: row[keys:] for row in answered}
    assert len(found) == len(answered)
    wanted = {row[:keys]: row[keys:] for row in true}
    assert wanted.keys() <= found.keys()
    for key, numbers in found.items():
        for mine, its, sd in zip(numbers, wanted.get(key, (0,) * len(numbers)), sds, strict=True):
            # Of a mean it is not known beforehand: a part of the width of a bin.
            most = 12 * sd if sd else 300
            if its is not None and (key in wanted or isinstance(mine, int)):
                assert float(mine) == pytest.approx(float(its), abs=most), key  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "keys"),
    [
        ("SELECT floor(income / 1000) * 1000 AS b, count(*) FROM people GROUP BY b", 1),
        ("SELECT round(income, -3) AS b, count(*), avg(income) FROM people WHERE age < 80 GROUP BY b", 1),
        ("SELECT CAST(ceil((income - 500) / 1500) AS INTEGER) AS b, ill, count(*) FROM people GROUP BY ALL", 2),
        ("SELECT trunc(-income * 0.001) AS b, count(*) FROM people GROUP BY b", 1),
        ("SELECT b, count(*) FROM (SELECT 'from ' || floor(income / 2000)::INTEGER AS b, age FROM people) WHERE age > 9 GROUP BY b", 1),
        ("SELECT floor(x / 1000) AS b, count(*) FROM (SELECT income AS x FROM people WHERE income < 2500) GROUP BY b", 1),
        ("SELECT floor(income / 1000) AS b, income > 2500 AS r, count(*) FROM people WHERE income <= 4200 GROUP BY ALL", 2),
        ("SELECT CASE WHEN floor(income / 1000) < 2 THEN 'low' WHEN income < 3500 THEN 'middle' ELSE 'high' END AS b, "
         "count(*) FROM people GROUP BY b", 1),
        ("SELECT least(floor(income / 1000), 3) AS b, count(*) FROM people GROUP BY b", 1),
        ("SELECT round(income / 3000) AS b, grouping(round(income / 3000)) AS g, count(*) FROM people GROUP BY CUBE(b)", 2),
        ("SELECT count(*), count(*) FILTER (WHERE floor(income / 1000) = 2) FROM people WHERE round(income, -3) > 1000", 0),
    ],
)  # fmt: skip
def test_bins_have_about_the_numbers_that_duckdb_says(guard: Guard, question: str, keys: int) -> None:
    check(guard, question, plain(question), keys)


def test_bins_are_those_between_the_bounds(guard: Guard) -> None:
    """Empty ones too; what WHERE rules out is none."""

    def bins(question: str) -> set[object]:
        return {row["b"] for row in guard.sql(question).to_pylist()}

    assert bins("SELECT floor(income / 1000) AS b, count(*) FROM people GROUP BY b") == {0, 1, 2, 3, 4, 5, 6, None}
    where = "SELECT floor(income / 1000) AS b, count(*) FROM people WHERE income > 4000 GROUP BY b"
    assert bins(where) == {4, 5, 6}
    assert bins("SELECT income > 7000 AS b, count(*) FROM people WHERE floor(income / 1000) = 2 GROUP BY b") >= {False}


@pytest.mark.parametrize("kind", TYPES)
def test_every_record_is_in_a_bin_that_is_possible(tmp_path: Path, kind: str) -> None:
    """Of all types, at the borders, beside them, and beyond the bounds, where it counts as the bound."""
    at_random = random.Random(5)
    values = {
        x
        for k in range(-4, 14)
        for b in (k * 0.3, k * 500, k * 750.5)
        for x in (b, math.nextafter(b, -9e9), math.nextafter(b, 9e9))
    }
    values |= {at_random.uniform(-7000, 7000) for _ in range(200)} | {-1e9, 1e9}
    rows = ", ".join(f"({at}, '{value!r}'::DOUBLE)" for at, value in enumerate(sorted(values)))
    known = f"SELECT id, 'n' AS region, 3 AS age, true AS ill, TRY_CAST(x AS {kind}) AS income FROM (VALUES {rows}) t(id, x)"
    low, high = (-3000, 3000) if kind != "DOUBLE" else (-4, 4)
    scale = 0.3 if kind == "DOUBLE" else 750.5
    questions = [
        f"SELECT floor(income / {scale}) AS b, count(*) AS n FROM people GROUP BY b",
        f"SELECT round(income * 2 - 1, {0 if kind == 'DOUBLE' else -2}) AS b, count(*) AS n FROM people GROUP BY b",
        f"SELECT ceil(income / {scale}) AS b, income < {round(3 * scale, 4)} AS c, count(*) AS n FROM people WHERE income > {round(-2 * scale, 4)} GROUP BY ALL",
    ]
    if kind == "INTEGER":
        questions.append("SELECT (income + 7) // 500 AS b, count(*) AS n FROM people GROUP BY b")
    register = made(tmp_path / "r", known, bounds=f"{{'income': [{low}, {high}]}}", domains=DOMAINS)
    clipped = f"SELECT * REPLACE (CASE WHEN income > {high} THEN {high} WHEN income < {low} THEN {low} ELSE income END::{kind} AS income) FROM ({known})"
    with closing(sdcduck.open_guard(register)) as guard:
        for question in questions:
            [release] = guard.rewritten(question)[0].releases
            inside = set(zip(*guard._releases._columns(release.cells, {}), strict=True))
            there = set(zip(*guard._releases._columns(release.totals, {})[: len(release.keys)], strict=True))
            assert there <= inside, question
            if " WHERE " not in question:
                true = {row[0] for row in plain(question, clipped)}
                assert {key[0] for key in there} == true, question


@pytest.mark.parametrize("value", ["'NaN'::DOUBLE", "'inf'::DOUBLE", "-1e300", "2000.0", "NULL::DOUBLE"])
def test_what_is_no_number_is_in_the_bin_of_none(tmp_path: Path, value: str) -> None:
    records = f"SELECT * REPLACE ({value} AS income) FROM ({RECORDS})"
    question = "SELECT floor(income / 1000) AS b, count(*) AS n FROM people GROUP BY b"
    with closing(sdcduck.open_guard(made(tmp_path / "r", records, domains=DOMAINS))) as guard:
        found = {row["b"]: row["n"] for row in guard.sql(question).to_pylist()}
    bin_of = {"-1e300": 0.0, "2000.0": 2.0}.get(value)
    assert found.pop(bin_of) == pytest.approx(2000, abs=10)
    assert all(abs(number) <= 10 for number in found.values())


def test_it_is_charged_once_and_another_width_is_another_question(tmp_path: Path) -> None:
    register = made(tmp_path / "r", epsilon="1", delta="0", per_question="0.3", domains=DOMAINS)
    question = "SELECT floor(income / {0}) * {0} AS b, count(*) AS n FROM people GROUP BY b"
    with closing(sdcduck.open_guard(register)) as guard:
        before = {row["column"]: row for row in guard.dp_preview(question.format(1000)).to_pylist()}
        assert before["n"]["sd"] == pytest.approx(math.sqrt(2) * 2 / 0.3, rel=0.01)
        for width, bins in ((1000, 8), (1000, 8), (500, 14), (2000, 5)):
            assert guard.sql(question.format(width)).num_rows == bins
    charged = [line["cost"] for line in CostFile(register, "people").lines() if line["kind"] == "charge"]
    assert charged == [0.3] * 3


def test_several_rows_of_a_unit_and_groups_that_nobody_may_know(tmp_path: Path) -> None:
    rows = f"SELECT p.* FROM ({RECORDS}) AS p, range(2)"
    register = made(tmp_path / "r", rows, contributions="2", delta="1e-6", domains="{'region': 'private'}")
    question = "SELECT floor(income / 2500) AS b, region, count(*) AS n FROM people GROUP BY ALL"
    with closing(sdcduck.open_guard(register)) as guard:
        found = {(row["b"], row["region"]): row["n"] for row in guard.sql(question).to_pylist()}
    true = {row[:2]: row[2] for row in plain(question, rows)}
    assert found.keys() == true.keys()
    assert all(number == pytest.approx(true[key], abs=30) for key, number in found.items())


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("SELECT floor(income), count(*) FROM people GROUP BY 1", "floor\\(income / 1000\\) \\* 1000"),
        ("SELECT floor(income * 1000000), count(*) FROM people GROUP BY 1", "more than 500 bins"),
        ("SELECT income, count(*) FROM people GROUP BY 1", "groups of it are bins"),
        ("SELECT income // 1000, count(*) FROM people GROUP BY 1", "groups of it are bins"),
        ("SELECT income % 1000, count(*) FROM people GROUP BY 1", "groups of it are bins"),
        ("SELECT floor(income / age), count(*) FROM people GROUP BY 1", "SDC041"),
        ("SELECT floor(income / 1e3), count(*) FROM people GROUP BY 1", "SDC041"),
        ("SELECT floor(income / 1000) + income, count(*) FROM people GROUP BY 1", "SDC041"),
        ("SELECT floor(income / 20), age, ill, region, count(*) FROM people GROUP BY ALL", "groups: ask for fewer"),
        ("SELECT sum(floor(income / 1000)) FROM people", "SDC041"),
        ("SELECT max(floor(income / 1000)) FROM people", "SDC050"),
        ("SELECT count(DISTINCT floor(income / 1000)) FROM people", "SDC041"),
        ("SELECT floor(income / 1000) FROM people", "SDC040"),
        ("SELECT width_bucket(income, 0, 5000, 5), count(*) FROM people GROUP BY 1", "floor\\("),
    ],
)
def test_other_groups_of_a_measure_are_refused_and_it_is_said_what_to_write(
    guard: Guard, question: str, said: str
) -> None:
    before = guard.sql("SELECT questions FROM (SHOW sdc_budget)").to_pylist()
    with pytest.raises(Refused, match=said):
        guard.sql(question)
    assert guard.sql("SELECT questions FROM (SHOW sdc_budget)").to_pylist() == before


def test_buckets_as_postgresql_has_them(guard: Guard) -> None:
    asked = "SELECT width_bucket(income, 1000, 4000, 3) AS b, count(*) AS n FROM people GROUP BY 1 ORDER BY 1"
    rows = guard.sql(to_duckdb(asked, "census")).to_pylist()
    assert [row["b"] for row in rows] == [0, 1, 2, 3, 4, None]
    true = plain(
        "SELECT count_if(income < 1000), count_if(income BETWEEN 2000 AND 2999.99), count_if(income >= 4000) FROM people"
    )
    assert [rows[place]["n"] for place in (0, 2, 4)] == pytest.approx(list(true[0]), abs=12)
    for odd in ("4000, 1000, 3", "0, 10, 2.5", "0, age, 3"):  # what is left as it is, the guard refuses with a lesson
        with pytest.raises(Refused, match=r"floor\("):
            guard.sql(to_duckdb(asked.replace("1000, 4000, 3", odd), "census"))


def test_a_measure_without_bounds_has_no_bins(tmp_path: Path) -> None:
    with closing(sdcduck.open_guard(made(tmp_path / "r", bounds="", domains=DOMAINS))) as guard:
        with pytest.raises(Refused, match="no bounds"):
            guard.sql("SELECT floor(income / 1000), count(*) FROM people GROUP BY 1")
        assert guard.sql("SELECT count(*) FROM people WHERE floor(income / 1000) = 3").num_rows == 1
