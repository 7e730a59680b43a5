"""Who approved what leaves the house: planners behind ``sql/approvals_tables.sql``."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa

from sdcduck import catalog
from sdcduck.catalog import Approval, Release
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.quoting import folded
from sdcduck.udfs.arguments import person

_COLUMNS = pa.schema(
    [
        ("name", pa.string()), ("kind", pa.string()), ("cells", pa.int64()), ("approved_by", pa.string()),
        ("approved_at", pa.timestamp("us")), ("note", pa.string()), ("current", pa.bool_()),
        ("fingerprint", pa.string()),
    ]
)  # fmt: skip


def plan_releases(session: Session) -> Rows:
    """``sdc_releases``."""

    def read() -> pa.Table:
        with closing(session.cursor()) as cursor:
            stored = catalog.approvals(cursor)
            rows = []
            for release in catalog.releases(cursor):
                cells, fingerprint = catalog.numbers_of(cursor, release)
                seen: list[Approval | None] = [*catalog.approvals_of(stored, release)]
                rows += [_row(release, cells, fingerprint, one) for one in seen or [None]]
        return pa.Table.from_pylist(rows, schema=_COLUMNS)

    return Rows(read)


def _row(release: Release, cells: int, fingerprint: str, approval: Approval | None) -> dict[str, object]:
    row: dict[str, object] = {"name": release.name, "kind": release.kind, "cells": cells, "fingerprint": fingerprint}
    if approval is not None:
        row |= {"approved_by": approval.approved_by, "approved_at": approval.approved_at, "note": approval.note}
        row["current"] = approval.fingerprint == fingerprint
    return row


def plan_approve(
    session: Session, name: str | None, approved_by: str | None, note: str | None, fingerprint: str | None
) -> Rows:
    """``sdc_approve``: writes down who approved which numbers."""
    who = person(approved_by, "approved_by")
    said = (note or "").strip() or None
    with closing(session.cursor()) as cursor:
        if catalog.is_read_only(cursor):
            raise SDCError("an approval is stored in the database, which is open for reading only")
        release = _release(catalog.releases(cursor), name)

    def approve() -> pa.Table:
        with closing(session.cursor()) as cursor:
            cells, found = catalog.numbers_of(cursor, release)
            if fingerprint is not None and fingerprint != found:
                raise SDCError(
                    f"'{release.name}' has other numbers than those that were looked at: look at it again, and "
                    "take the fingerprint that sdc_releases() shows"
                )
            catalog.store_approval(cursor, release.name, found, who, said)
        return pa.table({"name": [release.name], "approved_by": [who], "cells": [cells], "fingerprint": [found]})

    return Rows(approve)


def _release(known: list[Release], name: str | None) -> Release:
    """The one of that name; a publication and a table may share it, and then it is neither."""
    found = [one for one in known if folded(one.name) == folded(name or "")]
    if not found:
        raise unknown("release", str(name), [one.name for one in known])
    if len(found) > 1:
        raise SDCError(f"there is a publication and a table '{name}': rename the table")
    return found[0]


FAMILY = Family(
    name="approvals",
    stored=("approvals.sql",),
    temporary=("approvals_tables.sql",),
    planners=(*planners(plan_releases, plan_approve),),
)
