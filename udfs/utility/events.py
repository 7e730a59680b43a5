"""Events in order, such as visits or jobs: planners behind ``sql/utility_tables.sql``.

Of each subject two events in a row are one record, and these are compared as other records are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Rows, Session
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import needed, whole, wrong
from sdcduck.udfs.source import Source, source
from sdcduck.udfs.utility.accuracy import plan_accuracy

_NEXT = "next_"


@dataclass(frozen=True)
class _Pairs:
    """Two events in a row of each subject.

    Attributes:
        events: the relation.
        subject: whose they are; quoted.
        order: what they are ordered by; quoted.
        once: columns that a subject has one value of.
        each: columns that every event has a value of.
        seed: of the choice.
    """

    events: Source
    subject: str
    order: str
    once: tuple[str, ...]
    each: tuple[str, ...]
    seed: int

    @classmethod
    def read(
        cls, events: Source, subject: str | None, order_by: str | None, columns: Sequence[str] | None,
        once: Sequence[str] | None, seed: int | None,
    ) -> _Pairs:  # fmt: skip
        """The arguments that say which events.

        Raises:
            SDCError: a column that there is not, or that has two places.
        """
        own, order = events.column(subject, "subject"), events.column(order_by, "order_by")
        kept = events.named(once, "once")
        used = {folded(str(name)) for name in (subject, *kept)}
        rest = [name for name in events.columns if folded(name) not in used | {folded(str(order_by))}]
        each = events.named(columns or rest, "columns")
        for name in each:
            if folded(name) in used:
                raise wrong("columns", f"hold what changes from event to event: '{name}' is the subject's")
        needed(each, "columns", "name what changes from event to event")
        events.check_names((*kept, *each))
        taken = {folded(name) for name in (str(subject), *kept, *each)}
        for name in each:
            if folded(_NEXT + name) in taken:
                raise wrong("columns", f"hold no '{_NEXT}{name}' beside '{name}': that is what the next event has")
        return cls(events, own, order, kept, each, whole(seed, "seed", least=0))

    @property
    def sql(self) -> str:
        """A query for them; its choice is up to the subject and the seed, and not to how records are stored.

        Of events at one time those with the lesser values come first.
        """
        each = [identifier(name) for name in self.each]
        shown = [self.subject, *map(identifier, self.once)]
        pairs = [part for name in each for part in (name, f"lead({name}) OVER _sdc_in_order AS {self._next(name)}")]
        order = ", ".join(f"{name} NULLS LAST" for name in (self.order, *each, *map(identifier, self.once)))
        first = f"md5_number(concat({self.seed}, ':', {self.subject})) % (_sdc_events - 1)::UHUGEINT"
        names = [part for name in each for part in (name, self._next(name))]
        return (
            f"SELECT {', '.join([*shown, *names])} FROM (SELECT {', '.join([*shown, *pairs])}, "
            "row_number() OVER _sdc_in_order AS _sdc_place, "
            f"count(*) OVER (PARTITION BY {self.subject}) AS _sdc_events "
            f"FROM {self.events.sql} WHERE {self.subject} IS NOT NULL "
            f"WINDOW _sdc_in_order AS (PARTITION BY {self.subject} ORDER BY {order})) "
            f"WHERE _sdc_place = CASE WHEN _sdc_events > 1 THEN 1 + ({first}) ELSE 1 END"
        )

    @staticmethod
    def _next(quoted: str) -> str:
        return f'"{_NEXT}{quoted[1:]}'

    def compared(self, names: Sequence[str]) -> list[str]:
        """Columns of the events as columns of the pairs."""
        each = {folded(name) for name in self.each}
        return [part for name in names for part in ([name, f"{_NEXT}{name}"] if folded(name) in each else [name])]


def plan_event_pairs(
    session: Session, events: str | None, subject: str | None, order_by: str | None, columns: list[str] | None,
    once: list[str] | None, seed: int | None,
) -> str:  # fmt: skip
    """``sdc_event_pairs``: of each subject two events in a row."""
    found = source(session.cursor(), events, "events")
    return f"{_Pairs.read(found, subject, order_by, columns, once, seed).sql} ORDER BY 1"


def plan_accuracy_events(
    session: Session, original: str | None, synthetic: str | None, subject: str | None, order_by: str | None,
    columns: list[str] | None, once: list[str] | None, ways: int | None, buckets: int | None,
    categorical: list[str] | None, holdout: str | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_accuracy_events``: the accuracy of such pairs."""
    cursor = session.cursor()
    sides = [("original", original), ("synthetic", synthetic), *([("holdout", holdout)] if holdout is not None else [])]
    first = source(cursor, original, "original")
    # All sides have the columns of the original, unless some are named.
    shared = _Pairs.read(first, subject, order_by, columns, once, seed)
    pairs = [
        _Pairs.read(source(cursor, text, which), subject, order_by, shared.each, once, seed) for which, text in sides
    ]
    made = [f"({one.sql})" for one in pairs]
    kept = made[2] if holdout is not None else None
    of_pairs = shared.compared([*shared.once, *shared.each])
    as_they_are = shared.compared(first.named(categorical, "categorical"))
    return plan_accuracy(session, made[0], made[1], of_pairs, ways, buckets, as_they_are, kept)


PLANNERS = (*planners(plan_event_pairs, plan_accuracy_events),)
