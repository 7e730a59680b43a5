"""Published tables in a file for everybody: the answers are those inside, in the real shell, and nothing else is in it."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from typer.testing import CliRunner

import sdcduck
from sdcduck.cli import app
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.nullspace import modular_null_space
from sdcduck.methods.suppression.stencil import STENCIL_PRIME, stand_ins

PLANTED = 123456789012345
NAME = "Zebulon-7431-Quartermain"
MEASURES = "count(*) AS n, sum(income) AS income, sum(-cents) AS cents, sum(share) AS share"
QUERY = f"SELECT region, sex, band, {MEASURES} FROM people GROUP BY GROUPING SETS ((region, sex), (region, band), (sex), (region), ())"
LATER = """SELECT region IN ('r0', 'r1') AS west, band, sdc_open_count(n, stencil) AS n, sdc_open_sum(income, stencil)::DOUBLE AS income,
    sdc_open_sum(cents, stencil)::DOUBLE AS cents, sdc_open_sum(share, stencil)::DOUBLE AS share,
    sdc_open_count(n, stencil, filter := sex = 'f') AS women, sdc_is_open(stencil) AS open
    FROM {table} GROUP BY CUBE (west, band) ORDER BY ALL"""


@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Persons of whom one is alone in a cell, with a name and an income like nobody else's."""
    file = tmp_path_factory.mktemp("register") / "register.duckdb"
    with sdcduck.connect(file, secret="the secret of the tests") as con:
        con.execute(f"""
            CREATE TYPE sexes AS ENUM ('f', 'm', 'label that nobody has');
            CREATE TABLE people AS
            SELECT range AS id, 'person ' || range AS name, 'r' || range % 4 AS region, ['f', 'm'][1 + range // 4 % 2]::sexes AS sex,
                'b' || range // 8 % 3 AS band, 1000 + range * 7919 % 5000 AS income, ((range * 31 % 900) / 100)::DECIMAL(9, 2) AS cents,
                range % 7 / 4 AS share
            FROM range(96);
            INSERT INTO people VALUES (1001, '{NAME}', 'r0', 'm', 'b9', {PLANTED}, 0.77, 0.25)""")
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute(f"FROM sdc_publish('incomes', $${QUERY}$$, max_count := 1)").fetchall()
        con.execute(
            "FROM sdc_publish('small', 'SELECT sex, count(*) AS n FROM people GROUP BY CUBE (sex)', max_count := 1)"
        ).fetchall()
    return file


@pytest.fixture
def con(register: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(register, read_only=True) as connection:
        yield connection


def shell(file: Path, statement: str) -> list[dict[str, Any]]:
    """The answer in DuckDB's own shell."""
    found = shutil.which("duckdb", path=str(Path(sys.executable).parent)) or shutil.which("duckdb")
    if found is None:
        pytest.skip("there is no DuckDB shell: pip install duckdb-cli")
    done = subprocess.run(
        [found, "-no-init", "-batch", "-bail", "-json", "-readonly", str(file)],
        input=statement + ";", capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout or "[]")  # type: ignore[no-any-return]


def rows(con: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    result = con.execute(query)
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def everything(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    with duckdb.connect(str(file), read_only=True) as con:
        tables = [name for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        return {name: con.execute(f'FROM "{name}"').fetchall() for name in tables}


def test_later_tables_are_answered_outside_as_inside(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file = tmp_path / "public.duckdb"
    assert con.execute(f"FROM sdc_export('incomes', '{file}')").fetchall() == [("incomes", 28, 25, None)]
    inside = rows(con, LATER.format(table="sdc.incomes_stencil"))
    assert {row["open"] for row in inside} == {True, False}
    with duckdb.connect(str(file), read_only=True) as plain:
        outside = rows(plain, LATER.format(table="incomes_stencil"))
    for mine, theirs in zip(outside, inside, strict=True):
        assert mine == pytest.approx(theirs, nan_ok=True)
    assert shell(file, LATER.format(table="incomes_stencil")) == json.loads(json.dumps(outside))


def test_every_published_cell_follows_from_the_stencil_outside_and_no_suppressed_one(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    file = tmp_path / "public.duckdb"
    con.execute(f"FROM sdc_export('incomes', '{file}')").fetchall()
    numbers = "sdc_open_count(n, stencil) AS n, sdc_open_sum(income, stencil) AS income"
    sets = "GROUP BY GROUPING SETS ((region, sex), (region, band), (sex), (region), ())"
    answered = shell(file, f"SELECT region, sex, band, {numbers} FROM incomes_stencil {sets} ORDER BY ALL")
    published = shell(file, "SELECT region, sex, band, n, income::DOUBLE AS income FROM incomes_cells ORDER BY ALL")
    assert answered == published
    assert any(row["n"] is None for row in published)
    inside = rows(con, "SELECT region, sex::VARCHAR AS sex, band, n FROM sdc.incomes_cells ORDER BY ALL")
    assert sorted(map(repr, inside)) == sorted(
        repr({**row, "income": 0}).replace(", 'income': 0", "") for row in published
    )


def test_nothing_but_what_is_published_is_in_the_file(
    register: Path, con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    file = tmp_path / "public.duckdb"
    con.execute(f"FROM sdc_export(['incomes', 'small'], '{file}')").fetchall()
    tables = everything(file)
    assert set(tables) == {"incomes_cells", "incomes_stencil", "small_cells", "small_stencil", "readme"}
    values = {value for table in tables.values() for row in table for value in row}
    assert PLANTED not in values
    assert not {"primary", "secondary", "max_count"} & values
    ((total,),) = con.execute("SELECT sum(income) FROM people").fetchall()
    assert total in values
    # The cell of the planted person is suppressed, and so are the sums that would tell of it.
    hidden = con.execute("SELECT n, income FROM sdc.incomes_stencil WHERE band = 'b9'").fetchall()
    assert hidden == [(1, PLANTED)]
    content = file.read_bytes()
    secrets = {
        "name": NAME.encode(), "query": b"FROM people", "label": b"label that nobody has",
        "income": struct.pack("<q", PLANTED), "in double": struct.pack("<d", PLANTED), "in text": str(PLANTED).encode(),
    }  # fmt: skip
    own = register.read_bytes()
    assert {what for what, how in secrets.items() if how in own} >= {"name", "query", "label", "income"}
    assert [what for what, how in secrets.items() if how in content] == []
    keys = [key for (key,) in con.execute("SELECT record_key FROM people").fetchall()]
    assert not set(keys) & values


def test_stand_ins_are_made_from_published_sums_alone() -> None:
    # Two rows and three columns of which the cell in the middle and its rectangle are suppressed.
    x = DummyMatrix.from_pairs(np.tile(np.arange(6), 2), np.r_[np.repeat([0, 1], 3), np.tile([2, 3, 4], 2)], (6, 5))
    space = modular_null_space(x, np.arange(5))
    one = np.array([[5, -2], [1, 7], [9, 2**50], [4, 0], [3, 1], [2, -8]])
    other = one + np.array([[1, 30], [-3, 0], [2, -30], [-1, -30], [3, 0], [-2, 30]])
    assert np.array_equal(x.totals(one[:, 0]), x.totals(other[:, 0]))
    for seed in range(20):
        numbers = stand_ins(space, one, seed)
        assert np.array_equal(numbers, stand_ins(space, other, seed))
        assert numbers.min() >= 0
        assert numbers.max() < STENCIL_PRIME
        for column in range(2):
            sums = [
                sum(int(numbers[row, column]) for row in x.indices[x.indptr[c] : x.indptr[c + 1]]) for c in range(5)
            ]
            true = [int(total) % STENCIL_PRIME for total in x.totals(one[:, column])]
            assert [total % STENCIL_PRIME for total in sums] == true
    assert not np.array_equal(stand_ins(space, one, 1), stand_ins(space, one, 2))


def test_a_file_is_replaced_only_by_force_and_half_of_one_is_never_there(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    file = tmp_path / "public.duckdb"
    file.write_text("something else")
    for statement, message in {
        f"FROM sdc_export('incomes', '{file}')": "exists already",
        f"FROM sdc_export('nobody', '{file}', force := true)": "unknown publication 'nobody'",
        f"FROM sdc_export('incomes', '{tmp_path}', force := true)": "is a folder",
        f"FROM sdc_export('incomes', '{tmp_path}/nowhere/public.duckdb')": "there is no folder",
        f"FROM sdc_export(['incomes', 'Incomes'], '{file}', force := true)": "unknown publication 'Incomes'|has a name twice",
        f"FROM sdc_export('', '{file}', force := true)": "must be the name of a stored publication",
        "FROM sdc_export('incomes', '')": "must be the name of the file",
    }.items():
        with pytest.raises(duckdb.Error, match=message):
            con.execute(statement).fetchall()
    assert file.read_text() == "something else"
    con.execute(f"FROM sdc_export('incomes', '{file}', force := true)").fetchall()
    assert everything(file)["incomes_cells"]
    assert [path.name for path in tmp_path.iterdir()] == ["public.duckdb"]


def test_the_database_itself_is_never_overwritten(tmp_path: Path, register: Path) -> None:
    own = tmp_path / "own.duckdb"
    shutil.copy(register, own)
    before = own.read_bytes()
    with sdcduck.connect(own, read_only=True) as con, pytest.raises(duckdb.Error, match="the database itself"):
        con.execute(f"FROM sdc_export('incomes', '{tmp_path}/../{tmp_path.name}/own.duckdb', force := true)").fetchall()
    assert own.read_bytes() == before
    (tmp_path / "public.duckdb.wal").write_text("a log")
    with sdcduck.connect(own, read_only=True) as con, pytest.raises(duckdb.Error, match="in use"):
        con.execute(f"FROM sdc_export('incomes', '{tmp_path}/public.duckdb', force := true)").fetchall()


def test_a_publication_that_does_not_hold_any_more_is_not_exported(tmp_path: Path, register: Path) -> None:
    own = tmp_path / "own.duckdb"
    shutil.copy(register, own)
    with sdcduck.connect(own) as con:
        con.execute(
            "FROM sdc_publication('later', 'SELECT sex, count(*) AS n FROM people GROUP BY CUBE (sex)')"
        ).fetchall()
        with pytest.raises(duckdb.Error, match="has not been published yet"):
            con.execute(f"FROM sdc_export('later', '{tmp_path}/public.duckdb')").fetchall()
        con.execute("UPDATE sdc.small_cells SET status = 'secondary', n = NULL WHERE sex = 'f'")
        with pytest.raises(duckdb.Error, match="not those that its rules give now"):
            con.execute(f"FROM sdc_export('small', '{tmp_path}/public.duckdb')").fetchall()
        con.execute("DELETE FROM people WHERE id = 5")
        with pytest.raises(duckdb.Error, match="changed since it was published"):
            con.execute(f"FROM sdc_export('incomes', '{tmp_path}/public.duckdb')").fetchall()
        con.execute("SET enable_external_access = false")
        with pytest.raises(duckdb.Error, match="may not write files"):
            con.execute(f"FROM sdc_export('small', '{tmp_path}/public.duckdb')").fetchall()
    assert not (tmp_path / "public.duckdb").exists()


def test_hidden_cells_later_publications_and_many_decimals(tmp_path: Path) -> None:
    file = tmp_path / "public.duckdb"
    with sdcduck.connect() as con:
        con.execute(
            "CREATE TABLE people AS SELECT range % 5 AS a, range % 3 AS b, range / 7 AS odd, NULL::INTEGER AS none FROM range(40)"
        )
        first = "SELECT a, count(*) AS n, sum(odd) AS odd FROM people GROUP BY CUBE (a)"
        con.execute(f"FROM sdc_publish('first', '{first}', max_count := 1)").fetchall()
        second = "SELECT a, b, count(*) AS n, sum(none) AS none FROM people GROUP BY CUBE (a, b)"
        con.execute(
            f"FROM sdc_publish('second', '{second}', max_count := 2, hidden_if := 'a = 4', after := 'first')"
        ).fetchall()
        done = con.execute(f"FROM sdc_export(['first', 'second'], '{file}')").fetchall()
        assert done == [("first", 6, 5, "odd"), ("second", 20, 15, None)]
        inside = "SELECT a > 2 AS c, sdc_open_count(n, stencil) AS n FROM {} GROUP BY CUBE (c) ORDER BY ALL"
        expected = rows(con, inside.format("sdc.second_stencil"))
        assert shell(file, inside.format("second_stencil")) == expected
        assert {row[0] for row in everything(file)["second_cells"]} == {None, 0, 1, 2, 3}
        assert [row[:2] for row in everything(file)["first_stencil"]] == [(a, 8) for a in range(5)]


def test_a_publication_without_grouping_columns(tmp_path: Path) -> None:
    file = tmp_path / "public.duckdb"
    with sdcduck.connect() as con:
        con.execute("CREATE TABLE people AS SELECT range AS id FROM range(9)")
        con.execute("FROM sdc_publish('all', 'SELECT count(*) AS n FROM people', max_count := 1)").fetchall()
        con.execute(f"FROM sdc_export('all', '{file}')").fetchall()
    assert shell(file, "SELECT sdc_open_count(n, stencil) AS n FROM all_stencil") == [{"n": 9}]


def test_the_file_says_what_is_in_it(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file = tmp_path / "public.duckdb"
    con.execute(f"FROM sdc_export('incomes', '{file}')").fetchall()
    said = shell(file, "SELECT relation, example FROM readme")
    assert [row["relation"] for row in said] == ["incomes_cells", "incomes_stencil"]
    assert len(shell(file, said[0]["example"])) == 28
    assert {row["region"] for row in shell(file, said[1]["example"])} == {"r0", "r1", "r2", "r3"}
    comments = shell(
        file,
        "SELECT comment FROM duckdb_tables() UNION ALL SELECT comment FROM duckdb_columns() WHERE column_name = 'n'",
    )
    assert sum(row["comment"] is not None for row in comments) >= 4
    functions = shell(
        file,
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal AND starts_with(function_name, 'sdc')",
    )
    assert {row["function_name"] for row in functions} == {"sdc_is_open", "sdc_open_count", "sdc_open_sum"}
    # Functions of the same names that mean something else are not put over those in the file.
    for read_only in (False, True):
        with pytest.raises(sdcduck.SDCError, match="made by sdc_export"):
            sdcduck.connect(file, read_only=read_only)


def test_the_command(register: Path, tmp_path: Path) -> None:
    file = tmp_path / "public.duckdb"
    arguments = ["export", str(register), "--publication", "incomes", "--publication", "small", "--to", str(file)]
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "incomes: 28 cells, 25 inner cells in the stencil", "small: 3 cells, 2 inner cells in the stencil", f"wrote {file}",
    ]  # fmt: skip
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 1
    assert "exists already" in again.stderr
    assert CliRunner().invoke(app, [*arguments, "--force", "--no-stencil"]).exit_code == 0
    assert set(everything(file)) == {"incomes_cells", "small_cells", "readme"}
    assert shell(file, "SELECT count(*) AS n FROM duckdb_functions() WHERE NOT internal") == [{"n": 0}]
