"""Apache Superset asks the gateway: a database connection, a dataset, charts, a dashboard, SQL Lab, and a picture of it.

``make superset-test`` runs it: Superset in an environment of its own (.venv-superset), Debian's Chromium for the picture.
Nothing stands in for anything: Superset runs as its users run it, connects through its own form of a connection, and
what it shows is compared with what the guard answers to the same questions in this process.

    python tests/superset/superset_dashboard.py SUPERSET [PICTURE]

SUPERSET is its command; PICTURE the file that gets the picture of the dashboard.
"""

from __future__ import annotations

import base64
import http.cookiejar
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import sdcduck

PASSWORD = "correct horse battery"
ADMIN = "admin"
Json = dict[str, Any]


def make_register(file: Path) -> None:
    """Persons with a date, a public table of regions, and an analyst."""
    with sdcduck.connect(file, secret="the secret of the tests") as con:
        con.execute(
            "CREATE TABLE people AS SELECT id AS person_id, "
            "['North', 'South', 'East', 'West'][1 + id * 7919 % 11 % 4] AS region, ['f', 'm'][1 + id % 2] AS sex, "
            "(20 + id * 7 % 60)::INTEGER AS age, TIMESTAMP '2024-01-01' + to_days((id * 37 % 730)::INTEGER) AS joined, "
            "(1000 + id * 7919 % 4000)::INTEGER AS income FROM range(1, 5001) u(id)"
        )
        con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()
        con.execute(
            "FROM sdc_protect('people', unit := 'person_id', dimensions := ['region', 'sex', 'age', 'joined'], "
            "measures := ['income'])"
        ).fetchall()
        con.execute("CREATE TABLE regions AS SELECT unnest(['North', 'South', 'East', 'West']) AS region, true AS open")
        con.execute("FROM sdc_declare_public('regions')").fetchall()
        con.execute(f"FROM sdc_create_user('ann', '{PASSWORD}')").fetchall()


def wait_for(what: Callable[[], bool], *, seconds: float, why: str) -> None:
    """Wait until something is so."""
    until = time.monotonic() + seconds
    while not what():
        if time.monotonic() > until:
            sys.exit(f"superset-test: {why}")
        time.sleep(0.2)


@contextmanager
def running(command: list[str], told: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that runs for as long as it is needed."""
    with told.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **environment})
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


@contextmanager
def gateway(file: Path) -> Iterator[int]:
    """The port of a gateway to a file."""
    told, log = file.with_suffix(".told"), file.with_suffix(".audit.jsonl")
    command = [sys.executable, "-c", "from sdcduck.cli import main; main()", "serve", str(file), "--port", "0"]
    with running([*command, "--log", str(log), "--user-connections", "100"], told):
        wait_for(lambda: "serving" in told.read_text(), seconds=60, why="the gateway did not start")
        found = re.search(r"serving .*:(\d+), ", told.read_text())
        assert found is not None
        yield int(found[1])


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@contextmanager
def superset(command: str, folder: Path) -> Iterator[Superset]:
    """Superset with an administrator, and nothing of its own shared with any other on this machine."""
    (folder / "superset_config.py").write_text(
        f"SECRET_KEY = {secrets.token_hex(32)!r}\n"
        f"SQLALCHEMY_DATABASE_URI = 'sqlite:///{folder}/superset.db'\n"
        "TALISMAN_ENABLED = False\n"
    )
    environment = {
        "SUPERSET_CONFIG_PATH": str(folder / "superset_config.py"),
        "SUPERSET_HOME": str(folder),
        "FLASK_APP": "superset.app:create_app()",
    }
    who = ["--username", ADMIN, "--firstname", "A", "--lastname", "B", "--email", "a@example.org"]
    for step in (["db", "upgrade"], ["fab", "create-admin", *who, "--password", PASSWORD], ["init"]):
        print(f"superset-test: superset {' '.join(step[:2])}", flush=True)
        done = subprocess.run([command, *step], env={**os.environ, **environment}, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
    port = free_port()
    told = folder / "superset.log"
    with running([command, "run", "-p", str(port), "--with-threads"], told, **environment) as process:
        one = Superset(f"http://127.0.0.1:{port}")
        wait_for(lambda: one.is_up() or process.poll() is not None, seconds=180, why="Superset did not start")
        if process.poll() is not None:
            sys.exit(told.read_text())
        one.log_in()
        yield one


class Superset:
    """Its REST interface, as a user who is logged in."""

    def __init__(self, url: str) -> None:
        self.url = url
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(cookies, urllib.request.ProxyHandler({}))
        self._headers = {"Content-Type": "application/json", "Referer": url}

    def is_up(self) -> bool:
        """Whether it answers."""
        try:
            with self._opener.open(f"{self.url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def log_in(self) -> None:
        """As the administrator."""
        login = {"username": ADMIN, "password": PASSWORD, "provider": "db", "refresh": True}
        self._headers["Authorization"] = f"Bearer {self.post('security/login', login)['access_token']}"
        self._headers["X-CSRFToken"] = self.get("security/csrf_token/")["result"]

    def get(self, path: str) -> Json:
        """What is at a path."""
        return self._call("GET", path, None)

    def post(self, path: str, body: Json) -> Json:
        """What comes of it."""
        return self._call("POST", path, body)

    def put(self, path: str, body: Json) -> Json:
        """What comes of it."""
        return self._call("PUT", path, body)

    def refused(self, path: str, body: Json) -> str:
        """What Superset tells its user of a question that has no answer."""
        try:
            answer = self.post(path, body)
        except Failed as failed:
            return str(failed)
        raise AssertionError(f"an answer: {answer}")

    def _call(self, method: str, path: str, body: Json | None) -> Json:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"{self.url}/api/v1/{path}", data, self._headers, method=method)
        try:
            with self._opener.open(asked, timeout=120) as answer:
                found: Json = json.load(answer)
        except urllib.error.HTTPError as problem:
            raise Failed(f"{method} {path}: {problem.code} {problem.read().decode()}") from None
        return found


class Failed(Exception):
    """Superset answers with an error."""


def rison(value: Json) -> str:
    """A small object as Superset wants it in an address."""
    return "(" + ",".join(f"{name}:'{text}'" for name, text in value.items()) + ")"


def connect(one: Superset, port: int) -> int:
    """Give Superset the connection, after the test of it that its form has a button for."""
    uri = f"postgresql+psycopg2://ann:{urllib.parse.quote(PASSWORD)}@127.0.0.1:{port}/register"
    connection = {"database_name": "register", "sqlalchemy_uri": uri}
    assert one.post("database/test_connection/", connection) == {"message": "OK"}
    wrong = {**connection, "sqlalchemy_uri": uri.replace("ann:", "ann:wrong")}
    assert "password" in one.refused("database/test_connection/", wrong).lower()
    number: int = one.post("database/", {**connection, "expose_in_sqllab": True})["id"]
    schemas = one.get(f"database/{number}/schemas/")["result"]
    assert "public" in schemas, schemas
    found = one.get(f"database/{number}/tables/?q={urllib.parse.quote(rison({'schema_name': 'public'}))}")["result"]
    assert sorted(table["value"] for table in found) == ["people", "regions"], found
    described = one.get(f"database/{number}/table_metadata/?name=people&schema=public")
    comments = {column["name"]: column["comment"] for column in described["columns"]}
    assert comments["income"] == "measure: sum and avg", described
    return number


def dataset(one: Superset, database: int) -> int:
    """A dataset over the protected table, with the columns that the analyst sees."""
    number: int = one.post("dataset/", {"database": database, "schema": "public", "table_name": "people"})["id"]
    columns = {column["column_name"]: column for column in one.get(f"dataset/{number}")["result"]["columns"]}
    assert sorted(columns) == ["age", "income", "joined", "person_id", "region", "sex"], sorted(columns)
    assert columns["joined"]["is_dttm"], columns
    assert columns["income"]["type"] == "INTEGER", columns
    return number


COUNT = {"expressionType": "SQL", "sqlExpression": "COUNT(*)", "label": "n"}


def metric(aggregate: str, column: str) -> Json:
    """A metric as it is clicked together."""
    return {
        "expressionType": "SIMPLE", "aggregate": aggregate, "column": {"column_name": column},
        "label": f"{aggregate}({column})",
    }  # fmt: skip


def chart_data(one: Superset, source: int, **query: Any) -> list[list[Any]]:
    """The rows of a chart."""
    answer = one.post("chart/data", chart_query(source, **query))
    (result,) = answer["result"]
    assert not result["error"], result
    return [[row[name] for name in result["colnames"]] for row in result["data"]]


def chart_query(source: int, **query: Any) -> Json:
    """The message with which a chart asks for its rows."""
    return {
        "datasource": {"id": source, "type": "table"}, "force": True, "result_format": "json", "result_type": "full",
        "queries": [{"row_limit": 1000, "orderby": [], **query}],
    }  # fmt: skip


def ask_as_charts_do(one: Superset, source: int, guard: sdcduck.Guard) -> None:
    """Counts, totals, means, filters, months, parts of the whole: all numbers are those of the guard."""

    def same(shown: list[list[Any]], sql: str) -> None:
        expected = [list(row.values()) for row in guard.sql(sql).to_pylist()]
        assert _plain(shown) == _plain(expected) != [], (sql, shown, expected)

    by_region = chart_data(one, source, columns=["region"], metrics=[COUNT, metric("SUM", "income")])
    same(by_region, "SELECT region, count(*), sum(income) FROM people GROUP BY region")
    mean = chart_data(one, source, columns=["sex"], metrics=[metric("AVG", "income")])
    same(mean, "SELECT sex, avg(income) FROM people GROUP BY sex")
    women = [{"col": "sex", "op": "==", "val": "f"}, {"col": "age", "op": ">=", "val": 40}]
    filtered = chart_data(one, source, columns=["region"], metrics=[COUNT], filters=women)
    same(filtered, "SELECT region, count(*) FROM people WHERE sex = 'f' AND age >= 40 GROUP BY region")
    some = [{"col": "region", "op": "IN", "val": ["North", "South"]}]
    ordered = chart_data(one, source, columns=["age"], metrics=[COUNT], filters=some, orderby=[[COUNT, False]],
                         row_limit=5)  # fmt: skip
    assert len(ordered) == 5, ordered
    assert ordered == sorted(ordered, key=lambda row: -row[1]), ordered
    units = chart_data(one, source, columns=["region"], metrics=[metric("COUNT_DISTINCT", "person_id")])
    same(units, "SELECT region, count(DISTINCT person_id) FROM people GROUP BY region")
    whole = chart_data(one, source, columns=[], metrics=[COUNT])
    same(whole, "SELECT count(*) FROM people")
    for grain, part in (("P1M", "month"), ("P1Y", "year"), ("P3M", "quarter"), ("P1W", "week"), ("P1D", "day")):
        axis = {"label": "joined", "sqlExpression": "joined", "expressionType": "SQL", "columnType": "BASE_AXIS",
                "timeGrain": grain}  # fmt: skip
        line = chart_data(one, source, columns=[axis], metrics=[COUNT], extras={"time_grain_sqla": grain},
                          time_range="2024-03-01 : 2025-03-01", granularity="joined")  # fmt: skip
        same(
            [[_moment(row[0]), row[1]] for row in line],
            f"SELECT strftime(date_trunc('{part}', joined), '%Y-%m-%d'), count(*) FROM people "
            "WHERE joined >= TIMESTAMP '2024-03-01' AND joined < TIMESTAMP '2025-03-01' GROUP BY 1",
        )
    having = chart_data(one, source, columns=["age"], metrics=[COUNT], extras={"having": "COUNT(*) > 80"})
    same(having, "SELECT age, count(*) FROM people GROUP BY age HAVING count(*) > 80")
    axis = {"label": "joined", "sqlExpression": "joined", "expressionType": "SQL", "columnType": "BASE_AXIS",
            "timeGrain": "P1M"}  # fmt: skip
    series = chart_data(one, source, columns=[axis, "region"], metrics=[COUNT], series_columns=["region"], series_limit=2,
                        series_limit_metric=COUNT, extras={"time_grain_sqla": "P1M"}, granularity="joined",
                        time_range="2024-03-01 : 2025-03-01")  # fmt: skip
    spring_on = "joined >= TIMESTAMP '2024-03-01' AND joined < TIMESTAMP '2025-03-01'"
    same(
        [[_moment(row[0]), *row[1:]] for row in series],
        "SELECT strftime(date_trunc('month', joined), '%Y-%m-%d'), region, count(*) FROM people WHERE region IN (SELECT region "
        f"FROM people WHERE {spring_on} GROUP BY region ORDER BY count(*) DESC LIMIT 2) AND {spring_on} GROUP BY 1, 2",
    )
    assert len({row[1] for row in series}) == 2, series
    values = one.get(f"datasource/table/{source}/column/region/values/")["result"]
    assert sorted(values) == ["East", "North", "South", "West"], values
    records = one.refused("chart/data", chart_query(source, columns=["person_id", "income"], metrics=[]))
    assert "SDC0" in records, records
    print(f"superset-test: a chart of records is refused: {records[:300]}")


def _plain(rows: list[list[Any]]) -> list[list[Any]]:
    return sorted([[round(cell, 6) if isinstance(cell, float) else cell for cell in row] for row in rows], key=str)


def _moment(milliseconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(milliseconds / 1000))


def ask_in_sql_lab(one: Superset, database: int, guard: sdcduck.Guard) -> None:
    """A question of one's own, and one that is refused with a code and what to write instead."""
    sql = "SELECT region, sex, count(*) AS n, avg(income) AS mean FROM people GROUP BY 1, 2 ORDER BY 1, 2;"
    asked = {"database_id": database, "schema": "public", "sql": sql, "runAsync": False, "queryLimit": 100}
    answer = one.post("sqllab/execute/", {**asked, "client_id": secrets.token_hex(5)})
    shown = [list(row.values()) for row in answer["data"]]
    assert _plain(shown) == _plain([list(row.values()) for row in guard.sql(sql).to_pylist()]), answer
    wrong = {**asked, "sql": "SELECT * FROM people", "client_id": secrets.token_hex(5)}
    refused = one.refused("sqllab/execute/", wrong)
    assert "SDC045" in refused, refused  # Superset has put a LIMIT to it
    print(f"superset-test: SQL Lab shows: {refused[:300]}")


def dashboard(one: Superset, source: int) -> int:
    """Two charts on a dashboard."""
    bars = {
        "viz_type": "echarts_timeseries_bar", "x_axis": "region", "metrics": [COUNT], "groupby": ["sex"],
        "row_limit": 1000, "show_value": True, "stack": "Stack", "x_axis_sort_asc": True, "show_legend": True,
        "rich_tooltip": True, "truncate_metric": True, "y_axis_format": "SMART_NUMBER",
    }  # fmt: skip
    line = {
        "viz_type": "echarts_timeseries_line", "x_axis": "joined", "time_grain_sqla": "P1M",
        "metrics": [metric("AVG", "income")], "groupby": ["sex"], "row_limit": 1000, "truncate_metric": True,
        "show_legend": True, "y_axis_format": "SMART_NUMBER", "x_axis_time_format": "smart_date",
        "adhoc_filters": [
            {"expressionType": "SIMPLE", "clause": "WHERE", "subject": "joined", "operator": "TEMPORAL_RANGE",
             "comparator": "No filter"}
        ],
    }  # fmt: skip
    number: int = one.post("dashboard/", {"dashboard_title": "People", "published": True})["id"]
    charts = []
    for name, form in (("People by region and sex", bars), ("Mean income by month of entry", line)):
        context = {
            "datasource": {"id": source, "type": "table"}, "force": False, "result_format": "json",
            "result_type": "full", "form_data": {**form, "datasource": f"{source}__table"},
            "queries": [{"columns": form["groupby"], "metrics": form["metrics"], "row_limit": 1000}],
        }  # fmt: skip
        body = {
            "slice_name": name, "viz_type": form["viz_type"], "datasource_id": source, "datasource_type": "table",
            "params": json.dumps({**form, "datasource": f"{source}__table"}), "query_context": json.dumps(context),
            "dashboards": [number],
        }  # fmt: skip
        charts.append((one.post("chart/", body)["id"], name))
    places: Json = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
        "GRID_ID": {"type": "GRID", "id": "GRID_ID", "children": ["ROW-1"], "parents": ["ROOT_ID"]},
        "HEADER_ID": {"type": "HEADER", "id": "HEADER_ID", "meta": {"text": "People"}},
        "ROW-1": {"type": "ROW", "id": "ROW-1", "children": [f"CHART-{chart}" for chart, _ in charts],
                  "parents": ["ROOT_ID", "GRID_ID"], "meta": {"background": "BACKGROUND_TRANSPARENT"}},
    }  # fmt: skip
    for chart, name in charts:
        places[f"CHART-{chart}"] = {
            "type": "CHART", "id": f"CHART-{chart}", "children": [], "parents": ["ROOT_ID", "GRID_ID", "ROW-1"],
            "meta": {"chartId": chart, "width": 6, "height": 50, "sliceName": name},
        }  # fmt: skip
    one.put(f"dashboard/{number}", {"position_json": json.dumps(places)})
    found = one.get(f"dashboard/{number}/charts")["result"]
    assert sorted(chart["slice_name"] for chart in found) == sorted(name for _, name in charts), found
    return number


class Browser:
    """Chromium without a window, through the protocol that all browsers have for tests (WebDriver)."""

    def __init__(self, port: int, folder: Path) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        wait_for(self._is_up, seconds=60, why="chromedriver did not start")
        flags = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--window-size=1200,720",
            f"--user-data-dir={folder}",
        ]  # fmt: skip
        wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": {"args": flags}}}}
        self._url += f"/session/{self._call('POST', '/session', wanted)['sessionId']}"

    def _is_up(self) -> bool:
        try:
            return bool(self._call("GET", "/status")["ready"])
        except OSError:
            return False

    def _call(self, method: str, path: str, body: Json | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"}, method=method)
        with self._opener.open(asked, timeout=120) as answer:
            return json.load(answer)["value"]

    def go(self, url: str) -> None:
        """Show a page."""
        self._call("POST", "/url", {"url": url})

    def run(self, script: str) -> Any:
        """What JavaScript returns in the page."""
        return self._call("POST", "/execute/sync", {"script": script, "args": []})

    def write(self, selector: str, text: str) -> None:
        """Type into what a selector finds."""
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{next(iter(found.values()))}/value", {"text": text})

    def picture(self) -> bytes:
        """The page as it is seen."""
        return base64.b64decode(self._call("GET", "/screenshot"))

    def close(self) -> None:
        """End it."""
        self._call("DELETE", "")


def look(one: Superset, number: int, folder: Path, picture: Path | None) -> None:
    """Log in as a person does, wait until the dashboard has drawn its charts, and take the picture."""
    driver, port = shutil.which("chromedriver"), free_port()
    if driver is None:
        sys.exit("superset-test: without chromedriver there is no picture: apt-get install chromium chromium-driver")
    with running([driver, f"--port={port}"], folder / "chromedriver.log"):
        browser = Browser(port, folder / "chromium")
        try:
            browser.go(f"{one.url}/login/")
            form = "return document.querySelector('input[type=password]') !== null"
            wait_for(lambda: bool(browser.run(form)), seconds=60, why="there is no form for the login")
            browser.write("input:not([type=password]):not([type=hidden])", ADMIN)
            browser.write("input[type=password]", PASSWORD + "\ue007")
            wait_for(lambda: "/login" not in browser.run("return location.href"), seconds=60, why="nobody was let in")
            browser.go(f"{one.url}/superset/dashboard/{number}/?standalone=1")
            drawn = "return document.querySelectorAll('.chart-container canvas').length"
            wait_for(lambda: browser.run(drawn) >= 2, seconds=120, why="the charts were not drawn")
            time.sleep(3)  # they move to where they belong
            text = browser.run("return document.body.innerText")
            assert "rror" not in text, text
            shot = browser.picture()
            assert len(shot) > 20_000, len(shot)
            if picture is not None:
                picture.write_bytes(shot)
                print(f"superset-test: the picture is in {picture}")
        finally:
            browser.close()


def main(command: str, picture: Path | None) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        file = folder / "register.duckdb"
        make_register(file)
        port = stack.enter_context(gateway(file))
        one = stack.enter_context(superset(command, folder))
        guard = sdcduck.open_guard(file)
        database = connect(one, port)
        source = dataset(one, database)
        ask_as_charts_do(one, source, guard)
        ask_in_sql_lab(one, database, guard)
        look(one, dashboard(one, source), folder, picture)
        lines = (folder / "register.audit.jsonl").read_text().count("\n")
        print(f"superset-test: everything as it should be; {lines} questions in the audit log")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None)
