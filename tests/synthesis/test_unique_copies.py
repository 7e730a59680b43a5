"""``unique_copies := false``: no synthetic record equals an original one that is the only one of its kind."""

from __future__ import annotations

import duckdb
import pytest

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
    n, before, uniques = copies(survey, "survey", f"'survey', {SEED}")
    _, beside, _ = copies(survey, "holdout", f"'survey', {SEED}")
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
    n, _, _ = copies(survey, "survey", f"'survey', {SEED}")
    survey.execute("CREATE OR REPLACE TABLE before AS FROM drawn")
    row = survey.execute("SELECT recreated_synthetic FROM sdc_synth_replicas('survey', 'before')").fetchone()
    assert row is not None
    copies(survey, "survey", f"'survey', unique_copies := false, {SEED}")
    same = survey.execute("SELECT count(*) FROM (FROM drawn INTERSECT ALL FROM before)").fetchone()
    assert same is not None
    assert n - row[0] <= same[0] < n


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
