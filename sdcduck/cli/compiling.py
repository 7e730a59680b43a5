"""``sdcduck compile``: a protected question as one text, for those who may only hand in SQL."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from sdcduck.cli.terminal import one_line_errors
from sdcduck.errors import SDCError
from sdcduck.guard import open_guard
from sdcduck.guard.engines.portable import UNTRIED


def compile_question(
    file: Annotated[Path, typer.Argument(help="A DuckDB file with policies.", show_default=False)],
    question: Annotated[str, typer.Argument(help="The SELECT, or - to read it from standard input.")],
    dialect: Annotated[
        str, typer.Option(help="Whose SQL it is written in: postgres, datafusion, duckdb, spark or trino.")
    ] = "postgres",
    role: Annotated[str, typer.Option(help="Whose policies hold: sdc_protect(.., role := ..).")] = "",
) -> None:
    """Write a question as one text of SQL that gives protected numbers where the records are.

    The text has the p-table in it and reads the tables of the policies by their names. It is for the custodian, who may
    run it there: it does not hinder anybody from running another one, and no record key is looked at. Counts are
    written, under cell_key, rounding and threshold; what is not known to give the same numbers is refused.
    """
    with one_line_errors():
        if not file.is_file():
            raise SDCError(f"there is no file '{file}'")
        with closing(open_guard(file, role=role)) as guard:
            text = guard.compiled(sys.stdin.read() if question == "-" else question, dialect)
        if dialect in UNTRIED:
            typer.echo(
                f"sdcduck: no {dialect} has been asked this: compare its numbers with those of the guard", err=True
            )
        typer.echo(text)
