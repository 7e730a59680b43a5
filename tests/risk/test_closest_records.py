"""Distances to closest records through SQL: published examples, the counts of a public study, and input that is wrong."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st

import sdcduck
from sdcduck.methods.risk.closest import at_least, smaller

# The example of the Python package gower: eight people, ranges 11, 30900, 1 and 21900.
GOWER = """
    CREATE TABLE g (id INTEGER, age INTEGER, gender VARCHAR, civil VARCHAR, salary DOUBLE, children INTEGER, credit BIGINT);
    INSERT INTO g VALUES (1, 21, 'M', 'MARRIED', 3000, 1, 2200), (2, 21, 'M', 'SINGLE', 1200, 0, 100),
        (3, 19, 'N', 'SINGLE', 32000, 1, 22000), (4, 30, 'M', 'SINGLE', 1800, 1, 1100),
        (5, 21, 'F', 'MARRIED', 2900, 1, 2000), (6, 21, 'F', 'SINGLE', 1100, 0, 100),
        (7, 19, 'F', 'WIDOW', 10000, 0, 6000), (8, 30, 'F', 'DIVORCED', 1500, 1, 2200)"""
PAIRS = {
    (1, 2): 0.3590238, (1, 3): 0.6707398, (1, 4): 0.3178742, (1, 5): 0.1687281, (1, 6): 0.5262298, (1, 7): 0.5969786,
    (1, 8): 0.4777876, (2, 6): 0.1672060, (3, 8): 0.8151941, (6, 7): 0.2898751, (7, 8): 0.5747661,
}  # fmt: skip

# The worked example of the specification: originals, holdout, synthetic records.
TOY = """
    CREATE OR REPLACE TABLE t (age INTEGER, sex VARCHAR, flag BOOLEAN, income DECIMAL(9,2));
    CREATE OR REPLACE TABLE h AS FROM t; CREATE OR REPLACE TABLE s AS FROM t;
    INSERT INTO t VALUES (25, 'M', true, 1000), (40, 'F', false, 3000), (31, 'F', true, 2000);
    INSERT INTO h VALUES (27, 'M', false, 1200), (38, 'F', false, 2800), (60, 'M', true, 4000);
    INSERT INTO s VALUES (25, 'M', true, 1000), (33, 'F', true, 2400), (40, 'M', false, 5000)"""


def rows(con: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    return con.execute(sql).fetchall()


def test_pairs_of_the_published_gower_example(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(GOWER)
    for (one, other), wanted in PAIRS.items():
        # The range is that of all: the holdout has everybody.
        found = rows(
            con,
            f"SELECT dcr FROM sdc_dcr_records('(FROM g WHERE id = {one})', '(FROM g WHERE id = {other})', holdout := 'g', columns := ['age', 'gender', 'civil', 'salary', 'children', 'credit'])",
        )
        assert found[0][0] == pytest.approx(wanted, abs=1e-7)


def test_a_table_with_itself_leaves_each_record_out(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(GOWER)
    found = dict(rows(con, "SELECT id, dcr FROM sdc_dcr_records('g', 'g', id := 'id', itself := true)"))
    assert [found[k] for k in (1, 2, 6, 7)] == pytest.approx([0.1687281, 0.1672060, 0.1672060, 0.2898751], abs=1e-7)
    assert rows(con, "SELECT zeros FROM sdc_dcr('g', 'g')") == [(8,)]


def test_worked_example_of_the_holdout_share(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(TOY)
    found = rows(con, "SELECT dcr, dcr_holdout, nndr, closer FROM sdc_dcr_records('t', 's', 'h')")
    assert [row[0] for row in found] == pytest.approx([0, 0.039286, 0.375], abs=1e-6)
    assert [row[1] for row in found] == pytest.approx([0.276786, 0.310714, 0.330357], abs=1e-6)
    assert [row[2] for row in found] == pytest.approx([0, 0.116402, 0.617647], abs=1e-6)
    assert [row[3] for row in found] == ["original", "original", "holdout"]
    share = "closer_original, closer_holdout, ties, strict_share, share, expected, copies"
    assert rows(con, f"SELECT {share} FROM sdc_holdout_share('t', 's', 'h') LIMIT 1") == [
        (2, 1, 0, pytest.approx(2 / 3), pytest.approx(2 / 3), 0.5, 1)
    ]
    # The tables in each other's places.
    assert rows(con, f"SELECT {share} FROM sdc_holdout_share('h', 's', 't') LIMIT 1")[0][:3] == (1, 2, 0)
    ((p_value,),) = rows(con, "SELECT p_value FROM sdc_holdout_share('t', 's', 'h') LIMIT 1")
    assert p_value == pytest.approx(0.5)  # at least 2 of 3, by a coin
    # The records themselves as synthetic ones.
    assert rows(con, "SELECT strict_share, mean_dcr FROM sdc_holdout_share('t', 't', 'h') LIMIT 1") == [(1.0, 0.0)]
    assert rows(con, "SELECT strict_share, share, ties FROM sdc_holdout_share('t', 's', 't') LIMIT 1") == [
        (0.0, 0.5, 3)
    ]


@pytest.fixture(scope="module")
def adult(reference_data: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Adult (UCI) as split by Platzer and Reutterer: 24,421 records for training and for the holdout, 50,000 synthetic."""
    folder = reference_data / "adult"
    if not folder.is_dir():
        pytest.skip(f"no Adult files of the repository mostly-ai/paper-fidelity-accuracy in {folder}")
    con = sdcduck.connect()
    for file in folder.glob("adult_*.csv.gz"):
        con.execute(f"CREATE TABLE {file.name[6:-7]} AS FROM read_csv('{file}', header := true, all_varchar := false)")
    yield con
    con.close()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("flip10", (44636, 350, 5014, 0.94286, 0.84250, 2.56740)),
        ("flip20", (37132, 1298, 11570, 0.85834, 1.61690, 2.84378)),
        ("flip30", (28539, 2783, 18678, 0.75756, 2.28748, 3.08398)),
        ("flip50", (14932, 5751, 29317, 0.59181, 3.23534, 3.47666)),
        ("flip90", (7615, 7853, 34532, 0.49762, 3.84318, 3.83860)),
        ("synthpop", (14550, 6515, 28935, 0.58035, 2.13664, 2.32688)),
        ("mostly", (9239, 8608, 32153, 0.50631, 2.33840, 2.35196)),
        ("ctgan", (8594, 8180, 33226, 0.50414, 4.49284, 4.50110)),
        ("tvae", (6305, 6372, 37323, 0.49933, 3.89340, 3.89220)),
    ],
)
def test_published_counts_of_a_public_study(
    adult: duckdb.DuckDBPyConnection, name: str, wanted: tuple[Any, ...]
) -> None:
    found = rows(
        adult,
        f"SELECT closer_original, closer_holdout, ties, share, mean_dcr, mean_dcr_holdout FROM sdc_holdout_share('trn', '{name}', 'val', distance := 'buckets')",
    )
    assert found[0][:3] == wanted[:3]
    assert found[0][3:] == pytest.approx(wanted[3:], abs=1e-9)
    if name == "flip90":
        calibration = found[1]
        assert calibration[0] + calibration[1] + calibration[2] == 24421


def test_the_holdout_in_the_place_of_the_synthetic_records(adult_halves: duckdb.DuckDBPyConnection) -> None:
    """Calibration: a record of the holdout is compared with the others of it."""
    found = rows(
        adult_halves,
        "SELECT closer_original, closer_holdout, ties, share, mean_dcr, mean_dcr_holdout, strict_share FROM sdc_holdout_share('trn', 'val', 'val', distance := 'buckets')",
    )
    assert found[1][:3] == (4522, 4525, 15374)
    assert found[1][3] == pytest.approx(0.499938577, abs=1e-9)
    assert found[1][4:6] == pytest.approx((2.27374, 2.27366), abs=5e-6)
    assert found[0][6] == 0.0  # the same records with themselves: none is closer to the training records


def test_shares_by_gower_distance_say_the_same(adult: duckdb.DuckDBPyConnection) -> None:
    share = {
        name: rows(adult, f"SELECT share FROM sdc_holdout_share('trn', '{name}', 'val') LIMIT 1")[0][0]
        for name in ("flip10", "flip30", "flip50", "flip90", "synthpop", "mostly")
    }
    assert share["flip10"] > share["flip30"] > share["flip50"] > 0.51 > share["flip90"]
    assert share["flip10"] > share["synthpop"] > 0.6 > share["mostly"]


def definition(
    one: list[tuple[Any, ...]], other: list[tuple[Any, ...]], ranges: list[float | None]
) -> np.ndarray[Any, Any]:
    """Gower's distance of all pairs, from values as they are; a range of None is that of a category."""
    found = np.empty((len(one), len(other)))
    for (i, x), (j, y) in itertools.product(enumerate(one), enumerate(other)):
        parts = []
        for a, b, width in zip(x, y, ranges, strict=True):
            if a is None or b is None or width is None or not width:
                parts.append(float(a != b))
            else:
                parts.append(min(abs(float(a - b)) / width, 1.0))
        found[i, j] = sum(parts) / len(parts)
    return found


def test_all_types_and_nulls_against_the_definition(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE all_types AS SELECT i AS id, (hash(i) % 90)::UTINYINT AS age, (hash(i + 7) % 7 - 3.5)::FLOAT AS f,
            CASE WHEN i % 9 <> 0 THEN hash(3 * i) % 1000 / 8 END AS d, (hash(5 * i) % 10000 / 4)::DECIMAL(9,2) AS money,
            DATE '2020-01-01' + (hash(7 * i) % 999)::INTEGER AS day, i % 3 = 0 AS flag,
            TIMESTAMP '2000-01-01' + to_seconds((hash(11 * i) % 100000)::BIGINT) AS moment,
            CASE WHEN i % 5 <> 0 THEN 'c' || hash(13 * i) % 300 END AS word, 7 AS same, hash(17 * i) % 5 AS code,
            (['low', 'mid', 'high'])[1 + (hash(19 * i) % 3)::INTEGER]::ENUM('low', 'mid', 'high') AS rank
        FROM range(150) r(i);
        UPDATE all_types SET f = 'NaN' WHERE id % 11 = 0""")
    columns = ["age", "f", "d", "money", "day", "flag", "moment", "word", "same", "code", "rank"]
    shown = "age::DOUBLE, nullif(f, 'NaN')::DOUBLE, d, money::DOUBLE, epoch(day), flag, epoch(moment), word, same, code, enum_code(rank)::DOUBLE"
    sides = [rows(con, f"SELECT {shown} FROM all_types WHERE id {side}") for side in ("< 80", ">= 80")]
    both = [*zip(*(sides[0] + sides[1]), strict=True)]
    ranges = [
        None
        if k in (5, 7, 9)
        else float(max(x for x in values if x is not None) - min(x for x in values if x is not None))
        for k, values in enumerate(both)
    ]
    assert ranges[10] == 2.0
    wanted = np.sort(definition(sides[1], sides[0], ranges), axis=1)[:, :2]
    found = rows(
        con,
        f"SELECT dcr, second FROM sdc_dcr_records('(FROM all_types WHERE id < 80)', '(FROM all_types WHERE id >= 80)', columns := {columns}, categorical := ['CODE'], ordinal := ['rank'])",
    )
    np.testing.assert_allclose(np.array(found), wanted, atol=1e-12)


def test_weights_and_the_range_of_the_originals(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(TOY)
    without = rows(con, "SELECT dcr FROM sdc_dcr_records('t', 's', columns := ['age', 'sex', 'flag'])")
    assert rows(con, "SELECT dcr FROM sdc_dcr_records('t', 's', weights := {'Income': 0})") == without
    doubled = rows(
        con, "SELECT dcr FROM sdc_dcr_records('t', 's', weights := {'income': 2, 'age': 2, 'sex': 2.0, 'flag': 2})"
    )
    assert [x for (x,) in doubled] == pytest.approx(
        [x for (x,) in rows(con, "SELECT dcr FROM sdc_dcr_records('t', 's')")]
    )
    # 5000 is 2000 above the largest original income, of a range of 2000: the difference counts as 1.
    assert rows(con, "SELECT dcr FROM sdc_dcr_records('t', 's', columns := ['income'], range_from := 'original')") == [
        (0.0,),
        (0.2,),
        (1.0,),
    ]
    con.execute("UPDATE s SET income = 90000 WHERE income = 5000")
    assert rows(con, "SELECT dcr FROM sdc_dcr_records('t', 's', columns := ['income'], range_from := 'original')")[
        2
    ] == (1.0,)


def test_summary_and_histogram_hold_the_distances_of_the_records(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT hash(i) % 50 AS a, 'w' || hash(3 * i) % 6 AS b, hash(7 * i) % 9 / 9 AS c FROM range(3000) r(i)"
    )
    for distance, high in (("gower", 1.0), ("buckets", 3.0)):
        shared = f"'(FROM o LIMIT 1000)', '(FROM o LIMIT 700 OFFSET 900)', '(FROM o LIMIT 1000 OFFSET 2000)', distance := '{distance}'"
        wanted = rows(
            con,
            f"SELECT count(*), avg(dcr), min(dcr), quantile_cont(dcr, 0.05), median(dcr), max(dcr), count(*) FILTER (dcr = 0), avg(nndr) FROM sdc_dcr_records({shared})",
        )
        found = rows(con, f'SELECT records, mean, "min", q05, median, "max", zeros, nndr_mean FROM sdc_dcr({shared})')
        assert found[0] == pytest.approx(wanted[0])
        assert len(found) == 2
        histogram = rows(
            con, f"SELECT bin, low, high, records, share, holdout_records FROM sdc_dcr_histogram({shared})"
        )
        assert (histogram[0][3], histogram[0][5]) == (wanted[0][6], found[1][6])
        assert sum(row[3] for row in histogram) == 700
        assert sum(row[5] for row in histogram) == 1000
        assert sum(row[4] for row in histogram) == pytest.approx(1)
        assert histogram[-1][2] == pytest.approx(high)
        for number, low, top, records, *_ in histogram[1:]:
            where = f"dcr > {low} + 1e-12 AND dcr <= {top} + 1e-12 AND dcr > 0"
            assert rows(con, f"SELECT count(*) FROM sdc_dcr_records({shared}) WHERE {where}") == [(records,)], number


def test_copies_fail_and_fresh_records_pass(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT i, hash(5 * i) % 1000 AS a, hash(3 * i) % 100 AS b, hash(i) % 40 AS c FROM range(6000) r(i)"
    )
    tables = "'(FROM o WHERE i < 2000)', '(FROM o WHERE i {})', '(FROM o WHERE i BETWEEN 2000 AND 3999)', columns := ['a', 'b', 'c']"
    fresh, copied = tables.format(">= 4000"), tables.format("% 2 = 0 AND i < 2000")
    for function in ("sdc_dcr", "sdc_holdout_share"):
        assert rows(con, f'SELECT "pass", warning FROM {function}({fresh}) LIMIT 1') == [(True, None)]
        assert rows(con, f'SELECT "pass", warning FROM {function}({copied}) LIMIT 1') == [(False, None)]
    ((low, high),) = rows(con, f"SELECT low, high FROM sdc_holdout_share({fresh}) LIMIT 1")
    assert low < 0.5 < high
    assert rows(con, f"SELECT p_value, high FROM sdc_holdout_share({copied}) LIMIT 1") == [
        (pytest.approx(0, abs=1e-9), 1.0)
    ]


def test_a_holdout_with_training_records_is_noticed(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o AS SELECT i, hash(i) % 100000 AS a, hash(3 * i) % 50 AS b FROM range(4000) r(i)")
    leaking = "'(FROM o WHERE i < 2000)', '(FROM o WHERE i >= 3000)', '(FROM o WHERE i BETWEEN 1900 AND 2900)', columns := ['a', 'b']"
    clean = leaking.replace("1900", "2000")
    for function in ("sdc_holdout_share", "sdc_dcr", "sdc_identical_matches"):
        assert (
            "10.0 % of the holdout equal an original record"
            in rows(con, f"SELECT warning FROM {function}({leaking}) LIMIT 1")[0][0]
        )
        assert rows(con, f"SELECT warning FROM {function}({clean}) LIMIT 1") == [(None,)]
    # Of few columns with few values all records repeat each other: that is no leak.
    assert rows(
        con,
        f"SELECT holdout_matches, warning FROM sdc_identical_matches({clean.replace(chr(39) + 'a' + chr(39) + ', ', '')})",
    ) == [(901, None)]


@pytest.mark.parametrize("original", ["t", "(FROM t LIMIT 0)", "(FROM t LIMIT 1)"])
@pytest.mark.parametrize("synthetic", ["s", "(FROM s LIMIT 0)", "(FROM s LIMIT 1)"])
@pytest.mark.parametrize("distance", ["gower", "buckets"])
def test_empty_tables_and_tables_of_one_row(
    lasting: duckdb.DuckDBPyConnection, original: str, synthetic: str, distance: str
) -> None:
    lasting.execute(TOY)
    shared = f"'{original}', '{synthetic}', 'h', distance := '{distance}'"
    ((n,),) = rows(lasting, f"SELECT count(*) FROM {synthetic}")
    ((m,),) = rows(lasting, f"SELECT count(*) FROM {original}")
    found = rows(lasting, f"SELECT dcr, second, nndr, closer FROM sdc_dcr_records({shared})")
    assert len(found) == n
    assert all((row[0] is None) == (m == 0) and (row[1] is None) == (m < 2) == (row[2] is None) for row in found)
    assert rows(lasting, f"SELECT records, mean IS NULL FROM sdc_dcr({shared}) LIMIT 1") == [(n, n == 0 or m == 0)]
    assert rows(lasting, f"SELECT sum(records) FROM sdc_dcr_histogram({shared})") == [(n if m else 0,)]
    if m:
        assert rows(lasting, f"SELECT records, share IS NULL FROM sdc_holdout_share({shared}) LIMIT 1") == [(n, n == 0)]
    else:
        with pytest.raises(duckdb.Error, match="'original' has no records"):
            rows(lasting, f"FROM sdc_holdout_share({shared})")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("sdc_dcr('t', 'nobody')", "unknown table 'nobody'"),
        ("sdc_dcr(NULL, 's')", "argument 'original' must name a table"),
        ("sdc_dcr('t', '(SELECT 1 AS x)')", "original and synthetic have no column in common"),
        ("sdc_dcr('t', 's', columns := ['agee'])", "did you mean 'age'"),
        ("sdc_dcr('t', '(SELECT age FROM s)', columns := ['sex'])", "unknown column 'sex'"),
        ("sdc_dcr('t', 's', columns := ['age', 'AGE'])", "twice"),
        ("sdc_dcr('t', 's', columns := [NULL])", "holds a NULL"),
        ("sdc_dcr('t', '(SELECT age::VARCHAR AS age FROM s)')", "column 'age' is INTEGER in 'original' and VARCHAR in 'synthetic'"),
        ("sdc_dcr('t', 's', '(SELECT * REPLACE (sex = ''M'' AS sex) FROM h)')", "VARCHAR in 'original' and BOOLEAN in 'holdout'"),
        ("sdc_dcr('(SELECT [age] AS age FROM t)', '(SELECT [age] AS age FROM s)')", r"'age' of 'original' \(INTEGER\[\]\) holds neither"),
        ("sdc_dcr('(SELECT sex::BLOB AS b FROM t)', '(SELECT sex::BLOB AS b FROM s)')", "holds neither numbers nor categories"),
        ("sdc_dcr('t', 's', distance := 'euclid')", "'gower' or 'buckets'"),
        ("sdc_dcr('t', 's', range_from := 'synthetic')", "'all' or 'original'"),
        ("sdc_dcr('t', 's', buckets := 0)", "argument 'buckets'"),
        ("sdc_dcr('t', 's', buckets := 2.5)", "whole number"),
        ("sdc_dcr('t', 's', categorical := ['x'])", "unknown column 'x' in those that are compared"),
        ("sdc_dcr('t', 's', ordinal := ['sex'])", "must be of one ENUM type"),
        ("sdc_dcr('t', 's', weights := {'age': -1})", "at least 0"),
        ("sdc_dcr('t', 's', weights := {'age': 'x'})", "at least 0"),
        ("sdc_dcr('t', 's', weights := [1, 2])", "argument 'weights' must be a struct such as"),
        ("sdc_dcr('t', 's', weights := {'salary': 1})", "unknown column 'salary'"),
        ("sdc_dcr('t', 's', columns := ['age'], weights := {'age': 0})", "leaves no column"),
        ("sdc_dcr('t', '(SELECT ''infinity''::DOUBLE AS age)')", "column 'age' of 'synthetic' holds infinite values"),
        ("sdc_dcr('(SELECT ''-infinity''::DATE AS d)', '(SELECT DATE ''2020-01-01'' AS d)')", "column 'd' of 'original' holds infinite values"),
        ("sdc_dcr_histogram('t', 's', bins := 0)", "argument 'bins'"),
        ("sdc_dcr_records('t', 's', id := 'nr')", "unknown column 'nr'"),
        ("sdc_dcr_records('t', '(SELECT age, 1 AS dcr FROM s)', id := 'dcr')", "also one of the result"),
        ("sdc_dcr_records('t', 's', itself := true)", "name it twice"),
        ("sdc_dcr_records('t', 't', 'h', itself := true)", "leave 'holdout' out"),
        ("sdc_holdout_share('t', 's', NULL)", "argument 'holdout' must name records"),
        ("sdc_holdout_share('t', 's', 'h', confidence := 1)", "argument 'confidence' must be above 0 and below 1"),
        ("sdc_holdout_share('t', 's', '(FROM h LIMIT 0)')", "'holdout' has no records"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_said(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute(TOY)
    with pytest.raises(duckdb.Error, match=message) as raised:
        rows(lasting, f"FROM {call}")
    assert call.split("(")[0] in str(raised.value)
    assert "internal error" not in str(raised.value)


def test_labels_of_types_are_data_and_not_in_messages(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE a AS SELECT 'secret'::ENUM('secret') AS c; CREATE TABLE b AS SELECT 1 AS c")
    with pytest.raises(duckdb.Error, match="ENUM in 'original' and INTEGER in 'synthetic'") as raised:
        rows(con, "FROM sdc_dcr('a', 'b')")
    assert "secret" not in str(raised.value)


def test_texts_of_many_values_and_of_several_types_meet(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE a AS SELECT 'person ' || i AS name, i::BIGINT AS n FROM range(100000) r(i)")
    found = rows(
        con,
        "SELECT zeros, records, mean FROM sdc_dcr('a', '(SELECT * FROM a WHERE n % 2 = 0 UNION ALL SELECT ''nobody '' || i, i FROM range(5) r(i))')",
    )
    assert found == [(50000, 50005, pytest.approx(5 * 0.5 / 50005))]
    con.execute(
        "CREATE TABLE b AS SELECT 'x'::ENUM('x', 'y') AS c, 1::TINYINT AS n, DATE '2020-01-01' AS d; CREATE TABLE e AS SELECT 'x' AS c, 1.0::DOUBLE AS n, TIMESTAMP '2020-01-01' AS d"
    )
    for more in ("", ", categorical := ['n', 'd']", ", distance := 'buckets'"):
        assert rows(con, f"SELECT zeros FROM sdc_dcr('b', 'e'{more})") == [(1,)]
    assert rows(con, "SELECT matches FROM sdc_identical_matches('b', 'e')") == [(1,)]


def test_the_search_is_seen_and_can_be_prepared(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(TOY)
    con.execute("PREPARE p AS SELECT records FROM sdc_holdout_share('t', 's', 'h')")
    assert rows(con, "EXECUTE p") == rows(con, "EXECUTE p") == [(3,), (3,)]
    con.execute("CREATE VIEW v AS SELECT * FROM sdc_dcr_records('t', 's')".replace("VIEW", "TEMP VIEW"))
    assert rows(con, "SELECT count(*) FROM v") == [(3,)]


def test_statistics_are_those_of_scipy() -> None:
    from scipy.stats import binom, mannwhitneyu  # large: the product does without

    random = np.random.default_rng(1)
    for one, other in (
        (random.normal(size=300), random.normal(size=200) + 0.1),
        (random.integers(0, 5, 1000) / 5, random.integers(0, 6, 700) / 5),
        (np.array([0.1]), np.array([0.2, 0.3])),
    ):
        wanted = mannwhitneyu(one, other, alternative="less", method="asymptotic").pvalue
        assert smaller(one, np.append(other, np.nan)) == pytest.approx(wanted, rel=1e-9)
    assert smaller(np.ones(5), np.ones(3)) == 1.0
    assert smaller(np.ones(5), np.empty(0)) is None
    for successes, trials, chance in ((0, 10, 0.3), (3, 10, 0.3), (10, 10, 0.3), (50400, 100000, 0.5)):
        assert at_least(successes, trials, chance) == pytest.approx(binom.sf(successes - 1, trials, chance), rel=1e-8)


def test_a_long_search_shows_how_far_it_is_and_ends_when_interrupted() -> None:
    seen: list[float] = []

    def show(share: float) -> None:
        seen.append(share)
        con.interrupt()

    con = sdcduck.connect(progress=show)
    columns = ", ".join(f"hash({2 * k + 1} * i) / 2e19 AS c{k}" for k in range(12))
    half = times(100_000, 100_000, older=10_000)  # DuckDB 1 sees that it was interrupted when the search is over
    con.execute(f"CREATE TABLE o AS SELECT {columns} FROM range({2 * half}) r(i)")
    with pytest.raises(duckdb.InterruptException):
        con.execute(f"FROM sdc_holdout_share('(FROM o LIMIT {half})', 'o', '(FROM o OFFSET {half})')").fetchall()
    con.close()
    assert 0 <= seen[0] < 1


def test_columns_that_not_all_tables_have_are_named(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(TOY)
    more = "'(SELECT *, 1 AS id FROM t)', 's'"
    said = "not compared, because not all tables have it: 'id'"
    for function in ("sdc_dcr", "sdc_identical_matches", "sdc_replicated_uniques"):
        assert rows(con, f"SELECT warning FROM {function}({more})") == [(said,)]
    for function in ("sdc_dcr", "sdc_identical_matches", "sdc_replicated_uniques", "sdc_holdout_share"):
        assert rows(con, f"SELECT starts_with(warning, $${said}$$) FROM {function}({more}, 'h') LIMIT 1") == [(True,)]
        assert rows(
            con, f"SELECT contains(coalesce(warning, ''), 'not compared') FROM {function}('t', 's', 'h') LIMIT 1"
        ) == [(False,)]


@pytest.mark.parametrize(("holdouts", "wide", "told"), [(250, 5, True), (1000, 5, False), (250, 10**6, False)])
def test_ties_between_tables_of_different_size_are_warned_of(holdouts: int, wide: int, told: bool) -> None:
    """Each tie counts as half, which is too little or too much where one table has more records."""
    with sdcduck.connect() as con:
        [(warning,)] = con.execute(f"""
            SELECT warning FROM sdc_holdout_share(
                '(SELECT i * 7919 % 10007 % {wide} AS a, i * 104729 % 7919 % {wide} AS b FROM range(1000) t(i))',
                '(SELECT i * 7907 % 10009 % {wide} AS a, i * 15485863 % 6007 % {wide} AS b FROM range(1000) t(i))',
                '(SELECT i * 6311 % 9001 % {wide} AS a, i * 49999 % 8009 % {wide} AS b FROM range({holdouts}) t(i))')
            WHERE part = 'synthetic'""").fetchall()
    assert ("differ in size" in (warning or "")) == told


@pytest.fixture(scope="module")
def flipped() -> Iterator[duckdb.DuckDBPyConnection]:
    """A stand-in for the Adult files where they are absent: a public survey, half training and half holdout, and training
    records of which so many per cent of the values are replaced by another one of the column."""
    frame = pytest.importorskip("statsmodels.api").datasets.fair.load_pandas().data
    con = sdcduck.connect()
    con.register("frame", frame)
    con.execute("CREATE TABLE every AS SELECT row_number() OVER () AS nr, * FROM frame")
    con.execute("CREATE TABLE trn AS SELECT * FROM every WHERE nr % 2 = 0")
    con.execute("CREATE TABLE val AS SELECT * EXCLUDE (nr) FROM every WHERE nr % 2 = 1")
    columns = list(frame.columns)
    for share in (0, 10, 30, 50, 90):
        values = ", ".join(
            f"CASE WHEN hash(nr * 31 + {place}) % 100 < {share} "
            f"THEN list_extract((SELECT list({name} ORDER BY nr) FROM trn), 1 + (hash(nr * 37 + {place}) % 3183)::INTEGER) "
            f"ELSE {name} END AS {name}"
            for place, name in enumerate(columns)
        )
        con.execute(f"CREATE TABLE flip{share} AS SELECT {values} FROM trn")
    con.execute("ALTER TABLE trn DROP nr")
    con.unregister("frame")
    yield con
    con.close()


@pytest.mark.parametrize("distance", ["buckets", "gower"])
def test_the_more_values_are_replaced_the_smaller_the_share(flipped: duckdb.DuckDBPyConnection, distance: str) -> None:
    shares = [
        rows(
            flipped,
            f"SELECT share FROM sdc_holdout_share('trn', 'flip{flip}', 'val', distance := '{distance}') LIMIT 1",
        )[0][0]
        for flip in (0, 10, 30, 50, 90)
    ]
    assert shares == sorted(shares, reverse=True)
    # Of copies a tenth is tied, because the holdout has the same answers; each tie counts as half.
    assert shares[0] > 0.85 > shares[1] > 0.7 > shares[2] > 0.55
    assert shares[-1] == pytest.approx(0.5, abs=0.03)


def test_the_more_values_are_replaced_the_less_accurate_are_pairs(flipped: duckdb.DuckDBPyConnection) -> None:
    for ways, falls in ((1, False), (2, True), (3, True)):
        found = [
            rows(flipped, f"SELECT tvd FROM sdc_accuracy('trn', 'flip{flip}', ways := {ways}, buckets := 10)")[0][0]
            for flip in (0, 10, 30, 50, 90)
        ]
        assert found[0] == 0
        if falls:
            assert found == sorted(found)
            assert found[4] > 3 * found[1]
        else:
            assert max(found) < 0.03  # single columns keep their distributions


_CELL = st.tuples(st.integers(0, 4), st.sampled_from("xyz"), st.one_of(st.none(), st.integers(-3, 3)))


@settings(max_examples=8, deadline=None)
@given(records=st.lists(_CELL, min_size=3, max_size=3), seed=st.integers(1, 99))
def test_gower_distances_are_a_metric(
    lasting: duckdb.DuckDBPyConnection, records: list[tuple[int, str, int | None]], seed: int
) -> None:
    """Symmetric, between 0 and 1, no way around is shorter; rescaling a number and renaming categories change nothing."""
    con = lasting
    con.execute("CREATE OR REPLACE TABLE m (i INTEGER, a INTEGER, b VARCHAR, c INTEGER)")
    con.executemany("INSERT INTO m VALUES (?, ?, ?, ?)", [(i, *record) for i, record in enumerate(records)])
    con.execute(f"CREATE OR REPLACE TABLE n AS SELECT i, a * {seed} - 5 AS a, b || md5(b) AS b, -c AS c FROM m")

    def apart(one: int, other: int, table: str = "m") -> float:
        sides = [f"(FROM {table} WHERE i = {i})" for i in (one, other)]
        return float(
            con.execute(
                "SELECT dcr FROM sdc_dcr_records(?, ?, ?, columns := ['a', 'b', 'c'])", [*sides, table]
            ).fetchall()[0][0]
        )

    found = {pair: apart(*pair) for pair in itertools.product(range(3), repeat=2)}
    for (i, j), distance in found.items():
        assert 0 <= distance <= 1 + 1e-12
        assert distance == pytest.approx(found[j, i])
        assert (distance == 0) == (records[i] == records[j])
        assert apart(i, j, "n") == pytest.approx(distance)
        if all(record[2] is not None for record in records):
            assert all(distance <= found[i, k] + found[k, j] + 1e-12 for k in range(3))
