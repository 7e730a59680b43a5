"""Pictures of a release: how near its records are, and which tables it kept."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck import pictures


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect() as connection:
        connection.execute("""
            CREATE TABLE everybody AS SELECT i, i * 7919 % 1009 % 50 AS age, i * 7919 % 1009 % 50 // 10 AS decade,
                i * 104729 % 997 % 700 AS pay FROM range(600) t(i);
            CREATE TABLE originals AS SELECT * EXCLUDE i FROM everybody WHERE i < 300;
            CREATE TABLE others AS SELECT * EXCLUDE i FROM everybody WHERE i >= 300;
            CREATE TABLE torn AS SELECT age, (age * 31 % 50) // 10 AS decade, pay FROM originals;
        """)
        yield connection


def words(picture: pictures.Picture) -> list[str]:
    root = ET.fromstring(picture.svg)
    return [text.text or "" for text in root.iter() if text.tag.split("}")[-1] in ("desc", "title", "text")]


def test_copies_stand_at_zero(con: duckdb.DuckDBPyConnection) -> None:
    said = words(pictures.closest_records(con, "originals", "originals", "others"))
    assert any(
        text.startswith("100.0% of the released records equal an original one, and 0.0% of the holdout")
        for text in said
    )
    shares = [float(text.split(": ")[1]) for text in said if text.startswith("holdout: ")]
    assert sum(shares) == pytest.approx(1, abs=0.01)
    assert words(pictures.closest_records(con, "originals", "others")) != said


def test_a_table_that_was_torn_is_framed(con: duckdb.DuckDBPyConnection) -> None:
    kept, torn = (pictures.accuracy_map(con, "originals", name) for name in ("originals", "torn"))
    assert "#D55E00" not in kept.svg
    assert "#D55E00" in torn.svg
    assert "Least accurate: age with decade" in " ".join(words(torn))
    assert "pay with age: 1.000" in words(kept)


def test_what_cannot_be_drawn(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match="needs at least 2 columns"):
        pictures.accuracy_map(con, "originals", "torn", ["age"])
    with pytest.raises(duckdb.Error, match="unknown table"):
        pictures.closest_records(con, "originals", "nowhere")
    wide = f"(SELECT {', '.join(f'range % {k} AS c{k}' for k in range(2, 34))} FROM range(60))"
    with pytest.raises(sdcduck.SDCError, match="32 columns are too many"):
        pictures.accuracy_map(con, wide, wide)
