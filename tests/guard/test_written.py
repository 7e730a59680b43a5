"""The parts of a rewritten query: what of them is text from the beginning, and how they are put together."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from sqlglot import parse_one

import sdcduck
from sdcduck.guard import Refused
from sdcduck.guard.calls import Steps, is_plain, unknown_name, with_numbers
from sdcduck.guard.passes.render import Written, written
from sdcduck.guard.passes.validate import check_rewritten
from sdcduck.guard.rewriter import PASSES

RECORDS = "SELECT region AS _g0 FROM people GROUP BY region"
NUMBER = '"_sdc_n"."_f0_0"'


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect() as con:
        con.execute("""
            CREATE TABLE people AS SELECT i AS id, 'r' || i % 3 AS region, i % 100 AS income FROM range(90) t(i);
            FROM sdc_protect('people', unit := 'id', dimensions := ['region'], measures := ['income'],
                method := 'threshold', min_units := 1);
        """).fetchall()
        yield con


@pytest.mark.parametrize(
    "formula",
    [
        "count(*)", "age", '"age"', '"people"."age"', '"_sdc_n"."age"', '"_sdc_n"', "_f0_0", f"{NUMBER} -- 1",
        f"{NUMBER} /* 1 */", f"{NUMBER}; {NUMBER}", f"(SELECT {NUMBER})", f"[{NUMBER}]", "read_csv('a')", "'a' || 'b'",
        r"'\'", "'", f"lower({NUMBER})", f"_sdc_exact_sum({NUMBER}, 4)", f"x_sdc_clipped({NUMBER})", f"{NUMBER}::TEXT",
        f"{NUMBER} IS NULL", "$1", "?", "1e9", "e'\\x41'", "0x41", "typeof", "'a'" * 5000 + '"',
    ],
)  # fmt: skip
def test_only_what_the_guard_writes_is_plain(formula: str) -> None:
    assert is_plain(formula) == (formula == "typeof")  # a word alone does no harm


@pytest.mark.parametrize(
    "formula", [NUMBER, f"_sdc_clipped({NUMBER}, typeof({NUMBER}))", f"CASE WHEN {NUMBER} >= 3.5 THEN 'it''s' END / -1"]
)
def test_columns_of_calls_and_functions_of_these_are_plain(formula: str) -> None:
    assert is_plain(formula)


def refused(con: duckdb.DuckDBPyConnection, *, over_records: list[str], over_numbers: list[str]) -> str:
    text = Written("SELECT 1", (), "SELECT 1")
    with pytest.raises(Refused) as problem:
        check_rewritten(con, text, over_records=over_records, over_numbers=over_numbers, tables=())
    return problem.value.code


@pytest.mark.parametrize(
    ("expressions", "code"),
    [
        (["1), (2"], "SDC006"),
        (["1), (2", "3"], "SDC006"),
        (["1) FROM people WHERE (true"], "SDC006"),
        (["1) WHERE (true"], "SDC006"),
        (["1) ORDER BY (1"], "SDC006"),
        (["1) UNION SELECT (1"], "SDC006"),
        (["1); SELECT (2"], "SDC006"),
        (["1) -- "], "SDC001"),
        (["1) /* ", "*/ + (2"], "SDC006"),
        (["SELECT 1"], "SDC006"),
        (["count(*) OVER ()"], "SDC010"),
        (["getenv('HOME')"], "SDC010"),
    ],
)
def test_expressions_that_are_no_list_of_such_are_refused(
    con: duckdb.DuckDBPyConnection, expressions: list[str], code: str
) -> None:
    assert refused(con, over_records=expressions, over_numbers=[]) == code
    assert refused(con, over_records=[], over_numbers=expressions) == code


def test_functions_of_the_guard_are_refused_over_records(con: duckdb.DuckDBPyConnection) -> None:
    text = Written("SELECT 1", (), "SELECT 1")
    check_rewritten(con, text, over_records=[], over_numbers=[f"_sdc_clipped({NUMBER}, 'DOUBLE')"], tables=())
    assert refused(con, over_records=[f"_sdc_clipped({NUMBER}, 'DOUBLE')"], over_numbers=[]) == "SDC010"


def test_functions_of_the_guard_are_refused_around_released_numbers(con: duckdb.DuckDBPyConnection) -> None:
    check_rewritten(
        con, Written("SELECT 1", ("SELECT sdc_quantile(1)",), ""), over_records=[], over_numbers=[], tables=()
    )
    with pytest.raises(Refused, match="SDC010"):
        check_rewritten(con, Written("SELECT sdc_quantile(1)", (), ""), over_records=[], over_numbers=[], tables=())


@pytest.mark.parametrize(
    "other",
    [
        "SELECT * FROM people",
        "SELECT * FROM main.people",
        "SELECT * FROM memory.main.People",
        'SELECT * FROM memory.main."\u212aunden"',
        "SELECT * FROM memory.main.people, memory.main.other",
        "SELECT * FROM other.main.people",
        "WITH people AS (SELECT 1) SELECT * FROM memory.main.people",
        "SELECT (SELECT count(*) FROM people) FROM memory.main.people",
        "SELECT * FROM (WITH _sdc_with_1 AS (SELECT 2) SELECT * FROM _sdc_with_0)",
    ],
)
def test_a_relation_that_is_not_on_the_list_of_the_query_is_refused(con: duckdb.DuckDBPyConnection, other: str) -> None:
    tables = {("memory", "main", "people"), ("memory", "main", "kunden"), ("", "", "_sdc_with_0")}
    mine = "WITH _sdc_with_0 AS (SELECT * FROM memory.main.people) SELECT * FROM _sdc_with_0, memory.main.kunden AS a"
    check_rewritten(con, Written(mine, (mine,), mine), over_records=[], over_numbers=[], tables=tables)
    for text in (Written(other, (mine,), mine), Written(mine, (mine, other), mine)):
        with pytest.raises(Refused, match="SDC006"):
            check_rewritten(con, text, over_records=[], over_numbers=[], tables=tables)


def test_every_pass_shows_what_it_does() -> None:
    """With a query before and after, which the doctests run (`conftest.py` of the project)."""
    assert [step.__name__ for step in PASSES if f">>> after({step.__name__}, " not in (step.__doc__ or "")] == []


def test_steps_stand_within_each_other() -> None:
    steps = Steps()
    number = steps.call("count(CASE WHEN true THEN 1 END)")
    slot = steps.column(1, f"_sdc_count_slot('p', {number})")
    made = with_numbers(parse_one(RECORDS, read="duckdb"), {f"{slot} + max(age)": "_a0"}, f"{number} > 0", steps)
    name = unknown_name()
    query = parse_one(f'SELECT * FROM "{name}" AS t WHERE a <> \'"{name[:-1]}g"\'', read="duckdb")
    text = written(query, {name: made})
    assert text is not None
    assert text.sql == (
        'SELECT * FROM (SELECT _sdc_group_key("_sdc_n"."_g0") AS "_g0", "_sdc_n"."_f1_1" + "_sdc_n"."_c0" AS "_a0" FROM ('
        'SELECT *, _sdc_count_slot(\'p\', "_sdc_n"."_f0_0") AS "_f1_1" FROM ('
        'SELECT region AS _g0, COUNT(CASE WHEN TRUE THEN 1 END) AS "_f0_0", MAX(age) AS "_c0" FROM people GROUP BY region'
        ') AS "_sdc_n") AS "_sdc_n" WHERE "_sdc_n"."_f0_0" > 0 ORDER BY "_sdc_n"."_g0") AS t WHERE a <> \'"'
        + name[:-1]
        + "g\"'"
    )


def test_a_formula_over_a_record_is_refused() -> None:
    with pytest.raises(Refused, match="SDC005"):
        with_numbers(parse_one(RECORDS, read="duckdb"), {"count(*) + age": "_a0"}, "true", Steps())


def test_a_text_that_looks_like_a_name_stays_a_text(con: duckdb.DuckDBPyConnection) -> None:
    query = f"SELECT '\"{unknown_name()}\"' AS t, count(*) AS n FROM people"
    assert [tuple(row.values()) for row in sdcduck.open_guard(con).sql(query).to_pylist()] == con.execute(
        query
    ).fetchall()
