"""``sdc_synth_tables``: parents and their children drawn together."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

import sdcduck
from sdcduck.methods.synthesis.families import siblings

SEED = "seed := 20240917"
CHILDREN = "{'persons': {'parent': 'household', 'order_by': 'nr'}, 'cars': 'home'}"
CALL = f"FROM sdc_synth_tables('households', 'household', {CHILDREN}, {SEED})"


@pytest.fixture(scope="module")
def register(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Households of 0 to 4 persons, whose ages are near each other; cars, some without a household; and the result."""
    lasting.execute(
        """CREATE OR REPLACE TABLE households AS SELECT 'H' || range AS household,
        ['North', 'South', NULL][1 + (md5_number_lower('r' || range) % 3)::INTEGER] AS region,
        (1000 + md5_number_lower('i' || range) % 90000 / 10)::DECIMAL(9, 1) AS income FROM range(1200)"""
    )
    lasting.execute(
        """CREATE OR REPLACE TABLE persons AS SELECT household, nr,
        (25 + md5_number_lower('a' || household) % 50 + md5_number_lower(household || nr) % 4)::INTEGER AS age,
        ['f', 'm'][1 + nr % 2] AS sex FROM households, range(1, 5) numbers(nr)
        WHERE nr <= (md5_number_lower('s' || household) % 4)::INTEGER + (region IS NOT DISTINCT FROM 'North')::INTEGER"""
    )
    lasting.execute(
        """CREATE OR REPLACE TABLE cars AS SELECT household AS home, 'brand ' || md5_number_lower(household) % 4 AS brand
        FROM households WHERE region IS NOT NULL AND md5_number_lower('c' || household) % 3 = 0
        UNION ALL SELECT NULL, 'lent' FROM range(30)"""
    )
    lasting.execute(f"CREATE OR REPLACE TABLE together AS {CALL}")
    lasting.execute(
        "CREATE OR REPLACE TABLE found AS SELECT household, unnest(persons, recursive := true) FROM together"
    )
    return lasting


def rows(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    """What a query returns, in order."""
    return sorted(con.sql(query).fetchall(), key=repr)


def test_each_parent_has_a_new_key_and_each_child_a_parent(register: duckdb.DuckDBPyConnection) -> None:
    [(parents, least, most, different, cars)] = register.sql(
        """SELECT count(household), min(household), max(household), count(DISTINCT household),
        sum(len(cars)) FILTER (household IS NULL) FROM together"""
    ).fetchall()
    assert (parents, least, most, different) == (1200, 1, 1200, 1200)
    assert cars == 30  # those of no household
    assert rows(register, "FROM found ANTI JOIN together USING (household)") == []
    described = {row[0]: row[1] for row in register.sql("DESCRIBE together").fetchall()}
    assert described["household"] == "BIGINT"
    assert described["persons"].startswith("STRUCT(nr BIGINT, age INTEGER, sex VARCHAR)")
    assert list(described) == ["household", "region", "income", "persons", "cars"]


def test_numbers_of_children_keep_their_distribution(register: duckdb.DuckDBPyConnection) -> None:
    [(far, north)] = register.sql(
        """WITH counted AS (
            SELECT 0 AS made, region, (SELECT count(*) FROM persons p WHERE p.household = h.household) AS n FROM households h
            UNION ALL SELECT 1, region, len(persons) FROM together WHERE household IS NOT NULL
        ), shares AS (
            SELECT n, count(*) FILTER (made = 0) / 1200 AS original, count(*) FILTER (made = 1) / 1200 AS made
            FROM counted GROUP BY n
        )
        SELECT (SELECT max(abs(original - made)) FROM shares),
            (SELECT list(least ORDER BY made) FROM (SELECT made, min(n) AS least FROM counted WHERE region = 'North' GROUP BY made))"""
    ).fetchall()
    assert far < 0.05
    assert north == [1, 1]  # as the numbers depend on the region


def test_what_goes_together_in_a_family_stays_together(register: duckdb.DuckDBPyConnection) -> None:
    [(spread, sexes, in_order)] = register.sql(
        """SELECT avg(spread), min(sexes), bool_and(in_order) FROM (
        SELECT max(age) - min(age) AS spread, count(DISTINCT sex) AS sexes, list(nr ORDER BY nr) = range(1, count(*) + 1) AS in_order
        FROM found GROUP BY household HAVING count(*) > 1)"""
    ).fetchall()
    assert spread < 6  # of strangers it is 20 and more
    assert sexes == 2
    assert in_order


def test_no_unique_original_comes_up_again(register: duckdb.DuckDBPyConnection) -> None:
    original = "(SELECT region, income, p.* EXCLUDE (household) FROM households JOIN persons p USING (household))"
    made = "(SELECT region, income, f.* EXCLUDE (household) FROM together JOIN found f USING (household))"
    before = f"(SELECT region, income, unnest(persons, recursive := true) FROM sdc_synth_tables('households', 'household', {CHILDREN}, unique_copies := true, {SEED}))"

    def recreated(records: str) -> int:
        text = records.replace("'", "''")
        return register.sql(f"SELECT unique_recreated FROM sdc_synth_replicas('{original}', '{text}')").fetchall()[0][0]

    assert recreated(before) > 100
    assert recreated(made) == 0


def test_no_unique_family_comes_up_again(register: duckdb.DuckDBPyConnection) -> None:
    register.execute(
        """CREATE OR REPLACE TABLE whole AS SELECT region, list({'age': age, 'sex': sex} ORDER BY nr) AS persons
        FROM households JOIN persons USING (household) GROUP BY household, region HAVING count(*) > 1"""
    )

    def recreated(argument: str) -> int:
        register.execute(
            f"""CREATE OR REPLACE TABLE drawn AS
            SELECT region, list_transform(persons, lambda p: {{'age': p.age, 'sex': p.sex}}) AS persons
            FROM sdc_synth_tables('(SELECT * EXCLUDE (income) FROM households)', 'household',
                {{'persons': {{'parent': 'household', 'order_by': 'nr'}}}}, {argument}{SEED}) WHERE len(persons) > 1"""
        )
        return register.sql("SELECT unique_recreated FROM sdc_synth_replicas('whole', 'drawn')").fetchall()[0][0]

    assert recreated("unique_copies := true, ") > 20
    assert recreated("") == 0


def test_details_say_what_was_smoothed(register: duckdb.DuckDBPyConnection) -> None:
    call = CALL.replace(SEED, f"details := true, {SEED}")
    told = register.sql(
        f"""SELECT count(*) FILTER (unique_copy), avg(('income' IN smoothed)::INTEGER),
        bool_and(len(list_filter(persons, lambda one: one.unique_copy)) = 0) {call} WHERE household IS NOT NULL"""
    ).fetchall()
    assert told == [(0, 1.0, True)]


def test_the_seed_decides_at_any_number_of_threads_and_in_any_order(register: duckdb.DuckDBPyConnection) -> None:
    first = rows(register, "FROM together")
    register.execute("SET threads = 1")
    try:
        assert rows(register, CALL) == first
    finally:
        register.execute("RESET threads")
    register.execute("CREATE OR REPLACE VIEW turned AS FROM persons ORDER BY md5(household || nr)")
    turned = CALL.replace("{'parent'", "{'source': 'turned', 'parent'").replace(
        "'households',", "'(FROM households ORDER BY md5(household))',"
    )
    assert rows(register, turned) == first
    assert rows(register, CALL.replace("20240917", "20240918")) != first


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'households', 'house', {'persons': 'household'}", "unknown column 'house'"),
        ("'(FROM persons)', 'household', {'cars': 'home'}", "records of the query have .* different keys"),
        ("'cars', 'home', {'persons': 'household'}", "30 records of 'cars' have no key"),
        ("'households', 'household', NULL", "must name one to 8 tables"),
        ("'households', 'household', {'people_of': 'household'}", "people_of"),
        ("'households', 'household', {'persons': 'hosehold'}", "did you mean 'household'"),
        ("'households', 'household', {'persons': {'parents': 'household'}}", "say of each table the column"),
        ("'households', 'household', {'cars': {'parent': 'home', 'order_by': 'age'}}", "unknown column 'age'"),
        ("'(SELECT household, 1 AS cars FROM households)', 'household', {'cars': 'home'}", "'cars' is also one of the result"),
        ("'(SELECT * FROM households LIMIT 1100)', 'household', {'persons': 'household'}", "have a parent that is not there"),
        ("'households', 'household', {'cars': {'parent': 'home', 'source': '(SELECT home FROM cars)'}}", "no column beside the key"),
        ("'households', 'household', {'cars': 'home'}, smoothing := 'wide'", "argument 'smoothing' must be 'none' or 'density'"),
    ],
)  # fmt: skip
def test_wrong_calls(register: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        register.sql(f"FROM sdc_synth_tables({call}, {SEED})").fetchall()


def test_without_a_secret_a_seed_must_be_given() -> None:
    with sdcduck.connect() as con:
        con.execute("CREATE TABLE a AS SELECT 1 AS id; CREATE TABLE b AS SELECT 1 AS a, 2 AS x")
        with pytest.raises(duckdb.Error, match="give seed :="):
            con.sql("FROM sdc_synth_tables('a', 'id', {'b': 'a'})").fetchall()


def test_empty_tables_and_other_numbers_of_parents(register: duckdb.DuckDBPyConnection) -> None:
    nobody = "'(FROM households LIMIT 0)', 'household', {'persons': {'parent': 'household', 'source': '(FROM persons LIMIT 0)'}}"
    assert register.sql(f"FROM sdc_synth_tables({nobody}, {SEED})").fetchall() == []
    childless = "'households', 'household', {'persons': {'parent': 'household', 'source': '(FROM persons LIMIT 0)'}}"
    made = f"SELECT count(*), sum(len(persons)) FROM sdc_synth_tables({childless}, rows := 7, {SEED})"
    assert register.sql(made).fetchall() == [(7, 0)]
    more = CALL.replace(SEED, f"rows := 2400, {SEED}")
    assert register.sql(f"SELECT count(household), sum(len(cars)) FILTER (household IS NULL) {more}").fetchall() == [
        (2400, 60)
    ]


def test_a_key_that_children_spell_in_several_ways_is_one(register: duckdb.DuckDBPyConnection) -> None:
    """Compared with whole numbers, '7' and '07' are the same."""
    register.execute("CREATE TABLE parents AS SELECT i AS id, i % 3 AS k FROM range(40) t(i)")
    for table, key in (("plain", "i % 40"), ("spelled", "CASE WHEN i < 40 THEN '0' ELSE '' END || i % 40")):
        register.execute(f"CREATE TABLE {table} AS SELECT {key} AS parent, i % 4 AS x FROM range(80) t(i)")
    plain, spelled = (
        register.sql(f"SELECT id, k, list_sort({table}) FROM sdc_synth_tables('parents', 'id', {{'{table}': 'parent'}}, {SEED}) ORDER BY id")
        .fetchall()
        for table in ("plain", "spelled")
    )  # fmt: skip
    assert len(plain) == 40
    assert plain == spelled


def test_columns_of_all_kinds(register: duckdb.DuckDBPyConnection) -> None:
    register.execute(
        """CREATE OR REPLACE TABLE shops AS SELECT range AS shop, ['1.5', 'nan', 'inf', '-inf', NULL][1 + range % 5]::DOUBLE AS score,
        (range % 3)::HUGEINT AS large, DATE '2024-02-29' + (range % 4)::INTEGER AS since, range % 2 = 0 AS open,
        [0.5, 1.25][1 + range % 2]::DECIMAL(5, 2) AS rent FROM range(200)"""
    )
    register.execute("CREATE OR REPLACE TABLE sales AS SELECT shop AS at, score, large, since, open, rent FROM shops")
    made = register.sql(f"FROM sdc_synth_tables('shops', 'shop', {{'sales': 'at'}}, unique_copies := true, {SEED})")
    assert made.types[1:6] == register.sql("FROM shops").types[1:]
    register.execute("CREATE OR REPLACE TABLE shops_made AS FROM made")
    [(shops, values, apart)] = register.sql(
        """SELECT count(*), count(DISTINCT COALESCE(score::VARCHAR, 'none')),
        count(*) FILTER (sales[1].open IS DISTINCT FROM open OR len(sales) <> 1) FROM shops_made"""
    ).fetchall()
    assert (shops, values, apart) == (200, 5, 0)


def test_from_python(register: duckdb.DuckDBPyConnection) -> None:
    made = sdcduck.synth_tables(register, "households", "household", {"persons": "household"}, rows=5, seed=1)
    assert made.columns == ["household", "region", "income", "persons"]
    assert len(made.fetchall()) == 5


def test_siblings_stand_in_the_order_of_a_column() -> None:
    parents, codes = np.array([1, 0, 1, 1, -1]), np.array([[5, 2], [0, 0], [4, 3], [6, 1], [5, 2]], np.int32)
    place, before = siblings(parents, codes, first=1)
    assert place.tolist() == [1, 0, 2, 0, 0]
    assert before.tolist() == [3, -1, 0, -1, -1]
    assert siblings(np.empty(0, np.int64), np.empty((0, 2), np.int32))[0].tolist() == []
