"""Values as clients get them: what Arrow holds, in the text and the binary form of PostgreSQL, and back."""

from __future__ import annotations

import datetime
import struct
import uuid
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdcduck.gateway.postgres.binary import numeric
from sdcduck.gateway.postgres.errors import PostgresError
from sdcduck.gateway.postgres.parameters import BadParameter, parameter_types, value_of
from sdcduck.gateway.postgres.rows import COPY_BINARY_HEAD, CopyText, copy_binary_rows, data_rows
from sdcduck.gateway.postgres.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Type,
    array_of,
    type_of,
)  # fmt: skip


def read_rows(data: bytes) -> list[list[bytes | None]]:
    """The values of DataRow messages."""
    rows, place = [], 0
    while place < len(data):
        letter, length, columns = struct.unpack_from("!cih", data, place)
        assert letter == b"D"
        end, place = place + 1 + length, place + 7
        row: list[bytes | None] = []
        for _ in range(columns):
            (size,) = struct.unpack_from("!i", data, place)
            row.append(None if size < 0 else data[place + 4 : place + 4 + size])
            place += 4 + max(size, 0)
        assert place == end
        rows.append(row)
    return rows


def sent(sql: str, form: int) -> list[bytes | None]:
    """The first row of a query."""
    with duckdb.connect() as con:
        relation = con.sql(sql)
        kinds = [type_of(str(kind)) for kind in relation.types]
        batch = relation.to_arrow_table().to_batches()[0]
        return read_rows(bytes(data_rows(batch, kinds, [form] * len(kinds))))[0]


TEXTS = [
    ("true", "t"), ("1e20::DOUBLE", "1e+20"), ("'nan'::DOUBLE", "NaN"), ("'-inf'::DOUBLE", "-Infinity"),
    ("0.0000001::DECIMAL(18, 7)", "0.0000001"), ("-1.50::DECIMAL(4, 2)", "-1.50"), ("DATE '2020-02-29'", "2020-02-29"),
    ("'infinity'::DATE", "infinity"), ("TIMESTAMP '2020-01-01 00:00:00'", "2020-01-01 00:00:00"),
    ("TIMESTAMP '2020-01-01 10:00:00.25'", "2020-01-01 10:00:00.25"), ("TIME '10:20:00'", "10:20:00"),
    ("TIMESTAMPTZ '2020-01-01 12:00:00+02'", "2020-01-01 10:00:00+00"), ("'\\xAB'::BLOB", "\\xab"),
    ("[1, NULL, 3]", "{1,NULL,3}"), ("['a', 'b c', 'NULL', '']", '{a,"b c","NULL",""}'), ("{'a': 1, 'b': [2.5]}", '{"a": 1, "b": [2.5]}'),
    ("{'a': 9223372036854775808, 'b': [0.1::DECIMAL(38, 20)]}", '{"a": 9223372036854775808, "b": [0.10000000000000000000]}'),
    ("INTERVAL '14 months -3 days 90 seconds'", "1 years 2 mons -3 days 00:01:30"), ("'b'::ENUM('a', 'b')", "b"),
    ("'infinity'::TIMESTAMP_S", "infinity"), ("'-infinity'::TIMESTAMP_MS", "-infinity"), ("'infinity'::TIMESTAMP_NS", "infinity"),
    ("'infinity'::TIMESTAMPTZ", "infinity"), ("DATE '0044-03-15 (BC)'", "0044-03-15 BC"), ("TIME '24:00:00'", "24:00:00"),
    ("TIMESTAMPTZ '0044-03-15 (BC) 01:02:03.5+00'", "0044-03-15 01:02:03.5+00 BC"), ("DATE '5881580-07-10'", "5881580-07-10"),
    ("TIMESTAMP_S '290000-12-31 00:00:00'", "290000-12-31 00:00:00"), ("['-infinity'::DATE, NULL]", "{-infinity,NULL}"),
    ("TIMESTAMP_NS '1969-12-31 23:59:59.999999999'", "1969-12-31 23:59:59.999999"), ("{'a': 'infinity'::DATE}", '{"a": "infinity"}'),
    ("[{'a': [DATE '0044-03-15 (BC)']}, NULL]", '[{"a": ["0044-03-15 BC"]}, null]'), ("[1, 2]::INTEGER[2]", "{1,2}"),
    ("sum(3)", "3"), ("NULL", None), ("''", ""), ("18446744073709551615::UBIGINT", "18446744073709551615"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "text"), TEXTS)
def test_text(sql: str, text: str | None) -> None:
    assert sent(f"SELECT {sql}", 0) == [None if text is None else text.encode()]


def back(kind: Type, data: bytes | None) -> Any:
    return value_of(data, kind, 1)


BINARY = [
    ("true", BOOL, True), ("7::TINYINT", INT4, 7), ("-8::BIGINT", INT8, -8), ("2.5::DOUBLE", FLOAT8, 2.5),
    ("DATE '1999-12-31'", DATE, datetime.date(1999, 12, 31)), ("'a\\x00'::BLOB", BYTEA, b"a\0"),
    ("TIMESTAMP '1969-07-20 20:17:40.5'", TIMESTAMP, datetime.datetime(1969, 7, 20, 20, 17, 40, 500_000)),
    ("TIMESTAMPTZ '2020-01-01 00:00:00+00'", TIMESTAMPTZ, datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)),
    ("'grün'", TEXT, "grün"), ("NULL::INTEGER", INT4, None), ("[1, NULL]", array_of(INT4), [1, None]),
    ("[]::VARCHAR[]", array_of(TEXT), []), ("[]::INTEGER[]", array_of(INT4), []), ("[]::DOUBLE[]", array_of(FLOAT8), []),
    ("[1, NULL]::INTEGER[2]", array_of(INT4), [1, None]), ("[18446744073709551615::UBIGINT]", array_of(NUMERIC), [Decimal(2**64 - 1)]),
    ("[DATE '9999-12-31', NULL]", array_of(DATE), [datetime.date(9999, 12, 31), None]),
    ("[]::DATE[]", array_of(DATE), []), ("[]::BOOLEAN[]", array_of(BOOL), []),
    ("'00112233-4455-6677-8899-aabbccddeeff'::UUID", UUID, uuid.UUID("00112233445566778899aabbccddeeff")),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "kind", "value"), BINARY)
def test_binary(sql: str, kind: Type, value: Any) -> None:
    (data,) = sent(f"SELECT {sql}", 1)
    assert value_of(data, kind, 1) == value


@pytest.mark.parametrize("unit", ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"])
def test_what_has_no_end_is_so_in_each_unit(unit: str) -> None:
    for word, number in (("infinity", 2**63 - 1), ("-infinity", -(2**63))):
        assert (
            sent(f"SELECT '{word}'::{unit}", 1)
            == sent(f"SELECT ['{word}'::{unit}][1]", 1)
            == [struct.pack("!q", number)]
        )


@pytest.mark.parametrize("sql", ["DATE '5877642-06-25 (BC)'", "TIMESTAMP '290309-12-22 (BC) 00:00:00'"])
def test_a_date_that_postgresql_does_not_have_is_no_other_date(sql: str) -> None:
    with pytest.raises(PostgresError, match="out of range") as caught:
        sent(f"SELECT {sql}", 1)
    assert caught.value.code == "22008"


@pytest.mark.parametrize(
    ("values", "kind"),
    [(pa.array([32_768, 7], pa.int32()), INT2), (pa.array([2**31, 7]), INT4), (pa.array([0.5, 7.0]), INT8),
     (pa.array([Decimal(2**63), Decimal(7)], pa.decimal128(38, 0)), INT8)],
)  # fmt: skip
def test_a_number_that_does_not_go_with_its_type_is_no_other_number(values: pa.Array, kind: Type) -> None:
    """Types are told before there are values of parameters: ``-$1::int2`` of -32768 is one more than there are."""
    for times in (1, 500):
        few = pa.chunked_array([values] * times).combine_chunks()
        batch = pa.record_batch({"a": few if isinstance(few, pa.Array) else few.chunk(0)})
        with pytest.raises(PostgresError, match="out of range") as caught:
            data_rows(batch, [kind], [1])
        assert caught.value.code == "22003"
    fits = read_rows(bytes(data_rows(pa.record_batch({"a": values[1:]}), [kind], [1])))
    assert [value_of(row[0], kind, 1) for row in fits] == [7]


DECIMALS = st.lists(st.none() | st.decimals(-(10**27), 10**27, places=8, allow_nan=False), min_size=1, max_size=20)


@given(DECIMALS)
@settings(deadline=None)
def test_numbers_come_back_whole(numbers: list[Decimal | None]) -> None:
    kind = type_of("DECIMAL(38, 8)")
    for values in (numbers, [None if n is None else n % 10**9 for n in numbers]):  # of many digits, and of few
        batch = pa.record_batch({"n": pa.array(values, pa.decimal128(38, 8))})
        rows = read_rows(bytes(data_rows(batch, [kind], [1])))
        assert [value_of(row[0], NUMERIC, 1) for row in rows] == values
        for row, value in zip(rows, values, strict=True):
            assert value is None or row[0] == numeric(value, 8)


@given(st.lists(st.tuples(st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | st.text(max_size=8)), max_size=30))
@settings(deadline=None)
def test_rows_of_any_values(rows: list[tuple[int | None, str | None]]) -> None:
    batch = pa.record_batch(
        {"a": pa.array([row[0] for row in rows], pa.int32()), "b": pa.array([row[1] for row in rows], pa.string())}
    )
    for form in (0, 1):
        found = read_rows(bytes(data_rows(batch, [INT4, TEXT], [form, form])))
        back = [(value_of(a, INT4, form), value_of(b, TEXT, form)) for a, b in found]
        assert back == rows


KINDS = [sql for sql, _ in TEXTS] + [sql for sql, _, _ in BINARY]


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("sql", KINDS)
def test_few_rows_are_written_as_many_are(sql: str, form: int) -> None:
    with duckdb.connect() as con:
        relation = con.sql(f"SELECT {sql} AS a, NULL::INTEGER AS b UNION ALL SELECT NULL, 7")
        kinds = [type_of(str(kind)) for kind in relation.types]
        table = relation.to_arrow_table()
    (few,), (many,) = (pa.concat_tables([table] * times).combine_chunks().to_batches() for times in (1, 500))
    written = bytes(data_rows(few, kinds, [form] * 2))
    assert len(read_rows(written)) == 2
    assert bytes(data_rows(many, kinds, [form] * 2)) == written * 500


def copied(data: bytes) -> bytes:
    """What CopyData messages hold."""
    parts, place = [], 0
    while place < len(data):
        letter, length = struct.unpack_from("!ci", data, place)
        assert letter == b"d"
        parts.append(data[place + 5 : place + 1 + length])
        place += 1 + length
    return b"".join(parts)


def test_copy_as_text_and_csv() -> None:
    batch = pa.record_batch({"a": [1, None], "b": ['x\ty\\z"', "\n,"]})
    kinds = [INT8, TEXT]
    assert copied(bytes(CopyText().rows(batch, kinds))) == b'1\tx\\ty\\\\z"\n\\N\t\\n,\n'
    csv = CopyText(",", "", True, '"', '"')
    assert csv.names(["a", 'b"']) == b'a,"b"""\n'
    assert copied(bytes(csv.rows(batch, kinds))) == b'1,"x\ty\\z"""\n,"\n,"\n'
    assert copied(bytes(csv.rows(pa.record_batch({"a": ["", None]}), [TEXT]))) == b'""\n\n'


def test_copy_in_binary_has_its_head_in_the_first_row() -> None:
    batch = pa.record_batch({"a": pa.array([1, 2], pa.int32())})
    data = bytes(copy_binary_rows(batch, [INT4], COPY_BINARY_HEAD))
    row = struct.pack("!hi", 1, 4)
    assert copied(data) == COPY_BINARY_HEAD + row + struct.pack("!i", 1) + row + struct.pack("!i", 2)
    assert bytes(copy_binary_rows(batch.slice(0, 0), [INT4], COPY_BINARY_HEAD)) == b""


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (INT4, b" 7 ", 7), (BOOL, b"T", True), (FLOAT8, b"Infinity", float("inf")), (NUMERIC, b"1.50", Decimal("1.50")),
        (DATE, b"2020-05-01", datetime.date(2020, 5, 1)), (DATE, b"2020-05-01 +00", datetime.date(2020, 5, 1)),
        (TIMESTAMP, b"2020-05-01 10:00:00.5", datetime.datetime(2020, 5, 1, 10, 0, 0, 500_000)),
        (DATE, b"2020-05-01 23:59:59.5+01", datetime.date(2020, 5, 1)), (BYTEA, b"a\\\\b\\001", b"a\\b\x01"),
        (BYTEA, b"\\x6162", b"ab"), (array_of(TEXT), b'{a,"b,\\"c",NULL}', ["a", 'b,"c', None]),
    ],
)  # fmt: skip
def test_parameters_as_text(kind: Type, text: bytes, value: Any) -> None:
    assert value_of(text, kind, 0) == value


@pytest.mark.parametrize(
    ("kind", "data", "form"),
    [
        (DATE, b"0044-03-15 BC", 0), (DATE, b"2020-05-01x", 0), (TEXT, b"a\0b", 0), (TEXT, b"a\0b", 1), (BYTEA, b"a\\9", 0),
        (NUMERIC, struct.pack("!hhHh", 0, 0, 0xD000, 0), 1), (NUMERIC, struct.pack("!hhHh", 0, 0, 0xF000, 0), 1),
        (NUMERIC, struct.pack("!hhHhh", 1, 0, 7, 0, 5), 1), (TIME, struct.pack("!q", 86_400_000_000), 1),
        (TIME, struct.pack("!q", -1), 1),
    ],
)  # fmt: skip
def test_a_parameter_that_means_something_else_here_is_refused(kind: Type, data: bytes, form: int) -> None:
    """Each was another value without a word: a date after Christ, 0 for what is infinite, midnight for 24:00."""
    with pytest.raises(BadParameter, match=kind.name):
        value_of(data, kind, form)


def test_an_interval_that_duckdb_takes_for_a_text_is_no_internal_error() -> None:
    batch = pa.record_batch({"a": ["1 day"]})
    with pytest.raises(PostgresError, match="an interval is sent in text only"):
        data_rows(batch, [INTERVAL], [1])


@given(st.sampled_from([BOOL, INT4, INT8, FLOAT8, NUMERIC, DATE, TIMESTAMP, UUID, TEXT, array_of(INT4)]),
       st.binary(max_size=40), st.integers(0, 1))  # fmt: skip
def test_any_bytes_are_a_parameter_or_a_clean_error(kind: Type, data: bytes, form: int) -> None:
    try:
        value_of(data, kind, form)
    except BadParameter as problem:
        assert str(problem) == kind.name


@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("SELECT count(*) FROM people WHERE age > $1 AND region = $2", ["int4", "text"]),
        ("SELECT count(*) FROM people WHERE born BETWEEN $1 AND $2 LIMIT $3", ["date", "date", "int8"]),
        ("SELECT count(*) FROM people p WHERE p.age IN ($1, $2) OR p.region LIKE $3", ["int4", "int4", "text"]),
        ("SELECT $1, $2::double precision", ["text", "float8"]),
        ("SELECT count(*) FROM people WHERE age = ANY($1)", ["_int4"]),
        ("SELECT count(*) FROM people WHERE age + $1 > coalesce($2, age)", ["int4", "int4"]),
        ("SELECT count(*) FROM people WHERE age > $1 AND region = ''", ["int4"]),
        ('SELECT count(*) FROM people WHERE age > $1 AND "Size" = $2', ["int4", "float8"]),
        ("SELECT $1::float4, least(count(*), $2), greatest($3, 1.5::DOUBLE) FROM t", ["float4", "int8", "float8"]),
        ("SELECT count(*) FROM people GROUP BY ROLLUP (age > $1, region), CUBE (born < $2)", ["int4", "date"]),
        ("SELECT $65535", []),
        ("SELECT $2, $90::date", ["text"] * 89 + ["date"]),
        ("SELECT '$1' FROM nowhere WHERE", []),
    ],
)
def test_the_types_of_parameters(sql: str, types: list[str]) -> None:
    schema = {"people": {"age": "INTEGER", "region": "VARCHAR", "born": "DATE", "Size": "DOUBLE"}}
    assert [kind.name for kind in parameter_types(sql, schema, ())] == types
