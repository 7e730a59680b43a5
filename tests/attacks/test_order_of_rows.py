"""The order of an answer's rows says nothing of the order in which records are stored.

A register is often stored by income, or by the date on which somebody fell ill, and groups would come in the order of
their first records.
"""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import duckdb
import numpy as np
import pytest
from effort import times

import sdcduck
from sdcduck.guard import Guard, Refused, guard

METHODS = {
    "cell_key": "method := 'cell_key'",
    "suppression": "method := 'suppression', publication := 'cells'",
    "threshold": "method := 'threshold', min_units := 3",
    "rounding": "method := 'rounding', base := 5",
}
TOWNS = [f"town {number:02}" for number in range(12)]
BUDGET = "method := 'dp', epsilon := 1000, delta := 1e-9, per_question := 1"
PRIVATE = {
    "people": f"{BUDGET}, bounds := {{'income': [0, 1000000]}}, domains := {{'town': {TOWNS}, 'sex': ['f', 'm']}}",
    "visits": f"{BUDGET}, contributions := 3, domains := {{'ward': {list('abcdefg')}}}",
}
"""What `sdc_protect` is told of each table, where questions are charged."""
PEOPLE = 400
QUERIES = (
    "SELECT town, count(*) AS n FROM people GROUP BY town",
    "SELECT town, count(*) AS n FROM people GROUP BY ALL LIMIT 3",
    "SELECT DISTINCT town FROM people",
    "SELECT town, sex, count(*) AS n, sum(income) AS s FROM people GROUP BY town, sex",
    "SELECT town, sex, count(*) AS n FROM people GROUP BY CUBE (town, sex)",
    "SELECT town, sex, count(*) AS n FROM people GROUP BY ROLLUP (town, sex)",
    "SELECT town, sex, count(*) AS n FROM people GROUP BY GROUPING SETS ((town), (sex), ())",
    "SELECT upper(town) AS u, count(*) AS n FROM people GROUP BY 1",
    "SELECT count(*) AS n FROM people GROUP BY town",
    "SELECT n, count(*) AS towns FROM (SELECT town, count(*) AS n FROM people GROUP BY town) GROUP BY n",
    "SELECT first(town) AS f, last(town) AS l FROM (SELECT town, count(*) AS n FROM people GROUP BY town)",
    "SELECT list(town) AS f FROM (SELECT town, count(*) AS n FROM people GROUP BY town)",
    "SELECT string_agg(town, ',') AS f FROM (SELECT town, count(*) AS n FROM people GROUP BY town)",
    "SELECT row_number() OVER () AS r, town FROM (SELECT town, count(*) AS n FROM people GROUP BY town)",
    "SELECT town, row_number() OVER (ORDER BY sex) AS r, count(*) AS n FROM people GROUP BY town, sex",
    "SELECT town, n FROM (SELECT town, count(*) AS n FROM people GROUP BY town) ORDER BY n % 2",
    "SELECT town, n FROM (SELECT town, count(*) AS n FROM people GROUP BY town) ORDER BY n % 2 LIMIT 2",
    "SELECT sex, list(town) AS f FROM (SELECT town, sex, count(*) AS n FROM people GROUP BY town, sex) GROUP BY sex",
    "WITH a AS (SELECT town, count(*) AS n FROM people GROUP BY town) SELECT a.town, b.n FROM a JOIN a AS b USING (n)",
    "WITH a AS (SELECT town, count(*) AS n FROM people GROUP BY town) SELECT * FROM a UNION ALL SELECT * FROM a",
    "WITH a AS (SELECT town, count(*) AS n FROM people GROUP BY town) SELECT * FROM a UNION SELECT * FROM a",
    "SELECT p.town, t.no, count(*) AS n FROM people p JOIN towns t USING (town) GROUP BY 1, 2",
    "SELECT a.town, t.no FROM (SELECT town, count(*) AS n FROM people GROUP BY town) a JOIN towns t USING (town)",
    "SELECT town, count(DISTINCT sex) AS k FROM people GROUP BY town",
    "SELECT town, avg(income) AS m FROM people GROUP BY town HAVING count(*) > 2",
    "SELECT town, count(*) AS n FROM people GROUP BY town QUALIFY row_number() OVER () < 4",
    "SELECT n, count(*) FROM (SELECT id, count(*) AS n FROM visits GROUP BY id) GROUP BY n",
    "SELECT ward, count(*) AS n, count(DISTINCT id) AS u FROM visits GROUP BY ward",
    "SELECT nullif(ward, 'c') AS w, count(*) AS n FROM visits GROUP BY ROLLUP (1)",
    "SELECT nullif(town, 'town 03') AS t, nullif(sex, 'f') AS s, count(*) AS n FROM people GROUP BY CUBE (1, 2)",
    "SELECT nullif(town, 'town 03') AS t, nullif(sex, 'f') AS s FROM people GROUP BY CUBE (1, 2)",
    "SELECT ward, town, count(*) AS n FROM visits JOIN people USING (id) GROUP BY ward, town",
    "PIVOT people ON sex USING count(*) GROUP BY town",
    "SELECT ARRAY(SELECT town FROM people GROUP BY town) AS f",
    "SELECT ARRAY((SELECT town FROM people GROUP BY town)) AS f",
    "WITH a AS (SELECT town, count(*) AS n FROM people GROUP BY town) SELECT ARRAY(SELECT town FROM a ORDER BY n % 2) AS f",
    "WITH a AS (SELECT town, sex, count(*) AS n FROM people GROUP BY 1, 2) SELECT no, ARRAY(SELECT sex || n FROM a WHERE a.town = t.town) AS f FROM towns t",
    # A subquery that names columns from around it is joined with that, and its rows come as those do.
    "SELECT town, sex, (SELECT no FROM towns t WHERE t.town <> p.town LIMIT 1) AS f FROM people p GROUP BY town, sex",
    "SELECT town, sex, (SELECT no FROM towns t WHERE t.town <> p.town UNION ALL SELECT 1 LIMIT 1) AS f FROM people p GROUP BY town, sex",
    "SELECT town, sex, (SELECT first(no) FROM (SELECT no FROM towns t WHERE t.town <> p.town)) AS f FROM people p GROUP BY town, sex",
    "SELECT a.town, l.no FROM (SELECT town, sex, count(*) AS n FROM people GROUP BY 1, 2) a, LATERAL (SELECT no FROM towns t WHERE t.town <> a.town LIMIT 2) l",
    "SELECT a.town, l.f FROM (SELECT town, sex, count(*) AS n FROM people GROUP BY 1, 2) a, LATERAL (SELECT list(no) AS f FROM (SELECT no FROM towns t WHERE t.town <> a.town)) l",
)


def stored(method: str, turn: int, file: str = ":memory:") -> tuple[duckdb.DuckDBPyConnection, Guard]:
    """The same people, stored by income, or in another order."""
    chance = random.Random(7)
    people = [
        (i, f"town {chance.randrange(12):02}", "fm"[chance.randrange(2)], chance.randrange(10**5, 10**6), chance.randrange(10**8))
        for i in range(PEOPLE)
    ]  # fmt: skip
    visits = [
        (person[0], "abcdefg"[chance.randrange(7)], person[4]) for person in people for _ in range(1 + person[0] % 3)
    ]
    if turn == 0:
        people.sort(key=lambda person: person[3])
        visits.sort(key=lambda visit: visit[2])
    else:
        random.Random(turn).shuffle(people)
        random.Random(turn).shuffle(visits)
    con = sdcduck.connect(file, secret="the secret of the tests", threads=1)
    con.execute("CREATE TABLE people (id INTEGER, town VARCHAR, sex VARCHAR, income INTEGER, record_key INTEGER)")
    con.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", people)
    con.execute("CREATE TABLE visits (id INTEGER, ward VARCHAR, record_key INTEGER)")
    con.executemany("INSERT INTO visits VALUES (?, ?, ?)", visits)
    con.execute("CREATE TABLE towns AS SELECT format('town {:02}', i) AS town, (i * 5) % 12 AS no FROM range(12) _(i)")
    con.execute("FROM sdc_declare_public('towns')").fetchall()
    if method == "suppression":
        con.execute(
            """FROM sdc_publish('cells', 'SELECT town, sex, count(*) AS n, sum(income) AS income FROM people
            GROUP BY CUBE(town, sex)', max_count := 2)"""
        ).fetchall()
    else:
        con.execute(
            f"FROM sdc_protect('visits', unit := 'id', dimensions := ['ward'], {_told(method, 'visits')})"
        ).fetchall()
    con.execute(
        f"""FROM sdc_protect('people', unit := 'id', dimensions := ['town', 'sex'], measures := ['income'],
        {_told(method, "people")})"""
    ).fetchall()
    return con, guard(con)


def _told(method: str, table: str) -> str:
    return PRIVATE[table] if method == "dp" else METHODS[method]


def answers(guarded: Guard) -> dict[str, object]:
    """Rows in the order in which they come, or why there are none."""
    found: dict[str, object] = {}
    for query in QUERIES:
        try:
            found[query] = [tuple(row.values()) for row in guarded.sql(query).to_pylist()]
        except Refused as refused:
            found[query] = refused.code
    return found


@pytest.mark.parametrize("method", METHODS)
def test_the_same_people_stored_in_another_order_give_the_same_rows_in_the_same_order(method: str) -> None:
    con, guarded = stored(method, 0)
    expected = answers(guarded)
    con.close()
    assert sum(isinstance(rows, list) and len(rows) > 1 for rows in expected.values()) > 9, expected
    for turn in range(1, 1 + times(1, 2)):
        con, guarded = stored(method, turn)
        found = answers(guarded)
        con.close()
        assert {query: rows for query, rows in found.items() if rows != expected[query]} == {}


def test_private_answers_have_one_order_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise is taken away, so that rows and numbers are those of the records: any order of theirs would show."""
    noise = pytest.importorskip("sdcduck.methods.dp.noise")
    pytest.importorskip("opendp")
    monkeypatch.setattr(noise, "noisy", lambda totals, scale, gaussian: list(totals))
    found = []
    for turn in range(2):
        con, guarded = stored("dp", turn, str(tmp_path / f"people_{turn}"))
        found.append(answers(guarded))
        con.close()
    assert sum(isinstance(rows, list) and len(rows) > 1 for rows in found[0].values()) > 9, found[0]
    assert {query: rows for query, rows in found[1].items() if rows != found[0][query]} == {}


def test_the_order_of_incomes_is_not_told_by_the_order_of_rows() -> None:
    """Stored by income, and a name of its own for each."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            """CREATE TABLE people AS SELECT i AS id, md5(i::VARCHAR) AS name, 1000 + i * 17 AS income,
            sdc_record_key(i) AS record_key FROM range(3000) _(i)"""
        )
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['name'], measures := ['income'])"
        ).fetchall()
        places = {hashlib.md5(str(i).encode(), usedforsecurity=False).hexdigest(): i for i in range(3000)}
        guarded = guard(con)
        for query in (
            "SELECT name, count(*) FROM people GROUP BY name",
            "SELECT DISTINCT name FROM people",
            "SELECT name, row_number() OVER () FROM (SELECT name, count(*) AS n FROM people GROUP BY name)",
            "SELECT unnest(list(name)) FROM (SELECT name, count(*) AS n FROM people GROUP BY name)",
        ):
            incomes = [places[name] for name in guarded.sql(query).column(0).to_pylist()]
            # Its standard error is 0.024 where the order says nothing; stored order gave 1.
            assert len(incomes) > 1700
            assert abs(np.corrcoef(np.argsort(np.argsort(incomes)), np.arange(len(incomes)))[0, 1]) < 0.1


ZERO = "CASE WHEN region = 'X' AND ill THEN CAST('-0' AS {0}) ELSE CAST('0' AS {0}) END"
MONTH = "CASE WHEN region = 'X' AND ill THEN to_months(1) ELSE to_days(30) END"
HOURS = "CASE WHEN region = 'X' AND ill THEN to_hours(720) ELSE to_days(30) END"
SIGNED = "round(CASE WHEN region = 'X' AND ill THEN -0.4::DOUBLE ELSE 0.4::DOUBLE END)"
NAN = "CASE WHEN region = 'X' AND ill THEN CAST('-nan' AS {0}) ELSE CAST('nan' AS {0}) END"
NO_NUMBER = "CASE WHEN region = 'X' AND ill THEN 'inf'::DOUBLE * 0 ELSE 'nan'::DOUBLE END"
VARIANT = "CASE WHEN region = 'X' AND ill THEN 1::VARIANT ELSE 1.0::VARIANT END"
TWO_FORMS = [
    ZERO.format("DOUBLE"), ZERO.format("FLOAT"), MONTH, HOURS, SIGNED, NAN.format("DOUBLE"), NAN.format("FLOAT"), NO_NUMBER,
    VARIANT, f"list_extract([{VARIANT}], 1)",
]  # fmt: skip
OF_A_KEY = (
    "SELECT {0} AS k, count(*) AS n FROM people GROUP BY 1",
    "SELECT DISTINCT {0} AS k FROM people",
    "SELECT min({0}) AS k, max({0}) AS l, any_value({0}) AS m FROM people",
    "SELECT sum({0}) AS k, avg({0}) AS l FROM people",
    "SELECT mode({0}) AS k, 1 / median({0}) AS l, quantile_disc({0}, 0.3) AS m FROM people",
    "SELECT k::VARCHAR AS k, 1 / k AS l FROM (SELECT {0} AS k, sum(income) AS s FROM people GROUP BY 1)",
    "SELECT k::VARCHAR AS k, n FROM (SELECT {0} AS k, count(*) AS n FROM people GROUP BY 1)",
    "SELECT {0} AS k, sex, count(*) AS n FROM people GROUP BY CUBE (1, 2)",
    "SELECT k, count(*) AS n FROM (SELECT {0} AS k, id FROM people) GROUP BY k",
    "SELECT k, count(*) AS n FROM (SELECT id, min({0}) AS k FROM people GROUP BY id) GROUP BY k",
    "SELECT [{0}] AS k, count(*) AS n FROM people GROUP BY 1",
    "SELECT {{'a': {0}}} AS k, count(*) AS n FROM people GROUP BY 1",
    "SELECT {0} AS k, one, count(*) AS n FROM people JOIN pub USING (region) GROUP BY ALL",
    "SELECT ward, {0} AS k, count(*) AS n FROM visits JOIN people USING (id) GROUP BY ALL",
)


def one_of_two(ill: str, method: str) -> Guard:
    """The person who is stored first is ill, or is not; alone in region X."""
    con = sdcduck.connect(secret="the secret of the tests", threads=1)
    con.execute(
        f"""CREATE TABLE people AS SELECT i AS id, CASE WHEN i = 0 THEN 'X' ELSE 'r' || i % 3 END AS region,
        ['f', 'm'][1 + i % 2] AS sex, CASE WHEN i = 0 THEN {ill} ELSE i % 2 = 0 END AS ill, 1000 + i AS income,
        sdc_record_key(i) AS record_key FROM range(200) _(i);
        CREATE TABLE visits AS SELECT id, record_key, 'w' || id % 2 AS ward FROM people, range(2);
        CREATE TABLE pub AS SELECT DISTINCT region, 1 AS one FROM people"""
    )
    con.execute("FROM sdc_declare_public('pub')").fetchall()
    for table, columns in (("people", "['region', 'ill', 'sex'], measures := ['income']"), ("visits", "['ward']")):
        con.execute(
            f"FROM sdc_protect('{table}', unit := 'id', dimensions := {columns}, population := 'p', {METHODS[method]})"
        ).fetchall()
    return guard(con)


@pytest.mark.parametrize(("place", "method"), list(enumerate(["cell_key", "threshold", "rounding"])))
def test_values_that_are_equal_are_shown_alike(place: int, method: str) -> None:
    """A group would show the value of its first record: -0.0 or 0.0, NaN or -NaN, a month or 30 days, of one person.

    In each run, each question under one method, and each method with each form of a value and each of a question.
    """
    first, second = one_of_two("true", method), one_of_two("false", method)
    answered, step = 0, times(3, 1)
    for number, form in enumerate(TWO_FORMS):
        for query in OF_A_KEY[(place + number) % step :: step]:
            shown = []
            for guarded in (first, second):
                try:
                    answer = guarded.sql(query.format(form))
                    shown.append(f"{answer.to_pylist()} {answer}")  # Arrow writes the sign of NaN
                except Refused as refused:
                    shown.append(refused.code)
            assert shown[0] == shown[1], query.format(form)
            answered += not shown[0].startswith("SDC")
    assert answered > 15 // step


def test_keys_keep_their_types_and_values() -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad')")
        con.execute(
            """CREATE TABLE people AS SELECT i AS id, sdc_record_key(i) AS record_key, (i % 3 - 1) / 2 AS real,
            (i % 3)::FLOAT AS single, ['glad', 'sad', 'ok'][1 + i % 3]::mood AS feeling, DATE '2020-01-01' + (i % 3)::INTEGER AS day,
            (i % 3)::DECIMAL(5, 1) AS amount, i % 3 = 0 AS yes, i % 3 AS number,
            [i % 3] AS listed, {'a': i % 3, 'b': 'x'} AS pair, CASE WHEN i % 2 = 0 THEN union_value(a := i % 3) END AS either
            FROM range(300) _(i)"""
        )
        columns = ["real", "single", "feeling", "day", "amount", "yes", "number", "listed", "pair", "either"]
        con.execute(f"FROM sdc_protect('people', unit := 'id', dimensions := {columns})").fetchall()
        guarded = guard(con)
        for column in columns:
            for form in (column, f"CASE WHEN number >= 0 THEN {column} END")[: 1 if column == "either" else 2]:
                query = f"SELECT {form} AS k, count(*) AS n FROM people GROUP BY 1"
                plain = con.execute(f"SELECT k FROM ({query}) ORDER BY k").fetchall()
                assert guarded.sql(query).column(0).to_pylist() == [key for (key,) in plain], query
                described = con.execute(f"DESCRIBE {query}").fetchall()[0][1]
                assert column == "feeling" or guarded.columns(query)[0][1] == described, query


OF_COLLATED_TEXTS = (
    "SELECT name, count(*) AS n FROM people GROUP BY name",
    "SELECT DISTINCT name FROM people",
    "SELECT name || '.' AS v, ill, count(*) AS n FROM people GROUP BY CUBE (v, ill)",
    "SELECT CASE WHEN ill THEN upper(name) ELSE lower(name) END AS v, count(*) AS n FROM people GROUP BY v",
    "SELECT CASE WHEN ill THEN upper(l.name) ELSE lower(l.name) END AS v, count(*) AS n "
    "FROM people p JOIN labels l ON p.area = l.area GROUP BY v",
    "SELECT mode(name) AS v, list(DISTINCT name) AS l FROM people",
    "SELECT left(name, 3) AS a, replace(name, 'o', 'u') AS b, lpad(name, 7, ' ') AS c, NULL AS d, count(*) AS n FROM people GROUP BY ALL",
    "SELECT right(name, 3) AS a, split_part(name, 'o', 1) AS b, regexp_replace(name, 'o', 'u') AS c, count(*) AS n FROM people GROUP BY ALL",
)


@pytest.mark.parametrize("method", ["cell_key", "threshold", "rounding"])
def test_a_collated_text_is_not_that_of_the_record_that_is_stored_first(method: str) -> None:
    """Of 'North' and 'NORTH', which are one by a collation, a group would show what its first record has."""
    answers = []
    for direction in ("ASC", "DESC"):
        with sdcduck.connect(secret="the secret of the tests") as con:
            con.execute("CREATE TABLE labels (area INTEGER, name VARCHAR COLLATE NOCASE)")
            con.execute("INSERT INTO labels VALUES (0, 'a'), (1, 'b')")
            con.execute("FROM sdc_declare_public('labels')").fetchall()
            con.execute("CREATE TABLE people (id INTEGER, area INTEGER, ill BOOLEAN, name VARCHAR COLLATE NOCASE)")
            con.execute(
                "INSERT INTO people SELECT i, i % 2, i = 0, CASE WHEN i = 0 THEN 'NORTH' ELSE 'North' END "
                f"FROM range(60) t(i) ORDER BY i {direction}"
            )
            con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
            con.execute(
                "FROM sdc_protect('people', unit := 'id', dimensions := ['area', 'ill', 'name'], "
                f"method := '{method}', min_units := 1)"
            ).fetchall()
            answers.append([guard(con).sql(sql).to_pylist() for sql in OF_COLLATED_TEXTS])
            with pytest.raises(Refused, match="SDC047"):
                guard(con).sql("SELECT {'a': name} AS v, count(*) FROM people GROUP BY v")
    assert answers[0] == answers[1]
