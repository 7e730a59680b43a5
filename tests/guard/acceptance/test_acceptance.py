"""What people write: the page says what the guard does, and an answer means what the query says."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from effort import LONG, OLDER
from table import METHODS, PAGE, Query, guarded, page, queries, row, told

import sdcduck
from sdcduck.guard import Guard
from sdcduck.guard.allowed import MACROS
from sdcduck.guard.passes.reading import read
from sdcduck.guard.passes.validate import check_query


@pytest.mark.long
def test_the_page_says_what_the_guard_does() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make acceptance`"


@pytest.mark.parametrize("method", METHODS)
def test_a_row_of_the_page_says_what_the_guard_does(method: str) -> None:
    """What all methods answer alike is asked of one of them in turn, all else of each (on an older DuckDB of one, too).

    Of those in turn, and of all in `make test-long`, it is looked at what runs and what is said of their columns, too; on
    the newest DuckDB, since sqlglot writes and reads the same for each.
    """
    text, place = PAGE.read_text(encoding="utf-8"), METHODS.index(method)
    with guarded(method) as one, sdcduck.connect() as con:
        for number, query in enumerate(queries()):
            before = row(query, [])
            found = [line for line in text.splitlines() if line.startswith(before)]
            assert len(found) == 1, f"run `make acceptance`: {query.title}"
            said = found[0].removeprefix(before).removesuffix(" |").split(" | ")
            in_turn = number % len(METHODS) == place
            if not (in_turn or LONG or (len(set(said)) > 1 and not OLDER)):
                continue
            code, answer = told(one, query)
            assert code == said[place], f"run `make acceptance`: {query.title}"
            if answer is not None and (LONG or (in_turn and not OLDER)):
                _look_at_what_runs(con, one, query, answer)


def _look_at_what_runs(con: duckdb.DuckDBPyConnection, one: Guard, query: Query, answer: pa.Table) -> None:
    """The parts of what runs are written and read each on its own; put together they hold nothing else.

    And every column of an answer is explained by its name.
    """
    found = one.explain(query.sql)
    assert found.answered
    check_query(read(con, found.sql), macros=MACROS, recursive=True)
    assert not re.search("_sdc_[0-9a-f]{24}", found.sql)
    assert not found.columns or [column.name for column in found.columns] == answer.column_names, query.title


def test_every_query_has_a_title_of_its_own() -> None:
    assert len({query.title for query in queries()}) == len(queries()) >= 60


@pytest.fixture(scope="module")
def exact() -> Iterator[Guard]:
    with guarded("threshold", exact=True) as one:
        yield one


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    """In an order of their own, numbers as text of nine digits."""
    found = [tuple(_shown(value) for value in row.values()) for row in table.to_pylist()]
    return sorted(found, key=repr)


def _shown(value: object) -> object:
    return (
        value
        if value is None or isinstance(value, bool | str) or not hasattr(value, "__float__")
        else f"{float(value):.9g}"
    )


@pytest.mark.parametrize("query", queries(), ids=lambda query: query.title)
def test_an_answer_with_nothing_to_hide_is_that_of_duckdb(exact: Guard, query: Query) -> None:
    if query.heading == "What there is":  # less than DuckDB tells (test_summaries.py)
        return
    _, answer = told(exact, query)
    if answer is not None:
        direct = exact._con.cursor().sql(query.sql, params=query.parameters).to_arrow_table()
        assert rows(answer) == rows(direct)
