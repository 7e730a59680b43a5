"""What a question becomes: a query that may run, and what it depends on."""

from __future__ import annotations

from dataclasses import dataclass

from sdcduck.catalog import Policy
from sdcduck.guard.calls import Noised
from sdcduck.guard.engines.cut import Cut
from sdcduck.guard.methods import METHODS
from sdcduck.guard.relation_schemas import RelationSchema
from sdcduck.guard.relations import Unique
from sdcduck.guard.worth import Terms, Worth

PREVIEW = "preview"
"""What stands for a method where rows are made up."""

_SHOWN = {**{name: method.shows for name, method in METHODS.items()}, PREVIEW: "made up"}


@dataclass(frozen=True)
class Origin:
    """What a column of an answer is made of.

    Attributes:
        name: of the column.
        protected: the tables whose protected numbers are in it, each with its method.
        grouped: the tables whose groups it names.
        computed: whether it was made from other columns, so that a NULL need not be one of the protection.
        terms: the protected numbers in it.
        linear: whether it is the sum of these, each times its factor.
    """

    name: str
    protected: frozenset[tuple[str, str]] = frozenset()
    grouped: frozenset[str] = frozenset()
    computed: bool = False
    terms: Terms = ()
    linear: bool = True

    @property
    def kind(self) -> str:
        """``public``, ``group``, ``perturbed``, ``rounded``, ``made up``, or ``exact``: a true number or none."""
        shown = {_SHOWN.get(method, "exact") for _, method in self.protected}
        for kind in ("made up", "perturbed", "rounded", "exact"):
            if kind in shown:
                return kind
        return "group" if self.grouped else "public"

    @property
    def withholds(self) -> bool:
        """Whether a NULL in it is a number that the protection does not show."""
        return bool(self.protected) and not self.computed


@dataclass(frozen=True)
class Counted:
    """What the numbers of one block count.

    Attributes:
        policy: the name of the table.
        sql: the query for the sets of inner cells.
        parameters: that stand in it.
        of: for each of its columns what is added up (`Figure.text`); empty: units are counted.
        reads: whether the query reads numbers of other blocks, which are charged before.
    """

    policy: str
    sql: str
    parameters: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    reads: bool = False


@dataclass(frozen=True)
class Release:
    """The totals of one block that noise is drawn for before there is an answer.

    Attributes:
        policy: the name of the table.
        stands_for: the text in the query, a relation without rows, that is replaced by what was drawn.
        cells: the query for all groups, over no record; empty: all records are one, or nobody may know the groups.
        totals: the query for the exact totals of the groups that have records.
        keys: the columns of the groups.
        columns: those of the totals, and what one record adds to each.
        adds_up: whether some numbers of the answer are sums of those of several groups.
        selects: the column of the number of units, by which groups appear that nobody may know; empty: all do.
        shown: how many of the columns were asked for: one more may be needed to choose the groups.
        twice: whether it stands in several places of the query, with the same noise.
        tables: the names of those whose records are looked at; none: that of the policy.
        contributions: how many rows a unit has at most; None: as many as the policy says.
    """

    policy: str
    stands_for: str
    cells: str
    totals: str
    keys: tuple[str, ...]
    columns: tuple[tuple[str, Noised], ...]
    adds_up: bool = False
    selects: str = ""
    shown: int | None = None
    twice: bool = False
    tables: tuple[str, ...] = ()
    contributions: int | None = None

    @property
    def grouped(self) -> bool:
        """Whether there are several groups."""
        return bool(self.cells or self.keys)


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
        schemas: of these tables, which must still be the same.
        preview: the policy of the table that it shows made-up rows of.
        sets: queries for what is counted, over the inner cells of policies that limit the sequence of answers.
        releases: what noise is drawn for; without it the query has no numbers.
        rows: that may be in memory at once, for they may be wide; None: as many as of any query.
        cut: its two parts, where the records are on another engine.
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
    schemas: tuple[RelationSchema, ...] = ()
    rows: int | None = None
    preview: Policy | None = None
    sets: tuple[Counted, ...] = ()
    releases: tuple[Release, ...] = ()
    cut: Cut | None = None


@dataclass(frozen=True)
class Explanation:
    """What became of a query.

    Attributes:
        answered: whether it would be answered.
        sql: the SQL that runs; empty when refused.
        notes: what was protected and how, or why the query is refused.
        milliseconds: it took to rewrite it.
        columns: what each column of the answer is made of; none where it is refused or empty.
        worth: how large the noise of each column is.
        engine: what an engine is asked that has the records; ``sql`` is about what it answers then.
    """

    answered: bool
    sql: str
    notes: tuple[str, ...]
    milliseconds: float
    columns: tuple[Origin, ...] = ()
    worth: tuple[Worth, ...] = ()
    engine: tuple[str, ...] = ()
