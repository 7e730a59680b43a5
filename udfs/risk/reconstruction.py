"""What published statistics and tables give away of the records: planners behind ``sql/reconstruction_tables.sql``."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner, planners
from sdcduck.functions.jobs import checkpoint, reads
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.methods.risk.reconstruction import (
    Reported,
    TooMany,
    all_lists,
    moment_solutions,
    number_of_lists,
    number_of_tables,
    published,
    reported,
    unique_lists,
    verdict,
)
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import choice, each_share, needed, number, share, whole, wrong
from sdcduck.udfs.compared import check_kinds, kind_of
from sdcduck.udfs.source import Source, is_number, source

_STATISTICS = ("mean_sd", "quartiles", "median_min_max")
_MOST_LISTS = 1_000_000
_MOST_STATES = 200_000
_STEPS_A_GROUP = 300_000
_EXACT = 6  # decimals by which all sums and sums of squares of up to a thousand numbers differ


def _statistics(statistics: str | None, dp: int | None, kind: int | None) -> tuple[str, int | None, int]:
    which = choice(statistics, "statistics", _STATISTICS)
    if kind not in (2, 6, 7):
        raise wrong("type", "be 2, 6 or 7", "a type of quantile after Hyndman and Fan")
    return which, None if dp is None else whole(dp, "dp", least=0, most=6), int(kind)


def _check_scale(low: int | None, high: int | None) -> None:
    if low is not None and high is not None and low > high:
        raise wrong("low", "not be above 'high'")


# --- summary statistics ----------------------------------------------------------------------------------------------


def plan_moment_solutions(
    session: Session, n: int | None, mean: float | None, sd: float | None, low: int | None, high: int | None,
    mean_dp: int | None, sd_dp: int | None, median: float | None, max_solutions: int | None,
) -> Rows:  # fmt: skip
    """``sdc_moment_solutions``: the lists that fit one report."""
    size = whole(n, "n", least=1, most=200)
    center = Reported.of(number(mean, "mean"), whole(mean_dp, "mean_dp", least=0, most=6))
    spread = None
    if size > 1:
        deviation = number(sd, "sd", least=0, why="only a single number has none")
        spread = Reported.of(deviation, whole(sd_dp, "sd_dp", least=0, most=6))
    _check_scale(low, high)
    twice = None
    if median is not None:
        if not float(2 * median).is_integer():
            raise wrong("median", "be a whole number, or lie in the middle of two")
        twice = int(2 * median)
    most = whole(max_solutions, "max_solutions", least=1, most=1_000_000)

    def make() -> pa.Table:
        found = moment_solutions(size, center, spread, low, high, twice_median=twice, check=checkpoint())
        try:
            lists = list(islice(found, most))
        except TooMany:
            raise SDCError(
                "the search was given up, too many lists could fit: give the scale (low, high), or fewer max_solutions"
            ) from None
        return pa.table(
            {
                "solution": pa.array(range(1, len(lists) + 1), pa.int64()),
                "answers": pa.array([list(map(float, one)) for one in lists], pa.list_(pa.float64())),
            }
        )

    return Rows(make, "SELECT solution, answers::BIGINT[] AS answers FROM {rows} ORDER BY solution")


def plan_unique_share(
    session: Session, k: int | None, n: int | None, statistics: str | None, dp: int | None, type: int | None
) -> Rows:
    """``sdc_unique_share``: of all lists that n people may give on a scale of k."""
    points, people = whole(k, "k", least=1, most=1000), whole(n, "n", least=1, most=1000)
    which, decimals, kind = _statistics(statistics, dp, type)
    total = number_of_lists(points, people)
    if total > _MOST_LISTS:
        raise SDCError(f"there are {total:,} such lists, and at most {_MOST_LISTS:,} can be gone through")

    def make() -> pa.Table:
        unique = unique_lists(all_lists(1, points, people), which, decimals, kind)
        return pa.table({"lists": [total], "unique_lists": [unique], "share": [unique / total]})

    return Rows(make)


_VERDICTS: Mapping[str, str] = {
    "place": "BIGINT", "n": "BIGINT", "solutions": "BIGINT", "certain": "DOUBLE[]", "insider": "DOUBLE[]",
    "verdict": "VARCHAR",
}  # fmt: skip


def plan_summary_risk(
    session: Session, text: str | None, value: str | None, by: list[str] | None, low: int | None, high: int | None,
    statistics: str | None, dp: int | None, type: int | None, max_solutions: int | None,
) -> Rows:  # fmt: skip
    """``sdc_summary_risk``: by group, what its statistics would give away."""
    relation = source(session.cursor(), text, "source")
    x = relation.column(value, "value")
    if not is_number(relation.type_of(str(value))):
        raise wrong("value", "name a column of whole numbers")
    which, decimals, kind = _statistics(statistics, dp, type)
    most = whole(max_solutions, "max_solutions", least=2, most=100_000)
    if which != "mean_sd" and (low is None or high is None):
        raise SDCError("arguments 'low' and 'high' must give the scale: only mean_sd can do without")
    _check_scale(low, high)
    groups = list(map(identifier, relation.named(by, "by", ("n", "solutions", "certain", "insider", "verdict"))))
    checked = (
        f"CASE WHEN {x}::DOUBLE = round({x}::DOUBLE) AND abs({x}::DOUBLE) < 1e9 THEN {x}::BIGINT "
        "ELSE error('argument ''value'' must name a column of whole numbers') END"
    )
    listed = "".join(f"{name}, " for name in groups)
    order = ", ".join(f"{name} ASC NULLS FIRST" for name in groups) or "1"
    grouped = f"SELECT {listed}count(*) AS _n FROM {relation.sql} WHERE {x} IS NOT NULL GROUP BY ALL"
    numbered = f"SELECT {listed}row_number() OVER (ORDER BY {order}) - 1 AS _place FROM ({grouped}) WHERE _n > 0"

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            rows = cursor.execute(
                f"SELECT list(v ORDER BY v) "
                f"FROM (SELECT {listed}{checked} AS v FROM {relation.sql} WHERE {x} IS NOT NULL) "
                f"GROUP BY {', '.join(groups) if groups else '()'} ORDER BY {order}"
            ).fetchall()
        lists = [tuple(row[0]) for row in rows if row[0]]
        judged = [_judged(one, which, decimals, kind, low, high, most) for one in lists]
        return pa.table(
            {
                "place": pa.array(range(len(lists)), pa.int64()),
                "n": pa.array([len(one) for one in lists], pa.int64()),
                "solutions": pa.array([row[0] for row in judged], pa.int64()),
                "certain": pa.array([row[1] for row in judged], pa.list_(pa.float64())),
                "insider": pa.array([row[2] for row in judged], pa.list_(pa.float64())),
                "verdict": pa.array([row[3] for row in judged], pa.string()),
            }
        )

    return Rows(
        make,
        f"SELECT {listed}n, solutions, certain::BIGINT[] AS certain, insider::BIGINT[] AS insider, verdict "
        f"FROM ({numbered}) JOIN {{rows}} ON _place = place ORDER BY place",
    )


_Judgement = tuple[int | None, list[float] | None, list[float] | None, str]


def _judged(
    true: tuple[int, ...], statistics: str, dp: int | None, kind: int, low: int | None, high: int | None, most: int
) -> _Judgement:
    """Solutions, certain values, values of insiders, and the verdict on one list of answers."""
    if (low is not None and true[0] < low) or (high is not None and true[-1] > high):
        raise SDCError("a value lies outside the scale of arguments 'low' and 'high'")
    if statistics == "mean_sd":
        try:
            mean, spread = reported(true, _EXACT if dp is None else dp)
            found = moment_solutions(len(true), mean, spread, low, high, steps=_STEPS_A_GROUP, check=checkpoint())
            solutions = list(islice(found, most))
        except TooMany:
            return None, None, None, "not enumerated"
    else:
        assert low is not None
        assert high is not None
        if number_of_lists(high - low + 1, len(true)) > _MOST_LISTS:
            return None, None, None, "not enumerated"
        lists = all_lists(low, high, len(true))
        shown = published(lists, statistics, dp, kind)
        mine = published(np.array([true], dtype=np.int64), statistics, dp, kind)[0]
        solutions = [tuple(one) for one in lists[(shown == mine).all(axis=1)][:most].tolist()]
    if len(solutions) >= most:
        return most, None, None, "open"
    given = verdict(true, solutions)
    told = (
        "disclosed" if given.solutions == 1 else "insider" if given.insider else "certain" if given.certain else "open"
    )
    return given.solutions, list(map(float, given.certain)), list(map(float, given.insider)), told


# --- the modal guess -------------------------------------------------------------------------------------------------


def _count_column(relation: Source, n: str | None, *, negative: bool) -> str:
    """SQL for a column of counts, as DOUBLE: a noisy one may be negative, none may be NULL, NaN or infinite."""
    number = relation.number(n, "n")
    known = f"isfinite({number}::DOUBLE)" if negative else f"({number} >= 0 AND isfinite({number}::DOUBLE))"
    problem = f"a count of {relation.described} is NULL or infinite" + ("" if negative else ", or negative")
    return f"CASE WHEN {known} THEN {number}::DOUBLE ELSE error({literal(problem)}) END"


def _as_texts(columns: Sequence[tuple[Source, str]]) -> list[str]:
    """SQL for the values of several columns as texts that are equal where the values are: 1.0 is 1."""
    types = [relation.type_of(name) for relation, name in columns]
    through = "::DOUBLE" if len(set(types)) > 1 and all(map(is_number, types)) else ""
    return [f"{relation.column(name, 'category')}{through}::VARCHAR" for relation, name in columns]


def _modal(
    session: Session, released: str | None, truth: str | None, unit: str | None, category: str | None, n: str | None,
    min_modal: int | None, gate: str | None,
) -> str:  # fmt: skip
    """A query for the guess in each unit: ``_unit`` and the columns of ``sdc_modal_guess``."""
    cursor = session.cursor()
    least = whole(min_modal, "min_modal", least=0)
    by_truth = choice(gate, "gate", ("truth", "released")) == "truth"
    parts = []
    tables = {name: source(cursor, text, name) for name, text in (("released", released), ("truth", truth))}
    check_kinds(tables, [unit], "unit")
    check_kinds(tables, [category], "category")
    words = _as_texts([(relation, str(category)) for relation in tables.values()])
    for (argument, relation), what in zip(tables.items(), words, strict=True):
        where = relation.column(unit, "unit")
        counts = _count_column(relation, n, negative=argument == "released")
        checked = f"CASE WHEN {where} IS NULL THEN error('a unit is NULL in ''{argument}''') ELSE {where} END"
        parts.append(
            f"SELECT {checked} AS _unit, {what} AS _category, sum({counts})::DOUBLE AS _n FROM {relation.sql} "
            "GROUP BY ALL"
        )
    compared = "coalesce(modal_true, 0)" if by_truth else "modal_released"
    return f"""
        WITH _released AS MATERIALIZED ({parts[0]}), _truth AS MATERIALIZED ({parts[1]}),
        _modal AS (
            SELECT _unit, arg_min(_category, _rank) AS _category, max(_n) AS _n, count(*) FILTER (_n = _top) > 1 AS _tie
            FROM (
                SELECT *, max(_n) OVER (PARTITION BY _unit) AS _top,
                    row_number() OVER (PARTITION BY _unit ORDER BY _n DESC, _category NULLS LAST) AS _rank
                FROM _released
            ) GROUP BY _unit HAVING max(_n) > 0
        ),
        _units AS (SELECT _unit, sum(_n) AS _n FROM _truth GROUP BY _unit HAVING sum(_n) > 0),
        _guessed AS (
            SELECT u._unit, m._unit IS NOT NULL AS _known, m._category AS modal_category,
                coalesce(m._tie, false) AS is_tie, m._n AS modal_released,
                CASE WHEN m._unit IS NOT NULL THEN coalesce(t._n, 0) END AS modal_true,
                u._n AS unit_true
            FROM _units u LEFT JOIN _modal m ON u._unit = m._unit
            LEFT JOIN _truth t ON t._unit = m._unit AND t._category IS NOT DISTINCT FROM m._category
        ),
        _scored AS (
            SELECT *, _known AND {compared} >= {least} AS predicted,
                CASE WHEN _known AND {compared} >= {least} THEN modal_true / unit_true ELSE 0 END AS precision
            FROM _guessed
        )"""


def plan_modal_guess(
    session: Session, released: str | None, truth: str | None, unit: str | None, category: str | None, n: str | None,
    min_modal: int | None, gate: str | None,
) -> str:  # fmt: skip
    """``sdc_modal_guess``: one row a unit."""
    scored = _modal(session, released, truth, unit, category, n, min_modal, gate)
    known = source(session.cursor(), truth, "truth")
    [shown] = map(identifier, known.named([unit], "unit", _GUESSED))
    return f"""{scored}
        SELECT _unit AS {shown}, modal_category, is_tie, modal_released, modal_true, unit_true, predicted, precision
        FROM _scored ORDER BY _unit"""


def plan_modal_guess_curve(
    session: Session, released: str | None, truth: str | None, unit: str | None, category: str | None, n: str | None,
    min_modal: int | None, gate: str | None, grid: list[float] | None,
) -> str:  # fmt: skip
    """``sdc_modal_guess_curve``: for how many people the guess is at least so good."""
    scored = _modal(session, released, truth, unit, category, n, min_modal, gate)
    shares = sorted(set(each_share(needed(grid, "grid", "hold numbers from 0 to 1"), "grid")))
    points = ", ".join(f"({point!r}::DOUBLE)" for point in shares)
    return f"""{scored}
        SELECT _p AS precision_at_least,
            coalesce(sum(unit_true) FILTER (predicted AND precision >= _p - 1e-12), 0) AS persons,
            coalesce(persons / nullif(sum(unit_true), 0), 0) AS recall
        FROM (VALUES {points}) points(_p) LEFT JOIN _scored ON true GROUP BY _p ORDER BY _p"""


def plan_modal_guess_summary(
    session: Session, released: str | None, truth: str | None, unit: str | None, category: str | None, n: str | None,
    min_modal: int | None, gate: str | None,
) -> str:  # fmt: skip
    """``sdc_modal_guess_summary``: one row."""
    scored = _modal(session, released, truth, unit, category, n, min_modal, gate)
    return f"""{scored}
        SELECT coalesce(sum(unit_true), 0) AS persons, coalesce(sum(unit_true) FILTER (predicted), 0) AS guessed,
            coalesce(sum(modal_true) FILTER (predicted), 0) AS "right", "right" / nullif(guessed, 0) AS precision,
            coalesce(guessed / nullif(persons, 0), 0) AS recall, coalesce("right" / nullif(persons, 0), 0) AS accuracy,
            (SELECT count(DISTINCT _unit) FROM _released WHERE _unit NOT IN (SELECT _unit FROM _units))
                AS unmatched_units
        FROM _scored"""


def plan_attack_score(
    session: Session, attack: str | None, released: str | None, unit: str | None, category: str | None, n: str | None,
    linked: str | None, predicted: str | None, actual: str | None, size_bins: list[int] | None,
) -> str:  # fmt: skip
    """``sdc_attack_score``: an attack beside the guess of the most frequent category, by size of the unit."""
    cursor = session.cursor()
    targets, table = source(cursor, attack, "attack"), source(cursor, released, "released")
    wanted = "hold the smallest size of each class of units, such as [1, 10, 50]"
    bins = sorted({whole(size, "size_bins", least=1) for size in needed(size_bins, "size_bins", wanted)})
    check_kinds({"attack": targets, "released": table}, [unit], "unit")
    where, place = targets.column(unit, "unit"), table.column(unit, "unit")
    said = targets.column(linked, "linked")
    if targets.type_of(str(linked)) not in ("BOOLEAN", '"NULL"'):
        raise wrong("linked", f"name a column of truth values: '{linked}' is none")
    table.column(category, "category")
    for name, argument in ((predicted, "predicted"), (actual, "actual")):
        targets.column(name, argument)
        sql_type = targets.type_of(str(name))
        if kind_of(sql_type) != kind_of(table.type_of(str(category))) and sql_type != '"NULL"':
            raise SDCError(f"arguments '{argument}' and 'category' name columns of different types: cast one of them")
    told, so, what = _as_texts([(targets, str(predicted)), (targets, str(actual)), (table, str(category))])
    number = _count_column(table, n, negative=True)
    binned = "list_max(list_filter([" + ", ".join(map(str, bins)) + "]::BIGINT[], lambda b: b <= _size))"
    return f"""
        WITH _modal AS (
            SELECT _unit, arg_min(_category, _rank) AS _guess FROM (
                SELECT *, row_number() OVER (PARTITION BY _unit ORDER BY _n DESC, _category NULLS LAST) AS _rank
                FROM (
                    SELECT {place} AS _unit, {what} AS _category, sum({number}) AS _n
                    FROM {table.sql} GROUP BY ALL
                ) WHERE _n > 0
            ) GROUP BY _unit
        ),
        _targets AS MATERIALIZED (
            SELECT {binned} AS _bin, _linked, _linked AND _predicted IS NOT DISTINCT FROM _actual AS _correct,
                m._unit IS NOT NULL AS _guessed, m._unit IS NOT NULL AND m._guess IS NOT DISTINCT FROM _actual AS _modal
            FROM (
                SELECT {where} AS _unit, coalesce({said}::BOOLEAN, false) AS _linked,
                    {told} AS _predicted, {so} AS _actual,
                    count(*) OVER (PARTITION BY {where}) AS _size
                FROM {targets.sql}
            ) t LEFT JOIN _modal m ON t._unit = m._unit
        )
        SELECT _bin AS size_from, count(*) AS targets, count(*) FILTER (_linked) AS linked,
            count(*) FILTER (_correct) AS correct, correct / nullif(linked, 0) AS precision,
            linked / nullif(targets, 0) AS recall_linked, correct / nullif(targets, 0) AS recall_confirmed,
            count(*) FILTER (_modal) / nullif(count(*) FILTER (_guessed), 0) AS baseline_precision,
            precision - baseline_precision AS lift,
            (precision - baseline_precision) / nullif(1 - baseline_precision, 0) AS relative_gain,
            count(*) FILTER (_correct AND NOT _modal) / nullif(count(*) FILTER (_linked AND NOT _modal), 0)
                AS precision_nonmodal
        FROM _targets GROUP BY GROUPING SETS ((_bin), ()) ORDER BY GROUPING(_bin) DESC, _bin"""


# --- tables of small areas -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tables:
    """Two published tables: counts of units by group, and of a wider area by group and detail.

    Attributes:
        fine, coarse: SQL: ``_g0 ..`` what both have, ``_unit`` or ``_detail``, and ``_n``.
        shown: the columns of both, quoted, as the result calls them.
        unit, detail: quoted.
        trusted: whether the counts were checked before, in the work that the statement waits for.
    """

    fine: str
    coarse: str
    shown: tuple[str, ...]
    unit: str
    detail: str
    trusted: bool

    def wrong(self, message: str) -> str:
        """SQL for what must not be: an error, or NULL where it was ruled out before."""
        return "NULL" if self.trusted else f"error({literal(message)})"

    @property
    def keys(self) -> list[str]:
        """What both have, by the names inside."""
        return [f"_g{place}" for place in range(len(self.shown))]

    @property
    def named(self) -> str:
        """The same with the names of the result, followed by a comma."""
        return "".join(f"{key} AS {name}, " for key, name in zip(self.keys, self.shown, strict=True))

    def alike(self, one: str, other: str) -> str:
        """That two relations are about the same group."""
        return " AND ".join(f"{one}.{key} IS NOT DISTINCT FROM {other}.{key}" for key in self.keys) or "true"

    @property
    def totals(self) -> str:
        """For a WITH: the tables ``_f`` and ``_c``, and ``_t``, which checks that their totals agree in every group."""
        keys = "".join(f"{key}, " for key in self.keys)
        by = ", ".join(self.keys) or "()"
        wrong = self.wrong("the tables disagree: a group has another total in 'fine' than in 'coarse'")
        return f"""_f AS MATERIALIZED ({self.fine}), _c AS MATERIALIZED ({self.coarse}),
            _t AS MATERIALIZED (
                SELECT {keys}CASE WHEN coalesce(sum(_one), 0) = coalesce(sum(_other), 0) THEN sum(_other)
                    ELSE {wrong} END AS _total
                FROM (SELECT {keys}_n AS _one, 0 AS _other FROM _f UNION ALL SELECT {keys}0, _n FROM _c)
                GROUP BY {by}
            )"""


def _tables(
    session: Session, fine: str | None, coarse: str | None, unit: str | None, detail: str | None, by: list[str] | None,
    n: str | None, taken: Sequence[str], *,
    trusted: bool = False,
) -> _Tables:  # fmt: skip
    cursor = session.cursor()
    small, wide = source(cursor, fine, "fine"), source(cursor, coarse, "coarse")
    groups = list(map(identifier, small.named(by, "by", taken)))
    check_kinds({"fine": small, "coarse": wide}, by or [], "by")
    other = list(map(identifier, wide.named(by, "by", taken)))
    where = list(map(identifier, small.named([unit] if unit else None, "unit", taken)))
    what = list(map(identifier, wide.named([detail] if detail else None, "detail", taken)))
    if not where or not what:
        raise SDCError("arguments 'unit' and 'detail' must name a column of 'fine' and one of 'coarse'")
    wrong = f"error({literal('a count is NULL, negative or no whole number')})"
    parts = []
    for relation, columns, last, name in ((small, groups, where[0], "_unit"), (wide, other, what[0], "_detail")):
        if last in columns:
            raise SDCError("arguments 'unit', 'detail' and 'by' must name different columns")
        number = relation.number(n, "n")
        checked = (
            f"CASE WHEN {number} >= 0 AND {number} = round({number}) AND {number} < 1e9 THEN {number}::BIGINT "
            f"ELSE {'NULL' if trusted else wrong} END"
        )
        keys = "".join(f"{column} AS _g{place}, " for place, column in enumerate(columns))
        parts.append(
            f"SELECT {keys}{last} AS {name}, sum({checked})::BIGINT AS _n FROM {relation.sql} "
            f"GROUP BY ALL HAVING sum({checked}) > 0"
        )
    return _Tables(parts[0], parts[1], tuple(groups), where[0], what[0], trusted)


def plan_recon_bounds(
    session: Session, fine: str | None, coarse: str | None, unit: str | None, detail: str | None, by: list[str] | None,
    n: str | None,
) -> str:  # fmt: skip
    """``sdc_recon_bounds``: between what each cell of units by detail must lie."""
    tables = _tables(session, fine, coarse, unit, detail, by, n, ("low", "high", "determined", "posterior"))
    named = "".join(f"f.{key} AS {name}, " for key, name in zip(tables.keys, tables.shown, strict=True))
    return f"""
        WITH {tables.totals}
        SELECT {named}f._unit AS {tables.unit}, c._detail AS {tables.detail},
            greatest(0, f._n + c._n - t._total)::BIGINT AS low, least(f._n, c._n) AS high,
            f._n + c._n - t._total >= least(f._n, c._n) AS determined, c._n / t._total AS posterior
        FROM _f f JOIN _c c ON {tables.alike("f", "c")} JOIN _t t ON {tables.alike("f", "t")} ORDER BY ALL"""


def plan_recon_count(
    session: Session, fine: str | None, coarse: str | None, unit: str | None, detail: str | None, by: list[str] | None,
    n: str | None,
) -> Rows:  # fmt: skip
    """``sdc_recon_count``: how many files fit the two tables, group by group."""
    columns = ("persons", "log10_assignments", "distinct_tables", "determined_persons")
    tables = _tables(session, fine, coarse, unit, detail, by, n, columns)
    checked = tables.totals
    tables = _tables(session, fine, coarse, unit, detail, by, n, columns, trusted=True)
    keys = "".join(f"{key}, " for key in tables.keys)
    order = ", ".join(f"c.{key} ASC NULLS FIRST" for key in tables.keys) or "1"
    margins = f"""
        _rows AS (SELECT {keys}list(_n ORDER BY _n) AS _units FROM _f GROUP BY {", ".join(tables.keys) or "()"}),
        _columns AS (
            SELECT {keys}list(_n ORDER BY _n) AS _details, sum(lgamma(_n + 1)) AS _logs
            FROM _c GROUP BY {", ".join(tables.keys) or "()"}
        )"""
    numbered = f"""
        SELECT {", ".join(f"c.{key}" for key in tables.keys) + ", " if tables.keys else ""}r._units, c._details,
            (lgamma(t._total + 1) - c._logs) / ln(10) AS _log10, t._total,
            row_number() OVER (ORDER BY {order}) - 1 AS _place
        FROM _columns c JOIN _rows r ON {tables.alike("c", "r")} JOIN _t t ON {tables.alike("c", "t")}
        WHERE t._total > 0"""

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            rows = cursor.execute(
                f"WITH {checked}, {margins} SELECT _units, _details FROM ({numbered}) ORDER BY _place"
            ).fetchall()
        check = checkpoint()
        counts: list[float | None] = []
        for units, details in rows:
            check()
            found = number_of_tables(list(units), list(details), _MOST_STATES)
            counts.append(None if found is None else float(found))
        return pa.table({"place": pa.array(range(len(counts)), pa.int64()), "tables": pa.array(counts, pa.float64())})

    return Rows(
        make,
        f"""WITH {tables.totals}, {margins}, _numbered AS ({numbered}),
        _sure AS (
            SELECT {"".join(f"f.{key}, " for key in tables.keys)}
                coalesce(sum(f._n) FILTER (_all), 0)::BIGINT AS _known
            FROM (
                SELECT f.*, bool_and(f._n + c._n - t._total >= least(f._n, c._n)) AS _all
                FROM _f f JOIN _c c ON {tables.alike("f", "c")} JOIN _t t ON {tables.alike("f", "t")} GROUP BY ALL
            ) f GROUP BY {", ".join(f"f.{key}" for key in tables.keys) or "()"}
        )
        SELECT {"".join(f"c.{key} AS {name}, " for key, name in zip(tables.keys, tables.shown, strict=True))}
            c._total::BIGINT AS persons, _log10 AS log10_assignments, tables AS distinct_tables,
            s._known AS determined_persons
        FROM _numbered c JOIN {{rows}} ON _place = place JOIN _sure s ON {tables.alike("c", "s")} ORDER BY _place""",
    )


def plan_reconstruct(
    session: Session, fine: str | None, coarse: str | None, unit: str | None, detail: str | None, by: list[str] | None,
    n: str | None, draws: int | None, seed: int | None,
) -> str:  # fmt: skip
    """``sdc_reconstruct``: files that fit the two tables, each way to deal the details out being as likely."""
    tables = _tables(session, fine, coarse, unit, detail, by, n, ("draw", "slot"))
    times = whole(draws, "draws", least=1, most=10_000)
    given = seed
    key = literal(str(secrets.randbits(63) if given is None else given))
    keys = "".join(f"{name}, " for name in tables.keys)
    order = ", ".join(f"{name} ASC NULLS FIRST" for name in [*tables.keys, "_unit"])
    parted = f"PARTITION BY {', '.join(tables.keys)}" if tables.keys else ""
    drawn = f"PARTITION BY {', '.join(['_draw', *tables.keys])}"
    return f"""
        WITH {tables.totals},
        _slots AS MATERIALIZED (
            SELECT *, row_number() OVER (ORDER BY {order}, _i) AS _slot,
                row_number() OVER ({parted} ORDER BY _unit ASC NULLS FIRST, _i) AS _rank
            FROM (
                SELECT f.*, unnest(range(f._n)) AS _i
                FROM _f f JOIN _t t ON {tables.alike("f", "t")} WHERE t._total > 0
            )
        ),
        _persons AS (
            SELECT *, row_number() OVER ({parted} ORDER BY _detail, _i) AS _number
            FROM (SELECT *, unnest(range(_n)) AS _i FROM _c)
        ),
        _shuffled AS (
            SELECT {keys}_draw, _detail, row_number() OVER (
                {drawn} ORDER BY sha256(concat_ws('|', {key}, _draw, {keys}_number)), _number) AS _rank
            FROM _persons, range(1, {times + 1}) draws(_draw)
        )
        SELECT {"".join(f"s.{name} AS {shown}, " for name, shown in zip(tables.keys, tables.shown, strict=True))}
            s._unit AS {tables.unit}, p._detail AS {tables.detail}, p._draw AS draw, s._slot AS slot
        FROM _slots s JOIN _shuffled p ON s._rank = p._rank AND {tables.alike("s", "p")} ORDER BY draw, slot"""


def _links(session: Session, links: str | None, slot: str | None, draw: str | None, identity: str | None) -> str:
    relation = source(session.cursor(), links, "links")
    columns = [relation.column(name, argument) for name, argument in ((slot, "slot"), (draw, "draw"), (identity, "id"))]
    return f"SELECT {columns[0]} AS _slot, {columns[1]} AS _draw, {columns[2]} AS _id FROM {relation.sql}"


def plan_recon_stability(
    session: Session, links: str | None, slot: str | None, draw: str | None, id: str | None
) -> str:
    """``sdc_recon_stability``: how often the same record gets the same name."""
    [shown] = map(identifier, source(session.cursor(), links, "links").named([slot], "slot", _STABLE))
    return f"""
        WITH _links AS ({_links(session, links, slot, draw, id)}),
        _counted AS (SELECT _slot, _id, count(*) AS _n FROM _links GROUP BY ALL)
        SELECT _slot AS {shown}, coalesce(sum(_n) FILTER (_id IS NOT NULL), 0)::BIGINT AS matched,
            coalesce(max(_n) FILTER (_id IS NOT NULL), 0) AS max_same, count(_id) AS ids, count(*) AS ids_with_none
        FROM _counted GROUP BY _slot ORDER BY _slot"""


def plan_recon_agreement(
    session: Session, links: str | None, slot: str | None, draw: str | None, id: str | None, stable: float | None
) -> str:
    """``sdc_recon_agreement``: one row for all of it."""
    part = share(stable, "stable", zero=False)
    return f"""
        WITH _links AS MATERIALIZED ({_links(session, links, slot, draw, id)}),
        _size AS (SELECT count(DISTINCT _slot) AS _slots, count(DISTINCT _draw) AS _draws FROM _links),
        _pairs AS (
            SELECT count(*) FILTER (a._id = b._id) / any_value(_slots) AS _share
            FROM _links a JOIN _links b ON a._slot = b._slot AND a._draw < b._draw, _size GROUP BY a._draw, b._draw
        ),
        _same AS (
            SELECT max(_n) AS _n
            FROM (SELECT _slot, count(_id) AS _n FROM _links GROUP BY _slot, _id) GROUP BY _slot
        )
        SELECT _slots AS records, _draws AS draws,
            (SELECT count(_id) / nullif(count(*), 0) FROM _links) AS putative_rate,
            (SELECT avg(_share) FROM _pairs) AS agreement, (SELECT min(_share) FROM _pairs) AS min_agreement,
            (SELECT max(_share) FROM _pairs) AS max_agreement,
            (SELECT count(*) FROM _same WHERE _n >= {part!r}::DOUBLE * _draws) / nullif(_slots, 0) AS stable_share
        FROM _size"""


_GUESSED = ("modal_category", "is_tie", "modal_released", "modal_true", "unit_true", "predicted", "precision")
_STABLE = ("matched", "max_same", "ids", "ids_with_none")

FAMILY = Family(
    name="reconstruction",
    temporary=("reconstruction_tables.sql",),
    planners=(
        *planners(
            plan_unique_share,
            plan_modal_guess,
            plan_modal_guess_curve,
            plan_modal_guess_summary,
            plan_attack_score,
            plan_recon_bounds,
            plan_reconstruct,
            plan_recon_stability,
            plan_recon_agreement,
        ),
        planner(plan_moment_solutions, {"solution": "BIGINT", "answers": "DOUBLE[]"}),
        planner(plan_summary_risk, _VERDICTS),
        planner(plan_recon_count, {"place": "BIGINT", "tables": "DOUBLE"}),
    ),
)
