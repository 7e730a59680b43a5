"""Arguments of a call, completed by those of a stored rule set."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import duckdb

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.functions.reference import sql_functions


@cache
def defaults() -> Mapping[str, Any]:
    """What the arguments that a set may have are where nobody gives them, in the order of the signatures."""
    known = {one.name: one.parameters for one in sql_functions()}
    return {
        name: json.loads(default.lower())
        for function in ("sdc_suppress", "sdc_rules")
        for name, default in known[function]
        if default is not None
    }


def is_given(name: str, value: Any) -> bool:
    """Whether an argument says something: NULL does not, and neither does its default."""
    return value is not None and value != defaults()[name]


def completed(
    cursor: duckdb.DuckDBPyConnection, rules: str | None, names: Sequence[str], arguments: Sequence[Any]
) -> tuple[Sequence[Any], catalog.RuleSet | None]:
    """The arguments of a call by these names, with those of a rule set where it gives none, and the set.

    Raises:
        SDCError: no such rule set, or one with an argument that there is not: no rule is left out without a word.
    """
    if rules is None:
        return arguments, None
    stored = catalog.rule_set(cursor, rules)
    for name in stored.arguments:
        if name not in defaults():
            raise SDCError(f"the rule set '{stored.name}' has an argument '{name}', which is none: store it anew")
    return [
        value if is_given(name, value) else stored.arguments.get(name, value)
        for name, value in zip(names, arguments, strict=True)
    ], stored


@contextmanager
def naming(rules: catalog.RuleSet | None) -> Iterator[None]:
    """Says of what is wrong with an argument what the rule set says, as it may be one that the call does not have."""
    try:
        yield
    except SDCError as problem:
        if rules is None:
            raise
        raise SDCError(f"{problem}; the rule set '{rules.name}' says {rules.written}") from None
