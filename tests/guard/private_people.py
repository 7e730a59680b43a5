"""People under `method := 'dp'`, in a file: for the tests of what is answered, and of what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import sdcduck
from sdcduck.guard.releases import Releases

PEOPLE = 2000
REGIONS = ("n", "s", "e", "w")
RECORDS = f"""SELECT i AS id, ['n', 's', 'e', 'w', 'unknown'][1 + i % 5] AS region, (i * 7) % 90 AS age, i % 3 = 0 AS ill,
    CASE WHEN i % 10 = 0 THEN NULL ELSE (i * 37) % 5000 + 0.25 END AS income FROM range({PEOPLE}) t(i)"""
DECLARED = {
    "bounds": "{'income': [0, 6000]}", "epsilon": "1000", "delta": "1e-9", "per_question": "100",
    "domains": "{'region': ['n', 's', 'e', 'w'], 'age': range(0, 90)}",
}  # fmt: skip
"""So much is spent on a question that its noise is small beside the numbers: what is answered can be looked at."""


def declared(**other: str) -> str:
    """The statement that declares the people, with other arguments in place of some; empty: left out."""
    arguments = {name: value for name, value in {**DECLARED, **other}.items() if value}
    written = "".join(f", {name} := {value}" for name, value in arguments.items())
    dimensions = "dimensions := ['region', 'age', 'ill'], measures := ['income']"
    return f"FROM sdc_protect('people', unit := 'id', {dimensions}, method := 'dp'{written})"


REGIONS_OF = """SELECT * FROM (VALUES ('n', 'upper', true), ('s', 'lower', false), ('e', 'upper', false), ('x', 'none', true))
    v(region, area, warm)"""
"""A public table: of three of the regions, and of one where nobody is."""


def made(path: Path, records: str = RECORDS, **other: str) -> Path:
    """A register of the people."""
    con = sdcduck.connect(str(path))
    con.execute(f"CREATE TABLE people AS {records}; CREATE TABLE regions AS {REGIONS_OF}")
    con.execute("CREATE VIEW areas AS SELECT area AS name, bool_or(warm) AS any_warm FROM regions GROUP BY area")
    con.execute(declared(**other)).fetchall()
    con.execute("FROM sdc_declare_public('regions'); FROM sdc_declare_public('areas')").fetchall()
    con.close()
    return path


@contextmanager
def dies_before_it_draws() -> Iterator[None]:
    """The process of a question ends after it was charged, and before there is any noise."""

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Releases, "_draw", dies)
        yield
