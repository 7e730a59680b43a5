"""Does the noise keep its promise? Each private statistic is drawn many times on neighbouring tables: ``make dp-audit``.

An event that one table makes more likely than the other proves an epsilon: the logarithm of the ratio of its chances,
less delta. Which event tells most is looked for in one half of the draws, and its chances are bounded by Clopper and
Pearson in the other, wrong with a chance of one in a million. What is proved must not be more than what is charged. An
audit that found nothing in anything would be worth nothing: where 160 records differ, each must find more than that.

`sdc_dp_release` is asked in SQL, a thousand groups at a time, for each is a release of its own. The others are drawn by
what their planners call, with the noise that users get.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import duckdb
import numpy as np
import scipy
from numpy.typing import NDArray

import sdcduck
from sdcduck.catalog import Privacy
from sdcduck.guard.calls import Noised
from sdcduck.guard.costs import cost_of
from sdcduck.guard.rewritten import Release
from sdcduck.methods.dp.calibration import gaussian_ratio
from sdcduck.methods.dp.covariance import private_covariance
from sdcduck.methods.dp.mean_test import private_mean_test
from sdcduck.methods.dp.means import mean_noise
from sdcduck.methods.dp.moments import GRID, Moments, upper
from sdcduck.methods.dp.noise import KEPT, Released, grid_noise, noisy, step_of
from sdcduck.methods.dp.pca import APPROXIMATE, MECHANISMS, Mechanism
from sdcduck.methods.dp.regression import noisy_products, product_noise

Floats = NDArray[np.float64]

RUNS = 100_000
WRONG = 1e-6
MANY = 160
"""Records that differ where an audit must find more than is charged for one."""
RECORDS = 400
FEW = 400
"""Runs that are enough for that: two scores that are never on the same side prove an epsilon of 2.6."""
EPSILON, DELTA = 1.0, 1e-5
_GROUPS = 1000


@dataclass(frozen=True)
class Case:
    """A private statistic.

    Attributes:
        draw: of the number of records that differ, and of the number of runs: scores (runs, k), each of which may tell.
    """

    name: str
    epsilon: float
    delta: float
    draw: Callable[[int, int], Floats]

    def proved(self, runs: int) -> tuple[float, float]:
        """The epsilon that so many draws prove of tables that differ in one record, and few draws in `MANY`."""
        none = self.draw(0, runs)
        one, many = self.draw(1, runs), self.draw(MANY, FEW)
        return proved_epsilon(none, one, self.delta), proved_epsilon(none[:FEW], many, self.delta)


def proved_epsilon(one: Floats, other: Floats, delta: float) -> float:
    """A lower bound of epsilon, of scores (runs, k) on both tables; wrong with a chance of `WRONG`.

    >>> draws = np.linspace(0, 1, 1000)[:, None]
    >>> proved_epsilon(draws, draws, 0.0), proved_epsilon(draws, draws + 1, 0.0) > 3
    (0.0, True)
    """
    train, test = [both[::2] for both in (one, other)], [both[1::2] for both in (one, other)]
    candidates = [
        (_ratio(first, second, place, end, sign, delta, certain=False), second_first, place, end, sign)
        for second_first, (first, second) in ((False, train), (True, train[::-1]))
        for place in range(one.shape[1])
        for end in np.quantile(np.concatenate([train[0][:, place], train[1][:, place]]), np.linspace(0.01, 0.99, 99))
        for sign in (1.0, -1.0)
    ]
    _, second_first, place, end, sign = max(candidates)
    first, second = test[::-1] if second_first else test
    return max(0.0, _ratio(first, second, place, end, sign, delta, certain=True))


def _ratio(first: Floats, second: Floats, place: int, end: float, sign: float, delta: float, *, certain: bool) -> float:
    """The logarithm of the ratio of the chances that a score is beyond an end, or a bound of it."""
    more, less = (int((sign * scores[:, place] > sign * end).sum()) for scores in (first, second))
    # To choose an event, a milder bound: what is seen once proves little.
    tail = WRONG / 2 if certain else 0.01
    low = float(scipy.special.betaincinv(more, len(first) - more + 1, tail)) if more else 0.0
    high = float(scipy.special.betaincinv(less + 1, len(second) - less, 1 - tail)) if less < len(second) else 1.0
    return math.log((low - delta) / high) if low > delta else -math.inf


# --- the statistics --------------------------------------------------------------------------------------------------


def released(asked: str, neighbours: str, changed: int, runs: int) -> Floats:
    """``sdc_dp_release`` by groups. Of 'replace' two groups are one draw: records of one move to the other."""
    with sdcduck.connect(progress=False) as con:
        con.execute(
            "CREATE TABLE t AS SELECT 'g' || g AS g, 100.0 AS x FROM range(?) groups(g), "
            "range(CASE WHEN g % 2 = 0 THEN ? ELSE ? END)",
            [_GROUPS, RECORDS + changed, RECORDS - changed if neighbours == "replace" else RECORDS + changed],
        )
        drawn: list[Floats] = []
        while len(drawn) * (500 if neighbours == "replace" else 1000) < runs:
            drawn.append(_groups(con, asked, neighbours))
    return np.concatenate(drawn)[:runs]


def _groups(con: duckdb.DuckDBPyConnection, asked: str, neighbours: str) -> Floats:
    """A score for each group, or pair of groups: the numbers in units of their noise, and their sum."""
    columns = con.execute(
        f"SELECT category, statistic, estimate / noise_sd AS z FROM sdc_dp_release('t', {asked}, epsilon := {EPSILON}, "
        f"delta := {DELTA}, neighbours := '{neighbours}', by := 'g', "
        f"groups := [{', '.join(repr(f'g{place}') for place in range(_GROUPS))}]) WHERE category IS NOT NULL"
    ).fetchnumpy()
    found = np.asarray(columns["z"], dtype=np.float64).reshape(_GROUPS, -1)
    if neighbours == "replace":
        found = found[::2] - found[1::2]
    return np.column_stack([found, found.sum(axis=1)])


def regions(changed: int, runs: int) -> Floats:
    """`sdc_dp_mean_region` of one column: records lie at one end of the ellipsoid, and others at the other."""
    bound, ratio = 3.0, gaussian_ratio(EPSILON * KEPT, DELTA * KEPT)
    step = step_of(2 * bound, 2 * bound / ratio, bound)
    sigma = (2 * bound * (1 + 1e-12) / step + 1) / ratio
    total = round((2 * changed - RECORDS) * bound / step)
    return np.array([total + one for one in grid_noise(sigma, runs)], dtype=np.float64)[:, None] * step


def means(delta: float, columns: int, changed: int, runs: int) -> Floats:
    """Of columns that a record has at one end, or at the other."""
    noise = mean_noise(columns, RECORDS, EPSILON, delta)
    truth = np.full(runs * columns, (2 * changed - RECORDS) / RECORDS)
    found = noise.put_on(truth, Released()).reshape(runs, columns)
    ends = np.array([-1.0, -1 + 2 / RECORDS])[:, None, None]
    told = np.abs(found - ends).sum(axis=-1)
    return np.column_stack([found.sum(axis=1), told[0] - told[1]])


def moments(changed: int, columns: int) -> Moments:
    """Of records at one corner, and the changed ones at another."""
    values = np.ones((RECORDS, columns), dtype=np.int64)
    values[:changed, -1] = -1
    sums, products = values.sum(axis=0) * GRID, values.T @ values * GRID**2
    return Moments(RECORDS, tuple(map(int, sums)), tuple(int(products[pair]) for pair in upper(columns)))


def covariances(columns: int, changed: int, runs: int) -> Floats:
    """Of `sdc_dp_covariance`: the entries, and the smallest eigenvalue by the last direction."""
    truth, sampler = moments(changed, columns).covariance, Released()
    drawn = np.array([private_covariance(truth, RECORDS, 2.0, EPSILON, sampler) for _ in range(runs)])
    return np.column_stack([drawn.reshape(runs, -1), np.linalg.eigvalsh(drawn)])


def tests_of_means(mode: str, changed: int, runs: int) -> Floats:
    """Of `sdc_dp_mean_test`: the private means, and the statistic."""
    sampler, generator = Released(), np.random.default_rng(1)
    first, second = moments(changed, 2), moments(0, 2)
    made = [private_mean_test(first, second, EPSILON, sampler, generator, rounds=20, mode=mode) for _ in range(runs)]
    return np.array([[*one.means[0], float(one.means[0].sum()), one.t2] for one in made])


def entries(mechanism: str, changed: int, runs: int) -> Floats:
    """Of `sdc_pca`: the entries of the noisy matrix, of rows of length 1 or of corners."""
    delta = DELTA if mechanism in APPROXIMATE else 0.0
    one = Mechanism(mechanism, np.full(2, 2.0), 1.0, RECORDS, EPSILON, delta)
    rows = np.tile([1.0, 1.0], (RECORDS, 1))
    rows[:changed] = [1.0, -1.0]
    rows /= math.sqrt(2) if one.is_normal else 1
    second, sampler = rows.T @ rows / RECORDS, Released()
    drawn = np.array([one.noisy(second, sampler) for _ in range(runs)])
    return drawn[:, [0, 0, 1], [0, 1, 1]]


def regressions(delta: float, changed: int, runs: int) -> Floats:
    """Of `sdc_dp_regression`: the entries of the noisy matrix that a record changes, and their sum."""
    noise, sampler = product_noise(3, RECORDS, EPSILON, delta), Released()
    rows = np.tile([1.0, 1.0, 1.0], (RECORDS, 1))
    rows[:changed] = [1.0, -1.0, -1.0]
    truth = rows.T @ rows / RECORDS
    drawn = np.array([noisy_products(truth, noise, sampler) for _ in range(runs)])
    return np.column_stack([drawn[:, 0, 1], drawn[:, 0, 2], drawn[:, 0, 1] + drawn[:, 0, 2]])


_BOUNDS = "bounds := {'x': [0, 100]}"
BOUNDARY = 0.01
"""The delta where groups appear: so large that what happens so rarely is seen."""


def groups_of_many(changed: int, runs: int) -> Floats:
    """Whether a group appears that has one unit too few, and the number of one that is as often left out as not."""
    privacy = Privacy(EPSILON, BOUNDARY, EPSILON, "add_remove", private=("town",))
    units = (("n", Noised(0, 1, 1.0, "count")),)
    cost = cost_of([Release("people", "", "", "", ("town",), units, selects="n")], privacy)
    (appears,), scale = cost.appear, cost.scales[0][0]
    assert appears is not None
    found = []
    for others in (appears[0] - 1, appears[1]):
        number = others + changed
        drawn = np.array(noisy([number] * runs, scale, gaussian=cost.gaussian))
        found.append(np.where((number >= appears[0]) & (drawn >= appears[1]), drawn, -1))
    return np.column_stack(found)


CASES = [
    Case("sdc_dp_release, a count", EPSILON, DELTA, partial(released, "['true']", "add_remove")),
    Case("sdc_dp_release, counts and sums", EPSILON, DELTA, partial(released, f"['true'], ['x'], {_BOUNDS}", "add_remove")),
    Case("sdc_dp_release, means", EPSILON, DELTA, partial(released, f"means := ['x'], {_BOUNDS}", "add_remove")),
    Case("sdc_dp_release, counts and sums, normal", EPSILON, DELTA, partial(released, f"['true'], ['x'], {_BOUNDS}, noise := 'normal'", "add_remove")),
    Case("sdc_dp_release, who moves, normal", EPSILON, DELTA, partial(released, f"['true'], ['x'], {_BOUNDS}, noise := 'normal'", "replace")),
    Case("sdc_dp_release, who moves", EPSILON, DELTA, partial(released, f"['true'], ['x'], {_BOUNDS}", "replace")),
    Case("sdc_dp_mean_region", EPSILON, DELTA, regions),
    Case("sdc_dp_mean, Laplace, a column", EPSILON, 0.0, partial(means, 0.0, 1)),
    Case("sdc_dp_mean, Laplace, three columns", EPSILON, 0.0, partial(means, 0.0, 3)),
    Case("sdc_dp_mean, normal, 20 columns", EPSILON, DELTA, partial(means, DELTA, 20)),
    Case("sdc_dp_covariance, a column", EPSILON, 0.0, partial(covariances, 1)),
    Case("sdc_dp_covariance, two columns", EPSILON, 0.0, partial(covariances, 2)),
    Case("sdc_dp_mean_test", EPSILON, 0.0, partial(tests_of_means, "safe")),
    Case("sdc_dp_mean_test, literal", EPSILON, 0.0, partial(tests_of_means, "literal")),
    Case("groups that nobody may know", EPSILON, BOUNDARY, groups_of_many),
    *(
        Case(f"sdc_pca, {name}", EPSILON, DELTA if name in APPROXIMATE else 0.0, partial(entries, name))
        for name in MECHANISMS
    ),
    Case("sdc_dp_regression, Laplace", EPSILON, 0.0, partial(regressions, 0.0)),
    Case("sdc_dp_regression, normal", EPSILON, DELTA, partial(regressions, DELTA)),
]  # fmt: skip


def main() -> int:
    """All of them; 1 if one proves more than is charged."""
    runs = max(1000, round(RUNS * float(os.environ.get("SHARE", "1"))))
    print(
        f"{runs:,} runs on each of two tables; at a confidence of {1 - WRONG:.6f} they prove an epsilon of at least",
        flush=True,
    )
    failed = 0
    for case in CASES:
        found, control = case.proved(runs)
        kept = found <= case.epsilon < control
        failed += not kept
        word = "" if kept else " NOT KEPT" if found > case.epsilon else " finds too little"
        print(f"  {found:.3f} of {case.epsilon:g}  {case.name} ({control:.2f} where {MANY} differ){word}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
