"""Functions that only count records have an engine count them: the same to the bit as with the records here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sdcduck

sys.path.insert(0, str(Path(__file__).parent))
from every_engine import ENGINES, in_duckdb

_SECRET = "the secret of the records of persons"
_PERSONS = """SELECT i AS id, ['n', 's', 'e', NULL][1 + i % 4] AS region, (i * i % 23)::INTEGER AS age, i % 3 = 0 AS married,
    DATE '2001-01-01' + (i % 5)::INTEGER AS since, ((i * 7 % 13) / 10)::DECIMAL(4, 1) AS fee, sqrt(i) AS income,
    (i % 6)::INTEGER AS many FROM range(500) r(i)"""
_SYNTHETIC = (
    "CREATE TABLE synthetic AS SELECT region, (age * 3 % 23)::INTEGER AS age, count(*) AS n FROM {} GROUP BY ALL"
)
_KEYS = "keys := ['region', 'age']"
_BY = "dimensions := ['region', 'age']"
_COUNTS = f"(SELECT region, age, records AS n FROM sdc_classes('persons', {_KEYS}))".replace("'", "''")
_SOME = (
    f"FROM sdc_k_anonymity('persons', {_KEYS}, k := 6)",
    "FROM sdc_l_diversity('persons', keys := ['region', 'married'], sensitive := 'since')",
    f"FROM sdc_synth_table('persons', {_BY}, seed := 3, model := 'poisson', alpha := 0.1)",
)
_MORE = (
    f"FROM sdc_classes('persons', {_KEYS})",
    f"FROM sdc_classes('persons', {_KEYS}, nulls := 'match', alpha := 0.5)",
    f"FROM sdc_k_anonymity('persons', {_KEYS}, nulls := 'drop')",
    f"FROM sdc_global_risk('persons', {_KEYS})",
    "FROM sdc_unsafe_combinations('persons', keys := ['region', 'age', 'since'], max_size := 2)",
    f"FROM sdc_marketer_risk('persons', {_KEYS})",
    f"FROM sdc_marketer_risk('here', 'persons', {_KEYS})",
    f"FROM sdc_marketer_risk_classes('persons', 'here', {_KEYS})",
    "FROM sdc_policy_risk('persons', policies := {'coarse': ['region'], 'fine': ['region', 'fee']})",
    "FROM sdc_l_diversity_classes('PERSONS', keys := ['Region'], sensitive := 'fee', nulls := 'skip')",
    "FROM sdc_multi_diversity('persons', keys := ['region'], sensitive := ['fee', 'since'])",
    "FROM sdc_multi_diversity_classes('persons', keys := ['region'], sensitive := ['fee', 'since'])",
    f"FROM sdc_t_closeness('persons', {_KEYS}, sensitive := 'fee')",
    "FROM sdc_t_closeness_classes('persons', keys := ['region'], sensitive := 'married')",
    f"FROM sdc_synth_table('persons', {_BY}, freq := 'many', seed := 3, model := 'nbi', sigma := 0.5)",
    f"FROM sdc_synth_table('persons', {_BY}, seed := 3, model := 'multinomial', m := 2, structural_zeros := 'age > 90')",
    f"FROM sdc_synth_table('persons', {_BY}, seed := 3, model := 'poisson', records := true)",
    f"FROM sdc_tau('persons', {_BY}, model := 'poisson', k := [0, 1, 2], d := [0, 1])",
    f"FROM sdc_tune('tau3(1) <= 0.2', 'persons', {_BY}, model := 'nbi')",
    f"FROM sdc_tau_observed('persons', 'synthetic', {_BY}, synthetic_freq := 'n')",
    f"FROM sdc_table_risk_utility('{_COUNTS}', 'synthetic', {_BY})",
    f"FROM sdc_count_utility('{_COUNTS}', 'synthetic', {_BY})",
    f"FROM sdc_noise_distribution('{_COUNTS}', 'synthetic', {_BY})",
)


@pytest.fixture(scope="module")
def alone() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret=_SECRET) as con:
        con.execute(f"CREATE TABLE persons AS {_PERSONS}")
        _more_tables(con)
        yield con


def _more_tables(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE TABLE here AS {_PERSONS.replace('500', '300')}")
    con.execute(_SYNTHETIC.format("here"))


@pytest.fixture(scope="module")
def there(alone: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret=_SECRET, records=_of("duckdb", alone)) as con:
        _more_tables(con)
        yield con


def _of(engine: str, alone: duckdb.DuckDBPyConnection) -> Any:
    return ENGINES[engine]({"persons": alone.sql("FROM persons").to_arrow_table()})


def _bits(con: duckdb.DuckDBPyConnection, statement: str) -> tuple[Any, list[str]]:
    found = con.sql(statement).to_arrow_table()
    rows = [[value.hex() if isinstance(value, float) else value for value in row.values()] for row in found.to_pylist()]
    return found.schema, sorted(map(repr, rows))


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_every_engine(alone: duckdb.DuckDBPyConnection, engine: str) -> None:
    with sdcduck.connect(secret=_SECRET, records=_of(engine, alone)) as con:
        for statement in _SOME:
            assert _bits(con, statement) == _bits(alone, statement), statement


@pytest.mark.parametrize("statement", _MORE)
def test_functions(alone: duckdb.DuckDBPyConnection, there: duckdb.DuckDBPyConnection, statement: str) -> None:
    found = _bits(there, statement)
    assert found == _bits(alone, statement)
    assert found[1]


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (f"FROM sdc_individual_risk('persons', {_KEYS})", "take a sample"),
        (f"FROM sdc_global_risk('persons', {_KEYS}, weight := 'many')", "take a sample"),
        (f"FROM sdc_global_risk('persons', {_KEYS}, household := 'many')", "take a sample"),
        ("FROM sdc_k_anonymity('persons', keys := ['income'])", "'income' (DOUBLE) apart"),
        ("FROM sdc_k_anonymity('persons', keys := ['regoin'])", "did you mean 'region'"),
        (f"FROM sdc_k_anonymity('(FROM persons WHERE age > 3)', {_KEYS})", "name that table itself"),
        (f"FROM sdc_k_anonymity('old', {_KEYS})", "name that table itself"),
        ("FROM sdc_policy_risk('persons', policies := {'a': ['region']}, date := 'since', as_of := [DATE '2001-01-03'])", "take a sample"),
    ],
)  # fmt: skip
def test_what_is_refused(there: duckdb.DuckDBPyConnection, statement: str, says: str) -> None:
    there.execute("CREATE OR REPLACE VIEW old AS FROM persons WHERE age > 11")
    with pytest.raises(duckdb.Error) as refused:
        there.execute(statement).fetchall()
    assert says in str(refused.value)


def test_a_table_without_records(alone: duckdb.DuckDBPyConnection) -> None:
    none = {"persons": alone.sql("FROM persons LIMIT 0").to_arrow_table()}
    with sdcduck.connect(secret=_SECRET, records=in_duckdb(none)) as con, sdcduck.connect() as here:
        here.register("given", none["persons"])
        here.execute("CREATE TABLE persons AS FROM given")
        for statement in (f"FROM sdc_k_anonymity('persons', {_KEYS})", f"FROM sdc_classes('persons', {_KEYS})"):
            assert _bits(con, statement) == _bits(here, statement)


def test_twice_in_one_statement(alone: duckdb.DuckDBPyConnection) -> None:
    """What is made for the second call is seen by a statement that has begun to read what was made for the first."""
    asked = f"SELECT records FROM sdc_k_anonymity('persons', {_KEYS}) UNION ALL SELECT count(*) FROM sdc_classes('persons', keys := ['fee'])"
    with sdcduck.connect(secret=_SECRET, records=_of("duckdb", alone)) as con:
        assert con.execute(asked).fetchall() == alone.execute(asked).fetchall()


def test_a_view_of_its_name_in_another_schema_is_not_answered_by_the_table(there: duckdb.DuckDBPyConnection) -> None:
    there.execute("CREATE SCHEMA other")
    there.execute("CREATE VIEW other.persons AS FROM main.persons WHERE age > 11")
    there.execute("USE other")
    try:
        with pytest.raises(duckdb.Error, match="another engine"):
            there.execute(f"FROM sdc_k_anonymity('persons', {_KEYS})").fetchall()
    finally:
        there.execute("USE main")
        there.execute("DROP SCHEMA other CASCADE")


def test_of_the_records_as_they_are_now(alone: duckdb.DuckDBPyConnection) -> None:
    records = _of("duckdb", alone)
    with sdcduck.connect(secret=_SECRET, records=records) as con:
        asked = f"SELECT records FROM sdc_k_anonymity('persons', {_KEYS})"
        assert con.sql(asked).fetchall() == [(500,)]
        records.execute("DELETE FROM persons WHERE id < 100")
        assert con.sql(asked).fetchall() == [(400,)]
