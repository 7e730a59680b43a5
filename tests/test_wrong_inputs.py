"""Forty wrong inputs of users: each is answered by a sentence that says what is wrong and what would be accepted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.functions.reference import EXAMPLE_DATA, EXAMPLE_SECRET

_SELECT = "SELECT region, sex, count(*) AS n, sum(income) AS income FROM people GROUP BY CUBE (region, sex)"
_BY_REGION = "unit := 'person_id', dimensions := ['region']"
_NOISY = "sdc_count(record_key, ptable := 'mine') FROM people"

WRONG = [
    (f"SELECT {_NOISY}", "unknown p-table 'mine'; stored: default"),
    ("SELECT sdc_count() FROM people", r"sdc_count\(record_key"),
    ("SELECT sdc_count(recordkey) FROM people", 'Candidate bindings: "record_key"'),
    ("FROM sdc_k_anonimity('people', keys := ['sex'])", 'Did you mean "sdc_k_anonymity"'),
    ("FROM sdc_add_record_key('peple', unit := 'person_id')", "unknown table 'peple'; did you mean 'people'"),
    ("FROM sdc_add_record_key('people')", "'unit' must name a column of 'people'"),
    ("FROM sdc_add_record_key('people', unit := 'id')", "unknown column 'id' in 'people'; there are: 'age'"),
    ("FROM sdc_add_record_key('people', unit := 'person_id')", "has a column 'record_key' already; drop it, or name"),
    (f"FROM sdc_suppress('{_SELECT}')", "give at least one rule|rule"),
    (f"FROM sdc_suppress('{_SELECT}', max_count := -1)", "'max_count' must be a number of at least 0"),
    (f"FROM sdc_suppress('{_SELECT}', dominance := [(1, 0.75)])", "pairs .* more than 1 to 100 per cent"),
    (f"FROM sdc_suppress('{_SELECT}', dominance := [(1, 750)])", "pairs .* more than 1 to 100 per cent"),
    (f"FROM sdc_suppress('{_SELECT}', p_percent := 0.1)", "it is in per cent, and p_percent := 10 is a tenth"),
    (f"FROM sdc_suppress('{_SELECT}', p_percent := 10, value := 'incme')", "did you mean 'income'"),
    ("FROM sdc_suppress('SELECT sex, avg(income) FROM people GROUP BY sex', max_count := 1)", "a mean is published as"),
    ("FROM sdc_suppress('SELECT * FROM people', max_count := 1)", "names its columns: write them out"),
    ("FROM sdc_suppress('SELECT sex, count(*) FROM peple GROUP BY sex', max_count := 1)", "peple does not exist"),
    ("FROM sdc_suppress('SELECT sex count(*) FROM people', max_count := 1)", "the publication is not a SELECT"),
    ("FROM sdc_audit('incoms', max_count := 1)", "unknown publication 'incoms'; did you mean 'incomes'"),
    (f"FROM sdc_publish('my publication', '{_SELECT}', max_count := 1)", "a name without spaces"),
    ("FROM sdc_write_table('incomes', 'a.pdf')", "'csv', 'xlsx', 'json-stat' or 'sdmx'"),
    ("FROM sdc_round_table('incomes', base := 1)", "'base' must be a whole number of at least 2"),
    ("FROM sdc_round_table('incomes', method := 'mid')", "'random', 'midpoint' or 'threshold'"),
    ("FROM sdc_protect('people')", "'dimensions' must list the columns"),
    ("FROM sdc_protect('people', unit := 'person_id', dimensions := ['regions'])", "did you mean 'region'"),
    (f"FROM sdc_protect('people', {_BY_REGION}, method := 'threshhold')", "did you mean 'threshold'"),
    (f"FROM sdc_protect('people', {_BY_REGION}, method := 'threshold', min_units := 0)", "at least 1"),
    (f"FROM sdc_protect('people', {_BY_REGION}, method := 'dp')", "such as epsilon := 1"),
    ("FROM sdc_unprotect('peple')", "peple"),
    ("FROM sdc_create_user('ann', 'short')", "at least 8 characters"),
    ("FROM sdc_k_anonymity('people', keys := [])", "must name the columns by which a person could be found"),
    ("FROM sdc_k_anonymity('people', keys := ['region', 'region'])", "names column 'region' twice"),
    ("FROM sdc_k_anonymity('people', keys := ['region'], k := 0)", "'k' must be a whole number of at least 1"),
    ("FROM sdc_synth_records('people', sed := 1)", r"sdc_synth_records\(source"),
    ("FROM sdc_synth_table('people', dimensions := ['region'], sigma := -1, seed := 1)", "between 0 and"),
    ("FROM sdc_microaggregate('people', ['income'], k := 100)", "there are 12 records, fewer than k := 100"),
    ("FROM sdc_approve('income', 'Ann')", "unknown release 'income'; there are none"),
    ("FROM sdc_drop_rules('hose')", "unknown rule set 'hose'; there are none"),
    ("FROM sdc_read_hrc('nowhere.hrc')", "there is no file 'nowhere.hrc'"),
    ("FROM sdc_assess('people', 'people', keys := ['regoin'])", "did you mean 'region'"),
]


@pytest.fixture(scope="module")
def house() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret=EXAMPLE_SECRET) as con:
        con.execute(EXAMPLE_DATA)
        con.execute(f"FROM sdc_publication('incomes', '{_SELECT}')").fetchall()
        yield con


def test_they_are_forty() -> None:
    assert len({statement for statement, _ in WRONG}) == 40


@pytest.mark.parametrize(("statement", "words"), WRONG)
def test_what_is_wrong_is_said(house: duckdb.DuckDBPyConnection, statement: str, words: str) -> None:
    with pytest.raises(duckdb.Error) as caught:
        house.execute(statement).fetchall()
    said = str(caught.value).split("\n\nLINE")[0]
    assert re.search(words, said), said
    assert "internal error" not in said
    assert "Traceback" not in said
    called = re.search(r"FROM (sdc_\w+)", statement)
    if said.startswith("Invalid Input Error: sdc_"):  # a sentence of ours: of the function that was called, and short
        assert called is not None
        assert said.startswith(f"Invalid Input Error: {called[1]}: ")
        assert len(said) < 400
        assert "_sdc_" not in said
