"""Where statements end, what may be completed, and how boxes fit."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from sdcduck.guard import Origin
from sdcduck.shell.boxes import Column, box
from sdcduck.shell.completion import completions
from sdcduck.shell.sources import Table
from sdcduck.shell.statements import explained, is_complete, is_question, split

TABLES = [
    Table(
        "people",
        "protected",
        (("region", "VARCHAR", "dimension"), ("income", "INTEGER", "measure"), ("group", "INTEGER", "dimension")),
    ),
    Table("regions", "public", (("region", "VARCHAR", "public"), ("Per capita", "DOUBLE", "public"))),
]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        (" ;;\n; -- nothing", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT ';'; SELECT \";\";SELECT $$;$$; SELECT $a$;$$;$a$", ["SELECT ';'", 'SELECT ";"', "SELECT $$;$$", "SELECT $a$;$$;$a$"]),
        ("SELECT 'it''s;' -- no; end\n; SELECT /* ; */ 2", ["SELECT 'it''s;' -- no; end", "SELECT /* ; */ 2"]),
        (r"SELECT e'\';'; SELECT date'2020-01-01'';'", [r"SELECT e'\';'", "SELECT date'2020-01-01'';'"]),
        (".tables\nSELECT 1;.mode csv\n", [".tables", "SELECT 1", ".mode csv"]),
        ("-- first\n.tables\nSELECT .5\n.5;", [".tables", "SELECT .5\n.5"]),
        ("SELECT $1; SELECT 2", ["SELECT $1", "SELECT 2"]),
        ("SELECT 1;\nquit\n", ["SELECT 1", "quit"]),
        ("help;\nSELECT exit\nFROM quit;", ["help", "SELECT exit\nFROM quit"]),
        ("\\d people\nSELECT 1", ["\\d people", "SELECT 1"]),
    ],
)  # fmt: skip
def test_statements_and_commands(text: str, parts: list[str]) -> None:
    assert list(split(text)) == parts


@pytest.mark.parametrize(
    "text", ["SELECT 1", "SELECT ';", 'SELECT ";', "SELECT 1; SELECT", "SELECT /* ;", "SELECT $$ ;"]
)
def test_more_has_to_come(text: str) -> None:
    assert not is_complete(text)


@pytest.mark.parametrize(
    "text", ["", "  ", ".help", "SELECT 1;", "SELECT 1; -- yes", "SELECT 1;\n.help", "-- note", "exit", "\\d"]
)
def test_that_is_all(text: str) -> None:
    assert is_complete(text)


def test_what_a_statement_is() -> None:
    assert [is_question(text) for text in ("select 1", "-- a\nFROM t", "(SELECT 1)", "SHOW x", "BEGIN")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    assert explained("explain\nSELECT 1") == "SELECT 1"
    assert explained("EXPLAIN (FORMAT JSON) SELECT 1") is None


@pytest.mark.parametrize(
    ("typed", "word", "found"),
    [
        ("SELECT count(*) FROM ", "", ["people", "regions"]),
        ("SELECT count(*) FROM peo", "peo", ["people"]),
        ("SELECT 1 FROM people JOIN r", "r", ["regions"]),
        ("SELECT sum(inc", "inc", ["income"]),
        ("SELECT p.|FROM people p", "", ['"group"', "income", "region"]),
        ("SELECT secrets.", "", []),
        ("SELECT med", "med", ["median"]),
        ("select hav", "hav", ["having"]),
        ("SELECT HAV", "HAV", ["HAVING"]),
        ("SELECT 'inc", "", []),
        ("SELECT Per|FROM regions", "Per", ['"Per capita"']),
        ('SELECT "Per|FROM regions', '"Per', ['"Per capita"']),
        ('SELECT count(*) FROM "', '"', ['"Per capita"', '"group"', '"income"', '"people"', '"region"', '"regions"']),
        ("SELECT gro", "gro", ['"group"', "group by", "grouping sets", "grouping", "grouping_id"]),
        ("SELECT people.gro|FROM people", "gro", ['"group"']),
        ("describe peo", "peo", ["people"]),
        ("show tab", "tab", []),
        ("sho", "sho", ["show tables"]),
        (".col", "col", ["columns"]),
        (".columns re", "re", ["regions"]),
        (".mode j", "j", ["json"]),
        (".timer o", "o", ["on", "off"]),
        (".explain SELECT count(*) FROM peo", "peo", ["people"]),
        (".read x", "x", []),
    ],
)
def test_what_may_come_next(typed: str, word: str, found: list[str]) -> None:
    before, _, after = typed.partition("|")
    asked, options = completions(before, f"{before} {after}", TABLES)
    assert (asked, [text for text, _ in options if text.lower() != "percent_rank"]) == (
        word, [text for text in found if text != "PERCENT_RANK"],
    )  # fmt: skip


def test_columns_say_what_they_are_for_and_odd_names_are_quoted() -> None:
    _, options = completions("SELECT regions.", "SELECT regions. FROM regions", TABLES)
    assert options == [('"Per capita"', "public"), ("region", "public")]


def test_a_box_is_as_wide_as_the_terminal() -> None:
    columns = [Column(f"column_{place}", "VARCHAR") for place in range(8)]
    row = ["x" * 30] * 8
    for width in (200, 120, 80, 40, 20):
        lines = box(columns, [row], [], 1, width).plain.splitlines()
        assert max(map(cell_len, lines[:-1])) <= width
        assert len({cell_len(line) for line in lines[:-1]}) == 1
    assert "8 columns (" in lines[-1]
    whole = box(columns, [row], [], 1, None).plain
    assert whole.count("x" * 30) == 8


def test_wide_characters_have_their_width() -> None:
    lines = box([Column("城市", "VARCHAR")], [["東京"], ["a"], [None]], [], 3, 80).plain.splitlines()
    assert len({cell_len(line) for line in lines[:-1]}) == 1


def test_numbers_are_never_shortened_and_marks_are_coloured() -> None:
    origin = Origin("n", frozenset([("people", "threshold")]))
    drawn = box(
        [Column("n", "BIGINT", origin), Column("t", "VARCHAR")], [["1" * 30, "y" * 90], [None, None]], [], 2, 60
    )
    assert "1" * 30 in drawn.plain
    assert "…" in drawn.plain
    assert {str(span.style) for span in drawn.spans} >= {"green", "bold red", "bold", "dim"}
