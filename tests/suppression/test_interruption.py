"""A long suppression can be stopped: soon, with one error, without a trace, and the connection works on."""

from __future__ import annotations

import io
import itertools
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import hard_publication
import numpy as np
import pytest
from interrupting import again_and_again
from rich.console import Console

import sdcduck
from sdcduck.functions.jobs import PATIENCE, SILENCE, Bar, Stopped, Work, checkpoint
from sdcduck.methods.suppression.decimals import decimals
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.nullspace import modular_null_space, null_space
from sdcduck.methods.suppression.optimal import optimal_suppression

# Alone on a machine a statement stops within half a second, but the tests may share theirs with others: what they hold
# against it is that it stopped long before it would have ended, which takes minutes.
LONG = 60.0

needs_duckdb_2 = pytest.mark.skipif(
    duckdb.__version__.startswith("1."), reason="DuckDB 1.5 cannot be asked between the chunks of a statement"
)

STATEMENTS = {
    "suppress": "FROM sdc_suppress('hard', max_count := 2)",
    "publish": "FROM sdc_publish('hard', max_count := 2)",
    "table": "CREATE TABLE kept AS FROM sdc_suppress('hard', max_count := 2)",
}


@pytest.fixture(scope="module")
def compiled() -> None:
    hard_publication.compile_kernels()


# DuckDB runs the statement in the main thread where it has no other, else mostly in another: the two ways to notice.
@pytest.mark.parametrize(("statement", "threads"), [("publish", 1), ("publish", 2), ("table", 2)])
@pytest.mark.usefixtures("compiled")
@needs_duckdb_2
def test_ctrl_c(statement: str, threads: int) -> None:
    command = [sys.executable, str(Path(hard_publication.__file__)), STATEMENTS[statement], str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        with again_and_again(lambda: process.send_signal(signal.SIGINT)):
            answer = json.loads(process.stdout.readline())
        assert process.wait(timeout=2 * LONG) == 0
    assert answer["share"] < 1
    # Between two of our lines it is DuckDB that says so, in its own words.
    assert "interrupt" in answer["error"].lower()
    assert answer["unchanged"]
    assert answer["usable"] == [[90]]
    assert not answer["threads"]


@needs_duckdb_2
@pytest.mark.parametrize("statement", ["suppress", "publish"])
@pytest.mark.usefixtures("compiled")
def test_interrupt_from_another_thread(statement: str) -> None:
    begun = threading.Event()
    shares = []

    def show(share: float) -> None:
        shares.append(share)
        if share > 0:
            begun.set()

    with sdcduck.connect(progress=show) as con:
        con.execute("FROM sdc_publication('hard', ?)", [hard_publication.create(con)]).fetchall()
        before = hard_publication.left_behind(con)
        stopped = pytest.raises(duckdb.InterruptException, match="Interrupted")
        with again_and_again(con.interrupt, begun.is_set), stopped:
            con.execute(STATEMENTS[statement]).fetchall()
        assert shares[-1] < 1
        assert hard_publication.left_behind(con) == before
        assert con.execute("SELECT 42").fetchall() == [(42,)]
        deadline = time.time() + LONG
        while hard_publication.works() and time.time() < deadline:
            time.sleep(0.05)
        assert not hard_publication.works()


def test_work_that_nobody_waits_for_ends_at_its_next_checkpoint() -> None:
    began = time.monotonic()

    def make() -> None:
        check = checkpoint()
        while time.monotonic() - began < 2 * LONG:
            check()
            time.sleep(0.01)

    work = Work(make)
    assert not work.wait(0.1)
    deadline = began + LONG
    while hard_publication.works() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert time.monotonic() - began > SILENCE + PATIENCE
    with pytest.raises(Stopped):
        work.result()


def test_work_goes_on_as_long_as_somebody_asks() -> None:
    def make() -> str:
        check = checkpoint()
        for _ in range(250):
            check()
            time.sleep(0.01)
        return "made"

    work = Work(make)
    while not work.wait(0.2):
        pass
    assert work.result() == "made"


class Enough(Exception):
    """What a checkpoint raises in the tests."""


def test_what_follows_the_walk_can_be_stopped_as_well() -> None:
    x = DummyMatrix.from_pairs(np.array([0, 1, 2, 3, 0, 2]), np.array([0, 0, 1, 1, 2, 2]), (4, 3))
    counts = np.array([5, 2, 3, 4])
    published = np.ones(3, dtype=bool)
    calls: list[int] = []

    def check(after: int) -> Callable[[], None]:
        def stop() -> None:
            calls.append(after)
            if len(calls) > after:
                raise Enough

        calls.clear()
        return stop

    primary = np.array([True, False, False])
    works = {
        "the stencil": lambda stop: modular_null_space(x, published, stop),
        "the null space": lambda stop: null_space(x, published, stop),
        "decimals": lambda stop: decimals(x, published, counts, check=stop),
        "decimals of a space": lambda stop: decimals(x, modular_null_space(x, published), counts, check=stop),
        "the optimum": lambda stop: optimal_suppression(x, counts, primary, np.ones(3), check=stop),
    }
    for name, work in works.items():
        with pytest.raises(Enough):
            work(check(0))
        work(check(10**6))
        assert calls, name


def test_progress_is_a_share_that_rises_from_0_to_1() -> None:
    shares: list[float] = []
    with sdcduck.connect(progress=shares.append) as con:
        con.execute(
            "CREATE TABLE people AS SELECT hash(i) % 40 AS a, hash(i + 1000000) % 40 AS b, hash(i + 2000000) % 40 AS c "
            "FROM range(20000) t(i)"
        )
        query = "SELECT a, b, c, count(*) AS n FROM people GROUP BY GROUPING SETS ((a, b), (a, c), (b, c), (a), ())"
        con.execute("FROM sdc_suppress(?, max_count := 8)", [query]).fetchall()
    assert shares[0] == 0
    assert shares[-1] == 1
    assert all(earlier < later for earlier, later in itertools.pairwise(shares))


def test_the_line_comes_for_long_work_only_and_tells_the_time_left() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=100)
    short = Bar("sdc_suppress", console=console)
    short(0.0)
    short(0.5)
    short.close()
    assert written.getvalue() == ""
    long = Bar("sdc_suppress", console=console, after=0.0)
    for share in (0.0, 0.2, 0.4, 0.6):
        time.sleep(0.1)
        long(share)
    long.close()
    assert "sdc_suppress" in written.getvalue()
    assert "60%" in written.getvalue()
    assert re.search(r"0:0\d:\d\d", written.getvalue())  # however busy the machine is


def test_there_is_no_line_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with sdcduck.connect() as con:
        con.execute("CREATE TABLE people AS SELECT i % 7 AS a FROM range(100) t(i)")
        con.execute("FROM sdc_suppress('SELECT a, count(*) AS n FROM people GROUP BY a', max_count := 0)").fetchall()
    assert capfd.readouterr().err == ""
