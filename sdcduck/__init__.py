"""sdcduck: statistical disclosure control as SQL inside DuckDB.

>>> import sdcduck
>>> con = sdcduck.connect()
>>> con.execute("SELECT count(*) > 0 FROM sdc_functions()").fetchall()
[(True,)]

The functions that return a table are here without the ``sdc_`` of their names; `sdcduck.functions.tables` has all.

>>> _ = con.execute("CREATE TABLE people AS SELECT range AS person_id, range % 2 AS region FROM range(10)")
>>> sdcduck.protect(con, "people", unit="person_id", dimensions=["region"], method="threshold", min_units=3).fetchall()
[('people', 'threshold', 10, 10, True, False, 'off')]
"""

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sdcduck.errors import SDCError
from sdcduck.guard import open_guard
from sdcduck.report import assess, publication_report

if TYPE_CHECKING:
    from sdcduck import pictures as pictures
    from sdcduck.functions.install import connect, install, new_secret, set_secret, uninstall
    from sdcduck.functions.tables import *  # noqa: F403

__all__ = [
    "SDCError", "assess", "connect", "install", "new_secret", "open_guard", "publication_report", "set_secret",
    "uninstall",
]  # fmt: skip

_CALLED_NOW: dict[str, Callable[..., Any]] = {
    "sdcduck.guard": open_guard,
    "sdcduck.report": publication_report,
}


class _WasAFunction(ModuleType):
    """A package that was hidden by its function, which can be called by the old name until 0.3."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        called = _CALLED_NOW[self.__name__]
        warnings.warn(f"{self.__name__} is called sdcduck.{called.__name__} now", DeprecationWarning, stacklevel=2)
        return called(*arguments, **named)


for _name in _CALLED_NOW:
    sys.modules[_name].__class__ = _WasAFunction


def __getattr__(name: str) -> Any:
    """What is loaded on first use.

    The session comes with every method and the compiler behind them, which a gateway that only answers questions does
    without: 110 MB and half a second. So do ``sdcduck.pictures``, and ``sdcduck.ibis``, which is an extra.
    """
    if name in ("ibis", "pictures"):
        return import_module(f"sdcduck.{name}")
    if name in __all__:
        found = getattr(import_module("sdcduck.functions.install"), name)
        globals()[name] = found
        return found
    if not name.startswith("_") and name in (tables := import_module("sdcduck.functions.tables")).__all__:
        return getattr(tables, name)
    raise AttributeError(f"module 'sdcduck' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *import_module("sdcduck.functions.tables").__all__})
