"""What doctests may use without an import."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest


@cache
def _guard() -> Any:
    import sdcduck

    con = sdcduck.connect(secret="the secret of the doctests")
    con.execute(
        "CREATE TABLE people AS SELECT i AS id, i % 90 AS age, 'north' AS region, 100 * i AS income FROM range(9) t(i)"
    )
    con.execute("CREATE TABLE made_up AS SELECT 30 AS age, 'north' AS region, 500 AS income")
    con.execute("CREATE TABLE regions AS SELECT 'north' AS region, 'hills' AS area")
    con.execute(
        "CALL sdc_protect('people', unit := 'id', dimensions := ['age', 'region'], measures := ['income'], "
        "method := 'threshold', min_units := 3, preview := 'made_up')"
    )
    con.execute("CALL sdc_public('regions')")
    return sdcduck.open_guard(con)


def after(step: Callable[..., None], query: str) -> None:
    """Print what a pass of the guard, and those before it, make of a query."""
    for name, made in _guard().steps(query):
        if name == step.__name__ or made.startswith("refused"):
            print(made)
            return


@pytest.fixture(autouse=True, scope="session")
def _passes_in_doctests(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["after"] = after
