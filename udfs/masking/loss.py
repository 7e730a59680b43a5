"""What masking has done to each column, and what is left to find: the planners of ``sdc_mask_loss`` and ``_risk``."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.masking.disclosure import linked, within_interval
from sdcduck.quoting import identifier
from sdcduck.udfs.arguments import needed, number
from sdcduck.udfs.masking.records import check_ids, records
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, is_number, shared_columns, source


def plan_mask_loss(
    session: Session, original: str | None, protected: str | None, columns: Sequence[str] | None, id: str | None
) -> Rows:
    """``sdc_mask_loss``: one pass over both tables, beside each other by the identifier."""
    tables, given, ids = _tables(session, original, protected, id)
    names = shared_columns(tables, columns, leaving_out=[given])
    pairs = [(name, tables["protected"].named([name], "columns")[0]) for name in names]
    measured = [_measured(place, tables, pair) for place, pair in enumerate(pairs)]

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            counts = _counts(cursor, tables, ids)
            sides = [
                _side(tables[name], ids[name], [pair[place] for pair in pairs], "op"[place])
                for place, name in enumerate(tables)
            ]
            both, *found = cursor.execute(
                f"SELECT count(*), {', '.join(measured)} FROM {sides[0]} o JOIN {sides[1]} p USING (_sdc_id)"
            ).fetchall()[0]
        _check_all_belong(counts, both, given)
        rows = []
        for name, one in zip(names, found, strict=True):
            if one.pop("endless"):
                raise SDCError(f"column '{name}' has NaN or an infinite number")
            rows.append({"column_name": name, "n": both, **one})
        return table_of(rows, _LOSS.columns)

    return Rows(make)


def plan_mask_risk(
    session: Session, original: str | None, protected: str | None, columns: Sequence[str] | None, width: float | None,
    id: str | None,
) -> Rows:  # fmt: skip
    """``sdc_mask_risk``: a row for each column of numbers, and one of all of them together."""
    tables, given, ids = _tables(session, original, protected, id)
    names = shared_columns(tables, columns, leaving_out=[given])
    if not columns:
        names = tuple(name for name in names if all(_is_number_of(table, name) for table in tables.values()))
        if not names:
            raise SDCError("original and protected have no column of numbers in common")
    for table in tables.values():
        for name in names:
            table.number(table.named([name], "columns")[0], "columns")
    share = number(width, "width", above=0, why="how far from a masked number, in standard deviations")

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            counts = _counts(cursor, tables, ids)
            sides = []
            for side, (place, table) in zip("op", tables.items(), strict=True):
                shown = [
                    f"{identifier(table.named([name], 'columns')[0])}::DOUBLE AS {side}{at}"
                    for at, name in enumerate(names)
                ]
                sides.append(f"(SELECT {identifier(ids[place])} AS _sdc_id, {', '.join(shown)} FROM {table.sql})")
            columns_of = [f"{side}{at}" for side in "op" for at in range(len(names))]
            found = cursor.sql(
                f"SELECT {', '.join(columns_of)} FROM {sides[0]} o JOIN {sides[1]} p USING (_sdc_id) ORDER BY _sdc_id"
            ).to_arrow_table()
        _check_all_belong(counts, len(found), given)
        values, masked = (_numbers(found, names, first) for first in (0, len(names)))
        rows = [_risk(values[:, [at]], masked[:, [at]], share, name) for at, name in enumerate(names)]
        return table_of([*rows, _risk(values, masked, share, None)], _RISK.columns)

    return Rows(make)


def _is_number_of(table: Source, name: str) -> bool:
    return is_number(table.type_of(table.named([name], "columns")[0]))


def _numbers(found: pa.Table, names: Sequence[str], first: int) -> NDArray[np.float64]:
    """The columns of one table, NaN for NULL."""
    columns = []
    for at, name in enumerate(names):
        column = found.column(first + at)
        numbers = column.to_numpy().astype(np.float64)
        known = ~column.is_null().to_numpy()
        if not np.isfinite(numbers[known]).all():
            raise SDCError(f"column '{name}' has NaN or an infinite number")
        columns.append(np.where(known, numbers, np.nan))
    return np.column_stack(columns)


def _risk(
    values: NDArray[np.float64], masked: NDArray[np.float64], width: float, name: str | None
) -> dict[str, object]:
    """What is told by one column, or by several together, of the records that have them in both tables."""
    known = ~(np.isnan(values) | np.isnan(masked)).any(axis=1)
    values, masked = values[known], masked[known]
    count = len(values)
    near, found = within_interval(values, masked, width).all(axis=1), linked(values, masked)
    return {
        "column_name": name,
        "n": count,
        "within": int(near.sum()),
        "interval_risk": float(near.mean()) if count else None,
        "linked": float(found.sum()),
        "linkage_risk": float(found.mean()) if count else None,
        "by_chance": 1 / count if count else None,
    }


def _tables(
    session: Session, original: str | None, protected: str | None, id: str | None
) -> tuple[dict[str, Source], str, dict[str, str]]:
    """Both tables, the column that says which records belong together, and how each table calls it."""
    tables = {
        name: source(session.cursor(), text, name) for name, text in (("original", original), ("protected", protected))
    }
    given = needed(id, "id", "name the column that tells which records belong together")
    for table in tables.values():
        table.column(given, "id")
    return tables, given, {name: table.named([given], "id")[0] for name, table in tables.items()}


def _counts(cursor: duckdb.DuckDBPyConnection, tables: dict[str, Source], ids: dict[str, str]) -> list[int]:
    """How many records each table has, all with an identifier of their own."""
    for name, table in tables.items():
        try:
            check_ids(cursor, table, ids[name])
        except SDCError as problem:
            raise SDCError(f"argument '{name}': {problem}") from None
    return [cursor.execute(f"SELECT count(*) FROM {table.sql}").fetchall()[0][0] for table in tables.values()]


def _check_all_belong(counts: Sequence[int], both: int, given: str) -> None:
    if list(counts) != [both] * 2:
        raise SDCError(
            f"of {records(counts[0])} of 'original' and {counts[1]} of 'protected' {both} belong together by '{given}'"
        )


def _side(table: Source, id: str, names: Sequence[str], side: str) -> str:
    """The identifier of one table, its columns ``o0``, .., and what is finite of them as numbers ``number_o0``, .."""
    shown = [f"{identifier(id)} AS _sdc_id"]
    for place, name in enumerate(names):
        column = identifier(name)
        shown.append(f"{column} AS {side}{place}")
        if is_number(table.type_of(name)):
            # DuckDB refuses the variance of what is not finite.
            shown.append(f"CASE WHEN isfinite({column}::DOUBLE) THEN {column}::DOUBLE END AS number_{side}{place}")
    return f"(SELECT {', '.join(shown)} FROM {table.sql})"


def _measured(place: int, tables: dict[str, Source], pair: tuple[str, str]) -> str:
    """What is measured of one column, as a STRUCT of aggregates."""
    o, p = f"o{place}", f"p{place}"
    kinds = [table.type_of(name) for table, name in zip(tables.values(), pair, strict=True)]
    numbers = all(map(is_number, kinds))
    # Labels of a recoded column are of another type than its values were.
    texts = "" if numbers or kinds[0] == kinds[1] else "::VARCHAR"
    parts = [
        f"'changed': count(*) FILTER ({o}{texts} IS DISTINCT FROM {p}{texts})",
        f"'suppressed': count(*) FILTER ({o} IS NOT NULL AND {p} IS NULL)",
    ]
    if numbers:
        x, y = f"number_{o}", f"number_{p}"
        known = f"FILTER ({x} IS NOT NULL AND {y} IS NOT NULL)"
        squares, variation = f"sum(({x} - {y}) * ({x} - {y}))", f"(count(*) {known} * var_pop({x}) {known})"
        moved = f"avg(abs({x} - {y}))"
        parts += [
            f"'il': CASE WHEN {squares} = 0 THEN 0 WHEN {variation} > 0 THEN 100 * {squares} / {variation} END",
            f"'il1s': CASE WHEN {moved} = 0 THEN 0 WHEN {variation} > 0 "
            f"THEN {moved} / (sqrt(2) * stddev_samp({x}) {known}) END",
            f"'mean_original': avg({x})", f"'mean_protected': avg({y})",
            f"'sd_original': stddev_samp({x})", f"'sd_protected': stddev_samp({y})",
            f"'correlation': CASE WHEN var_pop({x}) {known} > 0 AND var_pop({y}) {known} > 0 THEN corr({x}, {y}) END",
            f"'endless': count({o}) > count({x}) OR count({p}) > count({y})",
        ]  # fmt: skip
    else:
        parts.append("'endless': false")
    return f"{{{', '.join(parts)}}}"


_LOSS = planner(plan_mask_loss)
_RISK = planner(plan_mask_risk)
PLANNERS = (_LOSS, _RISK)
