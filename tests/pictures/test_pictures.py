"""Pictures: well-formed, the same each time, and showing the numbers that were asked for."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck import SDCError, pictures
from sdcduck.functions.reference import EXAMPLE_SECRET
from sdcduck.pictures.svg import Scale, even_scale

DOCS = Path(__file__).resolve().parents[2] / "docs"
TAUS = "(FROM sdc_tau('people', dimensions := ['region', 'age'], sigma := [0, 0.5, 2], m := [1, 5], k := [1, 2], d := 0.5))"
MAP = "(SELECT unnest(['a', 'a', 'b']) AS method, unnest([0.2, 0.4, 0.1]) AS R, unnest([0.5, 0.7, 0.0]) AS U)"


@pytest.fixture
def people(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute("""
        CREATE TABLE people AS SELECT ['N', 'S <&> "x"', NULL][1 + i % 3] AS region, (20 + i % 40)::INTEGER AS age,
            (i % 40) * 10.5 AS income, (i * 7919 % 100)::DOUBLE AS luck FROM range(400) t(i)
    """)
    return con


def marks(picture: pictures.Picture, kind: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(picture.svg).findall(f".//{{http://www.w3.org/2000/svg}}{kind}")


def titles(picture: pictures.Picture) -> list[str]:
    return [mark.text or "" for mark in marks(picture, "title")]


def test_a_line_for_each_setting(people: duckdb.DuckDBPyConnection) -> None:
    picture = pictures.tau_curves(people, TAUS)
    lines = marks(picture, "polyline")
    assert len(lines) == 8  # two measures, two m, two k
    [height] = {float(mark.attrib["y2"]) for mark in marks(picture, "line") if mark.attrib["y1"] == "0"}
    expected = people.execute(f"SELECT tau3 FROM {TAUS} WHERE m = 1 AND k = 1 ORDER BY sigma").fetchall()
    drawn = [1 - float(point.split(",")[1]) / height for point in lines[0].attrib["points"].split()]
    assert drawn == pytest.approx([tau for (tau,) in expected], abs=0.001)
    assert len(marks(pictures.tau_curves(people, TAUS, over="m", measures=["tau4"]), "polyline")) == 6


def test_dots_are_where_the_numbers_say(con: duckdb.DuckDBPyConnection) -> None:
    picture = pictures.risk_utility(con, MAP)
    assert titles(picture)[1:] == [
        "a: U = 0.5, R = 0.2",
        "a: U = 0.7, R = 0.4",
        "a: U = 0.6, R = 0.3",
        "b: U = 0, R = 0.1",
    ]
    places = {title: mark for mark, title in zip(marks(picture, "circle"), titles(picture)[1:], strict=False)}
    assert float(places["b: U = 0, R = 0.1"].attrib["cx"]) == 0
    assert len(marks(pictures.risk_utility(con, MAP, panel="method"), "g")) == 2


def test_shares_of_categories_and_of_numbers(people: duckdb.DuckDBPyConnection) -> None:
    picture = pictures.marginals(people, "people", "(SELECT * FROM people WHERE region IS NOT NULL)", ["region", "age"])
    assert 'S <&> "x": 0.333' in titles(picture)
    ages = [float(title) for title in titles(picture) if re.fullmatch(r"[\d.]+", title)]
    assert sum(ages) == pytest.approx(1, abs=0.02)
    assert ages == [0.05] * 20  # two years each: none has more whole numbers than another


def test_associations_that_are_lost_are_framed(people: duckdb.DuckDBPyConnection) -> None:
    same = pictures.associations(people, "people", "people")
    assert "Lost by more than 0.1: none." in same.svg
    assert "age with income: 1.000 original, 1.000 synthetic" in titles(same)
    shuffled = (
        "(SELECT * REPLACE ((SELECT list(income ORDER BY luck, age) FROM people)[1 + rowid] AS income) FROM people)"
    )
    lost = pictures.associations(people, "people", shuffled, ["age", "income", "luck"])
    assert "age with income" in lost.svg.split("Lost by more than 0.1: ")[1].split("</desc>")[0]


def test_columns_without_numbers_and_without_variety(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE odd AS SELECT NULL::DOUBLE AS nothing, 1 AS one, 'a' AS letter, 'inf'::FLOAT AS far FROM range(5)"
    )
    con.execute("CREATE TABLE empty AS FROM odd LIMIT 0")
    for synthetic in ("odd", "empty"):
        assert len(marks(pictures.marginals(con, "odd", synthetic), "g")) == 4
        assert "Lost by more than 0.1: none." in pictures.associations(con, "odd", synthetic).svg


def test_a_picture_is_text_that_is_saved(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    picture = pictures.risk_utility(con, MAP)
    assert picture.save(tmp_path / "map.svg").read_text() == picture.svg == picture._repr_svg_()
    assert picture == sdcduck.pictures.risk_utility(con, MAP)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda con: pictures.tau_curves(con, TAUS, over="k"), "unknown setting 'k'"),
        (lambda con: pictures.tau_curves(con, TAUS, measures=["tau5"]), "unknown measure 'tau5'"),
        (lambda con: pictures.tau_curves(con, f"(FROM {TAUS} WHERE false)"), "nothing to draw"),
        (lambda con: pictures.tau_curves(con, "people"), "unknown column 'sigma'"),
        (lambda con: pictures.tau_curves(con, TAUS.replace("[1, 2]", "[1, 2, 3, 4, 5]")), "10 lines are too many"),
        (lambda con: pictures.risk_utility(con, MAP, risk="risk"), "unknown column 'risk'"),
        (lambda con: pictures.risk_utility(con, "(SELECT range AS method, 1 AS R, 1 AS U FROM range(9))"), "9 methods"),
        (lambda con: pictures.risk_utility(con, f"(FROM {MAP} WHERE false)"), "nothing to draw"),
        (lambda con: pictures.marginals(con, "people", "peopel"), "peopel"),
        (lambda con: pictures.marginals(con, "people", "people", ["agee"]), "unknown column 'agee'"),
        (lambda con: pictures.marginals(con, "people", "(SELECT 1 AS x)"), "no column in common"),
        (lambda con: pictures.associations(con, "people", "people", ["age"]), "two columns"),
    ],
)
def test_what_cannot_be_drawn(people: duckdb.DuckDBPyConnection, call: object, says: str) -> None:
    with pytest.raises(SDCError, match=re.escape(says)):
        call(people)  # type: ignore[operator]


def test_scales() -> None:
    assert even_scale([]).ticks[0] == 0
    assert even_scale([3.0, 3.0]).high > 0
    assert even_scale([-1.0, 1.0]).low <= -1
    assert even_scale([1000.0, 1001.0], from_zero=False).ticks == (1000.0, 1000.2, 1000.4, 1000.6, 1000.8, 1001.0)
    assert Scale(0, 10, (), "log1p").share(0) == 0
    assert Scale(2, 2, ()).share(2) == 0.5


def test_the_page_shows_what_its_examples_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    con = sdcduck.connect(secret=EXAMPLE_SECRET)
    for language, code in re.findall(r"```(sql|python)\n(.*?)```", (DOCS / "pictures.md").read_text(), re.DOTALL):
        if language == "sql":
            con.execute(code)
        else:
            exec(code, {**globals(), "con": con, "pictures": pictures})
    made = sorted(tmp_path.glob("*.svg"))
    assert [file.name for file in made] == ["pictures-associations.svg", "pictures-marginals.svg", "pictures-tau.svg"]
    for file in made:
        assert file.read_text() == (DOCS / file.name).read_text(), f"copy {file.name} of the examples to docs"
