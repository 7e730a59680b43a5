"""Distances to closest records: planners behind ``sql/synthetic_risk_tables.sql``."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.catalog import first_row
from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner, planners
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.risk.closest import (
    ROUNDING,
    holdout_share,
    nearest_ratio,
    overlaps,
    quantile_places,
    quantiles,
    smaller,
)
from sdcduck.methods.risk.nearest import nearest
from sdcduck.quoting import identifier
from sdcduck.udfs.arguments import among, choice, is_finite, share, struct, truth, whole, wrong
from sdcduck.udfs.compared import COMPARED, Compared
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import refuse_taken
from sdcduck.udfs.suppression.pattern import arrow

_DISTANCES = ("gower", "buckets")
_RANGES = ("all", "original")
_MOST_BUCKETS = 65_000
_MOST_BINS = 1000
_MANY_TIES = 0.05
_LEAST_P = 0.05

Matrix = NDArray[np.float64]
Distances = NDArray[np.float64]


@dataclass(frozen=True)
class Distance:
    """How the distance of two records is measured.

    Attributes:
        buckets: numbers are categories, of so many buckets; None: Gower's distance.
        weights: by place of the column.
        numbers, ordinal: places of the columns whose differences count; those that are ranks of an ENUM.
        with_synthetic: whether the range of a column is that of the synthetic records too.
    """

    buckets: int | None
    weights: Matrix
    numbers: frozenset[int]
    ordinal: frozenset[int]
    with_synthetic: bool

    @property
    def total(self) -> float:
        """What the sum over the columns is divided by."""
        return 1.0 if self.buckets else float(self.weights.sum())

    @property
    def largest(self) -> float:
        """The distance of records that differ in everything."""
        return float(self.weights.sum()) / self.total


@dataclass(frozen=True)
class Call:
    """The arguments that all functions of distances share.

    Attributes:
        compared: tables 'original', 'synthetic' and, if there is one, 'holdout'.
    """

    compared: Compared
    distance: Distance

    @property
    def has_holdout(self) -> bool:
        """Whether there is a holdout."""
        return "holdout" in self.compared.tables


def read_call(
    cursor: duckdb.DuckDBPyConnection, original: str | None, synthetic: str | None, holdout: str | None,
    columns: list[str] | None, distance: str | None, categorical: list[str] | None, ordinal: list[str] | None,
    weights: str | None, buckets: int | None, range_from: str | None, *, leaving_out: str | None = None,
) -> Call:  # fmt: skip
    """Check the arguments that all functions of distances share."""
    tables = {"original": original, "synthetic": synthetic, "holdout": holdout}
    compared = Compared.read(cursor, tables, columns, leaving_out=leaving_out)
    in_buckets = choice(distance, "distance", _DISTANCES) == "buckets"
    with_synthetic = choice(range_from, "range_from", _RANGES) == "all"
    most = whole(buckets, "buckets", least=1, most=_MOST_BUCKETS)
    as_categories = set(among(categorical, "categorical", compared.names, COMPARED))
    as_ranks = set(among(ordinal, "ordinal", compared.names, COMPARED))
    for place in as_ranks:
        types = {table.type_of(compared.names[place]) for table in compared.tables.values()}
        if len(types) > 1 or not types.pop().startswith("ENUM"):
            raise SDCError(
                f"argument 'ordinal': column '{compared.names[place]}' must be of one ENUM type in all tables, whose "
                "labels are in order"
            )
    if both := as_categories & as_ranks:
        raise SDCError(f"column '{compared.names[min(both)]}' cannot be both 'categorical' and 'ordinal'")
    plain = {k for k, name in enumerate(compared.names) if compared.kind(name) not in ("text", "boolean")}
    numbers = frozenset(plain - as_categories | as_ranks)
    weighed = _weights(compared, weights)
    return Call(compared, Distance(most if in_buckets else None, weighed, numbers, frozenset(as_ranks), with_synthetic))


def _weights(compared: Compared, text: str | None) -> Matrix:
    example = "{'age': 2, 'sex': 0.5}"
    given = struct(text, "weights", example)
    weights = np.ones(len(compared.names))
    for place, weight in zip(among(given, "weights", compared.names, COMPARED), given.values(), strict=True):
        if not is_finite(weight) or weight < 0:
            raise wrong("weights", "hold numbers of at least 0", example)
        weights[place] = weight
    if not weights.any():
        raise SDCError("argument 'weights' leaves no column")
    return weights


# --- the records as numbers ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Records:
    """The records of the tables, coded for `nearest`.

    Attributes:
        tables: by argument, n x p.
        scales: by column.
        ids: what the synthetic records are called, if that was asked for.
    """

    tables: dict[str, Matrix]
    scales: Matrix
    ids: pa.ChunkedArray | None


def read_records(cursor: duckdb.DuckDBPyConnection, call: Call, key: str | None = None) -> Records:
    """Read the tables: categories as codes that are the same for all of them, numbers as they are.

    Args:
        key: column of the synthetic records that says what they are called.
    """
    compared, distance = call.compared, call.distance
    read, sizes = {}, {}
    for argument, table in compared.tables.items():
        shown = []
        for place, name in enumerate(compared.names):
            if place in distance.ordinal:
                value = f"enum_code({table.column(name, 'columns')})::DOUBLE"
            elif place in distance.numbers:
                value = compared.number(argument, name)
            else:
                value = compared.category(argument, name)
            shown.append(f"{value} AS c{place}")
        if key is not None and argument == "synthetic":
            shown.append(f"{table.column(key, 'id')}::VARCHAR AS id")
        rows = arrow(cursor, f"SELECT {', '.join(shown)} FROM {table.sql}")
        read[argument] = dict(zip(rows.column_names, rows.columns, strict=True))
        sizes[argument] = len(rows)
        del rows
    ends = np.cumsum([0, *sizes.values()])
    within = dict(zip(sizes, map(slice, ends[:-1], ends[1:]), strict=True))
    tables = {argument: np.empty((sizes[argument], len(compared.names))) for argument in sizes}
    scales = np.zeros(len(compared.names))
    for place, name in enumerate(compared.names):
        parts = [read[argument].pop(f"c{place}") for argument in sizes]  # each column makes room for the next
        if place not in distance.numbers:
            values = _codes(parts)
        else:
            values = np.concatenate([_numbers(part) for part in parts])
            if distance.buckets:
                values = quantile_places(values, distance.buckets)
            elif place in distance.ordinal:
                none = f"(SELECT {identifier(name)} FROM {compared.tables['original'].sql} LIMIT 0)"
                labels = first_row(cursor, f"SELECT len(enum_range({none}))")
                scales[place] = max(labels[0] - 1, 0) if labels else 0
            else:
                known = values if distance.with_synthetic else np.delete(values, np.r_[within["synthetic"]])
                scales[place] = _range(known)
        for argument, here in within.items():
            tables[argument][:, place] = values[here]
    return Records(tables, scales, None if key is None else read["synthetic"]["id"])


def _codes(parts: list[pa.ChunkedArray]) -> Matrix:
    chunks = [chunk for part in parts for chunk in part.chunks]
    kinds = {chunk.type for chunk in chunks}
    if len(kinds) > 1:  # numbers that are categories, of several types
        chunks = [chunk.cast(pa.float64()) for chunk in chunks]
    if not chunks:
        return np.empty(0)
    codes = pa.chunked_array(chunks).combine_chunks().dictionary_encode().indices
    return _numbers(codes)


def _numbers(values: Any) -> Matrix:
    """As doubles; NULL is NaN."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    made: Matrix = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return made


def _range(values: Matrix) -> float:
    known = values[~np.isnan(values)]
    return float(known.max() - known.min()) if len(known) else 0.0


class _Search:
    """Nearest records, one search after the other, shown as one piece of work."""

    def __init__(self, records: Records, distance: Distance, searches: list[str]) -> None:
        self._records, self._distance = records, distance
        self._check = shown_checkpoint()
        self._done, self._all = 0, sum(len(records.tables[of]) for of in searches)

    def distances(self, of: str, to: str, k: int) -> Distances:
        """Distances of the records of a table to the k nearest of another."""
        tables = self._records.tables
        found = nearest(
            tables[of], tables[to], self._records.scales, self._distance.weights, k=k,
            check=lambda done, _: self._check(self._done + done, self._all),
        )  # fmt: skip
        self._done += len(tables[of])
        return found.distances / self._distance.total


# --- functions -------------------------------------------------------------------------------------------------------

RECORD_COLUMNS = {
    "record": "BIGINT", "dcr": "DOUBLE", "second": "DOUBLE", "nndr": "DOUBLE", "dcr_holdout": "DOUBLE",
    "closer": "VARCHAR", "id": "VARCHAR",
}  # fmt: skip


def plan_dcr_records(session: Session, *arguments: Any) -> Rows:
    """``sdc_dcr_records``: a row for each synthetic record."""
    *shared, key, itself = arguments
    call = read_call(session.cursor(), *shared, leaving_out=key)
    synthetic = call.compared.tables["synthetic"]
    if truth(itself, "itself") and call.has_holdout:
        raise SDCError("argument 'itself' is for one table and itself: leave 'holdout' out")
    if itself and call.compared.tables["original"].sql != synthetic.sql:
        raise SDCError("argument 'itself' is for one table and itself: name it twice")
    shown = ", ".join(name for name in RECORD_COLUMNS if name not in ("record", "id"))
    select = f"SELECT record, {shown} FROM {{rows}}"
    if key is not None:
        named = synthetic.column(key, "id")
        refuse_taken([key], shown.split(", "))
        select = f"SELECT id::{synthetic.type_of(key)} AS {named}, {shown} FROM {{rows}}"

    def make() -> pa.Table:
        cursor = reads(session.cursor())
        records = read_records(cursor, call, key)
        search = _Search(records, call.distance, ["synthetic"] * (2 if call.has_holdout else 1))
        found = search.distances("synthetic", "original", 3 if itself else 2)[:, 1 if itself else 0 :]
        holdout: Any = [None] * len(found)
        closer: Any = [None] * len(found)
        if call.has_holdout:
            holdout = search.distances("synthetic", "holdout", 1)[:, 0]
            if len(records.tables["original"]) and len(records.tables["holdout"]):
                apart = found[:, 0] - holdout
                closer = np.where(np.abs(apart) <= ROUNDING, "neither", np.where(apart < 0, "original", "holdout"))
        return pa.table(
            {
                "record": pa.array(np.arange(1, len(found) + 1)), "dcr": _known(found[:, 0]),
                "second": _known(found[:, 1]), "nndr": _known(nearest_ratio(found[:, 0], found[:, 1])),
                "dcr_holdout": _known(holdout), "closer": pa.array(closer, pa.string()),
                "id": pa.nulls(len(found), pa.string()) if records.ids is None else records.ids,
            }
        )  # fmt: skip

    return Rows(make, select)


def _known(values: Any) -> pa.Array:
    """Numbers, NULL where they are infinite or none."""
    numbers = np.array(values, dtype=np.float64)
    return pa.array(numbers, mask=~np.isfinite(numbers))


_QUANTILES = {"q01": 0.01, "q05": 0.05, "q10": 0.1, "q25": 0.25, "median": 0.5, "q75": 0.75}
DCR_COLUMNS = {
    "part": "VARCHAR", "records": "BIGINT", "mean": "DOUBLE", "min": "DOUBLE", **dict.fromkeys(_QUANTILES, "DOUBLE"),
    "max": "DOUBLE", "zeros": "BIGINT", "zero_share": "DOUBLE", "nndr_mean": "DOUBLE", "nndr_q05": "DOUBLE",
    "nndr_median": "DOUBLE", "p_dcr": "DOUBLE", "p_nndr": "DOUBLE", "pass": "BOOLEAN", "warning": "VARCHAR",
}  # fmt: skip


def plan_dcr(session: Session, *arguments: Any) -> Rows:
    """``sdc_dcr``: a row for the synthetic records, and one for the holdout."""
    call = read_call(session.cursor(), *arguments)

    def make() -> pa.Table:
        cursor = reads(session.cursor())
        records = read_records(cursor, call)
        parts = ["synthetic", "holdout"] if call.has_holdout else ["synthetic"]
        search = _Search(records, call.distance, parts)
        found = {part: search.distances(part, "original", 2) for part in parts}
        ratios = {part: nearest_ratio(*distances.T) for part, distances in found.items()}
        rows = []
        for part in parts:
            p_values: list[float | None] = [None, None]
            warning = None
            if part == "synthetic" and call.has_holdout:
                finite = {each: np.where(np.isinf(found[each]), np.nan, found[each])[:, 0] for each in parts}
                p_values = [
                    smaller(finite["synthetic"], finite["holdout"]), smaller(ratios["synthetic"], ratios["holdout"])
                ]  # fmt: skip
                warning = _warning(cursor, call, records)
            elif part == "synthetic":
                warning = call.compared.warning
            tested = [p for p in p_values if p is not None]
            first = found[part][:, 0]
            rows.append(
                {
                    "part": part, "records": len(first), **_summary(first), **_summary_of_ratios(ratios[part]),
                    "p_dcr": p_values[0], "p_nndr": p_values[1],
                    "pass": min(tested) > _LEAST_P if tested else None, "warning": warning,
                }
            )  # fmt: skip
        return table_of(rows, DCR_COLUMNS)

    return Rows(make)


def _summary(distances: Distances) -> dict[str, object]:
    finite = distances[np.isfinite(distances)]
    cut = quantiles(finite, (0.0, *_QUANTILES.values(), 1.0))
    zeros = int((finite == 0).sum())
    return {
        "mean": float(finite.mean()) if len(finite) else None, "min": cut[0],
        **dict(zip(_QUANTILES, cut[1:-1], strict=True)), "max": cut[-1], "zeros": zeros,
        "zero_share": zeros / len(finite) if len(finite) else None,
    }  # fmt: skip


def _summary_of_ratios(ratios: Distances) -> dict[str, object]:
    known = ratios[~np.isnan(ratios)]
    low, middle = quantiles(known, (0.05, 0.5))
    return {"nndr_mean": float(known.mean()) if len(known) else None, "nndr_q05": low, "nndr_median": middle}


def holdout_counts(cursor: duckdb.DuckDBPyConnection, compared: Compared) -> tuple[int, int, int, int]:
    """Records of the holdout that equal an original one, of how many; originals that equal another, of how many."""
    row = first_row(
        cursor,
        "SELECT coalesce(sum(n2) FILTER (n0 > 0), 0)::BIGINT, coalesce(sum(n2), 0)::BIGINT, "
        f"coalesce(sum(n0) FILTER (n0 > 1), 0)::BIGINT, coalesce(sum(n0), 0)::BIGINT FROM ({compared.counted()})",
    )
    assert row is not None
    return row[0], row[1], row[2], row[3]


def overlap_warning(matches: int, holdouts: int, doubles: int, originals: int) -> str | None:
    """What to say of a holdout that holds training records."""
    if not overlaps(matches, holdouts, doubles, originals):
        return None
    there, own = 100 * matches / holdouts, 100 * doubles / originals
    return (
        f"{there:.1f} % of the holdout equal an original record, where {own:.1f} % of the originals equal another one: "
        "the holdout seems to hold records that the synthetic data were made from"
    )


def _warning(cursor: duckdb.DuckDBPyConnection, call: Call, records: Records, ties: float = 0.0) -> str | None:
    found = [call.compared.warning, overlap_warning(*holdout_counts(cursor, call.compared))]
    sizes = sorted(len(records.tables[name]) for name in ("original", "holdout"))
    if ties > _MANY_TIES and sizes[1] > 1.05 * sizes[0]:
        # Each of them counts as half, which is what chance makes of them only between tables of one size.
        found.append(
            f"{100 * ties:.1f} % of the records are as near to one table as to the other, and these differ in size: "
            "the share is pulled away from what is expected; take as many records of both, or ask sdc_dcr_subsets"
        )
    few = min(len(records.tables["holdout"]), len(records.tables["original"]))
    if few < 100:
        found.append(f"only {few} records to compare with: chance decides")
    return "; ".join(text for text in found if text) or None


HISTOGRAM_COLUMNS = {
    "bin": "BIGINT", "low": "DOUBLE", "high": "DOUBLE", "records": "BIGINT", "share": "DOUBLE",
    "holdout_records": "BIGINT", "holdout_share": "DOUBLE",
}  # fmt: skip


def plan_dcr_histogram(session: Session, *arguments: Any) -> Rows:
    """``sdc_dcr_histogram``: exact zeros, and bins of equal width up to the largest distance that there can be."""
    *shared, bins = arguments
    call = read_call(session.cursor(), *shared)
    if bins is None:
        bins = min(len(call.compared.names), _MOST_BINS) if call.distance.buckets else 20
    whole(bins, "bins", least=1, most=_MOST_BINS)

    def make() -> pa.Table:
        records = read_records(reads(session.cursor()), call)
        parts = ["synthetic", "holdout"] if call.has_holdout else ["synthetic"]
        search = _Search(records, call.distance, parts)
        width = call.distance.largest / bins
        counts: dict[str, Any] = {}
        for part in parts:
            distances = search.distances(part, "original", 1)[:, 0]
            places = np.minimum(np.ceil(distances[np.isfinite(distances)] / width - 1e-9), bins).astype(np.int64)
            # What is not zero is in a bin, however close it is.
            places[(places == 0) & (distances[np.isfinite(distances)] > 0)] = 1
            counts[part] = np.bincount(places, minlength=bins + 1)
        rows = []
        for place in range(bins + 1):
            row: dict[str, object] = {"bin": place, "low": max(place - 1, 0) * width, "high": place * width}
            for part, (number, relative) in zip(
                parts, (("records", "share"), ("holdout_records", "holdout_share")), strict=False
            ):
                total = int(counts[part].sum())
                row |= {number: int(counts[part][place]), relative: counts[part][place] / total if total else None}
            rows.append(row)
        return table_of(rows, HISTOGRAM_COLUMNS)

    return Rows(make)


SHARE_COLUMNS = {
    "part": "VARCHAR", "records": "BIGINT", "closer_original": "BIGINT", "closer_holdout": "BIGINT", "ties": "BIGINT",
    "strict_share": "DOUBLE", "share": "DOUBLE", "expected": "DOUBLE", "low": "DOUBLE", "high": "DOUBLE",
    "p_value": "DOUBLE", "mean_dcr": "DOUBLE", "mean_dcr_holdout": "DOUBLE", "dcr_ratio": "DOUBLE",
    "copies": "BIGINT", "copies_holdout": "BIGINT", "pass": "BOOLEAN", "warning": "VARCHAR",
}  # fmt: skip


def plan_holdout_share(session: Session, *arguments: Any) -> Rows:
    """``sdc_holdout_share``: a row for the synthetic records, and one for the holdout in their place."""
    *shared, confidence = arguments
    call = read_call(session.cursor(), *shared)
    if not call.has_holdout:
        raise wrong("holdout", "name records that the synthetic ones were not made from")
    level = share(confidence, "confidence", zero=False, one=False)

    def make() -> pa.Table:
        cursor = reads(session.cursor())
        records = read_records(cursor, call)
        originals, holdouts = len(records.tables["original"]), len(records.tables["holdout"])
        if not originals or not holdouts:
            raise SDCError(f"argument '{'holdout' if originals else 'original'}' has no records")
        search = _Search(records, call.distance, ["synthetic", "synthetic", "holdout", "holdout"])
        rows = []
        for part in ("synthetic", "holdout"):
            near = search.distances(part, "original", 1)[:, 0]
            # A record of the holdout is not its own neighbour.
            other = search.distances(part, "holdout", 1 if part == "synthetic" else 2)[:, -1]
            known = np.isfinite(other)
            found = holdout_share(near[known], other[known], originals, holdouts, level)
            means = [float(values[known].mean()) if known.any() else None for values in (near, other)]
            closer, farther, ties, strict, *figures, p_value = astuple(found)
            tied = ties / max(len(near), 1)
            rows.append(
                {
                    "part": part, "records": len(near), "closer_original": closer, "closer_holdout": farther,
                    "ties": ties, "strict_share": strict,
                    **dict(zip(("share", "expected", "low", "high"), figures, strict=True)), "p_value": p_value,
                    "mean_dcr": means[0], "mean_dcr_holdout": means[1],
                    "dcr_ratio": means[0] / means[1] if means[0] is not None and means[1] else None,
                    "copies": int((near == 0).sum()), "copies_holdout": int((other == 0).sum()),
                    "pass": None if p_value is None else p_value > _LEAST_P,
                    "warning": _warning(cursor, call, records, tied) if part == "synthetic" else None,
                }
            )  # fmt: skip
        return table_of(rows, SHARE_COLUMNS)

    return Rows(make)


PLANNERS = (
    *planners(plan_dcr, plan_dcr_histogram, plan_holdout_share),
    planner(plan_dcr_records, RECORD_COLUMNS),
)
