"""Arrow Flight SQL: real clients, and what happens when they behave badly."""

from __future__ import annotations

import datetime
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interrupting import again_and_again
from served_gateway import PASSWORD, ROWS, SLOW, Served, start, wait_for
from typer.testing import CliRunner

from sdcduck.cli import app
from sdcduck.gateway.flight.messages import BadMessage, command, inside, message, named
from sdcduck.gateway.flight.running import Running
from sdcduck.gateway.tls import self_signed

pyarrow, flight = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.flight")
QUERY = "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region"
LONG = "SELECT a.n, b.n AS m FROM numbers a, numbers b"
PIVOT = f"PIVOT (SELECT a.n % 3 AS k FROM ({LONG}) a WHERE a.n + a.m <> 3) ON k USING count(*)".encode()


def connected(served: Served, user: str = "ann", password: str = PASSWORD, **options: str) -> Any:
    adbc = pytest.importorskip("adbc_driver_flightsql.dbapi")
    kind = "grpc+tls" if "adbc.flight.sql.client_option.tls_root_certs" in options else "grpc"
    login = {"username": user, "password": password}
    return adbc.connect(f"{kind}://127.0.0.1:{served.flight}", db_kwargs={**login, **options})


class Plain:
    """A client that says what it likes."""

    def __init__(self, served: Served, user: str = "ann") -> None:
        self.client = flight.FlightClient(f"grpc://127.0.0.1:{served.flight}")
        self.token = self.client.authenticate_basic_token(user, PASSWORD)
        self.options = flight.FlightCallOptions(headers=[self.token])

    def info(self, query: str) -> Any:
        asked = flight.FlightDescriptor.for_command(named("CommandStatementQuery", (1, query.encode())))
        return self.client.get_flight_info(asked, self.options)

    def rows(self, info: Any) -> Any:
        return self.client.do_get(info.endpoints[0].ticket, self.options)

    def act(self, name: str, body: bytes = b"") -> list[bytes]:
        return [found.body.to_pybytes() for found in self.client.do_action((name, body), self.options)]


@pytest.fixture
def con(served: Served) -> Iterator[Any]:
    with connected(served) as con:
        yield con


@pytest.fixture
def plain(served: Served) -> Plain:
    return Plain(served)


class TestAdbc:
    def test_the_answer_is_that_of_the_other_door(self, con: Any, served: Served) -> None:
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(**served.options) as other:
            expected = other.execute(QUERY).fetchall()
        before = len(served.asked())
        with con.cursor() as cursor:
            assert cursor.execute(QUERY).fetch_arrow_table().to_pydict() == {
                "region": [region for region, _ in expected], "n": [n for _, n in expected],
            }  # fmt: skip
        (line,) = served.asked()[before:]
        assert (line["user"], line["role"], line["verdict"], line["rows"]) == ("ann", "analyst", "answered", 3)

    def test_values_of_every_kind(self, con: Any) -> None:
        with con.cursor() as cursor:
            assert cursor.execute("SELECT * FROM kinds").fetchall() == [
                (True, 7, 8, 9, 1.5, Decimal("12.345"), "grün", datetime.date(2020, 2, 29),
                 datetime.datetime(2020, 2, 29, 12, 30, 1, 500_000), None)
            ]  # fmt: skip

    def test_a_large_result(self, con: Any) -> None:
        with con.cursor() as cursor:
            reader = cursor.execute("SELECT * FROM numbers").fetch_record_batch()
            assert sum(batch.num_rows for batch in reader) == ROWS

    def test_parameters(self, con: Any) -> None:
        with con.cursor() as cursor:
            cursor.execute("SELECT count(*) AS n FROM people WHERE region = ? AND age > ?", ("North", 30))
            asked = cursor.fetchone()
            cursor.execute("SELECT count(*) AS n FROM people WHERE age > $2 AND region = $1", ("North", 30))
            assert cursor.fetchone() == asked
            cursor.execute("SELECT count(*) AS n FROM people WHERE region = 'North' AND age > 30")
            assert cursor.fetchone() == asked
            day = (datetime.date(2020, 3, 1),)
            assert cursor.execute("SELECT an_int FROM kinds WHERE a_date <= ?", day).fetchall() == [(8,)]
            assert cursor.execute("SELECT '?' AS a, n FROM numbers WHERE n = ?", (3,)).fetchall() == [("?", 3)]
            assert cursor.adbc_prepare("SELECT n FROM numbers WHERE n < ? AND words = ?").types == [
                pyarrow.int64(), pyarrow.string(),
            ]  # fmt: skip

    def test_values_of_parameters_have_bounds(self, con: Any) -> None:
        with con.cursor() as cursor:
            for values, why in ((("x" * 2_000_000,), "too large"), (pyarrow.table({"1": ["a", "b"]}), "one value")):
                with pytest.raises(Exception, match=why):
                    cursor.execute("SELECT n FROM numbers WHERE words = ?", values)
            assert cursor.execute("SELECT n FROM numbers WHERE words = ?", (None,)).fetchall() == []

    def test_types_are_told_as_they_come(self, con: Any) -> None:
        kinds = (
            "[1, NULL]", "{'a': 1, 'b': NULL}", "MAP {'a': 1}", "NULL", "uuid()", "170141183460469231731687303715884105727",
            "TIME '12:00'", "INTERVAL 1 MONTH", "TIMESTAMPTZ '2020-01-01 00:00+00'", "'a'::BLOB", "1::UTINYINT",
            "TIMESTAMP_NS '2020-01-01 00:00:00.000000001'", "1.5::DECIMAL(30, 10)", "'x'", "true", "DATE '2020-01-01'",
        )  # fmt: skip
        with con.cursor() as cursor:
            answered = 0
            for kind in kinds:
                query = f"SELECT {kind} AS v, n FROM numbers WHERE n % 2 = 0 OR n IS NULL LIMIT 3"
                try:
                    told = cursor.adbc_execute_schema(query)
                    table = cursor.execute(query).fetch_arrow_table()
                except Exception as refused:  # not all kinds are answered, nor by every DuckDB
                    assert "SDC0" in str(refused)
                    continue
                answered += 1
                assert (table.schema, table.num_rows) == (told, 3), kind
            assert answered > 8

    def test_a_refusal_and_a_session_that_goes_on(self, con: Any, served: Served) -> None:
        before = len(served.asked())
        with con.cursor() as cursor:
            for query, code in (
                ("SELECT * FROM people", "SDC040"), ("SELECT * FROM secrets", "SDC020"), ("SELEC 1", "SDC001"),
                ("DROP TABLE people", "SDC004"), ("SET threads = 1", "SDC004"), ("SELECT 1; SELECT 2", "SDC003"),
                ("SELECT verifier FROM sdc.users", "SDC020"), ("FROM read_csv('/etc/passwd')", "SDC021"),
            ):  # fmt: skip
                with pytest.raises(Exception, match=code) as caught:
                    cursor.execute(query)
                assert "sdcduck/" not in str(caught.value)
            assert len(cursor.execute(QUERY).fetchall()) == 3
        assert [line["verdict"] for line in served.asked()[before:]] == [
            "SDC040", "SDC020", "SDC001", "SDC004", "SDC004", "SDC003", "SDC020", "SDC021", "answered"
        ]  # fmt: skip

    def test_a_preview_says_that_it_is_one(self, con: Any) -> None:
        with con.cursor() as cursor:
            told = cursor.execute("SELECT * FROM people LIMIT 5").fetch_arrow_table().schema.metadata
            assert told[b"sdcduck.notice"].startswith(b"a preview: rows of 'made_up'")
            answered = cursor.execute(QUERY).fetch_arrow_table().schema
            assert answered.metadata is None
            assert answered.field("region").metadata == {b"sdcduck.statistic": b"group"}
            assert answered.field("n").metadata[b"sdcduck.noise_sd"] == b"1.4142"
            assert answered.field("n").metadata[b"sdcduck.noise_max"] == b"5"
            reader = cursor.execute("SELECT * FROM people LIMIT 5").fetch_record_batch()
            assert reader.schema.metadata == told

    def test_nothing_is_taken_in(self, con: Any) -> None:
        table = pyarrow.table({"a": [1]})
        with con.cursor() as cursor:
            with pytest.raises(Exception, match="SDC004"):
                cursor.adbc_ingest("taken", table)
            with pytest.raises(Exception, match="SDC004"):
                cursor.executemany("SELECT n FROM numbers WHERE n = ?", [(1,), (2,)])
            assert cursor.execute("SELECT count(*) FROM kinds").fetchone() == (1,)

    def test_what_would_change_something_is_written_down(self, con: Any, plain: Plain, served: Served) -> None:
        before = len(served.asked())
        with con.cursor() as cursor:
            with pytest.raises(Exception, match="SDC004"):
                cursor.executescript("DELETE FROM people")
            with pytest.raises(Exception, match="SDC004"):
                cursor.adbc_ingest("taken", pyarrow.table({"a": [1]}))
        asked = flight.FlightDescriptor.for_command(named("CommandStatementUpdate", (1, b"DROP TABLE people")))
        with pytest.raises(flight.FlightError, match="SDC004"):
            plain.client.get_flight_info(asked, plain.options)
        with pytest.raises(pyarrow.ArrowException, match="SDC004"):
            plain.client.get_schema(asked, plain.options)
        found = [(line["query"], line["verdict"], line["user"]) for line in served.asked()[before:]]
        assert found == [
            ("DELETE FROM people", "SDC004", "ann"), ("rows to be taken in as a table: taken", "SDC004", "ann"),
            ("DROP TABLE people", "SDC004", "ann"), ("DROP TABLE people", "SDC004", "ann"),
        ]  # fmt: skip

    def test_transactions_have_nothing_to_undo(self, con: Any) -> None:
        con.commit()
        con.rollback()
        with con.cursor() as cursor:
            assert len(cursor.execute(QUERY).fetchall()) == 3

    def test_what_the_database_has(self, con: Any) -> None:
        (catalog,) = con.adbc_get_objects().read_all().to_pylist()
        (schema,) = catalog["catalog_db_schemas"]
        tables = {
            table["table_name"]: [column["column_name"] for column in table["table_columns"]]
            for table in schema["db_schema_tables"]
        }
        assert (catalog["catalog_name"], schema["db_schema_name"]) == ("register", "public")
        assert list(tables) == ["kinds", "numbers", "people"]
        assert tables["people"] == ["person_id", "region", "sex", "age", "income"]
        (catalog,) = con.adbc_get_objects(depth="tables", table_name_filter="p_op%").read_all().to_pylist()
        ((people,),) = [schema["db_schema_tables"] for schema in catalog["catalog_db_schemas"]]
        assert people["table_name"] == "people"
        assert con.adbc_get_table_types() == ["TABLE"]
        assert con.adbc_get_info()["vendor_name"] == "sdcduck"
        columns = con.adbc_get_table_schema("people")
        assert columns.field("income").metadata[b"ARROW:FLIGHT:SQL:REMARKS"] == b"measure: sum and avg"
        with con.cursor() as cursor:
            cursor.execute("SELECT table_name FROM information_schema.tables ORDER BY 1")
            assert cursor.fetchall() == [("kinds",), ("numbers",), ("people",)]
            (note,), (noise,) = cursor.execute("EXPLAIN " + QUERY).fetchall()
            assert "cell_key" in note
            assert "standard deviation 1.41" in noise

    def test_describing_asks_nothing(self, con: Any, served: Served) -> None:
        before = len(served.asked())
        with con.cursor() as cursor:
            assert cursor.adbc_execute_schema(QUERY).names == ["region", "n"]
            cursor.adbc_prepare(QUERY)
        assert len(served.asked()) == before

    def test_cancel(self, con: Any, served: Served) -> None:
        with con.cursor() as cursor:
            before = len(served.asked())
            with again_and_again(cursor.adbc_cancel, served.at_work()), pytest.raises(Exception, match=r"(?i)cancel"):
                cursor.execute(SLOW)
            wait_for(
                lambda: [line["verdict"] for line in served.asked()[before:] if line["query"] == SLOW] == ["abandoned"]
            )
            assert len(cursor.execute(QUERY).fetchall()) == 3

    def test_who_is_not_let_in(self, served: Served) -> None:
        for user, password in (("ann", "wrong password"), ("eve", PASSWORD)):
            with pytest.raises(Exception, match="password"), connected(served, user, password) as con:
                con.cursor().execute(QUERY)

    def test_data_frames(self, con: Any) -> None:
        polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
        assert polars.read_database(QUERY, con)["region"].to_list() == ["East", "North", "South"]
        assert pandas.read_sql(QUERY, con)["region"].tolist() == ["East", "North", "South"]

    def test_the_steps_on_the_page(self, served: Served) -> None:
        pytest.importorskip("polars")
        page = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text(encoding="utf-8")
        steps = re.findall(r"^```py\n(.*?)^```$", page, re.M | re.S)
        assert len(steps) == 3
        found: dict[str, Any] = {}
        for step in steps:
            exec(step.replace("grpc+tls://HOST:31337", f"grpc://127.0.0.1:{served.flight}"), found)
        assert (found["table"].num_rows, len(found["by_sex"]), len(found["by_region"])) == (5, 2, 3)
        assert found["notice"].startswith(b"a preview: rows of")
        found["con"].close()

    def test_a_role_of_its_own(self, served: Served) -> None:
        with connected(served, "bob") as con:
            con.cursor().execute(QUERY).fetchall()
        assert (served.asked()[-1]["user"], served.asked()[-1]["role"]) == ("bob", "researcher")


class TestFlight:
    @pytest.mark.parametrize("header", [b"", b"Bearer", b"Bearer x", b"Basic YW5uOng=", b"Basic !!", b"Nothing x"])
    def test_no_call_without_a_token(self, served: Served, header: bytes) -> None:
        client = flight.FlightClient(f"grpc://127.0.0.1:{served.flight}")
        options = flight.FlightCallOptions(headers=[(b"authorization", header)] if header else [])
        asked = flight.FlightDescriptor.for_command(named("CommandGetTables"))
        for call in (
            lambda: client.get_flight_info(asked, options),
            lambda: client.do_get(flight.Ticket(named("CommandGetTables")), options).read_all(),
            lambda: list(client.do_action(("BeginTransaction", b""), options)),
            lambda: list(client.list_actions(options)),
            lambda: list(client.list_flights(b"", options)),
        ):
            with pytest.raises(flight.FlightUnauthenticatedError):
                call()
        with pytest.raises(OSError, match="not logged in"):
            client.get_schema(asked, options)

    def test_a_large_message_of_nobody_harms_nobody(self, served: Served, plain: Plain) -> None:
        """Arrow reads it to its end before it asks who calls, whatever its size; then it is gone."""
        large = b"x" * (32 << 20)
        client = flight.FlightClient(f"grpc://127.0.0.1:{served.flight}")
        for call in (
            lambda: client.get_flight_info(flight.FlightDescriptor.for_command(large)),
            lambda: list(client.do_action(("CreatePreparedStatement", large))),
        ):
            with pytest.raises(flight.FlightUnauthenticatedError):
                call()
            assert plain.rows(plain.info(QUERY)).read_all().num_rows == 3
        with pytest.raises(pyarrow.ArrowException, match="metadata size exceeds"):
            client.get_flight_info(
                flight.FlightDescriptor.for_command(b""),
                flight.FlightCallOptions(headers=[(b"authorization", b"Bearer " + large[:100_000])]),
            )
        assert plain.rows(plain.info(QUERY)).read_all().num_rows == 3

    def test_an_answer_is_read_once_and_by_whoever_asked(self, served: Served, plain: Plain) -> None:
        info = plain.info(QUERY)
        with pytest.raises(flight.FlightServerError, match="no such answer"):
            Plain(served, "bob").rows(info).read_all()
        assert plain.rows(info).read_all().num_rows == 3
        with pytest.raises(flight.FlightServerError, match="no such answer"):
            plain.rows(info).read_all()

    def test_nobody_reaches_what_another_has_prepared_or_runs(self, served: Served, plain: Plain) -> None:
        other = Plain(served, "bob")
        (made,) = plain.act(
            "CreatePreparedStatement", named("ActionCreatePreparedStatementRequest", (1, QUERY.encode()))
        )
        handle = inside(made, "ActionCreatePreparedStatementResult").data(1)
        assert handle is not None
        asked = flight.FlightDescriptor.for_command(named("CommandPreparedStatementQuery", (1, handle)))
        for call in (other.client.get_flight_info, other.client.get_schema):
            with pytest.raises((flight.FlightError, OSError, pyarrow.ArrowException), match="no such prepared"):
                call(asked, other.options)
        other.act("ClosePreparedStatement", named("ActionClosePreparedStatementRequest", (1, handle)))
        info = plain.client.get_flight_info(asked, plain.options)  # it is there still
        with pytest.raises(flight.FlightServerError, match="no such answer"):
            other.act("CancelFlightInfo", message((1, info.serialize())))
        assert plain.rows(info).read_all().num_rows == 3

    def test_who_leaves_is_out(self, plain: Plain) -> None:
        plain.act("CloseSession")
        with pytest.raises(flight.FlightUnauthenticatedError):
            plain.info(QUERY)

    @pytest.mark.parametrize(
        "data",
        [b"", b"\xff\xff\xff", b"nothing", message((1, b"type.googleapis.com/some.Thing")), named("CommandNothing"),
         named("CommandStatementQuery", (1, b"\xff\xfe")), named("TicketStatementQuery", (1, b"none")),
         named("CommandPreparedStatementQuery", (1, b"none")), named("CommandStatementQuery", (1, 7))],
    )  # fmt: skip
    def test_bad_messages_are_refused(self, plain: Plain, data: bytes) -> None:
        asked = flight.FlightDescriptor.for_command(data)
        for call in (
            lambda: plain.client.get_flight_info(asked, plain.options),
            lambda: plain.client.get_schema(asked, plain.options),
            lambda: plain.client.do_get(flight.Ticket(data), plain.options).read_all(),
        ):
            with pytest.raises(pyarrow.ArrowException):
                call()
        for action in ("CreatePreparedStatement", "CancelFlightInfo", "CancelQuery", "Nothing"):
            with pytest.raises(flight.FlightError):
                plain.act(action, data or b"\xff")
        assert plain.rows(plain.info(QUERY)).read_all().num_rows == 3

    def test_no_error_has_lines_of_source_or_names_of_folders(self, plain: Plain) -> None:
        told = []
        asked = flight.FlightDescriptor.for_command(named("CommandStatementQuery", (1, b"SELECT * FROM secrets")))
        for call in (
            lambda: plain.client.get_schema(asked, plain.options),
            lambda: plain.client.get_schema(flight.FlightDescriptor.for_command(b"nothing"), plain.options),
            lambda: plain.client.get_flight_info(asked, plain.options),
            lambda: plain.client.do_exchange(asked, plain.options)[1].read_chunk(),
        ):
            with pytest.raises((flight.FlightError, pyarrow.ArrowException, OSError)) as caught:
                call()
            told.append(str(caught.value).replace("pyarrow/_flight.pyx", ""))
        assert "SDC020" in told[0]
        assert not any(word in text for text in told for word in ("/", "server.py", "raise", "from None"))
        assert list(plain.client.list_flights(b"", plain.options)) == []

    @pytest.mark.parametrize("pattern", ["people\\", "\\", "%\\\\", "peopl_\\\\\\"])
    def test_patterns_of_names_may_end_in_a_backslash(self, plain: Plain, pattern: str) -> None:
        for field in (2, 3):
            ticket = flight.Ticket(named("CommandGetTables", (field, pattern.encode())))
            assert plain.client.do_get(ticket, plain.options).read_all().num_rows == 0
        ticket = flight.Ticket(named("CommandGetTables", (3, b"p\\eopl_")))
        assert plain.client.do_get(ticket, plain.options).read_all()["table_name"].to_pylist() == ["people"]

    def test_cancelling_by_name(self, plain: Plain, served: Served) -> None:
        info = plain.info(LONG)
        assert plain.act("CancelFlightInfo", message((1, info.serialize()))) == [message((1, 1))]
        wait_for(lambda: served.asked()[-1]["verdict"] == "abandoned")
        with pytest.raises(flight.FlightError):
            plain.rows(info).read_all()

    def test_a_client_that_goes_in_the_middle(self, plain: Plain, served: Served) -> None:
        reader = plain.rows(plain.info(LONG))
        reader.read_chunk()
        reader.cancel()
        wait_for(lambda: served.asked()[-1]["verdict"] == "abandoned")

    def test_a_client_that_is_killed(self, served: Served) -> None:
        code = (
            "import sys, adbc_driver_flightsql.dbapi as adbc\n"
            f"con = adbc.connect('grpc://127.0.0.1:{served.flight}', "
            f"db_kwargs={{'username': 'ann', 'password': {PASSWORD!r}}})\n"
            "cursor = con.cursor()\n"
            f"reader = cursor.execute({LONG!r}).fetch_record_batch()\n"
            "reader.read_next_batch()\n"
            "print('reading', flush=True)\n"
            "sys.stdin.read()"
        )
        with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == b"reading\n"
            before = len(served.asked())
            client.kill()
        wait_for(lambda: len(served.asked()) > before)
        assert served.asked()[-1]["verdict"] == "abandoned"


def test_limits_of_a_user(serve: Callable[..., Served]) -> None:
    served = serve("--flight-port", "0", "--user-connections", "2", "--seconds", "2", "--rows", "1000", grace=1.0)
    plain = Plain(served)
    first, _ = plain.info(QUERY), plain.info(QUERY)
    with pytest.raises(flight.FlightUnavailableError, match="too many"):
        plain.info(QUERY)
    psycopg = pytest.importorskip("psycopg")
    with pytest.raises(psycopg.OperationalError, match="too many connections"):
        psycopg.connect(**served.options)
    plain.rows(first).read_all()  # its seat is free again
    with pytest.raises(flight.FlightTimedOutError, match="SDC091"):
        plain.info(SLOW)
    with pytest.raises(flight.FlightError, match="SDC093"):
        plain.rows(plain.info("SELECT * FROM numbers")).read_all()


def test_many_clients_at_once(served: Served) -> None:
    def ask(number: int) -> int:
        with connected(served) as con, con.cursor() as cursor:
            mine = [cursor.execute("SELECT n FROM numbers WHERE n = ?", (number,)).fetchall() for _ in range(5)]
            assert mine == [[(number,)]] * 5
            return len(cursor.execute(QUERY).fetchall())

    with ThreadPoolExecutor(30) as clients:
        assert list(clients.map(ask, range(60))) == [3] * 60


def test_wrong_passwords_cost_time_and_lock_nobody_out_who_is_in(served: Served) -> None:
    plain = Plain(served)  # from here on none has failed
    failed = served.told("login failed")
    for _ in range(4):
        with pytest.raises(flight.FlightUnauthenticatedError):
            plain.client.authenticate_basic_token("ann", "wrong password")
    begin = time.monotonic()
    with pytest.raises(flight.FlightUnauthenticatedError):
        plain.client.authenticate_basic_token("ann", "wrong password")
    assert time.monotonic() - begin >= 0.5  # that long it has to wait at least
    assert plain.rows(plain.info(QUERY)).read_all().num_rows == 3
    assert served.told("login failed") == failed + 5
    assert PASSWORD not in served.events.read_text()
    Plain(served)  # or those who come after have to wait


def test_tls_with_a_certificate_of_ones_own(register: Path, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    made = self_signed("127.0.0.1")
    (tmp_path / "cert.pem").write_bytes(made.chain)
    (tmp_path / "key.pem").write_bytes(made.key)
    files = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    served = start(register, tmp_path, "--host", "0.0.0.0", "--flight-port", "0", *files)
    try:
        roots = {"adbc.flight.sql.client_option.tls_root_certs": made.chain.decode()}
        with connected(served, **roots) as con, con.cursor() as cursor:
            assert len(cursor.execute(QUERY).fetchall()) == 3
            cursor.execute("SELECT * FROM numbers")
            assert cursor.fetch_arrow_table().num_rows == ROWS
        other = {"adbc.flight.sql.client_option.tls_root_certs": self_signed("127.0.0.1").chain.decode()}
        with pytest.raises(Exception, match=r"(?i)certificate"), connected(served, **other) as con:
            con.cursor().execute(QUERY)
        client = flight.FlightClient(f"grpc://127.0.0.1:{served.flight}")  # unencrypted
        with pytest.raises(flight.FlightError):
            client.authenticate_basic_token("ann", PASSWORD)
    finally:
        assert served.stop() == 0


def test_who_shows_no_certificate_is_not_read_from(register: Path, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    made, client = self_signed("127.0.0.1"), self_signed("ann")
    for name, pem in (("cert", made.chain), ("key", made.key), ("clients", client.chain)):
        (tmp_path / f"{name}.pem").write_bytes(pem)
    files = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    asked = ("--host", "0.0.0.0", "--flight-port", "0", "--flight-client-ca", str(tmp_path / "clients.pem"))
    served = start(register, tmp_path, *asked, *files)
    try:
        option = "adbc.flight.sql.client_option."
        roots = {f"{option}tls_root_certs": made.chain.decode()}
        shown = {f"{option}mtls_cert_chain": client.chain.decode(), f"{option}mtls_private_key": client.key.decode()}
        with connected(served, **roots, **shown) as con, con.cursor() as cursor:
            assert len(cursor.execute(QUERY).fetchall()) == 3
        with pytest.raises(Exception, match="password"), connected(served, password="wrong", **roots, **shown) as con:
            con.cursor().execute(QUERY)  # a certificate does for no password
        place = f"grpc+tls://127.0.0.1:{served.flight}"
        other = self_signed("eve")
        for said in ({}, {"cert_chain": other.chain, "private_key": other.key}):
            stranger = flight.FlightClient(place, tls_root_certs=made.chain, **said)
            before = resident_mb(served)
            with pytest.raises(flight.FlightUnavailableError):
                stranger.get_flight_info(flight.FlightDescriptor.for_command(bytes(100_000_000)))
            assert resident_mb(served) < before + 50
    finally:
        assert served.stop() == 0


def resident_mb(served: Served) -> float:
    """The most memory that it had until now."""
    text = Path(f"/proc/{served.process.pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("VmHWM"))


def test_an_issuer_of_certificates_goes_with_encrypted_connections(register: Path, tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("nothing")
    run = lambda *told: CliRunner().invoke(app, ["serve", str(register), "--flight-client-ca", *told])  # noqa: E731
    assert "goes with --flight-port" in run(str(tmp_path / "none.pem")).output
    assert "goes with --flight-port" in run(str(tmp_path / "none.pem"), "--flight-port", "0").output
    told = ("--flight-port", "0", "--host", "0.0.0.0")
    assert "not a certificate" in run(str(tmp_path / "none.pem"), *told).output
    assert "No such file" in run(str(tmp_path / "away.pem"), *told).output


def test_memory_stays_within_bounds(serve: Callable[..., Served]) -> None:
    served = serve("--flight-port", "0", "--memory", "500MB")
    plain = Plain(served)
    plain.rows(plain.info("SELECT * FROM numbers")).read_all()
    before = _peak(served)
    rows = 0
    reader = plain.rows(plain.info("SELECT a.n, b.n AS m FROM numbers a, (SELECT n FROM numbers WHERE n < 100) b"))
    while rows < 20_000_000:
        rows += reader.read_chunk().data.num_rows
    assert _peak(served) - before < 250_000  # kB, for a result of 320 MB


def _peak(served: Served) -> int:
    text = Path(f"/proc/{served.process.pid}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0])


def test_stopping_does_not_wait_for_those_who_do_not_read(serve: Callable[..., Served]) -> None:
    served = serve("--flight-port", "0", grace=1.0)
    code = (
        "import sys, time; sys.path[:0] = sys.argv[1:]; from test_flight import *\n"
        "from pathlib import Path\n"
        f"served = Served(None, {served.port}, Path('.'), Path('.'), flight={served.flight})\n"
        "plain = Plain(served); reader = plain.rows(plain.info(LONG)); reader.read_chunk()\n"
        "print('stuck', flush=True); time.sleep(600)"
    )
    folders = [Path(__file__).parent, Path(__file__).parents[1]]
    client = subprocess.Popen([sys.executable, "-c", code, *folders], stdout=subprocess.PIPE)
    try:
        assert client.stdout is not None
        assert client.stdout.readline() == b"stuck\n"
        client.send_signal(signal.SIGSTOP)
        assert served.stop() == 0
    finally:
        client.kill()
        client.wait()
        assert client.stdout is not None
        client.stdout.close()
    assert served.asked()[-1]["verdict"] == "abandoned"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_command_or_refused(data: bytes) -> None:
    for given_bytes in (data, named("CommandGetTables") + data, named("CommandGetSqlInfo", (1, data))):
        try:
            command(given_bytes)
        except BadMessage as problem:
            assert str(problem)


def prepared(plain: Plain, sql: bytes) -> bytes:
    (made,) = plain.act("CreatePreparedStatement", named("ActionCreatePreparedStatementRequest", (1, sql)))
    handle = inside(made, "ActionCreatePreparedStatementResult").data(1)
    assert handle is not None
    return handle


def give(plain: Plain, handle: bytes, size: int) -> None:
    """A value of so many bytes for the parameter of a prepared question."""
    asked = flight.FlightDescriptor.for_command(named("CommandPreparedStatementQuery", (1, handle)))
    batch = pyarrow.record_batch({"1": ["x" * size]})
    writer, told = plain.client.do_put(asked, batch.schema, plain.options)
    with writer:
        writer.write_batch(batch)
        writer.done_writing()
        told.read()


def filled(plain: Plain) -> int:
    """How many questions with a value of 900 kB each can be kept."""
    for number in range(20):
        try:
            give(plain, prepared(plain, b"SELECT $1::text AS a%d" % number), 900_000)
        except flight.FlightError as problem:
            assert "too large prepared statements" in str(problem)
            return number
    return 20


def test_what_a_session_keeps_has_bounds(serve: Callable[..., Served]) -> None:
    """As much as at the other door: 8 MB each, and together no more than the connections of a user may."""
    served = serve("--flight-port", "0", "--user-connections", "2")
    plain, long = Plain(served), b"SELECT '" + b"x" * 95_000 + b"' AS a"
    assert filled(plain) == 8
    kept = [prepared(plain, long) for _ in range(8)]
    with pytest.raises(flight.FlightError, match="too large prepared statements"):
        prepared(plain, long)
    plain.act("ClosePreparedStatement", named("ActionClosePreparedStatementRequest", (1, kept[0])))
    again = prepared(plain, long)
    for _ in range(20):  # what comes takes the place of what was there
        give(plain, again, 10)
    assert [filled(Plain(served)) for _ in range(2)] == [8, 0]
    assert filled(Plain(served, "bob")) == 8
    plain.act("CloseSession")
    assert filled(Plain(served)) == 8


@pytest.mark.parametrize(
    "value",
    [pyarrow.array([10**8], pyarrow.date32()), pyarrow.array([2**62], pyarrow.timestamp("s"))],
    ids=["date", "timestamp"],
)
def test_a_value_that_is_none_here_is_a_clean_error(plain: Plain, value: Any) -> None:
    asked = flight.FlightDescriptor.for_command(
        named("CommandPreparedStatementQuery", (1, prepared(plain, b"SELECT $1 AS a")))
    )
    batch = pyarrow.record_batch({"1": value})
    writer, _ = plain.client.do_put(asked, batch.schema, plain.options)
    writer.write_batch(batch)
    writer.done_writing()
    with pytest.raises(flight.FlightError, match="too large for its type"):
        writer.close()


def test_a_high_number_of_a_parameter_costs_nothing(plain: Plain) -> None:
    """It took half a minute, and the memory of the catalog of all users of the role."""
    for number in range(20):
        assert prepared(plain, b"SELECT $65535::int, %d" % number)
    (made,) = plain.act(
        "CreatePreparedStatement",
        named("ActionCreatePreparedStatementRequest", (1, b"SELECT $2::int AS a, $1::text AS b, $3::int AS c")),
    )
    schema = inside(made, "ActionCreatePreparedStatementResult").data(3)
    assert schema is not None
    fields = pyarrow.ipc.read_schema(pyarrow.py_buffer(schema))
    assert [(field.name, str(field.type)) for field in fields] == [("1", "string"), ("2", "int32"), ("3", "int32")]


def test_a_client_that_is_killed_while_it_asks_for_the_columns_of_a_pivot(served: Served) -> None:
    """Nobody waits any more for the question that is asked for them."""
    code = (
        "import sys, pyarrow.flight as flight\n"
        "from sdcduck.gateway.flight.messages import named\n"
        f"client = flight.FlightClient('grpc://127.0.0.1:{served.flight}')\n"
        f"options = flight.FlightCallOptions(headers=[client.authenticate_basic_token('ann', {PASSWORD!r})])\n"
        f"body = named('ActionCreatePreparedStatementRequest', (1, {PIVOT!r}))\n"
        "list(client.do_action(('CreatePreparedStatement', body), options))\n"
    )
    before, working = len(served.asked()), served.at_work()
    client = subprocess.Popen([sys.executable, "-c", code])
    wait_for(working)
    client.kill()
    client.wait()
    wait_for(lambda: len(served.asked()) > before + 1)
    assert [line["verdict"] for line in served.asked()[before:]] == ["abandoned", "SDC091"]


def test_who_prepares_has_a_seat(serve: Callable[..., Served]) -> None:
    """For the columns of a PIVOT a question is asked, which runs like any other."""
    served = serve("--flight-port", "0", "--user-connections", "1", "--seconds", "4")
    plain = Plain(served)
    with ThreadPoolExecutor(2) as pool:
        working = served.at_work()
        slow = pool.submit(prepared, plain, PIVOT)
        wait_for(working)
        with pytest.raises(flight.FlightUnavailableError, match="too many connections"):
            prepared(plain, b"SELECT 1 AS a")
        with pytest.raises(flight.FlightTimedOutError, match="SDC091"):
            slow.result()
    assert prepared(plain, b"SELECT 1 AS a")


def test_an_answer_is_taken_by_one_of_those_who_come_at_once() -> None:
    answer: Any = None
    running = Running(answer, "token", 1.0, 0.0, lambda: None)
    assert not running.taken
    with ThreadPoolExecutor(8) as readers:
        first = list(readers.map(lambda _: running.take(), range(64)))
    assert first.count(True) == 1
    assert running.taken
