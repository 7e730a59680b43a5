"""Who a masked text is about: an attacker's classifier over texts of persons who are named.

Manzanares-Salor, Sánchez and Lison (2022). In place of their language model there are counts of words, weighted by how
few documents have them: idf = ln((1 + n) / (1 + df)) + 1, and vectors of length 1. Whoever has the document with the
largest cosine is named, or whom a logistic regression finds likeliest. Nobody is named where two are equally near.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.compiled import njit

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]

_EQUAL = 1e-12  # scores that differ by less are equal: digits of sums
_EQUAL_OF_MODELS = 1e-6  # the same for vectors of single precision
_TOGETHER = 64  # documents between two looks at whether the statement still runs


def counts(words: Indices, sizes: Indices, vocabulary: int) -> Any:
    """How often each document has each word: a sparse matrix of scipy.

    Args:
        words: of all documents, one behind the other: numbers below `vocabulary`.
        sizes: words of each document.
    """
    import scipy.sparse

    ends = np.concatenate([[0], np.cumsum(sizes)])
    found = scipy.sparse.csr_matrix((np.ones(len(words)), words, ends), shape=(len(sizes), vocabulary))
    found.sum_duplicates()
    return found


def weights(named: Any) -> Floats:
    """The idf of each word, of the counts of documents of named persons.

    >>> weights(counts(np.array([0, 1, 0, 2]), np.array([2, 2]), 3)).round(6).tolist()
    [1.0, 1.405465, 1.405465]
    """
    n, words = named.shape
    idf: Floats = np.log((1 + n) / (1 + np.bincount(named.indices, minlength=words))) + 1
    return idf


def vectors(found: Any, idf: Floats) -> Any:
    """Counts as vectors of length 1; a document without a word that is known stays 0."""
    made = found.copy()
    made.data = found.data * idf[found.indices]
    rows = np.repeat(np.arange(made.shape[0]), np.diff(made.indptr))
    length = np.sqrt(np.bincount(rows, made.data**2, minlength=made.shape[0]))
    made.data = made.data / length[rows]
    return made


@dataclass(frozen=True)
class Linked:
    """Of each document whom the attacker names.

    Attributes:
        person: number of the person; -1: nobody.
        score: the best one.
        margin: how far it is above that of the next person.
        rank: of the true person; 0: nothing speaks for that one.
    """

    person: Indices
    score: Floats
    margin: Floats
    rank: Indices


@njit(cache=True, nogil=True)
def _named(scores, truth, equal, person, score, margin, rank):  # type: ignore[no-untyped-def]
    """Of the scores of all persons, for one document: entry 0 of the results."""
    best, first, second = -1, 0.0, 0.0
    for one in range(len(scores)):
        if scores[one] > first:
            best, second, first = one, first, scores[one]
        elif scores[one] > second:
            second = scores[one]
    person[0] = best if first - second > equal else -1
    score[0], margin[0], rank[0] = first, first - second, 0
    if truth >= 0 and scores[truth] > 0:
        rank[0] = 1
        for one in range(len(scores)):
            if scores[one] > scores[truth] + equal:
                rank[0] += 1


@njit(cache=True, nogil=True)
def _nearest(ends, words, values, begins, documents, weights, owner, persons, truth, person, score, margin, rank):  # type: ignore[no-untyped-def]
    near, best = np.zeros(len(owner)), np.zeros(persons)
    for one in range(len(truth)):
        near[:] = 0.0
        best[:] = 0.0
        for place in range(ends[one], ends[one + 1]):
            word, value = words[place], values[place]
            for other in range(begins[word], begins[word + 1]):
                near[documents[other]] += value * weights[other]
        for other in range(len(owner)):
            best[owner[other]] = max(best[owner[other]], near[other])
        _named(best, truth[one], _EQUAL, person[one:], score[one:], margin[one:], rank[one:])


def nearest(
    released: Any, named: Any, owner: Indices, persons: int, truth: Indices,
    check: Callable[[int, int], None] | None = None,
) -> Linked:  # fmt: skip
    """The person with the document of the largest cosine.

    Args:
        released: vectors of the masked documents.
        named: vectors of documents whose persons are known.
        owner: the person of each of these, a number below `persons`.
        truth: the person of each masked document, -1 for somebody else.
        check: called with how many are done, and how many there are.
    """
    made = _empty(len(truth))
    by_word = named.tocsc()
    for low in range(0, len(truth), _TOGETHER):
        part = slice(low, low + _TOGETHER)
        ends = released.indptr[low : low + _TOGETHER + 1].astype(np.int64)
        _nearest(
            ends, released.indices, released.data, by_word.indptr, by_word.indices, by_word.data, owner, persons,
            truth[part], made.person[part], made.score[part], made.margin[part], made.rank[part],
        )  # fmt: skip
        if check is not None:
            check(min(low + _TOGETHER, len(truth)), len(truth))
    return made


@njit(cache=True, nogil=True)
def _all_named(scores, truth, equal, person, score, margin, rank):  # type: ignore[no-untyped-def]
    for one in range(len(truth)):
        _named(scores[one], truth[one], equal, person[one:], score[one:], margin[one:], rank[one:])


def closest(
    released: Floats32, named: Floats32, owner: Indices, persons: int, truth: Indices,
    check: Callable[[int, int], None] | None = None,
) -> Linked:  # fmt: skip
    """`nearest` for vectors of a model: all numbers of each, in single precision."""
    made = _empty(len(truth))
    order = np.argsort(owner, kind="stable")
    begins = np.searchsorted(owner[order], np.arange(persons))
    by_person = np.ascontiguousarray(named[order].T)
    for low in range(0, len(truth) if persons else 0, _TOGETHER):
        part = slice(low, low + _TOGETHER)
        cosines = np.maximum.reduceat(released[part] @ by_person, begins, axis=1).astype(np.float64)
        _all_named(
            cosines, truth[part], _EQUAL_OF_MODELS, made.person[part], made.score[part], made.margin[part],
            made.rank[part],
        )  # fmt: skip
        if check is not None:
            check(min(low + _TOGETHER, len(truth)), len(truth))
    return made


def likeliest(released: Any, named: Any, owner: Indices, persons: int, truth: Indices) -> Linked:
    """The same by a multinomial logistic regression; the score is a probability.

    Args:
        released: vectors as for `nearest` or `closest`; of one of zeros nothing is known.
    """
    from sklearn.linear_model import LogisticRegression

    made = _empty(len(truth))
    model = LogisticRegression(C=100.0, max_iter=1000).fit(named, owner)
    dense = isinstance(released, np.ndarray)
    some = np.flatnonzero(released.any(axis=1) if dense else np.diff(released.indptr))
    chances = np.zeros((len(truth), persons))
    if len(some):
        chances[np.ix_(some, model.classes_)] = model.predict_proba(released[some])
    equal = _EQUAL_OF_MODELS if dense else _EQUAL
    _all_named(chances, truth, equal, made.person, made.score, made.margin, made.rank)
    return made


def _empty(count: int) -> Linked:
    return Linked(np.full(count, -1), np.zeros(count), np.zeros(count), np.zeros(count, np.int64))


def wilson(successes: int, n: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """The interval of Wilson for a share.

    >>> [round(end, 4) for end in wilson(2, 4)]
    [0.15, 0.85]
    """
    share, spread = successes / n, z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
