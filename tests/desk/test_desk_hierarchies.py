"""Hierarchies on the desk: from a file or a query, shown as text, corrected, and levels picked for a publication."""

from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from desk_browser import Answer, Browser
from desk_server import ODD, running
from test_pages import assert_usable

import sdcduck
from sdcduck.functions.reference import EXAMPLE_SECRET

TREE = "Mainland\n@North\n@South\nIslands\n@East"


def shown_tree(browser: Browser, **fields: str) -> str:
    answer = browser.get(f"/hierarchy?{urlencode({'table': 'people', 'column': 'region', **fields})}")
    assert answer.status == 200, answer.text
    assert_usable(answer)
    return tree_of(answer)


def tree_of(answer: Answer) -> str:
    [text] = re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", answer.text, re.S)
    return unescape(text)


def use(browser: Browser, tree: str, table: str = "people", column: str = "region") -> Answer:
    fields = [("table", table), ("column", column), ("tree", tree)]
    return browser.finished(browser.post("/hierarchy/use", fields))


def test_a_tree_comes_from_a_file_a_query_or_the_values(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "geo.hrc"
    file.write_text(TREE.replace("@", "--"))
    assert shown_tree(browser, file=str(file), indent="--") == TREE
    rows = "('North', 'Mainland'), ('South', 'Mainland'), ('East', 'Islands'), ('Islands', NULL)"
    query = f"FROM (VALUES {rows}) geo(child, parent)"
    assert shown_tree(browser, query=query) == "Islands\n@East\nMainland\n@North\n@South"
    assert shown_tree(browser, query=f"({query})") == shown_tree(browser, query=query)
    assert shown_tree(browser) == "East\nNorth\nSouth"
    deep = "(VALUES ('a', 'b'), ('b', 'c'), ('d', 'c')) t(child, parent)"
    assert shown_tree(browser, query=f"FROM {deep}") == "c\n@b\n@@a\n@d"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"file": "a.hrc", "query": "geo"}, "leave the other field empty"),
        ({"file": "no such file.hrc"}, "no such file.hrc"),
        ({"query": "FROM (VALUES ('a', 'b'), ('b', 'a')) t(child, parent)"}, "cycle"),
        ({"query": "FROM (VALUES ('@a', 'b')) t(child, parent)"}, "a code begins with"),
        ({"column": "regoin"}, "did you mean"),
    ],
)
def test_what_is_no_tree_is_said(browser: Browser, fields: dict[str, str], words: str) -> None:
    answer = browser.get(f"/hierarchy?{urlencode({'table': 'people', 'column': 'region', **fields})}")
    assert answer.status == 400
    assert words in answer.page.text


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ("North\nSouth\nEast", "no code lies in another"),
        ("", "no code lies in another"),
        ("Mainland\n@North\n@South", "1 codes of 'region' are not at the bottom of this hierarchy: 'East'"),
        ("North\n@South\n@East", "'North'"),
        ("Mainland\n@@North", "line 2: indented by more than one level"),
        ("Mainland\n@North\n@North", "every code has one place"),
    ],
)
def test_what_is_not_used(browser: Browser, tree: str, words: str) -> None:
    answer = use(browser, tree)
    assert answer.status == 400
    assert words in answer.page.text


def test_levels_are_picked_and_the_script_makes_the_same_from_nothing(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "register.duckdb"
    shutil.copy(made, file)
    with running(file) as browser:
        answer = use(browser, TREE)
        assert answer.status == 200, answer.text
        assert_usable(answer)
        assert answer.page.rows[1:] == [["region_1", "2"], ["region", "3"]]
        corrected = use(browser, TREE.replace("Islands\n@", "@"))
        assert corrected.page.rows[1:] == [["region_1", "1"], ["region", "3"]]
        again = use(browser, TREE)
        [link] = [tag["href"] for name, tag in again.page.tags if tag.get("class") == "button"]
        form = browser.get(link)
        assert_usable(form)
        ticked = {tag["value"] for _, tag in form.page.tags if tag.get("name") == "dimension" and "checked" in tag}
        assert ticked == {"region_1", "region"}
        assert '<option value="region_1" selected>' in form.text
        fields = [("table", "people_by_region"), ("publication", "halves"), ("dimension", "region_1"), ("dimension", "region"),
                  ("dimension", "sex"), ("lies_in.region", "region_1"), ("max_count", "1")]  # fmt: skip
        pattern = browser.finished(browser.post("/tables/pattern", fields))
        assert 'GROUP BY ROLLUP ("region_1", "region"), CUBE ("sex")' in pattern.page.statements[0]
        stored = browser.finished(browser.post("/tables/publish", fields))
        assert stored.status == 200, stored.text
        cells = browser.get("/releases/cells.csv?name=halves").text
        assert "Mainland" in cells
        scripts = {"copy": browser.get("/script.sql").text, "empty": browser.get("/script.sql?empty=1").text}
    shutil.copy(made, tmp_path / "copy.duckdb")
    for name, script in scripts.items():
        with sdcduck.connect(tmp_path / f"{name}.duckdb", secret=EXAMPLE_SECRET) as con:
            for statement in con.extract_statements(script):
                con.execute(statement).fetchall()
            [(levels,)] = con.execute("SELECT count(*) FROM people_region_levels").fetchall()
            assert levels == 3
        with running(tmp_path / f"{name}.duckdb") as browser:
            assert browser.get("/releases/cells.csv?name=halves").text == cells


def test_missing_values_are_no_codes_and_a_page_has_so_many(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "register.duckdb"
    shutil.copy(made, file)
    with sdcduck.connect(file, secret=EXAMPLE_SECRET) as con:
        con.execute("CREATE TABLE places AS SELECT nullif('p' || i % 3, 'p2') AS place FROM range(9) t(i)")
        con.execute("CREATE TABLE many AS SELECT 'p' || i AS place FROM range(10001) t(i)")
    with running(file) as browser:
        assert shown_tree(browser, table="places", column="place") == "p0\np1"
        assert use(browser, "all\n@p0\n@p1", table="places", column="place").page.rows[1:] == [
            ["place_1", "1"],
            ["place", "2"],
        ]
        answer = browser.get(f"/hierarchy?{urlencode({'table': 'many', 'column': 'place'})}")
        assert answer.status == 400
        assert "more than 10,000 codes" in answer.page.text


def test_records_without_a_level_are_counted_before_publishing(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "register.duckdb"
    shutil.copy(made, file)
    fields = [("table", "people_by_region"), ("publication", "halves"), ("dimension", "region_1"), ("dimension", "region"),
              ("lies_in.region", "region_1"), ("max_count", "1")]  # fmt: skip
    with running(file) as browser:
        assert use(browser, TREE).status == 200
        assert "and no region_1" not in browser.finished(browser.post("/tables/pattern", fields)).page.text
    with sdcduck.connect(file, secret=EXAMPLE_SECRET) as con:  # who came after the hierarchy was made
        con.execute("INSERT INTO people BY NAME SELECT 1000 + range AS person_id, 'West' AS region FROM range(3)")
        con.execute("INSERT INTO people BY NAME SELECT 1003 AS person_id")  # and one whose region nobody knows
    with running(file) as browser:
        for sets in ("all", "nested"):
            pattern = browser.finished(browser.post("/tables/pattern", [*fields, ("sets", sets)]))
            assert_usable(pattern)
            assert "3 records have a region and no region_1" in pattern.page.text


def test_odd_names_have_hierarchies(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "register.duckdb"
    shutil.copy(made, file)
    with running(file) as browser:
        answer = use(browser, "it's <i>\n@f\n@m", table=ODD, column=ODD)
        assert answer.status == 200, answer.text
        assert "<script" not in answer.text
        assert answer.page.rows[1:] == [[f"{ODD}_1", "1"], [ODD, "2"]]
        assert use(browser, TREE).status == 200
        with browser.register.reading() as reading:
            reading.cursor.execute("COMMENT ON VIEW people_by_region IS 'mine'")
        assert "is there already" in use(browser, TREE).page.text


def test_a_level_that_was_not_picked_is_passed_over() -> None:
    from sdcduck.desk.forms import Form
    from sdcduck.desk.statements import Draft

    said = "table=t&dimension=town&dimension=country&lies_in.town=county&lies_in.county=region&lies_in.region=country"
    assert Draft.of(Form.read(said)).groups == 'ROLLUP ("country", "town")'
    round_about = "table=t&dimension=town&lies_in.town=county&lies_in.county=county"
    assert Draft.of(Form.read(round_about)).groups == 'CUBE ("town")'
