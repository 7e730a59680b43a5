"""Groups that nobody may know, `domains := 'private'`: those of many units appear, and half of delta is spent on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from private_people import RECORDS, made

import sdcduck
from sdcduck.catalog import Privacy
from sdcduck.catalog.cost_files import CostFile
from sdcduck.errors import SDCError
from sdcduck.guard import Guard, Refused
from sdcduck.guard.calls import Noised
from sdcduck.guard.costs import Charge, check_budget, cost_of, standing_of
from sdcduck.guard.rewritten import Release

pytest.importorskip("opendp")

ALL = "SELECT region, count(*) AS n FROM people GROUP BY region"
RARE = f"{RECORDS} UNION ALL SELECT 5000 + i, 'rare', 500, true, 1.0 FROM range(3) t(i)"
MANY = f"SELECT * EXCLUDE (x) REPLACE (id + 10000 * x AS id) FROM ({RECORDS}), range(5) r(x)"
PRIVATE = {"domains": "{'region': 'private', 'age': 'private'}", "delta": "1e-5"}
EXACT = {**PRIVATE, "per_question": "40"}
"""So much is spent that a handful of units appears, and numbers are about exact."""


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    register = made(tmp_path_factory.mktemp("domains") / "register", MANY, **{**EXACT, "per_question": "100"})
    with closing(sdcduck.open_guard(register)) as opened:
        yield opened


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE people AS {MANY}")
        con.execute("CREATE TABLE regions AS SELECT * FROM (VALUES ('n', 'upper', true), ('s', 'lower', false), "
                    "('e', 'upper', false), ('x', 'none', true)) v(region, area, warm)")  # fmt: skip
        yield con


@pytest.mark.parametrize(
    ("question", "keys"),
    [
        (ALL, 1),
        ("SELECT region, ill, count(*), sum(income), avg(income) FROM people WHERE age > 30 AND ill GROUP BY ALL", 2),
        ("SELECT r, count(*) FROM (SELECT upper(region) AS r, age FROM people WHERE age < 80) WHERE age > 3 GROUP BY r", 1),
        ("SELECT area, count(*) FROM people JOIN regions USING (region) GROUP BY area", 1),
        ("SELECT age // 30 AS third, count(*) FROM people GROUP BY third HAVING count(*) > 300 ORDER BY third LIMIT 2", 1),
        ("SELECT DISTINCT region FROM people", 1),
        ("SELECT region, count(*) * 100.0 / sum(count(*)) OVER () FROM people GROUP BY region", 1),
        ("SELECT region, ill, grouping(region, ill), count(*) FROM people WHERE ill IS NOT NULL GROUP BY CUBE (region, ill)", 3),
        ("SELECT region, count(*) FILTER (WHERE age < 2) FROM people GROUP BY region", 1),
        ("SELECT count(DISTINCT region) FROM people", 0),
        ("SELECT DATE '2026-01-01' + CAST(age // 30 AS INTEGER) AS d, count(*) FROM people GROUP BY d", 1),
    ],
)  # fmt: skip
def test_numbers_are_near_those_of_the_records(
    guard: Guard, plain: duckdb.DuckDBPyConnection, question: str, keys: int
) -> None:
    """All groups of many appear, with their values of their types; subtotals are of all records, not of what appears."""
    wanted = {row[:keys]: row[keys:] for row in plain.execute(question).fetchall()}
    found = {row[:keys]: row[keys:] for row in (tuple(row.values()) for row in guard.sql(question).to_pylist())}
    assert found.keys() - {(None, None, 1), (None,)} <= wanted.keys()
    assert len(found) >= len(wanted)
    for key, numbers in wanted.items():
        assert found[key] == pytest.approx(tuple(map(float, numbers)), rel=0.05, abs=25)


def test_a_group_of_few_does_not_appear_and_subtotals_hold_it(tmp_path: Path) -> None:
    register = made(tmp_path / "register", RARE, **{**PRIVATE, "per_question": "4"})
    with closing(sdcduck.open_guard(register)) as guard:
        asked = "SELECT region, count(*) AS n FROM people GROUP BY ROLLUP (region)"
        rows = {row["region"]: row["n"] for row in guard.sql(asked).to_pylist()}
        assert "rare" not in rows
        assert set(rows) == {"n", "s", "e", "w", "unknown", None}
        assert guard.sql("SELECT region, count(*) FROM people WHERE age > 400 GROUP BY region").num_rows == 0
        assert guard.sql("SELECT count(*) AS n FROM people WHERE age = 500").to_pylist()[0]["n"] == pytest.approx(
            3, abs=25
        )


def test_the_same_question_has_the_same_groups_and_numbers_for_nothing(tmp_path: Path) -> None:
    """Also sorted, cut, and after the guard was opened again: what was drawn is in the ledger, with its groups."""
    register = made(tmp_path / "register", **{**PRIVATE, "per_question": "1"})
    with closing(sdcduck.open_guard(register)) as guard:
        first = guard.sql(f"{ALL} ORDER BY region").to_pylist()
        spent = guard.sql("SHOW sdc_budget").to_pylist()
        assert guard.sql(f"{ALL} ORDER BY region DESC LIMIT 3").to_pylist() == first[::-1][:3]
    with closing(sdcduck.open_guard(register)) as guard:
        assert guard.sql(f"{ALL} HAVING count(*) > -1000 ORDER BY region").to_pylist() == first
        assert guard.sql("SHOW sdc_budget").to_pylist() == spent
        other = guard.sql(f"{ALL.replace('people', 'people WHERE age > 44')}").to_pylist()
        assert {row["region"] for row in other} <= {row["region"] for row in first}
    with closing(sdcduck.connect(str(register))) as con:
        rows = con.execute("SELECT unit, delta FROM sdc_dp_ledger('people')").fetchall()
    assert [unit for unit, _ in rows] == ["rho", "rho"]
    assert all(0 < delta < 5e-6 for _, delta in rows)


def test_values_of_all_types_come_back_as_they_are(tmp_path: Path) -> None:
    """Also quotes, line ends, what looks like a parameter, NaN and NULL."""
    odd = ["it''s", "a\nb", "$1", "?", "", '"x"; --', "ü"]
    rows = " UNION ALL ".join(
        f"SELECT i * 10 + {place} AS id, '{text}' AS t, {number} AS f, {place}::DECIMAL(9, 3) / 8 AS d, "
        f"TIMESTAMP '2026-01-0{place + 1} 01:02:03.5' AS moment FROM range(300) r(i)"
        for place, (text, number) in enumerate(zip(odd, ["'nan'::DOUBLE", "1e-300", "-0.5", "0.1", "1e300", "2.0", "NULL"], strict=True))
    )  # fmt: skip
    path = tmp_path / "register"
    with closing(sdcduck.connect(str(path))) as con:
        con.execute(f"CREATE TABLE people AS {rows}")
        con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['t', 'f', 'd', 'moment'], method := 'dp', "
                    "epsilon := 100, per_question := 50, delta := 1e-6, domains := 'private')").fetchall()  # fmt: skip
        wanted = con.sql("SELECT DISTINCT t, f, d, moment FROM people ORDER BY ALL").to_arrow_table()
    with closing(sdcduck.open_guard(path)) as guard:
        found = guard.sql("SELECT t, f, d, moment FROM people GROUP BY ALL ORDER BY ALL")
    assert str(found.to_pylist()) == str(wanted.to_pylist())
    assert found.schema.types == wanted.schema.types


def test_nothing_is_told_before_it_is_paid(tmp_path: Path) -> None:
    """Columns, noise, costs and refusals are the same, whatever groups there are."""
    told = []
    for place, records in enumerate((RECORDS, RARE, f"SELECT * REPLACE ('z' AS region) FROM ({RECORDS})")):
        register = made(tmp_path / str(place), records, **{**PRIVATE, "per_question": "1"})
        with closing(sdcduck.open_guard(register)) as guard:
            told.append([
                guard.columns(ALL), guard.noise(ALL).to_pylist(), guard.dp_preview(ALL).to_pylist(),
                guard.explain(ALL).notes, guard.sql(f"EXPLAIN {ALL}").to_pylist(), guard.sql("SHOW sdc_budget").to_pylist(),
            ])  # fmt: skip
            assert not [line for line in CostFile(register, "people").lines() if line["kind"] != "charge"]
            with pytest.raises(Refused) as refused:
                guard.sql("SELECT [region], count(*) FROM people GROUP BY ALL")
            told[-1].append(str(refused.value))
    assert told[0] == told[1] == told[2]
    assert "a group appears from a noisy number of" in str(told[0])


@pytest.fixture
def several(tmp_path: Path) -> Callable[..., Guard]:
    """Units with four rows each, two of which are looked at."""

    def make(**other: str) -> Guard:
        rows = f"SELECT * EXCLUDE (x) REPLACE (['a', 'b', 'c', 'd'][x + 1] AS region) FROM ({RECORDS}), range(4) r(x)"
        return sdcduck.open_guard(made(tmp_path / "register", rows, **{**EXACT, "contributions": "2", **other}))

    return make


def test_units_with_several_rows_choose_by_their_number(several: Callable[..., Guard]) -> None:
    """Each unit has two of its rows in it, in two regions: a thousand units are in each, but for which they are."""
    with closing(several()) as guard:
        rows = guard.sql(f"{ALL} ORDER BY region").to_pylist()
        assert [row["region"] for row in rows] == ["a", "b", "c", "d"]
        assert sum(row["n"] for row in rows) == pytest.approx(4000, abs=60)
        found = guard.sql("FROM sdc_confidence('SELECT region, count(DISTINCT id) AS n FROM people GROUP BY region')")
        assert all(row["n_lower"] <= row["n"] <= row["n_upper"] for row in found.to_pylist())


UNITS = Noised(0, 1, 1.0, "count")
CHOSEN = Release("t", "", "", "x", ("_g0",), (("n", UNITS),), selects="n")
KNOWN = Release("t", "", "x", "x", ("_g0",), (("n", UNITS),))


def test_the_ledger_counts_delta_beside_rho() -> None:
    """All questions that rho allows may choose their groups, and no delta is left then."""
    privacy = Privacy(1, 1e-6, 0.1, "add_remove", private=("region",))
    chosen, known = cost_of([CHOSEN], privacy), cost_of([KNOWN], privacy)
    assert known.delta == 0
    assert known.own == chosen.own
    charges: list[Charge] = []
    while True:
        try:
            check_budget(charges, chosen, privacy)
        except Refused:
            break
        charges.append(Charge(chosen.unit, chosen.own, "add_remove", chosen.delta))
    assert sum(charge.delta for charge in charges) == pytest.approx(privacy.of_groups, rel=1e-6)
    assert standing_of(charges, privacy).spent <= privacy.epsilon * (1 + 1e-9)
    assert len(charges) > 60
    # Two blocks share it, each with a higher threshold.
    both = cost_of([CHOSEN, CHOSEN], privacy)
    assert both.delta == chosen.delta
    assert chosen.appear[0] is not None
    assert both.appear[0] is not None
    assert both.appear[0][1] > chosen.appear[0][1]


def test_a_later_policy_counts_the_delta_of_an_earlier_one() -> None:
    """One with known groups has what is left of delta for its noise; one with less delta than was spent has nothing."""
    spent = [Charge("rho", 1e-4, "replace", 4e-7)]
    open_ = Privacy(1, 1e-6, 0.1, "replace")
    before, after = standing_of([replaced(spent[0])], open_), standing_of(spent, open_)
    assert after.spent > before.spent
    assert after.left <= before.left
    for other in (Privacy(1, 3e-7, 0.1, "replace"), Privacy(1, 0, 0.1, "replace")):
        assert math.isinf(standing_of(spent, other).spent)
        with pytest.raises(Refused, match="SDC080"):
            check_budget(spent, cost_of([KNOWN], other), other)


def replaced(charge: Charge) -> Charge:
    """The same without a delta."""
    return Charge(charge.unit, charge.cost, charge.neighbours)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"domains": "'private'", "delta": "0"}, "argument 'delta': domains := 'private' needs one"),
        ({"domains": "{'region': 'secret'}"}, "argument 'domains'"),
        ({"domains": "{'region': 'public'}"}, "says no values"),
        ({"domains": "'secret'"}, "'private' where nobody may know them"),
        ({"domains": "{'income': 'private'}"}, "not one of the dimensions"),
    ],
)
def test_bad_declarations(tmp_path: Path, other: dict[str, str], said: str) -> None:
    with pytest.raises((SDCError, duckdb.Error), match=said):
        made(tmp_path / "register", **other)


def test_labels_of_an_enum_are_no_secret(tmp_path: Path) -> None:
    records = f"SELECT * REPLACE (region::ENUM('n', 's', 'e', 'w', 'unknown') AS region) FROM ({RECORDS})"
    with pytest.raises(duckdb.Error, match="the type of 'region' tells its labels"):
        made(tmp_path / "register", records, **PRIVATE)
