"""The columns of trips that have been cut into cells, as `sdc_trips_grid` calls them or under other names."""

from __future__ import annotations

from dataclasses import dataclass

from sdcduck.errors import SDCError
from sdcduck.functions.registry import Session
from sdcduck.udfs.source import Source, is_number, source

_TIMES = ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")


@dataclass(frozen=True)
class Cells:
    """A relation with a row for each cell of a trip; names are quoted.

    Attributes:
        rows: SQL of those rows that have a trip, a place in it and a cell, in parentheses.
    """

    relation: Source
    trip: str
    seq: str
    cell: str

    @classmethod
    def read(
        cls, session: Session, text: str | None, trip: str | None, seq: str | None, cell: str | None,
        argument: str = "source",
    ) -> Cells:  # fmt: skip
        relation = source(session.cursor(), text, argument)
        relation.check_names(tuple(relation.columns))
        found = cls(relation, relation.column(trip, "trip"), relation.column(seq, "seq"), relation.column(cell, "cell"))
        kind = relation.type_of(str(cell))
        if not is_number(kind) or kind.split("(")[0] in ("FLOAT", "DOUBLE", "DECIMAL"):
            raise SDCError(
                f"argument 'cell' must name a column of whole numbers: '{cell}' of {relation.described} is "
                f"{kind.split('(')[0]}"
            )
        return found

    @property
    def rows(self) -> str:
        known = " AND ".join(f"{name} IS NOT NULL" for name in (self.trip, self.seq, self.cell))
        return f"(FROM {self.relation.sql} WHERE {known})"

    @property
    def by_place(self) -> str:
        """The order of the cells of a trip; equal places are told apart by the cell, and not by how rows lie."""
        return f"{self.seq}, {self.cell}"


def time_column(relation: Source, name: str | None, *, hours: bool) -> str:
    """The quoted name of a column of times.

    Args:
        hours: it must be of times of a clock; else whatever has an order that numbers have, too.

    Raises:
        SDCError: there is no such column, or it holds something else.
    """
    found = relation.column(name, "t")
    kind = relation.type_of(str(name))
    if kind in _TIMES or (not hours and (kind == "DATE" or is_number(kind))):
        return found
    wanted = "times with an hour, of a type such as TIMESTAMP" if hours else "times, dates or numbers"
    held = kind.split("(")[0]
    raise SDCError(f"argument 't' must name a column of {wanted}: '{name}' of {relation.described} is {held}")
