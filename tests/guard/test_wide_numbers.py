"""UHUGEINT: right or refused, for Arrow has no numbers of 128 bits without a sign."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pytest

import sdcduck
from sdcduck.errors import SDCError
from sdcduck.guard import Guard

LARGEST = 2**128 - 1


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as connection:
        connection.execute(f"""
            CREATE TABLE wide AS SELECT {LARGEST}::UHUGEINT AS u, {2**127}::UHUGEINT AS least, {2**127 - 1}::UHUGEINT AS most,
                {-(2**127 - 1)}::HUGEINT AS h""")
        connection.execute("FROM sdc_declare_public('wide')").fetchall()
        yield connection


@pytest.fixture(scope="module")
def guard(con: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.open_guard(con)


@pytest.mark.parametrize(
    "shown", ["u", "least", "max(u)", "list(u)", "{'a': u}", "MAP {'a': u}", "[{'a': [u]}]", "[u]::UHUGEINT[1]"]
)
def test_what_is_too_large_is_refused(guard: Guard, shown: str) -> None:
    with pytest.raises(SDCError, match=r"SDC090.*2\^127 or more.*CAST it to VARCHAR"):
        guard.sql(f"SELECT {shown} AS x FROM wide")
    with pytest.raises(SDCError, match=r"2\^127 or more"):
        guard.stream(f"SELECT {shown} AS x FROM wide").read_all()


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        ("most", Decimal(2**127 - 1)), ("u // 2", Decimal(2**127 - 1)), ("h", Decimal(-(2**127 - 1))), ("NULL::UHUGEINT", None),
        ("u::VARCHAR", str(LARGEST)), ("u::DOUBLE", float(LARGEST)), ("[most]", [Decimal(2**127 - 1)]),
        ("fsum(count(*)) OVER ()", 1.0),
    ],
)  # fmt: skip
def test_what_is_not_is_right(guard: Guard, shown: str, wanted: object) -> None:
    assert guard.sql(f"SELECT {shown} AS x FROM wide").to_pylist() == [{"x": wanted}]
