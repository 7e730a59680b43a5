"""Everything that suppression answers, taken together: an exact audit of random publications and random questions.

``make guard-suppression`` asks a hundredth of 1,000 publications with 10,000 questions each; ``SHARE=1`` asks all.

A question is a selection of inner cells (a condition, a group) and asks for their number of records and their totals. The
cells published are equations over the inner cells. A number follows from them if its selection is a combination of theirs,
which rational arithmetic decides: that, and no more, must be shown. From all that is shown together no suppressed cell may
follow, neither by equations nor by bounds, for no value is negative.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
from scipy.optimize import linprog

import sdcduck
from sdcduck.guard import Guard, guard

PUBLICATIONS, QUESTIONS = 1000, 10_000
Vector = np.ndarray[Any, Any]


class Span:
    """The linear combinations of vectors of integers, exactly: rows in echelon form, of integers of any size."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: dict[int, Vector] = {}

    def remainder(self, vector: Vector) -> Vector:
        """What is left of a multiple of a vector."""
        left = vector.astype(object)
        for place, row in self.rows.items():
            if left[place]:
                left = left * row[place] - row * left[place]
                left = left // (math.gcd(*left.tolist()) or 1)
        return left

    def __contains__(self, vector: Vector) -> bool:
        return not self.remainder(vector).any()

    def add(self, vector: Vector) -> None:
        """Let it be among those combined."""
        left = self.remainder(vector)
        place = next((place for place, value in enumerate(left) if value), None)
        if place is None:
            return
        for other, row in self.rows.items():
            if row[place]:
                row = row * left[place] - left * row[place]
                self.rows[other] = row // (math.gcd(*row.tolist()) or 1)
        self.rows[place] = left

    def orthogonal(self) -> Vector:
        """Vectors that are 0 with those of the span and with nothing else: one a row, of 64-bit integers."""
        free = [place for place in range(self.width) if place not in self.rows]
        scale = math.lcm(1, *(int(row[place]) for place, row in self.rows.items()))
        found = np.zeros((len(free), self.width), dtype=object)
        for number, place in enumerate(free):
            found[number, place] = scale
            for pivot, row in self.rows.items():
                found[number, pivot] = -row[place] * scale // row[pivot]
            found[number] //= math.gcd(*found[number].tolist())
        assert not found.size or max(abs(value) for value in found.ravel()) < 2**62 // max(self.width, 1)
        return found.astype(np.int64)


@dataclass
class Publication:
    """A publication of random firms, stored and protected."""

    con: duckdb.DuckDBPyConnection
    guarded: Guard
    dimensions: dict[str, list[str]]
    inner: list[tuple[Any, ...]]
    totals: Vector
    published: Span
    suppressed: list[Vector]

    def selected(self, values: dict[str, Any]) -> Vector:
        """Which inner cells have these values; None: any."""
        return np.array(
            [all(values.get(name) in (None, key[i]) for i, name in enumerate(self.dimensions)) for key in self.inner],
            dtype=bool,
        )


def publication(seed: int) -> Publication:
    """Random firms in random dimensions, some of which nest, published in random grouping sets under random rules."""
    chance = random.Random(seed)
    dimensions = {"region": [f"r{i}" for i in range(chance.randint(3, 6))]}
    for name in chance.sample(["sector", "size", "year"], chance.randint(1, 2)):
        dimensions[name] = [f"{name[:2]}{i}" for i in range(chance.randint(2, 4))]
    if chance.random() < 0.4:
        dimensions["county"] = ["east", "west"]
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute("CREATE TABLE firms (firm INTEGER, turnover BIGINT, staff BIGINT)")
    for name in dimensions:
        con.execute(f"ALTER TABLE firms ADD COLUMN {name} VARCHAR")
    rows = []
    for firm in range(5 + int(math.prod(map(len, dimensions.values())) * chance.uniform(0.6, 4))):
        values = {name: chance.choice(listed) for name, listed in dimensions.items()}
        if "county" in values:
            values["county"] = ["east", "west"][int(values["region"][1:]) % 2]
        rows.append((firm, 1000 + chance.randrange(10**6), chance.randint(1, 400), *values.values()))
    con.executemany(f"INSERT INTO firms VALUES ({', '.join('?' * (3 + len(dimensions)))})", rows)
    names = list(dimensions)
    sets = {tuple(names)} if chance.random() < 0.4 else set()
    while len(sets) < 2 or set(names) - {name for one in sets for name in one}:
        sets.add(tuple(name for name in names if chance.random() < 0.6))
    listed_sets = ", ".join(f"({', '.join(one)})" for one in sorted(sets))
    grouped = [f"CUBE({', '.join(names)})", f"GROUPING SETS ({listed_sets})"]
    rule = chance.choice(
        [
            "max_count := 1",
            "max_count := 2, protect_zeros := true",
            "max_count := 2",
            "max_count := 3",
            "min_contributors := 3",
            "dominance := [(1, 70)]",
            "p_percent := 15",
        ]
    )
    con.execute(
        f"FROM sdc_publish('p', 'SELECT {', '.join(names)}, count(*) AS n, sum(turnover) AS turnover, sum(staff) AS staff "
        f"FROM firms GROUP BY {chance.choice(grouped)}', {rule})"
    ).fetchall()
    con.execute(
        f"FROM sdc_protect('firms', unit := 'firm', dimensions := {names}, measures := ['turnover', 'staff'], "
        "method := 'suppression', publication := 'p')"
    ).fetchall()
    listed = ", ".join(names)
    inner = con.execute(f"SELECT {listed} FROM sdc.p_stencil ORDER BY ALL").fetchall()
    # From the records, not from what is stored: the audit shares nothing with what it audits.
    counted = con.execute(
        f"SELECT count(firm), coalesce(sum(f.turnover), 0), coalesce(sum(f.staff), 0) FROM sdc.p_stencil "
        f"LEFT JOIN firms f USING ({listed}) GROUP BY {listed} ORDER BY {listed}"
    ).fetchall()
    made = Publication(con, guard(con), dimensions, inner, np.array(counted, dtype=np.int64), Span(len(inner)), [])
    for *values, status in con.execute(f"SELECT {listed}, status FROM sdc.p_cells").fetchall():
        cell = made.selected(dict(zip(names, values, strict=True)))
        if status in ("primary", "secondary"):
            made.suppressed.append(cell)
        else:
            made.published.add(cell)
    return made


def _condition(chance: random.Random, dimensions: dict[str, list[str]]) -> str:
    """Something an analyst could ask about dimensions."""

    def one() -> str:
        name, listed = chance.choice(sorted(dimensions.items()))
        value, other = chance.choice(listed), chance.choice(listed)
        return chance.choice(
            [
                f"{name} = '{value}'", f"{name} <> '{value}'", f"{name} >= '{value}'", f"{name} IN ('{value}', '{other}')",
                f"NOT {name} IN ('{value}', '{other}')", f"{name} BETWEEN '{value}' AND '{other}'", f"{name} LIKE '%{value[-1]}'",
            ]
        )  # fmt: skip

    parts = [" AND ".join(one() for _ in range(chance.randint(1, 3))) for _ in range(chance.randint(1, 3))]
    return " OR ".join(f"({part})" for part in parts)


@dataclass(frozen=True)
class Statement:
    """A statement that asks many questions: each of its filters, and none, in each of its groups."""

    sql: str
    keys: dict[str, str]
    filters: tuple[str, ...]
    where: str


def statement(chance: random.Random, dimensions: dict[str, list[str]]) -> Statement:
    """What an analyst could send: plain tables, subtotals, conditions as groups, in WHERE, in FILTER and in CASE."""
    names = list(dimensions)
    shape = chance.choice(["conditions", "conditions", "filters", "plain"])
    grouped = chance.sample(names, chance.randint(0, 1 if shape == "conditions" else len(names)))
    keys = {name: name for name in grouped}
    if shape == "conditions":
        keys |= {f"k{i}": _condition(chance, dimensions) for i in range(chance.randint(2, 5))}
    filters = tuple(_condition(chance, dimensions) for _ in range(2 if shape == "filters" else chance.randint(0, 1)))
    where = _condition(chance, dimensions) if chance.random() < 0.5 else ""
    numbers = ["count(*) AS n0, sum(turnover) AS t0, sum(staff) AS s0"]
    numbers += [
        f"count(*) FILTER ({text}) AS n{i}, sum(CASE WHEN {text} THEN turnover END) AS t{i}, sum(staff) FILTER ({text}) AS s{i}"
        for i, text in enumerate(filters, 1)
    ]
    shown = ", ".join([*(f"{text} AS {name}" for name, text in keys.items()), *numbers])
    listed = ", ".join(f"({text})" for text in keys.values())
    cubed = "CUBE" if shape == "conditions" else chance.choice(["", "CUBE", "ROLLUP"])
    group = f" GROUP BY {cubed}({listed})" if keys and cubed else f" GROUP BY {listed}" if keys else ""
    source = chance.choice(["firms", "(SELECT * FROM firms)", "all_firms"])
    with_ = "WITH all_firms AS (FROM firms) " if source == "all_firms" else ""
    return Statement(
        f"{with_}SELECT {shown} FROM {source}{f' WHERE {where}' if where else ''}{group}",
        keys,
        filters,
        where or "true",
    )


@dataclass
class Found:
    """What an audit found.

    Attributes:
        shown, withheld: questions.
        suppressed: cells of the publications.
        derivable: of these, by equations from everything shown.
        bounded: of these, by equations and because no value is negative.
        by_presence: of these, their counts, by somebody who knows that an inner cell has at least one record: that can be
            seen (see the documentation), so it is told and not judged.
    """

    shown: int = 0
    withheld: int = 0
    suppressed: int = 0
    derivable: int = 0
    bounded: int = 0
    by_presence: int = 0
    publications: int = 0
    wrong: list[str] = field(default_factory=list)


def audit(one: Publication, seed: int, questions: int, found: Found) -> None:
    """Ask, and see what everything together says."""
    chance = random.Random(-1 - seed)
    outside = one.published.orthogonal()
    together = Span(len(one.inner))
    asked = 0
    while asked < questions:
        sent = statement(chance, one.dimensions)
        for values, cells in _selections(one, sent):
            follows = not (outside @ cells).any()
            expected: list[int | None] = [None, None, None]
            if follows:
                expected = one.totals[cells].sum(axis=0).tolist() if cells.any() else [0, None, None]
            if values != expected:
                found.wrong.append(f"publication {seed}: {sent.sql}: {values}, expected {expected}")
            shown = values[0] is not None
            if shown and (not follows or len(together.rows) < len(one.published.rows)):
                together.add(cells)
            found.shown += shown
            found.withheld += not shown
            asked += 1
    found.publications += 1
    found.suppressed += len(one.suppressed)
    found.derivable += sum(cell in together for cell in one.suppressed)
    found.bounded += determined(one.suppressed, together, one.totals[:, 1], 0)
    if one.totals[:, 0].all():
        found.by_presence += determined(one.suppressed, together, one.totals[:, 0], 1)
    one.con.close()


def _selections(one: Publication, sent: Statement) -> Iterator[tuple[list[int | None], Vector]]:
    """What is answered to each question of a statement, and the inner cells that it is about."""
    asked = [*sent.keys.values(), *(f"({sent.where}) AND ({text})" for text in ("true", *sent.filters))]
    looked_at = one.con.execute(
        f"SELECT {', '.join(asked)} FROM sdc.p_stencil ORDER BY {', '.join(one.dimensions)}"
    ).fetchall()
    columns = [np.array(column, dtype=object) for column in zip(*looked_at, strict=True)]
    by_key = [
        {value: column == value for value in set(column.tolist())} for column in columns[: len(sent.keys)]
    ]  # fmt: skip
    chosen = [column.astype(bool) for column in columns[len(sent.keys) :]]
    for row in one.guarded.sql(sent.sql).to_pylist():
        in_group = np.ones(len(one.inner), dtype=bool)
        for name, masks in zip(sent.keys, by_key, strict=True):
            if row[name] is not None:  # a subtotal
                in_group = in_group & masks[row[name]]
        for i, cells in enumerate(chosen):
            values = [None if row[f"{what}{i}"] is None else int(row[f"{what}{i}"]) for what in "nts"]
            yield values, in_group & cells


def determined(suppressed: Sequence[Vector], together: Span, values: Vector, least: int) -> int:
    """How many suppressed cells have one possible value only, if no inner cell is below `least`.

    Args:
        suppressed: the inner cells of each.
        together: what is shown, as combinations of inner cells.
        values: of the inner cells.
    """
    if not together.rows:
        return 0
    equations = np.array(list(together.rows.values()), dtype=float)
    values = values.astype(float)
    known = equations @ values
    found = 0
    for cell in {cell.tobytes(): cell for cell in suppressed}.values():
        low, high = (
            linprog(sign * cell.astype(float), A_eq=equations, b_eq=known, bounds=(least, None), method="highs")
            for sign in (1, -1)
        )
        if low.status == 0 and high.status == 0:
            found += -high.fun - low.fun < 1e-6 * max(1.0, float(values @ cell))
        else:
            assert 3 in (low.status, high.status), (low.message, high.message)  # unbounded: anything is possible
    return found


def run(share: float, first: int = 0) -> Found:
    """A share of all publications, each with all its questions, beginning with one of them."""
    found = Found()
    for seed in range(first, first + max(1, round(PUBLICATIONS * share))):
        audit(publication(seed), seed, QUESTIONS, found)
        if found.wrong:
            break
    return found


def main() -> None:
    """``make guard-suppression``."""
    start = time.perf_counter()
    found = run(float(os.environ.get("SHARE", "0.01")), int(os.environ.get("FIRST", "0")))
    print(
        f"sdcduck: {found.publications} publications with {found.suppressed:,} suppressed cells, {found.shown:,} answers shown "
        f"and {found.withheld:,} withheld, in {time.perf_counter() - start:.0f} s\n"
        f"  suppressed cells that follow from everything shown: {found.derivable} by equations, {found.bounded} by bounds "
        f"({found.by_presence} counts, if it is known that each inner cell has a record)\n"
        f"  answers other than those that follow from what is published: {len(found.wrong)}"
    )
    for line in found.wrong[:5]:
        print(f"  {line}")
    raise SystemExit(bool(found.wrong or found.derivable or found.bounded))


if __name__ == "__main__":
    main()
