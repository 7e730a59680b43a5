"""Rules for records: the rulebook of Eustat (PSD 2022), M1 to M4 and the individual risk of mu-ARGUS, as a rule set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import sdcduck
from sdcduck import assess

RULEBOOK = (
    "k := 3, max_risk := 0.02, max_mean_risk := 0.0007, min_population := 10000, identifiers := ['name', 'Person_ID'], "
    "max_share_own := 0.5, min_at_ends := 3, max_fraction := 0.02, max_total_change := 0.01, max_ks := 0.1"
)


def refused(con: duckdb.DuckDBPyConnection, query: str) -> str:
    with pytest.raises(duckdb.Error) as caught:
        con.execute(query).fetchall()
    return str(caught.value)


def checked(con: duckdb.DuckDBPyConnection, arguments: str) -> dict[tuple[str, str | None], tuple[Any, ...]]:
    """Value, threshold, passed and message, by rule and what it is about."""
    rows = con.execute(f"FROM sdc_check_records({arguments})").fetchall()
    found = {(rule, about): rest for rule, about, *rest in map(tuple, rows)}
    assert len(found) == len(rows)
    assert all((message is None) is passed for *_, passed, message in found.values())
    return {key: tuple(rest) for key, rest in found.items()}


def people(con: duckdb.DuckDBPyConnection, counts: str, weight: float) -> None:
    """The table `t`, with so many records of each class."""
    con.execute(
        f"CREATE OR REPLACE TABLE t AS SELECT c, {weight}::DOUBLE AS w FROM (VALUES {counts}) v(c, n), range(n::BIGINT)"
    )


# --- The numbers of the spec ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "records", "risk"),
    [
        (165, 1, 0.0311338),
        (165, 2, 0.0059077),
        (50, 1, 0.0798372),
        (50, 2, 0.0187788),
        (50, 3, 0.0098208),
        (1, 2, 0.5),
    ],
)
def test_the_individual_risk_of_a_class(
    con: duckdb.DuckDBPyConnection, weight: float, records: int, risk: float
) -> None:
    people(con, f"('a', {records})", weight)
    found = checked(con, "'t', 'c', weight := 'w', max_risk := 0.02, max_mean_risk := 0.02")
    assert found["max_risk", "c"][0] == found["max_mean_risk", "c"][0] == pytest.approx(risk, abs=5e-8)
    assert found["max_risk", "c"][2] is (risk <= 0.02)


def test_unsafe_is_what_is_above_the_threshold_and_the_ratio_is_expected_over_records(
    con: duckdb.DuckDBPyConnection,
) -> None:
    people(con, "('a', 1), ('b', 2), ('c', 3)", 50)
    found = checked(con, "'t', 'c', weight := 'w', max_risk := 0.02, max_mean_risk := 0.0007")
    assert found["max_risk", "c"][3].startswith("1 record has a higher risk: ")
    expected = 0.0798372 + 2 * 0.0187788 + 3 * 0.0098208
    assert found["max_mean_risk", "c"][0] == pytest.approx(expected / 6, abs=1e-7)
    assert found["max_mean_risk", "c"][3].startswith("expected re-identifications: 0.15: ")
    [(highest,)] = con.execute("SELECT max(risk) FROM sdc_individual_risk('t', 'c', weight := 'w')").fetchall()
    assert checked(con, f"'t', 'c', weight := 'w', max_risk := {highest!r}")["max_risk", "c"][2]


def test_a_count_below_the_limit_is_rare_and_the_limit_is_not(con: duckdb.DuckDBPyConnection) -> None:
    people(con, "('a', 3), ('b', 4)", 1)
    assert checked(con, "'t', 'c', k := 3") == {("k", "c"): (3, 3, True, None)}
    people(con, "('a', 2), ('b', 4)", 1)
    [(value, _, passed, message)] = checked(con, "'t', 'c', k := 3").values()
    assert (value, passed) == (2, False)
    assert message == (
        "2 records are in combinations of fewer than 3: recode c first (sdc_recode), then suppress single values of what "
        "is left (sdc_local_suppress, k := 3), or let sdc_anonymize choose"
    )


def test_a_place_below_ten_thousand_inhabitants_is_too_small(con: duckdb.DuckDBPyConnection) -> None:
    people(con, "('a', 20), ('b', 19)", 500)
    given = "geography := ['c'], min_population := 10000"
    found = checked(con, f"'t', weight := 'w', {given}")["min_population", "c"]
    assert found[:3] == (9500, 10000, False)
    assert found[3] == "1 category is too small: put them together (sdc_recode, groups), or give a wider area"
    # Records alone are no population, and say so; a table of it is.
    assert checked(con, f"'t', {given}")["min_population", "c"][0] == 19
    assert "records are counted" in checked(con, f"'t', {given}")["min_population", "c"][3]
    con.execute(
        "CREATE TABLE places AS FROM (VALUES ('a', 6000), ('a', 4000), ('b', 10000), ('x', 5)) p(C, population)"
    )
    assert checked(con, f"'t', population := 'places', {given}")["min_population", "c"] == (10000, 10000, True, None)
    # A place that the table does not know has nobody.
    found = checked(con, f"'t', population := '(FROM places WHERE c <> ''b'')', {given}")
    assert found["min_population", "c"][:3] == (0, 10000, False)


def test_both_indicators_fall_at_each_step_of_recoding(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE force AS SELECT i AS id, 'p' || i % 3 AS province, i // 3 % 2 AS sex, 16 + i * i % 59 AS age,
            CASE WHEN i % 41 = 0 THEN 'n' || i % 13 ELSE 'es' END AS nationality, 165.0 AS w FROM range(4000) r(i)""")
    bands = "'age': {'width': 5}"
    files = (
        "force",
        f"(FROM sdc_recode('force', rules := {{{bands}}}))",
        f"(FROM sdc_recode('force', rules := {{{bands}, 'nationality': {{'groups': {{'es': ['es']}}, 'other': 'foreign'}}}}))",
    )
    keys = "['province', 'sex', 'age', 'nationality']"
    found = []
    for file in files:
        quoted = "'" + file.replace("'", "''") + "'"
        rows = checked(con, f"{quoted}, {keys}, weight := 'w', max_risk := 0.02, max_mean_risk := 0.0007, k := 3")
        [(unsafe,)] = con.execute(
            f"SELECT unsafe FROM sdc_global_risk({quoted}, {keys}, weight := 'w', threshold := 0.02)"
        ).fetchall()
        found.append((unsafe, rows["max_mean_risk", "province x sex x age x nationality"][0]))
    assert found == sorted(found, reverse=True)
    assert len({unsafe for unsafe, _ in found}) == len({ratio for _, ratio in found}) == 3


# --- Each rule --------------------------------------------------------------------------------------------------------


def test_direct_identifiers_by_name_and_by_what_they_are_like(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""CREATE TABLE t AS SELECT i AS "PERSON_id", 'n' || i AS "the name", i % 2 AS sex, i * 1.5 AS income,
        1.0 + i / 9 AS w, CASE WHEN i = 3 THEN 'a rare thing' END AS note FROM range(8) r(i)""")
    given = "identifiers := ['name', 'Person_ID'], max_share_own := 0.5, measures := ['income'], weight := 'w'"
    found = checked(con, f"'t', {given}")
    assert found["identifiers", "PERSON_id"] == (
        1, 0, False, 'leave them out: (SELECT * EXCLUDE ("PERSON_id") FROM ..)',
    )  # fmt: skip
    assert found["max_share_own", "PERSON_id"][:3] == (1, 0.5, False)
    assert found["max_share_own", "PERSON_id"][3].startswith("8 records have a value that no other has")
    # A column of one value tells whose it is, too; measures and weights are not looked at.
    found = checked(con, f"'(SELECT * EXCLUDE (person_ID, \"the name\") FROM t)', {given}")
    assert found["identifiers", None] == (0, 0, True, None)
    assert found["max_share_own", "note"][:3] == (1, 0.5, False)
    assert found["max_share_own", "note"][3].startswith("1 record has a value")
    found = checked(con, f"'(SELECT sex, income, w FROM t)', {given}")
    assert found["max_share_own", "sex"] == (0, 0.5, True, None)
    assert checked(con, f"'(SELECT income, w FROM t)', {given}")["max_share_own", None][:3] == (0, 0.5, True)


def test_the_ends_of_a_measure(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT unnest([1, 1, 1, 5, 9, 9, NULL, NULL, NULL]) AS x, 7 AS y")
    found = checked(con, "'t', measures := ['x', 'y'], min_at_ends := 3")
    assert found["min_at_ends", "x"][:3] == (2, 3, False)
    assert found["min_at_ends", "y"] == (9, 3, True, None)
    coded = "(FROM sdc_recode(''t'', rules := {''x'': {''top'': 5}}))"
    assert checked(con, f"'{coded}', measures := ['x'], min_at_ends := 3")["min_at_ends", "x"][:3] == (3, 3, True)


def test_the_share_of_the_population(con: duckdb.DuckDBPyConnection) -> None:
    people(con, "('a', 1), ('b', 3)", 25)
    assert checked(con, "'t', weight := 'w', max_fraction := 0.04")["max_fraction", None] == (0.04, 0.04, True, None)
    assert checked(con, "'t', population := '(SELECT 80 AS population)', max_fraction := 0.04")["max_fraction", None][
        :3
    ] == (0.05, 0.04, False)
    found = checked(con, "'t', max_fraction := 0.9")["max_fraction", None]
    assert found[0] == 1
    assert found[3].startswith("without weight and population the file counts as everybody")


def test_totals_and_distributions_after_perturbation(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE b AS SELECT i AS id, i % 10 + 1 AS x, 1 + i % 2 AS w FROM range(100) r(i)")
    con.execute("CREATE TABLE a AS SELECT id, CASE WHEN x = 10 THEN 21 ELSE x END AS x, w FROM b")
    given = "measures := ['x'], original := 'b', max_total_change := 0.1, max_ks := 0.1"
    found = checked(con, f"'a', {given}")
    assert found["max_total_change", "x"][:3] == (pytest.approx(110 / 550), 0.1, False)
    assert found["max_ks", "x"] == (pytest.approx(0.1), 0.1, True, None)
    # Odd x have weight 1, even ones 2: 50 * 1 + 50 * 2 = 150, of which those of 10 are 20.
    found = checked(con, f"'a', weight := 'w', {given}")
    assert found["max_total_change", "x"][0] == pytest.approx(20 * 11 / (250 + 2 * 300))
    assert found["max_ks", "x"][:3] == (pytest.approx(20 / 150), 0.1, False)
    none = "'(SELECT id, 0 AS x FROM b)'"
    given = f"measures := ['x'], original := {none}, max_total_change := 0.5"
    assert checked(con, f"{none}, {given}")["max_total_change", "x"][:3] == (0, 0.5, True)
    assert checked(con, f"'a', {given}")["max_total_change", "x"][:3] == (float("inf"), 0.5, False)
    assert not checked(con, f"'(SELECT ''nan''::DOUBLE AS x)', {given}")["max_total_change", "x"][2]


def test_some_keys_at_a_time_and_several_lists(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT i % 2 AS a, i // 2 % 2 AS b, i // 4 % 2 AS c FROM range(8) r(i)")
    assert checked(con, "'t', ['a', 'b', 'c'], k := 2")["k", "a x b x c"][:3] == (1, 2, False)
    for size, fewest in ((1, 4), (2, 2), (3, 1), (9, 1)):
        found = checked(con, f"'t', ['a', 'b', 'c'], k := 3, max_size := {size}")["k", "a x b x c"]
        assert found[:3] == (fewest, 3, fewest >= 3)
    # By hand: in pairs each combination has two records, all of which are rare.
    assert checked(con, "'t', ['a', 'b', 'c'], k := 3, max_size := 2")["k", "a x b x c"][3].startswith("8 records are")
    found = checked(con, "'t', [['a', 'B'], ['c']], k := 3, max_share_unique := 0")
    assert {key: rest[0] for key, rest in found.items()} == {
        ("k", "a x b"): 2, ("k", "c"): 4, ("max_share_unique", "a x b"): 0, ("max_share_unique", "c"): 0,
    }  # fmt: skip


def test_what_cannot_be_checked_has_not_passed(con: duckdb.DuckDBPyConnection) -> None:
    people(con, "('a', 30)", 100)
    found = checked(con, f"'t', {RULEBOOK}")
    assert {rule: message for (rule, _), (value, _, passed, message) in found.items() if value is None} == {
        "k": "not checked: keys must name the columns by which a person could be found",
        "max_risk": "not checked: keys must name the columns by which a person could be found",
        "max_mean_risk": "not checked: keys must name the columns by which a person could be found",
        "min_population": "not checked: geography must name the columns of places, [] if there are none",
        "min_at_ends": "not checked: measures must name the columns of numbers, [] if there are none",
        "max_total_change": "not checked: measures must name the columns of numbers, [] if there are none",
        "max_ks": "not checked: measures must name the columns of numbers, [] if there are none",
    }
    found = checked(con, f"'t', 'c', measures := ['w'], {RULEBOOK}")
    assert found["max_ks", None][3] == "not checked: original must name the records that these were made from"
    # Who says that there are none has nothing to check.
    found = checked(con, f"'t', 'c', geography := [], measures := [], weight := 'w', {RULEBOOK}")
    assert [rule for rule, _ in found] == [
        "k",
        "max_risk",
        "max_mean_risk",
        "identifiers",
        "max_share_own",
        "max_fraction",
    ]
    assert all(passed for _, _, passed, _ in found.values())


def test_a_file_without_records_passes_no_rule_about_records(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t (c VARCHAR, x DOUBLE, w DOUBLE)")
    found = checked(con, f"'t', 'c', geography := ['c'], measures := ['x'], weight := 'w', original := 't', {RULEBOOK}")
    assert {rule for (rule, _), (_, _, passed, _) in found.items() if passed} == {"identifiers", "max_total_change"}


# --- Rule sets --------------------------------------------------------------------------------------------------------


def test_one_set_has_rules_for_tables_and_for_records(con: duckdb.DuckDBPyConnection) -> None:
    people(con, "('a', 2), ('b', 9)", 1)
    con.execute(f"CALL sdc_rules('house', max_count := 3, weight := 'w', min_contributors := 3, {RULEBOOK})")
    con.execute("CALL sdc_rules('tables', max_count := 3)")
    con.execute("CALL sdc_rules('both', max_count := 3, k := 9, max_risk := 0.1)")
    [(written,)] = con.execute("SELECT arguments FROM sdc_rule_sets() WHERE name = 'house'").fetchall()
    assert written.endswith(RULEBOOK)
    assert checked(con, "'t', 'c', rules := 'HOUSE', geography := [], measures := []") == checked(
        con, f"'t', 'c', geography := [], measures := [], {RULEBOOK}"
    )
    # The call goes before the set, and a default says nothing.
    found = checked(con, "'t', 'c', rules := 'house', k := 2, identifiers := []")
    assert found["k", "c"][:3] == (2, 2, True)
    assert found["identifiers", None][2]
    table = "SELECT c, count(*) AS n FROM t GROUP BY CUBE (c)"
    assert (
        con.execute(f"FROM sdc_suppress('{table}', rules := 'both')").fetchall()
        == con.execute(f"FROM sdc_suppress('{table}', max_count := 3)").fetchall()
    )
    con.execute("CALL sdc_rules('records', k := 3)")
    assert "no rule says which cells are primary" in refused(con, f"FROM sdc_suppress('{table}', rules := 'records')")
    assert "no rule for records: give k := 3" in refused(con, "FROM sdc_check_records('t', 'c', rules := 'tables')")


def test_no_rule_of_another_version_is_left_out_without_a_word(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT 1 AS c")
    con.execute("CALL sdc_rules('house', k := 3, max_risk := 0.02)")
    con.execute("UPDATE sdc.rule_sets SET arguments = replace(arguments, 'max_risk', 'most_risk')")
    told = refused(con, "FROM sdc_check_records('t', 'c', rules := 'house')")
    assert "the rule set 'house' has an argument 'most_risk', which is none: store it anew" in told


LIMITS = {
    "k := 1": "argument 'k' must be a whole number of at least 2",
    "k := 2.5": "argument 'k' must be a whole number, not 2.5",
    "max_size := 2": "argument 'max_size' goes with 'k'",
    "k := 3, max_size := 0": "argument 'max_size' must be a whole number of at least 1",
    "max_share_unique := 5": "argument 'max_share_unique' must lie between 0 and 1; 5 per cent is 0.05",
    "max_risk := 2": "argument 'max_risk' must lie between 0 and 1; 2 per cent is 0.02",
    "max_mean_risk := -0.1": "argument 'max_mean_risk' must lie between 0 and 1",
    "min_population := 0": "argument 'min_population' must be a number above 0",
    "min_population := 'nan'::DOUBLE": "argument 'min_population' must be a number above 0",
    "identifiers := ['name', NULL]": "argument 'identifiers' must hold names of columns",
    "identifiers := ['']": "argument 'identifiers' must hold names of columns",
    "max_share_own := 50": "argument 'max_share_own' must lie between 0 and 1; 50 per cent is 0.5",
    "min_at_ends := 1": "argument 'min_at_ends' must be a whole number of at least 2",
    "max_fraction := 0": "argument 'max_fraction' must be above 0 and at most 1",
    "max_total_change := 'infinity'::DOUBLE": "argument 'max_total_change' must lie between 0 and 1",
    "max_ks := 1.5": "argument 'max_ks' must lie between 0 and 1",
}


@pytest.mark.parametrize("limit", LIMITS)
def test_thresholds_are_looked_at_where_they_are_given(con: duckdb.DuckDBPyConnection, limit: str) -> None:
    assert LIMITS[limit] in refused(con, f"CALL sdc_rules('house', {limit})")
    assert con.execute("FROM sdc_rule_sets()").fetchall() == []
    con.execute("CREATE TABLE t AS SELECT 1 AS c")
    assert LIMITS[limit] in refused(con, f"FROM sdc_check_records('t', 'c', {limit})")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'t', 'c'", "no rule for records: give k := 3"),
        ("NULL, 'c', k := 3", "argument 'source' must name a table or view"),
        ("'t', 'b', k := 3", "unknown column 'b' in 't'"),
        ("'t', ['c', 'c'], k := 3", "names column 'c' twice"),
        ("'t', 3, k := 3", "argument 'keys' must name columns"),
        ("'t', [[]]::VARCHAR[][], k := 3", "argument 'keys' must name columns"),
        ("'t', [NULL], k := 3", "argument 'keys' holds a NULL"),
        ("'t', {'c': 1}, k := 3", "argument 'keys' must name columns"),
        ("'(SELECT 1 AS records)', 'records', k := 3", "a column called 'records' is also one of the result"),
        ("'t', 'c', k := 3, nulls := 'any'", "argument 'nulls' must be 'category', 'drop' or 'match'"),
        ("'t', ['c', 'w'], k := 3, max_size := 1, nulls := 'match'", "goes with nulls := 'category' or 'drop'"),
        ("'t', 'c', k := 3, weight := 'c'", "argument 'weight' must name a column of numbers"),
        ("'(SELECT c, -1 AS w FROM t)', 'c', max_risk := 0.1, weight := 'w'", "a weight is NULL, not positive or infinite"),
        ("'t', measures := ['c'], min_at_ends := 3", "argument 'measures' must name a column of numbers"),
        ("'t', geography := ['x'], min_population := 3", "unknown column 'x' in 't'"),
        ("'t', geography := ['c'], min_population := 3, population := 't'", "unknown column 'population' in 't'"),
        (
            "'t', geography := ['c'], min_population := 3, population := '(SELECT 1 AS c, 5 AS population)'",
            "column 'c' is VARCHAR in 'source' and INTEGER in 'population'",
        ),
        ("'t', measures := ['w'], max_ks := 0.1, original := '(SELECT c FROM t)'", "unknown column 'w' in the query"),
        ("'t', measures := [], max_ks := 0.1", "nothing is left to check"),
        ("'(SELECT 1 AS _sdc_place)', '_sdc_place', k := 3", "a column may not begin with _sdc_"),
        ("'t', 'c', rules := 'house'", "unknown rule set 'house'; there are none"),
    ],
)  # fmt: skip
def test_bad_input(con: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    people(con, "('a', 3)", 2)
    assert message in refused(con, f"FROM sdc_check_records({arguments})")


def test_names_with_quotes_and_columns_of_all_types(con: duckdb.DuckDBPyConnection) -> None:
    name = "a 'key' \"x\" Y"
    quoted, text = '"a \'key\' ""x"" Y"', "'a ''key'' \"x\" y'"
    con.execute(f"""CREATE TABLE "it's" AS SELECT 'v' || i % 2 AS {quoted}, i % 2 = 0 AS b,
        DATE '2020-01-01' + (i % 2)::INTEGER AS d, (i % 2)::DECIMAL(9, 2) AS m, [i % 2] AS l,
        ('x' || i % 2)::ENUM ('x0', 'x1') AS e FROM range(12) r(i)""")
    found = checked(
        con,
        f"""'it''s', [[{text}, 'b'], ['d', 'l', 'e']], geography := [{text}, 'e'], measures := ['m'], k := 3,
        min_population := 6, max_share_own := 0, min_at_ends := 6, max_ks := 0, original := '(FROM "it''s")'""",
    )
    assert [about for _, about in found] == [f"{name} x b", "d x l x e", name, "e", name, "m", "m"]
    assert all(passed for _, _, passed, _ in found.values())


# --- From a risky file to a released one ------------------------------------------------------------------------------


def test_a_file_is_masked_until_it_keeps_the_rules(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute("""
        CREATE TABLE persons AS SELECT i AS person_id, 'town ' || i * i % 23 AS town, 18 + i * i * 7 % 71 AS age, i % 2 AS sex,
            1000 + i * i * 37 % 4001 AS income, 165.0 AS w FROM range(600) r(i)""")
    con.execute(f"CALL sdc_rules('house', {RULEBOOK})")
    asked = """['town', 'age', 'sex'], rules := 'house', geography := ['town'], measures := ['income'], weight := 'w',
        original := 'persons'"""
    before = checked(con, f"'persons', {asked}")
    failed = {rule for (rule, _), (_, _, passed, _) in before.items() if not passed}
    assert failed == {"k", "max_risk", "max_mean_risk", "min_population", "identifiers", "max_share_own", "min_at_ends"}
    con.execute("""
        CREATE TABLE coarse AS FROM sdc_recode('persons', rules := {
            'town': {'groups': {'south': ['town 0', 'town 1', 'town 2', 'town 3', 'town 4', 'town 6']}, 'other': 'north'}, 'age': {'width': 20, 'as': 'low'}});
        CREATE TABLE shared AS SELECT * EXCLUDE (group_id, group_size)
            FROM sdc_microaggregate('coarse', 'income', k := 5, method := 'optimal', id := 'person_id');
        CREATE TABLE released AS SELECT * EXCLUDE (person_id, suppressed)
            FROM sdc_local_suppress('shared', ['town', 'age', 'sex'], k := 3, id := 'person_id');""")
    after = checked(con, f"'released', {asked}, nulls := 'match'")
    assert {key: rest[0] for key, rest in after.items() if not rest[2]} == {}
    assert next(iter(after)) == ("k", "town x age x sex")
    # The report of the release has the same rows, as far as it knows enough.
    given = "'persons', 'released', keys := ['town', 'age', 'sex'], columns := ['town', 'age', 'sex', 'income'], rules := 'house'"
    rows = con.execute(
        f"SELECT measure, about, value, baseline, warning FROM sdc_assess({given}) WHERE section = 'rules'"
    ).fetchall()
    told = {(measure, about): (value, baseline, warning) for measure, about, value, baseline, warning in rows}
    assert told["max_ks", "income"] == (after["max_ks", "income"][0], 0.1, None)
    assert told["min_population", None][2].startswith("not checked: geography must name")
    page = assess(con, "persons", "released", tmp_path / "page.html", keys=["town", "age", "sex"], rules="house")
    assert "The rules of the house" in page.read_text()
    assert "unknown rule set 'hose'; did you mean 'house'?" in refused(con, f"FROM sdc_assess({given[:-7]}'hose')")


def test_the_same_on_any_number_of_threads_and_however_records_lie() -> None:
    answers = []
    for threads, order in ((1, "i"), (2, "hash(i)")):
        with sdcduck.connect() as con:
            con.execute(f"SET threads = {threads}")
            con.execute(f"""CREATE TABLE t AS SELECT i % 7 AS a, i * i % 11 AS b, sin(i) * 1e6 AS x, 1 + i % 3 / 7 AS w, i
                FROM range(60000) r(i) ORDER BY {order}""")
            con.execute(f"CREATE TABLE o AS SELECT x * 1.001 AS x, w, i FROM t ORDER BY {order}")
            answers.append(
                con.execute(f"""FROM sdc_check_records('(SELECT a, b, x, w FROM t)', ['a', 'b'], geography := ['a'], measures := ['x'], weight := 'w',
                    original := 'o', {RULEBOOK})""").fetchall()
            )
    assert answers[0] == answers[1]
