"""Global recoding: the planners of ``sdc_recode`` and ``sdc_recode_report``. They check rules and compose SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import duckdb

from sdcduck.catalog import first_row
from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.registry import Session
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import choice, is_finite, needed, share, struct
from sdcduck.udfs.source import Source, is_number, source

_EXAMPLE = "{'age': {'width': 5}, 'region': {'groups': {'South': ['A', 'B']}}}"
_UNMATCHED = ("refuse", "keep", "null")
_PERIODS = ("week", "month", "quarter", "year", "decade")
_SHOWN = ("label", "low", "middle")
_REPLACED = ("threshold", "mean", "median")
_FEWEST = 3  # records whose mean says little of any of them
_WORDS = {
    "map": {"map", "unmatched", "other"}, "groups": {"groups", "unmatched", "other"}, "breaks": {"breaks", "labels"},
    "width": {"width", "start", "as"}, "period": {"period"},
    "coding": {"top", "top_share", "bottom", "bottom_share", "replace", "label", "bottom_label"},
}  # fmt: skip
"""What a rule of each kind may say."""
_WHOLE = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
)  # fmt: skip


@dataclass(frozen=True)
class _Recoded:
    """A column and what becomes of it.

    Attributes:
        name: of the column.
        kind: of the rule.
        sql: the new value, of the columns of the source and of the facts.
        is_text: whether the new value is one.
        limits: facts of all records, by name: aggregates.
        facts: the same, which may use the limits.
    """

    name: str
    kind: str
    sql: str
    is_text: bool
    limits: Mapping[str, str]
    facts: Mapping[str, str]


@dataclass(frozen=True)
class _Column:
    """A column of a source, and the place of its rule."""

    cursor: duckdb.DuckDBPyConnection
    relation: Source
    name: str
    place: int

    @property
    def sql(self) -> str:
        return identifier(self.name)

    @property
    def kind(self) -> str:
        """Its SQL type."""
        return self.relation.type_of(self.name)

    @property
    def is_whole(self) -> bool:
        """Whether it has whole numbers."""
        return self.kind in _WHOLE

    @property
    def is_date(self) -> bool:
        """Whether it has days, which no time zone changes."""
        return self.kind == "DATE" or (self.kind.startswith("TIMESTAMP") and "ZONE" not in self.kind)

    def wrong(self, what: str) -> SDCError:
        return SDCError(f"the rule of column '{self.name}' must {what}")

    def value(self, given: Any) -> str:
        """A value of the rule as one of the column.

        Raises:
            SDCError: it is none.
        """
        if isinstance(given, bool | int | float | str):
            plain = json.dumps(given)
            text = literal(given if isinstance(given, str) else plain)
            same = f"SELECT TRY_CAST({text} AS {self.kind}) = {text if isinstance(given, str) else plain} IS TRUE"
            try:
                found = first_row(self.cursor, same)
            except duckdb.Error:  # what cannot be compared with a column of this type
                found = None
            if found and found[0]:
                return f"{text}::{self.kind}"
        raise self.wrong(f"hold values of the column, which is {self.kind.split('(')[0]}")

    def ordered(self) -> None:
        """That it has numbers or dates."""
        if not is_number(self.kind) and not self.is_date:
            raise SDCError(f"column '{self.name}' is {self.kind.split('(')[0]}: this rule is for numbers and dates")

    @property
    def checked(self) -> str:
        """Its value, where it is a number that can be compared."""
        if self.kind not in ("FLOAT", "DOUBLE"):
            return self.sql
        return (
            f"(CASE WHEN isfinite({self.sql}) OR {self.sql} IS NULL THEN {self.sql} "
            f"ELSE error({literal(f'column {self.name} has NaN or an infinite number')}) END)"
        )


def _read(
    session: Session, text: str | None, rules: str | None, unmatched: str | None
) -> tuple[Source, list[_Recoded]]:
    cursor = session.cursor()
    relation = source(cursor, text, "source")
    given = needed(struct(rules, "rules", _EXAMPLE), "rules", f"have a rule for each column: {_EXAMPLE}")
    names = relation.named(list(given), "rules")
    how = choice(unmatched, "unmatched", _UNMATCHED)
    relation.check_names(tuple(relation.columns))
    made = []
    for place, (name, rule) in enumerate(zip(names, given.values(), strict=True)):
        column = _Column(cursor, relation, name, place)
        if not isinstance(rule, dict) or not rule:
            raise column.wrong("be a struct such as {'width': 5}")
        said = {folded(word): one for word, one in rule.items() if one is not None}
        kinds: list[str] = [kind for kind in ("map", "groups", "breaks", "width", "period") if kind in said]
        kinds += ["coding"] if said.keys() & {"top", "top_share", "bottom", "bottom_share"} else []
        if len(kinds) != 1:
            raise column.wrong("say one of map, groups, breaks, width, period, or top and bottom (or their shares)")
        unknown = sorted(said.keys() - _WORDS[kinds[0]])
        if unknown:
            raise column.wrong(f"not say '{unknown[0]}' beside {kinds[0]}")
        made.append(_KINDS[kinds[0]](column, said, how))
    return relation, made


def _values(column: _Column, said: Mapping[str, Any], unmatched: str) -> _Recoded:
    """New values for old ones."""
    kind = "map" if "map" in said else "groups"
    given = said[kind]
    if not isinstance(given, dict) or not given:
        raise column.wrong("have new values for old ones: {'map': MAP {'A': 'B'}}, {'groups': {'B': ['A']}}")
    if kind == "groups":
        lists = {new: old if isinstance(old, list) else [old] for new, old in given.items()}
    else:
        lists = {}
        for old, new in given.items():
            lists.setdefault(new if isinstance(new, str) else json.dumps(new), []).append(old)
    if not all(lists.values()):
        raise column.wrong("name old values for each new one")
    olds = [column.value(_as_given(column, old)) for several in lists.values() for old in several]
    if len(olds) != len(set(olds)):
        raise column.wrong("name each old value once")
    news = [*lists, *([str(said["other"])] if "other" in said else [])]
    how = choice(said.get("unmatched", unmatched), "unmatched", _UNMATCHED)
    type_ = _type_of(column, news)
    ends = iter(olds)
    cases = [
        f"WHEN {column.sql} IN ({', '.join(next(ends) for _ in several)}) THEN {literal(new)}::{type_}"
        for new, several in lists.items()
    ]
    facts = {}
    if "other" in said:
        rest = f"{literal(str(said['other']))}::{type_}"
    elif how == "keep":
        rest = f"{column.sql}::{type_}"
    elif how == "null":
        rest = "NULL"
    else:
        facts[f"_sdc_n{column.place}"] = f"count(*) FILTER ({column.sql} NOT IN ({', '.join(olds)}))"
        some = literal(f" records have a value of column {column.name} that its rule does not name: ")
        ways = literal("unmatched := 'keep' or 'null' leaves or loses these, 'other' in the rule gives them a value")
        rest = f"error(_sdc_n{column.place} || {some} || {ways})"
    sql = f"CASE WHEN {column.sql} IS NULL THEN NULL {' '.join(cases)} ELSE {rest} END"
    return _Recoded(column.name, kind, sql, True, {}, facts)


def _as_given(column: _Column, old: Any) -> Any:
    """A name of a struct or a key of a map as the number that it is written for."""
    if isinstance(old, str) and is_number(column.kind):
        try:
            return json.loads(old)
        except ValueError:
            return old
    return old


def _type_of(column: _Column, news: Sequence[str]) -> str:
    """That of the column, if all new values have it; or else that of text."""
    some = " AND ".join(f"TRY_CAST({literal(new)} AS {column.kind})::VARCHAR = {literal(new)}" for new in news)
    found = first_row(column.cursor, f"SELECT ({some}) IS TRUE AS same")
    return column.kind if found and found[0] else "VARCHAR"


def _breaks(column: _Column, said: Mapping[str, Any], unmatched: str) -> _Recoded:
    """Intervals between given bounds, the lower one of which belongs to it."""
    column.ordered()
    given = said["breaks"]
    if not isinstance(given, list) or not given:
        raise column.wrong("have a list of bounds as breaks")
    values = [column.value(one) for one in given]
    rising = first_row(
        column.cursor,
        f"SELECT {' AND '.join(f'{a} < {b}' for a, b in pairwise(values)) or 'true'}",
    )
    if not rising or not rising[0]:
        raise column.wrong("have breaks that grow")
    texts = [str(int(one)) if isinstance(one, float) and one.is_integer() else str(one) for one in given]
    labels = said.get("labels")
    if labels is None:
        between = [
            f"{low} to {int(high) - 1}" if column.is_whole else f"{low} to under {high}"
            for low, high in pairwise(texts)
        ]
        labels = [f"under {texts[0]}", *between, f"{texts[-1]} and over"]
    if (
        not isinstance(labels, list)
        or len(labels) != len(values) + 1
        or not all(isinstance(one, str | int | float) for one in labels)
    ):
        raise column.wrong(f"have {len(values) + 1} labels for {len(values)} breaks: also for what is below and above")
    cases = " ".join(
        f"WHEN {column.checked} < {value} THEN {literal(str(label))}"
        for value, label in zip(values, labels, strict=False)
    )
    sql = f"CASE WHEN {column.sql} IS NULL THEN NULL {cases} ELSE {literal(str(labels[-1]))} END"
    return _Recoded(column.name, "breaks", sql, True, {}, {})


def _width(column: _Column, said: Mapping[str, Any], unmatched: str) -> _Recoded:
    """Intervals of equal width."""
    width, start = said["width"], said.get("start", 0)
    if not is_number(column.kind):
        raise SDCError(f"column '{column.name}' is {column.kind.split('(')[0]}: width is for numbers")
    if not is_finite(width) or width <= 0 or not is_finite(start):
        raise column.wrong("have a width above 0, and a number as its start")
    shown = choice(said.get("as", "label"), "as", _SHOWN)
    width, start = _plain(width), _plain(start)
    if column.is_whole and isinstance(width, int) and isinstance(start, int):
        low = f"({column.sql}::HUGEINT - (({column.sql}::HUGEINT - {start}) % {width} + {width}) % {width})"
        ends = {
            "label": f"{low} || ' to ' || ({low} + {width - 1})" if width > 1 else f"{low}::VARCHAR",
            "low": f"{low}::BIGINT",
            "middle": f"{low}::DOUBLE + {(width - 1) / 2!r}",
        }
        return _Recoded(column.name, "width", ends[shown], shown == "label", {}, {})
    digits = max(_digits(width), _digits(start))
    # A value is at a bound if it is so near that only its binary form keeps it from it.
    step = f"floor(round(({column.checked}::DOUBLE - {float(start)!r}) / {float(width)!r}, 9))"
    ends = {
        "label": f"printf('%.{digits}f', {step} * {float(width)!r} + {float(start)!r}) || ' to under ' || "
        f"printf('%.{digits}f', ({step} + 1) * {float(width)!r} + {float(start)!r})",
        "low": f"round({step} * {float(width)!r} + {float(start)!r}, {digits})",
        "middle": f"round(({step} + 0.5) * {float(width)!r} + {float(start)!r}, {digits + 1})",
    }
    return _Recoded(column.name, "width", ends[shown], shown == "label", {}, {})


def _plain(given: float) -> float:
    return int(given) if float(given).is_integer() else given


def _digits(given: float) -> int:
    """Behind the point."""
    return len(repr(given).partition(".")[2]) if isinstance(given, float) and "e" not in repr(given) else 0


def _period(column: _Column, said: Mapping[str, Any], unmatched: str) -> _Recoded:
    """The first day of the period of a date."""
    if not column.is_date:
        raise SDCError(f"column '{column.name}' is {column.kind.split('(')[0]}: period is for dates and timestamps")
    period = choice(said["period"], "period", _PERIODS)
    return _Recoded(column.name, "period", f"date_trunc('{period}', {column.sql})::DATE", False, {}, {})


def _coding(column: _Column, said: Mapping[str, Any], unmatched: str) -> _Recoded:
    """The ends of a distribution."""
    column.ordered()
    replaced = choice(said.get("replace", "threshold"), "replace", _REPLACED)
    if replaced != "threshold" and not is_number(column.kind):
        raise SDCError(f"column '{column.name}' is {column.kind.split('(')[0]}: mean and median are of numbers")
    text = "label" in said or "bottom_label" in said
    if text and "replace" in said:
        raise column.wrong("say replace or label, and not both")
    if text and ("label" in said) != bool(said.keys() & {"top", "top_share"}):
        raise column.wrong("have a label for what is coded at the top, and no other")
    if text and ("bottom_label" in said) != bool(said.keys() & {"bottom", "bottom_share"}):
        raise column.wrong("have a bottom_label for what is coded at the bottom, and no other")
    limits, facts, cases, ends = {}, {}, [], {}
    for side, sign in (("top", ">"), ("bottom", "<")):
        if f"{side}_share" in said and side in said:
            raise column.wrong(f"say {side} or {side}_share, and not both")
        if f"{side}_share" in said:
            part = share(_a_number(said[f"{side}_share"]), f"{side}_share", zero=False, one=False)
            ends[side] = part
            limit = f"_sdc_{side}{column.place}"
            # So many may be beyond it, and no more: of the values that allow that the one nearest to the end.
            at = 1 - part if side == "top" else part
            order = f"{column.sql} {'' if side == 'top' else 'DESC'}"
            limits[limit] = f"quantile_disc({column.checked}, {at if side == 'top' else 1 - part!r} ORDER BY {order})"
        elif side in said:
            limit = column.value(said[side])
        else:
            continue
        beyond = f"{column.checked} {sign} {limit}"
        if text:
            new = literal(str(said["label" if side == "top" else "bottom_label"]))
        elif replaced == "threshold":
            new = limit
        else:
            new, count = f"_sdc_{side}_{replaced}{column.place}", f"_sdc_{side}_n{column.place}"
            function = "avg" if replaced == "mean" else "median"
            facts[new] = f"{function}({column.checked}::DOUBLE) FILTER ({beyond})"
            facts[count] = f"count(*) FILTER ({beyond})"
            few = f" records of column {column.name} are coded at the {side}: their {replaced} says too much of them"
            new = f"CASE WHEN {count} < {_FEWEST} THEN error({count} || {literal(few)})::DOUBLE ELSE {new} END"
        cases.append(f"WHEN {beyond} THEN {new}")
    if sum(ends.values()) >= 1:
        raise column.wrong("code fewer records than there are")
    kept = f"{column.checked}::VARCHAR" if text else column.checked
    return _Recoded(column.name, "coding", f"CASE {' '.join(cases)} ELSE {kept} END", text, limits, facts)


def _a_number(given: Any) -> float | None:
    return float(given) if is_finite(given) else None


_KINDS = {
    "map": _values, "groups": _values, "breaks": _breaks, "width": _width, "period": _period, "coding": _coding,
}  # fmt: skip


def _from(relation: Source, made: Sequence[_Recoded]) -> tuple[str, str]:
    """What stands before a SELECT of recoded columns, and after FROM."""
    limits = [f"{sql} AS {name}" for one in made for name, sql in one.limits.items()]
    facts = [f"{sql} AS {name}" for one in made for name, sql in one.facts.items()]
    named = f"WITH _sdc_records AS MATERIALIZED (FROM {relation.sql})"
    tables = "_sdc_records"
    if limits:
        named += f", _sdc_limits AS MATERIALIZED (SELECT {', '.join(limits)} FROM _sdc_records)"
        tables += ", _sdc_limits"
    if facts:
        named += f", _sdc_facts AS MATERIALIZED (SELECT {', '.join(facts)} FROM {tables})"
        tables += ", _sdc_facts"
    return named, tables


def plan_recode(session: Session, text: str | None, rules: str | None, unmatched: str | None) -> str:
    """``sdc_recode``."""
    relation, made = _read(session, text, rules, unmatched)
    named, tables = _from(relation, made)
    new = {one.name: one.sql for one in made}
    shown = [f"{new.get(name, identifier(name))} AS {identifier(name)}" for name in relation.columns]
    return f"{named} SELECT {', '.join(shown)} FROM {tables}"


def plan_recode_report(session: Session, text: str | None, rules: str | None, unmatched: str | None) -> str:
    """``sdc_recode_report``: the old and the new column beside each other."""
    relation, made = _read(session, text, rules, unmatched)
    named, tables = _from(relation, made)
    parts = [
        f"""SELECT {literal(one.name)} AS "column", {literal(one.kind)} AS rule, count(*) AS records,
            count(_old) AS known,
            count(*) FILTER (_old{"::VARCHAR" if one.is_text else ""} IS DISTINCT FROM
                _new{"::VARCHAR" if one.is_text else ""}) AS changed,
            count(_old) - count(_new) AS lost,
            count(DISTINCT _old) AS values_before, count(DISTINCT _new) AS values_after
        FROM (SELECT {identifier(one.name)} AS _old, {one.sql} AS _new FROM {tables})"""
        for one in made
    ]
    return f"{named} {' UNION ALL '.join(parts)}"


PLANNERS = planners(plan_recode, plan_recode_report)
