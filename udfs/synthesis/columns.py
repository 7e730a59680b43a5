"""How the columns of synthetic records travel: as numbers or codes, and back into the types of the source."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sdcduck.errors import SDCError

LARGEST = 2**63 - 1
"""Stands for infinite dates and timestamps, and less it for those before all others."""


@dataclass(frozen=True)
class Encoding:
    """How the values of a SQL type travel.

    Attributes:
        kind: 'i' (whole numbers), 'd' (doubles), 's' (texts), 't' (texts of numbers).
        encode, decode: SQL, where ``{0}`` is the value.
        low, high: range of a whole number.
        scale: what the number 1 is, for types on which numbers make sense.
        infinite: whether the largest whole number, and less it, stand for infinite values.
    """

    kind: str
    encode: str
    decode: str
    low: float = -9.2e18
    high: float = 9.2e18
    scale: float | None = None
    infinite: bool = False

    @property
    def is_number(self) -> bool:
        """Whether values have an order and distances."""
        return self.kind != "s"

    def encoded(self, value: str) -> str:
        """SQL for how a value travels."""
        return self._filled(self.encode, value)

    def decoded(self, value: str) -> str:
        """SQL that gives it its type again."""
        return self._filled(self.decode, value)

    def _filled(self, sql: str, value: str) -> str:
        # The type of an enumeration holds texts of the user, which may look like anything; the value stands before it.
        return sql.replace("{0}", value, -1 if self.kind in "id" else 1)


_WHOLE = {
    "TINYINT": (-(2.0**7), 2.0**7 - 1), "SMALLINT": (-(2.0**15), 2.0**15 - 1), "INTEGER": (-(2.0**31), 2.0**31 - 1),
    "BIGINT": (-9.2e18, 9.2e18), "UTINYINT": (0.0, 2.0**8 - 1), "USMALLINT": (0.0, 2.0**16 - 1),
    "UINTEGER": (0.0, 2.0**32 - 1),
}  # fmt: skip


def _instant(sql_type: str, to_whole: str, from_whole: str) -> Encoding:
    """Dates and timestamps: whole numbers, and two for the infinite ones."""
    encode = (
        f"CASE WHEN isinf({{0}}) THEN CASE WHEN {{0}} > '-infinity'::{sql_type} THEN {LARGEST} ELSE {-LARGEST} END "
        f"ELSE {to_whole} END"
    )
    decode = (
        f"CASE {{0}} WHEN {LARGEST} THEN 'infinity'::{sql_type} WHEN {-LARGEST} THEN '-infinity'::{sql_type} "
        f"ELSE {from_whole} END"
    )
    return Encoding("i", encode, decode, infinite=True)


_INSTANTS = {
    "DATE": _instant("DATE", "({0} - DATE '1970-01-01')::BIGINT", "DATE '1970-01-01' + {0}::INTEGER"),
    "TIMESTAMP": _instant("TIMESTAMP", "epoch_us({0})", "make_timestamp({0})"),
    "TIMESTAMP_S": _instant("TIMESTAMP_S", "epoch_us({0}::TIMESTAMP)", "make_timestamp({0})::TIMESTAMP_S"),
    "TIMESTAMP_MS": _instant("TIMESTAMP_MS", "epoch_us({0}::TIMESTAMP)", "make_timestamp({0})::TIMESTAMP_MS"),
    "TIMESTAMP_NS": _instant("TIMESTAMP_NS", "epoch_ns({0})", "make_timestamp_ns({0})"),
    "TIMESTAMP WITH TIME ZONE": _instant("TIMESTAMPTZ", "epoch_us({0})", "make_timestamptz({0})"),
    "TIME": Encoding("i", "epoch_us({0})", "TIME '00:00:00' + to_microseconds({0})", 0.0, 86_399_999_999.0),
}


def encoding(sql_type: str) -> Encoding | None:
    """How a type travels; None for types whose values are neither numbers nor categories.

    >>> encoding("DECIMAL(9,2)").decoded("x")
    '(x::DECIMAL(18,0) * 0.01::DECIMAL(3,2))::DECIMAL(9,2)'
    """
    if sql_type in _WHOLE:
        return Encoding("i", "{0}::BIGINT", f"{{0}}::{sql_type}", *_WHOLE[sql_type], scale=1.0)
    if sql_type in ("DOUBLE", "FLOAT"):
        return Encoding("d", "{0}::DOUBLE", f"{{0}}::{sql_type}", scale=1.0)
    if found := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", sql_type):
        width, scale = int(found[1]), int(found[2])
        if width <= 18:
            to_whole = f"({{0}} * 1{'0' * scale}::DECIMAL({scale + 1},0))::BIGINT"
            unit = f"{'0.' + '0' * (scale - 1) + '1' if scale else '1'}::DECIMAL({scale + 1},{scale})"
            back = f"({{0}}::DECIMAL(18,0) * {unit})::{sql_type}"
            most = 10.0**width - 1
            return Encoding("i", to_whole, back, -most, most, scale=10.0**scale)
    if found or sql_type in ("HUGEINT", "UHUGEINT", "UBIGINT"):
        return Encoding("t", "{0}::VARCHAR", f"{{0}}::{sql_type}")
    if sql_type in _INSTANTS:
        return _INSTANTS[sql_type]
    if sql_type == "VARCHAR":
        return Encoding("s", "{0}", "{0}")
    if sql_type in ("BOOLEAN", "UUID", "JSON") or (sql_type.startswith("ENUM(") and sql_type.endswith(")")):
        return Encoding("s", "{0}::VARCHAR", f"{{0}}::{sql_type}")
    return None


def encoding_of(name: str, sql_type: str) -> Encoding:
    found = encoding(sql_type)
    if found is None:
        kind = re.split(r"[(\[]", sql_type)[0]
        raise SDCError(
            f"column '{name}' ({kind}{'[]' if sql_type.endswith(']') else ''}) holds neither numbers nor categories: "
            "leave it out, with a query in parentheses as source, or cast it there"
        )
    return found
