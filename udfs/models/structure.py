"""Whether a trained model may leave: the planner of ``sdc_check_model``."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.models.saved import Saved
from sdcduck.methods.models.structure import Finding, findings
from sdcduck.udfs.arguments import needed, whole
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, read_file, source

_LEAST = 2
_MOST_RECORDS = 10**15

COLUMNS = {
    "part": "VARCHAR", "class": "VARCHAR", "measure": "VARCHAR", "value": "DOUBLE", "wanted": "DOUBLE",
    "status": "VARCHAR", "why": "VARCHAR", "sha256": "VARCHAR",
}  # fmt: skip


def plan_check_model(
    session: Session, path: str | None, text: str | None, leaf: list[str] | None, outcome: str | None,
    records: int | None, threshold: int | None, min_df: int | None,
) -> Rows:  # fmt: skip
    """``sdc_check_model``: a file, or records with their leaves or scores."""
    least = whole(threshold, "threshold", least=_LEAST, why="with 1, every leaf passes")
    degrees = whole(min_df, "min_df", least=_LEAST)
    number = None if records is None else whole(records, "records", least=1, most=_MOST_RECORDS)
    if (path is None) == (text is None):
        raise SDCError("give either 'path', a file with a model, or 'source', records with their leaves or scores")
    if text is not None:
        relation = source(session.cursor(), text, "source")
        groups = relation.named(needed(leaf, "leaf", "name the columns that tell the leaf, or the scores"), "leaf")
        if outcome is not None:
            relation.column(outcome, "outcome")
        return Rows(lambda: _of_records(session, relation, groups, outcome, least))
    for given, name in ((leaf, "leaf"), (outcome, "outcome")):
        if given:
            raise SDCError(f"argument '{name}' goes with 'source'")

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            content = bytes(read_file(cursor, path, "content"))
        found = findings(Saved(content), number, least, degrees)
        return _table(found, hashlib.sha256(content).hexdigest())

    return Rows(make)


def _table(found: list[Finding], fingerprint: str | None) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for one in found:
        row = asdict(one)
        row["class"] = row.pop("kind")
        row["part"] = row["part"] or None
        rows.append(row | {"sha256": fingerprint})
    return table_of(rows, COLUMNS)


def _of_records(
    session: Session, relation: Source, groups: tuple[str, ...], outcome: str | None, least: int
) -> pa.Table:
    """Records of a leaf, or with the same scores, are those that the model does not tell apart."""
    keys = ", ".join(relation.column(name, "leaf") for name in groups)
    values = "NULL" if outcome is None else relation.column(outcome, "outcome")
    with reads(session.cursor()) as cursor:
        row = cursor.execute(
            f"SELECT count(*), min(n), count(*) FILTER (alike) FROM (SELECT count(*) AS n, "
            f"count(DISTINCT {values}) + (count(*) > count({values}))::INTEGER = 1 AS alike "
            f"FROM {relation.sql} GROUP BY {keys})"
        ).fetchall()[0]
    leaves, smallest, alike = row
    if not leaves:
        raise SDCError("'source' has no records")
    low = smallest < least
    found = [
        Finding("", "", "smallest leaf", smallest, least, "fail" if low else "pass", "threshold" if low else None),
        Finding("", "", "leaves of one class", None, 0, "review", "say what was predicted (argument 'outcome')")
        if outcome is None
        else Finding(
            "", "", "leaves of one class", alike, 0, "fail" if alike else "pass", "class disclosure" if alike else None
        ),
    ]
    return _table(found, None)


PLANNERS = planners(plan_check_model)
