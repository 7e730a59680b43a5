"""The solver says nothing on standard output, whatever it is asked."""

from __future__ import annotations

from contextlib import suppress

import duckdb
import numpy as np
import pytest
from small_tables import publication

import sdcduck
from sdcduck.methods.linear_programs import quiet_highs
from sdcduck.methods.suppression.audit import audit, singleton_hazards
from sdcduck.methods.suppression.determined import determined
from sdcduck.methods.suppression.optimal import optimal_suppression
from sdcduck.methods.suppression.rounding import controlled_rounding

CUBE = "SELECT a, b, count(*) AS n, sum(v) AS v FROM people GROUP BY CUBE (a, b)"


def test_the_options_are_those_of_silence() -> None:
    highs = quiet_highs()
    assert [highs.getOptionValue(name)[1] for name in ("output_flag", "log_to_console")] == [False, False]


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e12])
def test_models_of_all_kinds(capfd: pytest.CaptureFixture[str], size: float) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        records = [{"a": f"{a}", "b": f"{b}", "g": f"{a % 3}"} for a in range(3 + seed) for b in range(5)]
        x, _ = publication(records, [[["a", "g", ""], ["b", ""]]])
        y = np.where(rng.random(x.rows) < 0.3, 0, rng.random(x.rows) * size)
        z, hidden = x.totals(y), rng.random(x.columns) < 0.6
        audit(x, z, hidden, prior=20.0, jobs=2, until=np.inf)
        singleton_hazards(x, z, hidden, y, rng.integers(0, 4, x.rows), jobs=2, until=np.inf)
        determined(x, y, hidden)
        whole = rng.integers(0, 9, x.rows)
        audit(x, x.totals(whole), hidden, integer=True, jobs=2, until=np.inf)
        with suppress(ValueError):  # no inner values agree with such totals
            audit(x, x.totals(whole) + rng.integers(0, 2, x.columns), hidden, jobs=2, until=np.inf)
        first = rng.random(x.columns) < 0.2
        for time_limit in (0.0, 0.01, 1.0):
            optimal_suppression(x, whole, first, np.ceil(0.2 * x.totals(whole)), time_limit=time_limit)
            controlled_rounding(x, whole, 3, time_limit=time_limit)
    assert capfd.readouterr() == ("", "")


def test_statements(capfd: pytest.CaptureFixture[str]) -> None:
    with sdcduck.connect() as con:
        con.execute("SET enable_progress_bar = false")  # DuckDB 1 shows how far a statement of some seconds is
        con.execute(
            "CREATE TABLE people AS SELECT hash(i) % 5 AS a, hash(i + 1000) % 6 AS b, hash(i + 7) % 100 AS v "
            "FROM range(90) t(i)"
        )
        for call in (
            "sdc_suppress(?, p_percent := 20, protect_intervals := true, improve := true)",
            "sdc_audit(?, max_count := 2, insider := true)",
            "sdc_optimum(?, max_count := 2, time_limit := 1)",
            "sdc_publish('p', ?, max_count := 2)",
            "sdc_round_table(?, method := 'controlled', base := 3)",
        ):
            assert con.execute(f"FROM {call}", [CUBE]).fetchall()
        with pytest.raises(duckdb.Error):
            con.execute("FROM sdc_audit(?, max_count := 2, time_limit := -1)", [CUBE])
    assert capfd.readouterr() == ("", "")
