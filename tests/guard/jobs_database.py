"""Jobs of persons in firms: what is asked of records that have units of two kinds."""

from __future__ import annotations

import duckdb

import sdcduck

METHODS = {
    "threshold": "method := 'threshold', min_units := {'person_id': 10, 'firm_id': 3}",
    "cell_key": "record_key := {'person_id': 'person_key', 'firm_id': 'firm_key'}",
    "exact": "method := 'threshold', min_units := 1",
}
"""What `sdc_protect` is told; under a threshold of one nothing is hidden, and an answer must be DuckDB's."""

COLUMNS = "dimensions := ['sector', 'sex', 'age', 'month'], measures := ['wage', 'hours']"
UNITS = "units := ['person_id', 'firm_id']"


def made() -> duckdb.DuckDBPyConnection:
    """2,600 rows of 900 persons and 70 firms; many persons are in two firms, and some have several rows in one."""
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute("""
        CREATE TABLE jobs AS SELECT (i * i + i // 7) % 900 AS person_id, (i * 37 + i * i // 11) % 70 AS firm_id,
            ['trade', 'care', 'building'][1 + firm_id % 3] AS sector, ['f', 'm'][1 + person_id % 2] AS sex,
            20 + person_id * 7 % 5 * 10 AS age, (DATE '2024-01-01' + to_months((i % 12)::INTEGER))::DATE AS month,
            CASE WHEN i % 40 > 0 THEN 1000 + i * 7919 % 4000 END AS wage, (10 + i * 13 % 31)::DOUBLE AS hours
        FROM range(2600) t(i);
        CREATE TABLE sectors AS FROM (VALUES ('trade', 'services'), ('care', 'services'), ('building', 'industry')) s(sector, part);
    """)
    add_keys(con, "jobs")
    con.execute("FROM sdc_declare_public('sectors')").fetchall()
    return con


def add_keys(con: duckdb.DuckDBPyConnection, table: str) -> None:
    """A record key for persons and one for firms."""
    for unit in ("person", "firm"):
        con.execute(f"FROM sdc_add_record_key('{table}', unit := '{unit}_id', record_key := '{unit}_key')").fetchall()


def protect(con: duckdb.DuckDBPyConnection, method: str, table: str = "jobs", columns: str = COLUMNS) -> None:
    """Declare the policy of the table for both kinds of units."""
    con.execute(f"FROM sdc_protect('{table}', {UNITS}, {columns}, {METHODS[method]})").fetchall()
