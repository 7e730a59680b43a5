"""Published tables in files for readers: each format read back, and nothing in it that was not published."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import duckdb
import pytest

import sdcduck

SETS = "GROUPING SETS ((region, sex), (region), (sex), ())"
PLANTED = 987_654


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Six regions, one of which is NULL and one like a formula; one man alone, with an amount like nobody else's."""
    with sdcduck.connect(secret="the secret of the tests") as made:
        made.execute(f"""CREATE TABLE people AS SELECT i AS id, nullif(['=1+1', 'b', 'c, d', 'e "f"', '-'][1 + i % 5], '-') AS region,
            CASE WHEN i IN (1, 6) THEN 'm' ELSE ['f', 'm'][1 + i // 5 % 2] END AS sex, i % 4 AS age,
            CASE WHEN i = 2 THEN {PLANTED} ELSE 100 + i * 7 % 50 END AS income FROM range(60) r(i) WHERE i % 5 <> 2 OR i < 20""")
        made.execute(f"""FROM sdc_publish('t', $$SELECT region, sex, count(*) AS n, sum(income) AS income,
            sum((income / 4.0)::DECIMAL(18, 2)) AS quarter FROM people GROUP BY {SETS}$$, max_count := 2)""").fetchall()
        yield made


def published(con: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Region and sex, with _T for totals and _U for NULL: the numbers, None where they are suppressed."""
    rows = con.execute("""SELECT CASE WHEN level IN ('region', 'region x sex') THEN coalesce(region, '_U') ELSE '_T' END,
        CASE WHEN level IN ('sex', 'region x sex') THEN sex ELSE '_T' END, n, income, quarter FROM sdc.t_cells""").fetchall()
    assert len(rows) == 18
    return {(row[0], row[1]): row[2:] for row in rows}


def write(con: duckdb.DuckDBPyConnection, file: Path, more: str = "", name: str = "t") -> dict[str, Any]:
    result = con.execute(f"FROM sdc_write_table('{name}', '{file}'{more})")
    return dict(zip([column[0] for column in result.description or ()], result.fetchall()[0], strict=True))


LABELS = {"_T": "Total", "_U": "Unknown"}


def test_a_cross_table_in_csv(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    wanted = published(con)
    hidden = sum(numbers[0] is None for numbers in wanted.values())
    assert 2 <= hidden <= 8
    assert write(con, tmp_path / "t.csv") == {"publication": "t", "format": "csv", "cells": 18, "suppressed": hidden}
    head, *rows = list(csv.reader((tmp_path / "t.csv").open(encoding="utf-8", newline="")))
    assert head == ["region", "measure", "Total", "f", "m"]
    assert len(rows) == 3 * 6
    for place, measure in enumerate(["n", "income", "quarter"]):
        of_measure = {row[0]: row[2:] for row in rows if row[1] == measure}
        assert [*of_measure] == ["Total", "'=1+1", "b", "c, d", 'e "f"', "Unknown"]
        for (region, sex), numbers in wanted.items():
            label = LABELS.get(region, f"'{region}" if region.startswith("=") else region)
            shown = of_measure[label][["_T", "f", "m"].index(sex)]
            assert shown == "[c]" if numbers[place] is None else Decimal(shown) == numbers[place]
    again = write(
        con,
        tmp_path / "sex.csv",
        ", across := 'REGION', suppressed := 'x', missing := '..', total := 'All', unknown := '?'",
    )
    assert again["cells"] == 18
    head = next(csv.reader((tmp_path / "sex.csv").open(encoding="utf-8", newline="")))
    assert head == ["sex", "measure", "All", "'=1+1", "b", "c, d", 'e "f"', "?"]


def test_json_stat(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """The number of a place is that of its categories, with the last dimension running fastest."""
    write(con, tmp_path / "t.json")
    found = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert (found["version"], found["class"], found["id"]) == ("2.0", "dataset", ["region", "sex", "measure"])
    codes = [found["dimension"][name]["category"]["index"] for name in found["id"]]
    assert [len(one) for one in codes] == found["size"] == [6, 3, 3]
    assert all(
        set(found["dimension"][name]["category"]["label"]) == set(one)
        for name, one in zip(found["id"], codes, strict=True)
    )
    for (region, sex), numbers in published(con).items():
        for measure, number in enumerate(numbers):
            place = str((codes[0].index(region) * 3 + codes[1].index(sex)) * 3 + measure)
            assert found["value"].get(place) == (None if number is None else pytest.approx(float(number)))
            assert found["status"].get(place) == ("c" if number is None else None)


def test_sdmx_csv(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    write(con, tmp_path / "t.csv", ", format := 'sdmx', structure := 'OFFICE:INCOMES(1.0.0)'")
    rows = con.execute(f"FROM read_csv('{tmp_path / 't.csv'}', all_varchar := true)").fetchall()
    assert len(rows) == 18 * 3
    assert {row[:3] for row in rows} == {("dataflow", "OFFICE:INCOMES(1.0.0)", "I")}
    wanted = published(con)
    for _, _, _, region, sex, measure, number, status, confidential in rows:
        true = wanted[region, sex][["n", "income", "quarter"].index(measure)]
        assert (number is None, status, confidential) == ((True, "Q", "N") if true is None else (False, "A", "F"))
        assert true is None or Decimal(number) == true


def cells(file: Path) -> dict[str, dict[str, Any]]:
    """Sheets of an xlsx file, by name: the value of each place, texts as texts."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(file) as parts:
        texts = ["".join(one.itertext()) for one in ElementTree.fromstring(parts.read("xl/sharedStrings.xml"))]
        names = [one.get("name") for one in ElementTree.fromstring(parts.read("xl/workbook.xml")).iter(f"{space}sheet")]
        made = {}
        for number, name in enumerate(names, 1):
            sheet = ElementTree.fromstring(parts.read(f"xl/worksheets/sheet{number}.xml"))
            assert not list(sheet.iter(f"{space}f"))  # no formulas
            made[str(name)] = {
                str(cell.get("r")): texts[int(cell.findtext(f"{space}v") or 0)]
                if cell.get("t") == "s"
                else float(cell.findtext(f"{space}v") or "nan")
                for cell in sheet.iter(f"{space}c")
            }
    return made


def test_sheets(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter")
    write(con, tmp_path / "t.xlsx")
    found = cells(tmp_path / "t.xlsx")
    assert [*found] == ["n", "income", "quarter"]
    wanted = published(con)
    for place, sheet in enumerate(found.values()):
        assert [sheet[f"{column}3"] for column in "ABCD"] == ["region", "Total", "f", "m"]
        labels = [sheet[f"A{row}"] for row in range(4, 10)]
        assert labels == ["Total", "=1+1", "b", "c, d", 'e "f"', "Unknown"]
        for (region, sex), numbers in wanted.items():
            shown = sheet[f"{'BCD'[['_T', 'f', 'm'].index(sex)]}{4 + labels.index(LABELS.get(region, region))}"]
            assert shown == ("[c]" if numbers[place] is None else pytest.approx(float(numbers[place])))
        assert sheet["A11"] == "[c]  confidential"


def test_nothing_else_is_in_a_file(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """Neither a number that is suppressed, nor whether a cell is primary, in no part of any file."""
    assert all(PLANTED not in numbers for numbers in published(con).values())
    for name, more in (
        ("t.csv", ""),
        ("t.json", ""),
        ("s.csv", ", format := 'sdmx', structure := 'A:B(1.0)'"),
        ("t.xlsx", ""),
    ):
        if name == "t.xlsx":
            pytest.importorskip("xlsxwriter")
        write(con, tmp_path / name, more)
        content = (tmp_path / name).read_bytes()
        if name.endswith(".xlsx"):
            with zipfile.ZipFile(tmp_path / name) as parts:
                content = b"".join(parts.read(one) for one in parts.namelist())
        assert str(PLANTED).encode() not in content
        assert not re.search(rb"primary|secondary|max_count", content)


def test_other_shapes(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """A total alone, one column, three columns of types with an order, tables without totals, no number at all."""
    publish = "FROM sdc_publish('{}', $$SELECT {} FROM people GROUP BY {}$$, max_count := {})"
    con.execute(publish.format("alone", "count(*) AS n", "()", 1)).fetchall()
    write(con, tmp_path / "alone.csv", name="alone")
    assert (tmp_path / "alone.csv").read_text(encoding="utf-8") == "n\n52\n"
    con.execute(publish.format("one", "age, count(*) AS n, sum(income) AS s", "CUBE (age)", 0)).fetchall()
    write(con, tmp_path / "one.csv", name="one")
    lines = (tmp_path / "one.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "age,n,s"
    assert [line.split(",")[0] for line in lines[1:]] == ["Total", "0", "1", "2", "3"]
    three = "age::DECIMAL(4, 1) AS years, sex, region, count(*) AS n"
    con.execute(publish.format("three", three, "GROUPING SETS ((years, sex, region), (years, sex))", 0)).fetchall()
    write(con, tmp_path / "three.csv", name="three")
    rows = list(csv.reader((tmp_path / "three.csv").open(encoding="utf-8", newline="")))
    assert rows[0] == ["years", "sex", "Total", "'=1+1", "b", "c, d", 'e "f"', "Unknown"]  # age and sex have no total
    assert [row[:2] for row in rows[1:]] == [[f"{age}.0", sex] for age in range(4) for sex in ("f", "m")]
    shown = [int(value) for row in rows[1:] for value in row[3:] if value != "[x]"]
    assert sum(shown) == sum(int(row[2]) for row in rows[1:]) == 52
    con.execute(
        publish.format("none", "age, sum(income) FILTER (WHERE age = 1) AS s, count(*) AS n", "age", 0)
    ).fetchall()
    write(con, tmp_path / "none.csv", name="none")
    assert "0,[x]," in (tmp_path / "none.csv").read_text(encoding="utf-8")


REFUSED = {
    "'nobody', 'x.csv'": "unknown publication 'nobody'",
    "'later', 'x.csv'": "has not been published yet",
    "'t', ''": "argument 'file' must",
    "'t', 'x.pdf'": "the file end with .csv, .xlsx or .json",
    "'t', 'x.csv', format := 'pdf'": "argument 'format' must be 'csv', 'xlsx', 'json-stat' or 'sdmx'",
    "'t', 'x.csv', across := 'age'": "unknown column 'age'",
    "'t', 'x.json', across := 'sex'": "is for cross tables",
    "'t', 'x.csv', suppressed := '..', missing := '..'": "could not tell them apart",
    "'t', 'x.csv', suppressed := ''": "argument 'suppressed' must be a word or sign",
    "'t', 'x.csv', format := 'sdmx'": "need each other",
    "'t', 'x.csv', structure := 'A:B(1)'": "need each other",
    "'t', 'nowhere/x.csv'": "there is no folder",
    "'odd', 'x.csv'": "a category has the code _T or _U",
    "'named', 'x.json'": "a column is called 'measure'",
    "'named', 'x.csv', format := 'sdmx', structure := 'A:B(1)'": "a column is called 'measure', as one of SDMX-CSV is",
}


def test_what_is_refused_writes_nothing(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    con.execute(
        f"FROM sdc_publication('later', $$SELECT region, sex, count(*) AS n FROM people GROUP BY {SETS}$$)"
    ).fetchall()
    for name, columns in (("odd", "CASE WHEN age = 1 THEN '_T' ELSE 'a' END AS g"), ("named", "age AS measure")):
        group = columns.split(" AS ")[-1]
        con.execute(
            f"FROM sdc_publish('{name}', $$SELECT {columns}, count(*) AS n FROM people GROUP BY ROLLUP ({group})$$, max_count := 0)"
        ).fetchall()
    for call, message in REFUSED.items():
        with pytest.raises(duckdb.Error, match=re.escape(message)):
            con.execute(f"FROM sdc_write_table({call})").fetchall()
    assert list(tmp_path.iterdir()) == []
    write(con, Path("there.csv"))
    with pytest.raises(duckdb.Error, match="exists already; force := true"):
        write(con, Path("there.csv"))
    write(con, Path("there.csv"), ", force := true")
    con.execute("DROP TABLE IF EXISTS odd")


def test_a_connection_that_may_write_no_files(tmp_path: Path) -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a")
        con.execute("FROM sdc_publish('p', $$SELECT a, count(*) AS n FROM t GROUP BY a$$, max_count := 0)").fetchall()
        con.execute("SET enable_external_access = false")
        with pytest.raises(duckdb.Error, match="may not write files"):
            write(con, tmp_path / "p.csv", name="p")
    assert list(tmp_path.iterdir()) == []
