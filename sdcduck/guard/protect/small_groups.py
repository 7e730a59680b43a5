"""Groups of a dimension with few whole numbers: totals of the numbers as one byte, then of those of the domain.

::

    SELECT people.region AS _g0, count(1) AS _f0_0
    FROM (SELECT * REPLACE (CASE WHEN region BETWEEN 0 AND 19 THEN region END AS region) FROM people) AS people
    GROUP BY people.region

    SELECT CASE WHEN _g0 BETWEEN 0 AND 19 THEN _g0 END AS _g0, sum(_f0_0) AS _f0_0
    FROM (
        SELECT people._sdc_byte AS _g0, count(1) AS _f0_0
        FROM (SELECT * REPLACE (..), TRY_CAST(region AS UTINYINT) AS _sdc_byte FROM people) AS people
        GROUP BY people._sdc_byte
    ) GROUP BY ALL

DuckDB has a place for each value of a byte, whatever records there are, and hashes other numbers: a third of the time
of a count. The domain is looked at for 256 groups in place of all records. Sums are whole steps, so that it does not
matter that there are sums of them; whatever is not of the domain is one group, as before.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp, parse_one

from sdcduck.guard.calls import Noised
from sdcduck.guard.protect.levels import Level
from sdcduck.quoting import folded, identifier

_BYTE = "_sdc_byte"
_MOST = 255


def by_bytes(
    level: Level, grouped: exp.Select, keys: Mapping[str, exp.Expr], totals: Mapping[str, Noised]
) -> exp.Select:
    """The totals of groups, made in this way where it can be: of one such dimension, and of what adds up."""
    if len(keys) != 1 or level.inner is not None or not all(one.adds and not one.positions for one in totals.values()):
        return grouped
    ((name, key),) = keys.items()
    records = grouped.args["from_"].this
    ends = _ends(level, key)
    if ends is None or not isinstance(records, exp.Subquery) or records.alias != level.alias:
        return grouped
    column = exp.column(_BYTE, table=level.alias, quoted=True)
    made = parse_one(f"TRY_CAST({identifier(key.name)} AS UTINYINT) AS {identifier(_BYTE)}", read="duckdb")
    records.this.append("expressions", made)
    for item in grouped.expressions:
        if item.alias == name:
            item.set("this", column)
    grouped.set("group", exp.Group(expressions=[column.copy()]))
    shown = identifier(name)
    sums = "".join(f", sum({identifier(total)}) AS {identifier(total)}" for total in totals)
    around = parse_one(
        f"SELECT CASE WHEN {shown} BETWEEN {ends[0]} AND {ends[1]} THEN {shown} END AS {shown}{sums} GROUP BY 1",
        read="duckdb",
    )
    assert isinstance(around, exp.Select)
    return around.from_(grouped.subquery("_of_bytes"), copy=False)


def _ends(level: Level, key: exp.Expr) -> tuple[int, int] | None:
    """The least and the largest value of a dimension, if it is a column of whole numbers that has all between them."""
    if not isinstance(key, exp.Column) or key.table != level.alias or key.type is None:
        return None
    if key.type.this not in exp.DataType.INTEGER_TYPES:
        return None
    for name, kind, values in level.policy.privacy.domains:
        if folded(name) == folded(key.name) and kind not in ("VARCHAR", "BOOLEAN", "DATE"):
            numbers = sorted(map(int, values))
            least, most = numbers[0], numbers[-1]
            return (least, most) if least >= 0 and most <= _MOST and most - least == len(numbers) - 1 else None
    return None
