"""What exact counts isolate together: atoms, and differences of two sets.

Domingo-Ferrer (2022) asks for control of the records that all questions together isolate, and gives no formula; these
are ours. *Atoms*: units that no set tells apart are one atom, and no question may make a new one of fewer than
`min_units`: whatever is added and subtracted then, a count or a sum, is about so many. *Pairwise*: no set, nor its
complement, nor what it has more or less than one asked before, may be of fewer; easier to explain, and it misses what
stands in two sets that are else apart. That all units are counted is known from the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.sequence.knowledge import MOST_BYTES, TooMuchKnown
from sdcduck.methods.sequence.packed import pack, unpack
from sdcduck.methods.sequence.sets import Cells, Cut, Floats, Indices, Sets, cut, signatures

_BLOCK = 512  # sets that are compared at a time


@dataclass(frozen=True)
class Isolated:
    """What a question would isolate, if it were answered.

    Attributes:
        new_sets: sets that were not asked before.
        smallest_atom: units of the smallest atom that it makes; infinite if it makes none.
        smallest_difference: units of the smallest set, complement or difference that is not empty; infinite if it has
            no new set.
    """

    new_sets: int
    smallest_atom: float
    smallest_difference: float
    _split: Cut = field(repr=False)
    _keys: list[bytes] = field(repr=False)
    _inside: NDArray[np.uint8] = field(repr=False)
    _version: int = field(repr=False)


class ExactAnswers:
    """The sets that were answered exactly.

    >>> answered = ExactAnswers(Cells.numbered([11, 1, 8]))  # men; the woman of a department; the other women
    >>> for asked in ([0], [1, 2], [0, 1]):
    ...     found = answered.would(Sets.of_lists([asked]))
    ...     answered.keep(found)
    ...     print(found.smallest_atom, found.smallest_difference)
    9.0 9.0
    inf 9.0
    1.0 1.0
    """

    def __init__(self, cells: Cells, most_bytes: int = MOST_BYTES) -> None:
        self.cells = cells
        self._most, self._version = most_bytes, 0
        self._atom_of: Indices = np.zeros(len(cells), np.int64)
        self._keys: dict[bytes, None] = {}
        self._inside = np.zeros((0, -(-len(cells) // 8)), np.uint8)  # bits of the cells of each set

    @property
    def sets(self) -> int:
        """Different sets that were answered."""
        return len(self._keys)

    @property
    def atoms(self) -> Floats:
        """Units of the atoms."""
        return np.bincount(self._atom_of, self.cells.sizes).astype(np.float64)

    def would(self, sets: Sets, differences: bool = True) -> Isolated:
        """What a question would isolate. Nothing is kept.

        Args:
            sets: those of all cells of its result, together.
            differences: also those of two sets, which cost more than atoms.

        Raises:
            TooMuchKnown: it could not be kept.
        """
        sets.check(len(self.cells))
        keys = sets.keys(self.cells.names)
        fresh: dict[bytes, int] = {}
        for place, key in enumerate(keys):
            if key not in self._keys and sets.starts[place] < sets.starts[place + 1]:
                fresh.setdefault(key, place)
        which = np.array(list(fresh.values()), np.int64)
        new = sets.some(which)
        if (self.sets + len(new)) * (self._inside.shape[1] + 16) + 24 * len(self.cells) > self._most:
            raise TooMuchKnown("the answers so far and these are more than can be kept of one login")
        split = cut(self._atom_of, self.cells.sizes, signatures(new, len(self.cells)))
        inside = np.zeros((len(new), len(self.cells)), np.bool_)
        inside[np.repeat(np.arange(len(new)), np.diff(new.starts)), new.cells] = True
        return Isolated(
            len(new), split.smallest, self._smallest_difference(inside) if differences else np.inf, split, list(fresh),
            np.packbits(inside, axis=1), self._version,
        )  # fmt: skip

    def _smallest_difference(self, inside: NDArray[np.bool_]) -> float:
        """Units of the smallest difference that is not empty, of new sets and all others."""
        weighted = inside * self.cells.sizes
        own, least = weighted.sum(axis=1), np.inf
        everybody = self.cells.sizes.sum()
        for one in (own, everybody - own):
            least = min(least, float(one[one > 0.5].min(initial=np.inf)))
        for begin in range(0, len(self._inside) + len(inside), _BLOCK):
            bits = np.vstack([self._inside, np.packbits(inside, axis=1)])[begin : begin + _BLOCK]
            other = np.unpackbits(bits, axis=1, count=len(self.cells)).astype(np.float64)
            common = weighted @ other.T
            for apart in (own[:, None] - common, other @ self.cells.sizes - common):
                least = min(least, float(apart[apart > 0.5].min(initial=np.inf)))
        return least

    def keep(self, found: Isolated) -> None:
        """The question was answered.

        Raises:
            ValueError: another one was kept since it was tried.
        """
        if found._version != self._version:
            raise ValueError("another question was kept since this one was tried: try it again")
        self._atom_of = found._split.atom_of
        self._keys |= dict.fromkeys(found._keys)
        self._inside = np.vstack([self._inside, found._inside])
        self._version += 1

    def to_bytes(self) -> bytes:
        """All of it, for a file."""
        keys = np.frombuffer(b"".join(self._keys), np.uint8)
        arrays = {"names": self.cells.names, "units": self.cells.sizes, "atom_of": self._atom_of}
        return pack("exact answers", {}, {**arrays, "keys": keys, "inside": self._inside})

    @classmethod
    def from_bytes(cls, data: bytes, most_bytes: int = MOST_BYTES) -> ExactAnswers:
        """What `to_bytes` wrote.

        Raises:
            ValueError: it is damaged, or cut short.
        """
        _, arrays = unpack("exact answers", data)
        answered = cls(Cells(arrays["names"], arrays["units"]), most_bytes)
        text = arrays["keys"].tobytes()
        answered._atom_of, answered._inside = arrays["atom_of"], arrays["inside"]
        answered._keys = {text[begin : begin + 16]: None for begin in range(0, len(text), 16)}
        return answered
