"""What functions that change each record by chance share: who a record is, what it has, and how it is shown changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdcduck.errors import SDCError
from sdcduck.functions.registry import Session
from sdcduck.methods.masking.keyed import Identities, identities
from sdcduck.quoting import folded, identifier
from sdcduck.udfs.arguments import choice, whole
from sdcduck.udfs.masking.records import check_ids, listed, order_of, records
from sdcduck.udfs.seeds import stream_of
from sdcduck.udfs.source import Source, is_number, refuse_taken

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

NULLS = ("refuse", "keep")
_EXACT = 2.0**53


@dataclass(frozen=True)
class Masked:
    """A checked call: columns by the names that they have in the source, without quotes.

    Attributes:
        names: of the columns that are changed.
        id: the column that tells records apart; None: all columns together do.
        nulls: `refuse` records with NULL; `keep` them as they are; or take those with the same gaps `apart`.
    """

    relation: Source
    names: tuple[str, ...]
    id: str | None
    nulls: str
    seed: int

    @property
    def order(self) -> str:
        """The order in which records are taken."""
        return order_of(self.relation, self.id)

    @property
    def sorted_names(self) -> tuple[str, ...]:
        """The changed columns in an order that does not depend on how they were listed."""
        return tuple(sorted(self.names, key=folded))

    def stream(self, session: Session, purpose: str, column: str = "") -> int:
        """The random stream of what is done, or of one column of it: 64 bits, signed."""
        start = stream_of(session.secret(), purpose, self.seed)
        digest = hashlib.sha256(f"{start} {purpose} {folded(column)}".encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)


def masked(
    relation: Source, columns: Sequence[str | None], id: str | None, nulls: str | None, seed: int | None,
    added: Sequence[str] = (), argument: str = "columns", *, together: bool = False,
) -> Masked:  # fmt: skip
    """Check the arguments that all these functions have.

    Args:
        added: the names of further columns of the result.
        together: what a column becomes depends on the others, so that records with the same gaps may be taken apart.
    """
    names = relation.named(columns, argument)
    known = relation.named([id], "id")[0] if id else None
    if known in names:
        raise SDCError(f"column '{known}' is one of those that are changed, and can not be the 'id'")
    relation.check_names(tuple(relation.columns))
    refuse_taken(relation.columns, added)
    chosen = choice(nulls, "nulls", (*NULLS, "apart") if together else NULLS)
    return Masked(relation, names, known, chosen, whole(seed, "seed", least=-(2**63)))


def _text(relation: Source, name: str) -> str:
    """SQL for what a column holds as text, the same in every session."""
    if relation.columns[name] == "TIMESTAMP WITH TIME ZONE":
        return f"epoch_us({identifier(name)})::VARCHAR"
    return f"{identifier(name)}::VARCHAR"


def key_of(relation: Source, id: str | None) -> str:
    """SQL for the key of a record: a hash of its identifier, or of all that it has."""
    if id:
        return f"md5_number_lower({_text(relation, id)})"
    texts = [_text(relation, name) for name in sorted(relation.columns, key=folded)]
    parts = " || ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in texts)
    return f"md5_number_lower({parts})"


@dataclass(frozen=True)
class Held:
    """What n records hold in the order of the call.

    Attributes:
        known: who they are.
        values: float64 (n, columns), NaN for NULL.
        missing: bool (n, columns).
    """

    known: Identities
    values: Matrix
    missing: NDArray[np.bool_]

    @property
    def whole(self) -> Indices:
        """The places of the records without NULL."""
        return np.flatnonzero(~self.missing.any(axis=1))

    def alike(self, call: Masked) -> Iterator[tuple[Indices, NDArray[np.bool_]]]:
        """The places of records that are changed together, and which of the columns these have, in a fixed order."""
        if call.nulls != "apart":
            yield self.whole, np.ones(self.missing.shape[1], np.bool_)
            return
        gaps, pattern = np.unique(self.missing, axis=0, return_inverse=True)
        for number, missing in enumerate(gaps):
            yield np.flatnonzero(pattern.reshape(-1) == number), ~missing


def held(
    cursor: duckdb.DuckDBPyConnection, call: Masked, expressions: Sequence[str], *, exact: bool = False,
    rows: str | None = None,
) -> Held:  # fmt: skip
    """Read records in the order of the call.

    Args:
        expressions: SQL of a number each, of the columns that are changed first.
        exact: whole numbers must be so small that a DOUBLE tells them apart.
        rows: SQL of the records with further columns; None: the source.

    Raises:
        SDCError: identifiers that are not, NULL where it is refused, NaN or infinite numbers.
    """
    if call.id:
        check_ids(cursor, call.relation, call.id)
    numbers = "".join(f", ({sql})::DOUBLE AS c{place}" for place, sql in enumerate(expressions))
    key = key_of(call.relation, call.id)
    found = cursor.sql(
        f"SELECT {key} AS key{numbers} FROM {rows or call.relation.sql} ORDER BY {call.order}"
    ).to_arrow_table()
    columns = [found.column(place + 1) for place in range(len(expressions))]
    n = len(found)
    values, missing = np.empty((n, len(columns))), np.zeros((n, len(columns)), np.bool_)
    for place, column in enumerate(columns):
        missing[:, place] = column.is_null().to_numpy()
        values[:, place] = np.where(missing[:, place], np.nan, column.to_numpy())
    if call.nulls == "refuse" and missing.any():
        raise SDCError(
            f"{int(missing.any(axis=1).sum())} of {records(n)} have NULL in a column that is to be changed: "
            "nulls := 'keep' leaves it there"
        )
    if not np.isfinite(values[~missing]).all():
        raise SDCError("a record has NaN or an infinite number in a column that is to be changed")
    for place, name in enumerate(call.names if exact else ()):
        if not _is_fraction(call.relation.columns[name]) and (np.abs(values[~missing[:, place], place]) > _EXACT).any():
            raise SDCError(f"column '{name}' has whole numbers beyond 2^53, of which a DOUBLE has not all digits")
    return Held(identities(found.column("key").to_numpy().astype(np.uint64)), values, missing)


def _is_fraction(sql_type: str) -> bool:
    return not is_number(sql_type) or sql_type in ("FLOAT", "DOUBLE")


def shown(
    call: Masked, changed: Mapping[str, str], added: Sequence[str] = (), also: str = "", between: str = ""
) -> str:
    """SQL of all records: `{rows}` has the changed ones by ``place``, and is called ``m``.

    Args:
        changed: SQL of what a column has become, by its name; the record of the source is ``r``.
        added: further columns.
        also: further columns of ``r``, each behind a comma.
        between: further joins.
    """
    columns = [
        f"{changed[name]} AS {identifier(name)}" if name in changed else f"r.{identifier(name)}"
        for name in call.relation.columns
    ]
    return f"""SELECT {", ".join([*columns, *added])}
        FROM (SELECT *, row_number() OVER (ORDER BY {call.order}) - 1 AS _sdc_place{also} FROM {call.relation.sql}) r
        LEFT JOIN {{rows}} m ON r._sdc_place = m.place{between}"""


def numbers_of(values: Matrix, missing: NDArray[np.bool_]) -> pa.Table:
    """What numbers of all records have become, in their order."""
    return pa.table({"place": np.arange(len(values)), "numbers": listed(values, missing)})


def numbers_shown(call: Masked) -> dict[str, str]:
    """SQL of what `numbers_of` has of each column."""
    return {name: f"m.numbers[{place}]" for place, name in enumerate(call.names, 1)}
