"""Wrong passwords cost time: more with each, for the address that they come from and the name that is tried."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from hashlib import sha256

_FREE = 3
_FIRST, _LONGEST = 0.5, 30.0
_GIVEN_UP = 60.0
_FORGOTTEN = 900.0
_MOST = 10_000
_LONGEST_NAME = 100


@dataclass
class _Record:
    failures: int = 0
    next: float = 0.0
    delay: float = 0.0
    last: float = 0.0

    def wait(self, now: float) -> float:
        """Seconds after which the next try comes after the one before, which may still stand in line itself."""
        after = 2.0 * self.delay if now < self.next else _FIRST * 2.0 ** (self.failures - _FREE - 1)
        return min(after, _LONGEST)


class TooManyFailures(Exception):
    """So many wrong passwords came that the next is not even looked at."""


class Throttle:
    """When the next password may be tried.

    It knows nothing of which users there are, so it treats all names alike.

    >>> throttle = Throttle()
    >>> for second in range(3):
    ...     throttle.failed("10.0.0.1", "ann", now=second)
    >>> throttle.wait("10.0.0.1", "ann", now=3)
    0.0
    >>> throttle.failed("10.0.0.1", "ann", now=3)
    >>> throttle.wait("10.0.0.1", "ann", now=3)
    0.5
    >>> throttle.wait("10.0.0.2", "bob", now=3)
    0.0
    """

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}
        self._alone = threading.Lock()

    def wait(self, address: str, user: str, *, now: float) -> float:
        """Seconds that a login must wait; each one that waits makes the next wait longer.

        Raises:
            TooManyFailures: the queue is too long.
        """
        with self._alone:
            return self._wait(address, user, now)

    def _wait(self, address: str, user: str, now: float) -> float:
        records = [self._records.get(key) for key in _keys(address, user)]
        slow = [record for record in records if record is not None and record.failures > _FREE]
        if not slow:
            return 0.0
        begin = max([now, *(record.next for record in slow)])
        delay = max(record.wait(now) for record in slow)
        if begin + delay - now > _GIVEN_UP:
            raise TooManyFailures
        for record in slow:
            record.next, record.delay = begin + delay, delay
        return begin + delay - now

    def failed(self, address: str, user: str, *, now: float) -> None:
        """A password was wrong."""
        with self._alone:
            self._failed(address, user, now)

    def _failed(self, address: str, user: str, now: float) -> None:
        if len(self._records) > 2 * _MOST:
            self._forget(now)
        for key in _keys(address, user):
            record = self._records.setdefault(key, _Record())
            if now - record.last > _FORGOTTEN:
                record.failures = 0
            record.failures, record.last = min(record.failures + 1, 20), now

    def _forget(self, now: float) -> None:
        """Keep the newest: somebody makes names up. Whoever goes on, from an address or at a name, is among them.

        It is half of them at a time, so that it does not come with every failure.
        """
        newest = sorted(self._records.items(), key=lambda known: known[1].last)[-_MOST:]
        self._records = {key: record for key, record in newest if now - record.last < _FORGOTTEN}

    def succeeded(self, address: str, user: str) -> None:
        """A password was right: what came before from there is forgotten."""
        with self._alone:
            for key in _keys(address, user):
                self._records.pop(key, None)


def _keys(address: str, user: str) -> tuple[str, str]:
    # Somebody who tries a name from elsewhere must not lock its owner out: names count for the address only.
    return _short(f"from {address}"), _short(f"{user} from {address}")


def _short(key: str) -> str:
    """A key that takes no more memory the longer the name is that somebody made up."""
    return key if len(key) <= _LONGEST_NAME else sha256(key.encode("utf-8", "replace")).hexdigest()
