"""Random questions about what each unit has: with nothing to hide, all that is answered is what DuckDB says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

import duckdb
import pytest
from effort import times
from visits_database import answer, answer_of_duckdb, protect

import sdcduck
from sdcduck.guard import Guard, Refused

QUESTIONS = times(60, 300, older=40)
SEED = 20261124


def database(method: str, *, order: str = "i", cost: str = "10 + i * 29 % 91") -> duckdb.DuckDBPyConnection:
    """Persons and their visits, with NULL everywhere but in the units; no two visits of a unit are alike.

    Args:
        order: in which order the visits are stored.
        cost: what they cost, where that is known.
    """
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute(f"""
        CREATE TABLE persons AS SELECT i AS id, ['n', 's', NULL][1 + i % 3] AS region,
            CASE WHEN i % 7 > 0 THEN i * 7 % 5 END AS age, CASE WHEN i % 11 > 0 THEN 100 + i * 11 % 900 END AS income
        FROM range(90) t(i);
        CREATE TABLE visits AS SELECT i * i * 7 % 83 AS id, ['flu', 'cold', NULL][1 + i * 31 % 7 % 3] AS ward,
            CASE WHEN i % 9 > 0 THEN DATE '2024-01-01' + (i * 37 % 41)::INTEGER END AS day, (i * 13 % 17 % 4)::INTEGER AS grade,
            CASE WHEN i % 6 > 0 THEN {cost} END AS cost, (i % 17 - 3) / 8::DOUBLE AS fee
        FROM range(420) t(i) QUALIFY row_number() OVER (PARTITION BY i * i * 7 % 83, ward, day, grade ORDER BY i) = 1
        ORDER BY {order}""")
    protect(con, "persons", "['region', 'age']", "['income']", method)
    protect(con, "visits", "['ward', 'day', 'grade']", "['cost', 'fee']", method)
    return con


@dataclass(frozen=True)
class Records:
    """Unit-level records as they may stand in FROM.

    Attributes:
        sql: a table or a subquery in brackets.
        kinds: of the columns but the unit: ``text``, ``date``, ``int``, ``bool``, ``real`` or ``measure``.
        order: columns that put the records of a unit into one order; none where it has one.
        single: whether a unit has one record at most.
    """

    sql: str
    kinds: dict[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    single: bool = False

    def of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind in kinds]


PERSONS = Records("persons", {"region": "text", "age": "int", "income": "measure"}, single=True)
VISITS = Records(
    "visits",
    {"ward": "text", "day": "date", "grade": "int", "cost": "measure", "fee": "measure"},
    ("day", "ward", "grade"),
)
_CONSTANTS = {
    "text": ["'flu'", "'n'", "'cold'"],
    "date": ["DATE '2024-01-10'", "DATE '2024-01-20'", "DATE '2024-02-01'"],
    "int": ["0", "1", "2", "3"],
    "bool": ["true", "false"],
    "real": ["0.3", "0.5"],
}


class Questions:
    """Questions over random records, of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._names = 0

    def name(self, start: str) -> str:
        self._names += 1
        return f"{start}{self._names}"

    def likely(self, share: float) -> bool:
        return self.random.random() < share

    # --- Conditions -----------------------------------------------------------------------------------------------

    def condition(self, of: Records, alias: str, deep: int) -> str:
        """A condition over one record."""
        made = self.random.choice([self._compared] * 3 + [self._with_query] * (2 if deep > 0 else 0))(of, alias, deep)
        if self.likely(0.15):
            return f"NOT ({made})"
        if self.likely(0.15):
            return f"({made} {self.random.choice(['AND', 'OR'])} {self._compared(of, alias, 0)})"
        return made

    def _compared(self, of: Records, alias: str, deep: int) -> str:
        columns = of.of(*_CONSTANTS)
        if not columns:
            return "true"
        name = self.random.choice(columns)
        if self.likely(0.15):
            return f"{alias}.{name} IS {self.random.choice(['', 'NOT '])}NULL"
        constant = self.random.choice(_CONSTANTS[of.kinds[name]])
        return f"{alias}.{name} {self.random.choice(['=', '<>', '<', '>=', 'IS DISTINCT FROM'])} {constant}"

    def _with_query(self, of: Records, alias: str, deep: int) -> str:
        other, inner = self.records(deep - 1), self.name("e")
        kind = self.random.randrange(5)
        if kind == 0:
            return f"{alias}.id {self.random.choice(['IN', 'NOT IN'])} (SELECT id FROM {other.sql} {inner})"
        if kind == 1:
            return self._compared_with_value(of, alias, deep)
        pairs = [
            (mine, its) for mine in of.kinds for its in other.kinds if of.kinds[mine] == other.kinds[its] != "measure"
        ]
        ties = [f"{inner}.id = {alias}.id"]
        for mine, its in self.random.sample(pairs, min(len(pairs), self.random.randrange(3))):
            ties.append(f"{inner}.{its} {self.random.choice(['=', '<', '>=', '<>'])} {alias}.{mine}")
        if self.likely(0.5):
            ties.append(self.condition(other, inner, 0))
        exists = self.random.choice(["EXISTS", "NOT EXISTS"])
        return f"{exists} (SELECT 1 FROM {other.sql} {inner} WHERE {' AND '.join(ties)})"

    def _compared_with_value(self, of: Records, alias: str, deep: int) -> str:
        value, kind = self._value(alias, deep)
        if kind == "measure":
            return f"{value} IS NULL"
        return f"{value} {self.random.choice(['=', '<', '>='])} {self.random.choice(_CONSTANTS[kind])}"

    def _value(self, alias: str, deep: int) -> tuple[str, str]:
        """A scalar subquery over the records of the same unit, and its kind."""
        other, inner = self.records(deep - 1), self.name("q")
        shown, kind = self.aggregate(other, inner)
        while kind == "measure":
            shown, kind = self.aggregate(other, inner)
        more = f" AND {self.condition(other, inner, 0)}" if self.likely(0.4) else ""
        return f"(SELECT {shown} FROM {other.sql} {inner} WHERE {inner}.id = {alias}.id{more})", kind

    # --- Figures --------------------------------------------------------------------------------------------------

    def aggregate(self, of: Records, alias: str, *, ordered: bool = True) -> tuple[str, str]:
        """An aggregate of the records of a unit, and its kind."""
        plain, whole = of.of("text", "date", "int", "bool"), of.of("int")
        choices: list[tuple[str, str]] = [("count(*)", "int"), (f"count_if({self._compared(of, alias, 0)})", "int")]
        choices.append((f"{self.random.choice(['bool_or', 'bool_and'])}({self._compared(of, alias, 0)})", "bool"))
        if plain:
            name = self.random.choice(plain)
            value = f"{alias}.{name}"
            choices.append((f"count({self.random.choice(['', 'DISTINCT '])}{value})", "int"))
            choices += [(f"{self.random.choice(['min', 'max'])}({value})", of.kinds[name])] * 2
            if ordered and of.order:
                by = ", ".join(f"{alias}.{column}{self.random.choice(['', ' DESC'])}" for column in of.order)
                choices.append((f"{self.random.choice(['first', 'last'])}({value} ORDER BY {by})", of.kinds[name]))
        if whole:
            choices.append((f"sum({alias}.{self.random.choice(whole)})", "int"))
        if ordered and of.of("measure"):
            choices.append((f"sum({alias}.{self.random.choice(of.of('measure'))})", "measure"))
        made, kind = self.random.choice(choices)
        if self.likely(0.2):
            made += f" FILTER (WHERE {self._compared(of, alias, 0)})"
        return made, kind

    def window(self, of: Records, alias: str) -> tuple[str, str]:
        """What a window says of a record, and its kind."""
        plain = of.of("text", "date", "int", "bool")
        more = f", {alias}.{self.random.choice(plain)}" if plain and self.likely(0.2) else ""
        directions = {column: self.random.choice(["", " DESC", " NULLS FIRST"]) for column in of.order}
        total = ", ".join(f"{alias}.{column}{how}" for column, how in directions.items())
        some = f"{alias}.{self.random.choice(plain)}" if plain else ""
        whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"

        def over(order: str, frame: str = "") -> str:
            return f"OVER (PARTITION BY {alias}.id{more}{f' ORDER BY {order}' if order else ''}{f' {frame}' if frame else ''})"

        called, kind = self.aggregate(
            replace(of, kinds={k: v for k, v in of.kinds.items() if v != "measure"}), alias, ordered=False
        )
        choices = [(f"{called} {over('')}", kind)]
        if some:
            choices += [
                (f"{called} {over(some)}", kind),
                (f"{self.random.choice(['rank', 'dense_rank'])}() {over(some)}", "int"),
            ]
            choices.append((f"{self.random.choice(['percent_rank', 'cume_dist'])}() {over(some)}", "real"))
        if total:
            frame = self.random.choice(["ROWS 1 PRECEDING", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                                        "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING"])  # fmt: skip
            choices += [(f"{called} {over(total, frame)}", kind), (f"row_number() {over(total)}", "int")]
            if plain:
                name = self.random.choice(plain)
                nulls = self.random.choice(["", "", " IGNORE NULLS"])
                place = self.random.choice(["", ", 1", ", 2"])
                default = f", {self.random.choice(_CONSTANTS[of.kinds[name]])}" if place and self.likely(0.4) else ""
                choices.append(
                    (
                        f"{self.random.choice(['lag', 'lead'])}({alias}.{name}{place}{default}{nulls}) {over(total)}",
                        of.kinds[name],
                    )
                )
                choices.append(
                    (
                        f"{self.random.choice(['first_value', 'last_value'])}({alias}.{name}{nulls}) {over(total, whole)}",
                        of.kinds[name],
                    )
                )
                choices.append((f"nth_value({alias}.{name}, 2) {over(total, whole)}", of.kinds[name]))
        return self.random.choice(choices)

    # --- Records --------------------------------------------------------------------------------------------------

    def records(self, deep: int) -> Records:
        """Random records, of subqueries in each other so deep."""
        if deep <= 0 or self.likely(0.15):
            return self.random.choice([PERSONS, VISITS, VISITS])
        made = self.random.choice([self._kept, self._of_units, self._of_units, self._windows, self._windows, self._firsts,
                                   self._joined, self._values])  # fmt: skip
        return made(deep)

    def _kept(self, deep: int) -> Records:
        of, alias = self.records(deep - 1), self.name("k")
        return replace(of, sql=f"(SELECT * FROM {of.sql} {alias} WHERE {self.condition(of, alias, deep - 1)})")

    def _of_units(self, deep: int) -> Records:
        of, alias = self.records(deep - 1), self.name("u")
        by = (
            self.random.sample(of.of("text", "date", "int", "bool"), 1)
            if self.likely(0.3) and of.of("text", "date", "int", "bool")
            else []
        )
        items, kinds = [f"{alias}.id", *(f"{alias}.{name}" for name in by)], {name: of.kinds[name] for name in by}
        groups = ", ".join(items)
        for _ in range(self.random.randrange(3)):
            shown, kind = self.aggregate(of, alias)
            name = self.name("n")
            items.append(f"{shown} AS {name}")
            kinds[name] = kind
        having = self.aggregate(of, alias)
        kept = f" HAVING {having[0]} > 1" if having[1] == "int" and self.likely(0.3) else ""
        where = f" WHERE {self.condition(of, alias, deep - 1)}" if self.likely(0.3) else ""
        group = self.random.choice([groups, "ALL"]) if len(items) > 1 + len(by) else groups
        return Records(
            f"(SELECT {', '.join(items)} FROM {of.sql} {alias}{where} GROUP BY {group}{kept})", kinds, tuple(by), not by
        )

    def _windows(self, deep: int) -> Records:
        of, alias = self.records(deep - 1), self.name("w")
        items, kinds = ["*"], dict(of.kinds)
        for _ in range(1 + self.random.randrange(2)):
            shown, kind = self.window(of, alias)
            name = self.name("v")
            items.append(f"{shown} AS {name}")
            kinds[name] = kind
        shown, kind = self.window(of, alias)
        kept = f" QUALIFY {shown} = {self.random.choice(_CONSTANTS[kind])}" if self.likely(0.3) else ""
        where = f" WHERE {self.condition(of, alias, deep - 1)}" if self.likely(0.3) else ""
        return replace(of, sql=f"(SELECT {', '.join(items)} FROM {of.sql} {alias}{where}{kept})", kinds=kinds)

    def _firsts(self, deep: int) -> Records:
        of, alias = self.records(deep - 1), self.name("f")
        order = ", ".join(f"{alias}.{name}{self.random.choice(['', ' DESC'])}" for name in of.order) or f"{alias}.id"
        return replace(
            of, sql=f"(SELECT DISTINCT ON ({alias}.id) * FROM {of.sql} {alias} ORDER BY {order})", order=(), single=True
        )

    def _joined(self, deep: int) -> Records:
        left, right = self.records(deep - 1), self._of_units(deep)
        if right.order:
            right = Records(f"(SELECT id, count(*) AS {(name := self.name('n'))} FROM {right.sql} {self.name('o')} GROUP BY id)",
                            {name: "int"}, (), True)  # fmt: skip
        a, b = self.name("a"), self.name("b")
        items, kinds = [f"{a}.*"], dict(left.kinds)
        for name, kind in right.kinds.items():
            called = self.name("j")
            filled = kind == "int" and self.likely(0.5)
            items.append(f"coalesce({b}.{name}, 0) AS {called}" if filled else f"{b}.{name} AS {called}")
            kinds[called] = kind
        how = self.random.choice(["JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN"])
        if how in ("SEMI JOIN", "ANTI JOIN"):
            items, kinds = items[:1], dict(left.kinds)
        return replace(
            left,
            sql=f"(SELECT {', '.join(items)} FROM {left.sql} {a} {how} {right.sql} {b} ON {a}.id = {b}.id)",
            kinds=kinds,
        )

    def _values(self, deep: int) -> Records:
        of, alias, name = self.records(deep - 1), self.name("s"), self.name("x")
        value, kind = self._value(alias, deep)
        return replace(of, sql=f"(SELECT *, {value} AS {name} FROM {of.sql} {alias})", kinds={**of.kinds, name: kind})

    # --- Questions ------------------------------------------------------------------------------------------------

    def question(self) -> str:
        """A question of which each group has somebody, so that no count is 0."""
        of, alias = self.records(self.random.choice([1, 2, 2, 3])), "r"
        keys = self.random.sample(
            of.of("text", "int", "bool", "date"),
            min(len(of.of("text", "int", "bool", "date")), 1 + self.random.randrange(2)),
        )
        items = [*(f"{alias}.{key}" for key in keys), "count(*)", f"count(DISTINCT {alias}.id)"]
        if of.of("measure"):
            items.append(f"sum({alias}.{self.random.choice(of.of('measure'))})")
        where = f" WHERE {self.condition(of, alias, 1)}" if self.likely(0.3) else ""
        if not keys:
            return f"SELECT {alias}.id IS NULL AS k, count(*) FROM {of.sql} {alias}{where} GROUP BY k"
        return f"SELECT {', '.join(items)} FROM {of.sql} {alias}{where} GROUP BY {', '.join(f'{alias}.{key}' for key in keys)}"


@pytest.fixture(scope="module")
def nothing_hidden() -> Iterator[duckdb.DuckDBPyConnection]:
    with database("threshold") as con:
        yield con


def test_what_is_answered_is_what_duckdb_says(nothing_hidden: duckdb.DuckDBPyConnection) -> None:
    guard, questions, answered = sdcduck.open_guard(nothing_hidden), Questions(SEED), 0
    for _ in range(QUESTIONS):
        query = questions.question()
        code = _code(guard, query)
        if code:
            assert code != "SDC001", query
            continue
        answered += 1
        wanted = answer_of_duckdb(nothing_hidden, query)
        assert answer(guard, query) == wanted, query
    assert answered > 0.6 * QUESTIONS


def test_with_noise_it_does_not_hang_on_the_order_of_rows() -> None:
    """Nor are other questions answered than without noise: the noise would be another one each time."""
    with (
        database("threshold") as plain,
        database("cell_key") as one,
        database("cell_key", order="i * 7919 % 421") as other,
    ):
        exact, guards, questions = (
            sdcduck.open_guard(plain),
            (sdcduck.open_guard(one), sdcduck.open_guard(other)),
            Questions(SEED + 1),
        )
        for _ in range(times(15, 50, older=10)):
            query = questions.question()
            codes = {_code(guard, query) for guard in (exact, *guards)}
            assert len(codes) == 1, query
            if codes == {""}:
                answers = [answer(guard, query) for guard in guards]
                assert answers[0] == answers[1], query


def test_no_count_hangs_on_a_measure(nothing_hidden: duckdb.DuckDBPyConnection) -> None:
    with database("threshold", cost="7 * (i % 3)") as twin:
        guards, questions = (sdcduck.open_guard(nothing_hidden), sdcduck.open_guard(twin)), Questions(SEED + 2)
        for _ in range(times(18, 75, older=10)):
            query = re.sub(r", sum\(r\.\w+\)", "", questions.question())
            if not _code(guards[0], query):
                answers = [answer(guard, query) for guard in guards]
                assert answers[0] == answers[1], query


def _code(guard: Guard, query: str) -> str:
    try:
        guard.rewrite(query)
    except Refused as refused:
        return refused.code
    return ""
