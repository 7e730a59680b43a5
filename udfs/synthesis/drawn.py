"""Drawing synthetic records from a model, chunk by chunk, while a statement reads them."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.registry import Session
from sdcduck.methods.synthesis.copies import MOST_DRAWS, Drawn, codes_of_results, draw_again, too_many
from sdcduck.methods.synthesis.records import (
    CLIPPED,
    Model,
    draw,
    stratum_of,
)
from sdcduck.methods.synthesis.trees import INFINITY, MINUS_INFINITY, NAN, NULL
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.synthesis.columns import LARGEST
from sdcduck.udfs.synthesis.plan import Output, bounded_by_rules

Dictionary: TypeAlias = NDArray[Any] | pa.Array
"""The distinct values of a column, in the order of their codes."""
_BLOCK, _BLOCKS_KEPT = 2**15, 4


@dataclass
class Generator:
    """A model at work for one statement.

    Attributes:
        kept: codes of all columns of the original records, of a partial synthesis; else None.
        chosen, strata, numbers: by original record, of a partial synthesis.
        uniques: fingerprints of the original records that are the only ones of their kind, sorted; None: not known.
        unique_copies: whether a record may equal one of them; None: as few as possible.
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
    uniques: NDArray[np.uint64] | None = None
    unique_copies: bool | None = True
    served: int = 0
    blocks: OrderedDict[int, Future[Drawn]] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def knows_copies(self) -> bool:
        """Whether it is known which records equal a unique original one: not where SQL still changes them."""
        return self.uniques is not None and not any(output.rules for output in self.outputs)

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
        return drawn.of(numbers - block * _BLOCK)

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
            begin = model.strata_codes.reshape(len(model.strata_sizes), -1)
            strata = stratum_of(model, numbers, self.rows)
            codes, streams = begin[strata], numbers
        else:
            assert self.strata is not None
            assert self.numbers is not None
            codes, strata, streams = self.kept[numbers], self.strata[numbers], self.numbers[numbers]
        chosen = self.chosen_of(numbers)

        def some(rows: NDArray[np.int64], after: int) -> Drawn:
            new = codes[rows]
            results = draw(model, streams[rows] + after, strata[rows], new, chosen[rows], self.stream, self.redraws)
            return Drawn(new, *results, np.zeros(len(rows), bool))

        if self.uniques is None or not (self.details or not self.unique_copies):
            return some(np.arange(len(numbers)), 0)
        values = self.values()
        drawn = draw_again(
            model, some, lambda _, new: codes_of_results(new.codes, new.results, new.changed, values), len(numbers),
            self.uniques, 1 if self.unique_copies else MOST_DRAWS,
        )  # fmt: skip
        if self.unique_copies is False:
            refuse_copies(drawn)
        return drawn

    def draw_all(self) -> Drawn:
        """All records, at once."""
        return self._draw(np.arange(self.rows)) if self.rows else Drawn.empty(0, len(self.outputs))

    def chosen_of(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the records are drawn; the others stay as they are."""
        return np.ones(len(numbers), bool) if self.chosen is None else self.chosen[numbers]

    def settle(self) -> None:
        """Decide whether copies of unique records are drawn again, where that is left open."""
        if self.unique_copies is None and self.uniques is not None and self.rows:
            many = too_many(self.model, self.uniques, self.values(), self.redraws)
            self.unique_copies = True if many else None

    def values(self) -> list[NDArray[np.float64] | None]:
        """The original numbers of the columns that may have others in the end."""
        return [
            known.astype(np.float64) if isinstance(known, np.ndarray) and self.model.treated[place] else None
            for place, known in enumerate(self.dictionaries)
        ]


def refuse_copies(drawn: Drawn) -> None:
    """Where no record may equal a unique original one.

    Raises:
        SDCError: one does: there is hardly another record that the model can make.
    """
    if drawn.copies.any():
        raise SDCError(
            "unique_copies := false: some records come out as one of the unique originals again and again; put noise "
            "on the numbers (smoothing := 'density'), round them before (a query in parentheses as source), leave "
            "columns out, or take larger leaves or coarser strata"
        )


_MOST_GENERATORS = 16
_GENERATORS: OrderedDict[str, Generator] = OrderedDict()
"""Of the statements that are running, and of a few that ended early: nobody says when a statement ends."""
_LOCK = threading.Lock()


def remember(generator: Generator) -> pa.Table:
    """Keep a generator for the statement that reads its records; answers with its handle."""
    generator.settle()
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
    places = places_by_kind(generator.outputs, partial=generator.kept is not None)
    lists = [
        _doubles(generator, places["d"], codes, results, changed),
        _whole_numbers(generator, places["i"], codes, results, changed),
        _texts(generator, places["s"], codes),
        pa.array(generator.chosen_of(numbers)),
    ]
    if generator.details:
        lists += [
            _list(pa.array(different.ravel().astype(np.int64), mask=(different < 0).ravel()), len(numbers)),
            _list(pa.array((changed == CLIPPED).ravel()), len(numbers)),
            _list(pa.array((changed > 0).ravel()), len(numbers)),
            pa.array(drawn.copies, mask=np.full(len(numbers), not generator.knows_copies)),
        ]
    else:
        nothing = pa.nulls(len(numbers))
        lists += [
            nothing.cast(pa.list_(pa.int64())),
            *[nothing.cast(pa.list_(pa.bool_()))] * 2,
            nothing.cast(pa.bool_()),
        ]
    return pa.StructArray.from_arrays(lists, [name for name, _ in DRAWN])


DRAWN = (
    ("d", "DOUBLE[]"), ("i", "BIGINT[]"), ("s", "VARCHAR[]"), ("chosen", "BOOLEAN"), ("diversity", "BIGINT[]"),
    ("clipped", "BOOLEAN[]"), ("changed", "BOOLEAN[]"), ("copy", "BOOLEAN"),
)  # fmt: skip


def places_by_kind(outputs: Sequence[Output], *, partial: bool) -> dict[str, list[int]]:
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


COPY, SMOOTHED = "unique_copy", "smoothed"
"""Columns of the details."""
_CHUNK = 2048  # records that DuckDB handles at a time


def select_drawn(
    outputs: Sequence[Output], drawn: Sequence[int], bounded: Sequence[int], *, partial: bool, details: bool
) -> str:
    """The statement that draws the records and gives the columns their types."""
    inner, final, bounding = [], [], []
    ruled = {place: f"({bounded_by_rules(output)})" for place, output in enumerate(outputs) if output.rules}
    for kind, places in places_by_kind(outputs, partial=partial).items():
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
        if not partial:
            inner += ["_sdc_r.copy AS _sdc_copy", "_sdc_r.changed AS _sdc_changed"]
            listed = ", ".join(literal(output.name) for output in outputs)
            final += [f"_sdc_copy AS {COPY}", f"list_where([{listed}], _sdc_changed) AS {SMOOTHED}"]
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
