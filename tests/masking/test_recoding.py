"""``sdc_recode`` and its report: rules of every kind, on values of every type."""

from __future__ import annotations

from datetime import date

import duckdb
import pytest


def recoded(con: duckdb.DuckDBPyConnection, values: str, rule: str, more: str = "") -> list[tuple[object, ...]]:
    """What becomes of a column x that holds these values, in their order."""
    source = f"(SELECT unnest([{values}]) AS x, generate_subscripts([{values}], 1) AS place)".replace("'", "''")
    return [
        row[0]
        for row in con.execute(
            f"SELECT x FROM sdc_recode('{source}', rules := {{'x': {rule}}}{more}) ORDER BY place"
        ).fetchall()
    ]


@pytest.mark.parametrize(
    ("values", "rule", "expected"),
    [
        ("'a', 'b', NULL, 'c'", "{'groups': {'ab': ['a', 'b'], 'c': 'c'}}", ["ab", "ab", None, "c"]),
        ("'a', 'b', NULL, 'c'", "{'map': MAP {'a': 'z'}, 'unmatched': 'keep'}", ["z", "b", None, "c"]),
        ("'a', 'b', NULL, 'c'", "{'map': {'a': 'z'}, 'unmatched': 'null'}", ["z", None, None, None]),
        ("'a', 'b', NULL, 'c'", "{'map': {'a': 'z'}, 'other': 'it''s'}", ["z", "it's", None, "it's"]),
        ("1, 2, NULL, 3", "{'map': MAP {1: 10, 2: 10, 3: 30}}", [10, 10, None, 30]),
        ("1, 2, NULL, 3", "{'groups': {'few': [1, 2], 'many': [3]}}", ["few", "few", None, "many"]),
        ("1.5, 2.0, NULL", "{'groups': {'low': [1.5], 'high': [2]}}", ["low", "high", None]),
        ("true, false, NULL", "{'map': MAP {'true': 'yes'}, 'other': 'no'}", ["yes", "no", None]),
        ("DATE '2020-02-29', NULL", "{'map': {'2020-02-29': '2020-03-01'}}", [date(2020, 3, 1), None]),
        ("17, 18, 64, 65, NULL, -3", "{'breaks': [18, 65]}",
         ["under 18", "18 to 64", "18 to 64", "65 and over", None, "under 18"]),
        ("1.5, 2.5, NULL", "{'breaks': [2.5]}", ["under 2.5", "2.5 and over", None]),
        ("17, 18, 65", "{'breaks': [18, 65], 'labels': ['young', 'adult', 'old']}", ["young", "adult", "old"]),
        ("DATE '1999-12-31', DATE '2000-01-01'", "{'breaks': ['2000-01-01']}", ["under 2000-01-01", "2000-01-01 and over"]),
        ("0, 4, 5, -1, NULL", "{'width': 5}", ["0 to 4", "0 to 4", "5 to 9", "-5 to -1", None]),
        ("0, 4, 5, -1", "{'width': 5, 'start': 2, 'as': 'low'}", [-3, 2, 2, -3]),
        ("0, 4, 5", "{'width': 5, 'as': 'middle'}", [2, 2, 7]),
        ("9007199254740993, 9007199254740995", "{'width': 2, 'start': 1, 'as': 'low'}", [9007199254740993, 9007199254740995]),
        ("0.3::DOUBLE, 0.29, NULL", "{'width': 0.1}", ["0.3 to under 0.4", "0.2 to under 0.3", None]),
        ("0.3::DOUBLE, 0.29", "{'width': 0.1, 'as': 'middle'}", [0.35, 0.25]),
        ("DATE '2020-05-17', NULL", "{'period': 'month'}", [date(2020, 5, 1), None]),
        ("TIMESTAMP '2020-05-17 12:00:00'", "{'period': 'year'}", [date(2020, 1, 1)]),
        ("DATE '2025-05-17'", "{'period': 'decade'}", [date(2020, 1, 1)]),
        ("88, 90, 91, NULL, 120", "{'top': 90}", [88, 90, 90, None, 90]),
        ("88, 90, 91, NULL, 120", "{'top': 90, 'label': '91+'}", ["88", "90", "91+", None, "91+"]),
        ("1, 2, 91", "{'top': 90, 'bottom': 2, 'label': 'much', 'bottom_label': 'little'}", ["little", "2", "much"]),
        ("1, 2, 3, 97, 98, 99", "{'top': 90, 'replace': 'mean'}", [1, 2, 3, 98, 98, 98]),
        ("1, 2, 3, 91, 98, 99", "{'top': 90, 'bottom': 5, 'replace': 'median'}", [2, 2, 2, 98, 98, 98]),
        ("DATE '1900-01-01', DATE '2000-01-01'", "{'bottom': '1920-01-01'}", [date(1920, 1, 1), date(2000, 1, 1)]),
    ],
)  # fmt: skip
def test_rules(con: duckdb.DuckDBPyConnection, values: str, rule: str, expected: list[object]) -> None:
    assert recoded(con, values, rule) == expected


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2, 0.33])
@pytest.mark.parametrize("records", [10, 100, 397])
def test_no_more_than_the_share_is_coded(con: duckdb.DuckDBPyConnection, share: float, records: int) -> None:
    con.execute(f"CREATE TABLE p AS SELECT i AS id, (i * 7919) % {records} AS x FROM range({records}) r(i)")
    for side, order in (("top", "DESC"), ("bottom", "ASC")):
        con.execute(f"CREATE OR REPLACE TABLE m AS FROM sdc_recode('p', rules := {{'x': {{'{side}_share': {share}}}}})")
        changed = con.execute("SELECT p.x, m.x FROM p JOIN m USING (id) WHERE p.x <> m.x").fetchall()
        most = int(share * records + 1e-9)
        assert len(changed) in (most, most - 1)
        ends = con.execute(f"SELECT x FROM p ORDER BY x {order} LIMIT {len(changed)}").fetchall()
        assert sorted(row[0] for row in changed) == sorted(row[0] for row in ends)
        assert len({row[1] for row in changed}) <= 1


def test_equal_values_are_coded_together(con: duckdb.DuckDBPyConnection) -> None:
    assert recoded(con, "1, 2, 3, 4, 9, 9, 9, 9, 9, 9", "{'top_share': 0.5}") == [1, 2, 3, 4, 9, 9, 9, 9, 9, 9]
    assert recoded(con, "1, 2, 3, 4, 5, 6, 7, 9, 9, 9", "{'top_share': 0.3}") == [1, 2, 3, 4, 5, 6, 7, 7, 7, 7]


def test_several_columns_and_what_they_changed(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        'CREATE TABLE "The ""file""" AS SELECT i AS id, i % 100 AS "Age", \'r\' || i % 5 AS region, '
        "nullif(i, 3) * 1.25 AS \"in_v_come\", DATE '2020-01-01' + i::INT AS born FROM range(200) r(i)"
    )
    rules = (
        "{'age': {'width': 10}, 'REGION': {'groups': {'few_v': ['r0', 'r1'], 'r2': ['r2']}, 'unmatched': 'null'}, "
        "'in_v_come': {'top_share': 0.1, 'replace': 'mean'}, 'born': {'period': 'month'}}"
    )
    call = f"('The \"file\"', rules := {rules})"
    before, after = (
        [row[:2] for row in con.execute(f"DESCRIBE FROM {table}").fetchall()]
        for table in ('"The ""file"""', f"sdc_recode{call}")
    )
    assert [row[0] for row in before] == [row[0] for row in after]
    assert [row[1] for row in after] == ["BIGINT", "VARCHAR", "VARCHAR", "DOUBLE", "DATE"]
    report = con.execute(f'FROM sdc_recode_report{call} ORDER BY "column"').fetchall()
    assert report == [
        ("Age", "width", 200, 200, 200, 0, 100, 10),
        ("born", "period", 200, 200, 193, 0, 200, 7),
        ("in_v_come", "coding", 200, 199, 18, 0, 199, 181),  # one of the 19 was the mean
        ("region", "groups", 200, 200, 160, 80, 5, 2),
    ]
    con.execute(f"CREATE TABLE m AS FROM sdc_recode{call}")
    both = con.execute('SELECT avg(m.in_v_come) - avg(p.in_v_come::DOUBLE) FROM m JOIN "The ""file""" p USING (id)')
    assert both.fetchall()[0][0] == pytest.approx(0)


def test_the_risk_of_a_file_falls_at_each_step(con: duckdb.DuckDBPyConnection) -> None:
    """Spec 24, section 3.1: both indicators fall at each recoding, the variable with most unsafe records first."""
    con.execute(
        "CREATE TABLE people AS SELECT i AS id, (i * i) % 3 AS province, i % 2 AS sex, (i * 37 + i * i) % 97 AS age, "
        "'n' || CASE WHEN i % 10 < 8 THEN 0 ELSE i % 7 END AS nationality, 150 + i % 31 AS weight FROM range(3000) r(i)"
    )
    keys = ["province", "sex", "age", "nationality"]
    worst = con.execute(
        f"SELECT variable FROM sdc_unsafe_combinations('people', {keys}, max_size := 2) WHERE dimension = 2 ORDER BY unsafe DESC, variable LIMIT 1"
    ).fetchall()
    assert worst == [("age",)]
    con.execute("CREATE TABLE one AS FROM sdc_recode('people', rules := {'age': {'width': 5}})")
    con.execute(
        "CREATE TABLE two AS FROM sdc_recode('one', rules := {'nationality': {'map': {'n0': 'here'}, 'other': 'elsewhere'}})"
    )
    con.execute(f"CREATE TABLE three AS FROM sdc_local_suppress('two', {keys}, k := 3, id := 'id')")
    found = [
        con.execute(
            f"SELECT unsafe, expected FROM sdc_global_risk('{table}', {keys}, weight := 'weight', nulls := 'match')"
        ).fetchall()[0]
        for table in ("people", "one", "two", "three")
    ]
    assert found[0][0] > found[1][0] > found[2][0]
    assert found == sorted(found, reverse=True)
    assert con.execute(f"SELECT below_k FROM sdc_k_anonymity('three', {keys}, nulls := 'match')").fetchall() == [(0,)]


def test_files_without_records_and_columns_without_values(con: duckdb.DuckDBPyConnection) -> None:
    rules = "{'x': {'top_share': 0.1, 'replace': 'mean'}, 'y': {'groups': {'a': ['b']}}}"
    empty = "(SELECT 1 AS x, ''b'' AS y LIMIT 0)"
    assert con.execute(f"FROM sdc_recode('{empty}', rules := {rules})").fetchall() == []
    assert (
        con.execute(f"SELECT changed, known FROM sdc_recode_report('{empty}', rules := {rules})").fetchall()
        == [(0, 0)] * 2
    )
    nothing = "(SELECT NULL::INT AS x, NULL::VARCHAR AS y FROM range(4))"
    assert con.execute(f"FROM sdc_recode('{nothing}', rules := {rules})").fetchall() == [(None, None)] * 4


def test_a_source_is_read_once(con: duckdb.DuckDBPyConnection) -> None:
    """What it draws by chance is the same in the threshold and in the records."""
    source = "(SELECT random() AS x FROM range(1000))"
    for _ in range(3):
        found = con.execute(
            f"SELECT count(*) FILTER (x = y) FROM (SELECT x, max(x) OVER () AS y FROM sdc_recode('{source}', rules := {{'x': {{'top_share': 0.1}}}}))"
        ).fetchall()
        assert found == [(101,)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'p'", "argument 'rules' must have a rule for each column"),
        ("'p', rules := {'agge': {'width': 5}}", "unknown column 'agge' in 'p'; did you mean 'age'?"),
        ("'p', rules := {'age': 5}", "the rule of column 'age' must be a struct"),
        ("'p', rules := {'age': {'wide': 5}}", "the rule of column 'age' must say one of map, groups, breaks, width"),
        ("'p', rules := {'age': {'width': 5, 'top': 90}}", "the rule of column 'age' must say one of"),
        ("'p', rules := {'age': {'width': 5, 'labels': ['a']}}", "must not say 'labels' beside width"),
        ("'p', rules := {'age': {'width': 0}}", "must have a width above 0"),
        ("'p', rules := {'age': {'width': 5, 'as': 'high'}}", "argument 'as' must be 'label', 'low' or 'middle'"),
        ("'p', rules := {'name': {'width': 5}}", "column 'name' is VARCHAR: width is for numbers"),
        ("'p', rules := {'name': {'top': 'x'}}", "column 'name' is VARCHAR: this rule is for numbers and dates"),
        ("'p', rules := {'name': {'period': 'month'}}", "column 'name' is VARCHAR: period is for dates"),
        ("'p', rules := {'age': {'breaks': []}}", "must have a list of bounds"),
        ("'p', rules := {'age': {'breaks': [20, 10]}}", "must have breaks that grow"),
        ("'p', rules := {'age': {'breaks': [20.5]}}", "must hold values of the column, which is BIGINT"),
        ("'p', rules := {'age': {'breaks': [20], 'labels': ['a']}}", "must have 2 labels for 1 breaks"),
        ("'p', rules := {'age': {'groups': {'a': ['b']}}}", "must hold values of the column, which is BIGINT"),
        ("'p', rules := {'name': {'groups': {'a': ['p1'], 'b': ['p1']}}}", "must name each old value once"),
        ("'p', rules := {'name': {'groups': {'a': []}}}", "must name old values for each new one"),
        ("'p', rules := {'name': {'groups': {'a': ['p1']}}}", "9 records have a value of column name that its rule does not name"),
        ("'p', rules := {'name': {'groups': {'a': ['p1']}}}, unmatched := 'drop'", "argument 'unmatched' must be 'refuse', 'keep' or 'null'"),
        ("'p', rules := {'age': {'top_share': 1}}", "argument 'top_share' must be above 0 and below 1"),
        ("'p', rules := {'age': {'top_share': 5}}", "5 per cent is 0.05"),
        ("'p', rules := {'age': {'top_share': 0.6, 'bottom_share': 0.5}}", "must code fewer records than there are"),
        ("'p', rules := {'age': {'top_share': 0.1, 'top': 5}}", "must say top or top_share, and not both"),
        ("'p', rules := {'age': {'top': 7, 'replace': 'mean'}}", "2 records of column age are coded at the top: their mean says too much"),
        ("'p', rules := {'age': {'top': 7, 'replace': 'mode'}}", "argument 'replace' must be 'threshold', 'mean' or 'median'"),
        ("'p', rules := {'age': {'top': 7, 'replace': 'mean', 'label': 'x'}}", "must say replace or label"),
        ("'p', rules := {'age': {'top': 7, 'bottom': 2, 'label': 'x'}}", "must have a bottom_label"),
        ("'(SELECT ''nan''::DOUBLE AS x FROM p)', rules := {'x': {'top': 7}}", "column x has NaN or an infinite number"),
        ("'(SELECT ''inf''::DOUBLE AS x FROM p)', rules := {'x': {'width': 7}}", "column x has NaN or an infinite number"),
        ("'(SELECT age AS _sdc_x FROM p)', rules := {'_sdc_x': {'width': 7}}", "may not begin with _sdc_"),
    ],
)  # fmt: skip
def test_bad_input(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    lasting.execute("CREATE OR REPLACE TABLE p AS SELECT i AS age, 'p' || i AS name FROM range(10) r(i)")
    with pytest.raises(duckdb.Error) as raised:
        lasting.execute(f"FROM sdc_recode({call})").fetchall()
    assert message in str(raised.value)
