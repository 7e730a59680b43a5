"""Survival curves and histograms that may leave."""

from __future__ import annotations

import math

import duckdb
import pytest

from sdcduck.methods.suppression.rounding import midpoint_rounding

# Weeks in remission of 21 children under 6-MP (Freireich et al. 1963); + was still in remission. The curve and its errors are in
# many textbooks, such as Klein and Moeschberger (2003), table 4.1.
WEEKS = [
    "6",
    "6",
    "6",
    "6+",
    "7",
    "9+",
    "10",
    "10+",
    "11+",
    "13",
    "16",
    "17+",
    "19+",
    "20+",
    "22",
    "23",
    "25+",
    "32+",
    "32+",
    "34+",
    "35+",
]
TEXTBOOK = {
    6: (21, 3, 0.8571, 0.0764), 7: (17, 1, 0.8067, 0.0869), 10: (15, 1, 0.7529, 0.0963), 13: (12, 1, 0.6902, 0.1068),
    16: (11, 1, 0.6275, 0.1141), 22: (7, 1, 0.5378, 0.1282), 23: (6, 1, 0.4482, 0.1346),
}  # fmt: skip


def curve(con: duckdb.DuckDBPyConnection, arguments: str) -> list[tuple[float, ...]]:
    return con.execute(f"FROM sdc_survival_table({arguments})").fetchall()


def test_without_rounding_it_is_the_curve_of_the_textbook(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE children (weeks INTEGER, relapse BOOLEAN)")
    con.executemany("INSERT INTO children VALUES (?, ?)", [(int(week.strip("+")), "+" not in week) for week in WEEKS])
    rows = curve(con, "'children', 'weeks', 'relapse', base := 1, threshold := 1")
    assert rows[0] == (0, 21, 0, 0, 1, 0)
    assert len(rows) == 1 + len({int(week.strip("+")) for week in WEEKS})
    found = {row[0]: row[1:] for row in rows if row[2]}
    assert found.keys() == TEXTBOOK.keys()
    for week, (at_risk, events, survival, error) in TEXTBOOK.items():
        assert found[week][:2] == (at_risk, events)
        assert round(found[week][3], 4) == survival
        assert abs(found[week][4] - error) < 1e-4  # printed with four digits, cut or rounded


BY_HAND = (
    """(SELECT * FROM (VALUES (1, 1, 3), (2, 1, 4), (2, 0, 2), (3, 1, 5), (4, 0, 10)) t(day, died, n), range(n))"""
)


@pytest.mark.parametrize(("threshold", "rows"), [(6, 4), (10, 3)])
def test_rounded_by_hand(con: duckdb.DuckDBPyConnection, threshold: int, rows: int) -> None:
    """Of 24, 3, 7, 12 and 12 had died after each day and 0, 2, 2 and 12 were censored: 3, 9, 9, 9 and 0, 3, 3, 9 of 21.

    Nothing moves on the third day; 9 are at risk before the fourth.
    """
    found = curve(con, f"'{BY_HAND}', 'day', 'died', threshold := {threshold}")
    assert [row[:4] for row in found] == [(0, 21, 0, 0), (1, 21, 3, 0), (2, 18, 6, 3), (4, 9, 0, 6)][:rows]
    survival = [1, 18 / 21, 18 / 21 * 12 / 18, 18 / 21 * 12 / 18]
    sums = [0, 3 / (21 * 18), 3 / (21 * 18) + 6 / (18 * 12), 3 / (21 * 18) + 6 / (18 * 12)]
    for row, share, squared in zip(found, survival, sums, strict=False):
        assert row[4] == pytest.approx(share, rel=1e-12)
        assert row[5] == pytest.approx(share * math.sqrt(squared), rel=1e-12, abs=1e-15)


def test_when_one_of_a_range_died_does_not_show(con: duckdb.DuckDBPyConnection) -> None:
    """Two of three on the first day, and one more on the second: the counts of each day stay in their ranges."""
    other = BY_HAND.replace("(1, 1, 3)", "(1, 1, 2)").replace("(2, 1, 4)", "(2, 1, 5)")
    assert other != BY_HAND
    assert curve(con, f"'{other}', 'day', 'died'") == curve(con, f"'{BY_HAND}', 'day', 'died'")


def test_where_all_have_had_the_event_there_is_no_error(con: duckdb.DuckDBPyConnection) -> None:
    """Of 24, 12 on each of two days: 9 of 21 and then 12 of 12; Greenwood's sum has a division by 0 on the second."""
    found = curve(con, "'(SELECT 1 + range // 12 AS day, true AS died FROM range(24))', 'day', 'died'")
    assert [row[:4] for row in found] == [(0, 21, 0, 0), (1, 21, 9, 0), (2, 12, 12, 0)]
    assert [row[4] for row in found] == [1, pytest.approx(12 / 21, rel=1e-12), 0]
    assert found[1][5] == pytest.approx(12 / 21 * math.sqrt(9 / (21 * 12)), rel=1e-12)
    assert found[2][5] is None


def test_the_step_comes_with_the_first_of_its_range(con: duckdb.DuckDBPyConnection) -> None:
    """Of one a day, the first shows, the seventh and the thirteenth: what the page says that a curve tells."""
    found = curve(con, "'(SELECT 1 + range AS day, range < 14 AS died FROM range(40))', 'day', 'died'")
    assert [row[0] for row in found if row[2]] == [1, 7, 13]


@pytest.mark.parametrize("kind", ["BOOLEAN", "UTINYINT", "DOUBLE", "DECIMAL(5, 2)", "VARCHAR"])
def test_events_of_any_type(con: duckdb.DuckDBPyConnection, kind: str) -> None:
    people = f"(SELECT 1 AS day, (range % 2)::{kind} AS died FROM range(24))"
    assert curve(con, f"'{people}', 'day', 'died', base := 1")[1][:4] == (1, 24, 12, 12)


def test_groups_and_intervals(con: duckdb.DuckDBPyConnection) -> None:
    """Each group has the curve that it has alone; one of nine people has none."""
    con.execute(
        """CREATE TABLE ill AS SELECT CASE WHEN range < 9 THEN 'few' WHEN range % 2 = 0 THEN NULL ELSE 'b' END AS "a group",
        hash(range) % 365 / 10 AS days, hash(3 * range) % 3 AS died, range % 2 AS s FROM range(400)"""
    )
    con.execute("UPDATE ill SET died = least(died, 1)")
    rows = con.execute("FROM sdc_survival_table('ill', 'days', 'died', by := ['s', 'a group'], width := 7)").fetchall()
    assert {row[:2] for row in rows} == {(0, None), (1, "b")}
    for s, group in ((0, "IS NULL"), (1, "= ''b''")):
        alone = curve(con, f"'(FROM ill WHERE s = {s} AND \"a group\" {group})', 'days', 'died', width := 7")
        assert [row[2:] for row in rows if row[0] == s] == alone
    assert {row[2] % 7 for row in rows} == {0}
    assert all(row[4] % 6 in (0, 3) and row[3] >= 10 for row in rows)
    survival = [row[6] for row in rows if row[0] == 0]
    assert survival == sorted(survival, reverse=True)
    assert survival[-1] < 0.6


def test_empty_and_bad_input(con: duckdb.DuckDBPyConnection) -> None:
    assert curve(con, "'(SELECT 1 AS t, true AS e WHERE false)', 't', 'e'") == []
    con.execute("CREATE TABLE t AS SELECT 1.0::DOUBLE AS t, true AS e, 'x' AS word, 1 AS survival")
    for arguments, message in (
        ("'(SELECT NULL::INTEGER AS t, true AS e)', 't', 'e'", "times must be finite"),
        ("'(SELECT -1 AS t, true AS e)', 't', 'e'", "not negative"),
        ("'(SELECT ''nan''::DOUBLE AS t, true AS e)', 't', 'e'", "times must be finite"),
        ("'(SELECT 1 AS t, NULL::BOOLEAN AS e)', 't', 'e'", "events must be true or false"),
        ("'(SELECT 1 AS t, 2 AS e)', 't', 'e'", "events must be true or false"),
        ("'t', 'word', 'e'", "word"),
        ("'t', 'nothing', 'e'", "nothing"),
        ("'t', 't', 'e', by := ['survival']", "also one of the result"),
        ("'t', 't', 'e', width := 0", "'width' must be a number above 0"),
        ("'t', 't', 'e', base := 0", "'base'"),
        ("'t', 't', 'e', threshold := 0", "'threshold'"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            curve(con, arguments)


def test_groups_by_a_name_of_ours_are_refused(con: duckdb.DuckDBPyConnection) -> None:
    """The histogram took the column of groups for its bins."""
    people = "(SELECT 5 AS v, 2 AS _sdc_bin, true AS e FROM range(20))"
    for call in (f"histogram_table('{people}', 'v', 1", f"survival_table('{people}', 'v', 'e'"):
        with pytest.raises(duckdb.Error, match="may not begin with _sdc_"):
            con.execute(f"FROM sdc_{call}, by := ['_sdc_bin'])").fetchall()


def test_histogram_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    """Of 30 values in bins of 10: 12, 13 and 5 from -5 on; the last is too few, and 12 and 13 are 9 and 15."""
    values = (
        "(SELECT v FROM (VALUES (-5.0, 12), (5, 13), (14.9, 0), (15, 5), (NULL, 20), (''nan'', 20)) t(v, n), range(n))"
    )
    values = values.replace("(-5.0", "(-5.0::DOUBLE")
    call = f"sdc_histogram_table('{values}', 'v', 10, origin := 5"
    assert con.execute(f"FROM {call})").fetchall() == [(-5, 5, 9), (5, 15, 15)]
    assert con.execute(f"FROM {call}, base := 1, threshold := 1)").fetchall() == [(-5, 5, 12), (5, 15, 13), (15, 25, 5)]


def test_histograms_of_groups_are_those_of_sql(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT range % 3 AS g, (hash(range) % 1000)::DECIMAL(9, 2) / 7 AS v FROM range(500)")
    rows = con.execute("FROM sdc_histogram_table('t', 'v', 25, by := ['g'])").fetchall()
    plain = con.execute(
        "SELECT g, floor(v / 25) * 25, count(*) FROM t GROUP BY ALL HAVING count(*) > 9 ORDER BY ALL"
    ).fetchall()
    assert [row[:2] for row in rows] == [row[:2] for row in plain]
    assert [row[3] for row in rows] == midpoint_rounding([row[2] for row in plain], 6).tolist()
    assert 15 <= len(rows) <= 18
    for arguments, message in (
        ("'v', 0", "'width'"),
        ("'v', 1, origin := 'nan'::DOUBLE", "'origin'"),
        ("'g', 1, by := ['n']", "n"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            con.execute(f"FROM sdc_histogram_table('t', {arguments})").fetchall()
