"""SUMMARIZE, DESCRIBE and their kin: numbers of plain questions, and names that whoever asks may see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from table import METHODS, guarded

import sdcduck
from sdcduck.catalog.audit_log import AuditLog
from sdcduck.guard import Guard, Refused, guard

FIGURES = {
    "min": "min({0})", "max": "max({0})", "approx_unique": "count(DISTINCT {0})", "avg": "avg({0})",
    "std": "stddev({0})", "q25": "quantile_cont({0}, 0.25)", "q50": "median({0})", "q75": "quantile_cont({0}, 0.75)",
    "count": "count(*)",
}  # fmt: skip
ANSWERED = {
    "cell_key": {"age": set(FIGURES), "income": {"avg", "std", "q25", "q50", "q75", "count"}},
    "threshold": {"age": set(FIGURES), "income": {"avg", "std", "count"}},
    "rounding": {"age": set(FIGURES), "income": {"count"}},
    "suppression": {"age": {"min", "max", "approx_unique", "count"}, "income": {"count"}},
}


@pytest.fixture(scope="module", params=METHODS)
def asked(request: pytest.FixtureRequest) -> Iterator[tuple[str, Guard]]:
    with guarded(request.param) as one:
        yield request.param, one


@pytest.fixture(scope="module")
def exact() -> Iterator[Guard]:
    with guarded("threshold", exact=True) as one:
        yield one


def summary(guarded: Guard, of: str) -> dict[str, dict[str, object]]:
    return {row["column_name"]: row for row in guarded.sql(f"SUMMARIZE {of}").to_pylist()}


@pytest.mark.parametrize("of", ["people", "SELECT age, income FROM people WHERE sex = 'f'"])
def test_each_figure_is_the_answer_to_a_plain_question_or_there_is_none(asked: tuple[str, Guard], of: str) -> None:
    method, one = asked
    source = of if of == "people" else f"({of})"
    found = summary(one, of)
    for column in ("age", "income"):
        for figure, expression in FIGURES.items():
            try:
                plain = one.sql(f"SELECT CAST({expression.format(column)} AS VARCHAR) AS x FROM {source}")
                answer = plain.column(0)[0].as_py()
            except Refused:
                answer = None
            assert (answer is None) == (figure not in ANSWERED[method][column])
            told = found[column][figure]
            assert (None if told is None else str(told)) == answer, (column, figure)


def test_missing_values_are_the_difference_of_published_counts(asked: tuple[str, Guard]) -> None:
    method, one = asked
    told = summary(one, "people")["income"]["null_percentage"]
    if method == "suppression":
        assert told is None
        return
    ((n, known),) = [tuple(row.values()) for row in one.sql("SELECT count(*), count(income) FROM people").to_pylist()]
    assert float(told) == pytest.approx(100 * (n - known) / n, abs=0.005)  # type: ignore[arg-type]


def test_few_are_hidden_in_a_summary_too() -> None:
    with guarded("threshold") as one:
        few = "SELECT age, income FROM people WHERE region = 'North' AND sex = 'f' AND age = 70 AND month = DATE '2023-12-01'"
        assert (one.sql(f"SELECT count(*) AS n FROM ({few})").to_pylist()) == [{"n": None}]
        for row in summary(one, few).values():
            # No value appears, as none does in GROUP BY.
            assert [value for name, value in row.items() if not name.startswith("column_") and value != 0] == [None] * (
                9 if row["approx_unique"] == 0 else 10
            )


@pytest.mark.parametrize(
    "of", ["people", "stays", "regions", "SELECT region, count(*) AS n FROM people GROUP BY region"]
)
def test_what_is_told_with_nothing_to_hide_is_what_duckdb_tells(exact: Guard, of: str) -> None:
    found = summary(exact, of)
    plain = exact._con.cursor().sql(f"SUMMARIZE {of}").to_arrow_table()
    visible = [row for row in plain.to_pylist() if row["column_name"] != "record_key"]
    assert list(found) == [row["column_name"] for row in visible]
    for row in visible:
        mine = found[row["column_name"]]
        assert list(mine) == list(row)
        for name, value in row.items():
            if mine[name] is None or name in ("approx_unique", "avg", "std"):
                continue
            if name in ("q25", "q50", "q75") and of in ("people", "stays"):
                # DuckDB's are approximate, those of records are not.
                asked = f"SELECT quantile_cont({row['column_name']}, {int(name[1:]) / 100}) FROM {of}"
                assert (float(mine[name]),) == exact._con.cursor().execute(asked).fetchone()
                continue
            assert mine[name] == value, (of, row["column_name"], name)
        for name in ("avg", "std"):
            if mine[name] is None:
                continue
            if name == "avg" and row["column_type"] in ("DATE", "TIMESTAMP"):
                assert mine[name] == row[name]
            else:
                assert float(mine[name]) == pytest.approx(float(row[name]))  # type: ignore[arg-type]


def test_a_summary_can_be_asked_of(exact: Guard) -> None:
    assert exact.sql("SELECT column_name, count FROM (SUMMARIZE stays) WHERE avg IS NOT NULL").to_pylist() == [
        {"column_name": "month", "count": 2400}, {"column_name": "days", "count": 2400},
    ]  # fmt: skip


@pytest.mark.parametrize("query", [
    "DESCRIBE {0}", "SELECT column_name, column_type FROM (DESCRIBE {0}) ORDER BY ALL",
    "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = '{0}' ORDER BY column_index",
    "SELECT column_name, data_type FROM information_schema.columns c WHERE c.table_name = '{0}' ORDER BY ordinal_position",
    "PRAGMA table_info('{0}')", "SELECT cid, name, type FROM pragma_table_info('{0}') ORDER BY cid",
])  # fmt: skip
@pytest.mark.parametrize("table", ["people", "regions"])
def test_names_and_types_are_those_of_duckdb(exact: Guard, query: str, table: str) -> None:
    def named(rows: list[tuple[object, ...]]) -> list[list[str]]:
        texts = [[value for value in row if isinstance(value, str)][:2] for row in rows]
        return sorted(text for text in texts if text[0] != "record_key")

    found = [tuple(row.values()) for row in exact.sql(query.format(table)).to_pylist()]
    assert named(found) == named(exact._con.cursor().execute(query.format(table)).fetchall())


@pytest.mark.parametrize("query", [
    "SELECT region, count(*) AS n, avg(income) AS m FROM people GROUP BY ALL", "SELECT * FROM regions", "FROM people",
    "SELECT region, income, age + 1 AS older FROM people",
])  # fmt: skip
def test_the_columns_of_a_query_are_those_of_its_answer(exact: Guard, query: str) -> None:
    found = exact.sql(f"DESCRIBE {query}").to_pylist()
    described = [(row["column_name"], row["column_type"]) for row in found]
    try:
        assert described == exact.columns(query)
    except Refused:
        plain = exact._con.cursor().execute(f"DESCRIBE {query}").fetchall()
        assert described == [row[:2] for row in plain if row[0] != "record_key"]


def test_a_list_is_written_down(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with guarded("cell_key") as one:
        logged = guard(one._con, log=AuditLog(path))
        logged.sql("SUMMARIZE stays", user="ann")
        with pytest.raises(Refused, match="unknown table"):
            logged.sql("DESCRIBE nobody", user="ann")
        logged.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    told = [(line["query"], line["verdict"]) for line in lines if "query" in line]
    assert told == [("SUMMARIZE stays", "answered"), ("DESCRIBE nobody", "SDC020")]


def of_twin(columns: str, hidden: str, rows: int, role: str = "") -> Guard:
    """A guard over people with another hidden column, another hidden table, and as many people."""
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute(
        f"CREATE TABLE people AS SELECT i AS person_id, ['a', 'b'][1 + i % 2] AS region, i AS {columns}, "
        f"(['x', 'y', '{hidden}'][1 + i % 3])::ENUM ('x', 'y', '{hidden}') AS kind FROM range({rows}) t(i)"
    )
    con.execute(f"CREATE TABLE {hidden} AS SELECT 1 AS regoin, 2 AS n")
    con.execute("CREATE TABLE own AS SELECT 1 AS one")
    con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
    con.execute("FROM sdc_protect('people', unit := 'person_id', dimensions := ['region', 'kind'])").fetchall()
    con.execute("FROM sdc_declare_public('own', role := 'other')").fetchall()
    made = guard(con, role=role)
    made.twin = con  # type: ignore[attr-defined]
    return made


TWINS = (
    "DESCRIBE people", "SHOW people", "SHOW TABLES", "SHOW ALL TABLES", "PRAGMA table_info('people')",
    "FROM duckdb_columns()", "FROM duckdb_tables()", "FROM information_schema.columns", "FROM information_schema.tables",
    "DESCRIBE SELECT kind, count(*) AS n FROM people GROUP BY kind", "DESCRIBE peple", "DESCRIBE salaries",
    "DESCRIBE SELECT salary FROM people", "SELECT salry, count(*) FROM people GROUP BY 1", "SELECT regoin FROM people",
    "SELECT count(*) FROM salaris", "SUMMARIZE SELECT salary FROM people", "SELECT * FROM own", "DESCRIBE own",
    "SELECT salary + 1, count(*) FROM people GROUP BY ALL HAVING nn > 1",
)  # fmt: skip


def test_lists_and_errors_are_the_same_whatever_is_hidden() -> None:
    def told(one: Guard, query: str) -> str:
        try:
            return str(one.sql(query).to_pylist())
        except Refused as refused:
            return str(refused)

    mine, other = of_twin("salary", "salaries", 300), of_twin("x", "q", 411)
    for query in TWINS:
        assert told(mine, query) == told(other, query), query


def test_a_role_sees_its_own_tables() -> None:
    mine, theirs = of_twin("salary", "salaries", 300), of_twin("salary", "salaries", 300, role="other")
    assert mine.sql("SHOW TABLES").to_pylist() == [{"name": "people"}]
    assert theirs.sql("SHOW TABLES").to_pylist() == [{"name": "own"}, {"name": "people"}]


def test_what_is_no_list_is_read_as_ever(exact: Guard) -> None:
    text = "SELECT '(DESCRIBE people)' AS a, 'FROM duckdb_columns()' AS b, count(*) AS n FROM people"
    ((a, b, n),) = [tuple(row.values()) for row in exact.sql(text).to_pylist()]
    assert (a, b, n) == ("(DESCRIBE people)", "FROM duckdb_columns()", 1200)
    with pytest.raises(Refused, match="SDC003"):
        exact.sql("DESCRIBE people; SELECT 1")
    with pytest.raises(Refused, match=r"SDC005.*parameters"):
        exact.sql("SUMMARIZE SELECT * FROM people WHERE age > ?", [3])
    with pytest.raises(Refused, match=r"SDC002.*name some"):
        exact.sql("SUMMARIZE SELECT " + ", ".join(f"age + {i} AS a{i}" for i in range(61)) + " FROM people")


def test_tables_with_odd_names_are_listed() -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        names = ["it's", 'a "b"', "two words", "ORDER", "$1", "grün"]
        for name in names:
            quoted = '"' + name.replace('"', '""') + '"'
            con.execute(f"CREATE TABLE {quoted} AS SELECT 1 AS {quoted}")
            con.execute("FROM sdc_declare_public(?)", [quoted]).fetchall()
        one = guard(con)
        assert [row["name"] for row in one.sql("SHOW TABLES").to_pylist()] == sorted(names)
        found = one.sql("SELECT table_name AS t, column_name AS c FROM duckdb_columns()").to_pylist()
        assert {(row["t"], row["c"]) for row in found} == {(name, name) for name in names}
        for name in names:
            quoted = '"' + name.replace('"', '""') + '"'
            assert one.sql(f"DESCRIBE {quoted}").to_pylist()[0]["column_name"] == name
            assert one.sql(f"SUMMARIZE {quoted}").to_pylist()[0]["column_name"] == name
