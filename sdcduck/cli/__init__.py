"""The command line."""

from __future__ import annotations

from sdcduck.cli.commands import app, main

__all__ = ["app", "main"]
