"""Whether a stored p-table is one, and the one that answers are made with."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache

import duckdb
import numpy as np

from sdcduck.catalog import StoredPTable, first_row, scales_by_digits
from sdcduck.errors import SDCError
from sdcduck.quoting import literal

FINGERPRINT = """
SELECT sum(h) FROM (
    SELECT hash(name, kind, modulus, step, repeat) AS h FROM sdc.ptables
    UNION ALL SELECT hash(name, type, i, v, lb, ub) FROM sdc.ptable_intervals
)"""
"""Another number once a row of a p-table is another, or NULL where there are none: asked with each question."""

_IN_MACROS = """
SELECT _sdc_ptable_kind({0}), coalesce(_sdc_ptable_count_guide({0}), _sdc_ptable_magnitude_guide({0})),
    coalesce(_sdc_ptable_count_intervals({0}), _sdc_ptable_magnitude_intervals({0})), _sdc_ptable_rows({0}),
    _sdc_ptable_odd_rows({0}), _sdc_ptable_odd_first({0}), _sdc_ptable_modulus({0}), _sdc_ptable_step({0}),
    _sdc_ptable_last_variance({0}), _sdc_ptable_last({0}), _sdc_ptable_repeat({0}), _sdc_ptable_rungs({0}),
    _sdc_ptable_odd_rungs({0}), coalesce(_sdc_ptable_count_strips({0}), _sdc_ptable_magnitude_strips({0})),
    _sdc_ptable_shift({0}), _sdc_ptable_buckets({0}), _sdc_ptable_first_repeated({0}), _sdc_ptable_most({0}),
    _sdc_ptable_top({0}),
    [_sdc_ptable_divisors({0}), _sdc_ptable_multipliers({0}), _sdc_ptable_quotients({0}), _sdc_ptable_widths({0})],
    [_sdc_ptable_row({0}, n) for n in range({1})],
    [_sdc_ptable_is_odd({0}, n) for n in range(4)]"""


def is_as_stored(con: duckdb.DuckDBPyConnection, table: StoredPTable | None) -> bool | None:
    """Whether the rows of a p-table obey the laws of one, and are those that the macros have; None: there are none.

    The macros answer, and the rows do not change with them: somebody who deletes or changes some by hand leaves a
    p-table that is neither what was stored nor what is used.

    Args:
        table: as it is stored (`stored_ptable`).

    Raises:
        duckdb.Error: the macros are those of another version of sdcduck.
    """
    if table is None or not len(table.i):
        return None
    expected = _in_macros(_Rows.of(table))
    if expected is None:
        return False
    last, values = expected
    return first_row(con, _IN_MACROS.format(literal(table.name), last + 9)) == values


@dataclass(frozen=True)
class _Rows:
    """All of a p-table that its macros depend on, as what it is known by again."""

    content: tuple[object, ...]
    table: StoredPTable = field(compare=False)

    @classmethod
    def of(cls, table: StoredPTable) -> _Rows:
        arrays = (array for array in (table.type, table.i, table.v, table.lb, table.ub))
        numbers = (table.kind, table.modulus, table.step, table.repeat)
        return cls((*numbers, *((array.dtype.str, array.tobytes()) for array in arrays)), table)


@lru_cache(50)
def _in_macros(rows: _Rows) -> tuple[int, tuple[object, ...]] | None:
    """The last row of a p-table, and what its macros have to answer; None: its rows do not obey the laws of one.

    It takes longer than to read both, and most databases have the same ones: so it is made once a process.
    """
    if not _is_whole(rows.table):
        return None
    try:
        made = rows.table.lookup()
    except SDCError:
        return None
    return made.last, (
        made.kind, made.guide, [row.tolist() for row in made.intervals], list(made.rows), list(made.odd_rows),
        made.odd_first, made.modulus, made.step, made.last_variance, made.last, made.repeat,
        *([*map(list, rungs)] if made.kind == "magnitudes" else None for rungs in (made.rungs(), made.odd_rungs())),
        made.strips(), made.shift, made.buckets, made.first_repeated, made.most,
        made.rows[-1] if made.kind == "magnitudes" else None,
        [json.loads(scales_by_digits(made, constant)) for constant in range(4)],
        [*range(made.last + 1), *(made.first_repeated + n % made.repeat for n in range(8))],
        [made.odd_first > 0 and n % 2 == 1 for n in range(4)],
    )  # fmt: skip


def _is_whole(table: StoredPTable) -> bool:
    """Whether the intervals of each row cover all keys, without gaps: its probabilities sum to one."""
    new = np.r_[True, (np.diff(table.i) != 0) | (table.type[1:] != table.type[:-1])]
    last = np.r_[new[1:], True]
    begins = np.where(new, 0, np.r_[0, table.ub[:-1]])
    return bool(np.all(table.lb == begins) and np.all(table.ub[last] == table.modulus))
