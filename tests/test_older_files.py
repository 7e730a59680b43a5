"""A file that an older sdcduck wrote is opened, and its guard answers what it answered then."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

import sdcduck

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
        answer = sdcduck.guard(con, role=asked["role"]).sql(asked["question"])
    assert sorted(" | ".join(map(repr, row.values())) for row in answer.to_pylist()) == asked["answer"]
    assert asked["answer"]


def test_new_records_get_the_keys_that_they_would_have_had(register: Path) -> None:
    with sdcduck.connect(register, secret="the secret of the stored file", read_only=True) as con:
        (different,) = con.execute("SELECT count(*) FILTER (record_key <> sdc_record_key(id)) FROM people").fetchall()
    assert different == (0,)
