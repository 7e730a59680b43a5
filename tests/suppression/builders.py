"""Suppression problems of the reference data, built from its inputs: inner cells, X in the reference's column order."""

from __future__ import annotations

import importlib.util
import itertools
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from sdcduck.methods.suppression.candidates import candidate_order
from sdcduck.methods.suppression.elimination import cell_indices
from sdcduck.methods.suppression.matrix import DummyMatrix

TOTALS = ("Total", "Total_Norway")

# Columns of the inner data that an output column stands for: nested levels and groupings share one column.
LEVELS = {
    "region": ("region", "county", "fylke", "k_group", "kostragr"),
    "mnd": ("mnd", "mnd2"),
    "months": ("months", "months2"),
    "geo": ("geo", "eu"),
    "sector4": ("sector4", "sector2"),
    "main_income": ("main_income", "not_assistance"),
    "r3": ("r3", "r2"),
    "i3": ("i3", "i2"),
}


@dataclass(frozen=True)
class Case:
    """A problem of the reference and its answer, one row of ``cells`` for each column of ``x``."""

    inner: pd.DataFrame
    cells: pd.DataFrame
    x: DummyMatrix

    @property
    def primary(self) -> np.ndarray:
        return self.cells["primary"].to_numpy() == 1

    @property
    def suppressed(self) -> np.ndarray:
        return self.cells["suppressed"].to_numpy() == 1

    def order(self, value: str = "freq", secondary_zeros: bool = False, magnitude: str | None = None) -> np.ndarray:
        """Candidate order of spec 2.3 from the counts (and the magnitudes) of the cells."""
        freq = self.x.totals(self.inner[value].to_numpy(dtype=np.int64)).astype(float)
        num = None if magnitude is None else self.cells[magnitude].to_numpy(dtype=float)
        return candidate_order(self.x, freq, value=num, secondary_zeros=secondary_zeros)


def matrix_of(inner: pd.DataFrame, cells: pd.DataFrame, dimensions: list[str]) -> DummyMatrix:
    """The dummy matrix: an inner cell belongs to a cell whose codes it has on some level of every dimension."""
    members: dict[tuple[str, str], np.ndarray] = {}
    for dimension in dimensions:
        levels = [level for level in LEVELS.get(dimension, (dimension,)) if level in inner]
        for code in cells[dimension].unique():
            hit = np.zeros(len(inner), dtype=bool) if code not in TOTALS else np.ones(len(inner), dtype=bool)
            for level in levels:
                hit |= (inner[level] == code).to_numpy()
            members[dimension, code] = hit
    rows, columns = [], []
    for number, codes in enumerate(cells[dimensions].itertuples(index=False)):
        hit = np.logical_and.reduce([members[d, code] for d, code in zip(dimensions, codes, strict=True)])
        rows.append(np.flatnonzero(hit))
        columns.append(np.full(len(rows[-1]), number))
    return DummyMatrix.from_pairs(np.concatenate(rows), np.concatenate(columns), (len(inner), len(cells)))


def with_zeros(inner: pd.DataFrame, groups: list[list[str]]) -> pd.DataFrame:
    """The inner cells and every missing combination of the groups of columns (``extend0``), with zeros."""
    parts = [inner[group].drop_duplicates().to_dict("records") for group in groups]
    full = pd.DataFrame([{k: v for part in combo for k, v in part.items()} for combo in itertools.product(*parts)])
    merged = full.merge(inner, how="left", on=[c for group in groups for c in group])
    return merged.fillna({c: 0 for c in merged.columns if c not in full.columns})


@cache
def index(folder: Path) -> dict[str, dict[str, object]]:
    return json.loads((folder / "gausssuppression" / "index.json").read_text())


def inner_data(folder: Path, name: str) -> pd.DataFrame:
    """An input of the reference, codes as text, with the levels of the hierarchy file where the case uses it."""
    data = pd.read_csv(folder / "gausssuppression" / "input" / f"{name}.csv")
    for column in data.columns:
        if column not in ("freq", "ant", "f", "v", "value", "num", "sweight"):
            data[column] = data[column].astype(str)
    if name == "d2_f":
        data["not_assistance"] = np.where(data["main_income"] == "assistance", "", "not_assistance")
    return data


def case(folder: Path, name: str, inner: pd.DataFrame, dimensions: list[str]) -> Case:
    cells = pd.read_csv(folder / "gausssuppression" / f"{name}.csv", dtype=dict.fromkeys(dimensions, str))
    return Case(inner, cells, matrix_of(inner, cells, dimensions))


def count_case(folder: Path, name: str, freq: str, dimensions: list[str]) -> Case:
    """A case of SuppressSmallCounts: equal inner cells added up, missing combinations as zeros."""
    data = inner_data(folder, str(index(folder)[name]["input"])).rename(columns={freq: "count"})
    groups = [[c for c in LEVELS.get(d, (d,)) if c in data] for d in dimensions]
    inner = data.groupby([c for group in groups for c in group], as_index=False)["count"].sum()
    return case(folder, name, with_zeros(inner, groups), dimensions)


def magnitude_case(
    folder: Path, name: str, dimensions: list[str], contributor: str | None, ignored: tuple[str, ...] = ()
) -> tuple[Case, np.ndarray, np.ndarray]:
    """A case of SuppressDominantCells or SuppressFewContributors, its candidate order and the singletons.

    The order is by the first magnitude column of the answer; without contributors it is taken over the records.

    A contributor in ``ignored`` (``removeCodes``) is no singleton.
    """
    data = inner_data(folder, str(index(folder)[name]["input"]))
    return magnitudes_of(data, reference_cells(folder, name), dimensions, contributor, ignored)


def magnitudes_of(
    data: pd.DataFrame,
    cells: pd.DataFrame,
    dimensions: list[str],
    contributor: str | None,
    ignored: tuple[str, ...] = (),
) -> tuple[Case, np.ndarray, np.ndarray]:
    """As `magnitude_case`, of records and an answer at hand."""
    levels = [c for d in dimensions for c in LEVELS.get(d, (d,)) if c in data]
    data["who"] = np.arange(len(data)) if contributor is None else data[contributor].rank(method="dense").astype(int)
    grouped = data.groupby(levels, as_index=False)
    inner = grouped.agg(count=("who", "size"), contributors=("who", "nunique"), who=("who", "first"))
    built = Case(inner, cells, matrix_of(inner, cells, dimensions))
    held = np.array(inner["contributors"] == 1)
    single = np.flatnonzero(np.diff(built.x.indptr) == 1)
    shown = np.zeros(len(inner), dtype=bool)
    shown[built.x.indices[built.x.indptr[single]]] = True
    primary = single[built.primary[single]]
    shown[built.x.indices[built.x.indptr[primary]]] = False
    held &= ~shown
    if contributor is not None:
        codes = data.drop_duplicates("who").set_index("who")[contributor]
        held &= ~inner["who"].map(codes).isin(ignored).to_numpy()
    magnitude = next(c for c in ("value", "v", "num") if c in built.cells)
    if contributor is None:
        records = Case(data.assign(count=1), built.cells, matrix_of(data, built.cells, dimensions))
        return built, records.order("count", magnitude=magnitude), held
    numbers = np.where(held, inner["who"], 0).astype(np.int64)
    return built, built.order("count", magnitude=magnitude), numbers


@cache
def big_records(folder: Path) -> tuple[ModuleType, dict[str, Any]]:
    """The reference's own seeded generator of the large problems, and its million records."""
    spec = importlib.util.spec_from_file_location("gen_big", folder / "big" / "gen_big.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    return generator, generator.build(1_000_000)


@cache
def big_inner(folder: Path) -> dict[str, pd.DataFrame]:
    """Inner tables of the large problems, from the reference's own seeded generator."""
    generator, d = big_records(folder)
    r2, r3, _, i2, i3 = generator.codes(d)
    r3_of = d["r4p"][d["r4"]]
    r2_of, i2_of = d["r3p"][r3_of], d["i3p"][d["i3"]]
    codes = pd.DataFrame({"r3": r3_of, "i3": d["i3"], "i2": i2_of, "sex": d["sex"], "age": d["age"], "r2": r2_of})

    def table(keys: list[str], regions: int) -> pd.DataFrame:
        inner = codes[codes["r2"] < regions].groupby(keys).size().reset_index(name="freq")
        inner["r2"] = r2[d["r3p"][inner["r3"]]]
        inner["i2"] = i2[inner["i2"]] if "i2" in keys else i2[d["i3p"][inner["i3"]]]
        inner["r3"] = r3[inner["r3"]]
        for name, names in (("i3", i3), ("sex", np.array(["F", "M"])), ("age", np.array([f"A{k}" for k in range(10)]))):
            if name in keys:
                inner[name] = names[inner[name]]
        return inner

    return {
        "S2k": table(["r3", "i3"], 1),
        "S10k": table(["r3", "i3"], 4),
        "L4k": table(["r3", "i2", "sex", "age"], 2),
    }


def big_case(folder: Path, problem: str, output: str, dimensions: list[str]) -> Case:
    inner = big_inner(folder)[problem]
    cells = pd.read_csv(folder / "big" / f"out_{output}.csv.gz")
    return Case(inner, cells, matrix_of(inner, cells, dimensions))


def linked_instance(folder: Path, size: str) -> tuple[DummyMatrix, np.ndarray, np.ndarray, np.ndarray]:
    """X, candidates in order, primary cells and inner counts of a linked-table instance."""
    return stored_instance(folder / "big" / f"linked_{size}.npz")


def stored_instance(file: Path) -> tuple[DummyMatrix, np.ndarray, np.ndarray, np.ndarray]:
    """The same by its file; the benchmark of suppression reads them, too."""
    with np.load(file) as data:
        rows, columns = (int(n) for n in data["shape"])
        lengths = data["indptr"].astype(np.int64)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        # Indices are stored as differences, each column starting anew.
        sums = np.concatenate([[0], np.cumsum(data["delta"].astype(np.int64))])
        indices = (sums[1:] - np.repeat(sums[indptr[:-1]], lengths)).astype(np.int32)
        primary = np.unpackbits(data["primary"])[:columns].astype(bool)
        return DummyMatrix(indptr, indices, rows), data["candidates"].astype(np.int64), primary, data["freq"]


LINKED = ["geo", "eu", "sector4", "sector2"]


def reference_cells(folder: Path, name: str) -> pd.DataFrame:
    """An answer of the reference, one row for each cell."""
    return pd.read_csv(folder / "gausssuppression" / f"{name}.csv")


def _linked_cells(folder: Path, how: str) -> pd.DataFrame:
    """The cells of the three linked tables, with the codes of nested levels in one column for each dimension."""
    answer = reference_cells(folder, f"linked_mag_{how}")
    answer["sector4"] = answer["sector4"].fillna(answer["sector2"]).str.split(":").str[-1]
    answer["geo"] = answer["geo"].str.split(":").str[0]
    return answer


def linked_magnitudes(folder: Path, how: str) -> list[tuple[Case, np.ndarray, np.ndarray]]:
    """The three linked tables of the magnitude example, each as `magnitude_case` gives it."""
    records = inner_data(folder, "magnitude1")
    groups = _linked_cells(folder, how).groupby("table")
    return [
        magnitudes_of(
            records[[*levels, "company", "value"]], cells.reset_index(drop=True), ["geo", "sector4"], "company"
        )
        for levels, (_, cells) in zip((["geo", "sector2"], ["geo", "sector4"], LINKED), groups, strict=True)
    ]


def linked_magnitudes_at_once(folder: Path, how: str) -> tuple[Case, np.ndarray, np.ndarray]:
    """The cells of all three linked tables over the same inner cells."""
    records = inner_data(folder, "magnitude1")
    return magnitudes_of(records, _linked_cells(folder, how), ["geo", "sector4"], "company")


LINKED_COUNTS = {1: ["r3", "i2"], 2: ["r3", "sex", "age"], 3: ["r3", "i2", "sex"]}


def _linked_count_cells(folder: Path) -> pd.DataFrame:
    """The cells of the three linked tables of counts, with the codes of both levels of regions in one column."""
    answer = pd.read_csv(folder / "big" / "out_L4k_local.csv.gz")
    answer["r3"] = answer["r3"].fillna(answer["r2"])
    return answer.fillna(dict.fromkeys(["r3", "i2", "sex", "age"], "Total"))


def linked_counts(folder: Path) -> list[Case]:
    """The three linked tables of counts, each over the inner cells it would have on its own."""
    inner, answer = big_inner(folder)["L4k"], _linked_count_cells(folder)
    cases = []
    for table, dimensions in LINKED_COUNTS.items():
        cells = answer[answer["table"] == table].reset_index(drop=True)
        # The third table has no regions below the second level.
        levels = ["r2" if d == "r3" and table == 3 else d for d in dimensions]
        own = inner.groupby(list({"r2": 0, **dict.fromkeys(levels)}), as_index=False)["freq"].sum()
        cases.append(Case(own, cells, matrix_of(own, cells, dimensions)))
    return cases


def linked_counts_at_once(folder: Path) -> Case:
    """The cells of all three linked tables of counts over the same inner cells."""
    inner, cells = big_inner(folder)["L4k"], _linked_count_cells(folder)
    return Case(inner, cells, matrix_of(inner, cells, ["r3", "i2", "sex", "age"]))


def check_decimals(
    x: DummyMatrix, values: np.ndarray, published: ArrayLike, suppressed: ArrayLike, tolerance: float = 1e-5
) -> tuple[np.ndarray, np.ndarray]:
    """Published cells whose decimals do not add up to one whole number in all replicates, and suppressed ones that do.

    The latter follow from the published ones.
    """
    sums = np.asarray(x.sparse().T @ values)
    nearest = np.round(sums)
    whole = (np.abs(sums - nearest) < tolerance).all(axis=1) & (nearest == nearest[:, :1]).all(axis=1)
    shown, hidden = cell_indices("published", published, x.columns), cell_indices("suppressed", suppressed, x.columns)
    return np.sort(shown[~whole[shown]]), np.sort(hidden[whole[hidden]])
