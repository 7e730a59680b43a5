"""Large answers as a stream: the same rows in bounded memory, within the time a query has, and written down."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused, guard

MANY = "SELECT a.n AS a, b.n AS b FROM numbers a CROSS JOIN numbers b"


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as connection:
        # The bad word comes last, far behind what threads may read ahead: rows have left before it is met.
        connection.execute("""
            CREATE TABLE people AS SELECT i AS id, i % 3 AS region, i AS income FROM range(90) t(i);
            CREATE TABLE numbers AS SELECT range::BIGINT AS n FROM range(3000);
            CREATE TABLE words AS SELECT CASE WHEN i < 3999999 THEN '1' ELSE 'a secret' END AS word FROM range(4000000) t(i);
        """)
        connection.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        connection.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['region'], measures := ['income'])"
        ).fetchall()
        for table in ("numbers", "words"):
            connection.execute(f"FROM sdc_declare_public('{table}')").fetchall()
        yield connection


@pytest.fixture
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return guard(con)


def test_the_stream_is_the_answer(guarded: Guard) -> None:
    for query, parameters in (
        ("SELECT region, count(*) AS n, avg(income) AS mean FROM people GROUP BY region ORDER BY region", None),
        ("SELECT n FROM numbers WHERE n < ? ORDER BY n", [7]),
        ("FROM people LIMIT 0", None),
    ):
        reader = guarded.stream(query, parameters)
        assert isinstance(reader, pa.RecordBatchReader)
        assert reader.read_all() == guarded.sql(query, parameters)


def test_batches_are_small(guarded: Guard) -> None:
    sizes = [batch.num_rows for batch in guarded.stream(MANY, rows=50_000)]
    assert sum(sizes) == 3000 * 3000
    assert max(sizes) <= 50_000 < len(sizes) * 50_000


def test_refusals_come_before_the_first_row(guarded: Guard) -> None:
    for query, code in (("SELECT * FROM people", "SDC040"), ("SELECT max(income) FROM people", "SDC050")):
        with pytest.raises(Refused, match=code):
            guarded.stream(query)


def test_a_failure_on_the_way_says_nothing_of_the_data(guarded: Guard) -> None:
    with pytest.raises(Refused) as caught:
        for _ in guarded.stream("SELECT word::INTEGER AS x FROM words", rows=10_000):
            pass
    assert caught.value.code == "SDC090"
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_the_time_of_the_reader_does_not_count(con: duckdb.DuckDBPyConnection) -> None:
    reader = guard(con, seconds=60).stream(MANY, rows=1_000_000)
    first = reader.read_next_batch().num_rows
    time.sleep(0.2)
    assert first + sum(batch.num_rows for batch in reader) == 9_000_000
    slow = "SELECT count(*) AS n FROM numbers a, numbers b, numbers c, numbers d WHERE a.n + b.n > c.n + d.n"
    start = time.perf_counter()
    with pytest.raises(Refused, match="SDC091"):
        guard(con, seconds=0.3).stream(slow).read_all()
    assert time.perf_counter() - start < 60


def test_several_streams_at_once(guarded: Guard) -> None:
    one, other = (guarded.stream(MANY, rows=10_000) for _ in range(2))
    for _ in range(5):
        assert one.read_next_batch().num_rows > 0
        assert other.read_next_batch().num_rows > 0
    assert guarded.sql("SELECT count(*) AS n FROM numbers").to_pylist() == [{"n": 3000}]
    one.close()
    assert other.read_next_batch().num_rows > 0


def test_a_stream_is_written_down_before_it_goes_out_and_a_long_one_at_its_end_too(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    guarded = guard(con, log=log)
    guarded.stream("SELECT n FROM numbers", user="ann").read_all()
    left = guarded.stream(MANY, user="bob", rows=1000)
    left.read_next_batch()
    del left
    with pytest.raises(Refused):
        guarded.stream("SELECT word::INTEGER AS x FROM words", user="eve").read_all()
    with pytest.raises(Refused):
        guarded.stream("SELECT * FROM people", user="eve")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["user"], line["verdict"]) for line in lines] == [
        ("ann", "answered"), ("bob", "begun"), ("bob", "abandoned"),
        ("eve", "begun"), ("eve", "SDC090"), ("eve", "SDC040"),
    ]  # fmt: skip
    assert [lines[0]["rows"], lines[2]["rows"]] == [3000, 1000]


def test_without_the_log_no_row_goes_out(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    guarded = guard(con, log=folder / "log.jsonl")
    shutil.rmtree(folder)
    with pytest.raises(Refused, match="SDC092"):
        guarded.stream("SELECT n FROM numbers")


_MEMORY = """
import resource, sdcduck
con = sdcduck.connect(secret="the secret of the tests")
con.execute("CREATE TABLE numbers AS SELECT range AS n FROM range(4000)")
con.execute("FROM sdc_declare_public('numbers')").fetchall()
guarded = sdcduck.open_guard(con)
query = "SELECT a.n AS a, b.n AS b FROM numbers a CROSS JOIN numbers b"
guarded.stream("SELECT n FROM numbers").read_all()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = sum(batch.num_rows for batch in guarded.stream(query))
streamed = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(rows, (streamed - before) // 1024)
"""


def test_memory_is_bounded(tmp_path: Path) -> None:
    """16 million rows are 256 MB as a table."""
    script = tmp_path / "memory.py"  # a file: to DuckDB `python -c` is a person, to whom it shows progress
    script.write_text(_MEMORY)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    rows, megabytes = map(int, done.stdout.split())
    assert rows == 16_000_000
    assert megabytes < 64
