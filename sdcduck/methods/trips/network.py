"""The predictor of the paper: a bidirectional LSTM that foretells the next cell from all cells before it.

Blanco-Justicia, Jebreel, Manjón and Domingo-Ferrer (2022): embedding in 64 numbers, a bidirectional LSTM of `units`
each way, one of half as many, a dense layer of 128 and the softmax over the cells, with a fifth dropped out behind each
LSTM; Adam, sparse categorical cross-entropy, batches of 250. It learns from all growing prefixes of the trips. Keras
does the arithmetic, on whichever of PyTorch, JAX and TensorFlow is there.

Where counts (`sdcduck.methods.trips.ngrams`) know no cell that came next, a network always has a guess: its trips may
take steps that no real trip took, and are never truncated.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.trips.ngrams import Indices

BACKENDS = ("torch", "jax", "tensorflow")
_EMBEDDING, _DENSE, _DROPOUT, _BATCH = 64, 128, 0.2, 250


def is_there() -> bool:
    """Whether Keras is installed, and something that it computes with."""
    return find_spec("keras") is not None and any(find_spec(name) is not None for name in BACKENDS)


def _keras() -> Any:
    """Keras; it takes TensorFlow, there or not, unless it is told otherwise."""
    if "keras" not in sys.modules and "KERAS_BACKEND" not in os.environ:
        os.environ["KERAS_BACKEND"] = next(name for name in BACKENDS if find_spec(name) is not None)
    import keras

    return keras


def built(cells: int, units: int, seed: int) -> Any:
    """The network, not trained yet: from prefixes of cells + 1, with 0 on the left, to a chance for each cell.

    Args:
        cells: how many there are.
        units: of the first LSTM, each way.
        seed: of the first weights and of what is dropped out.
    """
    keras = _keras()
    seeds = iter(int(one) for one in np.random.SeedSequence(seed).generate_state(64))

    def lstm(size: int, *, whole: bool) -> Any:
        def one(*, back: bool) -> Any:
            return keras.layers.LSTM(
                size, return_sequences=whole, go_backwards=back,
                kernel_initializer=keras.initializers.GlorotUniform(seed=next(seeds)),
                recurrent_initializer=keras.initializers.Orthogonal(seed=next(seeds)),
            )  # fmt: skip

        return keras.layers.Bidirectional(one(back=False), backward_layer=one(back=True))

    def dense(size: int, **other: Any) -> Any:
        return keras.layers.Dense(size, kernel_initializer=keras.initializers.GlorotUniform(seed=next(seeds)), **other)

    prefix = keras.Input((None,), dtype="int32")
    start = keras.initializers.RandomUniform(seed=next(seeds))
    layer = keras.layers.Embedding(cells + 1, _EMBEDDING, mask_zero=True, embeddings_initializer=start)(prefix)
    layer = keras.layers.Dropout(_DROPOUT, seed=next(seeds))(lstm(units, whole=True)(layer))
    layer = keras.layers.Dropout(_DROPOUT, seed=next(seeds))(lstm(units // 2, whole=False)(layer))
    network = keras.Model(prefix, dense(cells, activation="softmax")(dense(_DENSE)(layer)))
    network.compile("adam", "sparse_categorical_crossentropy")
    return network


def prefixes(trips: Indices, sizes: Indices, longest: int) -> tuple[NDArray[np.int32], Indices]:
    """All growing prefixes of the trips, as rows of cells + 1 with zeros on the left, and what came next.

    Args:
        trips: the cells of all trips, one trip behind the other.
        sizes: of the trips.
        longest: cells of a row; of a longer prefix its last ones.

    >>> rows, following = prefixes(np.array([0, 1, 2, 5, 0, 3]), np.array([4, 2]), 2)
    >>> rows.tolist(), following.tolist()
    ([[0, 1], [1, 2], [2, 3], [0, 1]], [1, 2, 5, 3])
    """
    ends = np.cumsum(sizes)
    place = np.arange(len(trips)) - np.repeat(ends - sizes, sizes)
    here = np.flatnonzero(place + 1 < np.repeat(sizes, sizes))
    back = np.arange(longest - 1, -1, -1)
    rows = np.where(back <= place[here, None], trips[np.maximum(here[:, None] - back, 0)] + 1, 0)
    return rows.astype(np.int32), trips[here + 1]


@dataclass(frozen=True)
class Network:
    """A trained network, to be asked as the counts are.

    Attributes:
        k: of how many likeliest cells one comes next.
        longest: cells of a prefix that it looks at.
    """

    network: Any
    k: int
    longest: int

    def top(self, rows: NDArray[np.int32]) -> Indices:
        """The k likeliest next cells of each prefix, the likeliest first, of equally likely ones the smaller.

        Args:
            rows: as `prefixes` makes them.
        """
        found = []
        for low in range(0, len(rows), _BATCH):
            part = rows[low : low + _BATCH]
            # Of one size, so that no other one is compiled.
            filled = np.concatenate([part, np.ones((_BATCH - len(part), self.longest), np.int32)])
            chances = np.asarray(self.network.predict_on_batch(filled))[: len(part)]
            found.append(np.argsort(-chances, axis=1, kind="stable")[:, : self.k])
        return np.concatenate(found)

    def walk(
        self, starts: Indices, begins: Indices, chances: NDArray[np.float64], check: Callable[[int, int], None]
    ) -> tuple[Indices, Indices]:
        """As `ngrams.Model.walk`: all trips together, one cell further each time."""
        sizes = np.diff(begins)
        walked = np.zeros(begins[-1], np.int64)
        walked[begins[:-1]] = starts
        rows = np.zeros((len(starts), self.longest), np.int32)
        rows[:, -1] = starts + 1
        for step in range(1, int(sizes.max(initial=1))):
            check(step, int(sizes.max()))
            on = np.flatnonzero(sizes > step)
            best = self.top(rows[on])
            place = begins[on] + step
            cell = best[np.arange(len(on)), (chances[place] * best.shape[1]).astype(np.int64)]
            walked[place] = cell
            rows[on, :-1], rows[on, -1] = rows[on, 1:], cell + 1
        return walked, sizes


def fit(
    trips: Indices, sizes: Indices, *, cells: int, k: int, units: int, epochs: int, seed: int,
    check: Callable[[int, int], None],
) -> Network:  # fmt: skip
    """Train a network on all prefixes.

    Args:
        trips: the cells of all trips, one trip behind the other: numbers below `cells`.
        sizes: of the trips.
        k: of how many likeliest cells one comes next.
        units: of the first LSTM, each way.
        epochs: how often it sees every prefix.
        seed: of all chance.
        check: called with how many batches are done, and of how many.

    Raises:
        ValueError: no trip has two cells, so that there is nothing to learn.
    """
    longest = max(1, int(sizes.max()) - 1)
    rows, following = prefixes(trips, sizes, longest)
    if not len(rows):
        raise ValueError("no trip has a second cell")
    network = built(cells, units, seed)
    chance = np.random.default_rng(seed)
    batch = min(_BATCH, len(rows))
    batches = -(-len(rows) // batch)
    for epoch in range(epochs):
        order = np.resize(chance.permutation(len(rows)), batches * batch)
        for place in range(batches):
            check(epoch * batches + place, epochs * batches)
            part = order[place * batch : (place + 1) * batch]
            network.train_on_batch(rows[part], following[part])
    return Network(network, min(k, cells), longest)
