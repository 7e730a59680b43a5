"""A publication whose suppression takes minutes, for the tests of stopping it; run as a script it waits for Ctrl-C."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time

import duckdb

import sdcduck

GROUPINGS = 6


def create(con: duckdb.DuckDBPyConnection) -> str:
    """Creates the records, in three dimensions with crossing groupings of two of them; returns the SELECT."""
    names = [f"{side}{k}" for k in range(GROUPINGS) for side in "gh"]
    levels = ", ".join(
        f"hash({'a' if name[0] == 'g' else 'b'} * 1000003 + {k}) % 7 AS {name}" for k, name in enumerate(names)
    )
    con.execute(
        f"CREATE TABLE people AS SELECT hash(i) % 90 AS a, hash(i + 1000000) % 90 AS b, hash(i + 2000000) % 60 AS c, "
        f"{levels} FROM range(25000) t(i)"
    )
    sets = ["a, b", "b, c", "a, c", "a", "b", "c", ""]
    sets += [f"g{k}, h{other}" for k in range(GROUPINGS) for other in range(GROUPINGS)]
    sets += [f"a, h{k}" for k in range(GROUPINGS)] + [f"g{k}, b" for k in range(GROUPINGS)]
    return (
        f"SELECT a, b, c, {', '.join(names)}, count(*) AS n FROM people "
        f"GROUP BY GROUPING SETS ({', '.join(f'({one})' for one in sets)})"
    )


def compile_kernels() -> None:
    """Suppresses something small: on a fresh machine this compiles for a minute, which nothing interrupts."""
    with sdcduck.connect() as con:
        con.execute("CREATE TABLE people AS SELECT i % 9 AS a, i % 7 AS b FROM range(100) t(i)")
        con.execute(
            "FROM sdc_suppress('SELECT a, b, count(*) AS n FROM people GROUP BY CUBE (a, b)', max_count := 1)"
        ).fetchall()


def left_behind(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Names of all tables and views, and whether the publication counts as published."""
    tables = [row[0] for row in con.execute("SELECT table_name FROM duckdb_tables() ORDER BY ALL").fetchall()]
    views = [
        row[0] for row in con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL").fetchall()
    ]
    published = con.execute("SELECT name FROM sdc.publications WHERE fingerprint IS NOT NULL").fetchall()
    return tables + views + [f"published: {row[0]}" for row in published]


def works() -> list[str]:
    """The threads of sdcduck that still work."""
    return [thread.name for thread in threading.enumerate() if thread.name == "sdcduck"]


def main() -> None:
    """Runs the statement of the first argument; prints "started", then what happened as JSON."""
    running = threading.Event()

    def interrupted(*_: object) -> None:
        """As Python does it, while the statement runs: Ctrl-C comes again and again."""
        if running.is_set():
            raise KeyboardInterrupt

    # A shell that runs the tests in the background has them ignore Ctrl-C, and so their children.
    signal.signal(signal.SIGINT, interrupted)
    compile_kernels()
    begun = threading.Event()

    shares = []

    def started(share: float) -> None:
        shares.append(share)
        if share > 0 and not begun.is_set():
            begun.set()
            print("started", flush=True)

    con = sdcduck.connect(progress=started, threads=int(sys.argv[2]))
    query = create(con)
    con.execute("FROM sdc_publication('hard', ?)", [query]).fetchall()
    before = left_behind(con)
    problem: BaseException | None = None
    running.set()
    try:
        try:  # the next Ctrl-C may wait until DuckDB is done with the last one
            con.execute(sys.argv[1]).fetchall()
        finally:
            running.clear()
    except BaseException as raised:
        running.clear()
        problem = raised
    answer = {
        "error": repr(problem),
        "kind": type(problem).__name__,
        "share": shares[-1],
        "unchanged": left_behind(con) == before,
        "usable": con.execute(
            "SELECT count(*) FROM sdc_suppress('SELECT a, count(*) AS n FROM people GROUP BY a', max_count := 0)"
        ).fetchall(),
    }
    deadline = time.time() + 60
    while works() and time.time() < deadline:
        time.sleep(0.05)
    print(json.dumps({**answer, "threads": works()}), flush=True)


if __name__ == "__main__":
    main()
