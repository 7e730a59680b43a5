"""The attack of who knows which cells are alike: the figure of the paper, brute force, and our own cell keys under it."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard

SHOPS = """
CREATE TABLE shops AS FROM (VALUES (2, 1, 170), (2, 2, 144), (2, 3, 125), (2, 4, 162), (3, 2, 119), (3, 3, 130), (4, 2, 185),
    (4, 4, 712), (5, 1, 500), (5, 3, 70), (1, 1, NULL)) t(day, shop, sold);
CREATE TABLE weekend AS FROM (VALUES (1, 'day', 2, 3), (1, 'shop', 2, 3)) t(range_id, dim, lo, hi);
CREATE TABLE asked AS FROM (VALUES ('monday', 'day', 2, 2), ('monday', 'shop', 2, 4), ('all', 'day', 1, 5)) t(range_id, dim, lo, hi);
"""
ATTACK = "sdc_average_attack('shops', ['day', 'shop'], 'sold', alike := 'weekend'{})"


@pytest.fixture
def shops(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute(SHOPS)
    return con


def test_the_figure_of_the_paper(shops: duckdb.DuckDBPyConnection) -> None:
    """129.5 each for what is alike; Shop4 is taken to have sold 172 at Day2, and 162 is true."""
    found = shops.execute(
        f"SELECT day, shop, implied, value FROM {ATTACK.format('')} WHERE known_by = 'difference'"
    ).fetchall()
    assert found == [
        (1, 2, 4, None), (1, 3, -4, None), (2, 1, 180, 170), (2, 4, 172, 162),
        (3, 1, -10, None), (3, 4, -10, None), (4, 2, 189, 185), (4, 3, -4, None),
    ]  # fmt: skip
    known = shops.execute(
        f"SELECT day, shop, implied, relative_error FROM {ATTACK.format('')} WHERE known_by = 'average'"
    ).fetchall()
    assert [row[2] for row in known] == [129.5] * 4
    assert known[0] == (2, 2, 129.5, pytest.approx(14.5 / 144))


def test_sums_that_were_asked_for(shops: duckdb.DuckDBPyConnection) -> None:
    """What leaves several cells open tells nothing; a sum that was told stands for that of the cells."""
    more = ", asked := '{}'"
    one = f"SELECT * EXCLUDE (published, published_error) FROM {ATTACK.format(more)} WHERE known_by = 'difference'"
    assert shops.execute(one.format("asked")).fetchall() == [("monday", 2, 4, "difference", 172, 162, 10 / 162)]
    told = "(SELECT *, 441 AS told FROM asked)"
    assert shops.execute(one.format(told)).fetchall() == [("monday", 2, 4, "difference", 182, 162, 20 / 162)]
    shops.execute("ALTER TABLE weekend ADD COLUMN told INTEGER")
    shops.execute("UPDATE weekend SET told = 516")
    assert shops.execute(one.format("asked")).fetchall() == [("monday", 2, 4, "difference", 173, 162, 11 / 162)]


def test_a_view_misleads_it(shops: duckdb.DuckDBPyConnection) -> None:
    """Of the four cells that are alike the view has two, and nothing of Shop4: the attack finds 12 and not 162."""
    shops.execute(
        "CREATE TABLE seen AS FROM (VALUES (2, 2, 144), (2, 3, NULL), (3, 2, NULL), (3, 3, 130), (2, 4, 5)) t(day, shop, seen)"
    )
    more = ", protected := 'seen', value := 'seen'"
    found = shops.execute(
        f"SELECT known_by, implied, value, published, published_error FROM {ATTACK.format(more)} "
        "WHERE day = 2 AND shop >= 3"
    ).fetchall()
    assert found == [("average", 137, 125, None, None), ("difference", 12, 162, 5, 157 / 162)]


@pytest.mark.parametrize("seed", range(8))
def test_brute_force(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    """Ranges that are alike may overlap, and questions have any shape, in one to three dimensions."""
    chance = random.Random(seed)
    lengths = [chance.randrange(3, 6) for _ in range(1 + seed % 3)]
    names = [f"d{i}" for i in range(len(lengths))]
    places = list(itertools.product(*map(range, lengths)))
    cells = {place: chance.randrange(1, 50) for place in places if chance.random() < 0.8}
    shown = {place: value + chance.randrange(-2, 3) for place, value in cells.items()}

    def box() -> list[tuple[int, int]]:
        ends = [sorted(chance.choices(range(length), k=2)) for length in lengths]
        return [(low, high) for low, high in ends]

    def in_it(one: list[tuple[int, int]]) -> set[tuple[int, ...]]:
        return set(itertools.product(*(range(low, high + 1) for low, high in one)))

    def stored(name: str, boxes: list[list[tuple[int, int]]]) -> None:
        rows = ", ".join(
            f"({number}, 'd{i}', {low}, {high})"
            for number, one in enumerate(boxes)
            for i, (low, high) in enumerate(one)
        )
        con.execute(f"CREATE TABLE {name} AS FROM (VALUES {rows}) t(range_id, dim, lo, hi)")

    alike, asked = [box(), box()], [box() for _ in range(40)]
    stored("alike", alike)
    stored("asked", asked)
    for name, values in (("cube", cells), ("shown", shown)):
        rows = ", ".join(f"({', '.join(map(str, place))}, {values.get(place, 'NULL')})" for place in places)
        con.execute(f"CREATE TABLE {name} AS FROM (VALUES {rows}) t({', '.join(names)}, v)")
    told = {place: value for place, value in shown.items() if value}
    averages: dict[tuple[int, ...], list[Fraction]] = {}
    for one in alike:
        known = [told[place] for place in in_it(one) if place in told]
        for place in in_it(one) if known else ():
            averages.setdefault(place, []).append(Fraction(sum(known), len(known)))
    guess = {place: sum(those) / len(those) for place, those in averages.items()}
    wanted = [(place, "average", value) for place, value in guess.items()]
    for one in asked:
        left = [place for place in in_it(one) if place not in guess]
        if len(left) == 1:
            rest = sum(told.get(place, 0) for place in in_it(one)) - sum(
                (guess[place] for place in in_it(one) if place in guess and place in told), Fraction(0)
            )
            wanted.append((left[0], "difference", rest))
    found = con.execute(
        f"SELECT {', '.join(names)}, known_by, implied, value, relative_error, published FROM sdc_average_attack("
        f"'cube', {names}, 'v', alike := 'alike', asked := 'asked', protected := 'shown')"
    ).fetchall()
    ours = sorted((tuple(row[: len(names)]), row[len(names)], row[len(names) + 1]) for row in found)
    assert [one[:2] for one in ours] == [one[:2] for one in sorted(wanted)]
    assert [one[2] for one in ours] == pytest.approx([float(one[2]) for one in sorted(wanted)], abs=1e-12)
    for *place, _, implied, value, error, published in found:
        at = tuple(place)
        assert (value, published) == (cells.get(at), told.get(at))
        assert error == (None if value is None else pytest.approx(abs(implied - value) / value, abs=1e-12))


# --- our own product -------------------------------------------------------------------------------------------------

_ERRORS = """SELECT known_by, sum((implied - value) ^ 2), sum((published - value) ^ 2), count(*)
    FROM sdc_average_attack('truth', ['day', 'shop'], 'n', alike := 'alike', asked := '{}', protected := 'published')
    GROUP BY known_by"""


def errors_under_cell_keys(alike: bool, told: bool) -> dict[str, tuple[float, float]]:
    """Root mean square errors of the attack and of the published cells, by the way in which a cell is known.

    Args:
        alike: whether the cells of the weekend are all of one size.
        told: whether the attacker asks the guard for the sums, too, and not only for the cells.
    """
    squares: dict[str, list[float]] = {}
    for seed in range(8):
        con = sdcduck.connect(secret=f"the secret of the cube {seed}")
        size = "24" if alike else "12 + (day * 5 + shop * 7) % 25"
        con.execute(f"""
            CREATE TABLE visits AS SELECT row_number() OVER (ORDER BY day, shop, i) AS person, day, shop
            FROM (SELECT 1 + c % 7 AS day, 1 + c // 7 AS shop FROM range(84) r(c)) JOIN range(40) s(i) ON i < {size}""")
        con.execute("FROM sdc_add_record_key('visits', unit := 'person')").fetchall()
        con.execute("FROM sdc_protect('visits', unit := 'person', dimensions := ['day', 'shop'])").fetchall()
        con.execute("CREATE TABLE truth AS SELECT day, shop, count(*) AS n FROM visits GROUP BY ALL")
        guard = sdcduck.open_guard(con)

        def ranges(boxes: list[tuple[int, int, int, int]], guard: Guard = guard) -> str:
            rows = []
            for number, (a, b, c, d) in enumerate(boxes):
                where = f"day BETWEEN {a} AND {b} AND shop BETWEEN {c} AND {d}"
                answer = (
                    guard.sql(f"SELECT count(*) AS n FROM visits WHERE {where}")["n"][0].as_py() if told else "NULL"
                )
                rows += [f"({number}, 'day', {a}, {b}, {answer}), ({number}, 'shop', {c}, {d}, {answer})"]
            return f"FROM (VALUES {', '.join(rows)}) t(range_id, dim, lo, hi, told)"

        published = guard.sql("SELECT day, shop, count(*) AS n FROM visits GROUP BY day, shop")
        con.register("answer", published)
        con.execute("CREATE TABLE published AS FROM answer")
        con.execute(f"CREATE TABLE alike AS {ranges([(3, 5, 4, 9)])}")
        longer = [(day, day, low, low + 6) for day in (3, 4, 5) for low in (3, 4)]
        con.execute(f"CREATE TABLE asked AS {ranges(longer)}")
        for way, ours, theirs, count in con.execute(_ERRORS.format("asked")).fetchall():
            squares.setdefault(way, []).append(ours)
            squares.setdefault(f"{way} published", []).append(theirs)
            squares.setdefault(f"{way} count", []).append(count)
        con.close()

    def root(way: str) -> float:
        return math.sqrt(sum(squares[way]) / sum(squares[f"{way.split()[0]} count"]))

    return {way: (root(way), root(f"{way} published")) for way in ("average", "difference")}


def test_cell_keys_hide_what_is_not_alike() -> None:
    """The noise of a cell has the standard deviation 1.4, and the average of others is farther off than that."""
    found = errors_under_cell_keys(alike=False, told=False)
    assert found["average"][0] > 3 * found["average"][1]
    assert found["difference"][0] > 3 * found["difference"][1]


def test_cell_keys_do_not_hide_what_is_alike() -> None:
    """The average of 18 cells that are alike has a quarter of the noise of one, and who asks for the sum has less.

    The noise is that of numbers, and no secret where a belief gives the number away. What is left of a longer line has
    more noise than the cell itself: that attack gains nothing under cell keys, though it is exact without them.
    """
    found = errors_under_cell_keys(alike=True, told=False)
    assert 1.1 < found["average"][1] < 1.7
    assert found["average"][0] < found["average"][1] / 2.5
    assert found["difference"][0] > 1.5 * found["difference"][1]
    asked = errors_under_cell_keys(alike=True, told=True)
    assert asked["average"][0] < found["average"][1] / 8
    assert asked["difference"][0] == pytest.approx(found["difference"][1], rel=0.35)


def test_without_protection_it_is_exact(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE truth AS SELECT c % 7 AS day, c // 7 AS shop, 24 AS n FROM range(84) r(c)")
    con.execute("CREATE TABLE alike AS FROM (VALUES (1, 'day', 2, 4), (1, 'shop', 3, 8)) t(range_id, dim, lo, hi)")
    found = con.execute(
        "SELECT known_by, count(*), max(relative_error) FROM sdc_average_attack('truth', ['day', 'shop'], 'n', alike := 'alike') GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert found == [("average", 18, 0), ("difference", 18, 0)]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (", protected := 'weekend'", "unknown column 'day'"),
        (", protected := '(SELECT day, shop, 1 AS n FROM shops)'", "unknown column 'sold'"),
        (", value := 'sold'", "argument 'value' is the column of a table that is given as 'protected'"),
        (", protected := '(SELECT ''a'' AS day, 1 AS shop, 1 AS sold)'", "column 'day' is INTEGER in 'original' and VARCHAR in 'protected'"),
        (", protected := '(FROM shops UNION ALL FROM shops)'", "argument 'protected' has several rows of one cell"),
        (", asked := '(SELECT *, lo AS told FROM asked)'", "argument 'asked' has a range that was told two sums"),
        (", asked := '(SELECT *, ''nan''::DOUBLE AS told FROM asked)'", "argument 'asked' has a range that was told two sums"),
        (", asked := '(SELECT *, ''x'' AS told FROM asked)'", "argument 'asked' must name a column of numbers"),
        (", asked := 'nowhere'", "unknown table 'nowhere'"),
    ],
)  # fmt: skip
def test_bad_input(shops: duckdb.DuckDBPyConnection, more: str, message: str) -> None:
    shops.execute("UPDATE asked SET lo = 3, hi = 3 WHERE dim = 'shop'")
    with pytest.raises(duckdb.Error) as raised:
        shops.execute(f"FROM {ATTACK.format(more)}").fetchall()
    assert message in str(raised.value)


def test_ranges_that_are_too_large(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE long AS SELECT i AS a, i AS b, i + 1 AS v FROM range(4000) r(i)")
    with pytest.raises(duckdb.Error, match="argument 'alike' has ranges of more than 10,000,000 cells together"):
        con.execute(
            "FROM sdc_average_attack('long', ['a', 'b'], 'v', alike := '(SELECT 1 AS range_id, ''a'' AS dim, 0 AS lo, 4000 AS hi)')"
        ).fetchall()
    with pytest.raises(duckdb.Error, match="argument 'alike' must name a table of ranges whose cells are alike"):
        con.execute("FROM sdc_average_attack('long', ['a', 'b'], 'v')").fetchall()
