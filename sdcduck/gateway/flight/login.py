"""Who calls: a user name and a password are given once, for a token that is good for a while.

The password comes as it is, over TLS wherever others could listen, and is checked against the same SCRAM verifier as at
the PostgreSQL door. At this point the library does not tell from where somebody calls. So wrong passwords slow down
further tries at a name from everywhere; whoever is in already is not touched.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow.flight as flight

from sdcduck.catalog.passwords import ITERATIONS, SALT_BYTES, Verifier
from sdcduck.gateway.events import note
from sdcduck.gateway.shared_state import RAW_NEEDS_TLS, Account, SharedState
from sdcduck.gateway.throttle import TooManyFailures

_LIFE = 24 * 3600.0
_MOST_SESSIONS = 1000
_MOST_WAITING = 200
_MOST_CHECKED = 2
_LONGEST = 4096
WRONG = "password authentication failed"


@dataclass(eq=False)
class TokenSession:
    """A user who is in.

    Attributes:
        until: when the token ends, however busy the user is.
        seen: when the user called last.
        prepared: questions, by their handle.
        held: bytes that they and their values take.
        alone: held while something of this is changed: a client may call several times at once.
    """

    account: Account
    token: str
    until: float
    seen: float
    prepared: dict[bytes, object] = field(default_factory=dict)
    held: int = 0
    alone: threading.Lock = field(default_factory=threading.Lock)


class TokenSessions:
    """The users who are in, by the token they have.

    Args:
        idle: seconds after which a silent user is forgotten.
    """

    def __init__(self, idle: float) -> None:
        self._idle = idle
        self._by_token: dict[str, TokenSession] = {}
        self._alone = threading.Lock()

    def begin(self, account: Account, *, now: float) -> TokenSession:
        """Let a user in; one who comes in again and again loses the oldest session."""
        session = TokenSession(account, secrets.token_urlsafe(32), now + _LIFE, now)
        with self._alone:
            own = [known for known in self._by_token.values() if known.account.name == account.name]
            if len(own) >= _MOST_SESSIONS:
                del self._by_token[min(own, key=lambda known: known.seen).token]
            self._by_token[session.token] = session
        return session

    def of(self, token: str, *, now: float) -> TokenSession | None:
        """The session of a token; None: it is not, or no longer, good.

        >>> from sdcduck.catalog.passwords import verifier
        >>> sessions = TokenSessions(60)
        >>> token = sessions.begin(Account("ann", "analyst", verifier("long enough")), now=0).token
        >>> sessions.of(token, now=59) is not None, sessions.of(token, now=200) is not None
        (True, False)
        """
        with self._alone:
            session = self._by_token.get(token)
            if session is None:
                return None
            if now > min(session.until, session.seen + self._idle):
                del self._by_token[token]
                return None
            session.seen = now
            return session

    def hold(self, session: TokenSession, size: int, *, each: int, most: int) -> bool:
        """Whether a session may keep so much more, which it does then; less than nothing is given back.

        Args:
            each: bytes that a session may keep.
            most: bytes that the sessions of a user may keep together.

        >>> from sdcduck.catalog.passwords import verifier
        >>> sessions, ann = TokenSessions(60), Account("ann", "analyst", verifier("long enough"))
        >>> one, two = sessions.begin(ann, now=0), sessions.begin(ann, now=0)
        >>> [sessions.hold(one, 6, each=8, most=10), sessions.hold(one, 6, each=8, most=10)]
        [True, False]
        >>> [sessions.hold(two, 6, each=8, most=10), sessions.hold(one, -6, each=8, most=10), one.held]
        [False, True, 0]
        """
        with self._alone:
            if size > 0:
                own = [known for known in self._by_token.values() if known.account.name == session.account.name]
                if session.held + size > each or sum(known.held for known in own) + size > most:
                    return False
            session.held = max(session.held + size, 0)
            return True

    def end(self, session: TokenSession) -> None:
        """A user leaves."""
        with self._alone:
            self._by_token.pop(session.token, None)

    def sweep(self, *, now: float) -> list[TokenSession]:
        """Forget those whose time is over, and say which."""
        with self._alone:
            over = [one for one in self._by_token.values() if now > min(one.until, one.seen + self._idle)]
            for session in over:
                del self._by_token[session.token]
            return over

    def __len__(self) -> int:
        """How many there are."""
        return len(self._by_token)


class Caller(flight.ServerMiddleware):  # type: ignore[misc]
    """Who makes a call; whoever has just given a password gets the token with the answer."""

    def __init__(self, session: TokenSession, *, new: bool) -> None:
        self.session, self._new = session, new

    def sending_headers(self) -> dict[str, str]:
        """What goes out with the answer."""
        return {"authorization": f"Bearer {self.session.token}"} if self._new else {}


class Door(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Looks at each call before anything else does, and lets nobody by without a password or a token.

    Args:
        encrypted: whether all that is said is.
        overheard: whether others could listen: it is not, and does not stay on this machine.
    """

    def __init__(
        self,
        shared: SharedState,
        sessions: TokenSessions,
        *,
        encrypted: bool,
        overheard: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.shared, self._sessions, self._clock = shared, sessions, clock
        self._encrypted, self._overheard = encrypted, overheard
        self._secret = secrets.token_bytes(32)
        self._waiting = threading.Semaphore(_MOST_WAITING)
        self._checked = threading.Semaphore(_MOST_CHECKED)  # to check a password is meant to be much work

    def start_call(self, info: flight.CallInfo, headers: Mapping[str, Sequence[str | bytes]]) -> Caller:
        """Who calls.

        Raises:
            FlightUnauthenticatedError: it cannot be told.
        """
        kind, _, value = _authorization(headers).partition(" ")
        if info.method == flight.FlightMethod.HANDSHAKE:
            if kind.lower() != "basic":
                raise flight.FlightUnauthenticatedError("a user name and a password are needed")
            return Caller(self._log_in(*_name_and_password(value)), new=True)
        session = self._sessions.of(value.strip(), now=self._clock()) if kind.lower() == "bearer" else None
        if session is None:
            raise flight.FlightUnauthenticatedError("not logged in, or no longer: connect again")
        return Caller(session, new=False)

    def _log_in(self, name: str, password: str) -> TokenSession:
        place = f"flight as {name}"
        if not self._waiting.acquire(blocking=False):
            raise flight.FlightUnavailableError("too many logins at a time; try again")
        try:
            account, nobody = self.shared.accounts.get(name), self._nobody(name)
            known = nobody if account is None else account.verifier
            fits = self._looked_at(known, password, place, name)
        except TooManyFailures:
            raise flight.FlightUnavailableError("too many failed logins; try again in a minute") from None
        finally:
            self._waiting.release()
        if account is None or not fits:
            self.shared.counts.login("flight", succeeded=False)
            note("login failed", user=name[:63], door="flight")
            raise flight.FlightUnauthenticatedError(WRONG)
        self.shared.throttle.succeeded(place, name)
        self.shared.counts.login("flight", succeeded=True)
        raw = self.shared.role_of(account).raw
        if raw and self._overheard:
            note("refused", user=account.name, role=account.role, door="flight", why="no TLS")
            raise flight.FlightUnauthenticatedError(RAW_NEEDS_TLS)
        session = self._sessions.begin(account, now=self._clock())
        note(
            "entered", user=account.name, role=account.role, door="flight", tls=self._encrypted,
            **({"raw": True} if raw else {}),
        )  # fmt: skip
        return session

    def _looked_at(self, known: Verifier, password: str, place: str, name: str) -> bool:
        """Whether a password is right, once it is its turn.

        The turn is asked for where only a few are looked at: of many who call at once, each that turns out wrong makes
        the others wait.

        Raises:
            TooManyFailures: too many wait already.
        """
        with self._checked:
            seconds = self.shared.throttle.wait(place, name, now=self._clock())
            if seconds == 0.0:
                return self._fits(known, password, place, name)
        time.sleep(seconds)
        with self._checked:
            return self._fits(known, password, place, name)

    def _fits(self, known: Verifier, password: str, place: str, name: str) -> bool:
        fits = known.fits(password)
        if not fits:
            self.shared.throttle.failed(place, name, now=self._clock())
        return fits

    def _nobody(self, name: str) -> Verifier:
        """What a user who is not there is checked against, for as long as any other."""
        salt = hmac.digest(self._secret, name.encode(), "sha256")[:SALT_BYTES]
        return Verifier(ITERATIONS, salt, secrets.token_bytes(32), b"")


class NoHandshake(flight.ServerAuthHandler):  # type: ignore[misc]
    """Flight has two ways to log in; clients of Flight SQL use the other one, but call for this one first."""

    def authenticate(self, outgoing: object, incoming: object) -> None:
        """`Door` has done it."""

    def is_valid(self, token: bytes) -> bytes:
        """`Door` does it."""
        return b""


def _authorization(headers: Mapping[str, Sequence[str | bytes]]) -> str:
    values = [value for name, given in headers.items() if name.lower() == "authorization" for value in given]
    if len(values) != 1:
        return ""
    value = values[0].decode("ascii", "replace") if isinstance(values[0], bytes) else values[0]
    return value if len(value) <= _LONGEST else ""


def _name_and_password(encoded: str) -> tuple[str, str]:
    """What a Basic header holds; some clients leave its padding out.

    >>> _name_and_password("YW5uOmE6Yg")
    ('ann', 'a:b')
    """
    try:
        text = base64.b64decode(encoded.strip() + "=" * (-len(encoded.strip()) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise flight.FlightUnauthenticatedError(WRONG) from None
    name, _, password = text.partition(":")
    return name, password
