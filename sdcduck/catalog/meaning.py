"""Settings of DuckDB by which SQL means something else."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from sdcduck.errors import SDCError

_MEANING: Mapping[str, object] = {
    "integer_division": False, "default_null_order": "NULLS_LAST", "default_order": "ASCENDING",
    "scalar_subquery_error_on_multiple_rows": True, "ieee_floating_point_ops": True, "old_implicit_casting": False,
}  # fmt: skip
"""Settings by which SQL means something else, as they are when nobody has set them."""


def _changed(con: duckdb.DuckDBPyConnection) -> dict[str, object]:
    """What the settings are now that whoever has the instance has set; mostly nothing."""
    shown = ", ".join(f"current_setting('{name}')" for name in _MEANING)
    [found] = con.execute(f"SELECT {shown}").fetchall()
    spelt = {"ASC": "ASCENDING"}  # where somebody has set what it is anyway
    return {name: now for name, now in zip(_MEANING, found, strict=True) if spelt.get(str(now), now) != _MEANING[name]}


def as_unset(con: duckdb.DuckDBPyConnection) -> str:
    """What gives a session those settings as nobody has set them; mostly nothing.

    What we write in SQL, and what the guard judges, has to mean the same through every door: with ``integer_division``
    a mean would be a whole number, with another ``default_order`` a p-table another one.
    """
    return "; ".join(f"SET SESSION {name} = '{_MEANING[name]}'" for name in _changed(con))


def refuse_other_order(con: duckdb.DuckDBPyConnection) -> None:
    """Refuse to write ORDER BY into a statement of a session in which it has been set to mean another order.

    Raises:
        SDCError: it was, for the whole instance; that it was for one session alone is not seen.
    """
    changed = _changed(con)
    for name in ("default_order", "default_null_order"):
        if name in changed:
            raise SDCError(f"{name} is set to {changed[name]}, by which SQL means something else: RESET {name} first")
