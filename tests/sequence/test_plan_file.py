"""The file of plans: from step to step and nowhere else, for any number of processes, and whatever happens to the file."""

from __future__ import annotations

import json
import multiprocessing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from full_disk import no_more_than
from hypothesis import given, settings
from hypothesis import strategies as st
from test_plan_chain import PRIVATE, PUBLIC, SIGNATURE, STATEMENTS, TRACES

from sdcduck.catalog import plan_file
from sdcduck.catalog.plan_file import Asker, PlanError, PlanFile, Sealed, plan_file_beside
from sdcduck.errors import SDCError
from sdcduck.methods.sequence import plans
from sdcduck.methods.sequence.plans import Binding

ANN, BOB = Asker("ann", "analyst"), Asker("bob", "analyst")
T = [bytes.fromhex(trace) for trace in TRACES]
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def signed(head: bytes = T[0], binding: Binding | None = None, *keys: bytes) -> Sealed:
    message = plans.message(head, binding)
    return Sealed(head, [(plans.public_key(key), plans.sign(key, message)) for key in keys or (PRIVATE,)], binding)


def sealed_texts(texts: list[str]) -> list[bytes]:
    return plans.traces([plans.block(text, step, bytes(16)) for step, text in enumerate(texts, 1)])


@pytest.fixture
def file(tmp_path: Path) -> PlanFile:
    found = PlanFile(plan_file_beside(tmp_path / "people.duckdb"))
    found.open(ANN, "income", Sealed(T[0], [(bytes.fromhex(PUBLIC), bytes.fromhex(SIGNATURE))]))
    return found


def answered(file: PlanFile, step: int) -> None:
    file.finish(file.reveal(ANN, "income", T[step], STATEMENTS[step - 1]))


def states(file: PlanFile) -> list[tuple[str, int]]:
    return [(line["state"], line["step"]) for line in file.lines()]


def test_a_plan_goes_to_its_end(file: PlanFile) -> None:
    assert file.path.name == "people.duckdb.plans"
    for step in (1, 2, 3):
        assert file.plan(ANN, "income").step == step
        revealed = file.reveal(ANN, "income", T[step], STATEMENTS[step - 1])
        assert (revealed.step, revealed.last) == (step, step == 3)
        file.finish(revealed)
    assert file.plan(ANN, "income").state == "done"
    with pytest.raises(PlanError, match="has ended: all of its steps were answered"):
        file.reveal(ANN, "income", T[3], STATEMENTS[2])
    assert states(PlanFile(file.path)) == [
        ("awaiting", 0), ("revealed", 1), ("awaiting", 1), ("revealed", 2), ("awaiting", 2), ("revealed", 3), ("done", 3),
    ]  # fmt: skip


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize(
    ("told", "text", "why"),
    [
        ("flipped", None, "the trace opens no step"),
        ("the one before", None, "the trace opens no step"),
        ("the one after", None, "the trace opens no step"),
        ("cut short", None, "the trace opens no step"),
        ("right", "SELECT 1", "the text of the question is not the one that was sealed"),
        ("right", "", "the text of the question is not the one that was sealed"),
    ],
)
def test_what_does_not_open_aborts(file: PlanFile, before: int, told: str, text: str | None, why: str) -> None:
    for step in range(1, before + 1):
        answered(file, step)
    right = T[before + 1]
    trace = {
        "right": right, "flipped": bytes([right[0] ^ 1]) + right[1:], "cut short": right[:-1], "the one before": T[before],
        "the one after": T[before + 2] if before < 2 else bytes(64),
    }[told]  # fmt: skip
    with pytest.raises(PlanError, match=why):
        file.reveal(ANN, "income", trace, STATEMENTS[before] if text is None else text)
    for other in (file, PlanFile(file.path)):
        with pytest.raises(PlanError, match=f"aborted at step {before + 1}, {why}"):
            other.reveal(ANN, "income", right, STATEMENTS[before])


def test_a_refused_question_aborts_and_the_rest_stays_secret(file: PlanFile) -> None:
    answered(file, 1)
    file.finish(file.reveal(ANN, "income", T[2], STATEMENTS[1]), "SDC041")
    with pytest.raises(PlanError, match=r"aborted at step 2, since its question was refused \(SDC041\)"):
        file.reveal(ANN, "income", T[3], STATEMENTS[2])
    kept = file.path.read_bytes()
    assert TRACES[3].encode() not in kept
    assert plans.hash_of_text(STATEMENTS[2]).hex().encode() not in kept
    assert not [text for text in STATEMENTS if text.encode() in kept]


def test_a_plan_is_opened_once(file: PlanFile) -> None:
    with pytest.raises(PlanError, match="a plan is opened once"):
        file.open(ANN, "income", signed(sealed_texts(["SELECT 1"])[0]))
    with pytest.raises(PlanError, match="this plan was opened before"):
        file.open(ANN, "again", signed())
    file.open(BOB, "income", signed())  # his own, of which he has no trace


@pytest.mark.parametrize("asker", [BOB, Asker("ann", "other")])
def test_plans_of_others_are_not_seen(file: PlanFile, asker: Asker) -> None:
    with pytest.raises(PlanError, match="no plan 'income' of yours"):
        file.reveal(asker, "income", T[1], STATEMENTS[0])
    assert file.lines(asker) == []
    answered(file, 1)  # and it did no harm


def test_every_signature_has_to_be_right(tmp_path: Path) -> None:
    file, other = PlanFile(tmp_path / "plans"), bytes(range(32, 64))
    good = signed(T[0], None, PRIVATE, other)
    (key, by), second = good.signatures
    wrong = "a signature is not that of its key"
    for signatures in (
        [], [(key, by[:-1] + bytes([by[-1] ^ 1])), second], [(key, by), (key, second[1])], [(b"", by)], [(key, b"")],
    ):  # fmt: skip
        with pytest.raises(PlanError, match=wrong):
            file.open(ANN, "income", Sealed(T[0], signatures))
    with pytest.raises(PlanError, match=wrong):
        file.open(ANN, "income", Sealed(T[1], good.signatures))
    with pytest.raises(PlanError, match="64 bytes"):
        file.open(ANN, "income", Sealed(T[0][:-1], good.signatures))
    assert not file.path.exists()
    file.open(ANN, "income", good)
    assert file.lines()[0]["keys"] == [PUBLIC, plans.public_key(other).hex()]


@pytest.mark.parametrize("name", ["", " ", "x" * 201])
def test_a_plan_has_a_name(file: PlanFile, name: str) -> None:
    with pytest.raises(PlanError, match="a name of 1 to 200 characters"):
        file.open(ANN, name, signed(sealed_texts(["SELECT 1"])[0]))


@pytest.mark.parametrize(("steps", "aborts_at"), [(2, 2), (4, 3), (3, None)])
def test_number_of_steps_that_was_signed_holds(tmp_path: Path, steps: int, aborts_at: int | None) -> None:
    file = PlanFile(tmp_path / "plans")
    file.open(ANN, "income", signed(T[0], Binding(steps=steps)))
    for step in (1, 2, 3):
        if step == aborts_at:
            with pytest.raises(PlanError, match="another number of steps than was signed"):
                answered(file, step)
            return
        answered(file, step)
    assert file.plan(ANN, "income").state == "done"


def test_its_time_ends_and_a_clock_that_is_set_back_does_not_help(tmp_path: Path) -> None:
    now = [NOON]
    file = PlanFile(tmp_path / "plans", clock=lambda: now[0])
    bound = Binding("survey", steps=3, expires=int((NOON + timedelta(hours=2)).timestamp()))
    now[0] += timedelta(hours=3)
    with pytest.raises(PlanError, match="its time is over"):
        file.open(ANN, "income", signed(T[0], bound))
    now[0] = NOON
    file.open(ANN, "income", signed(T[0], bound))
    answered(file, 1)
    now[0] += timedelta(hours=2)
    file.open(BOB, "other", signed(sealed_texts(["SELECT 1"])[0]))
    now[0] = NOON  # set back
    for one in (file, PlanFile(file.path, clock=lambda: now[0])):
        with pytest.raises(PlanError, match="its time is over"):
            answered(one, 2)
    times = [line["time"] for line in file.lines()]
    assert times == sorted(times)


def test_a_step_whose_answer_never_left_may_be_revealed_once_more(file: PlanFile) -> None:
    lost = file.reveal(ANN, "income", T[1], STATEMENTS[0])
    again = PlanFile(file.path).reveal(ANN, "income", T[1], STATEMENTS[0])
    with pytest.raises(PlanError, match="revealed once more"):
        file.finish(lost)
    file.finish(again)
    with pytest.raises(PlanError):
        file.finish(again)
    assert file.plan(ANN, "income").step == 2
    with pytest.raises(PlanError, match="opens no step"):  # but not once it was answered
        answered(file, 1)


@pytest.mark.parametrize(
    ("trace", "text", "why"), [(2, 1, "before the one before it was answered"), (1, 1, "the text")]
)
def test_no_step_before_the_one_before_it_is_answered(file: PlanFile, trace: int, text: int, why: str) -> None:
    running = file.reveal(ANN, "income", T[1], STATEMENTS[0])
    with pytest.raises(PlanError, match=why):
        file.reveal(ANN, "income", T[trace], STATEMENTS[text])
    with pytest.raises(PlanError, match="aborted"):
        file.finish(running)


def test_a_tracker_is_stopped_at_the_query_that_isolates_somebody(tmp_path: Path) -> None:
    """Spec 10, 3.5: all four pass a test of their size; the sequence control bites at M or (F and Law), and the plan ends.

    20 people, 11 M with incomes of 600 together, 9 F of 500, one of them in Law with 85. The control is the one of 2.7, 3:
    no newly separated atom of 1 to k - 1 records.
    """
    k, men, women = 3, frozenset(range(11)), frozenset(range(11, 20))
    law = frozenset([11])
    income = dict.fromkeys(men, 600 / 11) | dict.fromkeys(women, (500 - 85) / 8) | {11: 85}
    asked = {
        "SELECT count(*), sum(income) FROM staff WHERE sex = 'M'": men,
        "SELECT count(*), sum(income) FROM staff WHERE sex = 'F'": women,
        "SELECT count(*), sum(income) FROM staff WHERE sex = 'M' OR department = 'Law'": men | law,
        "SELECT count(*), sum(income) FROM staff WHERE sex <> 'M' OR department = 'Law'": women | law,
    }
    assert all(3 <= len(members) <= 17 for members in asked.values())
    counts = [len(members) for members in asked.values()]
    sums = [round(sum(income[one] for one in members)) for members in asked.values()]
    assert (counts[2], sums[2], counts[3], sums[3]) == (12, 685, 9, 500)
    assert (counts[2] + counts[3] - 20, sums[2] + sums[3] - 1100) == (1, 85)  # what it is after

    def too_small(answered: list[frozenset[int]], members: frozenset[int]) -> bool:
        atoms: dict[tuple[bool, ...], int] = {}
        for one in men | women:
            of = tuple(one in known for known in [*answered, members])
            atoms[of] = atoms.get(of, 0) + 1
        return min(atoms.values()) < k

    texts, file, answered = list(asked), PlanFile(tmp_path / "plans"), list[frozenset[int]]()
    traces = sealed_texts(texts)
    file.open(ANN, "tracker", signed(traces[0]))
    for trace, text in zip(traces[1:4], texts[:3], strict=True):
        step = file.reveal(ANN, "tracker", trace, text)
        refused = too_small(answered, asked[text])
        file.finish(step, "SDC070" if refused else "")
        answered += [] if refused else [asked[text]]
    assert len(answered) == 2
    with pytest.raises(PlanError, match="aborted at step 3, since its question was refused"):
        file.reveal(ANN, "tracker", traces[4], texts[3])
    assert plans.hash_of_text(texts[3]).hex() not in file.path.read_text()


# --- Several processes, and what happens to files -----------------------------------------------------------------------


def _reveal(path: Path, gate, results) -> None:  # type: ignore[no-untyped-def]
    file = PlanFile(path)
    gate.wait()
    try:
        step = file.reveal(ANN, "income", T[1], STATEMENTS[0])
        file.finish(step)
        results.put("answered")
    except PlanError as problem:
        results.put(str(problem))


def test_processes_that_reveal_the_same_step_answer_it_once(file: PlanFile) -> None:
    fork = multiprocessing.get_context("spawn")
    gate, results = fork.Barrier(4), fork.Queue()
    workers = [fork.Process(target=_reveal, args=(file.path, gate, results)) for _ in range(4)]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
    assert found.count("answered") == 1
    assert [line["state"] for line in file.lines()].count("awaiting") == 2  # of step 0, and of step 1


def test_two_guards_of_a_process_see_what_the_other_wrote(file: PlanFile) -> None:
    other = PlanFile(file.path)
    answered(file, 1)
    answered(other, 2)
    answered(file, 3)
    assert other.plan(ANN, "income").state == "done"


@pytest.mark.parametrize("room", [0, 1, 100])
def test_full_disk_leaves_all_as_it_was(file: PlanFile, room: int) -> None:
    size = file.path.stat().st_size
    with no_more_than(size + room), pytest.raises(OSError, match="File too large"):
        file.reveal(ANN, "income", T[1], STATEMENTS[0])
    assert file.path.stat().st_size == size
    step = file.reveal(ANN, "income", T[1], STATEMENTS[0])
    with no_more_than(file.path.stat().st_size + room), pytest.raises(OSError, match="File too large"):
        file.finish(step)
    file.finish(step)
    answered(PlanFile(file.path), 2)


@pytest.mark.parametrize("cut", [1, 10, 200])
def test_a_line_that_a_process_left_unfinished_is_written_over(file: PlanFile, cut: int) -> None:
    answered(file, 1)
    whole = file.path.read_bytes()
    file.reveal(ANN, "income", T[2], STATEMENTS[1])
    file.path.write_bytes(file.path.read_bytes()[: len(whole) + cut])
    (file.path.parent / "people.duckdb.plans.last").write_bytes(_mark_of(whole))
    again = PlanFile(file.path)
    assert again.plan(ANN, "income").step == 2
    assert [line["state"] for line in again.lines()] == ["awaiting", "revealed", "awaiting"]
    answered(again, 2)
    assert again.path.read_bytes().startswith(whole)
    assert PlanFile(file.path).plan(ANN, "income").step == 3


def _mark_of(lines: bytes) -> bytes:
    last = json.loads(lines.splitlines()[-1])
    return f"{last['number']:20d} {last['hash']}\n".encode()


@pytest.mark.parametrize("how", ["changed", "line gone", "end gone", "older", "both gone", "end gone, known", "mark"])
def test_a_file_that_was_changed_opens_nothing(file: PlanFile, how: str) -> None:
    beside = file.path.with_name(file.path.name + ".last")
    before, mark = file.path.read_bytes(), beside.read_bytes()
    answered(file, 1)
    answered(file, 2)
    text = file.path.read_bytes()
    lines = text.splitlines(keepends=True)
    fresh = PlanFile(file.path)
    match how:
        case "changed":
            file.path.write_bytes(text.replace(b'"step": 2', b'"step": 1', 1))
        case "line gone":
            file.path.write_bytes(b"".join(lines[:2] + lines[3:]))
        case "end gone":
            file.path.write_bytes(b"".join(lines[:-1]))
        case "older" | "end gone, known":  # a copy of both: who has read on knows
            file.path.write_bytes(before)
            beside.write_bytes(mark)
            fresh = file
        case "both gone":
            file.path.unlink()
            beside.unlink()
            fresh = file
        case "mark":
            beside.write_bytes(b"nonsense")
    for _ in range(2):
        with pytest.raises(SDCError, match=r"was changed|is gone"):
            fresh.reveal(ANN, "income", T[3], STATEMENTS[2])


def test_without_the_file_beside_it_nothing_opens(file: PlanFile) -> None:
    file.path.with_name(file.path.name + ".last").unlink()
    for ask in (lambda: file.reveal(ANN, "income", T[1], STATEMENTS[0]), PlanFile(file.path).lines):
        with pytest.raises(SDCError, match="is gone"):
            ask()
    with pytest.raises(SDCError, match="is gone"):
        PlanFile(file.path).open(BOB, "x", signed())


def test_nothing_was_opened_here(tmp_path: Path) -> None:
    file = PlanFile(tmp_path / "plans")
    assert file.lines() == []
    with pytest.raises(PlanError, match="no plan was opened here"):
        file.reveal(ANN, "income", T[1], STATEMENTS[0])
    assert list(tmp_path.iterdir()) == []


def test_files_are_nobody_elses_to_read(file: PlanFile) -> None:
    for path in (file.path, file.path.with_name(file.path.name + ".last")):
        assert path.stat().st_mode & 0o777 == 0o600


def test_how_many_plans_and_bytes_a_login_has(file: PlanFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_file, "MOST_OPEN", 2)
    heads = [sealed_texts([f"SELECT {number}"])[0] for number in range(3)]
    file.open(ANN, "second", signed(heads[0]))
    with pytest.raises(PlanError, match="at most 2 plans"):
        file.open(ANN, "third", signed(heads[1]))
    with pytest.raises(PlanError, match="aborted"):
        file.reveal(ANN, "second", bytes(64), "SELECT 0")
    file.open(ANN, "third", signed(heads[1]))
    monkeypatch.setattr(plan_file, "MOST_BYTES", 100)
    with pytest.raises(PlanError, match="is not kept of a login"):
        file.reveal(ANN, "income", T[1], STATEMENTS[0])
    file.open(BOB, "his", signed(heads[2]))


@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(1, 12))
def test_whatever_is_told_the_plan_answers_what_was_sealed_in_its_order(data: st.DataObject, steps: int) -> None:
    """Spec 10, 3.3: dropped, swapped, repeated, changed: each aborts, and nothing is answered after it."""
    import tempfile

    texts = [f"SELECT {number}" for number in range(steps)]
    traces = sealed_texts(texts)
    with tempfile.TemporaryDirectory() as folder:
        file = PlanFile(Path(folder) / "plans")
        file.open(ANN, "p", signed(traces[0]))
        done, aborted = 0, False
        for _ in range(steps + 2):
            step = data.draw(st.one_of(st.just(min(done + 1, steps)), st.integers(0, steps)))
            flip = data.draw(st.one_of(st.just(None), st.integers(0, 511)))
            trace = bytearray(traces[step])
            if flip is not None:
                trace[flip // 8] ^= 1 << flip % 8
            right = step == done + 1 and flip is None and not aborted and done < steps
            try:
                file.finish(file.reveal(ANN, "p", bytes(trace), texts[max(step, 1) - 1]))
                assert right
                done += 1
            except PlanError:
                assert not right
                aborted = done < steps
        state = file.plan(ANN, "p").state
        assert state == ("done" if done == steps else "aborted" if aborted else "awaiting")
