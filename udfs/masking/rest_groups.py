"""Rest groups: the planners of ``sdc_rest_group`` and its report. They compose SQL, and see no record.

Categories are put in the order of their units; the small ones are in the rest, and then the next ones, until the rest
has as many units as any category must have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from sdcduck.catalog import first_row
from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import needed, truth, whole
from sdcduck.udfs.source import Source, source

_FLAG = "_sdc_in_rest"  # of a record whose coarser category is in a rest already


@dataclass(frozen=True)
class _Plan:
    """The arguments, checked.

    Attributes:
        columns: those that get a rest group, coarse ones first where they are nested.
        by: what categories are counted within.
        unit: the quoted column, or None where each record is one.
    """

    cursor: duckdb.DuckDBPyConnection
    relation: Source
    columns: tuple[str, ...]
    by: tuple[str, ...]
    unit: str | None
    least: int
    label: str
    nested: bool

    @classmethod
    def read(
        cls, session: Session, text: str | None, columns: Sequence[str | None] | None, least: int | None,
        unit: str | None, by: Sequence[str | None] | None, nested: bool | None, label: str | None,
    ) -> _Plan:  # fmt: skip
        cursor = session.cursor()
        relation = source(cursor, text, "source")
        relation.check_names(tuple(relation.columns))
        named = needed(relation.named(columns, "columns"), "columns", "name the columns that get a rest group")
        strata = relation.named(by, "by")
        both = next((name for name in named if name in strata), None)
        if both is not None:
            raise SDCError(f"arguments 'columns' and 'by' both name '{both}'")
        counted = None if unit is None else relation.column(unit, "unit")
        if counted is not None and counted in map(identifier, (*named, *strata)):
            raise SDCError(f"argument 'unit' names {counted}, which is among 'columns' or 'by'")
        return cls(
            cursor, relation, named, strata, counted,
            whole(least, "min_units", least=2, why="a group of one unit hides nobody"),
            needed(label, "label", "be a text"), truth(nested, "nested"),
        )  # fmt: skip

    def label_of(self, name: str) -> tuple[str, str]:
        """The label in SQL, and the type that the column has then: text, where the label is no value of its own."""
        kind, text = self.relation.type_of(name), literal(self.label)
        try:
            found = first_row(self.cursor, f"SELECT (TRY_CAST({text} AS {kind})::VARCHAR = {text}) IS TRUE")
        except duckdb.Error:  # a type that no text can be
            found = None
        type_ = kind if found and found[0] else "VARCHAR"
        return f"{text}::{type_}", type_

    def steps(self) -> tuple[str, str]:
        """What stands before a SELECT, and the relation of the records in the end."""
        made = [f"_sdc_r0 AS MATERIALIZED (SELECT *, false AS {_FLAG} FROM {self.relation.sql})"]
        for place, name in enumerate(self.columns):
            made += self._step(place, name)
        return "WITH " + ", ".join(made), f"_sdc_r{len(self.columns)}"

    def _step(self, place: int, name: str) -> list[str]:
        before, column = f"_sdc_r{place}", identifier(name)
        label, type_ = self.label_of(name)
        strata = [*map(identifier, self.by), *(map(identifier, self.columns[:place]) if self.nested else ())]
        keys = [f"_sdc_k{at}" for at in range(len(strata))]
        shown = "".join(f"{stratum} AS {key}, " for stratum, key in zip(strata, keys, strict=True))
        within = f"PARTITION BY {', '.join(keys)}" if keys else ""
        units = "count(*)" if self.unit is None else f"count(DISTINCT {self.unit})"
        same = " AND ".join(
            f"r.{one} IS NOT DISTINCT FROM m.{other}"
            for one, other in zip([*strata, column], [*keys, "_sdc_v"], strict=True)
        )
        counted = (
            f"SELECT {shown}{column} AS _sdc_v, {units} AS _sdc_n, count(*) AS _sdc_records, "
            f"{column}::VARCHAR IS NOT DISTINCT FROM {literal(self.label)} AS _sdc_named "
            f"FROM {before} WHERE NOT {_FLAG} GROUP BY ALL"
        )
        # What is called like the rest already comes first: it is in the rest if there is one.
        small = f"_sdc_n < {self.least}"
        ranked = (
            f"SELECT *, row_number() OVER ({within} ORDER BY NOT _sdc_named, _sdc_n, _sdc_v NULLS FIRST) AS _sdc_rank, "
            f"count(*) FILTER ({small} OR _sdc_named) OVER ({within}) AS _sdc_first, "
            f"bool_or({small}) OVER ({within}) AS _sdc_any FROM _sdc_n{place}"
        )
        chosen = (
            f"SELECT *, _sdc_any AND (_sdc_rank <= _sdc_first OR coalesce(lag(_sdc_sum) OVER ({within} "
            f"ORDER BY _sdc_rank), 0) < {self.least}) AS _sdc_chosen FROM _sdc_c{place}"
        )
        now = f"coalesce(m._sdc_chosen, false) OR r.{_FLAG}"
        return [
            f"_sdc_n{place} AS ({counted})",
            f"_sdc_o{place} AS MATERIALIZED ({ranked})",
            f"_sdc_c{place} AS ({self._summed(place, keys, same, within)})",
            f"_sdc_m{place} AS MATERIALIZED ({chosen})",
            f"_sdc_r{place + 1} AS MATERIALIZED (SELECT r.* REPLACE (CASE WHEN {now} THEN {label} "
            f"ELSE r.{column}::{type_} END AS {column}, {now if self.nested else 'false'} AS {_FLAG}) "
            f"FROM {before} r LEFT JOIN _sdc_m{place} m ON {same})",
        ]

    def _summed(self, place: int, keys: Sequence[str], same: str, within: str) -> str:
        """The ranked categories with the units of each and those before it, who may be in several."""
        over = f"OVER ({within} ORDER BY _sdc_rank)"
        if self.unit is None:
            return f"SELECT *, sum(_sdc_n) {over} AS _sdc_sum FROM _sdc_o{place}"
        shown = "".join(f"m.{key}, " for key in keys)
        first = (
            f"SELECT {shown}min(m._sdc_rank) AS _sdc_rank FROM _sdc_r{place} r JOIN _sdc_o{place} m ON {same} "
            f"WHERE NOT r.{_FLAG} AND r.{self.unit} IS NOT NULL GROUP BY {shown}r.{self.unit}"
        )
        new = f"SELECT {''.join(f'{key}, ' for key in keys)}_sdc_rank, count(*) AS _sdc_new FROM ({first}) GROUP BY ALL"
        on = " AND ".join(f"o.{key} IS NOT DISTINCT FROM f.{key}" for key in (*keys, "_sdc_rank"))
        return (
            f"SELECT *, sum(_sdc_new) {over} AS _sdc_sum FROM (SELECT o.*, coalesce(f._sdc_new, 0) AS _sdc_new "
            f"FROM _sdc_o{place} o LEFT JOIN ({new}) f ON {on})"
        )


def plan_rest_group(
    session: Session, text: str | None, columns: list[str | None] | None, min_units: int | None, unit: str | None,
    by: list[str | None] | None, nested: bool | None, label: str | None,
) -> str:  # fmt: skip
    """``sdc_rest_group``."""
    named, records = _Plan.read(session, text, columns, min_units, unit, by, nested, label).steps()
    return f"{named} SELECT * EXCLUDE ({_FLAG}) FROM {records}"


def plan_rest_group_report(
    session: Session, text: str | None, columns: list[str | None] | None, min_units: int | None, unit: str | None,
    by: list[str | None] | None, nested: bool | None, label: str | None,
) -> str:  # fmt: skip
    """``sdc_rest_group_report``: what is in the rest of each column, and how small the smallest is that is left."""
    plan = _Plan.read(session, text, columns, min_units, unit, by, nested, label)
    named, _ = plan.steps()
    parts = [
        f"""SELECT {literal(name)} AS "column", count(*) AS categories,
            count(*) FILTER (_sdc_chosen) AS in_rest,
            count(*) FILTER (_sdc_chosen AND _sdc_rank = 1) AS rests,
            coalesce(sum(_sdc_records) FILTER (_sdc_chosen), 0)::BIGINT
                + (SELECT count(*) FROM _sdc_r{place} WHERE {_FLAG}) AS records,
            min(CASE WHEN NOT _sdc_chosen THEN _sdc_n
                WHEN _sdc_last THEN _sdc_sum END)::BIGINT AS smallest
        FROM (SELECT *, _sdc_chosen AND NOT coalesce(lead(_sdc_chosen) OVER ({_window(plan, place)}), false)
                AS _sdc_last FROM _sdc_m{place})"""
        for place, name in enumerate(plan.columns)
    ]
    return f"{named} {' UNION ALL '.join(parts)}"


def _window(plan: _Plan, place: int) -> str:
    """The window of the categories of a stratum, in their order."""
    keys = ", ".join(f"_sdc_k{at}" for at in range(len(plan.by) + (place if plan.nested else 0)))
    return f"{f'PARTITION BY {keys} ' if keys else ''}ORDER BY _sdc_rank"


PLANNERS = planners(plan_rest_group, plan_rest_group_report)
