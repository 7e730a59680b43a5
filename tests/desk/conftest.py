"""A desk that runs, and a browser of few words that asks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from desk_browser import Browser
from desk_server import ODD, running

import sdcduck
from sdcduck.functions.reference import EXAMPLE_DATA, EXAMPLE_SECRET


def make_register(file: Path) -> None:
    """The persons of the documentation, and the same under odd names."""
    with sdcduck.connect(file, secret=EXAMPLE_SECRET) as con:
        con.execute(EXAMPLE_DATA)
        odd = '"' + ODD.replace('"', '""') + '"'
        con.execute(
            f'CREATE TABLE {odd} AS SELECT person_id, region AS "a""b", sex AS {odd}, income AS "in%&come" FROM people'
        )


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("register") / "register.duckdb"
    make_register(file)
    return file


@pytest.fixture(scope="module")
def browser(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that has been let in; the tests of a module share the database."""
    file = tmp_path_factory.mktemp("desk") / "register.duckdb"
    file.write_bytes(made.read_bytes())
    with running(file) as opened:
        yield opened
