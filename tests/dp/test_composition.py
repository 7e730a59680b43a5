"""What releases cost together: closed forms, and that no rule says less than normal noise really costs."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdcduck.methods.dp.calibration import gaussian_epsilon, gaussian_ratio, zcdp_epsilon
from sdcduck.methods.dp.composition import RULES, Releases


def _of(source: str, con: duckdb.DuckDBPyConnection, delta: float = 1e-6) -> dict[str, tuple[float | None, ...]]:
    rows = con.execute(f"FROM sdc_dp_composition('({source})', delta := {delta})").fetchall()
    assert [row[0] for row in rows] == list(RULES)
    return {row[0]: row[1:] for row in rows}


def test_the_rules_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    found = _of("SELECT 0.1 AS epsilon, 1e-9 AS delta, 100 AS times UNION ALL SELECT 0.5, NULL, NULL", con)
    assert found["basic"] == (101, pytest.approx(10.5), pytest.approx(1e-7), None)
    expected = 100 * 0.1 * (math.exp(0.1) - 1) / (math.exp(0.1) + 1) + 0.5 * (math.exp(0.5) - 1) / (math.exp(0.5) + 1)
    squares = 100 * 0.01 + 0.25
    spread = min(math.log(1e6), math.log(math.e + math.sqrt(squares) * 1e6))
    assert found["advanced"][1] == pytest.approx(expected + math.sqrt(2 * squares * spread))
    assert found["advanced"][2] == pytest.approx(1 - (1 - 1e-9) ** 100 * (1 - 1e-6), rel=1e-8)
    assert found["zcdp"] == (
        101,
        pytest.approx(zcdp_epsilon(squares / 2, 1e-6)),
        pytest.approx(1.1e-6),
        pytest.approx(squares / 2),
    )
    assert found["gaussian"][1:] == (None, None, None)


def test_normal_noise_is_counted_exactly(con: duckdb.DuckDBPyConnection) -> None:
    one = gaussian_ratio(0.5, 1e-7)
    found = _of(f"SELECT 0.5 AS epsilon, {one} AS ratio, 1e-7 AS delta, 25 AS times", con, 1e-6)
    assert found["gaussian"][1:3] == (pytest.approx(gaussian_epsilon(5 * one, 1e-6)), 1e-6)
    assert found["basic"][1] == 12.5
    # All noise that the rule counts is normal: its exact cost is the least that can be said.
    assert found["gaussian"][1] < min(found[rule][1] for rule in ("basic", "advanced", "zcdp"))  # type: ignore[type-var]
    assert found["zcdp"][3] == pytest.approx(25 * one**2 / 2)


def test_what_is_known_by_rho_alone(con: duckdb.DuckDBPyConnection) -> None:
    found = _of("SELECT 0.01 AS rho, 5 AS times", con)
    assert found["zcdp"] == (5, pytest.approx(zcdp_epsilon(0.05, 1e-6)), 1e-6, pytest.approx(0.05))
    assert [found[rule][1] for rule in ("basic", "advanced", "gaussian")] == [None, None, None]


def test_the_ledger_is_a_source(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE people AS SELECT i % 2 = 0 AS ill FROM range(100) r(i)")
    for _ in range(3):
        con.execute("FROM sdc_dp_release('people', ['ill'], epsilon := 1, delta := 1e-6, noise := 'normal')").fetchall()
    found = _of("FROM sdc_synth_dp_ledger() WHERE data = ''people''", con, 1e-6)
    assert found["basic"][:3] == (3, 3, pytest.approx(3e-6))
    assert found["zcdp"][3] == pytest.approx(1.5 * gaussian_ratio(1, 1e-6) ** 2, rel=1e-6)


def test_nothing_costs_nothing(con: duckdb.DuckDBPyConnection) -> None:
    for source in ("SELECT 1 AS epsilon WHERE false", "SELECT 1 AS epsilon, 0 AS times", "SELECT 0 AS epsilon"):
        found = _of(source, con)
        assert [found[rule][1] for rule in ("basic", "advanced", "zcdp")] == [0, 0, 0]


@given(ratios=st.lists(st.floats(0.01, 3), min_size=1, max_size=30), delta=st.floats(1e-10, 0.01))
def test_no_rule_says_less_than_normal_noise_costs(ratios: list[float], delta: float) -> None:
    ratio = np.array(ratios)
    # Each at a delta of its own, which basic and advanced add up.
    own = delta / len(ratio) / 2
    epsilon = np.array([gaussian_epsilon(one, own) for one in ratio])
    none = np.full(len(ratio), math.nan)
    releases = Releases(epsilon, np.full(len(ratio), own), none, ratio)
    for rule in ("basic", "advanced"):
        cost, beside = releases.by(rule, delta / 2)
        assert beside <= delta * (1 + 1e-12)
        assert gaussian_epsilon(math.sqrt((ratio**2).sum()), beside) <= cost * (1 + 1e-9)
    normal = Releases(none, np.zeros(len(ratio)), none, ratio)
    assert normal.gaussian(delta)[0] <= normal.zcdp(delta)[0] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ("SELECT -1 AS epsilon", "", "'epsilon' must hold numbers of at least 0"),
        ("SELECT ''inf''::DOUBLE AS epsilon", "", "'epsilon' must hold numbers of at least 0"),
        ("SELECT 1e300 AS epsilon", "", r"'epsilon' must hold numbers of at least 0, up to 1e\+100"),
        ("SELECT -1 AS rho", "", "'rho' must hold numbers of at least 0"),
        ("SELECT 1 AS epsilon, 2 AS delta", "", "'delta' must hold numbers between 0 and 1"),
        ("SELECT 1 AS epsilon, 1.5 AS times", "", "'times' must hold whole numbers"),
        ("SELECT 1 AS epsilon, 1e9 AS times", "", "'times' must hold whole numbers of at least 0, up to 10,000,000"),
        ("SELECT NULL AS epsilon", "", "each row .* must have an epsilon, a rho or a ratio"),
        ("SELECT 1 AS eps", "", "must have a column epsilon, rho or ratio"),
        ("SELECT ''a'' AS epsilon", "", "must name a column of numbers"),
        ("SELECT 1 AS epsilon", ", delta := 0", "'delta' must be above 0 and below 1"),
        ("SELECT 1 AS epsilon", ", delta := NULL", "'delta' must be above 0 and below 1"),
    ],
)
def test_wrong_arguments(con: duckdb.DuckDBPyConnection, source: str, more: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        con.execute(f"FROM sdc_dp_composition('({source})'{more})").fetchall()
