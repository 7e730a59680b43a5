"""Synthetic records: planners and functions behind ``sql/synthetic_records_tables.sql``.

A statement fits its model (or loads a stored one) in the thread of its `Rows`, which answer with a handle of the model
and the number of records. The records themselves are drawn chunk by chunk while the statement reads them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck import catalog
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.declared import planner, planners
from sdcduck.functions.jobs import confirm
from sdcduck.functions.registry import Family, Rows, Scalar, Session
from sdcduck.methods.synthesis.records import (
    Model,
)
from sdcduck.quoting import folded
from sdcduck.udfs.arguments import needed, whole
from sdcduck.udfs.seeds import need_seed_or_secret, stream_of
from sdcduck.udfs.synthesis import families, measures, weights
from sdcduck.udfs.synthesis.drawn import (
    COPY,
    DRAWN,
    SMOOTHED,
    Dictionary,
    Generator,
    drawn_records,
    remember,
    select_drawn,
)
from sdcduck.udfs.synthesis.fitted import PURPOSE, fitted
from sdcduck.udfs.synthesis.plan import (
    ARGUMENT_DEFAULTS,
    ARGUMENT_NAMES,
    Output,
    Rule,
    read_plan,
)

_MOST_ROWS = 10**12
_FORMAT = 3


@dataclass(frozen=True)
class Header:
    """What a stored model says beside its arrays."""

    outputs: tuple[Output, ...]
    drawn: tuple[int, ...]
    bounded: tuple[int, ...]
    redraws: int
    unique_copies: bool | None = True
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
                "redraws": self.redraws, "unique_copies": self.unique_copies,
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
        return cls(
            outputs, tuple(given["drawn"]), tuple(given["bounded"]), given["redraws"],
            given.get("unique_copies", False), given["format"],
        )  # fmt: skip


def plan_synth_records(
    session: Session, text: str | None, columns: list[str] | None, rows: int | None, subset: str | None,
    share: float | None, details: bool | None, model: str | None, seed: int | None, *common: Any,
) -> Rows:  # fmt: skip
    """``sdc_synth_records``: from a source, or from a stored model."""
    if rows is not None:
        whole(rows, "rows", least=0, most=_MOST_ROWS)
    need_seed_or_secret(session, seed, "synthetic records can be made again")
    if model is not None:
        given = {"source": text, "columns": columns or None, "subset": subset, "share": share}
        given |= {
            name: value
            for name, value, default in zip(ARGUMENT_NAMES, common, ARGUMENT_DEFAULTS, strict=True)
            if (None if value == [] else value) != (None if default == [] else default)
        }
        for name, value in given.items():
            if value is not None:
                raise SDCError(f"argument '{name}' cannot be given with 'model': it belongs to sdc_synth_model")
        return _from_stored(session, model, rows, seed, details=bool(details))
    plan = read_plan(session, text, columns, subset, share, seed, *common)
    if plan.partial and rows is not None:
        raise SDCError(
            "argument 'rows' is for records that are wholly synthetic; here others stay, so that their number is given"
        )
    bounded = plan.bounded
    _check_detail_names(plan.outputs, plan.visit, bounded, partial=plan.partial, details=bool(details))
    return Rows(
        lambda: remember(fitted(session, plan, rows, details=bool(details))),
        select_drawn(plan.outputs, plan.visit, bounded, partial=plan.partial, details=bool(details)),
    )


def _check_detail_names(
    outputs: Sequence[Output], drawn: Sequence[int], bounded: Sequence[int], *, partial: bool, details: bool
) -> None:
    if not details:
        return
    taken = {folded(output.name) for output in outputs}
    made = [f"ldiv_{outputs[p].name}" for p in drawn] + [f"clipped_{outputs[p].name}" for p in bounded]
    for name in made if partial else [*made, COPY, SMOOTHED]:
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
        generator = fitted(session, plan, 0, details=False)
        records = int(generator.model.strata_sizes.sum())
        if not records:
            raise SDCError("there are no records to learn from")
        header = Header(plan.outputs, plan.visit, plan.bounded, plan.redraws, plan.unique_copies)
        stored = catalog.SynthModel(
            called, plan.methods_told, ", ".join(output.name for output in plan.outputs), records, header.text(),
            _to_bytes(generator),
        )  # fmt: skip
        confirm()  # somebody who interrupted the statement must not find it stored
        catalog.store_synth_model(session.cursor(), stored)
        return pa.table(
            {"name": [called], "method": [plan.methods_told], "records": [records], "bytes": [len(stored.arrays)]}
        )

    return Rows(store)


def _to_bytes(generator: Generator) -> bytes:
    """All arrays as one row of lists, in the format of Arrow."""
    columns: dict[str, pa.Array] = {name: pa.array(array) for name, array in generator.model.arrays().items()}
    for place, dictionary in enumerate(generator.dictionaries):
        if dictionary is not None:
            columns[f"dictionary_{place}"] = pa.array(dictionary)
    if generator.uniques is not None:
        columns["refused"] = pa.array(generator.uniques)
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


def _from_bytes(
    header: Header, stored: bytes
) -> tuple[Model, tuple[Dictionary | None, ...], NDArray[np.uint64] | None]:
    row = pa.ipc.open_stream(stored).read_all()

    def array(name: str) -> pa.Array:
        return row[name].combine_chunks().flatten()

    names = [name for name in row.column_names if name != "refused" and not name.startswith("dictionary_")]
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
    uniques = array("refused").to_numpy() if "refused" in row.column_names else None
    return model, tuple(dictionaries), uniques


def _from_stored(session: Session, name: str, rows: int | None, seed: int | None, *, details: bool) -> Rows:
    known = catalog.synth_models(session.cursor())
    if name not in known:
        raise unknown("model", name, known)
    header = Header.parse(catalog.synth_model(session.cursor(), name, arrays=False).header)

    def load() -> pa.Table:
        stored = catalog.synth_model(session.cursor(), name)
        if Header.parse(stored.header) != header:
            raise SDCError(f"model '{name}' has been replaced: ask again")
        model, dictionaries, uniques = _from_bytes(header, stored.arrays)
        count = int(model.strata_sizes.sum()) if rows is None else rows
        stream = stream_of(session.secret(), PURPOSE, seed)
        generator = Generator(model, header.outputs, dictionaries, count, stream, header.redraws, details)
        generator.uniques, generator.unique_copies = uniques, header.unique_copies
        return remember(generator)

    _check_detail_names(header.outputs, header.drawn, header.bounded, partial=False, details=details)
    return Rows(load, select_drawn(header.outputs, header.drawn, header.bounded, partial=False, details=details))


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
            ("source", "columns", "rows", "subset", "share", "details", "model", "seed", *ARGUMENT_NAMES),
        ),
        planner(plan_synth_model, order=("name", "source", "seed", "replace", *ARGUMENT_NAMES)),
        families.PLANNER,
        weights.PLANNER,
        *measures.PLANNERS,
    ),
    scalars=(
        Scalar(
            "_sdc_synth_draw",
            ("VARCHAR", "BIGINT"),
            f"STRUCT({', '.join(f'{name} {kind}' for name, kind in DRAWN)})",
            drawn_records,
            volatile=True,
        ),
    ),
)
