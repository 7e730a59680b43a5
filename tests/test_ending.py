"""The interpreter ends while statements that call Python are still being read: it must end well all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest
from effort import times

import sdcduck

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
