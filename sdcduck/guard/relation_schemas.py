"""What relations look like: the columns that DuckDB finds in them, and what views read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import duckdb

from sdcduck import catalog
from sdcduck.functions.registry import WITH_PYTHON
from sdcduck.guard.refusals import Refused
from sdcduck.quoting import folded, identifier


@dataclass(frozen=True)
class RelationSchema:
    """What a rewriting depends on of a relation: names and DuckDB types of its columns, and what a view reads."""

    name: str
    is_table: bool
    columns: tuple[tuple[str, str], ...]
    reads: catalog.Read | None = None


class RelationSchemas:
    """Looks at relations, with the connection held.

    Args:
        con: the guard's own connection.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self.con = con
        self._seen: dict[str, RelationSchema] | None = None
        self._texts: catalog.Texts | None = None

    @contextmanager
    def cached(self) -> Iterator[None]:
        """Look at each relation once, for as long as one question is rewritten and the connection is held.

        Nothing of it is known afterwards: the next question, and one that is remembered, finds what is there by then.
        """
        self._seen, self._texts = {}, catalog.Texts(self.con)
        try:
            yield
        finally:
            self._seen = self._texts = None

    def texts(self) -> catalog.Texts:
        """The views and macros of the database, which are listed once, too."""
        return catalog.Texts(self.con) if self._texts is None else self._texts

    def of(self, name: str) -> RelationSchema:
        """The schema of a relation, with what it reads.

        Raises:
            Refused: there is no such table any more.
        """
        relation = self.columns(name)
        if relation.is_table or relation.reads is not None:
            return relation
        return self._noted(replace(relation, reads=catalog.read_by(self.con, name, self.texts())))

    def columns(self, name: str) -> RelationSchema:
        """The same, of which it may not be known what a view reads: that takes longer.

        Raises:
            Refused: there is no such table any more.
        """
        if self._seen is not None and name in self._seen:
            return self._seen[name]
        # Tables have row identifiers, and views do not.
        for shown, is_table in (("rowid, *", True), ("*", False)):
            try:
                found = self.con.sql(f"SELECT {shown} FROM {identifier(name)}")
            except NO_TABLE as problem:
                if WITH_PYTHON in str(problem):
                    raise Refused("SDC060", _MADE_WITH_PYTHON.format(name)) from None
                continue
            except (duckdb.PermissionException, duckdb.IOException):
                raise Refused("SDC060", _READS_FILES.format(name)) from None
            columns = tuple(zip(map(str, found.columns), map(str, found.types), strict=True))
            called = is_table and any(folded(column) == "rowid" for column, _ in columns[1:])
            if called and catalog.is_view(self.con, name):  # with a column of that name
                continue
            return self._noted(RelationSchema(name, is_table, columns[is_table:]))
        raise Refused("SDC060", GONE.format(name))

    def unchanged(self, schemas: Sequence[RelationSchema]) -> bool:
        """Whether relations still look as they did."""
        try:
            with self.cached():
                return all(self.of(relation.name) == relation for relation in schemas)
        except Refused:
            return False

    def _noted(self, relation: RelationSchema) -> RelationSchema:
        if self._seen is not None:
            self._seen[relation.name] = relation
        return relation


GONE = "{}: the table was removed"
_READS_FILES = (
    "{}: a view of files that are not there or that may not be read here, open_guard(file, allow_dirs=[..]) or "
    "sdcduck serve --allow-dir"
)
_MADE_WITH_PYTHON = (
    "{}: a view with a function such as sdc_record_key, which only connections of sdcduck have; over a file keys have "
    "to be stored, sdc_add_record_key"
)
NO_TABLE = (duckdb.CatalogException, duckdb.BinderException, duckdb.InvalidInputException)
"""What DuckDB raises for a table that is not there; the last where a Python variable has its name."""
