"""What belongs to one unit, such as an order of a customer: what `sdc_protect` is given, read and checked."""

from __future__ import annotations

import json
from collections.abc import Sequence

import duckdb

from sdcduck import catalog
from sdcduck.catalog import Policy
from sdcduck.errors import SDCError
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import wrong
from sdcduck.udfs.source import Source

_FORM = "name for each dimension what it identifies"
_EXAMPLE = "such as {'order_id': 'order'}"


def read_owned(given: str | None, table: Source, dimensions: Sequence[str], method: str) -> tuple[tuple[str, str], ...]:
    """The dimensions that tell the unit, by the names that the table has, and what they identify.

    Raises:
        SDCError: they are none.
    """
    if given is None:
        return ()
    if method == "suppression":
        raise SDCError("argument 'owned' does not go with method := 'suppression', whose cells have no units")
    read = json.loads(given)
    if not isinstance(read, dict) or not read:
        raise wrong("owned", _FORM, _EXAMPLE)
    known = {folded(name): name for name in dimensions}
    found: dict[str, str] = {}
    for written, what in read.items():
        name = table.column(written, "owned")[1:-1].replace('""', '"')
        if not isinstance(what, str) or not what.strip():
            raise wrong("owned", _FORM, f"'{name}' is not so; {_EXAMPLE}")
        if folded(name) not in known:
            raise SDCError(f"argument 'owned': column '{name}' is not one of the dimensions")
        if known[folded(name)] in found:
            raise SDCError(f"argument 'owned' has column '{name}' twice")
        found[known[folded(name)]] = what
    return tuple(found.items())


def seen_of(
    cursor: duckdb.DuckDBPyConnection, table: Source, owned: Sequence[tuple[str, str]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of which each record has another value, as the orders of a table of orders; those without NULL."""
    facts = []
    for name, _ in owned:
        column = identifier(name)
        facts += [f"count({column}) = count(DISTINCT {column})", f"count({column}) = count(*)"]
    found = (catalog.first_row(cursor, f"SELECT {', '.join(facts)} FROM {table.sql}") or ()) if facts else ()
    names = [name for name, _ in owned]
    identifying, never_missing = (
        tuple(name for name, holds in zip(names, found[first::2], strict=True) if holds) for first in (0, 1)
    )
    return identifying, never_missing


def check_owned(cursor: duckdb.DuckDBPyConnection, policy: Policy) -> None:
    """Refuse what belongs to several units, in this table or in others of its population.

    Joined on it, rows of two units would be left out that whoever asks expects to be there.
    """
    for column, what in policy.owned:
        for name, unit, other in _alike(cursor, policy, what):
            rows = " UNION ".join(
                f"SELECT {identifier(key)} AS key, {identifier(who)}::VARCHAR AS unit FROM {identifier(of)}"
                for of, who, key in ((policy.name, str(policy.unit), column), (name, unit, other))
            )
            of_several = f"SELECT key FROM ({rows}) WHERE key IS NOT NULL GROUP BY key HAVING count(*) > 1"
            several = f"SELECT count(*) FROM ({of_several})"
            try:
                found = catalog.first_row(cursor, several)
            except (duckdb.CatalogException, duckdb.BinderException):  # it was removed, or its columns were
                continue
            if found is not None and found[0]:
                beside = "" if folded(name) == folded(policy.name) else f", beside '{other}' of '{name}',"
                raise SDCError(
                    f"argument 'owned': {found[0]} values of '{column}'{beside} are of several units: leave it out"
                )


def _alike(cursor: duckdb.DuckDBPyConnection, policy: Policy, what: str) -> list[tuple[str, str, str]]:
    """The columns that identify the same, in this table and others of its population: of each table, unit and name."""
    every = [policy]
    for other in catalog.policies(cursor):
        is_replaced = (folded(other.name), folded(other.role)) == (folded(policy.name), folded(policy.role))
        if not is_replaced and policy.population is not None and other.population == policy.population:
            every.append(other)
    return [
        (one.name, str(one.unit), column)
        for one in every
        for column, called in one.owned
        if folded(called) == folded(what)
    ]
