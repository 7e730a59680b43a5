"""Seeds: from the argument of a statement to what a random stream starts from."""

from __future__ import annotations

import hmac

from sdcduck.errors import SDCError
from sdcduck.functions.registry import Session


def stream_of(secret: bytes | None, purpose: str, seed: int | None) -> int:
    """What the random streams start from: the seed under the secret of the connection, or the seed alone.

    It is never in the text of a statement or a plan: whoever knows it can undo a synthesis.
    """
    if secret is None:
        return 0 if seed is None else seed
    digest = hmac.digest(secret, f"sdcduck: {purpose} {seed}".encode(), "sha256")
    return int.from_bytes(digest[:8], "big", signed=True)


def need_seed_or_secret(session: Session, seed: int | None, what: str) -> None:
    """Refuse to be undone.

    Args:
        what: can be done by whoever knows the seed.
    """
    if seed is None and session.secret() is None:
        raise SDCError(
            f"{what} by whoever knows its seed: open the database with a secret, or give "
            "seed := a large random number and keep it"
        )
