"""Where the terms of a list stand in texts: words behind each other, the longest term that fits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Indices = NDArray[np.int64]


@njit(cache=True, nogil=True)
def _covered(words, document, terms, ends, first, found):  # type: ignore[no-untyped-def]
    for place in range(len(words)):
        if words[place] < 0:
            continue
        longest = 0
        for term in range(first[words[place]], first[words[place] + 1]):
            size = ends[term + 1] - ends[term]
            if size <= longest or place + size > len(words) or document[place + size - 1] != document[place]:
                continue
            same = True
            for step in range(size):
                same = same and words[place + step] == terms[ends[term] + step]
            if same:
                longest = size
        for step in range(longest):
            found[place + step] = True


def covered(words: Indices, document: Indices, terms: list[list[int]]) -> NDArray[np.bool_]:
    """Which words belong to a term.

    Args:
        words: of all documents, one behind the other; -1 for one that is in no term.
        document: of each word.
        terms: their words, at least one each.

    >>> covered(np.array([0, 1, -1, 0, 1]), np.array([0, 0, 0, 0, 1]), [[0, 1]]).tolist()
    [True, True, False, False, False]
    """
    found = np.zeros(len(words), np.bool_)
    if terms:
        ordered = sorted(terms)
        ends = np.cumsum([0, *map(len, ordered)])
        flat = np.array([word for term in ordered for word in term])
        first = np.searchsorted([term[0] for term in ordered], np.arange(flat.max() + 2))
        _covered(words, document, flat, ends, first, found)
    return found
