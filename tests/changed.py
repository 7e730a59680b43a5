"""The tests of what was changed since the last commit of the main branch: for `make fast`.

Tests that were changed come first, then those of the families that were. Which these are is said by the folder, or
by those of the modules that import it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_FOLDERS = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
_BESIDE = {"guard": ("attacks",), "ibis": ("ibis_backend",)}
"""Further folders with tests of a family."""


def changed() -> list[str]:
    """The files that differ from the main branch of the origin, or from the commit before this one."""

    def lines(*command: str) -> list[str]:
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.split() if done.returncode == 0 else []

    before = lines("merge-base", "HEAD", "@{upstream}") or lines("rev-parse", "HEAD~1") or ["HEAD"]
    return sorted({*lines("diff", "--name-only", before[0]), *lines("ls-files", "--others", "--exclude-standard")})


def families(file: str) -> set[str]:
    """The folders of tests that a file of the product belongs to; empty: it is of no family.

    >>> sorted(families("sdcduck/guard/protect/block.py")), families("udfs/suppression/export.py"), families("Makefile")
    (['attacks', 'guard'], {'suppression'}, set())
    """
    parts = Path(file).parts
    if Path(file).name.startswith("test_"):
        return set()  # it stands for itself
    if file.endswith(".sql"):
        named = [name for name in _FOLDERS if Path(file).stem.startswith(name)]
    elif parts[0] == "udfs":
        named = [parts[1]] if len(parts) > 2 else list(_that_use(Path(file).stem))
    else:
        named = [part for part in parts[1:-1] if part in _FOLDERS | _BESIDE.keys()]
    return {folder for name in named for folder in (name, *_BESIDE.get(name, ())) if folder in _FOLDERS}


def _that_use(name: str) -> set[str]:
    """The families of ``udfs/`` that a module which belongs to none of them is imported in."""
    importing = re.compile(rf"from sdcduck\.udfs\.{name} import|from sdcduck\.udfs import .*\b{name}\b")
    users = (path for path in (ROOT / "udfs").glob("*/*.py") if importing.search(path.read_text(encoding="utf-8")))
    return {path.parent.name for path in users}


def tests_of(files: Iterable[str]) -> list[str]:
    """What pytest is to run, in this order.

    >>> tests_of(["udfs/guard/users.py", "tests/risk/test_nearest.py"])
    ['tests/risk/test_nearest.py', 'tests/attacks', 'tests/guard']
    """
    listed = list(files)
    own = [file for file in listed if re.fullmatch(r"tests/(.*/)?test_\w+\.py", file) and (ROOT / file).exists()]
    return [*own, *(f"tests/{folder}" for folder in sorted({folder for file in listed for folder in families(file)}))]


if __name__ == "__main__":
    print(*(tests_of(changed()) or ["tests/test_session.py", "tests/test_docs.py"]))
