"""Plans through the guard: each step is answered as any question, and what is refused ends the plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from full_disk import no_more_than

import sdcduck
from sdcduck.catalog.audit_reading import read_log
from sdcduck.catalog.plan_file import Asker, PlanFile, plan_file_beside
from sdcduck.guard import Guard, Refused
from sdcduck.guard.planned import call_of
from sdcduck.methods.sequence import plans
from sdcduck.quoting import literal

KEY = bytes(range(32))
QUESTIONS = [
    "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region",
    "SELECT sex, count(*) AS \"it's\" FROM people\n WHERE region <> 'it''s \\n $1' GROUP BY sex -- der Größe nach\n ORDER BY sex",
    "SELECT count(*) AS n FROM people WHERE sex = 'f'",
]


@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "people.duckdb"
    with sdcduck.connect(path, secret="a secret that is long enough") as con:
        con.execute(
            "CREATE TABLE people AS SELECT i AS person, ['N', 'S', 'W'][1 + i % 3] AS region, "
            "['f', 'm'][1 + i % 2] AS sex FROM range(600) t(i)"
        )
        con.execute("FROM sdc_add_record_key('people', unit := 'person')").fetchall()
        con.execute("FROM sdc_protect('people', unit := 'person', dimensions := ['region', 'sex'])").fetchall()
        con.execute("FROM sdc_plan_rules(data := 'survey', release := '2026-1')").fetchall()
    return path


@pytest.fixture
def file(register: Path) -> Iterator[Path]:
    """The register, and no plan beside it."""
    yield register
    for path in register.parent.glob("people.duckdb.plans*"):
        path.unlink()


def sealed(questions: list[str], binding: plans.Binding | None = None) -> list[bytes]:
    return plans.traces([plans.block(text, step, bytes([step]) * 16) for step, text in enumerate(questions, 1)])


def opening(name: str, traces: list[bytes], binding: plans.Binding | None = None, more: str = "") -> str:
    signature = plans.sign(KEY, plans.message(traces[0], binding)).hex()
    return (
        f"FROM sdc_plan_open({literal(name)}, t0 := '{traces[0].hex()}', signatures := ['{signature}'], "
        f"public_keys := ['{plans.public_key(KEY).hex()}']{more})"
    )


def reveal(name: str, trace: bytes, statement: str) -> str:
    return f"SELECT * FROM sdc_plan_reveal({literal(name)}, '{trace.hex()}', {literal(statement)});"


def stream(guard: Guard, query: str, user: str = "") -> pa.Table:
    return guard.stream(query, user=user).read_all()


def ask(guard: Guard, query: str, user: str = "") -> pa.Table:
    return guard.sql(query, user=user)


WAYS = pytest.mark.parametrize("way", [ask, stream])


@WAYS
def test_an_analyst_reveals_step_by_step_and_gets_what_she_asked(file: Path, way) -> None:  # type: ignore[no-untyped-def]
    guard, traces = sdcduck.open_guard(file, log=file.parent / f"log {way.__name__}"), sealed(QUESTIONS)
    opened = way(guard, opening("it's income", traces), "ann")
    assert opened.to_pylist() == [{"plan": "it's income", "state": "awaiting", "step": 1}]
    for step, question in enumerate(QUESTIONS, 1):
        answer = way(guard, reveal("it's income", traces[step], question), "ann")
        assert answer.to_pylist() == guard.sql(question).to_pylist()
        assert answer.num_rows
    log = way(guard, "FROM sdc_plan_log('it''s income')", "ann").to_pylist()
    assert [(line["state"], line["step"]) for line in log] == [
        ("awaiting", 0), ("revealed", 1), ("awaiting", 1), ("revealed", 2), ("awaiting", 2), ("revealed", 3), ("done", 3),
    ]  # fmt: skip
    assert way(guard, "FROM sdc_plan_log('it''s income')", "bob").num_rows == 0
    guard.close()
    lines = [line for line in read_log(file.parent / f"log {way.__name__}") if line["user"] == "ann"]
    assert [line["verdict"] for line in lines] == ["answered"] * 5
    assert lines[1]["tables"] == ["people"]


@WAYS
@pytest.mark.parametrize(
    ("bad", "code"),
    [("SELECT * FROM people", "SDC040"), ("SELECT", "SDC001"), ("SELECT nothing FROM people", "SDC030")],
)
def test_a_refused_step_ends_the_plan(file: Path, way, bad: str, code: str) -> None:  # type: ignore[no-untyped-def]
    guard = sdcduck.open_guard(file)
    traces = sealed([QUESTIONS[0], bad, QUESTIONS[2]])
    way(guard, opening("p", traces))
    way(guard, reveal("p", traces[1], QUESTIONS[0]))
    with pytest.raises(Refused, match=code):
        way(guard, reveal("p", traces[2], bad))
    for trace, text in ((traces[2], bad), (traces[3], QUESTIONS[2])):
        with pytest.raises(Refused, match=f"SDC075.*since its question was refused .{code}"):
            way(guard, reveal("p", trace, text))
    assert plans.hash_of_text(QUESTIONS[2]).hex() not in plan_file_beside(file).read_text()


@WAYS
def test_what_does_not_open_is_not_even_looked_at(file: Path, way) -> None:  # type: ignore[no-untyped-def]
    guard, traces = sdcduck.open_guard(file, log=file.parent / f"unopened {way.__name__}"), sealed(QUESTIONS)
    way(guard, opening("p", traces))
    flipped = bytes([traces[1][0] ^ 1]) + traces[1][1:]
    with pytest.raises(Refused, match=r"SDC075.*opens no step"):
        way(guard, reveal("p", flipped, QUESTIONS[0]))
    with pytest.raises(Refused, match=r"SDC075.*has ended"):
        way(guard, reveal("p", traces[1], QUESTIONS[0]))
    guard.close()
    line = read_log(file.parent / f"unopened {way.__name__}")[1]
    assert (line["verdict"], line["sql"], line["rows"]) == ("SDC075", "", 0)


@WAYS
@pytest.mark.parametrize("hex", ["", "xyz", "ab" * 63, "é" * 128])
def test_a_trace_cut_short_ends_the_plan(file: Path, way, hex: str) -> None:  # type: ignore[no-untyped-def]
    guard, traces = sdcduck.open_guard(file), sealed(QUESTIONS)
    way(guard, opening("p", traces))
    with pytest.raises(Refused, match=r"SDC075.*opens no step"):
        way(guard, f"FROM sdc_plan_reveal('p', '{hex}', {literal(QUESTIONS[0])})")


def test_what_describes_a_step_opens_nothing(file: Path) -> None:
    guard, traces = sdcduck.open_guard(file), sealed(QUESTIONS)
    step = reveal("p", traces[1], QUESTIONS[0])
    assert [name for name, _ in guard.columns(step)] == ["region", "n"]
    assert [name for name, _ in guard.columns(opening("p", traces))] == ["plan", "state", "step"]
    assert guard.explain(step).answered
    assert guard.noise(step).num_rows == 2
    assert guard.rewrite(step) == guard.rewrite(QUESTIONS[0])
    assert guard.sql(f"EXPLAIN {step}").num_rows == 2
    assert not plan_file_beside(file).exists()
    guard.sql(opening("p", traces))
    before = plan_file_beside(file).read_bytes()
    guard.columns(step)
    guard.explain(step)
    assert plan_file_beside(file).read_bytes() == before
    assert guard.sql(step).num_rows == 3


def test_two_guards_and_two_logins(file: Path) -> None:
    one, other, traces = sdcduck.open_guard(file), sdcduck.open_guard(file), sealed(QUESTIONS)
    one.sql(opening("p", traces), user="ann")
    with pytest.raises(Refused, match=r"SDC075.*no plan 'p' of yours"):
        one.sql(reveal("p", traces[1], QUESTIONS[0]), user="bob")
    other.sql(reveal("p", traces[1], QUESTIONS[0]), user="ann")
    one.sql(reveal("p", traces[2], QUESTIONS[1]), user="ann")
    with pytest.raises(Refused, match="a plan is opened once"):
        other.sql(opening("p", traces), user="ann")


def test_full_disk_and_no_log_answer_nothing_and_end_nothing(file: Path, tmp_path: Path) -> None:
    guard, traces = sdcduck.open_guard(file, log=tmp_path / "log"), sealed(QUESTIONS)
    guard.sql(opening("p", traces))
    unlogged, size = sdcduck.open_guard(file), plan_file_beside(file).stat().st_size
    for ask_step in (ask, stream):
        with no_more_than(size + 10), pytest.raises(Refused, match="SDC076"):
            ask_step(unlogged, reveal("p", traces[1], QUESTIONS[0]))
    (tmp_path / "log").rename(tmp_path / "away")
    for ask_step in (ask, stream):
        with pytest.raises(Refused, match="SDC092"):
            ask_step(guard, reveal("p", traces[1], QUESTIONS[0]))
    (tmp_path / "away").rename(tmp_path / "log")
    assert guard.sql(reveal("p", traces[1], QUESTIONS[0])).num_rows == 3


@WAYS
def test_an_answer_that_could_not_be_written_down_does_not_leave(
    file: Path, way, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    guard, traces = sdcduck.open_guard(file, log=tmp_path / "log"), sealed(QUESTIONS)
    way(guard, opening("p", traces))

    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(PlanFile, "finish", full)
        with pytest.raises(Refused, match="SDC076"):
            way(guard, reveal("p", traces[1], QUESTIONS[0]))
    assert [line["verdict"] for line in read_log(tmp_path / "log")] == ["answered", "answered", "SDC076"]
    assert PlanFile(plan_file_beside(file)).plan(Asker("", ""), "p").state == "revealed"
    assert way(guard, reveal("p", traces[1], QUESTIONS[0])).num_rows == 3


@WAYS
def test_binding_holds(file: Path, way) -> None:  # type: ignore[no-untyped-def]
    guard, traces = sdcduck.open_guard(file), sealed(QUESTIONS)
    bound = plans.Binding("survey", "2026-1", "", 3, None)
    more = ", binding := {'data': 'survey', 'release': '2026-1', 'steps': 3}"
    for other in ("", more.replace("3}", "4}"), more.replace("'2026-1'", "NULL")):
        with pytest.raises(Refused, match=r"SDC075.*a signature is not that of its key"):
            way(guard, opening("p", traces, bound, other))
    for other in (", binding := {'data': 'survey'}", ", binding := {'dato': 'x', 'steps': 3}", ", binding := 'x'"):
        with pytest.raises(Refused, match="SDC075"):
            way(guard, opening("p", traces, bound, other))
    for elsewhere in (
        plans.Binding("census", "2026-1", "", 3), plans.Binding("survey", "2026-2", "", 3), plans.Binding("", "", "x", 3),
    ):  # fmt: skip
        fields = (
            f"'data': '{elsewhere.data}', 'release': '{elsewhere.release}', 'policy': '{elsewhere.policy}', 'steps': 3"
        )
        with pytest.raises(Refused, match=r"SDC075.*sealed for other data.*'survey'"):
            way(guard, opening("p", traces, elsewhere, f", binding := {{{fields}}}"))
    way(guard, opening("p", traces, bound, more))
    assert way(guard, reveal("p", traces[1], QUESTIONS[0])).num_rows == 3


def test_custodian_says_which_plans_are_taken_and_sees_all(tmp_path: Path) -> None:
    path, board = tmp_path / "people.duckdb", bytes(range(32, 64))
    with sdcduck.connect(path, secret="a secret that is long enough") as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS id, 2 AS a")
        con.execute("FROM sdc_declare_public('t')").fetchall()
        for bad, message in (
            ("required := ['ab']", "must be of 32 bytes"), ("bound := true", "go with the data"), ("bound := NULL", "true or false"),
        ):  # fmt: skip
            with pytest.raises(duckdb.Error, match=message):
                con.execute(f"FROM sdc_plan_rules({bad})")
        public = plans.public_key(board).hex()
        rules = f"FROM sdc_plan_rules(data := 'survey', bound := true, required := ['{public}'])"
        assert con.execute(rules).fetchall() == [("survey", None, None, True, [public])]
        assert con.execute("FROM sdc_plan_log()").fetchall() == []
    guard, traces, bound = sdcduck.open_guard(path), sealed(["FROM t"]), plans.Binding("survey", steps=1)
    more = ", binding := {'data': 'survey', 'steps': 1}"
    one = opening("p", traces, bound, more)
    with pytest.raises(Refused, match=f"SDC075.*asks for the signature of {public}"):
        guard.sql(one)
    both = one.replace("']", f"', '{plans.sign(board, plans.message(traces[0], bound)).hex()}']", 1)
    both = both.replace("'], binding", f"', '{public}'], binding")
    guard.sql(both, user="ann")
    unbound = opening("q", traces).replace("']", f"', '{plans.sign(board, traces[0]).hex()}']", 1)
    with pytest.raises(Refused, match=r"SDC075.*must be bound here"):
        guard.sql(unbound.replace("'])", f"', '{public}'])"), user="ann")
    assert guard.sql(reveal("p", traces[1], "FROM t"), user="ann").to_pylist() == [{"id": 1, "a": 2}]
    guard.close()
    with sdcduck.connect(path) as con:
        log = con.execute("SELECT login, plan, step, state FROM sdc_plan_log()").fetchall()
        assert log == [("ann", "p", 0, "awaiting"), ("ann", "p", 1, "revealed"), ("ann", "p", 1, "done")]
        assert con.execute("FROM sdc_plan_log('q')").fetchall() == []
        beside = plan_file_beside(path)
        assert con.execute("SELECT count(*) FROM sdc_plan_log(path := ?)", [str(beside)]).fetchall() == [(3,)]
        beside.write_bytes(beside.read_bytes().replace(b'"step": 1', b'"step": 2', 1))
        with pytest.raises(duckdb.Error, match="the file of plans was changed"):
            con.execute("FROM sdc_plan_log()")
        with pytest.raises(duckdb.Error, match="there is no file 'nothing'"):
            con.execute("FROM sdc_plan_log(path := 'nothing')")
    with sdcduck.connect() as con, pytest.raises(duckdb.Error, match="in memory"):
        con.execute("FROM sdc_plan_log()")


OTHER_FORMS = [
    "FROM sdc_plan_reveal('p')",
    "FROM sdc_plan_reveal('p', 'ab')",
    "FROM sdc_plan_reveal('p', 'ab', 3)",
    "FROM sdc_plan_reveal('p', 'ab', 'SELECT 1', 'more')",
    "FROM sdc_plan_reveal('p', 'ab', 'SELECT 1') LIMIT 1",
    "FROM sdc_plan_reveal('p', 'ab', (SELECT 'SELECT 1'))",
    "FROM sdc_plan_reveal('p', 'ab', 'SELECT 1'), people",
    "FROM sdc_plan_reveal('p', 'ab', 'SELECT 1'",
    "FROM sdc_plan_reveal",
    "FROM sdc_plan_open('p')",
    "FROM sdc_plan_open('p', t0 := 'ab', signatures := [], public_keys := [])",
    "FROM sdc_plan_open('p', t0 := 'ab', signatures := 3, public_keys := 'ab')",
    "FROM sdc_plan_log()",
    "FROM sdc_plan_log('p', plan := 'q')",
    "FROM sdc_plan_log([)",
    "FROM sdc_plan_log({'a': )",
    "FROM sdc_plan_reveal('p', 'ab', 'FROM sdc_plan_log(''p'')')",
    "FROM sdc_plan_reveal('p', 'ab', 'EXPLAIN FROM sdc_plan_log(''p'')')",
    "SELECT count(*) FROM sdc_plan_log('p')",
    "WITH t AS (FROM sdc_plan_reveal('p', 'ab', 'SELECT 1')) FROM t",
    "FROM (FROM sdc_plan_log('p'))",
    "FROM sdc_plan_seal(['SELECT 1'], 'ab')",
]


@WAYS
def test_other_forms_are_refused_and_end_no_plan(file: Path, way) -> None:  # type: ignore[no-untyped-def]
    guard, traces = sdcduck.open_guard(file), sealed(QUESTIONS)
    way(guard, opening("p", traces))
    before = plan_file_beside(file).read_bytes()
    for query in OTHER_FORMS:
        with pytest.raises(Refused, match=r"SDC0(01|05|10|21)"):
            way(guard, query)
        assert plan_file_beside(file).read_bytes() == before, query


@WAYS
def test_parameters_are_refused(file: Path, way) -> None:  # type: ignore[no-untyped-def]
    guard, traces = sdcduck.open_guard(file), sealed(["SELECT $1"])
    way(guard, opening("p", traces))
    with pytest.raises(Refused, match="SDC021"):
        guard.sql(reveal("p", traces[1], "SELECT $1"), [1])


def test_texts_are_read_to_the_letter() -> None:
    text = "SELECT 'it''s', \"a\\b\" -- é\n\t$1 $$x$$"
    call = call_of(reveal("p", bytes(64), text))
    assert call is not None
    assert call.given["statement"] == text
    call = call_of("FROM sdc_plan_reveal('p', statement := $q$SELECT $$a$$ || 'b'$q$, trace := 'ab')")
    assert call is not None
    assert call.given == {"plan": "p", "statement": "SELECT $$a$$ || 'b'", "trace": "ab"}


@WAYS
def test_where_only_plans_are_answered(file: Path, way) -> None:  # type: ignore[no-untyped-def]
    pivot = "PIVOT people ON sex USING count(*) GROUP BY region"
    guard, traces = sdcduck.open_guard(file, plans_only=True), sealed([QUESTIONS[0], pivot])
    for query in (QUESTIONS[0], pivot, "SUMMARIZE people", "SELECT 1 FROM people HAVING count(*) > 3"):
        with pytest.raises(Refused, match="SDC077"):
            way(guard, query)
    with pytest.raises(Refused, match="SDC077"):
        guard.columns(pivot)
    assert guard.columns(QUESTIONS[0])
    assert way(guard, f"EXPLAIN {QUESTIONS[0]}").num_rows == 2
    assert way(guard, "SELECT 1 AS alive").num_rows == 1
    assert way(guard, "DESCRIBE people").num_rows == 3
    way(guard, opening("p", traces))
    assert way(guard, reveal("p", traces[1], QUESTIONS[0])).num_rows == 3
    with pytest.raises(Refused, match="SDC077"):
        way(guard, reveal("p", traces[2], pivot))


def test_a_database_in_memory_has_no_plans() -> None:
    with sdcduck.connect(secret="a secret that is long enough") as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS id, 2 AS a")
        con.execute("FROM sdc_declare_public('t')").fetchall()
        with pytest.raises(Refused, match=r"SDC075.*in memory"):
            sdcduck.open_guard(con).sql(opening("p", sealed(QUESTIONS)))
        with pytest.raises(sdcduck.SDCError, match="in memory"):
            sdcduck.open_guard(con, plans_only=True)
