"""Values that are made long: an engine in the middle of an expression does not hear that its time is over."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused
from sdcduck.guard.running import LONGEST_PARAMETER

A = "'" + "a" * 40_000 + "'"


def again(step: str, first: str, times: int, last: str) -> str:
    """A question that does the same many times, each with what came out before."""
    steps = "".join(f", c{i} AS (SELECT {step} AS s FROM c{i - 1})" for i in range(1, times + 1))
    return f"WITH c0 AS (SELECT {first} AS s){steps} SELECT {last} AS s FROM c{times}"


def multiplied(times: int) -> str:
    text = "t"
    for _ in range(times):
        text = f"replace({text}, 'a', '{'a' * 100}')"
    return text


MADE_LONG = {
    "twice a text": again("s || s", "'abc'", 24, "length(s)"),
    "twice a text, by concat": again("concat(s, s)", "'abc'", 24, "upper(s)"),
    "twice a text, in CASE": again("CASE WHEN 1 = 1 THEN s || s END", "'abc'", 24, "upper(s)"),
    "twice a text, with two columns of a name": again("s || s AS t, 1", "'abc'", 24, "upper(s)").replace("AS t,", "AS s,"),
    "twice a text, in joins": "WITH c0 AS (SELECT 'abc' AS s)"
    + "".join(f", c{i} AS (SELECT a.s || b.s AS s FROM c{i - 1} AS a, c{i - 1} AS b)" for i in range(1, 25))
    + " SELECT upper(s) AS s FROM c24",
    "twice a list": again("s || s", "[1, 2]", 24, "list_sort(s)"),
    "lists in lists": again("[s, s]", "'abc'", 24, "CAST(s AS VARCHAR)"),
    "structs in structs": again("{'a': s, 'b': s}", "'abc'", 24, "CAST(s AS VARCHAR)"),
    "rows in rows": again("row(s, s)", "'abc'", 24, "CAST(s AS VARCHAR)"),
    "a text for each letter": f"SELECT length({multiplied(5)}) AS n FROM n",
    "the same of records": f"SELECT count(*) AS n FROM people WHERE length({multiplied(5)}) > 3",
    "a text for each item": f"SELECT array_to_string(string_split({A}, ''), {A}) AS s",
    "a search from each place": f"SELECT regexp_replace({A} || t, 'a[^c]*d|a', 'x', 'g') AS s FROM n",
    "a long format": f"SELECT strftime(d, {A}) || strftime(d, {A}) || strftime(d, '{'%c' * 9000}') AS s FROM n",
    "in a subquery": f"SELECT (SELECT max(length({multiplied(5)})) FROM n) AS s",
    "in a join": f"SELECT 1 AS a FROM n JOIN (SELECT {multiplied(5)} AS t FROM n) b ON n.t = upper(b.t)",
    "in ORDER BY": f"SELECT t FROM n ORDER BY length({multiplied(5)})",
    "in a set": f"SELECT t FROM n UNION ALL SELECT {multiplied(5)} FROM n",
    "of a parameter": f"SELECT {multiplied(3).replace('t,', '$1,')} AS s",
    "of an alias": "SELECT upper(x.big) || x.small AS s FROM (SELECT t, " + multiplied(4) + " FROM n) AS x(small, big)",
}  # fmt: skip
PATTERNS = {
    "repeats": "regexp_matches(t, '((a?){30}){40}')",
    "a few repeats": f"regexp_matches(t, '{'(a?b?){500}' * 20}$')",
    "a pattern of the table": "regexp_matches(t, t)",
    "a pattern that is made": "regexp_replace(t, 'a' || t, '')",
    "a pattern that is given": "regexp_extract(t, $1)",
}
WINDOWS = (
    "list(k) OVER (ORDER BY k)", "string_agg(t) OVER ()", "list(k) OVER (PARTITION BY k)", "max(k, 5) OVER (ORDER BY k)",
    "list(k) FILTER (k > 3) OVER (ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    "list(k) OVER (ORDER BY k ROWS BETWEEN 1001 PRECEDING AND CURRENT ROW)",
    "list(k) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
)  # fmt: skip
AGGREGATED = {
    "upper(string_agg(t))": "string_agg(t)",
    "list_sort(list(k))": "list(k)",
    "list_distinct(list(k) FILTER (k >= 0))": "list(k)",
    "map(list(k), list(t))": "list(t)",
    "array_to_string(array_agg(t), ',')": "array_agg(t)",
    "list_sort(max(k, 100000))": "max(k, 100000)",
    "(SELECT max(length(upper(s.l || n.t))) FROM n, (SELECT string_agg(t) AS l FROM n) s)": "string_agg(t)",
}


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="a secret for the tests of long values") as con:
        con.execute("""
            CREATE TABLE n AS SELECT i AS k, 'a' || i AS t, DATE '2024-01-01' + i::INTEGER AS d FROM range(200000) t(i);
            CREATE TABLE few AS FROM n LIMIT 20;
            CREATE TABLE people AS SELECT i AS id, 'a' || i % 3 AS t FROM range(900) t(i);
            FROM sdc_add_record_key('people', unit := 'id');
            FROM sdc_protect('people', unit := 'id', dimensions := ['t']);
            CREATE TABLE documents AS SELECT i AS k, repeat('a', 600000) AS t, 'b' || i AS u FROM range(4) t(i);
            DELETE FROM documents WHERE k = 0;
            FROM sdc_declare_public('n'); FROM sdc_declare_public('few'); FROM sdc_declare_public('documents');
        """).fetchall()
        yield con


@pytest.fixture(scope="module")
def one(con: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.open_guard(con)


@pytest.mark.parametrize("name", MADE_LONG)
def test_what_grows_without_bound_is_refused_before_it_runs(one: Guard, name: str) -> None:
    with pytest.raises(Refused, match=r"SDC002: .*text or lists that grow too long"):
        one.rewrite(MADE_LONG[name])


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_that_is_tried_in_many_ways_is_refused(one: Guard, name: str) -> None:
    with pytest.raises(Refused, match=r"SDC010: .*a pattern that"):
        one.rewrite(f"SELECT {PATTERNS[name]} AS a FROM n")


@pytest.mark.parametrize("window", WINDOWS)
def test_a_list_for_each_row_is_refused(one: Guard, window: str) -> None:
    with pytest.raises(Refused, match=r"SDC010: .*a list or text of a window: write ROWS BETWEEN"):
        one.rewrite(f"SELECT {window} AS a FROM n")


@pytest.mark.parametrize("made", AGGREGATED)
def test_nothing_is_made_of_a_very_long_list(one: Guard, con: duckdb.DuckDBPyConnection, made: str) -> None:
    with pytest.raises(Refused, match=r"SDC091: .*functions of a very long list or text of an aggregate"):
        one.sql(f"SELECT {made} AS a FROM n")
    assert one.sql(f"SELECT {AGGREGATED[made]} AS a FROM n").num_rows == 1  # alone, it may be as long as there is room
    short = f"SELECT {made} AS a FROM few".replace("FROM n", "FROM few").replace("n.t", "few.t")
    assert one.sql(short).to_pylist() == con.cursor().sql(short).to_arrow_table().to_pylist()


@pytest.mark.parametrize(
    "query",
    ["SELECT regexp_replace(t, '[0-9]+', 'x', 'g') AS a, count(*) AS m FROM n GROUP BY a ORDER BY a",
     "SELECT k FROM n WHERE regexp_matches(t, '^a[0-9]{2}$') ORDER BY k",
     "SELECT string_agg(t, ', ' ORDER BY k) AS a, length(string_agg(t)) AS b, list(t ORDER BY k)[1] AS c FROM few",
     "SELECT list_sort(list(k))[2:4] AS a, len(list(DISTINCT t)) AS b FROM few GROUP BY k % 2 ORDER BY a",
     "SELECT k, list(k) OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS a FROM few ORDER BY k",
     "SELECT list(t ORDER BY k)[1] AS a, len(list(t)) AS b, max(k, 3) AS c FROM n",
     "SELECT upper(t) || '-' || replace(t, 'a', 'bcd') || concat(k, d) AS a FROM few ORDER BY a",
     again("s + s", "1", 25, "s"), again("s || 'b'", "'a'", 30, "s"),
     "SELECT " + ", ".join(f"upper(t || '{i}') || lower(t) AS c{i}" for i in range(100)) + " FROM few ORDER BY ALL"],
)  # fmt: skip
def test_what_is_made_of_values_of_tables_is_answered(one: Guard, con: duckdb.DuckDBPyConnection, query: str) -> None:
    assert one.sql(query).to_pylist() == con.cursor().sql(query).to_arrow_table().to_pylist()


@pytest.mark.parametrize(
    ("value", "said"),
    [("a" * (LONGEST_PARAMETER + 1), "characters"), (["a", "a" * (LONGEST_PARAMETER + 1)], "characters"),
     ({"a": "a" * (LONGEST_PARAMETER + 1)}, "characters"), ([1] * (LONGEST_PARAMETER + 1), "values")],
)  # fmt: skip
def test_a_parameter_is_no_longer_than_it_is_taken_to_be(one: Guard, value: object, said: str) -> None:
    for given in ([value], {"1": value}):
        with pytest.raises(Refused, match=rf"SDC002: .*a parameter of more than {LONGEST_PARAMETER} {said}"):
            one.sql("SELECT $1 AS a", given)
        with pytest.raises(Refused, match="SDC002"):
            one.question("SELECT $1 AS a").ask(given)
    assert one.sql("SELECT $1 || 'b' AS a", ["a" * LONGEST_PARAMETER]).num_rows == 1


NINE = "k % 2, k % 3, k % 5, k % 7, k % 11, k % 13, k % 17, k % 19, k % 23"
EIGHT = NINE[: NINE.rindex(",")]


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT count(*) AS m FROM few GROUP BY CUBE ({NINE})",
        f"SELECT count(*) AS m FROM few GROUP BY GROUPING SETS (CUBE ({EIGHT}), (t))",
        "SELECT count(*) AS m FROM few GROUP BY CUBE (k, t, d), CUBE (k % 2, k % 3), ROLLUP (k % 5, k % 7, k % 11, k % 13, "
        "k % 17, k % 19, k % 23, k % 29)",
        f"SELECT m FROM (SELECT count(*) AS m FROM few GROUP BY CUBE ({EIGHT})) UNION ALL SELECT count(*) FROM few GROUP BY CUBE (k)",
        "SELECT count(*) AS m FROM people GROUP BY CUBE (t, t[1], t[2], t || 1, t || 2, t || 3, t || 4, t || 5, t || 6)",
        f"SELECT count(*) AS m FROM few GROUP BY CUBE ({', '.join(f'k % {i}' for i in range(2, 14))})",
    ],
)
def test_very_many_grouping_sets_are_refused(one: Guard, query: str) -> None:
    with pytest.raises(Refused, match=r"SDC002.*more than 256 grouping sets: write those that are needed"):
        one.rewrite(query)


def test_many_grouping_sets_are_answered(one: Guard, con: duckdb.DuckDBPyConnection) -> None:
    plain = con.cursor().sql(f"SELECT count(*) AS m FROM few GROUP BY CUBE ({EIGHT}) ORDER BY m").fetchall()
    asked = one.sql(f"SELECT count(*) AS m FROM few GROUP BY CUBE ({EIGHT}) ORDER BY m")
    assert asked.column("m").to_pylist() == [m for (m,) in plain]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.t, b.k FROM documents a, n b",
        "SELECT b.k, upper(a.t) AS t FROM n b LEFT JOIN documents a ON a.k = b.k % 4",
        "SELECT k, (SELECT max(t) FROM documents) AS t FROM n",
        "SELECT max(length(upper(a.t) || lower(a.t))) AS m FROM documents a JOIN n b USING (k)",
        "SELECT t, unnest([1, 2, 3]) AS i FROM documents",
        "WITH d AS (SELECT t AS words, k FROM documents) SELECT words FROM d JOIN n USING (k)",
    ],
)
def test_long_texts_of_a_table_do_not_stand_in_any_number_of_rows(one: Guard, query: str) -> None:
    with pytest.raises(Refused, match=r"SDC002.*long texts of a table in many rows: take left\(x, 1000\)"):
        one.rewrite(query)


@pytest.mark.parametrize(
    "query",
    ["SELECT t, u FROM documents ORDER BY k", "SELECT a.u, b.k FROM documents a JOIN n b USING (k) ORDER BY b.k",
     "SELECT left(a.t, 10) || b.k AS v FROM documents a JOIN n b USING (k) ORDER BY b.k",
     "SELECT substr(a.t, 1, 1000) AS v, right(a.t, 3) AS w FROM documents a, few b ORDER BY b.k, a.k",
     "SELECT count(*) AS m FROM documents a JOIN n b USING (k) WHERE starts_with(a.t, 'a') AND a.u > 'b1'",
     "WITH d AS (SELECT upper(t) AS t, k FROM documents) SELECT length(t) AS m FROM d ORDER BY k"],
)  # fmt: skip
def test_long_texts_of_a_table_are_read(one: Guard, con: duckdb.DuckDBPyConnection, query: str) -> None:
    assert one.sql(query).to_pylist() == con.cursor().sql(query).to_arrow_table().to_pylist()
