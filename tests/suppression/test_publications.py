"""A publication in SQL: what it is read as, the primary rules, and the worked examples end to end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import sdcduck

COUNTS = """
    SELECT municipality, county, age, count(*) AS n FROM people
    GROUP BY GROUPING SETS ((municipality, age), (county, age), (age), (municipality), (county), ())"""
MAGNITUDES = "SELECT sector, geo, count(*) AS n, sum(value) AS value FROM accounts GROUP BY CUBE (sector, geo)"


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """The worked examples of Langsrud and Bøvelstad (2022) and of the R package GaussSuppression."""
    connection = sdcduck.connect()
    connection.execute("""
        CREATE TABLE wide AS SELECT * FROM (VALUES
            ('A', 'county-1', 'small', 1, 1, 1), ('B', 'county-2', 'small', 5, 6, 8), ('C', 'county-3', 'small', 2, 9, 7),
            ('D', 'county-3', 'big', 35, 12, 11), ('E', 'county-4', 'big', 3, 26, 35), ('F', 'county-4', 'big', 5, 18, 14)
        ) municipalities(municipality, county, size, young, middle, old);
        CREATE TABLE people AS SELECT municipality, county, size, age
            FROM (UNPIVOT wide ON young, middle, old INTO NAME age VALUE n), range(n);
        CREATE TABLE accounts AS SELECT *, CASE sector WHEN 'Governmental' THEN 'public' ELSE 'private' END AS sector2,
                CASE geo WHEN 'Iceland' THEN 'nonEU' ELSE 'EU' END AS eu FROM (VALUES
            ('Agriculture', 'Portugal', 'A', 75.9), ('Agriculture', 'Portugal', 'B', 24.5), ('Agriculture', 'Spain', 'A', 96.6),
            ('Agriculture', 'Spain', 'B', 43.2), ('Entertainment', 'Iceland', 'B', 16.8), ('Entertainment', 'Portugal', 'B', 7.1),
            ('Entertainment', 'Portugal', 'D', 2.3), ('Entertainment', 'Spain', 'A', 77.4), ('Entertainment', 'Spain', 'B', 11.5),
            ('Entertainment', 'Spain', 'C', 16.4), ('Governmental', 'Portugal', 'B', 21.6), ('Governmental', 'Portugal', 'D', 2.0),
            ('Governmental', 'Spain', 'C', 6.5), ('Governmental', 'Spain', 'D', 2.7), ('Industry', 'Iceland', 'B', 9.6),
            ('Industry', 'Iceland', 'C', 8.8), ('Industry', 'Iceland', 'D', 1.9), ('Industry', 'Portugal', 'B', 25.7),
            ('Industry', 'Portugal', 'D', 3.4), ('Industry', 'Spain', 'C', 8.4)
        ) accounts(sector, geo, company, value)""")
    yield connection
    connection.close()


def labels(con: duckdb.DuckDBPyConnection, call: str, where: str, dimensions: str = "sector, geo") -> set[str]:
    shown = " || ':' || ".join(f"coalesce({name.strip()}, 'Total')" for name in dimensions.split(","))
    return {row[0] for row in con.execute(f"SELECT {shown} FROM {call} WHERE {where}").fetchall()}


def rows(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return con.execute(query).fetchall()


# --- The first round of the paper -----------------------------------------------------------------------------------


@pytest.mark.parametrize("singleton", ["none", "anySum"])
def test_the_example_of_the_paper(con: duckdb.DuckDBPyConnection, singleton: str) -> None:
    call = f"sdc_suppress($${COUNTS}$$, max_count := 3, singleton := '{singleton}', improve := false)"
    assert rows(con, f"SELECT status, count(*) FROM {call} GROUP BY ALL ORDER BY ALL") == [
        ("open", 20),
        ("primary", 10),
        ("secondary", 14),
    ]
    place = "coalesce(municipality, county, 'Total') || ':' || coalesce(age, 'Total')"
    secondary = rows(con, f"SELECT {place} FROM {call} WHERE status = 'secondary' ORDER BY 1")
    ages = ("Total", "middle", "old", "young")
    expected = {f"{place}:{age}" for place in ("B", "county-2") for age in ages}
    expected |= {"C:old", "D:young", "D:old", "E:middle", "F:young", "F:middle"}
    assert {row[0] for row in secondary} == expected
    published = rows(
        con, f"SELECT {place}, n FROM {call} WHERE municipality IS NULL AND NOT suppressed AND county IS NOT NULL"
    )
    assert dict(published) == {
        "county-3:young": 37, "county-3:middle": 21, "county-3:old": 18, "county-3:Total": 76,
        "county-4:young": 8, "county-4:middle": 44, "county-4:old": 49, "county-4:Total": 101,
    }  # fmt: skip
    assert rows(con, f"SELECT count(*) FROM {call} WHERE suppressed AND n IS NOT NULL") == [(0,)]


def test_the_coordinated_alternative_suppresses_less(con: duckdb.DuckDBPyConnection) -> None:
    query = (
        COUNTS.replace("county, age, count", "county, size, age, count")
        .replace("(), ", "")
        .replace("())", "(size, age), (size), ())")
    )
    call = f"sdc_suppress($${query}$$, max_count := 3, protect_zeros := true)"
    assert rows(con, f"SELECT count(*), count(*) FILTER (suppressed) FROM {call}") == [(52, 20)]
    assert rows(con, f"SELECT count(*) FROM {call} WHERE level LIKE '%size%' AND suppressed") == [(0,)]
    # With zeros unprotected the singletons are the ones of municipality A, whose neighbours then need more.
    call = f"sdc_suppress($${query}$$, max_count := 3)"
    assert rows(con, f"SELECT count(*) FILTER (suppressed) FROM {call}") == [(22,)]


# --- Primary rules ------------------------------------------------------------------------------------------------------


P_PERCENT = {
    "Total:Iceland", "Total:Portugal", "Agriculture:Total", "Agriculture:Portugal", "Agriculture:Spain",
    "Entertainment:Iceland", "Entertainment:Portugal", "Governmental:Portugal", "Governmental:Spain", "Industry:Portugal",
    "Industry:Spain",
}  # fmt: skip


def test_p_percent(con: duckdb.DuckDBPyConnection) -> None:
    call = f"sdc_primary('{MAGNITUDES}', p_percent := 10, contributor := 'company')"
    assert labels(con, call, "status = 'primary' AND why = 'p_percent'") == P_PERCENT


def test_few_contributors(con: duckdb.DuckDBPyConnection) -> None:
    call = f"sdc_primary('{MAGNITUDES}', min_contributors := 3, contributor := 'company')"
    assert labels(con, call, "status = 'primary'") == P_PERCENT - {"Total:Iceland", "Total:Portugal"}


def test_contributors_that_do_not_count(con: duckdb.DuckDBPyConnection) -> None:
    few = f"sdc_primary('{MAGNITUDES}', min_contributors := 3, contributor := 'company', not_counted := ['B'])"
    assert rows(con, f"SELECT contributors, status FROM {few} WHERE sector = 'Entertainment' AND geo = 'Spain'") == [
        (2, "primary")
    ]
    assert rows(con, f"SELECT contributors, status FROM {few} WHERE sector = 'Entertainment' AND geo = 'Iceland'") == [
        (0, "open")
    ]


def test_dominance_over_linked_tables(con: duckdb.DuckDBPyConnection) -> None:
    query = """SELECT sector2, sector, geo, eu, count(*) AS n, sum(value) AS value FROM accounts
        GROUP BY GROUPING SETS ((sector2, geo), (sector2), (geo), (), (sector, eu), (sector), (eu))"""
    call = f"sdc_primary('{query}', dominance := [(1, 80), (2, 99)], contributor := 'company')"
    found = rows(
        con,
        f"SELECT coalesce(sector2, sector, 'Total') || ':' || coalesce(geo, eu, 'Total') FROM {call} WHERE status = 'primary'",
    )
    assert {row[0] for row in found} == {
        "Agriculture:Total", "Agriculture:EU", "public:Portugal", "public:Spain", "Entertainment:nonEU",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("dominance := [(1, 80), (2, 70)]", 5), ("p_percent := 7", 4), ("dominance := (1, 80)", 3), ("pq := (7, 100)", 4)],
)
def test_rules_on_seven_cells(con: duckdb.DuckDBPyConnection, rule: str, expected: int) -> None:
    con.execute("""CREATE OR REPLACE TABLE seven AS SELECT 'v' || v AS v, x FROM (VALUES
        (1, [100]), (2, [90, 10]), (3, [80, 20]), (4, [70, 30]), (5, [50, 25, 25]), (6, [40, 20, 20, 20]), (7, [25, 25, 25, 25])
    ) cells(v, xs), unnest(xs) u(x)""")
    query = "SELECT v, count(*) AS n, sum(x) AS x FROM seven GROUP BY v"
    assert rows(con, f"SELECT v FROM sdc_primary('{query}', {rule}) WHERE status = 'primary' ORDER BY v") == [
        (f"v{v}",) for v in range(1, expected + 1)
    ]


def test_contributions_of_one_contributor_are_added_up_first(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE OR REPLACE TABLE parts AS SELECT * FROM (VALUES ('f', 60), ('f', 60), ('g', -110), ('h', 90), ('h', -90)) parts(firm, x)"
    )
    query = "SELECT count(*) AS n, sum(x) AS x FROM parts"
    assert rows(
        con,
        f"SELECT contributors, contributed, largest FROM sdc_primary('{query}', p_percent := 10, contributor := 'firm')",
    ) == [(2, 230.0, [120.0, 110.0])]


def test_weights_make_the_total_and_not_the_contributions(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE OR REPLACE TABLE sampled AS SELECT * FROM (VALUES (100, 1.0), (10, 30.0)) sampled(x, w)")
    query = "SELECT count(*) AS n, sum(x) AS x FROM sampled"
    assert rows(con, f"SELECT status, contributed FROM sdc_primary('{query}', dominance := (1, 50))") == [
        ("primary", 110.0)
    ]
    for written in (query, query.replace("sum(x)", "sum(x * w)")):  # rules are about the weighted total in both
        call = f"sdc_primary('{written}', dominance := (1, 50), weight := 'w')"
        assert rows(con, f"SELECT status, contributed FROM {call}") == [("open", 400.0)]


@pytest.mark.parametrize("written", ["sum(x)", "sum(x * v)", "sum(x + w)", "sum(x) FILTER (w > 0)", "sum(w * w)"])
def test_a_sum_without_its_weights_is_refused(con: duckdb.DuckDBPyConnection, written: str) -> None:
    """By its weights a cell of one firm is not that firm's; by what is published it is."""
    con.execute("CREATE OR REPLACE TABLE sampled AS SELECT 1000 AS x, 30.0 AS w, 30.0 AS v")
    for call in ("sdc_publish('p', {}, p_percent := 10", "sdc_check_table({}"):
        with pytest.raises(duckdb.Error, match=r"publish sum\(\(..\) \* \(W\)\) AS \"x\""):
            con.execute(
                f"FROM {call.format(f'$$ SELECT count(*) AS n, {written} AS x FROM sampled $$')}, weight := 'W')"
            )


def test_weights_that_differ_in_the_case_of_a_text_are_not_one(con: duckdb.DuckDBPyConnection) -> None:
    """Names are the same in capitals, texts are not."""
    con.execute("CREATE OR REPLACE TABLE sampled AS SELECT 1000 AS x, 'a' AS k")
    weight = "CASE WHEN {} = '{}' THEN 30 ELSE 1 END"
    query = f"SELECT count(*) AS n, sum(x * {weight.format('k', 'a')}) AS x FROM sampled"
    call = "FROM sdc_check_table($${}$$, p_percent := 10, weight := $${}$$)"
    con.execute(call.format(query, weight.format("K", "a"))).fetchall()
    with pytest.raises(duckdb.Error, match="publish sum"):
        con.execute(call.format(query, weight.format("k", "A")))


@pytest.mark.parametrize("named", ["", ", value := 'a'"])
def test_another_sum_without_its_weights_is_refused(con: duckdb.DuckDBPyConnection, named: str) -> None:
    """Weights make cells of one firm safe, and a second sum would show what it has there."""
    con.execute("CREATE OR REPLACE TABLE sampled AS SELECT 1000 AS x, 30.0 AS w, i AS firm FROM range(9) r(i)")
    query = "SELECT firm, count(*) AS n, sum(x * w) AS a, {} AS b FROM sampled GROUP BY CUBE (firm)"
    rules = f"p_percent := 10, weight := 'w'{named}"
    for call in ("sdc_publish('p', $${}$$, ", "sdc_sdmx($${}$$, "):
        with pytest.raises(duckdb.Error, match=r"'b' is no sum of weighted amounts"):
            con.execute(f"FROM {call.format(query.format('sum(x)'))}{rules})").fetchall()
    for other in ("sum(x * x * w)", "sum(w)"):  # also how many a record stands for
        assert rows(con, f"FROM sdc_publish('p', $${query.format(other)}$$, {rules})")


@pytest.mark.parametrize(
    "written",
    ["sum(x * w)", "sum(w * x)", "sum((x * w)::DECIMAL(18, 2))", "sum(x * w) FILTER (x > 0)", "sum(x / 2 * w)"],
)
def test_what_contributors_have_is_read_off_the_sum(con: duckdb.DuckDBPyConnection, written: str) -> None:
    con.execute(
        "CREATE OR REPLACE TABLE sampled AS SELECT * FROM (VALUES (100, 1.0), (10, 30.0), (-7, 2.0)) sampled(x, w)"
    )
    halved = "/ 2" in written
    found = rows(
        con,
        f"SELECT contributed, largest FROM sdc_primary('SELECT count(*) AS n, {written} AS x FROM sampled', p_percent := 10, weight := 'w')",
    )
    contributed = 400.0 if "FILTER" in written else 414.0
    assert found == [(contributed / (1 + halved), [100.0 / (1 + halved), 10.0 / (1 + halved)])]


def test_rules_combine_and_say_which(con: duckdb.DuckDBPyConnection) -> None:
    call = f"sdc_primary('{MAGNITUDES}', max_count := 1, p_percent := 10, contributor := 'company', primary_if := 'geo = ''Spain'' AND n > 3')"
    assert rows(con, f"SELECT why FROM {call} WHERE sector = 'Industry' AND geo = 'Spain'") == [
        ("max_count, p_percent",)
    ]
    assert rows(con, f"SELECT why FROM {call} WHERE sector IS NULL AND geo = 'Spain'") == [("primary_if",)]
    # A condition that is NULL vetoes: here that of all totals over geo.
    vetoed = f"sdc_primary('{MAGNITUDES}', max_count := 100, primary_if := 'geo = ''Spain''')"
    assert rows(con, f"SELECT DISTINCT geo IS NULL FROM {vetoed} WHERE status = 'open'") == [(True,)]


def test_forced_cells_are_published_and_hidden_ones_left_out(con: duckdb.DuckDBPyConnection) -> None:
    call = f"sdc_suppress('{MAGNITUDES}', p_percent := 10, contributor := 'company', singleton := 'none', forced_if := 'level = ''sector''', hidden_if := 'geo = ''Iceland''')"
    assert rows(con, f"SELECT DISTINCT status FROM {call} WHERE level = 'sector'") == [("forced",)]
    assert rows(con, f"SELECT count(*) FROM {call} WHERE geo = 'Iceland'") == [(0,)]
    assert rows(con, f"SELECT value::DOUBLE FROM {call} WHERE level = 'sector' AND sector = 'Agriculture'") == [
        (240.2,)
    ]


# --- Reading ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("DROP TABLE people", "the publication is not a SELECT"),
        ("SELECT age, count(*) AS n FROM people GROUP BY ALL", "write GROUP BY GROUPING SETS (..), not GROUP BY ALL"),
        ("SELECT age, count(*) AS n FROM people GROUP BY age HAVING count(*) > 2", "has no HAVING"),
        ("SELECT age, count(*) AS n FROM people GROUP BY age LIMIT 2", "has no LIMIT"),
        ("SELECT age, count(*) AS n FROM people GROUP BY age UNION SELECT age, 1 FROM people", "not with UNION"),
        ("SELECT count(*) AS n FROM people GROUP BY age", "every grouping column must be in the SELECT list"),
        ("SELECT age, avg(n) AS m, count(*) AS n FROM people GROUP BY age", "a mean is published as sum and count"),
        ("SELECT age, count(DISTINCT county) AS n FROM people GROUP BY age", "no DISTINCT in its counts"),
        ("SELECT age, sum(1) AS n FROM people GROUP BY age", "a publication needs a count"),
        ("SELECT age, count(*) AS age FROM people GROUP BY age", "two columns of the publication have the same name"),
        ("SELECT age, count(*) AS n FROM peple GROUP BY age", "Table with name peple does not exist"),
        ("SELECT age, count(*) AS status FROM people GROUP BY age", "has a column 'status'"),
        ("SELECT age AS total, count(*) AS n FROM people GROUP BY age", "cannot be called 'total'"),
        ('SELECT age AS "a x b", count(*) AS n FROM people GROUP BY age', "cannot be called 'a x b'"),
        ("nothing_stored", "unknown publication 'nothing_stored'"),
    ],
)  # fmt: skip
def test_what_is_no_publication(con: duckdb.DuckDBPyConnection, query: str, message: str) -> None:
    with pytest.raises(duckdb.Error) as caught:
        con.execute(f"FROM sdc_suppress($${query}$$, max_count := 3)").fetchall()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("max_count := -1", "'max_count' must be a number of at least 0"),
        ("min_contributors := 1", "'min_contributors' must be a whole number of at least 2"),
        ("p_percent := 0", "'p_percent' must be a number of at least 1"),
        ("p_percent := 'nan'::DOUBLE", "'p_percent' must be a number of at least 1"),
        (
            "p_percent := 0.1",
            "'p_percent' must be a number of at least 1: it is in per cent, and p_percent := 10 is a tenth",
        ),
        ("dominance := [(1, 0.75)]", "'dominance' takes pairs (n, k)"),
        ("pq := (0.1, 0.5)", "'pq' takes one pair (p, q) of per cent"),
        ("dominance := [(0, 80)]", "'dominance' takes pairs (n, k)"),
        ("dominance := [(1, 180)]", "'dominance' takes pairs (n, k)"),
        ("dominance := 80", "'dominance' takes pairs of numbers"),
        ("pq := (50, 10)", "'pq' takes one pair (p, q) of per cent with 0 < p < q"),
        ("primary_if := 'm < 3'", "argument 'primary_if'"),
        ("primary_if := 'n'", "'primary_if' must be a condition"),
        ("value := 'valu', p_percent := 5", "did you mean 'value'?"),
        ("value := 'value'", "'value' goes with a rule on contributors"),
        ("protect_zeros := true", "'protect_zeros' goes with 'max_count'"),
        ("not_counted := ['A']", "'not_counted' goes with 'contributor'"),
        ("p_percent := 5, contributor := 'firm'", "firm"),
        ("max_count := 3, singleton := 'anysum'", "did you mean 'anySum'?"),
        ("p_percent := 5, singleton := 'numttHTTT'", "up to five letters"),
        ("max_count := 3, singleton := 'numTTT'", "T with a rule on contributors"),
        ("max_count := 3, cost := '''nan''::DOUBLE'", "'cost' is NaN, infinite or no number"),
        ("max_count := 3, cost := 'sector'", "'cost' is NaN, infinite or no number"),
    ],
)
def test_arguments_that_cannot_be(con: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error) as caught:
        con.execute(f"FROM sdc_suppress('{MAGNITUDES}', {arguments})").fetchall()
    assert message in str(caught.value)


@pytest.mark.parametrize("value", ["'nan'", "'inf'", "'-inf'"])
@pytest.mark.parametrize("rule", ["p_percent := 5", "max_count := 1", "p_percent := 5, value := 'y'"])
def test_a_value_that_is_no_number_is_refused(con: duckdb.DuckDBPyConnection, value: str, rule: str) -> None:
    con.execute(f"CREATE OR REPLACE TABLE broken AS SELECT 'a' AS a, 1 AS y, unnest([1.0, {value}::DOUBLE]) AS x")
    query = "SELECT a, count(*) AS n, sum(x) AS x, sum(y) AS y FROM broken GROUP BY CUBE (a)"
    with pytest.raises(duckdb.Error) as caught:
        con.execute(f"FROM sdc_suppress('{query}', {rule})").fetchall()
    assert "NaN" in str(caught.value)


@pytest.mark.parametrize("weight", ["-1", "NULL", "'nan'::DOUBLE", "'inf'::DOUBLE", "'heavy'"])
def test_a_weight_that_is_no_number_is_refused(con: duckdb.DuckDBPyConnection, weight: str) -> None:
    con.execute(f"CREATE OR REPLACE TABLE weighed AS SELECT unnest([1.0, 2.0]) AS x, {weight} AS w")
    query = "SELECT count(*) AS n, sum(x * TRY_CAST(w AS DOUBLE)) AS x FROM weighed"
    with pytest.raises(duckdb.Error) as caught:
        con.execute(f"FROM sdc_suppress('{query}', p_percent := 5, weight := 'TRY_CAST(w AS DOUBLE)')").fetchall()
    assert "a weight is negative, NaN, infinite, NULL or no number" in str(caught.value)
    assert "heavy" not in str(caught.value)


def test_a_primary_cell_without_inner_cells_is_named(con: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT age, count(*) AS n FROM people WHERE false GROUP BY CUBE (age)"
    call = f"'{query}', primary_if := 'true'"
    assert rows(con, f"SELECT n, status, why FROM sdc_suppress({call})") == [
        (None, "primary", "primary_if, has no inner cells")
    ]
    assert rows(con, f"SELECT lower, upper, exact FROM sdc_audit({call})") == [(0, 0, True)]


def test_a_primary_cell_that_is_forced_says_which_rule_it_breaks(con: duckdb.DuckDBPyConnection) -> None:
    call = f"sdc_suppress('{MAGNITUDES}', p_percent := 10, contributor := 'company', forced_if := 'level = ''sector''')"
    assert rows(con, f"SELECT sector, why FROM {call} WHERE status = 'forced' AND why IS NOT NULL") == [
        ("Agriculture", "p_percent, published all the same")
    ]


def test_a_record_without_a_contributor_is_refused(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE OR REPLACE TABLE orphan AS SELECT NULL::VARCHAR AS firm, 1.0 AS x")
    with pytest.raises(duckdb.Error, match="no contributor"):
        con.execute(
            "FROM sdc_suppress('SELECT count(*) AS n, sum(x) AS x FROM orphan', p_percent := 5, contributor := 'firm')"
        ).fetchall()


def test_an_empty_table_gives_no_inner_cells(con: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT age, count(*) AS n FROM people WHERE false GROUP BY CUBE (age)"
    assert rows(con, f"SELECT n, status FROM sdc_suppress('{query}', max_count := 3)") == [(0, "open")]


def test_null_is_a_category_of_its_own(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE OR REPLACE TABLE gaps AS SELECT unnest([NULL, NULL, 'a', 'a', 'a', 'b', 'b', 'b', 'b']) AS kind"
    )
    query = "SELECT kind, count(*) AS n FROM gaps GROUP BY CUBE (kind)"
    found = rows(
        con,
        f"SELECT kind, level, n, status FROM sdc_suppress('{query}', max_count := 2) ORDER BY level, kind NULLS FIRST",
    )
    assert found[0] == (None, "kind", None, "primary")
    assert found[-1] == (None, "total", 9, "open")
    assert [row[3] for row in found].count("secondary") == 1


def test_zeros_are_protected_where_they_can_hide_something(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE OR REPLACE TABLE holes AS SELECT * FROM (VALUES ('x', 'p', 5), ('x', 'q', 6), ('y', 'p', 7)) h(a, b, m), range(m)"
    )
    query = "SELECT a, b, count(*) AS n FROM holes GROUP BY CUBE (a, b)"
    found = rows(
        con,
        f"SELECT a, b, status FROM sdc_suppress('{query}', max_count := 0, protect_zeros := true) WHERE suppressed ORDER BY ALL",
    )
    assert ("y", "q", "primary") in found
    assert len(found) == 4


def test_no_combination_of_a_municipality_with_another_county_is_added(con: duckdb.DuckDBPyConnection) -> None:
    call = f"sdc_primary($${COUNTS}$$, max_count := 3, protect_zeros := true)"
    assert rows(con, f"SELECT count(*) FROM {call}") == [(44,)]


def test_the_order_of_the_rows_does_not_matter(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE OR REPLACE TABLE shuffled AS FROM people ORDER BY hash(rowid, 7)")
    one, two = (
        rows(con, f"FROM sdc_suppress($${query}$$, max_count := 3)")
        for query in (COUNTS, COUNTS.replace("people", "shuffled"))
    )
    assert one == two


@pytest.mark.parametrize("rule", ["p_percent := 10", "pq := (10, 50)", "dominance := [(1, 80)]"])
def test_a_weight_of_zero_hides_nobody(con: duckdb.DuckDBPyConnection, rule: str) -> None:
    """A cell of one firm is that firm's, whatever the firm weighs."""
    con.execute("""CREATE OR REPLACE TABLE weighed AS SELECT * FROM (VALUES
        ('a', 5, 0), ('b', 5, 0), ('b', 1, 1), ('c', 3, 1), ('c', 3, 1), ('c', 3, 1), ('d', 0, 0)) weighed(r, v, w)""")
    query = "SELECT r, count(*) AS n, sum(v * w) AS v FROM weighed GROUP BY ROLLUP (r)"
    marked = f"SELECT r FROM sdc_primary('{query}', {rule}, weight := 'w') WHERE status = 'primary' AND r IS NOT NULL"
    assert con.execute(marked).fetchall() == [("a",), ("b",)]


def test_nothing_is_shown_of_a_publication_without_records(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE nobody (r VARCHAR)")
    query = "SELECT r, count(*) AS n FROM nobody GROUP BY ROLLUP (r)"
    publish = f"SELECT cells, primary_cells, share_shown FROM sdc_publish('nobody', '{query}'"
    assert con.execute(f"{publish}, max_count := 3)").fetchall() == [(1, 0, 1.0)]
    assert con.execute(f"{publish}, max_count := 3, protect_zeros := true)").fetchall() == [(1, 1, None)]


@pytest.mark.parametrize("call", ["sdc_suppress({})", "sdc_publish('open', {})"])
def test_without_a_rule_nothing_is_protected(con: duckdb.DuckDBPyConnection, call: str) -> None:
    con.execute("CREATE OR REPLACE TABLE t AS SELECT i % 3 AS a FROM range(9) _(i)")
    query = "'SELECT a, count(*) AS n FROM t GROUP BY CUBE (a)'"
    with pytest.raises(duckdb.Error, match="no rule says which cells are primary"):
        con.execute(f"FROM {call.format(query)}")
    for rule in ("max_count := 0", "k_disclosure := 1", "primary_if := 'n > 5'"):
        assert con.execute(f"FROM {call.format(query)[:-1]}, {rule})").fetchall()
