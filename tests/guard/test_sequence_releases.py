"""The next release of a table: what logins were told of the one before is counted for the units that are in both."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from register_of_people import SECRET, made, outcome

import sdcduck
from sdcduck.guard import Guard

LATER = """FROM sdc_protect('{name}', unit := 'person_id', dimensions := ['a', 'b', 'c', 'ill'], min_units := 3,
    sequence := 'precision', secrets := ['ill'], follows := '{follows}'{more})"""
BY_A = "SELECT a, count(*) FROM {} WHERE ill GROUP BY a"
SAME = "CREATE TABLE later AS FROM people"
MOVED = "CREATE TABLE later AS SELECT * REPLACE (CASE WHEN person_id = 7 THEN (a + 1) % 8 ELSE a END AS a) FROM people"


@pytest.fixture
def register(tmp_path: Path) -> Path:
    return made(tmp_path / "register", people=400)


def follow(register: Path, table: str, name: str = "later", follows: str = "people", more: str = "") -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        for statement in table.split(";"):
            con.execute(statement).fetchall()
        con.execute(LATER.format(name=name, follows=follows, more=more)).fetchall()


def sets(guard: Guard, table: str, user: str = "ann") -> int:
    told = guard.sql("SHOW sdc_sequence", user=user).to_pylist()
    return sum(one["sets"] for one in told if one["name"] == table)


def test_groups_of_the_same_people_are_nothing_new(register: Path) -> None:
    """One person moved to another group: two groups are others, and six have the numbers that they had."""
    with closing(sdcduck.open_guard(register)) as guard:
        before = dict(map(tuple, guard.sql(BY_A.format("people"), user="ann").to_pandas().to_numpy().tolist()))
    follow(register, MOVED)
    with closing(sdcduck.open_guard(register)) as guard:
        now = dict(map(tuple, guard.sql(BY_A.format("later"), user="ann").to_pandas().to_numpy().tolist()))
        assert sets(guard, "later") == 2
        guard.sql(BY_A.format("later"), user="bob")
        assert sets(guard, "later", "bob") == 8
    assert sum(before[a] == now[a] for a in before) >= 6


def test_the_earlier_release_tells_nothing_new(register: Path) -> None:
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A.format("people")) == "answered"
    follow(register, SAME)
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A.format("people")) == "answered"
        assert outcome(guard, BY_A.format("people"), "bob") == "SDC071"
        assert outcome(guard, "SELECT a, count(*) FROM people GROUP BY a", "bob") == "answered"
        assert outcome(guard, BY_A.format("later")) == "answered"
        assert sets(guard, "later") == 0


CAME = """CREATE TABLE later AS FROM people; INSERT INTO later BY NAME SELECT 1007 AS person_id, 2 AS a, 7 AS b, 4 AS c,
    true AS ill, sdc_record_key(1007) AS record_key"""
WENT = "CREATE TABLE later AS FROM people WHERE person_id <> 7"


@pytest.mark.parametrize("change", [CAME, WENT, MOVED])
def test_differences_of_two_releases_do_not_find_one_person_out(register: Path, change: str) -> None:
    """49 large groups that person 7 (or one who came) is in, and the same in the next release: 49 differences of one person.

    Each release alone tells nobody apart by that, and answers all to who was told nothing of the other.
    """
    wheres = [f"a <> {a} AND b <> {b}" for a in range(8) for b in range(8) if a != 2 and b != 7]
    if change == MOVED:
        wheres = [f"a <> 3 AND b <> {b} AND c <> {c}" for b in range(7) for c in range(8) if c != 4]
    with closing(sdcduck.open_guard(register)) as guard:
        said = [outcome(guard, f"SELECT count(*) FROM people WHERE ill AND {where}") for where in wheres]
    follow(register, change)
    with closing(sdcduck.open_guard(register)) as guard:
        now = [outcome(guard, f"SELECT count(*) FROM later WHERE ill AND {where}") for where in wheres]
        alone = [outcome(guard, f"SELECT count(*) FROM later WHERE ill AND {where}", "bob") for where in wheres]
        told = guard.sql("SHOW sdc_sequence", user="ann").to_pylist()
    [least] = [one["least_error"] for one in told if one["name"] == "later"]
    assert set(said) == set(alone) == {"answered"}
    assert 0 < now.count("answered") < 25
    assert set(now) == {"answered", "SDC070"}
    assert least >= 0.8


def test_three_releases(register: Path) -> None:
    """What was told of the first is still counted where only the second follows it."""
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A.format("people")) == "answered"
    follow(register, MOVED)
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, "SELECT b, count(*) FROM later WHERE ill GROUP BY b") == "answered"
    follow(register, "CREATE TABLE third AS FROM later WHERE person_id <> 9", "third", "later")
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, "SELECT b, count(*) FROM later WHERE ill AND a = 1 GROUP BY b", "bob") == "SDC071"
        assert outcome(guard, BY_A.format("third")) == "answered"
        assert sets(guard, "third") == 3, "those that 7 and 9 were in, or are"
        assert outcome(guard, "SELECT b, count(*) FROM third WHERE ill GROUP BY b") == "answered"
        assert sets(guard, "third") == 4, "and that of 9"


def test_records_that_change_after_that_stop_the_answers(register: Path) -> None:
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A.format("people")) == "answered"
    follow(register, MOVED)
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("UPDATE people SET b = (b + 1) % 8 WHERE person_id < 30")
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A.format("later")) == "SDC072"
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("FROM sdc_unprotect('people')").fetchall()
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A.format("later"), "bob") == "SDC060"


def test_the_custodian_begins_anew_with_one_release(register: Path) -> None:
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A.format("people")) == "answered"
    follow(register, MOVED)
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("FROM sdc_sequence_forget('people', 'ann')").fetchall()
    with closing(sdcduck.open_guard(register)) as guard:
        assert outcome(guard, BY_A.format("later")) == "answered"
        assert sets(guard, "later") == 8


@pytest.mark.parametrize(
    ("change", "more", "said"),
    [
        ("CREATE TABLE later AS SELECT * REPLACE (NOT ill AS ill) FROM people", "", "another value of ill"),
        ("CREATE TABLE later AS SELECT * REPLACE (record_key + 1 AS record_key) FROM people", "", "another record key"),
        ("CREATE TABLE later AS SELECT * REPLACE (person_id + 5000 AS person_id) FROM people", "", "none of these units"),
        (SAME, ", granted := 'SELECT a, count(*) FROM later GROUP BY a'", "goes with sequence := 'precision'"),
        (SAME, ", ptable := 'other'", "must have the same secrets, ptable and min_units"),
    ],
)  # fmt: skip
def test_what_does_not_follow(register: Path, change: str, more: str, said: str) -> None:
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("FROM sdc_store_ptable('other', '(FROM sdc_ptable(D := 3, V := 2))')").fetchall()
    with pytest.raises(duckdb.Error, match=said):
        follow(register, change, more=more)


def test_releases_follow_in_one_line(register: Path) -> None:
    follow(register, SAME)
    with pytest.raises(duckdb.Error, match="'later' follows 'people' already"):
        follow(register, "CREATE TABLE third AS FROM later", "third", "people")
    with pytest.raises(duckdb.Error, match="follows 'people' itself"):
        follow(register, "SELECT 1", "people", "later")
    with pytest.raises(duckdb.Error, match="unknown policy"):
        follow(register, "SELECT 1", "later", "nobody")
    beside = LATER.replace(", follows := '{follows}'{more}", "").format(name="beside")
    with closing(sdcduck.connect(register, secret=SECRET)) as con:
        con.execute("CREATE TABLE beside AS FROM people")
        with pytest.raises(duckdb.Error, match="looks like a copy"):
            con.execute(beside)
