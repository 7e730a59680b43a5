"""Writes what the examples of the reference return beside them: ``make examples``.

They run in the order of the files, on one connection with `EXAMPLE_DATA` and `EXAMPLE_SECRET`, in a folder of their own
that has the audit log ``questions.jsonl``; a test keeps what is written in line with what they return.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb

import sdcduck
from sdcduck.catalog.plan_file import Asker, PlanFile, Sealed
from sdcduck.functions.reference import COMMENT, EXAMPLE_DATA, EXAMPLE_SECRET, SQL_FILES, run_example
from sdcduck.methods.sequence import plans

FOLDER = Path(__file__).parent.parent / "sql"

_BLOCK = re.compile(COMMENT, re.MULTILINE)
_SECTION = re.compile(r"(?=^--\| @)", re.M)


@contextlib.contextmanager
def example_connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory with the tables that the examples use, and a working directory with the files."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with sdcduck.connect(secret=EXAMPLE_SECRET) as con:
            con.execute(EXAMPLE_DATA)
            _write_questions(con)
        _write_plans()
        with sdcduck.connect(secret=EXAMPLE_SECRET) as con:
            con.execute(EXAMPLE_DATA)
            yield con


def _write_questions(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("FROM sdc_protect('people', unit := 'person_id', dimensions := ['region'])").fetchall()
    guard = sdcduck.open_guard(con, log="questions.jsonl")
    guard.sql("SELECT region, count(*) FROM people GROUP BY region", user="ann")
    with contextlib.suppress(sdcduck.SDCError):
        guard.sql("SELECT * FROM people", user="bob")


def _write_plans() -> None:
    """A plan of two questions, of which the second is refused."""
    questions = ["SELECT region, count(*) AS n FROM people GROUP BY region", "SELECT max(income) AS m FROM people"]
    traces = plans.traces([plans.block(text, step, bytes(plans.SALT)) for step, text in enumerate(questions, 1)])
    key, ann, file = bytes(plans.KEY), Asker("ann", "analyst"), PlanFile("people.plans")
    file.open(ann, "income", Sealed(traces[0], [(plans.public_key(key), plans.sign(key, traces[0]))]))
    file.finish(file.reveal(ann, "income", traces[1], questions[0]))
    file.finish(file.reveal(ann, "income", traces[2], questions[1]), "SDC050")


def with_outputs(con: duckdb.DuckDBPyConnection, text: str) -> str:
    """The text of a SQL file with an ``@output`` section after each ``@example``, in place of what was there."""
    return _BLOCK.sub(lambda block: _block_with_output(con, block[0]), text)


def _block_with_output(con: duckdb.DuckDBPyConnection, block: str) -> str:
    sections = [section for section in _SECTION.split(block) if not section.startswith("--| @output")]
    return "".join(
        section + _output_of(con, section) if section.startswith("--| @example") else section for section in sections
    )


def _output_of(con: duckdb.DuckDBPyConnection, section: str) -> str:
    _, *lines = section.splitlines()
    output = run_example(con, "\n".join(line.removeprefix("--|").strip() for line in lines))
    return "".join(f"--| {line}".rstrip() + "\n" for line in ["@output", *output.splitlines()])


if __name__ == "__main__":
    with example_connection() as examples:
        for name in SQL_FILES:
            file = FOLDER / name
            file.write_text(with_outputs(examples, file.read_text(encoding="utf-8")), encoding="utf-8")
