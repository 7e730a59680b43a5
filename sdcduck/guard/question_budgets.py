"""A plain limit: how many questions a login may ask about a table in a day (`sdc_question_budget`).

A question is counted once the guard would answer it, before anything else is written down, and whatever becomes of it;
asked again it is counted again. What looks at no record, as EXPLAIN, is no question.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from sdcduck.catalog import Policy
from sdcduck.catalog.chained_file import ChainBroken
from sdcduck.catalog.question_files import OverBudget, QuestionFiles
from sdcduck.guard.refusals import Refused
from sdcduck.guard.rewritten import Rewritten
from sdcduck.quoting import folded

Left = tuple[str, int, int, int, str]
"""Of a table: its name, the questions that were asked, that may be, that are left, and the day."""


class QuestionBudgets:
    """Counts the questions of logins.

    Args:
        register: the file of the database; None: there is none.
    """

    def __init__(self, register: Path | None) -> None:
        self._files = None if register is None else QuestionFiles(register)

    def charge(self, rewritten: Rewritten, login: str) -> Rewritten:
        """Count a question, or refuse it; the question with what is left in its notice.

        Raises:
            Refused: there were as many as may be; or nobody knows how many there were.
        """
        budgets = {folded(one.name): one.questions for one in rewritten.policies if one.questions is not None}
        if not budgets:
            return rewritten
        if self._files is None:
            raise Refused("SDC072", "the database is in no file")
        try:
            left = self._files.count(login, budgets)
        except OverBudget as over:
            raise Refused("SDC073", f"{over.most} about {over.table}; again from {over.again} 00:00 UTC") from None
        except ChainBroken:
            raise Refused("SDC072", "it is not what was written") from None
        except OSError:
            raise Refused("SDC072") from None
        told = [f"{table}: {left[table]} of {most} questions are left today" for table, most in budgets.items()]
        return replace(rewritten, notice="; ".join(filter(None, [rewritten.notice, *told])))

    def left(self, login: str, policies: Iterable[Policy]) -> list[Left]:
        """What a login may ask yet.

        Raises:
            Refused: nobody knows how much it asked.
        """
        budgets = [(policy.name, policy.questions) for policy in policies if policy.questions is not None]
        if not budgets or self._files is None:
            return []
        try:
            day, asked = self._files.asked(login)
        except (ChainBroken, OSError):
            raise Refused("SDC072") from None
        return [
            (name, asked[folded(name)], most, max(most - asked[folded(name)], 0), day.isoformat())
            for name, most in budgets
        ]
