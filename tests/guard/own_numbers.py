"""What the guard answers to sums and variances, as macros of the tests: `sdc_sum` and `sdc_variance` with keys of their own.

The keys are computed again here, in integers of 128 bits, and grids are looked for among all there can be.
"""

from __future__ import annotations

import math
from fractions import Fraction

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


GRIDS = ", ".join(f"{one}e{power}" for power in range(-9, 20) for one in (1, 2, 5))


def on_grid(own_key: int, value: float, largest: float, called: float, divisor: float) -> float:
    """A number on the grid that the guard gives it, for a largest contribution that is called so over a divisor."""
    of_grid = (math.floor(called * 10000 % PRIME + 0.5) + own_key % PRIME) % PRIME
    spread = 0.02 * largest * (1 + 1.5 * (of_grid**2 % PRIME) / PRIME) / divisor
    step = min(
        one * Fraction(10) ** power
        for power in range(-9, 20)
        for one in (1, 2, 5)
        if one * Fraction(10) ** power >= spread
    )
    steps = round(Fraction(abs(value)) / step, 6)  # what is half a step but for floating point is half a step
    return float(math.floor(steps + Fraction(1, 2)) * step) * (1 if value > 0 else -1)


def _on_grid(own_key: int, value: str, largest: str, called: str, divisor: str = "1") -> str:
    """The same as SQL."""
    of_grid = f"(({called}) * 10000 % {PRIME}::DOUBLE)::BIGINT::HUGEINT + {own_key % PRIME}"
    spread = (
        f"0.02 * {largest} * (1 + 1.5 * (({of_grid}) % {PRIME} * (({of_grid}) % {PRIME}) % {PRIME})::DOUBLE / {PRIME})"
    )
    return f"""list_transform(
        [{{'value': {value}, 'spread': {spread} / ({divisor})}}],
        lambda one: list_transform(
            [list_min(list_filter([{GRIDS}], lambda grid: grid >= one['spread']))],
            lambda grid: CASE
                WHEN one['spread'] > 0 THEN round(round(one['value'] / grid, 6)) * grid ELSE one['value']
            END)[1])[1]"""


def with_own_numbers(con: duckdb.DuckDBPyConnection, *measures: str) -> None:
    """Make ``sum_of_<measure>(y, record_key)``, ``mean_of_..``, ``variance_of_..``, and ``rows_of_units(n, key)``.

    ``repeated`` is how many rows a unit has on average, where ``y`` is what they come to.
    """
    kind = "TEMP" if is_read_only(con) else ""
    rows, most_rows = own(con, "rows"), own(con, "the largest unit's rows")
    cell_key = "sum(CASE WHEN n > 0 THEN key END)"
    of_largest = _spread(most_rows, cell_key, "sum(n) / max(n)")
    con.execute(f"""
        CREATE OR REPLACE {kind} MACRO rows_of_units(n, key) AS greatest(
            sum(n) + CASE
                WHEN max(n) > 1 THEN
                    max(n) * (sdc_ckm_count(count(*) FILTER (n > 0), {_spread(rows, cell_key, "sum(n) / max(n)")}) - count(*) FILTER (n > 0))
                    + round(sdc_ckm_sum(sum(n), [max(n)], {of_largest}) - sum(n)
                        + max(n) * ({of_largest} / {PRIME}::DOUBLE - 0.5::DOUBLE))
                ELSE sdc_count(key, filter := n > 0) - count(*) FILTER (n > 0) END,
            0)::BIGINT""")
    for measure in measures:
        chosen, kept = "CASE WHEN filter THEN y END", "CASE WHEN filter AND y <> 0 THEN record_key ELSE 0 END"
        value = f"abs(_sdc_exact_sum({chosen}, 4)) / (repeated)"
        added = f"sum({kept})"
        largest = "coalesce(max(_sdc_contribution(y, record_key, filter)), 0)"
        deviation = f"_sdc_largest_deviation({chosen}, 4)"
        counted = "sdc_count(record_key, filter := filter AND y IS NOT NULL)"
        plain = f"""sdc_ckm_sum(
            _sdc_exact_sum({chosen}, 4), [{largest}], {_spread(own(con, f"sum of {measure}"), added, value)}::BIGINT)"""
        variance = f"""_sdc_own_variance(
            y, record_key, 'default_magnitude', 'default', 0.1, filter, 8, 4, {own(con, f"variance of {measure}")}, NULL)"""
        of_sums, of_variances = (own(con, f"grid of the {what} of {measure}") for what in ("sum", "variance"))
        called, of_deviation = f"{largest} / (repeated)", f"_sdc_significant({deviation}, 6)"
        one = _on_grid(of_sums, f"({plain}) / (repeated)", largest, called, "(repeated)")
        deviations = _on_grid(of_variances, f"{variance} * ({counted} - 1)", deviation, of_deviation)
        con.execute(f"""
            CREATE OR REPLACE {kind} MACRO sum_of_{measure}(y, record_key, filter := true, repeated := 1) AS
                {_on_grid(of_sums, f"({one}) * (repeated)", largest, called)};
            CREATE OR REPLACE {kind} MACRO mean_of_{measure}(y, record_key, n, filter := true, repeated := 1) AS
                {_on_grid(of_sums, f"sum_of_{measure}(y, record_key, filter := filter, repeated := repeated) / n", largest, called, "n")};
            CREATE OR REPLACE {kind} MACRO variance_of_{measure}(y, record_key, filter := true) AS
                {_on_grid(of_variances, f"({deviations}) / ({counted} - 1)", deviation, of_deviation, f"{counted} - 1")};
        """)
