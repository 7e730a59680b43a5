"""Exact counts: a login is told no groups apart of fewer units than a policy publishes (`sequence := 'atoms'`)."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from register_of_people import SECRET, file_of, folder, outcome, told
from register_of_people import made as made_with_noise

import sdcduck
from sdcduck.guard import Guard, Refused

POLICY = """FROM sdc_protect('people', unit := 'person', dimensions := {dimensions}, method := 'threshold',
    min_units := {least}, sequence := '{mode}'{more})"""
DIMENSIONS = "['a', 'b', 'ill']"


def made(folder: Path, mode: str = "atoms", *, people: int = 400, more: str = "") -> Path:
    """The file of a register: four values of each of two dimensions; two are ill of each group of both, but of one."""
    folder.mkdir(exist_ok=True)
    path = folder / "people.duckdb"
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute(f"""CREATE TABLE people AS SELECT i AS person, i % 4 AS a, i // 4 % 4 AS b,
            i < 32 AND i % 16 < 15 AS ill FROM range({people}) t(i)""").fetchall()
        declare(con, mode, more=more)
    return path


def declare(
    con: duckdb.DuckDBPyConnection, mode: str, *, dimensions: str = DIMENSIONS, least: int = 5, more: str = ""
) -> None:
    con.execute(POLICY.format(dimensions=dimensions, least=least, mode=mode, more=more)).fetchall()


@pytest.fixture(scope="session", params=["atoms", "pairwise"])
def untouched(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return made(tmp_path_factory.mktemp("thresholds") / str(request.param), str(request.param))


BY_A = "SELECT a, count(*) AS n FROM people GROUP BY a ORDER BY a"


# --- What is answered -------------------------------------------------------------------------------------------------


def test_exact_counts_are_answered_while_no_group_is_small(guard: Guard, untouched: Path) -> None:
    assert guard.sql(BY_A, user="ann").column("n").to_pylist() == [100] * 4
    assert outcome(guard, "SELECT b, count(*) FROM people GROUP BY b") == "answered"
    assert outcome(guard, "SELECT a, b, count(*) FROM people GROUP BY CUBE (a, b)") == "answered"
    ill = "SELECT count(*) FROM people WHERE ill"  # two of each group, of which no two questions tell alone
    assert outcome(guard, ill) == {"atoms": "SDC070", "pairwise": "answered"}[untouched.parent.name]
    assert outcome(guard, "SELECT a, ill, count(*) FROM people GROUP BY a, ill", "bob") == "answered"


def test_a_question_about_few_is_refused_and_so_is_all_but_few(guard: Guard) -> None:
    for query in (
        "SELECT count(*) FROM people WHERE ill AND a = 0 AND b = 0 AND a = 0",
        "SELECT count(*) FROM people WHERE NOT (ill AND a = 0 AND b = 0)",
        "SELECT count(*) FILTER (WHERE ill AND a = 0 AND b = 0), count(*) FROM people",
        "SELECT a, b, count(*) FROM people WHERE ill GROUP BY a, b",
        "SELECT a, count(*) FROM people WHERE ill AND b = 0 GROUP BY CUBE (a)",
    ):
        assert outcome(guard, query) == "SDC070", query


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM people WHERE a < 9",
        "SELECT count(*) FROM people",
        "SELECT count(*) FROM people WHERE a = 77",
        "SELECT count(*) AS n, n * 2 AS twice FROM people",
    ],
)
def test_what_everybody_knows_is_free(register: Path, guard: Guard, query: str) -> None:
    assert outcome(guard, query) == "answered"
    assert not folder(register).exists()


def test_a_wider_table_of_what_was_answered_is_answered(guard: Guard) -> None:
    """Sums of answered cells tell nothing new."""
    assert outcome(guard, "SELECT a, b, count(*) FROM people GROUP BY a, b") == "answered"
    for query in (
        BY_A,
        "SELECT a < 2, count(*) FROM people GROUP BY ALL",
        "SELECT count(*) FROM people WHERE a = 1 AND b IN (0, 3) OR a = 2",
    ):
        assert outcome(guard, query) == "answered"


@pytest.fixture(scope="session")
def earners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A register with incomes, of which tests take copies."""
    register = made(tmp_path_factory.mktemp("earners") / "register")
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("CREATE TABLE earners AS SELECT *, nullif(person, 3) * 1.5 AS income FROM people").fetchall()
        con.execute("FROM sdc_unprotect('people')").fetchall()  # of which it is a copy
        con.execute("""FROM sdc_protect('earners', unit := 'person', dimensions := ['a', 'b'], measures := ['income'],
            method := 'threshold', min_units := 5, sequence := 'atoms')""").fetchall()
    return register


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(income) FROM earners",
        "SELECT avg(income) FROM earners WHERE a = 1",
        "SELECT stddev(income) FROM earners",
        "SELECT count(income) FROM earners",
        "SELECT sum(n) FROM (SELECT person, count(*) AS n FROM earners GROUP BY person)",
        "SELECT count(*) FROM earners p JOIN earners q ON p.person = q.person",
    ],
)
def test_what_is_no_count_is_refused(earners: Path, tmp_path: Path, query: str) -> None:
    (tmp_path / "register").mkdir()
    with closing(sdcduck.open_guard(shutil.copy(earners, tmp_path / "register"))) as guard:
        assert outcome(guard, "SELECT a, count(*) FROM earners GROUP BY a") == "answered"
        assert outcome(guard, query) not in ("answered", "SDC001", "SDC070")


def test_a_refusal_says_nothing_of_which_group_is_small(guard: Guard) -> None:
    with pytest.raises(Refused) as one:
        guard.sql("SELECT count(*) FROM people WHERE ill AND a = 0 AND b = 0", user="ann")
    with pytest.raises(Refused) as other:
        guard.sql("SELECT count(*) FROM people WHERE ill AND a = 3 AND b = 3", user="ann")
    assert str(one.value) == str(other.value)


# --- Sets, sizes and brute force --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_what_is_answered_is_what_atoms_of_records_allow(tmp_path: Path, seed: int) -> None:
    """Random questions, judged beside the guard from the records alone."""
    register = made(tmp_path / "register", people=150)
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        records = con.execute("SELECT person, a, b, ill FROM people").fetchall()
    places = {(a, b, ill) for a in range(4) for b in range(4) for ill in (False, True)}
    chance, answered, refused = random.Random(seed), list[frozenset[object]](), set[frozenset[object]]()
    outcomes = set()
    with closing(sdcduck.open_guard(register)) as guard:
        for _ in range(40):
            rows, columns = (sorted(chance.sample(range(4), chance.randint(1, 4))) for _ in "ab")
            sick = chance.choice(["", " AND ill", " AND NOT ill"])
            listed = [", ".join(map(str, of)) for of in (rows, columns)]
            chosen = frozenset(
                (a, b, ill)
                for a, b, ill in places
                if a in rows and b in columns and sick in ("", " AND ill" if ill else " AND NOT ill")
            )
            atoms: dict[tuple[bool, ...], int] = {
                tuple(place in one for one in [*answered, chosen]): 0 for place in places
            }
            before = {signature[:-1] for signature in atoms if (*signature[:-1], not signature[-1]) in atoms}
            for _, a, b, ill in records:
                atoms[tuple((a, b, ill) in one for one in [*answered, chosen])] += 1
            small = any(units < 5 for signature, units in atoms.items() if signature[:-1] in before)
            near = any(
                chosen != other
                and max(sum(row[1:] in one for row in records) for one in (chosen - other, other - chosen)) < 5
                for other in refused
            )
            said = outcome(guard, f"SELECT count(*) FROM people WHERE a IN ({listed[0]}) AND b IN ({listed[1]}){sick}")
            known = chosen in answered or not chosen or chosen == places
            assert said == ("answered" if known or not (small or near) else "SDC070")
            outcomes.add(said)
            if said == "answered":
                answered.append(chosen)
            else:
                refused.add(chosen)
    assert outcomes == {"answered", "SDC070"}


# --- What a refusal tells ---------------------------------------------------------------------------------------------


def turned(tmp_path: Path, name: str, mode: str, person: int | None) -> Path:
    """A register in which one person is ill, or is not, and else the same."""
    path = made(tmp_path / name, mode)
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        if person is not None:
            con.execute("UPDATE people SET ill = NOT ill WHERE person = ?", [person]).fetchall()
        declare(con, mode)
    return path


@pytest.mark.parametrize("mode", ["atoms", "pairwise"])
def test_nobody_and_one_are_refused_alike(tmp_path: Path, mode: str) -> None:
    """Men, and men with her if she is ill: whether she is must not show in what is refused."""
    said = []
    for name, changed in (("one", None), ("other", 15)):
        with closing(sdcduck.open_guard(turned(tmp_path, name, mode, changed))) as guard:
            asked = ("b = 0", "b = 0 OR (a = 3 AND b = 3 AND ill)", "ill")
            said.append([outcome(guard, f"SELECT count(*) FROM people WHERE {where}") for where in asked])
    assert said[0] == said[1] == ["answered", "SDC070", "answered"]


@pytest.mark.parametrize(("mode", "finds"), [("off", True), ("atoms", False), ("pairwise", False)])
def test_who_brings_a_group_over_the_threshold_is_not_found(tmp_path: Path, mode: str, finds: bool) -> None:
    """A group of one fewer than the threshold is not published; with her it is, if she is ill."""
    path = tmp_path / "people.duckdb"
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute("""CREATE TABLE people AS SELECT i AS person, CASE WHEN i < 300 THEN 'x' WHEN i < 320 THEN 'y' ELSE
            'z' END AS a, i % 3 AS b, i % 10 = 0 OR (i BETWEEN 300 AND 303) OR i = 320 AS ill FROM range(340) t(i)
            WHERE NOT (i BETWEEN 304 AND 319 AND i % 10 = 0) AND NOT i IN (330)""").fetchall()
        if mode == "off":
            con.execute(f"""FROM sdc_protect('people', unit := 'person', dimensions := {DIMENSIONS},
                method := 'threshold', min_units := 5)""").fetchall()
        else:
            declare(con, mode)
    with closing(sdcduck.open_guard(path)) as guard:
        counts = [told(guard, where) for where in ("a = 'y' AND ill", "(a = 'y' OR a = 'z') AND ill")]
    assert (counts == [None, 5]) is finds
    assert finds or counts == [None, None]


# --- The file ---------------------------------------------------------------------------------------------------------


def test_refused_questions_are_written_down_once(register: Path) -> None:
    query = "SELECT count(*) FROM people WHERE ill AND a = 0 AND b = 0"
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, query) == "SDC070"
        before = file_of(register).read_bytes()
        assert outcome(guard, query) == "SDC070"
        assert file_of(register).read_bytes() == before
        assert outcome(guard, BY_A) == "answered"
        shown = guard.sql("SHOW sdc_sequence", user="ann").to_pylist()
    assert shown == [{"name": "people", "answers": 1, "sets": 4, "least_error": None, "limit": 5.0}]
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        rows = con.execute("SELECT number, cells, new_sets, least_error, smallest, verdict FROM sdc_sequence('people')")
        assert rows.fetchall() == [(1, 1, 1, None, 2, "refused"), (2, 4, 4, None, 100, "answered")]


def test_another_guard_knows_what_was_answered_and_refused(register: Path, guard: Guard) -> None:
    small = "ill AND a = 0 AND b = 0"
    assert outcome(guard, BY_A) == "answered"
    assert outcome(guard, f"SELECT count(*) FROM people WHERE {small}") == "SDC070"
    with closing(sdcduck.open_guard(register)) as another:
        assert outcome(another, BY_A) == "answered"
        assert outcome(another, f"SELECT count(*) FROM people WHERE a = 1 OR ({small})") == "SDC070"
        assert outcome(another, "SELECT a, b, count(*) FROM people GROUP BY a, b", "bob") == "answered"


def test_a_breach_may_be_answered_and_written_down(tmp_path: Path) -> None:
    with closing(sdcduck.open_guard(made(tmp_path / "register", more=", on_breach := 'log'"))) as guard:
        assert outcome(guard, "SELECT a, b, count(*) FROM people WHERE ill GROUP BY a, b") == "answered"
        assert outcome(guard, BY_A) == "answered"
        assert outcome(guard, "SELECT b, count(*) FROM people GROUP BY b") == "answered"
    with closing(sdcduck.connect(tmp_path / "register" / "people.duckdb", secret=SECRET)) as con:
        verdicts = con.execute("SELECT verdict FROM sdc_sequence('people') ORDER BY number").fetchall()
    assert [verdict for (verdict,) in verdicts] == ["breach", "answered", "answered"]


def test_a_file_that_is_gone_stops_all_answers(register: Path, guard: Guard) -> None:
    assert outcome(guard, BY_A) == "answered"
    file_of(register).unlink()
    assert outcome(guard, "SELECT b, count(*) FROM people GROUP BY b") == "SDC072"
    assert outcome(guard, "SELECT count(*) FROM people") == "answered", "it tells nothing"


# --- Data and policies that change ------------------------------------------------------------------------------------


def test_records_that_changed_stop_the_answers(register: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con, closing(sdcduck.open_guard(con)) as guard:
        assert outcome(guard, BY_A) == "answered"
        con.execute("UPDATE people SET ill = true WHERE person = 100").fetchall()
        assert outcome(guard, "SELECT b, count(*) FROM people GROUP BY b") == "SDC072"
        assert outcome(guard, BY_A, "bob") == "answered"
        con.execute("FROM sdc_sequence_forget('people', 'ann')").fetchall()
        assert outcome(guard, BY_A) == "answered"


def test_a_value_of_few_that_came_stops_the_answers(register: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con, closing(sdcduck.open_guard(con)) as guard:
        con.execute("UPDATE people SET a = 9 WHERE person = 7").fetchall()
        assert outcome(guard, BY_A) == "SDC060"


def test_a_larger_threshold_holds_at_once(register: Path, untouched: Path) -> None:
    mode = untouched.parent.name
    with closing(sdcduck.connect(register, secret=SECRET)) as con, closing(sdcduck.open_guard(con)) as guard:
        assert outcome(guard, BY_A) == "answered"
        declare(con, mode, least=28)
        assert outcome(guard, BY_A) == "answered"
        assert outcome(guard, "SELECT a, b, count(*) FROM people GROUP BY a, b") == "SDC070"
        declare(con, mode, least=5)
        assert outcome(guard, "SELECT a, b, count(*) FROM people GROUP BY a, b", "bob") == "answered"


def test_an_older_version_takes_the_policy_for_a_broken_one(register: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        assert con.execute("SELECT unit FROM sdc.policies").fetchall() == [(None,)]
        con.execute("DELETE FROM sdc.settings WHERE starts_with(name, 'sequence ')").fetchall()
        with closing(sdcduck.open_guard(con)) as guard:
            assert outcome(guard, BY_A) == "SDC060"


def test_a_setting_that_an_older_version_left_behind_says_nothing(register: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        kept = con.execute("SELECT name, value FROM sdc.settings WHERE starts_with(name, 'sequence ')").fetchall()
        con.execute("""FROM sdc_protect('people', unit := 'person', dimensions := ['a', 'b', 'ill'],
            method := 'threshold', min_units := 5)""").fetchall()
        con.executemany("INSERT INTO sdc.settings VALUES (?, ?)", kept)
        assert con.execute("SELECT sequence FROM sdc_policies()").fetchall() == [("off",)]
        with closing(sdcduck.open_guard(con)) as guard:
            assert outcome(guard, "SELECT a, b, count(*) FROM people WHERE ill GROUP BY a, b") == "answered"


def test_the_custodian_sees_the_mode(register: Path, untouched: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        rows = con.execute("SELECT name, sequence FROM sdc_policies()").fetchall()
    assert rows == [("people", untouched.parent.name)]


def test_secrets_say_which_combinations_are_known(tmp_path: Path) -> None:
    """No man is pregnant; where that is known, a table in which he is missing tells nothing new."""
    path = tmp_path / "people.duckdb"
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute("""CREATE TABLE people AS SELECT i AS person, i % 2 AS a, i % 2 = 1 AND i % 3 = 0 AS b,
            i % 5 = 0 AS ill FROM range(300) t(i)""").fetchall()
        asked = [
            "SELECT a, b, count(*) FROM people GROUP BY a, b",
            "SELECT b, count(*) FROM people WHERE ill GROUP BY b",
        ]
        for more, wanted in (("", ["SDC070", "answered"]), (", secrets := ['ill']", ["answered", "answered"])):
            declare(con, "atoms", more=more)
            con.execute("FROM sdc_sequence_forget('people', 'ann')").fetchall()
            with closing(sdcduck.open_guard(con)) as guard:
                assert [outcome(guard, query) for query in asked] == wanted


def test_missing_values_are_a_value(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute("CREATE TABLE people AS SELECT i AS person, nullif(i % 4, 0) AS a FROM range(100) t(i)").fetchall()
        declare(con, "atoms", dimensions="['a']")
        with closing(sdcduck.open_guard(con)) as guard:
            assert guard.sql(BY_A, user="ann").column("n").to_pylist() == [25] * 4
            assert outcome(guard, "SELECT count(a) FROM people") == "answered"
        assert con.execute("SELECT smallest FROM sdc_sequence('people') ORDER BY number").fetchall() == [(25,), (None,)]


@pytest.fixture(scope="session")
def others(untouched: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A copy of the register with people that no policy protects, which stays as it is: nothing is declared there."""
    register = shutil.copy(untouched, tmp_path_factory.mktemp("others"))
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("""CREATE TABLE others AS SELECT people.* REPLACE (row_number() OVER () AS person), person AS many,
            person AS more FROM people CROSS JOIN range(6)""").fetchall()
        con.execute("FROM sdc_add_record_key('others', unit := 'person')").fetchall()
        yield con


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("method := 'cell_key', sequence := 'atoms'", "'atoms' is not available for method := 'cell_key'; 'precision'"),
        (
            "method := 'threshold', min_units := 5, sequence := 'precision', secrets := ['ill']",
            "'atoms' and 'pairwise'",
        ),
        ("method := 'rounding', sequence := 'pairwise'", "'pairwise' is not available for method := 'rounding'"),
        ("method := 'threshold', min_units := 1, sequence := 'atoms'", "argument 'min_units' must be at least 2"),
        (
            "method := 'threshold', min_units := 5, sequence := 'atoms', least_error := 0.9",
            "goes with sequence := 'pre",
        ),
        ("method := 'threshold', min_units := 5, sequence := 'atoms', secrets := ['x']", "must name some of the dim"),
        ("method := 'threshold', min_units := 5, sequence := 'atoms', secrets := ['a', 'A']", "has 'a' twice"),
        ("method := 'threshold', min_units := 5, sequence := 'atoms', secrets := [NULL]", "must name some of the dim"),
        ("method := 'threshold', min_units := 5, sequence := 'atoms', population := 'p'", "does not go with 'popul"),
        ("method := 'threshold', min_units := 300, sequence := 'atoms'", "a value of 'ill' has fewer than 300 units"),
        (
            "method := 'threshold', min_units := 5, sequence := 'atoms', dimensions := ['many', 'more']",
            "more than 100,000",
        ),
    ],
)
def test_what_sdc_protect_refuses(others: duckdb.DuckDBPyConnection, more: str, said: str) -> None:
    dimensions = "" if "dimensions" in more else f", dimensions := {DIMENSIONS}"
    with pytest.raises(duckdb.Error, match=said):
        others.execute(f"FROM sdc_protect('others', unit := 'person', {more}{dimensions})").fetchall()
    assert others.execute("SELECT name FROM sdc_policies()").fetchall() == [("people",)]


# --- Several secrets under noise --------------------------------------------------------------------------------------


def test_several_secrets_are_counted_together(tmp_path: Path) -> None:
    """Who asks for one of two secrets, for the other, and for both has asked three times of the same people."""
    register = made_with_noise(tmp_path / "register", people=400)
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("ALTER TABLE people ADD COLUMN poor BOOLEAN").fetchall()
        con.execute("UPDATE people SET poor = hash(person_id * 5) % 3 = 0").fetchall()
        con.execute("""FROM sdc_protect('people', unit := 'person_id', dimensions := ['a', 'b', 'ill', 'poor'],
            min_units := 3, sequence := 'precision', secrets := ['poor', 'ill'])""").fetchall()
    with closing(sdcduck.open_guard(register)) as guard:
        for query in ("ill", "NOT ill", "poor", "ill AND poor", "ill OR poor"):
            assert outcome(guard, f"SELECT a, count(*) FROM people WHERE {query} GROUP BY a") == "answered"
        assert outcome(guard, "SELECT a, b, count(*) FROM people GROUP BY a, b") == "answered"
        [shown] = guard.sql("SHOW sdc_sequence", user="ann").to_pylist()
    assert shown["answers"] == 5, "who is in which group of a and b is known"
    assert shown["sets"] > 3 * 5
    assert shown["least_error"] < 1
