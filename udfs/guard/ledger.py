"""What questions have cost under ``method := 'dp'``, and would cost: planners behind ``sql/dp_ledger_tables.sql``."""

from __future__ import annotations

import pyarrow as pa

from sdcduck import catalog
from sdcduck.catalog.chained_file import ChainBroken, Line
from sdcduck.catalog.cost_files import CostFile
from sdcduck.errors import SDCError
from sdcduck.functions.above import preview
from sdcduck.functions.declared import planner
from sdcduck.functions.registry import Rows, Session
from sdcduck.udfs.arguments import needed
from sdcduck.udfs.source import source

_LOST = "what questions about '{}' have cost is not known: {}; no question about it is answered until it is"
_TABLE = """SELECT "number", replace("time", '+00:00', '')::TIMESTAMP AS "time", login, question, unit, cost,
    sum(cost) OVER (PARTITION BY unit ORDER BY "number") AS spent, neighbours, ledger, delta FROM {rows}
    ORDER BY "number\""""


def plan_dp_ledger(session: Session, tbl: str | None) -> Rows:
    """``sdc_dp_ledger``: a row for each charge."""
    asked = source(session.cursor(), tbl, "tbl", elsewhere=True).text

    def read() -> pa.Table:
        register = catalog.file_of(session.cursor())
        try:
            lines: list[Line] = [] if register is None else CostFile(register, asked).lines()
        except (ChainBroken, OSError) as problem:
            raise SDCError(_LOST.format(asked, problem)) from None
        charges = [line for line in lines if line["kind"] != "drawn"]
        parts = {"time": "time", "login": "login", "question": "query", "unit": "unit", "neighbours": "neighbours"}
        told = {name: pa.array([line[part] for line in charges], pa.string()) for name, part in parts.items()}
        told["ledger"] = pa.array([line.get("ledger", "policy") for line in charges], pa.string())
        told["number"] = pa.array(range(1, len(charges) + 1), pa.int64())
        told["cost"] = pa.array([line["cost"] for line in charges], pa.float64())
        told["delta"] = pa.array([line.get("delta", 0.0) for line in charges], pa.float64())
        return pa.table({name: told[name] for name in _COLUMNS})

    return Rows(read, _TABLE)


_COLUMNS = {
    "number": "BIGINT", "time": "VARCHAR", "login": "VARCHAR", "question": "VARCHAR", "unit": "VARCHAR",
    "cost": "DOUBLE", "neighbours": "VARCHAR", "ledger": "VARCHAR", "delta": "DOUBLE",
}  # fmt: skip


def plan_dp_preview(session: Session, question: str | None, login: str | None, role: str | None) -> Rows:
    """``sdc_dp_preview``: a row for each column of the answer."""
    asked, asks = needed(question, "question", "give the text of a question"), preview()

    def ask() -> pa.Table:
        cursor = session.cursor()
        try:
            return asks(cursor, asked, login or "", role=role or "")
        finally:
            cursor.close()

    return Rows(ask)


_OF_PREVIEW = {
    "column": "VARCHAR", "statistic": "VARCHAR", "sd": "DOUBLE", "noise": "VARCHAR", "epsilon": "DOUBLE",
    "delta": "DOUBLE", "rho": "DOUBLE", "paid": "BOOLEAN", "enough": "BOOLEAN", "spent": "DOUBLE",
    "questions_left": "BIGINT",
}  # fmt: skip
PLANNERS = (planner(plan_dp_ledger, _COLUMNS), planner(plan_dp_preview, _OF_PREVIEW))
