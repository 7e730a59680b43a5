"""Programs in JavaScript."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from served_gateway import PASSWORD, ROWS, SLOW, Served, wait_for

_MODULES = os.environ.get("SDCDUCK_NODE_MODULES", "")


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js")
@pytest.mark.skipif(not _MODULES, reason="SDCDUCK_NODE_MODULES does not say where the client `pg` is")
def test_node_pg(served: Served) -> None:
    left = served.told("left")
    done = subprocess.run(
        ["node", str(Path(__file__).with_name("node_pg.js")), str(served.port), PASSWORD, SLOW],
        env={**os.environ, "NODE_PATH": _MODULES}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
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
    ], done.stderr  # fmt: skip
    wait_for(lambda: served.told("left") > left)
