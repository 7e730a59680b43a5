"""Survival curves and histograms that may leave: planners behind ``sql/output_checks_tables.sql``.

Both are made of counts that are rounded to midpoints, as OpenSAFELY does with what leaves it: a curve of its cumulated
counts, so that no step is one person's.
"""

from __future__ import annotations

from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import number, whole
from sdcduck.udfs.source import source

_OF_CURVE = ("time", "at_risk", "events", "censored", "survival", "std_error")
_OF_HISTOGRAM = ("low", "high", "n")


def _midpoint(count: str, base: int) -> str:
    """SQL of a count rounded to the middle of the range that it lies in; 0 stays.

    >>> _midpoint("n", 6)
    'CASE WHEN n > 0 THEN (n + 5) // 6 * 6 - 3 ELSE 0 END'
    """
    return f"CASE WHEN {count} > 0 THEN ({count} + {base - 1}) // {base} * {base} - {base // 2} ELSE 0 END"


def _says(column: str, word: str, number: int) -> str:
    """SQL of whether a value is this word, or a number of any type that is this one."""
    return f"({column}::VARCHAR = {literal(word)} OR TRY_CAST({column}::VARCHAR AS DOUBLE) = {number})"


def plan_survival_table(
    session: Session, text: str | None, time: str | None, event: str | None, by: list[str | None] | None,
    width: float | None, base: int | None, threshold: int | None,
) -> str:  # fmt: skip
    """``sdc_survival_table``: the estimate of Kaplan and Meier, of rounded cumulated counts."""
    relation = source(session.cursor(), text, "source")
    grouping = relation.named(by, "by", _OF_CURVE)
    relation.check_names(grouping)
    groups = [identifier(name) for name in grouping]
    at = relation.number(time, "time")
    happened = relation.column(event, "event")
    step = number(width, "width", above=0)
    to, least = whole(base, "base", least=1), whole(threshold, "threshold", least=1)
    bad_time = literal("argument 'time': times must be finite, not negative and not NULL")
    bad_event = literal("argument 'event': events must be true or false, or 1 or 0, and not NULL")
    names = "".join(f"{name}, " for name in groups)
    inside = f"PARTITION BY {', '.join(groups)} " if groups else ""
    grouped = f"GROUP BY {', '.join(groups)}" if groups else ""
    of_sums = "".join(f"s.{name}, " for name in groups)
    partition = f"PARTITION BY {of_sums.removesuffix(', ')} " if groups else ""
    same = " AND ".join(f"s.{name} IS NOT DISTINCT FROM g.{name}" for name in groups) or "true"
    return f"""
        WITH _sdc_records AS (
            SELECT {names}CASE WHEN coalesce(isfinite({at}::DOUBLE) AND {at} >= 0, false)
                    THEN greatest(ceil({at}::DOUBLE / {step!r}), 1) * {step!r} ELSE error({bad_time}) END AS _sdc_time,
                CASE WHEN {_says(happened, "true", 1)} THEN 1 WHEN {_says(happened, "false", 0)} THEN 0
                    ELSE error({bad_event}) END AS _sdc_event
            FROM {relation.sql}
        ), _sdc_groups AS (
            SELECT {names}{_midpoint("count(*)", to)} AS _sdc_all FROM _sdc_records {grouped} HAVING count(*) >= {least}
        ), _sdc_steps AS (
            SELECT {names}_sdc_time, sum(_sdc_event)::BIGINT AS _sdc_d, sum(1 - _sdc_event)::BIGINT AS _sdc_c
            FROM _sdc_records GROUP BY {names}_sdc_time
        ), _sdc_sums AS (
            SELECT {names}_sdc_time, sum(_sdc_d) OVER _sdc_w::BIGINT AS _sdc_d,
                sum(_sdc_c) OVER _sdc_w::BIGINT AS _sdc_c
            FROM _sdc_steps WINDOW _sdc_w AS ({inside}ORDER BY _sdc_time)
        ), _sdc_rounded AS (
            SELECT {names}_sdc_time, {_midpoint("_sdc_d", to)} AS _sdc_d, {_midpoint("_sdc_c", to)} AS _sdc_c
            FROM _sdc_sums
        ), _sdc_moved AS (
            SELECT {of_sums}_sdc_time AS time,
                _sdc_all - lag(_sdc_d + _sdc_c, 1, 0) OVER _sdc_w AS at_risk,
                _sdc_d - lag(_sdc_d, 1, 0) OVER _sdc_w AS events, _sdc_c - lag(_sdc_c, 1, 0) OVER _sdc_w AS censored
            FROM _sdc_rounded s JOIN _sdc_groups g ON {same}
            WINDOW _sdc_w AS ({partition}ORDER BY _sdc_time)
        ), _sdc_kept AS (
            SELECT *, bool_and(at_risk >= {least} AND events <= at_risk) OVER ({inside}ORDER BY time) AS _sdc_shown
            FROM _sdc_moved WHERE events > 0 OR censored > 0
        )
        SELECT {names}0.0::DOUBLE AS time, _sdc_all::BIGINT AS at_risk, 0::BIGINT AS events, 0::BIGINT AS censored,
            1.0::DOUBLE AS survival, 0.0::DOUBLE AS std_error FROM _sdc_groups
        UNION ALL
        SELECT {names}time, at_risk::BIGINT, events::BIGINT, censored::BIGINT,
            product(1 - events / at_risk) OVER _sdc_w AS survival,
            CASE WHEN bool_and(events < at_risk) OVER _sdc_w THEN product(1 - events / at_risk) OVER _sdc_w
                * sqrt(sum(events / nullif(at_risk * (at_risk - events), 0)) OVER _sdc_w) END AS std_error
        FROM _sdc_kept WHERE _sdc_shown WINDOW _sdc_w AS ({inside}ORDER BY time)
        ORDER BY {names}time"""


def plan_histogram_table(
    session: Session, text: str | None, value: str | None, width: float | None, by: list[str | None] | None,
    origin: float | None, base: int | None, threshold: int | None,
) -> str:  # fmt: skip
    """``sdc_histogram_table``: bins of one width, and rounded counts of those that are not too small."""
    relation = source(session.cursor(), text, "source")
    grouping = relation.named(by, "by", _OF_HISTOGRAM)
    relation.check_names(grouping)
    groups = [identifier(name) for name in grouping]
    counted = relation.number(value, "value")
    step, first = number(width, "width", above=0), number(origin, "origin")
    to, least = whole(base, "base", least=1), whole(threshold, "threshold", least=1)
    names = "".join(f"{name}, " for name in groups)
    return f"""
        SELECT {names}{first!r}::DOUBLE + _sdc_bin * {step!r}::DOUBLE AS low,
            {first!r}::DOUBLE + (_sdc_bin + 1) * {step!r}::DOUBLE AS high, ({_midpoint("count(*)", to)})::BIGINT AS n
        FROM (
            SELECT {names}floor(({counted}::DOUBLE - {first!r}) / {step!r}) AS _sdc_bin FROM {relation.sql}
            WHERE isfinite({counted}::DOUBLE)
        ) GROUP BY {names}_sdc_bin HAVING count(*) >= {least} ORDER BY {names}low"""


PLANNERS = planners(plan_survival_table, plan_histogram_table)
