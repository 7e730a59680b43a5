"""The pattern of a stored publication as it was published."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sdcduck import catalog
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Session

Booleans = NDArray[np.bool_]


def published_secondary(
    session: Session, name: str, cells: str, dimensions: Sequence[str], levels: str, *roles: Booleans
) -> Booleans | None:
    """The secondary cells of a stored publication, in the order of its cells; None: the others are not as published.

    Args:
        cells: SQL of the cells, ``levels`` the list of their grouping sets in words.
        dimensions: the quoted names of the grouping columns.
        roles: masks of the primary, forced and hidden cells, as they are now.
    """
    match = "".join(f" AND e.{dimension} IS NOT DISTINCT FROM c.{dimension}" for dimension in dimensions)
    query = f"""
        SELECT coalesce(e.status, 'hidden') AS status
        FROM ({cells}) c LEFT JOIN {catalog.cells_table(name)} e ON e.level = {levels}[c._sdc_set + 1]{match}
        ORDER BY c._sdc_cell"""
    status = reads(session.cursor()).sql(query).to_arrow_table()["status"].to_numpy()
    same = len(status) == len(roles[0]) and all(
        np.array_equal(status == role, now) for role, now in zip(("primary", "forced", "hidden"), roles, strict=True)
    )
    return np.asarray(status == "secondary", dtype=np.bool_) if same else None
