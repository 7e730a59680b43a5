"""A question that differs from another in comments and spaces only is rewritten once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import duckdb
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st

import sdcduck
from sdcduck.guard import Guard, Refused
from sdcduck.guard.rewritings import plain_text

PIECES = [
    "SELECT", "1", "a", "b", ",", "(", ")", "*", "/", "-", "+", "<", "=", ".", ";", "'", "''", "'x'", "' -- y'", '"', '"c"', "FROM", "t",
    "AS", " ", "  ", "\t", "\n", "\r", "\r\n", "\f", "--", "-- z", "-- z\n", "/*", "*/", "/* w */", "/**/", "/* /* */", "$$", "$1", "$x$",
    "\\", "e'", "x'", "#", "`", "@", "::", "||", "é", "\u00a0",
]  # fmt: skip


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        yield con


def read(con: duckdb.DuckDBPyConnection, text: str) -> object:
    """What DuckDB makes of a text: its tree without the places of words, or that it makes nothing of it."""
    try:
        found = con.execute("SELECT json_serialize_sql(?)", [text]).fetchall()[0][0]
    except duckdb.Error:
        return None
    tree = json.loads(re.sub(r'"(query_location\w*)": ?\d+', r'"\1":0', found))
    return None if tree["error"] else tree


@settings(max_examples=times(500, 2000, older=100), deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_a_plain_text_is_the_same_question(con: duckdb.DuckDBPyConnection, text: str) -> None:
    for whole in (text, f"SELECT {text}", f"SELECT 'a' {text} AS b"):
        plain = plain_text(whole)
        if plain != whole:
            assert read(con, plain) == read(con, whole)
            assert plain_text(plain) == plain


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("  SELECT  1\t, 2 ", "SELECT 1 , 2"),
        ("-- chart 7\nSELECT 1 /* x */ AS a", "SELECT 1 AS a"),
        ("SELECT 'a  b', \"c  d\"", "SELECT 'a  b', \"c  d\""),
        ("SELECT 'a'\n\n  'b'", "SELECT 'a'\n\n  'b'"),
        ("SELECT 'a'   'b'", "SELECT 'a'   'b'"),
        ("SELECT 'a'\n\n  b", "SELECT 'a' b"),
        ("SELECT 'it''s  --', 1 -- it's", "SELECT 'it''s  --', 1"),
        ("SELECT $1  + $2", "SELECT $1 + $2"),
        ("SELECT e'\\'  -- '", "SELECT e'\\'  -- '"),
        ("SELECT $$  /* $$", "SELECT $$  /* $$"),
        ("SELECT 1 /* /* */  */", "SELECT 1 /* /* */  */"),
        ("SELECT 1 <--2\n 3", "SELECT 1 <--2\n 3"),
        ("SELECT  'é'", "SELECT  'é'"),
    ],
)
def test_what_is_left_out(text: str, plain: str) -> None:
    assert plain_text(text) == plain


@pytest.fixture(scope="module")
def register() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="a secret for the tests of texts") as con:
        con.execute("CREATE TABLE people AS SELECT i AS id, 'r' || i % 7 AS region FROM range(900) t(i)")
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['region'])").fetchall()
        con.execute("CREATE TABLE places AS SELECT 'r1' AS region")
        yield con


@pytest.fixture(scope="module")
def one(register: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.open_guard(register)


def test_one_question_is_rewritten_once(one: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region"
    answer = one.sql(query)
    monkeypatch.setattr(one._rewritings._rewriter, "rewrite", None)
    for number in range(30):
        again = query.replace(" FROM", f" -- user {number}\n  FROM")
        assert one.sql(f"/* chart {number} */  {again}").equals(answer)
    with pytest.raises(Refused):
        one.sql(query.replace("region, ", "region,", 1) + " -- another")


def test_what_is_refused_does_not_fill_the_memory(one: Guard) -> None:
    """Texts are remembered before they are judged: so many, and none that is long."""
    for number in range(1100):
        with pytest.raises(Refused):
            one.sql(f"DELETE FROM people /* {number} */" + ("x" * 200_000 if number % 100 == 0 else ""))
    assert len(one._rewritings._texts) <= 1000
    assert max(map(len, one._rewritings._texts)) <= 10_000
    long = "SELECT 1 AS a" + " " * 20_000 + "/* long */"
    assert one.sql(long).to_pylist() == [{"a": 1}]
    assert long not in one._rewritings._texts


def test_strings_are_left_alone(one: Guard) -> None:
    asked = ["SELECT 'a  b' AS x", "SELECT 'a b' AS x", "SELECT 'a -- b' AS x", "SELECT 'a /* */ b' AS x"]
    assert [one.sql(text)["x"].to_pylist() for text in asked] == [["a  b"], ["a b"], ["a -- b"], ["a /* */ b"]]


def test_a_change_of_policies_is_seen(one: Guard, register: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(Refused, match="SDC020"):
        one.sql("/* 1 */ SELECT region FROM places")
    register.execute("FROM sdc_declare_public('places')").fetchall()
    assert one.sql("/* 2 */ SELECT region FROM places").num_rows == 1
    register.execute("FROM sdc_unprotect('places')").fetchall()
    with pytest.raises(Refused, match="SDC020"):
        one.sql("/* 3 */ SELECT region FROM places")
