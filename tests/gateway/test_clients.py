"""Real clients: each connects, finds the tables, asks, is refused, and goes on."""

from __future__ import annotations

import asyncio
import datetime
import io
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from interrupting import again_and_again
from served_gateway import PASSWORD, ROWS, SLOW, Served, wait_for

import sdcduck
from sdcduck.guard import Refused

QUERY = "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region"
KINDS = (True, 7, 8, 9, 1.5, Decimal("12.345"), "grün", datetime.date(2020, 2, 29),
         datetime.datetime(2020, 2, 29, 12, 30, 1, 500_000), None)  # fmt: skip


@pytest.fixture(scope="module")
def expected(served: Served) -> list[tuple[str, int]]:
    """What the guard answers."""
    import psycopg

    with psycopg.connect(**served.options, autocommit=True) as con:  # type: ignore[arg-type]
        return con.execute(QUERY).fetchall()  # type: ignore[return-value]


class TestPsycopg:
    @pytest.fixture
    def con(self, served: Served) -> Iterator[Any]:
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(**served.options) as con:
            yield con

    @pytest.mark.parametrize("binary", [False, True])
    def test_values_of_every_kind(self, con: Any, binary: bool) -> None:
        assert con.cursor(binary=binary).execute("SELECT * FROM kinds").fetchone() == KINDS

    @pytest.mark.parametrize("binary", [False, True])
    def test_a_large_result(self, con: Any, binary: bool) -> None:
        rows = con.cursor(binary=binary).execute("SELECT * FROM numbers").fetchall()
        assert len(rows) == ROWS
        assert rows[70_000] == (70_000, 140_000, "text 70000", 10_000.0)

    def test_parameters(self, con: Any) -> None:
        asked = con.execute("SELECT count(*) AS n FROM people WHERE region = %s AND age > %s", ["North", 30]).fetchone()
        literal = con.execute("SELECT count(*) AS n FROM people WHERE region = 'North' AND age > 30").fetchone()
        assert asked == literal
        dates = "SELECT a_int FROM (SELECT an_int AS a_int, a_date FROM kinds) k WHERE a_date <= %s"
        assert con.execute(dates, [datetime.date(2020, 3, 1)]).fetchall() == [(8,)]
        assert con.execute("SELECT n FROM numbers WHERE n = ANY(%s) ORDER BY n", [[3, 5]]).fetchall() == [(3,), (5,)]

    def test_a_refusal_and_a_session_that_goes_on(self, con: Any, expected: Any) -> None:
        import psycopg

        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="SDC040") as caught:
            con.execute("SELECT * FROM people")
        assert "SDC040" in (caught.value.diag.message_detail or "")
        assert con.info.transaction_status.name == "INERROR"
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            con.execute(QUERY)
        con.rollback()
        assert con.execute(QUERY).fetchall() == expected
        con.commit()
        with pytest.raises(psycopg.errors.UndefinedTable, match="SDC020"):
            con.execute("SELECT * FROM secrets")
        con.rollback()
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            con.execute("DROP TABLE people")

    def test_an_explanation_is_what_the_guard_says(self, con: Any) -> None:
        asked = "EXPLAIN SELECT region, count(*) AS n FROM people GROUP BY region"
        (note,), (noise,) = con.execute(asked).fetchall()
        assert note.startswith("people: 1 group keys, 1 numbers protected by cell_key")
        assert noise.startswith("n: count of people; standard deviation 1.41 (1.14 where it is 1), at most 5")
        ((refused,),) = con.execute("EXPLAIN SELECT * FROM people").fetchall()
        assert "SDC040" in refused

    def test_an_explanation_for_programs_says_what_columns_are_made_of(self, con: Any) -> None:
        ask = "EXPLAIN (FORMAT JSON) SELECT region, count(*) AS n FROM people GROUP BY region"
        explained = json.loads(con.execute(ask).fetchall()[0][0])
        assert explained["answered"]
        noise = {"method": "", "noise_sd": None, "noise_max": None, "noise_per": "", "noise": ""}
        region, number = explained["columns"]
        assert region == {
            "name": "region", "kind": "group", "protected": [], "grouped": ["people"], "computed": False,
            "statistic": "group", **noise,
        }  # fmt: skip
        assert number.pop("noise").startswith("standard deviation 1.41")
        assert number == {
            "name": "n", "kind": "perturbed", "protected": [["people", "cell_key"]], "grouped": [], "computed": False,
            "statistic": "count of people", "method": "cell_key", "noise_sd": 1.4142, "noise_max": 5, "noise_per": "1",
        }  # fmt: skip
        refused = json.loads(con.execute("EXPLAIN (FORMAT JSON) SELECT * FROM people").fetchall()[0][0])
        assert (refused["answered"], refused["columns"], refused["notes"][0][:6]) == (False, [], "SDC040")

    def test_a_preview_says_that_it_is_one(self, con: Any) -> None:
        said: list[str] = []
        con.add_notice_handler(lambda notice: said.append(notice.message_primary))
        assert con.execute("SELECT region, income FROM people LIMIT 2").fetchall() == [("North", 2500)] * 2
        assert said == ["a preview: rows of 'made_up', which are made up; no record of 'people' is shown"]
        con.execute(QUERY).fetchall()
        assert len(said) == 1

    def test_a_notice_says_what_numbers_are_worth_to_whoever_asks_for_it(self, con: Any, expected: Any) -> None:
        said: list[str] = []
        con.add_notice_handler(lambda notice: said.append(notice.message_primary))
        con.execute("SET sdcduck.noise = on")
        assert con.execute("SHOW sdcduck.noise").fetchall() == [("on",)]
        assert con.execute(QUERY).fetchall() == expected
        assert len(said) == 1
        assert said[0].startswith("n: count of people; standard deviation 1.41 (1.14 where it is 1), at most 5")
        assert con.execute(QUERY, prepare=True).fetchall() == expected
        assert len(said) == 2
        con.execute("SELECT 1 AS one").fetchall()
        con.execute("SELECT relname FROM pg_class LIMIT 1").fetchall()
        con.execute("RESET sdcduck.noise")
        assert con.execute(QUERY).fetchall() == expected
        assert len(said) == 2
        with pytest.raises(Exception, match="can only be on or off"):
            con.execute("SET sdcduck.noise = perhaps")

    def test_laws_of_the_noise_are_asked_for_like_a_table(self, con: Any) -> None:
        asked = "SELECT size_from, round(sd, 2) FROM sdc_noise('people') WHERE statistic = %s ORDER BY 1"
        assert con.execute(asked, ["count"]).fetchall() == [(1, 1.14), (2, 1.41)]

    def test_savepoints(self, con: Any, expected: Any) -> None:
        with con.transaction():
            with pytest.raises(Exception, match="SDC040"), con.transaction():
                con.execute("SELECT * FROM people")
            assert con.execute(QUERY).fetchall() == expected

    def test_pipelines(self, con: Any, expected: Any) -> None:
        with con.pipeline():
            answers = [con.execute(QUERY) for _ in range(5)]
        assert [answer.fetchall() for answer in answers] == [expected] * 5

    def test_cursors_of_the_server(self, con: Any) -> None:
        with con.cursor(name="many") as cursor:
            cursor.execute("SELECT n FROM numbers ORDER BY n")
            assert [row[0] for row in cursor.fetchmany(10)] == list(range(10))
            assert len(cursor.fetchall()) == ROWS - 10

    @pytest.mark.parametrize("prepare", [False, True])
    def test_a_pivot_without_its_values(self, con: Any, prepare: bool) -> None:
        written = "SELECT * FROM (PIVOT people ON region IN ('East', 'North', 'South') USING count(*) GROUP BY sex) ORDER BY sex"
        answers = [
            con.execute(query, prepare=prepare)
            for query in (written, "PIVOT people ON region USING count(*) GROUP BY sex ORDER BY sex")
        ]
        assert [column.name for column in answers[1].description] == ["sex", "East", "North", "South"]
        assert answers[0].fetchall() == answers[1].fetchall() != []

    @pytest.mark.parametrize(("form", "first"), [("text", b"0\t0\ttext 0\n"), ("csv, HEADER", b"n,twice,words\n")])
    def test_copy(self, con: Any, form: str, first: bytes) -> None:
        query = f"COPY (SELECT n, twice, words FROM numbers ORDER BY n LIMIT 50000) TO STDOUT (FORMAT {form})"
        with con.cursor().copy(query) as copy:
            lines = [bytes(line) for line in copy]
        assert lines[0] == first
        assert lines[-1].split(b"\t" if form == "text" else b",")[0] == b"49999"

    def test_copy_in_binary(self, con: Any) -> None:
        with con.cursor().copy("COPY (SELECT * FROM kinds) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(
                ["bool", "int2", "int4", "int8", "float8", "numeric", "varchar", "date", "timestamp", "int4"]
            )
            assert list(copy.rows()) == [KINDS]

    def test_copy_to_the_server_is_refused(self, con: Any, expected: Any) -> None:
        with pytest.raises(Exception, match="COPY FROM is not supported"):
            con.execute("COPY people FROM STDIN")
        con.rollback()
        assert con.execute(QUERY).fetchall() == expected

    def test_prepared_statements_and_types(self, con: Any) -> None:
        psycopg = pytest.importorskip("psycopg")
        for number in range(8):
            row = con.execute("SELECT twice FROM numbers WHERE n = %s", [number], prepare=True).fetchone()
            assert row == (2 * number,)
        assert psycopg.types.TypeInfo.fetch(con, "numeric").oid == 1700
        assert psycopg.types.TypeInfo.fetch(con, "no_such_type") is None

    def test_cancel(self, con: Any, served: Served, expected: Any) -> None:
        psycopg = pytest.importorskip("psycopg")
        with again_and_again(con.cancel, served.at_work()), pytest.raises(psycopg.errors.QueryCanceled):
            con.execute(SLOW)
        con.rollback()
        assert con.execute(QUERY).fetchall() == expected

    def test_a_wrong_password(self, served: Served) -> None:
        psycopg = pytest.importorskip("psycopg")
        texts = []
        for user in ("bob", "nobody"):
            with pytest.raises(psycopg.OperationalError, match="password authentication failed") as caught:
                psycopg.connect(**{**served.options, "user": user, "password": "wrong password"})
            texts.append(str(caught.value).replace(user, "..").split("failed: ", 1)[1])
        assert texts[0] == texts[1]

    def test_settings(self, con: Any) -> None:
        psycopg = pytest.importorskip("psycopg")
        con.execute("SET application_name TO 'tests'")
        assert con.execute("SHOW application_name").fetchone() == ("tests",)
        assert con.info.parameter_status("application_name") == "tests"
        assert con.execute("SELECT current_setting('application_name'), current_user").fetchone() == ("tests", "ann")
        with pytest.raises(psycopg.errors.UndefinedObject):
            con.execute("SET memory_limit = '1TB'")


def test_a_client_that_leaves_frees_the_machine(served: Served) -> None:
    psycopg = pytest.importorskip("psycopg")
    left = served.told("left")
    con = psycopg.connect(**served.options)
    working = served.at_work()
    con.pgconn.send_query(SLOW.encode())
    wait_for(working)
    con.pgconn.finish()
    wait_for(lambda: served.told("left") > left)
    wait_for(lambda: [line["verdict"] for line in served.asked() if line["query"] == SLOW][-1:] == ["abandoned"])


def test_a_client_that_leaves_in_the_middle_of_a_result(served: Served) -> None:
    psycopg = pytest.importorskip("psycopg")
    query = "SELECT a.n AS left_in_the_middle FROM numbers a, numbers b"
    con = psycopg.connect(**served.options)
    con.pgconn.send_query(query.encode())
    verdicts = lambda: [line["verdict"] for line in served.asked() if line["query"] == query]  # noqa: E731
    wait_for(lambda: verdicts() == ["begun"])
    con.pgconn.finish()
    wait_for(lambda: verdicts() == ["begun", "abandoned"])


class TestPsycopg2:
    def test_the_whole_round(self, served: Served, expected: Any) -> None:
        psycopg2 = pytest.importorskip("psycopg2")
        con = psycopg2.connect(**served.options)
        try:
            cursor = con.cursor()
            cursor.execute(QUERY)
            assert cursor.fetchall() == expected
            cursor.execute("SELECT * FROM kinds")
            assert cursor.fetchone() == KINDS
            cursor.execute("SELECT count(*) FROM people WHERE sex = %(sex)s", {"sex": "f"})
            assert cursor.fetchone()[0] > 0
            for text in ("a\\b", "it's\\", "\\n", "a\nb"):  # which it writes in a way of its own
                cursor.execute("SELECT %s AS t, count(*) FROM kinds WHERE a_text <> %s", (text, text))
                assert cursor.fetchone() == (text, 1)
            with pytest.raises(psycopg2.Error, match="SDC040"):
                cursor.execute("SELECT * FROM people")
            con.rollback()
            named = con.cursor("many")
            named.itersize = 50_000
            named.execute("SELECT * FROM numbers")
            assert sum(1 for _ in named) == ROWS
            named.close()
            cursor.copy_expert("COPY (SELECT n FROM numbers LIMIT 3) TO STDOUT", out := io.StringIO())
            assert out.getvalue() == "0\n1\n2\n"
            with again_and_again(con.cancel, served.at_work()), pytest.raises(psycopg2.errors.QueryCanceled):
                cursor.execute(SLOW)
            con.rollback()
            cursor.execute(QUERY)
            assert cursor.fetchall() == expected
        finally:
            con.close()
        with pytest.raises(psycopg2.OperationalError, match="password"):
            psycopg2.connect(**{**served.options, "password": "wrong password"})


class TestSQLAlchemy:
    @pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "pg8000"])
    def test_reflection_and_pandas(self, served: Served, expected: Any, driver: str) -> None:
        sqlalchemy = pytest.importorskip("sqlalchemy")
        pandas = pytest.importorskip("pandas")
        pytest.importorskip(driver)
        engine = sqlalchemy.create_engine(served.url.replace("postgresql", f"postgresql+{driver}"))
        try:
            asked = len(served.asked())
            found = sqlalchemy.inspect(engine)
            assert found.get_table_names() == ["kinds", "numbers", "people"]
            assert found.get_view_names() == []
            columns = {column["name"]: column for column in found.get_columns("people")}
            assert list(columns) == ["person_id", "region", "sex", "age", "income"]
            assert isinstance(columns["age"]["type"], sqlalchemy.INTEGER)
            assert columns["income"]["comment"] == "measure: sum and avg"
            assert found.get_table_comment("people") == {"text": "protected: counts and sums only"}
            assert found.get_pk_constraint("people")["constrained_columns"] == []
            assert found.get_foreign_keys("people") == []
            assert found.get_indexes("people") == []
            people = sqlalchemy.Table("people", sqlalchemy.MetaData(), autoload_with=engine)
            assert len(served.asked()) == asked  # nothing of it came to the data
            counted = sqlalchemy.func.count().label("n")
            query = sqlalchemy.select(people.c.region, counted).group_by(people.c.region).order_by(people.c.region)
            with engine.connect() as con:
                assert [tuple(row) for row in con.execute(query)] == expected
                some = con.execute(query.where(people.c.age >= 30, people.c.sex.in_(["f", "m"]))).fetchall()
                assert len(some) == 3
            frame = pandas.read_sql("SELECT * FROM numbers", engine)
            assert frame.shape == (ROWS, 4)
            assert frame.dtypes["n"] == "int64"
        finally:
            engine.dispose()

    @pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
    def test_cancel_and_leaving_in_the_middle(self, served: Served, expected: Any, driver: str) -> None:
        sqlalchemy = pytest.importorskip("sqlalchemy")
        pytest.importorskip(driver)
        engine = sqlalchemy.create_engine(served.url.replace("postgresql", f"postgresql+{driver}"))
        left = served.told("left")
        with engine.connect() as con:
            cancel = con.connection.driver_connection.cancel
            with (
                again_and_again(cancel, served.at_work()),
                pytest.raises(sqlalchemy.exc.OperationalError, match="cancel"),
            ):
                con.execute(sqlalchemy.text(SLOW))
            con.rollback()
            assert [tuple(row) for row in con.execute(sqlalchemy.text(QUERY))] == expected
            streamed = con.execution_options(stream_results=True)
            assert len(streamed.execute(sqlalchemy.text("SELECT a.n FROM numbers a, numbers b")).fetchmany(10)) == 10
            con.invalidate()
        engine.dispose()
        wait_for(lambda: served.told("left") > left)
        login = {"connect_args": {"password": "wrong password"}}
        wrong = sqlalchemy.create_engine(served.url.replace("postgresql", f"postgresql+{driver}"), **login)
        with pytest.raises(sqlalchemy.exc.OperationalError, match="password"):
            wrong.connect()


def test_asyncpg(served: Served, expected: Any) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def ask() -> None:
        con = await asyncpg.connect(served.url)
        try:
            assert [tuple(row) for row in await con.fetch(QUERY)] == expected
            assert tuple(await con.fetchrow("SELECT * FROM kinds")) == KINDS
            assert await con.fetchval("SELECT twice FROM numbers WHERE n = $1", 21) == 42
            assert await con.fetchval("SELECT count(*) FROM numbers WHERE words = ANY($1::text[])", ["text 1"]) == 1
            found = await con.fetchval("SELECT an_int FROM kinds WHERE a_date = $1", datetime.date(2020, 2, 29))
            assert found == 8
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="SDC040"):
                await con.fetch("SELECT * FROM people")
            assert len(await con.fetch("SELECT * FROM numbers")) == ROWS
            async with con.transaction():
                seen = [row["n"] async for row in con.cursor("SELECT n FROM numbers LIMIT 120", prefetch=50)]
            assert seen == list(range(120))
            with pytest.raises(asyncio.TimeoutError):
                await con.fetch(SLOW, timeout=0.5)
            assert [tuple(row) for row in await con.fetch(QUERY)] == expected
            await con.reset()
            assert [tuple(row) for row in await con.fetch(QUERY)] == expected
            schemas = await con.fetch(
                "SELECT column_name FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position",
                "people",
            )
            assert [row[0] for row in schemas] == ["person_id", "region", "sex", "age", "income"]
        finally:
            await con.close()
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(served.url, password="wrong password")

    asyncio.run(ask())


def test_pg8000(served: Served, expected: Any) -> None:
    native = pytest.importorskip("pg8000.native")
    told = {"host": "127.0.0.1", "port": served.port, "user": "ann", "database": "register"}
    con = native.Connection(**told, password=PASSWORD)
    try:
        assert [tuple(row) for row in con.run(QUERY)] == expected
        assert tuple(con.run("SELECT * FROM kinds")[0]) == KINDS
        assert con.run("SELECT twice FROM numbers WHERE n = :n", n=4) == [[8]]
        with pytest.raises(native.DatabaseError, match="SDC040"):
            con.run("SELECT * FROM people")
        assert len(con.run("SELECT * FROM numbers")) == ROWS
    finally:
        con.close()
    with pytest.raises(native.DatabaseError, match="password"):
        native.Connection(**told, password="wrong password")
    # It cannot cancel; who loses patience leaves, while it runs or in the middle of a result.
    for query, wait in ((SLOW, 0.5), ("SELECT a.n FROM numbers a, numbers b", 0.3)):
        left, line = served.told("left"), socket.create_connection(("127.0.0.1", served.port))
        con = native.Connection(**told, password=PASSWORD, sock=line)
        threading.Timer(wait, line.shutdown, [socket.SHUT_RDWR]).start()
        with pytest.raises((native.InterfaceError, OSError)):
            con.run(query)
        line.close()
        wait_for(lambda left=left: served.told("left") > left)


def test_ibis(served: Served, register: Path, expected: Any) -> None:
    """Expressions have the same answers through the gateway as in one process with the file."""
    ibis = pytest.importorskip("ibis")
    _ = ibis._
    con, local = sdcduck.ibis.connect(served.url), sdcduck.ibis.connect(register)
    try:
        assert con.list_tables() == local.list_tables() == ["kinds", "numbers", "people"]
        assert con.table("people").schema() == local.table("people").schema()
        t = con.table("people")
        assert (
            list(t.group_by("region").agg(n=_.count()).order_by("region").execute().itertuples(index=False, name=None))
            == expected
        )
        for build in (
            lambda t: (
                t.group_by("region", "sex")
                .agg(n=_.count(), s=_.income.sum(), m=_.income.mean())
                .order_by("region", "sex")
            ),
            lambda t: t.mutate(b=_.age // 10).group_by("b").agg(n=_.count()).order_by(ibis.desc("n"), "b").limit(3),
            lambda t: (
                t.join(ibis.memtable({"region": ["North", "East"], "k": ["a", "b"]}), "region")
                .group_by("k")
                .agg(u=_.person_id.nunique())
                .order_by("k")
            ),
        ):
            assert build(t).to_pyarrow().equals(build(local.table("people")).to_pyarrow())
        kinds = con.table("kinds").to_pyarrow().to_pylist()[0]
        assert tuple(kinds.values()) == KINDS
        assert con.table("numbers").n.sum().execute() == ROWS * (ROWS - 1) // 2
        batches = list(con.table("numbers").to_pyarrow_batches(chunk_size=1000))
        assert sum(batch.num_rows for batch in batches) == ROWS
        assert max(batch.num_rows for batch in batches) <= 1000
        refusals = {
            "SDC040": lambda: t.execute(), "SDC050": lambda: t.income.max().execute(),
            "SDC020": lambda: con.sql("SELECT * FROM secrets"), "SDC004": lambda: con.raw_sql("DROP TABLE people"),
        }  # fmt: skip
        for code, ask in refusals.items():
            with pytest.raises(Refused) as caught:
                ask()
            assert caught.value.code == code
        assert t.count().execute() == local.table("people").count().execute()
    finally:
        con.disconnect()
        local.disconnect()
    with pytest.raises(sdcduck.SDCError, match="password"):
        sdcduck.ibis.connect(served.url, password="wrong")


def test_adbc(served: Served, expected: Any) -> None:
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with dbapi.connect(served.url) as con, con.cursor() as cursor:
        cursor.execute(QUERY)
        assert cursor.fetchall() == expected
        cursor.execute("SELECT * FROM numbers")
        table = cursor.fetch_arrow_table()
        assert table.num_rows == ROWS
        assert table["twice"][-1].as_py() == 2 * (ROWS - 1)
        cursor.execute("SELECT a_date, a_moment FROM kinds")
        assert cursor.fetchall() == [KINDS[7:9]]
        cursor.execute("SELECT a_decimal FROM kinds")
        assert cursor.fetch_arrow_table()["a_decimal"].chunk(0).storage.to_pylist() == ["12.345"]
        with pytest.raises(dbapi.Error, match="SDC040"):
            cursor.execute("SELECT * FROM people")
        con.rollback()
        tables = con.adbc_get_objects(depth="columns", table_name_filter="people").read_all().to_pylist()
        schemas = [schema for catalog in tables for schema in catalog["catalog_db_schemas"] or []]
        found = {table["table_name"]: table for schema in schemas for table in schema["db_schema_tables"] or []}
        names = [column["column_name"] for column in found["people"]["table_columns"]]
        assert sorted(names) == ["age", "income", "person_id", "region", "sex"]
        con.rollback()
        cursor.execute("SELECT twice FROM numbers WHERE n = $1", (21,))
        assert cursor.fetchall() == [(42,)]
        with again_and_again(cursor.adbc_cancel, served.at_work()), pytest.raises(dbapi.Error, match=r"(?i)cancel"):
            cursor.execute(SLOW)
            cursor.fetchall()
        con.rollback()
        cursor.execute(QUERY)
        assert cursor.fetchall() == expected
    with pytest.raises(dbapi.Error, match="password"):
        dbapi.connect(served.url.replace("battery", "wrong"))


def test_asyncpg_copies_what_has_parameters(served: Served) -> None:
    """It has the server write the values as text, with the full names of their types."""
    asyncpg = pytest.importorskip("asyncpg")

    async def copied() -> bytes:
        con = await asyncpg.connect(served.url)
        try:
            await con.copy_from_query(
                "SELECT n FROM numbers WHERE n < $1 AND words <> $2", 3, "it's", output=(out := io.BytesIO())
            )
            return out.getvalue()
        finally:
            await con.close()

    assert asyncio.run(copied()) == b"0\n1\n2\n"


def test_asyncpg_and_adbc_leave_in_the_middle(served: Served) -> None:
    asyncpg, dbapi = pytest.importorskip("asyncpg"), pytest.importorskip("adbc_driver_postgresql.dbapi")
    counted = "SELECT count(*) FROM people WHERE region = $1 AND age > $2"

    def verdicts(query: str) -> list[str]:
        return [line["verdict"] for line in served.asked() if query in line["query"]]

    async def leave() -> tuple[int, int]:
        con = await asyncpg.connect(served.url)
        found = await con.fetchval(counted, "North", 30)
        written = await con.fetchval(counted.replace("$1", "'North'").replace("$2", "30"))
        await con.execute("BEGIN")
        cursor = await con.cursor("SELECT a.n AS asyncpg FROM numbers a, numbers b")
        assert len(await cursor.fetch(10)) == 10
        con.terminate()
        return found, written

    assert len(set(asyncio.run(leave()))) == 1
    wait_for(lambda: verdicts("AS asyncpg") == ["begun", "abandoned"])
    con = dbapi.connect(served.url)
    cursor = con.cursor()
    cursor.execute(counted, ("North", 30))
    assert cursor.fetchone()[0] > 0
    cursor.execute("SELECT a.n AS adbc FROM numbers a, numbers b")
    assert cursor.fetch_record_batch().read_next_batch().num_rows > 0
    cursor.close()
    con.close()
    wait_for(lambda: verdicts("AS adbc")[-1:] == ["abandoned"])


def test_pg8000_finds_the_tables_and_goes_on(served: Served) -> None:
    native = pytest.importorskip("pg8000.native")
    con = native.Connection("ann", host="127.0.0.1", port=served.port, database="register", password=PASSWORD)
    try:
        tables = con.run(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = :s ORDER BY 1", s="public"
        )
        assert tables == [["kinds"], ["numbers"], ["people"]]
        columns = con.run(
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a JOIN pg_class c ON "
            "a.attrelid = c.oid WHERE c.relname = :t ORDER BY a.attnum", t="people",
        )  # fmt: skip
        assert columns[3:] == [["age", "integer"], ["income", "integer"]]
        with pytest.raises(native.DatabaseError, match="SDC040"):
            con.run("SELECT * FROM people")
        counted = con.run("SELECT count(*) FROM people WHERE region = :r AND age > :a", r="North", a=30)
        assert counted == con.run("SELECT count(*) FROM people WHERE region = 'North' AND age > 30")
    finally:
        con.close()


def test_the_postgres_backend_of_ibis(served: Served, expected: Any) -> None:
    """Ibis as it comes, which takes the gateway for PostgreSQL."""
    ibis = pytest.importorskip("ibis")
    psycopg = pytest.importorskip("psycopg")
    login = {"host": "127.0.0.1", "port": served.port, "user": "ann", "database": "register"}
    con = ibis.postgres.connect(**login, password=PASSWORD)
    try:
        assert con.list_tables() == ["kinds", "numbers", "people"]
        people = con.table("people")
        assert list(people.schema()) == ["person_id", "region", "sex", "age", "income"]
        assert people.schema()["age"].is_int32()
        counted = people.group_by("region").agg(n=people.count()).order_by("region")
        assert list(counted.execute().itertuples(index=False, name=None)) == expected
        age = ibis.param("int32")
        older = people.filter(people.age > age).count()
        assert older.execute(params={age: 30}) == people.filter(people.age > 30).count().execute()
        with pytest.raises(psycopg.Error, match="SDC040"):
            people.filter(people.age > 0).select("age", "income").execute()
        assert len(con.table("numbers").execute()) == ROWS
        with again_and_again(con.con.cancel, served.at_work()), pytest.raises(psycopg.errors.QueryCanceled):
            con.raw_sql(SLOW)
        con.con.rollback()
        n = con.table("numbers").n
        batches = con.table("numbers").select("n").cross_join(con.table("numbers").select(m=n)).to_pyarrow_batches()
        left = served.told("left")
        assert batches.read_next_batch().num_rows > 0
        con.con.pgconn.finish()
        wait_for(lambda: served.told("left") > left)
    finally:
        if not con.con.closed:
            con.disconnect()
    with pytest.raises(psycopg.OperationalError, match="password"):
        ibis.postgres.connect(**login, password="wrong password")


def test_ctrl_c_stops_a_question_of_our_ibis(served: Served) -> None:
    pytest.importorskip("ibis")
    program = "import sys, sdcduck.ibis; sdcduck.ibis.connect(sys.argv[1]).raw_sql(sys.argv[2])"
    asking = subprocess.Popen(
        [sys.executable, "-c", program, served.url, SLOW], stderr=subprocess.PIPE, text=True,
        # What runs in the background, as these tests may, has its children ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    with again_and_again(lambda: asking.send_signal(signal.SIGINT), served.at_work()):
        _, said = asking.communicate(timeout=60)
    assert said.splitlines()[-1] == "KeyboardInterrupt"


def test_our_ibis_leaves_in_the_middle(served: Served) -> None:
    pytest.importorskip("ibis")
    con, left = sdcduck.ibis.connect(served.url), served.told("left")
    numbers = con.table("numbers")
    batches = iter(numbers.cross_join(numbers.select(m=numbers.n)).to_pyarrow_batches(chunk_size=1000))
    assert next(batches).num_rows > 0
    del batches
    con.disconnect()
    wait_for(lambda: served.told("left") > left)


def test_frames_of_pandas_and_what_is_refused(served: Served, expected: Any) -> None:
    sqlalchemy, pandas = pytest.importorskip("sqlalchemy"), pytest.importorskip("pandas")
    engine = sqlalchemy.create_engine(served.url.replace("postgresql", "postgresql+psycopg"))
    try:
        with engine.connect() as con:
            for _ in range(2):
                with pytest.raises(pandas.errors.DatabaseError, match="SDC040"):
                    pandas.read_sql("SELECT * FROM people", con)
                con.rollback()
            counted = sqlalchemy.text("SELECT count(*) AS n FROM people WHERE region = :r AND age > :a")
            frame = pandas.read_sql(counted, con, params={"r": "North", "a": 30})
            assert (
                frame["n"][0]
                == con.exec_driver_sql("SELECT count(*) FROM people WHERE region = 'North' AND age > 30").scalar()
            )
            assert list(pandas.read_sql(QUERY, con).itertuples(index=False, name=None)) == expected
            assert pandas.read_sql_table("kinds", con).shape == (1, len(KINDS))
            with pytest.raises(sqlalchemy.exc.DBAPIError, match="cannot execute CREATE"):
                pandas.DataFrame({"a": [1]}).to_sql("taken", con)
    finally:
        engine.dispose()
