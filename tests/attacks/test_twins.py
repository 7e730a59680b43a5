"""Twin data: the same records but for one unit, whose values are others. What may not depend on them must not.

Each question is asked of a table as it is, of the same with one income that nobody else has, of the same without that
unit, and with the unit as somebody like nobody else. Record keys stay, and so does the noise of what is counted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from attacked_database import LONG, leaks
from effort import times
from fixtures_of_attacks import show
from test_forms_read_in_two_ways import DIMENSIONS, EXPRESSIONS, PEOPLE, PLACES, PUBLIC, QUERIES

import sdcduck
from sdcduck.guard import Guard, Refused, guard

sys.path.insert(0, str(Path(__file__).parents[1] / "guard" / "acceptance"))
from table import guarded, queries

INCOME = 987_654_321_987
MARKED = {*range(776_900, 777_100), *range(INCOME - 100, INCOME + 100)}
"""The values of the unit, and what is made of them by adding or taking away a little."""
UNIT = "person_id = 900000000001 + 5 * 1000003"
LIKE_NOBODY = f"""
    UPDATE people SET region = 'marked', sex = 'marked', age = 777001, d = '1777-07-07', ts = '1777-07-07 07:07:07', r = 777.125,
    pat = 'marked', l = [777001, 777002, 777003], st = {{'a': 777001, 'Region': 'marked', 'income': 777002}}, ok = NULL,
    income = {INCOME} WHERE {UNIT}"""
SUPPRESSED = ["region", "sex", "age", "ok", "pat"]
METHODS = {
    "cell_key": ", min_units := 3",
    "threshold": ", method := 'threshold', min_units := 3",
    "rounding": ", method := 'rounding', base := 5",
    "suppression": ", method := 'suppression', publication := 'cells'",
}
PRIVATE = (
    ", method := 'dp', epsilon := 1000, delta := 1e-9, per_question := 1, bounds := {'income': [0, 1e6]}, "
    "domains := {'region': ['N', 'S', 'E', 'W'], 'sex': ['f', 'm'], 'age': range(0, 100)}"
)
Answers = dict[str, pa.Table]


class Twins:
    """People under one method, of whom one is changed between questions."""

    def __init__(self, method: str, arguments: str, file: Path | str = ":memory:") -> None:
        self.method = method
        self.con = sdcduck.connect(file, secret="the secret of the tests")
        # So many that no group is seen or not because of one of them.
        self.con.execute(PEOPLE.replace("range(400)", "range(8000)")).execute(PUBLIC)
        # Alone it is published as 1, and rounded to 0.
        self.con.execute(f"UPDATE people SET record_key = 42345683 WHERE {UNIT}")
        self.publish()
        dimensions = SUPPRESSED if method == "suppression" else DIMENSIONS
        self.con.execute(
            f"FROM sdc_protect('people', unit := 'person_id', dimensions := {dimensions}, measures := ['income']{arguments})"
        ).fetchall()
        for table in ("regions", "nums"):
            self.con.execute(f"FROM sdc_declare_public('{table}')").fetchall()
        self.guard = guard(self.con)

    def publish(self) -> None:
        if self.method == "suppression":
            self.con.execute(
                "FROM sdc_publish('cells', 'SELECT region, sex, age, ok, pat, count(*) AS n, sum(income) AS income FROM people "
                "GROUP BY GROUPING SETS ((region, sex, age), (ok, pat, region))', max_count := 2)"
            ).fetchall()

    def change(self, statement: str) -> None:
        self.con.execute(statement)
        self.publish()


def answers(one: Guard, texts: list[str]) -> Answers:
    """What is answered; what is refused is left out."""
    found = {}
    for text in texts:
        try:
            found[text] = one.sql(text)
        except Refused as refused:
            assert refused.code != "SDC060"
    return found


def rows(answer: pa.Table, places: list[int]) -> list[str]:
    """Some columns of an answer, in no order; the last digits of a deviation depend on the order of groups."""
    columns = ([_shown(value) for value in answer.column(place).to_pylist()] for place in places)
    return sorted(map(repr, zip(*columns, strict=True)))


def _shown(value: object) -> object:
    return f"{value:.12g}" if isinstance(value, float) else value


def shows_marks(answer: pa.Table) -> bool:
    values = answer.to_pylist()
    text = repr(values)
    # The year stands at the beginning of a date, and in no number by chance.
    return bool(leaks(values, MARKED)) or "marked" in text.lower() or bool(re.search(r"(?<![\d.])1777(?!\d)", text))


def of_no_number(one: Guard, text: str) -> list[int]:
    """The columns of an answer that are groups of records, or public."""
    return [place for place, column in enumerate(one.explain(text).columns) if column.kind in ("group", "public")]


def forms(first: int) -> list[str]:
    """Queries, and expressions in one place each, or in all; another ``first`` gives other places.

    In each run only every fourth of them, so that each is asked under one method.
    """
    step = times(len(METHODS), 1)
    chosen = [
        place.replace("{}", expression)
        for number, expression in enumerate(EXPRESSIONS, first // step)
        for at, place in enumerate(PLACES)
        if LONG or number % len(PLACES) == at
    ]
    return [*chosen, *QUERIES][first % step :: step]


def of_incomes(one: Guard, text: str) -> bool:
    return '."income"' in one.rewrite(text)


@pytest.mark.parametrize("method", METHODS)
def test_one_unit_is_seen_in_no_group_and_in_no_value(method: str, show: Callable[[str], None]) -> None:
    twins = Twins(method, METHODS[method])
    texts = forms(list(METHODS).index(method))
    plain = answers(twins.guard, texts)
    twins.change(f"UPDATE people SET income = {INCOME} WHERE {UNIT}")
    richer = answers(twins.guard, texts)
    assert plain.keys() == richer.keys()
    for text, answer in richer.items():
        assert not shows_marks(answer), text
        every = list(range(answer.num_columns))
        same = of_no_number(twins.guard, text) if of_incomes(twins.guard, text) else every
        assert rows(answer, same) == rows(plain[text], same), text
    if method != "suppression":  # which groups have records at all can be seen there
        twins.change(LIKE_NOBODY)
        beside = answers(twins.guard, texts)
        twins.change(f"DELETE FROM people WHERE {UNIT}")
        without = answers(twins.guard, texts)
        assert plain.keys() == beside.keys() == without.keys()
        for text, answer in beside.items():
            assert not shows_marks(answer), text
            same = of_no_number(twins.guard, text)
            assert rows(answer, same) == rows(without[text], same), text
    show(f"{method}: {len(plain)} of {len(texts)} forms answered, none with anything of one unit")


def test_one_unit_is_seen_in_nothing_but_private_totals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, show: Callable[[str], None]
) -> None:
    """Each total is drawn as 1000, whatever it is: then answers and refusals are the same to the last letter.

    What noisy totals tell is measured by `test_private_answers`.
    """
    pytest.importorskip("opendp")
    noise = pytest.importorskip("sdcduck.methods.dp.noise")
    monkeypatch.setattr(noise, "noisy", lambda totals, scale, gaussian: [1000] * len(totals))
    monkeypatch.setattr(noise, "chosen", lambda histograms, *_, gaussian: [500] * len(histograms))
    twins = Twins("dp", PRIVATE, tmp_path / "twins.duckdb")
    texts = forms(0)
    plain = answers(twins.guard, texts)
    for change in (
        f"UPDATE people SET income = {INCOME} WHERE {UNIT}",
        LIKE_NOBODY,
        f"DELETE FROM people WHERE {UNIT}",
    ):
        twins.change(change)
        found = answers(twins.guard, texts)
        assert plain.keys() == found.keys()
        for text, answer in found.items():
            assert not shows_marks(answer), text
            assert answer == plain[text], text
    assert len(plain) >= 5
    twins.con.close()
    show(
        f"dp: {len(plain)} of {len(texts)} forms answered, none with anything of one unit but its part of noisy totals"
    )


def test_the_marks_are_found_where_nothing_is_protected() -> None:
    twins = Twins("threshold", ", method := 'threshold', min_units := 1")
    twins.change(LIKE_NOBODY)
    found = answers(twins.guard, forms(0))
    assert sum(map(shows_marks, found.values())) > len(found) // 3


@pytest.mark.parametrize(("method", "first"), [("cell_key", 0), ("threshold", 1)])
def test_what_people_ask_shows_no_income_of_one_unit(method: str, first: int) -> None:
    """In each run, of every second question."""
    with guarded(method, own=True) as one:
        step = times(2, 1)
        texts = [query.sql for query in queries() if query.parameters is None][first % step :: step]
        plain = answers(one, texts)
        one._con.execute(f"UPDATE people SET income = {INCOME} WHERE person_id = 77")
        richer = answers(one, texts)
        assert plain.keys() == richer.keys()
        for text, answer in richer.items():
            assert not shows_marks(answer), text
            if not of_incomes(one, text):
                every = list(range(answer.num_columns))
                assert rows(answer, every) == rows(plain[text], every), text
