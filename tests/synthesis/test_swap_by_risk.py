"""Record swapping where the risk of each record is given: ``risk`` and ``threshold``."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from sdcduck.methods.synthesis.record_swapping import levels_above, rarities

CALL = "household := 'home', hierarchy := ['state', 'place'], similar := ['size'], swaprate := 0.1, seed := 7"
GIVEN = "risk := ['in_state', 'in_place'], threshold := 1.0 / 3"


@pytest.fixture
def persons(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Two persons a household, 10 places in 3 states, and of each person what k-anonymity makes of the risk."""
    con.execute(
        "CREATE TABLE persons AS SELECT *, 1 / count(*) OVER (PARTITION BY state, age, born) AS in_state, "
        "1 / count(*) OVER (PARTITION BY state, place, age, born) AS in_place FROM (SELECT i AS id, i // 2 AS home, "
        "hash(i // 2) % 10 AS place, hash(i // 2) % 10 // 4 AS state, hash(i // 2 + 999) % 3 AS size, hash(3 * i) % 9 AS age, "
        "(hash(7 * i) % 100 > 93)::INTEGER AS born FROM range(1600) r(i))"
    )
    return con


def test_the_risk_that_keys_have_gives_the_same_swap(persons: duckdb.DuckDBPyConnection) -> None:
    # Fewer than three alike is a risk above one third.
    made = "SELECT id, state, place, swapped_with, swap_level, at_risk_level FROM sdc_record_swap('persons', {}, {}, return_swapped_id := true) ORDER BY id"
    counted = persons.execute(made.format(CALL, "keys := ['age', 'born'], k := 3")).fetchall()
    given = persons.execute(made.format(CALL, GIVEN)).fetchall()
    assert counted == given
    assert len({row[5] for row in given}) == 3  # at each of the two levels, and nowhere
    reports = [
        persons.execute(f"FROM sdc_record_swap_report('persons', {CALL}, {more})").fetchall()
        for more in ("keys := ['age', 'born'], k := 3", GIVEN)
    ]
    assert reports[0] == reports[1]


def test_who_is_at_risk_moves(persons: duckdb.DuckDBPyConnection) -> None:
    """A risk of one's own: those of foreign birth, in their place only; all of them move, and few others."""
    source = "(SELECT *, 0 AS none, born * 0.8 AS risk FROM persons)"
    call = CALL.replace("0.1", "0.0")
    rows = persons.execute(
        f"SELECT home, max(born) = 1, any_value(swapped_with) IS NOT NULL, any_value(swap_level), any_value(at_risk_level) "
        f"FROM sdc_record_swap('{source}', {call}, risk := ['none', 'risk'], threshold := 0.5, return_swapped_id := true) GROUP BY home"
    ).fetchall()
    assert len(rows) == 800
    assert all(moved for _, risky, moved, *_ in rows if risky)
    assert {(risky, level) for _, risky, _, _, level in rows} == {(True, "place"), (False, None)}
    assert {level for *_, level, _ in rows} == {None, "place"}
    # Nobody is above 0.8, so that nobody has to move.
    assert persons.execute(
        f"SELECT at_risk, swapped FROM sdc_record_swap_report('{source}', {call}, risk := ['none', 'risk'], threshold := 0.8) "
        "WHERE level IS NULL"
    ).fetchall() == [(0, 0)]


def test_donors_are_the_riskier_ones(persons: duckdb.DuckDBPyConnection) -> None:
    source = "(SELECT *, 0.001 + 0.2 * (home % 2) AS risk, 0 AS none FROM persons)"
    moved = persons.execute(
        f"SELECT count(DISTINCT home) FILTER (home % 2 = 1) / count(DISTINCT home) FROM sdc_record_swap('{source}', {CALL}, "
        "risk := ['none', 'risk'], threshold := 0.5, return_swapped_id := true) WHERE swapped_with IS NOT NULL"
    ).fetchall()[0][0]
    assert moved > 0.9


def test_the_kernel() -> None:
    risk = np.array([[0.0, 0.5, 0.2], [1.0, 0.5, 0.2]])
    assert levels_above(risk, 0.2).tolist() == [1, 0, -1]
    assert rarities(risk)[1].tolist() == [1, 2, 5]
    assert np.isfinite(rarities(risk)).all()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("risk := ['in_state', 'in_place']", "arguments 'risk' and 'threshold' go together"),
        ("threshold := 0.5", "arguments 'risk' and 'threshold' go together"),
        (f"{GIVEN}, keys := ['age']", "give 'keys', from which the risk is counted, or 'risk', and not both"),
        (f"{GIVEN}, k := 5", "argument 'k' goes with 'keys'"),
        ("risk := ['in_place'], threshold := 0.5", "argument 'risk' must name a column for each one of 'hierarchy'"),
        ("risk := ['in_place', 'word'], threshold := 0.5", "argument 'risk' must name a column of numbers: 'word'"),
        ("risk := ['in_place', 'nothing'], threshold := 0.5", "unknown column 'nothing'"),
        ("risk := ['in_place', 'gap'], threshold := 0.5", "a risk in 'gap' is NULL, negative or not finite"),
        ("risk := ['below', 'in_place'], threshold := 0.5", "a risk in 'below' is NULL, negative or not finite"),
        ("risk := ['nan', 'in_place'], threshold := 0.5", "a risk in 'nan' is NULL, negative or not finite"),
        ("risk := ['in_place', 'in_place'], threshold := -1", "names column 'in_place' twice"),
        ("risk := ['in_state', 'in_place'], threshold := -1", "argument 'threshold' must be a number of at least 0"),
    ],
)
def test_bad_input(persons: duckdb.DuckDBPyConnection, more: str, message: str) -> None:
    source = (
        "(SELECT *, 'x' AS word, nullif(in_place, 1) AS gap, -in_state AS below, 'nan'::DOUBLE AS nan FROM persons)"
    )
    for function in ("sdc_record_swap", "sdc_record_swap_report"):
        with pytest.raises(duckdb.Error, match=message):
            persons.execute(f"FROM {function}($${source}$$, {CALL}, {more})").fetchall()
