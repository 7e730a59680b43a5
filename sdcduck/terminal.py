"""What commands have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import typer

from sdcduck.errors import SDCError


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
