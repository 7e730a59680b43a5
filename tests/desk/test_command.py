"""The command: it says where the desk is, and Ctrl-C ends it; without its packages it says what to install."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

COMMAND = [sys.executable, "-c", "from sdcduck.cli import main; main()", "desk"]


def test_the_desk_opens_and_closes(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "register.duckdb"
    shutil.copy(made, file)
    with subprocess.Popen([*COMMAND, str(file), "--no-browser"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = process.stderr.readline()
        try:
            found = re.search(r"is at (http://127\.0\.0\.1:\d+/\?token=[\w-]{43})$", told.strip())
            assert found is not None, told + process.stderr.read()
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor())
            assert b"people" in opener.open(found[1]).read()
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        assert process.stderr.read() == "sdcduck: the desk is closed\n"


def test_what_is_not_installed_is_named(made: Path) -> None:
    without = "import sys; sys.modules['starlette'] = None; from sdcduck.cli import main; main()"
    command = [sys.executable, "-c", without, "desk", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("sdcduck: the desk needs the package 'starlette")
    assert done.stderr.endswith("pip install 'sdcduck[desk]'\n")
