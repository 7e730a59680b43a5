"""A question that differs from others in its constants only becomes what it would become if it were the first one."""

from __future__ import annotations

import random
import sys
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
