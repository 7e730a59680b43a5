"""Patients and their visits under two methods, for the tests of what each unit has."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import duckdb
import pytest
from visits_database import answer, answer_of_duckdb, made

import sdcduck
from sdcduck.guard import Guard


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
