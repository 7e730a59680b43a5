"""The attacks of `test_disclosure` on a table whose answers are charged, which is in a file.

Every total is drawn as 5000, whatever it is: what differs between two answers comes from something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from attacked_database import SETUP, Attacked
from fixtures_of_attacks import show
from test_disclosure import ORACLES, PROBES, REFUSED

import sdcduck
from sdcduck.guard import Refused, guard

pytest.importorskip("opendp")

POLICIES = (
    "FROM sdc_protect('private', unit := 'person_id', dimensions := ['region', 'age', 'd'], measures := ['income'], "
    "method := 'dp', epsilon := 1000, delta := 1e-9, per_question := 1, bounds := {'income': [0, 100000000]}, "
    "domains := {'region': ['N', 'S', 'E', 'W'], 'age': range(20, 30)})",
    "FROM sdc_declare_public('regions')",
    "FROM sdc_declare_public('codes')",
    "FROM sdc_declare_public('doubled')",
    "FROM sdc_declare_public('numbers')",
)


class InFile(Attacked):
    """The database under attack with one protected table."""

    def __init__(self, file: Path) -> None:
        self.con = sdcduck.connect(file, secret="the secret of the tests")
        self.con.execute(SETUP)
        self.con.execute("ALTER TABLE people RENAME TO private")
        self.con.execute("CREATE TABLE numbers AS SELECT i AS x FROM range(5000) t(i)")
        for statement in POLICIES:
            self.con.execute(statement).fetchall()
        self.guard = guard(self.con)
        rows = self.con.execute(
            "SELECT person_id, record_key, income FROM private UNION ALL FROM (SELECT x, x, x FROM nobody)"
        )
        self.confidential = {int(value) for row in rows.fetchall() for value in row}


@pytest.fixture(scope="module")
def in_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InFile]:
    noise = pytest.importorskip("sdcduck.methods.dp.noise")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(noise, "noisy", lambda totals, scale, gaussian: [5000] * len(totals))
        patched.setattr(noise, "chosen", lambda histograms, *_, gaussian: [500] * len(histograms))
        database = InFile(tmp_path_factory.mktemp("private") / "private.duckdb")
        with closing(database.con):
            yield database


BY_MEASURE = {
    "correlated aggregate", "columns in FILTER", "columns in FILTER of an item", "another word in a condition",
    "filter by a measure", "FILTER by a measure", "count_if by a measure", "case by a measure", "or a measure",
    "count of distinct conditions", "count of distinct values where a measure",
    "count of distinct values, by case of a measure", "semi join by more",
}  # fmt: skip
"""What decides by a measure which records are counted: here a count of those is as private as any other."""


@pytest.mark.parametrize("name", sorted(BY_MEASURE))
def test_what_is_counted_by_a_measure_has_the_noise_of_any_count(in_file: InFile, name: str) -> None:
    got = in_file.attempt(re.sub(r"\bpeople\b", "private", REFUSED[name]))
    assert isinstance(got, list), got
    numbers = {value for row in got for value in row.values() if isinstance(value, int)}
    assert numbers == {5000}


@pytest.mark.parametrize(
    "name",
    [name for name, query in REFUSED.items() if re.search(r"\bpeople\b", query) and name not in BY_MEASURE],
)
def test_refused(in_file: InFile, name: str) -> None:
    got = in_file.attempt(re.sub(r"\bpeople\b", "private", REFUSED[name]))
    assert isinstance(got, Refused), got


def test_no_error_and_no_answer_tells_whether_a_unit_is_there(in_file: InFile, show: Callable[[str], None]) -> None:
    """Somebody is 99 years old, nobody is 98 or 97: all are answered alike, or refused alike."""
    answered = 0
    for name, query in {**ORACLES, **PROBES}.items():
        asked = re.sub(r"\b(people|few)\b", "private", query)
        outcomes = set()
        for age in (98, 99, 97):
            got = in_file.attempt(asked.format(age))
            outcomes.add(str(got).replace(str(age), "?"))
            answered += not isinstance(got, Refused)
        assert len(outcomes) == 1, name
    show(f"dp: {answered // 3} of {len(ORACLES) + len(PROBES)} questions that could fail for one person answered")
    assert answered > 0
