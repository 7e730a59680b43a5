"""Queries of the TPC-H benchmark asked of the guard, where customers are the units.

``python tests/guard/acceptance/tpch.py`` (``make acceptance``) writes ``docs/guard-tpch.md``. The data of the page are a
small database of the same schema and with the same words, from arithmetic on row numbers; those of the benchmark itself are
made by DuckDB's extension, where there is one. Lines carry their customer, so that they can be joined on it.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
from own_numbers import with_own_numbers

import sdcduck
from sdcduck.guard import Guard, Refused, guard

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guard-tpch.md"
NUMBERS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22)

_TABLES = """
CREATE MACRO pick(i, column_, n) AS ((i + 613 * column_) ** 3 * 7919 + i * i * 104729) % 10007 % n;
CREATE TABLE region AS SELECT i AS r_regionkey, ['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'][i + 1] AS r_name
    FROM range(5) t(i);
CREATE TABLE nation AS SELECT i AS n_nationkey, n_name, n_regionkey FROM (SELECT unnest([
        'ALGERIA', 'ARGENTINA', 'BRAZIL', 'CANADA', 'EGYPT', 'ETHIOPIA', 'FRANCE', 'GERMANY', 'INDIA', 'INDONESIA', 'IRAN',
        'IRAQ', 'JAPAN', 'JORDAN', 'KENYA', 'MOROCCO', 'MOZAMBIQUE', 'PERU', 'CHINA', 'ROMANIA', 'SAUDI ARABIA', 'VIETNAM',
        'RUSSIA', 'UNITED KINGDOM', 'UNITED STATES']) AS n_name,
    unnest([0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1]) AS n_regionkey, unnest(range(25)) AS i);
CREATE TABLE customer AS SELECT i AS c_custkey, 'Customer#' || lpad(i::VARCHAR, 9, '0') AS c_name, pick(i, 1, 25)::INTEGER AS c_nationkey,
    ['BUILDING', 'MACHINERY', 'FURNITURE'][(1 + pick(i, 2, 3))::INTEGER] AS c_mktsegment,
    10 + pick(i, 1, 25)::INTEGER || '-' || lpad(i::VARCHAR, 7, '0') AS c_phone,
    (pick(i, 26, 10000) - 999.99)::DECIMAL(15, 2) AS c_acctbal FROM range(1, 401) t(i);
CREATE TABLE supplier AS SELECT i AS s_suppkey, 'Supplier#' || lpad(i::VARCHAR, 9, '0') AS s_name,
    'Street ' || pick(i, 28, 99)::INTEGER AS s_address, pick(i, 3, 25)::INTEGER AS s_nationkey,
    10 + pick(i, 3, 25)::INTEGER || '-' || lpad(i::VARCHAR, 7, '0') AS s_phone,
    (pick(i, 30, 10000) - 999.99)::DECIMAL(15, 2) AS s_acctbal,
    ['quick deposits', 'Customer slyly Complaints', 'even pinto beans'][(1 + pick(i, 31, 3))::INTEGER] AS s_comment
    FROM range(1, 51) t(i);
CREATE TABLE part AS SELECT i AS p_partkey, ['almond ', 'forest '][(1 + pick(i, 29, 2))::INTEGER] || ['green', 'red', 'blue'][(1 + pick(i, 4, 3))::INTEGER] || ' lace' AS p_name,
    'Manufacturer#' || (1 + pick(i, 32, 5))::INTEGER AS p_mfgr, CASE WHEN i > 100 THEN 'STANDARD POLISHED BRASS' ELSE
    ['PROMO BRUSHED TIN', 'ECONOMY ANODIZED STEEL', 'SMALL BRUSHED TIN', 'PROMO PLATED COPPER'][(1 + pick(i, 5, 4))::INTEGER] END AS p_type,
    ['Brand#12', 'Brand#23', 'Brand#34'][(1 + pick(i, 6, 3))::INTEGER] AS p_brand,
    CASE WHEN i > 100 THEN 15 ELSE 1 + pick(i, 7, 10)::INTEGER END AS p_size,
    ['SM CASE', 'SM BOX', 'MED BAG', 'MED BOX', 'LG CASE'][(1 + pick(i, 8, 5))::INTEGER] AS p_container
    FROM range(1, 106) t(i);
CREATE TABLE partsupp AS SELECT p_partkey AS ps_partkey, s_suppkey AS ps_suppkey,
    (1 + pick(p_partkey * 50 + s_suppkey, 27, 9))::INTEGER AS ps_availqty,
    (10 + pick(p_partkey * 50 + s_suppkey, 9, 900) / 10)::DECIMAL(15, 2) AS ps_supplycost FROM part, supplier;
CREATE TABLE orders AS SELECT i AS o_orderkey, (1 + pick(i, 10, 300))::INTEGER AS o_custkey,
    DATE '1992-01-01' + pick(i, 11, 2400)::INTEGER AS o_orderdate,
    ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'][(1 + pick(i, 12, 5))::INTEGER] AS o_orderpriority,
    ['F', 'O', 'P'][(1 + pick(i, 26, 3))::INTEGER] AS o_orderstatus, 0 AS o_shippriority,
    ['special packages requests', 'express requests', 'special deposits', 'ironic accounts'][(1 + pick(i, 27, 4))::INTEGER] AS o_comment
    FROM range(1, 3001) t(i);
CREATE TABLE lineitem AS SELECT o_orderkey AS l_orderkey, n AS l_linenumber, o_custkey AS l_custkey,
    (1 + pick(i, 13, 100))::INTEGER AS l_partkey, (1 + pick(i, 14, 50))::INTEGER AS l_suppkey,
    (1 + pick(i, 15, 50))::DECIMAL(15, 2) AS l_quantity, (1000 + 9.25 * pick(i, 16, 10000))::DECIMAL(15, 2) AS l_extendedprice,
    (pick(i, 17, 11) / 100)::DECIMAL(15, 2) AS l_discount, (pick(i, 18, 9) / 100)::DECIMAL(15, 2) AS l_tax,
    ['A', 'N', 'R'][(1 + pick(i, 19, 3))::INTEGER] AS l_returnflag, ['F', 'O'][(1 + pick(i, 20, 2))::INTEGER] AS l_linestatus,
    o_orderdate + (1 + pick(i, 21, 120))::INTEGER AS l_shipdate, o_orderdate + (30 + pick(i, 22, 60))::INTEGER AS l_commitdate,
    o_orderdate + (2 + pick(i, 21, 120) + pick(i, 23, 30))::INTEGER AS l_receiptdate,
    ['MAIL', 'SHIP', 'AIR', 'REG AIR', 'TRUCK'][(1 + pick(i, 24, 5))::INTEGER] AS l_shipmode,
    ['DELIVER IN PERSON', 'COLLECT COD'][(1 + pick(i, 25, 2))::INTEGER] AS l_shipinstruct
    FROM (SELECT *, o_orderkey * 3 + n AS i FROM orders, range(1, 4) t(n));
"""
UNITS = {"customer": "c_custkey", "orders": "o_custkey", "lineitem": "l_custkey"}
_DIMENSIONS = {
    "customer": ("c_nationkey", "c_mktsegment", "c_phone"),
    "orders": ("o_orderkey", "o_orderstatus", "o_orderdate", "o_orderpriority", "o_shippriority", "o_comment"),
    "lineitem": (
        "l_orderkey", "l_linenumber", "l_partkey", "l_suppkey", "l_quantity", "l_discount", "l_tax", "l_returnflag",
        "l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipmode", "l_shipinstruct",
    ),
}  # fmt: skip
_MEASURES = {"customer": ("c_acctbal",), "orders": (), "lineitem": ("l_extendedprice",)}
_OWNED = {"orders": ", owned := {'o_orderkey': 'order'}", "lineitem": ", owned := {'l_orderkey': 'order'}"}
_PUBLIC = ("nation", "region", "part", "supplier", "partsupp")


@dataclass(frozen=True)
class Question:
    """One query of the benchmark.

    Attributes:
        number: in the benchmark.
        asks: what it is about.
        benchmark: its text.
        code: of its refusal; empty where it is answered as it is.
        why: it is refused.
        instead: the nearest text that is answered; empty where that is the benchmark's.
        changed: what is different there.
        direct: the protected answer, computed another way: what every customer has in each group first; empty where a
            query is about public tables alone.
    """

    number: int
    asks: str
    benchmark: str
    direct: str = ""
    code: str = ""
    why: str = ""
    instead: str = ""
    changed: str = ""

    @property
    def answered(self) -> str:
        """The text that is answered."""
        return self.instead or self.benchmark


def _rows(n: str = "n") -> str:
    """Rows, from those of each customer: noise as of the customers, times the most rows of one, and that of a sum."""
    return f"rows_of_units({n}, key)"


def _by_figure(keys: str, figure: str) -> str:
    """Sums of `lines` by what is protected for each value of a figure: of rows, and of the price, times the figure."""
    shown = keys.split(" AS ")[-1]
    return f"""(SELECT {shown}, fsum(figure * n) AS figures, sum(n) AS n, fsum(figure * price) AS total FROM (
        SELECT {shown}, figure, {_rows()} AS n, sum_of_l_extendedprice(price, key, repeated := sum(n) / count(*)) AS price FROM (
            SELECT {keys}, ({figure})::DOUBLE AS figure, customer, key, sum(price) AS price, count(*) AS n FROM lines GROUP BY ALL)
        GROUP BY ALL HAVING sdc_count(key) > 0) GROUP BY ALL)"""


QUESTIONS = (
    Question(
        1, "Pricing summary by return flag and line status",
        """SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
            sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
            sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, avg(l_quantity) AS avg_qty,
            avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
        FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
        f"""WITH lines AS (SELECT l_returnflag, l_linestatus, l_custkey AS customer, record_key AS key, l_extendedprice AS price,
                l_quantity, l_discount, l_tax FROM lineitem WHERE l_shipdate <= DATE '1998-09-02')
        SELECT l_returnflag, l_linestatus, quantity.figures, price, cost.total, charge.total, quantity.figures / quantity.n,
            flags.mean, discount.figures / discount.n, flags.n
        FROM (SELECT l_returnflag, l_linestatus, sum_of_l_extendedprice(price, key, repeated := sum(n) / count(*)) AS price,
                mean_of_l_extendedprice(price, key, {_rows()}, repeated := sum(n) / count(*)) AS mean, {_rows()} AS n
            FROM (SELECT l_returnflag, l_linestatus, key, sum(price) AS price, count(*) AS n FROM lines GROUP BY l_returnflag, l_linestatus, customer, key)
            GROUP BY ALL HAVING sdc_count(key) > 0) flags
        JOIN {_by_figure("l_returnflag, l_linestatus", "l_quantity")} quantity USING (l_returnflag, l_linestatus)
        JOIN {_by_figure("l_returnflag, l_linestatus", "1 - l_discount")} cost USING (l_returnflag, l_linestatus)
        JOIN {_by_figure("l_returnflag, l_linestatus", "(1 - l_discount)::DOUBLE * (1 + l_tax)::DOUBLE")} charge
            USING (l_returnflag, l_linestatus)
        JOIN {_by_figure("l_returnflag, l_linestatus", "l_discount")} discount USING (l_returnflag, l_linestatus)""",
    ),
    Question(
        2, "The cheapest suppliers of a part",
        """SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        FROM part, supplier, partsupp, nation, region
        WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS'
            AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
            AND ps_supplycost = (SELECT min(ps_supplycost) FROM partsupp, supplier, nation, region
                WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
                    AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
        ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    ),
    Question(
        3, "The unshipped orders of largest revenue",
        """SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
            AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10""",
        f"""WITH lines AS (SELECT l_orderkey, o_orderdate, o_shippriority, l_custkey AS customer, l.record_key AS key,
                l_extendedprice AS price, l_discount
            FROM lineitem l JOIN orders ON l_orderkey = o_orderkey
            WHERE l_custkey IN (SELECT c_custkey FROM customer WHERE c_mktsegment = 'BUILDING')
                AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15')
        SELECT l_orderkey, total AS revenue, o_orderdate, o_shippriority
        FROM (SELECT l_orderkey, o_orderdate, o_shippriority
            FROM (SELECT DISTINCT l_orderkey, o_orderdate, o_shippriority, customer, key FROM lines) GROUP BY ALL HAVING sdc_count(key) > 0)
        LEFT JOIN {_by_figure("l_orderkey, o_orderdate, o_shippriority", "1 - l_discount")}
            USING (l_orderkey, o_orderdate, o_shippriority)
        ORDER BY revenue DESC, o_orderdate LIMIT 10""",
    ),
    Question(
        4, "Orders with a late line, by priority",
        """SELECT o_orderpriority, count(*) AS order_count FROM orders
        WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-07-01' + INTERVAL '3' MONTH
            AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority ORDER BY o_orderpriority""",
        f"""SELECT o_orderpriority, {_rows()}
        FROM (SELECT o_orderpriority, o.record_key AS key, count(DISTINCT o_orderkey) AS n
            FROM orders o JOIN lineitem ON l_orderkey = o_orderkey
            WHERE o_orderdate BETWEEN DATE '1993-07-01' AND DATE '1993-09-30' AND l_commitdate < l_receiptdate
            GROUP BY o_orderpriority, o_custkey, o.record_key)
        GROUP BY ALL HAVING sdc_count(key) > 0""",
    ),
    Question(
        5, "Revenue of local suppliers",
        """SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
            AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
            AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01'
            AND o_orderdate < DATE '1994-01-01' + INTERVAL '1' YEAR
        GROUP BY n_name ORDER BY revenue DESC""",
        f"""WITH lines AS (SELECT n_name, l_custkey AS customer, l.record_key AS key, l_extendedprice AS price, l_discount
            FROM lineitem l JOIN orders ON l_orderkey = o_orderkey JOIN customer ON c_custkey = o_custkey
                JOIN supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey JOIN nation ON s_nationkey = n_nationkey
            WHERE n_regionkey = (SELECT r_regionkey FROM region WHERE r_name = 'ASIA') AND year(o_orderdate) = 1994)
        SELECT n_name, total AS revenue
        FROM (SELECT n_name FROM (SELECT DISTINCT n_name, customer, key FROM lines) GROUP BY ALL HAVING sdc_count(key) > 0)
        LEFT JOIN {_by_figure("n_name", "1 - l_discount")} USING (n_name) ORDER BY revenue DESC""",
    ),
    Question(
        6, "What discounts cost",
        """SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
            AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24""",
        f"""WITH lines AS (SELECT l_custkey AS customer, record_key AS key, l_extendedprice AS price, l_discount FROM lineitem
            WHERE year(l_shipdate) = 1994 AND l_discount IN (0.05, 0.06, 0.07) AND l_quantity < 24)
        SELECT total FROM {_by_figure("1 AS one", "l_discount")}""",
    ),
    Question(
        7, "Revenue between two nations",
        """SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue FROM (
            SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, extract(year FROM l_shipdate) AS l_year,
                l_extendedprice * (1 - l_discount) AS volume
            FROM supplier, lineitem, orders, customer, nation n1, nation n2
            WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
                AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
                AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
                AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31') AS shipping
        GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year""",
        f"""WITH lines AS (SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, year(l_shipdate) AS l_year,
                l_custkey AS customer, l.record_key AS key, l_extendedprice AS price, l_discount
            FROM lineitem l JOIN customer ON c_custkey = l_custkey JOIN supplier ON s_suppkey = l_suppkey
                JOIN nation n1 ON n1.n_nationkey = s_nationkey JOIN nation n2 ON n2.n_nationkey = c_nationkey
            WHERE year(l_shipdate) IN (1995, 1996) AND (n1.n_name, n2.n_name) IN (('FRANCE', 'GERMANY'), ('GERMANY', 'FRANCE')))
        SELECT supp_nation, cust_nation, l_year, total
        FROM (SELECT supp_nation, cust_nation, l_year FROM (SELECT DISTINCT supp_nation, cust_nation, l_year, customer, key FROM lines)
            GROUP BY ALL HAVING sdc_count(key) > 0)
        LEFT JOIN {_by_figure("supp_nation, cust_nation, l_year", "1 - l_discount")} USING (supp_nation, cust_nation, l_year)""",
    ),
    Question(
        8, "The share of a nation in the market of a region",
        """SELECT o_year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) AS mkt_share FROM (
            SELECT extract(year FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume,
                n2.n_name AS nation
            FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
            WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
                AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'
                AND s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
                AND p_type = 'ECONOMY ANODIZED STEEL') AS all_nations
        GROUP BY o_year ORDER BY o_year""",
        f"""WITH every AS (SELECT year(o_orderdate) AS o_year, l_custkey AS customer, l.record_key AS key,
                l_extendedprice AS price, l_discount, n2.n_name AS nation
            FROM lineitem l JOIN orders ON o_orderkey = l_orderkey JOIN customer ON c_custkey = o_custkey
                JOIN nation n1 ON n1.n_nationkey = c_nationkey JOIN region ON r_regionkey = n1.n_regionkey
                JOIN part ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
                JOIN nation n2 ON n2.n_nationkey = s_nationkey
            WHERE r_name = 'AMERICA' AND year(o_orderdate) IN (1995, 1996) AND p_type = 'ECONOMY ANODIZED STEEL'),
        whole AS (WITH lines AS (FROM every) SELECT o_year, total FROM {_by_figure("o_year", "1 - l_discount")}),
        part_ AS (WITH lines AS (FROM every WHERE nation = 'BRAZIL') SELECT o_year, total FROM {_by_figure("o_year", "1 - l_discount")})
        SELECT o_year, coalesce(part_.total, 0) / whole.total
        FROM (SELECT o_year FROM (SELECT DISTINCT o_year, customer, key FROM every) GROUP BY ALL HAVING sdc_count(key) > 0)
            LEFT JOIN whole USING (o_year) LEFT JOIN part_ USING (o_year)""",
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
        f"""WITH lines AS (SELECT n_name, year(o_orderdate) AS o_year, l_custkey AS customer, l.record_key AS key,
                l_extendedprice AS price, l_discount, ps_supplycost * l_quantity AS cost
            FROM lineitem l JOIN part ON p_partkey = l_partkey JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
                JOIN supplier ON s_suppkey = l_suppkey JOIN nation ON s_nationkey = n_nationkey JOIN orders ON o_orderkey = l_orderkey
            WHERE p_name LIKE '%green%')
        SELECT n_name, o_year, revenue.total - costs.figures
        FROM (SELECT n_name, o_year FROM (SELECT DISTINCT n_name, o_year, customer, key FROM lines) GROUP BY ALL HAVING sdc_count(key) > 0)
        LEFT JOIN {_by_figure("n_name, o_year", "1 - l_discount")} revenue USING (n_name, o_year)
        LEFT JOIN {_by_figure("n_name, o_year", "cost")} costs USING (n_name, o_year)""",
    ),
    Question(
        11, "Parts that are worth most in stock",
        """SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation
        WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
        GROUP BY ps_partkey
        HAVING sum(ps_supplycost * ps_availqty) > (SELECT sum(ps_supplycost * ps_availqty) * 0.0001
            FROM partsupp, supplier, nation
            WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
        ORDER BY value DESC""",
    ),
    Question(
        12, "Late lines by ship mode and priority of the order",
        """SELECT l_shipmode,
            sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count,
            sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count
        FROM orders, lineitem
        WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
            AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01'
            AND l_receiptdate < DATE '1994-01-01' + INTERVAL '1' YEAR
        GROUP BY l_shipmode ORDER BY l_shipmode""",
        f"""SELECT l_shipmode, {_rows("high")}, {_rows("low")}
        FROM (SELECT l_shipmode, l.record_key AS key, count(*) FILTER (o_orderpriority IN ('1-URGENT', '2-HIGH')) AS high,
                count(*) FILTER (o_orderpriority NOT IN ('1-URGENT', '2-HIGH')) AS low
            FROM lineitem l JOIN orders ON o_orderkey = l_orderkey
            WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_shipdate < l_commitdate AND l_commitdate < l_receiptdate
                AND year(l_receiptdate) = 1994
            GROUP BY l_shipmode, l_custkey, l.record_key)
        GROUP BY ALL HAVING sdc_count(key) > 0""",
    ),
    Question(
        13, "Customers by how many orders they have",
        """SELECT c_count, count(*) AS custdist FROM (
            SELECT c_custkey, count(o_orderkey)
            FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
            GROUP BY c_custkey) AS c_orders (c_custkey, c_count)
        GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
        """SELECT n, sdc_count(record_key) AS customers FROM (
            SELECT record_key, (SELECT count(*) FROM orders WHERE o_custkey = c_custkey
                AND NOT regexp_matches(o_comment, 'special.*requests')) AS n FROM customer)
        GROUP BY n HAVING sdc_count(record_key) > 0""",
    ),
    Question(
        14, "The share of promoted parts in revenue",
        """SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
            / sum(l_extendedprice * (1 - l_discount)) AS promo_revenue
        FROM lineitem, part
        WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01'
            AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH""",
        f"""WITH every AS (SELECT l_custkey AS customer, record_key AS key, l_extendedprice AS price, l_discount, p_type
            FROM lineitem JOIN part ON l_partkey = p_partkey WHERE l_shipdate BETWEEN DATE '1995-09-01' AND DATE '1995-09-30')
        SELECT 100 * (WITH lines AS (FROM every WHERE starts_with(p_type, 'PROMO')) SELECT total FROM {_by_figure("1 AS one", "1 - l_discount")})
            / (WITH lines AS (FROM every) SELECT total FROM {_by_figure("1 AS one", "1 - l_discount")})""",
    ),
    Question(
        15, "The supplier with the largest revenue",
        """WITH revenue (supplier_no, total_revenue) AS (
            SELECT l_suppkey, sum(l_extendedprice * (1 - l_discount)) FROM lineitem
            WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-01-01' + INTERVAL '3' MONTH
            GROUP BY l_suppkey)
        SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, revenue
        WHERE s_suppkey = supplier_no AND total_revenue = (SELECT max(total_revenue) FROM revenue)
        ORDER BY s_suppkey""",
        f"""WITH lines AS (SELECT l_suppkey, l_custkey AS customer, record_key AS key, l_extendedprice AS price, l_discount
            FROM lineitem WHERE year(l_shipdate) = 1996 AND month(l_shipdate) <= 3),
        revenue AS (FROM {_by_figure("l_suppkey", "1 - l_discount")}
            SEMI JOIN (SELECT l_suppkey FROM (SELECT DISTINCT l_suppkey, customer, key FROM lines) GROUP BY ALL HAVING sdc_count(key) > 0)
            USING (l_suppkey))
        SELECT s_suppkey, s_name, s_address, s_phone, total FROM revenue JOIN supplier ON s_suppkey = l_suppkey
        WHERE total = (SELECT max(total) FROM revenue)""",
    ),
    Question(
        16, "Suppliers of kinds of parts",
        """SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part
        WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
            AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
            AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
        GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
    ),
    Question(
        17, "Revenue lost without orders of small quantities",
        """SELECT sum(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part
        WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX'
            AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)""",
        f"""WITH lines AS (SELECT l_partkey, l_custkey AS customer, record_key AS key, l_extendedprice AS price, l_quantity FROM lineitem),
        means AS (SELECT l_partkey, figures / n AS mean
            FROM {_by_figure("l_partkey", "l_quantity")}
            SEMI JOIN (SELECT l_partkey FROM (SELECT DISTINCT l_partkey, customer, key FROM lines) GROUP BY ALL HAVING sdc_count(key) > 0)
            USING (l_partkey))
        SELECT sum_of_l_extendedprice(price, key, repeated := sum(n) / count(*)) / 7 FROM (
            SELECT customer, key, sum(price) AS price, count(*) AS n FROM lines JOIN part ON p_partkey = l_partkey
                JOIN means USING (l_partkey)
            WHERE p_brand = 'Brand#23' AND p_container = 'MED BOX' AND l_quantity::DOUBLE < 0.2 * mean GROUP BY ALL)""",
    ),
    Question(
        19, "Revenue of three kinds of parts",
        """SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
        WHERE (p_partkey = l_partkey AND p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
                AND l_quantity >= 1 AND l_quantity <= 1 + 10 AND p_size BETWEEN 1 AND 5
                AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
            OR (p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
                AND l_quantity >= 10 AND l_quantity <= 10 + 10 AND p_size BETWEEN 1 AND 10
                AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
            OR (p_partkey = l_partkey AND p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
                AND l_quantity >= 20 AND l_quantity <= 20 + 10 AND p_size BETWEEN 1 AND 15
                AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')""",
        f"""WITH lines AS (SELECT l_custkey AS customer, record_key AS key, l_extendedprice AS price, l_discount
            FROM lineitem JOIN part ON p_partkey = l_partkey JOIN (FROM (VALUES
                ('Brand#12', 'SM (CASE|BOX|PACK|PKG)', 1, 5), ('Brand#23', 'MED (BAG|BOX|PKG|PACK)', 10, 10),
                ('Brand#34', 'LG (CASE|BOX|PACK|PKG)', 20, 15)) kinds(brand, container, least, size))
                ON p_brand = brand AND regexp_full_match(p_container, container) AND l_quantity BETWEEN least AND least + 10
                AND p_size <= size
            WHERE starts_with(l_shipmode, 'AIR') AND l_shipinstruct = 'DELIVER IN PERSON')
        SELECT total FROM {_by_figure("1 AS one", "1 - l_discount")}""",
    ),
    Question(
        20, "Suppliers with more in stock than half of what was sold",
        """SELECT s_name, s_address FROM supplier, nation
        WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp
                WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
                    AND ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM lineitem
                        WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_shipdate >= DATE '1994-01-01'
                            AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR))
            AND s_nationkey = n_nationkey AND n_name = 'CANADA'
        ORDER BY s_name""",
        f"""WITH lines AS (SELECT l_partkey, l_suppkey, l_custkey AS customer, record_key AS key, l_extendedprice AS price, l_quantity
            FROM lineitem WHERE year(l_shipdate) = 1994),
        sold AS (SELECT l_partkey, l_suppkey, figures FROM {_by_figure("l_partkey, l_suppkey", "l_quantity")}
            SEMI JOIN (SELECT l_partkey, l_suppkey FROM (SELECT DISTINCT l_partkey, l_suppkey, customer, key FROM lines)
                GROUP BY ALL HAVING sdc_count(key) > 0) USING (l_partkey, l_suppkey))
        SELECT DISTINCT s_name, s_address FROM sold JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
            JOIN part ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey JOIN nation ON n_nationkey = s_nationkey
        WHERE n_name = 'CANADA' AND starts_with(p_name, 'forest')
            AND ps_availqty > 0.5 * figures""",
    ),
    Question(
        21, "Suppliers who alone kept an order waiting",
        """SELECT s_name, count(*) AS numwait FROM supplier, lineitem l1, orders, nation
        WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
            AND l1.l_receiptdate > l1.l_commitdate
            AND EXISTS (SELECT * FROM lineitem l2
                WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
            AND NOT EXISTS (SELECT * FROM lineitem l3
                WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
                    AND l3.l_receiptdate > l3.l_commitdate)
            AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA'
        GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100""",
        f"""WITH waiting AS (SELECT l_orderkey AS waiting FROM lineitem GROUP BY l_orderkey
            HAVING count(DISTINCT l_suppkey) > 1 AND count(DISTINCT l_suppkey) FILTER (l_receiptdate > l_commitdate) = 1)
        SELECT s_name, {_rows()} AS numwait FROM (SELECT s_name, l.record_key AS key, count(*) AS n
            FROM lineitem l JOIN waiting ON waiting = l_orderkey JOIN orders ON o_orderkey = l_orderkey
                JOIN supplier ON s_suppkey = l_suppkey JOIN nation ON s_nationkey = n_nationkey
            WHERE o_orderstatus = 'F' AND l_receiptdate > l_commitdate AND n_name = 'SAUDI ARABIA'
            GROUP BY s_name, l_custkey, l.record_key)
        GROUP BY s_name HAVING sdc_count(key) > 0 ORDER BY numwait DESC, s_name LIMIT 100""",
    ),
    Question(
        22, "Customers without orders, by country",
        """SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal FROM (
            SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal FROM customer
            WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
                AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00
                    AND substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17'))
                AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale
        GROUP BY cntrycode ORDER BY cntrycode""",
        """SELECT code, sdc_count(record_key), sum_of_c_acctbal(c_acctbal, record_key) FROM (
            SELECT left(c_phone, 2) AS code, record_key, c_acctbal FROM customer ANTI JOIN orders ON o_custkey = c_custkey
            WHERE left(c_phone, 2)::INTEGER IN (13, 17, 18, 23, 29, 30, 31))
        GROUP BY code HAVING sdc_count(record_key) > 0""",
        "SDC041", "the balance of each customer, a measure, is compared with the mean",
        """SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal FROM (
            SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal FROM customer
            WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
                AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale
        GROUP BY cntrycode ORDER BY cntrycode""",
        "all customers without orders, whatever their balance",
    ),
)  # fmt: skip


_DBGEN = """
import sys, duckdb, duckdb_extension_tpch as found
from pathlib import Path
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.execute(f"LOAD '{next(Path(found.__path__[0]).rglob('*.duckdb_extension'))}'")
con.execute("CALL dbgen(sf = 0.01)")
for name in sys.argv[2:]:
    shown = "l.*, o_custkey AS l_custkey FROM lineitem l JOIN orders ON l_orderkey = o_orderkey" if name == "lineitem" else f"* FROM {name}"
    con.execute(f"COPY (SELECT {shown}) TO '{sys.argv[1]}/{name}.parquet'")
"""


def dbgen(python: str, folder: Path) -> None:
    """The tables of the benchmark at scale 0.01, as Parquet files that every version of DuckDB reads.

    Args:
        python: an interpreter that has PyPI's duckdb-extension-tpch, and the version of DuckDB that it is for.
    """
    subprocess.run([python, "-c", _DBGEN, str(folder), *UNITS, *_PUBLIC], check=True, timeout=300)


@contextlib.contextmanager
def tpch(made: Path | None = None) -> Iterator[tuple[duckdb.DuckDBPyConnection, Guard]]:
    """The database, and a guard over it: the small one, or that of files which `dbgen` made."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        if made is None:
            con.execute(_TABLES)
        else:
            for name in (*UNITS, *_PUBLIC):
                con.execute(f"CREATE TABLE {name} AS FROM read_parquet('{made}/{name}.parquet')")
        for name, unit in UNITS.items():
            con.execute(f"FROM sdc_add_record_key('{name}', unit := '{unit}')").fetchall()
            con.execute(
                f"FROM sdc_protect('{name}', unit := '{unit}', dimensions := {list(_DIMENSIONS[name])}, "
                f"measures := {list(_MEASURES[name])}, population := 'customers'{_OWNED.get(name, '')})"
            ).fetchall()
        for name in _PUBLIC:
            con.execute(f"FROM sdc_declare_public('{name}')").fetchall()
        with_own_numbers(con, "l_extendedprice", "c_acctbal")
        yield con, guard(con)


def page() -> str:
    """The text of the page."""
    overview, queries = [], []
    with tpch() as (_, one):
        for question in QUESTIONS:
            rows = one.sql(question.answered).num_rows
            count = f"{rows} row{'s' if rows > 1 else ''}"
            try:
                one.sql(question.benchmark)
                found, changed = f"answered, {count}", ""
            except Refused as refused:
                found, changed = f"{refused.code}: {question.why}", f"{question.changed}; {count}"
            overview.append(f"| {question.number} | {question.asks} | {found} | {changed} |\n")
            lines = "\n".join(line.removeprefix("        ") for line in question.answered.splitlines())
            # In capitals: the tests of the documentation run blocks of "sql", and these tables are not there.
            queries.append(f"\n## Q{question.number}. {question.asks}\n\n```SQL\n{lines}\n```\n")
    return _INTRODUCTION + "".join(overview) + "".join(queries)


_INTRODUCTION = """# TPC-H under the guard

Queries of the TPC-H benchmark, asked of the [guard](guard.md) over tables of that schema. The units are customers.
`customer`, `orders` and `lineitem` are unit-level, of one `population` and under the method `cell_key`; nations, regions,
parts and suppliers are public. The extended price of a line and the balance of a customer are measures; quantity, discount
and tax of a line are dimensions, as queries compare them and multiply by them. A customer has many orders and lines, which
are brought together before a number is protected.

The benchmark says nothing of units. So `lineitem` has a column more, `l_custkey`, and both tables say that an order is of
one customer: `owned := {'o_orderkey': 'order'}`. What a query joins on it is joined on the customer, too. The keys of orders
are dimensions, because queries join and
group by them: somebody who knows the key of an order can ask about it alone, so this is no policy for data with secrets.

Of the 22 queries 10 and 18 are not here: they list single customers, which no method answers. 2, 11 and 16 are about public tables alone.
The table has what becomes of each other query as the benchmark has it, with its validation parameters, and what has to be
written in place of those that are refused. Below it are the queries as they are answered. The verdicts are those of
the tests, which also compute every answer in another way, on a small database, whose rows are told here, and on the data
of the benchmark at scale 0.01, from DuckDB's extension `tpch`; `make acceptance` writes this page.

| | about | as the benchmark has it | answered with |
|---|---|---|---|
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
