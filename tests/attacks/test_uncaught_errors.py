"""Attacks with errors: a question that fails if somebody is like that tells whether somebody is.

DuckDB's TRY is not enough: what stands twice is worked out once and outside of it, and some errors it does not catch.
Every question here is asked about somebody who is there and about nobody. That both are refused before they run, or
both answered, is the law; a failure while one runs is a hole.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest
from attacked_methods import ALONE, METHODS, PRIVATE, Population, population
from effort import times
from fixtures_of_attacks import show
from sqlglot import exp, parse_one
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

import sdcduck
from sdcduck.guard import Guard, Refused, guard
from sdcduck.guard.allowed import UNIT_FUNCTIONS
from sdcduck.guard.expression_types import EXPRESSION_TYPES
from sdcduck.guard.protect.total import _CALENDAR, _CLOCK, _DATES, _OF_INTERVALS, tried

Show = Callable[[str], None]

FAILING = "CAST(CASE WHEN {} THEN 'bad' ELSE '1' END AS INTEGER)"
"""What fails for somebody."""
ORACLES = (
    "SELECT sum({failing}) FROM people",
    "SELECT avg({failing}) FROM people",
    "SELECT region, sum({failing}) FROM people GROUP BY region",
    "SELECT min({failing}), max({failing}), count(DISTINCT {failing}) FROM people",
    "SELECT sum({failing} * {failing}) FROM people WHERE {failing} > 0",
    "SELECT count(*) FROM people WHERE {failing} = 1 OR {failing} = 2",
    "SELECT count(*) FROM people WHERE {failing} + {failing} > 1 AND {failing} < 9",
    "SELECT count(*) FROM people WHERE {failing} IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
    "SELECT count(*) FROM people WHERE {failing} BETWEEN 1 AND 2 AND NOT {failing} IS NULL",
    "SELECT count(*) FILTER ({failing} = 1), count(*) FILTER ({failing} = 2) FROM people",
    "SELECT sum(income) FILTER ({failing} > 0 AND {failing} < 3) FROM people",
    "SELECT sum(CASE WHEN {failing} > 0 THEN income WHEN {failing} < 0 THEN 0 END) FROM people",
    "SELECT sum(income * {failing}) FROM people",
    "SELECT median(age) FROM people WHERE {failing} = {failing} + 1 - 1",
    "SELECT count(*) FROM people GROUP BY CASE WHEN {failing} < 9 THEN {failing} END",
    "SELECT count(*) FROM people GROUP BY ROLLUP ({failing}, {failing} + 1)",
    "SELECT count(*) FROM (SELECT {failing} AS f, {failing} + 1 AS g FROM people) WHERE f + g > 0 GROUP BY f",
    "SELECT sum(n) FROM (SELECT id, max({failing}) AS n, min({failing}) AS m FROM people GROUP BY id) WHERE n = m",
    "SELECT count(*) FROM people WHERE EXISTS (SELECT 1 FROM people q WHERE q.id = people.id AND {failing} + {failing} > 1)",
    "SELECT count(*) FROM people WHERE id IN (SELECT id FROM people WHERE {failing} + {failing} > 1)",
    "SELECT sum(age // (CASE WHEN {who} THEN 0 ELSE 1 END)) FROM people",
    "SELECT sum(CASE WHEN {who} THEN 9000000000000000000 ELSE 1 END * 10) FROM people",
    "SELECT count(*) FROM people WHERE CASE WHEN {who} THEN time_bucket(INTERVAL '0 day', DATE '2020-01-01' + age) END IS NULL",
    "SELECT count(*) FROM people WHERE time_bucket(to_days(CASE WHEN {who} THEN 0 ELSE 1 END), DATE '2020-01-01') IS NULL",
    "SELECT count(*) FROM people WHERE CASE WHEN {who} THEN region LIKE 'N' ESCAPE 'ab' ELSE true END",
    "SELECT count(*) FROM people WHERE CASE WHEN {who} THEN region LIKE region || '$' ESCAPE '$' ELSE true END",
    "SELECT count(*) FROM people WHERE CASE WHEN {who} THEN region NOT ILIKE '%$' ESCAPE '$' ELSE true END",
    "SELECT count(*) FROM people WHERE CASE WHEN {who} THEN region LIKE 'N\0' ESCAPE '' ELSE true END",
    "SELECT count(*) FROM people WHERE CASE WHEN {who} THEN ilike_escape(region, 'N', sex || sex) ELSE true END",
    "SELECT count(*) FROM people WHERE CASE WHEN {who} THEN date_part('timezone', DATE '2020-01-01' + age) > 0 ELSE true END",
    "SELECT count(*) FROM people WHERE CASE WHEN {who} THEN date_part(region, DATE '2020-01-01' + age) > 0 ELSE true END",
    "SELECT count(*) FROM people WHERE CASE WHEN {who} THEN date_diff('era', DATE '2020-01-01' + age, DATE '2020-01-01') > 0 END",
    "SELECT count(*) FROM people WHERE CASE WHEN {who} THEN date_trunc('timezone', DATE '2020-01-01' + age) IS NULL END",
    "SELECT count(*) FROM people WHERE CASE WHEN {who} THEN dayofyear(to_days(age)) > 0 ELSE true END",
    "SELECT count(*) FROM people WHERE CASE WHEN {who} THEN week(coalesce(NULL, to_days(age))) > 0 ELSE true END",
    "SELECT count(*) FROM people WHERE CASE WHEN {who} THEN date_part('dow', nullif(to_days(age), to_days(1))) > 0 ELSE true END",
)


def outcome(asked: Population, query: str) -> str:
    """What can be seen of a question, but for the numbers."""
    try:
        asked.guarded.sql(query)
    except Refused as refused:
        return refused.code
    return "answered"


@pytest.mark.parametrize("method", [*METHODS, ALONE, PRIVATE])
def test_no_error_tells_of_somebody(show: Show, method: str) -> None:
    asked = population(method, 2, 240, 40)
    target, told, failed = asked.alone[0], 0, 0
    nobody = f"({target.described} AND age < 0)"
    answered = 0
    for oracle in ORACLES:
        seen = [
            outcome(asked, oracle.format(who=who, failing=FAILING.format(who))) for who in (target.described, nobody)
        ]
        told += seen[0] != seen[1]
        failed += "SDC090" in seen
        answered += seen == ["answered"] * 2
    show(f"errors, {method}: {told} of {len(ORACLES)} questions told of somebody; {answered} answered")
    assert told == failed == 0
    assert answered > (8 if method == PRIVATE else 10) or method in ("suppression", "rounding")


# --- Functions -----------------------------------------------------------------------------------------------------------

NASTY = {
    "BOOLEAN": ["true"],
    "TINYINT": ["-128", "127", "0"], "SMALLINT": ["-32768", "0"], "INTEGER": ["-2147483648", "2147483647", "0", "-1"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807", "0", "-1"], "UTINYINT": ["255", "0"], "USMALLINT": ["65535"],
    "UINTEGER": ["4294967295"], "UBIGINT": ["18446744073709551615", "0"], "UHUGEINT": ["340282366920938463463374607431768211455"],
    "HUGEINT": ["170141183460469231731687303715884105727", "-170141183460469231731687303715884105728", "0"],
    "FLOAT": ["nan", "inf", "0", "3e38"], "DOUBLE": ["nan", "inf", "-inf", "0", "1.7e308", "-1"],
    "DECIMAL": ["999999999999999.999", "0"], "DATE": ["infinity", "-infinity", "2020-01-01", "5877642-06-25 (BC)"],
    "VARCHAR": ["", "ab", "[", "%", "\\", "%q", "é", "2020-01-01", "timezone", "day"],
    "TIMESTAMP": ["infinity", "-infinity", "2020-01-01", "290309-12-22 (BC) 00:00:00"],
    "TIMESTAMP WITH TIME ZONE": ["infinity", "2020-01-01 00:00:00+00"], "TIMESTAMP_NS": ["2020-01-01", "infinity", "-infinity", "1677-09-22", "2262-04-11 23:47:16.854775"],
    "TIMESTAMPTZ_NS": ["2020-01-01 00:00:00+00", "infinity", "-infinity", "1677-09-22 00:00:00+00", "2262-04-11 23:47:16.854775+00"],
    "TIME": ["00:00:00"], "TIME WITH TIME ZONE": ["00:00:00+01"], "BLOB": ["\\xFF", ""], "BIT": ["101", "1"],
    "INTERVAL": ["0 days", "-1 day", "1 month 1 day", "178956970 years", "3 months"],
    "UUID": ["00000000-0000-0000-0000-000000000000"],
}  # fmt: skip
UNCAUGHT = {
    "time_bucket", "like_escape", "not_like_escape", "ilike_escape", "not_ilike_escape", "date_part", "datepart", "date_trunc",
    "datetrunc", "date_diff", "datediff", "date_sub", "datesub", "week", "weekday", "dayofweek", "dayofyear", "isodow", "isoyear",
    "weekofyear", "yearweek", "timezone",
}  # fmt: skip
"""Functions that raise what TRY does not catch, for arguments that `refuse_uncaught` refuses."""


PADDED = {"lpad": ["-1", "0", "1000"], "rpad": ["-1", "0", "1000"]}
"""What may be given in place of nasty numbers: texts are padded to so many characters at most."""


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect() as connection:
        yield connection


def test_no_function_over_records_raises_an_error(con: duckdb.DuckDBPyConnection, show: Show) -> None:
    """Each overload that this DuckDB has, with nasty arguments, twice in one expression, inside what the guard writes."""
    overloads = con.execute(
        "SELECT function_name, parameter_types, varargs FROM duckdb_functions() "
        "WHERE function_type = 'scalar' AND database_name = 'system' AND list_contains(?, function_name) ORDER BY ALL",
        [sorted(UNIT_FUNCTIONS)],
    ).fetchall()
    calls, raised = 0, {}
    for name, parameters, varargs in overloads:
        types = ["VARCHAR" if kind in ("ANY", "T") else kind for kind in [*parameters, *([varargs] if varargs else [])]]
        if not types or any(kind not in NASTY for kind in types):
            continue
        columns = ", ".join(f"a{place}" for place in range(len(types)))
        once = tried(exp.maybe_parse(f'"{name}"({columns})', dialect="duckdb")).sql("duckdb")
        given_for = {**NASTY, "INTEGER": PADDED.get(name, NASTY["INTEGER"])}
        rows = list(itertools.product(*(given_for[kind] for kind in types)))
        made = ", ".join(f"column{place}::{kind} AS a{place}" for place, kind in enumerate(types))
        values = ", ".join("(" + ", ".join("'" + value.replace("'", "''") + "'" for value in row) + ")" for row in rows)
        given = ", ".join(f"column{place}" for place in range(len(types)))
        calls += len(rows)
        asked = f"SELECT count({once}), count({once}) FROM (SELECT {made} FROM (VALUES {values}) v({given}))"
        try:
            con.execute(asked).fetchall()
        except duckdb.Error as problem:
            try:
                con.execute(f"{asked} WHERE random() > 2").fetchall()
            except duckdb.Error:
                continue  # no call at all, whatever the values are
            raised.setdefault(name, problem)
    show(f"{calls} calls of {len(overloads)} functions: {sorted(raised)} raised what TRY does not catch")
    assert calls > 5000
    assert set(raised) <= UNCAUGHT, {name: raised[name] for name in set(raised) - UNCAUGHT}


TIMES = {
    "DATE": ["2020-01-01", "infinity", "-infinity"], "TIMESTAMP": ["2020-01-01 10:00:00", "infinity"],
    "TIMESTAMPTZ": ["2020-01-01 10:00:00+00", "infinity"], "TIMESTAMP_NS": ["2020-01-01", "infinity", "-infinity", "1677-09-22", "2262-04-11 23:47:16.854775"],
    "TIMESTAMPTZ_NS": ["2020-01-01 00:00:00+00", "infinity", "-infinity", "1677-09-22 00:00:00+00", "2262-04-11 23:47:16.854775+00"], "TIMESTAMP_S": ["2020-01-01"],
    "TIME": ["10:00:00"], "TIMETZ": ["10:00:00+01"], "INTERVAL": ["1 day", "-3 months"],
}  # fmt: skip


@pytest.mark.parametrize("kind", list(TIMES))
def test_the_parts_that_are_allowed_raise_no_error(con: duckdb.DuckDBPyConnection, kind: str) -> None:
    if kind == "TIMESTAMPTZ_NS" and duckdb.__version__.startswith("1."):
        pytest.skip("this DuckDB has no such type")
    is_date = kind not in ("TIME", "TIMETZ", "INTERVAL")
    parts = _CLOCK | (_CALENDAR if is_date else _OF_INTERVALS if kind == "INTERVAL" else frozenset())
    calls = ["date_part('{}', v)", "date_diff('{}', v, v)", "date_sub('{}', v, v)"]
    asked = [call.format(part) for part in parts for call in calls]
    # What binds to a type at all is the same for all its values.
    asked += [f"date_trunc('{part}', v)" for part in _CLOCK | _CALENDAR]
    if is_date:
        asked += [
            f"{name}(v)" for name in ("week", "weekday", "dayofweek", "dayofyear", "isodow", "isoyear", "yearweek")
        ]
    asked += ["timezone('Asia/Tokyo', v)", "timezone('America/Los_Angeles', v)"]
    bound = 0
    for value, call in itertools.product(TIMES[kind], asked):
        try:
            con.execute(
                f"SELECT TRY({call}) IS NULL FROM (SELECT '{value}'::{kind} AS v) WHERE random() < 2"
            ).fetchall()
            bound += 1
        except (duckdb.BinderException, duckdb.ParserException):
            continue
    assert bound > 0 or kind == "TIMETZ"


def test_the_time_zones_that_are_allowed_raise_no_error(con: duckdb.DuckDBPyConnection) -> None:
    """Of others DuckDB says that it does not know them, which TRY does not catch."""
    zones = [name for (name,) in con.execute("SELECT name FROM pg_timezone_names()").fetchall()]
    moments = "unnest(['2024-06-01 12:00:00'::TIMESTAMP, 'infinity', '290309-12-22 (BC) 00:00:00'])"
    asked = ", ".join(f"count(TRY(timezone('{zone.lower()}', t)))" for zone in zones)
    counts = con.execute(f"SELECT {asked} FROM (SELECT {moments} AS t)").fetchone()
    assert counts is not None
    assert len(counts) > 400
    assert min(counts) >= 1


def test_the_type_of_a_time_is_what_duckdb_says(con: duckdb.DuckDBPyConnection) -> None:
    """An INTERVAL that is taken for a DATE would be let through to what raises an error for it."""
    columns = {"d": "DATE", "ts": "TIMESTAMP", "tz": "TIMESTAMPTZ", "t": "TIME", "i": "INTERVAL", "k": "INTEGER", "s": "VARCHAR", "b": "BOOLEAN"}  # fmt: skip
    con.execute(
        "CREATE OR REPLACE TABLE typed AS SELECT "
        + ", ".join(f"NULL::{kind} AS {name}" for name, kind in columns.items())
    )
    atoms = [*columns, "to_days(k)", "INTERVAL '1 day'", "DATE '2020-01-01'", "'a'", "1", "NULL"]
    pairs = ["({} + {})", "({} - {})", "coalesce({}, {})", "CASE WHEN b THEN {} ELSE {} END", "if(b, {}, {})", "nullif({}, {})", "greatest({}, {})", "ifnull({}, {})"]  # fmt: skip
    alone = [
        "date_trunc('day', {})",
        "last_day({})",
        "-({})",
        "time_bucket(INTERVAL '1 day', {})",
        "({})::DATE",
        "CASE WHEN b THEN {} END",
    ]
    simple = [form.format(*values) for form in pairs for values in itertools.product(atoms, repeat=2)]
    checked = 0
    for text in [*simple, *(form.format(one) for form in alone for one in [*atoms, *simple[:: times(13, 3)]])]:
        tree: Any = qualify(
            parse_one(f"SELECT {text} AS x FROM typed", read="duckdb"), schema={"typed": columns}, dialect="duckdb"
        )
        typed = annotate_types(tree, schema={"typed": columns}, expression_metadata=EXPRESSION_TYPES, dialect="duckdb")
        kind = typed.selects[0].type
        if kind is None or (kind.this not in _DATES and kind.this != exp.DataType.Type.INTERVAL):
            continue
        try:
            real = con.execute(f"DESCRIBE SELECT {text} AS x FROM typed").fetchall()[0][1]
        except duckdb.Error:
            continue
        checked += 1
        assert (
            real == "INTERVAL" if kind.this == exp.DataType.Type.INTERVAL else real.startswith(("DATE", "TIMESTAMP"))
        ), text
    assert checked > 500


ANSWERED = (
    "date_part('dow', d) = 1", "extract(year FROM ts) = 2020", "date_part('day', ts - ts) = 0", "date_trunc('month', d) = d",
    "date_diff('day', d, DATE '2020-01-01') > 3", "date_sub('hours', ts, ts) = 0", "dayofyear(d) > 0", "week(ts) > 0",
    "time_bucket(INTERVAL '7 days', d) = d", "time_bucket(to_days(7), d) = d", "date_part('hour', t) = 10", "isodow(d + 1) = 1",
    "region LIKE 'N$%' ESCAPE '$'", "year(d) = 2020", "date_part('epoch', ts) > 0", "yearweek(last_day(d)) > 0",
)  # fmt: skip


def test_ordinary_questions_about_times_are_answered() -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("""CREATE TABLE stays AS SELECT i AS id, 'N' AS region, DATE '2020-01-01' + (i % 300)::INTEGER AS d,
            TIMESTAMP '2020-01-01' + to_days(i % 30) AS ts, TIME '10:00:00' AS t FROM range(200) r(i)""")
        con.execute("FROM sdc_add_record_key('stays', unit := 'id')").fetchall()
        con.execute("FROM sdc_protect('stays', unit := 'id', dimensions := ['region', 'd', 'ts', 't'])").fetchall()
        guarded: Guard = guard(con)
        for condition in ANSWERED:
            inner = f"SELECT count(*) FROM (SELECT * FROM stays WHERE region = 'N') WHERE {condition}"
            for query in (f"SELECT count(*) FROM stays WHERE {condition}", inner):
                assert guarded.sql(query).num_rows == 1, query
