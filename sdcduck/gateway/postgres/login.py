"""Who is it: from the startup message to a user whose password was right."""

from __future__ import annotations

import asyncio
import contextlib

from sdcduck.gateway.events import note
from sdcduck.gateway.postgres import errors, protocol
from sdcduck.gateway.postgres.connection import Connection
from sdcduck.gateway.postgres.errors import PostgresError
from sdcduck.gateway.postgres.protocol import ProtocolError
from sdcduck.gateway.postgres.scram import MECHANISM, Exchange, LoginFailed
from sdcduck.gateway.shared_state import Account, SharedState
from sdcduck.gateway.throttle import TooManyFailures


async def log_in(
    connection: Connection, startup: protocol.Startup, shared: SharedState, patience: asyncio.Timeout
) -> Account:
    """The user, once the password was right.

    Args:
        patience: how long the login may take; what we let it wait for wrong ones before it comes on top.

    Raises:
        PostgresError: it was not, or there is no such user; which of them, nobody can tell.
        ProtocolError: the messages are no login.
    """
    name = startup.parameters.get("user", "")
    if not name:
        raise PostgresError("28000", "no user name was given")
    if startup.parameters.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise PostgresError("0A000", "replication is not supported")
    _negotiate(connection, startup)
    now, throttle = asyncio.get_running_loop().time, shared.throttle
    account = shared.accounts.get(name)
    exchange = Exchange(None if account is None else account.verifier, name, shared.salts)
    try:
        connection.write(protocol.authentication_sasl([MECHANISM]))
        mechanism, first = protocol.sasl_initial(await _password(connection))
        if mechanism != MECHANISM:
            raise LoginFailed
        connection.write(protocol.authentication_continue(exchange.first(first)))
        proof = await _password(connection)
        # Here, where nothing comes between it and the look at the password: of many who call at once, each that turns
        # out wrong makes the others wait.
        await _stand_in_line(throttle.wait(connection.peer, name, now=now()), connection, patience)
        final = exchange.final(proof)
    except TooManyFailures:
        raise PostgresError(errors.TOO_MANY, "too many failed logins; try again in a minute") from None
    except LoginFailed:
        throttle.failed(connection.peer, name, now=now())
        shared.counts.login("postgres", succeeded=False)
        note("login failed", user=name[:63], address=connection.peer)
        raise PostgresError(errors.LOGIN_FAILED, f'password authentication failed for user "{name[:63]}"') from None
    if account is None:  # an exchange without a verifier does not come this far
        raise PostgresError(errors.LOGIN_FAILED, "password authentication failed")
    throttle.succeeded(connection.peer, name)
    shared.counts.login("postgres", succeeded=True)
    connection.write(protocol.authentication_final(final))
    return account


async def _stand_in_line(seconds: float, connection: Connection, patience: asyncio.Timeout) -> None:
    """Wait for so long, unless the client leaves."""
    if seconds <= 0:
        return
    until = patience.when()
    patience.reschedule(None if until is None else until + seconds)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(connection.gone.wait(), seconds)
        raise ConnectionResetError


def _negotiate(connection: Connection, startup: protocol.Startup) -> None:
    options = [name for name in startup.parameters if name.startswith("_pq_.")]
    if startup.minor > 0 or options:
        connection.write(protocol.negotiate_version(options))


async def _password(connection: Connection) -> bytes:
    message = await connection.message()
    if not isinstance(message, protocol.Password):
        raise ProtocolError("a message before the login")
    return message.data
