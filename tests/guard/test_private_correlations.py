"""Correlations, covariances and regression lines under `method := 'dp'`, over noisy sums."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path

import duckdb
import pytest
from private_people import made

import sdcduck
from sdcduck.catalog.cost_files import CostFile
from sdcduck.guard import Guard, Refused
from sdcduck.guard.methods.dp_pairs import ALL

pytest.importorskip("opendp")

PAIRED = """SELECT i AS id, ['n', 's', 'e', 'w'][1 + i % 4] AS region, (i * 7) % 90 AS age, i % 3 = 0 AS ill,
    CASE WHEN i % 10 = 0 THEN NULL ELSE (i * 7) % 90 * 40 + (i * 37) % 1500 + 0.25 END AS income FROM range(200000) t(i)"""
ALL_OF = ", ".join(f"{name}(income, age) AS {name}" for name in ALL)


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    register = made(tmp_path_factory.mktemp("pairs") / "register", PAIRED, per_question="60")
    with closing(sdcduck.open_guard(register)) as opened:
        yield opened


def plain(question: str, records: str = PAIRED) -> list[dict[str, object]]:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE people AS {records}")
        return con.sql(question).to_arrow_table().to_pylist()


def near(found: object, true: object) -> None:
    if isinstance(true, str | bool) or true is None:
        assert found == true
    else:
        assert float(found) == pytest.approx(float(true), rel=0.02, abs=0.01)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "question",
    [
        f"SELECT {ALL_OF} FROM people",
        f"SELECT {ALL_OF.replace('income, age', 'age, income')} FROM people WHERE age < 60 AND ill",
        "SELECT region, corr(age, income) AS c, regr_slope(income, age) AS s FROM people WHERE region <> 'n' "
        "GROUP BY region ORDER BY region",
        "SELECT corr(income, age) FILTER (WHERE ill) AS a, covar_samp(income, age) FILTER (WHERE NOT ill) AS b FROM people",
        "SELECT corr(income, income) AS c, covar_samp(age, age) AS v, regr_r2(age, age) AS r FROM people",
        "SELECT corr(x, y) AS c FROM (SELECT income AS x, age AS y FROM people WHERE age > 10)",
        "SELECT round(corr(income, age), 1) AS c FROM people HAVING corr(income, age) > 0.5",
        "SELECT ill, corr(income, age) AS c FROM people GROUP BY GROUPING SETS ((ill)) HAVING ill IS NOT NULL ORDER BY 1",
    ],
)
def test_they_are_what_duckdb_says(guard: Guard, question: str) -> None:
    found, true = guard.sql(question).to_pylist(), plain(question)
    found = [row for row in found if "region" not in row or row["region"] is not None]
    assert len(found) == len(true)
    for mine, its in zip(found, true, strict=True):
        for name, value in its.items():
            near(mine[name], value)


def test_the_same_two_measures_share_their_numbers(guard: Guard) -> None:
    """In whatever order they are written: six numbers, of which each statistic takes those that it needs."""

    def drawn(question: str) -> int:
        return len(guard.rewritten(question)[0].releases[0].columns)

    assert (
        drawn(f"SELECT {ALL_OF}, {ALL_OF.replace('income, age', 'age, income')} FROM people".replace(" AS ", " AS x"))
        == 6
    )
    needed = {"corr": 6, "regr_r2": 6, "regr_slope": 5, "regr_intercept": 5, "covar_pop": 4, "covar_samp": 4,
        "regr_sxy": 4, "regr_sxx": 3, "regr_syy": 3, "regr_avgx": 2, "regr_avgy": 2, "regr_count": 1}  # fmt: skip
    assert {name: drawn(f"SELECT {name}(income, age) FROM people") for name in ALL} == needed
    assert drawn("SELECT corr(income, income) FROM people") == 3


def test_what_one_record_adds_is_within_what_its_noise_covers(tmp_path: Path) -> None:
    """Whatever it has: its steps in each total are between the ends that the noise is made for, and reach them."""
    incomes = ("0", "3000", "6000", "-1e300", "1e300", "NULL", "'NaN'", "'inf'")
    ages = ("0", "44", "89", "90", "NULL")
    rows = [(f"'{at}'", age, income) for at, (income, age) in enumerate(product(incomes, ages))]
    written = ", ".join(f"({region}, {age}::INTEGER, {income}::DOUBLE)" for region, age, income in rows)
    records = f"SELECT *, region AS id, true AS ill FROM (VALUES {written}) t(region, age, income)"
    domains = f"{{'region': [{', '.join(region for region, _, _ in rows)}], 'age': range(0, 90)}}"
    with closing(sdcduck.open_guard(made(tmp_path / "r", records, domains=domains))) as guard:
        [release] = guard.rewritten("SELECT region, corr(income, age) AS c FROM people GROUP BY region")[0].releases
        columns = guard._releases._columns(release.totals, {})[1:]
    for (name, noised), totals in zip(release.columns, columns, strict=True):
        steps = [int(total or 0) for total in totals]
        assert len(steps) == len(rows)
        assert (min(steps), max(steps)) == (noised.low, noised.high), name


def test_it_is_charged_once_as_the_preview_says(tmp_path: Path) -> None:
    register = made(tmp_path / "r", PAIRED, epsilon="1", delta="0", per_question="0.4")
    question = "SELECT region, corr(income, age) AS c, regr_count(income, age) AS n FROM people GROUP BY region"
    with closing(sdcduck.open_guard(register)) as guard:
        before = guard.dp_preview(question).to_pylist()
        assert {(row["epsilon"], row["paid"], row["questions_left"]) for row in before} == {(0.4, False, 1)}
        by = {row["column"]: row for row in before}
        assert by["c"]["sd"] is None
        assert "standard deviations: number of records" in by["c"]["noise"]
        assert by["c"]["statistic"] == "corr of income and age"
        assert by["n"]["sd"] == pytest.approx(math.sqrt(2) * 2 * 6 / 0.4, rel=0.01)  # six numbers share it
        guard.sql(question)
        guard.sql(question.replace("corr(income, age)", "corr(age, income)") + " ORDER BY c")
        charged = [line["cost"] for line in CostFile(register, "people").lines() if line["kind"] == "charge"]
        assert charged == [0.4]


@pytest.mark.parametrize(
    "records",
    [
        f"SELECT * REPLACE (NULL::DOUBLE AS income) FROM ({PAIRED})",
        f"SELECT * REPLACE ('NaN'::DOUBLE AS income) FROM ({PAIRED})",
        f"SELECT * FROM ({PAIRED}) LIMIT 0",
        f"SELECT * REPLACE (3000.0 AS income) FROM ({PAIRED})",
    ],
    ids=["NULL", "NaN", "nobody", "one value"],
)
def test_without_spread_there_is_a_number_or_none(tmp_path: Path, records: str) -> None:
    """Where noise says that there are records, or that they have a spread, numbers are as bounds allow."""
    with closing(sdcduck.open_guard(made(tmp_path / "r", records, per_question="1", epsilon="100"))) as guard:
        for _ in range(3):
            [row] = guard.sql(f"SELECT {ALL_OF} FROM people WHERE age <> {_ + 100}").to_pylist()
            assert row["corr"] is None or -1 <= row["corr"] <= 1
            assert row["regr_r2"] is None or 0 <= row["regr_r2"] <= 1
            assert row["covar_pop"] is None or abs(row["covar_pop"]) <= 3000 * 44.5
            assert row["regr_avgy"] is None or 0 <= row["regr_avgy"] <= 6000
            assert row["regr_sxx"] is None or row["regr_sxx"] >= 0


def test_several_rows_of_a_unit(tmp_path: Path) -> None:
    """So many of them are looked at, and the noise is that of so many."""
    rows = f"SELECT p.* FROM ({PAIRED}) AS p, range(CASE WHEN id % 100 = 7 THEN 9 ELSE 2 END)"
    question = "SELECT regr_count(income, age) AS n, regr_slope(income, age) AS s FROM people"
    register = made(tmp_path / "r", rows, contributions="3")
    with closing(sdcduck.open_guard(register)) as guard:
        [row] = guard.sql(question).to_pylist()
        [release] = guard.rewritten(question)[0].releases
    looked_at = f"SELECT p.* FROM ({PAIRED}) AS p, range(CASE WHEN id % 100 = 7 THEN 3 ELSE 2 END)"
    [true] = plain(question, looked_at)
    near(row["n"], true["n"])
    near(row["s"], true["s"])
    assert len(release.columns) == 5


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("SELECT corr(region, income) FROM people", "anything but two columns"),
        ("SELECT corr(income * 2, age) FROM people", "write conditions into FILTER"),
        ("SELECT corr(DISTINCT income, age) FROM people", "SDC0"),
        ("SELECT corr(income, id) FROM people", "SDC081"),
        ("SELECT corr(income, ill::INTEGER) FROM people", "SDC052"),
        ("SELECT regr_slope(income) FROM people", "SDC"),
        ("SELECT corr(income, age) OVER () FROM people", "SDC04"),
    ],
)
def test_other_columns_are_refused_and_cost_nothing(guard: Guard, question: str, said: str) -> None:
    before = guard.sql("SELECT questions FROM (SHOW sdc_budget)").to_pylist()
    with pytest.raises(Refused, match=said):
        guard.sql(question)
    assert guard.sql("SELECT questions FROM (SHOW sdc_budget)").to_pylist() == before


def test_a_domain_of_one_value_has_no_spread(tmp_path: Path) -> None:
    domains = "{'region': ['n'], 'age': [7]}"
    with closing(sdcduck.open_guard(made(tmp_path / "r", domains=domains))) as guard:
        for statistic in ("stddev(age)", "corr(income, age)"):
            with pytest.raises(Refused, match="one value alone"):
                guard.sql(f"SELECT {statistic} FROM people")
