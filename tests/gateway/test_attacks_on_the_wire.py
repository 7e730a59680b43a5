"""Somebody who knows the protocol, and a password or none: what they try, and what comes of it."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import ssl
import struct
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from served_gateway import PASSWORD, Served, wait_for
from test_bad_days import in_this_process

from sdcduck.catalog.passwords import verifier
from sdcduck.gateway.postgres import statements
from sdcduck.gateway.postgres.parameters import BadParameter, expanded, value_of, without_arrays
from sdcduck.gateway.postgres.scram import Exchange, LoginFailed
from sdcduck.gateway.postgres.server import Options
from sdcduck.gateway.postgres.sql import to_duckdb
from sdcduck.gateway.postgres.types import BY_OID
from sdcduck.gateway.shared_state import Account, ConnectionSlots, Limits, SharedState
from sdcduck.gateway.system.catalog import SystemCatalog
from sdcduck.gateway.system.queries import is_system_query

psycopg = pytest.importorskip("psycopg")
QUERY = "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region"


def connected(served: Served, **changed: Any) -> Any:
    return psycopg.connect(**{**served.options, **changed}, autocommit=True)


def message(letter: bytes, body: bytes) -> bytes:
    return letter + struct.pack("!i", len(body) + 4) + body


def parsed(name: bytes, sql: bytes) -> bytes:
    return message(b"P", name + b"\0" + sql + b"\0\0\0")


def bound(portal: bytes, name: bytes, *values: bytes) -> bytes:
    given = struct.pack("!H", len(values)) + b"".join(struct.pack("!i", len(value)) + value for value in values)
    return message(b"B", portal + b"\0" + name + b"\0\0\0" + given + b"\0\0")


def executed(portal: bytes, rows: int = 0) -> bytes:
    return message(b"E", portal + b"\0" + struct.pack("!i", rows))


SYNC = message(b"S", b"")


class Wire:
    """A session that is logged in, and says what it likes."""

    def __init__(self, served: Served, **changed: Any) -> None:
        self._con = connected(served, **changed)
        self.socket = socket.socket(fileno=os.dup(self._con.fileno()))
        self.socket.setblocking(True)
        self.socket.settimeout(60)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *problem: object) -> None:
        self.socket.close()
        self._con.close()

    def ask(self, data: bytes, *, syncs: int = 1) -> bytes:
        """What comes until the gateway is ready again, so many times."""
        self.socket.sendall(data)
        answer, found = b"", 0
        place = 0
        while found < syncs:
            came = self.socket.recv(65_536)
            if not came:
                return answer
            answer += came
            while len(answer) - place >= 5 and len(answer) - place > struct.unpack_from("!i", answer, place + 1)[0]:
                found += answer[place : place + 1] == b"Z"
                place += 1 + struct.unpack_from("!i", answer, place + 1)[0]
        return answer


def resident_mb(served: Served) -> float:
    text = Path(f"/proc/{served.process.pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


# Texts that take long to be none. Before they were bounded, each of these took hours, all clients waiting.

LONG_TEXTS = {
    "a list of values": "SET application_name = " + ",".join("a" * 40_000) + "'",
    "options of COPY": "COPY (SELECT 1) TO STDOUT (" + ",".join("a" * 40_000) + "'",
    "old options of COPY": "COPY (SELECT 1) TO STDOUT " + "csv " * 20_000 + "'",
    "a cursor": "FETCH " + "9" * 90_000 + " FROM c",
    "privileges": "SELECT " + "has_" * 20_000,
    "comments": "/*" * 40_000,
    "white space": "DECLARE c" + " " * 50_000 + "x",
    "a place": "SELECT $" + "9" * 90_000 + "::oid FROM pg_class",
}


@pytest.mark.parametrize("text", LONG_TEXTS.values(), ids=LONG_TEXTS)
def test_no_text_keeps_all_clients_waiting(served: Served, text: str) -> None:
    with contextlib.suppress(statements.Unsupported):
        statements.read(text)
    assert not is_system_query(text[:50_000], {})
    with connected(served) as con, pytest.raises(psycopg.Error) as caught:
        con.execute(text)
    assert caught.value.sqlstate not in (None, "XX000")


@pytest.mark.parametrize("text", ["{" + " " * 500_000 + '"}', "{" + "a " * 300_000 + '"b', '{"' + "\\" * 100_000])
def test_no_value_keeps_all_clients_waiting(text: str) -> None:
    with pytest.raises(BadParameter):
        value_of(text.encode(), BY_OID[1009], 0)
    assert without_arrays("a = ANY($1::" + " " * 90_000 + "x") != ""


def test_a_small_message_of_arrays_in_arrays_takes_no_memory() -> None:
    """A thousand of them, each of which was a copy of the rest."""
    data = b""
    for _ in range(1000):
        data = struct.pack("!6i", 1, 0, BY_OID[1007].oid, 1, 1, len(data)) + data
    with pytest.raises(BadParameter):
        value_of(data, BY_OID[1007], 1)


@pytest.mark.parametrize("share", ["1E-2000000", "0E-2000000", "NaN", "sNaN", "Infinity", "-1", "1E2000000"])
def test_no_share_keeps_all_clients_waiting(served: Served, share: str) -> None:
    """A number of few signs and many digits, and those that cannot be compared."""
    question = "SELECT quantile_cont(income, $1) FROM people"
    assert expanded(question, [Decimal(share)])[0] == question
    with Wire(served) as wire:
        numeric = message(b"P", b"\0" + question.encode() + b"\0" + struct.pack("!Hi", 1, 1700))
        answer = wire.ask(numeric + bound(b"", b"", share.encode()) + executed(b"") + SYNC)
        assert b"SDC052" in answer
        assert answer[-6:-5] == b"Z"


@pytest.mark.parametrize(
    "ends", ["0, 60, 1E2000000", "0, 1E2000000, 5", "-1E2000000, 0, 5", "NaN, 60, 5", "0, sNaN, 5"]
)
def test_no_bucket_keeps_all_clients_waiting(ends: str) -> None:
    assert "WIDTH_BUCKET(" in to_duckdb(f"SELECT width_bucket(a, {ends}) FROM t", "")


def test_arrays_are_read_as_they_were_written() -> None:
    texts = BY_OID[1009]
    for written, values in (
        ("{}", []), ("{ }", []), ("{a,b c , NULL}", ["a", "b c", None]), ('{ "a,\\"b\\\\" ,"NULL",""}', ['a,"b\\', "NULL", ""]),
        ('{"a\nb"}', ["a\nb"]),
    ):  # fmt: skip
        assert value_of(written.encode(), texts, 0) == values
    for none in ("", "{", "a", "{a,}", "{,}", '{"a" b}', '{"a"', "{{a}}", "{a}b"):
        with pytest.raises(BadParameter):
            value_of(none.encode(), texts, 0)


# Memory


def test_who_asks_and_does_not_read_is_made_to_wait(serve: Callable[..., Served]) -> None:
    served = serve()
    with Wire(served) as wire:
        wire.ask(parsed(b"a", b"SELECT * FROM numbers LIMIT 16000") + SYNC)
        wire.ask(bound(b"", b"a") + executed(b"") + SYNC)  # the first answer loads what all of them need
        before = resident_mb(served)
        wire.socket.settimeout(5)
        sent = 0
        asked = (bound(b"", b"a") + executed(b"") + SYNC) * 100
        with pytest.raises(TimeoutError):
            while sent < 50_000:  # a hundred times as many answers of more than half a megabyte
                wire.socket.sendall(asked)
                sent += 1
        with connected(served) as con:
            assert len(con.execute(QUERY).fetchall()) == 3
        assert resident_mb(served) < before + 40


def test_who_asks_much_in_one_message_and_does_not_read_is_made_to_wait(serve: Callable[..., Served]) -> None:
    served, much = serve(), b"SELECT n, twice, words FROM numbers LIMIT 16000"
    with Wire(served) as wire:
        wire.ask(message(b"Q", much + b"\0"))  # the first answer loads what all of them need
        before = resident_mb(served)
        wire.socket.sendall(message(b"Q", b";".join([much] * 200) + b"\0"))  # for answers of a hundred megabytes
        with connected(served) as con:
            for _ in range(100):
                assert len(con.execute(QUERY).fetchall()) == 3
        assert 0 < sum(line["query"] == much.decode() for line in served.asked()) < 100
        assert resident_mb(served) < before + 60


def test_what_a_session_keeps_has_bounds(served: Served) -> None:
    long = b"SELECT '" + b"x" * 90_000 + b"' AS a"
    with Wire(served) as wire:
        answers = wire.ask(b"".join(parsed(b"s%d" % n, long) + SYNC for n in range(100)), syncs=100)
        assert b"too many prepared statements" in answers
        assert answers.count(b"1\0\0\0\x04") < 100
        wire.ask(message(b"Q", b"DEALLOCATE ALL\0"))
        wire.ask(message(b"Q", b"BEGIN\0") + parsed(b"n", b"SELECT n FROM numbers WHERE n < $1") + SYNC, syncs=2)
        answers = wire.ask(b"".join(bound(b"p%d" % n, b"n", b"5") for n in range(200)) + SYNC)
        assert b"too many portals" in answers
        assert answers.count(b"2\0\0\0\x04") == 100
        assert b"1\0\0\0\x04" in wire.ask(message(b"Q", b"ROLLBACK\0") + parsed(b"", long) + SYNC, syncs=2)


def test_what_is_small_on_the_wire_is_not_large_in_memory(served: Served) -> None:
    """A number of a parameter, types that the client says, and values of a byte each."""
    sent = b"".join(parsed(b"s%d" % n, b"SELECT $65535::int AS a, %d AS b" % n) + SYNC for n in range(200))
    types = struct.pack("!H", 65_535) + bytes(4 * 65_535)
    with Wire(served) as wire:
        wire.ask(SYNC)
        before = resident_mb(served)
        answers = wire.ask(sent, syncs=200)
        assert answers.count(b"1\0\0\0\x04") == 200
        assert resident_mb(served) < before + 50
        assert b"SDC090" in wire.ask(bound(b"", b"s1") + executed(b"") + SYNC)
        said = b"".join(message(b"P", b"t%d\0SELECT 1\0" % n + types) + SYNC for n in range(20))
        answers = wire.ask(message(b"Q", b"DEALLOCATE ALL\0") + said, syncs=21)
        assert b"too many prepared statements" in answers
        assert answers.count(b"1\0\0\0\x04") == 15  # of 8 bytes for each type
        many = message(b"P", b"m\0SELECT 1\0" + struct.pack("!H10000i", 10_000, *[20] * 10_000))
        wire.ask(message(b"Q", b"DEALLOCATE ALL\0") + message(b"Q", b"BEGIN\0") + many + SYNC, syncs=3)
        answers = wire.ask(b"".join(bound(b"p%d" % n, b"m", *[b"1"] * 10_000) for n in range(20)) + SYNC)
        assert b"too many portals" in answers
        assert answers.count(b"2\0\0\0\x04") == 12


def test_rows_are_fetched_from_what_has_some(served: Served) -> None:
    """Portals that were bound and not run are cursors, too; one that fetches from itself is none."""
    with Wire(served) as wire:
        begun = message(b"Q", b"BEGIN\0")
        few = parsed(b"few", b"SELECT n FROM numbers ORDER BY n LIMIT 3") + bound(b"open", b"few") + SYNC
        wire.ask(begun + few, syncs=2)
        answers = [wire.ask(message(b"Q", b"FETCH 2 FROM open\0")) for _ in range(2)]
        assert [answer.count(b"D\0\0\0\x0b\0\x01") for answer in answers] == [2, 1]
        assert b"SELECT 0" in wire.ask(executed(b"open") + SYNC)
        for statement in (b"FETCH 2 FROM itself", b"DECLARE c CURSOR FOR SELECT 1", b"COPY (SELECT 1) TO STDOUT"):
            wire.ask(parsed(b"", statement) + bound(b"itself", b"") + SYNC)
            assert b"55000" in wire.ask(message(b"Q", b"FETCH 2 FROM itself\0"))
            wire.ask(message(b"Q", b"ROLLBACK\0") + begun, syncs=2)


# Others


def test_nobody_reaches_into_the_session_of_another(served: Served) -> None:
    with Wire(served) as mine, Wire(served, user="bob") as other:
        begun = message(b"Q", b"BEGIN; DECLARE c CURSOR FOR SELECT n FROM numbers; SET application_name = 'mine'\0")
        mine.ask(begun)
        mine.ask(parsed(b"mine", b"SELECT 42 AS answer") + bound(b"open", b"mine") + SYNC)
        for attempt in (
            bound(b"", b"mine") + SYNC, executed(b"open") + SYNC, message(b"D", b"Smine\0") + SYNC,
            message(b"D", b"Popen\0") + SYNC, message(b"Q", b"FETCH 1 FROM c\0"), message(b"Q", b"DEALLOCATE mine\0"),
        ):  # fmt: skip
            assert b"there is no p" in other.ask(attempt)
        assert b"mine" not in other.ask(message(b"Q", b"SHOW application_name\0"))
        for statement in (b"DISCARD ALL\0", b"CLOSE ALL\0", b"DEALLOCATE ALL\0"):
            other.ask(message(b"Q", statement))
        assert b"42" in mine.ask(bound(b"", b"mine") + executed(b"") + SYNC)


def test_a_key_stops_the_session_that_it_belongs_to_and_no_other(served: Served) -> None:
    with connected(served) as mine, connected(served, user="bob") as other:
        own = mine.pgconn.get_cancel()
        other.pgconn.send_query(b"SELECT count(*) FROM numbers a JOIN numbers b ON a.n = b.n + 1")
        own.cancel()
        result = other.pgconn.get_result()
        assert result.status == psycopg.pq.ExecStatus.TUPLES_OK
        while other.pgconn.get_result() is not None:
            pass


# Passwords


class Guess:
    """A login up to the last message, which holds a proof of a password that is wrong."""

    def __init__(self, port: int, user: bytes = b"ann") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        body = struct.pack("!i", 3 << 16) + b"user\0" + user + b"\0\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self._read()
        first = b"n,,n=,r=abcdefgh"
        self.socket.sendall(message(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first))
        nonce = self._read()[4:].split(b",")[0]
        self.proof = b"c=biws," + nonce + b",p=" + base64.b64encode(bytes(32))

    def try_it(self) -> None:
        self.socket.sendall(message(b"p", self.proof))

    def answer(self) -> bytes:
        return self._read()

    def _read(self) -> bytes:
        head = self.socket.recv(5, socket.MSG_WAITALL)
        return self.socket.recv(struct.unpack("!i", head[1:])[0] - 4, socket.MSG_WAITALL)


def test_guesses_at_the_same_time_stand_in_line(serve: Callable[..., Served]) -> None:
    """Not only those that come after others have failed."""
    served = serve()
    guesses = [Guess(served.port) for _ in range(200)]
    for guess in guesses:
        guess.try_it()
    looked_at, sent_away = 0, 0
    for guess in guesses:
        guess.socket.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            answer = guess.answer()
            looked_at += b"password authentication failed" in answer
            sent_away += b"too many failed logins" in answer
    assert sent_away > 0
    for guess in guesses:  # who waits and leaves is not waited for
        guess.socket.close()
    assert served.told("login failed") < 20
    assert looked_at < 20


def test_who_had_to_wait_is_let_in_with_the_right_password(register: Path, tmp_path: Path) -> None:
    login = {"host": "127.0.0.1", "user": "ann", "dbname": "own"}
    with in_this_process(register, tmp_path, Options(port=0, login=3.0)) as port:
        for _ in range(7):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(**login, port=port, password="wrong password")
        with psycopg.connect(**login, port=port, password=PASSWORD) as con:  # after longer than a login may take
            assert len(con.execute(QUERY).fetchall()) == 3


def calls_of(work: Callable[[], object]) -> Counter[str]:
    """Which functions are called, and how often."""
    found: Counter[str] = Counter()

    def count(frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            found[argument.__name__ if event == "c_call" else frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def test_a_login_takes_the_same_steps_whether_the_name_is_known_or_not() -> None:
    known = verifier("long enough")

    def log_in(account: Any) -> None:
        exchange = Exchange(account, "ann", b"secret")
        nonce = exchange.first(b"n,,n=,r=abcdefgh").split(b",")[0]
        with contextlib.suppress(LoginFailed):
            exchange.final(b"c=biws," + nonce + b",p=" + base64.b64encode(bytes(32)))

    log_in(None)
    assert calls_of(lambda: log_in(known)) == calls_of(lambda: log_in(None))


def door_of(*names: str) -> Any:
    flight = pytest.importorskip("pyarrow.flight")
    from sdcduck.gateway.flight.login import Door, TokenSessions

    known = verifier("long enough")
    accounts = {name: Account(name, "analyst", known) for name in names}
    shared = SharedState(accounts, {}, "register", Limits(), ConnectionSlots(10, 10))
    door = Door(shared, TokenSessions(60), encrypted=False, overheard=False, clock=lambda: 0.0)
    handshake = SimpleNamespace(method=flight.FlightMethod.HANDSHAKE)

    def guess(name: str) -> bool:
        """Whether it was looked at."""
        told = base64.b64encode(f"{name}:a wrong one".encode()).decode()
        try:
            door.start_call(handshake, {"authorization": [f"Basic {told}"]})
        except flight.FlightUnauthenticatedError:
            return True
        except flight.FlightUnavailableError:
            return False
        raise AssertionError("a wrong password did")

    return guess


def test_over_flight_too_a_login_takes_the_same_steps() -> None:
    guess = door_of("ann")
    guess("somebody")
    assert calls_of(lambda: guess("ann")) == calls_of(lambda: guess("eve"))


def test_over_flight_too_guesses_at_the_same_time_stand_in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("sdcduck.gateway.flight.login.time.sleep", waited.append)
    guess = door_of("ann")
    with ThreadPoolExecutor(50) as guesses:
        looked_at = sum(guesses.map(lambda _: guess("ann"), range(50)))
    assert looked_at - len(waited) <= 3 + 1 + 2  # those that cost nothing, and two that are looked at meanwhile
    assert max(waited) > 10


# TLS


def test_tls_is_not_talked_down(encrypted: Served) -> None:
    ask = struct.pack("!ii", 8, 80877103)
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", encrypted.port), timeout=60) as sock:
        sock.sendall(ask)
        assert sock.recv(1) == b"S"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            old.wrap_socket(sock)
    with socket.create_connection(("127.0.0.1", encrypted.port), timeout=60) as sock:
        sock.sendall(struct.pack("!ii", 8, 80877104))  # no, not that way of encryption
        assert sock.recv(1) == b"N"
        body = struct.pack("!i", 3 << 16) + b"user\0ann\0\0"
        sock.sendall(struct.pack("!i", len(body) + 4) + body)
        assert b"encrypted connections only" in sock.recv(65_536)
    with connected(encrypted, sslmode="prefer") as con:  # who did not ask for it has it all the same
        assert con.pgconn.ssl_in_use


def test_who_asks_the_same_before_the_login_again_and_again_is_sent_away(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as sock:
        sock.sendall(struct.pack("!ii", 8, 80877104) * 1000)
        answer = sock.recv(1) + sock.recv(65_536)
        assert answer.startswith(b"NE")
        assert b"the same request again" in answer


# The catalog


def test_nobody_changes_the_catalog_that_others_see(served: Served) -> None:
    with connected(served) as con:
        before = con.execute("SELECT oid, relname FROM pg_class ORDER BY 1").fetchall()
        for change in (
            "WITH x AS (DELETE FROM pg_catalog.pg_class RETURNING *) SELECT * FROM x",
            "WITH x AS (INSERT INTO pg_description SELECT * FROM pg_description RETURNING objoid) SELECT * FROM x",
            "WITH x AS (UPDATE pg_class SET relname = 'seen' RETURNING oid) SELECT * FROM x",
            "WITH x AS (SELECT 1) DELETE FROM pg_class",
            "SELECT relname INTO taken FROM pg_class", "DELETE FROM pg_catalog.pg_class",
            "COPY (WITH x AS (DELETE FROM pg_class RETURNING *) SELECT * FROM x) TO STDOUT",
        ):  # fmt: skip
            for name in (None, "p"):
                with pytest.raises(psycopg.Error) as caught:
                    con.execute(change, prepare=name is not None)
                assert caught.value.sqlstate != "XX000"
        assert con.execute("SELECT oid, relname FROM pg_class ORDER BY 1").fetchall() == before
    with connected(served) as other:
        assert other.execute("SELECT oid, relname FROM pg_class ORDER BY 1").fetchall() == before


def test_questions_about_the_database_fill_no_disk(served: Served) -> None:
    """Each of those who ask may use so much memory, and where that is not enough, nothing is put into files."""
    catalog = SystemCatalog([], "register", [])
    assert catalog.cursor().sql("SELECT current_setting('temp_directory')").fetchall() == [("",)]
    catalog.close()
    large = "SELECT array_agg(g) FROM generate_series(1, 1000000000) g, pg_class"
    with connected(served) as con:
        with pytest.raises(psycopg.Error, match="SDC094") as caught:
            con.execute(large)
        assert caught.value.sqlstate == "53200"
        assert len(con.execute("SELECT relname FROM pg_class").fetchall()) > 100


def test_the_catalog_itself_can_only_be_read() -> None:
    """Whatever a question looks like: where it is asked, nothing can be written."""
    import duckdb

    catalog = SystemCatalog([], "register", ["ann"])
    cursor = catalog.cursor()
    with pytest.raises(duckdb.Error, match="read-only"):
        cursor.execute("DELETE FROM pg.pg_class")
    cursor.close()
    assert catalog.cursor().execute("SELECT count(*) > 100 FROM pg.pg_class").fetchone() == (True,)
    catalog.close()


@pytest.mark.parametrize(
    "query",
    ["SELECT length(repeat('x', 2000000000)), version()", "SELECT lpad('x', 2000000000, 'y') FROM pg_class",
     "SELECT format('%2000000000s', 'x') FROM pg_class", "SELECT getenv('HOME') FROM pg_class",
     "SELECT * FROM pg_class, duckdb_secrets()", "SELECT nextval('x'), version()", "SELECT error('x'), version()",
     "SELECT * FROM pg_class, read_blob('/etc/passwd')", "SELECT pg_terminate_backend(1), version()"],
)  # fmt: skip
def test_the_catalog_calls_what_is_on_its_list(served: Served, query: str) -> None:
    with connected(served) as con:
        with pytest.raises(psycopg.Error, match="SDC010"):
            con.execute(query)
        assert con.execute("SELECT format('%s.%s', 'a', 'b'), version()").fetchone()[0] == "a.b"


def test_the_catalog_names_nobody_of_another_role(served: Served) -> None:
    for user, others in (("ann", "bob"), ("bob", "ann")):
        with connected(served, user=user) as con:
            seen = con.execute("SELECT rolname FROM pg_roles UNION SELECT usename FROM pg_user").fetchall()
            assert {name for (name,) in seen} == {"custodian", user}
            asked = (
                "SELECT pg_get_userbyid(oid) FROM pg_roles UNION SELECT role_name FROM information_schema.enabled_roles"
            )
            assert (others,) not in con.execute(asked).fetchall()


def test_tables_that_are_not_open_are_like_those_that_are_not_there(served: Served) -> None:
    with connected(served) as con:
        for query in (
            "SELECT '{}'::regclass", "SELECT to_regclass('{}')", "SELECT column_name FROM information_schema.columns "
            "WHERE table_name = '{}'", "SELECT has_table_privilege('{}', 'select')", "SELECT relname FROM pg_class WHERE "
            "relname = '{}'", "SELECT pg_total_relation_size('{}')", "SELECT obj_description('{}'::regclass)",
        ):  # fmt: skip
            there, not_there = (con.execute(query.format(name)).fetchall() for name in ("secrets", "nothing"))
            assert there == not_there
        for query in (
            "SELECT * FROM {}",
            "SELECT count(*) FROM public.{}",
            "COPY {} TO STDOUT",
            "EXPLAIN SELECT * FROM {}",
        ):
            texts = []
            for name in ("secrets", "nothing"):
                try:
                    texts.append(str(con.execute(query.format(name)).fetchall()))
                except psycopg.Error as refused:
                    texts.append(str(refused))
            assert texts[0].replace("secrets", "nothing") == texts[1]


def test_what_functions_of_the_catalog_are_called_with_may_have_any_name(served: Served) -> None:
    with connected(served) as con:
        found = con.execute("SELECT oid::regclass, obj_description(oid, 'pg_class') FROM pg_class WHERE relkind = 'r' AND "
                            "oid >= 16384 ORDER BY 1")  # fmt: skip
        assert found.fetchall()[-1] == ("people", "protected: counts and sums only")
        assert ("int8", "bigint") in con.execute("SELECT typname, format_type(oid, NULL) FROM pg_type").fetchall()
        assert con.execute("SELECT oid::regnamespace FROM pg_namespace WHERE nspname = 'public'").fetchall() == [
            ("public",)
        ]


def test_columns_of_the_session_have_the_names_that_programs_expect(served: Served) -> None:
    with connected(served) as con:
        found = con.execute(
            "SELECT current_user, current_database(), pg_catalog.version(), current_schema(), user, 'people'::regclass, "
            "pg_backend_pid() AS p, has_table_privilege('people', 'select')"
        )
        assert [column.name for column in found.description] == [
            "current_user", "current_database", "version", "current_schema", "user", "regclass", "p", "has_table_privilege",
        ]  # fmt: skip


def test_several_statements_in_one_are_no_way_in(served: Served) -> None:
    with connected(served) as con:
        for text in (
            "COPY (SELECT 1; SELECT 2) TO STDOUT", "SELECT 1; SELECT * FROM people", "DECLARE c CURSOR FOR SELECT 1; FETCH x",
            "EXPLAIN SELECT 1; SELECT * FROM people -- ;", "SELECT 1 /* ; */ ; DROP TABLE people",
        ):  # fmt: skip
            with pytest.raises(psycopg.Error) as caught:
                con.execute(text)
            assert caught.value.sqlstate != "XX000"
            assert con.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.errors.SyntaxError):
            con.execute("SELECT 1; SELECT 2", prepare=True)


def test_lists_of_values_are_read() -> None:
    for text, value in (
        ("SET search_path = public, other", "public, other"), ("SET search_path TO 'public' , 'it''s'", "public, it's"),
        ("SET DateStyle = ISO,DMY", "ISO, DMY"), ('SET search_path = "$user",public', '"$user", public'),
        ("SET application_name = 'a, b'", "a, b"),
    ):  # fmt: skip
        read = statements.read(text)
        assert isinstance(read, statements.Set)
        assert read.value == value
    for none in ("SET a = b,", "SET a = ,b", "SET a = b,,c", "SET a = 'b", "SET a = b c"):
        with pytest.raises(statements.Unsupported):
            statements.read(none)


SSL_REQUEST = struct.pack("!ii", 8, 80877103)


def test_one_address_keeps_no_others_out(register: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sockets that never log in are counted by address; those who have logged in are not among them."""
    monkeypatch.setattr("sdcduck.gateway.postgres.server._MOST_FROM_ONE", 5)
    login = {"host": "127.0.0.1", "user": "ann", "password": PASSWORD, "dbname": "own", "autocommit": True}

    def came(port: int, address: str) -> tuple[socket.socket, bytes]:
        door = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(address, 0))
        door.sendall(SSL_REQUEST)
        try:
            return door, door.recv(1)
        except ConnectionResetError:
            return door, b""

    with in_this_process(register, tmp_path, Options(port=0)) as port, contextlib.ExitStack() as doors:
        for _ in range(7):
            doors.enter_context(psycopg.connect(**login, port=port))
        silent = [came(port, "127.0.0.1") for _ in range(5)]
        assert [answer for _, answer in silent] == [b"N"] * 5
        late, answer = came(port, "127.0.0.1")
        assert answer == b""
        late.close()
        other, answer = came(port, "127.0.0.2")
        assert answer == b"N"
        other.close()
        for door, _ in silent:
            door.close()
        wait_for(lambda: _logs_in(login, port))


def _logs_in(login: dict[str, Any], port: int) -> bool:
    try:
        psycopg.connect(**login, port=port).close()
    except psycopg.OperationalError:
        return False
    return True
