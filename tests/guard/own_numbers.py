"""What the guard answers to sums and variances, as macros of the tests: `sdc_sum` and `sdc_variance` with keys of their own.

The keys are computed again here, in integers of 128 bits.
"""

from __future__ import annotations

import duckdb

from sdcduck.catalog import is_read_only, setting
from sdcduck.guard.methods.cell_key import own_key

PRIME = 99_999_989


def own(con: duckdb.DuckDBPyConnection, quantity: str) -> int:
    """What the guard makes of the name of a quantity, with the secret that the database has for it."""
    secret = setting(con, "noise_secret")
    assert secret is not None
    return own_key(quantity, secret)


def _spread(own_key: int, key: str, value: str) -> str:
    """The key of a quantity, from that of a cell."""
    of_value, of_key = divmod(own_key, PRIME)
    factor = (
        f"({of_key} + (coalesce({value}, 0)::DOUBLE * 10000 % {PRIME}::DOUBLE)::BIGINT::HUGEINT * {of_value}) % {PRIME}"
    )
    return f"(coalesce({key}, 0)::HUGEINT % {PRIME} * ({factor}) % {PRIME})"


def spread(own_key: int, key: int, value: float) -> int:
    """The same of a key and a value."""
    of_value, of_key = divmod(own_key, PRIME)
    return key % PRIME * ((of_key + round(abs(value) * 10000) % PRIME * of_value) % PRIME) % PRIME


def with_own_numbers(con: duckdb.DuckDBPyConnection, *measures: str) -> None:
    """Make ``sum_of_<measure>(y, record_key)``, ``variance_of_<measure>(y, record_key)`` and ``rows_of_units(n, key)``.

    ``repeated`` is how many rows a unit has on average, where ``y`` is what they come to.
    """
    kind = "TEMP" if is_read_only(con) else ""
    rows, most_rows = own(con, "rows"), own(con, "the largest unit's rows")
    cell_key = "sum(CASE WHEN n > 0 THEN key END)"
    con.execute(f"""
        CREATE OR REPLACE {kind} MACRO rows_of_units(n, key) AS greatest(
            sum(n) + CASE
                WHEN max(n) > 1 THEN
                    max(n) * (sdc_ckm_count(count(*) FILTER (n > 0), {_spread(rows, cell_key, "sum(n) / max(n)")}) - count(*) FILTER (n > 0))
                    + round(sdc_ckm_sum(
                        sum(n), [max(n)], {_spread(most_rows, cell_key, "sum(n) / max(n)")}) - sum(n))
                ELSE sdc_count(key, filter := n > 0) - count(*) FILTER (n > 0) END,
            0)::BIGINT""")
    for measure in measures:
        chosen, kept = "CASE WHEN filter THEN y END", "CASE WHEN filter AND y <> 0 THEN record_key ELSE 0 END"
        value = f"abs(_sdc_exact_sum({chosen}, 4)) / (repeated)"
        added = f"sum({kept})"
        con.execute(f"""
            CREATE OR REPLACE {kind} MACRO sum_of_{measure}(y, record_key, filter := true, repeated := 1) AS sdc_ckm_sum(
                _sdc_exact_sum({chosen}, 4), [coalesce(max(_sdc_contribution(y, record_key, filter)), 0)],
                {_spread(own(con, f"sum of {measure}"), added, value)}::BIGINT);
            CREATE OR REPLACE {kind} MACRO variance_of_{measure}(y, record_key, filter := true) AS
                _sdc_own_variance(y, record_key, 'default_magnitude', 'default', 0.1, filter, 8, 4, {own(con, f"variance of {measure}")});
        """)
