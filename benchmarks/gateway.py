"""What the gateway costs: rows a second, milliseconds a query, many clients, memory, and how soon a query is stopped.

    python benchmarks/gateway.py [rows of the streamed result, in millions]

Writes a database with seeded data into a temporary folder, serves it in a process of its own, and prints a table.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import adbc_driver_flightsql.dbapi as adbc
import psycopg

import sdcduck

PASSWORD = "the password of the benchmark"
LARGE = "SELECT * FROM numbers"
GUARDED = "SELECT region, count(*) AS n FROM people GROUP BY region"
JAR = Path("/usr/share/java/postgresql.jar")
SLOW = "SELECT count(*) FROM numbers a JOIN numbers b ON a.n < b.n + 1 WHERE a.part + b.part <> 3"
ROWS = 1_000_000


def make(file: Path) -> None:
    con = sdcduck.connect(file, secret="the secret of the benchmark")
    con.execute(
        f"CREATE TABLE numbers AS SELECT range AS n, range * 2 AS twice, 'text ' || range AS words, range / 7 AS part "
        f"FROM range({ROWS})"
    )
    con.execute(
        "CREATE TABLE people AS SELECT id AS person_id, ['North', 'South', 'East'][1 + id % 3] AS region, "
        "(1000 + id * 7919 % 4000)::INTEGER AS income FROM range(1, 100001) u(id)"
    )
    con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
    con.execute("FROM sdc_protect('people', unit := 'person_id', dimensions := ['region'])").fetchall()
    con.execute("FROM sdc_declare_public('numbers')").fetchall()
    con.execute(f"FROM sdc_create_user('ann', '{PASSWORD}')").fetchall()
    con.close()


@contextmanager
def served(file: Path) -> Iterator[tuple[int, int, int]]:
    """Port, port for Arrow Flight SQL and process of a gateway."""
    command = [sys.executable, "-c", "from sdcduck.cli import main; main()", "serve", str(file), "--port", "0"]
    told = file.with_suffix(".log")
    options = ["--log", str(file.with_suffix(".jsonl")), "--flight-port", "0", "--seconds", "3600"]
    options += ["--user-connections", "250", "--connections", "250"]
    with told.open("wb") as out:
        process = subprocess.Popen([*command, *options], stderr=out)
    while not (found := re.search(r"serving .*:(\d+), .*\n.*Flight SQL on .*:(\d+), ", told.read_text())):
        if process.poll() is not None:
            sys.exit(told.read_text())
        time.sleep(0.05)
    try:
        yield int(found[1]), int(found[2]), process.pid
    finally:
        process.terminate()
        process.wait()


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best(work: Callable[[], object], times: int = 3) -> float:
    return min(seconds(work) for _ in range(times))


def median_ms(work: Callable[[], object], times: int = 500) -> float:
    return 1000 * statistics.median(seconds(work) for _ in range(times))


def memory_mb(process: int, kind: str) -> float:
    text = Path(f"/proc/{process}/status").read_text()
    found = re.search(rf"{kind}:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1024


def cpu_seconds(process: int) -> float:
    parts = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def until_quiet(process: int) -> float:
    """Seconds until a process uses next to nothing of the machine."""
    start = time.perf_counter()
    while time.perf_counter() - start < 60:
        before = cpu_seconds(process)
        time.sleep(0.1)
        if cpu_seconds(process) - before < 0.03:
            break
    return time.perf_counter() - start - 0.1


def rates(port: int, con: psycopg.Connection[tuple[object, ...]]) -> Iterator[tuple[str, str]]:
    if shutil.which("psql"):
        command = ["psql", "-h", "127.0.0.1", "-p", str(port), "-U", "ann", "-XAt", "-c", LARGE, "-o", "/dev/null"]
        environment = {**os.environ, "PGPASSWORD": PASSWORD}
        taken = best(lambda: subprocess.run(command, env=environment, check=True))
        yield "psql, 1 M x 4", f"{ROWS / taken / 1000:.0f} k rows/s"
    for name, binary in (("text", False), ("binary", True)):
        taken = best(lambda binary=binary: con.cursor(binary=binary).execute(LARGE).fetchall())  # type: ignore[misc]
        yield f"psycopg {name}, 1 M x 4, to Python", f"{ROWS / taken / 1000:.0f} k rows/s"
        wait = best(lambda binary=binary: con.cursor(binary=binary).execute(LARGE))  # type: ignore[misc]
        yield f"psycopg {name}, 1 M x 4, received", f"{ROWS / wait / 1000:.0f} k rows/s"

    def copy() -> None:
        with con.cursor().copy(f"COPY ({LARGE}) TO STDOUT (FORMAT binary)") as rows:
            for _ in rows:
                pass

    yield "COPY binary, 1 M x 4", f"{ROWS / best(copy) / 1000:.0f} k rows/s"
    if JAR.exists() and shutil.which("javac"):
        program = str(Path(__file__).with_name("Jdbc.java"))
        command = ["java", "-cp", str(JAR), program, str(port), PASSWORD, LARGE]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for line in told.splitlines():
            name, taken_ms = line.rsplit(" ", 1)
            yield f"JDBC {name}, 1 M x 4, every value read", f"{ROWS / int(taken_ms):.0f} k rows/s"


def flight_rates(port: int, process: int) -> Iterator[tuple[str, str]]:
    login = {"username": "ann", "password": PASSWORD}
    with adbc.connect(f"grpc://127.0.0.1:{port}", db_kwargs=login) as con, con.cursor() as cursor:
        before = cpu_seconds(process)
        taken = best(lambda: cursor.execute(LARGE).fetch_arrow_table())
        used = (cpu_seconds(process) - before) / 3
        yield "Arrow Flight SQL, 1 M x 4, to Arrow", f"{ROWS / taken / 1000:.0f} k rows/s"
        yield "the gateway's processor for it", f"{used:.2f} s"
        asked = median_ms(lambda: cursor.execute(GUARDED).fetch_arrow_table(), 100)
        yield "Arrow Flight SQL, a guarded query", f"{asked:.1f} ms"


def latencies(file: Path, con: psycopg.Connection[tuple[object, ...]]) -> Iterator[tuple[str, str]]:
    yield "SELECT 1, simple", f"{median_ms(lambda: con.pgconn.exec_(b'SELECT 1')):.2f} ms"
    yield "SELECT 1, extended", f"{median_ms(lambda: con.execute('SELECT 1').fetchall()):.2f} ms"
    yield from added(file, con)


def added(file: Path, con: psycopg.Connection[tuple[object, ...]], times: int = 1000) -> Iterator[tuple[str, str]]:
    """What the gateway adds to a guarded query: each way in turn, with an audit log of its own beside the other."""
    guard = sdcduck.open_guard(file, role="analyst", log=file.with_suffix(".guard.jsonl"))
    ways: dict[str, Callable[[], object]] = {
        "simple": lambda: con.pgconn.exec_(GUARDED.encode()),
        "extended": lambda: con.execute(GUARDED).fetchall(),
        "alone": lambda: guard.sql(GUARDED, user="ann"),
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(times):
        for way in [*ways][turn % 3 :] + [*ways][: turn % 3]:  # none is always the one after another
            taken[way].append(1000 * seconds(ways[way]))
    alone = statistics.median(taken["alone"])
    for way in ("simple", "extended"):
        asked = statistics.median(taken[way])
        yield f"a guarded query, {way}: gateway - guard", f"{asked:.2f} - {alone:.2f} = {asked - alone:.2f} ms"


def crowd(port: int, clients: int, queries: int) -> tuple[float, int]:
    """Seconds for so many clients with so many queries each, and how many failed."""
    failed: list[str] = []

    def ask() -> None:
        try:
            with connected(port) as con:
                for _ in range(queries):
                    con.execute(GUARDED).fetchall()
        except psycopg.Error as problem:
            failed.append(str(problem))

    threads = [threading.Thread(target=ask) for _ in range(clients)]

    def run() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return seconds(run), len(failed)


def connected(port: int) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        host="127.0.0.1", port=port, user="ann", password=PASSWORD, dbname="b", autocommit=True, connect_timeout=120
    )


def stops(port: int, process: int, con: psycopg.Connection[tuple[object, ...]]) -> Iterator[tuple[str, str]]:
    def cancelled() -> None:
        threading.Timer(1.0, con.cancel).start()
        try:
            con.execute(SLOW)
        except psycopg.errors.QueryCanceled:
            return

    yield "cancel to answer", f"{seconds(cancelled) - 1:.2f} s"
    gone = connected(port)
    gone.pgconn.send_query(SLOW.encode())
    time.sleep(1)
    gone.pgconn.finish()
    yield "disconnect to a quiet processor", f"{until_quiet(process):.2f} s"


def long_query(millions: int) -> str:
    return f"SELECT a.n, b.n AS m FROM numbers a, (SELECT n FROM numbers WHERE n < {millions}) b"


def stream(con: psycopg.Connection[tuple[object, ...]], millions: int) -> None:
    with con.cursor().copy(f"COPY ({long_query(millions)}) TO STDOUT (FORMAT binary)") as rows:
        for _ in rows:
            pass


def flight_stream(port: int, millions: int) -> None:
    login = {"username": "ann", "password": PASSWORD}
    with adbc.connect(f"grpc://127.0.0.1:{port}", db_kwargs=login) as con, con.cursor() as cursor:
        rows = sum(batch.num_rows for batch in cursor.execute(long_query(millions)).fetch_record_batch())
        assert rows == millions * ROWS


def main(millions: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "b.duckdb"
        make(file)
        with served(file) as (port, flight_port, process), connected(port) as con:
            results = [("resident, idle", f"{memory_mb(process, 'VmRSS'):.0f} MB")]
            results += latencies(file, con)
            results += rates(port, con)
            results += flight_rates(flight_port, process)
            results += stops(port, process, con)
            for clients in (50, 200):
                taken, failed = crowd(port, clients, 20)
                results.append((f"{clients} clients x 20 guarded queries", f"{taken:.1f} s, {failed} errors"))
            results.append(("resident after that, most", f"{memory_mb(process, 'VmHWM'):.0f} MB"))
        with served(file) as (port, _, process), connected(port) as con:
            taken = seconds(lambda: stream(con, millions))
            results.append((f"a result of {millions} M rows, COPY binary", f"{millions / taken:.2f} M rows/s"))
            results.append(("resident while it came, most", f"{memory_mb(process, 'VmHWM'):.0f} MB"))
        with served(file) as (_, flight_port, process):
            taken = seconds(lambda: flight_stream(flight_port, millions))
            results.append(("the same over Arrow Flight SQL", f"{millions / taken:.2f} M rows/s"))
            results.append(("resident while it came, most", f"{memory_mb(process, 'VmHWM'):.0f} MB"))
    width = max(len(name) for name, _ in results)
    for name, value in results:
        print(f"{name.ljust(width)}  {value}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
