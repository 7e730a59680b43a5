"""Names for reconstructed records by the greedy search of the paper, and the luck in a reconstruction by drawing it."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdcduck.methods.risk.linking import People, expected_matches, expected_pairs, link


def greedy(records: list[tuple[int, float]], people: list[tuple[int, float]], tolerance: float) -> list[int | None]:
    """Muralidhar (2022): two passes in the order of the records, and the first person who is free."""
    free, found = list(range(len(people))), dict[int, int]()
    for off in (0.0, tolerance):
        for record, (group, value) in enumerate(records):
            near = [n for n in free if people[n][0] == group and abs(people[n][1] - value) <= off]
            if record not in found and group >= 0 and near:
                found[record] = near[0]
                free.remove(near[0])
    return [found.get(record) for record in range(len(records))]


_PERSON = st.tuples(st.integers(-1, 2), st.sampled_from([1.0, 2.0, 2.5, 3.0, 4.0, float("nan")]))


@settings(deadline=None, max_examples=300)
@given(st.lists(_PERSON, max_size=14), st.lists(_PERSON, max_size=14), st.sampled_from([0.0, 0.5, 1.0, 9.0]))
def test_links_are_those_of_the_greedy_search(
    records: list[tuple[int, float]], people: list[tuple[int, float]], tolerance: float
) -> None:
    sides = [
        People(np.array([one[0] for one in side], np.int64), np.array([one[1] for one in side], float))
        for side in (records, people)
    ]
    found, exact = link(*sides, tolerance)
    assert [None if place < 0 else place for place in found.tolist()] == greedy(records, people, tolerance)
    for record, place in enumerate(found.tolist()):
        assert exact[record] == (place >= 0 and people[place][1] == records[record][1])


def test_links_through_sql(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE external AS SELECT 'p' || i AS name, i % 4 AS block, ['f', 'm'][1 + i % 2] AS sex, 20 + i % 7 AS age,
            -i AS place FROM range(60) r(i);
        CREATE TABLE records AS SELECT draw, slot, slot % 5 AS block, ['f', 'm', NULL][1 + slot % 3] AS sex,
            CASE WHEN slot % 11 > 0 THEN 20 + (draw * slot) % 9 END AS age FROM range(1, 4) d(draw), range(50) s(slot)""")
    found = con.execute(
        "SELECT draw, slot, name, exact FROM sdc_recon_link('(FROM records ORDER BY random())', 'external', keys := ['block', 'sex'], "
        "near := 'age', id := 'name', \"order\" := ['place'])"
    ).fetchall()
    people = con.execute("SELECT name, block, sex, age FROM external ORDER BY place").fetchall()
    groups = {key: number for number, key in enumerate(dict.fromkeys((block, sex) for _, block, sex, _ in people))}
    for draw in (1, 2, 3):
        rows = con.execute(f"SELECT block, sex, age FROM records WHERE draw = {draw} ORDER BY slot").fetchall()
        wanted = greedy(
            [(groups.get((block, sex), -1), float("nan") if age is None else age) for block, sex, age in rows],
            [(groups[block, sex], age) for _, block, sex, age in people], 1,
        )  # fmt: skip
        mine = [row for row in found if row[0] == draw]
        assert [row[1] for row in mine] == list(range(50))
        assert [row[2] for row in mine] == [None if place is None else people[place][0] for place in wanted]
        assert 0 < sum(row[3] is None for row in mine) < 50
    without = con.execute(
        "SELECT count(name), bool_and(exact) FROM sdc_recon_link('records', 'external', keys := ['block'], id := 'name')"
    ).fetchall()
    assert without == [(3 * 40, True)]


def test_designations_and_refutations_of_nothing(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE links (slot INTEGER, draw INTEGER, id INTEGER, race VARCHAR)")
    assert con.execute("FROM sdc_recon_designations('links', sensitive := 'race')").fetchall() == []
    assert con.execute("FROM sdc_recon_refutations('links')").fetchall() == []
    con.execute("INSERT INTO links VALUES (1, 1, 5, NULL), (1, 2, NULL, NULL), (2, 2, 5, 'W')")
    rows = con.execute("FROM sdc_recon_designations('links', sensitive := 'race')").fetchall()
    assert rows == [(5, "W", 1, 0.5, True), (5, None, 1, 0.5, True)]
    assert con.execute("FROM sdc_recon_refutations('links', claim := 2)").fetchall() == [(2, 5, [], 0)]


# --- luck ------------------------------------------------------------------------------------------------------------


def drawn(sizes: list[int], shares: np.ndarray, near: np.ndarray, draws: int) -> tuple[float, float, float]:
    """Two files of the same units, drawn from the whole: the share with somebody alike, its standard error, and of pairs."""
    stream = np.random.default_rng(5)
    hits, pairs = np.zeros(draws), 0
    for turn in range(draws):
        for size in sizes:
            x, y = stream.multinomial(size, shares), stream.multinomial(size, shares)
            hits[turn] += x[(near @ y) > 0].sum()
            pairs += np.minimum(x, y).sum()
    people = draws * sum(sizes)
    return hits.sum() / people, hits.std() / sum(sizes) / draws**0.5, pairs / people


def test_luck_is_what_drawing_gives() -> None:
    sizes = [1, 1, 2, 5, 40]
    shares = np.array([0.5, 0.2, 0.1, 0.1, 0.06, 0.04])
    for near in (np.eye(6), np.abs(np.subtract.outer(range(6), range(6))) <= 1):
        found, error, pairs = drawn(sizes, shares, near.astype(int), 4000)
        exists = expected_matches(np.array(sizes), shares, near @ shares) / sum(sizes)
        assert exists == pytest.approx(found, abs=4 * error)
        if (near == np.eye(6)).all():
            assert expected_pairs(np.array(sizes), shares) / sum(sizes) == pytest.approx(pairs, abs=4 * error)


def test_closed_forms() -> None:
    # Everybody alone: the other file has the same person with probability sum p^2, whichever way it is counted.
    shares = np.array([0.7, 0.3])
    assert expected_matches(np.ones(9, np.int64), shares, shares) == pytest.approx(9 * 0.58)
    assert expected_pairs(np.ones(9, np.int64), shares) == pytest.approx(9 * 0.58)
    # One combination only: always.
    assert expected_pairs(np.array([3, 50]), np.ones(1)) == pytest.approx(53)
    assert expected_matches(np.array([3, 50]), np.ones(1), np.ones(1)) == pytest.approx(53)
    # A very large unit with combinations of one in a thousand: one-to-one loses what two Poisson laws differ by.
    many = np.full(1000, 0.001)
    assert expected_matches(np.array([100_000]), many, many) == pytest.approx(100_000, rel=1e-9)
    assert expected_pairs(np.array([100_000]), many) == pytest.approx(100_000 - 1000 * (100 / np.pi) ** 0.5, rel=1e-3)


def test_luck_by_block_age_and_sex(con: duckdb.DuckDBPyConnection) -> None:
    """The step of Ruggles and Van Riper on a made-up country: blocks of all sizes, ages and sexes by chance.

    The paper has 41 per cent with the modal race, from the national distributions of the census, which are not here.
    """
    con.execute("""
        CREATE TABLE people AS
        SELECT block, (hash(block * 1000 + i) % 95)::INTEGER AS age, hash(block * 1000 + i + 500) % 2 AS sex,
            CASE WHEN hash(block * 1000 + i + 700) % 100 < 78 THEN 'W' ELSE 'B' END AS race
        FROM range(1500) b(block), range(1000) r(i) WHERE i < 1 + (block % 40) * (block % 40) // 8""")
    row = con.execute(
        "SELECT persons, units, combinations, matched, matched_once, modal_share, by_luck "
        "FROM sdc_chance_match('people', area := 'block', keys := ['sex'], near := 'age', sensitive := 'race')"
    ).fetchall()[0]
    persons, units, combinations, matched, once, modal, luck = row
    assert (units, combinations) == (1500, 190)
    sizes = np.array(con.execute("SELECT count(*) FROM people GROUP BY block").fetchall())[:, 0]
    assert matched == pytest.approx((sizes * (1 - (1 - 1 / 190) ** sizes)).sum() / persons, rel=1e-3)
    assert once < matched
    assert 0.75 < modal < 0.9
    assert luck == pytest.approx(matched * modal)
    wider = con.execute(
        "SELECT matched, matched_once FROM sdc_chance_match('people', area := 'block', keys := ['sex'], near := 'age', tolerance := 1)"
    ).fetchall()[0]
    assert wider[0] > matched
    assert wider[1] is None


@pytest.mark.parametrize("rows", [0, 1])
def test_luck_of_few(con: duckdb.DuckDBPyConnection, rows: int) -> None:
    con.execute(f"CREATE TABLE p AS SELECT 'b' AS block, NULL::VARCHAR AS sex, 'nan'::DOUBLE AS age FROM range({rows})")
    found = con.execute(
        "FROM sdc_chance_match('p', area := 'block', keys := ['sex'], near := 'age', sensitive := 'sex')"
    )
    wanted: list[Any] = [0, 0, 0, None, None, None, None] if rows == 0 else [1, 1, 1, 1.0, 1.0, 1.0, 1.0]
    assert list(found.fetchall()[0]) == wanted


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("sdc_recon_link('r', 'e')", "argument 'keys' must name the columns"),
        ("sdc_recon_link('r', 'e', keys := ['x'])", "unknown column 'x'"),
        ("sdc_recon_link('r', 'e', keys := ['b'], near := 'w')", "argument 'near' must name a column of numbers: 'w' of 'r' is VARCHAR"),
        ("sdc_recon_link('r', 'e', keys := ['b'], near := 'a', tolerance := -1)", "argument 'tolerance' must be a number of at least 0"),
        ("sdc_recon_link('r', '(SELECT ''1'' AS b, 1 AS id)', keys := ['b'])", "column 'b' is INTEGER in 'records' and VARCHAR in 'external'"),
        ("sdc_recon_link('r', '(SELECT 1 AS b, NULL::INTEGER AS id)', keys := ['b'])", "a person has no name, or one that somebody else has"),
        ("sdc_recon_link('r', '(FROM e UNION ALL FROM e)', keys := ['b'])", "or one that somebody else has"),
        ("sdc_recon_link('(FROM r UNION ALL FROM r)', 'e', keys := ['b'])", "a draw has two records of one slot"),
        ("sdc_recon_link('(SELECT * REPLACE (0.5 AS slot) FROM r)', 'e', keys := ['b'])", "column \"slot\" holds a NULL or no whole number"),
        ("sdc_recon_link('r', '(SELECT id AS draw, b FROM e)', keys := ['b'], id := 'draw')", "also one of the result"),
        ("sdc_recon_designations('r', id := 'slot')", "argument 'sensitive' must name a column"),
        ("sdc_recon_designations('r', sensitive := 'a', id := 'A')", "arguments 'id', 'sensitive' must differ"),
        ("sdc_recon_refutations('r', claim := NULL, id := 'a')", "argument 'claim' must be the number of a draw"),
        ("sdc_chance_match('r', area := 'b')", "argument 'keys' must name the columns that are reconstructed"),
        ("sdc_chance_match('r', keys := ['a'])", "argument 'area' must name a column"),
        ("sdc_chance_match('r', area := 'b', near := 'w')", "argument 'near' must name a column of numbers"),
        ("sdc_chance_match('r', area := 'b', keys := ['a'], near := 'A')", "argument 'near' must name another column than 'keys'"),
        ("sdc_chance_match('(SELECT NULL AS b, 1 AS a)', area := 'b', keys := ['a'])", "an area is NULL"),
    ],
)  # fmt: skip
def test_bad_arguments(lasting: duckdb.DuckDBPyConnection, call: str, text: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE r AS SELECT 1 AS draw, 1 AS slot, 1 AS b, 30 AS a, 'x' AS w; CREATE OR REPLACE TABLE e AS SELECT 1 AS b, 7 AS id, 30 AS a, 'x' AS w"
    )
    with pytest.raises(duckdb.Error, match=text):
        lasting.execute(f"FROM {call}").fetchall()
