"""Attacks with many answers, against every method: averages, differences, trackers.

Each prints its success beside that of who only guesses the most common value.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable

import pytest
from attacked_database import LONG, Attacked
from attacked_methods import ALONE, METHODS, ROUNDED_OF_FEW, WITHOUT_ZEROS, Person, compare_with_the_page, population
from effort import times
from fixtures_of_attacks import attacked, show

Show = Callable[[str], None]
PEOPLE, AGES, TARGETS = (1200, 100, 200) if LONG else (240, 30, 24)
CELLS = (
    [(region, age) for region in "NSEW" for age in (3, 7, 15, 100)]
    if LONG
    else [("S", 15), ("N", 7), ("E", 30)][: times(1, 3)]
)

WORDINGS = (
    "SELECT {what} FROM people WHERE {0} AND {1}",
    "SELECT {what} FROM people WHERE {1} AND {0}",
    "SELECT {what} FROM people WHERE ({0}) AND (({1}))",
    "SELECT {what} FILTER (WHERE {0}) FROM people WHERE {1}",
    "SELECT {what} FROM (SELECT * FROM people WHERE {0}) people WHERE {1}",
    "WITH c AS (SELECT * FROM people WHERE {1}) SELECT {what} FROM c AS people WHERE {0}",
    "SELECT {what} FROM people WHERE NOT (NOT ({0}) OR NOT ({1}))",
    "SELECT {what} FROM people WHERE {0} AND {1} AND 1 = 1 AND age > -{2}",
    "SELECT n FROM (SELECT {0} AS a, {1} AS b, {what} AS n FROM people GROUP BY ALL) WHERE a AND b",
    "SELECT n FROM (SELECT {0} AS a, {1} AS b, {what} AS n FROM people GROUP BY CUBE(a, b)) WHERE a AND b",
    "SELECT {what} FROM people WHERE CASE WHEN {0} THEN {1} ELSE false END",
)
ASKED = {
    "counts": (
        *(wording.replace("{what}", "count(*)") for wording in WORDINGS),
        "SELECT count(1) FROM people WHERE {0} AND {1}",
        "SELECT count(id) FROM people WHERE {0} AND {1}",
        "SELECT count(DISTINCT id) FROM people WHERE {0} AND {1}",
        "SELECT count_if({0} AND {1}) FROM people",
        "SELECT sum(CASE WHEN {0} AND {1} THEN 1 ELSE 0 END) FROM people",
    ),
    "sums": (
        *(wording.replace("{what}", "sum(income)") for wording in WORDINGS),
        "SELECT sum(CASE WHEN {0} AND {1} THEN income END) FROM people",
        "SELECT sum(2 * income) / 2 FROM people WHERE {0} AND {1}",
    ),
}
"""The same question in many words; {2} is a number of its own."""


@pytest.mark.parametrize("what", list(ASKED))
@pytest.mark.parametrize("method", list(METHODS))
def test_averaging_over_wordings(show: Show, method: str, what: str) -> None:
    """The same cell has the same answer however it is worded: an average says no more than one of them."""
    asked = population(method, 1, PEOPLE, AGES)
    exact = at_once = answered = total = 0
    for region, age in CELLS:
        chosen = [person.income for person in asked.people if person.region == region and person.age < age]
        truth = len(chosen) if what == "counts" else sum(chosen)
        answers = []
        for number, wording in enumerate(ASKED[what], 1):
            found = asked.answer(wording.format(f"people.region = '{region}'", f"people.age < {age}", number))
            if found is not None:  # a group that is not answered does not appear
                answers += found or [None]
        total += 1
        if not answers or answers[0] is None:
            assert set(answers) <= {None}
            continue
        assert None not in answers
        answered += 1
        values = [float(value) for value in answers]
        assert values == pytest.approx([values[0]] * len(values), rel=1e-9), (region, age, answers)
        exact += abs(statistics.fmean(values) - truth) < 0.5
        at_once += abs(values[0] - truth) < 0.5
    show(
        f"averaging over {len(ASKED[what])} wordings of {what}, {method}: {exact} of {total} exact, "
        f"one answer taken at its word: {at_once}; answered {answered}"
    )
    assert exact == at_once
    assert answered == (0 if (method, what) == ("rounding", "sums") else total) or method == "suppression"


def _changes(them: str) -> list[tuple[str, str]]:
    """The same difference inside many sets of other people."""
    return [
        (f"ill AND (age % {k} = {j} OR {them})", f"ill AND age % {k} = {j} AND NOT {them}")
        for k in ((2, 3, 5, 7) if LONG else (3,))
        for j in range(k)
    ]


def _parts(attack: str, person: Person) -> list[tuple[int, str]]:
    """What an attack adds up to learn how many of a group of one are ill: signs and conditions."""
    them, others = person.described, f"ill AND NOT {person.described}"
    if attack == "direct":
        return [(1, f"ill AND {them}")]
    if attack == "difference":  # by complementary filters: an individual tracker
        return [(1, "ill"), (-1, others)]
    if attack == "tracker":  # general: padded with a group and its complement, beside these without the person
        parts = ("age < 15", "age >= 15")
        return [(sign, f"ill AND ({who}{part})") for part in parts for sign, who in ((1, f"{them} OR "), (-1, ""))]
    if attack == "double tracker":  # padded with a group inside another one
        small, large = "age < 10", "age < 20"
        return [
            (1, f"ill AND {large}"), (1, f"ill AND ({them} OR {small})"), (-1, f"ill AND {small}"),
            (-1, f"ill AND {large} AND NOT ({them} AND {small})"),
        ]  # fmt: skip
    if attack == "union":
        near = f"region = '{person.region}'"
        return [(1, f"ill AND ({near} OR {them})"), (-1, f"ill AND {near} AND NOT {them}")]
    return [part for more, less in _changes(them) for part in ((1, more), (-1, less))]


def _guess(attack: str, values: list[int | None]) -> bool | None:
    """What is concluded from the terms of the sum; None: nothing."""
    if attack in ("overlapping", "changes"):
        differences = [
            more + less for more, less in zip(values[::2], values[1::2], strict=True)
            if more is not None and less is not None
        ]  # fmt: skip
        if not differences:
            return None
        return any(differences) if attack == "changes" else statistics.fmean(differences) > 0.5
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    # Answers about the same people are the same under every method, so that a difference tells that these are not the same.
    return sum(known) != 0 if attack != "direct" else sum(known) > 0.5


ATTACKS = {
    "direct": "asking for one person",
    "difference": "everybody, and everybody else",
    "tracker": "a general tracker",
    "double tracker": "a double tracker",
    "union": "a set, with and without the person",
    "overlapping": "the mean of three such differences",
    "changes": "whether any of the three is not 0",
}
"""And what the documentation calls them."""
BY_DIFFERENCE = list(ATTACKS)[1:]
SAME_SET = (
    "inherent in keys of records: the same set has the same noise, so two answers that differ show that the sets differ; "
    "a filter that leaves out one unit has to be refused (fewer than min_units units between two answers)"
)
ORIGINAL = "inherent in thresholds: both sides of a difference are original numbers"
NOT_PROMISED = {
    ALONE: dict.fromkeys(ATTACKS, SAME_SET)
    | {"direct": "a published count above 0 is certain: min_units := 1 is no protection"},
    "cell_key": dict.fromkeys(BY_DIFFERENCE, SAME_SET),
    "suppression": {},
    "threshold": dict.fromkeys(BY_DIFFERENCE, ORIGINAL),
    # The tracker's parts are mostly rounded alike here.
    "rounding": dict.fromkeys((attack for attack in BY_DIFFERENCE if LONG or attack != "tracker"), SAME_SET),
}
"""Attacks that do better than guessing at present, and why: what `docs/guard.md` says of them."""


@pytest.mark.parametrize(
    ("method", "attack"),
    [
        pytest.param(
            method, attack, marks=pytest.mark.xfail(strict=True, raises=AssertionError, reason=reasons[attack]) if attack in reasons else ()
        )
        for method, reasons in NOT_PROMISED.items() for attack in ATTACKS if method != ALONE or LONG or attack == "direct"
    ],
)  # fmt: skip
def test_differences_and_trackers(show: Show, method: str, attack: str) -> None:
    """Is somebody ill who is alone in a region, of an age and a sex? Who learns nothing takes the likelier answer."""
    asked = population(method, 2, PEOPLE, AGES)
    targets = asked.alone[:TARGETS]
    asked.count(*(condition for person in targets for _, condition in _parts(attack, person)))  # all at once
    likelier = Counter(person.ill for person in targets).most_common(1)[0][0]
    suppressed = asked.suppressed() if method == "suppression" else set()
    found = certain = hidden = 0
    for person in targets:
        signs, conditions = zip(*_parts(attack, person), strict=True)
        values = [
            None if value is None else sign * value for sign, value in zip(signs, asked.count(*conditions), strict=True)
        ]
        guess = _guess(attack, values)
        certain += guess is not None
        found += (likelier if guess is None else guess) == person.ill
        if (*person.known, True) in suppressed:
            hidden += 1
            assert guess is None, person
    modal = sum(person.ill == likelier for person in targets)
    show(f"{attack}, {method}: {found} of {len(targets)} secrets right, {certain} told; modal guess {modal}")
    compare_with_the_page(ATTACKS[attack], method, found, modal, len(targets))
    assert len(targets) >= 20
    assert hidden > 15 or method != "suppression"
    assert found <= modal + 0.05 * len(targets)


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(
            name, marks=pytest.mark.xfail(strict=True, raises=AssertionError, reason=ORIGINAL) if name == "threshold" else ()
        )
        for name in ("cell_key", "threshold", ROUNDED_OF_FEW)
    ],
)  # fmt: skip
def test_whether_there_is_a_number(show: Show, method: str) -> None:
    """Two people who are known to be among the counted, and one who may be the third: three are enough.

    Others for each: with the same two the answers would tell whose sets are the same.
    """
    asked = population(method, 2, PEOPLE, AGES)
    targets = asked.alone[:TARGETS]
    ill = [person.described for person in asked.alone if person.ill]
    found = told = 0
    for place, person in enumerate(targets):
        others = [known for known in ill if known != person.described]
        first, second = others[2 * place % len(others)], others[(2 * place + 1) % len(others)]
        (number,) = asked.count(f"(ill AND {person.described}) OR {first} OR {second}")
        told += number is not None
        found += (number is not None) == person.ill
    likelier = Counter(person.ill for person in targets).most_common(1)[0][1]
    show(f"whether there is a number, {method}: {found} of {len(targets)} secrets right, {told} told; modal {likelier}")
    compare_with_the_page("whether three are enough", method.split(",")[0], found, likelier, len(targets))
    # By the original number it would be all of them.
    assert found <= likelier + 0.05 * len(targets)


INNER_CELLS = "combinations without records can be seen, unless zeros are protected: see `docs/guard.md`"


@pytest.mark.parametrize(
    "method",
    [
        *METHODS,
        pytest.param(
            WITHOUT_ZEROS, marks=pytest.mark.xfail(strict=True, raises=AssertionError, reason=INNER_CELLS)
        ),
    ],
)  # fmt: skip
def test_groups_that_appear(show: Show, method: str) -> None:
    """Not a number, but whether there is a row: that some of those like a person are ill, or that some are not."""
    asked = population(method, 2, PEOPLE, AGES)
    targets = asked.alone[:TARGETS]
    likelier = Counter(person.ill for person in targets).most_common(1)[0][0]
    shown = asked.guarded.sql("SELECT region, age, sex, ill, count(*) AS n FROM people GROUP BY ALL").to_pylist()
    found = certain = 0
    for person in targets:
        seen = {row["ill"] for row in shown if (row["region"], row["age"], row["sex"]) == person.known}
        certain += len(seen) == 1
        found += (next(iter(seen)) if len(seen) == 1 else likelier) == person.ill
    modal = sum(person.ill == likelier for person in targets)
    show(f"groups that appear, {method}: {found} of {len(targets)} secrets right, {certain} told; modal guess {modal}")
    compare_with_the_page("whether a group appears", method, found, modal, len(targets))
    assert found <= modal + 0.05 * len(targets)


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(
            name, marks=pytest.mark.xfail(strict=True, raises=AssertionError, reason=ORIGINAL) if name == "threshold" else ()
        )
        for name in METHODS
    ],
)  # fmt: skip
def test_differences_of_sums(show: Show, method: str) -> None:
    """What does somebody earn, to within a twentieth? Who learns nothing takes the median."""
    asked = population(method, 2, PEOPLE, AGES)
    targets = asked.alone[:TARGETS]
    suppressed = asked.suppressed() if method == "suppression" else set()
    median = statistics.median(person.income for person in asked.people)
    found = certain = modal = hidden = 0
    for person in targets:
        near = f"region = '{person.region}' AND sex = '{person.sex}'"
        answers = asked.answer(
            f"WITH a AS (SELECT sum(income) AS s FROM people WHERE {near}), "
            f"b AS (SELECT sum(income) AS s FROM people WHERE {near} AND age <> {person.age}) SELECT a.s - b.s FROM a, b"
        )
        told = answers[0] if answers else None
        certain += told is not None
        hidden += (*person.known, None) in suppressed
        assert told is None or (*person.known, None) not in suppressed
        guess = median if told is None else float(told)
        found += abs(guess - person.income) < person.income / 20
        modal += abs(median - person.income) < person.income / 20
    show(
        f"differences of sums, {method}: {found} of {len(targets)} incomes, {certain} told; the median is right for {modal}"
    )
    compare_with_the_page("an income to within 5 %, by difference", method, found, modal, len(targets))
    assert hidden > 15 or method != "suppression"
    assert found <= modal + 0.05 * len(targets)


def test_rows_and_units_do_not_share_their_noise(attacked: Attacked, show: Callable[[str], None]) -> None:
    """Where nobody has more than two rows, rows - 2 * units is how many have one: exactly, if both had the same noise."""
    told = asked = usual = 0
    for region in ("N", "S", "E"):
        for age in range(20, 25):
            where = f"WHERE region = '{region}' AND age = {age}"
            answer = attacked.attempt(f"SELECT 2 * count(DISTINCT person_id) - count(*) AS ones FROM stays {where}")
            units = attacked.attempt(f"SELECT count(DISTINCT person_id) AS n FROM stays {where}")
            assert isinstance(answer, list)
            assert isinstance(units, list)
            ones, both = attacked.con.execute(
                f"SELECT count(*) FILTER (n = 1), count(*) FROM (SELECT count(*) AS n FROM stays {where} GROUP BY person_id)"
            ).fetchall()[0]
            asked, told, usual = asked + 1, told + (answer[0]["ones"] == ones), usual + (units[0]["n"] == both)
    show(f"rows - 2 * units told {told} of {asked} exactly; a count of units {usual}")
    assert told <= asked // 2
