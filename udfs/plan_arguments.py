"""What is given of a plan, by SQL, by the guard and by the command line: bytes, and what a plan is bound to."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sdcduck.errors import unknown
from sdcduck.methods.sequence.plans import Binding
from sdcduck.udfs.arguments import struct, wrong

_EXAMPLE = "{'data': 'household survey', 'release': '2026-1', 'policy': 'analyst', 'expires': '2026-12-31'}"
_FIELDS = ("data", "release", "policy", "expires")


def octets(given: bytes | None, name: str, length: int) -> bytes:
    """Bytes, or what they are in digits of hex.

    >>> octets(b"0f10", "salt", 2)
    b'\\x0f\\x10'
    >>> octets(b"0f1", "salt", 2)
    Traceback (most recent call last):
    sdcduck.errors.SDCError: argument 'salt' must be of 2 bytes: a BLOB, or a text of 4 digits of hex
    """
    if given is not None and len(given) == length:
        return bytes(given)
    what = f"be of {length} bytes: a BLOB, or a text of {2 * length} digits of hex"
    if given is None or len(given) != 2 * length:
        raise wrong(name, what)
    try:
        return bytes.fromhex(given.decode("ascii"))
    except ValueError:
        raise wrong(name, what) from None


def read_binding(text: str | None, steps: int) -> Binding | None:
    """What a plan is for, from its JSON."""
    given = struct(text, "binding", _EXAMPLE)
    for field in given:
        if field not in _FIELDS:
            raise unknown("field", field, _FIELDS, where="'binding'")
    if not given:
        return None
    texts = {name: "" if given.get(name) is None else given[name] for name in ("data", "release", "policy")}
    if not all(isinstance(value, str) for value in texts.values()):
        raise wrong("binding", "have texts as 'data', 'release' and 'policy'")
    return Binding(**texts, steps=steps, expires=_second(given.get("expires")))


def _second(given: Any) -> int | None:
    """A time in seconds since 1970; without a zone it is UTC."""
    if given is None:
        return None
    try:
        time = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        raise wrong("binding", "have a date or time as 'expires', such as '2026-12-31'") from None
    return int((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp())
