"""Trips by SQL: the hand-made example of the paper's measures, a city, what offices publish, and bad input."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sdcduck.methods.trips.ngrams import draw, fit

WALKS = {"A": [0, 1, 2, 5], "B": [0, 3, 6], "C": [0, 4, 8, 4]}


def store(
    con: duckdb.DuckDBPyConnection, name: str, trips: dict[object, list[int]] | list[list[int]], width: int
) -> None:
    """Trips as a table of their cells, a unit apart."""
    named = trips if isinstance(trips, dict) else dict(enumerate(trips))
    rows = [(trip, seq, cell) for trip, cells in named.items() for seq, cell in enumerate(cells, 1)]
    trip, seq, cell = zip(*rows, strict=True)
    con.register("made", pa.table({"trip": trip, "seq": seq, "cell": cell}))
    con.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT *, cell % {width} AS lon, cell // {width} AS lat FROM made")
    con.unregister("made")


def city(seed: int, trips: int = 5000, size: int = 20, hubs: int = 12) -> list[list[int]]:
    """Trips between weighted hubs, along shortest paths, one axis after the other."""
    chance = np.random.default_rng(seed)
    centre, weight = chance.integers(2, size - 2, (hubs, 2)), chance.dirichlet(np.full(hubs, 2.0))
    made: list[list[int]] = []
    while len(made) < trips:
        ends = [
            np.clip(centre[chance.choice(hubs, p=weight)] + chance.integers(-2, 3, 2), 0, size - 1) for _ in range(2)
        ]
        here, there = ends[0].copy(), ends[1]
        path = [int(here[0] * size + here[1])]
        for axis in chance.permutation(2):
            while here[axis] != there[axis]:
                here[axis] += np.sign(there[axis] - here[axis])
                path.append(int(here[0] * size + here[1]))
        if 3 <= len(path) <= 45:
            made.append(path)
    return made


def one(con: duckdb.DuckDBPyConnection, query: str) -> tuple[object, ...]:
    return con.execute(query).fetchall()[0]


# The example with three trips on a grid of nine cells.


def test_the_measures_of_the_example(lasting: duckdb.DuckDBPyConnection) -> None:
    store(lasting, "walks", WALKS, 3)
    found = one(lasting, "FROM sdc_trips_quality('walks', distance := 'plane')")
    assert found[:2] == (3, 11)
    assert found[2:] == pytest.approx((3.0809, 1.1553, 1.1381, 3.3333, 1.375), abs=5e-5)
    steps = [1 + 1 + 1, 1 + 1, 3 * 2**0.5]  # the mean of means is another number, and not asked for
    assert sum(steps[place] / size for place, size in enumerate((3, 2, 3))) / 3 == pytest.approx(1.1381, abs=5e-5)


def test_a_degree_on_the_globe(lasting: duckdb.DuckDBPyConnection) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE far AS FROM (VALUES (1, 1, 0, 0, 0), (1, 2, 1, 0, 1), (2, 1, 2, 0, 60), (2, 2, 3, 1, 60), (3, 1, 4, -90, 0), (3, 2, 5, 90, 0)) t(trip, seq, cell, lon, lat)"
    )
    degree = 6371 * np.pi / 180
    across = 2 * 6371 * np.arcsin(np.sin(np.pi / 360) / 2)  # at 60 degrees the radius is half
    assert one(lasting, "SELECT d_sl FROM sdc_trips_quality('far')")[0] == pytest.approx(
        (degree + across + 180 * degree) / 3
    )


def test_what_follows_in_the_example() -> None:
    trips = np.concatenate([*WALKS.values()])
    sizes = np.array([len(cells) for cells in WALKS.values()])
    first = fit(trips, sizes, cells=9, order=1, k=3)
    assert first.top([0]) == [1, 3, 4]
    assert fit(trips, sizes, cells=9, order=1, k=1).top([0]) == [1]
    longest = fit(trips, sizes, cells=9, order=3, k=3)
    assert (longest.top([0, 1, 2]), longest.top([7, 1, 2]), longest.top([0, 4]), longest.top([5])) == (
        [5],
        [5],
        [8],
        [],
    )
    assert (
        draw(
            fit(trips, sizes, cells=9, order=3, k=1), np.array([0]), np.array([4]), 2, 1, lambda done, total: None
        ).cells.tolist()
        == [0, 1, 2, 5] * 2
    )
    pairs = sum(size - 1 for size in sizes)
    assert pairs == 8


def test_a_third_each(lasting: duckdb.DuckDBPyConnection) -> None:
    store(lasting, "walks", WALKS, 3)
    drawn = lasting.execute(
        "SELECT cell, count(*) FROM sdc_trips_synthesize('walks', n := 3000, start := 'empirical', seed := 4) "
        "WHERE seq = 2 GROUP BY cell"
    ).fetchall()
    assert {cell for cell, _ in drawn} == {1, 3, 4}
    assert all(abs(number - 1000) < 4 * (3000 * 2 / 9) ** 0.5 for _, number in drawn)


def test_shorter_contexts_fill_up_without_saying_a_cell_twice() -> None:
    # After (1, 2) comes 3 alone; after 2 alone 3, 4 and 5.
    trips = [[1, 2, 3], [0, 2, 4], [0, 2, 4], [0, 2, 5]]
    model = fit(np.concatenate(trips), np.array([3] * 4), cells=6, order=2, k=3)
    assert model.top([1, 2]) == [3, 4, 5]
    assert model.top([0, 2]) == [4, 5, 3]


@pytest.mark.parametrize("seed", range(3))
def test_the_model_is_that_of_a_count_by_hand(seed: int) -> None:
    chance = np.random.default_rng(seed)
    trips = [chance.integers(0, 6, size).tolist() for size in chance.integers(1, 9, 60)]
    model = fit(np.concatenate(trips), np.array(list(map(len, trips))), cells=6, order=3, k=4)
    follows = {length: Counter() for length in (1, 2, 3)}
    for cells in trips:
        for length, counts in follows.items():
            counts.update((tuple(cells[at - length : at]), cells[at]) for at in range(length, len(cells)))
    for prefix in [chance.integers(0, 6, size).tolist() for size in chance.integers(1, 5, 100)]:
        wanted: list[int] = []
        for length in (3, 2, 1):
            known = [
                (-count, after)
                for (before, after), count in follows[length].items()
                if before == tuple(prefix[-length:]) and len(prefix) >= length
            ]
            wanted += [after for _, after in sorted(known) if after not in wanted]
        assert model.top(prefix) == wanted[:4]


def test_a_point_of_the_grid(lasting: duckdb.DuckDBPyConnection) -> None:
    points = "(SELECT * FROM (VALUES ('a', 2.99, 0.5, 1), ('a', 3.0, 3.0, 2), ('a', 0.0, 0.0, 3)) p(trip, lon, lat, t))"
    assert lasting.execute(f"SELECT cell, label, lon, lat FROM sdc_trips_grid('{points.replace(chr(39), chr(39) * 2)}', 'trip', box := [0, 0, 3, 3], resolution := 3) ORDER BY seq").fetchall() == [
        (2, 1, 2.5, 0.5), (8, 2, 2.5, 2.5), (0, 0, 0.5, 0.5)]  # fmt: skip


def test_the_area_of_the_published_box() -> None:
    """Latitudes 37.4 to 37.9 have the area that is published for San Francisco; the printed 37.0 to 37.4 have not."""

    def area(south: float, north: float) -> float:
        # Of the ellipsoid of WGS 84, between two parallels and 0.6 degrees of longitude.
        a, e = 6378.137, 0.0818191908426
        q = [np.sin(np.radians(at)) for at in (south, north)]
        belt = [s / (1 - (e * s) ** 2) + np.arctanh(e * s) / e for s in q]
        return float(np.radians(0.6) * a**2 * (1 - e**2) / 2 * (belt[1] - belt[0]))

    assert area(37.4, 37.9) == pytest.approx(2938.38, abs=0.05)
    assert abs(area(37.0, 37.4) - 2938.38) > 500


# A city.


def test_what_holds_in_a_city(lasting: duckdb.DuckDBPyConnection) -> None:
    store(lasting, "city", city(7), 20)
    store(lasting, "sample", city(7)[:2000], 20)
    quality = "SELECT d_sl, delta_r, d_max, n_locs FROM sdc_trips_quality('{}', distance := 'plane')"
    copies = "SELECT exact_copy_rate, piece_copy_rate FROM sdc_trips_leakage('{}', 'city')"
    real = one(lasting, quality.format("sample"))
    assert one(lasting, copies.format("sample")) == (1, 1)
    told = {}
    for k in (1, 3):
        lasting.execute(
            f"CREATE OR REPLACE TABLE top{k} AS FROM sdc_trips_synthesize('city', n := 2000, k := {k}, seed := 11)"
        )
        found, told[k] = one(lasting, quality.format(f"top{k}")), one(lasting, copies.format(f"top{k}"))
        assert found[1:3] == (1, pytest.approx(1, abs=0.01))
        assert found[0] == pytest.approx(real[0], rel=0.10)
    assert found[3] < real[3]
    assert told[3][1] < told[1][1] / 2
    assert told[3][0] < told[1][0] < 0.2
    # No step that nobody has made.
    steps = {step for cells in city(7) for step in pairwise(cells)}
    made = lasting.execute("SELECT list(cell ORDER BY seq) FROM top3 GROUP BY trip").fetchall()
    assert {step for (cells,) in made for step in pairwise(cells)} <= steps


def test_the_same_seed_on_any_number_of_threads_in_any_order(con: duckdb.DuckDBPyConnection) -> None:
    store(con, "city", city(3, trips=300), 20)
    con.execute(
        "CREATE TABLE shaken AS SELECT 1000 - trip AS trip, seq, cell, lon, lat FROM city ORDER BY hash(trip, seq)"
    )
    asked = "FROM sdc_trips_synthesize('{}', n := 500, start := '{}', seed := {}) ORDER BY trip, seq"
    for start in ("uniform", "empirical"):
        first = con.execute(asked.format("city", start, 5)).fetchall()
        con.execute("SET threads = 1")
        assert con.execute(asked.format("shaken", start, 5)).fetchall() == first
        con.execute("RESET threads")
        assert con.execute(asked.format("city", start, 6)).fetchall() != first


# What offices publish.


def points(con: duckdb.DuckDBPyConnection) -> None:
    """Four persons go from cell 0 to cell 3 at eight, one of them twice; one at nine."""
    con.execute(
        "CREATE OR REPLACE TABLE points AS SELECT who || '-' || hour || '-' || round AS ride, who, x::DOUBLE AS lon, y::DOUBLE AS lat, "
        "TIMESTAMP '2024-05-02' + INTERVAL (hour) HOUR + INTERVAL (minute) MINUTE AS t "
        "FROM (VALUES ('a', 8, 1), ('a', 8, 2), ('b', 8, 1), ('c', 8, 1), ('d', 8, 1), ('e', 9, 1)) p(who, hour, round), "
        "(VALUES (5, 0.5, 0.5), (6, 0.6, 0.6), (20, 1.5, 0.5), (50, 1.5, 1.5)) w(minute, x, y)"
    )


GRID = "sdc_trips_grid('points', 'ride', box := [0, 0, 2, 2], resolution := 2, unit := 'who'{})"


def test_flows_of_few_persons_are_left_out(lasting: duckdb.DuckDBPyConnection) -> None:
    points(lasting)
    lasting.execute(f"CREATE OR REPLACE TABLE cells AS FROM {GRID.format('')}")
    assert lasting.execute("SELECT DISTINCT list(cell ORDER BY seq) FROM cells GROUP BY trip").fetchall() == [
        ([0, 1, 3],)
    ]
    flows = "FROM sdc_trips_flows('cells', min_units := {}{})"
    assert lasting.execute(flows.format(4, "")).fetchall() == [(0, 3, 8, 5, 4)]
    assert lasting.execute(flows.format(5, "")).fetchall() == []  # five trips, of four persons
    assert lasting.execute(flows.format(5, ", hours := 12")).fetchall() == [(0, 3, 0, 6, 5)]
    assert lasting.execute(flows.format(1, "")).fetchall() == [(0, 3, 8, 5, 4), (0, 3, 9, 1, 1)]


def test_flows_are_counted_and_suppressed(lasting: duckdb.DuckDBPyConnection) -> None:
    points(lasting)
    lasting.execute(
        f"CREATE OR REPLACE TABLE ends AS FROM sdc_trips_ends('(FROM {GRID.format('')})')".replace(
            "'points'", "''points''"
        )
        .replace("'ride'", "''ride''")
        .replace("'who'", "''who''")
    )
    assert one(lasting, "SELECT count(*), count(DISTINCT unit), min(cells) FROM ends") == (6, 5, 3)
    asked = "SELECT origin, destination, hour, count(*) AS n FROM ends GROUP BY CUBE (origin, destination, hour)"
    hidden = lasting.execute(f"FROM sdc_suppress('{asked}', max_count := 1)").fetchall()
    assert len(hidden) == len(lasting.execute(asked).fetchall())
    lasting.execute("CREATE OR REPLACE TABLE keyed AS SELECT *, sdc_record_key(trip) AS record_key FROM ends")
    assert one(lasting, "SELECT sdc_count(record_key) FROM keyed")[0] is not None


def test_cells_of_few_persons_are_left_out_first(lasting: duckdb.DuckDBPyConnection) -> None:
    points(lasting)
    lasting.execute("INSERT INTO points VALUES ('a-8-1', 'a', 0.5, 1.5, TIMESTAMP '2024-05-02 08:10:00')")
    lasting.execute("INSERT INTO points VALUES ('a-8-2', 'a', 0.5, 1.5, TIMESTAMP '2024-05-02 08:10:00')")
    visited = "SELECT list(DISTINCT cell ORDER BY cell) FROM " + GRID
    assert one(lasting, visited.format("")) == ([0, 1, 2, 3],)
    assert one(lasting, visited.format(", min_units := 2")) == ([0, 1, 3],)  # two trips of one person
    assert one(lasting, visited.format(", max_length := 3, min_length := 3")) == ([0, 1, 3],)
    assert one(lasting, f"SELECT max(seq) FROM {GRID.format(', collapse := false')}") == (5,)


# Bad input.


def test_points_that_cannot_be_used_are_counted(lasting: duckdb.DuckDBPyConnection) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE odd AS FROM (VALUES (1, 0.5::DOUBLE, 0.5::DOUBLE, 3::DOUBLE), (1, 1.5, 0.5, 2.0), (1, 0.5, 1.5, 2.0), (1, NULL, 0.5, 1.0), "
        "(1, 'NaN', 0.5, 1.0), (1, 'inf', 0.5, 1.0), (1, 2.1, 0.5, 1.0), (1, 0.5, 0.5, NULL), (1, 0.5, 0.5, 'NaN'), (NULL, 0.5, 0.5, 1.0), "
        "(2, 0.5, 0.5, 1.0), (3, 9, 9, 1)) t(trip, lon, lat, t)"
    )
    assert one(lasting, "FROM sdc_trips_check('odd', 'trip', box := [0, 0, 2, 2])") == (12, 1, 2, 2, 3, 4, 2, 1, 1)
    # Time goes backwards in the table, not in the trip; of the same time the one further west is first.
    assert lasting.execute(
        "SELECT trip, cell FROM sdc_trips_grid('odd', 'trip', box := [0, 0, 2, 2], resolution := 2) ORDER BY trip, seq"
    ).fetchall() == [(1, 2), (1, 1), (1, 0), (2, 0)]


def test_trips_of_one_cell_and_no_trips(lasting: duckdb.DuckDBPyConnection) -> None:
    lasting.execute("CREATE OR REPLACE TABLE single AS SELECT 1 AS trip, 1 AS seq, 7 AS cell, 1 AS lon, 2 AS lat")
    lasting.execute("CREATE OR REPLACE TABLE nobody AS FROM single LIMIT 0")
    assert one(lasting, "FROM sdc_trips_quality('single')") == (1, 1, 0, None, 0, 1, 1)
    assert one(lasting, "FROM sdc_trips_quality('nobody')") == (0, 0, None, None, None, None, None)
    assert one(lasting, "FROM sdc_trips_leakage('nobody', 'single')") == (0, 0, None, 0, 0, None)
    assert one(lasting, "FROM sdc_trips_leakage('single', 'single')") == (1, 1, 1, 0, 0, None)
    assert lasting.execute("FROM sdc_trips_synthesize('nobody', n := 5)").fetchall() == []
    assert lasting.execute("FROM sdc_trips_synthesize('single', n := 2)").fetchall() == [
        (1, 1, 7, 1, 2, False),
        (2, 1, 7, 1, 2, False),
    ]
    assert lasting.execute("FROM sdc_trips_synthesize('single', n := 0)").fetchall() == []
    lasting.execute(
        "CREATE OR REPLACE TABLE line AS FROM (VALUES (1, 1, 1), (1, 2, 2), (1, 3, 3), (NULL, 1, 9), (1, NULL, 9), (1, 4, NULL)) t(trip, seq, cell)"
    )
    ended = lasting.execute(
        "SELECT list(cell ORDER BY seq), bool_and(truncated) FROM sdc_trips_synthesize('line', n := 40, x := NULL, y := NULL) GROUP BY trip"
    ).fetchall()
    assert sorted({(tuple(cells), cut) for cells, cut in ended}) == [((1, 2, 3), False), ((2, 3), True), ((3,), True)]


REFUSED = {
    "sdc_trips_grid('p', 'trip')": "argument 'box' must hold west, south, east and north",
    "sdc_trips_grid('p', 'trip', box := [0, 0, 1])": "argument 'box'",
    "sdc_trips_grid('p', 'trip', box := [1, 0, 0, 1])": "west is less than east",
    "sdc_trips_grid('p', 'trip', box := [0, 0, 'NaN'::DOUBLE, 1])": "argument 'box'",
    "sdc_trips_grid('p', 'trip', box := [0, NULL, 1, 1])": "argument 'box'",
    "sdc_trips_grid('p', box := [0, 0, 1, 1])": "argument 'trip' must name a column",
    "sdc_trips_grid('p', 'tripp', box := [0, 0, 1, 1])": "did you mean 'trip'",
    "sdc_trips_grid('p', 'trip', x := 'name', box := [0, 0, 1, 1])": "argument 'x' must name a column of numbers",
    "sdc_trips_grid('p', 'trip', t := 'name', box := [0, 0, 1, 1])": "argument 't' must name a column of times, dates or numbers",
    "sdc_trips_grid('p', 'trip', box := [0, 0, 1, 1], resolution := 0)": "argument 'resolution' must be a whole number",
    "sdc_trips_grid('p', 'trip', box := [0, 0, 1, 1], min_length := 3, max_length := 2)": "'max_length' must not be below",
    "sdc_trips_grid('p', 'trip', box := [0, 0, 1, 1], collapse := NULL)": "argument 'collapse' must be true or false",
    "sdc_trips_ends('p', unit := NULL)": "argument 't' must name a column of times with an hour",
    "sdc_trips_flows('p', unit := NULL, t := 'at', min_units := 0)": "argument 'min_units' must be a whole number",
    "sdc_trips_flows('p', unit := NULL, t := 'at', hours := 25)": "argument 'hours' must be a whole number from 1 to 24",
    "sdc_trips_flows('p', t := 'at')": "unknown column 'unit'",
    "sdc_trips_quality('p', distance := 'miles')": "argument 'distance' must be 'km' or 'plane'",
    "sdc_trips_quality('p', cell := 'lon')": "argument 'cell' must name a column of whole numbers",
    "sdc_trips_leakage('p', 'p', w := 0)": "argument 'w' must be a whole number from 1 to 50",
    "sdc_trips_synthesize('p', k := 0)": "argument 'k' must be a whole number",
    "sdc_trips_synthesize('p', n := -1)": "argument 'n' must be a whole number",
    "sdc_trips_synthesize('p', context := 7)": "argument 'context' must be a whole number from 1 to 6",
    "sdc_trips_synthesize('p', start := 'uniformly')": "did you mean 'uniform'",
    "sdc_trips_synthesize('p', seed := NULL)": "argument 'seed'",
    "sdc_trips_synthesize('p', n := 100000000)": "make 'n' smaller",
    "sdc_trips_synthesize('(SELECT trip, 1 AS seq, cell, lon FROM p)')": "unknown column 'lat'",
}  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused(lasting: duckdb.DuckDBPyConnection, call: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE p AS SELECT 1 AS trip, i AS seq, i AS cell, 0.5::DOUBLE AS lon, 0.5::DOUBLE AS lat, i AS t, 'secret' AS name, now()::TIMESTAMP AS at FROM range(5) r(i)"
    )
    with pytest.raises(duckdb.Error) as raised:
        lasting.execute(f"FROM {call}").fetchall()
    assert REFUSED[call] in str(raised.value)
    assert "secret" not in str(raised.value)
