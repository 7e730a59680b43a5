"""What it costs to attack models: seconds and CPU seconds. Nothing fails because of a clock.

python benchmarks/models.py           half a minute
python benchmarks/models.py --quick   some seconds
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from sdcduck.methods.models.inference import Pool, inferred
from sdcduck.methods.models.membership import fitted, membership, membership_by_components

COLUMNS, WOMEN = 100, 6_366


def measured(work: Callable[[], object]) -> tuple[str, str]:
    """Seconds and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return f"{time.perf_counter() - wall:.1f}", f"{time.process_time() - cpu:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    chance = np.random.default_rng(1)
    table = Table(title="Attacks on models", title_justify="left")
    for heading in ("what", "s", "CPU s", "goal s"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    size = 5_000 if quick else 50_000
    members, others = chance.normal(size=(size, COLUMNS)), chance.normal(size=(size, COLUMNS))

    def by_components() -> None:
        loadings = fitted(members)[1][:-1]
        membership_by_components(members, others, loadings, 0.95, 100, 0, lambda done, total: None)

    table.add_row(f"components, {2 * size:,} x {COLUMNS}", *measured(by_components), "5")
    one, other = members[:, 0], others[:, 0]
    by_score = measured(lambda: membership(one, other, 0.95, 200, 0, lambda: None))
    table.add_row(f"a score of {2 * size:,}, 200 draws", *by_score, "")
    repeats = 1 if quick else 10
    known = chance.integers(0, 6, (WOMEN, 7)).astype(np.float32)
    answer = chance.integers(0, 2, (WOMEN, 1)).astype(np.float32)
    pool = Pool(known, answer, chance.integers(0, 6, WOMEN), None)
    found = measured(lambda: inferred(pool, repeats, 100, 0, 2, lambda done, total: None))
    table.add_row(f"three attacks, {repeats} times, {WOMEN:,} records", *found, "10")
    Console().print(table)


if __name__ == "__main__":
    main()
