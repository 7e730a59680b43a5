"""Differential privacy is attacked where it could leak: the noise itself, and everything beside the noise.

The noise: neighbours are told apart no better than the charge allows, by a test of each event at a confidence of one in
a million (Clopper and Pearson). Beside it: groups, orders, digits, errors and costs are the same for neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import LONG, times
from private_people import RECORDS, made
from scipy.stats import beta

import sdcduck
from sdcduck.catalog import Privacy
from sdcduck.guard import Guard, Refused
from sdcduck.guard.calls import Noised
from sdcduck.guard.costs import cost_of
from sdcduck.guard.releases import Given, Releases
from sdcduck.guard.rewritten import Release
from sdcduck.methods.dp.noise import chosen

pytest.importorskip("opendp")

RUNS = times(3_000, 100_000)
"""Of each neighbour; half of them say which event proves most. Noise that is half of what it should be is found out by so
many, as is asked below, and what is charged is seen in part.
"""
MORE = times(10_000, 100_000)
SEEN_BY_MORE = {"variance": MORE, "correlation": MORE, "covariance": MORE, "sum above a border": times(20_000, 100_000)}
"""Of questions whose neighbours differ by the least, where so little is seen: under normal noise, and where more than is
charged has to be. With as many, what is seen is many times its own spread, so that luck does not fail it.
"""
_AT_ONCE = 1_000
MISSED = 1e-6
ONE = {"id": 7, "region": "n", "age": 500, "ill": False, "income": 6000.0}
OTHER = {"id": 7, "region": "s", "age": 501, "ill": True, "income": -6000.0}


def records(person: dict[str, object]) -> str:
    """The people, and one of whom neighbours differ."""
    written = ", ".join(f"{'NULL' if value is None else repr(value)} AS {name}" for name, value in person.items())
    return f"SELECT * FROM ({RECORDS}) WHERE id <> 7 UNION ALL BY NAME SELECT {written}"


def drawn(guard: Guard, query: str, runs: int, part: float = 1.0) -> list[np.ndarray]:
    """What a question would draw, again and again: totals in steps, an array of runs by groups for each column.

    Args:
        part: of the noise that is charged for.
    """
    rewritten, _ = guard.rewritten(query)
    releases: Releases = guard._releases
    _, cost, *_ = releases._cost(rewritten)
    cost = replace(cost, scales=[[part * scale for scale in of] for of in cost.scales])
    exact = releases._columns

    def again(sql: str, given: Given) -> list[list[Any]]:
        return [column * _AT_ONCE for column in exact(sql, given)]

    releases._columns = again  # type: ignore[method-assign]
    every = [releases._draw(rewritten.releases, cost).numbers for _ in range(runs // _AT_ONCE)]
    releases._columns = exact  # type: ignore[method-assign]
    return [
        np.concatenate([np.array(one[column]).reshape(_AT_ONCE, -1) for one in every])
        for column in range(len(every[0]))
    ]


def least_epsilon(one: np.ndarray, other: np.ndarray, delta: float) -> float:
    """What epsilon must be at least, by the best of the events "above a threshold" and "below" it.

    The threshold is that of which half of the runs prove most, and it is the other half that proves.
    """
    found, half = 0.0, len(one) // 2
    for first, second in ((one, other), (other, one)):
        for sign in (1, -1):
            a, b = sign * first.astype(float), sign * second.astype(float)
            ends = np.quantile(np.concatenate([a[:half], b[:half]]), np.linspace(0.01, 0.99, 99))
            best = ends[[int(np.argmax(_proved(a[:half], b[:half], ends, delta)))]]
            found = max(found, float(_proved(a[half:], b[half:], best, delta)[0]))
    return found


def _proved(one: np.ndarray, other: np.ndarray, ends: np.ndarray, delta: float) -> np.ndarray:
    """What epsilon must be at least for each threshold to be passed so often (Clopper and Pearson); 0: nothing is."""
    hits, misses = ((of[:, None] > ends).sum(axis=0) for of in (one, other))
    low = np.where(hits > 0, beta.ppf(MISSED / 8, hits, len(one) - hits + 1), 0.0)
    high = np.where(misses < len(other), beta.ppf(1 - MISSED / 8, misses + 1, len(other) - misses), 1.0)
    return np.log(np.maximum(low - delta, high) / high)


SAME_REGION = OTHER | {"region": "n"}
AUDITED = {
    "count": ("SELECT count(*) FROM people WHERE age = 500", OTHER),
    "count of groups": ("SELECT region, count(*) FROM people GROUP BY region", OTHER),
    "sum": ("SELECT sum(income) FROM people", OTHER),
    "sum of groups": ("SELECT region, sum(income) FROM people GROUP BY region", SAME_REGION),
    "groups of a public table": ("SELECT area, count(*) FROM people JOIN regions USING (region) GROUP BY area", OTHER),
    "a subquery": ("SELECT count(*) FROM (SELECT age AS a FROM people WHERE region <> 's') WHERE a = 500", OTHER),
    "grouping sets": ("SELECT region, ill, count(*) FROM people GROUP BY GROUPING SETS ((region), (ill), ())", OTHER),
    "number of values": ("SELECT count(DISTINCT age) FROM people", OTHER | {"age": 3}),
    "variance": ("SELECT var_samp(income) FROM people", SAME_REGION | {"income": None}),
    "correlation": ("SELECT corr(income, age) FROM people", SAME_REGION | {"income": None}),
    "covariance": ("SELECT region, covar_samp(age, income) FROM people GROUP BY region", OTHER),
    "count above a border": ("SELECT count(*) FROM people WHERE income > 5999", OTHER),
    "sum above a border": ("SELECT sum(income) FROM people WHERE income > 5999.5", SAME_REGION),
    "several at once": ("SELECT count(*) FILTER (WHERE age = 500), sum(income) FROM people", OTHER),
}
"""Questions, and the neighbour that they tell apart best."""
SEEN_IF_HALVED = ("count", "sum", "variance", "several at once")
DOMAINS = "{'region': ['n', 's', 'e', 'w']}"
WITH_AGES = "{'region': ['n', 's', 'e', 'w'], 'age': range(0, 502)}"


@pytest.fixture(scope="module")
def guard_over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Guard]]:
    """A guard over people who are declared in some way: one for all questions, of which none is charged here."""
    with ExitStack() as opened:

        @cache
        def over(people: str, **declared: str) -> Guard:
            folder = tmp_path_factory.mktemp("people")
            return opened.enter_context(closing(sdcduck.open_guard(made(folder / "of", people, **declared))))

        yield over


def told_apart(
    guard_over: Callable[..., Guard], question: str, neighbours: tuple[str, str], part: float = 1.0, **declared: str
) -> float:
    """How much is seen of which of two tables was asked, with a part of the noise.

    The statistic is the best one for these two, by Neyman and Pearson: the logarithm of the ratio of their likelihoods
    over all totals and groups, for the law that the noise has.
    """
    query = AUDITED[question][0]
    columns = []
    for people in neighbours:
        guard = guard_over(people, **declared)
        _, cost, *_ = guard._releases._cost(guard.rewritten(query)[0])
        runs = SEEN_BY_MORE.get(question, RUNS) if cost.gaussian or part < 1 else RUNS
        columns.append(drawn(guard, query, round(runs / part), part))
    means = [[column.mean(axis=0) for column in of] for of in columns]
    spreads = [column.std(axis=0) for column in columns[0]]
    statistics = []
    for of in columns:
        parts = [
            (
                (column - (mine + its) / 2) / spread**2 * (mine - its)
                if cost.gaussian
                else (abs(column - its) - abs(column - mine)) / spread
            ).sum(axis=1)
            for column, mine, its, spread in zip(of, *means, spreads, strict=True)
        ]
        statistics.append(np.sum(parts, axis=0))
    return least_epsilon(*statistics, delta=float(declared["delta"]))


SMALLER = "Laplace, for it is the smaller"


def declaration(noise: str, **other: str) -> dict[str, str]:
    """Where one question is all there may be, Laplace noise is the smaller of the two, also where there is a delta."""
    return {
        "epsilon": "3" if noise == SMALLER else "100", "per_question": "3", "delta": "0" if noise == "Laplace" else "1e-5", "domains": WITH_AGES,
        "bounds": "{'income': [-6000, 6000]}", **other,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("question", "noise"),
    [
        *((question, noise) for question in AUDITED for noise in ("Laplace", "Gaussian")),
        *((question, SMALLER) for question in (AUDITED if LONG else ["several at once"])),
    ],
)
def test_neighbours_are_told_apart_no_better_than_was_charged(
    guard_over: Callable[..., Guard], question: str, noise: str
) -> None:
    _, other = AUDITED[question]
    found = told_apart(guard_over, question, (records(ONE), records(other)), **declaration(noise))
    assert 0.05 < found <= 3  # what it sees is enough to see what is too much


@pytest.mark.parametrize("question", AUDITED)
def test_laplace_noise_that_is_the_smaller_has_the_law_of_that_without_a_delta(
    guard_over: Callable[..., Guard], question: str
) -> None:
    """So what is drawn above of the one tells as much of the other."""
    costs = []
    for noise in ("Laplace", SMALLER):
        guard = guard_over(records(ONE), **declaration(noise))
        costs.append(guard._releases._cost(guard.rewritten(AUDITED[question][0])[0])[1])
    assert costs[0] == costs[1]
    assert not costs[0].gaussian


@pytest.mark.parametrize("question", SEEN_IF_HALVED)
def test_half_the_noise_is_found_out(guard_over: Callable[..., Guard], question: str) -> None:
    """What holds above is not for want of sharpness: the same audit sees that the noise is too small.

    Who has an income and who has none differ in all totals of a variance: by all that the count and the squares may
    change by, and by half of what the sum may. So they are told apart by five sixths of what is charged, and with half
    of the noise by ten sixths.
    """
    _, other = AUDITED[question]
    assert told_apart(guard_over, question, (records(ONE), records(other)), part=0.5, **declaration("Laplace")) > 3


@pytest.mark.parametrize("noise", ["Laplace", "Gaussian"])
def test_units_with_several_rows_are_told_apart_no_better(guard_over: Callable[..., Guard], noise: str) -> None:
    """One with more rows than are looked at, all in one region, and another one with as many elsewhere."""
    rows = [f"FROM ({records(person)}), range(CASE WHEN id = 7 THEN 5 ELSE 1 END)" for person in (ONE, OTHER)]
    rows = [f"SELECT * EXCLUDE (range) {people}" for people in rows]
    found = told_apart(guard_over, "count of groups", (rows[0], rows[1]), **declaration(noise, contributions="3"))
    assert 0.05 < found <= 3


def test_the_audit_sees_noise_that_is_too_small(tmp_path: Path) -> None:
    """Numbers without any would be found out, and most of what was charged is seen."""
    columns = []
    for place, person in enumerate((ONE, OTHER)):
        register = made(
            tmp_path / str(place), records(person), epsilon="100", per_question="2", delta="0", domains=DOMAINS
        )
        with closing(sdcduck.open_guard(register)) as guard:
            columns.append(drawn(guard, AUDITED["count"][0], MORE)[0][:, 0])
    assert 1 < least_epsilon(columns[0], columns[1], 0.0) <= 2
    assert least_epsilon(columns[0] * 0 + 1, columns[1] * 0, 0.0) > 2


@pytest.mark.parametrize("noise", ["Laplace", "Gaussian"])
@pytest.mark.parametrize("grouped", [False, True])
def test_choices_tell_neighbours_apart_no_better_than_was_charged(noise: str, grouped: bool) -> None:
    """Of the fewest numbers there are, where most is to be seen: one goes to the other side, or to another group."""
    privacy = Privacy(100, 0 if noise == "Laplace" else 1e-5, 3, "replace")
    noised = Noised(-1, 1, 1.0, "quantile", positions=2)
    cost = cost_of([Release("t", "", "x" if grouped else "", "", (), (("q", noised),))], privacy)
    of = [{0: 1}] * RUNS, [{1: 1}] * RUNS
    if grouped:
        of = of[0] + [{}] * RUNS, [{}] * RUNS + of[1]

    def seen(scale: float) -> float:
        one, other = (
            np.array(chosen(each, 2, 1, 1, scale, gaussian=cost.gaussian)).reshape(-1, RUNS).sum(axis=0) for each in of
        )
        return least_epsilon(one, other, delta=privacy.delta)

    assert seen(cost.scales[0][0]) <= 3
    assert seen(cost.scales[0][0] / 100) > (0.5 if grouped else 3)  # with hardly any noise it is found out


QUESTIONS = [
    "SELECT region, count(*) FROM people GROUP BY region",
    "SELECT region, age // 30, count(*) AS n, sum(income), avg(income) FROM people WHERE ill OR age > 3 GROUP BY ALL",
    "SELECT count(*) FROM people WHERE 10 / (age - 500) > 1",
    "SELECT count(*) FROM people WHERE CAST(region AS INTEGER) > 1",
    "SELECT avg(income), sum(income * income) FROM people WHERE age >= 500",
    "SELECT region, count(*) FROM people GROUP BY region HAVING count(*) > -100000",
    "SELECT ill, avg(income) FROM people WHERE region = 'n' AND age >= 500 GROUP BY ill ORDER BY ill",
    "SELECT count(income), count(*) FROM people",
    "SELECT stddev(income) FROM people",
    "SELECT count(*) FROM (FROM people)",
    "WITH a AS (SELECT region, age // 30 AS region2, age FROM people WHERE age >= 500) SELECT region, count(*) FROM a GROUP BY 1",
    "SELECT area, count(*) FROM people JOIN regions USING (region) WHERE age >= 500 GROUP BY area",
    "SELECT area, warm, avg(income) FROM people LEFT JOIN regions USING (region) WHERE age >= 500 GROUP BY ALL",
    "SELECT count(*) FROM people JOIN (VALUES (500, 1), (501, 0)) AS v(x, y) ON age = x WHERE 1 // y > 0",
    "SELECT count(*) FROM people JOIN (SELECT region, CAST(area AS INTEGER) AS y FROM regions) AS r USING (region) WHERE y > 0",
    "SELECT count(*) FROM people WHERE age IN (SELECT 500 + CAST(warm AS INTEGER) // 0 FROM regions)",
    "SELECT region, ill, count(*), avg(income) FROM people WHERE age >= 500 GROUP BY CUBE(region, ill)",
    "SELECT region, ill, sum(income) FROM people WHERE age >= 500 GROUP BY GROUPING SETS ((region), (ill), ()) ORDER BY 1, 2",
    "SELECT ill, count(DISTINCT region), count(DISTINCT 1 / (age - 500)) FROM people GROUP BY ROLLUP(ill)",
    "SELECT var_samp(income), stddev_pop(income), stddev(income) FILTER (WHERE age >= 500) FROM people",
    "SELECT corr(income, income), regr_slope(income, income) FROM people WHERE age >= 500",
    "SELECT region, median(income), quantile_cont(income, 0.9) FROM people WHERE age >= 500 GROUP BY ROLLUP(region)",
    "SELECT count(*) FROM people JOIN (VALUES (500), (500)) AS v(x) ON age = x",
    "SELECT 1 / count(*) FROM people WHERE age = 500",
]
ASKED_WITH: list[tuple[str, list[object]]] = [
    ("SELECT count(*) FROM people WHERE 10 / (age - $1) > 1", [500]),
    ("SELECT count(*) FROM people WHERE CAST(region AS INTEGER) > $1", [1]),
    ("SELECT count(*) FROM people WHERE region > $1", [1]),
    ("SELECT count(*) FROM people WHERE age > $1", ["no number"]),
    ("SELECT count(*) FROM people WHERE age >= 500 AND age > CAST($1 AS INTEGER)", ["no number"]),
    ("SELECT count(*) FROM people WHERE CASE WHEN age = 500 THEN CAST($1 AS INTEGER) > 0 END", ["no number"]),
    ("SELECT count(*) FILTER (WHERE age = 500 AND $1 / (age - 500) > 1) FROM people", [1]),
    ("SELECT sum(income * $1) FROM people", [1e308]),
    ("SELECT sum(CASE WHEN age = 500 THEN income + CAST($1 AS INTEGER) END) FROM people", ["no number"]),
    ("SELECT region = $1, count(*) FROM people WHERE age >= 500 GROUP BY 1 ORDER BY 1", ["somewhere else"]),
]
"""Values that could fail where a record is looked at, and not where there is none."""
ODD = [
    ONE, OTHER, ONE | {"income": math.nan}, ONE | {"income": math.inf}, ONE | {"income": None}, ONE | {"region": None},
    ONE | {"region": "somewhere else"}, ONE | {"age": None}, ONE | {"age": 2_000_000_000}, ONE | {"income": 1e308},
]  # fmt: skip


def shape(guard: Guard, query: str, parameters: list[object] | None = None) -> object:
    """All of an answer but its noisy numbers; or what it is refused with, to the letter."""
    try:
        answer = guard.sql(query, parameters)
    except Refused as refused:
        return str(refused)
    keys = [name for name in answer.column_names if name in ("region", "ill", "area", "warm", "(age // 30)")]
    return answer.schema, answer.num_rows, answer.select(keys).to_pylist(), guard.sql("SHOW sdc_budget").to_pylist()


def test_nothing_but_noisy_numbers_depends_on_a_person(tmp_path: Path) -> None:
    """Which groups there are, in which order, of which types, what fails and how, and what it costs."""
    found = []
    for place, person in enumerate(ODD):
        literal = {
            name: "NULL" if value is None else repr(value) if not isinstance(value, float) else f"'{value}'::DOUBLE"
            for name, value in person.items()
        }
        written = ", ".join(f"{value} AS {name}" for name, value in literal.items())
        rows = f"SELECT * FROM ({RECORDS}) WHERE id <> 7 UNION ALL BY NAME SELECT {written}"
        with closing(sdcduck.open_guard(made(tmp_path / str(place), rows, domains=DOMAINS))) as guard:
            found.append([shape(guard, query) for query in QUESTIONS])
            found[-1] += [shape(guard, query, parameters) for query, parameters in ASKED_WITH]
            found[-1].append(guard.sql("SHOW sdc_budget").to_pylist())
    for other in found[1:]:
        assert other == found[0]


def test_digits_of_sums_are_of_the_grid(tmp_path: Path) -> None:
    """A number whose last digits were those of a record would show it, however much noise is added (Mironov 2012)."""
    seen = []
    for place, income in enumerate((1234.0625, 1234.0)):
        with closing(sdcduck.open_guard(made(tmp_path / str(place), records(ONE | {"income": income})))) as guard:
            (steps,) = drawn(guard, "SELECT sum(income) FROM people", RUNS)
            (answer,) = guard.sql("SELECT sum(income) AS s FROM people").to_pylist()
            seen.append(steps)
            worth = {row["column"]: row["sd"] for row in guard.noise("SELECT sum(income) AS s FROM people").to_pylist()}
            digits = 2 - math.floor(math.log10(worth["s"]))
            assert answer["s"] == round(answer["s"], digits)
    for steps in seen:  # odd and even steps of the grid come alike
        assert 0.4 < (steps % 2).mean() < 0.6
