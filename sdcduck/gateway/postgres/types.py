"""The types of DuckDB as PostgreSQL clients know them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sdcduck.gateway.postgres.protocol import Column


@dataclass(frozen=True)
class Type:
    """A type of PostgreSQL.

    Attributes:
        oid: its number, the same in every PostgreSQL.
        name: as ``pg_type`` has it.
        size: of its values in bytes, -1 where they differ.
        array: number of the type of its arrays.
        category: letter of ``pg_type.typcategory``.
        sql: the type of DuckDB that a parameter of this type gets.
        modifier: precision and scale of a number, else -1.
        element: of an array.
    """

    oid: int
    name: str
    size: int
    array: int
    category: str
    sql: str
    modifier: int = -1
    element: Type | None = None


BOOL = Type(16, "bool", 1, 1000, "B", "BOOLEAN")
BYTEA = Type(17, "bytea", -1, 1001, "U", "BLOB")
CHAR = Type(18, "char", 1, 1002, "Z", "VARCHAR")
NAME = Type(19, "name", 64, 1003, "S", "VARCHAR")
INT8 = Type(20, "int8", 8, 1016, "N", "BIGINT")
INT2 = Type(21, "int2", 2, 1005, "N", "SMALLINT")
INT4 = Type(23, "int4", 4, 1007, "N", "INTEGER")
TEXT = Type(25, "text", -1, 1009, "S", "VARCHAR")
OID = Type(26, "oid", 4, 1028, "N", "BIGINT")
JSON = Type(114, "json", -1, 199, "U", "VARCHAR")
FLOAT4 = Type(700, "float4", 4, 1021, "N", "FLOAT")
FLOAT8 = Type(701, "float8", 8, 1022, "N", "DOUBLE")
UNKNOWN = Type(705, "unknown", -2, 0, "X", "VARCHAR")
BPCHAR = Type(1042, "bpchar", -1, 1014, "S", "VARCHAR")
VARCHAR = Type(1043, "varchar", -1, 1015, "S", "VARCHAR")
DATE = Type(1082, "date", 4, 1182, "D", "DATE")
TIME = Type(1083, "time", 8, 1183, "D", "TIME")
TIMESTAMP = Type(1114, "timestamp", 8, 1115, "D", "TIMESTAMP")
TIMESTAMPTZ = Type(1184, "timestamptz", 8, 1185, "D", "TIMESTAMPTZ")
INTERVAL = Type(1186, "interval", 16, 1187, "T", "INTERVAL")
NUMERIC = Type(1700, "numeric", -1, 1231, "N", "DECIMAL(38, 10)")
REGCLASS = Type(2205, "regclass", 4, 2210, "N", "BIGINT")
REGTYPE = Type(2206, "regtype", 4, 2211, "N", "BIGINT")
UUID = Type(2950, "uuid", 16, 2951, "U", "UUID")

BASE_TYPES = (
    BOOL, BYTEA, CHAR, NAME, INT8, INT2, INT4, TEXT, OID, JSON, FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR, DATE, TIME,
    TIMESTAMP, TIMESTAMPTZ, INTERVAL, NUMERIC, REGCLASS, REGTYPE, UUID,
)  # fmt: skip


def array_of(element: Type) -> Type:
    """The type of arrays of a type."""
    return Type(element.array, f"_{element.name}", -1, 0, "A", f"{element.sql}[]", -1, element)


BY_OID = {kind.oid: kind for kind in BASE_TYPES} | {kind.array: array_of(kind) for kind in BASE_TYPES if kind.array}

_BY_NAME = {
    "BOOLEAN": BOOL, "TINYINT": INT2, "SMALLINT": INT2, "INTEGER": INT4, "BIGINT": INT8, "UTINYINT": INT2,
    "USMALLINT": INT4, "UINTEGER": INT8, "UBIGINT": NUMERIC, "HUGEINT": NUMERIC, "UHUGEINT": NUMERIC, "FLOAT": FLOAT4,
    "DOUBLE": FLOAT8, "VARCHAR": VARCHAR, "BLOB": BYTEA, "DATE": DATE, "TIME": TIME, "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_S": TIMESTAMP, "TIMESTAMP_MS": TIMESTAMP, "TIMESTAMP_NS": TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": TIMESTAMPTZ, "TIMESTAMPTZ": TIMESTAMPTZ, "INTERVAL": INTERVAL, "UUID": UUID,
    "JSON": JSON, "TEXT": VARCHAR, "INT": INT4, "REAL": FLOAT4,
}  # fmt: skip
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_LIST = re.compile(r"\[\d*\]$")


def type_of(duckdb_type: str) -> Type:
    """The type of PostgreSQL for a type of DuckDB; text for what PostgreSQL does not have.

    >>> type_of("DECIMAL(18,3)").modifier, type_of("INTEGER[]").name, type_of("STRUCT(a INTEGER)").name
    (1179655, '_int4', 'json')
    """
    name = duckdb_type.strip().strip('"').upper()
    if name in _BY_NAME:
        return _BY_NAME[name]
    if number := _DECIMAL.fullmatch(name):
        precision, scale = int(number[1]), int(number[2])
        # The scale stands in the lower half, both moved by the four bytes of a length.
        return Type(1700, "numeric", -1, 1231, "N", name, (precision << 16 | scale) + 4)
    if _LIST.search(name):
        element = type_of(_LIST.sub("", name))
        element = TEXT if element is VARCHAR else element  # of which more drivers have arrays
        return array_of(element) if element.array and element is not JSON else JSON
    if name.startswith(("STRUCT", "MAP", "UNION")):
        return JSON
    return VARCHAR


def column_of(name: str, kind: Type) -> Column:
    """A column of a result."""
    return Column(name, kind.oid, kind.size, kind.modifier)
