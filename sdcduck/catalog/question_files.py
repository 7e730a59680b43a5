"""How many questions logins have asked: a file for each login and day, in folders beside the register.

They are in ``<register>.questions``, and chains of lines (`ChainedFile`) that all sessions and gateways of a login
share: a line is a question, with the tables that it was about. A day is one of UTC. It is never before the newest that
there is a file of, so that it does not begin again where a clock is set back; files of earlier days may be put away.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from sdcduck.catalog.chained_file import ChainBroken, ChainedFile, Held, Reached
from sdcduck.errors import SDCError

VERSION = 1
MOST = 64_000_000
"""Bytes of a file: a login that asked more asks nothing more on that day."""
_MOST_LOGINS = 1000


class OverBudget(SDCError):
    """The login has asked as much as it may on this day.

    Attributes:
        table: about what.
        most: questions of a day.
        again: the day on which it may ask.
    """

    def __init__(self, table: str, most: int, again: date) -> None:
        super().__init__(f"{most} questions about {table} were asked; the next may be on {again}")
        self.table, self.most, self.again = table, most, again


@dataclass
class _Day:
    """What a login asked on a day, as far as the file was read."""

    day: date
    file: ChainedFile
    reached: Reached | None = None
    asked: Counter[str] = field(default_factory=Counter)

    def read_on(self, held: Held) -> None:
        self.reached, lines = held.lines(self.reached)
        for line in lines:
            self.asked.update(line["tables"])


class QuestionFiles:
    """Counts questions.

    Args:
        register: the file of the database.
        clock: tells the time.
    """

    def __init__(self, register: Path, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._folder, self._clock = folder_of(register), clock
        self._threads = threading.Lock()
        self._days: dict[str, _Day] = {}

    def count(self, login: str, budgets: Mapping[str, int]) -> dict[str, int]:
        """Count a question about tables, on disk before it returns; how many are left about each.

        Args:
            budgets: how many a day may be about each of these.

        Raises:
            OverBudget: it would be one too many, and is not counted.
            ChainBroken: it is not known how many there were.
            OSError: that cannot be read or written.
        """
        with self._threads:
            today = self._today(login)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with today.file.held() as held:
                today.read_on(held)
                for table, most in sorted(budgets.items()):
                    if today.asked[table] >= most:
                        raise OverBudget(table, most, today.day + timedelta(1))
                held.append(tables=sorted(budgets))
                today.read_on(held)
                return {table: most - today.asked[table] for table, most in sorted(budgets.items())}

    def asked(self, login: str) -> tuple[date, Counter[str]]:
        """The day, and the questions about each table on it.

        Raises:
            ChainBroken: it is not known how many there were.
            OSError: that cannot be read.
        """
        with self._threads:
            today = self._today(login)
            return today.day, Counter(table for line in today.file.lines() for table in line["tables"])

    def _today(self, login: str) -> _Day:
        of_login = self._folder / hashlib.sha256(login.encode()).hexdigest()[:32]
        try:
            newest = max((date.fromisoformat(path.stem) for path in of_login.glob("*.jsonl")), default=date.min)
        except ValueError:
            raise ChainBroken(f"in {of_login.name} there is a file of no day") from None
        known = self._days.get(login)
        if known is not None:
            newest = max(newest, known.day)
        day = max(newest, self._clock().astimezone(UTC).date())
        if known is None or known.day != day:
            if len(self._days) >= _MOST_LOGINS:
                self._days.clear()
            path = of_login / f"{day.isoformat()}.jsonl"
            first = {"version": VERSION, "login": login, "day": day.isoformat()}
            file = ChainedFile(path, f"the file of questions of {day}", first=first, most=MOST)
            known = self._days[login] = _Day(day, file)
        return known


def folder_of(register: Path) -> Path:
    """The folder with what logins asked of a register."""
    return register.with_name(f"{register.name}.questions")


def all_asked(register: Path) -> list[tuple[str, date, Counter[str]]]:
    """The questions about each table, of all logins and days that there are files of.

    Raises:
        ChainBroken: of one of them it is not known.
        OSError: a file cannot be read.
    """
    found = []
    for path in sorted(folder_of(register).glob("*/*.jsonl")):
        file = ChainedFile(path, f"the file of questions {path.parent.name}/{path.name}")
        lines = file.lines()
        if lines:
            asked = Counter(table for line in lines[1:] for table in line["tables"])
            found.append((lines[0]["login"], date.fromisoformat(lines[0]["day"]), asked))
    return found
