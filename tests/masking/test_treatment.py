"""``sdc_substitute_subsample``: values of donors, a part of the records, weights that keep totals; spec 23, 2C and 3.5."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sdcduck.methods.masking.treatment import rates_of

CITIZENS = """CREATE TABLE citizens AS SELECT i AS id, i * 37 % 61 AS age, 'r' || i * i % 5 AS region, i % 4 AS job,
    CASE WHEN i % 11 > 0 THEN (i * 7919 % 1000) / 10 END AS income, i % 7 = 0 AS ill, 5.0 + i % 3 AS w,
    DATE '2000-01-01' + (i * 31 % 977)::INTEGER AS born FROM range(600) r(i)"""
CALL = (
    "weight := 'w', core := ['age', 'region'], extra := ['job', 'income'], substitute := ['age', 'job'], "
    "matching := ['age', 'income', 'born', 'ill'], by := ['region'], domains := ['region'], id := 'id'"
)


@pytest.fixture
def citizens(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute(CITIZENS)
    return con


def treated(con: duckdb.DuckDBPyConnection, more: str = "", name: str = "citizens") -> list[tuple[object, ...]]:
    return con.execute(f"FROM sdc_substitute_subsample('{name}', {CALL}{more}) ORDER BY id").fetchall()


def test_nothing_to_do_changes_nothing(citizens: duckdb.DuckDBPyConnection) -> None:
    rows = treated(citizens, ", psi := 0, phi := 1, calibrate := ['region', 'job']")
    assert rows == [
        tuple(row) for row in citizens.execute("SELECT * REPLACE (w::DOUBLE AS w) FROM citizens ORDER BY id").fetchall()
    ]


def test_what_is_left_and_what_is_changed(citizens: duckdb.DuckDBPyConnection) -> None:
    citizens.execute(f"CREATE TABLE t AS FROM sdc_substitute_subsample('citizens', {CALL}, psi := 0.3, seed := 1)")
    assert citizens.execute("DESCRIBE t").fetchall()[6][:2] == ("w", "DOUBLE")
    count, same, changed = citizens.execute(
        "SELECT count(*), count(*) FILTER ((t.age, t.job) = (c.age, c.job)), count(*) FILTER ((t.age, t.job) <> (c.age, c.job)) "
        "FROM t JOIN citizens c USING (id, region, ill, born)"
    ).fetchall()[0]
    assert abs(count - 480) <= 4
    assert same + changed == count
    found = citizens.execute(f"FROM sdc_substitute_subsample_report('citizens', {CALL}, psi := 0.3, seed := 1)")
    names = [column[0] for column in found.description or ()]
    report = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    assert [row["unique_by"] for row in report] == [
        "age, region",
        "age, region, job",
        "age, region, job, income",
        None,
        None,
    ]
    assert report[-1]["records"] == 600
    assert report[-1]["kept"] == count
    assert report[-1]["no_donor"] == 0
    for row in report[:-1]:
        assert row["substituted"] == round(row["records"] * 0.3)  # each has a donor that differs
        assert abs(row["kept"] - row["records"] * row["phi"]) < 1
    assert report[-1]["truthful"] == same  # a donor has other values in the columns that identify
    # Each is somebody's pair of age and job in the same region.
    strange = "SELECT count(*) FROM t WHERE (age, job, region) NOT IN (SELECT (age, job, region) FROM citizens)"
    assert citizens.execute(strange).fetchall() == [(0,)]


def test_risk_strata(citizens: duckdb.DuckDBPyConnection) -> None:
    """Unique by the core; else by one more column; else by another; else never. NULL is a value."""
    rows = citizens.execute(
        f"SELECT records FROM sdc_substitute_subsample_report('citizens', {CALL}) WHERE stratum IS NOT NULL"
    ).fetchall()
    keys = ["age, region", "age, region, job", "age, region, job, income"]
    unique = [f"count(*) OVER (PARTITION BY {one}) = 1" for one in keys]
    wanted = citizens.execute(
        f"SELECT count(*) FILTER (a), count(*) FILTER (b AND NOT a), count(*) FILTER (c AND NOT b AND NOT a), "
        f"count(*) FILTER (NOT c) FROM (SELECT {unique[0]} AS a, {unique[1]} AS b, {unique[2]} AS c FROM citizens)"
    ).fetchall()[0]
    assert [row[0] for row in rows] == list(wanted)


def test_the_nearest_donor(con: duckdb.DuckDBPyConnection) -> None:
    """Only 0 is substituted, and 2 is nearest to it among those of its sex with another job."""
    con.execute(
        """CREATE TABLE p AS SELECT * FROM (VALUES (0, 'f', 30, 'a'), (1, 'f', 31, 'a'), (2, 'f', 40, 'b'), (3, 'm', 30, 'c'),
        (4, 'f', 60, 'd'), (5, 'm', 30, 'c'), (6, 'f', 31, 'a'), (7, 'f', 40, 'b'), (8, 'f', 60, 'd')) t(id, sex, age, job)"""
    )
    rows = con.execute(
        """SELECT job FROM sdc_substitute_subsample('p', core := ['sex', 'age', 'job'], substitute := ['job'], matching := ['age'],
        by := ['sex'], psi := [1, 0], phi := 1, id := 'id') ORDER BY id"""
    ).fetchall()
    assert "".join(row[0] for row in rows) == "babcdcabd"
    nobody = con.execute(
        """SELECT no_donor, substituted FROM sdc_substitute_subsample_report('(FROM p WHERE sex = ''m'' OR id = 0)',
        core := ['sex', 'age', 'job'], substitute := ['job'], by := ['sex'], psi := [1, 0], phi := 1) WHERE stratum IS NULL"""
    ).fetchall()
    assert nobody == [(1, 0)]


def test_a_draw_hangs_on_seed_and_records_alone(citizens: duckdb.DuckDBPyConnection) -> None:
    citizens.execute("CREATE TABLE other AS FROM citizens ORDER BY id * 7919 % 601")
    first = treated(citizens, ", seed := 3")
    assert treated(citizens, ", seed := 3") == first
    assert treated(citizens, ", seed := 3", "other") == first
    citizens.execute("SET threads = 1")
    assert treated(citizens, ", seed := 3") == first
    assert treated(citizens, ", seed := 4") != first


def test_equal_records_without_an_identifier(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i % 3 AS a, i % 2 AS b FROM range(60) r(i)")
    call = "sdc_substitute_subsample('p', core := ['a'], substitute := ['a'], phi := 0.5, seed := 9)"
    rows = con.execute(f"SELECT a, b, count(*), sum(weight) FROM {call} GROUP BY ALL ORDER BY ALL").fetchall()
    assert sum(row[2] for row in rows) == 30
    con.execute("CREATE TABLE q AS FROM p ORDER BY a DESC, b")
    again = con.execute(
        f"SELECT a, b, count(*), sum(weight) FROM {call.replace(chr(39) + 'p', chr(39) + 'q')} GROUP BY ALL ORDER BY ALL"
    )
    assert again.fetchall() == rows


def test_totals_are_kept(citizens: duckdb.DuckDBPyConnection) -> None:
    """Also of a margin whose column is substituted."""
    call = f"sdc_substitute_subsample('citizens', {CALL}, calibrate := [['job'], ['region', 'ill']], seed := 2)"
    for by in ("job", "region, ill"):
        wanted = citizens.execute(f"SELECT {by}, sum(w)::DOUBLE FROM citizens GROUP BY ALL ORDER BY ALL").fetchall()
        found = citizens.execute(f"SELECT {by}, sum(w) FROM {call} GROUP BY ALL ORDER BY ALL").fetchall()
        assert [row[:-1] for row in found] == [row[:-1] for row in wanted]
        assert [row[-1] for row in found] == pytest.approx([row[-1] for row in wanted], rel=1e-6)
    with pytest.raises(duckdb.Error, match="after 2 tries a category of a margin has no record left: merge categories"):
        citizens.execute(
            f"FROM sdc_substitute_subsample('citizens', {CALL}, calibrate := ['born'], tries := 2, phi := 0.5)"
        ).fetchall()


def test_rates_of_strata() -> None:
    strata = np.repeat([0, 1, 2], [100, 200, 700])
    rates = rates_of(strata, 0.8, 3)
    assert rates @ [100, 200, 700] == pytest.approx(800)
    assert rates / rates[0] == pytest.approx([1, 0.76 / 0.70, 0.82 / 0.70])
    assert rates_of(strata, 1.0, 3).tolist() == [1, 1, 1]
    many = rates_of(strata, 0.97, 3)
    assert many.max() <= 1
    assert many @ [100, 200, 700] == pytest.approx(970)


def test_a_survey_of_20_000_and_200_outcomes(con: duckdb.DuckDBPyConnection) -> None:
    """Spec 23, 3.5: estimates stay, naive standard errors grow as 1 / sqrt(0.8) says, margins are met to 1e-6."""
    chance = np.random.default_rng(23)
    count = 20_000
    cell = chance.integers(0, 12, count)
    columns: dict[str, np.ndarray] = {"id": np.arange(count), "cell": cell, "w": chance.lognormal(0, 0.5, count)}
    names = [f"y{place}" for place in range(200)]
    for name in names:
        columns[name] = chance.random(count) < chance.uniform(0.05, 0.5) + 0.2 * (cell % 3) / 3
    con.register("made", pa.table(columns))
    con.execute("CREATE TABLE survey AS FROM made")
    con.execute(
        """CREATE TABLE treated AS FROM sdc_substitute_subsample('survey', weight := 'w', core := ['id'], substitute := ['cell'],
        psi := 0, phi := 0.8, domains := ['cell'], calibrate := ['cell'], id := 'id', seed := 23)"""
    )
    assert con.execute("SELECT count(*) FROM treated").fetchall() == [(16_000,)]
    for table in ("survey", "treated"):
        con.execute(f"CREATE TABLE e_{table} AS FROM sdc_estimates('{table}', {names}, weight := 'w')")
    found = con.execute(
        "SELECT ratios, mean FROM sdc_quality_summary('e_survey', 'e_treated', dimensions := ['measure']) ORDER BY quantity"
    ).fetchall()
    assert found[0] == (200, pytest.approx(1, abs=0.002))
    assert found[1] == (200, pytest.approx(1.12, abs=0.01))
    off = con.execute(
        "SELECT max(abs(a / b - 1)) FROM (SELECT cell, sum(w) AS a FROM treated GROUP BY cell) JOIN (SELECT cell, sum(w) AS b FROM survey GROUP BY cell) USING (cell)"
    ).fetchall()[0][0]
    assert off < 1e-6


def test_outcomes_are_kept_or_the_best_try_is_taken(citizens: duckdb.DuckDBPyConnection) -> None:
    what = "SELECT met, tries, estimates, off, ratio_se FROM sdc_substitute_subsample_report"
    first = citizens.execute(
        f"{what}('citizens', {CALL}, outcomes := ['ill', 'income'], tries := 1) WHERE stratum IS NULL"
    ).fetchall()[0]
    many = citizens.execute(
        f"{what}('citizens', {CALL}, outcomes := ['ill', 'income'], tries := 20) WHERE stratum IS NULL"
    ).fetchall()[0]
    assert (first[1], first[2]) == (1, many[2])
    assert many[3] <= first[3]
    assert many[0] == (many[3] == 0 and many[4] <= 1.02 / np.sqrt(0.8)) or many[3] > 0
    # The report's numbers are those of the functions for estimates.
    citizens.execute(
        f"CREATE TABLE t AS FROM sdc_substitute_subsample('citizens', {CALL}, outcomes := ['ill', 'income'], tries := 1)"
    )
    for name in ("citizens", "t"):
        citizens.execute(
            f"CREATE TABLE e_{name} AS FROM sdc_estimates('{name}', ['ill', 'income'], domains := ['region'], weight := 'w', nulls := 'leave_out')"
        )
    off, ratio = citizens.execute(
        "SELECT count(*) FILTER (abs(ratio_estimate - 1) > 0.05 AND se_original / estimate_original < 0.3), avg(ratio_se) "
        "FROM sdc_quality('e_citizens', 'e_t', dimensions := ['measure', 'region'])"
    ).fetchall()[0]
    assert (off, pytest.approx(ratio)) == (first[3], first[4])


def test_from_a_risky_file_to_a_released_one(citizens: duckdb.DuckDBPyConnection) -> None:
    """Fewer of the uniques of the released file are people who are unique in the original by the same values."""
    uniques = "SELECT age, region, job FROM {} GROUP BY ALL HAVING count(*) = 1"
    before = len(citizens.execute(uniques.format("citizens")).fetchall())
    citizens.execute(
        f"CREATE TABLE t AS FROM sdc_substitute_subsample('citizens', {CALL}, psi := [0.5, 0.5, 0.2, 0.02])"
    )
    still = citizens.execute(
        f"SELECT count(*) FROM ({uniques.format('citizens')}) u JOIN t USING (age, region, job) JOIN citizens c USING (id) "
        "WHERE (c.age, c.job) = (t.age, t.job)"
    ).fetchall()[0][0]
    assert before > 100
    assert still < 0.6 * before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'c'", "argument 'core' must name the columns that identify a person"),
        ("'c', core := ['age']", "argument 'substitute' must name the columns that get values of donors"),
        ("'c', core := ['age'], extra := ['AGE'], substitute := ['age']", "argument 'extra' names column 'age', which is one of the core"),
        ("'c', core := ['age'], substitute := ['age'], by := ['age']", "argument 'by' names column 'age', which is substituted"),
        ("'c', core := ['age'], substitute := ['id'], id := 'id'", "argument 'substitute' names column 'id', which is the weight or the identifier"),
        ("'c', core := ['age'], substitute := ['age'], psi := 20", "argument 'psi' must be a share from 0 to 1"),
        ("'c', core := ['age'], substitute := ['age'], psi := [0.1]", "argument 'psi' must hold 2 shares"),
        ("'c', core := ['age'], substitute := ['age'], phi := 0", "argument 'phi' must be above 0"),
        ("'c', core := ['age'], substitute := ['age'], weight := 'bad'", "1 of 5 records have a weight that is NULL, negative or no finite number"),
        ("'c', core := ['age'], substitute := ['name'], id := 'age'", "column 'age' is the same in several records"),
        ("'c', core := ['age'], substitute := ['age'], matching := ['list']", "column 'list' (INTEGER[]) holds neither numbers nor categories"),
        ("'c', core := ['age'], substitute := ['age'], outcomes := ['name']", "argument 'outcomes' must name a column of numbers"),
        ("'c', core := ['age'], substitute := ['age'], calibrate := [['age'], []]", "argument 'calibrate' must name columns"),
        ("'(SELECT *, 1 AS weight FROM c)', core := ['age'], substitute := ['age']", "a column called 'weight' is also one of the result"),
        ("'c', core := ['age'], substitute := ['age'], bounds := [1.5, 2]", "argument 'bounds' must be the least and the largest factor"),
        ("'c', core := ['age'], substitute := ['age'], tries := 0", "argument 'tries' must be a whole number from 1 to 1000"),
        ("'c', core := ['age'], substitute := ['age'], seed := NULL", "argument 'seed' must be a whole number"),
    ],
)  # fmt: skip
def test_bad_input(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute(
        "CREATE OR REPLACE TABLE c AS SELECT i AS id, i // 2 AS age, i - 1 AS bad, 'n' AS name, [1] AS list FROM range(5) r(i)"
    )
    with pytest.raises(duckdb.Error) as problem:
        lasting.execute(f"FROM sdc_substitute_subsample({call})").fetchall()
    assert message in str(problem.value)


def test_an_empty_table_stays_empty(con: duckdb.DuckDBPyConnection) -> None:
    call = "sdc_substitute_subsample('(SELECT 1 AS a, 2 AS b LIMIT 0)', core := ['a'], substitute := ['a'], calibrate := ['b'])"
    assert con.execute(f"FROM {call}").fetchall() == []
