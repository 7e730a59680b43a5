"""What commands have in common: errors in one line, and the file that a custodian works on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import duckdb
import typer

from sdcduck.errors import SDCError

Engine = Annotated[
    str | None,
    typer.Option(
        "--records",
        metavar="ADDRESS",
        envvar="SDCDUCK_RECORDS",
        help="Where the records are, if not in the file: postgresql://user@host/database (password: PGPASSWORD or "
        "~/.pgpass), clickhouse:///folder?database=name, spark://host:port?table=files, or another DuckDB file.",
    ),
]
"""The engine that has the records."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """What the user can mend becomes one line on standard error; anything else is our fault and keeps its traceback."""
    try:
        yield
    except (SDCError, duckdb.Error, OSError) as problem:
        # DuckDB adds the place in the statement after an empty line.
        message = " ".join(str(problem).split("\n\nLINE ")[0].split())
        typer.echo(f"sdcduck: {message}", err=True)
        raise typer.Exit(1) from None


def opened(file: str | Path, *, read_only: bool = False, records: str | None = None) -> duckdb.DuckDBPyConnection:
    """A connection with the functions, whose methods are loaded now: the gateway and the shell do without them."""
    from sdcduck.functions.install import connect

    return connect(file, read_only=read_only, records=records)
