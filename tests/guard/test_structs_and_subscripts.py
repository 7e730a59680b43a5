"""Structs, lists, maps and subscripts: of released numbers and public tables as DuckDB has them, of dimensions as group keys."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused, guard

COUNT = "sdc_count(record_key)"
BY_REGION = f"(SELECT region, {COUNT} AS n FROM people GROUP BY region)"


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = sdcduck.connect(secret="the secret of the tests")
    connection.execute("""
        CREATE TABLE people AS SELECT i AS person_id, ['North', 'South', 'East', 'West'][1 + i * i % 7 % 4] AS region,
            ['f', 'm'][1 + i % 2] AS sex, 18 + i * 31 % 60 AS age, 1000 + i * 7919 % 4000 AS income,
            {'City': ['Ulm', 'Bonn'][1 + i % 3 % 2], 'zip': i % 5} AS address, [['a', 'b'][1 + i % 2], 'c'] AS tags
        FROM range(1, 901) t(i);
        CREATE TABLE lists AS SELECT ['a', 'b', 'c', 'd', 'e'] AS l, 3 AS n, 'abcdef' AS t, [[1, 2], [3, 4]] AS ll,
            {'A': 1, 'b c': {'d': 2}} AS s, MAP {'k': [7, 8]} AS m""")
    connection.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
    connection.execute(
        "FROM sdc_protect('people', unit := 'person_id', dimensions := ['region', 'sex', 'age', 'address', 'tags'], measures := ['income'])"
    ).fetchall()
    connection.execute("FROM sdc_declare_public('lists')").fetchall()
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return guard(con)


@pytest.mark.parametrize(
    "expression",
    [
        # one place: of lists and texts, from both ends, out of range, worked out
        "l[1]", "l[n]", "l[n + 1]", "l[n - 1]", "l[-n]", "l[-1]", "l[0]", "l[9]", "l[1 + n // 2]", "l[n % 2 + 1]", "l[(2)]",
        "l[CASE WHEN n > 1 THEN 1 ELSE 2 END]", "l[length(t) - 2]", "l[NULL]", "l['2'::INTEGER]", "l[9223372036854775807]",
        "t[1]", "t[n]", "t[-2]", "t[length(t)]", "upper(t)[1]", "t[1] || t[2]", "concat(t, 'x')[7]", "CAST(n AS VARCHAR)[1]",
        "(n::VARCHAR)[1]", "'abc'[2]", "(l || ['x'])[6]", "[1, 2, 3][2]", "[n, 2][n - 2]", "ARRAY[n, 2][2]", "ll[1][2]",
        "ll[n - 1][n - 2]", "string_split(t, 'c')[2]", "list_sort(['b', 'a'])[1]", "list_value(n, 2)[2]", "m['k']", "m['z']",
        "m['k'][1]", "m['k'][n - 2]", "MAP {'a': n}['a']", "map([n], [t])[3]", "map_keys(m)[1]", "row(n, t)[1]",
        # slices
        "t[2:n]", "t[:2]", "t[n:]", "t[:]", "t[-3:-2]", "t[:-2]", "l[1:n]", "l[:-2]", "l[5:-:-1]", "l[1:5:2]", "ll[1:1][1][1]",
        "(t[1:3])[2]", "'abc'[1:2]", "len(l[2:])",
        # structs, with the names of their fields as they were written
        "s", "s.a", "s.A", "s['A']", "s['a']", 's."b c".d', "s['b c'].D", "(s).a", "lists.s.a", "(lists.s).a", "m.k",
        "{'X': n, 'y': {'Z': t[1]}}", "{'X': n}['x']", "{'X': n}.x", "{'k': s}.k.a", 'struct_pack(X := n, "b b" := 1)',
        "{'it''s': n}", '{"Q q": n}', "{a: n, B: 2}", "{'a':n}", "{'a': n}::STRUCT(a VARCHAR)", "row(n, t)", "(n, t)",
        "arg_max(s, n).a", "struct_extract(s, 'A')",
        # where they may stand
        "CASE l[1] WHEN 'a' THEN l[2] WHEN 'b' THEN l[3] END", "l[1] IN ('a', 'b')", "first_value(t[1]) OVER (ORDER BY l[1])",
        "(SELECT l[n])",
    ],
)  # fmt: skip
def test_over_public_data_they_are_what_duckdb_has(
    guarded: Guard, con: duckdb.DuckDBPyConnection, expression: str
) -> None:
    shown = f"SELECT v, typeof(v) FROM (SELECT {expression} AS v FROM lists)"
    query = f"SELECT {expression} AS v FROM lists"
    ran = con.execute(f"SELECT v, typeof(v) FROM ({guarded.rewrite(query)})").fetchall()
    assert ran == con.execute(shown).fetchall()
    assert guarded.sql(query).num_rows == 1


ANSWERED = {
    # released numbers and groups, packed
    "SELECT {'Region': region, 'n': count(*)} AS r FROM people GROUP BY region": f"SELECT {{'Region': region, 'n': n}} FROM {BY_REGION}",
    "SELECT struct_pack(N := count(*)) AS s FROM people": f"SELECT {{'N': {COUNT}}} FROM people",
    "SELECT [count(*), count(*) FILTER (sex = 'f')] AS l FROM people": f"SELECT [{COUNT}, sdc_count(record_key, filter := sex = 'f')] FROM people",
    "SELECT MAP {region: count(*)} AS m FROM people GROUP BY region": f"SELECT MAP {{region: n}} FROM {BY_REGION}",
    "SELECT region, {'n': count(*)} AS s FROM people GROUP BY region HAVING {'n': count(*)}.n > 200": f"SELECT region, {{'n': n}} FROM {BY_REGION} WHERE n > 200",
    "SELECT region[1] AS r, count(*) AS n FROM people GROUP BY region ORDER BY [n, 1][1], region[2:]": f"SELECT region[1], n FROM {BY_REGION}",
    "SELECT region, max({'n': count(*)}) OVER () AS s FROM people GROUP BY region": f"SELECT region, {{'n': max(n) OVER ()}} FROM {BY_REGION}",
    # and unpacked again
    "SELECT s.n + 1 AS x, t.s.Region[1] AS y FROM (SELECT {'Region': region, 'n': count(*)} AS s FROM people GROUP BY region) t": f"SELECT n + 1, region[1] FROM {BY_REGION}",
    "WITH a AS (SELECT region, count(*) AS n FROM people GROUP BY region) SELECT list(n ORDER BY n, region)[1] AS x, list(n ORDER BY n)[2:] AS y, list({'region': region, 'n': n} ORDER BY n DESC, region)[1].region AS z FROM a": f"SELECT list(n ORDER BY n, region)[1], list(n ORDER BY n)[2:], list(region ORDER BY n DESC, region)[1] FROM {BY_REGION}",
    "SELECT map(list(region), list(n))['East'] AS x FROM (SELECT region, count(*) AS n FROM people GROUP BY region)": f"SELECT n FROM {BY_REGION} WHERE region = 'East'",
    "SELECT unnest(list(n ORDER BY n)) AS x, 1 AS y FROM (SELECT region, count(*) AS n FROM people GROUP BY region)": f"SELECT n, 1 FROM {BY_REGION}",
    "SELECT region, unnest([count(*), 0]) AS x FROM people GROUP BY region": f"SELECT region, unnest([n, 0]) FROM {BY_REGION}",
    # dimensions
    "SELECT region[1] AS r, count(*) FROM people GROUP BY 1": f"SELECT region[1] AS r, {COUNT} FROM people GROUP BY 1",
    "SELECT region[2:-2] AS r, sex, count(*) FROM people GROUP BY ROLLUP (region[2:-2], sex)": f"SELECT region[2:-2] AS r, sex, {COUNT} FROM people GROUP BY ROLLUP (region[2:-2], sex)",
    "SELECT count(*) FILTER (region[1] IN ('N', 'S')) FROM people WHERE region[-1] = 'h'": f"SELECT {COUNT} FROM people WHERE region IN ('North', 'South')",
    "SELECT CASE region[1] WHEN 'N' THEN 'a' WHEN 'S' THEN 'b' END AS c, count(*) FROM people GROUP BY c": f"SELECT CASE region[1] WHEN 'N' THEN 'a' WHEN 'S' THEN 'b' END AS c, {COUNT} FROM people GROUP BY c",
    "SELECT sex, count(DISTINCT region[1]) AS r, max(region[1:2]) AS m FROM people GROUP BY sex": "SELECT sex, count(DISTINCT region[1]), max(region[1:2]) FROM people GROUP BY sex",
    "SELECT age // 20 AS a, region[age // 20] AS r, count(*) FROM people WHERE sex = 'm' GROUP BY ALL": f"SELECT age // 20 AS a, region[age // 20] AS r, {COUNT} FROM people WHERE sex = 'm' GROUP BY ALL HAVING {COUNT} > 0",
    "SELECT address.city AS c, people.address['zip'] AS z, count(*) FROM people GROUP BY ALL": f"SELECT address.City AS c, address.zip AS z, {COUNT} FROM people GROUP BY ALL",
    "SELECT tags[1] AS t, count(*), sum(income) / count(*) > 0 FROM people WHERE address.zip < 3 GROUP BY tags[1]": f"SELECT tags[1], {COUNT}, true FROM people WHERE address.zip < 3 GROUP BY 1",
    "SELECT r[1] AS x, count(*) FROM (SELECT region[1:3] AS r FROM people) GROUP BY x": f"SELECT region[1] AS r, {COUNT} FROM people GROUP BY 1",
}  # fmt: skip


@pytest.mark.parametrize("query", ANSWERED)
def test_over_released_numbers_and_dimensions(guarded: Guard, con: duckdb.DuckDBPyConnection, query: str) -> None:
    answer = [tuple(row.values()) for row in guarded.sql(query).to_pylist()]
    wanted = con.sql(ANSWERED[query]).to_arrow_table().to_pylist()
    assert sorted(answer, key=repr) == sorted((tuple(row.values()) for row in wanted), key=repr)
    assert wanted


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT date[1] FROM people", r"SDC006.*called as a type is: write table\.column"),
        ("SELECT list[1] FROM people", r"SDC006.*called as a type is: write table\.column"),
        ('SELECT "list"[1] FROM people', "SDC006.*name list or array: take another name"),
        ("SELECT t[:n] FROM lists", r"SDC006.*write x\[1:n\]"),
        ("SELECT struct_pack(n, t) FROM lists", "SDC015.*a struct: give each field a name"),
        ("SELECT s.* FROM lists", "SDC015.*write its fields, s.n"),
        ("SELECT lists FROM lists", r'SDC015.*write "lists"\.\*'),
        ("SELECT x FROM lists x GROUP BY x", r'SDC015.*write "x"\.\*'),
        ("SELECT people FROM people", r'SDC040.*write "people"\.\*'),
        (
            "WITH t AS (SELECT region, count(*) AS n FROM people GROUP BY region) SELECT t FROM t",
            r'SDC040.*write "t"\.\*',
        ),
        ("SELECT t.upper() FROM lists", r"SDC010.*write upper\(x\) for x.upper\(\)"),
        ("SELECT list_transform(l, lambda x: x) FROM lists", "SDC010.*list_transform"),
        ("SELECT s.nothing FROM lists", "SDC090"),
    ],
)
def test_what_is_refused_says_what_to_write(guarded: Guard, query: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        guarded.sql(query)


def test_a_probe_for_the_columns_has_the_fields(guarded: Guard) -> None:
    query = "SELECT {'Region': region, 'a b': {'N': 1}} AS s FROM people GROUP BY region"
    assert guarded.sql(f"{query} LIMIT 0").schema == guarded.sql(query).schema
