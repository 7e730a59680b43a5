"""The pure-SQL part in the real DuckDB shell (PyPI package duckdb-cli), without Python: the same numbers to the last bit."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

import sdcduck
from sdcduck.functions.reference import sql_functions

SQL_FILE = Path(__file__).resolve().parents[1] / "sql" / "perturbation.sql"
PEOPLE = """CREATE TABLE people AS SELECT range AS id, 'r' || range % 3 AS region, range % 2 AS sex,
    (range * 7919 * 6151 % 100000000)::INTEGER AS record_key, range * range / 7.0 AS y, 1 + range % 5 AS w
    FROM range(1, 301);"""
GROUPS = ("GROUP BY ALL", "GROUP BY CUBE (region, sex)", "GROUP BY GROUPING SETS ((region), (sex), ())")

AGGREGATES = {
    "sdc_count": [
        "sdc_count(record_key)", "sdc_count(record_key, filter := y > 500)", "sdc_count(record_key, filter := false)",
        "sdc_count(record_key, digits := 6)",
    ],
    "sdc_count_units": ["sdc_count_units(id % 100, record_key % 100)", "sdc_count_units(id, record_key, filter := y > 500)"],
    "sdc_cell_key": ["sdc_cell_key(record_key)", "sdc_cell_key(record_key, filter := y > 500, digits := 5)"],
    "sdc_weighted_count": ["sdc_weighted_count(w, record_key)", "sdc_weighted_count(w / 7, record_key, filter := y > 500)"],
    "sdc_sum": [
        "sdc_sum(y, record_key)", "sdc_sum(id, record_key, filter := y > 500)", "sdc_sum(y - 900, record_key, p_large := 0.5)",
        "sdc_sum(y, record_key, epsilon := [1, 0.5, 0.2], fp := 50, p_small := 0.2, small_cells := 'default_magnitude')",
        "sdc_sum(y, record_key, mu_c := 2, sensitive := count(*) < 120)", "sdc_sum(y, record_key, magnifier := 'mean')",
        "sdc_sum(y, record_key, magnifier := 'range', same_key := false, zero_keys := true)",
    ],
    "sdc_weighted_sum": ["sdc_weighted_sum(y, w, record_key)", "sdc_weighted_sum(y, w, record_key, epsilon := [1, 0.5], filter := y > 500)"],
    "sdc_mean": ["sdc_mean(y, record_key)", "sdc_mean(y, record_key, filter := y > 500)"],
    "sdc_mean_sum": ["sdc_mean_sum(y, record_key)"],
    "sdc_ckm_count": ["sdc_ckm_count(count(*), sum(record_key))"],
    "sdc_ckm_sum": ["sdc_ckm_sum(sum(y), max(y, 3), sum(record_key), epsilon := [1, 0.5, 0.2])"],
    "sdc_digits_of_noise": ["sdc_digits_of_noise(sdc_sum(y, record_key), max(abs(y)), sum(record_key))"],
    "sdc_mbs": ["sdc_mbs(sum(y), count(*), sdc_count(record_key))"],
    "sdc_quantile": ["sdc_quantile(y, record_key, 0.5)", "sdc_quantile(y, record_key, 0.9, filter := region = 'North', significant := 3)"],
    "sdc_variance": ["sdc_variance(y, record_key)", "sdc_variance(y, record_key, filter := region = 'North')"],
}  # fmt: skip
"""Calls of every function, to stand in a SELECT with GROUP BY over the people."""

STATEMENTS = [
    "SELECT region, sdc_count(record_key) AS n FROM people GROUP BY region HAVING sdc_count(record_key) > 99 ORDER BY ALL",
    "SELECT region, n FROM protected ORDER BY ALL",
    "EXECUTE above(99, 'default')",
    "SELECT sum(n)::BIGINT AS n FROM (SELECT sdc_count(record_key) AS n FROM people GROUP BY id % 50) cells",
    "SELECT name, kind, modulus, step FROM sdc.ptables ORDER BY name",
]
PREPARATION = """CREATE VIEW protected AS SELECT region, sdc_count(record_key) AS n FROM people GROUP BY region;
PREPARE above AS SELECT region, sdc_count(record_key, ptable := $2) AS n FROM people
    GROUP BY region HAVING sdc_count(record_key, ptable := $2) > $1 ORDER BY ALL;"""

Answer = list[dict[str, object]]


def shell() -> str:
    """The command line shell beside this Python, or anywhere on the path."""
    found = shutil.which("duckdb", path=str(Path(sys.executable).parent)) or shutil.which("duckdb")
    if found is None:
        pytest.skip("there is no DuckDB shell: pip install duckdb-cli")
    return found


def run(text: str, database: str | Path = ":memory:", *options: str) -> list[Answer]:
    """The answers of the statements that have one."""
    done = subprocess.run(
        [shell(), "-no-init", "-batch", "-bail", "-json", *options, str(database)],
        input=text, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    decoder, answers, place = json.JSONDecoder(), [], 0
    while place < len(done.stdout.rstrip()):
        answer, place = decoder.raw_decode(done.stdout, place)
        answers.append(answer)
        place += len(done.stdout[place:]) - len(done.stdout[place:].lstrip())
    return answers


def in_python(statements: list[str], database: str | Path = ":memory:", before: str = "") -> list[Answer]:
    with sdcduck.connect(database) as con:
        con.execute(before or "SELECT 1").fetchall()
        answers: list[Answer] = []
        for statement in statements:
            result = con.execute(statement)
            names = [column[0] for column in result.description or []]
            answers.append([dict(zip(names, row, strict=True)) for row in result.fetchall()])
        return answers


def grouped() -> list[str]:
    calls = ", ".join(f"{call} AS a{place}" for place, call in enumerate(chain(*AGGREGATES.values())))
    return [f"SELECT region, sex, {calls} FROM people {group} ORDER BY region, sex" for group in GROUPS]


def test_every_function_of_the_file_is_called_here() -> None:
    assert set(AGGREGATES) == {f.name for f in sql_functions() if f.family == "perturbation" and not f.needs_python}


def test_the_file_is_read_into_an_empty_database_and_gives_the_same_numbers() -> None:
    statements = [*grouped(), *STATEMENTS]
    text = ";\n".join([f".read '{SQL_FILE}'\n{PEOPLE}\n{PREPARATION}\n{statements[0]}", *statements[1:]]) + ";\n"
    assert run(text) == in_python(statements, before=PEOPLE + PREPARATION)


def test_the_file_says_nothing_and_may_be_read_again(tmp_path: Path) -> None:
    database = tmp_path / "people.duckdb"
    assert run(f".read '{SQL_FILE}'\n", database) == []
    first = run("SELECT count(*) AS n FROM sdc.ptable_intervals;", database)
    assert run(f".read '{SQL_FILE}'\n", database) == []
    assert run("SELECT count(*) AS n FROM sdc.ptable_intervals;", database) == first
    assert run("SELECT sdc_ckm_count(0, 0) AS n;", database) == [[{"n": 0}]]


@pytest.mark.parametrize("options", [(), ("-readonly",)])
def test_a_custodians_file_needs_no_python_any_more(tmp_path: Path, options: tuple[str, ...]) -> None:
    """With the keys and the p-tables of the custodian."""
    shell()
    database = tmp_path / "people.duckdb"
    with sdcduck.connect(database, secret="the secret of the tests") as con:
        con.execute(PEOPLE + "ALTER TABLE people DROP record_key")
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute("FROM sdc_store_ptable('mine', '(FROM sdc_ptable(D := 8, V := 3, js := 2))')").fetchall()
        con.execute(
            "FROM sdc_store_ptable('ons', '(SELECT pcv, ckey, (pcv + ckey) % 2 AS pvalue FROM range(1, 751) a(pcv), range(256) b(ckey))')"
        ).fetchall()
        con.execute(
            "CREATE VIEW protected AS SELECT region, sdc_count(record_key, ptable := 'mine') AS n FROM people GROUP BY ALL"
        )
    calls = ", ".join(f"{calls[0]} AS a{place}" for place, calls in enumerate(AGGREGATES.values()))
    statements = [
        f"SELECT region, {calls} FROM people GROUP BY CUBE (region, sex) ORDER BY ALL",
        "SELECT region, sdc_count(record_key, ptable := 'mine') AS n FROM people GROUP BY CUBE (region, sex) ORDER BY ALL",
        "SELECT region, sdc_count(record_key, ptable := 'ons') AS n FROM people GROUP BY ALL ORDER BY ALL",
        "SELECT region, n FROM protected ORDER BY ALL",
        "SELECT name FROM sdc.ptables ORDER BY ALL",
    ]
    answers = run(";\n".join(statements) + ";\n", database, *options)
    assert answers == in_python(statements, database)
    assert answers[-1] == [{"name": name} for name in ("default", "default_magnitude", "mine", "ons")]
    if not options:
        # Reading the file again does no harm to what the custodian stored.
        assert run(f".read '{SQL_FILE}'\n" + ";\n".join(statements) + ";\n", database) == answers


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT sdc_count(record_key, ptable := 'nope') FROM people", "unknown p-table 'nope'; stored: default, default_magnitude"),
        ("SELECT sdc_count(-record_key) FROM people", "negative record keys"),
        ("SELECT sdc_count(NULL::INTEGER) FROM people", "a record without a key"),
        ("SELECT sdc_sum(y, y) FROM people", "record keys must be integers, not DOUBLE"),
    ],
)  # fmt: skip
def test_errors_are_as_clear_in_the_shell(statement: str, message: str) -> None:
    done = subprocess.run(
        [shell(), "-no-init", "-batch", "-bail", ":memory:"],
        input=f".read '{SQL_FILE}'\n{PEOPLE}\n{statement};\n", capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    assert message in done.stderr
