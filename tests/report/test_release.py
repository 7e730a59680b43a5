"""The report of a release: what every function says of it in one table, and as a page with pictures."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pytest
from interrupting import again_and_again
from typer.testing import CliRunner

import sdcduck
from sdcduck.cli import app

KEYS, TARGETS = ["age", "region"], ["income"]
LONG = 60.0  # seconds: a machine that others use too
ASKED = f"holdout := 'others', keys := {KEYS}, sensitive := {TARGETS}"


def fill(con: duckdb.DuckDBPyConnection) -> None:
    """Originals, other people, a copy with a tenth of the incomes rounded, and a table made of other people's records."""
    con.execute("""
        CREATE TABLE everybody AS SELECT i AS id, 20 + i * 7919 % 1009 % 40 AS age, 'r' || i * 104729 % 997 % 4 AS region,
            500 + i * 15485863 % 30011 % 4000 AS income, i * 31 % 7 > 2 AS married FROM range(1200) t(i);
        CREATE TABLE originals AS SELECT * EXCLUDE id FROM everybody WHERE id < 400;
        CREATE TABLE others AS SELECT * EXCLUDE id FROM everybody WHERE id BETWEEN 400 AND 799;
        CREATE TABLE copied AS SELECT age, region, CASE WHEN rowid % 10 = 0 THEN income // 50 * 50 ELSE income END AS income,
            married FROM originals;
        CREATE TABLE fresh AS SELECT * EXCLUDE id FROM everybody WHERE id >= 800;
    """)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect() as connection:
        fill(connection)
        yield connection


def rows(con: duckdb.DuckDBPyConnection, arguments: str) -> list[dict[str, Any]]:
    cursor = con.execute(f"FROM sdc_assess({arguments})")
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def one(found: list[dict[str, Any]], measure: str, about: str | None = None) -> dict[str, Any]:
    [row] = [row for row in found if row["measure"] == measure and (about is None or row["about"] == about)]
    return row


def test_a_copy_and_a_table_of_other_people(con: duckdb.DuckDBPyConnection) -> None:
    copied, fresh = (rows(con, f"'originals', '{name}', {ASKED}") for name in ("copied", "fresh"))
    assert list(dict.fromkeys(row["section"] for row in copied)) == [
        "re-identification", "copies", "attributes", "attacks", "utility",
    ]  # fmt: skip
    assert not [row for row in (*copied, *fresh) if "not measured" in (row["warning"] or "")]
    equal = "share of records that equal an original"
    assert one(copied, equal)["value"] > 0.85
    assert one(fresh, equal)["value"] == pytest.approx(one(fresh, equal)["baseline"], abs=0.01)
    closer = "share closer to the originals than to the holdout"
    assert one(copied, closer)["low"] > 0.8
    assert one(fresh, closer)["low"] < 0.5 < one(fresh, closer)["high"]
    inferred = "inference, risk over the control"
    assert one(copied, inferred, "income")["low"] > 0.3
    assert one(fresh, inferred, "income")["low"] < 0.05
    accurate = "accuracy of tables of 2 columns, mean"
    assert one(copied, accurate)["value"] > one(copied, accurate)["baseline"]


def test_the_numbers_are_those_of_the_functions(con: duckdb.DuckDBPyConnection) -> None:
    found = rows(con, f"'originals', 'copied', {ASKED}, seed := 3")
    both = "'originals', 'copied'"
    for measure, about, column, call in (
        ("mean risk, if it is known who is in the data", "release", "mean_risk", f"sdc_k_anonymity('copied', {KEYS})"),
        ("farthest class (t)", "income", "t", f"sdc_t_closeness('copied', {KEYS}, 'income')"),
        ("distance to the closest original, median", None, "median", f"sdc_dcr({both})"),
        ("told rightly where all records with the keys agree (TCAP)", "income", "tcap",
         f"sdc_disclosure({both}, {KEYS}, {TARGETS})"),
        ("inference, success", "income", "attack_rate",
         f"sdc_attack_inference({both}, 'others', sensitive := 'income', keys := {KEYS}, seed := 3)"),
        ("accuracy of tables of 2 columns, mean", None, "accuracy", f"sdc_accuracy({both})"),
    ):  # fmt: skip
        [(wanted,)] = con.execute(f"SELECT {column} FROM {call}").fetchall()
        row = one(found, measure, about)
        assert row["value"] == pytest.approx(wanted, rel=1e-12), measure
        assert row["function"] == call.split("(")[0]
    assert rows(con, f"'originals', 'copied', {ASKED}, seed := 3") == found


def test_what_is_not_given_is_not_asked(con: duckdb.DuckDBPyConnection) -> None:
    sections = {row["section"] for row in rows(con, "'originals', 'copied'")}
    assert sections == {"copies", "utility"}
    sections = {row["section"] for row in rows(con, f"'originals', 'copied', keys := {KEYS}")}
    assert sections == {"copies", "utility", "re-identification"}
    one_column = rows(con, "'originals', 'copied', holdout := 'others', columns := ['income']")
    assert {row["section"] for row in one_column} == {"copies", "attacks", "utility"}
    assert not [row for row in one_column if "2 columns" in row["measure"]]


def test_what_cannot_be_measured_is_a_row_that_says_why(con: duckdb.DuckDBPyConnection) -> None:
    """A constant, and a single record: many functions have nothing to say, and none keeps the others from speaking."""
    con.execute("CREATE OR REPLACE TABLE lonely AS FROM originals LIMIT 1")
    found = rows(con, f"'originals', 'lonely', {ASKED}")
    assert one(found, "share of records that equal an original")["value"] == 1
    assert any(row["value"] is None and row["warning"] for row in found)
    same = rows(
        con,
        "'(SELECT 1 AS a, NULL::INTEGER AS b FROM range(30))', '(SELECT 1 AS a, NULL::INTEGER AS b FROM range(20))'",
    )
    assert one(same, "share of records that equal an original")["value"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'originals', 'nowhere'", "unknown table 'nowhere'"),
        ("'originals', NULL", "argument 'release' must name a table"),
        ("'originals', '(SELECT 1 AS other)'", "column"),
        ("'originals', 'copied', keys := ['ages']", "did you mean 'age'"),
        ("'originals', 'copied', keys := ['age'], sensitive := ['age']", "both a key and sensitive"),
        ("'originals', 'copied', keys := ['age', 'AGE']", "names column 'age' twice"),
        ("'originals', '(FROM copied LIMIT 0)'", "argument 'release': there are no records"),
        ("'originals', 'copied', holdout := '(FROM others LIMIT 0)'", "argument 'holdout': there are no records"),
        ("'originals', 'copied', seed := 'x'", "argument 'seed' must be a whole number"),
        ("'originals', '(SELECT age::VARCHAR AS age FROM copied)'", "age"),
    ],
)
def test_bad_arguments_are_refused_while_binding(con: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match="sdc_assess") as told:
        con.execute(f"EXPLAIN FROM sdc_assess({arguments})")
    assert message in str(told.value)


def test_it_shows_how_far_it_is_and_can_be_stopped() -> None:
    """One line of progress, that of the report; interrupted in the middle, and asked again."""
    shares: list[float] = []
    with sdcduck.connect(progress=shares.append) as con:
        fill(con)
        con.execute("FROM sdc_assess('originals', 'copied')").fetchall()
        assert shares == sorted(shares)
        assert shares[-1] == 1

    begun = threading.Event()
    with sdcduck.connect(progress=lambda share: begun.set()) as con:
        fill(con)
        with again_and_again(con.interrupt, begun.is_set), pytest.raises(duckdb.InterruptException):
            con.execute(f"FROM sdc_assess('originals', 'copied', {ASKED})").fetchall()
        while running := works():  # a statement that is being stopped may begin another one
            running[0].join()  # it notices that nobody waits, and DuckDB closes no connection whose cursors are at work
        assert con.execute("SELECT count(*) FROM originals").fetchall() == [(400,)]


ENDLESS = "'(SELECT range % 10 AS a, range % 7 AS b FROM range(1000000000000000))'"
NEVER = "'(SELECT count(*) AS a, 1 AS b FROM range(1000000000000000))'"


@pytest.mark.skipif(duckdb.__version__.startswith("1."), reason="DuckDB 1 sees an interruption after the work only")
@pytest.mark.parametrize(
    "asked",
    [
        f"sdc_assess({ENDLESS}, {ENDLESS}, keys := ['a'])",
        f"sdc_utility_columns({NEVER}, {NEVER})",
        f"sdc_dcr({NEVER}, {NEVER})",
    ],
)
def test_an_interruption_reaches_the_statements_that_a_function_asks(asked: str) -> None:
    """They would never end, and DuckDB closes no connection whose cursors are at work."""
    with sdcduck.connect(progress=False) as con:
        with again_and_again(con.interrupt, lambda: bool(works())), pytest.raises(duckdb.InterruptException):
            con.execute(f"FROM {asked}").fetchall()
        for thread in works():
            thread.join(LONG)
            assert not thread.is_alive()


def works() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "sdcduck"]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text, self.tags = "", list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def test_the_page_has_every_row_and_five_pictures(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute('CREATE OR REPLACE TABLE "<b>odd</b>" AS FROM copied')
    path = sdcduck.assess(
        con, "originals", "<b>odd</b>", tmp_path / "page.html", holdout="others", keys=KEYS, targets=TARGETS
    )
    page = read(path)
    assert "<b>odd</b>" in page.text
    assert "b" not in page.tags
    assert page.tags.count("svg") == 5
    assert "script" not in page.tags
    for row in rows(con, f"'originals', 'copied', {ASKED}"):
        assert row["measure"] in page.text
        assert (row["warning"] or "") in page.text


def test_the_map_has_the_release_and_what_it_is_held_against(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    sdcduck.assess(con, "originals", "copied", path, holdout="others", keys=KEYS, targets=TARGETS)
    found = rows(con, f"'originals', 'copied', {ASKED}")
    accurate = one(found, "accuracy of tables of 2 columns, mean")
    equal, told = "share of records that equal an original", "told rightly where all records with the keys agree (TCAP)"
    lost, of_others = (f"1 - accuracy = {1 - accurate[name]:.3g}" for name in ("value", "baseline"))
    copies, tcap = one(found, equal), one(found, told)
    text = read(path).text
    for point in (
        f"{equal} the originals: 1 - accuracy = 0, risk = 1;",
        f"{equal} the release: {lost}, risk = {copies['value']:.3g};",
        f"{equal} other people: {of_others}, risk = {copies['baseline']:.3g};",
        f"{told} the release: {lost}, risk = {tcap['value']:.3g};",
        f"{told} guessing: {lost}, risk = {tcap['baseline']:.3g};",
        f"inference, success the release: {lost}, risk = {one(found, 'inference, success')['value']:.3g};",
    ):
        assert point in text


def test_the_map_of_a_release_of_which_little_is_known(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    few = "(SELECT age FROM originals LIMIT 3)"
    sdcduck.assess(con, few, "(SELECT age FROM copied LIMIT 2)", tmp_path / "few.html")
    assert "share of records that equal an original the release: 1 - accuracy = " in read(tmp_path / "few.html").text


def test_nothing_is_written_where_the_arguments_are_wrong(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with pytest.raises(duckdb.Error, match="unknown table"):
        sdcduck.assess(con, "originals", "nowhere", path)
    assert not path.exists()


def test_from_the_command_line(tmp_path: Path) -> None:
    file, path = tmp_path / "register.duckdb", tmp_path / "page.html"
    with sdcduck.connect(file) as con:
        fill(con)
    given = ["assess", str(file), "originals", "copied", "--holdout", "others", "--key", "age", "--target", "income"]
    came = CliRunner().invoke(app, [*given, "-o", str(path)])
    assert came.exit_code == 0, came.output
    assert "wrote" in came.output
    assert "What the keys tell" in read(path).text
    wrong = CliRunner().invoke(app, ["assess", str(file), "originals", "nowhere", "-o", str(path)])
    assert wrong.exit_code == 1
    assert "unknown table 'nowhere'" in wrong.output
