"""Texts of the same words are one text to DuckDB's parser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sdcduck.guard.passes.parse import parsed
from sdcduck.guard.passes.same_words import same_words

_QUERIES = (Path(__file__).parent / "acceptance" / "queries.sql").read_text(encoding="utf-8")
_TEXTS = [part.split("\n", 1)[1].strip() for part in _QUERIES.split("\n-- ")[1:]]
_PLACES = ("query_location", "query_location_length")


def _tree(con: duckdb.DuckDBPyConnection, text: str) -> Any:
    """What DuckDB reads, without places and without the capitals of functions."""

    def plain(item: dict[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in item.items() if name not in (*_PLACES, "qualified_name")}
        return kept | {"function_name": str(kept.get("function_name")).lower()}

    (read,) = con.execute("SELECT json_serialize_sql(?)", [text]).fetchall()[0]
    return json.loads(read, object_hook=plain)


def test_duckdb_reads_the_same_in_the_same_words() -> None:
    texts = [text.split(";")[0] for text in _TEXTS if text.startswith(("SELECT", "FROM", "WITH", "("))]
    written = [(text, parsed(text).sql("duckdb", comments=False)) for text in texts if "--" not in text]
    alike = [pair for pair in written if same_words(*pair)]
    assert len(alike) > len(written) / 3
    with duckdb.connect() as con:
        for text, again in alike[::3]:
            assert _tree(con, text) == _tree(con, again)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT e'a\\n'", "SELECT e 'a\\n'"),
        ("SELECT 'a'\n'b'", "SELECT 'a' 'b'"),
        ("SELECT a -- b\n, c", "SELECT a -- b , c"),
        ("SELECT 1e-5", "SELECT 1e -5"),
        ("SELECT a < -b", "SELECT a <- b"),
        ("SELECT $1", "SELECT $ 1"),
        ("SELECT $$a$$", "SELECT $$a$$"),
        ("SELECT 'A'", "SELECT 'a'"),
        ('SELECT "A"', "SELECT A"),
        ("SELECT \u212a", "SELECT k"),
        ("SELECT a\u00a0b", "SELECT a b"),
        ("SELECT #1", "SELECT # 1"),
        ("SELECT ?", "SELECT ?"),
        ("SELECT 1; SELECT 2", "SELECT 1 SELECT 2"),
        ("SELECT 'a", "SELECT 'a"),
        ("SELECT a\x00b", "SELECT a\x00b"),
    ],
)
def test_what_may_be_read_in_another_way_is_not_the_same(one: str, other: str) -> None:
    assert not same_words(one, other)
