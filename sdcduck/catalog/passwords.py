"""Passwords as the gateway keeps them: SCRAM-SHA-256 verifiers, from which nobody gets the password back.

Source: RFC 5802 and RFC 7677; RFC 4013 for the preparation of the text.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import stringprep
import unicodedata
from dataclasses import dataclass

from sdcduck.errors import SDCError

ITERATIONS = 16_384
SALT_BYTES = 16
_SHORTEST = 8
_NAME = "SCRAM-SHA-256"


@dataclass(frozen=True)
class Verifier:
    """What a server must have to check a password.

    Attributes:
        iterations: of PBKDF2.
        stored_key: the hash of the key that the client proves to have.
        server_key: with which the server proves that it knows the verifier.
    """

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def text(self) -> str:
        """As PostgreSQL writes it."""
        salt, stored, server = (
            base64.b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"{_NAME}${self.iterations}:{salt}${stored}:{server}"

    def fits(self, password: str) -> bool:
        """Whether a password is the one that this was made of.

        >>> verifier("long enough").fits("long enough"), verifier("long enough").fits("too short")
        (True, False)
        """
        return hmac.compare_digest(_keys(password, self.salt, self.iterations)[0], self.stored_key)


def salt_of(secret: bytes, name: str) -> bytes:
    """The salt of a user, there or not, whatever the password: it tells nobody who is there, nor since when.

    Args:
        secret: of the database file, kept in it.
    """
    return hmac.digest(secret, b"salt " + name.encode(), "sha256")[:SALT_BYTES]


def verifier(password: str, *, salt: bytes | None = None, iterations: int = ITERATIONS) -> Verifier:
    """The verifier of a password.

    Raises:
        SDCError: the password is too short.
    """
    if len(password) < _SHORTEST:
        raise SDCError(f"the password needs at least {_SHORTEST} characters")
    used = secrets.token_bytes(SALT_BYTES) if salt is None else salt
    return Verifier(iterations, used, *_keys(password, used, iterations))


def _keys(password: str, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    """The stored key and the server's."""
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256")


def read_verifier(text: str) -> Verifier:
    """The verifier that a text holds.

    Raises:
        SDCError: it is none.
    """
    try:
        name, how, keys = text.split("$")
        iterations, salt = how.split(":")
        stored, server = keys.split(":")
        if name != _NAME:
            raise ValueError(name)
        return Verifier(int(iterations), *(base64.b64decode(part, validate=True) for part in (salt, stored, server)))
    except (ValueError, binascii.Error):
        raise SDCError("a password in the database is not in a form that this version knows") from None


def prepared(password: str) -> bytes:
    """The password as all clients send it: one spelling for each text (SASLprep), or as it is if it has none.

    >>> prepared("pa\\u00adss\\u00a0\\u2168").decode()
    'pass IX'
    """
    mapped = "".join(
        " " if stringprep.in_table_c12(sign) else sign for sign in password if not stringprep.in_table_b1(sign)
    )
    text = unicodedata.normalize("NFKC", mapped)
    right_to_left = [stringprep.in_table_d1(sign) for sign in text]
    mixed = any(right_to_left) and (
        any(stringprep.in_table_d2(sign) for sign in text) or not (right_to_left[0] and right_to_left[-1])
    )
    if not text or mixed or any(_forbidden(sign) for sign in text):
        return password.encode()
    return text.encode()


def _forbidden(sign: str) -> bool:
    tables = (
        stringprep.in_table_a1, stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3,
        stringprep.in_table_c4, stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7,
        stringprep.in_table_c8, stringprep.in_table_c9,
    )  # fmt: skip
    return any(table(sign) for table in tables)
