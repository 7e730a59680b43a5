"""A standalone cluster of Spark with two workers on 127.0.0.1, one of which is killed: only in `make scale-test`."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from effort import LONG

import sdcduck
from sdcduck.catalog.audit_reading import read_log
from sdcduck.catalog.engines import engine_of
from sdcduck.guard import Guard, Refused

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.skipif(not LONG, reason="only in `make scale-test`")]

_SECRET = "the secret of a cluster"
_ROWS = """SELECT i::BIGINT AS id, (i % 40)::INTEGER AS region, (hash(i) % 100)::INTEGER AS age, CASE WHEN i % 20 > 0 THEN sqrt(i) END AS income,
    sdc_record_key(i)::INTEGER AS record_key FROM range(100000) r(i)"""
_PROTECT = "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age'], measures := ['income'])"
_QUESTION = (
    "SELECT region, age, count(*) AS n, sum(income) AS s, avg(income) AS m FROM people GROUP BY CUBE (region, age)"
)


class Cluster:
    """A master and two workers, each in a process group of its own, with what it starts."""

    def __init__(self, folder: Path) -> None:
        home = Path(pytest.importorskip("pyspark", reason="pyspark is not installed").__file__).parent
        if shutil.which("java") is None:
            pytest.skip("Java is not installed")
        self._class, self._folder = str(home / "bin" / "spark-class"), folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"spark://127.0.0.1:{port}"
        self._master = self._started("Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        self._wait_for(self._master, "Starting Spark master")
        place = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1G", "--webui-port", "0")
        self.workers = [
            self._started("Worker", *place, "--work-dir", str(folder / f"work{number}"), self.address)
            for number in range(2)
        ]
        for worker in self.workers:
            self._wait_for(worker, "Successfully registered")

    def _started(self, kind: str, *given: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self._class, f"org.apache.spark.deploy.{kind.lower()}.{kind}", *given],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=self._folder,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        )  # fmt: skip

    def _wait_for(self, process: subprocess.Popen[str], words: str) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            if words in line:
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return
        raise AssertionError(f"it ended before it said: {words}")

    def kill(self, process: subprocess.Popen[str]) -> None:
        """As a machine that goes away: a worker and its executors, without a word."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def end(self) -> None:
        for process in (*self.workers, self._master):
            self.kill(process)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.end()


def test_a_worker_that_is_killed_during_a_question_changes_no_number(cluster: Cluster, tmp_path: Path) -> None:
    from pyspark.sql import SparkSession

    made = SparkSession.builder.master(cluster.address)
    for name, value in {
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "8", "spark.sql.files.maxPartitionBytes": "100k",
        "spark.sql.files.openCostInBytes": "0", "spark.ui.showConsoleProgress": "false",
        "spark.executor.memory": "512m", "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }.items():  # fmt: skip
        made = made.config(name, value)
    session = made.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        with sdcduck.connect(secret=_SECRET) as here:
            here.execute(f"CREATE TABLE people AS {_ROWS}")
            here.execute(f"COPY people TO '{tmp_path}/people.parquet' (ROW_GROUP_SIZE 10000)")
            here.execute(_PROTECT).fetchall()
            with closing(sdcduck.open_guard(here)) as guard:
                alone = guard.sql(_QUESTION)
            noise = here.execute("SELECT value FROM sdc.settings WHERE name = 'noise_secret'").fetchall()
        # The gateway and the shell are given such an address.
        address = f"{cluster.address}?people={tmp_path}/people.parquet"
        with sdcduck.connect(tmp_path / "policies.duckdb", secret=_SECRET, records=address) as con:
            con.execute(_PROTECT).fetchall()
            con.executemany("UPDATE sdc.settings SET value = ? WHERE name = 'noise_secret'", noise)
            con.execute("FROM sdc_question_budget('people', 3)").fetchall()
            log = tmp_path / "audit.log"
            with closing(sdcduck.open_guard(con, records=engine_of(session), log=log)) as guard:
                assert guard.sql(_QUESTION, user="anna").equals(alone)
                _wait_for_executors(session, 2)
                assert _answered_while(session, lambda: cluster.kill(cluster.workers[0]), guard).equals(alone)
                _wait_for_executors(session, 1)
                assert guard.sql(_QUESTION, user="anna").equals(alone)
                # Tasks were begun twice; the question counted once.
                assert [str(entry["verdict"]) for entry in read_log(log)] == ["answered"] * 3
                with pytest.raises(Refused, match="SDC"):
                    guard.sql(_QUESTION, user="anna")
    finally:
        session.stop()


def _wait_for_executors(session: Any, number: int) -> None:
    """Until so many work for the session, beside the one that asks."""
    tracker = session.sparkContext._jsc.sc().statusTracker()
    while len(tracker.getExecutorInfos()) != number + 1:
        threading.Event().wait(0.05)


def _answered_while(session: Any, happens: Callable[[], None], guard: Guard) -> Any:
    """The answer to a question during which something happens: when each of two workers has a task of it."""
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(guard.sql(_QUESTION, user="anna")))
    tracker = session.sparkContext.statusTracker()
    asking.start()
    while asking.is_alive():
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if any(stage is not None and stage.numActiveTasks == 2 and stage.numTasks > 8 for stage in stages):
            happens()
            assert asking.is_alive()
            break
    else:
        raise AssertionError("the question was answered before anything happened")
    asking.join()
    assert answers, "the question failed"
    return answers[0]
