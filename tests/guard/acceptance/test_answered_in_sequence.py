"""What people write, all of it asked by one login under a limit on the sequence of answers (docs/sequence.md)."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from table import SECRET, database_of_file, queries, verdict

import sdcduck

_OF_OTHERS = ("women", "stays")
"""A view of the same people and another table of them: neither goes beside a limit on what is told of the first."""


@pytest.mark.long
def test_what_is_refused_is_refused_for_its_form_alone(tmp_path: Path) -> None:
    """The numbers of the page: 212 of the 220 that are answered when it is off, and none refused for what it adds."""
    said = {}
    for more in ("", ", sequence := 'precision', secrets := ['sex']"):
        path = tmp_path / f"people{len(more)}.duckdb"
        with closing(sdcduck.connect(path, secret=SECRET)) as con:
            database_of_file(con, more)
        with closing(sdcduck.open_guard(path)) as guard:
            asked = [query for query in queries() if not set(query.sql.replace(".", " ").split()) & set(_OF_OTHERS)]
            said[more] = [verdict(guard, query) for query in asked]
    off, limited = said.values()
    assert Counter(now for before, now in zip(off, limited, strict=True) if before == "yes") == {
        "yes": 212,
        "SDC071": 8,
    }
