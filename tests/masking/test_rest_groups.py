"""``sdc_rest_group``: rare categories become one, which is no smaller than any other may be."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable

import duckdb
import pytest


def grouped(lasting: duckdb.DuckDBPyConnection, values: Iterable[str], more: str = "") -> dict[object, int]:
    """How many records each category has in the end, of a column x with these values in SQL."""
    source = f"(SELECT unnest([{', '.join(values)}]) AS x)".replace("'", "''")
    return dict(
        lasting.execute(f"SELECT x, count(*) FROM sdc_rest_group('{source}', ['x']{more}) GROUP BY x").fetchall()
    )


def times(**counts: int) -> list[str]:
    return [f"'{value}'" for value, count in counts.items() for _ in range(count)]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"a": 9, "b": 5, "c": 3, "d": 3}, {"a": 9, "b": 5, "other": 6}),
        ({"a": 9, "b": 6, "c": 3}, {"a": 9, "other": 9}),  # a rest of c alone would be c
        ({"a": 9, "b": 6, "c": 6, "d": 1}, {"a": 9, "c": 6, "other": 7}),  # of equal ones the first
        ({"a": 5, "b": 5}, {"a": 5, "b": 5}),
        ({"a": 4, "b": 4}, {"other": 8}),
        ({"a": 2, "b": 1}, {"other": 3}),  # no more there are
        ({"a": 9, "other": 3}, {"other": 12}),
        ({"a": 9, "other": 20, "b": 1}, {"a": 9, "other": 21}),
        ({"a": 9, "other": 20}, {"a": 9, "other": 20}),
    ],
)
def test_small_categories_and_the_next_ones(
    lasting: duckdb.DuckDBPyConnection, counts: dict[str, int], expected: dict[str, int]
) -> None:
    assert grouped(lasting, times(**counts), ", min_units := 5") == expected


def test_null_is_a_category(lasting: duckdb.DuckDBPyConnection) -> None:
    assert grouped(lasting, [*times(a=9), *["NULL"] * 6], ", min_units := 5") == {"a": 9, None: 6}
    assert grouped(lasting, [*times(a=9, b=2), *["NULL"] * 3], ", min_units := 5") == {"a": 9, "other": 5}
    assert grouped(lasting, [*times(a=9), *["NULL"] * 3], ", min_units := 5") == {"other": 12}


def test_types_and_labels(lasting: duckdb.DuckDBPyConnection) -> None:
    numbers = ["7"] * 6 + ["8"] * 3 + ["9"] * 3
    assert grouped(lasting, numbers, ", min_units := 5") == {"7": 6, "other": 6}
    assert grouped(lasting, numbers, ", min_units := 5, label := '99'") == {7: 6, 99: 6}
    assert grouped(lasting, ["true"] * 6 + ["NULL"] * 6, ", label := 'it''s', min_units := 5") == {"true": 6, None: 6}
    doubles = ["'NaN'::DOUBLE"] * 6 + ["0.5"] * 2 + ["'inf'::DOUBLE"] * 4
    assert grouped(lasting, doubles, ", min_units := 5") == {"nan": 6, "other": 6}
    kinds = ["'a'::ENUM('a', 'b', 'c')"] * 6 + ["'b'::ENUM('a', 'b', 'c')"] * 2 + ["'c'::ENUM('a', 'b', 'c')"] * 3
    assert grouped(lasting, kinds, ", min_units := 5") == {"a": 6, "other": 5}


def test_an_empty_table(lasting: duckdb.DuckDBPyConnection) -> None:
    assert lasting.execute("FROM sdc_rest_group('(SELECT 1 AS x WHERE false)', ['x'])").fetchall() == []
    report = lasting.execute("FROM sdc_rest_group_report('(SELECT 1 AS x WHERE false)', ['x'])").fetchall()
    assert report == [("x", 0, 0, 0, 0, None)]


def test_units_are_counted_once(lasting: duckdb.DuckDBPyConnection) -> None:
    """Of c and d both units are the same: together they are two, and b is in the rest as well."""
    lasting.execute(
        "CREATE OR REPLACE TABLE v AS FROM (VALUES ('a', 1), ('a', 2), ('a', 3), ('a', 4), ('b', 5), ('b', 6), ('b', 7), "
        "('c', 1), ('c', 1), ('c', 1), ('c', 2), ('d', 1), ('d', 2), ('d', NULL)) v(x, person)"
    )
    drawn = lasting.execute(
        "SELECT x, count(*) FROM sdc_rest_group('v', ['x'], min_units := 3, unit := 'PERSON') GROUP BY x"
    ).fetchall()
    assert dict(drawn) == {"a": 4, "other": 10}
    assert lasting.execute("FROM sdc_rest_group_report('v', ['x'], min_units := 3, unit := 'person')").fetchall() == [
        ("x", 4, 3, 1, 10, 4)
    ]


def by_hand(records: list[tuple[str, int]], least: int) -> dict[str, str]:
    """What each category becomes: the rule in other words."""
    units: dict[str, set[int]] = defaultdict(set)
    for category, unit in records:
        units[category].add(unit)
    order = sorted(units, key=lambda category: (len(units[category]), category))
    rest = [category for category in order if len(units[category]) < least]
    inside: set[int] = set().union(*(units[category] for category in rest))
    for category in order[len(rest) :] if rest else []:
        if len(inside) >= least:
            break
        rest.append(category)
        inside |= units[category]
    return {category: "other" if category in rest else category for category in order}


@pytest.mark.parametrize("seed", range(6))
def test_strata_as_by_hand_and_nobody_follows_from_a_total(lasting: duckdb.DuckDBPyConnection, seed: int) -> None:
    chance = random.Random(seed)
    least = chance.choice([2, 3, 5])
    rows = [
        (chance.choice("NSE"), chance.choice("aabbbcdefg"), chance.randrange(40))
        for _ in range(chance.choice([12, 60, 150]))
    ]
    lasting.execute("CREATE OR REPLACE TABLE t (region VARCHAR, x VARCHAR, person INTEGER)")
    lasting.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    call = f"('t', ['x'], min_units := {least}, unit := 'person', by := ['region'])"
    found = lasting.execute(f"FROM sdc_rest_group{call} ORDER BY ALL").fetchall()
    expected = []
    for region in {row[0] for row in rows}:
        inside = [row[1:] for row in rows if row[0] == region]
        new = by_hand(inside, least)
        expected += [(region, new[category], unit) for category, unit in inside]
    assert found == sorted(expected)
    units = defaultdict(set)
    for region, category, unit in found:
        units[region, category].add(unit)
    smallest = lasting.execute(f"SELECT smallest FROM sdc_rest_group_report{call}").fetchone()
    assert smallest == (min(map(len, units.values())),)
    for region, category in units:
        if len(units[region, category]) < least:
            assert {other for place, other in units if place == region} == {"other"}


def test_levels_of_a_hierarchy(lasting: duckdb.DuckDBPyConnection) -> None:
    """Towns within their province; below a province in the rest there are no towns."""
    lasting.execute(
        """CREATE OR REPLACE TABLE t AS FROM (VALUES ('A', 'a1', 6), ('A', 'a2', 2), ('A', 'a3', 4), ('B', 'b1', 9), ('B', NULL, 1),
            ('C', 'c1', 3), ('D', 'd1', 2), ('D', 'd2', 1)) v(province, town, n), range(n)"""
    )
    rows = lasting.execute(
        "SELECT province, town, count(*) FROM sdc_rest_group('t', ['province', 'town'], min_units := 5, nested := true) "
        "GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert rows == [("A", "a1", 6), ("A", "other", 6), ("B", "other", 10), ("other", "other", 6)]
    assert lasting.execute(
        "FROM sdc_rest_group_report('t', ['province', 'town'], min_units := 5, nested := true)"
    ).fetchall() == [("province", 4, 2, 1, 6, 6), ("town", 5, 4, 2, 22, 6)]
    # Each by itself, towns of all provinces are counted together, and b1 is large enough to stay.
    apart = lasting.execute(
        "SELECT DISTINCT town FROM sdc_rest_group('t', ['province', 'town'], min_units := 5)"
    ).fetchall()
    assert sorted(apart) == [("a1",), ("b1",), ("other",)]


def test_columns_keep_their_names_and_places(lasting: duckdb.DuckDBPyConnection) -> None:
    lasting.execute(
        'CREATE OR REPLACE TABLE "the file" AS SELECT i AS n, i % 2 AS "a ""b""", \'v\' || i AS x FROM range(6) r(i)'
    )
    shown = lasting.execute("""DESCRIBE FROM sdc_rest_group('the file', ['X', 'A "b"'], min_units := 3)""").fetchall()
    assert [row[:2] for row in shown] == [("n", "BIGINT"), ('a "b"', "VARCHAR"), ("x", "VARCHAR")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'t', []", "'columns' must name the columns that get a rest group"),
        ("'t', ['y']", "unknown column 'y'"),
        ("'t', ['x', 'X']", "names column 'x' twice"),
        ("'t', [NULL]", "holds a NULL"),
        ("'t', ['x'], by := ['x']", "both name 'x'"),
        ("'t', ['x'], unit := 'x'", "among 'columns' or 'by'"),
        ("'t', ['x'], unit := 'nobody'", "unknown column 'nobody'"),
        ("'t', ['x'], min_units := 1", "at least 2"),
        ("'t', ['x'], min_units := -3", "at least 2"),
        ("'t', ['x'], min_units := NULL", "'min_units' must be a whole number"),
        ("'t', ['x'], min_units := 2.5", "min_units"),
        ("'t', ['x'], label := ''", "'label' must be a text"),
        ("'t', ['x'], label := NULL", "'label' must be a text"),
        ("'t', ['x'], nested := NULL", "'nested' must be true or false"),
        ("'nothing', ['x']", "nothing"),
        ("'(SELECT 1 AS _sdc_in_rest)', ['_sdc_in_rest']", "may not begin with _sdc_"),
    ],
)
def test_what_cannot_be_used(lasting: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    lasting.execute("CREATE OR REPLACE TABLE t AS SELECT 'secret' AS x, 1 AS person")
    for name in ("sdc_rest_group", "sdc_rest_group_report"):
        with pytest.raises(duckdb.Error, match=message) as caught:
            lasting.execute(f"FROM {name}({arguments})")
        assert "secret" not in str(caught.value)
