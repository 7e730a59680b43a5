"""What a question of a PostgreSQL client means there, it means here, or it is refused.

What is expected was measured with PostgreSQL 15.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from served_gateway import PASSWORD, Served

import sdcduck
from sdcduck.gateway.postgres.sql import to_duckdb
from sdcduck.guard import Guard, Refused


@pytest.fixture(scope="module")
def meant() -> Iterator[Guard]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            "CREATE TABLE people AS SELECT id AS person_id, ['a_b', 'axb', '50%', 'a\\b', 'A_B'][1 + id % 5] AS word, "
            "TIMESTAMP '2024-01-01' + to_hours((id * 37 % 8000)::INTEGER) AS joined FROM range(1, 3001) u(id)"
        )
        con.execute(
            "CREATE TABLE words AS SELECT unnest(['a_b', 'axb', '50%', 'a\\b', 'A_B']) AS word, 'a\\_b' AS pattern"
        )
        con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
        con.execute("FROM sdc_protect('people', unit := 'person_id', dimensions := ['word', 'joined'])").fetchall()
        con.execute("FROM sdc_declare_public('words')").fetchall()
        yield sdcduck.open_guard(con)


def _rows(guard: Guard, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in guard.sql(to_duckdb(sql, "register")).to_pylist()]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("YYYY", "2024"), ("yyyy-mm-dd", "2024-03-05"), ("YY", "24"), ("MM/DD", "03/05"), ("DDD", "065"),
        ("HH24:MI:SS.US", "13:07:09.250000"), ("HH12:MI:SS.MS PM", "01:07:09.250 PM"), ("HH AM", "01 PM"),
        ("IYYY-IW-ID", "2024-10-2"), ("Mon", "Mar"), ("Dy, DD Mon YYYY", "Tue, 05 Mar 2024"), ("FMMonth YYYY", "March 2024"),
        ("FMDay", "Tuesday"), ("FMDD.FMMM.", "5.3."), ('YYYY-MM-DD"T"HH24:MI', "2024-03-05T13:07"),
        ('YYYY" 100%"', "2024 100%"), ("YYYYMMDDSS", "2024030509"),
    ],
)  # fmt: skip
def test_to_char_is_that_of_postgresql(meant: Guard, template: str, text: str) -> None:
    assert _rows(meant, f"SELECT to_char(TIMESTAMP '2024-03-05 13:07:09.25', '{template}')") == [(text,)]


@pytest.mark.parametrize(
    "template",
    ["", "Day", "DAY", "Month", "MON", "mon", "dy", "DDth", "MMTH", "SSSS", "FMSSSS", "SSSSS", "Q", "D", "WW", "W", "CC", "J", "RM",
     "TZ", "OF", "BC", "A.M.", "am", "YYY", "Y,YYY", "IDDD", "IYY", "FXYYYY", "TMMonth", "MMSP", "999", "FM999D99", "%Y", "%m",
     "YYYY-Www", '"open', 'YYYY\\"', "FF6", "HH11"],
)  # fmt: skip
def test_templates_that_mean_something_else_are_refused_with_a_lesson(meant: Guard, template: str) -> None:
    for sql in (
        f"SELECT to_char(joined, '{template}'), count(*) FROM people GROUP BY 1",
        f"SELECT to_char(current_date, '{template}')",
    ):
        with pytest.raises(Refused, match=r"SDC010: .*\(to_char: strftime"):
            _rows(meant, sql)


def test_months_are_groups(meant: Guard) -> None:
    by_name = _rows(meant, "SELECT to_char(joined, 'Mon'), count(*) FROM people GROUP BY to_char(joined, 'Mon')")
    by_number = _rows(meant, "SELECT to_char(joined, 'MM'), count(*) FROM people GROUP BY 1")
    assert {name for name, _ in by_name} > {"Jan", "Jun"}
    assert sorted(count for _, count in by_name) == sorted(count for _, count in by_number)


@pytest.mark.parametrize(
    ("text", "template", "moment"),
    [
        ("2024-05-01 12:30 AM", "YYYY-MM-DD HH12:MI AM", "2024-05-01 00:30:00"),
        ("2024-05-01 01:30 pm", "YYYY-MM-DD HH:MI AM", "2024-05-01 13:30:00"),
        ("2024-05-01 12:30PM", "YYYY-MM-DD HH12:MIPM", "2024-05-01 12:30:00"),
        ("20240501T133059", 'YYYYMMDD"T"HH24MISS', "2024-05-01 13:30:59"),
        ("2024-05-01 00:00:00.000001", "YYYY-MM-DD HH24:MI:SS.US", "2024-05-01 00:00:00.000001"),
        ("05/2024", "MM/YYYY", "2024-05-01 00:00:00"),
    ],
)  # fmt: skip
def test_texts_are_the_moments_of_postgresql(meant: Guard, text: str, template: str, moment: str) -> None:
    assert _rows(meant, f"SELECT to_timestamp('{text}', '{template}')::VARCHAR") == [(moment,)]
    assert _rows(meant, f"SELECT to_date('{text}', '{template}')::VARCHAR") == [(moment[:10],)]


@pytest.mark.parametrize(
    ("text", "template"),
    [
        ("2024-05-01 13:30 PM", "YYYY-MM-DD HH12:MI PM"), ("2024-05-01 08:30 PM", "YYYY-MM-DD HH24:MI PM"),
        ("2024-05-01 08:30", "YYYY-MM-DD HH12:MI"), ("69", "YY"), ("May 2024", "Mon YYYY"), ("2024 2024", "YYYY YYYY"),
        ("2024-02-30", "YYYY-MM-DD"), ("2024-5-1", "YYYY-MM-DD"), ("2024-05-01 and more", "YYYY-MM-DD"), ("05", "MM"),
        ("2024-05-01", "%Y-%m-%d"), ("2024-05", "%Y-MM"),
    ],
)  # fmt: skip
def test_texts_that_are_read_otherwise_are_refused_with_a_lesson(meant: Guard, text: str, template: str) -> None:
    for function, lesson in (("to_timestamp", "TIMESTAMP '"), ("to_date", "DATE '")):
        for sql in ("SELECT count(*) FROM people WHERE joined < {}", "SELECT {}"):
            with pytest.raises(Refused, match=rf"SDC010: .*{function}.*: {lesson}"):
                _rows(meant, sql.format(f"{function}('{text}', '{template}')"))


def test_numbers_are_not_read_by_templates(meant: Guard) -> None:
    with pytest.raises(Refused, match="to_number: CAST"):
        _rows(meant, "SELECT to_number('12,454.8-', '99G999D9S')")
    assert _rows(meant, "SELECT date_part('year', to_timestamp(1700000000)), to_char(current_date, 'FMMM') <> ''") == [
        (2023, True)
    ]


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (r"word LIKE 'a\_b'", ["a_b"]), (r"word ILIKE 'a\_b'", ["a_b", "A_B"]), (r"word ~~ 'a\_b'", ["a_b"]),
        (r"word NOT LIKE '%\_%' AND word LIKE '_%'", ["axb", "50%", r"a\b"]), (r"word !~~* 'a\_b'", ["axb", "50%", r"a\b"]),
        (r"word LIKE '%\%'", ["50%"]), (r"word LIKE E'%\\%'", ["50%"]), (r"word LIKE 'a\\b'", [r"a\b"]), (r"word LIKE '\a\x\b'", ["axb"]),
        ("word LIKE 'a_b'", ["a_b", "axb", r"a\b"]), (r"word LIKE 'a!_b' ESCAPE '!'", ["a_b"]), (r"word LIKE 'a\_' ESCAPE ''", [r"a\b"]),
        (r"word LIKE lower('A\_B')", ["a_b"]), (r"word LIKE concat('a\_', lower('B'))", ["a_b"]), ("word LIKE NULL", []),
        (r"word LIKE '50\' || '%'", ["50%"]), (r"word LIKE ('a\_' || 'b')", ["a_b"]),
    ],
)  # fmt: skip
def test_a_backslash_escapes_in_patterns(meant: Guard, condition: str, words: list[str]) -> None:
    assert {word for (word,) in _rows(meant, f"SELECT word FROM words WHERE {condition}")} == set(words)
    asked = _rows(meant, f"SELECT word, count(*) FROM people WHERE {condition} GROUP BY word")
    assert {word for word, _ in asked} == set(words)


def test_the_function_like_is_not_the_other_way_round(meant: Guard) -> None:
    for written in (r"like(word, 'a\_b')", r"word LIKE 'a\_b' AND NOT ilike(word, 'x')"):
        with pytest.raises(Refused):
            _rows(meant, f"SELECT word FROM words WHERE {written}")


def test_patterns_of_columns_have_escapes(meant: Guard) -> None:
    assert _rows(meant, "SELECT word FROM words WHERE word LIKE pattern") == [("a_b",)]


def test_a_pattern_that_ends_in_its_escape_has_no_answer(meant: Guard) -> None:
    with pytest.raises(Refused):
        _rows(meant, "SELECT word FROM words WHERE word LIKE 'a' || chr(92)")


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (r"word LIKE ANY (ARRAY['a\_b', '5%'])", ["a_b", "50%"]), (r"word NOT LIKE ALL (ARRAY['a\_b', '5%'])", ["axb", r"a\b", "A_B"]),
        (r"word NOT LIKE ANY (ARRAY['a%', '%b']::text[])", ["50%", "A_B"]), ("word ILIKE ALL (ARRAY['a%', '%B'])", ["a_b", "axb", r"a\b", "A_B"]),
        (r"NOT word LIKE ANY (ARRAY['a%'])", ["50%", "A_B"]), (r"word ~~ ANY (ARRAY['a\_b'])", ["a_b"]),
    ],
)  # fmt: skip
def test_lists_of_patterns_mean_each(meant: Guard, condition: str, words: list[str]) -> None:
    assert {word for (word,) in _rows(meant, f"SELECT word FROM words WHERE {condition}")} == set(words)
    asked = _rows(meant, f"SELECT word, count(*) FROM people WHERE {condition} GROUP BY word")
    assert {word for word, _ in asked} == set(words)


@pytest.mark.parametrize(
    "condition", ["word LIKE ANY (SELECT pattern FROM words)", "word LIKE ANY ($1)", "word LIKE ALL ('{a,b}')", "word SIMILAR TO 'a%'",
     "format('%s', word) = 'a'", "format(word, 1) = 'a'"]
)  # fmt: skip
def test_what_no_pattern_of_duckdb_means_is_refused(meant: Guard, condition: str) -> None:
    for written in ("{}", "{} AND to_char(current_date, 'YYYY') <> ''"):  # read as DuckDB's, and as PostgreSQL's
        with pytest.raises(Refused):
            _rows(meant, f"SELECT word FROM words WHERE {written.format(condition)}")


def test_patterns_of_records_are_refused_with_a_lesson(meant: Guard) -> None:
    with pytest.raises(Refused, match="starts_with"):
        _rows(meant, "SELECT count(*) FROM people WHERE word LIKE word")
    assert _rows(meant, "SELECT count(*) > 0 FROM people WHERE contains(word, word)") == [(True,)]


@pytest.mark.parametrize("pattern", ["N", "North", "%or_h", r"N\orth", r"Nort\h", r"North\%", r"\N%", "x"])
def test_a_parameter_is_a_pattern_over_records(served: Served, pattern: str) -> None:
    plain = r"\%" not in pattern and pattern not in ("N", "x")
    with psycopg.connect(**served.options, autocommit=True) as con:
        for condition in (
            "region LIKE %s",
            "region ILIKE %s::text",
            "region LIKE %s || ''",
            r"region LIKE %s ESCAPE '\'",
            "region ~~ %s",
        ):
            for prepare in (False, True):
                asked = f"SELECT region, count(*) FROM people WHERE {condition} GROUP BY region"
                found = con.execute(asked, (pattern,), prepare=prepare).fetchall()
                assert [region for region, _ in found] == (["North"] if plain else [])
        asked = "SELECT count(*) FROM people WHERE region LIKE concat('%%', %s, '%%') AND age < %s AND sex = %s"
        assert (con.execute(asked, (pattern.strip("%"), 99, "f")).fetchone() or (0,))[0] > 300 or not plain


def test_a_pattern_that_ends_in_its_escape_is_an_error(served: Served) -> None:
    before = len(served.asked())
    with psycopg.connect(**served.options, autocommit=True) as con:
        for table, column in (("people", "region"), ("numbers", "words")):
            for written, values in (
                (r"LIKE 'a\'", None),
                ("ILIKE %s", ("a\\",)),
                ("LIKE '50' || %s", ("\\\\\\",)),
                ("LIKE 'a!' ESCAPE '!'", None),
            ):
                for prepare in (False, True):
                    with pytest.raises(psycopg.errors.InvalidEscapeSequence) as caught:
                        con.execute(f"SELECT count(*) FROM {table} WHERE {column} {written}", values, prepare=prepare)
                    assert "LIKE pattern must not end with escape character" in str(caught.value)
        assert con.execute(r"SELECT 'a\' LIKE 'a\\', 'a' LIKE NULL, 'a' LIKE %s", (None,)).fetchall() == [
            (True, None, None)
        ]
    lines = served.asked()[before:]
    assert [line["verdict"] for line in lines] == ["SDC090"] * 16 + ["answered"]


def test_flight_has_the_same_patterns(served: Served) -> None:
    adbc = pytest.importorskip("adbc_driver_flightsql.dbapi")
    login = {"username": "ann", "password": PASSWORD}
    with adbc.connect(f"grpc://127.0.0.1:{served.flight}", db_kwargs=login) as con, con.cursor() as cursor:
        cursor.execute(r"SELECT region FROM people WHERE region LIKE 'Nor\th' GROUP BY region")
        assert cursor.fetchall() == [("North",)]
        cursor.execute("SELECT region FROM people WHERE region LIKE ? GROUP BY region", (r"S\outh",))
        assert cursor.fetchall() == [("South",)]
        with pytest.raises(adbc.Error, match="must not end with escape"):
            cursor.execute("SELECT region FROM people WHERE region LIKE ? GROUP BY region", ("S\\",))
            cursor.fetchall()


def test_patterns_in_questions_about_the_database(served: Served) -> None:
    with psycopg.connect(**served.options) as con:
        for written, values in ((r"LIKE 'an\_int'", None), ("LIKE %s", (r"an\_int",)), (r"~~ 'an\_in_'", None)):
            asked = f"SELECT column_name FROM information_schema.columns WHERE table_name = 'kinds' AND column_name {written}"
            assert con.execute(asked, values).fetchall() == [("an_int",)]


def test_a_parameter_is_a_pattern(served: Served) -> None:
    with psycopg.connect(**served.options) as con:
        found = con.execute(
            "SELECT 'a_b' LIKE %s, 'axb' LIKE %s, 'A_b' ILIKE %s", (r"a\_b", r"a\_b", r"a\_b")
        ).fetchall()
    assert found == [(True, False, True)]


@pytest.mark.parametrize("beside", ["", "WHERE 'x' = E'x'", "WHERE to_char(DATE '2024-01-01', 'YYYY') = '2024'"])
def test_null_is_last_whatever_else_stands_in_a_question(meant: Guard, beside: str) -> None:
    """With words of PostgreSQL beside it ORDER BY .. DESC had NULL first, and without them last."""
    values = "(SELECT unnest([3, NULL, 1]) AS n) t"
    assert _rows(meant, f"SELECT n FROM {values} {beside} ORDER BY n DESC LIMIT 1") == [(3,)]
    ranked = f"SELECT n, rank() OVER (ORDER BY n DESC) AS place FROM {values} {beside} ORDER BY place LIMIT 1"
    assert _rows(meant, ranked) == [(3, 1)]
    assert _rows(meant, f"SELECT n FROM {values} {beside} ORDER BY n DESC NULLS FIRST LIMIT 1") == [(None,)]
