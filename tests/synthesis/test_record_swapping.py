"""Targeted record swapping: the kernel against a plain scan, and everything else through its door, SQL."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupting import again_and_again

import sdcduck
from sdcduck.methods.synthesis.draws import random_bits
from sdcduck.methods.synthesis.record_swapping import (
    NO_DONOR_LEFT,
    NO_SIMILAR,
    levels_at_risk,
    smallest_counts,
    swap_records,
)

needs_duckdb_2 = pytest.mark.skipif(
    duckdb.__version__.startswith("1."), reason="DuckDB 1.5 cannot be asked between the chunks of a statement"
)

# --- the kernel ------------------------------------------------------------------------------------------------------


@st.composite
def households(draw: st.DrawFn) -> dict[str, np.ndarray]:
    """Up to 60 households of one to three persons, in areas that lie in regions."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(0, 60))
    region = np.sort(generator.integers(0, 3, draw(st.integers(1, 8))))
    unit = np.repeat(np.arange(n), generator.integers(1, 4, n))
    return {
        "area": generator.integers(0, len(region), n),
        "ancestors": np.array([np.unique(region, return_inverse=True)[1], np.arange(len(region))]),
        "unit": unit,
        "alike": generator.integers(0, draw(st.integers(1, 20)), len(unit)),
        "profiles": generator.integers(0, draw(st.integers(1, 5)), (draw(st.integers(1, 2)), n)),
        "key": generator.integers(0, 2**63, n).astype(np.uint64),
    }


def by_plain_scan(
    homes: dict[str, np.ndarray], k: int, begun_by_area: np.ndarray, seed: int
) -> tuple[list[int], list[int]]:
    """Partners and failures, each donor looked for among all households; the narrowest level takes what it is told."""
    area, ancestors, profiles = homes["area"], homes["ancestors"], homes["profiles"]
    n = len(area)
    smallest = smallest_counts(homes["alike"], homes["unit"], area, ancestors)
    at_risk = levels_at_risk(smallest, k)
    partner, failed = [-1] * n, [0] * n
    begun = np.zeros(ancestors.shape[1], dtype=int)
    for level, ancestor in enumerate(ancestors):
        bits = random_bits(homes["key"], np.full(n, level + 1), np.zeros(n, dtype=np.int64), np.full(n, seed))
        score = [
            math.log(((int(b) >> 11) + 0.5) / 2.0**53) * -int(s) for b, s in zip(bits, smallest[level], strict=True)
        ]
        by_score = sorted(range(n), key=lambda u: score[u])
        rest = begun_by_area - begun
        for here in range(ancestor.max(initial=-1) + 1):
            inside = [u for u in by_score if ancestor[area[u]] == here and partner[u] < 0]
            listed = [u for u in inside if at_risk[u] == level]
            if level == len(ancestors) - 1:
                others = [u for u in inside if at_risk[u] < 0]
                listed += others[: max(0, rest[here] - len(listed))]
            for u in listed:
                outside = [
                    [v for v in by_score if ancestor[area[v]] != here and profile[v] == profile[u]]
                    for profile in profiles
                ]
                donor = next((v for row in outside for v in row if partner[v] < 0), None)
                if donor is not None:
                    partner[u], partner[donor] = donor, u
                    begun[area[u]] += 1
                elif at_risk[u] >= 0:
                    failed[u] = NO_DONOR_LEFT if any(outside) else NO_SIMILAR
    return partner, failed


@given(homes=households(), k=st.integers(0, 4), seed=st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=times(60, 150), deadline=None)
@pytest.mark.newest
def test_the_kernel_finds_the_donors_of_a_plain_scan(homes: dict[str, np.ndarray], k: int, seed: int) -> None:
    smallest = smallest_counts(homes["alike"], homes["unit"], homes["area"], homes["ancestors"])
    for person, unit in enumerate(homes["unit"]):
        for level, ancestor in enumerate(homes["ancestors"]):
            region = ancestor[homes["area"]]
            like = (homes["alike"] == homes["alike"][person]) & (region[homes["unit"]] == region[unit])
            assert smallest[level][unit] <= like.sum()
    arguments = (homes["area"], homes["ancestors"], smallest, homes["profiles"], homes["key"])
    for rate in (0.0, 1.0):  # whole numbers of pairs: no lots
        if rate and len(homes["area"]) % 2:
            continue
        swapping = swap_records(*arguments, k=k, rate=rate, seed=seed)
        sizes = np.bincount(homes["area"], minlength=homes["ancestors"].shape[1])
        halves = sizes * int(len(homes["area"]) * rate / 2) // max(1, len(homes["area"]))
        if halves.sum() < swapping.wanted / 2:
            continue  # some areas begin one more, by lot
        partner, failed = by_plain_scan(homes, k, halves, seed)
        assert swapping.partner.tolist() == partner
        assert swapping.failed.tolist() == failed


def test_a_wrong_rate_is_refused() -> None:
    nobody = np.zeros((1, 0), dtype=np.int64)
    for rate, k in ((-0.1, 3), (1.1, 3), (math.nan, 3), (0.5, -1)):
        with pytest.raises(ValueError, match="must"):
            swap_records(nobody[0], nobody, nobody, nobody, np.zeros(0, dtype=np.uint64), k=k, rate=rate, seed=1)


# --- the door --------------------------------------------------------------------------------------------------------

AREAS = "household := 'home', hierarchy := ['state', 'county', 'place']"
CALL = f"{AREAS}, similar := [['size', 'kind'], ['size']], keys := ['age', 'origin'], carry_along := ['grid']"


def with_persons(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """2000 households of one to four persons in 40 places of 8 counties of 2 states; names, NULLs and a grid."""
    con.execute("""
        CREATE TABLE persons AS
        SELECT 'h' || h AS home, m AS member, ['north', 'south'][1 + p // 20] AS state, p // 5 AS county,
            'place ' || p AS place, p * 1000 + hash(h + 5) % 4 AS grid, size, nullif(hash(h + 9) % 3, 0) AS kind,
            hash(h * 4 + m) % 9 AS age, nullif(hash(h * 4 + m + 7919) % 12, 3) // 9 AS origin
        FROM (SELECT h, floor(sqrt(hash(h) % 1600))::BIGINT AS p, (1 + hash(h + 70000) % 4)::INTEGER AS size FROM range(2000) homes(h)),
            range(size) members(m)
    """)
    return con


@pytest.fixture
def persons(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    return with_persons(con)


@pytest.fixture(scope="module")
def same_persons(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """For tests that change nothing."""
    return with_persons(lasting)


def swapped(con: duckdb.DuckDBPyConnection, arguments: str, source: str = "persons") -> list[tuple[object, ...]]:
    return con.execute(f"FROM sdc_record_swap('{source}', {arguments}) ORDER BY home, member").fetchall()


def keep(con: duckdb.DuckDBPyConnection, arguments: str = f"{CALL}, swaprate := 0.2, seed := 5") -> None:
    con.execute(
        f"CREATE OR REPLACE TABLE moved AS FROM sdc_record_swap('persons', {arguments}, return_swapped_id := true)"
    )


def test_the_same_question_has_the_same_answer(persons: duckdb.DuckDBPyConnection) -> None:
    once = swapped(persons, f"{CALL}, seed := 5, return_swapped_id := true")
    persons.execute("SET threads = 1")
    shuffled = "(SELECT * FROM persons ORDER BY hash(age + member), grid)"
    assert swapped(persons, f"{CALL}, seed := 5, return_swapped_id := true", shuffled) == once
    assert swapped(persons, f"{CALL}, seed := 6, return_swapped_id := true") != once


def test_the_secret_goes_into_every_swap() -> None:
    answers = []
    for secret in ("one secret of some length", "another secret of some length"):
        with sdcduck.connect(secret=secret) as con:
            con.execute("CREATE TABLE homes AS SELECT i AS home, i % 7 AS place, 1 AS size FROM range(500) t(i)")
            call = "FROM sdc_record_swap('homes', household := 'home', hierarchy := ['place'], similar := ['size']{}) ORDER BY 1"
            answers += [con.execute(call.format(seed)).fetchall() for seed in ("", ", seed := 0", ", seed := 1")]
    assert len({str(answer) for answer in answers}) == 6


def test_what_moves_is_the_geography_of_whole_households(persons: duckdb.DuckDBPyConnection) -> None:
    keep(persons)
    columns = "home, member, size, kind, age, origin"
    assert (
        persons.execute(f"SELECT {columns} FROM persons ORDER BY ALL").fetchall()
        == persons.execute(f"SELECT {columns} FROM moved ORDER BY ALL").fetchall()
    )
    # Each household stands where its partner was, with all members, carried column and all; the others where they were.
    wrong = persons.execute("""
        SELECT count(*) FROM moved m
        JOIN (SELECT DISTINCT home, state, county, place, grid FROM persons) p ON p.home = coalesce(m.swapped_with, m.home)
        WHERE (m.state, m.county, m.place, m.grid) IS DISTINCT FROM (p.state, p.county, p.place, p.grid)
    """).fetchall()
    assert wrong == [(0,)]
    assert [row[0] for row in persons.execute("DESCRIBE persons").fetchall()] == [
        row[0] for row in persons.execute(f"DESCRIBE FROM sdc_record_swap('persons', {CALL}, seed := 5)").fetchall()
    ]


def test_pairs(persons: duckdb.DuckDBPyConnection) -> None:
    keep(persons)
    homes = "(SELECT DISTINCT home, swapped_with, swap_level, at_risk_level FROM moved)"
    # Nobody moves twice: partners point at each other.
    assert persons.execute(f"""
        SELECT count(*) FILTER (b.swapped_with IS DISTINCT FROM a.home OR b.swap_level <> a.swap_level), count(*) > 300
        FROM {homes} a JOIN {homes} b ON a.swapped_with = b.home
    """).fetchall() == [(0, True)]
    # Nobody stays in the area across which the swap went, and all move to somebody of their size.
    assert persons.execute("""
        SELECT count(*) FROM moved m JOIN (SELECT DISTINCT home, state, county, place, size FROM persons) p USING (home)
        WHERE swap_level = 'state' AND m.state = p.state OR swap_level = 'county' AND m.county = p.county
            OR swap_level = 'place' AND m.place = p.place
            OR m.size <> (SELECT any_value(size) FROM persons WHERE home = m.swapped_with)
    """).fetchall() == [(0,)]
    # At risk is who is rare somewhere, at the widest level.
    assert persons.execute("""
        SELECT count(*) FROM (
            SELECT home, CASE WHEN min(s) < 3 THEN 'state' WHEN min(c) < 3 THEN 'county' WHEN min(p) < 3 THEN 'place' END AS l
            FROM (
                SELECT home, count(*) OVER (PARTITION BY age, origin, state) AS s,
                    count(*) OVER (PARTITION BY age, origin, county) AS c, count(*) OVER (PARTITION BY age, origin, place) AS p
                FROM persons
            ) GROUP BY home
        ) JOIN (SELECT DISTINCT home, at_risk_level FROM moved) USING (home) WHERE l IS DISTINCT FROM at_risk_level
    """).fetchall() == [(0,)]


def test_tables_that_a_swap_keeps(persons: duckdb.DuckDBPyConnection) -> None:
    keep(persons)
    for table in (
        "SELECT size, kind, age, origin, count(*) FROM {} GROUP BY ALL ORDER BY ALL",
        "SELECT state, county, place, grid, count(DISTINCT home) FROM {} GROUP BY ALL ORDER BY ALL",
        # All profiles agree in the size of the household: so do the numbers of persons.
        "SELECT state, county, place, size, count(*) FROM {} GROUP BY ALL ORDER BY ALL",
    ):
        assert persons.execute(table.format("moved")).fetchall() == persons.execute(table.format("persons")).fetchall()
    for table in ("SELECT place, age, count(*) FROM {} GROUP BY ALL ORDER BY ALL",):
        assert persons.execute(table.format("moved")).fetchall() != persons.execute(table.format("persons")).fetchall()
    # Above the levels of the swap nothing changes if what lies above must be equal.
    keep(
        persons,
        "household := 'home', hierarchy := ['county', 'place'], similar := ['size', 'state'], keys := ['age'], "
        "swaprate := 0.3, seed := 5",
    )
    table = "SELECT state, age, origin, count(*) FROM {} GROUP BY ALL ORDER BY ALL"
    assert persons.execute(table.format("moved")).fetchall() == persons.execute(table.format("persons")).fetchall()


def test_the_loss_is_smaller_in_larger_areas(persons: duckdb.DuckDBPyConnection) -> None:
    keep(persons)
    lost = []
    for area in ("place", "county", "state"):
        table = f"(SELECT {area}, age, count(*) AS n FROM {{}} GROUP BY ALL)"
        lost += persons.execute(
            "SELECT hellinger FROM sdc_table_risk_utility(?, ?, dimensions := [?, 'age'])",
            [table.format("persons"), table.format("moved"), area],
        ).fetchall()
    assert lost[0] > lost[1] > lost[2] > (0,)


def test_the_preferred_profile_comes_first(persons: duckdb.DuckDBPyConnection) -> None:
    keep(persons)
    equal, all_ = persons.execute("""
        SELECT count(*) FILTER (m.kind IS NOT DISTINCT FROM p.kind), count(*)
        FROM (SELECT DISTINCT home, kind, swapped_with FROM moved) m
        JOIN (SELECT DISTINCT home, kind FROM persons) p ON p.home = swapped_with
    """).fetchall()[0]
    assert equal > 0.9 * all_


def report(
    con: duckdb.DuckDBPyConnection, arguments: str, source: str = "persons"
) -> dict[str | None, dict[str, object]]:
    cursor = con.execute(f"FROM sdc_record_swap_report('{source}', {arguments})")
    names = [column[0] for column in cursor.description]
    return {row[0]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}


def test_the_report_tells_what_the_swap_does(persons: duckdb.DuckDBPyConnection) -> None:
    arguments = f"{CALL}, swaprate := 0.2, seed := 5"
    keep(persons, arguments)
    told = report(persons, arguments)
    assert list(told) == ["state", "county", "place", None]
    for level, row in told.items():
        here = "true" if level is None else f"swap_level = '{level}'"
        risky = "at_risk_level IS NOT NULL" if level is None else f"at_risk_level = '{level}'"
        counted = persons.execute(f"""
            SELECT count(*), count(*) FILTER ({risky}), count(*) FILTER ({risky} AND swapped_with IS NOT NULL),
                count(*) FILTER (swapped_with IS NOT NULL AND {here})
            FROM (SELECT DISTINCT home, swapped_with, swap_level, at_risk_level FROM moved)
        """).fetchall()[0]
        assert counted == (row["households"], row["at_risk"], row["at_risk_swapped"], row["swapped"])
        assert row["at_risk"] == row["at_risk_swapped"] + row["no_similar"] + row["no_donor_left"]  # type: ignore[operator]
        assert row["rate"] == row["swapped"] / 2000  # type: ignore[operator]
    assert told[None]["wanted"] == 400


def test_the_rate(persons: duckdb.DuckDBPyConnection) -> None:
    # Nobody at risk: the rate is what was asked for. Many at risk: it is more. Too few donors: it is less.
    quiet = f"{AREAS}, similar := ['size'], k := 0, seed := 5"
    for rate in (0, 0.01, 0.2, 0.5):
        row = report(persons, f"{quiet}, swaprate := {rate}")[None]
        assert row["wanted"] == pytest.approx(2000 * rate, abs=2)
        assert row["swapped"] == row["wanted"]
        assert row["at_risk"] == 0
    risky = report(persons, f"{AREAS}, similar := ['size'], keys := ['age', 'origin'], swaprate := 0, seed := 5")
    assert risky[None]["swapped"] > risky[None]["wanted"] == 0  # type: ignore[operator]
    alone = report(persons, f"{AREAS}, similar := ['home2'], keys := ['age'], swaprate := 0.5, seed := 5",
                   "(SELECT *, home AS home2 FROM persons)")  # fmt: skip
    assert alone[None]["swapped"] == 0
    assert alone[None]["no_similar"] == alone[None]["at_risk"] > 0  # type: ignore[operator]


def test_the_riskier_move_first(persons: duckdb.DuckDBPyConnection) -> None:
    # At k = 0 nobody must move; those in the smallest groups still do most often.
    keep(
        persons,
        f"{AREAS}, similar := ['size'], keys := ['age', 'origin'], k := 0, swaprate := 0.2, seed := 5",
    )
    share = {
        rare: moved / all_
        for rare, moved, all_ in persons.execute("""
            SELECT rarest <= 2 AS rare, count(*) FILTER (swapped_with IS NOT NULL), count(*) FROM (
                SELECT home, min(like_them) AS rarest FROM (
                    SELECT home, count(*) OVER (PARTITION BY age, origin, place) AS like_them FROM persons
                ) GROUP BY home
            ) JOIN (SELECT DISTINCT home, swapped_with FROM moved) USING (home) GROUP BY ALL
        """).fetchall()
    }
    assert share[True] > 1.5 * share[False]


def test_as_the_established_package_does(con: duckdb.DuckDBPyConnection, reference_data: Path) -> None:
    folder = reference_data / "sdcmicro"
    con.execute(f"CREATE TABLE homes AS FROM read_csv('{folder / 'input_recordswap_createDat.csv.gz'}')")
    con.execute(f"CREATE TABLE theirs AS FROM read_csv('{folder / 'recordswap_out.csv.gz'}')")
    arguments = (
        "household := 'hid', hierarchy := ['nuts1', 'nuts2', 'nuts3'], similar := ['hsize'], "
        "keys := ['ageGroup', 'national'], k := 3, swaprate := 0.05"
    )
    con.execute(
        f"CREATE TABLE ours AS FROM sdc_record_swap('homes', {arguments}, seed := 123456, return_swapped_id := true)"
    )
    their_moved = con.execute("SELECT count(DISTINCT hid) FROM theirs WHERE hid <> hid_swapped").fetchall()[0][0]
    sizes = [report(con, f"{arguments}, seed := {seed}", "homes")[None]["swapped"] for seed in range(6)]
    assert their_moved == 3186
    # Whether a donor was itself at risk is chance: the number of households differs by about 30 between seeds.
    assert np.mean(sizes) == pytest.approx(their_moved, rel=0.05)  # type: ignore[arg-type]
    # Everybody that we take to be at risk moved there too.
    assert con.execute(
        "SELECT count(*) > 1900, count(*) FILTER (t.hid = t.hid_swapped) "
        "FROM (SELECT DISTINCT hid, hid_swapped FROM theirs) t "
        "JOIN (SELECT DISTINCT hid FROM ours WHERE at_risk_level IS NOT NULL) o USING (hid)"
    ).fetchall() == [(True, 0)]


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (f"'nobody', {CALL}", "unknown table 'nobody'"),
        ("'persons', hierarchy := ['place'], similar := ['size']", "argument 'household' must name"),
        ("'persons', household := 'house', hierarchy := ['place'], similar := ['size']", "did you mean 'home'"),
        ("'persons', household := 'home', similar := ['size']", "argument 'hierarchy' must name"),
        (f"'persons', {AREAS}", "argument 'similar' must name"),
        (f"'persons', {AREAS}, similar := [[]]", "argument 'similar' must name"),
        (f"'persons', {AREAS}, similar := 'size'", "argument 'similar' must name"),
        (f"'persons', {AREAS}, similar := [['size', NULL]]", "argument 'similar' must name"),
        (f"'persons', {AREAS}, similar := [1, 2]", "argument 'similar' must name"),
        (f"'persons', {AREAS}, similar := {{'size': 1}}", "argument 'similar' must name"),
        (f"'persons', {AREAS}, similar := ['sise']", "unknown column 'sise' in 'persons'; did you mean 'size'"),
        (f"'persons', {AREAS}, similar := ['size', 'SIZE']", "names column 'size' twice"),
        (f"'persons', {AREAS}, similar := ['place']", "'place', which is one of the hierarchy"),
        (f"'persons', {AREAS}, similar := ['home']", "names the column of the household"),
        (f"'persons', {AREAS}, similar := ['age']", "column 'age' differs within a household"),
        (f"'persons', {AREAS}, similar := ['size'], carry_along := ['age']", "column 'age' differs within a household"),
        (f"'persons', {AREAS}, similar := ['size'], keys := ['ages']", "unknown column 'ages'"),
        (f"'persons', {CALL}, swaprate := -0.1", "argument 'swaprate' must lie between 0 and 1"),
        (f"'persons', {CALL}, swaprate := 1.5", "argument 'swaprate' must lie between 0 and 1"),
        (f"'persons', {CALL}, swaprate := NULL", "argument 'swaprate' must lie between 0 and 1"),
        (f"'persons', {CALL}, swaprate := 'nan'::DOUBLE", "argument 'swaprate' must lie between 0 and 1"),
        (f"'persons', {CALL}, k := -1", "argument 'k' must be"),
        (f"'persons', {CALL}, k := 2.5", "argument 'k' must be a whole number"),
        (f"'persons', {CALL}, seed := 1.5", "argument 'seed' must be a whole number"),
        (f"'(SELECT * REPLACE (nullif(home, ''h7'') AS home) FROM persons)', {CALL}", "a record has no household"),
        (f"'(SELECT * REPLACE (nullif(place, ''place 7'') AS place) FROM persons)', {CALL}", "a record has NULL in 'place'"),
        (f"'(SELECT * REPLACE (member AS county) FROM persons)', {CALL}", "a 'county' lies in more than one 'state'"),
        (
            f"'(SELECT * REPLACE (''place '' || (county * 5 + member) AS place) FROM persons)', {CALL}",
            "a household lives in two areas",
        ),
        (
            f"'(SELECT *, 1 AS Swap_Level FROM persons)', {CALL}, return_swapped_id := true",
            "a column called 'Swap_Level' is also one of the result",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(same_persons: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message) as refused:
        same_persons.execute(f"FROM sdc_record_swap({call})").fetchall()
    assert "place 7" not in str(refused.value).split("LINE 1")[0]
    assert "h7" not in str(refused.value).split("LINE 1")[0]


def test_without_a_secret_a_seed_must_be_given(persons: duckdb.DuckDBPyConnection) -> None:
    with sdcduck.connect() as con:
        con.execute("CREATE TABLE persons (home INTEGER, state INTEGER, county INTEGER, place INTEGER, size INTEGER)")
        call = f"FROM sdc_record_swap('persons', {AREAS}, similar := ['size']{{}})"
        with pytest.raises(duckdb.Error, match="can be undone by whoever knows its seed"):
            con.execute(call.format("")).fetchall()
        assert con.execute(call.format(", seed := -9223372036854775808")).fetchall() == []


def test_an_empty_table(persons: duckdb.DuckDBPyConnection) -> None:
    nobody = "(FROM persons WHERE false)"
    assert swapped(persons, CALL, nobody) == []
    told = report(persons, CALL, nobody)
    assert [(row["households"], row["swapped"], row["rate"]) for row in told.values()] == [(0, 0, None)] * 4


def test_names_that_the_statement_uses_itself(persons: duckdb.DuckDBPyConnection) -> None:
    renamed = "(SELECT home AS household, state AS level, place AS at_risk, size AS partner, age AS _id FROM persons)"
    call = "household := 'household', hierarchy := ['level', 'at_risk'], similar := ['partner'], seed := 5"
    rows = persons.execute(f"FROM sdc_record_swap('{renamed}', {call}, return_swapped_id := true)").fetchall()
    assert any(row[5] for row in rows)
    with pytest.raises(duckdb.Error, match="a column may not begin with _sdc_"):
        persons.execute(f"FROM sdc_record_swap('(SELECT *, 1 AS _sdc_id FROM {renamed})', {call})")


def test_names_and_types_that_are_not_plain(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE "my ""homes" AS
        SELECT uuid AS "the household", DATE '2020-01-01' + (i % 4)::INTEGER AS "it's", 1.5 AS "group", i
        FROM (SELECT i, ('00000000-0000-0000-0000-' || lpad(i::VARCHAR, 12, '0'))::UUID AS uuid FROM range(40) t(i))
    """)
    rows = con.execute("""
        SELECT "the household", swapped_with, "it's", swap_level FROM sdc_record_swap('my "homes',
            household := 'THE household', hierarchy := ['it''s'], similar := ['group'], swaprate := 0.5,
            return_swapped_id := true)
    """).fetchall()
    assert sum(row[1] is not None for row in rows) == 20
    assert {type(row[0]) for row in rows if row[1] is not None} == {type(row[1]) for row in rows if row[1] is not None}
    assert {row[3] for row in rows} == {"it's", None}


@needs_duckdb_2
def test_an_interruption_ends_the_swap(persons: duckdb.DuckDBPyConnection) -> None:
    swapped(persons, f"{CALL}, seed := 5")  # compiles
    many = "(SELECT p.* REPLACE (concat(home, -i) AS home) FROM persons p, range(1, 401) copies(i))"
    at_work = lambda: any(thread.name == "sdcduck" for thread in threading.enumerate())  # noqa: E731
    with again_and_again(persons.interrupt, at_work), pytest.raises(duckdb.InterruptException, match="Interrupted"):
        persons.execute(f"SELECT count(*) FROM sdc_record_swap('{many}', {CALL}, seed := 5)").fetchall()
    assert persons.execute("SELECT 42").fetchall() == [(42,)]
    deadline = time.monotonic() + 60
    while at_work() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not at_work()
