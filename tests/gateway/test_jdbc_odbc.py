"""Programs in Java, programs with ODBC, and DuckDB's own shell, which attaches the gateway as a database."""

from __future__ import annotations

import datetime
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from interrupting import again_and_again
from served_gateway import PASSWORD, ROWS, SLOW, Served, wait_for

_JAR = Path("/usr/share/java/postgresql.jar")
_SCANNER = os.environ.get("SDCDUCK_SCANNER_PYTHON", "")


@pytest.mark.skipif(not _JAR.exists() or shutil.which("javac") is None, reason="no JDBC driver, or no Java")
def test_jdbc(served: Served) -> None:
    command = ["java", "-cp", str(_JAR), str(Path(__file__).with_name("Jdbc.java")), str(served.port), PASSWORD]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.splitlines() == [
        "table kinds: public", "table numbers: public", "table people: protected: counts and sums only",
        "column person_id int8", "column region varchar", "column sex varchar", "column age int4", "column income int4",
        "catalogs 1", "schemas 3", "keys 0", "imported 0", "indexes 0", "functions 0", "column privileges 35",
        *[line for line in done.stdout.splitlines() if line.startswith("counted ")],  # protected: no number to know
        "by date true 8", "refused 42501 SDC040", f"fetched {ROWS}", "stopped 57014", "copied 10", "login 28P01",
    ], done.stderr  # fmt: skip
    assert len({line for line in done.stdout.splitlines() if line.startswith("counted ")}) == 1


@pytest.mark.skipif(shutil.which("isql") is None, reason="no ODBC")
@pytest.mark.parametrize("declare", [0, 1])  # 1: with DECLARE and FETCH, as Tableau does
def test_odbc(served: Served, declare: int) -> None:
    drivers = subprocess.run(["odbcinst", "-q", "-d"], capture_output=True, text=True, check=False).stdout
    if "[PostgreSQL Unicode]" not in drivers:
        pytest.skip("no ODBC driver for PostgreSQL")
    told = (
        f"Driver=PostgreSQL Unicode;Server=127.0.0.1;Port={served.port};Database=register;Uid=ann;Pwd={PASSWORD};"
        f"UseDeclareFetch={declare};Fetch=100"
    )
    asked = [
        "SELECT region, count(*) > 0 AS some FROM people GROUP BY region ORDER BY region", "SELECT * FROM people",
        "SELECT a_small, a_text, a_date FROM kinds", "help", "help people", "SELECT n FROM numbers WHERE n < 350 ORDER BY n",
    ]  # fmt: skip
    command = ["isql", "-k", told, "-b", "-v", "-d|"]
    done = subprocess.run(
        command, input="\n".join(asked) + "\n", capture_output=True, text=True, timeout=120, check=False
    )
    lines = done.stdout.splitlines()
    for line in ("East|1", "7|grün|2020-02-29", "register|public|people|TABLE|", "0", "349"):
        assert line in lines
    assert "SDC040" in done.stdout
    assert any(line.startswith("register|public|people|income|4|int4|") for line in lines)
    wrong = subprocess.run(
        [*command[:2], told.replace(PASSWORD, "wrong password"), *command[3:]],
        input="", capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "password authentication failed" in wrong.stdout + wrong.stderr


class TestODBC:
    """What programs with ODBC call, Excel and Power Query among them, through Python's way to it."""

    @pytest.fixture(params=[0, 1])
    def con(self, request: pytest.FixtureRequest, served: Served) -> Iterator[Any]:
        con = self.connected(served, f"UseDeclareFetch={request.param};Fetch=1000")
        yield con
        con.close()

    @staticmethod
    def connected(served: Served, more: str = "", *, password: str = PASSWORD) -> Any:
        pyodbc = pytest.importorskip("pyodbc")
        found = sorted(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"))
        if not found:
            pytest.skip("no ODBC driver for PostgreSQL")
        told = f"Driver={found[0]};Server=127.0.0.1;Port={served.port};Database=register;Uid=ann;Pwd={password};{more}"
        return pyodbc.connect(told, autocommit=True)

    def test_the_catalog(self, con: Any, served: Served) -> None:
        asked = len(served.asked())
        cursor = con.cursor()
        assert [row.table_name for row in cursor.tables(tableType="TABLE")] == ["kinds", "numbers", "people"]
        columns = [(row.column_name, row.type_name) for row in cursor.columns("people")]
        assert columns == [
            ("person_id", "int8"), ("region", "varchar"), ("sex", "varchar"), ("age", "int4"), ("income", "int4"),
        ]  # fmt: skip
        for nothing in (
            cursor.primaryKeys("people"), cursor.foreignKeys("people"), cursor.statistics("people"),
            cursor.procedures(), cursor.procedureColumns(), cursor.tables(tableType="VIEW"),
        ):  # fmt: skip
            nothing.fetchall()
        assert {"int4", "text", "date"} <= {row.type_name for row in cursor.getTypeInfo()}
        cursor.rowIdColumns("people").fetchall()
        cursor.rowVerColumns("people").fetchall()
        assert len(served.asked()) == asked  # nothing of it came to the data

    def test_questions_with_parameters(self, con: Any) -> None:
        bound = con.execute("SELECT count(*) FROM people WHERE region = ? AND age > ?", "North", 30).fetchval()
        assert bound == con.execute("SELECT count(*) FROM people WHERE region = 'North' AND age > 30").fetchval()
        day = datetime.date(2020, 2, 29)
        found = con.execute("SELECT a_date, a_text FROM kinds WHERE a_date = ? AND a_bool = ?", day, True)
        assert tuple(found.fetchone()) == (day, "grün")

    def test_a_large_result_and_a_refusal(self, con: Any) -> None:
        rows = con.execute("SELECT n, words FROM numbers ORDER BY n").fetchall()
        assert len(rows) == ROWS
        assert tuple(rows[-1]) == (ROWS - 1, f"text {ROWS - 1}")
        for _ in range(2):
            with pytest.raises(Exception, match="SDC040"):
                con.execute("SELECT * FROM people").fetchall()
        assert con.execute("SELECT count(*) > 0 FROM people").fetchval() in (True, "1")

    def test_cancel(self, served: Served) -> None:
        con = self.connected(served)
        cursor = con.cursor()
        with again_and_again(cursor.cancel, served.at_work()), pytest.raises(Exception, match=r"(?i)cancel"):
            cursor.execute(SLOW)
        assert con.execute("SELECT count(*) FROM kinds").fetchval() == 1
        con.close()

    def test_leaving_in_the_middle_of_a_result(self, served: Served) -> None:
        query = "SELECT a.n AS odbc FROM numbers a, numbers b"
        con = self.connected(served, "UseDeclareFetch=1;Fetch=1000")
        con.autocommit = False
        cursor = con.execute(query)
        assert len(cursor.fetchmany(10)) == 10
        con.rollback()
        con.close()
        verdicts = lambda: [line["verdict"] for line in served.asked() if query in line["query"]]  # noqa: E731
        wait_for(lambda: verdicts() == ["begun", "abandoned"])

    def test_a_wrong_password(self, served: Served) -> None:
        with pytest.raises(Exception, match="password authentication failed"):
            self.connected(served, password="wrong password")


_SCAN = """
import sys, duckdb, duckdb_extension_postgres_scanner as found
from pathlib import Path
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.execute(f"LOAD '{next(Path(found.__path__[0]).rglob('*.duckdb_extension'))}'")
con.execute(f"ATTACH '{sys.argv[1]}' AS g (TYPE postgres)")
print([row[0] for row in con.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'g' ORDER BY 1").fetchall()])
print(con.execute("SELECT count(*), max(n) FROM g.numbers WHERE n < 1000").fetchall())
print(con.execute("SELECT a_small, a_text, a_decimal, a_date FROM g.kinds").fetchall())
print(con.execute("SELECT n > 0 FROM postgres_query('g', 'SELECT count(*) AS n FROM people')").fetchall())
try:
    con.execute("SELECT * FROM g.people").fetchall()
except duckdb.Error as problem:
    print("SDC040" in str(problem))
"""


@pytest.mark.skipif(not _SCANNER, reason="SDCDUCK_SCANNER_PYTHON names no Python with DuckDB's postgres extension")
def test_duckdb_attaches_the_gateway(served: Served) -> None:
    done = subprocess.run([_SCANNER, "-c", _SCAN, served.url], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines() == [
        "['kinds', 'numbers', 'people']", "[(1000, 999)]",
        "[(7, 'grün', Decimal('12.345'), datetime.date(2020, 2, 29))]", "[(True,)]", "True",
    ], done.stderr  # fmt: skip


_ROUND = """
import sys, threading, duckdb, duckdb_extension_postgres_scanner as found
from pathlib import Path
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.execute(f"LOAD '{next(Path(found.__path__[0]).rglob('*.duckdb_extension'))}'")
try:
    con.execute(f"ATTACH '{sys.argv[1].replace('battery', 'wrong')}' AS w (TYPE postgres)")
except duckdb.Error as problem:
    print("login", "password authentication failed" in str(problem))
con.execute(f"ATTACH '{sys.argv[1]}' AS g (TYPE postgres, READ_ONLY)")
print([row[:2] for row in con.execute("DESCRIBE g.people").fetchall()])
print(con.execute("SELECT count(*), sum(n) FROM g.numbers").fetchall())
for _ in range(2):
    try:
        con.execute("FROM postgres_query('g', 'SELECT age, income FROM people WHERE age > 30')").fetchall()
    except duckdb.Error as problem:
        print("refused", "SDC040" in str(problem))
print(con.execute("FROM postgres_query('g', 'SELECT count(*) > 0 AS some FROM people')").fetchall())
try:
    con.execute("CREATE TABLE g.taken AS SELECT 1 AS a")
except duckdb.Error:
    print("nothing is taken in")
print("reading", flush=True)
con.execute("SELECT count(scanned) FROM postgres_query('g', 'SELECT a.n AS scanned FROM numbers a, numbers b')").fetchall()
"""


@pytest.mark.skipif(not _SCANNER, reason="SDCDUCK_SCANNER_PYTHON names no Python with DuckDB's postgres extension")
def test_duckdb_does_the_whole_round_and_leaves_in_the_middle(served: Served) -> None:
    """It has no parameters to send and cancels nothing: who stops it ends it, while it reads."""
    verdicts = lambda: [line["verdict"] for line in served.asked() if "AS scanned" in line["query"]]  # noqa: E731
    with subprocess.Popen([_SCANNER, "-c", _ROUND, served.url], stdout=subprocess.PIPE, text=True) as client:
        try:
            wait_for(lambda: client.poll() is not None or verdicts() == ["begun"])
        finally:
            client.kill()
        assert client.stdout is not None
        assert client.stdout.read().splitlines() == [
            "login True", "[('person_id', 'BIGINT'), ('region', 'VARCHAR'), ('sex', 'VARCHAR'), ('age', 'INTEGER'), "
            "('income', 'INTEGER')]", f"[({ROWS}, {ROWS * (ROWS - 1) // 2})]", "refused True", "refused True",
            "[(True,)]", "nothing is taken in", "reading",
        ]  # fmt: skip
    wait_for(lambda: verdicts() == ["begun", "abandoned"])
