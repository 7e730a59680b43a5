"""Cell-key perturbation as an ibis expression: the numbers of `sdc_count` and `sdc_sum` on any SQL backend.

The p-table becomes a searched CASE over row and cell key, so the SQL needs no table, no function and no session of its
own, and reads like any other. What `sdc_count` refuses with an error is NULL here, as SQL has no errors of its own:
cells with a record without a key, with negative keys, or with a measure that is not finite.

Method: Thompson, Broadfoot & Elazar (2013) for counts; Giessing & Tent (2019) for magnitudes, with one contribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import duckdb
import ibis
import ibis.expr.types as ir
import numpy as np

from sdcduck import catalog
from sdcduck.catalog import StoredPTable
from sdcduck.errors import SDCError, unknown
from sdcduck.functions.install import connect

_MOST_INTERVALS = 2_000
_GRID = 10_000.0
_OFF_GRID = 9.2e14


@dataclass(frozen=True)
class CellKeyMetric:
    """A number of a cell. Made by `cell_key_count` and `cell_key_sum`.

    Attributes:
        measure: the column that is added up; None: records are counted.
        ptable: name of the p-table.
        p_large: noise coefficient of the largest contribution.
    """

    measure: str | None
    ptable: str
    p_large: float = 0.1


def cell_key_count(*, ptable: str = "default") -> CellKeyMetric:
    """The number of records: `sdc_count(record_key, ptable := ..)`."""
    return CellKeyMetric(None, ptable)


def cell_key_sum(measure: str, *, ptable: str = "default_magnitude", p_large: float = 0.1) -> CellKeyMetric:
    """The sum of a measure: `sdc_sum(measure, record_key, ptable := .., p_large := ..)`."""
    if not 0 < p_large < float("inf"):
        raise SDCError("argument 'p_large' must be a positive number")
    return CellKeyMetric(measure, ptable, float(p_large))


def cell_key_table(
    table: ir.Table,
    by: str | Sequence[str],
    metrics: Mapping[str, CellKeyMetric],
    *,
    record_key: str = "record_key",
    ptables: duckdb.DuckDBPyConnection | None = None,
) -> ir.Table:
    """A table with noise by cell keys, on whatever backend the records are.

    >>> people = ibis.table({"region": "string", "record_key": "int32"}, name="people")
    >>> cell_key_table(people, "region", {"n": cell_key_count()}).schema()
    ibis.Schema {
      region  string
      n       int64
    }

    Args:
        table: the records.
        by: columns that make the cells; none: one cell.
        metrics: names of the numbers, and what they are.
        record_key: the column of keys, of 8 digits or of as many as the p-table wants.
        ptables: a connection with stored p-tables (`sdc_store_ptable`); None: the built-in ones.

    Raises:
        SDCError: an unknown column or p-table, or a p-table that does not fit.
    """
    groups = [by] if isinstance(by, str) else list(by)
    for name in (*groups, record_key, *(metric.measure for metric in metrics.values() if metric.measure is not None)):
        if name not in table.columns:
            raise unknown("column", name, table.columns)
    if not metrics:
        raise SDCError("argument 'metrics' must name at least one number, such as {'n': cell_key_count()}")
    key = table[record_key]
    if not key.type().is_integer():
        raise SDCError(f"record keys must be integers; '{record_key}' is {key.type()}")
    stored = _built_in() if ptables is None else {one.name: one for one in catalog.stored_ptables(ptables)}
    parts = {"_sdc_n": table.count(), "_sdc_keys": key.count(), "_sdc_least": key.min(), "_sdc_key": key.sum()}
    for place, metric in enumerate(metrics.values()):
        parts |= _parts(table, key, metric, place)
    cells = table.group_by(groups).agg(**parts) if groups else table.agg(**parts)
    sound = (cells["_sdc_n"] == cells["_sdc_keys"]) & (cells["_sdc_least"].fill_null(0) >= 0)
    numbers = {
        name: _count(cells, sound, _ptable(stored, metric.ptable, "counts"))
        if metric.measure is None
        else _sum(cells, sound, _ptable(stored, metric.ptable, "magnitudes"), metric.p_large, place)
        for place, (name, metric) in enumerate(metrics.items())
    }
    return cells.select(*groups, **numbers)


@cache
def _built_in() -> dict[str, StoredPTable]:
    with connect() as con:
        return {one.name: one for one in catalog.stored_ptables(con)}


def _ptable(stored: Mapping[str, StoredPTable], name: str, kind: str) -> StoredPTable:
    if name not in stored:
        raise unknown("p-table", name, stored)
    table = stored[name]
    if table.kind != kind:
        raise SDCError(f"p-table '{name}' is for {table.kind}, not for {kind}")
    if len(table.i) > _MOST_INTERVALS:
        raise SDCError(f"p-table '{name}' has {len(table.i)} intervals, too many to be written into SQL")
    if (table.type != "all").any():
        raise SDCError(f"p-table '{name}' tells even and odd cells apart, which cell_key_table does not")
    return table


def _parts(table: ir.Table, key: ir.IntegerColumn, metric: CellKeyMetric, place: int) -> dict[str, ir.Value]:
    """What has to be added up for a number."""
    if metric.measure is None:
        return {}
    y = table[metric.measure]
    if not y.type().is_numeric():
        raise SDCError(f"column '{metric.measure}' is {y.type()}, and cannot be added up")
    total = y.sum().cast("float64")
    if y.type().is_floating():
        total = _on_grid(y.cast("float64")).sum().cast("float64") / _GRID
    return {
        f"_sdc_x{place}": total,
        f"_sdc_t{place}": y.abs().max().cast("float64"),
        f"_sdc_key{place}": (y != 0).ifelse(key, 0).sum(),
    }


def _on_grid(y: ir.FloatingColumn) -> ir.IntegerColumn:
    """Whole multiples of 1 / 10000, ties to even, as DuckDB's casts do: sums of them are exact in any order."""
    scaled = (y.abs() < _OFF_GRID).ifelse(y, ibis.null("float64")) * _GRID
    below = scaled.floor().cast("int64")
    rest = scaled - below
    up = (rest > 0.5) | ((rest == 0.5) & (below % 2 != 0))
    return below + up.ifelse(1, 0)


def _count(cells: ir.Table, sound: ir.BooleanColumn, ptable: StoredPTable) -> ir.IntegerColumn:
    n = cells["_sdc_n"]
    last = int(ptable.i.max())
    beyond = last if ptable.repeat == 1 else last - ptable.repeat + 1 + (n - last - 1) % ptable.repeat
    row = (n > last).ifelse(beyond, n)
    key = cells["_sdc_key"].fill_null(0) % ptable.modulus
    codes = [_code(ptable, value, key) for value in range(last + 1)]
    noise = ibis.cases(*((row == value, code) for value, code in enumerate(codes[:-1])), else_=codes[-1])
    return sound.ifelse(n + noise, ibis.null("int64")).cast("int64")


def _sum(cells: ir.Table, sound: ir.BooleanColumn, ptable: StoredPTable, p_large: float, place: int) -> ir.Value:
    """As `_sdc_next_value` and `_sdc_large_cell_value` of the macros, operation by operation: to the last bit."""
    x, t = cells[f"_sdc_x{place}"], cells[f"_sdc_t{place}"]
    key = cells[f"_sdc_key{place}"].fill_null(0) % ptable.modulus
    rows = sorted(set(ptable.i.tolist()))
    codes = [_code(ptable, row, key).cast("float64") for row in rows]
    size, delta = x.abs(), t * p_large
    ratio = ibis.greatest(1.0, size / delta)
    corners = []
    for place_of_row in range(len(rows) - 2, -1, -1):
        below, above = rows[place_of_row], rows[place_of_row + 1]
        upper = (ratio - below) / (above - below)
        between = (1 - upper) * codes[place_of_row] + upper * codes[place_of_row + 1]
        corners.append((ratio >= below, between / float(ptable.step)))
    most = codes[-1] / float(ptable.step)
    noise = ibis.cases((ratio >= rows[-1], most), *corners[:-1], else_=corners[-1][1])
    sign = (x < 0).ifelse(-1, 1)
    near = x + sign * ibis.greatest(ibis.least(size, delta) * noise, -size)
    far = x + sign * (t * p_large * most)
    is_far = size >= rows[-1] * t * p_large
    value = ((x == 0) | (t == 0)).ifelse(x, is_far.ifelse(far, near))
    return (sound & (t < _OFF_GRID)).ifelse(value, ibis.null("float64"))


def _code(ptable: StoredPTable, row: float, key: ir.IntegerColumn) -> ir.IntegerValue:
    """The noise of a row at a key, in steps: the first interval that ends above the key."""
    here = ptable.i == row
    codes = np.rint(ptable.v[here] * ptable.step).astype(np.int64).tolist()
    ends = ptable.ub[here].tolist()
    if len(codes) == 1:
        return ibis.literal(codes[0], type="int64")
    return ibis.cases(
        *((key < end, code) for end, code in zip(ends[:-1], codes[:-1], strict=True)),
        else_=ibis.literal(codes[-1], type="int64"),
    )
