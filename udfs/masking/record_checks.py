"""Records against the rules of the house: the planner of ``sdc_check_records``. All of it is one query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.registry import Session
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import choice, wrong
from sdcduck.udfs.compared import check_kinds
from sdcduck.udfs.record_rules import RECORD_RULES, RecordRules, read_record_rules
from sdcduck.udfs.risk.classes import (
    CLASS_COLUMNS,
    NULLS,
    Classes,
    anonymity,
    checked_weight,
    overall_risk,
    rare_combinations,
)
from sdcduck.udfs.rule_sets import completed, naming
from sdcduck.udfs.source import Source, source
from sdcduck.udfs.sums import total

_MOST_COMBINATIONS = 500
_FILE = "_sdc_records"


@dataclass(frozen=True)
class _Check:
    """One row of the answer.

    Attributes:
        rule: the argument that has the threshold.
        threshold: that.
        found: a query for ``value`` and what the advice needs: ``affected``, a number of records or categories, and
            ``hint``, a name; None: it cannot be checked.
        advice: SQL of what to do where the value is beyond the threshold, or of what is missing.
        about: SQL of what was looked at.
        least: whether the threshold is the smallest value that passes.
    """

    rule: str
    threshold: float
    found: str | None
    advice: str
    about: str = "NULL"
    least: bool = False

    def query(self) -> str:
        """SQL of the row: what has no value has not passed."""
        found = self.found or "SELECT NULL AS value"
        passes = f"value {'>=' if self.least else '<='} {self.threshold!r}::DOUBLE"
        nothing = "'there is nothing to check: no record has a value'" if self.found else self.advice
        return (
            f"SELECT {literal(self.rule)} AS rule, ({self.about})::VARCHAR AS about, value::DOUBLE AS value, "
            f"{self.threshold!r}::DOUBLE AS threshold, coalesce({passes}, false) AS passed, "
            f"CASE WHEN value IS NULL THEN {nothing} WHEN NOT ({passes}) THEN {self.advice} END AS message "
            f"FROM ({found})"
        )


def _missing(rule: str, threshold: float, argument: str, what: str) -> _Check:
    """The row of a rule that needs an argument which was not given: it has not passed."""
    return _Check(rule, threshold, None, literal(f"not checked: {argument} must name {what}"))


@dataclass(frozen=True)
class _Call:
    """A checked call; columns as the file calls them.

    Attributes:
        relation: the file, or what holds it while the query runs.
        lists: of keys.
        geography, measures: columns; None: nobody has said whether there are any.
        weight: the column of weights, quoted.
        population: a table of places with their population.
        original: the records that the file was made from.
        nulls: how NULL in a key counts.
        rules: what is asked.
    """

    relation: Source
    lists: tuple[tuple[str, ...], ...]
    geography: tuple[str, ...] | None
    measures: tuple[str, ...] | None
    weight: str | None
    population: Source | None
    original: Source | None
    nulls: str
    rules: RecordRules

    def checks(self) -> Iterator[_Check]:
        """The rows, in the order of the rules."""
        yield from self._of_keys()
        yield from self._of_places()
        yield from self._of_columns()
        yield from self._of_ends()
        yield from self._of_the_sample()
        yield from self._of_changes()

    def _of_keys(self) -> Iterator[_Check]:
        rules = self.rules
        wanted = {name: getattr(rules, name) for name in ("k", "max_share_unique", "max_risk", "max_mean_risk")}
        if not self.lists:
            for name, threshold in wanted.items():
                if threshold is not None:
                    yield _missing(name, threshold, "keys", "the columns by which a person could be found")
            return
        every = [Classes(self.relation, keys, self.weight, self.nulls) for keys in self.lists]
        if rules.k is not None:
            yield from (self._rare(classes, rules.k) for classes in every)
        coarser = "recode the keys (sdc_recode), suppress single values (sdc_local_suppress), or both (sdc_anonymize)"
        if rules.max_share_unique is not None:
            for classes in every:
                found = f"SELECT share_unique AS value, uniques AS affected FROM ({anonymity(classes, 2)})"
                advice = f"{_counted('affected', 'are', 'alone with these keys')} || {literal(f': {coarser}')}"
                yield _Check("max_share_unique", rules.max_share_unique, found, advice, _about(classes.keys))
        if rules.max_risk is not None:
            for classes in every:
                risk = overall_risk(classes, rules.max_risk)
                found = f"SELECT max_risk AS value, unsafe AS affected FROM ({risk})"
                advice = f"{_counted('affected', 'have', 'a higher risk')} || {literal(f': {coarser}')}"
                yield _Check("max_risk", rules.max_risk, found, advice, _about(classes.keys))
        if rules.max_mean_risk is not None:
            for classes in every:
                found = f"SELECT risk AS value, expected AS affected FROM ({overall_risk(classes, 1)})"
                advice = (
                    "'expected re-identifications: ' || round(affected, 2) || "
                    f"{literal(f': {coarser}, or release a smaller sample (sdc_substitute_subsample)')}"
                )
                yield _Check("max_mean_risk", rules.max_mean_risk, found, advice, _about(classes.keys))

    def _rare(self, classes: Classes, k: int) -> _Check:
        """The rarest combination of keys: of all of a list, or of every few of them."""
        size = self.rules.max_size
        first = "NULL"
        if self.nulls != "match":
            rare = rare_combinations(classes, k, 2)
            first = (
                f"(SELECT variable FROM ({rare}) WHERE unsafe > 0 ORDER BY dimension, unsafe DESC, variable LIMIT 1)"
            )
        if size is None or size >= len(classes.keys):
            found = f"SELECT k AS value, below_k AS affected, {first} AS hint FROM ({anonymity(classes, k)})"
        else:
            subsets = list(combinations(map(identifier, classes.keys), size))
            sums = [f"sum(records) OVER (PARTITION BY {', '.join(subset)})" for subset in subsets]
            found = (
                f"SELECT min(fewest) AS value, sum(records) FILTER (fewest < {k}) AS affected, {first} AS hint "
                f"FROM (SELECT records, least({', '.join(sums)}) AS fewest FROM ({classes.counted()}))"
            )
        rest = f"suppress single values of what is left (sdc_local_suppress, k := {k}), or let sdc_anonymize choose"
        advice = (
            f"{_counted('affected', 'are', f'in combinations of fewer than {k}')} || "
            f"coalesce(': recode ' || hint || ' first (sdc_recode), then ', ': ') || {literal(rest)}"
        )
        return _Check("k", k, found, advice, _about(classes.keys), least=True)

    def _of_places(self) -> Iterator[_Check]:
        least = self.rules.min_population
        if least is None:
            return
        if self.geography is None:
            yield _missing("min_population", least, "geography", "the columns of places, [] if there are none")
        for place in self.geography or ():
            name = identifier(place)
            counted = "count(*)::DOUBLE" if self.weight is None else total(checked_weight(self.weight))
            people = f"SELECT {counted} AS people FROM {self.relation.sql} WHERE {name} IS NOT NULL GROUP BY {name}"
            if self.population is not None:
                people = (
                    f"SELECT coalesce(p.people, 0) AS people "
                    f"FROM (SELECT DISTINCT {name} AS place FROM {self.relation.sql} WHERE {name} IS NOT NULL) f "
                    f"LEFT JOIN (SELECT {self.population.column(place, 'geography')} AS place, "
                    f"sum({self.population.column('population', 'population')}) AS people "
                    f"FROM {self.population.sql} GROUP BY ALL) p USING (place)"
                )
            found = (
                f"SELECT min(people) AS value, count(*) FILTER (people < {least!r}::DOUBLE) AS affected FROM ({people})"
            )
            unknown = self.weight is None and self.population is None
            others = "; records are counted, as there is neither weight nor population" if unknown else ""
            advice = (
                "affected || CASE WHEN affected = 1 THEN ' category is' ELSE ' categories are' END || "
                f"{literal(f' too small: put them together (sdc_recode, groups), or give a wider area{others}')}"
            )
            yield _Check("min_population", least, found, advice, literal(place), least=True)

    def _of_columns(self) -> Iterator[_Check]:
        """Direct identifiers, by their names and by what they are like."""
        rules = self.rules
        if rules.identifiers:
            known = {folded(name) for name in rules.identifiers}
            there = [name for name in self.relation.columns if folded(name) in known]
            out = f"leave them out: (SELECT * EXCLUDE ({', '.join(map(identifier, there))}) FROM ..)"
            about = literal(", ".join(there)) if there else "NULL"
            yield _Check("identifiers", 0, f"SELECT {len(there)} AS value", literal(out), about)
        if rules.max_share_own is not None:
            numbers = {*(self.measures or ()), *([self.weight] if self.weight else [])}
            each = " UNION ALL ".join(
                f"SELECT {literal(name)} AS hint, count(*) FILTER (n = 1) AS affected, "
                f"count(*) FILTER (n = 1) / sum(n) AS value FROM (SELECT count(*) AS n FROM {self.relation.sql} "
                f"WHERE {identifier(name)} IS NOT NULL GROUP BY {identifier(name)})"
                for name in self.relation.columns
                if name not in numbers and identifier(name) not in numbers
            )
            found = (
                f"(FROM ({each}) ORDER BY value DESC NULLS LAST, hint LIMIT 1)"
                if each
                else "SELECT 0 AS value, 0 AS affected"
            )
            advice = (
                f"{_counted('affected', 'have', 'a value that no other has')} || ': leave the column out or recode it "
                "(sdc_recode); what is measured is named in measures, and masked (sdc_microaggregate, sdc_add_noise)'"
            )
            yield _Check("max_share_own", rules.max_share_own, found, advice, "hint" if each else "NULL")

    def _of_ends(self) -> Iterator[_Check]:
        least = self.rules.min_at_ends
        if least is None:
            return
        if self.measures is None:
            yield _missing("min_at_ends", least, "measures", "the columns of numbers, [] if there are none")
        for measure in self.measures or ():
            name = identifier(measure)
            counts = f"SELECT {name} AS x, count(*) AS n FROM {self.relation.sql} WHERE {name} IS NOT NULL GROUP BY ALL"
            found = f"SELECT least(arg_min(n, x), arg_max(n, x)) AS value FROM ({counts})"
            advice = literal(
                f"code its ends (sdc_recode, top_share and bottom_share), or mask it (sdc_microaggregate, k := {least})"
            )
            yield _Check("min_at_ends", least, found, advice, literal(measure), least=True)

    def _of_the_sample(self) -> Iterator[_Check]:
        most = self.rules.max_fraction
        if most is None:
            return
        known, advice = "count(*)", "release a smaller sample (sdc_substitute_subsample)"
        if self.weight is not None:
            known = total(checked_weight(self.weight))
        elif self.population is not None:
            known = f"(SELECT sum({self.population.column('population', 'population')}) FROM {self.population.sql})"
        else:
            advice = f"without weight and population the file counts as everybody; {advice}"
        found = f"SELECT count(*) / nullif({known}, 0) AS value FROM {self.relation.sql}"
        yield _Check("max_fraction", most, found, literal(advice))

    def _of_changes(self) -> Iterator[_Check]:
        """What perturbation has done to totals and distributions."""
        rules = self.rules
        for rule, threshold in (("max_total_change", rules.max_total_change), ("max_ks", rules.max_ks)):
            if threshold is None:
                continue
            if self.measures is None:
                yield _missing(rule, threshold, "measures", "the columns of numbers, [] if there are none")
            elif self.measures and self.original is None:
                yield _missing(rule, threshold, "original", "the records that these were made from")
            elif self.original is not None:
                for measure in self.measures:
                    yield self._change(rule, threshold, measure, self.original)

    def _change(self, rule: str, threshold: float, measure: str, original: Source) -> _Check:
        weight = "1" if self.weight is None else checked_weight(self.weight)
        both = " UNION ALL ".join(
            f"SELECT {sign} AS side, {identifier(measure)}::DOUBLE AS x, {weight} AS w FROM {table.sql} "
            f"WHERE {identifier(measure)} IS NOT NULL"
            for sign, table in ((1, self.relation), (0, original))
        )
        if rule == "max_total_change":
            found = f"""
                SELECT CASE WHEN after = before THEN 0 WHEN before = 0 THEN 'infinity'::DOUBLE
                    ELSE round(abs(after - before) / abs(before), 12) END AS value
                FROM (SELECT coalesce(fsum(w * x) FILTER (side = 1), 0) AS after,
                    coalesce(fsum(w * x) FILTER (side = 0), 0) AS before FROM ({both}))"""
            advice = "mask less, by a method that keeps means (sdc_microaggregate), or fit the weights (sdc_rake)"
        else:
            found = f"""
                SELECT round(max(abs(below - under)), 12) AS value
                FROM (SELECT sum(one) OVER up / nullif(sum(one) OVER (), 0) AS below,
                        sum(other) OVER up / nullif(sum(other) OVER (), 0) AS under
                    FROM (SELECT x, coalesce(sum(w) FILTER (side = 1), 0) AS one,
                        coalesce(sum(w) FILTER (side = 0), 0) AS other FROM ({both}) GROUP BY x)
                    WINDOW up AS (ORDER BY x ROWS UNBOUNDED PRECEDING))"""
            advice = "mask less: smaller groups or less noise, or a method that keeps the values (sdc_rank_swap)"
        return _Check(rule, threshold, found, literal(advice), literal(measure))


def _about(keys: tuple[str, ...]) -> str:
    return literal(" x ".join(keys))


def _counted(count: str, verb: str, what: str) -> str:
    """SQL for so many records, and what is the matter with them."""
    one = {"are": "is", "have": "has"}[verb]
    return f"{count} || CASE WHEN {count} = 1 THEN ' record {one} ' ELSE ' records {verb} ' END || {literal(what)}"


def plan_check_records(
    session: Session, text: str | None, keys: str | None, rule_set: str | None, geography: list[str] | None,
    measures: list[str] | None, weight: str | None, population: str | None, original: str | None, nulls: str | None,
    *limits: Any,
) -> str:  # fmt: skip
    """``sdc_check_records``: a row a rule; what the call gives goes before what the rule set says."""
    cursor = session.cursor()
    relation = source(cursor, text, "source")
    limits_of, stored = completed(cursor, rule_set, RECORD_RULES, limits)
    with naming(stored):
        rules = read_record_rules(*limits_of)
        if not rules.any:
            raise SDCError("no rule for records: give k := 3 or other thresholds, or a rule set that has some")
    lists = _lists(relation, keys)
    known = choice(nulls, "nulls", NULLS)
    if rules.max_size is not None and lists:
        if known == "match":
            raise SDCError("argument 'max_size' goes with nulls := 'category' or 'drop'")
        if max(comb(len(one), min(rules.max_size, len(one))) for one in lists) > _MOST_COMBINATIONS:
            raise SDCError(f"more than {_MOST_COMBINATIONS} combinations of keys: take fewer keys, or another max_size")
    places = None if geography is None else relation.named(geography, "geography")
    numbers = None if measures is None else relation.named(measures, "measures")
    for measure in numbers or ():
        relation.number(measure, "measures")
    people = None if population is None else source(cursor, population, "population")
    if people is not None:
        people.number("population", "population")
        check_kinds({"source": relation, "population": people}, places or (), "geography")
    before = None if original is None else source(cursor, original, "original")
    weighted = None if weight is None else relation.number(weight, "weight")
    if before is not None and (rules.max_total_change is not None or rules.max_ks is not None):
        for measure in numbers or ():
            before.number(measure, "measures")
        if weight is not None:
            before.number(weight, "weight")
    relation.check_names(tuple(relation.columns))
    held = relation.text.startswith("(")
    # What is a query may cost more than to look at what it answers; of a table the columns that are needed are read.
    call = _Call(
        Source(relation.text, _FILE, relation.columns) if held else relation, lists, places, numbers, weighted, people,
        before, known, rules,
    )  # fmt: skip
    rows = " UNION ALL ".join(
        f"SELECT {place} AS _sdc_place, * FROM ({check.query()})" for place, check in enumerate(call.checks())
    )
    if not rows:
        raise SDCError("nothing is left to check: the rules are about columns that the call says there are none of")
    file = f"WITH {_FILE} AS MATERIALIZED (FROM {relation.sql}) " if held else ""
    return f"{file}SELECT * EXCLUDE (_sdc_place) FROM ({rows}) ORDER BY _sdc_place"


def _lists(relation: Source, text: str | None) -> tuple[tuple[str, ...], ...]:
    """The keys: one list, or several."""
    given = json.loads(text or "null")
    if not given:
        return ()
    given = [given] if isinstance(given, str) else given
    nested = isinstance(given, list) and all(isinstance(one, list) for one in given)
    lists = given if nested else [given]
    names = [name for one in lists for name in one] if isinstance(given, list) and all(lists) else [0]
    if not all(isinstance(name, str | None) for name in names):
        raise wrong("keys", "name columns, such as ['region', 'age'], or be several lists of these")
    return tuple(relation.named(one, "keys", CLASS_COLUMNS) for one in lists)


PLANNERS = (
    planner(
        plan_check_records,
        order=(
            "source", "keys", "rules", "geography", "measures", "weight", "population", "original", "nulls",
            *RECORD_RULES,
        ),
    ),
)  # fmt: skip
