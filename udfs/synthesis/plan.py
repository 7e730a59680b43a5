"""The arguments of synthetic records, checked as far as that can be done without reading the records."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import duckdb

from sdcduck.errors import SDCError, unknown
from sdcduck.functions.registry import Session
from sdcduck.methods.synthesis.records import COLUMN_METHODS, METHODS
from sdcduck.methods.synthesis.regressions import NUMBERS
from sdcduck.quoting import folded, identifier, literal
from sdcduck.udfs.arguments import choice, is_finite, struct, whole, wrong
from sdcduck.udfs.arguments import share as a_share
from sdcduck.udfs.source import Source, source
from sdcduck.udfs.synthesis.columns import Encoding, encoding_of


@dataclass(frozen=True)
class Rule:
    """Bounds of a column where a condition on other columns holds.

    Attributes:
        condition: SQL.
        low, high: SQL of the bounds, in the type of the column; None: no bound.
    """

    condition: str
    low: str | None
    high: str | None


@dataclass(frozen=True)
class Output:
    """One column of the result.

    Attributes:
        name, sql_type: as in the source.
        derived: SQL that computes it from the others, or None.
        rules: bounds under conditions; where several hold, all of them.
    """

    name: str
    sql_type: str
    derived: str | None = None
    rules: tuple[Rule, ...] = ()

    @property
    def encoding(self) -> Encoding:
        """How its values travel."""
        return encoding_of(self.name, self.sql_type)


@dataclass(frozen=True)
class Plan:
    """What is to be fitted, checked as far as that can be done without reading the records.

    Attributes:
        relation: the original records.
        outputs: all columns.
        visit: places of the columns to be drawn, in this order.
        by_size: whether the numbers among them are to be put in the order of their sums before.
        weight: place of the column that says how often a record counts in these sums, or None.
        predictors: by place, the columns that it may depend on; if the order is still to be found, also those that may
            come after it.
        near_constant: whether predictors that hardly vary are used.
        by: places of the columns whose values make strata.
        joint: places of the columns that are drawn as whole combinations.
        bounded: places of the columns with bounds, conditional ones too.
        method: of all columns.
        methods: by place, of those that have another one.
        smoothed: places of the numbers that get noise, and of each whether only if its values are so fine that they
            name a person.
        bounds: by place, the least and largest value, encoded.
        bases: by place, what results are multiples of, encoded.
        subset: condition on the records to be synthesised, or None.
        partial: whether other columns or records stay as they are.
        unique_copies: whether a record may equal an original one that is unique; None: as few as possible.
        proper: whether the model learns from records drawn with replacement.
    """

    relation: Source
    outputs: tuple[Output, ...]
    visit: tuple[int, ...]
    by_size: bool
    weight: int | None
    predictors: dict[int, tuple[int, ...]]
    near_constant: bool
    by: tuple[int, ...]
    joint: tuple[int, ...]
    bounded: tuple[int, ...]
    method: str
    methods: dict[int, str]
    smallest_leaf: int
    smoothed: dict[int, bool]
    groups: int
    exclude: tuple[float, ...]
    bounds: dict[int, tuple[float, float]]
    bases: dict[int, float]
    redraws: int
    train_rows: int | None
    max_categories: int | None
    count_zero: bool
    subset: str | None
    share: float | None
    partial: bool
    unique_copies: bool | None
    proper: bool
    seed: int | None

    @property
    def methods_told(self) -> str:
        """The methods of all columns that are drawn."""
        return ", ".join(sorted({self.methods.get(place, self.method) for place in self.visit}))

    def most_categories(self, texts: int) -> int:
        """Different texts that a column with so many of them may have: names must not be learnt from a short list."""
        if self.max_categories is not None:
            return self.max_categories
        return min(_MOST_CATEGORIES, max(_FEW_CATEGORIES, texts // 2))


_MOST_CATEGORIES, _FEW_CATEGORIES = 1000, 20
_BY_SIZE = "weighted_abs"
_SMOOTHINGS = ("none", "density")


class _Names:
    """Finds the places of columns by their names."""

    def __init__(self, relation: Source) -> None:
        self._relation = relation
        self.all = tuple(relation.columns)
        self._places = {folded(name): place for place, name in enumerate(self.all)}

    def place(self, name: str | None, argument: str) -> int:
        if name is None:
            raise SDCError(f"argument '{argument}' holds a NULL")
        if folded(name) not in self._places:
            raise unknown("column", name, self.all, where=f"{self._relation.described} (argument '{argument}')")
        return self._places[folded(name)]

    def has(self, name: str) -> bool:
        """Whether a column is called so."""
        return folded(name) in self._places

    def places(self, names: Sequence[str] | None, argument: str) -> list[int]:
        found = [self.place(name, argument) for name in names or ()]
        if len(set(found)) < len(found):
            raise SDCError(f"argument '{argument}' names a column twice")
        return found

    def by_place(self, given: dict[str, Any], argument: str) -> dict[int, Any]:
        places = self.places(list(given), argument)
        return dict(zip(places, given.values(), strict=True))


def _check_formula(cursor: duckdb.DuckDBPyConnection, sql: str, columns: str, relation: Source, what: str) -> None:
    try:
        cursor.execute(f"SELECT {columns}, {sql} FROM (SELECT {columns} FROM {relation.sql}) LIMIT 0")
    except duckdb.Error as problem:
        raise SDCError(f"{what}: {str(problem).splitlines()[0]}") from None


def _bounds(
    cursor: duckdb.DuckDBPyConnection, names: _Names, outputs: Sequence[Output], drawn: Sequence[int],
    text: str | None, non_negative: list[str] | None,
) -> dict[int, tuple[float, float]]:  # fmt: skip
    """Least and largest values by column, as the numbers that travel."""
    example = "{'income': [0, NULL]}"
    found: dict[int, list[float]] = {}
    for place, pair in names.by_place(struct(text, "bounds", example), "bounds").items():
        if not isinstance(pair, list) or len(pair) != 2:
            raise wrong("bounds", "hold pairs of a least and a largest value", example)
        found[place] = [-math.inf, math.inf]
        for end, value in enumerate(pair):
            if value is not None:
                found[place][end] = _encoded(cursor, outputs[place], value)
        if found[place][0] > found[place][1]:
            raise SDCError(f"argument 'bounds': nothing lies between the bounds of '{outputs[place].name}'")
    for place in names.places(non_negative, "non_negative"):
        low, high = found.get(place, [-math.inf, math.inf])
        if high < 0:
            raise SDCError(f"argument 'non_negative': the upper bound of '{outputs[place].name}' is negative")
        found[place] = [max(0.0, low), high]
    for place in found:
        _check_changeable(outputs[place], drawn, place, "bounds")
    return {place: (low, high) for place, (low, high) in found.items()}


def _check_changeable(output: Output, drawn: Sequence[int], place: int, argument: str) -> None:
    if place not in drawn:
        raise SDCError(f"argument '{argument}' names '{output.name}', which is not drawn")
    if output.encoding.kind == "s":
        raise SDCError(f"argument '{argument}' names '{output.name}', which is not a number")
    if output.encoding.kind == "t":
        raise SDCError(
            f"column '{output.name}' has numbers of too many digits for argument '{argument}': "
            "cast it to BIGINT, DOUBLE or a DECIMAL of at most 18 digits"
        )


def _encoded(cursor: duckdb.DuckDBPyConnection, output: Output, value: object, argument: str = "bounds") -> float:
    """A bound as the number that travels."""
    try:
        given = f"CAST({literal(str(value))} AS {output.sql_type})"
        row = cursor.execute(f"SELECT ({output.encoding.encoded(given)})::DOUBLE").fetchall()[0]
        number = float(row[0])
    except (duckdb.Error, TypeError):
        raise SDCError(f"argument '{argument}': a bound of '{output.name}' is not of its type") from None
    if math.isnan(number):
        raise SDCError(f"argument '{argument}': a bound of '{output.name}' is not a number")
    return number


def _with_rules(
    cursor: duckdb.DuckDBPyConnection, names: _Names, relation: Source, outputs: tuple[Output, ...],
    drawn: Sequence[int], text: str | None,
) -> tuple[Output, ...]:  # fmt: skip
    """The columns with their conditional bounds."""
    example = "{'wages': {'age < 15': [0, 0]}}"
    given = names.by_place(struct(text, "bounds_where", example), "bounds_where")
    free = [output.name for place, output in enumerate(outputs) if output.derived is None and place not in given]
    found = list(outputs)
    for place, conditions in given.items():
        output = outputs[place]
        _check_changeable(output, drawn, place, "bounds_where")
        if not isinstance(conditions, dict) or not conditions:
            raise wrong("bounds_where", "hold conditions with bounds", example)
        rules = []
        for condition, pair in conditions.items():
            if not isinstance(pair, list) or len(pair) != 2:
                raise wrong("bounds_where", "hold pairs of a least and a largest value", example)
            numbers = [None if value is None else _encoded(cursor, output, value, "bounds_where") for value in pair]
            if numbers[0] is not None and numbers[1] is not None and numbers[0] > numbers[1]:
                raise SDCError(f"argument 'bounds_where': nothing lies between the bounds of '{output.name}'")
            what = (
                "argument 'bounds_where' must hold conditions on columns that are neither derived nor bounded by "
                f"conditions themselves: '{output.name}'"
            )
            relation.check_condition(cursor, condition, free, what)
            low, high = (
                None if value is None else f"CAST({literal(str(value))} AS {output.sql_type})" for value in pair
            )
            rules.append(Rule(condition, low, high))
        found[place] = replace(output, rules=tuple(rules))
    return tuple(found)


def bounded_by_rules(output: Output) -> str:
    """The SQL of a column within those of its bounds whose conditions hold; NULL and NaN stay as they are."""
    name = identifier(output.name)
    ends = []
    for end in ("low", "high"):
        parts = [
            f"CASE WHEN {rule.condition} THEN {bound} END"
            for rule in output.rules
            if (bound := getattr(rule, end)) is not None
        ]
        ends.append(", ".join(parts))
    low, high = (
        f"{which}({parts})" if parts else "NULL" for which, parts in zip(("greatest", "least"), ends, strict=True)
    )
    message = literal(f"argument 'bounds_where': nothing lies between the bounds of '{output.name}' where several hold")
    value = name
    if ends[0]:
        value = f"greatest({value}, {low})"
    if ends[1]:
        value = f"least({value}, {high})"
    clash = f"WHEN {low} > {high} THEN error({message}) " if ends[0] and ends[1] else ""
    whole = output.sql_type not in ("FLOAT", "DOUBLE")
    unchanged = f"{name} IS NULL" if whole else f"({name} IS NULL OR isnan({name}))"
    return f"CASE WHEN {unchanged} THEN {name} {clash}ELSE {value} END"


def _method(text: str | None) -> tuple[str, dict[str, Any] | str]:
    """The method of all columns, and what is said of single ones: by name, or 'parametric'."""
    given = None if text is None else json.loads(text)
    if isinstance(given, dict):
        return "cart", given
    if given is not None and not isinstance(given, str):
        raise wrong("method", f"be one of {', '.join(map(repr, _METHODS))}", _METHODS_EXAMPLE)
    how = choice(given, "method", _METHODS)
    return ("cart", how) if how == _PARAMETRIC else (how, {})


_PARAMETRIC, _METHODS_EXAMPLE = "parametric", "or by column, such as {'income': 'normrank', 'sex': 'logreg'}"
_METHODS = (*METHODS, _PARAMETRIC)


def _methods(
    names: _Names, outputs: Sequence[Output], drawn: Sequence[int], joint: Sequence[int], given: dict[str, Any] | str
) -> dict[int, str]:
    """The columns that are not drawn from trees as the others are."""
    if isinstance(given, str):
        alone = (place for place in drawn if place not in joint)
        return {place: "normrank" if outputs[place].encoding.is_number else "polyreg" for place in alone}
    found = names.by_place(given, "method")
    for place, how in found.items():
        name = outputs[place].name
        choice(None if how is None else str(how), "method", COLUMN_METHODS, each=True)
        if place not in drawn:
            raise SDCError(f"argument 'method' names '{name}', which is not drawn")
        if place in joint:
            raise SDCError(f"argument 'method' names '{name}', which is drawn with others ('joint')")
        if how in NUMBERS and not outputs[place].encoding.is_number:
            raise SDCError(f"method '{how}' is for numbers and dates, and column '{name}' holds categories: 'polyreg'")
        if how == "norm":
            _check_changeable(outputs[place], drawn, place, "method")
    return {place: str(how) for place, how in found.items() if how != "cart"}


def _smoothed(
    names: _Names, outputs: Sequence[Output], drawn: Sequence[int], text: str | None, method: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The columns that get noise, and those about which nothing is said."""
    given = json.loads(text) if text is not None else ("density" if method == "bootstrap-noise" else {})
    open_to_us: list[int] = []
    if isinstance(given, str):
        choice(given, "smoothing", _SMOOTHINGS)
        numbers = [place for place in drawn if outputs[place].encoding.is_number]
        chosen = numbers if given == "density" else []
    elif isinstance(given, dict):
        by_place = names.by_place(given, "smoothing")
        for how in by_place.values():
            choice(str(how), "smoothing", _SMOOTHINGS, each=True)
        chosen = [place for place, how in by_place.items() if how == "density"]
        open_to_us = [place for place in drawn if place not in by_place and outputs[place].encoding.scale is not None]
    else:
        raise wrong("smoothing", "be 'none', 'density' or a struct such as {'income': 'density'}")
    for place in chosen:
        _check_changeable(outputs[place], drawn, place, "smoothing")
    if method == "bootstrap-noise" and not chosen and any(outputs[place].encoding.is_number for place in drawn):
        raise SDCError("method := 'bootstrap-noise' without smoothing would hand out original records")
    return tuple(sorted(chosen)), tuple(open_to_us)


def _predictors(
    names: _Names, text: str | None, visit: Sequence[int], kept: Sequence[int], joint: Sequence[int], *, by_size: bool
) -> dict[int, tuple[int, ...]]:
    """By column to be drawn: the kept ones and those drawn before it, or those of them that the user names.

    by_size: the order is not known yet, so that each of the others may come before.
    """
    example = "{'income': ['age', 'sex']}"
    allowed = names.by_place(struct(text, "predictors", example), "predictors")
    found: dict[int, tuple[int, ...]] = {}
    for position, place in enumerate(visit):
        before = [other for other in visit if other != place] if by_size else visit[:position]
        known = () if place in joint else (*kept, *before)
        if place in allowed and place in joint:
            raise SDCError(f"argument 'predictors' names '{names.all[place]}', which is drawn with others ('joint')")
        if place in allowed:
            if not isinstance(allowed[place], list):
                raise wrong("predictors", "hold lists of columns", example)
            chosen = names.places(allowed.pop(place), "predictors")
            for other in chosen:
                if other not in known:
                    raise SDCError(
                        f"argument 'predictors': '{names.all[other]}' is not known when '{names.all[place]}' is drawn; "
                        "put it before in argument 'visit'"
                    )
            known = tuple(chosen)
        found[place] = tuple(sorted(known))
    for place in allowed:
        raise SDCError(f"argument 'predictors' names '{names.all[place]}', which is not drawn")
    return found


# What `sdc_synth_records` and `sdc_synth_model` both take, in this order.
ARGUMENT_DEFAULTS: tuple[Any, ...] = (
    [], '"cart"', "[]", None, 5, None, 20, [0.0], None, [], None, 3, None, None, None, True, [], None, None, True,
    None, False,
)  # fmt: skip
ARGUMENT_NAMES = (
    "by", "method", "visit", "predictors", "minbucket", "smoothing", "groups", "exclude", "bounds", "non_negative",
    "round_to", "redraws", "derived", "train_rows", "max_categories", "count_zero",
    "joint", "bounds_where", "weight", "near_constant", "unique_copies", "proper",
)  # fmt: skip


def _outputs(cursor: duckdb.DuckDBPyConnection, relation: Source, formulas: Mapping[int, object]) -> tuple[Output, ...]:
    """The columns, with the formulas of those that are computed from others."""
    outputs = tuple(
        Output(name, sql_type, None if formulas.get(place) is None else str(formulas[place]))
        for place, (name, sql_type) in enumerate(relation.columns.items())
    )
    others = ", ".join(identifier(output.name) for output in outputs if output.derived is None)
    relation.check_names(tuple(relation.columns))
    if not others:
        raise SDCError("argument 'derived' leaves no column to be drawn")
    for output in outputs:
        if output.derived is not None:
            what = f"argument 'derived': '{output.name}' must be computed from columns that are not derived"
            _check_formula(cursor, f"({output.derived})::{output.sql_type}", others, relation, what)
    return outputs


def _visited(
    names: _Names, visit: str | None, asked: Sequence[int], together: Sequence[int]
) -> tuple[bool, tuple[int, ...]]:
    """Whether columns are drawn in the order of their size, and else in which."""
    named = json.loads(visit or "[]") or []
    by_size = named == _BY_SIZE
    if isinstance(named, str) and not by_size and names.has(named):
        named = [named]
    if not by_size and not isinstance(named, list):
        raise wrong("visit", f"be a list of columns, or '{_BY_SIZE}'")
    first = [] if by_size else names.places(named, "visit")
    for place in first:
        if place not in asked:
            raise SDCError(f"argument 'visit' names '{names.all[place]}', which is not drawn")
    order = (*together, *(place for place in first if place not in together))
    return by_size, order + tuple(place for place in asked if place not in order)


def _drawn_together(names: _Names, asked: Sequence[int], joint: Sequence[str] | None, how: str) -> list[int]:
    """The columns of argument ``joint``."""
    together = names.places(joint, "joint")
    for place in together:
        if place not in asked:
            raise SDCError(f"argument 'joint' names '{names.all[place]}', which is not drawn")
    if len(together) == 1 or (together and how == "bootstrap-noise"):
        raise SDCError("argument 'joint' needs two columns or more, of a method that draws them one by one")
    return together


def _weighed_by(relation: Source, names: _Names, weight: str, formulas: Mapping[int, object]) -> int:
    """The column of weights."""
    relation.number(weight, "weight")
    place = names.place(weight, "weight")
    if place in formulas:
        raise SDCError(f"argument 'weight' names '{names.all[place]}', which is computed ('derived')")
    return place


def _bases(names: _Names, outputs: Sequence[Output], order: Sequence[int], round_to: str | None) -> dict[int, float]:
    """To multiples of what columns are rounded."""
    bases: dict[int, float] = {}
    for place, base in names.by_place(struct(round_to, "round_to", "{'income': 100}"), "round_to").items():
        _check_changeable(outputs[place], order, place, "round_to")
        scale = outputs[place].encoding.scale
        if scale is None or not is_finite(base) or not 0 < base * scale < math.inf:
            raise wrong("round_to", "hold positive numbers, for columns of numbers", "{'income': 100}")
        bases[place] = float(base) * scale
    return bases


def _unique_copies(allowed: bool | None, *, partial: bool, bounds_where: str | None) -> bool | None:
    """Whether records may equal an original one that is unique; where they must not, all of them must be drawn."""
    if allowed is not False:
        return True if partial else allowed
    if partial:
        raise SDCError("unique_copies := false is for records that are wholly synthetic; here others stay as they are")
    if struct(bounds_where, "bounds_where", "{'wages': {'age < 15': [0, 0]}}"):
        raise SDCError("unique_copies := false cannot be given with 'bounds_where', which acts after the draw")
    return False


def read_plan(
    session: Session, text: str | None, targets: list[str] | None, subset: str | None, share: float | None,
    seed: int | None, by: list[str] | None, method: str | None, visit: str | None, predictors: str | None,
    minbucket: int | None, smoothing: str | None, groups: int | None, exclude: list[float] | None,
    bounds: str | None, non_negative: list[str] | None, round_to: str | None, redraws: int | None,
    derived: str | None, train_rows: int | None, max_categories: int | None, count_zero: bool | None,
    joint: list[str] | None, bounds_where: str | None, weight: str | None, near_constant: bool | None,
    unique_copies: bool | None, proper: bool | None,
) -> Plan:  # fmt: skip
    """The arguments, checked.

    Raises:
        SDCError: one of them cannot be used.
    """
    how, single = _method(method)
    if how == "cart" and find_spec("sklearn") is None:
        raise SDCError("method := 'cart' needs scikit-learn: pip install 'sdcduck[synthesis]'")
    cursor = session.cursor()
    relation = source(cursor, text, "source")
    names = _Names(relation)
    formulas = names.by_place(struct(derived, "derived", "{'total': 'wages + interest'}"), "derived")
    outputs = _outputs(cursor, relation, formulas)
    strata = names.places(by, "by")
    not_drawn = {*strata, *formulas}
    asked = names.places(targets, "columns") or [place for place in range(len(outputs)) if place not in not_drawn]
    for place in asked:
        if place in not_drawn:
            raise SDCError(f"column '{outputs[place].name}' cannot be synthesised: it is in argument 'by' or 'derived'")
    together = _drawn_together(names, asked, joint, how)
    by_size, order = _visited(names, visit, asked, together)
    kept = [place for place in range(len(outputs)) if place not in order and place not in not_drawn]
    if weight is not None and not by_size:
        raise SDCError(
            f"argument 'weight' is for visit := '{_BY_SIZE}': make weights equal with sdc_synth_equal_weights"
        )
    weighed_by = None if weight is None else _weighed_by(relation, names, weight, formulas)
    if not order:
        raise SDCError("there is no column left to be drawn")
    if subset is not None:
        relation.check_condition(cursor, subset, tuple(relation.columns), "argument 'subset' must be a condition")
    drawn = None if share is None else a_share(share, "share")
    partial = bool(kept) or subset is not None or share is not None
    for place, output in enumerate(outputs):
        if partial or place not in formulas:
            _ = output.encoding
    outputs = _with_rules(cursor, names, relation, outputs, order, bounds_where)
    smoothed, unsaid = _smoothed(names, outputs, order, smoothing, how)
    ordinary = _bounds(cursor, names, outputs, order, bounds, non_negative)
    return Plan(
        relation=relation,
        outputs=outputs,
        visit=order,
        by_size=by_size,
        weight=weighed_by,
        predictors=_predictors(names, predictors, order, kept, together, by_size=by_size),
        near_constant=near_constant is not False,
        by=tuple(strata),
        joint=tuple(together),
        bounded=tuple(sorted({*ordinary, *(place for place, output in enumerate(outputs) if output.rules)})),
        method=how,
        methods=_methods(names, outputs, order, together, single),
        smallest_leaf=whole(minbucket, "minbucket", least=1),
        # Fine ones not beside kept records, which show what is real, and not where copies are asked for.
        smoothed=dict.fromkeys(smoothed, False)
        | dict.fromkeys(() if partial or unique_copies else sorted({*unsaid} - {*together}), True),
        groups=whole(groups, "groups", least=1),
        exclude=tuple(value for value in exclude or () if value is not None),
        bounds=ordinary,
        bases=_bases(names, outputs, order, round_to),
        redraws=whole(redraws, "redraws", least=0),
        train_rows=None if train_rows is None else whole(train_rows, "train_rows", least=1),
        max_categories=None if max_categories is None else whole(max_categories, "max_categories", least=1),
        count_zero=bool(count_zero),
        subset=subset,
        share=drawn,
        partial=partial,
        unique_copies=_unique_copies(unique_copies, partial=partial, bounds_where=bounds_where),
        proper=bool(proper),
        seed=seed,
    )
