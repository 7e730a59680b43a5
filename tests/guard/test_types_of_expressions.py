"""The type that the guard takes an expression for is that of DuckDB: by it is decided what is compared with what."""

from __future__ import annotations

import duckdb
import pytest
from sqlglot import exp, parse_one
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from sdcduck.guard.expression_types import EXPRESSION_TYPES
from sdcduck.guard.expressions import family

COLUMNS = """5::INTEGER AS age, 3::BIGINT AS big, 2.5::DECIMAL(6, 2) AS price, 1.5::DOUBLE AS d, 'n' AS region,
    DATE '2024-05-06' AS day, TIMESTAMP '2024-05-06 12:34:56.7' AS ts, true AS ill, 3::UTINYINT AS tiny"""

EXPRESSIONS = """
    age / 10; age // 10; age % 7; mod(age, 3); round(age / 7); floor(age / 7); ceil(d); trunc(d); age * 0.1; age + 0.5; age + big; tiny + 1;
    abs(age); abs(price); sign(price); power(age, 2); age ** 2; sqrt(age); ln(age); -age; -price; price * age; price / 2; price % 2; d % 2;
    CASE WHEN ill THEN 1 ELSE 0.5 END; CASE WHEN ill THEN age ELSE price END; CASE WHEN ill THEN day ELSE ts END;
    coalesce(age, 0.5); coalesce(day, ts); coalesce(ts, day); greatest(age, 0.5); least(age, price); greatest(day, ts); least(day, day); nullif(age, 0);
    if(ill, age, d); age::DECIMAL(10, 2); age::DOUBLE; age::VARCHAR; age::HUGEINT; ts::DATE; day::TIMESTAMP; ill::INT; ill::BIGINT;
    length(region); strlen(region); instr(region, 'n'); position('n' IN region); ascii(region); upper(region); left(region, 1); region || 'x';
    substr(region, 1, 1); split_part(region, 'n', 1); replace(region, 'n', 'x'); concat(region, 'x'); strftime(ts, '%Y'); monthname(day);
    extract(epoch FROM ts); extract(julian FROM day); extract(second FROM ts); extract(year FROM ts); epoch(ts); epoch_ms(ts); epoch_ms(age);
    date_part('epoch', ts); date_part('month', ts); date_diff('day', day, day); date_sub('month', day, day); year(day); hour(ts); isodow(day);
    day + 1; day - 1; day - day; day + INTERVAL 1 DAY; ts + INTERVAL 1 HOUR; date_trunc('month', day); date_trunc('month', ts); date_trunc('hour', day);
    last_day(ts); make_date(year(day), 1, 1); time_bucket(INTERVAL 1 DAY, ts); NOT ill; age > 3; age IS NULL; weekday(day); isoyear(ts);
    yearweek(day); decade(day); century(ts); bit_count(age); even(d); trunc(price); trunc(age); datepart('julian', day); datesub('day', day, day); region LIKE 'n%'; age IN (1, 2)
"""


@pytest.mark.parametrize("expression", [one.strip() for one in EXPRESSIONS.split(";")])
def test_it_is_that_of_duckdb_or_unknown(expression: str) -> None:
    """Numbers with decimals may be taken for each other: both are compared as DOUBLE."""
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS SELECT {COLUMNS}")
        described = con.execute("DESCRIBE t").fetchall()
        row = con.execute(f"SELECT typeof({expression}) FROM t").fetchone()
    assert row is not None
    query = qualify(
        parse_one(f"SELECT {expression} AS x FROM t", read="duckdb"),
        schema={"t": {name: kind for name, kind, *_ in described}}, dialect="duckdb", quote_identifiers=False,
    )  # fmt: skip
    annotated = annotate_types(
        query, schema={"t": {name: kind for name, kind, *_ in described}}, dialect="duckdb",
        expression_metadata=EXPRESSION_TYPES,
    )  # fmt: skip
    taken_for = family(annotated.selects[0])
    of_duckdb = exp.Null()
    of_duckdb.type = exp.DataType.build(row[0], dialect="duckdb", udt=True)
    true = family(of_duckdb)
    assert taken_for in (None, true) or {taken_for, true} <= {"real", "decimal"}
