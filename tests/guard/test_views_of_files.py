"""Records in files: views of Parquet, in folders that the custodian allows and nowhere else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.errors import SDCError
from sdcduck.guard import Guard, Refused

ASKED = "SELECT region, count(*) AS n, sum(income) AS income FROM people GROUP BY region ORDER BY region"
RECORDS = "SELECT range AS id, range % 3 AS region, range * 7 % 100 AS income FROM range({})"


def write(file: Path, records: int) -> None:
    duckdb.execute(f"COPY ({RECORDS.format(records)}) TO '{file}'")


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database and a folder of Parquet files, as the other tests find them in a folder of their own."""
    folder = tmp_path_factory.mktemp("declared")
    (folder / "records").mkdir()
    write(folder / "records" / "people.parquet", 300)
    with sdcduck.connect(folder / "register.duckdb", secret="the secret of the tests") as con:
        con.execute(f"CREATE TABLE stored AS {RECORDS.format(300)}")
        con.execute(f"CREATE VIEW people AS FROM '{folder}/records/*.parquet'")
        con.execute(
            "CREATE TABLE workers AS SELECT range AS id, range % 4 AS region, range * 31 % 1000 AS income FROM range(99)"
        )
        con.execute("CREATE VIEW keyed AS SELECT *, sdc_record_key(id) AS record_key FROM workers")
        declared = {"unit": "id", "dimensions": ["region"], "measures": ["income"]}
        sdcduck.protect(con, "people", method="threshold", min_units=3, **declared)
        sdcduck.protect(con, "stored", method="threshold", min_units=3, **declared)
        sdcduck.protect(con, "keyed", role="other", **declared)
    return folder


@pytest.fixture
def folder(declared: Path, tmp_path: Path) -> Path:
    """The same, to be changed: the view still names the first folder, so that is where the files are put."""
    shutil.copy(declared / "register.duckdb", tmp_path)
    write(declared / "records" / "people.parquet", 300)
    for other in declared.glob("records/more*"):
        other.unlink()
    return tmp_path


@pytest.fixture
def opened(folder: Path) -> Iterator[Callable[..., Guard]]:
    guards: list[Guard] = []

    def opens(*allowed: Path, **options: str) -> Guard:
        guards.append(sdcduck.open_guard(folder / "register.duckdb", allow_dirs=allowed, **options))
        return guards[-1]

    yield opens
    for guard in guards:
        guard.close()


def test_a_view_of_files_is_answered_where_its_folder_is_allowed(opened: Callable[..., Guard], declared: Path) -> None:
    rows = [{"region": r, "n": 100, "income": sum(i * 7 % 100 for i in range(r, 300, 3))} for r in range(3)]
    guard = opened(declared / "records")
    assert guard.sql(ASKED).to_pylist() == rows
    assert guard.unanswered() == []
    assert opened(declared / "records").sql(ASKED).to_pylist() == rows  # another guard of the same file


def test_where_it_is_not_the_refusal_says_what_to_write(opened: Callable[..., Guard], tmp_path: Path) -> None:
    for allowed in ((), (tmp_path,)):
        guard = opened(*allowed)
        with pytest.raises(
            Refused, match=r"SDC060.*people: a view of files .*allow_dirs=\[\.\.\].*sdcduck serve --allow-dir"
        ):
            guard.sql(ASKED)
        assert [why.split("(")[1].split(":")[0] for why in guard.unanswered()] == ["people"]
        assert guard.sql(ASKED.replace("people", "stored")).num_rows == 3  # the others are answered
        guard.close()


def test_a_view_with_keys_of_the_session_says_that_they_have_to_be_stored(opened: Callable[..., Guard]) -> None:
    with pytest.raises(Refused, match=r"keyed: a view with a function such as sdc_record_key.*sdc_add_record_key"):
        opened(role="other").sql("SELECT count(*) FROM keyed")


@pytest.mark.parametrize(
    "query",
    [
        "FROM '{0}/people.parquet'", "SELECT count(*) FROM read_parquet('{0}/people.parquet')", "FROM glob('{0}/*')",
        "SELECT * FROM parquet_metadata('{0}/people.parquet')", "COPY (SELECT 1) TO '{0}/out.csv'", "ATTACH '{0}/x.duckdb'",
        "SELECT (SELECT count(*) FROM '{0}/people.parquet') FROM people", "SELECT read_text('{0}/people.parquet')",
    ],
)  # fmt: skip
def test_whoever_asks_names_no_file(opened: Callable[..., Guard], declared: Path, query: str) -> None:
    guard = opened(declared / "records")
    before = sorted(declared.rglob("*"))
    with pytest.raises(Refused):
        guard.sql(query.format(declared / "records"))
    assert sorted(declared.rglob("*")) == before


def test_the_instance_reads_no_other_folder(opened: Callable[..., Guard], declared: Path, tmp_path: Path) -> None:
    """Whatever got past the guard would meet the engine's own lock; a link out of the folder is not followed."""
    (tmp_path / "outside").mkdir()
    write(tmp_path / "outside" / "people.parquet", 300)
    link = declared / "records" / "link"
    if not link.is_symlink():
        os.symlink(tmp_path / "outside", link)
    guard = opened(declared / "records")
    try:
        with closing(guard._con.cursor()) as con:
            assert con.execute(f"SELECT count(*) FROM '{declared}/records/people.parquet'").fetchall() == [(300,)]
            for other in (tmp_path / "outside", declared / "records" / "..", link):
                with pytest.raises(duckdb.PermissionException):
                    con.execute(f"FROM '{other}/people.parquet'").fetchall()
            for setting in (
                "enable_external_access = true",
                "allowed_directories = ['/']",
                "lock_configuration = false",
            ):
                with pytest.raises(duckdb.Error, match=r"lock|after"):
                    con.execute(f"SET {setting}")
    finally:
        link.unlink()


def test_files_that_change_are_looked_at_again(opened: Callable[..., Guard], declared: Path) -> None:
    """Also while the guard is open; with the files that it has looked at it goes on."""
    guard = opened(declared / "records")
    assert guard.sql("SELECT count(*) AS n FROM people").to_pylist() == [{"n": 300}]
    duckdb.execute(f"COPY ({RECORDS.format(5)}) TO '{declared}/records/more.parquet'")
    with pytest.raises(Refused, match="SDC060"):
        guard.sql("SELECT count(*) AS n FROM people")
    (declared / "records" / "more.parquet").unlink()
    assert guard.sql("SELECT count(*) AS n FROM people").to_pylist() == [{"n": 300}]


def test_folders_are_checked(folder: Path, declared: Path) -> None:
    file = folder / "register.duckdb"
    for wrong in ("nowhere", declared / "records" / "people.parquet", "s3://bucket/folder"):
        with pytest.raises(SDCError, match="'allow_dirs' must list folders that are there"):
            sdcduck.open_guard(file, allow_dirs=[wrong])
    with sdcduck.connect() as con, pytest.raises(SDCError, match="a connection reads what its database may"):
        sdcduck.open_guard(con, allow_dirs=[folder])
    with closing(sdcduck.open_guard(file, allow_dirs=[folder])):
        for others in ([], [declared], [folder, declared]):
            with pytest.raises(SDCError, match="same memory and folders"):
                sdcduck.open_guard(file, allow_dirs=others)
    with closing(sdcduck.open_guard(file, allow_dirs=str(declared / "records"))) as guard:
        assert guard.sql(ASKED).num_rows == 3


def release(folder: Path, name: str, what: str) -> None:
    """Put a file in the place of another at once, as programs do that write releases."""
    duckdb.execute(f"COPY ({what}) TO '{folder}/{name}.new' (FORMAT parquet)")
    os.replace(folder / f"{name}.new", folder / name)


OTHERS = {
    "other types": "SELECT range AS id, range % 3 AS region, 'much' AS income FROM range(300)",
    "other types of groups": "SELECT range AS id, 'north' AS region, range * 7 % 100 AS income FROM range(300)",
    "as many records of fewer units": "SELECT range // 2 AS id, range % 3 AS region, range AS income FROM range(300)",
    "as many records": "SELECT range AS id, range % 3 AS region, range * 3 % 100 AS income FROM range(300)",
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_file_that_was_replaced_is_not_read(opened: Callable[..., Guard], declared: Path, other: str) -> None:
    """Neither by a question that was asked before nor by a new one, until a guard has looked at it."""
    records = declared / "records"
    guard = opened(records)
    assert guard.sql(ASKED).num_rows == 3
    release(records, "people.parquet", OTHERS[other])
    for asked in (ASKED, "SELECT count(*) AS n FROM people WHERE region = 1", "SELECT income FROM people LIMIT 0"):
        with pytest.raises(Refused, match=r"SDC060.*people: the files that it reads are not those that were looked at"):
            guard.sql(asked)
    assert guard.sql(ASKED.replace("people", "stored")).num_rows == 3
    guard.close()
    anew = opened(records)
    if "units" in other:
        with pytest.raises(Refused, match="SDC060"):
            anew.sql(ASKED)
    elif other == "other types":  # DuckDB says so before it reads a record
        with pytest.raises(Refused, match="BinderException"):
            anew.sql(ASKED)
    else:
        assert anew.sql("SELECT count(*) AS n FROM people").to_pylist() == [{"n": 300}]


def test_another_file_beside_the_first_is_a_new_release(opened: Callable[..., Guard], declared: Path) -> None:
    records = declared / "records"
    guard = opened(records)
    assert guard.sql("SELECT count(*) AS n FROM people").to_pylist() == [{"n": 300}]
    (records / "read me.txt").write_text("of no view")
    assert guard.sql("SELECT count(*) AS n FROM people").to_pylist() == [{"n": 300}]
    release(records, "more.parquet", RECORDS.format(500) + " WHERE range >= 300")
    with pytest.raises(Refused, match=r"a new release of the data; open the guard anew"):
        guard.sql("SELECT count(*) AS n FROM people")
    guard.close()
    assert opened(records).sql("SELECT count(*) AS n FROM people").to_pylist() == [{"n": 500}]


def test_files_that_are_replaced_while_they_are_read(
    opened: Callable[..., Guard], declared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the answer: the answer is thrown away, and the log says why."""
    guard = opened(declared / "records", log=str(declared / "log"))
    drawn = guard.drawn

    def replacing(*arguments: object) -> object:
        release(declared / "records", "people.parquet", OTHERS["as many records"])
        return drawn(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(guard, "drawn", replacing)
    with pytest.raises(Refused, match="SDC060"):
        guard.stream(ASKED)
    assert '"SDC060"' in (declared / "log").read_text()
    (declared / "log").unlink()
    (declared / "log.last").unlink()


VIEWS = {
    "SELECT * FROM read_parquet(['{}/people.parquet'])": True,
    "SELECT * FROM read_parquet('{}/' || 'people.parquet')": None,
    "SELECT s.* FROM stored s JOIN '{}/people.parquet' p USING (id)": True,
    "SELECT * FROM a_file('{}/people.parquet')": None,
    "SELECT * FROM the_file()": True,
    "WITH them AS (FROM stored) SELECT t.* FROM them t, range(1)": False,
    "SELECT * FROM stored": False,
}
"""Views, and whether they stand on a file; None: nobody knows on which."""


@pytest.mark.parametrize("view", VIEWS)
def test_how_a_view_names_its_files(opened: Callable[..., Guard], folder: Path, declared: Path, view: str) -> None:
    records = declared / "records"
    with sdcduck.connect(folder / "register.duckdb", secret="the secret of the tests") as con:
        con.execute("CREATE OR REPLACE MACRO a_file(x) AS TABLE FROM read_parquet(x)")
        con.execute(f"CREATE OR REPLACE MACRO the_file() AS TABLE FROM '{records}/people.parquet'")
        con.execute("FROM sdc_unprotect('stored')")
        con.execute(f"CREATE VIEW asked AS {view.format(records)}")
        sdcduck.protect(
            con, "asked", unit="id", dimensions=["region"], measures=["income"], method="threshold", min_units=3
        )
    guard, stands = opened(records), VIEWS[view]
    asked = "SELECT count(*) AS n FROM asked"
    if stands is None:
        with pytest.raises(Refused, match=r"SDC060.*asked: a view of files whose names are worked out"):
            guard.sql(asked)
        return
    assert guard.sql(asked).to_pylist() == [{"n": 300}]
    release(records, "people.parquet", RECORDS.format(300))
    if stands:
        with pytest.raises(Refused, match="SDC060"):
            guard.sql(asked)
    else:
        assert guard.sql(asked).to_pylist() == [{"n": 300}]
