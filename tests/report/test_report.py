"""Reports: what they show, and that nothing is in them that was suppressed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

import sdcduck
from sdcduck.cli import app

QUERY = """
    SELECT sector, geo, count(*) AS n, sum(turnover) AS turnover FROM firms
    GROUP BY GROUPING SETS ((sector, geo), (sector), (geo), ())"""
EVIL = "<script>alert('x')</script> & \"co\""


def make_firms(con: duckdb.DuckDBPyConnection) -> None:
    """Firms with turnovers that no other number in the page looks like."""
    con.execute("CREATE TABLE firms (sector VARCHAR, geo VARCHAR, firm INTEGER, turnover DOUBLE)")
    firm = 0
    for sector, size in (("A", 6), ("B", 5), (EVIL, 4), (None, 5)):
        for geo in ("north", "south", "east"):
            for _ in range(1 if (sector, geo) == ("A", "north") else size):
                firm += 1
                con.execute("INSERT INTO firms VALUES (?, ?, ?, ?)", [sector, geo, firm, 7001.25 + 977.5 * firm * firm])


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = sdcduck.connect()
    make_firms(connection)
    yield connection
    connection.close()


class Page(HTMLParser):
    """The tables of a page: rows of (tag, class, title, text); and every tag, attribute and text there is."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[list[list[tuple[str, str, str, str]]]] = []
        self.headings: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        if tag not in ("meta", "link", "br", "img"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append((tag, given.get("class") or "", given.get("title") or "", ""))
        elif tag == "h2":
            self.headings.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "h2" in self.open:
            self.headings[-1] += data
        elif "td" in self.open or "th" in self.open:
            tag, marked, title, text = self.tables[-1][-1].pop()
            self.tables[-1][-1].append((tag, marked, title, text + data))

    def cells(self) -> list[tuple[str, str, str]]:
        """Class, title and text of the cells that have a class, but those of the legend."""
        return [cell[1:] for table in self.tables[1:] for row in table for cell in row if cell[1]]


def suppressed_numbers(con: duckdb.DuckDBPyConnection, rules: str) -> list[float]:
    return [
        row[0]
        for row in con.execute(f"""
            SELECT p.turnover FROM sdc_primary($${QUERY}$$) p JOIN sdc_suppress($${QUERY}$$, {rules}) s
            ON (p.level, p.sector, p.geo) IS NOT DISTINCT FROM (s.level, s.sector, s.geo) WHERE s.suppressed
        """).fetchall()
    ]


def spellings(value: float) -> set[str]:
    return {f"{value:,.10g}", f"{value:.10g}", repr(value), f"{value:,.2f}", f"{value:.2f}"}


def test_a_page_of_cross_tables_and_lists(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = sdcduck.publication_report(con, QUERY, tmp_path / "page.html", max_count=2)
    assert path == tmp_path / "page.html"
    page = Page(path)
    assert page.headings == ["In short", "Summary", "Suppressed by rule", "total", "sector", "geo", "sector x geo"]
    legend, summary, by_rule, total, sector, geo, cross_n, cross_turnover = page.tables
    assert [row[1][3] for row in legend[1:]] == ["P", "S", "F"]
    assert [cell[3] for cell in by_rule[1]] == ["max_count", "1"]
    assert [cell[3] for cell in total[1]][:1] == [f"{con.execute('SELECT count(*) FROM firms').fetchall()[0][0]}"]
    assert [cell[3] for cell in cross_n[0]] == ["sector \\ geo", "east", "north", "south"]
    assert [row[0][3] for row in cross_n[1:]] == ["NULL", EVIL, "A", "B"]
    a = next(row for row in cross_n if row[0][3] == "A")
    assert a[2][1:] == ("primary", "primary; max_count", "P")
    assert {cell[1] for cell in a[1:]} == {"primary", "secondary"} | (
        {"open"} if a[1][1] == "open" or a[3][1] == "open" else set()
    )
    assert len(sector) == 5
    assert len(geo) == 4
    assert [row[0][3] for row in summary[1:]] == ["total", "sector", "geo", "sector x geo", "all"]
    assert [cell[3] for cell in summary[4]][1:6] == ["12", "8", "0", "1", "3"]
    assert len(cross_turnover) == 5


def test_no_suppressed_number_is_in_the_file(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    rules = "max_count := 2, dominance := [(1, 40)]"
    secret = suppressed_numbers(con, rules)
    assert len(secret) >= 4
    for audit in (False, True):
        path = sdcduck.publication_report(
            con, QUERY, tmp_path / "page.html", audit=audit, max_count=2, dominance=[(1, 40)]
        )
        source = path.read_text(encoding="utf-8")
        for value in secret:
            assert not any(text in source for text in spellings(value)), value
        assert all(text in "PS" for marked, _, text in Page(path).cells() if marked in ("primary", "secondary"))


def test_custodians_see_the_numbers_beside_the_marks(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    secret = suppressed_numbers(con, "max_count := 2")
    page = Page(sdcduck.publication_report(con, QUERY, tmp_path / "page.html", custodian=True, max_count=2))
    shown = {text for marked, _, text in page.cells() if marked in ("primary", "secondary")}
    for value in secret:
        assert shown & {f"{value:,.10g}P", f"{value:,.10g}S"}
    assert "as confidential as the records" in page.source


def test_intervals_show_while_the_pointer_is_on_a_cell(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    page = Page(sdcduck.publication_report(con, QUERY, tmp_path / "page.html", audit=True, max_count=2))
    titles = {(marked, title) for marked, title, _ in page.cells() if marked in ("primary", "secondary")}
    audited = con.execute(f"SELECT DISTINCT lower, upper FROM sdc_audit($${QUERY}$$, max_count := 2)").fetchall()
    for lower, upper in audited:
        assert any(f"between {lower:g} and {upper:g}" in title for _, title in titles)
    assert all(": " not in title for _, title in titles)
    without = Page(sdcduck.publication_report(con, QUERY, tmp_path / "page.html", max_count=2))
    assert not any("between" in title for _, title, _ in without.cells())


def test_a_number_that_forced_cells_give_away_is_not_written_down(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    # All cells of the row but one are forced, and so is their sum.
    rules = {"max_count": 2, "forced_if": "NOT (sector = 'A' AND geo = 'north') OR sector IS NULL OR geo IS NULL"}
    path = sdcduck.publication_report(con, QUERY, tmp_path / "page.html", audit=True, **rules)
    [primary] = {title for marked, title, _ in Page(path).cells() if marked == "primary"}
    assert primary == "primary; max_count, follows from forced cells; follows exactly from published numbers"
    [(value,)] = con.execute("SELECT sum(turnover) FROM firms WHERE sector = 'A' AND geo = 'north'").fetchall()
    assert not any(text in path.read_text() for text in spellings(value))
    assert {text[-1] for marked, _, text in Page(path).cells() if marked == "forced"} == {"F"}


def test_names_of_categories_and_columns_are_text(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    query = """SELECT sector AS "<b>", count(*) AS "n & <i>" FROM firms GROUP BY CUBE ("<b>")"""
    page = Page(sdcduck.publication_report(con, query, tmp_path / "page.html", max_count=13, audit=True))
    assert "<script" not in page.source
    assert "script" not in page.tags
    assert not {"b", "i"} & set(page.tags)
    assert EVIL in [row[0][3] for row in page.tables[-1]]
    assert [cell[3] for cell in page.tables[-1][0]] == ["<b>", "n & <i>"]
    assert page.headings[-1] == "<b>"


def test_the_page_needs_nothing_else(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    source = sdcduck.publication_report(con, QUERY, tmp_path / "page.html", max_count=2).read_text()
    assert not any(text in source for text in ("http:", "https:", "src=", "href=", "url(", "@import"))


def test_shares_come_from_published_numbers(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    page = Page(sdcduck.publication_report(con, QUERY, tmp_path / "page.html", max_count=2))
    [(share,)] = con.execute(f"""
        SELECT sum(turnover) / (SELECT sum(turnover) FROM firms) FROM sdc_suppress($${QUERY}$$, max_count := 2)
        WHERE level = 'sector x geo'""").fetchall()
    assert page.tables[1][4][-1][3] == f"{100 * share:.1f} %"
    # Without a published total a share would tell it.
    query = QUERY.replace(", ())", ")")
    page = Page(sdcduck.publication_report(con, query, tmp_path / "page.html", max_count=2))
    assert {row[-1][3] for row in page.tables[1][1:-1]} == {"–"}


def test_three_dimensions_are_slices_and_sparse_pairs_are_lists(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    query = (
        "SELECT sector, geo, firm % 2 AS odd, count(*) AS n FROM firms GROUP BY GROUPING SETS ((sector, geo, odd), ())"
    )
    page = Page(sdcduck.publication_report(con, query, tmp_path / "page.html", max_count=1))
    assert [[cell[3] for cell in table[0]] for table in page.tables[-2:]] == [
        ["sector \\ geo", "east", "north", "south"]
    ] * 2
    assert "<caption>n, odd 0</caption>" in page.source
    assert "<caption>n, odd 1</caption>" in page.source
    query = "SELECT firm, firm + 1 AS next, count(*) AS n FROM firms GROUP BY GROUPING SETS ((firm, next), ())"
    page = Page(sdcduck.publication_report(con, query, tmp_path / "page.html", max_count=1))
    assert [cell[3] for cell in page.tables[-1][0]] == ["firm", "next", "n"]


def test_the_longer_dimension_goes_down_the_page(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    query = "SELECT geo, sector, count(*) AS n FROM firms GROUP BY GROUPING SETS ((geo, sector), ())"
    page = Page(sdcduck.publication_report(con, query, tmp_path / "page.html", max_count=0))
    assert page.tables[-1][0][0][3] == "sector \\ geo"
    assert [cell[3] for cell in next(row for row in page.tables[-1] if row[0][3] == "A")] == ["A", "6", "1", "6"]


def test_a_stored_publication_keeps_its_rules(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute(f"FROM sdc_publish('firms', $${QUERY}$$, max_count := 2)").fetchall()
    page = Page(sdcduck.publication_report(con, "firms", tmp_path / "page.html"))
    assert "<h1>Publication firms</h1>" in page.source
    assert "primary" in {marked for marked, _, _ in page.cells()}


def test_zeros_that_no_record_has(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute("DELETE FROM firms WHERE sector = 'B' AND geo = 'east'")
    page = Page(sdcduck.publication_report(con, QUERY, tmp_path / "page.html", max_count=2))
    assert ("none", "", "·") in page.cells()
    page = Page(
        sdcduck.publication_report(con, QUERY, tmp_path / "page.html", custodian=True, max_count=0, protect_zeros=True)
    )
    assert {text for marked, _, text in page.cells() if marked == "primary"} <= {"0P", "–P"}


def test_an_empty_publication(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    query = "SELECT geo, count(*) AS n FROM firms WHERE false GROUP BY GROUPING SETS ((geo), ())"
    page = Page(sdcduck.publication_report(con, query, tmp_path / "page.html", max_count=2, audit=True))
    assert page.headings == ["In short", "Summary", "total", "geo"]


def test_what_is_refused(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with pytest.raises(sdcduck.SDCError, match="unknown rule 'max_cuont'; did you mean 'max_count'"):
        sdcduck.publication_report(con, QUERY, path, max_cuont=3)
    with pytest.raises(sdcduck.SDCError, match="rule 'max_count' must be a number"):
        sdcduck.publication_report(con, QUERY, path, max_count=object())
    with pytest.raises(sdcduck.SDCError, match="unknown publication 'frims'"):
        sdcduck.publication_report(con, "frims", path)
    with pytest.raises(duckdb.Error, match="argument 'max_count' must be a number of at least 0"):
        sdcduck.publication_report(con, QUERY, path, max_count=-1)
    with pytest.raises(sdcduck.SDCError, match=r"a grouping column cannot be called .total."):
        sdcduck.publication_report(con, "SELECT geo AS total, count(*) AS n FROM firms GROUP BY CUBE (total)", path)
    assert not path.exists()


# --- The command line -------------------------------------------------------------------------------------------------


def call(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["report", *arguments], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "firms.duckdb"
    with sdcduck.connect(path) as connection:
        make_firms(connection)
    return str(path)


def test_the_command_writes_the_page(file: str, tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    page = str(tmp_path / "page.html")
    options = ["--max-count", "2", "--dominance", "1,40", "--dominance", "(2, 90)", "--contributor", "firm"]
    assert call(file, QUERY, "-o", page, *options) == (0, f"wrote {page}\n", "")
    by_command = Path(page).read_text()
    rules = {"max_count": 2, "dominance": [(1, 40), (2, 90)], "contributor": "firm"}
    assert sdcduck.publication_report(con, QUERY, tmp_path / "other.html", **rules).read_text() == by_command
    assert call(file, "-", "-o", page, *options, stdin=QUERY)[0] == 0
    assert Path(page).read_text() == by_command


def test_the_command_takes_a_rule_set_and_what_differs(file: str, tmp_path: Path) -> None:
    with sdcduck.connect(file) as connection:
        connection.execute("CALL sdc_rules('house', max_count := 2, dominance := [(1, 40), (2, 90)])").fetchall()
    page, other = str(tmp_path / "page.html"), str(tmp_path / "other.html")
    assert call(file, QUERY, "-o", page, "--rules", "house", "--contributor", "firm")[0] == 0
    spelled_out = ["--max-count", "2", "--dominance", "1,40", "--dominance", "2,90", "--contributor", "firm"]
    assert call(file, QUERY, "-o", other, *spelled_out)[0] == 0
    assert Path(page).read_text() == Path(other).read_text()


def test_the_command_leaves_the_file_alone(file: str, tmp_path: Path) -> None:
    plain = tmp_path / "plain.duckdb"
    with duckdb.connect(str(plain)) as connection:
        make_firms(connection)
    before = plain.read_bytes()
    assert call(str(plain), QUERY, "-o", str(tmp_path / "page.html"), "--pq", "10,50", "--audit", "--custodian")[0] == 0
    assert plain.read_bytes() == before


def test_errors_are_one_line(file: str, tmp_path: Path) -> None:
    page = str(tmp_path / "page.html")
    for arguments, message in (
        ([str(tmp_path / "no.duckdb"), QUERY], "there is no file"),
        ([file, "nothing"], "unknown publication 'nothing'"),
        ([file, QUERY, "--dominance", "much"], "argument 'dominance' takes pairs of numbers"),
        ([file, QUERY, "--rules", "house"], "unknown rule set 'house'; there are none"),
        ([file, QUERY], "no rule says which cells are primary"),
        ([file, QUERY, "--max-count", "2", "-o", str(tmp_path / "no" / "page.html")], "No such file or directory"),
    ):
        code, _, error = call(*arguments) if "-o" in arguments else call(*arguments, "-o", page)
        assert code == 1
        assert error.count("\n") == 1
        assert message in error


def verdicts(page: Page) -> list[tuple[str, str]]:
    """The mark and the first sentence of each verdict."""
    return re.findall(r'<li class="(\w+)"><strong>(.*?)</strong>', page.source)


def test_a_page_says_first_what_was_found_and_what_was_not_looked_at(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    made = {"title": "Turnovers <2024>", "date": date(2024, 2, 29)}
    page = Page(sdcduck.publication_report(con, QUERY, tmp_path / "page.html", max_count=2, **made))
    assert verdicts(page) == [
        ("good", "Could somebody be found? Not by these rules."),
        ("unknown", "Could something be learned? Not known."),
        ("care", "Is it still useful? In part."),
    ]
    assert page.source.index("In short") < page.source.index("Summary")
    [(records,)] = con.execute("SELECT count(*) FROM firms").fetchall()
    for text in (
        "<h1>Turnovers &lt;2024&gt;</h1>",
        "2024-02-29",
        "max_count 2",
        f"<dd>{records}</dd>",
        version("sdcduck"),
    ):
        assert text in page.source
    page = Page(sdcduck.publication_report(con, QUERY, tmp_path / "page.html", dominance=[(1, 99)], audit=True))
    assert [mark for mark, _ in verdicts(page)] == ["unknown", "good", "care"]
    page = Page(sdcduck.publication_report(con, QUERY, tmp_path / "page.html", max_count=0, audit=True))
    assert [mark for mark, _ in verdicts(page)] == ["unknown", "unknown", "good"]


def test_the_number_of_records_is_not_told_where_no_total_is_published(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    query = QUERY.replace(", ())", ")")
    source = sdcduck.publication_report(con, query, tmp_path / "page.html", max_count=2).read_text()
    assert "<dt>Records</dt>" not in source
    source = sdcduck.publication_report(con, query, tmp_path / "page.html", max_count=2, custodian=True).read_text()
    assert "<dt>Records</dt><dd>55</dd>" in source
