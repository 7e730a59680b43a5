"""What SQL functions ask of a floor above them: who stands there says so when it is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import duckdb
import pyarrow as pa

from sdcduck.errors import SDCError


class Rehearsal(Protocol):
    """Asks the questions of an audit log again under a limit on the sequence of answers (`sdc_sequence_rehearsal`)."""

    def __call__(
        self,
        con: duckdb.DuckDBPyConnection,
        log: str,
        table: str,
        login: str | None,
        *,
        role: str,
        mode: str,
        secrets: Sequence[str],
        least_error: float,
        min_units: int | None,
        granted: str | None,
    ) -> pa.Table:
        """A row for each question of the log."""  # fmt: skip


class Preview(Protocol):
    """Says what a question would cost under ``method := 'dp'`` (`sdc_dp_preview`)."""

    def __call__(self, con: duckdb.DuckDBPyConnection, question: str, login: str, *, role: str) -> pa.Table:
        """A row for each column of its answer."""


_rehearsals: list[Rehearsal] = []


def rehearses(rehearsal: Rehearsal) -> Rehearsal:
    """Says who rehearses; a decorator."""
    _rehearsals[:] = [rehearsal]
    return rehearsal


def rehearsal() -> Rehearsal:
    """Who does.

    Raises:
        SDCError: nobody.
    """
    if not _rehearsals:
        raise SDCError("questions are asked again by the guard, which is not loaded: import sdcduck")
    return _rehearsals[0]


_previews: list[Preview] = []


def previews(preview: Preview) -> Preview:
    """Says who previews costs; a decorator."""
    _previews[:] = [preview]
    return preview


def preview() -> Preview:
    """Who does.

    Raises:
        SDCError: nobody.
    """
    if not _previews:
        raise SDCError("costs are known by the guard, which is not loaded: import sdcduck")
    return _previews[0]
