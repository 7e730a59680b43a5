"""What each question of a sequence would be told under a limit on what all answers together teach."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sdcduck.methods.sequence.exact import ExactAnswers
from sdcduck.methods.sequence.knowledge import Answers, Knowledge
from sdcduck.methods.sequence.sets import Cells, Floats, Indices, Sets

MODES = ("precision", "atoms", "pairwise", "rank")


@dataclass(frozen=True)
class Limit:
    """What no answer may go below.

    Attributes:
        mode: `precision`: errors of small groups under noise; `rank`: that exact sums tell no small group; `atoms` and
            `pairwise`: units that exact counts isolate.
        min_units: groups of fewer are small.
        least_error: of `precision`, as a share of the error before the first answer.
    """

    mode: str
    min_units: float
    least_error: float


@dataclass(frozen=True)
class Verdict:
    """Of one question.

    Attributes:
        cells: different cells that it is about.
        sets: of its result.
        new_sets: those that no question before was told.
        error: the least error of a small group after it; None for `atoms` and `pairwise`.
        smallest: units of the smallest atom or difference that it makes; None for the others, and where it makes none.
        answered: whether it keeps the limit.
    """

    cells: int
    sets: int
    new_sets: int
    error: float | None
    smallest: float | None
    answered: bool


def rehearse(
    cells: Cells, sets: Sets, question_of: Indices, variances: Floats, limit: Limit, *,
    keep_refused: bool = False, check: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[Verdict]:  # fmt: skip
    """The questions one after the other. What is refused teaches nothing, and is not kept.

    Args:
        sets: of all questions, those of one beside each other.
        question_of: int64 (k,), ascending from 0 on.
        variances: float64 (k,), of the noise of each answer; `precision` alone looks at them.
        keep_refused: as if it had been answered all the same.
        check: called before each question, with how many there were and how many there are.

    >>> man, woman, both = [0], [1, 2], [0, 1]  # 11 men, the one woman of a department, 8 other women
    >>> found = rehearse(Cells.numbered([11, 1, 8]), Sets.of_lists([man, woman, both]), np.arange(3), np.zeros(3),
    ...     Limit("atoms", 3, 0.8))
    >>> [verdict.answered for verdict in found]
    [True, True, False]
    """
    ends = np.searchsorted(question_of, np.arange(1, int(question_of.max(initial=-1)) + 2))
    exact, noisy = ExactAnswers(cells), Knowledge({"": cells})
    if limit.mode == "rank":  # how many units there are is known
        noisy.grant({"": Answers.of(Sets.of_lists([np.flatnonzero(cells.sizes > 0)]), 0.0)})
    for done, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        check(done, len(ends))
        some = sets.some(np.arange(begin, end))
        touched = len(np.unique(some.cells))
        if limit.mode in ("atoms", "pairwise"):
            found = exact.would(some, limit.mode == "pairwise")
            smallest = found.smallest_atom if limit.mode == "atoms" else found.smallest_difference
            answered = smallest >= limit.min_units
            if answered or keep_refused:
                exact.keep(found)
            shown = smallest if np.isfinite(smallest) else None
            yield Verdict(touched, len(some), found.new_sets, None, shown, answered)
        else:
            variance = variances[begin:end] if limit.mode == "precision" else np.zeros(len(some))
            asked = noisy.would({"": Answers.of(some, variance)}, limit.min_units)
            enough = asked.least_error > 0 if limit.mode == "rank" else asked.least_error >= limit.least_error
            answered = enough or not asked.new_sets
            if answered or keep_refused:
                noisy.keep(asked)
            yield Verdict(touched, len(some), asked.new_sets, asked.least_error, None, answered)
