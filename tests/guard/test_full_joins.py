"""FULL and RIGHT JOIN of records of one population: what DuckDB says, one noise, and nothing of one unit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random

import duckdb
import pytest
from effort import times
from visits_database import METHODS, answer, answer_of_duckdb, made

import sdcduck
from sdcduck.guard import Guard

_FLU = "(SELECT DISTINCT id FROM visits WHERE diagnosis = 'flu')"
_CUT = "(SELECT DISTINCT id FROM visits WHERE diagnosis = 'cut')"
_N_FLU = "(SELECT id, count(*) AS n FROM visits WHERE diagnosis = 'flu' GROUP BY id)"
_M_CUT = "(SELECT id, count(*) AS m, sum(cost) AS x FROM visits WHERE diagnosis = 'cut' GROUP BY id)"
EQUAL = [
    "SELECT v.diagnosis, p.age > 40 AS old, count(DISTINCT p.region), max(v.day), sum(p.age), var_pop(p.age) FROM patients p FULL JOIN visits v ON v.id = p.id AND month(v.day) > 3 GROUP BY ROLLUP (v.diagnosis, old)",
    "SELECT count(DISTINCT k.kind), max(p.age), sum(v.cost * p.age) FROM visits v FULL JOIN patients p ON p.id = v.id FULL JOIN visits w ON w.id = coalesce(p.id, v.id) LEFT JOIN kinds k ON k.diagnosis = v.diagnosis WHERE w.day IS NULL OR p.age < 50",
    "SELECT count(*) FROM patients FULL JOIN visits USING (id)",
    "SELECT count(*), count(v.cost), sum(v.cost), avg(p.income) FROM patients p FULL OUTER JOIN visits v ON p.id = v.id",
    "SELECT region, diagnosis, count(*) FROM patients p FULL JOIN visits v ON v.id = p.id GROUP BY ALL",
    "SELECT count(*) FROM patients p FULL JOIN visits v ON p.id = v.id WHERE v.id IS NULL",
    "SELECT p.id IS NULL AS a, v.id IS NULL AS b, count(*), count(DISTINCT coalesce(p.id, v.id)) FROM patients p FULL JOIN (FROM visits WHERE diagnosis = 'flu') v ON p.id = v.id GROUP BY a, b",
    f"SELECT count(*) FROM {_FLU} a FULL JOIN {_CUT} b USING (id)",
    f"SELECT count(*), count(a.id), count(b.id) FROM {_FLU} a FULL JOIN {_CUT} b ON a.id = b.id",
    f"SELECT n, m, count(*) FROM {_N_FLU} a FULL JOIN {_M_CUT} b USING (id) GROUP BY ALL",
    f"SELECT coalesce(n, 0) + coalesce(m, 0) AS k, count(*), sum(x) FROM {_N_FLU} a FULL JOIN {_M_CUT} b ON b.id = a.id GROUP BY k",
    f"SELECT k, count(*) FROM (SELECT COALESCE(a.id, b.id) AS id, coalesce(n, 0) AS k FROM {_N_FLU} a FULL JOIN {_M_CUT} b ON a.id = b.id) q GROUP BY k",
    f"SELECT region, count(*) FROM {_FLU} a FULL JOIN {_CUT} b ON a.id = b.id JOIN patients p ON p.id = coalesce(b.id, a.id) GROUP BY region",
    f"SELECT region, count(*) FROM {_FLU} a FULL JOIN {_CUT} b ON a.id = b.id LEFT JOIN patients p ON p.id = CASE WHEN a.id IS NOT NULL THEN a.id ELSE b.id END GROUP BY region",
    f"SELECT region, count(*) FROM {_FLU} a FULL JOIN {_CUT} b ON a.id = b.id LEFT JOIN patients p ON p.id = CASE WHEN a.id IS NULL THEN b.id ELSE a.id END GROUP BY region",
    f"SELECT count(*), count(DISTINCT coalesce(a.id, b.id, c.id)) FROM {_FLU} a FULL JOIN {_CUT} b ON a.id = b.id FULL JOIN (SELECT id FROM visits WHERE diagnosis = 'cold') c ON c.id = coalesce(a.id, b.id)",
    f"SELECT region, count(*) FROM (SELECT coalesce(a.id, c.id, b.id) AS id FROM {_FLU} a FULL JOIN {_CUT} b ON a.id = b.id FULL JOIN {_FLU} c ON c.id = coalesce(a.id, b.id)) q FULL JOIN patients p ON p.id = q.id GROUP BY region",
    "SELECT a.day IS NULL AS a, b.day IS NULL AS b, count(*) FROM (FROM visits WHERE diagnosis = 'flu') a FULL JOIN (FROM visits WHERE diagnosis = 'cut') b ON a.id = b.id AND a.day = b.day GROUP BY ALL",
    "SELECT kind, count(*) FROM (FROM visits WHERE day < DATE '2024-06-01') v FULL JOIN patients p ON p.id = v.id LEFT JOIN kinds k ON k.diagnosis = v.diagnosis GROUP BY kind",
    "SELECT kind, region, count(*) FROM visits v JOIN kinds USING (diagnosis) FULL JOIN patients p ON p.id = v.id WHERE p.age > 40 OR p.id IS NULL GROUP BY ALL",
    "SELECT count(*) FROM patients p FULL JOIN visits v ON p.id = v.id WHERE EXISTS (FROM visits w WHERE w.id = p.id AND w.day > v.day)",
    "SELECT count(*) FROM patients p FULL JOIN visits v ON p.id = v.id WHERE v.id IN (SELECT id FROM visits WHERE diagnosis = 'cut')",
    "SELECT coalesce(p.id, v.id) IN (SELECT id FROM visits WHERE diagnosis = 'cut') AS cut, count(*) FROM patients p FULL JOIN visits v ON p.id = v.id GROUP BY cut",
    "SELECT region, visits, count(*) FROM (SELECT coalesce(p.id, v.id) AS id, any_value(region) AS region, count(v.id) AS visits FROM patients p FULL JOIN visits v ON p.id = v.id GROUP BY 1) GROUP BY ALL",
    "SELECT sum(CASE WHEN a.id IS NOT NULL AND b.id IS NULL THEN 1 ELSE 0 END) AS flu, sum(CASE WHEN a.id IS NULL AND b.id IS NOT NULL THEN 1 ELSE 0 END) AS cut, sum(CASE WHEN a.id IS NOT NULL AND b.id IS NOT NULL THEN 1 ELSE 0 END) AS both FROM (SELECT DISTINCT id FROM visits WHERE diagnosis = 'flu' AND day < DATE '2025-01-01') a FULL OUTER JOIN (SELECT id FROM visits WHERE diagnosis = 'cut' AND day < DATE '2024-04-01' GROUP BY id) b ON (a.id = b.id)",
    "SELECT region, count(*), sum(cost) FROM visits v RIGHT JOIN patients p ON p.id = v.id GROUP BY region",
    "SELECT region, count(*) FROM visits v RIGHT OUTER JOIN patients p USING (id) WHERE v.id IS NULL GROUP BY region",
    "SELECT kind, count(*) FROM kinds k RIGHT JOIN visits v ON k.diagnosis = v.diagnosis GROUP BY kind",
    "SELECT class, count(*), sum(income) FROM (FROM ages WHERE w < 3) a RIGHT JOIN patients p ON p.age = a.age GROUP BY class",
]  # fmt: skip


@pytest.mark.parametrize("query", EQUAL)
def test_with_nothing_to_hide_it_is_what_duckdb_says(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


REFUSED = [
    ("SELECT count(*) FROM patients p FULL JOIN visits v ON p.region = v.diagnosis", "SDC035", "join v on the unit"),
    ("SELECT count(*) FROM patients p FULL JOIN visits v ON p.id = v.id AND v.diagnosis = 'flu'", "SDC034", "v: tie"),
    ("SELECT count(*) FROM patients p FULL JOIN visits v ON p.id = v.id AND p.income = v.cost", "SDC041", "cost"),
    ("SELECT count(*) FROM patients p FULL JOIN visits v ON p.id = v.id OR p.id IS NULL", "SDC040", ""),
    ("SELECT count(*) FROM patients p FULL JOIN visits v ON p.id IN (SELECT id FROM visits)", "SDC035", "unit"),
    ("SELECT count(*) FROM patients p FULL JOIN kinds k ON p.region = k.kind", "SDC033", "full"),
    ("SELECT p.id AS a, v.id AS b FROM patients p FULL JOIN visits v ON p.id = v.id", "SDC040", ""),
    ("SELECT coalesce(p.id, v.id) AS id, count(*) FROM patients p FULL JOIN visits v ON p.id = v.id GROUP BY 1", "SDC040", ""),
    ("SELECT coalesce(p.id, v.id) % 7 AS k, count(*) FROM patients p FULL JOIN visits v ON p.id = v.id GROUP BY 1", "SDC040", "unit"),
    ("SELECT p.record_key, count(*) FROM patients p FULL JOIN visits v ON p.id = v.id GROUP BY 1", "SDC030", ""),
    ("SELECT count(*) FROM patients p FULL JOIN visits v ON p.id = v.id WHERE income > 500", "SDC041", "income"),
    ("SELECT max(cost) FROM patients p FULL JOIN visits v ON p.id = v.id", "SDC050", ""),
    (f"SELECT sum(x) FROM {_M_CUT} a FULL JOIN visits v ON a.id = v.id", "SDC052", "repeated"),
    ("SELECT count(*) FROM visits a FULL JOIN visits b ON a.id = b.id FULL JOIN visits c ON c.id = coalesce(a.id, b.id)", "SDC033", ""),
]  # fmt: skip


@pytest.mark.parametrize(("query", "code", "detail"), REFUSED)
def test_others_are_refused(refused_as: Callable[[str, str, str], None], query: str, code: str, detail: str) -> None:
    refused_as(query, code, detail)


# --- One set of units has one number ------------------------------------------------------------------------------

_SAME = {
    "of one side": [
        "SELECT {n} AS x FROM patients p WHERE id NOT IN (SELECT id FROM visits WHERE diagnosis = 'flu') AND {c}",
        f"SELECT {{n}} AS x FROM patients p FULL JOIN {_FLU} f ON f.id = p.id WHERE f.id IS NULL AND {{c}}",
        f"SELECT {{n}} AS x FROM {_FLU} f FULL JOIN patients p ON f.id = p.id WHERE f.id IS NULL AND {{c}}",
        f"SELECT {{n}} AS x FROM {_FLU} f RIGHT JOIN patients p ON f.id = p.id WHERE f.id IS NULL AND {{c}}",
        "SELECT {n} AS x FROM patients p FULL JOIN (FROM visits WHERE diagnosis = 'flu') v ON v.id = p.id WHERE v.day IS NULL AND {c}",
    ],
    "of both sides": [
        "SELECT {n} AS x FROM patients p WHERE id IN (SELECT id FROM visits WHERE diagnosis = 'flu') AND {c}",
        f"SELECT {{n}} AS x FROM patients p JOIN {_FLU} f ON f.id = p.id WHERE {{c}}",
        f"SELECT {{n}} AS x FROM patients p FULL JOIN {_FLU} f ON f.id = p.id WHERE f.id IS NOT NULL AND {{c}}",
        f"SELECT {{n}} FILTER (WHERE f.id IS NOT NULL AND p.id IS NOT NULL AND {{c}}) AS x FROM {_FLU} f FULL JOIN patients p ON f.id = p.id",
    ],
}  # fmt: skip
_UNIONS = [
    "SELECT count(*) AS x FROM patients WHERE id IN (SELECT id FROM visits WHERE diagnosis IN ('flu', 'cut'))",
    f"SELECT count(*) AS x FROM {_FLU} a FULL JOIN {_CUT} b ON a.id = b.id",
    f"SELECT count(*) AS x FROM {_FLU} a FULL JOIN {_CUT} b USING (id)",
    f"SELECT count(DISTINCT coalesce(a.id, b.id)) AS x FROM {_FLU} a FULL JOIN {_CUT} b ON a.id = b.id",
    "SELECT count(DISTINCT coalesce(a.id, b.id)) AS x FROM (FROM visits WHERE diagnosis = 'flu') a FULL JOIN (FROM visits WHERE diagnosis = 'cut') b ON a.id = b.id AND a.day = b.day",
    f"SELECT count(*) AS x FROM {_N_FLU} a FULL JOIN {_M_CUT} b ON a.id = b.id",
    f"SELECT count(*) AS x FROM (SELECT coalesce(a.id, b.id) AS id FROM {_FLU} a FULL JOIN {_CUT} b ON a.id = b.id) q JOIN patients p ON p.id = q.id",
    "SELECT count(*) AS x FROM (SELECT id FROM visits WHERE diagnosis = 'flu' UNION SELECT id FROM visits WHERE diagnosis = 'cut') q",
    # A unit may have two rows where the join is by a column that it may be without.
    "SELECT count(DISTINCT coalesce(q.id, f.id)) AS x FROM (SELECT p.id, c.id AS cut FROM (FROM patients WHERE id IN (SELECT id FROM visits WHERE diagnosis IN ('flu', 'cut'))) p "
    f"LEFT JOIN {_CUT} c ON c.id = p.id) q FULL JOIN {_FLU} f ON f.id = q.cut",
]  # fmt: skip


@pytest.mark.parametrize("aggregate", ["count(*)", "count(DISTINCT p.id)", "sum(income)", "avg(income)"])
@pytest.mark.parametrize("which", _SAME)
def test_one_set_of_units_has_one_number(guarded: tuple[str, Guard], which: str, aggregate: str) -> None:
    method, guard = guarded
    if method == "rounding" and "income" in aggregate:
        return
    for condition in ("age > 25", "region = 's'"):
        texts = [form.format(n=aggregate, c=condition) for form in _SAME[which]]
        found = {text: guard.sql(text).to_pylist()[0]["x"] for text in texts}
        assert len(set(found.values())) == 1, found
        assert None not in found.values()


def test_the_units_of_either_side_have_one_number(guarded: tuple[str, Guard]) -> None:
    found = {text: guarded[1].sql(text).to_pylist()[0]["x"] for text in _UNIONS}
    assert len(set(found.values())) == 1, found


# --- Of one unit nothing shows ------------------------------------------------------------------------------------

_LIKE_NOBODY = """
    UPDATE visits SET diagnosis = 'marked', day = '1777-07-07', cost = 987654 WHERE id = 7;
    UPDATE patients SET region = 'marked', age = 777, income = 987654 WHERE id = 7"""
_GROUPS = [
    "SELECT region, diagnosis, count(*) AS n, sum(cost) AS x FROM patients p FULL JOIN visits v ON p.id = v.id GROUP BY ALL",
    "SELECT diagnosis, day, count(*) AS n FROM visits v RIGHT JOIN patients p ON p.id = v.id GROUP BY ALL",
    f"SELECT age, p.id IS NULL AS a, f.id IS NULL AS b, count(*) AS n FROM patients p FULL JOIN {_FLU} f ON p.id = f.id GROUP BY ALL",
    "SELECT n, age, count(*) AS persons, sum(x) AS x FROM (SELECT id, count(*) AS n, sum(cost) AS x FROM visits GROUP BY id) v FULL JOIN patients p USING (id) GROUP BY ALL",
    "SELECT DISTINCT coalesce(v.diagnosis, p.region) AS k FROM visits v FULL JOIN patients p ON p.id = v.id",
    "SELECT a.day, b.day AS other, count(*) AS n FROM (FROM visits WHERE diagnosis = 'marked') a FULL JOIN visits b ON a.id = b.id AND a.day = b.day GROUP BY ALL",
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_a_unit_like_nobody_is_as_one_that_is_not_there(method: str) -> None:
    with made(method) as con:
        for table, dimensions, measures in (
            ("patients", "['region', 'age']", "['income']"),
            ("visits", "['diagnosis', 'day']", "['cost', 'fee', 'wide']"),
        ):
            con.execute(
                f"FROM sdc_protect('{table}', unit := 'id', dimensions := {dimensions}, measures := {measures}, population := "
                f"'persons', {METHODS[method].replace('min_units := 1', 'min_units := 3')}"
                f"{'' if method == 'threshold' else ', min_units := 6'})"
            ).fetchall()
        guard = sdcduck.open_guard(con)
        con.execute(_LIKE_NOBODY)
        texts = [text for text in _GROUPS if method != "rounding" or "sum(" not in text]
        there = [answer(guard, text) for text in texts]
        assert "marked" not in repr(there)
        assert "777" not in re.sub(r"\d+\.\d+|\d{4,}", "", repr(there))
        con.execute("DELETE FROM visits WHERE id = 7; DELETE FROM patients WHERE id = 7")
        groups = [[row[:2] for row in answer(guard, text)] for text in texts]
        assert [[row[:2] for row in rows] for rows in there] == groups


# --- At random ----------------------------------------------------------------------------------------------------


def _side(random: Random) -> str:
    where = random.choice(
        ["", " WHERE diagnosis = 'flu'", " WHERE day > DATE '2025-01-01'", " WHERE diagnosis <> 'cut'"]
    )
    return random.choice(
        [
            f"(SELECT id, count(*) AS n, min(day) AS day FROM visits{where} GROUP BY id)",
            f"(SELECT DISTINCT id, 1 AS n, DATE '2024-01-01' + length(diagnosis)::INTEGER AS day FROM visits{where})",
            f"(SELECT id, month(day) AS n, day FROM visits{where})",
            "(SELECT id, age AS n, DATE '2024-01-01' + age::INTEGER AS day FROM patients WHERE age < 40)",
        ]
    )


def _question(random: Random) -> str:
    kind = random.choice(["FULL", "FULL", "FULL", "RIGHT", "LEFT"])
    tie = random.choice(["a.id = b.id", "b.id = a.id", "a.id = b.id AND a.day = b.day", "a.id = b.id AND a.n = b.n"])
    where = random.choice(["", " WHERE a.id IS NULL", " WHERE b.n > 1 OR a.n IS NULL", " WHERE coalesce(a.n, b.n) < 9"])
    shown = random.choice(["a.n, count(*) AS m", "a.id IS NULL AS l, b.n, count(a.day) AS m", "count(*), count(b.id)"])
    keys = "" if shown.startswith("count") else " GROUP BY ALL"
    unit = random.choice(["", ", count(DISTINCT coalesce(a.id, b.id))" if kind == "FULL" else ""])
    return f"SELECT {shown}{unit} FROM {_side(random)} a {kind} JOIN {_side(random)} b ON {tie}{where}{keys}"


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[duckdb.DuckDBPyConnection, Guard]]:
    with made("threshold") as con:
        yield con, sdcduck.open_guard(con)


@pytest.mark.parametrize("seed", range(4))
def test_random_joins_are_those_of_duckdb(both: tuple[duckdb.DuckDBPyConnection, Guard], seed: int) -> None:
    con, guard = both
    random = Random(seed)
    for _ in range(times(6, 60)):
        query = _question(random)
        found = answer(guard, query)
        assert found == _null_for_none(answer_of_duckdb(con, query), found), query


def _null_for_none(wanted: list[tuple[object, ...]], found: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """The rows of DuckDB, with NULL for 0: of nobody a threshold says nothing, and so it does where there is a 0."""
    said = {value for row in found for value in row}
    return wanted if "0" in said else [tuple(None if value == "0" else value for value in row) for row in wanted]
