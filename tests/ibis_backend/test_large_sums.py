"""Sums of whole numbers beyond 64 bits: right where the type has room, refused with a lesson where it has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ibis
import ibis.expr.types as ir
import pytest

import sdcduck
from sdcduck.errors import SDCError

TOTAL = 40 * (2**63 - 1)


@pytest.fixture(scope="module")
def table() -> Iterator[ir.Table]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("CREATE TABLE large AS SELECT 9223372036854775807 AS x, 'a' AS r FROM range(40)")
        con.execute("FROM sdc_declare_public('large')").fetchall()
        yield sdcduck.ibis.connect(con).table("large")


@pytest.mark.parametrize(
    "asked",
    [
        lambda t: t.x.sum(), lambda t: t.agg(s=t.x.sum()), lambda t: t.group_by("r").agg(s=t.x.sum()),
        lambda t: t.select(s=t.x.sum().over(ibis.window())),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "fetched", [lambda e: e.execute(), lambda e: e.to_pyarrow(), lambda e: e.to_pyarrow_batches().read_all()]
)
def test_what_has_no_room_is_refused(
    table: ir.Table, asked: Callable[[ir.Table], Any], fetched: Callable[[Any], Any]
) -> None:
    with pytest.raises(SDCError, match=r"SDC090.*beyond the 64 bits.*cast\('decimal"):
        fetched(asked(table))


def test_what_has_is_right(table: ir.Table) -> None:
    assert int(table.x.sum().cast("decimal(38, 0)").execute()) == TOTAL
    assert table.x.sum().cast("float64").execute() == float(TOTAL)
