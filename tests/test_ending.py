"""The interpreter ends while statements that call Python are still being read: it must end well all the same."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest
from effort import times

import sdcduck
from sdcduck.functions import shutdown
from sdcduck.functions.shutdown import others_run

_BEGIN = """
import threading, sdcduck
def begin():
    con = sdcduck.connect(secret="a secret of the tests")
    con.execute("CREATE TABLE t AS SELECT range AS a, range % 7 AS b FROM range(1000)")
    return con
def reader_of(con, rows):
    result = con.sql(f"FROM sdc_synth_records('t', rows := {rows}, method := 'independent', seed := 1)")
    return result.to_arrow_reader(1000) if hasattr(result, "to_arrow_reader") else result.fetch_record_batch(1000)
"""
ENDS = {
    "a reader": "con = begin(); reader = reader_of(con, 5_000_000); reader.read_next_batch()",
    "a reader of a connection that is gone": "reader = reader_of(begin(), 5_000_000); reader.read_next_batch()",
    "a reader in a cycle": "kept = [begin()]; kept += [reader_of(kept[0], 5_000_000), kept]; kept[1].read_next_batch()",
    "a cursor": """
con = begin()
con.execute("FROM sdc_synth_records('t', rows := 5_000_000, method := 'independent', seed := 1)")
con.fetchone()
""",
    "a thread that reads on": """
con = begin()
reader = reader_of(con, 500_000_000)
reader.read_next_batch()
threading.Thread(target=lambda: [None for _ in reader], daemon=True).start()
""",
    "keys that are being made": """
con = begin()
con.execute("SELECT sdc_record_key(range) FROM range(5_000_000)")
con.fetchone()
""",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_leaves_a_stream_open_ends_well(end: str) -> None:
    for _ in range(times(1, 2)):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", f"{_BEGIN}{ENDS[end]}\nprint('the last line')"],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("the last line\n")  # DuckDB 1 shows how far it is before


def test_what_is_left_to_the_end_still_runs() -> None:
    program = f"""{_BEGIN}
import atexit
con = begin()
atexit.register(lambda: print(con.execute("SELECT sdc_record_key(1) >= 0").fetchall()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "[(True,)]\n"), done.stderr


def test_calls_after_the_end_are_refused() -> None:
    from sdcduck.functions.shutdown import Calls

    calls = Calls()
    function = calls.counted(lambda number: number)
    assert function(1) == 1
    calls.end()
    with pytest.raises(sdcduck.SDCError, match="the program has ended"):
        function(1)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not tell what threads do")
def test_a_thread_that_still_runs_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only one that is inside a function: on its way there it may wait for a processor for long."""
    looks, stop, begun = [], threading.Event(), threading.Event()

    def look() -> bool:
        looks.append(others_run())
        if len(looks) == 200:
            stop.set()
        return looks[-1]

    def query() -> None:
        with duckdb.connect() as con:
            begun.set()
            while not stop.is_set():
                con.execute("SELECT sum(sin(range)) FROM range(20_000_000)").fetchall()

    monkeypatch.setattr(shutdown, "others_run", look)
    monkeypatch.setattr(shutdown, "_RUNNING", 60.0)
    monkeypatch.setattr(shutdown, "_PATIENCE", 60.0)
    thread = threading.Thread(target=query)
    thread.start()
    begun.wait()
    shutdown.Calls().end()
    assert stop.is_set()
    assert any(looks)
    thread.join()
