"""What differentially private statistics cost beside plain SQL: CPU seconds. Nothing fails because of a clock.

python benchmarks/dp.py            a minute on two cores
python benchmarks/dp.py --quick    on 100,000 records
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from sdcduck.methods.dp.calibration import gaussian_ratio


def cpu(run: Callable[[], object], times: int = 5) -> float:
    """The median of the CPU seconds of several runs."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        run()
        taken.append(time.process_time() - began)
    return statistics.median(taken)


def calibration() -> Table:
    """What finding sigma takes."""
    table = Table("epsilon", "CPU ms", title="sdc_dp_sigma, analytic")
    for epsilon in (0.1, 1.0, 10.0):
        table.add_row(f"{epsilon:g}", f"{1000 * cpu(lambda at=epsilon: gaussian_ratio(at, 1e-5)):.2f}")
    return table


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    Console().print(calibration())


if __name__ == "__main__":
    main()
