"""Tables whose names need quotes are protected like any other."""

from __future__ import annotations

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Refused


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("my table", "my table"), ("my table", '"my table"'), ("My Table", '"my table"'), ("my.table", '"my.table"'),
        ("my.table", "my.table"), ("it's", "it's"), ('a"b', '"a""b"'), ("select", '"select"'),
    ],
)  # fmt: skip
def test_a_name_in_quotes_is_a_name(name: str, argument: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    with sdcduck.connect(secret="the secret of the tests") as con:
        for table in (quoted, "plain"):
            con.execute(
                f"CREATE TABLE {table} AS SELECT id AS person_id, ['N', 'S'][1 + id % 2] AS region, id AS income FROM range(300) u(id)"
            )
        answers = []
        for table, told in ((quoted, argument), ("plain", "plain")):
            con.execute("FROM sdc_add_record_key(?, unit := 'person_id')", [told]).fetchall()
            con.execute(
                "FROM sdc_protect(?, unit := 'person_id', dimensions := ['region'], measures := ['income'])", [told]
            ).fetchall()
            asked = f"SELECT t.region, count(*), sum(income) FROM {table} AS t GROUP BY ALL ORDER BY ALL"
            answers.append([tuple(row.values()) for row in sdcduck.guard(con).sql(asked).to_pylist()])
            with pytest.raises(Refused, match="SDC040"):
                sdcduck.guard(con).sql(f"SELECT income FROM {table}")
        assert answers[0] == answers[1]
        con.execute("FROM sdc_unprotect(?)", [argument]).fetchall()
        with pytest.raises(Refused, match="SDC020"):
            sdcduck.guard(con).sql(f"SELECT count(*) FROM {quoted}")
        con.execute("FROM sdc_public(?)", [argument]).fetchall()
        assert sdcduck.guard(con).sql(f"SELECT count(*) AS n FROM {quoted}").to_pylist() == [{"n": 300}]


@pytest.mark.parametrize(
    "argument", ['main."my table"', '"main"."my table"', '"my table" LIMIT 5', '"my table" AS x', "(FROM plain)"]
)
def test_what_is_no_name_alone_is_refused(argument: str) -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute('CREATE TABLE "my table" AS SELECT 1 AS person_id; CREATE TABLE plain AS SELECT 1 AS person_id')
        with pytest.raises(duckdb.Error, match="must name a table or view"):
            con.execute("FROM sdc_public(?)", [argument]).fetchall()
