"""Attacks on synthetic data through SQL: what a copy, a half copy and fresh records come to, and what bad input is told."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from products import each_once

import sdcduck

PEOPLE = 1500
ATTACKS = {
    "univariate": "sdc_attack_singling_out({tables}, seed := {seed})",
    "multivariate": "sdc_attack_singling_out({tables}, mode := 'multivariate', seed := {seed})",
    "linkability": "sdc_attack_linkability({tables}, keys := [['age', 'area', 'born'], ['income', 'weight']], seed := {seed})",
    "number": "sdc_attack_inference({tables}, sensitive := 'income', seed := {seed})",
    "category": "sdc_attack_inference({tables}, sensitive := 'area', keys := ['age', 'income', 'weight'], seed := {seed})",
    "date": "sdc_attack_inference({tables}, sensitive := 'born', seed := {seed})",
}
FIGURES = "attacks, attack_rate, control_rate, baseline_rate, modal_rate, risk, risk_low, risk_high, warning"


def population(seed: int, people: int) -> pa.Table:
    """People with all kinds of columns, and some that are not known."""
    generator = np.random.default_rng(seed)
    age = generator.integers(18, 95, people)
    income = np.exp(generator.normal(7 + age / 80, 0.6, people)).round(2)
    return pa.table(
        {
            "age": age,
            "income": pa.array(income, mask=generator.random(people) < 0.03),
            "area": pa.array([f"area '{k}'" for k in generator.geometric(0.3, people)]),
            "weight": generator.normal(70, 12, people).round(1),
            "born": pa.array(generator.integers(0, 9000, people).astype("datetime64[D]")),
            "works": age < generator.integers(55, 70, people),
        }
    )


def store(con: duckdb.DuckDBPyConnection, **tables: pa.Table) -> None:
    for name, table in tables.items():
        con.register("given", table)
        con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM given").fetchall()
        con.unregister("given")


@pytest.fixture(scope="module")
def people() -> Any:
    with sdcduck.connect() as con:
        store(con, original=population(1, PEOPLE), control=population(2, PEOPLE), fresh=population(3, PEOPLE))
        con.execute("CREATE TABLE half AS FROM original WHERE rowid % 2 = 0 UNION ALL FROM fresh WHERE rowid % 2 = 0")
        yield con


def figures(con: duckdb.DuckDBPyConnection, attack: str, tables: str, columns: str = FIGURES, seed: int = 1) -> Any:
    (row,) = con.execute(f"SELECT {columns} FROM {ATTACKS[attack].format(tables=tables, seed=seed)}").fetchall()
    return row


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.newest
def test_a_copy_gives_everything_away_half_a_copy_half_and_fresh_records_nothing(people: Any, attack: str) -> None:
    risks = {}
    for synthetic in ("original", "half", "fresh"):
        row = figures(people, attack, f"'original', '{synthetic}', 'control'")
        attacks_made, rate, control, baseline, modal, risk, low, high, warning = row
        assert 0 < attacks_made <= 2000
        assert all(0 <= share <= 1 for share in (rate, control, baseline, modal) if share is not None)
        assert (modal is None) == ("variate" in attack)
        assert low <= risk <= high <= 1
        assert risk == pytest.approx((rate - control) / (1 - control))
        risks[synthetic] = (low, risk, high)
        if synthetic != "fresh":
            assert warning is None
    assert risks["original"][0] > 0.9
    assert 0.2 < risks["half"][0] < 0.5 < 0.6 < risks["original"][0]
    assert risks["half"][2] < 0.7
    assert risks["fresh"][0] <= 0 <= risks["fresh"][2] < 0.2


def test_where_there_is_nothing_to_learn_fresh_records_are_told_to_be_no_better_than_guessing(people: Any) -> None:
    *_, warning = figures(people, "date", "'original', 'fresh', 'control'")
    assert "no better than" in warning


@pytest.mark.parametrize(("attack", "controls"), each_once(list(ATTACKS), [300, 4000]))
@pytest.mark.newest
def test_the_size_of_the_control_is_no_leak(attack: str, controls: int) -> None:
    met = 0
    with sdcduck.connect() as con:
        for seed in range(10, 14):
            original, control, fresh = (population(10 * seed + k, n) for k, n in enumerate((1000, controls, 1000)))
            store(con, original=original, control=control, fresh=fresh)
            *_, low, high, _ = figures(con, attack, "'original', 'fresh', 'control'")
            met += low <= 0 <= high
            *_, low, high, _ = figures(con, attack, "'original', 'original', 'control'")
            assert low > 0.75
    assert met >= 3


@pytest.mark.parametrize("attack", ATTACKS)
def test_neither_the_order_of_records_nor_threads_decide(people: Any, attack: str) -> None:
    tables = "'original', 'half', 'control'"
    shuffled = ", ".join(f"'(FROM {name} ORDER BY hash(rowid))'" for name in ("original", "half", "control"))
    wanted = figures(people, attack, tables)
    assert figures(people, attack, shuffled) == wanted
    people.execute("SET threads = 1")
    assert figures(people, attack, tables) == wanted
    people.execute("RESET threads")


def test_the_seed_decides_and_none_is_zero(people: Any) -> None:
    call = "SELECT attack_rate FROM sdc_attack_inference('half', 'original', sensitive := 'area', keys := ['age', 'works'], attacks := 400"
    found = [people.execute(f"{call}, seed := {seed})").fetchall() for seed in ("NULL", "0", "-1", "1", "2", "3")]
    assert found[0] == found[1] == people.execute(call + ")").fetchall()
    assert len({str(rows) for rows in found}) > 2


# --- tables that can be counted by hand ------------------------------------------------------------------------------


def test_singling_out_counted_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    # The synthetic record says: v = 1, v <= 1, v = 9, v >= 9, c = 'z'. (v = 5 and c = 'x' are met by two.)
    con.execute("CREATE TABLE s AS FROM (VALUES (1, 'x'), (5, 'x'), (5, 'z'), (9, NULL), (5, NULL)) s(v, c)")
    con.execute("CREATE TABLE o AS FROM (VALUES (1, 'z'), (5, 'z'), (9, 'x'), (9, 'x')) o(v, c)")
    con.execute("CREATE TABLE h AS FROM (VALUES (0, 'x'), (1, 'x'), (5, 'x'), (5, 'z')) h(v, c)")
    call = "SELECT attacks, attack_rate, control_rate, modal_rate, risk FROM sdc_attack_singling_out('o', 's', 'h')"
    # Of o: v = 1 and v <= 1 have one, v >= 9 and v = 9 two, z two. Of h: v = 1 and z have one, v <= 1 two.
    assert con.execute(call).fetchall() == [(5, 0.4, pytest.approx(0.4), None, pytest.approx(0))]


def test_linkability_counted_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE s AS SELECT 10 * range AS a, 10 * range AS b FROM range(5)")
    con.execute("CREATE TABLE o AS FROM (VALUES (1, 2), (11, 9), (2, 38), (29, 11)) o(a, b)")
    con.execute("CREATE TABLE h AS FROM (VALUES (1, 31), (40, 40)) h(a, b)")
    columns = "attacks, attack_rate, control_attacks, control_rate, baseline_rate, modal_rate, risk"
    call = f"SELECT {columns} FROM sdc_attack_linkability('o', 's', 'h', keys := [['a'], ['b']])"
    # All values of b are equally frequent: the least, 0, is taken for the mode, and record 0 is near (1, 2) and (2, 38).
    (row,) = con.execute(call).fetchall()
    assert row == pytest.approx((4, 0.5, 2, 0.5, 0.2, 0.5, 0))


def test_inference_counted_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE s AS FROM (VALUES (1, 100.0, 'x'), (2, 200.0, 'y'), (3, 210.0, 'y'), (4, NULL, NULL)) s(k, n, c)"
    )
    con.execute(
        "CREATE TABLE o AS FROM (VALUES (1, 104.0, 'y'), (2, 100.0, 'y'), (3, 219.0, 'x'), (4, NULL, NULL)) o(k, n, c)"
    )
    con.execute("CREATE TABLE h AS FROM (VALUES (1, 104.0, 'x'), (3, 0.0, 'x')) h(k, n, c)")
    columns = "tolerance, attack_rate, control_rate, baseline_rate, modal_rate, rate_not_modal, risk"
    call = f"SELECT {columns} FROM sdc_attack_inference('o', 's', 'h', keys := ['k'], sensitive := "
    # 100 for 104, 210 for 219 and NULL are right. Of s, 100, 100, 210 and NULL are right for the four, each once. The modal
    # guess lies between 199.5 and 210 and is right for nobody of o, but 208.05 to 210 would be right for 219: it is the
    # least of the best, 199.5.
    assert con.execute(call + "'n')").fetchall() == [(0.05, 0.75, 0.5, 0.25, 0.0, 0.75, pytest.approx(0.5))]
    # y for y, NULL for NULL. By chance 2, 2, 1 and 1 of 4 are right; y is right for two, and the others are 0 of x and NULL.
    assert con.execute(call + "'c')").fetchall() == [(None, 0.5, 0.5, 0.375, 0.5, 0.5, 0.0)]
    # No tolerance: only NULL is right.
    assert con.execute(call + "'n', tolerance := 0)").fetchall()[0][1] == 0.25


# --- warnings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", ATTACKS)
def test_without_a_control_no_risk_is_claimed(people: Any, attack: str) -> None:
    columns = "control_attacks, control_rate, control_low, risk, risk_low, risk_high, warning"
    *empty, warning = figures(people, attack, "'original', 'half'", columns)
    assert empty == [None] * 6
    assert warning.startswith("no holdout: ")


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_control_that_holds_originals_is_found_out(people: Any, attack: str) -> None:
    overlapping = "'(FROM control WHERE rowid < 1200 UNION ALL FROM original WHERE rowid < 300)'"
    warning = figures(people, attack, f"'original', 'half', {overlapping}", "warning")[0]
    assert "20.0 % of 'holdout' equal an original record" in warning


def test_small_tables_are_pointed_out(people: Any) -> None:
    few = "'(FROM original LIMIT 1)', '(FROM half LIMIT 2)', '(FROM control LIMIT 1)'"
    warning = figures(people, "number", few, "warning")[0]
    assert "only 1 attack: chance decides" in warning
    assert "'original' has only 1 record; 'synthetic' has only 2 records; 'holdout' has only 1 record" in warning


def test_where_nothing_singles_out_there_are_no_figures(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE same AS SELECT 1 AS a, 'x' AS b, NULL::DOUBLE AS c FROM range(200)")
    for mode in ("univariate", "multivariate"):
        call = f"sdc_attack_singling_out('same', 'same', 'same', mode := '{mode}')"
        ((count, rate, risk, warning),) = con.execute(
            f"SELECT attacks, attack_rate, risk, warning FROM {call}"
        ).fetchall()
        assert (count, rate, risk) == (0, None, None)
        assert warning.startswith("no predicate that can be made of these columns singles out a synthetic record")


def test_where_the_control_is_always_right_there_is_no_risk_to_tell(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE same AS SELECT 1 AS a, true AS b FROM range(200)")
    call = "SELECT attack_rate, control_rate, risk, warning FROM sdc_attack_inference('same', 'same', 'same', sensitive := 'b')"
    ((rate, control, risk, warning),) = con.execute(call).fetchall()
    assert (rate, control, risk) == (1, 1, None)
    assert "always succeeds on the holdout" in warning


# --- types and bad input ---------------------------------------------------------------------------------------------

KINDS = {
    "d": "DATE '2000-01-01' + range::INTEGER", "t": "TIMESTAMP '2000-01-01' + to_hours(range)", "b": "range % 2 = 0",
    "m": "(range / 7)::DECIMAL(9, 2)", "s": "md5(range::VARCHAR)", "u": "md5(range::VARCHAR)::UUID",
    "e": "(['lo', 'hi'][1 + range % 2])::ENUM('lo', 'hi')", "f": "CASE WHEN range % 5 = 0 THEN 'nan'::DOUBLE ELSE range END",
    "h": "range::HUGEINT", "n": "NULL::INTEGER", "y": "TIME '00:00:00' + to_minutes(range)", "q": "'it''s; DROP' || range",
}  # fmt: skip


def test_columns_of_all_types_are_attacked(con: duckdb.DuckDBPyConnection) -> None:
    columns = ", ".join(f"{sql} AS {name}" for name, sql in KINDS.items())
    con.execute(
        f'CREATE TABLE everything AS SELECT {columns} FROM range(300); ALTER TABLE everything RENAME q TO "a \'""b"'
    )
    table = "'everything', 'everything', '(FROM everything LIMIT 150)'"
    for call in (
        f"sdc_attack_singling_out({table}, attacks := 5000)",
        f"sdc_attack_singling_out({table}, mode := 'multivariate', terms := 50)",
        f"""sdc_attack_linkability({table}, keys := [['d', 'm', 'e', 'a ''"b'], ['s', 't', 'f', 'n']])""",
        *(f"sdc_attack_inference({table}, sensitive := '{name}')" for name in KINDS if name != "q"),
    ):
        assert con.execute(f"SELECT attack_rate FROM {call}").fetchall() == [(1,)], call
    away = '(SELECT * REPLACE ("a \'""b" || \'!\' AS "a \'""b") FROM everything)'.replace("'", "''")
    call = f"""sdc_dcr_subsets('everything', 'everything', '{away}', columns := ['a ''"b', 'd'], size := 1)"""
    found = con.execute(f"SELECT columns, share FROM {call} ORDER BY ALL").fetchall()
    assert found == [(["a '\"b"], 1), (["a '\"b", "d"], 1), (["d"], 0.5)]


BAD = {
    "sdc_attack_singling_out('original', 'nobody')": "unknown table 'nobody'",
    "sdc_attack_singling_out('original', NULL)": "argument 'synthetic' must name a table",
    "sdc_attack_singling_out('original', '(SELECT 1 AS other)')": "original and synthetic have no column in common",
    "sdc_attack_singling_out('original', '(SELECT ''x'' AS age)')": "column 'age' is BIGINT in 'original' and VARCHAR in 'synthetic'",
    "sdc_attack_singling_out('original', '(SELECT [1] AS age)')": "column 'age' of 'synthetic' (INTEGER[]) holds neither numbers nor categories",
    "sdc_attack_singling_out('original', 'fresh', columns := ['agee'])": "unknown column 'agee' in 'original'; did you mean 'age'?",
    "sdc_attack_singling_out('original', 'fresh', categorical := ['agee'])": "unknown column 'agee' in those that are compared (argument 'categorical')",
    "sdc_attack_singling_out('original', 'fresh', mode := 'all')": "argument 'mode' must be 'univariate' or 'multivariate'",
    "sdc_attack_singling_out('original', 'fresh', mode := NULL)": "argument 'mode' must be",
    "sdc_attack_singling_out('original', 'fresh', terms := 0)": "argument 'terms' must be",
    "sdc_attack_singling_out('original', 'fresh', attacks := 0)": "argument 'attacks' must be a whole number from 1 to",
    "sdc_attack_singling_out('original', 'fresh', attacks := NULL)": "argument 'attacks' must be",
    "sdc_attack_singling_out('original', 'fresh', confidence := 1)": "argument 'confidence' must be above 0 and below 1",
    "sdc_attack_singling_out('original', 'fresh', seed := 'x')": "argument 'seed' must be a whole number of 64 bits",
    "sdc_attack_singling_out('original', '(FROM fresh LIMIT 0)')": "argument 'synthetic' has no records",
    "sdc_attack_singling_out('(FROM original LIMIT 0)', 'fresh')": "argument 'original' has no records",
    "sdc_attack_inference('original', 'fresh', '(FROM control LIMIT 0)', sensitive := 'age')": "argument 'holdout' has no records",
    "sdc_attack_singling_out('(SELECT ''inf''::DOUBLE AS weight)', 'fresh')": "column 'weight' of 'original' holds infinite values",
    "sdc_attack_linkability('original', 'fresh')": "argument 'keys' must hold two lists of columns",
    "sdc_attack_linkability('original', 'fresh', keys := ['age', 'area'])": "argument 'keys' must hold two lists of columns",
    "sdc_attack_linkability('original', 'fresh', keys := [['age'], []])": "argument 'keys' must hold two lists of columns",
    "sdc_attack_linkability('original', 'fresh', keys := [['age'], [NULL]])": "argument 'keys' must hold names of columns",
    "sdc_attack_linkability('original', 'fresh', keys := [['age'], ['area', 'AGE']])": "argument 'keys': column 'AGE' is in both lists",
    "sdc_attack_linkability('original', 'fresh', keys := [['age'], ['area', 'Area']])": "argument 'keys' names column 'area' twice",
    "sdc_attack_linkability('original', 'fresh', keys := [['age'], ['aria']])": "unknown column 'aria' in 'original'; did you mean 'area'?",
    "sdc_attack_linkability('original', 'fresh', keys := [['age'], ['area']], neighbours := 0)": "argument 'neighbours' must be",
    "sdc_attack_inference('original', 'fresh')": "argument 'sensitive' must name the column that is to be inferred",
    "sdc_attack_inference('original', 'fresh', sensitive := 'incom')": "unknown column 'incom' in 'original'; did you mean 'income'?",
    "sdc_attack_inference('original', 'fresh', sensitive := 'income', keys := ['INCOME'])": "column 'income' cannot be both sensitive and known",
    "sdc_attack_inference('original', 'fresh', sensitive := 'income', tolerance := 1)": "argument 'tolerance' must be at least 0 and below 1",
    "sdc_dcr_subsets('original', 'fresh', NULL)": "argument 'holdout' must name records",
    "sdc_dcr_subsets('original', 'fresh', 'control', subsets := 0)": "argument 'subsets' must be",
    "sdc_dcr_subsets('original', 'fresh', 'control', size := 7)": "argument 'size' must be a whole number from 1 to 6: so many of the columns",
    "sdc_dcr_subsets('original', 'fresh', 'control', records := 0)": "argument 'records' must be",
}


@pytest.mark.parametrize("call", BAD)
def test_bad_input_is_told_what_is_wrong(people: Any, call: str) -> None:
    with pytest.raises(duckdb.Error) as refused:
        people.execute(f"FROM {call}").fetchall()
    assert BAD[call] in str(refused.value)
    assert "internal error" not in str(refused.value)


# --- subsets ---------------------------------------------------------------------------------------------------------


def test_what_was_learned_by_heart_in_two_columns_shows_in_their_subset_alone(people: Any) -> None:
    # Income and weight are those of original records, put together with other columns of other people.
    people.execute(
        "CREATE OR REPLACE TABLE mixed AS SELECT f.age, o.income, f.area, o.weight, f.born, f.works FROM original o "
        "JOIN fresh f ON f.rowid = o.rowid"
    )
    columns = "kind, columns, share, expected, low, corrected_low, largest"
    call = f"SELECT {columns} FROM sdc_dcr_subsets('original', {{}}, 'control', subsets := 100, size := 2, seed := 1)"
    rows = people.execute(call.format("'mixed'")).fetchall()
    assert len(rows) == 1 + 15
    (largest,) = [row for row in rows if row[-1]]
    assert largest[1] == ["income", "weight"]
    assert largest[5] > 0.9 > 0.5 == largest[3]
    whole = rows[0]
    assert whole[0] == "all"
    assert whole[2] < largest[2]
    for row in rows:
        assert row[5] <= row[4] <= row[2]
    fresh = people.execute(call.format("'fresh'")).fetchall()
    assert all(row[5] <= 0.5 for row in fresh)
    copies = people.execute(call.format("'original'")).fetchall()
    assert all(row[2] > 0.9 for row in copies if "income" in row[1])
    assert copies[0][2] == 1


@pytest.mark.parametrize(("originals", "holdouts"), [(300, 1200), (1200, 300)])
@pytest.mark.newest
def test_many_ties_and_tables_of_different_sizes_are_no_leak(originals: int, holdouts: int) -> None:
    with sdcduck.connect() as con:
        false_alarms = 0
        for seed in range(10):
            store(
                con,
                o=population(3 * seed, originals),
                h=population(3 * seed + 1, holdouts),
                s=population(3 * seed + 2, 500),
            )
            call = "sdc_dcr_subsets('o', 's', 'h', columns := ['area', 'works', 'age'], size := 2)"
            rows = con.execute(
                f"SELECT corrected_low <= expected AND expected <= corrected_high FROM {call}"
            ).fetchall()
            assert len(rows) == 4
            false_alarms += rows != [(True,)] * 4
        assert false_alarms <= 2


def test_shares_counted_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS FROM (VALUES (0), (10), (10), (NULL)) o(v); CREATE TABLE h AS FROM (VALUES (10), (20)) h(v)"
    )
    con.execute("CREATE TABLE s AS FROM (VALUES (1), (11), (19), (NULL)) s(v)")
    # 1 is nearest to 0, of o; 11 to 10, of which two of three are; 19 to 20, of h; NULL to NULL, of o.
    call = "SELECT share, expected, largest FROM sdc_dcr_subsets('o', 's', 'h')"
    assert con.execute(call).fetchall() == [(pytest.approx((1 + 2 / 3 + 0 + 1) / 4), pytest.approx(4 / 6), True)]
