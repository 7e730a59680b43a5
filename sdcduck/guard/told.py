"""What a guard tells of its database to whoever asks: relations, columns, noise, and what may be asked yet."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sdcduck.catalog import Policy
from sdcduck.guard.labels import without_labels
from sdcduck.guard.laws import Laws, Row
from sdcduck.guard.listings import Described
from sdcduck.guard.question import columns_of
from sdcduck.guard.question_budgets import Left, QuestionBudgets
from sdcduck.guard.refusals import Refused
from sdcduck.guard.releases import Releases
from sdcduck.guard.rewriter import Rewriter
from sdcduck.guard.rewritten import Rewritten
from sdcduck.guard.running import Limited, in_memory
from sdcduck.guard.schema import Schema
from sdcduck.guard.sequence import Sequences
from sdcduck.quoting import folded

_WITHOUT_ANSWER = frozenset(["SDC040", "SDC041", "SDC042", "SDC043", "SDC044", "SDC045", "SDC050", "SDC051", "SDC052"])
"""What questions are refused with that have no protected answer, whatever their words."""


@dataclass(frozen=True)
class Database:
    """What a guard knows of its database, beside the answers to questions.

    Attributes:
        schema: the policies.
        alone: held by whoever asks about them.
        rewriter: what makes of a question what runs.
        limited: runs it.
        laws: of the noise.
        sequences: what logins were told.
        questions: how many they asked.
        releases: what noise was paid for.
    """

    schema: Schema
    alone: threading.Lock
    rewriter: Rewriter
    limited: Limited
    laws: Laws
    sequences: Sequences
    questions: QuestionBudgets
    releases: Releases

    def policies(self, version: str) -> Mapping[str, Policy]:
        """The policies by the name of their table, folded."""
        with self.alone:
            return self.schema.policies(version)

    def relations(self, version: str) -> list[tuple[Policy, dict[str, str]]]:
        """The relations that can be asked about, with the columns that are visible and their DuckDB types."""
        found = []
        with self.alone:
            for _, policy in sorted(self.schema.policies(version).items()):
                with suppress(Refused):  # a table that was removed does not hide the others
                    described = self.schema.described(policy)
                    found.append((policy, {name: without_labels(kind) for name, kind in described.items()}))
        return found

    def unanswered(self, version: str) -> list[str]:
        """Of which relations nothing is known but why: what a custodian has to look at."""
        reasons = []
        with self.alone:
            for _, policy in sorted(self.schema.policies(version).items()):
                try:
                    self.schema.described(policy)
                except Refused as refused:
                    reasons.append(str(refused))
        return reasons

    def noise_of(self, table: str, version: str) -> Sequence[Row]:
        """The rows of `sdc_noise` for a table that whoever asks may see."""
        policy = self.policies(version).get(folded(table))
        if policy is None:
            raise Refused("SDC020", table)
        if policy.label != "unit-level":
            return []
        self.schema.check_facts(policy)
        self.schema.check_one_noise([policy])
        return self.laws.rows(policy)


class Told:
    """What is told of a database to one who asks (`sdcduck.guard.listings.Known`).

    Args:
        version: of the policies.
        user: who asks.
        rewrite: what runs in place of a question of theirs.
    """

    def __init__(self, database: Database, version: str, user: str, rewrite: Callable[[str], Rewritten]) -> None:
        self._database, self._version, self._user, self._rewrite = database, version, user, rewrite

    @in_memory()
    def relations(self) -> list[tuple[Policy, dict[str, str]]]:
        """The relations that can be asked about."""
        return self._database.relations(self._database.schema.version())

    @in_memory()
    def database(self) -> str:
        """What the database is called."""
        with self._database.alone:
            return self._database.schema.database()

    def described(self, query: str) -> list[Described]:
        """The columns of the answer to a query; of one that asks for records, those that it would have."""
        try:
            rewritten = self._rewrite(query)
        except Refused as refused:
            if refused.code not in _WITHOUT_ANSWER:
                raise
            try:
                rewritten = self._rewrite(f"SELECT * FROM ({query}\n) LIMIT 0")
            except Refused:
                raise refused from None
        worth = {folded(one.column): one.statistic for one in self._database.laws.worth(rewritten)}
        columns = self._database.limited.ask(lambda cursor: columns_of(cursor, rewritten.sql, ()))
        return [(name, kind, worth.get(folded(name), "")) for name, kind in columns]

    @in_memory()
    def answers(self, query: str) -> bool:
        """Whether a question would be answered; nothing is remembered of it."""
        schema = self._database.schema
        try:
            with self._database.alone, schema.relations.cached():
                self._database.rewriter.made(query, schema.policies(self._version))
        except Refused as refused:
            if refused.code not in _WITHOUT_ANSWER:
                raise
            return False
        return True

    @in_memory()
    def told(self) -> list[tuple[str, int, int, float | None, float]]:
        """What whoever asks was told so far."""
        return self._database.sequences.told(self._user, self._policies())

    @in_memory()
    def left(self) -> list[Left]:
        """What whoever asks may ask yet."""
        return self._database.questions.left(self._user, self._policies())

    @in_memory()
    def budgets(self) -> list[tuple[str, float, float, float, int, float | None, int, str, str | None]]:
        """Of each table with a budget, what questions may cost and have cost, whose it is, and until when."""
        found = []
        for policy in self._policies():
            if policy.privacy.holds:
                releases, privacy = self._database.releases, policy.privacy
                standing, until = releases.standing(policy, self._user), releases.until(policy)
                limits = (policy.name, privacy.epsilon, privacy.delta, privacy.per_question)
                stands = (standing.questions, _finite(standing.spent), standing.left)
                found.append((*limits, *stands, privacy.ledger, None if until is None else until.isoformat()))
        return found

    def _policies(self) -> list[Policy]:
        return list(self._database.policies(self._version).values())


def _finite(spent: float) -> float | None:
    """None: answers before had a delta, and no epsilon that this policy could count."""
    return spent if math.isfinite(spent) else None
