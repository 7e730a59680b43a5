"""The labels of ENUMs: an answer has the values that are in it, not all that the column may have.

Arrow and the names of DuckDB's types tell every label, also those of groups that are not published. So values leave as
texts, and types by the name of a text.
"""

from __future__ import annotations

import re

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from sdcduck.guard.refusals import Refused

_ENUM = re.compile(r"\bENUM\((?:'(?:[^']|'')*'(?:, *)?)*\)")


_NO_KEYS = "a map whose keys have no type, such as MAP {}"
_PLAIN = exp.DataType.NUMERIC_TYPES | exp.DataType.TEMPORAL_TYPES | {exp.DataType.Type.BOOLEAN}


def settle_defaults(tree: exp.Expr) -> None:
    """Cast texts of which lag or lead has a default, in place, in a tree with types.

    DuckDB makes an ENUM of the default, and fails where it is none of the labels: what is no more than a text is none
    that anybody could guess. No other function that is answered does so.

    >>> tree = exp.maybe_parse("SELECT lag(x, 1, 'none') OVER (ORDER BY x)", dialect="duckdb")
    >>> tree.find(exp.Column).type = "TEXT"
    >>> settle_defaults(tree)
    >>> print(tree.sql("duckdb"))
    SELECT LAG(CAST(x AS TEXT), 1, 'none') OVER (ORDER BY x)

    Raises:
        Refused: the type is not known, or has other types in it.
    """
    for found in tree.find_all(exp.Lag, exp.Lead):
        default, value = found.args.get("default"), found.this
        if default is None or isinstance(default.unnest(), exp.Null) or default.is_number:
            continue
        if value.is_type(*exp.DataType.TEXT_TYPES):
            found.set("this", exp.cast(value, exp.DataType.Type.TEXT))
        elif not value.is_type(*_PLAIN):
            raise Refused("SDC014", "a default of lag or lead: coalesce(lag(x) OVER (..), y) has one, too")


def without_labels(kind: str) -> str:
    """The name of a DuckDB type, with texts in the place of ENUMs.

    >>> without_labels("STRUCT(a ENUM('it''s', 'x)')[], b INTEGER)")
    'STRUCT(a VARCHAR[], b INTEGER)'
    """
    return _ENUM.sub("VARCHAR", kind)


def as_texts(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The same rows, with texts in the place of dictionaries.

    DuckDB has maps whose keys have no type at all; Arrow ends the process that looks at such an array.

    >>> batch = pa.RecordBatch.from_arrays([pa.array(["a", "b"]).dictionary_encode()[:1]], ["x"])
    >>> as_texts(pa.RecordBatchReader.from_batches(batch.schema, [batch])).read_all().to_pydict()
    {'x': ['a']}

    Raises:
        Refused: keys of a map have no type.
    """
    schema = pa.schema([_field(field) for field in reader.schema], reader.schema.metadata)
    return reader if schema.equals(reader.schema) else reader.cast(schema)


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(_type(field.type))


def _type(kind: pa.DataType) -> pa.DataType:
    if types.is_dictionary(kind):
        return kind.value_type
    if types.is_struct(kind):
        return pa.struct([_field(field) for field in kind])
    if types.is_map(kind):
        if types.is_null(kind.key_type):
            raise Refused("SDC090", _NO_KEYS)
        return pa.map_(_field(kind.key_field), _field(kind.item_field), keys_sorted=kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(_field(kind.value_field), kind.list_size)
    if types.is_large_list(kind):
        return pa.large_list(_field(kind.value_field))
    return pa.list_(_field(kind.value_field)) if types.is_list(kind) else kind
