"""An ENUM has labels that no record has, or one alone: no answer may tell them."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guard]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("""
            CREATE TYPE villages AS ENUM ('Zell', 'Alone, it''s (here)', 'Au');
            CREATE TABLE people AS SELECT i AS id, (CASE WHEN i = 7 THEN 'Alone, it''s (here)' WHEN i % 3 = 0 THEN 'Au'
                ELSE 'Zell' END)::villages AS village, [village] AS lived, i AS income FROM range(60) t(i)""")
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['village', 'lived'], measures := ['income'], "
            "method := 'threshold', min_units := 5)"
        ).fetchall()
        yield sdcduck.open_guard(con)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT village, count(*) AS n FROM people GROUP BY village ORDER BY village",
        "SELECT village FROM people GROUP BY village",
        "SELECT DISTINCT village FROM people",
        "SELECT lived, count(*) AS n FROM people GROUP BY lived",
        "SELECT {'v': village} AS s, map([village], [count(*)]) AS m, [village] AS l FROM people GROUP BY village",
        "SELECT list(village ORDER BY village) AS l FROM (SELECT village, count(*) AS n FROM people GROUP BY village)",
        "SELECT min(village) AS first FROM people",
        "SELECT * FROM people LIMIT 0",
    ],
)
def test_an_answer_has_no_label_of_groups_that_are_not_published(guarded: Guard, query: str) -> None:
    answer, streamed = guarded.sql(query), guarded.stream(query).read_all()
    assert answer.schema.equals(streamed.schema)
    assert sorted(map(str, answer.to_pylist())) == sorted(map(str, streamed.to_pylist()))
    assert "dictionary" not in str(answer.schema)
    told = [str(answer), str(answer.to_pylist()), str(guarded.columns(query)), str(guarded.explain(query))]
    assert "Alone" not in "".join(told)


def test_texts_are_compared_with_labels_as_texts(guarded: Guard) -> None:
    for condition in ("IN (SELECT 'Au' UNION SELECT 'nowhere')", "= (SELECT 'Au')", "IN ('Au', 'nowhere')"):
        query = f"SELECT count(*) AS n FROM people WHERE village {condition}"
        assert guarded.sql(query).to_pylist() == [{"n": 20}], query
    joined = (
        "SELECT f, count(*) AS n FROM people JOIN (VALUES ('Au', 1), ('nowhere', 2)) v(t, f) ON village = t GROUP BY f"
    )
    assert guarded.sql(joined).to_pylist() == [{"f": 1, "n": 20}]


def test_labels_keep_their_order(guarded: Guard) -> None:
    answer = guarded.sql("SELECT village FROM people GROUP BY village ORDER BY village")
    assert answer.column("village").to_pylist() == ["Zell", "Au"]


def test_the_types_of_columns_have_no_labels(guarded: Guard) -> None:
    [(_, columns)] = guarded.relations()
    assert columns == {"id": "BIGINT", "village": "VARCHAR", "lived": "VARCHAR[]", "income": "BIGINT"}


@pytest.mark.parametrize("kind", ["villages", "villages[]", "main.villages", "STRUCT(v villages)", '"villages"'])
def test_nobody_tries_labels_by_casts(guarded: Guard, kind: str) -> None:
    for text in ("Au", "Alone, it''s (here)", "nowhere"):
        with pytest.raises(Refused, match=r"SDC00[15]"):
            guarded.sql(f"SELECT TRY_CAST('{text}' AS {kind}) AS v")


def test_types_of_duckdb_can_be_cast_to(guarded: Guard) -> None:
    for kind in ("uint8", "UINTEGER", "HUGEINT", "VARCHAR", "DECIMAL(9, 2)", "DATE[]", "STRUCT(a INTEGER)"):
        value = "NULL" if kind in ("DATE[]", "STRUCT(a INTEGER)") else "'1'"
        assert guarded.columns(f"SELECT CAST({value} AS {kind}) AS v") == [
            ("v", str(duckdb.connect().sql(f"SELECT CAST({value} AS {kind}) AS v").types[0]))
        ]


@pytest.mark.parametrize(
    "text", ["Zell", "Au", "Alone, it''s (here)", "nowhere"], ids=["shown", "shown too", "hidden", "none"]
)
def test_nobody_tries_labels_as_a_default(guarded: Guard, text: str) -> None:
    groups = "(SELECT village AS v, count(*) AS n FROM people GROUP BY village)"
    for window in ("lag", "lead"):
        query = f"SELECT {window}(v, 1, '{text}') OVER (ORDER BY v) AS x FROM {groups} ORDER BY v"
        default = text.replace("''", "'")
        shown = [default, "Zell"] if window == "lag" else ["Au", default]
        assert guarded.sql(query).column("x").to_pylist() == shown
        with pytest.raises(Refused, match="SDC014"):
            guarded.sql(f"SELECT {window}([v], 1, ['{text}']) OVER (ORDER BY v) AS x FROM {groups}")


def test_numbers_have_defaults(guarded: Guard) -> None:
    query = """SELECT lag(n, 1, 0) OVER (ORDER BY v) AS a, lead(m, 1, -1.5) OVER (ORDER BY v) AS b,
        lag(n, 1, n) OVER (ORDER BY v) AS c
        FROM (SELECT village AS v, count(*) AS n, avg(income) AS m FROM people GROUP BY village) ORDER BY v"""
    answer = guarded.sql(query).to_pydict()
    assert (answer["a"], answer["b"][1], answer["c"]) == ([0, 39], -1.5, [39, 39])
