"""The login: the server's half of SCRAM-SHA-256.

A user who is not there gets an exchange like any other, with a salt that is always the same for that name, also when
the gateway starts anew, and stays the same when such a user is created; so neither the messages nor the time they take
tell whether a name is known.

Source: RFC 5802 and RFC 7677.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets

from sdcduck.catalog.passwords import ITERATIONS, Verifier, salt_of

MECHANISM = "SCRAM-SHA-256"
_FIRST = re.compile(r"([ny]),,(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]+))")
_FINAL = re.compile(r"(c=([A-Za-z0-9+/=]+),r=([\x21-\x2b\x2d-\x7e]+)),p=([A-Za-z0-9+/=]+)")


class LoginFailed(Exception):
    """A wrong password, an unknown user or messages that are no login."""


class Exchange:
    """One login.

    Args:
        verifier: of the user; None: there is no such user.
        name: of the user.
        secret: of the database file, from which salts are made.
    """

    def __init__(self, verifier: Verifier | None, name: str, secret: bytes) -> None:
        nobody = Verifier(ITERATIONS, salt_of(secret, name), secrets.token_bytes(32), secrets.token_bytes(32))
        self._known, self._verifier = verifier is not None, verifier or nobody
        self._nonce, self._header, self._messages = "", "", ""

    def first(self, data: bytes) -> bytes:
        """The answer to the client's first message.

        Raises:
            LoginFailed: it is none.
        """
        found = _FIRST.fullmatch(data.decode("utf-8", "replace"))
        if found is None:
            raise LoginFailed
        self._header, bare, nonce = found[1] + ",,", found[2], found[3]
        self._nonce = nonce + secrets.token_urlsafe(18)
        salt = base64.b64encode(self._verifier.salt).decode()
        answer = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        self._messages = f"{bare},{answer}"
        return answer.encode()

    def final(self, data: bytes) -> bytes:
        """The answer to the client's last message.

        Raises:
            LoginFailed: the password is wrong, or there is no such user.
        """
        found = _FINAL.fullmatch(data.decode("utf-8", "replace"))
        if found is None or not self._nonce:
            raise LoginFailed
        try:
            header, proof = (base64.b64decode(part, validate=True) for part in (found[2], found[4]))
        except binascii.Error:
            raise LoginFailed from None
        signed = f"{self._messages},{found[1]}".encode()
        signature = hmac.digest(self._verifier.stored_key, signed, "sha256")
        key = bytes(a ^ b for a, b in zip(signature, proof.ljust(32, b"\0"), strict=False))
        right = hmac.compare_digest(hashlib.sha256(key).digest(), self._verifier.stored_key) and len(proof) == 32
        same = hmac.compare_digest(found[3], self._nonce) and header == self._header.encode()
        if not (right and same and self._known):
            raise LoginFailed
        return b"v=" + base64.b64encode(hmac.digest(self._verifier.server_key, signed, "sha256"))
