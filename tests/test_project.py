"""What is said about the project is so: the map names what is there, and every file that a page names exists."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import effort
import pytest
import releasing

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/architecture.md")
MODULES = {"sdcduck.sql"}
"""What looks like a file, and is the name of a package."""
LONGEST_MODULE, LONGEST_FUNCTION = 600, 80  # lines
GENERATED = {"sdcduck/functions/tables.py", "sdcduck/ibis/functions.py"}
"""What `make examples` writes, and nobody reads from top to bottom."""
_NAMED = re.compile(r"`((?:[\w.-]+/)*[\w.-]+(?:\.(?:py|sql|md|toml)|/))`")
_LINKED = re.compile(r"\]\(([\w./-]+\.md)(#[\w-]+)?\)")


def is_there(name: str) -> bool:
    """A path from the root, or the name of a module or folder somewhere in the product."""
    return (ROOT / name).exists() or any(
        any((ROOT / top).rglob(name.rstrip("/"))) for top in ("sdcduck", "sql", "udfs")
    )


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_there(page: str) -> None:
    named = set(_NAMED.findall((ROOT / page).read_text(encoding="utf-8"))) - MODULES
    assert sorted(name for name in named if not is_there(name)) == []


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target, anchor in _LINKED.findall(text):
        file = (ROOT / page).parent / target
        assert file.exists(), target
        titles = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        assert not anchor or anchor[1:] in {re.sub(r"\W+", "-", title.lower()).strip("-") for title in titles}, anchor


def test_the_map_has_every_room() -> None:
    """Every folder of the product stands on the map, and on a floor of the contract."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rooms = {path.parent.name for path in (ROOT / "sdcduck").glob("*/__init__.py")}
    assert sorted(room for room in rooms if f"sdcduck/{room}/" not in text) == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    floors = project["tool"]["importlinter"]["contracts"][0]["layers"]
    assert {name.strip().split(".")[1] for floor in floors for name in floor.split("|")} >= rooms


def rooms() -> dict[str, set[str]]:
    """The folders and loose modules of the package, each with those that it imports."""
    found: dict[str, set[str]] = {}
    for name, text in modules():
        parts = name.removesuffix(".py").removeprefix("sdcduck/").split("/")
        if parts[0] in ("__init__", "__main__"):
            continue
        imported = re.findall(r"^ *(?:from|import) sdcduck(?:\.| import )(\w+)", text, re.MULTILINE)
        found.setdefault(parts[0], set()).update(room for room in imported if room != parts[0])
    return found


def test_the_house_does_not_grow() -> None:
    """No more rooms than the map counts, nor levels of imports; rooms that import each other would have no level."""
    imports = rooms()
    levels: list[set[str]] = []
    while left := imports.keys() - set().union(*levels):
        free = {room for room in left if imports[room].isdisjoint(left)}
        assert free, f"imports in a circle: {sorted(left)}"
        levels.append(free)
    told = re.search(
        r"There are (\d+) rooms on (\d+) levels", (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    )
    assert told is not None
    assert (len(imports), len(levels)) == (int(told[1]), int(told[2])), levels


def test_a_release_has_one_number() -> None:
    """`make release` refuses another one; the whole of it is for whoever releases."""
    assert releasing.release_number() == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def modules() -> Iterator[tuple[str, str]]:
    """The modules of the product, and what is in them."""
    for top in ("sdcduck", "udfs"):
        for path in sorted((ROOT / top).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_no_module_is_long() -> None:
    long = {name for name, text in modules() if len(text.splitlines()) > LONGEST_MODULE}
    assert sorted(long - GENERATED) == []


def test_no_function_is_long() -> None:
    """The docstring counts, decorators do not."""
    long = {
        f"{name}: {node.name}"
        for name, text in modules()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    }
    assert sorted(long) == []


def all_tests() -> dict[str, list[str]]:
    """Every test as pytest calls it, without cases."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        module = file.relative_to(ROOT).as_posix()
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            inside = node.body if isinstance(node, ast.ClassDef) else [node]
            prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
            found.setdefault(module, []).extend(
                f"{module}::{prefix}{one.name}"
                for one in inside
                if isinstance(one, ast.FunctionDef) and one.name.startswith("test")
            )
    return found


def test_each_family_has_tests_on_an_older_duckdb() -> None:
    by_module = all_tests()
    kept: dict[str, int] = {}
    for module, tests in by_module.items():
        folder = Path(module).parts[1] if module.count("/") > 1 else "tests"
        kept[folder] = kept.get(folder, 0) + sum(not effort.of_no_database(test) for test in effort.in_turn(tests))
    assert sorted(folder for folder, number in kept.items() if number == 0) == []


def test_what_an_older_duckdb_leaves_out_is_there_by_that_name() -> None:
    by_module = all_tests()
    some = [*effort.OF_SOME_DATABASE.items(), *effort.RUN_BY_OTHERS.items()]
    listed = effort.OF_NO_DATABASE | effort.OF_NUMBERS | effort.EACH_CASE | {module for module, _ in some}
    assert sorted(listed - by_module.keys()) == []
    for module, names in some:
        assert sorted(name for name in names if f"{module}::{name.split('[')[0]}" not in by_module[module]) == []
    assert effort.EACH_CASE.isdisjoint(effort.OF_NO_DATABASE | effort.OF_NUMBERS)
    assert {module for module, _ in some}.isdisjoint(effort.OF_NO_DATABASE | effort.OF_NUMBERS)


def test_what_others_run_on_an_older_duckdb_is_run_by_some() -> None:
    by_module = all_tests()
    alone = [
        module for module in effort.RUN_BY_OTHERS if all(effort.of_no_database(test) for test in by_module[module])
    ]
    assert alone == []
