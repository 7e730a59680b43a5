"""The command of the custodian's desk: ``sdcduck desk``."""

from __future__ import annotations

import os
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from sdcduck.cli.terminal import one_line_errors
from sdcduck.errors import SDCError


def desk(
    file: Annotated[Path, typer.Argument(help="A DuckDB file.", show_default=False)],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Make releases in a browser: data, tables, risk, policies, each click shown as SQL.

    It answers on this machine only, under an address with a token. The file is the desk's until it ends (Ctrl-C): no
    other program can open it meanwhile. The secret of the record keys is taken from SDCDUCK_SECRET or
    SDCDUCK_SECRET_FILE.
    """
    with one_line_errors():
        try:
            from sdcduck.desk.serving import Opened, serve
        except ModuleNotFoundError as missing:
            if (missing.name or "").startswith("sdcduck"):
                raise
            raise SDCError(f"the desk needs the package '{missing.name}': pip install 'sdcduck[desk]'") from None

        # What the engine puts into files where memory is short are records, and nobody else's to read.
        os.umask(os.umask(0o077) | 0o077)

        def ready(opened: Opened) -> None:
            typer.echo(f"sdcduck: the desk of {file} is at {opened.address}", err=True)
            if browser and (os.name != "posix" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
                webbrowser.open(opened.address)

        with suppress(
            KeyboardInterrupt
        ):  # uvicorn raises it once all is closed, where Ctrl-C is not ignored from the start
            serve(file, port=port, ready=ready)
        typer.echo("sdcduck: the desk is closed", err=True)
