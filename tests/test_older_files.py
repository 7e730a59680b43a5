"""A file that an older sdcduck wrote is opened, and its guard answers what it answered then."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

import sdcduck
from sdcduck.guard import Refused

_DATA = Path(__file__).parent / "data"
ANSWERS = json.loads((_DATA / "register_0_1.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, opened once for writing by this version."""
    path = tmp_path_factory.mktemp("older") / "register.duckdb"
    with gzip.open(_DATA / "register_0_1.duckdb.gz") as packed, path.open("wb") as file:
        shutil.copyfileobj(packed, file)
    sdcduck.connect(path, secret="the secret of the stored file").close()
    return path


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("asked", ANSWERS, ids=range(len(ANSWERS)))
def test_a_question_has_the_answer_of_then(register: Path, asked: dict[str, list[str]], read_only: bool) -> None:
    with sdcduck.connect(register, secret="the secret of the stored file", read_only=read_only) as con:
        answer = sdcduck.open_guard(con, role=asked["role"]).sql(asked["question"])
    assert sorted(" | ".join(map(repr, row.values())) for row in answer.to_pylist()) == asked["answer"]
    assert asked["answer"]


def test_new_records_get_the_keys_that_they_would_have_had(register: Path) -> None:
    with sdcduck.connect(register, secret="the secret of the stored file", read_only=True) as con:
        (different,) = con.execute("SELECT count(*) FILTER (record_key <> sdc_record_key(id)) FROM people").fetchall()
    assert different == (0,)


def test_a_hidden_column_is_not_shown_under_the_name_of_another(register: Path, tmp_path: Path) -> None:
    """The columns of that time are those that the table had when this version first wrote into the file."""
    copy = tmp_path / "register.duckdb"
    shutil.copyfile(register, copy)
    with sdcduck.connect(copy, secret="the secret of the stored file") as con:
        one = sdcduck.open_guard(con)
        assert one.sql("SELECT count(*) AS n FROM people").num_rows == 1
        con.execute("ALTER TABLE people RENAME region TO was_region; ALTER TABLE people RENAME id TO region")
        with pytest.raises(Refused, match="renamed or removed"):
            one.sql("SELECT region, count(*) AS n FROM people GROUP BY region")
