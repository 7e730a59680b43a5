"""Synthetic records through their door: SQL on a connection."""

from __future__ import annotations

import math
import pickle
import sys
import threading
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from interrupting import again_and_again

import sdcduck

SECRET = "the secret of the tests"


def with_persons(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """2000 records: income depends on age and education, taxes are a share of it, total = income + taxes."""
    rng = np.random.default_rng(7)
    n = 2000
    age = rng.integers(18, 90, n)
    education = rng.integers(0, 3, n)
    income = np.round(np.exp(6 + age / 60 + education / 2 + rng.normal(0, 0.3, n)), 2)
    income[rng.random(n) < 0.1] = 0
    table = pa.table(
        {
            "person": np.arange(n),
            "region": pa.array(rng.choice(["North", "South", "East"], n, p=[0.5, 0.3, 0.2])),
            "education": pa.array(np.array(["low", "middle", "high"])[education]),
            "age": age.astype(np.int16),
            "income": pa.array(income, mask=rng.random(n) < 0.05),
            "taxes": np.round(income * 0.3 + rng.random(n) * 20, 2),
            "swapped": rng.random(n) < 0.2,
        }
    )
    con.register("given", table)
    con.execute("CREATE TABLE persons AS SELECT *, income + taxes AS total FROM given")
    con.unregister("given")
    return con


@pytest.fixture
def persons(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    return with_persons(con)


@pytest.fixture(scope="module")
def same_persons(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """For tests that change nothing."""
    return with_persons(lasting)


SOURCE = "(SELECT region, education, age, income, taxes FROM persons)"


def ask(con: duckdb.DuckDBPyConnection, arguments: str = "", source: str = SOURCE) -> list[tuple[object, ...]]:
    """The synthetic records, in an order that does not depend on anything."""
    text = source.replace("'", "''")
    rows = con.execute(f"FROM sdc_synth_records('{text}', seed := 5{arguments and ', '}{arguments})").fetchall()
    return sorted(rows, key=str)


def values(con: duckdb.DuckDBPyConnection, sql: str) -> set[object]:
    return {row[0] for row in con.execute(sql).fetchall()}


# --- types and values ------------------------------------------------------------------------------------------------

ALL_TYPES = """
    CREATE TYPE mood AS ENUM ('good', 'it''s {0} bad');
    CREATE TABLE typed AS SELECT
        (i % 7)::TINYINT AS tiny, (i % 99)::USMALLINT AS small, i::INTEGER AS whole, i * 10**12 AS big,
        (i % 9 + 9007199254740993)::HUGEINT AS huge, (i % 5)::UBIGINT AS unsigned_big,
        (i / 7)::DECIMAL(9, 2) AS dec, (i % 11)::DECIMAL(30, 4) + 0.0001 AS wide_dec, i::DECIMAL(18, 0) AS no_scale,
        (i / 3)::FLOAT AS single,
        CASE i % 10 WHEN 0 THEN NULL WHEN 1 THEN 'nan' WHEN 2 THEN 'inf' WHEN 3 THEN '-inf' ELSE i / 3 END::DOUBLE AS dbl,
        i % 2 = 0 AS flag, 'c' || i % 4 AS txt, ['good', 'it''s {0} bad'][1 + i % 2]::mood AS en, CASE i % 3 WHEN 0
        THEN 'd6e1a3d2-6f2e-4a57-9d3b-3c8f2d1b0a11' ELSE 'a6e1a3d2-6f2e-4a57-9d3b-3c8f2d1b0a11' END::UUID AS id,
        CASE i % 20 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE DATE '1969-12-25' + (i % 30)::INTEGER END::DATE
            AS day,
        TIMESTAMP '2020-01-01' + to_microseconds(i) AS ts, (TIMESTAMP '2020-01-01' + to_seconds(i))::TIMESTAMP_S AS ts_s,
        (TIMESTAMP '2020-01-01' + to_seconds(i))::TIMESTAMP_MS AS ts_ms,
        make_timestamp_ns(1577836800000000001 + i) AS ts_ns, TIMESTAMPTZ '2020-01-01 00:00:00+00' + to_hours(i) AS ts_tz,
        TIME '10:00:00' + to_microseconds(i) AS tm, 'always' AS constant, NULL::INTEGER AS nothing,
        NULL::VARCHAR AS no_text, CASE WHEN i = 5 THEN 'once' ELSE 'often' END AS rare
    FROM (SELECT range::INTEGER AS i FROM range(300))
"""


@pytest.mark.parametrize("method", ["cart", "independent"])
def test_every_value_is_an_original_one_in_the_type_of_the_source(con: duckdb.DuckDBPyConnection, method: str) -> None:
    con.execute(ALL_TYPES)
    arguments = f"rows := 500, method := '{method}', smoothing := 'none'"
    con.execute(f"CREATE TABLE drawn AS FROM sdc_synth_records('typed', {arguments})")
    assert con.execute("DESCRIBE drawn").fetchall() == con.execute("DESCRIBE typed").fetchall()
    for name, *_ in con.execute("DESCRIBE typed").fetchall():
        strangers = con.execute(
            f"SELECT count(*) FROM drawn WHERE {name} IS NOT NULL AND {name}::VARCHAR NOT IN (SELECT DISTINCT {name}::VARCHAR FROM typed "
            f"WHERE {name} IS NOT NULL)"
        ).fetchall()[0][0]
        assert strangers == 0, name
    counts = con.execute(
        "SELECT count(*), count(nothing), count(no_text), count(DISTINCT constant), count(dbl), "
        "count(*) FILTER (isnan(dbl)), count(*) FILTER (dbl = 'inf'), count(*) FILTER (isinf(day)) FROM drawn"
    ).fetchall()[0]
    assert counts[:4] == (500, 0, 0, 1)
    assert 400 < counts[4] < 490
    assert all(20 < number < 90 for number in counts[5:])


def test_a_partial_synthesis_gives_back_what_it_keeps(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(ALL_TYPES)
    kept = "COLUMNS(* EXCLUDE (whole))::VARCHAR"
    drawn = con.execute(f"SELECT {kept} FROM sdc_synth_records('typed', columns := ['whole'])").fetchall()
    assert str(drawn) == str(con.execute(f"SELECT {kept} FROM typed").fetchall())


def test_columns_that_are_neither_numbers_nor_categories_are_refused(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT 1 AS a, [1, 2] AS l, 'x'::BLOB AS b, INTERVAL 1 DAY AS i, {'q': 1} AS s")
    for name in "lbis":
        with pytest.raises(duckdb.Error, match=f"column '{name}' .* holds neither numbers nor categories"):
            con.execute(f"FROM sdc_synth_records('(SELECT a, {name} FROM t)')")


# --- the same question has the same answer ---------------------------------------------------------------------------


def test_seed_and_secret_decide_and_nothing_else(persons: duckdb.DuckDBPyConnection) -> None:
    once = ask(persons)
    assert once == ask(persons)
    persons.execute("SET threads = 1")
    assert once == ask(persons, source=f"(FROM {SOURCE} ORDER BY hash(age, income))")
    assert once != ask(persons, "redraws := 3, minbucket := 6")
    # A record does not depend on how many there are.
    few = persons.execute(f"FROM sdc_synth_records('{SOURCE}', rows := 100, seed := 5)").fetchall()
    many = persons.execute(f"FROM sdc_synth_records('{SOURCE}', rows := 40000, seed := 5)").fetchall()
    assert Counter(map(str, few)) <= Counter(map(str, many))
    other = sdcduck.connect(secret="another secret of some length")
    other.register("given", persons.sql("FROM persons").to_arrow_table())
    other.execute("CREATE TABLE persons AS FROM given")
    assert ask(other) != once
    other.close()


def test_without_a_secret_a_seed_must_be_given() -> None:
    with sdcduck.connect() as con:
        con.execute("CREATE TABLE t AS SELECT range AS a FROM range(50)")
        with pytest.raises(duckdb.Error, match="can be made again by whoever knows its seed"):
            con.execute("FROM sdc_synth_records('t')")
        assert len(con.execute("FROM sdc_synth_records('t', seed := -3)").fetchall()) == 50


def test_the_seed_of_a_secret_is_not_in_the_plan(persons: duckdb.DuckDBPyConnection) -> None:
    plan = persons.execute(f"EXPLAIN FROM sdc_synth_records('{SOURCE}')").fetchall()[0][1]
    assert "secret" not in plan


# --- trees -----------------------------------------------------------------------------------------------------------


def test_one_huge_leaf_is_an_independent_bootstrap(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE line AS SELECT range AS x, 2 * range AS y FROM range(3000)")
    r = "SELECT corr(x, y) FROM sdc_synth_records('line', seed := 1, {})"
    assert abs(con.execute(r.format("minbucket := 3000")).fetchall()[0][0]) < 0.08
    assert abs(con.execute(r.format("method := 'independent'")).fetchall()[0][0]) < 0.08
    assert con.execute(r.format("minbucket := 5")).fetchall()[0][0] > 0.999


def test_leaves_of_one_record_reproduce_records(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE line AS SELECT range AS x, hash(range) % 1000003 AS y FROM range(500)")
    call = "(FROM sdc_synth_records(''line'', unique_copies := true, seed := 1, minbucket := {}))"
    replicas = {
        leaf: con.execute(f"SELECT recreated FROM sdc_synth_replicas('line', '{call.format(leaf)}')").fetchall()[0][0]
        for leaf in (1, 5, 100)
    }
    assert con.execute(
        "SELECT bool_and(y = hash(x) % 1000003) FROM sdc_synth_records('line', unique_copies := true, seed := 1, minbucket := 1)"
    ).fetchall() == [(True,)]
    assert replicas[1] > 300 > replicas[5] > replicas[100]


def test_the_first_variable_has_its_distribution_and_correlations_come_nearer_with_more_records(
    con: duckdb.DuckDBPyConnection,
) -> None:
    rng = np.random.default_rng(3)
    covariance = 0.5 * np.eye(4) + 0.5
    worst = []
    for n in (200, 20_000):
        con.register(
            "given", pa.table(dict(zip("abcd", rng.multivariate_normal(np.zeros(4), covariance, n).T, strict=True)))
        )
        con.execute("CREATE OR REPLACE TABLE copula AS FROM given")
        con.execute("CREATE OR REPLACE TABLE drawn AS FROM sdc_synth_records('copula', seed := 2)")
        ks = con.execute("SELECT ks FROM sdc_synth_moments('copula', 'drawn', columns := ['a'])").fetchall()[0][0]
        assert ks < 1.95 * math.sqrt(2 / n)
        worst.append(
            con.execute("SELECT sqrt(avg(difference ** 2)) FROM sdc_synth_correlations('copula', 'drawn')").fetchall()[
                0
            ][0]
        )
    assert worst[1] < worst[0] / 2
    assert worst[1] < 0.02


def test_missing_values_follow_what_they_depend_on(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT range % 10 AS a, CASE WHEN range % 10 < 3 THEN NULL ELSE range END AS b, "
        "CASE WHEN b IS NULL THEN 'x' ELSE 'y' END AS c FROM range(3000)"
    )
    wrong = con.execute(
        "SELECT count(*) FILTER ((a < 3) <> (b IS NULL)) + count(*) FILTER ((b IS NULL) <> (c = 'x')), "
        "count(*) FILTER (b IS NULL) FROM sdc_synth_records('t')"
    ).fetchall()[0]
    assert wrong[0] == 0
    assert 780 < wrong[1] < 1020


def test_many_classes_and_many_categories(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT 'place ' || (hash(range) % 300) AS place, "
        "'district ' || (hash(range) % 300 // 6) AS district, hash(range) % 300 * 10.0 + range % 7 AS rent FROM range(6000)"
    )
    right = con.execute(
        "SELECT avg((district = 'district ' || (substr(place, 7)::INTEGER // 6))::INTEGER), "
        "avg((floor(rent / 10) = substr(place, 7)::INTEGER)::INTEGER) FROM sdc_synth_records('t')"
    ).fetchall()[0]
    assert min(right) > 0.85


def test_texts_of_too_many_values_are_refused_with_advice(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT 'name ' || range AS name, range % 5 AS a FROM range(2000)")
    with pytest.raises(
        duckdb.Error, match=r"'name' has 2000 different texts in 2000 records, more than 1000: leave it out"
    ):
        con.execute("FROM sdc_synth_records('t')").fetchall()
    # In a short list half of the records would be most of the persons; a name each is none of the categories.
    for method in ("cart", "independent", "bootstrap-noise"):
        with pytest.raises(duckdb.Error, match="'name' has 300 different texts in 300 records, more than 150"):
            con.execute(f"FROM sdc_synth_records('(FROM t LIMIT 300)', method := '{method}')").fetchall()
    assert len(con.execute("FROM sdc_synth_records('(FROM t LIMIT 20)')").fetchall()) == 20
    assert len(con.execute("FROM sdc_synth_records('t', max_categories := 2000)").fetchall()) == 2000
    # What is kept is no predictor then, and nothing is refused.
    kept = con.execute("SELECT name FROM sdc_synth_records('t', columns := ['a'])").fetchall()
    assert kept == con.execute("SELECT name FROM t").fetchall()


def test_visit_sequence_and_predictors(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT range AS a, range AS b, range AS c FROM range(3000)")
    r = "SELECT round(corr(a, b), 1), round(corr(a, c), 1) FROM sdc_synth_records('t', visit := ['c', 'a'], {})"
    assert con.execute(r.format("seed := 1")).fetchall() == [(1.0, 1.0)]
    alone = con.execute(r.format("predictors := {'a': [], 'b': ['a']}")).fetchall()
    assert alone == [(1.0, 0.0)]
    one, listed = (
        con.execute(f"FROM sdc_synth_records('t', visit := {first}, seed := 1)").fetchall()
        for first in ("'C'", "['c']")
    )
    assert sorted(one) == sorted(listed)
    with pytest.raises(duckdb.Error, match="'b' is not known when 'a' is drawn; put it before in argument 'visit'"):
        con.execute("FROM sdc_synth_records('t', predictors := {'a': ['b']})")


def stored_array(con: duckdb.DuckDBPyConnection, name: str) -> list[int]:
    """An array of the only model that is stored."""
    blob = con.execute("SELECT arrays FROM sdc.synth_models").fetchall()[0][0]
    return pa.ipc.open_stream(blob).read_all()[name].combine_chunks().flatten().to_pylist()  # type: ignore[no-any-return]


SIZES = """
    CREATE OR REPLACE TABLE sizes AS SELECT range % 7 AS small, -1000 - range AS large, 'g' || range % 3 AS category,
        CASE WHEN range % 2 = 0 THEN 500.25 END::DECIMAL(9, 2) AS middle, DATE '2020-01-01' + (range % 40)::INTEGER AS day,
        (range % 2 = 0)::INTEGER * 10 AS weight, (range % 5)::HUGEINT * 3 AS huge
    FROM range(1000)
"""


def test_numbers_in_the_order_of_their_size(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(SIZES)
    columns = ["small", "large", "category", "middle", "day", "weight", "huge"]

    def order(arguments: str) -> list[str]:
        con.execute(
            f"FROM sdc_synth_model('m', 'sizes', visit := 'weighted_abs', replace := true, seed := 1{arguments})"
        )
        return [columns[place] for place in stored_array(con, "visit")]

    # Sums: small 3.0, large 1500, middle 250, weight 5, huge 6, each times 1000.
    assert order("") == ["category", "day", "large", "middle", "huge", "weight", "small"]
    assert order(", by := ['category']") == ["day", "large", "middle", "huge", "weight", "small"]
    assert order(", joint := ['small', 'day']") == ["small", "day", "category", "large", "middle", "huge", "weight"]
    # The weight comes last; whom it does not count does not count.
    con.execute("UPDATE sizes SET large = CASE WHEN weight = 0 THEN large ELSE 1 END")
    assert order("") == ["category", "day", "large", "middle", "huge", "weight", "small"]
    weighed = ["category", "day", "middle", "huge", "small", "large", "weight"]
    assert order(", weight := 'WEIGHT'") == weighed
    assert (
        order(", weight := 'weight', predictors := {'small': ['large', 'huge', 'day'], 'middle': ['huge']}") == weighed
    )
    drawn = con.execute("FROM sdc_synth_records(model := 'm', rows := 3000, seed := 1)").fetchall()
    direct = con.execute(
        "FROM sdc_synth_records('sizes', visit := 'weighted_abs', weight := 'weight', rows := 3000, seed := 1, "
        "predictors := {'small': ['large', 'huge', 'day'], 'middle': ['huge']})"
    ).fetchall()
    assert sorted(map(str, drawn)) == sorted(map(str, direct))


def test_allowed_predictors_are_used_as_far_as_they_come_before(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT range % 50 AS a, 1000 + range % 50 AS b FROM range(3000)")
    r = (
        "SELECT round(corr(a, b), 1) FROM sdc_synth_records('t', visit := 'weighted_abs', predictors := {'a': {}, 'b': "
        "['a']}, seed := 1)"
    )
    assert con.execute(r.replace("{}", "['b']", 1)).fetchall() == [(1.0,)]  # b comes first, and tells a
    assert con.execute(r.replace("{}", "[]", 1)).fetchall() == [(0.0,)]


def test_predictors_that_hardly_vary(con: duckdb.DuckDBPyConnection) -> None:
    # Which of the ten are 1 tells y; 10 of 1000 are, and two values are fewer than one to a hundred records.
    con.execute(
        "CREATE TABLE t AS SELECT (range < 10)::INTEGER AS rare, (range < 10)::INTEGER * 100 AS y FROM range(1000)"
    )
    kept = "SELECT count(*) FILTER (rare = 1 AND y = 100) > 5 FROM sdc_synth_records('t', rows := 1500, seed := 1{})"
    assert con.execute(kept.format("")).fetchall() == [(True,)]
    assert con.execute(kept.format(", near_constant := false")).fetchall() == [(False,)]
    # Of 52 and 948 the first is less than 19 times as frequent, and among 100 records two values are too many.
    for limited in ("FROM range(1000)", "FROM range(100)"):
        con.execute(f"CREATE OR REPLACE TABLE t AS SELECT (range < 52)::INTEGER AS rare, rare * 100 AS y {limited}")
        with_all, without = (
            con.execute(f"FROM sdc_synth_records('t', seed := 1, near_constant := {used}) ORDER BY ALL").fetchall()
            for used in ("true", "false")
        )
        assert with_all == without
    con.execute("CREATE OR REPLACE TABLE t AS SELECT 'k' AS constant, range AS y FROM range(100)")
    assert len(con.execute("FROM sdc_synth_records('t', seed := 1, near_constant := false)").fetchall()) == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("visit := 'largest'", "'visit' must be a list of columns, or 'weighted_abs'"),
        ("visit := ['day'], weight := 'weight'", "'weight' is for visit := 'weighted_abs'"),
        ("visit := 'weighted_abs', weight := 'category'", "'weight' must name a column of numbers"),
        ("visit := 'weighted_abs', weight := 'waight'", "unknown column 'waight'"),
        ("visit := 'weighted_abs', weight := 'middle'", "a weight is NULL, negative or no finite number"),
        ("visit := 'weighted_abs', weight := 'large'", "a weight is NULL, negative or no finite number"),
        ("visit := 'weighted_abs', weight := 'small', derived := {'small': '1'}", "'small', which is computed"),
    ],
)
def test_orders_that_cannot_be_found(lasting: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    lasting.execute(SIZES)
    with pytest.raises(duckdb.Error, match=message):
        lasting.execute(f"FROM sdc_synth_records('sizes', {arguments}, seed := 1)").fetchall()


def test_models_need_a_database_that_can_be_written_to(tmp_path: Path) -> None:
    file = tmp_path / "models.duckdb"
    with sdcduck.connect(file, secret=SECRET) as con:
        con.execute("CREATE TABLE t AS SELECT range AS a FROM range(50)")
        con.execute("FROM sdc_synth_model('m', 't')").fetchall()
    with sdcduck.connect(file, secret=SECRET, read_only=True) as con:
        assert len(con.execute("FROM sdc_synth_records(model := 'm')").fetchall()) == 50
        for call in ("sdc_synth_model('n', 't')", "sdc_drop_synth_model('m')"):
            with pytest.raises(duckdb.Error, match="models are stored in the database, which is open for reading only"):
                con.execute(f"FROM {call}")


def test_whole_records_with_noise(persons: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match="would hand out original records"):
        ask(persons, "method := 'bootstrap-noise', smoothing := 'none'")
    persons.execute(
        f"CREATE TABLE drawn AS FROM sdc_synth_records('{SOURCE}', method := 'bootstrap-noise', exclude := [])"
    )
    worst = persons.execute(f"SELECT max(abs(difference)) FROM sdc_synth_correlations('{SOURCE}', 'drawn')").fetchall()[
        0
    ][0]
    assert worst < 0.08
    recreated = persons.execute(f"SELECT recreated FROM sdc_synth_replicas('{SOURCE}', 'drawn')").fetchall()[0][0]
    assert recreated < 20


# --- noise and constraints -------------------------------------------------------------------------------------------


def test_noise_leaves_what_is_excluded_and_is_as_wide_as_its_group(con: duckdb.DuckDBPyConnection) -> None:
    rng = np.random.default_rng(1)
    con.register("given", pa.table({"x": np.concatenate([np.zeros(500), rng.normal(100, 15, 4500)])}))
    con.execute("CREATE TABLE t AS FROM given")
    drawn = "SELECT {} FROM sdc_synth_records('t', rows := 50000, smoothing := '{}', groups := 1, exclude := [{}])"
    zeros = con.execute(drawn.format("avg((x = 0)::INTEGER)", "density", "0")).fetchall()[0][0]
    assert abs(zeros - 0.1) < 0.01
    strangers = con.execute(drawn.format("count(*) FILTER (x NOT IN (FROM t))", "density", "0")).fetchall()[0][0]
    assert strangers > 44_000
    # One group: Silverman's bandwidth of all values; noise raises the variance by its square.
    x = np.sort(con.execute("FROM t").fetchnumpy()["x"])
    q1, q3 = np.quantile(x, [0.25, 0.75])
    h = 0.9 * min(x.std(ddof=1), (q3 - q1) / 1.34) * len(x) ** -0.2
    plain, noisy = (con.execute(drawn.format("var_samp(x)", how, "")).fetchall()[0][0] for how in ("none", "density"))
    # The same donors are drawn in both, so that the difference has little noise of its own.
    assert noisy - plain == pytest.approx(h * h, rel=0.6)


def test_the_largest_whole_numbers_are_numbers(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT unnest([9223372036854775807, -9223372036854775807, 4]) AS b FROM range(100)")
    assert values(con, "SELECT DISTINCT b FROM sdc_synth_records('t')") == {
        9223372036854775807,
        -9223372036854775807,
        4,
    }
    assert values(con, "SELECT DISTINCT b FROM sdc_synth_records('t', bounds := {'b': [0, 10]}, redraws := 0)") == {
        0,
        4,
        10,
    }


def test_results_are_finite_whatever_they_are_multiples_of(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT range * 1e3 AS x, range::DECIMAL(18, 2) AS d FROM range(100)")
    found = values(con, "SELECT DISTINCT isfinite(x) FROM sdc_synth_records('t', round_to := {'x': 1e-320})")
    assert found == {True}
    with pytest.raises(duckdb.Error, match="'round_to' must hold positive numbers"):
        con.execute("FROM sdc_synth_records('t', round_to := {'d': 1e308})")


def test_smoothed_numbers_keep_their_type_and_its_range(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT (range % 128)::TINYINT AS a, (range % 256)::UTINYINT AS b, (range / 3)::DECIMAL(6, 2) AS c, "
        "DATE '2020-01-01' + range::INTEGER AS d, 5 AS five FROM range(1000)"
    )
    con.execute(
        "CREATE TABLE drawn AS FROM sdc_synth_records('t', rows := 20000, smoothing := 'density', exclude := [])"
    )
    assert con.execute("DESCRIBE drawn").fetchall() == con.execute("DESCRIBE t").fetchall()
    assert con.execute("SELECT min(b) >= 0, max(a) = 127, min(five) = 5, max(five) = 5 FROM drawn").fetchall() == [
        (True,) * 4
    ]
    assert con.execute("SELECT count(DISTINCT c) FROM drawn").fetchall()[0][0] > 5000


def test_bounds_hold_and_redraws_clip_less(persons: duckdb.DuckDBPyConnection) -> None:
    clipped = []
    for redraws in (0, 1, 3, 10):
        call = (
            f"sdc_synth_records('{SOURCE}', rows := 20000, smoothing := 'density', exclude := [], details := true, "
            f"bounds := {{'income': [0, 5000], 'age': [18, 85]}}, non_negative := ['taxes'], redraws := {redraws})"
        )
        row = persons.execute(
            "SELECT min(income), max(income), min(age), max(age), min(taxes), sum(clipped_income::INTEGER), "
            f"sum((income IN (0, 5000))::INTEGER) FROM {call}"
        ).fetchall()[0]
        assert row[0] >= 0
        assert row[1] <= 5000
        assert row[2:4] == (18, 85)
        assert row[4] >= 0
        assert row[5] == row[6]  # nothing but clipping lies on a bound
        clipped.append(row[5])
    assert clipped == sorted(clipped, reverse=True)
    assert clipped[0] > clipped[-1]


def test_top_coding_and_rounding(persons: duckdb.DuckDBPyConnection) -> None:
    rows = ask(persons, "bounds := {'age': [NULL, 85]}, redraws := 0, round_to := {'income': 100, 'taxes': 0.5}")
    assert max(row[2] for row in rows) == 85  # type: ignore[type-var]
    old = persons.execute("SELECT avg((age >= 85)::INTEGER) FROM persons").fetchall()[0][0]
    assert sum(row[2] == 85 for row in rows) / len(rows) == pytest.approx(old, abs=0.03)
    assert all(row[3] is None or row[3] % 100 == 0 for row in rows)  # type: ignore[operator]
    assert all(row[4] % 0.5 == 0 for row in rows)  # type: ignore[operator]


def test_sums_are_kept(persons: duckdb.DuckDBPyConnection) -> None:
    wrong = persons.execute(
        "SELECT count(*), count(*) FILTER (total IS DISTINCT FROM income + taxes) FROM sdc_synth_records("
        "'(SELECT * EXCLUDE (person) FROM persons)', derived := {'total': 'income + taxes'}, smoothing := 'density')"
    ).fetchall()
    assert wrong == [(2000, 0)]


# --- strata and partial synthesis ------------------------------------------------------------------------------------


def test_strata_keep_their_sizes_and_their_values(persons: duckdb.DuckDBPyConnection) -> None:
    persons.execute("UPDATE persons SET age = age + 100 WHERE region = 'East'")
    sizes = "SELECT region, count(*), min(age) > 100 FROM {} GROUP BY region ORDER BY region"
    call = f"sdc_synth_records('{SOURCE}', by := ['region']{{}})"
    assert (
        persons.execute(sizes.format(call.format(""))).fetchall() == persons.execute(sizes.format("persons")).fetchall()
    )
    ten = persons.execute(sizes.format(call.format(", rows := 20000"))).fetchall()
    one = persons.execute(sizes.format("persons")).fetchall()
    assert [row[1] for row in ten] == [10 * row[1] for row in one]


def test_only_some_columns_of_some_records_are_synthesised(persons: duckdb.DuckDBPyConnection) -> None:
    def changes(arguments: str) -> tuple[int, int, int, int]:
        persons.execute(
            "CREATE OR REPLACE TABLE drawn AS FROM sdc_synth_records('persons', columns := ['income', 'taxes'], "
            f"derived := {{'total': 'income + taxes'}}, {arguments})"
        )
        return persons.execute(
            "SELECT count(*), count(*) FILTER ((o.income, o.taxes) IS DISTINCT FROM (s.income, s.taxes)), "
            "count(*) FILTER ((o.income, o.taxes) IS DISTINCT FROM (s.income, s.taxes) AND NOT o.swapped), "
            "count(*) FILTER ((o.region, o.education, o.age) IS DISTINCT FROM (s.region, s.education, s.age)) "
            "+ count(*) FILTER (s.total IS DISTINCT FROM s.income + s.taxes) "
            "FROM persons o JOIN drawn s USING (person)"
        ).fetchall()[0]  # type: ignore[return-value]

    swapped = persons.execute("SELECT count(*) FROM persons WHERE swapped").fetchall()[0][0]
    count, changed, outside, broken = changes("seed := 1")
    assert (count, broken) == (2000, 0)
    assert changed > 1900
    count, changed, outside, broken = changes("subset := 'swapped', smoothing := 'density'")
    assert (count, outside, broken) == (2000, 0, 0)
    assert 0.9 * swapped < changed <= swapped
    count, changed, outside, broken = changes("subset := 'swapped', share := 0.5, smoothing := 'density'")
    assert (count, outside, broken) == (2000, 0, 0)
    assert 0.4 * swapped < changed <= swapped // 2
    count, changed, outside, broken = changes("share := 0.1, by := ['region'], smoothing := 'density'")
    assert (count, broken) == (2000, 0)
    assert 150 < changed <= 200
    assert changes("subset := 'age > 1000'") == (2000, 0, 0, 0)
    assert changes("share := 0.0") == (2000, 0, 0, 0)


def test_a_size_class_as_predictor_keeps_the_sums_of_a_table(con: duckdb.DuckDBPyConnection) -> None:
    # The variants of Geyer et al. (2022) on skewed data: turnover by area and size class.
    rng = np.random.default_rng(11)
    n = 20_000
    x0 = np.exp(rng.normal(4, 1.5, n))
    parts = rng.dirichlet([2, 1, 1], n) * x0[:, None]
    con.register(
        "given", pa.table({"area": rng.integers(0, 1500, n), "x0": x0, **{f"x{k + 1}": parts[:, k] for k in range(3)}})
    )
    con.execute(
        "CREATE TABLE firms AS SELECT row_number() OVER () AS firm, *, floor(log2(x0))::INTEGER AS scl FROM given"
    )
    targets = "columns := ['x1', 'x2', 'x3', 'x0'], seed := 3"

    def loss(source: str, arguments: str) -> float:
        con.execute(f"CREATE OR REPLACE TABLE drawn AS FROM sdc_synth_records('{source}', {targets}{arguments})")
        return con.execute(  # type: ignore[no-any-return]
            "SELECT sum(abs(s.x - o.x)) / sum(abs(o.x)) FROM (SELECT area, scl, sum(x0) AS x FROM firms GROUP BY ALL) o "
            "JOIN (SELECT f.area, f.scl, sum(d.x0) AS x FROM drawn d JOIN firms f USING (firm) GROUP BY ALL) s "
            "USING (area, scl)"
        ).fetchall()[0][0]

    nothing = ", predictors := {'x1': [], 'x2': ['x1'], 'x3': ['x1', 'x2'], 'x0': ['x1', 'x2', 'x3']}"
    kept = ", predictors := {'x1': ['scl'], 'x2': ['scl', 'x1'], 'x3': ['scl', 'x1', 'x2'], 'x0': ['scl', 'x1', 'x2', 'x3']}"
    everybody = loss("firms", kept)
    assert loss("firms", nothing) > 2 * everybody
    # Synthesising fewer records costs less: a tenth by chance, half of the flagged ones, the flagged ones, all.
    flagged = "subset := 'firm % 5 = 0'"
    losses = [loss("firms", f"{kept}, {how}") for how in ("share := 0.1", f"{flagged}, share := 0.75", flagged)]
    assert losses == sorted(losses)
    assert losses[-1] < everybody


def test_training_on_a_sample(persons: duckdb.DuckDBPyConnection) -> None:
    once = ask(persons, "train_rows := 100, smoothing := 'none'")
    assert len(once) == 2000
    assert len({row[3] for row in once}) <= 100
    assert once == ask(persons, "train_rows := 100, smoothing := 'none'", f"(FROM {SOURCE} ORDER BY hash(age, income))")
    assert len(ask(persons, "train_rows := 10000000")) == 2000


# --- stored models ---------------------------------------------------------------------------------------------------


def test_a_stored_model_draws_the_same_records_without_the_source(tmp_path: Path) -> None:
    file = tmp_path / "models.duckdb"
    common = "smoothing := {'x': 'density'}, bounds := {'x': [0, 90]}, derived := {'twice': 'x * 2'}, by := ['g']"
    with sdcduck.connect(file, secret=SECRET) as con:
        con.execute(
            "CREATE TABLE t AS SELECT ['a', 'b', NULL][1 + (hash(range) % 3)::BIGINT] AS g, hash(range) % 100 AS h, "
            "(hash(range) % 97)::DOUBLE AS x, x * 2 AS twice, DATE '2020-01-01' + (hash(range) % 50)::INTEGER AS d FROM range(900)"
        )
        direct = sorted(con.execute(f"FROM sdc_synth_records('t', seed := 9, {common})").fetchall(), key=str)
        stored = con.execute(f"FROM sdc_synth_model('of t', 't', {common})").fetchall()
        assert stored[0][:3] == ("of t", "cart", 900)
        blob = con.execute("SELECT arrays FROM sdc.synth_models").fetchall()[0][0]
        con.execute("DROP TABLE t")
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(blob)
    assert pa.ipc.open_stream(blob).read_all().num_rows == 1
    with sdcduck.connect(file, secret=SECRET) as con:
        assert sorted(con.execute("FROM sdc_synth_records(model := 'of t', seed := 9)").fetchall(), key=str) == direct
        assert len(con.execute("FROM sdc_synth_records(model := 'of t', rows := 5)").fetchall()) == 5
        details = con.execute("DESCRIBE FROM sdc_synth_records(model := 'of t', details := true)").fetchall()
        assert [row[0] for row in details] == [
            "g",
            "h",
            "x",
            "twice",
            "d",
            "ldiv_h",
            "ldiv_x",
            "ldiv_d",
            "clipped_x",
            "unique_copy",
            "smoothed",
        ]
        assert con.execute("SELECT name, columns, records FROM sdc_synth_models()").fetchall() == [
            ("of t", "g, h, x, twice, d", 900)
        ]
        for wrong, message in (
            ("model := 'of y'", "unknown model 'of y'; did you mean 'of t'"),
            ("'t', model := 'of t'", "argument 'source' cannot be given with 'model'"),
            ("model := 'of t', minbucket := 7", "argument 'minbucket' cannot be given with 'model'"),
        ):
            with pytest.raises(duckdb.Error, match=message):
                con.execute(f"FROM sdc_synth_records({wrong})")
        with pytest.raises(duckdb.Error, match="there is a model 'of t'; give replace := true"):
            con.execute("FROM sdc_synth_model('of t', '(SELECT 1 AS a)')")
        con.execute("FROM sdc_synth_model('of t', '(SELECT 1 AS a)', replace := true)").fetchall()
        assert con.execute("FROM sdc_synth_records(model := 'of t', rows := 2)").fetchall() == [(1,), (1,)]
        con.execute("FROM sdc_drop_synth_model('of t')").fetchall()
        assert con.execute("FROM sdc_synth_models()").fetchall() == []
        with pytest.raises(duckdb.Error, match="unknown model 'of t'; there are none"):
            con.execute("FROM sdc_drop_synth_model('of t')")


def test_a_damaged_model_is_refused(persons: duckdb.DuckDBPyConnection) -> None:
    persons.execute(f"FROM sdc_synth_model('m', '{SOURCE}')").fetchall()
    blob = persons.execute("SELECT arrays FROM sdc.synth_models").fetchall()[0][0]
    row = pa.ipc.open_stream(blob).read_all()
    nodes = row["nodes"].combine_chunks().flatten().to_numpy().copy()
    inner = int(np.flatnonzero(nodes.reshape(-1, 6)[:, 0] >= 0)[0])
    nodes[6 * inner + 3] = 0  # a child that comes before its parent: a walk without end
    place = row.column_names.index("nodes")
    spoilt = row.set_column(place, "nodes", pa.array([nodes.tolist()], row.schema.field("nodes").type))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, spoilt.schema) as writer:
        writer.write_table(spoilt)
    persons.execute("UPDATE sdc.synth_models SET arrays = ?", [sink.getvalue().to_pybytes()])
    with pytest.raises(duckdb.Error, match="the stored model is damaged"):
        persons.execute("FROM sdc_synth_records(model := 'm')").fetchall()


def test_a_sampled_model_knows_the_sample_only(persons: duckdb.DuckDBPyConnection) -> None:
    persons.execute(f"FROM sdc_synth_model('m', '{SOURCE}', train_rows := 50)").fetchall()
    blob = persons.execute("SELECT arrays FROM sdc.synth_models").fetchall()[0][0]
    row = pa.ipc.open_stream(blob).read_all()
    assert max(len(row[name][0]) for name in row.column_names if name.startswith("dictionary")) <= 50


@pytest.mark.skipif(duckdb.__version__.startswith("1."), reason="DuckDB 1 sees an interruption after the work only")
def test_an_interrupted_model_is_not_stored() -> None:
    begun = threading.Event()

    def show(share: float) -> None:
        if share > 0:
            begun.set()

    with sdcduck.connect(secret=SECRET, progress=show) as con:
        columns = ", ".join(f"(hash(range * {k}) % 10007)::DOUBLE AS x{k}" for k in range(3, 43))
        con.execute(f"CREATE TABLE wide AS SELECT {columns} FROM range(20000)")
        con.execute("FROM sdc_synth_model('small', '(FROM wide LIMIT 100)')").fetchall()
        begun.clear()
        with again_and_again(con.interrupt, begun.is_set), pytest.raises(duckdb.InterruptException):
            con.execute("FROM sdc_synth_model('wide', 'wide')").fetchall()
        assert con.execute("SELECT name FROM sdc_synth_models()").fetchall() == [("small",)]


# --- odd input -------------------------------------------------------------------------------------------------------


def test_empty_tables_and_no_rows(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE nobody (a INTEGER, b VARCHAR, c DATE); CREATE TABLE one AS SELECT 1 AS a, 'x' AS b")
    assert con.execute("FROM sdc_synth_records('nobody')").fetchall() == []
    assert con.execute("FROM sdc_synth_records('nobody', columns := ['a'])").fetchall() == []
    assert [row[1] for row in con.execute("DESCRIBE FROM sdc_synth_records('nobody')").fetchall()] == [
        "INTEGER", "VARCHAR", "DATE",
    ]  # fmt: skip
    for call in ("sdc_synth_records('nobody', rows := 3)", "sdc_synth_model('m', 'nobody')"):
        with pytest.raises(duckdb.Error, match="there are no records to learn from"):
            con.execute(f"FROM {call}").fetchall()
    assert con.execute("FROM sdc_synth_records('one', rows := 0)").fetchall() == []
    for method in ("cart", "independent"):
        drawn = con.execute(f"FROM sdc_synth_records('one', rows := 2, method := '{method}')").fetchall()
        assert drawn == [(1, "x"), (1, "x")]


def test_as_many_rows_as_one_likes_are_not_all_made(persons: duckdb.DuckDBPyConnection) -> None:
    reader = persons.sql(f"FROM sdc_synth_records('{SOURCE}', rows := 1000000000)").to_arrow_reader(2048)
    assert reader.read_next_batch().num_rows > 0
    reader.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("rows := -1", "'rows' must be a whole number from 0 to"),
        ("rows := 2.5", "'rows' must be a whole number"),
        ("rows := 10, columns := ['age']", "'rows' is for records that are wholly synthetic"),
        ("columns := ['agge']", "unknown column 'agge' .*; did you mean 'age'"),
        ("columns := ['age', 'AGE']", "'columns' names a column twice"),
        ("columns := ['age', NULL]", "'columns' holds a NULL"),
        ("by := ['region'], columns := ['region']", "'region' cannot be synthesised"),
        ("by := ['region', 'education', 'age', 'income', 'taxes']", "no column left to be drawn"),
        ("visit := ['regoin']", "did you mean 'region'"),
        ("visit := ['region'], by := ['region']", "'visit' names 'region', which is not drawn"),
        ("method := 'gan'", "'method' must be .*'cart'"),
        ("minbucket := 1.5", "argument 'minbucket' must be a whole number, not 1.5"),
        ("subset := 'region'", "'subset' must be a condition, which is true or false: it is VARCHAR"),
        ("subset := 'count(*) > 1'", "'subset' must be a condition"),
        ("minbucket := 0", "'minbucket' must be a whole number of at least 1"),
        ("redraws := -1", "'redraws' must be a whole number of at least 0"),
        ("smoothing := 'spline'", "'smoothing' must be 'none' or 'density'"),
        ("smoothing := 3", "'smoothing' must be 'none', 'density' or a struct"),
        ("smoothing := {'region': 'density'}", "'smoothing' names 'region', which is not a number"),
        ("bounds := {'income': 5}", "'bounds' must hold pairs"),
        ("bounds := {'income': [5, 1]}", "nothing lies between the bounds of 'income'"),
        ("bounds := {'age': ['old', NULL]}", "a bound of 'age' is not of its type"),
        ("bounds := {'region': [0, 1]}", "'bounds' names 'region', which is not a number"),
        ("bounds := 7", "'bounds' must be a struct"),
        ("bounds := {'age': [NULL, -1]}, non_negative := ['age']", "the upper bound of 'age' is negative"),
        ("round_to := {'income': 0}", "'round_to' must hold positive numbers"),
        ("derived := {'taxes': 'incom * 2'}", "'derived': 'taxes' must be computed from columns that are not derived"),
        ("subset := 'agge > 4'", "'subset' must be a condition"),
        ("share := 1.5", "'share' must lie between 0 and 1"),
        ("train_rows := 0", "'train_rows' must be a whole number of at least 1"),
        ("predictors := {'age': 'region'}", "'predictors' must hold lists"),
        ("seed := 'x'", "'seed' must be a whole number of 64 bits"),
    ],
)
def test_bad_arguments_are_named(same_persons: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        same_persons.execute(f"FROM sdc_synth_records('{SOURCE}', {arguments})")


def test_other_bad_input(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT range AS a, range AS ldiv_a, range::HUGEINT AS h FROM range(20)")
    for call, message in (
        ("sdc_synth_records('tt')", "unknown table 'tt'"),
        ("sdc_synth_records()", "'source' must name a table"),
        ("sdc_synth_records('t', details := true)", "'ldiv_a' is also one of the details"),
        ("sdc_synth_records('t', smoothing := 'density')", "column 'h' has numbers of too many digits"),
        ("sdc_synth_model('', 't')", "'name' must be a name"),
        ("sdc_synth_records('(SELECT 1 AS _sdc_x)')", "may not begin with _sdc_"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            con.execute(f"FROM {call}")


def test_without_scikit_learn_the_message_says_what_to_install(
    persons: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    persons.execute(f"FROM sdc_synth_model('m', '{SOURCE}')").fetchall()
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(duckdb.Error, match=r"needs scikit-learn: pip install 'sdcduck\[synthesis\]'"):
        persons.execute(f"FROM sdc_synth_records('{SOURCE}')")
    assert persons.execute("FROM sdc_synth_records(model := 'm', rows := 3)").fetchall()
    assert len(ask(persons, "method := 'independent'")) == 2000


# --- beside synthpop -------------------------------------------------------------------------------------------------


def test_trees_are_about_as_good_and_as_risky_as_those_of_synthpop(
    con: duckdb.DuckDBPyConnection, reference_data: Path
) -> None:
    folder = reference_data / "synthpop"
    for name, file in (("original", "SD2011_12vars"), ("theirs", "syn_cart")):
        con.execute(f"CREATE TABLE {name} AS FROM read_csv('{folder}/{file}.csv.gz', nullstr = ['', 'NA'])")
    con.execute("CREATE TABLE ours AS FROM sdc_synth_records('original', seed := 2026)")
    con.execute("CREATE TABLE alone AS FROM sdc_synth_records('original', method := 'independent', seed := 2026)")

    def distance(table: str, columns: str) -> float:
        """Total variation between two tables of counts."""
        return con.execute(  # type: ignore[no-any-return]
            f"SELECT sum(abs(o - s)) / 2 / 5000 FROM (SELECT {columns}, count(*) FILTER (side = 0) AS o, "
            f"count(*) FILTER (side = 1) AS s FROM (SELECT {columns}, 0 AS side FROM original UNION ALL "
            f"SELECT {columns}, 1 FROM {table}) GROUP BY ALL)"
        ).fetchall()[0][0]

    tables = (
        "sex, edu",
        "agegr, marital",
        "edu, socprof",
        "region, placesize",
        "sex, edu, smoke",
        "marital, socprof",
        "ls",
    )
    ours, theirs, alone = ([distance(name, columns) for columns in tables] for name in ("ours", "theirs", "alone"))
    assert sum(ours) < 1.15 * sum(theirs)
    assert max(mine - other for mine, other in zip(ours, theirs, strict=True)) < 0.03
    assert sum(ours) < 0.6 * sum(alone)
    ks = "SELECT max(ks) FROM sdc_synth_moments('original', '{}', columns := ['age', 'income'])"
    assert con.execute(ks.format("ours")).fetchall()[0][0] < 0.045
    # Uniques of the keys that came up as uniques again, beside those of synthpop: 13.9 per cent.
    replicas = "SELECT 100 * unique_as_unique / 5000 FROM sdc_synth_replicas('original', '{}', columns := ['sex', 'age', 'region', 'placesize'])"
    mine, other = (con.execute(replicas.format(name)).fetchall()[0][0] for name in ("ours", "theirs"))
    assert other == pytest.approx(13.9, abs=0.005)
    assert mine == pytest.approx(other, abs=2)


JOINED = """
    CREATE OR REPLACE TABLE families AS
    SELECT (range % 80)::INTEGER AS age, (hash(range) % 1000)::INTEGER AS wages,
        CASE WHEN age < 15 THEN 'child' WHEN range % 7 = 0 THEN NULL ELSE 'grown' END AS status, (hash(range, 1) % 5)::INTEGER AS place
    FROM range(3000)
"""


@pytest.mark.parametrize("method", ["cart", "independent"])
def test_joint_columns_come_as_whole_combinations(con: duckdb.DuckDBPyConnection, method: str) -> None:
    con.execute(JOINED)
    call = f"'families', joint := ['status', 'age'], method := '{method}', seed := 3"
    con.execute(f"CREATE TABLE drawn AS FROM sdc_synth_records({call}, rows := 20000)")
    pairs = "SELECT DISTINCT age, status FROM {}"
    assert con.execute(f"{pairs.format('drawn')} EXCEPT {pairs.format('families')}").fetchall() == []
    [(r,)] = con.execute("SELECT count(DISTINCT (age, wages)) FROM drawn").fetchall()
    assert r > 3000  # wages are drawn on their own
    con.execute(f"FROM sdc_synth_model('m', {call})").fetchall()
    again = "FROM sdc_synth_records(model := 'm', rows := 20000, seed := 3)"
    assert con.execute(f"SELECT count(*) FROM (FROM drawn EXCEPT ALL ({again}))").fetchall() == [(0,)]
    [(share, whole)] = con.execute("""
        SELECT (SELECT avg((status IS NULL)::INTEGER) FROM drawn), (SELECT avg((status IS NULL)::INTEGER) FROM families)
    """).fetchall()
    assert share == pytest.approx(whole, abs=0.02)


def test_models_of_before_joint_columns_are_still_read(persons: duckdb.DuckDBPyConnection) -> None:
    for method in ("cart", "bootstrap-noise"):
        persons.execute(f"FROM sdc_synth_model('m', 'persons', method := '{method}', replace := true, seed := 1)")
        stored = persons.execute("SELECT arrays, header FROM sdc.synth_models").fetchall()[0]
        drawn = persons.execute("FROM sdc_synth_records(model := 'm', seed := 1) ORDER BY ALL").fetchall()
        row = pa.ipc.open_stream(stored[0]).read_all()
        place = row.column_names.index("shared")
        old = row.set_column(place, "shared", pa.array([[int(method != "cart")]], pa.large_list(pa.uint8())))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, old.schema) as writer:
            writer.write_table(old)
        header = stored[1].replace('"format": 3', '"format": 1').replace(', "rules": []', "")
        assert header != stored[1]
        persons.execute("UPDATE sdc.synth_models SET arrays = ?, header = ?", [sink.getvalue().to_pybytes(), header])
        assert persons.execute("FROM sdc_synth_records(model := 'm', seed := 1) ORDER BY ALL").fetchall() == drawn


def test_bounds_that_hold_under_conditions(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(JOINED)
    rules = "{'wages': {'age < 15': [0, 0], 'age >= 60': [100, NULL], 'place = 1': [NULL, 500]}}"
    call = f"'families', bounds_where := {rules}, derived := {{'place': 'age % 5'}}, seed := 3"
    with pytest.raises(duckdb.Error, match="neither derived nor bounded by conditions themselves"):
        con.execute(f"FROM sdc_synth_records({call})")
    call = f"'families', bounds_where := {rules}, details := true, seed := 3"
    for source in (call, f"{call}, smoothing := 'density'"):
        con.execute(f"CREATE OR REPLACE TABLE drawn AS FROM sdc_synth_records({source})")
        wrong = """
            count(*) FILTER (age < 15 AND wages <> 0), count(*) FILTER (age >= 60 AND wages < 100),
            count(*) FILTER (place = 1 AND wages > 500), count(*) FILTER (clipped_wages) > 300, count(*)
        """
        assert con.execute(f"SELECT {wrong} FROM drawn").fetchall() == [(0, 0, 0, True, 3000)]
    free = con.execute("SELECT max(wages), min(wages) FROM drawn WHERE age BETWEEN 15 AND 59 AND place <> 1").fetchall()
    assert free[0][0] > 900
    con.execute(f"FROM sdc_synth_model('m', 'families', bounds_where := {rules}, seed := 1)").fetchall()
    drawn = "sdc_synth_records(model := 'm', seed := 2)"
    assert con.execute(f"SELECT count(*) FROM {drawn} WHERE age < 15 AND wages <> 0").fetchall() == [(0,)]


def test_conditional_bounds_leave_alone_what_is_kept_and_what_is_missing(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(JOINED)
    rules = "{'wages': {'age < 15': [0, 0]}}"
    drawn = f"sdc_synth_records('families', columns := ['wages'], subset := 'place = 1', bounds_where := {rules}, seed := 1)"
    children = con.execute(
        f"SELECT place = 1, max(wages) > 0 FROM {drawn} WHERE age < 15 GROUP BY 1 ORDER BY 1"
    ).fetchall()
    assert children == [(False, True), (True, False)]
    con.execute("UPDATE families SET wages = NULL WHERE age < 10")
    drawn = f"sdc_synth_records('families', visit := ['age'], bounds_where := {rules}, seed := 1)"
    [(missing, other)] = con.execute(
        f"SELECT avg((wages IS NULL)::INTEGER), max(wages) FROM {drawn} WHERE age < 10"
    ).fetchall()
    assert missing > 0.9
    assert other in (None, 0)


def test_conditional_bounds_that_contradict_each_other(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(JOINED)
    rules = "{'wages': {'age < 15': [0, 0], 'age < 10': [5, 9]}}"
    with pytest.raises(duckdb.Error, match="nothing lies between the bounds of 'wages' where several hold"):
        con.execute(f"FROM sdc_synth_records('families', bounds_where := {rules}, seed := 1)").fetchall()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("joint := ['age']", "argument 'joint' needs two columns or more"),
        ("joint := ['age', 'wages'], method := 'bootstrap-noise'", "argument 'joint' needs two columns or more"),
        ("joint := ['age', 'agee']", "unknown column 'agee'"),
        ("joint := ['age', 'place'], by := ['place']", "'joint' names 'place', which is not drawn"),
        ("joint := ['age', 'wages'], predictors := {'wages': ['age']}", "drawn with others"),
        ("bounds_where := {'wages': [0, 1]}", "must hold conditions with bounds"),
        ("bounds_where := {'wages': {'age < 15': [0]}}", "pairs of a least and a largest value"),
        ("bounds_where := {'wages': {'age < 15': [1, 0]}}", "nothing lies between the bounds of 'wages'"),
        ("bounds_where := {'wages': {'agee < 15': [0, 1]}}", "agee"),
        ("bounds_where := {'wages': {'wages < 15': [0, 1]}}", "neither derived nor bounded by conditions"),
        ("bounds_where := {'wages': {'age < 15': ['x', 1]}}", "bounds"),
        ("bounds_where := {'status': {'age < 15': [0, 1]}}", "which is not a number"),
    ],
)
def test_joint_columns_and_conditions_that_cannot_be_used(
    lasting: duckdb.DuckDBPyConnection, arguments: str, message: str
) -> None:
    lasting.execute(JOINED)
    with pytest.raises(duckdb.Error, match=message):
        lasting.execute(f"FROM sdc_synth_records('families', {arguments}, seed := 1)")


# --- weights ---------------------------------------------------------------------------------------------------------


def with_weighed(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """3000 records of three strata, one of them NULL; who has a large x weighs more."""
    con.execute("""
        CREATE TABLE weighed AS
        SELECT ['a', 'b', NULL][1 + (hash(i) % 3)::INTEGER] AS stratum, (hash(i * 7) % 100)::INTEGER AS x,
            (1 + x / 20)::DECIMAL(9, 3) AS w
        FROM range(3000) t(i)
    """)
    return con


@pytest.fixture
def weighed(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    return with_weighed(con)


@pytest.fixture(scope="module")
def same_weighed(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """For tests that change nothing."""
    return with_weighed(lasting)


def equal(con: duckdb.DuckDBPyConnection, more: str = "", source: str = "weighed") -> list[tuple[object, ...]]:
    sql = f"FROM sdc_synth_equal_weights('{source}', 'W', by := ['stratum'], seed := 20240917{more}) ORDER BY ALL"
    return con.execute(sql).fetchall()


def test_equal_weights_keep_strata_and_totals(weighed: duckdb.DuckDBPyConnection) -> None:
    weighed.execute(
        "CREATE TABLE made AS FROM sdc_synth_equal_weights('weighed', 'w', by := ['stratum'], seed := 20240917)"
    )
    rows = weighed.execute("""
        SELECT o.n, m.n, o.total::DOUBLE, m.total, m.weights, o.mean, m.mean, o.plain, o.sd / sqrt(o.n)
        FROM (
            SELECT stratum, count(*) AS n, sum(w) AS total, sum(w * x) / sum(w) AS mean, avg(x) AS plain, stddev(x) AS sd
            FROM weighed GROUP BY stratum
        ) o JOIN (
            SELECT stratum, count(*) AS n, sum(w) AS total, count(DISTINCT w) AS weights, avg(x) AS mean
            FROM made GROUP BY stratum
        ) m ON o.stratum IS NOT DISTINCT FROM m.stratum
    """).fetchall()
    assert len(rows) == 3
    for n, drawn, total, made, weights, mean, found, plain, error in rows:
        assert (drawn, weights) == (n, 1)
        assert made == pytest.approx(total, rel=1e-9)
        assert found == pytest.approx(mean, abs=4 * error)
        assert abs(found - plain) > 4 * error  # unweighted means are others
    assert weighed.execute("SELECT count(*) FROM (FROM made EXCEPT FROM made SEMI JOIN weighed o "
                           "ON made.x = o.x AND made.stratum IS NOT DISTINCT FROM o.stratum)").fetchall() == [(0,)]  # fmt: skip


def test_the_order_of_the_records_is_nothing_to_equal_weights(weighed: duckdb.DuckDBPyConnection) -> None:
    once = equal(weighed)
    assert once == equal(weighed, source="(FROM weighed ORDER BY x DESC)")
    assert once == equal(
        weighed, source="(SELECT w, x, stratum FROM weighed)".replace("w, x, stratum", "stratum, x, w")
    )
    assert once != equal(weighed, ", max_rate := 0.2")
    weighed.execute("SET threads = 1")
    assert once == equal(weighed)


def test_no_stratum_has_more_than_its_share(weighed: duckdb.DuckDBPyConnection) -> None:
    weighed.execute("INSERT INTO weighed SELECT 'c', 1, 5 FROM range(10)")
    weighed.execute("CREATE TABLE made AS FROM sdc_synth_equal_weights('weighed', 'w', by := ['stratum'], max_rate := 0.2, "
                    "seed := 1)")  # fmt: skip
    totals = dict(weighed.execute("SELECT stratum, sum(w)::DOUBLE FROM weighed GROUP BY ALL").fetchall())
    for stratum, n, total in weighed.execute("SELECT stratum, count(*), sum(w) FROM made GROUP BY ALL").fetchall():
        assert n / totals[stratum] <= 0.2 + 1e-9
        assert n >= 0.2 * totals[stratum] - 1
        assert total == pytest.approx(totals[stratum], rel=1e-9)
    assert weighed.execute("SELECT count(*) FROM made WHERE stratum = 'c'").fetchall() == [(10,)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'weighed', 'v'", "unknown column 'v'"), ("'weighed', NULL", "argument 'weight' must name a column"),
        ("'weighed', 'stratum'", "must name a column of numbers: 'stratum' of 'weighed' is VARCHAR"),
        ("'weighed', 'w', by := ['w']", "argument 'by' names 'w', which is the weight"),
        ("'weighed', 'w', by := ['nowhere']", "unknown column 'nowhere'"),
        ("'weighed', 'w', max_rate := 0", "argument 'max_rate' must be above 0 and at most 1"),
        ("'weighed', 'w', max_rate := 1.5", "argument 'max_rate' must be above 0 and at most 1"),
        ("'(SELECT 4 AS w)', 'w', max_rate := 0.2", "the weights of a stratum are too small"),
        ("'(SELECT unnest([1, -1]) AS w)', 'w'", "a weight is NULL, negative or no finite number"),
        ("'(SELECT unnest([1, NULL]) AS w)', 'w'", "a weight is NULL, negative or no finite number"),
        ("'(SELECT ''nan''::DOUBLE AS w)', 'w'", "a weight is NULL, negative or no finite number"),
        ("'(SELECT 1 AS w, 2 AS _sdc_x)', 'w'", "a column may not begin with _sdc_"),
    ],
)  # fmt: skip
def test_weights_that_cannot_be_made_equal(same_weighed: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        same_weighed.execute(f"FROM sdc_synth_equal_weights({call}, seed := 1)").fetchall()


def test_equal_weights_of_nothing(weighed: duckdb.DuckDBPyConnection) -> None:
    assert equal(weighed, source="(FROM weighed WHERE false)") == []
    assert equal(weighed, source="(SELECT * REPLACE (0 AS w) FROM weighed)") == []


def test_records_with_equal_weights_keep_weighted_totals(weighed: duckdb.DuckDBPyConnection) -> None:
    weighed.execute("""
        CREATE TABLE made AS
        FROM sdc_synth_records(
            '(FROM sdc_synth_equal_weights(''weighed'', ''w'', by := [''stratum''], seed := 1))', by := ['stratum'], seed := 2)
    """)
    assert weighed.execute("SELECT sum(w) FROM made").fetchall()[0][0] == pytest.approx(
        float(weighed.execute("SELECT sum(w) FROM weighed").fetchall()[0][0]), rel=1e-9
    )
    z, mean = weighed.execute(
        "SELECT z, mean_original FROM sdc_synth_moments('weighed', 'made', weight := 'w')"
    ).fetchall()[0]
    assert abs(z) < 4
    assert mean != pytest.approx(49.5, abs=5)


# --- inference from several files ------------------------------------------------------------------------------------


def test_proper_synthesis_learns_from_records_drawn_with_replacement(con: duckdb.DuckDBPyConnection) -> None:
    """The share of a value among very many synthetic records is that of the records it was learnt from."""
    con.execute("CREATE TABLE halves AS SELECT i % 2 = 0 AS a, i % 20 AS s FROM range(100) t(i)")
    shares: dict[bool, list[float]] = {}
    for proper in (False, True):
        call = f"sdc_synth_records('(SELECT a FROM halves)', rows := 20000, unique_copies := true, proper := {proper}, seed := "
        shares[proper] = [con.execute(f"SELECT avg(a::INTEGER) FROM {call}{s})").fetchall()[0][0] for s in range(12)]
    assert np.var(shares[False], ddof=1) < 4 * 0.25 / 20000
    assert (
        0.25 / 100 / 2.5 < np.var(shares[True], ddof=1) < 0.25 / 100 * 2.5
    )  # chi-squared of 11 / 11: .24 to 2.43 but for 1 %
    kept = "SELECT s, count(*) FROM sdc_synth_records('halves', by := ['s'], proper := true, seed := 1) GROUP BY s"
    assert {n for _, n in con.execute(kept).fetchall()} == {5}
    con.execute("FROM sdc_synth_model('m', 'halves', method := 'parametric', proper := true, seed := 2)").fetchall()
    rows = "SELECT * FROM sdc_synth_records({}, seed := 2) ORDER BY ALL"
    stored = con.execute(rows.format("model := 'm'")).fetchall()
    assert stored == con.execute(rows.format("'halves', method := 'parametric', proper := true")).fetchall()
    assert stored != con.execute(rows.format("'halves', method := 'parametric'")).fetchall()


def test_intervals_from_several_files_cover_the_truth(con: duckdb.DuckDBPyConnection) -> None:
    # 400 samples of 100 from a population of mean 0, each a stratum of its own; m = 3.
    con.execute("SELECT setseed(0.5)")
    con.execute("""
        CREATE TABLE samples AS SELECT i % 400 AS sample, sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) AS y, 0 AS x
        FROM range(40000) t(i)
    """)
    analyses = " UNION ALL ".join(
        "SELECT sample, avg(y) AS q, var_samp(y) / count(*) AS v FROM "
        f"sdc_synth_records('samples', columns := {{}}, by := ['sample'], proper := PROPER, seed := {seed}) GROUP BY sample"
        for seed in (1, 2, 3)
    )
    # Of proper ones the variance of a sample comes once more, of which another third stays.
    for targets, proper, rule, width in (
        (["y"], False, "p", 4 / 3), (["y", "x"], False, "s", 4 / 3), (["y", "x"], True, "s", 5 / 3), (["y", "x"], True, "p", 5 / 3),
    ):  # fmt: skip
        low, high, drawn = f"low_{rule}", f"high_{rule}", analyses.replace("PROPER", str(proper))
        covered, narrow, ratio = con.execute(f"""
            SELECT avg((0 BETWEEN c.{low} AND c.{high})::INTEGER), avg((abs(c.q) < 1.96 * sqrt(c.v))::INTEGER),
                var_samp(c.q) * 100
            FROM (SELECT sdc_combine(q, v, sigma := 0, proper := {proper}) AS c FROM ({drawn.replace("{}", str(targets))}) GROUP BY sample)
        """).fetchall()[0]
        # Four standard errors of a share of 400; the variance is that of a sample, and a third of it once more.
        assert covered == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 400))
        assert ratio == pytest.approx(width, rel=4 * math.sqrt(2 / 400))
        assert narrow < covered
