"""The audit log: whatever is asked can be written, whoever else writes; what cannot be trusted is never added to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.catalog import audit_files
from sdcduck.catalog.audit_log import AuditLog
from sdcduck.catalog.audit_reading import verify_log
from sdcduck.guard import Refused, guard


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "questions.jsonl"


@pytest.fixture
def people(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute("CREATE TABLE people AS SELECT i AS id, i % 3 AS region FROM range(90) t(i)")
    con.execute("CREATE TABLE regions AS SELECT range AS region FROM range(3)")
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['region'])").fetchall()
    con.execute("FROM sdc_declare_public('regions')").fetchall()
    return con


def test_any_text_is_written(path: Path) -> None:
    log = AuditLog(path)
    texts = ["\ud800", "\udfff half", "two\nlines", "ä€𝄞", "\x00", '"}', "\u2028"]
    for text in texts:
        log.write(query=text)
    assert verify_log(path)[0] == len(texts)
    assert path.read_bytes().isascii()
    assert [json.loads(line)["query"] for line in path.read_text().splitlines()] == texts


def test_a_question_with_half_a_character_is_refused_and_written(people: duckdb.DuckDBPyConnection, path: Path) -> None:
    guarded = guard(people, log=path)
    with pytest.raises(Refused):
        guarded.sql("SELECT '\ud800'", user="\udfff")
    assert people.execute('SELECT query, "user" FROM sdc_audit_log(?)', [str(path)]).fetchall() == [
        ("SELECT '\\ud800'", "\\udfff")
    ]


def test_two_guards_of_one_process_take_turns(path: Path) -> None:
    first, second = AuditLog(path), AuditLog(path)
    for turn in range(5):
        (first, second)[turn % 2].write(turn=turn)
    assert verify_log(path)[0] == 5


WRITER = """
import sys
from sdcduck.catalog.audit_log import AuditLog
log = AuditLog(sys.argv[1])
for turn in range(25):
    log.write(writer=sys.argv[2], turn=turn)
"""


@pytest.mark.parametrize("locks", ["of the system", "a second file"])
def test_many_writers_make_one_chain(path: Path, locks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = WRITER
    if locks == "a second file":
        monkeypatch.setattr(audit_files, "_fcntl", None)
        program = WRITER.replace("log = ", "import sdcduck.catalog.audit_files as one\none._fcntl = None\nlog = ")
    others = [subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in "ab"]
    logs = [AuditLog(path) for _ in range(2)]
    threads = [threading.Thread(target=lambda log=log: [log.write(turn=turn) for turn in range(25)]) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [other.wait() for other in others] == [0, 0]
    assert verify_log(path)[0] == 100
    assert not path.with_name("questions.jsonl.lock").exists()


def test_a_lock_that_nobody_gives_back_is_no_answer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_files, "_SECONDS_FOR_LOCK", 0.05)
    log = AuditLog(path)
    with audit_files.held(path), pytest.raises(TimeoutError):
        log.write(turn=1)
    log.write(turn=1)
    monkeypatch.setattr(audit_files, "_fcntl", None)
    path.with_name("questions.jsonl.lock").touch()
    with pytest.raises(TimeoutError):
        log.write(turn=2)


def _cut_last(text: list[str]) -> list[str]:
    return text[:-1]


def _cut_half_a_line(text: list[str]) -> list[str]:
    return [*text[:-1], text[-1][:20]]


def _change_last(text: list[str]) -> list[str]:
    return [*text[:-1], text[-1].replace("0002", "0003")]


def _chain_anew(text: list[str]) -> list[str]:
    line = json.loads(text[-1]) | {"name": "0009"}
    return [*text[:-1], json.dumps(line | {"hash": audit_files.hash_of_line(line)}) + "\n"]


def _add_a_line(text: list[str]) -> list[str]:
    return [*text, text[-1]]


def _add_rubbish(text: list[str]) -> list[str]:
    return [*text, "\xff\xfe"]


def _add_deep_json(text: list[str]) -> list[str]:
    return [*text, "[" * 100_000 + "\n"]


def _add_a_list(text: list[str]) -> list[str]:
    return [*text, "[]\n"]


@pytest.mark.parametrize(
    "change",
    [_cut_last, _cut_half_a_line, _change_last, _chain_anew, _add_a_line, _add_rubbish, _add_deep_json, _add_a_list],
    ids=lambda change: change.__name__.strip("_"),
)
def test_after_a_change_from_outside_nothing_is_added(path: Path, change) -> None:  # type: ignore[no-untyped-def]
    log = AuditLog(path)
    log.write(name="0001")
    log.write(name="0002")
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))), encoding="latin-1")
    before = path.read_bytes()
    with pytest.raises(OSError, match="the audit log was changed"):
        log.write(name="0003")
    assert path.read_bytes() == before


def test_a_line_must_stand_to_the_letter(path: Path) -> None:
    # Parsed, the second name wins and the hash is right; somebody who looks at the file reads the first.
    AuditLog(path).write(name="ann")
    path.write_text(path.read_text().replace('"name"', '"name": "bob", "name"'))
    with pytest.raises(sdcduck.SDCError, match="line 1 does not follow"):
        verify_log(path)


def test_a_log_that_is_gone_is_not_begun_anew(people: duckdb.DuckDBPyConnection, path: Path) -> None:
    guarded = guard(people, log=path)
    guarded.sql("SELECT count(*) FROM people")
    path.unlink()
    with pytest.raises(Refused, match="SDC092"):
        guarded.sql("SELECT count(*) FROM people")
    assert not path.exists()


@pytest.mark.parametrize("fails", ["write", "fsync"])
def test_a_write_that_fails_leaves_no_half_line(path: Path, fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditLog(path)
    log.write(turn=1)
    whole = path.read_bytes()

    class FullDisk:
        """Takes ten bytes, then says that there is no room."""

        def __init__(self, file: object) -> None:
            self._file, self._room = file, 10

        def __getattr__(self, name: str) -> object:
            return getattr(self._file, name)

        def write(self, text: bytes) -> int:
            if not self._room:
                raise OSError(28, "No space left on device")
            self._room = 0
            return self._file.write(text[:10])  # type: ignore[attr-defined,no-any-return]

    def fails_to_sync(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        if fails == "write":
            append = audit_files.append
            patched.setattr(audit_files, "append", lambda file, end, text: append(FullDisk(file), end, text))  # type: ignore[arg-type]
        else:
            patched.setattr(os, "fsync", fails_to_sync)
        with pytest.raises(OSError, match=r"No space|Input/output"):
            log.write(turn=2)
    assert path.read_bytes() == whole
    log.write(turn=2)
    assert verify_log(path)[0] == 2


def test_the_log_says_what_answered(people: duckdb.DuckDBPyConnection, path: Path) -> None:
    guarded = guard(people, log=path)
    query = "SELECT region, count(*) FROM people JOIN regions USING (region) GROUP BY region"
    guarded.sql(query, user="ann")
    guarded.sql("FROM regions")
    people.execute("FROM sdc_unprotect('regions')").fetchall()
    with pytest.raises(Refused):
        guarded.sql(query, user="bob")
    lines = people.execute(
        "SELECT number, \"user\", verdict, rows, tables, methods, sql <> '', milliseconds > 0 FROM sdc_audit_log(?)",
        [str(path)],
    ).fetchall()
    assert lines == [
        (1, "ann", "answered", 3, ["people", "regions"], ["cell_key"], True, True),
        (2, "", "answered", 3, ["regions"], [], True, True),
        (3, "bob", "SDC020", 0, [], [], False, True),
    ]
    versions = people.execute("SELECT list(policies ORDER BY number) FROM sdc_audit_log(?)", [str(path)]).fetchall()[0][
        0
    ]
    assert versions[0] == versions[1] != versions[2]
    assert people.execute(
        "SELECT max(hash) FILTER (number = 3), max(time) - min(time) < INTERVAL 1 HOUR FROM sdc_audit_log(?)",
        [str(path)],
    ).fetchall() == [(verify_log(path)[1], True)]


def test_a_broken_chain_is_one_error_in_sql(people: duckdb.DuckDBPyConnection, path: Path) -> None:
    guarded = guard(people, log=path)
    for user in ("ann", "bob", "cyd"):
        guarded.sql("SELECT count(*) FROM people", user=user)
    path.write_text(path.read_text().replace("bob", "eve"))
    with pytest.raises(duckdb.Error, match="sdc_audit_log: the audit log was changed: line 2 does not follow"):
        people.execute("FROM sdc_audit_log(?)", [str(path)]).fetchall()


def test_files_that_are_no_log(people: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "b.jsonl").touch()
    for name, message in (
        ("none.jsonl", "there is no file"),
        ("*.jsonl", "must name one file"),
        ("", "must name a file"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            people.execute("FROM sdc_audit_log(?)", [str(tmp_path / name) if name else ""]).fetchall()
    people.execute("SET enable_external_access = false")
    with pytest.raises(duckdb.Error):
        people.execute("FROM sdc_audit_log(?)", [str(tmp_path / "a.jsonl")]).fetchall()
