"""Attacks on the digits of sums under suppression: floating-point numbers are rounded when they are added up.

Where two suppressed cells are in a sum that is shown, only their total may be seen. What is rounded on the way is up to
each of them, and to what else is added up: sums with other cells are a question each. Twins with the same published
numbers, of whom one gives to another what no published cell notices, must have the same answers to the bit.
"""

from __future__ import annotations

from itertools import combinations

import duckdb
import pytest
from effort import times

import sdcduck
from sdcduck.guard import guard

OTHERS = "ABEFGH"[: times(4, 6)]
CENTS = (0, 1, 98765, 10, 1234)[: times(3, 5)]
QUERY = "SELECT region, sex, count(*) AS n, sum(income) AS income FROM firms GROUP BY CUBE (region, sex)"


def made(cents: int, kind: str = "DOUBLE") -> duckdb.DuckDBPyConnection:
    """Firms of which four cells are suppressed, and so much goes round in these; other regions are larger."""
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute(f"CREATE TABLE firms (id INTEGER, region VARCHAR, sex VARCHAR, income {kind})")
    rows = [
        (region, sex, (1234567 + 7654321 * place + 333 * nth) * 8**place)
        for place, region in enumerate(OTHERS)
        for sex in "fm"
        for nth in range(6)
    ]
    rows += [("Y", "f", 123457 + cents), *[("Y", "m", 345679 - cents * (nth == 0)) for nth in range(6)]]
    rows += [("Z", "f", 567891 - cents), ("Z", "f", 22222)]
    rows += [("Z", "m", 456793 + cents * (nth == 0)) for nth in range(6)]
    con.executemany(
        "INSERT INTO firms VALUES (?, ?, ?, ?)", [(i, *row[:2], row[2] / 100) for i, row in enumerate(rows)]
    )
    con.execute(f"FROM sdc_publish('cells', '{QUERY}', max_count := 2)").fetchall()
    con.execute(
        "FROM sdc_protect('firms', unit := 'id', dimensions := ['region', 'sex'], measures := ['income'], "
        "method := 'suppression', publication := 'cells')"
    ).fetchall()
    return con


def questions() -> str:
    """The women of the two regions with suppressed cells, with those of any others."""
    some = [(*chosen, "Y", "Z") for number in range(len(OTHERS) + 1) for chosen in combinations(OTHERS, number)]
    shown = [f"{{sum}} FILTER (sex = 'f' AND region IN {regions})" for regions in some]
    return f"SELECT {', '.join(shown)} FROM {{table}}"


@pytest.mark.parametrize("kind", ["DOUBLE", "DECIMAL(15, 2)"])
def test_digits_of_sums_tell_nothing_of_suppressed_cells(kind: str) -> None:
    asked = questions().format(sum="sum(income)", table="firms")
    answers = set()
    for cents in CENTS:
        with made(cents, kind) as con:
            guarded = guard(con)
            assert (
                guarded.sql("SELECT sum(income) AS y FROM firms WHERE region = 'Y' AND sex = 'f'")["y"][0].as_py()
                is None
            )
            (answer,) = guarded.sql(asked).to_pylist()
            assert None not in answer.values()
            answers.add(repr(answer))
    assert len(answers) == 1


def test_the_digits_are_there_where_cells_are_added_up_as_they_are() -> None:
    plain = questions().format(sum="sum(income)", table="sdc.cells_stencil")
    answers = set()
    for cents in CENTS:
        with made(cents) as con:
            answers.add(repr(con.execute(plain).fetchall()))
    assert len(answers) > 1


@pytest.mark.parametrize(("kind", "different"), [("DOUBLE", True), ("DECIMAL(15, 2)", False)])
def test_published_sums_have_these_digits_unless_they_are_exact(kind: str, different: bool) -> None:
    """As docs/suppression.md says: what is published of floating-point numbers is their sum in all digits."""
    published = set()
    for cents in CENTS:
        with made(cents, kind) as con:
            shown = "SELECT region, sex, income FROM sdc.cells_cells WHERE status = 'open' ORDER BY ALL"
            published.add(repr(con.execute(shown).fetchall()))
    assert (len(published) > 1) == different


def test_sums_are_right_to_four_decimals() -> None:
    with made(0) as con:
        asked = "SELECT region, sex, sum(income) AS income FROM firms GROUP BY CUBE (region, sex)"
        original = {row[:2]: row[2] for row in con.execute(asked).fetchall()}
        shown = {(row["region"], row["sex"]): row["income"] for row in guard(con).sql(asked).to_pylist()}
    assert shown.keys() == original.keys()
    known = {key: value for key, value in shown.items() if value is not None}
    assert len(known) == len(shown) - 4
    for key, value in known.items():
        assert value == round(value, 4) == pytest.approx(original[key], rel=1e-12)
