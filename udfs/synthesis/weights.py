"""Equal weights: records drawn again, so that each of a stratum stands for as many (Bowen et al., 2022)."""

from __future__ import annotations

from collections.abc import Sequence

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.registry import Session
from sdcduck.quoting import identifier
from sdcduck.udfs.arguments import share
from sdcduck.udfs.seeds import need_seed_or_secret
from sdcduck.udfs.source import source

_UNITS = 2**30  # what the largest weight is laid out as: so many records of it fit into 128 bits, times 64 random ones
_NEAR = 1e-9  # 0.2 times the sum of five weights is one record, whatever the last digit says
_BLOCKS = 4096  # DuckDB takes a join by places of what it believes to be few records for a loop over all pairs
_KEY = "_sdc_key"


def _key(columns: Sequence[str]) -> str:
    """SQL for a number that depends on what some columns hold, and not on where the record stands."""
    texts = [f"{identifier(name)}::VARCHAR" for name in columns]
    parts = " || ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in texts)
    return f"md5_number_lower({parts})" if texts else "0::UBIGINT"


def plan_synth_equal_weights(
    session: Session, text: str | None, weight: str | None, by: list[str] | None, max_rate: float | None,
    seed: int | None,
) -> str:  # fmt: skip
    """``sdc_synth_equal_weights``: records laid end to end, each as long as its weight, and hit by chance."""
    relation = source(session.cursor(), text, "source")
    number = relation.number(weight, "weight")
    name = next(known for known in relation.columns if identifier(known) == number)
    relation.check_names(tuple(relation.columns))
    strata = relation.named(by, "by")
    if name in strata:
        raise SDCError(f"argument 'by' names '{name}', which is the weight")
    need_seed_or_secret(session, seed, "a choice of records can be made again")
    stream = f"{'NULL' if seed is None else seed}::BIGINT, {str(session.secret() is not None).lower()}"
    if max_rate is None:
        size = "_sdc_records"
    else:
        allowed = f"floor({share(max_rate, 'max_rate', zero=False)!r}::DOUBLE * _sdc_total + {_NEAR!r})"
        few = "argument 'max_rate': the weights of a stratum are too small for a single record of it; merge strata"
        size = (
            f"CASE WHEN {allowed} < 1 THEN error('{few.replace(chr(39), chr(39) * 2)}') "
            f"ELSE least(_sdc_records, {allowed}) END::BIGINT"
        )
    bad = f"{number} IS NULL OR NOT isfinite({number}::DOUBLE) OR {number} < 0"
    return f"""
        WITH _sdc_weighed AS MATERIALIZED (
            SELECT *, CASE
                WHEN {bad} THEN error('a weight is NULL, negative or no finite number') ELSE {number}::DOUBLE
            END AS _sdc_weight, {_key(strata)} AS _sdc_stratum, {_key(sorted(relation.columns))} AS {_KEY}
            FROM {relation.sql}
        ), _sdc_laid AS MATERIALIZED (
            SELECT *, sum(_sdc_units) OVER (
                PARTITION BY _sdc_stratum ORDER BY {_KEY} ROWS UNBOUNDED PRECEDING
            )::UHUGEINT AS _sdc_end
            FROM (
                SELECT *, round(_sdc_weight / (SELECT max(_sdc_weight) FROM _sdc_weighed) * {_UNITS})::HUGEINT
                    AS _sdc_units
                FROM _sdc_weighed WHERE _sdc_weight > 0
            )
        ), _sdc_strata AS MATERIALIZED (
            SELECT _sdc_stratum, _sdc_total, _sdc_all, {size} AS _sdc_size FROM (
                SELECT _sdc_stratum, count(*) AS _sdc_records, fsum(_sdc_weight ORDER BY _sdc_weight) AS _sdc_total,
                    max(_sdc_end) AS _sdc_all
                FROM _sdc_laid GROUP BY _sdc_stratum
            )
        ), _sdc_thrown AS (
            SELECT _sdc_stratum, _sdc_total / _sdc_size AS _sdc_share,
                (_sdc_random_bits(_sdc_stratum, _sdc_number, 0::BIGINT, {stream})::UHUGEINT * _sdc_all) >> 64 AS _sdc_at
            FROM _sdc_strata, range({_BLOCKS}) blocks(_sdc_block),
                range(_sdc_block + 1, _sdc_size + 1, {_BLOCKS}) numbers(_sdc_number)
        )
        SELECT {
        ", ".join(
            f"_sdc_share AS {identifier(known)}" if known == name else f"l.{identifier(known)}"
            for known in relation.columns
        )
    }
        FROM _sdc_thrown t ASOF JOIN (FROM _sdc_laid WHERE _sdc_units > 0) l
            ON t._sdc_stratum = l._sdc_stratum AND t._sdc_at < l._sdc_end"""


PLANNER = planner(plan_synth_equal_weights)
