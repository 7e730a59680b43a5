"""Accuracy over margins: the published figures of the Adult files, an independent count, identities, and bad input."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdcduck
from sdcduck.methods.utility.buckets import bucket_codes, order_statistics, quantile_breaks
from sdcduck.methods.utility.margins import chunks_of_subsets, count_margins, distances, worst_cells

# Platzer and Reutterer (2021), mean total variation for (1 column, 100 buckets), (2, 10), (3, 5).
ADULT = {
    "flip10": (0.005298452807, 0.016747473638, 0.029523035977),
    "flip50": (0.005031463522, 0.054200281756, 0.106113725004),
    "synthpop": (0.006495566330, 0.012617139355, 0.018545284715),
    "tvae": (0.276884465774, 0.426105313109, 0.493010923116),
}
ADULT_HOLDOUT = (0.010002320407, 0.015557258488, 0.020895095241)
ADULT_TRIPLES = {
    "flip20": 0.052230, "flip30": 0.073627, "flip40": 0.090810, "flip60": 0.118287, "flip70": 0.128003,
    "flip80": 0.134503, "flip90": 0.138931, "mostly": 0.024432, "ctgan": 0.263186, "copulagan": 0.264201,
    "gaussian_copula": 0.450248,
}  # fmt: skip
ADULT_SMALL = {
    "flip20": (0.005175, 0.027762), "flip30": (0.005600, 0.038621), "flip40": (0.005181, 0.046845),
    "ctgan": (0.158024, 0.209406), "copulagan": (0.131132, 0.207133),
}  # fmt: skip


@pytest.fixture(scope="module")
def adult(reference_data: Path) -> duckdb.DuckDBPyConnection:
    folder = reference_data / "adult"
    if not folder.is_dir():
        pytest.skip("the Adult files of the repository paper-fidelity-accuracy (BSD-3) are not in the reference data")
    con = sdcduck.connect()
    for name in {"trn", *ADULT, *ADULT_TRIPLES}:
        con.execute(f"CREATE TABLE {name} AS FROM read_csv('{folder}/adult_{name}.csv.gz')")
    return con


@pytest.mark.parametrize("name", ADULT)
@pytest.mark.parametrize("ways", [1, 2, 3])
def test_published_accuracy(adult: duckdb.DuckDBPyConnection, name: str, ways: int) -> None:
    found = adult.execute(f"SELECT tvd FROM sdc_accuracy('trn', '{name}', ways := {ways})").fetchone()
    assert found == (pytest.approx(ADULT[name][ways - 1], rel=1e-9),)


@pytest.mark.parametrize("ways", [1, 2, 3])
def test_published_accuracy_of_the_holdout(adult_halves: duckdb.DuckDBPyConnection, ways: int) -> None:
    found = adult_halves.execute(f"SELECT tvd FROM sdc_accuracy('trn', 'val', ways := {ways})").fetchone()
    assert found == (pytest.approx(ADULT_HOLDOUT[ways - 1], rel=1e-9),)


def test_other_published_accuracy(adult: duckdb.DuckDBPyConnection) -> None:
    for ways, wanted in ((3, ADULT_TRIPLES), (1, {n: v[0] for n, v in ADULT_SMALL.items()}),
                         (2, {n: v[1] for n, v in ADULT_SMALL.items()})):  # fmt: skip
        for name, value in wanted.items():
            found = adult.execute(f"SELECT tvd FROM sdc_accuracy('trn', '{name}', ways := {ways})").fetchone()
            assert found == (pytest.approx(value, abs=5.1e-7),), (name, ways)


def test_more_noise_is_less_accuracy_in_pairs_but_not_in_single_columns(adult: duckdb.DuckDBPyConnection) -> None:
    flips = [f"flip{share}" for share in (10, 20, 30, 40, 50)]
    by_ways = {
        ways: [
            adult.execute(f"SELECT tvd FROM sdc_accuracy('trn', '{name}', ways := {ways})").fetchone()[0]
            for name in flips
        ]  # type: ignore[index]
        for ways in (1, 2, 3)
    }
    assert by_ways[2] == sorted(by_ways[2])
    assert by_ways[3] == sorted(by_ways[3])
    assert by_ways[1] != sorted(by_ways[1])


# --- the same, counted in another way --------------------------------------------------------------------------------


def make_mixed(con: duckdb.DuckDBPyConnection) -> None:
    """Numbers with ties and spikes, texts, dates, decimals, booleans, NULL, NaN and infinities."""
    for name, salt in (("o", 1), ("s", 5)):
        con.execute(f"""
            CREATE OR REPLACE TABLE {name} AS SELECT
                CASE WHEN hash(i + {salt}) % 10 < 6 THEN 0 ELSE hash(i * 3 + {salt}) % 1000 END::INTEGER AS spiked,
                CASE WHEN hash(i * 5 + {salt}) % 20 = 0 THEN NULL ELSE 't' || hash(i * 7 + {salt}) % 9 END AS text,
                DATE '2020-01-01' + (hash(i * 11 + {salt}) % 700)::INTEGER AS day,
                (hash(i * 13 + {salt}) % 10000 / 100)::DECIMAL(9, 2) AS amount,
                hash(i * 17 + {salt}) % 3 = 0 AS flag,
                CASE hash(i * 19 + {salt}) % 12 WHEN 0 THEN 'nan' WHEN 1 THEN 'inf' WHEN 2 THEN NULL
                    ELSE (hash(i * 23 + {salt}) % 50)::VARCHAR END::DOUBLE AS strange
            FROM range(3000) r(i)""")


def coded(values: list[Any], reference: list[Any], buckets: int) -> list[Any]:
    """The buckets of a column, value by value."""
    if reference[0] is None or isinstance(reference[0], str | bool):
        counted = Counter(str(value) for value in reference if value is not None)
        top = [value for value, _ in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))][:buckets]
        return [None if value is None else (str(value) if str(value) in top else "other") for value in values]
    known = [float(value) for value in reference if value is not None and math.isfinite(value)]
    breaks = np.unique(np.quantile(known, np.arange(buckets + 1) / buckets))
    found: list[Any] = []
    for value in values:
        if value is None or math.isnan(value):
            found.append(None)
        elif not breaks[0] <= value <= breaks[-1]:
            found.append("other")
        else:
            found.append(max(0, int(np.searchsorted(breaks, float(value), side="left")) - 1))
    return found


@pytest.mark.parametrize(("ways", "buckets"), [(1, 100), (2, 10), (2, 3), (2, 60), (3, 5), (3, 1)])
def test_distances_are_those_of_a_count_record_by_record(
    con: duckdb.DuckDBPyConnection, ways: int, buckets: int
) -> None:
    make_mixed(con)
    columns = ["spiked", "text", "day", "amount", "flag", "strange"]
    shown = "spiked, text, epoch_us(day::TIMESTAMP), amount::DOUBLE, flag, strange"
    one, other = (list(zip(*con.execute(f"SELECT {shown} FROM {name}").fetchall(), strict=True)) for name in "os")
    codes = [
        (coded(list(a), list(a), buckets), coded(list(b), list(a), buckets)) for a, b in zip(one, other, strict=True)
    ]
    rows = con.execute(
        f"SELECT column_a, column_b, column_c, cells, tvd, l1, mae, max_difference, hellinger, tvd_expected "
        f"FROM sdc_accuracy_margins('o', 's', ways := {ways}, buckets := {buckets})"
    ).fetchall()
    assert [row[:ways] for row in rows] == list(combinations(columns, ways))
    for row in rows:
        sides = [
            Counter(zip(*[codes[columns.index(name)][side] for name in row[:ways]], strict=True)) for side in (0, 1)
        ]
        cells = set(sides[0]) | set(sides[1])
        p, q = ({cell: side[cell] / 3000 for cell in cells} for side in sides)
        l1 = sum(abs(p[cell] - q[cell]) for cell in cells)
        expected = sum(math.sqrt(2 / math.pi * p[cell] * (1 - p[cell]) * 2 / 3000) for cell in cells) / 2
        hellinger = math.sqrt(max(0.0, 1 - sum(math.sqrt(p[cell] * q[cell]) for cell in cells)))
        wanted = [len(cells), l1 / 2, l1, l1 / len(cells), max(abs(p[cell] - q[cell]) for cell in cells)]
        assert list(row[3:]) == pytest.approx([*wanted, hellinger, expected], rel=1e-9, abs=1e-7), row[:3]


def test_many_columns_are_counted_in_several_readings(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_mixed(con)
    whole = con.execute("FROM sdc_accuracy_margins('o', 's')").fetchall()
    monkeypatch.setattr("sdcduck.udfs.utility.accuracy._MEMORY", 1500)
    assert con.execute("FROM sdc_accuracy_margins('o', 's')").fetchall() == whole


# --- identities ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ways", [1, 2, 3])
def test_a_copy_is_accurate_and_warned_of(con: duckdb.DuckDBPyConnection, ways: int) -> None:
    make_mixed(con)
    accuracy, hellinger, ratio, warning = con.execute(
        f"SELECT accuracy, hellinger, ratio, warning FROM sdc_accuracy('o', '(FROM o ORDER BY random())', ways := {ways}, holdout := 's')"
    ).fetchone()  # type: ignore[misc]
    assert (accuracy, ratio) == (1, 0)
    assert hellinger == pytest.approx(0, abs=1e-7)
    assert "copies" in warning


def test_relabelling_and_the_order_of_records_change_nothing(con: duckdb.DuckDBPyConnection) -> None:
    make_mixed(con)
    plain = con.execute("SELECT tvd, l1, hellinger, tvd_expected FROM sdc_accuracy('o', 's')").fetchone()
    relabelled = (
        "(SELECT 2 * spiked + 7 AS spiked, 'x' || md5(text) AS text, day + 900 AS day, amount / 3 AS amount, "
        "NOT flag AS flag, strange - 5 AS strange FROM {} ORDER BY random())"
    )
    found = con.execute(
        "SELECT tvd, l1, hellinger, tvd_expected FROM sdc_accuracy($o, $s)",
        {"o": relabelled.format("o"), "s": relabelled.format("s")},
    ).fetchone()
    assert found == pytest.approx(plain)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40),
)
def test_bounds_and_symmetry(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    counts = []
    for records in (one, other):
        found = np.zeros((1, 16), np.uint32)
        count_margins(np.array(records, np.uint8).T.copy(), chunks_of_subsets(2, 2, 9)[0], 4, found)
        assert found.sum() == len(records)
        counts.append(found)
    there, back = distances(*counts), distances(*reversed(counts))
    assert there.l1[0] == pytest.approx(back.l1[0])
    assert 0 <= there.l1[0] / 2 <= 1 + 1e-12
    # Hellinger and total variation bound each other.
    hellinger, tvd = there.hellinger[0], there.l1[0] / 2
    assert hellinger**2 <= tvd + 1e-9
    assert tvd <= hellinger * math.sqrt(2 - hellinger**2) + 1e-9
    assert all(gap <= there.largest[0] + 1e-12 for gap, _, _ in worst_cells(*counts, 5))


def test_a_pair_is_at_least_as_far_apart_as_its_columns(con: duckdb.DuckDBPyConnection) -> None:
    make_mixed(con)
    single = dict(
        con.execute("SELECT column_a, tvd FROM sdc_accuracy_margins('o', 's', ways := 1, buckets := 6)").fetchall()
    )
    pairs = con.execute("SELECT column_a, column_b, tvd FROM sdc_accuracy_margins('o', 's', buckets := 6)").fetchall()
    assert all(tvd >= max(single[a], single[b]) - 1e-12 for a, b, tvd in pairs)


def test_the_expected_distance_is_that_of_two_samples(con: duckdb.DuckDBPyConnection) -> None:
    make_mixed(con)  # both tables are draws of one law
    found = con.execute("SELECT tvd, tvd_expected FROM sdc_accuracy('o', 's')").fetchone()
    assert found is not None
    assert found[0] == pytest.approx(found[1], rel=0.1)


@settings(deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, 1e308, -1e308, 5e-324]), min_size=1, max_size=60),
    st.integers(1, 12),
)
def test_quantiles_are_those_of_numpy(values: list[float], buckets: int) -> None:
    found = quantile_breaks(np.array(values), buckets)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = np.unique(np.quantile(values, np.arange(buckets + 1) / buckets))
    if np.isfinite(wanted).all():
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-300)


def test_quantiles_between_values_that_are_further_apart_than_there_are_numbers() -> None:
    assert quantile_breaks(np.array([1e308, -1e308]), 1).tolist() == [-1e308, 1e308]
    assert quantile_breaks(np.array([1e308, -1e308]), 4).tolist() == [-1e308, -5e307, 0, 5e307, 1e308]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from(["normal", "spike", "heavy", "whole"]))
def test_order_statistics_of_many_values_are_those_of_sorting(seed: int, law: str) -> None:
    draw = np.random.default_rng(seed)
    values = {
        "normal": lambda: draw.normal(size=9000),
        "spike": lambda: np.where(draw.random(9000) < 0.8, 0.0, draw.normal(size=9000)),
        "heavy": lambda: draw.standard_cauchy(9000) ** 9,
        "whole": lambda: draw.integers(0, 5, 9000).astype(float),
    }[law]()
    ranks = np.unique(draw.integers(0, 9000, 30))
    assert (order_statistics(values, ranks) == np.sort(values)[ranks]).all()


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 60])
def test_every_value_falls_into_one_bucket(left: bool, size: int) -> None:
    breaks = np.arange(float(size))
    values = np.array([-1.0, 0.0, 0.5, 1.0, size - 1.0, size, math.nan, math.inf, -math.inf])
    codes = np.empty(len(values), np.uint8)
    bucket_codes(values, breaks, codes, left=left)
    buckets = max(size - 1, 1)
    for value, code in zip(values, codes, strict=True):
        if math.isnan(value):
            assert code == buckets + 1
        elif not 0 <= value <= size - 1:
            assert code == buckets
        elif size > 1:
            inside = breaks[code] <= value < breaks[code + 1] if left else breaks[code] < value <= breaks[code + 1]
            assert inside or (value == breaks[-1] if left else value == breaks[0])
    bucket_codes(values, np.zeros(0), codes)
    assert set(codes.tolist()) == {0, 1}


# --- worst cells -----------------------------------------------------------------------------------------------------


def test_the_worst_cells_say_where(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT i % 2 AS a, CASE WHEN i % 10 = 0 THEN NULL ELSE 'k' || i % 3 END AS b, DATE '2020-01-01' + i::INTEGER AS d FROM range(100) r(i)"
    )
    rows = con.execute(
        "SELECT column_a, bucket_a, column_b, bucket_b, original, synthetic, difference "
        "FROM sdc_accuracy_cells('o', '(SELECT a, coalesce(b, ''new'') AS b, d FROM o)', columns := ['a', 'b'], categorical := ['a'], worst := 3)"
    ).fetchall()
    assert set(rows) == {("a", "0", "b", None, 10, 0, -0.1), ("a", "0", "b", "other", 0, 10, 0.1)}
    labels = con.execute(
        "SELECT DISTINCT bucket_a FROM sdc_accuracy_cells('o', '(FROM o LIMIT 10)', columns := ['d'], ways := 1, buckets := 2)"
    ).fetchall()
    assert {row[0] for row in labels} == {"[2020-01-01, 2020-02-19]", "(2020-02-19, 2020-04-09]"}


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'o', 'nobody'", "unknown table 'nobody'"),
        ("'o', 's', ways := 4", "argument 'ways' must be 1, 2 or 3"),
        ("'o', 's', ways := NULL", "argument 'ways' must be 1, 2 or 3"),
        ("'o', 's', buckets := 0", "argument 'buckets' must be a whole number from 1 to 250"),
        ("'o', 's', buckets := 251", "argument 'buckets' must be a whole number from 1 to 250"),
        ("'o', 's', columns := ['txt', 'flag']", "unknown column 'txt' in 'o'; did you mean 'text'"),
        ("'o', 's', columns := ['text', 'TEXT']", "names column 'text' twice"),
        ("'o', 's', columns := ['text', NULL]", "holds a NULL"),
        ("'o', 's', columns := ['text']", "ways := 2 needs at least 2 columns, there are 1"),
        ("'o', 's', categorical := ['sipked']", "did you mean 'spiked'"),
        ("'o', 's', columns := ['text', 'flag'], categorical := ['spiked']", "unknown column 'spiked' in those that are compared"),
        ("'o', '(SELECT 1 AS other)'", "no column in common"),
        ("'o', '(SELECT spiked::VARCHAR AS spiked, text FROM s)'", "column 'spiked' has numbers in 'o' and categories in the query"),
        ("'o', '(SELECT amount AS day, text FROM s)'", "column 'day' has dates or times in 'o' and numbers in the query"),
        ("'o', 's', holdout := '(SELECT 1 AS other)'", "no column in common"),
    ],
)  # fmt: skip
def test_bad_input(lasting: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    make_mixed(lasting)
    with pytest.raises(duckdb.Error, match=message.replace("(", r"\(").replace("[", r"\[")):
        lasting.execute(f"FROM sdc_accuracy({call})").fetchall()


def test_codes_of_different_types_are_compared_as_categories(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE o AS SELECT i % 5 AS code FROM range(100) r(i)")
    for cast in ("VARCHAR", "DOUBLE", "DECIMAL(9, 2)", "HUGEINT", "UTINYINT"):
        found = con.execute(
            f"SELECT tvd FROM sdc_accuracy('o', '(SELECT code::{cast} AS code FROM o)', ways := 1, categorical := ['code'])"
        ).fetchone()
        assert found == (0,), cast


@pytest.mark.parametrize("one", ["(FROM o LIMIT 0)", "(FROM o LIMIT 1)", "o"])
@pytest.mark.parametrize("other", ["(FROM s LIMIT 0)", "(FROM s LIMIT 1)"])
def test_empty_tables_and_single_records(lasting: duckdb.DuckDBPyConnection, one: str, other: str) -> None:
    make_mixed(lasting)
    for ways in (1, 2, 3):
        accuracy, warning = lasting.execute(
            f"SELECT accuracy, warning FROM sdc_accuracy('{one}', '{other}', ways := {ways})"
        ).fetchone()  # type: ignore[misc]
        if "LIMIT 0" in one + other:
            assert (accuracy, warning) == (None, "one of the tables is empty")
        else:
            assert 0 <= accuracy <= 1
    rows = lasting.execute(f"FROM sdc_accuracy_cells('{one}', '{other}')").fetchall()
    assert bool(rows) == ("LIMIT 0" not in one + other)
    assert (
        len(lasting.execute(f"FROM sdc_accuracy_margins('{one}', '{other}', holdout := '(FROM o LIMIT 0)')").fetchall())
        == 15
    )


def test_columns_without_values_and_constants(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT NULL::INTEGER AS nothing, NULL::VARCHAR AS void, 3 AS three, 'x' AS x, i FROM range(50) r(i)"
    )
    rows = con.execute(
        "SELECT column_a, tvd FROM sdc_accuracy_margins('o', '(SELECT 1 AS nothing, ''a'' AS void, 4 AS three, x, i FROM o)', ways := 1)"
    ).fetchall()
    assert dict(rows) == {"nothing": 1, "void": 1, "three": 1, "x": 0, "i": 0}
    warning = con.execute("SELECT warning FROM sdc_accuracy('o', 'o', ways := 1)").fetchone()
    assert warning is not None
    assert "nothing, void, three, x" in warning[0]


def test_queries_are_computed_once(con: duckdb.DuckDBPyConnection) -> None:
    # A draw by chance would otherwise be another one for each column.
    found = con.execute(
        "SELECT tvd FROM sdc_accuracy('(SELECT x, x AS y FROM (SELECT random() AS x FROM range(1000)))', '(SELECT x, x AS y FROM (SELECT random() AS x FROM range(1000)))')"
    ).fetchone()
    assert found is not None
    assert found[0] < 0.3


def test_times_and_zones_and_large_texts(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE o AS SELECT TIMESTAMPTZ '2020-01-01' + to_hours(i::INTEGER) AS z, TIME '00:00' + to_minutes(i % 1440) AS t, "
        "TIMESTAMP 'infinity' AS never, 'person ' || i AS name, [i] AS list, uuid() AS id FROM range(2000) r(i)"
    )
    assert con.execute("SELECT accuracy FROM sdc_accuracy('o', 'o')").fetchone() == (1,)
