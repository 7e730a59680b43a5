"""A suppressed publication in the terms of SDMX: the planner behind ``sql/suppression_exchange.sql``.

Codes are those of the SDMX cross-domain code lists CL_OBS_STATUS 2.2 and CL_CONF_STATUS 1.2.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sdcduck.functions.registry import Rows, Session
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.suppression.pattern import Call, choose_pattern, pattern_table, read_call, unchanged

_COLUMNS = ("measure", "obs_value", "obs_status", "conf_status")
_TOTAL, _UNKNOWN = "_T", "_U"

# Why a value is confidential; where several rules mark a cell, the first in this order. A dominance rule on one
# contributor is O, on two T, both G; what looks further is another measure of concentration.
_CONF_STATUS = """
    CASE WHEN s.status IN ('open', 'forced') THEN 'F'
        WHEN s.status = 'secondary' THEN 'D'
        WHEN regexp_matches(s.why, 'max_count|min_contributors') THEN 'A'
        WHEN contains(s.why, 'dominance (1,') AND contains(s.why, 'dominance (2,') THEN 'G'
        WHEN contains(s.why, 'dominance (1,') THEN 'O'
        WHEN contains(s.why, 'dominance (2,') THEN 'T'
        WHEN regexp_matches(s.why, 'dominance|p_percent|pq') THEN 'M'
        WHEN s.why = 'after' THEN 'D'
        ELSE 'C' END"""


def plan_sdmx(session: Session, text: str | None, rules: str | None, *arguments: Any) -> Rows:
    """``sdc_sdmx``: one row a cell and measure."""
    call = read_call(session, text, rules, arguments, _COLUMNS)

    def make() -> pa.Table:
        return pattern_table(choose_pattern(session, call))

    return Rows(make, _observations(call))


def _observations(call: Call) -> str:
    """SQL of the observations, where ``{rows}`` is the pattern."""
    publication = call.publication
    taken = literal(f"a category has the code {_TOTAL} or {_UNKNOWN}, which are for totals and NULL: give it another")
    dimensions = []
    for place, name in enumerate(publication.quoted_dimensions):
        sets = [number for number, columns in enumerate(publication.sets) if place in columns]
        dimensions.append(
            f"CASE WHEN NOT list_contains({sets}::INTEGER[], c._sdc_set) THEN '{_TOTAL}' "
            f"WHEN c.{name}::VARCHAR IN ('{_TOTAL}', '{_UNKNOWN}') THEN error({taken}) "
            f"ELSE coalesce(c.{name}::VARCHAR, '{_UNKNOWN}') END AS {name}"
        )
    values = ", ".join(
        f"{{name: {literal(measure.name)}, value: c.{identifier(measure.name)}}}" for measure in publication.measures
    )
    own = unchanged(call.freq, f"s.status <> 'hidden' AND list_contains({list(call.own)}, c._sdc_set)")
    shown = "".join(f"{name}, " for name in publication.quoted_dimensions)
    return f"""
        SELECT {shown}observed.name AS "MEASURE", CASE WHEN shown THEN observed.value END AS "OBS_VALUE",
            CASE WHEN NOT shown THEN 'Q' WHEN observed.value IS NULL THEN 'O' ELSE 'A' END AS "OBS_STATUS",
            conf_status AS "CONF_STATUS"
        FROM (
            SELECT {"".join(f"{dimension}, " for dimension in dimensions)}c._sdc_cell,
                s.status IN ('open', 'forced') AS shown, {_CONF_STATUS} AS conf_status,
                unnest([{values}]) AS observed, generate_subscripts([{values}], 1) AS place
            FROM ({publication.cells(extend=call.extend)}) c FULL JOIN {{rows}} s ON c._sdc_cell = s.cell
            WHERE {own}
        ) ORDER BY _sdc_cell, place"""
