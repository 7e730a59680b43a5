"""How often the tests repeat themselves: often enough to see a regression in each run, and for long in `make test-long`.

A test that is only worth its time before a release is marked ``@pytest.mark.long`` as a whole.

The newest DuckDB runs all of it. An older one runs each test that depends on the database, and of its cases those that
are:

- none of modules and tests that are of no database (`OF_NO_DATABASE`, `OF_SOME_DATABASE`, the examples of
  `sdcduck/methods`, which may not know DuckDB), of statistics of many answers (`OF_NUMBERS`), or marked
  ``@pytest.mark.newest``: their outcome is the same on each;
- none of long tests whose statements shorter ones run there, too (`RUN_BY_OTHERS`);
- all of modules where each case is something else that DuckDB does: a function, a type, a form of SQL that is read, a page
  of the documentation (`EACH_CASE`);
- else one of twelve, in turn (`in_turn`), and at least one of each test: the others ask the same of the same SQL under
  another method, in another place or with another value, and the newest DuckDB tries them. Of what is refused, one of six,
  as each message is a branch of its own.

Why so few are enough. What was ever wrong on DuckDB 1.5 alone was the text of one macro, which any call of it showed (an
`error` of another type, a list that did not bind, a path as a value of its own), a form of SQL or a parameter that is read
in another way, or how a database is opened, interrupted and ended. All functions are called there (`test_reference.py`),
all forms are read, all questions of the page of acceptance are answered and compared with DuckDB, and databases are opened
and ended in every way. In no run that we looked at did a case fail on 1.5 alone because of its values, its method or its place.

Whoever names a file, or a test in it, has all of it on each; so has `make test-long`.
"""

from __future__ import annotations

import os
import re
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
        "dp/test_mean_test.py",
        "dp/test_spread.py",
        "dp/test_threshold.py",
        "encrypted/test_encrypted_vote.py",
        "gateway/test_attacks_on_the_wire.py",
        "gateway/test_bad_days.py",
        "gateway/test_jdbc_odbc.py",
        "gateway/test_log_of_the_gateway.py",
        "gateway/test_metrics.py",
        "gateway/test_node.py",
        "gateway/test_privacy_through_gateways.py",
        "gateway/test_protocol.py",
        "gateway/test_psql.py",
        "gateway/test_salts.py",
        "gateway/test_sequence_through_gateways.py",
        "gateway/test_size_of_log.py",
        "gateway/test_start_up.py",
        "gateway/test_superset_statements.py",
        "gateway/test_tls_of_clients.py",
        "gateway/test_windows_programs.py",
        "guard/acceptance/test_refusals.py",
        "guard/test_end_of_audit_log.py",
        "guard/test_size_of_audit_log.py",
        "masking/test_groups.py",
        "masking/test_local_suppression_kernel.py",
        "perturbation/test_ptable.py",
        "pictures/test_pictures.py",
        "risk/test_attacks_kernels.py",
        "risk/test_nearest.py",
        "sequence/test_chained_file.py",
        "sequence/test_exact_answers.py",
        "sequence/test_plan_chain.py",
        "shell/test_reading.py",
        "shell/test_terminal.py",
        "suppression/test_audit.py",
        "suppression/test_batch.py",
        "suppression/test_cheaper_patterns.py",
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
        "attacks/test_twins.py": "test_one_unit_is_seen_in_no_group_and_in_no_value",
        "guard/test_audit_log.py": """test_a_question_with_half_a_character_is_refused_and_written test_the_log_says_what_answered
            test_a_broken_chain_is_one_error_in_sql test_files_that_are_no_log""",
        "guard/test_plans.py": """test_an_analyst_reveals_step_by_step_and_gets_what_she_asked
            test_custodian_says_which_plans_are_taken_and_sees_all test_other_forms_are_refused_and_end_no_plan
            test_two_guards_and_two_logins test_a_database_in_memory_has_no_plans""",
        "guard/test_private_intervals.py": """test_parameters_and_descriptions
            test_a_number_whose_law_is_not_known_has_none test_they_are_of_the_same_numbers_and_cost_nothing_more""",
        "guard/test_private_ledgers.py": """test_each_login_has_a_budget_of_its_own_and_the_same_answers
            test_the_custodian_sees_what_a_login_would_pay test_two_logins_at_one_moment_have_one_answer
            test_bad_declarations_are_refused""",
        "guard/test_private_previews.py": """test_it_is_the_same_through_every_door
            test_what_it_says_is_what_the_question_costs_and_what_its_noise_is
            test_of_other_methods_it_says_the_noise_and_no_cost""",
        "guard/test_question_budgets.py": """test_each_statement_is_a_question test_what_it_refuses
            test_what_looks_at_none_of_its_records_is_free test_all_doors_count_together
            test_a_question_about_two_tables_is_one_of_each_or_of_none test_the_custodian_sees_all_logins
            test_the_policies_say_how_many_questions_a_day_has test_a_database_in_no_file_cannot_count""",
        "guard/test_sequence_granted.py": """test_what_is_granted_costs_nothing_and_the_rest_is_limited
            test_what_sdc_protect_refuses test_a_stored_publication_may_be_granted""",
        "guard/test_sequence_modes.py": """test_exact_counts_are_answered_while_no_group_is_small
            test_what_is_no_count_is_refused test_what_everybody_knows_is_free test_what_sdc_protect_refuses
            test_several_secrets_are_counted_together test_secrets_say_which_combinations_are_known
            test_missing_values_are_a_value test_records_that_changed_stop_the_answers test_the_custodian_sees_the_mode""",
        "guard/test_sequence_rehearsal.py": """test_the_same_from_sql test_what_it_refuses
            test_exact_modes_under_a_threshold""",
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
"""The same, but for these tests of a module. Of what is kept in books beside the database (budgets, ledgers, plans, what
was answered in a sequence) these are the tests in which DuckDB is asked something that no other question asks it: what is
declared, looked up, listed and answered. How the books are kept and what they refuse is Python's alone.
"""
OF_NUMBERS = frozenset(
    f"tests/{name}"
    for name in [
        "attacks/test_amounts_of_units.py",
        "attacks/test_averaging_and_differencing.py",
        "attacks/test_differencing_kinds.py",
        "attacks/test_digits_of_sums.py",
        "attacks/test_digits_of_suppressed_sums.py",
        "attacks/test_exact_trackers.py",
        "attacks/test_functions_of_amounts.py",
        "attacks/test_keys_from_counts.py",
        "attacks/test_linear_reconstruction.py",
        "attacks/test_many_answers.py",
        "attacks/test_numbers_of_rows.py",
        "attacks/test_order_in_digits.py",
        "attacks/test_shared_noise.py",
        "attacks/test_signs_of_sums.py",
        "attacks/test_suppression_audit.py",
        "attacks/test_two_policies.py",
        "sequence/test_sequence_attack.py",
        "suppression/test_insiders_of_cubes.py",
        "suppression/test_the_reference_problem_with_ages.py",
        "synthesis/test_comparison.py",
    ]
)
"""Attacks and comparisons that make statistics of many answers. The answers are the same, to the bit, on every DuckDB
(other tests see to that), so what is learned from them is learned on the newest one only.
"""
RUN_BY_OTHERS: dict[str, frozenset[str]] = {
    f"tests/{name}": frozenset(tests.split())
    for name, tests in {
        "attacks/test_fuzz.py": "test_answers_of_the_other_methods",
        "attacks/test_letters.py": "test_nor_does_differential_privacy",
        "attacks/test_order_of_rows.py": "test_private_answers_have_one_order_too",
        "attacks/test_private_answers.py": """test_neighbours_are_told_apart_no_better_than_was_charged
            test_units_with_several_rows_are_told_apart_no_better test_the_audit_sees_noise_that_is_too_small
            test_half_the_noise_is_found_out
            test_choices_tell_neighbours_apart_no_better_than_was_charged""",
        "attacks/test_subqueries_as_oracles.py": """test_no_unit_decides_whether_another_counts
            test_no_value_of_a_measure_decides_who_counts""",
        "gateway/test_ended_database.py": """test_over_arrow_flight_alone_too
            test_a_gateway_stays_where_a_question_alone_failed""",
        "gateway/test_odd_names.py": "test_flight_has_the_same_tables",
        "gateway/test_plans_of_clients.py": """test_the_command_line_seals_certifies_and_reveals
            test_the_command_line_says_what_is_wrong""",
        "guard/test_copies.py": "test_what_copies_tell_in_roles_that_people_share",
        "guard/test_declared_policies.py": "test_random_keys_are_not_refused_and_others_are",
        "guard/test_differential_privacy.py": """test_zero_concentrated_costs_add_up_to_the_declared_epsilon
            test_a_rho_is_no_epsilon test_declared_anew_what_was_spent_stays_spent
            test_a_spent_budget_is_said_with_what_is_free test_a_question_is_counted_before_it_is_charged
            test_without_its_ledger_a_table_is_not_answered""",
        "guard/test_full_joins.py": "test_one_set_of_units_has_one_number",
        "guard/test_groups_of_units.py": "test_under_cell_keys_it_is_what_the_macros_say_of_one_row_for_each_unit",
        "guard/test_guard.py": """test_the_noise_of_sums_hangs_on_a_secret
            test_a_sum_of_nobody_looks_like_one_of_somebody_who_is_published_as_nobody""",
        "guard/test_planned_once.py": "test_long_questions_are_not_remembered",
        "guard/test_random_units.py": """test_no_count_hangs_on_a_measure
            test_with_noise_it_does_not_hang_on_the_order_of_rows""",
        "guard/test_same_question.py": "test_what_is_refused_does_not_fill_the_memory test_a_plain_text_is_the_same_question",
        "guard/test_sequence_of_answers.py": """test_a_breach_may_be_answered_and_written_down
            test_two_gateways_of_a_file_know_what_the_other_answered
            test_logins_are_counted_apart_and_sessions_of_one_together
            test_after_enough_answers_the_next_one_is_refused_and_the_old_ones_are_not
            test_a_clock_that_is_set_back_changes_nothing test_nothing_is_kept_of_a_refused_question
            test_the_refusal_is_in_the_audit_log
            test_a_line_that_was_begun_as_the_process_stopped_was_never_answered_for
            test_a_full_disk_is_a_refusal_and_nothing_is_kept test_a_folder_that_cannot_be_made_is_a_refusal
            test_a_file_that_somebody_holds_too_long_is_a_refusal test_a_file_of_its_size_takes_no_more""",
        "guard/test_several_kinds.py": "test_counts_have_the_noise_of_all_units",
        "guard/test_texts_of_units.py": "test_a_unit_like_nobody_is_in_no_group",
        "guard/test_totals_of_nobody.py": "test_somebody_published_as_nobody_looks_like_nobody",
        "guard/test_units_elsewhere.py": "test_one_set_of_units_has_one_number",
        "guard/test_worth.py": """test_counts_have_the_noise_that_is_said test_small_counts_have_the_noise_of_their_size
            test_sums_have_the_noise_that_is_said test_counts_of_rows_have_the_noise_that_is_said
            test_rounded_counts_have_the_noise_that_is_said test_a_multiple_has_the_noise_that_is_said
            test_a_difference_of_other_records_has_the_noise_that_is_said test_a_quantile_is_as_many_places_off_as_is_said""",
        "hierarchy/test_levels.py": "test_a_publication_over_levels_is_suppressed_as_one_table",
        "ibis_backend/test_guarded.py": "test_the_example_runs",
        "masking/test_estimates.py": "test_what_the_definition_says",
        "masking/test_k_noise.py": "test_the_errors_of_a_million_records test_counts_are_those_that_are_expected",
        "masking/test_local_suppression.py": "test_the_values_are_those_of_sdcmicro",
        "masking/test_mask_loss.py": "test_a_masked_file_in_the_report_of_a_release",
        "masking/test_mixed_records.py": "test_the_groups_are_those_of_the_steps",
        "masking/test_record_rules.py": "test_a_file_is_masked_until_it_keeps_the_rules",
        "masking/test_treatment.py": "test_a_survey_of_20_000_and_200_outcomes",
        "perturbation/test_cellkey_reference.py": "test_a_million_records",
        "perturbation/test_ptable_formats.py": "test_a_ptable_of_ons",
        "perturbation/test_random_rounding.py": "test_one_may_repeat",
        "report/test_release.py": """test_the_page_has_every_row_and_five_pictures test_what_is_not_given_is_not_asked
            test_what_cannot_be_measured_is_a_row_that_says_why test_the_map_has_the_release_and_what_it_is_held_against
            test_a_copy_and_a_table_of_other_people test_from_the_command_line""",
        "report/test_report.py": """test_the_command_leaves_the_file_alone test_errors_are_one_line
            test_the_command_takes_a_rule_set_and_what_differs""",
        "risk/test_classes.py": "test_the_distance_with_very_many_values",
        "risk/test_closest_records.py": """test_gower_distances_are_a_metric
            test_the_holdout_in_the_place_of_the_synthetic_records""",
        "risk/test_individual.py": "test_it_is_the_mean_of_the_law",
        "risk/test_inferred_attributes.py": """test_the_records_behind_the_measures
            test_relabelling_and_order_change_no_attribution""",
        "risk/test_marketer.py": "test_policies_over_time",
        "risk/test_recon_links.py": "test_links_are_those_of_the_greedy_search",
        "sequence/test_average_attack.py": """test_cell_keys_hide_what_is_not_alike
            test_cell_keys_do_not_hide_what_is_alike""",
        "sequence/test_cubes.py": "test_what_the_paper_claims_of_its_figures",
        "sequence/test_knowledge.py": "test_it_is_the_posterior_of_all_answers",
        "sequence/test_plan_file.py": "test_processes_that_reveal_the_same_step_answer_it_once",
        "suppression/test_export.py": """test_later_tables_are_answered_outside_as_inside
            test_hidden_cells_later_publications_and_many_decimals""",
        "suppression/test_silence.py": "test_models_of_all_kinds",
        "suppression/test_stored_publications.py": """test_improving_never_costs_more_and_gives_nothing_away
            test_the_stencil_agrees_with_the_rank""",
        "synthesis/test_private_synthesis.py": "test_an_empty_table_hides_that_it_is_empty",
        "synthesis/test_record_swapping.py": "test_as_the_established_package_does",
        "synthesis/test_synth_records.py": "test_intervals_from_several_files_cover_the_truth",
        "synthesis/test_synth_table.py": "test_measured_tau_is_what_was_expected",
        "test_cli.py": "test_the_compiler_is_loaded_when_it_is_wanted test_the_installed_command",
        "test_docs.py": "test_the_examples_of_a_page[assessment.md] test_the_examples_of_a_page[masking.md]",
        "test_template_database.py": "test_many_processes_make_it_at_once",
        "utility/test_measures.py": "test_trees_tell_apart_what_synthpop_tells_apart",
        "utility/test_outcomes.py": """test_percentiles_of_ratios_are_averaged_at_steps
            test_a_sample_is_as_useful_and_as_risky_as_itself test_a_synthesis_by_trees_on_the_map_of_samples""",
    }.items()
}
"""Long tests of modules of which an older DuckDB runs the others: of numbers that are large or compared with a paper, of
random questions beside other random questions, of files that are beside the database, of a program around a function, of
pages with all functions of a family, whose examples in the reference are run. Each takes half a second of a processor or more, and the functions and forms that it asks for are asked for by shorter tests of
the same module. Tests of errors, types and threads are not among them, however long they take.
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
        "guard/test_sqlglot_logging.py",
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
_CASES, _CASES_OF_REFUSALS = 12, 6
_REFUSED = re.compile("refus|bad_|wrong|error|no_number|cannot|forbidden|invalid")


def of_no_database(test: str) -> bool:
    """Whether an older DuckDB leaves a test out as the same on each; `test` is what pytest calls it.

    >>> of_no_database("tests/test_project.py::test_no_module_is_long"), of_no_database("tests/test_docs.py::test_a[b]")
    (True, False)
    """
    module, _, name = test.partition("::")
    some = OF_SOME_DATABASE.get(module)
    whole = name.split("[")[0]
    return (
        module in OF_NO_DATABASE | OF_NUMBERS
        or module.startswith("sdcduck/methods/")
        or (some is not None and whole not in some)
        or not RUN_BY_OTHERS.get(module, frozenset()).isdisjoint((name, whole))
    )


def in_turn(tests: Iterable[str]) -> set[str]:
    """Those that an older DuckDB runs: of a test's cases one of twelve, each test beginning with another one of them.

    Of those that are refused, one of six.

    >>> sorted(in_turn(["tests/a.py::test_a", "tests/a.py::test_b[x]", "tests/a.py::test_b[y]", "tests/test_docs.py::t[a]"]))
    ['tests/a.py::test_a', 'tests/a.py::test_b[y]', 'tests/test_docs.py::t[a]']
    """
    cases: dict[str, list[str]] = {}
    for test in tests:
        cases.setdefault(test if test.partition("::")[0] in EACH_CASE else test.partition("[")[0], []).append(test)
    kept: set[str] = set()
    for name, those in cases.items():
        one_of = _CASES_OF_REFUSALS if _REFUSED.search(name.partition("::")[2]) else _CASES
        kept.update(those[zlib.crc32(name.encode()) % min(one_of, len(those)) :: one_of])
    return kept
