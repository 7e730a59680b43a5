"""An error as an oracle: an expression that fails for one person alone, if that person is ill.

DuckDB's optimiser works out what stands twice, and the left side of a long IN, outside of the TRY that is around it.
Whether a question is answered would tell exactly what is asked of one person.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attacked_methods import DECLARED, METHODS, PRIVATE, Person, population
from effort import times
from fixtures_of_attacks import show

from sdcduck.guard import Guard, Refused

TEXT = "CASE WHEN {} THEN 'bad' ELSE '1' END"
NUMBER = f"CAST({TEXT} AS INTEGER)"
ORACLES = {
    "twice in OR": f"SELECT count(*) FILTER ({TEXT} = 1 OR {TEXT} = 2) FROM people",
    "in two FILTERs": f"SELECT count(*) FILTER ({TEXT} = 1), count(*) FILTER ({TEXT} = 2) FROM people",
    "a long IN in FILTER": f"SELECT count(*) FILTER ({TEXT} IN (1, 2, 3, 4, 5, 6, 7, 8, 9)) FROM people",
    "a long IN in WHERE": f"SELECT count(*) FROM people WHERE {TEXT} IN (1, 2, 3, 4, 5, 6, 7, 8, 9)",
    "a long IN in a subquery": f"SELECT count(*) FROM people WHERE id IN (SELECT id FROM people WHERE {TEXT} IN (1, 2, 3, 4, 5, 6, 7))",
    "a key with CASE": f"SELECT CASE WHEN {NUMBER} < 9 THEN {NUMBER} END AS k, count(*) FROM people GROUP BY k",
    "two keys": f"SELECT {NUMBER} AS k, {NUMBER} + 1 AS l, count(*) FROM people GROUP BY k, l",
    "CUBE": f"SELECT {NUMBER} AS k, {NUMBER} + 1 AS l, count(*) FROM people GROUP BY CUBE(k, l)",
    "a sum of figures": f"SELECT sum({NUMBER}) FROM people",
    "a mean of figures": f"SELECT avg({NUMBER}) FROM people",
    "figures divided by nothing": "SELECT sum((CASE WHEN {} THEN 0 ELSE 1 END) // (CASE WHEN {} THEN 0 ELSE 1 END)) FROM people",
    "a measure times figures": f"SELECT sum(income * {NUMBER}) FROM people",
    "figures beside subtotals": f"SELECT region, sum({NUMBER}) FROM people GROUP BY ROLLUP(region)",
    "a median": f"SELECT median(income) FILTER ({TEXT} = 1 OR {TEXT} = 2) FROM people",
    "ORDER BY in an aggregate": f"SELECT x, count(*) FROM (SELECT id, first(age ORDER BY {NUMBER}, {NUMBER} + 1) AS x FROM people GROUP BY id) GROUP BY x",
    "a window of units": f"SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY id ORDER BY {NUMBER}, {NUMBER} + 1) AS x FROM people) WHERE x = 1",
    "of each unit": f"SELECT n, count(*) FROM (SELECT id, max({TEXT}) AS m, count(*) AS n FROM people GROUP BY id HAVING max({TEXT}) = 1 OR max({TEXT}) = 2) GROUP BY n",
    "a column of records": f"SELECT count(*) FILTER (x = 1), count(*) FILTER (x + 1 = 2) FROM (SELECT {NUMBER} AS x FROM people)",
    "in EXISTS": f"SELECT count(*) FROM people p WHERE EXISTS (FROM people t WHERE t.id = p.id AND ({TEXT} = p.age OR {TEXT} = p.age + 1))",
}


def _outcome(one: Guard, query: str, person: Person) -> str:
    """What whoever asks sees of a question, but for its numbers."""
    condition = person.described.replace("(region", "(t.region") if " people t " in query else person.described
    for name in ("age", "sex"):
        condition = condition.replace(f" {name} =", f" t.{name} =") if " people t " in query else condition
    ill = "t.ill" if " people t " in query else "ill"
    try:
        one.sql(query.replace("{}", f"({condition} AND {ill})"))
    except Refused as refused:
        return refused.code
    return "answered"


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=() if name in (*METHODS, PRIVATE) else pytest.mark.long) for name in DECLARED]
)
def test_no_error_tells_of_anybody(method: str, show: Callable[[str], None]) -> None:
    people = population(method, 1, 240, 60)
    ill, well = ([person for person in people.alone if person.ill is kind][: times(1, 2)] for kind in (True, False))
    answered = 0
    for name, query in ORACLES.items():
        outcomes = {_outcome(people.guarded, query, person) for person in (*ill, *well)}
        assert len(outcomes) == 1, name
        assert "SDC090" not in outcomes, name
        answered += outcomes == {"answered"}
    assert answered >= 6
    show(f"{method}: {answered} of {len(ORACLES)} questions that fail for one person answered, none told of one")
