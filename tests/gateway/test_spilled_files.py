"""What the engine puts into files where memory is short is records: nobody but the gateway reads them."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from pathlib import Path

import pytest
from served_gateway import start, wait_for

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files")

SORTED = "SELECT max(x) FROM (SELECT row_number() OVER (ORDER BY a.words || b.words) AS x FROM numbers a, (FROM numbers LIMIT 60) b)"


def test_nobody_else_reads_what_is_put_aside(register: Path, tmp_path: Path) -> None:
    file = tmp_path / "register.duckdb"
    shutil.copy(register, file)
    before = os.umask(0o022)
    try:
        served = start(file, tmp_path / "served", "--memory", "150MB")
    finally:
        os.umask(before)
    aside = file.with_name("register.duckdb.tmp")

    def ask() -> None:
        with psycopg.connect(**served.options, autocommit=True) as con, pytest.raises(psycopg.Error):
            con.execute("SET statement_timeout = 30000")
            con.execute(SORTED)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for(lambda: aside.exists() and any(aside.glob("*.tmp")))
    modes = [stat.S_IMODE(one.stat().st_mode) for one in (aside, *aside.glob("*")) if one.exists()]
    served.process.kill()
    served.process.wait(60)
    asking.join(60)
    assert modes
    assert not any(mode & 0o077 for mode in modes)
