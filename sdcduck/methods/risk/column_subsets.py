"""Subsets of columns in which synthetic records may be too close: random ones, and columns that go together.

A generator may learn a few columns by heart and hide that among many others, which blur the distances of whole records.
Columns that depend on each other say most about a person, so half of the subsets grow around one column each.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.risk.nearest import nearest

_LEVELS = 10  # of a column, for its association with others
_ALL_UP_TO = 10_000  # possible subsets are listed, if they are not more
_TRIES = 20

Matrix = NDArray[np.float64]


def association(table: Matrix, numbers: frozenset[int]) -> Matrix:
    """Cramér's V of all pairs of columns: numbers in buckets of equal size, and the most frequent categories.

    A column with one level has none; the diagonal is 0.
    """
    records, columns = table.shape
    coded = [_levels(table[:, place], place in numbers) for place in range(columns)]
    found = np.zeros((columns, columns))
    for one, other in combinations(range(columns), 2):
        width = int(coded[other].max(initial=0)) + 1
        height = int(coded[one].max(initial=0)) + 1
        if min(width, height) < 2:
            continue
        joint = np.bincount(coded[one] * width + coded[other], minlength=height * width).reshape(height, width)
        expected = np.outer(joint.sum(axis=1), joint.sum(axis=0)) / records
        chi_square = float(((joint - expected) ** 2 / expected).sum())
        found[one, other] = found[other, one] = np.sqrt(chi_square / records / (min(width, height) - 1))
    return found


def _levels(column: Matrix, is_number: bool) -> NDArray[np.int64]:
    """Codes from 0 on, without gaps."""
    known = column[~np.isnan(column)]
    if is_number and len(known):
        edges = np.unique(np.quantile(known, np.linspace(0, 1, _LEVELS + 1)[1:-1]))
        coded = np.where(np.isnan(column), -1, np.searchsorted(edges, column, side="left"))
    else:
        values, places, counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks = np.empty(len(values), np.int64)
        ranks[np.argsort(-counts, kind="stable")] = np.arange(len(values))
        coded = np.minimum(ranks[places], _LEVELS - 1)
    return np.unique(coded, return_inverse=True)[1]


def subsets(
    associations: Matrix, size: int, wanted: int, generator: np.random.Generator
) -> list[tuple[str, tuple[int, ...]]]:
    """At most so many different subsets of columns of one size: ('correlated' or 'random', places).

    Args:
        associations: p x p, not negative.
        size: from 1 to p.
        wanted: half of them, rounded up, are correlated ones, if there are as many.
    """
    columns = len(associations)
    found: dict[tuple[int, ...], str] = {}
    for centre in generator.permutation(columns):
        if len(found) >= (wanted + 1) // 2:
            break
        nearest = np.argsort(-np.delete(associations[centre], centre), kind="stable")[: size - 1]
        places = np.delete(np.arange(columns), centre)[nearest]
        found.setdefault(tuple(sorted((int(centre), *map(int, places)))), "correlated")
    possible = comb(columns, size)
    if possible <= _ALL_UP_TO:
        others = list(combinations(range(columns), size))
        drawn = [others[place] for place in generator.permutation(possible)]
    else:
        drawn = [
            tuple(sorted(map(int, generator.choice(columns, size, replace=False)))) for _ in range(_TRIES * wanted)
        ]
    for chosen in drawn:
        if len(found) >= wanted:
            break
        found.setdefault(chosen, "random")
    return [(kind, places) for places, kind in found.items()]


def share_of_originals(
    synthetic: Matrix, original: Matrix, holdout: Matrix, scales: Matrix, generator: np.random.Generator
) -> tuple[float, float]:
    """How often the record nearest to a synthetic one is an original, if all originals and the holdout stand together.

    Of equal records at the nearest place the share of originals among them counts. So if it were chance who became an
    original and who the holdout, the expectation is exactly the share of the originals, whatever the sizes and however
    many ties.

    Returns:
        The share, and to how many independent answers it amounts: synthetic records with the same nearest record give
        the same answer, and a place with many records gives a sure one.
    """
    together = np.concatenate([original, holdout])
    # NULL equals NULL; no number is infinite.
    distinct, places = np.unique(np.where(np.isnan(together), np.inf, together), axis=0, return_inverse=True)
    distinct = np.where(np.isinf(distinct), np.nan, distinct)
    places = places.reshape(-1)
    here = np.bincount(places, minlength=len(distinct))
    originals = np.bincount(places[: len(original)], minlength=len(distinct))
    order = generator.permutation(len(distinct))
    found = nearest(synthetic, distinct[order], scales, k=1, rows=True).rows
    assert found is not None
    times = np.bincount(order[found[:, 0]], minlength=len(distinct))
    share = float((times * originals / here).sum() / len(synthetic))
    return min(share, 1.0), float(len(synthetic) ** 2 / (times**2 / here).sum())
