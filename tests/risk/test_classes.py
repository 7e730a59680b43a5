"""Classes, k-anonymity, l-diversity, t-closeness and rare combinations, against counting by hand and the figures of R."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from effort import times

KEYS = "['urbrur', 'roof', 'walls', 'water', 'electcon', 'relat', 'sex']"


def rows_of(seed: int, records: int) -> list[tuple[Any, ...]]:
    """a, b (some NULL), a sensitive number and a sensitive word."""
    drawn = random.Random(seed)
    return [
        (
            drawn.randrange(3),
            drawn.choice(["x", "y", "o'o", None]),
            drawn.choice([1, 2, 2, 5, 9, 40]),
            drawn.choice("pqqr"),
        )
        for _ in range(records)
    ]


def table_of(con: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]]) -> None:
    con.execute('CREATE OR REPLACE TABLE t (a INTEGER, "b ""b" VARCHAR, number INTEGER, word VARCHAR)')
    if rows:
        listed = ", ".join(["(?, ?, ?, ?)"] * len(rows))
        con.execute(f"INSERT INTO t VALUES {listed}", [value for row in rows for value in row])


def classes_of(rows: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    found = defaultdict(list)
    for row in rows:
        found[row[:2]].append(row)
    return found


def earth_mover(values: list[Any], whole: list[Any]) -> float:
    """By its definition: what has to be carried over each step from a value to the next."""
    order = sorted(set(whole))
    if len(order) == 1:
        return 0.0
    mine, all_ = Counter(values), Counter(whole)
    carried = total = 0.0
    for value in order[:-1]:
        carried += mine[value] / len(values) - all_[value] / len(whole)
        total += abs(carried)
    return total / (len(order) - 1)


def recursive(values: list[Any], c: float) -> int:
    counts = sorted(Counter(values).values(), reverse=True)
    return max((n for n in range(1, len(counts) + 1) if counts[0] < c * sum(counts[n - 1 :])), default=0)


@pytest.mark.parametrize("seed", range(0, 12, times(2, 1)))
def test_against_counting_by_hand(lasting: duckdb.DuckDBPyConnection, seed: int) -> None:
    rows = rows_of(seed, 5 * seed**2 + 1)
    table_of(lasting, rows)
    classes = classes_of(rows)
    arguments = "'t', keys := ['a', 'b \"b']"
    sizes = [len(members) for members in classes.values()]
    assert {row[:2]: row[2] for row in lasting.execute(f"FROM sdc_classes({arguments})").fetchall()} == {
        key: len(members) for key, members in classes.items()
    }
    (found,) = lasting.execute(f"FROM sdc_k_anonymity({arguments}, k := 4)").fetchall()
    below, alone = sum(n for n in sizes if n < 4), sizes.count(1)
    assert found == pytest.approx(
        (len(rows), len(sizes), min(sizes), alone, alone / len(rows), below, below / len(rows), len(sizes) / len(rows),
         1 / min(sizes)), rel=1e-12,
    )  # fmt: skip
    for column, place in (("number", 2), ("word", 3)):
        for c in (0.5, 1, 2, 3.5):
            diverse = lasting.execute(
                f"FROM sdc_l_diversity_classes({arguments}, sensitive := '{column}', c := {c})"
            ).fetchall()
            assert len(diverse) == len(classes)
            for row in diverse:
                values = [member[place] for member in classes[row[:2]]]
                shares = [n / len(values) for n in Counter(values).values()]
                wanted = (
                    len(values),
                    len(shares),
                    math.exp(-sum(p * math.log(p) for p in shares)),
                    recursive(values, c),
                )
                assert row[2:] == pytest.approx(wanted, rel=1e-12)
            (worst,) = lasting.execute(
                f"FROM sdc_l_diversity({arguments}, sensitive := '{column}', c := {c})"
            ).fetchall()
            same = sum(row[2] for row in diverse if row[3] == 1)
            assert worst == pytest.approx(
                (len(rows), len(classes), *(min(row[i] for row in diverse) for i in (3, 4, 5)), same, same / len(rows)),
                rel=1e-12,
            )
        for ordered in (False, True):
            close = lasting.execute(
                f"FROM sdc_t_closeness_classes({arguments}, sensitive := '{column}', ordered := {ordered})"
            ).fetchall()
            whole = [row[place] for row in rows]
            for row in close:
                values = [member[place] for member in classes[row[:2]]]
                mine, everyone = Counter(values), Counter(whole)
                wanted = earth_mover(values, whole) if ordered else sum(
                    abs(mine[value] / len(values) - everyone[value] / len(whole)) for value in everyone) / 2  # fmt: skip
                assert row[3] == pytest.approx(wanted, abs=1e-12)
            (worst,) = lasting.execute(
                f"FROM sdc_t_closeness({arguments}, sensitive := '{column}', ordered := {ordered})"
            ).fetchall()
            mean = sum(row[2] * row[3] for row in close) / len(rows)
            assert worst == pytest.approx((len(rows), len(classes), max(row[3] for row in close), mean), abs=1e-12)


def test_numbers_are_ordered_and_words_are_not(con: duckdb.DuckDBPyConnection) -> None:
    table_of(con, rows_of(1, 60))
    for column, ordered in (("number", True), ("word", False)):
        said, left = (
            con.execute(f"SELECT t FROM sdc_t_closeness('t', keys := ['a'], sensitive := '{column}'{more})").fetchall()
            for more in ("", f", ordered := {ordered}")
        )
        assert said == left


def test_the_distance_with_very_many_values(con: duckdb.DuckDBPyConnection) -> None:
    """Where the sum over all steps would be long: a class against a hundred thousand values."""
    con.execute("CREATE TABLE t AS SELECT i % 500 AS a, (i * 7919 % 99991) AS y FROM range(200000) r(i)")
    found = dict(
        con.execute("SELECT a, distance FROM sdc_t_closeness_classes('t', keys := ['a'], sensitive := 'y')").fetchall()
    )
    y, a = (np.array(column) for column in zip(*con.execute("SELECT y, a FROM t").fetchall(), strict=True))
    values = np.unique(y)
    whole = np.searchsorted(np.sort(y), values, side="right") / len(y)
    for place in (0, 17, 499):
        mine = np.sort(y[a == place])
        own = np.searchsorted(mine, values, side="right") / len(mine)
        assert found[place] == pytest.approx(np.abs(own - whole)[:-1].sum() / (len(values) - 1), rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_rare_combinations_by_hand(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    rows = rows_of(seed, 40)
    table_of(con, rows)
    names = ["a", 'b "b', "number", "word"]
    found = con.execute(
        "SELECT variable, dimension, unsafe, share FROM "
        "sdc_unsafe_combinations('t', keys := ['a', 'b \"b', 'number', 'word'], k := 3, max_size := 3)"
    ).fetchall()
    assert len(found) == 12
    for variable, dimension, unsafe, share in found:
        rare = set()
        for subset in itertools.combinations(range(4), dimension):
            if names.index(variable) in subset:
                counts = Counter(tuple(row[i] for i in subset) for row in rows)
                rare |= {n for n, row in enumerate(rows) if counts[tuple(row[i] for i in subset)] < 3}
        assert (unsafe, share) == (len(rare), len(rare) / 40)


def test_diversity_of_a_survey_as_in_r(con: duckdb.DuckDBPyConnection, reference_data: Path) -> None:
    folder = reference_data / "sdcmicro"
    con.execute(f"CREATE TABLE survey AS SELECT row_number() OVER () AS place, * FROM '{folder}/input_testdata.csv.gz'")
    for column in ("income", "savings"):
        wanted = con.execute(
            f"SELECT {column}_Distinct_Ldiversity, {column}_Entropy_Ldiversity, {column}_Recursive_Ldiversity "
            f"FROM '{folder}/testdata_ldiversity.csv'"
        ).fetchall()
        alike = " AND ".join(
            f"s.{key} = d.{key}" for key in ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")
        )
        found = con.execute(
            f"SELECT distinct_l, entropy_l, recursive_l FROM survey s JOIN "
            f"sdc_l_diversity_classes('survey', keys := {KEYS}, sensitive := '{column}') d ON {alike} ORDER BY place"
        ).fetchall()
        assert len(found) == 4580
        assert np.array(found, dtype=float) == pytest.approx(np.array(wanted, dtype=float), rel=1e-9)


def test_relabelling_and_order_change_nothing_and_more_keys_make_it_worse(con: duckdb.DuckDBPyConnection) -> None:
    table_of(con, rows_of(3, 300))
    con.execute(
        'CREATE TABLE other AS SELECT \'k\' || a AS a, md5("b ""b") AS "b ""b", number, word FROM t ORDER BY random()'
    )
    figures = []
    for table in ("t", "other"):
        for keys in ("['a']", "['a', 'b \"b']", "['a', 'b \"b', 'word']"):
            (k,) = con.execute(f"FROM sdc_k_anonymity('{table}', keys := {keys})").fetchall()
            (t,) = con.execute(f"FROM sdc_t_closeness('{table}', keys := {keys}, sensitive := 'number')").fetchall()
            (diverse,) = con.execute(
                f"FROM sdc_l_diversity('{table}', keys := {keys}, sensitive := 'number')"
            ).fetchall()
            figures.append((*k, *t, *diverse))
    assert [pytest.approx(row, rel=1e-12) for row in figures[:3]] == figures[3:]
    smallest = [row[2] for row in figures[:3]]
    risk = [row[7] for row in figures[:3]]
    assert smallest == sorted(smallest, reverse=True)
    assert risk == sorted(risk)


def test_nulls(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS FROM (VALUES (1, 'x', 5), (NULL, 'x', 6), (NULL, 'x', NULL)) v(a, b, y)")
    assert con.execute("SELECT records, classes, k FROM sdc_k_anonymity('t', keys := ['a', 'b'])").fetchall() == [
        (3, 2, 1)
    ]
    assert con.execute(
        "SELECT records, classes, k FROM sdc_k_anonymity('t', keys := ['a'], nulls := 'drop')"
    ).fetchall() == [(1, 1, 1)]
    assert con.execute(
        "SELECT records, classes, k FROM sdc_k_anonymity('t', keys := ['a'], nulls := 'match')"
    ).fetchall() == [(3, 2, 3)]
    assert con.execute(
        "SELECT a, distinct_l FROM sdc_l_diversity_classes('t', keys := ['a'], sensitive := 'y') ORDER BY a"
    ).fetchall() == [(1, 1), (None, 2)]
    with pytest.raises(duckdb.Error, match="a sensitive value is NULL: take nulls := 'skip', or ordered := false"):
        con.execute("FROM sdc_t_closeness('t', keys := ['b'], sensitive := 'y')").fetchall()
    assert con.execute(
        "SELECT t FROM sdc_t_closeness('t', keys := ['b'], sensitive := 'y', ordered := false)"
    ).fetchall() == [(0,)]
    for function in ("sdc_l_diversity", "sdc_t_closeness"):
        with pytest.raises(duckdb.Error, match="argument 'nulls' must be 'category', 'drop' or 'skip'"):
            con.execute(f"FROM {function}('t', keys := ['a'], sensitive := 'y', nulls := 'match')")
    with pytest.raises(duckdb.Error, match="argument 'nulls' must be 'category', 'drop' or 'match'"):
        con.execute("FROM sdc_k_anonymity('t', keys := ['a'], nulls := 'skip')")


def test_records_without_a_sensitive_value_can_be_skipped(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS FROM (VALUES (1, 5), (1, NULL), (2, 6), (2, 5), (3, NULL), (NULL, 7), (NULL, NULL)) v(a, y)"
    )
    known = "(FROM t WHERE a IS NOT NULL AND y IS NOT NULL)"
    for function in ("l_diversity", "l_diversity_classes", "t_closeness", "t_closeness_classes"):
        shared = "keys := ['a'], sensitive := 'y'"
        skipped = con.execute(f"FROM sdc_{function}('t', {shared}, nulls := 'skip') ORDER BY ALL").fetchall()
        assert skipped == con.execute(f"FROM sdc_{function}('{known}', {shared}) ORDER BY ALL").fetchall()
    worst = "SELECT records, homogeneous FROM sdc_l_diversity('t', keys := ['a'], sensitive := 'y', nulls := "
    assert con.execute(f"{worst}'drop')").fetchall() == [(5, 1)]  # the value of a = 1 does not count as known
    assert con.execute(f"{worst}'skip')").fetchall() == [(3, 1)]


def test_empty_and_constant_tables(con: duckdb.DuckDBPyConnection) -> None:
    table_of(con, [])
    arguments = "'t', keys := ['a']"
    assert con.execute(f"FROM sdc_k_anonymity({arguments})").fetchall() == [(0, 0, None, 0, None, 0, None, None, None)]
    assert con.execute(f"FROM sdc_l_diversity({arguments}, sensitive := 'word')").fetchall() == [
        (0, 0, None, None, None, 0, None)
    ]
    for column in ("word", "number"):
        assert con.execute(f"FROM sdc_t_closeness({arguments}, sensitive := '{column}')").fetchall() == [
            (0, 0, None, None)
        ]
    assert con.execute(
        "SELECT sum(unsafe), max(share) FROM sdc_unsafe_combinations('t', keys := ['a', 'word'])"
    ).fetchall() == [(0, None)]
    table_of(con, [(1, "x", 4, "p")] * 3)
    for column in ("word", "number"):
        assert con.execute(f"FROM sdc_t_closeness({arguments}, sensitive := '{column}')").fetchall() == [(3, 1, 0, 0)]
    assert con.execute(f"SELECT homogeneous FROM sdc_l_diversity({arguments}, sensitive := 'word')").fetchall() == [
        (3,)
    ]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("sdc_k_anonymity('t', keys := ['a'], k := 0)", "sdc_k_anonymity: argument 'k' must be a whole number of at least 1"),
        ("sdc_k_anonymity('t', keys := ['a'], k := 2.5)", "argument 'k' must be a whole number"),
        ("sdc_k_anonymity('t')", "argument 'keys' must name"),
        ("sdc_k_anonymity('tt', keys := ['a'])", "unknown table 'tt'; did you mean 't'"),
        ("sdc_classes('t', keys := ['records'])", "unknown column 'records'"),
        ("sdc_classes('(SELECT 1 AS records)', keys := ['records'])", "a column called 'records' is also one of the result"),
        ("sdc_l_diversity('t', keys := ['a'])", "argument 'sensitive' must name a column"),
        ("sdc_l_diversity('t', keys := ['a'], sensitive := 'A')", "argument 'sensitive' must name another column"),
        ("sdc_l_diversity('t', keys := ['a'], sensitive := 'word', c := 0)", "argument 'c' must be a number above 0"),
        ("sdc_unsafe_combinations('t', keys := ['a'], max_size := 0)", "argument 'max_size' must be"),
    ],
)  # fmt: skip
def test_bad_arguments(lasting: duckdb.DuckDBPyConnection, call: str, text: str) -> None:
    table_of(lasting, [])
    with pytest.raises(duckdb.Error, match=text):
        lasting.execute(f"FROM {call}").fetchall()


def test_too_many_combinations(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE wide AS SELECT " + ", ".join(f"{n} AS c{n}" for n in range(30)))
    keys = ", ".join(f"'c{n}'" for n in range(30))
    with pytest.raises(duckdb.Error, match="more than 2000 combinations of keys: take fewer"):
        con.execute(f"FROM sdc_unsafe_combinations('wide', keys := [{keys}])")
    assert len(con.execute(f"FROM sdc_unsafe_combinations('wide', keys := [{keys}], max_size := 2)").fetchall()) == 60
