"""Records as codes and numbers, and the model that is fitted to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Session
from sdcduck.methods.synthesis.copies import lonely
from sdcduck.methods.synthesis.noise import bandwidths, fine_bandwidths
from sdcduck.methods.synthesis.records import (
    Column,
    Treatment,
    canonical_order,
    fit,
    random_subset,
    with_replacement,
)
from sdcduck.methods.synthesis.regressions import CATEGORIES, MOST_TERMS, Predictor, terms_of
from sdcduck.methods.synthesis.regressions import METHODS as REGRESSIONS
from sdcduck.methods.synthesis.trees import INFINITY, LARGEST_SAMPLE, MINUS_INFINITY, NAN, NULL
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.seeds import stream_of
from sdcduck.udfs.suppression.pattern import arrow
from sdcduck.udfs.synthesis.columns import LARGEST, Encoding
from sdcduck.udfs.synthesis.drawn import Dictionary, Generator
from sdcduck.udfs.synthesis.plan import (
    Plan,
)

_MOST_STRATA = 10_000
_SHARE, _TRAIN, _PROPER = 0, 1, 2  # what records are chosen for, and of strata from here on
PURPOSE = "synthetic records"


@dataclass(frozen=True)
class Encoded:
    """A column of the records, and the values that its codes stand for."""

    column: Column
    dictionary: Dictionary

    def restricted(self, records: NDArray[np.int64]) -> Encoded:
        """The column of some of the records, with the values of these only."""
        codes = self.column.codes[records]
        used = np.unique(codes[codes >= 0])
        renewed = np.where(codes >= 0, np.searchsorted(used, codes), codes).astype(np.int32)
        taken = self.dictionary[used] if isinstance(self.dictionary, np.ndarray) else self.dictionary.take(used)
        values = None if self.column.values is None else self.column.values[used]
        return Encoded(Column(renewed, len(used), values), taken)


def encode(values: pa.ChunkedArray, how: Encoding) -> Encoded:
    """Codes of the values: places among the distinct ones, which are sorted."""
    kind = how.kind
    if kind in ("s", "t"):
        texts = values.combine_chunks().cast(pa.string()).dictionary_encode()
        dictionary = texts.dictionary
        if kind == "t":
            numbers = dictionary.cast(pa.float64()).to_numpy(zero_copy_only=False)
            order = np.lexsort((pc.rank(dictionary).to_numpy(), numbers))
        else:
            order = pc.sort_indices(dictionary).to_numpy()
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order))
        places = texts.indices.fill_null(0).to_numpy(zero_copy_only=False)
        missing = texts.indices.is_null().to_numpy(zero_copy_only=False)
        codes = np.where(missing, NULL, rank[places] if len(rank) else NULL).astype(np.int32)
        return Encoded(Column(codes, len(order), numbers[order] if kind == "t" else None), dictionary.take(order))
    numbers = values.combine_chunks()
    missing = numbers.is_null().to_numpy(zero_copy_only=False)
    plain = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    codes = np.where(missing, NULL, 0).astype(np.int32)
    if kind == "d":
        special = {NAN: np.isnan(plain), MINUS_INFINITY: plain == -np.inf, INFINITY: plain == np.inf}
    else:
        special = {MINUS_INFINITY: plain == -LARGEST, INFINITY: plain == LARGEST} if how.infinite else {}
    for code, those in special.items():
        codes[those & ~missing] = code
    finite = codes == 0
    distinct, places = np.unique(plain[finite], return_inverse=True)
    codes[finite] = places
    return Encoded(Column(codes, len(distinct), distinct.astype(np.float64)), distinct)


def _read(session: Session, plan: Plan) -> tuple[list[Encoded | None], NDArray[np.bool_]]:
    """The columns that are needed, and which records are to be synthesised."""
    needed = [place for place, output in enumerate(plan.outputs) if plan.partial or output.derived is None]
    shown = [
        f"{plan.outputs[place].encoding.encoded(identifier(plan.outputs[place].name))} AS c{place}" for place in needed
    ]
    condition = "true" if plan.subset is None else f"coalesce(({plan.subset})::BOOLEAN, false)"
    table = arrow(reads(session.cursor()), f"SELECT {', '.join(shown)}, {condition} AS chosen FROM {plan.relation.sql}")
    columns: list[Encoded | None] = [None] * len(plan.outputs)
    for place in needed:
        columns[place] = encode(table[f"c{place}"], plan.outputs[place].encoding)
    return columns, table["chosen"].combine_chunks().to_numpy(zero_copy_only=False)


def _strata(columns: Sequence[Column], by: Sequence[int], records: NDArray[np.int64]) -> NDArray[np.int64]:
    """The stratum of each of the records."""
    if not by or not len(records):
        return np.zeros(len(records), np.int64)
    codes = np.column_stack([columns[place].codes[records] for place in by])
    distinct, places = np.unique(codes, axis=0, return_inverse=True)
    if len(distinct) > _MOST_STRATA:
        raise SDCError(f"argument 'by' makes more than {_MOST_STRATA} strata: take coarser columns")
    return places.ravel().astype(np.int64)


def _counted(column: Column, training: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The codes of the finite values that records learned from have, and how many have them."""
    codes = column.codes[training]
    counts = np.bincount(codes[codes >= 0], minlength=column.size)
    used = np.flatnonzero(counts)
    return used, counts[used]


def treatments(plan: Plan, columns: Sequence[Column], training: NDArray[np.int64]) -> dict[int, Treatment]:
    """What is done to the numbers after their draw."""
    found = {}
    for place in plan.visit:
        column, how = columns[place], plan.outputs[place].encoding
        widths, step, ends = None, 0.0, (-math.inf, math.inf)
        unchanged = np.array(plan.exclude if how.scale else (), np.float64) * (how.scale or 1.0)
        is_new = plan.methods.get(place) == "norm"  # and fine without noise
        only_if_fine = None if is_new else plan.smoothed.get(place)
        if only_if_fine is not None and column.size:
            assert column.values is not None
            used, counts = _counted(column, training)
            values = column.values[used]
            noise = None
            if not only_if_fine and len(used):
                noise = bandwidths(values, counts, plan.groups, unchanged)
            elif len(used) and (fine := fine_bandwidths(values, counts, plan.groups, unchanged)) is not None:
                noise, step = fine
                # An amount stays one: what is never negative does not become it.
                ends = (0.0 if values[0] >= 0 else -math.inf, 0.0 if values[-1] <= 0 else math.inf)
            if noise is not None:
                widths = np.zeros(column.size)
                widths[used] = noise
        if widths is None and only_if_fine is not False and place not in (*plan.bounds, *plan.bases) and not is_new:
            continue
        low, high = plan.bounds.get(place, ends)
        whole = how.kind == "i"
        found[place] = Treatment(
            bandwidths=widths, low=max(low, how.low) if whole else low, high=min(high, how.high) if whole else high,
            base=plan.bases.get(place, step), whole=whole,
        )  # fmt: skip
    return found


def _in_order_of_size(plan: Plan, columns: Sequence[Column], training: NDArray[np.int64]) -> Plan:
    """The plan with its numbers in descending order of their weighted absolute sums (Bowen et al., 2022).

    Other columns come before, as they stand; the weight comes last.
    """
    weights = np.ones(len(training))
    if plan.weight is not None:
        column = columns[plan.weight]
        codes = column.codes[training]
        assert column.values is not None
        known = np.append(column.values, np.nan)  # of codes below 0
        weights = known[np.maximum(codes, -1)] / (plan.outputs[plan.weight].encoding.scale or 1.0)
        if not (weights >= 0).all():
            raise SDCError("a weight is NULL, negative or no finite number")
    sizes = {}
    for place in plan.visit:
        column, how = columns[place], plan.outputs[place].encoding
        if place in plan.joint or column.values is None or (how.scale is None and how.kind != "t"):
            continue
        codes = column.codes[training]
        finite = codes >= 0
        with np.errstate(over="ignore"):
            sizes[place] = float(np.abs(column.values[codes[finite]]) @ weights[finite]) / (how.scale or 1.0)
    numbers = sorted(sizes, key=lambda place: (place == plan.weight, -sizes[place], folded(plan.outputs[place].name)))
    visit = (*(place for place in plan.visit if place not in sizes), *numbers)
    after = {place: set(visit[position:]) for position, place in enumerate(visit)}
    predictors = {
        place: tuple(other for other in plan.predictors[place] if other not in after[place]) for place in visit
    }
    return replace(plan, visit=visit, predictors=predictors)


def checked_categories(plan: Plan, columns: Sequence[Encoded | None]) -> dict[int, int]:
    """How many different texts each column may have to be a predictor; what is drawn must not have more."""
    most = {}
    for place, column in enumerate(columns):
        if column is None or column.column.values is not None:
            continue
        texts = int((column.column.codes >= 0).sum())
        most[place] = plan.most_categories(texts)
        if place in plan.visit and column.column.size > most[place]:
            raise SDCError(
                f"column '{plan.outputs[place].name}' has {column.column.size} different texts in {texts} records, "
                f"more than {most[place]}: leave it out (a query in parentheses as source), group it, or "
                f"give max_categories := {column.column.size} if its texts tell nothing about single persons"
            )
    return most


def _check_regressions(
    plan: Plan, columns: Sequence[Column], predictors: Mapping[int, Sequence[int]],
    strata: Sequence[NDArray[np.int64]],
) -> None:  # fmt: skip
    """That regressions have as many values, and as few effects, as their methods need."""
    for place, how in plan.methods.items():
        name = plan.outputs[place].name
        for records in strata if how in REGRESSIONS else ():
            outputs = 1
            if how in CATEGORIES:
                values = len(np.unique(columns[place].codes[records]))
                if how == "logreg" and values > 2:
                    raise SDCError(
                        f"method 'logreg' is for two values, and column '{name}' has {values} (NULL is one): 'polyreg'"
                    )
                outputs = max(values - 1, 1)
            used = [
                Predictor(other, columns[other].codes[records], columns[other].size, columns[other].values)
                for other in predictors[place]
            ]
            effects = (1 + terms_of(used)) * outputs
            if effects > MOST_TERMS:
                raise SDCError(
                    f"the regression of column '{name}' has {effects} coefficients, more than {MOST_TERMS}: give fewer "
                    "or coarser 'predictors', or the method 'cart'"
                )


def fitted(session: Session, plan: Plan, rows: int | None, *, details: bool) -> Generator:
    """Read the records and fit the model."""
    encoded, chosen = _read(session, plan)
    stream = stream_of(session.secret(), PURPOSE, plan.seed)
    most = checked_categories(plan, encoded)
    count = len(chosen)
    present = [column for column in encoded if column is not None]
    order = canonical_order([column.column for column in present]) if count else np.empty(0, np.int64)
    training = order[chosen[order]]
    if plan.share is not None:
        some = random_subset(stream, len(training), math.floor(plan.share * len(training)), _SHARE)
        training = training[some]
        chosen = np.zeros(count, bool)
        chosen[training] = True
    if plan.train_rows is not None and plan.train_rows < len(training):
        training = training[random_subset(stream, len(training), plan.train_rows, _TRAIN)]
    if len(training) > LARGEST_SAMPLE:
        raise SDCError(f"a model learns from at most {LARGEST_SAMPLE} records: give train_rows")
    if not plan.partial:
        # What the model does not learn from, it must not know.
        encoded = [None if column is None else column.restricted(training) for column in encoded]
        training = np.arange(len(training))
    nothing = Column(np.full(max(count, 1), NULL, np.int32), 0)
    columns = [nothing if column is None else column.column for column in encoded]
    if plan.by_size:
        plan = _in_order_of_size(plan, columns, training)
    of_training = _strata(columns, plan.by, np.arange(count) if plan.partial else training)
    labels = of_training[training] if plan.partial else of_training
    strata = [training[labels == stratum] for stratum in np.unique(labels)] if len(training) else []
    predictors = {
        place: [
            other for other in others if columns[other].values is not None or columns[other].size <= most.get(other, 0)
        ]
        for place, others in plan.predictors.items()
    }
    _check_regressions(plan, columns, predictors, strata)
    if plan.proper:
        strata = [
            records[with_replacement(stream, len(records), _PROPER + place)] for place, records in enumerate(strata)
        ]
    model = fit(
        columns, plan.visit, predictors, strata, plan.by, treatments(plan, columns, training), method=plan.method,
        smallest_leaf=plan.smallest_leaf, count_zero=plan.count_zero, joint=plan.joint,
        near_constant=plan.near_constant, methods=plan.methods, check=shown_checkpoint(),
    )  # fmt: skip
    dictionaries = tuple(None if column is None else column.dictionary for column in encoded)
    generator = Generator(
        model, plan.outputs, dictionaries, count if rows is None else rows, stream, plan.redraws, details
    )
    if not plan.partial:
        generator.unique_copies = plan.unique_copies
        generator.uniques = lonely(np.column_stack([column.codes[training] for column in columns]))
    if plan.partial:
        generator.kept = np.column_stack([column.codes for column in columns]).astype(np.int32)[:count]
        generator.chosen = chosen
        # A sample may leave a whole stratum out, which then stays as it is.
        known = np.unique(labels)
        place = np.searchsorted(known, of_training)
        inside = (place < len(known)) & np.isin(of_training, known)
        generator.strata = np.where(inside, place, 0)
        generator.chosen = chosen & inside
        generator.numbers = np.empty(count, np.int64)
        generator.numbers[order] = np.arange(count)
    elif generator.rows and not len(training):
        raise SDCError("there are no records to learn from")
    return generator
