"""HiGHS as it is used here: without a word on standard output, which may be somebody's pipe."""

from __future__ import annotations

import highspy


def quiet_highs() -> highspy.Highs:
    """A solver that prints nothing, on one thread: the problems run side by side."""
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    # Either option should do, but the solver looks at the one in some places and at the other in the rest.
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("log_to_console", False)
    # The number of threads is a setting of the whole process that HiGHS does not change later: it is left alone.
    highs.setOptionValue("parallel", "off")
    return highs
