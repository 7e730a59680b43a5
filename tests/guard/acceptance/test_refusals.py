"""The page of refusals: every code is there, what it says is refused is refused with it, and what is in its place answered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from table import guarded

from sdcduck.guard import REASONS, Refused

PAGE = Path(__file__).resolve().parents[3] / "docs" / "refusals.md"
_SECTION = re.compile(r"^## (?P<code>SDC\d{3}) \{#(?P=code)\}\n(?P<text>.*?)(?=^## |\Z)", re.M | re.S)
_PAIR = re.compile(r"Refused:\n\n```SQL\n(?P<refused>.+?)\n```\n\nAnswered:\n\n```SQL\n(?P<answered>.+?)\n```", re.S)
WITHOUT_QUERIES = {
    "SDC002",
    "SDC060",
    "SDC061",
    "SDC070",
    "SDC071",
    "SDC072",
    "SDC073",
    "SDC075",
    "SDC076",
    "SDC077",
    "SDC080",
    "SDC081",
    "SDC082",
    "SDC090",
    "SDC091",
    "SDC092",
    "SDC093",
    "SDC094",
    "SDC095",
}
"""They depend on more than a query of a line."""


def test_every_code_says_what_to_write_instead() -> None:
    sections = {found["code"]: found["text"] for found in _SECTION.finditer(PAGE.read_text(encoding="utf-8"))}
    assert list(sections) == list(REASONS)
    with guarded("cell_key") as guard:
        for code, text in sections.items():
            found, advice = REASONS[code]
            assert f"**{found[0].upper()}{found[1:]}.** {advice}" in text
            pairs = list(_PAIR.finditer(text))
            assert len(pairs) == text.count("Refused:")
            assert bool(pairs) != (code in WITHOUT_QUERIES), code
            for pair in pairs:
                with pytest.raises(Refused, match=code):
                    guard.sql(pair["refused"])
                assert guard.sql(pair["answered"]).column_names, pair["answered"]
