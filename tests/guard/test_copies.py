"""Copies of a table, each with noise of its own: whoever asks all of them averages it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.guard import guard

TOWNS = 60


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            f"CREATE TABLE people AS SELECT i AS id, i % {TOWNS} AS town, 1000 + i * 7919 % 4001 AS income FROM range({10 * TOWNS}) t(i)"
        )
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute("FROM sdc_store_ptable('other', '(FROM sdc_ptable(D := 3, V := 2))')").fetchall()
        protect(con, "people")
        yield con


def protect(
    con: duckdb.DuckDBPyConnection, table: str, more: str = "", *, role: str = "", income: str = "income"
) -> None:
    measures = f"measures := ['{income}'], " if "rounding" not in more and income else ""
    con.execute(
        f"FROM sdc_protect('{table}', unit := 'id', dimensions := ['town'], {measures}role := '{role}'{more})"
    ).fetchall()


OTHER_KEYS = "CREATE TABLE copy AS SELECT * REPLACE (sdc_record_key(id + 1000000) AS record_key){} FROM people{}"
COPIES = {
    "other keys": (OTHER_KEYS.format("", ""), ""),
    "other keys of another name": (OTHER_KEYS.format("", "") + "; ALTER TABLE copy RENAME record_key TO k", ", record_key := 'k'"),
    "a part": (OTHER_KEYS.format("", " WHERE town < 20"), ""),
    "corrected": (OTHER_KEYS.format("", "") + "; UPDATE copy SET income = income + 1 WHERE id % 50 = 0", ""),
    "each row twice": (OTHER_KEYS.format("", ", range(2)"), ""),
    "many rows, and more digits than one number has": (
        OTHER_KEYS.format("", ", range(3)") + "; ALTER TABLE copy ALTER income TYPE DECIMAL(38, 4)", ""
    ),
    "a p-table": ("CREATE TABLE copy AS FROM people", ", ptable := 'other'"),
}  # fmt: skip


@pytest.mark.parametrize("made", COPIES)
def test_a_copy_with_noise_of_its_own_goes_into_another_role(con: duckdb.DuckDBPyConnection, made: str) -> None:
    statement, more = COPIES[made]
    con.execute(statement)
    with pytest.raises(duckdb.Error, match=r"'copy' looks like a copy of 'people' .'(income|town)'"):
        protect(con, "copy", more)
    with pytest.raises(duckdb.Error, match="looks like a copy"):
        protect(con, "copy", more, role="research")  # who sees what is for everybody, too
    con.execute("FROM sdc_unprotect('people')").fetchall()
    protect(con, "people", role="press")
    protect(con, "copy", more, role="research")


@pytest.mark.parametrize("income", ["pay", ""])
def test_neither_another_name_nor_counts_alone_hide_it(con: duckdb.DuckDBPyConnection, income: str) -> None:
    con.execute(OTHER_KEYS.format("", "") + "; ALTER TABLE copy RENAME income TO pay")
    with pytest.raises(duckdb.Error, match="looks like a copy"):
        protect(con, "copy", income=income)


def test_rounding_to_another_base(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("FROM sdc_unprotect('people'); CREATE TABLE copy AS FROM people")
    protect(con, "people", ", method := 'rounding', base := 5")
    with pytest.raises(duckdb.Error, match=r"looks like a copy.*base \(3 and 5\)"):
        protect(con, "copy", ", method := 'rounding', base := 3")
    protect(con, "copy", ", method := 'rounding', base := 5")


DP = "method := 'dp', bounds := {'income': [0, 6000]}, epsilon := 1, per_question := 0.1"
SEQUENCE = "sequence := 'precision', secrets := ['town'], least_error := 0.5"


@pytest.mark.parametrize(
    ("one", "other", "counted"),
    [
        (DP, DP, "method := 'dp'"),
        (DP, "method := 'threshold', min_units := 3", "method := 'dp'"),
        ("method := 'cell_key'", DP, "method := 'dp'"),
        (SEQUENCE, "method := 'cell_key', min_units := 3", "sequence"),
        ("method := 'cell_key', min_units := 3", SEQUENCE, "sequence"),
    ],
)  # fmt: skip
def test_of_a_copy_nothing_is_counted(tmp_path: Path, one: str, other: str, counted: str) -> None:
    """A copy has a budget of its own: both tables together told twice as much as the custodian said."""
    pytest.importorskip("opendp")
    with sdcduck.connect(str(tmp_path / "register.duckdb"), secret="the secret of the tests") as con:
        con.execute(f"CREATE TABLE people AS SELECT i AS id, i % {TOWNS} AS town, i % 2 AS sex, 1000 + i * 7919 % 4001 AS income FROM range({10 * TOWNS}) t(i)")  # fmt: skip
        con.execute("FROM sdc_add_record_key('people', unit := 'id'); CREATE TABLE copy AS FROM people").fetchall()
        con.execute("CREATE TABLE others AS SELECT * REPLACE (id + 5000 AS id) FROM people")

        def declare(table: str, policy: str, role: str = "") -> None:
            measures = "" if "sequence" in policy else ", measures := ['income']"
            con.execute(
                f"FROM sdc_protect('{table}', unit := 'id', dimensions := ['town', 'sex']{measures}, {policy}, role := '{role}')"
            ).fetchall()

        declare("people", one)
        declare("others", other)
        with pytest.raises(duckdb.Error) as found:
            declare("copy", other)
        assert "'copy' looks like a copy of 'people'" in str(found.value)
        assert f"for they differ in their {counted}" in str(found.value)
        con.execute("FROM sdc_unprotect('people')").fetchall()
        declare("people", one, "press")
        declare("copy", other, "research")


OTHERS = {
    "the same keys": "CREATE TABLE copy AS FROM people",
    "other people of the same numbers": "CREATE TABLE copy AS SELECT id, id * 37 % 11 AS town, 5 + id * 31 % 977 AS income, sdc_record_key(id + 1000000) AS record_key FROM people",
    "nobody of them": "CREATE TABLE copy AS SELECT id + 5000 AS id, town, income, sdc_record_key(id + 5000) AS record_key FROM people",
    "a few of them": OTHER_KEYS.format("", " WHERE id < 15"),
}  # fmt: skip


@pytest.mark.parametrize("made", OTHERS)
def test_other_tables_may_have_the_same_units(con: duckdb.DuckDBPyConnection, made: str) -> None:
    con.execute(OTHERS[made])
    protect(con, "copy")
    if made == "the same keys":
        one = guard(con)
        asked = (
            "SELECT town, count(*) AS n, sum(income) AS income, stddev(income) AS s FROM {} GROUP BY town ORDER BY town"
        )
        assert one.sql(asked.format("people")) == one.sql(asked.format("copy"))


def test_what_copies_tell_in_roles_that_people_share(con: duckdb.DuckDBPyConnection) -> None:
    """Four copies in four roles have half the error, which is why they are not in one."""
    con.execute("FROM sdc_unprotect('people')").fetchall()
    found = []
    for n in range(4):
        con.execute(
            f"CREATE TABLE copy_{n} AS SELECT * REPLACE (sdc_record_key(id + {n} * 1000000) AS record_key) FROM people"
        )
        protect(con, f"copy_{n}", role=f"r{n}")
        asked = f"SELECT town, sum(income) AS v FROM copy_{n} GROUP BY town ORDER BY town"
        found.append([row["v"] for row in guard(con, role=f"r{n}").sql(asked).to_pylist()])
    true = [row[0] for row in con.execute("SELECT sum(income) FROM people GROUP BY town ORDER BY town").fetchall()]
    one = statistics.fmean(abs(a - b) for a, b in zip(found[0], true, strict=True))
    four = statistics.fmean(abs(statistics.fmean(a) - b) for *a, b in zip(*found, true, strict=True))
    assert four < 0.75 * one


def test_a_measure_that_is_the_same_for_all_follows_from_no_other(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE VIEW visitors AS SELECT *, 1 AS visits FROM people")
    con.execute(
        "FROM sdc_protect('visitors', unit := 'id', dimensions := ['town'], measures := ['income', 'visits'])"
    ).fetchall()
    con.execute("CREATE VIEW yearly AS SELECT id, town, record_key, 12 * income AS yearly FROM people")
    with pytest.raises(duckdb.Error, match="'yearly' follows from what is called 'income'"):
        protect(con, "yearly", income="yearly")
