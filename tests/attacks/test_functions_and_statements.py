"""Every function of the running DuckDB, and every form of statement. A function that comes with a new release is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from attacked_database import LONG, Attacked
from effort import times
from fixtures_of_attacks import attacked, show

from sdcduck.guard import Refused
from sdcduck.guard.allowed import FUNCTIONS, UNIT_FUNCTIONS

ANSWERED = frozenset(
    [
        "median",
        "sem",
        "wavg",
        "weighted_avg",
        "corr",  # of a constant, or of means
        "covar_pop",
        "covar_samp",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "sum",
        "fsum",
        "sumkahan",
        "kahan_sum",
        "avg",
        "mean",
        "favg",
        "count",
        "count_if",
        "countif",
        "variance",
        "var_samp",
        "var_pop",
        "stddev",
        "stddev_samp",
        "stddev_pop",
    ]
)
"""Aggregates of a measure that are answered, with protection."""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


PLACES = (
    "SELECT {f}(income) FROM people",
    "SELECT region, {f}(region) FROM people GROUP BY region",
    "SELECT {f}() FROM regions",
    "SELECT {f}(num) OVER (ORDER BY num) FROM regions",
    "SELECT count(*) FROM people WHERE {f}(region)",
)
MORE_PLACES = (
    "SELECT {f}(income, region) FROM people",
    "SELECT {f}(people) FROM people",
    "SELECT {f}(label) OVER () FROM regions",
    "SELECT count(*) FILTER (WHERE {f}(age)) FROM people",
    "SELECT {f}(age), count(*) FROM people GROUP BY 1",
    "SELECT * FROM (SELECT {f}(income) AS x FROM people)",
    "SELECT system.main.{f}(1)",
)


def test_functions_off_the_lists_are_refused_everywhere(attacked: Attacked, show) -> None:  # type: ignore[no-untyped-def]
    names = [
        row[0]
        for row in attacked.con.execute("SELECT DISTINCT function_name FROM duckdb_functions() ORDER BY ALL").fetchall()
    ]
    off = [name for name in names if name.lower() not in FUNCTIONS]
    places, step = PLACES + MORE_PLACES if LONG else PLACES[:4], times(4, 1)
    answered = [
        query
        for number, name in enumerate(off)
        for query in (place.format(f=_quoted(name)) for place in places[number % step :: step])
        if not isinstance(attacked.attempt(query), Refused)
    ]
    show(f"{len(off)} of {len(names)} functions are on no list, {len(answered)} uses of them are answered")
    assert len(off) > 400
    assert answered == []


def test_every_function_is_on_a_list(attacked: Attacked) -> None:
    """One that a new DuckDB brings is refused, and somebody has to say whether that is right: add it to a list."""
    rows = attacked.con.execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions()").fetchall()
    own = {name for (name,) in rows if name.startswith(("sdc_", "_sdc_", "sdcduck ("))}
    refused = set(Path(__file__).with_name("refused_functions.txt").read_text().splitlines())
    assert {name for (name,) in rows} - own - refused <= FUNCTIONS
    assert not refused & FUNCTIONS


MEASURE_ARGUMENTS = (
    "income",
    "person_id",
    "income, income",
    "income, 1",
    "region, income",
    "income, region, person_id",
)
RECORD_ARGUMENTS = ("region", "age, 0", "'nonsense', d", "age", "d", "region, 2", "region, region", "region, 'x', 'y'",
                    "'year', d", "region, d", "age, age, age", "region, age, age")  # fmt: skip


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_on_the_lists_show_no_unit(attacked: Attacked, name: str) -> None:
    f = _quoted(name)
    for arguments in MEASURE_ARGUMENTS if LONG else MEASURE_ARGUMENTS[:1]:
        for query in (
            f"SELECT region, {f}({arguments}), count(*) FROM people GROUP BY region",
            f"SELECT {f}({arguments}) FROM people",
        )[: 2 if LONG else 1]:
            got = attacked.attempt(query)
            assert isinstance(got, Refused) or name in ANSWERED, query
            assert isinstance(got, Refused) or not attacked.leaks(got), query


@pytest.mark.parametrize("name", sorted(UNIT_FUNCTIONS))
def test_functions_over_records_never_fail_on_some_of_them(attacked: Attacked, name: str) -> None:
    f = _quoted(name)
    for arguments in RECORD_ARGUMENTS if LONG else RECORD_ARGUMENTS[:3]:
        there, missing = (
            attacked.attempt(f"SELECT count(*) FROM people WHERE {f}({arguments}) IS NOT NULL AND age = {age}")
            for age in (99, 98)
        )
        assert isinstance(there, Refused) == isinstance(missing, Refused), (arguments, there, missing)
        if LONG:
            got = attacked.attempt(f"SELECT {f}({arguments}) AS g, count(*) FROM people GROUP BY g")
            assert isinstance(got, Refused) or not attacked.leaks(got)


def test_the_lists_hold_nothing_volatile_or_unknown_kind(attacked: Attacked) -> None:
    rows = attacked.con.execute(
        "SELECT function_name, string_agg(DISTINCT function_type), bool_or(stability = 'VOLATILE') FROM duckdb_functions() GROUP BY ALL"
    ).fetchall()
    kinds = {name.lower(): (kind, volatile) for name, kind, volatile in rows}
    for name in FUNCTIONS & set(kinds):
        assert not kinds[name][1], name
        assert not {"pragma"} & set(kinds[name][0].split(",")), name
    for name in UNIT_FUNCTIONS & set(kinds):
        assert "aggregate" not in kinds[name][0].split(","), name


def test_table_functions_are_refused(attacked: Attacked) -> None:
    rows = attacked.con.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN ('table', 'table_macro', 'pragma')"
    ).fetchall()
    for (name,) in rows:
        for query in (
            f"SELECT * FROM {_quoted(name)}('people')",
            f"SELECT * FROM {_quoted(name)}()",
            f"CALL {_quoted(name)}('people')",
        ):
            got = attacked.attempt(query)
            assert isinstance(got, Refused) or (name in LISTS and tells_nothing(attacked, got)), query


LISTS = ("duckdb_columns", "duckdb_databases", "duckdb_schemas", "duckdb_tables", "duckdb_views", "pragma_table_info")
"""What DuckDB tells of a database, and the guard of what may be seen."""


def tells_nothing(attacked: Attacked, rows: list[dict[str, object]]) -> bool:
    """Whether rows have neither values of records nor a name that analysts do not see."""
    hidden = ("record_key", "nobody", "secret", "settings", "ptables", "_sdc", "hobby", "/")
    return not attacked.leaks(rows) and not any(name in str(rows) for name in hidden)


STATEMENTS = """
COPY people TO '/tmp/stolen.csv'|COPY (SELECT * FROM people) TO '/tmp/stolen.csv'|COPY people FROM '/etc/passwd'|ATTACH ':memory:' AS m|DETACH memory
PRAGMA database_list|PRAGMA storage_info('people')|SET threads = 1|SET VARIABLE x = (SELECT max(income) FROM people)|RESET threads
CALL pragma_storage_info('people')|EXPLAIN SELECT * FROM people|EXPLAIN ANALYZE SELECT count(*) FROM people|PREPARE p AS SELECT * FROM people|EXECUTE p
DEALLOCATE p
CREATE TABLE s AS SELECT * FROM people|CREATE VIEW s AS SELECT * FROM people|CREATE MACRO s() AS TABLE SELECT * FROM people|CREATE TEMP TABLE s AS FROM people
CREATE SCHEMA s|CREATE SEQUENCE s|CREATE TYPE s AS ENUM (SELECT region FROM people)|CREATE INDEX s ON people (income)|CREATE SECRET s (TYPE s3)
INSERT INTO people SELECT * FROM people|INSERT INTO regions SELECT region, income, 1 FROM people RETURNING *|UPDATE people SET income = 1|DELETE FROM people
DELETE FROM people RETURNING *|TRUNCATE people|DROP TABLE people|ALTER TABLE people ADD COLUMN z INTEGER|MERGE INTO regions USING people ON true WHEN MATCHED THEN DELETE
PIVOT people ON region USING sum(income)|UNPIVOT people ON income, age INTO NAME n VALUE v|SELECT * FROM (PIVOT people ON region USING sum(income))
SELECT * FROM people PIVOT (sum(income) FOR region IN ('N', 'S'))|PIVOT people ON region IN (SELECT region FROM regions) USING count(*) GROUP BY age
PIVOT people ON region IN ('N') USING max(income) GROUP BY age|PIVOT people ON income IN (1) USING count(*) GROUP BY age|PIVOT people ON region IN ('N') USING list(income) GROUP BY age
PIVOT people ON region IN ('N') USING sum(income)|PIVOT people ON region IN ('N') USING count(*) GROUP BY person_id|PIVOT people ON region IN ('N') USING count(*) GROUP BY record_key
PIVOT people ON region IN ('N') USING sum((SELECT max(income) FROM people))|PIVOT (FROM people LIMIT 1) ON region IN ('N') USING count(*) GROUP BY age|PIVOT nobody ON x IN (1) USING count(*)
PIVOT people ON region IN (region) USING count(*) GROUP BY age|PIVOT people ON people IN ('N') USING count(*) GROUP BY age|PIVOT people ON region IN ((SELECT max(income) FROM people)) USING count(*) GROUP BY age
WITH c AS (UNPIVOT people ON income) SELECT value, count(*) FROM c GROUP BY value|SELECT v, count(*) FROM people UNPIVOT (v FOR n IN (income)) GROUP BY v|UNPIVOT people ON * INTO NAME n VALUE v
UNPIVOT people ON COLUMNS(*) INTO NAME n VALUE v|SELECT value, count(*) FROM (UNPIVOT (SELECT region, income FROM people) ON income) GROUP BY value|UNPIVOT (SELECT income FROM people) ON income
UNPIVOT regions ON (SELECT max(income) FROM people) INTO NAME n VALUE v|PIVOT regions ON label IN ('North') USING sum((SELECT max(income) FROM people))|FROM people PIVOT (count(*) FOR income IN (1, 2) GROUP BY age)|SELECT * FROM people UNPIVOT (v FOR n IN (income, age))
SELECT count(*) FROM people USING SAMPLE 10%|SELECT count(*) FROM people TABLESAMPLE RESERVOIR (1)
SELECT * FROM 'people.parquet'|SELECT * FROM '/etc/passwd'|SELECT * FROM "people.csv"|SELECT * FROM people.csv|SELECT * FROM duckdb_tables
SELECT * FROM pg_catalog.pg_class|SELECT * FROM sqlite_master|SELECT * FROM sdc.settings|SELECT * FROM sdc.ptables|TABLE people|VALUES ((SELECT max(income) FROM people))
BEGIN|COMMIT|ROLLBACK|CHECKPOINT|FORCE CHECKPOINT|VACUUM|ANALYZE|USE memory|INSTALL httpfs|LOAD httpfs|EXPORT DATABASE '/tmp/stolen'|IMPORT DATABASE '/tmp/stolen'|COMMENT ON TABLE people IS 'x'
SELECT 1; SELECT 2|SELECT 1;; DROP TABLE people|SELECT count(*) FROM people; COPY people TO '/tmp/stolen.csv'|SELECT current_setting('threads')|SELECT getenv('HOME')
SELECT read_text('/etc/passwd')|SELECT * FROM read_text('/etc/passwd')|SELECT getvariable('x')|SELECT current_database()|SELECT version()|SELECT txid_current()|SELECT nextval('s')|SELECT random()
SELECT * FROM query('SELECT * FROM people')|SELECT * FROM query_table('people')|SELECT json_execute_serialized_sql('x')|SELECT stats(income) FROM people|SELECT error('x') FROM people
SELECT list_transform([1], lambda x: x + 1)|SELECT list_filter([1], lambda x: x > (SELECT max(income) FROM people))|SELECT [x FOR x IN [1, 2]]|SELECT a: 1 FROM people
WITH x AS (DELETE FROM people RETURNING *) SELECT * FROM x|WITH x AS (INSERT INTO regions VALUES ('a', 'b', 1) RETURNING *) SELECT * FROM x|SELECT * INTO s FROM people
SELECT * FROM people FOR UPDATE|FROM people LIMIT 1|SELECT * FROM people AT (VERSION => 1)|SELECT region.income FROM people AS region|SELECT #1 FROM people|SELECT count(*) FROM people WINDOW w AS (ORDER BY income)
""".strip().replace("\n", "|").split("|")  # fmt: skip


LISTED = """
PRAGMA table_info('people')|DESCRIBE people|DESCRIBE SELECT * FROM people|SUMMARIZE people|SUMMARIZE SELECT * FROM people|SHOW TABLES|SHOW ALL TABLES|SHOW people
FROM (DESCRIBE people)|FROM (SUMMARIZE people)|FROM (SHOW TABLES)|SELECT * FROM (DESCRIBE people)|SELECT * FROM information_schema.tables|DESCRIBE few
SELECT * FROM information_schema.columns|SELECT * FROM duckdb_columns()|SELECT * FROM duckdb_tables() t, duckdb_columns() c|SUMMARIZE thresholded|SUMMARIZE visits
""".strip().replace("\n", "|").split("|")  # fmt: skip

NOT_LISTED = """
DESCRIBE nobody|SHOW nobody|SUMMARIZE nobody|PRAGMA table_info('nobody')|FROM pragma_table_info('nobody')|FROM (DESCRIBE nobody)|DESCRIBE SELECT x FROM nobody
DESCRIBE SELECT record_key FROM people|SUMMARIZE SELECT record_key FROM people|SUMMARIZE SELECT income, record_key FROM people|DESCRIBE sdc.settings|SUMMARIZE sdc.settings
PRAGMA table_info('sdc.settings')|PRAGMA table_info((SELECT 'people'))|SHOW TABLES FROM sdc|DESCRIBE SELECT error(income) FROM people|DESCRIBE read_text('/etc/passwd')
DESCRIBE '/etc/passwd'|SUMMARIZE '/etc/passwd'|SUMMARIZE SELECT * FROM read_text('/etc/passwd')|SUMMARIZE people; DROP TABLE people|DESCRIBE DROP TABLE people
SUMMARIZE FROM people LIMIT 1|SUMMARIZE SELECT max(income) AS m FROM people|SUMMARIZE DESCRIBE nobody
SHOW VARIABLES|SHOW sdc|FROM duckdb_settings()|FROM duckdb_secrets()|FROM duckdb_functions()|FROM duckdb_constraints()|FROM duckdb_types()
""".strip().replace("\n", "|").split("|")  # fmt: skip


@pytest.mark.parametrize("statement", LISTED)
def test_lists_have_what_may_be_seen(attacked: Attacked, statement: str) -> None:
    got = attacked.attempt(statement)
    assert not isinstance(got, Refused)
    assert tells_nothing(attacked, got)


@pytest.mark.parametrize("statement", NOT_LISTED)
def test_lists_of_what_is_hidden_are_refused(attacked: Attacked, statement: str) -> None:
    """As what is not there at all: in the same words but for the name that was asked for."""
    got = attacked.attempt(statement)
    assert isinstance(got, Refused)
    absent = attacked.attempt(statement.replace("nobody", "xxxxxx").replace("record_key", "xxxxxxxxxx"))
    assert str(absent).replace("xxxxxxxxxx", "record_key").replace("xxxxxx", "nobody") == str(got)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_are_refused(attacked: Attacked, statement: str) -> None:
    assert isinstance(attacked.attempt(statement), Refused)


@pytest.mark.parametrize(
    "statement", ["SELECT * FROM regions", "FROM regions", "SELECT label: num FROM regions", "(SELECT 1)"]
)
def test_public_data_is_free(attacked: Attacked, statement: str) -> None:
    assert not isinstance(attacked.attempt(statement), Refused)
