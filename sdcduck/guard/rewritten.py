"""What a question becomes: a query that may run, and what it depends on."""

from __future__ import annotations

from dataclasses import dataclass

from sdcduck.catalog import Policy
from sdcduck.guard.known import Shape
from sdcduck.guard.origins import Origin
from sdcduck.guard.relations import Unique


@dataclass(frozen=True)
class Rewritten:
    """A query that may run.

    Attributes:
        sql: what runs.
        notes: what was protected.
        unique: public relations with columns that must identify their rows at the time it runs.
        tables: that have a policy and that the query names, for the audit log.
        methods: that protect those of unit-level records.
        policies: of the unit-level tables, which must still be as they were declared.
        notice: what whoever asked has to be told with the answer.
        columns: what each column of the answer is made of.
        grouped: the rows are groups of units, or some of them.
        constant: the answer stands in the question, as in SELECT 1, with which programs ask whether anybody is there.
        shapes: of these tables, which must still be the same.
        preview: the policy of the table that it shows made-up rows of.
        rows: that may be in memory at once, for they may be wide; None: as many as of any query.
    """

    sql: str
    notes: tuple[str, ...]
    unique: tuple[Unique, ...]
    tables: tuple[str, ...]
    methods: tuple[str, ...]
    policies: tuple[Policy, ...]
    notice: str = ""
    columns: tuple[Origin, ...] = ()
    grouped: bool = False
    constant: bool = False
    shapes: tuple[Shape, ...] = ()
    rows: int | None = None
    preview: Policy | None = None
