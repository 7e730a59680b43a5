"""Whose budget it is, and of which time: one of all who ask, or of each login; for ever, or for each period."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from private_people import declared, dies_before_it_draws, made

import sdcduck
from sdcduck.catalog import chained_file
from sdcduck.catalog.chained_file import Line
from sdcduck.catalog.cost_files import PERIODS, CostFile, period_of
from sdcduck.errors import SDCError
from sdcduck.guard import Guard, Refused
from sdcduck.guard.costs import policies_of
from sdcduck.guard.releases import Releases

pytest.importorskip("opendp")

ALL, ILL, NOT_ILL = (f"SELECT count(*) AS n FROM people{where}" for where in ("", " WHERE ill", " WHERE NOT ill"))
FOR_TWO = {"epsilon": "1", "delta": "0", "per_question": "0.5"}
NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)

Make = Callable[..., Guard]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes guards of one register, whose budget is enough for two questions."""
    opened: list[Guard] = []

    def guard(**other: str) -> Guard:
        path = tmp_path / "register"
        if not path.exists():
            made(path, **{**FOR_TWO, **other})
        opened.append(sdcduck.open_guard(path))
        return opened[-1]

    yield guard
    for one in opened:
        one.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The time that ledgers are told."""
    now = [NOON]
    monkeypatch.setattr(chained_file, "_now", lambda: now[0])
    return now


def lines(folder: Path, kind: str) -> list[Line]:
    return [line for line in CostFile(folder / "register", "people").lines() if line["kind"] == kind]


def number(guard: Guard, query: str, user: str) -> int:
    (row,) = guard.sql(query, user=user).to_pylist()
    return int(row["n"])


def refusal(guard: Guard, query: str, user: str) -> str:
    with pytest.raises(Refused) as refused:
        guard.sql(query, user=user)
    return str(refused.value)


def again(folder: Path, **other: str) -> None:
    """Declare the people once more."""
    with closing(sdcduck.connect(str(folder / "register"))) as con:
        con.execute(declared(**{**FOR_TWO, **other})).fetchall()


def test_each_login_has_a_budget_of_its_own_and_the_same_answers(make: Make, tmp_path: Path) -> None:
    """Who asks what another one did is charged for it, and gets what was drawn for that one: no other draw to average."""
    guard = make(ledger="'login'")
    first = number(guard, ALL, "ann")
    number(guard, ILL, "ann")
    assert "SDC080" in refusal(guard, NOT_ILL, "ann")
    assert number(guard, ALL, "ann") == number(guard, ALL, "bob") == first
    assert [(line["login"], line["ledger"]) for line in lines(tmp_path, "charge")] == [
        ("ann", "login"), ("ann", "login"), ("bob", "login"),
    ]  # fmt: skip
    assert len(lines(tmp_path, "drawn")) == 2
    number(guard, NOT_ILL, "bob")
    assert "SDC080" in refusal(guard, ILL, "bob")
    for login, left in (("ann", 0), ("bob", 0), ("eve", 2), ("Ann", 2), ("", 2)):
        (cost,) = guard.dp_preview(ALL, user=login).to_pylist()
        assert (cost["paid"], cost["questions_left"]) == (not left, max(left - 1, 0))
    assert guard.sql("SHOW sdc_budget", user="ann").to_pylist()[0]["ledger"] == "login"
    assert "nothing, it was paid for before" in guard.explain(ILL, user="ann").notes[-1]
    assert "epsilon 0.5 alone" in guard.explain(ILL, user="bob").notes[-1]


def test_a_shared_budget_is_what_nobody_said(make: Make, tmp_path: Path) -> None:
    guard = make()
    first = number(guard, ALL, "ann")
    assert number(guard, ALL, "bob") == first
    number(guard, ILL, "bob")
    assert "SDC080" in refusal(guard, NOT_ILL, "eve")
    assert [line["login"] for line in lines(tmp_path, "charge")] == ["ann", "bob"]


def test_what_all_were_told_counts_for_each_and_what_each_was_told_for_all(make: Make, tmp_path: Path) -> None:
    """From one ledger to the other and back: nothing that was told is forgotten."""
    with closing(make()) as guard:
        number(guard, ALL, "ann")
    again(tmp_path, ledger="'login'", epsilon="1.5")
    with closing(make()) as guard:
        for login in ("bob", "eve"):
            assert guard.sql("SHOW sdc_budget", user=login).to_pylist()[0]["spent"] == 0.5
            number(guard, ILL, login)
            number(guard, NOT_ILL, login)
            assert "SDC080" in refusal(guard, ALL, login)
    again(tmp_path, epsilon="2.5")
    with closing(make()) as guard:
        assert guard.sql("SHOW sdc_budget", user="ann").to_pylist()[0]["spent"] == 2.5
        assert "SDC080" in refusal(guard, ALL, "ann")
    with closing(sdcduck.connect(str(tmp_path / "register"))) as con:
        rows = con.execute("SELECT login, spent, ledger FROM sdc_dp_ledger('people')").fetchall()
    assert rows == [
        ("ann", 0.5, "policy"), ("bob", 1.0, "login"), ("bob", 1.5, "login"), ("eve", 2.0, "login"),
        ("eve", 2.5, "login"),
    ]  # fmt: skip


def test_the_custodian_sees_what_a_login_would_pay(make: Make, tmp_path: Path) -> None:
    with closing(make(ledger="'login'")) as guard:
        number(guard, ALL, "ann")
    with closing(sdcduck.connect(str(tmp_path / "register"))) as con:
        asked = f"SELECT epsilon, paid, questions_left FROM sdc_dp_preview('{ALL}', login := '{{}}')"
        assert con.execute(asked.format("ann")).fetchall() == [(0.0, True, 1)]
        assert con.execute(asked.format("bob")).fetchall() == [(0.5, False, 1)]


@pytest.mark.parametrize(("ledger", "charged"), [("policy", 1), ("login", 2)])
def test_two_logins_at_one_moment_have_one_answer(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledger: str, charged: int
) -> None:
    """Both were charged before either drew, and both drew: the one that is written first is the answer of both."""
    guards = [make(ledger=f"'{ledger}'"), make()]
    drawn, together, draws, answers = Releases._draw, threading.Barrier(2), list[object](), list[int]()

    def draw(*given: object) -> object:
        draws.append(drawn(*given))  # type: ignore[arg-type]
        together.wait(60)
        return draws[-1]

    monkeypatch.setattr(Releases, "_draw", draw)
    threads = [
        threading.Thread(target=lambda guard=guard, login=login: answers.append(number(guard, ALL, login)))  # type: ignore[misc]
        for guard, login in zip(guards, ("ann", "bob"), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(draws) == 2
    assert len(answers) == 2
    assert answers[0] == answers[1]
    assert len(lines(tmp_path, "charge")) == charged
    assert len(lines(tmp_path, "drawn")) == 1


def test_who_was_charged_when_the_process_died_is_not_charged_again(
    make: Make, tmp_path: Path, clock: list[datetime]
) -> None:
    """Nor in the next period, and nor is anybody else spared."""

    with dies_before_it_draws(), pytest.raises(KeyboardInterrupt):
        make(ledger="'login'", epsilon_per="'day'").sql(ALL, user="ann")
    clock[0] += timedelta(days=1)
    guard = make()
    first = number(guard, ALL, "ann")
    assert [line["login"] for line in lines(tmp_path, "charge")] == ["ann"]
    assert number(guard, ALL, "bob") == first
    assert [line["login"] for line in lines(tmp_path, "charge")] == ["ann", "bob"]


@pytest.mark.parametrize("period", PERIODS)
def test_each_period_has_a_budget_anew(make: Make, tmp_path: Path, clock: list[datetime], period: str) -> None:
    """And not a moment before; what was answered before costs nothing in it."""
    guard = make(epsilon_per=f"'{period}'")
    _, ends = period_of(period, NOON)
    first = number(guard, ALL, "ann")
    clock[0] = ends - timedelta(milliseconds=1)
    number(guard, ILL, "ann")
    said = refusal(guard, NOT_ILL, "bob")
    assert "SDC080" in said
    assert f"there is more from {ends:%Y-%m-%d} 00:00 UTC" in said
    (standing,) = guard.sql("SHOW sdc_budget").to_pylist()
    assert (standing["questions"], standing["questions_left"], standing["until"]) == (2, 0, ends.date())
    clock[0] = ends
    assert guard.sql("SHOW sdc_budget").to_pylist()[0]["questions"] == 0
    assert number(guard, ALL, "eve") == first
    number(guard, NOT_ILL, "bob")
    assert len(lines(tmp_path, "charge")) == 3
    assert guard.sql("SHOW sdc_budget").to_pylist()[0]["questions_left"] == 1


def test_costs_that_are_the_same_are_one_in_a_long_ledger(make: Make, clock: list[datetime]) -> None:
    """So that a question takes no longer after thousands of others; in another period they are counted anew."""
    guard = make(epsilon="1000", per_question="1", epsilon_per="'day'")
    [policy] = policies_of(guard.rewritten(ALL)[0])

    def counted() -> list[int]:
        guard._releases.standing(policy, "ann")
        return [charge.times for charge in guard._releases._known["people"].charges(policy.privacy, "ann")]

    for age in range(4):
        number(guard, f"{ALL} WHERE age = {age}", "ann")
    assert counted() == [4]
    clock[0] += timedelta(days=1)
    assert counted() == []
    number(guard, ILL, "ann")
    assert counted() == [1]


def test_a_clock_that_is_set_back_begins_no_period_anew(make: Make, tmp_path: Path, clock: list[datetime]) -> None:
    """Not for who has read the ledger, nor for a new session; it stands still in the period of the last charge."""
    guard = make(epsilon_per="'month'")
    number(guard, ALL, "ann")
    number(guard, ILL, "ann")
    for back in (timedelta(days=40), timedelta(days=4000)):
        clock[0] = NOON - back
        for one in (guard, make()):
            assert "there is more from 2026-12-01" in refusal(one, NOT_ILL, "bob")
            assert one.sql("SHOW sdc_budget").to_pylist()[0]["until"] == date(2026, 12, 1)
    clock[0] = NOON + timedelta(days=10)
    number(guard, NOT_ILL, "bob")
    clock[0] = NOON
    number(make(), f"{ALL} WHERE age = 3", "bob")
    assert "there is more from 2027-01-01" in refusal(guard, f"{ALL} WHERE age = 4", "bob")
    assert [line["time"][:7] for line in lines(tmp_path, "charge")] == ["2026-11"] * 2 + ["2026-12"] * 2


def test_a_period_that_is_taken_back_forgets_nothing(make: Make, tmp_path: Path, clock: list[datetime]) -> None:
    with closing(make(epsilon_per="'day'")) as guard:
        number(guard, ALL, "ann")
        number(guard, ILL, "ann")
    clock[0] += timedelta(days=3)
    again(tmp_path)
    with closing(make()) as guard:
        assert "epsilon 1 of 1 is spent" in refusal(guard, NOT_ILL, "ann")
        assert guard.sql("SHOW sdc_budget").to_pylist()[0]["until"] is None


@pytest.mark.parametrize("setting", ["ledger", "period"])
def test_what_a_newer_sdcduck_has_declared_is_not_guessed(make: Make, tmp_path: Path, setting: str) -> None:
    make().close()
    with closing(duckdb.connect(str(tmp_path / "register"))) as con:
        con.execute(
            "UPDATE sdc.settings SET value = json_merge_patch(value, json_object(?, 'moon')) WHERE name LIKE 'privacy %'",
            [setting],
        )
    assert "SDC082" in refusal(make(), ALL, "ann")


@pytest.mark.parametrize(
    "wrong", [{"ledger": "'role'"}, {"ledger": "NULL"}, {"epsilon_per": "'minute'"}, {"epsilon_per": "''"}]
)
def test_bad_declarations_are_refused(tmp_path: Path, wrong: dict[str, str]) -> None:
    with pytest.raises((SDCError, duckdb.Error), match=r"argument '(ledger|epsilon_per)'"):
        made(tmp_path / "r", **wrong)


@pytest.mark.parametrize("other", ["ledger := 'login'", "epsilon_per := 'day'"])
def test_they_go_with_no_other_method(other: str) -> None:
    with closing(sdcduck.connect()) as con:
        con.execute("CREATE TABLE t AS SELECT i AS id, 'n' AS region FROM range(50) r(i)")
        with pytest.raises(duckdb.Error, match="goes with method := 'dp'"):
            con.execute(
                f"FROM sdc_protect('t', unit := 'id', dimensions := ['region'], method := 'threshold', min_units := 3, {other})"
            ).fetchall()
