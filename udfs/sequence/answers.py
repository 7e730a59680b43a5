"""What logins were told: planners behind ``sql/sequence_answers_tables.sql``."""

from __future__ import annotations

import pyarrow as pa

from sdcduck import catalog
from sdcduck.catalog.chained_file import ChainBroken, Line
from sdcduck.catalog.knowledge_files import KnowledgeFile, all_lines
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.declared import planner
from sdcduck.functions.registry import Rows, Session
from sdcduck.quoting import folded
from sdcduck.udfs.arguments import needed

_LOST = "what '{}' was told is not known: {}; move the file and the one beside it, .last, away to begin anew"


def plan_sequence(session: Session, tbl: str | None, login: str | None) -> Rows:
    """``sdc_sequence``: one row for each answer that told something new."""
    name = _policy(session, tbl)

    def read() -> pa.Table:
        register = catalog.file_of(session.cursor())
        try:
            if register is None:
                told = dict[str, list[Line]]()
            elif login is None:
                told = all_lines(register)
            else:
                told = {login: KnowledgeFile(register, login).lines()}
        except (ChainBroken, OSError) as problem:
            raise SDCError(_LOST.format("a login" if login is None else login, problem)) from None
        lines = [
            (who, number, line)
            for who, every in sorted(told.items())
            for number, line in enumerate((line for line in every if line["policy"] == name), 1)
        ]
        return pa.table(
            {
                "login": pa.array([who for who, _, _ in lines], pa.string()),
                "number": pa.array([number for _, number, _ in lines], pa.int64()),
                "time": pa.array([line["time"] for *_, line in lines], pa.string()),
                "question": pa.array([line.get("query") for *_, line in lines], pa.string()),
                "cells": pa.array([line.get("cells") for *_, line in lines], pa.int64()),
                "new_sets": pa.array([line.get("new") for *_, line in lines], pa.int64()),
                "least_error": pa.array([line.get("least_error") for *_, line in lines], pa.float64()),
                "verdict": pa.array([line["verdict"] for *_, line in lines], pa.string()),
            }
        )

    return Rows(read, 'SELECT * REPLACE ("time"::TIMESTAMP AS "time") FROM {rows}')


def plan_sequence_forget(session: Session, tbl: str | None, login: str | None) -> Rows:
    """``sdc_sequence_forget``: a line that says that what stands before it is not counted."""
    name, who = _policy(session, tbl), needed(login, "login", "name the login")

    def forget() -> pa.Table:
        register = catalog.file_of(session.cursor())
        counted = 0
        try:
            if register is not None and (file := KnowledgeFile(register, who)).lines():
                with file.held() as held:
                    counted = _counted(held.lines()[1], name)
                    held.append(policy=name, verdict="forgotten")
        except (ChainBroken, OSError) as problem:
            raise SDCError(_LOST.format(who, problem)) from None
        return pa.table({"login": [who], "answers": pa.array([counted], pa.int64())})

    return Rows(forget)


def _counted(lines: list[Line], name: str) -> int:
    """The answers since somebody began anew."""
    counted = 0
    for line in lines:
        if line["policy"] == name:
            counted = 0 if line["verdict"] == "forgotten" else counted + 1
    return counted


def _policy(session: Session, tbl: str | None) -> str:
    """The folded name of a table that is there, or has a policy."""
    wanted = needed(tbl, "tbl", "name the table")
    cursor = session.cursor()
    here = "database_name = current_database() AND schema_name = 'main' AND NOT internal"
    tables = f"SELECT table_name FROM duckdb_tables() WHERE {here}"
    rows = cursor.execute(f"{tables} UNION ALL SELECT view_name FROM duckdb_views() WHERE {here}").fetchall()
    known = [*(policy.name for policy in catalog.policies(cursor)), *(name for (name,) in rows)]
    if folded(wanted) not in map(folded, known):
        raise unknown("table", wanted, known)
    return folded(wanted)


_COLUMNS = {
    "login": "VARCHAR", "number": "BIGINT", "time": "VARCHAR", "question": "VARCHAR", "cells": "BIGINT",
    "new_sets": "BIGINT", "least_error": "DOUBLE", "verdict": "VARCHAR",
}  # fmt: skip
PLANNERS = (planner(plan_sequence, _COLUMNS), planner(plan_sequence_forget))
