"""``unique_copies``: whether a synthetic record may equal an original one that is the only one of its kind."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from sdcduck.methods.synthesis.noise import fine_bandwidths, grid

SEED = "seed := 20240917"


@pytest.fixture(scope="module")
def survey(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Seven columns, nearly all records unique, and as many records of a holdout."""
    lasting.execute(
        """CREATE OR REPLACE TABLE everyone AS SELECT range AS number,
        ['North', 'South', 'East'][1 + (hash(range) % 3)::BIGINT] AS region, (20 + hash(2 * range) % 60)::INTEGER AS age,
        hash(3 * range) % 2 = 0 AS sex, (age // 15 + hash(5 * range) % 4)::INTEGER AS education,
        (age // 10 + hash(7 * range) % 5)::INTEGER AS household,
        CASE WHEN hash(13 * range) % 10 > 0 THEN (100 * (20 + age + hash(9 * range) % 20))::DOUBLE END AS wages,
        hash(11 * range) % 3 = 0 AS owner FROM range(4000)"""
    )
    for name, condition in (("survey", "number < 2000"), ("holdout", "number >= 2000")):
        lasting.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * EXCLUDE (number) FROM everyone WHERE {condition}")
    return lasting


def copies(con: duckdb.DuckDBPyConnection, original: str, arguments: str) -> tuple[int, int, int]:
    """Synthetic records, those that are a copy, and the original uniques that have one."""
    con.execute(f"CREATE OR REPLACE TABLE drawn AS FROM sdc_synth_records({arguments})")
    row = con.execute(
        f"SELECT synthetic_records, recreated_synthetic, unique_recreated FROM sdc_synth_replicas('{original}', 'drawn')"
    ).fetchone()
    assert row is not None
    return row


def test_no_unique_comes_up_again(survey: duckdb.DuckDBPyConnection) -> None:
    n, before, uniques = copies(survey, "survey", f"'survey', unique_copies := true, {SEED}")
    _, beside, _ = copies(survey, "holdout", f"'survey', unique_copies := true, {SEED}")
    assert before > 3 * beside  # the trees give more away than chance does
    assert uniques > 100
    n, after, uniques = copies(survey, "survey", f"'survey', unique_copies := false, {SEED}")
    assert n == 2000
    assert uniques == 0
    assert after < beside


@pytest.mark.parametrize(
    "more",
    [
        "rows := 5000",
        "by := ['region']",
        "joint := ['region', 'sex']",
        "round_to := {'wages': 500}",
        "smoothing := {'age': 'density'}, bounds := {'age': [20, 60]}",
        "method := 'independent'",
        "minbucket := 50, visit := ['wages']",
    ],
)
def test_with_other_arguments(survey: duckdb.DuckDBPyConnection, more: str) -> None:
    assert copies(survey, "survey", f"'survey', unique_copies := false, {more}, {SEED}")[2] == 0


def test_others_stay_as_they_were(survey: duckdb.DuckDBPyConnection) -> None:
    """Only what is refused is drawn again: all else is the record of the same number."""
    n, _, _ = copies(survey, "survey", f"'survey', unique_copies := true, {SEED}")
    survey.execute("CREATE OR REPLACE TABLE before AS FROM drawn")
    row = survey.execute("SELECT recreated_synthetic FROM sdc_synth_replicas('survey', 'before')").fetchone()
    assert row is not None
    copies(survey, "survey", f"'survey', unique_copies := false, {SEED}")
    same = survey.execute("SELECT count(*) FROM (FROM drawn INTERSECT ALL FROM before)").fetchone()
    assert same is not None
    assert n - row[0] <= same[0] < n


def test_the_default_is_as_safe_where_copies_are_few(survey: duckdb.DuckDBPyConnection) -> None:
    """11 % of the records are copies of uniques as drawn: they are drawn again, and all others stay."""
    copies(survey, "survey", f"'survey', unique_copies := false, {SEED}")
    survey.execute("CREATE OR REPLACE TABLE strict AS FROM drawn")
    assert copies(survey, "survey", f"'survey', {SEED}")[2] == 0
    assert survey.execute("FROM strict EXCEPT ALL FROM drawn").fetchall() == []
    flagged = "SELECT count(*) FILTER (unique_copy), count(*) FROM sdc_synth_records('survey', details := true"
    assert survey.execute(f"{flagged}, {SEED})").fetchall() == [(0, 2000)]


def test_details_say_which_records_are_copies(survey: duckdb.DuckDBPyConnection) -> None:
    """Those that a join finds, whether drawn as they come or from a stored model."""
    survey.execute(
        "FROM sdc_synth_model('as_drawn', 'survey', unique_copies := true, seed := 1, replace := true)"
    ).fetchall()
    for arguments in ("'survey', unique_copies := true", "model := 'as_drawn'"):
        survey.execute(f"CREATE OR REPLACE TABLE drawn AS FROM sdc_synth_records({arguments}, details := true, {SEED})")
        wrong, found = survey.execute(
            """WITH uniques AS (FROM survey GROUP BY ALL HAVING count(*) = 1)
            SELECT count(*) FILTER (unique_copy IS DISTINCT FROM (u.age IS NOT NULL)), count(*) FILTER (unique_copy)
            FROM drawn d LEFT JOIN uniques u ON d.region = u.region AND d.age = u.age AND d.sex = u.sex
                AND d.education = u.education AND d.household = u.household AND d.wages IS NOT DISTINCT FROM u.wages
                AND d.owner = u.owner"""
        ).fetchall()[0]
        assert wrong == 0
        assert found > 100


def test_the_default_keeps_the_distribution_where_nearly_all_are_copies(survey: duckdb.DuckDBPyConnection) -> None:
    """A tenth of the amounts is 0 and all others differ: drawn again until no copy is left, all would be 0."""
    source = "(SELECT CASE WHEN range % 10 > 0 THEN range + 0.25 ELSE 0 END AS v FROM range(1000))"
    share = "SELECT avg((v = 0)::INTEGER) FROM sdc_synth_records"
    (kept,), (other,) = (
        survey.execute(f"{share}('{source}', {more}{SEED})").fetchall()[0] for more in ("", "unique_copies := true, ")
    )
    assert kept == other
    assert 0.07 < kept < 0.13
    drawn = survey.execute(
        f"SELECT count(*) FILTER (unique_copy), count(*) FILTER (unique_copy <> (v <> 0)) "
        f"FROM sdc_synth_records('{source}', details := true, {SEED})"
    ).fetchall()
    assert drawn == [(round(1000 * (1 - kept)), 0)]


@pytest.mark.parametrize(("zeros", "left"), [(85, 0), (65, 35)])
def test_up_to_a_quarter_is_drawn_again(survey: duckdb.DuckDBPyConnection, zeros: int, left: int) -> None:
    """15 % of the amounts are unique: none comes up; where 35 % are, all come as they are drawn."""
    source = f"(SELECT CASE WHEN range < {10 * zeros} THEN range % 2 ELSE range + 0.25 END AS v FROM range(1000))"
    row = survey.execute(
        f"SELECT 100 * avg((v > 1)::INTEGER) FROM sdc_synth_records('{source}', rows := 4000, {SEED})"
    ).fetchone()
    assert row is not None
    assert abs(row[0] - left) < (3 if left else 1e-9)


def test_the_default_goes_with_what_the_strict_form_refuses(survey: duckdb.DuckDBPyConnection) -> None:
    rules = "bounds_where := {'wages': {'age < 30': [0, 3000]}}"
    drawn = f"sdc_synth_records('survey', {rules}, details := true, {SEED})"
    assert survey.execute(f"SELECT DISTINCT unique_copy FROM {drawn}").fetchall() == [(None,)]
    columns = survey.execute(f"DESCRIBE FROM sdc_synth_records('survey', columns := ['age'], details := true, {SEED})")
    assert "unique_copy" not in {name for name, *_ in columns.fetchall()}


def test_a_column_that_details_have_too(survey: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match="'unique_copy' is also one of the details"):
        survey.execute(f"FROM sdc_synth_records('(SELECT 1 AS Unique_Copy)', details := true, {SEED})")


def test_same_at_any_number_of_threads_and_from_a_stored_model(survey: duckdb.DuckDBPyConnection) -> None:
    arguments = f"'survey', unique_copies := false, {SEED}"
    copies(survey, "survey", arguments)
    survey.execute("CREATE OR REPLACE TABLE one AS FROM drawn")
    survey.execute("SET threads = 1")
    copies(survey, "survey", arguments)
    survey.execute("RESET threads")
    survey.execute(
        "FROM sdc_synth_model('no_uniques', 'survey', unique_copies := false, seed := 1, replace := true)"
    ).fetchall()
    survey.execute(f"CREATE OR REPLACE TABLE stored AS FROM sdc_synth_records(model := 'no_uniques', {SEED})")
    for other in ("drawn", "stored"):
        assert survey.execute(f"FROM one EXCEPT ALL FROM {other}").fetchall() == []


def test_where_nothing_else_can_be_drawn(survey: duckdb.DuckDBPyConnection) -> None:
    """A column of different numbers has nothing but uniques; noise makes others of them."""
    source = "'(SELECT range + 0.25 AS v FROM range(50))', unique_copies := false"
    with pytest.raises(duckdb.Error, match=r"unique originals again and again; put noise .*smoothing := 'density'"):
        survey.execute(f"FROM sdc_synth_records({source}, {SEED})").fetchall()
    drawn = survey.execute(
        f"FROM sdc_synth_records('(SELECT (range + 0.25)::DOUBLE AS v FROM range(50))', unique_copies := false, "
        f"smoothing := 'density', groups := 2, {SEED})"
    ).fetchall()
    assert len(drawn) == 50
    assert not {v for (v,) in drawn} & {i + 0.25 for i in range(50)}


def test_leaves_of_one_record(survey: duckdb.DuckDBPyConnection) -> None:
    """Each tree then leads back to the record that it came from: it is said, and nothing is handed out."""
    with pytest.raises(duckdb.Error, match="again and again"):
        survey.execute(f"FROM sdc_synth_records('survey', unique_copies := false, minbucket := 1, {SEED})").fetchall()


def test_nulls_and_special_numbers_are_values(survey: duckdb.DuckDBPyConnection) -> None:
    """NULL, NaN and infinity come once each: they are never drawn, the 20 zeros are."""
    source = "(SELECT unnest([NULL, ''NaN'', ''inf'', ''-inf''])::DOUBLE AS v UNION ALL SELECT 0 FROM range(20))"
    drawn = survey.execute(
        f"FROM sdc_synth_records('{source}', unique_copies := false, rows := 300, {SEED})"
    ).fetchall()
    assert drawn == [(0.0,)] * 300


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("columns := ['wages']", "wholly synthetic"),
        ("share := 0.5", "wholly synthetic"),
        ("subset := 'owner'", "wholly synthetic"),
        ("bounds_where := {'wages': {'age < 30': [0, 100]}}", "bounds_where"),
    ],
)
def test_what_it_does_not_go_with(survey: duckdb.DuckDBPyConnection, more: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        survey.execute(f"FROM sdc_synth_records('survey', unique_copies := false, {more}, {SEED})")


def test_a_stored_model_has_it_already(survey: duckdb.DuckDBPyConnection) -> None:
    survey.execute("FROM sdc_synth_model('plain', 'survey', seed := 1, replace := true)").fetchall()
    with pytest.raises(duckdb.Error, match="'unique_copies' cannot be given with 'model'"):
        survey.execute(f"FROM sdc_synth_records(model := 'plain', unique_copies := false, {SEED})")


INCOMES = """(SELECT ['North', 'South'][1 + (hash(range) % 2)::BIGINT] AS region, (20 + hash(2 * range) % 60)::INTEGER AS age,
    CASE hash(17 * range) % 10 WHEN 0 THEN 0 WHEN 1 THEN 2000 WHEN 2 THEN NULL
    ELSE 500 + (hash(3 * range) % 700000) / 100 END::DECIMAL(9, 2) AS income FROM range(3000))"""
OWN = "income IN (SELECT income FROM incomes GROUP BY income HAVING count(*) = 1)"


@pytest.fixture(scope="module")
def incomes(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """To the cent, of which some are shared by many and some are missing."""
    lasting.execute(f"CREATE OR REPLACE TABLE incomes AS FROM {INCOMES}")
    return lasting


def shares(con: duckdb.DuckDBPyConnection, arguments: str) -> tuple[float, ...]:
    """Of the synthetic incomes: copies of unique records, those of one person, 0, 2000, NULL, and negative ones; the mean."""
    row = con.execute(
        f"""SELECT avg(unique_copy::INTEGER), avg(coalesce({OWN}, false)::INTEGER), avg(coalesce(income = 0, false)::INTEGER),
            avg(coalesce(income = 2000, false)::INTEGER), avg((income IS NULL)::INTEGER), min(income), avg(income)
        FROM sdc_synth_records('incomes', details := true, {arguments}, {SEED})"""
    ).fetchone()
    assert row is not None
    return tuple(map(float, row))


def test_fine_amounts_are_not_those_of_a_person(incomes: duckdb.DuckDBPyConnection) -> None:
    """As synthpop draws, two thirds are; smoothed, hardly one is, and what many share keeps its share."""
    as_drawn = shares(incomes, "unique_copies := true")
    smoothed = shares(incomes, "rows := 3000")
    assert as_drawn[0] > 0.4
    assert as_drawn[1] > 0.6
    assert smoothed[0] == 0
    assert smoothed[1] < 0.01
    for before, after in zip(as_drawn[2:5], smoothed[2:5], strict=True):
        assert abs(before - after) < 0.003
        assert before > 0.07
    assert smoothed[5] == 0
    assert abs(smoothed[6] / as_drawn[6] - 1) < 0.01


def test_which_numbers_were_smoothed(incomes: duckdb.DuckDBPyConnection) -> None:
    """Those that one person had; 0, 2000 and NULL were not, and neither were ages."""
    drawn = f"sdc_synth_records('incomes', details := true, {SEED})"
    wrong, cents = incomes.execute(
        f"""SELECT count(*) FILTER ((smoothed = ['income']) <> (coalesce(income, 0) NOT IN (0, 2000)) AND NOT coalesce({OWN}, false)),
            count(*) FILTER (income * 100 % 10 <> 0) FROM {drawn}"""
    ).fetchall()[0]
    assert wrong == 0
    assert cents > 1000
    for arguments in ("smoothing := 'none'", "unique_copies := true", "smoothing := {'income': 'none'}"):
        listed = incomes.execute(
            f"SELECT DISTINCT smoothed FROM sdc_synth_records('incomes', {arguments}, details := true, {SEED})"
        )
        assert listed.fetchall() == [([],)]


def test_smoothed_amounts_lie_on_the_grid_and_come_from_a_stored_model(incomes: duckdb.DuckDBPyConnection) -> None:
    source = "(SELECT age, income::INTEGER * 0.05::DOUBLE AS a, (income::INTEGER * 50)::BIGINT AS b FROM incomes)"
    off = incomes.execute(
        f"""SELECT count(*) FILTER (a <> round(a * 20) / 20), count(*) FILTER (b % 50 <> 0), count(*) FILTER (len(smoothed) > 1)
        FROM sdc_synth_records('{source}', details := true, {SEED})"""
    ).fetchall()
    assert off[0][:2] == (0, 0)
    assert off[0][2] > 1000
    incomes.execute("FROM sdc_synth_model('fine', 'incomes', seed := 1, replace := true)").fetchall()
    direct = incomes.execute(f"FROM sdc_synth_records('incomes', {SEED}) ORDER BY ALL").fetchall()
    assert incomes.execute(f"FROM sdc_synth_records(model := 'fine', {SEED}) ORDER BY ALL").fetchall() == direct


def test_what_stays_to_the_digit(incomes: duckdb.DuckDBPyConnection) -> None:
    """Kept columns are of real people, so nothing is hidden; whole combinations are asked for; 60 ages are not fine."""
    for arguments in ("columns := ['income']", "joint := ['region', 'income']"):
        own = incomes.execute(
            f"SELECT avg(coalesce({OWN}, false)::INTEGER) FROM sdc_synth_records('incomes', {arguments}, {SEED})"
        )
        assert own.fetchall()[0][0] > 0.6
    few = "(SELECT hash(range) % 99 AS age FROM range(60))"
    strangers = incomes.execute(f"FROM sdc_synth_records('{few}', unique_copies := true, {SEED}) EXCEPT FROM {few}")
    assert strangers.fetchall() == []


def test_grid_and_noise_of_fine_numbers() -> None:
    assert grid(np.array([0.05, 0.3, 1000.0])) == 0.05
    assert grid(np.array([0.03, 0.06])) == 0.01  # 3 / 100 has no whole inverse
    assert grid(np.array([-300.0, 1200.0])) == 300
    assert grid(np.array([1 / 3, 2.0])) == grid(np.array([1e300])) == grid(np.array([])) == 0
    values, nothing = np.arange(0.0, 1000.0), np.zeros(0)
    ones = np.ones(1000, np.int64)
    shared = ones.copy()
    shared[:3] = 5
    found = fine_bandwidths(values, shared, 20, np.array([999.0]))
    assert found is not None
    assert (found[0][[0, 1, 2, 999]] == 0).all()
    assert (found[0][3:999] > 1).all()
    # A quarter of the records alone with their number is not enough, and neither are neighbours on the grid.
    assert fine_bandwidths(values, np.where(values % 2 == 0, 1, 3), 20, nothing) is None
    assert fine_bandwidths(values[:150], ones[:150], 20, nothing) is None
    assert fine_bandwidths(values[:0], ones[:0], 20, nothing) is None
    assert fine_bandwidths(np.array([1.5]), ones[:1], 20, nothing) is None
    # As few records as make one group of noise: none of them stays as it is.
    few = fine_bandwidths(np.array([10.01, 250.0, 3000.0]), ones[:3], 20, nothing)
    assert few is not None
    assert (few[0] > 0).all()
