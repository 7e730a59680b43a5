"""What was called otherwise in 0.1 still works, and says what it is called now."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.functions.reference import SQLFunction, sql_functions

RENAMED = [one for one in sql_functions() if one.renamed or one.former]
CHANGELOG = (Path(__file__).parent.parent / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_guard_opens_under_its_old_name(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE regions AS SELECT range AS region FROM range(3)")
    con.execute("FROM sdc_declare_public('regions')").fetchall()
    with pytest.warns(DeprecationWarning, match=r"^sdcduck\.guard is called sdcduck\.open_guard now$") as said:
        guard = sdcduck.guard(con, role="anybody")  # type: ignore[operator]
    assert said[0].filename == __file__
    assert guard.sql("FROM regions").num_rows == 3


def test_a_publication_is_reported_under_its_old_name(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE people AS SELECT range % 3 AS region FROM range(30)")
    with pytest.warns(DeprecationWarning, match=r"^sdcduck\.report is called sdcduck\.publication_report now$"):
        page = sdcduck.report(  # type: ignore[operator]
            con, "SELECT region, count(*) AS n FROM people GROUP BY CUBE (region)", tmp_path / "page.html", max_count=2
        )
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_packages_are_not_hidden() -> None:
    assert sdcduck.guard.Refused is not None
    assert sdcduck.report.publication_report is sdcduck.publication_report


@pytest.mark.newest
@pytest.mark.parametrize("function", RENAMED, ids=lambda one: one.name)
def test_old_names_are_taken_and_listed(con: duckdb.DuckDBPyConnection, function: SQLFunction) -> None:
    """Beside the new ones; the changelog says what is called how now."""
    for name in (function.name, *function.former):
        [(taken,)] = con.execute(
            "SELECT parameters FROM duckdb_functions() WHERE function_name = ? AND NOT internal", [name]
        ).fetchall()
        assert name in function.former or set(taken) >= {name for pair in function.renamed for name in pair}
    for old, new in function.renamed:
        [row] = [line for line in CHANGELOG.splitlines() if line.startswith(f"| `{old}` | `{new}` |")]
        assert f"`{function.name}`" in row
    for old in function.former:
        assert f"| `{old}` | `{function.name}` |" in CHANGELOG


CALLS = {
    "sdc_tcap('o', 's', keys := 'a', targets := 'b')": "sdc_tcap('o', 's', keys := 'a', sensitive := 'b')",
    "sdc_tcap('o', 's', targets := ['b'], keys := ['a'])": "sdc_tcap('o', 's', ['a'], ['b'])",
    "sdc_modal_guess(released := 's', truth := 'o', unit := 'a', category := 'b', n := 'n')":
        "sdc_modal_guess('s', 'o', area := 'a', sensitive := 'b', freq := 'n')",
    "sdc_table_risk_utility('o', perturbed := 's', keys := ['a', 'b'], level := 'a', x := 'n', x_hat := 'n')":
        "sdc_table_risk_utility('o', 's', ['a', 'b'], \"by\" := 'a', \"value\" := 'n', protected_value := 'n')",
    "sdc_synth_table('o', \"by\" := ['a', 'b'], count := 'n', sigma := 0.5, seed := 3)":
        "sdc_synth_table('o', dimensions := ['a', 'b'], freq := 'n', sigma := 0.5, seed := 3)",
    "sdc_unsafe_combinations('o', keys := ['a', 'b'], dimensions := 1)":
        "sdc_unsafe_combinations('o', keys := ['a', 'b'], max_size := 1)",
    "sdc_attack_inference('o', 's', control := 'o', secret := 'b', aux := 'a', seed := 1)":
        "sdc_attack_inference('o', 's', holdout := 'o', sensitive := 'b', keys := 'a', seed := 1)",
}  # fmt: skip


@pytest.mark.parametrize("old", CALLS, ids=lambda call: call.split("(")[0])
def test_a_call_by_old_names_is_the_same_call(con: duckdb.DuckDBPyConnection, old: str) -> None:
    for name in ("o", "s"):
        con.execute(f"CREATE TABLE {name} AS SELECT i % 3 AS a, i % 4 AS b, 1 + i % 5 AS n FROM range(12) t(i)")
    with pytest.warns(DeprecationWarning, match=r"^sdc_\w+: argument '\w+' is called '\w+' now$") as said:
        by_old = con.execute(f"FROM {old}").fetchall()
    assert {one.filename for one in said} == {__file__}
    assert by_old == con.execute(f"FROM {CALLS[old]}").fetchall() != []


def test_functions_have_their_old_names(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE regions AS SELECT range AS region FROM range(3)")
    with pytest.warns(DeprecationWarning, match="^sdc_declare_public: sdc_public is called sdc_declare_public now$"):
        assert con.execute("FROM sdc_public('regions')").fetchall() == [("regions", 1)]
    con.execute("FROM sdc_check_submit('a', '(FROM sdc_check_regression(120, 4))', requested_by := 'ann')").fetchall()
    with pytest.warns(DeprecationWarning, match="sdc_check_drop is called sdc_drop_output now"):
        assert con.execute("FROM sdc_check_drop('a')").fetchall() == [("a",)]
    overlaps = (
        "sdc_ci_overlap(0, 1, 2, 3), sdc_ci_overlap_raw(0, 1, 2, 3), sdc_interval_overlap(0, 1, 2, 3, raw := true)"
    )
    assert con.execute(f"SELECT {overlaps}").fetchall() == [(0.0, -1.0, -1.0)]


@pytest.mark.filterwarnings("error")
def test_where_warnings_are_errors_the_error_says_the_name(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o AS SELECT 1 AS a, 2 AS b")
    with pytest.raises(duckdb.Error, match="sdc_tcap_records: argument 'target' is called 'sensitive' now"):
        con.execute("FROM sdc_tcap_records('o', 'o', keys := 'a', target := 'b')")


@pytest.mark.parametrize("given", ["'region'", "['region']", "['Region']"])
def test_a_single_name_is_a_list_of_one(con: duckdb.DuckDBPyConnection, given: str) -> None:
    con.execute("CREATE TABLE people AS SELECT range AS id, range % 3 AS region, 10 * range AS income FROM range(30)")
    assert con.execute(f"SELECT k FROM sdc_k_anonymity('people', keys := {given})").fetchall() == [(10,)]
    protected = (
        f"'people', unit := 'id', dimensions := {given}, measures := 'income', method := 'threshold', min_units := 3"
    )
    assert con.execute(f"SELECT method FROM sdc_protect({protected})").fetchall() == [("threshold",)]
    asked = "SELECT region, sum(income) AS income FROM people GROUP BY region ORDER BY region"
    assert sdcduck.open_guard(con).sql(asked).to_pylist()[0]["income"] == 1350


@pytest.mark.parametrize("given", ["['a', 'b, c']", "'[a]'", "'a, b'", "'\"a\"'", "''"])
def test_a_name_is_taken_to_the_letter(con: duckdb.DuckDBPyConnection, given: str) -> None:
    con.execute("CREATE TABLE o AS SELECT 1 AS a")
    with pytest.raises(duckdb.Error, match=r"unknown column|must name"):
        con.execute(f"FROM sdc_k_anonymity('o', keys := {given})").fetchall()


@pytest.mark.parametrize("given", ["{'a': 1}", "[['a']]", "MAP {'a': 1}"])
def test_what_is_no_list_of_names_is_refused(con: duckdb.DuckDBPyConnection, given: str) -> None:
    con.execute("CREATE TABLE o AS SELECT 1 AS a")
    with pytest.raises(duckdb.Error, match="sdc_k_anonymity: argument 'keys' must be a list of names"):
        con.execute(f"FROM sdc_k_anonymity('o', keys := {given})").fetchall()
