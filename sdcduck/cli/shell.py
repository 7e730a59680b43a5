"""The command of the shell: ``sdcduck shell``."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sdcduck.cli.terminal import Engine, one_line_errors
from sdcduck.errors import SDCError
from sdcduck.shell.gateway import OfGateway
from sdcduck.shell.running import Cancelled
from sdcduck.shell.shell import Left, Shell
from sdcduck.shell.sources import OfFile, Source, asker

_INTERRUPTED = 130


def shell(
    file: Annotated[Path | None, typer.Argument(help="A DuckDB file with policies.", show_default=False)] = None,
    name: Annotated[
        str | None, typer.Option("--as", metavar="USER_OR_ROLE", help="Who asks; without it the role analyst.")
    ] = None,
    connect: Annotated[
        str | None, typer.Option(metavar="URL", help="Ask a gateway instead: postgresql://user@host:port/database")
    ] = None,
    command: Annotated[str | None, typer.Option("--command", "-c", metavar="SQL", help="Run this and end.")] = None,
    log: Annotated[Path | None, typer.Option(help="The audit log: a line for every question to the file.")] = None,
    records: Engine = None,
) -> None:
    """Ask questions under the guard, in a terminal: protected answers, marked as such.

    Statements also come from standard input where that is no terminal; then, and with -c, the exit code is 1 if any of
    them was refused or failed. The password of a gateway is asked for, or taken from PGPASSWORD.
    """
    with one_line_errors():
        source = source_of(file, name, connect, log, records)
        interactive = command is None and sys.stdin.isatty() and sys.stdout.isatty()
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")
        console = Console(no_color=not colour, highlight=False)
        asking = Shell(source, console, interactive=interactive)
        try:
            if interactive:
                _talk(asking, colour=colour)
                return
            if file is not None and name is None:
                typer.echo("sdcduck: asked as role analyst, under the guard; --as names another", err=True)
            asking.run(sys.stdin.read() if command is None else command)
        except Left:
            pass
        except (Cancelled, KeyboardInterrupt):
            raise typer.Exit(_INTERRUPTED) from None
        except BrokenPipeError:  # whoever reads has seen enough, as `head` has
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        finally:
            asking.close()
        if asking.failed:
            raise typer.Exit(1)


def source_of(
    file: Path | None, name: str | None, url: str | None, log: Path | None = None, records: str | None = None
) -> Source:
    """Whom to ask: the guard over a file, or a gateway."""
    if (file is None) == (url is None):
        raise SDCError("give a file, or --connect with the address of a gateway")
    if url is not None:
        if name is not None or log is not None or records is not None:
            raise SDCError(
                "--as, --log and --records go with a file: a gateway knows its users and records, and has its own log"
            )
        return OfGateway(url)
    assert file is not None
    return OfFile(file, asker(file, name), log, records)


def _talk(asking: Shell, *, colour: bool) -> None:
    """Ask for statements until the user leaves."""
    try:
        from sdcduck.shell.prompt import Prompt
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("sdcduck"):
            raise
        raise SDCError(
            f"the interactive shell needs the package '{missing.name}': pip install 'sdcduck[shell]'; "
            "-c and standard input work without it"
        ) from None
    typer.echo(f"sdcduck {version('sdcduck')}: {asking.source.who}. .help lists the commands.")
    if asking.source.warning:
        typer.echo(asking.source.warning)
    prompt = Prompt(lambda: asking.tables, colour=colour)
    while True:
        try:
            asking.run(prompt.statement())
        except KeyboardInterrupt:
            continue
        except (EOFError, Left):
            return
