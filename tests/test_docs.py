"""The documentation says what is so: every example on its pages runs, and every output shown is the one that comes.

A page has a database of its own, the file ``people.duckdb`` in an empty folder. Its blocks run in order: ``sql`` on the
connection ``con``, ``python`` in one namespace that has ``con``. A ``text`` block right after one of them is its output;
``Error: ..`` is the error it must raise. Comments of the page steer this: ``<!-- example data -->`` loads the tables of
the reference's examples, and ``<!-- plain duckdb FILE -->`` before a block runs it in another process, on that file,
without sdcduck.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.functions.reference import EXAMPLE_DATA, EXAMPLE_SECRET, render, run_example

pytestmark = pytest.mark.filterwarnings("error:sdc_:DeprecationWarning")  # nobody learns old names here

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(
    r"(?:^<!-- plain duckdb (?P<file>\S+) -->\n)?^```(?P<language>sql|python)\n(?P<code>.*?)^```$"
    r"(?:\n+^```text\n(?P<output>.*?)^```$)?",
    re.M | re.S,
)
_PLAIN = """
import duckdb, sys
from sdcduck.functions.reference import render
con = duckdb.connect(sys.argv[1], read_only=True)
result = con.execute(sys.stdin.read())
print(render([column[0] for column in result.description], result.fetchall()))
"""


@dataclass(frozen=True)
class Block:
    """One example of a page."""

    language: str
    code: str
    output: str | None
    plain_file: str | None
    line: int


def blocks(text: str) -> list[Block]:
    return [
        Block(found["language"], found["code"], found["output"], found["file"], text[: found.start()].count("\n") + 1)
        for found in _BLOCK.finditer(text)
    ]


def run(block: Block, namespace: dict[str, object]) -> str:
    con = namespace["con"]
    assert isinstance(con, duckdb.DuckDBPyConnection)
    if block.plain_file is not None:
        # The other process reads a copy, because this one may hold the file.
        with contextlib.suppress(duckdb.ConnectionException):
            con.execute("CHECKPOINT")
        shutil.copy(block.plain_file, "copy.duckdb")
        command = [sys.executable, "-c", _PLAIN, "copy.duckdb"]
        return subprocess.run(command, input=block.code, capture_output=True, text=True, check=True).stdout
    if block.language == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(block.code, namespace)
        return printed.getvalue()
    try:
        return run_example(con, block.code)
    except duckdb.Error as problem:
        return "Error: " + str(problem).split("\n\nLINE ")[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SDCDUCK_SECRET", raising=False)
    text = page.read_text(encoding="utf-8")
    con = sdcduck.connect("people.duckdb", secret=EXAMPLE_SECRET)
    if "<!-- example data -->" in text:
        con.execute(EXAMPLE_DATA)
    namespace: dict[str, object] = {"con": con}
    for block in blocks(text):
        came = run(block, namespace).rstrip("\n")
        where = f"{page.name}, line {block.line}"
        assert block.output is not None or not came.startswith("Error: "), f"{where}: {came}"
        if block.output is not None:
            assert came == block.output.rstrip("\n"), where
    namespace["con"].close()  # type: ignore[attr-defined]
    con.close()


def test_every_output_belongs_to_an_example() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        shown = sum(block.output is not None for block in blocks(text))
        assert shown == len(re.findall(r"^```text$", text, re.M)), page.name


def test_the_joined_form_gives_the_numbers_of_sdc_count(con: duckdb.DuckDBPyConnection) -> None:
    # The statement of the family page, on cells of every size from 1 to a thousand.
    text = (ROOT / "docs" / "perturbation.md").read_text(encoding="utf-8")
    joined = next(block.code for block in blocks(text) if "JOIN sdc.ptable_intervals" in block.code)
    con.execute(
        "CREATE TABLE people AS SELECT (sqrt(range))::INTEGER AS region, range % 2 AS sex, "
        "(range * 48271 % 2147483647 % 100000000)::INTEGER AS record_key FROM range(1000000)"
    )
    protected = "SELECT region, sex, sdc_count(record_key) AS n FROM people GROUP BY ALL ORDER BY ALL"
    assert con.execute(joined).fetchall() == con.execute(protected).fetchall()


def test_the_runner_sees_errors_and_plain_blocks() -> None:
    page = "```sql\nSELECT 1\n```\n\n```text\n1\n```\n\n<!-- plain duckdb a.duckdb -->\n```sql\nFROM t\n```\n"
    first, second = blocks(page)
    assert (first.output, first.plain_file) == ("1\n", None)
    assert (second.output, second.plain_file, second.line) == (None, "a.duckdb", 9)
    assert render(["a"], [(1,)]) == "a\n-\n1"
