"""TPC-H: what of the benchmark is answered and what not, and that the numbers are those of another computation."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from tpch import NUMBERS, PAGE, QUESTIONS, Question, page, tpch

from sdcduck.guard import Guard, Refused


@pytest.fixture(scope="module")
def benchmark() -> Iterator[tuple[duckdb.DuckDBPyConnection, Guard]]:
    with tpch() as found:
        yield found


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: f"Q{question.number}")
def test_the_query_of_the_benchmark(benchmark: tuple[duckdb.DuckDBPyConnection, Guard], question: Question) -> None:
    con, one = benchmark
    assert con.cursor().execute(question.benchmark).fetchall(), "it is SQL, and asks for something"
    with pytest.raises(Refused) as caught:
        one.sql(question.benchmark)
    assert caught.value.code == question.code, question.why


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: f"Q{question.number}")
def test_the_customers_behind_it(benchmark: tuple[duckdb.DuckDBPyConnection, Guard], question: Question) -> None:
    # Counted as one row a customer and group, from the tables of the benchmark with joins of its own.
    con, one = benchmark
    answer = [tuple(row.values()) for row in one.sql(question.customers).to_pylist()]
    keys = f"{question.keys}, " if question.keys else ""
    by = f"GROUP BY {question.keys}" if question.keys else ""
    counted = f"SELECT {keys}sdc_count(record_key) AS n FROM ({question.direct}) {by}"
    direct = con.cursor().execute(f"FROM ({counted}) WHERE n > 0").fetchall()
    assert sorted(answer) == sorted(direct)
    assert sum(row[-1] for row in answer) > 0


def test_all_that_were_asked_for_are_there_and_on_the_page() -> None:
    assert tuple(question.number for question in QUESTIONS) == NUMBERS
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make acceptance`"
