"""The table functions as functions of Python: what SQL has, run at once, and what is said of a wrong call."""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
import python_functions
import sqlglot
from python_functions import called, in_python, table_functions
from sqlglot import expressions as exp

import sdcduck
from sdcduck.errors import SDCError
from sdcduck.functions import tables
from sdcduck.functions.reference import EXAMPLE_DATA, EXAMPLE_SECRET, SQLFunction
from sdcduck.quoting import sql_value

PEOPLE = "CREATE TABLE people AS SELECT range AS person_id, range % 2 AS region FROM range(10)"


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret=EXAMPLE_SECRET) as own:
        own.execute(PEOPLE)
        yield own


def test_the_functions_are_those_that_the_comments_declare() -> None:
    assert python_functions.FILE.read_text(encoding="utf-8") == python_functions.written(), "run `make examples`"


def shown(value: Any) -> Any:
    """A value, with the decimals of SQL as the numbers that they are in Python."""
    if isinstance(value, list | tuple):
        return [shown(one) for one in value]
    return float(value) if isinstance(value, Decimal) else value


def test_arguments_and_defaults_are_those_of_sql() -> None:
    for function in table_functions():
        first, *parameters = inspect.signature(getattr(tables, called(function))).parameters.values()
        assert first.name == "con"
        assert [one.name for one in parameters] == [in_python(name) for name, _ in function.parameters]
        for parameter, (name, default) in zip(parameters, function.parameters, strict=True):
            if default is None:
                assert parameter.default is inspect.Parameter.empty, (function.name, name)
            else:
                value = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
                wanted = duckdb.execute(f"SELECT {default}").fetchone() or ()
                assert shown(wanted) == shown([value]), (function.name, name)


def test_the_package_has_them_too() -> None:
    assert sdcduck.protect is tables.protect
    assert {"protect", "publish", "audit", "suppress", "synth_records", "connect"} <= set(dir(sdcduck))
    for name in set(tables.__all__) & set(vars(sdcduck)):
        assert getattr(sdcduck, name) is getattr(tables, name), f"{name} has another meaning in the package"
    with pytest.raises(AttributeError, match="has no attribute 'protekt'"):
        sdcduck.protekt  # noqa: B018


def test_help_says_what_the_reference_does() -> None:
    told = inspect.getdoc(sdcduck.suppress)
    assert told is not None
    [function] = [one for one in table_functions() if one.name == "sdc_suppress"]
    for text in (function.summary, *(f"{name}: {meaning.partition(': ')[2]}." for name, meaning in function.arguments)):
        assert text in told
    assert all(f"    {name}: " in told for name, _ in function.columns)


def arguments_of(con: duckdb.DuckDBPyConnection, function: SQLFunction) -> tuple[str, list[Any], dict[str, Any]] | None:
    """The call in an example, as SQL and as Python, where it holds nothing but values."""
    for statement in sqlglot.parse(function.example, read="duckdb"):
        for found in () if statement is None else statement.find_all(exp.Anonymous):
            if found.name == function.name and not list(found.find_all(exp.Column, exp.Subquery)):
                placed, named = list[Any](), dict[str, Any]()
                for argument in found.expressions:
                    value = argument.expression if isinstance(argument, exp.PropertyEQ) else argument
                    [given] = con.execute(f"SELECT {value.sql('duckdb')}").fetchone() or ()
                    if isinstance(argument, exp.PropertyEQ):
                        named[in_python(argument.name)] = given
                    else:
                        placed.append(given)
                return found.sql("duckdb"), placed, named
    return None


CALLED = [
    "sdc_attack_score", "sdc_check_records", "sdc_check_statistics", "sdc_check_table", "sdc_create_user", "sdc_cube_allocate",
    "sdc_dp_composition_each", "sdc_functions", "sdc_k_anonymity", "sdc_k_noise_delta", "sdc_marketer_risk", "sdc_ptable",
    "sdc_plan_seal", "sdc_policy_risk", "sdc_pram_matrix", "sdc_primary", "sdc_rank_swap", "sdc_recode", "sdc_recon_bounds",
    "sdc_replicated_uniques", "sdc_suda", "sdc_suppress", "sdc_synth_dp_budget", "sdc_tcap", "sdc_utility_profile",
]  # fmt: skip
"""Functions whose first example is cheap, with arguments of every kind."""


def test_calls_give_the_rows_of_sql() -> None:
    with sdcduck.connect(secret=EXAMPLE_SECRET) as con:
        con.execute(EXAMPLE_DATA)
        for function in table_functions():
            if function.name in CALLED:
                found = arguments_of(con, function)
                assert found is not None
                sql, placed, named = found
                if function.name == "sdc_create_user":  # which says whether there was such a user
                    con.execute(f"FROM {sql}").fetchall()
                wanted = con.execute(f"FROM {sql}").fetchall()
                came = getattr(tables, called(function))(con, *placed, **named)
                assert came.fetchall() == wanted
                assert list(came.columns) == [name for name, *_ in con.execute(f"FROM {sql}").description or ()]
                assert wanted, function.name


def test_a_call_runs_at_once_and_once(con: duckdb.DuckDBPyConnection) -> None:
    """`con.sql` would wait until somebody looks, and on DuckDB 1 run it for each who does."""
    made = sdcduck.protect(con, "people", unit="person_id", dimensions=["region"], method="threshold", min_units=2)
    assert con.execute("SELECT name, method, min_units FROM sdc_policies()").fetchall() == [("people", "threshold", 2)]
    sdcduck.unprotect(con, "people")
    assert made.fetchall() == made.fetchall() == [("people", "threshold", 10, 10, True, False, "off")]
    assert made.df()["method"].tolist() == ["threshold"]
    assert sdcduck.policies(con).fetchall() == []


def test_an_answer_that_nobody_fetched_is_not_in_the_way(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("FROM range(1000000)").fetchone()
    assert sdcduck.k_anonymity(con, "people", keys="region").columns[0] == "records"
    assert sdcduck.k_anonymity(con, "people", ["region"]).fetchall()[0][:3] == (10, 2, 5)


def test_the_functions_are_installed_where_they_are_not() -> None:
    with duckdb.connect() as con:
        con.execute(PEOPLE)
        assert sdcduck.k_anonymity(con, "(FROM people)", keys=("region",)).fetchall()[0][:3] == (10, 2, 5)


def test_values_of_every_kind(con: duckdb.DuckDBPyConnection) -> None:
    moment = datetime.datetime(2026, 1, 31, 12, 30, 5, 250000)
    for value, wanted in [
        (None, None), (True, True), (np.int64(3), 3), (np.float32(0.5), 0.5), (1e300, 1e300), (-7, -7), (2**70, 2**70),
        (Decimal("12.30"), Decimal("12.30")), ("it's \\ n", "it's \\ n"), (b"\x00'\xff", b"\x00'\xff"), (moment, moment),
        (datetime.date(1, 2, 3), datetime.date(1, 2, 3)),
        ([], []), (range(3), [0, 1, 2]), ([(1, 75), (2, 90)], [(1, 75), (2, 90)]), ({"a": [0, 1.5], "b'": None}, {"a": [0, 1.5], "b'": None}),
    ]:  # fmt: skip
        assert con.execute(f"SELECT {sql_value(value)}").fetchone() == (wanted,)
    for infinite in (float("inf"), -float("inf"), np.float64("inf")):
        assert con.execute(f"SELECT {sql_value(infinite)}").fetchone() == (infinite,)
    zoned = moment.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    assert con.execute(f"SELECT epoch({sql_value(zoned)})").fetchone() == (zoned.timestamp(),)
    assert con.execute(f"SELECT isnan({sql_value(float('nan'))})").fetchone() == (True,)
    for other in ({1, 2}, {}, (), object(), 1j):
        with pytest.raises(TypeError):
            sql_value(other)


def test_wrong_calls(con: duckdb.DuckDBPyConnection) -> None:
    frame = pd.DataFrame({"region": [1]})
    with pytest.raises(
        SDCError, match=r"sdc_k_anonymity: argument 'source' cannot be a DataFrame.*CREATE TABLE people AS FROM frame"
    ):
        sdcduck.k_anonymity(con, frame, keys=["region"])  # type: ignore[arg-type]
    with pytest.raises(SDCError, match=r"argument 'keys' cannot be a set"):
        sdcduck.k_anonymity(con, "people", keys={"region"})  # type: ignore[arg-type]
    with pytest.raises(SDCError, match=r"unknown argument 'key' in sdc_k_anonymity\(\); did you mean 'keys'\?"):
        sdcduck.k_anonymity(con, "people", key=["region"])  # type: ignore[call-arg]
    with pytest.raises(
        SDCError, match=r"^sdc_k_anonymity: unknown column 'regio' in 'people'; did you mean 'region'\?$"
    ):
        sdcduck.k_anonymity(con, "people", keys=["regio"])
    with pytest.raises(TypeError, match="missing a required argument: 'source'"):
        sdcduck.k_anonymity(con)  # type: ignore[call-arg]
    with pytest.raises(SDCError, match="'k' must be a whole number"):
        sdcduck.k_anonymity(con, "people", ["region"], k=2.5)  # type: ignore[arg-type]
    con.close()
    with pytest.raises(duckdb.Error, match="closed"):
        sdcduck.k_anonymity(con, "people", keys=["region"])
