"""Estimates of a protected file beside those of the original, and trends of both: planners in SQL.

Sathe et al. (2022), "Quality assessment of the 2014 to 2019 NSDUH public use files", PSD.
"""

from __future__ import annotations

from dataclasses import dataclass

from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import among, needed, number, truth, wrong
from sdcduck.udfs.compared import check_kinds
from sdcduck.udfs.source import Source, source

_LOW, _SMALL, _PRECISE = 1.0, 1000, 0.30  # per cent; contributors; relative standard error
_LEAST, _MOST = 0.5, 1.5
_TAKEN = ("present_in", "estimate_original", "estimate_protected", "se_original", "se_protected", "ratio_estimate",
          "ratio_se", "extreme", "reason")  # fmt: skip


def _known(column: str, least: int | None = None) -> str:
    """SQL for an estimate or an error: NaN is NULL; what is infinite, or below the least possible, is refused."""
    wrong = "an estimate or a standard error is infinite, or a standard error is negative"
    small = "" if least is None else f" OR {column} < {least}"
    return (
        f"CASE WHEN isnan({column}::DOUBLE) THEN NULL WHEN isinf({column}::DOUBLE){small} "
        f"THEN error({literal(wrong)}) ELSE {column}::DOUBLE END"
    )


@dataclass(frozen=True)
class _Call:
    original: Source
    protected: Source
    keys: tuple[str, ...]
    estimate: str
    se: str
    n: str | None
    suppressed: str | None
    percent: bool

    @classmethod
    def read(
        cls, session: Session, original: str | None, protected: str | None, dimensions: list[str] | None,
        estimate: str | None, se: str | None, freq: str | None = None, suppressed: str | None = None,
        percent: bool | None = True,
    ) -> _Call:  # fmt: skip
        cursor = session.cursor()
        one, other = source(cursor, original, "original"), source(cursor, protected, "protected")
        known = needed(dimensions, "dimensions", "name the columns that identify an estimate")
        other.named(known, "dimensions")
        names = one.named(known, "dimensions", _TAKEN)
        in_percent = truth(percent, "percent")
        check_kinds({"original": one, "protected": other}, known, "dimensions")
        for column, argument in ((estimate, "estimate"), (se, "se")):
            other.number(column, argument)
        hidden = None if suppressed is None else one.column(suppressed, "suppressed")
        if suppressed is not None and one.type_of(suppressed) not in ("BOOLEAN", '"NULL"'):
            raise wrong("suppressed", f"name a column of truth values: '{suppressed}' is none")
        return cls(
            one, other, tuple(names), one.number(estimate, "estimate"), one.number(se, "se"),
            None if freq is None else one.number(freq, "freq"), hidden, in_percent,
        )  # fmt: skip

    def side(self, relation: Source, *, original: bool) -> str:
        """The estimates of one file: keys, est, se, n, and whether it is suppressed."""
        keys = ", ".join(f"{relation.column(name, 'dimensions')} AS {identifier(name)}" for name in self.keys)
        n = f"{self.n}::DOUBLE" if self.n and original else "NULL::DOUBLE"
        hidden = f"coalesce({self.suppressed}::BOOLEAN, false)" if self.suppressed and original else "false"
        columns = ", ".join(identifier(name) for name in self.keys)
        twice = f"the dimensions name more than one estimate in argument ''{'original' if original else 'protected'}''"
        return f"""
            SELECT {columns}, CASE WHEN count(*) > 1 THEN error('{twice}') ELSE any_value(_e) END AS _est,
                any_value(_s) AS _se, any_value(_n) AS _n, bool_or(_h) AS _hidden, true AS _there
            FROM (SELECT {keys}, {_known(self.estimate)} AS _e, {_known(self.se, least=0)} AS _s, {n} AS _n,
                      {hidden} AS _h FROM {relation.sql}) GROUP BY {columns}"""

    def compared(self) -> str:
        """A query for ``sdc_quality``."""
        alike = " AND ".join(f"o.{identifier(name)} IS NOT DISTINCT FROM p.{identifier(name)}" for name in self.keys)
        keys = ", ".join(
            f"CASE WHEN o._there THEN o.{identifier(name)} ELSE p.{identifier(name)} END AS {identifier(name)}"
            for name in self.keys
        )
        low = _LOW if self.percent else _LOW / 100
        shown = ", ".join(identifier(name) for name in self.keys)
        return f"""
            SELECT {shown}, present_in, estimate_original, estimate_protected, se_original, se_protected,
                ratio_estimate, ratio_se, extreme,
                nullif(concat_ws('; ',
                    CASE WHEN extreme AND (estimate_original < {low} OR _n < {_SMALL})
                        THEN 'low prevalence or few contributors' END,
                    CASE WHEN ratio_se > {_MOST} AND se_original / nullif(estimate_original, 0) < {_PRECISE}
                        THEN 'loss of precision' END), '') AS reason
            FROM (
                SELECT *, coalesce(ratio_estimate < {_LEAST} OR ratio_estimate > {_MOST}, false)
                    OR coalesce(ratio_se < {_LEAST} OR ratio_se > {_MOST}, false) AS extreme
                FROM (
                    SELECT {keys},
                        CASE WHEN o._there AND p._there THEN 'both' WHEN o._there THEN 'original' ELSE 'protected' END
                            AS present_in,
                        o._est AS estimate_original, p._est AS estimate_protected, o._se AS se_original,
                        p._se AS se_protected, o._n AS _n,
                        CASE WHEN NOT o._hidden THEN p._est / nullif(o._est, 0) END AS ratio_estimate,
                        CASE WHEN NOT o._hidden THEN p._se / nullif(o._se, 0) END AS ratio_se
                    FROM ({self.side(self.original, original=True)}) o
                    FULL JOIN ({self.side(self.protected, original=False)}) p ON {alike}
                )
            )"""


def plan_quality(
    session: Session, original: str | None, protected: str | None, dimensions: list[str] | None, estimate: str | None,
    se: str | None, freq: str | None, suppressed: str | None, percent: bool | None,
) -> str:  # fmt: skip
    """``sdc_quality``."""
    return _Call.read(session, original, protected, dimensions, estimate, se, freq, suppressed, percent).compared()


def plan_quality_summary(
    session: Session, original: str | None, protected: str | None, dimensions: list[str] | None, by: list[str] | None,
    estimate: str | None, se: str | None, suppressed: str | None,
) -> str:  # fmt: skip
    """``sdc_quality_summary``: percentiles are those of SAS, means of the two values at a step."""
    call = _Call.read(session, original, protected, dimensions, estimate, se, None, suppressed)
    groups = [identifier(call.keys[place]) for place in among(by, "by", call.keys, "the dimensions")]
    shown = "".join(f"{name}, " for name in groups)
    grouping = f"GROUP BY {', '.join(groups)}" if groups else ""

    def quantile(share: float) -> str:
        place = f"(round({share} * len(_r), 9))"
        return f"(_r[greatest(ceil({place}), 1)::BIGINT] + _r[least(floor({place}) + 1, len(_r))::BIGINT]) / 2"

    parts = []
    for quantity in ("estimate", "se"):
        ratio = f"ratio_{quantity}"
        parts.append(f"""
            SELECT {shown}'{quantity}' AS quantity, len(_r)::BIGINT AS ratios, _mean AS mean, _r[1] AS least,
                {quantile(0.1)} AS p10, {quantile(0.5)} AS median, {quantile(0.9)} AS p90, _r[-1] AS most,
                _extreme AS extreme, _extreme / nullif(len(_r), 0) AS share_extreme, _correlation AS correlation
            FROM (
                SELECT {shown}coalesce(list({ratio} ORDER BY {ratio}) FILTER ({ratio} IS NOT NULL), []) AS _r,
                    avg({ratio}) AS _mean, count(*) FILTER ({ratio} < {_LEAST} OR {ratio} > {_MOST}) AS _extreme,
                    CASE WHEN stddev_pop({quantity}_original) FILTER ({quantity}_protected IS NOT NULL) > 0
                          AND stddev_pop({quantity}_protected) FILTER ({quantity}_original IS NOT NULL) > 0
                        THEN corr({quantity}_original, {quantity}_protected) END AS _correlation
                FROM _compared WHERE present_in = 'both' {grouping}
            )""")
    order = f"ORDER BY {', '.join([*groups, 'quantity'])}"
    return f"WITH _compared AS MATERIALIZED ({call.compared()}) FROM ({' UNION ALL '.join(parts)}) {order}"


def plan_trend_concordance(
    session: Session, original: str | None, protected: str | None, dimensions: list[str] | None, period: str | None,
    estimate: str | None, se: str | None, z: float | None,
) -> str:  # fmt: skip
    """``sdc_trend_concordance``."""
    least = number(z, "z", above=0, why="1.96 for a level of 5 per cent")
    when = needed(period, "period", "name the column of the period")
    call = _Call.read(session, original, protected, [*(dimensions or []), when], estimate, se)
    keyed = [identifier(name) for name in call.keys[:-1]]
    when = identifier(call.keys[-1])
    alike = " AND ".join([*(f"c.{name} IS NOT DISTINCT FROM l.{name}" for name in keyed), "true"])
    shown = "".join(f"c.{name}, " for name in keyed)
    tests = ", ".join(
        f"(c.estimate_{side} - l.estimate_{side}) / nullif(sqrt(c.se_{side} ** 2 + l.se_{side} ** 2), 0) AS t_{side}"
        for side in ("original", "protected")
    )
    names = "".join(f"{name}, " for name in [*keyed, when])
    return f"""
        WITH _compared AS MATERIALIZED (FROM ({call.compared()}) WHERE present_in = 'both' AND {when} IS NOT NULL),
        _last AS (FROM _compared QUALIFY {when} = max({when}) OVER ())
        SELECT {names}t_original, t_protected, abs(t_original) > {least!r} AS significant_original,
            abs(t_protected) > {least!r} AS significant_protected, sign(t_original) = sign(t_protected) AS same_sign,
            significant_original = significant_protected AND (NOT significant_original OR same_sign) AS concordant
        FROM (
            SELECT {shown}c.{when}, {tests} FROM _compared c JOIN _last l ON {alike} WHERE c.{when} < l.{when}
        ) ORDER BY ALL"""


PLANNERS = (*planners(plan_quality, plan_quality_summary, plan_trend_concordance),)  # fmt: skip
