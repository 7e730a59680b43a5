"""Measures of utility beside accuracy: propensity scores, tables, columns, counts; planners behind
``sql/utility_tables.sql``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.catalog import first_row
from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.utility.logit import Design
from sdcduck.methods.utility.propensity import Propensity, Tree, propensity
from sdcduck.methods.utility.tables import joint_counts, kolmogorov_smirnov, most_frequent, table_measures
from sdcduck.udfs.arguments import choice, number, whole, wrong
from sdcduck.udfs.utility.columns import MOST_BUCKETS, Compared, shown_number
from sdcduck.udfs.utility.records import Column, Floats, Grouped, columns_of, special_values

_MODELS = ("logit", "tree")
_NULLS = ("analytic", "permutation", "none")
_MOST_PARAMETERS = 2000
_MOST_BYTES = 1 << 32  # of the design of a tree
MOST_PERMUTATIONS = 10_000
_LOOKS_GOOD, _CLEARLY_APART = 10.0, 0.1
LIKELY = 0.01
"""A difference with a larger p-value may be chance, and is not warned of."""
_TYPES = {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), "VARCHAR": pa.string(), "BOOLEAN": pa.bool_()}

PMSE_COLUMNS = {
    "model": "VARCHAR", "original": "BIGINT", "synthetic": "BIGINT", "parameters": "BIGINT", "pmse": "DOUBLE",
    "expected": "DOUBLE", "deviation": "DOUBLE", "pmse_ratio": "DOUBLE", "pmse_z": "DOUBLE", "specks": "DOUBLE",
    "po50": "DOUBLE", "u": "DOUBLE", "no_split": "BIGINT", "warning": "VARCHAR",
}  # fmt: skip
TABLE_COLUMNS = {
    "column_a": "VARCHAR", "column_b": "VARCHAR", "column_c": "VARCHAR", "cells": "BIGINT", "df": "BIGINT",
    "vw": "DOUBLE", "pmse": "DOUBLE", "pmse_ratio": "DOUBLE", "pmse_z": "DOUBLE", "ft": "DOUBLE", "jsd": "DOUBLE",
    "g": "DOUBLE", "g_df": "BIGINT", "specks": "DOUBLE", "wmabsdd": "DOUBLE", "hellinger": "DOUBLE", "u": "DOUBLE",
    "mabsdd": "DOUBLE", "po50": "DOUBLE",
}  # fmt: skip
COLUMN_COLUMNS = {
    "column_name": "VARCHAR", "kind": "VARCHAR", "pmse_ratio": "DOUBLE", "df": "BIGINT", "ks": "DOUBLE",
    "ks_at": "VARCHAR", "ks_p": "DOUBLE", "null_original": "DOUBLE", "null_synthetic": "DOUBLE",
    "mode_original": "DOUBLE", "mode_synthetic": "DOUBLE", "outside": "BIGINT", "negative": "BIGINT",
    "warning": "VARCHAR",
}  # fmt: skip
ROC_COLUMNS = {
    "column_a": "VARCHAR", "column_b": "VARCHAR", "column_c": "VARCHAR", "cells": "BIGINT", "empty": "BIGINT",
    "roc": "DOUBLE", "roc_nonempty": "DOUBLE",
}  # fmt: skip


def table_of(rows: Iterable[Mapping[str, object]], columns: Mapping[str, str]) -> pa.Table:
    """Rows as a table with these columns; NaN is NULL."""
    listed = list(rows)
    return pa.table(
        {
            name: pa.array(
                [None if isinstance(row[name], float) and math.isnan(row[name]) else row[name] for row in listed],  # type: ignore[arg-type]
                _TYPES[kind],
            )
            for name, kind in columns.items()
        }
    )


def read_columns(
    session: Session, compared: Compared, special: Mapping[str, Sequence[float]] | None = None
) -> list[Column]:
    """The columns of both tables."""
    with reads(session.cursor()) as cursor:
        return columns_of(cursor, compared, compared.open(cursor), special)


def threads_of(cursor: duckdb.DuckDBPyConnection) -> int:
    """How many threads the database has."""
    row = first_row(cursor, "SELECT current_setting('threads')::INTEGER")
    return max(1, row[0] if row else 1)


# --- propensity scores -----------------------------------------------------------------------------------------------


def plan_pmse(
    session: Session, original: str | None, synthetic: str | None, columns: list[str] | None, model: str | None,
    interactions: int | None, expected_by: str | None, permutations: int | None, ccp_alpha: float | None,
    categorical: list[str] | None, special: str | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_pmse``."""
    logit = choice(model, "model", _MODELS) == "logit"
    if interactions not in (0, 1, 2):
        raise wrong("interactions", "be 0, 1 or 2", "products of so many more variables")
    null = choice(expected_by or ("analytic" if logit else "permutation"), "expected_by", _NULLS)
    if null == "analytic" and not logit:
        raise SDCError("a tree has no analytic expectation: take expected_by := 'permutation' or 'none'")
    times = whole(permutations, "permutations", least=2, most=MOST_PERMUTATIONS)
    pruned = number(ccp_alpha, "ccp_alpha", least=0)
    compared = Compared.read(session.cursor(), original, synthetic, columns, categorical)
    codes, start = special_values(special, compared), seed or 0

    def make() -> pa.Table:
        tree = None if logit else Tree(pruned)
        with reads(session.cursor()) as cursor:
            threads, found = threads_of(cursor), columns_of(cursor, compared, compared.open(cursor), codes)
        return table_of([pmse_row(found, tree, interactions, null, times, start, threads)], PMSE_COLUMNS)

    return Rows(make)


def pmse_row(
    columns: Sequence[Column], tree: Tree | None, interactions: int, null: str, permutations: int, seed: int,
    threads: int,
) -> dict[str, object]:  # fmt: skip
    """One propensity model as a row of ``sdc_pmse``."""
    sizes = [len(side) for side in columns[0].values]
    row: dict[str, object] = dict.fromkeys(PMSE_COLUMNS)
    row |= {"model": "logit" if tree is None else "tree", "original": sizes[0], "synthetic": sizes[1]}
    varying = [column for column in columns if not column.constant()]
    if not all(sizes):
        return row | {"warning": "one of the tables is empty"}
    if not varying:
        return row | {"warning": "all columns are constant in both"}
    design = Design([column.terms(ranks=tree is not None) for column in varying], sum(sizes), interactions)
    if design.width > _MOST_PARAMETERS:
        raise SDCError(
            f"the model has {design.width} parameters, more than {_MOST_PARAMETERS}: name fewer columns, or take "
            "interactions := 0"
        )
    columns_of_tree = design.width if interactions else sum(map(len, design.terms))
    if tree is not None and 8 * columns_of_tree * sum(sizes) > _MOST_BYTES:
        raise SDCError(
            f"a tree on {sum(sizes)} records and {columns_of_tree} columns needs more than "
            f"{_MOST_BYTES >> 30} GiB: name fewer columns, or give a sample of the records"
        )
    outcome = np.repeat([0.0, 1.0], sizes)
    found = propensity(
        design, outcome, tree, null=null, permutations=permutations, seed=seed, threads=threads,
        check=shown_checkpoint(),
    )  # fmt: skip
    usable = found.expected is not None and found.expected > 0
    ratio = found.pmse / found.expected if usable and found.expected else None
    z = (found.pmse - found.expected) / found.deviation if usable and found.expected and found.deviation else None
    return row | {
        "parameters": found.parameters, "pmse": found.pmse, "expected": found.expected, "deviation": found.deviation,
        "pmse_ratio": ratio, "pmse_z": z, "specks": found.specks, "po50": found.po50, "u": found.u,
        "no_split": found.no_split,
        "warning": _pmse_warning(found, ratio, z, sizes, varying, tree is None, permutations),
    }  # fmt: skip


def _pmse_warning(
    found: Propensity, ratio: float | None, z: float | None, sizes: Sequence[int], columns: Sequence[Column],
    logit: bool, permutations: int,
) -> str | None:  # fmt: skip
    told = []
    share = sizes[1] / sum(sizes)
    if not found.converged:
        told.append("the fit did not converge: some values occur on one side only")
    if found.pmse > 0.9 * share * (1 - share):
        told.append("nearly every record can be told apart")
    if found.parameters is not None and 5 * found.parameters > sum(sizes):
        told.append(f"{found.parameters} parameters are too many for {sum(sizes)} records")
    if found.no_split == permutations:
        told.append("no permuted tree has a split, so there is no ratio: take a smaller ccp_alpha")
    if z is not None and z < -2:
        told.append("closer than a right synthesis would be: look for a sample or copies of the original")
    if logit and ratio is not None and ratio < _LOOKS_GOOD:
        # A linear score sees means (and with products, covariances), not shapes.
        apart = [column.name for column in columns if column.kind != "category" and _ks(column) > _CLEARLY_APART]
        if apart:
            told.append(f"blind to the shape of {', '.join(apart)}: look at ks in sdc_utility_columns")
    return "; ".join(told) or None


def _ks(column: Column) -> float:
    found = kolmogorov_smirnov(*column.finite())
    return 0.0 if found is None or found.p_value > LIKELY else found.distance


# --- tables ----------------------------------------------------------------------------------------------------------


def check_groups(groups: int | None) -> int | None:
    """The number of groups of numbers."""
    why = "NULL for each value by itself"
    return None if groups is None else whole(groups, "groups", least=1, most=MOST_BUCKETS, why=why)


def _named(names: Sequence[str]) -> dict[str, object]:
    padded = [*names, None, None][:3]
    return {f"column_{letter}": name for letter, name in zip("abc", padded, strict=True)}


def plan_utility_tables(
    session: Session, original: str | None, synthetic: str | None, columns: list[str] | None, ways: int | None,
    groups: int | None, categorical: list[str] | None, special: str | None,
) -> Rows:  # fmt: skip
    """``sdc_utility_tables``."""
    compared = Compared.read(session.cursor(), original, synthetic, columns, categorical)
    order, most = compared.ways(ways), check_groups(groups)
    codes = special_values(special, compared)

    def make() -> pa.Table:
        found = read_columns(session, compared, codes)
        grouped = {column.name: column.grouped(most) for column in found}
        rows = []
        check = shown_checkpoint()
        chosen = list(combinations(compared.names, order))
        for done, names in enumerate(chosen):
            check(done, len(chosen))
            one = table_measures(*joint([grouped[name] for name in names]))
            shown = {name: getattr(one, name) for name in TABLE_COLUMNS if hasattr(one, name)}
            rows.append(_named(names) | shown | {"specks": one.tvd})
        return table_of(rows, TABLE_COLUMNS)

    return Rows(make)


def joint(grouped: Sequence[Grouped]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts of both in the cells that occur in one of them."""
    return joint_counts(
        [one.codes[0] for one in grouped], [one.codes[1] for one in grouped], [one.size for one in grouped]
    )


def plan_roc(
    session: Session, original: str | None, synthetic: str | None, columns: list[str] | None, ways: int | None,
    groups: int | None, categorical: list[str] | None,
) -> Rows:  # fmt: skip
    """``sdc_roc``."""
    compared = Compared.read(session.cursor(), original, synthetic, columns, categorical)
    order, most = compared.ways(ways), check_groups(groups)

    def make() -> pa.Table:
        grouped = {column.name: column.grouped(most) for column in read_columns(session, compared)}
        check = shown_checkpoint()
        chosen = list(combinations(compared.names, order))
        rows = []
        for done, names in enumerate(chosen):
            check(done, len(chosen))
            rows.append(_named(names) | roc_row([grouped[name] for name in names]))
        return table_of(rows, ROC_COLUMNS)

    return Rows(make)


def roc_row(grouped: Sequence[Grouped]) -> dict[str, object]:
    """Ratio of counts of one table; empty cells are those of levels that one of the two has, crossed."""
    if not all(len(side) for side in grouped[0].codes):
        return {"cells": 0, "empty": 0, "roc": None, "roc_nonempty": None}
    measures = table_measures(*joint(grouped))
    crossed = [1, 1, 1]
    for one in grouped:
        there = [np.bincount(side, minlength=one.size) > 0 for side in one.codes]
        crossed = [
            size * int(count.sum())
            for size, count in zip(crossed, (there[0], there[1], there[0] & there[1]), strict=True)
        ]
    cells = crossed[0] + crossed[1] - crossed[2]
    empty = cells - measures.cells
    return {
        "cells": cells, "empty": empty, "roc": (measures.roc + empty) / cells,
        "roc_nonempty": measures.roc / measures.cells,
    }  # fmt: skip


# --- columns ---------------------------------------------------------------------------------------------------------


def plan_utility_columns(
    session: Session, original: str | None, synthetic: str | None, columns: list[str] | None, groups: int | None,
    categorical: list[str] | None, special: str | None,
) -> Rows:  # fmt: skip
    """``sdc_utility_columns``."""
    compared = Compared.read(session.cursor(), original, synthetic, columns, categorical)
    most, codes = check_groups(groups), special_values(special, compared)

    def make() -> pa.Table:
        found = read_columns(session, compared, codes)
        types = [compared.sides[0].type_of(column.name) for column in found]
        return table_of(
            [column_row(one, most, sql_type) for one, sql_type in zip(found, types, strict=True)], COLUMN_COLUMNS
        )

    return Rows(make)


def column_row(column: Column, groups: int | None, sql_type: str) -> dict[str, object]:
    """One column as a row of ``sdc_utility_columns``."""
    measures = table_measures(*joint([column.grouped(groups)]))
    row: dict[str, object] = dict.fromkeys(COLUMN_COLUMNS)
    row |= {"column_name": column.name, "kind": column.kind, "pmse_ratio": measures.pmse_ratio, "df": measures.df}
    in_order = None if column.kind == "category" else column.in_order()
    missing, modes = _missing_and_mode(column, in_order)
    row |= {"null_original": missing[0], "null_synthetic": missing[1]}
    row |= {"mode_original": modes[0], "mode_synthetic": modes[1]}
    told = []
    if in_order is not None:
        one, other = map(column.usable, in_order)
        found = kolmogorov_smirnov(one, other, in_order=True)
        if found is not None:
            row |= {"ks": found.distance, "ks_at": shown_number(found.at, sql_type), "ks_p": found.p_value}
            row["outside"] = int(np.count_nonzero((other < one.min()) | (other > one.max())))
            if found.distance > _CLEARLY_APART and found.p_value <= LIKELY and (measures.pmse_ratio or 0) < _LOOKS_GOOD:
                told.append("the groups hide a difference that ks shows")
            if column.kind == "number":
                row["negative"] = int((other < 0).sum()) if one.min() >= 0 else 0
                if row["negative"]:
                    told.append("negative values, where the original has none")
    elif measures.df > len(column.values[0]) / 5:
        told.append("nearly as many values as records")
    if modes[0] is not None and modes[1] is not None and modes[0] > 0.05 and modes[1] < modes[0] / 2:
        told.append("the most frequent value of the original is lost")
    if measures.df == 0:
        told.append("constant in both")
    row["warning"] = "; ".join(told) or None
    return row


def _missing_and_mode(
    column: Column, in_order: tuple[Floats, Floats] | None
) -> tuple[list[float | None], list[float | None]]:
    """The shares of NULL, and of the original's most frequent value, in both."""
    sizes = [len(side) for side in column.values]
    if in_order is None:
        counts = [np.bincount(side[side >= 0], minlength=max(len(column.levels), 1)) for side in column.values]
        mode = int(counts[0].argmax())
        known, frequent = [int(count.sum()) for count in counts], [int(count[mode]) for count in counts]
    else:
        one, other = in_order
        most, value = most_frequent(one)
        known = [len(one), len(other)]
        low, high = (int(np.searchsorted(other, value, side=side)) for side in ("left", "right"))
        frequent = [most, high - low]
    missing = [(size - there) / size if size else None for there, size in zip(known, sizes, strict=True)]
    modes = [many / size if size and frequent[0] else None for many, size in zip(frequent, sizes, strict=True)]
    return missing, modes


PLANNERS = (*planners(plan_pmse, plan_utility_tables, plan_roc, plan_utility_columns),)  # fmt: skip
