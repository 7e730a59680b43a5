"""How many questions a login may ask in a day, and asked: planners behind ``sql/sequence_budget_tables.sql``."""

from __future__ import annotations

import pyarrow as pa

from sdcduck import catalog
from sdcduck.catalog import Policy
from sdcduck.catalog.question_files import all_asked
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.declared import planner
from sdcduck.functions.registry import Rows, Session
from sdcduck.quoting import folded
from sdcduck.udfs.arguments import needed, whole
from sdcduck.udfs.sequence.answers import known_table

_NONE = "a budget of questions"


def plan_question_budget(session: Session, tbl: str | None, questions: int | None, role: str | None) -> Rows:
    """``sdc_question_budget``: stores it, or takes it away."""
    most = None if questions is None else whole(questions, "questions", least=1, why="NULL for no budget")
    # To take away what is not there is no error.
    name = known_table(session, tbl) if most is None else _policy(session, tbl, role).name
    whose, cursor = folded(role or ""), session.cursor()
    if catalog.is_read_only(cursor):
        raise SDCError(f"{_NONE} is stored in the database, which is open for reading only")
    if most is not None and catalog.file_of(cursor) is None:
        raise SDCError(f"{_NONE}: what was asked is counted beside the database, which is in no file")

    def store() -> pa.Table:
        catalog.store_budget(session.cursor(), name, whose, most)
        return pa.table({"name": [name], "role": [whose], "questions": pa.array([most], pa.int64())})

    return Rows(store)


def plan_questions(session: Session, tbl: str | None, login: str | None) -> Rows:
    """``sdc_questions``: one row for each login and day, of the files that are there."""
    name = known_table(session, tbl)

    def read() -> pa.Table:
        register = catalog.file_of(session.cursor())
        try:
            every = [] if register is None else all_asked(register)
        except (SDCError, OSError) as problem:
            raise SDCError(f"what was asked is not known: {problem}") from None
        rows = [(who, day, asked[name]) for who, day, asked in every if asked[name] and login in (None, who)]
        return pa.table(
            {
                "login": pa.array([who for who, _, _ in rows], pa.string()),
                "day": pa.array([day.isoformat() for _, day, _ in rows], pa.string()),
                "asked": pa.array([asked for *_, asked in rows], pa.int64()),
            }
        )

    return Rows(read, "SELECT * REPLACE (day::DATE AS day) FROM {rows} ORDER BY day, login")


def _policy(session: Session, tbl: str | None, role: str | None) -> Policy:
    """The policy of a table with records for a role."""
    name, whose = folded(needed(tbl, "tbl", "name the table")), folded(role or "")
    every = catalog.policies(session.cursor())
    known = {folded(one.name): one for one in every if one.label == "unit-level" and folded(one.role) == whose}
    if name not in known:
        raise unknown("policy", str(tbl), [policy.name for policy in known.values()])
    return known[name]


PLANNERS = (
    planner(plan_question_budget),
    planner(plan_questions, {"login": "VARCHAR", "day": "VARCHAR", "asked": "BIGINT"}),
)
