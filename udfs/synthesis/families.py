"""Several tables synthesised together: parents, how many children each has, and these."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.synthesis.copies import Drawn, codes_of_results
from sdcduck.methods.synthesis.families import draw_children, fit_children
from sdcduck.methods.synthesis.records import Column
from sdcduck.methods.synthesis.trees import LARGEST_SAMPLE, NULL
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import choice, needed, struct, whole, wrong
from sdcduck.udfs.seeds import need_seed_or_secret, stream_of
from sdcduck.udfs.source import Source, refuse_taken, source
from sdcduck.udfs.suppression.pattern import arrow
from sdcduck.udfs.synthesis.drawn import Dictionary, Generator, refuse_copies, remember, select_drawn
from sdcduck.udfs.synthesis.fitted import PURPOSE, checked_categories, encode, fitted, treatments
from sdcduck.udfs.synthesis.plan import ARGUMENT_DEFAULTS, ARGUMENT_NAMES, Output, Plan, read_plan

_MOST_ROWS, _MOST_TABLES = 10**9, 8
_EXAMPLE = "{'persons': 'household'}, or {'persons': {'parent': 'household', 'order_by': 'age'}}"
_NEXT_TABLE = (
    2**48
)  # between the random streams of two tables, which may have the same seed: more than all draws of one
_NUMBER, _PARENT, _PLACE = "_sdc_number", "_sdc_parent", "_sdc_place"


@dataclass(frozen=True)
class _Child:
    """A table of children: what it is called in the result, its records, and what is drawn of them.

    Attributes:
        parent: its column with the key of the parent, quoted.
        first: the place of the column by which children of a parent are in order, or None.
        counted: the column of the parents that says how many they have.
    """

    name: str
    relation: Source
    parent: str
    first: int | None
    counted: str
    plan: Plan


@dataclass
class _Ready(Generator):
    """Records that were all drawn before the statement reads them."""

    ready: Drawn = field(default_factory=lambda: Drawn.empty(0, 0))

    def records(self, numbers: NDArray[np.int64]) -> Drawn:
        return self.ready.of(numbers)

    def settle(self) -> None:
        """All is decided."""


def plan_synth_tables(
    session: Session, text: str | None, id_column: str | None, children: str | None, rows: int | None,
    minbucket: int | None, smoothing: str | None, max_categories: int | None, unique_copies: bool | None,
    details: bool | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_synth_tables``."""
    if rows is not None:
        whole(rows, "rows", least=0, most=_MOST_ROWS)
    need_seed_or_secret(session, seed, "synthetic records can be made again")
    choice(smoothing, "smoothing", ("none", "density")) if smoothing is not None else None
    parents = source(session.cursor(), text, "source")
    key = parents.column(needed(id_column, "id", f"name the column of {parents.described} that is its key"), "id")
    shown = [name for name in parents.columns if identifier(name) != key]
    given = struct(children, "children", _EXAMPLE)
    if not given or len(given) > _MOST_TABLES:
        raise wrong("children", f"name one to {_MOST_TABLES} tables of children", _EXAMPLE)
    common = {
        "minbucket": minbucket, "smoothing": None if smoothing is None else json.dumps(smoothing),
        "max_categories": max_categories, "unique_copies": unique_copies,
    }  # fmt: skip
    refuse_taken(given, {folded(name) for name in parents.columns})
    counted = _free_names([f"number_of_{name}" for name in given], shown)
    found = [
        _child(session, name, one, counted[place], seed, common) for place, (name, one) in enumerate(given.items())
    ]
    together = _with_numbers(parents, key, shown, found)
    columns = ", ".join(map(identifier, [*shown, *counted]))
    plan = _read_plan(session, f"(SELECT {columns} FROM {together})", seed, common)
    plan = replace(plan, smoothed={at: how for at, how in plan.smoothed.items() if at < len(shown)})

    def make() -> pa.Table:
        _check_keys(session, parents, key)
        drawn = _Parents(fitted(session, plan, rows, details=bool(details)), len(shown))
        handles = [drawn.ready()]
        for place, child in enumerate(found):
            handles.append(_drawn_children(session, drawn, child, together, place, bool(details)))
        made = pa.concat_tables(remember(generator) for generator in handles)
        return made.append_column("part", pa.array(range(len(handles)), pa.int64()))

    return Rows(make, _select(key, plan, counted, found, details=bool(details)))


def _free_names(wanted: Sequence[str], taken: Sequence[str]) -> list[str]:
    """The names, each with as many underscores as make it one that no column has."""
    known, found = {folded(name) for name in taken}, []
    for name in wanted:
        while folded(name) in known:
            name += "_"
        known.add(folded(name))
        found.append(name)
    return found


def _child(session: Session, name: str, given: Any, counted: str, seed: int | None, common: dict[str, Any]) -> _Child:
    """A table of children as it was named."""
    said = {"parent": given} if isinstance(given, str) else given
    if not isinstance(said, dict) or not set(said) <= {"parent", "source", "order_by"}:
        raise wrong("children", "say of each table the column with the key of the parent", _EXAMPLE)
    argument = f"children: {name}"
    relation = source(session.cursor(), said.get("source", name), argument)
    parent = relation.column(said.get("parent"), argument)
    shown = [column for column in relation.columns if identifier(column) != parent]
    if not shown:
        raise SDCError(f"argument 'children': {relation.described} has no column beside the key of the parent")
    first = said.get("order_by")
    if first is not None:
        first = [identifier(column) for column in shown].index(relation.column(first, argument))
    query = f"(SELECT {', '.join(map(identifier, shown))} FROM {relation.sql})"
    return _Child(name, relation, parent, first, counted, _read_plan(session, query, seed, common))


def _read_plan(session: Session, query: str, seed: int | None, common: dict[str, Any]) -> Plan:
    """What is drawn of one table, whose arguments are the usual ones but for these."""
    arguments = dict(zip(ARGUMENT_NAMES, ARGUMENT_DEFAULTS, strict=True)) | common
    return read_plan(session, query, None, None, None, seed, *arguments.values())


def _with_numbers(parents: Source, key: str, shown: Sequence[str], children: Sequence[_Child]) -> str:
    """SQL of the parents, with their key as `_sdc_key` and their numbers of children.

    These are counted by the key that is found, of which the children may have several spellings: '7' and '07'.
    """
    joins = "".join(
        f" LEFT JOIN (SELECT _sdc_found, count(*) AS _sdc_n FROM (SELECT {child.parent} AS _sdc_of FROM "
        f"{child.relation.sql}) JOIN (SELECT {key} AS _sdc_found FROM {parents.sql}) ON _sdc_of = _sdc_found "
        f"GROUP BY ALL) AS _sdc_{place} ON _sdc_{place}._sdc_found = _sdc_p._sdc_key"
        for place, child in enumerate(children)
    )
    numbers = "".join(
        f", coalesce(_sdc_{place}._sdc_n, 0) AS {identifier(child.counted)}" for place, child in enumerate(children)
    )
    columns = "".join(f", {identifier(name)}" for name in shown)
    own = "".join(f", _sdc_p.{identifier(name)}" for name in shown)
    return (
        f"(SELECT _sdc_key{own}{numbers} FROM (SELECT {key} AS _sdc_key{columns} FROM {parents.sql}) AS _sdc_p{joins})"
    )


def _check_keys(session: Session, parents: Source, key: str) -> None:
    """That each parent has a key of its own."""
    asked = f"SELECT count(*), count({key}), count(DISTINCT {key}) FROM {parents.sql}"
    count, known, different = arrow(reads(session.cursor()), asked).to_pylist()[0].values()
    if known < count:
        raise SDCError(f"argument 'id': {count - known} records of {parents.described} have no key (NULL)")
    if different < known:
        raise SDCError(
            f"argument 'id': {known} records of {parents.described} have {different} different keys; each parent must "
            "have one of its own"
        )


class _Parents:
    """The parents that were drawn."""

    def __init__(self, generator: Generator, shown: int) -> None:
        generator.settle()
        self.generator, self.shown = generator, shown
        # One draw for all: what is read chunk by chunk would have to be kept for the children anyway.
        self.drawn = generator.draw_all()
        self.originals = int(generator.model.strata_sizes.sum())

    @property
    def final(self) -> NDArray[np.int32]:
        """The codes of what they hold in the end, without the numbers of children."""
        drawn = self.drawn
        values = self.generator.values()
        return codes_of_results(drawn.codes, drawn.results, drawn.changed, values)[:, : self.shown]

    def sizes(self, place: int) -> NDArray[np.int64]:
        """How many children each has of one table."""
        at = self.shown + place
        numbers = self.generator.dictionaries[at]
        codes = self.drawn.codes[:, at]
        assert isinstance(numbers, np.ndarray)
        return numbers[codes].astype(np.int64) if len(codes) else np.zeros(0, np.int64)

    def column(self, place: int, values: pa.ChunkedArray, known: NDArray[np.bool_]) -> Column:
        """A column of theirs beside original children, in the codes that the parents have; NULL without a parent."""
        generator = self.generator
        encoded = encode(values, generator.outputs[place].encoding)
        mine = generator.dictionaries[place]
        assert mine is not None
        numbers: NDArray[np.float64] | None = None
        if isinstance(mine, np.ndarray):
            places = np.searchsorted(mine, encoded.dictionary)
            found = bool((places < len(mine)).all()) and bool((mine[places] == encoded.dictionary).all())
            numbers = mine.astype(np.float64)
        else:
            at = pc.index_in(encoded.dictionary, mine)
            places, found = at.fill_null(0).to_numpy(zero_copy_only=False), at.null_count == 0
            if encoded.column.values is not None:
                numbers = mine.cast(pa.float64()).to_numpy(zero_copy_only=False)
        if not found:
            raise SDCError("the parents were changed while they were read: ask again")
        codes = encoded.column.codes
        shared = np.where(codes >= 0, np.append(places, 0)[np.maximum(codes, 0)], codes)
        return Column(np.where(known, shared, NULL).astype(np.int32), len(mine), numbers)

    def ready(self) -> _Ready:
        """Them for the statement, with their new numbers before."""
        generator, count = self.generator, len(self.drawn.codes)
        numbers = np.arange(count, dtype=np.int32)[:, None]
        return _ready(
            generator, (Output(_NUMBER, "BIGINT"),), (np.arange(1, count + 1),), numbers, self.drawn,
        )  # fmt: skip


def _ready(
    generator: Generator, outputs: tuple[Output, ...], dictionaries: tuple[Dictionary, ...],
    codes: NDArray[np.int32], drawn: Drawn,
) -> _Ready:  # fmt: skip
    """Drawn records with some columns before."""
    nothing = np.zeros_like(codes)
    ready = Drawn(
        np.hstack([codes, drawn.codes]), np.hstack([nothing, drawn.results]),
        np.hstack([nothing.astype(np.uint8), drawn.changed]), np.hstack([nothing - 1, drawn.different]), drawn.copies,
    )  # fmt: skip
    return _Ready(
        generator.model, (*outputs, *generator.outputs), (*dictionaries, *generator.dictionaries), len(codes),
        generator.stream, 0, generator.details, uniques=generator.uniques, ready=ready,
    )  # fmt: skip


def _drawn_children(
    session: Session, parents: _Parents, child: _Child, together: str, place: int, details: bool
) -> _Ready:
    """The children of one table."""
    plan, outputs = child.plan, child.plan.outputs
    own = ", ".join(f"{o.encoding.encoded(identifier(o.name))} AS c{at}" for at, o in enumerate(outputs))
    generator = parents.generator
    theirs = ", ".join(f"{o.encoding.encoded(identifier(o.name))} AS p{at}" for at, o in enumerate(generator.outputs))
    records = arrow(
        reads(session.cursor()),
        f"SELECT * EXCLUDE (_sdc_of, _sdc_key), _sdc_key::VARCHAR AS parent, _sdc_of IS NOT NULL AS named FROM "
        f"(SELECT {own}, {child.parent} AS _sdc_of FROM {child.relation.sql}) LEFT JOIN "
        f"(SELECT {theirs}, _sdc_key FROM {together}) ON _sdc_of = _sdc_key",
    )
    parent = records["parent"].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    without = parent < 0
    if orphans := int((without & records["named"].combine_chunks().to_numpy(zero_copy_only=False)).sum()):
        raise SDCError(
            f"argument 'children': {orphans} records of {child.relation.described} have a parent that is not there; "
            "leave them out, or say that they have none (NULL), with a query as 'source'"
        )
    if len(parent) > LARGEST_SAMPLE:
        raise SDCError(f"argument 'children': a model learns from at most {LARGEST_SAMPLE} records")
    encoded = [encode(records[f"c{at}"], output.encoding) for at, output in enumerate(outputs)]
    checked_categories(plan, encoded)
    columns = [one.column for one in encoded]
    beside = [parents.column(at, records[f"p{at}"], ~without) for at in range(len(generator.outputs))]
    fit = fit_children(
        columns, beside, parent, plan.visit, plan.predictors, treatments(plan, columns, np.arange(len(parent))),
        compared=parents.shown, smallest_leaf=plan.smallest_leaf, first=child.first, check=shown_checkpoint(),
    )  # fmt: skip
    sizes = parents.sizes(place)
    alone = int(without.sum())
    if parents.originals:
        alone = round(alone * len(sizes) / parents.originals)
    stream = stream_of(session.secret(), PURPOSE, plan.seed)
    of, at, drawn = draw_children(
        fit, sizes, parents.drawn.codes, parents.final, alone, stream, (place + 1) * _NEXT_TABLE,
        unique_copies=plan.unique_copies,
    )  # fmt: skip
    if plan.unique_copies is False:
        refuse_copies(drawn)
    made = Generator(
        fit.model, outputs, tuple(one.dictionary for one in encoded), len(of), stream, 0, details, uniques=fit.uniques
    )
    numbers = (np.arange(1, len(sizes) + 1), np.arange(int(sizes.max(initial=0)) + 1))
    return _ready(
        made, (Output(_PARENT, "BIGINT"), Output(_PLACE, "BIGINT")), numbers, np.column_stack([of, at]), drawn
    )


def _select(key: str, plan: Plan, counted: Sequence[str], children: Sequence[_Child], *, details: bool) -> str:
    """The statement: a row for each parent, with lists of its children."""
    parts = [((Output(_NUMBER, "BIGINT"), *plan.outputs), 1, plan)]
    parts += [((Output(_PARENT, "BIGINT"), Output(_PLACE, "BIGINT"), *c.plan.outputs), 2, c.plan) for c in children]
    tables = ["_sdc_parts AS MATERIALIZED (FROM {rows})"]
    for place, (outputs, before, of) in enumerate(parts):
        drawn = select_drawn(outputs, [at + before for at in of.visit], (), partial=False, details=details)
        rows = f"(SELECT model, records FROM _sdc_parts WHERE part = {place})"
        tables.append(f"_sdc_{place} AS MATERIALIZED ({drawn.replace('{rows}', rows)})")
    lists = [
        f"_sdc_list_{place} AS MATERIALIZED (SELECT {_PARENT}, list(_sdc_one ORDER BY {_PLACE}) AS _sdc_made FROM ("
        f"SELECT {_PARENT}, {_PLACE}, _sdc_c AS _sdc_one FROM (SELECT {_PARENT}, {_PLACE}, "
        f"struct_pack({_packed(child.plan, details=details)}) AS _sdc_c FROM _sdc_{place})) GROUP BY ALL)"
        for place, child in enumerate(children, 1)
    ]
    nobody = " OR ".join(
        f"EXISTS (FROM _sdc_list_{place} WHERE {_PARENT} IS NULL)" for place in range(1, len(children) + 1)
    )
    made = "".join(
        f", coalesce(_sdc_list_{place}._sdc_made, []) AS {identifier(child.name)}"
        for place, child in enumerate(children, 1)
    )
    joins = "".join(
        f" LEFT JOIN _sdc_list_{place} ON _sdc_list_{place}.{_PARENT} IS NOT DISTINCT FROM _sdc_all.{_NUMBER}"
        for place in range(1, len(children) + 1)
    )
    without = [_NUMBER, *counted, *([f"ldiv_{name}" for name in counted] if details else [])]
    return (
        f"WITH {', '.join([*tables, *lists])}, _sdc_all AS (FROM _sdc_0 UNION ALL BY NAME "
        f"SELECT NULL::BIGINT AS {_NUMBER} WHERE {nobody}) "
        f"SELECT _sdc_all.{_NUMBER} AS {key}, _sdc_all.* EXCLUDE ({', '.join(map(identifier, without))}){made} "
        f"FROM _sdc_all{joins}"
    )


def _packed(plan: Plan, *, details: bool) -> str:
    """The columns of a child, as those of a STRUCT."""
    names = [output.name for output in plan.outputs]
    if details:
        names += [f"ldiv_{plan.outputs[at].name}" for at in plan.visit] + ["unique_copy", "smoothed"]
    return ", ".join(f"{identifier(name)} := {identifier(name)}" for name in names)


PLANNER = planner(
    plan_synth_tables, {"model": "VARCHAR", "records": "BIGINT", "part": "BIGINT"},
)  # fmt: skip
