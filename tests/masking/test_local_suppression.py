"""``sdc_local_suppress`` and its report: what a user of SQL gets, and what sdcMicro makes of its files."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

KEYS = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
CASES = {
    "localSuppression_k3": "k := 3",
    "localSuppression_k5_imp": "k := 5, importance := [7, 6, 5, 4, 3, 2, 1]",
    "localSuppression_combs": "k := [5, 3], combs := [3, 4]",
}


def read(con: duckdb.DuckDBPyConnection, folder: Path, name: str, table: str) -> None:
    con.execute(
        f"CREATE TABLE {table} AS SELECT {', '.join(KEYS)}, row_number() OVER () AS place FROM '{folder}/{name}.csv.gz'"
    )


@pytest.mark.parametrize("case", CASES)
def test_the_values_are_those_of_sdcmicro(reference_data: Path, con: duckdb.DuckDBPyConnection, case: str) -> None:
    folder = reference_data / "sdcmicro"
    read(con, folder, "input_testdata", "survey")
    read(con, folder, f"testdata_{case}", "theirs")
    call = f"('survey', {KEYS}, {CASES[case]}, id := 'place', method := '{{}}')"
    con.execute(f"CREATE TABLE ours AS FROM sdc_local_suppress{call.format('sdcmicro')}")
    assert con.execute("(SELECT * EXCLUDE (suppressed) FROM ours) EXCEPT FROM theirs").fetchall() == []
    known = json.loads((folder / "index.json").read_text())["cases"][case]
    counted = dict(
        con.execute(f"SELECT key, suppressed FROM sdc_local_suppress_report{call.format('sdcmicro')}").fetchall()
    )
    assert counted == known.get("supps", known.get("supps_per_var"))
    best = con.execute(f"SELECT sum(suppressed) FROM sdc_local_suppress{call.format('best')}").fetchall()[0][0]
    assert best <= sum(counted.values())


@pytest.mark.parametrize(("k", "rare", "theirs"), [(3, 281, 293), (5, 458, 512)])
def test_the_best_takes_one_value_of_each_rare_record(
    reference_data: Path, con: duckdb.DuckDBPyConnection, k: int, rare: int, theirs: int
) -> None:
    read(con, reference_data / "sdcmicro", "input_testdata", "survey")
    con.execute(f"CREATE TABLE released AS FROM sdc_local_suppress('survey', {KEYS}, k := {k}, id := 'place')")
    assert con.execute("SELECT sum(suppressed), max(suppressed) FROM released").fetchall() == [(rare, 1)]
    assert rare < theirs
    assert con.execute(f"SELECT below_k FROM sdc_k_anonymity('survey', {KEYS}, k := {k})").fetchall() == [(rare,)]
    assert con.execute(
        f"SELECT k >= {k}, below_k FROM sdc_k_anonymity('released', {KEYS}, k := {k}, nulls := 'match')"
    ).fetchall() == [(True, 0)]


def test_from_a_risky_file_to_one_that_may_leave(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE people AS SELECT i AS id, 'r' || (i * i) % 5 AS region, (i * 7) % 3 AS sex, (i * i * 3) % 11 AS age, "
        "20 + i % 9 AS weight FROM range(300) r(i)"
    )
    keys = ["region", "sex", "age"]
    risk = f"sdc_global_risk('{{}}', {keys}, weight := 'weight', nulls := 'match')"
    before = con.execute(f"SELECT expected, uniques FROM {risk.format('people')}").fetchall()[0]
    con.execute(f"CREATE TABLE released AS FROM sdc_local_suppress('people', {keys}, k := 5, id := 'id')")
    after = con.execute(f"SELECT expected, uniques FROM {risk.format('released')}").fetchall()[0]
    assert (after[0] < before[0], after[1]) == (True, 0)
    changed = " OR ".join(f"r.{key} <> p.{key}" for key in keys)
    lost = " + ".join(f"(r.{key} IS NULL)::INT" for key in keys)
    assert con.execute(
        f"SELECT count(*), count(*) FILTER ({changed}), count(*) FILTER ({lost} <> suppressed), "
        "count(*) FILTER (r.weight <> p.weight) FROM released r JOIN people p USING (id)"
    ).fetchall() == [(300, 0, 0, 0)]


def test_the_order_of_the_records_does_not_matter(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, i * i % 7 AS a, i * i % 5 AS b, i % 11 AS c FROM range(200) r(i)")
    con.execute("INSERT INTO p FROM p")  # no record is known by its id alone
    con.execute("CREATE TABLE q AS FROM p ORDER BY hash(id), a")
    for method in ("best", "sdcmicro"):
        made = [
            con.execute(
                f"FROM sdc_local_suppress('{table}', ['a', 'b', 'c'], k := 5, method := '{method}') ORDER BY ALL"
            ).fetchall()
            for table in "pq"
        ]
        assert made[0] == made[1]
        assert sum(row[-1] for row in made[0]) > 0


def test_values_of_every_type(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TYPE colour AS ENUM ('red', 'green')")
    con.execute(
        """CREATE TABLE "Some ""people\""" AS SELECT (i % 2 = 0) AS "a Key", DATE '2020-01-01' + (i % 4)::INT AS "Day", i % 3 + 0.5 AS price,
        CASE WHEN i > 30 THEN 'red' ELSE 'green' END::colour AS colour, 9007199254740993 + i % 2 AS big, 'nan'::DOUBLE AS nothing,
        nullif(i % 5, 1) AS gap, i AS rest FROM range(36) r(i)"""
    )
    table, quoted = 'Some "people"', '"Some ""people"""'
    keys = ["A KEY", "day", "price", "colour", "big", "nothing", "gap"]
    made = f"sdc_local_suppress('{table}', {keys}, k := 4)"
    before = con.execute(f"DESCRIBE FROM {quoted}").fetchall()
    assert [row[:2] for row in con.execute(f"DESCRIBE FROM {made}").fetchall()] == [
        *(row[:2] for row in before), ("suppressed", "BIGINT")
    ]  # fmt: skip
    con.execute(f"CREATE TABLE released AS FROM {made}")
    assert con.execute(f"SELECT k >= 4 FROM sdc_k_anonymity('released', {keys}, nulls := 'match')").fetchall() == [
        (True,)
    ]
    assert con.execute(
        "SELECT sum(suppressed) > 0, count(nothing), min(big) >= 9007199254740993 FROM released"
    ).fetchall() == [(True, 36, True)]


def test_strata_are_looked_at_by_themselves(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, i * i % 7 AS a, i * 3 % 5 AS b, nullif(i % 3, 2) AS s FROM range(90) r(i)"
    )
    for method in ("best", "sdcmicro"):
        call = f"['a', 'b'], k := 3, id := 'id', importance := {{'b': 1, 'A': 2}}, method := '{method}'"
        con.execute(f"CREATE OR REPLACE TABLE m AS FROM sdc_local_suppress('p', {call}, by := ['s'])")
        for stratum in ("s = 0", "s = 1", "s IS NULL"):
            alone = f"FROM sdc_local_suppress('(FROM p WHERE {stratum})', {call})"
            assert con.execute(f"FROM m WHERE {stratum} EXCEPT {alone}").fetchall() == []


def test_what_counts_nothing_leaves_classes_of_equal_records(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, i * i % 7 AS a, i * 3 % 5 AS b, i % 2 AS c FROM range(120) r(i)")
    for method in ("best", "sdcmicro"):
        con.execute(
            f"CREATE OR REPLACE TABLE m AS FROM sdc_local_suppress('p', ['a', 'b', 'c'], k := 4, alpha := 0, method := '{method}')"
        )
        assert con.execute(
            "SELECT k >= 4 FROM sdc_k_anonymity('m', ['a', 'b', 'c'], nulls := 'category')"
        ).fetchall() == [(True,)]


def test_the_least_important_key_goes_first(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT * FROM (VALUES (1, 1), (1, 1), (1, 1), (1, 2), (1, 2), (2, 1), (2, 1), (2, 2)) t(a, b)"
    )
    for first, other in (("a", "b"), ("b", "a")):
        report = f"sdc_local_suppress_report('p', ['a', 'b'], importance := {{'{first}': 2, '{other}': 1}})"
        found = con.execute(f"SELECT key, turn, known, suppressed, share FROM {report} ORDER BY turn").fetchall()
        assert [row[:3] for row in found] == [(first, 1, 8), (other, 2, 8)]
        assert (found[0][3] > found[1][3], found[0][4]) == (True, found[0][3] / 8)


def test_files_without_records_or_without_risk(con: duckdb.DuckDBPyConnection) -> None:
    assert con.execute("FROM sdc_local_suppress('(SELECT 1 AS a LIMIT 0)', ['a'])").fetchall() == []
    assert con.execute("FROM sdc_local_suppress_report('(SELECT 1 AS a LIMIT 0)', ['a'])").fetchall() == [
        ("a", 1, 0, 0, None)
    ]
    assert con.execute(
        "SELECT DISTINCT a, suppressed FROM sdc_local_suppress('(SELECT 7 AS a FROM range(5))', ['a'])"
    ).fetchall() == [(7, 0)]
    con.execute("CREATE TABLE one AS SELECT 'x' || i AS a FROM range(5) r(i)")
    assert con.execute("FROM sdc_local_suppress('one', ['a'], k := 5)").fetchall() == [(None, 1)] * 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'nobody', ['a']", "unknown table 'nobody'"),
        ("'p'", "argument 'keys' must name the columns by which a person could be found"),
        ("'p', ['aa']", "unknown column 'aa' in 'p'"),
        ("'p', ['a', 'A']", "names column 'a' twice"),
        ("'p', ['a'], k := 1", "argument 'k' must be a whole number of at least 2"),
        ("'p', ['a'], k := 2.5", "argument 'k' must be a whole number of at least 2"),
        ("'p', ['a'], k := 'few'", "argument 'k' must be a whole number of at least 2"),
        ("'p', ['a'], k := NULL", "argument 'k' must be a whole number of at least 2"),
        ("'p', ['a'], k := [2, 3]", "several numbers as 'k' are for several sizes in 'combs'"),
        ("'p', ['a'], k := 11", "there are 10 records, fewer than k := 11"),
        ("'p', ['a'], by := ['b']", "there are 2 records in one of the strata, fewer than k := 3"),
        ("'p', ['a'], by := ['a']", "column 'a' is one of 'keys'"),
        ("'p', ['a'], id := 'a'", "column 'a' is one of 'keys'"),
        ("'p', ['a'], id := 'b'", "column 'b' is the same in several records: 10 records have 5 different ones"),
        ("'p', ['a'], alpha := 50", "50 per cent is 0.5"),
        ("'p', ['a'], alpha := NULL", "argument 'alpha' must lie between 0 and 1"),
        ("'p', ['a'], method := 'sdc'", "argument 'method' must be 'best' or 'sdcmicro'"),
        ("'p', ['a'], combs := [2]", "argument 'combs' must be"),
        ("'p', ['a', 'b'], combs := [2, 1], k := [2, 2, 2]", "argument 'k' must be one number, or one for each size"),
        ("'p', ['a'], importance := {'b': 1}", "has a number for 'b', which is not one of 'keys'"),
        ("'p', ['a', 'b'], importance := {'b': 1}", "argument 'importance' must give a number to each key"),
        ("'p', ['a'], importance := {'a': 'x'}", "argument 'importance' must give a number to each key"),
        ("'(SELECT 1 AS suppressed FROM p)', ['suppressed']", "is also one of the result"),
        ("'(SELECT a AS c0, a AS c1, a AS c2, a AS c3, a AS c4, a AS c5, a AS c6, a AS c7, a AS c8, a AS c9, a AS d0, a AS d1, a AS d2 "
         "FROM p)', ['c0','c1','c2','c3','c4','c5','c6','c7','c8','c9','d0','d1','d2']", "names 13 columns: at most 12"),
    ],
)  # fmt: skip
def test_bad_input(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute("CREATE OR REPLACE TABLE p AS SELECT i AS a, i // 2 AS b FROM range(10) r(i)")
    with pytest.raises(duckdb.Error) as raised:
        lasting.execute(f"FROM sdc_local_suppress({call})").fetchall()
    assert message in str(raised.value)
