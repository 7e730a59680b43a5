"""What a comment in ``sql/`` declares is what DuckDB has, and how arguments get to a planner follows from their types."""

from __future__ import annotations

import re
import subprocess
import sys

import duckdb
import pytest

from sdcduck.functions.declared import handed_on, planner, sql_of
from sdcduck.functions.reference import COMMENT, SQL_FILES, SQLFunction, functions_of, sql_functions
from sdcduck.functions.registry import Rows, Session

DECLARED = {function.name: function for function in sql_functions()}


def declared(signature: str) -> SQLFunction:
    return SQLFunction(signature.split("(")[0], "", signature, "", "", (), (), "", "", "", True)


def test_defaults_may_have_commas() -> None:
    signature = (
        """sdc_x(a, "by" := ['p', 'q'], c := [(1, 75), (2, 90)], d := 'a, b', e := {'k': [1, 2]}, f := -1) -> TABLE"""
    )
    assert declared(signature).parameters == (
        ("a", None), ("by", "['p', 'q']"), ("c", "[(1, 75), (2, 90)]"), ("d", "'a, b'"), ("e", "{'k': [1, 2]}"), ("f", "-1"),
    )  # fmt: skip
    assert declared("sdc_x() -> TABLE").parameters == ()


@pytest.mark.parametrize(
    ("kind", "sql", "given"),
    [
        ("VARCHAR", '"x"::VARCHAR', "VARCHAR"),
        ("VARCHAR[]", 'to_json("x")::VARCHAR', "VARCHAR[]"),
        ("DATE[]", '"x"::DATE[]', "DATE[]"),
        ("DOUBLE", '"x"', "DOUBLE"),
        ("BOOLEAN", '"x"', "BOOLEAN"),
        ("BIGINT", '"x"::VARCHAR', "BIGINT"),
        ("VARCHAR[][]", 'to_json("x")::VARCHAR', "VARCHAR"),
        ("DOUBLE or DOUBLE[]", 'to_json("x")::VARCHAR', "VARCHAR"),
        ("STRUCT of lists", 'to_json("x")::VARCHAR', "VARCHAR"),
        ("list of pairs (n, k)", '"x"::VARCHAR', "VARCHAR"),
    ],
)
def test_an_argument_is_handed_on_by_its_type(kind: str, sql: str, given: str) -> None:
    assert handed_on("x", kind) == (sql, given)


def test_a_planner_has_what_its_comment_declares() -> None:
    def plan_classes(session: Session) -> str:
        return ""

    def plan_check_submit(session: Session) -> Rows:
        raise AssertionError

    assert planner(plan_classes).arguments == ("VARCHAR", "VARCHAR[]", "VARCHAR", "VARCHAR", "DOUBLE")
    assert planner(plan_classes).columns == {}
    submit = planner(plan_check_submit)
    assert (submit.name, list(submit.columns)) == (
        "sdc_check_submit", ["name", "kind", "status", "cells", "failed", "review"],
    )  # fmt: skip


@pytest.mark.parametrize("given", ["3", "3.0", "3e0", "'3'", "' 3 '", "3::UTINYINT", "3::HUGEINT"])
def test_whole_numbers_come_whole(con: duckdb.DuckDBPyConnection, given: str) -> None:
    con.execute("CREATE TABLE t AS SELECT unnest([1, 2, 2, 3, 3, 3]) AS a")
    assert con.execute(f"SELECT below_k FROM sdc_k_anonymity('t', keys := ['a'], k := {given})").fetchall() == [(3,)]


def test_no_digit_of_a_seed_is_lost(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT range % 50 AS a FROM range(5000)")

    def drawn(seed: int) -> list[tuple[object, ...]]:
        call = f"sdc_synth_table('t', dimensions := ['a'], model := 'poisson', seed := {seed})"
        return con.execute(f"FROM {call} ORDER BY ALL").fetchall()

    assert drawn(2**53 + 1) == drawn(2**53 + 1) != drawn(2**53)
    assert drawn(-(2**63) + 1) != drawn(-(2**63) + 2)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("2.5", "argument 'k' must be a whole number, not 2.5"),
        ("'x'", "argument 'k' must be a whole number of 64 bits, not 'x'"),
        ("true", "argument 'k' must be a whole number of 64 bits, not 'true'"),
        ("9223372036854775808", "argument 'k' must be a whole number of 64 bits"),
        ("1e300", "argument 'k' must be a whole number between -2^53 and 2^53, not 1"),
        ("'inf'::DOUBLE", "argument 'k' must be a whole number, not inf"),
        ("[1]", "argument 'k' must be a whole number of 64 bits, not '[1]'"),
    ],
)
def test_other_numbers_are_refused_by_name(con: duckdb.DuckDBPyConnection, given: str, told: str) -> None:
    con.execute("CREATE TABLE t AS SELECT range AS a FROM range(4)")
    with pytest.raises(duckdb.Error, match=re.escape(f"sdc_k_anonymity: {told}")):
        con.execute(f"FROM sdc_k_anonymity('t', keys := ['a'], k := {given})")


def test_all_that_is_made_can_be_read() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "sdcduck.functions.declared"], capture_output=True, text=True, check=True
    ).stdout
    with duckdb.connect() as con:
        names = [statement.query.split("MACRO ")[1].split("(")[0] for statement in con.extract_statements(made)]
    assert len(names) == len(set(names)) > 90
    assert set(names) < {name for one in sql_functions() for name in (one.name, *one.former)}


def test_arguments_may_be_described_at_another_function() -> None:
    text = "".join(f"--| {line}\n" for line in (
        "sdc_one(a, b := 1, c := 2) -> TABLE", "One.", "@arg a VARCHAR: a of one", "@arg b BIGINT: b of one",
        "@arg c BIGINT: c of one", "@column x BIGINT: x", "", "sdc_two(c := 2, d := 3, a := NULL) -> TABLE", "Two.",
        "@arg d BIGINT: d of two", "@arg a VARCHAR: a of two", "@args_of sdc_one", "@column x BIGINT: x",
        "", "sdc_three(d, c := NULL) -> TABLE", "Three.", "@args_of sdc_two", "@column x BIGINT: x",
    )).replace("--| \n", "\n")  # fmt: skip
    one, two, three = functions_of({"x_tables.sql": text})
    assert [name for name, _ in one.arguments] == ["a", "b", "c"]
    # In the order of the signature, and without b, which it does not have.
    assert two.arguments == (("c", "BIGINT: c of one"), ("d", "BIGINT: d of two"), ("a", "VARCHAR: a of two"))
    assert two.types == (("c", "BIGINT"), ("d", "BIGINT"), ("a", "VARCHAR"))
    assert three.arguments == (("d", "BIGINT: d of two"), ("c", "BIGINT: c of one"))


def test_every_reference_to_another_function_describes_something() -> None:
    for block in re.finditer(rf"(?m){COMMENT}", "\n".join(map(sql_of, SQL_FILES))):
        for other in re.findall(r"^--\| @args_of (\w+)$", block[0], re.M):
            here = {name for name, _ in DECLARED[block[0][4:].split("(")[0]].arguments}
            assert len(here & {name for name, _ in DECLARED[other].arguments}) > 1
