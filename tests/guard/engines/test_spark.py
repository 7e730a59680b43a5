"""Spark, where it and Java are: some questions, and in `make scale-test` all, on two workers as well."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from effort import LONG

import sdcduck
from sdcduck.catalog.engine_self_test import check_alike
from sdcduck.catalog.engines import engine_of
from sdcduck.errors import SDCError
from sdcduck.guard import Guard, Refused

sys.path.insert(0, str(Path(__file__).parents[1] / "acceptance"))
from table import SECRET, declare, guarded, queries

pytestmark = pytest.mark.filterwarnings("ignore")  # of pyspark's own

_ONE_OF = 1 if LONG else 40


@pytest.fixture(scope="module")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    made = sql.SparkSession.builder.master("local-cluster[2,1,1024]" if LONG else "local[2]")
    for name, value in {
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.ui.showConsoleProgress": "false",
    }.items():  # fmt: skip
        made = made.config(name, value)
    session = made.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def test_as_it_comes(spark: Any) -> None:
    check_alike(engine_of(spark))


def test_without_ansi_mode_it_is_refused(spark: Any) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(SDCError, match=r"spark.sql.ansi.enabled"):
            sdcduck.connect(records=spark)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_a_mode_that_changes_what_numbers_are(spark: Any) -> None:
    spark.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Apia")  # dates have none
    check_alike(engine_of(spark))


def test_columns_that_are_left_out(spark: Any) -> None:
    spark.sql(
        "SELECT 1 AS id, 1.5F AS single, array(1) AS list, TIMESTAMP '2020-01-01 00:00:00' AS at, CAST(1 AS DECIMAL(30, 2)) AS many, "
        "CAST(1 AS DECIMAL(12, 2)) AS fee, 'a' COLLATE UTF8_LCASE AS folded, 'b' AS g, DATE '2020-01-01' AS d, 1 AS `a\"b`"
    ).createOrReplaceTempView("odd")
    with sdcduck.connect(records=spark) as con:
        described = {row[0]: row[1] for row in con.execute("DESCRIBE odd").fetchall()}
    spark.catalog.dropTempView("odd")
    assert described == {"id": "INTEGER", "fee": "DECIMAL(12,2)", "g": "VARCHAR", "d": "DATE"}


def test_keys_are_made_of_files(spark: Any) -> None:
    spark.range(3).createOrReplaceTempView("units")
    with sdcduck.connect(records=spark, secret=SECRET) as con, pytest.raises(duckdb.Error, match="COPY"):
        con.execute("FROM sdc_add_record_key('units', unit := 'id')").fetchall()
    spark.catalog.dropTempView("units")


@pytest.mark.parametrize("method", ["cell_key", *(["threshold", "rounding"] if LONG else [])])
def test_the_questions_of_the_acceptance_list(method: str, spark: Any) -> None:
    with guarded(method) as alone:
        rows = alone._con.sql("FROM people").to_arrow_table()
        spark.createDataFrame(rows).repartition(2).createOrReplaceTempView("people")
        con = sdcduck.connect(secret=SECRET, records=spark)
        con.register("given", alone._con.sql("FROM regions").to_arrow_table())
        con.execute("CREATE TABLE regions AS FROM given")
        con.execute("FROM sdc_declare_public('regions')").fetchall()
        declare(con, "people", method, exact=False)
        for (secret,) in alone._con.execute("SELECT value FROM sdc.settings WHERE name = 'noise_secret'").fetchall():
            con.execute("UPDATE sdc.settings SET value = ? WHERE name = 'noise_secret'", [secret])
        split, answered = sdcduck.open_guard(con, records=spark), 0
        for query in list(queries())[::_ONE_OF]:
            if any(
                name in query.sql
                for name in ("sdc_", "SUMMARIZE", "SHOW", "DESCRIBE", "women", "stays", "zones", "cold_")
            ):
                continue
            one, other = _told(alone, query.sql, query.parameters), _told(split, query.sql, query.parameters)
            if isinstance(other, str):
                assert other == "SDC061" or other == one, query.title
                continue
            assert isinstance(one, pa.Table), query.title
            assert _bits(one) == _bits(other), query.title
            answered += 1
        assert answered >= (100 if LONG else 2)
        split.close()
        spark.catalog.dropTempView("people")


def _told(guard: Guard, sql: str, parameters: Any) -> pa.Table | str:
    try:
        return guard.sql(sql, parameters)
    except Refused as refused:
        return refused.code


def _bits(answer: pa.Table) -> list[str]:
    """The rows in their order: `float.hex` tells every two floating-point numbers apart but NaN."""
    return [
        repr([value.hex() if isinstance(value, float) else value for value in row.values()])
        for row in answer.to_pylist()
    ]
