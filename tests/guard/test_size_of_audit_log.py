"""Nobody fills the disk with the audit log, nobody is answered without a line in it, and its chain goes over all files."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sdcduck
from sdcduck.catalog import audit_files, audit_log
from sdcduck.catalog.audit_log import AuditLog, OverQuota
from sdcduck.catalog.audit_reading import read_log, verify_log
from sdcduck.guard import Guard, Refused, guard


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "questions.jsonl"


@pytest.fixture
def people(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute("CREATE TABLE people AS SELECT i AS id, i % 3 AS region FROM range(90) t(i)")
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['region'])").fetchall()
    return con


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """What the time is."""
    now = [datetime(2026, 1, 5, 10, 30, tzinfo=UTC)]
    monkeypatch.setattr(audit_log, "_now", lambda: now[0])
    return now


def files(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir() if file.name.startswith("questions"))


# --- texts -----------------------------------------------------------------------------------------------------------


def test_a_long_question_takes_little_room_and_none_the_second_time(
    people: duckdb.DuckDBPyConnection, path: Path
) -> None:
    guarded = guard(people, log=path)
    query = f"SELECT count(*) AS n, '{'é' * 49_000}' AS text FROM people"
    sizes = [0]
    for _ in range(3):
        assert guarded.sql(query, user="ann").num_rows == 1
        sizes.append(path.stat().st_size)
    first, *again = (after - before for before, after in itertools.pairwise(sizes))
    assert first < 3_000 < 49_000 * 6 * 2
    assert max(again) < 1_000
    lines = people.execute("SELECT query, sql LIKE '%ééé%', cut FROM sdc_audit_log(?)", [str(path)]).fetchall()
    assert lines == [(query, True, [])] * 3


def noise(length: int) -> str:
    """What cannot be packed."""
    return "".join(chr(0x4E00 + number * 7919 % 20_000 ^ number * 104_729 % 97) for number in range(length))


def test_nobody_hides_a_question_that_is_answered_behind_a_long_text(
    people: duckdb.DuckDBPyConnection, path: Path
) -> None:
    guarded = guard(people, log=path)
    query = f"SELECT '{noise(30_000)}' AS t, count(*) AS n FROM people WHERE region = 1"
    with pytest.raises(Refused):
        guarded.sql(query.replace("region", "secret"), user="ann")
    for _ in range(2):
        guarded.sql(query, user="ann")
    refused, *answered = people.execute("SELECT query, sql, cut FROM sdc_audit_log(?)", [str(path)]).fetchall()
    asked_first = query.replace("region", "secret")
    told = f" [cut: {len(asked_first)} characters, SHA-256 {hashlib.sha256(asked_first.encode()).hexdigest()}]"
    assert refused[2] == ["query"]
    assert refused[0].endswith(told)
    assert asked_first.startswith(refused[0].removesuffix(told).removesuffix(".."))
    assert [line[0] for line in answered] == [query, query]
    assert [line[2] for line in answered] == [["sql"], ["sql"]]  # which follows from the question
    sizes = list(map(len, path.read_bytes().splitlines()))
    assert sizes[0] < 21_000
    assert sizes[2] < 1_000


def test_a_text_that_was_cut_does_not_stand_for_the_whole(path: Path) -> None:
    log, text = AuditLog(path), noise(30_000)
    for verdict in ("SDC030", "answered", "SDC091", "answered"):
        AuditLog(path).write(verdict=verdict, query=text)
        log.write(verdict=verdict, query=text)
    lines = read_log(path)
    assert [isinstance(line["query"], str) for line in lines] == [False, False, True, True, True, True, True, True]
    assert all(line["query"] == text for line in lines[2:])
    raw = [json.loads(line)["query"] for line in path.read_text().splitlines()]
    assert raw[1] == {"line": 1, "of": "query"}
    assert raw[3:] == [{"line": 3, "of": "query"}] * 5


@pytest.mark.parametrize("sign", ["é", "𝄞", "x", "\ud800", "\x00", '"'])
@pytest.mark.parametrize("length", [0, 1, 200, 201, 3_000, 19_998, 19_999, 20_000, 100_000])
def test_every_text_is_bounded_and_read_as_it_was(path: Path, sign: str, length: int) -> None:
    text = sign * length
    log = AuditLog(path)
    for user in ("ann", "bob", text):
        log.write(user=user, query=text, sql=text)
    assert max(map(len, path.read_bytes().splitlines())) < 2 * 20_100 + 600
    assert [(line["query"], line["sql"]) for line in read_log(path)] == [(text, text)] * 3
    assert read_log(path)[2]["user"] == text
    if length > 200:
        raw = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["sql"] for line in raw] == [{"line": 1, "of": "query"}] * 3
        assert raw[1]["query"] == {"line": 1, "of": "query"}


def test_another_process_names_texts_that_it_only_read(path: Path) -> None:
    text = "SELECT " + "x" * 1000
    AuditLog(path).write(query=text)
    first, second = AuditLog(path), AuditLog(path)
    first.write(query=text + " FROM a")
    second.write(query=text + " FROM a", sql=text)
    assert path.stat().st_size < 2 * 1000 + 3 * 400
    assert [line["query"] for line in read_log(path)] == [text, text + " FROM a", text + " FROM a"]
    assert read_log(path)[2]["sql"] == text


def test_a_name_of_a_text_that_is_not_there_is_a_change(path: Path) -> None:
    log = AuditLog(path)
    for named in (
        {"line": 7, "of": "query"},
        {"line": 1, "of": "hats"},
        {"line": [], "of": "query"},
        {"line": 1},
        {"packed": "!"},
        {"packed": "eA=="},
        {"packed": 7},
    ):
        for file in path.parent.iterdir():
            file.unlink()
        log = AuditLog(path)
        log.write(query=named)
        with pytest.raises(sdcduck.SDCError, match="line 1 names a text that is not there"):
            read_log(path)


# --- quota -----------------------------------------------------------------------------------------------------------


def asked(guarded: Guard, user: str, times: int) -> int:
    """How many of so many questions are answered."""
    answered = 0
    for turn in range(times):
        with contextlib.suppress(Refused):
            guarded.sql(f"SELECT count(*) AS n{turn} FROM people", user=user)
            answered += 1
    return answered


def counted(con: duckdb.DuckDBPyConnection, path: Path) -> list[tuple[Any, ...]]:
    return con.execute(
        "SELECT \"user\", count(*) FILTER (verdict = 'answered'), sum(left_out)::INTEGER FROM sdc_audit_log(?) "
        "GROUP BY ALL ORDER BY ALL",
        [str(path)],
    ).fetchall()


def test_who_writes_too_much_is_refused_and_counted_and_others_are_not(
    people: duckdb.DuckDBPyConnection, path: Path, clock: list[datetime]
) -> None:
    guarded = guard(people, log=AuditLog(path, quota=20_000))
    heard: list[str] = []
    guarded.audit.heard = lambda verdict, seconds, rows: heard.append(verdict)
    answers = asked(guarded, "ann", 60)
    assert 3 < answers < 50
    assert heard.count("answered") == answers
    assert heard.count("SDC095") == 60 - answers
    size = path.stat().st_size
    assert size < 20_000 + 8 * 600
    assert asked(guarded, "ann", 4) == 0
    assert asked(guarded, "bob", 3) == 3
    guarded.audit.settle()
    assert counted(people, path) == [("ann", answers, 64 - answers), ("bob", 3, 0)]
    clock[0] += timedelta(hours=1)
    assert asked(guarded, "ann", 1) == 1
    assert counted(people, path) == [("ann", answers + 1, 64 - answers), ("bob", 3, 0)]


def test_the_number_left_out_is_written_without_anybody_asking_for_it(
    people: duckdb.DuckDBPyConnection, path: Path, clock: list[datetime]
) -> None:
    guarded = guard(people, log=AuditLog(path, quota=5_000))
    answers = asked(guarded, "ann", 1000)
    lines = people.execute(
        "SELECT left_out FROM sdc_audit_log(?) WHERE verdict = 'SDC095' ORDER BY number", [str(path)]
    ).fetchall()
    assert [line[0] for line in lines] == [1, 1, 2, 4, 8, 16, 32, 64, 128, 256]
    clock[0] += timedelta(hours=1)
    assert asked(guarded, "bob", 1) == 1  # whose line comes after the rest of ann's
    assert counted(people, path) == [("ann", answers, 1000 - answers), ("bob", 1, 0)]


def test_a_question_over_the_quota_is_refused_before_it_is_looked_at(
    people: duckdb.DuckDBPyConnection, path: Path, clock: list[datetime]
) -> None:
    guarded = guard(people, log=AuditLog(path, quota=1))
    with pytest.raises(Refused, match="SDC095"):  # looked at: only then it is known how long its line is
        guarded.sql("SELECT count(*) FROM people", user="ann")
    guarded._schema = None  # type: ignore[assignment]
    for ask in (
        lambda: guarded.sql("SELECT count(*) FROM people", user="ann"),
        lambda: guarded.stream("SELECT count(*) FROM people", user="ann"),
        lambda: guarded.columns("SELECT count(*) FROM people", user="ann"),
    ):
        with pytest.raises(Refused, match="SDC095"):
            ask()
    guarded.audit.settle()
    assert counted(people, path) == [("ann", 0, 4)]


def test_refused_questions_count_as_well(people: duckdb.DuckDBPyConnection, path: Path, clock: list[datetime]) -> None:
    guarded = guard(people, log=AuditLog(path, quota=5_000))
    codes = set()
    for turn in range(30):
        with pytest.raises(Refused) as refused:
            guarded.sql(f"SELECT secret{turn} FROM people", user="ann")
        codes.add(refused.value.code)
    assert codes == {"SDC030", "SDC095"}
    assert path.stat().st_size < 5_000 + 6 * 600


def test_a_stream_that_has_begun_gets_its_end(
    people: duckdb.DuckDBPyConnection, path: Path, clock: list[datetime]
) -> None:
    people.execute("CREATE TABLE numbers AS SELECT range AS n FROM range(200_000)")
    people.execute("FROM sdc_declare_public('numbers')").fetchall()
    guarded = guard(people, log=AuditLog(path, quota=700))
    reader = guarded.stream("SELECT n FROM numbers", user="ann")
    with pytest.raises(Refused, match="SDC095"):
        guarded.sql("SELECT count(*) FROM people", user="ann")
    assert reader.read_all().num_rows == 200_000
    found = [(line["verdict"], line["rows"]) for line in read_log(path)]
    assert found[0][0] == "begun"
    assert found[-1] == ("answered", 200_000)


def test_all_writers_of_a_log_share_the_quota_and_a_restart_gives_none_anew(path: Path, clock: list[datetime]) -> None:
    logs = [AuditLog(path, quota=10_000) for _ in range(3)]
    written = 0
    for turn in range(300):
        try:
            logs[turn % 3].write(user="ann", turn=turn)
            written += 1
        except OverQuota:
            pass
    own = sum(len(line) for line in path.read_bytes().splitlines(keepends=True) if b"SDC095" not in line)
    assert own <= 10_000 < own + 400
    anew = AuditLog(path, quota=10_000)
    with pytest.raises(OverQuota):
        anew.write(user="ann", turn=0)
    anew.write(user="bob", turn=0)
    for log in logs:
        log.settle()
    lines = read_log(path)
    assert sum("turn" in line for line in lines if line["user"] == "ann") == written
    assert sum(line.get("left_out", 0) for line in lines) == 300 - written + 1


def test_a_number_left_out_that_cannot_be_written_is_no_answer_either(
    path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[datetime]
) -> None:
    log = AuditLog(path, quota=1)

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(audit_files, "append", fails)
        for _ in range(3):
            with pytest.raises(OSError, match="No space"):
                log.write(user="ann")
    with pytest.raises(OverQuota):
        log.write(user="ann")
    assert [line["left_out"] for line in read_log(path)] == [4]


def test_a_folder_that_takes_no_new_file_is_refused_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda folder, how: (folder, how) != (path.parent, os.W_OK))
    with pytest.raises(sdcduck.SDCError, match="its folder cannot be written"):
        AuditLog(path)
    assert files(path) == []
    AuditLog(path, size=None).write(turn=1)


def test_whoever_asks_has_a_quota(people: duckdb.DuckDBPyConnection, path: Path, clock: list[datetime]) -> None:
    for user in ("two\nlines", "\ud800", "", "x" * 50_000, "x" * 50_000 + "y", None):
        guarded = guard(people, log=AuditLog(path, quota=30_000))
        assert 0 < asked(guarded, user, 60) < 60  # type: ignore[arg-type]
        guarded.audit.settle()
    assert sum(line.get("left_out", 0) > 0 for line in read_log(path)) >= 6
    assert len({json.dumps(line["user"]) for line in read_log(path)}) == 6


@pytest.mark.parametrize("limits", [{"quota": 0}, {"quota": -1}, {"size": 0}, {"size": float("nan")}])
def test_limits_that_are_none(path: Path, limits: dict[str, Any]) -> None:
    with pytest.raises(sdcduck.SDCError, match="must be a number of bytes above 0"):
        AuditLog(path, **limits)
    assert files(path) == []


# --- files -----------------------------------------------------------------------------------------------------------


def written(path: Path, lines: int, size: int = 1_000) -> AuditLog:
    log = AuditLog(path, size=size)
    for turn in range(lines):
        log.write(turn=turn, query="x" * 300)
    return log


def test_the_log_goes_on_in_new_files_and_the_chain_over_all(path: Path) -> None:
    log = written(path, 12)
    parts = files(path)
    assert parts[:4] == [
        "questions.jsonl",
        "questions.jsonl.000001",
        "questions.jsonl.000002",
        "questions.jsonl.000003",
    ]
    assert parts[-1] == "questions.jsonl.last"
    assert all((path.parent / part).stat().st_size <= 1_000 for part in parts)
    assert [line["turn"] for line in read_log(path)] == list(range(12))
    assert [line["query"] for line in read_log(path)] == ["x" * 300] * 12  # each file has its texts
    assert [line["number"] for line in read_log(path)] == list(range(1, 13))
    old, new = (
        [json.loads(line) for line in (path.parent / part).read_text().splitlines()] for part in (parts[1], parts[2])
    )
    assert "file" not in old[0]
    assert new[0]["file"] == 2
    assert new[0]["previous"] == old[-1]["hash"]
    number = verify_log(path)[0]
    log.write(turn=12)
    AuditLog(path, size=1_000).write(turn=13)
    assert (number, verify_log(path)[0]) == (12, 14)


def _change_old(path: Path) -> None:
    old = path.with_name("questions.jsonl.000002")
    old.write_text(old.read_text().replace('"turn": ', '"tern": ', 1))


def _cut_old(path: Path) -> None:
    old = path.with_name("questions.jsonl.000002")
    old.write_text(old.read_text().splitlines(keepends=True)[0])


def _swap_old(path: Path) -> None:
    one, two = path.with_name("questions.jsonl.000001"), path.with_name("questions.jsonl.000002")
    texts = one.read_bytes(), two.read_bytes()
    one.write_bytes(texts[1])
    two.write_bytes(texts[0])


def _remove_old(path: Path) -> None:
    path.with_name("questions.jsonl.000002").unlink()


def _repeat_old(path: Path) -> None:
    path.with_name("questions.jsonl.000002").write_bytes(path.with_name("questions.jsonl.000001").read_bytes())


def _empty_old(path: Path) -> None:
    path.with_name("questions.jsonl.000002").write_bytes(b"")


def _cut_head(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))


def _older_current(path: Path) -> None:
    path.write_bytes(path.with_name("questions.jsonl.000002").read_bytes())


@pytest.mark.parametrize(
    "change", [_change_old, _cut_old, _swap_old, _remove_old, _repeat_old, _empty_old, _cut_head, _older_current]
)
def test_a_change_in_any_file_is_found(
    people: duckdb.DuckDBPyConnection, path: Path, change: Callable[[Path], None]
) -> None:
    written(path, 11)
    change(path)
    for look in (read_log, verify_log, lambda path: people.execute("FROM sdc_audit_log(?)", [str(path)]).fetchall()):
        with pytest.raises((sdcduck.SDCError, duckdb.Error), match=r"the audit log (was changed|is not all there)"):
            look(path)


def test_files_may_be_put_away(people: duckdb.DuckDBPyConnection, path: Path, tmp_path: Path) -> None:
    log = written(path, 12)
    last = verify_log(path)
    for number in (1, 2):
        path.with_name(f"questions.jsonl.{number:06d}").rename(tmp_path / f"old.{number}")
    log.write(turn=12)
    anew = AuditLog(path, size=1_000)
    anew.write(turn=13)
    with pytest.raises(sdcduck.SDCError, match=r"000001 is gone; .* first := 3"):
        verify_log(path)
    assert verify_log(path, first=3)[0] == last[0] + 2
    turns = people.execute("SELECT min(number), max(number) FROM sdc_audit_log(?, first := 3)", [str(path)]).fetchall()
    first = json.loads(path.with_name("questions.jsonl.000003").read_text().splitlines()[0])["number"]
    assert turns == [(first, 14)]
    for wrong in (0, 99):
        with pytest.raises(duckdb.Error, match="argument 'first' must be the number of a file"):
            people.execute(f"FROM sdc_audit_log(?, first := {wrong})", [str(path)]).fetchall()


def test_the_files_of_an_old_log_are_not_the_beginning_of_a_new_one(path: Path) -> None:
    written(path, 12)
    path.unlink()
    with pytest.raises(sdcduck.SDCError, match="it had 12 lines, and lines at its end are gone"):
        AuditLog(path)
    path.with_name("questions.jsonl.last").unlink()
    before = files(path)
    with pytest.raises(sdcduck.SDCError, match="files of an earlier audit log are there"):
        AuditLog(path)
    assert files(path) == before


def test_a_file_that_is_in_the_way_is_not_written_over(path: Path) -> None:
    log = written(path, 1, size=1_500)
    path.with_name("questions.jsonl.000001").write_text("mine")
    log.write(turn=1)
    log.write(turn=2, query="y" * 300)
    with pytest.raises(OSError, match=r"there is a questions\.jsonl\.000001 already"):
        log.write(turn=3, query="z" * 300)
    assert verify_log(path)[0] == 3
    assert path.with_name("questions.jsonl.000001").read_text() == "mine"


@pytest.mark.parametrize("stops", ["rename", "make", "made", "append", "write_over"])
def test_a_stop_between_two_files_loses_nothing(path: Path, stops: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes next, the same process or another one, goes on; what was refused is not there."""
    for comes in ("the same", "another", "both"):
        for file in path.parent.iterdir():
            file.unlink()
        log = written(path, 2)
        other = AuditLog(path, size=1_000)
        with monkeypatch.context() as patched:
            make = audit_files.make

            def made(path: Path, mode: int, make: Callable[..., None] = make) -> None:
                make(path, mode)
                raise KeyboardInterrupt

            def fails(*_: object) -> None:
                raise KeyboardInterrupt

            if stops == "rename":
                patched.setattr(os, "rename", fails)
            elif stops == "made":
                patched.setattr(audit_files, "make", made)
            elif stops == "write_over":  # the one before the old file is put away
                patched.setattr(audit_files, "write_over", fails)
            else:
                patched.setattr(audit_files, stops, fails)
            with pytest.raises(KeyboardInterrupt):
                log.write(turn=2, query="y" * 300)
        assert verify_log(path)[0] == 2
        assert len(read_log(path)) == 2
        if comes != "another":
            log.write(turn=3, query="y" * 300)
        if comes != "the same":
            other.write(turn=4, query="z" * 300)
            AuditLog(path, size=1_000).write(turn=5)
        assert verify_log(path)[0] == len(read_log(path)) == {"the same": 3, "another": 4, "both": 5}[comes]


WRITER = """
import sys
from sdcduck.catalog.audit_log import AuditLog
log = AuditLog(sys.argv[1], size=3_000)
for turn in range(40):
    log.write(user=sys.argv[2], turn=turn, query=("x" if turn % 3 else "y") * 300)
"""


def test_many_writers_go_on_in_one_new_file_together(path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in "abc"]
    while any(writer.poll() is None for writer in writers):
        if path.with_name("questions.jsonl.last").exists():
            verify_log(path)  # whoever reads meanwhile sees a log that is whole
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    lines = read_log(path)
    assert verify_log(path)[0] == len(lines) == 120
    assert sorted((line["user"], line["turn"]) for line in lines) == [
        (name, turn) for name in "abc" for turn in range(40)
    ]
    assert len(files(path)) > 10


# --- what a guard sees -----------------------------------------------------------------------------------------------


def test_a_change_of_the_same_length_is_found_when_a_guard_opens_the_log(
    people: duckdb.DuckDBPyConnection, path: Path
) -> None:
    guarded = guard(people, log=path)
    for user in ("ann", "bob", "cyd"):
        guarded.sql("SELECT count(*) FROM people", user=user)
    path.write_text(path.read_text().replace('"bob"', '"eve"'))
    guarded.sql("SELECT count(*) FROM people", user="ann")  # one that runs looks at the last line
    for look in (lambda: guard(people, log=path), lambda: verify_log(path)):
        with pytest.raises(sdcduck.SDCError, match="line 2 does not follow"):
            look()


# --- parameters ------------------------------------------------------------------------------------------------------


def test_parameters_are_written_whole_where_there_is_an_answer(people: duckdb.DuckDBPyConnection, path: Path) -> None:
    guarded = guard(people, log=path)
    values = [f"{place}-{'x' * 300}" for place in range(200)]
    places = ", ".join(f"${place}" for place in range(1, 201))
    guarded.sql(f"SELECT count(*) FROM people WHERE region::VARCHAR IN ({places})", values)
    guarded.stream("SELECT count(*) FROM people WHERE region = $r", {"r": 1}).read_all()
    guarded.sql("SELECT count(*) FROM people")
    with pytest.raises(Refused):
        guarded.sql("SELECT id FROM people WHERE region = ?", [2])
    lines = read_log(path)
    assert json.loads(lines[0]["parameters"]) == {str(place): value for place, value in enumerate(values, 1)}
    assert [line.get("parameters") for line in lines[1:]] == ['{"r": 1}', None, '{"1": 2}']
    told = people.execute("SELECT parameters FROM sdc_audit_log(?) ORDER BY number", [str(path)]).fetchall()
    assert [row[0] for row in told] == [line.get("parameters") for line in lines]


def test_a_parameter_of_which_there_is_no_text_is_refused(people: duckdb.DuckDBPyConnection, path: Path) -> None:
    loop: list[object] = []
    loop.append(loop)
    for value in (loop, 10**5000):
        with pytest.raises(Refused, match="SDC090"):
            guard(people, log=path).sql("SELECT count(*) FROM people WHERE region = ?", [value])


def test_a_restart_counts_all_files_of_the_hour(path: Path, clock: list[datetime]) -> None:
    """Else whoever fills a file begins anew with the next."""
    log = AuditLog(path, quota=10_000, size=3_000)
    for turn in range(40):
        log.write(user="ann", turn=turn)
    with pytest.raises(OverQuota):
        log.write(user="ann", text="x" * 3_000)
    assert len(files(path)) > 4
    with pytest.raises(OverQuota):
        AuditLog(path, quota=10_000, size=3_000).write(user="ann", text="x" * 3_000)
    AuditLog(path, quota=10_000, size=3_000).write(user="bob", text="x" * 3_000)
    clock[0] += timedelta(hours=1)
    AuditLog(path, quota=10_000, size=3_000).write(user="ann", text="x" * 3_000)
    path.with_name("questions.jsonl.000001").unlink()
    AuditLog(path, quota=10_000, size=3_000).write(user="ann", turn=1)
