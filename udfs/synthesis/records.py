"""Synthetic records: planners and functions behind ``sql/synthetic_records_tables.sql``.

A statement fits its model (or loads a stored one) in the thread of its `Rows`, which answer with a handle of the model
and the number of records. The records themselves are drawn chunk by chunk while the statement reads them.
"""

from __future__ import annotations

import json
import math
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sdcduck import catalog
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.declared import planner, planners
from sdcduck.functions.jobs import confirm, reads, shown_checkpoint
from sdcduck.functions.registry import Family, Rows, Scalar, Session
from sdcduck.methods.synthesis.noise import bandwidths
from sdcduck.methods.synthesis.records import (
    CLIPPED,
    Column,
    Model,
    Treatment,
    canonical_order,
    draw,
    fit,
    random_subset,
    stratum_of,
)
from sdcduck.methods.synthesis.trees import INFINITY, LARGEST_SAMPLE, MINUS_INFINITY, NAN, NULL
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import needed, whole
from sdcduck.udfs.seeds import need_seed_or_secret, stream_of
from sdcduck.udfs.suppression.pattern import arrow
from sdcduck.udfs.synthesis import measures, weights
from sdcduck.udfs.synthesis.columns import LARGEST, Encoding
from sdcduck.udfs.synthesis.plan import (
    ARGUMENT_DEFAULTS,
    ARGUMENT_NAMES,
    Output,
    Plan,
    Rule,
    bounded_by_rules,
    read_plan,
)

_MOST_STRATA = 10_000
_MOST_ROWS = 10**12
_FORMAT = 2
_SHARE, _TRAIN = 0, 1  # what records are chosen for
_PURPOSE = "synthetic records"

# --- the original records --------------------------------------------------------------------------------------------

Dictionary: TypeAlias = NDArray[Any] | pa.Array
"""The distinct values of a column, in the order of their codes."""


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


def _encode(values: pa.ChunkedArray, how: Encoding) -> Encoded:
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
        columns[place] = _encode(table[f"c{place}"], plan.outputs[place].encoding)
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


def _treatments(plan: Plan, columns: Sequence[Column], training: NDArray[np.int64]) -> dict[int, Treatment]:
    """What is done to the numbers after their draw."""
    found = {}
    for place in plan.visit:
        if place not in plan.smoothed and place not in plan.bounds and place not in plan.bases:
            continue
        column, how = columns[place], plan.outputs[place].encoding
        assert column.values is not None
        widths = None
        if place in plan.smoothed and column.size:
            codes = column.codes[training]
            counts = np.bincount(codes[codes >= 0], minlength=column.size)
            used = np.flatnonzero(counts)
            unchanged = np.array(plan.exclude if how.scale else (), np.float64) * (how.scale or 1.0)
            widths = np.zeros(column.size)
            if len(used):
                widths[used] = bandwidths(column.values[used], counts[used], plan.groups, unchanged)
        low, high = plan.bounds.get(place, (-math.inf, math.inf))
        whole = how.kind == "i"
        found[place] = Treatment(
            bandwidths=widths, low=max(low, how.low) if whole else low, high=min(high, how.high) if whole else high,
            base=plan.bases.get(place, 0.0), whole=whole,
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


def _checked_categories(plan: Plan, columns: Sequence[Encoded | None]) -> dict[int, int]:
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


@dataclass(frozen=True)
class Header:
    """What a stored model says beside its arrays."""

    outputs: tuple[Output, ...]
    drawn: tuple[int, ...]
    bounded: tuple[int, ...]
    redraws: int
    stored_format: int = _FORMAT

    def text(self) -> str:
        """As JSON."""
        columns = [
            {"name": o.name, "type": o.sql_type, "derived": o.derived, "rules": [asdict(rule) for rule in o.rules]}
            for o in self.outputs
        ]
        return json.dumps(
            {
                "format": _FORMAT, "columns": columns, "drawn": list(self.drawn), "bounded": list(self.bounded),
                "redraws": self.redraws,
            }
        )  # fmt: skip

    @classmethod
    def parse(cls, text: str) -> Header:
        given = json.loads(text)
        if not 1 <= given.get("format", 0) <= _FORMAT:
            raise SDCError("the model was stored by a newer sdcduck")
        outputs = tuple(Output(
                column["name"], column["type"], column["derived"],
                tuple(Rule(**rule) for rule in column.get("rules", ())),
            )
            for column in given["columns"]
        )  # fmt: skip
        return cls(outputs, tuple(given["drawn"]), tuple(given["bounded"]), given["redraws"], given["format"])


_CHUNK = 2048  # records that DuckDB handles at a time
_BLOCK, _BLOCKS_KEPT = 2**15, 4


@dataclass(frozen=True)
class Drawn:
    """Records that have been drawn: what they are, whether they were chosen, and what `draw` says of them."""

    codes: NDArray[np.int32]
    chosen: NDArray[np.bool_]
    results: NDArray[np.float64]
    changed: NDArray[np.uint8]
    different: NDArray[np.int32]

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All of it, record by record."""
        return self.codes, self.chosen, self.results, self.changed, self.different


@dataclass
class Generator:
    """A model at work for one statement.

    Attributes:
        kept: codes of all columns of the original records, of a partial synthesis; else None.
        chosen, strata, numbers: by original record, of a partial synthesis.
        served: how many records have been drawn.
    """

    model: Model
    outputs: tuple[Output, ...]
    dictionaries: tuple[Dictionary | None, ...]
    rows: int
    stream: int
    redraws: int
    details: bool
    kept: NDArray[np.int32] | None = None
    chosen: NDArray[np.bool_] | None = None
    strata: NDArray[np.int64] | None = None
    numbers: NDArray[np.int64] | None = None
    served: int = 0
    blocks: OrderedDict[int, Future[Drawn]] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def records(self, numbers: NDArray[np.int64]) -> Drawn:
        """Some records; a block of neighbours is drawn at once, because a tree that is at hand is walked faster."""
        first, last = int(numbers.min()), int(numbers.max())
        block = first // _BLOCK
        if last - first != len(numbers) - 1 or last // _BLOCK != block:
            return self._draw(numbers)
        with self.lock:
            if block not in self.blocks:
                self._begin(block, beside=False)
            drawing = self.blocks[block]
            # Whoever reads on wants the next block too: it is drawn while this one goes through the statement.
            if block - 1 in self.blocks and block + 1 not in self.blocks and (block + 1) * _BLOCK < self.rows:
                self._begin(block + 1, beside=True)
            while len(self.blocks) > _BLOCKS_KEPT:
                self.blocks.popitem(last=False)
            drawn = drawing.result()
        return Drawn(*(array[numbers - block * _BLOCK] for array in drawn.arrays))

    def _begin(self, block: int, *, beside: bool) -> None:
        """Draw a block: now, or in a thread beside, which the interpreter waits for at its end."""
        drawing = self.blocks[block] = Future[Drawn]()

        def run() -> None:
            try:
                drawing.set_result(self._draw(np.arange(block * _BLOCK, min((block + 1) * _BLOCK, self.rows))))
            except BaseException as problem:  # it belongs to the statement, which asks for the block
                drawing.set_exception(problem)

        if beside:
            threading.Thread(target=run, name="sdcduck", daemon=False).start()
        else:
            run()

    def _draw(self, numbers: NDArray[np.int64]) -> Drawn:
        model = self.model
        if self.kept is None:
            strata = stratum_of(model, numbers, self.rows)
            codes = model.strata_codes.reshape(len(model.strata_sizes), -1)[strata].copy()
            chosen, streams = np.ones(len(numbers), bool), numbers
        else:
            assert self.strata is not None
            assert self.chosen is not None
            assert self.numbers is not None
            codes, strata = self.kept[numbers].copy(), self.strata[numbers]
            chosen, streams = self.chosen[numbers], self.numbers[numbers]
        return Drawn(codes, chosen, *draw(model, streams, strata, codes, chosen, self.stream, self.redraws))


def _fitted(session: Session, plan: Plan, rows: int | None, *, details: bool) -> Generator:
    """Read the records and fit the model."""
    encoded, chosen = _read(session, plan)
    stream = stream_of(session.secret(), _PURPOSE, plan.seed)
    most = _checked_categories(plan, encoded)
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
    model = fit(
        columns, plan.visit, predictors, strata, plan.by, _treatments(plan, columns, training), method=plan.method,
        smallest_leaf=plan.smallest_leaf, count_zero=plan.count_zero, joint=plan.joint,
        near_constant=plan.near_constant, check=shown_checkpoint(),
    )  # fmt: skip
    dictionaries = tuple(None if column is None else column.dictionary for column in encoded)
    generator = Generator(
        model, plan.outputs, dictionaries, count if rows is None else rows, stream, plan.redraws, details
    )
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


# --- drawing ---------------------------------------------------------------------------------------------------------

_MOST_GENERATORS = 16
_GENERATORS: OrderedDict[str, Generator] = OrderedDict()
"""Of the statements that are running, and of a few that ended early: nobody says when a statement ends."""
_LOCK = threading.Lock()


def _remember(generator: Generator) -> pa.Table:
    """Keep a generator for the statement that reads its records; answers with its handle."""
    handle = secrets.token_hex(16)
    with _LOCK:
        _GENERATORS[handle] = generator
        while len(_GENERATORS) > _MOST_GENERATORS:
            _GENERATORS.popitem(last=False)
    return pa.table({"model": [handle], "records": [generator.rows]})


def drawn_records(session: Session, handles: pa.ChunkedArray, numbers: pa.ChunkedArray) -> pa.Array:
    """The synthetic records with these numbers: for each the lists of its doubles, whole numbers and texts."""
    handle = handles[0].as_py()
    with _LOCK:
        generator = _GENERATORS.get(handle)
        if generator is None:
            raise SDCError("too many statements draw synthetic records at the same time")
        _GENERATORS.move_to_end(handle)
        generator.served += len(numbers)
        if generator.served >= generator.rows:
            del _GENERATORS[handle]
    return _records(generator, numbers.to_numpy())


def _records(generator: Generator, numbers: NDArray[np.int64]) -> pa.Array:
    drawn = generator.records(numbers)
    codes, results, changed, different = drawn.codes, drawn.results, drawn.changed, drawn.different
    places = _places(generator.outputs, partial=generator.kept is not None)
    lists = [
        _doubles(generator, places["d"], codes, results, changed),
        _whole_numbers(generator, places["i"], codes, results, changed),
        _texts(generator, places["s"], codes),
        pa.array(drawn.chosen),
    ]
    if generator.details:
        lists += [
            _list(pa.array(different.ravel().astype(np.int64), mask=(different < 0).ravel()), len(numbers)),
            _list(pa.array((changed == CLIPPED).ravel()), len(numbers)),
        ]
    else:
        nothing = pa.nulls(len(numbers))
        lists += [nothing.cast(pa.list_(pa.int64())), nothing.cast(pa.list_(pa.bool_()))]
    return pa.StructArray.from_arrays(lists, [name for name, _ in _DRAWN])


_DRAWN = (
    ("d", "DOUBLE[]"), ("i", "BIGINT[]"), ("s", "VARCHAR[]"), ("chosen", "BOOLEAN"), ("diversity", "BIGINT[]"),
    ("clipped", "BOOLEAN[]"),
)  # fmt: skip


def _places(outputs: Sequence[Output], *, partial: bool) -> dict[str, list[int]]:
    """The columns of each list of a drawn record."""
    found: dict[str, list[int]] = {"d": [], "i": [], "s": []}
    for place, output in enumerate(outputs):
        if partial or output.derived is None:
            kind = output.encoding.kind
            found["s" if kind == "t" else kind].append(place)
    return found


def _list(flat: pa.Array, rows: int) -> pa.ListArray:
    """The rows of a matrix as lists."""
    width = len(flat) // rows if rows else 0
    return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32) * width), flat)


def _doubles(
    generator: Generator, places: list[int], codes: NDArray[np.int32], results: NDArray[np.float64],
    changed: NDArray[np.uint8],
) -> pa.ListArray:  # fmt: skip
    values = np.zeros((len(codes), len(places)))
    for at, place in enumerate(places):
        code = codes[:, place]
        taken = _taken(generator.dictionaries[place], code).astype(np.float64)
        taken = np.where(changed[:, place] > 0, results[:, place], taken)
        for special, number in ((NAN, np.nan), (MINUS_INFINITY, -np.inf), (INFINITY, np.inf)):
            taken[code == special] = number
        values[:, at] = taken
    missing = codes[:, places] == NULL
    return _list(pa.array(values.ravel(), mask=missing.ravel()), len(codes))


def _whole_numbers(
    generator: Generator, places: list[int], codes: NDArray[np.int32], results: NDArray[np.float64],
    changed: NDArray[np.uint8],
) -> pa.ListArray:  # fmt: skip
    values = np.zeros((len(codes), len(places)), np.int64)
    for at, place in enumerate(places):
        code = codes[:, place]
        rounded = np.rint(np.clip(results[:, place], -9.2e18, 9.2e18)).astype(np.int64)
        taken = np.where(changed[:, place] > 0, rounded, _taken(generator.dictionaries[place], code))
        taken[code == MINUS_INFINITY] = -LARGEST
        taken[code == INFINITY] = LARGEST
        values[:, at] = taken
    missing = codes[:, places] == NULL
    return _list(pa.array(values.ravel(), mask=missing.ravel()), len(codes))


def _taken(dictionary: Dictionary | None, codes: NDArray[np.int32]) -> NDArray[Any]:
    assert isinstance(dictionary, np.ndarray)
    if not len(dictionary):
        return np.zeros(len(codes), dictionary.dtype)
    return dictionary[np.maximum(codes, 0)]


def _texts(generator: Generator, places: list[int], codes: NDArray[np.int32]) -> pa.ListArray:
    dictionaries = [generator.dictionaries[place] for place in places]
    starts = np.cumsum([0, *(0 if dictionary is None else len(dictionary) for dictionary in dictionaries)])
    chosen = codes[:, places]
    flat = pa.array((chosen + starts[:-1]).ravel().astype(np.int64), mask=(chosen < 0).ravel())
    texts = pa.concat_arrays([pa.array([], pa.string()), *(d for d in dictionaries if d is not None)])
    return _list(texts.take(flat), len(codes))


# --- planners --------------------------------------------------------------------------------------------------------


def _select(
    outputs: Sequence[Output], drawn: Sequence[int], bounded: Sequence[int], *, partial: bool, details: bool
) -> str:
    """The statement that draws the records and gives the columns their types."""
    inner, final, bounding = [], [], []
    ruled = {place: f"({bounded_by_rules(output)})" for place, output in enumerate(outputs) if output.rules}
    for kind, places in _places(outputs, partial=partial).items():
        for at, place in enumerate(places):
            output = outputs[place]
            value = output.encoding.decoded(f"_sdc_r.{kind}[{at + 1}]")
            name = identifier(f"_sdc_kept_{place}") if output.derived is not None else identifier(output.name)
            inner.append(f"{value} AS {name}")
    for place, output in enumerate(outputs):
        name = identifier(output.name)
        if output.derived is None:
            final.append(name)
            if place in ruled:
                # What stays as it is, is not bounded either.
                kept = f"CASE WHEN _sdc_chosen THEN {ruled[place]} ELSE {name} END" if partial else ruled[place]
                bounding.append(f"{kept} AS {name}")
        else:
            made = f"({output.derived})::{output.sql_type}"
            kept = f"CASE WHEN _sdc_chosen THEN {made} ELSE _sdc_kept_{place} END" if partial else made
            final.append(f"{kept} AS {name}")
    inner.append("_sdc_r.chosen AS _sdc_chosen")
    if details:
        for what, list_of, shown in (("ldiv", "diversity", drawn), ("clipped", "clipped", bounded)):
            for place in shown:
                name = identifier(f"{what}_{outputs[place].name}")
                inner.append(f"_sdc_r.{list_of}[{place + 1}] AS {identifier(f'_sdc_{what}_{place}')}")
                if what == "clipped" and place in ruled:
                    column = identifier(outputs[place].name)
                    bounding.append(
                        f"_sdc_clipped_{place} OR _sdc_chosen AND {ruled[place]} IS DISTINCT FROM {column} "
                        f"AS _sdc_clipped_{place}"
                    )
                final.append(f"{identifier(f'_sdc_{what}_{place}')} AS {name}")
    # A range that another table gives the length of is made at once, and handed out from its end: so it is one of
    # chunks, whose numbers are made as they are needed.
    within = f"SELECT * REPLACE ({', '.join(bounding)}) FROM (" if bounding else ""
    return (
        f"SELECT {', '.join(final)} FROM ({within}SELECT {', '.join(inner)} FROM ("
        "SELECT _sdc_synth_draw(model, number) AS _sdc_r FROM ("
        f"SELECT model, unnest(range(first, least(first + {_CHUNK}, records))) AS number FROM ("
        f"SELECT model, records, (chunks - 1 - chunk) * {_CHUNK} AS first FROM ("
        f"SELECT model, records, (records + {_CHUNK - 1}) // {_CHUNK} AS chunks FROM {{rows}}) _sdc_m, "
        f"range(chunks) _sdc_t(chunk))))){')' if bounding else ''}"
    )


def plan_synth_records(
    session: Session, text: str | None, targets: list[str] | None, rows: int | None, subset: str | None,
    share: float | None, details: bool | None, model: str | None, seed: int | None, *common: Any,
) -> Rows:  # fmt: skip
    """``sdc_synth_records``: from a source, or from a stored model."""
    if rows is not None:
        whole(rows, "rows", least=0, most=_MOST_ROWS)
    need_seed_or_secret(session, seed, "synthetic records can be made again")
    if model is not None:
        given = {"source": text, "targets": targets or None, "subset": subset, "share": share}
        given |= {
            name: value
            for name, value, default in zip(ARGUMENT_NAMES, common, ARGUMENT_DEFAULTS, strict=True)
            if (value or None) != (default or None)
        }
        for name, value in given.items():
            if value is not None:
                raise SDCError(f"argument '{name}' cannot be given with 'model': it belongs to sdc_synth_model")
        return _from_stored(session, model, rows, seed, details=bool(details))
    plan = read_plan(session, text, targets, subset, share, seed, *common)
    if plan.partial and rows is not None:
        raise SDCError(
            "argument 'rows' is for records that are wholly synthetic; here others stay, so that their number is given"
        )
    bounded = plan.bounded
    _check_detail_names(plan.outputs, plan.visit, bounded, details=bool(details))
    return Rows(
        lambda: _remember(_fitted(session, plan, rows, details=bool(details))),
        _select(plan.outputs, plan.visit, bounded, partial=plan.partial, details=bool(details)),
    )


def _check_detail_names(
    outputs: Sequence[Output], drawn: Sequence[int], bounded: Sequence[int], *, details: bool
) -> None:
    if not details:
        return
    taken = {folded(output.name) for output in outputs}
    for name in [f"ldiv_{outputs[p].name}" for p in drawn] + [f"clipped_{outputs[p].name}" for p in bounded]:
        if folded(name) in taken:
            raise SDCError(f"a column called '{name}' is also one of the details; give it another name in a query")


def _check_writable(session: Session) -> None:
    if catalog.is_read_only(session.cursor()):
        raise SDCError("models are stored in the database, which is open for reading only")


def plan_synth_model(
    session: Session, name: str | None, text: str | None, seed: int | None, is_replaced: bool | None, *common: Any
) -> Rows:
    """``sdc_synth_model``: fits and stores, all or nothing."""
    _check_writable(session)
    called = needed(name, "name", "be a name for the model")
    if not is_replaced and called in catalog.synth_models(session.cursor()):
        raise SDCError(f"there is a model '{called}'; give replace := true, or drop it with sdc_drop_synth_model")
    plan = read_plan(session, text, None, None, None, seed, *common)

    def store() -> pa.Table:
        generator = _fitted(session, plan, 0, details=False)
        records = int(generator.model.strata_sizes.sum())
        if not records:
            raise SDCError("there are no records to learn from")
        header = Header(plan.outputs, plan.visit, plan.bounded, plan.redraws)
        stored = catalog.SynthModel(
            called, plan.method, ", ".join(output.name for output in plan.outputs), records, header.text(),
            _to_bytes(generator),
        )  # fmt: skip
        confirm()  # somebody who interrupted the statement must not find it stored
        catalog.store_synth_model(session.cursor(), stored)
        return pa.table(
            {"name": [called], "method": [plan.method], "records": [records], "bytes": [len(stored.arrays)]}
        )

    return Rows(store)


def _to_bytes(generator: Generator) -> bytes:
    """All arrays as one row of lists, in the format of Arrow."""
    columns: dict[str, pa.Array] = {name: pa.array(array) for name, array in generator.model.arrays().items()}
    for place, dictionary in enumerate(generator.dictionaries):
        if dictionary is not None:
            columns[f"dictionary_{place}"] = pa.array(dictionary)
    row = pa.table(
        {
            name: pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)
            for name, array in columns.items()
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(row)
    return bytes(sink.getvalue().to_pybytes())


def _from_bytes(header: Header, stored: bytes) -> tuple[Model, tuple[Dictionary | None, ...]]:
    row = pa.ipc.open_stream(stored).read_all()

    def array(name: str) -> pa.Array:
        return row[name].combine_chunks().flatten()

    names = [name for name in row.column_names if not name.startswith("dictionary_")]
    # Of their own memory: numba takes no arrays that cannot be written to where others can.
    arrays = {name: np.array(array(name).to_numpy(zero_copy_only=False)) for name in names}
    if header.stored_format == 1:  # it was the same for all columns then
        arrays["shared"] = np.repeat(arrays["shared"], len(arrays["visit"]))
    model = Model(**arrays)
    model.check()
    dictionaries: list[Dictionary | None] = []
    for place, output in enumerate(header.outputs):
        if output.derived is not None:
            dictionaries.append(None)
        elif output.encoding.kind in ("s", "t"):
            dictionaries.append(array(f"dictionary_{place}"))
        else:
            dictionaries.append(np.array(array(f"dictionary_{place}").to_numpy(zero_copy_only=False)))
    return model, tuple(dictionaries)


def _from_stored(session: Session, name: str, rows: int | None, seed: int | None, *, details: bool) -> Rows:
    known = catalog.synth_models(session.cursor())
    if name not in known:
        raise unknown("model", name, known)
    header = Header.parse(catalog.synth_model(session.cursor(), name, arrays=False).header)

    def load() -> pa.Table:
        stored = catalog.synth_model(session.cursor(), name)
        if Header.parse(stored.header) != header:
            raise SDCError(f"model '{name}' has been replaced: ask again")
        model, dictionaries = _from_bytes(header, stored.arrays)
        count = int(model.strata_sizes.sum()) if rows is None else rows
        stream = stream_of(session.secret(), _PURPOSE, seed)
        return _remember(Generator(model, header.outputs, dictionaries, count, stream, header.redraws, details))

    _check_detail_names(header.outputs, header.drawn, header.bounded, details=details)
    return Rows(load, _select(header.outputs, header.drawn, header.bounded, partial=False, details=details))


def plan_drop_synth_model(session: Session, name: str | None) -> Rows:
    """``sdc_drop_synth_model``: fails while binding if there is no such model."""
    _check_writable(session)
    known = catalog.synth_models(session.cursor())
    if name not in known:
        raise unknown("model", str(name), known)

    def drop() -> pa.Table:
        catalog.drop_synth_model(session.cursor(), str(name))
        return pa.table({"name": [name]})

    return Rows(drop)


_HANDLE = {"model": "VARCHAR", "records": "BIGINT"}

FAMILY = Family(
    name="synthetic_records",
    stored=("synthetic_records.sql",),
    temporary=("synthetic_records_tables.sql",),
    planners=(
        *planners(plan_drop_synth_model),
        planner(
            plan_synth_records,
            _HANDLE,
            ("source", "targets", "rows", "subset", "share", "details", "model", "seed", *ARGUMENT_NAMES),
        ),
        planner(plan_synth_model, order=("name", "source", "seed", "replace", *ARGUMENT_NAMES)),
        weights.PLANNER,
        *measures.PLANNERS,
    ),
    scalars=(
        Scalar(
            "_sdc_synth_draw",
            ("VARCHAR", "BIGINT"),
            f"STRUCT({', '.join(f'{name} {kind}' for name, kind in _DRAWN)})",
            drawn_records,
            volatile=True,
        ),
    ),
)
