"""What each login was told so far: a file for each, in a folder beside the register, ``<register>.sequence``.

All sessions and gateways of a login share its file (`ChainedFile`). The first line says the version and the login. Each
of the others is an answer, or a decision of the custodian to begin anew. Nothing in it is made of a record: the sets
that were asked for, and what the guard worked out of them. Where the file is not what was written, nobody knows what
the login was told, and nothing is answered.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from sdcduck.catalog.chained_file import ChainBroken, ChainedFile, Line

VERSION = 1
MOST = 256_000_000
"""Bytes of a file: a login that was told more is told nothing new."""


class KnowledgeFile(ChainedFile):
    """What one login was told.

    Args:
        register: the file of the database.
        login: who asks.
        most: bytes that the file may have.
    """

    def __init__(self, register: Path, login: str, *, most: int = MOST) -> None:
        path = folder_of(register) / f"{hashlib.sha256(login.encode()).hexdigest()[:32]}.jsonl"
        super().__init__(path, f"the file {path.name}", first={"version": VERSION, "login": login}, most=most)


def folder_of(register: Path) -> Path:
    """The folder with what logins were told by a register."""
    return register.with_name(f"{register.name}.sequence")


def all_lines(register: Path) -> dict[str, list[Line]]:
    """What all logins were told, by login.

    Raises:
        ChainBroken: of one of them it is not known.
    """
    folder, found = folder_of(register), dict[str, list[Line]]()
    for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
        with path.open("rb") as file:
            try:
                login = json.loads(file.readline())["login"]
            except (ValueError, KeyError, TypeError):
                raise ChainBroken(f"{path.name} does not begin as it should") from None
        found[login] = KnowledgeFile(register, login).lines()
    return found
