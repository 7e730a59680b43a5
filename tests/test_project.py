"""What is said about the project is so: the map names what is there, and every file that a page names exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import releasing

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/architecture.md")
MODULES = {"sdcduck.sql"}
"""What looks like a file, and is the name of a package."""
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


def test_a_release_has_one_number() -> None:
    """`make release` refuses another one; the whole of it is for whoever releases."""
    assert releasing.release_number() == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
