"""Patients and their visits under several methods, for the tests of what each unit has; and a register of a module."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from visits_database import METHODS, answer, answer_of_duckdb, made

import sdcduck
from sdcduck.guard import Guard, Refused


@pytest.fixture(scope="session")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    """The database of `exact`."""
    with made("threshold") as con:
        yield con


@pytest.fixture(scope="session")
def exact(plain: duckdb.DuckDBPyConnection) -> Guard:
    """A guard with nothing to hide."""
    return sdcduck.open_guard(plain)


@pytest.fixture
def same_as_duckdb(exact: Guard, plain: duckdb.DuckDBPyConnection) -> Callable[[str], None]:
    """Asks both, who must say the same of at least one row."""

    def ask(query: str) -> None:
        wanted = answer_of_duckdb(plain, query)
        assert len(wanted) > 0
        assert answer(exact, query) == wanted

    return ask


@pytest.fixture(scope="session")
def noisy() -> Iterator[Guard]:
    """A guard under cell keys."""
    with made("cell_key") as con:
        yield sdcduck.open_guard(con)


@pytest.fixture
def refused_as(noisy: Guard) -> Callable[[str, str, str], None]:
    """Asks what must be refused with a code, and a detail among its words."""

    def ask(query: str, code: str, detail: str) -> None:
        with pytest.raises(Refused, match=code) as refused:
            noisy.sql(query)
        assert detail in str(refused.value)
        assert "_sdc" not in str(refused.value)

    return ask


@pytest.fixture(scope="session", params=METHODS)
def guarded(request: pytest.FixtureRequest) -> Iterator[tuple[str, Guard]]:
    """A guard under each method, and which it is."""
    with made(request.param) as con:
        yield request.param, sdcduck.open_guard(con)


@pytest.fixture
def register(untouched: Path, tmp_path: Path) -> Path:
    """A copy of the database that a module has made as `untouched`, and of nothing beside it."""
    (tmp_path / "register").mkdir()
    return Path(shutil.copy(untouched, tmp_path / "register"))


@pytest.fixture
def guard(register: Path) -> Iterator[Guard]:
    """A guard over `register`."""
    with closing(sdcduck.open_guard(register)) as guard:
        yield guard
