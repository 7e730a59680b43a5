"""Who was in the data: by hand, against scikit-learn, and the numbers of the reference run on data that come with it."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pytest
from effort import times
from seeded_noise import Seeded

from sdcduck.methods.dp.pca import Mechanism, components, utility
from sdcduck.methods.models.membership import fitted, membership_by_components
from sdcduck.methods.models.roc import Curve, Floats, Ranked

HAND = "'(SELECT unnest([0.9, 0.8, 0.8, 0.4]) AS score)', '(SELECT unnest([0.8, 0.5, 0.3, 0.2]) AS score)'"
TILTED = "'(FROM (VALUES (2, 1), (-2, -1), (1, 2), (-1, -2)) members(x, y))'"
OTHERS = "'(FROM (VALUES (2, 0), (1, -1), (3, 3), (0, 1)) others(x, y))'"


# --- scores ----------------------------------------------------------------------------------------------------------


def test_scores_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    row = con.execute(
        f"SELECT members, nonmembers, auc, advantage, tpr_at_0_1_percent, tpr_at_1_percent, warning FROM sdc_membership_risk({HAND})"
    ).fetchone()
    assert row[:6] == (4, 4, 13 / 16, 0.5, 0.25, 0.25)
    assert "fewer than 1000 non-members" in row[6]


def test_the_curve_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score, roc_curve

    chance = np.random.default_rng(1)
    for digits in (0, 1, 6):  # many ties, some, none
        member = chance.random(3000) < 0.4
        score = np.round(chance.normal(size=3000) + 0.5 * member, digits)
        curve = Ranked.of(score).counted(member)
        assert curve.area()[0] == pytest.approx(roc_auc_score(member, score), abs=1e-12)
        false, true, _ = roc_curve(member, score, drop_intermediate=False)
        assert curve.advantage() == pytest.approx((true - false).max(), abs=1e-12)
        for rate in (0.001, 0.01, 0.2):
            assert curve.true_positives(rate) == pytest.approx(true[false <= rate].max(), abs=1e-12)


def test_the_standard_error_is_that_of_all_pairs() -> None:
    chance = np.random.default_rng(2)
    one, other = np.round(chance.normal(0.6, 1, 40), 1), np.round(chance.normal(size=30), 1)
    wins = (one[:, None] > other) + 0.5 * (one[:, None] == other)
    wanted = math.sqrt(wins.mean(axis=1).var(ddof=1) / 40 + wins.mean(axis=0).var(ddof=1) / 30)
    auc, error = Ranked.of(np.concatenate([one, other])).counted(np.arange(70) < 40).area()
    assert (auc, error) == (pytest.approx(wins.mean(), abs=1e-12), pytest.approx(wanted, rel=1e-10))


def test_the_interval_holds_the_truth_as_often_as_it_says(con: duckdb.DuckDBPyConnection) -> None:
    from sdcduck.methods.models.roc import interval

    chance = np.random.default_rng(3)
    truth, inside, rounds = 0.5 * (1 + math.erf(0.5)), 0, 600  # of two normal laws, 1 apart
    for _ in range(rounds):
        scores = np.concatenate([chance.normal(1, 1, 60), chance.normal(size=60)])
        low, high = interval(*Ranked.of(scores).counted(np.arange(120) < 60).area(), 0.9)
        inside += low <= truth <= high
    assert inside / rounds == pytest.approx(0.9, abs=4 * math.sqrt(0.09 / rounds))


def test_one_of_each() -> None:
    auc, error = Curve(np.array([0, 1]), np.array([1, 0])).area()
    assert auc == 1
    assert math.isnan(error)


def test_a_few_who_are_found_for_certain(con: duckdb.DuckDBPyConnection) -> None:
    # The area hardly sees them, the rate at few false positives does.
    con.execute(
        "CREATE TABLE m AS SELECT CASE WHEN i < 50 THEN 2.0 ELSE i * 7919 % 5000 / 5000 END AS score FROM range(5000) r(i)"
    )
    con.execute("CREATE TABLE o AS SELECT i * 6007 % 5000 / 5000 AS score FROM range(5000) r(i)")
    found = con.execute(
        "SELECT auc, tpr_at_0_1_percent, p_value FROM sdc_membership_risk('m', 'o', permutations := 20)"
    ).fetchone()
    assert found[0] < 0.51
    assert found[1] >= 0.01
    # As many as are taken for members by chance.
    none = con.execute("SELECT auc, tpr_at_0_1_percent FROM sdc_membership_risk('o', 'o')").fetchone()
    assert none == (0.5, 0.001)


def test_draws_are_chance_and_repeat(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE m AS SELECT i * 7919 % 1000 AS loss FROM range(1000) r(i)")
    con.execute("CREATE TABLE o AS SELECT 60 + i * 6007 % 1000 AS loss FROM range(1000) r(i)")
    call = "SELECT auc, auc_permuted, advantage, advantage_permuted, p_value, warning FROM sdc_membership_risk({}, permutations := 99, seed := 5)"
    high = con.execute(call.format("'(SELECT -loss AS score FROM m)', '(SELECT -loss AS score FROM o)'")).fetchone()
    assert high[1] == pytest.approx(0.5, abs=0.01)
    assert 0 < high[3] < high[2]
    assert high[4:] == (0.01, None)
    con.execute("SET threads = 1")
    con.execute("CREATE OR REPLACE TABLE m AS FROM m ORDER BY loss")
    assert (
        con.execute(call.format("'(SELECT -loss AS score FROM m)', '(SELECT -loss AS score FROM o)'")).fetchone()
        == high
    )
    low = con.execute(call.format("'m', 'o', 'loss'")).fetchone()
    assert low[0] == pytest.approx(1 - high[0])
    assert "give it with a minus" in low[5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'m', 'o', 'loss'", "unknown column 'loss'"),
        ("'m', 'o', 'name'", "'score' must name a column of numbers"),
        ("'m', 'o', 'hole'", "a score of 'm' is NULL or NaN"),
        ("'o', 'm', 'wild'", "a score of 'o' is NULL or NaN"),
        ("'m', 'o', id := 'id'", "2 of the non-members are members, too"),
        ("'m', 'o', id := 'hole'", "some are NULL"),
        ("'m', 'o', id := 'kind'", "column 'kind' is INTEGER in 'members' and VARCHAR in 'nonmembers'"),
        ("'(FROM m WHERE id < 0)', 'o'", "'members' has no records"),
        ("'m', '(FROM o WHERE id < 0)'", "'nonmembers' has no records"),
        ("'m', 'o', confidence := 95", "95 per cent is 0.95"),
        ("'m', 'o', permutations := -1", "'permutations' must be a whole number"),
        ("'m', 'o', seed := -1", "'seed' must be a whole number"),
        ("NULL, 'o'", "'members' must name a table"),
        ("'m', 'nowhere'", "unknown table 'nowhere'"),
    ],
)  # fmt: skip
def test_wrong_arguments(lasting: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    columns = "i AS id, i / 10 AS score, 'n' || i AS name, CASE WHEN i <> 3 THEN i END AS hole, CASE WHEN i = 3 THEN 'nan'::DOUBLE ELSE i END AS wild"
    lasting.execute(f"CREATE OR REPLACE TABLE m AS SELECT {columns}, i::INTEGER AS kind FROM range(5) r(i)")
    lasting.execute(f"CREATE OR REPLACE TABLE o AS SELECT {columns}, 'x' AS kind FROM range(3, 9) r(i)")
    with pytest.raises(duckdb.Error, match=message):
        lasting.execute(f"FROM sdc_membership_risk({arguments})").fetchall()


def test_huge_scores_and_infinite_ones_have_an_order(con: duckdb.DuckDBPyConnection) -> None:
    found = con.execute(
        "SELECT auc, ci_low, ci_high FROM sdc_membership_risk('(SELECT unnest([1e308, ''inf''::DOUBLE]) AS score)', '(SELECT unnest([-1e308, ''-inf''::DOUBLE]) AS score)')"
    ).fetchone()
    assert found == (1, 1, 1)


# --- components ------------------------------------------------------------------------------------------------------


def test_components_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    rows = con.execute(
        f"SELECT k, auc, auc_max, explained FROM sdc_pca_membership({TILTED}, {OTHERS}, k := 2)"
    ).fetchall()
    assert rows == [(1, 0.625, 0.625, pytest.approx(0.9)), (2, 0.5, 0.625, pytest.approx(1))]
    # The same loadings, as somebody else has released them.
    for vector, auc in (((0.5**0.5, 0.5**0.5), 0.625), ((1.0, 0.0), 6 / 16)):
        con.execute(
            "CREATE OR REPLACE TABLE told AS FROM (VALUES (1, 'x', ?::DOUBLE), (1, 'y', ?)) t(component, column_name, loading)",
            vector,
        )
        call = f"{TILTED}, {OTHERS}, loadings := 'told', scaling := {{'x': [0, 1], 'Y': [0, 1]}}"
        found = con.execute(f"SELECT k, auc FROM sdc_pca_membership({call})").fetchall()
        # y squared of the members: 1, 1, 4, 4; of the others 0, 1, 9, 1.
        assert found == [(1, auc)]


def test_sdc_pca_and_the_attack_agree(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE m AS SELECT hash(i) % 97 AS a, hash(i + 1) % 89 AS b, hash(i) % 97 + hash(i + 2) % 50 AS c FROM range(60) r(i)"
    )
    con.execute(
        "CREATE TABLE o AS SELECT hash(-i) % 97 AS a, hash(i + 9999) % 89 AS b, hash(-i) % 97 + hash(i + 8888) % 50 AS c FROM range(70) r(i)"
    )
    con.execute("CREATE TABLE told AS FROM sdc_pca('m', ['a', 'b', 'c'])")
    own = con.execute("SELECT k, auc, p_value, explained FROM sdc_pca_membership('m', 'o')").fetchall()
    assert [row[0] for row in own] == [1, 2]
    released = con.execute(
        "SELECT k, auc, p_value, explained FROM sdc_pca_membership('m', 'o', loadings := 'told', k := 2)"
    ).fetchall()
    for one, other in zip(own, released, strict=True):
        assert one == pytest.approx(other, rel=1e-9)


def max_areas(data: Floats, size: int, rounds: int, shown: tuple[int, ...] = ()) -> tuple[Floats, Floats]:
    """The largest area of each round, and areas at some k."""
    found, at = [], []
    for seed in range(rounds):
        drawn = np.random.default_rng(seed).permutation(len(data))
        members, others = data[drawn[:size]], data[drawn[size : 2 * size]]
        centre = members.mean(axis=0)
        told = membership_by_components(
            members - centre, others - centre, fitted(members - centre)[1][:-1], 0.95, 0, 0, lambda *_: None
        )
        found.append(told.largest[-1])
        at.append([told.auc[k - 1] for k in shown])
    return np.array(found), np.array(at).mean(axis=0)


def standardised(name: str) -> Floats:
    from sklearn import datasets

    data = getattr(datasets, f"load_{name}")().data
    data = data[:, data.std(axis=0) > 0]
    return np.asarray((data - data.mean(axis=0)) / data.std(axis=0))


@pytest.mark.parametrize(
    ("name", "size", "mean", "sd", "at"),
    [
        ("digits", 50, 1.000, 0.0, {40: 1.000, 10: 0.823, 1: 0.545}),
        ("digits", 100, 0.967, 0.010, {10: 0.681, 30: 0.917}),
        ("digits", 200, 0.824, 0.020, {10: 0.594, 40: 0.806}),
        ("digits", 400, 0.671, 0.012, {}),
        ("digits", 800, 0.593, 0.016, {}),
        ("breast_cancer", 30, 1.000, 0.0, {10: 0.829}),
        ("breast_cancer", 60, 0.838, 0.018, {}),
        ("breast_cancer", 120, 0.659, 0.040, {}),
        ("breast_cancer", 240, 0.589, 0.019, {}),
    ],
)
def test_areas_of_bundled_data(name: str, size: int, mean: float, sd: float, at: dict[int, float]) -> None:
    # Ten rounds of sixty of breast_cancer have a mean from .82 to .88; forty come near .852, which 400 have.
    found, areas = max_areas(standardised(name), size, 40 if name == "breast_cancer" else 10, tuple(at))
    assert found.mean() == pytest.approx(mean, abs=4 * sd / math.sqrt(10) + 0.01)
    assert areas == pytest.approx(list(at.values()), abs=0.04)


def test_isotropic_data() -> None:
    # Where there are no more members than columns, they lie in the plane of the components: an area of 1.
    for size, wanted, rounds in (
        (50, 1.0, 2),
        (100, 1.0, 2),
        (200, 1.0, 2),
        (500, 0.972, 3),
        (1000, 0.890, 3),
        (5000, 0.691, times(1, 5)),
    ):
        data = np.random.default_rng(size).normal(size=(2 * size * rounds, 100))
        found = [max_areas(part, size, 1)[0][0] for part in np.array_split(data, rounds)]
        assert np.mean(found) == pytest.approx(wanted, abs=0.01)


def defended(name: str, epsilon: float, rounds: int) -> tuple[float, float]:
    """The mean of the largest area against noisy components of a hundred digits, and of what twenty of them tell."""
    areas, told = [], []
    data = standardised("digits")
    widths = data.max(axis=0) - data.min(axis=0)
    for seed in range(rounds):
        drawn = np.random.default_rng(seed).permutation(len(data))
        members, others = data[drawn[:100]], data[drawn[100:200]]
        sides = [members - members.mean(axis=0), others - members.mean(axis=0)]
        if name == "analyze_gauss":  # of rows of length 1
            sides = [side / np.sqrt((side**2).sum(axis=1, keepdims=True)) for side in sides]
        second = sides[0].T @ sides[0] / 100
        one = Mechanism(name, widths, 1.0, 100, epsilon, 0.01, "add_remove", "classic")
        noisy = components(one.noisy(second, Seeded(1000 + seed)) if epsilon < math.inf else second)[1]
        areas.append(membership_by_components(*sides, noisy[:-1], 0.95, 0, 0, lambda *_: None).largest[-1])
        told.append(utility(second, noisy[:20]))
    return float(np.mean(areas)), float(np.mean(told))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("analyze_gauss", {1: (0.61, 0.49), 100: (0.92, 0.994)}),
        ("laplace_scalar", {1: (0.57, 0.37), 1e3: (0.63, 0.65), 1e5: (0.93, 0.98), 1e7: (0.973, 1)}),
        ("laplace_vector", {1e5: (0.92, 0.995)}),
        ("laplace_advanced", {1e5: (0.73, 0.85)}),
    ],
)
def test_noise_protects_and_costs(name: str, wanted: dict[float, tuple[float, float]]) -> None:
    found = {epsilon: defended(name, epsilon, 10) for epsilon in wanted}
    for epsilon, numbers in wanted.items():
        assert found[epsilon] == pytest.approx(numbers, abs=0.04)
    rising = np.array(list(found.values()))
    assert (np.diff(rising, axis=0) > -0.03).all()


def test_without_noise_and_where_compositions_cross() -> None:
    assert defended("laplace_scalar", math.inf, 10) == pytest.approx((0.973, 1), abs=0.01)
    # Far above the crossing advanced composition adds more noise: it leaks less, and tells less.
    (leak, told), (naive, more) = (defended(name, 1e5, 10) for name in ("laplace_advanced", "laplace_scalar"))
    assert leak < naive
    assert told < more
