"""Minimal sample uniques and their scores: the definition, the figures of R, and what a user may get wrong."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdcduck.methods.risk.suda import dis, dis_scores, points_by_size, special_uniques


def by_definition(records: list[tuple[int, ...]], keys: int, largest: int) -> list[set[tuple[int, ...]]]:
    """The minimal uniques of each record: sets of known values that no other record has, and every smaller one has."""

    def alone(row: tuple[int, ...], subset: tuple[int, ...]) -> bool:
        return all(row[key] >= 0 for key in subset) and (
            sum(all(other[key] == row[key] for key in subset) for other in records) == 1
        )

    return [
        {
            subset
            for size in range(1, largest + 1)
            for subset in combinations(range(keys), size)
            if alone(row, subset)
            and not any(alone(row, part) for less in range(1, size) for part in combinations(subset, less))
        }
        for row in records
    ]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], int, int]:
    keys = draw(st.integers(1, 5))
    rows = draw(st.lists(st.tuples(*[st.integers(-1, 3)] * keys), max_size=25))
    return rows, keys, draw(st.integers(1, keys))


@settings(max_examples=150, deadline=None)
@given(tables())
def test_the_uniques_are_those_of_the_definition(table: tuple[list[tuple[int, ...]], int, int]) -> None:
    records, keys, largest = table
    wanted = by_definition(records, keys, largest)
    points = points_by_size(keys, largest)
    classes = sorted(set(records))
    single = np.array([records.count(row) == 1 for row in classes], dtype=bool)
    codes = np.array(classes, dtype=np.int32).reshape(-1, keys).T
    found = special_uniques(np.ascontiguousarray(codes), single, largest, lambda done, total: None)
    for place, row in enumerate(classes):
        sets = wanted[records.index(row)]
        assert found.count[place] == len(sets)
        assert found.smallest[place] == min(map(len, sets), default=0)
        assert found.score[place] == sum(points[len(one)] for one in sets)
        for key in range(keys):
            part = sum(points[len(one)] for one in sets if key in one)
            assert found.share[place, key] * found.score[place] == pytest.approx(part)


def test_points() -> None:
    assert points_by_size(5, 5)[1:].tolist() == [math.factorial(5 - size) for size in range(1, 6)]
    assert points_by_size(10, 3)[1:4].tolist() == [9 * 8 * 7, 8 * 7, 7]


@settings(deadline=None)
@given(
    st.lists(st.floats(0, 1e6).filter(lambda x: x == 0 or x > 1e-3), min_size=1),
    st.floats(1e-4, 1),
    st.integers(1, 62),
)
def test_the_expected_matches_add_up(score: list[float], overall: float, keys: int) -> None:
    chance = dis_scores(np.array(score), overall, keys)
    scored = np.array(score) > 0
    assert (chance[~scored] == 0).all()
    assert (1 / chance[scored]).sum() == pytest.approx(scored.sum() / overall)
    assert (np.diff(chance[np.argsort(score)]) >= 0).all()


def test_the_chance_of_a_right_match_with_a_unique() -> None:
    assert dis(12, 12, 0.01) == pytest.approx(0.01)
    assert dis(0, 5, 0.5) == 0
    assert dis(5, 0, 0.5) == 1
    assert dis(10, 40, 1) == 1


@pytest.fixture
def survey(con: duckdb.DuckDBPyConnection, reference_data: Path) -> duckdb.DuckDBPyConnection:
    con.execute(
        f"CREATE TABLE survey AS SELECT row_number() OVER () AS place, * "
        f"FROM read_csv('{reference_data}/sdcmicro/input_testdata.csv.gz')"
    )
    return con


def test_a_household_survey_as_in_r(survey: duckdb.DuckDBPyConnection, reference_data: Path) -> None:
    folder = reference_data / "sdcmicro"
    keys = "keys := ['urbrur', 'roof', 'walls', 'water', 'sex']"
    wanted = survey.execute(f"FROM read_csv('{folder}/testdata_suda2.csv')").fetchall()
    found = survey.execute(f"SELECT suda, dis_suda FROM sdc_suda('survey', {keys}) ORDER BY place").fetchall()
    assert [row[0] for row in found] == [row[0] for row in wanted]
    assert [row[1] for row in found] == pytest.approx([row[1] for row in wanted], rel=1e-12)
    by_key = dict(survey.execute(f"FROM read_csv('{folder}/testdata_suda2_attributes.csv')").fetchall())
    contributions = survey.execute(f"SELECT variable, contribution FROM sdc_suda_contributions('survey', {keys})")
    assert dict(contributions.fetchall()) == pytest.approx(by_key)
    more = "keys := ['urbrur', 'roof', 'walls', 'water', 'electcon', 'relat', 'sex']"
    assert survey.execute(f"SELECT count(*) FILTER (suda > 0) FROM sdc_suda('survey', {more})").fetchall() == [(157,)]


def test_three_records_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS FROM (VALUES (1, 2, 0, 0), (2, 1, 3, 6), (3, 1, 0, 0)) v(id, a, b, c)")
    assert con.execute(
        "SELECT uniques, smallest, suda, contributions FROM sdc_suda('t', keys := ['a', 'b', 'c']) ORDER BY id"
    ).fetchall() == [
        (1, 1, 2.0, {"a": 100.0, "b": 0.0, "c": 0.0}),
        (2, 1, 4.0, {"a": 0.0, "b": 50.0, "c": 50.0}),
        (2, 2, 2.0, {"a": 100.0, "b": 50.0, "c": 50.0}),
    ]
    assert con.execute("FROM sdc_suda_contributions('t', keys := ['a', 'b', 'c'])").fetchall() == [
        ("a", 2, 50.0), ("b", 2, 37.5), ("c", 2, 37.5),
    ]  # fmt: skip
    small = con.execute("SELECT uniques, suda FROM sdc_suda('t', keys := ['c', 'b', 'A'], max_size := 1) ORDER BY id")
    assert small.fetchall() == [(1, 2.0), (2, 4.0), (0, 0.0)]


# A unique of one key, one of two such, one of two pairs of keys: scores of 1 : 2 : 2 / (m - 1), three matches for each
# right one. With eight keys the exponent is 1, and the odds against are 3/5, 3/10 and 21/10.
_CHANCES = {
    3: (0.446540233, 0.657410213, 0.446540233),
    4: (0.505112431, 0.701034109, 0.385537913),
    5: (0.550208985, 0.730789995, 0.355350039),
    6: (0.583704072, 0.750346221, 0.338514295),
    7: (0.607964596, 0.762524293, 0.328543848),
    8: (0.625000000, 0.769230769, 0.322580645),
}


@pytest.mark.parametrize("keys", _CHANCES)
def test_the_power_of_the_score_depends_on_the_number_of_keys(con: duckdb.DuckDBPyConnection, keys: int) -> None:
    names = "abcdefgh"[:keys]
    same = "".join(f", 0 AS {name}" for name in names[3:])
    con.execute(
        f"CREATE TABLE t AS SELECT *{same} FROM (VALUES (1, 2, 0, 0), (2, 1, 3, 6), (3, 1, 0, 0), (4, 9, 9, 9), "
        "(5, 9, 9, 9)) v(id, a, b, c)"
    )
    found = con.execute(
        f"SELECT suda, dis_suda FROM sdc_suda('t', keys := {list(names)}, dis := 0.4) ORDER BY id"
    ).fetchall()
    most = math.factorial(keys - 1)
    assert [row[0] for row in found] == [most, 2 * most, 2 * most / (keys - 1), 0, 0]
    assert [row[1] for row in found] == pytest.approx([*_CHANCES[keys], 0, 0], rel=1e-6)


def test_many_keys_never_turn_the_order_round() -> None:
    for keys in (27, 28, 40, 62):
        low, high = dis_scores(np.array([1.0, 100.0]), 0.2, keys)
        assert low < high if keys < 28 else low == pytest.approx(high)


def test_values_that_are_not_known(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS FROM (VALUES (1, 'x', 1), (2, 'x', 1), (3, NULL, 1), (4, '-9', 1)) v(id, a, b)")

    def unique(arguments: str) -> list[int]:
        rows = con.execute(f"SELECT id FROM sdc_suda('t', keys := ['a', 'b']{arguments}) WHERE suda > 0 ORDER BY id")
        return [row[0] for row in rows.fetchall()]

    assert unique("") == [3, 4]
    assert unique(", nulls := 'ignore'") == [4]
    assert unique(", missing := '-9'") == [3]
    assert unique(", missing := -9, nulls := 'ignore'") == []


def test_every_type_of_key_and_every_record_once(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT i AS id, i % 7 / 2 AS x, DATE '2020-01-01' + (i % 5)::INTEGER AS day, "
        "[i % 3] AS list, {'a': i % 2} AS struct, CASE WHEN i % 11 > 0 THEN i % 4 END AS hole FROM range(300) r(i)"
    )
    keys = "keys := ['x', 'day', 'list', 'struct', 'hole']"
    rows = con.execute(f"SELECT id, suda FROM sdc_suda('t', {keys}) ORDER BY id").fetchall()
    assert [row[0] for row in rows] == list(range(300))
    uniques = con.execute(f"SELECT uniques FROM sdc_k_anonymity('t', {keys})").fetchall()
    assert uniques == [(sum(row[1] > 0 for row in rows),)]


def test_tables_of_no_records_and_of_one(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t (a INTEGER, b INTEGER)")
    assert con.execute("FROM sdc_suda('t', keys := ['a', 'b'])").fetchall() == []
    assert con.execute("FROM sdc_suda_contributions('t', keys := ['a'])").fetchall() == [("a", 0, None)]
    con.execute("INSERT INTO t VALUES (1, 2)")
    assert con.execute(
        "SELECT uniques, smallest, suda, dis_suda FROM sdc_suda('t', keys := ['a', 'b'])"
    ).fetchall() == [(2, 1, 2.0, 1.0)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("keys := []", "argument 'keys' must name"),
        ("keys := ['a', 'A']", "names column 'a' twice"),
        ("keys := ['c']", "unknown column 'c'"),
        ("keys := ['a'], max_size := 0", "argument 'max_size' must be a whole number of at least 1"),
        ("keys := ['a'], nulls := 'match'", "argument 'nulls' must be 'category' or 'ignore'"),
    ],
)
def test_bad_arguments(lasting: duckdb.DuckDBPyConnection, arguments: str, text: str) -> None:
    lasting.execute("CREATE OR REPLACE TABLE t AS SELECT 1 AS a, 2 AS suda")
    for function in ("sdc_suda", "sdc_suda_contributions"):
        with pytest.raises(duckdb.Error, match=text):
            lasting.execute(f"FROM {function}('t', {arguments})").fetchall()
    for dis_argument in ("0", "1.5", "NULL"):
        with pytest.raises(duckdb.Error, match="argument 'dis' must be above 0 and at most 1"):
            lasting.execute(f"FROM sdc_suda('t', keys := ['a'], dis := {dis_argument})")
    with pytest.raises(duckdb.Error, match="a column called 'suda' is also one of the result"):
        lasting.execute("FROM sdc_suda('t', keys := ['a'])")


def test_too_many_combinations(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT " + ", ".join(f"{place} AS k{place}" for place in range(25)))
    keys = ", ".join(f"'k{place}'" for place in range(25))
    with pytest.raises(duckdb.Error, match="give max_size"):
        con.execute(f"FROM sdc_suda('t', keys := [{keys}])")
    assert len(con.execute(f"FROM sdc_suda('t', keys := [{keys}], max_size := 2)").fetchall()) == 1
