"""Attacks that fail at the guard, made through the gateway: under each method they fail there in the same way.

There is a table for each method, and one with the same people stored in another order. Whatever an attack gets is what
`sdcduck.open_guard` of the same file says, so that neither the protocol nor the reading of PostgreSQL's SQL opens anything.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from served_gateway import PASSWORD, Served, start
from test_uncaught_errors import FAILING, ORACLES

import sdcduck
from sdcduck.gateway.postgres.sql import to_duckdb
from sdcduck.guard import Guard, Refused

psycopg = pytest.importorskip("psycopg")

METHODS = {
    "cell_key": "method := 'cell_key', min_units := 3",
    "threshold": "method := 'threshold', min_units := 3",
    "rounding": "method := 'rounding', base := 5, min_units := 3",
    "suppression": "method := 'suppression', publication := 'of_{0}'",
}
SECRET, LEAST = "Geheim", 7_000_000
"""What is in hidden columns and labels, and less than any income."""
PEOPLE, AGES = 120, 20
Row = tuple[Any, ...]


def _people() -> list[Row]:
    """Number, region, age, sex, whether ill, income, record key."""
    chance = random.Random(2)
    return [
        (i, chance.choice("NSEW"), chance.randrange(AGES), chance.choice("fm"), chance.random() < 0.33,
         chance.randrange(LEAST, 10 * LEAST), chance.randrange(10**8)) for i in range(PEOPLE)
    ]  # fmt: skip


def _alone(people: list[Row]) -> list[Row]:
    like = Counter(person[1:4] for person in people)
    return [person for person in people if like[person[1:4]] == 1]


@pytest.fixture(scope="module")
def attacked_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The database, a column of every table and a field of it have one name: h."""
    path = tmp_path_factory.mktemp("attacked") / "h.duckdb"
    con = sdcduck.connect(path, secret="the secret of the tests")
    con.execute(f"CREATE TYPE labels AS ENUM ('z', '{SECRET} of nobody', '{SECRET} of one', 'a')")
    con.execute("CREATE TABLE regions AS SELECT unnest(['N', 'S', 'E', 'W']) AS region, unnest([1, 2, 3, 4]) AS num")
    con.execute("FROM sdc_declare_public('regions')").fetchall()
    stored = _people()
    for order in ("", "_sorted"):
        con.execute(
            "CREATE OR REPLACE TEMP TABLE raw (id INTEGER, region VARCHAR, age INTEGER, sex VARCHAR, ill BOOLEAN, "
            "income INTEGER, record_key INTEGER)"
        )
        con.executemany("INSERT INTO raw VALUES (?, ?, ?, ?, ?, ?, ?)", stored)
        stored.sort(key=lambda person: (person[4], person[5]))
        for method, declared in METHODS.items():
            table = method + order
            con.execute(
                f"CREATE TABLE {table} AS SELECT *, (CASE WHEN id = 7 THEN '{SECRET} of one' ELSE ['z', 'a'][1 + id % 2] END)"
                f"::labels AS kind, {{'region': '{SECRET}', 'income': income, 'h': {{'region': '{SECRET}'}}}} AS h FROM raw"
            )
            dimensions = ["region", "age", "sex", "ill", *(["kind"] if method != "suppression" else [])]
            if method == "suppression":
                con.execute(
                    "FROM sdc_publish(?, ?, max_count := 2, protect_zeros := true)",
                    [f"of_{table}", f"SELECT region, age, sex, ill, count(*) AS n, sum(income) AS income FROM {table} "
                     "GROUP BY CUBE(region, age, sex, ill)"],
                ).fetchall()  # fmt: skip
            con.execute(
                f"FROM sdc_protect('{table}', unit := 'id', dimensions := {dimensions}, measures := ['income'], "
                f"{declared.format(table)})"
            ).fetchall()
    con.execute(f"FROM sdc_create_user('ann', '{PASSWORD}', role := 'analyst')").fetchall()
    con.close()
    running = start(path, path.with_name("served"), "--flight-port", "0")
    running.database = "h"
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def con(attacked_file: Served) -> Iterator[Any]:
    with psycopg.connect(**attacked_file.options, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def guarded(attacked_file: Served) -> Iterator[Guard]:
    made = sdcduck.open_guard(attacked_file.log.parent.with_name("h.duckdb"))
    yield made
    made.close()


def of_guard(guarded: Guard, sql: str) -> list[Row] | str:
    """Rows, or the code of the refusal."""
    try:
        return [tuple(row.values()) for row in guarded.sql(to_duckdb(sql, "h")).to_pylist()]
    except Refused as refused:
        return refused.code


def of_gateway(
    con: Any, sql: str, values: tuple[object, ...] | None = None, *, binary: bool = False
) -> list[Row] | str:
    try:
        with con.cursor(binary=binary) as cursor:
            found: list[Row] = cursor.execute(sql, values).fetchall()
            told = repr(found) + repr(cursor.description)
    except psycopg.Error as problem:
        told = str(problem)
        assert problem.sqlstate not in (None, "XX000"), sql
        found = []
        assert SECRET not in told.replace(sql, "")
        return _code(told, str(problem.sqlstate))
    assert SECRET not in told, sql
    assert not any(isinstance(value, int) and value in INCOMES for row in found for value in row), sql
    return found


def _code(told: str, state: str) -> str:
    """The code of the guard, or SQLSTATE."""
    said = re.search(r"Refused by the guard: (SDC\d+)", told)
    return said[1] if said else state


INCOMES = {person[5] for person in _people()}


def plain(rows: list[Row] | str) -> list[Row] | str:
    """Numbers as they are compared: a decimal is a float."""
    if isinstance(rows, str):
        return rows
    return [
        tuple(float(v) if isinstance(v, float) or type(v).__name__ == "Decimal" else v for v in row) for row in rows
    ]


STRUCTS = (
    "SELECT h.h.region, count(*) FROM {} AS h GROUP BY 1", "SELECT h.region, count(*) FROM {} GROUP BY 1",
    "SELECT h.h.h.region, count(*) FROM {} AS h GROUP BY 1", "SELECT (h).region, count(*) FROM {} GROUP BY 1",
    "SELECT (h.h).region, count(*) FROM {} h GROUP BY 1", "SELECT (t.h).income FROM {} t", "SELECT h['region'] FROM {}",
    "SELECT h.main.{}.h.region, count(*) FROM {} GROUP BY 1", "SELECT h.public.{}.h FROM {} GROUP BY 1", "SELECT public.{}.h FROM {}",
    "SELECT main.h.region FROM {} AS main GROUP BY 1", "SELECT h.{}.region, count(*) FROM h.public.{} GROUP BY 1",
    "SELECT count(*) FROM {} h WHERE h.h.region = 'x'", "SELECT sum(h.income) FROM {}", "SELECT sum(h.h.income) FROM {} h",
    "SELECT count(*) FROM {} h WHERE h.h.income > 9000000", "SELECT {}.h.region, count(*) FROM {} GROUP BY 1",
    "SELECT region, count(*) FROM (SELECT h.* FROM {}) s GROUP BY 1", "SELECT h.*, count(*) FROM {} GROUP BY ALL", "SELECT h FROM {} AS h",
    "WITH h AS (SELECT * FROM {}) SELECT h.h.region FROM h", "SELECT x.region FROM (SELECT h AS x FROM {}) h GROUP BY 1",
    "SELECT unnest(h) FROM {}", "SELECT row_to_json(t) FROM {} t", "SELECT to_json(h) FROM {}", "SELECT h::text FROM {}", "TABLE {}",
    "SELECT h.h.region FROM regions h, {} GROUP BY 1", "SELECT r.num, h.h.region FROM {} h JOIN regions r ON r.region = h.h.region",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_fields_of_hidden_structs_are_not_there(con: Any, guarded: Guard, method: str) -> None:
    for form in STRUCTS:
        sql = form.replace("{}", method)
        found = of_gateway(con, sql)
        assert isinstance(found, str) or not found or "region" not in sql.split("FROM")[0] or found[0][0] in "NSEW", sql
        assert plain(found) == plain(of_guard(guarded, sql)), sql
    assert SECRET not in str(con.execute("SELECT * FROM information_schema.columns").fetchall())


LABELS = (
    "SELECT kind, count(*) FROM {} GROUP BY kind", "SELECT DISTINCT kind FROM {}", "SELECT min(kind), max(kind) FROM {}",
    "SELECT NULL::labels", "SELECT 'x'::labels", f"SELECT '{SECRET} of one'::labels", "SELECT TRY_CAST('a' AS labels)",
    "SELECT enum_range(NULL::labels)", "SELECT unnest(enum_range(kind)) FROM {}", "SELECT enum_code(kind), count(*) FROM {} GROUP BY 1",
    "SELECT NULL::h.public.labels", "SELECT NULL::main.labels", "SELECT kind::labels, count(*) FROM {} GROUP BY 1", "SELECT typeof(kind) FROM {}",
    "SELECT pg_typeof(kind) FROM {} GROUP BY 1", "SELECT [kind] FROM {} GROUP BY kind", "SELECT string_agg(kind, ',') FROM {}",
    "SELECT * FROM {} LIMIT 0", "SELECT count(*) FROM {} WHERE kind > 'z'", "SELECT enumlabel FROM pg_catalog.pg_enum",
    "SELECT typname FROM pg_catalog.pg_type WHERE typtype = 'e'", "SELECT 'labels'::regtype", "SELECT count(*) FROM {} WHERE kind = 'nothing'",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_no_label_of_an_enum_is_told(con: Any, guarded: Guard, method: str) -> None:
    for form in LABELS:
        sql = form.replace("{}", method)
        label = f"'{SECRET} of one'" in sql
        found = of_gateway(con, sql) if not label else of_gateway(con, sql.replace(SECRET, "Ge" + "hein"))
        if "pg_" in sql or "regtype" in sql:
            assert found in ([], [(None,)]) or isinstance(found, str), sql
        else:
            assert plain(found) == plain(of_guard(guarded, sql)), sql
        assert isinstance(found, str) or "labels" not in sql or found == [(None,)], sql
    types = dict(
        con.execute(
            "SELECT table_name, data_type FROM information_schema.columns WHERE column_name = 'kind'"
        ).fetchall()
    )
    assert set(types.values()) == {"character varying"}
    with con.cursor() as cursor:
        asked = cursor.execute(f"SELECT region AS kind FROM {method} GROUP BY 1 LIMIT 0")
        code = asked.description[0].type_code
        if method != "suppression":
            assert cursor.execute(f"SELECT kind FROM {method} GROUP BY 1").description[0].type_code == code


ORDERS = (
    "SELECT region, count(*) FROM {} GROUP BY region", "SELECT region, sex, count(*) FROM {} GROUP BY CUBE (region, sex)",
    "SELECT age, sex, count(*), avg(income) FROM {} GROUP BY 1, 2 LIMIT 9", "SELECT array_agg(region) FROM (SELECT region, count(*) FROM {} GROUP BY 1) s",
    "SELECT row_number() OVER (), region FROM (SELECT region, count(*) AS n FROM {} GROUP BY 1) s",
    "SELECT region, count(*) AS n FROM {} GROUP BY region ORDER BY n % 2 FETCH FIRST 2 ROWS ONLY",
    "SELECT r.num, count(*) FROM {} p JOIN regions r ON r.region = p.region GROUP BY 1",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_rows_come_in_an_order_that_is_no_record_s(con: Any, guarded: Guard, method: str) -> None:
    answered = 0
    for form in ORDERS:
        one, other = (of_gateway(con, form.replace("{}", table)) for table in (method, method + "_sorted"))
        assert one == other, form
        assert plain(one) == plain(of_guard(guarded, form.replace("{}", method)))
        answered += isinstance(one, list) and len(one) > 0
    assert answered > 4
    with con.transaction():
        for table in (method, method + "_sorted"):
            con.execute(f"DECLARE c_{table} CURSOR FOR {ORDERS[0].format(table)}")
        assert (
            con.execute(f"FETCH ALL FROM c_{method}").fetchall()
            == con.execute(f"FETCH ALL FROM c_{method}_sorted").fetchall()
        )


@pytest.mark.parametrize("method", METHODS)
def test_the_least_number_of_units_goes_by_published_numbers(con: Any, guarded: Guard, method: str) -> None:
    """Two who are known, and somebody of whom nobody knows whether they are ill."""
    people = _people()
    known = [person for person in people if person[4]][:2]
    shown: dict[bool, list[object]] = {True: [], False: []}
    for target in [person for person in _alone(people) if person not in known][:12]:
        conditions, values = [], []
        for person, ill in ((target, " AND ill"), (known[0], ""), (known[1], "")):
            conditions.append(f"(region = %s AND age = %s AND sex = %s{ill})")
            values += person[1:4]
        sql = f"SELECT count(*) FILTER (WHERE {' OR '.join(conditions)}) AS n FROM {method}"
        written = sql.replace("%s", "{}").format(*(f"'{v}'" if isinstance(v, str) else v for v in values))
        found = of_gateway(con, sql, tuple(values))
        assert found == of_gateway(con, written) == of_guard(guarded, written), written
        assert not isinstance(found, str)
        number = found[0][0] if found else None
        assert number is None or number == 0 or number >= 3 or method == "suppression"
        shown[target[4]].append(number)
    told = [sum(number is not None for number in numbers) for numbers in shown.values()]
    if method == "threshold":  # as docs/guard.md says
        assert told == [len(shown[True]), 0]
    elif method == "suppression":
        assert told == [0, 0]
    else:
        assert {*shown[True]} & {*shown[False]} or told[0] < len(shown[True])


SUMS = (
    "SELECT sum(income) FROM {} WHERE region = 'N'", "SELECT sum(income)::text FROM {} WHERE region = 'N'", "SELECT region, sum(income) / 3, avg(income) FROM {} GROUP BY 1",
    "SELECT to_char(sum(income), '999999999999.999999') FROM {}", "SELECT stddev(income), variance(income) FROM {}", "SELECT sum(income * 1.000001) FROM {}",
    "SELECT sum(income)::numeric(30, 10) FROM {}", "SELECT sum(income) FROM {} WHERE age = 3", "SELECT sum(income) - sum(income) FILTER (WHERE sex = 'f') FROM {}",
    "SELECT sum(income) FILTER (WHERE ill)::float8 FROM {} GROUP BY region", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY income) FROM {}",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_sums_have_the_digits_of_the_guard(con: Any, guarded: Guard, method: str) -> None:
    for form in SUMS:
        sql = form.replace("{}", method)
        expected = plain(of_guard(guarded, sql))
        for binary in (False, True):
            assert plain(of_gateway(con, sql, binary=binary)) == expected, sql
    if method == "cell_key":
        person = _alone(_people())[0]
        one = f"region = '{person[1]}' AND age = {person[2]} AND sex = '{person[3]}'"
        for row in of_gateway(con, f"SELECT sum(income) FROM {method} WHERE {one} OR region = 'N' AND age < 9"):
            assert float(row[0]) % 1000 == 0  # a hundredth of the largest income is 100,000 and more


SAME = "SELECT region, sex, count(*) AS n, sum(income) AS s FROM {} WHERE age < 99 AND region <> '' GROUP BY region, sex ORDER BY 1, 2"


@pytest.mark.parametrize("method", METHODS)
def test_every_door_has_the_same_noise(attacked_file: Served, con: Any, guarded: Guard, method: str) -> None:
    sql = SAME.format(method) if method != "rounding" else SAME.format(method).replace(", sum(income) AS s", "")
    expected = plain(of_guard(guarded, sql))
    assert isinstance(expected, list)
    assert sum(row[2] is not None for row in expected) == 8
    assert all(plain(of_gateway(con, sql, binary=binary)) == expected for binary in (False, True))
    with_values = sql.replace("99", "%s").replace("''", "%s")
    for _ in range(7):  # psycopg prepares it in the end
        assert plain(of_gateway(con, with_values, (99, ""))) == expected
    asked = sql.replace(f"FROM {method}", f'FROM "h"."public".{method.upper()} AS t').replace(
        "SELECT", "/* chart 7 */ select"
    )
    assert plain(of_gateway(con, asked)) == expected
    with con.cursor() as cursor, cursor.copy(f"COPY ({sql}) TO STDOUT (FORMAT csv)") as copied:
        rows = b"".join(copied).decode().splitlines()
    assert [tuple(row.split(",")[:3]) for row in rows] == [(a, b, str(c)) for a, b, c, *_ in expected]
    with con.transaction(), con.cursor(name="portal") as portal:
        portal.itersize = 3
        assert plain(portal.execute(sql).fetchall()) == expected
    adbc = pytest.importorskip("adbc_driver_flightsql.dbapi")
    login = {"username": "ann", "password": PASSWORD}
    with adbc.connect(f"grpc://127.0.0.1:{attacked_file.flight}", db_kwargs=login) as flight, flight.cursor() as cursor:
        cursor.execute(sql)
        assert plain(cursor.fetchall()) == expected


@pytest.mark.parametrize("method", METHODS)
def test_no_error_tells_of_somebody(con: Any, guarded: Guard, method: str) -> None:
    """Each is asked of somebody who is there and of nobody, with constants and with parameters."""
    target = _alone(_people())[0]
    outcomes = Counter[str]()
    for number, oracle in enumerate(ORACLES):
        if number % 2 != list(METHODS).index(method) % 2:
            continue
        seen = []
        for age in (target[2], -1):
            who = f"(region = '{target[1]}' AND age = {age} AND sex = '{target[3]}')"
            sql = oracle.format(who=who, failing=FAILING.format(who)).replace("people", method).replace("\0", "")
            found, expected = of_gateway(con, sql), of_guard(guarded, sql)
            assert isinstance(found, str) == isinstance(expected, str), sql
            assert not isinstance(found, str) or found in (expected, "22025"), sql
            with_values = sql.replace(who, "(region = $1 AND age = $2 AND sex = $3)").replace("'bad'", "$4")
            seen.append((_kind(found), _kind(_by_number(con, with_values, [target[1], str(age), target[3], "bad"]))))
        assert seen[0] == seen[1], oracle
        outcomes.update(seen[0])
    assert "SDC090" not in outcomes
    assert outcomes["answered"] > 5 or method in ("suppression", "rounding"), outcomes


def _kind(found: list[Row] | str) -> str:
    return found if isinstance(found, str) else "answered"


def _by_number(con: Any, sql: str, values: list[str]) -> list[Row] | str:
    """Asked with parameters that have numbers, and no types."""
    used = max([int(word) for word in "1234" if f"${word}" in sql], default=0)
    result = con.pgconn.exec_params(sql.encode(), [value.encode() for value in values[:used]])
    if result.status == psycopg.pq.ExecStatus.TUPLES_OK:
        return [()] * result.ntuples
    told = result.error_field(psycopg.pq.DiagnosticField.MESSAGE_DETAIL) or b""
    code = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
    assert code not in (None, b"XX000"), sql
    return _code(told.decode(), code.decode())
