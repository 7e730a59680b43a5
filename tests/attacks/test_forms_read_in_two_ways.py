"""Forms of SQL that two parsers may read in two ways: an answer is that of DuckDB's reading of the text, and shows no unit.

The guard labels a tree of sqlglot, and DuckDB reads the text that is made of it: brackets, casts, names and clauses. Under
a threshold of one unit nothing is protected, so that the answer has to be plain DuckDB's; the same text under cell keys
must not show a value of a record.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from attacked_database import LONG, leaks
from effort import times

import sdcduck
from sdcduck.guard import Guard, Refused, guard

PEOPLE = """
CREATE TABLE people AS SELECT
    900000000001 + i * 1000003 AS person_id,
    ((i + 1) * 15485863 + 7) % 100000000 AS record_key,
    ['N', 'S', 'East', 'w''x'][1 + i % 4] AS region,
    CASE WHEN i % 17 <> 3 THEN ['f', 'M'][1 + (i * i // 3) % 2] END AS sex,
    20 + (i * 7) % 5 AS age,
    DATE '2020-01-01' + ((i * 11) % 40)::INTEGER AS d,
    TIMESTAMP '2020-01-01 13:14:15' + INTERVAL (i % 7) DAY AS ts,
    (i % 3) / 4.0::DOUBLE AS r,
    ['a%b', 'A_B', 'xy'][1 + i % 3] AS pat,
    [i % 3, i % 2, 7] AS l,
    {'a': i % 3, 'Region': 'q' || (i % 2), 'income': i % 5} AS st,
    i % 2 = 0 AS ok,
    32452843 + i * 1299721 AS income
FROM range(400) t(i)
"""
PUBLIC = """
CREATE TABLE regions AS FROM (VALUES ('N', 'North', 1), ('S', 'South', 2), ('East', 'East', 3), ('w''x', 'West', 4)) t(region, label, num);
CREATE TABLE nums AS FROM (VALUES
    (1, 'a', 2.5, [1, 2, 3], {'n': 1, 'N2': 'x'}), (2, 'B', NULL, [4, 5], {'n': 2, 'N2': 'y'}),
    (NULL, 'c''d', -1.25, [], {'n': 3, 'N2': NULL}), (20, 'N', 0.5, NULL, NULL)) t(a, b, c, l, s);
"""
DIMENSIONS = ["region", "sex", "age", "d", "ts", "r", "pat", "l", "st", "ok"]
IS_1 = duckdb.__version__.startswith("1.")
METHODS = {"threshold": ", method := 'threshold', min_units := 1", "cell_key": ""}


class Read:
    """The same tables under a threshold of one and under cell keys, and what DuckDB itself makes of a text."""

    def __init__(self) -> None:
        self.guards: dict[str, Guard] = {}
        for method, arguments in METHODS.items():
            con = sdcduck.connect(secret="the secret of the tests")
            con.execute(PEOPLE).execute(PUBLIC)
            con.execute(
                f"FROM sdc_protect('people', unit := 'person_id', dimensions := {DIMENSIONS}, measures := ['income']{arguments})"
            ).fetchall()
            for table in ("regions", "nums"):
                con.execute(f"FROM sdc_declare_public('{table}')").fetchall()
            self.guards[method] = guard(con)
        self.plain = duckdb.connect()
        self.plain.execute(PEOPLE).execute("ALTER TABLE people DROP record_key").execute(PUBLIC)
        rows = self.plain.execute("SELECT person_id, income FROM people").fetchall()
        self.confidential = {value for row in rows for value in row}

    def wanted(self, text: str) -> list[str]:
        return _rows(self.plain.execute(text).fetchall())

    def answer(self, text: str) -> list[str]:
        """The answer where nothing is hidden, after cell keys have shown no unit in theirs."""
        try:
            shown = self.guards["cell_key"].sql(text)
        except Refused:  # a method need not answer all that another does
            pass
        else:
            assert not leaks(shown.to_pylist(), self.confidential), text
        return _rows(_fetched(self.guards["threshold"].sql(text)))


@pytest.fixture(scope="module")
def read() -> Iterator[Read]:
    made = Read()
    yield made
    for one in made.guards.values():
        one.close()
    made.plain.close()


def _fetched(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _rows(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(repr([_value(value) for value in row]) for row in rows)


def _value(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return [_value(part) for part in value]
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return value
    return f"{float(value):.9g}"


EXPRESSIONS = (
    # texts by patterns, and times
    "regexp_replace(region, '[aN]', '_', 'g')", "regexp_extract(region, '^(.)', 1)", "regexp_matches(sex, '[f]') = ok",
    *([] if IS_1 else ["region ~ '^N' = ok", "sex !~ '[f]'"]),
    "region NOT SIMILAR TO '.a.*' = ok", "concat_ws('-', region, sex, age)", "lpad(sex, 3, 'x') || rpad(sex, 2, '-')",
    "epoch(d) // 86400", "year(age(DATE '2021-01-01', d))", "ts AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo'",
    # NOT that belongs to one operator and not to all that follows
    "region NOT IN ('N') >= ok", "region NOT IN ('N') < ok", "age NOT BETWEEN 20 AND 21 > ok", "sex NOT LIKE 'f' <= ok",
    "sex IS NOT NULL < ok", "sex NOT ILIKE 'F' IS NULL", "age NOT IN (20, 21) IS DISTINCT FROM ok", "NOT age IN (20) = ok",
    "sex NOT LIKE 'f' IS NOT TRUE", "NOT (age = 20 OR sex = 'f') = ok", "ok IS NOT TRUE",
    "(region NOT IN ('N'))::INT + 1", "sex NOT IN ('f') IN (true)",
    # order of arithmetic
    "age - (1 - 2)", "age / 2 / 3", "age / (2 / 3)", "age // 2 * 2", "age * 2 % 3", "-age % 3", "age--1\n", "- - age",
    "age = 20 IS NULL", "ok OR age = 20 AND sex = 'f'", "region || age + 1", "1_000 + age",
    # casts
    "age::DECIMAL(5,2) / 3", "age + '1'", "age::VARCHAR::INT + 1", "TRY_CAST(region AS INT)",
    "age = '20'", "d = '2020-01-02'", "(DATE '2020-01-05')::TIMESTAMP < ts", "r::INT", "(r + 0.5)::INT", "age::BPCHAR || 'x'",
    # texts
    "'it''s' || region", "$$x$$ || region", "'\\x41' || region", "region = 'w''x'", "region LIKE 'e%'", "region ILIKE 'e%'",
    "pat LIKE 'a!%b' ESCAPE '!'", "pat GLOB 'a*'", "pat ~~~ 'a*'", "pat !~~ 'a%'", "trim(BOTH 'Et' FROM region)", "region /* , age */",
    # dates and intervals
    "d + INTERVAL 1 DAY", "d - INTERVAL '1 month 2 days'", "d + INTERVAL (age) DAY", "extract('dow' FROM d)", "extract(isodow FROM d)",
    "date_trunc('week', d)", "date_diff('week', DATE '2020-01-01', d)", "ts - INTERVAL '2' HOURS",
    # subscripts, structs, names
    "l[1]", "l[-1]", "l[1:2]", "l[:2]", "region[2:]", "region[-2:]", "region[:-2]", "l[:]", "l[age - 19]", "region[1]", "region[-1]", "st.a", "st.\"Region\"", "st.REGION", "(st).a",
    "people.st.income", "people.region", "main.people.region", "PEOPLE.\"REGION\"", "st['a'] + 1", "7 IN l", "age IN [20, 21]", "age == 20 AND sex IS NOT NULL", "NOT age == 20",
    "CASE sex WHEN 'f' THEN 1 WHEN NULL THEN 2 ELSE 3 END", "if(ok, 1, 2)", "(age, region) = (20, 'N')", "(age, sex) = (20, NULL)",
    "(age, region) IN ((20, 'N'), (21, 'S'))", "st::STRUCT(a VARCHAR, \"Region\" VARCHAR, income INT)", "ifnull(sex, 'u')",
)  # fmt: skip


PLACES = (
    "SELECT {} AS x, count(*) AS n, sum(income) AS s FROM people GROUP BY 1",
    "SELECT {} AS x, region, count(*) AS n FROM people GROUP BY ALL",
    "SELECT count(*) AS n FROM people WHERE coalesce(({})::VARCHAR, '') >= 'a' OR age = 20",
    "SELECT x, sum(income) FROM (SELECT {} AS x, income FROM people) q GROUP BY x",
)


QUERIES = (
    # subqueries that name what stands before them, and queries that read themselves
    "SELECT c.region, l.x FROM (SELECT region, count(*) AS n FROM people GROUP BY 1) c, LATERAL (SELECT c.n * 2 AS x) l",
    "WITH c AS (SELECT region, age, count(*) AS n FROM people GROUP BY ALL) SELECT r.region, t.age, t.n FROM regions r, "
    "LATERAL (SELECT age, n FROM c WHERE c.region = r.region ORDER BY n DESC, age LIMIT 2) t",
    "WITH RECURSIVE c AS (SELECT age, count(*) AS k FROM people GROUP BY 1), t AS (SELECT 20 AS a, 0::DOUBLE AS s UNION ALL "
    "SELECT t.a + 1, t.s + c.k FROM t JOIN c ON c.age = t.a) SELECT a, s FROM t",
    "SELECT region, unnest(range(n // 200)) AS i FROM (SELECT region, count(*) AS n FROM people GROUP BY 1)",
    "SELECT histogram(age)::VARCHAR AS h, mad(age) AS m, entropy(region) AS e FROM (SELECT region, age FROM people GROUP BY ALL)",
    # values that are published, and what is known first
    "SELECT EXISTS (SELECT 1 FROM people WHERE region = 'marked') AS a, 'marked' IN (SELECT region FROM people) AS b",
    "SELECT 777001 IN (SELECT age FROM people) AS a, EXISTS (SELECT region FROM people WHERE age > 700000 LIMIT 1) AS b",
    "SELECT region, age FROM people EXCEPT SELECT region, 30 FROM regions",
    "SELECT region FROM people INTERSECT SELECT region FROM people WHERE age > 700000 UNION SELECT sex FROM people",
    "SELECT sum(DISTINCT age) AS a, avg(DISTINCT age / 7) AS b FROM people",
    "SELECT region, count(coalesce(income, 0 * age)) AS n FROM people GROUP BY region",
    # a relation and a column, or a field, of one name
    "SELECT st.region, count(*) FROM people st GROUP BY 1",
    "SELECT st.st.region, count(*) FROM people st GROUP BY 1",
    "SELECT people.income, count(*) FROM (SELECT st AS people, region FROM people) GROUP BY 1",
    "SELECT main.people.income, count(*) FROM (SELECT st AS people FROM people) main GROUP BY 1",
    "SELECT st.region, count(*) FROM (SELECT st, region FROM people) st GROUP BY 1",
    "SELECT main.st.a, count(*) FROM people main JOIN (SELECT region, num AS a FROM regions) st ON main.region = st.region GROUP BY 1",
    "SELECT region, count(*) n FROM people region GROUP BY region",
    "SELECT x.y FROM (SELECT {'y': 3} AS x) q, (SELECT 4 AS y) x",
    "SELECT s.n FROM nums, (SELECT 100 AS n) AS s",
    "SELECT n.n.n FROM (SELECT {'n': count(*)} AS n FROM people) n",
    # new names for columns
    "SELECT region, sum(c) n FROM (SELECT sex, region, income, age FROM people) AS p(x, region, c) GROUP BY region",
    "WITH c(region, x) AS (SELECT sex, region FROM people) SELECT region, count(*) n FROM c GROUP BY region",
    "SELECT region, count(*) n FROM (SELECT * REPLACE (sex AS region) FROM people) GROUP BY 1",
    "SELECT * RENAME (a AS b, b AS a) FROM nums",
    "SELECT * EXCLUDE (r.region) FROM nums JOIN regions r ON num = a",
    "SELECT sex AS region, count(*) n FROM people GROUP BY sex HAVING region = 'f'",
    "SELECT upper(region) AS region, count(*) n FROM people GROUP BY region HAVING region = 'East'",
    "SELECT age + 1 AS age, age + 1 AS b, count(*) n FROM people GROUP BY 1, 2",
    "SELECT -num AS num FROM regions ORDER BY num + 0 LIMIT 1",
    "SELECT n: count(*), region FROM people GROUP BY region",
    # FROM, WITH, set operations and what they leave out
    "FROM people SELECT count(*) AS n WHERE age > 21",
    "WITH people AS (SELECT region AS sex, income AS age FROM people) SELECT sex, count(*) n, sum(age) s FROM people GROUP BY sex",
    "WITH a AS (SELECT 1 AS x), b AS (WITH a AS (SELECT 2 AS x) SELECT * FROM a) SELECT a.x, b.x AS y FROM a, b",
    "SELECT 1 AS a EXCEPT SELECT 1 UNION ALL SELECT 3",
    "SELECT 1 AS a UNION ALL SELECT 1 INTERSECT SELECT 1",
    "SELECT region FROM people GROUP BY 1 EXCEPT ALL SELECT region FROM regions WHERE num > 1",
    "SELECT region, count(*) AS n FROM people GROUP BY 1 UNION ALL BY NAME SELECT sum(income) AS n, sex AS region FROM people GROUP BY sex",
    "SELECT region, count(*) n FROM people GROUP BY region ORDER BY region FETCH FIRST 2 ROWS ONLY",
    "SELECT region, count(*) n FROM people GROUP BY region ORDER BY region LIMIT 50%",
    "SELECT sex, count(*) n FROM people GROUP BY sex ORDER BY sex DESC NULLS FIRST LIMIT 1",
    "SELECT DISTINCT ON (region) region, age FROM (SELECT region, age, count(*) AS n FROM people GROUP BY ALL) ORDER BY region, age",
    "SELECT count(*) n FROM people /* /* nested */ WHERE age > 21 */ WHERE age > 22",
    # subqueries and joins
    "SELECT count(*) n FROM people WHERE region NOT IN (SELECT region FROM regions WHERE num > 2) AND NOT ok",
    "SELECT count(*) n FROM people WHERE (region, age) NOT IN (SELECT region, num + 19 FROM regions)",
    "SELECT region, (SELECT max(num) FROM regions r WHERE num < r.num) n FROM regions",
    "SELECT count(*) FROM people SEMI JOIN nums q ON people.age = q.a",
    "SELECT count(*) n FROM people ANTI JOIN (SELECT * FROM regions WHERE num > 2) q USING (region)",
    "SELECT region, a.region x, b.region y FROM regions a FULL JOIN (SELECT 'Q' AS region, 9 AS z) b USING (region)",
    # brackets around joins
    "SELECT label, count(*) FROM (people p JOIN regions USING (region)) GROUP BY label",
    "SELECT b, count(*) n FROM ((people p INNER JOIN regions r ON p.region = r.region) LEFT JOIN nums q ON r.num = q.a) GROUP BY b",
    "SELECT count(*) n FROM (people p LEFT JOIN regions r ON p.region = r.region AND r.num < 3) INNER JOIN nums ON num = a",
    "SELECT label, b FROM (regions LEFT JOIN nums ON num = a), (VALUES (1)) v(x) WHERE x <= num",
    # FROM first: joins stand with the relation
    "FROM people JOIN regions USING (region) SELECT label, count(*) n WHERE age > 21 GROUP BY label",
    "FROM people p LEFT JOIN regions r ON p.region = r.region AND r.num < 3 JOIN nums ON num = a SELECT count(*) n",
    "FROM (people p LEFT JOIN regions r ON p.region = r.region) LEFT JOIN nums q ON r.num = q.a SELECT b, count(*) n GROUP BY b",
    "FROM regions JOIN (SELECT region, count(*) n FROM people GROUP BY 1) q USING (region)",
    "WITH q AS (FROM people ANTI JOIN (FROM regions WHERE num > 2) r USING (region) SELECT sex, count(*) n GROUP BY 1) FROM q",
    # aggregates and windows
    "SELECT sum(income / 4), sum(-income) / 3, -count(*) ** 2, 2 ^ 3 ^ 2, count(*) - (1 - 2) FROM people",
    "SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY num DESC), percentile_cont(0.25) WITHIN GROUP (ORDER BY num DESC) FROM regions",
    "SELECT age, sum(n) OVER (ORDER BY age ROWS 1 PRECEDING EXCLUDE CURRENT ROW) FROM (SELECT age, count(*) n FROM people GROUP BY 1)",
    "SELECT age, first_value(sex IGNORE NULLS) OVER (ORDER BY age, sex NULLS FIRST) FROM people GROUP BY age, sex",
    "SELECT region, sex, GROUPING(sex, region) g, count(*) FROM people GROUP BY ROLLUP((region, sex)), ()",
    "SELECT region, count(*) NOT IN (100) >= true AS z FROM people GROUP BY 1",
    # PIVOT compares texts
    "PIVOT people ON sex IN ('f', 'M') USING count(*) GROUP BY age",
    "PIVOT nums ON a IN (1, '2', '02', 020) USING sum(c) GROUP BY b",
    "PIVOT regions ON num IN ('1.0', '1') USING sum(num) GROUP BY region",
    "SELECT * FROM nums UNPIVOT INCLUDE NULLS (v FOR k IN (a AS 'z', c))",
)


@pytest.mark.parametrize("place", PLACES)
def test_an_expression_means_what_duckdb_reads(read: Read, place: str) -> None:
    step = times(len(PLACES), 1)
    for expression in EXPRESSIONS[PLACES.index(place) % step :: step]:
        text = place.replace("{}", expression)
        assert read.answer(text) == read.wanted(text), text


def test_a_query_means_what_duckdb_reads(read: Read) -> None:
    for text in QUERIES:
        assert read.answer(text) == read.wanted(text), text


def test_brackets_around_one_table(read: Read) -> None:
    for source in ("(people)", "((people)) AS people", "(people) JOIN (regions) ON people.region = regions.region"):
        text = f"SELECT people.region, count(*) AS n FROM {source} GROUP BY ALL"
        try:
            wanted = read.wanted(text)
        except duckdb.ParserException:
            assert duckdb.__version__ != "2.0.0", text  # which alone reads them
            with pytest.raises(Refused, match="SDC001"):
                read.answer(text)
        else:
            assert read.answer(text) == wanted, text


REFUSED = {
    "SELECT age // 2 AS age, count(*) FROM people AS alias GROUP BY alias.age": "alias.x",
    "SELECT -num AS num FROM regions AS alias ORDER BY num + 1": "alias.x",
    "SELECT -a AS x, count(*) FROM (SELECT {'x': num} AS alias, num AS a FROM regions) GROUP BY ALL HAVING alias.x < 0": "alias.x",
    "SELECT DATE '2020-01-01'::VARCHAR": "its type before it",
    "SELECT count(*) FROM people WHERE TIMESTAMP '2020-01-03 15:00:00'::DATE = d": "its type before it",
    "SELECT * NOT LIKE 'l%' FROM regions": r"\* LIKE",
    "SELECT count(*) FROM (SELECT * LIKE 'r%' FROM people)": r"\* LIKE",
    "SELECT * REPLACE (r.num + 1 AS num) FROM regions p JOIN regions r ON p.num = r.num": "REPLACE beside a join",
    "SELECT COLUMNS(* EXCLUDE (r.region)) FROM regions p JOIN regions r ON p.num = r.num": "EXCLUDE",
    "SELECT count(*) FROM people SEMI JOIN nums st ON people.age = st.a": "'st' is a column and a relation",
    "SELECT * FROM regions a SEMI JOIN nums b ON a.num = b.a": "'b' is a column and a relation",
    "SELECT count(*) FROM people p JOIN (regions r LEFT JOIN nums ON num = a) ON p.region = r.region": "brackets around joins",
    "SELECT count(*) FROM people p LEFT JOIN ((regions r JOIN nums ON num = a)) ON p.region = r.region": "brackets around joins",
    "SELECT count(*) FROM people AT (VERSION => 1)": "at another time",
    "SELECT sex IS NOT TRUE || 'x' AS x FROM (SELECT true AS sex)": "IS of more than",
    "PIVOT people ON age IN (20.0, 21) USING count(*) GROUP BY region": "whole numbers",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_two_parsers_do_not_agree_on_is_refused(read: Read, text: str) -> None:
    for one in read.guards.values():
        with pytest.raises(Refused, match=REFUSED[text]):
            one.sql(text)


@pytest.mark.parametrize("expression", ["age == 20 || ''", "20 == age - 1 IN (1, 2)", "pat ~~ 'a' || '%'"])
def test_operators_that_bind_otherwise_in_duckdb_1(read: Read, expression: str) -> None:
    """DuckDB 2 reads == as =, and ~~ as LIKE."""
    text = f"SELECT {expression} AS x, count(*) AS n FROM people GROUP BY 1"
    if IS_1:
        with pytest.raises(Refused, match="text that reads in two ways"):
            read.answer(text)
    else:
        assert read.answer(text) == read.wanted(text)


OPERATORS = (
    "==", "+", "-", "*", "/", "//", "%", "**", "||", "&", "|", "<<", "=", "<>", "<", ">=", "AND", "OR", "LIKE", "NOT LIKE", "GLOB", "~~*",
    "IS DISTINCT FROM", "IS NOT DISTINCT FROM", "IN", "NOT IN", "BETWEEN", "NOT BETWEEN",
)  # fmt: skip
BEFORE = ("-", "NOT ", "~", "@", "- -")
AFTER = (
    " IS NULL", " IS NOT NULL", " ISNULL", " NOTNULL", " IS TRUE", " IS NOT TRUE", "::VARCHAR", "::INT", "::DOUBLE", "[1]", "[1:2]",
    " COLLATE nocase", " IN (1, 2)", " NOT IN ('a')", " BETWEEN 1 AND 3", " NOT BETWEEN 1 AND 2", "::BOOLEAN", "::DECIMAL(5,2)",
)  # fmt: skip
ATOMS = ("1", "2", "-1", "a", "b", "c", "'a'", "'1'", "NULL", "true", "1.5", "20", "l", "[1, 2]", "(b)", "false")


def _expression(of: random.Random, depth: int) -> str:
    """Operators in a row with few brackets: what goes first is left to the parsers."""
    kind = of.random()
    if depth == 0 or kind < 0.1:
        return of.choice(ATOMS)
    one = _expression(of, depth - 1)
    if kind < 0.65:
        operator, other = of.choice(OPERATORS), _expression(of, depth - 1)
        if operator.endswith("IN"):
            other = f"({other}, {of.choice(ATOMS)})"
        elif operator.endswith("BETWEEN"):
            other = f"{other} AND {of.choice(ATOMS)}"
        return f"{one} {operator} {other}"
    if kind < 0.75:
        return of.choice(BEFORE) + one
    return one + of.choice(AFTER) if kind < 0.95 else f"({one})"


def test_operators_in_a_row(read: Read, capsys: pytest.CaptureFixture[str]) -> None:
    of, asked, answered = random.Random(20261123), 0, 0
    while asked < (20_000 if LONG else times(150, 400)):
        text = f"SELECT {_expression(of, of.choice((2, 3, 4)))} AS x FROM nums"
        try:
            wanted = read.wanted(text)
        except duckdb.Error:
            continue
        asked += 1
        try:
            got = _rows(_fetched(read.guards["threshold"].sql(text)))
        except Refused:
            continue
        answered += 1
        assert got == wanted, text
    with capsys.disabled():
        print(f"\n    {asked} expressions without brackets: {answered} answered, all as DuckDB does", end="")
    assert answered > asked / 2
