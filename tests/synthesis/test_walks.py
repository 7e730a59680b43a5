"""Records that walk down trees side by side come to the leaves that they would come to one by one."""

from __future__ import annotations

import numpy as np
import pytest

from sdcduck.methods.synthesis.records import _walk
from sdcduck.methods.synthesis.trees import INFINITY, MINUS_INFINITY, NAN, NULL

LARGEST = 2**31 - 1


def leaf_of(root: int, codes: list[int], nodes: np.ndarray, orders: list[int]) -> int:
    """One record, as the documentation of `Model` has it."""
    node = root
    while nodes[node][0] >= 0:
        predictor, order_at, cut, left, right, missing_left = nodes[node].tolist()
        code = codes[predictor]
        if order_at >= 0:
            place = orders[order_at + code + 1] if order_at + code + 1 < len(orders) else -1
            missing = place < 0
        else:
            place = {MINUS_INFINITY: 0, INFINITY: LARGEST}.get(code, code + 1)
            missing = code in (NULL, NAN)
        node = left if (missing_left if missing else place <= cut) else right
    return node


@pytest.mark.parametrize("records", [0, 1, 7, 8, 9, 1000])
def test_leaves(records: int) -> None:
    chance = np.random.default_rng(records)
    numbers, categories, size = 3, 2, 20
    orders = chance.permutation(np.arange(-3, size - 2)).clip(-1).tolist() + chance.permutation(size + 1).tolist()
    inner = 200
    nodes = np.zeros((2 * inner + 1, 6), np.int32)
    for node in range(len(nodes)):
        predictor = chance.integers(0, numbers + categories) if node < inner else -1
        order_at = (predictor - numbers) * size if predictor >= numbers else -1
        cut = chance.choice([-1, 0, 5, 9, 12, size, LARGEST])
        nodes[node] = predictor, order_at, cut, 2 * node + 1, 2 * node + 2, chance.integers(0, 2)
    codes = np.column_stack(
        [chance.integers(-4, size, records) for _ in range(numbers)]
        + [chance.integers(-1, size + 9, records) for _ in range(categories)]  # some came after the training
    ).astype(np.int32)
    roots = chance.choice([0, 1, 2, 2 * inner], records)
    which = chance.permutation(records)
    leaves = np.empty(records, np.int64)
    _walk(which, roots, codes, nodes.ravel(), np.array([*orders, -1], np.int32), leaves)
    expected = [leaf_of(root, codes[record].tolist(), nodes, orders) for record, root in zip(which, roots, strict=True)]
    assert leaves.tolist() == expected
