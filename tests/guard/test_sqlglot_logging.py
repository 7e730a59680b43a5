"""What a guard must not say, and must say clearly: no text of a query on stderr, and why a file cannot be opened."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import sqlglot

import sdcduck
from sdcduck.errors import SDCError
from sdcduck.guard import Refused, guard

REMARKED = [
    "CALL pragma_version('a secret')",
    "SELECT approx_top_k(age, 2), 'a secret' FROM people",
    "SHOW x 'a secret'",
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "people.duckdb"
    with sdcduck.connect(str(path), secret="the secret of the tests") as con:
        con.execute("CREATE TABLE people AS SELECT i AS age FROM range(9) t(i)")
        con.execute("FROM sdc_declare_public('people')").fetchall()
    return path


def test_nothing_of_a_query_is_printed(
    file: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = guard(file)
    with caplog.at_level(logging.DEBUG):
        for query in REMARKED:
            with pytest.raises(Refused):
                asked.sql(query)
            assert not asked.explain(query).answered
    asked.close()
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


def test_remarks_to_the_rest_of_the_program_stay(caplog: pytest.LogCaptureFixture) -> None:
    sqlglot.parse_one("CALL of_my_own()", read="duckdb")
    assert "of_my_own" in caplog.text


def test_guards_of_one_file_take_one_memory_limit(file: Path) -> None:
    first = guard(file, memory="500MB")
    with pytest.raises(SDCError, match="other settings: guards of one file share one instance") as caught:
        guard(file, memory="1GB")
    assert str(file) not in str(caught.value)
    guard(file, memory="500MB").close()
    first.close()
    guard(file, memory="1GB").close()
