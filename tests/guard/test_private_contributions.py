"""Units with several rows under differential privacy: so many of them are looked at, and the noise covers all of these."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from private_people import declared

import sdcduck
from sdcduck.catalog import Privacy
from sdcduck.guard import Guard
from sdcduck.guard.calls import Noised
from sdcduck.guard.costs import sensitivity

pytest.importorskip("opendp")

UNITS, MOST = 1000, 3
VISITS = f"""SELECT i AS id, ['n', 's', 'e', 'w'][1 + (i + j) % 4] AS region, (i * 7 + j) % 90 AS age, i % 3 = 0 AS ill,
    1000.0 * j AS income FROM range({UNITS}) t(i), range(1 + i % 5) v(j)"""
"""Of unit i there are 1 + i % 5 rows: of most of them three at most, and of two fifths more."""


def made(path: Path, records: str = VISITS, **other: str) -> Path:
    con = sdcduck.connect(str(path))
    con.execute(f"CREATE TABLE people AS {records}")
    con.execute(declared(**{"contributions": str(MOST), **other})).fetchall()
    con.close()
    return path


def exact(guard: Guard, query: str) -> list[list[int]]:
    """The totals of a question before there is noise."""
    rewritten, _ = guard.rewritten(query)
    (release,) = rewritten.releases
    return guard._limited.ask(lambda cursor: cursor.execute(release.totals).fetchall())  # type: ignore[return-value]


def test_no_unit_adds_more_rows_than_declared(tmp_path: Path) -> None:
    """Whatever is asked, and in all groups together; of a unit with fewer rows all of them count."""
    looked_at = sum(min(1 + i % 5, MOST) for i in range(UNITS))
    with closing(sdcduck.open_guard(made(tmp_path / "r"))) as guard:
        (row,) = guard.sql(
            "SELECT count(*) AS n, count(DISTINCT id) AS units, sum(income) AS s FROM people"
        ).to_pylist()
        assert row["n"] == pytest.approx(looked_at, abs=25)
        assert row["units"] == pytest.approx(UNITS, abs=25)
        assert exact(guard, "SELECT count(*) FROM people")[0][0] == looked_at
        assert exact(guard, "SELECT count(*) FROM (SELECT region FROM people)")[0][0] == looked_at
        groups = exact(guard, "SELECT region, age, count(*) FROM people GROUP BY ALL")
        assert sum(row[-1] for row in groups) == looked_at


def test_which_rows_count_follows_from_their_unit_alone(tmp_path: Path) -> None:
    """Others that come or go, and another order of storage, change nothing of what a unit adds."""
    asked = "SELECT region, age, count(*) FROM people GROUP BY ALL"
    of = "SELECT * FROM (FROM ({}) WHERE id < 5 ORDER BY {}) UNION ALL SELECT * REPLACE (id + 5000 AS id, 'x' AS region) FROM ({}) WHERE id {}"
    key = "'0011223344556677'"
    found = []
    for place, (order, others) in enumerate([("income", "> 900"), ("-income", "> 500"), ("hash(income)", "> 900")]):
        register = made(tmp_path / str(place), of.format(VISITS, order, VISITS, others))
        with closing(sdcduck.connect(str(register))) as con:
            con.execute("UPDATE sdc.settings SET value = regexp_replace(value, '\"declared\": \"[0-9a-f]+\"', "
                        f"'\"declared\": \"' || {key} || '\"') WHERE starts_with(name, 'privacy ')")  # fmt: skip
        with closing(sdcduck.open_guard(register)) as guard:
            rows = exact(guard, asked)
            found.append(Counter({tuple(row[:-1]): row[-1] for row in rows if row[0] is not None}))
    assert found[0] == found[1] == found[2]
    assert found[0].total() == 1 + 2 + 3 + 3 + 3


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_the_noise_covers_the_worst_that_a_unit_can_do(neighbours: str, delta: float, rows: int) -> None:
    """Its rows in one group or in as many as there are, and of another one in the same groups or in others."""
    privacy = Privacy(1, delta, 0.1, neighbours, contributions=rows)

    def apart(one: list[int], other: list[int]) -> float:
        differences = [abs(a - b) for a, b in zip(one, other, strict=True)]
        return sum(differences) if delta == 0 else sum(value**2 for value in differences) ** 0.5

    none, spread = [0] * 2 * rows, [1] * rows + [0] * rows
    heap = [rows] + [0] * (2 * rows - 1)
    befores = [none] if neighbours == "add_remove" else [none, spread, heap]
    afters = [spread[::-1], heap[::-1]]
    counted, once = Noised(0, 1, 1.0, "count"), Noised(0, 1, 1.0, "count", once=True)
    worst = max(apart(one, other) for one in befores for other in afters)
    assert sensitivity(counted, privacy, grouped=True, gaussian=delta > 0) == pytest.approx(worst)
    assert sensitivity(counted, privacy, grouped=False, gaussian=delta > 0) == rows
    worst_once = max(apart(one, spread[::-1]) for one in befores[:2])
    assert sensitivity(once, privacy, grouped=True, gaussian=delta > 0) == pytest.approx(worst_once)
    assert sensitivity(once, privacy, grouped=False, gaussian=delta > 0) == 1


def test_how_many_rows_are_looked_at_is_declared(tmp_path: Path) -> None:
    """Not taken from the records; a table in which each unit happens to have one row has the same noise."""
    con = sdcduck.connect(str(tmp_path / "r"))
    con.execute(f"CREATE TABLE people AS {VISITS}")
    with pytest.raises(duckdb.Error, match="contributions := 3"):
        con.execute(declared()).fetchall()
    for wrong in ("0", "1.5", "-1", "100000", "NULL"):
        with pytest.raises(duckdb.Error, match="contributions"):
            con.execute(declared(contributions=wrong)).fetchall()
    con.close()
    noise = []
    for place, records in enumerate((VISITS, f"SELECT * FROM ({VISITS}) WHERE age = (id * 7) % 90")):
        with closing(sdcduck.open_guard(made(tmp_path / str(place), records, per_question="0.1"))) as guard:
            noise.append(guard.noise("SELECT region, count(*) AS n FROM people GROUP BY region").to_pylist())
    assert noise[0] == noise[1]
    with closing(sdcduck.open_guard(made(tmp_path / "one", contributions="1", per_question="0.1",
                                         records=f"SELECT * FROM ({VISITS}) WHERE income = 0"))) as guard:  # fmt: skip
        (one,) = (row["sd"] for row in guard.noise("SELECT count(*) AS n FROM people").to_pylist())
    with closing(sdcduck.open_guard(tmp_path / "0")) as guard:
        (several,) = (row["sd"] for row in guard.noise("SELECT count(*) AS n FROM people").to_pylist())
    assert several == pytest.approx(MOST * one)


def test_rows_of_a_unit_are_not_put_beside_each_other(tmp_path: Path) -> None:
    with closing(sdcduck.open_guard(made(tmp_path / "r"))) as guard, pytest.raises(sdcduck.guard.Refused):
        guard.sql("SELECT count(*) FROM people AS a JOIN people AS b USING (id)")


def test_rows_of_a_unit_are_numbered_and_count_as_rows_do(tmp_path: Path) -> None:
    numbered = (
        "SELECT count(*) AS n FROM (SELECT id, row_number() OVER (PARTITION BY id ORDER BY age) AS k FROM people) "
        "WHERE k > 2"
    )
    with closing(sdcduck.open_guard(made(tmp_path / "r"))) as guard:
        asked = (numbered, "SELECT count(*) AS n FROM people")
        spread = [guard.noise(question).to_pylist()[0]["sd"] for question in asked]
        assert spread[0] == pytest.approx(spread[1])
        assert guard.sql(numbered).num_rows == 1
