"""What may occur in a query, as DuckDB's own parser reads it: lists of what is allowed; all else is refused.

sqlglot reads and rewrites the analyst's text. DuckDB's parser reads both that text and what the guard made of it, and
has the last word on what functions and table references are in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb

from sdcduck.guard.refusals import Refused


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


UNIT_FUNCTIONS = _words(
    "+ - * / // % || ~~ !~~ ~~* !~~* ~~~ like_escape not_like_escape ilike_escape not_ilike_escape abs "
    "ceil ceiling floor round trunc sign greatest least if nullif lower upper lcase ucase substr "
    "substring left right length len strlen char_length trim ltrim rtrim concat starts_with prefix suffix "
    "contains replace reverse date_trunc date_part datepart datetrunc year month day hour minute quarter "
    "week weekday dayofweek dayofmonth dayofyear isodow weekofyear yearweek decade century last_day "
    "monthname dayname date_diff datediff strftime make_date to_days to_weeks to_months to_years to_hours "
    "to_minutes to_seconds time_bucket"
)
"""Scalar functions over single records: total (with TRY around them), cheap, deterministic."""

_AGGREGATES = _words(
    "count count_star count_if countif sum avg mean min max median stddev stddev_samp stddev_pop var_samp "
    "var_pop variance quantile quantile_cont quantile_disc mode first last any_value arg_max arg_min "
    "max_by min_by string_agg listagg list array_agg bool_and bool_or corr covar_pop covar_samp "
    "regr_slope regr_intercept regr_r2 product skewness kurtosis approx_count_distinct fsum sumkahan "
    "kahan_sum favg grouping grouping_id"
)
_WINDOWS = _words(
    "row_number rank dense_rank rank_dense percent_rank cume_dist ntile lag lead first_value last_value nth_value"
)
_SCALARS = _words(
    "pow power ** ^ sqrt cbrt exp ln log log2 log10 mod fmod even sin cos tan asin acos atan atan2 pi "
    "radians degrees to_days to_months to_years to_hours to_minutes to_seconds to_weeks date_add date_sub "
    "age isnan isinf isfinite instr position strpos split_part string_split chr ascii unicode list_value "
    "struct_pack regexp_matches regexp_replace regexp_extract coalesce ifnull row constant_or_null today "
    "current_date get_current_time epoch to_timestamp make_timestamp strptime try_strptime date_bin "
    "time_bucket @ & | xor << >> ~ list_extract array_extract list_contains list_position"
)
FUNCTIONS = UNIT_FUNCTIONS | _AGGREGATES | _WINDOWS | _SCALARS
"""Functions in the rest of a query, over numbers that are released and tables that are public."""

MACROS = _words(
    "sdc_count sdc_count_units sdc_variance sdc_quantile sdc_open_count sdc_open_sum typeof _sdc_default_sum "
    "_sdc_clipped _sdc_contribution _sdc_contributors_key_sum _sdc_published_rows _sdc_noise_of_rows _sdc_exact_sum "
    "_sdc_exact_squares _sdc_variance_of_units _sdc_bins _sdc_quantile_of_units _sdc_ptable_most"
)
"""What the guard itself puts into a query; analysts cannot."""

_CLASSES = _words(
    "COLUMN_REF CONSTANT FUNCTION COMPARISON CONJUNCTION CASE CAST OPERATOR BETWEEN WINDOW SUBQUERY STAR "
    "PARAMETER TYPE POSITIONAL_REFERENCE COLLATE"
)
_UNIT_CLASSES = _words("COLUMN_REF CONSTANT FUNCTION COMPARISON CONJUNCTION CASE CAST OPERATOR BETWEEN PARAMETER TYPE")
_SHAPES = _words(
    "SELECT_NODE SET_OPERATION_NODE CTE_NODE BASE_TABLE SUBQUERY JOIN EMPTY EMPTY_FROM EXPRESSION_LIST "
    "ORDER_MODIFIER LIMIT_MODIFIER DISTINCT_MODIFIER LIMIT_PERCENT_MODIFIER ASCENDING DESCENDING "
    "ORDER_DEFAULT DEFAULT"
)
_JOINS = frozenset(["REGULAR", "CROSS", "NATURAL"])


def check_syntax(con: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuse what DuckDB's parser does not read: it answers soon, where sqlglot's tries some wrong texts for ever."""
    try:
        con.extract_statements(sql)
    except duckdb.Error:
        raise Refused("SDC001") from None


def check_query(
    con: duckdb.DuckDBPyConnection, sql: str, *, macros: frozenset[str] = frozenset(), pivots: bool = False
) -> None:
    """Refuse a query in which DuckDB's parser finds anything that is on no list.

    Args:
        macros: functions that the guard itself put into the query.
        pivots: whether there may be PIVOT and UNPIVOT; they do not stay.
    """
    _check_tree(_trees(con, sql)[0], macros, pivots=pivots)


def check_rewritten(
    con: duckdb.DuckDBPyConnection, sql: str, expressions: Sequence[str], *, macros: frozenset[str]
) -> None:
    """As `check_query`; and refuse expressions over single records with anything but what is on the shorter list."""
    listed = ", ".join(f"({expression})" for expression in expressions)
    final, *over_records = _trees(con, sql, *([f"SELECT {listed}"] if expressions else []))
    for item in _items(over_records):
        if item.get("class") is not None and item["class"] not in _UNIT_CLASSES:
            raise Refused("SDC010" if item["class"] == "WINDOW" else "SDC005", str(item["class"]).lower())
        if item.get("class") == "FUNCTION":
            _check_function(item, UNIT_FUNCTIONS)
    _check_tree(final, macros)


def _check_tree(tree: dict[str, Any], macros: frozenset[str], *, pivots: bool = False) -> None:
    for item in _items(tree):
        if not pivots or item.get("type") != "PIVOT":
            _check_shape(item)
        if item.get("class") is not None and item["class"] not in _CLASSES:
            raise Refused("SDC005", str(item["class"]).lower().replace("_", " "))
        if item.get("class") == "FUNCTION":
            _check_function(item, FUNCTIONS | macros)


def _check_shape(item: dict[str, Any]) -> None:
    kind = item.get("type")
    if isinstance(kind, str) and "class" not in item and kind not in _SHAPES and not kind.endswith("_TYPE_INFO"):
        raise Refused("SDC021" if kind == "TABLE_FUNCTION" else "SDC005", kind.lower().replace("_", " "))
    if kind == "JOIN" and "class" not in item and item.get("ref_type") not in _JOINS:
        raise Refused("SDC005", f"{str(item.get('ref_type')).lower()} join")
    if item.get("sample"):
        raise Refused("SDC005", "sample")


def _check_function(item: dict[str, Any], known: frozenset[str]) -> None:
    name = str(item["function_name"]).lower()
    if name not in known or item.get("schema") not in (None, "", "main", "pg_catalog") or item.get("catalog"):
        raise Refused("SDC010", name)


def _trees(con: duckdb.DuckDBPyConnection, *queries: str) -> list[dict[str, Any]]:
    """What DuckDB's parser makes of queries: one question, as each takes its time."""
    try:
        row = con.execute(f"SELECT {', '.join(['json_serialize_sql(?)'] * len(queries))}", list(queries)).fetchall()[0]
    except duckdb.Error:
        raise Refused("SDC001") from None
    trees: list[dict[str, Any]] = [json.loads(text) for text in row]
    for tree in trees:
        if tree.get("error"):
            raise Refused("SDC004" if "SELECT" in str(tree.get("error_message")) else "SDC001")
        if len(tree["statements"]) != 1:
            raise Refused("SDC003")
    return trees


def _items(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
