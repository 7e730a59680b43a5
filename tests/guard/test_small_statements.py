"""Small forms that analysts write: samples of answers, comparisons with lists, quantiles at once, and what errors say."""

from __future__ import annotations

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused, guard

CELLS = "SELECT region, age, count(*) AS n FROM people GROUP BY ALL"


def made(order: str = "i") -> Guard:
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute(
        "CREATE TABLE people AS SELECT i AS person_id, ['a', 'b', 'c'][1 + i * i % 3] AS region, i % 20 * 3 AS age, "
        f"1000 + i * 7919 % 4000 AS income FROM range(3000) t(i) ORDER BY {order}"
    )
    con.execute("CREATE TABLE regions AS FROM (VALUES ('a', 'cold'), ('b', 'warm'), ('c', NULL)) r(region, climate)")
    con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
    con.execute("FROM sdc_declare_public('regions')").fetchall()
    con.execute(
        "FROM sdc_protect('people', unit := 'person_id', dimensions := ['region', 'age'], measures := ['income'])"
    ).fetchall()
    return guard(con)


@pytest.fixture(scope="module")
def one() -> Guard:
    return made()


@pytest.mark.parametrize(("sample", "rows"), [
    ("TABLESAMPLE 10 ROWS", 10), ("TABLESAMPLE reservoir(25%)", 10), ("TABLESAMPLE 100%", 40), ("TABLESAMPLE 0%", 0),
    ("TABLESAMPLE 50 ROWS", 40), ("USING SAMPLE 7", 7), ("TABLESAMPLE reservoir(10 ROWS) REPEATABLE (3)", 10),
])  # fmt: skip
def test_a_sample_has_as_many_cells_as_asked_for(one: Guard, sample: str, rows: int) -> None:
    cells = one.sql(CELLS).to_pylist()
    found = one.sql(f"SELECT * FROM ({CELLS}) {sample}").to_pylist()
    assert (len(cells), len(found)) == (40, rows)
    assert all(row in cells for row in found)
    assert len({tuple(row.values()) for row in found}) == rows


def test_a_share_is_about_as_large_as_asked_for(one: Guard) -> None:
    numbers = "SELECT i FROM range(9000) t(i)"
    assert one.sql(f"SELECT count(*) FROM ({numbers}) TABLESAMPLE 10%").column(0)[0].as_py() == pytest.approx(
        900, abs=90
    )
    seeds = [one.sql(f"SELECT i FROM ({numbers}) TABLESAMPLE bernoulli(1%) REPEATABLE ({seed})") for seed in range(3)]
    assert len({str(found.to_pylist()) for found in seeds}) == 3


def test_how_records_are_stored_does_not_show_in_a_sample() -> None:
    answers = set()
    for order in ("i", "i DESC", "i * 7919 % 3001"):
        stored = made(order)
        asked = (
            f"SELECT * FROM ({CELLS}) TABLESAMPLE 5 ROWS",
            f"FROM ({CELLS}) TABLESAMPLE 20%",
            "FROM regions USING SAMPLE 2",
        )
        answers.add(str([stored.sql(query).to_pylist() for query in asked]))
    assert len(answers) == 1


@pytest.mark.parametrize("query", [
    "SELECT count(*) FROM people TABLESAMPLE 10%", "SELECT region, count(*) FROM people GROUP BY region USING SAMPLE 9",
    "WITH t AS (FROM people) SELECT count(*) FROM t TABLESAMPLE 10%", "SELECT sum(income) FROM (FROM people) TABLESAMPLE 3 ROWS",
    "SELECT count(*) FROM people JOIN (FROM people TABLESAMPLE 10%) p USING (person_id)",
])  # fmt: skip
def test_a_sample_of_records_is_refused_with_what_to_write(one: Guard, query: str) -> None:
    with pytest.raises(Refused, match=r"SDC045.*a sample of records.*draw from the answer"):
        one.sql(query)


@pytest.mark.parametrize(
    "sample", ["TABLESAMPLE (SELECT 1)", "TABLESAMPLE 120%", "TABLESAMPLE 10% REPEATABLE (income)"]
)
def test_odd_samples_are_refused(one: Guard, sample: str) -> None:
    with pytest.raises(Refused):
        one.sql(f"SELECT * FROM ({CELLS}) {sample}")


@pytest.mark.parametrize("condition", [
    "region = ANY(ARRAY['a', 'b'])", "region <> ALL(['a', 'b'])", "region = SOME(['a'])", "region <> ANY(['a', 'b'])",
    "region = ALL(['a'])", "age > ALL([10, 20])", "age < ANY([10, 20])", "age >= SOME(ARRAY[3, 9])", "age <= ALL([30])",
    "NOT age > ALL([10, 20])", "(age + 1) % 2 = ANY([1])", "climate <> ALL(['cold'])", "climate = ANY(['cold', NULL])",
    "climate <> ALL(['cold', NULL])", "(age > ALL([10, 20])) = ANY([true])",
])  # fmt: skip
def test_comparisons_with_lists_mean_what_they_mean_in_duckdb(one: Guard, condition: str) -> None:
    query = "SELECT region, climate, age, {0} AS x FROM regions, range(0, 60, 7) t(age) WHERE ({0}) IS NOT NULL ORDER BY ALL"
    plain = duckdb.connect().execute(
        query.format(condition).replace(
            "FROM regions", "FROM (VALUES ('a', 'cold'), ('b', 'warm'), ('c', NULL)) r(region, climate)"
        )
    )
    assert [tuple(row.values()) for row in one.sql(query.format(condition)).to_pylist()] == plain.fetchall()


def test_of_records_a_list_selects_those_that_in_selects(one: Guard) -> None:
    """The same set, the same noise."""
    for written, plain in (
        ("region <> ALL(ARRAY['a', 'b'])", "region NOT IN ('a', 'b')"), ("region = SOME(['a'])", "region = 'a'"),
        ("age > ALL([10, 20])", "age > 20"), ("age < ANY([9, 3])", "age < 9"),
    ):  # fmt: skip
        counts = [
            one.sql(f"SELECT count(*) AS n, sum(income) AS x FROM people WHERE {where}") for where in (written, plain)
        ]
        assert counts[0].to_pylist() == counts[1].to_pylist()
    for refused in (
        "income > ALL([3000])",
        "income = ANY(ARRAY[1001])",
        "person_id = ANY([7, 8])",
        "record_key <> ALL([1])",
    ):
        with pytest.raises(Refused):
            one.sql(f"SELECT count(*) FROM people WHERE {refused}")


def test_long_lists_are_bounded(one: Guard) -> None:
    numbers = ", ".join(map(str, range(1500)))
    assert one.sql(f"SELECT count(*) AS n FROM people WHERE age = ANY([{numbers}])").num_rows == 1
    with pytest.raises(Refused, match="SDC002"):
        one.sql(f"SELECT count(*) AS n FROM people WHERE age + age > ALL([{numbers}])")
    with pytest.raises(Refused, match=r"SDC005.*empty"):
        one.sql("SELECT count(*) AS n FROM people WHERE age = ANY([])")


def test_quantiles_at_once_are_the_quantiles_one_by_one(one: Guard) -> None:
    query = "SELECT region, {} AS q FROM people GROUP BY region ORDER BY region"
    for name in ("quantile_cont", "quantile_disc", "approx_quantile"):
        several = one.sql(query.format(f"{name}(income, [0.1, 0.5, 0.9])")).to_pylist()
        alone = [one.sql(query.format(f"{name}(income, {share})")).to_pylist() for share in (0.1, 0.5, 0.9)]
        assert [row["q"] for row in several] == [[row["q"] for row in rows] for rows in zip(*alone, strict=True)]
    within = "SELECT percentile_cont([0.1, 0.9]) WITHIN GROUP (ORDER BY income) AS q FROM people"
    assert (
        one.sql(within).to_pylist() == one.sql("SELECT quantile_cont(income, [0.1, 0.9]) AS q FROM people").to_pylist()
    )
    for refused in ("[0.5, 1]", "[0]", "[0.5, income]"):
        with pytest.raises(Refused):
            one.sql(f"SELECT quantile_cont(income, {refused}) FROM people")


def test_parameters_stand_side_by_side(one: Guard) -> None:
    expected = one.sql("SELECT count(*) AS n FROM people WHERE region IN ('a', 'b')").to_pylist()
    for query, values in (
        ("region IN (?,?)", ["a", "b"]), ("region IN($1,$2)", ["a", "b"]), ("region IN ($2,$1)AND'$1,$2'<>''", ["a", "b"]),
        ("region IN ($x,$y)", {"x": "a", "y": "b"}), ("region = ANY(ARRAY[$1,$2])", ["a", "b"]),
    ):  # fmt: skip
        assert one.sql(f"SELECT count(*) AS n FROM people WHERE {query}", values).to_pylist() == expected  # type: ignore[arg-type]
    texts = one.sql('SELECT \'$1,$2\' AS b, $1 AS c --$1,$2\n, "$1,$2" FROM (SELECT 1 AS "$1,$2")', ["z"])
    assert texts.to_pylist() == [{"b": "$1,$2", "c": "z", "$1,$2": 1}]


@pytest.mark.parametrize(("query", "said"), [
    ("SELECT regoin, count(*) FROM people GROUP BY 1", "'regoin'; did you mean 'region'?"),
    ("SELECT totl FROM (SELECT region, count(*) AS total FROM people GROUP BY 1)", "'totl'; did you mean 'total'?"),
    ("SELECT region, count(*) AS total FROM people GROUP BY 1 HAVING totl > 3", "'totl'; did you mean 'total'?"),
    ("SELECT region, count(*) AS total FROM people GROUP BY 1 ORDER BY totl", "'totl'; did you mean 'total'?"),
    ("SELECT count(*) FROM people JOIN regions USING (regoin)", "'regoin'; did you mean 'region'?"),
    ("SELECT x.region, count(*) FROM people p GROUP BY 1", "'x'; there are: 'p'"),
    ("WITH totals AS (SELECT count(*) AS n FROM people) FROM total", "'total'; did you mean 'totals'?"),
    ("SELECT conut(*) FROM people", "conut; did you mean 'count'?"),
    ("SELECT 'a' + 1 FROM regions", "several functions +(STRING_LITERAL, INTEGER_LITERAL): a cast helps"),
])  # fmt: skip
def test_errors_name_what_is_near(one: Guard, query: str, said: str) -> None:
    with pytest.raises(Refused) as told:
        one.sql(query)
    assert said in str(told.value)


@pytest.mark.parametrize("query", [
    "SELECT record_kay, count(*) FROM people GROUP BY 1", "SELECT region, count(*) FROM people GROUP BY 1 HAVING record_kay > 1",
    "SELECT region, count(*) FROM people GROUP BY 1 HAVING record_key > 1", "SELECT count(*) FROM people JOIN regions USING (record_kay)",
    "SELECT sdc_noice(1)", "FROM polices",
])  # fmt: skip
def test_errors_name_nothing_hidden(one: Guard, query: str) -> None:
    with pytest.raises(Refused) as told:
        one.sql(query)
    assert "did you mean" not in str(told.value)


@pytest.mark.parametrize(("query", "name"), [
    ("SELECT current_date", "current_date"), ("SELECT CURRENT_TIMESTAMP", "current_timestamp"), ("SELECT now()", "now()"),
    ("SELECT today() + 1 AS x, current_date", "x"), ("SELECT localtimestamp", "localtimestamp"), ("SELECT current_time AS t", "t"),
    ("SELECT CURRENT_TIME, current_date", "current_time"),
    ("SELECT d FROM (SELECT current_date AS d) WHERE d = current_date", "d"),
    ("SELECT current_date, region, count(*) AS n FROM people GROUP BY region", "current_date"),
])  # fmt: skip
def test_what_time_it_is(one: Guard, query: str, name: str) -> None:
    """A column that is called as the word for it is no column that the word could be taken for."""
    answer = one.sql(query)
    assert answer.column_names[0] == name
    assert answer.num_rows >= 1


def test_now_is_when_the_statement_began(one: Guard) -> None:
    """However it is called, and as a limit of what is counted."""
    asked = "SELECT now() = current_timestamp AS a, transaction_timestamp() = now() AS b, now()::DATE = today() AS c"
    assert one.sql(asked).to_pylist() == [{"a": True, "b": True, "c": True}]
    everybody = one.sql("SELECT count(*) AS n FROM people")
    assert one.sql("SELECT count(*) AS n FROM people WHERE age < year(now()) - 1000") == everybody
