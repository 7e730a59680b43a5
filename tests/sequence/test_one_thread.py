"""Linear algebra of the sequence of answers takes one thread, and leaves the process as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits

from sdcduck.methods.sequence import knowledge
from sdcduck.methods.sequence.knowledge import Answers, Knowledge
from sdcduck.methods.sequence.one_thread import one_thread, threads
from sdcduck.methods.sequence.sets import Cells, Sets


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Whatever the machine has."""
    threads()
    with threadpool_limits(limits=2, user_api="blas"):
        assert threads() == {2}
        yield


@pytest.mark.usefixtures("two_threads")
def test_a_question_is_tried_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, orthogonal = [], knowledge._orthogonal

    def looked_at(*given: object) -> object:
        seen.append(threads())
        return orthogonal(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(knowledge, "_orthogonal", looked_at)
    Knowledge({"": Cells.numbered([1, 2, 3])}).would({"": Answers.of(Sets.of_lists([[0, 1]]), 2.0)})
    assert seen == [{1}]
    assert threads() == {2}


def test_one_works_at_a_time() -> None:
    """Each would put back what it found, which could be what another one had set."""
    before, seen, inside = threads(), [], threading.Event()

    def another() -> None:
        inside.set()
        with one_thread():
            seen.append(threads())

    thread = threading.Thread(target=another)
    with one_thread():
        thread.start()
        inside.wait()
        seen.append(threads())
        with one_thread():
            seen.append(threads())
        assert seen == [{1}, {1}]
    thread.join()
    assert seen == [{1}] * 3
    assert threads() == before


@pytest.mark.usefixtures("two_threads")
def test_an_error_puts_it_back() -> None:
    with pytest.raises(ValueError, match="there is no secret"):
        Knowledge({"": Cells.numbered([1])}).would({"other": Answers.of(Sets.of_lists([[0]]), 2.0)})
    assert threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_who_has_one_thread_keeps_it() -> None:
    with threadpool_limits(limits=1, user_api="blas"):
        with one_thread():
            assert threads() == {1}
        assert threads() == {1}
