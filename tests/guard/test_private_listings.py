"""Questions under `method := 'dp'` that need no record, and what is said where another question is the one to ask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from private_numbers import charged
from private_people import RECORDS, made

import sdcduck
from sdcduck.guard import Guard, Refused

pytest.importorskip("opendp")


@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("listings") / "register", epsilon="1", delta="0", per_question="0.5")


@pytest.fixture(scope="module")
def guard(register: Path) -> Iterator[Guard]:
    with closing(sdcduck.open_guard(register)) as opened:
        yield opened


LISTED = [
    ("SELECT DISTINCT region FROM people ORDER BY region", [("e",), ("n",), ("s",), ("w",), (None,)]),
    ("SELECT region FROM people GROUP BY region ORDER BY region DESC NULLS LAST LIMIT 2", [("w",), ("s",)]),
    ("SELECT DISTINCT region, age // 50 FROM people WHERE age >= 50 AND region IN ('n', 's') ORDER BY ALL", [("n", 1), ("s", 1)]),
    ("SELECT DISTINCT ill FROM people WHERE ill IS NOT NULL ORDER BY ill", [(False,), (True,)]),
    ("SELECT DISTINCT upper(r) AS u FROM (SELECT region AS r FROM people WHERE region < 'o') ORDER BY u", [("E",), ("N",)]),
    ("SELECT DISTINCT floor(income / 3000) AS b FROM people ORDER BY b", [(0.0,), (1.0,), (2.0,), (None,)]),
    ("SELECT DISTINCT region FROM people WHERE age = 500", []),
]  # fmt: skip


@pytest.mark.parametrize(("question", "rows"), LISTED)
def test_values_are_those_that_were_declared_and_cost_nothing(
    guard: Guard, register: Path, question: str, rows: list[tuple[object, ...]]
) -> None:
    """Also those that nobody has, and the group of all others; no record is looked at, and nothing is charged."""
    assert [tuple(row.values()) for row in guard.sql(question).to_pylist()] == rows
    assert guard.rewritten(question)[0].releases == ()
    assert "FROM people" not in guard.rewritten(question)[0].sql.replace('"', "").replace("main.", "")
    assert charged(register) == 0


def test_whoever_is_there_they_are_the_same(tmp_path: Path) -> None:
    found = []
    for name, records in (("all", ""), ("nobody", " LIMIT 0")):
        with closing(sdcduck.open_guard(made(tmp_path / name, f"FROM ({RECORDS}){records}"))) as guard:
            found.append([guard.sql(question).to_pylist() for question, _ in LISTED])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("SELECT DISTINCT region FROM people WHERE id IS NOT NULL", r"SDC081.*ask for count\(\*\)"),
        ("SELECT region FROM people GROUP BY ROLLUP (region)", r"SDC081.*ask for count\(\*\)"),
        ("SELECT DISTINCT region, area FROM people JOIN regions USING (region)", r"SDC081.*ask for count\(\*\)"),
        ("SELECT DISTINCT id FROM people", "SDC040"),
        ("SELECT DISTINCT income FROM people", "SDC041.*groups of it are bins"),
        ("SELECT region FROM people LIMIT 5", "SDC045.*SELECT DISTINCT"),
        ("SELECT region FROM people", "SDC040"),
        ("SELECT min(age) FROM people", r"quantile_cont\(age, 0\.05\)"),
        ("SELECT max(age) FROM people", r"quantile_cont\(age, 0\.95\)"),
        ("SELECT max(income) FROM people", r"quantile_cont\(income, 0\.95\)"),
        ("SELECT min(region) FROM people", r"SELECT region, count\(\*\) \.\. GROUP BY region"),
        ("SELECT any_value(region) FROM people", r"SELECT region, count\(\*\) \.\. GROUP BY region"),
        ("SELECT histogram(income) FROM people", r"GROUP BY floor\(income / 1000\) \* 1000"),
        ("SELECT mode(income) FROM people", r"GROUP BY floor\(income / 1000\) \* 1000"),
        (
            "SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)",
            "ask for it first, and write it",
        ),
        ("SELECT count(*) FROM people WHERE income > age", "a number that is written out"),
    ],
)
def test_a_refusal_says_what_to_write_instead(guard: Guard, register: Path, question: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        guard.sql(question)
    assert charged(register) == 0


@pytest.mark.parametrize(
    "question",
    [
        "SELECT quantile_cont(age, 0.05) FROM people",
        "SELECT region, count(*) FROM people GROUP BY region ORDER BY count(*) DESC LIMIT 1",
        "SELECT floor(income / 1000) * 1000, count(*) FROM people GROUP BY floor(income / 1000) * 1000",
        "SELECT count(*) FROM people WHERE income > 2498.5",
    ],
)
def test_what_a_refusal_says_is_answered(tmp_path: Path, question: str) -> None:
    with closing(sdcduck.open_guard(made(tmp_path / "r"))) as guard:
        assert guard.sql(question).num_rows >= 1
