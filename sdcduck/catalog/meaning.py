"""Settings of DuckDB by which SQL means something else, and optimizers of DuckDB that change answers."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

import duckdb

from sdcduck.errors import SDCError
from sdcduck.quoting import sql_value

WRONG_OPTIMIZERS = ("common_subplan",) if duckdb.__version__.startswith(("1.5.", "2.0.")) else ()
"""Those that work out once what a query has twice: where that is an outer join, DuckDB 2.0.1 loses rows, and 1.5.6
takes one column for another. A view of such a join, or a query with one, stands twice in statements of ours.
"""

_MEANING: Mapping[str, object] = {
    "integer_division": False, "default_null_order": "NULLS_LAST", "default_order": "ASCENDING",
    "scalar_subquery_error_on_multiple_rows": True, "ieee_floating_point_ops": True, "old_implicit_casting": False,
}  # fmt: skip
"""Settings by which SQL means something else, as they are when nobody has set them."""


_SPELT: Mapping[object, object] = {"ASC": "ASCENDING"}
"""Other spellings of what a setting is anyway."""


def as_unset(con: duckdb.DuckDBPyConnection) -> str:
    """What gives a session those settings as nobody has set them; mostly nothing.

    What we write in SQL, and what the guard judges, has to mean the same through every door: with ``integer_division``
    a mean would be a whole number, with another ``default_order`` a p-table another one.
    """
    shown = ", ".join(f"current_setting('{name}')" for name in _MEANING)
    [found] = con.execute(f"SELECT {shown}").fetchall()
    changed = [name for name, now in zip(_MEANING, found, strict=True) if _SPELT.get(now, now) != _MEANING[name]]
    return "; ".join(f"SET SESSION {name} = '{_MEANING[name]}'" for name in changed)


def refuse_other_order(default_order: str, default_null_order: str) -> None:
    """Refuse to write ORDER BY into a statement of a session in which it means another order.

    Raises:
        SDCError: one of these settings of the session is not as when nobody has set it.
    """
    for name, now in (("default_order", default_order), ("default_null_order", default_null_order)):
        if _SPELT.get(now, now) != _MEANING[name]:
            raise SDCError(f"{name} is set to {now}, by which ORDER BY means another order: RESET {name} first")


_SWITCHING = threading.Lock()


def switch_off(con: duckdb.DuckDBPyConnection, optimizers: Iterable[str]) -> list[str]:
    """Add optimizers to those which are off in somebody's instance; returns those that were on.

    DuckDB has no such setting for one connection.

    Raises:
        SDCError: its settings are locked, so that they stay on.
    """
    with _SWITCHING:
        off = _switched_off(con)
        found = [name for name in optimizers if name not in off]
        if found:
            everything = ",".join([*off, *found])
            try:
                con.execute(f"SET disabled_optimizers = {sql_value(everything)}")
            except duckdb.InvalidInputException:
                raise SDCError(
                    "the settings of this database are locked, and optimizers of DuckDB that change answers are on: "
                    f"SET disabled_optimizers = '{everything}' before lock_configuration"
                ) from None
        return found


def switch_on(con: duckdb.DuckDBPyConnection, optimizers: Iterable[str]) -> None:
    """Take optimizers back that `switch_off` returned."""
    with _SWITCHING:
        off = _switched_off(con)
        left = [name for name in off if name not in set(optimizers)]
        if left != off:
            con.execute(f"SET disabled_optimizers = {sql_value(','.join(left))}")


def _switched_off(con: duckdb.DuckDBPyConnection) -> list[str]:
    [(text,)] = con.execute("SELECT current_setting('disabled_optimizers')").fetchall()
    return [name.strip() for name in str(text).split(",") if name.strip()]
