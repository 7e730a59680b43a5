"""Records as they are, for custodians of a gateway that was started so; and for nobody else, whatever is sent."""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served_gateway import PASSWORD, Served, start
from typer.testing import CliRunner

import sdcduck
from sdcduck.cli import app
from sdcduck.gateway.flight.messages import named

psycopg = pytest.importorskip("psycopg")
RECORDS = "SELECT * FROM people"
SECRET = "the secret that is stored with the data"


@pytest.fixture(scope="module")
def file(register: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The register, with a custodian, a stored secret, and a view and a macro that look where nobody should."""
    path = tmp_path_factory.mktemp("raw") / "register.duckdb"
    shutil.copy(register, path)
    with sdcduck.connect(path) as con:
        sdcduck.set_secret(con, SECRET, store=True)
        con.execute(f"FROM sdc_create_user('carla', '{PASSWORD}', role := 'custodian')").fetchall()
        con.execute("CREATE VIEW logins AS SELECT * FROM sdc.users")
        con.execute("CREATE MACRO stored() AS (SELECT value FROM sdc.settings WHERE name = 'secret')")
        con.execute("CREATE MACRO verifiers() AS TABLE SELECT verifier FROM sdc.users")
        con.execute("CREATE SCHEMA other")
        con.execute("CREATE TABLE other.hidden AS SELECT 1 AS a")
    return path


@pytest.fixture(scope="module")
def raw(file: Path) -> Iterator[Served]:
    """A gateway that shows custodians the records."""
    running = start(file, file.with_name("raw"), "--custodian-raw", "--flight-port", "0", "--user-connections", "100")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def both(raw: Served) -> Iterator[tuple[Any, Any]]:
    """The custodian at both doors."""
    with connected(raw, "carla") as con, flight_connected(raw, "carla") as other, other.cursor() as cursor:
        yield con, cursor


def connected(served: Served, user: str, **changed: Any) -> Any:
    return psycopg.connect(**{**served.options, "user": user, "autocommit": True, **changed})


def flight_connected(served: Served, user: str, host: str = "127.0.0.1") -> Any:
    adbc = pytest.importorskip("adbc_driver_flightsql.dbapi")
    return adbc.connect(f"grpc://{host}:{served.flight}", db_kwargs={"username": user, "password": PASSWORD})


class TestCustodian:
    def test_records_are_shown_and_written_down(self, raw: Served, file: Path) -> None:
        with sdcduck.connect(file, read_only=True) as con:
            expected = con.execute("SELECT * FROM people WHERE person_id < 4 ORDER BY ALL").fetchall()
        with connected(raw, "carla") as con:
            before = len(raw.asked())
            sql = "SELECT * FROM people WHERE person_id < 4 ORDER BY person_id"
            assert con.execute(sql).fetchall() == expected
            assert con.execute("SELECT max(income), min(income) FROM people").fetchone() == (4999, 1001)
            assert con.execute("SELECT * FROM secrets").fetchall() == [(42,)]  # no policy opens it to others
        lines = raw.asked()[before:]
        assert [(line["user"], line["role"], line["verdict"], line["rows"], line["methods"]) for line in lines] == [
            ("carla", "custodian", "answered", rows, ["raw"]) for rows in (3, 1, 1)
        ]
        assert [line["tables"] for line in lines] == [["people"], ["people"], ["secrets"]]

    def test_the_login_says_so(self, raw: Served) -> None:
        told: list[str] = []
        entered = raw.events.read_text().count('"raw": true')
        for user in ("carla", "ann"):
            con = psycopg.pq.PGconn.connect_start(
                f"host=127.0.0.1 port={raw.port} user={user} password='{PASSWORD}' dbname=register".encode()
            )
            con.notice_handler = lambda result: told.append(
                result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY)
            )
            while con.connect_poll() not in (psycopg.pq.PollingStatus.OK, psycopg.pq.PollingStatus.FAILED):
                pass
            assert con.status == psycopg.pq.ConnStatus.OK
            con.finish()
        assert [text.decode()[:11] for text in told] == ["raw records"]
        assert raw.events.read_text().count('"raw": true') == entered + 1
        assert "raw records for carla\n" in raw.events.read_text()

    def test_the_catalog_shows_what_there_is(self, raw: Served) -> None:
        columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'people' ORDER BY 1"
        tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
        about = "SELECT obj_description('people'::regclass)"
        with connected(raw, "carla") as con:
            assert [name for (name,) in con.execute(columns)] == [
                "age", "income", "person_id", "record_key", "region", "sex",
            ]  # fmt: skip
            assert [name for (name,) in con.execute(tables)] == ["kinds", "made_up", "numbers", "people", "secrets"]
            assert con.execute(about).fetchone() == ("raw: the records as they are",)
        with connected(raw, "ann") as con:
            assert "record_key" not in [name for (name,) in con.execute(columns)]
            assert [name for (name,) in con.execute(tables)] == ["kinds", "numbers", "people"]

    def test_lists_have_all_tables_and_no_view(self, both: tuple[Any, Any]) -> None:
        """A view may look into the catalog, where the secret and the users are: so none is there, at either door."""
        con, cursor = both
        there = ["kinds", "made_up", "numbers", "people", "secrets"]
        lists = {
            "SHOW TABLES": there,
            "SELECT table_name FROM duckdb_tables() ORDER BY 1": there,
            "SELECT DISTINCT table_name FROM duckdb_columns() ORDER BY 1": there,
            "SELECT view_name FROM duckdb_views()": [],
        }
        for sql, expected in lists.items():
            cursor.execute(sql)
            for found in (con.execute(sql).fetchall(), cursor.fetchall()):
                assert [row[0] for row in found] == expected, sql

    def test_over_arrow_flight_too(self, raw: Served) -> None:
        with flight_connected(raw, "carla") as con, con.cursor() as cursor:
            reader = cursor.execute(f"{RECORDS} WHERE person_id = ?", (7,)).fetch_record_batch()
            assert reader.schema.metadata[b"sdcduck.notice"].startswith(b"raw records")
            (row,) = reader.read_all().to_pylist()
            assert (row["person_id"], row["income"]) == (7, 4433)
            assert "record_key" in con.adbc_get_table_schema("people").names
        assert (raw.asked()[-1]["user"], raw.asked()[-1]["methods"]) == ("carla", ["raw"])

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT * FROM sdc.users", "SELECT verifier FROM users", 'SELECT * FROM "sdc"."users"', "FROM register.sdc.users",
            "SELECT * FROM public.users", "SELECT * FROM main.users", "SELECT * FROM sdc.settings", "SELECT * FROM settings",
            "SELECT * FROM sdc.policies", "SELECT * FROM logins", "SELECT * FROM main.logins", "SELECT stored()",
            "FROM verifiers()", "SELECT * FROM other.hidden", "SELECT * FROM hidden", "SELECT (SELECT verifier FROM sdc.users)",
            "SELECT * FROM people WHERE region IN (SELECT verifier FROM sdc.users)", "FROM query('FROM sdc.users')",
            "FROM query_table('sdc.users')", "FROM query_table(['sdc.users'])", "SELECT * FROM duckdb_settings()",
            "SELECT * FROM duckdb_secrets()", "FROM pragma_storage_info('people')",
            "WITH u AS (FROM sdc.users) FROM u", "SELECT * FROM people UNION ALL FROM sdc.users", "FROM sdc_users()",
            "SELECT sdc_record_key('x')", "SELECT getenv('HOME')",
            "FROM read_csv('/etc/passwd')", "FROM '/etc/passwd'", "FROM read_text('/etc/passwd')", "FROM glob('/*')",
            "FROM read_parquet('http://localhost/x')", "SELECT * FROM 'register.duckdb'", "FROM sqlite_master",
            "INSERT INTO people SELECT * FROM people", "DELETE FROM people", "UPDATE people SET income = 0", "DROP TABLE people",
            "CREATE TABLE copied AS FROM people", "CREATE TEMP TABLE t AS FROM people", "COPY people TO '/tmp/copied.csv'",
            "COPY (SELECT 1) TO PROGRAM 'cat'", "COPY people FROM '/etc/passwd'", "ATTACH '/tmp/x.duckdb'", "LOAD httpfs",
            "INSTALL httpfs", "SET memory_limit = '1GB'", "PRAGMA database_list", "CALL pragma_version()", "USE sdc",
            "SET search_path = 'sdc'; SELECT * FROM users", "EXPORT DATABASE '/tmp/x'", "SELECT nextval('x')",
            "SELECT * FROM people; SELECT * FROM sdc.users", "SELECT 1 INTO x",
        ],
    )  # fmt: skip
    def test_only_questions_about_tables(self, both: tuple[Any, Any], sql: str) -> None:
        con, cursor = both
        with pytest.raises(psycopg.Error) as refused:
            con.execute(sql)
        with pytest.raises(Exception, match=r"SDC0|FlightSQL") as also:
            cursor.execute(sql).fetchall()
        for told in (str(refused.value), str(also.value)):
            assert not any(secret in told for secret in (SECRET, "SCRAM-SHA-256", PASSWORD))
        assert con.execute("SELECT count(*) FROM people").fetchone() == (3000,)

    def test_search_paths_lead_nowhere(self, raw: Served) -> None:
        for way in ("SET search_path TO sdc", "SET search_path = 'sdc, main'", "SET schema = 'sdc'"):
            with connected(raw, "carla") as con:
                try:
                    con.execute(way)
                except psycopg.Error as refused:
                    assert refused.sqlstate in ("42704", "42601", "22023", "55P02", "0A000"), way
                with pytest.raises(psycopg.Error, match="SDC020"):
                    con.execute("SELECT * FROM users")

    def test_refusals_are_written_down(self, raw: Served) -> None:
        with connected(raw, "carla") as con, pytest.raises(psycopg.Error, match="SDC020"):
            con.execute("SELECT * FROM sdc.users")
        with connected(raw, "carla") as con, pytest.raises(psycopg.Error, match="only questions"):
            con.execute("DELETE FROM people")
        lines = raw.asked()[-2:]
        assert [(line["user"], line["verdict"], line["methods"]) for line in lines] == [
            ("carla", "SDC020", ["raw"]), ("carla", "SDC004", ["raw"]),
        ]  # fmt: skip


class TestAnalyst:
    """Ann knows her own password, the name of the custodian, and this source."""

    @pytest.mark.parametrize(
        "way",
        [
            "SET ROLE custodian", "SET ROLE 'custodian'", "SET role = custodian", "SET role TO 'custodian'", "set RoLe = CUSTODIAN",
            "SET LOCAL ROLE custodian", "SET SESSION AUTHORIZATION carla", "SET SESSION AUTHORIZATION 'carla'",
            "SET session_authorization = 'carla'", "SET LOCAL SESSION AUTHORIZATION carla", "RESET ROLE",
            "RESET SESSION AUTHORIZATION", "SELECT set_config('role', 'custodian', false)", "SET is_superuser = on",
            "SELECT set_config('session_authorization', 'carla', true)", "DISCARD ALL", "SET raw = true", "SET sdcduck.raw = on",
            "SET row_security = off", "GRANT custodian TO ann", "ALTER ROLE ann SET role custodian", "SET user = 'carla'",
            "BEGIN; SET LOCAL role = custodian", "SET application_name = 'carla'", "FROM sdc_create_user('ann', 'x', role := 'custodian')",
        ],
    )  # fmt: skip
    def test_no_statement_makes_a_custodian(self, raw: Served, way: str) -> None:
        with connected(raw, "ann") as con:
            with contextlib.suppress(psycopg.Error):
                con.execute(way)
            con.execute("ROLLBACK")
            self._sees_nothing(raw, con)

    @pytest.mark.parametrize(
        "startup",
        [
            {"options": "-c role=custodian"}, {"options": "-c session_authorization=carla"}, {"options": "-crole=CUSTODIAN"},
            {"options": "--role=custodian --session-authorization=carla"}, {"options": "-c custodian_raw=on -c raw=true"},
            {"options": "-c user=carla"}, {"options": "-c is_superuser=on"}, {"application_name": "custodian"},
            {"dbname": "carla"}, {"dbname": "sdc"}, {"dbname": "user=carla"}, {"options": "-c search_path=sdc"},
        ],
    )  # fmt: skip
    def test_no_start_makes_a_custodian(self, raw: Served, startup: dict[str, str]) -> None:
        with connected(raw, "ann", **startup) as con:
            self._sees_nothing(raw, con)

    def test_no_other_name_is_that_of_the_custodian(self, raw: Served) -> None:
        # The password is the same for all users of the tests: it is the name that must not fit.
        for name in ("Carla", "CARLA", "carla ", " carla", '"carla"', "custodian", "çarla", "carla\u200b"):
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                connected(raw, name)
            connected(raw, "ann").close()  # or those who fail have to wait

    def test_what_a_custodian_prepared_is_not_there(self, raw: Served) -> None:
        with connected(raw, "carla") as custodian, connected(raw, "ann") as con:
            custodian.pgconn.prepare(b"p", RECORDS.encode())
            assert custodian.pgconn.exec_prepared(b"p", []).ntuples == 3000
            custodian.execute("BEGIN")
            custodian.execute(f"DECLARE c CURSOR WITH HOLD FOR {RECORDS}")
            for result in (con.pgconn.exec_prepared(b"p", []), con.pgconn.describe_prepared(b"p"),
                           con.pgconn.describe_portal(b"c")):  # fmt: skip
                assert result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) in (b"26000", b"34000")
            for sql in ("FETCH ALL FROM c", "EXECUTE p", "EXECUTE p()", "CLOSE c", "DEALLOCATE p"):
                with pytest.raises(psycopg.Error):
                    con.execute(sql)
            # The same text, after the custodian's answer: nothing that was remembered of it is Ann's.
            self._sees_nothing(raw, con)
            assert custodian.execute("FETCH 1 FROM c").fetchone() is not None

    def test_what_a_custodian_asked_over_flight_is_not_there(self, raw: Served) -> None:
        pyarrow, flight = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.flight")
        client = flight.FlightClient(f"grpc://127.0.0.1:{raw.flight}")
        own, others = (
            flight.FlightCallOptions(headers=[client.authenticate_basic_token(user, PASSWORD)])
            for user in ("carla", "ann")
        )
        question = flight.FlightDescriptor.for_command(named("CommandStatementQuery", (1, RECORDS.encode())))
        info = client.get_flight_info(question, own)
        with pytest.raises(flight.FlightServerError, match="no such answer"):
            client.do_get(info.endpoints[0].ticket, others).read_all()
        with pytest.raises(flight.FlightError, match="SDC040"):
            client.get_flight_info(question, others)
        with pytest.raises(pyarrow.ArrowException, match="SDC040"):
            client.get_schema(question, others)
        assert client.do_get(info.endpoints[0].ticket, own).read_all().num_rows == 3000

    def test_over_flight_she_sees_nothing(self, raw: Served) -> None:
        with flight_connected(raw, "ann") as con, con.cursor() as cursor:
            with pytest.raises(Exception, match="SDC040"):
                cursor.execute(RECORDS)
            with pytest.raises(Exception, match="SDC020"):
                cursor.execute("SELECT * FROM secrets")
            assert "record_key" not in con.adbc_get_table_schema("people").names

    def _sees_nothing(self, served: Served, con: Any) -> None:
        for sql, code in ((RECORDS, "SDC040"), ("SELECT max(income) FROM people", "SDC0"),
                          ("SELECT * FROM secrets", "SDC020"), ("SELECT record_key FROM people", "SDC0")):  # fmt: skip
            with pytest.raises(psycopg.Error, match=code):
                con.execute(sql)
        assert con.execute("SELECT current_user").fetchone() == ("ann",)
        assert served.asked()[-1]["role"] == "analyst"
        assert served.asked()[-1]["methods"] == []


class TestConfigured:
    def test_without_the_option_a_custodian_is_a_user_like_any_other(self, file: Path, tmp_path: Path) -> None:
        served = start(file, tmp_path)
        try:
            with connected(served, "carla") as con:
                with pytest.raises(psycopg.Error, match="SDC040"):
                    con.execute(RECORDS)
                assert con.execute("SELECT count(*) FROM people WHERE age > 30").fetchone() is not None
            assert served.asked()[-1]["methods"] == ["cell_key"]
        finally:
            served.stop()

    @pytest.mark.parametrize(
        ("role", "options", "why"),
        [
            ("custodian", [], "goes with --log"),
            ("analyst", ["--log"], "no user has the role 'custodian'"),
            ("Custodian", ["--log"], "has the role 'Custodian'"),
            (" custodian", ["--log"], "has the role ' custodian'"),
        ],
    )
    def test_it_begins_only_where_it_is_clear_who_sees_what(
        self, tmp_path: Path, role: str, options: list[str], why: str
    ) -> None:
        path = tmp_path / "small.duckdb"
        with sdcduck.connect(path) as con:
            con.execute("CREATE TABLE t AS SELECT 1 AS a")
            con.execute("FROM sdc_declare_public('t')").fetchall()
            con.execute(f"FROM sdc_create_user('dora', '{PASSWORD}', role := '{role}')").fetchall()
        log = [str(tmp_path / "log.jsonl")] if options else []
        result = CliRunner().invoke(app, ["serve", str(path), "--port", "0", "--custodian-raw", *options, *log])
        assert result.exit_code == 1
        assert why in " ".join(result.output.split())

    def test_never_where_others_could_listen(self, file: Path, tmp_path: Path) -> None:
        address = _address()
        served = start(file, tmp_path, "--custodian-raw", "--host", "0.0.0.0", "--no-tls", "--flight-port", "0")
        try:
            with connected(served, "ann", host=address) as con:
                assert con.execute("SELECT 1").fetchone() == (1,)
            with pytest.raises(psycopg.OperationalError, match="encrypted connections only"):
                connected(served, "carla", host=address)
            with connected(served, "carla") as con:  # on the machine itself
                assert con.execute(f"{RECORDS} LIMIT 1").fetchone() is not None
            for host in (address, "127.0.0.1"):  # this door cannot tell
                with flight_connected(served, "ann", host) as con, con.cursor() as cursor:
                    assert cursor.execute("SELECT 1").fetchall() == [(1,)]
                with pytest.raises(Exception, match="encrypted connections only"):
                    flight_connected(served, "carla", host)
            assert served.told("refused") >= 3
        finally:
            served.stop()

    def test_encrypted_from_elsewhere(self, file: Path, tmp_path: Path) -> None:
        pytest.importorskip("cryptography")
        address = _address()
        served = start(file, tmp_path, "--custodian-raw", "--host", "0.0.0.0")
        try:
            with connected(served, "carla", host=address, sslmode="require") as con:
                assert con.execute("SELECT count(*) FROM people").fetchone() == (3000,)
        finally:
            served.stop()


def _address() -> str:
    """An address of this machine that is not only its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("a machine without a network")
        address: str = sock.getsockname()[0]
    if address.startswith("127."):
        pytest.skip("a machine without a network")
    return address
