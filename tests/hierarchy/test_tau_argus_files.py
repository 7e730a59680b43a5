"""Files of tau-Argus: hierarchies, metadata and a priori information, as its own examples write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest


class Files:
    """Writes a file and reads it with one of the functions."""

    def __init__(self, con: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self.con = con
        self.folder = folder

    def read(
        self, function: str, content: str | bytes, arguments: str = "", columns: str = "*"
    ) -> list[tuple[Any, ...]]:
        path = self.folder / "file"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return self.con.execute(f"SELECT {columns} FROM sdc_{function}('{path}'{arguments})").fetchall()

    def refusal(self, function: str, content: str | bytes, arguments: str = "") -> str:
        with pytest.raises(duckdb.Error) as problem:
            self.read(function, content, arguments)
        message = str(problem.value)
        assert f"sdc_{function}: " in message
        return message.partition(f"sdc_{function}: ")[2].partition("\n")[0]


@pytest.fixture
def files(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> Files:
    return Files(con, tmp_path)


# --- .hrc -------------------------------------------------------------------------------------------------------------


def test_an_indented_file(files: Files) -> None:
    # Region.hrc of the tau-Argus distribution has no newline at its end.
    assert files.read("read_hrc", "A\n@1\n@2\nB\n@3\n@@31\r\n@@32\n@4\n\nC") == [
        ("A", None, 1, 1),
        ("1", "A", 2, 2),
        ("2", "A", 2, 3),
        ("B", None, 1, 4),
        ("3", "B", 2, 5),
        ("31", "3", 3, 6),
        ("32", "3", 3, 7),
        ("4", "B", 2, 8),
        ("C", None, 1, 9),
    ]


@pytest.mark.parametrize("indent", [".", "  ", "->", "$"])
def test_any_indent(files: Files, indent: str) -> None:
    content = f"A\n{indent}A 1\n{indent}{indent}x\n{indent}  A2  \n"
    codes = files.read("read_hrc", content, f", indent := '{indent}'", "child, parent")
    assert codes[:3] == [("A", None), ("A 1", "A"), ("x", "A 1")]
    assert codes[3] == (("A2", "A 1") if indent == "  " else ("A2", "A"))


def test_windows_text_and_byte_order_marks(files: Files) -> None:
    assert files.read("read_hrc", "Ålesund\r\n@Møre\r\n".encode("cp1252"), columns="child") == [("Ålesund",), ("Møre",)]
    assert files.read("read_hrc", "Ålesund\n".encode("utf-8-sig"), columns="child") == [("Ålesund",)]
    assert files.read("read_hrc", "") == []


def test_malformed_hierarchies(files: Files) -> None:
    assert files.refusal("read_hrc", "A\n@@1\n") == "line 2: indented by more than one level below the line above it"
    assert files.refusal("read_hrc", "@A\n") == "line 1: indented by more than one level below the line above it"
    assert files.refusal("read_hrc", "A\n\n@\n") == "line 3: there is no code after the indent"
    assert files.refusal("read_hrc", "A\n@secret\nB\n@secret\n") == (
        "line 4: the code stands in line 2 already; every code has one place"
    )
    assert files.refusal("read_hrc", "A", ", indent := ''").startswith("argument 'indent' must be")


def test_files_that_are_not_there(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    for call, message in (
        (f"sdc_read_hrc('{tmp_path}/no.hrc')", "there is no file '.*no.hrc'"),
        ("sdc_read_rda(NULL)", "argument 'path' must name a file"),
        (f"sdc_read_hst('{tmp_path}/*.hst')", "there is no file"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            con.execute(f"FROM {call}").fetchall()
    (tmp_path / "a.hst").write_text("a;s\n")
    (tmp_path / "b.hst").write_text("a;s\n")
    with pytest.raises(duckdb.Error, match="argument 'path' must name one file"):
        con.execute(f"FROM sdc_read_hst('{tmp_path}/*.hst')").fetchall()


def test_files_are_out_of_reach_where_duckdb_may_not_read_them(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    (tmp_path / "geo.hrc").write_text("A\n")
    con.execute("SET enable_external_access = false")
    with pytest.raises(duckdb.Error, match=r"sdc_read_hrc: .*disabled"):
        con.execute(f"FROM sdc_read_hrc('{tmp_path}/geo.hrc')").fetchall()


# --- .rda -------------------------------------------------------------------------------------------------------------

# After Tau_TestW.rda of the tau-Argus distribution.
MICRODATA = """
Year 1  2 99
  <RECODEABLE>
  <DISTANCE>  1  2  3  4  5
IndustryCode 4  5 99999
  <RECODABLE>
  <HIERARCHICAL>
  <HIERLEVELS>  3 1 1 0 0
// a comment
Region 12  2 99 98
  <RECODEABLE>
  <TOTCODE> "All regions"
  <CODELIST> "region.cdl"
  <HIERARCHICAL>
  <HIERCODELIST> "region2.hrc"
  <HIERLEADSTRING> "@"
Wgt 15  4 9999
  <DECIMALS>  1
  <WEIGHT>
Var2 28  10 9999999999
  <NUMERIC> <DECIMALS>  2
Firm 60 4
  <HOLDING>
Request 99  1
  <REQUEST>  "1" "2"
"""


def test_metadata_of_microdata(files: Files) -> None:
    columns = "name, position, width, missing, recodeable, numeric, weight, holding, decimals"
    assert files.read("read_rda", MICRODATA, columns=columns) == [
        ("Year", 1, 2, ["99"], True, False, False, False, None),
        ("IndustryCode", 4, 5, ["99999"], True, False, False, False, None),
        ("Region", 12, 2, ["99", "98"], True, False, False, False, None),
        ("Wgt", 15, 4, ["9999"], False, False, True, False, 1),
        ("Var2", 28, 10, ["9999999999"], False, True, False, False, 2),
        ("Firm", 60, 4, [], False, False, False, True, None),
        ("Request", 99, 1, [], False, False, False, False, None),
    ]
    columns = (
        "name, hierarchical, hier_code_list, hier_lead_string, hier_levels, total_code, code_list, distance, request"
    )
    rows = {row[0]: row[1:] for row in files.read("read_rda", MICRODATA, columns=columns)}
    assert rows["Region"] == (True, "region2.hrc", "@", None, "All regions", "region.cdl", None, None)
    assert rows["IndustryCode"] == (True, None, None, [3, 1, 1, 0, 0], None, None, None, None)
    assert rows["Year"] == (False, None, None, None, None, None, [1, 2, 3, 4, 5], None)
    assert rows["Request"] == (False, None, None, None, None, None, None, ["1", "2"])
    assert files.read("read_rda", MICRODATA, columns="DISTINCT separator, other") == [(None, [])]


def test_metadata_with_a_separator(files: Files) -> None:
    content = '<SEPARATOR> ";"\nRegion 2 99\n <recodeable>\nIncome 8\n <NUMERIC>\n <CKM> T(2)\n'
    columns = "name, position, width, missing, recodeable, other, separator"
    assert files.read("read_rda", content, columns=columns) == [
        ("Region", None, 2, ["99"], True, [], ";"),
        ("Income", None, 8, [], False, ["<CKM> T(2)"], ";"),
    ]


def test_metadata_of_a_table(files: Files) -> None:
    # After pp.rda of the tau-Argus distribution.
    content = (
        '   <SEPARATOR> ";"\n<SAFE> "S"\n<UNSAFE> "U"\nSize "99"\n    <RECODEABLE>\n    <TOTCODE> "Total"\n'
        "Var2\n    <NUMERIC>\n    <DECIMALS> 2\nFreqVar\n    <FREQUENCY>\nVar2_Shadow\n    <NUMERIC> <SHADOW>\n"
        "StatusVar 9\n    <STATUS>\n"
    )
    columns = "name, position, width, missing, total_code, frequency, other"
    assert files.read("read_rda", content, columns=columns) == [
        ("Size", None, None, ["99"], "Total", False, []),
        ("Var2", None, None, [], None, False, []),
        ("FreqVar", None, None, [], None, True, []),
        ("Var2_Shadow", None, None, [], None, False, ["<SHADOW>"]),
        ("StatusVar", None, None, ["9"], None, False, ["<STATUS>"]),
    ]


def test_malformed_metadata(files: Files) -> None:
    for content, message in (
        ("A 1 2\n<NUMERC>\n", "line 2: unknown keyword"),
        ("\n<NUMERIC>\nA 1 2\n", "line 2: <NUMERIC> stands before the first variable"),
        ("A 1 2\nB\n", "line 2: the position of the variable is missing"),
        ("A 1 2\nB 3\n", "line 2: the width of the variable is missing"),
        ("A one 2\n", "line 1: the position of the variable is missing"),
        ("A 1 2\n<TOTCODE>\n", "line 2: <TOTCODE> takes one value"),
        ("A 1 2\n<DECIMALS> x\n", "line 2: <DECIMALS> takes whole numbers"),
        ("A 1 2\n<HIERLEVELS> 1 -1\n", "line 2: <HIERLEVELS> takes whole numbers"),
        ("A 1 2\n<HIERLEVELS> 1 2\n", "line 1: <HIERLEVELS> of this variable must add up to its width, 2"),
        ('A 1 2\n<TOTCODE> "x\n', "line 2: a quote is not closed"),
        ("A 1 2\n<WEIGHT>\n<WEIGHT>\n", "line 3: <WEIGHT> stands twice below one variable"),
        ("A 1 2\na 3 4\n", "line 2: there is a variable of that name already"),
    ):
        assert files.refusal("read_rda", content) == message
    assert files.read("read_rda", "") == []


# --- .hst -------------------------------------------------------------------------------------------------------------


def test_an_a_priori_file(files: Files) -> None:
    content = 'A;3;s\n"B";Total;U\n\n// a comment\nC;;p\nC;4;c;12,5\nC;4;W;3\nC;5;pl;10;20\nC;6;pl;7\nD;1;m\nD;2;ml;\n'
    assert files.read("read_hst", content) == [
        (1, ["A", "3"], "s", None, None, None),
        (2, ["B", None], "u", None, None, None),
        (5, ["C", None], "p", None, None, None),
        (6, ["C", "4"], None, 12.5, None, None),
        (7, ["C", "4"], None, 3.0, None, None),
        (8, ["C", "5"], None, None, 10.0, 20.0),
        (9, ["C", "6"], None, None, 7.0, 7.0),
        (10, ["D", "1"], "m", None, None, None),
        (11, ["D", "2"], "ml", None, None, None),
    ]


def test_separators_quotes_and_codes_that_look_like_commands(files: Files) -> None:
    codes = [(["a,b", "p"], "s")]
    assert files.read("read_hst", '"a,b", p, s\n', columns="codes, status") == codes
    assert files.read("read_hst", "a,b|p|s\n", columns="codes, status") == codes
    assert files.read("read_hst", "a,b\tp\ts\n", columns="codes, status") == codes
    assert files.read("read_hst", "a,b p s\n", ", separator := ' '", "codes, status") == codes
    assert files.read("read_hst", "T;s\n", ", total := 'T'", "codes") == [([None],)]
    assert files.read("read_hst", "") == []


def test_malformed_a_priori_files(files: Files) -> None:
    after = "after 2 codes comes s, u, p, m or ml; or c with a cost; or pl with one or two numbers"
    for content, message in (
        ("A;3;s\nA;x\n", f"line 2: {after}"),
        ("A;3;s\nA;4;5;s\n", f"line 2: {after}"),
        ("A;3;s\nA;4;c;much\n", f"line 2: {after}"),
        ("A;3;s\nA;4;c;-1\n", f"line 2: {after}"),
        ("A;3;s\nA;4;pl\n", f"line 2: {after}"),
        ("A;3;x\n", "line 1: there is no s, u, p, m, ml, c or pl after the codes"),
        ("A 3 s\n", "line 1: there is no separator; say which one with the argument 'separator'"),
        ('A;3;s\n"A;4;s\n', "line 2: a quote is not closed, or in the middle of a code"),
    ):
        assert files.refusal("read_hst", content) == message
    assert files.refusal("read_hst", "A;s", ", separator := ';;'") == "argument 'separator' must be one character"


@pytest.fixture
def people(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute(
        "CREATE TABLE people AS SELECT region, age FROM (VALUES ('N', 1, 2), ('N', 2, 8), ('N', 3, 9), ('S', 1, 7), "
        "('S', 2, 6), ('S', 3, 9), ('O''B \"x\"', 1, 5), ('O''B \"x\"', 2, 5), ('O''B \"x\"', 3, 4)) t(region, age, n), range(n)"
    )
    return con


def statuses(con: duckdb.DuckDBPyConnection, path: Path, more: str = "") -> dict[tuple[str | None, int | None], str]:
    """Suppression of counts up to 2 with an a priori file."""
    rows = con.execute(f"""
        SELECT region, age, status FROM sdc_suppress(
            'SELECT region, age, count(*) AS n FROM people GROUP BY CUBE (region, age)', max_count := 2,
            primary_if := sdc_apriori_primary('{path}', ['region', 'age']{more}),
            forced_if := sdc_apriori_forced('{path}', ['region', 'age']{more}))
    """).fetchall()
    return {(region, age): status for region, age, status in rows if status != "open"}


def test_suppression_follows_an_a_priori_file(people: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "it's.hst"
    quoted = Path(str(path).replace("'", "''"))
    path.write_text("N;9;s\n")  # of a cell that is not there
    assert statuses(people, quoted)[("N", 1)] == "primary"
    path.write_text("N;1;s\n")
    assert statuses(people, quoted) == {}
    path.write_text('N;1;s\nS;2;u\nS;3;p\n"O\'B ""x""";3;p\nN;3;p\nTotal;1;p\n')
    found = statuses(people, quoted)
    assert found[("S", 2)] == "primary"
    assert {cell for cell, status in found.items() if status == "forced"} == {
        ("S", 3), ("N", 3), ("O'B \"x\"", 3), (None, 1),
    }  # fmt: skip
    assert {cell for cell, status in found.items() if status == "secondary"} >= {("S", 1)}


def test_rules_go_before_protected_cells_where_the_condition_says_so(
    people: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    (tmp_path / "a.hst").write_text("N;1;p\nS;3;p\n")
    call = """SELECT region, age, status FROM sdc_suppress(
        'SELECT region, age, count(*) AS n FROM people GROUP BY CUBE (region, age)', max_count := 2,
        forced_if := sdc_apriori_forced('{path}', ['region', 'age']){more}) WHERE status IN ('forced', 'primary')"""
    path = tmp_path / "a.hst"
    assert set(people.execute(call.format(path=path, more="")).fetchall()) == {("N", 1, "forced"), ("S", 3, "forced")}
    assert set(people.execute(call.format(path=path, more=" || ' AND n > 2'")).fetchall()) == {
        ("N", 1, "primary"), ("S", 3, "forced"),
    }  # fmt: skip


def test_cells_that_were_secondary_elsewhere_stay_suppressed(people: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    (tmp_path / "a.hst").write_text("alles|3|m\nS|alles|ml\n")
    found = statuses(people, tmp_path / "a.hst", ", separator := '|', total := 'alles'")
    assert (found[(None, 3)], found[("S", None)]) == ("primary", "primary")


def test_an_error_in_the_file_stops_the_suppression(people: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    (tmp_path / "a.hst").write_text("N;1;s\nN;2;x\n")
    with pytest.raises(duckdb.Error, match="sdc_read_hst: line 2: after 2 codes comes"):
        statuses(people, tmp_path / "a.hst")
