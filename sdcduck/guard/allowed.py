"""What may occur in a query, by name: all else is refused."""

from __future__ import annotations

from sdcduck.guard.calls import OF_NUMBERS


def words_in(text: str) -> frozenset[str]:
    return frozenset(text.split())


UNIT_FUNCTIONS = words_in(
    "+ - * / // % || ~~ !~~ ~~* !~~* ~~~ like_escape not_like_escape ilike_escape not_ilike_escape abs "
    "ceil ceiling floor round trunc sign greatest least if nullif lower upper lcase ucase substr "
    "substring left right length len strlen char_length trim ltrim rtrim concat starts_with prefix suffix "
    "contains replace reverse date_trunc date_part datepart datetrunc year month day hour minute quarter "
    "week weekday dayofweek dayofmonth dayofyear isodow isoyear weekofyear yearweek decade century last_day "
    "split_part monthname dayname date_diff datediff date_sub datesub strftime make_date to_days to_weeks to_months "
    "to_years to_hours to_minutes to_seconds to_milliseconds to_microseconds time_bucket concat_ws lpad rpad "
    "regexp_matches regexp_full_match regexp_extract regexp_replace epoch age timezone strpos instr position ascii "
    "unicode sqrt cbrt pow power ** ^ exp ln log log2 log10 pi sin cos tan asin acos atan atan2 radians degrees even "
    "& | xor << >> ~ bit_count isnan isinf isfinite"
)
"""Scalar functions over single records: total (with TRY around them), cheap, deterministic."""

AGGREGATES = words_in(
    "count count_star count_if countif sum avg mean min max median stddev stddev_samp stddev_pop var_samp "
    "var_pop variance quantile quantile_cont quantile_disc mode first last any_value arg_max arg_min "
    "max_by min_by string_agg listagg list array_agg bool_and bool_or corr covar_pop covar_samp "
    "regr_slope regr_intercept regr_r2 product skewness kurtosis approx_count_distinct fsum sumkahan "
    "kahan_sum favg grouping grouping_id regr_count regr_avgx regr_avgy regr_sxx regr_syy regr_sxy "
    "approx_quantile histogram entropy mad weighted_avg wavg geomean geometric_mean sem kurtosis_pop "
    "bit_and bit_or bit_xor"
)
_WINDOWS = words_in(
    "row_number rank dense_rank rank_dense percent_rank cume_dist ntile lag lead first_value last_value nth_value fill"
)
_SCALARS = words_in(
    "mod fmod date_add string_split chr list_value struct_pack coalesce ifnull row constant_or_null today now "
    "transaction_timestamp current_date get_current_time to_timestamp make_timestamp strptime try_strptime "
    "date_bin @ list_extract array_extract list_contains array_contains list_has array_has list_position "
    "list_slice array_slice list_sort array_sort list_reverse_sort list_distinct array_distinct list_unique "
    "array_reverse_sort list_sum list_avg list_min list_max array_length array_to_string str_split split "
    "string_to_array unnest struct_extract map map_from_entries map_entries map_keys map_values map_extract "
    "map_extract_value element_at cardinality md5 format printf bar repeat"
)
SERIES = words_in("range generate_series")
"""Lists of so many values, of constants; in FROM, too."""

FUNCTIONS = UNIT_FUNCTIONS | AGGREGATES | _WINDOWS | _SCALARS | SERIES
"""Functions in the rest of a query, over numbers that are released and tables that are public."""

MACROS = OF_NUMBERS | words_in(
    "sdc_count_units sdc_quantile sdc_open_count sdc_open_sum _sdc_own_variance _sdc_contribution "
    "_sdc_group_key _sdc_grid_sum _sdc_exact_sum _sdc_exact_squares _sdc_variance_of_units _sdc_bins "
    "_sdc_quantile_of_units _sdc_sum_in_any_order _sdc_try _sdc_unit_number _sdc_one_of_equal hash histogram"
)
"""What the guard itself puts into a query; analysts cannot."""

OF_WITH = words_in("_sdc_grid_sum _sdc_sum_in_any_order _sdc_try")
"""Those of them that stand outside of blocks: in a WITH of records."""

TYPES = words_in("bignum guid integral oid timestamptz_ns tuple uint8 uint16 uint32 uint64 varint")
"""Types of DuckDB that sqlglot does not know by these names."""

WORDS_OF_TIME = words_in("current_date current_time current_timestamp localtime localtimestamp")
"""What DuckDB takes for functions where no column is called so."""

INSTEAD = {
    "array_contains": "x IN ['a', 'b']",
    "format_of_postgres": "a || ': ' || b, or printf('%s: %s', a, b)",
    "initcap": "upper(left(x, 1)) || lower(substring(x, 2))",
    "like_with_a_list": "a LIKE 'x%' OR a LIKE 'y%'",
    "similar_to_of_postgres": "x LIKE 'a%', or regexp_full_match(x, 'a.*')",
    "to_char": "strftime(x, '%Y-%m'); PostgreSQL clients may write to_char(x, 'YYYY-MM'), but not all patterns",
    "to_date": "DATE '2024-05-31'; PostgreSQL clients may write to_date('2024-05-31', 'YYYY-MM-DD')",
    "to_number": "CAST(x AS DOUBLE)",
    "width_bucket": "floor((x - low) / width), or CASE WHEN x < 1000 THEN 1 WHEN x < 2000 THEN 2 ELSE 3 END",
    "equi_width_bins": "floor((x - low) / width), or CASE WHEN x < 1000 THEN 1 WHEN x < 2000 THEN 2 ELSE 3 END",
    "to_timestamp_by_template": "TIMESTAMP '2024-05-31 13:30:00', or a text that is written as its template says, "
    "with YYYY MM DD HH24 MI SS MS US, or HH12 and AM",
}
"""What to write in place of functions that are asked for often, where there is something."""
