"""What is published anyway (`sdc_protect(.., granted := ..)`): the base of a limit on the sequence of answers."""

from __future__ import annotations

import threading
from collections.abc import Callable

from sdcduck.catalog import Policy
from sdcduck.guard.rewriter import Rewriter
from sdcduck.guard.rewritten import Rewritten
from sdcduck.guard.schema import Schema
from sdcduck.quoting import folded


def granted_by(alone: threading.Lock, schema: Schema, rewriter: Rewriter) -> Callable[[Policy], Rewritten]:
    """Makes the rewriting of the query that is granted by a policy, which may ask about its own table only.

    Args:
        alone: held while the guard's connection is used.
    """

    def granted(policy: Policy) -> Rewritten:
        with alone, schema.shapes.once():
            return rewriter.made(policy.sequence.granted, {folded(policy.name): policy})

    return granted
