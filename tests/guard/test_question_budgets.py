"""`sdc_question_budget`: a login asks so many questions about a table in a day, whatever it is asked through."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from full_disk import no_more_than
from register_of_people import SECRET, outcome

import sdcduck
from sdcduck.catalog import audit_files, question_files
from sdcduck.catalog.audit_log import AuditLog
from sdcduck.catalog.chained_file import ChainBroken
from sdcduck.catalog.question_files import OverBudget, QuestionFiles, folder_of
from sdcduck.guard import Guard, Refused
from sdcduck.guard.guard import NOTICE
from sdcduck.methods.sequence import plans

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
BY_REGION = "SELECT region, count(*) FROM people GROUP BY region"


@pytest.fixture(scope="session")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("budgets") / "people.duckdb"
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute(
            "CREATE TABLE people AS SELECT i AS person_id, 'R' || i % 3 AS region, i % 2 AS sex FROM range(90) t(i)"
        )
        con.execute("CREATE TABLE firms AS SELECT i AS firm, i % 4 AS branch FROM range(90) t(i)")
        con.execute("CREATE TABLE regions AS SELECT 'R' || i AS region, 'Region ' || i AS said FROM range(3) t(i)")
        con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
        con.execute("FROM sdc_protect('people', unit := 'person_id', dimensions := ['region', 'sex'])").fetchall()
        con.execute(
            "FROM sdc_protect('firms', unit := 'firm', dimensions := ['branch'], method := 'threshold', min_units := 3)"
        )
        con.execute("FROM sdc_declare_public('regions')").fetchall()
        assert con.execute("FROM sdc_question_budget('people', 3)").fetchall() == [("people", "", 3)]
    return path


def left(guard: Guard, user: str = "ann") -> list[tuple[int, int, int]]:
    rows = guard.sql("SHOW sdc_questions", user=user).to_pylist()
    return [(row["asked"], row["questions"], row["left"]) for row in rows]


def today(register: Path) -> Path:
    [path] = folder_of(register).glob("*/*.jsonl")
    return path


# --- What is counted --------------------------------------------------------------------------------------------------


def test_the_next_question_is_refused_until_the_next_day(guard: Guard) -> None:
    assert left(guard) == [(0, 3, 3)]
    assert [outcome(guard, BY_REGION) for _ in range(4)] == ["answered"] * 3 + ["SDC073"], "asked again counts"
    with pytest.raises(
        Refused, match=r"3 about people; again from \d{4}-\d\d-\d\d 00:00 UTC\)\. Ask again on the next day"
    ):
        guard.sql(BY_REGION, user="ann")
    assert left(guard) == [(3, 3, 0)]
    assert outcome(guard, "SELECT branch, count(*) FROM firms GROUP BY branch") == "answered"
    assert outcome(guard, BY_REGION, "bob") == "answered"
    assert left(guard, "bob") == [(1, 3, 2)]


@pytest.mark.parametrize(
    "free",
    [
        "SELECT 1",
        "SELECT * FROM regions",
        "SELECT count(*) FROM firms",
        f"EXPLAIN {BY_REGION}",
        "DESCRIBE people",
        f"DESCRIBE {BY_REGION}",
        "SHOW TABLES",
        "SHOW sdc_questions",
        "FROM sdc_noise('people')",
    ],
)
def test_what_looks_at_none_of_its_records_is_free(guard: Guard, free: str) -> None:
    assert outcome(guard, free) == "answered"
    assert left(guard) == [(0, 3, 3)]


@pytest.mark.parametrize(
    "refused", ["SELECT * FROM people", "SELECT no FROM people", "SELECT list(sex) FROM people", "nonsense"]
)
def test_what_the_guard_would_not_answer_is_not_counted(guard: Guard, refused: str) -> None:
    assert outcome(guard, refused) != "answered"
    assert left(guard) == [(0, 3, 3)]


@pytest.mark.parametrize(
    ("question", "counted"),
    [
        ("SELECT count(*) FROM people WHERE region IN (SELECT region FROM regions)", 1),
        ("SELECT (SELECT count(*) FROM people) + (SELECT count(*) FROM people WHERE sex = 1)", 1),
        ("WITH a AS (SELECT sex, count(*) AS n FROM people GROUP BY sex) FROM a", 1),
        ("SUMMARIZE people", 1),
        ("PIVOT (SELECT region, sex, count(*) AS n FROM people GROUP BY ALL) ON sex USING sum(n)", 2),
    ],
)
def test_each_statement_is_a_question(guard: Guard, question: str, counted: int) -> None:
    assert outcome(guard, question) == "answered"
    assert left(guard) == [(counted, 3, 3 - counted)]


def test_all_doors_count_together(register: Path, guard: Guard) -> None:
    guard.sql(BY_REGION, user="ann")
    guard.stream(BY_REGION, user="ann").read_all()
    with closing(sdcduck.open_guard(register)) as another:
        question = another.question(BY_REGION, user="ann")
        question.ask()
        question.close()
        assert outcome(another, BY_REGION) == "SDC073"
    assert outcome(guard, BY_REGION) == "SDC073"
    with pytest.raises(Refused, match="SDC073"):
        guard.stream(BY_REGION, user="ann")


def test_what_is_left_is_said_beside_each_answer(register: Path, guard: Guard) -> None:
    notices = []
    for _ in range(2):
        notices.append(guard.sql(BY_REGION, user="ann").schema.metadata[NOTICE.encode()].decode())
    question = guard.question(BY_REGION, user="ann")
    question.ask()
    notices.append(question.notice)
    question.close()
    assert notices == [f"people: {left} of 3 questions are left today" for left in (2, 1, 0)]
    free = guard.sql("SELECT count(*) FROM firms", user="ann").schema.metadata or {}
    assert NOTICE.encode() not in free


def test_the_shell_says_what_is_left(register: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", "import sys; from sdcduck.cli import main; sys.exit(main())", "shell", str(register)],
        input=f"{BY_REGION};\n" * 4, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    for left in (2, 1, 0):
        assert f"people: {left} of 3 questions are left today" in said.stderr
    assert "Refused, SDC073: as many questions as a login may ask in a day (3 about people; again from" in said.stderr


def test_a_question_about_two_tables_is_one_of_each_or_of_none(register: Path) -> None:
    both = "SELECT (SELECT count(*) FROM people) AS p, (SELECT count(*) FROM firms) AS f"
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("FROM sdc_question_budget('FIRMS', 1)").fetchall()
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, both) == "answered"
        assert left(guard) == [(1, 1, 0), (1, 3, 2)]
        assert outcome(guard, both) == "SDC073"
        assert left(guard) == [(1, 1, 0), (1, 3, 2)]
        assert outcome(guard, BY_REGION) == "answered"


def test_the_refusal_is_in_the_audit_log(register: Path, tmp_path: Path) -> None:
    log = tmp_path / "questions.jsonl"
    with closing(sdcduck.open_guard(register, log=AuditLog(log))) as guard:
        verdicts = [outcome(guard, BY_REGION) for _ in range(4)]
    written = [line.split('"verdict": "')[1].split('"')[0] for line in log.read_text().splitlines()]
    assert written == verdicts == ["answered"] * 3 + ["SDC073"]


# --- What the custodian says --------------------------------------------------------------------------------------------


def test_a_budget_holds_until_it_is_taken_away(register: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con, closing(sdcduck.open_guard(con)) as guard:
        assert [outcome(guard, BY_REGION) for _ in range(4)] == ["answered"] * 3 + ["SDC073"]
        con.execute("FROM sdc_question_budget('people', 5)").fetchall()
        assert left(guard) == [(3, 5, 2)]
        con.execute("FROM sdc_protect('people', unit := 'person_id', dimensions := ['region'])").fetchall()
        assert left(guard) == [(3, 5, 2)], "it stays where the policy is declared anew"
        assert con.execute("FROM sdc_question_budget('people', NULL)").fetchall() == [("people", "", None)]
        assert left(guard) == []
        assert [outcome(guard, BY_REGION) for _ in range(4)] == ["answered"] * 4
        con.execute("CALL sdc_question_budget('people', 4)").fetchall()
        assert left(guard) == [(3, 4, 1)]
        con.execute("FROM sdc_unprotect('people')").fetchall()
        con.execute("FROM sdc_protect('people', unit := 'person_id', dimensions := ['region'])").fetchall()
        assert left(guard) == [], "it goes with the policy"


def test_there_is_none_unless_it_is_set(register: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("FROM sdc_question_budget('people', NULL)").fetchall()
    with closing(sdcduck.open_guard(register)) as guard:
        assert {outcome(guard, BY_REGION) for _ in range(10)} == {"answered"}
    assert not folder_of(register).exists()


def test_of_a_role_it_is_that_of_its_policy_and_counts_what_the_login_asked_anywhere(register: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("FROM sdc_protect('people', unit := 'person_id', dimensions := ['region'], role := 'reporter')")
        con.execute("FROM sdc_question_budget('people', 2, role := 'reporter')").fetchall()
    with (
        closing(sdcduck.open_guard(register)) as plain,
        closing(sdcduck.open_guard(register, role="reporter")) as reporter,
    ):
        assert [outcome(plain, BY_REGION), outcome(reporter, BY_REGION)] == ["answered"] * 2
        assert [outcome(reporter, BY_REGION), outcome(plain, BY_REGION)] == ["SDC073", "answered"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("'people', 0", "argument 'questions' must be a whole number of at least 1: NULL for no budget"),
        ("'people', -1", "argument 'questions' must be a whole number of at least 1"),
        ("'people', 2.5", "questions"),
        ("'peple', 5", "did you mean 'people'"),
        ("'regions', 5", "regions"),
        ("NULL, 5", "argument 'tbl' must name the table"),
        ("'people', 5, role := 'reporter'", "people"),
    ],
)
def test_what_it_refuses(register: Path, arguments: str, said: str) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con, pytest.raises(duckdb.Error, match=said):
        con.execute(f"FROM sdc_question_budget({arguments})").fetchall()


def test_a_database_in_no_file_cannot_count() -> None:
    with closing(sdcduck.connect(secret=SECRET)) as con:
        con.execute("CREATE TABLE people AS SELECT i AS person_id, i % 2 AS sex FROM range(60) t(i)")
        con.execute(
            "FROM sdc_protect('people', unit := 'person_id', dimensions := ['sex'], method := 'threshold', min_units := 3)"
        )
        with pytest.raises(duckdb.Error, match="which is in no file"):
            con.execute("FROM sdc_question_budget('people', 5)").fetchall()


def test_the_custodian_sees_all_logins(register: Path) -> None:
    with closing(sdcduck.open_guard(register)) as guard:
        for user in ("ann", "bob", "ann"):
            guard.sql(BY_REGION, user=user)
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        assert con.execute("SELECT login, asked FROM sdc_questions('people')").fetchall() == [("ann", 2), ("bob", 1)]
        assert con.execute("SELECT asked FROM sdc_questions('People', 'bob')").fetchall() == [(1,)]
        assert con.execute("FROM sdc_questions('firms')").fetchall() == []
        text = today_of(register, 2)
        text.write_bytes(text.read_bytes()[:-1])
        with pytest.raises(duckdb.Error, match="what was asked is not known"):
            con.execute("FROM sdc_questions('people')").fetchall()


def today_of(register: Path, lines: int) -> Path:
    """The file with so many questions."""
    [path] = [one for one in folder_of(register).glob("*/*.jsonl") if len(one.read_bytes().splitlines()) == 1 + lines]
    return path


# --- Days, files and processes ------------------------------------------------------------------------------------------


def test_a_day_does_not_begin_again_where_the_clock_is_set_back(tmp_path: Path) -> None:
    now = [NOON]
    register = tmp_path / "people.duckdb"
    files = QuestionFiles(register, clock=lambda: now[0])

    def refused(files: QuestionFiles) -> bool:
        try:
            files.count("ann", {"people": 2})
        except OverBudget:
            return True
        return False

    assert [refused(files) for _ in range(3)] == [False, False, True]
    for back in (timedelta(days=1), timedelta(days=400), timedelta(hours=12, seconds=1)):
        now[0] = NOON - back
        for one in (files, QuestionFiles(register, clock=lambda: now[0])):
            assert refused(one)
            assert one.asked("ann") == (NOON.date(), {"people": 2})
    with pytest.raises(OverBudget, match="2 questions about people were asked; the next may be on 2026-06-02"):
        files.count("ann", {"people": 2})
    now[0] = NOON + timedelta(hours=12)
    assert [refused(files) for _ in range(3)] == [False, False, True]
    now[0] = NOON  # the day before was not used up, and is over all the same
    assert refused(QuestionFiles(register, clock=lambda: now[0]))


def test_files_of_earlier_days_may_be_put_away(tmp_path: Path) -> None:
    now = [NOON]
    register = tmp_path / "people.duckdb"
    files = QuestionFiles(register, clock=lambda: now[0])
    files.count("ann", {"people": 2})
    now[0] += timedelta(days=1)
    files.count("ann", {"people": 2})
    for path in folder_of(register).glob(f"*/{NOON.date()}*"):
        path.unlink()
    files.count("ann", {"people": 2})
    with pytest.raises(OverBudget):
        QuestionFiles(register, clock=lambda: now[0]).count("ann", {"people": 2})


@pytest.mark.parametrize("how", ["last line", "half a line", "file", "mark", "changed", "of bob", "a file of no day"])
def test_a_file_that_is_not_what_was_written_stops_all_answers(register: Path, guard: Guard, how: str) -> None:
    guard.sql(BY_REGION, user="bob")
    bob = today(register)
    for _ in range(2):
        guard.sql(BY_REGION, user="ann")
    path = today_of(register, 2)
    lines, beside = path.read_bytes().splitlines(keepends=True), audit_files.path_beside(path)
    match how:
        case "last line":
            path.write_bytes(b"".join(lines[:-1]))
        case "half a line":
            path.write_bytes(b"".join(lines)[:-10])
        case "file":
            path.unlink()
        case "mark":
            beside.unlink()
        case "changed":
            path.write_bytes(path.read_bytes().replace(b'["people"]', b'["nobody"]', 1))
        case "of bob":
            path.write_bytes(bob.read_bytes())
            beside.write_bytes(audit_files.path_beside(bob).read_bytes())
        case "a file of no day":
            (path.parent / "copy.jsonl").write_bytes(b"")
    with closing(sdcduck.open_guard(register)) as another:
        for _ in range(2):
            assert outcome(another, BY_REGION) == "SDC072"
            assert outcome(another, "SHOW sdc_questions") == "SDC072"
        assert outcome(another, "SELECT count(*) FROM firms") == "answered"
        assert outcome(another, BY_REGION, "bob") == "answered"


def test_a_full_disk_is_a_refusal(register: Path, guard: Guard) -> None:
    guard.sql(BY_REGION, user="ann")
    before = today(register).read_bytes()
    with no_more_than(len(before) + 20):
        assert outcome(guard, BY_REGION) == "SDC072"
    assert today(register).read_bytes() == before
    assert [outcome(guard, BY_REGION) for _ in range(3)] == ["answered", "answered", "SDC073"]


def test_a_folder_that_cannot_be_made_is_a_refusal(register: Path, guard: Guard) -> None:
    folder_of(register).write_text("in the way")
    assert outcome(guard, BY_REGION) == "SDC072"


def test_a_file_of_its_size_takes_no_more(register: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_files, "MOST", 600)
    with closing(sdcduck.open_guard(register)) as guard:
        assert [outcome(guard, BY_REGION) for _ in range(3)] == ["answered", "SDC072", "SDC072"]


_ASKS = """
import sys, sdcduck
from sdcduck.guard import Refused
with_guard = sdcduck.open_guard(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
answered = 0
for _ in range(20):
    try:
        with_guard.sql("SELECT count(*) FROM people", user="ann")
        answered += 1
    except Refused as refused:
        assert refused.code == "SDC073", refused
print(answered)
"""


def test_gateways_of_one_file_count_together(register: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("FROM sdc_question_budget('people', 30)").fetchall()
    asked = [
        subprocess.Popen(
            [sys.executable, "-c", _ASKS, str(register)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for one in asked:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    answered = [int(one.communicate("go\n", timeout=120)[0]) for one in asked]
    assert sum(answered) == 30


def test_a_step_of_a_plan_that_was_one_too_many_is_revealed_once_more(register: Path) -> None:
    chain, key = plans.traces([plans.block(BY_REGION, 1, bytes(plans.SALT))]), bytes(plans.KEY)
    opens = f"""FROM sdc_plan_open('p', t0 := '{chain[0].hex()}', public_keys := ['{plans.public_key(key).hex()}'],
        signatures := ['{plans.sign(key, plans.message(chain[0], None)).hex()}'])"""
    reveals = f"FROM sdc_plan_reveal('p', '{chain[1].hex()}', $${BY_REGION}$$)"
    with closing(sdcduck.connect(register, secret=SECRET)) as con, closing(sdcduck.open_guard(con)) as guard:
        asked = [outcome(guard, BY_REGION) for _ in range(3)] + [outcome(guard, opens)]
        assert asked == ["answered"] * 4
        assert outcome(guard, reveals) == "SDC073"
        con.execute("FROM sdc_question_budget('people', 4)").fetchall()
        assert outcome(guard, reveals) == "answered"
        assert outcome(guard, reveals) == "SDC075", "the plan is done"


def test_what_is_not_known_is_no_budget_that_is_left(tmp_path: Path) -> None:
    register = tmp_path / "people.duckdb"
    files = QuestionFiles(register, clock=lambda: NOON)
    files.count("ann", {"people": 9})
    path = today(register)
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(ChainBroken):
        files.asked("ann")
    with pytest.raises(ChainBroken):
        files.count("ann", {"people": 9})
