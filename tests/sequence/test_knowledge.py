"""What answers teach together, beside a dense covariance, a Gaussian posterior and all answers that are possible."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sdcduck.methods.sequence.knowledge import Answers, Knowledge, TooMuchKnown
from sdcduck.methods.sequence.sets import Cells, Sets

Matrix = NDArray[np.float64]


def posterior(sizes: Matrix, rows: Matrix, variances: Matrix) -> Matrix:
    """The covariance of the numbers of all cells, given all answers at once."""
    prior = np.diag(sizes / 4)
    inner = rows @ prior @ rows.T + np.diag(variances)
    return np.asarray(prior - prior @ rows.T @ np.linalg.pinv(inner, rcond=1e-11, hermitian=True) @ rows @ prior)


def asked(rows: Matrix, variance: float | Matrix) -> dict[str, Answers]:
    return {"s": Answers.of(Sets.of_rows(rows), variance)}


@st.composite
def sequences(draw: st.DrawFn) -> tuple[Matrix, list[Matrix], list[Matrix]]:
    """Sizes, the rows of each question, and their variances."""
    chance = np.random.default_rng(draw(st.integers(0, 10**6)))
    cells = draw(st.integers(1, 14))
    sizes = chance.integers(0, 6, cells).astype(np.float64)
    weighted = draw(st.booleans())
    questions, variances = [], []
    kinds = draw(st.sampled_from([(0.0,), (1.2, 2.0), (0.0, 2.0)]))
    for _ in range(draw(st.integers(1, 5))):
        rows = (chance.random((draw(st.integers(1, 6)), cells)) < draw(st.sampled_from([0.2, 0.5, 0.9]))).astype(float)
        if weighted:
            rows *= chance.integers(1, 4, rows.shape)
        questions.append(rows)
        variances.append(chance.choice(kinds, len(rows)))
    return sizes, questions, variances


@given(sequences())
def test_it_is_the_posterior_of_all_answers(sequence: tuple[Matrix, list[Matrix], list[Matrix]]) -> None:
    """Whatever is asked in whatever pieces, saved and read again in between, and each set once."""
    sizes, questions, variances = sequence
    known, seen, told = Knowledge({"s": Cells.numbered(sizes)}), {}, Knowledge({"s": Cells.numbered(sizes)})
    for rows, spread in zip(questions, variances, strict=True):
        new: dict[bytes, float] = {}
        for row, variance in zip(rows, spread, strict=True):
            if row.any() and row.tobytes() not in seen:
                new[row.tobytes()] = min(variance, new.get(row.tobytes(), np.inf))
        would = known.would(asked(rows, spread))
        assert would.new_sets == len(new)
        seen |= new
        before = known.covariance("s")
        assert np.array_equal(before, known.covariance("s"))
        known.keep(would)
        told.replay(would.journal)
        known = Knowledge.from_bytes(known.to_bytes())
        all_rows = np.array([np.frombuffer(key) for key in seen]).reshape(-1, len(sizes))
        expected = posterior(sizes, all_rows, np.array(list(seen.values())))
        assert known.covariance("s") == pytest.approx(expected, abs=1e-6)
        share = np.sqrt(
            np.clip(np.divide(np.diag(expected), sizes / 4, where=sizes > 0, out=np.ones(len(sizes))), 0, 1)
        )
        assert known.errors("s") == pytest.approx(share, abs=2e-3)
        small = (sizes > 0) & (sizes < 3)
        assert would.least_error <= share[small].min(initial=1) + 2e-3
    assert told.covariance("s") == pytest.approx(known.covariance("s"), abs=1e-9)


@given(sequences())
def test_the_least_error_is_that_of_a_small_cell_or_atom(sequence: tuple[Matrix, list[Matrix], list[Matrix]]) -> None:
    sizes, questions, variances = sequence
    known = Knowledge({"s": Cells.numbered(sizes)})
    for rows, spread in zip(questions, variances, strict=True):
        known.keep(known.would(asked(rows, spread)))
    covariance = known.covariance("s")
    atoms = [np.array(columns) for columns in np.unique(np.vstack(questions), axis=1).T]
    groups = [np.eye(len(sizes))[cell] for cell in range(len(sizes))]
    groups += [(atom == np.vstack(questions).T).all(axis=1).astype(float) for atom in atoms]
    errors = [
        np.sqrt(max(group @ covariance @ group, 0) / (group @ sizes / 4)) for group in groups if 0 < group @ sizes < 3
    ]
    assert known.least_error() == pytest.approx(min(errors, default=1), abs=2e-3)


def test_errors_are_those_of_all_answers_that_are_possible() -> None:
    """Exact counts over 12 persons: what is left is the spread of the persons among all secrets that fit on average."""
    chance = np.random.default_rng(3)
    sizes, rows = np.ones(12), (chance.random((5, 12)) < 0.5).astype(float)
    known = Knowledge({"s": Cells.numbered(sizes)})
    known.keep(known.would(asked(rows, 0.0)))
    secrets = np.array(list(itertools.product([0.0, 1.0], repeat=12)))
    design = np.column_stack([np.ones(len(secrets)), secrets @ rows.T])
    fitted = design @ np.linalg.lstsq(design, secrets, rcond=None)[0]
    assert known.errors("s") == pytest.approx(np.sqrt(((secrets - fitted) ** 2).mean(axis=0) * 4), abs=1e-6)


def test_one_count_of_one_person() -> None:
    """tau^2 = 1/4, so the error is sqrt(v / (v + 1/4))."""
    known = Knowledge({"s": Cells.numbered([1, 9])})
    would = known.would(asked(np.array([[1.0, 0.0]]), 2.0))
    assert would.least_error == pytest.approx(np.sqrt(2 / 2.25))
    assert (would.new_sets, would.smallest_atom) == (1, 1)


def test_the_same_set_teaches_nothing() -> None:
    known = Knowledge({"s": Cells(np.array([7, 3, 5], np.uint64), np.array([1.0, 1.0, 4.0]))})
    first = known.would({"s": Answers.of(Sets.of_lists([[2, 0], [0, 2, 2]]), [2.0, 1.0])})
    assert first.new_sets == 1
    known.keep(first)
    assert known.would({"s": Answers.of(Sets.of_lists([[0, 2], []]), 0.5)}).new_sets == 0
    assert known.sets == 1


def test_exact_answers_from_which_a_person_follows() -> None:
    known = Knowledge({"s": Cells.numbered([1, 1, 1_000_000])})
    assert known.would(asked(np.array([[1.0, 1, 1], [0, 1, 1]]), 0.0)).least_error == 0
    known.keep(known.would(asked(np.array([[1.0, 1, 1]]), 0.0)))
    assert known.least_error() > 0.99
    known.keep(known.would(asked(np.array([[0.0, 1, 1]]), 0.0)))
    assert known.errors("s").tolist()[0] == 0
    assert known.errors("s")[1] > 0.99


def test_ranks_stay_right_where_much_is_large() -> None:
    """Four million units in one cell, and 60 exact answers of which the last ones follow from the first."""
    chance = np.random.default_rng(1)
    sizes = np.concatenate([[4_000_000.0], np.ones(39)])
    basis = (chance.random((20, 40)) < 0.5).astype(float)
    basis[:, 0] = 1
    known = Knowledge({"s": Cells.numbered(sizes)})
    for begin in range(0, 20, 4):
        known.keep(known.would(asked(basis[begin : begin + 4], 0.0)))
    implied = basis[:10] - basis[10:]
    before = known.errors("s")
    known.keep(known.would(asked(implied, 0.0)))
    assert known.errors("s") == pytest.approx(before, abs=1e-4)
    exposed = [np.linalg.matrix_rank(np.vstack([basis, unit])) == 20 for unit in np.eye(40)]
    assert (known.errors("s") == 0).tolist() == exposed


def test_several_secrets_are_known_apart() -> None:
    known = Knowledge({"a": Cells.numbered([1, 1]), "b": Cells.numbered([1, 5])})
    question = {"a": Answers.of(Sets.of_lists([[0]]), 1.0), "b": Answers.of(Sets.of_lists([[1]]), 1.0)}
    would = known.would(question)
    assert would.by_secret["a"] == would.least_error == pytest.approx(np.sqrt(1 / 1.25))
    assert would.by_secret["b"] == 1  # the cell of one was not asked for, and five are no small group
    known.keep(would)
    again = Knowledge.from_bytes(known.to_bytes())
    assert again.errors("a").tolist() == known.errors("a").tolist()
    assert again.would(question).new_sets == 0


def test_what_is_granted_is_the_base() -> None:
    known = Knowledge({"s": Cells.numbered([1, 1, 8])})
    rows = np.array([[1.0, 0, 0], [0, 1, 0]])
    known.grant(asked(rows, 1.0))
    assert known.least_error() == 1
    would = known.would(asked(np.array([[1.0, 1, 0]]), 1.0))
    variance = posterior(np.array([1.0, 1, 8]), np.vstack([rows, [1, 1, 0]]), np.ones(3))[0, 0]
    assert would.least_error == pytest.approx(np.sqrt(variance / 0.2))
    known.keep(would)
    with pytest.raises(ValueError, match="before the first question"):
        Knowledge.from_bytes(known.to_bytes()).grant(asked(rows, 1.0))


def test_many_answers_take_no_more_room_than_atoms() -> None:
    chance = np.random.default_rng(2)
    sizes, kept = np.ones(10), []
    known = Knowledge({"s": Cells.numbered(sizes)})
    for _ in range(30):
        rows = (chance.random((20, 10)) < 0.5).astype(float)
        kept += rows.tolist()
        known.keep(known.would(asked(rows, 3.0)))
    different = np.unique(np.array(kept), axis=0)
    different = different[different.any(axis=1)]
    assert known.covariance("s") == pytest.approx(posterior(sizes, different, np.full(len(different), 3.0)), abs=1e-9)
    assert len(known.to_bytes()) < 16 * known.sets + 3000


def test_what_cannot_be_kept_is_refused_and_changes_nothing() -> None:
    known = Knowledge({"s": Cells.numbered(np.ones(50))}, most_bytes=9_000)
    rows = np.eye(50)
    known.keep(known.would(asked(rows[:5], 1.0)))
    before = known.to_bytes()
    with pytest.raises(TooMuchKnown):
        known.would(asked(rows, 1.0))
    assert known.to_bytes() == before


@pytest.mark.parametrize("place", [0, 9, 60, -1, -40])
def test_damage_is_seen(place: int) -> None:
    data = bytearray(Knowledge({"s": Cells.numbered([1, 2])}).to_bytes())
    data[place] ^= 1
    with pytest.raises(ValueError, match="damaged"):
        Knowledge.from_bytes(bytes(data))
    with pytest.raises(ValueError, match="damaged"):
        Knowledge.from_bytes(bytes(data[:place]))


def test_what_was_written_once_can_be_read() -> None:
    """The format is that of the first release that had it."""
    known = Knowledge({"s": Cells.numbered([1, 2])})
    known.keep(known.would(asked(np.array([[1.0, 0]]), 2.0)))
    assert known.to_bytes()[:8] == b"SDCSEQ01"
    assert Sets.of_lists([[1, 0]]).keys(np.array([5, 3], np.uint64))[0].hex() == "28c0013cc0038cbec11fb7255c646058"


def test_a_question_that_was_tried_before_another_was_kept_is_tried_again() -> None:
    known = Knowledge({"s": Cells.numbered([1, 2])})
    one, other = (known.would(asked(np.array([row]), 1.0)) for row in ([1.0, 0], [1.0, 1]))
    known.keep(one)
    with pytest.raises(ValueError, match="try it again"):
        known.keep(other)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Cells.numbered([1, -1]), "at least 0"),
        (lambda: Cells.numbered([np.nan]), "at least 0"),
        (lambda: Cells(np.array([1, 1], np.uint64), np.ones(2)), "same name"),
        (lambda: Answers.of(Sets.of_lists([[0]]), -1.0), "variance"),
        (lambda: Answers.of(Sets.of_lists([[0]]), np.inf), "variance"),
        (lambda: Sets.of_pairs([0, 0], [1, 1], 1, [1.0, 2.0]), "two weights"),
        (lambda: Sets.of_pairs([0], [1], 1, [np.nan]), "finite"),
        (lambda: Sets.of_pairs([1], [1], 1), "numbered"),
        (lambda: Knowledge({}).would(asked(np.ones((1, 1)), 1.0)), "no secret"),
        (lambda: Knowledge({"s": Cells.numbered([1])}).would(asked(np.ones((1, 2)), 1.0)), "not there"),
    ],
)
def test_bad_input(make: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()  # type: ignore[operator]


def test_sums_that_follow_are_no_news() -> None:
    """Many exact answers, one at a time: as many columns are kept as the rank of what was asked."""
    chance = np.random.default_rng(3)
    known, rows = Knowledge({"": Cells.numbered(np.ones(32))}), np.zeros((0, 32))
    grid = np.arange(32) % 4, np.arange(32) // 4 % 4, np.arange(32) // 16
    for _ in range(80):
        lists = [chance.choice(4, chance.integers(1, 5), replace=False) for _ in "ab"]
        row = np.isin(grid[0], lists[0]) & np.isin(grid[1], lists[1]) & np.isin(grid[2], chance.integers(0, 2, 2))
        known.keep(known.would({"": Answers.of(Sets.of_rows(row.astype(float)), 0.0)}))
        rows = np.vstack([rows, row])
        left = np.linalg.matrix_rank(known.covariance(""), tol=1e-6)
        assert left == 32 - np.linalg.matrix_rank(rows)


def test_errors_of_sums_are_shares_of_what_one_number_of_their_own_leaves() -> None:
    """By the whole covariance: a group may be known as well as one noisy sum of it alone tells, and little better."""
    chance, units, spread = np.random.default_rng(4), np.array([1.0, 2, 1, 4, 2, 9]), 0.01
    known = Knowledge({"sum": Cells.numbered(units)}, own={"sum": spread})
    rows = (chance.random((9, 6)) < 0.5).astype(float)
    own = units / 4 * spread / (units / 4 + spread)
    for count in range(1, len(rows) + 1):
        known.keep(known.would({"sum": Answers.of(Sets.of_rows(rows[count - 1]), spread)}))
        asked = rows[:count]
        inner = (asked * (units / 4)) @ asked.T + spread * np.eye(count)
        left = units / 4 - (units / 4) ** 2 * np.einsum("ij,ij->j", asked, np.linalg.solve(inner, asked))
        assert known.errors("sum") == pytest.approx(np.minimum(np.sqrt(left / own), 1), abs=1e-9)
        assert Knowledge.from_bytes(known.to_bytes()).errors("sum").tolist() == known.errors("sum").tolist()
    assert known.least_error() < 0.9
    alone = Knowledge({"sum": Cells.numbered([1.0, 5])}, own={"sum": spread})
    found = alone.would({"sum": Answers.of(Sets.of_lists([[0]]), spread)})
    assert found.least_error == pytest.approx(1)
    alone.keep(found)
    again = alone.would({"sum": Answers.of(Sets.of_lists([[0, 1]]), spread)})
    assert 0.98 < again.least_error < 1, "its own number is the base, and the total adds little"
