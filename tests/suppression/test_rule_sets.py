"""Rule sets: arguments of suppression that are stored under a name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sdcduck

FIRMS = "SELECT county, branch, count(*) AS n, sum(turnover) AS turnover FROM firms GROUP BY CUBE (county, branch)"
PERSONS = """SELECT municipality, county, age, count(*) AS n FROM persons
    GROUP BY GROUPING SETS ((municipality, age), (county, age), (municipality), (county), (age), ())"""
MAGNITUDES = (
    "p_percent := 15, min_contributors := 3, contributor := 'coalesce(holding, firm)', dominance := [(1, 70), (2, 92.5)], "
    "not_counted := ['7'], forced_if := 'county IS NULL AND branch IS NULL', protect_intervals := true"
)
COUNTS = "max_count := 3, protect_zeros := true, singleton := 'subSpace', structural_zeros := $$ age = 'b' AND county = 'c0' $$"


@pytest.fixture(scope="module")
def filled() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect() as connection:
        connection.execute("""
            CREATE TABLE firms AS SELECT i AS firm, CASE WHEN i % 6 = 0 THEN i // 12 END AS holding,
                'c' || (i * i + i // 7) % 4 AS county, 'b' || (i // 3 + i) % 4 AS branch, (i * 37 % 101) ** 3 AS turnover
            FROM range(70) t(i);
            CREATE TABLE persons AS SELECT 'm' || i % 6 AS municipality, 'c' || i % 6 // 2 AS county, age
            FROM range(6) t(i), (VALUES ('a', 5), ('b', 1), ('c', 14)) ages(age, n), range(abs(n - i))
            WHERE NOT (age = 'b' AND i < 2)""")
        yield connection


@pytest.fixture
def con(filled: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Firms and persons; no rule set and no publication."""
    for (name,) in rows(filled, "SELECT name FROM sdc_rule_sets()"):
        rows(filled, f"CALL sdc_drop_rules('{name}')")
    for (name,) in rows(filled, "SELECT name FROM sdc_publications()"):
        rows(filled, f"CALL sdc_drop_publication('{name}')")
    return filled


def rows(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return con.execute(query).fetchall()


def refused(con: duckdb.DuckDBPyConnection, query: str) -> str:
    with pytest.raises(duckdb.Error) as caught:
        con.execute(query).fetchall()
    return str(caught.value)


def listed(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    return dict(rows(con, "FROM sdc_rule_sets()"))


_OF_CELLS_ONLY = ", forced_if := 'county IS NULL AND branch IS NULL', protect_intervals := true"
CALLS = {
    "sdc_suppress": "FROM sdc_suppress({0}, {1})",
    "sdc_primary": "FROM sdc_primary({0}, {1})",
    "sdc_audit": "FROM sdc_audit({0}, {1})",
    "sdc_decimals": "FROM sdc_decimals({0}, seed := 1, {1})",
    "sdc_sdmx": "FROM sdc_sdmx({0}, {1})",
    "sdc_optimum": "FROM sdc_optimum({0}, {1})",
    "sdc_publish": "FROM sdc_publish('p', {0}, {1})",
}


@pytest.mark.parametrize("function", CALLS)
@pytest.mark.parametrize(("query", "arguments"), [(FIRMS, MAGNITUDES), (PERSONS, COUNTS)], ids=["sums", "counts"])
def test_a_set_says_what_its_arguments_say(
    con: duckdb.DuckDBPyConnection, function: str, query: str, arguments: str
) -> None:
    rows(con, f"CALL sdc_rules('house', {arguments})")
    spelled_out = arguments.replace(_OF_CELLS_ONLY, "").replace(", singleton := 'subSpace'", "")
    taken = spelled_out if function == "sdc_primary" else arguments
    call = CALLS[function]
    expected = rows(con, call.format(f"$q${query}$q$", taken))
    assert expected
    assert rows(con, call.format(f"$q${query}$q$", "rules := 'house'")) == expected
    assert expected != rows(con, call.format(f"$q${query}$q$", "max_count := 1"))


@pytest.mark.parametrize("arguments", [MAGNITUDES, COUNTS, "pq := (12.5, 50)", "extend_zeros := false, freq := 'n''s'"])
def test_what_is_listed_can_be_called(con: duckdb.DuckDBPyConnection, arguments: str) -> None:
    [stored] = rows(con, f"CALL sdc_rules('house', {arguments})")
    assert listed(con) == dict([stored])
    assert rows(con, f"CALL sdc_rules('again', {stored[1]})") == [("again", stored[1])]
    names = [part.split(" := ")[0] for part in arguments.split(", ") if " := " in part]
    assert sorted(names) == sorted(
        part.split(" := ")[0].split(" ")[-1] for part in stored[1].split(", ") if ":=" in part
    )


def test_the_listing_is_in_the_order_of_the_signature(con: duckdb.DuckDBPyConnection) -> None:
    rows(con, f"CALL sdc_rules('house', {MAGNITUDES})")
    assert listed(con) == {
        "house": "min_contributors := 3, dominance := [(1, 70), (2, 92.5)], p_percent := 15, "
        "contributor := 'coalesce(holding, firm)', not_counted := ['7'], "
        "forced_if := 'county IS NULL AND branch IS NULL', protect_intervals := true"
    }


def test_an_argument_of_the_call_goes_before_that_of_the_set(con: duckdb.DuckDBPyConnection) -> None:
    rows(con, "CALL sdc_rules('house', max_count := 3, singleton := 'none', extend_zeros := true)")
    called = f"FROM sdc_suppress('{PERSONS}', rules := 'house'"
    spelled_out = f"FROM sdc_suppress('{PERSONS}'"
    assert rows(con, f"{called}, max_count := 5)") == rows(
        con, f"{spelled_out}, max_count := 5, singleton := 'none', extend_zeros := true)"
    )
    # A count of 0 is no default, and neither is a false where the default is NULL.
    assert rows(con, f"{called}, max_count := 0)") == rows(
        con, f"{spelled_out}, max_count := 0, singleton := 'none', extend_zeros := true)"
    )
    without_zeros = rows(con, f"{called}, extend_zeros := false)")
    assert without_zeros == rows(con, f"{spelled_out}, max_count := 3, singleton := 'none')")
    assert without_zeros != rows(con, f"{called})")
    # A default says nothing.
    assert rows(con, f"{called}, max_count := NULL, secondary_zeros := false)") == rows(con, f"{called})")


def test_a_set_of_options_goes_with_rules_of_the_call(con: duckdb.DuckDBPyConnection) -> None:
    rows(con, "CALL sdc_rules('careful', singleton := 'subSpace', improve := true)")
    assert "no rule says which cells are primary" in refused(con, f"FROM sdc_suppress('{PERSONS}', rules := 'careful')")
    assert rows(con, f"FROM sdc_suppress('{PERSONS}', rules := 'careful', max_count := 2)") == rows(
        con, f"FROM sdc_suppress('{PERSONS}', singleton := 'subSpace', improve := true, max_count := 2)"
    )


def test_a_name_is_one_whatever_its_case_and_replaced(con: duckdb.DuckDBPyConnection) -> None:
    rows(con, "CALL sdc_rules('House', max_count := 3)")
    rows(con, "CALL sdc_rules('other', max_count := 9)")
    assert rows(con, f"FROM sdc_suppress('{PERSONS}', rules := 'hOUSE')") == rows(
        con, f"FROM sdc_suppress('{PERSONS}', max_count := 3)"
    )
    rows(con, "CALL sdc_rules('HOUSE', p_percent := 10)")
    assert listed(con) == {"HOUSE": "p_percent := 10", "other": "max_count := 9"}
    # DuckDB takes the Kelvin sign and k for two letters.
    rows(con, "CALL sdc_rules('k', max_count := 1)")
    assert "unknown rule set '\u212a'" in refused(con, f"FROM sdc_suppress('{PERSONS}', rules := '\u212a')")
    assert rows(con, "CALL sdc_drop_rules('house')") == [("house",)]
    assert sorted(listed(con)) == ["k", "other"]


@pytest.mark.parametrize("function", CALLS)
def test_an_unknown_set_is_an_error_with_a_suggestion(con: duckdb.DuckDBPyConnection, function: str) -> None:
    rows(con, "CALL sdc_rules('house', max_count := 3)")
    told = f"{function}: unknown rule set 'hose'; did you mean 'house'?"
    assert told in refused(con, CALLS[function].format(f"'{PERSONS}'", "rules := 'hose', max_count := 3"))


def test_what_is_not_there_cannot_be_dropped(con: duckdb.DuckDBPyConnection) -> None:
    assert "unknown rule set 'house'; there are none" in refused(con, "CALL sdc_drop_rules('house')")


BAD = {
    "": "a rule set says something",
    "max_count := NULL, secondary_zeros := false, not_counted := []": "a rule set says something",
    "max_count := -1": "argument 'max_count' must be a number of at least 0",
    "max_count := 'nan'::DOUBLE": "argument 'max_count' must be a number of at least 0",
    "min_contributors := 1": "argument 'min_contributors' must be a whole number of at least 2",
    "min_contributors := 2.5": "argument 'min_contributors' must be a whole number, not 2.5",
    "p_percent := 0.1": "it is in per cent, and p_percent := 10 is a tenth",
    "dominance := [(1, 0.75)]": "more than 1 to 100 per cent",
    "dominance := [(1, 75, 2)]": "argument 'dominance' takes pairs of numbers",
    "dominance := []": "argument 'dominance' takes pairs of numbers",
    "pq := (50, 10)": "with 0 < p < q",
    "protect_zeros := true": "argument 'protect_zeros' goes with 'max_count'",
    "max_count := 3, value := 'x'": "argument 'value' goes with a rule on contributors",
    "p_percent := 10, value := ' '": "argument 'value' must name a column of the publication",
    "not_counted := ['a']": "argument 'not_counted' goes with 'contributor' and 'min_contributors'",
    "min_contributors := 3, contributor := 'f', not_counted := ['a', NULL]": "argument 'not_counted' holds a NULL",
    "k_disclosure := -1": "argument 'k_disclosure' must be a whole number of at least 0",
    "k_disclosure := 1, p_percent := 10": "argument 'k_disclosure' is for counts",
    "max_count := 3, singleton := 'subspace'": "unknown singleton method 'subspace'; did you mean 'subSpace'?",
    "primary_if := 'n < '": "argument 'primary_if' must be an expression of SQL",
    "primary_if := 'n < 3; SELECT 1'": "argument 'primary_if' must be an expression of SQL",
    "hidden_if := 'true) FROM (SELECT 1'": "argument 'hidden_if' must be an expression of SQL",
    "max_count := 3, cost := ''": "argument 'cost' must be an expression of SQL",
}


@pytest.mark.parametrize("arguments", BAD)
def test_what_can_be_checked_is_checked_when_it_is_stored(con: duckdb.DuckDBPyConnection, arguments: str) -> None:
    rows(con, "CALL sdc_rules('house', max_count := 3)")
    assert BAD[arguments] in refused(con, f"CALL sdc_rules('house'{arguments and ', '}{arguments})")
    assert listed(con) == {"house": "max_count := 3"}


def test_a_name_has_letters_and_no_spaces(con: duckdb.DuckDBPyConnection) -> None:
    for name in ("NULL", "''", "' '", "'my house'"):
        assert "argument 'name' must be a name without spaces" in refused(
            con, f"CALL sdc_rules({name}, max_count := 3)"
        )
    assert listed(con) == {}


def test_explaining_stores_nothing(con: duckdb.DuckDBPyConnection) -> None:
    rows(con, "EXPLAIN FROM sdc_rules('house', max_count := 3)")
    assert listed(con) == {}


def test_what_does_not_fit_is_said_with_the_set(con: duckdb.DuckDBPyConnection) -> None:
    rows(con, "CALL sdc_rules('house', primary_if := 'turnover < 3', max_count := 2)")
    for function in ("sdc_suppress", "sdc_primary"):
        told = refused(con, f"FROM {function}('{PERSONS}', rules := 'house')")
        assert "argument 'primary_if': " in told
        assert "the rule set 'house' says max_count := 2, primary_if := 'turnover < 3'" in told
    rows(con, "CALL sdc_rules('groups', k_disclosure := 1)")
    assert "k_disclosure' is for counts" in refused(
        con, f"FROM sdc_suppress('{FIRMS}', rules := 'groups', p_percent := 9)"
    )
    assert "the optimum knows nothing of k_disclosure" in refused(
        con, f"FROM sdc_optimum('{FIRMS}', rules := 'groups')"
    )


# --- Publications -----------------------------------------------------------------------------------------------------


def test_a_set_that_changes_changes_no_publication(con: duckdb.DuckDBPyConnection) -> None:
    rows(con, "CALL sdc_rules('house', max_count := 3)")
    [made] = rows(con, f"FROM sdc_publish('ages', '{PERSONS}', rules := 'house', secondary_zeros := true)")
    cells, answers = rows(con, "FROM sdc.ages_cells"), "FROM sdc_suppress('ages')"
    shown, known = rows(con, answers), rows(con, "FROM sdc_audit('ages')")
    [(arguments,)] = rows(con, "SELECT arguments FROM sdc.publications")
    for change in ("CALL sdc_rules('house', max_count := 1)", "CALL sdc_drop_rules('house')"):
        rows(con, change)
        assert rows(con, answers) == shown
        assert rows(con, "FROM sdc_audit('ages')") == known
        # Published again by its name, it is what it was.
        assert rows(con, "FROM sdc_publish('ages')") == [made]
        assert rows(con, "FROM sdc.ages_cells") == cells
        assert rows(con, "SELECT arguments FROM sdc.publications") == [(arguments,)]
    other = f"FROM sdc_publish('other', '{PERSONS}', max_count := 3, secondary_zeros := true)"
    rows(con, other)
    assert rows(con, "SELECT DISTINCT arguments FROM sdc.publications") == [(arguments,)]


def test_a_set_goes_before_what_a_publication_was_made_with(con: duckdb.DuckDBPyConnection) -> None:
    rows(con, f"FROM sdc_publish('ages', '{PERSONS}', max_count := 1)")
    rows(con, "CALL sdc_rules('house', max_count := 4)")
    assert rows(con, "FROM sdc_suppress('ages', rules := 'house')") == rows(
        con, f"FROM sdc_suppress('{PERSONS}', max_count := 4)"
    )
    rows(con, "FROM sdc_publish('ages', rules := 'house')")
    assert rows(con, "FROM sdc_suppress('ages')") == rows(con, f"FROM sdc_suppress('{PERSONS}', max_count := 4)")
    rows(con, "CALL sdc_rules('zeros', extend_zeros := false)")
    assert "no rule says" in refused(con, "FROM sdc_suppress('ages', rules := 'zeros')")


def test_what_came_before_is_said_by_the_call(con: duckdb.DuckDBPyConnection) -> None:
    rows(con, f"FROM sdc_publish('ages', '{PERSONS}', max_count := 3)")
    rows(con, "CALL sdc_rules('house', max_count := 1)")
    later = "SELECT municipality, county, age, count(*) AS n FROM persons GROUP BY GROUPING SETS ((municipality, county, age), (county))"
    after = rows(con, f"FROM sdc_suppress('{later}', rules := 'house', after := 'ages')")
    assert after == rows(con, f"FROM sdc_suppress('{later}', max_count := 1, after := 'ages')")
    assert after != rows(con, f"FROM sdc_suppress('{later}', rules := 'house')")
    refused(con, "CALL sdc_rules('house', max_count := 2, after := 'ages')")
    assert listed(con) == {"house": "max_count := 1"}


def test_no_rule_of_another_version_is_left_out_without_a_word() -> None:
    with sdcduck.connect() as con:
        rows(con, "CALL sdc_rules('house', max_count := 3)")
        con.execute("UPDATE sdc.rule_sets SET arguments = replace(arguments, 'max_count', 'largest_count')")
        con.execute("CREATE TABLE t AS SELECT range % 5 AS a FROM range(9)")
        told = refused(
            con, "FROM sdc_suppress('SELECT a, count(*) AS n FROM t GROUP BY a', rules := 'house', max_count := 1)"
        )
        assert "the rule set 'house' has an argument 'largest_count', which is none: store it anew" in told


# --- Files ------------------------------------------------------------------------------------------------------------


def test_a_file_that_is_read_has_its_sets(tmp_path: Path) -> None:
    file = tmp_path / "house.duckdb"
    with sdcduck.connect(file) as con:
        con.execute("CREATE TABLE t AS SELECT range % 7 AS a, range % 3 AS b FROM range(20)")
        rows(con, "CALL sdc_rules('house', max_count := 2)")
    query = "SELECT a, b, count(*) AS n FROM t GROUP BY CUBE (a, b)"
    with sdcduck.connect(file, read_only=True) as con:
        assert listed(con) == {"house": "max_count := 2"}
        assert rows(con, f"FROM sdc_suppress('{query}', rules := 'house')") == rows(
            con, f"FROM sdc_suppress('{query}', max_count := 2)"
        )
        for change in ("CALL sdc_rules('house', max_count := 3)", "CALL sdc_drop_rules('house')"):
            assert "read-only" in refused(con, change)
        page = sdcduck.publication_report(con, query, tmp_path / "report.html", rules="house")
        assert page.read_text(encoding="utf-8") == sdcduck.publication_report(
            con, query, tmp_path / "same.html", max_count=2
        ).read_text(encoding="utf-8")


def test_a_file_from_before_there_were_sets_gets_them_when_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "older.duckdb"
    with sdcduck.connect(file) as con:
        con.execute("DROP TABLE sdc.rule_sets; UPDATE sdc.settings SET value = '0.1.0 other' WHERE name = 'sql'")
    query = "SELECT range AS a, count(*) AS n FROM range(3) GROUP BY range"
    with sdcduck.connect(file, read_only=True) as con:
        assert listed(con) == {}
        told = refused(con, f"FROM sdc_suppress('{query}', rules := 'house')")
        assert "unknown rule set 'house'; there are none" in told
    with sdcduck.connect(file) as con:
        assert listed(con) == {}
        rows(con, "CALL sdc_rules('house', max_count := 2)")
        assert listed(con) == {"house": "max_count := 2"}


def test_all_or_nothing() -> None:
    with sdcduck.connect() as con:
        rows(con, "CALL sdc_rules('house', max_count := 3)")
        con.execute("ALTER TABLE sdc.rule_sets ADD COLUMN other INTEGER")
        refused(con, "CALL sdc_rules('house', max_count := 4)")
        assert listed(con) == {"house": "max_count := 3"}
