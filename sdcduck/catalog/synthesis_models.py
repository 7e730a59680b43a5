"""``sdc.synth_models``: models of synthetic records, which hold original values."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from sdcduck.catalog.database import first_row, transaction
from sdcduck.errors import unknown


@dataclass(frozen=True)
class SynthModel:
    """A stored model of synthetic records.

    Attributes:
        name: under which `sdc_synth_records` finds it.
        method: of the synthesis.
        columns: of the records, in words.
        records: that it was fitted to.
        header: JSON: what the columns are called, and their types.
        arrays: Arrow IPC: nodes of trees, and values of the donors in their leaves.
    """

    name: str
    method: str
    columns: str
    records: int
    header: str
    arrays: bytes


def synth_models(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The names of all models."""
    return [row[0] for row in con.execute("SELECT name FROM sdc.synth_models ORDER BY name").fetchall()]


def synth_model(con: duckdb.DuckDBPyConnection, name: str, *, arrays: bool = True) -> SynthModel:
    """A model; without its arrays if only the rest is wanted."""
    shown = "arrays" if arrays else "''::BLOB"
    row = first_row(
        con, f"SELECT name, method, columns, records, header, {shown} FROM sdc.synth_models WHERE name = ?", [name]
    )
    if row is None:
        raise unknown("model", name, synth_models(con))
    return SynthModel(*row)


def store_synth_model(con: duckdb.DuckDBPyConnection, model: SynthModel) -> None:
    """Store a model, replacing one of the same name, all or nothing."""
    with transaction(con):
        con.execute("DELETE FROM sdc.synth_models WHERE name = ?", [model.name])
        con.execute(
            "INSERT INTO sdc.synth_models VALUES (?, ?, ?, ?, ?, ?)",
            [model.name, model.method, model.columns, model.records, model.header, model.arrays],
        )


def drop_synth_model(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove a model."""
    con.execute("DELETE FROM sdc.synth_models WHERE name = ?", [name])
