"""What a custodian is told who declares a policy or a user anew, or a policy over a publication of other names."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import guard

PROTECT = "FROM sdc_protect('people', unit := 'id', dimensions := ['region'], method := 'threshold', min_units := {}, role := '{}')"
ANSWERED = (
    "FROM sdc_protect('people', unit := 'id', dimensions := ['{}'], measures := ['{}'], "
    "method := 'suppression', publication := 'p')"
)
PUBLISHED = "SELECT {}, count(*) AS n, sum(income) AS {} FROM people GROUP BY GROUPING SETS ((1), ())"


@pytest.fixture
def people() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect() as con:
        con.execute("CREATE TABLE people AS SELECT i AS id, i % 3 AS region, i % 7 * 100 AS income FROM range(90) _(i)")
        yield con


def test_a_policy_says_whether_it_replaces_one(people: duckdb.DuckDBPyConnection) -> None:
    for least, role, replaced in [(5, "", False), (6, "", True), (5, "staff", False), (7, "STAFF", True)]:
        [row] = people.execute(PROTECT.format(least, role)).fetchall()
        assert row == ("people", "threshold", 90, 90, True, replaced, "off")
    people.execute("FROM sdc_unprotect('people')").fetchall()
    assert people.execute(PROTECT.format(5, "")).fetchall()[0][5] is False


def test_a_public_table_that_becomes_protected_is_replaced(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("FROM sdc_declare_public('people')").fetchall()
    assert people.execute(PROTECT.format(5, "")).fetchall()[0][5] is True


def test_a_user_says_whether_it_is_a_new_one(people: duckdb.DuckDBPyConnection) -> None:
    create = "FROM sdc_create_user('{}', 'correct horse battery', role := '{}')"
    for name, role, replaced in [("ann", "analyst", False), ("ann", "staff", True), ("Ann", "staff", False)]:
        assert people.execute(create.format(name, role)).fetchall() == [(name, role, replaced)]
    people.execute("FROM sdc_drop_user('ann')").fetchall()
    assert people.execute(create.format("ann", "staff")).fetchall() == [("ann", "staff", False)]


@pytest.mark.parametrize(
    ("published", "asked", "only"),
    [
        (("region", "total"), ("region", "income"), "measure 'income': .* only the table .*'total': .*sum\\(income\\) AS income"),
        (("region", "total"), ("region", "total"), "measure 'total': .* only the publication .*sum\\(x\\) AS x"),
        (("region AS part", "income"), ("region", "income"), "dimension 'region': .* only the table .*'part'"),
        (("region AS part", "income"), ("part", "income"), "dimension 'part': .* only the publication"),
        (("region", "Income"), ("region", "Income"), "measure 'Income': .* only the table has .*'Income'"),
        (("region", "income"), ("region", "nothing"), "unknown column 'nothing' in 'people'"),
    ],
)  # fmt: skip
def test_names_that_only_one_of_both_has(
    people: duckdb.DuckDBPyConnection, published: tuple[str, str], asked: tuple[str, str], only: str
) -> None:
    query = PUBLISHED.format(*published)
    people.execute("FROM sdc_publication('p', ?)", [query]).fetchall()
    people.execute("FROM sdc_publish('p', max_count := 2)").fetchall()
    with pytest.raises(duckdb.Error, match=only):
        people.execute(ANSWERED.format(*asked)).fetchall()


def test_what_the_message_says_to_write_is_answered(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("FROM sdc_publication('p', ?)", [PUBLISHED.format("region", "income")]).fetchall()
    people.execute("FROM sdc_publish('p', max_count := 2)").fetchall()
    people.execute(ANSWERED.format("REGION", "INCOME")).fetchall()
    assert guard(people).sql("SELECT sum(income) AS s FROM people").to_pylist() == [{"s": 26700}]
