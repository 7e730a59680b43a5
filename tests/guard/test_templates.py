"""A question that differs from others in its constants only becomes what it would become if it were the first one."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pytest
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
    one._rewritten.clear()
    one._templates._known.clear()
    return becomes(one, text)


def others(question: Asked, chosen: random.Random, times: int) -> Iterator[str]:
    """The question with other constants, the same ones where they are the same and seldom where they are not."""
    for _ in range(times):
        yield question.with_constants([chosen.choice(VALUES[kind]) for kind in question.kinds])


def has_template(one: Guard, text: str) -> bool:
    question = asked(one._plain(text))
    return question is not None and one._templates.find(question, one.rewritten(text)[1]) is not None


@pytest.mark.parametrize("method", METHODS)
def test_the_questions_of_the_acceptance_page_with_other_constants(method: str) -> None:
    chosen, with_one = random.Random(4), 0
    with guarded(method) as one, guarded(method) as alone:
        for query in queries():
            question = asked(query.sql)
            if question is None:
                continue
            for text in (query.sql, *others(question, chosen, 6)):
                assert becomes(one, text) == anew(alone, text), text
            if not isinstance(becomes(one, query.sql), str):
                # A value is the name of a column, or stands in what is asked about a public table beforehand.
                named = "PIVOT" in query.sql.replace("UNPIVOT", "") or "JOIN (SELECT region, climate" in query.sql
                assert has_template(one, query.sql) != named, query.sql
                with_one += not named
    assert with_one > 20


REGIONS = ("north", "south")
BY_AGE = "SELECT region, age > 30 AS old, count(*) AS n FROM people WHERE region = '{}' GROUP BY region, age > 30 ORDER BY ALL"


def declared(con: duckdb.DuckDBPyConnection, method: str = "cell_key") -> None:
    con.execute(
        f"FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age', 'day'], method := '{method}')"
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
    one = sdcduck.guard(con)
    for region in (*REGIONS, "nowhere", *REGIONS, "unnest", "north''s"):
        question = BY_AGE.format(region)
        assert one.sql(question).equals(sdcduck.guard(con).sql(question))
    assert has_template(one, BY_AGE.format("north"))


def test_what_runs_is_written_down(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.guard(con)
    for region in ("a", "b", "c"):
        assert f"'{region}'" in one.rewrite(BY_AGE.format(region))
        assert one.explain(BY_AGE.format(region)).notes == sdcduck.guard(con).explain(BY_AGE.format(region)).notes


def test_policies_and_tables_that_change(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.guard(con)
    for region in (*REGIONS, "nowhere"):
        one.sql(BY_AGE.format(region))
    con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'day'])")
    assert becomes(one, BY_AGE.format("a")) == "SDC030"
    declared(con, "threshold")
    for region in ("b", "c", "d", "e"):
        assert becomes(one, BY_AGE.format(region)) == becomes(sdcduck.guard(con), BY_AGE.format(region))
    assert "cell_key" not in str(becomes(one, BY_AGE.format("f")))
    con.execute(
        "CREATE TABLE others AS FROM people; DROP TABLE people; CREATE VIEW people AS SELECT *, 1 AS new FROM others"
    )
    for region in ("g", "h", "i"):
        assert becomes(one, BY_AGE.format(region)) == becomes(sdcduck.guard(con), BY_AGE.format(region))


def test_constants_that_are_the_same_are_so_in_another_question(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.guard(con)
    question = "SELECT age > {} AS old, count(*) AS n FROM people GROUP BY age > {}"
    for age in (10, 20, 30):
        assert one.sql(question.format(age, age)).num_rows == 2
    assert has_template(one, question.format(40, 40))
    assert becomes(one, question.format(40, 50)) == "SDC042"
    assert becomes(one, question.format(50, 60)) == "SDC042"


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
    one = sdcduck.guard(con)
    for table in ("people", "visits"):
        question = f"SELECT count(*) FROM {table} GROUP BY GROUPING SETS ((mod(age, 2) = {{}}), ({elsewhere}))"
        for other in others:
            becomes(one, question.format(other))
        assert becomes(one, question.format(value)) == becomes(sdcduck.guard(con), question.format(value))
    assert becomes(one, question.format(value)) in ("SDC005", "SDC001")


def test_a_value_that_stands_elsewhere_too_is_no_constant() -> None:
    found = asked("SELECT region, 'a' FROM people WHERE age = 1 AND age <> 2 AND region IN ('a', 'b') LIMIT 1")
    assert found is not None
    assert found.constants == ("2", "'b'")


def test_a_value_that_decides_whether_rows_are_asked_for(con: duckdb.DuckDBPyConnection) -> None:
    """1 = 5 is never so, 1 = 1 always: a says which, as an alias does in WHERE."""
    one = sdcduck.guard(con)
    for question in (
        "SELECT 1 AS a, region, count(*) AS n FROM people WHERE a = {} GROUP BY region",
        "SELECT 1 AS a, 0 AS b, id FROM people WHERE a = {}",
    ):
        for value in (5, 6, 7, 1, 0):
            text = question.format(value)
            assert becomes(one, text) == becomes(sdcduck.guard(con), text), text


@pytest.mark.parametrize("value", ["unnest", "a == b", "UNNEST", "=="])
def test_values_that_are_found_in_a_text(con: duckdb.DuckDBPyConnection, value: str) -> None:
    one = sdcduck.guard(con)
    for question in (
        "SELECT region, count(*) AS n FROM people WHERE region = '{}' GROUP BY region",
        "SELECT n ** 2 AS n FROM (SELECT count(*) AS n FROM people WHERE region = '{}') AS t",
    ):
        for text in map(question.format, (*REGIONS, "nowhere", value)):
            assert becomes(one, text) == becomes(sdcduck.guard(con), text), text


@pytest.mark.parametrize(
    "text",
    [
        "a IN (" + 24 * "'2023-01-01', " + "x)", "a IN (" + 24 * "CAST('2023-01-01 00:00:00' AS DATE), " + "x)",
        "a = MAKE_DATE(" + 24 * "'2023-01-01', " + "x)", "a IN (" + 7000 * "'2023-01-01', " + "x)", 20_000 * "a = ", 20_000 * "a IN (",
        "a =" + 100_000 * " " + "x", 50_000 * "''", 50_000 * '""' + "'", 5000 * "a BETWEEN 1 AND ", 50_000 * "a ", 50_000 * "1_", 30_000 * "'' ",
    ],
)  # fmt: skip
def test_no_text_takes_long_to_be_searched(text: str) -> None:
    start = time.perf_counter()
    asked(text)
    assert time.perf_counter() - start < 2


def test_a_text_that_is_too_long_is_not_searched(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.guard(con)
    start = time.perf_counter()
    assert becomes(one, f"SELECT count(*) FROM people WHERE {1_000_000 * 'age = 5 AND '} true") == "SDC002"
    assert time.perf_counter() - start < 2


def test_a_value_in_a_name(con: duckdb.DuckDBPyConnection) -> None:
    one = sdcduck.guard(con)
    for age in (10, 20, 30):
        question = f"SELECT age > {age}, count(*) FROM people GROUP BY ALL"
        assert one.sql(question).column_names == sdcduck.guard(con).sql(question).column_names
        assert str(age) in one.sql(question).column_names[0]


@pytest.mark.parametrize(
    "question",
    [
        "SELECT count(*) FROM people LIMIT 5", "SELECT sum(5 * age) FROM people", "SELECT region FROM people WHERE 1 = 0",
        "SELECT 'age = 5', \"age = 5\" FROM people", "SELECT age = 5 * age FROM people", "SELECT age = -5 FROM people",
        "SELECT age = 5 -- x", "SELECT age = 'a\\n'", "SELECT age = e'a'", "SELECT age = 'a' 'b'", "SELECT age = 5e3", "SELECT age = 05",
        "SELECT age = $$a$$", "SELECT age = 'it''s'", "SELECT age = 1234567890", f"SELECT age = '{25 * 'a'}'", "SELECT age = 5.12345",
        "SELECT age = 5 /* ' */", "SELECT age = 'a", "SELECT age = 5_000", "SELECT age = 0x5", "SELECT age = 5 \x00", "SELECT f(x := 5)",
        "SELECT age IN (5, x)", "SELECT age IN (SELECT 5)", "SELECT age = 5 + x", "SELECT age = 5 COLLATE x", "SELECT age = ٥", "SELECT age = CAST(5 AS INTEGER) * age",
        "SELECT age = CAST(5 AS DECIMAL(4, 1))", "SELECT age = CAST(5 + 1 AS INTEGER)", "SELECT day = MAKE_DATE(2023, age, 1)",
    ],
)  # fmt: skip
def test_what_is_no_constant_of_another_question(question: str) -> None:
    assert asked(question) is None


@pytest.mark.parametrize(
    ("question", "constants"),
    [
        ("WHERE day >= DATE '2023-01-01' AND day < '2023-02-01'::DATE", ["'2023-01-01'", "'2023-02-01'"]),
        ("WHERE age BETWEEN 5 AND 7 OR age IN ( 1,2 , 3 )", ["5", "7", "1", "2", "3"]),
        ('WHERE "a "" b" = 5 AND p.age<>5.5 AND lower(region) != \'a b\'', ["5", "5.5", "'a b'"]),
        ("SELECT CASE WHEN age = 1 THEN 2 ELSE 3 END, age = 4 AS x, 'a = 5'", ["1", "4"]),
        ("WHERE t = TIMESTAMP '2023-01-01 00:00:00' HAVING count(*) > 10", ["'2023-01-01 00:00:00'", "10"]),
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


@pytest.fixture(scope="module")
def twice() -> Iterator[tuple[Guard, Guard]]:
    with guarded("cell_key") as one, guarded("cell_key") as alone:
        yield one, alone


PIECES = st.sampled_from(
    [
        "'",
        "''",
        '"',
        "\\",
        "--",
        "/*",
        "*/",
        "a",
        "5",
        ")",
        "(",
        ",",
        " ",
        ";",
        "\n",
        "OR",
        "= ",
        "é",
        "$1",
        "\x00",
        "%",
        "::DATE",
    ]
)
CONSTANTS = st.one_of(
    st.lists(PIECES, max_size=6).map(lambda pieces: f"'{''.join(pieces)}'"),
    st.lists(PIECES, max_size=4).map("".join),
    st.integers(-10, 10**10).map(str),
    st.dates().map(lambda day: f"'{day}'"),
    st.decimals(0, 1000, places=2).map(str),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(CONSTANTS, min_size=3, max_size=3), min_size=3, max_size=3), st.booleans())
def test_texts_that_may_break_out_of_constants(
    twice: tuple[Guard, Guard], values: list[list[str]], inside: bool
) -> None:
    one, alone = twice
    for value in (["'North'", "30", "5"], ["'East'", "40", "6"], *values):
        where = f"WHERE region = {value[0]} AND age IN (10, {value[1]})"
        question = f"SELECT sex, count(*) AS n FROM people {where} GROUP BY sex HAVING count(*) > {value[2]}"
        if inside:
            question = f"SELECT sex, n FROM ({question}) AS x WHERE n > {value[2]} AND sex <> {value[0]}"
        assert becomes(one, question) == anew(alone, question), question
