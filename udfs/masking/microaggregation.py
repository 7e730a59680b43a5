"""Microaggregation of records: the planners of ``sdc_microaggregate`` and ``sdc_microaggregate_quality``."""

from __future__ import annotations

import json
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.masking.choice import METHODS, OF_CATEGORIES, Grouping
from sdcduck.methods.masking.microaggregation import group_means, group_medians
from sdcduck.methods.masking.mixed import representatives
from sdcduck.methods.masking.quality import quality
from sdcduck.methods.masking.robust import SingularError
from sdcduck.quoting import identifier
from sdcduck.udfs.arguments import choice, needed, number, whole, wrong
from sdcduck.udfs.compared import kind_of
from sdcduck.udfs.masking.records import check_ids, listed, order_of, records, there_are
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, refuse_taken, source

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

NULLS = ("refuse", "keep", "apart")
_DAY = 86_400_000_000  # microseconds
_MOST_EXCHANGED = 20_000  # records: of each the distances to all groups are held


@dataclass(frozen=True)
class _Call:
    """A checked call: columns by the names that they have in the source, without quotes."""

    relation: Source
    lists: tuple[tuple[str, ...], ...]
    grouping: Grouping
    by: tuple[str, ...]
    id: str | None
    nulls: str
    kinds: dict[str, str]
    weight: str | None
    median: bool

    def read(self, name: str) -> str:
        """SQL for a column as a number: the place of a label, the microseconds of an instant from the first one."""
        quoted = identifier(name)
        if self.kinds[name] == "number":
            return f"{quoted}::DOUBLE"
        if self.kinds[name] == "category":
            return (
                f"CASE WHEN {quoted} IS NOT NULL THEN dense_rank() OVER (ORDER BY {quoted} NULLS LAST) - 1 END::DOUBLE"
            )
        return (
            f"CASE WHEN isfinite({quoted}) THEN ({self.microseconds(name)} - {self.first(name)})::DOUBLE "
            f"WHEN {quoted} IS NOT NULL THEN 'infinity'::DOUBLE END"
        )

    def written(self, name: str, value: str) -> str:
        """SQL for what a number stands for, in the type of the column."""
        quoted, kind = identifier(name), self.relation.type_of(name)
        if self.kinds[name] == "number":
            return value
        if self.kinds[name] == "category":
            labels = f"SELECT DISTINCT {quoted} AS x FROM {self.relation.sql} WHERE {quoted} IS NOT NULL"
            return f"(SELECT list(x ORDER BY x) FROM ({labels}))[{value}::BIGINT + 1]"
        instant = f"{self.first(name)} + round({value})::BIGINT"
        if kind == "DATE":  # the nearest day
            return f"make_timestamp(({instant}) + {_DAY // 2})::DATE"
        return (
            f"make_timestamptz({instant})"
            if kind == "TIMESTAMP WITH TIME ZONE"
            else f"make_timestamp({instant})::{kind}"
        )

    def microseconds(self, name: str) -> str:
        """SQL for those of an instant."""
        quoted, kind = identifier(name), self.relation.type_of(name)
        return f"epoch_us({quoted if kind == 'TIMESTAMP WITH TIME ZONE' else f'{quoted}::TIMESTAMP'})"

    def first(self, name: str) -> str:
        """SQL for those of the first one."""
        return f"(SELECT min({self.microseconds(name)}) FROM {self.relation.sql} WHERE isfinite({identifier(name)}))"

    @property
    def masked(self) -> tuple[str, ...]:
        """All columns that are masked."""
        return tuple(name for one in self.lists for name in one)

    @property
    def order(self) -> str:
        """By which records are known: what they have decides, and not how they lie in the table."""
        return order_of(self.relation, self.id, self.masked)


def plan_microaggregate(
    session: Session, text: str | None, columns: str | None, k: int | None, method: str | None, by: list[str] | None,
    gamma: float | None, pieces: int | None, id: str | None, nulls: str | None, time_limit: float | None,
    weight: str | None, average: str | None,
) -> Rows:  # fmt: skip
    """``sdc_microaggregate``: records are known by their place in an order that their values alone decide."""
    relation = source(session.cursor(), text, "source")
    lists = _lists(relation, columns, choice(method, "method", METHODS))
    grouping = Grouping(
        str(method), whole(k, "k", least=2, why="so many records share their numbers"),
        None if gamma is None else number(gamma, "gamma", least=0),
        None if pieces is None else whole(pieces, "pieces", least=1),
        None if time_limit is None else number(time_limit, "time_limit", above=0, why="seconds"),
    )  # fmt: skip
    for given, name, methods in (
        (gamma, "gamma", ("vmdav", "swap", "decompose")),
        (pieces, "pieces", ("decompose",)),
        (time_limit, "time_limit", ("decompose",)),
    ):
        if given is not None and method not in methods:
            raise SDCError(f"argument '{name}' is for method := {' and '.join(repr(one) for one in methods)}")
    if method == "simple" and not id:
        raise SDCError("method := 'simple' takes the records in the order of a column: name it as 'id'")
    median = choice(average, "average", ("mean", "median")) == "median"
    if median and weight is not None:
        raise SDCError("weights are for means: give 'weight' or average := 'median', and not both")
    kinds = {name: _kind(relation, name, str(method)) for one in lists for name in one}
    call = _Call(
        relation, lists, grouping, relation.named(by, "by"), relation.named([id], "id")[0] if id else None,
        choice(nulls, "nulls", NULLS), kinds, _weight(relation, weight), median,
    )  # fmt: skip
    for name in (*call.by, *filter(None, (call.id, call.weight))):
        if name in call.masked:
            raise SDCError(
                f"column '{name}' is one of those that are masked, and can be neither in 'by' nor 'id' nor 'weight'"
            )
    relation.check_names(tuple(relation.columns))
    return Rows(lambda: _microaggregate(session, call), _select(call))


def _lists(relation: Source, text: str | None, method: str) -> tuple[tuple[str, ...], ...]:
    """The columns that are masked together; by the methods of one column each alone."""
    given = json.loads(text or "null")
    needed(given, "columns", "name the columns of numbers that records are to share")
    given = [given] if isinstance(given, str) else given
    nested = isinstance(given, list) and all(isinstance(one, list) for one in given)
    lists = given if nested else [given]
    names = [name for one in lists for name in one]
    if not all(lists) or not all(isinstance(name, str | None) for name in names):
        raise wrong("columns", "name columns, such as ['age', 'income'], or be several lists of these")
    single = method == "onedims" or (method == "optimal" and not nested)
    found = relation.named(names, "columns")
    refuse_taken(relation.columns, [name for pair in _added(len(names) if single else len(lists)) for name in pair])
    if single and (method == "onedims" or len(names) == 1):
        return tuple((name,) for name in found)
    if method == "optimal" and any(len(one) > 1 for one in lists):
        raise SDCError("method := 'optimal' takes one column at a time: columns := [['age'], ['income']], say")
    ends = np.cumsum([len(one) for one in lists]).tolist()
    return tuple(found[start:end] for start, end in zip([0, *ends], ends, strict=False))


def _kind(relation: Source, name: str, method: str) -> str:
    """Whether a column holds numbers, instants or categories; refused is what the method does not take."""
    sql_type = relation.type_of(name)
    kind = kind_of(sql_type)
    if kind is not None and kind.startswith("instant"):
        return "instant"
    if kind not in ("text", "boolean"):
        relation.number(name, "columns")
        return "number"
    if method not in OF_CATEGORIES:
        raise SDCError(
            f"method := '{method}' takes columns of numbers, and '{name}' is {sql_type.split('(')[0]}: categories are "
            "for method := 'mdav' or 'vmdav'"
        )
    return "category"


def _added(lists: int) -> list[tuple[str, str]]:
    """The columns of the result beside those of the source, of each list."""
    if lists == 1:
        return [("group_id", "group_size")]
    return [(f"group_id_{number}", f"group_size_{number}") for number in range(1, lists + 1)]


def _select(call: _Call) -> str:
    """The columns of the source with what they have become, and the groups."""
    number_of = {name: place for place, name in enumerate(call.masked, 1)}
    shown = [
        f"coalesce({call.written(name, f'm.means[{number_of[name]}]')}, "
        f"r.{identifier(name)}{'::DOUBLE' if call.kinds[name] == 'number' else ''}) AS {identifier(name)}"
        if name in number_of
        else f"r.{identifier(name)}"
        for name in call.relation.columns
    ]
    for place, (group, size) in enumerate(_added(len(call.lists)), 1):
        shown += [f"m.groups[{place}] AS {group}", f"m.sizes[{place}] AS {size}"]
    return f"""SELECT {", ".join(shown)}
        FROM (SELECT *, row_number() OVER (ORDER BY {call.order}) - 1 AS _sdc_place FROM {call.relation.sql}) r
        LEFT JOIN {{rows}} m ON r._sdc_place = m.place"""


def _microaggregate(session: Session, call: _Call) -> pa.Table:
    """Place, groups, sizes and means of each record that has them."""
    with reads(session.cursor()) as cursor:
        if call.id:
            check_ids(cursor, call.relation, call.id)
        values, strata, weights = _read(cursor, call)
    missing = np.isnan(values)
    if missing.any() and call.nulls == "refuse":
        raise SDCError(
            f"{int(missing.any(axis=1).sum())} of {records(len(values))} have NULL in a column that is to be shared: "
            "nulls := 'keep' leaves these records as they are, nulls := 'apart' puts those with the same gaps together"
        )
    groups = np.full((len(values), len(call.lists)), -1, np.int64)
    sizes, means, end = np.zeros_like(groups), np.full(values.shape, np.nan), 0
    check = shown_checkpoint()
    for place, names in enumerate(call.lists):
        begin, end = end, end + len(names)
        gaps, rows = missing[:, begin:end], np.arange(len(values))
        if call.nulls == "keep":
            rows = np.flatnonzero(~gaps.any(axis=1))
        if not len(rows):
            continue
        gaps, within = gaps[rows], strata[rows]
        if gaps.any():
            within = within * (1 << 20) + np.unique(gaps, axis=0, return_inverse=True)[1].reshape(-1)
        within = np.unique(within, return_inverse=True)[1].reshape(-1)
        _check_sizes(within, call)
        some = np.where(gaps, 0.0, values[rows, begin:end])
        mixed = np.array([call.kinds[name] == "category" for name in names])
        try:
            found = call.grouping.within(some, within, check, mixed if mixed.any() else None)
        except SingularError:
            raise SDCError(
                "method := 'rmd' needs columns none of which most records (of a stratum) have from the others: one is "
                "the same, or a sum, in most of them; leave it out, or take method := 'mdav'"
            ) from None
        some_weights = None if weights is None else weights[rows]
        shared = (
            representatives(some, mixed, found, some_weights) if mixed.any() else group_means(some, found, some_weights)
        )
        if call.median:
            shared = np.where(mixed, shared, group_medians(some, found))
        groups[rows, place], sizes[rows, place] = found, np.bincount(found)[found]
        means[rows, begin:end] = np.where(gaps, np.nan, shared)
    return pa.table(
        {
            "place": np.arange(len(values)),
            "groups": listed(groups + 1, groups < 0),
            "sizes": listed(sizes, groups < 0),
            "means": listed(means, np.isnan(means)),
        }
    )


def _weight(relation: Source, weight: str | None) -> str | None:
    """The column of weights, as the relation calls it."""
    if weight is None:
        return None
    relation.number(weight, "weight")
    return relation.named([weight], "weight")[0]


def _weights(column: pa.ChunkedArray) -> Matrix:
    """Sampling weights.

    Raises:
        SDCError: one is NULL, not positive or not finite.
    """
    weights: Matrix = column.to_numpy().astype(np.float64)
    if column.null_count or not (np.isfinite(weights) & (weights > 0)).all():
        raise SDCError("a weight is NULL, not positive or infinite")
    return weights


def _read(cursor: duckdb.DuckDBPyConnection, call: _Call) -> tuple[Matrix, Indices, Matrix | None]:
    """The numbers of all records, NaN for NULL, and of each the stratum and the weight, if there are weights."""
    numbers = [f"{call.read(name)} AS c{place}" for place, name in enumerate(call.masked)]
    by = ", ".join(map(identifier, call.by))
    stratum = f"dense_rank() OVER (ORDER BY {by}) - 1" if by else "0::BIGINT"
    weight = f", {identifier(call.weight)}::DOUBLE AS weight" if call.weight else ""
    found = cursor.sql(
        f"SELECT {', '.join(numbers)}, {stratum} AS stratum{weight} FROM {call.relation.sql} ORDER BY {call.order}"
    ).to_arrow_table()
    columns = [found.column(place) for place in range(len(numbers))]
    values = np.column_stack([column.to_numpy() for column in columns]).astype(np.float64, copy=False)
    nulls = np.column_stack([column.is_null().to_numpy() for column in columns])
    if not np.isfinite(values[~nulls]).all():
        raise SDCError("a record has NaN or an infinite number in a column that is to be shared")
    strata = found.column(len(numbers)).to_numpy().astype(np.int64)
    return np.where(nulls, np.nan, values), strata, _weights(found.column("weight")) if call.weight else None


def _check_sizes(strata: Indices, call: _Call) -> None:
    """That each stratum can have a group, and none has too many records for what is held of each."""
    if not len(strata):
        return
    sizes, least = np.bincount(strata), call.grouping.k
    if sizes.min() < least:
        where = " in one of the strata" if len(sizes) > 1 else ""
        raise SDCError(f"{there_are(sizes.min())}{where}, fewer than k := {least}")
    if call.grouping.method in ("swap", "decompose") and sizes.max() > _MOST_EXCHANGED:
        raise SDCError(
            f"method := '{call.grouping.method}' takes at most {_MOST_EXCHANGED} records at a time: name strata with "
            "'by', or take method := 'mdav'"
        )


def plan_microaggregate_quality(
    session: Session, original: str | None, protected: str | None, columns: list[str] | None, id: str | None,
    weight: str | None,
) -> Rows:  # fmt: skip
    """``sdc_microaggregate_quality``: originals and masked records beside each other by their identifier."""
    tables = {
        name: source(session.cursor(), text, name) for name, text in (("original", original), ("protected", protected))
    }
    needed(columns, "columns", "name the columns of numbers that records share")
    names = tables["original"].named(columns, "columns")
    for table in tables.values():
        for name in names:
            table.number(name, "columns")
        table.column(needed(id, "id", "name the column that tells which records belong together"), "id")
    key = identifier(str(id))
    known = _weight(tables["original"], weight)
    weighted = f", o.{identifier(known)}::DOUBLE AS weight" if known else ""
    numbers = [
        f"{side}.{identifier(name)}::DOUBLE AS {side}{place}" for side in "op" for place, name in enumerate(names)
    ]

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            for name, table in tables.items():
                try:
                    check_ids(cursor, table, table.named([id], "id")[0])
                except SDCError as problem:
                    raise SDCError(f"argument '{name}': {problem}") from None
            counts = [cursor.execute(f"SELECT count(*) FROM {table.sql}").fetchall()[0][0] for table in tables.values()]
            found = cursor.sql(
                f"SELECT {', '.join(numbers)}{weighted} FROM {tables['original'].sql} o "
                f"JOIN {tables['protected'].sql} p ON o.{key} = p.{key} ORDER BY o.{key}"
            ).to_arrow_table()
        if counts != [len(found)] * 2:
            raise SDCError(
                f"of {counts[0]} original and {counts[1]} protected records {len(found)} belong together by '{id}'"
            )
        weights = _weights(found.column("weight")) if known else None
        columns_of = found.columns[: len(numbers)]
        if any(column.null_count for column in columns_of):
            raise SDCError("a record has NULL in one of the columns")
        matrix = np.column_stack([column.to_numpy() for column in columns_of]).astype(np.float64)
        if not np.isfinite(matrix).all():
            raise SDCError("a record has NaN or an infinite number in one of the columns")
        measured = quality(matrix[:, : len(names)], matrix[:, len(names) :], weights)
        return table_of([measured.as_row()], _QUALITY.columns)

    return Rows(make)


_QUALITY = planner(plan_microaggregate_quality)
PLANNERS = (
    planner(
        plan_microaggregate,
        {"place": "BIGINT", "groups": "BIGINT[]", "sizes": "BIGINT[]", "means": "DOUBLE[]"},
    ),
    _QUALITY,
)
