"""What belongs to one unit: an order is of one customer, and tables are joined on it as on the customer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pytest

import sdcduck
from sdcduck.errors import SDCError
from sdcduck.guard import Guard, Refused, guard

_TABLES = """
CREATE TABLE orders AS SELECT i AS order_id, i % 40 AS customer_id, i % 3 AS priority FROM range(400) t(i);
CREATE TABLE lines AS SELECT CASE WHEN i % 50 = 0 THEN NULL ELSE i % 400 END AS of_order, i % 40 AS customer, i // 3 % 5 AS mode,
    (i * 7 % 100)::DECIMAL(9, 2) AS price FROM range(1500) t(i);
CREATE TABLE returned AS SELECT i * 3 AS order_no, i * 3 % 40 AS client, i % 2 AS reason FROM range(100) t(i);
CREATE TABLE reasons AS FROM (VALUES (0, 'late'), (1, 'broken')) r(reason_id, why);
"""
_POLICIES = (
    ("orders", "customer_id", ["order_id", "priority"], [], "{'order_id': 'order'}"),
    ("lines", "customer", ["of_order", "mode"], ["price"], "{'of_order': 'order'}"),
    ("returned", "client", ["order_no", "reason"], [], "{'ORDER_NO': 'Order'}"),
)


@contextmanager
def _shop(method: str, *, owned: bool = True) -> Iterator[tuple[duckdb.DuckDBPyConnection, Guard]]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(_TABLES)
        for table, unit, dimensions, measures, names in _POLICIES:
            con.execute(f"FROM sdc_add_record_key('{table}', unit := '{unit}')").fetchall()
            least = ", min_units := 1" if method == "threshold" else ""
            con.execute(
                f"FROM sdc_protect('{table}', unit := '{unit}', dimensions := {dimensions}, measures := {measures}, "
                f"method := '{method}', population := 'customers'{least}, owned := {names if owned else 'NULL'})"
            ).fetchall()
        con.execute("FROM sdc_declare_public('reasons')").fetchall()
        yield con, guard(con)


_QUESTIONS = {
    "a join": (
        "SELECT priority, count(*) AS n FROM orders o, lines l WHERE o.order_id = l.of_order GROUP BY priority",
        "SELECT priority, count(*) AS n FROM orders o JOIN lines l ON o.order_id = l.of_order AND l.customer = o.customer_id "
        "GROUP BY priority",
    ),
    "LEFT JOIN": (
        "SELECT reason, count(*) AS n FROM lines l LEFT JOIN returned r ON l.of_order = r.order_no GROUP BY reason",
        "SELECT reason, count(*) AS n FROM lines l LEFT JOIN returned r ON l.of_order = r.order_no AND l.customer = r.client "
        "GROUP BY reason",
    ),
    "in both sides of OR": (
        "SELECT priority, count(*) AS n FROM orders, lines WHERE (order_id = of_order AND mode = 1) "
        "OR (order_id = of_order AND priority = 1) GROUP BY priority",
        "SELECT priority, count(*) AS n FROM orders JOIN lines ON order_id = of_order AND customer = customer_id "
        "WHERE mode = 1 OR priority = 1 GROUP BY priority",
    ),
    "EXISTS": (
        "SELECT priority, count(*) AS n FROM orders WHERE EXISTS (FROM lines WHERE of_order = order_id AND mode = 2) GROUP BY ALL",
        "SELECT priority, count(*) AS n FROM orders WHERE EXISTS (FROM lines WHERE of_order = order_id AND mode = 2 "
        "AND customer = customer_id) GROUP BY ALL",
    ),
    "NOT EXISTS": (
        "SELECT priority, count(*) AS n FROM orders WHERE NOT EXISTS (FROM returned WHERE order_no = order_id) GROUP BY ALL",
        "SELECT priority, count(*) AS n FROM orders WHERE NOT EXISTS (FROM returned WHERE order_no = order_id "
        "AND client = customer_id) GROUP BY ALL",
    ),
    "another line of the same order": (
        "SELECT mode, count(*) AS n FROM lines a WHERE EXISTS (FROM lines b WHERE a.of_order = b.of_order AND a.mode <> b.mode) "
        "GROUP BY mode",
        "SELECT mode, count(*) AS n FROM lines a WHERE EXISTS (FROM lines b WHERE a.of_order = b.of_order AND a.mode <> b.mode "
        "AND a.customer = b.customer) GROUP BY mode",
    ),
    "IN": (
        "SELECT priority, count(*) AS n FROM orders WHERE order_id IN (SELECT order_no FROM returned WHERE reason = 1) "
        "GROUP BY priority",
        "SELECT priority, count(*) AS n FROM orders WHERE (order_id, customer_id) IN (SELECT order_no, client FROM returned "
        "WHERE reason = 1) GROUP BY priority",
    ),
    "a subquery for each order": (
        "SELECT priority, count(*) AS n FROM orders WHERE (SELECT count(*) FROM lines WHERE of_order = order_id) > 3 GROUP BY ALL",
        "SELECT priority, count(*) AS n FROM orders WHERE (SELECT count(*) FROM lines WHERE of_order = order_id "
        "AND customer = customer_id) > 3 GROUP BY ALL",
    ),
    "a public table behind LEFT JOIN": (
        "SELECT why, count(*) AS n FROM lines LEFT JOIN returned ON order_no = of_order, reasons WHERE reason = reason_id "
        "GROUP BY why",
        "SELECT why, count(*) AS n FROM lines LEFT JOIN returned ON order_no = of_order AND client = customer "
        "JOIN reasons ON reason = reason_id GROUP BY why",
    ),
}


@pytest.fixture(scope="module")
def exact() -> Iterator[tuple[duckdb.DuckDBPyConnection, Guard]]:
    with _shop("threshold") as made:
        yield made


@pytest.mark.parametrize("question", _QUESTIONS)
def test_it_is_the_answer_of_duckdb(exact: tuple[duckdb.DuckDBPyConnection, Guard], question: str) -> None:
    con, one = exact
    asked, _ = _QUESTIONS[question]
    answer = sorted((tuple(row.values()) for row in one.sql(asked).to_pylist()), key=repr)
    assert answer == sorted(con.cursor().execute(asked).fetchall(), key=repr)
    assert answer


@pytest.mark.parametrize("method", ["cell_key", "rounding", "threshold"])
def test_the_noise_is_that_of_a_join_on_the_unit(method: str) -> None:
    with _shop(method) as (_, one):
        for asked, on_the_unit in _QUESTIONS.values():
            assert one.sql(asked).to_pylist() == one.sql(on_the_unit).to_pylist() != []


@pytest.fixture(scope="module")
def not_declared() -> Iterator[Guard]:
    with _shop("threshold", owned=False) as (_, one):
        yield one


@pytest.mark.parametrize("question", [question for question in _QUESTIONS if question != "a subquery for each order"])
def test_it_has_to_be_declared(not_declared: Guard, question: str) -> None:
    with pytest.raises(Refused, match=r"SDC03[35]|SDC044"):
        not_declared.sql(_QUESTIONS[question][0])


@pytest.mark.parametrize(
    "query",
    [
        # With an order that is NULL among those returned, NOT IN is so for no order: not what a pair with the customer says.
        "SELECT count(*) FROM orders WHERE order_id NOT IN (SELECT of_order FROM lines)",
        "SELECT count(*) FROM orders WHERE NOT (order_id IN (SELECT of_order FROM lines))",
        # A number of orders that is no order of this customer.
        "SELECT count(*) FROM orders, lines WHERE order_id = mode",
        "SELECT count(*) FROM orders, lines WHERE order_id = of_order + 0",
        "SELECT count(*) FROM orders WHERE order_id IN (SELECT mode FROM lines)",
        "SELECT count(*) FROM orders, lines WHERE NOT (order_id <> of_order)",
        "SELECT count(*) FROM orders, lines WHERE order_id = of_order OR priority = mode",
        # The name of a query in WITH is not the table.
        "WITH lines AS (SELECT mode AS of_order FROM lines) SELECT count(*) FROM orders, lines WHERE order_id = of_order",
    ],
)
def test_nothing_else_ties(exact: tuple[duckdb.DuckDBPyConnection, Guard], query: str) -> None:
    with pytest.raises(Refused):
        exact[1].sql(query)


def test_rows_of_two_units_do_not_meet_whatever_the_data_become() -> None:
    # Changed in place, with no record more or less, which the guard does not notice: an order has two customers now.
    with _shop("threshold") as (con, one):
        before = {question: one.sql(asked).to_pylist() for question, (asked, _) in _QUESTIONS.items()}
        con.execute("UPDATE orders SET customer_id = (customer_id + 1) % 40 WHERE order_id % 2 = 0")
        for question, (asked, on_the_unit) in _QUESTIONS.items():
            changed = one.sql(asked).to_pylist()
            assert changed == one.sql(on_the_unit).to_pylist(), question
        assert before["a join"] != one.sql(_QUESTIONS["a join"][0]).to_pylist()


def test_it_is_stored_shown_and_taken_back() -> None:
    with _shop("threshold") as (con, _):
        shown = "SELECT name, owned FROM sdc_policies() WHERE label = 'unit-level'"
        assert con.execute(shown).fetchall() == [
            ("lines", {"of_order": "order"}), ("orders", {"order_id": "order"}), ("returned", {"order_no": "Order"}),
        ]  # fmt: skip
        con.execute(
            "FROM sdc_protect('lines', unit := 'customer', dimensions := ['of_order'], method := 'threshold', "
            "min_units := 1, population := 'customers')"
        ).fetchall()
        assert con.execute(f"{shown} AND name = 'lines'").fetchall() == [("lines", None)]
        with pytest.raises(Refused, match="SDC035"):
            guard(con).sql(_QUESTIONS["a join"][0])


@pytest.mark.parametrize(
    ("owned", "said"),
    [
        ("{'mode': 'order'}", "values of 'mode' are of several units"),
        ("{'price': 'order'}", "'price' is not one of the dimensions"),
        ("{'of_ordre': 'order'}", "unknown column 'of_ordre'"),
        ("{'of_order': 1}", "name for each dimension what it identifies"),
        ("{'of_order': ' '}", "name for each dimension what it identifies"),
        ("['of_order']", "name for each dimension what it identifies"),
    ],
)
def test_what_is_wrong_is_said(exact: tuple[duckdb.DuckDBPyConnection, Guard], owned: str, said: str) -> None:
    with pytest.raises((SDCError, duckdb.Error), match=said):
        exact[0].execute(
            "FROM sdc_protect('lines', unit := 'customer', dimensions := ['of_order', 'mode'], measures := ['price'], "
            f"method := 'threshold', min_units := 1, population := 'customers', owned := {owned})"
        )


def test_an_order_of_two_customers_in_two_tables_is_found() -> None:
    with _shop("threshold") as (con, _):
        con.execute("UPDATE returned SET client = (client + 1) % 40 WHERE order_no IN (3, 9)")
        for population, found in (("customers", True), ("others", False)):
            protect = (
                "FROM sdc_protect('returned', unit := 'client', dimensions := ['order_no', 'reason'], method := 'threshold', "
                f"min_units := 1, population := '{population}', owned := {{'order_no': 'order'}})"
            )
            if found:
                with pytest.raises(
                    duckdb.Error, match=r"2 values of 'order_no', beside '\w+' of '\w+', are of several units"
                ):
                    con.execute(protect)
            else:
                con.execute(protect).fetchall()


def test_a_publication_has_no_units() -> None:
    with _shop("threshold") as (con, _), pytest.raises(duckdb.Error, match="whose cells have no units"):
        con.execute(
            "FROM sdc_protect('lines', unit := 'customer', dimensions := ['of_order'], method := 'suppression', "
            "publication := 'none', owned := {'of_order': 'order'})"
        )
