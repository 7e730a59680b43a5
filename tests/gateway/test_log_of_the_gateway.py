"""The audit log as an analyst would like it: without a question, a value, or one's name."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

import pytest
from served_gateway import Served
from test_flight import Plain

psycopg = pytest.importorskip("psycopg")
flight = pytest.importorskip("pyarrow.flight")

PIVOT = "PIVOT people ON sex USING count(*) GROUP BY region"
REFUSED = "SELECT income FROM people"


def test_what_explain_asks_is_asked_by_who_sent_it(served: Served) -> None:
    """A PIVOT asks for its values first, also where it is only to be explained: that was nobody's question."""
    before = len(served.asked())
    with psycopg.connect(**served.options, autocommit=True) as con:
        for text in (PIVOT, REFUSED):
            con.execute(f"EXPLAIN (FORMAT JSON) {text}").fetchall()
    client = Plain(served)
    for text in (PIVOT, REFUSED):
        client.rows(client.info(f"EXPLAIN {text}")).read_all()
    lines = served.asked()[before:]
    assert {line["user"] for line in lines} == {"ann"}
    asked = [("values" if "DISTINCT sex" in line["query"] else line["query"], line["verdict"]) for line in lines]
    assert asked == 2 * [("values", "answered"), (REFUSED, "SDC040")]


def test_who_may_write_no_more_has_nothing_explained(serve: Callable[..., Served]) -> None:
    served = serve("--log-quota", "1")
    with psycopg.connect(**served.options, autocommit=True) as con:
        with pytest.raises(psycopg.Error, match="SDC095"):
            for turn in range(400):
                con.execute(f"SELECT count(*) AS n, '{'é' * 3_200}{turn}' AS t FROM people")
        with pytest.raises(psycopg.Error, match="SDC095"):
            con.execute(f"EXPLAIN {PIVOT}")


@pytest.mark.parametrize("binary", [False, True])
def test_values_of_parameters_are_written_down(served: Served, binary: bool) -> None:
    before = len(served.asked())
    with psycopg.connect(**served.options, autocommit=True) as con, con.cursor(binary=binary) as cursor:
        cursor.execute("SELECT count(*) FROM people WHERE age > %s AND region = %s", [30, "North\n\x1b[1m"])
        cursor.execute("SELECT count(*) FROM people WHERE age = ANY(%s)", [[31, 32]])
        with contextlib.suppress(psycopg.Error):  # refused where psycopg asks for the columns: without values
            cursor.execute("SELECT income FROM people WHERE sex = %s", ["f"])
        cursor.execute("SELECT count(*) FROM people")
    told = [json.loads(line.get("parameters", "null")) for line in served.asked()[before:]]
    assert told == [{"1": 30, "2": "North\n\x1b[1m"}, {"2": 31, "3": 32}, None, None]


def test_values_of_parameters_are_written_down_over_flight(served: Served) -> None:
    adbc = pytest.importorskip("adbc_driver_flightsql.dbapi")
    before = len(served.asked())
    login = {"username": served.user, "password": served.options["password"]}
    with adbc.connect(f"grpc://127.0.0.1:{served.flight}", db_kwargs=login) as con, con.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM people WHERE age > ?", (30,))
        cursor.fetchall()
    assert [json.loads(line["parameters"]) for line in served.asked()[before:]] == [{"1": 30}]
