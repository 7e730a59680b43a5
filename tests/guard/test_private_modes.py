"""The most frequent value, and how often there is each: under `method := 'dp'` made of one noisy count for each value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from private_people import RECORDS, made

import sdcduck
from sdcduck.catalog.cost_files import CostFile
from sdcduck.guard import Guard, Refused
from sdcduck.methods.dp import noise

pytest.importorskip("opendp")

# Of each column one value is clearly the most frequent.
SKEWED = f"""SELECT * REPLACE (['n', 'n', 's', 'unknown', 'e'][1 + id % 5] AS region, id % 4 = 0 AS ill,
    CASE WHEN id % 3 = 0 THEN 5 ELSE age END AS age, CASE WHEN id % 2 = 0 THEN 2500.5 ELSE income END AS income) FROM ({RECORDS})"""


@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("modes") / "register", SKEWED, per_question="50")


@pytest.fixture(scope="module")
def guard(register: Path) -> Iterator[Guard]:
    with closing(sdcduck.open_guard(register)) as opened:
        yield opened


def plain(question: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as con:
        known = SKEWED.replace("'unknown'", "NULL")
        con.execute(f"CREATE TABLE people AS {known}")
        con.execute(
            "CREATE TABLE regions AS SELECT * FROM (VALUES ('n', 'upper'), ('s', 'lower'), ('e', 'upper')) v(region, area)"
        )
        return con.execute(question).fetchall()


def costs(register: Path) -> list[float]:
    return [line["cost"] for line in CostFile(register, "people").lines() if line["kind"] == "charge"]


MODES = [
    "SELECT mode(region), mode(ill), mode(age // 10), mode(age) FILTER (WHERE age < 50) FROM people",
    "SELECT mode() WITHIN GROUP (ORDER BY region) FROM people WHERE age > 3",
    "SELECT ill, mode(region) AS m FROM people WHERE ill IS NOT NULL GROUP BY ill ORDER BY ill",
    "SELECT ill, mode(region) FROM people WHERE income > 2000 GROUP BY ill HAVING ill IS NOT NULL ORDER BY ill",
    "SELECT ill, mode(region) FROM people WHERE ill IS NOT NULL GROUP BY ROLLUP(ill) ORDER BY ill",
    "SELECT area, mode(ill) FROM people JOIN regions USING (region) GROUP BY area ORDER BY area",
    "SELECT mode(area), upper(mode(region)) FROM people JOIN regions USING (region)",
    "SELECT mode(floor(income / 1000)), mode(CASE WHEN income > 1000 THEN 'much' ELSE 'little' END) FROM people",
    "SELECT mode(r) FROM (SELECT region AS r FROM people WHERE age > 9)",
]  # fmt: skip


@pytest.mark.parametrize("question", MODES)
def test_the_most_frequent_value_is_that_of_duckdb(guard: Guard, question: str) -> None:
    assert [tuple(row.values()) for row in guard.sql(question).to_pylist()] == plain(question)


def test_a_histogram_has_each_value_of_the_domain(guard: Guard) -> None:
    """Of groups, with FILTER, and of bins of a measure; nobody may be in one, and its count may be negative."""
    question = "SELECT ill, histogram(region) FILTER (WHERE age < 70) AS h, count(*) AS n FROM people WHERE ill IS NOT NULL GROUP BY ill"
    exact = {row[0]: row[1:] for row in plain(question)}
    for row in guard.sql(question).to_pylist():
        found, (wanted, number) = dict(row["h"]), exact[row["ill"]]
        assert found.keys() == {"n", "s", "e", "w"}
        assert row["n"] == pytest.approx(number, abs=20)
        for value in found:
            assert found[value] == pytest.approx(wanted.get(value, 0), abs=20)  # type: ignore[attr-defined]
    (row,) = guard.sql(
        "SELECT histogram(floor(income / 2000)) AS h, histogram(region)['n'] AS n FROM people"
    ).to_pylist()
    assert [key for key, _ in row["h"]] == [0, 1, 2, 3]
    assert row["n"] == pytest.approx(800, abs=20)


def test_it_costs_what_one_count_by_groups_costs(tmp_path: Path) -> None:
    """Whoever is in one value is in no other one; the noise is that of counts, and the same counts cost nothing more."""
    register = made(tmp_path / "r", SKEWED, epsilon="1", delta="0", per_question="0.25")
    by_value = "SELECT region AS _value, count(*) AS n FROM people GROUP BY region"
    with closing(sdcduck.open_guard(register)) as guard:
        (cost,) = {row["epsilon"] for row in guard.dp_preview("SELECT histogram(region) FROM people").to_pylist()}
        assert cost == 0.25
        histogram = guard.sql("SELECT histogram(region) AS h FROM people").to_pylist()[0]["h"]
        counts = {row["_value"]: row["n"] for row in guard.sql(by_value).to_pylist()}
        assert dict(histogram) == {value: number for value, number in counts.items() if value is not None}
        (row,) = guard.sql("SELECT mode(region) AS m FROM people").to_pylist()
        assert row["m"] == min(dict(histogram), key=lambda value: (-dict(histogram)[value], value))
        assert costs(register) == [0.25]
        guard.sql("SELECT ill, mode(region), histogram(region) FROM people GROUP BY ill")
        assert costs(register) == [0.25] * 2
        deviation = {row["column"]: row["sd"] for row in guard.noise(by_value).to_pylist()}["n"]
        assert deviation == pytest.approx(
            2**0.5 * 2 / 0.25, rel=0.01
        )  # Laplace noise of 0.25 for who changes two groups


def test_groups_that_nobody_may_know_and_several_rows_of_a_unit(tmp_path: Path) -> None:
    records = (
        f"SELECT p.* REPLACE (CASE WHEN id < 2 THEN 'secret' ELSE region END AS region) FROM ({SKEWED}) AS p, range(2)"
    )
    register = made(
        tmp_path / "r", records, contributions="2", delta="1e-6", domains="{'region': 'private', 'age': range(0, 90)}"
    )
    with closing(sdcduck.open_guard(register)) as guard:
        (row,) = guard.sql("SELECT mode(region) AS m, histogram(region) AS h FROM people").to_pylist()
    assert row["m"] == "n"
    assert {value for value, _ in row["h"]} == {"n", "s", "e", "unknown"}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("SELECT mode(income) FROM people", "floor\\(income / 1000\\) \\* 1000, count"),
        ("SELECT histogram(income) FROM people", "floor\\(income / 1000\\) \\* 1000, count"),
        ("SELECT mode(income // 3) FROM people", "groups of it are bins"),
        ("SELECT mode(id) FROM people", "SDC"),
        ("SELECT mode(region || income) FROM people", "SDC041"),
        ("SELECT mode(region) OVER () FROM people", "SDC045"),
        ("SELECT histogram(region, ['n']) FROM people", "SDC050"),
        ("SELECT first(region) FROM people", "write mode\\(region\\)"),
        ("SELECT entropy(region) FROM people", "write SELECT region, count"),
        ("SELECT mad(income) FROM people", "quantile_cont\\(income, 0.75\\) - quantile_cont"),
        ("SELECT geomean(income) FROM people", "exp\\(avg\\(ln\\(income \\+ 1\\)\\)\\)"),
        ("SELECT region FROM people GROUP BY ALL HAVING mode(income) > 3", "floor\\(income"),
    ],
)
def test_others_are_refused_and_it_is_said_what_to_write(
    guard: Guard, register: Path, question: str, said: str
) -> None:
    before = costs(register)
    with pytest.raises(Refused, match=said):
        guard.sql(question)
    assert costs(register) == before


def test_whoever_is_there_nothing_but_noisy_counts_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each count is drawn as 1000: then the answers are the same, be somebody there, like nobody, or not there."""
    monkeypatch.setattr(noise, "noisy", lambda totals, scale, gaussian: [1000] * len(totals))
    odd = "CASE WHEN id = 7 THEN {} ELSE {} END AS {}"
    like_nobody = ", ".join(
        odd.format(value, name, name)
        for name, value in (("region", "'zz'"), ("age", "500"), ("income", "'NaN'::DOUBLE"))
    )
    questions = [
        *MODES,
        "SELECT ill, histogram(region), histogram(floor(income / 2000)) FROM people GROUP BY ill ORDER BY ill",
    ]
    found = []
    for place, records in enumerate(
        (SKEWED, f"SELECT * REPLACE ({like_nobody}) FROM ({SKEWED})", f"FROM ({SKEWED}) WHERE id <> 7")
    ):
        with closing(sdcduck.open_guard(made(tmp_path / f"r{place}", records, per_question="50"))) as guard:
            found.append([guard.sql(question).to_pylist() for question in questions])
    assert found[0] == found[1] == found[2]


def test_a_dimension_without_a_domain_has_none(tmp_path: Path) -> None:
    with closing(sdcduck.open_guard(made(tmp_path / "r", domains="{'age': range(0, 90)}"))) as guard:
        for asked in ("mode(region)", "histogram(region)"):
            with pytest.raises(Refused, match="no domain"):
                guard.sql(f"SELECT {asked} FROM people")
