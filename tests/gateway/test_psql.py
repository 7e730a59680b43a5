"""psql: its commands about the database, queries, and what is refused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from functools import partial

import pytest
from served_gateway import PASSWORD, ROWS, Served, wait_for

pytestmark = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")


def psql(
    served: Served, *commands: str, options: tuple[str, ...] = ("-At",), password: str = PASSWORD
) -> tuple[str, str]:
    """Output and errors."""
    asked = [part for command in commands for part in ("-c", command)]
    told = ["-h", "127.0.0.1", "-p", str(served.port), "-U", served.user, "-d", served.database, "-X"]
    done = subprocess.run(
        ["psql", *told, *options, *asked], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PGPASSWORD": password},
    )  # fmt: skip
    return done.stdout, done.stderr


FAMILY = [
    r"\d", r"\d people", r"\d+ people", r"\dt", r"\dt+", r"\dt *.*", r"\l", r"\l+", r"\dn", r"\dn+", r"\du", r"\dg+", r"\dv", r"\dm",
    r"\di", r"\ds", r"\df", r"\df+", r"\dT", r"\dT+", r"\dp", r"\z people", r"\dx", r"\db", r"\dD", r"\dC", r"\dO", r"\det",
    r"\des", r"\deu", r"\dew", r"\dE", r"\ddp", r"\dd", r"\do", r"\dL", r"\dy", r"\dF", r"\da", r"\dA", r"\dX", r"\dRp", r"\dRs",
    r"\drds", r"\dc", r"\encoding", r"\conninfo", r"\dAc", r"\dAf", r"\dAo", r"\dAo+", r"\dAp", r"\dAp+", r"\dconfig *", r"\dFd",
    r"\dFp", r"\dFt", r"\dL+", r"\dP", r"\dP+", r"\dl", r"\dg", r"\lo_list", r"\d pg_class", r"\dp people", r"\do+", r"\dC+",
    r"\dy+", r"\dX", r"\dRp+", r"\dRs+", r"\dtvmsE", r"\dTS+",
]  # fmt: skip


def test_the_whole_family_answers(served: Served) -> None:
    asked = len(served.asked())
    output, problems = psql(served, *FAMILY)
    assert len(served.asked()) == asked  # nothing of it came to the data
    assert [line for line in problems.splitlines() if not line.startswith("Did not find any")] == []
    assert "people" in output


def test_what_is_not_there_is_not_there_for_it(served: Served) -> None:
    _, problems = psql(served, r"\sf lower", r"\sv people", r"\ef lower", r"\ev people")
    assert "SDC" not in problems
    assert '"public.people" is not a view' in problems


def test_what_it_shows(served: Served) -> None:
    assert psql(served, r"\dt")[0].splitlines() == [
        f"public|{name}|table|custodian" for name in ("kinds", "numbers", "people")
    ]
    described = psql(served, r"\d+ people")[0]
    assert "region|character varying||||plain|||dimension: group by it, filter on it" in described
    assert "protected: counts and sums only" in psql(served, r"\dt+")[0]
    assert psql(served, r"\l")[0].startswith("register|custodian|UTF8")


def test_queries_and_refusals(served: Served) -> None:
    output, problems = psql(
        served, "SELECT 1", "SELECT * FROM people", "SELECT count(*) > 0 FROM people", "BEGIN; SELECT 2; COMMIT",
        "SELECT * FROM kinds", "CREATE TABLE x (a int)", "SELECT 3",
    )  # fmt: skip
    assert output.splitlines() == [
        "1", "t", "BEGIN", "2", "COMMIT", "t|7|8|9|1.5|12.345|grün|2020-02-29|2020-02-29 12:30:01.5|", "3",
    ]  # fmt: skip
    assert "SDC040" in problems
    assert "only questions are answered" in problems


def test_a_large_result_and_a_cursor(served: Served) -> None:
    output, _ = psql(served, "SELECT * FROM numbers")
    assert output.count("\n") == ROWS
    output, _ = psql(
        served, r"\set FETCH_COUNT 1000", "SELECT n FROM numbers LIMIT 5000", options=("-At", "-v", "FETCH_COUNT=1000")
    )
    assert output.count("\n") == 5000
    output, _ = psql(served, r"\copy (SELECT n FROM numbers LIMIT 3) TO STDOUT WITH CSV HEADER")
    assert output == "n\n0\n1\n2\n"


def test_a_wrong_password(served: Served) -> None:
    assert "password authentication failed" in psql(served, "SELECT 1", password="wrong password")[1]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_a_kill_stop_the_query(served: Served, how: signal.Signals) -> None:
    query = f"SELECT count(*) AS {how.name} FROM numbers a JOIN numbers b ON a.n < b.n + 1 WHERE a.part + b.part <> 3"
    told = ["-h", "127.0.0.1", "-p", str(served.port), "-U", served.user, "-d", served.database, "-XAt"]
    entered, working = served.told("entered"), served.at_work()
    with subprocess.Popen(
        ["psql", *told, "-c", query], stderr=subprocess.PIPE, text=True, env={**os.environ, "PGPASSWORD": PASSWORD},
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    ) as client:  # fmt: skip
        wait_for(lambda: served.told("entered") > entered)
        wait_for(working)
        client.send_signal(how)
        _, problems = client.communicate(timeout=120)
    assert how is signal.SIGKILL or "canceling statement" in problems
    wait_for(lambda: [line["verdict"] for line in served.asked() if line["query"] == query] == ["abandoned"])
