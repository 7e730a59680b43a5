"""Estimates from a sample with their standard errors: the planner of ``sdc_estimates``, which is SQL.

A mean and a ratio are linear in the totals of each primary sampling unit once their own value is known (Taylor). So
records are added up into sampling units and domains, and these within strata: two times GROUP BY.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import choice, needed, wrong
from sdcduck.udfs.source import Source, source

STATISTICS = ("mean", "total", "ratio")
_SINGLE = ("zero", "centre")
_NULLS = ("refuse", "leave_out")
_AT_ONCE = 16  # measures: what DuckDB takes to plan a statement grows with the square of its columns
_TAKEN = ("measure", "n", "population", "est", "se", "df", "suppressed", "warning")


@dataclass(frozen=True)
class _Call:
    """A checked call; columns of the source as SQL, measures beside their names."""

    relation: Source
    measures: tuple[str, ...]
    domains: tuple[str, ...]
    weight: str | None
    strata: str | None
    psu: str | None
    statistic: str
    denominator: str | None
    single: str
    nulls: str
    places: range

    @property
    def by(self) -> str:
        """The domains within the statements, where there is always one."""
        return ", ".join(["_all", *(f"_d{place}" for place in range(len(self.domains)))])

    def each(self, sql: str) -> str:
        """SQL once for each measure, ``#`` being its place."""
        return ", ".join(sql.replace("#", str(place)) for place in self.places)

    def query(self) -> str:
        """The statement that answers the call: the records once, and a part of the measures after the other."""
        starts = self.places[::_AT_ONCE]
        parts = [replace(self, places=self.places[start : start + _AT_ONCE]).part() for start in starts]
        domains = "".join(f"_d{place} AS {identifier(name)}, " for place, name in enumerate(self.domains))
        columns = ", ".join(f"_r.{name} AS {name}" for name in _TAKEN[1:])
        order = "".join(f", _d{place}" for place in range(len(self.domains)))
        return (
            f"WITH _records AS MATERIALIZED ({self.records()}), _fits AS MATERIALIZED ({self.checks()}),\n"
            f"_design AS MATERIALIZED ({self.design()})\n"
            f"SELECT {domains}_r.measure AS measure, {columns} FROM ({' UNION ALL '.join(parts)})\n"
            f"ORDER BY _r.place{order}"
        )

    def part(self) -> str:
        """A query for some of the measures: domains, and what is said of a measure as a struct."""
        return (
            f"(WITH _units AS MATERIALIZED ({self.units()}), _domains AS MATERIALIZED ({self.totals()}),\n"
            f"_strata AS ({self.within_strata()})\n{self.result()})"
        )

    def records(self) -> str:
        """What is read of the source: once, however often it is looked at."""
        quoted = [self.relation.column(name, "domains") for name in self.domains]
        shown = [
            "0 AS _all",
            *(f"{column} AS _d{place}" for place, column in enumerate(quoted)),
            f"{self.strata or '0'} AS _h",
            f"{self.psu or '0'} AS _i",
            f"{self.weight or '1'}::DOUBLE AS _w",
            f"{self.denominator or '1'}::DOUBLE AS _x",
            *(f"{identifier(name)}::DOUBLE AS _y{place}" for place, name in enumerate(self.measures)),
        ]
        return f"SELECT {', '.join(shown)} FROM {self.relation.sql}"

    def checks(self) -> str:
        """One row, or the error that says how many records cannot be used."""
        values = [f"_y{place}" for place in self.places] + (["_x"] if self.denominator else [])
        wrong_ones = [
            ("_w IS NULL OR NOT isfinite(_w) OR _w < 0", "a weight that is NULL, negative or no finite number"),
            ("_h IS NULL OR _i IS NULL", "NULL as stratum or primary sampling unit"),
            (" OR ".join(f"NOT isfinite({value})" for value in values), "NaN or an infinite number in a measure"),
        ]
        if self.nulls == "refuse":
            problem = "NULL in a measure: nulls := 'leave_out' estimates from the others"
            wrong_ones.append((" OR ".join(f"{value} IS NULL" for value in values), problem))
        cases = " ".join(
            f"WHEN count(*) FILTER ({condition}) > 0 THEN error('sdc_estimates: ' || count(*) FILTER ({condition}) "
            f"|| ' of ' || count(*) || ' records have ' || {literal(problem)})"
            for condition, problem in wrong_ones
        )
        return f"SELECT CASE {cases} ELSE 1 END AS _one FROM _records"

    def design(self) -> str:
        """The primary sampling units of each stratum, whether they have records of a domain or not."""
        count = "count(DISTINCT _i)" if self.psu else "count(*)"
        return f"SELECT _h, {count} AS _m FROM _records, _fits WHERE _one = 1 GROUP BY _h"

    def units(self) -> str:
        """Of each sampling unit and domain the totals of measures and of what they are divided by."""
        known = "_y# IS NOT NULL AND _x IS NOT NULL"
        if not self.psu:  # each record is one
            parts = self.each(
                f"CASE WHEN {known} THEN _w * _y# ELSE 0 END AS _a#, CASE WHEN {known} THEN _w * _x ELSE 0 END AS _b#, "
                f"CASE WHEN {known} THEN _w ELSE 0 END AS _w#, ({known})::BIGINT AS _n#"
            )
            return f"SELECT {self.by}, _h, {parts} FROM _records"
        parts = self.each(
            f"coalesce(sum(_w * _y#) FILTER ({known}), 0) AS _a#, coalesce(sum(_w * _x) FILTER ({known}), 0) AS _b#, "
            f"coalesce(sum(_w) FILTER ({known}), 0) AS _w#, count(*) FILTER ({known}) AS _n#"
        )
        return f"SELECT {self.by}, _h, {parts} FROM _records GROUP BY {self.by}, _h, _i"

    def totals(self) -> str:
        """The estimate of each domain, and what stands under it."""
        total = "CASE WHEN sum(_n#) > 0 THEN sum(_a#) END"
        estimate = total if self.statistic == "total" else "sum(_a#) / nullif(sum(_b#), 0)"
        parts = self.each(
            f"{estimate} AS _est#, nullif(sum(_b#), 0) AS _under#, sum(_w#) AS _population#, "
            "sum(_n#)::BIGINT AS _known#"
        )
        return f"SELECT {self.by}, {parts} FROM _units GROUP BY {self.by}"

    def within_strata(self) -> str:
        """Of each stratum and domain the variance of what sampling units add to the error.

        Those without records of the domain add 0, and count.
        """
        error = "_a#" if self.statistic == "total" else "(_a# - _est# * _b#) / _under#"
        alike = " AND ".join(f"u.{name} IS NOT DISTINCT FROM t.{name}" for name in self.by.split(", "))
        shown = ", ".join(f"u.{name}" for name in self.by.split(", "))
        errors = self.each(f"{error} AS _z#, _n#, _est#")
        spread = "count(*) * var_pop(_z#) + avg(_z#) ** 2 * count(*) * (_m - count(*)) / _m"
        alone = "0" if self.single == "zero" else "(avg(_z#) - any_value(_est#) / _all_units) ** 2"
        if self.statistic != "total" and self.single == "centre":
            alone = "avg(_z#) ** 2"  # errors of all sampling units add up to 0
        parts = self.each(
            f"CASE WHEN _m > 1 THEN _m / (_m - 1) * ({spread}) ELSE {alone} END AS _v#, "
            f"count(*) FILTER (_n# > 0) AS _c#"
        )
        return f"""
            SELECT {self.by}, _h, _m, {parts}
            FROM (SELECT {shown}, u._h, {errors} FROM _units u JOIN _domains t ON {alike})
            JOIN _design USING (_h), (SELECT sum(_m) AS _all_units FROM _design)
            GROUP BY {self.by}, _h, _m, _all_units"""

    def result(self) -> str:
        """One row for each measure and domain."""
        absent = ""
        if self.single == "centre" and self.statistic == "total":
            missing = "(any_value(_alone) - count(*) FILTER (_m = 1))"
            absent = f" + {missing} * (any_value(_est#) / any_value(_all_units)) ** 2"
        no_error = f"any_value({'_most' if self.single == 'zero' else '_all_units'}) = 1"
        parts = self.each(
            f"CASE WHEN {no_error} OR any_value(_est#) IS NULL THEN NULL ELSE sqrt(sum(_v#){absent}) END AS _se#, "
            "any_value(_est#) AS _est#, any_value(_population#) AS _population#, any_value(_known#) AS _known#, "
            "sum(_c# - 1) FILTER (_c# > 0)::BIGINT AS _df#, count(*) FILTER (_m = 1 AND _c# > 0) AS _single#"
        )
        alike = " AND ".join(f"s.{name} IS NOT DISTINCT FROM t.{name}" for name in self.by.split(", "))
        shown = ", ".join(f"s.{name}" for name in self.by.split(", "))
        structs = []
        for place in self.places:
            name = self.measures[place]
            is_share = self.statistic == "mean" and self.relation.type_of(name) == "BOOLEAN"
            rule = f"sdc_unreliable(_est{place}, _se{place}, _known{place})" if is_share else "NULL::BOOLEAN"
            said = (
                f"CASE WHEN _single{place} = 1 THEN 'a stratum has a single primary sampling unit' "
                f"WHEN _single{place} > 1 THEN _single{place} || ' strata have a single primary sampling unit each' END"
            )
            structs.append(
                f"{{'place': {place}, 'measure': {literal(name)}, 'n': _known{place}, "
                f"'population': _population{place}, "
                f"'est': _est{place}, 'se': _se{place}, 'df': _df{place}, 'suppressed': {rule}, 'warning': {said}}}"
            )
        return f"""
            SELECT {self.by}, unnest([{", ".join(structs)}]) AS _r
            FROM (
                SELECT {shown}, {parts} FROM _strata s JOIN _domains t ON {alike},
                    (SELECT sum(_m) AS _all_units, count(*) FILTER (_m = 1) AS _alone, max(_m) AS _most FROM _design)
                GROUP BY ALL
            )"""


def plan_estimates(
    session: Session, text: str | None, measures: list[str] | None, domains: list[str] | None, weight: str | None,
    strata: str | None, psu: str | None, statistic: str | None, denominator: str | None, single: str | None,
    nulls: str | None,
) -> str:  # fmt: skip
    """``sdc_estimates``."""
    relation = source(session.cursor(), text, "source")
    needed(measures, "measures", "name columns of numbers or truth values")
    names = relation.named(measures, "measures")
    for name in names:
        _measure(relation, name, "measures")
    asked = choice(statistic, "statistic", STATISTICS)
    if asked == "ratio" and denominator is None:
        raise wrong("denominator", "name the column that a ratio is divided by")
    if asked != "ratio" and denominator is not None:
        raise wrong("denominator", "be left out", "it is for statistic := 'ratio'")
    return _Call(
        relation, names, relation.named(domains, "domains", _TAKEN),
        None if weight is None else relation.number(weight, "weight"),
        None if strata is None else relation.column(strata, "strata"),
        None if psu is None else relation.column(psu, "psu"),
        asked, None if denominator is None else _measure(relation, denominator, "denominator"),
        choice(single, "single", _SINGLE), choice(nulls, "nulls", _NULLS), range(len(names)),
    ).query()  # fmt: skip


def _measure(relation: Source, name: str, argument: str) -> str:
    """The quoted name of a column of numbers or truth values."""
    is_truth = relation.type_of(name) == "BOOLEAN" if relation.column(name, argument) else False
    return relation.column(name, argument) if is_truth else relation.number(name, argument)


PLANNERS = planners(plan_estimates)
