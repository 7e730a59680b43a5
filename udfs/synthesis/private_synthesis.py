"""Differentially private tables: planners behind ``sql/private_synthesis_tables.sql``."""

from __future__ import annotations

import importlib.util
import json
import math
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck import catalog
from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner, planners
from sdcduck.functions.jobs import checkpoint, confirm, reads
from sdcduck.functions.registry import Family, Rows, Session
from sdcduck.methods.synthesis.private_synthesis import (
    MECHANISMS,
    drawn,
    epsilon_spent,
    fit_margins,
    made_positive,
    margin,
    noisy_counts,
    pairs,
    rounded,
    signal_share,
    total_of,
)
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import among, choice, number, whole, wrong
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import refuse_taken
from sdcduck.udfs.synthesis.privacy_ledger import BUDGET, NEIGHBOURS, tables_read
from sdcduck.udfs.synthesis.tables import Cells

MOST_CELLS = 10**7
"""Cells of a whole table, empty ones counted: each is held in memory."""
MOST_RECORDS = 10**12
_LEAST_SIGNAL = 0.95
_SENSITIVITY = {"add_remove": 1, "replace": 2}

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class _Call:
    """A checked call.

    Attributes:
        axes: the columns of each table that gets noise, by their place.
        total: the number of records, where it is public; None: estimated from the noisy tables.
        from_data: the columns whose categories are taken from the data.
    """

    cells: Cells
    epsilon: float
    method: str
    mechanism: str
    neighbours: str
    axes: list[tuple[int, ...]]
    prior: float
    total: int | None
    from_data: tuple[str, ...]

    @property
    def sensitivity(self) -> int:
        """How much all counts of one table change in sum between neighbours."""
        return _SENSITIVITY[self.neighbours]

    @property
    def scale(self) -> float:
        """Of the noise: every table gets an equal share of epsilon."""
        return self.sensitivity * len(self.axes) / self.epsilon

    @property
    def spent(self) -> float:
        """What the tables spend together, as certified."""
        return len(self.axes) * epsilon_spent(self.mechanism, self.scale, self.sensitivity)

    def named(self, axes: tuple[int, ...]) -> str:
        """The columns of a table, in words."""
        return " x ".join(self.cells.by[axis] for axis in axes)

    def release(self, cursor: duckdb.DuckDBPyConnection) -> catalog.PrivateRelease:
        """As the ledger has it."""
        what = f"{self.method}, {self.mechanism}: {', '.join(map(self.named, self.axes))}"
        relation = self.cells.relation
        return catalog.PrivateRelease(tables_read(cursor, relation), self.neighbours, self.spent, what, relation.text)


def _margins(text: str | None, by: tuple[str, ...]) -> list[tuple[int, ...]]:
    """The margins of argument ``margins``: 'twoway', 'oneway', or a list of lists of columns."""
    given = json.loads(text or "null")
    if given == "twoway":
        return pairs(len(by))
    if given == "oneway":
        return [(place,) for place in range(len(by))]
    if not isinstance(given, list) or not given or not all(isinstance(one, list) and one for one in given):
        raise wrong("margins", "be 'twoway', 'oneway', or lists of columns", "[['a', 'b'], ['b', 'c']]")
    found: list[tuple[int, ...]] = []
    for names in given:
        axes = tuple(sorted(set(among(names, "margins", by, "'dimensions'"))))
        if len(axes) < len(names):
            raise SDCError("argument 'margins' names a column twice in one margin")
        if axes in found:
            raise SDCError("argument 'margins' holds a margin twice")
        found.append(axes)
    for place, name in enumerate(by):
        if not any(place in axes for axes in found):
            raise SDCError(f"column '{name}' is in no margin: nothing would be known of it")
    return found


def _read_call(
    session: Session, text: str | None, by: list[str] | None, epsilon: float | None, method: str | None,
    margins: str | None, mechanism: str | None, neighbours: str | None, count: str | None, domains: str | None,
    public_domains: bool | None, structural: str | None, prior: float | None, total: int | None,
) -> _Call:  # fmt: skip
    cost = number(epsilon, "epsilon", above=0, why="what the whole table may cost in privacy")
    how, noise = choice(method, "method", ("ipf", "catall")), choice(mechanism, "mechanism", MECHANISMS)
    relation = choice(neighbours, "neighbours", NEIGHBOURS)
    added = number(prior, "prior_n", least=0)
    size = None if total is None else whole(total, "total", least=0, most=MOST_RECORDS)
    if importlib.util.find_spec("opendp") is None:
        raise SDCError("differential privacy needs the package 'opendp': pip install 'sdcduck[dp]'")
    cells = Cells.read(session, text, by, count, domains, structural, elsewhere=False)
    refuse_taken(cells.by, ("converged",))
    from_data = tuple(name for name in cells.by if name not in cells.domains)
    if from_data and not public_domains:
        raise SDCError(
            f"the categories of column '{from_data[0]}' would be taken from the data, which is not private: "
            "give them in domains := {'sex': ['f', 'm'], ..}, or say public_domains := true if everybody may know them"
        )
    axes = [tuple(range(len(cells.by)))] if how == "catall" else _margins(margins, cells.by)
    call = _Call(cells, cost, how, noise, relation, axes, added, size, from_data)
    if not 0 < call.scale < math.inf:
        raise SDCError("argument 'epsilon' is so small or so large that there is no such noise")
    return call


# --- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """The whole table, in memory: one axis a column.

    Attributes:
        counts: int64.
        possible: bool, false for structural zeros.
        place: int64, of each possible cell as the cursor numbers them, in the flat table.
    """

    counts: Indices
    possible: NDArray[np.bool_]
    place: Indices


def _read_table(cursor: duckdb.DuckDBPyConnection, call: _Call) -> _Table:
    """Reads the cells into the temporary table ``_cells`` of the cursor, which numbers them."""
    check = checkpoint()
    size = replace(call.cells, structural=None).total(cursor)
    if size > MOST_CELLS:
        raise SDCError(
            f"there are more than {MOST_CELLS} combinations of categories: take fewer columns, coarser categories, or "
            "make several tables of fewer columns and share epsilon among them"
        )
    check()
    cursor.execute(
        "CREATE TEMP TABLE _cells AS SELECT row_number() OVER () - 1 AS _sdc_cell, * "
        f"FROM ({call.cells.rows(empty=True)})"
    )
    check()
    names = [identifier(name) for name in call.cells.by]
    for place, name in enumerate(names):
        cursor.execute(
            f"CREATE TEMP TABLE _d{place} AS SELECT *, row_number() OVER () - 1 AS _sdc_code FROM "
            f"(SELECT DISTINCT {name} FROM _cells)"
        )
    joins = " ".join(
        f"JOIN _d{place} ON _cells.{name} IS NOT DISTINCT FROM _d{place}.{name}" for place, name in enumerate(names)
    )
    codes = ", ".join(f"_d{place}._sdc_code AS _c{place}" for place in range(len(names)))
    columns = cursor.execute(f"SELECT _sdc_n, {codes} FROM _cells {joins} ORDER BY _sdc_cell").fetchnumpy()
    counts, *found = (np.asarray(column, dtype=np.int64) for column in columns.values())
    check()
    shape = tuple(int(code.max(initial=-1)) + 1 for code in found)
    place_of = np.ravel_multi_index(tuple(found), shape) if len(counts) else counts
    table = np.zeros(math.prod(shape), dtype=np.int64)
    possible = np.zeros(len(table), dtype=np.bool_)
    table[place_of], possible[place_of] = counts, True
    return _Table(table.reshape(shape), possible.reshape(shape), place_of)


# --- the functions ---------------------------------------------------------------------------------------------------


def plan_synth_dp(
    session: Session, text: str | None, by: list[str] | None, epsilon: float | None, method: str | None,
    margins: str | None, mechanism: str | None, neighbours: str | None, count: str | None, domains: str | None,
    public_domains: bool | None, structural_zeros: str | None, prior_n: float | None, total: int | None,
    is_rounded: bool | None, tol: float | None, max_iter: int | None, zeros: bool | None, records: bool | None,
) -> Rows:  # fmt: skip
    """``sdc_synth_dp``: a noisy table, made when the statement runs."""
    call = _read_call(
        session, text, by, epsilon, method, margins, mechanism, neighbours, count, domains, public_domains,
        structural_zeros, prior_n, total,
    )  # fmt: skip
    tolerance, most_sweeps = number(tol, "tol", above=0), whole(max_iter, "max_iter", least=1)

    def make() -> pa.Table:
        with session.cursor() as ledger:
            release = call.release(ledger)
            catalog.check_private_release(ledger, release)  # what must not be released need not be read
        with reads(session.cursor()) as cursor:
            table = _read_table(cursor, call)
            if len(table.place):
                # Charged before there is noise, and for good: what is made of it may be told by an error, too.
                confirm()
                with session.cursor() as ledger:
                    catalog.charge_private_release(ledger, release)
            counts, converged = _made_private(call, table, bool(is_rounded), tolerance, most_sweeps)
            shown = pa.table({"_sdc_cell": np.arange(len(counts)), "_sdc_count": counts})
            cursor.register("_made", shown if zeros else shown.filter(pa.array(counts > 0)))
            categories = ", ".join(f"{identifier(name)}::VARCHAR" for name in call.cells.by)
            return cursor.sql(
                f"SELECT to_json([{categories}])::VARCHAR AS categories, _sdc_count AS count, "
                f"{str(converged).lower()} AS converged FROM _made JOIN _cells USING (_sdc_cell)"
            ).to_arrow_table()

    columns = ", ".join(
        f"(categories->>{place})::{call.cells.relation.type_of(name)} AS {identifier(name)}"
        for place, name in enumerate(call.cells.by)
    )
    if records:
        select = f'SELECT {columns}, converged FROM (SELECT *, unnest(range("count")) FROM {{rows}}) ORDER BY random()'
    else:
        select = f'SELECT {columns}, "count", converged FROM {{rows}}'
    return Rows(make, select)


def _made_private(
    call: _Call, table: _Table, is_rounded: bool, tolerance: float, most_sweeps: int
) -> tuple[Indices, bool]:
    """The private counts of the possible cells, in their order, and whether the margins could be reconciled."""
    check = checkpoint()
    if not len(table.place):
        return np.zeros(0, dtype=np.int64), True
    noisy, cells, masks = [], [], []
    for axes in call.axes:
        possible = margin(table.possible, axes) > 0
        counts = margin(table.counts, axes)
        values = np.zeros(counts.shape)
        values[possible] = noisy_counts(counts[possible], call.mechanism, call.scale, check)
        noisy.append(values)
        masks.append(possible)
        cells.append(int(possible.sum()))
    # From here on nothing looks at the data, but for the number of records where it is public.
    total = call.total
    if total is None:
        total = int(table.counts.sum()) if call.neighbours == "replace" else total_of(noisy, cells)
    if total > MOST_RECORDS:
        raise SDCError("the number of records is lost in the noise: take a larger epsilon, or give argument 'total'")
    if total == 0:
        return np.zeros(len(table.place), dtype=np.int64), True
    targets = [
        made_positive(values + call.prior / number, mask, total)
        for values, mask, number in zip(noisy, masks, cells, strict=True)
    ]
    fitted, converged = targets[0], True
    if call.method == "ipf":
        fit = fit_margins(table.possible, call.axes, targets, tolerance=tolerance, most_sweeps=most_sweeps, check=check)
        fitted, converged = fit.table, fit.converged
    made = rounded(fitted, total) if is_rounded else drawn(fitted, total, np.random.default_rng())
    return made.ravel()[table.place], converged


def plan_synth_dp_statement(
    session: Session, text: str | None, by: list[str] | None, epsilon: float | None, method: str | None,
    margins: str | None, mechanism: str | None, neighbours: str | None, count: str | None, domains: str | None,
    public_domains: bool | None, structural_zeros: str | None, prior_n: float | None, total: int | None,
) -> str:  # fmt: skip
    """``sdc_synth_dp_statement``: what is promised, and what is not; it reads no data but the names of columns."""
    call = _read_call(
        session, text, by, epsilon, method, margins, mechanism, neighbours, count, domains, public_domains,
        structural_zeros, prior_n, total,
    )  # fmt: skip
    law = "two-sided geometric" if call.mechanism == "geometric" else "Laplace"
    share = epsilon_spent(call.mechanism, call.scale, call.sensitivity)
    if call.total is not None:
        size = (f"given: {call.total}", False)
    elif call.neighbours == "replace":
        size = ("that of the data, which the neighbouring relation takes to be public", False)
    else:
        size = ("estimated from the noisy tables", True)
    rows: list[tuple[str, str, float | None, bool | None]] = [
        ("privacy", f"epsilon-differential privacy; composition: sum over the {len(call.axes)} noisy table(s)",
         call.spent, True),
        ("neighbours", NEIGHBOURS[call.neighbours], None, None),
        ("unit", "one record; whoever has several is protected less, by their number times epsilon", None, None),
        ("noise", f"{law}, scale {call.scale:g}, by OpenDP; not reproducible, no seed", None, None),
        *((f"table {call.named(axes)}", f"sensitivity {call.sensitivity}", share, True) for axes in call.axes),
        ("number of records", size[0], None, size[1]),
        *(
            (f"categories of {name}",
             "from the data, said to be public" if name in call.from_data else "given in the statement", None, False)
            for name in call.cells.by
        ),
        *([("structural zeros", "given in the statement", None, False)] if call.cells.structural else []),
        ("errors", "that a record has a category or a combination that is not foreseen is told", None, False),
        ("repetition", "every call draws new noise and spends epsilon again, see sdc_synth_dp_ledger", None, None),
    ]  # fmt: skip
    values = ", ".join(
        f"({place}, {literal(item)}, {literal(value)}, {'NULL' if cost is None else repr(cost)}::DOUBLE, "
        f"{'NULL' if private is None else private}::BOOLEAN)"
        for place, (item, value, cost, private) in enumerate(rows)
    )
    return (
        f"SELECT item, value, epsilon, private FROM (VALUES {values}) told(n, item, value, epsilon, private) ORDER BY n"
    )


def plan_synth_dp_preflight(
    session: Session, text: str | None, by: list[str] | None, epsilon: float | None, margins: str | None,
    neighbours: str | None, count: str | None, domains: str | None, structural_zeros: str | None,
) -> Rows:  # fmt: skip
    """``sdc_synth_dp_preflight``: how much of each method's tables would be noise. It tells of the data."""
    calls = [
        _read_call(
            session, text, by, epsilon, method, margins, "geometric", neighbours, count, domains, True,
            structural_zeros, 0.0, None,
        )
        for method in ("catall", "ipf")
    ]  # fmt: skip

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            table = _read_table(cursor, calls[0])
        records, possible = int(table.counts.sum()), int(table.possible.sum())
        uniques, empty = int((table.counts == 1).sum()), int((table.possible & (table.counts == 0)).sum())
        rows = []
        for call in calls:
            shares = [
                signal_share(
                    records,
                    int(((margin(table.possible, axes) > 0) & (margin(table.counts, axes) == 0)).sum()),
                    call.scale,
                )
                for axes in call.axes
            ]
            share = min(shares)
            rows.append(
                {
                    "method": call.method, "tables": len(call.axes), "scale": call.scale, "records": records,
                    "cells": possible, "empty": empty, "uniques": uniques,
                    "p0": 100 * empty / possible if possible else None,
                    "p1": 100 * uniques / records if records else None, "signal_share": share,
                    "advice": "good" if share >= _LEAST_SIGNAL
                    else "noise in empty cells counts: expect bias" if share >= 0.5
                    else "most of it would be noise",
                }
            )  # fmt: skip
        return table_of(rows, _PREFLIGHT_COLUMNS)

    return Rows(make)


_CELL_COLUMNS = {"categories": "VARCHAR", "count": "BIGINT", "converged": "BOOLEAN"}
_PREFLIGHT_COLUMNS = {
    "method": "VARCHAR", "tables": "BIGINT", "scale": "DOUBLE", "records": "BIGINT", "cells": "BIGINT",
    "empty": "BIGINT", "uniques": "BIGINT", "p0": "DOUBLE", "p1": "DOUBLE", "signal_share": "DOUBLE",
    "advice": "VARCHAR",
}  # fmt: skip

FAMILY = Family(
    name="private_synthesis",
    stored=("private_synthesis.sql",),
    temporary=("private_synthesis_tables.sql",),
    planners=(
        *planners(plan_synth_dp_statement, plan_synth_dp_preflight),
        planner(plan_synth_dp, _CELL_COLUMNS),
        BUDGET,
    ),
)
