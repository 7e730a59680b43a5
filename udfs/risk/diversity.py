"""What classes of records tell of sensitive values: planners behind ``sql/diversity_tables.sql``.

They check arguments and compose SQL.
"""

from __future__ import annotations

from collections.abc import Sequence

from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Family, Session
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import needed, number, wrong
from sdcduck.udfs.risk.classes import Classes, alike
from sdcduck.udfs.sums import total

_NULLS = ("category", "drop", "skip")
_ORDERED = ("INT", "DECIMAL", "DOUBLE", "FLOAT", "DATE", "TIME")
_DIVERSITY = ("records", "distinct_l", "entropy_l", "recursive_l")
_MULTI_DIVERSITY = (
    "sensitive", "records", "distinct_l", "entropy_l", "recursive_l", "multi_distinct_l", "multi_entropy_l",
    "multi_recursive_l",
)  # fmt: skip
_CLOSENESS = ("records", "distance")


def _values(classes: Classes, sensitive: str | None) -> str:
    """A query for how often each class has each value: keys, ``_value``, ``_n``."""
    column = classes.relation.column(sensitive, "sensitive")
    if column in map(identifier, classes.keys):
        raise wrong("sensitive", "name another column than 'keys'")
    known = f"WHERE {column} IS NOT NULL" if classes.nulls == "skip" else ""
    counted = f"{classes.relation.counted} AS _n"
    return f"SELECT {classes.columns}, {column} AS _value, {counted} FROM {classes.records()} {known} GROUP BY ALL"


def _diversity(
    session: Session, text: str | None, keys: list[str] | None, sensitive: str | None, c: float | None,
    nulls: str | None,
) -> tuple[Classes, str]:  # fmt: skip
    classes = Classes.read(session, text, keys, nulls, taken=_DIVERSITY, allowed=_NULLS, beside=[sensitive])
    return classes, diversity(classes.keys, _values(classes, sensitive), number(c, "c", above=0))


def diversity(keys: Sequence[str], values: str, times: float) -> str:
    """A query for the diversity of each class: keys, ``records``, and the three measures.

    Args:
        values: a query for how often each class has each value: keys, ``_value``, ``_n``.
        times: the c of recursive diversity.
    """
    by = ", ".join(map(identifier, keys))
    # The most frequent value has to have less than c times as many records as those from the l-th on have together.
    # What they have shrinks as l grows, so l is the number of values for which it is enough.
    return f"""
        SELECT {by}, sum(_n)::BIGINT AS records, count(*) AS distinct_l,
            exp(ln(sum(_n)) - {total("_n * ln(_n)")} / sum(_n)) AS entropy_l,
            count(*) FILTER (_most < {times!r}::DOUBLE * _tail) AS recursive_l
        FROM (
            SELECT {by}, _n, max(_n) OVER (PARTITION BY {by}) AS _most,
                sum(_n) OVER (PARTITION BY {by} ORDER BY _n ROWS UNBOUNDED PRECEDING) AS _tail
            FROM ({values})
        ) GROUP BY {by}"""


def plan_l_diversity_classes(
    session: Session, text: str | None, keys: list[str] | None, sensitive: str | None, c: float | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_l_diversity_classes``."""
    return _diversity(session, text, keys, sensitive, c, nulls)[1]


def plan_l_diversity(
    session: Session, text: str | None, keys: list[str] | None, sensitive: str | None, c: float | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_l_diversity``: the worst class."""
    by_class = _diversity(session, text, keys, sensitive, c, nulls)[1]
    return f"""
        SELECT records, classes, distinct_l, entropy_l, recursive_l, homogeneous,
            homogeneous / nullif(records, 0) AS share_homogeneous
        FROM (
            SELECT coalesce(sum(records), 0)::BIGINT AS records, count(*) AS classes, min(distinct_l) AS distinct_l,
                min(entropy_l) AS entropy_l, min(recursive_l) AS recursive_l,
                coalesce(sum(records) FILTER (distinct_l = 1), 0)::BIGINT AS homogeneous
            FROM ({by_class})
        )"""


def _multi(
    session: Session, text: str | None, keys: list[str] | None, sensitive: list[str] | None, c: float | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """A query for the diversity of several columns by class: keys, ``sensitive``, and the measures of both kinds."""
    classes = Classes.read(session, text, keys, nulls, taken=_MULTI_DIVERSITY, allowed=_NULLS, beside=sensitive or ())
    names = classes.relation.named(needed(sensitive, "sensitive", "name two columns or more"), "sensitive")
    if len(names) < 2:
        raise wrong("sensitive", "name two columns or more: sdc_l_diversity is for one")
    if set(names) & set(classes.keys):
        raise wrong("sensitive", "name other columns than 'keys'")
    times = number(c, "c", above=0)
    # What users call their columns must not meet the names inside.
    inner = [f"_key{place}" for place in range(len(classes.keys))]
    others = [f"_value{place}" for place in range(len(names))]
    known = " AND ".join(f"{identifier(name)} IS NOT NULL" for name in names) if classes.nulls == "skip" else "true"
    shown = ", ".join(
        f"{identifier(name)} AS {short}" for name, short in zip((*classes.keys, *names), (*inner, *others), strict=True)
    )
    parts = []
    for place, name in enumerate(names):
        rest = [*inner, *(other for other in others if other != others[place])]
        alone, along = (
            diversity(by, f"SELECT {', '.join(by)}, {others[place]} AS _value, sum(_n) AS _n FROM _cells GROUP BY ALL",
                      times)
            for by in (inner, rest)
        )  # fmt: skip
        by = ", ".join(f"a.{short}" for short in inner)
        parts.append(
            f"SELECT {by}, {place} AS _order, {literal(name)} AS sensitive, any_value(a.records) AS records, "
            "any_value(a.distinct_l) AS distinct_l, any_value(a.entropy_l) AS entropy_l, "
            "any_value(a.recursive_l) AS recursive_l, min(m.distinct_l) AS multi_distinct_l, "
            "min(m.entropy_l) AS multi_entropy_l, min(m.recursive_l) AS multi_recursive_l "
            f"FROM ({alone}) a JOIN ({along}) m ON {alike(inner, 'a', 'm')} GROUP BY {by}"
        )
    renamed = ", ".join(f"{short} AS {identifier(name)}" for name, short in zip(classes.keys, inner, strict=True))
    return f"""
        WITH _cells AS MATERIALIZED (
            SELECT {shown}, {classes.relation.counted} AS _n FROM {classes.records()} WHERE {known} GROUP BY ALL
        )
        SELECT {renamed}, {", ".join(_MULTI_DIVERSITY)}, _order FROM ({" UNION ALL ".join(parts)})"""


def plan_multi_diversity_classes(
    session: Session, text: str | None, keys: list[str] | None, sensitive: list[str] | None, c: float | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_multi_diversity_classes``."""
    return f"SELECT * EXCLUDE (_order) FROM ({_multi(session, text, keys, sensitive, c, nulls)})"


def plan_multi_diversity(
    session: Session, text: str | None, keys: list[str] | None, sensitive: list[str] | None, c: float | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_multi_diversity``: the worst class, by column."""
    worst = ", ".join(f"min({name}) AS {name}" for name in _MULTI_DIVERSITY[2:])
    return f"""
        SELECT sensitive, sum(records)::BIGINT AS records, count(*) AS classes, {worst}
        FROM ({_multi(session, text, keys, sensitive, c, nulls)}) GROUP BY sensitive, _order ORDER BY _order"""


# The distance between the two distribution functions from a value of the class to its next, times the ranks.
_PIECE = """
    CASE WHEN _first THEN _before / _total ELSE 0 END
    + _mine / _all * ((_pass - _rank + 1) - (_next - 1 - _pass))
    + ((_then - _until) - (_until - _before)) / _total"""


def _closeness(
    session: Session, text: str | None, keys: list[str] | None, sensitive: str | None, ordered: bool | None,
    nulls: str | None,
) -> str:  # fmt: skip
    classes = Classes.read(session, text, keys, nulls, taken=_CLOSENESS, allowed=_NULLS, beside=[sensitive])
    values = _values(classes, sensitive)
    if ordered is None:
        ordered = is_ordered(classes.relation.type_of(str(sensitive)))
    return closeness(classes.keys, values, ordered=ordered)


def is_ordered(sql_type: str) -> bool:
    """Whether the order of the values of a type counts, unless told otherwise."""
    return any(word in sql_type for word in _ORDERED) and not sql_type.endswith("]")


def closeness(keys: Sequence[str], values: str, *, ordered: bool) -> str:
    """A query for the distance of each class from all records: keys, ``records``, ``distance``.

    Args:
        values: a query for how often each class has each value: keys, ``_value``, ``_n``.
        ordered: whether the order of the values counts; none is NULL then.
    """
    by = ", ".join(map(identifier, keys))
    sizes = f"SELECT {by}, sum(_n)::BIGINT AS _all FROM _values GROUP BY ALL"
    shown = ", ".join(f"v.{identifier(name)}" for name in keys)
    if not ordered:
        # Half the sum of all differences is the sum of the positive ones, which only values of the class can have.
        return f"""
            WITH _values AS MATERIALIZED ({values}),
            _whole AS (
                SELECT _value AS _known, sum(_n) / (SELECT sum(_n) FROM _values) AS _share FROM _values GROUP BY ALL
            )
            SELECT {shown}, any_value(_all) AS records, {total("greatest(_n / _all - _share, 0)")} AS distance
            FROM _values v JOIN ({sizes}) c ON {alike(keys, "v", "c")}
            JOIN _whole ON _value IS NOT DISTINCT FROM _known GROUP BY ALL"""
    # Between two values of the class its distribution function is flat, and that of the whole climbs: the distance
    # there is a difference of sums, once it is known where the one passes the other (`_pass`).
    return f"""
        WITH _values AS MATERIALIZED ({values}),
        _whole AS MATERIALIZED (
            SELECT *, sum(_below) OVER (ORDER BY _rank ROWS UNBOUNDED PRECEDING)::HUGEINT AS _sums
            FROM (
                SELECT _known, row_number() OVER (ORDER BY _known) AS _rank,
                    sum(_n) OVER (ORDER BY _known ROWS UNBOUNDED PRECEDING)::HUGEINT AS _below
                FROM (SELECT CASE WHEN _value IS NULL THEN error('a sensitive value is NULL: take nulls := ''skip'', '
                    || 'or ordered := false') ELSE _value END AS _known, sum(_n) AS _n FROM _values GROUP BY ALL)
            )
        ),
        _end AS (SELECT max(_rank) AS _ranks, max(_below) AS _total, max(_sums) - max(_below) AS _last FROM _whole),
        _steps AS (
            SELECT {by}, _rank, _sums - _below AS _before,
                sum(_n) OVER (PARTITION BY {by}) AS _all,
                sum(_n) OVER (PARTITION BY {by} ORDER BY _rank ROWS UNBOUNDED PRECEDING)::HUGEINT AS _mine,
                lead(_rank) OVER (PARTITION BY {by} ORDER BY _rank) AS _next,
                lead(_sums - _below) OVER (PARTITION BY {by} ORDER BY _rank) AS _then
            FROM _values JOIN _whole ON _value = _known
        ),
        _flat AS (
            SELECT {by}, _all, _rank, _before, _mine, coalesce(_next, _ranks) AS _next, coalesce(_then, _last) AS _then,
                _ranks, _total, _mine * _total // _all AS _level,
                row_number() OVER (PARTITION BY {by} ORDER BY _rank) = 1 AS _first
            FROM _steps, _end
        ),
        _passed AS (
            SELECT _flat.*, least(greatest(coalesce(p._rank, 0), _flat._rank - 1), _next - 1) AS _pass,
                CASE WHEN coalesce(p._rank, 0) < _flat._rank THEN _before
                    WHEN p._rank >= _next THEN _then ELSE p._sums END AS _until
            FROM _flat ASOF LEFT JOIN _whole p ON _flat._level >= p._below
        )
        SELECT {by}, any_value(_all)::BIGINT AS records,
            coalesce({total(_PIECE)} / nullif(any_value(_ranks) - 1, 0), 0) AS distance
        FROM _passed GROUP BY {by}"""


def plan_t_closeness_classes(
    session: Session, text: str | None, keys: list[str] | None, sensitive: str | None, ordered: bool | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_t_closeness_classes``."""
    return _closeness(session, text, keys, sensitive, ordered, nulls)


def plan_t_closeness(
    session: Session, text: str | None, keys: list[str] | None, sensitive: str | None, ordered: bool | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_t_closeness``: the class that is farthest from the whole."""
    by_class = _closeness(session, text, keys, sensitive, ordered, nulls)
    return f"""
        SELECT coalesce(sum(records), 0)::BIGINT AS records, count(*) AS classes, max(distance) AS t,
            {total("records * distance")} / sum(records) AS mean_distance
        FROM ({by_class})"""


FAMILY = Family(
    name="diversity",
    temporary=("diversity_tables.sql",),
    planners=planners(
        plan_l_diversity,
        plan_l_diversity_classes,
        plan_multi_diversity,
        plan_multi_diversity_classes,
        plan_t_closeness,
        plan_t_closeness_classes,
    ),
)
