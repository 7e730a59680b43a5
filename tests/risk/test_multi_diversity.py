"""Several sensitive columns at once: against counting by hand, the function for one of them, and the figures of R."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

COLUMNS = ["s", 'value "2"', "_value0"]  # names that the planner might use itself


def measures(values: list[Any], c: float) -> tuple[int, float, int]:
    counts = sorted(Counter(values).values(), reverse=True)
    shares = [n / len(values) for n in counts]
    recursive = max((n for n in range(1, len(counts) + 1) if counts[0] < c * sum(counts[n - 1 :])), default=0)
    return len(counts), math.exp(-sum(p * math.log(p) for p in shares)), recursive


def by_hand(rows: list[tuple[Any, ...]], keys: int, c: float) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """By class and place of the sensitive column: records, the three measures, and those with the others as keys."""
    found = {}
    for place in range(len(rows[0]) - keys):
        classes: dict[Any, list[Any]] = defaultdict(list)
        parts: dict[Any, dict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            key, values = row[:keys], row[keys:]
            classes[key].append(values[place])
            parts[key][values[:place] + values[place + 1 :]].append(values[place])
        for key, members in classes.items():
            worst = [measures(part, c) for part in parts[key].values()]
            along = tuple(min(one[at] for one in worst) for at in range(3))
            found[(*key, place)] = (len(members), *measures(members, c), *along)
    return found


@pytest.mark.parametrize("c", [0.7, 2, 3])
def test_against_counting_by_hand(lasting: duckdb.DuckDBPyConnection, c: float) -> None:
    drawn = random.Random(int(10 * c))
    rows = [
        (
            drawn.choice("xy"),
            drawn.choice([1, None]),
            drawn.randrange(3),
            drawn.choice("ppq"),
            drawn.choice([0, 0, 7, None]),
        )
        for _ in range(200)
    ]
    lasting.execute(
        'CREATE OR REPLACE TABLE t ("_key0" VARCHAR, b INTEGER, s INTEGER, "value ""2""" VARCHAR, _value0 INTEGER)'
    )
    lasting.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    call = f"""'t', keys := ['_key0', 'b'], sensitive := ['s', 'value "2"', '_value0'], c := {c}"""
    wanted = by_hand(rows, 2, c)
    found = lasting.execute(f"FROM sdc_multi_diversity_classes({call})").fetchall()
    assert len(found) == len(wanted) == 12
    for row in found:
        assert row[3:] == pytest.approx(wanted[(*row[:2], COLUMNS.index(row[2]))], rel=1e-12)
    whole = lasting.execute(f"FROM sdc_multi_diversity({call})").fetchall()
    assert [row[0] for row in whole] == COLUMNS
    for place, row in enumerate(whole):
        mine = [figures for key, figures in wanted.items() if key[-1] == place]
        assert row[1:] == pytest.approx((200, 4, *(min(one[at] for one in mine) for at in range(1, 7))), rel=1e-12)
        # For one column it says what the function for one says.
        (one,) = lasting.execute(
            "SELECT distinct_l, entropy_l, recursive_l FROM sdc_l_diversity('t', ['_key0', 'b'], sensitive := ?, c := ?)",
            [row[0], c],
        ).fetchall()
        assert row[3:6] == pytest.approx(one)


def test_two_illnesses_that_give_each_other_away(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT 1 AS a, i % 3 AS one, i % 3 AS other, i % 2 AS free FROM range(12) r(i)")
    assert (
        con.execute(
            "SELECT distinct_l, multi_distinct_l, multi_entropy_l, multi_recursive_l "
            "FROM sdc_multi_diversity('t', ['a'], ['one', 'other'])"
        ).fetchall()
        == [(3, 1, 1.0, 1)] * 2
    )
    found = con.execute(
        "SELECT multi_distinct_l, multi_entropy_l, multi_recursive_l FROM sdc_multi_diversity('t', ['a'], ['one', 'free'])"
    ).fetchall()
    assert found == [(3, pytest.approx(3), 3), (2, pytest.approx(2), 2)]


def test_a_survey_as_in_r(con: duckdb.DuckDBPyConnection, reference_data: Path) -> None:
    folder = reference_data / "sdcmicro"
    con.execute(f"CREATE TABLE survey AS SELECT row_number() OVER () AS place, * FROM '{folder}/input_testdata.csv.gz'")
    keys = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")
    con.execute(
        f"CREATE TABLE found AS FROM sdc_multi_diversity_classes('survey', {list(keys)}, ['income', 'savings'])"
    )
    for column in ("income", "savings"):
        wanted = con.execute(
            f"SELECT {column}_Distinct_Ldiversity, {column}_Entropy_Ldiversity, {column}_Recursive_Ldiversity "
            f"FROM '{folder}/testdata_ldiversity.csv'"
        ).fetchall()
        found = con.execute(
            "SELECT distinct_l, entropy_l, recursive_l FROM survey s JOIN found f USING "
            f"({', '.join(keys)}) WHERE f.sensitive = '{column}' ORDER BY place"
        ).fetchall()
        assert np.array(found, dtype=float) == pytest.approx(np.array(wanted, dtype=float), rel=1e-9)
    # R says 0 of both columns together, for every record; by the definition it is 1: who knows the one knows the other.
    assert con.execute("SELECT DISTINCT multi_distinct_l, multi_recursive_l FROM found").fetchall() == [(1, 1)]
    assert con.execute(
        f"SELECT DISTINCT MultiEntropy_Ldiversity, MultiRecursive_Ldiversity FROM '{folder}/testdata_ldiversity.csv'"
    ).fetchall() == [(0, 0)]


def test_null(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE t AS FROM (VALUES (1, 1, 1), (1, 2, NULL), (1, NULL, 2), (NULL, 1, 1), (1, 1, 2)) v(a, x, y)"
    )
    rows = {
        nulls: con.execute(
            f"SELECT records, classes, distinct_l, multi_distinct_l FROM sdc_multi_diversity('t', ['a'], ['x', 'y'], nulls := '{nulls}')"
        ).fetchall()
        for nulls in ("category", "drop", "skip")
    }
    assert rows == {"category": [(5, 2, 1, 1)] * 2, "drop": [(4, 1, 3, 1)] * 2, "skip": [(2, 1, 1, 1), (2, 1, 2, 2)]}
    con.execute("DELETE FROM t")
    assert con.execute("FROM sdc_multi_diversity('t', ['a'], ['x', 'y'])").fetchall() == []


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ("", "argument 'sensitive' must name two columns or more"),
        ("sensitive := ['x']", "argument 'sensitive' must name two columns or more: sdc_l_diversity is for one"),
        ("sensitive := ['x', 'x']", "names column 'x' twice"),
        ("sensitive := ['x', 'z']", "unknown column 'z'"),
        ("sensitive := ['x', 'A']", "argument 'sensitive' must name other columns than 'keys'"),
        ("sensitive := ['x', 'y'], c := 0", "argument 'c' must be a number above 0"),
        ("sensitive := ['x', 'y'], nulls := 'match'", "argument 'nulls' must be 'category', 'drop' or 'skip'"),
    ],
)
def test_bad_arguments(lasting: duckdb.DuckDBPyConnection, more: str, text: str) -> None:
    lasting.execute("CREATE OR REPLACE TABLE t AS SELECT 1 AS a, 2 AS x, 3 AS y")
    for function in ("sdc_multi_diversity", "sdc_multi_diversity_classes"):
        with pytest.raises(duckdb.Error, match=text):
            lasting.execute(f"FROM {function}('t', keys := ['a']{', ' * bool(more)}{more})").fetchall()
