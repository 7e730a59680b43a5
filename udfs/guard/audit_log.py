"""The audit log of a guard as a table: the planner behind ``sql/audit_log_tables.sql``."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa

from sdcduck.catalog.audit_reading import read_log
from sdcduck.functions.declared import planner
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.udfs.arguments import wrong
from sdcduck.udfs.source import read_file

_COLUMNS: Mapping[str, str] = {
    "number": "BIGINT", "time": "VARCHAR", "user": "VARCHAR", "role": "VARCHAR", "verdict": "VARCHAR",
    "milliseconds": "DOUBLE", "rows": "BIGINT", "query": "VARCHAR", "parameters": "VARCHAR", "sql": "VARCHAR",
    "tables": "VARCHAR", "methods": "VARCHAR", "policies": "VARCHAR", "left_out": "BIGINT", "cut": "VARCHAR",
    "hash": "VARCHAR",
}  # fmt: skip

# Times and lists travel as text.
_SELECT = """
    SELECT * REPLACE (
        "time"::TIMESTAMP AS "time", tables::JSON::VARCHAR[] AS tables,
        methods::JSON::VARCHAR[] AS methods, cut::JSON::VARCHAR[] AS cut
    ) FROM {rows}"""


def plan_audit_log(session: Session, path: str | None, first: int | None) -> Rows:
    """``sdc_audit_log``: one row a question, if the chain is whole."""
    if first is None or first < 1:
        raise wrong("first", "be the number of a file of the log, from 1")

    def read() -> pa.Table:
        # In the order of the columns.
        lines = [
            line | {"left_out": line.get("left_out", 0), "cut": [name for name in _COLUMNS if _is_cut(line.get(name))]}
            for line in read_log(str(read_file(session.cursor(), path, "filename, size")), first=first)
        ]
        return pa.table(
            {
                name: pa.array([_value(line.get(name), sql_type) for line in lines], _ARROW[sql_type])
                for name, sql_type in _COLUMNS.items()
            }
        )

    return Rows(read, _SELECT)


_ARROW = {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), "VARCHAR": pa.string()}


def _value(value: object, sql_type: str) -> object:
    if sql_type != "VARCHAR" or value is None:
        return value
    if isinstance(value, dict) and _is_cut(value):
        value = f"{value['begins']}.. [cut: {value['characters']} characters, SHA-256 {value['sha256']}]"
    text = value if isinstance(value, str) else json.dumps(value)
    # A question may hold halves of characters, which SQL has no place for.
    return text.encode("utf-8", "backslashreplace").decode()


def _is_cut(value: object) -> bool:
    """Whether a text was too long to be written whole."""
    return isinstance(value, dict) and "begins" in value


FAMILY = Family(
    name="audit_log",
    temporary=("audit_log_tables.sql",),
    planners=(planner(plan_audit_log, _COLUMNS),),
)
