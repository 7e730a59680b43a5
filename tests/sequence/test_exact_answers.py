"""What exact answers isolate: the tracker of the paper's page, and all questions compared one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdcduck.methods.sequence.exact import ExactAnswers
from sdcduck.methods.sequence.knowledge import TooMuchKnown
from sdcduck.methods.sequence.rehearsal import Limit, rehearse
from sdcduck.methods.sequence.sets import Cells, Sets, same_rows

PEOPLE = Cells.numbered([11, 1, 8])  # men; the one woman in Law; the other women: 20 people


@pytest.mark.parametrize("mode", ["atoms", "pairwise", "rank"])
def test_the_tracker_stops_at_the_question_that_isolates(mode: str) -> None:
    """M, F, and M or (F and Law): all of 12, 9 and 11 people; with k = 3 the third is refused."""
    asked = Sets.of_lists([[0], [1, 2], [0, 1]])
    found = list(rehearse(PEOPLE, asked, np.arange(3), np.zeros(3), Limit(mode, 3, 0.8)))
    assert [one.answered for one in found] == [True, True, False]
    if mode != "rank":
        assert found[2].smallest == 1


@pytest.mark.parametrize("mode", ["atoms", "pairwise", "rank"])
def test_a_question_about_one_is_refused(mode: str) -> None:
    [found] = rehearse(PEOPLE, Sets.of_lists([[1]]), np.arange(1), np.zeros(1), Limit(mode, 3, 0.8))
    assert not found.answered
    [found] = rehearse(PEOPLE, Sets.of_lists([[0, 2]]), np.arange(1), np.zeros(1), Limit(mode, 3, 0.8))
    assert not found.answered  # all but one: how many there are is known


def test_pairwise_misses_what_only_an_intersection_isolates() -> None:
    """The one of the last cell but one is in both of two sets of nine that are else apart."""
    cells, asked = Cells.numbered([4, 4, 4, 4, 1, 20]), Sets.of_lists([[0, 1, 4], [2, 3, 4]])
    verdicts = {
        mode: [one.answered for one in rehearse(cells, asked, np.arange(2), np.zeros(2), Limit(mode, 3, 0.8))]
        for mode in ("atoms", "pairwise")
    }
    assert verdicts == {"atoms": [True, False], "pairwise": [True, True]}


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 8), st.booleans())
def test_atoms_and_differences_are_those_of_single_records(seed: int, cells: int, sets: int, together: bool) -> None:
    chance = np.random.default_rng(seed)
    sizes = chance.integers(0, 5, cells).astype(float)
    rows = chance.random((sets, cells)) < 0.4
    record = np.repeat(np.arange(cells), sizes.astype(int))
    member, everybody = rows[:, record], np.ones((1, len(record)), bool)
    answered, kept = ExactAnswers(Cells.numbered(sizes)), everybody
    groups = [np.arange(sets)] if together else [np.array([place]) for place in range(sets)]
    for group in groups:
        found = answered.would(Sets.of_rows(rows[group]))
        new = np.vstack([kept, member[group]])
        before = {tuple(np.flatnonzero((column == kept.T).all(axis=1))) for column in kept.T}
        after = {tuple(np.flatnonzero((column == new.T).all(axis=1))) for column in new.T}
        assert found.smallest_atom == min((len(atom) for atom in after - before), default=np.inf)
        if found.new_sets == len(group):
            apart = [(one & ~other).sum() for one in member[group] for other in new]
            apart += [(other & ~one).sum() for one in member[group] for other in new]
            sized = [one.sum() for one in member[group]]
            assert found.smallest_difference == min((size for size in apart + sized if size > 0), default=np.inf)
        answered.keep(found)
        answered = ExactAnswers.from_bytes(answered.to_bytes())
        kept = new


def test_a_group_of_nobody_is_as_small_as_one_of_few() -> None:
    """Nobody is in the last cell but one: men, and men with her, are not told apart only if that is known."""
    cells, asked = Cells.numbered([11, 0, 9]), [[0], [0, 1]]
    for empty_is_small, least in ((False, np.inf), (True, 0.0)):
        answered = ExactAnswers(cells, empty_is_small=empty_is_small)
        answered.keep(answered.would(Sets.of_lists([asked[0]])))
        found = answered.would(Sets.of_lists([asked[1]]))
        assert found.smallest_atom == least
        assert found.smallest_difference == (0.0 if empty_is_small else 9.0)


def test_the_whole_and_nobody_at_all_are_no_new_groups() -> None:
    answered = ExactAnswers(Cells.numbered([5, 0, 5]), empty_is_small=True)
    assert answered.would(Sets.of_lists([[0, 1, 2], []])).smallest_atom == np.inf


@pytest.mark.parametrize(
    ("refused", "asked", "apart"),
    [
        ([0], [0, 1], 1),  # nobody less, one more
        ([0, 2], [0, 1], 2),  # two less, one more
        ([0], [0], np.inf),
        ([0, 1], [0, 3], 30),
        ([], [0, 3], 32),
    ],
)
def test_how_far_a_new_set_is_from_a_refused_one(refused: list[int], asked: list[int], apart: float) -> None:
    answered = ExactAnswers(Cells.numbered([2, 1, 2, 30]), empty_is_small=True)
    assert answered.would(Sets.of_lists([asked])).nearest_refused == np.inf
    answered.refuse(Sets.of_lists([refused]))
    answered = ExactAnswers.from_bytes(answered.to_bytes())
    assert answered.would(Sets.of_lists([asked])).nearest_refused == apart


@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(1, 7))
def test_rank_refuses_when_a_unit_vector_is_in_the_row_space(seed: int, cells: int, sets: int) -> None:
    chance = np.random.default_rng(seed)
    rows = (chance.random((sets, cells)) < 0.5).astype(float)
    answered = np.ones((1, cells))
    limit = Limit("rank", 2, 0.8)
    found = rehearse(Cells.numbered(np.full(cells, 2.0)), Sets.of_rows(rows), np.arange(sets), np.zeros(sets), limit)
    for row, verdict in zip(rows, found, strict=True):
        matrix = np.vstack([answered, row])
        rank = np.linalg.matrix_rank(matrix)
        exposed = any(np.linalg.matrix_rank(np.vstack([matrix, unit])) == rank for unit in np.eye(cells))
        assert verdict.answered is not (exposed and verdict.new_sets > 0)
        if verdict.answered:
            answered = matrix


def test_rank_looks_at_sums_of_contributions() -> None:
    """3 a + b and a + b say both; a + b and 2 (a + b) say one thing twice."""
    cells, limit = Cells.numbered([1, 1, 30]), Limit("rank", 3, 0.8)
    told = [
        [one.answered for one in rehearse(cells, Sets.of_rows(rows), np.arange(2), np.zeros(2), limit)]
        for rows in ([[1, 1, 1], [1, 1, 3]], [[3, 1, 2], [1, 1, 2]])
    ]
    assert told[0] == [True, False]  # the difference is the pair, a group of two
    assert told[1][0] is True


def test_what_is_logged_is_kept_all_the_same() -> None:
    asked, limit = Sets.of_lists([[1], [1, 2], [0, 1]]), Limit("atoms", 3, 0.8)
    kept = [
        [one.answered for one in rehearse(PEOPLE, asked, np.arange(3), np.zeros(3), limit, keep_refused=log)]
        for log in (False, True)
    ]
    assert kept == [[False, True, False], [False, True, True]]  # once isolated, she is not isolated again


def test_too_much_is_refused() -> None:
    answered = ExactAnswers(Cells.numbered(np.ones(100)), most_bytes=3_000)
    answered.keep(answered.would(Sets.of_rows(np.eye(100)[:5])))
    with pytest.raises(TooMuchKnown):
        answered.would(Sets.of_rows(np.eye(100)))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=40))
def test_the_same_rows_have_the_same_numbers(rows: list[tuple[int, int]]) -> None:
    found = same_rows(np.array(rows, np.uint64).reshape(-1, 2)).tolist()
    numbers: dict[tuple[int, int], int] = {}
    assert found == [numbers.setdefault(row, len(numbers)) for row in rows]
