"""What logins were told stays known when a policy gets other dimensions, or asking stops; and when something fails."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from register_of_people import SECRET, declare, made, outcome

import sdcduck
from sdcduck.guard import Guard
from sdcduck.guard.sequence_cells import _Learned

BY_A = "SELECT a, count(*) FROM people WHERE ill GROUP BY a"
BY_AB = "SELECT a, b, count(*) FROM people WHERE ill GROUP BY a, b"
WIDE = "['a', 'b', 'c', 'ill']"
NARROW = "['a', 'b', 'ill']"


@pytest.fixture
def register(tmp_path: Path) -> Path:
    return made(tmp_path / "register", people=400)


def declared(register: Path, dimensions: str, more: str = "") -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        declare(con, dimensions=dimensions, more=more)


def known(guard: Guard) -> tuple[int, float]:
    [told] = guard.sql("SHOW sdc_sequence", user="ann").to_pylist()
    return told["sets"], told["least_error"]


def least(guard: Guard, query: str, user: str) -> float | None:
    guard.sql(query, user=user)
    return float(guard.sql("SHOW sdc_sequence", user=user).to_pylist()[0]["least_error"])


def test_more_dimensions_and_what_was_told_is_known(register: Path) -> None:
    """Who was told the table by a and b has nothing new in it, and has learned from it when she asks for more."""
    logged = ", on_breach := 'log'"
    by_c = "SELECT c, count(*) FROM people WHERE ill GROUP BY c"
    declared(register, NARROW, logged)
    with closing(sdcduck.open_guard(register)) as guard:
        guard.sql(BY_AB, user="ann")
        first = known(guard)[0]
    declared(register, WIDE, logged)
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_AB) == "answered"
        assert outcome(guard, BY_A) == "answered"
        before = known(guard)
        assert before[0] == first + 8, "the table by both is not new, and that by a is"
        found = least(guard, by_c, "ann")
        for query in (BY_AB, BY_A):
            guard.sql(query, user="bob")
        assert found == least(guard, by_c, "bob"), "as if all were told now"
    with closing(sdcduck.open_guard(register)) as another:
        assert outcome(another, by_c) == "answered"
        assert known(another)[0] == before[0] + 8


def test_a_limit_holds_over_a_new_declaration(register: Path) -> None:
    declared(register, NARROW)
    asked = [f"SELECT b, count(*) FROM people WHERE ill AND a IN ({a}, {a + 1}, {a + 3}) GROUP BY b" for a in range(5)]
    asked += [f"SELECT a, count(*) FROM people WHERE ill AND b IN ({b}, {b + 1}) GROUP BY a" for b in range(7)] * 2
    declared(register, NARROW, ", least_error := 0.97")
    with closing(sdcduck.open_guard(register)) as guard:
        said = {question: outcome(guard, question) for question in asked}
    assert set(said.values()) == {"answered", "SDC070"}
    declared(register, WIDE, ", least_error := 0.97")
    with closing(sdcduck.open_guard(register)) as guard:
        now = {question: outcome(guard, question) for question in asked}
    assert {question for question, code in said.items() if code == "answered"} <= {
        question for question, code in now.items() if code == "answered"
    }
    assert "SDC070" in now.values()


def test_fewer_dimensions_are_translated_where_they_can_be(register: Path) -> None:
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A) == "answered"
        assert outcome(guard, "SELECT c, count(*) FROM people WHERE ill GROUP BY c", "bob") == "answered"
    declared(register, NARROW)
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A) == "answered"
        assert known(guard)[0] == 8, "nothing was new"
        assert outcome(guard, BY_A, "bob") == "SDC072", "sets by c are no sets by a and b"
    declared(register, WIDE)
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A) == outcome(guard, BY_A, "bob") == "answered"


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ("UPDATE people SET b = (b + 1) % 8 WHERE person_id < 30", ""),
        ("DELETE FROM people WHERE person_id < 30", ""),
        ("UPDATE people SET ill = NOT ill WHERE person_id = 7", ""),
        ("SELECT 1", f", granted := '{BY_A}'"),
    ],
)
def test_other_records_and_another_publication_stop_the_answers(register: Path, change: str, more: str) -> None:
    declared(register, NARROW)
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_AB) == "answered"
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute(change).fetchall()
    declared(register, WIDE, more)
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_AB) == "SDC072"
        assert outcome(guard, BY_AB, "bob") in ("answered", "SDC070")


def test_another_secret_stops_the_answers(register: Path) -> None:
    """What told nothing of the ill may tell of a, and was not written down."""
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A) == "answered"
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute(f"""FROM sdc_protect('people', unit := 'person_id', dimensions := {WIDE}, min_units := 3,
            sequence := 'precision', secrets := ['ill', 'a'])""").fetchall()
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A) == "SDC072"


def test_exact_counts_are_translated_with_what_was_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    protect = """FROM sdc_protect('people', unit := 'i', dimensions := {}, method := 'threshold', min_units := 3,
        sequence := 'atoms')"""
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute("CREATE TABLE people AS SELECT i, i % 2 AS a, i % 3 AS b, i % 5 = 0 AS c FROM range(60) t(i)")
        con.execute("FROM sdc_add_record_key('people', unit := 'i')").fetchall()
        con.execute(protect.format("['a', 'b']")).fetchall()
    with closing(sdcduck.open_guard(path)) as guard:
        assert outcome(guard, "SELECT count(*) FROM people WHERE a = 0") == "answered"
        assert outcome(guard, "SELECT b, count(*) FROM people WHERE a = 0 GROUP BY b") == "answered"
    with closing(sdcduck.connect(path, secret=SECRET)) as con:
        con.execute(protect.format("['a', 'b', 'c']")).fetchall()
    with closing(sdcduck.open_guard(path)) as guard:
        assert outcome(guard, "SELECT count(*) FROM people WHERE a = 0 AND b = 1") == "answered"
        assert guard.sql("SHOW sdc_sequence", user="ann").to_pylist()[0]["sets"] == 4, "it is not new"
        assert outcome(guard, "SELECT count(*) FROM people WHERE a = 0 AND b = 1 AND c") == "SDC070"


# --- When something fails ---------------------------------------------------------------------------------------------


def test_what_was_written_and_not_kept_is_read_again(register: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A) == "answered"

        def stopped(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(_Learned, "keep", stopped)
            with pytest.raises(KeyboardInterrupt):
                guard.sql("SELECT b, count(*) FROM people WHERE ill GROUP BY b", user="ann")
        assert outcome(guard, "SELECT b, count(*) FROM people WHERE ill GROUP BY b") == "answered"
        assert known(guard) == (16, known(guard)[1]), "charged once, as it was written down"


def test_a_policy_that_cannot_be_looked_at_leaves_nothing_behind(register: Path) -> None:
    """The cells of what was declared in between are not taken for those of before."""
    with closing(sdcduck.connect(register, secret=SECRET)) as con, closing(sdcduck.open_guard(con)) as guard:
        assert outcome(guard, BY_A) == "answered"
        declare(
            con,
            dimensions="['b', 'a', 'ill']",
            more=", granted := 'SELECT a, ill, count(*) + random() FROM people GROUP BY ALL'",
        )
        assert outcome(guard, BY_A) == "SDC060"
        declare(con)
        assert outcome(guard, BY_A) == "answered"
        assert outcome(guard, "SELECT count(*) FROM people WHERE ill AND a = 1") == "answered"
        assert known(guard)[0] == 8


@pytest.mark.parametrize("least", [1, 3])
def test_who_is_alone_is_not_asked_for_where_small_numbers_are_told(tmp_path: Path, least: int) -> None:
    """A 0 has no noise: without `min_units` a single answer tells of more than half of the ill that they are."""
    register = made(tmp_path / "register", least=least)
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        cells = con.execute("SELECT a, b, c FROM people ORDER BY person_id LIMIT 6").fetchall()
    with closing(sdcduck.open_guard(register)) as guard:
        said = {
            outcome(
                guard, f"SELECT count(*) FROM people WHERE ill AND a = {a} AND b = {b} AND c = {c}", f"user {a}{b}{c}"
            )
            for a, b, c in cells
        }
    assert ("SDC070" in said) == (least == 1)
