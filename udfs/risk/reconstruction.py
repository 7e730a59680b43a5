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
from sdcduck.udfs.arguments import choice, number, share, whole, wrong
from sdcduck.udfs.compared import check_kinds
from sdcduck.udfs.risk.guesses import (
    plan_attack_score,
    plan_modal_guess,
    plan_modal_guess_curve,
    plan_modal_guess_summary,
)
from sdcduck.udfs.source import is_number, source

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
    session: Session, fine: str | None, coarse: str | None, area: str | None, detail: str | None,
    dimensions: list[str] | None, freq: str | None, taken: Sequence[str], *,
    trusted: bool = False,
) -> _Tables:  # fmt: skip
    cursor = session.cursor()
    small, wide = source(cursor, fine, "fine"), source(cursor, coarse, "coarse")
    groups = list(map(identifier, small.named(dimensions, "dimensions", taken)))
    check_kinds({"fine": small, "coarse": wide}, dimensions or [], "dimensions")
    other = list(map(identifier, wide.named(dimensions, "dimensions", taken)))
    where = list(map(identifier, small.named([area] if area else None, "area", taken)))
    what = list(map(identifier, wide.named([detail] if detail else None, "detail", taken)))
    if not where or not what:
        raise SDCError("arguments 'area' and 'detail' must name a column of 'fine' and one of 'coarse'")
    wrong = f"error({literal('a count is NULL, negative or no whole number')})"
    parts = []
    for relation, columns, last, name in ((small, groups, where[0], "_unit"), (wide, other, what[0], "_detail")):
        if last in columns:
            raise SDCError("arguments 'area', 'detail' and 'dimensions' must name different columns")
        number = relation.number(freq, "freq")
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
    session: Session, fine: str | None, coarse: str | None, area: str | None, detail: str | None,
    dimensions: list[str] | None, freq: str | None,
) -> str:  # fmt: skip
    """``sdc_recon_bounds``: between what each cell of units by detail must lie."""
    tables = _tables(session, fine, coarse, area, detail, dimensions, freq, ("low", "high", "determined", "posterior"))
    named = "".join(f"f.{key} AS {name}, " for key, name in zip(tables.keys, tables.shown, strict=True))
    return f"""
        WITH {tables.totals}
        SELECT {named}f._unit AS {tables.unit}, c._detail AS {tables.detail},
            greatest(0, f._n + c._n - t._total)::BIGINT AS low, least(f._n, c._n) AS high,
            f._n + c._n - t._total >= least(f._n, c._n) AS determined, c._n / t._total AS posterior
        FROM _f f JOIN _c c ON {tables.alike("f", "c")} JOIN _t t ON {tables.alike("f", "t")} ORDER BY ALL"""


def plan_recon_count(
    session: Session, fine: str | None, coarse: str | None, area: str | None, detail: str | None,
    dimensions: list[str] | None, freq: str | None,
) -> Rows:  # fmt: skip
    """``sdc_recon_count``: how many files fit the two tables, group by group."""
    columns = ("persons", "log10_assignments", "distinct_tables", "determined_persons")
    tables = _tables(session, fine, coarse, area, detail, dimensions, freq, columns)
    checked = tables.totals
    tables = _tables(session, fine, coarse, area, detail, dimensions, freq, columns, trusted=True)
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
    session: Session, fine: str | None, coarse: str | None, area: str | None, detail: str | None,
    dimensions: list[str] | None, freq: str | None, draws: int | None, seed: int | None,
) -> str:  # fmt: skip
    """``sdc_reconstruct``: files that fit the two tables, each way to deal the details out being as likely."""
    tables = _tables(session, fine, coarse, area, detail, dimensions, freq, ("draw", "slot"))
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
