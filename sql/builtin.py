"""Writes the built-in p-tables into ``perturbation.sql``: ``python -m sdcduck.sql.builtin`` (or ``make ptables``).

They are stored as text so that a plain DuckDB shell has p-tables to work with; a test keeps text and kernel in line.
"""

from __future__ import annotations

from pathlib import Path

from sdcduck.catalog import TABLES_SQL, StoredPTable, ptable_macros
from sdcduck.methods.perturbation.ptable import count_ptable, magnitude_ptable, modify_ptable
from sdcduck.quoting import literal
from sdcduck.udfs.perturbation.ptables import stored_form

FILE = Path(__file__).with_name("perturbation.sql")
BEGIN = "-- Built-in p-tables: written by `make ptables`, not by hand."
END = "-- End of the built-in p-tables."


def built_in_ptables() -> list[StoredPTable]:
    """The p-tables that every installation has."""
    return [
        stored_form(
            "default",
            [modify_ptable(count_ptable(D=5, V=2), threshold=0.2, seed=1)],
            origin="built in: counts, D = 5, V = 2, modified",
        ),
        stored_form(
            "default_magnitude",
            [modify_ptable(magnitude_ptable(D=5, V=1, step=5, icat=[1, 3, 5], optim=[4, 1, 1]), threshold=0.2, seed=1)],
            origin="built in: magnitudes, D = 5, V = 1, step = 5, icat = 1, 3, 5, modified",
        ),
    ]


def built_in_sql() -> str:
    """The statements that create the catalog's tables and the built-in p-tables where they are not there yet."""
    tables = built_in_ptables()
    statements = [TABLES_SQL.strip()]
    for table in tables:
        row = (
            f"{literal(table.name)}, {literal(table.kind)}, {table.modulus}, {table.step}, {table.repeat}, "
            f"{literal(table.origin)}"
        )
        statements.append(
            "INSERT INTO sdc.ptable_intervals SELECT * FROM (VALUES\n    "
            + ",\n    ".join(
                f"({literal(table.name)}, {literal(str(kind))}, {i:g}, {v:g}, {lb}, {ub})"
                for kind, i, v, lb, ub in zip(table.type, table.i, table.v, table.lb, table.ub, strict=True)
            )
            + f"\n) WHERE NOT EXISTS (FROM sdc.ptables WHERE name = {literal(table.name)});"
        )
        statements.append(
            f"INSERT INTO sdc.ptables SELECT {row} "
            f"WHERE NOT EXISTS (FROM sdc.ptables WHERE name = {literal(table.name)});"
        )
    lookups = [(table.name, table.lookup()) for table in tables]
    statements += [macro + ";" for macro in ptable_macros(lookups, create="CREATE MACRO IF NOT EXISTS")]
    return "\n".join(statements)


def with_built_in(text: str) -> str:
    """The text of ``perturbation.sql`` with the built-in section written anew."""
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n{built_in_sql()}\n{END}{after}"


if __name__ == "__main__":
    FILE.write_text(with_built_in(FILE.read_text()))
