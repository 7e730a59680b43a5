"""k-disclosure: the differences that count, and the same suppression as the R package, cell for cell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import builders
import duckdb
import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from test_elimination import linked_tables, rank_of

import sdcduck
from sdcduck.methods.suppression import patterns
from sdcduck.methods.suppression.differences import direct_disclosure_order, disclosing_differences
from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.matrix import DummyMatrix


@pytest.mark.parametrize("coalition", [0, 1, 2, 3])
def test_the_reference(reference_data: Path, coalition: int) -> None:
    built = builders.count_case(reference_data, f"skd_mun_c{coalition}", "freq", ["mun", "inj"])
    y = built.inner["count"].to_numpy().astype(np.int64)
    freq = built.x.totals(y)
    result = suppress_secondary(
        built.x,
        direct_disclosure_order(freq),
        built.primary,
        singleton=y == 0,
        singleton_method="anySumNOTprimary",
        extra=disclosing_differences(built.x, freq, coalition).matrix,
    )
    np.testing.assert_array_equal(result.secondary, built.suppressed)


def members(x: DummyMatrix) -> list[frozenset[int]]:
    return [frozenset(x.indices[a:b].tolist()) for a, b in zip(x.indptr, x.indptr[1:], strict=False)]


@settings(max_examples=times(60, 200), deadline=None)
@given(linked_tables(), st.integers(0, 50), st.integers(0, 4), st.sampled_from([np.inf, 3]))
def test_the_differences_are_those_of_the_definition(problem, seed: int, coalition: int, bound: float) -> None:
    x, *_ = problem
    freq = x.totals(np.random.default_rng(seed).integers(0, 4, x.rows))
    cells = members(x)
    expected = {
        parent - child
        for p, parent in enumerate(cells)
        for c, child in enumerate(cells)
        if child < parent and 0 < freq[c] <= bound and freq[p] > 0 and freq[p] - freq[c] <= coalition
    }
    found = members(disclosing_differences(x, freq, coalition, bound).matrix)
    assert len(found) == len(set(found))
    assert set(found) == expected


@settings(max_examples=times(30, 100), deadline=None)
@given(linked_tables(), st.integers(0, 50), st.integers(0, 3))
def test_no_difference_follows_from_the_published_cells(problem, seed: int, coalition: int) -> None:
    x, *_ = problem
    freq = x.totals(np.random.default_rng(seed).integers(0, 4, x.rows))
    extra = disclosing_differences(x, freq, coalition).matrix
    result = suppress_secondary(x, direct_disclosure_order(freq), [], singleton_method="none", extra=extra)
    assert len(result.secondary) == x.columns
    published = np.flatnonzero(~result.secondary).tolist()
    pairs = [(r, c) for c, rows in enumerate(members(x) + members(extra)) for r in rows]
    both = DummyMatrix.from_pairs(*np.array(pairs).T, (x.rows, x.columns + extra.columns))
    rank = rank_of(both, published)
    assert result.rank == (rank if extra.columns else 0)
    for c in range(x.columns, both.columns):
        assert rank_of(both, [*published, c]) == rank + 1


def test_bad_input_is_named() -> None:
    x = DummyMatrix.from_pairs(np.array([0, 1, 0]), np.array([0, 0, 1]), (2, 2))
    with pytest.raises(ValueError, match="one count for each cell"):
        disclosing_differences(x, np.ones(3))
    with pytest.raises(ValueError, match="coalition must not be negative"):
        disclosing_differences(x, np.ones(2), coalition=-1)
    with pytest.raises(ValueError, match="another number of inner cells"):
        suppress_secondary(x, [0], [1], extra=DummyMatrix.from_pairs(np.array([0]), np.array([0]), (3, 1)))
    assert disclosing_differences(x, np.array([5, 0])).matrix.columns == 0
    nothing = suppress_secondary(x, [0], [], extra=disclosing_differences(x, np.array([5, 0])).matrix)
    assert not nothing.secondary.any()


def test_columns_of_a_matrix() -> None:
    x = DummyMatrix.from_pairs(np.array([0, 1, 0, 2]), np.array([0, 0, 1, 2]), (3, 3))
    assert members(x.take(np.array([2, 0]))) == [{2}, {0, 1}]
    assert members(x.take(np.array([], np.int64))) == []
    assert members(x.beside(x.take(np.array([2])))) == [{0, 1}, {0}, {2}, {2}]


# --- As an argument of the SQL functions ------------------------------------------------------------------------------


INJURIES = "SELECT mun, inj, count(*) AS n FROM injured GROUP BY CUBE (mun, inj)"


@pytest.fixture
def con(reference_data: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The persons of the reference's table of accidents."""
    connection = sdcduck.connect()
    file = reference_data / "gausssuppression" / "input" / "mun_accidents.csv"
    connection.execute("CREATE TABLE injured AS SELECT mun, inj FROM read_csv(?), range(freq)", [str(file)])
    yield connection
    connection.close()


def suppressed_in(con: duckdb.DuckDBPyConnection, table: str) -> set[tuple[str, str]]:
    rows = con.execute(f"SELECT coalesce(mun, 'Total'), coalesce(inj, 'Total') FROM {table}").fetchall()
    return set(rows)


@pytest.mark.parametrize("coalition", [0, 1, 2, 3])
def test_the_reference_in_sql(con: duckdb.DuckDBPyConnection, reference_data: Path, coalition: int) -> None:
    built = builders.count_case(reference_data, f"skd_mun_c{coalition}", "freq", ["mun", "inj"])
    hidden = built.cells.loc[built.suppressed, ["mun", "inj"]]
    expected = set(hidden.itertuples(index=False, name=None))
    call = f"sdc_suppress('{INJURIES}', k_disclosure := {coalition}) WHERE suppressed"
    assert suppressed_in(con, call) == expected
    # A stored publication remembers it.
    con.execute(f"FROM sdc_publish('injuries', '{INJURIES}', k_disclosure := {coalition})").fetchall()
    assert suppressed_in(con, "sdc.injuries_cells WHERE n IS NULL") == expected
    assert suppressed_in(con, "sdc_suppress('injuries') WHERE suppressed") == expected
    assert suppressed_in(con, "sdc_audit('injuries')") == expected
    # From the stencil a difference follows no more than from the table.
    both = """SELECT c.n AS larger, sdc_is_open(s.stencil) AS told, sum(s.n) AS n FROM sdc.injuries_stencil s, injuries c
        WHERE s.mun = c.mun AND s.inj <> c.inj GROUP BY c.mun, c.inj, c.n HAVING sum(s.n) <= ? AND c.n > 0"""
    con.execute("CREATE TABLE injuries AS SELECT mun, inj, count(*) AS n FROM injured GROUP BY ALL")
    differences = con.execute(both, [coalition]).fetchall()
    assert differences
    assert not any(told for _, told, _ in differences)


def test_with_other_rules_and_a_cheaper_choice(con: duckdb.DuckDBPyConnection) -> None:
    call = f"sdc_suppress('{INJURIES}', k_disclosure := 1, max_count := 2"
    status = "SELECT status, count(*) FILTER (n BETWEEN 1 AND 2) FROM "
    shown = dict(con.execute(f"{status}{call}) GROUP BY ALL").fetchall())
    assert shown.keys() == {"open", "primary", "secondary"}
    assert shown["open"] == 0
    # What is saved is checked like the first choice, differences and all.
    lost = "SELECT sum(original) FROM sdc_audit"
    first, better = (
        con.execute(f"{lost}('{INJURIES}', k_disclosure := 1, improve := {improve})").fetchall()[0][0]
        for improve in (False, True)
    )
    assert better <= first


def test_forced_cells_that_tell_a_difference_are_named(con: duckdb.DuckDBPyConnection) -> None:
    # In k5 one person was injured: total and attribute forced, everybody there has it.
    [(inj,)] = con.execute("SELECT DISTINCT inj FROM injured WHERE mun = 'k5'").fetchall()
    call = f"$${INJURIES}$$, k_disclosure := 0, forced_if := $$mun = 'k5' AND (inj IS NULL OR inj = '{inj}')$$"
    found = con.execute(f"SELECT mun, inj, status, why FROM sdc_suppress({call}) WHERE why IS NOT NULL").fetchall()
    assert found == [("k5", None, "forced", "k_disclosure follows from forced cells")]
    assert con.execute(f"SELECT unsafe_cells FROM sdc_publish('k', {call})").fetchall() == [(1,)]
    # Forced to be published, the total alone tells nothing.
    call = call.replace(f" OR inj = '{inj}'", "")
    assert con.execute(f"SELECT unsafe_cells FROM sdc_publish('k', {call})").fetchall() == [(0,)]


def test_a_difference_that_is_given_away_does_not_pass_the_check(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_extra(*arguments: object, extra: object, **options: object) -> object:
        return suppress_secondary(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(patterns, "suppress_secondary", without_extra)
    with pytest.raises(duckdb.Error, match="did not pass the check"):
        con.execute(f"FROM sdc_suppress('{INJURIES}', k_disclosure := 1)").fetchall()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("k_disclosure := -1", "'k_disclosure' must be a whole number of at least 0"),
        ("k_disclosure := 1, min_contributors := 3", "'k_disclosure' is for counts"),
        ("k_disclosure := 1, singleton := 'numttHTT'", "unknown singleton method"),
    ],
)
def test_arguments_that_do_not_go_together(con: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        con.execute(f"FROM sdc_suppress('{INJURIES}', {arguments})").fetchall()


def test_the_optimum_is_for_cells(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"FROM sdc_publish('injuries', '{INJURIES}', k_disclosure := 1)").fetchall()
    with pytest.raises(duckdb.Error, match="knows nothing of k_disclosure"):
        con.execute("FROM sdc_optimum('injuries')").fetchall()
