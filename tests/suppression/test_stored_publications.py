"""Stored publications: the stencil and the decimals answer later tables, the audit, and publications one after another."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st

import sdcduck

COUNTS = """
    SELECT municipality, county, age, count(*) AS n, sum(income) AS income FROM people
    GROUP BY GROUPING SETS ((municipality, age), (county, age), (age), (municipality), (county), ())"""


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """The worked example of Langsrud and Bøvelstad (2022), with an income for everybody."""
    connection = sdcduck.connect()
    connection.execute("""
        CREATE TABLE wide AS SELECT * FROM (VALUES
            ('A', 'county-1', 'small', 1, 1, 1), ('B', 'county-2', 'small', 5, 6, 8), ('C', 'county-3', 'small', 2, 9, 7),
            ('D', 'county-3', 'big', 35, 12, 11), ('E', 'county-4', 'big', 3, 26, 35), ('F', 'county-4', 'big', 5, 18, 14)
        ) municipalities(municipality, county, size, young, middle, old);
        CREATE TABLE people AS SELECT municipality, county, size, age, 100 + i AS income
            FROM (UNPIVOT wide ON young, middle, old INTO NAME age VALUE n), range(n) numbers(i)""")
    yield connection
    connection.close()


def rows(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return con.execute(query).fetchall()


def refused(con: duckdb.DuckDBPyConnection, query: str) -> str:
    with pytest.raises(duckdb.Error) as caught:
        con.execute(query).fetchall()
    return str(caught.value)


# --- Stencil ----------------------------------------------------------------------------------------------------------


LATER = """
    SELECT size, age, sdc_open_count(n, stencil) AS n, sdc_is_open(stencil) AS open, sdc_open_sum(income, stencil) AS income
    FROM sdc.counts_stencil JOIN (SELECT municipality, size FROM wide) USING (municipality)
    GROUP BY CUBE (size, age) ORDER BY ALL"""


def test_the_table_by_size_is_answered_from_the_stencil(con: duckdb.DuckDBPyConnection) -> None:
    assert rows(
        con,
        f"SELECT inner_cells, cells, primary_cells, secondary_cells FROM sdc_publish('counts', $${COUNTS}$$, max_count := 3, improve := false)",
    ) == [(18, 44, 10, 14)]
    shown = {(size, age): n for size, age, n, _, _ in rows(con, LATER) if size is not None}
    assert shown == {
        ("small", "middle"): 16, ("small", None): 40, ("big", "middle"): 56, ("big", None): 159,
        ("small", "young"): None, ("small", "old"): None, ("big", "young"): None, ("big", "old"): None,
    }  # fmt: skip
    assert all(
        (n is None) is (not is_open) and (income is None) is (not is_open)
        for _, _, n, is_open, income in rows(con, LATER)
    )


def test_every_published_cell_is_open_and_no_suppressed_one(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"FROM sdc_publish('counts', $${COUNTS}$$, max_count := 3)").fetchall()
    answered = """
        SELECT municipality, county, age, sdc_open_count(n, stencil) AS n FROM sdc.counts_stencil
        GROUP BY GROUPING SETS ((municipality, age), (county, age), (age), (municipality), (county), ()) ORDER BY ALL"""
    assert rows(con, answered) == rows(con, "SELECT municipality, county, age, n FROM sdc.counts_cells ORDER BY ALL")


def test_a_filter_and_nothing_at_all(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"FROM sdc_publish('counts', $${COUNTS}$$, max_count := 3)").fetchall()
    assert rows(con, "SELECT sdc_open_count(n, stencil, filter := county = 'county-3') FROM sdc.counts_stencil") == [
        (76,)
    ]
    assert rows(con, "SELECT sdc_open_count(n, stencil, filter := municipality = 'A') FROM sdc.counts_stencil") == [
        (None,)
    ]
    assert rows(con, "SELECT sdc_open_count(n, stencil) FROM sdc.counts_stencil WHERE false") == [(0,)]


def test_an_inner_cell_without_a_stencil_is_refused(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"FROM sdc_publish('counts', $${COUNTS}$$, max_count := 3)").fetchall()
    con.execute("INSERT INTO sdc.counts_stencil (municipality, n) VALUES ('G', 1)")
    assert "came after the publication" in refused(con, LATER.replace("JOIN", "LEFT JOIN"))


def rank(columns: list[list[int]]) -> int:
    """The rank of integer columns, in fractions."""
    vectors, found = [[Fraction(value) for value in column] for column in columns], 0
    for place in range(len(columns[0]) if columns else 0):
        pivot = next((v for v in vectors[found:] if v[place]), None)
        if pivot is None:
            continue
        vectors.remove(pivot)
        vectors.insert(found, pivot)
        for k in range(found + 1, len(vectors)):
            factor = vectors[k][place] / pivot[place]
            vectors[k] = [a - factor * b for a, b in zip(vectors[k], pivot, strict=True)]
        found += 1
    return found


@settings(max_examples=times(12, 40), deadline=None)
@given(st.data())
def test_the_stencil_agrees_with_the_rank(lasting: duckdb.DuckDBPyConnection, data: st.DataObject) -> None:
    con = lasting
    counts = data.draw(st.lists(st.integers(0, 6), min_size=12, max_size=12))
    con.execute(
        "CREATE OR REPLACE TABLE cells AS SELECT unnest(?) AS n, generate_subscripts(?, 1) - 1 AS i", [counts, counts]
    )
    con.execute("CREATE OR REPLACE TABLE people AS SELECT i % 3 AS a, i // 3 AS b, i // 6 AS c FROM cells, range(n)")
    query = "SELECT a, b, c, count(*) AS n FROM people GROUP BY GROUPING SETS ((a, b), (a, c), (a), (b), (c), ())"
    con.execute(f"FROM sdc_publish('p', '{query}', max_count := 2, singleton := 'none')").fetchall()
    inner = rows(con, "SELECT a, b, c, stencil FROM sdc.p_stencil")
    published = rows(con, "SELECT a, b, c, level FROM sdc.p_cells WHERE status = 'open'")

    def column(cell: tuple[Any, ...]) -> list[int]:
        levels = cell[3].split(" x ")
        return [
            int(all(name not in levels or row["abc".index(name)] == cell["abc".index(name)] for name in "abc"))
            for row in inner
        ]

    known = [column(cell) for cell in published]
    for _ in range(4):
        chosen = data.draw(st.lists(st.booleans(), min_size=len(inner), max_size=len(inner)))
        later = [int(one) for one in chosen]
        follows = rank([*known, later]) == rank(known) if inner else True
        total = sum(row[3] for row, one in zip(inner, chosen, strict=True) if one)
        assert (total % (2**61 - 1) == 0) is follows
    con.execute("FROM sdc_drop_publication('p')").fetchall()


# --- Decimals ---------------------------------------------------------------------------------------------------------


def test_decimals_are_whole_for_what_is_published_and_for_nothing_else(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"FROM sdc_publish('counts', $${COUNTS}$$, max_count := 3)").fetchall()
    con.execute("CREATE TABLE handed_out AS FROM sdc_decimals('counts', seed := 1)")
    sums = """SELECT municipality, county, age, abs(sum(d1) - round(sum(d1))) < 1e-5 AND abs(sum(d2) - round(sum(d2))) < 1e-5
        AND round(sum(d1)) = round(sum(d2)) AND round(sum(d2)) = round(sum(d3)) AS whole, round(sum(d1))::BIGINT AS n
        FROM handed_out GROUP BY GROUPING SETS ((municipality, age), (county, age), (age), (municipality), (county), ())"""
    both = rows(
        con,
        f"SELECT c.status, s.whole, c.n, s.n FROM ({sums}) s JOIN sdc.counts_cells c ON (s.municipality, s.county, s.age) IS NOT DISTINCT FROM (c.municipality, c.county, c.age)",
    )
    assert len(both) == 44
    assert all(whole is (status == "open") for status, whole, _, _ in both)
    assert all(n == decimal for status, _, n, decimal in both if status == "open")


def test_the_same_seed_gives_the_same_decimals_and_zero_mode_adds_up_to_zero(con: duckdb.DuckDBPyConnection) -> None:
    call = f"sdc_decimals($${COUNTS}$$, max_count := 3, mode := 'zeros', replicates := 1, seed := 5)"
    assert rows(con, f"FROM {call}") == rows(con, f"FROM {call}")
    assert abs(rows(con, f"SELECT sum(d1) FROM {call}")[0][0]) < 1e-9
    assert rows(con, f"FROM {call}") != rows(con, f"FROM {call.replace('seed := 5', 'seed := 6')}")
    assert "'replicates' must be a whole number from 1 to 10" in refused(
        con, f"FROM {call.replace('replicates := 1', 'replicates := 0')}"
    )
    assert "'mode' must be 'counts' or 'zeros'; did you mean 'zeros'?" in refused(
        con, f"FROM {call.replace('zeros', 'zero')}"
    )


# --- Audit ------------------------------------------------------------------------------------------------------------


def test_no_suppressed_cell_of_the_example_is_given_away(con: duckdb.DuckDBPyConnection) -> None:
    audit = rows(
        con, f"SELECT lower, original, upper, exact FROM sdc_audit($${COUNTS}$$, max_count := 3, improve := false)"
    )
    assert len(audit) == 24
    assert all(lower <= original <= upper and not exact for lower, original, upper, exact in audit)


def test_suppressing_primary_cells_alone_gives_them_away(con: duckdb.DuckDBPyConnection) -> None:
    # Everything but the primary cells forced: they follow, and the audit and `why` say so.
    call = f"$${COUNTS}$$, primary_if := 'municipality = ''A'' AND age = ''old''', forced_if := 'NOT (municipality = ''A'' AND age = ''old'') IS TRUE'"
    assert rows(con, f"SELECT lower, upper, exact FROM sdc_audit({call})") == [(1.0, 1.0, True)]
    assert rows(con, f"SELECT status, why FROM sdc_suppress({call}) WHERE suppressed") == [
        ("primary", "primary_if, follows from forced cells")
    ]
    assert rows(con, f"SELECT unsafe_cells FROM sdc_publish('leaky', {call})") == [(1,)]


def test_hidden_cells_are_unknown_to_who_attacks(con: duckdb.DuckDBPyConnection) -> None:
    # The totals bound the cells of A; hidden totals bound nothing.
    known = f"$${COUNTS}$$, primary_if := 'municipality = ''A'' AND age IS NOT NULL'"
    hidden = f"{known}, hidden_if := 'municipality IS NULL OR age IS NULL'"
    assert rows(con, f"SELECT bool_and(isfinite(upper)) FROM sdc_audit({known}) WHERE municipality = 'A'") == [(True,)]
    assert rows(con, f"SELECT bool_and(isinf(upper)) FROM sdc_audit({hidden}) WHERE municipality = 'A'") == [(True,)]


def test_negative_inner_cells_tell_no_signs(con: duckdb.DuckDBPyConnection) -> None:
    # No published cell is negative, one inner cell is: it must lie in its interval all the same.
    con.execute(
        "CREATE TABLE balances AS SELECT * FROM (VALUES ('a', 'x', -5), ('a', 'y', 9), ('b', 'x', 9), ('b', 'y', 4)) t(r, s, v)"
    )
    query = "SELECT r, s, count(*) AS n, sum(v) AS v FROM balances GROUP BY GROUPING SETS ((r), (s), (r, s))"
    found = rows(con, f"SELECT lower, original, upper FROM sdc_audit('{query}', measure := 'v', primary_if := 'v < 0')")
    assert len(found) == 3
    assert all(lower <= original <= upper for lower, original, upper in found)


def test_intervals_are_made_as_wide_as_the_rule_wants(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE firms AS SELECT 'r' || (i * i + i // 7) % 5 AS r, 's' || (i // 3 + i) % 5 AS s, i AS firm, ((i * 37 % 101) ** 3)::BIGINT AS x FROM range(60) t(i)"
    )
    query = "SELECT r, s, count(*) AS n, sum(x) AS x FROM firms GROUP BY CUBE (r, s)"
    rule = f"'{query}', p_percent := 60, contributor := 'firm'"
    exact = f"{rule}, protect_intervals := false"
    narrow = rows(con, f"SELECT count(*) FROM sdc_audit({exact}) WHERE status = 'primary' AND NOT protected")[0][0]
    wide = rows(
        con,
        f"SELECT count(*) FROM sdc_audit({rule}) WHERE status = 'primary' AND NOT protected",
    )[0][0]
    assert wide == 0 < narrow
    kept = rows(
        con,
        f"SELECT count(*) FROM sdc_suppress({exact}) p JOIN sdc_suppress({rule}) w ON (p.r, p.s) IS NOT DISTINCT FROM (w.r, w.s) WHERE p.suppressed AND NOT w.suppressed",
    )
    assert kept == [(0,)]


def test_an_interval_that_cannot_be_wide_enough_is_named(con: duckdb.DuckDBPyConnection) -> None:
    # The totals are forced, and beside the 100 of (a, x), of 90 and 10, there is only 1 in its row: nothing lets it rise
    # by the 8 that p % wants.
    con.execute("""CREATE TABLE firms AS SELECT * FROM (VALUES ('a', 'x', 1, 90), ('a', 'x', 2, 10), ('a', 'y', 3, 1),
        ('b', 'x', 4, 1), ('b', 'y', 5, 20), ('b', 'y', 6, 30)) firms(r, s, firm, x)""")
    query = "SELECT r, s, count(*) AS n, sum(x) AS x FROM firms GROUP BY CUBE (r, s)"
    rule = f"'{query}', p_percent := 20, contributor := 'firm', forced_if := 'r IS NULL OR s IS NULL'"
    assert rows(con, f"SELECT r, s, why FROM sdc_suppress({rule}, protect_intervals := true) WHERE suppressed") == [
        ("a", "x", "p_percent, interval cannot be wide enough"), ("a", "y", "p_percent"), ("b", "x", "p_percent"),
        ("b", "y", "p_percent, interval cannot be wide enough"),
    ]  # fmt: skip
    narrow = "SELECT unsafe_cells, narrow_cells FROM sdc_publish"
    assert rows(con, f"{narrow}('firms', {rule}, protect_intervals := true)") == [(0, 2)]
    assert rows(con, "SELECT count(*) FROM sdc.firms_cells WHERE why LIKE '%interval cannot be wide enough'") == [(2,)]
    assert rows(con, "SELECT r || s, protected FROM sdc_audit('firms')") == [
        ("ax", False), ("ay", True), ("bx", True), ("by", False),
    ]  # fmt: skip
    assert rows(con, f"{narrow}('firms', {rule})") == [(0, 2)]
    assert rows(con, f"{narrow}('firms', {rule}, protect_intervals := false)") == [(0, None)]


INSIDER = "original, lower, upper, exact, insider_lower, insider_upper, insider_exact, insider_protected"


@pytest.mark.parametrize("contributor", ["", ", contributor := 'firm'"])
def test_contributors_who_know_their_own_value(con: duckdb.DuckDBPyConnection, contributor: str) -> None:
    # 50 of one firm and 30 of another under a published total: each subtracts its own.
    con.execute("""CREATE TABLE firms AS SELECT * FROM (VALUES ('1', 1, 50), ('2', 2, 30), ('3', 3, 60), ('3', 4, 40))
        firms(s, firm, x)""")
    query = "SELECT s, count(*) AS n, sum(x) AS x FROM firms GROUP BY CUBE (s)"
    rule = f"'{query}', min_contributors := 2{contributor}, insider := true"
    assert rows(con, f"SELECT {INSIDER} FROM sdc_audit({rule}, singleton := 'none')") == [
        (50, 0, 80, False, 50, 50, True, False),
        (30, 0, 80, False, 30, 30, True, False),
    ]
    # That is what the singleton method is for. Firm 1 sees 130 left for the two others, firm 2 sees 150.
    assert rows(con, f"SELECT {INSIDER} FROM sdc_audit({rule})") == [
        (50, 0, 180, False, 0, 150, False, True),
        (30, 0, 180, False, 0, 130, False, True),
        (100, 0, 180, False, 0, 130, False, True),
    ]
    # Counts: who is alone knows that he is one.
    counts = f"'{query}', max_count := 1, insider := true{contributor}"
    assert rows(con, f"SELECT {INSIDER} FROM sdc_audit({counts}, singleton := 'none')") == [
        (1, 0, 2, False, 1, 1, True, False),
        (1, 0, 2, False, 1, 1, True, False),
    ]
    assert rows(con, f"SELECT bool_or(insider_exact) FROM sdc_audit({counts})") == [(False,)]


def test_who_is_in_both_cells_learns_nothing_new_and_who_is_unknown_nothing_at_all(
    con: duckdb.DuckDBPyConnection,
) -> None:
    con.execute(
        "CREATE TABLE firms AS SELECT * FROM (VALUES ('1', 7, 50), ('2', 7, 30), ('3', 8, 99)) firms(s, firm, x)"
    )
    query = "SELECT s, count(*) AS n, sum(x) AS x FROM firms GROUP BY CUBE (s)"
    rule = f"'{query}', primary_if := 'x < 60', insider := true, singleton := 'none'"
    both = "SELECT lower, upper, insider_lower, insider_upper FROM sdc_audit"
    assert rows(con, f"{both}({rule}, measure := 'x', contributor := 'firm')") == [(0, 80, 0, 80), (0, 80, 0, 80)]
    assert rows(con, f"{both}({rule}, measure := 'x')") == [(0, 80, 50, 50), (0, 80, 30, 30)]
    nobody = "contributor := 'CASE WHEN firm = 8 THEN 8 END'"
    assert rows(con, f"{both}({rule}, measure := 'x', {nobody})") == [(0, 80, 0, 80), (0, 80, 0, 80)]
    assert "'insider_lower'" in refused(
        con, "FROM sdc_audit('SELECT s AS insider_lower, count(*) AS n FROM firms GROUP BY s', insider := true)"
    )


def test_improving_never_costs_more_and_gives_nothing_away(con: duckdb.DuckDBPyConnection) -> None:
    rng = np.random.default_rng(3)
    saved = 0.0
    for _ in range(4):
        con.execute(
            "CREATE OR REPLACE TABLE t AS SELECT unnest(?) AS n, generate_subscripts(?, 1) - 1 AS i",
            [rng.poisson(6, 42).tolist()] * 2,
        )
        con.execute("CREATE OR REPLACE TABLE units AS SELECT i % 6 AS a, i // 6 AS b, i // 12 AS c FROM t, range(n)")
        query = "SELECT a, b, c, count(*) AS n FROM units GROUP BY GROUPING SETS ((a, b), (a, c), (a), (b), (c), ())"
        call = f"'{query}', max_count := 3"
        cost = "SELECT coalesce(sum(original), 0), bool_or(exact) FROM sdc_audit"
        [(before, _)] = rows(con, f"{cost}({call}, improve := false)")
        [(after, exact)] = rows(con, f"{cost}({call}, improve := true)")
        assert after <= before
        assert not exact
        saved += before - after
        told = "SELECT secondary_cells, saved_cells, saved_cost FROM sdc_publish"
        [(first, *nothing)] = rows(con, f"{told}('improved', {call}, improve := false)")
        [(better, cells, worth)] = rows(con, f"{told}('improved', {call}, improve := true)")
        assert (nothing, cells, worth) == ([None, None], first - better, before - after)
    assert saved > 0


# --- One after another ------------------------------------------------------------------------------------------------


def test_a_later_publication_keeps_to_an_earlier_one(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"FROM sdc_publish('first', $${COUNTS}$$, max_count := 3, improve := false)").fetchall()
    query = """SELECT municipality, county, age, size, count(*) AS n FROM people
        GROUP BY GROUPING SETS ((size, age), (size), (municipality, county, age), ())"""
    alone = rows(
        con,
        f"SELECT count(*) FROM sdc_suppress($${query}$$, max_count := 3, improve := false) WHERE level = 'age x size' AND suppressed",
    )
    found = rows(
        con,
        f"SELECT level, size, age, n FROM sdc_suppress($${query}$$, max_count := 3, improve := false, after := 'first') WHERE level = 'age x size' ORDER BY ALL",
    )
    assert alone == [(0,)]  # on its own it would show all of them, and so give away cells of the first
    shown = {(size, age): n for _, size, age, n in found}
    assert shown[("small", "young")] is None
    assert shown[("small", "middle")] == 16
    before = rows(
        con, "SELECT municipality, age, n FROM sdc.first_cells WHERE level = 'municipality x age' ORDER BY ALL"
    )
    after = rows(
        con,
        f"SELECT municipality, age, n FROM sdc_suppress($${query}$$, max_count := 3, improve := false, after := 'first') WHERE level = 'municipality x county x age' ORDER BY ALL",
    )
    assert after == before
    # And a third keeps to both.
    con.execute(
        f"FROM sdc_publish('second', $${query}$$, max_count := 3, improve := false, after := 'first')"
    ).fetchall()
    third = "SELECT municipality, county, age, size, count(*) AS n FROM people GROUP BY GROUPING SETS ((county, size), (county), (municipality, age))"
    counties = rows(
        con,
        f"SELECT county, n FROM sdc_suppress($${third}$$, max_count := 3, improve := false, after := 'second') WHERE level = 'county' ORDER BY ALL",
    )
    assert counties == [("county-1", None), ("county-2", None), ("county-3", 76), ("county-4", 101)]


def test_publications_that_are_suppressed_apart_are_named(con: duckdb.DuckDBPyConnection) -> None:
    """A total beside regions of which one is hidden, and the regions that were shown before, tell it together."""
    con.execute("""CREATE TABLE few AS SELECT r FROM (VALUES ('a', 1), ('b', 5), ('c', 6)) t(r, n), range(n);
        CREATE VIEW all_few AS FROM few; CREATE TABLE others AS FROM few""")
    regions = "SELECT r, count(*) AS n FROM few GROUP BY r"
    both = "SELECT r, count(*) AS n FROM all_few GROUP BY CUBE (r)"
    publish = "SELECT beside FROM sdc_publish('{}', $${}$$, max_count := 1{})"
    assert rows(con, publish.format("regions", regions, "")) == [(None,)]
    assert rows(con, publish.format("regions", regions, "")) == [(None,)]
    assert rows(con, publish.format("elsewhere", regions.replace("few", "others"), "")) == [(None,)]
    assert rows(con, publish.format("Both", both, "")) == [("regions",)]
    told = "(SELECT n FROM sdc.Both_cells WHERE r IS NULL) - (SELECT sum(n) FROM sdc.regions_cells)"
    assert rows(con, f"SELECT {told}") == [(1,)]
    assert rows(con, publish.format("both", both, ", after := 'Regions'")) == [(None,)]
    assert rows(con, f"SELECT {told}") == [(None,)]
    rows(con, "FROM sdc_publication('named', 'SELECT r, count(*) AS n FROM few GROUP BY r')")
    assert rows(con, publish.format("regions", regions, "")) == [("both",)]


def test_what_cannot_come_after(con: duckdb.DuckDBPyConnection) -> None:
    later = "SELECT size, count(*) AS n FROM people GROUP BY CUBE (size)"
    assert "unknown publication 'first'" in refused(
        con, f"FROM sdc_suppress('{later}', max_count := 3, after := 'first')"
    )
    con.execute(f"FROM sdc_publication('first', $${COUNTS}$$)").fetchall()
    assert "has not been published" in refused(con, f"FROM sdc_suppress('{later}', max_count := 3, after := 'first')")
    con.execute("FROM sdc_publish('first', max_count := 3)").fetchall()
    assert "groups by 'municipality'" in refused(con, f"FROM sdc_suppress('{later}', max_count := 3, after := 'first')")
    others = COUNTS.replace("FROM people", "FROM people WHERE size = 'big'")
    assert "have other counts" in refused(con, f"FROM sdc_suppress($${others}$$, max_count := 3, after := 'first')")


# --- What is stored -----------------------------------------------------------------------------------------------------


def test_changed_data_are_refused_until_published_again(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"FROM sdc_publish('counts', $${COUNTS}$$, max_count := 3, improve := false)").fetchall()
    assert rows(con, "SELECT count(*) FROM sdc_audit('counts')") == [(24,)]
    con.execute("INSERT INTO people SELECT * FROM people WHERE municipality = 'A'")
    assert "changed since it was published" in refused(con, "FROM sdc_audit('counts')")
    assert "changed since it was published" in refused(con, "FROM sdc_decimals('counts')")
    con.execute("FROM sdc_publish('counts')").fetchall()
    assert rows(con, "SELECT sum(n) FROM sdc.counts_stencil") == [(202,)]
    # Published again without rules, it keeps those that it had.
    assert rows(con, "SELECT bool_or(status = 'primary') FROM sdc_audit('counts')") == [(True,)]
    assert rows(con, "SELECT count(*) > 0 FROM sdc_suppress('counts') WHERE suppressed") == [(True,)]


def test_rules_of_the_call_count_even_if_they_are_zero(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"FROM sdc_publish('counts', $${COUNTS}$$, max_count := 3)").fetchall()
    assert rows(con, "SELECT count(*) FROM sdc_suppress('counts', max_count := 0) WHERE suppressed") == [(0,)]


def test_a_publication_from_before_an_argument_came(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"FROM sdc_publish('counts', $${COUNTS}$$, max_count := 3, improve := false)").fetchall()
    con.execute("""UPDATE sdc.publications
        SET arguments = json_merge_patch(arguments, '{"k_disclosure": null, "structural_zeros": null}')""")
    assert "k_disclosure" not in rows(con, "SELECT arguments FROM sdc.publications")[0][0]
    assert rows(con, "SELECT count(*) FROM sdc_audit('counts')") == [(24,)]


def test_publications_are_listed_and_dropped_with_their_tables(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"FROM sdc_publication('named', $${COUNTS}$$)").fetchall()
    con.execute("FROM sdc_publish('counts', 'named', max_count := 3)").fetchall()
    assert rows(con, "SELECT name, published FROM sdc_publications()") == [("counts", True), ("named", False)]
    con.execute("FROM sdc_drop_publication('counts')").fetchall()
    assert rows(con, "SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'counts%'") == [(0,)]
    assert "unknown publication 'counts'; did you mean" not in refused(con, "FROM sdc_drop_publication('counts')")
    assert "without spaces" in refused(con, "FROM sdc_publication('a b', 'SELECT count(*) AS n FROM people')")


def test_nothing_is_written_when_something_fails_or_is_only_explained(con: duckdb.DuckDBPyConnection) -> None:
    before = rows(con, "SELECT table_name FROM duckdb_tables() ORDER BY ALL")
    con.execute(f"EXPLAIN FROM sdc_publish('counts', $${COUNTS}$$, max_count := 3)").fetchall()
    refused(
        con,
        "FROM sdc_publish('counts', 'SELECT county, count(*) AS n, sum(ln(income - 100)) AS x FROM people GROUP BY county', p_percent := 5)",
    )
    assert rows(con, "SELECT table_name FROM duckdb_tables() ORDER BY ALL") == before
    assert rows(con, "FROM sdc_publications()") == []


def test_names_that_need_quoting(con: duckdb.DuckDBPyConnection) -> None:
    con.execute('CREATE TABLE "odd "" table" AS SELECT municipality AS "the ""place""", age AS "order" FROM people')
    query = 'SELECT "the ""place""", "order", count(*) AS "how many" FROM "odd "" table" GROUP BY CUBE ("the ""place""", "order")'
    con.execute(f"FROM sdc_publish('läuft-\"gut\"', $${query}$$, max_count := 3)").fetchall()
    assert rows(con, 'SELECT count(*) FROM sdc."läuft-""gut""_cells" WHERE "how many" IS NULL')[0][0] > 0


# --- Structural zeros -------------------------------------------------------------------------------------------------


STAYS = "SELECT sex, diagnosis, count(*) AS n FROM stays GROUP BY CUBE (sex, diagnosis)"
IMPOSSIBLE = "structural_zeros := $$sex = 'm' AND diagnosis = 'pregnancy'$$"


@pytest.fixture
def stays(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute("""CREATE TABLE stays AS SELECT sex, diagnosis FROM (VALUES
        ('f', 'flu', 5), ('f', 'pregnancy', 4), ('m', 'flu', 6), ('m', 'cancer', 3)) stays(sex, diagnosis, n), range(n)""")
    return con


def test_structural_zeros_hide_nothing_and_protect_nothing(stays: duckdb.DuckDBPyConnection) -> None:
    inner = "SELECT sex || ' ' || diagnosis, status FROM sdc_suppress"
    rule = f"'{STAYS}', max_count := 0, protect_zeros := true, forced_if := 'sex IS NULL OR diagnosis IS NULL'"
    found = "WHERE suppressed AND sex IS NOT NULL AND diagnosis IS NOT NULL ORDER BY ALL"
    # Taken for a number like others, the impossible combination is primary, and covers the other zero.
    assert rows(stays, f"{inner}({rule}) {found}") == [
        ("f cancer", "primary"), ("f pregnancy", "secondary"), ("m cancer", "secondary"), ("m pregnancy", "primary"),
    ]  # fmt: skip
    assert rows(stays, f"{inner}({rule}, {IMPOSSIBLE}) {found}") == [
        ("f cancer", "primary"), ("f flu", "secondary"), ("m cancer", "secondary"), ("m flu", "secondary"),
    ]  # fmt: skip
    assert rows(stays, f"SELECT count(*) FROM sdc_suppress({rule}, {IMPOSSIBLE})") == [(11,)]
    primary = f"sdc_primary('{STAYS}', max_count := 0, protect_zeros := true, {IMPOSSIBLE}) WHERE status = 'primary'"
    assert rows(stays, f"SELECT sex, diagnosis FROM {primary}") == [("f", "cancer")]
    assert rows(stays, f"SELECT bool_or(exact) FROM sdc_audit({rule}, {IMPOSSIBLE})") == [(False,)]


def test_structural_zeros_are_remembered_and_answered_as_nothing(stays: duckdb.DuckDBPyConnection) -> None:
    call = f"sdc_publish('stays', '{STAYS}', max_count := 0, protect_zeros := true, {IMPOSSIBLE})"
    assert rows(stays, f"SELECT inner_cells, cells FROM {call}") == [(5, 11)]
    assert rows(stays, "SELECT count(*) FROM sdc.stays_stencil WHERE sex = 'm' AND diagnosis = 'pregnancy'") == [(0,)]
    assert rows(stays, "SELECT count(*) FROM sdc_suppress('stays')") == [(11,)]
    # All pregnancies are those of women: the same cell, open or not.
    of_all = "SELECT count(DISTINCT status = 'open') FROM sdc.stays_cells WHERE diagnosis = 'pregnancy'"
    assert rows(stays, of_all) == [(1,)]


def test_structural_zeros_from_a_list_and_in_k_disclosure(stays: duckdb.DuckDBPyConnection) -> None:
    possible = rows(stays, "SELECT DISTINCT sex, diagnosis FROM stays")
    condition = f"(sex, diagnosis) NOT IN {tuple(possible)}".replace("'", "''")
    # What everybody knows to be impossible, no difference tells.
    suppressed = (
        f"SELECT count(*) FROM sdc_suppress('{STAYS}', k_disclosure := 0, structural_zeros := '{{}}') WHERE suppressed"
    )
    assert rows(stays, suppressed.format(condition)) == [(0,)]
    assert rows(stays, suppressed.format("false"))[0][0] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "extend_zeros := true, structural_zeros := $$diagnosis = 'cancer'$$",
            "1 inner cells that meet it are not empty",
        ),
        (IMPOSSIBLE, "'structural_zeros' goes with zeros as cells"),
        (f"protect_zeros := true, extend_zeros := false, {IMPOSSIBLE}", "'structural_zeros' goes with zeros as cells"),
        ("extend_zeros := true, structural_zeros := 'gender = 1'", "'structural_zeros': "),
        ("extend_zeros := true, structural_zeros := 'n = 0'", "'structural_zeros': "),
        ("extend_zeros := true, structural_zeros := 'sex'", "'structural_zeros' must be a condition"),
    ],
)
def test_structural_zeros_that_cannot_be(stays: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    for function in ("sdc_primary", "sdc_suppress"):
        assert message in refused(stays, f"FROM {function}('{STAYS}', max_count := 1, {arguments})")


@pytest.mark.parametrize(
    "condition",
    [
        "(sex, diagnosis) NOT IN (FROM stays)",  # all zeros are impossible, whatever the records
        "NOT EXISTS (FROM stays s WHERE s.sex = p.sex)",
        "sex = (SELECT min(sex) FROM others)",
        "sex IN (VALUES ('x'))",
        "sex IN (TABLE others)",
        "read(sex)",
        "read_list(sex) = [sex]",
        "main.read(sex)",
        "sex = getvariable('x')",
        "sex = current_setting('TimeZone')",
        "random() < 0",
        "current_date < DATE '2000-01-01'",
        "current_user = sex",
        "now() < TIMESTAMP '2000-01-01'",
        "list_contains(list_transform([sex], lambda x: 'x'), sex)",
        "upper(sex) = 'x'",  # not DuckDB's own any more
        "false) FROM others WHERE (true",
        "false), (true",
        "CAST((SELECT sex FROM others) AS BOOLEAN)",
        "CASE WHEN sex IN (SELECT sex FROM others) THEN true ELSE false END",
    ],
)
def test_structural_zeros_read_no_other_table(stays: duckdb.DuckDBPyConnection, condition: str) -> None:
    stays.execute("CREATE TABLE others AS SELECT 'x' AS sex")
    stays.execute(
        "CREATE MACRO read(s) AS s IN (FROM others); CREATE MACRO read_list(s) AS (SELECT list(sex) FROM others)"
    )
    stays.execute("CREATE MACRO upper(s) AS (SELECT min(sex) FROM others); SET VARIABLE x = 'x'")
    said = f"extend_zeros := true, structural_zeros := $${condition}$$"
    for call in (
        f"sdc_suppress('{STAYS}', max_count := 1, {said})", f"sdc_primary('{STAYS}', max_count := 1, {said})",
        f"sdc_publish('p', '{STAYS}', max_count := 1, {said})", f"sdc_audit('{STAYS}', max_count := 1, {said})",
        f"sdc_check_table('{STAYS}', structural_zeros := $${condition}$$)",
        f"sdc_tau('stays', dimensions := ['sex', 'diagnosis'], sigma := 1, structural_zeros := $${condition}$$)",
        f"sdc_synth_dp_preflight('stays', dimensions := ['sex', 'diagnosis'], epsilon := 1, structural_zeros := $${condition}$$)",
    ):  # fmt: skip
        message = refused(stays, f"FROM {call}")
        assert "structural_zeros" in message


def test_the_refusal_says_what_to_write(stays: duckdb.DuckDBPyConnection) -> None:
    message = refused(
        stays,
        f"FROM sdc_suppress('{STAYS}', extend_zeros := true, structural_zeros := 'sex IN (SELECT sex FROM stays)')",
    )
    assert 'must be a condition on "sex", "diagnosis" alone, without subqueries' in message
    assert 'as in ("sex", "diagnosis") IN ((.., ..), (.., ..))' in message


@pytest.mark.parametrize(
    "condition",
    [
        "sex = 'm' AND diagnosis IN ('pregnancy', 'birth')",
        "(sex, diagnosis) IN (('m', 'pregnancy'), ('m', 'birth'))",
        "SEX || ' ' || diagnosis LIKE 'm pre%' -- of course",
        "CASE WHEN sex IS DISTINCT FROM 'm' THEN false ELSE contains(diagnosis, 'preg') END",
        "nullif(sex, 'f') = 'm' AND lower(diagnosis)[1:4] = 'preg' AND length(sex)::INTEGER BETWEEN 1 AND 2",
        "stays.sex = 'm' AND diagnosis COLLATE NOCASE = 'PREGNANCY'",
        "sex = 'm' AND diagnosis ~ 'preg.*'",
    ],
)
def test_structural_zeros_may_be_any_expression_of_the_columns(
    stays: duckdb.DuckDBPyConnection, condition: str
) -> None:
    condition = condition.replace("stays.", "")
    call = f"sdc_suppress('{STAYS}', max_count := 1, extend_zeros := true, structural_zeros := $${condition}$$)"
    assert rows(stays, f"SELECT count(*) FROM {call}") == [(11,)]


# --- Rounding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["small_counts", "controlled", "random"])
def test_rounded_tables(con: duckdb.DuckDBPyConnection, method: str) -> None:
    call = f"sdc_round_table($${COUNTS}$$, base := 5, method := '{method}', seed := 3)"
    found = rows(con, f"SELECT level, original, rounded FROM {call}")
    assert len(found) == 44
    if method == "small_counts":
        assert all(rounded == 0 or rounded >= 5 for _, _, rounded in found)
    else:
        assert all(rounded % 5 == 0 and abs(rounded - original) < 5 for _, original, rounded in found)
    if method != "random":
        assert rows(
            con,
            f"SELECT sum(rounded) FILTER (level = 'municipality') = sum(rounded) FILTER (level = 'county') FROM {call}",
        ) == [(True,)]
    assert found == rows(con, f"SELECT level, original, rounded FROM {call}")


def test_counts_below_a_threshold_are_left_out_cell_by_cell(con: duckdb.DuckDBPyConnection) -> None:
    call = f"sdc_round_table($${COUNTS}$$, base := 5, method := 'threshold')"
    assert rows(con, f"SELECT DISTINCT original FROM {call} WHERE rounded IS NULL ORDER BY ALL") == [(1,), (2,), (3,)]
    assert rows(con, f"SELECT count(*) FROM {call} WHERE rounded <> original OR rounded < 5") == [(0,)]
    # Of C, 18 persons in all, only the young are left out: a difference tells them.
    assert rows(con, f"SELECT age, rounded FROM {call} WHERE municipality = 'C' ORDER BY age NULLS FIRST") == [
        (None, 18), ("middle", 9), ("old", 7), ("young", None),
    ]  # fmt: skip
    zeros = "SELECT municipality, size, count(*) AS n FROM people GROUP BY municipality, size"
    empty = f"sdc_round_table('{zeros}', base := 5, method := 'threshold', extend_zeros := true)"
    assert rows(con, f"SELECT rounded FROM {empty} WHERE original = 0") == []


def test_rounding_that_cannot_be(con: duckdb.DuckDBPyConnection) -> None:
    assert "'base' must be a whole number of at least 2" in refused(
        con, f"FROM sdc_round_table($${COUNTS}$$, base := 1)"
    )
    assert "did you mean 'random'" in refused(con, f"FROM sdc_round_table($${COUNTS}$$, method := 'randm')")
    assert "'freq' must name a count" in refused(con, f"FROM sdc_round_table($${COUNTS}$$, freq := 'income')")


@pytest.mark.parametrize("nothing", ["0", "NULL"])
def test_what_is_in_a_published_zero_is_unsafe(con: duckdb.DuckDBPyConnection, nothing: str) -> None:
    con.execute(
        f"CREATE TABLE t AS FROM (VALUES (1, 1, {nothing}), (1, 2, {nothing}), (2, 1, 30.3), (2, 2, 40.4), "
        f"(1, 3, {nothing}), (1, 3, {nothing}), (2, 3, 3.3), (2, 3, 3.3)) v(a, b, v)"
    )
    query = "SELECT a, b, count(*) AS n, sum(v) AS total FROM t GROUP BY CUBE (a, b)"
    told = rows(con, f"SELECT unsafe_cells FROM sdc_publish('zeros', $${query}$$, max_count := 1)")
    found = rows(con, "SELECT count(*) FROM sdc_audit('zeros', measure := 'total') WHERE exact AND status = 'primary'")
    assert told == found == [(2,)]


def test_where_numbers_may_be_negative_a_zero_tells_nothing(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS FROM (VALUES (1, 1, 5), (1, 2, -5), (2, 1, 30), (2, 2, 40), (1, 3, 0), (1, 3, 0), "
        "(2, 3, 3), (2, 3, 3)) v(a, b, v)"
    )
    query = "SELECT a, b, count(*) AS n, sum(v) AS total FROM t GROUP BY CUBE (a, b)"
    assert rows(con, f"SELECT unsafe_cells FROM sdc_publish('signs', $${query}$$, max_count := 1)") == [(0,)]


@pytest.mark.parametrize("seed", [15, 39, 47, 52])
def test_a_width_that_is_rounding_of_the_largest_cell_is_exact(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    def some(factor: int, shift: int) -> str:
        return f"((i * {factor} + {seed * shift}) * (i * 31 + {seed + factor}) % 10007)"

    con.execute(
        f"CREATE TABLE t AS SELECT {some(7, 103)} % 4 AS a, {some(11, 5)} % 4 AS b, {some(13, 17)} % 3 AS c, "
        f"CASE WHEN {some(17, 29)} % 10 < 6 THEN 0 ELSE ({some(3, 41)} % 1000)::DOUBLE / 7 * 10.0 ** {seed % 7} END AS v "
        "FROM range(60) r(i)"
    )
    sets = "GROUPING SETS ((a, b), (a, c), (b, c), (a, b, c))"
    query = f"SELECT a, b, c, count(*) AS n, sum(v) AS total FROM t GROUP BY {sets}"
    largest = rows(con, f"SELECT max(total) FROM ({query})")[0][0]
    wide = rows(
        con,
        f"SELECT min(upper - lower) FROM sdc_audit($${query}$$, max_count := 1, measure := 'total') WHERE NOT exact",
    )[0][0]
    assert wide > 5e-13 * largest


@pytest.mark.parametrize("nothing", ["0", "NULL"])
def test_publishing_says_as_unsafe_what_the_audit_finds_exact(con: duckdb.DuckDBPyConnection, nothing: str) -> None:
    """No published cell alone gives u and v away: a + b + u and c + d + v are as much as a + c and b + d together."""
    con.execute(f"""
        CREATE TABLE t AS SELECT r, s, v FROM (VALUES ('1', 'x', 3), ('1', 'y', 4), ('1', 'z', {nothing}), ('2', 'x', 5), ('2', 'y', 2),
            ('2', 'z', {nothing})) u(r, s, v), range(3)""")
    query = "SELECT r, s, count(*) AS n, sum(v) AS total FROM t GROUP BY GROUPING SETS ((r, s), (r), (s))"
    rules = "max_count := 3, hidden_if := 'level = ''s'' AND s = ''z'''"
    audited = rows(
        con, f"SELECT s FROM sdc_audit($${query}$$, {rules}, measure := 'total') WHERE exact AND status = 'primary'"
    )
    assert audited == [("z",), ("z",)]
    assert not rows(con, f"FROM sdc_audit($${query}$$, {rules}, measure := 'n') WHERE exact")
    assert rows(con, f"SELECT primary_cells, unsafe_cells FROM sdc_publish('p', $${query}$$, {rules})") == [(6, 2)]


def test_an_audit_without_time_calls_nothing_protected(con: duckdb.DuckDBPyConnection) -> None:
    rule = f"$${COUNTS}$$, max_count := 3, improve := false, insider := true"
    whole = rows(con, f"SELECT original FROM sdc_audit({rule})")
    found = rows(con, f"SELECT * FROM sdc_audit({rule}, time_limit := 0)")
    assert len(found) == len(whole) == 24
    for *_, _status, lower, upper, exact, protected, his_lower, his_upper, his_exact, his_protected in found:
        assert (lower, upper, exact, his_lower, his_upper, his_exact) == (None,) * 6
        assert not protected
        assert not his_protected
    unlimited = rows(con, f"FROM sdc_audit({rule}, time_limit := NULL)")
    assert unlimited == rows(con, f"FROM sdc_audit({rule})")
    assert "'time_limit' must be a number of at least 0: seconds" in refused(
        con, f"FROM sdc_audit({rule}, time_limit := -1)"
    )


def test_an_audit_shows_its_progress() -> None:
    shares: list[float] = []
    with sdcduck.connect(progress=shares.append) as con:
        con.execute("CREATE TABLE people AS SELECT hash(i) % 9 AS a, hash(i + 1000) % 9 AS b FROM range(150) t(i)")
        query = "SELECT a, b, count(*) AS n FROM people GROUP BY CUBE (a, b)"
        con.execute("FROM sdc_audit(?, max_count := 1, insider := true)", [query]).fetchall()
    assert len({share for share in shares if 0.1 < share < 0.3}) > 1
    assert len({share for share in shares if 0.3 < share < 1}) > 1
    assert shares[-1] == 1


@pytest.mark.parametrize("copies", [10, 100])
def test_publishing_says_so_of_many_cells_as_well(con: duckdb.DuckDBPyConnection, copies: int) -> None:
    con.execute(f"""
        CREATE TABLE t AS SELECT p, r, s, v FROM (VALUES ('1', 'x', 3), ('1', 'y', 4), ('1', 'z', 0), ('2', 'x', 5), ('2', 'y', 2),
            ('2', 'z', 0)) u(r, s, v), range(3), range({copies}) copies(p)""")
    query = "SELECT p, r, s, count(*) AS n, sum(v) AS v FROM t GROUP BY GROUPING SETS ((p, r, s), (p, r), (p, s))"
    rules = "max_count := 3, hidden_if := 'level = ''p x s'' AND s = ''z'''"
    found = rows(con, f"SELECT primary_cells, unsafe_cells FROM sdc_publish('p', $${query}$$, {rules})")
    assert found == [(6 * copies, 2 * copies)]
