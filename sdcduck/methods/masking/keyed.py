"""Random numbers that belong to records: made of a stream and of what identifies the record, and of nothing else.

The same record has the same numbers in each release, whoever stands beside it, in whatever order, on any number of
threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.numerics import scipy
from sdcduck.methods.synthesis.draws import random_bits

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Identities:
    """By what n records are known.

    Attributes:
        key: uint64 (n,), a hash of what a record is known by.
        among: int64 (n,), number of the record among those with the same key, from 0 on.
    """

    key: NDArray[np.uint64]
    among: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.key)

    def some(self, rows: NDArray[np.int64]) -> Identities:
        """Those of some records."""
        return Identities(self.key[rows], self.among[rows])


def identities(key: NDArray[np.uint64]) -> Identities:
    """Identities of records by their keys; those of one key stand beside each other.

    >>> identities(np.array([7, 7, 3, 7], np.uint64)).among.tolist()
    [0, 1, 0, 0]
    """
    places = np.arange(len(key))
    new = np.ones(len(key), np.bool_)
    new[1:] = key[1:] != key[:-1]
    return Identities(key, places - np.maximum.accumulate(np.where(new, places, 0)) if len(key) else places)


def uniforms(known: Identities, stream: int, draw: int = 0) -> Floats:
    """A number in the open interval (0, 1) for each record: float64 (n,).

    Args:
        stream: 64 bits, signed: what is drawn.
        draw: which draw of the record, from 0 on.
    """
    n = len(known)
    bits = random_bits(known.key, known.among, np.full(n, draw, np.int64), np.full(n, stream, np.int64))
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def normals(known: Identities, stream: int, draw: int = 0) -> Floats:
    """A standard normal number for each record: float64 (n,); see `uniforms`."""
    return np.asarray(scipy.special.ndtri(uniforms(known, stream, draw)), dtype=np.float64)


def lots(known: Identities, stream: int, draw: int = 0) -> NDArray[np.int64]:
    """The records in an order by lot: int64 (n,), their places."""
    return np.lexsort((known.among, known.key, uniforms(known, stream, draw)))
