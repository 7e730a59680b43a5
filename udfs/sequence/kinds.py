"""Kinds of columns that knowledge is about: how values are read, how far apart they are, and what two say together.

What is known of a column may be less than a value: some categories, an interval, a node of a tree, which stands for all
that is below it. Two of them *fit* where both can be true of one person, and then say more together (`both`). One is
*within* another where it says all that the other does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import duckdb

from sdcduck.errors import SDCError
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import is_finite, needed, struct, wrong
from sdcduck.udfs.source import source

_EXAMPLE = "{'sex': 'nominal', 'age': 'interval', 'income': {'largest': 1e6}, 'illness': {'taxonomy': 'illnesses'}}"
_KINDS = "be 'nominal', 'interval', {'step': ..}, {'largest': ..} or {'taxonomy': ..}"
_NUMBER = r"[-+]?[0-9]*[.]?[0-9]+(?:[eE][-+]?[0-9]+)?"
_INTERVAL = rf"^\s*\[\s*({_NUMBER})\s*,\s*({_NUMBER})\s*[\[)]\s*$"


class Kind(ABC):
    """How the values of a column are read, and what is said of them; all of it is SQL."""

    sql_type: str
    """Of what is known of the column."""

    @abstractmethod
    def read(self, name: str, sql_type: str, which: str) -> str:
        """A value, from the column of one of the tables; NULL for NULL."""

    @abstractmethod
    def distance(self, a: str, b: str) -> str:
        """The distance of two values."""

    def known(self, value: str) -> str:
        """What a value that was read says, in one form; NULL for NULL."""
        return value

    @abstractmethod
    def fits(self, a: str, b: str) -> str:
        """Whether both may be true."""

    @abstractmethod
    def both(self, a: str, b: str) -> str:
        """What two say together that fit."""

    @abstractmethod
    def within(self, a: str, b: str) -> str:
        """Whether one says all that the other does."""

    def apart(self, a: str, b: str) -> str:
        """The distance of what is known."""
        return self.distance(a, b)

    @abstractmethod
    def shown(self, a: str) -> str:
        """What is known, as a text."""


class _Nominal(Kind):
    sql_type = "VARCHAR[]"

    def read(self, name: str, sql_type: str, which: str) -> str:
        if sql_type.endswith("]"):
            return f"{identifier(name)}::VARCHAR[]"
        return f"CASE WHEN {identifier(name)} IS NOT NULL THEN [{identifier(name)}::VARCHAR] END"

    def distance(self, a: str, b: str) -> str:
        return f"sdc_dist_jaccard({a}, {b})"

    def known(self, value: str) -> str:
        return f"list_sort(list_distinct({value}))"

    def fits(self, a: str, b: str) -> str:
        return f"list_has_any({a}, {b})"

    def both(self, a: str, b: str) -> str:
        return f"list_sort(list_intersect({a}, {b}))"

    def within(self, a: str, b: str) -> str:
        return f"len({a}) > 0 AND list_has_all({b}, {a})"

    def shown(self, a: str) -> str:
        return f"CASE WHEN len({a}) = 1 THEN ({a})[1] ELSE {a}::VARCHAR END"


class _Interval(Kind):
    sql_type = "STRUCT(low DOUBLE, high DOUBLE)"

    def __init__(self, step: float) -> None:
        self._step = repr(step)

    def read(self, name: str, sql_type: str, which: str) -> str:
        text = f"{identifier(name)}::VARCHAR"
        single = f"TRY_CAST({text} AS DOUBLE)"
        ends = [f"TRY_CAST(regexp_extract({text}, {literal(_INTERVAL)}, {part}) AS DOUBLE)" for part in (1, 2)]
        problem = literal(f"argument '{which}': a value of '{name}' is no number, and no interval such as [20, 30)")
        return (
            f"CASE WHEN {identifier(name)} IS NULL THEN NULL "
            f"WHEN isfinite({single}) THEN {{'low': {single}, 'high': {single} + {self._step}}} "
            f"WHEN {ends[0]} < {ends[1]} THEN {{'low': {ends[0]}, 'high': {ends[1]}}} "
            f"ELSE error({problem}) END"
        )

    def distance(self, a: str, b: str) -> str:
        return f"sdc_dist_interval(({a}).low, ({a}).high, ({b}).low, ({b}).high, step := {self._step})"

    def fits(self, a: str, b: str) -> str:
        return f"({a}).low < ({b}).high AND ({b}).low < ({a}).high"

    def both(self, a: str, b: str) -> str:
        return f"{{'low': greatest(({a}).low, ({b}).low), 'high': least(({a}).high, ({b}).high)}}"

    def within(self, a: str, b: str) -> str:
        return f"({a}).low >= ({b}).low AND ({a}).high <= ({b}).high"

    def shown(self, a: str) -> str:
        low, high = (f"regexp_replace(({a}).{end}::VARCHAR, '[.]0$', '')" for end in ("low", "high"))
        single = f"({a}).high - ({a}).low <= {self._step}"
        return f"CASE WHEN {single} THEN {low} ELSE concat('[', {low}, ', ', {high}, ')') END"


class _Number(Kind):
    sql_type = "DOUBLE"

    def __init__(self, largest: float) -> None:
        self._largest = repr(largest)

    def read(self, name: str, sql_type: str, which: str) -> str:
        number = f"TRY_CAST({identifier(name)}::VARCHAR AS DOUBLE)"
        problem = literal(f"argument '{which}': a value of '{name}' is no finite number")
        return (
            f"CASE WHEN {identifier(name)} IS NULL THEN NULL WHEN isfinite({number}) THEN {number} "
            f"ELSE error({problem}) END"
        )

    def distance(self, a: str, b: str) -> str:
        problem = literal("argument 'kinds': two numbers are farther apart than their 'largest' difference")
        apart = f"abs({a} - {b})"
        return f"CASE WHEN {apart} > {self._largest} THEN error({problem}) ELSE {apart} / {self._largest} END"

    def fits(self, a: str, b: str) -> str:
        return f"{a} = {b}"

    def both(self, a: str, b: str) -> str:
        return a

    def within(self, a: str, b: str) -> str:
        return f"{a} = {b}"

    def shown(self, a: str) -> str:
        return f"regexp_replace({a}::VARCHAR, '[.]0$', '')"


class _Node(Kind):
    """A node of a tree; what is known of it is the way from the top to it."""

    sql_type = "VARCHAR[]"

    def __init__(self, taxonomy: str) -> None:
        self._taxonomy = literal(taxonomy)

    def read(self, name: str, sql_type: str, which: str) -> str:
        return f"{identifier(name)}::VARCHAR"

    def distance(self, a: str, b: str) -> str:
        found = f"sdc_dist_taxonomy({a}, {b}, {self._taxonomy})"
        return f"CASE WHEN {a} IS NOT NULL AND {b} IS NOT NULL THEN coalesce({found}, error({_STRANGE})::DOUBLE) END"

    def known(self, value: str) -> str:
        path = f"_sdc_taxonomy_paths({self._taxonomy})[{value}]"
        return f"CASE WHEN {value} IS NOT NULL THEN coalesce({path}, error({_STRANGE})::VARCHAR[]) END"

    def fits(self, a: str, b: str) -> str:
        return f"({a})[:least(len({a}), len({b}))] = ({b})[:least(len({a}), len({b}))]"

    def both(self, a: str, b: str) -> str:
        return f"CASE WHEN len({a}) >= len({b}) THEN {a} ELSE {b} END"

    def within(self, a: str, b: str) -> str:
        return f"({a})[:len({b})] = {b}"

    def apart(self, a: str, b: str) -> str:
        return f"_sdc_apart({a}, {b})"

    def shown(self, a: str) -> str:
        return f"({a})[-1]"


_STRANGE = literal("a value is not in the taxonomy of its column")


def kinds_of(cursor: duckdb.DuckDBPyConnection, text: str | None) -> dict[str, Kind]:
    """What an argument ``kinds`` says that columns hold.

    Raises:
        SDCError: it says nothing, or nothing that there is.
    """
    given = needed(struct(text, "kinds", _EXAMPLE), "kinds", f"say what the columns hold, such as {_EXAMPLE}")
    return {name: _kind(cursor, name, how) for name, how in given.items()}


def _kind(cursor: duckdb.DuckDBPyConnection, name: str, how: Any) -> Kind:
    """What a column holds."""
    if how == "nominal":
        return _Nominal()
    if how == "interval":
        return _Interval(1)
    problem = wrong("kinds", f"{_KINDS}, for '{name}'")
    if not isinstance(how, dict) or len(how) != 1:
        raise problem
    [(field, value)] = how.items()
    if field == "taxonomy" and isinstance(value, str):
        tree = source(cursor, value, "kinds")
        if value.startswith("("):
            raise SDCError(f"the taxonomy of '{name}' must be a table or view")
        for column in ("child", "parent"):
            tree.column(column, "kinds")
        return _Node(value)
    if field not in ("step", "largest"):
        raise problem
    if not is_finite(value) or value <= 0:
        raise wrong("kinds", f"have a number above 0 as '{field}' of '{name}'")
    return _Interval(value) if field == "step" else _Number(value)
