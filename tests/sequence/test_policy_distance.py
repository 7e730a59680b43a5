"""Distances of answers from what must not be known: the example of the paper, its erratum, and metrics on random trees.

Anantharaman, Frittella and Nguyen (2022), "Privacy Analysis with a Distributed Transition System and a Data-Wise Metric".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import duckdb
import numpy as np
import pytest

import sdcduck

KINDS = "{'age': 'interval', 'sex': 'nominal', 'dept': 'nominal', 'ailment': {'taxonomy': 'ailments'}}"


def _make_hospital(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE ailments AS FROM (VALUES ('Ailment', NULL), ('Heart-Disease', 'Ailment'), ('Cancer', 'Ailment'),
            ('Viral-Infection', 'Ailment'), ('Flu', 'Viral-Infection'), ('CoVid', 'Viral-Infection')) t(child, parent);
        CREATE TABLE published AS FROM (VALUES
            ('l1', '[20,30[', 'F', 'Chemistry', 'Heart-Disease'), ('l2', '[40,50[', 'M', 'Chemistry', 'Cancer'),
            ('l3', '[20,30[', 'F', 'Physics', 'Viral-Infection'), ('l4', '[50,60[', 'M', 'Maths', 'Viral-Infection'),
            ('l5', '[40,50[', 'M', 'Physics', 'Viral-Infection')) t(row, age, sex, dept, ailment);
        CREATE TABLE policy AS FROM (VALUES (46, 'M', '#', 'CoVid')) t(age, sex, dept, ailment);
    """)


@pytest.fixture
def hospital(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    _make_hospital(con)
    return con


def value(con: duckdb.DuckDBPyConnection, expression: str) -> float | None:
    row = con.execute(f"SELECT {expression}").fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("expression", "published"),
    [
        ("sdc_dist_taxonomy('Cancer', 'CoVid', 'ailments')", 3 / 5),
        ("sdc_dist_taxonomy('Viral-Infection', 'CoVid', 'ailments')", 1 / 5),
        ("sdc_dist_taxonomy('Flu', 'CoVid', 'ailments')", 1 / 3),
        ("sdc_dist_taxonomy('Heart-Disease', 'Cancer', 'ailments')", 1 / 2),
        ("sdc_dist_taxonomy('Flu', 'Flu', 'ailments')", 0),
        ("sdc_dist_taxonomy('Ague', 'Flu', 'ailments')", None),
        ("sdc_dist_interval(40, 50, 46, 47)", 9 / 10),
        ("sdc_dist_interval(50, 60, 46, 47)", 1),
        ("sdc_dist_interval(1, 3, 1, 3)", 0),
        ("sdc_eps_min(1/3, 2/3)", math.log(2)),
        ("sdc_eps_min(3/4, 1/4)", math.log(3)),
        ("sdc_eps_min(2/5, 3/5, 2)", math.log(1.5) / 2),
        ("sdc_eps_min(0, 2/5)", math.inf),
        ("sdc_eps_min(0, 0)", 0),
        ("sdc_eps_min(0.5, 0.25, 0)", math.inf),
        ("sdc_dist_jaccard([]::INT[], []::INT[])", 0),
        ("sdc_dist_jaccard([1, NULL, 1], [1, 2, 3])", 2 / 3),
        ("sdc_dist_jaccard(NULL, [1])", None),
    ],
)
def test_single_distances(hospital: duckdb.DuckDBPyConnection, expression: str, published: float | None) -> None:
    assert value(hospital, expression) == (None if published is None else pytest.approx(published, abs=1e-12))


def test_the_paper_takes_a_distance_for_another_one(hospital: duckdb.DuckDBPyConnection) -> None:
    """By its own definition [40, 50[ and [50, 60[ are disjoint: the distance of l4 and l5 is 2, and not 39/20."""
    assert value(hospital, "round(sdc_eps_min(2/5, 3/5, 39/20), 6)") == 0.207931
    assert value(hospital, "round(sdc_eps_min(2/5, 3/5, 2), 6)") == 0.202733
    hospital.execute("CREATE TABLE l5 AS SELECT age, sex, dept, ailment FROM published WHERE row = 'l5'")
    found = hospital.execute(
        f"SELECT distance FROM sdc_policy_distance('(FROM published WHERE row = ''l4'')', 'l5', {KINDS})"
    ).fetchall()
    assert found == [(2,)]


def test_the_hospital(hospital: duckdb.DuckDBPyConnection) -> None:
    rows = "(FROM published WHERE row IN (''l2'', ''l4'', ''l5''))"
    found = hospital.execute(
        f"SELECT answer_row, policy_row, distance, violates, by_column FROM sdc_policy_distance('{rows}', 'policy', {KINDS})"
    ).fetchall()
    # In the order of their values: l2, l5, l4.
    assert [row[:2] for row in found] == [(1, 1), (2, 1), (3, 1)]
    assert [row[2] for row in found] == pytest.approx([3 / 2, 11 / 10, 6 / 5], abs=1e-12)
    assert not any(row[3] for row in found)
    assert found[0][4] == {"age": pytest.approx(0.9), "sex": 0, "dept": None, "ailment": pytest.approx(0.6)}
    # Who learns that John has CoVid knows what nobody should.
    told = "(SELECT 46 AS age, ''M'' AS sex, ''Physics'' AS dept, ''CoVid'' AS ailment)"
    assert hospital.execute(
        f"SELECT distance, violates FROM sdc_policy_distance('{told}', 'policy', {KINDS})"
    ).fetchall() == [(0, True)]


def test_what_is_not_known_is_far_or_not_compared(hospital: duckdb.DuckDBPyConnection) -> None:
    told = "(SELECT 46 AS age, NULL::VARCHAR AS sex, ''Physics'' AS dept, ''CoVid'' AS ailment)"
    for nulls, distance in (("apart", 1), ("skip", 0)):
        found = hospital.execute(
            f"SELECT distance, violates FROM sdc_policy_distance('{told}', 'policy', {KINDS}, nulls := '{nulls}')"
        ).fetchall()
        assert found == [(distance, False)]


def test_numbers_and_lists(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE a AS FROM (VALUES (1000, [1, 2], 0.5), (4000, [2], NULL)) t(income, codes, share)")
    con.execute("CREATE TABLE p AS FROM (VALUES (2000, [2, 3], '[0, 1)')) t(income, codes, share)")
    found = con.execute(
        "SELECT distance FROM sdc_policy_distance('a', 'p', {'INCOME': {'largest': 10000}, 'codes': 'nominal', 'share': {'step': 0.25}})"
    ).fetchall()
    assert [row[0] for row in found] == pytest.approx([0.1 + 2 / 3 + 3 / 4, 0.2 + 1 / 2 + 1])


def test_distances_in_trees_are_a_metric(con: duckdb.DuckDBPyConnection) -> None:
    for seed in range(8):
        chance = np.random.default_rng(seed)
        count = int(chance.integers(3, 15))
        above = [int(chance.integers(0, node)) for node in range(1, count)]
        con.execute("CREATE OR REPLACE TABLE tree(child INTEGER, parent INTEGER)")
        con.executemany("INSERT INTO tree VALUES (?, ?)", [[node, above[node - 1]] for node in range(1, count)])
        # DuckDB 1.5 has an internal error for correlated columns of range() itself.
        con.execute(f"CREATE OR REPLACE TABLE pairs AS SELECT a, b FROM range({count}) x(a), range({count}) y(b)")
        found = con.execute("SELECT a, b, sdc_dist_taxonomy(a, b, 'tree') FROM pairs").fetchall()

        def way(node: int, above: list[int] = above) -> list[int]:
            return [node] if node == 0 else [*way(above[node - 1]), node]

        exact = {
            (a, b): 1 - Fraction(2 * len(set(way(a)) & set(way(b))), len(way(a)) + len(way(b)))
            for a in range(count) for b in range(count)
        }  # fmt: skip
        assert {(a, b): d for a, b, d in found} == pytest.approx(
            {pair: float(d) for pair, d in exact.items()}, abs=1e-12
        )
        assert all(
            exact[a, c] <= exact[a, b] + exact[b, c] and (exact[a, b] > 0) == (a != b) and exact[a, b] == exact[b, a]
            for a in range(count) for b in range(count) for c in range(count)
        )  # fmt: skip


@pytest.fixture(scope="module")
def unchanged() -> Iterator[duckdb.DuckDBPyConnection]:
    """What is asked in vain changes nothing, so all that is refused is asked of one."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        _make_hospital(con)
        yield con


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'published', 'policy'", "argument 'kinds' must say what the columns hold"),
        ("'published', 'policy', {'weight': 'nominal'}", "unknown column 'weight'"),
        ("'(SELECT 1 AS sex)', 'policy', {'age': 'interval'}", "unknown column 'age'"),
        ("'published', 'policy', {'age': 'number'}", "argument 'kinds' must be 'nominal', 'interval'"),
        ("'published', 'policy', {'age': {'step': 0}}", "have a number above 0 as 'step' of 'age'"),
        ("'published', 'policy', {'age': {'largest': -1}}", "have a number above 0 as 'largest' of 'age'"),
        ("'published', 'policy', {'ailment': {'taxonomy': 'trees'}}", "unknown table 'trees'"),
        ("'published', 'policy', {'ailment': {'taxonomy': 'policy'}}", "unknown column 'child'"),
        ("'published', 'policy', {'dept': 'interval'}", "argument 'answers': a value of 'dept' is no number, and no interval"),
        ("'(SELECT ''Ague'' AS ailment)', 'policy', {'ailment': {'taxonomy': 'ailments'}}", "is not in the taxonomy"),
        ("'(SELECT 5000 AS age)', 'policy', {'age': {'largest': 100}}", "farther apart than their 'largest'"),
        ("'published', 'policy', {'age': 'interval'}, nulls := 'keep'", "argument 'nulls' must be 'apart' or 'skip'"),
    ],
)  # fmt: skip
def test_bad_input(unchanged: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    with pytest.raises(duckdb.Error) as raised:
        unchanged.execute(f"FROM sdc_policy_distance({call})").fetchall()
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("sdc_dist_interval(5, 5, 1, 2)", "must lie above its lower end"),
        ("sdc_dist_interval(1, 'infinity'::DOUBLE, 1, 2)", "NaN or infinite"),
        ("sdc_dist_interval(1, 2, 1, 2, step := 0)", "argument 'step' must be above 0"),
        ("sdc_eps_min(1.5, 0.5)", "must lie between 0 and 1"),
        ("sdc_eps_min('nan'::DOUBLE, 0.5)", "must lie between 0 and 1"),
        ("sdc_eps_min(0.5, 0.5, -1)", "must be a number of at least 0"),
    ],
)
def test_bad_numbers(con: duckdb.DuckDBPyConnection, expression: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        con.execute(f"SELECT {expression}").fetchall()
