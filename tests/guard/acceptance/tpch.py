"""Queries of the TPC-H benchmark asked of the guard, where customers are the units.

``python tests/guard/acceptance/tpch.py`` (``make acceptance``) writes ``docs/guard-tpch.md``. The data are a small database
of the same schema, from arithmetic on row numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

import sdcduck
from sdcduck.guard import Guard, Refused, guard

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guard-tpch.md"
NUMBERS = (1, 3, 4, 5, 6, 9, 12, 14, 19)

_TABLES = """
CREATE MACRO pick(i, column_, n) AS ((i + 613 * column_) ** 3 * 7919 + i * i * 104729) % 10007 % n;
CREATE TABLE region AS SELECT i AS r_regionkey, ['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'][i + 1] AS r_name
    FROM range(5) t(i);
CREATE TABLE nation AS SELECT i AS n_nationkey, 'NATION ' || i AS n_name, i % 5 AS n_regionkey FROM range(25) t(i);
CREATE TABLE customer AS SELECT i AS c_custkey, 'Customer ' || i AS c_name, pick(i, 1, 25)::INTEGER AS c_nationkey,
    ['BUILDING', 'MACHINERY', 'FURNITURE'][(1 + pick(i, 2, 3))::INTEGER] AS c_mktsegment FROM range(1, 301) t(i);
CREATE TABLE supplier AS SELECT i AS s_suppkey, pick(i, 3, 25)::INTEGER AS s_nationkey FROM range(1, 51) t(i);
CREATE TABLE part AS SELECT i AS p_partkey, ['green', 'red', 'blue'][(1 + pick(i, 4, 3))::INTEGER] || ' part' AS p_name,
    ['PROMO TIN', 'ECONOMY TIN', 'SMALL TIN', 'PROMO COPPER'][(1 + pick(i, 5, 4))::INTEGER] AS p_type,
    ['Brand#12', 'Brand#23', 'Brand#34'][(1 + pick(i, 6, 3))::INTEGER] AS p_brand, (1 + pick(i, 7, 10))::INTEGER AS p_size,
    ['SM CASE', 'SM BOX', 'MED BAG', 'MED BOX', 'LG CASE'][(1 + pick(i, 8, 5))::INTEGER] AS p_container
    FROM range(1, 101) t(i);
CREATE TABLE partsupp AS SELECT p_partkey AS ps_partkey, s_suppkey AS ps_suppkey,
    100 + pick(p_partkey * 50 + s_suppkey, 9, 900) AS ps_supplycost FROM part, supplier;
CREATE TABLE orders AS SELECT i AS o_orderkey, (1 + pick(i, 10, 300))::INTEGER AS o_custkey,
    DATE '1992-01-01' + pick(i, 11, 2400)::INTEGER AS o_orderdate,
    ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'][(1 + pick(i, 12, 5))::INTEGER] AS o_orderpriority,
    0 AS o_shippriority FROM range(1, 3001) t(i);
CREATE TABLE lines AS SELECT o_orderkey AS l_orderkey, n AS l_linenumber, (1 + pick(i, 13, 100))::INTEGER AS l_partkey,
    (1 + pick(i, 14, 50))::INTEGER AS l_suppkey, (1 + pick(i, 15, 50))::INTEGER AS l_quantity,
    1000 + 9 * pick(i, 16, 10000) AS l_extendedprice, pick(i, 17, 11) / 100 AS l_discount, pick(i, 18, 9) / 100 AS l_tax,
    ['A', 'N', 'R'][(1 + pick(i, 19, 3))::INTEGER] AS l_returnflag, ['F', 'O'][(1 + pick(i, 20, 2))::INTEGER] AS l_linestatus,
    o_orderdate + (1 + pick(i, 21, 120))::INTEGER AS l_shipdate, o_orderdate + (30 + pick(i, 22, 60))::INTEGER AS l_commitdate,
    o_orderdate + (2 + pick(i, 21, 120) + pick(i, 23, 30))::INTEGER AS l_receiptdate,
    ['MAIL', 'SHIP', 'AIR', 'AIR REG', 'TRUCK'][(1 + pick(i, 24, 5))::INTEGER] AS l_shipmode,
    ['DELIVER IN PERSON', 'COLLECT COD'][(1 + pick(i, 25, 2))::INTEGER] AS l_shipinstruct
    FROM (SELECT *, o_orderkey * 3 + n AS i FROM orders, range(1, 4) t(n));
"""
# Lines carry their customer, the customer's record key, and what of the order and the customer may be asked for. The
# quantity is there twice: a column is added up or compared, not both.
_VIEW = """
CREATE VIEW lineitem AS SELECT l.*, o_custkey AS l_custkey, o_orderdate AS l_orderdate, o_orderpriority AS l_orderpriority,
    c_mktsegment AS l_mktsegment, c_nationkey AS l_nationkey, l_quantity AS l_units, o.record_key
    FROM lines l JOIN orders o ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey;
"""
_POLICIES = """
FROM sdc_protect('orders', unit := 'o_custkey', dimensions := ['o_orderkey', 'o_orderdate', 'o_orderpriority', 'o_shippriority']);
FROM sdc_protect('lineitem', unit := 'l_custkey', measures := ['l_quantity', 'l_extendedprice', 'l_tax'],
    dimensions := ['l_orderkey', 'l_linenumber', 'l_partkey', 'l_suppkey', 'l_units', 'l_discount', 'l_returnflag',
    'l_linestatus', 'l_shipdate', 'l_commitdate', 'l_receiptdate', 'l_shipmode', 'l_shipinstruct', 'l_orderdate',
    'l_orderpriority', 'l_mktsegment', 'l_nationkey']);
"""


@dataclass(frozen=True)
class Question:
    """One query of the benchmark.

    Attributes:
        number: in the benchmark.
        asks: what it is about.
        benchmark: its text.
        verdict: the code of the refusal, and why, in the end.
        customers: a query on the same subject that counts customers.
        direct: the numbers behind it, computed another way: one row a customer of a group, with the record key.
    """

    number: int
    asks: str
    benchmark: str
    code: str
    why: str
    customers: str
    keys: str
    direct: str


QUESTIONS = (
    Question(
        1, "Pricing summary by return flag and line status",
        """SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
            sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price, avg(l_quantity) AS avg_qty, count(*) AS count_order
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
        "SDC053", "sums over several lines of one customer",
        """SELECT l_returnflag, l_linestatus, count(DISTINCT l_custkey) AS customers FROM lineitem
        WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus""",
        "l_returnflag, l_linestatus",
        """SELECT DISTINCT l_returnflag, l_linestatus, o_custkey, record_key FROM lines, orders
        WHERE l_orderkey = o_orderkey AND l_shipdate <= DATE '1998-09-02'""",
    ),
    Question(
        3, "The unshipped orders of largest revenue",
        """SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
            AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10""",
        "SDC035", "a join of unit-level tables",
        """SELECT year(l_orderdate) AS y, month(l_orderdate) AS m, count(DISTINCT l_custkey) AS customers FROM lineitem
        WHERE l_mktsegment = 'BUILDING' AND l_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY y, m""",
        "y, m",
        """SELECT DISTINCT year(o_orderdate) AS y, month(o_orderdate) AS m, o_custkey, record_key FROM customer, orders, lines
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
            AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'""",
    ),
    Question(
        4, "Orders with a late line, by priority",
        """SELECT o_orderpriority, count(*) AS order_count FROM orders
        WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'
            AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority ORDER BY o_orderpriority""",
        "SDC044", "a subquery over records of one table for each record of another",
        """SELECT l_orderpriority, count(DISTINCT l_custkey) AS customers FROM lineitem
        WHERE l_orderdate >= DATE '1993-07-01' AND l_orderdate < DATE '1993-10-01' AND l_commitdate < l_receiptdate
        GROUP BY l_orderpriority""",
        "o_orderpriority",
        """SELECT DISTINCT o_orderpriority, o_custkey, record_key FROM orders
        WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'
            AND EXISTS (SELECT * FROM lines WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)""",
    ),
    Question(
        5, "Revenue of local suppliers",
        """SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
            AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
            AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
        GROUP BY n_name ORDER BY revenue DESC""",
        "SDC035", "a join of unit-level tables",
        """SELECT n_name, count(DISTINCT l_custkey) AS customers
        FROM lineitem JOIN supplier ON l_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey
            JOIN region ON n_regionkey = r_regionkey
        WHERE l_nationkey = s_nationkey AND r_name = 'ASIA' AND l_orderdate >= DATE '1994-01-01'
            AND l_orderdate < DATE '1995-01-01'
        GROUP BY n_name""",
        "n_name",
        """SELECT DISTINCT n_name, o_custkey, record_key FROM customer, orders, lines, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
            AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
            AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'""",
    ),
    Question(
        6, "What discounts cost",
        """SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
            AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
        "SDC041", "a condition on a measure; and a sum of products",
        """SELECT count(DISTINCT l_custkey) AS customers FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
            AND l_discount BETWEEN 0.05 AND 0.07 AND l_units < 24""",
        "",
        """SELECT DISTINCT o_custkey, record_key FROM lines, orders
        WHERE l_orderkey = o_orderkey AND l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
            AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    ),
    Question(
        9, "Profit by nation and year",
        """SELECT nation, o_year, sum(amount) AS sum_profit FROM (
            SELECT n_name AS nation, extract(year FROM o_orderdate) AS o_year,
                l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
            FROM part, supplier, lineitem, partsupp, orders, nation
            WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
                AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%') AS profit
        GROUP BY nation, o_year ORDER BY nation, o_year DESC""",
        "SDC035", "a join of unit-level tables",
        """SELECT n_name, year(l_orderdate) AS o_year, count(DISTINCT l_custkey) AS customers
        FROM lineitem JOIN part ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
            JOIN nation ON s_nationkey = n_nationkey
        WHERE p_name LIKE '%green%' GROUP BY n_name, o_year""",
        "n_name, o_year",
        """SELECT DISTINCT n_name, year(o_orderdate) AS o_year, o_custkey, record_key
        FROM part, supplier, lines, partsupp, orders, nation
        WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
            AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%'""",
    ),
    Question(
        12, "Late lines by ship mode and priority of the order",
        """SELECT l_shipmode,
            sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_line_count,
            sum(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low_line_count
        FROM orders, lineitem
        WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
            AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
        GROUP BY l_shipmode ORDER BY l_shipmode""",
        "SDC035", "a join of unit-level tables",
        """SELECT l_shipmode, l_orderpriority IN ('1-URGENT', '2-HIGH') AS high, count(DISTINCT l_custkey) AS customers
        FROM lineitem
        WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
            AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
        GROUP BY l_shipmode, high""",
        "l_shipmode, high",
        """SELECT DISTINCT l_shipmode, o_orderpriority IN ('1-URGENT', '2-HIGH') AS high, o_custkey, record_key
        FROM orders, lines
        WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
            AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'""",
    ),
    Question(
        14, "The share of promoted parts in revenue",
        """SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
            / sum(l_extendedprice * (1 - l_discount)) AS promo_revenue
        FROM lineitem, part
        WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'""",
        "SDC034", "a join by WHERE: write JOIN .. ON; and a sum of products",
        """SELECT p_type LIKE 'PROMO%' AS promoted, count(DISTINCT l_custkey) AS customers
        FROM lineitem JOIN part ON l_partkey = p_partkey
        WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01' GROUP BY promoted""",
        "promoted",
        """SELECT DISTINCT p_type LIKE 'PROMO%' AS promoted, o_custkey, record_key FROM lines, part, orders
        WHERE l_orderkey = o_orderkey AND l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01'
            AND l_shipdate < DATE '1995-10-01'""",
    ),
    Question(
        19, "Revenue of three kinds of parts",
        """SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
        WHERE (p_partkey = l_partkey AND p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
                AND l_quantity >= 1 AND l_quantity <= 11 AND p_size BETWEEN 1 AND 5
                AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
            OR (p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
                AND l_quantity >= 10 AND l_quantity <= 20 AND p_size BETWEEN 1 AND 10
                AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')""",
        "SDC034", "a join by WHERE: write JOIN .. ON; and a sum of products",
        """SELECT count(DISTINCT l_custkey) AS customers FROM lineitem JOIN part ON p_partkey = l_partkey
        WHERE l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON'
            AND (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX') AND l_units BETWEEN 1 AND 30 AND p_size BETWEEN 1 AND 15
                OR p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX') AND l_units BETWEEN 10 AND 50 AND p_size BETWEEN 1 AND 20)""",
        "",
        """SELECT DISTINCT o_custkey, record_key FROM lines, part, orders
        WHERE l_orderkey = o_orderkey AND p_partkey = l_partkey AND l_shipinstruct = 'DELIVER IN PERSON'
            AND l_shipmode IN ('AIR', 'AIR REG') AND (
            (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX') AND l_quantity BETWEEN 1 AND 30 AND p_size BETWEEN 1 AND 15)
            OR (p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX') AND l_quantity BETWEEN 10 AND 50
                AND p_size BETWEEN 1 AND 20))""",
    ),
)  # fmt: skip


@contextlib.contextmanager
def tpch() -> Iterator[tuple[duckdb.DuckDBPyConnection, Guard]]:
    """The database, and a guard over it."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(_TABLES)
        con.execute("FROM sdc_add_record_key('orders', unit := 'o_custkey')").fetchall()
        con.execute(_VIEW)
        con.execute(_POLICIES)
        for name in ("customer", "nation", "region", "part", "supplier", "partsupp"):
            con.execute(f"FROM sdc_public('{name}')").fetchall()
        yield con, guard(con)


def page() -> str:
    """The text of the page."""
    rows = []
    with tpch() as (_, one):
        for question in QUESTIONS:
            try:
                one.sql(question.benchmark)
                found = "answered"
            except Refused as refused:
                found = f"{refused.code}: {question.why}"
            asked = " ".join(question.customers.split()).replace("|", "\\|")
            groups = one.sql(question.customers).num_rows
            rows.append(f"| {question.number} | {question.asks} | {found} | `{asked}` | answered, {groups} rows |\n")
    return _INTRODUCTION + "".join(rows)


_INTRODUCTION = """# TPC-H under the guard

Queries of the TPC-H benchmark, asked of the [guard](guard.md). The units are customers, so `orders` and `lineitem` are
unit-level, under the method `cell_key`; customers, nations, regions, parts and suppliers are public. A customer has many
orders and lines, and tables with several rows for a unit are answered for `count(DISTINCT unit)` only. So the benchmark's
own queries, all of which add up lines, are refused as they are written; beside each stands a question on the same subject that
counts customers, which is answered. `lineitem` is a view that carries what may be asked of the order and of its customer, so that no
unit-level tables have to be joined. The verdicts are those of the tests; `make acceptance` writes this page.

| | about | as the benchmark has it | customers instead | |
|---|---|---|---|---|
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
