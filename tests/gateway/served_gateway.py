"""A gateway for the tests: a process of its own, over a small register, with users who know their passwords."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sdcduck
from sdcduck.catalog.audit_reading import read_log

PASSWORD = "correct horse battery"
ROWS = 200_000
SLOW = "SELECT count(*) FROM numbers a JOIN numbers b ON a.n < b.n + 1 WHERE a.part + b.part <> 3"


@dataclass
class Served:
    """A gateway that runs."""

    process: subprocess.Popen[bytes]
    port: int
    events: Path
    log: Path
    user: str = "ann"
    database: str = "register"
    flight: int = 0

    @property
    def url(self) -> str:
        """For clients that are told in one text."""
        password = PASSWORD.replace(" ", "%20")
        return f"postgresql://{self.user}:{password}@127.0.0.1:{self.port}/{self.database}"

    @property
    def options(self) -> dict[str, Any]:
        """For clients that are told one by one."""
        return {
            "host": "127.0.0.1", "port": self.port, "user": self.user, "password": PASSWORD, "dbname": self.database,
        }  # fmt: skip

    def told(self, event: str) -> int:
        """How often something happened."""
        lines = [line for line in self.events.read_text().splitlines() if line.startswith("{")]
        return sum(json.loads(line)["log"]["event"] == event for line in lines)

    def asked(self) -> list[dict[str, Any]]:
        """The audit log."""
        return read_log(self.log)

    def spent(self) -> float:
        """Seconds of processor time that it has spent."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def at_work(self) -> Callable[[], bool]:
        """Whether it is at work on what it is asked after this call; a login alone does not take so long."""
        before = self.spent()
        return lambda: self.spent() > before + 0.5

    def stop(self) -> int:
        """End it, as a service manager does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


_GRACE = """
import functools, sdcduck.gateway.shared_state, sdcduck.gateway.postgres.server
for where, what in ((sdcduck.gateway.shared_state, "FlightOptions"), (sdcduck.gateway.postgres.server, "Options")):
    setattr(where, what, functools.partial(getattr(where, what), grace={}))
"""


def start(file: Path, folder: Path, *options: str, grace: float | None = None, before: str = "") -> Served:
    """Serve a file.

    Args:
        grace: seconds that what runs gets at the end, which the command line does not have; None: as they are.
        before: what its process does first.
    """
    folder.mkdir(exist_ok=True)
    events, log = folder / "events.jsonl", folder / "audit.jsonl"
    program = before + ("" if grace is None else _GRACE.format(grace)) + "from sdcduck.cli import main; main()"
    command = [sys.executable, "-c", program, "serve", str(file), "--port", "0"]
    with events.open("wb") as told:
        process = subprocess.Popen([*command, "--log", str(log), *options], stderr=told, stdout=told)

    def port(door: str) -> int | None:
        found = re.search(rf"{door} on \S+:(\d+), ", events.read_text())
        return int(found[1]) if found else None

    last = "Arrow Flight SQL" if "--flight-port" in options else "serving .*"
    wait_for(lambda: port(last) is not None or process.poll() is not None)
    found = port("serving .*")
    assert found is not None, events.read_text()
    return Served(process, found, events, log, flight=port("Arrow Flight SQL") or 0)


def wait_for(what: Callable[[], bool]) -> None:
    """Wait until something is so, on a machine as busy as it may be."""
    for _ in range(1200):
        if what():
            return
        time.sleep(0.05)
    pytest.fail("it did not come to pass")


def make_register(path: Path) -> None:
    """A register of persons, a public table of many rows, a table that nobody may see, and two users."""
    con = sdcduck.connect(path, secret="the secret of the tests")
    con.execute(
        "CREATE TABLE people AS SELECT id AS person_id, ['North', 'South', 'East'][1 + id % 3] AS region, "
        "['f', 'm'][1 + id % 2] AS sex, (20 + id * 7 % 60)::INTEGER AS age, (1000 + id * 7919 % 4000)::INTEGER AS income "
        "FROM range(1, 3001) u(id)"
    )
    con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
    con.execute("CREATE TABLE made_up AS SELECT 'North' AS region, 'f' AS sex, 50 AS age, 2500 AS income FROM range(9)")
    con.execute(
        "FROM sdc_protect('people', unit := 'person_id', dimensions := ['region', 'sex', 'age'], "
        "measures := ['income'], preview := 'made_up')"
    ).fetchall()
    con.execute(
        f"CREATE TABLE numbers AS SELECT range AS n, range * 2 AS twice, 'text ' || range AS words, range / 7 AS part "
        f"FROM range({ROWS})"
    )
    con.execute(
        "CREATE TABLE kinds AS SELECT true AS a_bool, 7::SMALLINT AS a_small, 8 AS an_int, 9::BIGINT AS a_big, "
        "1.5::DOUBLE AS a_double, 12.345::DECIMAL(10, 3) AS a_decimal, 'grün' AS a_text, DATE '2020-02-29' AS a_date, "
        "TIMESTAMP '2020-02-29 12:30:01.5' AS a_moment, NULL::INTEGER AS nothing"
    )
    for public in ("numbers", "kinds"):
        con.execute(f"FROM sdc_declare_public('{public}')").fetchall()
    con.execute("CREATE TABLE secrets AS SELECT 42 AS answer")
    for user, role in (("ann", "analyst"), ("bob", "researcher")):
        con.execute(f"FROM sdc_create_user('{user}', '{PASSWORD}', role := '{role}')").fetchall()
    con.close()


@pytest.fixture(scope="session")
def register(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file."""
    path = tmp_path_factory.mktemp("gateway") / "register.duckdb"
    make_register(path)
    return path


@pytest.fixture(scope="session")
def served(register: Path) -> Iterator[Served]:
    """A gateway for all tests that change nothing in it."""
    options = ("--user-connections", "100", "--flight-port", "0")
    running = start(register, register.with_name("served"), *options, grace=1.0)  # answers are left that nobody reads
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="session")
def encrypted(register: Path) -> Iterator[Served]:
    """A gateway that takes encrypted connections only, with a certificate made for the occasion."""
    pytest.importorskip("cryptography")
    running = start(register, register.with_name("encrypted"), "--host", "0.0.0.0")
    yield running
    assert running.stop() == 0


@pytest.fixture
def serve(register: Path, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Starts gateways with options of their own."""
    started: list[Served] = []

    def begin(*options: str, grace: float | None = None) -> Served:
        started.append(start(register, tmp_path, *options, grace=grace))
        return started[-1]

    yield begin
    for running in started:
        if running.process.poll() is None:
            running.stop()
