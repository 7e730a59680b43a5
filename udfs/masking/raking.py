"""Weights that fit published totals: the planners of ``sdc_rake`` and ``sdc_rake_report``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.masking.raking import Raked, rake
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import is_finite, needed, number, whole, wrong
from sdcduck.udfs.compared import check_kinds
from sdcduck.udfs.masking.records import records
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, refuse_taken, source

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]

_ADDED = ("raked_weight",)


@dataclass(frozen=True)
class _Margin:
    """One table of totals: the columns of the source that it is about, as the source calls them."""

    place: int
    table: Source
    columns: tuple[str, ...]
    total: str

    @property
    def described(self) -> str:
        """For messages."""
        return f"margin {self.place} ({', '.join(self.columns) or 'all records'})"


@dataclass(frozen=True)
class _Call:
    relation: Source
    weight: str
    margins: tuple[_Margin, ...]
    bounds: tuple[float, float] | None
    tolerance: float
    most_cycles: int

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of all margins."""
        return tuple(dict.fromkeys(name for margin in self.margins for name in margin.columns))

    @property
    def cells(self) -> str:
        """A query for the different values of these, numbered."""
        names = ", ".join(map(identifier, self.columns)) or "0 AS _sdc_all"
        order = ", ".join(f"{identifier(name)} NULLS FIRST" for name in self.columns) or "1"
        return (
            f"SELECT *, row_number() OVER (ORDER BY {order}) - 1 AS _sdc_cell "
            f"FROM (SELECT DISTINCT {names} FROM {self.relation.sql})"
        )


def bounds_of(given: list[float | None] | None, name: str = "bounds") -> tuple[float, float] | None:
    """The least and the largest factor of a weight."""
    if given is None:
        return None
    if len(given) != 2 or not all(is_finite(one) for one in given):
        raise wrong(name, "be two numbers, such as [0.3, 3]")
    least, most = float(given[0] or 0), float(given[1] or 0)
    if not 0 <= least <= 1 <= most:
        raise wrong(name, "be the least and the largest factor of a weight, at most 1 and at least 1")
    return least, most


def _read_call(
    session: Session, text: str | None, weight: str | None, margins: list[str] | None, total: str | None,
    bounds: list[float | None] | None, tolerance: float | None, max_cycles: int | None,
) -> _Call:  # fmt: skip
    cursor = session.cursor()
    relation = source(cursor, text, "source")
    needed(margins, "margins", "name tables of totals, with columns of the source and one of totals")
    found = []
    for place, one in enumerate(margins or (), 1):
        table = source(cursor, one, "margins")
        column = table.number(needed(total, "total", "name the column of totals"), "total")
        names = [name for name in table.columns if identifier(name) != column]
        columns = relation.named(names, "margins")
        check_kinds({"source": relation, "margins": table}, columns, "margins")
        found.append(_Margin(place, table, columns, column))
    relation.check_names(tuple(relation.columns))
    return _Call(
        relation, "1" if weight is None else relation.number(weight, "weight"), tuple(found), bounds_of(bounds),
        number(tolerance, "tolerance", above=0, why="a share of each total"),
        whole(max_cycles, "max_cycles", least=1),
    )  # fmt: skip


@dataclass(frozen=True)
class _Read:
    """The cells and what they are to add up to; weights are sums over the records of a cell."""

    weights: Vector
    squares: Vector
    sizes: Indices
    codes: list[Indices]
    targets: list[Vector]


def _read(cursor: duckdb.DuckDBPyConnection, call: _Call) -> _Read:
    """Read the source and the margins, and refuse margins that no weights fit."""
    weight = f"{call.weight}::DOUBLE"
    bad = cursor.execute(
        f"SELECT count(*) FILTER (w IS NULL OR NOT isfinite(w) OR w < 0), count(*) "
        f"FROM (SELECT {weight} AS w FROM {call.relation.sql})"
    ).fetchall()[0]
    if bad[0]:
        raise SDCError(f"{bad[0]} of {records(bad[1])} have a weight that is NULL, negative or no finite number")
    cursor.execute(f"CREATE TEMP TABLE _sdc_cells AS {call.cells}")
    alike = _alike("s", "c", call.columns)
    found = cursor.execute(
        f"SELECT fsum(_sdc_w ORDER BY _sdc_w) AS w, fsum(_sdc_w ** 2 ORDER BY _sdc_w) AS w2, count(*) AS n FROM "
        f"(SELECT *, {weight} AS _sdc_w FROM {call.relation.sql}) s JOIN _sdc_cells c ON {alike} "
        "GROUP BY _sdc_cell ORDER BY _sdc_cell"
    ).fetchnumpy()
    weights, squares, sizes = (np.asarray(found[name]) for name in ("w", "w2", "n"))
    codes, targets = [], []
    for margin in call.margins:
        code, target = _category(cursor, margin, sizes)
        empty = (target > 0) & (np.bincount(code, weights, minlength=len(target)) == 0)
        if empty.any():
            raise SDCError(
                f"{margin.described}: {int(empty.sum())} of {len(target)} categories have a positive total, and no "
                "record with weight: merge them with others"
            )
        codes.append(code)
        targets.append(target)
    sums = [float(target.sum()) for target in targets]
    for margin, one in zip(call.margins, sums, strict=True):
        if abs(one - sums[0]) > call.tolerance * max(one, sums[0]):
            raise SDCError(
                f"{call.margins[0].described} and {margin.described} have different totals, so that no weights fit both"
            )
    return _Read(weights, squares, sizes, codes, targets)


def _alike(one: str, other: str, columns: tuple[str, ...]) -> str:
    names = map(identifier, columns)
    return " AND ".join(f"{one}.{name} IS NOT DISTINCT FROM {other}.{name}" for name in names) or "true"


def _category(cursor: duckdb.DuckDBPyConnection, margin: _Margin, sizes: Indices) -> tuple[Indices, Vector]:
    """The category of each cell, and the target of each category."""
    known = {folded(name): name for name in margin.table.columns}
    names = [f"{identifier(known[folded(name)])} AS {identifier(name)}" for name in margin.columns]
    order = ", ".join(f"{identifier(name)} NULLS FIRST" for name in margin.columns) or "1"
    cursor.execute(
        "CREATE OR REPLACE TEMP TABLE _sdc_margin AS SELECT *, "
        f"row_number() OVER (ORDER BY {order}) - 1 AS _sdc_code "
        f"FROM (SELECT {', '.join([*names, f'{margin.total}::DOUBLE AS _sdc_total'])} FROM {margin.table.sql})"
    )
    columns = ", ".join(map(identifier, margin.columns)) or "0"
    count, bad, different = cursor.execute(
        "SELECT count(*), count(*) FILTER (_sdc_total IS NULL OR NOT isfinite(_sdc_total) OR _sdc_total < 0), "
        f"(SELECT count(*) FROM (SELECT DISTINCT {columns} FROM _sdc_margin)) FROM _sdc_margin"
    ).fetchall()[0]
    if bad:
        raise SDCError(f"{margin.described}: {bad} of {count} totals are NULL, negative or no finite numbers")
    if different < count:
        raise SDCError(f"{margin.described} has {count} totals of {different} different categories")
    found = cursor.execute(
        f"SELECT coalesce(_sdc_code, -1)::BIGINT AS code FROM _sdc_cells c LEFT JOIN _sdc_margin m "
        f"ON {_alike('c', 'm', margin.columns)} ORDER BY _sdc_cell"
    ).fetchnumpy()
    code = np.asarray(found["code"])
    if (code < 0).any():
        raise SDCError(
            f"{margin.described} has no total for {records(int(sizes[code < 0].sum()))}, whose categories are not in it"
        )
    totals = cursor.execute("SELECT _sdc_total AS total FROM _sdc_margin ORDER BY _sdc_code").fetchnumpy()
    return code, np.asarray(totals["total"], dtype=np.float64)


def _raked(session: Session, call: _Call) -> tuple[_Read, Raked]:
    with reads(session.cursor()) as cursor:
        read = _read(cursor, call)
    return read, rake(
        read.weights, read.codes, read.targets, bounds=call.bounds, tolerance=call.tolerance,
        most_cycles=call.most_cycles, check=shown_checkpoint(),
    )  # fmt: skip


def _factors(session: Session, call: _Call) -> pa.Table:
    """Cell and factor; an error where the margins are not met."""
    _, found = _raked(session, call)
    if not found.converged:
        raise SDCError(
            f"after {found.cycles} cycles a total is still off by {found.gaps.max():.2g} of its target: the margins "
            "contradict each other, or 'bounds' are too narrow; sdc_rake_report has the gap of each margin"
        )
    return pa.table({"cell": np.arange(len(found.factors)), "factor": found.factors})


def plan_rake(
    session: Session, text: str | None, weight: str | None, margins: list[str] | None, total: str | None,
    bounds: list[float | None] | None, tolerance: float | None, max_cycles: int | None,
) -> Rows:  # fmt: skip
    """``sdc_rake``."""
    call = _read_call(session, text, weight, margins, total, bounds, tolerance, max_cycles)
    refuse_taken(call.relation.columns, _ADDED)
    shown = ", ".join(f"s.{identifier(name)}" for name in call.relation.columns)
    weighed = call.weight if call.weight == "1" else f"s.{call.weight}"
    return Rows(
        partial(_factors, session, call),
        f"SELECT {shown}, {weighed}::DOUBLE * m.factor AS raked_weight FROM {call.relation.sql} s "
        f"JOIN ({call.cells}) c ON {_alike('s', 'c', call.columns)} JOIN {{rows}} m ON c._sdc_cell = m.cell",
    )


def plan_rake_report(
    session: Session, text: str | None, weight: str | None, margins: list[str] | None, total: str | None,
    bounds: list[float | None] | None, tolerance: float | None, max_cycles: int | None,
) -> Rows:  # fmt: skip
    """``sdc_rake_report``."""
    call = _read_call(session, text, weight, margins, total, bounds, tolerance, max_cycles)

    def make() -> pa.Table:
        read, found = _raked(session, call)
        weighed = read.weights > 0
        used = found.factors[weighed]
        after, squares = float(read.weights @ found.factors), float(read.squares @ found.factors**2)
        at_bounds = np.isin(found.factors, call.bounds) if call.bounds else np.zeros(len(found.factors), np.bool_)
        shared = {
            "cycles": found.cycles, "converged": found.converged,
            "factor_least": float(used.min()) if len(used) else None,
            "factor_most": float(used.max()) if len(used) else None,
            "at_bounds": int(read.sizes[at_bounds & weighed].sum()),
            "deff": float(read.sizes.sum()) * squares / after**2 if after > 0 else None,
        }  # fmt: skip
        rows = [
            {
                "margin": margin.place, "columns": ", ".join(margin.columns), "categories": len(target),
                "total": float(target.sum()), "gap_before": before, "gap": gap, **shared,
            }
            for margin, target, before, gap in zip(
                call.margins, read.targets, found.before.tolist(), found.gaps.tolist(), strict=True
            )
        ]  # fmt: skip
        return table_of(rows, _REPORT.columns)

    return Rows(make)


_REPORT = planner(plan_rake_report)
PLANNERS = (planner(plan_rake, {"cell": "BIGINT", "factor": "DOUBLE"}), _REPORT)
