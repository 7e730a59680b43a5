"""Patterns of tables by tau-Argus (pytauargus, HiGHS), from the primary cells and their widths that another has chosen.

    pip install pytauargus==0.6.0

It runs in a process of its own, by any Python that has it, in a folder that goes away: it leaves files where it runs.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
TOTAL = "Total"


@dataclass(frozen=True)
class Answer:
    """What tau-Argus said: its pattern, primary cells included, or why there is none; seconds of the processor."""

    suppressed: Booleans | None
    seconds: float
    problem: str = ""


def is_there(python: str) -> bool:
    """Whether this Python has pytauargus."""
    return not subprocess.run([python, "-c", "import pytauargus"], capture_output=True, check=False).returncode


def pattern(
    python: str, method: str, cells: Sequence[tuple[str, ...]], groups: Mapping[int, Mapping[str, Sequence[str]]],
    value: Floats, primary: Booleans, width: Floats, patience: float,
) -> Answer:  # fmt: skip
    """The pattern of a table, cell by cell.

    Args:
        python: one that has pytauargus.
        method: such as ``OPT(1,2)``, two minutes, or ``MOD(1,2,0,0,0)``, without singletons.
        cells: the codes of each cell, `TOTAL` for the sum over a dimension.
        groups: of each dimension with a hierarchy, the codes in each group.
        value, primary, width: of the cells: their value, whether they are primary, and how far each way they must move.
        patience: seconds, after which it is stopped.
    """
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), method, cells, groups, value, primary, width)
        before = os.times()
        try:
            done = subprocess.run(
                [python, "-m", "pytauargus.cli", "run", "table.arb"], cwd=folder, capture_output=True, text=True,
                timeout=patience, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Answer(None, patience, "stopped")
        after = os.times()
        seconds = after.children_user + after.children_system - before.children_user - before.children_system
        written = Path(folder, "pattern.tab")
        if done.returncode or not written.exists():
            return Answer(None, seconds, (done.stderr or done.stdout).strip().splitlines()[-1][:80])
        place = {codes: cell for cell, codes in enumerate(cells)}
        suppressed = np.zeros(len(cells), dtype=np.bool_)
        for line in written.read_text().splitlines():
            fields = [field.strip('"') for field in line.split(";")]
            suppressed[place[tuple(fields[: len(cells[0])])]] = fields[-3] in ("U", "M", "D")
        return Answer(suppressed, seconds)


def _write(
    folder: Path, method: str, cells: Sequence[tuple[str, ...]], groups: Mapping[int, Mapping[str, Sequence[str]]],
    value: Floats, primary: Booleans, width: Floats,
) -> None:  # fmt: skip
    """The table, what its columns are, and what to do; of several contributors a cell, so that none is alone."""
    names = [f"d{place}" for place in range(len(cells[0]))]
    lines = [
        ";".join([*codes, f"{z:.0f}", "9", f"{low:.6f}", f"{low:.6f}", "U" if first else "S"])
        for codes, z, first, low in zip(cells, value, primary, width, strict=True)
    ]
    (folder / "table.tab").write_text("\n".join(lines) + "\n")
    about = ['<SEPARATOR> ";"', '<SAFE> "S"', '<UNSAFE> "U"', '<PROTECT> "P"']
    for place, name in enumerate(names):
        about += [name, " <RECODEABLE>", f' <TOTCODE> "{TOTAL}"']
        if place in groups:
            tree = [line for group, codes in groups[place].items() for line in (group, *(f"@{code}" for code in codes))]
            (folder / f"{name}.hrc").write_text("\n".join(tree) + "\n")
            about += [" <HIERARCHICAL>", f' <HIERCODELIST> "{folder / f"{name}.hrc"}"', ' <HIERLEADSTRING> "@"']
    about += ["y", " <NUMERIC>", " <DECIMALS> 2", "n", " <FREQUENCY>"]
    about += ["low", " <NUMERIC> <LOWERPL>", " <DECIMALS> 6", "high", " <NUMERIC> <UPPERPL>", " <DECIMALS> 6"]
    about += ["state", " <STATUS>"]
    (folder / "table.rda").write_text("\n".join(about) + "\n")
    dimensions = "".join(f'"{name}"' for name in names)
    (folder / "table.arb").write_text(
        f'<OPENTABLEDATA> "{folder / "table.tab"}"\n<OPENMETADATA> "{folder / "table.rda"}"\n'
        f'<SPECIFYTABLE> {dimensions}|"y"||"y"\n<SAFETYRULE>\n<READTABLE>\n<SUPPRESS> {method}\n'
        f'<WRITETABLE> (1,5,SO+,"{folder / "pattern.tab"}")\n'
    )
