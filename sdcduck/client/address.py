"""The address of a gateway, as people write it and as drivers of PostgreSQL read it."""

from __future__ import annotations

from urllib.parse import SplitResult, quote, unquote, urlsplit

from sdcduck.errors import SDCError

_SCHEMES = ("postgresql", "postgres", "sdcduck")
_FORM = "postgresql://user:password@host:port/database"


def address(url: str, user: str = "", password: str = "") -> str:
    """The address for a driver.

    >>> address("sdcduck://host:5433/census?sslmode=require", "ann", "correct horse")
    'postgresql://ann:correct%20horse@host:5433/census?sslmode=require'

    Args:
        url: `postgresql://user:password@host:port/database` or `sdcduck://..`.
        user: in place of the one in the URL.
        password: the same.

    Raises:
        SDCError: it is no such address.
    """
    parts, port = _parts(url)
    user, password = user or unquote(parts.username or ""), password or unquote(parts.password or "")
    who = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    return f"postgresql://{who}{'@' if who else ''}{host}{port}{parts.path}{f'?{parts.query}' if parts.query else ''}"


def _parts(url: str) -> tuple[SplitResult, str]:
    """What an address is made of, and its port with a colon."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:  # a port that is no number, or half of the brackets of IPv6
        raise SDCError(f"the address of a gateway is {_FORM}, with a port between 1 and 65535") from None
    if parts.scheme not in _SCHEMES:
        raise SDCError("the address of a gateway begins with postgresql:// or sdcduck://")
    if not parts.hostname:
        raise SDCError(f"the address of a gateway is {_FORM}")
    return parts, port
