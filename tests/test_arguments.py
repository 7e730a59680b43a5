"""Arguments that cannot be used, told the same way everywhere: each kind with functions of several families."""

from __future__ import annotations

import duckdb
import pytest

SHARES = {
    "confidence": "sdc_holdout_share('o', 's', 'o', confidence := {})",
    "max_share": "sdc_check_statistics('o', 'x', ['max'], max_share := {})",
    "threshold": "sdc_individual_risk('o', keys := ['k'], threshold := {})",
    "tau": "sdc_tcap('o', 's', keys := ['k'], sensitive := ['x'], tau := {})",
    "tolerance": "sdc_attack_inference('o', 's', sensitive := 'k', tolerance := {})",
    "dis": "sdc_suda('o', keys := ['k', 'x'], dis := {})",
}
NUMBERS = {
    "c": "sdc_l_diversity('o', ['k'], 'x', c := {})",
    "ccp_alpha": "sdc_pmse('o', 's', model := 'tree', ccp_alpha := {})",
    "quantile": "sdc_utility_regression('o', 's', 'x', ['k'], quantile := {})",
}
WHOLE = {
    "k": "sdc_k_anonymity('o', ['k'], k := {})",
    "attacks": "sdc_attack_singling_out('o', 's', attacks := {})",
    "permutations": "sdc_pmse('o', 's', permutations := {})",
}
MISSPELT = {
    "sdc_k_anonymity('o', ['k'], nulls := 'dorp')": "argument 'nulls' must be .*; did you mean 'drop'?",
    "sdc_individual_risk('o', ['k'], method := 'aproximate')": "'exact' or 'approximate'; did you mean 'approximate'?",
    "sdc_attack_singling_out('o', 's', mode := 'Univariate')": "did you mean 'univariate'?",
    "sdc_pmse('o', 's', model := 'tre')": "'logit' or 'tree'; did you mean 'tree'?",
    "sdc_utility_regression('o', 's', 'x', ['k'], family := 'binomal')": "did you mean 'binomial'?",
}
MISSPELT_COLUMNS = {
    "sdc_k_anonymity('long', ['regoin'])": "unknown column 'regoin' in 'long'; did you mean 'region'?",
    "sdc_dcr('long', 'long', categorical := ['incme'])": r"\(argument 'categorical'\); did you mean 'income'?",
    "sdc_dcr('long', 'long', weights := {'regoin': 2})": r"\(argument 'weights'\); did you mean 'region'?",
    "sdc_utility_columns('long', 'long', special := {'incom': [1]})": r"\(argument 'special'\); did you mean 'income'?",
    "sdc_model_risk('long', ['region'], fraction := 0.1, trends := ['regon'])": "did you mean 'region'?",
    "sdc_sample_curve('long', metrics := ['roc1'], keys := ['regio'], sensitive := ['income'])": "did you mean 'region'?",
}


@pytest.fixture(autouse=True)
def records(lasting: duckdb.DuckDBPyConnection) -> None:
    lasting.execute("CREATE OR REPLACE TABLE o AS SELECT i AS x, i % 3 AS k FROM range(20) r(i)")
    lasting.execute("CREATE OR REPLACE TABLE s AS FROM o")
    lasting.execute("CREATE OR REPLACE TABLE long AS SELECT i AS income, i % 3 AS region FROM range(20) r(i)")


def refusal(con: duckdb.DuckDBPyConnection, call: str) -> str:
    with pytest.raises(duckdb.Error) as raised:
        con.execute(f"FROM {call}")
    return str(raised.value)


@pytest.mark.parametrize("name", SHARES)
@pytest.mark.parametrize("value", ["NULL", "'NaN'::DOUBLE", "'inf'::DOUBLE", "-0.1", "1e300", "90"])
def test_what_is_no_share(lasting: duckdb.DuckDBPyConnection, name: str, value: str) -> None:
    told = refusal(lasting, SHARES[name].format(value))
    assert f"argument '{name}' must " in told
    assert ("90 per cent is 0.9" in told) is (value == "90")


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["NULL", "'NaN'::DOUBLE", "'inf'::DOUBLE", "-1"])
def test_what_is_no_number(lasting: duckdb.DuckDBPyConnection, name: str, value: str) -> None:
    assert f"argument '{name}' must be a number " in refusal(lasting, NUMBERS[name].format(value))


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("value", ["NULL", "0", "-1", "2.5", "'NaN'::DOUBLE", "true", "1e300", "'many'"])
def test_what_is_no_whole_number(lasting: duckdb.DuckDBPyConnection, name: str, value: str) -> None:
    assert f"argument '{name}' must be a whole number" in refusal(lasting, WHOLE[name].format(value))


@pytest.mark.parametrize("call", [*SHARES.values(), *NUMBERS.values()])
def test_a_truth_value_is_no_number(lasting: duckdb.DuckDBPyConnection, call: str) -> None:
    """DuckDB itself finds no function that takes one."""
    refusal(lasting, call.format("true"))


@pytest.mark.parametrize(("call", "said"), [*MISSPELT.items(), *MISSPELT_COLUMNS.items()])
def test_what_is_misspelt_gets_a_suggestion(lasting: duckdb.DuckDBPyConnection, call: str, said: str) -> None:
    with pytest.raises(duckdb.Error, match=said):
        lasting.execute(f"FROM {call}")
