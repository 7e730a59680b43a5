"""What clients ask about the database itself: from the same system catalog, without data, as PostgreSQL clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from sdcduck.gateway.answers import Role
from sdcduck.gateway.flight.messages import (
    Catalogs,
    ForeignKeys,
    Metadata,
    PrimaryKeys,
    Schemas,
    ServerInfo,
    Tables,
    TableTypes,
    TypeInfo,
)
from sdcduck.quoting import folded, identifier

_TABLE = "TABLE"
_TEXT = pa.string()


def _schema(**columns: pa.DataType) -> pa.Schema:
    """A schema; columns whose names end in an underscore are never NULL, and clients insist on that."""
    return pa.schema(
        [pa.field(name.rstrip("_"), kind, nullable=not name.endswith("_")) for name, kind in columns.items()]
    )


_KEY = pa.uint8()
_INFO_VALUE = pa.dense_union(
    [
        pa.field("string_value", _TEXT),
        pa.field("bool_value", pa.bool_()),
        pa.field("bigint_value", pa.int64()),
        pa.field("int32_bitmask", pa.int32()),
        pa.field("string_list", pa.list_(_TEXT)),
        pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
    ]
)
_TABLES = _schema(catalog_name=_TEXT, db_schema_name=_TEXT, table_name_=_TEXT, table_type_=_TEXT)
_TABLES_WITH_COLUMNS = _TABLES.append(pa.field("table_schema", pa.binary(), nullable=False))
_SCHEMAS: Mapping[type[Metadata], pa.Schema] = {
    Catalogs: _schema(catalog_name_=_TEXT),
    Schemas: _schema(catalog_name=_TEXT, db_schema_name_=_TEXT),
    TableTypes: _schema(table_type_=_TEXT),
    PrimaryKeys: _schema(
        catalog_name=_TEXT, db_schema_name=_TEXT, table_name_=_TEXT, column_name_=_TEXT, key_name=_TEXT,
        key_sequence_=pa.int32(),
    ),
    ForeignKeys: _schema(
        pk_catalog_name=_TEXT, pk_db_schema_name=_TEXT, pk_table_name_=_TEXT, pk_column_name_=_TEXT,
        fk_catalog_name=_TEXT, fk_db_schema_name=_TEXT, fk_table_name_=_TEXT, fk_column_name_=_TEXT,
        key_sequence_=pa.int32(), fk_key_name=_TEXT, pk_key_name=_TEXT, update_rule_=_KEY, delete_rule_=_KEY,
    ),
    ServerInfo: pa.schema(
        [pa.field("info_name", pa.uint32(), nullable=False), pa.field("value", _INFO_VALUE, nullable=False)]
    ),
    TypeInfo: _schema(
        type_name_=_TEXT, data_type_=pa.int32(), column_size=pa.int32(), literal_prefix=_TEXT, literal_suffix=_TEXT,
        create_params=pa.list_(pa.field("item", _TEXT, nullable=False)), nullable_=pa.int32(),
        case_sensitive_=pa.bool_(), searchable_=pa.int32(), unsigned_attribute=pa.bool_(),
        fixed_prec_scale_=pa.bool_(), auto_increment=pa.bool_(), local_type_name=_TEXT, minimum_scale=pa.int32(),
        maximum_scale=pa.int32(), sql_data_type_=pa.int32(), datetime_subcode=pa.int32(), num_prec_radix=pa.int32(),
        interval_precision=pa.int32(),
    ),
}  # fmt: skip

_INFO: Mapping[int, str | bool | int] = {
    0: "sdcduck",  # FLIGHT_SQL_SERVER_NAME
    1: "1",  # .._VERSION
    2: pa.__version__,  # .._ARROW_VERSION
    3: True,  # .._READ_ONLY
    4: True,  # .._SQL
    5: False,  # .._SUBSTRAIT
    8: 1,  # .._TRANSACTION: they can be begun and ended
    9: True,  # .._CANCEL
    10: False,  # .._BULK_INGESTION
    500: False,  # SQL_DDL_CATALOG
    501: False,  # SQL_DDL_SCHEMA
    502: False,  # SQL_DDL_TABLE
    504: '"',  # SQL_IDENTIFIER_QUOTE_CHAR
}
_BOOL_PART, _TEXT_PART, _MASK_PART = 1, 0, 3


def schema_of(asked: Metadata) -> pa.Schema:
    """The columns of an answer."""
    return _TABLES_WITH_COLUMNS if isinstance(asked, Tables) and asked.columns else _SCHEMAS_WITH_TABLES[type(asked)]


_SCHEMAS_WITH_TABLES: Mapping[type[Metadata], pa.Schema] = {**_SCHEMAS, Tables: _TABLES}


def answer(asked: Metadata, role: Role) -> pa.Table:
    """The answer, as the users of a role see the database."""
    match asked:
        case Catalogs():
            found = _asked(role, "SELECT catalog_name FROM inf.information_schema_catalog_name", {})
        case Schemas():
            found = _asked(
                role,
                "SELECT catalog_name, schema_name FROM inf.schemata WHERE schema_name = 'public' "
                f"AND {_LIKE.format('catalog_name', '=', 'catalog', '')} "
                f"AND {_LIKE.format('schema_name', 'LIKE', 'schema', _ESCAPE)} ORDER BY ALL",
                {"catalog": asked.catalog, "schema": _pattern(asked.schema)},
            )
        case Tables():
            found = _tables(asked, role)
        case TableTypes():
            found = pa.table({"table_type": [_TABLE]})
        case ServerInfo():
            return _server_info(asked.numbers)
        case _:
            return schema_of(asked).empty_table()
    return found.rename_columns(schema_of(asked).names).cast(schema_of(asked))


_ESCAPE = " ESCAPE '\\'"
_LIKE = "(${2}::VARCHAR IS NULL OR {0} {1} ${2}{3})"


def _pattern(pattern: str | None) -> str | None:
    r"""A pattern of LIKE; one that ends in an escape of nothing ends in a backslash.

    >>> [_pattern(text) for text in ("a%", "a\\", "a\\\\", None)]
    ['a%', 'a\\\\', 'a\\\\', None]
    """
    if pattern is None:
        return None
    return pattern + "\\" * ((len(pattern) - len(pattern.rstrip("\\"))) % 2)


def _asked(role: Role, sql: str, parameters: Mapping[str, object]) -> pa.Table:
    cursor = role.catalog.cursor()
    try:
        return cursor.sql(sql, params=dict(parameters)).to_arrow_table()
    finally:
        cursor.close()


def _tables(asked: Tables, role: Role) -> pa.Table:
    if asked.types and _TABLE not in asked.types:
        return schema_of(asked).empty_table()
    found = _asked(
        role,
        f"SELECT table_catalog, table_schema, table_name, '{_TABLE}' FROM inf.tables "
        f"WHERE {_LIKE.format('table_catalog', '=', 'catalog', '')} "
        f"AND {_LIKE.format('table_schema', 'LIKE', 'schema', _ESCAPE)} "
        f"AND {_LIKE.format('table_name', 'LIKE', 'name', _ESCAPE)} ORDER BY ALL",
        {"catalog": asked.catalog, "schema": _pattern(asked.schema), "name": _pattern(asked.table)},
    )
    if not asked.columns:
        return found
    names = found.column(2).to_pylist()
    schemas = [_columns(role, name).serialize().to_pybytes() for name in names]
    return found.append_column("table_schema", pa.array(schemas, pa.binary()))


_TOLD = "ARROW:FLIGHT:SQL:"
_REMARKS = (
    "SELECT a.attname, d.description FROM pg.pg_class c JOIN pg.pg_attribute a ON a.attrelid = c.oid "
    "JOIN pg.pg_description d ON d.objoid = c.oid AND d.objsubid = a.attnum "
    "JOIN pg.pg_namespace s ON s.oid = c.relnamespace WHERE s.nspname = 'public' AND c.relname = $name"
)


def _columns(role: Role, table: str) -> pa.Schema:
    """The columns of a table, and what each may be used for."""
    types = role.own[folded(table)]
    remarks = dict(zip(*_asked(role, _REMARKS, {"name": table}).to_pydict().values(), strict=True))
    return pa.schema(
        [
            column.with_metadata(
                {f"{_TOLD}TYPE_NAME": types[column.name], f"{_TOLD}REMARKS": remarks.get(column.name, "")}
            )
            for column in arrow_schema(role, list(types.items()))
        ]
    )


def arrow_schema(role: Role, columns: Sequence[tuple[str, str]]) -> pa.Schema:
    """The columns of an answer as Arrow has them: as DuckDB makes them of its types, asked where there is no data."""
    kinds = list(dict.fromkeys(kind for _, kind in columns))  # each once: there may be thousands of columns
    nulls = ", ".join(f"CAST(NULL AS {kind}) AS {identifier(f'c{place}')}" for place, kind in enumerate(kinds))
    made = _asked(role, f"SELECT {nulls} LIMIT 0", {}).schema if columns else pa.schema([])
    fields = dict(zip(kinds, made, strict=True))
    return pa.schema([fields[kind].with_name(name) for name, kind in columns])


def _server_info(numbers: Sequence[int]) -> pa.Table:
    known = [number for number in numbers or _INFO if number in _INFO]
    values = [_INFO[number] for number in known]
    parts: dict[int, list[Any]] = {place: [] for place in range(_INFO_VALUE.num_fields)}
    kinds, places = [], []
    for value in values:
        kind = _BOOL_PART if isinstance(value, bool) else _TEXT_PART if isinstance(value, str) else _MASK_PART
        kinds.append(kind)
        places.append(len(parts[kind]))
        parts[kind].append(value)
    union = pa.UnionArray.from_dense(
        pa.array(kinds, pa.int8()),
        pa.array(places, pa.int32()),
        [pa.array(values, _INFO_VALUE.field(place).type) for place, values in parts.items()],
        [_INFO_VALUE.field(place).name for place in parts],
    )
    return pa.Table.from_arrays([pa.array(known, pa.uint32()), union], schema=_SCHEMAS[ServerInfo])


__all__ = ["answer", "arrow_schema", "schema_of"]
