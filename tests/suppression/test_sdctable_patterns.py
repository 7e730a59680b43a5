"""What the methods of sdcTable suppress in a small table: the same primaries, and what our audit says of their choice."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
from small_tables import column, publication, read_csv

from sdcduck.methods.suppression.audit import audit

METHODS = ("GAUSS", "HYPERCUBE", "OPT", "SIMPLEHEURISTIC")
CELLS = (
    "SELECT mun, inj, sum(freq) AS freq FROM accidents GROUP BY CUBE (mun, inj)"  # counted before: freq is the number
)


@pytest.mark.parametrize("method", METHODS)
def test_their_patterns_pass_our_audit(con: duckdb.DuckDBPyConnection, reference_data: Path, method: str) -> None:
    folder = reference_data / "sdctable"
    theirs = {(row["mun"], row["inj"]): row for row in read_csv(folder / f"mun_{method}.csv")}
    x, names = publication(read_csv(folder / "input_mun_accidents.csv"), [[["mun", ""], ["inj", ""]]])
    z = x.totals(column(read_csv(folder / "input_mun_accidents.csv"), "freq"))
    status = np.array([theirs[name[0], name[1]]["sdcStatus"] for name in names])
    assert len(names) == len(theirs) == 35
    assert z.tolist() == [float(theirs[name[0], name[1]]["Freq"]) for name in names]
    # Primary is what our rule marks, cells of 1 to 3, and nobody suppresses a zero.
    assert ((status == "u") == ((z >= 1) & (z <= 3))).all()
    assert (z[status == "x"] > 0).all()
    con.execute(f"CREATE TABLE accidents AS FROM read_csv('{folder}/input_mun_accidents.csv')")
    ours = con.execute(
        "SELECT coalesce(mun, 'Total'), coalesce(inj, 'Total'), status FROM "
        f"sdc_primary('{CELLS}', max_count := 3, freq := 'freq')"
    ).fetchall()
    assert {row[:2] for row in ours if row[2] == "primary"} == {
        tuple(name) for name, one in zip(names, status, strict=True) if one == "u"
    }
    # None of their primary cells can be computed.
    hidden = np.isin(status, ["u", "x"])
    found = audit(x, z, hidden, upl=np.ones(len(z)), lpl=np.zeros(len(z)), cells=status == "u")
    assert not found.exact.any()
    # The optimum needs each of its secondary cells: without one of them a primary cell is known more closely than by 1.
    if method == "OPT":
        assert found.protected.all()
        for cell in np.flatnonzero(status == "x"):
            fewer = hidden.copy()
            fewer[cell] = False
            again = audit(x, z, fewer, upl=np.ones(len(z)), lpl=np.zeros(len(z)), cells=status == "u")
            assert again.exact.any() or not again.protected.all()


def test_our_choice_beside_theirs(con: duckdb.DuckDBPyConnection, reference_data: Path) -> None:
    folder = reference_data / "sdctable"
    con.execute(f"CREATE TABLE accidents AS FROM read_csv('{folder}/input_mun_accidents.csv')")
    secondary = {
        method: sum(row["sdcStatus"] == "x" for row in read_csv(folder / f"mun_{method}.csv")) for method in METHODS
    }
    assert secondary == {"GAUSS": 5, "HYPERCUBE": 10, "OPT": 3, "SIMPLEHEURISTIC": 5}
    # As many as its Gaussian method and its simple heuristic, half as many as the hypercube, and two more than the optimum.
    for more in ("", ", singleton := 'none'"):
        found = con.execute(
            "SELECT count(*) FILTER (status = 'secondary'), count(*) FILTER (status = 'primary') FROM "
            f"sdc_suppress('{CELLS}', max_count := 3, freq := 'freq', improve := false{more})"
        ).fetchall()
        assert found == [(5, 8)]
