"""Attacks of somebody who sees the same people under two policies, and that no role has both."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import duckdb
import pytest
from fixtures_of_attacks import show

import sdcduck
from sdcduck.guard import Guard, guard

Show = Callable[[str], None]
SECRET = "the secret of the tests"
TOWNS = 300


def suppressed(moved: int = 0) -> duckdb.DuckDBPyConnection:
    """People by region and sex, and a view of the women, each with a publication of its own.

    Args:
        moved: how many women are in r1 rather than in r3, and men the other way round: all that is open stays.
    """
    con = sdcduck.connect(secret=SECRET)
    cells = (
        f"('r1', 'f', {1 + moved}), ('r2', 'f', 4), ('r3', 'f', {40 - moved}), "
        f"('r1', 'm', {30 - moved}), ('r2', 'm', 60), ('r3', 'm', {20 + moved})"
    )
    con.execute(f"""CREATE TABLE people AS SELECT row_number() OVER () AS id, region, sex
        FROM (VALUES {cells}) t(region, sex, n), range(n); CREATE VIEW women AS FROM people WHERE sex = 'f'""")
    for name, by in (("people", "region, sex"), ("women", "region")):
        con.execute(
            f"FROM sdc_publish('p_{name}', 'SELECT {by}, count(*) AS n FROM {name} GROUP BY CUBE ({by})', max_count := 2, "
            "protect_zeros := true)"
        ).fetchall()
    return con


def protect_published(con: duckdb.DuckDBPyConnection, name: str, by: str, role: str) -> None:
    con.execute(
        f"FROM sdc_protect('{name}', unit := 'id', dimensions := {by}, method := 'suppression', publication := 'p_{name}', "
        f"role := '{role}')"
    ).fetchall()


def test_two_patterns_of_suppression_tell_what_each_hides(show: Show) -> None:
    """Each hides another cell beside the one woman: the total less what is open in either is her region."""
    con = suppressed()
    protect_published(con, "people", "['region', 'sex']", "a")
    protect_published(con, "women", "['region']", "b")
    one, other = guard(con, role="a"), guard(con, role="b")
    of_people = "SELECT region, count(*) AS n FROM people WHERE sex = 'f' GROUP BY region ORDER BY region"
    of_women = "SELECT region, count(*) AS n FROM women GROUP BY region ORDER BY region"
    patterns = [[row["n"] for row in g.sql(q).to_pylist()] for g, q in ((one, of_people), (other, of_women))]
    total = other.sql("SELECT count(*) AS n FROM women").to_pylist()[0]["n"]
    assert patterns == [[None, 4, None], [None, None, 40]]
    show(f"two publications of the same women: the hidden number is {total - 4 - 40}, which neither role is told")
    assert total - patterns[0][1] - patterns[1][2] == 1
    for name, by, role in (
        ("women", "['region']", "a"),
        ("people", "['region', 'sex']", "b"),
        ("women", "['region']", ""),
    ):
        with pytest.raises(duckdb.Error, match="publication"):
            protect_published(con, name, by, role)


def test_twins_are_one_under_one_publication() -> None:
    """One woman in r1 and two: whatever is asked of the table and of views of all of it, under the same publication."""
    found = []
    for moved in (0, 1):
        con = suppressed(moved)
        con.execute("CREATE VIEW again AS FROM people; CREATE VIEW more AS SELECT *, 1 AS one FROM again")
        names = ("people", "again", "more")
        for name in names:
            con.execute(
                f"FROM sdc_protect('{name}', unit := 'id', dimensions := ['region', 'sex'], method := 'suppression', "
                "publication := 'p_people')"
            ).fetchall()
        one = guard(con)
        found.append(
            [
                one.sql(
                    f"SELECT {keys}, count(*) AS n, count(*) FILTER (WHERE {condition}) AS m FROM {name} GROUP BY ALL"
                )
                for keys in ("region", "sex", "region, sex", "region = 'r1' AS r", "region < 'r3' AS r, sex = 'f' AS f")
                for condition in (
                    "sex = 'f'",
                    "region = 'r1'",
                    "region <> 'r2' AND sex = 'f'",
                    "region = 'r1' OR sex = 'm'",
                )
                for name in names
            ]
        )
    assert found[0] == found[1]
    assert found[0][0].num_rows == 3


def towns(con: duckdb.DuckDBPyConnection) -> None:
    """Towns of 30, a view of them, and three in which everybody has another record key."""
    con.execute(
        f"CREATE TABLE people AS SELECT i AS id, i % {TOWNS} AS town, 1000 + i * 7919 % 4001 AS income FROM range({30 * TOWNS}) t(i)"
    )
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    con.execute("CREATE VIEW same AS FROM people")
    for n in range(1, 4):
        con.execute(
            f"CREATE VIEW other_{n} AS SELECT * REPLACE (sdc_record_key(id + {n} * 1000000) AS record_key) FROM people"
        )


def errors(found: list[list[float]], true: list[float]) -> float:
    """The mean error of the mean of several numbers for each town."""
    return statistics.fmean(abs(statistics.fmean(of) - one) for *of, one in zip(*found, true, strict=True))


def of_towns(one: Guard, table: str, number: str) -> list[float]:
    rows = one.sql(f"SELECT town, {number} AS v FROM {table} GROUP BY town ORDER BY town").to_pylist()
    assert len(rows) == TOWNS
    return [float(row["v"]) for row in rows]


NUMBERS = ("count(*)", "sum(income)", "avg(income)", "stddev(income)")


def test_averaging_over_names_needs_as_many_roles(show: Show) -> None:
    """Four draws of one number have half the error; in one role, all names have one draw."""
    with sdcduck.connect(secret=SECRET) as con:
        towns(con)
        protect = "FROM sdc_protect('{}', unit := 'id', dimensions := ['town'], measures := ['income'], role := '{}')"
        for name in ("people", "same"):
            con.execute(protect.format(name, "")).fetchall()
        for n in range(1, 4):
            with pytest.raises(duckdb.Error, match="units have other keys there"):
                con.execute(protect.format(f"other_{n}", f"r{n}"))  # where what is for everybody holds, too
        true = {
            number: [
                float(row[0])
                for row in con.execute(f"SELECT {number} FROM people GROUP BY town ORDER BY town").fetchall()
            ]
            for number in NUMBERS
        }
        one = guard(con)
        here = {
            number: [of_towns(one, table, number) for table in ("people", "same", "(FROM people)")]
            for number in NUMBERS
        }
        assert all(found[0] == found[1] == found[2] for found in here.values())
        con.execute("FROM sdc_unprotect('people'); FROM sdc_unprotect('same')").fetchall()
        con.execute(protect.format("people", "r0")).fetchall()
        for n in range(1, 4):
            con.execute(protect.format(f"other_{n}", f"r{n}")).fetchall()
        guards = {"people": guard(con, role="r0"), **{f"other_{n}": guard(con, role=f"r{n}") for n in range(1, 4)}}
        for number in NUMBERS:
            there = [of_towns(asked, table, number) for table, asked in guards.items()]
            single, four = errors(here[number][:1], true[number]), errors(there, true[number])
            show(f"{number} of {TOWNS} towns: mean error of one name {single:.2f}, of four in four roles {four:.2f}")
            assert errors(here[number], true[number]) == pytest.approx(single)
            assert four < 0.75 * single


def test_the_smaller_of_two_thresholds_is_in_no_role() -> None:
    """Towns of 5 by a threshold of 10 are nowhere else."""
    with sdcduck.connect(secret=SECRET) as con:
        con.execute(
            "CREATE TABLE people AS SELECT i AS id, i % 40 AS town FROM range(200) t(i); CREATE VIEW again AS FROM people"
        )
        protect = "FROM sdc_protect('{}', unit := 'id', dimensions := ['town'], method := 'threshold', min_units := {})"
        con.execute(protect.format("people", 10)).fetchall()
        with pytest.raises(duckdb.Error, match="min_units"):
            con.execute(protect.format("again", 5))
        con.execute(protect.format("again", 10)).fetchall()
        for table in ("people", "again"):
            assert guard(con).sql(f"SELECT town, count(*) AS n FROM {table} GROUP BY town").num_rows == 0
