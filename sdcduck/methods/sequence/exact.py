"""What exact counts isolate together: atoms, and differences of two sets.

Domingo-Ferrer (2022) asks for control of the records that all questions together isolate, and gives no formula; these
are ours. *Atoms*: units that no set tells apart are one atom, and no question may make a new one of fewer than
`min_units`: whatever is added and subtracted then, a count or a sum, is about so many. *Pairwise*: no set, nor its
complement, nor what it has more or less than one asked before, may be of fewer; easier to explain, and it misses what
stands in two sets that are else apart. That all units are counted is known from the beginning.

Where a group of nobody is to look like one of few, as it does where few are not published, cells of which nobody is in
make an atom or a difference too (``empty_is_small``). A refusal then says of some group that it has fewer than
`min_units`, 0 among them: what the threshold says of it anyway. Two such groups that differ in few may tell more: where
one is refused and the other is not, somebody is in what they differ in. `refuse` keeps what was refused, and
``nearest_refused`` says how far a new set is from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.sequence.knowledge import MOST_BYTES, TooMuchKnown
from sdcduck.methods.sequence.one_thread import one_thread
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
        nearest_refused: a set that was refused and a new one differ in parts of so many units, the larger of both, in
            the pair that differs least; infinite if nothing was refused.
    """

    new_sets: int
    smallest_atom: float
    smallest_difference: float
    nearest_refused: float
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

    def __init__(self, cells: Cells, most_bytes: int = MOST_BYTES, *, empty_is_small: bool = False) -> None:
        self.cells = cells
        self._most, self._version, self._empty_is_small = most_bytes, 0, empty_is_small
        self._there = np.ones(len(cells)) if empty_is_small else (cells.sizes > 0).astype(np.float64)
        self._atom_of: Indices = np.zeros(len(cells), np.int64)
        self._keys: dict[bytes, None] = {}
        self._inside = np.zeros((0, -(-len(cells) // 8)), np.uint8)  # bits of the cells of each set
        self._refused = self._inside

    @property
    def sets(self) -> int:
        """Different sets that were answered."""
        return len(self._keys)

    @property
    def atoms(self) -> Floats:
        """Units of the atoms."""
        return np.bincount(self._atom_of, self.cells.sizes).astype(np.float64)

    @one_thread()
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
        new = sets.some(np.array(list(fresh.values()), np.int64))
        kept = self.sets + len(self._refused) + len(new)
        if kept * (self._inside.shape[1] + 16) + 24 * len(self.cells) > self._most:
            raise TooMuchKnown("the answers so far and these are more than can be kept of one login")
        split = cut(self._atom_of, self.cells.sizes, signatures(new, len(self.cells)))
        inside = self._bits(new)
        return Isolated(
            len(new), self._smallest_atom(split), self._smallest_difference(inside) if differences else np.inf,
            self._nearest_refused(inside), split, list(fresh), np.packbits(inside, axis=1), self._version,
        )  # fmt: skip

    def refuse(self, sets: Sets) -> None:
        """The sets of a question that was not answered: see `Isolated.nearest_refused`."""
        self._refused = np.unique(np.vstack([self._refused, np.packbits(self._bits(sets), axis=1)]), axis=0)

    def _bits(self, sets: Sets) -> NDArray[np.bool_]:
        inside = np.zeros((len(sets), len(self.cells)), np.bool_)
        inside[np.repeat(np.arange(len(sets)), np.diff(sets.starts)), sets.cells] = True
        return inside

    def _smallest_atom(self, split: Cut) -> float:
        """Units of the smallest atom that has some of the cells of another one, and not all."""
        before = np.bincount(self._atom_of, self._there)[split.parent]
        now = np.bincount(split.atom_of, self._there, minlength=len(split.parent))
        return float(split.sizes[(now > 0.5) & (now < before - 0.5)].min(initial=np.inf))

    def _smallest_difference(self, inside: NDArray[np.bool_]) -> float:
        """Units of the smallest difference that is not empty, of new sets and all others."""
        own, cells = inside @ self.cells.sizes, inside @ self._there
        least = _smallest(own, cells)
        least = min(least, _smallest(self.cells.sizes.sum() - own, self._there.sum() - cells))
        for units, there in self._apart(inside, np.vstack([self._inside, np.packbits(inside, axis=1)])):
            least = min(least, _smallest(units, there))
        return least

    def _nearest_refused(self, inside: NDArray[np.bool_]) -> float:
        least, parts = np.inf, list(self._apart(inside, self._refused))
        for (units, there), (others, there_too) in zip(parts[::2], parts[1::2], strict=True):
            least = min(least, _smallest(np.maximum(units, others), there + there_too))
        return least

    def _apart(self, inside: NDArray[np.bool_], others: NDArray[np.uint8]) -> Iterator[tuple[Floats, Floats]]:
        """Units and cells of what each new set has more than another, and then of what it has less; some at a time."""
        sizes = np.stack([self.cells.sizes, self._there])
        for begin in range(0, len(others), _BLOCK):
            bits = np.unpackbits(others[begin : begin + _BLOCK], axis=1, count=len(self.cells))
            other = bits.astype(np.float64)
            units, there = ((inside * one) @ other.T for one in sizes)
            yield (inside @ sizes[0])[:, None] - units, (inside @ sizes[1])[:, None] - there
            yield other @ sizes[0] - units, other @ sizes[1] - there

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
        arrays: dict[str, NDArray[Any]] = {"names": self.cells.names, "units": self.cells.sizes}
        arrays["atom_of"] = self._atom_of
        arrays |= {"keys": keys, "inside": self._inside, "refused": self._refused}
        return pack("exact answers", {"empty_is_small": self._empty_is_small}, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, most_bytes: int = MOST_BYTES) -> ExactAnswers:
        """What `to_bytes` wrote.

        Raises:
            ValueError: it is damaged, or cut short.
        """
        facts, arrays = unpack("exact answers", data)
        cells = Cells(arrays["names"], arrays["units"])
        answered = cls(cells, most_bytes, empty_is_small=facts["empty_is_small"])
        text = arrays["keys"].tobytes()
        answered._atom_of, answered._inside = arrays["atom_of"], arrays["inside"]
        answered._refused = arrays["refused"]
        answered._keys = {text[begin : begin + 16]: None for begin in range(0, len(text), 16)}
        return answered


def _smallest(units: Floats, cells: Floats) -> float:
    """The fewest units of a group that has cells."""
    return float(units[cells > 0.5].min(initial=np.inf))
