"""What synthetic records give away and keep, counted in SQL: planners behind ``sql/synthetic_records_tables.sql``."""

from __future__ import annotations

import duckdb

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import whole
from sdcduck.udfs.compared import check_kinds
from sdcduck.udfs.source import Source, is_number, shared_columns, source


def _both(
    cursor: duckdb.DuckDBPyConnection, original: str | None, synthetic: str | None, columns: list[str] | None
) -> tuple[Source, Source, list[str]]:
    one, other = source(cursor, original, "original"), source(cursor, synthetic, "synthetic")
    shared = shared_columns({"original": one, "synthetic": other}, columns)
    return one, other, [name for name in one.columns if name in shared]


def plan_synth_replicas(
    session: Session, original: str | None, synthetic: str | None, columns: list[str] | None, small: int | None
) -> str:
    """``sdc_synth_replicas``: records of one that are in the other."""
    one, other, names = _both(session.cursor(), original, synthetic, columns)
    below = whole(small, "small", least=1)
    check_kinds({"original": one, "synthetic": other}, names, "columns")
    # The union has the wider of two types: a column may have become so on the way.
    shown, also = (
        ", ".join(f"{relation.column(name, 'columns')} AS c{place}" for place, name in enumerate(names))
        for relation in (one, other)
    )
    keys = ", ".join(f"c{place}" for place in range(len(names)))
    return f"""
        WITH _counted AS (
            SELECT count(*) FILTER (_side = 0) AS o, count(*) FILTER (_side = 1) AS s
            FROM (SELECT {shown}, 0 AS _side FROM {one.sql} UNION ALL SELECT {also}, 1 FROM {other.sql})
            GROUP BY {keys}
        )
        SELECT coalesce(sum(o), 0)::BIGINT AS original_records, coalesce(sum(s), 0)::BIGINT AS synthetic_records,
            count(*) FILTER (o = 1) AS original_uniques, count(*) FILTER (s = 1) AS synthetic_uniques,
            coalesce(sum(o) FILTER (s > 0), 0)::BIGINT AS recreated,
            coalesce(sum(s) FILTER (o > 0), 0)::BIGINT AS recreated_synthetic,
            count(*) FILTER (o = 1 AND s > 0) AS unique_recreated,
            coalesce(sum(o) FILTER (o < {below} AND s > 0), 0)::BIGINT AS small_recreated,
            count(*) FILTER (o = 1 AND s = 1) AS unique_as_unique
        FROM _counted"""


def _diversity_columns(relation: Source) -> list[str]:
    found = [name for name in relation.columns if folded(name).startswith("ldiv_")]
    if not found:
        raise SDCError("there are no columns ldiv_..: draw the records with details := true")
    return found


def plan_synth_diversity(session: Session, synthetic: str | None, threshold: int | None) -> str:
    """``sdc_synth_diversity``: by variable, how many values came from leaves with few different ones."""
    relation, least = source(session.cursor(), synthetic, "synthetic"), whole(threshold, "threshold", least=1)
    parts = [
        f"SELECT {place} AS _place, {literal(name[5:])} AS variable, count(*) AS n, "
        f"count(*) FILTER ({identifier(name)} < {least}) AS low FROM _drawn"
        for place, name in enumerate(_diversity_columns(relation))
    ]
    return f"""
        WITH _drawn AS MATERIALIZED (FROM {relation.sql})
        SELECT variable, n, low, 1 - low / nullif(n, 0) AS share_ok
        FROM ({" UNION ALL ".join(parts)}) ORDER BY _place"""


def plan_synth_diversity_records(session: Session, synthetic: str | None, threshold: int | None) -> str:
    """``sdc_synth_diversity_records``: by record, how many variables came from leaves with few different values."""
    relation, least = source(session.cursor(), synthetic, "synthetic"), whole(threshold, "threshold", least=1)
    low = " + ".join(f"coalesce({identifier(name)} < {least}, false)::BIGINT" for name in _diversity_columns(relation))
    return f"""
        SELECT variables, records, 100 * records / sum(records) OVER () AS percent,
            100 * sum(records) OVER (ORDER BY variables) / sum(records) OVER () AS cumulative
        FROM (SELECT {low} AS variables, count(*) AS records FROM {relation.sql} GROUP BY ALL) ORDER BY variables"""


def _numbers(one: Source, other: Source, names: list[str]) -> list[str]:
    found = [name for name in names if is_number(one.type_of(name)) and is_number(other.type_of(name))]
    if not found:
        raise SDCError("the two have no column of numbers in common")
    return found


def _finite(column: str) -> str:
    return f"CASE WHEN isfinite({column}::DOUBLE) THEN {column}::DOUBLE END"


def _weight(column: str) -> str:
    problem = "a weight is NULL, not positive or infinite"
    known = f"{column} > 0 AND isfinite({column}::DOUBLE)"
    return f"CASE WHEN {known} THEN {column}::DOUBLE ELSE error({literal(problem)}) END"


def plan_synth_moments(
    session: Session, original: str | None, synthetic: str | None, columns: list[str] | None, weight: str | None
) -> str:
    """``sdc_synth_moments``: means, deviations and the largest distance of the distribution functions."""
    one, other, names = _both(session.cursor(), original, synthetic, columns)
    weights = dict.fromkeys("os", "1.0::DOUBLE")
    if weight is not None:
        weights = {side: _weight(relation.number(weight, "weight")) for side, relation in (("o", one), ("s", other))}
        names = [name for name in names if folded(name) != folded(weight)]
    parts = []
    for place, name in enumerate(_numbers(one, other, names)):
        for side, relation in (("o", one), ("s", other)):
            value = _finite(relation.column(name, "columns"))
            parts.append(
                f"SELECT {place} AS _place, {literal(name)} AS variable, '{side}' AS _side, {value} AS x, "
                f"{weights[side]} AS w FROM {relation.sql}"
            )
    return f"""
        WITH _values AS MATERIALIZED ({" UNION ALL ".join(parts)}),
        _means AS (
            SELECT _place, variable, _side, count(x) AS n, sum(w) FILTER (x IS NOT NULL) AS total,
                sum(w * x) / total AS mean, 1 - count(x) / count(*) AS missing
            FROM _values GROUP BY ALL
        ), _sides AS (
            SELECT m.*, d.sd FROM _means m LEFT JOIN (
                SELECT v._place, v._side,
                    sqrt(sum(w * (x - mean) ** 2) / any_value(total) * any_value(n) / nullif(any_value(n) - 1, 0)) AS sd
                FROM _values v JOIN _means USING (_place, _side) WHERE x IS NOT NULL GROUP BY ALL
            ) d USING (_place, _side)
        ), _ks AS (
            SELECT _place, max(abs(coalesce(f_o, 0) - coalesce(f_s, 0))) AS ks FROM (
                SELECT _place, sum(o) OVER _up / nullif(sum(o) OVER _all, 0) AS f_o,
                    sum(s) OVER _up / nullif(sum(s) OVER _all, 0) AS f_s
                FROM (
                    SELECT _place, x, coalesce(sum(w) FILTER (_side = 'o'), 0) AS o,
                        coalesce(sum(w) FILTER (_side = 's'), 0) AS s
                    FROM _values WHERE x IS NOT NULL GROUP BY _place, x
                ) WINDOW _up AS (PARTITION BY _place ORDER BY x), _all AS (PARTITION BY _place)
            ) GROUP BY _place
        )
        SELECT o.variable, o.mean AS mean_original, s.mean AS mean_synthetic, o.sd AS sd_original,
            s.sd AS sd_synthetic, (s.mean - o.mean) / nullif(o.sd / sqrt(s.n), 0) AS z, o.missing AS missing_original,
            s.missing AS missing_synthetic, CASE WHEN o.n > 0 AND s.n > 0 THEN ks END AS ks
        FROM _sides o JOIN _sides s ON o._place = s._place AND o._side = 'o' AND s._side = 's'
        LEFT JOIN _ks k ON k._place = o._place ORDER BY o._place"""


def plan_synth_correlations(
    session: Session, original: str | None, synthetic: str | None, columns: list[str] | None
) -> str:
    """``sdc_synth_correlations``: of every two numbers, in both."""
    one, other, names = _both(session.cursor(), original, synthetic, columns)
    numbers = _numbers(one, other, names)
    pairs = [(a, b) for place, a in enumerate(numbers) for b in numbers[place + 1 :]]
    if not pairs:
        raise SDCError("a correlation needs two columns of numbers")
    sides = []
    for relation in (one, other):
        shown = ", ".join(f"{{'a': {literal(a)}, 'b': {literal(b)}, 'r': {_corr(relation, a, b)}}}" for a, b in pairs)
        sides.append(f"(SELECT unnest([{shown}]) AS p, unnest(range({len(pairs)})) AS _place FROM {relation.sql})")
    return f"""
        SELECT o.p.a AS variable, o.p.b AS with_variable, o.p.r AS r_original, s.p.r AS r_synthetic,
            s.p.r - o.p.r AS difference
        FROM {sides[0]} o JOIN {sides[1]} s USING (_place) ORDER BY _place"""


def _corr(relation: Source, a: str, b: str) -> str:
    x, y = (_finite(relation.column(name, "columns")) for name in (a, b))
    return f"CASE WHEN stddev_pop({x}) > 0 AND stddev_pop({y}) > 0 THEN corr({x}, {y}) END"


PLANNERS = (
    *planners(
        plan_synth_replicas,
        plan_synth_diversity,
        plan_synth_diversity_records,
        plan_synth_moments,
        plan_synth_correlations,
    ),
)
