"""The same file has the same answers on every DuckDB, to the last bit.

Needs another interpreter with sdcduck and another DuckDB, named by SDCDUCK_OTHER_PYTHON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_every_door import METHODS, file  # noqa: F401 - a fixture

_ASK = """
import json, sys, duckdb, sdcduck
from test_both_versions import METHODS, questions
answers = {}
with sdcduck.connect(sys.argv[1], read_only=True, secret="the secret of the tests") as con:
    for role in METHODS:
        guard = sdcduck.open_guard(con, role=role)
        answers[role] = [[repr(row) for row in guard.sql(question).to_pylist()] for question in questions(role)]
print(json.dumps([duckdb.__version__, answers]))
"""
Answers = dict[str, list[list[str]]]
COUNTS = [
    "SELECT region, sex, count(*) AS n, count(DISTINCT id) AS u FROM people GROUP BY CUBE (region, sex) ORDER BY ALL",
    "SELECT age, count(*) FILTER (WHERE sex = 'f') AS f FROM people GROUP BY age",
    "SELECT count(*) AS n FROM people WHERE age > 40 AND region IN ('r1', 'r2')",
    "SELECT region, n, rank() OVER (ORDER BY n DESC) AS r FROM (SELECT region, count(*) AS n FROM people GROUP BY ALL)",
]
FIGURES = (
    "sum({0}) AS s, avg({0}) AS a, var_samp({0}) AS v, median({0}) AS m, quantile_cont({0}, 0.9) AS q, count({0}) AS n"
)


def questions(role: str) -> list[str]:
    """What is asked under a method."""
    measures = [] if role == "rounding" else ["whole", "partly", "mixed", "negative", "real_some", "decimal_some"]
    figures = FIGURES if role in ("cell_key", "few") else "sum({0}) AS s, avg({0}) AS a, count({0}) AS n"
    return COUNTS + [
        f"SELECT {keys}{figures.format(measure)} FROM people {grouped}"
        for measure in measures
        for keys, grouped in (
            ("", ""),
            ("region, ", "GROUP BY region"),
            ("sex, region, ", "GROUP BY ROLLUP (sex, region)"),
        )
    ]


def _asked(python: str, path: Path) -> tuple[str, Answers]:
    where = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])}
    done = subprocess.run(
        [python, "-W", "ignore", "-c", _ASK, str(path)], capture_output=True, text=True, check=False, env=where
    )
    assert done.returncode == 0, done.stderr
    version, answers = json.loads(done.stdout)
    return version, answers


@pytest.fixture(scope="module")
def both(file: Path) -> tuple[Answers, Answers]:  # noqa: F811
    """What each version answers, under all methods."""
    other = os.environ.get("SDCDUCK_OTHER_PYTHON")
    if not other:
        pytest.skip("SDCDUCK_OTHER_PYTHON names no interpreter with another version of DuckDB")
    here, there = _asked(sys.executable, file), _asked(other, file)
    assert here[0] != there[0], "SDCDUCK_OTHER_PYTHON has the same version of DuckDB"
    return here[1], there[1]


@pytest.mark.parametrize("role", METHODS)
def test_the_answers_of_one_file_are_the_same(both: tuple[Answers, Answers], role: str) -> None:
    for question, mine, theirs in zip(questions(role), *(answers[role] for answers in both), strict=True):
        assert mine == theirs, question
        assert mine
