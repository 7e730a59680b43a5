"""What a gateway meets in its life: crowds, full disks, old certificates, clients that vanish, and being killed."""

from __future__ import annotations

import asyncio
import datetime
import os
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from effort import times
from served_gateway import PASSWORD, Served, start, wait_for
from typer.testing import CliRunner

from sdcduck.catalog.audit_reading import verify_log
from sdcduck.cli import app
from sdcduck.errors import SDCError
from sdcduck.gateway.postgres.server import Gateway, Options
from sdcduck.gateway.serving import open_file
from sdcduck.gateway.serving import serve as serve_clients
from sdcduck.gateway.shared_state import FlightOptions, Limits
from sdcduck.gateway.tls import from_files

psycopg = pytest.importorskip("psycopg")
QUERY = "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region"
LONG = "SELECT a.n, b.n AS m FROM numbers a, numbers b"


def connected(served: Served, **changed: Any) -> Any:
    return psycopg.connect(**{**served.options, **changed}, autocommit=True)


def files_open(served: Served) -> int:
    return len(os.listdir(f"/proc/{served.process.pid}/fd"))


def test_many_logins_one_after_another_and_at_once(serve: Callable[..., Served]) -> None:
    served, many = serve("--user-connections", "30"), times(200, 1000)

    def come_and_go(_: int) -> None:
        connected(served).close()

    come_and_go(0)
    before = files_open(served)
    with ThreadPoolExecutor(8) as clients:
        list(clients.map(come_and_go, range(many)))
    wait_for(lambda: served.told("left") == many + 1)
    assert files_open(served) <= before + 2
    with connected(served) as con:
        assert len(con.execute(QUERY).fetchall()) == 3


_CLIENT = f"""
import sys, time, psycopg
con = psycopg.connect(host="127.0.0.1", port=int(sys.argv[1]), user="ann", password=sys.argv[2], dbname="register")
with con.cursor().copy("COPY ({LONG}) TO STDOUT (FORMAT binary)") as rows:
    for _ in rows:
        print("reading", flush=True)
        time.sleep(600)
"""


@contextmanager
def reading(served: Served) -> Iterator[subprocess.Popen[bytes]]:
    """A client in the middle of COPY."""
    command = [sys.executable, "-c", _CLIENT, str(served.port), PASSWORD]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"reading\n"
        try:
            yield client
        finally:
            client.kill()


def test_a_client_killed_in_the_middle_of_copy(serve: Callable[..., Served]) -> None:
    served = serve("--user-connections", "1")
    with reading(served) as client:
        with pytest.raises(psycopg.OperationalError, match="too many"):
            connected(served)
        client.kill()
        wait_for(lambda: served.told("left") == 1)
    with connected(served) as con:
        assert len(con.execute(QUERY).fetchall()) == 3
    assert [line["verdict"] for line in served.asked()] == ["begun", "abandoned", "answered"]


def test_clients_that_say_nothing_are_sent_away(serve: Callable[..., Served]) -> None:
    flight = pytest.importorskip("pyarrow.flight")
    served = serve("--idle", "5", "--flight-port", "0")
    arrow = flight.FlightClient(f"grpc://127.0.0.1:{served.flight}")
    options = flight.FlightCallOptions(headers=[arrow.authenticate_basic_token("ann", PASSWORD)])
    assert list(arrow.list_actions(options))
    with reading(served) as client, connected(served) as silent:
        client.send_signal(signal.SIGSTOP)  # as one whose cable was pulled: nothing comes, not even an end
        wait_for(lambda: is_sent_away(silent))
        wait_for(lambda: served.told("left") == 3)
        wait_for(lambda: [line["verdict"] for line in served.asked()] == ["begun", "abandoned"])
    with pytest.raises(flight.FlightUnauthenticatedError):
        list(arrow.list_actions(options))


def is_sent_away(con: Any) -> bool:
    """Whether the gateway told a client that it was silent for too long."""
    readable = socket.socket(fileno=os.dup(con.fileno()))
    readable.setblocking(False)
    try:
        return b"57P05" in readable.recv(1000, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    finally:
        readable.close()


def test_a_full_disk_means_no_answers(register: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flight = pytest.importorskip("pyarrow.flight")
    original = subprocess.Popen

    def small_files(*arguments: Any, **options: Any) -> Any:  # what is written ends at so many bytes
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))  # noqa: E731
        return original(*arguments, **options, preexec_fn=limit)

    monkeypatch.setattr(subprocess, "Popen", small_files)
    served = start(register, tmp_path, "--flight-port", "0")
    monkeypatch.undo()
    try:
        with connected(served) as con:
            answers = 0
            with pytest.raises(psycopg.Error, match="SDC092"):
                while answers < 100:
                    con.execute(QUERY).fetchall()
                    answers += 1
            assert answers > 0
            with pytest.raises(psycopg.Error, match="SDC092"):
                con.execute(QUERY)
            assert con.execute("SELECT count(*) FROM pg_class").fetchone() is not None  # the session goes on
        client = flight.FlightClient(f"grpc://127.0.0.1:{served.flight}")
        options = flight.FlightCallOptions(headers=[client.authenticate_basic_token("ann", PASSWORD)])
        from sdcduck.gateway.flight.messages import named

        asked = flight.FlightDescriptor.for_command(named("CommandStatementQuery", (1, QUERY.encode())))
        with pytest.raises(flight.FlightUnavailableError, match="SDC092"):
            client.get_flight_info(asked, options)
        assert verify_log(served.log)[0] == answers
    finally:
        served.stop()


def test_after_a_kill_the_next_gateway_goes_on(serve: Callable[..., Served], register: Path) -> None:
    served = serve()
    with connected(served) as con:
        con.execute(QUERY).fetchall()
    with reading(served):
        served.process.kill()
        served.process.wait()
    assert verify_log(served.log)[0] == 2
    with duckdb.connect(str(register), read_only=True) as file:
        assert file.execute("SELECT count(*) FROM people").fetchall() == [(3000,)]
    again = serve()
    with connected(again) as con:
        assert len(con.execute(QUERY).fetchall()) == 3
    assert [line["verdict"] for line in again.asked()] == ["answered", "begun", "answered"]


def written_certificate(folder: Path, *, days: tuple[int, int]) -> tuple[Path, Path]:
    """Certificate and key in files, good from one day to another, counted from today."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    begin, end = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=day) for day in days)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(7)
        .not_valid_before(begin).not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    chain, secret = folder / "cert.pem", folder / "key.pem"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )  # fmt: skip
    return chain, secret


@pytest.mark.parametrize(("days", "why"), [((-9, -2), "has expired"), ((2, 9), "not valid yet")])
def test_a_certificate_out_of_its_time_is_not_served(
    register: Path, tmp_path: Path, days: tuple[int, int], why: str
) -> None:
    chain, key = written_certificate(tmp_path, days=days)
    with pytest.raises(SDCError, match=why):
        from_files(chain, key)
    result = CliRunner().invoke(app, ["serve", str(register), "--tls-cert", str(chain), "--tls-key", str(key)])
    assert result.exit_code == 1
    assert why in result.output


@contextmanager
def in_this_process(file: Path, folder: Path, options: Options) -> Iterator[int]:
    """The port of a gateway with options that the command line does not have."""
    own = folder / "own.duckdb"  # a process holds a file in one way only
    shutil.copy(file, own)
    opened = open_file(own, Limits(), connections=options.connections)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    served = Gateway(opened, options)
    try:
        yield asyncio.run_coroutine_threadsafe(served.start(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(served.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        opened.close()


@pytest.mark.parametrize(("days", "answered"), [((-2, 9), True), ((-9, -2), False)])
def test_clients_look_at_the_certificate(register: Path, tmp_path: Path, days: tuple[int, int], answered: bool) -> None:
    chain, key = written_certificate(tmp_path, days=days)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # of a gateway that has run for so long
    context.load_cert_chain(chain, key)
    login = {"user": "ann", "password": PASSWORD, "dbname": "own", "sslrootcert": str(chain)}
    with in_this_process(register, tmp_path, Options(port=0, tls=context, tls_required=True)) as port:
        if answered:
            with psycopg.connect(host="localhost", port=port, **login, sslmode="verify-full") as con:
                assert len(con.execute(QUERY).fetchall()) == 3
            with pytest.raises(psycopg.OperationalError, match="does not match host name"):
                psycopg.connect(host="127.0.0.1", port=port, **login, sslmode="verify-full")
        else:
            with pytest.raises(psycopg.OperationalError, match="certificate"):
                psycopg.connect(host="localhost", port=port, **login, sslmode="verify-full")


def test_who_comes_in_and_says_nothing_is_sent_away(register: Path, tmp_path: Path) -> None:
    with in_this_process(register, tmp_path, Options(port=0, login=3.0)) as port:
        silent = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(20)]
        for sock in silent:
            assert sock.recv(1000) == b""
            sock.close()
        with psycopg.connect(host="127.0.0.1", port=port, user="ann", password=PASSWORD, dbname="own") as con:
            assert len(con.execute(QUERY).fetchall()) == 3


@pytest.mark.parametrize("door", ["postgres", "flight", "metrics"])
def test_a_gateway_whose_port_is_taken_lets_go_of_the_file(register: Path, tmp_path: Path, door: str) -> None:
    own = tmp_path / "own.duckdb"
    shutil.copy(register, own)
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        opened = open_file(own, Limits(), connections=2)
        with pytest.raises(SDCError, match="cannot listen on"):
            asyncio.run(
                serve_clients(
                    opened,
                    Options(port=taken if door == "postgres" else 0),
                    lambda ports: pytest.fail("it began to serve"),
                    flight=FlightOptions(port=taken) if door == "flight" else None,
                    metrics=("127.0.0.1", taken) if door == "metrics" else None,
                )
            )
    assert opened.roles  # still known here, and yet the file is free
    with duckdb.connect(str(own)) as con:
        con.execute("CREATE TABLE written (a INTEGER)")


def test_a_file_and_a_folder_that_nobody_may_write(register: Path, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    file = folder / "register.duckdb"
    shutil.copy(register, file)
    file.chmod(0o444)
    folder.chmod(0o555)
    try:
        served = start(file, tmp_path / "open")
        try:
            with connected(served) as con:
                assert len(con.execute(QUERY).fetchall()) == 3
        finally:
            assert served.stop() == 0
        assert [path.name for path in folder.iterdir()] == ["register.duckdb"]
    finally:
        folder.chmod(0o755)
