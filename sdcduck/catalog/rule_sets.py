"""``sdc.rule_sets``: arguments of suppression that are stored under a name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from sdcduck.catalog.database import transaction
from sdcduck.errors import unknown
from sdcduck.quoting import folded, folded_sql, sql_value


@dataclass(frozen=True)
class RuleSet:
    """Arguments of suppression under a name.

    Attributes:
        name: as it was written when the set was stored.
        arguments: those that differ from their defaults, as a planner takes them, in the order of the signature.
    """

    name: str
    arguments: Mapping[str, Any]

    @property
    def written(self) -> str:
        """The arguments as one writes them in SQL."""
        return ", ".join(
            f"{name} := {given if name in PAIRS else sql_value(given)}" for name, given in self.arguments.items()
        )


PAIRS = ("dominance", "pq")
"""Arguments that planners take, and the catalog stores, as the text of SQL."""


def rule_sets(con: duckdb.DuckDBPyConnection) -> list[RuleSet]:
    """All rule sets, in alphabetical order."""
    try:
        rows = con.execute("SELECT name, arguments FROM sdc.rule_sets ORDER BY name").fetchall()
    except duckdb.CatalogException:  # a file of an older version that is open for reading only
        return []
    return [RuleSet(name, json.loads(arguments)) for name, arguments in rows]


def rule_set(con: duckdb.DuckDBPyConnection, name: str) -> RuleSet:
    """A rule set, whatever the case of its letters.

    Raises:
        SDCError: there is none of that name.
    """
    stored = rule_sets(con)
    for one in stored:
        if folded(one.name) == folded(name):
            return one
    raise unknown("rule set", name, [one.name for one in stored])


def store_rule_set(con: duckdb.DuckDBPyConnection, rules: RuleSet) -> None:
    """Store a rule set, replacing one of the same name, all or nothing."""
    with transaction(con):
        drop_rule_set(con, rules.name)
        con.execute("INSERT INTO sdc.rule_sets VALUES (?, ?)", [rules.name, json.dumps(rules.arguments)])


def drop_rule_set(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove a rule set."""
    con.execute(f"DELETE FROM sdc.rule_sets WHERE {folded_sql('name')} = ?", [folded(name)])
