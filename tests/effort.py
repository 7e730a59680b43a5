"""How often the tests repeat themselves: often enough to see a regression in each run, and for long in `make test-long`.

A test that is only worth its time before a release is marked ``@pytest.mark.long`` as a whole.
"""

from __future__ import annotations

import os
from importlib.metadata import version

LONG = os.environ.get("SDCDUCK_EFFORT") == "long"
if not LONG:
    # The threads of one product of matrices wait for each other without rest: where each worker of the tests has as many
    # as there are processors, that is most of what they do. It must be said before NumPy is there; programs inherit it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


OLDER = int(version("duckdb").split(".")[0]) < 2 and not LONG
"""Whether this is not the newest DuckDB, on which the tests are made once more for what depends on the database."""


def times(usual: int, long: int, *, older: int | None = None) -> int:
    """How many examples, questions or rounds a test has: `usual` in each run, `long` in `make test-long`.

    Args:
        older: in each run on an older DuckDB, where that is not as many as on the newest one.
    """
    return long if LONG else usual if older is None or not OLDER else older


OF_NO_DATABASE = frozenset(
    f"tests/{name}"
    for name in [
        "gateway/test_metrics.py",
        "gateway/test_protocol.py",
        "gateway/test_salts.py",
        "gateway/test_size_of_log.py",
        "gateway/test_tls_of_clients.py",
        "guard/test_end_of_audit_log.py",
        "guard/test_size_of_audit_log.py",
        "perturbation/test_ptable.py",
        "pictures/test_pictures.py",
        "pictures/test_releases.py",
        "risk/test_attacks_kernels.py",
        "risk/test_nearest.py",
        "shell/test_reading.py",
        "shell/test_terminal.py",
        "suppression/test_audit.py",
        "suppression/test_batch.py",
        "suppression/test_decimals.py",
        "suppression/test_dense.py",
        "suppression/test_determined.py",
        "suppression/test_elimination.py",
        "suppression/test_improve.py",
        "suppression/test_intervals.py",
        "suppression/test_reorder.py",
        "suppression/test_rounding.py",
        "suppression/test_singletons.py",
        "suppression/test_stencil.py",
        "synthesis/test_walks.py",
        "test_demo.py",
        "test_packaging.py",
    ]
)
"""Tests of arrays, texts, files, pictures and terminals: what they are about is the same whatever DuckDB there is, and
they run on the newest one only.
"""
OF_NUMBERS = frozenset(
    f"tests/{name}"
    for name in [
        "attacks/test_averaging_and_differencing.py",
        "attacks/test_digits_of_sums.py",
        "attacks/test_keys_from_counts.py",
        "attacks/test_linear_reconstruction.py",
        "attacks/test_suppression_audit.py",
        "synthesis/test_comparison.py",
    ]
)
"""Attacks and comparisons that make statistics of many answers. The answers are the same, to the bit, on every DuckDB
(other tests see to that), so what is learned from them is learned on the newest one only.
"""
