"""One guard may be asked by several threads at once: each is judged by its own query and gets its own answer."""

from __future__ import annotations

import threading
from collections import Counter

import duckdb

from sdcduck.guard import Refused, guard


def test_threads_are_judged_and_answered_each_by_their_own_query(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE people AS SELECT i AS id, i % 3 AS region FROM range(90) t(i)")
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['region'])").fetchall()
    guarded = guard(con)
    expected = con.execute("SELECT sdc_count(record_key) FROM people").fetchall()[0][0]
    seen: Counter[str] = Counter()

    def ask(thread: int) -> None:
        for turn in range(40):
            number = 1000 * thread + turn  # each query is new, so that none is remembered
            try:
                if thread % 2:
                    guarded.sql(f"SELECT sdc_count(record_key) + {number} FROM people")
                    seen["answered"] += 1
                else:
                    answer = guarded.sql(f"SELECT count(*) + {number} AS n FROM people").to_pylist()
                    seen["right" if answer == [{"n": expected + number}] else "wrong"] += 1
            except Refused as refused:
                seen[refused.code] += 1
            except Exception as problem:
                seen[type(problem).__name__] += 1

    threads = [threading.Thread(target=ask, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"right": 80, "SDC010": 80}
