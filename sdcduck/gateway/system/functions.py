"""The functions of PostgreSQL that programs call when they ask the database about itself, as macros."""

from __future__ import annotations

import re

_ALWAYS = {
    "true": "pg_type_is_visible(a) pg_function_is_visible(a) pg_operator_is_visible(a) "
            "pg_collation_is_visible(a) pg_opclass_is_visible(a) pg_statistics_obj_is_visible(a) "
            "pg_conversion_is_visible(a) pg_ts_config_is_visible(a) pg_ts_dict_is_visible(a) "
            "pg_ts_parser_is_visible(a) pg_ts_template_is_visible(a) pg_opfamily_is_visible(a) pg_has_role(a,b) "
              "pg_has_role(a,b,c)",
    "false": "pg_is_in_recovery() pg_is_other_temp_schema(a) pg_relation_is_publishable(a) pg_try_advisory_lock(a) "
             "pg_advisory_unlock(a) row_security_active(a) pg_is_wal_replay_paused()",
    "NULL::VARCHAR": "pg_get_expr(a,b) pg_get_expr(a,b,c) pg_get_indexdef(a) pg_get_indexdef(a,b,c) "
                     "pg_get_constraintdef(a) pg_get_constraintdef(a,b) pg_get_viewdef(a) pg_get_viewdef(a,b) "
                     "pg_get_partkeydef(a) pg_get_ruledef(a) pg_get_ruledef(a,b) pg_get_triggerdef(a) "
                     "pg_get_triggerdef(a,b) pg_get_functiondef(a) pg_get_function_result(a) "
                     "pg_get_function_arguments(a) pg_get_function_identity_arguments(a) pg_get_function_sqlbody(a) "
                     "pg_get_serial_sequence(a,b) pg_get_statisticsobjdef_columns(a) pg_get_statisticsobjdef(a) "
                     "shobj_description(a,b) pg_tablespace_location(a) inet_server_addr() inet_client_addr() "
                     "pg_advisory_unlock_all() pg_collation_for(a) pg_filenode_relation(a,b) pg_relation_filepath(a) "
                     "pg_export_snapshot() pg_last_wal_receive_lsn() pg_describe_object(a,b,c) "
                     "pg_get_partition_constraintdef(a)",
    "0::BIGINT": "pg_relation_size(a) pg_relation_size(a,b) pg_total_relation_size(a) pg_table_size(a) "
                 "pg_indexes_size(a) pg_database_size(a) pg_tablespace_size(a) pg_my_temp_schema() txid_current() "
                 "pg_current_xact_id() pg_stat_get_numscans(a) pg_stat_get_live_tuples(a) inet_server_port() "
                 "inet_client_port() pg_sequence_last_value(a) pg_stat_get_tuples_returned(a)",
    "'UTF8'": "pg_encoding_to_char(a) pg_client_encoding() getdatabaseencoding()",
    "6": "pg_char_to_encoding(a)",
    "[]::VARCHAR[]": "pg_partition_ancestors(a) pg_blocking_pids(a) acldefault(a,b)",
}  # fmt: skip


def _found(what: str, table: str) -> str:
    """The beginning of a question for one value, by the number of a thing.

    What the functions are called with may have the name of a column: ``format_type(oid, NULL)``. So ours have others.
    """
    return f"(SELECT _found FROM (SELECT oid AS _number, {what} AS _found FROM {table}) WHERE _number"


_OTHERS = {
    "has_table_privilege": (("a,b", "lower(b::VARCHAR) = 'select'"), ("a,b,c", "lower(c::VARCHAR) = 'select'")),
    "has_column_privilege": (("a,b,c", "lower(c::VARCHAR) = 'select'"), ("a,b,c,d", "lower(d::VARCHAR) = 'select'")),
    "has_any_column_privilege": (("a,b", "lower(b::VARCHAR) = 'select'"), ("a,b,c", "lower(c::VARCHAR) = 'select'")),
    "has_schema_privilege": (("a,b", "lower(b::VARCHAR) = 'usage'"), ("a,b,c", "lower(c::VARCHAR) = 'usage'")),
    "has_database_privilege": (("a,b", "lower(b::VARCHAR) = 'connect'"), ("a,b,c", "lower(c::VARCHAR) = 'connect'")),
    "has_function_privilege": (("a,b", "true"), ("a,b,c", "true")),
    "has_sequence_privilege": (("a,b", "false"), ("a,b,c", "false")),
    "has_type_privilege": (("a,b", "true"), ("a,b,c", "true")),
    "has_language_privilege": (("a,b", "false"), ("a,b,c", "false")),
    "has_server_privilege": (("a,b", "false"), ("a,b,c", "false")),
    "has_tablespace_privilege": (("a,b", "false"), ("a,b,c", "false")),
    "pg_table_is_visible": (("a", "a::BIGINT NOT BETWEEN 13000 AND 13999"),),
    "pg_get_userbyid": (("a", f"coalesce({_found('rolname', 'pg.pg_roles')} = a), 'unknown')"),),
    "format_type": (
        (
            "kind,modifier",
            "CASE WHEN kind IS NULL THEN NULL WHEN kind = 1700 AND modifier >= 4 THEN 'numeric(' || "
            "((modifier::BIGINT - 4) >> 16) || ',' || ((modifier::BIGINT - 4) & 65535) || ')' "
            f"ELSE coalesce({_found('name', 'pgf.type_names')} = kind), "
            f"{_found('typname', 'pg.pg_type')} = kind), '???') END",
        ),
    ),
    "obj_description": (
        ("a", "(SELECT description FROM pg.pg_description WHERE objoid = a AND objsubid = 0)"),
        (
            "a,b",
            "(SELECT description FROM pg.pg_description WHERE objoid = a AND objsubid = 0 AND b = 'pg_class')",
        ),
    ),
    "col_description": (
        ("a,b", "(SELECT description FROM pg.pg_description WHERE objoid = a AND objsubid = b AND b > 0)"),
    ),
    "to_regclass": (
        (
            "a",
            "(SELECT min(oid) FROM pg.pg_class WHERE relname = "
            "replace(regexp_replace(a::VARCHAR, '^.*\\.', ''), '\"', '') OR oid = TRY_CAST(a AS UINTEGER))",
        ),
    ),
    "to_regtype": (
        (
            "a",
            "coalesce((SELECT min(oid) FROM pgf.type_names WHERE name = lower(regexp_replace(a::VARCHAR, "
            "'^pg_catalog\\.', ''))), (SELECT min(oid) FROM pg.pg_type WHERE typname = "
            "replace(lower(regexp_replace(a::VARCHAR, '^.*\\.', '')), '\"', '')), TRY_CAST(a AS UINTEGER))",
        ),
    ),
    "to_regnamespace": (("a", "(SELECT min(oid) FROM pg.pg_namespace WHERE nspname = replace(a, '\"', ''))"),),
    "regclass_name": (("a", f"coalesce({_found('relname', 'pg.pg_class')} = a), a::VARCHAR)"),),
    "regnamespace_name": (("a", f"coalesce({_found('nspname', 'pg.pg_namespace')} = a), a::VARCHAR)"),),
    "quote_ident": (
        (
            "a",
            "CASE WHEN regexp_full_match(a, '[a-z_][a-z0-9_$]*') THEN a "
            "ELSE '\"' || replace(a, '\"', '\"\"') || '\"' END",
        ),
    ),
    "quote_literal": (("a", "'''' || replace(a::VARCHAR, '''', '''''') || ''''"),),
    "setting_of": (("a", "(SELECT setting FROM pg.pg_settings WHERE name = lower(a))"),),
    "pg_size_pretty": (("a", "a::VARCHAR || ' bytes'"),),
    "pg_postmaster_start_time": (("", "'2000-01-01 00:00:00+00'::TIMESTAMPTZ"),),
    "pg_conf_load_time": (("", "'2000-01-01 00:00:00+00'::TIMESTAMPTZ"),),
    "_pg_expandarray": (("a", "{'x': NULL::INTEGER, 'n': NULL::INTEGER}"),),
    "_pg_char_max_length": (("a,b", "NULL::INTEGER"),),
    "_pg_numeric_precision": (("a,b", "NULL::INTEGER"),),
    "array_upper": (("a,b", "len(a)"),),
    "array_lower": (("a,b", "CASE WHEN len(a) > 0 THEN 1 END"),),
    "array_ndims": (("a", "1"),),
    "array_remove": (("a,b", "list_filter(a, lambda _one: _one IS DISTINCT FROM b)"),),
    "to_regproc": (("a", "(SELECT min(oid) FROM pg.pg_proc WHERE proname = a)"),),
    "parse_ident": (("a", "string_split(replace(a, '\"', ''), '.')"),),
    "cardinality_of": (("a", "len(a)"),),
    "aclexplode_of": (("a", "NULL"),),
}


def _macros() -> tuple[dict[str, list[tuple[str, str]]], tuple[str, ...]]:
    forms: dict[str, list[tuple[str, str]]] = {name: list(found) for name, found in _OTHERS.items()}
    for value, calls in _ALWAYS.items():
        for name, arguments in re.findall(r"(\w+)\(([\w,]*)\)", calls):
            forms.setdefault(name, []).append((arguments, value))
    statements = tuple(
        f"CREATE MACRO pgf.{name}" + ", ".join(f"({arguments}) AS ({body})" for arguments, body in found)
        for name, found in forms.items()
    )
    return forms, statements


_FORMS, _STATEMENTS = _macros()

TABLE_FUNCTIONS = {
    "pg_options_to_table": "SELECT NULL::VARCHAR AS option_name, NULL::VARCHAR AS option_value WHERE false",
    "aclexplode": "SELECT NULL::UINTEGER AS grantor, NULL::UINTEGER AS grantee, NULL::VARCHAR AS privilege_type, "
    "NULL::BOOLEAN AS is_grantable WHERE false",
    "pg_get_publication_tables": "SELECT NULL::UINTEGER AS relid WHERE false",
    "pg_get_keywords": "SELECT keyword_name AS word, upper(left(keyword_category, 1)) AS catcode, "
    "replace(keyword_category, '_', ' ') AS catdesc FROM duckdb_keywords()",
    "pg_show_all_settings": "SELECT * FROM pg.pg_settings",
    "pg_partition_tree": "SELECT NULL::UINTEGER AS relid, NULL::UINTEGER AS parentrelid, false AS isleaf, 0 AS level "
    "WHERE false",
}
"""Functions that stand after FROM; what they are called with changes nothing here."""

NAMES = frozenset(_FORMS)
"""The functions of single values that there are, without those of DuckDB."""

FUNCTIONS = (
    *_STATEMENTS,
    *(f"CREATE MACRO pgf.{name}() AS TABLE {body}" for name, body in TABLE_FUNCTIONS.items()),
)
"""The statements that create them."""
