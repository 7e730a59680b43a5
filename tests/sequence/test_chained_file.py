"""Files of lines that processes share: what was written stays, whoever writes, and whatever happens to the file."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from full_disk import no_more_than
from test_plan_chain import STATEMENTS, TRACES

from sdcduck.catalog import audit_files
from sdcduck.catalog.chained_file import ChainBroken, ChainedFile, Reached
from sdcduck.catalog.knowledge_files import KnowledgeFile, all_lines
from sdcduck.catalog.plan_file import Asker, PlanFile

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
FIRST = {"version": 1, "login": "ann"}


def chained(path: Path, **more: object) -> ChainedFile:
    return ChainedFile(path / "state", "the state", **({"first": FIRST} | more))  # type: ignore[arg-type]


def spend(file: ChainedFile, cost: float) -> Reached:
    with file.held() as held:
        held.lines()
        return held.append(cost=cost)


def costs(file: ChainedFile) -> list[float]:
    return [line["cost"] for line in file.lines()]


def test_lines_come_back_in_their_order_to_whoever_reads_on(tmp_path: Path) -> None:
    file, other = chained(tmp_path), chained(tmp_path)
    reached = spend(file, 1.0)
    spend(other, 2.0)
    spend(other, 3.0)
    with file.held() as held:
        reached, new = held.lines(reached)
        assert [line["cost"] for line in new] == [2.0, 3.0]
        assert held.lines(reached) == (reached, [])
        assert held.append(cost=4.0).last.mark.number == 5
    assert costs(other) == [1.0, 2.0, 3.0, 4.0]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_where_there_is_none_nothing_is_made_by_reading(tmp_path: Path) -> None:
    file = chained(tmp_path / "folder")
    assert file.lines() == []
    with pytest.raises(FileNotFoundError), file.held(make=False):
        pass
    assert list(tmp_path.iterdir()) == []
    spend(file, 1.0)
    with file.held(make=False) as held:
        assert len(held.lines()[1]) == 1


@pytest.mark.parametrize("left", ["nothing", "mark", "both", "empty mark", "begun"])
def test_a_process_that_died_while_it_made_the_file_leaves_one_that_works(tmp_path: Path, left: str) -> None:
    file, beside = chained(tmp_path), tmp_path / "state.last"
    if left != "nothing":
        beside.write_bytes(b"" if left == "mark" else audit_files.Mark().text())
    if left in ("both", "empty mark"):
        file.path.write_bytes(b"")
    if left == "empty mark":
        beside.write_bytes(b"")
    if left == "begun":
        file.path.write_bytes(b'{"number": 1, "ti')
    assert file.lines() == []
    spend(file, 1.0)
    assert costs(chained(tmp_path)) == [1.0]


@pytest.mark.parametrize("behind", [True, False])
def test_a_line_that_was_written_and_not_noted_counts(tmp_path: Path, behind: bool) -> None:
    """The process died between the two, and may have been heard of all the same."""
    file, beside = chained(tmp_path), tmp_path / "state.last"
    spend(file, 1.0)
    noted = beside.read_bytes()
    spend(file, 2.0)
    beside.write_bytes(noted)
    if behind:
        with file.path.open("ab") as torn:
            torn.write(b'{"number": 4')
    assert costs(file) == [1.0, 2.0]
    spend(file, 3.0)
    assert costs(chained(tmp_path)) == [1.0, 2.0, 3.0]


BROKEN: dict[str, Callable[[Path, Path], object]] = {
    "a number": lambda path, beside: path.write_bytes(path.read_bytes().replace(b'"cost": 1.0', b'"cost": 0.0')),
    "the last number": lambda path, beside: path.write_bytes(path.read_bytes().replace(b'"cost": 3.0', b'"cost": 0.0')),
    "a line gone": lambda path, beside: path.write_bytes(b"".join(_lines(path)[:2] + _lines(path)[3:])),
    "the last gone": lambda path, beside: path.write_bytes(b"".join(_lines(path)[:-1])),
    "the last cut": lambda path, beside: path.write_bytes(path.read_bytes()[:-1]),
    "all gone": lambda path, beside: path.write_bytes(b""),
    "lines that do not follow": lambda path, beside: path.write_bytes(path.read_bytes() + b"{}\n"),
    "the file gone": lambda path, beside: path.unlink(),
    "the mark gone": lambda path, beside: beside.unlink(),
    "the mark empty": lambda path, beside: beside.write_bytes(b""),
    "the mark nonsense": lambda path, beside: beside.write_bytes(b"nonsense"),
    "another's mark": lambda path, beside: beside.write_bytes(beside.read_bytes()[:30] + b"f" * 55 + b"\n"),
    "a file of somebody else": lambda path, beside: (path.unlink(), beside.unlink(), spend(_of_bob(path), 1.0)),
}


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def _of_bob(path: Path) -> ChainedFile:
    return chained(path.parent, first={"version": 1, "login": "bob"})


@pytest.mark.parametrize("how", BROKEN)
def test_a_file_that_is_not_what_was_written_is_of_no_use(tmp_path: Path, how: str) -> None:
    file = chained(tmp_path)
    for cost in (1.0, 2.0, 3.0):
        spend(file, cost)
    BROKEN[how](file.path, tmp_path / "state.last")
    for _ in range(2):
        with pytest.raises(ChainBroken, match=r"^the state.* (was changed|is gone|is of another version)"):
            file.lines()
        with pytest.raises(ChainBroken), file.held() as held:
            held.lines()


@pytest.mark.parametrize("how", sorted(BROKEN.keys() - {"a number", "a line gone"}))  # before what is read again
def test_nor_is_it_to_whoever_has_read_it_before(tmp_path: Path, how: str) -> None:
    file = chained(tmp_path)
    reached = [spend(file, cost) for cost in (1.0, 2.0, 3.0)][-1]
    BROKEN[how](file.path, tmp_path / "state.last")
    for _ in range(2):
        with pytest.raises(ChainBroken), file.held() as held:
            held.lines(reached)


def test_an_older_copy_of_both_is_seen_by_whoever_has_read_on(tmp_path: Path) -> None:
    file = chained(tmp_path)
    spend(file, 1.0)
    older = {path: path.read_bytes() for path in tmp_path.iterdir()}
    reached = spend(file, 2.0)
    for path, text in older.items():
        path.write_bytes(text)
    with pytest.raises(ChainBroken, match="was changed"), file.held() as held:
        held.lines(reached)


def test_a_clock_that_is_set_back_stands_still(tmp_path: Path) -> None:
    now = [NOON]
    file = chained(tmp_path, clock=lambda: now[0])
    spend(file, 1.0)
    now[0] = NOON - timedelta(days=3)
    for one in (file, chained(tmp_path, clock=lambda: now[0])):
        with one.held() as held:
            held.lines()
            assert held.time() == NOON
            held.append(cost=2.0)
    now[0] = NOON + timedelta(minutes=1)
    spend(file, 3.0)
    assert [line["time"][11:19] for line in file.lines()] == ["12:00:00"] * 3 + ["12:01:00"]


# --- Several processes, and what happens to the disk --------------------------------------------------------------------


def _spend_often(path: Path, gate: Barrier, results: Queue[list[int]]) -> None:
    file, reached, seen, own = chained(path), None, 0, []
    gate.wait()
    for _ in range(25):
        with file.held() as held:
            reached, new = held.lines(reached)
            seen += len(new)
            reached = held.append(cost=1.0)
            own.append(seen)
            seen += 1
    results.put(own)


def test_processes_count_what_all_of_them_wrote(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    gate, results = spawn.Barrier(3), spawn.Queue()
    workers = [spawn.Process(target=_spend_often, args=(tmp_path, gate, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join(60)
    assert sorted(seen for own in found for seen in own) == list(range(75)), "nobody overlooked a line"
    assert costs(chained(tmp_path)) == [1.0] * 75


def _die_in_the_middle(path: Path) -> None:
    file = chained(path)
    with file.held() as held:
        held.lines()
        append = audit_files.append

        def half(one: audit_files.FileIO, end: int, text: bytes) -> None:
            append(one, end, text[: len(text) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

        audit_files.append = half
        held.append(cost=9.0)


def test_a_process_that_is_killed_while_it_writes_holds_up_nobody(tmp_path: Path) -> None:
    file = chained(tmp_path)
    spend(file, 1.0)
    size = file.path.stat().st_size
    worker = multiprocessing.get_context("spawn").Process(target=_die_in_the_middle, args=(tmp_path,))
    worker.start()
    worker.join(60)
    assert worker.exitcode == -signal.SIGKILL
    assert file.path.stat().st_size > size
    assert costs(file) == [1.0]
    spend(file, 2.0)
    assert costs(file) == [1.0, 2.0]


@pytest.mark.parametrize("room", [0, 1, 100])
def test_a_full_disk_leaves_all_as_it_was(tmp_path: Path, room: int) -> None:
    file = chained(tmp_path)
    spend(file, 1.0)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with no_more_than(file.path.stat().st_size + room), pytest.raises(OSError, match="File too large"):
        spend(file, 2.0)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    spend(file, 3.0)
    assert costs(chained(tmp_path)) == [1.0, 3.0]


def test_a_disk_that_is_full_at_once(tmp_path: Path) -> None:
    with no_more_than(0), pytest.raises(OSError, match="File too large"):
        spend(chained(tmp_path), 1.0)
    with no_more_than(90), pytest.raises(OSError, match="File too large"):
        spend(chained(tmp_path), 1.0)
    assert chained(tmp_path).lines() == []
    spend(chained(tmp_path), 2.0)
    assert costs(chained(tmp_path)) == [2.0]


def test_a_file_has_its_size(tmp_path: Path) -> None:
    spend(chained(tmp_path), 1.0)
    size = (tmp_path / "state").stat().st_size
    with pytest.raises(OSError, match=f"the state has {size + 10} bytes"):
        spend(chained(tmp_path, most=size + 10), 2.0)
    assert costs(chained(tmp_path)) == [1.0]


# --- Files of older versions ------------------------------------------------------------------------------------------

OLD = Path(__file__).parents[1] / "data" / "state_files"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A register whose plans and answers were written before all files were of one kind."""
    shutil.copytree(OLD, tmp_path / "old")
    return tmp_path / "old" / "people.duckdb"


def test_what_a_login_was_told_in_an_older_version_is_still_counted(old: Path) -> None:
    assert [line["verdict"] for line in KnowledgeFile(old, "ann").lines()] == ["answered", "forgotten"]
    with KnowledgeFile(old, "ann").held() as held:
        reached, lines = held.lines()
        assert (lines[0]["least_error"], reached.time.tzinfo) == (0.97, UTC)
        held.append(policy="people", verdict="forgotten")
    times = [line["time"] for line in all_lines(old)["ann"]]
    assert len(times) == 3
    assert times[-1].removesuffix("+00:00") >= times[-2]


def test_a_plan_that_an_older_version_opened_goes_on(old: Path) -> None:
    ann, file = Asker("ann", "analyst"), PlanFile(old.with_name("people.duckdb.plans"))
    assert file.plan(ann, "income").step == 2
    for step in (2, 3):
        file.finish(file.reveal(ann, "income", bytes.fromhex(TRACES[step]), STATEMENTS[step - 1]))
    assert file.plan(ann, "income").state == "done"
    assert json.loads(file.path.read_text().splitlines()[0])["time"] == "2026-06-01T12:00:00.125+00:00"
