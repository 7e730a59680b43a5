"""Programs in JavaScript."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from served_gateway import PASSWORD, ROWS, SLOW, Served, wait_for

_MODULES = os.environ.get("SDCDUCK_NODE_MODULES", "")


def told(served: Served, program: str, *needed: str) -> list[str]:
    """The lines that a program beside this file prints."""
    if shutil.which("node") is None:
        pytest.skip("no Node.js")
    for module in needed:
        if not _MODULES or not Path(_MODULES, module).is_dir():
            pytest.skip(f"SDCDUCK_NODE_MODULES does not say where the client `{module}` is")
    done = subprocess.run(
        ["node", str(Path(__file__).with_name(program)), str(served.port), PASSWORD, SLOW],
        env={**os.environ, "NODE_PATH": _MODULES}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_node_pg(served: Served) -> None:
    left = served.told("left")
    assert told(served, "node_pg.js", "pg") == [
        'kinds {"a_bool":true,"a_small":7,"a_decimal":"12.345","a_text":"grün","nothing":null}',
        "tables kinds numbers people",
        "columns person_id:20 region:1043 sex:1043 age:23 income:23",
        "parameters true",
        'prepared [{"n":"0"},{"n":"1"},{"n":"2"}]',
        'prepared [{"n":"0"},{"n":"1"},{"n":"2"}]',
        "refused 42501 SDC040",
        f"rows {ROWS}",
        "cancelled 57014",
        "goes on 1",
        "left",
        "pool " + " ".join(map(str, range(20))),
        "login 28P01",
    ]
    wait_for(lambda: served.told("left") > left)


def test_sequelize(served: Served) -> None:
    assert told(served, "node_sequelize.js", "sequelize", "pg") == [
        "tables kinds numbers people",
        "columns person_id:BIGINT region:CHARACTER VARYING sex:CHARACTER VARYING age:INTEGER income:INTEGER",
        "comment measure: sum and avg",
        "there true 0",
        "count true true",
        "units true",
        "groups East:number North:number South:number",
        "sum true",
        "preview North",
        "within true",
        "refused SDC040",
        "read only cannot execute INSERT",
        "goes on 1",
    ]


def test_typeorm(served: Served) -> None:
    assert told(served, "node_typeorm.js", "typeorm", "reflect-metadata", "pg") == [
        "place register public",
        "columns person_id:bigint region:character varying sex:character varying age:integer income:integer",
        "there true true false",
        "count true true",
        "sum true true",
        "groups East North South",
        "among true",
        "preview North",
        "within true",
        "refused 42501 SDC040",
        "read only 25006",
        "goes on 1",
    ]


def test_knex(served: Served) -> None:
    assert told(served, "node_knex.js", "knex", "pg") == [
        "columns age:integer income:integer person_id:bigint region:character varying sex:character varying",
        "there true true false",
        "count true true",
        "units true",
        "groups East:number North:number South:number",
        "with 3",
        "preview North",
        "within true",
        "refused 42501",
        "read only 25006",
        "goes on 1",
    ]


def test_postgres_js(served: Served) -> None:
    assert told(served, "node_postgres.js", "postgres") == [
        "lists true true true",
        "groups East:number North:number South:number",
        "described region count ?column?",
        f"cursor {ROWS}",
        "several 1 1",
        "preview North a preview",
        "refused 42501",
        "within true",
        "cancelled 57014",
        "read only 25006",
        "goes on 1",
    ]
