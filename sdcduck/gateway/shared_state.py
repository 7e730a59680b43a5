"""What all doors of the gateway share: who the users are, how many of them are in, and which passwords were wrong.

The door for PostgreSQL clients is one event loop, that for Arrow Flight SQL has a thread for each call; what both use
may be used by any thread.
"""

from __future__ import annotations

import ipaddress
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sdcduck.catalog.passwords import Verifier
from sdcduck.gateway.answers import Role
from sdcduck.gateway.metrics import Counts
from sdcduck.gateway.throttle import Throttle
from sdcduck.gateway.tls import Certificate
from sdcduck.quoting import folded

CUSTODIAN = "custodian"
"""The role whose users may be shown records as they are, where the gateway was started so."""
RAW_NOTICE = "raw records: what you see here is not protected, and every question is written down"
RAW_NEEDS_TLS = "raw records are shown over encrypted connections only (sslmode=require)"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Limits:
    """What one user may use.

    Attributes:
        connections: at a time.
        seconds: that a statement may run.
        rows: of a result; None: any number.
    """

    connections: int = 20
    seconds: float = 60.0
    rows: int | None = None


@dataclass(frozen=True)
class Account:
    """A user.

    Attributes:
        role: whose policies hold.
        verifier: of the password.
    """

    name: str
    role: str
    verifier: Verifier


class ConnectionSlots:
    """How many are in: of all users together, and of each.

    >>> slots = ConnectionSlots(3, 2)
    >>> [slots.acquire("ann"), slots.acquire("ann"), slots.acquire("ann"), slots.acquire("bob"), slots.acquire("bob")]
    [True, True, False, True, False]
    >>> slots.release("ann")
    >>> slots.acquire("bob"), slots.taken
    (True, 3)
    """

    def __init__(self, all_users: int, each: int) -> None:
        self._all, self._each = all_users, each
        self._users: Counter[str] = Counter()
        self._alone = threading.Lock()

    def acquire(self, user: str) -> bool:
        """Whether there was room for one more of a user, who has it now."""
        with self._alone:
            if self._users.total() >= self._all or self._users[user] >= self._each:
                return False
            self._users[user] += 1
            return True

    def release(self, user: str) -> None:
        """One of a user leaves."""
        with self._alone:
            self._users[user] -= 1

    @property
    def taken(self) -> int:
        """How many are in."""
        with self._alone:
            return self._users.total()


@dataclass(frozen=True)
class FlightOptions:
    """Where the gateway listens for Arrow Flight SQL.

    Attributes:
        port: 0 for any that is free.
        certificate: of encrypted connections, which all are then; None: none is.
        issuer: of the certificates that clients have to show, as PEM; None: they show none.
        idle: seconds after which a silent client is forgotten.
        grace: seconds that running questions get when the gateway stops.
    """

    host: str = "127.0.0.1"
    port: int = 0
    certificate: Certificate | None = None
    idle: float = 3600.0
    grace: float = 10.0
    issuer: bytes | None = None


class Ending:
    """Tells whoever serves that the database has ended; any thread may say so.

    >>> ending, told = Ending(), []
    >>> ending.tell(lambda: told.append("over"))
    >>> ending.is_over, ending.say(), ending.is_over, told
    (False, None, True, ['over'])
    """

    def __init__(self) -> None:
        self._over = threading.Event()
        self._told: Callable[[], object] = lambda: None

    def tell(self, told: Callable[[], object]) -> None:
        """Call this when it ends, or now."""
        self._told = told
        if self.is_over:
            told()

    def say(self) -> None:
        """It has ended."""
        if not self._over.is_set():
            self._over.set()
            self._told()

    @property
    def is_over(self) -> bool:
        """Whether it has."""
        return self._over.is_set()


@dataclass
class SharedState:
    """What stands behind every door.

    Attributes:
        accounts: users by name.
        roles: what users of each role ask, by its name in lower case.
        database: name under which clients know the database.
        ending: whether DuckDB has ended the database.
        salts: the secret of the file from which the salts of its users are made, and of those who are not there.
        is_replaced: whether another file stands by now where the one was that is served.
    """

    accounts: Mapping[str, Account]
    roles: Mapping[str, Role]
    database: str
    limits: Limits
    slots: ConnectionSlots
    throttle: Throttle = field(default_factory=Throttle)
    counts: Counts = field(default_factory=Counts)
    ending: Ending = field(default_factory=Ending)
    salts: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    is_replaced: Callable[[], bool] = lambda: False

    def role_of(self, account: Account) -> Role:
        """What a user asks."""
        return self.roles[folded(account.role)]

    def take(self, other: SharedState) -> None:
        """Serve what another state does, with the counts and limits that there are."""
        self.accounts, self.roles, self.salts, self.is_replaced = (
            other.accounts, other.roles, other.salts, other.is_replaced,
        )  # fmt: skip
        self.count_questions()

    def count_questions(self) -> None:
        """Have all questions counted."""
        for role in self.roles.values():
            role.guard.audit.heard = self.counts.question

    def close(self) -> None:
        """Nobody asks any more: the file is free again."""
        for role in self.roles.values():
            role.close()
