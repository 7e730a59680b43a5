"""What has to be so for a method to answer, looked at before each question."""

from __future__ import annotations

import threading
from typing import Any, Protocol

import duckdb

from sdcduck.catalog import Policy


class Facts(Protocol):
    """What is known of the database (`sdcduck.guard.schema.Schema`)."""

    con: duckdb.DuckDBPyConnection
    alone: threading.Lock
    unchanging: bool

    def value(self, sql: str, otherwise: str) -> Any:
        """The first value of a query over what a policy needs; SDC060 with what to do ``otherwise``."""

    def is_unchanging(self, query: str) -> bool:
        """Whether a query has the same answer tomorrow, of a database that nobody changes."""


class Checks:
    """Nothing, beyond what is asked of the records of every table."""

    def of_records(self, facts: Facts, policy: Policy, rows: int) -> None:
        """Refuse a table that has another number of records than when it was looked at last."""

    def each_time(self, facts: Facts, policy: Policy) -> None:
        """Refuse what the method must not answer with."""

    def is_settled(self, policy: Policy) -> bool:
        """Whether there is nothing left to look at where nobody can change the database."""
        return True

    def stamp(self, policy: Policy) -> object:
        """Another one when what the noise of a policy is made of is another, beside the policy."""
        return None
