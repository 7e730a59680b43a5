"""Sets of cells that were asked for, and the atoms that they cut the cells into.

Cells are the smallest groups of units that an answer can be made of. What a set is made of is what is known of it: the
same cells with the same weights are the same set, in whatever order they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.compiled import njit

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Cells:
    """The cells of a secret.

    Attributes:
        names: uint64 (c,), all different: by what cells are known, in this process and the next.
        sizes: float64 (c,), their published numbers of units; 0 is a cell of which is known that nobody is in it.
    """

    names: Words
    sizes: Floats

    def __post_init__(self) -> None:
        if self.names.shape != self.sizes.shape or self.names.ndim != 1:
            raise ValueError("a cell has one name and one size")
        if len(np.unique(self.names)) < len(self.names):
            raise ValueError("two cells have the same name")
        if not (np.isfinite(self.sizes).all() and (self.sizes >= 0).all()):
            raise ValueError("the size of a cell must be a finite number of at least 0")

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def numbered(cls, sizes: ArrayLike) -> Cells:
        """Cells that are known by their places."""
        given = np.asarray(sizes, dtype=np.float64)
        return cls(np.arange(len(given), dtype=np.uint64), given)


@dataclass(frozen=True)
class Sets:
    """Sets, one behind the other.

    Attributes:
        starts: int64 (k + 1,), where the cells of each set begin.
        cells: int64, the places of its cells, each once and in their order.
        weights: float64, of each of these; 1 is a cell that is in the set, contributions are those of a sum.
    """

    starts: Indices
    cells: Indices
    weights: Floats

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of_pairs(cls, sets: ArrayLike, cells: ArrayLike, count: int, weights: ArrayLike | None = None) -> Sets:
        """Sets from (number of the set, place of a cell), in any order. A cell that is named twice is in it once.

        >>> Sets.of_pairs([1, 0, 1, 1], [5, 2, 3, 5], 2).cells.tolist()
        [2, 3, 5]

        Raises:
            ValueError: a cell has two weights in a set, a weight is not finite, or a number of a set is none.
        """
        number, place = np.asarray(sets, dtype=np.int64), np.asarray(cells, dtype=np.int64)
        weight = np.ones(len(number)) if weights is None else np.asarray(weights, dtype=np.float64)
        if not np.isfinite(weight).all():
            raise ValueError("a weight must be a finite number")
        if len(number) and (number.min() < 0 or number.max() >= count or place.min() < 0):
            raise ValueError("sets are numbered from 0 on, as are cells")
        order = np.lexsort((weight, place, number))
        number, place, weight = number[order], place[order], weight[order]
        new = np.ones(len(number), np.bool_)
        new[1:] = (number[1:] != number[:-1]) | (place[1:] != place[:-1])
        if (weight[~new] != weight[:-1][~new[1:]]).any():
            raise ValueError("a cell has two weights in one set")
        new &= weight != 0
        starts = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(number[new], minlength=count), out=starts[1:])
        return cls(starts, place[new], weight[new])

    @classmethod
    def of_lists(cls, sets: Sequence[ArrayLike]) -> Sets:
        """Sets from the places of their cells."""
        lists = [np.asarray(one, dtype=np.int64) for one in sets]
        number = np.repeat(np.arange(len(lists)), [len(one) for one in lists])
        return cls.of_pairs(number, np.concatenate(lists) if lists else [], len(lists))

    @classmethod
    def of_rows(cls, rows: ArrayLike) -> Sets:
        """Sets from a matrix of weights, a line a set."""
        matrix = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        number, place = np.nonzero(matrix)
        return cls.of_pairs(number, place, len(matrix), matrix[number, place])

    def check(self, cells: int) -> None:
        """That there are so many cells.

        Raises:
            ValueError: a set names another one.
        """
        if len(self.cells) and (self.cells.min() < 0 or self.cells.max() >= cells):
            raise ValueError("a set names a cell that is not there")

    def some(self, which: Indices) -> Sets:
        """Those with these numbers."""
        if len(which) == len(self) and np.array_equal(which, np.arange(len(self))):
            return self
        lengths = np.diff(self.starts)[which]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.repeat(self.starts[which] - starts[:-1], lengths) + np.arange(starts[-1])
        return Sets(starts, self.cells[places], self.weights[places])

    def keys(self, names: Words) -> list[bytes]:
        """16 bytes for each set: of the names and weights of its cells, in the order of the names.

        >>> names = np.array([30, 10, 20], np.uint64)
        >>> one, other = Sets.of_lists([[0, 1], [1, 0]]).keys(names)
        >>> one == other
        True
        """
        found = []
        for begin, end in zip(self.starts[:-1], self.starts[1:], strict=True):
            mine = names[self.cells[begin:end]]
            order = np.argsort(mine)
            text = mine[order].astype("<u8").tobytes() + self.weights[begin:end][order].astype("<f8").tobytes()
            found.append(blake2b(text, digest_size=16).digest())
        return found

    def rows(self, places: Indices, length: int) -> Floats:
        """The weights as a matrix with a column for each set: float64 (length, k).

        Args:
            places: int64 (c,), the row of each cell; cells of one row have one weight.
        """
        matrix = np.zeros((len(self), length))  # one set after the other, as they are filled in
        matrix[np.repeat(np.arange(len(self)), np.diff(self.starts)), places[self.cells]] = self.weights
        return matrix.T


@njit(cache=True, nogil=True)
def same_rows(words: Words) -> Indices:
    """Numbers for the rows of a matrix: int64 (c,), the same for the same rows, from 0 on as they come.

    >>> same_rows(np.array([[7, 1], [2, 3], [7, 1]], np.uint64)).tolist()
    [0, 1, 0]
    """
    count, width = words.shape
    slots = 16
    while slots < 2 * count:
        slots *= 2
    mask = np.uint64(slots - 1)
    table = np.full(slots, -1, np.int64)  # of each number the first row that has it
    found, known = np.empty(count, np.int64), 0
    for row in range(count):
        mixed = np.uint64(0x9E3779B97F4A7C15)
        for part in range(width):
            mixed = (mixed ^ words[row, part]) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(29)
            mixed *= np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(32)
        slot = mixed & mask
        while True:
            first = table[slot]
            if first < 0:
                table[slot] = row
                found[row] = known
                known += 1
                break
            equal = True
            for part in range(width):
                if words[first, part] != words[row, part]:
                    equal = False
                    break
            if equal:
                found[row] = found[first]
                break
            slot = (slot + np.uint64(1)) & mask
    return found


def signatures(sets: Sets, cells: int) -> Words:
    """In which sets each cell is, and with which weight: uint64 (cells, words)."""
    if (sets.weights == 1).all():
        inside = np.zeros((cells, -(-max(len(sets), 1) // 64) * 64), np.bool_)
        inside[sets.cells, np.repeat(np.arange(len(sets)), np.diff(sets.starts))] = True
        return np.packbits(inside, axis=1).view(np.uint64)
    return np.ascontiguousarray(sets.rows(np.arange(cells), cells)).view(np.uint64)


@dataclass(frozen=True)
class Cut:
    """What sets make of the atoms.

    Attributes:
        atom_of: int64 (c,), the atom of each cell.
        parent: int64 (atoms,), of which atom each was a part; those that were there keep their numbers.
        sizes: float64 (atoms,), units.
        separated: float64, the units of the atoms that are new and not empty.
    """

    atom_of: Indices
    parent: Indices
    sizes: Floats
    separated: Floats

    @property
    def smallest(self) -> float:
        """Units of the smallest atom that is new; infinite if there is none."""
        return float(self.separated.min(initial=np.inf))


def cut(atom_of: Indices, sizes: Floats, words: Words) -> Cut:
    """Cells that differ in a set come into different atoms.

    Args:
        atom_of: int64 (c,), the atom of each cell until now, from 0 on without gaps.
        sizes: float64 (c,), units of each cell.
        words: uint64 (c, w), of each cell what it is to the new sets: see `signatures`.
    """
    found = same_rows(np.column_stack([atom_of.astype(np.uint64), words])) if len(atom_of) else atom_of
    count = int(found.max(initial=-1)) + 1
    old, atoms = np.zeros(count, np.int64), int(atom_of.max(initial=-1)) + 1
    old[found] = atom_of
    first = np.full(atoms, count, np.int64)
    np.minimum.at(first, old, np.arange(count))
    keeps = first[old] == np.arange(count)
    number = np.where(keeps, old, atoms - 1 + np.cumsum(~keeps))
    parent = np.zeros(count, np.int64)
    parent[number] = old
    now = number[found]
    units: Floats = np.bincount(now, sizes, minlength=count).astype(np.float64)
    before = np.bincount(atom_of, sizes, minlength=atoms)
    new = (units > 0) & (units < before[parent] * (1 - 1e-12))
    return Cut(now, parent, units, units[new])
