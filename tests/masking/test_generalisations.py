"""What keys become in ``sdc_anonymize``: labels of each kind of hierarchy and type, and what is refused."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from interrupting import again_and_again

import sdcduck
from sdcduck.udfs.masking import lattice_nodes

GEO = """CREATE TABLE geo AS FROM (VALUES ('Oslo', 'East'), ('Moss', 'East'), ('Bodø', 'North'), ('East', 'Norway'),
    ('North', 'Norway'), ('Jan Mayen', 'Norway')) geo(child, parent)"""


@pytest.mark.parametrize(
    ("values", "kind", "hierarchy", "k", "expected"),
    [
        ("(20), (24), (-1), (-5)", "INTEGER", "[5]", 2, ["[-5, 0)", "[20, 25)"]),
        ("(21), (24), (9), (5)", "UTINYINT", "[5, 10]", 2, ["[20, 25)", "[5, 10)"]),
        ("(21), (24), (16), (35)", "TINYINT", "{'widths': [5, 10, 20], 'origin': 16}", 2, ["[16, 36)"]),
        ("(18), (22), (23), (27)", "BIGINT", "{'widths': [5], 'origin': 18}", 2, ["[18, 23)", "[23, 28)"]),
        ("(0.29), (0.295), (0.3), (0.305)", "DOUBLE", "[0.01]", 2, ["[0.29, 0.3)", "[0.3, 0.31)"]),
        ("(0.29), (0.28), (0.57), (0.56)", "DECIMAL(9, 2)", "[0.02]", 2, ["[0.28, 0.3)", "[0.56, 0.58)"]),
        ("(-0.5), (-0.1), (1.5), (1.6)", "FLOAT", "[0.5, 1]", 2, ["[-0.5, 0.0)", "[1.5, 2.0)"]),
        ("(9007199254740993), (9007199254740994), (5), (6)", "BIGINT", "[2, 4]", 2,
         ["[4, 8)", "[9007199254740992, 9007199254740996)"]),
        ("(NULL), (NULL), (3), (4)", "INTEGER", "[5]", 2, ["[0, 5)", None]),
        ("('2024-03-01'), ('2024-03-31'), ('2023-12-24'), ('2023-12-01')", "DATE", "['month']", 2,
         ["2023-12", "2024-03"]),
        ("('2024-03-01'), ('2024-01-31'), ('2023-12-24'), ('2023-10-01')", "DATE", "['month', 'quarter']", 2,
         ["2023-Q4", "2024-Q1"]),
        ("('2024-03-01'), ('2024-07-31'), ('2023-12-24'), ('2023-01-01')", "DATE", "['quarter', 'year']", 2,
         ["2023", "2024"]),
        ("('1989-03-01'), ('1980-07-31'), ('1979-12-24'), ('1970-01-01')", "DATE", "['year', 'decade']", 2,
         ["1970s", "1980s"]),
        ("('2024-03-01 10:00'), ('2024-03-01 11:00'), ('2024-03-02 10:00'), ('2024-03-02 12:00')", "TIMESTAMP",
         "['day', 'month']", 2, ["2024-03-01", "2024-03-02"]),
        ("('0150'), ('0151'), ('0250'), ('0251')", "VARCHAR", "{'cut': [1, 3]}", 2, ["015*", "025*"]),
        ("('0150'), ('0151'), ('0250'), ('0251')", "VARCHAR", "{'cut': 3}", 4, ["0***"]),
        ("('Oslo'), ('Moss'), ('Bodø'), ('Bodø')", "VARCHAR", "'geo'", 2, ["East", "North"]),
        ("('Oslo'), ('Moss'), ('Jan Mayen'), ('Jan Mayen')", "VARCHAR",
         "{'source': '(SELECT child AS c, parent AS p FROM geo)', 'child': 'c', 'parent': 'P'}", 2,
         ["East", "Jan Mayen"]),
        ("('Oslo'), ('Moss'), ('Bodø'), (NULL)", "VARCHAR", "'geo'", 2, ["*"]),
        ("(true), (true), (false), (NULL)", "BOOLEAN", "[]", 3, ["*"]),
        ("(true), (true), (false), (false)", "BOOLEAN", "[]", 2, ["false", "true"]),
        ("('a'), ('a'), ('b'), ('b')", "ENUM('b', 'a')", "[]", 2, ["a", "b"]),
        ("(0.0), (-0.0), (1.5), (1.5)", "DOUBLE", "[]", 2, ["0.0", "1.5"]),
        ("('10:00'), ('10:00'), ('11:30'), ('11:30')", "TIME", "[]", 2, ["10:00:00", "11:30:00"]),
    ],
)  # fmt: skip
def test_what_values_become(
    con: duckdb.DuckDBPyConnection, values: str, kind: str, hierarchy: str, k: int, expected: list[Any]
) -> None:
    con.execute(GEO)
    con.execute(f"CREATE TABLE v AS SELECT x::{kind} AS x FROM (VALUES {values}) v(x)")
    call = f"sdc_anonymize('v', ['x'], k := {k}, hierarchies := {{'x': {hierarchy}}}, suppress_limit := 0)"
    assert [row[0] for row in con.execute(f"SELECT DISTINCT x FROM {call} ORDER BY ALL").fetchall()] == expected


@pytest.fixture(scope="module")
def unchanged() -> Iterator[duckdb.DuckDBPyConnection]:
    """What is asked in vain changes nothing, so all that is refused is asked of one."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(GEO)
        con.execute(
            """CREATE TABLE people AS SELECT *, DATE '2000-01-01' AS born, TIMESTAMPTZ '2000-01-01 00:00:00+00' AS seen,
                [1] AS many FROM (VALUES ('m', 20, 1, 'Oslo', 1), ('f', 30, 2, 'Paris', NULL), ('m', 40, 3, 'Paris', 2),
                ('f', 50, 4, 'Oslo', 3)) people(sex, age, income, town, gaps)"""
        )
        yield con


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'nobody', ['sex']", "unknown table 'nobody'"),
        ("'people'", "argument 'keys' must name the columns by which a person could be found"),
        ("'people', ['sax']", "unknown column 'sax' in 'people'; did you mean 'sex'?"),
        ("'people', ['sex', 'SEX']", "names column 'sex' twice"),
        ("'people', ['sex', 'age', 'income']", "must say how 'age' and 'income' are generalised: by widths"),
        ("'people', ['born']", "must say how 'born' is generalised"),
        ("'people', ['sex'], hierarchies := {'age': [5]}", "unknown key 'age' in 'keys', which argument"),
        ("'people', ['sex'], hierarchies := 'geo'", "argument 'hierarchies' must be a struct such as"),
        ("'people', ['age'], hierarchies := {'age': [5, 12]}", "each is a multiple of the one before"),
        ("'people', ['age'], hierarchies := {'age': [10, 5]}", "that of 'age' must rise from level to level"),
        ("'people', ['age'], hierarchies := {'age': [5, 5]}", "that of 'age' must rise from level to level"),
        ("'people', ['age'], hierarchies := {'age': [0]}", "hold widths of intervals, positive numbers"),
        ("'people', ['age'], hierarchies := {'age': [-5]}", "hold widths of intervals, positive numbers"),
        ("'people', ['age'], hierarchies := {'age': ['nan'::DOUBLE]}", "that of 'age' must"),
        ("'people', ['age'], hierarchies := {'age': {'widths': [5], 'start': 2}}", "no field but 'widths' or 'origin'"),
        ("'people', ['age'], hierarchies := {'age': {'widths': [5], 'origin': 'x'}}", "have a number as 'origin'"),
        ("'people', ['age'], hierarchies := {'age': [0.12345678901]}", "have at most 9 decimals"),
        ("'people', ['age'], hierarchies := {'age': NULL}", "that of 'age' must be widths, parts of dates, a table"),
        ("'people', ['age'], hierarchies := {'age': 5}", "that of 'age' must be widths, parts of dates, a table"),
        ("'people', ['age'], hierarchies := {'age': ['year']}", "that of 'age' must be of a date"),
        ("'people', ['age'], hierarchies := {'age': {'cut': [1]}}", "that of 'age' must be of a text"),
        ("'people', ['sex'], hierarchies := {'sex': [5]}", "'hierarchies' must name a column of numbers: 'sex'"),
        ("'people', ['sex'], hierarchies := {'sex': {'cut': [0]}}", "hold numbers of characters to cut"),
        ("'people', ['sex'], hierarchies := {'sex': {'cut': [2, 1]}}", "that of 'sex' must rise from level to level"),
        ("'people', ['born'], hierarchies := {'born': ['week']}", "hold 'month', 'quarter', 'year' or 'decade'"),
        ("'people', ['born'], hierarchies := {'born': ['day']}", "hold 'month', 'quarter', 'year' or 'decade'"),
        ("'people', ['born'], hierarchies := {'born': ['year', 'month']}", "'born' must rise from level to level"),
        ("'people', ['seen'], hierarchies := {'seen': ['year']}", "what day it is in 'seen' depends on the time zone"),
        ("'people', ['many'], hierarchies := {'many': []}", "a text or a truth value; 'many' is none of them: cast it"),
        ("'people', ['town'], hierarchies := {'town': 'nowhere'}", "unknown table 'nowhere'"),
        ("'people', ['town'], hierarchies := {'town': 'people'}", "unknown column 'child' in 'people'"),
        ("'people', ['town'], hierarchies := {'town': {'source': 'geo', 'top': 'x'}}", "no field but 'source', 'child'"),
        ("'people', ['town'], hierarchies := {'town': 'geo'}",
         "1 value of 'town', in 2 records, is no leaf of its hierarchy: each needs a row as a child"),
        ("'people', ['town'], hierarchies := {'town': '(SELECT child AS parent, parent AS child FROM geo)'}",
         "the hierarchy of 'town': 2 codes in the query have two parents or more"),
        ("'people', ['town'], hierarchies := {'town': '(VALUES (''a'', ''b''), (''b'', ''a''))'}",
         "the hierarchy of 'town': unknown column 'child' in the query"),
        ("'people', ['town'], hierarchies := {'town': '(SELECT ''a'' AS child, ''b'' AS parent UNION SELECT ''b'', ''a'')'}",
         "the hierarchy of 'town': 2 codes in the query are each on or below a cycle of parents"),
        ("'people', ['sex'], k := 0", "argument 'k' must be a whole number of at least 1"),
        ("'people', ['sex'], k := 5", "there are 4 records, fewer than k := 5"),
        ("'people', ['sex'], suppress_limit := 5", "5 per cent is 0.05"),
        ("'people', ['sex'], suppress_limit := NULL", "argument 'suppress_limit' must lie between 0 and 1"),
        ("'people', ['sex'], cost := 'entrpy'", "did you mean 'entropy'?"),
        ("'people', ['sex'], l := 2", "argument 'sensitive' must name the column that nobody should learn"),
        ("'people', ['sex'], t := 0.2", "argument 'sensitive' must name the column that nobody should learn"),
        ("'people', ['sex'], sensitive := 'income'", "give l or t, too"),
        ("'people', ['sex'], sensitive := 'sex', l := 2", "argument 'sensitive' must name another column than 'keys'"),
        ("'people', ['sex'], sensitive := 'income', l := 0.5", "argument 'l' must be a number of at least 1"),
        ("'people', ['sex'], sensitive := 'income', l := 1.5", "argument 'l' must be a whole number for l_method"),
        ("'people', ['sex'], sensitive := 'income', l := 2, l_method := 'exact'", "must be 'distinct', 'entropy' or"),
        ("'people', ['sex'], sensitive := 'income', l := 2, c := 0", "argument 'c' must be a number above 0"),
        ("'people', ['sex'], sensitive := 'income', t := 20", "20 per cent is 0.2"),
        ("'people', ['sex'], k := 2, sensitive := 'town', l := 4",
         "all records together do not have the diversity l := 4 of the column 'town'"),
        ("'people', ['sex'], k := 2, sensitive := 'gaps', t := 0.5", "the sensitive value is NULL in 1 record, and has no place in an order"),
        ("'people', ['sex'], id := 'sex'", "argument 'id' must name another column than 'keys' and 'sensitive'"),
        ("'people', ['sex'], k := 2, id := 'town'", "column 'town' is the same in several records"),
        ("'people', ['sex'], k := 2, id := 'gaps'", "column 'gaps' is NULL in 1 record"),
        ("'(SELECT *, 1 AS Suppressed FROM people)', ['sex']", "'Suppressed' is also one of the result"),
        ("'(SELECT *, 1 AS _sdc_place FROM people)', ['sex']", "a column may not begin with _sdc_"),
        ("'(SELECT CASE WHEN sex = ''m'' THEN ''*'' END AS sex FROM people)', ['sex'], k := 2",
         "'*' is a label of 'sex' in 2 records below the last level"),
        ("'(SELECT ''nan''::DOUBLE AS x FROM people)', ['x'], k := 2, hierarchies := {'x': [5]}",
         "4 records have a value of column 'x' beyond 2^53 steps, and no NaN"),
        ("'(SELECT 1e300 AS x FROM people)', ['x'], k := 2, hierarchies := {'x': [5]}", "4 records have a value"),
        ("'(SELECT 20000000000000000000::HUGEINT AS x FROM people)', ['x'], k := 2, hierarchies := {'x': [5]}",
         "4 records have a value of column 'x' beyond 64 bits"),
        ("'(SELECT ''infinity''::DATE AS x FROM people)', ['x'], k := 2, hierarchies := {'x': ['year']}",
         "4 records have a value of column 'x' at infinity"),
    ],
)  # fmt: skip
def test_bad_input(unchanged: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    for function in ("sdc_anonymize", "sdc_anonymize_lattice"):
        if "Suppressed" in call and function == "sdc_anonymize_lattice":
            continue  # its result has none of the source's columns
        with pytest.raises(duckdb.Error, match=re.escape(message)) as raised:
            unchanged.execute(f"FROM {function}({call})").fetchall()
        assert "Paris" not in str(raised.value)
        assert "internal error" not in str(raised.value)


def test_a_lattice_that_is_too_large(con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS a, i % 2 = 0 AS b FROM range(10) r(i)")
    monkeypatch.setattr(lattice_nodes, "MOST_NODES", 10)
    call = "sdc_anonymize_lattice('p', ['a', 'b'], hierarchies := {'a': [2, 4, 8, 16, 32]})"
    with pytest.raises(duckdb.Error, match="has 14 nodes, and at most 10 are searched: leave out levels, so that there "
                       "are at most 5 of the 7 levels of 'a', say, or keys"):  # fmt: skip
        con.execute(f"FROM {call}").fetchall()
    monkeypatch.setattr(lattice_nodes, "MOST_NODES", 3)
    with pytest.raises(duckdb.Error, match="at most 3 are searched: leave out keys"):
        con.execute(f"FROM {call}").fetchall()


def test_empty_tables_have_the_columns(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p(age INTEGER, town VARCHAR, income DOUBLE)")
    call = "('p', ['town', 'age'], hierarchies := {'age': [5]}, sensitive := 'income', l := 2)"
    assert [row[:2] for row in con.execute(f"DESCRIBE FROM sdc_anonymize{call}").fetchall()] == [
        ("age", "VARCHAR"), ("town", "VARCHAR"), ("income", "DOUBLE"), ("class_size", "BIGINT"),
        ("suppressed", "BOOLEAN"),
    ]  # fmt: skip
    assert con.execute(f"FROM sdc_anonymize{call}").fetchall() == []
    assert con.execute(f"FROM sdc_anonymize_lattice{call}").fetchall() == []
    described = con.execute(f"DESCRIBE SELECT levels, cost FROM sdc_anonymize_lattice{call}").fetchall()
    assert [row[1] for row in described] == ["BIGINT[]", "DOUBLE"]


def test_names_that_must_be_quoted_and_columns_of_many_types(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        'CREATE TABLE "Odd table" AS SELECT i % 2 AS "Key ""one", '
        "{'a': i} AS s, [i] AS l, 'x'::BLOB AS b, (i % 3)::UTINYINT AS \"select\" FROM range(6) r(i)"
    )
    made = con.execute(
        """SELECT * FROM sdc_anonymize('Odd table', ['SELECT', 'key "ONE'], k := 2,
            hierarchies := {'Select': [2], 'Key "one': []}, suppress_limit := 0) ORDER BY s"""
    )
    assert [column[0] for column in made.description] == [
        'Key "one',
        "s",
        "l",
        "b",
        "select",
        "class_size",
        "suppressed",
    ]
    assert [(row[0], row[4], row[5]) for row in made.fetchall()] == [
        ("*", "0", 2), ("*", "1", 2), ("*", "2", 2), ("*", "0", 2), ("*", "1", 2), ("*", "2", 2)
    ]  # fmt: skip


def test_the_order_of_the_records_and_threads_do_not_matter(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, (i * 7919) % 60 AS age, 't' || (i * 104729) % 7 AS town, i % 5 AS ill FROM range(900) r(i)"
    )
    con.execute("CREATE TABLE q AS FROM p ORDER BY hash(id)")
    found = []
    for table, threads in (("p", 1), ("q", 1), ("q", 2)):
        con.execute(f"SET threads = {threads}")
        call = f"('{table}', ['age', 'town'], k := 4, hierarchies := {{'age': [5, 10]}}, sensitive := 'ill', l := 2, t := 0.4, id := 'id')"
        found.append(
            [con.execute(f"FROM sdc_anonymize{call} ORDER BY id").fetchall(),
             con.execute(f"FROM sdc_anonymize_lattice{call}").fetchall()]
        )  # fmt: skip
    assert found[0] == found[1] == found[2]


def test_views_parameters_and_joins(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE p AS SELECT i AS id, i % 10 AS age FROM range(40) r(i)")
    con.execute(GEO)
    query = "SELECT count(*), min(class_size) FROM sdc_anonymize('p', ?, k := ?, hierarchies := {'age': [5]})"
    assert con.execute(query, [["age"], 6]).fetchall() == [(40, 20)]
    con.execute("CREATE VIEW masked AS FROM sdc_anonymize('p', ['age'], k := 6, hierarchies := {'age': [5]})")
    assert con.execute("SELECT DISTINCT m.age FROM p JOIN masked m USING (id) ORDER BY ALL").fetchall() == [
        ("[0, 5)",), ("[5, 10)",)
    ]  # fmt: skip


def test_records_that_only_this_transaction_sees(con: duckdb.DuckDBPyConnection) -> None:
    """The search sees what is committed: what is not would have the labels and sizes of other classes."""
    con.execute("CREATE TABLE p AS SELECT i % 4 AS age FROM range(12) r(i)")
    call = "FROM sdc_anonymize('p', ['age'], hierarchies := {'age': [2]})"
    assert len(con.execute(call).fetchall()) == 12
    for change in ("INSERT INTO p VALUES (-1)", "INSERT INTO p VALUES (1)", "DELETE FROM p WHERE age = 3"):
        con.execute("BEGIN")
        con.execute(change)
        with pytest.raises(duckdb.Error, match="commit first"):
            con.execute(call).fetchall()
        con.execute("ROLLBACK")


@pytest.mark.newest
def test_it_stops_when_it_is_interrupted(con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that would take minutes; DuckDB 1 cannot be asked while a statement runs."""
    con.execute("CREATE TABLE p AS SELECT i % 97 AS age, i % 89 AS town FROM range(9000) r(i)")
    look, begun = lattice_nodes.Nodes.look, threading.Event()

    def many_times(nodes: lattice_nodes.Nodes, levels: tuple[int, ...]) -> Any:
        begun.set()
        return [look(nodes, levels) for _ in range(2000)][-1]

    monkeypatch.setattr(lattice_nodes.Nodes, "look", many_times)
    call = "FROM sdc_anonymize('p', ['age', 'town'], hierarchies := {'age': [2, 4, 8], 'town': [2, 4, 8]}, k := 50)"
    with again_and_again(con.interrupt, begun.is_set), pytest.raises(duckdb.InterruptException, match="Interrupted"):
        con.execute(call).fetchall()
    for thread in [one for one in threading.enumerate() if one.name == "sdcduck"]:
        thread.join(60)
        assert not thread.is_alive()
    monkeypatch.undo()
    assert len(con.execute(call).fetchall()) == 9000


def test_progress_rises_to_its_end() -> None:
    shown: list[float] = []
    with sdcduck.connect(progress=shown.append) as con:
        con.execute("CREATE TABLE p AS SELECT (i * 31) % 97 AS age, i % 89 AS town FROM range(3000) r(i)")
        con.execute(
            "FROM sdc_anonymize('p', ['age', 'town'], hierarchies := {'age': [2, 4, 8, 16], 'town': [2, 4, 8]}, k := 9)"
        ).fetchall()
    assert shown == sorted(shown)
    assert len(shown) > 2
    assert 0 <= shown[0] <= shown[-1] <= 1


def test_from_a_risky_file_to_a_released_one(con: duckdb.DuckDBPyConnection) -> None:
    """What was wrong is measured, mended, and measured again, in SQL alone."""
    con.execute(
        """CREATE TABLE patients AS SELECT i AS patient, 20 + (i * i) % 61 AS age, ['m', 'f'][1 + i % 2] AS sex,
            'Z' || (100 + (i * 37) % 40) AS zip, ['flu', 'flu', 'gout', 'cold'][1 + (i // 3) % 4] AS illness
            FROM range(600) r(i)"""
    )
    keys = "keys := ['age', 'sex', 'zip']"
    before = con.execute(f"SELECT k, uniques FROM sdc_k_anonymity('patients', {keys})").fetchall()[0]
    assert before[0] == 1
    assert before[1] > 100
    con.execute(
        f"""CREATE TABLE released AS SELECT * EXCLUDE (patient, class_size, suppressed) FROM sdc_anonymize('patients', {keys},
            k := 5, hierarchies := {{'age': [5, 10, 20], 'zip': {{'cut': [1, 2]}}}}, sensitive := 'illness', l := 2,
            t := 0.3, id := 'patient')"""
    )
    assert con.execute(f"SELECT records, k >= 5 FROM sdc_k_anonymity('released', {keys})").fetchall() == [(600, True)]
    assert con.execute(
        f"SELECT distinct_l >= 2 FROM sdc_l_diversity('released', {keys}, sensitive := 'illness')"
    ).fetchall() == [(True,)]
    assert con.execute(
        f"SELECT t <= 0.3 FROM sdc_t_closeness('released', {keys}, sensitive := 'illness')"
    ).fetchall() == [(True,)]
    risks = "SELECT max(risk) FROM sdc_individual_risk('{}', {})"
    assert con.execute(risks.format("patients", keys)).fetchall() == [(1.0,)]
    assert con.execute(risks.format("released", keys)).fetchall()[0][0] <= 0.2
    assert con.execute(f"SELECT max(unsafe) FROM sdc_unsafe_combinations('released', {keys}, k := 5)").fetchall() == [
        (0,)
    ]  # fmt: skip
