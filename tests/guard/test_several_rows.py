"""Variances and quantiles where a unit has several rows: computed again from the records, by hand."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from effort import times
from own_numbers import on_grid, own, spread

import sdcduck
from sdcduck.guard import Guard, Refused, guard

MOST = 5
"""The largest noise of the built-in p-table for counts."""


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Visits of 400 people: up to 7 each in the wards 0 to 3; ward 8 is that of one person, who comes often, and ward 9
    that of eight people and one who comes more often than all of them."""
    with sdcduck.connect(secret="the secret of the tests") as connection:
        connection.execute("""
            CREATE TABLE visits AS
            SELECT i AS person, nth % 4 AS ward, CASE WHEN (i + nth) % 9 > 0 THEN i * 7919 % 500 + nth END AS cost,
                (i * 104729 % 1000) / 7 AS share FROM range(400) people(i), range(1 + i % 7) numbers(nth)
            UNION ALL SELECT 500, 8, 100 + nth, nth FROM range(30) numbers(nth)
            UNION ALL SELECT 600 + i, 9, 10 * i, 1 FROM range(8) people(i)
            UNION ALL SELECT 700, 9, 5000 + nth, 2 FROM range(100) numbers(nth);
            CREATE TABLE single AS SELECT i AS person, 0 AS ward, i * 7919 % 500 AS cost FROM range(300) people(i);
        """)
        for table, measures in (("visits", "['cost', 'share']"), ("single", "['cost']")):
            connection.execute(f"FROM sdc_add_record_key('{table}', unit := 'person')").fetchall()
            connection.execute(
                f"FROM sdc_protect('{table}', unit := 'person', dimensions := ['ward'], measures := {measures})"
            ).fetchall()
        yield connection


@pytest.fixture(scope="module")
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return guard(con)


class Ward:
    """The visits of one ward with a value, by person."""

    def __init__(self, con: duckdb.DuckDBPyConnection, column: str, condition: str) -> None:
        self.con, self.column = con, column
        self.values: dict[int, list[float]] = defaultdict(list)
        self.keys: dict[int, int] = {}
        for person, key, value in con.execute(
            f"SELECT person, record_key, {column} FROM visits WHERE {condition} AND {column} IS NOT NULL"
        ).fetchall():
            self.values[person].append(float(value))
            self.keys[person] = key

    def published(self) -> tuple[int, int]:
        """The published numbers of people and of visits."""
        rows = {who: len(values) for who, values in self.values.items()}
        key = sum(self.keys[who] for who in rows)
        units = self.con.execute("SELECT sdc_ckm_count(?, ?)", [len(rows), key]).fetchall()[0][0]
        n, most = sum(rows.values()), max(rows.values())
        if most == 1:
            return units, units
        behind = self.con.execute(
            "SELECT sdc_ckm_count(?, ?)", [len(rows), spread(own(self.con, "rows"), key, n / most)]
        ).fetchall()
        counted = n + most * (behind[0][0] - len(rows))
        of_largest = spread(own(self.con, "the largest unit's rows"), key, n / most)
        noise = self.con.execute("SELECT sdc_ckm_sum(?, [?], ?) - ?", [n, most, of_largest, n]).fetchall()[0][0]
        noise += most * (of_largest / 99_999_989 - 0.5)
        return units, max(0, counted + math.floor(abs(noise) + 0.5) * (1 if noise > 0 else -1))

    def up_to(self, limits: list[float]) -> list[int]:
        """The published numbers of visits with values up to each limit."""
        of_rows, asked = own(self.con, "rows"), []
        for limit in limits:
            rows = {who: sum(value <= limit for value in values) for who, values in self.values.items()}
            rows = {who: n for who, n in rows.items() if n}
            n, most, key = sum(rows.values()), max(rows.values()), sum(self.keys[who] for who in rows)
            asked.append((n, most, len(rows), key if most == 1 else spread(of_rows, key, n / most)))
        behind = self.con.execute(
            "SELECT sdc_ckm_count(u, k) FROM (SELECT unnest(?) AS u, unnest(?) AS k, unnest(range(?)) AS i) ORDER BY i",
            [[units for _, _, units, _ in asked], [key for *_, key in asked], len(asked)],
        ).fetchall()
        return [max(0, n + most * (count - units)) for (n, most, units, _), (count,) in zip(asked, behind, strict=True)]

    def variance(self) -> float | None:
        """Squared deviations from the mean, perturbed by as much as goes with those of one person together."""
        units, rows = self.published()
        if units <= 1 + MOST or rows <= 1:
            return None
        everything = [value for values in self.values.values() for value in values]
        mean = math.fsum(everything) / len(everything)
        of_units = [math.fsum((value - mean) ** 2 for value in values) for values in self.values.values()]
        mean_of_rows = math.fsum(of_units) * len(of_units) / len(everything)
        key = spread(own(self.con, f"variance of {self.column}"), sum(self.keys.values()), _digits(mean_of_rows, 6))
        perturbed = self.con.execute(
            "SELECT sdc_ckm_sum(?, [?], ?)", [math.fsum(of_units), max(of_units), key]
        ).fetchall()[0][0]
        grid, repeated = own(self.con, f"grid of the variance of {self.column}"), len(everything) / len(of_units)
        largest, called = max(of_units), _digits(max(of_units) / repeated, 6)
        once = on_grid(grid, perturbed / repeated, largest, called, repeated)
        return on_grid(grid, once * repeated / (rows - 1), largest, called, rows - 1)

    def quantile(self, share: float) -> float | None:
        """The first bin whose published cumulative number of visits reaches the share.

        Of each person there are at most so many visits as five people could have on either side.
        """
        original = self.values
        binned = {who: sorted(_digits(value, 2) for value in values) for who, values in original.items()}
        found, limit = None, 1
        while limit == 1 or limit < 2 * max(map(len, binned.values())):
            self.values = defaultdict(list, {who: _evenly(values, limit) for who, values in binned.items()})
            rows = self.published()[1]
            if min(share, 1 - share) * rows >= 5 * limit:
                edges = sorted({value for values in self.values.values() for value in values})
                up_to = zip(edges, self.up_to(edges), strict=True)
                found = next((edge for edge, n in up_to if n >= share * rows), edges[-1])
            elif limit == 1:
                break
            limit *= 2
        self.values = original
        return found


def _evenly(values: list[float], limit: int) -> list[float]:
    """So many of these values, those in the middle of equal parts."""
    if len(values) <= limit:
        return values
    return [values[math.floor((place + 0.5) * len(values) / limit)] for place in range(limit)]


def _digits(value: float, significant: int) -> float:
    if value == 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(value))) - significant + 1)
    return math.floor(value / step + 0.5) * step


def close(one: float | None, other: float | None) -> bool:
    """Whether two numbers are the same but for rounding, or both missing."""
    return one is other if one is None or other is None else math.isclose(one, other, rel_tol=1e-6)


CONDITIONS = ("true", "ward = 0", "ward = 3", "ward = 8", "ward = 9", "ward < 2")


@pytest.mark.parametrize("column", ["cost", "share"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_variances_and_quantiles_by_hand(
    guarded: Guard, con: duckdb.DuckDBPyConnection, column: str, condition: str
) -> None:
    ward = Ward(con, column, condition)
    row = guarded.sql(
        f"SELECT variance({column}) AS v, median({column}) AS m, quantile_cont({column}, 0.8) AS q FROM visits WHERE {condition}"
    ).to_pylist()[0]
    assert close(row["v"], ward.variance())
    assert close(row["m"], ward.quantile(0.5))
    assert close(row["q"], ward.quantile(0.8))
    if condition == "true":
        original = con.execute(f"SELECT variance({column}), median({column}) FROM visits").fetchall()[0]
        assert row["v"] == pytest.approx(original[0], rel=0.5)
    if condition == "ward = 0":
        original = con.execute(f"SELECT median({column}) FROM visits WHERE ward = 0").fetchall()[0]
        assert row["m"] == pytest.approx(original[0], rel=0.2)


def test_groups_filters_and_the_other_forms(guarded: Guard, con: duckdb.DuckDBPyConnection) -> None:
    rows = guarded.sql(
        "SELECT ward, stddev(cost) AS s, var_pop(cost) AS p, count(cost) AS n, median(cost) AS m, "
        "median(cost) FILTER (ward < 2) AS f FROM visits GROUP BY ROLLUP (ward)"
    ).to_pylist()
    assert len(rows) >= 6
    for row in rows:
        condition = "true" if row["ward"] is None else f"ward = {row['ward']}"
        ward = Ward(con, "cost", condition)
        variance = ward.variance()
        assert row["s"] == (None if variance is None else pytest.approx(math.sqrt(variance), rel=1e-6))
        if variance is not None:
            assert row["p"] == pytest.approx(variance * (row["n"] - 1) / row["n"], rel=1e-6)
        assert close(row["m"], ward.quantile(0.5))
        few = Ward(con, "cost", f"{condition} AND ward < 2")
        assert close(row["f"], few.quantile(0.5) if few.values else None)


def test_a_unit_that_dominates_is_not_the_median(guarded: Guard, con: duckdb.DuckDBPyConnection) -> None:
    """Of the 108 visits of ward 9 one person made 100: every quantile would be a value of theirs."""
    shares = [place / 100 for place in range(times(5, 1), 100, times(9, 1))]
    asked = ", ".join(f"quantile_cont(cost, {share})" for share in shares)
    for condition in ("ward = 9", "ward = 8"):
        answers = guarded.sql(f"SELECT {asked} FROM visits WHERE {condition}").to_pylist()[0]
        assert set(answers.values()) == {None}
    assert guarded.sql("SELECT variance(cost) AS v FROM visits WHERE ward = 8").to_pylist() == [{"v": None}]


def test_rows_over_units_are_not_the_rows_of_somebody_who_is_alone(
    guarded: Guard, con: duckdb.DuckDBPyConnection
) -> None:
    """Each of 200 people is alone in a ward: the count of rows divided by that of people told how often they came."""
    con.execute("""
        CREATE OR REPLACE TABLE alone AS SELECT i AS person, i AS ward FROM range(200) people(i), range(20 + i * 7 % 80)""")
    con.execute("FROM sdc_add_record_key('alone', unit := 'person')").fetchall()
    con.execute("FROM sdc_protect('alone', unit := 'person', dimensions := ['ward'])").fetchall()
    rows = (
        guard(con)
        .sql(
            "SELECT ward, count(*) / count(DISTINCT person) AS one, sum(ward * 0 + 0.001) / count(DISTINCT person) AS other "
            "FROM alone GROUP BY ward"
        )
        .to_pylist()
    )
    assert len(rows) > 80
    for name, scale in (("one", 1), ("other", 1000)):
        right = sum(abs(row[name] * scale - (20 + row["ward"] * 7 % 80)) < 0.5 for row in rows)
        assert right < len(rows) / 4
    con.execute("FROM sdc_unprotect('alone')").fetchall()


def test_with_one_row_a_unit_it_is_the_other_macro(con: duckdb.DuckDBPyConnection) -> None:
    together = "SELECT {} FROM single"
    variance = together.format(
        "_sdc_variance_of_units(1, cost::DOUBLE, cost::DOUBLE ** 2, record_key, 'default_magnitude', 'default', 97, 53, 0, 0), "
        "_sdc_own_variance(cost, record_key, 'default_magnitude', 'default', 0.1, true, 8, 4, 97, 53)"
    )
    one, other = con.execute(variance).fetchall()[0]
    assert one == pytest.approx(other, rel=1e-9)
    for share in (0.1, 0.5, 0.77):
        quantile = together.format(
            f"_sdc_quantile_of_units([_sdc_significant(cost, 2)], record_key, {share}, 'default', 'default_magnitude', 0, 0), "
            f"sdc_quantile(cost, record_key, {share})"
        )
        one, other = con.execute(quantile).fetchall()[0]
        assert one == other is not None


def test_too_few_units_get_no_variance(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "FROM sdc_protect('visits', unit := 'person', dimensions := ['ward'], measures := ['cost'], min_units := 10, "
        "role := 'few')"
    ).fetchall()
    few = guard(con, role="few")
    row: dict[str, Any] = few.sql(
        "SELECT variance(cost) AS v, median(cost) AS m FROM visits WHERE ward = 9"
    ).to_pylist()[0]
    assert row == {"v": None, "m": None}


@pytest.mark.parametrize("method", ["threshold", "rounding"])
def test_other_methods(con: duckdb.DuckDBPyConnection, method: str) -> None:
    con.execute(
        f"FROM sdc_protect('visits', unit := 'person', dimensions := ['ward'], measures := ['cost'], "
        f"method := '{method}', min_units := 5, base := 5, role := 'other')"
    ).fetchall()
    guarded = guard(con, role="other")
    variance = "SELECT ward, variance(cost) AS v FROM visits GROUP BY ward ORDER BY ward"
    if method == "rounding":
        with pytest.raises(Refused, match="SDC052"):
            guarded.sql(variance)
    else:
        answer = [tuple(row.values()) for row in guarded.sql(variance).to_pylist()]
        assert answer == con.execute(
            "SELECT ward, var_samp(cost ORDER BY cost) FROM visits WHERE ward <> 8 GROUP BY ward ORDER BY ward"
        ).fetchall()  # fmt: skip
    with pytest.raises(Refused, match="SDC052"):
        guarded.sql("SELECT median(cost) FROM visits")
    con.execute("FROM sdc_unprotect('visits', role := 'other')").fetchall()
