"""Publications as files of tau-Argus, and what our own readers make of these."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

PEOPLE = """CREATE TABLE firms AS SELECT ['North', 'South', 'East'][1 + range % 3] AS region,
    ['Nord 1', 'Sör 1', 'East', 'Nord 2', 'Sör 2', 'East'][1 + range % 6] AS town, ['f', 'm'][1 + (hash(range) % 2)::BIGINT] AS sex,
    (100 + range * 13.25)::DECIMAL(9, 2) AS income, range % 7 AS staff FROM range(60)"""
LEVELS = "GROUP BY ROLLUP (region, town), CUBE (sex)"


@pytest.fixture
def firms(con: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> duckdb.DuckDBPyConnection:
    monkeypatch.chdir(tmp_path)
    con.execute(PEOPLE)
    return con


def publish(con: duckdb.DuckDBPyConnection, select: str, rules: str, name: str = "t") -> None:
    con.execute(f"FROM sdc_publish('{name}', $${select}$$, {rules})").fetchall()


def write(con: duckdb.DuckDBPyConnection, more: str = "") -> list[tuple[object, ...]]:
    return con.execute(f"FROM sdc_write_tau_argus('t', 't.arb'{more})").fetchall()


def test_the_files_by_hand(firms: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """60 records; East is region and town at once, so that it stands once in the hierarchy."""
    publish(
        firms, f"SELECT region, town, sex, count(*) AS n, sum(income) AS income, sum(staff) AS staff FROM firms {LEVELS}",
        "max_count := 2, dominance := [(1, 40), (2, 75.5)], p_percent := 15, pq := (5, 50)",
    )  # fmt: skip
    assert write(firms, ", safety_range := 30") == [
        ("t.asc", "records", 60), ("t_town.hrc", "hierarchy", 7), ("t.rda", "metadata", 15), ("t.arb", "batch", 11),
    ]  # fmt: skip
    rules = "<SAFETYRULE> NK(1,40)|NK(2,75.5)|P(15,1)|P(10,1)|FREQ(3,30)"
    assert (tmp_path / "t.arb").read_text().splitlines() == [
        '<OPENMICRODATA> "t.asc"',
        '<OPENMETADATA> "t.rda"',
        '<SPECIFYTABLE> "town""sex"|"income"||',
        rules,
        '<SPECIFYTABLE> "town""sex"|"staff"||',
        rules,
        "<READMICRODATA>",
        "<SUPPRESS> MOD(1)",
        '<WRITETABLE> (1,3,AS+,"t_1.txt")',
        "<SUPPRESS> MOD(2)",
        '<WRITETABLE> (2,3,AS+,"t_2.txt")',
    ]
    tree = (tmp_path / "t_town.hrc").read_bytes().decode("cp1252").splitlines()
    assert tree == ["East", "North", "@Nord 1", "@Nord 2", "South", "@Sör 1", "@Sör 2"]
    first = sorted((tmp_path / "t.asc").read_bytes().decode("cp1252").splitlines())[0]
    assert first[:9].strip() in ("East f", "East m")
    assert len(first) == 6 + 1 + 1 + 1 + 6 + 1 + 1


def test_our_readers_make_the_same_publication_of_them(firms: duckdb.DuckDBPyConnection) -> None:
    select = "SELECT region, town, sex, count(*) AS n, sum(income) AS income FROM {} " + LEVELS
    rules = "max_count := 2, dominance := [(1, 30)]"
    publish(firms, select.format("firms"), rules)
    write(firms)
    firms.execute(
        """CREATE TABLE back AS SELECT level_1 AS region, town, sex, income FROM sdc_read_asc('t.asc', 't.rda')
        JOIN sdc_levels('(FROM sdc_read_hrc(''t_town.hrc''))') ON code = town"""
    )
    assert firms.execute("SELECT region, town, sex, income FROM firms EXCEPT ALL FROM back").fetchall() == []
    said = dict(firms.execute("SELECT command, arguments FROM sdc_read_arb('t.arb')").fetchall())
    assert said["SAFETYRULE"] == "NK(1,30)|FREQ(3,10)"
    cells = [
        firms.execute(f"FROM sdc_suppress($${select.format(table)}$$, {rules}) ORDER BY ALL").fetchall()
        for table in ("firms", "back")
    ]
    assert cells[0] == cells[1]
    assert any(row[-2] for row in cells[0])


def test_counts_alone(firms: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    publish(firms, "SELECT region, sex, count(*) AS n FROM firms GROUP BY CUBE (region, sex)", "max_count := 9")
    write(firms)
    assert '<SPECIFYTABLE> "region""sex"|"<freq>"||' in (tmp_path / "t.arb").read_text().splitlines()
    assert not (tmp_path / "t_region.hrc").exists()
    with pytest.raises(duckdb.Error, match="exists already; force"):
        write(firms)
    write(firms, ", force := true")


@pytest.mark.parametrize(
    ("select", "rules", "message"),
    [
        ("SELECT region, sex, count(*) AS n FROM firms GROUP BY GROUPING SETS ((region, sex), ())", "max_count := 2", "all totals"),
        ("SELECT region, count(*) AS n FROM firms GROUP BY ROLLUP (region)", "primary_if := 'n = 20'", "'primary_if' is nothing"),
        ("SELECT region, count(*) AS n FROM firms GROUP BY ROLLUP (region)", "max_count := 2, forced_if := 'n > 9'", "'forced_if'"),
        ("SELECT region AS \"my region\", count(*) AS n FROM firms GROUP BY ROLLUP (1)", "max_count := 2", "letters, digits and _"),
        ("SELECT nullif(region, 'East') AS region, count(*) AS n FROM firms GROUP BY ROLLUP (1)", "max_count := 2", "has NULL"),
        ("SELECT region || ' ' AS r, count(*) AS n FROM firms GROUP BY ROLLUP (1)", "max_count := 2", "cannot read"),
        ("SELECT '@' || region AS r, count(*) AS n FROM firms GROUP BY ROLLUP (1)", "max_count := 2", "cannot read"),
        ("SELECT region || chr(19968) AS r, count(*) AS n FROM firms GROUP BY ROLLUP (1)", "max_count := 2", "Windows-1252"),
        ("SELECT sex, region, count(*) AS n FROM firms GROUP BY ROLLUP (sex, region)", "max_count := 2", "in two places"),
        ("SELECT region, count(*) AS n, sum(income - 200) AS s FROM firms GROUP BY ROLLUP (1)", "max_count := 2", "negative"),
        ("SELECT region, count(*) AS n, sum(nullif(staff, 0)) AS s FROM firms GROUP BY ROLLUP (1)", "max_count := 2", "leaves out records"),
        ("SELECT region, sum(staff) AS n FROM firms GROUP BY ROLLUP (1)", "max_count := 2, freq := 'n'", "count of its own"),
        ("SELECT region, count(*) AS n, sum(staff / 7) AS s FROM firms GROUP BY ROLLUP (1)", "max_count := 2", "more than 9 decimals"),
        ("SELECT region, count(*) AS n, sum(staff::DOUBLE * 1e40) AS s FROM firms GROUP BY ROLLUP (1)", "max_count := 2", "more than 20 digits"),
        ("SELECT region, CASE WHEN sex = 'f' THEN region ELSE town END AS t, count(*) AS n FROM firms GROUP BY ROLLUP (1, 2)", "max_count := 2",
            "records of its own and codes below it"),
    ],
)  # fmt: skip
def test_what_tau_argus_would_not_do_alike(
    firms: duckdb.DuckDBPyConnection, tmp_path: Path, select: str, rules: str, message: str
) -> None:
    publish(firms, select, rules)
    with pytest.raises(duckdb.Error, match=message):
        write(firms)
    assert not list(tmp_path.glob("t.*"))


def test_rules_are_written_as_they_are(firms: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    publish(
        firms, "SELECT region, count(*) AS n, sum(staff) AS s FROM firms GROUP BY ROLLUP (1)",
        "dominance := [(2, 66.6666667)], p_percent := 12.3456789, pq := (1, 3)",
    )  # fmt: skip
    write(firms)
    assert "<SAFETYRULE> NK(2,66.6666667)|P(12.3456789,1)|P(33.3333333333333,1)" in (tmp_path / "t.arb").read_text()


def test_all_files_or_none(firms: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full at the last file leaves what was there."""
    select = "SELECT {}, count(*) AS n FROM firms GROUP BY ROLLUP (1)"
    publish(firms, select.format("region"), "max_count := 2")
    write(firms)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    publish(firms, select.format("sex"), "max_count := 2", "u")
    real = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if b"SAFETYRULE" in content:
            raise OSError(28, "No space left on device")
        return real(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    for arguments in ("'u', 't.arb', force := true", "'u', 'u.arb'"):
        with pytest.raises(duckdb.Error, match="No space left"):
            firms.execute(f"FROM sdc_write_tau_argus({arguments})").fetchall()
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_arguments(firms: duckdb.DuckDBPyConnection) -> None:
    publish(firms, "SELECT region, count(*) AS n FROM firms GROUP BY ROLLUP (region)", "max_count := 2")
    for call, message in (
        ("'t', 't.txt'", "must end with .arb"),
        ("'no', 't.arb'", "publication"),
        ("'t', 't.arb', safety_range := -1", "'safety_range'"),
        ("'t', 'nowhere/t.arb'", "no folder"),
        ("'t', 't\".arb'", "names of files in tau-Argus"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            firms.execute(f"FROM sdc_write_tau_argus({call})").fetchall()
    firms.execute("INSERT INTO firms SELECT * FROM firms")
    with pytest.raises(duckdb.Error, match="changed since it was published"):
        write(firms)


def test_records_with_a_separator_and_missing_codes(firms: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    (tmp_path / "m.rda").write_text(
        '<SEPARATOR> ";"\nRegion 2 99\n  <RECODEABLE>\nTurnover 9\n  <NUMERIC> <DECIMALS> 1\n'
    )
    (tmp_path / "m.asc").write_text('"A";1.5\n99;\n\nB ; 22\n')
    rows = firms.execute("FROM sdc_read_asc('m.asc', 'm.rda')").fetchall()
    assert [(region, None if value is None else float(value)) for region, value in rows] == [
        ("A", 1.5),
        (None, None),
        ("B", 22.0),
    ]
    (tmp_path / "f.rda").write_text("Region 1 3\n  <RECODEABLE>\n")
    (tmp_path / "e.rda").write_text("")
    (tmp_path / "tab.rda").write_text("Region\n  <RECODEABLE>\nN\n  <FREQUENCY>\n")
    for metadata, message in (("f", "shorter than the 3"), ("e", "without variables"), ("tab", "a table, not records")):
        (tmp_path / "short.asc").write_text("ab\n")
        with pytest.raises(duckdb.Error, match=message):
            firms.execute(f"FROM sdc_read_asc('short.asc', '{metadata}.rda')").fetchall()
    (tmp_path / "zero.rda").write_text("Region 0 2\n  <RECODEABLE>\n")
    (tmp_path / "fine.rda").write_text("Turnover 1 2\n  <NUMERIC> <DECIMALS> 31\n")
    for metadata, message in (("zero", "begins at 0"), ("fine", "more than 30 decimals")):
        with pytest.raises(duckdb.Error, match=message):
            firms.execute(f"FROM sdc_read_asc('short.asc', '{metadata}.rda')").fetchall()
    for record in ("A", "A;1;2", '"A;B";1'):
        (tmp_path / "short.asc").write_text(f"A;1\nA;2;\n{record}\n")
        with pytest.raises(duckdb.Error, match="a record has not 2 fields"):
            firms.execute("FROM sdc_read_asc('short.asc', 'm.rda')").fetchall()
    (tmp_path / "m.arb").write_text("// a comment\n<READMICRODATA>\nnothing\n")
    with pytest.raises(duckdb.Error, match="line 3: a command in angle brackets"):
        firms.execute("FROM sdc_read_arb('m.arb')").fetchall()
