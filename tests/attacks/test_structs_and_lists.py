"""Structs, lists, maps, subscripts and lambdas as a way out for single records, in every clause."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attacked_database import LONG, Attacked
from effort import times
from fixtures_of_attacks import attacked, show

import sdcduck
from sdcduck.guard import Refused, guard

HIDDEN = ("income", "person_id", "record_key", "people.income", "main.people.income", "people", "people.*", "*")
PACKED = (
    "{{'x': {}}}", "{{'x': {}}}.x", "{{'x': {{'y': {}}}}}['x'].y", "struct_pack(x := {})", "struct_pack(x := {}).x", "row({})",
    "row({})[1]", "({}, 1)", "({}, 1)[1]", "[{}]", "[{}][1]", "[1, {}][2:]", "list_value({})[1]", "ARRAY[{}][1]", "MAP {{'x': {}}}",
    "MAP {{{}: 1}}", "MAP {{'x': {}}}['x']", "map([1], [{}])[1]", "map_keys(MAP {{{}: 1}})[1]", "map_from_entries([(1, {})])",
    "unnest([{}])", "unnest({{'x': {}}})", "list_sort([{}])", "list_sum([{}])", "list_max([{}, 0])", "struct_extract({{'x': {}}}, 'x')",
    "list_extract([{}], 1)", "element_at(MAP {{1: {}}}, 1)", "array_to_string([{}::VARCHAR], '')", "list_distinct([{}])[1]",
    "list_transform([1], lambda x: {})", "list_transform([{}], lambda x: x)[1]", "[{} FOR x IN [1]]", "list_filter([{}], lambda x: true)",
    "list_reduce([{}, 0], lambda a, b: a + b)", "apply([1], x -> {})", "list_aggregate([{}], 'max')", "{}['income']", "({}).income",
    "({}).person_id", "{}.income", "struct_extract({}, 'income')", "{}::VARCHAR[1]", "CAST({} AS VARCHAR)[1:12]", "{}[1]", "{}[1:12]",
    "region[{}]", "region[{}:]", "[10, 20, 30][{} % 3 + 1]", "list(region)[{} % 7]", "[count(*)][{} % 2]", "any_value({{'x': {}}}).x",
    "first([{}])[1]", "max([{}])", "min({{'x': {}}})", "list({{'x': {}}})", "arg_max({{'x': {}}}, age).x", "count(DISTINCT [{}])",
    "sum([{}][1])", "avg({{'x': {}}}.x)", "mode({{'x': {}}})", "string_agg([{}::VARCHAR][1])",
)  # fmt: skip
CLAUSES = (
    "SELECT {} AS v FROM people",
    "SELECT region, {} AS v, count(*) FROM people GROUP BY region",
    "SELECT {} AS v, count(*) FROM people GROUP BY 1",
    "SELECT {} AS v, count(*) FROM people GROUP BY ALL",
    "SELECT DISTINCT {} AS v FROM people",
    "SELECT count(*) AS n FROM people WHERE {} IS NOT NULL",
    "SELECT count(*) FILTER ({} IS NOT NULL) AS n FROM people",
    "SELECT sum(CASE WHEN {} IS NULL THEN 1 ELSE 0 END) AS n FROM people",
    "SELECT region, count(*) FROM people GROUP BY region HAVING {} IS NOT NULL",
    "SELECT region, count(*) FROM people GROUP BY region ORDER BY {}",
    "SELECT region, count(*) FROM people GROUP BY region QUALIFY rank() OVER (ORDER BY {}) = 1",
    "SELECT region, first_value({}) OVER (ORDER BY region) AS v FROM people GROUP BY region",
    "SELECT region, sum(count(*)) OVER (PARTITION BY {}) FROM people GROUP BY region",
    "SELECT count(*) AS n FROM people JOIN regions r ON r.region = people.region AND r.num = {}",
    "SELECT count(*) AS n FROM people JOIN regions r ON r.region = {}",
    "SELECT v, count(*) FROM (SELECT {} AS v FROM people) GROUP BY v",
    "WITH c AS (SELECT {} AS v, region FROM people) SELECT region, list(v) AS v, count(*) FROM c GROUP BY region",
    "SELECT s.v AS v, count(*) FROM (SELECT {{'v': {}}} AS s FROM people) GROUP BY 1",
    "SELECT count(*) AS n FROM people WHERE region IN (SELECT r.region FROM regions r WHERE {} IS NOT NULL)",
    "SELECT count(*) AS n, (SELECT {} FROM people LIMIT 1) AS v FROM people",
    "SELECT r.label, (SELECT {}) AS v FROM regions r, people GROUP BY 1",
    "SELECT region, count(*) FROM people GROUP BY GROUPING SETS ((region), ({}))",
    "SELECT {} AS v FROM people LIMIT 5",
    "SELECT {} AS v FROM (SELECT list(income) AS l FROM people), people",
)  # fmt: skip


def test_nothing_of_a_record_comes_out_packed(attacked: Attacked, show: Callable[[str], None]) -> None:
    asked, answered, step = 0, [], times(4, 1)
    for number, clause in enumerate(CLAUSES):
        for turn, hidden in enumerate(HIDDEN if LONG or clause == CLAUSES[2] else HIDDEN[:1], number):
            for packed in PACKED[turn % step :: step]:
                query = clause.format(packed.format(*[hidden] * 2))
                asked += 1
                got = attacked.attempt(query)
                if not isinstance(got, Refused):
                    answered.append(query)
                    assert not attacked.leaks(got), query
    # Of nothing at all, which DuckDB 1 sees in [*], and of whether a measure is known.
    assert [
        query for query in answered if "*]" not in query and "(*)[" not in query and "people.income" not in query
    ] == []
    show(f"{asked} questions of packed records, {len(answered)} answered, none with a value of a record")


def test_groups_and_numbers_may_be_packed(attacked: Attacked) -> None:
    """The same forms of what is released, so that they are not refused for being wrong."""
    queries = [CLAUSES[1].format(packed.format("region", "region")) for packed in PACKED]
    assert sum(attacked.guard.explain(query).answered for query in queries) > len(PACKED) // 3


REFUSED = {
    "whole records": "SELECT people FROM people",
    "whole records packed": "SELECT {'p': people} AS p FROM people",
    "whole records in a list": "SELECT list(people) FROM people",
    "a field of whole records": "SELECT (people).income, count(*) FROM people GROUP BY 1",
    "a field of whole records under another name": "SELECT p.p.income, count(*) FROM people p GROUP BY 1",
    "whole records as a text": "SELECT people::VARCHAR[1:9] AS p, count(*) FROM people GROUP BY 1",
    "whole records of a subquery": "SELECT s.income, count(*) FROM (SELECT p AS s FROM people p) GROUP BY 1",
    "stars packed": "SELECT struct_pack(p := people.*) FROM people",
    "columns packed": "SELECT [COLUMNS('inc.*')] FROM people",
    "columns unpacked": "SELECT row(*COLUMNS('inc.*')) FROM people",
    "a relation called as a column": "SELECT region.income, count(*) FROM people AS region GROUP BY 1",
    "records in a field": "SELECT {'x': (SELECT max(income) FROM people)} AS s",
    "records behind a subscript": "SELECT [1, 2][(SELECT max(income) FROM people) % 2 + 1] AS s",
    "records behind a slice": "SELECT 'abc'[(SELECT min(income) FROM people):] AS s",
    "records in a map": "SELECT MAP {'x': (SELECT list(income) FROM people)}['x'] AS s",
    "records in a list of a struct": "SELECT s.x[1] FROM (SELECT {'x': list(income)} AS s FROM people)",
    "a field that is SQL": "SELECT {'x'': (SELECT max(income) FROM people), ''y': region} AS s, count(*) FROM people GROUP BY ALL",
    "unnested in FROM": "SELECT x FROM people, unnest([income]) u(x)",
    "unnested beside records": "SELECT count(*) FROM people, unnest([1, 2]) u(x)",
    "unnested in a group key": "SELECT unnest([region, sex]) AS x, count(*) FROM people GROUP BY x",
    "unnested in a condition": "SELECT count(*) FROM people WHERE unnest([true])",
    "unnested records": "SELECT count(*) FROM (SELECT unnest([1, 2]) AS x, region FROM people)",
    "the same group twice": "SELECT count(*) FROM people JOIN (SELECT unnest(['N', 'N']) AS region) u USING (region)",
    "a named argument": "SELECT count(*) FROM people WHERE region[x := income]",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(attacked: Attacked, name: str) -> None:
    got = attacked.attempt(REFUSED[name])
    assert isinstance(got, Refused), got


def test_a_subscript_that_looks_like_sql_is_a_text(attacked: Attacked) -> None:
    got = attacked.attempt("SELECT count(*) AS n FROM people WHERE region['] IS NULL OR income > 5 OR region['] = 'N'")
    assert isinstance(got, Refused) or got == [{"n": 0}]


@pytest.mark.parametrize(
    "expression",
    [
        "region[(age - {age}) * 9000000000000000000]", "region[1 // (age - {age})]", "region[(age - {age} + 1) * 5000000000:]",
        "region[:(CASE WHEN age = {age} THEN 'x' ELSE '1' END)::INTEGER]", "(region::INTEGER[])[1]", "[region][1]",
        "string_split(region, 'x')[1]", "region[CASE WHEN age = {age} THEN -9223372036854775808 ELSE 1 END]",
        "(CASE WHEN age = {age} THEN '[1, x]' ELSE '[1]' END::INTEGER[])[1]", "region[1:2:(CASE WHEN age = {age} THEN 0 END)]",
        "(CASE WHEN age = {age} THEN '{{x: 1}}' ELSE 'no' END::STRUCT(x INTEGER)).x", "region[1].x", "region.x",
        "(CASE WHEN age = {age} THEN '[1]' ELSE '[1, 2]' END::INTEGER[2])[1]",
        "('[1, 2, 3]'::INTEGER[])[1:3:(age - {age})]",
    ],
)  # fmt: skip
def test_a_subscript_that_fails_for_one_record_does_not_tell_of_it(attacked: Attacked, expression: str) -> None:
    """There is one person of age 99, and none of age 98."""
    for query in (
        "SELECT count(*) AS n FROM people WHERE {} IS NOT NULL AND age < 30",
        "SELECT count(*) FILTER ({} IS NULL) >= 0 AS n FROM people WHERE age < 30",
        "SELECT count(DISTINCT {}) >= 0 AS n FROM people",
        "SELECT count(*) > 0 AS n FROM (SELECT {} AS v FROM people) WHERE v IS NULL OR true",
    ):
        there, missing = (attacked.attempt(query.replace("{}", expression.format(age=age))) for age in (99, 98))
        assert isinstance(there, Refused) == isinstance(missing, Refused), query
        assert isinstance(there, Refused) or there == missing, query
        if isinstance(there, Refused) and isinstance(missing, Refused):
            assert there.code == missing.code


def test_subscripts_of_dimensions_have_the_noise_of_their_records(attacked: Attacked) -> None:
    """Written in another way, the same groups are the same numbers."""
    asked = [
        "SELECT substr(region, 1, 1) AS r, count(*) AS n, sum(income) AS s FROM people GROUP BY 1 ORDER BY 1",
        "SELECT region[1] AS r, count(*) AS n, sum(income) AS s FROM people GROUP BY 1 ORDER BY 1",
        "SELECT region[1:1] AS r, count(*) AS n, sum(income) AS s FROM people GROUP BY region[1:1] ORDER BY r",
        "SELECT v.r, v.n, v.s FROM (SELECT {'r': region[-1], 'n': count(*), 's': sum(income)} AS v FROM people GROUP BY region) ORDER BY 1",
        "SELECT x[1].r AS r, x[1].n AS n, x[1].s AS s FROM (SELECT [{'r': region, 'n': count(*), 's': sum(income)}] AS x FROM people GROUP BY region) ORDER BY 1",
    ]
    answers = [attacked.attempt(query) for query in asked]
    assert len(answers[0]) > 2
    assert all(answer == answers[0] for answer in answers)


OF_A_HIDDEN_COLUMN = (
    "SELECT {} AS x, count(*) FROM {} GROUP BY 1",
    "SELECT count(*) FROM {1} WHERE {0} IS NOT NULL",
    "SELECT count(*) FILTER ({} IS NOT NULL) FROM {}",
    "SELECT sum({}) FROM {}",
    "SELECT min({}) FROM {}",
    "SELECT count(DISTINCT {}) FROM {}",
    "SELECT region, count(*) FROM {1} GROUP BY ALL ORDER BY {0}",
    "SELECT x, count(*) FROM (SELECT {} AS x FROM {}) GROUP BY x",
    "SELECT {} FROM {} LIMIT 0",
)
FIELDS = {
    "the name of its table": ("hidden.hidden.age", "people hidden"),
    "of another relation": ("p.hidden.num", "people p JOIN regions hidden USING (region)"),
    "of a list of values": ("p.hidden.f", "people p JOIN (VALUES ('N', 1)) hidden(region, f) USING (region)"),
    "beside a relation called main": ("main.hidden.f", "people main JOIN (SELECT region, num AS f FROM regions) hidden USING (region)"),
    "a field of a field": ("p.hidden.s.num", "people p JOIN regions s USING (region)"),
    "of a WITH query": ("p.hidden.f", "people p JOIN (WITH c AS (SELECT region, 1 AS f FROM regions) FROM c) hidden USING (region)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_of_a_hidden_column_that_looks_like_a_column_of_a_relation(name: str) -> None:
    """DuckDB reads a.b.c as the field c of column b of relation a, although there is a relation b with a column c."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("""
            CREATE TABLE people AS SELECT i AS id, ['N', 'S'][1 + i % 2] AS region, i % 5 AS age,
                {'age': i % 3, 'num': i % 3, 'f': i % 3, 's': {'num': i % 3}} AS hidden FROM range(600) t(i);
            CREATE TABLE regions AS FROM (VALUES ('N', 1), ('S', 2)) t(region, num);
            FROM sdc_add_record_key('people', unit := 'id');
            FROM sdc_declare_public('regions');
            FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age']);
        """)
        one = guard(con)
        for clause in OF_A_HIDDEN_COLUMN:
            with pytest.raises(Refused, match=r"SDC030: an unknown column \('"):
                one.sql(clause.format(*FIELDS[name]))
        # It is not told from a schema that does not exist.
        with pytest.raises(Refused, match=r"SDC030: an unknown column \('nowhere.hidden.age'; write hidden.age\)"):
            one.sql("SELECT nowhere.hidden.age, count(*) FROM people hidden GROUP BY 1")
        assert one.sql("SELECT main.hidden.age, count(*) FROM people hidden GROUP BY 1").num_rows == 5
