"""What clients send, told apart; and SQL of PostgreSQL as DuckDB has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdcduck.gateway.postgres import statements as s
from sdcduck.gateway.postgres.sql import to_duckdb
from sdcduck.gateway.postgres.statements import Unsupported, read, split
from sdcduck.gateway.system.queries import is_system_query


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("", s.Empty()), (" ; -- nothing\n ", s.Empty()), ("SELECT 1", s.Ask("SELECT 1")),
        ("/* a */ begin isolation level serializable, read only;", s.Transaction("BEGIN")),
        ("START TRANSACTION", s.Transaction("START TRANSACTION")), ("end", s.Transaction("COMMIT")),
        ("ROLLBACK TO SAVEPOINT \"a b\"", s.Transaction("ROLLBACK TO")), ("abort", s.Transaction("ROLLBACK")),
        ("COMMIT AND CHAIN", s.Transaction("COMMIT", True)), ("COMMIT AND NO CHAIN", s.Transaction("COMMIT")),
        ("SET TimeZone TO 'Europe/Oslo'", s.Set("timezone", "Europe/Oslo")), ("set names 'utf8'", s.Set("client_encoding", "utf8")),
        ("SET LOCAL statement_timeout = 500", s.Set("statement_timeout", "500")),
        ("SET DateStyle = ISO, MDY", s.Set("datestyle", "ISO, MDY")), ("RESET ALL", s.Set("all", None)),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", s.Nothing("SET")),
        ("SHOW transaction isolation level", s.Show("transaction_isolation")), ("SHOW ALL", s.Show("all")),
        ("SHOW sdc_sequence", s.Ask("SHOW sdc_sequence")), ("SHOW sdc_questions", s.Ask("SHOW sdc_questions")),
        ("SHOW sdc_budget", s.Ask("SHOW sdc_budget")),
        ("DECLARE \"C\" NO SCROLL CURSOR WITH HOLD FOR SELECT 1", s.Declare("C", "SELECT 1", True, False)),
        ("FETCH FORWARD 10 FROM \"C\"", s.Fetch("C", 10, False)), ("FETCH ALL c", s.Fetch("c", None, False)),
        ("MOVE 3 IN c", s.Fetch("c", 3, True)), ("CLOSE ALL", s.CloseCursor(None)), ("DEALLOCATE PREPARE p", s.Deallocate("p")),
        ("DISCARD ALL", s.Nothing("DISCARD ALL", True)), ("EXPLAIN (VERBOSE) SELECT 1", s.Explain("SELECT 1")),
        ("explain (verbose, format json) SELECT 1", s.Explain("SELECT 1", json=True)),
        ("COPY (SELECT 1) TO STDOUT", s.Copy("SELECT 1", "text", {})),
        ("copy t (a, b) to stdout with (format csv, header, delimiter ';')",
         s.Copy("SELECT a, b FROM t", "csv", {"header": "true", "delimiter": ";"})),
        ("COPY t TO STDOUT WITH CSV HEADER", s.Copy("SELECT * FROM t", "csv", {"header": "true"})),
        ("COPY (SELECT 1) TO STDOUT (FORMAT \"binary\")", s.Copy("SELECT 1", "binary", {})),
    ],
)  # fmt: skip
def test_statements(text: str, statement: s.Statement) -> None:
    assert read(text) == statement


@pytest.mark.parametrize(
    "text",
    ["INSERT INTO people VALUES (1)", "drop table people", "COPY people FROM STDIN", "COPY people TO '/tmp/x'", "ATTACH 'x'",
     "FETCH PRIOR FROM c", "PRAGMA database_list", "INSTALL httpfs", "SET x", "COPY (SELECT 1) TO STDOUT (FORMAT parquet)",
     "PREPARE p AS SELECT 1", "CREATE TEMP TABLE x AS SELECT 1", "COPY people TO PROGRAM 'cat'"],
)  # fmt: skip
def test_what_is_refused_here_already(text: str) -> None:
    with pytest.raises(Unsupported):
        read(text)


def test_several_statements() -> None:
    assert split("BEGIN; SELECT ';', $$;$$ -- ;\n; COMMIT;") == ["BEGIN", " SELECT ';', $$;$$ -- ;\n", " COMMIT"]
    assert split("SELECT 'open; SELECT 1") == ["SELECT 'open; SELECT 1"]
    assert [read(part) for part in split(" ;; ")] == [s.Empty()]


@given(st.text(max_size=60))
def test_any_text_is_a_statement_or_refused(text: str) -> None:
    try:
        for part in split(text):
            read(part)
    except Unsupported as problem:
        assert len(problem.code) == 5


@pytest.mark.parametrize(
    ("postgres", "duckdb"),
    [
        ("SELECT to_timestamp(x, 'YYYY-MM-DD') FROM t", "SELECT STRPTIME(x, '%Y-%m-%d') FROM t"),
        ('SELECT "t"."a" FROM "public"."t" WHERE public.t.a = 1', 'SELECT "t"."a" FROM "t" WHERE t.a = 1'),
        ("SELECT * FROM t FETCH FIRST 5 ROWS ONLY", "SELECT * FROM t LIMIT 5"),
        ("SELECT 1 FROM t WHERE NOT a = ANY(ARRAY['x', 'y']) OR b", "SELECT 1 FROM t WHERE NOT a IN ('x', 'y') OR b"),
        ("SELECT 1 FROM t WHERE a = b = ANY(ARRAY[true])", "SELECT 1 FROM t WHERE a = b = ANY([TRUE])"),
    ],
)
def test_sql_of_postgresql(postgres: str, duckdb: str) -> None:
    assert to_duckdb(postgres, "register") == duckdb


@pytest.mark.parametrize(
    "sql",
    ["FROM t SELECT count(*)", "SELECT a, count(*) FROM t GROUP BY ALL", "SELECT 7 // 2", "not SQL at all (",
     "SELECT a / b FROM t", "PIVOT t ON a USING sum(b)", "SELECT 1; SELECT 2"],
)  # fmt: skip
def test_sql_of_duckdb_stays_as_it_is(sql: str) -> None:
    assert to_duckdb(sql, "register") == sql


@pytest.mark.parametrize(
    ("sql", "system"),
    [
        ("SELECT relname FROM pg_class", True), ("SELECT 1", False), ("SELECT version()", True),
        ("SELECT * FROM information_schema.tables t JOIN pg_catalog.pg_class c ON true", True),
        ("SELECT count(*) FROM people, pg_class", False), ("SELECT current_schema, version() FROM people", False),
        ("WITH people AS (SELECT 1) SELECT * FROM people, pg_class", True), ("SELECT * FROM columns", False),
        ("SELECT (SELECT count(*) FROM people), pg_backend_pid()", False), ("SELECT * FROM main.pg_class", False),
        ("SELECT oid FROM pg_type WHERE typname = 'people'", True), ("SELECT * FROM pg_taken", False),
    ],
)  # fmt: skip
def test_questions_about_the_database_itself(sql: str, system: bool) -> None:
    assert is_system_query(sql, {"people": {}, "pg_taken": {}}) is system
