"""Wrong passwords cost time: more with each, for the address that they come from and the name that is tried.

What is counted for an address leaks away with time, and whoever logs in takes back only what was counted for the own
name: with one password nobody tries on and on at other names. One name counts for little, so that a program with an old
password does not make everybody wait who is behind the same address; many names count for much.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from hashlib import sha256

_FREE = 3
_FIRST, _LONGEST = 0.5, 30.0
_GIVEN_UP = 60.0
_MOST_FAILURES, _OF_ONE_NAME = 20, 5
_FORGIVEN = 45.0
"""Seconds after which one failure less is counted."""
_MOST = 10_000
_LONGEST_NAME = 100


@dataclass
class _Record:
    """What is counted for an address, or for a name from there.

    Attributes:
        failures: that are not forgiven yet.
        since: when the last one was forgiven, or the first of them came.
        last: when the last one came.
        counted: of those of a name, how many count for the address.
        next, delay: when the next try may come, and how long it waits.
    """

    failures: int = 0
    since: float = 0.0
    last: float = 0.0
    counted: int = 0
    next: float = 0.0
    delay: float = 0.0

    def forgive(self, now: float) -> None:
        """Count less, the longer it is ago."""
        forgiven = int((now - self.since) // _FORGIVEN)
        self.failures, self.since = max(self.failures - forgiven, 0), self.since + forgiven * _FORGIVEN
        self.counted = min(self.counted, self.failures)

    def count(self, now: float) -> None:
        """One more."""
        self.forgive(now)
        if not self.failures:
            self.since = now
        self.failures, self.last = min(self.failures + 1, _MOST_FAILURES), now

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
        records = [record for key in _keys(address, user) if (record := self._records.get(key)) is not None]
        for record in records:
            record.forgive(now)
        slow = [record for record in records if record.failures > _FREE]
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
        of_address, of_name = (self._records.setdefault(key, _Record()) for key in _keys(address, user))
        of_name.count(now)
        if of_name.counted < _OF_ONE_NAME:
            of_name.counted += 1
            of_address.count(now)
        of_address.last = now

    def _forget(self, now: float) -> None:
        """Keep the newest: somebody makes names up. Whoever goes on, from an address or at a name, is among them.

        It is half of them at a time, so that it does not come with every failure.
        """
        newest = sorted(self._records.items(), key=lambda known: known[1].last)[-_MOST:]
        for _, record in newest:
            record.forgive(now)
        self._records = {key: record for key, record in newest if record.failures}

    def succeeded(self, address: str, user: str) -> None:
        """A password was right: what came before from there at this name is forgotten, and at no other one."""
        with self._alone:
            of_address, of_name = _keys(address, user)
            own, all_ = self._records.pop(of_name, None), self._records.get(of_address)
            if own is not None and all_ is not None:
                all_.failures = max(all_.failures - own.counted, 0)


def _keys(address: str, user: str) -> tuple[str, str]:
    # Somebody who tries a name from elsewhere must not lock its owner out: names count for the address only.
    return _short(f"from {address}"), _short(f"{user} from {address}")


def _short(key: str) -> str:
    """A key that takes no more memory the longer the name is that somebody made up."""
    return key if len(key) <= _LONGEST_NAME else sha256(key.encode("utf-8", "replace")).hexdigest()
