"""What may occur in a query, as DuckDB's own parser reads it: lists of what is allowed; all else is refused.

sqlglot reads and rewrites the analyst's text. DuckDB's parser reads both that text and what the guard made of it, and
has the last word on what functions and table references are in them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from sdcduck.guard.calls import OF_NUMBERS, is_plain
from sdcduck.guard.own_names import TableName, unknown_tables
from sdcduck.guard.refusals import Refused
from sdcduck.guard.running import in_memory
from sdcduck.guard.written import Written
from sdcduck.quoting import folded


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


UNIT_FUNCTIONS = _words(
    "+ - * / // % || ~~ !~~ ~~* !~~* ~~~ like_escape not_like_escape ilike_escape not_ilike_escape abs "
    "ceil ceiling floor round trunc sign greatest least if nullif lower upper lcase ucase substr "
    "substring left right length len strlen char_length trim ltrim rtrim concat starts_with prefix suffix "
    "contains replace reverse date_trunc date_part datepart datetrunc year month day hour minute quarter "
    "week weekday dayofweek dayofmonth dayofyear isodow isoyear weekofyear yearweek decade century last_day "
    "monthname dayname date_diff datediff date_sub datesub strftime make_date to_days to_weeks to_months "
    "to_years to_hours to_minutes to_seconds time_bucket"
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
    "row_number rank dense_rank rank_dense percent_rank cume_dist ntile lag lead first_value last_value nth_value fill"
)
_SCALARS = _words(
    "pow power ** ^ sqrt cbrt exp ln log log2 log10 mod fmod even sin cos tan asin acos atan atan2 pi "
    "radians degrees to_days to_months to_years to_hours to_minutes to_seconds to_weeks date_add "
    "age isnan isinf isfinite instr position strpos split_part string_split chr ascii unicode list_value "
    "struct_pack regexp_matches regexp_replace regexp_extract coalesce ifnull row constant_or_null today "
    "current_date get_current_time epoch to_timestamp make_timestamp strptime try_strptime date_bin "
    "time_bucket @ & | xor << >> ~ list_extract array_extract list_contains array_contains list_has array_has "
    "list_position list_slice array_slice list_sort array_sort list_reverse_sort list_distinct array_distinct "
    "list_unique array_reverse_sort list_sum list_avg list_min list_max array_length array_to_string str_split split "
    "string_to_array unnest struct_extract "
    "map map_from_entries map_entries map_keys map_values map_extract map_extract_value element_at cardinality md5"
)
FUNCTIONS = UNIT_FUNCTIONS | _AGGREGATES | _WINDOWS | _SCALARS
"""Functions in the rest of a query, over numbers that are released and tables that are public."""

MACROS = OF_NUMBERS | _words(
    "sdc_count_units sdc_quantile sdc_open_count sdc_open_sum _sdc_own_variance _sdc_contribution _sdc_published_rows "
    "_sdc_group_key _sdc_grid_sum _sdc_exact_sum _sdc_exact_squares _sdc_variance_of_units _sdc_bins "
    "_sdc_quantile_of_units _sdc_sum_in_any_order _sdc_try _sdc_unit_number"
)
"""What the guard itself puts into a query; analysts cannot."""

_OF_WITH = _words("_sdc_sum_in_any_order _sdc_try")
"""Those of them that stand outside of blocks: in a WITH of records."""

TYPES = _words("bignum guid integral oid timestamptz_ns tuple uint8 uint16 uint32 uint64 varint")
"""Types of DuckDB that sqlglot does not know by these names."""

WORDS_OF_TIME = _words("current_date current_time current_timestamp localtime localtimestamp")
"""What DuckDB takes for functions where no column is called so."""

_INSTEAD = {
    "age": "date_sub('year', from, to) for whole years",
    "array_contains": "x IN ['a', 'b']",
    "epoch": "date_part('epoch', x)",
    "format": "text || n || text, with round(n, 1)",
    "histogram": "GROUP BY x // 10 * 10",
    "like_with_a_list": "a LIKE 'x%' OR a LIKE 'y%'",
    "now": "current_date or current_timestamp",
    "printf": "text || n || text, with round(n, 1)",
    "regexp_full_match": "LIKE",
    "regexp_matches": "LIKE, starts_with or contains",
    "to_char": "strftime(x, '%Y-%m'); PostgreSQL clients may write to_char(x, 'YYYY-MM'), but not all patterns",
    "to_date": "DATE '2024-05-31'; PostgreSQL clients may write to_date('2024-05-31', 'YYYY-MM-DD')",
    "to_number": "CAST(x AS DOUBLE)",
    "to_timestamp_by_template": "TIMESTAMP '2024-05-31 13:30:00', or a text that is written as its template says, "
    "with YYYY MM DD HH24 MI SS MS US, or HH12 and AM",
}
"""What to write in place of functions that are asked for often, where there is something."""

_CLASSES = _words(
    "COLUMN_REF CONSTANT FUNCTION COMPARISON CONJUNCTION CASE CAST OPERATOR BETWEEN WINDOW SUBQUERY STAR "
    "PARAMETER TYPE POSITIONAL_REFERENCE COLLATE"
)
_UNIT_CLASSES = _words("COLUMN_REF CONSTANT FUNCTION COMPARISON CONJUNCTION CASE CAST OPERATOR BETWEEN PARAMETER TYPE")
_SHAPES = _words(
    "SELECT_NODE SET_OPERATION_NODE CTE_NODE BASE_TABLE SUBQUERY EMPTY EMPTY_FROM EXPRESSION_LIST "
    "ORDER_MODIFIER LIMIT_MODIFIER DISTINCT_MODIFIER LIMIT_PERCENT_MODIFIER ASCENDING DESCENDING "
    "ORDER_DEFAULT DEFAULT"
)
_FORMS = {"RECURSIVE_CTE_NODE": "WITH RECURSIVE"}
_JOINS = frozenset(["REGULAR", "CROSS", "NATURAL"])


@dataclass(frozen=True)
class Reading:
    """What DuckDB's parser makes of a text.

    Attributes:
        items: every object in its tree, the outer ones before those within.
        statements: how many.
        problem: why it cannot be shown as a tree, if that is no error of syntax: it is no query.
    """

    items: list[dict[str, Any]]
    statements: int
    problem: str = ""

    def parameters(self) -> list[str]:
        """The names or numbers of parameters, one after the other."""
        return [str(item.get("identifier")) for item in self.items if item.get("class") == "PARAMETER"]


def read(con: duckdb.DuckDBPyConnection, sql: str) -> Reading:
    """Refuse what DuckDB's parser does not read: it answers soon, where sqlglot's tries some wrong texts for ever."""
    return _readings(con, sql)[0]


def check_query(reading: Reading, *, macros: frozenset[str] = frozenset(), pivots: bool = False) -> None:
    """Refuse a query in which DuckDB's parser finds anything that is on no list.

    Args:
        macros: functions that the guard itself put into the query.
        pivots: whether there may be PIVOT and UNPIVOT; they do not stay.
    """
    if reading.problem:
        raise Refused("SDC004" if "SELECT" in reading.problem else "SDC001")
    if reading.statements != 1:
        raise Refused("SDC003")
    _check_items(reading.items, FUNCTIONS | macros, pivots=pivots)


def check_rewritten(
    con: duckdb.DuckDBPyConnection, text: Written, *, over_records: Sequence[str], over_numbers: Sequence[str],
    tables: Collection[TableName],
) -> frozenset[str]:  # fmt: skip
    """As `check_query`, of all parts of a text; expressions in it may hold only what is on a shorter list.

    In those over records every column is written in full. A name alone is one that sqlglot took for something else, and
    nobody asked what the column is good for.

    Args:
        over_records: expressions over single records, which may call `UNIT_FUNCTIONS`.
        over_numbers: expressions over what was called in a block, which may call `MACROS`, too. Those without anything
            of an analyst come again and again: they are read once.
        tables: that may be read.

    Returns:
        The words of time in expressions over records, which must not be the name of a column.
    """
    # One text for all of a kind: their order and number are nothing that is asked here.
    records, numbers = list(dict.fromkeys(over_records)), [one for one in over_numbers if one not in _READ]
    # Each ends on a line of its own: a comment in one would hide what comes after it.
    lists = ["SELECT (" + "\n), (".join(listed) + "\n)" for listed in (records, numbers) if listed]
    outer, *readings = _readings(con, text.outer, *text.grouped, *lists)
    if numbers:
        _check_expressions(readings.pop(), len(numbers), FUNCTIONS | MACROS)
        if len(_READ) > _MOST_READ:
            _READ.clear()
        _READ.update(filter(is_plain, numbers))
    alone = _names_alone(_check_expressions(readings.pop(), len(records), UNIT_FUNCTIONS)) if records else frozenset()
    if not alone <= WORDS_OF_TIME:
        raise Refused("SDC005", "text that reads in two ways")
    for reading, macros in [(outer, _OF_WITH), *((reading, MACROS) for reading in readings)]:
        check_query(reading, macros=macros)
        if unknown_tables(reading.items, tables):
            raise Refused("SDC005", "text that reads in two ways")
    return alone


_MOST_READ = 10_000
_READ: set[str] = set()


def _names_alone(items: list[dict[str, Any]]) -> frozenset[str]:
    """The names of columns without the name of a table."""
    columns = (item["column_names"] for item in items if item.get("class") == "COLUMN_REF")
    return frozenset(folded(str(names[0])) for names in columns if len(names) < 2)


def _check_expressions(reading: Reading, number: int, known: frozenset[str]) -> list[dict[str, Any]]:
    """Refuse a list of so many expressions that is anything else; what is in it."""
    if reading.statements != 1 or _listed(reading) != number:
        raise Refused("SDC005", "text that reads in two ways")
    for item in reading.items:
        kind = item.get("class")
        if kind is not None and kind not in _UNIT_CLASSES:
            raise Refused("SDC010" if kind == "WINDOW" else "SDC005", folded(str(kind)))
        if kind == "FUNCTION":
            _check_function(item, known)
    return reading.items


_CLAUSES = ("modifiers", "where_clause", "group_expressions", "group_sets", "having", "sample", "qualify")


def _listed(reading: Reading) -> int:
    """How many expressions a text selects of nothing; 0 where it is anything else."""
    node, *others = [item for item in reading.items if str(item.get("type")).endswith("_NODE")] or [{}]
    if others or any(node.get(clause, True) for clause in _CLAUSES) or node["from_table"].get("type") != "EMPTY":
        return 0
    return len(node["select_list"])


def _check_items(items: list[dict[str, Any]], known: frozenset[str], *, pivots: bool) -> None:
    for item in items:
        kind = item.get("class")
        if item.get("sample"):
            raise Refused("SDC005", "sample")
        if item.get("at_clause"):
            raise Refused("SDC005", "a table as it was at another time")
        if kind is None:
            _check_shape(item, pivots)
        elif kind not in _CLASSES:
            raise Refused("SDC005", folded(str(kind)).replace("_", " "))
        elif kind in ("FUNCTION", "WINDOW"):
            _check_function(item, known)


def _check_shape(item: dict[str, Any], pivots: bool) -> None:
    kind = item.get("type")
    if not isinstance(kind, str) or kind in _SHAPES or kind.endswith("_TYPE_INFO") or (pivots and kind == "PIVOT"):
        return
    if kind == "TABLE_FUNCTION":
        raise Refused("SDC021", folded(str((item.get("function") or {}).get("function_name", ""))))
    if kind != "JOIN":
        raise Refused("SDC005", _FORMS.get(kind, folded(kind).replace("_", " ")))
    if item.get("ref_type") not in _JOINS:
        raise Refused("SDC005", f"{folded(str(item.get('ref_type')))} join")


def _check_function(item: dict[str, Any], known: frozenset[str]) -> None:
    name = folded(str(item["function_name"]))
    elsewhere = item.get("schema") not in (None, "", "main", "pg_catalog")
    if elsewhere and name in known and not item.get("catalog"):
        raise Refused("SDC010", f"a function behind a dot: write {name}(x) for x.{name}()")
    if name == "list_value" and not elsewhere and not (item.get("arguments") or item.get("children")):
        return  # an end of a slice that is left out
    if name not in known or elsewhere or item.get("catalog"):
        instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
        # A list is shorter for records: that it is answered over numbers would else read as a contradiction.
        raise Refused("SDC010", f"{name}{' of single records' if name in FUNCTIONS and not elsewhere else ''}{instead}")


def _readings(con: duckdb.DuckDBPyConnection, *queries: str) -> list[Reading]:
    """What DuckDB's parser makes of queries: one question, as each takes its time."""
    try:
        with in_memory():
            called = ", ".join(["system.main.json_serialize_sql(?)"] * len(queries))
            row = con.execute(f"SELECT {called}", list(queries)).fetchall()[0]
    except duckdb.Error:
        raise Refused("SDC001") from None
    return [_reading(text) for text in row]


def _reading(text: str) -> Reading:
    items: list[dict[str, Any]] = []

    def noted(item: dict[str, Any]) -> dict[str, Any]:
        items.append(item)
        return item

    # The hook sees every object of the tree, wherever it stands, and costs less than a walk through it.
    tree = json.loads(text, object_hook=noted)
    if not tree.get("error"):
        return Reading(items[::-1], len(tree["statements"]))
    if tree.get("error_type") != "not implemented":
        raise Refused("SDC001")
    return Reading([], 0, str(tree.get("error_message")))
