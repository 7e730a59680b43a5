"""The SQL of the desk: calls of the house's functions, made from what was picked in a form.

Every name and value goes through `sdcduck.quoting`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sdcduck.desk.forms import Form
from sdcduck.errors import SDCError
from sdcduck.quoting import folded, identifier, literal, sql_value

SAMPLE = 20_000
"""Records that guesses are made from."""


def call(function: str, *given: Any, **named: Any) -> str:
    """A call of a table function, without the arguments that are None.

    >>> print(call("sdc_k_anonymity", "people", keys=['a"b', "it's"], k=None))
    FROM sdc_k_anonymity('people', keys := ['a"b', 'it''s'])
    """
    arguments = [sql_value(value) for value in given]
    arguments += [f"{name} := {sql_value(value)}" for name, value in named.items() if value is not None]
    return f"FROM {function}({', '.join(arguments)})"


def named(table: str) -> str:
    """A table as an argument of a function names it: in double quotes where SQL needs them.

    >>> print(named("people"), named('a"b'))
    people "a""b"
    """
    return table if table.isascii() and table.isidentifier() else identifier(table)


def hierarchy_query(table: str, columns: Sequence[str]) -> str:
    """How many values columns have, each, and every two of them together, in a sample of the records."""
    counted = ["count(*)", *(f"count(DISTINCT {identifier(one)})" for one in columns)]
    pairs = itertools.combinations(columns, 2)
    counted += [f"count(DISTINCT struct_pack(a := {identifier(a)}, b := {identifier(b)}))" for a, b in pairs]
    shown = ", ".join(f"{what} AS c{place}" for place, what in enumerate(counted))
    return f"SELECT {shown} FROM (FROM {identifier(table)} USING SAMPLE reservoir({SAMPLE} ROWS) REPEATABLE (1))"


def summary(table: str) -> str:
    """What the columns of a table are like, by a sample of its records."""
    return f"SUMMARIZE FROM {identifier(table)} USING SAMPLE reservoir({SAMPLE} ROWS) REPEATABLE (1)"


@dataclass(frozen=True)
class Draft:
    """A publication as it was picked.

    Attributes:
        name: of the publication.
        table: where its records are.
        dimensions, measures: columns.
        nested: each dimension lies in the one before: tables by the first, by the first two, and so on.
        within: by dimension, the one that its values lie in, as towns lie in regions.
    """

    name: str
    table: str
    dimensions: tuple[str, ...]
    measures: tuple[str, ...]
    nested: bool = False
    within: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, form: Form) -> Draft:
        """What a form says.

        Raises:
            SDCError: it leaves out what a publication needs.
        """
        dimensions = tuple(form.all("dimension"))
        measures = tuple(form.all("measure"))
        if not form.has("table"):
            raise SDCError("pick the table that the publication is made from")
        if not dimensions:
            raise SDCError("pick at least one dimension: the columns that the tables are broken down by")
        both = next((name for name in measures if name in dimensions), None)
        if both is not None:
            raise SDCError(f"'{both}' cannot be a dimension and a measure at once")
        nested = form.one("sets") == "nested"
        within = {} if nested else _within(form, dimensions)
        return cls(form.one("publication"), form.one("table"), dimensions, measures, nested, within)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each dimension whose values lie in those of another, and this one."""
        if self.nested:
            return [(low, above) for above, low in itertools.pairwise(self.dimensions)]
        return list(self.within.items())

    @property
    def count(self) -> str:
        """What the number of records is called: n, unless a column is."""
        taken = {folded(name) for name in (*self.dimensions, *self.measures)}
        return next(name for name in ("n", "records", *(f"n{k}" for k in range(99))) if name not in taken)

    @property
    def query(self) -> str:
        """The SELECT.

        >>> print(Draft("p", "people", ("region", 'a"b'), ("income",)).query)
        SELECT "region", "a""b", count(*) AS "n", sum("income") AS "income"
        FROM "people"
        GROUP BY CUBE ("region", "a""b")
        """
        by = ", ".join(map(identifier, self.dimensions))
        sums = "".join(f", sum({identifier(name)}) AS {identifier(name)}" for name in self.measures)
        return (
            f"SELECT {by}, count(*) AS {identifier(self.count)}{sums}\n"
            f"FROM {identifier(self.table)}\nGROUP BY {self.groups}"
        )

    @property
    def groups(self) -> str:
        """The grouping sets: levels of a hierarchy are totalled one after the other, all else in all combinations.

        >>> Draft("p", "people", ("town", "sex", "region", "age"), (), within={"town": "region"}).groups
        'ROLLUP ("region", "town"), CUBE ("sex", "age")'
        """
        if self.nested:
            return f"ROLLUP ({', '.join(map(identifier, self.dimensions))})"
        chains = []
        for name in self.dimensions:
            if name in self.within.values():
                continue
            chain = [name]
            while chain[0] in self.within:
                chain.insert(0, self.within[chain[0]])
            chains.append(chain)
        alone = ", ".join(identifier(chain[0]) for chain in chains if len(chain) == 1)
        sets = [f"ROLLUP ({', '.join(map(identifier, chain))})" for chain in chains if len(chain) > 1]
        return ", ".join([*sets, *([f"CUBE ({alone})"] if alone else [])])


LIES_IN = "lies_in."
"""How fields of a form begin that say in which other column the values of one lie."""


def _within(form: Form, dimensions: Sequence[str]) -> dict[str, str]:
    """The hierarchies of the dimensions that were picked: what lies in one that was not, lies in the next above it.

    >>> _within(Form.read("lies_in.town=county&lies_in.county=region"), ["town", "region"])
    {'town': 'region'}

    Raises:
        SDCError: they go round in a circle, or two columns lie in the same one.
    """
    said = {name.removeprefix(LIES_IN): value for name, value in form.fields if name.startswith(LIES_IN)}
    within = {name: _next_picked(name, said, dimensions) for name in dimensions}
    within = {name: above for name, above in within.items() if above}
    twice = next((above for above in within.values() if list(within.values()).count(above) > 1), None)
    if twice is not None:
        raise SDCError(f"two columns lie in '{twice}': a publication has one hierarchy of it; make two publications")
    for name in within:
        seen = [name]
        while seen[-1] in within:
            seen.append(within[seen[-1]])
            if seen[-1] == name:
                raise SDCError(f"'{name}' lies in itself: say 'nothing' for the column at the top")
    return within


def _next_picked(name: str, said: Mapping[str, str], picked: Sequence[str]) -> str:
    """The first column above one that was picked, or an empty text."""
    above, left = said.get(name, ""), len(said)
    while above not in picked and left > 0:
        above, left = said.get(above, ""), left - 1
    return above if above in picked else ""


def rules_of(form: Form) -> dict[str, Any]:
    """The rules that a form says, as arguments of ``sdc_suppress``; what was left empty is None.

    >>> rules = rules_of(Form.read("max_count=3&dominance_n=1&dominance_k=75"))
    >>> {name: value for name, value in rules.items() if value is not None}
    {'max_count': 3, 'dominance': [(1, 75)]}

    Raises:
        SDCError: half a dominance rule, or no rule at all.
    """
    n, k = form.whole("dominance_n", "largest contributors"), form.number("dominance_k", "per cent of the total")
    if (n is None) != (k is None):
        raise SDCError("a dominance rule needs two numbers: how many contributors, and what per cent of the total")
    rules: dict[str, Any] = {
        "rules": form.one("rules") or None,
        "max_count": form.whole("max_count", "records"),
        "protect_zeros": True if form.has("protect_zeros") else None,
        "min_contributors": form.whole("min_contributors", "contributors"),
        "dominance": None if n is None or k is None else [(n, _short(k))],
        "p_percent": _short(form.number("p_percent", "per cent")),
    }
    if not any(value is not None for name, value in rules.items() if name != "protect_zeros"):
        if not rules["protect_zeros"]:
            raise SDCError("give at least one rule, such as: cells of 1 to 2 records are not published")
        rules["max_count"] = 0
    contributors = any(rules[name] is not None for name in ("min_contributors", "dominance", "p_percent"))
    if contributors or rules["rules"] is not None:
        contributor = form.one("contributor")
        rules["contributor"] = identifier(contributor) if contributor else None
        rules["value"] = form.one("value") or None
    rules["protect_intervals"] = True if form.has("protect_intervals") else None
    return rules


def _short(value: float | None) -> float | int | None:
    return int(value) if value is not None and value.is_integer() else value


def in_words(rules: Mapping[str, Any]) -> list[str]:
    """What rules mean, a sentence each.

    >>> in_words({"max_count": 2, "p_percent": None})
    ['Cells of 1 to 2 records are not published: whoever is in one could tell the others.']
    """
    said = []
    if (most := rules.get("max_count")) is not None and most >= 1:
        those = f"1 to {most} records" if most > 1 else "1 record"
        said.append(f"Cells of {those} are not published: whoever is in one could tell the others.")
    if rules.get("protect_zeros"):
        said.append("Cells of 0 records are not published: that nobody is there tells something of everybody.")
    if (least := rules.get("min_contributors")) is not None:
        said.append(f"Cells of fewer than {least} contributors are not published: these could tell each other's value.")
    for n, k in rules.get("dominance") or ():
        who = "its largest contributor has" if n == 1 else f"its {n} largest contributors have"
        said.append(f"A cell is not published where {who} more than {k} per cent of it: the total nearly is theirs.")
    if (p := rules.get("p_percent")) is not None:
        said.append(
            f"A cell is not published where its second contributor could tell the largest one's value to within {p} "
            "per cent."
        )
    if (name := rules.get("rules")) is not None:
        said.append(f"The rules of the house, {name}, hold where nothing else was said.")
    # Rules on what one contributor can tell of another mean an interval: these get it anyway.
    if rules.get("protect_intervals") or rules.get("dominance") or rules.get("p_percent") is not None:
        said.append("More is left out until no suppressed value can be told more closely than its rule allows.")
    return said


def from_empty(register: str, tables: Iterable[str]) -> str:
    """The beginning of a script that starts with an empty database: the records, from the register.

    >>> print(from_empty("register.duckdb", ["people"]))
    ATTACH 'register.duckdb' AS "the register" (READ_ONLY);
    CREATE TABLE "people" AS FROM "the register"."main"."people";
    <BLANKLINE>
    """
    lines = [f'ATTACH {literal(register)} AS "the register" (READ_ONLY);']
    lines += [f'CREATE TABLE {identifier(name)} AS FROM "the register"."main".{identifier(name)};' for name in tables]
    return "\n".join(lines) + "\n"
