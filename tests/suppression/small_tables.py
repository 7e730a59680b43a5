"""Small publications for tests: inner tables as lists of records, and the dummy matrix of the tables wanted of them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.suppression.matrix import DummyMatrix

Record = dict[str, str]
Cell = tuple[str, ...]


def read_csv(path: Path) -> list[Record]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def publication(records: Sequence[Record], tables: Iterable[Sequence[Sequence[str]]]) -> tuple[DummyMatrix, list[Cell]]:
    """The dummy matrix of linked tables, and the names of its columns.

    A table is a sequence of dimensions, a dimension a sequence of groupings of one base variable; each cell takes one
    group of one grouping ("" stands for the total) of every dimension. Cells of one name are one cell.
    """
    cells: dict[Cell, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    for table in tables:
        for groupings in product(*table):
            for row, record in enumerate(records):
                name = tuple(record[g] if g else "Total" for g in groupings)
                rows.append(row)
                columns.append(cells.setdefault(name, len(cells)))
    matrix = DummyMatrix.from_pairs(np.array(rows), np.array(columns), (len(records), len(cells)))
    return matrix, list(cells)


def column(records: Sequence[Record], name: str) -> NDArray[np.float64]:
    return np.array([float(record[name]) for record in records])


# Employment by region and activity (A10) of the Basque Country: DIRAE, published by Eustat; the row of region 2002 is
# corrected in column 10, where the printed table does not add up. 01, 20, 48 are the parts of the provinces P01, P20,
# P48 that belong to no region, 01xx, 20xx, 48xx their regions.
DIRAE = """
total 889853 12474 180041 50505 231678 20887 16781 4948 129303 203833 39403
P01 148666 3690 39417 6345 33720 2416 2047 527 17988 36904 5612
P20 296327 4057 70628 15875 78022 5055 5069 1532 35559 66845 13685
P48 444860 4727 69996 28285 119936 13416 9665 2889 75756 100084 20106
01 1496 25 15 267 533 0 0 0 656 0 0
20 2235 0 7 563 110 0 7 0 1537 2 9
48 1664 6 11 549 803 0 0 0 292 0 3
0101 3721 370 2217 107 577 2 5 4 126 275 38
0102 116096 992 25121 4976 27493 2325 1767 466 15403 32523 5030
0103 1440 223 318 58 160 0 13 0 29 620 19
0104 7893 1412 3544 287 1189 19 88 22 315 940 77
0105 4847 242 2444 148 1146 10 19 4 227 484 123
0106 13173 426 5758 502 2622 60 155 31 1232 2062 325
2001 26782 467 3988 1513 11417 194 371 176 1926 5496 1234
2002 20412 345 7185 747 4737 184 339 63 1804 4020 988
2003 30910 325 13875 967 5665 328 335 65 2932 5715 703
2004 145735 794 18065 7951 40376 3927 3123 1005 22843 39321 8330
2005 26006 442 11892 1371 5121 110 325 59 1460 4503 723
2006 17918 540 6902 1090 3964 69 218 60 972 3454 649
2007 26329 1144 8714 1673 6632 243 351 104 2085 4334 1049
4801 7909 356 3426 428 1767 38 90 39 324 1231 210
4802 344157 960 38513 22633 94004 12742 8370 2483 65669 82298 16485
4803 45251 435 16517 2029 11878 339 472 144 5699 6269 1469
4804 8012 680 1162 560 2071 18 124 42 926 2056 373
4805 13501 1159 3120 854 3360 81 285 44 948 3131 519
4806 8933 771 3546 366 1789 38 102 12 390 1652 267
4807 15433 360 3701 866 4264 160 222 125 1508 3447 780
"""


def dirae() -> dict[Cell, int]:
    """Every published cell of the table above: (region, activity) -> employment; activity "Total" or "01".."10"."""
    table = {}
    for line in DIRAE.split("\n"):
        if line:
            region, *values = line.split()
            for activity, value in zip(["Total", *(f"{a:02d}" for a in range(1, 11))], values, strict=True):
                table[("Total" if region == "total" else region, activity)] = int(value)
    return table


def dirae_inner(province: str = "") -> list[Record]:
    """The inner cells (region x activity), of one province or of all."""
    records = []
    for (region, activity), value in dirae().items():
        if not region.startswith(("P", "Total")) and activity != "Total" and region.startswith(province):
            records.append({"region": region, "province": "P" + region[:2], "activity": activity, "value": str(value)})
    return records
