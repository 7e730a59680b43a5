"""UHUGEINT, INTERVAL, TIMETZ, BIT and BIGNUM: right or refused, for Arrow does not have all of their values."""

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
                {-(2**127 - 1)}::HUGEINT AS h, union_value(b := '101'::BIT) AS either""")
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
    "shown",
    [
        "to_hours(3000000)",
        "[to_microseconds(-9223372036854776)]",
        "{'a': TIMETZ '12:00:00+02'}",
        "TIMETZ '12:00:00+02'",
    ],
)
def test_what_would_be_another_time_is_refused(guard: Guard, shown: str) -> None:
    with pytest.raises(SDCError, match=r"SDC090.*for which an answer has no type: CAST it to VARCHAR"):
        guard.sql(f"SELECT {shown} AS x FROM wide")
    assert guard.sql(f"SELECT {shown} AS x FROM wide LIMIT 0").num_rows == 0


@pytest.mark.parametrize("shown", ["'101'::BIT", "['101'::BIT]", "either", "12::BIGNUM", "{'a': 12::BIGNUM}"])
def test_what_would_be_the_bytes_of_duckdb_is_refused(guard: Guard, shown: str) -> None:
    with pytest.raises(SDCError, match=r"SDC090.*a BIT or BIGNUM, .*CAST it to VARCHAR"):
        guard.sql(f"SELECT {shown} AS x FROM wide")
    [row] = guard.sql(
        "SELECT '101'::BIT::VARCHAR AS a, NULL::BIT AS b, {'BIT': 1} AS c, '\\x01'::BLOB AS d FROM wide"
    ).to_pylist()
    assert row == {"a": "101", "b": None, "c": {"BIT": 1}, "d": b"\1"}


def test_times_that_arrow_has_are_answered(guard: Guard) -> None:
    asked = "SELECT NULL::TIMETZ AS a, '12:00:00+02'::TIMETZ::VARCHAR AS b, to_hours(2000000) AS c, to_hours(3000000)::VARCHAR AS d FROM wide"
    row = guard.sql(asked).to_pylist()[0]
    assert (row["a"], row["b"], row["c"].nanoseconds, row["d"]) == (
        None,
        "12:00:00+02",
        7_200_000_000_000_000_000,
        "3000000:00:00",
    )


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
