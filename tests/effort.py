"""How often the tests repeat themselves: often enough to see a regression in each run, and for long in `make test-long`.

A test that is only worth its time before a release is marked ``@pytest.mark.long`` as a whole.

The newest DuckDB runs all of it. An older one runs each test that depends on the database, and of its cases those that
are:

- none of modules and tests that are of no database (`OF_NO_DATABASE`, `OF_SOME_DATABASE`), of statistics of many answers
  (`OF_NUMBERS`), or marked ``@pytest.mark.newest``: their outcome is the same on each;
- all of modules where each case is something else that DuckDB does: a function, a type, a form of SQL that is read, a page
  of the documentation (`EACH_CASE`);
- else one of three, in turn (`in_turn`): the others ask the same of the same SQL under another method, in another place
  or with another value, and the newest DuckDB tries them.

Whoever names a file, or a test in it, has all of it on each; so has `make test-long`.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from importlib.metadata import version

LONG = os.environ.get("SDCDUCK_EFFORT") == "long"
if not LONG:
    # The threads of one product of matrices wait for each other without rest: where each worker of the tests has as many
    # as there are processors, that is most of what they do. It must be said before NumPy is there; programs inherit it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


OLDER = int(version("duckdb").split(".")[0]) < 2 and not LONG
"""Whether this is not the newest DuckDB, on which the tests are made once more for what depends on the database."""


def times(usual: int, long: int, *, older: int | None = None) -> int:
    """How many examples, questions or rounds a test has: `usual` in each run, `long` in `make test-long`.

    Args:
        older: in each run on an older DuckDB, where that is not as many as on the newest one.
    """
    return long if LONG else usual if older is None or not OLDER else older


OF_NO_DATABASE = frozenset(
    f"tests/{name}"
    for name in [
        "gateway/test_attacks_on_the_wire.py",
        "gateway/test_bad_days.py",
        "gateway/test_jdbc_odbc.py",
        "gateway/test_log_of_the_gateway.py",
        "gateway/test_metrics.py",
        "gateway/test_node.py",
        "gateway/test_protocol.py",
        "gateway/test_psql.py",
        "gateway/test_salts.py",
        "gateway/test_size_of_log.py",
        "gateway/test_start_up.py",
        "gateway/test_superset_statements.py",
        "gateway/test_tls_of_clients.py",
        "gateway/test_windows_programs.py",
        "guard/test_end_of_audit_log.py",
        "guard/test_size_of_audit_log.py",
        "masking/test_groups.py",
        "masking/test_local_suppression_kernel.py",
        "perturbation/test_ptable.py",
        "pictures/test_pictures.py",
        "risk/test_attacks_kernels.py",
        "risk/test_nearest.py",
        "shell/test_reading.py",
        "shell/test_terminal.py",
        "suppression/test_audit.py",
        "suppression/test_batch.py",
        "suppression/test_decimals.py",
        "suppression/test_dense.py",
        "suppression/test_determined.py",
        "suppression/test_elimination.py",
        "suppression/test_improve.py",
        "suppression/test_intervals.py",
        "suppression/test_reorder.py",
        "suppression/test_rounding.py",
        "suppression/test_singletons.py",
        "suppression/test_stencil.py",
        "synthesis/test_walks.py",
        "test_demo.py",
        "test_examples.py",
        "test_packaging.py",
        "test_project.py",
    ]
)
"""Tests of arrays, texts, files, pictures and terminals, of messages, logins and the habits of client programs: what they
are about is the same whatever DuckDB there is, and they run on the newest one only. That the gateway answers, with values
of all types and on both of its doors, is tested on each.
"""
OF_SOME_DATABASE: dict[str, frozenset[str]] = {
    f"tests/{name}": frozenset(tests.split())
    for name, tests in {
        "gateway/test_custodian_raw.py": """TestCustodian::test_records_are_shown_and_written_down
            TestCustodian::test_the_login_says_so TestCustodian::test_the_catalog_shows_what_there_is
            TestCustodian::test_over_arrow_flight_too TestCustodian::test_only_questions_about_tables
            TestCustodian::test_search_paths_lead_nowhere TestCustodian::test_refusals_are_written_down
            TestAnalyst::test_no_statement_makes_a_custodian TestAnalyst::test_over_flight_she_sees_nothing
            TestAnalyst::test_what_a_custodian_asked_over_flight_is_not_there""",
        "gateway/test_doors.py": """test_what_is_secret_is_nowhere test_the_system_catalog_has_no_data_and_no_way_out
            test_describing_asks_nothing test_describing_what_is_asked_next_asks_once
            test_who_asks_for_the_columns_of_a_pivot_can_stop
            test_a_question_that_needs_too_much_memory_has_a_clear_error
            test_stopping_lets_queries_end_and_tells_the_others test_users_in_sql""",
        "gateway/test_flight.py": """TestAdbc::test_the_answer_is_that_of_the_other_door
            TestAdbc::test_values_of_every_kind TestAdbc::test_a_large_result TestAdbc::test_parameters
            TestAdbc::test_types_are_told_as_they_come TestAdbc::test_a_refusal_and_a_session_that_goes_on
            TestAdbc::test_nothing_is_taken_in TestAdbc::test_what_the_database_has
            TestAdbc::test_describing_asks_nothing TestAdbc::test_cancel TestAdbc::test_data_frames
            TestAdbc::test_a_role_of_its_own TestFlight::test_cancelling_by_name
            TestFlight::test_no_error_has_lines_of_source_or_names_of_folders test_memory_stays_within_bounds""",
        "guard/test_audit_log.py": """test_a_question_with_half_a_character_is_refused_and_written test_the_log_says_what_answered
            test_a_broken_chain_is_one_error_in_sql test_files_that_are_no_log""",
        "guard/test_templates.py": """test_it_is_answered_as_by_a_guard_that_heard_nothing_before
            test_what_runs_is_written_down test_policies_and_tables_that_change
            test_a_value_that_decides_whether_rows_are_asked_for""",
        "masking/test_microaggregation.py": """test_the_numbers_are_those_of_sdcmicro
            test_records_keep_what_is_not_named test_the_order_of_the_records_does_not_matter
            test_an_empty_table_stays_empty test_bad_input""",
        "pictures/test_releases.py": "test_copies_stand_at_zero",
        "risk/test_special_uniques.py": """test_a_household_survey_as_in_r test_three_records_by_hand
            test_the_power_of_the_score_depends_on_the_number_of_keys test_values_that_are_not_known
            test_every_type_of_key_and_every_record_once test_tables_of_no_records_and_of_one test_bad_arguments
            test_too_many_combinations""",
        "shell/test_pipes.py": """test_a_box_says_what_its_columns_are test_other_forms_have_every_row
            test_a_parquet_file_has_values_of_their_types test_an_empty_result_in_parquet_has_its_columns
            test_numbers_of_any_size test_withheld_numbers_are_crosses_and_every_method_has_its_word
            test_ctrl_c_ends_a_script""",
        "suppression/test_differences.py": """test_the_reference_in_sql test_with_other_rules_and_a_cheaper_choice
            test_forced_cells_that_tell_a_difference_are_named test_a_difference_that_is_given_away_does_not_pass_the_check
            test_arguments_that_do_not_go_together test_the_optimum_is_for_cells""",
        "suppression/test_optimal.py": "test_the_optimum_of_a_condition_in_sql",
        "suppression/test_reference_suppression.py": "test_the_same_cells_in_sql test_weights_in_sql",
        "synthesis/test_laws.py": "test_draws_follow_their_law",
    }.items()
}
"""The same, but for these tests of a module."""
OF_NUMBERS = frozenset(
    f"tests/{name}"
    for name in [
        "attacks/test_amounts_of_units.py",
        "attacks/test_averaging_and_differencing.py",
        "attacks/test_digits_of_sums.py",
        "attacks/test_functions_of_amounts.py",
        "attacks/test_keys_from_counts.py",
        "attacks/test_linear_reconstruction.py",
        "attacks/test_numbers_of_rows.py",
        "attacks/test_shared_noise.py",
        "attacks/test_signs_of_sums.py",
        "attacks/test_suppression_audit.py",
        "synthesis/test_comparison.py",
    ]
)
"""Attacks and comparisons that make statistics of many answers. The answers are the same, to the bit, on every DuckDB
(other tests see to that), so what is learned from them is learned on the newest one only.
"""
EACH_CASE = frozenset(
    f"tests/{name}"
    for name in [
        "attacks/test_errors.py",
        "attacks/test_forms_read_in_two_ways.py",
        "attacks/test_functions_and_statements.py",
        "attacks/test_names_that_are_words.py",
        "attacks/test_one_reading.py",
        "attacks/test_renamed_columns.py",
        "attacks/test_uncaught_errors.py",
        "gateway/test_lists.py",
        "gateway/test_names_of_columns.py",
        "gateway/test_postgres_meaning.py",
        "gateway/test_statements.py",
        "gateway/test_values.py",
        "guard/acceptance/test_acceptance.py",
        "guard/acceptance/test_tpch.py",
        "guard/test_both_versions.py",
        "guard/test_every_door.py",
        "guard/test_internal_errors.py",
        "guard/test_other_words.py",
        "guard/test_quiet.py",
        "guard/test_rare_types.py",
        "guard/test_spelling.py",
        "guard/test_types_of_numbers.py",
        "guard/test_wide_numbers.py",
        "ibis_backend/test_cell_keys.py",
        "ibis_backend/test_functions.py",
        "masking/test_released_again.py",
        "perturbation/test_aggregates.py",
        "perturbation/test_worked_examples.py",
        "test_calls_in_subqueries.py",
        "test_cursors.py",
        "test_docs.py",
        "test_ending.py",
        "test_older_files.py",
        "test_reference.py",
        "test_session.py",
        "test_template_database.py",
    ]
)
"""Here each case is something else of DuckDB: a function, a type, a word or form that its parser reads, the way a database is
opened and ended.
"""
_CASES = 3


def of_no_database(test: str) -> bool:
    """Whether an older DuckDB leaves a test out as the same on each; `test` is what pytest calls it.

    >>> of_no_database("tests/test_project.py::test_no_module_is_long"), of_no_database("tests/test_docs.py::test_a[b]")
    (True, False)
    """
    module, _, name = test.partition("::")
    some = OF_SOME_DATABASE.get(module)
    return module in OF_NO_DATABASE | OF_NUMBERS or (some is not None and name.split("[")[0] not in some)


def in_turn(tests: Iterable[str]) -> set[str]:
    """Those that an older DuckDB runs: of a test's cases one of three, each test beginning with another one of them.

    >>> sorted(in_turn(["tests/a.py::test_a", "tests/a.py::test_b[x]", "tests/a.py::test_b[y]", "tests/test_docs.py::t[a]"]))
    ['tests/a.py::test_a', 'tests/a.py::test_b[y]', 'tests/test_docs.py::t[a]']
    """
    cases: dict[str, list[str]] = {}
    for test in tests:
        cases.setdefault(test if test.partition("::")[0] in EACH_CASE else test.partition("[")[0], []).append(test)
    return {
        case
        for name, those in cases.items()
        for case in those[zlib.crc32(name.encode()) % min(_CASES, len(those)) :: _CASES]
    }
