"""Which groups of few units follow from exact sums, however these are added and subtracted.

What the units of a cell have is the same in all sums that count them, so that a sum over some cells is a row of 0 and
1, and that of one group alone follows if and only if its row is a combination of the rows of what was answered (Rao
1973, section 4a: what is estimable; Domingo-Ferrer 2022 asks for such a control and gives no formula). Whether it
follows is a matter of the rows alone; whether it may depends on the units of the group.

Groups are atoms: the cells that no answer tells apart. No part of one follows ever. Several atoms together are looked
at where they are the set of a question, what is not in it, or the difference of two (`ExactAnswers`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sdcduck.methods.sequence.knowledge import MOST_BYTES, Answers, Knowledge, Would
from sdcduck.methods.sequence.sets import Cells, Floats, Sets

_SUMS = ""


@dataclass(frozen=True)
class Follows:
    """What would follow from a question, if it were answered.

    Attributes:
        smallest: units of the smallest atom whose sum follows from all answers; infinite if there is none.
    """

    smallest: float
    _would: Would = field(repr=False)


class ExactSums:
    """The sums that were answered.

    >>> sums = ExactSums(np.array([9.0, 1, 9, 9]))  # twice the second is two sums less the third
    >>> for asked in ([0, 1], [1, 2], [0, 2]):
    ...     found = sums.would(Sets.of_lists([asked]))
    ...     sums.keep(found)
    ...     print(found.smallest)
    10.0
    inf
    1.0
    """

    def __init__(self, sizes: Floats, most_bytes: int = MOST_BYTES) -> None:
        self._sizes = sizes
        everybody = Answers.of(Sets.of_lists([np.arange(len(sizes))]), 0.0)
        self._known = Knowledge({_SUMS: Cells.numbered(np.ones(len(sizes)))}, most_bytes)
        self._known.keep(self._known.would({_SUMS: everybody}))

    def would(self, sets: Sets) -> Follows:
        """What would follow. Nothing is kept.

        Args:
            sets: those of all cells of its result, together.

        Raises:
            TooMuchKnown: it could not be kept.
        """
        asked = self._known.would({_SUMS: Answers.of(sets, 0.0)})
        atom_of, follow = self._known.follow(asked, _SUMS)
        units = np.bincount(atom_of, self._sizes, minlength=len(follow))
        return Follows(float(units[follow].min(initial=np.inf)), asked)

    def keep(self, found: Follows) -> None:
        """The question was answered.

        Raises:
            ValueError: another one was kept since it was tried.
        """
        self._known.keep(found._would)
