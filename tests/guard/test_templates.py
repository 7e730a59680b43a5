"""A question that differs from others in its constants only becomes what it would become if it were the first one."""

from __future__ import annotations

import importlib
import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st

import sdcduck
from sdcduck.guard import Guard, Refused
from sdcduck.guard.rewritten import Rewritten
from sdcduck.guard.templates import Asked, asked

sys.path.insert(0, str(Path(__file__).parent / "acceptance"))
from table import METHODS, guarded, queries

VALUES = {
    "text": ["''", "'North'", "'f'", "'NULL'", "'1 = 1'", "'a, b) OR (c'", "'Ærø'", "'current_date'", "'x -- y'"],
    "date": ["'2023-05-01'", "'2023-02-30'", "'0000-00-00'"],
    "time": ["'2023-05-01 12:00:00'", "'9999-99-99 99:99:99'"],
    "number": ["0", "1", "30", "999999999"],
    "decimal": ["0.0", "0.5", "999999999.9999"],
}  # fmt: skip


def becomes(one: Guard, text: str) -> Rewritten | str:
    try:
        return one.rewritten(text)[0]
    except Refused as refused:
        return refused.code


def anew(one: Guard, text: str) -> Rewritten | str:
    """What a text becomes where no other question was asked."""
    one._rewritings._rewritten.clear()
    one._rewritings._templates._known.clear()
    return becomes(one, text)


def others(question: Asked, chosen: random.Random, number: int) -> Iterator[str]:
    """The question with other constants, the same ones where they are the same and seldom where they are not."""
    for _ in range(number):
        yield question.with_constants([chosen.choice(VALUES[kind]) for kind in question.kinds])


def has_template(one: Guard, text: str) -> bool:
    question = asked(one._rewritings._plain(text))
    return question is not None and one._rewritings._templates.find(question, one.rewritten(text)[1]) is not None


@pytest.mark.parametrize("method", METHODS)
def test_the_questions_of_the_acceptance_page_with_other_constants(method: str) -> None:
    """In each run, each question under one method."""
    chosen, with_one, step = random.Random(4), 0, times(len(METHODS), 1)
    with guarded(method) as one, guarded(method) as alone:
        for query in queries()[METHODS.index(method) % step :: step]:
            question = asked(query.sql)
            if question is None:
                continue
            for text in (query.sql, *others(question, chosen, times(2, 6))):
                assert becomes(one, text) == anew(alone, text), text
            if not isinstance(becomes(one, query.sql), str):
                # A value stands in what is asked about a public table beforehand; of a measure only borders are answered.
                named = "JOIN (SELECT region, climate" in query.sql or "WHERE income >= 2000" in query.sql
                # Lists of what there is, and summaries, are made anew.
                named = (
                    named
                    or re.search(r"SUMMARIZE|DESCRIBE|SHOW|duckdb_\w+\(\)|information_schema", query.sql) is not None
                )
                assert has_template(one, query.sql) != named, query.sql
                with_one += not named
    assert with_one > times(0, 8) or method == "suppression"


REGIONS = ("north", "south")
BY_AGE = "SELECT region, age > 30 AS old, count(*) AS n FROM people WHERE region = '{}' GROUP BY region, age > 30 ORDER BY ALL"


def declared(con: duckdb.DuckDBPyConnection, method: str = "cell_key") -> None:
    con.execute(
        f"FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age', 'day'], method := '{method}', min_units := 1)"
    )


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="a secret for the tests of templates") as con:
        con.execute("""
            CREATE TABLE people AS SELECT i AS id, ['north', 'south'][1 + i % 2] AS region, i % 70 AS age,
                DATE '2023-01-01' + (i % 300)::INTEGER AS day, i AS secret FROM range(900) t(i);
            FROM sdc_add_record_key('people', unit := 'id');
        """)
        declared(con)
        yield con


def test_it_is_answered_as_by_a_guard_that_heard_nothing_before(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.open_guard(con)
    for region in (*REGIONS, "nowhere", *REGIONS, "unnest", "north''s"):
        question = BY_AGE.format(region)
        assert one.sql(question).equals(sdcduck.open_guard(con).sql(question))
    assert has_template(one, BY_AGE.format("north"))


def test_what_runs_is_written_down(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.open_guard(con)
    for region in ("a", "b", "c"):
        assert f"'{region}'" in one.rewrite(BY_AGE.format(region))
        assert one.explain(BY_AGE.format(region)).notes == sdcduck.open_guard(con).explain(BY_AGE.format(region)).notes


def test_policies_and_tables_that_change(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.open_guard(con)
    for region in (*REGIONS, "nowhere"):
        one.sql(BY_AGE.format(region))
    con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'day'])")
    assert becomes(one, BY_AGE.format("a")) == "SDC030"
    declared(con, "threshold")
    for region in ("b", "c", "d", "e"):
        assert becomes(one, BY_AGE.format(region)) == becomes(sdcduck.open_guard(con), BY_AGE.format(region))
    assert "cell_key" not in str(becomes(one, BY_AGE.format("f")))
    con.execute(
        "CREATE TABLE others AS FROM people; DROP TABLE people; CREATE VIEW people AS SELECT *, 1 AS new FROM others"
    )
    for region in ("g", "h", "i"):
        assert becomes(one, BY_AGE.format(region)) == becomes(sdcduck.open_guard(con), BY_AGE.format(region))


def test_constants_that_are_the_same_are_so_in_another_question(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.open_guard(con)
    question = "SELECT age > {} AS old, count(*) AS n FROM people WHERE age < {} GROUP BY age > {}"
    for age in (10, 20, 30):
        assert one.sql(question.format(age, 7, age)).num_rows == 1
    for first, second in ((40, 50), (30, 50), (50, 30), (10, 30)):
        assert becomes(one, question.format(first, 7, second)) == "SDC042"


def test_only_what_is_in_where(con: duckdb.DuckDBPyConnection) -> None:
    found = asked(
        "WITH a AS (SELECT age = 1 AS x FROM people WHERE (lower(region) = 'a' OR age IN (2, 3)) AND year(day) = 4 GROUP BY age = 1) "
        "SELECT count(*) FILTER (WHERE age = 5), count(*) FILTER (day = (SELECT 6 WHERE x = 6)), CASE WHEN age = 7 THEN 8 END FROM p "
        "JOIN q ON p.x = 9 WHERE extract(month FROM day) = 10 AND x IN (SELECT y FROM z WHERE y > 11 HAVING count(*) > 12) AND x = 13 "
        "AND age IS DISTINCT FROM 14 AND age = 15 GROUP BY age = 16 HAVING count(*) > 17 QUALIFY n = 18 ORDER BY age = 19 LIMIT 20"
    )
    assert found is not None
    assert found.constants == ("'a'", "2", "3", "4", "10", "11", "13", "15")


@pytest.mark.parametrize(
    "alias", ["age AS where", "age AS\n WHERE", "p.where", "p. where", "where: age", "where : age"]
)
def test_a_name_that_is_a_word_of_sql(alias: str) -> None:
    assert asked(f"SELECT {alias}, mod(age, 2) = 1 AS a FROM people p GROUP BY ALL") is None


@pytest.mark.parametrize("text", ["SELECT (1)) WHERE x = 5", "SELECT ((1) WHERE x = 5) FROM t) WHERE x = 6"])
def test_brackets_that_do_not_match(text: str) -> None:
    assert asked(text) is None


@pytest.mark.parametrize(
    ("elsewhere", "value", "others"),
    [
        ("age % 2 = 1", "1", "034"), ("mod(age, 2) = .5", "0.5", ("1.5", "2.5", "3.5")),
        ("mod(age, 2) = 5_0", "50", ("10", "20", "30")), ("mod(age, 2) = 'a'\n'b'", "'ab'", ("'a'", "'b'", "'c'")),
    ],
)  # fmt: skip
def test_values_that_are_the_same_as_one_that_is_no_constant(
    con: duckdb.DuckDBPyConnection, elsewhere: str, value: str, others: Sequence[str]
) -> None:
    """A grouping set that is there twice would count units twice, with the noise of one."""
    con.execute("""
        CREATE TABLE visits AS SELECT id % 300 AS id, age FROM people;
        FROM sdc_add_record_key('visits', unit := 'id');
        FROM sdc_protect('visits', unit := 'id', dimensions := ['age']);
    """)
    one = sdcduck.open_guard(con)
    for table in ("people", "visits"):
        question = f"SELECT count(*) FROM {table} GROUP BY GROUPING SETS ((mod(age, 2) = {{}}), ({elsewhere}))"
        for other in others:
            becomes(one, question.format(other))
        assert becomes(one, question.format(value)) == becomes(sdcduck.open_guard(con), question.format(value))
    assert becomes(one, question.format(value)) in ("SDC001", "SDC006", "SDC047")


def test_a_value_that_decides_whether_rows_are_asked_for(con: duckdb.DuckDBPyConnection) -> None:
    """1 = 5 is never so, 1 = 1 always: a says which, as an alias does in WHERE."""
    one, alone = sdcduck.open_guard(con), sdcduck.open_guard(con)
    for question in (
        "SELECT 1 AS a, region, count(*) AS n FROM people WHERE a = {} GROUP BY region",
        "SELECT 1 AS a, 0 AS b, id FROM people WHERE a = {}",
    ):
        for value in (5, 6, 7, 1, 0):
            text = question.format(value)
            assert becomes(one, text) == anew(alone, text), text


@pytest.mark.parametrize("value", ["unnest", "a == b", "UNNEST", "=="])
def test_values_that_are_found_in_a_text(con: duckdb.DuckDBPyConnection, value: str) -> None:
    one, alone = sdcduck.open_guard(con), sdcduck.open_guard(con)
    for question in (
        "SELECT region, count(*) AS n FROM people WHERE region = '{}' GROUP BY region",
        "SELECT n ** 2 AS n FROM (SELECT count(*) AS n FROM people WHERE region = '{}') AS t",
        "SELECT region AS \"it's\", count(*) AS n FROM people WHERE region = '{}' GROUP BY region",
    ):
        for text in map(question.format, (*REGIONS, "nowhere", value)):
            assert becomes(one, text) == anew(alone, text), text


@pytest.mark.parametrize(
    "text",
    [
        "a IN (" + 24 * "'2023-01-01', " + "x)", "a IN (" + 24 * "CAST('2023-01-01 00:00:00' AS DATE), " + "x)",
        "a = MAKE_DATE(" + 24 * "'2023-01-01', " + "x)", "a IN (" + 7000 * "'2023-01-01', " + "x)", 20_000 * "a = ", 20_000 * "a IN (",
        "a =" + 100_000 * " " + "x", 50_000 * "''", 50_000 * '""' + "'", 5000 * "a BETWEEN 1 AND ", 50_000 * "a ", 50_000 * "1_", 30_000 * "'' ",
    ],
)  # fmt: skip
def test_no_text_takes_long_to_be_searched(text: str) -> None:
    """Tried in all ways that it can be read in, any of these would take for ever."""
    assert asked(f"SELECT 1 WHERE {text}") is None


def test_a_text_that_is_too_long_is_not_searched(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, long = sdcduck.open_guard(con), f"SELECT count(*) FROM people WHERE {20_000 * 'age = 5 AND '} true"
    assert asked(long) is not None
    monkeypatch.setattr(importlib.import_module("sdcduck.guard.rewritings"), "asked", pytest.fail)
    assert becomes(one, long) == "SDC002"


def test_a_value_in_a_name(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.open_guard(con)
    for age in (10, 20, 30):
        question = f"SELECT sum((SELECT count(*) FROM people WHERE age > {age}))"
        assert one.sql(question).column_names == sdcduck.open_guard(con).sql(question).column_names
        assert str(age) in one.sql(question).column_names[0]
        assert not has_template(one, question)


@pytest.mark.parametrize(
    "condition",
    [
        "1 = 0", "'age = 5' = \"age = 5\"", "age = 5 * age", "age = -5", "age = 5 -- x", "age = 'a\\n'", "age = e'a'", "age = 'a' 'b'",
        "age = 5e3", "age = 05", "age = $$a$$", "age = 'it''s'", "age = 1234567890", f"age = '{25 * 'a'}'", "age = 5.12345", "age = 'a",
        "age = 5 /* ' */", "age = 5_000", "age = 0x5", "age = 5 \x00", "f(x := 5)", "age IN (5, x)", "age IN (SELECT 5)", "age = 5 + x",
        "age = 5 COLLATE x", "age = ٥", "age = CAST(5 AS INTEGER) * age", "age = CAST(5 AS DECIMAL(4, 1))", "age = CAST(5 + 1 AS INTEGER)",
        "day = MAKE_DATE(2023, age, 1)", "age = 'a == b'",
    ],
)  # fmt: skip
def test_what_is_no_constant_of_another_question(condition: str) -> None:
    assert asked(f"SELECT count(*) FROM people WHERE {condition}") is None


@pytest.mark.parametrize(
    ("question", "constants"),
    [
        ("WHERE day >= DATE '2023-01-01' AND day < '2023-02-01'::DATE", ["'2023-01-01'", "'2023-02-01'"]),
        ("WHERE age BETWEEN 5 AND 7 OR age IN ( 1,2 , 3 )", ["5", "7", "1", "2", "3"]),
        ('WHERE "a "" b" = 5 AND p.age<>5.5 AND lower(region) != \'a b\'', ["5", "5.5", "'a b'"]),
        ("WHERE CASE WHEN age = 1 THEN 2 ELSE 3 END = 4 AND 'a = 5' <> x", ["1", "4"]),
        ("WHERE t = TIMESTAMP '2023-01-01 00:00:00' HAVING count(*) > 10", ["'2023-01-01 00:00:00'"]),
        ("WHERE joined >= CAST('2024-03-01 00:00:00.5' AS TIMESTAMP) AND", ["'2024-03-01 00:00:00.5'"]),
        ('WHERE "t0"."day" BETWEEN MAKE_DATE(2023, 1, 1) AND MAKE_DATE( 2023,12,31 )', ["2023", "1", "12", "31"]),
        ("WHERE region = 'Ærø' AND age = 5;", ["'Ærø'", "5"]),
    ],
)
def test_what_is(question: str, constants: Sequence[str]) -> None:
    found = asked(question)
    assert found is not None
    assert list(found.constants) == constants
    assert found.with_constants(constants) == question


def filled(value: Sequence[str], inside: bool) -> str:
    """A question with three constants, by itself or inside another one."""
    where = f"WHERE region = {value[0]} AND age IN (10, {value[1]})"
    question = f"SELECT sex, count(*) AS n FROM people {where} OR age = {value[2]} GROUP BY sex"
    return f"SELECT sex, n FROM ({question}) AS x WHERE n > {value[2]} AND sex <> {value[0]}" if inside else question


PLAIN = (["'North'", "30", "5"], ["'East'", "40", "6"])


@pytest.fixture(scope="module")
def twice() -> Iterator[tuple[Guard, Guard]]:
    """A guard that has heard the questions with plain constants, and one that has heard nothing."""
    with guarded("cell_key") as one, guarded("cell_key") as alone:
        for question in (filled(value, inside) for value in PLAIN for inside in (False, True)):
            assert becomes(one, question) == anew(alone, question), question
        yield one, alone


PIECES = st.sampled_from(
    ["'", "''", '"', "\\", "--", "/*", "*/", "a", "5", ")", "(", ",", " ", ";", "\n", "OR", "= ", "é", "$1", "\x00", "%", "::DATE"]
)  # fmt: skip
CONSTANTS = st.one_of(
    st.lists(PIECES, max_size=6).map(lambda pieces: f"'{''.join(pieces)}'"),
    st.lists(PIECES, max_size=4).map("".join),
    st.integers(-10, 10**10).map(str),
    st.dates().map(lambda day: f"'{day}'"),
    st.decimals(0, 1000, places=2).map(str),
)


@settings(max_examples=times(40, 150), deadline=None)
@given(st.lists(st.lists(CONSTANTS, min_size=3, max_size=3), min_size=3, max_size=3), st.booleans())
def test_texts_that_may_break_out_of_constants(
    twice: tuple[Guard, Guard], values: list[list[str]], inside: bool
) -> None:
    one, alone = twice
    for value in PLAIN:  # again, in case that what was made of them is forgotten by now
        becomes(one, filled(value, inside))
    for value in values:
        question = filled(value, inside)
        assert becomes(one, question) == anew(alone, question), question
