"""Integrally private clusters: planners of ``sdc_integral_clusters``, ``_centers`` and ``_check``."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.masking.integral import (
    INITS,
    Clustering,
    Parts,
    centers_of,
    cut_into_parts,
    generator,
    measured,
    rounded,
)
from sdcduck.quoting import identifier
from sdcduck.udfs.arguments import choice, is_finite, needed, number, whole, wrong
from sdcduck.udfs.masking.records import check_ids, key_of, listed, order_of, records, there_are
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.seeds import stream_of
from sdcduck.udfs.source import Source, refuse_taken, source

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_CLUSTERS = {"place": "BIGINT", "macro": "BIGINT", "micro": "BIGINT", "feasible": "BOOLEAN"}
_CENTERS = {
    "macro": "BIGINT", "size": "BIGINT", "centers": "DOUBLE[]", "objective": "DOUBLE", "delta": "DOUBLE",
    "difference": "BIGINT", "feasible": "BOOLEAN", "k_eff": "BIGINT", "warning": "VARCHAR",
}  # fmt: skip
_FEW = 3  # records of a part, below which its centre says much of each
_ADDED = ("macro_id", "micro_id", "feasible")
_TOLD = ("macro_id", "size", "objective", "delta_max", "size_diff_max", "feasible", "k_eff", "warning")


@dataclass(frozen=True)
class _Columns:
    """What is clustered, and by what records are known.

    Attributes:
        scale: what each column is divided by; None: its standard deviation.
        ids: SQL of two whole numbers, of a cluster and of a part, where they are known already.
    """

    relation: Source
    names: tuple[str, ...]
    scale: tuple[float, ...] | None
    id: str | None
    ids: tuple[str, str] | None = None

    @classmethod
    def read(
        cls, session: Session, text: str | None, columns: list[str] | None, scale: list[float | None] | None,
        id: str | None, ids: tuple[str | None, str | None] | None = None,
    ) -> _Columns:  # fmt: skip
        relation = source(session.cursor(), text, "source")
        names = relation.named(needed(columns, "columns", "name the columns of numbers to cluster by"), "columns")
        for name in names:
            relation.number(name, "columns")
        if scale is not None and (
            len(scale) != len(names) or not all(is_finite(one) and (one or 0) > 0 for one in scale)
        ):
            raise wrong("scale", f"hold {len(names)} numbers above 0", "what each column is divided by")
        relation.check_names(tuple(relation.columns))
        known = None
        if ids is not None:
            known = (relation.number(ids[0], "macro"), relation.number(ids[1], "micro"))
        return cls(
            relation, names, None if scale is None else tuple(float(one or 0) for one in scale),
            relation.named([id], "id")[0] if id else None, known,
        )  # fmt: skip

    @property
    def order(self) -> str:
        """By which records are known."""
        return order_of(self.relation, self.id, self.names)

    def values(self, cursor: duckdb.DuckDBPyConnection) -> _Values:
        """The numbers of all records, refused where one is missing."""
        if self.id:
            check_ids(cursor, self.relation, self.id)
        shown = [f"{identifier(name)}::DOUBLE AS c{place}" for place, name in enumerate(self.names)]
        shown += [f"{name}::BIGINT AS i{place}" for place, name in enumerate(self.ids or ())]
        found = cursor.sql(
            f"SELECT *, row_number() OVER (PARTITION BY key) - 1 AS number FROM (SELECT {', '.join(shown)}, "
            f"{key_of(self.relation, self.id)} AS key, row_number() OVER (ORDER BY {self.order}) AS place "
            f"FROM {self.relation.sql}) ORDER BY place"
        ).to_arrow_table()
        gone = np.column_stack([found.column(f"c{place}").is_null().to_numpy() for place in range(len(self.names))])
        if gone.any():
            raise SDCError(f"{int(gone.any(axis=1).sum())} of {records(len(gone))} have NULL in a column to cluster by")
        values = np.column_stack([found.column(f"c{place}").to_numpy() for place in range(len(self.names))])
        if not np.isfinite(values).all():
            raise SDCError("a record has NaN or an infinite number in a column to cluster by")
        if any(found.column(f"i{place}").null_count for place in range(len(self.ids or ()))):
            raise SDCError("a record has NULL as the number of its cluster or part")
        return _Values(
            values.astype(np.float64), self._scale(values),
            found.column("key").to_numpy().astype(np.uint64), found.column("number").to_numpy().astype(np.int64),
            [found.column(f"i{place}").to_numpy() for place in range(len(self.ids or ()))],
        )  # fmt: skip

    def _scale(self, values: Matrix) -> Matrix:
        """What columns are divided by; infinite for constant ones, which tell nothing."""
        constant = np.ptp(values, axis=0) == 0 if len(values) else np.ones(len(self.names), np.bool_)
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.ones(len(self.names))
        return np.where(constant, np.inf, spread if self.scale is None else np.array(self.scale))


@dataclass(frozen=True)
class _Values:
    """What was read: the numbers, what they are divided by, and what records are known by."""

    values: Matrix
    scale: Matrix
    keys: NDArray[np.uint64]
    numbers: Indices
    ids: list[Indices]

    @property
    def points(self) -> Matrix:
        """As they are clustered."""
        return (self.values - self.values.mean(axis=0)) / self.scale if len(self.values) else self.values

    def centers(self, labels: Indices, count: int) -> Matrix:
        """In the units of the source; of a constant column its value, and no mean that rounding has changed."""
        return np.where(np.isinf(self.scale), self.values[:1], centers_of(self.values, labels, count))

    @property
    def steady(self) -> Matrix:
        """The values, where constant columns are 0, so that rounding changes none of their means."""
        return np.where(np.isinf(self.scale), 0.0, self.values)


@dataclass(frozen=True)
class _Wanted:
    kappa: int
    c: int
    size_tolerance: int
    center_tolerance: float
    init: str
    restarts: int
    seed: int


def _wanted(
    kappa: int | None, c: int | None, size_tolerance: int | None, center_tolerance: float | None, init: str | None,
    restarts: int | None, seed: int | None,
) -> _Wanted:  # fmt: skip
    return _Wanted(
        whole(kappa, "kappa", least=1, why="so many data sets are to give the same centres"),
        whole(c, "c", least=1, why="clusters"), whole(size_tolerance, "size_tolerance", least=0),
        number(center_tolerance, "center_tolerance", least=0), choice(init, "init", INITS),
        whole(restarts, "restarts", least=1), _seed(seed),
    )  # fmt: skip


def _seed(seed: int | None) -> int:
    return whole(seed, "seed", least=-(2**63), most=2**63 - 1)


def _clustered(session: Session, columns: _Columns, wanted: _Wanted) -> tuple[_Values, Clustering, Parts] | None:
    """Read, cluster, and cut into parts; None where there are no records."""
    with reads(session.cursor()) as cursor:
        read = columns.values(cursor)
    count = len(read.values)
    if not count:
        return None
    if count < wanted.c * wanted.kappa:
        raise SDCError(f"{there_are(count)}, fewer than c := {wanted.c} clusters of kappa := {wanted.kappa} parts")
    check = shown_checkpoint()
    stream = stream_of(session.secret(), "integral clusters", wanted.seed)
    clustering = Clustering(wanted.c, wanted.init, stream)
    try:
        macro = clustering.labels(read.points, check)
    except ValueError:
        raise SDCError(f"there are fewer than c := {wanted.c} different records") from None
    try:
        parts = cut_into_parts(
            read.points, macro, wanted.kappa, read.keys, read.numbers, seed=stream, restarts=wanted.restarts,
            tolerance=wanted.center_tolerance, check=check,
        )  # fmt: skip
    except ValueError:
        least = int(np.bincount(macro).min())
        raise SDCError(
            f"a cluster has {records(least)}, fewer than kappa := {wanted.kappa} parts: take fewer clusters or parts"
        ) from None
    return read, clustering, parts


def _is_feasible(parts: Parts, wanted: _Wanted) -> bool:
    return parts.delta <= wanted.center_tolerance and parts.difference <= wanted.size_tolerance


def _grid(text: str | None, columns: _Columns) -> tuple[float, ...] | None:
    """To multiples of what the centres are rounded, column by column; None: of a step that fits."""
    given = json.loads(text or "null")
    if given is None:
        return None
    several = given if isinstance(given, list) else [given] * len(columns.names)
    if len(several) != len(columns.names) or not all(is_finite(one) and one > 0 for one in several):
        raise wrong("grid", f"be a number above 0, or a list of {len(columns.names)}")
    return tuple(map(float, several))


def _steps(grid: tuple[float, ...] | None, read: _Values) -> Matrix:
    """The steps of the grid: by default 1, 2 or 5 times a power of ten, at most half of what columns are divided by."""
    if grid is not None:
        return np.where(np.isinf(read.scale), 0.0, np.array(grid))
    return np.array([0.0 if math.isinf(one) else _round_step(one / 2) for one in read.scale.tolist()])


def _round_step(most: float) -> float:
    """The largest of .. 0.1, 0.2, 0.5, 1, 2, 5 .. that is not larger.

    >>> _round_step(0.7), _round_step(49)
    (0.5, 20.0)
    """
    power = 10.0 ** math.floor(math.log10(most))
    return max(factor * power for factor in (1.0, 2.0, 5.0) if factor * power <= most or factor == 1.0)


def _warning(columns: _Columns, smallest: Indices | None = None) -> str | None:
    said = []
    if columns.scale is None:
        said.append(
            "columns were divided by the standard deviations of all records: give 'scale' if these are not public"
        )
    if smallest is not None and smallest.min() < _FEW:
        said.append(f"a part has fewer than {_FEW} records")
    return "; ".join(said) or None


def plan_integral_clusters(
    session: Session, text: str | None, columns: list[str] | None, kappa: int | None, c: int | None,
    size_tolerance: int | None, center_tolerance: float | None, init: str | None, restarts: int | None,
    scale: list[float | None] | None, id: str | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_integral_clusters``: the records, and the cluster and part of each."""
    known = _Columns.read(session, text, columns, scale, id)
    refuse_taken(known.relation.columns, _ADDED)
    wanted = _wanted(kappa, c, size_tolerance, center_tolerance, init, restarts, seed)

    def make() -> pa.Table:
        made = _clustered(session, known, wanted)
        if made is None:
            return table_of([], _CLUSTERS)
        parts = made[2]
        return pa.table(
            {
                "place": np.arange(len(parts.macro)), "macro": parts.macro + 1, "micro": parts.micro + 1,
                "feasible": np.full(len(parts.macro), _is_feasible(parts, wanted)),
            }
        )  # fmt: skip

    shown = ", ".join(f"r.{identifier(name)}" for name in known.relation.columns)
    return Rows(
        make,
        f"""SELECT {shown}, m.macro AS macro_id, m.micro AS micro_id, m.feasible AS feasible
        FROM (SELECT *, row_number() OVER (ORDER BY {known.order}) - 1 AS _sdc_place FROM {known.relation.sql}) r
        JOIN {{rows}} m ON r._sdc_place = m.place""",
    )


def plan_integral_centers(
    session: Session, text: str | None, columns: list[str] | None, kappa: int | None, c: int | None,
    size_tolerance: int | None, center_tolerance: float | None, init: str | None, restarts: int | None,
    scale: list[float | None] | None, grid: str | None, id: str | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_integral_centers``: rounded centres, and how many generators have the same."""
    known = _Columns.read(session, text, columns, scale, id)
    for name in known.names:
        refuse_taken([name], _TOLD)
    wanted, steps = _wanted(kappa, c, size_tolerance, center_tolerance, init, restarts, seed), _grid(grid, known)

    def make() -> pa.Table:
        made = _clustered(session, known, wanted)
        if made is None:
            return pa.table({name: [] for name in _CENTERS})
        read, clustering, parts = made
        step = _steps(steps, read)
        tested = [generator(read.points, read.steady, parts, one, clustering, step) for one in range(wanted.kappa)]
        centers = rounded(read.centers(parts.macro, wanted.c), step)
        count = wanted.c
        return pa.table(
            {
                "macro": np.arange(1, count + 1), "size": parts.smallest, "centers": listed(centers),
                "objective": np.full(count, parts.objective), "delta": parts.deltas, "difference": parts.differences,
                "feasible": np.full(count, _is_feasible(parts, wanted)),
                "k_eff": np.full(count, sum(one.passes for one in tested)),
                "warning": pa.array([_warning(known, parts.smallest)] * count, pa.string()),
            }
        )  # fmt: skip

    shown = ", ".join(f"centers[{place}] AS {identifier(name)}" for place, name in enumerate(known.names, 1))
    return Rows(
        make,
        f"SELECT {shown}, macro AS macro_id, size, objective, delta AS delta_max, difference AS size_diff_max, "
        "feasible, k_eff, warning FROM {rows} ORDER BY macro",
    )


def plan_integral_check(
    session: Session, text: str | None, columns: list[str] | None, macro: str | None, micro: str | None,
    grid: str | None, init: str | None, scale: list[float | None] | None, id: str | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_integral_check``: each generator of records that are in clusters and parts, clustered again."""
    known = _Columns.read(session, text, columns, scale, id, (macro, micro))
    for name in (macro, micro):
        if known.relation.named([name], "columns")[0] in known.names:
            raise SDCError(f"argument 'columns' names column '{name}', which numbers clusters or parts")
    steps, start, chosen = _grid(grid, known), choice(init, "init", INITS), _seed(seed)

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            read = known.values(cursor)
        if not len(read.values):
            return table_of([], _CHECK.columns)
        codes = [np.unique(one, return_inverse=True) for one in read.ids]
        (_, clusters), (numbers, parts) = [(one[0], one[1].reshape(-1).astype(np.int64)) for one in codes]
        count, kappa = int(clusters.max()) + 1, len(numbers)
        sizes = np.bincount(clusters * kappa + parts, minlength=count * kappa)
        if sizes.min() == 0:
            raise SDCError(f"a cluster has no record in one of the {kappa} parts, so that they make no generators")
        order = np.lexsort(centers_of(read.points, clusters, count).T[::-1])
        cut = measured(read.points, np.argsort(order)[clusters], parts, kappa)
        clustering = Clustering(count, start, stream_of(session.secret(), "integral clusters", chosen))
        check, rows = shown_checkpoint(), []
        for place, name in enumerate(numbers.tolist()):
            check(place, kappa)
            one = generator(read.points, read.steady, cut, place, clustering, _steps(steps, read))
            rows.append(
                {
                    "generator": int(name), "n": one.records, "label_changes": one.changes,
                    "max_center_shift": one.shift, "passes": one.passes, "warning": _warning(known),
                }
            )  # fmt: skip
        return table_of(rows, _CHECK.columns)

    return Rows(make)


_CHECK = planner(plan_integral_check)
PLANNERS = (
    planner(plan_integral_clusters, _CLUSTERS),
    planner(plan_integral_centers, _CENTERS),
    _CHECK,
)
