"""The `sdc_*` functions as ibis functions on an ordinary connection: the numbers of SQL, and all its arguments."""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import ibis
import ibis_functions
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from ibis import _
from ibis.backends.sql.datatypes import DuckDBType

import sdcduck
from sdcduck.functions.reference import SQLFunction
from sdcduck.ibis import functions as f


@pytest.fixture(scope="module")
def con() -> Iterator[Any]:
    own = sdcduck.connect(secret="the secret of the tests")
    own.execute("""CREATE TABLE people AS SELECT range % 3 AS region, range % 50 AS id,
        (range % 50 * 7919 * 6151 % 100000000)::INTEGER AS record_key, range AS y, 1 + range % 5 AS w, range * 2305843 AS stencil,
        DATE '2020-01-01' + range::INTEGER AS seen FROM range(200)""")
    yield sdcduck.ibis.from_connection(own)
    own.close()


def test_the_functions_are_those_that_the_comments_declare() -> None:
    assert ibis_functions.FILE.read_text(encoding="utf-8") == ibis_functions.written(), "run `make examples`"


@pytest.mark.parametrize("function", ibis_functions.expressions(), ids=lambda function: function.name)
def test_arguments_defaults_and_results_are_those_of_sql(function: SQLFunction) -> None:
    parameters = inspect.signature(getattr(f, function.name)).parameters
    assert ["filter" if name == "where" else name for name in parameters] == [name for name, _ in function.arguments]
    for name, parameter in parameters.items():
        shown = f" {'filter' if name == 'where' else name} := "
        if parameter.default is inspect.Parameter.empty:
            assert shown not in function.signature
        else:
            value = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
            text = "NULL" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
            assert shown + text in function.signature


def test_help_has_what_the_comments_say_of_arguments() -> None:
    """By the names that ibis has for them."""
    told = str(f.sdc_count.__doc__)
    assert "record_key: keys of the records" in told
    assert "where: " in told
    assert "filter" not in told


Call = Callable[[Any], Any]
CALLS: dict[str, tuple[Call, str]] = {
    "count": (lambda t: f.sdc_count(t.record_key), "sdc_count(record_key)"),
    "count where": (lambda t: f.sdc_count(t.record_key, where=t.y > 90), "sdc_count(record_key, filter := y > 90)"),
    "units": (lambda t: f.sdc_count_units(t.id, t.record_key), "sdc_count_units(id, record_key)"),
    "key": (lambda t: f.sdc_cell_key(t.record_key), "sdc_cell_key(record_key)"),
    "weights": (lambda t: f.sdc_weighted_count(t.w, t.record_key), "sdc_weighted_count(w, record_key)"),
    "sum": (lambda t: f.sdc_sum(t.y, t.record_key), "sdc_sum(y, record_key)"),
    "sum where": (lambda t: f.sdc_sum(t.y, t.record_key, where=t.y > 90), "sdc_sum(y, record_key, filter := y > 90)"),
    "sum of two": (lambda t: f.sdc_sum(t.y, t.record_key, epsilon=[1, 0.5]), "sdc_sum(y, record_key, epsilon := [1, 0.5])"),
    "sensitive": (
        lambda t: f.sdc_sum(t.y, t.record_key, mu_c=2, sensitive=t.count() < 70),
        "sdc_sum(y, record_key, mu_c := 2, sensitive := count(*) < 70)",
    ),
    "flexible": (
        lambda t: f.sdc_sum(t.y, t.record_key, p_small=0.2, fp=50, small_cells="default_magnitude"),
        "sdc_sum(y, record_key, p_small := 0.2, fp := 50, small_cells := 'default_magnitude')",
    ),
    "weighted": (lambda t: f.sdc_weighted_sum(t.y, t.w, t.record_key), "sdc_weighted_sum(y, w, record_key)"),
    "mean": (lambda t: f.sdc_mean(t.y, t.record_key), "sdc_mean(y, record_key)"),
    "mean where": (lambda t: f.sdc_mean(t.y, t.record_key, where=t.w < 4), "sdc_mean(y, record_key, filter := w < 4)"),
    "mean sum": (lambda t: f.sdc_mean_sum(t.y, t.record_key, fp=20, p_small=0.3), "sdc_mean_sum(y, record_key, fp := 20, p_small := 0.3)"),
    "variance": (lambda t: f.sdc_variance(t.y, t.record_key), "sdc_variance(y, record_key)"),
    "quantile": (lambda t: f.sdc_quantile(t.y, t.record_key, 0.5, significant=3), "sdc_quantile(y, record_key, 0.5, significant := 3)"),
    "open": (lambda t: f.sdc_is_open(t.stencil), "sdc_is_open(stencil)"),
    "open count": (lambda t: f.sdc_open_count(t.w, t.stencil, where=t.y < 0), "sdc_open_count(w, stencil, filter := y < 0)"),
    "open sum": (lambda t: f.sdc_open_sum(t.y, t.stencil), "sdc_open_sum(y, stencil)"),
    "deferred": (lambda t: f.sdc_sum(_.y, _.record_key, where=_.w > 2), "sdc_sum(y, record_key, filter := w > 2)"),
    "combined": (lambda t: f.sdc_combine(t.y, t.w), "sdc_combine(y, w)"),
    "combined of Poisson": (lambda t: f.sdc_combine(_.y, _.w, sigma=0, confidence=0.9), "sdc_combine(y, w, sigma := 0, confidence := 0.9)"),
}  # fmt: skip
OF_RECORDS: dict[str, tuple[Call, str]] = {
    "years of birth": (lambda t: f.sdc_yob_range(t.seen, t.w, t.w + 9), "sdc_yob_range(seen, w, w + 9)"),
    "one of them": (lambda t: f.sdc_yob_range(_.seen, 90, None).high, "sdc_yob_range(seen, 90, NULL).high"),
    "on a day": (lambda t: f.sdc_yob_range(datetime.date(2021, 3, 1), t.w, 9), "sdc_yob_range(DATE '2021-03-01', w, 9)"),
    "a draw": (
        lambda t: f.sdc_draw_count(t.w, 0.5, t.id, 1, 7, model="pig"), "sdc_draw_count(w, 0.5, id, 1, 7, model := 'pig')",
    ),
    "risk of a class": (lambda t: f.sdc_class_risk(t.w, t.y + 10), "sdc_class_risk(w, y + 10)"),
    "overlap": (
        lambda t: f.sdc_interval_overlap(0, 9, t.w, t.w + 2, raw=True), "sdc_interval_overlap(0, 9, w, w + 2, raw := true)",
    ),
    "unreliable": (lambda t: f.sdc_unreliable(t.w / 10, 0.1, t.y), "sdc_unreliable(w / 10, 0.1, y)"),
    "key of a unit": (lambda t: f.sdc_record_key(t.id, digits=6), "sdc_record_key(id, digits := 6)"),
}  # fmt: skip


@pytest.mark.parametrize("name", [*CALLS, *OF_RECORDS])
def test_types_are_those_of_sql(con: Any, name: str) -> None:
    call, sql = {**CALLS, **OF_RECORDS}[name]
    declared = con.table("people").mutate(x=call(con.table("people"))).schema()["x"]
    given = DuckDBType.from_string(con.con.execute(f"DESCRIBE SELECT {sql} AS x FROM people").fetchall()[0][1])
    # The exact sum of whole numbers has as many bits as DuckDB gives it; the function is declared as DOUBLE.
    assert declared == given or (name == "open sum" and declared.is_floating() and given.is_numeric())


@pytest.mark.parametrize("name", OF_RECORDS)
def test_scalar_functions_give_the_values_of_sql(con: Any, name: str) -> None:
    call, sql = OF_RECORDS[name]
    t = con.table("people")
    expected = [row[0] for row in con.con.execute(f"SELECT {sql} FROM people ORDER BY y").fetchall()]
    assert t.order_by("y").select(x=call(t)).to_pyarrow()["x"].to_pylist() == expected


def test_conditions_of_a_priori_files(con: Any, tmp_path: Path) -> None:
    (tmp_path / "people.hst").write_text('"0",s\n"1",u\n')
    for name in ("sdc_apriori_primary", "sdc_apriori_forced"):
        made = con.execute(getattr(f, name)(str(tmp_path / "people.hst"), ["region"]))
        assert made == con.con.execute(f"SELECT {name}(?, ['region'])", [str(tmp_path / "people.hst")]).fetchall()[0][0]


TABLES = {
    "risk": "FROM sdc_k_anonymity('people', keys := ['region', 'w'])",
    "suppression": "FROM sdc_suppress('SELECT region, w, count(*) AS n FROM people GROUP BY CUBE (region, w)', max_count := 12)",
    "a p-table": "FROM sdc_ptable(D := 3, V := 1)",
    "synthesis": "SELECT * FROM sdc_synth_table('people', \"by\" := ['region'], model := 'poisson', seed := 1)",
}


@pytest.mark.parametrize("name", TABLES)
def test_table_functions_are_asked_for_in_sql_and_go_on_as_expressions(con: Any, name: str) -> None:
    table = con.sql(TABLES[name])
    ordered = con.con.execute(f"SELECT * FROM ({TABLES[name]}) ORDER BY ALL")
    assert list(table.columns) == [column[0] for column in ordered.description]
    rows = ordered.fetchall()
    assert [tuple(row.values()) for row in table.order_by(table.columns).to_pyarrow().to_pylist()] == rows
    assert table.count().execute() == len(rows) > 0


@pytest.mark.parametrize("name", CALLS)
def test_aggregates_give_the_numbers_of_sql(con: Any, name: str) -> None:
    call, sql = CALLS[name]
    t = con.table("people")
    for group, keys in (("GROUP BY region ORDER BY region", ["region"]), ("", [])):
        expected = [row[0] for row in con.con.execute(f"SELECT {sql} FROM people {group}").fetchall()]
        grouped = t.group_by(keys).agg(x=call(t)).order_by(keys) if keys else t.agg(x=call(t))
        assert grouped.to_pyarrow()["x"].to_pylist() == expected


def test_scalar_functions_work_on_cells(con: Any) -> None:
    t = con.table("people")
    cells = (
        t.group_by("region").agg(n=t.count(), x=t.y.sum(), most=t.y.max(), keys=t.record_key.sum()).order_by("region")
    )
    made = cells.mutate(
        count=f.sdc_ckm_count(_.n, _.keys), sum=f.sdc_ckm_sum(_.x, ibis.array([_.most]), _.keys), mbs=f.sdc_mbs(_.x, _.n, _.n),
        key=f.sdc_record_key(_.region), rounded=f.sdc_digits_of_noise(_.x, _.most, _.keys),
    )  # fmt: skip
    expected = con.con.execute("""SELECT sdc_count(record_key), sdc_ckm_sum(sum(y), [max(y)], sum(record_key)), sum(y)::DOUBLE,
        sdc_record_key(region), sdc_digits_of_noise(sum(y), max(y), sum(record_key))
        FROM people GROUP BY region ORDER BY region""").fetchall()
    assert [
        tuple(row.values()) for row in made.select("count", "sum", "mbs", "key", "rounded").to_pyarrow().to_pylist()
    ] == expected
    assert str(made.schema()["count"]), str(made.schema()["sum"]) == ("int64", "float64")


def test_stored_ptables_and_errors_are_those_of_sql(con: Any) -> None:
    t = con.table("people")
    con.con.execute("FROM sdc_store_ptable('mine', '(FROM sdc_ptable(D := 8, V := 3, js := 2))')").fetchall()
    mine = t.agg(n=f.sdc_count(t.record_key, ptable="mine")).execute()["n"][0]
    assert mine == con.con.execute("SELECT sdc_count(record_key, ptable := 'mine') FROM people").fetchall()[0][0]
    with pytest.raises(Exception, match="unknown p-table 'nope'"):
        t.agg(n=f.sdc_count(t.record_key, ptable="nope")).execute()


def test_the_ordinary_connection_works_on_every_duckdb(con: Any) -> None:
    assert "people" in con.list_tables()
    assert con.list_tables(like="peo") == ["people"]
    assert "main" in con.list_databases()
    assert con.list_catalogs()
    assert con.sql("SELECT region FROM people").schema() == ibis.schema({"region": "int64"})
    assert sum(batch.num_rows for batch in con.table("people").to_pyarrow_batches(chunk_size=30)) == 200
    assert con.create_table("copy", con.table("people").limit(3)).count().execute() == 3
    with pytest.raises(ibis.common.exceptions.TableNotFound):
        con.table("nobody")


def test_what_ibis_writes_for_an_older_sqlglot_is_mended(con: Any) -> None:
    t = con.table("people").filter(_.y == 7)
    moment = t.seen.cast("timestamp") + ibis.interval(milliseconds=61_250)
    made = t.select(
        day=t.seen + ibis.interval(days=3), part=moment.millisecond(), hours=moment.bucket(hours=6), id=ibis.uuid()
    )
    row = made.to_pyarrow().to_pylist()[0]
    assert (row["day"], row["part"], row["hours"]) == (datetime.date(2020, 1, 11), 250, datetime.datetime(2020, 1, 8))
    assert t.agg(any=_.y.arbitrary(), none=_.y.arbitrary(where=_.y > 7)).to_pyarrow().to_pylist() == [
        {"any": 7, "none": None}
    ]


def test_tables_are_made_filled_and_dropped(con: Any) -> None:
    rows = {"region": [0, 1], "name": ["north", "south"]}
    made = con.create_table("names", pd.DataFrame(rows))
    assert made.to_pyarrow().to_pydict() == rows
    con.insert("names", pa.table({"region": [2], "name": ["east"]}))
    assert con.create_table("names", made.filter(_.region > 0), overwrite=True).count().execute() == 2
    with pytest.raises(duckdb.CatalogException, match="already exists"):
        con.create_table("names", pa.table(rows))
    assert (
        con.create_table("brief", pl.DataFrame(rows), temp=True).join(con.table("names"), "region").count().execute()
        == 1
    )
    assert str(con.create_table("empty", schema={"a": "int64"}, overwrite=True).schema()["a"]) == "int64"
    con.create_database("other")
    assert (
        con.create_table("names", rows, schema={"region": "int8", "name": "string"}, database="other")
        .schema()["region"]
        .is_int8()
    )
    protected = con.table("people").group_by("region").agg(n=f.sdc_count(_.record_key))
    assert con.create_view("protected", protected).cache().count().execute() == 3
    con.drop_view("protected")
    con.drop_table("names", database="other")
    for name in ("names", "brief", "empty"):
        con.drop_table(name)
    con.drop_table("nobody", force=True)
    assert not {"names", "brief", "empty", "protected"} & set(con.list_tables())
