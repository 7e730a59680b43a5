"""What follows from exact sums is what is a combination of their rows."""

from __future__ import annotations

import numpy as np
import pytest

from sdcduck.methods.sequence.knowledge import TooMuchKnown
from sdcduck.methods.sequence.sets import Floats, Sets
from sdcduck.methods.sequence.sums import ExactSums


def follows(rows: Floats, group: Floats) -> bool:
    """Whether the sum of a group is a combination of sums, by ranks of whole numbers."""
    return bool(np.linalg.matrix_rank(np.vstack([rows, group])) == np.linalg.matrix_rank(rows))


@pytest.mark.parametrize("seed", range(12))
def test_the_smallest_atom_that_follows_is_that_of_the_rank(seed: int) -> None:
    chance = np.random.default_rng(seed)
    sizes = chance.integers(0, 9, 9).astype(float)
    sums, rows, found = ExactSums(sizes), np.ones((1, 9)), []
    for _ in range(7):
        asked = (chance.random((chance.integers(1, 3), 9)) < 0.5).astype(float)
        asked = asked[asked.any(axis=1)]
        would = sums.would(Sets.of_rows(asked))
        after = np.vstack([rows, asked])
        atoms = {tuple(after[:, cell]) for cell in range(9)}
        groups = [np.array([tuple(after[:, cell]) == atom for cell in range(9)], float) for atom in atoms]
        wanted = min((float(group @ sizes) for group in groups if follows(after, group)), default=np.inf)
        assert would.smallest == wanted
        found.append(would.smallest)
        if chance.random() < 0.7:
            sums.keep(would)
            rows = after
    assert len(set(found)) > 1


def test_nothing_is_kept_of_what_was_only_tried() -> None:
    sums = ExactSums(np.array([9.0, 1, 9]))
    assert sums.would(Sets.of_lists([[0], [1]])).smallest == 1
    assert sums.would(Sets.of_lists([[0]])).smallest == 9


def test_a_group_of_nobody_can_follow() -> None:
    assert ExactSums(np.array([5.0, 0])).would(Sets.of_lists([[1]])).smallest == 0


def test_more_than_can_be_kept_is_refused() -> None:
    sums = ExactSums(np.ones(400), most_bytes=40_000)
    with pytest.raises(TooMuchKnown):
        sums.would(Sets.of_rows(np.random.default_rng(1).random((100, 400)) < 0.5))
