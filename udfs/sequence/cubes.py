"""Sums of ranges of a cube, and who knows averages: planners behind ``sql/cubes_tables.sql``.

Laouir and Imine (2022), "On Privacy of Multidimensional Data Against Aggregate Knowledge Attacks". The allocation is a
fractional knapsack with equal weights, which needs no solver; the means of windows over sorted values do not fall, so
that the best window of algorithm 1 is the first or the last; the steps of algorithm 2 have a closed form.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.udfs.arguments import choice, needed, number, share, truth, whole, wrong
from sdcduck.udfs.sequence.ranges import Cube, problem
from sdcduck.udfs.source import source
from sdcduck.udfs.sums import total

_LEAST_DIFFERENCE = 1e-12  # of two errors that are one but for the last digits
_LARGEST_BOXES = 10_000_000  # cells of all ranges of an attack, empty ones too
_INDIVIDUAL = {"suppress": 0.0, "inflate": 0.26, "greedy": 0.27}


_LARGER = "PARTITION BY range_id, block_id ORDER BY r DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
_ABOVE = f"coalesce({total('value', 'r > n - b').replace('::DOUBLE', f' OVER ({_LARGER})::DOUBLE')}, 0)"


# --- how many cells are kept -----------------------------------------------------------------------------------------


def _allocated(parts: str, id: str, budget: str, by: str = "") -> str:
    """SQL of how many cells each part keeps, ``b``: the least first, then the smallest parts up to their caps.

    Args:
        parts: SQL of the parts: ``id``, ``by``, the cells ``n``, ``least`` and ``cap``.
        budget: SQL of the cells of all parts of one ``by``.
    """
    group = f"PARTITION BY {by} " if by else ""
    order = f"{group}ORDER BY n, {id} ROWS UNBOUNDED PRECEDING"
    return (
        f"SELECT *, least + greatest(0, least(cap - least, {budget} - sum(least) OVER ({group.strip()}) "
        f"- sum(cap - least) OVER ({order}) + cap - least))::BIGINT AS b FROM ({parts})"
    )


def _affordable(parts: str, budget: str) -> str:
    """SQL of parts of which the budget is enough."""
    text = "'argument ''budget'' must allow for at least ' || sum(least) OVER () || ' cells: it allows for ' || ({0})"
    return (
        f"SELECT * REPLACE (CASE WHEN sum(least) OVER () > {budget} THEN error({text.format(budget)}) ELSE least END "
        f"AS least) FROM ({parts})"
    )


def plan_cube_allocate(
    session: Session, sizes: str | None, budget: int | None, min_space: int | None, strict: bool | None,
    id: str | None, n: str | None,
) -> str:  # fmt: skip
    """``sdc_cube_allocate``: a list of sizes, or a table of them."""
    cells, least = whole(budget, "budget", least=0), whole(min_space, "min_space", least=0)
    cap = "CASE WHEN n > 1 THEN n - 1 ELSE n END" if truth(strict, "strict") else "n"
    given = json.loads(sizes or "null")
    if isinstance(given, list):
        rows = ", ".join(
            f"({place}, {_size(size)})" for place, size in enumerate(needed(given, "sizes", "hold numbers of cells"), 1)
        )
        ranges = f"SELECT * FROM (VALUES {rows}) t(range_id, n)"
    else:
        relation = source(session.cursor(), given, "sizes")
        size = relation.number(n, "n")
        wrong_size = problem("sizes", "has a size that is no whole number of cells")
        alone = f"CASE WHEN {size} >= 0 AND {size} = round({size}) AND {size} < 1e15 THEN {size} ELSE {wrong_size} END"
        ranges = f"SELECT {relation.column(id, 'id')} AS range_id, {alone}::BIGINT AS n FROM {relation.sql}"
    parts = f"SELECT *, least({least}, {cap})::BIGINT AS least, ({cap})::BIGINT AS cap FROM ({ranges})"
    found = _allocated(_affordable(parts, str(cells)), "range_id", str(cells))
    return f"SELECT range_id, n::BIGINT AS n, b FROM ({found}) ORDER BY range_id"


def _size(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**15:
        raise wrong("sizes", "hold whole numbers of cells")
    return value


# --- which cells are kept --------------------------------------------------------------------------------------------


def _edges(block: Sequence[int | None] | None, dimensions: int) -> list[int] | None:
    """How long blocks are along each dimension; None: a range is one block."""
    if not block:
        return None
    if len(block) != dimensions or any(edge is None or edge < 1 for edge in block):
        raise wrong("block", "hold a whole number of at least 1 for each dimension")
    return [int(edge) for edge in block if edge is not None]


def _block(edges: Sequence[int] | None) -> str:
    """SQL of the number of a cell's block in its range, from 1."""
    found = "0::BIGINT"
    for i, edge in enumerate(edges or ()):
        found = f"({found}) * ((b.hi{i} - b.lo{i}) // {edge} + 1) + (c.p{i} - b.lo{i}) // {edge}"
    return f"({found}) + 1"


def _published(method: str, individual: float, delta: float, overall: float) -> tuple[str, str]:
    """SQL of whether a cell is kept, and of what is told of a kept one.

    A block has ``n`` cells with the sum ``s``, keeps ``b``, of which the smallest add up to ``low``, the largest to
    ``high``; a cell has the rank ``r``, and the kept ones that are larger add up to ``above``.
    """
    largest = "r > n - b"
    if method == "suppress":
        last, first = "(high / b - s / n)", "(s / n - low / b)"
        return (
            f"b >= n OR (b > 0 AND CASE WHEN {last} >= {first} * (1 - {_LEAST_DIFFERENCE}) "
            f"THEN {largest} ELSE r <= b END)",
            "value",
        )
    mean = f"(s / n * {1 + delta!r} * b)"  # the sum with which the averages differ by delta
    if method == "inflate":
        wanted = f"ceil(100 * ({mean} / high - 1) - 1e-9)"
        allowed = f"floor(100 * (s * {1 + overall!r} - high) / high + 1e-9)"
        step = f"greatest(0, least({wanted}, {allowed}, {math.floor(100 * individual + 1e-9)}))"
        return largest, f"CASE WHEN n > 1 THEN value * (1 + {step} / 100) ELSE value END"
    room = f"((s - high) * {1 + overall!r})"
    before = f"least({room}, {individual!r} * above)"
    added = f"greatest(0, least({individual!r} * value, {room} - {before}))"
    enough = f"high + {before} >= {mean} * (1 - {_LEAST_DIFFERENCE})"
    return largest, f"value + CASE WHEN n > 1 AND NOT {enough} THEN {added} ELSE 0 END"


def plan_cube_view(
    session: Session, text: str | None, dimensions: list[str] | None, measure: str | None, ranges: str | None,
    budget: float | None, block: list[int] | None, method: str | None, noise_global: float | None,
    noise_individual: float | None, delta: float | None, min_space: int | None, strict: bool | None,
) -> str:  # fmt: skip
    """``sdc_cube_view``: cells in blocks, what each block keeps, and its sorted values."""
    cursor = session.cursor()
    cube = Cube.read(cursor, text, "source", dimensions, measure, taken=("value", "kept", "published"))
    boxes, edges = cube.boxes(cursor, ranges, "ranges"), _edges(block, len(cube.names))
    ratio = share(budget, "budget", zero=False)
    chosen = choice(method, "method", _INDIVIDUAL)
    overall, target = number(noise_global, "noise_global", least=0), number(delta, "delta", least=0)
    most = _INDIVIDUAL[chosen] if noise_individual is None else number(noise_individual, "noise_individual", least=0)
    cap = "n - 1" if truth(strict, "strict") else "n"
    least = f"greatest(1, floor(n * {ratio!r} / 2 + 1e-9))"
    if min_space is not None:
        least = str(whole(min_space, "min_space", least=0))
    cells = f"(SELECT floor(sum(n) * {ratio!r} + 1e-9)::BIGINT FROM _sizes)"
    of_range = "SELECT s.*, r.b AS budget FROM _sizes s JOIN _of_ranges r USING (range_id)"
    blocks = _allocated(of_range, "block_id", "budget", "range_id")
    places = ", ".join(f"p{i}" for i in range(len(cube.names)))
    kept, told = _published(chosen, most, target, overall)
    shown, joins, order = cube.values("m")
    return f"""
        WITH {", ".join(cube.axes())},
        _box AS MATERIALIZED ({boxes}),
        _cell AS MATERIALIZED ({cube.placed(cube.cells())}),
        _member AS MATERIALIZED (
            SELECT b.range_id, {_block(edges)} AS block_id, c.* FROM _cell c JOIN _box b ON {cube.inside()}
        ),
        _blocks AS MATERIALIZED (SELECT range_id, block_id, count(*) AS n FROM _member GROUP BY ALL),
        _sizes AS MATERIALIZED (SELECT *, {cap} AS cap, 0 AS least FROM _blocks WHERE n > 1),
        _ranges AS (
            SELECT range_id, n, cap, least({least}, cap)::BIGINT AS least
            FROM (SELECT range_id, sum(n)::BIGINT AS n, sum(cap)::BIGINT AS cap FROM _sizes GROUP BY range_id)
        ),
        _of_ranges AS MATERIALIZED ({_allocated(_affordable("FROM _ranges", cells), "range_id", cells)}),
        _of_blocks AS MATERIALIZED (
            SELECT range_id, block_id, n, b FROM ({blocks}) UNION ALL SELECT *, n AS b FROM _blocks WHERE n = 1
        ),
        _ranked AS MATERIALIZED (
            SELECT m.*, o.n, o.b, row_number() OVER (PARTITION BY m.range_id, m.block_id ORDER BY value, {places}) AS r
            FROM _member m JOIN _of_blocks o USING (range_id, block_id)
        ),
        _sums AS (
            SELECT range_id, block_id, {total("value")} AS s, {total("value", "r <= b")} AS low,
                {total("value", "r > n - b")} AS high
            FROM _ranked GROUP BY range_id, block_id
        ),
        _judged AS (
            SELECT *, {
        _ABOVE if chosen == "greedy" else "0"
    } AS above FROM _ranked JOIN _sums USING (range_id, block_id)
        ),
        _chosen AS (SELECT *, {kept} AS kept FROM _judged)
        SELECT m.range_id, m.block_id, {shown}, m.value, m.kept, CASE WHEN m.kept THEN {told} END::DOUBLE AS published
        FROM _chosen m {joins} ORDER BY m.range_id, m.block_id, {order}"""


# --- what is told, and what follows from it --------------------------------------------------------------------------


def plan_cube_errors(
    session: Session, original: str | None, protected: str | None, dimensions: list[str] | None, measure: str | None,
    ranges: str | None, value: str | None,
) -> str:  # fmt: skip
    """``sdc_cube_errors``: sums and averages of each range, of both cubes."""
    cursor = session.cursor()
    taken = ("n", "n_kept", "sum", "sum_view", "accuracy_error", "inference_error")
    cube = Cube.read(cursor, original, "original", dimensions, measure, taken=taken)
    view = cube.beside(cursor, protected, "protected", value, "value")
    own = " AND c.own = b.range_id" if view.has_ranges else ""
    told = view.placed(view.cells(negative=True, by_range=view.has_ranges), by_range=view.has_ranges)
    totals = f"SELECT b.range_id, count(*) AS n, {total('c.value')} AS s FROM"
    return f"""
        WITH {", ".join(cube.axes(view))},
        _box AS MATERIALIZED ({cube.boxes(cursor, ranges, "ranges")}),
        _all AS ({totals} ({cube.placed(cube.cells())}) c JOIN _box b ON {cube.inside()} GROUP BY b.range_id),
        _told AS ({totals} ({told}) c JOIN _box b ON {cube.inside()}{own} GROUP BY b.range_id)
        SELECT range_id, coalesce(a.n, 0) AS n, coalesce(t.n, 0) AS n_kept, coalesce(a.s, 0) AS sum,
            coalesce(t.s, 0) AS sum_view, abs(a.s - coalesce(t.s, 0)) / a.s AS accuracy_error,
            abs(a.s / a.n - t.s / t.n) / (a.s / a.n) AS inference_error
        FROM _box LEFT JOIN _all a USING (range_id) LEFT JOIN _told t USING (range_id) ORDER BY range_id"""


def _longer_lines(dimensions: int) -> str:
    """SQL of the lines of the ranges ``_alike``, longer by one place at one end: the ranges that give a cell away."""
    parts = []
    for along in range(dimensions):
        across = [i for i in range(dimensions) if i != along]
        fixed = "".join(f", p{i} AS lo{i}, p{i} AS hi{i}" for i in across)
        lines = f"SELECT DISTINCT range_id{''.join(f', p{i}' for i in across)} FROM _alike_places"
        for low, high, on in (
            ("lo - 1", "hi", "b.lo > 0"),
            ("lo", "hi + 1", f"b.hi < (SELECT max(p) FROM axis{along})"),
        ):
            on = on.replace("b.lo", f"b.lo{along}").replace("b.hi", f"b.hi{along}")
            ends = (
                f"b.{low.replace('lo', f'lo{along}')} AS lo{along}, b.{high.replace('hi', f'hi{along}')} AS hi{along}"
            )
            parts.append(f"SELECT l.range_id, {ends}{fixed} FROM ({lines}) l JOIN _alike b USING (range_id) WHERE {on}")
    return f"SELECT *, NULL::DOUBLE AS told FROM ({' UNION ALL BY NAME '.join(parts)})"


def _places(boxes: str, dimensions: int, argument: str) -> str:
    """SQL of all places of ranges, empty ones too: ``number``, ``range_id``, ``told``, ``p0``, .. ."""
    size = " * ".join(f"(hi{i} - lo{i} + 1)::DOUBLE" for i in range(dimensions))
    many = problem(argument, f"has ranges of more than {_LARGEST_BOXES:,} cells together")
    checked = (
        f"SELECT * REPLACE (CASE WHEN sum({size}) OVER () > {_LARGEST_BOXES} THEN {many} ELSE number END AS number) "
        f"FROM {boxes}"
    )
    joins = " ".join(f"JOIN axis{i} a{i} ON a{i}.p BETWEEN b.lo{i} AND b.hi{i}" for i in range(dimensions))
    places = ", ".join(f"a{i}.p AS p{i}" for i in range(dimensions))
    return f"SELECT b.number, b.range_id, b.told, {places} FROM ({checked}) b {joins}"


def plan_average_attack(
    session: Session, original: str | None, dimensions: list[str] | None, measure: str | None, alike: str | None,
    asked: str | None, protected: str | None, value: str | None,
) -> str:  # fmt: skip
    """``sdc_average_attack``: averages of ranges that are alike, and what they leave of the sums of others."""
    cursor = session.cursor()
    taken = ("known_by", "implied", "value", "relative_error", "published", "published_error")
    cube = Cube.read(cursor, original, "original", dimensions, measure, taken=taken)
    boxes = cube.boxes(cursor, needed(alike, "alike", "name a table of ranges whose cells are alike"), "alike")
    told, other = cube.cells(), None
    if protected is not None:
        other = cube.beside(cursor, protected, "protected", measure if value is None else value, "value")
        told = other.cells(negative=True)
    elif value is not None:
        raise SDCError("argument 'value' is the column of a table that is given as 'protected'")
    count = len(cube.names)
    questions = _longer_lines(count) if asked is None else cube.boxes(cursor, asked, "asked")
    place = ", ".join(f"p{i}" for i in range(count))
    shown, joins, order = cube.values("f")
    published = "t.value" if other else "NULL::DOUBLE"
    return f"""
        WITH {", ".join(cube.axes(other))},
        _true AS MATERIALIZED ({cube.placed(cube.cells())}),
        _told AS MATERIALIZED ({cube.placed(told)}),
        _alike AS MATERIALIZED (SELECT *, row_number() OVER (ORDER BY range_id) AS number FROM ({boxes})),
        _alike_places AS MATERIALIZED ({_places("_alike", count, "alike")}),
        _averages AS (
            SELECT number, coalesce(any_value(told), {total("value")}) / count(*) AS average
            FROM _alike_places JOIN _told USING ({place}) GROUP BY number
        ),
        _estimate AS MATERIALIZED (
            SELECT {place}, min(range_id) AS range_id, {total("average")} / count(*) AS average
            FROM _alike_places JOIN _averages USING (number) GROUP BY {place}
        ),
        _asked AS MATERIALIZED (SELECT *, row_number() OVER () AS number FROM ({questions})),
        _asked_places AS MATERIALIZED ({_places("_asked", count, "asked" if asked is not None else "alike")}),
        _split AS (
            SELECT a.number, count(*) FILTER (e.average IS NULL) AS unknown,
                coalesce(any_value(a.told), {total("t.value", "t.value IS NOT NULL")}, 0) AS s,
                {total("e.average", "e.average IS NOT NULL AND t.value IS NOT NULL")} AS known
            FROM _asked_places a LEFT JOIN _estimate e USING ({place}) LEFT JOIN _told t USING ({place})
            GROUP BY a.number
        ),
        _left AS (
            SELECT range_id, {place}, l.s - coalesce(l.known, 0) AS implied
            FROM _split l JOIN _asked_places a USING (number) ANTI JOIN _estimate e USING ({place})
            WHERE l.unknown = 1
        ),
        _found AS (
            SELECT range_id, {place}, 'average' AS known_by, average AS implied FROM _estimate UNION ALL BY NAME
            SELECT range_id, {place}, 'difference' AS known_by, implied FROM _left
        )
        SELECT f.range_id, {shown}, f.known_by, f.implied, c.value,
            abs(f.implied - c.value) / c.value AS relative_error, {published} AS published,
            abs({published} - c.value) / c.value AS published_error
        FROM _found f {joins} LEFT JOIN _true c USING ({place}) LEFT JOIN _told t USING ({place})
        ORDER BY f.known_by, f.range_id, {order}, f.implied"""


PLANNERS = planners(plan_cube_allocate, plan_cube_view, plan_cube_errors, plan_average_attack)
