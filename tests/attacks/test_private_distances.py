"""How far the exact totals of neighbours are apart, number by number, against what noise of their scales costs.

`test_private_answers` draws noise and looks at what it hides. Here nothing is drawn: the distance of each total over the scale of its
noise, added up over all totals and groups of a statement, is what the statement really costs, and it is no more than was charged.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from private_people import RECORDS, made

import sdcduck
from sdcduck.guard import Guard
from sdcduck.guard.releases import _exact_sql

pytest.importorskip("opendp")

PERSONS = [
    {"id": 7, "region": "n", "age": 0, "ill": False, "income": "0"},
    {"id": 7, "region": "s", "age": 89, "ill": True, "income": "6000"},
    {"id": 7, "region": None, "age": -5, "ill": None, "income": None},
    {"id": 7, "region": "zz", "age": None, "ill": True, "income": "nan"},
]
QUESTIONS = [
    "SELECT region, count(*), sum(income), avg(age) FROM people GROUP BY region",
    "SELECT region, ill, stddev(income), count(DISTINCT age) FROM people GROUP BY CUBE (region, ill)",
    "SELECT floor(income / 1000), count(*), sum(age) FROM people GROUP BY 1",
    "SELECT CASE WHEN income < 3000 THEN 1 ELSE 2 END, corr(income, age) FROM people GROUP BY 1",
    "SELECT area, sum(-income), mode(age) FROM people LEFT JOIN regions USING (region) GROUP BY area",
    "SELECT sum(CASE WHEN age > 40 THEN income ELSE 0 END), count(DISTINCT (region, ill)) FROM people WHERE income > 10",
    "SELECT ill, sum(income * income), sum(sqrt(income)), count(income) FROM people GROUP BY ROLLUP (ill)",
    "SELECT histogram(region), count(*) FILTER (WHERE income <> 0), count(DISTINCT id) FROM people",
    "SELECT region, count(*) FROM (SELECT region, age FROM people WHERE age % 7 = 0) GROUP BY GROUPING SETS ((region), ())",
]
POLICIES = {
    "replaced, Laplace": {"delta": "0", "neighbours": "'replace'"},
    "there or not, Gaussian": {"delta": "1e-6", "neighbours": "'add_remove'", "epsilon": "1", "per_question": "0.01"},
}


def people(person: dict[str, object] | None) -> str:
    """The people with somebody else in the place of one of them; None: with nobody."""
    some = f"SELECT * FROM ({RECORDS}) WHERE id <> 7 AND id < 50"
    if person is None:
        return some
    written = ", ".join(f"{'NULL' if value is None else repr(value)} AS {name}" for name, value in person.items())
    return f"{some} UNION ALL BY NAME SELECT * REPLACE (income::DOUBLE AS income) FROM (SELECT {written})"


@pytest.fixture(scope="module", params=POLICIES)
def neighbours(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Guard]]:
    declared, folder = POLICIES[request.param], tmp_path_factory.mktemp("neighbours")
    persons = [None, *PERSONS] if "there" in request.param else PERSONS
    with ExitStack() as opened:
        yield [
            opened.enter_context(closing(sdcduck.open_guard(made(folder / f"of{place}", people(person), **declared))))
            for place, person in enumerate(persons)
        ]


def totals(guard: Guard, question: str) -> tuple[list[list[int]], list[float], float, bool]:
    """The exact totals that noise is added to, its scales, what is charged, and whether the noise is Gaussian."""
    rewritten, _ = guard.rewritten(question)
    releases = guard._releases
    _, cost, *_ = releases._cost(rewritten)
    columns = [column for one in rewritten.releases for column in releases._columns(_exact_sql(one, None), {})]
    assert not any(noised.positions for one in rewritten.releases for _, noised in one.columns)
    return columns, [scale for of in cost.scales for scale in of], cost.own, cost.gaussian


@pytest.mark.parametrize("question", QUESTIONS)
def test_neighbours_are_no_further_apart_than_is_charged(neighbours: list[Guard], question: str) -> None:
    found = [totals(guard, question) for guard in neighbours]
    pairs = itertools.combinations(found, 2) if len(found) == len(PERSONS) else ((found[0], one) for one in found[1:])
    for (one, scales, charged, gaussian), (other, same, *as_much) in pairs:
        assert (scales, charged, gaussian) == (same, *as_much)
        assert [len(column) for column in one] == [len(column) for column in other]
        spent = 0.0
        for column, beside, scale in zip(one, other, scales, strict=True):
            apart = [abs(a - b) / scale for a, b in zip(column, beside, strict=True)]
            spent += sum(x * x / 2 for x in apart) if gaussian else sum(apart)
        assert spent <= charged * (1 + 1e-6)
