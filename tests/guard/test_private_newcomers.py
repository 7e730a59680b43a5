"""What somebody new to it asks under `method := 'dp'`: with noise of nothing the answer is that of DuckDB, clause for clause.

What is refused says what to write instead. The noise is taken away here, so that a clause that is left out shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused, releases
from sdcduck.methods.dp import noise

pytest.importorskip("opendp")

PEOPLE = """SELECT i AS id, ['n', 's', 'e', 'w', NULL][1 + i % 5] AS region, ['f', 'm', NULL][1 + i // 5 % 3] AS sex,
    CASE WHEN i % 91 < 90 THEN i % 91 END AS age, [true, false, NULL][1 + i // 7 % 3] AS ill, 1 + i * 11 % 12 AS month,
    CASE WHEN i % 10 = 0 THEN NULL ELSE (i * 37) % 5000 + 0.25 END AS income, (i * 53) % 1000 + 0.5 AS tax FROM range(3000) t(i)"""
PUBLIC = """CREATE TABLE regions AS SELECT * FROM (VALUES ('n', 'upper', true, 500), ('s', 'lower', false, 800), ('e', 'upper', false, 900),
        ('w', 'lower', true, 300)) v(region, area, warm, inhabitants);
    CREATE TABLE bands AS SELECT * FROM (VALUES ('young', 0, 18), ('grown', 18, 65), ('old', 65, 200)) v(label, low, high);"""
DATED = "make_date(2024, month, 1)"


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    register = tmp_path_factory.mktemp("newcomers") / "register"
    with sdcduck.connect(str(register)) as con:
        con.execute(f"CREATE TABLE people AS {PEOPLE};{PUBLIC}")
        con.execute("""FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'sex', 'age', 'ill', 'month'],
            measures := ['income', 'tax'], method := 'dp', bounds := {'income': [0, 6000], 'tax': [0, 1000]}, epsilon := 1000, delta := 1e-9,
            per_question := 100, domains := {'region': ['n', 's', 'e', 'w'], 'sex': ['f', 'm'], 'age': range(0, 90), 'month': range(1, 13)})""").fetchall()
        con.execute("FROM sdc_declare_public('regions'); FROM sdc_declare_public('bands')").fetchall()
    with pytest.MonkeyPatch.context() as patched, closing(sdcduck.open_guard(register)) as opened:
        patched.setattr(noise, "noisy", lambda totals, scale, gaussian: list(totals))
        patched.setattr(releases, "check_budget", lambda *_, **__: None)
        yield opened


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE people AS {PEOPLE};{PUBLIC}")
        yield con


ANSWERED = [
    "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY n DESC, region",
    "SELECT b.label, count(*), avg(p.income) FROM people p JOIN bands b ON p.age >= b.low AND p.age < b.high GROUP BY b.label",
    "SELECT r.region, r.inhabitants, count(*) * 1000.0 / r.inhabitants AS rate FROM people p JOIN regions r USING (region) GROUP BY r.region, r.inhabitants",
    "WITH n AS (SELECT region, count(*) AS n FROM people GROUP BY region) SELECT area, sum(n) FROM n JOIN regions USING (region) GROUP BY area",
    "WITH n AS (SELECT region, count(*) AS n FROM people GROUP BY region), m AS (SELECT region, count(*) AS ill FROM people WHERE ill "
    "GROUP BY region) SELECT n.region, ill / n FROM n JOIN m USING (region)",
    "SELECT region, sex, count(*) FROM people GROUP BY CUBE (region, sex)",
    "SELECT CASE WHEN grouping(region) = 1 THEN 'Total' ELSE region END AS r, count(*), avg(income) FROM people GROUP BY GROUPING SETS ((region), ())",
    "SELECT region, count(*) AS n, 100.0 * count(*) / sum(count(*)) OVER () AS pct FROM people GROUP BY region",
    "SELECT region, sex, n, rank() OVER (PARTITION BY region ORDER BY n DESC) AS r FROM (SELECT region, sex, count(*) AS n FROM people "
    "GROUP BY region, sex) QUALIFY r = 1",
    f"SELECT date_trunc('month', {DATED})::DATE AS m, count(*) AS n, lag(count(*)) OVER (ORDER BY date_trunc('month', {DATED})::DATE) AS before "
    "FROM people WHERE month IS NOT NULL GROUP BY m ORDER BY m",
    f"SELECT quarter({DATED}) AS q, sum(income), sum(sum(income)) OVER (ORDER BY quarter({DATED})) FROM people WHERE month > 0 GROUP BY q ORDER BY q",
    "SELECT count(*) FILTER (WHERE sex = 'f'), count(*) FILTER (WHERE sex = 'm' AND age >= 65), avg(income) FILTER (WHERE ill) FROM people",
    "SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'grown' ELSE 'old' END AS g, count(*), sum(income) FROM people "
    "WHERE age IS NOT NULL GROUP BY g",
    "SELECT CASE WHEN income < 1000 THEN 'low' WHEN income < 3000 THEN 'middle' ELSE 'high' END AS g, count(*) FROM people "
    "WHERE income IS NOT NULL GROUP BY g",
    "SELECT region, avg(income) AS a FROM people GROUP BY region HAVING avg(income) > 2400 ORDER BY a DESC LIMIT 3",
    "SELECT region, avg(CASE WHEN ill THEN 1.0 ELSE 0 END), sum(ill::INT) * 100.0 / count(*) FROM people GROUP BY region",
    "SELECT count(DISTINCT region), count(DISTINCT id), count(DISTINCT (region, sex)) FROM people",
    "SELECT DISTINCT region, sex FROM people WHERE region IS NOT NULL ORDER BY ALL",
    "SELECT sum(income), sum(tax), sum(income - tax), sum(tax) / sum(income), sum(income * tax) FROM people",
    "SELECT region, stddev(income), variance(tax) FROM people GROUP BY region",
    "SELECT corr(income, age), regr_slope(tax, income), covar_samp(tax, income) FROM people WHERE sex = 'f'",
    "SELECT count(*) FROM people p WHERE NOT EXISTS (SELECT * FROM regions r WHERE r.region = p.region AND NOT r.warm)",
    "SELECT count(*) FROM people WHERE region NOT IN (SELECT region FROM regions WHERE warm) AND (region, sex) IN (('e', 'f'), ('s', 'm'))",
    "SELECT count(*) FROM people p LEFT JOIN regions r ON p.region = r.region WHERE r.region IS NULL",
    "SELECT floor(income / 1000) * 1000 AS bin, count(*) FROM people WHERE income < 4999 GROUP BY bin HAVING count(*) > 0 ORDER BY bin",
    "SELECT age // 10 * 10 AS decade, sex, count(*), avg(income) FROM people WHERE age IS NOT NULL GROUP BY decade, sex ORDER BY decade, sex",
    "SELECT (SELECT count(*) FROM people WHERE ill) * 100.0 / (SELECT count(*) FROM people) AS pct",
    "SELECT r.region, coalesce(n, 0) AS n FROM regions r LEFT JOIN (SELECT region, count(*) AS n FROM people WHERE age > 80 GROUP BY region) q "
    "USING (region) ORDER BY r.region",
    "SELECT 'f' AS what, count(*) FROM people WHERE sex = 'f' UNION ALL SELECT 'ill', count(*) FROM people WHERE ill",
    "PIVOT people ON sex IN ('f', 'm') USING count(*) GROUP BY region",
    "SELECT sex, string_agg(region || ': ' || n, ', ' ORDER BY region) FROM (SELECT sex, region, count(*) AS n FROM people GROUP BY sex, region) "
    "GROUP BY sex",
    "SELECT coalesce(region, 'unknown') AS region, count(*) FROM people GROUP BY 1 ORDER BY 1 LIMIT 2 OFFSET 1",
    "SELECT avg(income) FROM people WHERE sex = 'f' AND (region = 'n' OR region = 's') AND age NOT BETWEEN 20 AND 30",
    "SELECT count(income), count(*) - count(income), count(*) FILTER (WHERE income > 3000) * 100.0 / count(income) FROM people",
    "SELECT sum(CASE WHEN sex = 'f' THEN income ELSE 0 END) / sum(income), sum(income) FILTER (WHERE income > 3000) FROM people",
    "SELECT avg(ln(income + 1)), avg(sqrt(income)), exp(avg(ln(income + 1))) FROM people",
    "SELECT avg(n), min(n), max(n), median(n) FROM (SELECT region, age, count(*) AS n FROM people WHERE region IS NOT NULL AND age IS NOT NULL "
    "GROUP BY region, age)",
    "SELECT sex, avg(income) FROM people GROUP BY sex HAVING count(*) > (SELECT count(*) / 4 FROM people)",
    "SELECT region, histogram(sex)['f'] AS women, mode(age // 30) FILTER (WHERE age < 80) AS third FROM people WHERE age >= 60 OR age < 10 GROUP BY region",
    "SELECT region, count(*) FROM people WHERE region LIKE 'n%' OR region ILIKE 'S' GROUP BY region QUALIFY row_number() OVER (ORDER BY region) = 1",
]  # fmt: skip


def alike(mine: object, its: object) -> bool:
    """Sums are of whole steps of a grid, and means of these."""
    if mine is None or its is None or isinstance(its, str):
        return mine == its
    try:
        return math.isclose(float(mine), float(its), rel_tol=1e-3, abs_tol=1e-4)  # type: ignore[arg-type]
    except TypeError:
        return mine == its


@pytest.mark.parametrize("question", ANSWERED)
def test_without_noise_the_answer_is_that_of_duckdb(
    guard: Guard, plain: duckdb.DuckDBPyConnection, question: str
) -> None:
    rows = [[tuple(row.values()) for row in guard.sql(question).to_pylist()], plain.execute(question).fetchall()]
    if "ORDER BY" not in question.rpartition(")")[2]:
        rows = [
            sorted(of, key=lambda row: [str(value) for value in row if not isinstance(value, float)]) for of in rows
        ]
    found, wanted = rows
    assert len(found) == len(wanted) > 0
    for mine, its in zip(found, wanted, strict=True):
        assert all(map(alike, mine, its)), (mine, its)


REFUSED = [
    ("SELECT max(income) - min(income) FROM people", r"quantile_cont\(income, 0\.95\)"),
    ("SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)", "ask for it first, and write it"),
    (
        "SELECT count(*) FROM people WHERE age > (SELECT avg(age) FROM people)",
        "ask for that first, and write its value",
    ),
    (
        "SELECT count(*) FROM people p WHERE p.income > (SELECT avg(income) FROM people q WHERE q.region = p.region)",
        "a number that is written out",
    ),
    (
        "SELECT a.sex, count(*) FROM people a JOIN people b ON a.region = b.region GROUP BY a.sex",
        "ask for counts, and join these",
    ),
    (
        "SELECT r.area, sum(p.tax) / max(r.inhabitants) FROM people p JOIN regions r USING (region) GROUP BY r.area",
        r"GROUP BY \.\., inhabitants",
    ),
    ("SELECT q, count(*) FROM (SELECT ntile(4) OVER (ORDER BY income) AS q FROM people) GROUP BY q", "Aggregate first"),
    ("SELECT sum(greatest(income, 1000)) FROM people", r"sum\(x\) FILTER \(WHERE x < 3000\)"),
    ("SELECT sum(CASE WHEN sex = 'f' THEN income ELSE tax END) FROM people", r"add up each part by itself"),
    ("SELECT bool_or(ill) FROM people", r"GROUP BY ill"),
    ("SELECT first(region) FROM people", r"mode\(region\)"),
    ("SELECT width_bucket(income, 0, 6000, 6) AS b, count(*) FROM people GROUP BY b", r"floor\(\(x - low\) / width\)"),
    ("SELECT income, count(*) FROM people GROUP BY income", r"groups of it are bins"),
    ("SELECT region, count(*) FROM people TABLESAMPLE 10% GROUP BY region", "ask without it"),
    ("SELECT count(*) FROM people WHERE id = 17", r"count\(DISTINCT id\)"),
    ("SELECT * FROM people LIMIT 10", "SELECT DISTINCT"),
]


@pytest.mark.parametrize(("question", "said"), REFUSED)
def test_what_is_refused_says_what_to_write(guard: Guard, question: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        guard.sql(question)
