"""Every question is written down, or not answered."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from sdcduck.catalog.audit_log import OVER_QUOTA, AuditLog, OverQuota
from sdcduck.guard.refusals import Refused
from sdcduck.guard.relations import RAW
from sdcduck.guard.rewritten import Rewritten


class Auditing:
    """What a guard writes down.

    Args:
        log: where; None: nowhere.
        role: whose policies hold.
        raw: nothing is protected.
    """

    def __init__(self, log: AuditLog | None, *, role: str, raw: bool) -> None:
        self._log, self._role, self._raw = log, role, raw
        self.heard: Callable[[str, float, int], None] = lambda verdict, seconds, rows: None
        """Told of each line that is written down, or would be if there were a log: verdict, seconds, rows."""

    def settle(self) -> None:
        """Write down how many questions were left out of the audit log, where that is not written yet and can be."""
        if self._log is not None:
            with suppress(OSError):
                self._log.settle()

    def check(self, user: str) -> None:
        """Refuse the question of somebody who has written too much into the audit log, before it is looked at."""
        if self._log is None:
            return
        try:
            self._log.check_quota(user)
        except OSError as problem:
            self._refuse_unwritten(problem, 0.0)

    def write(
        self,
        query: str,
        user: str,
        start: float,
        verdict: str,
        rows: int,
        ran: Rewritten | None,
        version: str,
        *,
        end: bool = False,
        parameters: str = "",
    ) -> None:
        """Write down a question; without the line there is no answer.

        Args:
            end: whether it has a line already.
            parameters: with what values it was asked (`written_down`).
        """
        seconds = time.perf_counter() - start
        try:
            self._write(query, user, seconds, verdict, rows, ran, version, end=end, parameters=parameters)
        except OSError as problem:
            self._refuse_unwritten(problem, seconds)
        self.heard(verdict, seconds, rows)

    def _refuse_unwritten(self, problem: OSError, seconds: float) -> NoReturn:
        code = OVER_QUOTA if isinstance(problem, OverQuota) else "SDC092"
        self.heard(code, seconds, 0)
        raise Refused(code) from None

    def _write(
        self,
        query: str,
        user: str,
        seconds: float,
        verdict: str,
        rows: int,
        ran: Rewritten | None,
        version: str,
        *,
        end: bool,
        parameters: str,
    ) -> None:
        if self._log is not None:
            (self._log.write_end if end else self._log.write)(
                user=user,
                role=self._role,
                verdict=verdict,
                milliseconds=round(1000 * seconds, 3),
                rows=rows,
                query=query,
                **({"parameters": parameters} if parameters else {}),
                sql="" if ran is None else ran.sql,
                tables=[] if ran is None else list(ran.tables),
                methods=[RAW] if self._raw else [] if ran is None else list(ran.methods),
                policies=version,
            )
