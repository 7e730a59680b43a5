"""`sdcduck compile`: one text of SQL for an engine, and its numbers are those of the guard."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import sdcduck
from sdcduck.catalog.engines import engine_of
from sdcduck.cli.commands import app
from sdcduck.errors import SDCError
from sdcduck.guard import Guard, Refused

sys.path.insert(0, str(Path(__file__).parent))
from clickhouse_session import clickhouse
from postgres_server import postgres

_PEOPLE = """CREATE TABLE people AS SELECT i AS id, ['n', 's', 'e', NULL, 'N ', ''][1 + i % 6] AS region, ['f', 'm'][1 + i * 37 % 101 % 2] AS sex,
    i % 7 AS age, CASE WHEN i % 11 > 0 THEN sqrt(i) END AS income, i % 5 = 0 AS foreigner, (i % 4)::DOUBLE AS weight, DATE '2020-01-01' + (i % 3)::INTEGER AS day,
    CASE WHEN i % 13 > 0 THEN (i * 37 % 1001)::DECIMAL(9, 2) / 100 END::DECIMAL(12, 2) AS fee, CASE WHEN i % 7 > 0 THEN (i % 23)::INTEGER END AS hours FROM range(300) r(i)"""
_PUBLIC = {
    "regions": "FROM (VALUES ('n', 'cold', true), ('s', 'it''s warm', false), (NULL, 'none', true), ('', '', NULL)) r(region, climate, big)",
    "places": "SELECT r AS region, a AS age, CASE WHEN a < 5 THEN c END AS climate, a % 2 = 0 AS big "
    "FROM (VALUES ('n', 'cold'), ('s', 'it''s warm'), (NULL, 'none'), ('', '')) v(r, c), range(6) t(a)",
    "days": "SELECT DATE '2020-01-01' + i::INTEGER AS day, 'x' || i AS name FROM range(3) r(i)",
    "odd": "SELECT 'f' AS sex, 'a\\b' AS name",
}
_METHODS = {"cell_key": "", "threshold": ", min_units := 4", "rounding": ", base := 5"}
_ANSWERED = (
    "SELECT count(*) AS n FROM people",
    "SELECT region, count(*) AS n FROM people GROUP BY region",
    "SELECT region, sex, age, count(*) AS n, grouping(region) AS g FROM people GROUP BY CUBE (region, sex, age)",
    "SELECT sex, count(income) AS n, count(*) FILTER (WHERE age IN (1, 2)) AS young FROM people WHERE age BETWEEN 1 AND 5 GROUP BY sex",
    "SELECT region, sex, count(*) AS n FROM people WHERE sex <> 'f' OR age < 3 GROUP BY GROUPING SETS ((region), (sex), ()) HAVING count(*) > 6",
    "SELECT day, count(*) AS n FROM people WHERE region IN ('n', '') AND income IS NOT NULL GROUP BY ROLLUP (day)",
    "SELECT age, count(*) AS n FROM people WHERE age > 100 GROUP BY age",
    "SELECT age, count(*) AS n FROM people WHERE age > -3 AND age NOT IN (-1, 2) GROUP BY age",
    "SELECT r.climate, r.big, count(*) AS n FROM people p JOIN regions r ON p.region = r.region GROUP BY CUBE (r.climate, r.big)",
    "SELECT r.climate, p.sex, count(*) AS n, grouping(r.climate) AS g FROM people p LEFT JOIN places r ON p.region = r.region AND p.age = r.age "
    "WHERE r.big OR p.sex = 'f' GROUP BY ROLLUP (r.climate, p.sex)",
    "SELECT count(*) AS n, count(*) FILTER (WHERE r.climate = 'cold') AS c FROM people JOIN places r USING (age, region)",
    "SELECT sex, count(*) AS n FROM people WHERE foreigner OR NOT (foreigner AND age = 3) GROUP BY sex",
)
_REFUSED = (
    "SELECT upper(region) AS r, count(*) AS n FROM people GROUP BY upper(region)",
    "SELECT count(*) AS n FROM people WHERE region > 'a'",
    "SELECT count(*) AS n FROM people WHERE (age / 3)::INTEGER = 1",
    "SELECT count(*) AS n FROM people WHERE age > 1.5",
    "SELECT count(*) AS n FROM people WHERE day > DATE '2020-01-02'",
    "SELECT count(*) AS n FROM people WHERE region = 'a\\b'",
    "SELECT count(*) AS n FROM people WHERE id IN (SELECT id FROM people WHERE age > 2)",
    "SELECT count(*) AS n FROM people WHERE region LIKE 'n%'",
    "SELECT count(*) + 1 AS n FROM people",
    "SELECT count(*) AS n FROM people WHERE age",
    "SELECT count(*) AS n FROM people WHERE NOT (age OR sex = 'f')",
    "SELECT weight, count(*) AS n FROM people GROUP BY weight",
    "SELECT 7 AS n",
    "SELECT d.name, count(*) AS n FROM people p JOIN days d ON p.day = d.day GROUP BY d.name",
    "SELECT r.climate, count(*) AS n FROM people p JOIN places r ON p.age BETWEEN r.age AND r.age AND p.region = r.region GROUP BY r.climate",
    "SELECT o.name, count(*) AS n FROM people p JOIN odd o ON p.sex = o.sex GROUP BY o.name",
    "SELECT count(*) AS n FROM people WHERE age > -1.5",
    "SELECT count(*) AS n FROM people WHERE age = -age",
    "SELECT max(region) AS r FROM people",
    "SELECT max(age) AS a FROM people",
    "SELECT sex, max(region) AS r FROM people GROUP BY sex",
)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of these tests") as made:
        made.execute(_PEOPLE)
        made.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        made.execute("CREATE TABLE kept AS FROM people")
        for name, rows in _PUBLIC.items():
            made.execute(f"CREATE TABLE {name} AS {rows}")
            made.execute(f"FROM sdc_declare_public('{name}')").fetchall()
        yield made


@pytest.fixture(params=_METHODS)
def guard(request: pytest.FixtureRequest, con: duckdb.DuckDBPyConnection) -> Guard:
    con.execute(
        "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'sex', 'age', 'foreigner', 'day', 'weight'], measures := ['income', 'fee', 'hours'], "
        f"method := '{request.param}'{_METHODS[request.param]})"
    ).fetchall()
    return sdcduck.open_guard(con)


def _engine(kind: str, con: duckdb.DuckDBPyConnection) -> Any:
    rows = con.sql("FROM people").to_arrow_table()
    if kind == "postgres":
        return postgres().fill({"people": rows})
    if kind == "clickhouse":
        return clickhouse({"people": rows})
    if kind == "datafusion":
        datafusion = pytest.importorskip("datafusion", reason="DataFusion is not installed")
        session = datafusion.SessionContext()
        session.register_record_batches("people", [rows.to_batches(max_chunksize=50)])
        return session
    plain = duckdb.connect()
    plain.register("given", rows)
    plain.execute("CREATE TABLE people AS FROM given")
    return plain


def _asked(kind: str, con: duckdb.DuckDBPyConnection) -> Callable[[str], pa.Table]:
    """Who answers a text as it stands: what sdcduck asks of ClickHouse has settings of its own."""
    engine = _engine(kind, con)
    return (lambda text: engine.query(text, "ArrowTable")) if kind == "clickhouse" else engine_of(engine).rows


def _multiset(rows: Any, meant: Any) -> list[str]:
    """The rows in no order: numbers by their value, for engines count in types of their own; floating-point ones to the bit."""

    def plain(value: Any, kind: pa.DataType) -> object:
        is_number = pa.types.is_integer(kind) or pa.types.is_decimal(kind)
        return Decimal(str(value)).normalize() if is_number and value is not None else value

    columns = [
        [plain(value, kind) for value in column.to_pylist()]
        for column, kind in zip(rows.columns, meant.schema.types, strict=True)
    ]
    return sorted(map(repr, zip(*columns, strict=True)))


@pytest.mark.parametrize("kind", ["duckdb", "datafusion", "postgres", "clickhouse"])
def test_the_text_gives_the_numbers_of_the_guard(kind: str, guard: Guard, con: duckdb.DuckDBPyConnection) -> None:
    rows = _asked(kind, con)
    for question in _ANSWERED:
        found, meant = rows(guard.compiled(question, kind)), guard.sql(question)
        assert found.column_names == meant.column_names
        assert _multiset(found, meant) == _multiset(meant, meant), question


@pytest.mark.parametrize("kind", ["duckdb", "datafusion", "postgres", "clickhouse"])
@pytest.mark.parametrize("guard", ["threshold"], indirect=True)
def test_sums_and_means_under_a_threshold(kind: str, guard: Guard, con: duckdb.DuckDBPyConnection) -> None:
    """A sum of decimals was one of whole numbers, rounded."""
    rows = _asked(kind, con)
    for question in (
        "SELECT region, sum(fee) AS f, sum(hours) AS h, avg(hours) AS a FROM people GROUP BY CUBE (region)",
        "SELECT sex, sum(fee) FILTER (WHERE age > 2) AS f, avg(hours) AS a, count(*) AS n FROM people WHERE age > 1 GROUP BY sex",
    ):
        found, meant = rows(guard.compiled(question, kind)), guard.sql(question)
        assert any("." in str(value) for value in meant.column("f").to_pylist())
        assert _multiset(found, meant) == _multiset(meant, meant), question
    for question in (
        "SELECT avg(fee) AS f FROM people", "SELECT sum(income) AS i FROM people", "SELECT sum(hours * 2) AS h FROM people",
        "SELECT count(*) / 2 AS h FROM people", "SELECT sum(hours) / sum(fee) AS h FROM people",
    ):  # fmt: skip
        with pytest.raises(Refused, match="SDC061"):
            guard.compiled(question, kind)


def test_what_engines_may_answer_in_other_ways_is_refused(guard: Guard) -> None:
    for question in _REFUSED:
        with pytest.raises(Refused, match=r"SDC0") as refused:
            guard.compiled(question, "postgres")
        assert refused.value.code == "SDC061", question


@pytest.mark.parametrize("guard", ["cell_key"], indirect=True)
def test_sums_under_cell_keys_need_a_secret_and_say_what_to_do_instead(guard: Guard) -> None:
    """The two factors that spread their keys are made of a secret, and would stand in the text."""
    [(secret,)] = guard._con.execute("SELECT value FROM sdc.settings WHERE name = 'noise_secret'").fetchall()
    for number in ("sum(income)", "avg(income)"):
        with pytest.raises(Refused, match="secret of the policy") as refused:
            guard.compiled(f"SELECT region, {number} AS s FROM people GROUP BY region", "postgres")
        assert "records=.." in str(refused.value)
        assert secret not in str(refused.value)


@pytest.mark.parametrize("guard", ["cell_key"], indirect=True)
def test_sums_and_other_words_are_refused(guard: Guard) -> None:
    for question in ("SELECT sum(income) AS i FROM people", "SELECT median(income) AS i FROM people"):
        with pytest.raises(Refused, match="SDC061"):
            guard.compiled(question, "postgres")
    with pytest.raises(SDCError, match="unknown dialect 'oracle'"):
        guard.compiled(_ANSWERED[0], "oracle")


@pytest.mark.parametrize("guard", ["cell_key"], indirect=True)
def test_a_record_without_a_key_has_no_number(guard: Guard, con: duckdb.DuckDBPyConnection) -> None:
    engine = _engine("duckdb", con)
    text = guard.compiled("SELECT region, count(*) AS n FROM people GROUP BY region", "duckdb")
    before = engine.execute(text).fetchall()
    engine.execute("UPDATE people SET record_key = NULL WHERE id = 0")  # of region n
    after = engine.execute(text).fetchall()
    assert {row[0] for row in before} - {row[0] for row in after} == {"n"}


@pytest.mark.parametrize("kind", ["duckdb", "datafusion", "postgres", "clickhouse"])
@pytest.mark.parametrize("guard", ["threshold"], indirect=True)
def test_units_with_several_records_have_no_answer(kind: str, guard: Guard, con: duckdb.DuckDBPyConnection) -> None:
    """Records are counted, so that five of one person would pass a threshold of four: no row, or one of no groups."""
    texts = [guard.compiled(question, kind) for question in _ANSWERED[:3]]
    rows = _asked(kind, con)
    assert all(rows(text).num_rows for text in texts)
    con.execute("INSERT INTO people FROM people LIMIT 1")
    try:
        again = _asked(kind, con)
        assert [again(text).num_rows for text in texts] == [0, 0, 0]
    finally:
        con.execute("DELETE FROM people")
        con.execute("INSERT INTO people SELECT * FROM kept")


@pytest.mark.parametrize("guard", ["cell_key"], indirect=True)
def test_texts_for_what_is_untried(guard: Guard) -> None:
    question = "SELECT region, count(*) AS n FROM people GROUP BY region"
    assert '"region"' in guard.compiled(question, "trino")
    assert "`region`" in guard.compiled(question, "spark")


def test_the_command(tmp_path: Path) -> None:
    file, plain = tmp_path / "policies.duckdb", duckdb.connect()
    plain.execute(_PEOPLE)
    with sdcduck.connect(file, secret="the secret of these tests", records=plain) as con:
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['region'])").fetchall()
    question = "SELECT region, count(*) AS n FROM people GROUP BY region"
    written = CliRunner().invoke(app, ["compile", str(file), question, "--dialect", "duckdb"])
    assert written.exit_code == 0, written.output
    guard = sdcduck.open_guard(file, records=plain)
    assert sorted(plain.execute(written.stdout).fetchall(), key=repr) == sorted(
        (tuple(row.values()) for row in guard.sql(question).to_pylist()), key=repr
    )
    guard.close()
    assert (
        CliRunner().invoke(app, ["compile", str(file), "-", "--dialect", "duckdb"], input=question).stdout
        == written.stdout
    )
    untried = CliRunner().invoke(app, ["compile", str(file), question, "--dialect", "trino"])
    assert "no trino has been asked" in untried.stderr
    for arguments, problem in (
        ([str(file), question, "--dialect", "oracle"], "unknown dialect"),
        ([str(file), "SELECT avg(region) FROM people"], "SDC0"),
        ([str(tmp_path / "none.duckdb"), question], "there is no file"),
    ):
        failed = CliRunner().invoke(app, ["compile", *arguments])
        assert failed.exit_code == 1
        assert problem in failed.stderr
        assert failed.stderr.count("\n") == 1
