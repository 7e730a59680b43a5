"""Rank swapping and shuffling: values stay, ranks move as far as they may, correlations are what theory says."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from sdcduck.methods.masking.swaps import normal_scores, root, shuffled, swapped_ranks, swapped_within

SWAP = "sdc_rank_swap('p', ['x'], p := 0.1, id := 'id')"
SHUFFLE = "sdc_shuffle('p', ['x'], predictors := ['z'], id := 'id')"


@pytest.fixture
def people(con: duckdb.DuckDBPyConnection) -> None:
    """Three correlated columns of 3,000 records: x skewed, y whole numbers, z normal; and a stratum."""
    chance = np.random.default_rng(3)
    z = chance.normal(size=3000)
    x = np.exp(0.8 * z + 0.6 * chance.normal(size=3000))
    y = np.rint(10 * (0.6 * z + 0.8 * chance.normal(size=3000)))
    rows = ", ".join(f"({i}, {a!r}, {int(b)}, {c!r}, {i % 3})" for i, (a, b, c) in enumerate(zip(x.tolist(), y.tolist(), z.tolist(), strict=True)))  # fmt: skip
    con.execute(f"CREATE TABLE p AS FROM (VALUES {rows}) t(id, x, y, z, s)")


def _columns(con: duckdb.DuckDBPyConnection, query: str) -> np.ndarray:
    return np.array(con.execute(query).fetchall(), dtype=float)


def _spearman(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 99))
def test_swaps_are_pairs_within_reach(n: int, reach: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    order = chance.permutation(n + 5)[:n]
    giver = swapped_ranks(order, reach, chance.integers(0, 2**63, n + 5).astype(np.uint64))
    assert (giver[giver] == np.arange(n + 5)).all()  # whoever takes gives to the same record
    rank = np.full(n + 5, -1)
    rank[order] = np.arange(n)
    assert (np.abs(rank[giver] - rank) <= reach).all()
    stay = np.sort(rank[(giver == np.arange(n + 5)) & (rank >= 0)])
    assert (np.diff(stay) > reach).all()  # no two that could have swapped are left


def test_ranks_move_within_p(con: duckdb.DuckDBPyConnection, people: None) -> None:
    for p in (0.02, 0.1, 0.5):
        con.execute(f"CREATE OR REPLACE TABLE m AS FROM sdc_rank_swap('p', ['x', 'y'], p := {p}, id := 'id')")
        assert con.execute("DESCRIBE m").fetchall() == con.execute("DESCRIBE p").fetchall()
        both = _columns(con, "SELECT p.x, m.x, p.y, m.y FROM p JOIN m USING (id) WHERE p.z = m.z ORDER BY id")
        assert len(both) == 3000
        moved = np.abs(rankdata(both[:, 0]) - rankdata(both[:, 1]))
        assert p * 3000 * 0.9 < moved.max() <= p * 3000
        assert (moved > 0).mean() > 0.97
        assert (np.sort(both[:, 2]) == np.sort(both[:, 3])).all()
        low, high = (rankdata(both[:, 2], method=method) for method in ("min", "max"))  # ties: the nearest ranks
        gap = np.maximum(rankdata(both[:, 3], method="min") - high, low - rankdata(both[:, 3], method="max"))
        assert gap.max() <= p * 3000


def test_correlations_of_ranks_are_kept_as_asked(con: duckdb.DuckDBPyConnection, people: None) -> None:
    before = _columns(con, "SELECT x, y, z FROM p ORDER BY id")
    for wanted in (0.9, 0.95, 0.99):
        after = _columns(con, f"SELECT x, y FROM sdc_rank_swap('p', ['x', 'y'], correlation := {wanted}, id := 'id') ORDER BY id")  # fmt: skip
        for column in (0, 1):
            assert abs(_spearman(before[:, column], after[:, column]) - wanted) < 0.2 * (1 - wanted)
        # One swapped column loses the factor once, two of them twice; four standard errors of such a loss.
        error = 4 * math.sqrt((1 - wanted) / 3000)
        assert abs(_spearman(after[:, 0], before[:, 2]) - wanted * _spearman(before[:, 0], before[:, 2])) < error
        assert abs(_spearman(after[:, 0], after[:, 1]) - wanted**2 * _spearman(before[:, 0], before[:, 1])) < 2 * error


@pytest.mark.parametrize("k0", [0.4, 0.7])
def test_means_of_subsets_are_kept_as_asked(con: duckdb.DuckDBPyConnection, people: None, k0: float) -> None:
    made = (
        f"SELECT p.x, m.x, p.s FROM p JOIN sdc_rank_swap('p', ['x'], k0 := {k0}, id := 'id') m USING (id) ORDER BY id"
    )
    both = _columns(con, made)
    was, now = both[:, 0], both[:, 1]
    moved = np.sqrt(np.mean((was - now) ** 2))
    assert 0.9 * k0 * was.mean() < moved <= k0 * was.mean()
    assert (np.sort(was) == np.sort(now)).all()
    # Moore's limit, which 95 of 100 random subsets keep: 2 k0 / sqrt(N) of their mean.
    chance = np.random.default_rng(20)
    kept = []
    for _ in range(400):
        rows = chance.choice(3000, 50, replace=False)
        kept.append(abs(was[rows].mean() - now[rows].mean()) <= 2 * k0 * was.mean() / math.sqrt(50))
    assert np.mean(kept) > 0.93
    # By strata each has its own mean; ends that are coded are not swapped, and do not count.
    strata = _columns(con, made.replace(", id :=", ", by := ['s'], top := 0.05, id :="))
    for s in range(3):
        part = strata[strata[:, 2] == s]
        part = part[np.argsort(part[:, 0], kind="stable")][:950]
        assert np.sqrt(np.mean((part[:, 0] - part[:, 1]) ** 2)) <= k0 * part[:, 0].mean()
    coded = _columns(con, made.replace(", id :=", ", top := 0.05, bottom := 0.1, id :="))
    order = np.argsort(coded[:, 0], kind="stable")
    between = coded[order[300:-150]]
    assert np.sqrt(np.mean((between[:, 0] - between[:, 1]) ** 2)) <= k0 * between[:, 0].mean()
    assert np.unique(coded[order[-150:], 1]).tolist() == pytest.approx([coded[order[-150:], 0].mean()])
    assert np.unique(coded[order[:300], 1]).tolist() == pytest.approx([coded[order[:300], 0].mean()])


@given(st.integers(1, 40), st.floats(0, 3), st.integers(0, 99))
def test_the_widest_swap_within_a_limit(n: int, most: float, seed: int) -> None:
    chance = np.random.default_rng(seed)
    values = chance.normal(size=n)
    bits = chance.integers(0, 2**63, n).astype(np.uint64)
    order = np.argsort(values)
    giver, reach = swapped_within(order, values, most, bits)
    assert np.sqrt(np.mean((values - values[giver]) ** 2)) <= most
    assert (giver == (swapped_ranks(order, reach, bits) if reach else np.arange(n))).all()
    if reach < n - 1:
        wider = swapped_ranks(order, reach + 1, bits)
        assert np.sqrt(np.mean((values - values[wider]) ** 2)) > most


@pytest.mark.parametrize("unit", [1e-250, 1e250])
def test_the_limit_holds_where_squares_are_no_numbers(unit: float) -> None:
    values, bits = np.arange(40.0) ** 2, np.arange(40, dtype=np.uint64) * np.uint64(2**59)
    giver, reach = swapped_within(np.arange(40), values, 100.0, bits)
    assert 1 <= reach < 39
    other, same = swapped_within(np.arange(40), values * unit, 100 * unit, bits)
    assert (other.tolist(), same) == (giver.tolist(), reach)


@pytest.mark.parametrize("name", ["P5", "P20", "R095"])
def test_sdcmicro_keeps_the_same(con: duckdb.DuckDBPyConnection, reference_data: Path, name: str) -> None:
    """The 53 lowest and highest of 1,080 become their mean, the others stay in the column: by column the same values."""
    folder = reference_data / "sdcmicro"
    con.execute(
        f"CREATE TABLE census AS SELECT *, row_number() OVER () AS id FROM '{folder}/input_CASCrefmicrodata.csv.gz'"
    )
    names = [row[0] for row in con.execute("DESCRIBE census").fetchall() if row[0] != "id"]
    ours = _columns(
        con, f"SELECT {', '.join(names)} FROM sdc_rank_swap('census', {names}, top := 53 / 1080, bottom := 53 / 1080)"
    )
    theirs = np.loadtxt(folder / f"CASC_rankSwap_{name}.csv.gz", delimiter=",", skiprows=1)
    assert np.allclose(np.sort(ours, axis=0), np.sort(theirs, axis=0), rtol=1e-12)


def test_the_order_of_the_table_does_not_matter(con: duckdb.DuckDBPyConnection, people: None) -> None:
    con.execute("CREATE TABLE q AS SELECT s, z, y, x, id FROM p ORDER BY hash(id)")
    for call in ("sdc_rank_swap('{}', ['x', 'y'], by := ['s'])", "sdc_shuffle('{}', ['x', 'y'], predictors := ['z'], id := 'id')"):  # fmt: skip
        found = [con.execute(f"SELECT id, x, y FROM {call.format(table)} ORDER BY id").fetchall() for table in "pq"]
        assert found[0] == found[1]
        con.execute("SET threads = 1")
        assert con.execute(f"SELECT id, x, y FROM {call.format('p')} ORDER BY id").fetchall() == found[0]
        con.execute("RESET threads")
        seed = call.format("p")[:-1] + ", seed := 8)"
        assert con.execute(f"SELECT id, x, y FROM {seed} ORDER BY id").fetchall() != found[0]
    # A column is swapped in the same way whatever other ones are.
    one, two = (con.execute(f"SELECT id, x FROM sdc_rank_swap('p', {names}, id := 'id') ORDER BY id").fetchall() for names in ("['x']", "['Y', 'X']"))  # fmt: skip
    assert one == two
    lists = [con.execute(f"SELECT id, x, y FROM sdc_shuffle('p', {names}, id := 'id') ORDER BY id").fetchall() for names in ("['x', 'y']", "['y', 'x']")]  # fmt: skip
    assert lists[0] == lists[1]


def test_strata_keep_their_values(con: duckdb.DuckDBPyConnection, people: None) -> None:
    for call in (SWAP, SHUFFLE):
        strata = call.replace(", id", ", by := ['s'], id")
        values = "SELECT s, list_sort(list(x)) FROM {} GROUP BY s ORDER BY s"
        assert con.execute(values.format(strata)).fetchall() == con.execute(values.format("p")).fetchall()
        assert con.execute(values.format(call)).fetchall() != con.execute(values.format("p")).fetchall()
        alone = call.replace("'p'", "'(FROM p WHERE s = 1)'")
        assert con.execute(f"FROM {strata} WHERE s = 1 EXCEPT FROM {alone}").fetchall() == []


def test_shuffles_of_records_with_the_same_gaps_apart(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, CASE WHEN i % 4 THEN i * 13 % 97 END AS x, CASE WHEN i % 3 THEN i * 7 % 31 END AS y, "
        "CASE WHEN i % 5 THEN i * 5 % 53 END AS z, i % 2 AS s FROM range(600) r(i)"
    )
    made = "sdc_shuffle({}, {}, predictors := {}, by := ['s'], nulls := '{}', id := 'id')"
    con.execute("CREATE TABLE m AS FROM " + made.format("'p'", "['x', 'y']", "['z']", "apart"))
    assert con.execute("SELECT count(*) FROM p JOIN m USING (id) WHERE (p.x IS NULL) <> (m.x IS NULL)").fetchall() == [(0,)]  # fmt: skip
    for gaps in ([], ["x"], ["y"], ["z"], ["x", "z"]):
        having = " AND ".join(f"{name} IS {'' if name in gaps else 'NOT '}NULL" for name in ("x", "y", "z"))
        names = [name for name in ("x", "y") if name not in gaps]
        kept = [name for name in ("z",) if name not in gaps]
        alone = made.format(f"'(FROM p WHERE {having})'", names, kept, "refuse")
        columns = ", ".join(["id", *names])
        assert con.execute(f"SELECT {columns} FROM m WHERE {having} ORDER BY id").fetchall() == (
            con.execute(f"SELECT {columns} FROM {alone} ORDER BY id").fetchall()
        )
    moved = con.execute("SELECT count(*) FILTER (p.x <> m.x) / count(p.x) FROM p JOIN m USING (id)").fetchall()[0][0]
    assert moved > 0.9


def test_shuffling_keeps_values_and_correlations(con: duckdb.DuckDBPyConnection, people: None) -> None:
    before = _columns(con, "SELECT x, y, z FROM p ORDER BY id")
    con.execute("CREATE TABLE m AS FROM sdc_shuffle('p', ['x', 'y'], predictors := ['z'], id := 'id')")
    assert con.execute("DESCRIBE m").fetchall() == con.execute("DESCRIBE p").fetchall()
    after = _columns(con, "SELECT x, y, z FROM m ORDER BY id")
    assert (np.sort(before, axis=0) == np.sort(after, axis=0)).all()
    assert (before[:, 2] == after[:, 2]).all()
    assert (before[:, 0] == after[:, 0]).mean() < 0.01
    for one, other in ((0, 1), (0, 2), (1, 2)):
        was, now = (_spearman(table[:, one], table[:, other]) for table in (before, after))
        assert abs(was - now) < 4 * (1 - was**2) / math.sqrt(3000) * 1.1
    # What a record has got is known from z alone: given it, nothing is left of what it had.
    scores = [normal_scores(column) for column in (*before.T, after[:, 0])]
    had, got = (score - np.corrcoef(score, scores[2])[0, 1] * scores[2] for score in (scores[0], scores[3]))
    assert abs(np.corrcoef(had, got)[0, 1]) < 4 / math.sqrt(3000)
    alone = _columns(con, "SELECT x FROM sdc_shuffle('p', ['x'], id := 'id') ORDER BY id")
    assert abs(_spearman(alone[:, 0], before[:, 2])) < 4 / math.sqrt(3000)


def test_the_kernel_with_columns_that_say_nothing() -> None:
    values = np.column_stack([np.arange(5.0), np.full(5, 7.0)])
    found = shuffled(values, np.full((5, 1), 3.0), np.random.default_rng(1).normal(size=(5, 2)))
    assert sorted(found[:, 0].tolist()) == [0, 1, 2, 3, 4]
    assert root(np.array([[1.0, 1], [1, 1]])) == pytest.approx(np.full((2, 2), math.sqrt(0.5)))


def test_dates_times_and_null(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, CASE WHEN i % 4 THEN DATE '2000-01-01' + (i * 7 % 101)::INT END AS \"The Day\", "
        "TIME '08:00:00' + to_minutes(i % 60) AS hour, TIMESTAMP '2020-01-01' + to_hours(i * 3 % 97) AS t, (i * 11 % 89)::DECIMAL(9,1) AS d, 5 AS same FROM range(200) r(i)"
    )
    for call in ("sdc_rank_swap('p', {}, nulls := 'keep', id := 'id')", "sdc_shuffle('p', {}, nulls := 'keep', id := 'id')"):  # fmt: skip
        made = call.format("['the day', 'hour', 't', 'd', 'same']")
        con.execute(f"CREATE OR REPLACE TABLE m AS FROM {made}")
        assert con.execute("DESCRIBE m").fetchall() == con.execute("DESCRIBE p").fetchall()
        for name in ('"The Day"', "hour", "t", "d", "same"):
            values = f"SELECT list_sort(list({name})), count({name}) FROM "
            assert con.execute(values + "m").fetchall() == con.execute(values + "p").fetchall()
        assert con.execute('SELECT count(*) FROM p JOIN m USING (id) WHERE (p."The Day" IS NULL) <> (m."The Day" IS NULL)').fetchall() == [(0,)]  # fmt: skip
        assert con.execute("SELECT count(*) > 100 FROM p JOIN m USING (id) WHERE p.t <> m.t").fetchall() == [(True,)]
        assert con.execute(f"FROM {call.format(['d']).replace(chr(39) + 'p' + chr(39), chr(39) + '(FROM p LIMIT 0)' + chr(39))}").fetchall() == []  # fmt: skip
    coded = con.execute("SELECT min(d), max(d), count(*) FILTER (d = (SELECT avg(d) FROM (SELECT d FROM p ORDER BY d LIMIT 20))) "
                        "FROM sdc_rank_swap('p', ['d'], bottom := 0.1)").fetchall()  # fmt: skip
    assert coded[0][2] >= 20


def test_from_a_risky_file_to_a_released_one(con: duckdb.DuckDBPyConnection) -> None:
    """Whoever knows incomes exactly finds hardly anybody any more, and the table of means by region is near."""
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, i % 5 AS region, 1000 + (i * i * 31) % 4001 + 100 * (i % 5) AS income FROM range(2000) r(i)"
    )
    con.execute("CREATE TABLE released AS FROM sdc_rank_swap('p', ['income'], p := 0.05, id := 'id', seed := 20240917)")
    k = "SELECT k FROM sdc_k_anonymity('{}', ['region', 'income'])"
    assert con.execute(k.format("p")).fetchall() == con.execute(k.format("released")).fetchall()  # values are all there
    linked = con.execute("SELECT count(*) FROM p JOIN released r USING (region, income) WHERE p.id = r.id").fetchall()[
        0
    ][0]
    assert linked < 0.02 * 2000
    worst = con.execute(
        "SELECT max(abs(a.m - b.m)) FROM (SELECT region, avg(income) AS m FROM p GROUP BY region) a "
        "JOIN (SELECT region, avg(income) AS m FROM released GROUP BY region) b USING (region)"
    ).fetchall()[0][0]
    assert worst < 60


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("sdc_rank_swap('p')", "argument 'columns' must name the columns whose values are swapped"),
        ("sdc_rank_swap('p', ['z'])", "unknown column 'z' in 'p'"),
        ("sdc_rank_swap('p', ['name'])", "argument 'columns' must name a column of numbers: 'name' of 'p' is VARCHAR"),
        ("sdc_rank_swap('p', ['yes'])", "'yes' of 'p' is BOOLEAN"),
        ("sdc_rank_swap('p', ['x'], p := 5)", "argument 'p' must be above 0 and at most 1: how far ranks may move; 5 per cent is 0.05"),
        ("sdc_rank_swap('p', ['x'], p := 0)", "argument 'p' must be above 0"),
        ("sdc_rank_swap('p', ['x'], p := 0.05)", "ranks of 9 records cannot move by 0.05 of all: make 'p' larger"),
        ("sdc_rank_swap('p', ['x'], p := 0.5, correlation := 0.5)", "give one of 'p', 'correlation' and 'k0'"),
        ("sdc_rank_swap('p', ['x'], p := 0.5, k0 := 0.5)", "give one of 'p', 'correlation' and 'k0'"),
        ("sdc_rank_swap('p', ['x'], k0 := 0)", "argument 'k0' must be a number above 0: a share of the mean"),
        ("sdc_rank_swap('p', ['x'], k0 := -1)", "argument 'k0' must be a number above 0"),
        ("sdc_rank_swap('p', ['x'], k0 := 0.0001)", "no values of column 'x' can change place with k0 := 0.0001: make"),
        ("sdc_rank_swap('p', ['day'], k0 := 0.1)", "'day' of 'p' is DATE"),
        ("sdc_rank_swap('p', ['x'], correlation := 1)", "argument 'correlation' must be at least 0 and below 1"),
        ("sdc_rank_swap('p', ['x'], p := 0.5, top := 5)", "5 per cent is 0.05"),
        ("sdc_rank_swap('p', ['x'], p := 0.5, top := 0.6, bottom := 0.6)", "are more than all records together"),
        ("sdc_rank_swap('p', ['day'], p := 0.5, top := 0.1)", "'day' of 'p' is DATE"),
        ("sdc_rank_swap('p', ['x'], p := 0.5, by := ['x'])", "can not be in 'by'"),
        ("sdc_rank_swap('p', ['x'], p := 0.5, id := 'x')", "can not be the 'id'"),
        ("sdc_rank_swap('p', ['x'], p := 0.5, id := 'yes')", "column 'yes' is the same in several records"),
        ("sdc_rank_swap('p', ['gap'], p := 0.5)", "1 of 9 records have NULL in a column that is to be changed"),
        ("sdc_rank_swap('p', ['odd'], p := 0.5)", "a record has NaN or an infinite number"),
        ("sdc_rank_swap('p', ['never'], p := 0.5)", "a record has NaN or an infinite number"),
        ("sdc_rank_swap('p', ['huge'], p := 0.5)", "column 'huge' has whole numbers beyond 2^53"),
        ("sdc_shuffle('p')", "argument 'columns' must name the columns whose values are shuffled"),
        ("sdc_shuffle('p', ['x'], predictors := ['X'])", "can not be in 'predictors'"),
        ("sdc_shuffle('p', ['x'], predictors := ['name'])", "'name' of 'p' is VARCHAR"),
        ("sdc_shuffle('p', ['x'], predictors := ['gap'])", "1 of 9 records have NULL"),
        ("sdc_shuffle('p', ['x'], seed := 'a')", "argument 'seed' must be a whole number"),
    ],
)  # fmt: skip
def test_bad_input(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE p AS SELECT i AS x, 'n' || i AS name, DATE '2020-01-01' + i::INT AS day, true AS yes, nullif(i, 3) AS gap, "
        "CASE WHEN i = 2 THEN 'inf'::DOUBLE ELSE i END AS odd, CASE WHEN i = 2 THEN 'infinity'::DATE ELSE DATE '2020-01-01' END AS never, "
        "i + 9007199254740992 AS huge FROM range(9) r(i)"
    )
    with pytest.raises(duckdb.Error) as raised:
        lasting.execute(f"FROM {call}").fetchall()
    assert message in str(raised.value)
