"""The audit log of a gateway: what one user may write, over all connections and both doors, and files of one size."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from served_gateway import Served
from test_flight import Plain
from typer.testing import CliRunner

from sdcduck.catalog.audit_reading import read_log, verify_log
from sdcduck.cli import app

psycopg = pytest.importorskip("psycopg")
flight = pytest.importorskip("pyarrow.flight")


def long_question(name: str) -> str:
    """What just fits into a line, so that each has a text of its own there."""
    return f"SELECT count(*) AS n, '{'é' * 3_200}{name}' AS t FROM people"


def test_many_connections_of_a_user_share_one_quota(serve: Callable[..., Served]) -> None:
    served = serve("--log-quota", "1", "--log-size", "1", "--flight-port", "0")
    answered: list[str] = []
    codes: set[tuple[str, str | None]] = set()

    def ask(place: int, user: str = "ann", times: int = 15) -> None:
        with psycopg.connect(**{**served.options, "user": user}, autocommit=True) as con:
            for turn in range(times):
                try:
                    con.execute(long_question(f"{place} {turn}")).fetchall()
                    answered.append(user)
                except psycopg.Error as problem:
                    codes.add((str(problem).split(":")[0], problem.sqlstate))

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == {("SDC095", "53400")}
    assert 10 < answered.count("ann") < 60
    client, over_flight = Plain(served), 0
    with pytest.raises(flight.FlightError, match="SDC095"):
        for over_flight in range(60):  # an hour may begin in between, and has room for less
            client.rows(client.info(long_question(f"flight {over_flight}"))).read_all()
    ask(9, "bob", 4)
    assert answered.count("bob") == 4
    assert served.stop() == 0
    lines = read_log(served.log)
    assert verify_log(served.log)[0] == len(lines)
    own = [line for line in lines if line["user"] == "ann" and line["verdict"] == "answered"]
    assert len(own) == answered.count("ann") + over_flight
    assert sum(line.get("left_out", 0) for line in lines) == 60 - answered.count("ann") + 1
    files = list(served.log.parent.glob("audit.jsonl*"))
    assert max(file.stat().st_size for file in files) <= 1_000_000
    assert served.log.with_name("audit.jsonl.000001") in files
    spent: Counter[str] = Counter()
    for file in files:
        for text in file.read_bytes().splitlines(keepends=True):
            if b'"user": "ann"' in text:
                spent[json.loads(text)["time"][:13]] += len(text)
    assert max(spent.values()) < 1_000_000 + 10 * 600  # and what says how many were left out


def test_limits_of_a_log_go_with_a_log(register: Path) -> None:
    for option in ("--log-quota", "--log-size"):
        found = CliRunner().invoke(app, ["serve", str(register), "--port", "0", option, "5"])
        assert found.exit_code != 0
        assert "go with --log" in found.output
