"""How the values of a key are generalised: stored hierarchies, intervals, parts of dates, shorter codes.

Each hierarchy writes SQL over the different values of a key, with a label for each level but the last, at which all
values are one. By construction values that share a label share all later ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, Protocol

import duckdb

from sdcduck.errors import SDCError, unknown
from sdcduck.functions.registry import Session
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import is_finite, listed, struct
from sdcduck.udfs.compared import kind_of
from sdcduck.udfs.hierarchy.levels import plan_levels
from sdcduck.udfs.masking.records import records
from sdcduck.udfs.source import Source, source

ALL = "*"
"""The label of the last level."""

_PARTS = {
    "day": "({0})::DATE::VARCHAR",
    "month": "year({0}) || '-' || lpad(month({0})::VARCHAR, 2, '0')",
    "quarter": "year({0}) || '-Q' || quarter({0})",
    "year": "year({0})::VARCHAR",
    "decade": "(floor(year({0}) / 10) * 10)::BIGINT || 's'",
}  # from the finest to the coarsest
_WHOLE_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
                "UHUGEINT")  # fmt: skip
_SIGNED_ZEROS = ("FLOAT", "DOUBLE")
_MOST_DECIMALS = 9
_EXACT = 2**53
_EXAMPLE = "{'age': [5, 10, 20], 'region': 'geo', 'born': ['month', 'year'], 'sex': []}"


class Hierarchy(Protocol):
    """How one key is generalised."""

    def labelled(self, cursor: duckdb.DuckDBPyConnection, values: str) -> tuple[str, int]:
        """SQL for ``id``, ``label0``, ``label1``, .. of each value, ``span0``, .. if it knows them; how many labels.

        Args:
            values: name of a table with the values ``v`` of the key, their number ``id`` and their records ``n``.

        Raises:
            SDCError: a value has no place in it.
        """


@dataclass(frozen=True)
class AsItIs:
    """A value stays, or becomes all."""

    def labelled(self, cursor: duckdb.DuckDBPyConnection, values: str) -> tuple[str, int]:
        return f"SELECT id, v::VARCHAR AS label0 FROM {values}", 1


@dataclass(frozen=True)
class Intervals:
    """Intervals of numbers, closed on the left, of ever larger widths that divide each other.

    Attributes:
        widths: in whole steps.
        origin: where an interval begins, in steps.
        steps: of a unit: 1 for whole numbers.
        whole: whether the column holds whole numbers.
    """

    name: str
    widths: tuple[int, ...]
    origin: int
    steps: int
    whole: bool

    def labelled(self, cursor: duckdb.DuckDBPyConnection, values: str) -> tuple[str, int]:
        first = self.widths[0]
        exact = self.whole and self.steps == 1
        if exact:
            usable, where, near = "TRY_CAST(v AS BIGINT) IS NOT NULL", "64 bits", "0"
            place = _floored(f"(TRY_CAST(v AS BIGINT)::HUGEINT - {self.origin})", first)
        else:
            scaled = f"(v::DOUBLE * {self.steps} - {self.origin})"
            usable, where = f"isfinite(v::DOUBLE) AND abs({scaled}) < {_EXACT}", "2^53 steps, and no NaN or infinity"
            near = f"floor(CASE WHEN {usable} THEN {scaled} ELSE 0 END / {first})::HUGEINT"
            # The bounds decide as they are written, whatever a division makes of 0.29 / 0.01.
            place = (
                f"near + (v::DOUBLE >= {self._bound('near + 1', first)})::INTEGER "
                f"- (v::DOUBLE < {self._bound('near', first)})::INTEGER"
            )
        _refuse(cursor, values, f"NOT ({usable})", f"column '{self.name}' beyond {where}")
        labels, spans = [], ["0::DOUBLE AS span0"]
        for level, width in enumerate(self.widths, 1):
            at = _floored("place", width // first)
            text = f"'[' || {self._text(at, width)} || ', ' || {self._text(f'({at} + 1)', width)} || ')'"
            labels.append(f"CASE WHEN v IS NOT NULL THEN {text} END AS label{level}")
            share = (
                f"{width}::DOUBLE / {self.steps} / nullif((SELECT max(v)::DOUBLE - min(v)::DOUBLE FROM {values}), 0)"
            )
            spans.append(f"CASE WHEN v IS NULL THEN 0 ELSE coalesce(least(1, {share}), 0) END AS span{level}")
        return (
            f"SELECT id, v::VARCHAR AS label0, {', '.join([*labels, *spans])} FROM (SELECT *, {place} AS place "
            f"FROM (SELECT *, {near} AS near FROM {values}))"
        ), len(self.widths) + 1

    def _bound(self, place: str, width: int) -> str:
        return f"({self.origin} + ({place}) * {width})::DOUBLE / {self.steps}"

    def _text(self, place: str, width: int) -> str:
        whole = f"{self.origin}::HUGEINT + {place} * {width}"
        return f"({whole})::VARCHAR" if self.steps == 1 else f"({self._bound(place, width)})::VARCHAR"


def _floored(number: str, by: int) -> str:
    """SQL of the floor of a quotient of whole numbers; that of DuckDB goes towards 0."""
    return f"(({number} - (({number} % {by}) + {by}) % {by}) // {by})" if by > 1 else f"({number})"


@dataclass(frozen=True)
class PartsOfDates:
    """Ever longer times of the calendar."""

    name: str
    parts: tuple[str, ...]
    is_date: bool

    def labelled(self, cursor: duckdb.DuckDBPyConnection, values: str) -> tuple[str, int]:
        far = "" if self.is_date else " OR TRY_CAST(v AS TIMESTAMP) IS NULL"
        _refuse(cursor, values, f"NOT isfinite(v){far}", f"column '{self.name}' at infinity, or too far away")
        known = f"(CASE WHEN isfinite(v) THEN {'v' if self.is_date else 'TRY_CAST(v AS TIMESTAMP)'} END)"
        labels = (f"{_PARTS[part].format(known)} AS label{place}" for place, part in enumerate(self.parts, 1))
        return f"SELECT id, v::VARCHAR AS label0, {', '.join(labels)} FROM {values}", len(self.parts) + 1


@dataclass(frozen=True)
class ShorterCodes:
    """Texts of which ever more characters are cut from the right."""

    characters: tuple[int, ...]

    def labelled(self, cursor: duckdb.DuckDBPyConnection, values: str) -> tuple[str, int]:
        text = "v::VARCHAR"
        labels = (
            f"left({text}, greatest(length({text}) - {cut}, 0)) || repeat('*', least({cut}, length({text}))) "
            f"AS label{place}"
            for place, cut in enumerate(self.characters, 1)
        )
        return f"SELECT id, {text} AS label0, {', '.join(labels)} FROM {values}", len(self.characters) + 1


@dataclass(frozen=True)
class Stored:
    """A table of children and parents. Where branches are not equally long, a leaf repeats itself upwards.

    A single code at the top is no level of its own: it is all.
    """

    session: Session
    name: str
    table: str
    child: str
    parent: str

    def labelled(self, cursor: duckdb.DuckDBPyConnection, values: str) -> tuple[str, int]:
        try:
            tree = plan_levels(self.session, self.table, self.child, self.parent, "level_")
        except SDCError as problem:
            raise SDCError(f"the hierarchy of '{self.name}': {problem}") from None
        depth = len(cursor.execute(f"DESCRIBE {tree}").fetchall()) - 1
        cursor.execute(f"CREATE OR REPLACE TEMP TABLE _sdc_tree AS {tree}")
        lacking = "v IS NOT NULL AND v::VARCHAR NOT IN (SELECT code::VARCHAR FROM _sdc_tree)"
        row = cursor.execute(f"SELECT count(*), sum(n) FROM {values} WHERE {lacking}").fetchall()[0]
        if row[0]:
            raise SDCError(
                f"{row[0]} value{'s' * (row[0] > 1)} of '{self.name}', in {records(row[1])}, "
                f"{'are no leaves' if row[0] > 1 else 'is no leaf'} of its hierarchy: each needs a row as a child, and "
                "may be the parent of none"
            )
        tops = cursor.execute("SELECT count(DISTINCT level_1) FROM _sdc_tree").fetchall()[0][0]
        names = [f"level_{level}" for level in range(depth, 1 if tops == 1 else 0, -1)][1:]
        below = ", ".join(
            f"(count(*) OVER (PARTITION BY {name}) - 1)::DOUBLE / greatest(count(*) OVER () - 1, 1) AS span{place}"
            for place, name in enumerate(names, 1)
        )
        shown = "".join(
            f", {name}::VARCHAR AS label{place}, coalesce(span{place}, 0) AS span{place}"
            for place, name in enumerate(names, 1)
        )
        return (
            f"SELECT id, v::VARCHAR AS label0, 0::DOUBLE AS span0{shown} FROM {values} "
            f"LEFT JOIN (SELECT *{below and f', {below}'} FROM _sdc_tree) ON v::VARCHAR = code::VARCHAR"
        ), len(names) + 1


def _refuse(cursor: duckdb.DuckDBPyConnection, values: str, condition: str, what: str) -> None:
    count = cursor.execute(f"SELECT sum(n) FROM {values} WHERE v IS NOT NULL AND ({condition})").fetchall()[0][0]
    if count:
        raise SDCError(f"{records(count)} {'has' if count == 1 else 'have'} a value of {what}")


def hierarchies(session: Session, relation: Source, keys: Sequence[str], text: str | None) -> list[Hierarchy]:
    """The hierarchy of each key, from the argument ``hierarchies``.

    Raises:
        SDCError: one that cannot be read, is of no key, or is missing where there is no sensible guess.
    """
    given = {}
    for name, how in struct(text, "hierarchies", _EXAMPLE).items():
        key = next((key for key in keys if folded(key) == folded(name)), None)
        if key is None:
            raise unknown("key", name, keys, where="'keys', which argument 'hierarchies' is about")
        given[key] = how
    for name in keys:
        if relation.type_of(name) == "TIMESTAMP WITH TIME ZONE":
            raise SDCError(
                f"what day it is in '{name}' depends on the time zone: cast it to TIMESTAMP or DATE in a query in "
                "parentheses"
            )
        if _kind(relation, name) is None:
            raise SDCError(
                f"a key is a number, a date, a time, a text or a truth value; '{name}' is none of them: "
                "cast it in a query in parentheses"
            )
    # Codes that are numbers, ages and dates look alike: what they become is for their custodian to say.
    guessed = [name for name in keys if name not in given and _kind(relation, name) not in ("text", "boolean")]
    if guessed:
        raise SDCError(
            f"argument 'hierarchies' must say how {_and(guessed)} {'is' if len(guessed) == 1 else 'are'} generalised: "
            "by widths of intervals such as [5, 10, 20], parts of dates such as ['month', 'year'], a table of "
            "children and parents, or [] for a key that stays as it is or is left out"
        )
    return [_read(session, relation, name, given.get(name, [])) for name in keys]


def key_value(relation: Source, name: str, prefix: str = "") -> str:
    """SQL for the value of a key: 0 and -0 are one value, and are to have one text."""
    column = f"{prefix}{identifier(name)}"
    sql_type = relation.type_of(name)
    return f"CASE WHEN {column} = 0 THEN 0::{sql_type} ELSE {column} END" if sql_type in _SIGNED_ZEROS else column


def _kind(relation: Source, name: str) -> str | None:
    sql_type = relation.type_of(name)
    return None if sql_type == "BIGNUM" else "text" if sql_type == '"NULL"' else kind_of(sql_type)


def _and(names: Sequence[str]) -> str:
    *others, last = (f"'{name}'" for name in names)
    return f"{', '.join(others)} and {last}" if others else last


def _bad(name: str, what: str) -> SDCError:
    return SDCError(f"argument 'hierarchies': that of '{name}' must {what}")


def _read(session: Session, relation: Source, name: str, how: Any) -> Hierarchy:
    """One hierarchy."""
    fields: dict[str, Any] = how if isinstance(how, dict) else {}
    if how == []:
        return AsItIs()
    if isinstance(how, str) or "source" in fields:
        return _stored(session, name, fields or {"source": how})
    if "cut" in fields:
        _only(name, fields, ("cut",))
        return _shorter(relation, name, fields["cut"])
    if "widths" in fields:
        _only(name, fields, ("widths", "origin"))
        return _intervals(relation, name, fields["widths"], fields.get("origin"))
    if isinstance(how, list) and all(isinstance(part, str) for part in how):
        return _dates(relation, name, how)
    if isinstance(how, list):
        return _intervals(relation, name, how, 0)
    raise _bad(
        name, "be widths, parts of dates, a table of children and parents, [], or a struct with 'widths' and "
        "'origin', with 'source', 'child' and 'parent', or with 'cut'",
    )  # fmt: skip


def _only(name: str, fields: dict[str, Any], known: Sequence[str]) -> None:
    for field in fields:
        if field not in known:
            raise _bad(name, f"have no field but {listed(known)}, not '{field}'")


def _stored(session: Session, name: str, fields: dict[str, Any]) -> Hierarchy:
    _only(name, fields, ("source", "child", "parent"))
    if not all(isinstance(value, str) for value in fields.values()):
        raise _bad(name, "name a table, and its columns of children and parents")
    table = {"child": "child", "parent": "parent", **fields}
    try:
        found = source(session.cursor(), table["source"], "source")
        for column in ("child", "parent"):
            found.column(table[column], column)
    except SDCError as problem:
        raise SDCError(f"the hierarchy of '{name}': {problem}") from None
    return Stored(session, name, table["source"], table["child"], table["parent"])


def _shorter(relation: Source, name: str, how: Any) -> Hierarchy:
    cuts = how if isinstance(how, list) else [how]
    if _kind(relation, name) != "text":
        raise _bad(name, "be of a text, for its characters to be cut")
    if not cuts or not all(isinstance(cut, int) and not isinstance(cut, bool) and cut > 0 for cut in cuts):
        raise _bad(name, "hold numbers of characters to cut, such as [1, 3]")
    _rising(name, cuts)
    return ShorterCodes(tuple(cuts))


def _rising(name: str, numbers: Sequence[Any]) -> None:
    if any(one >= other for one, other in pairwise(numbers)):
        raise _bad(name, "rise from level to level")


def _dates(relation: Source, name: str, parts: list[str]) -> Hierarchy:
    sql_type = relation.type_of(name)
    if _kind(relation, name) != "instant":
        raise _bad(name, "be of a date, for its parts to be taken; a table of children and parents is one text")
    known = [part for part in _PARTS if part != "day" or sql_type != "DATE"]
    if any(part not in known for part in parts):
        raise _bad(name, f"hold {listed(known)}")
    _rising(name, [known.index(part) for part in parts])
    return PartsOfDates(name, tuple(parts), sql_type == "DATE")


def _intervals(relation: Source, name: str, widths: Any, origin: Any) -> Hierarchy:
    relation.number(name, "hierarchies")
    begin = 0 if origin is None else origin
    if not isinstance(widths, list) or not widths or not all(is_finite(one) and 0 < one < _EXACT for one in widths):
        raise _bad(name, "hold widths of intervals, positive numbers such as [5, 10, 20]")
    if not is_finite(begin) or abs(begin) >= _EXACT:
        raise _bad(name, "have a number as 'origin', where an interval begins")
    given = [Decimal(repr(one)) for one in (*widths, begin)]
    decimals = max(0, *(-int(one.normalize().as_tuple().exponent) for one in given))
    if decimals > _MOST_DECIMALS:
        raise _bad(name, f"have at most {_MOST_DECIMALS} decimals")
    scaled = [int(one.scaleb(decimals)) for one in given]
    _rising(name, scaled[:-1])
    if any(other % one for one, other in pairwise(scaled[:-1])):
        raise _bad(name, "hold widths of which each is a multiple of the one before, so that intervals nest")
    whole = relation.type_of(name) in _WHOLE_TYPES
    return Intervals(name, tuple(scaled[:-1]), scaled[-1], 10**decimals, whole)
