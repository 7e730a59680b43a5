"""What a count of a p-table tells of those whom it is about: never more than normal noise of `variances_of_counts`."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import sdcduck
from sdcduck.catalog import stored_ptable
from sdcduck.methods.sequence.attacker import best_guess
from sdcduck.methods.sequence.knowledge import Answers, Knowledge
from sdcduck.methods.sequence.noise import UNITS, variances_of_counts
from sdcduck.methods.sequence.sets import Cells, Sets


@cache
def built_in() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    con = sdcduck.connect()
    table = stored_ptable(con, "default")
    assert table is not None
    con.close()
    return table.i.astype(np.int64), table.v.astype(np.int64), (table.ub - table.lb) / table.modulus


def left(units: int, others: int, chance: float, min_units: int) -> float:
    """The mean variance of the number of those who have the property that one answer leaves, by all that can be told."""
    count, noise, often = built_in()
    seen: dict[int, list[float]] = {}
    for having in range(units + 1):
        ways = np.prod([(units - k) / (k + 1) for k in range(having)])
        before = ways * chance**having * (1 - chance) ** (units - having)
        for added, share in zip(noise, np.where(count == min(having + others, 5), often, 0), strict=True):
            number = having + others + int(added)
            row = seen.setdefault(number if number >= min_units else -1, [0.0, 0.0, 0.0])
            for power in range(3):
                row[power] += before * share * having**power
    return float(sum(square - first**2 / all_ for all_, first, square in seen.values() if all_ > 0))


@pytest.mark.parametrize("min_units", [1, 3, 5])
@pytest.mark.parametrize("units", [1, 2, 4, 6])
def test_no_answer_tells_more_whatever_the_chance_and_whoever_is_counted_with_them(units: int, min_units: int) -> None:
    variance = variances_of_counts(*built_in(), min_units)[units - 1]
    share = variance / (units / 4 + variance)
    shares = [
        left(units, others, chance, min_units) / (units * chance * (1 - chance))
        for others in (0, 1, 2, min_units, min_units + 6)
        for chance in (0.02, 0.3, 0.5, 0.8)
    ]
    assert min(shares) >= share - 1e-9
    assert min(shares) <= share + 0.05, "and some tells nearly as much"


def test_small_numbers_that_are_not_told_leave_the_noise_of_large_ones() -> None:
    """Without `min_units` a person who is alone is found by one answer: nobody is told to be nobody, without noise."""
    assert variances_of_counts(*built_in(), 3).min() > 1.98
    assert variances_of_counts(*built_in(), 3)[-1] == pytest.approx(2, abs=1e-3)
    alone = variances_of_counts(*built_in(), 1)
    assert alone[0] < 0.2
    assert (np.diff(alone) >= 0).all()
    assert len(alone) == UNITS[-1]


def test_noise_of_plus_and_minus_one_tells_odd_from_even() -> None:
    counts, noise = np.array([0, 1, 1]), np.array([0, -1, 1])
    assert variances_of_counts(counts, noise, np.array([1, 0.5, 0.5]), 3)[0] == 0


def test_under_the_default_table_an_attack_gains_less_than_eight_points() -> None:
    """Eight seeds of 60 persons in 512 cells, with short lists, the better attack; numbers below 3 are not told."""
    counts, noise, often = built_in()
    by_size, gains = variances_of_counts(*built_in(), 3), []
    for seed in range(5, 13):
        chance = np.random.default_rng(seed)
        places, cell_of, units = np.unique(chance.integers(0, 512, 60), return_inverse=True, return_counts=True)
        secret = chance.random(60) < 0.3
        having = np.bincount(cell_of, secret, minlength=len(units))
        known, rows, told = Knowledge({"": Cells.numbered(units)}), [], []
        for _ in range(200):
            lists = [np.isin(np.arange(8), chance.permutation(8)[: chance.integers(1, 5)]) for _ in range(3)]
            row = np.multiply.outer(np.multiply.outer(*lists[:2]), lists[2]).ravel()[places]
            if not row.any():
                continue
            would = known.would({"": Answers.of(Sets.of_rows(row), by_size[min(int(row @ units), 32) - 1])})
            if would.least_error < 0.8 or not would.new_sets:
                continue
            known.keep(would)
            number = int(row @ having)
            number += int(chance.choice(noise[counts == min(number, 5)], p=often[counts == min(number, 5)]))
            if number >= 3:
                rows.append(row.astype(float))
                told.append(float(number))
        guessed = best_guess(np.array(rows), np.array(told), units, 2.0, 0.3)[cell_of] > 0.5
        gains.append((guessed == secret).mean() - max(secret.mean(), 1 - secret.mean()))
    assert len(rows) > 4
    assert np.mean(gains) < 0.08
