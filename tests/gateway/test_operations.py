"""What docs/operations.md says of years of use: certificates, service files, a small installation, copies, new records."""

from __future__ import annotations

import configparser
import contextlib
import datetime
import re
import shutil
import signal
import socket
import ssl
import struct
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from served_gateway import Served, wait_for

import sdcduck
from sdcduck.gateway import serving, tls
from sdcduck.gateway.shared_state import Limits

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "examples" / "operations"
BY_REGION = "SELECT region, count(*) AS n, sum(income) AS income FROM people GROUP BY region ORDER BY region"


def write_certificate(folder: Path) -> bytes:
    made = tls.self_signed("localhost")
    (folder / "cert.pem").write_bytes(made.chain)
    (folder / "key.pem").write_bytes(made.key)
    return ssl.PEM_cert_to_DER_cert(made.chain.decode())


def encrypted(port: int) -> ssl.SSLSocket:
    """A connection as a client of PostgreSQL begins it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", port))
    plain.sendall(struct.pack("!ii", 8, 80877103))
    assert plain.recv(1) == b"S"
    return context.wrap_socket(plain)


def test_a_certificate_is_read_again_and_connections_stay(serve: Callable[..., Served], tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    first = write_certificate(tmp_path)
    running = serve("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    with encrypted(running.port) as early:
        assert early.getpeercert(binary_form=True) == first
        second = write_certificate(tmp_path)
        running.process.send_signal(signal.SIGHUP)
        wait_for(lambda: running.told("certificate read again") == 1)
        with encrypted(running.port) as late:
            assert late.getpeercert(binary_form=True) == second
        (tmp_path / "cert.pem").write_text("none")
        running.process.send_signal(signal.SIGHUP)
        wait_for(lambda: running.told("certificate kept") == 1)
        with encrypted(running.port) as late:
            assert late.getpeercert(binary_form=True) == second
        early.sendall(struct.pack("!ii", 8, 80877104))  # it is read, and answered as what it is: no login
        assert early.recv(1) in (b"E", b"N")
    assert running.stop() == 0


def shown(context: ssl.SSLContext, name: str | None) -> bytes:
    """The certificate that a client gets, without a network."""
    asking = ssl.create_default_context()
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, server = asking.wrap_bio(back, there, server_hostname=name), context.wrap_bio(there, back, server_side=True)
    for _ in range(2):
        for end in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
    found = client.getpeercert(binary_form=True)
    assert found is not None
    return found


@pytest.mark.parametrize("name", [None, "localhost"])
def test_a_renewed_certificate_may_have_a_key_of_another_kind(tmp_path: Path, name: str | None) -> None:
    """OpenSSL keeps one of each kind, and prefers those of elliptic curves."""
    pytest.importorskip("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    write_certificate(tmp_path)
    used = tls.from_files(tmp_path / "cert.pem", tmp_path / "key.pem")
    key = rsa.generate_private_key(65537, 2048)
    who, now = x509.Name([]), datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder(who, who, key.public_key(), 7, now, now + datetime.timedelta(1))
    (tmp_path / "cert.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )  # fmt: skip
    tls.renew(used, tmp_path / "cert.pem", tmp_path / "key.pem")
    assert shown(used.context, name) == ssl.PEM_cert_to_DER_cert((tmp_path / "cert.pem").read_text())


def test_without_a_certificate_from_a_file_nothing_is_read(serve: Callable[..., Served]) -> None:
    running = serve()
    running.process.send_signal(signal.SIGHUP)
    wait_for(lambda: running.told("nothing to read again") == 1)
    assert running.stop() == 0


def test_a_file_that_was_replaced_is_changed_over_to(register: Path, tmp_path: Path) -> None:
    file, following = tmp_path / "register.duckdb", tmp_path / "next.duckdb"
    shutil.copy(register, file)
    shutil.copy(register, following)
    opened = serving.open_file(file, Limits(), connections=1)
    asked: list[str] = []
    try:
        serving._told_to_read_again(opened, lambda: None, lambda: asked.append("over"))
        assert not asked
        following.replace(file)
        serving._told_to_read_again(opened, None, lambda: asked.append("over"))
        assert asked == ["over"]
    finally:
        opened.close()


def options_of(text: str) -> set[str]:
    return set(re.findall(r"--[a-z-]+", text))


def known_options() -> set[str]:
    return options_of((ROOT / "sdcduck/cli/gateway.py").read_text().replace("_", "-")) | {
        f"--{name.replace('_', '-')}"
        for name in re.findall(r"^    (\w+): ", (ROOT / "sdcduck/cli/gateway.py").read_text(), re.M)
    }


def test_the_service_starts_what_there_is() -> None:
    unit = configparser.RawConfigParser(strict=False, allow_no_value=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string((OPERATIONS / "sdcduck.service").read_text().replace("\\\n", " "))
    service = unit["Service"]
    assert service["ExecStart"].split()[1:3] == ["serve", "register.duckdb"]
    assert options_of(service["ExecStart"]) <= known_options()
    assert service["WorkingDirectory"] in service["ReadWritePaths"]
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert service["Restart"] == "on-failure"  # exit code 70 is one


def test_the_image_installs_what_the_project_wants_less_what_solves_and_compiles() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {re.split(r"[\[<>=]", one)[0]: one for one in project["dependencies"]}
    wanted |= {re.split(r"[\[<>=]", one)[0]: one for one in project["optional-dependencies"]["gateway"]}
    lines = [line for line in (OPERATIONS / "gateway.txt").read_text().splitlines() if not line.startswith("#")]
    assert sorted(lines) == sorted(one for name, one in wanted.items() if name not in ("highspy", "numba", "scipy"))
    image = (OPERATIONS / "Containerfile").read_text()
    assert "examples/operations/gateway.txt" in image
    assert options_of(image.split("ENTRYPOINT")[0].split("podman run")[1].split("\n")[0]) <= known_options()


def test_a_copy_answers_the_same_and_new_records_get_the_keys_that_they_would_have_had(
    register: Path, served: Served, tmp_path: Path
) -> None:
    """The copy is made while a gateway serves the file."""
    copy = tmp_path / "restored.duckdb"
    shutil.copy(register, copy)
    with sdcduck.connect(register, read_only=True) as con:
        before = sdcduck.open_guard(con).sql(BY_REGION).to_pylist()
    with sdcduck.connect(copy, secret="the secret of the tests") as con:
        assert sdcduck.open_guard(con).sql(BY_REGION).to_pylist() == before
        con.execute(
            "INSERT INTO people BY NAME SELECT 9001 AS person_id, 'North' AS region, 'f' AS sex, 30 AS age, 1 AS income"
        )
        [(filled,)] = con.execute("SELECT count(*) FROM people WHERE record_key IS NULL").fetchall()
        assert filled == 1
        con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
        [(wrong,)] = con.execute(
            "SELECT count(*) FILTER (record_key IS DISTINCT FROM sdc_record_key(person_id)) FROM people"
        ).fetchall()
        assert wrong == 0
        after = {row["region"]: row for row in sdcduck.open_guard(con).sql(BY_REGION).to_pylist()}
        assert {name: after[name] for name in ("East", "South")} == {
            row["region"]: row for row in before if row["region"] != "North"
        }
