"""Two events in a row of each subject, and their accuracy (ANITA D2.2, 2.4: sequential data)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import duckdb
import pytest

import sdcduck
from sdcduck.errors import SDCError

EVENTS = """SELECT i % 37 AS person, i AS n, 'r' || (i % 37) % 3 AS region, ['a', 'b', 'c', 'd'][1 + (i * i // 5) % 4] AS place,
    CASE WHEN i % 11 = 0 THEN NULL ELSE i * 7 % 100 END AS spent FROM range(37 * 6 - 20) t(i)"""


def by_hand(rows: list[tuple[int, int, str, str, int | None]], seed: int) -> list[tuple[object, ...]]:
    """The rule itself: the pair whose number the hash of seed and subject gives."""
    found = []
    for person in sorted({row[0] for row in rows}):
        events = sorted((row for row in rows if row[0] == person), key=lambda row: row[1])
        text = hashlib.md5(f"{seed}:{person}".encode()).digest()
        place = int.from_bytes(text, "little") % (len(events) - 1) if len(events) > 1 else 0
        after = events[place + 1] if len(events) > 1 else (None,) * 5
        found.append((person, events[place][2], events[place][3], after[3], events[place][4], after[4]))
    return found


@pytest.mark.parametrize("seed", [0, 7])
def test_pairs_are_those_of_the_rule_however_events_are_stored(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    con.execute(f"CREATE TABLE events AS {EVENTS}; CREATE TABLE other AS FROM events ORDER BY hash(n)")
    wanted = by_hand(con.execute("FROM events").fetchall(), seed)
    assert len({row[3] for row in wanted}) >= 3
    for table in ("events", "other"):
        made = sdcduck.event_pairs(con, table, "person", "n", once=["region"], seed=seed)
        assert made.columns == ["person", "region", "place", "next_place", "spent", "next_spent"]
        assert made.fetchall() == wanted


def test_subjects_with_one_event_or_none_and_events_at_one_time(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""CREATE TABLE events AS SELECT * FROM (VALUES ('x', 1, 'a'), ('y', 5, 'b'), ('y', 5, 'a'), (NULL, 1, 'c'), (NULL, 2, 'c'),
        ('z', NULL, 'a'), ('z', 9, 'b')) t(who, moment, what)""")
    wanted = [("x", "a", None), ("y", "a", "b"), ("z", "b", "a")]
    assert sdcduck.event_pairs(con, "events", "who", "moment").fetchall() == wanted
    assert sdcduck.event_pairs(con, "(FROM events WHERE who = 'nobody')", "who", "moment").fetchall() == []


def test_accuracy_is_that_of_the_pairs(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        f"CREATE TABLE events AS {EVENTS}; CREATE TABLE made AS SELECT * REPLACE (n * n % 101 AS n) FROM events"
    )
    con.execute(f"CREATE TABLE kept AS SELECT * REPLACE (person + 1000 AS person, n + 3 AS n) FROM ({EVENTS})")
    for options in (
        {},
        {"ways": 1},
        {"ways": 3, "categorical": ["spent"]},
        {"seed": 3, "buckets": 4},
        {"holdout": "kept"},
    ):
        named = {"subject": "person", "order_by": "n", "once": ["region"], **options}
        pairs = {"seed": named.get("seed", 0), "once": ["region"]}
        for side in ("events", "made", "kept"):
            con.execute(f"DROP TABLE IF EXISTS {side}_pairs")
            sdcduck.event_pairs(con, side, "person", "n", **pairs).create(f"{side}_pairs")
        others = {name: value for name, value in options.items() if name in ("ways", "buckets")}
        if "categorical" in options:
            others["categorical"] = ["spent", "next_spent"]
        if "holdout" in options:
            others["holdout"] = "kept_pairs"
        columns = ["region", "place", "next_place", "spent", "next_spent"]
        wanted = sdcduck.accuracy(con, "events_pairs", "made_pairs", columns=columns, **others).fetchall()
        assert sdcduck.accuracy_events(con, "events", "made", **named).fetchall() == wanted


def test_order_that_was_lost_is_seen_in_pairs_only(con: duckdb.DuckDBPyConnection) -> None:
    """Each place leads to the next; shuffled, every event is as before, and what follows what is gone."""
    con.execute("""CREATE TABLE events AS SELECT i // 8 AS person, i AS n, (i % 8 + i // 8) % 4 AS place FROM range(4000) t(i);
        CREATE TABLE shuffled AS SELECT * REPLACE (hash(n) AS n) FROM events""")
    found = {}
    for ways in (1, 2):
        for made in ("events", "shuffled"):
            [(_, _, _, accuracy, *_)] = sdcduck.accuracy_events(
                con, "events", made, "person", "n", ways=ways, categorical=["place"]
            ).fetchall()
            found[made, ways] = accuracy
    assert found["events", 1] == found["events", 2] == 1
    assert found["shuffled", 1] > 0.9
    assert found["shuffled", 2] < 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda con: sdcduck.event_pairs(con, "events", "who", "n"), "unknown column 'who'"),
        (lambda con: sdcduck.event_pairs(con, "events", "person", "when"), "unknown column 'when'"),
        (lambda con: sdcduck.event_pairs(con, "event", "person", "n"), "unknown table 'event'; did you mean 'events'"),
        (lambda con: sdcduck.event_pairs(con, "events", "person", "n", ["place", "place"]), "names column 'place' twice"),
        (lambda con: sdcduck.event_pairs(con, "events", "person", "n", ["place"], once=["place"]), "'place' is the subject's"),
        (lambda con: sdcduck.event_pairs(con, "(SELECT person, n FROM events)", "person", "n"), "must name what changes"),
        (lambda con: sdcduck.event_pairs(con, "(SELECT *, 1 AS next_place FROM events)", "person", "n"), "'next_place' beside 'place'"),
        (lambda con: sdcduck.event_pairs(con, "events", "person", "n", seed=-1), "'seed' must be a whole number of at least 0"),
        (lambda con: sdcduck.accuracy_events(con, "events", "(SELECT person, n FROM events)", "person", "n"), "unknown column 'region'"),
        (lambda con: sdcduck.accuracy_events(con, "events", "events", "person", "n", ways=9), "ways"),
    ],
)  # fmt: skip
def test_wrong_arguments(
    con: duckdb.DuckDBPyConnection, call: Callable[[duckdb.DuckDBPyConnection], object], message: str
) -> None:
    con.execute(f"CREATE TABLE events AS {EVENTS}")
    with pytest.raises(SDCError, match=message):
        call(con)
