"""The files and gateways that the shell asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from served_gateway import register, served
from typer.testing import CliRunner

import sdcduck
from sdcduck.cli import app

__all__ = ["register", "served"]

Run = Callable[..., "Done"]


@pytest.fixture(scope="session")
def methods(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of each method, a policy of one role, and a user who has it."""
    path = tmp_path_factory.mktemp("shell") / "methods.duckdb"
    con = sdcduck.connect(path, secret="the secret of the tests")
    for name in ("noisy", "published", "large", "rounded"):
        con.execute(
            f"CREATE TABLE {name} AS SELECT id AS unit, ['A', 'B', 'C'][1 + least(id // 3, 2)] AS kind, id AS amount "
            "FROM range(40) u(id)"
        )
    for name in ("noisy", "rounded"):
        con.execute(f"FROM sdc_add_record_key('{name}', unit := 'unit')").fetchall()
    con.execute(
        "FROM sdc_publish('p', 'SELECT kind, count(*) AS n FROM published GROUP BY GROUPING SETS ((kind), ())', max_count := 3)"
    ).fetchall()
    for name, arguments in (
        ("noisy", ""),
        ("published", ", method := 'suppression', publication := 'p'"),
        ("large", ", method := 'threshold', min_units := 4"),
        ("rounded", ", method := 'rounding', base := 5, role := 'special'"),
    ):
        measures = "[]" if name in ("published", "rounded") else "['amount']"
        con.execute(
            f"FROM sdc_protect('{name}', unit := 'unit', dimensions := ['kind'], measures := {measures}{arguments})"
        ).fetchall()
    con.execute("FROM sdc_create_user('zoe', 'a password of tests', role := 'special')").fetchall()
    con.close()
    return path


@dataclass(frozen=True)
class Done:
    """How a run ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the shell without a terminal, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def begin(*arguments: object, text: str = "", **environment: str) -> Done:
        result = CliRunner().invoke(app, ["shell", *map(str, arguments)], input=text, env=environment)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    return begin
