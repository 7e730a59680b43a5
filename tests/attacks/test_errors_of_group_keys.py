"""An error where a group is shown, and none where there is none, would tell whether somebody is in it."""

from __future__ import annotations

import duckdb
import pytest
from products import each_once

import sdcduck
from sdcduck.guard import Guard, Refused, guard

METHODS = {
    "cell_key": ", min_units := 3",
    "threshold": ", method := 'threshold', min_units := 3",
    "rounding": ", method := 'rounding', base := 5",
}
KEYS = (
    "to_years(age)", "to_months(age) + to_days(age)", "to_weeks(age)", "to_hours(-age)", "age * INTERVAL 1 DAY",
    "INTERVAL 1 DAY * age", "to_days(age) / 2", "-to_days(age)", "CASE WHEN age > 3 THEN to_years(age) END",
    "TIMESTAMP '2000-01-01' + to_years(age) - TIMESTAMP '2000-01-01'", "coalesce(to_years(age), to_days(1))",
    "nullif(to_minutes(age), to_days(1))", "greatest(to_seconds(age), to_days(1))", "(to_years(age))",
    "floats", "boxes", "coalesce(floats, floats)", "CASE WHEN age > 3 THEN boxes END",
)  # fmt: skip


@pytest.fixture(params=METHODS, name="one", scope="module")
def _one(request: pytest.FixtureRequest) -> Guard:
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute(
        "CREATE TABLE people AS SELECT id, (20 + id % 60)::INTEGER AS age, [0.5::DOUBLE] AS floats, {'a': 0.5::FLOAT} AS boxes "
        "FROM range(3000) t(id)"
    )
    con.execute("UPDATE people SET age = 7 WHERE id = 900")  # of whom there is one
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    con.execute(
        f"FROM sdc_protect('people', unit := 'id', dimensions := ['age', 'floats', 'boxes']{METHODS[request.param]})"
    ).fetchall()
    return guard(con)


def outcome(one: Guard, query: str) -> str:
    try:
        one.sql(query)
    except Refused as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize(("key", "one"), each_once(KEYS, list(METHODS)), indirect=["one"])
def test_a_key_that_is_not_shown_fails_for_nobody_alone(one: Guard, key: str) -> None:
    forms = (
        f"SELECT {key} AS x, count(*) FROM people WHERE age = {{}} GROUP BY 1",
        f"SELECT DISTINCT {key} AS x FROM people WHERE age = {{}}",
        f"SELECT {key} AS x, count(*) FROM people WHERE age = {{}} GROUP BY ROLLUP (x)",
        f"SELECT count(DISTINCT {key}) FROM people WHERE age = {{}}",
        f"SELECT x, count(*) FROM (SELECT {key} AS x FROM people WHERE age = {{}}) GROUP BY x",
    )
    for form in forms:
        assert outcome(one, form.format(7)) == outcome(one, form.format(8)), form


def test_what_is_known_of_a_key_before_is_refused_before(one: Guard) -> None:
    for key in ("to_years(age)", "age * INTERVAL 1 DAY", "floats", "boxes"):
        assert outcome(one, f"SELECT {key} AS x, count(*) FROM people GROUP BY 1").startswith("SDC047")


def test_the_function_for_keys_raises_nothing() -> None:
    con: duckdb.DuckDBPyConnection = sdcduck.connect(secret="the secret of the tests")
    asked = "SELECT _sdc_group_key(to_years(3)), _sdc_group_key([0.5::DOUBLE]), _sdc_group_key(7), _sdc_group_key('x'), _sdc_group_key(-0.0::DOUBLE)"
    assert str(con.execute(asked).fetchone()) == "(None, None, 7, 'x', 0.0)"


_AGES = "(SELECT age, count(*) AS n FROM people GROUP BY age)"
_FAILS = "CASE WHEN age = {} THEN 'bad' ELSE '1' END"
OVER_GROUPS = (
    f"SELECT age, repeat('x', CASE WHEN age = {{}} THEN 5000 ELSE 1 END) AS r FROM {_AGES}",
    f"SELECT age FROM {_AGES} WHERE strlen(repeat('x', CASE WHEN age = {{}} THEN 5000 ELSE 1 END)) = 1",
    f"SELECT age, lpad('x', CASE WHEN age = {{}} THEN 5000 ELSE 1 END, '.') AS r FROM {_AGES}",
    f"SELECT age FROM {_AGES} WHERE format('{{:d}}', ({_FAILS})::INT) = '1'",
    f"SELECT age FROM {_AGES} WHERE printf('%d', ({_FAILS})::INT) = '1'",
    f"SELECT age, i FROM {_AGES} a, range(CASE WHEN a.age = {{}} THEN 50000 ELSE 2 END) t(i)",
    f"SELECT age FROM {_AGES} WHERE len(range(CASE WHEN age = {{}} THEN 50000 ELSE 2 END)) = 2",
    f"SELECT a.age, l.x FROM {_AGES} a, LATERAL (SELECT ({_FAILS.replace('age', 'a.age')})::INT AS x) l",
    f"WITH a AS {_AGES} SELECT o.age, l.age FROM (VALUES (20)) o(age), LATERAL (SELECT a.age FROM a WHERE a.age = o.age AND "
    f"({_FAILS.replace('age', 'a.age')})::INT = 1) l",
    f"WITH RECURSIVE a AS {_AGES}, t AS (SELECT 20 AS age UNION ALL SELECT t.age + 1 FROM t JOIN a ON a.age = t.age "
    f"WHERE ({_FAILS.replace('age', 'a.age')})::INT = 1) SELECT max(age) AS m FROM t",
    f"SELECT histogram(({_FAILS})::INT)::VARCHAR AS h, mad(({_FAILS})::INT) AS m FROM {_AGES}",
    f"SELECT sum(age) AS s FROM {_AGES} WHERE bar(age, 0, CASE WHEN age = {{}} THEN 'nan'::DOUBLE ELSE 100 END, 10) <> ''",
    f"SELECT age FROM {_AGES} WHERE chr(CASE WHEN age = {{}} THEN -5 ELSE 65 END) = 'A'",
    "SELECT age, count(*) AS n FROM people GROUP BY age HAVING chr(CASE WHEN age = {} THEN 55296 ELSE 65 END) = 'A'",
    "SELECT age, count(*) AS n FROM people GROUP BY age "
    "HAVING to_timestamp(CASE WHEN age = {} THEN 1e308 ELSE 1.0 END) IS NOT NULL",
    f"SELECT age FROM {_AGES} WHERE array_extract('abc', CASE WHEN age = {{}} THEN -9223372036854775808 ELSE 1 END) <> 'b'",
    f"SELECT a.age FROM {_AGES} AS a JOIN (VALUES ('a')) AS v(x) "
    "ON substring('abc', 1, CASE WHEN a.age = {} THEN -9223372036854775808 ELSE 1 END) = v.x",
    "WITH t AS (SELECT age, count(*) AS n FROM people GROUP BY age) SELECT age FROM t "
    "WHERE age IN (SELECT age FROM t WHERE substr('abc', CASE WHEN age = {} THEN 9223372036854775807 ELSE 1 END, 1) <> 'b')",
    "SELECT age, n FROM (SELECT age, count(*) AS n FROM people GROUP BY age) "
    "QUALIFY to_timestamp(CASE WHEN age = {} THEN 1e308 ELSE 1.0 END) IS NOT NULL AND row_number() OVER (PARTITION BY age) = 1",
    f"SELECT age FROM {_AGES} WHERE regexp_matches(({_FAILS})::INT::VARCHAR, '1')",
)
"""What fails for one group, over what is published of all."""


@pytest.mark.parametrize(("form", "one"), each_once(OVER_GROUPS, list(METHODS)), indirect=["one"])
def test_what_is_made_of_groups_fails_for_none_that_is_not_shown(one: Guard, form: str) -> None:
    """One alone, nobody, and a group that is shown, for which it does fail; noise may show one who is alone."""
    alone, nobody, shown = (outcome(one, form.replace("{}", str(age))) for age in (7, 8, 20))
    is_shown = 7 in one.sql("SELECT DISTINCT age FROM people").column("age").to_pylist()
    assert nobody == ""
    assert alone == (shown if is_shown else nobody)
    assert shown or "bar(" in form
