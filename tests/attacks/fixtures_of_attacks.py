"""Fixtures of the attacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from attacked_database import PEOPLE_TABLES, Attacked


@pytest.fixture(scope="module")
def attacked() -> Iterator[Attacked]:
    """One database for a module of attacks; nothing they do may change it."""
    database = Attacked()
    before = [database.con.execute(f"SELECT count(*), sum(hash(t)) FROM {name} t").fetchall() for name in PEOPLE_TABLES]
    yield database
    after = [database.con.execute(f"SELECT count(*), sum(hash(t)) FROM {name} t").fetchall() for name in PEOPLE_TABLES]
    assert before == after
    database.con.close()


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Prints past pytest's capture: success rates are part of the result."""

    def printed(text: str) -> None:
        with capsys.disabled():
            print(f"\n    {text}", end="")

    return printed
