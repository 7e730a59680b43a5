"""An office says once that its policies limit what many answers tell together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from register_of_people import SECRET

import sdcduck

PROTECT = "FROM sdc_protect('people', unit := 'i', dimensions := ['a', 'ill'], min_units := 3{})"


@pytest.fixture
def con(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(sdcduck.connect(tmp_path / "people.duckdb", secret=SECRET)) as con:
        con.execute("CREATE TABLE people AS SELECT i, i % 4 AS a, i % 5 = 0 AS ill FROM range(200) t(i)")
        con.execute("FROM sdc_add_record_key('people', unit := 'i')").fetchall()
        yield con


def mode(con: duckdb.DuckDBPyConnection, more: str) -> str:
    con.execute(PROTECT.format(more)).fetchall()
    [(found,)] = con.execute("SELECT sequence FROM sdc_policies()").fetchall()
    return str(found)


def test_a_register_with_the_rule(con: duckdb.DuckDBPyConnection) -> None:
    assert mode(con, "") == "off"
    assert con.execute("FROM sdc_sequence_default(true)").fetchall() == [(True,)]
    assert con.execute("SELECT sequence FROM sdc_policies()").fetchall() == [("off",)], "what is declared stays"
    assert mode(con, ", secrets := ['ill']") == "precision"
    assert mode(con, ", method := 'threshold'") == "atoms"
    assert mode(con, ", sequence := 'off'") == "off"
    for more, said in [("", "argument 'secrets'"), (", method := 'rounding'", "say sequence := 'off'")]:
        with pytest.raises(duckdb.Error, match=said):
            con.execute(PROTECT.format(more))
    con.execute("FROM sdc_sequence_default(false)").fetchall()
    assert mode(con, "") == "off"


def test_secrets_that_are_named_are_kept(con: duckdb.DuckDBPyConnection) -> None:
    for more, limit in [("", "off"), (", secrets := ['ill']", "precision")]:
        assert con.execute(f"SELECT sequence {PROTECT.format(more)}").fetchall() == [(limit,)]
    assert mode(con, ", secrets := ['ill'], method := 'threshold'") == "atoms"
    with pytest.raises(duckdb.Error, match="'secrets' goes with sequence := 'precision'"):
        con.execute(PROTECT.format(", secrets := ['ill'], method := 'rounding'"))
    with pytest.raises(duckdb.Error, match="'secrets' goes with sequence := 'precision'"):
        con.execute(PROTECT.format(", secrets := ['ill'], sequence := 'off'"))


def test_the_rule_is_stored(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute("FROM sdc_sequence_default(true)").fetchall()
    con.close()
    with closing(sdcduck.connect(tmp_path / "people.duckdb", secret=SECRET)) as again:
        assert mode(again, ", method := 'threshold'") == "atoms"
    with pytest.raises(duckdb.Error, match="holds"), closing(sdcduck.connect()) as again:
        again.execute("FROM sdc_sequence_default(NULL)")
