"""Post randomisation: the matrices of sdcMicro, what is kept in expectation, and what belongs to a record."""

from __future__ import annotations

import json
import math
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import least_squares
from scipy.stats import chi2

from sdcduck.methods.masking.pram import drawn_categories, even_matrix, invariant_matrix

HOUSES = ("urbrur", "roof", "walls")


@pytest.fixture
def houses(con: duckdb.DuckDBPyConnection, reference_data: Path) -> Path:
    folder = reference_data / "sdcmicro"
    con.execute(f"CREATE TABLE houses AS SELECT *, row_number() OVER () AS id FROM '{folder}/input_testdata.csv.gz'")
    return folder


@pytest.mark.parametrize("column", HOUSES)
def test_the_matrices_of_sdcmicro(con: duckdb.DuckDBPyConnection, houses: Path, column: str) -> None:
    """sdcMicro draws the diagonal of P between pd and 1; given that, all its entries are ours."""
    theirs = json.loads((houses / "testdata_pram_matrices.json").read_text())[column]
    wanted = np.array(theirs["Rs"])
    counts = np.array(
        [row[0] for row in con.execute(f"SELECT count(*) FROM houses GROUP BY {column} ORDER BY {column}").fetchall()]
    )

    def off(diagonal: np.ndarray) -> np.ndarray:
        found: np.ndarray = invariant_matrix(even_matrix(diagonal), counts, theirs["alpha"]) - wanted
        return found.ravel()

    fit = least_squares(off, np.full(len(counts), 0.9), bounds=(theirs["pd"], 1), xtol=1e-15, ftol=1e-15, gtol=1e-15)
    diagonal = fit.x.tolist()
    assert np.abs(fit.fun).max() < 1e-11  # 12 digits are stored
    ours = con.execute(
        f"SELECT \"from\", \"to\", p FROM sdc_pram_matrix('houses', ['{column}'], pd := {diagonal}, alpha := 0.5)"
    ).fetchall()
    assert [row[0] for row in ours] == [level for level in theirs["levels"] for _ in theirs["levels"]]
    assert np.abs(np.array([row[2] for row in ours]) - wanted.ravel()).max() < 1e-11


def test_records_change_as_the_matrix_says(con: duckdb.DuckDBPyConnection, houses: Path) -> None:
    """With the matrices of sdcMicro our shares and its own are within the same errors."""
    theirs = json.loads((houses / "testdata_pram_matrices.json").read_text())
    rows = ", ".join(
        f"('{column}', '{before}', '{after}', {p})"
        for column, one in theirs.items()
        for before, line in zip(one["levels"], one["Rs"], strict=True)
        for after, p in zip(one["levels"], line, strict=True)
    )
    con.execute(f'CREATE TABLE chances AS FROM (VALUES {rows}) t("column", "from", "to", p)')
    con.execute(
        f"CREATE TABLE ours AS SELECT id, {', '.join(HOUSES)} FROM sdc_pram('houses', {list(HOUSES)}, 'chances', "
        "invariant := false, id := 'id', seed := 11)"
    )
    con.execute(f"CREATE TABLE theirs AS SELECT row_number() OVER () AS id, * FROM '{houses}/testdata_pram.csv.gz'")
    for masked in ("ours", "theirs"):
        for column in HOUSES:
            wrong = con.execute(
                f"""WITH n AS (SELECT {column}::VARCHAR AS f, count(*) AS n FROM houses GROUP BY ALL),
                became AS (SELECT h.{column}::VARCHAR AS f, m.{column}::VARCHAR AS t, count(*) AS c
                    FROM houses h JOIN {masked} m USING (id) GROUP BY ALL)
                SELECT count(*), count(*) FILTER (abs(coalesce(c, 0) / n - p) > 4 * sqrt(p * (1 - p) / n) + 1 / n)
                FROM chances JOIN n ON f = "from" LEFT JOIN became b ON b.f = "from" AND t = "to" WHERE "column" = '{column}'"""
            ).fetchall()
            assert wrong == [(len(theirs[column]["levels"]) ** 2, 0)]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.floats(0, 1), st.floats(0.01, 1), st.integers(0, 99))
def test_counts_are_kept_in_expectation(counts: list[int], pd: float, alpha: float, seed: int) -> None:
    chance = np.random.default_rng(seed)
    for matrix in (even_matrix(np.full(len(counts), pd)), chance.dirichlet(np.ones(len(counts)), len(counts))):
        found = invariant_matrix(matrix, np.array(counts), alpha)
        assert np.allclose(found.sum(axis=1), 1)
        assert found.min() >= 0
        assert np.allclose(counts @ found, counts, atol=1e-9)


@given(st.integers(1, 6), st.integers(0, 999))
def test_each_category_has_its_part_of_the_chances(size: int, seed: int) -> None:
    matrix = np.random.default_rng(seed).dirichlet(np.full(size, 0.5), size)
    chance = (np.arange(20_000) + 0.5) / 20_000
    for own in range(size):
        found = drawn_categories(np.full(len(chance), own), matrix, chance)
        assert np.abs(np.bincount(found, minlength=size) / len(chance) - matrix[own]).max() < 2e-4


def test_a_large_file(con: duckdb.DuckDBPyConnection) -> None:
    """Marginals and transitions of 200,000 records, by chi squared of all cells at once."""
    con.execute("CREATE TABLE p AS SELECT i AS id, (i * i) % 7 AS x, i % 2 AS s FROM range(200000) r(i)")
    con.execute(
        "CREATE TABLE m AS FROM sdc_pram('p', ['x'], pd := 0.7, alpha := 0.8, by := ['s'], id := 'id', seed := 4)"
    )
    con.execute("CREATE TABLE r AS FROM sdc_pram_matrix('p', ['x'], pd := 0.7, alpha := 0.8, by := ['s'])")
    squares, cells = con.execute(
        """WITH n AS (SELECT s, x, count(*) AS n FROM p GROUP BY ALL),
        became AS (SELECT p.s, p.x AS f, m.x AS t, count(*) AS c FROM p JOIN m USING (id) GROUP BY ALL)
        SELECT sum((coalesce(c, 0) - n * p) ** 2 / (n * p)), count(*) FROM r JOIN n ON r.s = n.s AND x::VARCHAR = "from"
        LEFT JOIN became b ON b.s = r.s AND f::VARCHAR = "from" AND t::VARCHAR = "to\""""
    ).fetchall()[0]
    assert cells == 2 * 4 * 4  # squares modulo 7
    assert chi2.sf(squares, 2 * 4 * 3) > 0.001
    counts = "SELECT s, x, count(*) FROM {} GROUP BY ALL ORDER BY ALL"
    before, after = (np.array(con.execute(counts.format(table)).fetchall()) for table in "pm")
    assert (np.abs(before[:, 2] - after[:, 2]) < 4 * np.sqrt(before[:, 2])).all()


def test_what_a_record_becomes_does_not_depend_on_others(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, 'abc'[i % 3 + 1] AS x, i % 4 = 0 AS y FROM range(300) r(i);"
        "CREATE TABLE fewer AS SELECT * FROM p WHERE id % 5 > 0 ORDER BY hash(id);"
        'CREATE TABLE chances AS SELECT f AS "from", t AS "to", CASE WHEN f = t THEN 0.6 ELSE 0.2 END AS p '
        "FROM (VALUES ('a'), ('b'), ('c')) f(f), (VALUES ('a'), ('b'), ('c')) t(t)"
    )
    call = "SELECT id, x FROM sdc_pram('{}', ['x'], 'chances', invariant := false, id := 'id', seed := 1) WHERE id % 5 > 0 ORDER BY id"
    whole = con.execute(call.format("p")).fetchall()
    assert con.execute(call.format("fewer")).fetchall() == whole
    con.execute('ALTER TABLE chances ADD COLUMN "column" VARCHAR; UPDATE chances SET "column" = \'X\'')
    con.execute("INSERT INTO chances VALUES ('true', 'true', 1, 'y'), ('false', 'false', 1, 'y')")
    both = con.execute(
        call.format("p").replace("['x']", "['y', 'x']").replace("SELECT id, x", "SELECT id, x, y")
    ).fetchall()
    assert [row[:2] for row in both] == whole
    assert [row[2] for row in both] == [row[0] % 4 == 0 for row in both]
    # The invariant matrix depends on the counts, so a few of the changes do, too.
    invariant = "SELECT id, x FROM sdc_pram('{}', ['x'], id := 'id', seed := 1) WHERE id % 5 > 0 ORDER BY id"
    pairs = zip(
        con.execute(invariant.format("p")).fetchall(), con.execute(invariant.format("fewer")).fetchall(), strict=True
    )
    assert sum(one != other for one, other in pairs) <= 5
    assert con.execute(invariant.format("p")).fetchall() != con.execute(invariant.format("p").replace("seed := 1", "seed := 2")).fetchall()  # fmt: skip


def test_types_stay(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TYPE size AS ENUM ('large', 'small')")
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, DATE '2020-01-01' + (i % 3)::INT AS day, i % 2 = 0 AS yes, (i % 4)::DECIMAL(9,2) AS d, "
        '(CASE WHEN i % 2 = 0 THEN \'small\' ELSE \'large\' END)::size AS "the ""Size""", i % 3 + 0.5::DOUBLE AS f, '
        "TIMESTAMPTZ '2020-01-01 00:00:00+00' + to_days((i % 2)::INT) AS at FROM range(200) r(i)"
    )
    names = ["day", "yes", "d", 'the "size"', "f", "at"]
    con.execute("CREATE TABLE m AS FROM sdc_pram('p', ?, pd := 0.5, alpha := 1, id := 'id')", [names])
    assert con.execute("DESCRIBE m").fetchall() == con.execute("DESCRIBE p").fetchall()
    for name in ("day", "yes", "d", '"the ""Size"""', "f", "at"):
        different, values = con.execute(
            f"SELECT count(*) FILTER (m.{name} <> p.{name}), count(DISTINCT m.{name}) = count(DISTINCT p.{name}) FROM m JOIN p USING (id)"
        ).fetchall()[0]
        assert different > 40
        assert values


def test_null_and_nobody(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, nullif(i % 3, 0) AS x, 7 AS same FROM range(90) r(i)")
    kept = con.execute(
        "SELECT count(*) FILTER (p.x IS NULL AND m.x IS NULL), count(m.x) FROM p JOIN "
        "sdc_pram('p', ['x', 'same'], id := 'id', nulls := 'keep') m USING (id)"
    ).fetchall()
    assert kept == [(30, 60)]
    assert con.execute("SELECT DISTINCT same FROM sdc_pram('p', ['same'])").fetchall() == [(7,)]
    assert con.execute("FROM sdc_pram('(FROM p LIMIT 0)', ['x'])").fetchall() == []
    assert con.execute("FROM sdc_pram_matrix('(FROM p LIMIT 0)', ['x'])").fetchall() == []
    assert con.execute("FROM sdc_pram_matrix('p', ['same'])").fetchall() == [("same", "7", "7", 1.0)]


def test_the_odds(con: duckdb.DuckDBPyConnection) -> None:
    """Of 100 records 90 are a and 10 b: p_bb pi_b / (p_ab pi_a) = 0.8 * 0.1 / (0.1 * 0.9)."""
    con.execute(
        "CREATE TABLE p AS SELECT CASE WHEN i < 10 THEN 'b' ELSE 'a' END AS x FROM range(100) r(i);"
        "CREATE TABLE chances AS FROM (VALUES ('a', 'a', 0.9), ('a', 'b', 0.1), ('b', 'a', 0.2), ('b', 'b', 0.8)) t(\"from\", \"to\", p)"
    )
    found = con.execute("FROM sdc_pram_odds('p', 'x', 'chances')").fetchall()
    assert found == [
        ("a", 0.9, pytest.approx(0.9 * 0.9 / (0.2 * 0.1))),
        ("b", 0.1, pytest.approx(0.8 * 0.1 / (0.1 * 0.9))),
    ]
    certain = "(SELECT 'a' AS \"from\", 'a' AS \"to\", 1 AS p UNION ALL SELECT 'b', 'b', 1)"
    odds = con.execute("SELECT posterior_odds FROM sdc_pram_odds('p', 'x', ?)", [certain]).fetchall()
    assert odds == [(math.inf,), (math.inf,)]
    gone = "(SELECT 'a' AS \"from\", 'a' AS \"to\", 1 AS p UNION ALL SELECT 'b', 'a', 1)"
    odds = con.execute("SELECT posterior_odds FROM sdc_pram_odds('p', 'x', ?)", [gone]).fetchall()
    assert odds == [(pytest.approx(9.0),), (None,)]


def test_from_a_risky_file_to_a_masked_one(con: duckdb.DuckDBPyConnection) -> None:
    """Rare combinations remain rare, and are no longer certain."""
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, CASE WHEN i % 50 = 0 THEN 'rare' ELSE 'r' || i % 4 END AS region, "
        "CASE WHEN i = 100 THEN 'other' ELSE 'mf'[i % 2 + 1] END AS sex, i % 9 AS age FROM range(1000) r(i)"
    )
    con.execute("CREATE TABLE chances AS FROM sdc_pram_matrix('p', ['region'], pd := 0.5, alpha := 1)")
    con.execute(
        "CREATE TABLE m AS FROM sdc_pram('p', ['region', 'sex'], pd := 0.5, alpha := 1, id := 'id', seed := 77)"
    )
    rare = con.execute(
        "SELECT posterior_odds FROM sdc_pram_odds('p', 'region', 'chances') WHERE value = 'rare'"
    ).fetchall()
    assert rare[0][0] < 1
    uniques = "SELECT sum(records) FROM sdc_classes('{}', ['region', 'sex', 'age']) WHERE records = 1"
    assert con.execute(uniques.format("p")).fetchall()[0][0] > 0
    correct = con.execute(
        "SELECT count(*) FILTER (p.region = m.region) / count(*) FROM p JOIN m USING (id) WHERE m.region = 'rare'"
    ).fetchall()[0][0]
    assert correct < 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("sdc_pram('p')", "argument 'columns' must name the columns of categories"),
        ("sdc_pram('p', ['z'])", "unknown column 'z' in 'p'"),
        ("sdc_pram('p', ['x'], pd := 80)", "argument 'pd' must lie between 0 and 1; 80 per cent is 0.8"),
        ("sdc_pram('p', ['x'], pd := -0.1)", "argument 'pd' must lie between 0 and 1"),
        ("sdc_pram('p', ['x'], pd := 'much')", "argument 'pd' must be the probability to stay"),
        ("sdc_pram('p', ['x'], pd := [0.5, 0.5])", "argument 'pd' lists 2 probabilities, and 'x' has 3 categories"),
        ("sdc_pram('p', ['x', 'y'], pd := [0.5, 0.5])", "argument 'pd' must be one number where several columns change"),
        ("sdc_pram('p', ['x'], alpha := 0)", "argument 'alpha' must be above 0 and at most 1"),
        ("sdc_pram('p', ['x'], alpha := 50)", "50 per cent is 0.5"),
        ("sdc_pram('p', ['x'], alpha := 0.5, invariant := false)", "argument 'alpha' is for invariant := true"),
        ("sdc_pram('p', ['x'], invariant := NULL)", "argument 'invariant' must be true or false"),
        ("sdc_pram('p', ['x'], by := ['x'])", "column 'x' is one of those that are changed"),
        ("sdc_pram('p', ['x'], id := 'x')", "column 'x' is one of those that are changed"),
        ("sdc_pram('p', ['x'], id := 'y')", "column 'y' is the same in several records"),
        ("sdc_pram('p', ['gap'])", "1 of 9 records have NULL in a column that is to be changed"),
        ("sdc_pram('p', ['x'], 'chances', pd := 0.8)", "give 'matrix' or 'pd', and not both"),
        ("sdc_pram('p', ['x'], '(SELECT 1 AS a)')", "unknown column 'from'"),
        ("sdc_pram('p', ['x', 'y'], 'chances')", "unknown column 'column'"),
        ("sdc_pram('p', ['x'], '(FROM chances WHERE \"from\" < 2)')", "argument 'matrix' has no rows for 1 of 3 categories of 'x'"),
        ("sdc_pram('p', ['x'], '(FROM chances UNION ALL FROM chances)')", "two rows with the same 'from' and 'to'"),
        ("sdc_pram('p', ['x'], '(SELECT * REPLACE (p * 0.99 AS p) FROM chances)')", "the probabilities of 3 of 3 categories of 'x' do not add up to 1"),
        ("sdc_pram('p', ['x'], '(SELECT * REPLACE (100 * p AS p) FROM chances)')", "do not add up to 1"),
        ("sdc_pram('p', ['x'], '(SELECT * REPLACE (-p AS p) FROM chances)')", "'p' must hold numbers from 0 to 1"),
        ("sdc_pram('p', ['x'], '(SELECT * REPLACE (NULL::DOUBLE AS p) FROM chances)')", "a row has NULL"),
        ("sdc_pram('p', ['x'], '(SELECT * REPLACE (\"to\" + 1 AS \"to\") FROM chances)')", "to a category that no record has"),
        ("sdc_pram('(SELECT i AS x FROM range(2001) r(i))', ['x'])", "has 2001 categories, more than 2000: recode it first"),
        ("sdc_pram_matrix('(SELECT 1 AS x, 2 AS p)', ['x'], by := ['p'])", "is also one of the result"),
        ("sdc_pram_odds('p', 'x', '(SELECT * REPLACE (p * 0.99 AS p) FROM chances)')", "do not add up to 1"),
        ("sdc_pram_odds('p', 'x', '(FROM chances UNION ALL FROM chances)')", "two rows with the same"),
        ("sdc_pram_odds('p', 'x')", "argument 'matrix' must name a table"),
    ],
)  # fmt: skip
def test_bad_input(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE p AS SELECT i % 3 AS x, i % 2 AS y, nullif(i, 3) AS gap FROM range(9) r(i);"
        'CREATE OR REPLACE TABLE chances AS SELECT f AS "from", t AS "to", CASE WHEN f = t THEN 0.5 ELSE 0.25 END AS p '
        "FROM range(3) f(f), range(3) t(t)"
    )
    with pytest.raises(duckdb.Error) as raised:
        lasting.execute(f"FROM {call}").fetchall()
    assert message in str(raised.value)
