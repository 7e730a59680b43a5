"""The commands of the gateway: ``sdcduck serve`` and ``sdcduck user``."""

from __future__ import annotations

import asyncio
import gc
import getpass
import logging
import os
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import duckdb
import typer

from sdcduck import catalog
from sdcduck.catalog import User
from sdcduck.catalog.audit_log import QUOTA, SIZE, AuditLog
from sdcduck.catalog.passwords import verifier
from sdcduck.cli.terminal import Engine, one_line_errors, opened
from sdcduck.errors import SDCError, unknown
from sdcduck.gateway import tls
from sdcduck.gateway.postgres.server import Options
from sdcduck.gateway.serving import ENDED, Following, Ports, check_next, open_file
from sdcduck.gateway.serving import serve as serve_clients
from sdcduck.gateway.shared_state import FlightOptions, Limits, SharedState, is_loopback
from sdcduck.gateway.tls import Certificate
from sdcduck.udfs.guard.users import checked_user, salt_for

_PASSWORD = "SDCDUCK_PASSWORD"
_MB = 1_000_000

user = typer.Typer(help="Users of the gateway.", no_args_is_help=True)
_File = Annotated[Path, typer.Argument(help="A DuckDB file.", show_default=False)]
_Folders = Annotated[
    list[Path] | None,
    typer.Option(exists=True, file_okay=False, help="A folder of files that views may read; for more, again."),
]


def serve(
    file: _File,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")] = 5432,
    flight_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port for Arrow Flight SQL.", show_default="none")
    ] = None,
    flight_client_ca: Annotated[
        Path | None,
        typer.Option(
            help="Issuer of certificates, as PEM; Arrow Flight SQL clients have to show one.", show_default="none"
        ),
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port for Prometheus: /metrics.", show_default="none")
    ] = None,
    metrics_host: Annotated[str, typer.Option(help="Address for it; whoever reaches it may read.")] = "127.0.0.1",
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate, as PEM; with the chain to its issuer.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key, where that is a file of its own.")] = None,
    no_tls: Annotated[bool, typer.Option("--no-tls", help="Answers unencrypted, whoever listens.")] = False,
    log: Annotated[Path | None, typer.Option(help="The audit log: a line for every question.")] = None,
    log_quota: Annotated[
        int | None, typer.Option(min=1, help="MB of it that each user may write in an hour.", show_default="100")
    ] = None,
    log_size: Annotated[
        int | None, typer.Option(min=1, help="MB after which it goes on in a new file.", show_default="100")
    ] = None,
    custodian_raw: Annotated[
        bool,
        typer.Option("--custodian-raw", help="Users with the role custodian see the records as they are; needs --log."),
    ] = False,
    plans_only: Annotated[
        bool, typer.Option("--plans-only", help="Answer nothing about records but the steps of plans (sdcduck plan).")
    ] = False,
    allow_dir: _Folders = None,
    records: Engine = None,
    connections: Annotated[int, typer.Option(min=1, help="Clients at a time.")] = 200,
    user_connections: Annotated[int, typer.Option(min=1, help="Of them, for each user.")] = 20,
    seconds: Annotated[float, typer.Option(min=0.1, help="A statement that runs longer is stopped.")] = 60.0,
    rows: Annotated[int | None, typer.Option(min=1, help="A longer result is an error.", show_default="any")] = None,
    memory: Annotated[
        str | None, typer.Option(help="Memory of the database, such as 2GB.", show_default="half of all")
    ] = None,
    idle: Annotated[float, typer.Option(min=1, help="Seconds after which a silent client is sent away.")] = 3600.0,
) -> None:
    """Answer PostgreSQL and Arrow Flight SQL clients under the policies of a database, with protected numbers only.

    Any program that speaks to PostgreSQL connects: psql, JDBC, ODBC, Python, R, BI tools. With --flight-port programs
    that speak Arrow Flight SQL (ADBC) get whole columns, under the same users and limits. Users come from the database
    (sdcduck user add). The file is held for reading: nobody can write to it until the gateway ends (Ctrl-C, SIGTERM).
    On an address that others can reach, connections are encrypted, with a certificate made at the start unless you give
    one; SIGHUP has it read yours again, and change over to a file that was put in the place of the one served. What
    happens is told on standard error, one line of JSON each. Where DuckDB ends the database after an error of its own,
    the gateway ends with exit code 70: have it started again.
    """
    with one_line_errors():
        certificate = _tls(host, tls_cert, tls_key, off=no_tls)
        required = certificate is not None and not is_loopback(host)
        options = Options(host, port, None if certificate is None else certificate.context, required, connections, idle)
        issuer = _issuer(flight_client_ca, certificate, flight_port)
        flight = None if flight_port is None else FlightOptions(host, flight_port, certificate, idle, issuer=issuer)
        # What the engine puts into files where memory is short are records, and nobody else's to read.
        os.umask(os.umask(0o077) | 0o077)
        audit = _audit_log(log, log_quota, log_size)
        opening = partial(
            open_file, file, Limits(user_connections, seconds, rows), connections=connections, memory=memory,
            log=audit, custodian_raw=custodian_raw, plans_only=plans_only, allow_dirs=allow_dir or [],
            records=records,
        )  # fmt: skip
        opened, following = opening(), Following(partial(check_next, file, audit, custodian_raw=custodian_raw), opening)
        _log_to_standard_error()

        def ready(ports: Ports) -> None:
            _say_where(file, host, metrics_host, ports, certificate, required=required, by_certificate=bool(issuer))
            _say_who_sees_what(opened, custodian_raw=custodian_raw)

        metrics, renew = (metrics_host, metrics_port or 0), _renewing(certificate, tls_cert, tls_key)
        page = None if metrics_port is None else metrics
        serving = serve_clients(opened, options, ready, flight=flight, metrics=page, renew=renew, following=following)
        _run(serving, at_once=flight is not None, code=lambda: ENDED if opened.ending.is_over else 0)


def _say_where(
    file: Path, host: str, metrics_host: str, ports: Ports, certificate: Certificate | None, *, required: bool,
    by_certificate: bool,
) -> None:  # fmt: skip
    """Tell on standard error what listens where, and how it is encrypted."""
    how = "TLS only" if required else "TLS if clients ask for it" if certificate is not None else "without TLS"
    typer.echo(f"sdcduck: serving {file} on {host}:{ports.postgres}, {how}", err=True)
    if ports.flight is not None:
        how = "TLS only" if certificate is not None else "without TLS"
        how += ", clients with a certificate only" if by_certificate else ""
        typer.echo(f"sdcduck: Arrow Flight SQL on {host}:{ports.flight}, {how}", err=True)
    if ports.metrics is not None:
        typer.echo(f"sdcduck: metrics on http://{metrics_host}:{ports.metrics}/metrics", err=True)
    if certificate is not None and certificate.fingerprint:
        typer.echo(f"sdcduck: certificate made now, SHA-256 {certificate.fingerprint}", err=True)


def _say_who_sees_what(opened: SharedState, *, custodian_raw: bool) -> None:
    """Tell who sees records as they are, and which tables nobody is answered about."""
    if custodian_raw:
        seen_by = ", ".join(account.name for account in opened.accounts.values() if opened.role_of(account).raw)
        typer.echo(f"sdcduck: raw records for {seen_by}", err=True)
    for problem in sorted({why for role in opened.roles.values() for why in role.guard.unanswered()}):
        typer.echo(f"sdcduck: {problem}", err=True)


def _run(serving: Coroutine[Any, Any, None], *, at_once: bool, code: Callable[[], int]) -> None:
    """Serve until the end.

    Args:
        at_once: end the process then, whatever still runs in it.
        code: with which it ends.
    """
    # What is there now stays: the collector need not look at it again while questions are rewritten.
    gc.collect()
    gc.freeze()
    try:
        asyncio.run(serving)
    finally:
        gc.unfreeze()
    if at_once:
        # Everything is written and closed. While a Flight client does not read what it asked for, Arrow's server
        # cannot end; pyarrow would end it once more as the interpreter ends, and wait for ever or abort.
        logging.shutdown()
        sys.stderr.flush()
        os._exit(code())
    if code():
        raise typer.Exit(code())


def _audit_log(path: Path | None, quota: int | None, size: int | None) -> AuditLog | None:
    """The audit log, with limits in MB; None: there is none."""
    if path is None:
        if quota is not None or size is not None:
            raise SDCError("--log-quota and --log-size go with --log")
        return None
    limits = (QUOTA if quota is None else quota * _MB, SIZE if size is None else size * _MB)
    return AuditLog(path, quota=limits[0], size=limits[1])


def _tls(host: str, certificate: Path | None, key: Path | None, *, off: bool) -> Certificate | None:
    """The certificate of encrypted connections; None: there are none."""
    if off and certificate is not None:
        raise SDCError("--no-tls and --tls-cert exclude each other")
    if key is not None and certificate is None:
        raise SDCError("--tls-key goes with --tls-cert")
    if off or (certificate is None and is_loopback(host)):
        return None
    return tls.self_signed(host) if certificate is None else tls.from_files(certificate, key)


def _renewing(used: Certificate | None, certificate: Path | None, key: Path | None) -> Callable[[], None] | None:
    """What reads the certificate again; None: it is not from a file."""
    if used is None or certificate is None:
        return None
    return partial(tls.renew, used, certificate, key)


def _issuer(path: Path | None, certificate: Certificate | None, flight_port: int | None) -> bytes | None:
    """Who issues the certificates of Flight clients; None: they need none."""
    if path is None:
        return None
    if flight_port is None or certificate is None:
        raise SDCError("--flight-client-ca goes with --flight-port and encrypted connections (--tls-cert)")
    return tls.issuer_from_file(path)


def _log_to_standard_error() -> None:
    told = logging.StreamHandler(sys.stderr)
    told.setFormatter(
        logging.Formatter('{{"time": "{asctime}", "log": {message}}}', datefmt="%Y-%m-%dT%H:%M:%S%z", style="{")
    )
    logger = logging.getLogger("sdcduck.gateway")
    logger.addHandler(told)
    logger.setLevel(logging.INFO)
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # what it remarks on a question is not for this log


@user.command()
def add(
    file: _File,
    name: Annotated[str, typer.Argument(help="With which the user logs in.", show_default=False)],
    role: Annotated[str, typer.Option(help="Whose policies hold: sdc_protect(.., role := ..).")] = "analyst",
) -> None:
    """Create a user, or give one another password and role.

    The password is asked for, or taken from the environment variable SDCDUCK_PASSWORD, or from standard input where
    that is no terminal. The database gets what checks it, never the password.
    """
    with one_line_errors():
        who, what = checked_user(name, role)
        password = _password()
        with _writable(file) as con:
            salts = catalog.salts_secret(con)
            made = verifier(password, salt=salt_for(con, who, salts))
            catalog.store_user(con, User(who, what, made.text()), salts)
        typer.echo(f"user {who} with role {what}")


def _password() -> str:
    given = os.environ.get(_PASSWORD)
    if given is not None:
        return given
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != password:
        raise SDCError("the two passwords differ")
    return password


def _writable(file: Path) -> duckdb.DuckDBPyConnection:
    if not file.is_file():
        raise SDCError(f"there is no file '{file}'")
    return opened(file)


@user.command()
def drop(
    file: _File,
    name: Annotated[str, typer.Argument(help="The user.", show_default=False)],
) -> None:
    """Take a user away."""
    with one_line_errors(), _writable(file) as con:
        known = [found.name for found in catalog.users(con)]
        if name not in known:
            raise unknown("user", name, known)
        catalog.drop_user(con, name)
        typer.echo(f"dropped {name}")


@user.command("list")
def list_users(file: _File) -> None:
    """List the users with their roles."""
    with one_line_errors():
        if not file.is_file():
            raise SDCError(f"there is no file '{file}'")
        with opened(file, read_only=True) as con:
            for found in catalog.users(con):
                typer.echo(f"{found.name}\t{found.role}")
