"""A budget of differential privacy is one of all people and of all gateways of a file; what was drawn is drawn once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from private_people import PEOPLE, made
from served_gateway import PASSWORD, Served, start

import sdcduck

psycopg = pytest.importorskip("psycopg")
pytest.importorskip("opendp")

BY_REGION = "SELECT region, count(*) AS n, avg(income) AS income FROM people GROUP BY region ORDER BY region"


def serving(folder: Path, *names: str) -> Iterator[list[Served]]:
    """Gateways of a register whose budget is enough for two questions."""
    register = made(folder / "people.duckdb", epsilon="100", delta="0", per_question="40")
    with closing(sdcduck.connect(register)) as con:
        for user in ("ann", "bob"):
            con.execute(f"FROM sdc_create_user('{user}', '{PASSWORD}')").fetchall()
    served = [start(register, folder / name, "--flight-port", "0") for name in names]
    for one in served:
        one.database = "people"
    yield served
    for one in served:
        one.stop()


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[list[Served]]:
    yield from serving(tmp_path, "one", "other")


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Served]:
    for (one,) in serving(tmp_path, "one"):
        yield one


def rows(served: Served, user: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(**{**served.options, "user": user}, autocommit=True) as con:
        found: list[tuple[object, ...]] = con.execute(query).fetchall()
    return found


def test_a_budget_is_spent_once_by_all_and_answers_stay(gateways: list[Served]) -> None:
    one, other = gateways
    assert rows(one, "ann", "SHOW sdc_budget") == [("people", 100.0, 0.0, 40.0, 0, 0.0, 2, "policy", None)]
    first = rows(one, "ann", BY_REGION)
    assert [region for region, *_ in first] == ["e", "n", "s", "w", None]
    assert sum(int(str(n)) for _, n, _ in first) == pytest.approx(PEOPLE, abs=50)
    assert rows(one, "ann", BY_REGION) == rows(other, "bob", BY_REGION) == first
    assert rows(other, "bob", "SHOW sdc_budget") == [("people", 100.0, 0.0, 40.0, 1, 40.0, 1, "policy", None)]
    rows(other, "bob", "SELECT count(*) FROM people WHERE ill")
    for served in gateways:
        with pytest.raises(psycopg.Error, match=r"SDC080.*epsilon 80 of 100 is spent, 20 is free") as refused:
            rows(served, "ann", "SELECT count(*) FROM people WHERE NOT ill")
        assert refused.value.sqlstate == "53400"
        assert rows(served, "ann", BY_REGION) == first
        assert rows(served, "bob", "SHOW sdc_budget") == [("people", 100.0, 0.0, 40.0, 2, 80.0, 0, "policy", None)]


def test_what_programs_ask_before_a_question_costs_nothing(gateway: Served) -> None:
    """A driver that prepares a statement and has it described, EXPLAIN, and the names of columns."""
    with psycopg.connect(**{**gateway.options, "user": "ann"}, autocommit=True) as con:
        described = con.pgconn.prepare(b"asked", BY_REGION.encode())
        assert described.status == psycopg.pq.ExecStatus.COMMAND_OK
        columns = con.pgconn.describe_prepared(b"asked")
        assert [columns.fname(place) for place in range(columns.nfields)] == [b"region", b"n", b"income"]
        assert con.execute(f"EXPLAIN {BY_REGION}").fetchall()
        assert con.execute("SHOW sdc_budget").fetchall()[0][4] == 0
        con.pgconn.exec_prepared(b"asked", None)
        con.pgconn.exec_prepared(b"asked", None)
        assert con.execute("SHOW sdc_budget").fetchall()[0][4] == 1


def test_what_a_question_would_cost_is_said_by_both_doors(gateway: Served) -> None:
    """Through PostgreSQL and Arrow Flight SQL; the question in it is asked by nobody."""
    adbc = pytest.importorskip("adbc_driver_flightsql.dbapi")
    asked = "SELECT \"column\", sd, epsilon, paid, questions_left FROM sdc_dp_preview($$SELECT count(*) AS n FROM people WHERE region = 'n'$$)"
    (row,) = rows(gateway, "ann", asked)
    assert (row[0], *row[2:]) == ("n", 40.0, False, 1)
    with (
        adbc.connect(f"grpc://127.0.0.1:{gateway.flight}", db_kwargs={"username": "bob", "password": PASSWORD}) as con,
        con.cursor() as cursor,
    ):
        cursor.execute(asked)
        assert cursor.fetchall() == [row]
    assert rows(gateway, "ann", "SHOW sdc_budget")[0][4] == 0
    rows(gateway, "ann", "SELECT count(*) AS n FROM people WHERE region = 'n'")
    assert rows(gateway, "bob", asked)[0][2:] == (0.0, True, 1)


def test_the_log_has_no_numbers_that_were_drawn(gateway: Served) -> None:
    """Whoever may read who asked what need not see the answers."""
    rows(gateway, "ann", BY_REGION)
    (line,) = [line for line in gateway.asked() if line["query"] == BY_REGION]
    assert line["verdict"] == "answered"
    assert line["methods"] == ["dp"]
    assert "WHERE FALSE" in line["sql"].upper()


def test_values_that_programs_bind_are_part_of_the_question(gateways: list[Served]) -> None:
    """As BI tools filter: the same values cost nothing again, and others are charged."""
    one, other = gateways
    query = "SELECT region, count(*) AS n FROM people WHERE age > %s AND region = ANY(%s) GROUP BY region ORDER BY 1"
    found = []
    for served, user, binary in ((one, "ann", False), (other, "bob", False), (one, "bob", True)):
        with psycopg.connect(**{**served.options, "user": user}, autocommit=True) as con:
            found.append(con.execute(query, (30, ["n", "s"]), prepare=True, binary=binary).fetchall())
    assert found[0] == found[1] == found[2]
    assert [region for region, _ in found[0]] == ["n", "s"]
    assert [n for _, n in found[0]] == pytest.approx([244, 266], abs=15)
    assert rows(one, "ann", "SHOW sdc_budget")[0][4] == 1
    with psycopg.connect(**one.options, autocommit=True) as con:
        con.execute(query, (31, ["n", "s"])).fetchall()
        with pytest.raises(psycopg.Error, match="SDC080"):
            con.execute(query, (32, ["n", "s"]))
