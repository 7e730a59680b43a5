"""What questions about a table have cost, and what was drawn for them: a file for each table, in ``<register>.dp``.

All sessions and gateways of a register share it (`ChainedFile`). One table has one file, whoever asks and whatever its
policy is by now: people who ask in turn can put their answers together, and what was told is not untold by another
policy. It is made when the policy is declared: where it is gone, nobody knows what was spent, and nothing is answered.

Where a policy has a budget for each period, what counts is the time that stands in the lines. It never goes back, so
that a clock that is set back stands still in the period of the last charge, and begins none anew.

The first line says the version and the table. Each of the others is a charge, or the numbers that were drawn for one.
These are what was answered: nothing in the file is closer to a record than an answer is.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from sdcduck.catalog.chained_file import ChainedFile
from sdcduck.quoting import folded

VERSION = 1
PERIODS = ("day", "week", "month", "quarter", "year")
MOST = 1_000_000_000
"""Bytes of a file: of a table that was asked so much nothing new is answered."""


class CostFile(ChainedFile):
    """What questions about one table have cost.

    Args:
        register: the file of the database.
        table: that they are about.
        most: bytes that the file may have.
    """

    def __init__(self, register: Path, table: str, *, most: int = MOST) -> None:
        folder = register.with_name(f"{register.name}.dp")
        path = folder / f"{hashlib.sha256(folded(table).encode()).hexdigest()[:32]}.jsonl"
        first = {"version": VERSION, "table": folded(table)}
        super().__init__(path, f"the ledger {path.name}", first=first, most=most)


def period_of(period: str, now: datetime) -> tuple[datetime, datetime]:
    """When the period that a time is in begins, and when the next one does, in UTC; weeks begin on Mondays.

    >>> now = datetime(2026, 11, 27, 18, 30, tzinfo=UTC)
    >>> [f"{begins:%d.%m.%y}-{ends:%d.%m.%y}" for begins, ends in (period_of(period, now) for period in PERIODS)]
    ['27.11.26-28.11.26', '23.11.26-30.11.26', '01.11.26-01.12.26', '01.10.26-01.01.27', '01.01.26-01.01.27']

    Raises:
        ValueError: there is no such period.
    """
    day = now.astimezone(UTC).date()
    if period in ("day", "week"):
        begins = day - timedelta(days=day.weekday() if period == "week" else 0)
        ends = begins + timedelta(days=7 if period == "week" else 1)
    else:
        months = {"month": 1, "quarter": 3, "year": 12}.get(period)
        if months is None:
            raise ValueError(period)
        first = (day.month - 1) // months * months
        behind = first + months
        begins, ends = date(day.year, 1 + first, 1), date(day.year + behind // 12, 1 + behind % 12, 1)
    return _midnight(begins), _midnight(ends)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
