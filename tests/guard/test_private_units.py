"""What units have, under `method := 'dp'`: their rows brought together, and conditions on other rows of the same unit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import combinations
from pathlib import Path

import duckdb
import pytest
from private_numbers import groups_near, totals

import sdcduck
from sdcduck.guard import Guard, Refused
from sdcduck.guard.costs import policy_of, sensitivity

pytest.importorskip("opendp")

ROWS = 4
VISITS = """SELECT i * i % 503 AS id, DATE '2023-01-01' + (i % 365)::INTEGER AS day, ['gp', 'er', 'lab'][1 + i % 3] AS kind,
    (i % 97 * 3)::DOUBLE AS cost, i % 7 AS score FROM range(1000) t(i)"""


def made(path: Path, visits: str = VISITS, **other: str) -> Path:
    arguments = {
        "epsilon": "1000", "per_question": "30", "delta": "1e-6", "contributions": str(ROWS), "domains": "{'kind': ['gp', 'er', 'lab'], 'score': range(0, 7)}",
    } | other  # fmt: skip
    written = "".join(f", {name} := {value}" for name, value in arguments.items())
    with closing(sdcduck.connect(str(path))) as con:
        con.execute(f"CREATE TABLE visits AS {visits}")
        con.execute(f"""FROM sdc_protect('visits', unit := 'id', dimensions := ['day', 'kind', 'score'], measures := ['cost'], method := 'dp',
            bounds := {{'cost': [0, 300], 'day': ['2023-01-01', '2023-12-31']}}{written})""").fetchall()  # fmt: skip
    return path


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    with closing(sdcduck.open_guard(made(tmp_path_factory.mktemp("units") / "register"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE visits AS {VISITS}")
        yield con


PER = "(SELECT id, count(*) AS n, sum(cost) AS total FROM visits GROUP BY id)"
BY_DAY = "OVER (PARTITION BY id ORDER BY day, score, kind)"
QUESTIONS = [
    (f"SELECT n, count(*) FROM {PER} GROUP BY n", 1),
    ("SELECT avg(n), sum(n), count(*), stddev(n) FROM (SELECT count(*) AS n FROM visits GROUP BY id)", 0),
    (f"SELECT avg(total), sum(total), stddev(total), count(*) FILTER (WHERE n > 1), avg(total / 100) FROM {PER}", 0),
    ("SELECT count(*) FROM (SELECT id FROM visits GROUP BY id HAVING count(*) > 2)", 0),
    ("SELECT count(*) FROM (SELECT id FROM visits GROUP BY id HAVING sum(cost) > 300)", 0),
    (f"SELECT count(*) FROM {PER} WHERE total > 300", 0),
    ("SELECT n, count(*) FROM (SELECT id, count(*) AS n FROM visits WHERE kind <> 'gp' GROUP BY id HAVING count(*) > 1) GROUP BY n", 1),
    (f"SELECT CASE WHEN n > 2 THEN 'often' ELSE 'seldom' END, count(*) FROM {PER} GROUP BY 1", 1),
    (f"SELECT floor(total / 300) * 300, count(*) FROM {PER} GROUP BY 1", 1),
    ("SELECT first, count(*) FROM (SELECT id, min(kind) AS first FROM visits GROUP BY id) GROUP BY first", 1),
    ("SELECT m, count(*) FROM (SELECT id, date_trunc('month', min(day)) AS m FROM visits GROUP BY id) GROUP BY m", 1),
    ("SELECT er, count(*) FROM (SELECT id, bool_or(kind = 'er') AS er FROM visits GROUP BY id) GROUP BY er", 1),
    ("SELECT er, gp, count(*) FROM (SELECT id, count(*) FILTER (WHERE kind = 'er') AS er, count_if(kind = 'gp') AS gp FROM visits GROUP BY id) GROUP BY ALL", 2),
    ("SELECT k, count(*), avg(k) FROM (SELECT id, count(DISTINCT kind) AS k FROM visits GROUP BY id) GROUP BY k", 1),
    ("SELECT kind, avg(n), count(*) FROM (SELECT id, kind, count(*) AS n FROM visits GROUP BY id, kind) GROUP BY kind", 1),
    ("SELECT count(DISTINCT id) FROM (SELECT id, kind, count(*) AS n FROM visits GROUP BY id, kind) WHERE n > 1", 0),
    ("SELECT avg(c), avg(m), stddev(m) FROM (SELECT id, avg(cost) AS c, max(cost) AS m FROM visits GROUP BY id)", 0),
    ("SELECT avg(s) FROM (SELECT id, sum(score) AS s FROM visits GROUP BY id)", 0),
    ("SELECT count(*) FROM (SELECT DISTINCT id FROM visits WHERE kind = 'er')", 0),
    ("WITH per AS (SELECT id, sum(cost) AS total, count(*) AS n FROM visits GROUP BY id) SELECT avg(total) FILTER (WHERE n >= 2) FROM per", 0),
    ("SELECT sum(total) FROM (SELECT i, sum(total) AS total FROM (SELECT id AS i, kind, sum(cost) AS total FROM visits GROUP BY ALL) GROUP BY i)", 0),
    ("SELECT count(DISTINCT id), count(*), sum(cost) FROM visits WHERE id IN (SELECT id FROM visits WHERE kind = 'er')", 0),
    ("SELECT count(*) FROM visits WHERE id NOT IN (SELECT id FROM visits WHERE kind = 'er')", 0),
    ("SELECT count(*) FROM visits WHERE id IN (SELECT id FROM visits GROUP BY id HAVING count(*) > 2)", 0),
    ("SELECT kind, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.id = v.id AND w.score > 4) GROUP BY kind", 1),
    ("SELECT count(*) FILTER (WHERE id IN (SELECT id FROM visits WHERE kind = 'er')), sum(CASE WHEN id NOT IN (SELECT id FROM visits WHERE score > 4) THEN cost ELSE 0 END) FROM visits", 0),
    ("SELECT id IN (SELECT id FROM visits WHERE kind = 'er') AS er, kind, count(*) FROM visits GROUP BY er, kind", 2),
    ("SELECT k, count(*) FROM (SELECT CASE WHEN score > 4 OR id NOT IN (SELECT id FROM visits WHERE score > 4) THEN 'a' ELSE 'b' END AS k FROM visits) GROUP BY k", 1),
    (f"SELECT kind, count(*) FROM (SELECT *, row_number() {BY_DAY} AS r FROM visits) WHERE r = 1 GROUP BY kind", 1),
    (f"SELECT count(*), count(DISTINCT id) FROM (SELECT * FROM visits QUALIFY row_number() {BY_DAY} > 1)", 0),
    ("SELECT kind, count(*) FROM (SELECT DISTINCT ON (id) id, kind FROM visits ORDER BY id, day, score, kind) GROUP BY kind", 1),
    (f"SELECT r, count(*) FROM (SELECT row_number() {BY_DAY} AS r FROM visits) GROUP BY r", 1),
    ("SELECT n, kind, count(*) FROM (SELECT kind, count(*) OVER (PARTITION BY id) AS n FROM visits) GROUP BY n, kind", 2),
    (f"SELECT kind, next, count(*) FROM (SELECT kind, lead(kind) {BY_DAY} AS next FROM visits) GROUP BY kind, next", 2),
    (f"SELECT count(*) FROM (SELECT day - lag(day) {BY_DAY} AS gap FROM visits) WHERE gap < 150", 0),
]  # fmt: skip


@pytest.mark.parametrize(("question", "keys"), QUESTIONS)
def test_numbers_are_near_those_of_the_rows(
    guard: Guard, plain: duckdb.DuckDBPyConnection, question: str, keys: int
) -> None:
    """No unit has more rows than are looked at; groups that nobody is in have next to nothing."""
    wanted, found = groups_near(guard, plain, question, keys, rel=0.05)
    for key in found.keys() - wanted.keys():
        assert abs(found[key][0] or 0) < 8 or "avg" in question


# What is asked of neighbours beside these: dates of units and their numbers, units among themselves, WITH read twice.
OF_NEIGHBOURS = [
    "SELECT m, count(*) FROM (SELECT DISTINCT id, month(day) AS m FROM visits) GROUP BY m",
    "SELECT kind, sum(DATE '2026-01-01' - day), avg(2026 - year(day)) FROM visits GROUP BY kind",
    "SELECT date_trunc('quarter', d), date_trunc('quarter', e), count(*) FROM (SELECT id, min(day) AS d, max(day) AS e FROM visits GROUP BY id) GROUP BY ALL",
    "SELECT month(d), sum(t), stddev(t) FROM (SELECT id, min(day) AS d, sum(cost) AS t FROM visits GROUP BY id) GROUP BY 1",
    "SELECT count(*) FROM visits WHERE id IN (SELECT id FROM visits WHERE id NOT IN (SELECT id FROM visits GROUP BY id HAVING count(*) > 3))",
    "WITH p AS (SELECT id, count(*) AS n FROM visits GROUP BY id) SELECT n, count(*) FROM p WHERE id IN (SELECT id FROM p WHERE n > 2) GROUP BY n",
]  # fmt: skip

# The rows of one unit: few and many, of one kind and of all, far beyond the bounds, of no kind, with NaN.
OF_ONE = [
    "(DATE '2023-01-01', 'gp', 300.0, 6)",
    "(DATE '2023-05-01', 'er', 0.0, 0), (DATE '2023-05-01', 'er', 1.0, 0)",
    ", ".join(f"(DATE '2023-12-{day:02}', 'lab', 1e9, 5)" for day in range(1, 12)),
    ", ".join(f"(DATE '2023-02-{day:02}', '{kind}', 299.5, {day % 7})" for day in range(1, 7) for kind in ("gp", "er", "lab")),
    "(DATE '1990-01-01', 'x', 'nan'::DOUBLE, 99), (NULL, NULL, -1e9, NULL), (DATE 'infinity', 'gp', 1e308, -3), (DATE '290000-01-01', 'er', '-inf'::DOUBLE, 3)",
]  # fmt: skip


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_neighbours_are_no_farther_apart_than_is_charged(tmp_path: Path, neighbours: str) -> None:
    """Exactly, of all totals of each question, in the sum of differences and in the root of their squares."""
    with ExitStack() as stack:
        guards = []
        for place, rows in enumerate([*OF_ONE, ""]):
            one = f" UNION ALL BY NAME SELECT 7 AS id, day, kind, cost, score FROM (VALUES {rows}) v(day, kind, cost, score)"
            visits = f"SELECT * FROM ({VISITS}) WHERE id <> 7{one if rows else ''}"
            register = made(tmp_path / str(place), visits, neighbours=f"'{neighbours}'")
            guards.append(stack.enter_context(closing(sdcduck.open_guard(register))))
        privacy = policy_of(guards[0].rewritten(QUESTIONS[0][0])[0]).privacy
        every_question = [*(question for question, _ in QUESTIONS), *OF_NEIGHBOURS]
        asked = every_question[:: 1 if neighbours == "replace" else 4]
        for question in asked:
            every = [totals(guard, question) for guard in guards]
            most = 0.0
            pairs = combinations(every[:-1], 2) if neighbours == "replace" else ((one, every[-1]) for one in every[:-1])
            for one, other in pairs:
                for (release, noised, mine), (_, _, its) in zip(one, other, strict=True):
                    apart = [abs(int(a) - int(b)) for a, b in zip(mine, its, strict=True)]
                    l1, l2 = sum(apart), math.hypot(*apart)
                    for gaussian, distance in ((False, l1), (True, l2)):
                        charged = sensitivity(noised, privacy, grouped=release.grouped, gaussian=gaussian)
                        assert distance <= charged * (1 + 1e-12), (question, noised)
                        most = max(most, distance / charged)
            assert most >= 0.24, question  # that they are told apart is seen


REFUSED = [
    ("SELECT max(n) FROM (SELECT id, count(*) AS n FROM visits GROUP BY id)", "quantile_cont(n, 0.95)"),
    ("SELECT min(score), max(score) FROM visits", "quantile_cont(score, 0.05)"),
    ("SELECT max(cost) FROM visits", "quantile_cont(cost, 0.95)"),
    (f"SELECT total, count(*) FROM {PER} GROUP BY total", "floor(total / 1000) * 1000"),
    ("SELECT n, count(*) FROM (SELECT i, sum(n) AS n FROM (SELECT id AS i, kind, count(*) AS n FROM visits GROUP BY ALL) GROUP BY i) GROUP BY n", "write bins"),
    ("SELECT n, count(*) FROM (SELECT id, count(*) AS n FROM visits JOIN (VALUES (3), (5)) t(x) ON score < x GROUP BY id) GROUP BY n", "not n:1"),
    ("SELECT count(*) FROM visits v JOIN visits w ON v.id = w.id", "a join with records"),
    ("SELECT count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.id = v.id AND w.kind <> v.kind)", "a subquery of records"),
    ("SELECT count(*) FROM visits WHERE id IN (SELECT id FROM visits ORDER BY day LIMIT 3)", "SDC045"),
    ("SELECT count(*) FROM visits WHERE id IN (SELECT max(id) FROM visits GROUP BY kind)", "SDC050"),
    ("SELECT count(*) FROM visits WHERE kind IN (SELECT kind FROM visits WHERE cost > 200)", "SDC044"),
    ("SELECT count(*) FROM (SELECT id, row_number() OVER (ORDER BY count(*)) AS r FROM visits GROUP BY id) WHERE r < 5", "SDC045"),
    ("SELECT count(*) FROM (SELECT id, count(*) AS n FROM visits GROUP BY id ORDER BY n LIMIT 5)", "SDC045"),
    ("SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY kind ORDER BY day) AS r FROM visits) WHERE r = 1", "SDC045"),
    (f"SELECT next, count(*) FROM (SELECT lag(kind, 1, 'none') {BY_DAY} AS next FROM visits) GROUP BY next", "windows over rows of a unit"),
    (f"SELECT a, b, c, count(*) FROM (SELECT lag(kind) {BY_DAY} AS a, lead(kind) {BY_DAY} AS b, lag(kind, 2) {BY_DAY} AS c FROM visits) GROUP BY ALL", "many things that units have"),
    ("SELECT avg(n) FROM (SELECT id % 10 AS g, count(*) AS n FROM visits GROUP BY id % 10)", "SDC040"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "told"), REFUSED)
def test_what_other_units_would_change_is_refused(guard: Guard, question: str, told: str) -> None:
    with pytest.raises(Refused) as refused:
        guard.sql(question)
    assert told in str(refused.value)


def test_groups_that_nobody_may_know_are_made_of_what_units_have(tmp_path: Path) -> None:
    register = made(tmp_path / "register", domains="{'kind': 'private', 'score': 'private'}", per_question="20")
    with closing(sdcduck.open_guard(register)) as guard:
        asked = (
            "SELECT first, count(*) AS n FROM (SELECT id, min(kind) AS first FROM visits GROUP BY id) GROUP BY first"
        )
        found = {row["first"]: row["n"] for row in guard.sql(asked).to_pylist()}
        assert found.keys() <= {"er", "gp", "lab"}
        assert found["er"] == pytest.approx(250, abs=40)
