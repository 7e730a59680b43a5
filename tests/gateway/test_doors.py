"""Who comes in and how they leave: passwords, TLS, limits, cancel requests, bad bytes, the end."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from served_gateway import PASSWORD, SLOW, Served, wait_for
from typer.testing import CliRunner

import sdcduck
from sdcduck.catalog.audit_reading import verify_log
from sdcduck.catalog.passwords import read_verifier, verifier
from sdcduck.cli import app
from sdcduck.gateway.postgres.scram import Exchange, LoginFailed
from sdcduck.gateway.throttle import Throttle, TooManyFailures

psycopg = pytest.importorskip("psycopg")
QUERY = "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region"


def connected(served: Served, **changed: Any) -> Any:
    return psycopg.connect(**{**served.options, **changed})


def raw(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), timeout=30)


def everything(sock: socket.socket) -> bytes:
    """What comes until the gateway closes the connection."""
    parts = []
    while True:
        try:
            data = sock.recv(65_536)
        except ConnectionResetError:
            break
        if not data:
            break
        parts.append(data)
    return b"".join(parts)


STARTUP = struct.pack("!i", 4 + 4 + len(b"user\0ann\0\0")) + struct.pack("!i", 3 << 16) + b"user\0ann\0\0"


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0\0\0\x04",
        struct.pack("!ii", 8, 7 << 16),
        struct.pack("!i", 2**31 - 1) + b"\0" * 100,
        STARTUP + b"Q\0\0\0\x0dSELECT 1\0",
        STARTUP + b"p\0\0\0\x09x\0\0\0\0\x7f",
        STARTUP + b"p" + struct.pack("!i", 1_000_000),
        STARTUP + b"\xff\xff\xff\xff\xff\xff",
        struct.pack("!ii", 8, 80877104) + b"\0\0\0\x01",
    ],
)
def test_bad_bytes_end_one_connection_and_no_other(served: Served, data: bytes) -> None:
    with connected(served) as con, raw(served) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        answer = everything(sock)
        assert b"SFATAL" in answer or answer[:1] in (b"", b"R", b"N")
        assert con.execute("SELECT 1").fetchone() == (1,)


def test_half_a_message_is_no_message(served: Served) -> None:
    left = served.told("left")
    with raw(served) as sock:
        sock.sendall(STARTUP[:7])
    with connected(served) as con:
        assert con.execute("SELECT 1").fetchone() == (1,)
    wait_for(lambda: served.told("left") > left)


def test_a_cancel_request_with_a_wrong_key_stops_nothing(served: Served) -> None:
    with connected(served) as con:
        process = con.info.backend_pid
        con.pgconn.send_query(b"SELECT count(*) FROM numbers a JOIN numbers b ON a.n = b.n + 1")
        for key in (0, 1, -1):
            with raw(served) as sock:
                sock.sendall(struct.pack("!iiii", 16, 80877102, process, key))
                assert everything(sock) == b""
        con.pgconn.get_result()
        while con.pgconn.get_result() is not None:
            pass
        assert con.execute("SELECT 1").fetchone() == (1,)


def test_what_is_secret_is_nowhere(served: Served, register: Path) -> None:
    with connected(served) as con:
        con.execute(QUERY).fetchall()
        assert (served.asked()[-1]["user"], served.asked()[-1]["role"]) == ("ann", "analyst")
        found = con.execute("SELECT rolname FROM pg_roles").fetchall()
        assert ("ann",) in found
        assert con.execute("SELECT rolpassword FROM pg_authid").fetchall() == []
    for file in (served.events, served.log, register):
        assert PASSWORD.encode() not in file.read_bytes()


def test_the_system_catalog_has_no_data_and_no_way_out(served: Served) -> None:
    with connected(served) as con:
        con.autocommit = True
        for query in (
            "SELECT * FROM pg_catalog.pg_class, read_csv('/etc/passwd')",
            "SELECT getenv('HOME'), version()",
            "SELECT current_setting('memory_limit'), (SELECT count(*) FROM secrets)",
            "SELECT * FROM pg_class, duckdb_settings()",
            "SELECT * FROM sdc.users",
            "SELECT * FROM sdc.policies, pg_class",
            "SELECT verifier FROM users",
            "SELECT * FROM query('SELECT 1'), pg_class",
        ):
            with pytest.raises(psycopg.Error):
                con.execute(query)
        names = [row[0] for row in con.execute("SELECT table_name FROM information_schema.tables").fetchall()]
        assert sorted(names) == ["kinds", "numbers", "people"]


def test_describing_asks_nothing(served: Served) -> None:
    with connected(served) as con:
        before = len(served.asked())
        con.pgconn.prepare(b"p", b"SELECT region, count(*) FROM people WHERE age > $1 GROUP BY region")
        described = con.pgconn.describe_prepared(b"p")
        assert (described.nfields, described.nparams, described.param_type(0)) == (2, 1, 23)
        assert len(served.asked()) == before
        con.pgconn.exec_prepared(b"p", [b"30"])
        assert len(served.asked()) == before + 1


def test_describing_what_is_asked_next_asks_once(served: Served) -> None:
    """As JDBC does: all in one, without waiting for the columns."""
    with connected(served) as con:
        before = len(served.asked())
        texts = ["SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY 1", "SELECT n FROM numbers LIMIT 40000",
                 "SELECT region FROM people", "SELECT 1 AS one", "SELECT n FROM numbers WHERE false"]  # fmt: skip
        found = []
        for text in texts:
            result = con.pgconn.exec_params(text.encode(), None)
            names = [result.fname(place) for place in range(result.nfields)]
            found.append((result.ntuples, names, result.error_message[8:14]))
        assert found[0][1:] == ([b"region", b"n"], b"")
        assert found[1:] == [(40_000, [b"n"], b""), (0, [], b"SDC040"), (1, [b"one"], b""), (0, [b"n"], b"")]
    assert [(line["query"], line["verdict"]) for line in served.asked()[before:]] == [
        (text, "SDC040" if "FROM people" in text and "count" not in text else "answered") for text in texts
    ]


def test_what_is_refused_before_it_is_asked_is_written_down(served: Served) -> None:
    with connected(served) as con:
        before = len(served.asked())
        con.pgconn.prepare(b"p", b"SELECT person_id FROM people WHERE age > $1")
        assert b"SDC040" in con.pgconn.describe_prepared(b"p").error_message
        hidden = b"DROP" + b" " * 200 + b"TABLE people"
        for changes in (b"DELETE FROM people", b"COPY people FROM STDIN", hidden):
            assert con.pgconn.exec_(changes).status == psycopg.pq.ExecStatus.FATAL_ERROR
    lines = [(line["query"], line["user"], line["verdict"], line["rows"]) for line in served.asked()[before:]]
    assert lines == [
        ("SELECT person_id FROM people WHERE age > $1", "ann", "SDC040", 0),
        ("DELETE FROM people", "ann", "SDC004", 0), ("COPY people FROM STDIN", "ann", "SDC004", 0),
        (hidden.decode(), "ann", "SDC004", 0),
    ]  # fmt: skip


def test_who_asks_for_the_columns_of_a_pivot_can_stop(served: Served) -> None:
    """They are values, for which another question is asked: as long as the client lets it run, and waits for it."""
    pivot = f"PIVOT ({SLOW.replace('count(*)', 'a.n % 3 AS k')}) ON k USING count(*)"
    with connected(served) as con:
        con.pgconn.prepare(b"p", pivot.encode())
        before = len(served.asked())
        stop, working = con.pgconn.get_cancel(), served.at_work()
        con.pgconn.send_describe_prepared(b"p")
        wait_for(working)

        def over() -> bool:
            stop.cancel()
            con.pgconn.consume_input()
            return not con.pgconn.is_busy()

        wait_for(over)
        assert b"canceling statement" in con.pgconn.get_result().error_message
        assert con.pgconn.get_result() is None
        assert [line["verdict"] for line in served.asked()[before:]] == ["abandoned", "SDC091"]
        con.pgconn.exec_(b"SET statement_timeout = '200ms'")
        assert b"SDC091" in con.pgconn.describe_prepared(b"p").error_message


def test_a_question_that_needs_too_much_memory_has_a_clear_error(serve: Callable[..., Served]) -> None:
    served = serve("--memory", "200MB")
    with connected(served) as con:
        con.autocommit = True
        for question in (
            "SELECT length(list(a.n)) AS n FROM numbers a JOIN numbers b ON a.n * 0 = b.n * 0",
            # after the first rows
            "SELECT n FROM numbers UNION ALL SELECT length(list(a.n)) FROM numbers a JOIN numbers b ON a.n * 0 = b.n * 0",
        ):
            with pytest.raises(psycopg.errors.OutOfMemory, match="SDC094"):
                con.execute(question).fetchall()
            assert con.execute("SELECT count(*) FROM kinds").fetchone() == (1,)
    assert served.stop() == 0
    assert "Traceback" not in served.events.read_text()


def test_limits_of_a_user(serve: Callable[..., Served]) -> None:
    served = serve("--user-connections", "2", "--rows", "1000", "--seconds", "2")
    with connected(served) as con:
        con.autocommit = True
        with connected(served), pytest.raises(psycopg.OperationalError, match="too many connections"):
            connected(served)
        with pytest.raises(psycopg.Error, match="SDC093"):
            con.execute("SELECT * FROM numbers")
        assert con.execute("SELECT count(*) FROM kinds").fetchone() == (1,)
        with pytest.raises(psycopg.errors.QueryCanceled, match="SDC091"):
            con.execute(SLOW)
        con.execute("SET statement_timeout = '100ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            con.execute(SLOW)


def test_stopping_lets_queries_end_and_tells_the_others(serve: Callable[..., Served]) -> None:
    served = serve()
    with connected(served) as con:
        con.execute(QUERY).fetchall()
        assert served.stop() == 0
        with pytest.raises(psycopg.OperationalError):
            con.execute(QUERY)
    assert verify_log(served.log)[0] == 1


def test_tls_made_for_the_occasion(encrypted: Served) -> None:
    with connected(encrypted, sslmode="require") as con:
        assert con.pgconn.ssl_in_use
        assert con.execute("SELECT 1").fetchone() == (1,)
        assert len(con.execute("SELECT * FROM numbers LIMIT 100000").fetchall()) == 100_000
    with pytest.raises(psycopg.OperationalError, match="encrypted connections only"):
        connected(encrypted, sslmode="disable")
    with pytest.raises(psycopg.OperationalError, match="password"):
        connected(encrypted, sslmode="require", password="wrong password")
    with raw(encrypted) as sock:  # what comes before the handshake is not taken for what came after
        sock.sendall(struct.pack("!ii", 8, 80877103) + STARTUP)
        assert b"bytes before TLS" in everything(sock)
    assert re.search(r"SHA-256 ([0-9a-f]{2}:){31}", encrypted.events.read_text())


def test_a_certificate_that_is_none(register: Path, tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("nothing")
    result = CliRunner().invoke(app, ["serve", str(register), "--tls-cert", str(tmp_path / "cert.pem")])
    assert result.exit_code == 1
    assert "cannot be used" in result.output


def test_users_on_the_command_line(tmp_path: Path) -> None:
    file = str(tmp_path / "f.duckdb")
    sdcduck.connect(file).close()
    run = CliRunner().invoke
    assert run(app, ["user", "add", file, "ann"], env={"SDCDUCK_PASSWORD": "short"}).exit_code == 1
    assert run(app, ["user", "add", file, "ann", "--role", "staff"], input="long enough\n").exit_code == 0
    assert run(app, ["user", "list", file]).output == "ann\tstaff\n"
    assert run(app, ["user", "drop", file, "eve"]).exit_code == 1
    assert run(app, ["user", "drop", file, "ann"]).exit_code == 0
    assert "no users" in run(app, ["serve", file]).output


def test_users_in_sql(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("FROM sdc_create_user('ann', 'long enough', role := 'staff')").fetchall()
    con.execute("FROM sdc_create_user('ann', 'longer still')").fetchall()
    assert con.execute("FROM sdc_users()").fetchall() == [("ann", "analyst")]
    stored = con.execute("SELECT verifier FROM sdc.users").fetchall()[0][0]
    assert stored.startswith("SCRAM-SHA-256$16384:")
    assert "longer" not in stored
    for call in ("sdc_create_user('', 'long enough')", "sdc_create_user('a', 'short')", "sdc_create_user('a', NULL)",
                 "sdc_create_user('a', 'long enough', role := '')", "sdc_drop_user('eve')"):  # fmt: skip
        with pytest.raises(duckdb.Error, match="sdc_"):
            con.execute(f"FROM {call}")


def test_wrong_passwords_cost_more_and_more() -> None:
    throttle, now = Throttle(), 0.0
    waits = []
    for _ in range(10):
        waits.append(throttle.wait("192.0.2.1", "ann", now=now))
        now += waits[-1]
        throttle.failed("192.0.2.1", "ann", now=now)
    assert waits[:3] == [0, 0, 0]
    assert waits[4:] == sorted(waits[4:])
    assert waits[-1] >= 10
    with pytest.raises(TooManyFailures):
        for _ in range(10):  # many at once stand in line
            throttle.wait("192.0.2.1", "eve", now=now)
    assert throttle.wait("192.0.2.2", "ann", now=now) == 0  # nobody locks ann out from elsewhere
    throttle.succeeded("192.0.2.1", "ann")
    assert throttle.wait("192.0.2.1", "ann", now=now) == 0


def test_one_password_does_not_help_to_try_others() -> None:
    """Whoever logs in with the own password between tries at other names waits as others do."""
    throttle, now = Throttle(), 0.0
    for number in range(12):
        throttle.failed("192.0.2.1", f"user{number}", now=now)
        throttle.succeeded("192.0.2.1", "eve")
    assert throttle.wait("192.0.2.1", "bob", now=now) >= 10
    assert throttle.wait("192.0.2.1", "bob", now=now + 20 * 60) == 0  # and with time all is forgotten


def test_an_office_behind_one_address_is_not_locked_out() -> None:
    throttle, now = Throttle(), 0.0
    for number in range(200):  # everybody mistypes twice, and logs in
        for _ in range(2):
            throttle.failed("192.0.2.1", f"user{number}", now=now)
        throttle.succeeded("192.0.2.1", f"user{number}")
    assert throttle.wait("192.0.2.1", "bob", now=now) == 0
    for _ in range(600):  # a program has an old password, and tries every ten seconds
        throttle.failed("192.0.2.1", "program", now=now)
        assert throttle.wait("192.0.2.1", "bob", now=now) <= 1
        now += 10
    assert throttle.wait("192.0.2.1", "program", now=now) >= 10


def test_names_that_are_made_up_are_not_kept_for_ever() -> None:
    """Over Arrow Flight SQL the name is all that is known; whoever tries names there must not slow the others down."""
    throttle = Throttle()
    for number in range(40_000):
        name = f"{number}{'x' * 3000}"
        throttle.failed(f"flight as {name}", name, now=number / 1000)
        if number % 500 == 0:
            throttle.failed("192.0.2.1", "ann", now=number / 1000)
    assert len(throttle._records) <= 20_002
    assert sum(map(len, throttle._records)) < 3_000_000
    assert throttle.wait("192.0.2.1", "ann", now=40) > 0  # who goes on is not forgotten for the sake of these
    assert throttle.wait("192.0.2.1", "eve", now=40) > 0


def test_the_login_of_somebody_unknown_is_like_any_other() -> None:
    first = [Exchange(None, "eve", b"secret").first(b"n,,n=,r=abc").decode().split(",") for _ in range(2)]
    known = Exchange(verifier("long enough"), "ann", b"secret").first(b"n,,n=,r=abc").decode().split(",")
    assert first[0][1:] == first[1][1:]  # the same salt whenever one asks
    assert [len(part) for part in first[0]] == [len(part) for part in known]
    assert first[0][2] == known[2]
    for data in (b"", b"c=biws", b"c=biws,r=abc,p=AAAA", b"\xff\xff", b"c=!,r=x,p=y"):
        with pytest.raises(LoginFailed):
            exchange = Exchange(verifier("long enough"), "ann", b"secret")
            exchange.first(b"n,,n=,r=abc")
            exchange.final(data)


def test_verifiers_are_those_of_the_standard() -> None:
    # RFC 7677, section 3: user "user", password "pencil"; ours are longer, so the keys are made from the parts.
    import base64
    import hashlib
    import hmac

    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    client = hmac.digest(salted, b"Client Key", "sha256")
    said = (b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,"
            b"i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")  # fmt: skip
    signature = hmac.digest(hashlib.sha256(client).digest(), said, "sha256")
    proof = bytes(a ^ b for a, b in zip(client, signature, strict=True))
    assert base64.b64encode(proof) == b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    made = verifier("long enough", salt=salt, iterations=4096)
    assert read_verifier(made.text()) == made
