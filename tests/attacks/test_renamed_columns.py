"""A column that nobody may see is not shown under the name of one that is declared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Refused, guard

RENAMED = {
    "hidden for a dimension": "ALTER TABLE people RENAME region TO old; ALTER TABLE people RENAME secret TO region",
    "two that change names": "ALTER TABLE people RENAME age TO old; ALTER TABLE people RENAME income TO age; "
    "ALTER TABLE people RENAME old TO income",
    "hidden for the record key": "ALTER TABLE people RENAME record_key TO old; ALTER TABLE people RENAME other TO record_key",
    "a removed one made anew": "ALTER TABLE people DROP region; ALTER TABLE people ADD COLUMN region VARCHAR; "
    "UPDATE people SET region = secret",
    "the unit": "ALTER TABLE people RENAME id TO old; ALTER TABLE people RENAME age TO id; ALTER TABLE people RENAME old TO age",
}
QUESTIONS = (
    "SELECT region, count(*) AS n FROM people GROUP BY region",
    "SELECT count(*) AS n, sum(income) AS s FROM people",
)
DECLARE = "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age'], measures := ['income'])"


@pytest.fixture
def con(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(tmp_path / "people.duckdb", secret="the secret of the tests") as con:
        con.execute("""
            CREATE TABLE people AS SELECT i AS id, sdc_record_key(i) AS record_key, ['N', 'S'][1 + i % 2] AS region,
                20 + i % 5 AS age, 1000 + i * 17 AS income, 'secret' || i % 9 AS secret, sdc_record_key(i + 500) AS other
            FROM range(99) _(i)""")
        con.execute(DECLARE).fetchall()
        yield con


@pytest.mark.parametrize("change", RENAMED)
def test_a_column_under_the_name_of_another_is_not_shown(con: duckdb.DuckDBPyConnection, change: str) -> None:
    before = guard(con)
    for question in QUESTIONS:
        assert before.sql(question).num_rows > 0
    con.execute(RENAMED[change])
    for one in (before, guard(con)):
        for question in QUESTIONS:
            with pytest.raises(Refused, match="renamed or removed"):
                one.sql(question)


def test_it_is_seen_in_a_file_and_looked_at_by_who_declares(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute(RENAMED["hidden for a dimension"])
    con.close()
    with pytest.raises(Refused, match="SDC060"):
        guard(tmp_path / "people.duckdb").sql(QUESTIONS[0])
    with sdcduck.connect(tmp_path / "people.duckdb", secret="the secret of the tests") as again:
        again.execute(DECLARE).fetchall()
        assert guard(again).sql(QUESTIONS[0]).num_rows > 0


@pytest.mark.parametrize(
    "change",
    ["ALTER TABLE people ADD COLUMN more INTEGER", "ALTER TABLE people ALTER secret TYPE BLOB", "UPDATE people SET age = 20",
     "CREATE OR REPLACE TABLE people AS SELECT *, 1 AS more FROM people"],
)  # fmt: skip
def test_other_changes_are_no_matter(con: duckdb.DuckDBPyConnection, change: str) -> None:
    one = guard(con)
    con.execute(change)
    assert one.sql(QUESTIONS[0]).num_rows == 2
