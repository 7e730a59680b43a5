"""The errors that sdcduck raises, and how they reach a user of SQL.

Everything a user did wrong is an `SDCError`. Its text says what was wrong, in which argument, and what would be
accepted; it never holds a data value. The one place where errors become SQL is `sdcduck.functions.registry`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SDCError(ValueError):
    """Input that cannot be used as asked; the message is written for the user."""


def unknown(what: str, name: str, known: Iterable[str], *, where: str = "") -> SDCError:
    """The error for a name that does not exist, with the nearest one that does.

    >>> str(unknown("column", "regoin", ["region", "age"], where="'people'"))
    "unknown column 'regoin' in 'people'; did you mean 'region'?"
    """
    names = sorted(known)
    place = f" in {where}" if where else ""
    near = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1)
    if near:
        hint = f"did you mean '{next(n for n in names if n.lower() == near[0])}'?"
    elif names:
        hint = "there are: " + ", ".join(f"'{n}'" for n in names[:12]) + (", .." if len(names) > 12 else "")
    else:
        hint = "there are none"
    return SDCError(f"unknown {what} '{name}'{place}; {hint}")
