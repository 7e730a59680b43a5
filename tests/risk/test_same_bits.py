"""Measures do not hang on the number of threads, not even in their last bit: reports of two runs can be compared."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck

RECORDS = 250_000  # more than two row groups, so that threads share the work


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect() as connection:
        for table, first in (("originals", 0), ("made", 10)):
            connection.execute(f"""
                CREATE TABLE {table} AS SELECT i AS id, i // 3 AS home, (hash(i + {first}) % 60)::INTEGER AS age,
                    'r' || hash(i + {first + 1}) % 17 AS region, 'o' || hash(i + {first + 2}) % 40 AS job,
                    (hash(i + {first + 3}) % 10000)::INTEGER AS income, 1 + hash(i + {first + 4}) % 100 / 9 AS weight
                FROM range({RECORDS}) t(i)""")
        yield connection


BOTH, KEYS = "'originals', 'made'", "keys := ['age', 'region', 'job']"
COUNTS = ", ".join(
    f"'(SELECT region, job, count(*) AS n FROM {table} GROUP BY ALL)'" for table in ("originals", "made")
)


@pytest.mark.parametrize(
    "call",
    [
        f"sdc_k_anonymity('originals', {KEYS})",
        "sdc_l_diversity('originals', keys := ['age', 'region'], sensitive := 'job')",
        "sdc_t_closeness('originals', keys := ['age', 'region'], sensitive := 'job')",
        "sdc_t_closeness('originals', keys := ['age', 'region'], sensitive := 'income')",
        f"sdc_global_risk('originals', {KEYS}, weight := 'weight', household := 'home')",
        f"sdc_marketer_risk('originals', 'made', {KEYS})",
        "sdc_policy_risk('originals', 'made', policies := {'few': ['age'], 'more': ['age', 'region']})",
        f"sdc_tcap({BOTH}, keys := ['age', 'region'], sensitive := ['job'], weighting := 'synthetic', tau := 0.05)",
        f"sdc_disclosure({BOTH}, keys := ['age', 'region'], sensitive := ['job', 'income'])",
        f"sdc_table_risk_utility({COUNTS}, dimensions := ['region', 'job'], freq := 'n', protected_freq := 'n')",
    ],
)
def test_threads_change_nothing(con: duckdb.DuckDBPyConnection, call: str) -> None:
    found = []
    for threads in (4, 1, 3, 4):
        con.execute(f"SET threads = {threads}")
        found.append(repr(con.execute(f"FROM {call}").fetchall()))
    assert found == found[:1] * 4
