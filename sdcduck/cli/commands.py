"""The command line: ``sdcduck demo``, ``sql``, ``report``, ``export``, ``functions``, the gateway and the shell.

Results are plain text, whole and without colours, wherever the output is not a terminal. An error is one line on
standard error and the exit code 1.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from importlib.metadata import version
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import duckdb
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sdcduck.cli.compiling import compile_question
from sdcduck.cli.desk import desk
from sdcduck.cli.gateway import serve, user
from sdcduck.cli.plans import plan
from sdcduck.cli.shell import shell
from sdcduck.cli.terminal import Engine, one_line_errors, opened
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.reference import SQLFunction, render, sql_functions
from sdcduck.report import assess as write_assessment
from sdcduck.report import publication_report

Rows = Sequence[Sequence[object]]

app = typer.Typer(
    help="Statistical disclosure control as SQL inside DuckDB.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(serve)
app.command()(shell)
app.command("compile")(compile_question)
app.command()(desk)
app.add_typer(user, name="user")
app.add_typer(plan, name="plan")


class Format(StrEnum):
    """How `sdcduck sql` writes a result."""

    table = "table"
    csv = "csv"
    json = "json"


def main() -> None:
    """The entry point of the command ``sdcduck``."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sdcduck {version('sdcduck')}, DuckDB {duckdb.__version__}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the versions and stop.")
    ] = False,
) -> None:
    """Statistical disclosure control as SQL inside DuckDB."""


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where the tables and pictures are written.")] = Path("out"),
) -> None:
    """Protect a large real data set, measure risk and utility, and draw what happened."""
    with one_line_errors():
        try:
            from sdcduck.cli.demo import run

            run(folder)
        except ModuleNotFoundError as missing:
            if (missing.name or "").startswith("sdcduck"):
                raise
            raise SDCError(f"the demo needs the package '{missing.name}': pip install 'sdcduck[demo]'") from None


@app.command()
def sql(
    file: Annotated[str, typer.Argument(help="A DuckDB file, or :memory:", show_default=False)],
    statement: Annotated[str, typer.Argument(help="SQL statements, or - to read them from standard input.")],
    output: Annotated[Format, typer.Option("--format", help="How the result is written.")] = Format.table,
    rows: Annotated[int, typer.Option(min=0, help="Rows of a table to show; 0 for all. csv and json have all.")] = 100,
    create: Annotated[bool, typer.Option("--create", help="Make the file if there is none.")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Open the file for reading only.")] = False,
    records: Engine = None,
) -> None:
    """Run SQL with the sdc_* functions on a DuckDB file; the result of the last statement is shown.

    A file that may not be written is opened for reading only. The secret of the record keys is taken from the
    environment: SDCDUCK_SECRET, or SDCDUCK_SECRET_FILE, which names a file.
    """
    with one_line_errors():
        _check_file(file, create=create, read_only=read_only)
        text = sys.stdin.read() if statement == "-" else statement
        in_memory = file == ":memory:"
        only_read = not in_memory and (read_only or not _is_writable(Path(file)))
        with opened(file, read_only=only_read, records=records) as con:
            limit = rows + 1 if output is Format.table and rows else None
            columns, found = _last_result(con, text, limit)
        if columns:
            _write(columns, found, output, rows)


def _check_file(file: str, *, create: bool, read_only: bool) -> None:
    if file == ":memory:":
        return
    path = Path(file)
    if create and read_only:
        raise SDCError("--create and --read-only exclude each other")
    if path.is_dir():
        raise SDCError(f"'{file}' is a folder, not a DuckDB file")
    if not path.exists() and not create:
        raise SDCError(f"there is no file '{file}'; --create makes a new one")


def _is_writable(path: Path) -> bool:
    return os.access(path if path.exists() else path.parent, os.W_OK)


def _last_result(con: duckdb.DuckDBPyConnection, text: str, limit: int | None) -> tuple[list[str], Rows]:
    """Columns and rows of the last statement, at most `limit` rows; no columns where it returns nothing."""
    statements = con.extract_statements(text)
    if not statements:
        raise SDCError("there is no statement to run")
    for statement in statements[:-1]:
        con.execute(statement).fetchall()
    result = con.execute(statements[-1])
    columns = [column[0] for column in result.description or ()]
    found = result.fetchall() if limit is None else result.fetchmany(limit)
    if not found and duckdb.ExpectedResultType.NOTHING in statements[-1].expected_result_type:
        return [], []
    return columns, found


def _write(columns: Sequence[str], found: Rows, output: Format, rows: int) -> None:
    if output is Format.csv:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([[_text(value, null="") for value in row] for row in found])
        typer.echo(text.getvalue(), nl=False)
    elif output is Format.json:
        typer.echo(json.dumps([dict(zip(columns, map(_json_value, row), strict=True)) for row in found], indent=2))
    else:
        capped = found[:rows] if rows else found
        console = Console()
        if console.is_terminal:
            console.print(table_of(columns, capped))
        else:
            typer.echo(render(columns, capped))
        if len(capped) < len(found):
            typer.echo(f"(the first {rows} rows; --rows 0 shows all)", err=not console.is_terminal)


def table_of(columns: Sequence[str], rows: Rows) -> Table:
    """A result as a table for the terminal, numbers to the right."""
    table = Table(header_style="bold")
    for place, column in enumerate(columns):
        numbers = all(row[place] is None or isinstance(row[place], int | float | Decimal) for row in rows)
        table.add_column(Text(column), justify="right" if rows and numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_text(value), style="dim" if value is None else "") for value in row))
    return table


def _text(value: object, null: str = "NULL") -> str:
    if value is None:
        return null
    if isinstance(value, bool | list | tuple | dict):
        return json.dumps(_json_value(value))
    return str(value)


def _json_value(value: Any) -> Any:
    """What JSON can hold: exact numbers stay numbers, NaN and infinity become null, all else is text."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, list | tuple):
        return [_json_value(part) for part in value]
    if isinstance(value, dict):
        return {str(name): _json_value(part) for name, part in value.items()}
    return str(value)


@app.command()
def report(
    file: Annotated[str, typer.Argument(help="A DuckDB file.", show_default=False)],
    publication: Annotated[
        str, typer.Argument(help="The SELECT, the name of a stored publication, or - to read a SELECT.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page that is written.")] = Path("report.html"),
    audit: Annotated[bool, typer.Option("--audit", help="Show the interval of each suppressed number.")] = False,
    custodian: Annotated[bool, typer.Option("--custodian", help="Show the suppressed numbers too.")] = False,
    rule_set: Annotated[
        str | None, typer.Option("--rules", help="A stored rule set, for what no other option says.")
    ] = None,
    max_count: Annotated[float | None, typer.Option(help="Cells of 1 to so many records are primary.")] = None,
    protect_zeros: Annotated[bool, typer.Option("--protect-zeros", help="Cells of 0 records are too.")] = False,
    min_contributors: Annotated[int | None, typer.Option(help="Cells with fewer contributors are primary.")] = None,
    dominance: Annotated[
        list[str] | None, typer.Option(metavar="N,K", help="Cells whose N largest have K per cent are; repeatable.")
    ] = None,
    p_percent: Annotated[
        float | None, typer.Option(help="Cells that tell the largest to within p per cent are.")
    ] = None,
    pq: Annotated[str | None, typer.Option(metavar="P,Q", help="The same with prior knowledge.")] = None,
    primary_if: Annotated[str | None, typer.Option(help="Any condition on the columns of a cell.")] = None,
    forced_if: Annotated[str | None, typer.Option(help="Cells that are published whatever the rules say.")] = None,
    hidden_if: Annotated[str | None, typer.Option(help="Cells that are no part of the publication.")] = None,
    value: Annotated[str | None, typer.Option(help="The sum that rules on contributors look at.")] = None,
    freq: Annotated[str | None, typer.Option(help="The count that --max-count looks at.")] = None,
    contributor: Annotated[str | None, typer.Option(help="Whose a record is: a column of the source.")] = None,
    not_counted: Annotated[
        list[str] | None, typer.Option(help="A contributor that does not count; repeatable.")
    ] = None,
    weight: Annotated[str | None, typer.Option(help="The sampling weight: a column of the source.")] = None,
    k_disclosure: Annotated[
        int | None, typer.Option(help="Protect attributes of groups against so many persons of them.")
    ] = None,
    singleton: Annotated[str | None, typer.Option(help="Protection against those who know their own value.")] = None,
    secondary_zeros: Annotated[
        bool, typer.Option("--secondary-zeros", help="Cells of 0 records may be suppressed.")
    ] = False,
    structural_zeros: Annotated[
        str | None, typer.Option(help="Combinations that everybody knows to be impossible: a condition.")
    ] = None,
    cost: Annotated[str | None, typer.Option(help="What publishing a cell is worth: an expression.")] = None,
    improve: Annotated[bool | None, typer.Option(help="Look for fewer secondary cells; default: of counts.")] = None,
    search_seconds: Annotated[
        float | None, typer.Option(help="Seconds of a processor core after the first choice; 0: no limit.")
    ] = None,
    protect_intervals: Annotated[
        bool | None,
        typer.Option(
            "--protect-intervals/--exact-only",
            help="Add cells until all intervals are wide enough, or only until no cell can be computed. Without "
            "either, the first for dominance, p-percent and pq.",
        ),
    ] = None,
    after: Annotated[str | None, typer.Option(help="A stored publication that was published earlier.")] = None,
) -> None:
    """Suppress a publication and write it as an HTML page with its cells marked.

    The options are the arguments of sdc_suppress (sdcduck functions sdc_suppress). The file is only read.
    """
    rules: dict[str, Any] = {
        "rules": rule_set, "max_count": max_count, "protect_zeros": protect_zeros or None,
        "min_contributors": min_contributors,
        "dominance": f"[{', '.join(map(_pair, dominance))}]" if dominance else None, "p_percent": p_percent,
        "pq": _pair(pq) if pq else None, "primary_if": primary_if, "forced_if": forced_if, "hidden_if": hidden_if,
        "value": value, "freq": freq, "contributor": contributor, "not_counted": not_counted or None,
        "weight": weight, "k_disclosure": k_disclosure, "singleton": singleton,
        "secondary_zeros": secondary_zeros or None, "structural_zeros": structural_zeros, "cost": cost,
        "improve": improve, "search_seconds": search_seconds, "protect_intervals": protect_intervals,
        "after": after,
    }  # fmt: skip
    with one_line_errors():
        _check_file(file, create=False, read_only=True)
        text = sys.stdin.read() if publication == "-" else publication
        with opened(file, read_only=True) as con:
            written = publication_report(con, text, output, audit=audit, custodian=custodian, **rules)
        typer.echo(f"wrote {written}")


@app.command()
def assess(
    file: Annotated[str, typer.Argument(help="A DuckDB file.", show_default=False)],
    original: Annotated[str, typer.Argument(help="The original records: a table, or a query in parentheses.")],
    release: Annotated[str, typer.Argument(help="The synthetic or otherwise protected records.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file that is written.")] = Path(
        "assessment.html"
    ),
    holdout: Annotated[str | None, typer.Option(help="Records that the release was not made from.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="What somebody may know of a person; repeatable.")] = None,
    target: Annotated[list[str] | None, typer.Option(help="What nobody should learn; repeatable.")] = None,
    column: Annotated[list[str] | None, typer.Option(help="A column to compare; repeatable; none: all.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of what is random in the measures.")] = None,
    id: Annotated[str | None, typer.Option(help="The column that tells which records belong together.")] = None,
    rules: Annotated[str | None, typer.Option(help="A stored rule set, which the release is held against.")] = None,
) -> None:
    """Measure the risk and the utility of a release and write them as an HTML page with pictures.

    The page has what sdc_assess answers (sdcduck functions sdc_assess). The file is only read.
    """
    with one_line_errors():
        _check_file(file, create=False, read_only=True)
        with opened(file, read_only=True) as con:
            written = write_assessment(
                con, original, release, output, holdout=holdout, keys=key or (), targets=target or (),
                columns=column or (), seed=seed, id=id, rules=rules,
            )  # fmt: skip
        typer.echo(f"wrote {written}")


def _pair(text: str) -> str:
    """Two numbers with a comma, as a pair of SQL."""
    return f"({text.strip('() ')})"


@app.command()
def export(
    file: Annotated[str, typer.Argument(help="A DuckDB file.", show_default=False)],
    publication: Annotated[list[str], typer.Option(help="A publication that has been published; repeatable.")],
    to: Annotated[Path, typer.Option(help="The DuckDB file that is written.", show_default=False)],
    no_stencil: Annotated[bool, typer.Option("--no-stencil", help="Write the published cells only.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write published tables into a DuckDB file for everybody: no suppressed number is in it, in no form.

    The file has the published cells, a stencil by which anybody makes further tables of them, and the SQL functions for
    that. It opens in any DuckDB shell. The file with the records is only read.
    """
    with one_line_errors():
        _check_file(file, create=False, read_only=True)
        with opened(file, read_only=True) as con:
            done = con.execute(
                "FROM sdc_export($names::VARCHAR[], $file, stencil := $stencil, force := $force)",
                {"names": publication, "file": str(to), "stencil": not no_stencil, "force": force},
            ).fetchall()
        for name, cells, inner_cells, left_out in done:
            without = f"; not in the stencil: {left_out}" if left_out else ""
            typer.echo(f"{name}: {cells} cells, {inner_cells} inner cells in the stencil{without}")
        typer.echo(f"wrote {to}")


@app.command()
def functions(
    name: Annotated[str | None, typer.Argument(help="Show all about this one.", show_default=False)] = None,
) -> None:
    """List the SQL functions with an example each, or show all about one of them."""
    with one_line_errors():
        known = {function.name: function for function in sql_functions()}
        if name is None:
            typer.echo("\n\n".join(_listed(family, list(members)) for family, members in groupby(
                known.values(), key=lambda function: function.family)))  # fmt: skip
            return
        wanted = name if name in known else f"sdc_{name}"
        if wanted not in known:
            raise unknown("function", name, known)
        typer.echo(_described(known[wanted]))


def _listed(family: str, members: Sequence[SQLFunction]) -> str:
    lines = [typer.style(family.upper(), bold=True)]
    for function in members:
        lines += ["", f"  {typer.style(function.signature, fg='cyan')}", f"      {function.summary}"]
        lines += [typer.style(f"      {line}", dim=True) for line in function.example.splitlines()]
    return "\n".join(lines)


def _described(function: SQLFunction) -> str:
    parts = [typer.style(function.signature, bold=True), function.summary, function.description]
    for title, pairs in (("Arguments", function.arguments), ("Columns", function.columns)):
        if pairs:
            width = max(len(name) for name, _ in pairs)
            listed = "\n".join(f"  {typer.style(name.ljust(width), fg='cyan')}  {meaning}" for name, meaning in pairs)
            parts.append(f"{title}\n{listed}")
    parts += [f"Example\n{_indented(function.example)}", _indented(function.output), f"Source: {function.source}"]
    parts.append(
        "Needs a connection with sdcduck." if function.needs_python else "Pure SQL: works in any DuckDB shell."
    )
    return "\n\n".join(part for part in parts if part)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
