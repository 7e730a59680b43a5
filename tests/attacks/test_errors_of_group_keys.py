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
        assert outcome(one, f"SELECT {key} AS x, count(*) FROM people GROUP BY 1").startswith("SDC005")


def test_the_function_for_keys_raises_nothing() -> None:
    con: duckdb.DuckDBPyConnection = sdcduck.connect(secret="the secret of the tests")
    asked = "SELECT _sdc_group_key(to_years(3)), _sdc_group_key([0.5::DOUBLE]), _sdc_group_key(7), _sdc_group_key('x'), _sdc_group_key(-0.0::DOUBLE)"
    assert str(con.execute(asked).fetchone()) == "(None, None, 7, 'x', 0.0)"
