"""What persons who are alone in a cell can tell of a cube: something with the default for counts, nothing with subSpace."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck

CUBE = "SELECT a, b, c, count(*) AS n FROM people GROUP BY CUBE (a, b, c)"


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect() as con:
        yield con


def told(con: duckdb.DuckDBPyConnection, people: int, seed: int, singleton: str) -> tuple[int, int, int]:
    """Primary cells, those of them that a person alone in a cell can tell, and all that an outsider can tell."""
    con.execute(
        f"CREATE OR REPLACE TABLE people AS SELECT hash(i * 7 + {seed}) % 4 AS a, hash(i * 11 + {seed * 3}) % 3 AS b, "
        f"hash(i * 13 + {seed * 5}) % 3 AS c FROM range({people}) _(i)"
    )
    (row,) = con.execute(
        "SELECT count_if(status = 'primary'), count_if(status = 'primary' AND insider_exact), count_if(exact) "
        f"FROM sdc_audit('{CUBE}', max_count := 2, singleton := '{singleton}', insider := true)"
    ).fetchall()
    return row


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("people", [40, 120])
def test_sub_space_tells_nobody(con: duckdb.DuckDBPyConnection, people: int, seed: int) -> None:
    primary, inside, outside = told(con, people, seed, "subSpace")
    assert primary > 0
    assert (inside, outside) == (0, 0)


def test_any_sum_tells_outsiders_nothing_and_insiders_something(con: duckdb.DuckDBPyConnection) -> None:
    """That it tells something is what the docs say, and the package's: a pattern equal to its own."""
    found = [told(con, 120, seed, "anySum") for seed in range(3)]
    assert sum(outside for _, _, outside in found) == 0
    assert 0 < sum(inside for _, inside, _ in found) < sum(primary for primary, _, _ in found) / 2
