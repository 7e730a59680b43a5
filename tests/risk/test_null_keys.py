"""Keys that hold NULL count in part for the classes that they may belong to: ``alpha``."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import duckdb
import numpy as np
import pytest
from scipy.integrate import quad

from sdcduck.methods.risk.individual import class_risk

Row = tuple[int, int | None, int | None, int | None, float]


def rows_of(seed: int, records: int) -> list[Row]:
    drawn = random.Random(seed)
    return [
        (place, *(drawn.choice([1, 2, 3, None]) for _ in range(3)), float(drawn.randrange(1, 40)))  # type: ignore[misc]
        for place in range(records)
    ]


def by_hand(rows: list[Row], alpha: float) -> list[tuple[float, float]]:
    """Frequency in the sample and in the population of each record: a pair at a time, from the definition."""
    found = []
    for one in rows:
        records = population = 0.0
        for other in rows:
            keys = list(zip(one[1:4], other[1:4], strict=True))
            if one[1:4] == other[1:4]:
                part = 1.0
            elif all(a is None or b is None or a == b for a, b in keys):
                part = alpha if None in other[1:4] else 1.0
            else:
                part = 0.0
            records += part
            population += part * other[4]
        found.append((records, population))
    return found


@pytest.mark.parametrize(("seed", "alpha"), list(itertools.product(range(2), (0, 0.1, 0.5, 1))))
def test_against_counting_by_hand(con: duckdb.DuckDBPyConnection, seed: int, alpha: float) -> None:
    rows = rows_of(seed, 90)
    con.execute("CREATE TABLE t (id INTEGER, a INTEGER, b INTEGER, c INTEGER, w DOUBLE)")
    con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    call = f"'t', keys := ['a', 'b', 'c'], nulls := 'match', alpha := {alpha}"
    wanted = np.array(by_hand(rows, alpha))
    found = con.execute(
        f"SELECT class_records, class_population, risk FROM sdc_individual_risk({call}, weight := 'w') ORDER BY id"
    ).fetchall()
    assert np.array(found)[:, :2] == pytest.approx(wanted, rel=1e-12)
    assert np.array(found)[:, 2] == pytest.approx(class_risk(wanted[:, 0], wanted[:, 1]), rel=1e-10)
    classes = con.execute(
        f"SELECT t.id, d.records, d.population FROM t JOIN sdc_classes({call}, weight := 'w') d ON t.a IS NOT DISTINCT "
        "FROM d.a AND t.b IS NOT DISTINCT FROM d.b AND t.c IS NOT DISTINCT FROM d.c ORDER BY id"
    ).fetchall()
    assert np.array(classes, dtype=float)[:, 1:] == pytest.approx(wanted, rel=1e-12)
    (anonymous,) = con.execute(
        f"SELECT records, k, uniques, below_k, mean_risk FROM sdc_k_anonymity({call})"
    ).fetchall()
    counts = wanted[:, 0]
    assert anonymous == pytest.approx(
        (90, counts.min(), (counts == 1).sum(), (counts < 3).sum(), (1 / counts).mean()), rel=1e-12
    )
    (expected,) = con.execute(f"SELECT expected FROM sdc_global_risk({call}, weight := 'w')").fetchall()
    assert expected[0] == pytest.approx(sum(row[2] for row in found), rel=1e-12)


def test_what_sdcmicro_says_of_it(con: duckdb.DuckDBPyConnection) -> None:
    # One record of five whose status was taken out; alpha 0.4, of which the package's own tests speak.
    con.execute(
        "CREATE TABLE t AS FROM (VALUES ('A', 'single'), ('A', 'married'), ('A', 'married'), ('A', 'single'), "
        "('A', NULL)) v(region, status)"
    )
    for alpha, known in ((1, 3), (0.4, 2.4), (0, 2)):
        found = dict(
            con.execute(
                f"SELECT status, records FROM sdc_classes('t', ['region', 'status'], nulls := 'match', alpha := {alpha})"
            ).fetchall()
        )
        assert found == {"single": pytest.approx(known), "married": pytest.approx(known), None: 5}


def test_the_example_of_sdcmicro(con: duckdb.DuckDBPyConnection, reference_data: Path) -> None:
    """The gaps that its manual makes in ``francdat``: who loses a value gains, and others by alpha only."""
    con.execute(
        "CREATE TABLE t AS SELECT row_number() OVER () AS id, * FROM "
        f"read_csv('{reference_data}/sdcmicro/input_francdat.csv.gz')"
    )
    con.execute("UPDATE t SET Key3 = NULL WHERE id = 3")
    con.execute("UPDATE t SET Key1 = NULL, Key2 = NULL WHERE id = 4")
    con.execute("UPDATE t SET Key4 = NULL WHERE id = 5")
    con.execute("UPDATE t SET Key1 = NULL WHERE id = 6")
    rows = con.execute("SELECT id, Key1, Key2, Key3, Key4, w FROM t ORDER BY id").fetchall()
    frequencies = {}
    for alpha in (1, 0.5, 0.1):
        found = con.execute(
            "SELECT class_records, class_population FROM sdc_individual_risk('t', ['Key1', 'Key2', 'Key3', 'Key4'], "
            f"weight := 'w', nulls := 'match', alpha := {alpha}) ORDER BY id"
        ).fetchall()
        wanted = [[0.0, 0.0] for _ in rows]
        for place, one in enumerate(rows):
            for other in rows:
                if all(a is None or b is None or a == b for a, b in zip(one[1:5], other[1:5], strict=True)):
                    part = alpha if None in other[1:5] and one[0] != other[0] else 1
                    wanted[place][0] += part
                    wanted[place][1] += part * other[5]
        assert np.array(found) == pytest.approx(np.array(wanted), rel=1e-12)
        frequencies[alpha] = [row[0] for row in found]
    assert frequencies[1] == [3, 2, 4, 3, 3, 2, 2, 3]
    assert frequencies[0.1] == pytest.approx([2.1, 1.1, 4, 2.1, 1.2, 1.1, 1.1, 2.1])


def test_the_risk_of_a_class_that_is_not_whole() -> None:
    """By the integral that the model comes from, and between the whole numbers beside it."""
    for p in (1e-4, 0.02, 0.4, 0.6, 0.95):
        f = np.array([1.0, 1.3, 2.0, 2.75, 3.0, 25.5])
        risk = class_risk(f, f / p)
        for one, size in zip(risk, f, strict=True):
            wanted, _ = quad(
                lambda u, size=size, p=p: p * u ** (size - 1) / (p + (1 - p) * u), 0, 1, points=[min(p, 0.5)],
                epsabs=1e-15, epsrel=1e-11, limit=200,
            )  # fmt: skip
            assert one == pytest.approx(wanted, rel=1e-9)
        assert (np.diff(risk) < 0).all()
    assert class_risk(np.array([2.4]), np.array([2.0])).tolist() == [1 / 2.4]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ("alpha := 0.5", "argument 'alpha' goes with nulls := 'match'"),
        ("nulls := 'match', alpha := 50", "argument 'alpha' must lie between 0 and 1.*50 per cent is 0.5"),
        ("nulls := 'match', alpha := -1", "argument 'alpha' must lie between 0 and 1"),
        ("nulls := 'match', alpha := NULL", "argument 'alpha' must lie between 0 and 1"),
        ("nulls := 'match', alpha := 'nan'::DOUBLE", "argument 'alpha' must lie between 0 and 1"),
    ],
)
def test_bad_arguments(lasting: duckdb.DuckDBPyConnection, more: str, text: str) -> None:
    lasting.execute("CREATE OR REPLACE TABLE t AS SELECT 1 AS a")
    for function in ("sdc_classes", "sdc_k_anonymity", "sdc_individual_risk", "sdc_global_risk"):
        with pytest.raises(duckdb.Error, match=text):
            lasting.execute(f"FROM {function}('t', keys := ['a'], {more})").fetchall()


def test_an_empty_table(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t (a INTEGER)")
    assert con.execute("FROM sdc_classes('t', ['a'], nulls := 'match', alpha := 0.5)").fetchall() == []
    assert con.execute("SELECT k FROM sdc_k_anonymity('t', ['a'], nulls := 'match', alpha := 0.5)").fetchall() == [
        (None,)
    ]


@pytest.mark.parametrize("alpha", [1, 0.37])
def test_populations_are_the_same_on_any_number_of_threads(con: duckdb.DuckDBPyConnection, alpha: float) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT CASE WHEN range % 3 > 0 THEN range END AS a, CASE WHEN range % 400 > 0 THEN range % 5 END "
        "AS b, 0.1 + range * 7919 % 1000 / 7 AS w FROM range(40000)"
    )
    found = set()
    for threads in (1, 2, 3):
        con.execute(f"SET threads = {threads}")
        asked = f"FROM sdc_classes('t', ['a', 'b'], weight := 'w', nulls := 'match', alpha := {alpha}) WHERE b IS NULL"
        found.add(repr(con.execute(f"{asked} ORDER BY ALL").fetchall()))
    assert len(found) == 1
