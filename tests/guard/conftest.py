"""Patients and their visits under two methods, for the tests of what each unit has."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from visits_database import made

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
    return sdcduck.guard(plain)


@pytest.fixture(scope="session")
def noisy() -> Iterator[Guard]:
    """A guard under cell keys."""
    with made("cell_key") as con:
        yield sdcduck.guard(con)
