"""A limit on the sequence of answers, tried on an audit log: it says to each question what the guard would have said."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from register_of_people import DIMENSIONS, SECRET, made, outcome

import sdcduck
from sdcduck.catalog.audit_log import AuditLog
from sdcduck.errors import SDCError
from sdcduck.guard import Guard
from sdcduck.guard.rehearsal import questions

BY_A = "SELECT a, count(*) FROM people WHERE ill GROUP BY a"


def asked(number: int) -> list[str]:
    """Questions with lists, and some that are asked again or tell nothing."""
    chance = random.Random(7)
    lists = ([", ".join(map(str, sorted(chance.sample(range(8), 4)))) for _ in "abc"] for _ in range(number))
    every = [f"SELECT count(*) FROM people WHERE ill AND a IN ({a}) AND b IN ({b}) AND c IN ({c})" for a, b, c in lists]
    return ["SELECT a, count(*) FROM people GROUP BY a", BY_A, BY_A, *every, BY_A]


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The log of a register with a limit, and what was said."""
    folder = tmp_path_factory.mktemp("limited")
    register = made(folder)
    with closing(sdcduck.open_guard(register, log=AuditLog(folder / "log"))) as guard:
        said = [outcome(guard, question) for question in asked(40)]
        outcome(guard, BY_A, "bob")
        outcome(guard, "SELECT * FROM people")
    return folder, said


def off(folder: Path) -> Path:
    """The same register without a limit."""
    register = made(folder / "off")
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute(
            f"FROM sdc_protect('people', unit := 'person_id', dimensions := {DIMENSIONS}, min_units := 3)"
        ).fetchall()
    return register


@pytest.mark.parametrize("now", ["limited", "off"])
def test_it_says_what_the_guard_said(limited: tuple[Path, list[str]], tmp_path: Path, now: str) -> None:
    folder, said = limited
    register = folder / "people.duckdb" if now == "limited" else off(tmp_path)
    before = {path: path.read_bytes() for path in register.parent.rglob("*.jsonl*")}
    with closing(sdcduck.open_guard(register)) as guard:
        found = guard.sequence_rehearsal(folder / "log", "People", "ann", secrets=["ill"]).to_pylist()
    verdicts = [{"answered": "answered", "refused": "SDC070"}[row["verdict"]] for row in found]
    assert verdicts == said
    assert {"answered", "SDC070"} == set(said)
    assert [row["number"] for row in found] == list(range(1, len(said) + 1))
    assert [(row["cells"], row["new_sets"]) for row in found[:3]] == [(0, 0), (8, 8), (8, 0)]
    assert all((row["least_error"] < 0.8) == (row["verdict"] == "refused") for row in found if row["new_sets"])
    assert {path: path.read_bytes() for path in register.parent.rglob("*.jsonl*")} == before, "nothing is written down"


def test_the_errors_are_those_that_were_charged(limited: tuple[Path, list[str]]) -> None:
    folder, _ = limited
    with closing(sdcduck.open_guard(folder / "people.duckdb")) as guard:
        found = guard.sequence_rehearsal(folder / "log", "people", "ann", secrets=["ill"]).to_pylist()
    with closing(sdcduck.connect(folder / "people.duckdb", secret=SECRET)) as con:
        charged = con.execute("SELECT question, new_sets, least_error FROM sdc_sequence('people', 'ann')").fetchall()
    told = [row for row in found if row["new_sets"] and row["verdict"] == "answered"]
    assert [(row["question"], row["new_sets"], round(row["least_error"], 6)) for row in told] == charged


def test_a_lower_limit_answers_more_and_each_login_is_by_itself(limited: tuple[Path, list[str]]) -> None:
    folder, _ = limited
    answered = []
    with closing(sdcduck.open_guard(folder / "people.duckdb")) as guard:
        for least in (0.95, 0.8, 0.5):
            found = guard.sequence_rehearsal(folder / "log", "people", secrets=["ill"], least_error=least).to_pylist()
            of_bob = [row["verdict"] for row in found if row["login"] == "bob"]
            assert of_bob == ["refused" if least == 0.95 else "answered"], "his first question, whatever ann was told"
            answered.append(sum(row["verdict"] == "answered" for row in found))
    assert answered == sorted(set(answered))


def test_exact_modes_under_a_threshold(tmp_path: Path) -> None:
    with closing(sdcduck.connect(tmp_path / "staff.duckdb", secret=SECRET)) as con:
        con.execute("""CREATE TABLE staff AS SELECT i AS person, CASE WHEN i < 11 THEN 'M' ELSE 'F' END AS sex,
            CASE WHEN i < 4 OR i = 11 THEN 'Law' ELSE 'Maths' END AS department FROM range(20) t(i)""").fetchall()
        con.execute("""FROM sdc_protect('staff', unit := 'person', dimensions := ['sex', 'department'],
            method := 'threshold', min_units := 3)""").fetchall()
    tracker = ["sex = 'M'", "sex = 'F'", "sex = 'M' OR department = 'Law'", "sex = ?"]
    with closing(sdcduck.open_guard(tmp_path / "staff.duckdb", log=AuditLog(tmp_path / "log"))) as guard:
        for condition in tracker:
            given = ["F"] if "?" in condition else None
            guard.sql(f"SELECT count(*) FROM staff WHERE {condition}", given, user="eve")
        for mode in ("atoms", "pairwise"):
            found = guard.sequence_rehearsal(tmp_path / "log", "staff", mode=mode).to_pylist()
            assert [row["verdict"] for row in found[:4]] == ["answered", "answered", "refused", "answered"]
            assert [row["smallest"] for row in found[:4]] == [9, None if mode == "atoms" else 9, 1, None]
            assert {row["least_error"] for row in found} == {None}
        larger = guard.sequence_rehearsal(tmp_path / "log", "staff", mode="atoms", min_units=10).to_pylist()
        assert {row["verdict"] for row in larger} == {"SDC060"}, (
            "some values are of fewer, and such a policy is refused"
        )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"table": "peple"}, "did you mean 'people'"),
        ({"mode": "off", "secrets": []}, "argument 'mode' must be a limit"),
        ({"mode": "atoms", "secrets": []}, "'atoms' is not available for method"),
        ({"mode": "exact"}, "precision"),
        ({"secrets": []}, "argument 'secrets'"),
        ({"secrets": ["no"]}, "argument 'secrets'"),
        ({"least_error": 2.0}, "argument 'least_error'"),
        ({"min_units": 0}, "argument 'min_units'"),
    ],
)
def test_what_it_refuses(limited: tuple[Path, list[str]], arguments: dict[str, object], said: str) -> None:
    folder, _ = limited
    given: dict[str, object] = {"table": "people", "secrets": ["ill"]} | arguments
    with closing(sdcduck.open_guard(folder / "people.duckdb")) as guard, pytest.raises(SDCError, match=said):
        guard.sequence_rehearsal(folder / "log", **given)  # type: ignore[arg-type]


def test_a_log_that_was_changed_is_no_log(limited: tuple[Path, list[str]], tmp_path: Path) -> None:
    folder, _ = limited
    (tmp_path / "log").write_bytes((folder / "log").read_bytes().replace(b"ill", b"all", 1))
    with (
        closing(sdcduck.open_guard(folder / "people.duckdb")) as guard,
        pytest.raises(SDCError, match="the audit log was changed"),
    ):
        guard.sequence_rehearsal(tmp_path / "log", "people", secrets=["ill"])


def test_a_question_of_two_lines_is_one() -> None:
    def line(verdict: str, query: str = "Q", user: str = "ann", table: str = "people") -> dict[str, object]:
        return {"verdict": verdict, "query": query, "user": user, "tables": [table]}

    lines = [
        line("begun"), line("begun"), line("answered"), line("abandoned"), line("answered"), line("SDC041"),
        line("answered", user="bob"), line("answered", table="firms"), line("SDC070"),
    ]  # fmt: skip
    assert [place for place, one in enumerate(lines) if one in list(questions(lines, "PEOPLE", "ann"))] == [
        0,
        1,
        2,
        4,
        8,
    ]
    assert [one["verdict"] for one in questions(lines, "people", None)] == [
        "begun",
        "begun",
        "answered",
        "answered",
        "SDC070",
    ]


def test_a_step_of_a_plan_is_its_question(guard_of_steps: tuple[Guard, Path]) -> None:
    guard, log = guard_of_steps
    [row] = guard.sequence_rehearsal(log, "people", secrets=["ill"]).to_pylist()
    assert (row["cells"], row["verdict"]) == (8, "answered")


@pytest.fixture
def guard_of_steps(limited: tuple[Path, list[str]], tmp_path: Path) -> tuple[Guard, Path]:
    log = AuditLog(tmp_path / "log")
    log.write(
        user="ann", role="", verdict="answered", milliseconds=0.0, rows=1, sql="", tables=["people"], methods=[],
        policies="", query=f"FROM sdc_plan_reveal('p', '{'00' * 64}', $${BY_A}$$)",
    )  # fmt: skip
    return sdcduck.open_guard(limited[0] / "people.duckdb"), log.path


def test_the_same_from_sql(limited: tuple[Path, list[str]]) -> None:
    folder, _ = limited
    register, log = folder / "people.duckdb", folder / "log"
    with closing(sdcduck.open_guard(register)) as guard:
        wanted = guard.sequence_rehearsal(log, "people", secrets=["ill"], least_error=0.7).to_pylist()
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        before = {path: path.read_bytes() for path in folder.rglob("*.jsonl*")}
        found = con.sql(
            f"FROM sdc_sequence_rehearsal('{log}', 'People', secrets := ['ill'], least_error := 0.7)"
        ).to_arrow_reader()
        rows = found.read_all().to_pylist()
        assert [row | {"time": None} for row in rows] == [row | {"time": None} for row in wanted]
        [(least,)] = con.execute(
            f"""SELECT min(least_error) FROM sdc_sequence_rehearsal('{log}', 'people', 'ann', secrets := ['ill'],
                least_error := 0.7, granted := 'SELECT a, ill, count(*) FROM people GROUP BY ALL')"""
        ).fetchall()
        assert least != min(row["least_error"] for row in wanted if row["login"] == "ann" and row["least_error"])
        for call, said in (
            (f"'{log}', 'people'", "argument 'secrets' must name"),
            (f"'{log}', 'people', mode := 'atoms'", "not available for method := 'cell_key'"),
            (f"'{log}', 'nobody', secrets := ['ill']", "nobody"),
            (f"'{log}.not', 'people', secrets := ['ill']", "there is no file"),
            (f"'{log}', 'people', mode := 'off'", "'off' answers all of it"),
        ):
            with pytest.raises(duckdb.Error, match=said):
                con.execute(f"FROM sdc_sequence_rehearsal({call})").fetchall()
        assert {path: path.read_bytes() for path in folder.rglob("*.jsonl*")} == before, "nothing is written down"
