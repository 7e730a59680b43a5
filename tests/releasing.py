"""`make release`: the archive of the sources and the wheel made from it, installed into an empty environment and tried.

From what is committed and nothing else, into `dist/`. Nothing is uploaded, and no tag is made.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "release"


def release_number() -> str:
    """The version, which the project, the changelog and the citation agree on.

    Raises:
        SystemExit: they do not.
    """
    number: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    cited = re.search(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    for file, found in (("CHANGELOG.md", newest), ("CITATION.cff", cited)):
        if found is None or found[1] != number:
            sys.exit(f"release: pyproject.toml has version {number}, {file} has {found[1] if found else 'none'}")
    return number


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command prints on standard output; its errors are shown."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"release: {' '.join(map(str, command))} failed\n{done.stdout}")
    return done.stdout


def committed(folder: Path) -> None:
    """The files of the last commit, in a folder.

    Raises:
        SystemExit: something is changed and not committed.
    """
    if changed := run("git", "status", "--porcelain").strip():
        sys.exit(f"release: commit first what is changed:\n{changed}")
    folder.mkdir(parents=True)
    run("git", "archive", "-o", folder.parent / "committed.tar", "HEAD")
    with tarfile.open(folder.parent / "committed.tar") as archive:
        archive.extractall(folder, filter="data")


def built(source: Path, dist: Path) -> tuple[Path, Path]:
    """The archive of the sources, and the wheel that is made from that archive alone."""
    make = f"from setuptools.build_meta import build_sdist; build_sdist({str(dist)!r})"
    run(sys.executable, "-c", make, cwd=source)
    (archive,) = dist.glob("*.tar.gz")
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check")
    run(*pip, "--no-deps", "--no-build-isolation", "-w", dist, archive)
    (wheel,) = dist.glob("*.whl")
    return archive, wheel


def tried(wheel: Path, number: str) -> None:
    """The wheel in an environment and a folder with nothing else: its version, its functions, and the demonstration."""
    environment, empty = WORK / "environment", WORK / "empty"
    empty.mkdir()
    run(sys.executable, "-m", "venv", environment)
    programs = environment / "bin"
    pip = (programs / "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check")
    run(*pip, "-c", ROOT / "constraints.txt", f"{wheel}[demo]")
    said = run(programs / "sdcduck", "--version", cwd=empty)
    if not said.startswith(f"sdcduck {number},"):
        sys.exit(f"release: the installed program says {said}")
    functions = run(programs / "sdcduck", "functions", cwd=empty)
    if "sdc_suppress" not in functions:
        sys.exit("release: the installed program does not know its functions")
    run(programs / "sdcduck", "demo", cwd=empty)


def main() -> None:
    number = release_number()
    dist = ROOT / "dist"
    for folder in (WORK, dist):
        shutil.rmtree(folder, ignore_errors=True)
    dist.mkdir()
    committed(WORK / "source")
    archive, wheel = built(WORK / "source", dist)
    tried(wheel, number)
    for file in (archive, wheel):
        print(f"sdcduck: dist/{file.name}, {file.stat().st_size / 1e6:.1f} MB, installed and tried")
    print(f"sdcduck: what is left is yours to do: git tag -a v{number}, and uploading")


if __name__ == "__main__":
    main()
