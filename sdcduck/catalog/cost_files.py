"""What questions about a table have cost, and what was drawn for them: a file for each table, in ``<register>.dp``.

All sessions and gateways of a register share it (`ChainedFile`). One table has one file, whoever asks and whatever its
policy is by now: people who ask in turn can put their answers together, and what was told is not untold by another
policy. It is made when the policy is declared: where it is gone, nobody knows what was spent, and nothing is answered.

The first line says the version and the table. Each of the others is a charge, or the numbers that were drawn for one.
These are what was answered: nothing in the file is closer to a record than an answer is.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from sdcduck.catalog.chained_file import ChainedFile
from sdcduck.quoting import folded

VERSION = 1
MOST = 1_000_000_000
"""Bytes of a file: of a table that was asked so much nothing new is answered."""


class CostFile(ChainedFile):
    """What questions about one table have cost.

    Args:
        register: the file of the database.
        table: that they are about.
        most: bytes that the file may have.
    """

    def __init__(self, register: Path, table: str, *, most: int = MOST) -> None:
        folder = register.with_name(f"{register.name}.dp")
        path = folder / f"{hashlib.sha256(folded(table).encode()).hexdigest()[:32]}.jsonl"
        first = {"version": VERSION, "table": folded(table)}
        super().__init__(path, f"the ledger {path.name}", first=first, most=most)
