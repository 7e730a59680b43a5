"""The paper's predictor, where Keras is there: `make network-test` installs it into an environment of its own."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from sdcduck.errors import SDCError
from sdcduck.methods.trips import network

needed = pytest.mark.skipif(not network.is_there(), reason="without Keras; `make network-test` brings it")


def loops(con: duckdb.DuckDBPyConnection, name: str, trips: int) -> None:
    """Trips round a ring of six cells, or out to a seventh after two times the same side: known from all before alone."""
    con.execute(
        f"CREATE TABLE {name} AS SELECT trip, seq, (trip + seq) % 6 + 1 AS cell, cell::DOUBLE AS lon, 0.5 AS lat "
        f"FROM range({trips}) t(trip), range(1, 7) s(seq) WHERE seq <= 4 + trip % 3"
    )


def test_beginnings_of_trips() -> None:
    rows, following = network.prefixes(np.array([0, 1, 2, 5, 0, 3, 6, 0, 4, 8, 4, 7]), np.array([4, 3, 4, 1]), 3)
    assert len(rows) == 3 + 2 + 3
    assert rows.tolist()[:3] == [[0, 0, 1], [0, 1, 2], [1, 2, 3]]
    assert rows.tolist()[3:5] == [[0, 0, 1], [0, 1, 4]]
    assert following.tolist() == [1, 2, 5, 3, 6, 4, 8, 4]


@pytest.mark.skipif(network.is_there(), reason="Keras is there")
def test_what_is_missing_is_named(con: duckdb.DuckDBPyConnection) -> None:
    loops(con, "ring", 3)
    with pytest.raises(duckdb.Error, match=r"pip install 'sdcduck\[trips\]'"):
        con.execute("FROM sdc_trips_synthesize('ring', engine := 'bilstm')")


@needed
def test_the_number_of_weights_of_the_paper() -> None:
    """2,300,880 of Beijing's 4,944 cells, and 64 for the sign that fills up, which the paper has left out."""
    assert network.built(4944, 256, 1).count_params() == 2_300_880 + 64


@needed
def test_it_learns_where_a_ring_goes_on(con: duckdb.DuckDBPyConnection) -> None:
    loops(con, "ring", 120)
    call = "sdc_trips_synthesize('ring', n := 200, k := 1, engine := 'bilstm', epochs := 120, units := 16, seed := {})"
    con.execute(f"CREATE TABLE made AS FROM {call.format(4)}")
    assert con.execute(
        "SELECT count(DISTINCT trip), bool_or(truncated), min(cell), max(cell) FROM made"
    ).fetchall() == [(200, False, 1, 6)]
    # A length is one of those that are there, and each step is one of the ring.
    assert con.execute("SELECT DISTINCT max(seq) FROM made GROUP BY trip ORDER BY 1").fetchall() == [(4,), (5,), (6,)]
    steps = "SELECT avg((c = b % 6 + 1)::INT) FROM (SELECT cell AS c, lag(cell) OVER (PARTITION BY trip ORDER BY seq) AS b FROM made)"
    (right,) = con.execute(steps).fetchone() or (0,)
    assert right > 0.95
    assert con.execute("SELECT bool_and(lon = cell AND lat = 0.5) FROM made").fetchone() == (True,)
    # The same seed draws the same, another one something else.
    again = con.execute(f"SELECT trip, seq, cell FROM {call.format(4)} ORDER BY ALL").fetchall()
    assert again == con.execute("SELECT trip, seq, cell FROM made ORDER BY ALL").fetchall()
    assert again != con.execute(f"SELECT trip, seq, cell FROM {call.format(5)} ORDER BY ALL").fetchall()


@needed
def test_of_equally_likely_cells_the_smaller_one_and_k_of_them() -> None:
    class Even:
        def predict_on_batch(self, rows: np.ndarray) -> np.ndarray:
            return np.tile([0.1, 0.3, 0.3, 0.3], (len(rows), 1))

    assert network.Network(Even(), 2, 3).top(np.ones((3, 3), np.int32)).tolist() == [[1, 2]] * 3


@needed
@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("'(FROM ring WHERE seq = 1)', engine := 'bilstm'", "no trip has two cells"),
        ("'ring', engine := 'lstm'", "argument 'engine' must be"),
        ("'ring', engine := 'bilstm', epochs := 0", "argument 'epochs' must be a whole number"),
        ("'ring', engine := 'bilstm', units := 1", "argument 'units' must be a whole number"),
    ],
)
def test_what_is_refused(con: duckdb.DuckDBPyConnection, call: str, reason: str) -> None:
    loops(con, "ring", 3)
    with pytest.raises((duckdb.Error, SDCError), match=reason):
        con.execute(f"FROM sdc_trips_synthesize({call})")
