"""Expressions of ibis are answered by the guard: its numbers, its refusals, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import pyarrow as pa
import pytest
from ibis import _
from ibis import selectors as s

import sdcduck
from sdcduck.errors import SDCError
from sdcduck.guard import Guard, Refused


def make_register(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE people AS SELECT
            id AS person_id, ['North', 'South', 'East'][1 + id * id % 11 // 5] AS region, ['f', 'm'][1 + id % 2] AS sex,
            (20 + id * 7 % 60)::INTEGER AS age, (1000 + id * 7919 % 4000)::INTEGER AS income,
            DATE '2000-01-01' + (id % 900)::INTEGER AS born
        FROM range(1, 1201) units(id)""")
    con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
    con.execute(
        "CREATE TABLE regions AS FROM (VALUES ('North', 'cold'), ('South', 'warm'), ('East', 'mild')) r(region, climate)"
    )
    con.execute(
        "CREATE TABLE made_up AS SELECT 'North' AS region, 'f' AS sex, 50 AS age, DATE '2000-01-01' AS born, 2500 AS income FROM range(3)"
    )
    con.execute("""FROM sdc_protect('people', unit := 'person_id', dimensions := ['region', 'sex', 'age', 'born'],
        measures := ['income'], preview := 'made_up')""").fetchall()
    con.execute("FROM sdc_declare_public('regions')").fetchall()
    con.execute("CREATE TABLE secrets AS SELECT 42 AS answer")


@pytest.fixture(scope="session")
def register(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("register") / "register.duckdb"
    with sdcduck.connect(path, secret="the secret of the tests") as con:
        make_register(con)
    return path


@pytest.fixture(scope="session")
def guard(register: Path) -> Iterator[Guard]:
    made = sdcduck.open_guard(register)
    yield made
    made.close()


@pytest.fixture(scope="module")
def con(guard: Guard) -> Any:
    return sdcduck.ibis.connect(guard)


def rows(answer: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in answer.to_pylist()), key=repr)


Build = Callable[[Any, Any], Any]
SAME: dict[str, tuple[Build, str]] = {
    "counts, sums and means": (
        lambda t, r: t.group_by("region").agg(n=t.count(), income=t.income.sum(), m=t.income.mean()),
        "SELECT region, count(*), sum(income), avg(income) FROM people GROUP BY region",
    ),
    "a deferred one": (
        lambda t, r: t.filter(_.age < 40, _.sex == "f").group_by("region").agg(n=_.count()),
        "SELECT region, count(*) FROM people WHERE age < 40 AND sex = 'f' GROUP BY region",
    ),
    "a single number": (lambda t, r: t.count().as_table(), "SELECT count(*) FROM people"),
    "bins": (
        lambda t, r: t.mutate(band=_.age // 10 * 10).group_by("band").agg(n=_.count(), s=_.income.sum()),
        "SELECT age // 10 * 10 AS band, count(*), sum(income) FROM people GROUP BY band",
    ),
    "buckets": (
        lambda t, r: t.group_by(b=_.age.bucket([0, 30, 60, 100])).agg(n=_.count()),
        "SELECT CASE WHEN age < 30 THEN 0 WHEN age < 60 THEN 1 ELSE 2 END AS b, count(*) FROM people GROUP BY b",
    ),
    "cases": (
        lambda t, r: t.group_by(old=ibis.cases((_.age > 60, "old"), else_="young"), sex=_.sex).agg(n=_.count()),
        "SELECT CASE WHEN age > 60 THEN 'old' ELSE 'young' END AS old, sex, count(*) FROM people GROUP BY 1, 2",
    ),
    "order and limit": (
        lambda t, r: t.group_by("age").agg(n=_.count()).order_by(ibis.desc("n"), "age").limit(5),
        "SELECT age, count(*) AS n FROM people GROUP BY age ORDER BY n DESC, age LIMIT 5",
    ),
    "the most frequent": (
        lambda t, r: t.region.topk(2),
        "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY n DESC LIMIT 2",
    ),
    "value counts": (lambda t, r: t.sex.value_counts(), "SELECT sex, count(*) FROM people GROUP BY sex"),
    "a join to a public table": (
        lambda t, r: t.join(r, "region").group_by("climate").agg(n=_.count(), m=_.income.mean()),
        "SELECT climate, count(*), avg(income) FROM people JOIN regions USING (region) GROUP BY climate",
    ),
    "a left join": (
        lambda t, r: t.left_join(r, "region").group_by("climate").agg(n=_.count()),
        "SELECT climate, count(*) FROM people LEFT JOIN regions USING (region) GROUP BY climate",
    ),
    "a semi join": (
        lambda t, r: t.semi_join(r.filter(_.climate != "cold"), "region").count().as_table(),
        "SELECT count(*) FROM people WHERE region IN (SELECT region FROM regions WHERE climate <> 'cold')",
    ),
    "answers joined": (
        lambda t, r: t.group_by("region").agg(n=_.count()).join(r, "region"),
        "SELECT * FROM (SELECT region, count(*) FROM people GROUP BY region) JOIN regions USING (region)",
    ),
    "having": (
        lambda t, r: t.group_by("region").having(_.count() > 300).agg(n=_.count()),
        "SELECT region, count(*) FROM people GROUP BY region HAVING count(*) > 300",
    ),
    "units": (
        lambda t, r: t.group_by("sex").agg(u=_.person_id.nunique(), regions=_.region.nunique()),
        "SELECT sex, count(DISTINCT person_id), count(DISTINCT region) FROM people GROUP BY sex",
    ),
    "filtered aggregates": (
        lambda t, r: t.group_by("region").agg(f=_.count(where=_.sex == "f"), s=_.income.sum(where=_.age < 30)),
        "SELECT region, count(*) FILTER (sex = 'f'), sum(income) FILTER (age < 30) FROM people GROUP BY region",
    ),
    "shares": (
        lambda t, r: t.group_by("region").agg(p=(_.sex == "f").mean(), k=(_.sex == "f").sum()),
        "SELECT region, avg((sex = 'f')::INTEGER), sum((sex = 'f')::INTEGER) FROM people GROUP BY region",
    ),
    "quantiles": (
        lambda t, r: t.group_by("sex").agg(q=_.income.quantile(0.9), m=_.income.median()),
        "SELECT sex, quantile_cont(income, 0.9), median(income) FROM people GROUP BY sex",
    ),
    "spread": (
        lambda t, r: t.group_by("sex").agg(s=_.income.std(), v=_.income.var()),
        "SELECT sex, stddev(income), variance(income) FROM people GROUP BY sex",
    ),
    "windows over answers": (
        lambda t, r: t.group_by("region").agg(n=_.count()).mutate(p=_.n / _.n.sum(), k=ibis.rank().over(order_by=_.n)),
        "SELECT region, n, n / sum(n) OVER (), rank() OVER (ORDER BY n) - 1 FROM "
        "(SELECT region, count(*) AS n FROM people GROUP BY region)",
    ),
    "a pivot": (
        lambda t, r: t.group_by("region", "sex").agg(n=_.count()).pivot_wider(names_from="sex", values_from="n", names=["f", "m"]),
        "SELECT region, any_value(n) FILTER (sex = 'f'), any_value(n) FILTER (sex = 'm') FROM "
        "(SELECT region, sex, count(*) AS n FROM people GROUP BY ALL) GROUP BY region",
    ),
    "dates": (
        lambda t, r: t.filter(_.born >= ibis.date("2001-01-01")).group_by(y=_.born.year(), m=_.born.month()).agg(n=_.count()),
        "SELECT year(born) AS y, month(born) AS m, count(*) FROM people WHERE born >= DATE '2001-01-01' GROUP BY y, m",
    ),
    "dates and intervals": (
        lambda t, r: t.filter(_.born + ibis.interval(days=30) > "2001-01-01").group_by(q=(_.born - ibis.interval(months=1)).quarter())
        .agg(n=_.count()),
        "SELECT quarter(born - INTERVAL 1 MONTH) AS q, count(*) FROM people WHERE born + INTERVAL 30 DAY > DATE '2001-01-01' GROUP BY q",
    ),
    "columns by selectors": (
        lambda t, r: t.group_by(s.cols("region", "sex")).agg(s.across(s.cols("income"), {"total": _.sum(), "mean": _.mean()})),
        "SELECT region, sex, sum(income), avg(income) FROM people GROUP BY ALL",
    ),
    "values by cases": (
        lambda t, r: t.group_by(who=_.sex.cases(("f", "women"), else_="men")).agg(n=_.count()),
        "SELECT CASE sex WHEN 'f' THEN 'women' ELSE 'men' END AS who, count(*) FROM people GROUP BY who",
    ),
    "running totals": (
        lambda t, r: t.group_by("age").agg(n=_.count()).mutate(total=_.n.cumsum(order_by=_.age), more=_.n - _.n.lag().over(order_by=_.age)),
        "SELECT age, n, sum(n) OVER (ORDER BY age), n - lag(n) OVER (ORDER BY age) FROM (SELECT age, count(*) AS n FROM people GROUP BY age)",
    ),
    "text": (
        lambda t, r: t.filter(_.region.contains("o")).group_by(a=_.region[:1], b=_.region.upper()).agg(n=_.count()),
        "SELECT left(region, 1) AS a, upper(region) AS b, count(*) FROM people WHERE region LIKE '%o%' GROUP BY a, b",
    ),
    "distinct": (
        lambda t, r: t.select("region", "sex").distinct(),
        "SELECT DISTINCT region, sex FROM people",
    ),
    "one answer inside another": (
        lambda t, r: t.group_by("region").agg(n=_.count()).mutate(p=_.n / t.count().as_scalar()),
        "SELECT region, n, n / (SELECT count(*) FROM people) FROM (SELECT region, count(*) AS n FROM people GROUP BY region)",
    ),
    "columns chosen, renamed, made": (
        lambda t, r: t.drop("person_id").rename(place="region").mutate(a=_.age + 1).mutate(b=_.a // 20).filter(_.b > 1)
        .group_by("place", "b").agg(s=_.income.sum()),
        "SELECT region AS place, (age + 1) // 20 AS b, sum(income) FROM people WHERE (age + 1) // 20 > 1 GROUP BY place, b",
    ),
    "a union": (
        lambda t, r: t.group_by("region").agg(n=_.count()).union(t.group_by(region=_.sex).agg(n=_.count())),
        "SELECT region, count(*) FROM people GROUP BY 1 UNION ALL SELECT sex, count(*) FROM people GROUP BY 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_an_expression_gives_the_numbers_of_the_guard(con: Any, guard: Guard, name: str) -> None:
    build, sql = SAME[name]
    expression = build(con.table("people"), con.table("regions"))
    answer = expression.to_pyarrow()
    assert rows(answer) == rows(guard.sql(sql))
    assert answer.num_rows > 0
    frame = expression.execute()
    assert list(frame.columns) == list(expression.columns)
    assert len(frame) == answer.num_rows


REFUSED: dict[str, tuple[Build, str]] = {
    "the records": (lambda t, r: t, "SDC040"),
    "one column": (lambda t, r: t.income, "SDC040"),
    "the largest": (lambda t, r: t.income.max(), "SDC050"),
    "a measure in a condition": (lambda t, r: t.filter(_.income > 4000).count(), "SDC041"),
    "a measure as a group": (lambda t, r: t.group_by("income").agg(n=_.count()), "SDC041"),
    "a list": (lambda t, r: t.region.collect(), "SDC050"),
    "a window over records": (lambda t, r: t.mutate(k=_.income.sum().over(group_by="region")).count(), "SDC045"),
    "a sample": (lambda t, r: t.sample(0.5).count(), "SDC045"),
    "a join that multiplies": (
        lambda t, r: t.join(ibis.memtable({"region": ["North", "North"], "k": [1, 2]}), "region").count(), "SDC034",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("way", ["execute", "to_pyarrow", "to_pyarrow_batches", "to_polars"])
def test_what_the_guard_refuses_is_refused_on_every_way(con: Any, name: str, way: str) -> None:
    build, code = REFUSED[name]
    with pytest.raises(Refused) as caught:
        getattr(build(con.table("people"), con.table("regions")), way)()
    assert caught.value.code == code


def test_tables_and_their_types(con: Any) -> None:
    assert con.list_tables() == ["people", "regions"]
    assert con.list_tables(like="reg") == ["regions"]
    assert sorted(con.tables) == ["people", "regions"]
    kinds = {name: str(kind) for name, kind in con.table("people").schema().items()}
    # Sums of a measure have noise, and are no whole numbers: the measure is not one, either.
    assert kinds == {
        "person_id": "int64", "region": "string", "sex": "string", "age": "int32", "income": "float64", "born": "date",
    }  # fmt: skip
    for hidden in ("secrets", "peple", "sdc.policies", "record_key"):
        with pytest.raises(Refused, match="SDC020"):
            con.table(hidden)
    with pytest.raises(sdcduck.SDCError, match="without databases"):
        con.list_tables(database="sdc")


def test_every_form_of_an_answer_has_the_same_numbers(con: Any, guard: Guard, tmp_path: Path) -> None:
    t = con.table("people")
    expression = t.group_by("age").agg(n=_.count(), s=_.income.sum() / 7).order_by("age")
    expected = guard.sql("SELECT age, count(*) AS n, sum(income) / 7 AS s FROM people GROUP BY age ORDER BY age")
    assert expression.to_pyarrow().equals(expected)
    assert any(value % 1 for value in expected["s"].to_pylist())
    frame = expression.to_pandas()
    assert {str(kind) for kind in frame.dtypes} == {"int32", "int64", "float64"}
    assert pa.Table.from_pandas(frame, preserve_index=False).cast(expected.schema).equals(expected)
    assert expression.to_polars().to_arrow().cast(expected.schema).equals(expected)
    batches = list(expression.to_pyarrow_batches(chunk_size=7))
    assert max(batch.num_rows for batch in batches) <= 7
    assert pa.Table.from_batches(batches).equals(expected)
    expression.to_parquet(tmp_path / "answer.parquet")
    assert pd.read_parquet(tmp_path / "answer.parquet").equals(frame)
    assert t.count().execute() == guard.sql("SELECT count(*) AS n FROM people")["n"][0].as_py()
    assert isinstance(expression.s.execute(), pd.Series)
    assert expression.n.to_polars().sum() == expected["n"].to_pandas().sum()
    assert t.income.sum().to_polars() == guard.sql("SELECT sum(income) AS s FROM people")["s"][0].as_py()


def test_the_sum_of_a_dimension_keeps_its_noise_too(con: Any, guard: Guard) -> None:
    expression = con.table("people").agg(s=_.age.sum())
    value = guard.sql("SELECT sum(age) AS s FROM people")["s"][0].as_py()
    assert expression.to_pyarrow()["s"][0].as_py() == value
    assert expression.execute()["s"][0] == value
    assert expression.to_polars()["s"][0] == value
    assert next(iter(expression.to_pyarrow_batches()))["s"][0].as_py() == value


def test_an_expression_says_what_its_numbers_are_worth(con: Any, guard: Guard) -> None:
    people = con.table("people")
    counted = people.group_by("region").aggregate(n=people.count())
    assert con.noise(counted).equals(guard.noise("SELECT region, count(*) AS n FROM people GROUP BY region"))
    with pytest.raises(SDCError, match="tables of your own"):
        con.noise(ibis.memtable({"x": [1]}))


def test_sql_and_expressions_go_together(con: Any, guard: Guard) -> None:
    counted = con.sql("SELECT region, count(*) AS n FROM people GROUP BY region").filter(_.n > 300)
    assert rows(counted.to_pyarrow()) == rows(
        guard.sql("SELECT region, count(*) FROM people GROUP BY 1 HAVING count(*) > 300")
    )
    records = con.sql("SELECT * FROM people WHERE age < 40").group_by("sex").agg(n=_.count())
    assert rows(records.to_pyarrow()) == rows(guard.sql("SELECT sex, count(*) FROM people WHERE age < 40 GROUP BY sex"))
    assert con.raw_sql("SELECT count(*) AS n FROM regions").to_pylist() == [{"n": 3}]
    with pytest.raises(Refused, match="SDC020"):
        con.sql("SELECT * FROM secrets")
    with pytest.raises(Refused, match="SDC021"):
        con.sql("SELECT * FROM read_csv('/etc/passwd')")


def test_parameters(con: Any, guard: Guard) -> None:
    age = ibis.param("int32")
    t = con.table("people")
    young = t.filter(t.age < age).count()
    for years in (30, 50):
        expected = guard.sql(f"SELECT count(*) AS n FROM people WHERE age < {years}")["n"][0].as_py()
        assert young.execute(params={age: years}) == expected


def test_a_table_of_the_analysts_own_is_joined_like_a_public_one(con: Any, guard: Guard) -> None:
    own = ibis.memtable(
        {"region": ["North", "South", "East", None], "half": ["a", "a", "b's", "c"], "k": [1.5, None, 2.0, 3.0]}
    )
    expression = con.table("people").join(own, "region").group_by("half", "k").agg(n=_.count())
    expected = guard.sql("""SELECT half, k, count(*) FROM people JOIN (VALUES ('North', 'a', 1.5), ('South', 'a', NULL),
        ('East', 'b''s', 2.0)) own(region, half, k) USING (region) GROUP BY half, k""")
    assert rows(expression.to_pyarrow()) == [(half, float(k) if k else None, n) for half, k, n in rows(expected)]
    large = ibis.memtable({"region": [str(number) for number in range(3000)]})
    with pytest.raises(Refused, match="SDC002"):
        con.table("people").semi_join(large, "region").count().execute()
    assert (
        con.table("people")
        .semi_join(ibis.memtable({"region": []}, schema={"region": "string"}), "region")
        .count()
        .execute()
        == 0
    )


def test_an_answer_is_kept_and_asked_no_second_time(register: Path, tmp_path: Path) -> None:
    log = tmp_path / "questions.jsonl"
    con = sdcduck.ibis.connect(register, user="ann", log=log)
    t = con.table("people")
    kept = t.group_by("age").agg(n=_.count(), s=_.income.sum()).cache()
    asked = len(log.read_text().splitlines())
    assert kept.count().execute() == 60
    assert kept.filter(_.age < 30).s.sum().execute() == pytest.approx(
        sum(kept.to_pandas().query("age < 30")["s"]), rel=1e-12
    )
    assert len(log.read_text().splitlines()) == asked
    both = kept.join(t.group_by("age").agg(m=_.income.mean()), "age")
    assert len(both.execute()) == 60
    assert '"user": "ann"' in log.read_text()
    con.disconnect()


WRITES: dict[str, Callable[[Any], Any]] = {
    "create_table": lambda con: con.create_table("mine", ibis.memtable({"a": [1]})),
    "create_view": lambda con: con.create_view("mine", con.table("regions")),
    "drop_table": lambda con: con.drop_table("people"),
    "drop_view": lambda con: con.drop_view("people"),
    "insert": lambda con: con.insert("regions", {"region": ["x"], "climate": ["y"]}),
    "upsert": lambda con: con.upsert("regions", {"region": ["x"], "climate": ["y"]}, on="region"),
    "truncate_table": lambda con: con.truncate_table("people"),
    "rename_table": lambda con: con.rename_table("people", "persons"),
    "read_csv": lambda con: con.read_csv("/etc/passwd"),
    "read_parquet": lambda con: con.read_parquet("people.parquet"),
    "read_json": lambda con: con.read_json("people.json"),
    "attach": lambda con: con.attach("other.duckdb"),
}


@pytest.mark.parametrize("method", WRITES)
def test_nothing_is_written_and_no_file_is_read(con: Any, method: str) -> None:
    with pytest.raises(Refused, match=rf"SDC004: not a query \({method}: .*(cache|memtable)\("):
        WRITES[method](con)


@pytest.mark.parametrize(
    "statement", ["DROP TABLE people", "CREATE TABLE t AS SELECT 1", "SET threads = 1", "INSTALL httpfs"]
)
def test_raw_sql_takes_queries_only(con: Any, statement: str) -> None:
    with pytest.raises(Refused, match="SDC00"):
        con.raw_sql(statement)


def test_functions_of_the_analysts_own_are_refused(con: Any) -> None:
    @ibis.udf.scalar.python
    def twice(x: int) -> int:
        return 2 * x

    @ibis.udf.scalar.builtin
    def getenv(name: str) -> str: ...

    t = con.table("people")
    for call in (twice(t.age), getenv("HOME")):
        with pytest.raises(Refused, match="SDC010"):
            t.group_by(k=call).agg(n=_.count()).execute()


def test_what_is_only_looked_at_says_why_it_is_not_shown(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ibis.options, "interactive", True)
    t = con.table("people")
    shown = " ".join(repr(t.filter(_.sex == "f", _.age < 30).select("income").distinct()).split())
    assert "SDC041: a measure outside of sum and avg (income). Measures are added up. Group by" in shown
    assert "r0.age < 30" in shown
    assert "North" in repr(t.group_by("region").agg(n=_.count()))


def test_a_preview_says_that_it_is_one(con: Any) -> None:
    with pytest.warns(UserWarning, match="made up"):
        assert len(con.table("people").limit(2).execute()) == 2


def test_a_file_is_free_again_after_it(register: Path, tmp_path: Path) -> None:
    file = tmp_path / "people.duckdb"
    shutil.copy(register, file)
    con = sdcduck.ibis.connect(str(file), seconds=60)
    assert con.table("people").count().execute() > 1000
    con.disconnect()
    with sdcduck.connect(file) as own:
        own.execute("DROP TABLE secrets")


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("nowhere.duckdb", {}, "no such database file"),
        ("mysql://host/db", {}, "begins with postgresql://"),
        ("postgresql:///db", {}, "address of a gateway is"),
        ("postgresql://host:54x/db", {}, "with a port between 1 and 65535"),
        ("postgresql://[::1/db", {}, "address of a gateway is"),
        ("postgresql://host/db", {"seconds": 3}, "seconds goes with a file"),
        ("file.duckdb", {"password": "x"}, "a file has none"),
        ("sdcduck://ann:x@127.0.0.1:1/db", {}, "gateway did not answer"),
    ],
)
def test_bad_input(source: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(sdcduck.SDCError, match=message):
        sdcduck.ibis.connect(source, **options)


def test_the_example_runs(register: Path) -> None:
    script = Path(__file__).resolve().parents[2] / "examples" / "ibis_guarded.py"
    for arguments in ([], [str(register)]):
        done = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.count("SDC04") == 2 - (arguments != [])  # this register has a preview
        assert "SDC050" in done.stdout


def test_without_ibis_the_message_says_what_to_install() -> None:
    code = "import sys; sys.modules['ibis'] = None; import sdcduck; sdcduck.ibis"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'sdcduck[ibis]'" in done.stderr
