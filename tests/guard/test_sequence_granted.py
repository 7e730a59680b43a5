"""What is published anyway is the base, and the limit is on what other answers add (`granted`)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from register_of_people import SECRET, declare, made, outcome

import sdcduck
from sdcduck.guard import Refused

CUBE = "SELECT a, b, ill, count(*) AS n FROM people GROUP BY CUBE (a, b, ill)"
ALL = "SELECT a, b, c, count(*) FROM people WHERE ill GROUP BY a, b, c"
ILL = "SELECT a, b, count(*) FROM people WHERE ill GROUP BY a, b"


@pytest.fixture
def register(tmp_path: Path) -> Path:
    return made(tmp_path / "register", people=400)


def granting(register: Path, granted: str | None, least_error: float = 0.8) -> None:
    published = "" if granted is None else f", granted := $${granted}$$"
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        declare(con, more=f"{published}, least_error := {least_error}")


def test_what_is_granted_costs_nothing_and_the_rest_is_limited(register: Path) -> None:
    granting(register, None, 0.9)
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, CUBE) == "SDC070"
    granting(register, CUBE, 0.9)
    with closing(sdcduck.open_guard(register)) as guard:
        for query in (CUBE, ILL, "SELECT a, count(*) FROM people WHERE NOT ill GROUP BY ROLLUP (a)"):
            assert outcome(guard, query) == "answered", query
        assert guard.sql("SHOW sdc_sequence", user="ann").to_pylist()[0]["answers"] == 0
        said = [outcome(guard, f"SELECT c, count(*) FROM people WHERE ill AND a < {a} GROUP BY c") for a in range(1, 8)]
        [told] = guard.sql("SHOW sdc_sequence", user="ann").to_pylist()
    assert "answered" in said
    assert 0.9 <= told["least_error"] < 1
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, ALL) == "SDC070"


def test_errors_are_shares_of_those_after_what_is_granted(register: Path) -> None:
    """Of somebody who knows the table, a question is counted for what it adds."""
    table = "SELECT a, ill, count(*) FROM people GROUP BY ALL"
    question = "SELECT b, c, count(*) FROM people WHERE ill GROUP BY b, c"
    least = []
    for more in ("", f", granted := '{table}'"):
        with closing(sdcduck.connect(register, secret=SECRET)) as con:
            declare(con, more=f"{more}, on_breach := 'log'")
            con.execute("FROM sdc_sequence_forget('people', 'ann')").fetchall()
        with closing(sdcduck.open_guard(register)) as guard:
            for query in (table, question):
                assert outcome(guard, query) == "answered"
                least.append(guard.sql("SHOW sdc_sequence", user="ann").to_pylist()[0]["least_error"])
    alone, both, granted, added = least
    assert granted == 1
    assert both < alone < 1
    assert both < added < 1


def test_a_stored_publication_may_be_granted(register: Path) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute(f"FROM sdc_publication('yearbook', '{CUBE}')").fetchall()
        declare(con, more=", granted := 'yearbook'")
        con.execute("FROM sdc_drop_publication('yearbook')").fetchall()  # what was granted stays so
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, CUBE) == "answered"


def test_other_grants_stop_those_who_were_told_something(register: Path) -> None:
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, "SELECT a, count(*) FROM people WHERE ill GROUP BY a") == "answered"
    granting(register, CUBE)
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, "SELECT c, count(*) FROM people WHERE ill GROUP BY c") == "SDC072"
        assert outcome(guard, "SELECT c, count(*) FROM people WHERE ill GROUP BY c", "bob") == "answered"


def test_what_is_not_answered_itself_cannot_be_granted(register: Path) -> None:
    granting(register, "SELECT count(*) FROM people WHERE current_date > DATE '2020-01-01'")
    with (
        closing(sdcduck.open_guard(register)) as guard,
        pytest.raises(Refused, match=r"SDC060: .*what is granted is not answered itself: SDC071"),
    ):
        guard.sql(ILL, user="ann")


def test_what_tells_nothing_may_be_granted(register: Path) -> None:
    granting(register, "SELECT a, count(*) FROM people GROUP BY a")
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, ILL) in ("answered", "SDC070")
        assert outcome(guard, CUBE) == "SDC070"


def test_refusals_are_the_same_whatever_one_person_has(tmp_path: Path) -> None:
    said = []
    asked = [
        f"SELECT c, count(*) FROM people WHERE ill AND a < {a} AND b < {b} GROUP BY c" for a in (2, 5) for b in (2, 6)
    ]
    for name, turned in (("one", None), ("other", 5)):
        path = made(tmp_path / name, people=400, turned=turned, more=f", granted := '{CUBE}'")
        with closing(sdcduck.open_guard(path)) as guard:
            said.append([outcome(guard, query) for query in [*asked, CUBE, ALL]])
    assert said[0] == said[1]
    assert set(said[0]) == {"answered", "SDC070"}


@pytest.mark.parametrize(
    ("granted", "said"),
    [
        ("nothing", "'nothing'"),
        ("SELECT count( FROM people", "is no query"),
        ("SELECT count(*) FROM others", "must ask about 'people' alone"),
        ("SELECT count(*) FROM people, others", "must ask about 'people' alone"),
        ("SELECT 1", "must ask about 'people' alone"),
        ("exact", "is published with exact numbers"),
    ],
)
def test_what_sdc_protect_refuses(register: Path, granted: str, said: str) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("CREATE TABLE others AS SELECT a FROM range(8) t(a)").fetchall()
        con.execute(
            "FROM sdc_publish('exact', 'SELECT a, ill, count(*) AS n FROM people GROUP BY CUBE (a, ill)', max_count := 2)"
        ).fetchall()
        with pytest.raises(duckdb.Error, match=said):
            declare(con, more=f", granted := $${granted}$$")
