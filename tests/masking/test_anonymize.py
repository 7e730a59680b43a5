"""``sdc_anonymize``: the node is the best of all nodes of the lattice, by brute force, and the answer passes what measures it."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pytest
from effort import times

from sdcduck.methods.masking.generalisation_costs import Key, _bits, prices
from sdcduck.methods.masking.lattice import Found, Lattice

Record = dict[str, Any]

# --- the lattice by brute force ---------------------------------------------------------------------------------------

TREE = {"Oslo": "East", "Moss": "East", "Bodø": "North", "East": "Norway", "North": "Norway", "Jan Mayen": "Norway"}


def interval(width: float, origin: float = 0.0) -> Callable[[Any], Any]:
    return lambda value: None if value is None else math.floor((value - origin) / width)


@dataclass(frozen=True)
class Way:
    """How a key is generalised, in SQL and in Python: a function a level, and the share of the domain of a label."""

    sql: str
    labels: Sequence[Callable[[Any], Any]]
    span: Callable[[Sequence[Any], int, Any], float]


def counted(labels: Sequence[Callable[[Any], Any]]) -> Callable[[Sequence[Any], int, Any], float]:
    """The share in different values of the column."""

    def span(column: Sequence[Any], level: int, value: Any) -> float:
        different = set(column)
        alike = sum(labels[level](other) == labels[level](value) for other in different)
        return (alike - 1) / max(len(different) - 1, 1)

    return span


def of_widths(widths: Sequence[float]) -> Callable[[Sequence[Any], int, Any], float]:
    def span(column: Sequence[Any], level: int, value: Any) -> float:
        known = [one for one in column if one is not None]
        if level == 0 or value is None or max(known) == min(known):
            return 0.0
        return min(1.0, widths[level - 1] / (max(known) - min(known)))

    return span


def of_tree(column: Sequence[Any], level: int, value: Any) -> float:
    if level == 0 or value in (None, "Jan Mayen"):
        return 0.0
    return ({"East": 2, "North": 1}[TREE[value]] - 1) / 3


def same(value: Any) -> Any:
    return value


_QUARTERS = (same, lambda d: d and (d.year, (d.month + 2) // 3), lambda d: d and d.year)
_CUTS = (same, lambda z: z and z[:2], lambda z: z and z[:1])
WAYS = {
    "age": Way("[5, 10, 20]", (same, *map(interval, (5, 10, 20))), of_widths((5, 10, 20))),
    "wage": Way(
        "{'widths': [2.5, 5], 'origin': 0.5}",
        (same, interval(2.5, 0.5), interval(5, 0.5)), of_widths((2.5, 5)),
    ),
    "born": Way("['quarter', 'year']", _QUARTERS, counted(_QUARTERS)),
    "zip": Way("{'cut': [1, 2]}", _CUTS, counted(_CUTS)),
    "town": Way("'tree'", (same, lambda t: t and ("Jan Mayen" if t == "Jan Mayen" else TREE[t])), of_tree),
    "sex": Way("[]", (same,), counted((same,))),
}  # fmt: skip


def drawn(draw: random.Random, count: int) -> list[Record]:
    """Records of which some are rare, with gaps."""
    day = datetime.date(2020, 1, 15)
    gaps = draw.random() < 0.5

    def some(value: Any) -> Any:
        return None if gaps and draw.random() < 0.08 else value

    return [
        {
            "age": some(int(draw.gauss(40, 12))),
            "wage": some(draw.randrange(1, 80) / 4),
            "born": some(day + datetime.timedelta(30 * int(draw.expovariate(0.1)))),
            "zip": some(draw.choice(["111", "112", "121", "211", "222"])),
            "town": some(draw.choice(["Oslo", "Oslo", "Moss", "Bodø", "Jan Mayen"])),
            "sex": some(draw.choice("mf")),
            "illness": some(draw.choice("aaabbcd")),
            "income": int(draw.expovariate(0.3)),
        }
        for _ in range(count)
    ]


@dataclass(frozen=True)
class Asked:
    """The arguments of a call."""

    keys: tuple[str, ...]
    k: int
    limit: float
    cost: str
    l: float | None = None  # noqa: E741 - what it is called
    l_method: str = "distinct"
    c: float = 2.0
    t: float | None = None
    sensitive: str | None = None

    def call(self, function: str, table: str = "records") -> str:
        ways = ", ".join(f"'{key}': {WAYS[key].sql}" for key in self.keys)
        more = "".join(
            f", {name} := {value!r}"
            for name, value in (("l", self.l), ("t", self.t), ("sensitive", self.sensitive))
            if value is not None
        )
        return (
            f"{function}('{table}', {list(self.keys)}, k := {self.k}, hierarchies := {{{ways}}}, c := {self.c}, "
            f"suppress_limit := {self.limit}, cost := '{self.cost}', l_method := '{self.l_method}'{more})"
        )

    def is_diverse(self, values: Counter[Any]) -> bool:
        counts = sorted(values.values(), reverse=True)
        if self.l is None:
            return True
        if self.l_method == "distinct":
            return len(counts) >= self.l
        if self.l_method == "entropy":
            size = sum(counts)
            return math.exp(-sum(n / size * math.log(n / size) for n in counts)) >= self.l - 1e-9
        return len(counts) >= self.l and counts[0] < self.c * sum(counts[int(self.l) - 1 :])

    def is_close(self, values: Counter[Any], whole: Counter[Any]) -> bool:
        if self.t is None:
            return True
        mine, all_of_them = sum(values.values()), sum(whole.values())
        differences = [(values[one] / mine - whole[one] / all_of_them) for one in sorted(whole, key=str)]
        if self.sensitive == "illness":
            return sum(map(abs, differences)) / 2 <= self.t + 1e-9
        differences = [(values[one] / mine - whole[one] / all_of_them) for one in sorted(whole)]
        moved = sum(map(abs, itertools.accumulate(differences)))
        return moved / max(len(whole) - 1, 1) <= self.t + 1e-9

    def passes(self, records: Sequence[Record], all_of_them: Sequence[Record]) -> bool:
        """Whether these may be a class."""
        if len(records) < self.k:
            return False
        if self.sensitive is None:
            return True
        values, whole = (Counter(one[self.sensitive] for one in some) for some in (records, all_of_them))
        return self.is_diverse(values) and self.is_close(values, whole)


def label(key: str, level: int, value: Any) -> Any:
    """The label of a value; that of the last level is its own."""
    labels = WAYS[key].labels
    return (level, labels[level](value)) if level < len(labels) else "*"


def by_force(records: Sequence[Record], asked: Asked) -> dict[tuple[int, ...], tuple[int, bool, float]]:
    """Suppressed records, whether it passes, and cost of every node."""
    count, columns = len(records), {key: [record[key] for record in records] for key in asked.keys}
    heights = [range(len(WAYS[key].labels) + 1) for key in asked.keys]
    found = {}
    for levels in itertools.product(*heights):
        node = list(zip(asked.keys, levels, strict=True))
        classes = defaultdict(list)
        for record in records:
            classes[tuple(label(key, level, record[key]) for key, level in node)].append(record)
        kept = [one for one in classes.values() if asked.passes(one, records)]
        lost = [record for one in classes.values() if not asked.passes(one, records) for record in one]
        cost = 0.0
        if asked.cost == "discernibility":
            cost = sum(len(one) ** 2 for one in kept) + count * len(lost)
        else:
            for key, level in node:
                labels = Counter(label(key, level, value) for value in columns[key])
                values = Counter(columns[key])
                top = level == len(WAYS[key].labels)
                for record in (record for one in kept for record in one):
                    value = record[key]
                    if asked.cost == "entropy":
                        cost += math.log2(labels[label(key, level, value)] / values[value])
                    else:
                        span = (len(values) > 1) if top else WAYS[key].span(columns[key], level, value)
                        cost += span / count / len(node)
                for record in lost:
                    cost += math.log2(count / values[record[key]]) if asked.cost == "entropy" else 1 / count / len(node)
        few = len(lost) <= math.floor(asked.limit * count + 1e-9)
        found[levels] = (len(lost), few and (not lost or asked.passes(lost, records)), cost)
    return found


def best_of(found: dict[tuple[int, ...], tuple[int, bool, float]]) -> tuple[int, ...] | None:
    """The cheapest node that passes; of these the one with the fewest steps, then the first."""
    passing = {levels: cost for levels, (_, passes, cost) in found.items() if passes}
    if not passing:
        return None
    least = min(passing.values())
    return min(
        (levels for levels, cost in passing.items() if cost <= least + 1e-7 * max(least, 1)),
        key=lambda levels: (sum(levels), levels),
    )


SENSITIVE = (
    {},
    {"l": 2, "sensitive": "illness"},
    {"l": 1.7, "l_method": "entropy", "sensitive": "illness"},
    {"l": 2, "l_method": "recursive", "c": 1.5, "sensitive": "illness"},
    {"t": 0.35, "sensitive": "illness"},
    {"t": 0.2, "sensitive": "income"},
    {"l": 3, "t": 0.3, "sensitive": "income"},
)


def random_call(draw: random.Random, number: int) -> Asked:
    return Asked(
        tuple(draw.sample(sorted(WAYS), draw.choice((2, 2, 3)))), draw.choice((2, 3, 5)),
        draw.choice((0.0, 0.1, 0.2, 0.35)), ("entropy", "loss", "discernibility")[number % 3],
        **SENSITIVE[number // 3 % len(SENSITIVE)],
    )  # fmt: skip


@pytest.fixture
def tree(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    rows = ", ".join(f"('{child}', '{parent}')" for child, parent in TREE.items())
    lasting.execute(f"CREATE OR REPLACE TABLE tree AS FROM (VALUES {rows}) tree(child, parent)")
    return lasting


def write(con: duckdb.DuckDBPyConnection, records: Sequence[Record]) -> None:
    con.execute(
        "CREATE OR REPLACE TABLE records(person INTEGER, age INTEGER, wage DOUBLE, born DATE, zip VARCHAR, town VARCHAR, "
        "sex VARCHAR, illness VARCHAR, income INTEGER)"
    )
    con.executemany(
        "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(number, *record.values()) for number, record in enumerate(records)],
    )


@pytest.mark.parametrize("number", range(times(42, 2000)))  # all pairs of a measure and a condition, twice
def test_the_best_of_all_nodes(tree: duckdb.DuckDBPyConnection, number: int) -> None:
    draw = random.Random(number)
    records = drawn(draw, draw.randrange(12, 45))
    asked = random_call(draw, number)
    write(tree, records)
    expected = by_force(records, asked)
    best = best_of(expected)
    if best is None:
        with pytest.raises(duckdb.Error, match="no generalisation has it"):
            tree.execute(f"FROM {asked.call('sdc_anonymize_lattice')}").fetchall()
        return
    rows = tree.execute(
        "SELECT levels, suppressed, passes, cost, bound, searched, why, chosen FROM "
        f"{asked.call('sdc_anonymize_lattice')}"
    ).fetchall()
    assert [tuple(levels) for levels, *_, chosen in rows if chosen] == [best]
    assert {tuple(row[0]) for row in rows} == set(expected)
    for levels, suppressed, passes, cost, bound, searched, why, _ in rows:
        lost, may, price = expected[tuple(levels)]
        assert bound <= price + 1e-6 * max(price, 1)
        if searched:
            assert (suppressed, passes) == (lost, may)
            assert cost is None or cost == pytest.approx(price, rel=1e-7, abs=1e-7)
        elif why.startswith("a coarser"):
            assert not may
            assert not passes
        else:
            assert bound >= expected[best][2] - 1e-6 * max(price, 1)
    measured_by_ours(tree, asked, expected[best][0])


def measured_by_ours(con: duckdb.DuckDBPyConnection, asked: Asked, lost: int) -> None:
    """The answer passes the measures of this project, suppressed records and all."""
    con.execute(f"CREATE OR REPLACE TABLE released AS FROM {asked.call('sdc_anonymize')}")
    keys = list(asked.keys)
    found = con.execute("SELECT records, k FROM sdc_k_anonymity('released', ?)", [keys]).fetchall()[0]
    assert found[0] == con.execute("SELECT count(*) FROM records").fetchall()[0][0]
    assert found[1] >= asked.k
    sizes = f"count(*) OVER (PARTITION BY {', '.join(keys)}) = class_size"
    assert con.execute(
        f"SELECT bool_and(ok), count(*) FILTER (suppressed) FROM (SELECT {sizes} AS ok, suppressed FROM released)"
    ).fetchall() == [(True, lost)]
    shown = " AND ".join(f"{key} IS NOT DISTINCT FROM '*'" for key in keys)
    assert con.execute(f"SELECT count(*) FROM released WHERE suppressed AND NOT ({shown})").fetchall() == [(0,)]
    if asked.l is not None:
        column = {"distinct": "distinct_l", "entropy": "entropy_l", "recursive": "recursive_l"}[asked.l_method]
        measure = f"SELECT {column} FROM sdc_l_diversity('released', ?, sensitive := ?, c := ?)"
        least = con.execute(measure, [keys, asked.sensitive, asked.c]).fetchall()[0][0]
        assert least >= asked.l - 1e-8
    if asked.t is not None:
        farthest = con.execute("SELECT t FROM sdc_t_closeness('released', ?, sensitive := ?)", [keys, asked.sensitive])
        assert farthest.fetchall()[0][0] <= asked.t + 1e-8


def test_equal_costs_go_by_levels(con: duckdb.DuckDBPyConnection) -> None:
    """Two keys that are alike cost the same: the later one is generalised."""
    con.execute("CREATE TABLE p AS SELECT i % 4 AS x, i % 4 AS y, i // 4 AS z FROM range(12) r(i)")
    for cost in ("entropy", "loss", "discernibility"):
        call = (
            f"sdc_anonymize_lattice('p', ['x', 'y'], k := 4, hierarchies := {{'x': [2], 'y': [2]}}, cost := '{cost}')"
        )
        assert con.execute(f"SELECT levels FROM {call} WHERE chosen").fetchall() == [([1, 1],)]
    unlike = "(SELECT i % 2 AS x, i // 2 % 2 AS y FROM range(4) r(i))"
    call = f"sdc_anonymize_lattice('{unlike}', ['x', 'y'], k := 2, hierarchies := {{'x': [], 'y': []}})"
    assert con.execute(f"SELECT levels FROM {call} WHERE chosen").fetchall() == [([0, 1],)]


def test_a_search_looks_at_few_nodes() -> None:
    """The kernel by itself: with random classes that nest, and a limit, against all nodes."""
    for seed in range(times(60, 1000)):
        draw = random.Random(seed)
        tops = [draw.randrange(1, 5) for _ in range(3)]
        records = [tuple(draw.randrange(2**top) for top in tops) for _ in range(draw.randrange(5, 60))]
        most = draw.choice((0, 2, 6))

        def look(levels: tuple[int, ...], records: Sequence[Any] = records, most: int = most) -> Found:
            sizes = Counter(tuple(v >> level for v, level in zip(r, levels, strict=True)) for r in records).values()
            lost = sum(size for size in sizes if size < 3)
            kept = sum(size * size for size in sizes)
            extra = sum(size * (len(records) - size) for size in sizes if size < 3)
            return Found(len(sizes), min(sizes), lost, lost, lost <= most, kept, extra, kept + extra)

        lattice = Lattice(tops, None)
        best = lattice.search(look, most)
        every = {number: look(tuple(levels)) for number, levels in enumerate(lattice.levels.tolist())}
        passing = [(found.cost, number) for number, found in every.items() if found.passes]
        assert best == (min(passing)[1] if passing else None)
        costs = [found.kept_cost + found.certain_cost for found in every.values()]
        assert all(bound <= cost for bound, cost in zip(lattice.bounds.tolist(), costs, strict=True))


@pytest.mark.parametrize("step", [1 << 40, 1 << 33, 1 << 12])
def test_logarithms_rise_and_add_up(step: int) -> None:
    """A record never costs less at a coarser node; where steps are fine, equal products cost the same."""
    numbers = np.arange(1, 50_001)
    bits = _bits(numbers, step)
    assert (np.diff(bits) >= 0).all()
    assert np.abs(bits - np.log2(numbers) * step).max() <= 0.5 * 16 + step * 2.0**-46
    if step > 1 << 12:
        assert (bits[6 * 35 - 1], bits[6 * 14 - 1]) == (bits[5] + bits[34], bits[5] + bits[13])


def test_costs_by_hand() -> None:
    """Three values of 1, 1 and 2 records: apart, the first two together, all together."""
    labels = np.array([[0, 1, 2], [0, 0, 2], [0, 0, 0]])
    key = Key(np.array([1, 1, 2]), labels, np.array([[0, 0, 0], [1 / 3, 1 / 3, 0], [1, 1, 1]]))
    entropy, loss = prices("entropy", [key, key]), prices("loss", [key, key])
    assert [entropy.shown(2 * int(one)) for one in entropy.kept[0]] == [0, 4, 12]
    assert entropy.shown(4 * entropy.suppressed) == 12
    assert [loss.shown(int(loss.kept[0][level] + loss.kept[1][0])) for level in range(3)] == [0, 1 / 12, 1 / 2]
    assert loss.shown(4 * loss.suppressed) == 1
