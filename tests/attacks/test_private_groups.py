"""Groups that nobody may know (`domains := 'private'`) are attacked: by somebody who is alone in one, and by many."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import times
from private_people import made
from scipy.stats import beta
from test_private_answers import MISSED, least_epsilon, records

import sdcduck
from sdcduck.guard import Guard
from sdcduck.guard.costs import Cost
from sdcduck.guard.releases import Given

pytest.importorskip("opendp")

RUNS = times(10_000, 100_000)
ALONE = {"id": 7, "region": "alone", "age": 50, "ill": False, "income": 1.0}
AMONG = ALONE | {"region": "n"}
QUESTION = "SELECT region, count(*) FROM people GROUP BY region"
DELTA = 0.009


def few(person: dict[str, object]) -> str:
    """So few people that a delta may be seen in so many draws, in two regions but for one of them."""
    rows = f"SELECT * REPLACE (CASE WHEN id = 7 THEN region WHEN id % 2 = 0 THEN 'n' ELSE 'w' END AS region) FROM ({records(person)})"
    return f"{rows} WHERE id < 100"


def drawn(guard: Guard, runs: int) -> tuple[Cost, dict[str, np.ndarray]]:
    """What it costs, and the noisy numbers of each region that appeared, of so many draws."""
    rewritten, _ = guard.rewritten(QUESTION)
    releases = guard._releases
    _, cost, *_ = releases._cost(rewritten)
    exact = releases._columns

    def again(sql: str, given: Given) -> list[list[Any]]:
        columns = exact(sql, given)
        return columns if "DESCRIBE" in sql else [column * runs for column in columns]

    releases._columns = again  # type: ignore[method-assign]
    found = releases._draw(rewritten.releases, cost)
    releases._columns = exact  # type: ignore[method-assign]
    (appeared,) = found.appeared
    assert appeared is not None
    names, numbers = np.array(appeared.keys[0]), np.array(found.numbers[0])
    return cost, {name: numbers[names == name] for name in set(appeared.keys[0])}


@pytest.mark.parametrize("epsilon", ["1", "8"])
@pytest.mark.parametrize("contributions", ["1", "3"])
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_who_is_alone_is_seen_no_more_often_than_delta(
    tmp_path: Path, epsilon: str, contributions: str, neighbours: str
) -> None:
    """Of somebody who is in as many groups as there may be, alone in each, none appears more often than was paid."""
    alone = f"SELECT * EXCLUDE (x) REPLACE ('alone' || x AS region) FROM ({few(ALONE)}), range({contributions}) r(x) WHERE id = 7"
    people = f"SELECT * FROM ({few(ALONE)}) WHERE id <> 7 UNION ALL BY NAME {alone}"
    declared = {
        "epsilon": epsilon, "per_question": epsilon, "delta": str(DELTA), "contributions": contributions,
        "neighbours": f"'{neighbours}'", "domains": "{'region': 'private'}",
    }  # fmt: skip
    with closing(sdcduck.open_guard(made(tmp_path / "register", people, **declared))) as guard:
        cost, found = drawn(guard, RUNS)
    assert cost.delta == pytest.approx(DELTA / 2)
    seen = sum(len(numbers) for name, numbers in found.items() if name.startswith("alone"))
    assert not seen or beta.ppf(MISSED, seen, RUNS - seen + 1) <= cost.delta
    if epsilon == "8":
        assert len(found["w"]) == RUNS


def test_the_audit_sees_a_threshold_that_is_too_low(tmp_path: Path) -> None:
    """Three less than it must be, and whoever is alone is seen too often."""
    declared = {
        "epsilon": "1", "per_question": "1", "delta": str(DELTA), "domains": "{'region': 'private'}",
        "neighbours": "'add_remove'",
    }  # fmt: skip
    with closing(sdcduck.open_guard(made(tmp_path / "register", few(ALONE), **declared))) as guard:
        releases = guard._releases
        rewritten, _ = guard.rewritten(QUESTION)
        policy, cost, key, _ = releases._cost(rewritten)
        assert cost.appear[0] is not None
        least, most = cost.appear[0]
        low = Cost(cost.gaussian, cost.own, cost.scales, cost.deviations, cost.delta, appear=((least, most - 3),))
        releases._cost = lambda *_: (policy, low, key)  # type: ignore[method-assign]
        _, found = drawn(guard, RUNS)
    seen = len(found["alone"])
    assert beta.ppf(MISSED, seen, RUNS - seen + 1) > cost.delta


def test_numbers_of_groups_that_both_have_tell_no_more_than_epsilon(tmp_path: Path) -> None:
    """Somebody is in a region with many others, or alone in another one."""
    declared = {"epsilon": "3", "per_question": "3", "delta": str(DELTA), "domains": "{'region': 'private'}"}
    numbers = []
    for place, person in enumerate((ALONE, AMONG)):
        with closing(sdcduck.open_guard(made(tmp_path / str(place), few(person), **declared))) as guard:
            numbers.append(drawn(guard, RUNS)[1]["n"])
    assert 0.05 < least_epsilon(numbers[0], numbers[1], delta=DELTA) <= 3


HIDDEN = [
    "SELECT region, count(*) FROM people WHERE region = 'alone' GROUP BY region",
    "SELECT region, count(*) FROM people WHERE age = 50 AND NOT ill GROUP BY region",
    "SELECT DISTINCT region FROM people WHERE region LIKE 'al%'",
    "SELECT upper(region), sum(income) FROM people WHERE region > 'a' AND region < 'b' GROUP BY 1",
    "SELECT region, ill, count(*) FROM people WHERE region = 'alone' GROUP BY CUBE (region, ill)",
    "SELECT area, count(*) FROM people JOIN (VALUES ('alone', 'here')) AS v(region, area) USING (region) GROUP BY area",
    "SELECT coalesce(v.y, people.region) AS r, count(*) FROM people LEFT JOIN (VALUES ('alone', 'here')) AS v(x, y) "
    "ON people.region = v.x WHERE people.region = 'alone' GROUP BY r",
    "SELECT CASE WHEN region = 'alone' THEN 'x' END AS r, count(*) FROM people WHERE region = 'alone' GROUP BY r HAVING count(*) > -99999",
    "SELECT error(region), count(*) FROM people GROUP BY 1",
    "SELECT 1 / (length(region) - 5) AS r, count(*) FROM people WHERE length(region) = 5 GROUP BY r",
    "SELECT CAST(region AS INTEGER) AS r, count(*) FROM people WHERE region = 'alone' GROUP BY r",
    "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY n LIMIT 1",
    "PIVOT people ON region USING count(*)",
    "SUMMARIZE people",
    "SELECT string_agg(DISTINCT region, ',') FROM people",
    "SELECT min(region), max(region) FROM people",
]


def test_nobody_who_is_alone_appears_whatever_is_asked(tmp_path: Path) -> None:
    """Answers, refusals and columns are the same with a value that one person has; noise is what it is set to."""
    told = []
    for place, person in enumerate((ALONE, AMONG | {"region": "elsewhere"}, AMONG)):
        register = made(
            tmp_path / str(place), records(person), domains="'private'", delta="1e-5", per_question="10", epsilon="900"
        )
        with closing(sdcduck.open_guard(register)) as guard:
            told.append([answered(guard, question) for question in HIDDEN])
            shown = str(told[-1]) + str(guard.relations()) + str(guard.columns(QUESTION))
            assert "elsewhere" not in shown
            assert "alone" not in str(guard.relations()) + str(guard.columns(QUESTION))
    assert told[0] == told[1] == told[2]


def answered(guard: Guard, question: str) -> object:
    """The group keys and the types of an answer, or what it is refused with."""
    try:
        answer = guard.sql(question)
    except Exception as problem:
        return type(problem).__name__, str(problem)
    texts = [name for name, kind in zip(answer.column_names, answer.schema.types, strict=True) if str(kind) == "string"]
    if "LIMIT 1" in question:  # which of them is the smallest is decided by noise
        return answer.schema, answer.num_rows
    return answer.schema, sorted(map(str, answer.select(texts).to_pylist())) if texts else None
