"""A database that others start from: what a session makes in every database, made once and copied after that.

DuckDB takes as long to run a statement that creates a macro as to create a hundred in one copy, so a copy takes a tenth
of the time. A new file is a copy of the file itself, which takes DuckDB nothing. Where Python keeps the modules that it
compiled the file is kept, too, and the next process copies it: whoever can write there can as well write what Python
runs.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import duckdb

from sdcduck.quoting import identifier, literal

_ALIAS = "_sdcduck_template"
# A file of an older storage version spells macros as an older DuckDB would read them, with other lambdas and literals.
_LATEST = "latest"
_SEAL = hashlib.sha256().digest_size
"""Bytes at the end of a template that tell whether the others are what was written."""


def kept_beside(module: str, made_by: Callable[[], Iterable[str]], kind: str = "template") -> Path | None:
    """Where a template of this DuckDB is kept: with the compiled ones of the modules of a folder; None where Python
    keeps none.

    Args:
        module: a file of the folder.
        made_by: texts that say what makes the template; other texts, another file.
        kind: how its name begins; of each kind the newest is kept.
    """
    if sys.dont_write_bytecode:
        return None
    texts = "\0".join([duckdb.__version__, sys.version, *made_by()])
    name = f"{kind}.{duckdb.__version__}.{hashlib.sha256(texts.encode()).hexdigest()[:24]}.duckdb"
    return Path(cache_from_source(module)).parent / name


class TemplateDatabase:
    """A file from which empty databases are filled: one that is kept, or one of this process.

    Where none is kept, a process that makes one database only does not pay for it: the first is made as without it.
    """

    def __init__(
        self,
        make: Callable[[duckdb.DuckDBPyConnection], None],
        keep: Callable[[], Path | None] = lambda: None,
        storage: str = _LATEST,
    ) -> None:
        """``make`` creates everything in a database; ``keep`` says where the file is kept, if it is.

        Args:
            storage: the storage version of the file; of one that begins as a copy of it, too.
        """
        self._make, self._storage = make, storage
        self._keep: Callable[[], Path | None] | None = keep
        self._kept: Path | None = None
        self._lock = threading.Lock()
        self._asked = False
        self._path: Path | None = None
        self._process = os.getpid()

    def copy_to(self, con: duckdb.DuckDBPyConnection, database: str) -> bool:
        """Fill a database of a connection; whether that went. It is as it was where not: not empty, or one that lets
        no file be attached, or there is no place for temporary files.
        """
        file = self._ready()
        if file is None:
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

    def begin(self, path: Path) -> bool:
        """Make a new file as a copy of the template; whether that went. Nothing is there where it did not.

        It comes there as a whole, and only where there is none; and it is on the disk before DuckDB, which takes that
        for granted of what it wrote itself, keeps a log of changes beside it. A template that is not as it was written
        is removed: a copy of it might be opened, and lose what is put into it.
        """
        file = self._ready()
        if file is None:
            return False
        began = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            sealed = file.read_bytes()
            content = sealed[:-_SEAL]
            if hashlib.sha256(content).digest() != sealed[-_SEAL:]:
                file.unlink()
                return False
            with began.open("xb") as new:
                new.write(content)
                new.flush()
                os.fsync(new.fileno())
            os.link(began, path)
        except OSError:  # no such folder, a full disk, one that knows no links; or another process was faster
            return False
        finally:
            with suppress(OSError):
                began.unlink()
        return True

    def _ready(self) -> Path | None:
        """The file; None where it is not worth its time yet, or there is no place for it."""
        with self._lock:
            file = self._kept_file()
            if file is None and not self._asked:
                self._asked = True
                return None
            try:
                return file or self._file()
            except (OSError, duckdb.IOException):
                return None

    def _kept_file(self) -> Path | None:
        """The file that is kept, made if it is not there; looked for once a process."""
        keep, self._keep = self._keep, None
        if keep is not None:
            with suppress(OSError, duckdb.IOException):
                path = keep()
                self._kept = None if path is None else self._made(path)
        return self._kept

    def _made(self, path: Path) -> Path:
        """The file at a path. It comes there as a whole, whoever else makes it in the same moment."""
        if not path.exists():
            folder = Path(tempfile.mkdtemp(prefix="template-", dir=path.parent))
            try:
                self._make_file(folder / path.name)
                (folder / path.name).replace(path)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            for older in path.parent.glob(f"{path.name.split('.')[0]}.{duckdb.__version__}.*.duckdb"):
                if older != path:
                    with suppress(OSError):  # another process reads it
                        older.unlink()
        return path

    def _make_file(self, path: Path) -> None:
        with duckdb.connect(str(path), config={"storage_compatibility_version": self._storage}) as con:
            self._make(con)
            con.execute("CHECKPOINT")  # all is in the file, none of it in a log beside it
        seal = hashlib.sha256(path.read_bytes()).digest()
        with path.open("ab") as made:  # DuckDB reads nothing beyond its last block
            made.write(seal)

    def _file(self) -> Path:
        """The file; a process that was forked makes one of its own, since its parent removes the other at its end."""
        if self._path is None or self._process != os.getpid():
            self._process = os.getpid()
            folder = Path(tempfile.mkdtemp(prefix="sdcduck-"))
            weakref.finalize(self, _remove, folder, self._process)
            made = folder / "template.duckdb"
            self._make_file(made)
            self._path = made
        return self._path


def _remove(folder: Path, process: int) -> None:
    """Remove the folder, in the process that made it: one that was forked from it finalizes the same objects."""
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)
