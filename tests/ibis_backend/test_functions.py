"""The `sdc_*` functions as ibis functions on an ordinary connection: the numbers of SQL, and all its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import ibis
import pytest
from ibis import _

import sdcduck
from sdcduck.functions.reference import SQLFunction, sql_functions
from sdcduck.ibis import functions as f

OF_EXPRESSIONS = [
    function for function in sql_functions()
    if function.kind != "table" and function.family in ("perturbation", "suppression")
]  # fmt: skip


@pytest.fixture(scope="module")
def con() -> Iterator[Any]:
    own = sdcduck.connect(secret="the secret of the tests")
    own.execute("""CREATE TABLE people AS SELECT range % 3 AS region, range % 50 AS id,
        (range % 50 * 7919 * 6151 % 100000000)::INTEGER AS record_key, range AS y, 1 + range % 5 AS w, range * 2305843 AS stencil
        FROM range(200)""")
    yield sdcduck.ibis.from_connection(own)
    own.close()


@pytest.mark.parametrize("function", OF_EXPRESSIONS, ids=lambda function: function.name)
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
}  # fmt: skip


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
