"""What the pages show, how they say what is wrong, and that everybody can use them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from desk_browser import Answer, Browser
from desk_server import ODD, running

import sdcduck
import sdcduck.desk
from sdcduck.desk.register import Register
from sdcduck.errors import SDCError

PAGES = ["/", "/table?name=people", "/tables", "/tables/new?table=people", "/records?table=people",
         "/access?table=people", "/releases", "/work/99", "/nowhere"]  # fmt: skip
CSS = (Path(sdcduck.desk.__file__).parent / "templates/desk.css").read_text(encoding="utf-8")


def work(browser: Browser, path: str, **fields: str | list[str]) -> Answer:
    pairs = [(name, v) for name, value in fields.items() for v in (value if isinstance(value, list) else [value])]
    return browser.finished(browser.post(path, pairs))


def test_columns_are_guessed_and_corrected(browser: Browser) -> None:
    page = browser.get("/table?name=people").page
    guesses = dict(zip([row[0] for row in page.rows[1:]], chosen(page.source), strict=True))
    assert guesses["person_id"] == "identifier"
    assert guesses["region"] == guesses["sex"] == "dimension"
    assert guesses["income"] == "measure"
    assert guesses["record_key"] == "other"
    said = [("column", name) for name in guesses] + [
        ("role", "sensitive" if n == "sex" else r) for n, r in guesses.items()
    ]
    after = browser.post("/table/roles", [("table", "people"), *said, ("next", "tables")])
    assert [tag["value"] for name, tag in after.page.tags if tag.get("name") == "dimension" and "checked" in tag] == [
        name for name, role in guesses.items() if role == "dimension" and name != "sex"
    ]
    assert "you said so" in browser.get("/table?name=people").text
    for wrong in ([*said[:-1]], [*said[:-1], ("role", "nonsense")]):
        assert browser.post("/table/roles", [("table", "people"), *wrong]).status == 400


def chosen(text: str) -> list[str]:
    return re.findall(r"<option selected>([a-z]+)</option>", text)


@pytest.mark.parametrize("path", PAGES)
def test_everybody_can_use_the_page(browser: Browser, path: str) -> None:
    answer = browser.get(path)
    assert answer.status == {"/work/99": 400, "/nowhere": 404}.get(path, 200)
    assert_usable(answer)


def assert_usable(answer: Answer) -> None:
    """Each field has a label, each head of a table says of what, and the page has its parts."""
    page = answer.page
    assert page.unlabelled == []
    assert [tag for name, tag in page.tags if name == "th" and "scope" not in tag] == []
    assert ("html", {"lang": "en"}) in page.tags
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in page.tags
    names = [name for name, _ in page.tags]
    assert names.count("h1") == names.count("main") == names.count("title") == 1
    assert names.count("table") == names.count("caption")
    assert all(tag.get("href", "") for name, tag in page.tags if name == "a")
    assert {tag["tabindex"] for _, tag in page.tags if "tabindex" in tag} <= {"0"}  # the keyboard goes as the eye does
    clicked = [name for name, tag in page.tags if "onclick" in tag or tag.get("role") == "button"]
    assert clicked == []  # what is pressed is a button or a link
    levels = [int(name[1]) for name in names if re.fullmatch(r"h[1-6]", name)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    skip = next(tag["href"] for name, tag in page.tags if name == "a" and tag.get("class") == "skip")
    assert skip.removeprefix("#") in [tag.get("id") for name, tag in page.tags if name == "main"]
    assert not re.search(r"<(button|a)[^>]*>\s*</", answer.text)  # each says what it does
    assert all(tag.get("aria-label") for name, tag in page.tags if name == "svg")
    ids = [tag["id"] for _, tag in page.tags if "id" in tag]
    assert len(ids) == len(set(ids))
    assert "Traceback" not in answer.text


def test_colours_can_be_told_from_their_ground() -> None:
    """At least 4.5 to 1, as the accessibility guidelines want of text."""
    colours = dict(re.findall(r"--(\w+): (#\w+);", CSS))
    pairs = [(colours[ink], colours[ground]) for ink in ("ink", "soft", "link") for ground in ("paper", "shade")]
    pairs += [(colours["accent"], colours["paper"]), ("#ffffff", colours["accent"]), ("#6b6b6b", colours["paper"])]
    pairs += [(colours["ink"], re.search(rf"\.{mark} {{ background: (#\w+)", CSS)[1]) for mark in  # type: ignore[index]
              ("primary", "secondary", "forced")]  # fmt: skip
    for one, other in pairs:
        light, dark = sorted((luminance(one), luminance(other)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (one, other)
    assert "outline: none" not in CSS
    assert ":focus-visible" in CSS


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    shares = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_odd_names_are_text_on_each_page(browser: Browser) -> None:
    name = quote_plus(ODD)
    answers = [browser.get(path) for path in ("/", f"/table?name={name}", "/tables", f"/tables/new?table={name}",
                                              f"/records?table={name}", f"/access?table={name}")]  # fmt: skip
    answers.append(work(browser, "/records/risk", table=ODD, key=['a"b', ODD], k="3", measure="records"))
    answers.append(work(browser, "/records/risk", table=ODD, key=['a"b', ODD], k="3", measure="columns"))
    answers.append(work(browser, "/tables/pattern", table=ODD, publication=ODD, dimension=['a"b', ODD], max_count="1"))
    answers.append(
        work(browser, "/tables/alternatives", table=ODD, publication=ODD, dimension=['a"b', ODD], max_count="1")
    )
    for answer in answers:
        assert answer.status == 200, answer.text
        assert "<script" not in answer.text.replace('<script src="/desk.js" defer></script>', "")
        assert "&lt;script&gt;" in answer.text
        assert_usable(answer)
    missing = browser.get("/table?name=%3Cscript%3E")
    assert (missing.status, "<script" in missing.text) == (400, False)


def test_the_risk_of_records_is_that_of_the_house(browser: Browser) -> None:
    """As documented for sdc_k_anonymity."""
    answer = work(browser, "/records/risk", table="people", key=["region", "sex"], k="3", measure="records")
    assert "6 of 12 records (50 %) share what is known of them with fewer than 3 records" in answer.text
    assert answer.page.statements == ["FROM sdc_k_anonymity('people', keys := ['region', 'sex'], k := 3);"]
    rare = work(browser, "/records/risk", table="people", key=["region", "sex"], k="3", measure="columns")
    assert rare.page.rows[0] == ["variable", "dimension", "unsafe", "share"]


def test_a_policy_is_declared_and_listed(browser: Browser) -> None:
    answer = work(browser, "/access/protect", table="people", unit="person_id", dimension=["region"], min_units="3")
    assert answer.status == 200, answer.text
    page = browser.get("/access").page
    assert page.rows[1][:3] == ["people", "unit-level", "threshold"]
    assert browser.register.worker.written[-1].statement == (
        "FROM sdc_protect('people', unit := 'person_id', dimensions := ['region'], measures := [], "
        "method := 'threshold', min_units := 3)"
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "pick the table"),
        ({"table": "peple", "dimension": "sex"}, "unknown table 'peple'; did you mean 'people'?"),
        ({"table": "people"}, "pick at least one dimension"),
        ({"table": "people", "dimension": "regoin"}, "unknown column 'regoin' in 'people'; did you mean 'region'?"),
        ({"table": "people", "dimension": "sex", "measure": "sex"}, "cannot be a dimension and a measure at once"),
        ({"table": "people", "dimension": "sex"}, "give at least one rule"),
        ({"table": "people", "dimension": "sex", "max_count": "few"}, "'records' must be a number"),
        ({"table": "people", "dimension": "sex", "max_count": "1.5"}, "'records' must be a whole number"),
        ({"table": "people", "dimension": "sex", "max_count": "1e999"}, "'records' must be a whole number"),
        ({"table": "people", "dimension": "sex", "max_count": "nan"}, "'records' must be a whole number"),
        ({"table": "people", "dimension": "sex", "dominance_n": "1"}, "a dominance rule needs two numbers"),
        ({"table": "people", "dimension": "sex", "max_count": "-1"}, "argument 'max_count'"),
        ({"table": "people", "dimension": "sex", "measure": "income", "p_percent": "-1"}, "argument 'p_percent'"),
        ({"table": "people", "dimension": "sex", "p_percent": "10"}, "argument 'value'"),
        ({"table": "people", "dimension": "region", "measure": "sex", "max_count": "1"}, "sum"),
        ({"table": "people", "dimension": "sex", "rules": "hose"}, "unknown rule set 'hose'"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_house(browser: Browser, fields: dict[str, str], words: str) -> None:
    answer = work(browser, "/tables/pattern", **fields)
    assert answer.status == 400
    assert words in answer.page.text
    assert "Traceback" not in answer.text
    assert "LINE 1" not in answer.text
    assert_usable(answer)


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(SDCError, match="there is no file"):
        Register(tmp_path / "none.duckdb")
    assert not (tmp_path / "none.duckdb").exists()


def test_hierarchies_are_guessed_shown_and_corrected(made: Path, tmp_path: Path) -> None:
    """Towns lie in regions, these in two halves of the country, and sex in nothing."""
    file = tmp_path / "towns.duckdb"
    file.write_bytes(made.read_bytes())
    with sdcduck.connect(file) as con:
        con.execute(
            """CREATE TABLE inhabitants AS SELECT 'town ' || range % 24 AS town, ['f', 'm'][1 + (hash(range) % 2)::BIGINT] AS sex,
            'region ' || range % 24 // 4 AS region, ['North', 'South'][1 + range % 24 // 12] AS half FROM range(480)"""
        )
    with running(file) as browser:
        form = browser.get("/tables/new?table=inhabitants")
        assert_usable(form)
        assert chosen_levels(form.text) == {"town": "region", "sex": "", "region": "half", "half": ""}
        fields: dict[str, str | list[str]] = {
            "table": "inhabitants", "publication": "p", "dimension": ["town", "sex", "region", "half"], "max_count": "8",
            "lies_in.town": "region", "lies_in.region": "half",
        }  # fmt: skip
        answer = work(browser, "/tables/pattern", **fields)
        assert 'GROUP BY ROLLUP ("half", "region", "town"), CUBE ("sex")' in answer.page.statements[0]
        assert "town lies in region: there are totals of region." in answer.page.text
        table = browser.get(f"{answer.path}?down=town&across=sex&measure=n").page
        assert len(table.rows) == 1 + 24 + 1
        assert {row[-1] for row in table.rows[1:-1]} <= {"20", "S"}
        at_one = browser.get(f"{answer.path}?down=town&across=sex&measure=n&at.2=region+3").page
        assert [row[0] for row in at_one.rows[1:-1]] == [f"town {k}" for k in range(12, 16)]
        corrected = work(browser, "/tables/pattern", **{**fields, "lies_in.region": ""})
        assert 'ROLLUP ("region", "town"), CUBE ("sex", "half")' in corrected.page.statements[0]
        alternatives = work(browser, "/tables/alternatives", **fields)
        assert alternatives.status == 200, alternatives.text
        unpicked = work(browser, "/tables/pattern", **{**fields, "dimension": ["town", "sex"]})
        assert 'GROUP BY CUBE ("town", "sex")' in unpicked.page.statements[0]
        for wrong, words in (
            ({"lies_in.sex": "region"}, "two columns lie in"),
            ({"lies_in.half": "town"}, "lies in itself"),
        ):
            refused = work(browser, "/tables/pattern", **{**fields, **wrong})
            assert refused.status == 400
            assert words in refused.text


def chosen_levels(text: str) -> dict[str, str]:
    """What each column is said to lie in."""
    selects = re.findall(r'<select name="lies_in\.(\w+)".*?</select>', text)
    parts = [part.split("</select>")[0] for part in text.split('<select name="lies_in.')[1:]]
    picked = [re.findall(r'<option value="(\w+)" selected>', part) for part in parts]
    return {name: found[0] if found else "" for name, found in zip(selects, picked, strict=True)}
