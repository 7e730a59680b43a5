"""What people write: the page says what the guard does, and an answer means what the query says."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from table import PAGE, Query, guarded, page, queries, verdict

from sdcduck.guard import Guard


def test_the_page_says_what_the_guard_does() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make acceptance`"


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
    if verdict(exact, query) != "yes":
        return
    direct = exact._con.cursor().sql(query.sql, params=query.parameters).to_arrow_table()
    assert rows(exact.sql(query.sql, query.parameters)) == rows(direct)  # type: ignore[arg-type]
