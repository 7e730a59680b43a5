"""The page with the metrics."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_gateway import PASSWORD, Served, start, wait_for

from sdcduck.gateway.metrics import Counts, MetricsPage

psycopg = pytest.importorskip("psycopg")
QUERY = "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region"


def address(served: Served) -> str:
    found = re.search(r"metrics on (http://127.0.0.1:\d+)/metrics", served.events.read_text())
    assert found is not None
    return found[1]


def numbers(served: Served) -> dict[str, float]:
    """What the page says."""
    with urllib.request.urlopen(f"{address(served)}/metrics", timeout=30) as page:
        assert page.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = page.read().decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(
        re.fullmatch(r"[a-z_]+(\{[a-z_]+=\"[^\"]*\"(,[a-z_]+=\"[^\"]*\")*\})? [0-9.e+]+", line) for line in lines
    )
    types = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(types) == len(set(types)) == 7
    assert not any(word in text for word in ("ann", "North", "people", "secrets"))
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


@pytest.fixture(scope="module")
def counting(register: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with the page."""
    running = start(register, tmp_path_factory.mktemp("counting"), "--metrics-port", "0", "--flight-port", "0")
    yield running
    assert running.stop() == 0


def test_what_is_counted(counting: Served) -> None:
    served = counting
    assert numbers(served)["sdcduck_rows_total"] == 0
    with psycopg.connect(**served.options, autocommit=True) as con:
        assert len(con.execute(QUERY).fetchall()) == 3
        for query in ("SELECT * FROM people", "SELECT * FROM secrets", "SELECT region, sum(age) FROM people"):
            with pytest.raises(psycopg.Error):
                con.execute(query)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(**{**served.options, "password": "wrong password"})
        # A client hears that its password is wrong before the gateway has counted it out.
        wait_for(lambda: numbers(served)['sdcduck_connections{door="postgres"}'] == 1)
        found = numbers(served)
    assert found['sdcduck_connections{door="postgres"}'] == 1
    assert found['sdcduck_connections{door="flight"}'] == 0
    assert found['sdcduck_running{door="postgres"}'] == 0
    assert found['sdcduck_logins_total{door="postgres",result="succeeded"}'] == 1
    assert found['sdcduck_logins_total{door="postgres",result="failed"}'] == 1
    assert found['sdcduck_questions_total{verdict="answered"}'] == 1
    assert found['sdcduck_questions_total{verdict="SDC040"}'] == 1
    assert found['sdcduck_questions_total{verdict="SDC020"}'] == 1
    assert found["sdcduck_rows_total"] == 3
    asked = sum(value for name, value in found.items() if name.startswith("sdcduck_questions_total"))
    assert found["sdcduck_question_seconds_count"] == asked == len(served.asked()) == 4
    assert found['sdcduck_question_seconds_bucket{le="+Inf"}'] == asked
    assert found["process_resident_memory_bytes"] > 10_000_000


def test_nothing_else_is_there(counting: Served) -> None:
    served = counting
    for path in ("/", "/metrics/x", "/etc/passwd"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address(served) + path, timeout=30)
    host, port = address(served).removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as bad:
        bad.sendall(b"\xff\x00 nothing\r\n\r\n")
        bad.recv(1000)
    with socket.create_connection((host, int(port)), timeout=30):  # says nothing, and keeps nobody waiting for long
        assert "sdcduck_rows_total" in numbers(served)
    assert PASSWORD not in served.events.read_text()


def test_who_asks_for_the_page_one_byte_at_a_time_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others could not read it for as long as that goes on, and the gateway would not end."""
    monkeypatch.setattr("sdcduck.gateway.metrics._PATIENCE", 0.5)
    page = MetricsPage(Counts(), "127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", page.port), timeout=60) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\nX: ")

        def is_sent_away() -> bool:
            try:
                slow.send(b"x")
            except OSError:
                return True
            return False

        wait_for(is_sent_away)
    page.stop()


def test_a_port_in_use_ends_the_start(counting: Served, register: Path) -> None:
    command = [sys.executable, "-c", "from sdcduck.cli import main; main()", "serve", str(register), "--port", "0"]
    metrics = address(counting).rsplit(":", 1)[1]
    for option, port in (("--port", counting.port), ("--metrics-port", metrics), ("--flight-port", counting.flight)):
        done = subprocess.run([*command, option, str(port)], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "cannot listen" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
