"""What is published anyway (`sdc_protect(.., granted := ..)`): the base of a limit on the sequence of answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import duckdb

from sdcduck.catalog import Policy, SequenceLimit
from sdcduck.guard.rewriter import Rewriter
from sdcduck.guard.rewritten import Rewritten
from sdcduck.guard.schema import Schema
from sdcduck.quoting import folded
from sdcduck.udfs.guard.sequence import read_granted, read_sequence


def granted_by(alone: threading.Lock, schema: Schema, rewriter: Rewriter) -> Callable[[Policy], Rewritten]:
    """Makes the rewriting of the query that is granted by a policy, which may ask about its own table only.

    Args:
        alone: held while the guard's connection is used.
    """

    def granted(policy: Policy) -> Rewritten:
        with alone, schema.relations.cached():
            return rewriter.made(policy.sequence.granted, {folded(policy.name): policy})

    return granted


def limit_of(
    con: duckdb.DuckDBPyConnection, policy: Policy, mode: str, least_error: float, secrets: Sequence[str],
    granted: str | None,
) -> SequenceLimit:  # fmt: skip
    """A limit that a policy may have, to try it.

    Raises:
        SDCError: it does not go with the policy.
    """
    limit = read_sequence(mode, least_error, secrets, "refuse", policy)
    return replace(limit, granted=read_granted(con, granted, policy.name, limit))
