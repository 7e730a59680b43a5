"""What those read who decide what is published, as one HTML file: a suppressed publication, or a release."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import duckdb

from sdcduck.report.cells import read_report
from sdcduck.report.page import page
from sdcduck.report.release import assess

__all__ = ["assess", "publication_report"]


def publication_report(
    con: duckdb.DuckDBPyConnection,
    publication: str,
    path: str | Path,
    *,
    audit: bool = False,
    custodian: bool = False,
    title: str | None = None,
    date: datetime.date | None = None,
    **rules: Any,
) -> Path:
    """Suppress a publication and write it as an HTML page that needs no other file; returns its path.

    The page says first, in a sentence and a colour each, whether somebody could be found, whether something could be
    learned, and whether it is still useful. It has a table for each grouping set, with primary, secondary and forced
    cells marked by colour and letter, and a summary. It tells primary from secondary cells and names the rules: it is
    for the office, not for the public.

    Args:
        con: a connection; the SQL functions are installed on it if they are not yet.
        publication: the SELECT, or the name of a stored publication (whose rules hold where none are given).
        path: the file, which is replaced if it exists.
        audit: also find the interval that each suppressed number is known to lie in, shown while the pointer is on it.
        custodian: also show the numbers of suppressed cells. Otherwise nothing in the file is made from them.
        title: of the page; None: the name of the publication.
        date: that stands in the page; None: today's.
        rules: the arguments of ``sdc_suppress``, such as ``max_count=3``, ``dominance=[(1, 75)]`` or ``rules="house"``.

    Raises:
        SDCError: an unknown rule.
        duckdb.Error: whatever is wrong with the publication or the rules.
    """
    from sdcduck.functions.install import install  # with all methods, which a gateway does without

    install(con)
    found = read_report(con, publication, rules, audit=audit, custodian=custodian)
    file = Path(path)
    file.write_text(page(found, title=title, day=date), encoding="utf-8")
    return file
