"""A desk that runs, and a browser of few words that asks it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from desk_browser import Browser

import sdcduck
from sdcduck.functions.reference import EXAMPLE_DATA, EXAMPLE_SECRET

ODD = '<script>alert("a")</script> it\'s'
"""A name that means something to HTML, to SQL, and in an address."""


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


class running:
    """A desk in a thread of this process, closed with the block."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __enter__(self) -> Browser:
        from sdcduck.desk import serving

        told: dict[str, Any] = {}
        listening = threading.Event()

        def ready(opened: serving.Opened) -> None:
            told["opened"] = opened
            listening.set()

        def serve() -> None:
            try:
                serving.serve(self._file, port=0, ready=ready)
            except BaseException as problem:  # of this thread, for the test
                told["problem"] = problem
                raise
            finally:
                listening.set()

        self._thread = threading.Thread(target=serve)
        self._thread.start()
        listening.wait()
        if "problem" in told:
            raise told["problem"]
        self._opened = told["opened"]
        opened = Browser(self._opened.address, self._opened.register)
        opened.get(opened.token_path)
        return opened

    def __exit__(self, *_: object) -> None:
        self._opened.close()
        self._thread.join()
