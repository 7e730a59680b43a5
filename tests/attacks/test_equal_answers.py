"""Random questions: where a threshold of 1 hides nothing, each answer is DuckDB's own to the same text."""

from __future__ import annotations

import math
import random

import pytest
from attacked_database import LONG

import sdcduck
from sdcduck.guard import Refused, guard

PEOPLE = """CREATE TABLE p AS SELECT id, (id * 7368787) % 99999989 AS record_key, ['N', 'S', 'E', NULL][1 + id % 4] AS region,
    [0, 1, 17, -5, NULL][1 + id * 7 % 5] AS age, ['f', 'm', NULL][1 + id % 3] AS sex, id * 3 % 7 - 2.5 AS dc,
    CASE WHEN id % 6 > 0 THEN 100 * (id % 9) END AS income FROM range(1, 61) t(id)"""
NUMBERS = ("age", "dc", "age * 2", "length(region)", "coalesce(age, 9)", "(age > 0)::INTEGER", "age // 2", "age + dc")
CONDITIONS = ("age > 0", "region = 'N'", "sex IS NULL", "dc < 0", "NOT age > 0", "age = 77", "region IN ('S', NULL)", "sex LIKE 'f%'")  # fmt: skip
KEYS = ("region", "sex", "age", "age > 0", "coalesce(region, '-')", "upper(sex)", "sign(dc)")
AGGREGATES = (
    "count(*)", "count(income)", "sum(income)", "avg(income)", "count(DISTINCT id)", "count(DISTINCT {n})", "sum({n})", "avg({n})",
    "min({n})", "var_pop({n})", "covar_pop(income, {n})", "regr_count(income, {n})", "count_if({c})", "sum(CASE WHEN {c} THEN 1 END)",
    "sum(CASE WHEN {c} THEN income ELSE 0 END)", "sum(({c})::INTEGER)", "avg(({c})::INTEGER)", "bool_or({c})", "sum(income + age)",
    "sum(income * age)", "entropy({n})",
)  # fmt: skip


def _question(seed: int) -> str:
    chance = random.Random(seed)

    def number() -> str:
        made = chance.choice(AGGREGATES).format(n=chance.choice(NUMBERS), c=chance.choice(CONDITIONS))
        return made + (f" FILTER (WHERE {chance.choice(CONDITIONS)})" if chance.random() < 0.3 else "")

    keys = chance.sample(KEYS, chance.choice((0, 1, 1, 2)))
    shown = [*(f"{key} AS k{i}" for i, key in enumerate(keys)), *(f"{number()} AS a{i}" for i in range(2))]
    where = f" WHERE {chance.choice(CONDITIONS)}" if chance.random() < 0.4 else ""
    kind = chance.choice(("{}", "{}", "ROLLUP ({})", "CUBE ({})"))
    grouped = f" GROUP BY {kind.format(', '.join(keys))}" if keys else ""
    having = f" HAVING {number()} IS NOT NULL" if chance.random() < 0.2 else ""
    return f"SELECT {', '.join(shown)} FROM p{where}{grouped}{having}"


def _rows(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(repr([_shown(value) for value in row]) for row in rows)


def _shown(value: object) -> object:
    if value is None or isinstance(value, (str, bool)):
        return value
    number = float(value)  # type: ignore[arg-type]
    return None if math.isnan(number) else f"{number + 0.0:.6g}"


@pytest.mark.parametrize("first", [0, *([1000 * k for k in range(1, 21)] if LONG else [])])
def test_an_answer_is_that_of_duckdb(first: int) -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(PEOPLE)
        con.execute(
            "FROM sdc_protect('p', unit := 'id', dimensions := ['region', 'age', 'sex', 'dc'], measures := ['income'], "
            "method := 'threshold', min_units := 1)"
        ).fetchall()
        guarded, answered = guard(con), 0
        for seed in range(first, first + (1000 if LONG else 60)):
            question = _question(seed)
            try:
                answer = guarded.sql(question)
            except Refused:
                continue
            answered += 1
            found = list(zip(*(column.to_pylist() for column in answer.columns), strict=True))
            assert _rows(found) == _rows(con.execute(question).fetchall()), question
        assert answered > 40
