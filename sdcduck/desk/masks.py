"""Masks: for each column of a file of records, what happens to its values before they leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sdcduck.desk.forms import Form
from sdcduck.desk.guesses import Column
from sdcduck.desk.statements import call, named
from sdcduck.errors import SDCError, unknown
from sdcduck.quoting import identifier
from sdcduck.udfs.source import is_number

MASK = "mask."
"""How fields of a form begin that say what happens to a column."""
_NOISE = 0.1
_LEAST_GROUP = 2


@dataclass(frozen=True)
class Mask:
    """What may happen to columns.

    Attributes:
        words: what is done, for a menu.
        kinds: the columns that it is for: 'number', 'time', 'text' or 'code'.
        made: a query of the records with these columns masked, from a source, the columns, k and a seed.
    """

    words: str
    kinds: frozenset[str]
    made: Callable[[str, Sequence[Column], int, int], str]


def _rest(source: str, columns: Sequence[Column], k: int, seed: int) -> str:
    return call("sdc_rest_group", source, [one.name for one in columns], min_units=max(k, _LEAST_GROUP))


def _changed(source: str, columns: Sequence[Column], k: int, seed: int) -> str:
    return call("sdc_pram", source, [one.name for one in columns], nulls="keep", seed=seed)


def _swapped(source: str, columns: Sequence[Column], k: int, seed: int) -> str:
    return call("sdc_rank_swap", source, [one.name for one in columns], nulls="keep", seed=seed)


def _noisy(source: str, columns: Sequence[Column], k: int, seed: int) -> str:
    made = call("sdc_add_noise", source, [one.name for one in columns], noise=_NOISE, nulls="keep", seed=seed)
    whole = [one for one in columns if one.sql_type.endswith(("INT", "INTEGER"))]
    if not whole:
        return made
    rounded = ", ".join(f"round({identifier(one.name)})::BIGINT AS {identifier(one.name)}" for one in whole)
    return f"SELECT * REPLACE ({rounded}) {made}"


def _grouped(source: str, columns: Sequence[Column], k: int, seed: int) -> str:
    names = [one.name for one in columns]
    made = call("sdc_microaggregate", source, names, k=max(k, _LEAST_GROUP), nulls="apart")
    return f"SELECT * EXCLUDE (group_id, group_size) {made}"


MASKS: Mapping[str, Mask] = {
    "rest": Mask("rare values become 'other'", frozenset(["text"]), _rest),
    "change": Mask("values change at random (PRAM)", frozenset(["code"]), _changed),
    "swap": Mask("values are exchanged with near ones (rank swapping)", frozenset(["number", "time"]), _swapped),
    "noise": Mask("noise of a tenth of the standard deviation", frozenset(["number"]), _noisy),
    "group": Mask("means of k similar records (microaggregation)", frozenset(["number", "time"]), _grouped),
}
"""By the word that a form has for it, in the order in which they are made: a column has one of them."""
LEFT_OUT = "out"
"""The word for a column that does not leave."""


def kinds_of(column: Column) -> set[str]:
    """What of masks a column is good for.

    >>> for sql_type in ("DOUBLE", "DATE", "VARCHAR"):
    ...     print(sorted(kinds_of(Column("x", sql_type, 9, 0.0, "dimension", ""))))
    ['code', 'number']
    ['time']
    ['code', 'text']
    """
    if column.sql_type.startswith(("DATE", "TIMESTAMP")):
        return {"time"}
    if is_number(column.sql_type):
        return {"number", "code"} if column.role == "dimension" else {"number"}
    return {"code", "text"} if column.sql_type.startswith(("VARCHAR", "ENUM")) else {"code"}


def choices(column: Column) -> dict[str, str]:
    """The masks that a column can have, with their words.

    >>> list(choices(Column("day", "DATE", 9, 0.0, "other", "")))
    ['swap', 'group']
    """
    return {word: mask.words for word, mask in MASKS.items() if mask.kinds & kinds_of(column)}


def picked(form: Form, columns: Sequence[Column]) -> tuple[list[Column], dict[str, str]]:
    """The columns that leave, and the masks of those of them that have one.

    >>> columns = [Column(name, "BIGINT", 9, 0.0, "other", "") for name in ("age", "rooms", "income")]
    >>> left, masks = picked(Form.read("mask.age=group&mask.rooms=out&mask.income="), columns)
    >>> [one.name for one in left], masks
    (['age', 'income'], {'age': 'group'})

    Raises:
        SDCError: a mask that there is not, or not for such a column.
    """
    said = {one.name: form.one(f"{MASK}{one.name}") for one in columns}
    masks = {name: word for name, word in said.items() if word and word != LEFT_OUT}
    for one in columns:
        if one.name in masks and masks[one.name] not in choices(one):
            raise unknown(f"mask of '{one.name}'", masks[one.name], [*choices(one), LEFT_OUT])
    left = [one for one in columns if said[one.name] != LEFT_OUT]
    if not left:
        raise SDCError("all columns were left out: there is nothing to release")
    return left, masks


def masked(table: str, columns: Sequence[Column], masks: Mapping[str, str], k: int, seed: int) -> str:
    """A query of the records of a table, of these columns, masked.

    >>> print(masked("people", [Column("age", "BIGINT", 9, 0.0, "other", "")], {"age": "swap"}, 3, 7))
    FROM sdc_rank_swap('(SELECT "age" FROM "people")', ['age'], nulls := 'keep', seed := 7)
    """
    made = f"SELECT {', '.join(identifier(one.name) for one in columns)} FROM {identifier(table)}"
    for word, mask in MASKS.items():
        those = [one for one in columns if masks.get(one.name) == word]
        if those:
            made = mask.made(f"({made})", those, k, seed)
    return made


def told(records: str, name: str, masks: Sequence[str], halves: Sequence[str], anonymous: str) -> str:
    """How many records are what they were, and what became of the distribution of each masked column.

    Args:
        records: a query in parentheses of the original records, of the columns that left.
        name: the table of the masked ones.
        masks: the columns that were masked.
        halves: two queries in parentheses, of one half of the records each.
        anonymous: a query of how anonymous the masked records are; an empty text: nothing was suppressed.
    """
    below = f"(SELECT below_k FROM ({anonymous}))" if anonymous else "NULL"
    return (
        "SELECT c.column_name, c.pmse_ratio, c.ks, s.synthetic_records AS records, s.matches, s.share, "
        f"s.matches_of_uniques, b.share AS baseline, {below} AS below_k\n"
        f"FROM ({call('sdc_identical_matches', records, named(name))}) s, "
        f"({call('sdc_identical_matches', *halves)}) b, "
        f"({call('sdc_utility_columns', records, named(name), columns=list(masks))}) c"
    )
