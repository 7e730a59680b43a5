"""What masking has done to each column: the planner of ``sdc_mask_loss``."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.quoting import identifier
from sdcduck.udfs.arguments import needed
from sdcduck.udfs.masking.records import check_ids, records
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, is_number, shared_columns, source


def plan_mask_loss(
    session: Session, original: str | None, protected: str | None, columns: Sequence[str] | None, id: str | None
) -> Rows:
    """``sdc_mask_loss``: one pass over both tables, beside each other by the identifier."""
    tables = {
        name: source(session.cursor(), text, name) for name, text in (("original", original), ("protected", protected))
    }
    given = needed(id, "id", "name the column that tells which records belong together")
    for table in tables.values():
        table.column(given, "id")
    ids = {name: table.named([given], "id")[0] for name, table in tables.items()}
    names = shared_columns(tables, columns, leaving_out=[given])
    pairs = [(name, tables["protected"].named([name], "columns")[0]) for name in names]
    measured = [_measured(place, tables, pair) for place, pair in enumerate(pairs)]

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            for name, table in tables.items():
                try:
                    check_ids(cursor, table, ids[name])
                except SDCError as problem:
                    raise SDCError(f"argument '{name}': {problem}") from None
            counts = [cursor.execute(f"SELECT count(*) FROM {table.sql}").fetchall()[0][0] for table in tables.values()]
            sides = [
                _side(tables[name], ids[name], [pair[place] for pair in pairs], "op"[place])
                for place, name in enumerate(tables)
            ]
            both, *found = cursor.execute(
                f"SELECT count(*), {', '.join(measured)} FROM {sides[0]} o JOIN {sides[1]} p USING (_sdc_id)"
            ).fetchall()[0]
        if counts != [both] * 2:
            raise SDCError(
                f"of {records(counts[0])} of 'original' and {counts[1]} of 'protected' {both} belong together by "
                f"'{given}'"
            )
        rows = []
        for name, one in zip(names, found, strict=True):
            if one.pop("endless"):
                raise SDCError(f"column '{name}' has NaN or an infinite number")
            rows.append({"column_name": name, "n": both, **one})
        return table_of(rows, _LOSS.columns)

    return Rows(make)


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
        parts += [
            f"'il': CASE WHEN {squares} = 0 THEN 0 WHEN {variation} > 0 THEN 100 * {squares} / {variation} END",
            f"'mean_original': avg({x})", f"'mean_protected': avg({y})",
            f"'sd_original': stddev_samp({x})", f"'sd_protected': stddev_samp({y})",
            f"'correlation': CASE WHEN var_pop({x}) {known} > 0 AND var_pop({y}) {known} > 0 THEN corr({x}, {y}) END",
            f"'endless': count({o}) > count({x}) OR count({p}) > count({y})",
        ]  # fmt: skip
    else:
        parts.append("'endless': false")
    return f"{{{', '.join(parts)}}}"


_LOSS = planner(plan_mask_loss)
PLANNERS = (_LOSS,)
