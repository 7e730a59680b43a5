"""What the attacks on synthetic data are made of: predicates, guesses, rates and subsets, on tables one can count by hand."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdcduck.methods.risk import attacks, predicates
from sdcduck.methods.risk.attacks import Rate, privacy_risk, wilson
from sdcduck.methods.risk.column_subsets import association, share_of_originals, subsets
from sdcduck.methods.risk.predicates import AT_LEAST, AT_MOST, EQUAL, UNEQUAL, Matches, Predicates, success_rates

NONE = math.nan
NUMBERS = frozenset({0})


def quiet(done: int, total: int) -> None:
    """Nobody stops this."""


def chance(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- rates -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("successes", "attacks_made"), [(0, 1), (1, 1), (3, 10), (0, 500), (250, 500), (499, 500)])
def test_the_interval_of_a_rate_is_that_of_wilson(successes: int, attacks_made: int) -> None:
    from scipy.stats import binomtest  # large: the product does without

    wanted = binomtest(successes, attacks_made).proportion_ci(0.9, method="wilson")
    found = wilson(successes / attacks_made, attacks_made, 0.9)
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), abs=1e-12)


def test_risk_is_what_the_attack_gains_of_what_there_was_to_gain() -> None:
    found = privacy_risk(wilson(0.6, 1000, 0.95), wilson(0.2, 1000, 0.95))
    assert found is not None
    assert found.value == pytest.approx(0.5)
    # To first order the error of a ratio of two binomial rates: sqrt(var_a / (1-c)^2 + var_c (1-a)^2 / (1-c)^4).
    half = 1.96 * math.sqrt(0.6 * 0.4 / 1000 / 0.64 + 0.2 * 0.8 / 1000 * 0.16 / 0.8**4)
    assert (found.value - found.low, found.high - found.value) == pytest.approx((half, half), rel=0.02)
    assert privacy_risk(Rate(1.0, 0.9, 1.0), Rate(1.0, 0.9, 1.0)) is None


@settings(deadline=None)
@given(st.integers(0, 50), st.integers(0, 49), st.sampled_from([0.5, 0.95, 0.999]))
def test_the_interval_of_the_risk_holds_it(attack: int, control: int, confidence: float) -> None:
    found = privacy_risk(wilson(attack / 50, 50, confidence), wilson(control / 50, 50, confidence))
    assert found is not None
    assert found.low <= found.value <= found.high <= 1
    assert (found.value > 0) == (attack > control)


# --- singling out ----------------------------------------------------------------------------------------------------


def test_predicates_count_the_records_that_meet_them() -> None:
    table = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 1.0], [NONE, 1.0], [NONE, NONE]])
    asked = [
        ((0, AT_MOST, 2.0), (1, EQUAL, 0.0), 2), ((0, AT_LEAST, 2.0), (1, EQUAL, 0.0), 1),
        ((0, EQUAL, NONE), (1, EQUAL, 1.0), 1), ((0, EQUAL, NONE), (1, EQUAL, NONE), 1),
        ((0, UNEQUAL, NONE), (1, UNEQUAL, 1.0), 2), ((0, UNEQUAL, 1.0), (1, UNEQUAL, 0.0), 3),
        ((0, AT_LEAST, NONE), (1, EQUAL, 0.0), 0),
    ]  # fmt: skip
    made = Predicates(*(np.array([[a[k], b[k]] for a, b, _ in asked]) for k in range(3)))
    found = made.matches(table)
    assert found.counts.tolist() == [wanted for _, _, wanted in asked]
    assert found.rows.tolist() == [0, 1, 3, 4, 0, 2, -1]
    assert found.alone.tolist() == [wanted == 1 for _, _, wanted in asked]


def test_one_column_singles_out_by_rare_values_and_ends() -> None:
    synthetic = np.array([[1.0, 5.0], [2.0, 5.0], [2.0, 6.0], [7.0, NONE]])
    made = predicates.of_one_column(synthetic, NUMBERS, 100, chance())
    said = sorted(zip(made.columns[:, 0], made.operators[:, 0], map(str, made.values[:, 0]), strict=True))
    assert said == [
        (0, EQUAL, "1.0"), (0, EQUAL, "7.0"), (0, AT_MOST, "1.0"), (0, AT_LEAST, "7.0"), (1, EQUAL, "6.0"),
        (1, EQUAL, "nan"),
    ]  # fmt: skip
    assert len(predicates.of_one_column(synthetic, NUMBERS, 2, chance())) == 2
    assert not len(predicates.of_one_column(np.ones((4, 2)), NUMBERS, 100, chance()))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 3), st.integers(0, 10**6))
def test_what_several_columns_say_is_true_of_one_synthetic_record(
    records: int, columns: int, terms: int, seed: int
) -> None:
    terms = min(terms, columns)
    synthetic = chance(seed).integers(0, 6, (records, columns)).astype(float)
    synthetic[chance(seed + 1).random(synthetic.shape) < 0.1] = NONE
    made = predicates.of_several_columns(synthetic, NUMBERS, terms, 20, chance(seed), quiet)
    assert made.matches(synthetic).alone.all()
    assert len({tuple(map(str, np.r_[c, o, v])) for c, o, v in zip(made.columns, made.operators, made.values, strict=True)}) == len(made) <= 20  # fmt: skip
    assert all(len(set(chosen)) == terms for chosen in made.columns)


@settings(deadline=None)
@given(st.integers(1, 5000), st.integers(1, 5000), st.lists(st.integers(0, 5000), min_size=1, max_size=5))
def test_a_sample_holds_one_as_often_as_the_hypergeometric_law_says(records: int, size: int, counts: list[int]) -> None:
    from scipy.stats import hypergeom

    size, met = min(size, records), np.minimum(counts, records)
    assert predicates.holds_one(met, records, size) == pytest.approx(hypergeom.pmf(1, records, met, size), abs=1e-9)


def counted(counts: np.ndarray) -> Matches:
    """Predicates that meet different people."""
    return Matches(counts, np.where(counts > 0, np.arange(len(counts)), -1))


def test_a_control_of_another_size_is_judged_as_if_it_were_as_large() -> None:
    # 400 predicates that one of 1000 people meets in the mean, some of them many, and nobody was copied.
    generator = chance(5)
    share = generator.gamma(0.5, 1 / 500, 400)
    for controls in (250, 1000, 4000):
        gains = []
        for _ in range(200):
            ours, theirs = generator.binomial(1000, share), generator.binomial(controls, share)
            rate, control = success_rates(counted(ours), 1000, counted(theirs), controls, 0.95)
            assert control is not None
            gains.append(rate.value - control.value)
        assert np.mean(gains) == pytest.approx(0, abs=4 * np.std(gains) / math.sqrt(200)), controls


def test_who_is_in_the_original_alone_is_no_merit_of_the_control() -> None:
    ours, theirs = counted(np.ones(50, np.int64)), counted(np.zeros(50, np.int64))
    for controls in (10, 100, 1000):
        rate, control = success_rates(ours, 100, theirs, controls, 0.95)
        assert control is not None
        assert (rate.value, control.value) == (1, pytest.approx(0, abs=1e-9))


def test_predicates_that_single_out_the_same_person_are_one_finding() -> None:
    # 20 persons, each found by 5 predicates of 200: as sure as 20 of 40.
    found = Matches(np.repeat([1, 0], 100), np.r_[np.repeat(np.arange(20), 5), np.full(100, -1)])
    assert found.repetition == 5
    rate, _ = success_rates(found, 1000, None, 0, 0.95)
    assert rate == wilson(0.5, 40, 0.95)


# --- linkability and inference ---------------------------------------------------------------------------------------


def test_halves_are_linked_if_their_neighbours_meet() -> None:
    synthetic = np.array([[0.0, 0.0], [10.0, 10.0], [20.0, 20.0], [30.0, 30.0]])
    targets = np.array([[1.0, 1.0], [1.0, 29.0], [11.0, 19.0]])
    scales = np.array([30.0, 30.0])
    for neighbours, wanted in ((1, [True, False, False]), (2, [True, False, True]), (4, [True, True, True])):
        found = attacks.linked(targets, synthetic, scales, [0], [1], neighbours, chance(), quiet)
        assert found.tolist() == wanted


@pytest.mark.parametrize(("records", "neighbours"), [(5, 1), (7, 2), (8, 4), (6, 4)])
def test_chance_links_as_often_as_random_sets_meet(records: int, neighbours: int) -> None:
    sets = list(combinations(range(records), neighbours))
    met = sum(bool(set(sets[0]) & set(other)) for other in sets) / len(sets)
    assert attacks.linked_by_chance(records, neighbours) == pytest.approx(met)


def test_a_guess_is_right_within_its_share_of_the_truth() -> None:
    truth = np.array([100.0, 100.0, -100.0, 0.0, 0.0, NONE, NONE, 5.0])
    guess = np.array([105.0, 105.1, -95.0, 0.0, 0.1, NONE, 5.0, NONE])
    assert attacks.right(guess, truth, 0.05).tolist() == [True, False, True, True, False, True, False, False]


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.integers(-20, 20).map(float), st.just(NONE)), min_size=1, max_size=12),
    st.lists(st.one_of(st.integers(-20, 20).map(float), st.just(NONE)), min_size=1, max_size=12),
    st.sampled_from([0.0, 0.05, 0.3]),
)
def test_guessing_is_as_good_as_counting_says(truths: list[float], secrets: list[float], tolerance: float) -> None:
    truth, secret = np.array(truths), np.array(secrets)
    wanted = [np.mean([attacks.right(np.array([s]), np.array([t]), tolerance)[0] for s in secret]) for t in truth]
    assert attacks.right_by_chance(truth, secret, tolerance).tolist() == pytest.approx(wanted)
    # No other guess that some value accepts is right for more of the synthetic records.
    best = attacks.right(np.full(len(secret), attacks.modal(secret, tolerance)), secret, tolerance).sum()
    others = [*secret, *(secret - tolerance * abs(secret)), NONE]
    assert best == max(attacks.right(np.full(len(secret), other), secret, tolerance).sum() for other in others)


# --- subsets ---------------------------------------------------------------------------------------------------------


def test_association_is_cramers_v() -> None:
    # 30 10 / 10 30: chi-square is 80 (900 - 100)^2 / 40^4 = 20, and V = sqrt(20 / 80).
    table = np.repeat([[0.0, 0, 7], [0, 1, 7], [1, 0, 7], [1, 1, 7]], [30, 10, 10, 30], axis=0)
    found = association(table, frozenset())
    assert found[0, 1] == found[1, 0] == pytest.approx(0.5)
    assert (found[2] == 0).all()
    numbers = np.column_stack([np.arange(100.0), np.arange(100.0) ** 3, chance().random(100)])
    found = association(numbers, frozenset({0, 1, 2}))
    assert found[0, 1] == pytest.approx(1)
    assert found[0, 2] < 0.5


@settings(deadline=None)
@given(st.integers(1, 25), st.integers(1, 25), st.integers(1, 30), st.integers(0, 1000))
def test_subsets_are_different_and_as_many_as_there_are(columns: int, size: int, wanted: int, seed: int) -> None:
    size = min(size, columns)
    symmetric = chance(seed).random((columns, columns))
    found = subsets(symmetric + symmetric.T, size, wanted, chance(seed))
    places = [chosen for _, chosen in found]
    assert len(set(places)) == len(places)
    assert len(places) == min(wanted, math.comb(columns, size))
    assert all(len(set(chosen)) == size and list(chosen) == sorted(chosen) for chosen in places)


def test_columns_that_go_together_are_looked_at_together() -> None:
    associations = np.zeros((12, 12))
    for one, other in combinations((3, 5, 8), 2):
        associations[one, other] = associations[other, one] = 0.9
    found = subsets(associations, 3, 24, chance())
    assert ("correlated", (3, 5, 8)) in found


def test_whoever_is_nearest_decides_the_share_and_equal_ones_in_part() -> None:
    original, holdout = np.array([[0.0], [10.0], [10.0], [NONE]]), np.array([[10.0], [20.0]])
    synthetic = np.array([[1.0], [11.0], [9.0], [19.0], [NONE]])
    share, answers = share_of_originals(synthetic, original, holdout, np.array([20.0]), chance())
    assert share == pytest.approx((1 + 2 / 3 + 2 / 3 + 0 + 1) / 5)
    assert answers == pytest.approx(25 / (1 + 4 / 3 + 1 + 1))


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(2, 4), st.integers(0, 10**6))
def test_if_chance_had_drawn_the_holdout_the_share_would_be_the_expected_one(
    originals: int, holdouts: int, levels: int, seed: int
) -> None:
    people = chance(seed).integers(0, levels, (originals + holdouts, 2)).astype(float)
    synthetic = chance(seed + 1).integers(0, levels, (3, 2)).astype(float)
    shares = []
    for chosen in combinations(range(originals + holdouts), originals):
        rest = [place for place in range(originals + holdouts) if place not in chosen]
        share, _ = share_of_originals(synthetic, people[list(chosen)], people[rest], np.zeros(2), chance(seed))
        shares.append(share)
    assert np.mean(shares) == pytest.approx(originals / (originals + holdouts))
