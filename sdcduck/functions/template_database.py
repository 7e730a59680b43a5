"""A database that others start from: what a session makes in every database, made once a process and copied after that.

DuckDB takes as long to run a statement that creates a macro as to create a hundred in one copy, so a copy takes a tenth
of the time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import duckdb

from sdcduck.quoting import identifier, literal

_ALIAS = "_sdcduck_template"
# A file of an older storage version spells macros as an older DuckDB would read them, with other lambdas and literals.
_CONFIG = {"storage_compatibility_version": "latest"}


class TemplateDatabase:
    """A file of this process, from which empty databases are filled.

    A process that makes one database only does not pay for it: the first is made as without it.
    """

    def __init__(self, make: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
        """``make`` creates everything in a database."""
        self._make = make
        self._lock = threading.Lock()
        self._asked = False
        self._path: Path | None = None
        self._process = os.getpid()

    def copy_to(self, con: duckdb.DuckDBPyConnection, database: str) -> bool:
        """Fill a database of a connection; whether that went. It is as it was where not: not empty, or one that lets
        no file be attached, or there is no place for temporary files.
        """
        with self._lock:
            if not self._asked:
                self._asked = True
                return False
            try:
                file = self._file()
            except (OSError, duckdb.IOException):
                return False
        try:
            con.execute(f"ATTACH {literal(str(file))} AS {_ALIAS} (READ_ONLY, HIDDEN)")
        except duckdb.Error:
            return False
        try:
            con.execute(f"COPY FROM DATABASE {_ALIAS} TO {identifier(database)}")
        except duckdb.Error:
            return False
        finally:
            con.execute(f"DETACH {_ALIAS}")
        return True

    def _file(self) -> Path:
        """The file; a process that was forked makes one of its own, since its parent removes the other at its end."""
        if self._path is None or self._process != os.getpid():
            self._process = os.getpid()
            folder = Path(tempfile.mkdtemp(prefix="sdcduck-"))
            weakref.finalize(self, _remove, folder, self._process)
            made = folder / "template.duckdb"
            with duckdb.connect(str(made), config=dict(_CONFIG)) as con:
                self._make(con)
            self._path = made
        return self._path


def _remove(folder: Path, process: int) -> None:
    """Remove the folder, in the process that made it: one that was forked from it finalizes the same objects."""
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)
