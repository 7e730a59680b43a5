"""How the tests start the shell as a program of its own."""

from __future__ import annotations

import sys

COMMAND = [sys.executable, "-c", "from sdcduck.cli import main; main()", "shell"]
