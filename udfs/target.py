"""Files that a statement writes: whole, or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.functions.jobs import confirm
from sdcduck.udfs.arguments import needed


@dataclass(frozen=True)
class Target:
    """Where the file goes.

    Attributes:
        path: of it.
        force: whether one that is there is replaced.
    """

    path: Path
    force: bool

    @classmethod
    def read(cls, cursor: duckdb.DuckDBPyConnection, file: str | None, force: bool | None) -> Target:
        """The argument ``file``, for a connection that may write files."""
        path = Path(needed(file, "file", "be the name of the file to be written"))
        if not catalog.first_row(cursor, "SELECT current_setting('enable_external_access')::BOOLEAN")[0]:  # type: ignore[index]
            raise SDCError("this connection may not write files (enable_external_access)")
        return cls(path, bool(force))

    def check(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Raises:
        SDCError: nothing can be written there, or there is something.
        """
        path = self.path
        if not path.absolute().parent.is_dir():
            raise SDCError(f"there is no folder '{path.parent}' to write '{path.name}' into")
        if path.is_dir():
            raise SDCError(f"'{path}' is a folder")
        if path.with_name(path.name + ".wal").exists():
            raise SDCError(f"'{path}' is a database in use: there is a '{path.name}.wal' beside it")
        if not path.exists():
            return
        opened = cursor.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL").fetchall()
        if any(Path(one).exists() and path.samefile(one) for (one,) in opened):
            raise SDCError(f"'{path}' is the database itself; export into another file")
        if not self.force:
            raise SDCError(f"'{path}' exists already; force := true (--force) replaces it")

    def write(self, name: str, fill: Callable[[Path], object]) -> None:
        """Write the file beside its place and put it there at the end.

        Args:
            name: of the file while it is made.
            fill: makes it.
        """
        with _beside(self.path) as folder:
            made = folder / name
            fill(made)
            confirm()  # somebody who interrupted the statement must not find the file
            self._put(made)

    def _put(self, made: Path) -> None:
        """Put what was made into its place."""
        if self.force:
            os.replace(made, self.path)
            return
        try:
            self.path.touch(exist_ok=False)  # the name is ours, or somebody was faster
        except FileExistsError:
            raise SDCError(f"'{self.path}' exists already; force := true (--force) replaces it") from None
        try:
            os.replace(made, self.path)
        except OSError:
            self.path.unlink()
            raise


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A folder for what is made.

    Raises:
        SDCError: the disk is full, nobody may write there, ..
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".sdcduck-", dir=path.absolute().parent) as folder:
            yield Path(folder)
    except OSError as problem:
        raise SDCError(f"'{path}' cannot be written: {problem.strerror or type(problem).__name__}") from None


def write_together(files: Sequence[tuple[Target, bytes]]) -> None:
    """Write files of one folder: none is put into its place before all are made."""
    with _beside(files[0][0].path) as folder:
        for place, (_, content) in enumerate(files):
            (folder / str(place)).write_bytes(content)
        confirm()  # as above
        there: list[Target] = []
        try:
            for place, (target, _) in enumerate(files):
                target._put(folder / str(place))
                there.append(target)
        except BaseException:
            for target in there:
                if not target.force:
                    target.path.unlink(missing_ok=True)
            raise
