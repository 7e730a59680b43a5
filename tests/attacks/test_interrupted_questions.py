"""A question that is stopped, or that fails as nobody foresaw, is in the audit log: else one could ask in secret."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest

import sdcduck
from sdcduck.catalog.audit_reading import verify_log
from sdcduck.guard import Guard

QUERY = "SELECT region, count(*) AS n FROM people GROUP BY region"
ENDS: list[tuple[BaseException, str]] = [
    (KeyboardInterrupt(), "abandoned"),
    (RuntimeError("Query interrupted"), "abandoned"),
    (RecursionError(), "SDC090"),
]
"""What a question may end in: Ctrl-C, what DuckDB makes of it, and a fault; and what the log says."""
DOORS: dict[str, Callable[[Guard, str], pa.Table]] = {
    "sql": lambda one, query: one.sql(query, user="ann"),
    "stream": lambda one, query: one.stream(query, user="ann").read_all(),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("when", ["rewritten", "begun"])
@pytest.mark.parametrize(("problem", "verdict"), ENDS, ids=["ctrl-c", "interrupted", "fault"])
def test_it_is_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, door: str, when: str, problem: BaseException, verdict: str
) -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("CREATE TABLE people AS SELECT i AS id, i % 3 AS region FROM range(90) t(i)")
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['region'])").fetchall()
        one = sdcduck.open_guard(con, log=tmp_path / "log")

        def fail(*_: object, **__: object) -> object:
            raise problem

        with monkeypatch.context() as patched:
            if when == "begun":
                for module in ("guard", "question"):
                    patched.setattr(import_module(f"sdcduck.guard.{module}"), "begun", fail)
            else:
                patched.setattr(Guard, "_rewrite", fail)
            with pytest.raises(type(problem)):
                DOORS[door](one, QUERY)
        assert DOORS[door](one, QUERY).num_rows == 3
        lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
        assert [(line["verdict"], line["user"], line["query"]) for line in lines] == [
            (verdict, "ann", QUERY),
            ("answered", "ann", QUERY),
        ]
        assert verify_log(tmp_path / "log")[0] == 2
        one.close()
