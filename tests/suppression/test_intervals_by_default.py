"""Rules about how closely a contribution can be told mean an interval, and get it where nobody says otherwise."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest

import sdcduck

FIRMS = """CREATE TABLE firms AS
SELECT id AS firm, id % 6 AS county, (id // 6) % 7 AS branch,
    (50 + 60000 / (1 + md5_number('turnover' || id) % 97) ** 2)::INTEGER AS turnover
FROM range(210) firms(id)"""
QUERY = "SELECT county, branch, count(*) AS n, sum(turnover) AS turnover FROM firms GROUP BY CUBE (county, branch)"
P = "p_percent := 15, contributor := 'firm'"


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect()
    con.execute(FIRMS)
    con.execute(f"FROM sdc_publication('turnover', $${QUERY}$$)").fetchall()
    return con


def cells(con: duckdb.DuckDBPyConnection, arguments: str, publication: str = "turnover") -> list[Any]:
    return con.execute(
        f"SELECT county, branch, status FROM sdc_suppress('{publication}', {arguments}) ORDER BY ALL"
    ).fetchall()


def narrow(con: duckdb.DuckDBPyConnection, arguments: str) -> int:
    question = f"SELECT count(*) FROM sdc_audit('turnover', {arguments}) WHERE status = 'primary' AND NOT protected"
    return int(con.execute(question).fetchall()[0][0])


@pytest.mark.parametrize("rule", ["p_percent := 15", "dominance := [(1, 75), (2, 95)]", "pq := (15, 90)"])
def test_rules_on_what_can_be_told_have_intervals(con: duckdb.DuckDBPyConnection, rule: str) -> None:
    rule += ", contributor := 'firm'"
    assert narrow(con, rule) == 0
    assert cells(con, rule) == cells(con, f"{rule}, protect_intervals := NULL")
    assert cells(con, rule) == cells(con, f"{rule}, protect_intervals := true")
    assert narrow(con, f"{rule}, protect_intervals := false") > 0


@pytest.mark.parametrize("rule", ["max_count := 4", "min_contributors := 5", "primary_if := 'turnover < 1000'"])
def test_other_rules_protect_against_exact_disclosure(con: duckdb.DuckDBPyConnection, rule: str) -> None:
    assert cells(con, rule) == cells(con, f"{rule}, protect_intervals := false")


def test_a_set_can_decline_and_a_call_can_ask(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CALL sdc_rules('plain', {P})")
    con.execute(f"CALL sdc_rules('exact', {P}, protect_intervals := false)")
    wide, exact = cells(con, P), cells(con, f"{P}, protect_intervals := false")
    assert wide != exact
    assert cells(con, "rules := 'plain'") == wide
    assert cells(con, "rules := 'exact'") == exact
    assert cells(con, "rules := 'plain', protect_intervals := false") == exact
    assert cells(con, "rules := 'exact', protect_intervals := true") == wide


@pytest.mark.parametrize("said", ["", ", protect_intervals := false"])
def test_what_is_stored_stays_as_it_was_made(con: duckdb.DuckDBPyConnection, said: str) -> None:
    con.execute(f"FROM sdc_publish('stored', $${QUERY}$$, {P}{said})").fetchall()
    published = con.execute('SELECT county, branch, status FROM sdc."stored_cells" ORDER BY ALL').fetchall()
    assert published == cells(con, P + said)
    audited = con.execute("SELECT county, branch, status FROM sdc_audit('stored') ORDER BY ALL").fetchall()
    assert audited == [cell for cell in published if cell[2] in ("primary", "secondary")]


def test_a_publication_from_before_there_were_intervals_had_none(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"FROM sdc_publish('older', $${QUERY}$$, {P}, protect_intervals := false)").fetchall()
    published = con.execute('SELECT county, branch, status FROM sdc."older_cells" ORDER BY ALL').fetchall()
    ((stored,),) = con.execute("SELECT arguments FROM sdc.publications WHERE name = 'older'").fetchall()
    before = {name: value for name, value in json.loads(stored).items() if name != "protect_intervals"}
    con.execute("UPDATE sdc.publications SET arguments = ? WHERE name = 'older'", [json.dumps(before)])
    audited = con.execute("SELECT county, branch, status FROM sdc_audit('older') ORDER BY ALL").fetchall()
    assert audited == [cell for cell in published if cell[2] in ("primary", "secondary")]


def test_small_counts_beside_a_rule_on_contributors_want_a_width_of_the_value() -> None:
    """A cell of 2 records and 4,000 wants a fifth of 4,000, and not of 2."""
    con = sdcduck.connect()
    con.execute("""CREATE TABLE firms AS SELECT * FROM (VALUES
        ('a', 'x', 2500), ('a', 'x', 1500), ('a', 'y', 900), ('a', 'y', 800), ('a', 'y', 700), ('a', 'z', 400),
        ('a', 'z', 300), ('a', 'z', 350), ('b', 'x', 4), ('b', 'x', 5), ('b', 'x', 6), ('b', 'y', 500), ('b', 'y', 600),
        ('b', 'y', 700), ('b', 'z', 600), ('b', 'z', 500), ('b', 'z', 400)) t(county, branch, turnover)""")
    query = QUERY.replace("CUBE (county, branch)", "GROUPING SETS ((county, branch), (county), (branch), ())")

    def audited(arguments: str) -> list[Any]:
        return con.execute(f"""SELECT original, lower, upper, protected FROM sdc_audit($${query}$$, {arguments})
            WHERE status = 'primary' AND county = 'a' AND branch = 'x'""").fetchall()

    arguments = "max_count := 2, dominance := [(1, 99)], measure := 'turnover'"
    ((original, lower, upper, protected),) = audited(f"{arguments}, protect_intervals := false")
    assert original == 4000
    assert protected == (lower <= 3200 and upper >= 4800)
    assert not protected
    ((original, lower, upper, protected),) = audited(arguments)
    assert protected
    assert lower <= 3200
    assert upper >= 4800
