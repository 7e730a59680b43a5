"""What programs find when they ask the database about itself: an instance of its own, in memory, without any data.

It has the schemas ``pg`` and ``inf`` with what a user may see of the relations of the schemas ``pg_catalog`` and
``information_schema`` of PostgreSQL, and ``pgf`` with their functions. A question that comes here by mistake finds no
records, because there are none.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from sdcduck.catalog import Policy
from sdcduck.gateway.postgres.settings import Settings
from sdcduck.gateway.postgres.types import BASE_TYPES, Type, array_of, type_of
from sdcduck.gateway.system.functions import FUNCTIONS
from sdcduck.gateway.system.tables import INFORMATION_SCHEMA, PG_CATALOG
from sdcduck.guard.relations import about, use_of
from sdcduck.guard.running import plans_once
from sdcduck.quoting import identifier, literal

_LETTERS = {"u": "UINTEGER", "s": "SMALLINT", "i": "INTEGER", "l": "BIGINT", "b": "BOOLEAN", "f": "FLOAT",
            "d": "DOUBLE", "z": "TIMESTAMPTZ", "v": "INTERVAL", "t": "VARCHAR"}  # fmt: skip
_CATALOG, _SQL_SCHEMA, _PUBLIC = 11, 13_000, 2200
_OWNER = 10
_FIRST_RELATION = 16_384
_DATABASE = 5
_CLASS = 1259
_NAMES = {
    "bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real", "char": '"char"',
    "float8": "double precision", "varchar": "character varying", "bpchar": "character",
    "time": "time without time zone", "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
}  # fmt: skip


@dataclass(frozen=True)
class _Relation:
    """A relation of PostgreSQL's own: number, kind, columns with their types of DuckDB."""

    name: str
    oid: int
    kind: str
    columns: Mapping[str, str]


def _relations(text: str) -> dict[str, _Relation]:
    found: dict[str, _Relation] = {}
    for entry in text.strip().replace("\n    ", " ").splitlines():
        name, oid, kind, *columns = entry.split()
        pairs = [column.partition(":") for column in columns]
        found[name] = _Relation(
            name, int(oid), kind,
            {column: _LETTERS[(letter or "t")[0]] + letter[1:] for column, _, letter in pairs},
        )  # fmt: skip
    return found


PG_RELATIONS = _relations(PG_CATALOG)
INFORMATION_RELATIONS = _relations(INFORMATION_SCHEMA)


class SystemCatalog:
    """The catalog as the users of one role see it.

    Args:
        relations: what they may ask about, with the columns they see and their types of DuckDB.
        database: its name.
        users: names of those who have the role; nobody is told of others.
    """

    def __init__(
        self, relations: Sequence[tuple[Policy, Mapping[str, str]]], database: str, users: Sequence[str]
    ) -> None:
        # Without a folder for what has no room in memory: the disk on which that would be is no place of its users.
        self._con = duckdb.connect(
            ":memory:",
            config={
                "enable_external_access": False, "autoinstall_known_extensions": False,
                "autoload_known_extensions": False, "allow_community_extensions": False,
                "python_enable_replacements": False, "threads": 1, "memory_limit": "512MB", "temp_directory": "",
            },
        )  # fmt: skip
        self._alone = threading.Lock()
        self.at_once = plans_once(self._con)
        """How it is asked (`sdcduck.guard.running.begun`)."""
        self.schema = {
            **{name: relation.columns for name, relation in PG_RELATIONS.items()},
            **{name: relation.columns for name, relation in INFORMATION_RELATIONS.items()},
        }
        self._create()
        for name, rows in _rows(relations, database, users).items():
            self._fill(name, rows)
        self._con.execute("SET lock_configuration = true")

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own to the catalog, which can only read: what one user changed, others would be told."""
        with self._alone:
            cursor = self._con.cursor()
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        return cursor

    def close(self) -> None:
        """Give back its memory."""
        self._con.close()

    def _create(self) -> None:
        for schema, relations in (("pg", PG_RELATIONS), ("inf", INFORMATION_RELATIONS)):
            self._con.execute(f"CREATE SCHEMA {schema}")
            for relation in relations.values():
                columns = ", ".join(f"{identifier(name)} {kind}" for name, kind in relation.columns.items())
                self._con.execute(f"CREATE TABLE {schema}.{relation.name} ({columns})")
        self._con.execute("CREATE SCHEMA pgf")
        self._con.execute("CREATE TABLE pgf.type_names (oid UINTEGER, name VARCHAR)")
        names = [(kind.oid, shown(kind)) for kind in _all_types()]
        self._con.execute("INSERT INTO pgf.type_names VALUES " + ", ".join(f"({o}, {literal(n)})" for o, n in names))
        for statement in FUNCTIONS:
            self._con.execute(statement)

    def _fill(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        schema, _, table = name.partition(".")
        relation = (PG_RELATIONS if schema == "pg" else INFORMATION_RELATIONS)[table]
        if not rows:
            return
        # An array of Arrow made of Python's values would load pandas, where that is installed.
        columns = [f"unnest(?::{kind}[])" for kind in relation.columns.values()]
        values = [[row.get(column, _EMPTY.get(kind)) for row in rows] for column, kind in relation.columns.items()]
        self._con.execute(f"INSERT INTO {name} SELECT {', '.join(columns)}", values)


_EMPTY: Mapping[str, Any] = {"UINTEGER": 0, "SMALLINT": 0, "INTEGER": 0, "BIGINT": 0, "BOOLEAN": False, "FLOAT": 0.0}


def _all_types() -> list[Type]:
    return [*BASE_TYPES, *(array_of(kind) for kind in BASE_TYPES if kind.array)]


def shown(kind: Type) -> str:
    """The name of a type as SQL has it."""
    if kind.element is not None:
        return shown(kind.element) + "[]"
    return _NAMES.get(kind.name, kind.name)


def _rows(
    relations: Sequence[tuple[Policy, Mapping[str, str]]], database: str, users: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """The rows of every relation that has any."""
    rows: dict[str, list[dict[str, Any]]] = {
        "pg.pg_namespace": [
            {"oid": oid, "nspname": name, "nspowner": _OWNER}
            for oid, name in ((_CATALOG, "pg_catalog"), (_SQL_SCHEMA, "information_schema"), (_PUBLIC, "public"))
        ],
        "pg.pg_database": [
            {"oid": _DATABASE, "datname": database, "datdba": _OWNER, "encoding": 6, "datlocprovider": "c",
             "datallowconn": True, "datconnlimit": -1, "dattablespace": 1663, "datcollate": "C", "datctype": "C"}
        ],
        "pg.pg_tablespace": [{"oid": 1663, "spcname": "pg_default", "spcowner": _OWNER}],
        "pg.pg_am": [{"oid": 2, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}],
        "pg.pg_language": [{"oid": 14, "lanname": "sql", "lanowner": _OWNER, "lanpltrusted": True}],
        "pg.pg_collation": [
            {"oid": 100, "collname": "default", "collnamespace": _CATALOG, "collowner": _OWNER, "collprovider": "d",
             "collisdeterministic": True, "collencoding": -1}
        ],
        "pg.pg_type": [_type_row(kind) for kind in _all_types()],
        "pg.pg_settings": [
            {"name": name, "setting": value, "category": "sdcduck", "context": "user", "vartype": "string",
             "source": "default", "boot_val": value, "reset_val": value}
            for name, value in Settings("").all()
        ],
        "inf.information_schema_catalog_name": [{"catalog_name": database}],
        "inf.schemata": [
            {"catalog_name": database, "schema_name": name, "schema_owner": "custodian"}
            for name in ("pg_catalog", "information_schema", "public")
        ],
        "inf.character_sets": [
            {"character_set_name": "UTF8", "character_repertoire": "UCS", "form_of_use": "UTF8",
             "default_collate_catalog": database, "default_collate_schema": "pg_catalog",
             "default_collate_name": "default"}
        ],
    }  # fmt: skip
    roles = [(_OWNER, "custodian", False), *((_OWNER + 1 + place, name, True) for place, name in enumerate(users))]
    rows["pg.pg_roles"] = [
        {"oid": oid, "rolname": name, "rolinherit": True, "rolcanlogin": login, "rolconnlimit": -1}
        for oid, name, login in roles
    ]
    rows["pg.pg_user"] = [{"usesysid": oid, "usename": name} for oid, name, login in roles if login]
    rows["inf.enabled_roles"] = [{"role_name": name} for _, name, login in roles if login]
    for table in (PG_RELATIONS, INFORMATION_RELATIONS):
        space = _CATALOG if table is PG_RELATIONS else _SQL_SCHEMA
        rows.setdefault("pg.pg_class", []).extend(
            _class_row(relation.oid or 13_000 + place, relation.name, space, relation.kind, len(relation.columns))
            for place, relation in enumerate(table.values(), 1 if space == _CATALOG else 200)
        )
    for place, (policy, columns) in enumerate(relations):
        _add(rows, _FIRST_RELATION + 2 * place, policy, columns, database)
    return rows


def _type_row(kind: Type) -> dict[str, Any]:
    return {
        "oid": kind.oid, "typname": kind.name, "typnamespace": _CATALOG, "typowner": _OWNER, "typlen": kind.size,
        "typbyval": 0 < kind.size <= 8, "typtype": "p" if kind.name == "unknown" else "b",
        "typcategory": kind.category, "typisdefined": True, "typdelim": ",", "typarray": kind.array,
        "typelem": kind.element.oid if kind.element is not None else 0, "typtypmod": -1,
        "typinput": _function_of(kind, "in"),
        "typoutput": _function_of(kind, "out"),
        "typreceive": _function_of(kind, "recv"),
        "typsend": _function_of(kind, "send"),
        "typsubscript": "array_subscript_handler" if kind.element is not None else "-",
        "typcollation": 100 if kind.category == "S" else 0,
        "typmodin": "-", "typmodout": "-", "typanalyze": "-", "typalign": "i", "typstorage": "p",
    }  # fmt: skip


_WITH_UNDERSCORE = frozenset(["json", "date", "time", "timestamp", "timestamptz", "interval", "numeric", "uuid"])


def _function_of(kind: Type, what: str) -> str:
    """The function that reads or writes values: some drivers (ADBC) know types by its name."""
    if kind.element is not None:
        return f"array_{what}"
    return f"{kind.name}_{what}" if kind.name in _WITH_UNDERSCORE else f"{kind.name}{what}"


def _class_row(oid: int, name: str, space: int, kind: str, columns: int) -> dict[str, Any]:
    return {
        "oid": oid, "relname": name, "relnamespace": space, "relowner": _OWNER, "relam": 2 if kind == "r" else 0,
        "reltuples": -1.0, "relpersistence": "p", "relkind": kind, "relnatts": columns, "relispopulated": True,
        "relreplident": "d", "reltype": oid + 1 if space == _PUBLIC else 0, "relfilenode": 0,
    }  # fmt: skip


def _add(
    rows: dict[str, list[dict[str, Any]]], oid: int, policy: Policy, columns: Mapping[str, str], database: str
) -> None:
    """What the catalog has of one relation."""

    def add(table: str, **row: Any) -> None:
        rows.setdefault(table, []).append(row)

    where = {"table_catalog": database, "table_schema": "public", "table_name": policy.name}
    rows["pg.pg_class"].append(_class_row(oid, policy.name, _PUBLIC, "r", len(columns)))
    add("pg.pg_type", oid=oid + 1, typname=policy.name, typnamespace=_PUBLIC, typowner=_OWNER, typlen=-1, typtype="c",
        typcategory="C", typisdefined=True, typdelim=",", typrelid=oid, typtypmod=-1, typinput="record_in")  # fmt: skip
    add("pg.pg_tables", schemaname="public", tablename=policy.name, tableowner="custodian")
    add("pg.pg_description", objoid=oid, classoid=_CLASS, objsubid=0, description=about(policy))
    for table in ("pg.pg_stat_user_tables", "pg.pg_statio_all_tables", "pg.pg_statio_user_tables"):
        add(table, relid=oid, schemaname="public", relname=policy.name)
    add("inf.tables", **where, table_type="BASE TABLE", is_insertable_into="NO", is_typed="NO")
    for table in ("inf.table_privileges", "inf.role_table_grants"):
        add(table, **where, grantor="custodian", grantee="PUBLIC", privilege_type="SELECT", is_grantable="NO",
            with_hierarchy="NO")  # fmt: skip
    for number, (name, sql_type) in enumerate(columns.items(), 1):
        kind = type_of(sql_type)
        add("pg.pg_attribute", attrelid=oid, attname=name, atttypid=kind.oid, attstattarget=-1, attlen=kind.size,
            attnum=number, attndims=int(kind.element is not None), atttypmod=kind.modifier, attbyval=0 < kind.size <= 8,
            attalign="i", attstorage="p", attcompression="", attidentity="", attgenerated="", attislocal=True,
            attcollation=100 if kind.category == "S" else 0)  # fmt: skip
        add("pg.pg_description", objoid=oid, classoid=_CLASS, objsubid=number, description=use_of(policy, name))
        precise = kind.name == "numeric" and kind.modifier >= 0
        add("inf.columns", **where, column_name=name, ordinal_position=number, is_nullable="YES",
            data_type="ARRAY" if kind.element is not None else shown(kind), udt_catalog=database,
            udt_schema="pg_catalog", udt_name=kind.name, dtd_identifier=str(number), is_identity="NO",
            is_generated="NEVER", is_updatable="NO", is_self_referencing="NO",
            numeric_precision=(kind.modifier - 4) >> 16 if precise else _PRECISION.get(kind.name),
            numeric_scale=(kind.modifier - 4) & 0xFFFF if precise else 0 if kind.name in _PRECISION else None,
            numeric_precision_radix=10 if precise else 2 if kind.name in _PRECISION else None,
            character_maximum_length=None, datetime_precision=6 if kind.category == "D" else None)  # fmt: skip


_PRECISION = {"int2": 16, "int4": 32, "int8": 64, "float4": 24, "float8": 53}
