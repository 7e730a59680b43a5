"""`sdc_sequence_check`: the tracker by SQL, noise, what is asked of tables, and bad input."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest

import sdcduck


def _make_asked(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE staff AS
        SELECT 'M' AS sex, CASE WHEN i < 4 THEN 'Law' ELSE 'Arts' END AS dept FROM range(11) t(i)
        UNION ALL SELECT 'F', CASE WHEN i < 1 THEN 'Law' ELSE 'Arts' END FROM range(9) t(i);
        CREATE TABLE cells AS SELECT sex || ' ' || dept AS cell, count(*) AS units FROM staff GROUP BY ALL;
        CREATE TABLE sets AS
        SELECT question, 'all' AS set, cell FROM (VALUES ('1: M', 'M%'), ('2: F', 'F%'), ('3: M or Law', 'M%'),
            ('3: M or Law', '% Law')) t(question, pattern), cells WHERE cell LIKE pattern;
    """)


@pytest.fixture
def asked(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    _make_asked(con)
    return con


def verdicts(con: duckdb.DuckDBPyConnection, call: str) -> list[tuple[object, ...]]:
    return con.execute(f"FROM sdc_sequence_check({call})").fetchall()


def test_the_tracker(asked: duckdb.DuckDBPyConnection) -> None:
    """20 people, 11 M, 9 F, one F in Law; k = 3."""
    assert verdicts(asked, "'sets', 'cells', mode := 'atoms'") == [
        ("1: M", 2, 1, 1, None, 9.0, "answer"),
        ("2: F", 2, 1, 1, None, None, "answer"),
        ("3: M or Law", 3, 1, 1, None, 1.0, "refuse"),
    ]
    for mode, units in (("pairwise", 3), ("rank", 3)):
        found = verdicts(asked, f"'sets', 'cells', mode := '{mode}', min_units := {units}")
        assert [row[-1] for row in found] == ["answer", "answer", "refuse"]


def test_noise(asked: duckdb.DuckDBPyConnection) -> None:
    """The error of the one in Law from M or Law alone: she is one of 12, so sqrt(1 - (1/4) / (12/4 + v)) with v = 2."""
    [found] = verdicts(asked, "'(FROM sets WHERE question LIKE ''3%'')', 'cells', variance := 2")
    assert found[4] == pytest.approx(np.sqrt(1 - 0.25 / (3 + 2)))
    assert found[-1] == "answer"
    both = verdicts(asked, "'sets', 'cells', variance := 0.1, least_error := 0.7")
    prior, rows = np.diag([7, 4, 8, 1]) / 4, np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 0, 1]])
    inner = rows @ prior @ rows.T + 0.1 * np.eye(3)
    left = prior - prior @ rows.T @ np.linalg.inv(inner) @ rows @ prior
    assert both[2][4] == pytest.approx(np.sqrt(left[3, 3] / 0.25))
    assert [row[-1] for row in both] == ["answer", "answer", "refuse" if both[2][4] < 0.7 else "answer"]
    assert both[2][4] < 0.7


def test_the_variance_may_stand_beside_each_set(asked: duckdb.DuckDBPyConnection) -> None:
    given = verdicts(asked, "'(SELECT *, 2 AS variance FROM sets)', 'cells'")
    assert given == verdicts(asked, "'sets', 'cells', variance := 2")


def test_order_and_types_are_those_of_the_questions(con: duckdb.DuckDBPyConnection) -> None:
    sets = "(SELECT i AS question, 1 AS set, ''c'' || (i % 3) AS cell FROM range(12, 0, -1) t(i))"
    cells = "(SELECT ''c'' || i AS cell, 5 AS units FROM range(3) t(i))"
    found = verdicts(con, f"'{sets}', '{cells}', mode := 'atoms'")
    assert [row[0] for row in found] == list(range(1, 13))
    assert [row[3] for row in found] == [1] * 3 + [0] * 9
    kept = con.execute(f"DESCRIBE FROM sdc_sequence_check('{sets}', '{cells}', mode := 'atoms')").fetchall()
    assert [row[1] for row in kept] == ["BIGINT"] * 4 + ["DOUBLE", "DOUBLE", "VARCHAR"]


def test_a_question_with_many_cells_counts_all_of_them(con: duckdb.DuckDBPyConnection) -> None:
    """A grouped question is one: what its cells isolate together is what it isolates."""
    con.execute("CREATE TABLE c AS FROM (VALUES ('a', 4), ('b', 4), ('x', 1), ('y', 30)) t(cell, units)")
    con.execute(
        """CREATE TABLE s AS FROM (VALUES (1, 1, 'a'), (1, 1, 'x'), (1, 2, 'b'), (1, 2, 'x')) t(question, set, cell)"""
    )
    [found] = verdicts(con, "'s', 'c', mode := 'atoms'")
    assert found == (1, 3, 2, 2, None, 1.0, "refuse")


def test_sums_by_weights(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE c AS FROM (VALUES ('a', 1), ('b', 1), ('y', 30)) t(cell, units)")
    con.execute("""CREATE TABLE s AS FROM (VALUES (1, 'n', 'a', 1), (1, 'n', 'b', 1), (1, 'n', 'y', 1), (2, 's', 'a', 3),
        (2, 's', 'b', 1), (2, 's', 'y', 1)) t(question, set, cell, weight)""")
    assert [row[-1] for row in verdicts(con, "'s', 'c', mode := 'rank'")] == ["answer", "refuse"]
    assert [row[3] for row in verdicts(con, "'(SELECT * EXCLUDE (weight) FROM s)', 'c', mode := 'rank'")] == [
        0,
        0,
    ]  # how many all are is known


def test_what_is_logged_is_taken_as_answered(asked: duckdb.DuckDBPyConnection) -> None:
    call = "'(FROM sets UNION ALL SELECT ''4'', 1, ''F Law'')', 'cells', mode := 'atoms'"
    assert [row[-1] for row in verdicts(asked, call)] == ["answer", "answer", "refuse", "refuse"]
    assert [row[-1] for row in verdicts(asked, f"{call}, on_breach := 'log'")] == [
        "answer",
        "answer",
        "refuse",
        "answer",
    ]


def test_no_questions(asked: duckdb.DuckDBPyConnection) -> None:
    assert verdicts(asked, "'(FROM sets LIMIT 0)', 'cells', variance := 1") == []


@pytest.fixture(scope="module")
def unchanged() -> Iterator[duckdb.DuckDBPyConnection]:
    """What is asked in vain changes nothing, so all that is refused is asked of one."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        _make_asked(con)
        yield con


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("'sets', 'cells'", "argument 'variance' must be that of the noise"),
        ("'sets', 'cells', variance := -1", "argument 'variance' must be a number of at least 0"),
        ("'sets', 'cells', variance := 'NaN'::DOUBLE", "argument 'variance'"),
        ("'sets', 'cells', mode := 'atom'", "did you mean 'atoms'"),
        ("'sets', 'cells', mode := 'atoms', variance := 1", "'variance' is for mode := 'precision'"),
        ("'sets', 'cells', variance := 1, least_error := 80", "80 per cent is 0.8"),
        ("'sets', 'cells', variance := 1, min_units := 0", "argument 'min_units' must be a number of at least 1"),
        ("'sets', 'cells', variance := 1, on_breach := 'stop'", "argument 'on_breach'"),
        ("'nothing', 'cells', variance := 1", "nothing"),
        ("'cells', 'cells', variance := 1", "unknown column 'question'"),
        ("'sets', 'sets', variance := 1", "unknown column 'units'"),
        ("'sets', '(SELECT cell, ''many'' AS units FROM cells)', variance := 1", "units"),
        ("'sets', '(SELECT cell, -1 AS units FROM cells)', variance := 1", "'units' must be a number of at least 0"),
        ("'sets', '(SELECT cell, NULL::INTEGER AS units FROM cells)', variance := 1", "'units' must be a number"),
        ("'sets', '(FROM cells UNION ALL FROM cells)', variance := 1", "a cell is there twice"),
        ("'sets', '(SELECT NULL::VARCHAR AS cell, 1 AS units)', variance := 1", "a cell is NULL"),
        ("'sets', '(FROM cells LIMIT 1)', variance := 1", "a cell is not among those of 'cells'"),
        ("'(SELECT NULL::INTEGER AS question, set, cell FROM sets)', 'cells', variance := 1", "must not be NULL"),
        (
            "'(SELECT *, ''NaN''::DOUBLE AS weight FROM sets)', 'cells', variance := 1",
            "'weight' must be a finite number",
        ),
        ("'(SELECT *, -1 AS variance FROM sets)', 'cells'", "'variance' must be a finite number"),
        (
            "'(SELECT *, 1 AS weight FROM sets UNION ALL SELECT *, 2 FROM sets)', 'cells', variance := 1",
            "a cell has two weights in one set",
        ),
    ],
)
def test_bad_input(unchanged: duckdb.DuckDBPyConnection, call: str, said: str) -> None:
    with pytest.raises(duckdb.Error, match=said) as caught:
        verdicts(unchanged, call)
    assert "F Law" not in str(caught.value)
