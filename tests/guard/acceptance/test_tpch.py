"""TPC-H: what of the benchmark is answered and what not, and that the numbers are those of another computation.

On the small database, and on the data of the benchmark itself where a Python has DuckDB's extension tpch.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import duckdb
import pytest
from tpch import NUMBERS, PAGE, QUESTIONS, UNITS, Question, dbgen, page, tpch

from sdcduck.guard import Guard, Refused

REFUSED = [question for question in QUESTIONS if question.code]


_SCANNER = os.environ.get("SDCDUCK_SCANNER_PYTHON", "")


@pytest.fixture(scope="module", params=["small", "dbgen"])
def benchmark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Guard]]:
    made = None
    if request.param == "dbgen":
        if (
            not _SCANNER
            or subprocess.run([_SCANNER, "-c", "import duckdb_extension_tpch"], capture_output=True).returncode
        ):
            pytest.skip("SDCDUCK_SCANNER_PYTHON names no Python with DuckDB's tpch extension")
        made = tmp_path_factory.mktemp("tpch")
        dbgen(_SCANNER, made)
    with tpch(made) as found:
        yield found


def test_a_customer_has_one_record_key_in_all_tables(benchmark: tuple[duckdb.DuckDBPyConnection, Guard]) -> None:
    every = " UNION ".join(f"SELECT {unit} AS unit, record_key FROM {table}" for table, unit in UNITS.items())
    assert benchmark[0].cursor().execute(f"SELECT count(*) = count(DISTINCT unit) FROM ({every})").fetchall() == [
        (True,)
    ]


@pytest.mark.parametrize("question", REFUSED, ids=lambda question: f"Q{question.number}")
def test_what_of_the_benchmark_is_refused(
    benchmark: tuple[duckdb.DuckDBPyConnection, Guard], question: Question
) -> None:
    con, one = benchmark
    assert con.cursor().execute(question.benchmark).fetchall(), "it is SQL, and asks for something"
    with pytest.raises(Refused) as caught:
        one.sql(question.benchmark)
    assert caught.value.code == question.code, question.why


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: f"Q{question.number}")
def test_what_is_answered(benchmark: tuple[duckdb.DuckDBPyConnection, Guard], question: Question) -> None:
    # From the tables of the benchmark, with joins of its own: what every customer has in each group, then protected.
    con, one = benchmark
    answer = [tuple(row.values()) for row in one.sql(question.answered).to_pylist()]
    direct = con.cursor().execute(question.direct or question.benchmark).fetchall()
    assert len(answer) == len(direct) > 0
    numbers = [value for row in answer for value in row if isinstance(value, (int, float))]
    assert not numbers or max(numbers) > 0
    if "ORDER BY revenue" in question.answered:
        assert [row[:1] for row in answer] == [row[:1] for row in direct]
    for row, expected in zip(sorted(answer), sorted(direct), strict=True):
        for value, wanted in zip(row, expected, strict=True):
            assert value == (pytest.approx(wanted, rel=1e-9) if isinstance(wanted, float) else wanted)
    # Not the answer of the query without protection; names that are chosen by numbers may be the same, and shares of nobody.
    plain = con.cursor().execute(question.answered).fetchall()
    told = [number for number in numbers if isinstance(number, float)] or numbers
    assert not question.direct or not any(told) or sorted(answer) != sorted(plain)


@pytest.mark.parametrize("number", [17, 20])
def test_no_group_is_paired_with_all_others(benchmark: tuple[duckdb.DuckDBPyConnection, Guard], number: int) -> None:
    # What figures of groups are added up from is worked out once, not once a group: it took 280 seconds of a processor.
    con, one = benchmark
    *_, (_, written) = one.steps(next(question.answered for question in QUESTIONS if question.number == number))
    # The guard's own connection knows TRY by a name that nobody can have replaced.
    plan = con.cursor().execute(f"EXPLAIN {written.replace('_SDC_TRY', 'TRY')}").fetchall()[0][1]
    plan = plan.upper().replace("_", " ")
    assert "HASH JOIN" in plan
    assert not any(f"{kind} " in plan for kind in ("CROSS PRODUCT", "NESTED LOOP JOIN", "BLOCKWISE NL JOIN"))


def test_all_that_were_asked_for_are_there_and_on_the_page() -> None:
    assert tuple(question.number for question in QUESTIONS) == NUMBERS
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make acceptance`"
