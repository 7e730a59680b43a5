"""One database in memory for all tests of a module, emptied between them: to open one anew takes longer than most tests."""

from __future__ import annotations

import re

import duckdb

import sdcduck
from sdcduck.quoting import identifier

_OF_EVERY_DATABASE = ("settings", "ptables", "ptable_intervals")
_LEFT = """
    SELECT 'VIEW', database_name, schema_name, view_name, view_oid, 0 FROM duckdb_views() WHERE NOT internal
    UNION ALL
    SELECT 'TABLE', database_name, schema_name, table_name, table_oid, estimated_size FROM duckdb_tables() WHERE NOT internal
    ORDER BY 1 DESC, 5 DESC"""
_STATE = """
    SELECT 'setting', name, value FROM duckdb_settings()
    UNION ALL SELECT 'schema', database_name, schema_name FROM duckdb_schemas()
    UNION ALL SELECT 'type', schema_name, type_name FROM duckdb_types() WHERE NOT internal
    UNION ALL SELECT 'sequence', schema_name, concat(sequence_name, ' ', last_value) FROM duckdb_sequences()
    UNION ALL SELECT 'secret', name, type FROM duckdb_secrets()
    UNION ALL SELECT 'variable', name, value::VARCHAR FROM duckdb_variables()
    UNION ALL SELECT 'prepared', name, statement FROM duckdb_prepared_statements()
    UNION ALL SELECT 'ours', table_name, concat(comment, ' ', column_count) FROM duckdb_tables() WHERE schema_name = 'sdc'
    UNION ALL SELECT 'ours', view_name, comment FROM duckdb_views() WHERE schema_name = 'sdc'
    UNION ALL SELECT 'here', current_database(), current_schema()
""" + "".join(
    f"UNION ALL SELECT 'rows', '{name}', concat(count(*), ' ', bit_xor(hash(t))) FROM sdc.{name} AS t\n"
    for name in _OF_EVERY_DATABASE
)
_NOT_SEEN = re.compile(r"(?i)\bMACRO\b|\bHIDDEN\b|create_function|install\(|set_secret|interrupt|progress")


def leaves_what_is_not_seen(text: str) -> bool:
    """Whether tests leave more behind than `OneDatabase` looks for, by what they say.

    >>> leaves_what_is_not_seen("create macro f() AS 1"), leaves_what_is_not_seen("CREATE TABLE t AS SELECT 1")
    (True, False)
    """
    return _NOT_SEEN.search(text) is not None


class OneDatabase:
    """A database with the SQL functions, emptied each time that it is asked for.

    What a test left goes: tables and views, and what was stored by our functions but for p-tables and settings. Where
    there is anything else that was not there in the beginning, a setting, a schema, a type, a variable, a p-table, where
    one of our tables is not there or is another one, or where the test has closed it or left it in a transaction, it is
    opened anew.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._con: duckdb.DuckDBPyConnection | None = None
        self._state: list[tuple[object, ...]] = []

    def emptied(self) -> duckdb.DuckDBPyConnection:
        if self._con is None or not self._is_as_it_was(self._con):
            self.close()
            self._con = sdcduck.connect(secret=self._secret)
            self._state = self._con.execute(_STATE).fetchall()
        return self._con

    def close(self) -> None:
        if self._con is not None:
            self._con.close()
            self._con = None

    def _is_as_it_was(self, con: duckdb.DuckDBPyConnection) -> bool:
        try:
            con.begin()  # which fails in a transaction
            for kind, database, schema, name, _, rows in con.execute(_LEFT).fetchall():
                table = ".".join(map(identifier, (database, schema, name)))
                if schema != "sdc":
                    con.execute(f"DROP {kind} {table}")
                elif rows and name not in _OF_EVERY_DATABASE:
                    con.execute(f"DELETE FROM {table}")
            con.commit()
            return con.execute(_STATE).fetchall() == self._state
        except duckdb.Error:
            return False
