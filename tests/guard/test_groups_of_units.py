"""Groups of units by what each of them has, at random: the protected answer beside one that is computed apart from it.

Under a threshold the answer is DuckDB's without the small groups and numbers. Under cell keys it is what `sdc_count` and
the macros of `own_numbers` say of a table with one row for each unit, which plain DuckDB makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import duckdb
import pytest
from effort import times
from own_numbers import with_own_numbers
from visits_database import answer, in_order

import sdcduck

SEED = 20261126
SCHEMAS = times(3, 8, older=1)
QUESTIONS = times(12, 30)
LEAST = 4
METHODS = {"threshold": f"method := 'threshold', min_units := {LEAST}", "cell_key": "method := 'cell_key'"}
_COLUMNS = {
    "ward": ("text", "['A', 'B', 'C', NULL][(1 + hash(id * {a} + nth) % 4)::INTEGER]"),
    "day": ("date", "DATE '2024-01-01' + (hash(id + nth * {a}) % 200)::INTEGER"),
    "grade": ("whole", "(hash(id * 31 + nth + {a}) % 5)::INTEGER"),
    "urgent": ("truth", "CASE WHEN hash(id, nth, {a}) % 9 > 0 THEN hash(nth * id + {a}) % 3 = 0 END"),
    "size": ("decimal", "(hash(id + nth + {a}) % 7 / 4)::DECIMAL(9, 2)"),
}
"""Of each dimension there can be its kind, and how it is made."""


@dataclass(frozen=True)
class Schema:
    """A table of visits and one of persons, of a seed.

    Attributes:
        dimensions: of the visits, with their kinds.
        seed: of all values.
    """

    dimensions: dict[str, str]
    seed: int

    @classmethod
    def of(cls, random: Random) -> Schema:
        chosen = random.sample(list(_COLUMNS), random.randrange(2, 5))
        return cls({name: _COLUMNS[name][0] for name in chosen}, random.randrange(1, 10_000))

    def made(self, method: str) -> duckdb.DuckDBPyConnection:
        con = sdcduck.connect(secret="the secret of the tests")
        columns = ", ".join(f"{_COLUMNS[name][1].format(a=self.seed)} AS {name}" for name in self.dimensions)
        con.execute(f"""
            CREATE TABLE visits AS SELECT id, nth, {columns},
                CASE WHEN hash(id, nth) % 8 > 0 THEN 10 + hash(nth, id + {self.seed}) % 90 END::INTEGER AS cost
            FROM range(150) ids(id), range(9) numbers(nth) WHERE nth < hash(id + {self.seed}) % 10;
            CREATE TABLE persons AS SELECT id, ['n', 's', 'e'][(1 + hash(id * {self.seed}) % 3)::INTEGER] AS region FROM range(170) t(id);
        """)
        for table, more in (("visits", [*self.dimensions, "nth"]), ("persons", ["region"])):
            con.execute(f"FROM sdc_add_record_key('{table}', unit := 'id')").fetchall()
            measures = "['cost']" if table == "visits" else "[]"
            con.execute(
                f"FROM sdc_protect('{table}', unit := 'id', dimensions := {more}, measures := {measures}, "
                f"population := 'persons', {METHODS[method]})"
            ).fetchall()
        return con


@dataclass(frozen=True)
class Question:
    """A question in four parts.

    Attributes:
        figures: of each unit, by name: dimensions.
        source: the rows that they are of, from FROM to WHERE.
        having: which units are kept.
        ordered: what stands behind that and says nothing.
        keys: of the groups of units.
        chosen: which units are looked at.
    """

    figures: dict[str, str]
    source: str
    having: str
    ordered: str
    keys: tuple[str, ...]
    chosen: str

    def inner(self, *more: str) -> str:
        shown = ", ".join(f"{sql} AS {name}" for name, sql in self.figures.items())
        measured = ", ".join(["count(nth) AS n", "sum(cost) AS t", *more])
        return f"(SELECT id, {shown}, {measured} {self.source} GROUP BY id{self.having}"

    @property
    def asked(self) -> str:
        numbers = "count(*), sum(n), avg(n), sum(t)"
        return f"SELECT {', '.join(self.keys)}, {numbers} FROM {self.inner()}{self.ordered}){self.chosen} GROUP BY ALL"

    @property
    def without_small_groups(self) -> str:
        rows = f"CASE WHEN count(*) FILTER (n > 0) >= {LEAST} THEN sum(n) END"
        total = f"CASE WHEN count(t) >= {LEAST} THEN sum(t) END"
        return f"""SELECT {", ".join(self.keys)}, count(*), {rows}, {rows} / count(n), {total} FROM {self.inner()}){self.chosen}
            GROUP BY ALL HAVING count(*) >= {LEAST}"""

    @property
    def with_cell_keys(self) -> str:
        inner = self.inner("count(*) FILTER (cost <> 0) AS r", "max(record_key) AS record_key")
        rows = "rows_of_units(n, record_key)"
        repeated = "greatest(coalesce(sum(r) / count(CASE WHEN r > 0 THEN 1 END), 1), 1)"
        known = "sdc_count(record_key, filter := t IS NOT NULL)"
        total = f"CASE WHEN {known} > 0 THEN sum_of_cost(t, record_key, repeated := {repeated}) END"
        return f"""SELECT {", ".join(self.keys)}, sdc_count(record_key), {rows}, {rows} / sdc_count(record_key), {total}
            FROM {inner}){self.chosen} GROUP BY ALL HAVING sdc_count(record_key) > 0"""


class Questions:
    """Questions about the visits of a schema."""

    def __init__(self, random: Random, schema: Schema) -> None:
        self.random, self.schema = random, schema

    def condition(self) -> str:
        name, kind = self.random.choice(list(self.schema.dimensions.items()))
        constant = {
            "text": "'B'", "date": f"DATE '2024-0{self.random.randrange(2, 7)}-01'", "truth": "true",
            "whole": str(self.random.randrange(5)), "decimal": "0.75",
        }[kind]  # fmt: skip
        return f"{name} {self.random.choice(['=', '<>', '<', '>='])} {constant}"

    def figure(self) -> str:
        name, kind = self.random.choice(list(self.schema.dimensions.items()))
        made = [
            "count(*)", f"count({name})", f"count(DISTINCT {name})", f"min({name})", f"max({name})",
            f"count_if({self.condition()})", f"bool_or({self.condition()})", f"bool_and({self.condition()})",
            f"count(*) FILTER (WHERE {self.condition()})", f"sum(CASE WHEN {self.condition()} THEN 1 ELSE 0 END)",
            f"least(count(*), {self.random.randrange(2, 6)})", f"CASE WHEN count(*) > 3 THEN 'often' ELSE min({name})::VARCHAR END",
        ]  # fmt: skip
        if kind == "date":
            made += [f"date_trunc('month', min({name}))"] * 3 + [f"datediff('day', min({name}), max({name})) // 30"] * 2
        if kind in ("whole", "decimal"):
            made += [f"sum({name})", f"avg({name}) > 1", f"sum({name}) FILTER ({self.condition()})"]
        if kind == "whole":
            made.append(f"median({name})")
        return self.random.choice(made)

    def question(self) -> Question:
        random = self.random
        figures = {f"f{place}": self.figure() for place in range(random.randrange(1, 4))}
        source = random.choice([
            "FROM visits", f"FROM visits WHERE {self.condition()}", "FROM (SELECT * FROM visits ORDER BY nth) visits",
            f"FROM visits WHERE id IN (SELECT id FROM visits WHERE {self.condition()} ORDER BY nth)",
        ])  # fmt: skip
        having = random.choice([
            "", "", f" HAVING count(*) >= {random.randrange(2, 5)}", f" HAVING bool_or({self.condition()})",
            f" HAVING count(*) > (SELECT {random.randrange(1, 5)} + 0)",
        ])  # fmt: skip
        keys = random.sample(list(figures), random.randrange(1, min(3, len(figures) + 1)))
        chosen = random.choice(["", "", " WHERE n > 1", f" WHERE {keys[0]} IS NOT NULL"])
        return Question(figures, source, having, random.choice(["", " ORDER BY 1"]), tuple(keys), chosen)


@pytest.fixture(scope="module")
def schemas() -> list[Schema]:
    random = Random(SEED)
    return [Schema.of(random) for _ in range(SCHEMAS)]


def _random_questions(schema: Schema) -> Iterator[Question]:
    questions = Questions(Random(SEED + schema.seed), schema)
    return (questions.question() for _ in range(QUESTIONS))


def test_under_a_threshold_it_is_what_duckdb_says_without_small_groups(schemas: list[Schema]) -> None:
    shown = 0
    for schema in schemas:
        with schema.made("threshold") as con:
            guard = sdcduck.open_guard(con)
            for question in _random_questions(schema):
                wanted = in_order(con.cursor().execute(question.without_small_groups).fetchall())
                assert answer(guard, question.asked) == wanted, question.asked
                shown += len(wanted) > 0
    assert shown > 0.7 * SCHEMAS * QUESTIONS


def test_under_cell_keys_it_is_what_the_macros_say_of_one_row_for_each_unit(schemas: list[Schema]) -> None:
    for schema in schemas:
        with schema.made("cell_key") as con:
            guard = sdcduck.open_guard(con)
            with_own_numbers(con, "cost")
            for question in _random_questions(schema):
                wanted = in_order(con.cursor().execute(question.with_cell_keys).fetchall())
                assert answer(guard, question.asked) == wanted, question.asked
