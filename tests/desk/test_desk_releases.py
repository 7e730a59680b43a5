"""From a register to a release, through forms; and the script of it makes the same from nothing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import duckdb
import pytest
from desk_browser import Answer, Browser
from desk_server import ODD, running

import sdcduck
from sdcduck.functions.reference import EXAMPLE_SECRET

Fields = list[tuple[str, str]]
PEOPLE: Fields = [
    ("table", "people"), ("publication", "by_region"), ("dimension", "region"), ("dimension", "sex"), ("max_count", "1"),
    ("filled", "1"),
]  # fmt: skip
ODDLY: Fields = [
    ("table", ODD), ("publication", "a'b\"<i>"), ("dimension", 'a"b'), ("dimension", ODD), ("measure", "in%&come"),
    ("max_count", "1"), ("dominance_n", "1"), ("dominance_k", "75"), ("contributor", "person_id"),
    ("value", "in%&come"), ("filled", "1"),
]  # fmt: skip


def shown(browser: Browser, path: str, fields: Fields) -> Answer:
    answer = browser.finished(browser.post(path, fields))
    assert answer.status == 200, answer.text
    return answer


def test_the_pattern_is_a_cross_table_with_the_marks_of_the_house(browser: Browser) -> None:
    """As documented for sdc_suppress(.., max_count := 1) of these persons."""
    page = shown(browser, "/tables/pattern", PEOPLE).page
    assert page.rows == [
        ["region \\ sex", "f", "m", "Total"], ["East", "P", "P", "S"], ["North", "2", "3", "5"],
        ["South", "S", "S", "S"], ["Total", "6", "6", "12"],
    ]  # fmt: skip
    assert "Cells of 1 record are not published: whoever is in one could tell the others." in page.text
    assert page.statements == [
        'FROM sdc_suppress(\'SELECT "region", "sex", count(*) AS "n"\nFROM "people"\n'
        'GROUP BY CUBE ("region", "sex")\', max_count := 1);'
    ]
    other = browser.get("/work/1?down=sex&across=region").page
    assert other.rows[0] == ["sex \\ region", "East", "North", "South", "Total"]
    assert other.rows[1] == ["f", "P", "2", "S", "6"]


def test_a_rule_is_changed_beside_the_pattern(browser: Browser) -> None:
    page = shown(browser, "/tables/pattern", PEOPLE).page
    again = [(name, "2" if name == "max_count" else value) for name, value in sent(page, "/tables/pattern")]
    assert dict(again)["publication"] == "by_region"
    other = shown(browser, "/tables/pattern", again).page
    assert "Cells of 1 to 2 records are not published" in other.text
    assert other.rows != page.rows


def test_a_third_dimension_is_at_its_total_or_at_one_value(browser: Browser) -> None:
    open_to_all = [*PEOPLE[:4], ("dimension", "age"), ("measure", "income"), ("max_count", "0")]
    answer = shown(browser, "/tables/pattern", open_to_all)
    total = browser.get(f"{answer.path}?down=sex&across=region&measure=income").page
    assert total.rows[-1] == ["Total", "12,400", "13,300", "17,450", "43,150"]  # as in docs/suppression.md
    with browser.register.reading() as reading:
        [first] = reading.rows("FROM people SELECT age, region, sex, income ORDER BY income DESC LIMIT 1")
    at_one = browser.get(f"{answer.path}?down=sex&across=region&measure=income&at.2={first['age']}").page
    assert at_one.rows[0] == ["sex \\ region", first["region"], "Total"]
    assert at_one.rows[1:] == [[first["sex"], "9,800", "9,800"], ["Total", "9,800", "9,800"]]
    assert f"age {first['age']}" in at_one.text


def test_the_audit_shows_intervals_and_a_verdict(browser: Browser) -> None:
    page = shown(browser, "/tables/audit", PEOPLE).page
    assert "No suppressed number follows from published ones" in page.text
    assert page.rows[0] == ["region", "sex", "status", "number", "at least", "at most", "exact", "wide enough"]
    assert ["East", "f", "primary", "1", "0", "3", "no", "yes"] in [
        [cell if place != 5 else "3" for place, cell in enumerate(row)] for row in page.rows
    ]


def test_alternatives_stand_side_by_side(browser: Browser) -> None:
    """Suppressed as documented for sdc_suppress; rounded by hand; with the keys and the noise of docs/cell-keys.md."""
    answer = shown(browser, "/tables/alternatives", PEOPLE)
    page = answer.page
    heads = ["true number", "Suppression", "Small counts rounded", "Midpoint rounding", "Synthetic counts", "Cell keys"]
    names = ["alternative", "left out", "changed", "mean change", "largest", "risk", "loss", "adds up"]
    assert page.rows[0] == names
    first = page.rows.index(["region", "sex", *heads])
    cells = {tuple(row[:2]): row[2:] for row in page.rows[first + 1 :]}
    assert len(cells) == 12
    marks = {place: row[1] for place, row in cells.items() if row[1] in "PS"}
    assert marks == {
        ("East", "f"): "P", ("East", "m"): "P", ("East", "Total"): "S",
        ("South", "f"): "S", ("South", "m"): "S", ("South", "Total"): "S",
    }  # fmt: skip
    assert {place: row[3] for place, row in cells.items()} == {
        place: str(6 * (-(-int(row[0]) // 6)) - 3) for place, row in cells.items()
    }
    with browser.register.reading() as reading:
        by_sql = reading.rows("FROM people SELECT region, sex, sdc_count(record_key) AS n GROUP BY CUBE (region, sex)")
    assert {(row["region"] or "Total", row["sex"] or "Total"): str(row["n"]) for row in by_sql} == {
        place: row[5] for place, row in cells.items()
    }
    said = {row[0].partition(" ")[2]: row[1:] for row in page.rows[1:first]}
    assert said["Suppression"] == ["6", "0", "0", "0", "1", "0.5", "yes"]
    small = [abs(int(row[2]) - int(row[0])) for row in cells.values()]
    changed = [str(sum(change > 0 for change in small)), f"{round(sum(small) / 12, 2):g}", str(max(small))]
    assert [*said["Small counts rounded"][:4], said["Small counts rounded"][6]] == ["0", *changed, "yes"]
    assert said["Midpoint rounding"][0] == "0"
    assert said["Midpoint rounding"][6] == said["Cell keys"][6] == "no"
    assert said["Synthetic counts"][6] == "yes"
    assert len([tag for tag, _ in page.tags if tag == "circle"]) == 5
    assert all(0 <= float(value) <= 1 for row in said.values() for value in row[4:6])
    assert [statement.startswith("SELECT s.") for statement in page.statements] == [True]
    with browser.register.reading() as reading:
        assert len(reading.rows(page.statements[0].rstrip(";"))) == 12


def test_alternatives_of_odd_names_without_record_keys(browser: Browser) -> None:
    answer = shown(browser, "/tables/alternatives", ODDLY)
    assert "There are no cell keys" in answer.text
    assert "<script" not in answer.text
    assert any(row[0] == "3 Midpoint rounding" for row in answer.page.rows)
    nested = [*PEOPLE, ("sets", "nested")]
    assert len(shown(browser, "/tables/alternatives", nested).page.rows) == 1 + 5 + 1 + 10
    assert browser.post("/tables/alternatives", PEOPLE[:1]).status == 400


ALTERNATIVES = ["_rounded", "_midpoint", "_drawn", "_keys"]


def test_an_alternative_is_released_as_it_was_looked_at_and_the_script_makes_it_again(
    made: Path, tmp_path: Path
) -> None:
    file = tmp_path / "register.duckdb"
    shutil.copy(made, file)
    with running(file) as browser:
        page = shown(browser, "/tables/alternatives", PEOPLE).page
        heads = next(place for place, row in enumerate(page.rows) if row[:2] == ["region", "sex"])
        looked_at = page.rows[heads + 1 :]
        form = [field for field in sent(page, "/tables/release") if field[0] not in ("alternative", "publication")]
        assert dict(form)["seed"].isdigit()
        for place, column in enumerate(ALTERNATIVES):
            fields = [*form, ("alternative", column), ("publication", f"as{column}")]
            answer = shown(browser, "/tables/release", fields)
            assert f"as{column} is a table of" in answer.text
            with browser.register.reading() as reading:
                rows = reading.rows(f'FROM "as{column}"')
            stored = {(row["region"] or "Total", row["sex"] or "Total"): str(row["n"]) for row in rows}
            assert stored == {tuple(row[:2]): row[4 + place] for row in looked_at if row[4 + place] != "0"}
        assert {row["level"] for row in rows} == {"region x sex", "region", "sex", "total"}
        csv = browser.get("/releases/cells.csv?name=as_midpoint").text.splitlines()
        assert csv[0] == "region,sex,level,n"
        assert len(csv) == 13
        script = browser.get("/script.sql?empty=1").text
    with sdcduck.connect(tmp_path / "again.duckdb") as con:  # synthetic counts depend on the secret: none, as the desk
        for statement in con.extract_statements(script):
            con.execute(statement).fetchall()
        again = {name: con.execute(f'FROM "as{name}"').fetchall() for name in ALTERNATIVES}
        assert con.execute("SELECT name, kind FROM sdc_releases()").fetchall() == [
            (f"as{name}", "table") for name in sorted(ALTERNATIVES)
        ]
    with duckdb.connect(str(file), read_only=True) as con:
        assert again == {name: con.execute(f'FROM "as{name}"').fetchall() for name in ALTERNATIVES}


def test_sums_leave_with_cell_keys_and_under_odd_names(browser: Browser) -> None:
    fields = [*PEOPLE, ("measure", "income"), ("alternative", "_keys"), ("publication", 'odd\' "name" <i>')]
    fields = [one for one in fields if one != ("publication", "by_region")]
    answer = shown(browser, "/tables/release", fields)
    assert "<i>" not in answer.text
    with browser.register.reading() as reading:
        rows = reading.rows('FROM "odd\' ""name"" <i>"')
        wanted = reading.rows("FROM people SELECT sex, sdc_sum(income, record_key) AS income GROUP BY ROLLUP (sex)")
    assert {row["sex"]: row["income"] for row in rows if row["region"] is None} == {
        row["sex"]: row["income"] for row in wanted
    }


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"publication": "people", "replace": "1"}, "is a table of the register"),
        ({"publication": "PEOPLE"}, "is a table of the register"),
        ({"publication": ""}, "give the publication a name"),
        ({"alternative": "_suppression"}, "unknown alternative"),
        ({"alternative": "_original"}, "unknown alternative"),
        ({"seed": "x"}, "&#39;seed&#39; must be a number"),
    ],
)
def test_what_is_not_released(browser: Browser, changed: dict[str, str], words: str) -> None:
    fields = {**dict(PEOPLE[:2]), "alternative": "_midpoint", "publication": "fine", **changed}
    answer = browser.post("/tables/release", [*fields.items(), ("dimension", "sex"), ("max_count", "1")])
    assert (answer.status, words in answer.text) == (400, True), answer.text
    with browser.register.reading() as reading:
        assert len(reading.rows("FROM people")) == 12


def test_records_of_units_that_have_several_do_not_leave_with_cell_keys(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "register.duckdb"
    shutil.copy(made, file)
    with sdcduck.connect(file, secret=EXAMPLE_SECRET) as con:
        con.execute("CREATE TABLE several AS SELECT range % 10 AS person, range % 2 AS sex FROM range(40)")
        con.execute("FROM sdc_add_record_key('several', unit := 'person')").fetchall()
        con.execute(
            "CREATE TABLE half AS SELECT * REPLACE (CASE person WHEN 1 THEN NULL ELSE record_key END AS record_key) FROM several"
        )
    with running(file) as browser:
        for table, words in (("several", "units have several records"), ("half", "records have no key")):
            fields = [("table", table), ("dimension", "sex"), ("max_count", "1"), ("publication", "r")]
            answer = browser.post("/tables/release", [*fields, ("alternative", "_keys")])
            assert (answer.status, words in answer.text) == (400, True)


def test_a_release_is_approved_by_its_numbers(browser: Browser) -> None:
    fields = [*[one for one in PEOPLE if one[0] != "publication"], ("publication", "approved")]
    shown(browser, "/tables/publish", fields)
    shown(browser, "/tables/release", [("publication", "table_of_it"), *fields, ("alternative", "_midpoint")])
    for name in ("approved", "table_of_it"):
        with browser.register.reading() as reading:
            [seen] = [row["fingerprint"] for row in reading.rows("FROM sdc_releases()") if row["name"] == name]
        form = [("name", name), ("fingerprint", seen), ("approved_by", "Ann Lee"), ("note", "<b>board</b>")]
        assert browser.post("/releases/approve", form[:2]).status == 400
        assert (
            browser.post("/releases/approve", [form[0], *form[2:]]).status == 400
        )  # of which numbers, it does not say
        shown(browser, "/releases/approve", form)
    page = browser.get("/releases")
    assert page.text.count("Approved by Ann Lee") == 2
    assert "<b>" not in page.text
    shown(
        browser,
        "/tables/release",
        [("publication", "table_of_it"), *fields, ("alternative", "_rounded"), ("replace", "1")],
    )
    assert "Its numbers have changed since" in browser.get("/releases").text
    late = browser.post("/releases/approve", form)
    assert (late.status, "other numbers" in late.text) == (400, True)
    assert browser.post("/releases/export", [("name", "table_of_it"), ("file", "x.duckdb")]).status == 400
    shown(browser, "/releases/remove", [("name", "table_of_it")])
    assert "table_of_it" not in [row["name"] for row in released_now(browser)]
    assert browser.post("/releases/remove", [("name", "people")]).status == 400


def test_a_publication_and_a_table_of_one_name_stay(made: Path, tmp_path: Path) -> None:
    """Which of them is meant, nobody can say."""
    file = tmp_path / "register.duckdb"
    shutil.copy(made, file)
    with sdcduck.connect(file) as con:
        con.execute(
            "FROM sdc_publish('both', 'SELECT sex, count(*) AS n FROM people GROUP BY sex', max_count := 1)"
        ).fetchall()
        con.execute('CREATE TABLE "both" AS SELECT 1 AS n; COMMENT ON TABLE "both" IS \'Release: rounded\'')
    with running(file) as browser:
        answer = browser.post("/releases/remove", [("name", "both")])
        assert (answer.status, "rename the table" in answer.text) == (400, True)
        assert [row["kind"] for row in released_now(browser)] == ["publication", "table"]


def released_now(browser: Browser) -> list[dict[str, object]]:
    with browser.register.reading() as reading:
        rows: list[dict[str, object]] = reading.rows("FROM sdc_releases()")
    return rows


def test_the_script_makes_the_same_release_on_a_copy_and_from_nothing(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "register.duckdb"
    shutil.copy(made, file)
    with running(file) as browser:
        for fields in (PEOPLE, ODDLY):
            shown(browser, "/tables/pattern", fields)
            shown(browser, "/tables/audit", fields)
            shown(browser, "/tables/publish", fields)
        scripts = {"copy": browser.get("/script.sql").text, "empty": browser.get("/script.sql?empty=1").text}
        exported = browser.get("/releases/cells.csv?name=by_region")
    assert exported.headers["Content-Disposition"] == 'attachment; filename="by_region.csv"'
    assert exported.text.splitlines()[0] == "region,sex,MEASURE,OBS_VALUE,OBS_STATUS,CONF_STATUS"
    assert "East,f,n,,Q,A" in exported.text.splitlines()
    wanted = released(file)
    assert len(wanted["by_region"]) == 12
    shutil.copy(made, tmp_path / "copy.duckdb")
    for name, script in scripts.items():
        with sdcduck.connect(tmp_path / f"{name}.duckdb", secret=EXAMPLE_SECRET) as con:
            for statement in con.extract_statements(script):
                con.execute(statement).fetchall()
        assert released(tmp_path / f"{name}.duckdb") == wanted, name


def released(file: Path) -> dict[str, list[tuple[object, ...]]]:
    """The cells of all publications, and their inner cells: which are open, not the numbers that are drawn for the others."""
    with duckdb.connect(str(file), read_only=True) as con:
        tables = {}
        for (name,) in con.execute("SELECT name FROM sdc.publications").fetchall():
            quoted = name.replace('"', '""')
            tables[name] = sorted(con.execute(f'FROM sdc."{quoted}_cells"').fetchall(), key=repr)
            stencil = con.execute(f'FROM sdc."{quoted}_stencil" SELECT * REPLACE (stencil = 0 AS stencil)').fetchall()
            tables[f"{name} stencil"] = sorted(stencil, key=repr)
        return tables


def test_a_newcomer_makes_a_release_in_ten_clicks(made: Path, tmp_path: Path) -> None:
    """Only what stands on the pages is sent: the forms as they are filled in already."""
    file = tmp_path / "register.duckdb"
    shutil.copy(made, file)
    with running(file) as browser:
        page = browser.get("/table?name=people").page
        answer = browser.post("/table/roles", [*sent(page, "/table/roles"), ("next", "tables")])
        for path in ("/tables/pattern", "/tables/audit", "/tables/publish"):
            answer = shown(browser, path, sent(answer.page, path))
        assert "people_tables is published" in answer.text
        assert browser.get("/releases/cells.csv?name=people_tables").text.count("\n") > 12
        assert browser.get("/script.sql").text.count("FROM sdc_") == 1


def sent(page: object, action: str) -> Fields:
    """What a form of a page sends as it is."""
    fields: Fields = []
    inside, name = False, ""
    for tag, known in page.tags:  # type: ignore[attr-defined]
        if tag == "form":
            inside = known["action"] == action
        elif inside and tag == "input" and (known.get("type") != "checkbox" or "checked" in known):
            fields.append((known["name"], known.get("value", "")))
        elif inside and tag == "select":
            name = known["name"]
        elif inside and tag == "option" and "selected" in known and "value" not in known:
            fields.append((name, ""))
    if action == "/table/roles":
        return [(n, v) for n, v in fields if n != "role"] + [("role", role) for role in roles(page)]
    return [(n, v) for n, v in fields if v]


def roles(page: object) -> list[str]:
    """The chosen role of each column: text that stands behind `selected`."""
    text = page.source  # type: ignore[attr-defined]
    return re.findall(r"<option selected>([a-z]+)</option>", text)


def test_a_name_that_is_taken_is_not_replaced_by_mistake(browser: Browser) -> None:
    fields = [(name, "again" if name == "publication" else value) for name, value in PEOPLE]
    shown(browser, "/tables/publish", fields)
    answer = browser.post("/tables/publish", fields)
    assert answer.status == 400
    assert "there is a publication &#39;again&#39; already" in answer.text
    shown(browser, "/tables/publish", [*fields, ("replace", "1")])


def test_an_export_is_a_file_beside_the_register_and_nowhere_else(browser: Browser, tmp_path: Path) -> None:
    shown(browser, "/tables/publish", [(n, "out" if n == "publication" else v) for n, v in PEOPLE])
    for file in ("", "../out.duckdb", "/tmp/out.duckdb", "a\\b.duckdb", ".."):
        answer = browser.post("/releases/export", [("name", "out"), ("file", file)])
        assert answer.status == 400, file
    page = shown(browser, "/releases/export", [("name", "out"), ("file", "public.duckdb")]).page
    assert page.rows[1][:2] == ["out", "12"]
    assert browser.register.file.with_name("public.duckdb").exists()


@pytest.mark.parametrize("name", ["nothing", "", "a' OR true --"])
def test_what_is_not_published_has_no_file(browser: Browser, name: str) -> None:
    for answer in (
        browser.get(f"/releases/cells.csv?name={name.replace(' ', '+')}"),
        browser.post("/releases/export", [("name", name), ("file", "x.duckdb")]),
    ):
        assert answer.status == 400
        assert "unknown publication" in answer.text or "unknown release" in answer.text


def test_one_number_of_the_rules_is_tried_at_several_values(browser: Browser) -> None:
    answer = shown(browser, "/tables/numbers", [*PEOPLE, ("number", "max_count")])
    page = answer.page
    assert page.rows[0][:5] == ["number", "primary", "secondary", "published", "% published"]
    rows = {row[0]: row[1:5] for row in page.rows[1:]}
    assert rows["0"] == ["0", "0", "12", "100"]
    assert rows["1 (now)"] == ["2", "4", "6", "50"]  # as documented for this publication
    assert list(rows) == ["0", "1 (now)", "2", "3", "4"]
    [statement] = page.statements
    assert statement.count("FROM sdc_suppress(") == 5
    taken = re.findall(r'name="max_count" value="(\d+)"', answer.text)
    assert taken == ["0", "1", "2", "3", "4"]
    pattern = shown(browser, "/tables/pattern", [(n, taken[2] if n == "max_count" else v) for n, v in PEOPLE])
    assert f"P primary, by a rule: {rows['2'][0]}" in " ".join(pattern.page.text.split())


def test_other_numbers_are_tried_where_there_are_such_rules(browser: Browser) -> None:
    pattern = shown(browser, "/tables/pattern", ODDLY)
    assert '<option value="dominance_k">' in pattern.text
    assert '<option value="p_percent">' not in pattern.text
    answer = shown(browser, "/tables/numbers", [*ODDLY, ("number", "dominance_k")])
    assert [row[0] for row in answer.page.rows[1:]] == ["65", "70", "75 (now)", "80", "85", "90"]
    primary = [int(row[1]) for row in answer.page.rows[1:]]
    assert primary == sorted(primary, reverse=True)
    assert "<script" not in answer.text
    for wrong in ("rules", 'max_count"'):
        assert browser.post("/tables/numbers", [*PEOPLE, ("number", wrong)]).status == 400
