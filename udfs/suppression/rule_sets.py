"""Rule sets: the planners behind ``sdc_rules``, ``sdc_rule_sets`` and ``sdc_drop_rules``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.functions.registry import Rows, Session
from sdcduck.quoting import sql_value
from sdcduck.udfs.arguments import needed, without_spaces, wrong
from sdcduck.udfs.conditions import expression
from sdcduck.udfs.record_rules import RECORD_RULES, read_record_rules
from sdcduck.udfs.rule_sets import defaults, is_given
from sdcduck.udfs.suppression.pattern import ARGUMENTS, OPTIONS, read_options
from sdcduck.udfs.suppression.rules import read_rules

_COLUMN, _EXPRESSION = "name a column of the publication", "be an expression of SQL"
_TEXTS = {
    "value": _COLUMN, "freq": _COLUMN, "primary_if": _EXPRESSION, "contributor": _EXPRESSION, "weight": _EXPRESSION,
    "forced_if": _EXPRESSION, "hidden_if": _EXPRESSION, "structural_zeros": _EXPRESSION, "cost": _EXPRESSION,
}  # fmt: skip
"""What cannot be looked at closer without a publication."""


def plan_rules(session: Session, name: str | None, *arguments: Any) -> Rows:
    """``sdc_rules``: what can be checked without a publication is checked while binding."""
    called = without_spaces(name, "name")
    of_records, of_tables = arguments[: len(RECORD_RULES)], arguments[len(RECORD_RULES) :]
    read_record_rules(*of_records)
    rules = read_rules(*of_tables[len(OPTIONS) :])
    read_options(rules, *of_tables[: len(OPTIONS)])
    given = {
        argument: one
        for argument, one in zip((*RECORD_RULES, *ARGUMENTS), arguments, strict=True)
        if is_given(argument, one)
    }
    if not given:
        raise SDCError(
            "a rule set says something: give arguments of sdc_suppress, such as max_count := 3, or of "
            "sdc_check_records, such as k := 3"
        )
    cursor = session.cursor()
    for argument, wanted in _TEXTS.items():
        if argument in given:
            text = needed(given[argument], argument, wanted)
            if wanted == _EXPRESSION and expression(cursor, text) is None:
                raise wrong(argument, wanted)
    for argument, pairs in zip(catalog.PAIRS, (list(rules.dominance), rules.pq), strict=True):
        if argument in given:
            given[argument] = sql_value(pairs)
    stored = catalog.RuleSet(called, {argument: given[argument] for argument in defaults() if argument in given})

    def store() -> pa.Table:
        catalog.store_rule_set(session.cursor(), stored)
        return _listed([stored])

    return Rows(store)


def plan_rule_sets(session: Session) -> Rows:
    """``sdc_rule_sets``."""
    return Rows(lambda: _listed(catalog.rule_sets(session.cursor())))


def _listed(stored: Sequence[catalog.RuleSet]) -> pa.Table:
    return pa.table(
        {
            "name": pa.array([one.name for one in stored], pa.string()),
            "arguments": pa.array([one.written for one in stored], pa.string()),
        }
    )


def plan_drop_rules(session: Session, name: str | None) -> Rows:
    """``sdc_drop_rules``: fails while binding if there is none of that name."""
    catalog.rule_set(session.cursor(), str(name))

    def drop() -> pa.Table:
        catalog.drop_rule_set(session.cursor(), str(name))
        return pa.table({"name": [name]})

    return Rows(drop)
