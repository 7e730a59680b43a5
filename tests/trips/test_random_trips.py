"""Random trips, beside the formulas of the paper written once more: grid, measures, copies."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict

import duckdb
import pytest

Trips = dict[int, list[int]]


def centre(cell: int) -> tuple[float, float]:
    return 2 + cell % 5 * 0.3, 48 + cell // 5 * 0.2


def kilometres(a: int, b: int) -> float:
    (x0, y0), (x1, y1) = [tuple(map(math.radians, centre(cell))) for cell in (a, b)]
    square = math.sin((y1 - y0) / 2) ** 2 + math.cos(y0) * math.cos(y1) * math.sin((x1 - x0) / 2) ** 2
    return 2 * 6371 * math.asin(math.sqrt(square))


def stored(con: duckdb.DuckDBPyConnection, name: str, trips: Trips, chance: random.Random) -> None:
    rows = [(trip, seq, cell, *centre(cell)) for trip, cells in trips.items() for seq, cell in enumerate(cells)]
    chance.shuffle(rows)
    con.execute(
        f'CREATE OR REPLACE TABLE "{name}" (trip BIGINT, "Seq No" SMALLINT, cell UTINYINT, lon DOUBLE, lat DOUBLE)'
    )
    if rows:
        con.executemany(f'INSERT INTO "{name}" VALUES (?, ?, ?, ?, ?)', rows)


@pytest.mark.parametrize(("seed", "real", "made"), [(1, 0, 3), (2, 1, 0), (3, 2, 2), (4, 30, 30), (5, 30, 1)])
def test_measures_and_copies(con: duckdb.DuckDBPyConnection, seed: int, real: int, made: int) -> None:
    chance = random.Random(seed)

    def some(count: int) -> Trips:
        return {trip: [chance.randrange(25) for _ in range(chance.choice([1, 2, 3, 6, 9]))] for trip in range(count)}

    original, synthetic = some(real), some(made)
    for trip in list(synthetic)[:2] if original else ():
        synthetic[trip] = list(chance.choice(list(original.values())))
    stored(con, "Real trips", original, chance)
    stored(con, "made", synthetic, chance)
    steps = [[kilometres(a, b) for a, b in itertools.pairwise(cells)] for cells in original.values()]
    pooled, visits = [step for of_trip in steps for step in of_trip], sum(map(len, original.values()))
    row = con.execute("FROM sdc_trips_quality('\"Real trips\"', seq := 'seq no')").fetchone()
    if not original:
        assert row == (0, 0, None, None, None, None, None)
    else:
        assert row == (
            real, visits, pytest.approx(sum(pooled) / real, rel=1e-9),
            pytest.approx(sum(pooled) / len(pooled), rel=1e-9) if pooled else None,
            pytest.approx(sum(max(of_trip, default=0) for of_trip in steps) / real, rel=1e-9),
            pytest.approx(sum(len(set(cells)) for cells in original.values()) / real),
            pytest.approx(visits / len({cell for cells in original.values() for cell in cells})),
        )  # fmt: skip
    for w in (1, 2, 5):
        found = con.execute(f"FROM sdc_trips_leakage('made', '\"Real trips\"', w := {w}, seq := 'Seq No')").fetchone()
        known = {tuple(cells[at : at + w]) for cells in original.values() for at in range(len(cells) - w + 1)}
        pieces = [tuple(cells[at : at + w]) for cells in synthetic.values() for at in range(len(cells) - w + 1)]
        whole = sum(cells in original.values() for cells in synthetic.values())
        copied = sum(piece in known for piece in pieces)
        assert found == (
            made, whole, whole / made if made else None, len(pieces), copied, copied / len(pieces) if pieces else None,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "resolution", "collapse", "least", "most"), [(1, 3, True, 1, None), (2, 7, False, 2, 5)]
)
def test_a_grid(
    con: duckdb.DuckDBPyConnection, seed: int, resolution: int, collapse: bool, least: int, most: int | None
) -> None:
    chance, (west, south, east, north) = random.Random(seed), (-1.5, 2.0, 4.25, 2.5)
    points = [
        (chance.choice([None, 1, 2, 3, 4, 5]), chance.choice([chance.uniform(west - 1, east + 1), west, east, None]),
         chance.choice([chance.uniform(south, north), north, south]), time)
        for time in range(80)
    ]  # fmt: skip
    con.execute('CREATE TABLE points ("Trip Id" INTEGER, "X y" FLOAT, lat DECIMAL(9, 4), t SMALLINT)')
    con.executemany("INSERT INTO points VALUES (?, ?, ?, ?)", points)
    persons, trips = defaultdict(set), defaultdict(list)
    used = con.execute('SELECT "Trip Id", "X y"::DOUBLE, lat::DOUBLE, t FROM points ORDER BY t').fetchall()
    visits = []
    for trip, x, y, time in used:
        if None not in (trip, x, y) and west <= x <= east and south <= y <= north:
            column = min(resolution - 1, math.floor((x - west) / (east - west) * resolution))
            line = min(resolution - 1, math.floor((y - south) / (north - south) * resolution))
            visits.append((trip, line * resolution + column, time))
            persons[line * resolution + column].add(trip)
    for trip, cell, time in visits:
        if len(persons[cell]) >= 2 and not (collapse and trips[trip] and trips[trip][-1][0] == cell):
            trips[trip].append((cell, time))
    # Cells are numbered before trips are left out for their length, as in the paper.
    labels = {cell: at for at, cell in enumerate(sorted({cell for cells in trips.values() for cell, _ in cells}))}
    expected = [
        (trip, seq, cell, labels[cell], time)
        for trip, cells in sorted(trips.items())
        for seq, (cell, time) in enumerate(cells, 1)
        if least <= len(cells) <= (most or 99)
    ]
    found = con.execute(
        f"SELECT trip, seq, cell, label, t FROM sdc_trips_grid('points', 'trip id', x := 'x Y', box := [{west}, {south}, {east}, "
        f"{north}], resolution := {resolution}, collapse := {collapse}, min_units := 2, min_length := {least}, "
        f"max_length := {most or 'NULL'}) ORDER BY ALL"
    ).fetchall()
    assert found == expected
    assert Counter(row[0] for row in found)
