"""Errors as clients get them: SQLSTATE, a message with the code of the guard, and never a data value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sdcduck.gateway.postgres.patterns import OPEN_END
from sdcduck.guard import Refused


@dataclass(eq=False)
class PostgresError(Exception):
    """An error for the client.

    Attributes:
        code: SQLSTATE.
        fatal: whether the session ends.
    """

    code: str
    message: str
    detail: str = ""
    hint: str = ""
    fatal: bool = False


_STATES = {
    "SDC001": "42601", "SDC002": "54001", "SDC003": "42601", "SDC004": "25006", "SDC010": "42883", "SDC020": "42P01",
    "SDC021": "42809", "SDC030": "42703", "SDC031": "42702", "SDC042": "42803", "SDC060": "55000", "SDC072": "58030",
    "SDC073": "53400", "SDC080": "53400", "SDC082": "58030", "SDC090": "22000", "SDC091": "57014", "SDC092": "58030",
    "SDC093": "54000", "SDC094": "53200", "SDC095": "53400",
}  # fmt: skip
_PROTECTED = "42501"


def of_refusal(refused: Refused) -> PostgresError:
    """The error for a refusal of the guard."""
    text = str(refused)
    if refused.detail == OPEN_END:
        return PostgresError("22025", OPEN_END, text)
    return PostgresError(_STATES.get(refused.code, _PROTECTED), text, f"Refused by the guard: {refused.code}.")


_BEGINNING = 60  # characters


@contextmanager
def named(statement: str, place: int, of: int) -> Iterator[None]:
    """Say in which statement of several in one text an error is.

    >>> try:
    ...     with named("SELECT max(income)\\n  FROM people", 2, 3):
    ...         raise PostgresError("42501", "refused", "SDC050.")
    ... except PostgresError as error:
    ...     error.detail
    'SDC050. In statement 2 of 3: SELECT max(income) FROM people'
    """
    try:
        yield
    except PostgresError as error:
        if of > 1 and not error.fatal:
            words = " ".join(statement.split())
            told = words if len(words) <= _BEGINNING else f"{words[:_BEGINNING]}.."
            where = f"In statement {place} of {of}: {told}"
            error = PostgresError(error.code, error.message, f"{error.detail} {where}".strip(), error.hint)
        raise error from None


CANCELLED = PostgresError("57014", "canceling statement due to user request")
SHUTDOWN = PostgresError("57P01", "terminating connection: the gateway is stopped", fatal=True)
CHANGED = PostgresError("57P01", "terminating connection: what is served has changed; connect again", fatal=True)
IDLE = PostgresError("57P05", "terminating connection due to idle-session timeout", fatal=True)
FAILED_TRANSACTION = PostgresError(
    "25P02", "current transaction is aborted, commands ignored until end of transaction block"
)
LOGIN_FAILED = "28P01"
TOO_MANY = "53300"
PROTOCOL = "08P01"
