"""What a login was told is kept beside the register, and no more is told than a policy allows (`sdc_protect`)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC
from datetime import datetime as real_datetime
from pathlib import Path

import duckdb
import pytest
from register_of_people import DIMENSIONS, SECRET, declare, file_of, folder, made, outcome

import sdcduck
from sdcduck.catalog import audit_files, chained_file, knowledge_files
from sdcduck.catalog.audit_log import AuditLog
from sdcduck.guard import Guard, Refused

ILL = "SELECT a, count(*) FROM people WHERE ill GROUP BY a"


@pytest.fixture(scope="session")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("registers") / "untouched")


def questions(number: int, seed: int = 5) -> list[str]:
    """Questions with lists, as of a dashboard with filters, or of somebody who collects equations."""
    chance = random.Random(seed)
    lists = ([", ".join(map(str, sorted(chance.sample(range(8), 4)))) for _ in "abc"] for _ in range(number))
    return [f"SELECT count(*) FROM people WHERE ill AND a IN ({a}) AND b IN ({b}) AND c IN ({c})" for a, b, c in lists]


def until_refused(guard: Guard, user: str = "ann") -> list[str]:
    """The questions that were answered, up to the first that was not."""
    answered = []
    for question in questions(200):
        if outcome(guard, question, user) != "answered":
            return answered
        answered.append(question)
    raise AssertionError("there is no limit")


# --- What is counted --------------------------------------------------------------------------------------------------

SETS = {
    "SELECT count(*) FROM people WHERE a < 4 AND ill": "SELECT list(person_id) FROM people WHERE a < 4 AND ill",
    "SELECT a, count(*) FROM people WHERE NOT ill GROUP BY a": (
        "SELECT list(person_id) FROM people WHERE NOT ill GROUP BY a"
    ),
    "SELECT b, count(*) FILTER (WHERE ill AND c > 2) FROM people GROUP BY b": (
        "SELECT list(person_id) FILTER (WHERE ill AND c > 2) FROM people GROUP BY b UNION ALL "
        "SELECT list(person_id) FROM people GROUP BY b"
    ),
    "SELECT a, ill, count(*) FROM people GROUP BY CUBE (a, ill)": (
        "SELECT list(person_id) FROM people GROUP BY CUBE (a, ill)"
    ),
    "SELECT CASE WHEN a + b > 7 THEN 'high' END AS k, count(*) FROM people WHERE ill GROUP BY GROUPING SETS ((k), ())": (
        "SELECT list(person_id) FROM people WHERE ill GROUP BY GROUPING SETS ((CASE WHEN a + b > 7 THEN 'high' END), ())"
    ),
    "SELECT sum(CASE WHEN ill THEN 1 ELSE 0 END) FROM people WHERE c IN (1, 2)": (
        "SELECT list(person_id) FROM people WHERE c IN (1, 2) AND ill"
    ),
    "SELECT DISTINCT a FROM people WHERE ill AND b = 3": "SELECT list(person_id) FROM people WHERE ill AND b = 3 GROUP BY a",
    "WITH t AS (SELECT a, count(*) AS n FROM people WHERE ill GROUP BY a) SELECT max(n) FROM t": (
        "SELECT list(person_id) FROM people WHERE ill GROUP BY a"
    ),
    "SELECT (SELECT count(*) FROM people WHERE ill AND a = 1) + (SELECT count(*) FROM people WHERE ill AND a = 2)": (
        "SELECT list(person_id) FROM people WHERE ill AND a IN (1, 2) GROUP BY a"
    ),
}


@pytest.mark.parametrize("question", SETS)
def test_the_sets_of_a_question_are_those_of_the_records(register: Path, guard: Guard, question: str) -> None:
    with closing(guard._limited.cursor()) as con:
        wanted = {frozenset(ids) for (ids,) in con.execute(SETS[question]).fetchall() if ids}
    rewritten, version = guard.rewritten(question)
    [policy] = [policy for policy in rewritten.policies if policy.name == "people"]
    cells = guard._sequences._cells_of(policy)
    people = cells.cursor.execute(
        "SELECT _sdc_place, person_id FROM people JOIN temp.main._sdc_cells USING (a, b, c, ill)"
    ).fetchall()
    found = {
        frozenset(person for place, person in people if chosen[place])
        for counted in rewritten.sets
        for chosen in guard._sequences._sets(cells, counted, None).sets
    }
    assert found - {frozenset()} == wanted
    assert version


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM people p JOIN people q ON p.person_id = q.person_id",
        "SELECT count(*) FROM people JOIN (VALUES (1), (1)) AS t(a) USING (a)",
        "SELECT count(*) FROM (SELECT * FROM people ORDER BY a LIMIT 9)",
        "SELECT count(*) FROM people WHERE a IN (SELECT b FROM people)",
        "SELECT count(*) FROM people WHERE current_date > DATE '2020-01-01'",
        "SELECT count(*) FROM people WHERE age(DATE '2020-01-01') > INTERVAL '1 day'",
        "SELECT count(*) FROM (SELECT a FROM people UNION ALL SELECT b FROM people)",
    ],
)
def test_a_question_of_unknown_sets_is_refused(guard: Guard, query: str) -> None:
    code = outcome(guard, query)
    assert code not in ("answered", "SDC001", "SDC070")


def test_the_refusal_says_what_is_answered(guard: Guard) -> None:
    with pytest.raises(Refused, match=r"SDC071: .*the time of day: write the date.*count\(\*\)"):
        guard.sql("SELECT count(*) FROM people WHERE current_date > DATE '2020-01-01'")


def test_parameters_are_part_of_what_is_asked(register: Path, guard: Guard) -> None:
    for value in (1, 2, 1):
        guard.sql("SELECT count(*) FROM people WHERE ill AND a = $1 AND b < $2", [value, 5], user="ann")
    assert guard.sql("SHOW sdc_sequence", user="ann").column("answers").to_pylist() == [2]


# --- What is refused --------------------------------------------------------------------------------------------------


def test_after_enough_answers_the_next_one_is_refused_and_the_old_ones_are_not(guard: Guard) -> None:
    answered = until_refused(guard)
    assert len(answered) > 5
    assert outcome(guard, questions(200)[len(answered)]) == "SDC070"
    assert {outcome(guard, question) for question in answered} == {"answered"}
    assert outcome(guard, "SELECT a, b, c, count(*) FROM people GROUP BY CUBE (a, b, c)") == "answered", "no secret"


def test_nothing_is_kept_of_a_refused_question(register: Path, guard: Guard) -> None:
    until_refused(guard)
    before = file_of(register).read_bytes()
    assert outcome(guard, "SELECT a, b, c, count(*) FROM people WHERE ill GROUP BY a, b, c") == "SDC070"
    assert file_of(register).read_bytes() == before


def test_logins_are_counted_apart_and_sessions_of_one_together(register: Path, guard: Guard) -> None:
    answered = until_refused(guard)
    assert outcome(guard, questions(200)[len(answered)], "bob") == "answered"
    with closing(sdcduck.open_guard(register)) as another:
        assert outcome(another, questions(200)[len(answered)]) == "SDC070"
        assert outcome(another, answered[0]) == "answered"


def test_two_gateways_of_a_file_know_what_the_other_answered(register: Path) -> None:
    with closing(sdcduck.open_guard(register)) as one, closing(sdcduck.open_guard(register)) as other:
        answered = 0
        for place, question in enumerate(questions(200)):
            if outcome((one, other)[place % 2], question) != "answered":
                break
            answered += 1
        assert answered == len(until_refused(one, "bob"))


def test_answers_that_come_in_batches_are_charged(guard: Guard) -> None:
    guard.stream(ILL, user="ann").read_all()
    assert guard.sql("SHOW sdc_sequence", user="ann").column("answers").to_pylist() == [1]


def test_what_asks_for_no_answer_is_not_charged(register: Path, guard: Guard) -> None:
    guard.columns(ILL, user="ann")
    guard.explain(ILL, user="ann")
    guard.noise(ILL)
    assert not folder(register).exists()


def test_a_breach_may_be_answered_and_written_down(tmp_path: Path) -> None:
    register = made(tmp_path / "logged", more=", on_breach := 'log'")
    with closing(sdcduck.open_guard(register)) as guard:
        assert {outcome(guard, question) for question in questions(60)} == {"answered"}
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        verdicts = con.execute("SELECT verdict, min(least_error) FROM sdc_sequence('people') GROUP BY ALL").fetchall()
    assert dict(verdicts)["breach"] < 0.8 <= dict(verdicts)["answered"]


def test_the_refusal_is_in_the_audit_log(register: Path, tmp_path: Path) -> None:
    log = tmp_path / "questions.jsonl"
    with closing(sdcduck.open_guard(register, log=AuditLog(log))) as guard:
        answered = until_refused(guard)
    verdicts = [line.split('"verdict": "')[1].split('"')[0] for line in log.read_text().splitlines()]
    assert verdicts == ["answered"] * len(answered) + ["SDC070"]


# --- The file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gone", ["last line", "half a line", "file", "mark", "changed", "version"])
def test_a_file_that_is_not_what_was_written_stops_all_answers(register: Path, guard: Guard, gone: str) -> None:
    guard.sql(ILL, user="ann")
    guard.sql(questions(1)[0], user="ann")
    path = file_of(register)
    lines = path.read_bytes().splitlines(keepends=True)
    if gone == "file":
        path.unlink()
    elif gone == "mark":
        path.with_name(f"{path.name}.last").unlink()
    elif gone == "changed":
        path.write_bytes(path.read_bytes().replace(b'"new": 1', b'"new": 0'))
    elif gone == "version":
        _write_anew(path, lines, b'"version": 1', b'"version": 9')
    else:
        path.write_bytes(b"".join(lines[:-1]) + (lines[-1][:20] if gone == "half a line" else b""))
    with closing(sdcduck.open_guard(register)) as another:
        assert outcome(another, ILL) == "SDC072"
        assert outcome(another, ILL) == "SDC072"
        assert outcome(another, "SELECT a, count(*) FROM people GROUP BY a") == "answered", "it tells nothing"
        assert outcome(another, ILL, "bob") == "answered"


def _write_anew(path: Path, lines: list[bytes], old: bytes, new: bytes) -> None:
    """Write the lines as another sdcduck would have written them."""
    place, made_anew = audit_files.Mark(), b""
    for text in lines:
        line = audit_files.json.loads(text.replace(old, new)) | {"previous": place.hash}
        line["hash"] = audit_files.hash_of_line(line)
        place = audit_files.Mark(line["number"], line["hash"])
        made_anew += audit_files.text_of_line(line)
    path.write_bytes(made_anew)
    path.with_name(f"{path.name}.last").write_bytes(place.text())


def test_a_line_that_was_begun_as_the_process_stopped_was_never_answered_for(register: Path, guard: Guard) -> None:
    guard.sql(ILL, user="ann")
    with file_of(register).open("ab") as file:
        file.write(b'{"number": 3, "time"')
    with closing(sdcduck.open_guard(register)) as another:
        assert outcome(another, questions(1)[0]) == "answered"
    with closing(sdcduck.open_guard(register)) as third:
        assert third.sql("SHOW sdc_sequence", user="ann").column("answers").to_pylist() == [2]


def test_a_full_disk_is_a_refusal_and_nothing_is_kept(
    register: Path, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard.sql(ILL, user="ann")
    before = file_of(register).read_bytes()

    def full(file: object, end: int, text: bytes) -> None:
        file_of(register).write_bytes(before + text[:30])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(audit_files, "append", full)
        assert outcome(guard, questions(1)[0]) == "SDC072"
        assert outcome(guard, ILL) == "answered", "it tells nothing new"
    assert file_of(register).read_bytes() == before
    assert outcome(guard, questions(1)[0]) == "answered"


def test_a_folder_that_cannot_be_made_is_a_refusal(register: Path, guard: Guard) -> None:
    folder(register).write_text("in the way")
    assert outcome(guard, ILL) == "SDC072"


def test_a_file_that_somebody_holds_too_long_is_a_refusal(
    register: Path, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_files, "_SECONDS_FOR_LOCK", 0)
    guard.sql(ILL, user="ann")
    with audit_files.held(file_of(register)):
        assert outcome(guard, questions(1)[0]) == "SDC072"
        assert outcome(guard, ILL, "bob") == "answered"
    assert outcome(guard, questions(1)[0]) == "answered"


def test_a_file_of_its_size_takes_no_more(register: Path, guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    guard.sql(ILL, user="ann")
    monkeypatch.setattr(
        knowledge_files.KnowledgeFile.__init__, "__kwdefaults__", {"most": file_of(register).stat().st_size + 10}
    )
    assert outcome(guard, questions(1)[0]) == "SDC072"
    assert outcome(guard, ILL) == "answered"


def test_a_clock_that_is_set_back_changes_nothing(
    register: Path, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = until_refused(guard)

    class Earlier(real_datetime):
        @classmethod
        def now(cls, tz: object = None) -> Earlier:
            return cls(1999, 1, 1, tzinfo=UTC)

    monkeypatch.setattr(chained_file, "datetime", Earlier)
    with closing(sdcduck.open_guard(register)) as another:
        assert outcome(another, questions(200)[len(answered)]) == "SDC070"
        assert outcome(another, ILL, "bob") == "answered"


# --- Data and policies that change ------------------------------------------------------------------------------------


def test_other_dimensions_stop_the_answers_until_the_custodian_begins_anew(register: Path) -> None:
    with closing(sdcduck.open_guard(register)) as guard:
        guard.sql("SELECT c, count(*) FROM people WHERE ill GROUP BY c", user="ann")
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        declare(con, dimensions="['a', 'b', 'ill']")
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, ILL) == "SDC072"
        assert outcome(guard, ILL, "bob") == "answered"
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        assert con.execute("FROM sdc_sequence_forget('people', 'ann')").fetchall() == [("ann", 1)]
        assert con.execute("FROM sdc_sequence_forget('people', 'ann')").fetchall() == [("ann", 0)]
        verdicts = con.execute("SELECT login, verdict FROM sdc_sequence('people') ORDER BY login, number").fetchall()
    assert verdicts == [("ann", "answered"), ("ann", "forgotten"), ("ann", "forgotten"), ("bob", "answered")]
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, ILL) == "answered"
        assert outcome(guard, ILL) == "answered"


def test_a_policy_declared_as_it_was_changes_nothing(register: Path) -> None:
    with closing(sdcduck.open_guard(register)) as guard:
        answered = until_refused(guard)
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        declare(con)
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, questions(200)[len(answered)]) == "SDC070"
        assert outcome(guard, answered[0]) == "answered"


def test_records_that_came_stop_the_answers(register: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con, closing(sdcduck.open_guard(con)) as guard:
        assert outcome(guard, ILL) == "answered"
        con.execute("INSERT INTO people SELECT 1000 + person_id, a, b, c, ill, record_key FROM people").fetchall()
        assert outcome(guard, ILL) == "SDC072"
        assert outcome(guard, ILL, "bob") == "answered"


def test_an_older_version_takes_the_policy_for_a_broken_one(register: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        assert con.execute("SELECT record_key FROM sdc.policies").fetchall() == [(None,)]
        con.execute("DELETE FROM sdc.settings WHERE starts_with(name, 'sequence ')").fetchall()
        with closing(sdcduck.open_guard(con)) as guard:
            assert outcome(guard, ILL) == "SDC060"


def test_the_custodian_sees_which_policies_limit_it(register: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        assert con.execute("SELECT name, sequence FROM sdc_policies()").fetchall() == [("people", "precision")]
        con.execute(f"FROM sdc_protect('people', unit := 'person_id', dimensions := {DIMENSIONS})").fetchall()
        assert con.execute("SELECT name, sequence FROM sdc_policies()").fetchall() == [("people", "off")]
    with closing(sdcduck.open_guard(register)) as guard:
        assert {outcome(guard, question) for question in questions(60)} == {"answered"}
    assert not folder(register).exists()


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """People of whom nothing is declared, since all that is tried is refused."""
    with closing(sdcduck.connect(made(tmp_path_factory.mktemp("others")), secret=SECRET)) as con:
        con.execute("""CREATE TABLE others AS SELECT *, person_id = 1 AS rare, 1 AS same, person_id / 3.0::DOUBLE AS share
            FROM people""").fetchall()
        yield con
        assert con.execute("SELECT name FROM sdc.policies").fetchall() == [("people",)]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("sequence := 'rank', secrets := ['ill']", "'rank' is not available for method := 'cell_key'"),
        ("sequence := 'precise', secrets := ['ill']", "did you mean 'precision'"),
        ("sequence := 'precision'", "argument 'secrets' must name the dimension"),
        ("sequence := 'precision', secrets := ['ill', 'a']", "a value of 'a' has fewer than 3 units"),
        ("sequence := 'precision', secrets := ['person_id']", "argument 'secrets' must name some of the dimensions"),
        ("sequence := 'precision', secrets := ['a'], method := 'threshold', min_units := 3", "method := 'threshold'"),
        ("sequence := 'precision', secrets := ['ill'], least_error := 1.5", "argument 'least_error' must be a share"),
        ("sequence := 'precision', secrets := ['ill'], least_error := 'NaN'::DOUBLE", "argument 'least_error'"),
        ("sequence := 'precision', secrets := ['ill'], on_breach := 'warn'", "argument 'on_breach' must be"),
        ("sequence := 'precision', secrets := ['ill'], population := 'persons'", "does not go with 'population'"),
        ("sequence := 'off', secrets := ['ill']", "goes with sequence := 'precision'"),
        ("sequence := 'precision', secrets := ['rare'], dimensions := ['a', 'rare']", "fewer than 3 units"),
        ("sequence := 'precision', secrets := ['same'], dimensions := ['a', 'same']", "fewer than two values"),
        ("sequence := 'precision', secrets := ['ill'], dimensions := ['ill', 'share']", "of it no cells can be made"),
    ],
)
def test_what_sdc_protect_refuses(others: duckdb.DuckDBPyConnection, more: str, said: str) -> None:
    dimensions = "" if "dimensions" in more else f", dimensions := {DIMENSIONS}"
    with pytest.raises(duckdb.Error, match=said.replace("(", r"\(")):
        others.execute(f"FROM sdc_protect('others', unit := 'person_id', {more}{dimensions})").fetchall()


def test_no_other_policy_may_answer_about_the_same_records(register: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("CREATE VIEW few AS SELECT * FROM people WHERE a < 4").fetchall()
        with pytest.raises(duckdb.Error, match="what its own answers tell"):
            con.execute(f"FROM sdc_protect('few', unit := 'person_id', dimensions := {DIMENSIONS}, min_units := 3)")


def test_a_database_in_no_file_cannot_keep_it() -> None:
    with closing(sdcduck.connect(secret=SECRET)) as con:
        con.execute("CREATE TABLE people AS SELECT i AS person_id, i % 2 AS ill FROM range(60) t(i)")
        con.execute("FROM sdc_add_record_key('people', unit := 'person_id', record_key := 'key')").fetchall()
        with pytest.raises(duckdb.Error, match="which is in no file"):
            con.execute("""FROM sdc_protect('people', unit := 'person_id', record_key := 'key', dimensions := ['ill'],
                sequence := 'precision', secrets := ['ill'])""")
