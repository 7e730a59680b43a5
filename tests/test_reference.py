"""The reference of the SQL functions is complete, and what it shows is what the functions return."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest
from example_outputs import example_connection, with_outputs

from sdcduck.functions.declared import sql_of
from sdcduck.functions.install import FAMILIES
from sdcduck.functions.reference import SQL_FILES, sql_functions
from sdcduck.methods.sequence.plans import block, traces
from sdcduck.sql.builtin import with_built_in

pytestmark = pytest.mark.filterwarnings("error:sdc_:DeprecationWarning")  # nobody learns old names here

FUNCTIONS = {function.name: function for function in sql_functions()}
TABLE_FUNCTIONS = [function for function in FUNCTIONS.values() if function.kind == "table"]


@pytest.fixture(scope="module")
def examples() -> Iterator[duckdb.DuckDBPyConnection]:
    with example_connection() as connection:
        yield connection


@pytest.fixture(scope="module")
def parameters(examples: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Every function that a user can call, with the names of its arguments as DuckDB knows them."""
    rows = examples.execute(
        "SELECT DISTINCT function_name, parameters FROM duckdb_functions() "
        "WHERE function_type IN ('macro', 'table_macro') AND starts_with(function_name, 'sdc_')"
    ).fetchall()
    # Where a macro has two forms, the one with more arguments.
    return dict(sorted(rows, key=lambda row: len(row[1])))


def test_every_function_that_a_user_can_call_is_documented_and_no_other(parameters: dict[str, list[str]]) -> None:
    assert set(FUNCTIONS) | {old for one in FUNCTIONS.values() for old in one.former} == set(parameters)
    assert len(FUNCTIONS) == len(sql_functions()), "a function is documented twice"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_is_what_it_takes_and_where_it_comes_from(
    name: str, parameters: dict[str, list[str]]
) -> None:
    function = FUNCTIONS[name]
    assert re.fullmatch(rf"{name}\(.*\) -> [A-Z]+", function.signature)
    assert function.summary.endswith(".")
    assert function.example
    assert function.output
    assert function.source
    old = [argument for argument, _ in function.renamed]
    assert [*(argument for argument, _ in function.arguments), *old] == parameters[name]
    assert all(meaning for _, meaning in function.arguments + function.columns)
    assert bool(function.columns) == function.signature.endswith(("-> TABLE", "-> STRUCT"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_signature_has_the_defaults_of_the_macro(name: str) -> None:
    # Between the documented signature and the macro's there is only layout.
    text = "\n".join(map(sql_of, SQL_FILES))
    macro = re.search(rf"^CREATE OR REPLACE MACRO {name}(\(.*?\)) AS\b", text, re.M | re.S)
    assert macro is not None
    written = re.sub(r"\s+", " ", macro[1]).replace("( ", "(").replace(" )", ")").replace('"', "")
    documented = FUNCTIONS[name].signature.split(" -> ")[0].removesuffix(")")
    for old, new in FUNCTIONS[name].renamed:
        # What had to be given may come by either name, behind the others.
        documented = re.sub(rf"(?<=[(, ]){new}(?=,|$)", f"{new} := NULL", documented) + f", {old} := NULL"
    documented += ")"
    # `epsilon` decides between the two forms of a macro, so that it has a default for users only.
    assert name + written in (documented, documented.replace("epsilon := [1.0]", "epsilon"))


# Each table function on arguments that are right, to see the columns that it returns.
_CELLS = (
    "'(SELECT region, count(*) AS n FROM people GROUP BY ALL)', "
    "'(SELECT region, sdc_count(record_key) AS n FROM people GROUP BY ALL)', dimensions := ['region']"
)
_PUBLICATION = "'SELECT region, sex, count(*) AS n FROM people GROUP BY CUBE (region, sex)', max_count := 1"
_ESTIMATES = "'(SELECT region, 2020 AS year, avg(income) AS est, 1 AS se FROM people GROUP BY region)'"
_TWO_TABLES = (
    "'(SELECT region, sex, count(*) AS n FROM people GROUP BY ALL)', "
    "'(SELECT sex, age, count(*) AS n FROM people GROUP BY ALL)', area := 'region', detail := 'age', dimensions := ['sex']"
)
_GUESS = "'(SELECT *, 1 AS n FROM people)', '(SELECT *, 1 AS n FROM people)', area := 'region', sensitive := 'sex'"
_WALKS = "'people', trip := 'region', seq := 'person_id', cell := 'age'"
_RIDES = "'(SELECT 1 AS trip, 1 AS unit, 1 AS seq, 1 AS cell, TIMESTAMP ''2024-05-02'' AS t)'"
_TEXTS = "'(SELECT person_id AS person, region AS text FROM people)'"
_TOY = "sdc_he_knn_keygen(''toy'')"
_NO_BLOBS = "'(SELECT ''''::BLOB AS {} LIMIT 0)'"
_PLAN = [trace.hex() for trace in traces([block("SELECT 1", 1, bytes(16))])]
_EMPTY_FILE = files("sdcduck") / "py.typed"
CALLS = {
    "sdc_add_record_key": "sdc_add_record_key('visits_without_key', unit := 'patient', record_key := 'k')",
    "sdc_sample": "sdc_sample('people', parts := 2)",
    "sdc_check_keys": "sdc_check_keys('visits')",
    "sdc_ptable": "sdc_ptable(D := 2, V := 1)",
    "sdc_store_ptable": "sdc_store_ptable('columns', '(FROM sdc_ptable(D := 2, V := 1))')",
    "sdc_drop_ptable": "sdc_drop_ptable('columns')",
    "sdc_rounding_ptable": "sdc_rounding_ptable(3)",
    "sdc_ptable_check": "sdc_ptable_check('default')",
    "sdc_table_risk_utility": f"sdc_table_risk_utility({_CELLS})",
    "sdc_count_utility": f"sdc_count_utility({_CELLS})",
    "sdc_noise_distribution": f"sdc_noise_distribution({_CELLS})",
    "sdc_primary": f"sdc_primary({_PUBLICATION})",
    "sdc_synth_table": "sdc_synth_table('people', dimensions := ['region'], sigma := 1)",
    "sdc_tau": "sdc_tau('people', dimensions := ['region'], sigma := 1)",
    "sdc_tune": "sdc_tune('tau3(1) <= 0.2', 'people', dimensions := ['region'])",
    "sdc_tau_observed": "sdc_tau_observed('people', '(SELECT region, 1 AS count FROM people)', dimensions := ['region'])",
    "sdc_classes": "sdc_classes('people', keys := ['region'])",
    "sdc_k_anonymity": "sdc_k_anonymity('people', keys := ['region'])",
    "sdc_l_diversity": "sdc_l_diversity('people', keys := ['region'], sensitive := 'sex')",
    "sdc_multi_diversity": "sdc_multi_diversity('people', keys := ['region'], sensitive := ['sex', 'age'])",
    "sdc_multi_diversity_classes": "sdc_multi_diversity_classes('people', keys := ['region'], sensitive := ['sex', 'age'])",
    "sdc_l_diversity_classes": "sdc_l_diversity_classes('people', keys := ['region'], sensitive := 'sex')",
    "sdc_t_closeness": "sdc_t_closeness('people', keys := ['region'], sensitive := 'sex')",
    "sdc_t_closeness_classes": "sdc_t_closeness_classes('people', keys := ['region'], sensitive := 'income')",
    "sdc_individual_risk": "sdc_individual_risk('people', keys := ['region'], household := 'sex')",
    "sdc_global_risk": "sdc_global_risk('people', keys := ['region'], household := 'sex')",
    "sdc_unsafe_combinations": "sdc_unsafe_combinations('people', keys := ['region', 'sex'])",
    "sdc_marketer_risk": "sdc_marketer_risk('people', 'people', keys := ['region'])",
    "sdc_marketer_risk_classes": "sdc_marketer_risk_classes('people', 'people', keys := ['region'])",
    "sdc_policy_risk": "sdc_policy_risk('people', 'people', policies := {'all': ['region']})",
    "sdc_suda": "sdc_suda('people', keys := ['region', 'sex'])",
    "sdc_suda_contributions": "sdc_suda_contributions('people', keys := ['region', 'sex'])",
    "sdc_model_risk": "sdc_model_risk('people', keys := ['region', 'sex'], fraction := 0.1)",
    "sdc_outputs": "sdc_outputs()",
    "sdc_check_regression": "sdc_check_regression(100, 3)",
    "sdc_check_table": "sdc_check_table('SELECT region, count(*) AS n FROM people GROUP BY region')",
    "sdc_check_statistics": "sdc_check_statistics('people', value := 'income', statistics := ['min'], by := ['region'])",
    "sdc_check_model": "sdc_check_model(source := 'people', leaf := ['sex'], outcome := 'region')",
    "sdc_membership_risk": "sdc_membership_risk('people', 'people', 'age')",
    "sdc_pca_membership": "sdc_pca_membership('people', 'people', ['age', 'income'])",
    "sdc_attribute_inference": "sdc_attribute_inference('people', sensitive := 'sex', keys := ['region'], repeats := 1, trees := 2)",
    "sdc_tstr": "sdc_tstr('people', 'people', 'people', 'sex', columns := ['region'], models := ['tree'])",
    "sdc_survival_table": "sdc_survival_table('(SELECT age, true AS died FROM people)', 'age', 'died')",
    "sdc_histogram_table": "sdc_histogram_table('people', 'age', 10, by := ['region'])",
    "sdc_check_submit": "sdc_check_submit('columns', '(FROM sdc_check_regression(100, 3))', requested_by := 'ann')",
    "sdc_check_decide": "sdc_check_decide('columns', 'approve', decided_by := 'bob')",
    "sdc_drop_output": "sdc_drop_output('columns')",
    "sdc_moment_solutions": "sdc_moment_solutions(3, mean := 4, sd := 2)",
    "sdc_unique_share": "sdc_unique_share(3, 3)",
    "sdc_summary_risk": "sdc_summary_risk('people', value := 'age', by := ['region'])",
    "sdc_modal_guess": f"sdc_modal_guess({_GUESS})",
    "sdc_modal_guess_curve": f"sdc_modal_guess_curve({_GUESS})",
    "sdc_modal_guess_summary": f"sdc_modal_guess_summary({_GUESS})",
    "sdc_attack_score": (
        "sdc_attack_score('(SELECT *, true AS linked, sex AS predicted, sex AS actual FROM people)', "
        "'(SELECT *, 1 AS n FROM people)', area := 'region', sensitive := 'sex')"
    ),
    "sdc_recon_bounds": f"sdc_recon_bounds({_TWO_TABLES})",
    "sdc_recon_count": f"sdc_recon_count({_TWO_TABLES})",
    "sdc_reconstruct": f"sdc_reconstruct({_TWO_TABLES})",
    "sdc_recon_stability": "sdc_recon_stability('(SELECT 1 AS slot, 1 AS draw, 1 AS id)')",
    "sdc_recon_link": "sdc_recon_link('(SELECT 1 AS slot, 1 AS draw, 1 AS block)', '(SELECT 1 AS block, 1 AS id)', keys := ['block'])",
    "sdc_recon_designations": "sdc_recon_designations('(SELECT 1 AS draw, 1 AS id, 1 AS race)', sensitive := 'race')",
    "sdc_recon_refutations": "sdc_recon_refutations('(SELECT 1 AS slot, 1 AS draw, 1 AS id)')",
    "sdc_chance_match": "sdc_chance_match('people', area := 'region', keys := ['sex'])",
    "sdc_recon_agreement": "sdc_recon_agreement('(SELECT 1 AS slot, 1 AS draw, 1 AS id)')",
    "sdc_suppress": f"sdc_suppress({_PUBLICATION})",
    "sdc_publish": f"sdc_publish('columns', {_PUBLICATION})",
    "sdc_audit": f"sdc_audit({_PUBLICATION}, insider := true)",
    "sdc_optimum": f"sdc_optimum({_PUBLICATION})",
    "sdc_decimals": f"sdc_decimals({_PUBLICATION})",
    "sdc_round_table": "sdc_round_table('SELECT region, count(*) AS n FROM people GROUP BY CUBE (region)', seed := 1)",
    "sdc_publication": "sdc_publication('named', 'SELECT region, count(*) AS n FROM people GROUP BY CUBE (region)')",
    "sdc_drop_publication": "sdc_drop_publication('named')",
    "sdc_publications": "sdc_publications()",
    "sdc_rules": "sdc_rules('columns', max_count := 1)",
    "sdc_releases": "sdc_releases()",
    "sdc_approve": "sdc_approve('columns', 'Ann Lee')",
    "sdc_rule_sets": "sdc_rule_sets()",
    "sdc_drop_rules": "sdc_drop_rules('columns')",
    "sdc_sdmx": f"sdc_sdmx({_PUBLICATION})",
    "sdc_export": "sdc_export('columns', 'public.duckdb')",
    "sdc_percent_table": "sdc_percent_table('columns', ['region'])",
    "sdc_write_table": "sdc_write_table('columns', 'columns.json')",
    "sdc_write_tau_argus": "sdc_write_tau_argus('columns', 'columns.arb')",
    "sdc_read_asc": f"sdc_read_asc('{_EMPTY_FILE}', 'one.rda')",
    "sdc_read_arb": f"sdc_read_arb('{_EMPTY_FILE}')",
    "sdc_levels": "sdc_levels('(SELECT region AS parent, region || sex AS child FROM people)')",
    "sdc_read_hrc": f"sdc_read_hrc('{_EMPTY_FILE}')",
    "sdc_read_rda": f"sdc_read_rda('{_EMPTY_FILE}')",
    "sdc_read_hst": f"sdc_read_hst('{_EMPTY_FILE}')",
    "sdc_record_swap": (
        "sdc_record_swap('people', household := 'person_id', hierarchy := ['region'], similar := ['sex'], "
        "return_swapped_id := true)"
    ),
    "sdc_record_swap_report": (
        "sdc_record_swap_report('people', household := 'person_id', hierarchy := ['region'], similar := ['sex'])"
    ),
    "sdc_synth_dp": "sdc_synth_dp('people', dimensions := ['region'], epsilon := 1, public_domains := true)",
    "sdc_synth_dp_statement": "sdc_synth_dp_statement('people', dimensions := ['sex'], epsilon := 1, public_domains := true)",
    "sdc_synth_dp_preflight": "sdc_synth_dp_preflight('people', dimensions := ['region'], epsilon := 1)",
    "sdc_synth_dp_ledger": "sdc_synth_dp_ledger()",
    "sdc_synth_dp_budgets": "sdc_synth_dp_budgets()",
    "sdc_dp_allocation": "sdc_dp_allocation([1, 2], 1, 1e-5)",
    "sdc_dp_composition": "sdc_dp_composition('(SELECT 1 AS epsilon)')",
    "sdc_dp_mean_region": (
        "sdc_dp_mean_region('visits_without_key', ['patient'], [[1]], center := [2], radius := 3, epsilon := 1, delta := 1e-5)"
    ),
    "sdc_dp_mean_region_noise": "sdc_dp_mean_region_noise([[1]], 100, 1, 1e-5)",
    "sdc_dp_release": "sdc_dp_release('visits_without_key', ['patient = 1'], epsilon := 1, delta := 1e-5)",
    "sdc_dp_mean": "sdc_dp_mean('visits_without_key', ['patient'], bounds := {'patient': [0, 9]}, epsilon := 1)",
    "sdc_dp_covariance": (
        "sdc_dp_covariance('visits_without_key', ['patient'], bounds := {'patient': [0, 9]}, epsilon := 1)"
    ),
    "sdc_dp_composition_each": "sdc_dp_composition_each(1, 1e-3, 105)",
    "sdc_dp_regression": (
        "sdc_dp_regression('(SELECT i AS x, 2 * i AS y FROM range(9) r(i))', 'y', ['x'], bounds := {'x': [0, 9], 'y': [0, 18]}, epsilon := 1)"
    ),
    "sdc_dp_mean_test": (
        "sdc_dp_mean_test('(SELECT i % 2 AS arm, i AS x FROM range(9) r(i))', by := 'arm', groups := ['0', '1'], "
        "columns := ['x'], bounds := {'x': [0, 9]}, epsilon := 1)"
    ),
    "sdc_pca": "sdc_pca('(FROM (VALUES (1), (2)) two(x))', ['x'])",
    "sdc_pca_noise": "sdc_pca_noise({'x': [0, 1]}, 100, epsilon := 1)",
    "sdc_pca_utility": (
        "sdc_pca_utility('(FROM (VALUES (1), (2)) two(x))', "
        "'(SELECT 1 AS component, ''x'' AS column_name, 1 AS loading)', ['x'])"
    ),
    "sdc_synth_dp_budget": "sdc_synth_dp_budget('visits', 1)",
    "sdc_protect": "sdc_protect('people', unit := 'person_id', dimensions := ['region'])",
    "sdc_declare_public": "sdc_declare_public('visits')",
    "sdc_unprotect": "sdc_unprotect('visits')",
    "sdc_policies": "sdc_policies()",
    "sdc_noise": "sdc_noise('people')",
    "sdc_audit_log": f"sdc_audit_log('{_EMPTY_FILE}')",
    "sdc_users": "sdc_users()",
    "sdc_create_user": "sdc_create_user('ann', 'correct horse battery')",
    "sdc_drop_user": "sdc_drop_user('ann')",
    "sdc_synth_tables": "sdc_synth_tables('(SELECT DISTINCT region FROM people)', 'region', {'people': 'region'})",
    "sdc_synth_records": "sdc_synth_records('people', bounds := {'age': [0, 99]}, columns := ['age'], details := true)",
    "sdc_synth_model": "sdc_synth_model('columns', '(SELECT region, age FROM people)')",
    "sdc_drop_synth_model": "sdc_drop_synth_model('columns')",
    "sdc_synth_models": "sdc_synth_models()",
    "sdc_synth_equal_weights": "sdc_synth_equal_weights('(SELECT *, 2 AS weight FROM people)', 'weight')",
    "sdc_synth_replicas": "sdc_synth_replicas('people', 'people')",
    "sdc_synth_diversity": "sdc_synth_diversity('(SELECT 1 AS ldiv_a)')",
    "sdc_synth_diversity_records": "sdc_synth_diversity_records('(SELECT 1 AS ldiv_a)')",
    "sdc_synth_moments": "sdc_synth_moments('people', 'people')",
    "sdc_synth_correlations": "sdc_synth_correlations('people', 'people')",
    "sdc_identical_matches": "sdc_identical_matches('people', 'people')",
    "sdc_dcr": "sdc_dcr('people', 'people')",
    "sdc_dcr_records": "sdc_dcr_records('people', 'people')",
    "sdc_dcr_histogram": "sdc_dcr_histogram('people', 'people')",
    "sdc_holdout_share": "sdc_holdout_share('people', 'people', 'people')",
    "sdc_replicated_uniques": "sdc_replicated_uniques('people', 'people')",
    "sdc_tcap_records": "sdc_tcap_records('people', 'people', keys := ['region'], sensitive := 'sex')",
    "sdc_tcap": "sdc_tcap('people', 'people', keys := ['region'], sensitive := ['sex'])",
    "sdc_disclosure": "sdc_disclosure('people', 'people', keys := ['region'], sensitive := ['sex'])",
    "sdc_accuracy": "sdc_accuracy('people', 'people')",
    "sdc_accuracy_margins": "sdc_accuracy_margins('people', 'people')",
    "sdc_accuracy_cells": "sdc_accuracy_cells('people', 'people')",
    "sdc_event_pairs": "sdc_event_pairs('people', 'region', 'age')",
    "sdc_accuracy_events": "sdc_accuracy_events('people', 'people', 'region', 'age')",
    "sdc_pmse": "sdc_pmse('people', 'people')",
    "sdc_utility_tables": "sdc_utility_tables('people', 'people')",
    "sdc_utility_columns": "sdc_utility_columns('people', 'people')",
    "sdc_roc": "sdc_roc('people', 'people')",
    "sdc_utility_regression": (
        "sdc_utility_regression('people', 'people', outcome := 'income', predictors := ['age'])"
    ),
    "sdc_utility_profile": "sdc_utility_profile('people', 'people', permutations := 2)",
    "sdc_sample_curve": "sdc_sample_curve('people', repeats := 1, fractions := [0.5])",
    "sdc_sample_equivalence": "sdc_sample_equivalence('people', 'people', repeats := 1, fractions := [0.5])",
    "sdc_quality": f"sdc_quality({_ESTIMATES}, {_ESTIMATES}, dimensions := ['region'])",
    "sdc_quality_summary": f"sdc_quality_summary({_ESTIMATES}, {_ESTIMATES}, dimensions := ['region'])",
    "sdc_trend_concordance": f"sdc_trend_concordance({_ESTIMATES}, {_ESTIMATES}, dimensions := ['region'], period := 'year')",
    "sdc_microaggregate": "sdc_microaggregate('people', ['age', 'income'])",
    "sdc_anonymize": "sdc_anonymize('people', ['sex', 'age'], hierarchies := {'age': [10]})",
    "sdc_anonymize_lattice": "sdc_anonymize_lattice('people', ['sex', 'age'], hierarchies := {'age': [10]})",
    "sdc_estimates": "sdc_estimates('people', ['income'], domains := ['region'])",
    "sdc_rake": "sdc_rake('people', margins := ['(SELECT region, 10 * count(*) AS total FROM people GROUP BY region)'])",
    "sdc_rake_report": "sdc_rake_report('people', margins := '(SELECT 100 AS total)')",
    "sdc_substitute_subsample": "sdc_substitute_subsample('people', core := ['age'], substitute := ['age'])",
    "sdc_substitute_subsample_report": "sdc_substitute_subsample_report('people', core := ['age'], substitute := ['age'])",
    "sdc_integral_clusters": "sdc_integral_clusters('people', ['age'], kappa := 2, c := 2)",
    "sdc_integral_centers": "sdc_integral_centers('people', ['age'], kappa := 2, c := 2)",
    "sdc_integral_check": "sdc_integral_check('(SELECT age, 1 AS macro_id, person_id % 2 AS micro_id FROM people)', ['age'])",
    "sdc_microaggregate_quality": "sdc_microaggregate_quality('people', 'people', ['age'], id := 'person_id')",
    "sdc_mask_loss": "sdc_mask_loss('people', 'people', ['age'], id := 'person_id')",
    "sdc_mask_risk": "sdc_mask_risk('people', 'people', ['age'], id := 'person_id')",
    "sdc_mask_plan": "sdc_mask_plan('people', ['sex', 'age'], id := 'person_id')",
    "sdc_plan_seal": f"sdc_plan_seal(['SELECT 1'], '{'0f' * 32}')",
    "sdc_plan_certify": f"sdc_plan_certify({_PLAN}, ['SELECT 1'], '{'0f' * 32}')",
    "sdc_plan_rules": "sdc_plan_rules(data := 'survey')",
    "sdc_plan_log": "sdc_plan_log(path := 'people.plans')",
    "sdc_sequence_check": """sdc_sequence_check('(SELECT 1 AS question, 1 AS set, ''a'' AS cell)', '(SELECT ''a'' AS cell, 5 AS units)', variance := 2)""",
    "sdc_sequence": "sdc_sequence('people')",
    "sdc_sequence_default": "sdc_sequence_default(false)",
    "sdc_sequence_rehearsal": f"sdc_sequence_rehearsal('{_EMPTY_FILE}', 'people', secrets := ['region'])",
    "sdc_question_budget": "sdc_question_budget('people', NULL)",
    "sdc_questions": "sdc_questions('people')",
    "sdc_dp_ledger": "sdc_dp_ledger('people')",
    "sdc_dp_preview": "sdc_dp_preview('SELECT 1')",
    "sdc_sequence_forget": "sdc_sequence_forget('people', 'ann')",
    "sdc_policy_distance": "sdc_policy_distance('people', 'people', {'age': 'interval'})",
    "sdc_policy_tracker": "sdc_policy_tracker('people', 'people', {'age': 'interval'})",
    "sdc_check_records": "sdc_check_records('people', ['region', 'sex'], k := 3)",
    "sdc_cube_allocate": "sdc_cube_allocate([4, 10, 20], 20)",
    "sdc_cube_view": "sdc_cube_view('people', ['person_id'], 'income')",
    "sdc_cube_errors": "sdc_cube_errors('people', 'people', ['person_id'], 'income', value := 'age')",
    "sdc_average_attack": (
        "sdc_average_attack('people', ['person_id'], 'income', "
        "alike := '(SELECT 1 AS range_id, ''person_id'' AS dim, 3 AS lo, 5 AS hi)')"
    ),
    "sdc_local_suppress": "sdc_local_suppress('people', ['region', 'sex'])",
    "sdc_local_suppress_report": "sdc_local_suppress_report('people', ['region', 'sex'])",
    "sdc_recode": "sdc_recode('people', rules := {'age': {'width': 10}})",
    "sdc_rest_group": "sdc_rest_group('people', ['region'])",
    "sdc_rest_group_report": "sdc_rest_group_report('people', ['region'])",
    "sdc_recode_report": "sdc_recode_report('people', rules := {'age': {'width': 10}})",
    "sdc_k_noise_records": "sdc_k_noise_records('people', {'age': 2.5})",
    "sdc_k_noise_delta": "sdc_k_noise_delta('people', 'age')",
    "sdc_k_pram": "sdc_k_pram('people', 'age', k := 3)",
    "sdc_local_k": "sdc_local_k('people', 'people', 2.5, 'age')",
    "sdc_rank_swap": "sdc_rank_swap('people', ['income'], p := 0.2)",
    "sdc_shuffle": "sdc_shuffle('people', ['income'], predictors := ['age'])",
    "sdc_add_noise": "sdc_add_noise('people', ['income'])",
    "sdc_pram": "sdc_pram('people', ['region'])",
    "sdc_pram_matrix": "sdc_pram_matrix('people', ['region'])",
    "sdc_pram_odds": "sdc_pram_odds('people', 'region', '(FROM sdc_pram_matrix(''people'', [''region'']))')",
    "sdc_attack_singling_out": "sdc_attack_singling_out('people', 'people')",
    "sdc_attack_linkability": "sdc_attack_linkability('people', 'people', keys := [['age'], ['income']])",
    "sdc_attack_inference": "sdc_attack_inference('people', 'people', sensitive := 'income')",
    "sdc_dcr_subsets": "sdc_dcr_subsets('people', 'people', 'people')",
    "sdc_trips_grid": "sdc_trips_grid('people', 'person_id', 'age', 'income', 'age', [0, 0, 99, 9999])",
    "sdc_trips_check": "sdc_trips_check('people', 'person_id', 'age', 'income', 'age', [0, 0, 99, 9999])",
    "sdc_trips_ends": f"sdc_trips_ends({_RIDES})",
    "sdc_trips_flows": f"sdc_trips_flows({_RIDES})",
    "sdc_trips_synthesize": f"sdc_trips_synthesize({_WALKS}, x := 'age', y := 'age')",
    "sdc_trips_quality": f"sdc_trips_quality({_WALKS}, x := 'age', y := 'age')",
    "sdc_trips_leakage": f"sdc_trips_leakage('people', {_WALKS})",
    "sdc_prototypes": "sdc_prototypes('people', 'region', ['age'], min_records := 1)",
    "sdc_he_knn_simulate": "sdc_he_knn_simulate('people', '(SELECT age FROM people)', 'region', k := 1)",
    "sdc_he_knn_keygen": "sdc_he_knn_keygen('toy')",
    "sdc_he_knn_encrypt": f"sdc_he_knn_encrypt('people', '(FROM {_TOY})', 'person_id', ['age'], {{'age': [0, 99]}})",
    "sdc_he_knn_predict": (
        f"sdc_he_knn_predict('people', {_NO_BLOBS.format('question')}, '(FROM {_TOY} WHERE part = ''evaluation'')', 'region', "
        "['age'], bounds := {'age': [0, 99]})"
    ),
    "sdc_he_knn_decrypt": f"sdc_he_knn_decrypt({_NO_BLOBS.format('answer')}, '(FROM {_TOY})')",
    "sdc_text_mask": f"sdc_text_mask({_TEXTS}, rules := ['year'])",
    "sdc_text_risk": f"sdc_text_risk({_TEXTS}, {_TEXTS})",
    "sdc_text_risk_documents": f"sdc_text_risk_documents({_TEXTS}, {_TEXTS})",
    "sdc_assess": "sdc_assess('people', 'people')",
    "sdc_functions": "sdc_functions()",
    "sdc_ptables": "sdc_ptables()",
}


def test_table_functions_return_the_columns_that_are_documented() -> None:
    assert set(CALLS) == {function.name for function in TABLE_FUNCTIONS}
    with example_connection() as con:
        Path("one.rda").write_text("Region 1 1")
        for function in TABLE_FUNCTIONS:
            # Binding is enough to see the columns; what writes must run, for the sake of those that come after it.
            returned = con.execute(f"DESCRIBE FROM {CALLS[function.name]}").fetchall()
            con.execute(f"FROM {CALLS[function.name]}").fetchall()
            documented = [(column, meaning.partition(":")[0]) for column, meaning in function.columns]
            if documented[0][0] == "..":  # first come columns of the user's own
                documented = documented[1:]
                returned = returned[len(returned) - len(documented) :]
            # The fields of a struct are columns of the user's own; ANY is the type of one of these.
            shown = [(row[0], "STRUCT" if row[1].startswith("STRUCT(") else row[1]) for row in returned]
            given = {name for name, kind in documented if kind == "ANY"}
            shown = [(name, "ANY" if name in given else kind) for name, kind in shown]
            assert shown == documented, function.name


@pytest.mark.parametrize("file", SQL_FILES)
def test_the_outputs_beside_the_examples_are_what_the_examples_return(
    file: str, examples: duckdb.DuckDBPyConnection
) -> None:
    text = (files("sdcduck.sql") / file).read_text(encoding="utf-8")
    assert with_outputs(examples, text) == text, "run `make examples`"


def test_the_reference_reads_the_files_of_the_families() -> None:
    assert tuple(file for family in FAMILIES for file in (*family.stored, *family.temporary)) == SQL_FILES


def test_the_built_in_p_tables_are_those_of_the_kernel() -> None:
    text = (files("sdcduck.sql") / "perturbation.sql").read_text(encoding="utf-8")
    assert with_built_in(text) == text, "run `make ptables`"


def test_what_an_argument_means_may_have_several_lines() -> None:
    protect = {function.name: function for function in sql_functions()}["sdc_protect"]
    meanings = dict(protect.arguments)
    assert meanings["population"].endswith("NULL: with no other table")
    assert meanings["preview"].endswith("NULL: nothing does")
    assert not any(line.startswith(" ") for function in sql_functions() for line in function.description.splitlines())
