"""What output checkers look for, cell by cell; that hidden cells stay hidden; and the record of who let what go."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdcduck import catalog
from sdcduck.errors import SDCError

CUBE = "SELECT r, c, count(*) AS n FROM t GROUP BY CUBE (r, c)"


def people(con: duckdb.DuckDBPyConnection, cells: Sequence[Sequence[int]]) -> None:
    """A table `t` of records with these counts by row and column."""
    rows = ", ".join(f"({r}, {c}, {n})" for r, row in enumerate(cells) for c, n in enumerate(row))
    con.execute(
        f"CREATE OR REPLACE TABLE t AS SELECT r, c, 1 + place AS y FROM (VALUES {rows}) v(r, c, n), range(n) s(place)"
    )


def failing(con: duckdb.DuckDBPyConnection, query: str, arguments: str = "") -> list[tuple[object, ...]]:
    return con.execute(
        f"SELECT r, c, why FROM sdc_check_table($$ {query} $$ {arguments}) WHERE status = 'fail' AND level = 'r x c' "
        "ORDER BY ALL"
    ).fetchall()


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        ([[12, 30], [9, 40]], [(1, 0, "n: threshold")]),  # 9 < 10
        ([[10, 30], [15, 40]], []),  # 10 is allowed
        ([[90, 10], [20, 15]], []),  # a share of exactly 0.9 is allowed
        ([[100, 10], [20, 15]], [(0, 0, "n: share")]),  # 100 of 110
        ([[0, 30], [15, 40]], [(0, 0, "n: zero"), *[(one, 1 - one, "n: all in one cell") for one in (0, 1)]]),
    ],
)
def test_the_rule_for_tables_of_counts(
    con: duckdb.DuckDBPyConnection, cells: list[list[int]], wanted: list[tuple[object, ...]]
) -> None:
    people(con, cells)
    assert failing(con, CUBE) == wanted
    # Totals are taken whether they are published or not.
    assert failing(con, "SELECT r, c, count(*) AS n FROM t GROUP BY r, c") == wanted


def test_zeros(con: duckdb.DuckDBPyConnection) -> None:
    people(con, [[0, 30], [15, 40]])
    status = "SELECT status FROM sdc_check_table('{}', zeros := '{}') WHERE r = 0 AND c = 0"
    for zeros, wanted in (("fail", [("fail",)]), ("review", [("review",)]), ("ignore", [])):
        assert con.execute(status.format(CUBE, zeros)).fetchall() == wanted
    impossible = ", structural_zeros := 'r = 0 AND c = 0'"
    assert failing(con, CUBE, impossible) == [(0, 1, "n: all in one cell"), (1, 0, "n: all in one cell")]


def test_a_dimension_of_one_category_says_nothing_about_anybody(con: duckdb.DuckDBPyConnection) -> None:
    people(con, [[20, 30, 25]])
    assert con.execute(f"SELECT DISTINCT status FROM sdc_check_table('{CUBE}')").fetchall() == [("pass",)]
    con.execute("UPDATE t SET c = NULL WHERE c = 0")  # NULL is a category
    assert con.execute(f"SELECT DISTINCT status FROM sdc_check_table('{CUBE}')").fetchall() == [("pass",)]
    con.execute("UPDATE t SET c = 0 WHERE c IS NOT NULL")  # 55 beside 20
    assert failing(con, CUBE) == []
    assert failing(con, CUBE, ", max_share := 0.7") == [(0, 0, "n: share")]


def test_sums(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE firms AS SELECT 'even' AS kind, i AS firm, 100 AS y FROM range(20) r(i) UNION ALL "
        "SELECT 'giant', i, CASE WHEN i = 100 THEN 100000 ELSE 10 END FROM range(100, 120) r(i) UNION ALL "
        "SELECT 'few', i % 3, 50 FROM range(20) r(i) UNION ALL "
        "SELECT 'debts', i, 100 * (i % 3 - 1) FROM range(200, 240) r(i)"
    )
    query = "SELECT kind, count(*) AS n, sum(y) AS y FROM firms GROUP BY kind"

    def found(arguments: str = "") -> dict[str, tuple[str, str]]:
        rows = con.execute(
            f"SELECT kind, status, why FROM sdc_check_table('{query}', contributor := 'firm'{arguments})"
        )
        return {kind: (status, why) for kind, status, why in rows.fetchall()}

    assert found() == {
        "even": ("pass", None),
        "giant": ("fail", "y: dominance (2, 90), p_percent"),
        "few": ("fail", "y: min_contributors"),
        "debts": ("review", "y: negative values"),
    }
    assert found(", dominance := NULL, p_percent := NULL")["giant"] == ("pass", None)
    two = query.replace("sum(y) AS y", "sum(1) AS one, sum(y) AS y")
    both = con.execute(f"SELECT why FROM sdc_check_table('{two}') WHERE kind = 'giant'").fetchall()
    assert both == [("y: dominance (2, 90), p_percent",)]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=2, max_size=3))
def test_no_published_numbers_add_up_to_a_hidden_cell(
    lasting: duckdb.DuckDBPyConnection, cells: list[list[int]]
) -> None:
    con = lasting
    people(con, cells)
    if sum(map(sum, cells)) == 0:
        return
    query = "SELECT r, c, count(*) AS n, sum(y) AS y FROM t GROUP BY CUBE (r, c)"
    rows = con.execute(
        f"SELECT r, c, level, n, y, status FROM sdc_check_table('{query}', dominance := NULL, p_percent := NULL, "
        "hide := true)"
    ).fetchall()
    inner = {row[:2]: row for row in rows if row[2] == "r x c"}
    for _, _, _, n, y, status in inner.values():
        assert (n is None) == (y is None) == (status == "hidden")
        assert n is None or n >= 10
    for r, c, _level, n, y, status in rows:
        if (r, c) in inner:
            continue
        shown = [
            row for key, row in inner.items() if r in (None, key[0]) and c in (None, key[1]) and row[3] is not None
        ]
        # Every margin is a function of inner cells that are shown anyway.
        assert (n, y) == ((sum(row[3] for row in shown), sum(row[4] for row in shown)) if shown else (None, None))
        assert (status == "hidden") == (not shown)


def test_hiding_needs_the_inner_cells(con: duckdb.DuckDBPyConnection) -> None:
    people(con, [[20, 3], [15, 40]])
    with pytest.raises(duckdb.Error, match="use sdc_suppress"):
        con.execute(
            "FROM sdc_check_table('SELECT r, c, count(*) AS n FROM t GROUP BY GROUPING SETS ((r), (c))', hide := true)"
        )


def test_statistics(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT 'many' AS g, greatest(i, 12) AS x, i AS person FROM range(100) r(i) UNION ALL "
        "SELECT 'few', i, i FROM range(9) r(i) UNION ALL SELECT 'twice', i, i % 6 FROM range(12) r(i) UNION ALL "
        "SELECT 'same', 5, i FROM range(50) r(i) UNION ALL SELECT 'eleven', i, i FROM range(10) r(i) UNION ALL "
        "SELECT 'many', NULL, 7"
    )
    rows = con.execute(
        "SELECT g, statistic, status, why, units, support FROM sdc_check_statistics('t', value := 'x', by := ['g'], "
        "statistics := ['min', 'max', 'range', 'median', 'p5', 'p90', 'mode', 'sd'], contributor := 'person')"
    ).fetchall()
    found = {(row[0], row[1]): row[2:] for row in rows}
    assert found["many", "min"] == ("pass", None, 100, 13)
    assert found["many", "max"] == ("fail", "too few behind it", 100, 1)
    assert found["many", "range"] == ("fail", "too few behind it", 100, 1)
    assert found["many", "median"][:2] == ("pass", None)
    assert found["many", "p5"] == ("pass", None, 100, 13)
    assert found["many", "p90"] == ("pass", None, 100, 11)
    assert found["many", "mode"] == ("pass", None, 100, 13)
    assert found["same", "mode"] == ("fail", "share", 50, 50)
    assert found["eleven", "sd"] == ("fail", "degrees of freedom", 10, 10)
    assert {found[g, s][1] for g, s in itertools.product(("few", "twice"), ("median", "sd", "mode"))} == {"threshold"}
    assert found["twice", "median"][2] == 6
    assert con.execute(
        "SELECT * FROM sdc_check_statistics('(FROM t WHERE g = ''many'')', value := 'x', statistics := ['variance'])"
    ).fetchall() == [("variance", 100, 100, "pass", None)]


@pytest.mark.parametrize(
    ("call", "status", "why"),
    [
        ("100, 3", "pass", None), ("13, 3", "pass", None), ("12, 3", "fail", "degrees of freedom"),
        ("NULL, 3", "fail", "degrees of freedom"), ("100, 0", "fail", "degrees of freedom"),
        ("100, 3, saturated := true", "review", "saturated: check it as a table"),
        ("100, 3, saturated := NULL", "review", "saturated: check it as a table"),
        ("100, 80, min_df := 30", "fail", "degrees of freedom"), ("100, 3, min_df := NULL", "fail", "degrees of freedom"),
    ],
)  # fmt: skip
def test_regressions(con: duckdb.DuckDBPyConnection, call: str, status: str, why: str | None) -> None:
    assert con.execute(f"SELECT status, why FROM sdc_check_regression({call})").fetchall() == [(status, why)]


def test_the_record(con: duckdb.DuckDBPyConnection) -> None:
    people(con, [[12, 30], [9, 40]])
    check = f"(FROM sdc_check_table(''{CUBE}''))"
    submit = f"FROM sdc_check_submit('by region', '{check}', requested_by := 'ann'"
    assert con.execute(submit + ")").fetchall() == [("by region", "sdc_check_table", "fail", 9, 1, 0)]
    assert con.execute(submit + ", exception := 'these nine are public')").fetchall()[0][2] == "fail"
    seen = (
        "SELECT name, status, why, submitted_by, exception, decision, decided_by, reason, releasable FROM sdc_outputs()"
    )
    assert con.execute(seen).fetchall() == [
        ("by region", "fail", "n: threshold", "ann", "these nine are public", None, None, None, False)
    ]
    decide = "FROM sdc_check_decide('by region', 'approve', decided_by := '{}', reason := {})"
    for who, reason, text in (
        ("Ann", "'I say so'", "somebody else"),
        ("bob", "NULL", "must say why"),
        ("", "'x'", "name a person"),
    ):
        with pytest.raises(duckdb.Error, match=text):
            con.execute(decide.format(who, reason)).fetchall()
    con.execute(decide.format("bob", "'published by the ministry'")).fetchall()
    assert con.execute(seen).fetchall()[0][5:] == ("approve", "bob", "published by the ministry", True)
    for again in (decide.format("eve", "'no'"), submit + ")"):
        with pytest.raises(duckdb.Error, match="decided already"):
            con.execute(again).fetchall()
    con.execute(
        "FROM sdc_check_submit('model', '(FROM sdc_check_regression(50, 4))', requested_by := 'ann')"
    ).fetchall()
    assert con.execute("SELECT releasable FROM sdc_outputs() WHERE name = 'model'").fetchall() == [(True,)]
    con.execute(
        "FROM sdc_check_decide('model', 'reject', decided_by := 'bob', reason := 'same as another one')"
    ).fetchall()
    assert con.execute("SELECT releasable FROM sdc_outputs() WHERE name = 'model'").fetchall() == [(False,)]
    con.execute("FROM sdc_drop_output('model')").fetchall()
    with pytest.raises(duckdb.Error, match="unknown output 'model'"):
        con.execute("FROM sdc_drop_output('model')")
    assert con.execute("SELECT count(*) FROM sdc_outputs()").fetchall() == [(1,)]


def test_the_fingerprint_tells_whether_the_check_said_the_same(con: duckdb.DuckDBPyConnection) -> None:
    def fingerprint() -> object:
        con.execute(
            f"FROM sdc_check_submit('a', '(FROM sdc_check_table(''{CUBE}''))', requested_by := 'ann')"
        ).fetchall()
        return con.execute("SELECT fingerprint FROM sdc_outputs()").fetchall()[0][0]

    people(con, [[12, 30], [19, 40]])
    before = fingerprint()
    assert fingerprint() == before
    con.execute("DELETE FROM t WHERE rowid = 0")
    assert fingerprint() != before


@pytest.mark.parametrize(
    "checked",
    [
        "(SELECT ''pass'' AS status, NULL AS why)",
        "(FROM sdc_check_regression(5, 4) WHERE status = ''pass'')",
        "(SELECT * REPLACE (''pass'' AS status) FROM sdc_check_regression(5, 4))",
        "(SELECT * EXCLUDE (df) FROM sdc_check_regression(5, 4))",
        "(SELECT * RENAME (why AS status, status AS why) FROM sdc_check_regression(5, 4))",
        "(SELECT ''pass'' AS status, * FROM sdc_check_regression(5, 4))",
        "(FROM sdc_check_regression(5, 4) LIMIT 0)",
        "(FROM sdc_check_regression(5, 4) USING SAMPLE 1)",
        "(FROM sdc_check_regression(5, 4) QUALIFY true)",
        "(FROM sdc_check_regression(5, 4) AS x(a, status))",
        "(FROM sdc_check_regression(5, 4) TABLESAMPLE 1)",
        "(SELECT DISTINCT * FROM sdc_check_regression(5, 4))",
        "(FROM sdc_check_regression(5, 4), range(0))",
        "(FROM sdc_check_keys(''people''))",
        "(WITH x AS (SELECT 1) FROM sdc_check_regression(5, 4))",
        "(FROM sdc_check_regression(5, 4) UNION ALL FROM sdc_check_regression(5, 4))",
        "(SELECT COLUMNS(*) FROM sdc_check_regression(5, 4))",
        "(FROM sdc_check_regression(5, 4)); SELECT 1",
        "(FROM sdc_check_regression(5, 4)) (SELECT 1)",
        "FROM sdc_check_regression(5, 4)",
        "nonsense",
        "",
    ],
)
def test_nothing_but_a_check_is_recorded(lasting: duckdb.DuckDBPyConnection, checked: str) -> None:
    with pytest.raises(duckdb.Error, match="argument 'checked' must be one call of a check"):
        lasting.execute(f"FROM sdc_check_submit('a', '{checked}', requested_by := 'ann')").fetchall()
    assert lasting.execute("FROM sdc_outputs()").fetchall() == []


def test_no_macro_of_the_same_name_stands_in_for_a_check(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE SCHEMA other; CREATE MACRO other.sdc_check_table(x) AS TABLE SELECT 'pass' AS status, '' AS why"
    )
    with pytest.raises(duckdb.Error, match="argument 'checked' must be one call of a check"):
        con.execute("FROM sdc_check_submit('a', '(FROM other.sdc_check_table(1))', requested_by := 'ann')").fetchall()


def test_a_check_of_nothing_is_no_pass(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t (g INTEGER, x INTEGER)")
    con.execute(
        "FROM sdc_check_submit('a', '(FROM sdc_check_statistics(''t'', value := ''x'', by := [''g''], "
        "statistics := [''sd'']))', requested_by := 'ann')"
    ).fetchall()
    assert con.execute("SELECT status, cells, releasable FROM sdc_outputs()").fetchall() == [("fail", 0, False)]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (f"sdc_check_table('{CUBE}', threshold := 0)", "argument 'threshold' must be"),
        (f"sdc_check_table('{CUBE}', threshold := 1)", "argument 'threshold' must be a whole number of at least 2"),
        ("sdc_check_statistics('t', value := 'y', statistics := ['min'], threshold := 1)", "at least 2"),
        ("sdc_check_regression(5, 4, min_df := 1)", "argument 'min_df' must be at least 2"),
        (
            "sdc_check_submit('a', '(FROM sdc_check_regression(5, 4, min_df := 0))', requested_by := 'ann')",
            "'min_df' must be",
        ),
        (
            f"sdc_check_submit('a', '(FROM sdc_check_table(''{CUBE}'', threshold := 1))', requested_by := 'ann')",
            "at least 2",
        ),
        (f"sdc_check_submit('a', '(FROM sdc_check_table(''{CUBE}'', 2 - 1))', requested_by := 'ann')", "by name"),
        (f"sdc_check_table('{CUBE}', max_share := 0)", "argument 'max_share' must be"),
        (f"sdc_check_table('{CUBE}', zeros := 'maybe')", "argument 'zeros' must be"),
        (f"sdc_check_table('{CUBE}', contributor := 'r')", "go with a sum"),
        ("sdc_check_table('SELECT r, sum(y) AS y FROM t GROUP BY r')", "needs a count"),
        ("sdc_check_table('SELECT r AS why, count(*) AS n FROM t GROUP BY r')", "why"),
        ("sdc_check_statistics('t', value := 'y')", "argument 'statistics' must name"),
        ("sdc_check_statistics('t', value := 'z', statistics := ['min'])", "unknown column 'z'"),
        ("sdc_check_statistics('t', value := 'y', statistics := ['mean'])", "unknown statistic 'mean'"),
        ("sdc_check_statistics('t', value := 'y', statistics := ['p0'])", "unknown statistic 'p0'"),
        ("sdc_check_statistics('t', value := 'y', by := ['r', 'R'], statistics := ['min'])", "names column 'r' twice"),
        ("sdc_check_submit(' ', '(FROM sdc_check_regression(5, 4))', requested_by := 'ann')", "must name the output"),
        ("sdc_check_submit('a', '(FROM sdc_check_regression(5, 4))', requested_by := NULL)", "must name a person"),
        ("sdc_check_decide('a', 'approve', decided_by := 'bob')", "unknown output 'a'"),
    ],
)
def test_bad_arguments(lasting: duckdb.DuckDBPyConnection, call: str, text: str) -> None:
    people(lasting, [[12, 30], [9, 40]])
    with pytest.raises(duckdb.Error, match=text):
        lasting.execute(f"FROM {call}").fetchall()


def test_a_decision_is_about_what_was_seen(con: duckdb.DuckDBPyConnection) -> None:
    """What the checks say of two variables may be the same in every word, and the approved one is released."""
    con.execute("CREATE TABLE t AS SELECT i AS income, i * 2 AS debt FROM range(60) _(i)")
    submit = (
        "FROM sdc_check_submit('a', '(FROM sdc_check_statistics(''t'', value := ''{}'', statistics := [''median'']))', "
        "requested_by := 'ann')"
    )
    decide = "FROM sdc_check_decide('a', 'approve', decided_by := 'bob', reason := 'looks fine'{})"
    listed = "SELECT fingerprint, replaces FROM sdc_outputs()"
    con.execute(submit.format("income")).fetchall()
    [(seen, replaces)] = con.execute(listed).fetchall()
    assert replaces is None
    con.execute(submit.format("debt")).fetchall()
    with pytest.raises(duckdb.Error, match=r"submitted again, as something else.*argument 'fingerprint'"):
        con.execute(decide.format("")).fetchall()
    with pytest.raises(duckdb.Error, match="argument 'fingerprint' is not that of output 'a'"):
        con.execute(decide.format(f", fingerprint := '{seen}'")).fetchall()
    [(now, replaces)] = con.execute(listed).fetchall()
    assert (replaces, now != seen) == (seen, True)
    # What was there first is there again: nobody knows which of them was looked at.
    con.execute(submit.format("income")).fetchall()
    assert con.execute(listed).fetchall() == [(seen, now)]
    with pytest.raises(duckdb.Error, match="submitted again"):
        con.execute(decide.format("")).fetchall()
    decided = con.execute(decide.format(f", fingerprint := '{seen}'")).fetchall()
    assert decided == [("a", "pass", "approve", "bob", seen)]
    assert con.execute("SELECT releasable, fingerprint FROM sdc_outputs()").fetchall() == [(True, seen)]


def test_what_is_submitted_while_somebody_decides_is_not_decided(con: duckdb.DuckDBPyConnection) -> None:
    submit = "FROM sdc_check_submit('a', '(FROM sdc_check_regression({}, 4))', requested_by := 'ann')"
    con.execute(submit.format(50)).fetchall()
    seen = catalog.output(con, "a")
    assert seen is not None
    con.execute(submit.format(60)).fetchall()
    with pytest.raises(SDCError, match="decided, dropped or submitted again in the meantime"):
        catalog.decide_output(con, seen, "approve", "bob", None)
    assert con.execute("SELECT decision FROM sdc_outputs()").fetchall() == [(None,)]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (f"sdc_check_table(''{CUBE}'', threshold := 9)", "threshold is not 10 or more"),
        (f"sdc_check_table(''{CUBE}'', THRESHOLD := 2)", "threshold is not 10 or more"),
        (f"sdc_check_table(''{CUBE}'', threshold := 20 - 10)", "threshold is not 10 or more"),
        (f"sdc_check_table(''{CUBE}'', max_share := 0.99)", "max_share is not 0.9 or less"),
        (f"sdc_check_table(''{CUBE}'', zeros := ''ignore'')", "zeros is not 'fail'"),
        (
            f"sdc_check_table(''{CUBE}'', dominance := NULL)",
            "dominance is not [(2, 90)], as it is where it is not given",
        ),
        (f"sdc_check_table(''{CUBE}'', p_percent := NULL)", "p_percent is not 10 or more"),
        (f"sdc_check_table(''{CUBE}'', p_percent := 9.5)", "p_percent is not 10 or more"),
        (
            f"sdc_check_table(''{CUBE}'', structural_zeros := ''r = 7'')",
            "structural_zeros is given: what is impossible is for somebody to say",
        ),
        ("sdc_check_regression(12, 4, min_df := 8)", "min_df is not 10 or more"),
        ("sdc_check_regression(12, 4, min_df := 5, saturated := false)", "min_df is not 10 or more"),
        (f"sdc_check_table(''{CUBE}'', threshold := 12, max_share := 0.9, zeros := ''fail'', p_percent := 10.5)", None),
        ("sdc_check_regression(50, 4, min_df := 11)", None),
    ],
)
def test_what_passes_by_laxer_rules_is_for_somebody_to_look_at(
    con: duckdb.DuckDBPyConnection, call: str, why: str | None
) -> None:
    people(con, [[12, 30], [19, 40]])
    con.execute(f"FROM sdc_check_submit('a', '(FROM {call})', requested_by := 'ann')").fetchall()
    found = con.execute("SELECT status, failed, why, releasable FROM sdc_outputs()").fetchall()
    assert found == [("pass" if why is None else "review", 0, why, why is None)]
    if why is not None:
        with pytest.raises(duckdb.Error, match="must say why"):
            con.execute("FROM sdc_check_decide('a', 'approve', decided_by := 'bob')").fetchall()


SEVERAL = "the source is not one table: that each record is there once is for somebody to see"
FREQ = "freq is given: that a sum is a number of records is for somebody to see"
WEIGHT = "weight is given: what stands for how many is for somebody to see"
TABLE = "sdc_check_table(''SELECT {}, count(*) AS n FROM {} GROUP BY 1''{})"
OF_MAXIMUM = "sdc_check_statistics(''{}'', value := ''y'', statistics := [''max''])"


@pytest.mark.parametrize(
    ("call", "why"),
    [
        # Everybody's own amount, which is said to be a number of records.
        (
            "sdc_check_table(''SELECT id, sum(y) AS n FROM t GROUP BY id'', freq := ''n'', zeros := ''fail'')",
            FREQ,
        ),
        (
            "sdc_check_table(''SELECT s, count(*) AS n, sum(y * 50) AS y FROM t GROUP BY s'', weight := ''50'')",
            WEIGHT,
        ),
        (TABLE.format("id", "t, range(20)", ""), SEVERAL),
        (TABLE.format("id", "t JOIN (FROM range(20)) ON true", ""), SEVERAL),
        (TABLE.format("id", "(FROM t UNION ALL FROM t UNION ALL FROM t)", ", threshold := 10"), SEVERAL),
        (TABLE.format("id", "(SELECT *, unnest(range(20)) FROM t)", ""), SEVERAL),
        (TABLE.format("(SELECT max(y) FROM t) || s AS s", "t", ""), SEVERAL),
        (TABLE.replace("''SELECT", "''WITH u AS (FROM t, range(20)) SELECT").format("id", "u", ""), SEVERAL),
        ("sdc_check_table(concat(''SELECT s, count(*) AS n '', ''FROM t GROUP BY s''))", SEVERAL),
        (OF_MAXIMUM.format("(FROM t, range(20))"), SEVERAL),
        (OF_MAXIMUM.format("(SELECT *, unnest(range(20)) FROM t)"), SEVERAL),
        (TABLE.format("s", "t", ""), None),
        (TABLE.format("s", "(SELECT * FROM (FROM t WHERE y > 0) WHERE s < 3)", ""), None),
        ("sdc_check_statistics(''t'', value := ''y'', statistics := [''median''])", None),
        ("sdc_check_statistics(''(FROM t WHERE s = 1)'', value := ''y'', statistics := [''median''])", None),
        ("sdc_check_table(''stored'')", None),
        ("sdc_check_table(''multiplied'')", SEVERAL),
    ],
)
def test_what_makes_many_units_of_one_is_for_somebody_to_look_at(
    con: duckdb.DuckDBPyConnection, call: str, why: str | None
) -> None:
    con.execute("CREATE TABLE t AS SELECT i AS id, i % 2 AS s, 1000 + i AS y FROM range(60) _(i)")
    con.execute("FROM sdc_publication('stored', 'SELECT s, count(*) AS n FROM t GROUP BY s')").fetchall()
    con.execute("FROM sdc_publication('multiplied', 'SELECT s, count(*) AS n FROM t, range(9) GROUP BY s')").fetchall()
    con.execute(f"FROM sdc_check_submit('a', '(FROM {call})', requested_by := 'ann')").fetchall()
    status, said, releasable = con.execute("SELECT status, why, releasable FROM sdc_outputs()").fetchall()[0]
    assert releasable == (status == "pass") == (why is None)
    assert said is None if why is None else why in said


@pytest.mark.parametrize("other", ["Anna", "ANNA", " anna ", "anna  b"])
def test_one_person_does_not_ask_and_approve(con: duckdb.DuckDBPyConnection, other: str) -> None:
    asks = "anna b" if "b" in other else "anna"
    con.execute(
        f"FROM sdc_check_submit('model', '(FROM sdc_check_regression(50, 4))', requested_by := '{asks}')"
    ).fetchall()
    with pytest.raises(duckdb.Error, match="somebody else than who submitted"):
        con.execute(f"FROM sdc_check_decide('model', 'approve', decided_by := '{other}')").fetchall()


@pytest.mark.parametrize(
    "look_alike", ["\u0430nna", "ann\u00e4", "anna\u200b", "an\u00adna", "\uff41nna", "an\tna", "\u212aim"]
)
def test_names_that_look_like_others_are_refused(con: duckdb.DuckDBPyConnection, look_alike: str) -> None:
    con.execute(
        "FROM sdc_check_submit('model', '(FROM sdc_check_regression(50, 4))', requested_by := 'anna')"
    ).fetchall()
    for call in (
        "sdc_check_decide('model', 'approve', decided_by := ?)",
        "sdc_check_submit('b', '(FROM sdc_check_regression(50, 4))', requested_by := ?)",
    ):
        with pytest.raises(duckdb.Error, match="in plain letters"):
            con.execute(f"FROM {call.replace('?', chr(39) + look_alike + chr(39))}").fetchall()
    # A record from before names had to be so.
    con.execute("UPDATE sdc.outputs SET submitted_by = ?", [look_alike])
    with pytest.raises(duckdb.Error, match="submit it again"):
        con.execute("FROM sdc_check_decide('model', 'approve', decided_by := 'anna')").fetchall()
    assert con.execute("SELECT decision FROM sdc_outputs()").fetchall() == [(None,)]
