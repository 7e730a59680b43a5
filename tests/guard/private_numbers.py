"""What private numbers are made of, and whether they are near those of the tables: for the tests of what is answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from sdcduck.catalog.cost_files import CostFile
from sdcduck.guard import Guard
from sdcduck.guard.calls import Noised
from sdcduck.guard.releases import _exact_sql
from sdcduck.guard.rewritten import Release

Numbers = dict[tuple[Any, ...], tuple[Any, ...]]


def charges(register: Path, table: str = "people") -> list[dict[str, Any]]:
    """What answers about a table have cost."""
    return [line for line in CostFile(register, table).lines() if line["kind"] == "charge"]


def charged(register: Path) -> int:
    """How many questions about the people had a cost."""
    return len(charges(register))


def totals(guard: Guard, question: str) -> list[tuple[Release, Noised, list[float]]]:
    """The exact totals of a question, with what may be known of them."""
    found = []
    for release in guard.rewritten(question)[0].releases:
        columns = guard._releases._columns(_exact_sql(release, None), {})
        found += [(release, noised, column) for (_, noised), column in zip(release.columns, columns, strict=True)]
    return found


def groups_near(
    guard: Guard, plain: duckdb.DuckDBPyConnection, question: str, keys: int, *, rel: float
) -> tuple[Numbers, Numbers]:
    """The groups of plain DuckDB and of the guard, by so many keys: those of the former are near it in the latter."""
    rows = [tuple(row.values()) for row in guard.sql(question).to_pylist()]
    wanted, found = ({row[:keys]: row[keys:] for row in of} for of in (plain.execute(question).fetchall(), rows))
    assert wanted.keys() <= found.keys()
    for key, numbers in wanted.items():
        assert found[key] == pytest.approx(tuple(map(float, numbers)), rel=rel, abs=8)
    return wanted, found
