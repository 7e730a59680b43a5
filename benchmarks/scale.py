"""Records on another engine: the time it takes for its inner cells, and ours beside it; seeded, medians.

Records are Parquet files in a folder, partitioned by region, which DuckDB, DataFusion and, with --postgres, a server of
PostgreSQL read: there they are copied into a table first. A question is asked once with all that is new about it (its
text is rewritten, records are looked at), and then again and again. Ours is what is left of the time of a question when
that of the engine is taken away, and its CPU, which other programs lengthen less, of all threads together. The number
of records is what the engine is asked before each question, and counts as its time. Nothing here fails because of a
clock.

    python benchmarks/scale.py                    10 million records, 7 runs
    python benchmarks/scale.py --rows 100000000   more of them
    python benchmarks/scale.py --quick            1 million records, 3 runs
    python benchmarks/scale.py --files /data/people --rows 100000000    those in a folder, written if it is not there;
                                                  by DuckDB in another process, and with the peak of memory of this one
    python benchmarks/scale.py --postgres postgresql://user@host/database    its table 'people' is replaced
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from cell_key import console, milliseconds
from rich.table import Table

import sdcduck
from sdcduck.catalog.engine_kinds import OfDuckDB
from sdcduck.catalog.engines import Engine, engine_of

QUESTIONS = {
    "count by region": "SELECT region, count(*) AS n FROM people GROUP BY region",
    "sum and mean by two": "SELECT region, sex, sum(income) AS s, avg(income) AS m FROM people GROUP BY region, sex",
    "cube of three": "SELECT region, sex, age, count(*) AS n FROM people WHERE age > 17 "
    "GROUP BY CUBE (region, sex, age)",
    "cube, two sums": "SELECT region, age, sum(income) AS s, sum(hours) AS h FROM people GROUP BY CUBE (region, age)",
}
_ROWS = """
    SELECT i AS id, (hash(i) % 40)::INTEGER AS region, (hash(i + 1) % 2)::INTEGER AS sex,
        (hash(i + 2) % 100)::INTEGER AS age,
        CASE WHEN hash(i + 3) % 20 > 0 THEN exp((hash(i + 4) % 100000) / 1e5 * 3 + 8) END AS income,
        (hash(i + 5) % 45)::INTEGER AS hours, (hash(i + 6) % 100000000)::INTEGER AS record_key FROM range({}) r(i)
"""
_GOAL = 0.050


class Timed:
    """An engine, and how long it was waited for."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self.name = engine, engine.name
        self.seconds = self.processor = 0.0

    def _asked(self, ask: Callable[[], Any]) -> Any:
        start, processor = time.perf_counter(), time.process_time()
        try:
            return ask()
        finally:
            self.seconds += time.perf_counter() - start
            self.processor += time.process_time() - processor

    def tables(self) -> list[str]:
        return self._engine.tables()

    def schema(self, table: str) -> pa.Schema:
        return self._engine.schema(table)

    def rows(self, sql: str) -> pa.Table:
        return self._asked(lambda: self._engine.rows(sql))

    def together(self, queries: list[str]) -> list[pa.Table]:
        return self._asked(lambda: self._engine.together(queries))

    def stop(self) -> None:
        self._engine.stop()

    def close(self) -> None:
        self._engine.close()


def write(folder: Path, rows: int) -> None:
    """The records, in a folder for each region."""
    with duckdb.connect() as con:
        how = "FORMAT parquet, PARTITION_BY (region), WRITE_PARTITION_COLUMNS"
        con.execute(f"COPY ({_ROWS.format(rows)}) TO '{folder}' ({how})")


class InAnotherProcess(OfDuckDB):
    """DuckDB over files as they are, in a process of its own, as a server would be: what this one has is our part."""

    def __init__(self, folder: Path) -> None:
        self._here, there = multiprocessing.Pipe()
        multiprocessing.get_context("spawn").Process(target=_serve, args=(there, str(folder)), daemon=True).start()

    def tables(self) -> list[str]:
        return ["people"]

    def close(self) -> None:
        """It ends with this process."""

    def together(self, queries: list[str]) -> list[pa.Table]:
        self._here.send(queries)
        answers = self._here.recv()
        if isinstance(answers, str):
            raise RuntimeError(answers)
        return [pa.ipc.open_stream(answer).read_all() for answer in answers]


def _serve(asked: Any, folder: str) -> None:
    con = duckdb.connect(config={"memory_limit": "4GB", "temp_directory": f"{folder}.tmp"})
    con.execute(f"CREATE VIEW people AS FROM read_parquet('{folder}/*/*.parquet', hive_partitioning := false)")
    while True:
        try:
            answers = []
            for query in asked.recv():
                rows, made = con.sql(query).to_arrow_table(), pa.BufferOutputStream()
                with pa.ipc.new_stream(made, rows.schema) as stream:
                    stream.write_table(rows)
                answers.append(made.getvalue().to_pybytes())
            asked.send(answers)
        except EOFError:
            return
        except duckdb.Error as problem:
            asked.send(str(problem))


def engines(folder: Path, postgres: str | None) -> Iterator[Engine]:
    """Each engine, with the records."""
    register = duckdb.connect()
    register.execute(f"CREATE TABLE people AS FROM read_parquet('{folder}/*/*.parquet', hive_partitioning := false)")
    yield engine_of(register)
    register.close()
    try:
        import datafusion
    except ModuleNotFoundError:
        console.print("(DataFusion is not installed)")
    else:
        session = datafusion.SessionContext()
        session.register_parquet("people", str(folder))
        yield engine_of(session)
    if postgres is not None:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(postgres, autocommit=True) as con, con.cursor() as cursor, duckdb.connect() as reading:
            cursor.execute("DROP TABLE IF EXISTS people")
            relation = reading.sql(f"FROM read_parquet('{folder}/*/*.parquet', hive_partitioning := false)")
            cursor.adbc_ingest("people", relation.to_arrow_reader(100_000), mode="create")
            cursor.execute("ANALYZE people")
        yield engine_of(postgres)


def measured(engine: Engine, runs: int, shown: Table) -> None:
    """A row for each question: the engine's time, ours when it is new, and ours when it is asked again."""
    timed = Timed(engine)
    with sdcduck.connect(secret="the secret of the benchmark") as con:
        from sdcduck.catalog import engines as known

        known.stand_in(con, engine, ["people"])
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'sex', 'age'], "
            "measures := ['income', 'hours'])"
        ).fetchall()
        guard = sdcduck.open_guard(con, records=engine)
        asking: Any = guard._records._engine
        asking._engine = timed
        guard.sql("SELECT count(*) FROM people")  # the records are looked at
        for name, question in QUESTIONS.items():
            theirs, ours, processor = [], [], []
            for _ in range(runs + 1):
                timed.seconds = timed.processor = 0.0
                start, begun = time.perf_counter(), time.process_time()
                answer = guard.sql(question)
                ours.append(time.perf_counter() - start - timed.seconds)
                processor.append(time.process_time() - begun - timed.processor)
                theirs.append(timed.seconds)
            again = statistics.median(ours[1:])
            shown.add_row(
                engine.name, name, f"{answer.num_rows:,}", milliseconds(theirs[1:]),
                milliseconds(ours[:1]), milliseconds(ours[1:]),
                milliseconds(processor[1:]), "met" if again <= _GOAL else "missed",
            )  # fmt: skip
        guard.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--postgres")
    parser.add_argument("--files", type=Path)
    parser.add_argument("--runs", type=int)
    given = parser.parse_args()
    rows, runs = (1_000_000, given.runs or 3) if given.quick else (given.rows, given.runs or 7)
    shown = Table(title=f"{rows:,} records on another engine; goal: ours at most 50 ms", header_style="bold")
    for column in ("engine", "question", "rows", "engine's", "ours, new", "ours, again", "its CPU", "goal"):
        shown.add_column(column, justify="left" if column in ("engine", "question", "goal") else "right")
    if given.files is not None:
        if not given.files.exists():
            write(given.files, rows)
        measured(InAnotherProcess(given.files), runs, shown)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        console.print(shown)
        console.print(f"peak of this process, the engine in another one: {peak:,.0f} MiB; goal: below 1,024")
        return
    with tempfile.TemporaryDirectory() as scratch:
        write(Path(scratch) / "people", rows)
        for engine in engines(Path(scratch) / "people", given.postgres):
            measured(engine, runs, shown)
    console.print(shown)


if __name__ == "__main__":
    main()
