"""Functions that read records refuse a table that stands, empty, for one of another engine: its numbers would be of
nobody, and no word would say so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.catalog.engines import MARK
from sdcduck.functions.reference import EXAMPLE_DATA, EXAMPLE_SECRET, sql_functions

MEANT = {
    "sdc_add_record_key", "sdc_protect", "sdc_unprotect", "sdc_declare_public", "sdc_noise", "sdc_dp_ledger",
    "sdc_sequence", "sdc_sequence_forget", "sdc_question_budget", "sdc_questions", "sdc_plan_seal", "sdc_plan_rules",
}  # fmt: skip
"""They ask the engine, or read what is stored about a table, and no record."""
_OTHERWISE = {
    "sdc_tstr", "sdc_releases", "sdc_approve", "sdc_plan_log", "sdc_sequence_rehearsal", "sdc_read_hst", "sdc_read_hrc",
}  # fmt: skip
"""Their examples name no table of records in the last statement."""


@pytest.fixture(scope="module")
def house() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret=EXAMPLE_SECRET) as con:
        con.execute(EXAMPLE_DATA)
        yield con


def _marked(con: duckdb.DuckDBPyConnection, comment: str) -> list[str]:
    """The tables of the example, each with this comment."""
    tables = con.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' AND NOT internal")
    names = [name for (name,) in tables.fetchall()]
    for name in names:
        con.execute(f'COMMENT ON TABLE "{name}" IS {comment}')
    return names


def test_every_function_that_takes_a_table_refuses_one_of_an_engine(
    house: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some examples write files
    refused, read = [], []
    for function in sql_functions():
        *before, last = duckdb.extract_statements(function.example)
        if (
            function.kind != "table"
            or function.name in MEANT | _OTHERWISE
            or "sdc_" in "".join(s.query for s in before)
        ):
            continue
        for statement in before:
            house.execute(statement)
        names = _marked(house, f"'{MARK}'")
        if any(re.search(rf"\b{name}\b", last.query) for name in names):
            try:
                house.execute(last).fetchall()
                read.append(function.name)
            except duckdb.Error as problem:
                (refused if "on another engine" in str(problem) else read).append(function.name)
        _marked(house, "NULL")
    assert read == []
    assert len(refused) > 100


@pytest.mark.parametrize(
    "read",
    [
        "people",
        "by_view",
        "(FROM lookup JOIN people USING (region))",
        "(SELECT * FROM lookup WHERE region IN (SELECT region FROM main.people))",
        "(SELECT region, persons() AS n FROM lookup)",
        "(WITH told AS (FROM by_view) FROM told)",
        "(PIVOT people ON sex USING count(*))",
    ],
)
def test_by_whatever_way_it_is_read(read: str) -> None:
    with duckdb.connect() as register:
        register.execute("CREATE TABLE people AS SELECT 'n' AS region, 'f' AS sex FROM range(9)")
        with sdcduck.connect(records=register) as con:
            con.execute("CREATE TABLE lookup AS SELECT 'n' AS region")
            con.execute("CREATE VIEW by_view AS FROM people NATURAL JOIN lookup")
            con.execute("CREATE MACRO persons() AS (SELECT count(*) FROM people)")
            con.execute("CREATE TABLE sample AS SELECT 'n' AS region")
            with pytest.raises(duckdb.Error, match="another engine") as caught:
                con.execute("FROM sdc_individual_risk(?, keys := ['region'])", [read]).fetchall()
            assert "here" in str(caught.value)
            for here in ("sample", "(FROM sample JOIN lookup USING (region))"):
                asked = con.execute("SELECT count(*) FROM sdc_k_anonymity(?, keys := ['region'])", [here])
                assert asked.fetchall() == [(1,)]
