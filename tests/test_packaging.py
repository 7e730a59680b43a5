"""A wheel built from the checkout carries everything, and works where nothing else of the checkout is.

Built offline, with the setuptools of the environment, in a copy: the checkout is left as it is.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.functions.reference import EXAMPLE_DATA, EXAMPLE_SECRET

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("sdcduck", "sql", "udfs", "pyproject.toml", "README.md", "LICENSE")
_SETUPTOOLS = 77  # the first that understands `license = "Apache-2.0"`

USE = """
import sys
from pathlib import Path
import duckdb, sdcduck
assert Path(sdcduck.__file__).is_relative_to(sys.argv[1]), sdcduck.__file__
con = sdcduck.connect("people.duckdb", secret="the secret of the tests")
con.execute("CREATE TABLE people AS SELECT range AS id FROM range(100)")
print(con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall())
print(con.execute("SELECT sdc_count(record_key) BETWEEN 95 AND 105 FROM people").fetchall())
print(con.execute("SELECT rows FROM sdc_store_ptable('mine', '(FROM sdc_ptable(D := 2, V := 1))')").fetchall())
print(con.execute("SELECT count(*) > 10 FROM sdc_functions()").fetchall())
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command without the network, and without what this process was told about Python."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "SDCDUCK_SECRET")}
    offline = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**kept, **offline, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        found = version("setuptools")
    except PackageNotFoundError:
        pytest.skip("there is no setuptools to build with")
    if int(found.split(".")[0]) < _SETUPTOOLS:
        pytest.skip(f"setuptools {found} is too old to build with: pip install 'setuptools>={_SETUPTOOLS}'")
    if importlib.util.find_spec("pip") is None:
        pytest.skip("there is no pip to build with")
    copy = tmp_path_factory.mktemp("checkout")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, copy / name)
    wheels = tmp_path_factory.mktemp("wheels")
    run(sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "-q", "-w", wheels, cwd=copy)
    (built,) = wheels.iterdir()
    return built


def test_the_wheel_carries_every_module_and_sql_file_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = {name for name in content.namelist() if ".dist-info/" not in name}
        info = {name.split(".dist-info/")[1] for name in content.namelist() if ".dist-info/" in name}
    expected = {path.relative_to(ROOT).as_posix() for path in (ROOT / "sdcduck").rglob("*.py")}
    expected |= {
        f"sdcduck/{path.relative_to(ROOT).as_posix()}"
        for folder in ("sql", "udfs")
        for path in (ROOT / folder).rglob("*.py")
    }
    expected |= {f"sdcduck/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "sql").rglob("*.sql")}
    expected |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "sdcduck/desk/templates").iterdir()}
    assert names == expected | {"sdcduck/py.typed"}
    assert {"METADATA", "licenses/LICENSE", "entry_points.txt"} <= info


def test_the_wheel_says_what_the_project_says(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert wheel.name == f"sdcduck-{project['version']}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as content:
        (name,) = (name for name in content.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = content.read(name).decode()
        (licence,) = (name for name in content.namelist() if name.endswith("/LICENSE"))
        assert content.read(licence) == (ROOT / "LICENSE").read_bytes()
    assert "License-Expression: Apache-2.0\n" in metadata
    assert "Requires-Python: >=3.11\n" in metadata
    assert (ROOT / "README.md").read_text() in metadata


def test_an_installed_wheel_works_on_its_own(wheel: Path, tmp_path: Path) -> None:
    target, empty = tmp_path / "target", tmp_path / "empty"
    empty.mkdir()
    run(sys.executable, "-m", "pip", "install", "--no-deps", "-q", "--target", target, wheel, cwd=empty)
    # The path of the wheel goes first, before an editable installation of the checkout.
    # It is in a file, because `python -c` is a person to DuckDB, who is shown progress if the machine is slow.
    use = tmp_path / "use.py"
    use.write_text(USE)
    answers = run(sys.executable, "-W", "error", use, target, cwd=empty, PYTHONPATH=str(target)).splitlines()
    assert answers == ["[('record_key', 100, 100, 0)]", "[(True,)]", "[(3,)]", "[(True,)]"]
    said = run(sys.executable, target / "bin" / "sdcduck", "--version", cwd=empty, PYTHONPATH=str(target))
    number = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert said == f"sdcduck {number}, DuckDB {duckdb.__version__}\n"


_WITHOUT = """
import sys
class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numba", "llvmlite", "scipy", "highspy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nowhere())
import sdcduck, sdcduck.cli, sdcduck.gateway.serving
with sdcduck.connect(sys.argv[1], read_only=True) as con:
    guard = sdcduck.open_guard(con)
    for table in ("noisy", "small", "rounded"):
        print(guard.sql(f"SELECT count(*) AS n FROM {table} WHERE sex = 'f'").to_pylist())
    for call in (
        "sdc_suppress('SELECT sex, count(*) AS n FROM noisy GROUP BY ROLLUP (sex)', max_count := 1)",
        "sdc_microaggregate('noisy', ['age', 'income'])",
    ):
        try:
            con.execute(f"FROM {call}").fetchall()
        except Exception as problem:
            print(str(problem).splitlines()[0])
"""


def test_a_gateway_answers_without_what_solves_and_compiles(tmp_path: Path) -> None:
    """Cell keys, thresholds and rounding; what does need them says which."""
    file = tmp_path / "register.duckdb"
    with sdcduck.connect(file, secret=EXAMPLE_SECRET) as con:
        con.execute(EXAMPLE_DATA)
        for name, method in (
            ("noisy", ""), ("small", ", method := 'threshold', min_units := 2"), ("rounded", ", method := 'rounding'")
        ):  # fmt: skip
            con.execute(f"CREATE TABLE {name} AS FROM people")
            con.execute(f"FROM sdc_protect('{name}', unit := 'person_id', dimensions := ['sex']{method})").fetchall()
        guard = sdcduck.open_guard(con)
        wanted = [
            str(guard.sql(f"SELECT count(*) AS n FROM {name} WHERE sex = 'f'").to_pylist())
            for name in ("noisy", "small", "rounded")
        ]
    done = subprocess.run([sys.executable, "-c", _WITHOUT, str(file)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[:3] == wanted
    assert [line.rpartition(": ")[2] for line in lines[3:]] == [f"pip install {one}" for one in ("scipy", "numba")]
    assert all("which is not installed here" in line for line in lines[3:])
