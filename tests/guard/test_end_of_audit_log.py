"""The end of the audit log: lines cut off there, and a log that is gone, are missed after a restart too."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

import sdcduck
from sdcduck.catalog import audit_files
from sdcduck.catalog.audit_log import AuditLog
from sdcduck.catalog.audit_reading import read_log, verify_log
from sdcduck.cli import app
from sdcduck.guard import Refused, guard


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "questions.jsonl"


@pytest.fixture
def beside(path: Path) -> Path:
    return path.with_name("questions.jsonl.last")


def written(path: Path, lines: int) -> AuditLog:
    log = AuditLog(path)
    for turn in range(lines):
        log.write(turn=turn)
    return log


def cut(path: Path, left: int) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:left]))


def refused_everywhere(path: Path, message: str) -> None:
    """Who opens a log, reads it and verifies it hears the same, and nothing is made or changed."""
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    for look in (AuditLog, read_log, verify_log):
        with pytest.raises(sdcduck.SDCError, match=re.escape(message)):
            look(path)
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before


def test_the_last_line_stands_beside_the_log(path: Path, beside: Path) -> None:
    log = AuditLog(path)
    assert beside.read_text().split() == ["0", "0" * 64]
    for turn in range(12):
        log.write(turn=turn)
        assert beside.read_text().split() == [str(turn + 1), verify_log(path)[1]]
    for file in (path, beside):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("left", [0, 1, 4])
def test_lines_cut_off_at_the_end_are_missed(path: Path, left: int) -> None:
    written(path, 5)
    cut(path, left)
    refused_everywhere(path, "it had 5 lines, and lines at its end are gone")


def test_a_log_that_is_gone_is_missed(path: Path) -> None:
    written(path, 5)
    path.unlink()
    refused_everywhere(path, "it had 5 lines, and lines at its end are gone; if it was moved")


def test_lines_cut_off_and_written_anew_are_missed(path: Path, beside: Path) -> None:
    written(path, 5)
    noted = beside.read_bytes()
    cut(path, 3)
    beside.unlink()
    written(path, 4)
    beside.write_bytes(noted)
    refused_everywhere(path, "line 5 is not the one that was written")


def test_what_another_wrote_and_somebody_cut_off_is_missed(path: Path) -> None:
    """Also where the log ends again with the very line that the writer remembers."""
    first, second = AuditLog(path), AuditLog(path)
    first.write(turn=1)
    for left in (1, 2):
        for turn in range(2):
            second.write(turn=turn)
        whole = path.read_bytes()
        cut(path, left)
        with pytest.raises(OSError, match="lines at its end are gone"):
            first.write(turn=2)
        path.write_bytes(whole)
    first.write(turn=2)
    assert verify_log(path)[0] == 6


def test_a_log_goes_on_from_a_line_that_is_not_noted(path: Path, beside: Path) -> None:
    """The machine stopped between the line and the note, or before the note was on disk."""
    log = written(path, 2)
    noted = beside.read_bytes()
    log.write(turn=2)
    log.write(turn=3)
    for other in (None, AuditLog(path)):
        beside.write_bytes(noted)
        assert verify_log(path)[0] == len(read_log(path))
        (other or log).write(turn=4)
        assert int(beside.read_text().split()[0]) == verify_log(path)[0]
    beside.write_bytes(noted)
    AuditLog(path)
    assert beside.read_text().split() == list(map(str, verify_log(path)))


def test_an_older_note_must_be_of_this_log(path: Path, beside: Path, tmp_path: Path) -> None:
    log = written(path, 5)
    written(tmp_path / "other.jsonl", 2)
    beside.write_bytes((tmp_path / "other.jsonl.last").read_bytes())
    with pytest.raises(OSError, match="line 2 is not the one that was written"):
        log.write(turn=5)
    refused_everywhere(path, "line 2 is not the one that was written")


def test_a_log_from_before_there_was_a_note_gets_one(path: Path, beside: Path) -> None:
    written(path, 3)
    beside.unlink()
    assert verify_log(path)[0] == 3
    assert not beside.exists()
    AuditLog(path)
    assert beside.read_text().split() == list(map(str, verify_log(path)))
    cut(path, 2)
    refused_everywhere(path, "it had 3 lines")


def test_a_guard_does_not_make_the_note_anew_while_it_writes(path: Path, beside: Path) -> None:
    log = written(path, 2)
    beside.unlink()
    with pytest.raises(FileNotFoundError):
        log.write(turn=2)
    assert not beside.exists()
    assert verify_log(path)[0] == 2


@pytest.mark.parametrize("text", ["", "2", "not a number", "-1 " + "0" * 64 + "\n", f"{2:20d} " + "0" * 64 + "\n\n"])
def test_a_note_that_cannot_be_read_is_no_answer(path: Path, beside: Path, text: str) -> None:
    log = written(path, 2)
    beside.write_text(text)
    with pytest.raises(OSError, match="does not hold number and hash of a line"):
        log.write(turn=2)
    if text:  # nothing at all is what is left where a guard was killed between making the file and writing to it
        refused_everywhere(path, "the file beside it, .last, does not hold number and hash of a line")
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("fails", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_a_note_that_cannot_be_written_is_no_answer_and_no_line(
    path: Path, beside: Path, fails: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = written(path, 2)
    whole, noted = path.read_bytes(), beside.read_bytes()
    over = audit_files.write_over

    def half(file: int, text: bytes) -> None:
        monkeypatch.setattr(audit_files, "write_over", over)  # what was there can be written again
        over(file, text[:30])
        raise fails

    monkeypatch.setattr(audit_files, "write_over", half)
    with pytest.raises(type(fails)):
        log.write(turn=2)
    assert (path.read_bytes(), beside.read_bytes()) == (whole, noted)
    log.write(turn=2)
    assert verify_log(path)[0] == 3


def test_a_note_that_is_a_folder_is_no_log(path: Path, beside: Path) -> None:
    beside.mkdir()
    with pytest.raises(sdcduck.SDCError, match="the audit log cannot be written"):
        AuditLog(path)


def test_both_files_moved_begin_a_new_log(path: Path, beside: Path) -> None:
    written(path, 3)
    old = path.with_name("2025.jsonl")
    path.rename(old)
    beside.rename(old.with_name("2025.jsonl.last"))
    written(path, 1)
    assert (verify_log(old)[0], verify_log(path)[0]) == (3, 1)
    cut(old, 2)
    refused_everywhere(old, "it had 3 lines")


def test_without_locks_of_the_system(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_files, "_fcntl", None)
    written(path, 3)
    cut(path, 2)
    refused_everywhere(path, "it had 3 lines")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "people.duckdb"
    con = sdcduck.connect(path, secret="the secret of the tests")
    con.execute("CREATE TABLE regions AS SELECT range AS region FROM range(3)")
    con.execute("FROM sdc_declare_public('regions')").fetchall()
    con.close()
    run = CliRunner().invoke(app, ["user", "add", str(path), "ann"], input="correct horse battery\n")
    assert run.exit_code == 0
    return path


def _in_sql(file: Path, log: Path) -> str:
    con = sdcduck.connect()
    try:
        with pytest.raises(duckdb.Error) as problem:
            con.execute("FROM sdc_audit_log(?)", [str(log)]).fetchall()
    finally:
        con.close()
    return str(problem.value)


def _of_a_guard(file: Path, log: Path) -> str:
    with pytest.raises(sdcduck.SDCError) as problem:
        guard(file, log=log)
    return str(problem.value)


def _of_the_gateway(file: Path, log: Path) -> str:
    result = CliRunner().invoke(app, ["serve", str(file), "--port", "0", "--log", str(log)])
    assert result.exit_code != 0
    return re.sub(r"\s+", " ", result.output)


def _of_the_shell(file: Path, log: Path) -> str:
    result = CliRunner().invoke(app, ["shell", str(file), "--as", "ann", "--log", str(log)], input="FROM regions;")
    assert result.exit_code != 0
    return re.sub(r"\s+", " ", result.output)


@pytest.mark.parametrize("way", [_in_sql, _of_a_guard, _of_the_gateway, _of_the_shell])
def test_every_way_in_says_so(file: Path, path: Path, way: Callable[[Path, Path], str]) -> None:
    one = guard(file, log=path)
    for _ in range(2):
        one.sql("FROM regions")
    one.close()
    cut(path, 1)
    assert "the audit log was changed: it had 2 lines" in way(file, path)


def test_what_happens_to_the_note_is_no_answer(file: Path, path: Path, beside: Path) -> None:
    one = guard(file, log=path)
    one.sql("FROM regions")
    os.truncate(beside, 20)
    with pytest.raises(Refused, match="SDC092"):
        one.sql("FROM regions")
    assert len(path.read_text().splitlines()) == 1
