"""The class of forms that DuckDB and sqlglot read in two ways: DuckDB reads the same in both texts, or there is no answer.

`test_forms_read_in_two_ways` has forms that were found one by one. Here are others, and what holds for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused, guard
from sdcduck.guard.passes.reading import read
from sdcduck.guard.passes.same_reading import refuse_two_readings

DAYS = """
CREATE TABLE days AS SELECT
    i AS id, DATE '2020-05-17' + (i * 11)::INTEGER AS d, TIMESTAMP '2020-05-17 13:14:15' + INTERVAL (i) HOUR AS ts,
    ['month', 'year', 'day'][1 + i % 3] AS month, ['year', 'day'][1 + i % 2] AS s, CASE WHEN i % 3 > 0 THEN i END AS x,
    ['ax', 'x', 'xb', 'it''s'][1 + i % 4] AS t, (i % 5) / 4.0::DOUBLE AS r, i % 2 = 0 AS ok
FROM range(40) t(i)
"""


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[Guard, duckdb.DuckDBPyConnection]]:
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute(DAYS).execute("FROM sdc_declare_public('days')").fetchall()
    plain = duckdb.connect()
    plain.execute(DAYS)
    open_ = guard(con)
    yield open_, plain
    open_.close()
    plain.close()
    con.close()


MISREAD = (
    # arguments that sqlglot leaves out
    "SELECT date_trunc('day', ts, 'Asia/Tokyo') FROM days", "SELECT char_length('nonsense', d) FROM days",
    "SELECT dayname(d, 0) FROM days", "SELECT monthname(d, 0) FROM days",
    # a column that is called as a part of a time is
    "SELECT id, date_trunc(month, d) FROM days", "SELECT id, date_trunc(s, d) FROM days",
    # what stands behind an argument
    "SELECT id, last(x IGNORE NULLS) OVER (ORDER BY id) FROM days", "SELECT sum(x) EXPORT_STATE FROM days",
    # NULL in a list is nothing that may be meant
    "SELECT id, id IN [1, NULL] FROM days", "SELECT count(*) FROM days WHERE NOT (id IN [1, NULL])",
    "SELECT id, id NOT IN [1, 2, NULL] FROM days", "SELECT t IN ['x', 1] FROM days",
)  # fmt: skip


@pytest.mark.parametrize("query", MISREAD)
def test_what_reads_in_two_ways_is_refused(asked: tuple[Guard, duckdb.DuckDBPyConnection], query: str) -> None:
    with pytest.raises(Refused, match=r"SDC006.*text that reads in two ways|SDC001|SDC010"):
        asked[0].sql(query)


READ_ALIKE = (
    # one thing in two spellings: each is written in another one than it is asked in
    "var_samp(x)", "mean(x)", "sum(x) FILTER (WHERE ok)", "list(x ORDER BY id)", "array_agg(x ORDER BY id)",
    "string_agg(t, '-' ORDER BY id)", "listagg(t, '-' ORDER BY id)", "string_agg(t ORDER BY id)", "list(x ORDER BY x)",
    "list(x ORDER BY x DESC)", "list(DISTINCT x ORDER BY x NULLS FIRST)", "list_sort(list(id), 'DESC')", "list(x ORDER BY x NULLS LAST)", "string_agg(t, ',' ORDER BY id)", "listagg(t ORDER BY id)", "percentile_cont(0.3) WITHIN GROUP (ORDER BY r)",
    "percentile_disc(0.3) WITHIN GROUP (ORDER BY r DESC)", "quantile(r, 0.4)", "median(r)", "bool_or(ok)", "bool_and(id > 3)", "bool_or(true)", "bool_and(false::BOOLEAN)",
    "count_if(ok)", "favg(r)", "fsum(r)", "kahan_sum(r)", "max_by(t, id)", "first(t ORDER BY id)", "count(DISTINCT t)",
    "sum(2 ** id % 7)", "sum(2 ^ 3)", "sum(pow(r, 2))", "sum(@(-id))", "sum(+id)", "sum(log10(id + 1))", "round(sum(log2(id + 1)), 9)",
    "min(d + INTERVAL 3 DAY)", "min(d + INTERVAL '3' MONTH)", "min(d + INTERVAL '7 days')", "min(ts - INTERVAL '90 minutes')",
    "min(date_add(d, INTERVAL 1 DAY))", "min(d + INTERVAL (id) DAY)", "max(date_trunc('week', ts))", "max(datetrunc('quarter', d))",
    "sum(datediff('month', DATE '2020-01-01', d))", "sum(date_diff('week', DATE '2020-01-01', d))", "sum(extract('dow' FROM d))",
    "sum(extract(doy FROM d))", "sum(date_part('weekday', d))", "sum(date_part('years', d))", "sum(dayofweek(d))", "sum(isodow(d))",
    "min(dayname(d))", "min(monthname(d))", "sum(if(ok, 1, 2))", "count_if(x IS NOT NULL)", "count_if(NOT x IS NULL)",
    "count_if(x NOT IN (1, 2))", "count_if(x NOT BETWEEN 3 AND 9)", "count_if(x IS DISTINCT FROM 4)", "count_if(x <> 4)",
    "count_if(ok IS NOT TRUE)", "count_if(id IN [1, 2, 3])", "count_if(id NOT IN [1, 2])", "count_if(t IN ['x', 'xb'])",
    "count_if(t LIKE '%x%')", "count_if(t NOT LIKE 'x%')", "count_if(t ~ 'x')", "count_if(t !~ 'x')", "count_if(t ^@ 'x')",
    "count_if(regexp_matches(t, 'x'))", "count_if(t SIMILAR TO 'x')", "min(t::VARCHAR(1))", "sum(id::INT8)", "sum(1_000 + id)",
    "min(t[1])", "min(t[2:])", "min([id, 3][CASE WHEN ok THEN 1 ELSE 2 END])", "min({'a': id}.a)", "max(ARRAY[id, 3][2])",
    "min(x ORDER BY id DESC NULLS LAST)", "min(substr(t, 1, 1))", "min(substring(t FROM 2 FOR 1))", "sum(position('x' IN t))",
    "sum(id // 3)", "sum(mod(id, 3))", "sum(id & 3)", "sum(xor(id, 3))", "min(lcase(t) || ucase(t))", "min(trim(BOTH 'x' FROM t))",
)  # fmt: skip


def test_one_thing_in_two_spellings_is_answered_as_duckdb_does(
    asked: tuple[Guard, duckdb.DuckDBPyConnection],
) -> None:
    open_, plain = asked
    refused = []
    for expression in READ_ALIKE:
        query = f"SELECT {expression} AS v FROM days"
        try:
            answer = open_.sql(query)
        except Refused as problem:
            refused.append(f"{expression}: {problem.code}")
            continue
        ((wanted,),) = plain.execute(query).fetchall()
        (shown,) = answer.column("v").to_pylist()
        assert repr(int(shown) if isinstance(shown, Decimal) else shown) == repr(wanted), query
    assert len(refused) <= 6, refused


def test_names_that_stand_for_one_another_do_so_for_duckdb() -> None:
    con = duckdb.connect()
    con.execute(DAYS)
    same = "SELECT count_if(date_part('{}', d) <> date_part('{}', d)), count(DISTINCT date_part('{}', d)) > 4 FROM days"
    for one, other in (("dow", "dayofweek"), ("weekday", "dayofweek"), ("doy", "dayofyear"), ("day", "dayofmonth")):
        assert con.execute(same.format(one, other, one)).fetchall() == [(0, True)]
    for one, other in (
        ("datediff('month', DATE '2020-01-07', d)", "date_diff('month', DATE '2020-01-07', d)"),
        ("datesub('month', DATE '2020-01-07', d)", "date_sub('month', DATE '2020-01-07', d)"),
        ("datepart('month', d)", "date_part('month', d)"), ("datetrunc('month', d)", "date_trunc('month', d)"),
        ("log10(id + 1)", "log(10, id + 1)"),
        ("date_add(d, INTERVAL 2 DAY)", "d + INTERVAL '2' DAY"), ("contains([1, 2], id)", "id IN (1, 2)"),
        ("d + INTERVAL '7 days'", "d + INTERVAL 7 DAY"), ("if(ok, x, r)", "CASE WHEN ok THEN x ELSE r END"),
        ("today()", "current_date"), ("ARRAY[id]", "[id]"), ("t::VARCHAR(1)", "t::TEXT"), ("+x", "x"),
    ):  # fmt: skip
        assert con.execute(f"SELECT count_if(({one}) IS DISTINCT FROM ({other})), count(*) FROM days").fetchall() == [
            (0, 40)
        ], one


@pytest.mark.parametrize(
    ("asked_for", "written"),
    [
        ("SELECT a FROM t", "SELECT b FROM t"),
        ("SELECT a FROM t", "SELECT a AS b FROM t"),
        ("SELECT a FROM t", "SELECT a FROM u"),
        ("SELECT a FROM t", "SELECT DISTINCT a FROM t"),
        ("SELECT a = 1 FROM t", "SELECT a <> 1 FROM t"),
        ("SELECT a IN (1, 2) FROM t", "SELECT a IN (1, 3) FROM t"),
        ("SELECT a IN [1, NULL] FROM t", "SELECT a IN (1, NULL) FROM t"),
        ("SELECT sum(a) FILTER (WHERE b) FROM t", "SELECT sum(a) FROM t"),
        ("SELECT a + INTERVAL '7 days' FROM t", "SELECT a + INTERVAL '7' HOUR FROM t"),
        ("SELECT a + INTERVAL '7 days' FROM t", "SELECT a + INTERVAL '8' DAY FROM t"),
        ("SELECT a + INTERVAL '1.5 days' FROM t", "SELECT a + INTERVAL '1.5' DAY FROM t"),
        ("SELECT date_part('dow', a) FROM t", "SELECT date_part('isodow', a) FROM t"),
        ("SELECT log10(a) FROM t", "SELECT log(2, a) FROM t"),
        ("SELECT -a FROM t", "SELECT a FROM t"),
        ("SELECT CAST('1' AS VARCHAR) FROM t", "SELECT CAST('2' AS VARCHAR) FROM t"),
        ("SELECT CAST(a AS DECIMAL(5, 2)) FROM t", "SELECT CAST(a AS DECIMAL(5, 1)) FROM t"),
        ("SELECT a FROM t, u", "SELECT a FROM t LEFT JOIN u ON TRUE"),
        ("SELECT a FROM t ORDER BY a NULLS FIRST", "SELECT a FROM t ORDER BY a"),
        ("SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY a)", "SELECT quantile_cont(a, 0.3 ORDER BY b)"),
        ("SELECT list(a ORDER BY a) FROM t", "SELECT list(a ORDER BY a DESC) FROM t"),
        ("SELECT list(a ORDER BY a) FROM t", "SELECT list(a) FROM t"),
        ("SELECT list(a ORDER BY a) FROM t", "SELECT list(DISTINCT a ORDER BY a) FROM t"),
        ("SELECT list(a ORDER BY a) FILTER (WHERE b) FROM t", "SELECT list(a ORDER BY a) FROM t"),
        ("SELECT string_agg(a) FROM t", "SELECT string_agg(a, ';') FROM t"),
        ("SELECT bool_or(CAST(a AS INTEGER)) FROM t", "SELECT bool_or(a) FROM t"),
        ("SELECT main.f(a) FROM t", "SELECT other.f(a) FROM t"),
        ("SELECT count(*) FROM t WHERE a", "SELECT count(*) FROM t WHERE a LIMIT 1"),
    ],
)
def test_what_means_something_else_is_never_taken_for_the_same(asked_for: str, written: str) -> None:
    con = duckdb.connect()
    with pytest.raises(Refused):
        refuse_two_readings(con, read(con, asked_for), written)
    with pytest.raises(Refused):
        refuse_two_readings(con, read(con, written), asked_for)
    refuse_two_readings(con, read(con, asked_for), asked_for)
