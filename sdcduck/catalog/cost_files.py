"""What questions about a table have cost, and what was drawn for them: a file for each table, in ``<register>.dp``.

It is written as the files of what logins were told are (`knowledge_files`): a chain of lines, forced to disk before an
answer is made, under a lock that all sessions and gateways of the register hold. One table has one file, whoever asks
and whatever its policy is by now: people who ask in turn can put their answers together, and what was told is not
untold by another policy.

The first line says the version and the table. Each of the others is a charge, or the numbers that were drawn for one.
These are what was answered: nothing in the file is closer to a record than an answer is.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from sdcduck.catalog.knowledge_files import KnowledgeFile
from sdcduck.quoting import folded


class CostFile(KnowledgeFile):
    """What questions about one table have cost.

    Args:
        register: the file of the database.
        table: that they are about.
    """

    def __init__(self, register: Path, table: str) -> None:
        super().__init__(register, folded(table))
        self.folder = register.with_name(f"{register.name}.dp")
        self.path = self.folder / f"{hashlib.sha256(folded(table).encode()).hexdigest()[:32]}.jsonl"
