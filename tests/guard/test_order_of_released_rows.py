"""What is made of the order of released rows follows from these rows, and is written so that DuckDB reads it."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard
from sdcduck.guard.refusals import Refused

RELEASED = "SELECT region, age, count(*) AS n, sum(income) AS income FROM people GROUP BY region, age"


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("""
            CREATE TABLE people AS SELECT i AS id, substr('NSEW', 1 + i // 7 % 4, 1) AS region, 20 + i % 7 AS age,
                100 + i * 37 % 991 AS income FROM range(900) t(i) ORDER BY hash(i);
            CREATE TABLE regions AS FROM (VALUES ('N', 30), ('S', 31)) t(region, num);
            FROM sdc_add_record_key('people', unit := 'id');
            FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age'], measures := ['income']);
            FROM sdc_declare_public('regions');
        """).fetchall()
        con.register("answer", sdcduck.open_guard(con).sql(RELEASED))
        con.execute("CREATE TABLE released AS FROM answer").fetchall()
        yield con


@pytest.fixture(scope="module")
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.open_guard(con)


@pytest.mark.parametrize(
    ("shown", "order", "first"),
    [
        ("age", "income DESC", "max(income) DESC"),
        ("age", "n, region", "min({'n': n, 'r': region})"),
        ("region, n % 2 AS odd", "income + n", "min(income + n)"),
    ],
)
def test_distinct_rows_are_in_the_order_of_the_first_of_each(
    con: duckdb.DuckDBPyConnection, guarded: Guard, shown: str, order: str, first: str
) -> None:
    ties = ", ".join(str(place) for place, _ in enumerate(shown.split(", "), 1))  # what is equal comes in its own order
    wanted = con.execute(f"SELECT {shown} FROM released GROUP BY ALL ORDER BY {first}, {ties} LIMIT 4").fetchall()
    found = guarded.sql(f"SELECT DISTINCT {shown} FROM ({RELEASED}) ORDER BY {order} LIMIT 4").to_pylist()
    assert [tuple(row.values()) for row in found] == wanted


@pytest.mark.parametrize(
    "window",
    ["row_number() OVER (ORDER BY sum(n))", "lag(max(n)) OVER (ORDER BY sum(n))", "ntile(2) OVER (ORDER BY sum(n))"],
)
def test_windows_stand_beside_group_by_all(con: duckdb.DuckDBPyConnection, guarded: Guard, window: str) -> None:
    query = f"SELECT age + 1 AS a, sum(n) AS s, {window} AS w FROM {{}} x GROUP BY ALL ORDER BY w, s"
    wanted = con.execute(query.format("released")).fetchall()
    assert [tuple(row.values()) for row in guarded.sql(query.format(f"({RELEASED})")).to_pylist()] == wanted


@pytest.mark.parametrize(
    "query",
    [
        "SELECT age, n FROM {} x WHERE n IN (SELECT num FROM regions) UNION ALL SELECT age, income FROM {} y",
        "SELECT age, n FROM {} x UNION ALL SELECT DISTINCT age, 1 FROM {} y",
        "SELECT age, sum(n) FROM {} x GROUP BY age UNION ALL SELECT age, n FROM {} y",
        "SELECT age, n FROM {} x UNION SELECT age, 1 FROM {} y UNION ALL SELECT age, 1 FROM {} z",
        "SELECT age, n FROM {} x UNION ALL (SELECT age, n FROM {} y EXCEPT SELECT 20, num FROM regions)",
        "SELECT count(*), sum(age) FROM (SELECT DISTINCT age FROM {} x UNION ALL SELECT n FROM {} y LIMIT 7)",
    ],
)
def test_parts_of_union_all_have_orders_of_their_own(
    con: duckdb.DuckDBPyConnection, guarded: Guard, query: str
) -> None:
    wanted = con.execute(query.replace("{}", "released")).fetchall()
    found = [tuple(row.values()) for row in guarded.sql(query.replace("{}", f"({RELEASED})")).to_pylist()]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("function", ["sum(n)", "first_value(age)"])
@pytest.mark.parametrize(
    "frame", ["ROWS 2 PRECEDING EXCLUDE TIES", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP"]
)
def test_rows_that_nothing_tells_are_refused(guarded: Guard, function: str, frame: str) -> None:
    query = f"SELECT {function} OVER ({{}}{frame}) AS v FROM ({RELEASED}) x"
    assert guarded.sql(query.format("")).num_rows == 28  # all of them are equal
    with pytest.raises(Refused, match="RANGE or GROUPS"):
        guarded.sql(query.format("ORDER BY age "))


def test_sums_of_other_names_are_no_keys_of_group_by_all(con: duckdb.DuckDBPyConnection, guarded: Guard) -> None:
    query = "SELECT age, fsum(n) AS s, product(2) AS p, rank() OVER (ORDER BY max(n)) AS w FROM {} x GROUP BY ALL ORDER BY age"
    query += ", row_number() OVER (ORDER BY max(income))"
    wanted = con.execute(query.format("released")).fetchall()
    assert [tuple(row.values()) for row in guarded.sql(query.format(f"({RELEASED})")).to_pylist()] == wanted


def test_a_count_of_rows_has_another_name(guarded: Guard) -> None:
    asked = "SELECT region, {0} AS n FROM people GROUP BY region HAVING {0} > 3 ORDER BY {0}, region"
    assert guarded.sql(asked.format("count_star()")).equals(guarded.sql(asked.format("count(*)")))
    assert guarded.sql("SELECT count_star() FROM people").column_names == ["count_star()"]


def test_a_frame_may_exclude_no_others(con: duckdb.DuckDBPyConnection, guarded: Guard) -> None:
    over = "(ORDER BY age, region ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING EXCLUDE NO OTHERS)"
    query = f"SELECT age, region, sum(n) OVER {over} AS s FROM {{}} x ORDER BY age, region"
    wanted = con.execute(query.format("released")).fetchall()
    assert [tuple(row.values()) for row in guarded.sql(query.format(f"({RELEASED})")).to_pylist()] == wanted


@pytest.mark.parametrize(
    "window", ["(PARTITION BY region)", "(ORDER BY age, region)", "(ORDER BY age, region ROWS 3 PRECEDING)"]
)
@pytest.mark.parametrize(
    "function",
    [
        "row_number(ORDER BY income, age, region)",
        "lag(n ORDER BY income, age, region)",
        "lead(n, 2 ORDER BY income DESC, age, region)",
        "ntile(3 ORDER BY income, age, region)",
        "rank(ORDER BY n)",
    ],
)
def test_an_order_in_the_arguments_is_that_of_the_places(
    con: duckdb.DuckDBPyConnection, guarded: Guard, function: str, window: str
) -> None:
    query = f"SELECT region, age, {function} OVER {window} AS v FROM {{}} x ORDER BY region, age"
    wanted = con.execute(query.format("released")).fetchall()
    assert [tuple(row.values()) for row in guarded.sql(query.format(f"({RELEASED})")).to_pylist()] == wanted


@pytest.mark.parametrize(
    "query",
    [
        "SELECT list(age ORDER BY age, region) AS l FROM {} x ANTI JOIN regions y ON x.n < y.num",
        "SELECT count(*) AS n, list(x.n ORDER BY age, region) AS l FROM {} x SEMI JOIN {} y ON x.n IS NOT DISTINCT FROM y.n + 1",
        "SELECT age, region, lag(n) OVER (ORDER BY age, region) AS v FROM {} x SEMI JOIN regions y ON x.n > y.num ORDER BY 1, 2",
    ],
)
def test_an_order_names_no_rows_of_the_other_side_of_a_semijoin(
    con: duckdb.DuckDBPyConnection, guarded: Guard, query: str
) -> None:
    wanted = con.execute(query.replace("{}", "released")).fetchall()
    found = [tuple(row.values()) for row in guarded.sql(query.replace("{}", f"({RELEASED})")).to_pylist()]
    assert found == wanted


@pytest.mark.parametrize("keys", ["region", "lower(region)", "region, age % 2", "sum(income) % 5", "grouping(region)"])
def test_distinct_on_takes_what_is_not_shown(con: duckdb.DuckDBPyConnection, keys: str) -> None:
    con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age'], measures := ['income'], "
        "method := 'threshold', min_units := 1, role := 'all')").fetchall()  # fmt: skip
    query = f"SELECT DISTINCT ON ({keys}) age, count(*) AS n FROM people GROUP BY region, age ORDER BY age, region"
    found = sdcduck.open_guard(con, role="all").sql(query).to_pylist()
    assert [tuple(row.values()) for row in found] == con.execute(query).fetchall()


@pytest.mark.parametrize(
    "limit", ["LIMIT age", "LIMIT n", "LIMIT 3 OFFSET max(age)", "LIMIT count(*)", "OFFSET age + 1"]
)
def test_a_limit_is_no_column(guarded: Guard, limit: str) -> None:
    with pytest.raises(Refused, match="in LIMIT or OFFSET"):
        guarded.sql(f"SELECT age, count(*) AS n FROM people GROUP BY age {limit}")
    asked = "SELECT age, count(*) AS n FROM people GROUP BY age ORDER BY age LIMIT (SELECT max(num) FROM regions) - 28"
    assert guarded.sql(asked).num_rows == 3


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("SELECT count(*) AS n, product(2) AS p FROM people", "product"),
        ("SELECT age, count(*) AS n, product(2) FILTER (WHERE age > 30) AS p FROM people GROUP BY age", "product"),
        ("SELECT count(*) AS n FROM people HAVING product(2) > 1", "product"),
        ("SELECT age FROM people GROUP BY age ORDER BY product(2)", "product"),
        # over the rows of the answer it would be one number, and make one row of two
        ("SELECT sum(product(2)) OVER () AS p FROM people GROUP BY region", "product"),
        ("SELECT count(*) OVER w AS p FROM people GROUP BY region WINDOW w AS (ORDER BY product(2))", "product"),
        ("SELECT count(*) AS n, fsum(2, 3) AS p FROM people", "fsum"),
        ("SELECT count(*) AS n, favg(2, 3) AS p FROM people", "favg"),
        ("SELECT count(*) AS n, count_star(2) AS p FROM people", "count_star"),
    ],
)
def test_an_aggregate_of_records_never_adds_up_the_answer(guarded: Guard, query: str, name: str) -> None:
    with pytest.raises(Refused, match=rf"SDC050.*\({name}\)"):
        guarded.sql(query)


def test_such_an_aggregate_may_be_that_of_a_window(con: duckdb.DuckDBPyConnection, guarded: Guard) -> None:
    query = (
        "SELECT age, product(2) OVER () AS p, product(max(n)) FILTER (WHERE age < 22) OVER (ORDER BY age) AS q, "
        "fsum(count(*)) OVER () AS s FROM {} x GROUP BY age ORDER BY age"
    )
    wanted = con.execute(query.format("released")).fetchall()
    assert [tuple(row.values()) for row in guarded.sql(query.format(f"({RELEASED})")).to_pylist()] == wanted
    of_records = "SELECT age, product(2) OVER () AS p, product(n) OVER (ORDER BY age) AS q FROM {} ORDER BY age"
    asked = guarded.sql(of_records.format("(SELECT age, count(*) AS n FROM people GROUP BY age)"))
    assert guarded.sql("SELECT age, product(2) OVER () AS p, product(count(*)) OVER (ORDER BY age) AS q FROM people "
        "GROUP BY age ORDER BY age").equals(asked)  # fmt: skip


@pytest.mark.parametrize("table", ["people", "regions"])
def test_grouping_takes_columns(guarded: Guard, table: str) -> None:
    first = duckdb.__version__.startswith("1.")  # which does not read it
    with pytest.raises(Refused, match="SDC001" if first else r"SDC047.*write grouping\(a, b\)"):
        guarded.sql(f"SELECT grouping_id() AS g FROM {table} GROUP BY CUBE (region)")
