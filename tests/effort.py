"""How often the tests repeat themselves: often enough to see a regression in each run, and for long in `make test-long`.

A test that is only worth its time before a release is marked ``@pytest.mark.long`` as a whole.
"""

from __future__ import annotations

import os

LONG = os.environ.get("SDCDUCK_EFFORT") == "long"


def times(usual: int, long: int) -> int:
    """How many examples, questions or rounds a test has: `usual` in each run, `long` in `make test-long`."""
    return long if LONG else usual
