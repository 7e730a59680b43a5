"""Bands of what a unit has of a measure in all: dimensions of units, on the borders that the custodian declared."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
import visits_database
from visits_database import answer, answer_of_duckdb

import sdcduck
from sdcduck.guard import Guard, Refused

_BAND = "CASE WHEN {0} < 700 THEN 'low' WHEN {0} < 1200 THEN 'middle' ELSE 'high' END"
_TOTALS = "SELECT id, sum(cost) AS total FROM visits GROUP BY id"
_DECLARED = "{'cost': [20, 40], 'sum(cost)': [700, 1200]}"


@pytest.fixture(scope="module", params=visits_database.METHODS)
def guarded(request: pytest.FixtureRequest) -> Iterator[tuple[str, duckdb.DuckDBPyConnection, Guard]]:
    """The visits with bands, and beside them each unit with the band of its total, which the custodian worked out."""
    with visits_database.made(request.param) as con:
        con.execute(f"CREATE TABLE spent AS SELECT id, {_BAND.format('total')} AS band FROM ({_TOTALS})")
        protect(con, _DECLARED, visits_database.METHODS[request.param])
        visits_database.protect(con, "spent", "['band']", "[]", request.param)
        yield request.param, con, sdcduck.open_guard(con)


def protect(con: duckdb.DuckDBPyConnection, bands: str, method: str) -> None:
    con.execute(
        f"FROM sdc_protect('visits', unit := 'id', dimensions := ['diagnosis', 'day'], measures := ['cost', 'fee'], "
        f"population := 'persons', bands := {bands}, {method})"
    ).fetchall()


ANSWERED = [
    f"SELECT {_BAND.format('total')} AS band, count(*) AS n FROM ({_TOTALS}) GROUP BY 1",
    f"SELECT band, count(*) AS n FROM (SELECT id, {_BAND.format('sum(cost)')} AS band FROM visits GROUP BY id) GROUP BY band",
]
AS_DUCKDB = [
    "SELECT count(*) AS n FROM (SELECT id FROM visits GROUP BY id HAVING sum(cost) >= 1200)",
    "SELECT count(*) AS n FROM (SELECT id FROM (SELECT id, cost AS c FROM visits WHERE diagnosis <> 'cut') GROUP BY id "
    "HAVING sum(c) >= 700 AND count(*) > 2)",
    f"SELECT region, count(*) FILTER (WHERE t.total >= 700) AS n FROM patients p JOIN ({_TOTALS}) t USING (id) GROUP BY region",
    f"SELECT region, count(*) AS n FROM patients p LEFT JOIN ({_TOTALS}) t USING (id) WHERE t.total < 700 OR t.total IS NULL GROUP BY 1",
    "SELECT region, count(*) AS n FROM patients WHERE id IN (SELECT id FROM visits GROUP BY id HAVING sum(cost) < 700) GROUP BY region",
]


@pytest.mark.parametrize("query", ANSWERED)
def test_a_band_of_a_total_is_the_stored_column_of_it(
    guarded: tuple[str, duckdb.DuckDBPyConnection, Guard], query: str
) -> None:
    method, con, guard = guarded
    stored = answer(guard, "SELECT band, count(*) AS n FROM spent GROUP BY band")
    assert len(stored) == 3
    assert answer(guard, query) == stored
    if method == "threshold":
        assert stored == answer_of_duckdb(con, query)


@pytest.mark.parametrize("query", AS_DUCKDB)
def test_bands_of_totals_are_conditions_wherever_units_stand(
    guarded: tuple[str, duckdb.DuckDBPyConnection, Guard], query: str
) -> None:
    method, con, guard = guarded
    found, wanted = answer(guard, query), answer_of_duckdb(con, query)
    assert [row[:-1] for row in found] == [row[:-1] for row in wanted]
    if method == "threshold":
        assert found == wanted
    else:
        for one, other in zip(found, wanted, strict=True):
            assert abs(float(one[-1]) - float(other[-1])) <= 10


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT count(*) FROM (SELECT id FROM visits GROUP BY id HAVING sum(cost) >= 750)", "sum\\(cost\\); compare it .* 700, 1200"),
        (f"SELECT count(*) FROM ({_TOTALS}) WHERE total >= 40", "compare it .* 700, 1200"),  # a border of single visits
        ("SELECT count(*) FROM visits WHERE cost >= 700", "compare it .* 20, 40"),  # and one of totals
        ("SELECT count(*) FROM (SELECT id FROM visits GROUP BY id HAVING sum(fee) >= 2)", "'sum\\(fee\\)': \\[.., 2, ..\\]"),
        ("SELECT count(*) FROM (SELECT id, sum(fee) AS t FROM visits GROUP BY id) WHERE t >= 2", "'sum\\(fee\\)': \\[.., 2, ..\\]"),
        # Twice each visit, so that 700 would be 350.
        ("SELECT count(*) FROM (SELECT id, sum(cost) AS t FROM (SELECT id, cost FROM visits UNION ALL SELECT id, cost FROM visits) "
         "GROUP BY id) WHERE t >= 700", "SDC0"),
        ("SELECT count(*) FROM (SELECT id, sum(c) AS t FROM (SELECT v.id, v.cost AS c FROM visits v JOIN visits w USING (id)) GROUP BY id) "
         "WHERE t >= 700", "SDC041"),
        ("SELECT count(*) FROM (SELECT p.id, sum(income) AS t FROM patients p JOIN visits v USING (id) GROUP BY p.id) WHERE t >= 700", "SDC041"),
        ("SELECT count(*) FROM (SELECT v.id, sum(v.cost) AS t FROM visits v JOIN visits w USING (id) GROUP BY v.id) WHERE t >= 700", "SDC0"),
        ("SELECT count(*) FROM (SELECT id, sum(cost * 2) AS t FROM visits GROUP BY id) WHERE t >= 700", "SDC0"),
        ("SELECT count(*) FROM (SELECT id, sum(cost) + sum(cost) AS t FROM visits GROUP BY id) WHERE t >= 700", "SDC041"),
        # It is 0 of who has no such visit, which is below 700, and nothing to the rest of the guard.
        ("SELECT count(*) FROM (SELECT id FROM visits GROUP BY id HAVING sum(CASE WHEN diagnosis = 'cut' THEN cost ELSE 0 END) < 700)", "SDC052"),
        ("SELECT count(*) FROM (SELECT id, sum(coalesce(cost, 0)) AS t FROM visits GROUP BY id) WHERE t < 700", "SDC052"),
    ],
)  # fmt: skip
def test_what_is_no_declared_border_of_a_total_is_refused(
    guarded: tuple[str, duckdb.DuckDBPyConnection, Guard], query: str, said: str
) -> None:
    with pytest.raises(Refused, match=said):
        guarded[2].sql(query)


def test_bands_of_totals_are_shown_and_checked(guarded: tuple[str, duckdb.DuckDBPyConnection, Guard]) -> None:
    con = guarded[1].cursor()
    ((shown,),) = con.execute("SELECT bands FROM sdc_policies() WHERE name = 'visits'").fetchall()
    assert shown == {"cost": [20, 40], "sum(cost)": [700, 1200]}
    for bands, said in [
        ("{'sum(nothing)': [1, 2]}", "nothing"),
        ("{'sum(day)': [1, 2]}", "'day' is not one of the measures"),
        ("{'avg(cost)': [1, 2]}", "avg"),
        ("{'sum(cost)': [2, 1]}", "must ascend"),
    ]:
        with pytest.raises(duckdb.Error, match=said):
            protect(con, bands, "method := 'threshold', min_units := 1")


def test_a_measure_that_is_called_like_a_total_has_its_own_bands() -> None:
    with visits_database.made("threshold") as con:
        con.execute('CREATE TABLE spendings AS SELECT id, diagnosis, cost, cost * 100 AS "sum(cost)" FROM visits')
        con.execute("FROM sdc_add_record_key('spendings', unit := 'id')").fetchall()
        con.execute(
            "FROM sdc_protect('spendings', unit := 'id', dimensions := ['diagnosis'], measures := ['cost', 'sum(cost)'], population := 'persons', "
            "bands := {'sum(cost)': [700, 1200]}, method := 'threshold', min_units := 1)"
        ).fetchall()
        guard = sdcduck.open_guard(con)
        assert "of the total" not in str(guard.sql("DESCRIBE spendings").to_pylist())
        guard.sql('SELECT count(*) FROM spendings WHERE "sum(cost)" >= 700')
        with pytest.raises(Refused, match="SDC041"):
            guard.sql("SELECT count(*) FROM (SELECT id FROM spendings GROUP BY id HAVING sum(cost) >= 700)")
