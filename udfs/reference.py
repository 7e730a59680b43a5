"""``sdc_functions()``: the reference as a table."""

from __future__ import annotations

import pyarrow as pa

from sdcduck.errors import unknown
from sdcduck.functions.declared import planners
from sdcduck.functions.reference import sql_functions
from sdcduck.functions.registry import Family, Rows, Session

_COLUMNS = ("name", "family", "kind", "signature", "summary", "description", "example", "output", "source")


def plan_functions(session: Session, name: str | None) -> Rows:
    """Every function, or the one that was named."""
    chosen = [function for function in sql_functions() if name is None or function.name == name]
    if not chosen:
        raise unknown("function", str(name), [function.name for function in sql_functions()])

    def table() -> pa.Table:
        columns = {column: [getattr(function, column) for function in chosen] for column in _COLUMNS}
        return pa.table({**columns, "needs_python": [function.needs_python for function in chosen]})

    return Rows(table)


FAMILIES = (Family("reference", temporary=("reference.sql",), planners=planners(plan_functions)),)
