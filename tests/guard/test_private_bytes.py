"""Groups of a dimension with few whole numbers under differential privacy, whose totals are made by one byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from private_numbers import totals
from private_people import made

import sdcduck
from sdcduck.guard import Guard

pytest.importorskip("opendp")

_RECORDS = """SELECT i AS id, nullif(i % 11, 4) - CASE WHEN i % 50 = 0 THEN 400 ELSE 0 END AS region,
    CASE WHEN i % 40 = 0 THEN 300 + i ELSE i % 9 END AS age, true AS ill,
    [1.5, 'nan', 'inf', NULL, 1e300, -7, 30.25, 2][1 + i % 8]::DOUBLE AS income FROM range(2000) t(i)"""


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    domains = "{'region': range(2, 8), 'age': range(250, 257), 'ill': [true, false]}"
    register = made(tmp_path_factory.mktemp("bytes") / "register", _RECORDS, domains=domains)
    with closing(sdcduck.open_guard(register)) as opened:
        yield opened


_NUMBERS = "count(*), sum(income), count(income), count(*) FILTER (WHERE income > 1)"


@pytest.mark.parametrize("where", ["ill", "region < 6", "income < 5"])
@pytest.mark.parametrize("by", ["region", "ROLLUP (region)"])
def test_totals_by_bytes_are_those_of_the_domain(guard: Guard, where: str, by: str) -> None:
    """What is not of the domain, no number at all, or no byte, is one group with what is missing."""
    asked = totals(guard, f"SELECT region, {_NUMBERS} FROM people WHERE {where} GROUP BY {by}")
    assert all("_sdc_byte" in release.totals for release, _, _ in asked)
    # Numbers of different values do not add up.
    domain = totals(guard, f"SELECT region, {_NUMBERS}, count(DISTINCT age) FROM people WHERE {where} GROUP BY region")
    assert all("_sdc_byte" not in release.totals for release, _, _ in domain)
    assert [column for _, _, column in asked] == [column for _, noised, column in domain if noised.adds]
    assert all(any(column) for _, _, column in asked)


@pytest.mark.parametrize("by", ["age", "ill", "region % 2", "region, ill"])
def test_other_groups_are_made_as_they_stand(guard: Guard, by: str) -> None:
    """Numbers beyond a byte, and whatever is not one column of whole numbers."""
    asked = totals(guard, f"SELECT {by}, count(*) FROM people GROUP BY ALL")
    assert asked
    assert all("_sdc_byte" not in release.totals for release, _, _ in asked)
